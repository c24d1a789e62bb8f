/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outputs for a tap's records. An output is one file with one `struct pl_tap_out_driver`, listed in
 * tap_out.c, and chosen by the scheme of its URI:
 *
 *   udp://HOST:PORT[?records=N&kind=KIND&lanes=N&sndbuf=SIZE&clock=yes]
 *                                                       tmpkt/1 datagrams
 *   kafka://HOST[:PORT],…/TOPIC[?kind=KIND&records=N&format=rowbinary|protobuf|json|goflow2
 *     &spool=FOLDER&spool_bytes=SIZE&sampler=ADDRESS&…]  messages (kafka/uri.h)
 *   clickhouse://HOST[:PORT]/TABLE[?kind=KIND&…]        rows (tap_clickhouse.c)
 *   influx://HOST[:PORT]/DATABASE[?kind=KIND&…]         points (tap_influx.c)
 *   region:PATH[?kind=KIND&entries=N&lists=N]           entries of lists (memory/append.h)
 *   dta://ADDRESS[:PORT][?region=N&list=N&kind=KIND]    entries of remote lists (tap_dta.c)
 *   ipfix://HOST[:PORT][?transport=udp|tcp&biflow=yes&time=ms|us|ns&pen=N]
 *                                                       flows, or records of alternate marking
 *                                                       (ipfix/writer.h, ipfix/marks.h)
 *   jsonl:PATH[?max_bytes=SIZE&keep=N&community_id=yes] an object each (export/jsonl.h)
 *   file:PATH[?kind=KIND&header=yes|clock]              records one behind the other
 *
 * KIND is pkt64 (default but of udp) or pkt96 of packets, flow128 (default) or flow288 of flows.
 *
 * An output never waits for its receiver: records that cannot be sent are counted by cause. The
 * records it got are those it delivered, those it counted, and those that still wait.
 */
#pragma once

#include "base/clock_kind.h"
#include "base/condition.h"
#include "base/diag.h"
#include "base/stats.h"
#include "netio/uri.h"
#include "record/packet.h"
#include "runtime/confine.h"

struct pl_tap_out;

struct pl_tap_out_settings {
	enum pl_flat_kind kind; /* of the records that are put, in its long form */
	uint32_t exporter;
	bool directed; /* every packet has the direction of its hook (PL_OBS_OUT) */
};

/* Counters of an output: its own, or those of a client library. */
struct pl_tap_out_numbers {
	const struct pl_stats *stats;
	const void *(*counters)(const struct pl_tap_out *out); /* NULL: this output has none */
};

#define PL_TAP_OUT_NUMBERS 3

struct pl_tap_out_driver {
	const char *scheme;
	size_t size; /* of the driver's structure */
	const char *const
		*keys; /* of the URI; NULL: its whole part behind "SCHEME:" is the target */
	/* Lists the files that the output will open, before privileges are given up. NULL: there
	 * are none. */
	int (*files)(const struct pl_uri *uri, struct pl_confine *confine);
	/* Checks the URI without touching the system. -EINVAL with diag; -ENOMEM. */
	int (*check)(const struct pl_uri *uri, const struct pl_tap_out_settings *settings,
		struct pl_diag *diag);
	/* Opens an output from the checked URI, in zeroed memory. -EINVAL, or the system's errno,
	 * with diag: it is closed then. */
	int (*open)(struct pl_tap_out *out, const struct pl_uri *uri,
		const struct pl_tap_out_settings *settings, struct pl_diag *diag);
	/* Sets the clock of the times of records put from now on. NULL: the output has no place for
	 * it. */
	void (*clock)(struct pl_tap_out *out, enum pl_clock_kind clock);
	/* Takes records of the kind of the settings. */
	void (*put)(struct pl_tap_out *out, const void *records, uint32_t n);
	/* Sends records that have waited long enough. Returns the time of the next call;
	 * UINT64_MAX: none is needed. */
	uint64_t (*turn)(struct pl_tap_out *out, uint64_t now_ns);
	void (*finish)(struct pl_tap_out *out);         /* sends, or counts, all that waits */
	uint64_t (*lost)(const struct pl_tap_out *out); /* records that were not sent */
	/* Adds the output's present faults, besides losses; tap: name of its tap. NULL: the driver
	 * has no faults to report. */
	void (*conditions)(
		const struct pl_tap_out *out, const char *tap, struct pl_conditions *ret);
	struct pl_tap_out_numbers numbers[PL_TAP_OUT_NUMBERS]; /* zeros behind the last */
	void (*close)(struct pl_tap_out *out); /* also after open() failed; frees no `out` */
};

/* First member of the structure of its driver. */
struct pl_tap_out {
	const struct pl_tap_out_driver *driver;
	char *name; /* the URI without its keys, which may be secret */
};

/* Checks that the URI is one of an output, without touching the system; configurations are checked
 * by it, and opening begins with it. -EINVAL with diag, which names the outputs; -ENOTSUP: not in
 * this build. */
int pl_tap_out_check(
	const char *uri, const struct pl_tap_out_settings *settings, struct pl_diag *diag);

/* Opens an output. Returns as pl_tap_out_check, or the error of opening. */
int pl_tap_out_open(struct pl_tap_out **ret, const char *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag);
int pl_tap_out_files(const char *uri, struct pl_confine *confine);
void pl_tap_out_close(struct pl_tap_out *out); /* NULL is allowed */

/* ---- tap_out_keys.c ---- */

/* Finds the kind that is sent. Of packets and flows `name`, of the URI's key "kind", chooses the
 * short form (also NULL), PL_FLAT_PKT64 or PL_FLAT_FLOW128, or the long one that is put,
 * PL_FLAT_PKT96 or PL_FLAT_FLOW288. Records of other kinds are sent as they are put. -EINVAL with
 * diag. */
int pl_tap_out_kind(const char *name, const struct pl_tap_out_settings *settings,
	enum pl_flat_kind *ret, struct pl_diag *diag);

/* Reads the URI's key "community_id", of outputs that can add it to records of packets and flows.
 * value: of the key, or NULL. -EINVAL with diag. */
int pl_tap_out_community_id(const char *value, const struct pl_tap_out_settings *settings,
	bool *ret, struct pl_diag *diag);

/* Lists the drivers; returns their number. */
unsigned int pl_tap_out_drivers(const struct pl_tap_out_driver *const **ret);

extern const struct pl_tap_out_driver pl_tap_out_udp, pl_tap_out_file, pl_tap_out_region,
	pl_tap_out_clickhouse, pl_tap_out_dta, pl_tap_out_influx, pl_tap_out_jsonl;
#if PL_HAVE_KAFKA
extern const struct pl_tap_out_driver pl_tap_out_kafka;
#endif
#if PL_HAVE_IPFIX
extern const struct pl_tap_out_driver pl_tap_out_ipfix;
#endif
