/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * History: a folder of regions that one collector writes and anyone reads at the same time, or
 * afterwards.
 *
 *   events.region  append     events
 *   paths.region   append     paths, each with the number of its first hop in the list of hops
 *   hops.region    append     hops in the order of their paths
 *   flows.region   key-write  by flow: its last path with up to PL_HISTORY_FLOW_HOPS of its hops
 *   queues.region  key-write  by node; by node and egress port; by those and queue: the last hop
 *                  there
 *   drops.region   counters   by node; by node and reason: reports of dropped packets
 *
 * Every file is a region by itself (docs/formats/region.md), and each may be missing. Hops are
 * published before the path that names them, so a path that is seen has its hops until they are
 * overwritten: as the lists are sized.
 *
 * Keys, little-endian: of a flow 37 bytes, source and destination address (16 each), source and
 * destination port (2 each, 0 where there is none), protocol (1); of a queue 14 bytes, node (8),
 * port (4), queue (2), ones for any; of drops 10 bytes, node (8), reason (2), ones for any.
 *
 * Return values are 0 or negative errno; a diag, which may be NULL, says it for people.
 */
#pragma once

#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/region.h"
#include "record/record.h"

enum pl_history_store {
	PL_HISTORY_EVENTS,
	PL_HISTORY_PATHS,
	PL_HISTORY_HOPS,
	PL_HISTORY_FLOWS,
	PL_HISTORY_QUEUES,
	PL_HISTORY_DROPS,
	PL_HISTORY_MAX,
};

const char *pl_history_store_name(enum pl_history_store store); /* "events", … */

#define PL_HISTORY_FLOW_HOPS 6u /* hops kept with a flow's last path */
#define PL_HISTORY_ANY       UINT32_MAX

/* An entry of the list of paths. */
struct pl_history_path {
	struct pl_path path;
	uint64_t first_hop; /* number in the list of hops of the first of path.hop_count */
};

/* A flow's last value. */
struct pl_history_flow {
	struct pl_history_path last;
	struct pl_hop hops[PL_HISTORY_FLOW_HOPS]; /* zero behind the path's */
};

_Static_assert(sizeof(struct pl_history_path) == 136, "as in docs/formats/region.md");
_Static_assert(sizeof(struct pl_history_flow) == 904, "as in docs/formats/region.md");

struct pl_history;

/* ---- writing ---- */

struct pl_history_options {
	uint64_t slots
		[PL_HISTORY_MAX]; /* of each store; 0: none. Lists: rounded up; paths need hops */
	uint64_t sync_ns;         /* as struct pl_region_options has it */
	uint64_t seed; /* of the keys' hashes in stores that are made; 0: each draws its own */
	void (*tell)(
		const char *text); /* what a writer goes on in spite of; NULL: nobody is told */
};

/* Bytes of the files, and of a store's. -EINVAL with a diag that names the store. */
int pl_history_bytes(
	const struct pl_history_options *options, uint64_t *ret_bytes, struct pl_diag *diag);

/*
 * Makes the folder and what is not there, goes on with what is there. A file that is damaged, cut,
 * or was not made to its end costs nobody the others: it gets another name, FILE.damaged,
 * FILE.damaged-2 and so on, and a new one is begun. -EINVAL when what is there has another
 * geometry, -EPROTO when a newer version wrote it, -ENOSPC, -EBUSY when another process writes it;
 * then what was made on the way is taken away again, and what was renamed has its name back.
 */
int pl_history_begin(struct pl_history **ret, const char *folder,
	const struct pl_history_options *options, struct pl_diag *diag);

/* By one thread. Paths whose hops do not follow each other in the batch are fine. */
void pl_history_put_paths(struct pl_history *h, const struct pl_record_batch *batch);
void pl_history_put_events(struct pl_history *h, const struct pl_event *events, uint32_t n);

/* Files that were moved away, or taken away, are made anew, of the sizes they had; the others stay
 * open. On failure what was open stays. */
