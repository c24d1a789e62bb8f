/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translator of Direct Telemetry Access: reports in, operations on collectors' memory out
 * (dta/op.h). It owns no socket, no clock and no telemetry memory: datagrams come with their sender
 * and a time, time passes by pl_translator_tick, and the stores' parameters (memory/store.h) decide
 * where reports go. By primitive:
 *
 *   key-write    one write for each copy, at once
 *   append       entries of a list gathered up to `batch`, written together, then the list's head
 *   counters     increments of one key gathered in a bounded cache, then one addition for each row
 *   postcards    the hops of a flow gathered in a bounded cache, then one write for each copy
 *   sketch       columns of all reporters merged here, complete ones written `columns_per_write` at
 *                a time, then the number of complete columns; the last one with an immediate value
 *                that holds the epoch
 *
 * Gathered reports are written when they are complete, when a report asks to wake the collector,
 * when their place is needed, and after `flush_ns`. A postcard that asks does not end its path: the
 * path wakes the collector when it is written. Columns that ask are written without a wake. State
 * is allocated by pl_translator_new and never grows.
 *
 * Sequenced reports are taken in order, each once. A NACK asks for a missing one, at most once in
 * nack_interval_ns for each reporter, then after 2, 4, 8 and 16 intervals, and after each 16 from
 * there on; after nack_tries without an answer the report is counted as lost and its successors are
 * taken. A reporter that asks gets the last number in order. Accounts, at any time:
 *
 *   reports  = faults + refused + duplicates + accepted
 *   postcards accepted  = written in paths + left out of paths + repeated + held
 *   entries held at all = published + held
 *   increments accepted = merged into additions + held
 *
 * One thread at a time. Source: Langlet et al., "Direct Telemetry Access", SIGCOMM 2023, section 4.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "dta/op.h"
#include "memory/store.h"
#include "wire/dta.h"
#include "wire/packet.h"

#define PL_COLLECTORS_MAX       64u
#define PL_DTA_STORES_MAX       256u
#define PL_SKETCH_REPORTERS_MAX 64u
#define PL_ACCESS_MAX           256u
#define PL_DTA_WRITE_BYTES_MAX                                                                     \
	1024u /* of columns written together: fits one packet of an MTU of 1500 */

/* Quota: reports per second, and at once after a pause. rate 0: no limit. */
struct pl_dta_quota {
	double rate;
	double burst; /* reports at once; 0: a tenth of a second's, at least 1 */
};

/*
 * A standing filter: only reports whose number is greater than `above` are taken. The number is the
 * increment of a counter; the sum of a path's values; `width` bytes (1 to 8) at `offset` of values
 * and entries.
 */
struct pl_dta_filter {
	bool on;
	bool little_endian; /* of values and entries */
	uint8_t width;
	uint16_t offset;
	uint64_t above;
};

struct pl_dta_store {
	struct pl_store_params params;
	struct pl_dta_quota quota;
	struct pl_dta_filter filter; /* not for sketches */
	/* longest wait: of entries and increments from the first on, of postcards since the last
	 * one of the flow, of a sketch's epoch since its first columns. 0: 100 ms; sketch: 10 s */
	uint64_t flush_ns;
	/* append: entries written together, 1 to batch_max; 0: the least of 16 and batch_max */
	uint32_t batch;
	/* counters, postcards: keys held at the same time. 0: 32768; counters: 4096 */
	uint32_t cache_rows;
	/* counters: increments gathered into one addition; 1: nothing is held. 0: 64 */
	uint32_t merge_max;
	bool partial; /* postcards: also write a path that is shorter than its postcards say */
	/* sketch: number of reporters that deliver each column, 1 to 64. 0: 1 */
	uint32_t reporters;
	/* sketch: columns in a write; 0: as many as fit PL_DTA_WRITE_BYTES_MAX, at most 64 */
	uint32_t columns_per_write;
};

struct pl_translator_config {
	const struct pl_dta_store *stores; /* numbered from 0, as in reports; copied */
	unsigned int n_stores;
	/* 0: 1. Each collector has all stores; keys and lists are spread over them */
	unsigned int collectors;
	/* PLAIN or TRACKING: form of the reporters that do not use PATHLINE. Their reports go to
	 * the first store of their primitive */
	enum pl_dta_form form;
	const struct pl_prefix *access; /* addresses that may report; none: every address. Copied */
	unsigned int n_access;
	/* reporters known at the same time, for sequence numbers and quotas; 0: 1024 */
	uint32_t reporters;
	uint64_t reporter_idle_ns; /* silence after which a reporter may be forgotten; 0: 60 s */
	struct pl_dta_quota reporter_quota; /* of each reporter */
	uint64_t nack_interval_ns;          /* 0: 1 ms */
	uint32_t nack_tries;                /* tries before a gap counts as lost; 0: at once */
	/* port of published reporters (40044) for NACKs; 0: the port they send from */
	uint16_t nack_port;
};

