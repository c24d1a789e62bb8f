/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow cache that outlives its process: its table is in a file (kept.h), and the next process
 * continues its flows. The state survives kill -9, since the kernel has its pages; it does not
 * survive a crash of the machine, and a state of another boot is not taken. The file is of one
 * cache at a time (flock).
 *
 *   pl_flow_state_open(&state, &options, &config, &diag);   needs access to the file; reports what it
 *                                                           found
 *   pl_flow_cache_new_kept(&cache, &config, state, ...);
 *   ... the outputs of the sink are opened ...
 *   pl_flow_cache_resume(cache, boot_ns, &resumed, &diag);
 *   ... feed; pl_flow_cache_came() ...
 *   pl_flow_cache_leave(cache, now_ns);                     instead of pl_flow_cache_finish()
 *   pl_flow_cache_free(cache);
 *   pl_flow_state_close(state);
 *
 * A process that ends normally first makes a record of each flow, so that no packet is lost if the
 * next process cannot use the state because of another layout or another boot.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/map_guard.h"
#include "flow/cache.h"

#define PL_FLOW_POINTS 64u

struct pl_flow_state;

/* An interface at an observation point: the meaning of the numbers in records. Unused bytes are
 * 0. */
struct pl_flow_point {
	char name[16];
	uint64_t netns; /* inode of its network namespace */
	uint32_t ifindex;
	uint16_t point;
	uint8_t mac[6];
	uint32_t zero;
};

struct pl_flow_state_options {
	const char *path;                   /* made with mode 0600 if it does not exist */
	const struct pl_flow_point *points; /* flows go on only if the state has equal points */
	uint32_t n_points;                  /* PL_FLOW_POINTS at most */
};

/* Parts of the file that cannot go on. */
struct pl_flow_found {
	const char *lost;    /* why the state is lost, in words (it is PATH.old now); NULL: it is
			      * not */
	const char *differs; /* why all flows end, in words; NULL: they go on */
	uint64_t flows, packets; /* flows and packets lost, by the header of the file */
};

/* Opens, locks and maps the file, or makes it. Returns 0 or a negative errno with diag: -EBUSY when
 * another process has the file, -EINVAL when it is no state file; it stays as it is then. */
int pl_flow_state_open(struct pl_flow_state **ret, const struct pl_flow_state_options *options,
	const struct pl_flow_config *config, struct pl_diag *diag);
/* Closes the state, after pl_flow_cache_free(); NULL is fine. */
void pl_flow_state_close(struct pl_flow_state *state);
/* Result of opening; valid as long as the state. */
const struct pl_flow_found *pl_flow_state_found(const struct pl_flow_state *state);
/* Replaces the list of points, for the next process that opens the file. */
void pl_flow_state_points(
	struct pl_flow_state *state, const struct pl_flow_point *points, uint32_t n);

/* Makes a cache in the memory of the file, otherwise as pl_flow_cache_new(). */
int pl_flow_cache_new_kept(struct pl_flow_cache **ret, const struct pl_flow_config *config,
	struct pl_flow_state *state, pl_flow_sink *sink, void *arg, struct pl_diag *diag);

/* Result of resuming a state. */
struct pl_flow_resumed {
	bool was_there;     /* the file held a state, with or without flows */
	uint64_t flows;     /* flows that go on */
	uint64_t ended;     /* flows that were over by now, or ended because the state differs */
	uint64_t unseen_ns; /* length of this outage */
	uint64_t packets;   /* packets counted since the state began, of ended flows too */
	uint64_t records;   /* records given to the sink since the state began, before this outage;
			     * their packets */
	uint64_t records_packets;
	uint64_t waited; /* records that the last process had not given to the sink, and that are
			  * given now */
};

/* Resumes the state of the file at `boot_ns` of CLOCK_BOOTTIME: hands out the records that waited,
 * and ends flows that are over by now, or all flows when the state has another size or other
 * points. The cache must not be fed before. Returns 0, or a negative errno with diag when there is
 * no room for a file of the other size. */
int pl_flow_cache_resume(struct pl_flow_cache *cache, uint64_t boot_ns, struct pl_flow_resumed *ret,
	struct pl_diag *diag);

/* Stores that the clock was newest_ns at `boot_ns`: the next process computes from them how long no
 * tap ran. clocks: bits of the caller that name the clocks of the times; they are added to the
 * earlier ones. */
void pl_flow_cache_came(
	struct pl_flow_cache *cache, uint64_t newest_ns, uint64_t boot_ns, uint32_t clocks);
/* All bits of clocks so far, those of earlier processes included. */
uint32_t pl_flow_cache_clocks(const struct pl_flow_cache *cache);

/* Gives a record of each flow away, as pl_flow_cache_finish() does, and leaves the flows in the
 * file. Flows that saw their end, or are over at `now_ns`, end. The caller frees the cache then. */
void pl_flow_cache_leave(struct pl_flow_cache *cache, uint64_t now_ns);

/* Looks for pages that were cut off the file since the last call: their flows are gone and counted
 * as damaged. Returns the number of these flows, which may be 0 though `*ret_pages` were cut. */
uint64_t pl_flow_cache_cut(struct pl_flow_cache *cache, uint64_t *ret_pages);

struct pl_flow_state_counters {
#define PL_STAT PL_STAT_MEMBER
#include "flow/state_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_flow_state_counters_list;
/* Returns the present counters; every cache has them. */
const struct pl_flow_state_counters *pl_flow_cache_state_counters(
	const struct pl_flow_cache *cache);
