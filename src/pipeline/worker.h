/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker has one port (or another source of records), one thread, and everything that its packets
 * pass: decoder, aggregates, detector, the taps of the outputs. On the packet path it shares
 * nothing with other threads. Between batches, at its quiet point, it checks for requests:
 *
 * a snapshot it copies its state to `filling`, which becomes `snap` for the reader
 * new parts it exchanges its engine's parts and returns the old ones
 * a stop it drains its socket and ends
 *
 * A port waits for its interface itself (netio/port.h); a broken socket is closed and opened again
 * with growing pauses, for as long as it takes. Loss and return are logged once each. Meanwhile
 * quiet points continue, so that readers get answers and a reload finds its worker. A capture file
 * ends when it is read.
 *
 * One thread at a time controls a worker (the pipeline's lock ensures that).
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
#include "netio/floods.h"
#include "pipeline/output.h"
#include "record/path_book.h"

/* Parts that a batch goes through. NULL in a new engine: taken over from the old one. */
struct pl_engine {
	struct pl_decode *decode;
	struct pl_advise *advise; /* exchanged together with decode */
	struct pl_aggregate *aggregate;
	struct pl_aggregate *aggregate_copy; /* for readers; with the options of `aggregate` */
	struct pl_detect *detect;
	/* Without a new detector: rules for the old one, which keeps its state; NULL: its rules
	 * stay. */
	struct pl_detect_options *rules;
	struct pl_core_units units; /* of occupancies; never taken over, as taps */
	struct pl_tap **taps;       /* never taken over: those of the new engine apply */
	unsigned int n_taps;
};

#define PL_TOTALS_VERSIONS 5 /* no report, enum pl_report_version, settled elsewhere */
#define PL_TOTALS_SETTLED  4

/* Plain sums of a single quiet point, so that the accounts agree. */
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
	struct pl_exporter *exporters; /* the first that appeared, n_exporters of cap */
	uint32_t n_exporters, cap_exporters;
	struct pl_exporter others; /* sum of the rest */
	uint32_t n_others;
	uint32_t flows, raised;
	struct pl_agg_totals aggregate;
	/* The flows with most packets: only when requested (top_wanted), because that reads the
	 * whole table; else those of the last request. */
	struct pl_flow_seen top[PL_TOP_FLOWS];
	uint32_t n_top;
	bool has_top;    /* this snapshot has them */
	uint64_t top_ns; /* time to compare their times with */
};

/* Further functions of a source that gives packets; called on the worker's thread unless noted. */
struct pl_worker_aside {
	/* Called before each receive; its events go to the outputs. */
	void (*work)(void *arg, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);
	/* As pl_port_recv, instead of a port; NULL: the worker has one. *ret_settled: the batch was
	 * counted and detected already, and only goes to the outputs. */
	int (*receive)(void *arg, struct pl_batch *ret, int timeout_ms, bool *ret_settled);
	/* Ends all events that the source itself has begun: it is removed. Called by the controller,
	 * after the thread has ended. */
	void (*end)(void *arg, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);
	/* Detects reports of the last batch where others of the same network are detected; NULL:
	 * the worker does. */
	void (*detect)(void *arg, const struct pl_record_batch *batch, struct pl_event_batch *out);
	/* Counts numbers of reports read by the decoder, and returns whether their exporter is
	 * proven; NULL: the decoder does. */
	bool (*number)(void *arg, const struct pl_core_numbered *n, uint64_t ts_ns);
	/* At a quiet point: adds totals of what was read and detected elsewhere. */
	void (*totals)(void *arg, struct pl_totals *totals);
	/* At a quiet point, and about once a second: adds to the aggregates what was measured
	 * elsewhere since then. */
	void (*harvest)(void *arg, struct pl_aggregate *into, uint64_t now_ns, uint64_t ts_ns);
	/* At a quiet point, after totals: adds raised levels, flows, and the counts of a port, for
	 * a source without one; if `top`, also the flows with most packets. */
	void (*state)(void *arg, struct pl_snapshot *snap, bool top);
	/* Finds the nodes of a path tracked elsewhere; returns false when it is unknown. */
	bool (*path)(void *arg, uint64_t path_id, struct pl_path_nodes *ret);
	/* Iterates over exporters that the source itself tracks; start with *pos = 0, returns false
	 * at the end. */
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

/* A source that gives records instead of packets; called on the worker's thread unless noted. */
struct pl_worker_feed {
	/* Does a bounded piece of work and puts its finds into the batches, which are flushed when
	 * full. final: nothing more will come, so take all. Returns whether more is there at
	 * once. */
	bool (*take)(void *arg, uint64_t now_ns, uint64_t ts_ns, bool final,
		struct pl_record_batch *paths, struct pl_event_batch *events,
		struct pl_value_batch *values);
	/* Waits until there may be more, at most limit_ns. */
	void (*wait)(void *arg, uint64_t limit_ns);
	/* Returns the errno for which it cannot work, with the reason in dst; 0: it can. */
	int (*trouble)(void *arg, char *dst, size_t cap);
	/* At a quiet point: adds events that it made itself. */
	void (*totals)(void *arg, struct pl_totals *totals);
	void *arg; /* lives as long as the worker */
};

/* Source of a worker's packets. */
struct pl_worker_source {
	const char *name;               /* URI of the source as configured */
	const char *uri;                /* URI to open */
	unsigned int index, of;         /* number of the socket or queue, and their count */
	struct pl_port *with;           /* the source's first port; for the first opening only */
	bool v6only;                    /* another source receives IPv4 (pl_port_uri_v6only) */
	const struct pl_rights *rights; /* NULL: this process's own */
	const struct pl_xdp_program *program; /* NULL: the port's own */
	const struct pl_worker_aside *aside;  /* NULL: none; lives as long as the worker */
	/* gets a part of its exporters' reports: their numbers are tracked elsewhere */
	bool partial;
	/* reports are detected elsewhere: here they only become records and aggregates */
	bool detected_elsewhere;
	/* NULL: packets come by a port */
	const struct pl_worker_feed *feed;
	/* NULL: pl_port_open. Called by the worker's thread when the source comes back. -EPERM and
	 * -EACCES then mean that it cannot come back before a restart. */
	int (*open)(void *arg, const struct pl_worker_source *source, struct pl_port **ret,
		struct pl_diag *diag);
	void *open_arg;
};

#define PL_WORKER_ADVICES     4
#define PL_WORKER_ADVICE_TEXT 320

struct pl_worker {
	char *uri;              /* of its source, as configured */
	char *name;             /* of its port, when first opened */
	uint16_t local_port;    /* likewise */
	unsigned int index, of; /* number of the socket, and their count */
	unsigned int id;        /* in report ids */
	int cpu;                /* to pin to; -1: none */
	struct pl_worker_source source;
	struct pl_port *port;         /* the thread's; NULL while the source is lost */
	struct pl_port_reader reader; /* packets are settled when all taps are */
	_Atomic bool
		unsettled; /* taps were closed whose outputs have not ended: nothing is settled */
	pthread_t thread;
	bool started;

