/* SPDX-License-Identifier: BSD-2-Clause */
/* Common part of outputs that are exporters (export/exporter.h). */
#pragma once

#include "export/clickhouse.h"
#include "export/exporter.h"
#include "export/influx.h"
#include "export/sender.h"
#include "netio/uri.h"
#include "tapout/tap_out.h"

#define PL_TAP_EXPORT ""
#define PL_TAP_EXPORT_SERVER
struct pl_tap_export_stats {
#define PL_STAT PL_STAT_MEMBER
#include "tapout/tap_export_stats.def"
#undef PL_STAT
};
#undef PL_TAP_EXPORT
#undef PL_TAP_EXPORT_SERVER

struct pl_tap_export {
	struct pl_tap_out out; /* first */
	struct pl_export *export;
	enum pl_flat_kind kind; /* of records sent, the first bytes of those put */
	uint32_t given;         /* bytes of a record that is put */
	uint64_t now_ns;
	struct pl_tap_export_stats stats;
	struct pl_export_words told;
};

/* Begins an output, before its driver sets its kind and export. */
struct pl_tap_export *pl_tap_export_begin(
	struct pl_tap_out *out, const struct pl_tap_out_settings *settings);

/* Functions for the driver. */
void pl_tap_export_put(struct pl_tap_out *out, const void *records, uint32_t n);
uint64_t pl_tap_export_turn(struct pl_tap_out *out, uint64_t now_ns);
/* Sends records as long as the receiver takes them; the others go to the spool, or are dropped and
 * counted. */
void pl_tap_export_finish(struct pl_tap_out *out);
uint64_t pl_tap_export_lost(const struct pl_tap_out *out);
void pl_tap_export_conditions(
	const struct pl_tap_out *out, const char *tap, struct pl_conditions *ret);
const void *pl_tap_export_counters(const struct pl_tap_out *out);
void pl_tap_export_close(struct pl_tap_out *out);

/*
 * Reads the keys of the URI for requests; `who` begins the text of an error. batch: records of a
 * request without the key; ret->memory_bytes: likewise, 0 is 64 MiB. -EINVAL with diag.
 */
#define PL_TAP_EXPORT_KEYS                                                                         \
	"user", "password_file", "tls", "ca", "batch", "memory", "spool", "spool_bytes"
int pl_tap_export_keys(const struct pl_uri *uri, const char *who, uint64_t batch,
	struct pl_sender_options *ret, struct pl_diag *diag);
/* Sets the bytes of a request from its records and their size. */
void pl_tap_export_room(struct pl_sender_options *o, uint64_t record_bytes);

/*
 * Reads "//HOST[:PORT]/NAME" into the server's URL and the name, which may be empty. ports:
 * defaults of HTTP and HTTPS. -EINVAL with diag: another form, for which `form` is the text.
 */
int pl_tap_export_target(const struct pl_uri *uri, const char *const ports[2], const char *form,
	char *server, size_t cap, const char **ret_name, struct pl_diag *diag);

/* Read "//HOST[:PORT]/DATABASE?KEY=VALUE" of InfluxDB and "//HOST[:PORT]/TABLE?…" of ClickHouse,
 * but for the kind of records; server: room for the server's URL. -EINVAL with diag. */
int pl_tap_influx_uri(const struct pl_uri *uri, char *server, size_t cap,
	struct pl_influx_options *ret, struct pl_sender_options *sender, struct pl_diag *diag);
int pl_tap_clickhouse_uri(const struct pl_uri *uri, char *server, size_t cap,
	struct pl_clickhouse_options *ret, struct pl_diag *diag);

/* Lists the files that the keys name. */
int pl_tap_export_files(const struct pl_uri *uri, struct pl_confine *confine);
