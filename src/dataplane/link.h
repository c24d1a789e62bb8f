/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a link: delay, jitter, rate, loss, duplication, corruption, reordering. The
 * engine has no clock: times are arguments, in ns, and never go back. The same seed and calls give
 * the same results; each kind of event has its own random numbers, so that jitter does not change
 * which packets are lost. One thread.
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
	bool jitter_reorders;    /* else a packet waits for those sent before it */
	uint64_t rate_bps;       /* 0: sending takes no time */
	uint32_t overhead_bytes; /* added to each packet, at that rate */
	uint32_t limit_packets;  /* most packets under way; 0: no limit */
	/* Shares from 0 to 1. Each packet is lost with `loss`, in the bad state with `bad_loss`
	 * instead; before that the state goes from good to bad with `to_bad`, back with `to_good`
	 * (Gilbert 1960, Elliott 1963). */
	double loss, to_bad, to_good, bad_loss;
	/* Losses by number: packets count from 0 since the configuration was set. lose_run packets
	 * in a row from lose_first on, again every lose_period (0: once); and those in `lose`. */
	uint64_t lose_first, lose_period, lose_run;
	uint64_t lose[PL_DP_LOSE_MAX];
	uint32_t n_lose;
	double duplicate;    /* share of packets that are followed by a copy */
	double corrupt;      /* share of packets with one flipped bit behind the MAC addresses */
	double reorder;      /* share that is held back without holding back others */
	uint64_t reorder_ns; /* time for which packets are held back */
	/* Numbers of packets that are copied, and held back: as with lose. */
	uint64_t copy[PL_DP_LOSE_MAX], hold[PL_DP_LOSE_MAX];
	uint32_t n_copy, n_hold;
	bool down; /* all new packets are lost; those under way arrive */
};

/* Counters; at every time in + duplicated = out + lost_* + held, in packets and in bytes. */
struct pl_dp_link_account {
#define PL_STAT PL_STAT_MEMBER
#include "dataplane/link_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_dp_link_stats;

struct pl_dp_link;

/* Creates a link. -EINVAL with diag for an impossible configuration, -ENOMEM. */
int pl_dp_link_new(struct pl_dp_link **ret, const struct pl_dp_link_cfg *cfg, uint64_t seed,
	struct pl_diag *diag);
/* Frees the link and the packets under way. */
void pl_dp_link_free(struct pl_dp_link *l);

/* Changes the configuration from now on; packets under way keep their times, and with another delay
 * or jitter later ones may overtake them. -EINVAL with diag, nothing changed. */
int pl_dp_link_set(struct pl_dp_link *l, const struct pl_dp_link_cfg *cfg, struct pl_diag *diag);
const struct pl_dp_link_cfg *pl_dp_link_get(const struct pl_dp_link *l);

/*
 * Sends a packet whose last bit enters the link at now_ns. True: the link owns it; *ret_copy is its
 * copy, also the link's, or NULL. False: it is lost and stays the caller's, with drop set.
 */
bool pl_dp_link_send(struct pl_dp_link *l, struct pl_dp_packet *pkt, uint64_t now_ns,
	struct pl_dp_packet **ret_copy);

/* Returns when the next packet arrives; UINT64_MAX when none is under way. */
uint64_t pl_dp_link_next(const struct pl_dp_link *l);
/* Returns a packet that has arrived, which becomes the caller's; NULL before pl_dp_link_next. */
struct pl_dp_packet *pl_dp_link_recv(struct pl_dp_link *l, uint64_t now_ns);

const struct pl_dp_link_account *pl_dp_link_account(const struct pl_dp_link *l);
