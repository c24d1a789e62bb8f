/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a tap's records go. An output is one file with one `struct pl_tap_out_driver`, listed in
 * tap_out.c, and chosen by the scheme of its URI:
 *
 *   udp://HOST:PORT[?records=N&kind=KIND&lanes=N&sndbuf=SIZE&clock=yes]
 *                                                                    tmpkt/1 datagrams
 *   kafka://HOST[:PORT],…/TOPIC[?kind=KIND&records=N&format=rowbinary|json
 *     &spool=FOLDER&spool_bytes=SIZE&…]                              messages (kafka/uri.h)
 *   clickhouse://HOST[:PORT]/TABLE[?kind=KIND&…]              rows (tap_clickhouse.c)
 *   influx://HOST[:PORT]/DATABASE[?kind=KIND&…]              points (tap_influx.c)
 *   region:PATH[?kind=KIND&entries=N&lists=N]                   lists (memory/append.h)
 *   ipfix://HOST[:PORT][?transport=udp|tcp&biflow=yes&time=ms|us|ns&pen=N]
 *                                                                    flows (ipfix/writer.h)
 *   jsonl:PATH[?max_bytes=SIZE&keep=N]                    an object each (export/jsonl.h)
 *   file:PATH[?kind=KIND&header=yes]                      records one behind the other
 *
 * KIND is pkt64 (default but of udp) or pkt96 of packets, flow128 (default) or flow288 of flows.
 *
 * An output never waits for its receiver: what cannot be given away is counted by cause, and what
 * it got is what it delivered, what it counted, and what still waits.
 */
#pragma once

#include "base/clock_kind.h"
#include "base/condition.h"
#include "base/diag.h"
#include "base/stats.h"
#include "record/packet.h"
#include "runtime/confine.h"

struct pl_tap_out;

struct pl_tap_out_settings {
	enum pl_flat_kind kind; /* of the records that are put: PKT96, FLOW288 or DNS64 */
	uint32_t exporter;
	bool directed; /* every packet comes with the direction of its hook (PL_OBS_OUT) */
};

/* Numbers of an output: its own, and such as a client library tells of itself. */
struct pl_tap_out_numbers {
	const struct pl_stats *stats;
	const void *(*counters)(const struct pl_tap_out *out); /* NULL: this output has none */
};

#define PL_TAP_OUT_NUMBERS 3

struct pl_tap_out_driver {
	const char *scheme;
	/* NULL: nothing has to be done before rights are given up. */
	int (*files)(const char *target, struct pl_confine *confine);
	/* Reads the URI's part behind "SCHEME:" without touching the system. -EINVAL with diag;
	 * -ENOMEM. */
	int (*check)(const char *target, const struct pl_tap_out_settings *settings,
		struct pl_diag *diag);
	/* Takes the URI's part behind "SCHEME:", which was checked. -EINVAL, or the system's errno, with diag. */
	int (*open)(struct pl_tap_out **ret, const char *target,
		const struct pl_tap_out_settings *settings, struct pl_diag *diag);
	/* Which clock the times of records are of that are put from now on; NULL: there is no place
	 * to say it. */
	void (*clock)(struct pl_tap_out *out, enum pl_clock_kind clock);
	/* Of the kind of the settings. */
	void (*put)(struct pl_tap_out *out, const void *records, uint32_t n);
	/* Gives away what has waited long enough. When it is to be called next; UINT64_MAX: no
	 * need. */
	uint64_t (*turn)(struct pl_tap_out *out, uint64_t now_ns);
	void (*finish)(struct pl_tap_out *out);         /* gives away, or counts, all that waits */
	uint64_t (*lost)(const struct pl_tap_out *out); /* records that were not given away */
	/* What is wrong with it now, besides losses; tap: whose it is. NULL: nothing that it knows
	 * of. */
	void (*conditions)(
		const struct pl_tap_out *out, const char *tap, struct pl_conditions *ret);
	struct pl_tap_out_numbers numbers[PL_TAP_OUT_NUMBERS]; /* those behind the last are zero */
	void (*close)(struct pl_tap_out *out);
};

/* Stands first in the structure of its driver. */
struct pl_tap_out {
	const struct pl_tap_out_driver *driver;
	char *name; /* its URI without keys, which may be secret */
};

/* Whether the URI is that of an output, without touching the system: a configuration is checked by
 * it, and opening begins with it. -EINVAL with diag, which names what there is; -ENOTSUP: not in
 * this build. */
int pl_tap_out_check(
	const char *uri, const struct pl_tap_out_settings *settings, struct pl_diag *diag);

/* As pl_tap_out_check, or what opening gives. */
int pl_tap_out_open(struct pl_tap_out **ret, const char *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag);
int pl_tap_out_files(const char *uri, struct pl_confine *confine);
void pl_tap_out_close(struct pl_tap_out *out); /* NULL is allowed */

/* What goes out: of packets and flows what `name`, of the URI's key "kind", says, PL_FLAT_PKT64 or
 * PL_FLAT_FLOW128 (NULL) or what is put, PL_FLAT_PKT96 or PL_FLAT_FLOW288; of others what is put. */
int pl_tap_out_kind(const char *name, const struct pl_tap_out_settings *settings,
	enum pl_flat_kind *ret, struct pl_diag *diag);

/* All that there are. */
unsigned int pl_tap_out_drivers(const struct pl_tap_out_driver *const **ret);

extern const struct pl_tap_out_driver pl_tap_out_udp, pl_tap_out_file, pl_tap_out_region,
	pl_tap_out_clickhouse, pl_tap_out_dta, pl_tap_out_influx, pl_tap_out_jsonl;
#if PL_HAVE_KAFKA
extern const struct pl_tap_out_driver pl_tap_out_kafka;
#endif
#if PL_HAVE_IPFIX
extern const struct pl_tap_out_driver pl_tap_out_ipfix;
#endif
