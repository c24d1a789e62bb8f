/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of the configuration, and the checks of single values. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/privilege.h"
#include "export/remote_write.h"
#include "netio/port.h"
#include "pipeline/config.h"
#include "pipeline/config_words.h"
#include "pipeline/kind.h"
#include "record/where.h"

enum {
	MAX_SOURCES = 32,
	MAX_SOCKETS = 64,
	MAX_OUTPUTS = 16,
	MAX_PROFILES = 1024,
};

/* ---- checks of single values ---- */

static int check_source(const char *value, struct pl_diag *diag)
{
	/* A misspelt kind of port is not to pass for the name of a file. */
	if (pl_port_uri_scheme(value) == NULL && strstr(value, "://") == NULL) {
		pl_diag_set(diag,
			"\"%s\" names no kind of source; for a capture file write pcap:%s", value,
			value);
		return -EINVAL;
	}
	if (strcmp(value, "pcap:-") == 0) {
		pl_diag_set(
			diag, "standard input is no source of the daemon; use \"pathline read\"");
		return -EINVAL;
	}
	return pl_port_uri_sockets(value, diag) < 0 ? -EINVAL : 0;
}

static int check_prefix(const char *value, struct pl_diag *diag)
{
	struct pl_addr addr;
	unsigned int bits;

	if (pl_parse_prefix(value, &addr, &bits) == 0)
		return 0;
	pl_diag_set(diag, "\"%s\" is neither an address nor a prefix such as 10.0.0.0/8", value);
	return -EINVAL;
}

static int check_listen(const char *value, struct pl_diag *diag)
{
	struct pl_addr addr;
	uint16_t port;

	if (strcmp(value, "off") == 0 || pl_parse_endpoint(value, &addr, &port) == 0)
		return 0;
	pl_diag_set(diag, "\"%s\" is neither ADDRESS:PORT nor off", value);
	return -EINVAL;
}

static int check_where(const char *value, struct pl_diag *diag)
{
	struct pl_where *where;
	struct pl_diag inner = { .text = "" };
	int r = pl_where_new(&where, value, &inner);

	if (r == 0)
		pl_where_free(where);
	else
		pl_diag_set(
			diag, "in the expression at character %u: %s", inner.column, inner.text);
	return r;
}

/* "0x17" (the whole field) or "0x20/0x20" (value and mask) */
int pl_config_parse_dscp(const char *text, uint8_t *ret_value, uint8_t *ret_mask)
{
	char value[16];
	const char *slash = strchr(text, '/');
	size_t n = slash != NULL ? (size_t)(slash - text) : strlen(text);
	uint64_t v, m = 0x3f;

	if (n >= sizeof(value))
		return -EINVAL;
	memcpy(value, text, n);
	value[n] = '\0';
	if (pl_parse_u64(value, &v) < 0 || (slash != NULL && pl_parse_u64(slash + 1, &m) < 0))
		return -EINVAL;
	if (v > 0x3f || m > 0x3f || m == 0 || (v & ~m) != 0)
		return -EINVAL;
	*ret_value = (uint8_t)v;
	*ret_mask = (uint8_t)m;
	return 0;
}

static int check_dscp(const char *value, struct pl_diag *diag)
{
	uint8_t v, m;

	if (pl_config_parse_dscp(value, &v, &m) == 0)
		return 0;
	pl_diag_set(diag,
		"\"%s\" is neither a DSCP (0 to 63) nor VALUE/MASK with the value within the mask",
		value);
	return -EINVAL;
}

static int check_address(const char *value, struct pl_diag *diag)
{
	struct pl_addr addr;

	if (pl_parse_addr(value, &addr) == 0)
		return 0;
	pl_diag_set(diag, "\"%s\" is not an address", value);
	return -EINVAL;
}

/* The bit of a flag by its name; -1: there is none. */
int pl_config_flag_bit(const char *name)
{
	for (unsigned int bit = 0; bit < 16; bit++) {
		const char *known = pl_path_flag_name(bit);

		if (known != NULL && strcmp(known, name) == 0)
			return (int)bit;
	}
	return -1;
}

static int check_flag(const char *value, struct pl_diag *diag)
{
	if (pl_config_flag_bit(value) >= 0)
		return 0;
	pl_diag_set(diag, "\"%s\" is no flag of a report", value);
	return -EINVAL;
}

static int check_number(const char *value, struct pl_diag *diag)
{
	uint64_t v;

	if (pl_parse_u64(value, &v) == 0)
		return 0;
	pl_diag_set(diag, "\"%s\" is not a 64-bit number", value);
	return -EINVAL;
}

static int check_ioam_time(const char *value, struct pl_diag *diag)
{
	struct pl_ioam_namespace ns;

	if (pl_ioam_namespace_parse(&ns, value) == 0)
		return 0;
	pl_diag_set(diag,
		"\"%s\" is not NAMESPACE=posix, =ptp or =ntp with a namespace from 0 to 65535",
		value);
	return -EINVAL;
}

static int check_user(const char *value, struct pl_diag *diag)
{
	if (pl_privilege_user_exists(value))
		return 0;
	pl_diag_set(diag, "there is no user \"%s\"", value);
	return -EINVAL;
}

static int check_group(const char *value, struct pl_diag *diag)
{
	if (pl_privilege_group_exists(value))
		return 0;
	pl_diag_set(diag, "there is no group \"%s\"", value);
	return -EINVAL;
}