enum pl_refusal {
#define PL_REFUSAL(id, name, again, help) PL_REFUSED_##id,
#include "dta/refusals.def"
#undef PL_REFUSAL
	PL_REFUSED_MAX
};

const char *pl_refusal_name(enum pl_refusal cause);
const char *pl_refusal_help(enum pl_refusal cause);

struct pl_translator_counters {
#define PL_STAT PL_STAT_MEMBER
#include "dta/translator_stats.def"
#undef PL_STAT
	/* reports that could not be read; [PL_DTA_OK] stays 0 */
	uint64_t faults[PL_DTA_VERDICT_MAX];
	uint64_t refused[PL_REFUSED_MAX];
	uint64_t by_primitive[PL_SKETCH + 1]; /* reports accepted */
};
extern const struct pl_stats pl_translator_stats_list;

struct pl_translator;

/* Returns -EINVAL with a diag for an impossible configuration, -ENOMEM. The sink is copied; its arg
 * is borrowed. */
int pl_translator_new(struct pl_translator **ret, const struct pl_translator_config *config,
	const struct pl_op_sink *sink, struct pl_diag *diag);
/* Drops everything that is held: flush before. NULL is fine. */
void pl_translator_free(struct pl_translator *t);

/* Bytes of memory of the translator, which do not grow. */
uint64_t pl_translator_memory(const struct pl_translator *t);

/*
 * Takes a datagram of any bytes from the DTA port. `now_ns` never goes back; any clock. Operations
 * are given to the sink PL_OPS_MAX at a time, the last ones by pl_translator_done.
 */
void pl_translator_push(struct pl_translator *t, uint64_t now_ns, const struct pl_addr *from,
	uint16_t from_port, const void *bytes, size_t n);
void pl_translator_done(struct pl_translator *t);

/* As pl_translator_push for a packet of a port: a datagram, or a frame with one in it. Returns
 * false when the packet has no datagram, or not all of it. */
bool pl_translator_packet(struct pl_translator *t, uint64_t now_ns, const struct pl_packet *packet);

/* Takes a report of this process: no access list, no sequence, no reporter's quota. Returns true
 * when it was accepted. */
bool pl_translator_report(
	struct pl_translator *t, uint64_t now_ns, const struct pl_dta_report *report);

/* Writes everything that has waited long enough. */
void pl_translator_tick(struct pl_translator *t, uint64_t now_ns);

/* Time at which the next tick has something to do; UINT64_MAX: nothing is held. */
uint64_t pl_translator_due_ns(const struct pl_translator *t);

/* Writes everything that is held, except incomplete sketches: at the end, or before the memory gets
 * another owner. */
void pl_translator_flush(struct pl_translator *t, uint64_t now_ns);

enum pl_collector_state {
	PL_COLLECTOR_UP,
	/* its reports are refused as congested; reports held already are written */
	PL_COLLECTOR_BUSY,
	/* its keys and lists go to the other collectors; theirs stay where they are */
	PL_COLLECTOR_DOWN,
};

/* Sets the state of a collector; all begin as UP. A sketch that moves, or whose collector was down,
 * is written again from its first column. */
void pl_translator_set_collector(
	struct pl_translator *t, unsigned int collector, enum pl_collector_state state);

/* Sets the number of entries that a list of a collector has published already: before its first
 * report after a restart of this process, and before a collector that was down is up again. Returns
 * -EINVAL when there is no such list. */
int pl_translator_resume_list(struct pl_translator *t, unsigned int collector, unsigned int store,
	uint32_t list, uint64_t head);

/* Counters, updated by every call; valid while the translator is. */
const struct pl_translator_counters *pl_translator_counters(const struct pl_translator *t);

/* Reports held at present, without operations yet. */
struct pl_translator_held {
	uint64_t entries, increments, postcards;
};
struct pl_translator_held pl_translator_held(const struct pl_translator *t);

/*
 * Chooses the collector of a key of a store, of n: the one with the highest mix of key and number
 * among those that are up (rendezvous hashing), so that a collector that goes down moves only its
 * own keys. `key_hash` is struct pl_key's h, for lists the list's number, for sketches 0. Bit c of
 * `up` is collector c. Returns -1 when none is up.
 */
int pl_collector_choose(unsigned int store, uint64_t key_hash, uint64_t up, unsigned int n);
