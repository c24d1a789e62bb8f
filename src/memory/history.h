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
 * Every file is a region of its own (docs/formats/region.md), and each may be missing. Hops are
 * published before the path that names them, so a path that is seen has its hops until they are
 * overwritten: as the lists are sized.
 *
 * Keys, little-endian: of a flow 37 bytes, source and destination address (16 each), source and
 * destination port (2 each, 0 where there is none), protocol (1); of a queue 14 bytes, node (8),
 * port (4), queue (2), ones for any; of drops 10 bytes, node (8), reason (2), ones for any.
 *
 * Return values are 0 or negative errno; a diag, which may be NULL, gets the error as text.
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

const char *pl_history_store_name(enum pl_history_store store); /* store's name: "events", … */

#define PL_HISTORY_FLOW_HOPS 6u /* hops kept with a flow's last path */
#define PL_HISTORY_ANY       UINT32_MAX

/* Entry of the list of paths. */
struct pl_history_path {
	struct pl_path path;
	uint64_t first_hop; /* number of the first hop of the path in the list of hops */
};

/* Last value of a flow. */
struct pl_history_flow {
	struct pl_history_path last;
	struct pl_hop hops[PL_HISTORY_FLOW_HOPS]; /* zero behind the path's last hop */
};

_Static_assert(sizeof(struct pl_history_path) == 136, "as in docs/formats/region.md");
_Static_assert(sizeof(struct pl_history_flow) == 904, "as in docs/formats/region.md");

struct pl_history;

/* ---- writing ---- */

struct pl_history_options {
	uint64_t slots
		[PL_HISTORY_MAX]; /* slots of each store, 0: none. Lists are rounded up; paths need
				   * hops */
	uint64_t sync_ns;         /* as in struct pl_region_options */
	uint64_t seed; /* seed of the keys' hashes in new stores; 0: a random one for each */
	void (*tell)(const char *text); /* gets faults that the writer survives; may be NULL */
};

/* Size of all files. Returns 0, or -EINVAL with a diag that names the store. */
int pl_history_bytes(
	const struct pl_history_options *options, uint64_t *ret_bytes, struct pl_diag *diag);

/* Makes the folder and the missing files, and goes on with the others. A file that is damaged, cut
 * or incomplete does not affect the others: it is renamed to FILE.damaged, FILE.damaged-2 and so
 * on, and a new one is made. Returns 0; -EINVAL when a file has another geometry, -EPROTO when a
 * newer version wrote it, -ENOSPC, or -EBUSY when another process writes it. After an error the
 * files made on the way are removed, and those renamed have their names back. */
int pl_history_begin(struct pl_history **ret, const char *folder,
	const struct pl_history_options *options, struct pl_diag *diag);

/* Appends records; one thread calls these. Paths whose hops do not follow each other in the batch
 * are fine. */
void pl_history_put_paths(struct pl_history *h, const struct pl_record_batch *batch);
void pl_history_put_events(struct pl_history *h, const struct pl_event *events, uint32_t n);

/* Creates again, with their sizes, the files that were moved away or removed; the others stay open.
 * After an error the open files stay open. */
int pl_history_renew(
	struct pl_history *h, const struct pl_history_options *options, struct pl_diag *diag);

/* ---- reading ---- */

/* Opens a folder, one file of it, or any region of records (content event, path, hop). Returns 0,
 * -ENOENT when there is none, or -EINVAL for a region of other contents. A folder opens when at
 * least one of its files can be read. Files may be cut while they are open if pl_region_guard is
 * installed. */
int pl_history_open(struct pl_history **ret, const char *path, struct pl_diag *diag);

/* Reason why an existing file was not opened, with its name; NULL when it was opened or does not
 * exist. */
const char *pl_history_trouble(const struct pl_history *h, enum pl_history_store store);

/* Closes a history of a writer or a reader. A writer's regions are written to disk and marked
 * clean; returns the first error of that, or 0. */
int pl_history_close(struct pl_history *h);

/* Region of the store; NULL when it is not there. */
const struct pl_region *pl_history_region(const struct pl_history *h, enum pl_history_store store);

/* True when an open file was replaced by another of its name, or removed: the caller opens the
 * history again. */
bool pl_history_replaced(const struct pl_history *h);

/* One record of a list. */
struct pl_history_record {
	uint64_t number;
	enum pl_record_kind kind;
	union {
		struct pl_path path;
		struct pl_event event;
		struct pl_hop hop;
	};
	uint64_t first_hop;
	unsigned int n_hops; /* hops of a path: path.hop_count, or fewer when some are gone */
	struct pl_hop hops[255];
};

/* Time of the record: arrival of the report, or time of the event. */
uint64_t pl_history_record_ns(const struct pl_history_record *record);

#define PL_HISTORY_AHEAD 64u /* entries that a reader copies at once */

struct pl_history_reader {
	const struct pl_history *h; /* borrowed */
	enum pl_history_store store;
	struct pl_append_reader list; /* reader of the list, with its counts and its cursor */
	uint64_t without_hops;        /* paths some of whose hops were gone */
	size_t at, n;
	uint64_t numbers[PL_HISTORY_AHEAD];
	_Alignas(8) uint8_t entries[PL_HISTORY_AHEAD * sizeof(struct pl_history_path)];
};

/* Begins at entry number `from` of the list; 0: at the oldest there is, and no earlier entry counts
 * as overrun. Returns 0, -ENOENT when the store is not there or is no list, or -ERANGE when the
 * region has no such list. */
int pl_history_reader_init(struct pl_history_reader *r, const struct pl_history *h,
	enum pl_history_store store, uint32_t list, uint64_t from);

/* Reads the next record, never a torn one. False when there is none now. */
bool pl_history_next(struct pl_history_reader *r, struct pl_history_record *ret);

/* ---- asking ---- */

/* Hashed keys for the functions below, whose stores must be there (pl_history_region). Of `flow`
 * addresses, ports and protocol count. PL_HISTORY_ANY stands for any port, queue (also of one port)
 * or reason. */
struct pl_key pl_history_flow_key(const struct pl_history *h, const struct pl_path *flow);
struct pl_key pl_history_queue_key(
	const struct pl_history *h, uint64_t node, uint32_t port, uint32_t queue);
struct pl_key pl_history_drops_key(const struct pl_history *h, uint64_t node, uint32_t reason);

/* Looks n keys up at once, and prefetches their slots. */
void pl_history_flows(const struct pl_history *h, const struct pl_key *keys, unsigned int n,
	struct pl_key_write_result *ret_results, struct pl_history_flow *ret_values);
void pl_history_queues(const struct pl_history *h, const struct pl_key *keys, unsigned int n,
	struct pl_key_write_result *ret_results, struct pl_hop *ret_values);

/* Makes a record of the flow's last path, with the hops kept with it, or all its hops from the list
 * while they are there. */
void pl_history_flow_record(const struct pl_history *h, const struct pl_history_flow *flow,
	struct pl_history_record *ret);

/* Sum of the drops of all keys, which the caller reads once, and estimates that are bounded by
 * it. */
double pl_history_drops_total(const struct pl_history *h);
struct pl_estimate pl_history_drops(const struct pl_history *h, struct pl_key key, double total);
