/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker: one port (or another source of records), one thread, and everything its packets go through: decoder, aggregates,
 * detector, the taps of the outputs. It shares nothing on the packet path. Between batches, at its
 * quiet point, it looks whether somebody wants something of it:
 *
 *   a snapshot   it copies its state into `snap`, which the one who asked reads afterwards
 *   new parts    it exchanges its engine's parts and hands back the old ones
 *   a stop       it empties its socket and ends
 *
 * A port waits for its interface itself (netio/port.h); a socket that breaks is closed and opened
 * again with growing pauses, for as long as it takes. The loss and the return are each said once.
 * Meanwhile quiet points go on, so that readers are answered and a reload finds its worker. A
 * capture file ends when it is read.
 *
 * A worker is controlled by one thread at a time (the pipeline's lock sees to it).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "decode/advise.h"
#include "decode/decode.h"
#include "detect/aggregate.h"
#include "detect/events.h"
#include "netio/port.h"
#include "pipeline/output.h"
#include "record/path_book.h"

/* The parts that a batch goes through. What is NULL in a new engine is taken over from the old. */
struct pl_engine {
	struct pl_decode *decode;
	struct pl_advise *advise; /* comes and goes with decode */
	struct pl_aggregate *aggregate;
	struct pl_aggregate *aggregate_copy; /* for readers; always of the same options */
	struct pl_detect *detect;
	/* Without a new detector: rules for the old one, which keeps what it knows; NULL: it goes
	 * on as it was. */
	struct pl_detect_options *rules;
	struct pl_core_units units; /* of occupancies; always what is to be, as taps */
	struct pl_tap **taps;       /* never taken over: always what is to be */
	unsigned int n_taps;
};

#define PL_TOTALS_VERSIONS 5 /* no report, those of enum pl_report_version, settled elsewhere */
#define PL_TOTALS_SETTLED  4

/* Plain sums, as they were at one quiet point: they balance. */
struct pl_totals {
#define PL_STAT PL_STAT_MEMBER
#include "decode/counters.def"
#include "pipeline/totals.def"
#undef PL_STAT
	uint64_t verdicts[PL_V_MAX];
	uint64_t notes[PL_N_MAX];
	uint64_t events[PL_EVENT_KIND_MAX], events_limited[PL_EVENT_KIND_MAX];
	uint64_t by_version[PL_TOTALS_VERSIONS];
	uint64_t by_mode[PL_MODE_MAX];
};
extern const struct pl_stats pl_totals_stats;
void pl_totals_add(struct pl_totals *into, const struct pl_totals *from);
void pl_totals_flow_numbers(struct pl_totals *into, const struct pl_flow_number_counters *from);

#define PL_TOP_FLOWS 256

struct pl_snapshot {
	struct pl_totals totals;
	struct pl_port_stats port;
	struct pl_port_flood floods[PL_PORT_FLOODS];
	uint32_t n_floods;
	struct pl_exporter *exporters; /* the first ones that appeared, n_exporters of cap */
	uint32_t n_exporters, cap_exporters;
	struct pl_exporter others; /* sum of the rest */
	uint32_t n_others;
	uint32_t flows, raised;
	struct pl_agg_totals aggregate;
	/* The flows with most packets: only when asked for (top_wanted), because their table is
	 * read whole; else those of the last time that they were. */
	struct pl_flow_seen top[PL_TOP_FLOWS];
	uint32_t n_top;
	bool has_top;    /* it was asked for this time */
	uint64_t top_ns; /* their times are against this */
};

/* What a source does beside giving packets; all on the worker's thread. */
struct pl_worker_aside {
	/* Before each look for packets; its events go to the outputs. */
	void (*work)(void *arg, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);
	/* As pl_port_recv, instead of a port; NULL: the worker has one. *ret_settled: the batch was
	 * accounted for and detected already, and goes to the outputs only. */
	int (*receive)(void *arg, struct pl_batch *ret, int timeout_ms, bool *ret_settled);
	/* Detects reports of the batch just received, where others of the same network are
	 * detected; NULL: the worker does. */
	void (*detect)(void *arg, const struct pl_record_batch *batch, struct pl_event_batch *out);
	/* Counts the numbers of reports that the decoder reads, and says whether their exporter is
	 * proven; NULL: the decoder does. */
	bool (*number)(void *arg, const struct pl_core_numbered *n, uint64_t ts_ns);
	/* At a quiet point: adds what was read and detected elsewhere. */
	void (*totals)(void *arg, struct pl_totals *totals);
	/* At a quiet point, and about once a second: adds to the aggregates what was measured
	 * elsewhere since. */
	void (*harvest)(void *arg, struct pl_aggregate *into, uint64_t now_ns, uint64_t ts_ns);
	/* At a quiet point, after totals: adds levels raised, flows, and what a port would have
	 * counted; with `top` the flows with most packets. */
	void (*state)(void *arg, struct pl_snapshot *snap, bool top);
	/* The nodes of a path followed elsewhere; false when it is not known there. */
	bool (*path)(void *arg, uint64_t path_id, struct pl_path_nodes *ret);
	/* Exporters followed elsewhere; start with *pos = 0, false at the end. */
	bool (*exporter)(void *arg, uint64_t *pos, struct pl_exporter *ret);
	void (*close)(void *arg); /* with the worker; NULL: nothing */
	const char *name;         /* the worker's; NULL: its port's */
	void *arg;
};

struct pl_value_batch {
	struct pl_value *values;
	uint32_t n, cap;
	void (*flush)(struct pl_value_batch *batch, void *arg); /* must empty the batch */
	void *flush_arg;
};

/* A source that gives records instead of packets; all on the worker's thread but where it is
 * said. */
struct pl_worker_feed {
	/* A bounded piece of work; what it finds goes into the batches, which are flushed when they
	 * are full. final: nothing will come any more, all there is is wanted. Whether there is
	 * more at once. */
	bool (*take)(void *arg, uint64_t now_ns, uint64_t ts_ns, bool final,
		struct pl_record_batch *paths, struct pl_event_batch *events,
		struct pl_value_batch *values);
	/* Until there may be more, at most so long. */
	void (*wait)(void *arg, uint64_t limit_ns);
	/* Why it cannot give what it is there for: errno with the words in dst; 0: it can. */
	int (*trouble)(void *arg, char *dst, size_t cap);
	/* At a quiet point: adds the events that it made itself. */
	void (*totals)(void *arg, struct pl_totals *totals);
	void *arg; /* lives as long as the worker */
};

/* Where a worker's packets come from. */
struct pl_worker_source {
	const char *name;               /* the source's URI as configured */
	const char *uri;                /* what is opened */
	unsigned int index, of;         /* which socket or queue of the source */
	struct pl_port *with;           /* the source's first port; at the first opening only */
	bool v6only;                    /* another source receives IPv4 (pl_port_uri_v6only) */
	const struct pl_rights *rights; /* NULL: this process's own */
	const struct pl_xdp_program *program; /* NULL: the port's own */
	const struct pl_worker_aside *aside;  /* NULL: nothing; lives as long as the worker */
	/* it gets a part of its exporters' reports: their numbers are another's to follow */
	bool partial;
	/* as are the events of reports: only records and aggregates are made of these */
	bool detected_elsewhere;
	/* NULL: packets come, by a port */
	const struct pl_worker_feed *feed;
	/* NULL: pl_port_open. Called by the worker's thread when the source comes back. -EPERM and
	 * -EACCES there mean that it cannot come back before a restart. */
	int (*open)(void *arg, const struct pl_worker_source *source, struct pl_port **ret,
		struct pl_diag *diag);
	void *open_arg;
};

#define PL_WORKER_ADVICES     4
#define PL_WORKER_ADVICE_TEXT 320

struct pl_worker {
	char *uri;              /* of its source, as configured */
	char *name;             /* of its port, as it was first opened */
	uint16_t local_port;    /* likewise */
	unsigned int index, of; /* which socket of its source */
	unsigned int id;        /* in report ids */
	int cpu;                /* to pin to, -1 = none */
	struct pl_worker_source source;
	struct pl_port *port;         /* the thread's; NULL while the source is lost */
	struct pl_port_reader reader; /* what its packets become is settled as the taps say */
	_Atomic bool
		unsettled; /* taps were closed whose outputs have not ended: nothing is settled */
	pthread_t thread;
	bool started;

	struct pl_engine *engine; /* the thread's own once started */
	struct pl_record_batch batch;
	struct pl_event_batch events;
	struct pl_event event_room[256];
	struct pl_value_batch values;
	struct pl_value value_room[256];
	struct pl_batch packets, part; /* of packets, what pl_worker_replay gives to the decoder */
	struct pl_totals carried;      /* of parts that were exchanged */
	uint64_t stored, by_version[PL_TOTALS_VERSIONS], by_mode[PL_MODE_MAX];
	bool replays; /* the source is a capture file (worker_time.c) */
	bool begun;   /* it had packets */
	/* The machine's clocks, monotonic and real; and the same for the rules. */
	uint64_t now_ns, ts_ns, rule_ns, rule_ts_ns;
	uint64_t looked_ns, ticked_ns,
		slow_ticked_ns;    /* of the first: now_ns; of the others: rule_ns */
	struct pl_port_stats gone; /* of ports that were closed */
	uint64_t floods_told
		[PL_PORT_FLOODS]; /* what each said last, by its time; of the present port */
	int lane_error_told;
	bool settled; /* the present batch */
	uint64_t lost_ns, retry_ns, pause_ns;

	/* Asked by the controller, answered by the thread. */
	_Atomic uint64_t snap_wanted, snap_done;
	_Atomic bool top_wanted;    /* by the next snapshot */
	struct pl_snapshot filling; /* the thread's while wanted != done */
	struct pl_snapshot snap;    /* the controller's: what was taken last */
	_Atomic(struct pl_engine *) next_engine, old_engine;
	_Atomic uint64_t
		stop_by_ns; /* 0 = run; else empty the socket until then (monotonic) and end */
	_Atomic bool ended; /* the thread's last word; all is the controller's now */

	/* reports of exporters that are not followed, when it was looked last */
	uint64_t untracked;
	_Atomic uint64_t untracked_ns; /* when there were new ones last (monotonic); 0: never */

	_Atomic int error; /* errno for which the source is lost; 0 while all is well */
	_Atomic uint64_t losses;
	pthread_mutex_t trouble_lock;
	char trouble[256]; /* under trouble_lock: why, in words */
	/* under trouble_lock: profiles that would decode what does not */
	char advices[PL_WORKER_ADVICES][PL_WORKER_ADVICE_TEXT];
	unsigned int n_advices;
};

/* Opens the source's port; texts are copied. When it cannot: negative errno with diag. */
int pl_worker_new(struct pl_worker **ret, const struct pl_worker_source *source, unsigned int id,
	uint32_t cap_exporters, struct pl_diag *diag);
/* Takes the engine over. */
int pl_worker_start(struct pl_worker *worker, struct pl_engine *engine);

/* 0 while its source is open (or was a file, read to its end), else the errno for which it is not,
 * with the words in dst. Any thread. */
int pl_worker_trouble(struct pl_worker *worker, char *dst, size_t cap);

/* Whether reports of exporters came within that time which are not followed, for there is no room
 * for them: what is lost of them is not known. Any thread. */
bool pl_worker_untracked(struct pl_worker *worker, uint64_t now_ns, uint64_t within_ns);

/* The i-th profile that would decode what an exporter sends, in words; false: there are no more.
 * Any thread. */
bool pl_worker_advice(struct pl_worker *worker, unsigned int i, char *dst, size_t cap);

void pl_worker_stop_by(struct pl_worker *worker, uint64_t deadline_ns);
void pl_worker_join(struct pl_worker *worker);
void pl_worker_free(struct pl_worker *worker);

/* Asks for a fresh snapshot at the next quiet point, unless one is asked for; answered says whether
 * it is there, take makes it `snap` once it is, and until the next one. Without waiting. Only of a
 * worker that was started. */
void pl_worker_ask(struct pl_worker *worker);
bool pl_worker_answered(struct pl_worker *worker);
void pl_worker_take(struct pl_worker *worker);
/* Looks for it every 0.2 ms and takes it. Patience is counted in looks, each taken from *looks, and
 * not in time: a machine that stood still (a guest that was paused) says nothing about the worker,
 * and afterwards both go on together. 0, -ETIMEDOUT when none is left. */
int pl_worker_await(struct pl_worker *worker, unsigned int *looks);

/* Hands over new parts; returns when the worker uses them, with what they replaced in *ret_old. */
void pl_worker_exchange(
	struct pl_worker *worker, struct pl_engine *next, struct pl_engine **ret_old);

void pl_engine_free(struct pl_engine *engine);

/* Bytes of one worker beside its decoder, aggregates, detector and taps. */
uint64_t pl_worker_memory(uint32_t cap_exporters);
