/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow cache that outlives its process: its table lies in a file (kept.h), and the next process goes on with
 * its flows. What was stored is there after kill -9, since the kernel has it; after a crash of
 * the machine it is not, and a state of another boot is not taken. The file is of one cache at a time (flock).
 *
 *   pl_flow_state_open(&state, &options, &config, &diag);   takes rights to the file; says what it found
 *   pl_flow_cache_new_kept(&cache, &config, state, ...);
 *   ... where the sink leads to is opened ...
 *   pl_flow_cache_resume(cache, boot_ns, &resumed, &diag);
 *   ... feed; pl_flow_cache_came() ...
 *   pl_flow_cache_leave(cache, now_ns);                     instead of pl_flow_cache_finish()
 *   pl_flow_cache_free(cache);
 *   pl_flow_state_close(state);
 *
 * A process that ends in order gives a record of each flow away first, so that what another layout of
 * the state, or another boot, forgets is no packet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/map_guard.h"
#include "flow/cache.h"

#define PL_FLOW_POINTS 64u

struct pl_flow_state;

/* An interface at an observation point: what the numbers in records stand for. Unused bytes are 0. */
struct pl_flow_point {
	char name[16];
	uint64_t netns; /* inode of its network namespace */
	uint32_t ifindex;
	uint16_t point;
	uint8_t mac[6];
	uint32_t zero;
};

struct pl_flow_state_options {
	const char *path;                   /* made with mode 0600 when it is not there */
	const struct pl_flow_point *points; /* only a state of equal ones goes on */
	uint32_t n_points;                  /* PL_FLOW_POINTS at most */
};

/* What the file held that cannot go on. */
struct pl_flow_found {
	const char *lost;    /* why, in words: its file is PATH.old now; NULL: nothing was lost */
	const char *differs; /* why its flows all end, in words; NULL: they go on */
	uint64_t flows, packets; /* lost: as its header says */
};

/* Opens, locks and maps the file, or makes it. Negative errno with diag: -EBUSY: another process has it,
 * -EINVAL: it is no file of this kind, and stays as it is. */
int pl_flow_state_open(struct pl_flow_state **ret, const struct pl_flow_state_options *options,
	const struct pl_flow_config *config, struct pl_diag *diag);
/* NULL is fine. Behind pl_flow_cache_free(). */
void pl_flow_state_close(struct pl_flow_state *state);
/* Valid as long as the state. */
const struct pl_flow_found *pl_flow_state_found(const struct pl_flow_state *state);
/* Another list of points, for whom the file is opened next. */
void pl_flow_state_points(
	struct pl_flow_state *state, const struct pl_flow_point *points, uint32_t n);

/* As pl_flow_cache_new(), in the file's memory. */
int pl_flow_cache_new_kept(struct pl_flow_cache **ret, const struct pl_flow_config *config,
	struct pl_flow_state *state, pl_flow_sink *sink, void *arg, struct pl_diag *diag);

/* How a state goes on. */
struct pl_flow_resumed {
	bool was_there;     /* there was a state, with or without flows */
	uint64_t flows;     /* that go on */
	uint64_t ended;     /* that were over by now, or were all ended as the state differs */
	uint64_t unseen_ns; /* of this outage */
	uint64_t packets;   /* counted since the state began, those of ended flows included */
	uint64_t records;   /* handed out since then, before the outage, and the packets in them */
	uint64_t records_packets;
	uint64_t waited; /* records that had not been handed out, and are now */
};

/*
 * Goes on with what the file held, at `boot_ns` of CLOCK_BOOTTIME: hands out records that waited, ends flows that
 * are over by now, or all of them when the state is of another size or other points. Without it a cache must not be
 * fed. Negative errno with diag: there is no room for a file of the other size.
 */
int pl_flow_cache_resume(struct pl_flow_cache *cache, uint64_t boot_ns, struct pl_flow_resumed *ret,
	struct pl_diag *diag);

/* The newest packet has this time, and came at `boot_ns`: for how long nobody looked when the process dies. clocks:
 * bits of the caller's that say which clocks times are of; they are added to those of before. */
void pl_flow_cache_came(
	struct pl_flow_cache *cache, uint64_t newest_ns, uint64_t boot_ns, uint32_t clocks);
/* All of them, also of earlier processes. */
uint32_t pl_flow_cache_clocks(const struct pl_flow_cache *cache);

/* Gives a record of each flow away, as pl_flow_cache_finish() does, and leaves the flows in the file. Those
 * that saw their end, or are over at `now_ns`, end. The cache is to be freed then. */
void pl_flow_cache_leave(struct pl_flow_cache *cache, uint64_t now_ns);

/* Pages of the file were cut away since this was asked last: flows that were in them are gone and counted as damaged.
 * How many flows; 0 also when nothing was cut, which `*ret_pages` tells. */
uint64_t pl_flow_cache_cut(struct pl_flow_cache *cache, uint64_t *ret_pages);

struct pl_flow_state_counters {
#define PL_STAT PL_STAT_MEMBER
#include "flow/state_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_flow_state_counters_list;
/* As of now; of any cache. */
const struct pl_flow_state_counters *pl_flow_cache_state_counters(
	const struct pl_flow_cache *cache);