	struct pl_engine *engine; /* the thread's, once started */
	struct pl_record_batch batch;
	struct pl_event_batch events;
	struct pl_event event_room[256];
	struct pl_value_batch values;
	struct pl_value value_room[256];
	struct pl_batch packets, part; /* part: what pl_worker_replay decodes at a time */
	struct pl_totals carried;      /* of parts that were exchanged */
	uint64_t stored, by_version[PL_TOTALS_VERSIONS], by_mode[PL_MODE_MAX];
	bool replays; /* the source is a capture file (worker_time.c) */
	bool begun;   /* it had packets */
	/* The host's clocks, monotonic and real; the same for detection. */
	uint64_t now_ns, ts_ns, rule_ns, rule_ts_ns;
	uint64_t looked_ns, ticked_ns,
		slow_ticked_ns;            /* of the first: now_ns; of the others: rule_ns */
	struct pl_port_stats gone;         /* of closed ports */
	struct pl_floods_told floods_told; /* of the present port */
	bool settled;                      /* the present batch is settled */
	uint64_t lost_ns, retry_ns, pause_ns;

	/* Requests of the controller, answered by the thread. */
	_Atomic uint64_t snap_wanted, snap_done;
	_Atomic bool top_wanted;    /* for the next snapshot */
	struct pl_snapshot filling; /* the thread's while wanted != done */
	struct pl_snapshot snap;    /* the controller's: the last one taken */
	_Atomic(struct pl_engine *) next_engine, old_engine;
	_Atomic uint64_t
		stop_by_ns; /* 0: run; else empty the socket until then (monotonic) and end */
	_Atomic bool ended; /* set at the end of the thread; the state is the controller's then */

	/* number of reports of untracked exporters at the last check */
	uint64_t untracked;
	_Atomic uint64_t untracked_ns; /* time of the last new ones (monotonic); 0: never */

	_Atomic int error; /* errno for which the source is lost; 0: it works */
	_Atomic uint64_t losses;
	pthread_mutex_t trouble_lock;
	char trouble[256]; /* under trouble_lock: the reason in words */
	/* under trouble_lock: profiles that would decode packets which now fail */
	char advices[PL_WORKER_ADVICES][PL_WORKER_ADVICE_TEXT];
	unsigned int n_advices;
};

/* Opens the source's port; texts are copied. Returns negative errno with diag. */
int pl_worker_new(struct pl_worker **ret, const struct pl_worker_source *source, unsigned int id,
	uint32_t cap_exporters, struct pl_diag *diag);
/* Starts the thread. Takes the engine over. */
int pl_worker_start(struct pl_worker *worker, struct pl_engine *engine);

/* Returns 0 while its source is open (or was a file, read to its end), else the errno, with the
 * reason in dst. Any thread. */
int pl_worker_trouble(struct pl_worker *worker, char *dst, size_t cap);

/* Returns whether reports of untracked exporters, for which there is no room, came within that
 * time: their losses are unknown. Any thread. */
bool pl_worker_untracked(struct pl_worker *worker, uint64_t now_ns, uint64_t within_ns);

/* Copies the i-th profile that would decode an exporter's packets, in words; returns false after
 * the last. Any thread. */
bool pl_worker_advice(struct pl_worker *worker, unsigned int i, char *dst, size_t cap);

void pl_worker_stop_by(struct pl_worker *worker, uint64_t deadline_ns);
void pl_worker_join(struct pl_worker *worker);
/* Ends the events of a joined worker whose source is removed, also when it ended long ago. */
void pl_worker_end_events(struct pl_worker *worker);
void pl_worker_free(struct pl_worker *worker);

/* Request a snapshot at the next quiet point, unless one is pending; check whether it is there; and
 * make it `snap`, until the next one. None waits. Only for workers that were started. */
void pl_worker_ask(struct pl_worker *worker);
bool pl_worker_answered(struct pl_worker *worker);
void pl_worker_take(struct pl_worker *worker);

/* Exchanges parts; returns when the worker uses the new ones, with the old ones in *ret_old. */
void pl_worker_exchange(
	struct pl_worker *worker, struct pl_engine *next, struct pl_engine **ret_old);

void pl_engine_free(struct pl_engine *engine);

/* Memory of one worker without its decoder, aggregates, detector and taps, in bytes. */
uint64_t pl_worker_memory(uint32_t cap_exporters);