int pl_history_renew(
	struct pl_history *h, const struct pl_history_options *options, struct pl_diag *diag);

/* ---- reading ---- */

/* A folder, or one file of it, or any region of records (content event, path, hop). -ENOENT when
 * there is none, -EINVAL for a region of other things. Of a folder what can be read is, as long as
 * there is anything. Survives cut files with pl_region_guard. */
int pl_history_open(struct pl_history **ret, const char *path, struct pl_diag *diag);

/* Why a file that is there was not opened, with its name; NULL: it was, or is not there. */
const char *pl_history_trouble(const struct pl_history *h, enum pl_history_store store);

/* Of writers and readers. A writer's regions go to disk and are marked clean; the first error of
 * that. */
int pl_history_close(struct pl_history *h);

/* NULL when it is not there. */
const struct pl_region *pl_history_region(const struct pl_history *h, enum pl_history_store store);

/* Whether a file that is open was replaced by another of that name, or is gone: open it again. */
bool pl_history_replaced(const struct pl_history *h);

/* One record out of a list. */
struct pl_history_record {
	uint64_t number;
	enum pl_record_kind kind;
	union {
		struct pl_path path;
		struct pl_event event;
		struct pl_hop hop;
	};
	uint64_t first_hop;
	unsigned int n_hops; /* of a path: path.hop_count, or less when they are gone */
	struct pl_hop hops[255];
};

/* When the record was taken: the report's arrival, or the event's time. */
uint64_t pl_history_record_ns(const struct pl_history_record *record);

#define PL_HISTORY_AHEAD 64u /* entries that a reader copies at once */

struct pl_history_reader {
	const struct pl_history *h; /* borrowed */
	enum pl_history_store store;
	struct pl_append_reader list; /* its counts of overrun and damaged entries, its cursor */
	uint64_t without_hops;        /* paths whose hops were not all there any more */
	size_t at, n;
	uint64_t numbers[PL_HISTORY_AHEAD];
	_Alignas(8) uint8_t entries[PL_HISTORY_AHEAD * sizeof(struct pl_history_path)];
};

/* Begins at entry number `from` of the list (0: the oldest there is; nothing counts as overrun that
 * was before). -ENOENT when the store is not there or is none of the three lists, -ERANGE when the
 * region has no such list. */
int pl_history_reader_init(struct pl_history_reader *r, const struct pl_history *h,
	enum pl_history_store store, uint32_t list, uint64_t from);

/* The next record; false when there is none now. Never a torn one. */
bool pl_history_next(struct pl_history_reader *r, struct pl_history_record *ret);

/* ---- asking ---- */

/* Keys, hashed, for the functions below, whose stores must be there (pl_history_region). Of `flow`
 * addresses, ports and protocol count; PL_HISTORY_ANY for any port, queue (then the port may be
 * one) or reason. */
struct pl_key pl_history_flow_key(const struct pl_history *h, const struct pl_path *flow);
struct pl_key pl_history_queue_key(
	const struct pl_history *h, uint64_t node, uint32_t port, uint32_t queue);
struct pl_key pl_history_drops_key(const struct pl_history *h, uint64_t node, uint32_t reason);

/* n keys at once, their slots prefetched. */
void pl_history_flows(const struct pl_history *h, const struct pl_key *keys, unsigned int n,
	struct pl_key_write_result *ret_results, struct pl_history_flow *ret_values);
void pl_history_queues(const struct pl_history *h, const struct pl_key *keys, unsigned int n,
	struct pl_key_write_result *ret_results, struct pl_hop *ret_values);

/* The last path with its hops: those kept with it, or all out of the list of hops while they are
 * there. */
void pl_history_flow_record(const struct pl_history *h, const struct pl_history_flow *flow,
	struct pl_history_record *ret);

/* The sum over all keys, to be asked once, and estimates by it. */
double pl_history_drops_total(const struct pl_history *h);
struct pl_estimate pl_history_drops(const struct pl_history *h, struct pl_key key, double total);