static int check_name(const char *value, struct pl_diag *diag)
{
	size_t n =
		strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

	if (strcmp(value, "live") == 0) {
		pl_diag_set(diag, "\"live\" is the name of what feeds pathline tail");
		return -EINVAL;
	}
	if (n > 0 && n <= 64 && value[n] == '\0')
		return 0;
	pl_diag_set(diag, "a name is of 1 to 64 letters, digits, '_', '-' and '.'");
	return -EINVAL;
}

/* ---- the table ---- */

static const char *const report_versions[] = { "auto", "0.5", "1.0", "2.0", NULL };
static const char *const dialects[] = { "spec", "intcollector", "geant", "noviflow", "host-int",
	"v0.4", NULL };
static const char *const webhook_forms[] = { "alertmanager", "receiver", NULL };
static const char *const admissions[] = { "proven", "first", NULL };
static const char *const bucket_factors[] = { "4", "2", "1.41", "1.19", NULL };
static const char *const queue_words[] = { "auto", "8+24", "16+16", NULL };
static const char *const placements[] = { "auto", "before-options", "after-options", NULL };
static const char *const units[] = { "ns", "us", NULL };
static const char *const embedded[] = { "auto", "announced", "never", NULL };
const char *const pl_config_output_types[] = {
#define PL_OUTPUT_KIND(ID, id) #id,
#include "pipeline/kinds.def"
#undef PL_OUTPUT_KIND
	NULL
};
/* The words of a boolean, and one more. */
static const char *const maybe[] = { "auto", "true", "false", "yes", "no", "on", "off", NULL };
static const char *const apis[] = { "v1", "v2", NULL };
static const char *const when_full[] = { "drop_oldest", "drop_newest", NULL };
static const char *const wheres[] = { "user", "kernel", "both", "auto", NULL };
static const char *const pins[] = { "false", "true", "auto", NULL };
static const char *const log_levels[] = { "error", "warning", "notice", "info", "debug", NULL };
static const char *const log_formats[] = { "auto", "text", "logfmt", "json", NULL };

