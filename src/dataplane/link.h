/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a link: delay, jitter, rate, and what it does to packets. Engine without a
 * clock: times are given, in ns, and never go back. The same seed and the same calls give the same
 * fates; each kind of fate draws from numbers of its own, so that jitter changes nothing about what
 * is lost. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "dataplane/packet.h"
#include "gen/dist.h"

#define PL_DP_LOSE_MAX       64
#define PL_DP_LINK_DELAY_MAX UINT64_C(3600000000000)

struct pl_dp_link_cfg {
	uint64_t delay_ns;
	struct pl_dist jitter;   /* added to the delay, in ns; PL_DIST_DEFAULT: none */
	bool jitter_reorders;    /* else a packet waits for those that were sent before it */
	uint64_t rate_bps;       /* 0: no time for its length */
	uint32_t overhead_bytes; /* of each packet, at that rate */
	uint32_t limit_packets;  /* under way at most; 0: no limit */
	/* Shares from 0 to 1. Each packet is lost with `loss`, in the bad state with `bad_loss`
	 * instead; before that the state goes from good to bad with `to_bad`, back with `to_good`
	 * (Gilbert 1960, Elliott 1963). */
	double loss, to_bad, to_good, bad_loss;
	/* Lost by number: packets count from 0 since the configuration was set. lose_run in a row
	 * from lose_first on, again every lose_period (0: once); and those listed. */
	uint64_t lose_first, lose_period, lose_run;
	uint64_t lose[PL_DP_LOSE_MAX];
	uint32_t n_lose;
	double duplicate;    /* share of which a copy arrives right behind it */
	double corrupt;      /* share of which one bit is changed, any behind the addresses of L2 */
	double reorder;      /* share that is held back, and does not hold back others */
	uint64_t reorder_ns; /* for so long */
	/* Copied, and held back, by number: as with lose. */
	uint64_t copy[PL_DP_LOSE_MAX], hold[PL_DP_LOSE_MAX];
	uint32_t n_copy, n_hold;
	bool down; /* all is lost; what is under way arrives */
};

/* At every time in + duplicated = out + lost_* + held, in packets and in bytes. */
struct pl_dp_link_books {
#define PL_STAT PL_STAT_MEMBER
#include "dataplane/link_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_dp_link_stats;

struct pl_dp_link;

/* -EINVAL with diag for what the configuration cannot mean, -ENOMEM. */
int pl_dp_link_new(struct pl_dp_link **ret, const struct pl_dp_link_cfg *cfg, uint64_t seed,
	struct pl_diag *diag);
/* Frees the packets under way. */
void pl_dp_link_free(struct pl_dp_link *l);

/* Changes it from now on; packets under way keep their times. -EINVAL with diag, nothing changed. */
int pl_dp_link_set(struct pl_dp_link *l, const struct pl_dp_link_cfg *cfg, struct pl_diag *diag);
const struct pl_dp_link_cfg *pl_dp_link_get(const struct pl_dp_link *l);

/*
 * A packet whose last bit enters the link now. True: the link has it, and *ret_copy is its copy,
 * the link's too, or NULL. False: it is lost, still the caller's, with drop set.
 */
bool pl_dp_link_send(struct pl_dp_link *l, struct pl_dp_packet *pkt, uint64_t now_ns,
	struct pl_dp_packet **ret_copy);

/* When the next packet arrives; UINT64_MAX when none is under way. */
uint64_t pl_dp_link_next(const struct pl_dp_link *l);
/* The packet that has arrived, the caller's then; NULL before pl_dp_link_next. */
struct pl_dp_packet *pl_dp_link_recv(struct pl_dp_link *l, uint64_t now_ns);

const struct pl_dp_link_books *pl_dp_link_books(const struct pl_dp_link *l);
