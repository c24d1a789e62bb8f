/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of decode/ share; nobody else includes this. */
#pragma once

#include "base/hash.h"
#include "decode/decode.h"
#include "decode/sequence.h"
#include "wire/layers.h"
#include "wire/report.h"

/* ---- exporters.c: sequence spaces ---- */

struct exporter {
	struct pl_addr addr;
	uint64_t node;
	uint8_t hw_id;
	uint8_t report_version;
	uint64_t first_ts_ns, last_ts_ns;
	struct pl_sequence seq;
};

struct exporters {
	struct exporter *list; /* in order of appearance */
	uint32_t *index;       /* open addressing: 1 + position in list; 0 = free */
	uint32_t n, max, mask;
	uint64_t seed;
	uint32_t last; /* the one looked up last */
};

int exporters_init(struct exporters *e, uint32_t max);
void exporters_done(struct exporters *e);
uint64_t exporters_memory(uint32_t max);
/* The entry, made when new; NULL when the table is full. */
struct exporter *exporters_get(
	struct exporters *e, const struct pl_addr *addr, uint64_t node, uint8_t hw_id);

/* ---- paths.c: interned paths ---- */

struct path_slot {
	uint64_t path_id; /* 0 = free */
	uint64_t reports, last_ts_ns;
	uint32_t info; /* position in infos */
};

struct path_shape {
	uint8_t hop_count;
	struct pl_path_step steps[PL_PATH_STEPS_MAX];
};

struct paths {
	struct path_slot *slots;
	struct path_shape *shapes;
	uint64_t seed;
	uint32_t *order; /* slot of the i-th path */
	uint32_t n, max, mask;
};

int paths_init(struct paths *p, uint32_t max);
void paths_done(struct paths *p);
uint64_t paths_memory(uint32_t max);
/* The slot of an id, or NULL. */
const struct path_slot *paths_find(const struct paths *p, uint64_t path_id);
/* Counts the paths first … n_paths-1 of the batch; those that did not fit are returned. */
uint32_t paths_intern(struct paths *p, const struct pl_record_batch *batch, uint32_t first);

/* ---- decode.c ---- */

struct pl_decode {
	struct pl_decode_options opt;
	struct pl_profile *profiles; /* [0] is the default */
	struct pl_int_cache cache;
	struct exporters exporters;
	struct paths paths;
	uint64_t next_report_id;
	uint32_t max_latency_ns;
	uint64_t report_ports[65536 / 64];
	struct pl_outcome outcomes[PL_BATCH_MAX];
	struct pl_decode_counters counters;
	uint32_t interned_from; /* first path of the batch not yet interned */
	/* Of the batch being decoded, added to the counters at its end. */
	struct {
		uint64_t bytes, reports, paths, hops, verdicts[PL_V_MAX], notes[PL_N_MAX];
		uint64_t exporters_full, lost, reordered, duplicates, restarts;
	} sum;
};

/* What is decoded now: one packet, one report of it. */
struct job {
	struct pl_decode *d;
	const struct pl_packet *pkt;
	uint32_t index; /* in the batch */
	const struct pl_profile *profile;
	struct pl_record_batch *out;
	uint64_t notes; /* of the current report */
	uint16_t reports;
};

static inline bool is_report_port(const struct pl_decode *d, uint16_t port)
{
	return d->report_ports[port / 64] >> (port % 64) & 1;
}

/* The profile for an exporter: the longest matching prefix. */
const struct pl_profile *profile_of(const struct pl_decode *d, const struct pl_addr *addr);

/* A fresh path record with room for 255 hops behind it; flushes when there is none. All zero but for what
 * belongs to the packet. */
struct pl_path *begin_path(struct job *j);
/* Completes the record: `n` hops were written at hops_of(j). */
void commit_path(struct job *j, struct pl_path *path, unsigned int n);

static inline struct pl_hop *hops_of(struct job *j)
{
	return &j->out->hops[j->out->n_hops];
}

/* Adds j->notes to the counters and to the packet's outcome, and clears them. */
void count_notes(struct job *j);

void set_flow(struct pl_path *path, const struct pl_flow *flow);

/* ---- find.c: where in a packet the telemetry is ---- */

struct found {
	struct pl_flow flow; /* the original one, restored */
	struct pl_int in;    /* when have_int */
	bool have_int;
	bool have_flow;
	bool announced;        /* by the profile, not by validating bytes */
	struct pl_layers ioam; /* when have_ioam: the level whose options hold IOAM */
	bool have_ioam;
};

/*
 * Looks through a packet (all its levels) for INT and IOAM. `inside` says that it is the inner packet of a
 * report whose F bit is `tracked`: then INT is also found by validating the bytes. `walked` may hold the
 * first level, already walked. PL_V_OK also when nothing was found.
 */
enum pl_verdict find_telemetry(struct job *j, struct found *ret, struct pl_cursor bytes,
	enum pl_link link, const struct pl_layers *walked, bool inside, bool tracked);

/* ---- hops.c: values into records ---- */

/* Decodes the stack into hops, source first. */
void hops_from_stack(struct job *j, struct pl_hop *hops, const struct pl_int *in);
/* The reporting node's own metadata as one hop. */
void hop_from_report(struct pl_hop *hop, const struct pl_report *r);
/* Merges it into the hop that the same node already has; the header wins. */
void hop_merge(struct pl_hop *into, const struct pl_hop *from);
/* Fills what follows from the values: latencies, path id, the hops' place in the path. */
void derive(struct job *j, struct pl_path *path, struct pl_hop *hops, unsigned int n);

/* ---- ioam.c ---- */

/*
 * IOAM of one level's options into path (mode, flow_id, flow_seq) and hops (source first); *ret_n hops.
 * *ret_found says whether there was any IOAM at all.
 */
enum pl_verdict decode_ioam(struct job *j, struct pl_path *path, struct pl_hop *hops,
	unsigned int *ret_n, const struct pl_layers *level, bool *ret_found);