/* clang-format off */
#define AT(member) .offset = offsetof(struct pl_config_source, member)
static const struct pl_conf_row source_rows[] = {
	{ .key = "uri", .type = PL_CONF_STRING, AT(uri), .required = true, .check = check_source,
	  .help = "Where reports come in: udp://HOST:PORT (without a host, every address), afxdp:INTERFACE, packet:INTERFACE, ioam6: (the IOAM traces that this kernel handles as a node), or pcap:FILE, which is read once, as fast as it can be decoded." },
	{ .key = "sockets", .type = PL_CONF_U64, AT(sockets), .def = "1", .min = 1, .max = MAX_SOCKETS,
	  .help = "udp: only: sockets that share the address, each with a worker of its own." },
	{ .key = "rcvbuf", .type = PL_CONF_SIZE, AT(rcvbuf_bytes), .def = "0", .min = 0, .max = UINT64_C(1) << 30,
	  .help = "udp: only: socket buffer to ask the kernel for; 0 leaves it to the port." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_config_profile, member)
static const struct pl_conf_row profile_rows[] = {
	{ .key = "match", .type = PL_CONF_STRING, AT(match), .required = true, .check = check_prefix,
	  .help = "Exporters it is for: an address or a prefix; the longest that matches wins." },
	{ .key = "report_version", .type = PL_CONF_CHOICE, AT(report_version), .def = "auto", .choices = report_versions,
	  .help = "Version of the telemetry reports, when their own word must not be believed." },
	{ .key = "dialect", .type = PL_CONF_CHOICE, AT(dialect), .def = "spec", .choices = dialects,
	  .help = "Reading of the INT header to prefer where several fit." },
	{ .key = "dialect_pinned", .type = PL_CONF_BOOL, AT(dialect_pinned), .def = "false",
	  .help = "Accept that dialect only." },
	{ .key = "queue_word", .type = PL_CONF_CHOICE, AT(queue_word), .def = "auto", .choices = queue_words,
	  .help = "Widths of queue id and occupancy." },
	{ .key = "tcp_placement", .type = PL_CONF_CHOICE, AT(tcp_placement), .def = "auto", .choices = placements,
	  .help = "Where INT stands in TCP: before or after the options." },
	{ .key = "timestamp_unit", .type = PL_CONF_CHOICE, AT(timestamp_unit), .def = "ns", .choices = units,
	  .help = "Unit of the hops' timestamps." },
	{ .key = "latency_unit", .type = PL_CONF_CHOICE, AT(latency_unit), .def = "ns", .choices = units,
	  .help = "Unit of the hops' latencies." },
	{ .key = "embedded", .type = PL_CONF_CHOICE, AT(embedded), .def = "auto", .choices = embedded,
	  .help = "INT in the packet inside a report: also found by its bytes, only when announced, never." },
	{ .key = "dscp", .type = PL_CONF_STRING, AT(dscp), .check = check_dscp,
	  .help = "DSCP that announces INT: VALUE or VALUE/MASK." },
	{ .key = "int_port", .type = PL_CONF_U64, AT(int_port), .def = "0", .min = 0, .max = 65535,
	  .help = "UDP destination port that announces INT; 0 is none." },
	{ .key = "marker", .type = PL_CONF_STRING, AT(marker), .check = check_number,
	  .help = "64-bit probe marker that announces INT." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_config_output, member)
static const struct pl_conf_row output_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .check = check_name,
	  .help = "What metrics call it; by default the kind and its place in the list." },
	{ .key = "type", .type = PL_CONF_CHOICE, AT(type), .def = "jsonl", .choices = pl_config_output_types,
	  .help = "Kind of output: jsonl is a file of JSON lines, influx an InfluxDB server, remote_write one that takes Prometheus remote write, webhook an Alertmanager or one that takes its webhooks (events), region a folder of regions that keeps what happened over restarts." },
	{ .key = "path", .type = PL_CONF_STRING, AT(path),
	  .help = "jsonl: the file. region: the folder, which is made if its own folder is there." },
	{ .key = "paths", .type = PL_CONF_CHOICE, AT(paths_word), .def = "auto", .choices = maybe,
	  .help = "Write reports: jsonl (auto is true) a path with its hops, influx (auto is false) a point per hop." },
	{ .key = "events", .type = PL_CONF_CHOICE, AT(events_word), .def = "auto", .choices = maybe,
	  .help = "Write events, where the kind of output can (auto)." },
	{ .key = "where", .type = PL_CONF_STRING, AT(where), .check = check_where,
	  .help = "Only reports that satisfy this expression (events are not filtered)." },
	{ .key = "rotate.size", .type = PL_CONF_SIZE, AT(rotate_size_bytes), .def = "256MiB", .min = 0, .max = UINT64_C(1) << 50,
	  .help = "Begin a new file before this size; 0 is never." },
	{ .key = "rotate.age", .type = PL_CONF_DURATION, AT(rotate_age_ns), .def = "0s",
	  .help = "Begin a new file at this age; 0 is never." },
	{ .key = "rotate.keep", .type = PL_CONF_U64, AT(rotate_keep), .def = "5", .min = 1, .max = 1000,
	  .help = "Old files kept." },
	{ .key = "keep.events", .type = PL_CONF_U64, AT(keep.events), .def = "65536", .min = 64, .max = UINT64_C(1) << 40,
	  .help = "region: events kept, 136 bytes each. All space is taken at the start." },
	{ .key = "keep.paths", .type = PL_CONF_U64, AT(keep.paths), .def = "131072", .min = 64, .max = UINT64_C(1) << 40,
	  .help = "region: reports kept, 144 bytes each." },
	{ .key = "keep.hops", .type = PL_CONF_U64, AT(keep.hops), .def = "655360", .min = 256, .max = UINT64_C(1) << 40,
	  .help = "region: hops kept, 136 bytes each; as many as the reports have, or old reports have none." },
	{ .key = "keep.flows", .type = PL_CONF_U64, AT(keep.flows), .def = "65536", .min = 0, .max = UINT64_C(1) << 40,
	  .help = "region: places for the last path of each flow, 960 bytes each, ten of them per flow; 0 is none." },
	{ .key = "keep.queues", .type = PL_CONF_U64, AT(keep.queues), .def = "65536", .min = 0, .max = UINT64_C(1) << 40,
	  .help = "region: places for the last hop of each node, port and queue, 192 bytes each, ten of them per key; 0 is none." },
	{ .key = "keep.drops", .type = PL_CONF_U64, AT(keep.drops), .def = "4096", .min = 0, .max = UINT64_C(1) << 32,
	  .help = "region: counters for dropped packets by node and reason, 32 bytes each; 0 is none." },
	{ .key = "keep.sync", .type = PL_CONF_DURATION, AT(keep.sync_ns), .def = "1s", .max = UINT64_C(3600000000000),
	  .help = "region: how often the disk gets what is new, which bounds what a power cut loses; 0s leaves it to the kernel." },
	{ .key = "queue", .type = PL_CONF_U64, AT(queue_records), .def = "65536", .min = 1024, .max = 1 << 24,
	  .help = "Records (reports, hops and events count one each) that may wait per worker; beyond, they are dropped and counted." },
	{ .key = "buffer", .type = PL_CONF_SIZE, AT(buffer_bytes), .def = "1MiB", .min = 1 << 19, .max = UINT64_C(1) << 30,
	  .help = "Text that may wait while the file cannot be written." },
	{ .key = "url", .type = PL_CONF_STRING, AT(url), .check = pl_curl_url_check,
	  .help = "Outputs to servers: http://HOST:PORT or https://HOST, without credentials; remote_write: with its path, mostly /api/v1/write." },
	{ .key = "api", .type = PL_CONF_CHOICE, AT(api), .def = "v1", .choices = apis,
	  .help = "influx: write interface; v1 has database and retention_policy, v2 org and bucket." },
	{ .key = "database", .type = PL_CONF_STRING, AT(database),
	  .help = "influx v1: the database. It must exist; nothing is ever made or dropped." },
	{ .key = "retention_policy", .type = PL_CONF_STRING, AT(retention_policy),
	  .help = "influx v1: the retention policy; without it, the database's own." },
	{ .key = "org", .type = PL_CONF_STRING, AT(org),
	  .help = "influx v2: the organization." },
	{ .key = "bucket", .type = PL_CONF_STRING, AT(bucket),
	  .help = "influx v2: the bucket. It must exist." },
	{ .key = "user", .type = PL_CONF_STRING, AT(user),
	  .help = "User name for basic authentication." },
	{ .key = "password_file", .type = PL_CONF_STRING, AT(password_file),
	  .help = "File that holds the password; read again when the server refuses it." },
	{ .key = "token_file", .type = PL_CONF_STRING, AT(token_file),
	  .help = "File that holds a token, instead of user and password." },
	{ .key = "gzip", .type = PL_CONF_BOOL, AT(gzip), .def = "true",
	  .help = "Compress what is sent." },
	{ .key = "interval", .type = PL_CONF_DURATION, AT(interval_ns), .def = "10s", .max = UINT64_C(86400000000000),
	  .help = "How often the state of queues, ports, links and paths is sent; 0s is never." },
	{ .key = "max_keys", .type = PL_CONF_U64, AT(max_keys), .def = "10000", .min = 100, .max = 1 << 24,
	  .help = "influx: distinct sets of tags written in a run; those beyond are written as other." },
	{ .key = "labels", .type = PL_CONF_STRINGS, AT(labels), .max = PL_REMOTE_LABELS_MAX, .check = pl_remote_label_check,
	  .help = "NAME=VALUE. remote_write: added to every series; without any, job=pathline and instance=HOST. webhook: added to every alert." },
	{ .key = "form", .type = PL_CONF_CHOICE, AT(form), .def = "alertmanager", .choices = webhook_forms,
	  .help = "webhook: to an Alertmanager (its /api/v2/alerts), or to a receiver, as an Alertmanager would tell it." },
	{ .key = "link", .type = PL_CONF_STRING, AT(link),
	  .help = "webhook: the address people find behind an alert, such as a dashboard's." },
	{ .key = "repeat", .type = PL_CONF_DURATION, AT(repeat_ns), .def = "1m", .min = 1000000000, .max = UINT64_C(86400000000000),
	  .help = "webhook: how often an Alertmanager is told that an alert lasts; it ends by itself after three times as long." },
	{ .key = "resolve", .type = PL_CONF_DURATION, AT(resolve_ns), .def = "5m", .min = 1000000000, .max = UINT64_C(86400000000000),
	  .help = "webhook: when the alert of an event ends that happened once." },
	{ .key = "max_series", .type = PL_CONF_U64, AT(max_series), .def = "262144", .min = 1000, .max = 1 << 24,
	  .help = "remote_write: series and histograms at a time; those beyond are refused and counted." },
	{ .key = "batch.entries", .type = PL_CONF_U64, AT(batch_entries), .def = "5000", .min = 1, .max = 100000,
	  .help = "Entries in a request at most." },
	{ .key = "batch.size", .type = PL_CONF_SIZE, AT(batch_bytes), .def = "1MiB", .min = 4096, .max = 32 << 20,
	  .help = "Bytes in a request at most, before compression." },
	{ .key = "batch.age", .type = PL_CONF_DURATION, AT(batch_age_ns), .def = "1s", .min = 1000000, .max = UINT64_C(3600000000000),
	  .help = "How long a request that is not full may wait for more." },
	{ .key = "memory", .type = PL_CONF_SIZE, AT(memory_bytes), .def = "16MiB", .min = 65536, .max = UINT64_C(1) << 34,
	  .help = "Batches that may wait in memory; beyond, the oldest go to the spool, or are dropped and counted." },
	{ .key = "timeout", .type = PL_CONF_DURATION, AT(timeout_ns), .def = "10s", .min = 100000000, .max = UINT64_C(600000000000),
	  .help = "For a request, with its answer." },
	{ .key = "spool.path", .type = PL_CONF_STRING, AT(spool_path),
	  .help = "Folder for what the server does not take at the moment; without it, memory is all." },
	{ .key = "spool.size", .type = PL_CONF_SIZE, AT(spool_bytes), .def = "1GiB", .min = 8 << 20, .max = UINT64_C(1) << 45,
	  .help = "The spool's largest size on disk." },
	{ .key = "spool.within", .type = PL_CONF_DURATION, AT(spool_within_ns), .def = "1s", .min = 200000000, .max = UINT64_C(3600000000000),
	  .help = "What is accepted is delivered or in the spool, on disk, within this time: what kill -9 or a power cut can lose." },
	{ .key = "spool.full", .type = PL_CONF_CHOICE, AT(spool_full), .def = "drop_oldest", .choices = when_full,
	  .help = "What gives way when the spool is full; counted." },
	{ .key = "dead_letter.path", .type = PL_CONF_STRING, AT(dead_letter_path),
	  .help = "File for entries the server refuses, with its words; by default dead-letter.jsonl in the spool's folder." },
	{ .key = "dead_letter.size", .type = PL_CONF_SIZE, AT(dead_letter_bytes), .def = "64MiB", .min = 4096, .max = UINT64_C(1) << 40,
	  .help = "That file's largest size; refused entries beyond are counted only." },
	{ .key = "tls.ca", .type = PL_CONF_STRING, AT(tls.ca),
	  .help = "Certificates to trust instead of the system's." },
	{ .key = "tls.cert", .type = PL_CONF_STRING, AT(tls.cert),
	  .help = "This client's certificate." },
	{ .key = "tls.key", .type = PL_CONF_STRING, AT(tls.key),
	  .help = "The key that belongs to it." },
	{ .key = "tls.insecure", .type = PL_CONF_BOOL, AT(tls.insecure), .def = "false",
	  .help = "Do not verify the server's certificate: anybody on the way can read and change what is sent." },
	{ 0 },
};
#undef AT

/* A quantity that is watched, as a level and for steps. T is the type of its values. */
#define LEVEL(name, T, is_on, at, what) \
	{ .key = "detect." #name ".enabled", .type = PL_CONF_BOOL, AT(detect.name.on), .def = is_on, \
	  .help = "Tell when it rises above its threshold, and when that is over: " what "." }, \
	{ .key = "detect." #name ".threshold", .type = T, AT(detect.name.threshold), .def = at, .min = 0, .max = UINT32_MAX - 1, \
	  .help = "It begins above this; 0 is no absolute threshold." }, \
	{ .key = "detect." #name ".low", .type = T, AT(detect.name.low), .def = "0", .min = 0, .max = UINT32_MAX - 1, \
	  .help = "It ends at or below this; 0 is half of the threshold." }, \
	{ .key = "detect." #name ".relative", .type = PL_CONF_U64, AT(detect.name.relative), .def = "0", .min = 0, .max = 1000000, \
	  .help = "It also begins so many per cent above the usual value of the place (see detect.learn); 0 is not." }, \
	{ .key = "detect." #name ".relative_min", .type = T, AT(detect.name.relative_min), .def = "0", .min = 0, .max = UINT32_MAX - 1, \
	  .help = "The relative threshold is at least this." }, \
	{ .key = "detect." #name ".begin_hold", .type = PL_CONF_DURATION, AT(detect.name.begin_hold_ns), .def = "10ms", \
	  .help = "It begins when it was above in every report of so long; 0s is with the first one." }, \
	{ .key = "detect." #name ".end_hold", .type = PL_CONF_DURATION, AT(detect.name.end_hold_ns), .def = "1s", \
	  .help = "It ends when it was not above low for so long." }, \
	{ .key = "detect." #name ".step", .type = T, AT(detect.name.step), .def = "0", .min = 0, .max = UINT32_MAX - 1, \
	  .help = "Tell when it moved by more than this from the value told last; 0 is never." }, \
	{ .key = "detect." #name ".step_relative", .type = PL_CONF_U64, AT(detect.name.step_relative), .def = "0", .min = 0, .max = 1000000, \
	  .help = "Tell when it moved by more than so many per cent of the value told last; 0 is never." }, \
	{ .key = "detect." #name ".step_bits", .type = PL_CONF_U64, AT(detect.name.step_bits), .def = "0", .min = 0, .max = 31, \
	  .help = "Tell when it is in another interval of 2^step_bits than the value told last; 0 is never." }, \
	{ .key = "detect." #name ".step_first", .type = PL_CONF_BOOL, AT(detect.name.step_first), .def = "false", \
	  .help = "Tell the first value of each place." }, \
	{ .key = "detect." #name ".anomaly", .type = PL_CONF_BOOL, AT(detect.name.anomaly), .def = "false", \
	  .help = "Tell when it is unlike its usual self at the place (see detect.learn)." }, \
	{ .key = "detect." #name ".anomaly_min", .type = T, AT(detect.name.anomaly_min), .def = "0", .min = 0, .max = UINT32_MAX - 1, \
	  .help = "Distances from the usual value up to this are no anomaly." }, \
	{ .key = "detect." #name ".limit_interval", .type = PL_CONF_DURATION, AT(detect.name.limit_interval_ns), .def = "0s", .max = UINT64_C(3600000000000), \
	  .help = "detect.limit_interval of this kind; 0 is the same." }, \
	{ .key = "detect." #name ".limit_burst", .type = PL_CONF_U64, AT(detect.name.limit_burst), .def = "0", .max = 1000, \
	  .help = "detect.limit_burst of this kind; 0 is the same." }

#define AT(member) .offset = offsetof(struct pl_config, member)
const struct pl_conf_row pl_config_rows[] = {
	{ .key = "sources", .type = PL_CONF_LIST, AT(sources), .rows = source_rows, .item_size = sizeof(struct pl_config_source), .max = MAX_SOURCES,
	  .help = "Where reports come in; without any, UDP ports 32766 and 54321." },
	{ .key = "profiles", .type = PL_CONF_LIST, AT(profiles), .rows = profile_rows, .item_size = sizeof(struct pl_config_profile), .max = MAX_PROFILES,
	  .help = "How to read what the bytes of a report cannot tell, by exporter." },
	{ .key = "outputs", .type = PL_CONF_LIST, AT(outputs), .rows = output_rows, .item_size = sizeof(struct pl_config_output), .max = MAX_OUTPUTS,
	  .help = "Where records and events go, beside the metrics page." },
	{ .key = "pin", .type = PL_CONF_CHOICE, AT(pin), .def = "auto", .choices = pins,
	  .help = "Pin each worker to a processor of its own, near the network card where that is known; auto: workers of interfaces only, while one processor is left over. Not changed by a reload." },
	{ .key = "user", .type = PL_CONF_STRING, AT(user), .check = check_user,
	  .help = "User to become once the sources are open, by name or number; all other files are opened as this user. Takes root. Not changed by a reload." },
	{ .key = "group", .type = PL_CONF_STRING, AT(group), .check = check_group,
	  .help = "Group to become; by default the user's. Not changed by a reload." },
	{ .key = "core_dumps", .type = PL_CONF_BOOL, AT(core_dumps), .def = "false",
	  .help = "Allow core files and debuggers: memory holds others' traffic. Not changed by a reload." },
	{ .key = "drain", .type = PL_CONF_DURATION, AT(drain_ns), .def = "4s", .min = 0, .max = UINT64_C(600000000000),
	  .help = "How long a stop may take to deliver what is queued." },

	{ .key = "decode.max_exporters", .type = PL_CONF_U64, AT(decode.max_exporters), .def = "4096", .min = 1, .max = 1 << 20,
	  .help = "Sequence spaces followed per worker: address, node and hardware unit. When all are taken, sources (an address, of IPv6 a /64) have equal shares; one that was not heard of for detect.forget makes room." },
	{ .key = "decode.admit", .type = PL_CONF_CHOICE, AT(decode.admit), .def = "proven", .choices = admissions,
	  .help = "From when on an exporter counts. proven: from its second report on whose number goes with the one before; until then its reports are decoded, counted and delivered, flagged unproven, and make no series, flows, levels or events: random bytes do not look like that. first: from its first report on." },
	{ .key = "decode.max_paths", .type = PL_CONF_U64, AT(decode.max_paths), .def = "65536", .min = 1, .max = 1 << 24,
	  .help = "Paths remembered per worker." },
	{ .key = "decode.sequence_gap_max", .type = PL_CONF_U64, AT(decode.sequence_gap_max), .def = "65536", .min = 1, .max = 1 << 21,
	  .help = "A larger jump of the sequence number is a restart, not a loss." },
	{ .key = "decode.latency_max", .type = PL_CONF_DURATION, AT(decode.latency_max_ns), .def = "2s", .min = 1, .max = UINT32_MAX,
	  .help = "A hop or link latency above this is implausible and left out; at most 4.29 s, the range of 32-bit times." },
	{ .key = "decode.gre_int_ethertype", .type = PL_CONF_U64, AT(decode.gre_int_ethertype), .def = "0", .min = 0, .max = 65535,
	  .help = "GRE protocol type that announces INT; none is assigned. 0 is none." },
	{ .key = "decode.geneve_int_class", .type = PL_CONF_U64, AT(decode.geneve_int_class), .def = "0x103", .min = 1, .max = 65535,
	  .help = "Geneve option class that announces INT." },
	{ .key = "decode.ioam_time", .type = PL_CONF_STRINGS, AT(decode.ioam_time), .max = PL_IOAM_NAMESPACES_MAX, .check = check_ioam_time,
	  .help = "Times of IOAM namespaces: NAMESPACE=posix, =ptp or =ntp; those not named are posix, as Linux writes." },

	{ .key = "aggregate.max_queues", .type = PL_CONF_U64, AT(aggregate.max_queues), .def = "1024", .min = 1, .max = 1 << 20,
	  .help = "Queues with series of their own; the others share one." },
	{ .key = "aggregate.max_ports", .type = PL_CONF_U64, AT(aggregate.max_ports), .def = "1024", .min = 1, .max = 1 << 20,
	  .help = "Egress ports with series of their own." },
	{ .key = "aggregate.max_links", .type = PL_CONF_U64, AT(aggregate.max_links), .def = "1024", .min = 1, .max = 1 << 20,
	  .help = "Links with series of their own." },
	{ .key = "aggregate.max_paths", .type = PL_CONF_U64, AT(aggregate.max_paths), .def = "1024", .min = 1, .max = 1 << 20,
	  .help = "Paths with series of their own." },
	{ .key = "aggregate.idle", .type = PL_CONF_DURATION, AT(aggregate.idle_ns), .def = "5m", .min = 1000000000, .max = UINT64_C(864000000000000),
	  .help = "What was not heard of for so long loses its series." },
	{ .key = "aggregate.slot", .type = PL_CONF_DURATION, AT(aggregate.slot_ns), .def = "15s", .min = 100000000, .max = UINT64_C(3600000000000),
	  .help = "Length of the fixed slots maxima are kept for: at least the scrape interval." },

	{ .key = "detect.where", .type = PL_CONF_CHOICE, AT(detect_where), .def = "user", .choices = wheres,
	  .help = "Where the reports of afxdp: sources are detected. user: here. kernel: before they reach this process; outputs get events, and only those reports that the kernel could not settle. both: there, and every report comes up for the outputs and the page. auto: both when an output takes reports and detect.copy says nothing of which, else kernel. Where the kernel cannot, here, and a line says why. Not changed by a reload." },
	{ .key = "detect.aggregates", .type = PL_CONF_BOOL, AT(detect_aggregates), .def = "true",
	  .help = "Where the kernel detects and hands up events only: it counts for the page and for intervals too (queues, ports, links, paths; histograms by powers of two). Without, those have only what the kernel could not settle. Not changed by a reload." },
	{ .key = "detect.copy.sample", .type = PL_CONF_U64, AT(copy.sample), .def = "0", .min = 0, .max = UINT32_MAX,
	  .help = "Where the kernel detects: 1 in so many of the reports it settles comes up in full, for outputs that take reports and for tail; 0 is none." },
	{ .key = "detect.copy.address", .type = PL_CONF_STRING, AT(copy.address), .check = check_address,
	  .help = "And all reports on flows from or to this address; with the two below, only those that satisfy all that are given." },
	{ .key = "detect.copy.node", .type = PL_CONF_STRING, AT(copy.node), .check = check_number,
	  .help = "Only those that met or come from this node." },
	{ .key = "detect.copy.flags", .type = PL_CONF_STRINGS, AT(copy.flags), .max = 16, .check = check_flag,
	  .help = "Only those with one of these flags, such as dropped or congested (help fields has them)." },
	{ .key = "detect.path_change", .type = PL_CONF_BOOL, AT(detect.path_change), .def = "true",
	  .help = "Tell when a flow takes another path." },
	{ .key = "detect.report_loss", .type = PL_CONF_BOOL, AT(detect.report_loss), .def = "true",
	  .help = "Tell when reports of an exporter are missing, and when none more were for loss_hold." },
	{ .key = "detect.loss_hold", .type = PL_CONF_DURATION, AT(detect.loss_hold_ns), .def = "10s", .min = 1000000, .max = UINT64_C(3600000000000),
	  .help = "A loss is over when nothing more was lost for so long." },
	{ .key = "detect.packet_loss", .type = PL_CONF_BOOL, AT(detect.packet_loss), .def = "true",
	  .help = "Tell when packets of a flow are missing by the numbers it has from its source (GEANT, IOAM), while the reports are all there; and when no more were for loss_hold. Not where the kernel detects." },
	{ .key = "detect.reordering", .type = PL_CONF_BOOL, AT(detect.reordering), .def = "false",
	  .help = "Tell when packets of such a flow overtake each other, and when no more did for loss_hold." },
	{ .key = "detect.packet_drop", .type = PL_CONF_BOOL, AT(detect.packet_drop), .def = "true",
	  .help = "Tell of drop reports." },
	{ .key = "detect.loop", .type = PL_CONF_BOOL, AT(detect.loop), .def = "true",
	  .help = "Tell when a packet met a node twice." },
	{ .key = "detect.flow_start", .type = PL_CONF_BOOL, AT(detect.flow_start), .def = "false",
	  .help = "Tell of every flow when it is first heard of. Not limited per key: every flow has its own." },
	{ .key = "detect.flow_end", .type = PL_CONF_BOOL, AT(detect.flow_end), .def = "false",
	  .help = "Tell of every flow that was not heard of for flow_idle." },
	LEVEL(queue_depth, PL_CONF_U64, "true", "1000", "a queue's depth, in the exporters' unit"),
	LEVEL(hop_latency, PL_CONF_DURATION, "true", "1ms", "the time a packet takes through a node"),
	LEVEL(link_latency, PL_CONF_DURATION, "false", "1ms", "the time a packet takes over a link"),
	LEVEL(flow_latency, PL_CONF_DURATION, "false", "5ms", "the time a flow's packets take through all nodes together"),
	LEVEL(tx_util, PL_CONF_U64, "false", "80", "an egress port's utilization, in the exporters' unit"),
	LEVEL(buffer_depth, PL_CONF_U64, "false", "1000", "a buffer's occupancy, in the exporters' unit"),
	{ .key = "detect.microburst.enabled", .type = PL_CONF_BOOL, AT(detect.microburst.on), .def = "false",
	  .help = "Tell of queues that build up and are gone within microburst.max, with the flows that brought most and those delayed most." },
	{ .key = "detect.microburst.threshold", .type = PL_CONF_U64, AT(detect.microburst.threshold), .def = "100", .min = 1, .max = UINT32_MAX - 1,
	  .help = "Queue depth above which it is one." },
	{ .key = "detect.microburst.max", .type = PL_CONF_DURATION, AT(detect.microburst.max_ns), .def = "10ms", .min = 1000, .max = UINT64_C(60000000000),
	  .help = "What lasts longer is no microburst." },
	{ .key = "detect.microburst.flows", .type = PL_CONF_U64, AT(detect.microburst.flows), .def = "3", .min = 0, .max = PL_CORE_BURST_FLOWS,
	  .help = "Culprits and victims told of each: so many events each." },
	{ .key = "detect.learn.window", .type = PL_CONF_DURATION, AT(detect.learn.window_ns), .def = "1s", .min = 1000000, .max = UINT64_C(3600000000000),
	  .help = "The usual value of a place is learned from windows of this length." },
	{ .key = "detect.learn.windows", .type = PL_CONF_U64, AT(detect.learn.windows), .def = "30", .min = 2, .max = 1000000,
	  .help = "Windows with values before relative thresholds and anomalies begin." },
	{ .key = "detect.learn.weight", .type = PL_CONF_U64, AT(detect.learn.shift), .def = "5", .min = 1, .max = 20,
	  .help = "Each window moves the usual value by 2^-weight of the difference: 5 remembers about 32 windows." },
	{ .key = "detect.learn.deviations", .type = PL_CONF_U64, AT(detect.learn.deviations), .def = "6", .min = 1, .max = 100000,
	  .help = "An anomaly is further from the usual value than so many usual deviations (mean absolute ones)." },
	{ .key = "detect.learn.begin_hold", .type = PL_CONF_DURATION, AT(detect.learn.begin_hold_ns), .def = "0s",
	  .help = "How long so far before an anomaly begins." },
	{ .key = "detect.learn.end_hold", .type = PL_CONF_DURATION, AT(detect.learn.end_hold_ns), .def = "100ms",
	  .help = "How long back before it ends." },
	{ .key = "detect.node_silent", .type = PL_CONF_DURATION, AT(detect.node_silent_ns), .def = "0s", .max = UINT64_C(864000000000000),
	  .help = "Tell when a node that was heard of is silent for so long, and when it is heard again; 0 is never." },
	{ .key = "detect.keepalive", .type = PL_CONF_DURATION, AT(detect.keepalive_ns), .def = "0s", .max = UINT64_C(864000000000000),
	  .help = "Tell of every flow that goes on once per so long, even if nothing changes; 0 is never." },
	{ .key = "detect.max_flows", .type = PL_CONF_U64, AT(detect.max_flows), .def = "131072", .min = 8, .max = 1 << 26,
	  .help = "Flows whose path is remembered, per worker." },
	{ .key = "detect.max_queues", .type = PL_CONF_U64, AT(detect.max_queues), .def = "4096", .min = 8, .max = 1 << 20,
	  .help = "Queues remembered, per worker." },
	{ .key = "detect.max_links", .type = PL_CONF_U64, AT(detect.max_links), .def = "4096", .min = 8, .max = 1 << 20,
	  .help = "Links remembered, per worker; as many ports and buffers together." },
	{ .key = "detect.flow_idle", .type = PL_CONF_DURATION, AT(detect.flow_idle_ns), .def = "60s", .min = 1000000, .max = UINT64_C(864000000000000),
	  .help = "A flow not seen for longer begins anew: no path change is told." },
	{ .key = "detect.idle", .type = PL_CONF_DURATION, AT(detect.idle_ns), .def = "5s", .min = 1000000, .max = UINT64_C(3600000000000),
	  .help = "A level above its threshold that is not heard of for so long ends." },
	{ .key = "detect.forget", .type = PL_CONF_DURATION, AT(detect.forget_ns), .def = "10m", .min = 1000000000, .max = UINT64_C(864000000000000),
	  .help = "A queue, port or link not heard of for so long is forgotten." },
	{ .key = "detect.limit_interval", .type = PL_CONF_DURATION, AT(detect.limit_interval_ns), .def = "1s", .min = 1000000, .max = UINT64_C(3600000000000),
	  .help = "Events of one kind and place: one per this, after a burst." },
	{ .key = "detect.limit_burst", .type = PL_CONF_U64, AT(detect.limit_burst), .def = "5", .min = 1, .max = 1000,
	  .help = "Events of one kind and place at once." },

	{ .key = "metrics.max_exporters", .type = PL_CONF_U64, AT(metrics.max_exporters), .def = "256", .min = 0, .max = 65536,
	  .help = "Exporters with series of their own; the others share one." },
	{ .key = "metrics.buckets", .type = PL_CONF_CHOICE, AT(metrics.buckets), .def = "2", .choices = bucket_factors,
	  .help = "Factor between the bounds of histograms; smaller ones are more exact, and more series." },

	{ .key = "web.listen", .type = PL_CONF_STRING, AT(web.listen), .def = "127.0.0.1:8400", .check = check_listen,
	  .help = "Address and port of the metrics page, or off. Not changed by a reload." },
	{ .key = "web.names", .type = PL_CONF_STRINGS, AT(web.names), .max = 32,
	  .help = "Host names the server answers to, beyond localhost and this host's. Not changed by a reload." },
	{ .key = "web.max_connections", .type = PL_CONF_U64, AT(web.max_connections), .def = "128", .min = 1, .max = 4096,
	  .help = "Connections in total. At the limit, one that does nothing ends for the next; /healthz and /readyz are answered beyond it. Not changed by a reload." },
	{ .key = "web.max_per_address", .type = PL_CONF_U64, AT(web.max_per_address), .def = "16", .min = 1, .max = 4096,
	  .help = "Connections from one address, or one /64 of IPv6. Not changed by a reload." },

	{ .key = "web.max_streams", .type = PL_CONF_U64, AT(web.max_streams), .def = "8", .min = 1, .max = 256,
	  .help = "Live streams (pathline tail) at a time. At the limit, an address with more ends one for an address with fewer. Not changed by a reload." },
	{ .key = "web.stream_buffer", .type = PL_CONF_SIZE, AT(web.stream_buffer), .def = "1MiB", .min = 64 << 10, .max = 64 << 20,
	  .help = "What may wait for each stream's client; beyond it entries are dropped, counted and told. Not changed by a reload." },
	{ .key = "web.config_file", .type = PL_CONF_STRING, AT(web.config_file),
	  .help = "TLS and who may ask, in the format of Prometheus' exporter-toolkit; read again by a reload. See docs/guide/web.md (installed with the program)." },
	{ .key = "web.socket", .type = PL_CONF_STRING, AT(web.socket),
	  .help = "A Unix socket that serves the same to its owner and group, such as /run/pathline/pathline.sock. Not changed by a reload." },

	{ .key = "log.level", .type = PL_CONF_CHOICE, AT(log.level), .def = "info", .choices = log_levels,
	  .help = "Least important line that is shown." },
	{ .key = "log.format", .type = PL_CONF_CHOICE, AT(log.format), .def = "auto", .choices = log_formats,
	  .help = "Form of the lines; auto is text on a terminal, else logfmt." },
	{ 0 },
};
#undef AT
/* clang-format on */

_Static_assert((int)PL_LOG_DEBUG == 4 && (int)PL_LOG_JSON == 3,
	"choices of log.* are in the order of the enums");
_Static_assert((int)PL_DIALECT_MAX == 6, "choices of dialect are in the order of the enum");
