/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of the configuration, and checks of single values. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/privilege.h"
#include "export/dta_to.h"
#include "export/ipfix_out.h"
#include "export/raw_out.h"
#include "export/remote_write.h"
#include "netio/port.h"
#include "pipeline/config.h"
#include "pipeline/config_words.h"
#include "pipeline/kind.h"
#include "record/pack.h"
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
	/* A misspelt scheme must not pass for a file name. */
	if (pl_port_uri_scheme(value) == NULL && strstr(value, "://") == NULL)
		return pl_diag_fail(diag, -EINVAL,
			"\"%s\" is not the URI of a source; for a capture file write pcap:%s",
			value, value);
	if (strcmp(value, "pcap:-") == 0)
		return pl_diag_fail(diag, -EINVAL,
			"the daemon cannot read standard input; use \"pathline read\"");
	return pl_port_uri_sockets(value, diag) < 0 ? -EINVAL : 0;
}

static int check_listen(const char *value, struct pl_diag *diag)
{
	struct pl_addr addr;
	uint16_t port;

	if (strcmp(value, "off") == 0 || pl_parse_endpoint(value, &addr, &port) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "\"%s\" is neither ADDRESS:PORT nor off", value);
}

/* Each type of output checks which of these it supports. */
static int check_to(const char *value, struct pl_diag *diag)
{
	if (strncmp(value, "ipfix:", 6) == 0)
		return pl_ipfix_out_check(value, diag);
	if (strncmp(value, "udp:", 4) == 0)
		return pl_dta_to_udp_check(value, diag);
	if (strncmp(value, "kafka:", 6) == 0)
		return pl_raw_out_check(value, diag);
	return pl_diag_fail(diag, -EINVAL,
		"\"%s\" is none of udp://ADDRESS:PORT, ipfix://HOST[:PORT] and kafka://HOST[:PORT]/TOPIC",
		value);
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

static int check_dscp(const char *value, struct pl_diag *diag)
{
	uint8_t v, m;

	if (pl_config_parse_dscp(value, &v, &m) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"\"%s\" is neither a DSCP (0 to 63) nor VALUE/MASK with the value within the mask",
		value);
}

static int check_address(const char *value, struct pl_diag *diag)
{
	struct pl_addr addr;

	if (pl_parse_addr(value, &addr) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "\"%s\" is not an address", value);
}

static int check_flag(const char *value, struct pl_diag *diag)
{
	if (pl_config_flag_bit(value) >= 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"unknown report flag \"%s\"; \"pathline help fields\" lists them", value);
}

static int check_ioam_time(const char *value, struct pl_diag *diag)
{
	struct pl_ioam_namespace ns;

	if (pl_ioam_namespace_parse(&ns, value) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"\"%s\" is not NAMESPACE=posix, =ptp or =ntp with a namespace from 0 to 65535",
		value);
}

static int check_user(const char *value, struct pl_diag *diag)
{
	if (pl_privilege_user_exists(value))
		return 0;
	return pl_diag_fail(diag, -EINVAL, "there is no user \"%s\"", value);
}

static int check_group(const char *value, struct pl_diag *diag)
{
	if (pl_privilege_group_exists(value))
		return 0;
	return pl_diag_fail(diag, -EINVAL, "there is no group \"%s\"", value);
}

static int check_name(const char *value, struct pl_diag *diag)
{
	size_t n =
		strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

	if (strcmp(value, "live") == 0)
		return pl_diag_fail(diag, -EINVAL,
			"the name \"live\" is reserved for the stream of pathline tail");
	if (n > 0 && n <= 64 && value[n] == '\0')
		return 0;
	return pl_diag_fail(diag, -EINVAL, "a name has 1 to 64 letters, digits, '_', '-' or '.'");
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
/* The words of a boolean, and auto. */
static const char *const maybe[] = { "auto", "true", "false", "yes", "no", "on", "off", NULL };
static const char *const apis[] = { "v1", "v2", NULL };
static const char *const when_full[] = { "drop_oldest", "drop_newest", NULL };
static const char *const wheres[] = { "user", "kernel", "both", "auto", NULL };
/* The words of `region create --primitive` and `region lookup --key-form`, in the order of enum
 * pl_dta_op and pl_key_form. */
static const char *const primitives[] = { "key-write", "append", "counters", "postcards", NULL };
static const char *const key_forms[] = { "text", "hex", "u32", "be32", "u64", NULL };
static const char *const byte_orders[] = { "little", "big", NULL };
/* In the order of enum pl_record_kind. */
static const char *const records[] = { "path", "hop", "event", NULL };
static const char *const pins[] = { "false", "true", "auto", NULL };
static const char *const log_levels[] = { "error", "warning", "notice", "info", "debug", NULL };
static const char *const log_formats[] = { "auto", "text", "logfmt", "json", NULL };

/* clang-format off */
#define AT(member) .offset = offsetof(struct pl_config_source, member)
static const struct pl_conf_row source_rows[] = {
	{ .key = "uri", .type = PL_CONF_STRING, AT(uri), .required = true, .check = check_source,
	  .help = "URI from which reports are received: udp://HOST:PORT (without a host, or with *, every address; [::] leaves those of IPv4 to a source 0.0.0.0 with the same port), afxdp:INTERFACE, packet:INTERFACE, ioam6: (IOAM traces that this kernel handles as a node), pcap:FILE, which is read once, as fast as it can be decoded, and whose events follow the times of its packets, or kafka://HOST[:PORT],.../TOPIC, packets that an output of the type raw wrote, with their own times." },
	{ .key = "sockets", .type = PL_CONF_U64, AT(sockets), .def = "1", .min = 1, .max = MAX_SOCKETS,
	  .help = "udp: only: number of sockets that share the address, each with its own worker." },
	{ .key = "rcvbuf", .type = PL_CONF_SIZE, AT(rcvbuf_bytes), .def = "0", .min = 0, .max = UINT64_C(1) << 30,
	  .help = "udp: only: size of the socket buffer; 0 keeps the default of the port." },
	{ 0 },
};
#undef AT

static int check_nodes(const char *value, struct pl_diag *diag)
{
	uint64_t first, last;

	if (pl_config_parse_nodes(value, &first, &last) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "\"%s\" is not a node id, a range such as 1-99, or all", value);
}

#define AT(member) .offset = offsetof(struct pl_config_unit, member)
static const struct pl_conf_row unit_rows[] = {
	{ .key = "nodes", .type = PL_CONF_STRING, AT(nodes), .required = true, .check = check_nodes,
	  .help = "Nodes that report occupancies in these units: a node id, a range such as 1-99, or all; if one range is inside another, the narrower one applies." },
	{ .key = "queue_cell_bytes", .type = PL_CONF_U64, AT(queue_cell_bytes), .def = "0", .min = 0, .max = PL_CORE_UNIT_BYTES,
	  .help = "Bytes of one unit of queue occupancy: 1 for nodes that report bytes, the size of a cell for nodes that report cells; 0: not known." },
	{ .key = "buffer_cell_bytes", .type = PL_CONF_U64, AT(buffer_cell_bytes), .def = "0", .min = 0, .max = PL_CORE_UNIT_BYTES,
	  .help = "Bytes of one unit of buffer occupancy, likewise." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_config_profile, member)
static const struct pl_conf_row profile_rows[] = {
	{ .key = "match", .type = PL_CONF_STRING, AT(match), .required = true, .check = pl_config_check_prefix,
	  .help = "Exporters that the profile applies to: an address or a prefix; the longest match wins." },
	{ .key = "report_version", .type = PL_CONF_CHOICE, AT(report_version), .def = "auto", .choices = report_versions,
	  .help = "Version of the telemetry reports, for exporters that write a wrong version." },
	{ .key = "dialect", .type = PL_CONF_CHOICE, AT(dialect), .def = "spec", .choices = dialects,
	  .help = "Dialect of the INT header to prefer when several fit." },
	{ .key = "dialect_pinned", .type = PL_CONF_BOOL, AT(dialect_pinned), .def = "false",
	  .help = "Accept only the dialect of the key dialect." },
	{ .key = "queue_word", .type = PL_CONF_CHOICE, AT(queue_word), .def = "auto", .choices = queue_words,
	  .help = "Bits of the queue id and of the occupancy, which share a word." },
	{ .key = "trailing_words", .type = PL_CONF_U64, AT(trailing_words), .def = "0", .min = 0, .max = PL_INT_TRAILING_MAX,
	  .help = "Words of a vendor behind each hop's values, for which there is no instruction; they are skipped." },
	{ .key = "source_words", .type = PL_CONF_U64, AT(source_words), .def = "0", .min = 0, .max = PL_INT_SOURCE_MAX,
	  .help = "Words that INT 2.x sources with a domain id put under the stack; 0 is not known, and then of stacks that may have them only the newest hop is read." },
	{ .key = "tcp_placement", .type = PL_CONF_CHOICE, AT(tcp_placement), .def = "auto", .choices = placements,
	  .help = "Position of INT in TCP packets: before or after the TCP options." },
	{ .key = "timestamp_unit", .type = PL_CONF_CHOICE, AT(timestamp_unit), .def = "ns", .choices = units,
	  .help = "Unit of the hops' timestamps." },
	{ .key = "latency_unit", .type = PL_CONF_CHOICE, AT(latency_unit), .def = "ns", .choices = units,
	  .help = "Unit of the hops' latencies." },
	{ .key = "embedded", .type = PL_CONF_CHOICE, AT(embedded), .def = "auto", .choices = embedded,
	  .help = "How INT is found in the packet inside a report: auto (also by its bytes), announced (only where it is announced), never (it is not searched)." },
	{ .key = "dscp", .type = PL_CONF_STRING, AT(dscp), .check = check_dscp,
	  .help = "DSCP that announces INT: VALUE or VALUE/MASK." },
	{ .key = "int_port", .type = PL_CONF_U64, AT(int_port), .def = "0", .min = 0, .max = 65535,
	  .help = "UDP destination port that announces INT; 0 is none." },
	{ .key = "marker", .type = PL_CONF_STRING, AT(marker), .check = pl_config_check_number,
	  .help = "64-bit probe marker that announces INT." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_config_output, member)
static const struct pl_conf_row output_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .check = check_name,
	  .help = "Name of the output in metrics; by default its type and its place in the list." },
	{ .key = "type", .type = PL_CONF_CHOICE, AT(type), .def = "jsonl", .choices = pl_config_output_types,
	  .help = "Type of output: jsonl writes a file of JSON lines, influx writes to an InfluxDB server, remote_write to a server that accepts Prometheus remote write, webhook sends events to an Alertmanager or to a receiver of its webhooks, region keeps a history in a folder of regions that survives restarts, dta writes records into telemetry memory, ipfix sends reports and their hops to a collector of IPFIX, raw writes every packet as it arrived into a topic of Kafka, where it can be decoded later." },
	{ .key = "path", .type = PL_CONF_STRING, AT(path),
	  .help = "jsonl: the file. region: the folder, which is created if its parent exists." },
	{ .key = "paths", .type = PL_CONF_CHOICE, AT(paths_word), .def = "auto", .choices = maybe,
	  .help = "Write reports: jsonl writes a path with its hops (auto means true), influx a point per hop (auto means false)." },
	{ .key = "events", .type = PL_CONF_CHOICE, AT(events_word), .def = "auto", .choices = maybe,
	  .help = "Write events; auto means yes if the type of output can." },
	{ .key = "values", .type = PL_CONF_CHOICE, AT(values_word), .def = "auto", .choices = maybe,
	  .help = "Write values that are read from regions; auto means yes for jsonl and influx; other types cannot." },
	{ .key = "where", .type = PL_CONF_STRING, AT(where), .check = check_where,
	  .help = "Write only reports that match this expression (events and values are not filtered)." },
	{ .key = "rotate.size", .type = PL_CONF_SIZE, AT(rotate_size_bytes), .def = "256MiB", .min = 0, .max = UINT64_C(1) << 50,
	  .help = "Begin a new file before the file exceeds this size; 0 means never." },
	{ .key = "rotate.age", .type = PL_CONF_DURATION, AT(rotate_age_ns), .def = "0s",
	  .help = "Begin a new file when the file has this age; 0 means never." },
	{ .key = "rotate.keep", .type = PL_CONF_U64, AT(rotate_keep), .def = "5", .min = 1, .max = 1000,
	  .help = "Number of old files that are kept." },
	{ .key = "keep.events", .type = PL_CONF_U64, AT(keep.events), .def = "65536", .min = 64, .max = UINT64_C(1) << 40,
	  .help = "region: events kept, 136 bytes each. All space is allocated at the start." },
	{ .key = "keep.paths", .type = PL_CONF_U64, AT(keep.paths), .def = "131072", .min = 64, .max = UINT64_C(1) << 40,
	  .help = "region: reports kept, 144 bytes each." },
	{ .key = "keep.hops", .type = PL_CONF_U64, AT(keep.hops), .def = "655360", .min = 256, .max = UINT64_C(1) << 40,
	  .help = "region: hops kept, 136 bytes each; if they are too few, the oldest reports lose their hops." },
	{ .key = "keep.flows", .type = PL_CONF_U64, AT(keep.flows), .def = "65536", .min = 0, .max = UINT64_C(1) << 40,
	  .help = "region: slots for the last path of each flow, 960 bytes each; provide ten slots per flow; 0 keeps none." },
	{ .key = "keep.queues", .type = PL_CONF_U64, AT(keep.queues), .def = "65536", .min = 0, .max = UINT64_C(1) << 40,
	  .help = "region: slots for the last hop of each node, port and queue, 192 bytes each; provide ten slots per key; 0 keeps none." },
	{ .key = "keep.drops", .type = PL_CONF_U64, AT(keep.drops), .def = "4096", .min = 0, .max = UINT64_C(1) << 32,
	  .help = "region: counters of dropped packets by node and reason, 32 bytes each; 0 keeps none." },
	{ .key = "keep.sync", .type = PL_CONF_DURATION, AT(keep.sync_ns), .def = "1s", .max = UINT64_C(3600000000000),
	  .help = "region: interval at which new entries are written to disk, which is the most a power cut loses; 0s leaves it to the kernel." },
	{ .key = "to", .type = PL_CONF_STRING, AT(to), .check = check_to,
	  .help = "dta: translator that DTA reports are sent to, udp://ADDRESS:PORT; without it the output writes a region of this process. ipfix: collector that reports and their hops are sent to, ipfix://HOST[:PORT]?pen=N, with the keys transport=udp or tcp, time=ms, us or ns, domain=N; pen is the private enterprise number for values without an element of IPFIX. raw: kafka://HOST[:PORT],.../TOPIC, with properties of librdkafka as keys, and properties=FILE." },
	{ .key = "region", .type = PL_CONF_STRING, AT(dta.region),
	  .help = "dta: with to, number of the region at the translator, 0 by default; otherwise name of a region of this process that has writer: output." },
	{ .key = "primitive", .type = PL_CONF_CHOICE, AT(dta.primitive), .def = "key-write", .choices = primitives,
	  .help = "dta: how a record is written. key-write: its value becomes the last value of its key; append: it becomes an entry of a list; counters: the sum of its key grows; postcards: the path of its key is written." },
	{ .key = "record", .type = PL_CONF_CHOICE, AT(dta.record), .def = "event", .choices = records,
	  .help = "dta: record that is written: a report (path), each of its hops, or an event." },
	{ .key = "key", .type = PL_CONF_STRINGS, AT(dta.key), .max = PL_PACK_FIELDS_MAX,
	  .help = "dta: fields that are the key, of the record or, for a hop, of its report; flow stands for addresses, ports and protocol together. Records without one of them are left out and counted." },
	{ .key = "key_form", .type = PL_CONF_CHOICE, AT(dta.key_form), .def = "text", .choices = key_forms,
	  .help = "dta: form of the key, as region lookup --key-form asks for it: text, such as 7/3 for two fields; hex, the bytes of the fields one behind the other; u32, be32 and u64, one field that is a number." },
	{ .key = "value", .type = PL_CONF_STRINGS, AT(dta.value), .max = PL_PACK_FIELDS_MAX,
	  .help = "dta: fields that are the value, one behind the other; by default the whole record of 128 bytes. counters: the field that is added, by default 1; postcards: the value of a hop, by default node." },
	{ .key = "byte_order", .type = PL_CONF_CHOICE, AT(dta.byte_order), .def = "little", .choices = byte_orders,
	  .help = "dta: byte order of the numbers in values and in keys in hex. Whole records are always little-endian." },
	{ .key = "list", .type = PL_CONF_U64, AT(dta.list), .def = "0", .max = UINT32_MAX,
	  .help = "dta: list of append." },
	{ .key = "sequenced", .type = PL_CONF_BOOL, AT(dta.sequenced), .def = "true",
	  .help = "dta: with to, number the reports and send them again when the translator misses some; without it, reports lost on the way are not noticed." },
	{ .key = "immediate", .type = PL_CONF_BOOL, AT(dta.immediate), .def = "false",
	  .help = "dta: with to, mark every report as urgent: the translator writes it at once, a postcard with its path, and wakes the collector." },
	{ .key = "ring", .type = PL_CONF_U64, AT(dta.ring), .def = "8192", .min = 16, .max = 1 << 20,
	  .help = "dta: with to, reports that are kept until the translator has confirmed them, 1400 bytes each; records beyond are dropped and counted." },
	{ .key = "queue", .type = PL_CONF_U64, AT(queue_records), .def = "65536", .min = 1024, .max = 1 << 24,
	  .help = "Records (reports, hops and events count one each) that may wait per worker; records beyond are dropped and counted." },
	{ .key = "buffer", .type = PL_CONF_SIZE, AT(buffer_bytes), .def = "1MiB", .min = 1 << 19, .max = UINT64_C(1) << 30,
	  .help = "Size of the text that may wait while the file cannot be written." },
	{ .key = "url", .type = PL_CONF_STRING, AT(url), .check = pl_curl_url_check,
	  .help = "URL of the server: http://HOST:PORT or https://HOST, without credentials; remote_write also needs the path, usually /api/v1/write." },
	{ .key = "api", .type = PL_CONF_CHOICE, AT(api), .def = "v1", .choices = apis,
	  .help = "influx: version of the write API; v1 uses database and retention_policy, v2 uses org and bucket." },
	{ .key = "database", .type = PL_CONF_STRING, AT(database),
	  .help = "influx v1: the database. It must exist; pathline never creates or drops one." },
	{ .key = "retention_policy", .type = PL_CONF_STRING, AT(retention_policy),
	  .help = "influx v1: the retention policy; by default that of the database." },
	{ .key = "org", .type = PL_CONF_STRING, AT(org),
	  .help = "influx v2: the organization." },
	{ .key = "bucket", .type = PL_CONF_STRING, AT(bucket),
	  .help = "influx v2: the bucket. It must exist." },
	{ .key = "user", .type = PL_CONF_STRING, AT(user),
	  .help = "User name for basic authentication." },
	{ .key = "password_file", .type = PL_CONF_STRING, AT(password_file),
	  .help = "File whose first line is the password; read again when the server refuses it." },
	{ .key = "token_file", .type = PL_CONF_STRING, AT(token_file),
	  .help = "File whose first line is a token, instead of user and password." },
	{ .key = "gzip", .type = PL_CONF_BOOL, AT(gzip), .def = "true",
	  .help = "Compress requests with gzip." },
	{ .key = "interval", .type = PL_CONF_DURATION, AT(interval_ns), .def = "10s", .max = UINT64_C(86400000000000),
	  .help = "Interval at which the state of queues, ports, links and paths is sent; 0s means never." },
	{ .key = "max_keys", .type = PL_CONF_U64, AT(max_keys), .def = "10000", .min = 100, .max = 1 << 24,
	  .help = "influx: most distinct sets of tags written in a run; points beyond are written with the tag other." },
	{ .key = "labels", .type = PL_CONF_STRINGS, AT(labels), .max = PL_REMOTE_LABELS_MAX, .check = pl_remote_label_check,
	  .help = "NAME=VALUE. remote_write: added to every series; without any, job=pathline and instance=HOST. webhook: added to every alert." },
	{ .key = "form", .type = PL_CONF_CHOICE, AT(form), .def = "alertmanager", .choices = webhook_forms,
	  .help = "webhook: form of the requests: for an Alertmanager (/api/v2/alerts), or for a receiver, in the form in which an Alertmanager calls webhooks." },
	{ .key = "link", .type = PL_CONF_STRING, AT(link),
	  .help = "webhook: link in every alert, such as the URL of a dashboard." },
	{ .key = "repeat", .type = PL_CONF_DURATION, AT(repeat_ns), .def = "1m", .min = 1000000000, .max = UINT64_C(86400000000000),
	  .help = "webhook: interval at which a lasting alert is sent again; the Alertmanager ends it after three intervals without one." },
	{ .key = "resolve", .type = PL_CONF_DURATION, AT(resolve_ns), .def = "5m", .min = 1000000000, .max = UINT64_C(86400000000000),
	  .help = "webhook: time after which the alert of an event without an end is resolved." },
	{ .key = "max_series", .type = PL_CONF_U64, AT(max_series), .def = "262144", .min = 1000, .max = 1 << 24,
	  .help = "remote_write: largest number of series and histograms at a time; series beyond are refused and counted." },
	{ .key = "batch.entries", .type = PL_CONF_U64, AT(batch_entries), .def = "5000", .min = 1, .max = 100000,
	  .help = "Largest number of entries in a request." },
	{ .key = "batch.size", .type = PL_CONF_SIZE, AT(batch_bytes), .def = "1MiB", .min = 4096, .max = 32 << 20,
	  .help = "Largest number of bytes in a request, before compression." },
	{ .key = "batch.age", .type = PL_CONF_DURATION, AT(batch_age_ns), .def = "1s", .min = 1000000, .max = UINT64_C(3600000000000),
	  .help = "Longest time that a request waits to be filled." },
	{ .key = "memory", .type = PL_CONF_SIZE, AT(memory_bytes), .def = "16MiB", .min = 65536, .max = UINT64_C(1) << 34,
	  .help = "Size of the batches that may wait in memory; beyond it, the oldest go to the spool, or are dropped and counted without one." },
	{ .key = "timeout", .type = PL_CONF_DURATION, AT(timeout_ns), .def = "10s", .min = 100000000, .max = UINT64_C(600000000000),
	  .help = "Longest time for a request and its answer." },
	{ .key = "spool.path", .type = PL_CONF_STRING, AT(spool_path),
	  .help = "Folder that keeps entries on disk while the server does not accept them; without it entries wait in memory only." },
	{ .key = "spool.size", .type = PL_CONF_SIZE, AT(spool_bytes), .def = "1GiB", .min = 8 << 20, .max = UINT64_C(1) << 45,
	  .help = "Largest size of the spool on disk." },
	{ .key = "spool.within", .type = PL_CONF_DURATION, AT(spool_within_ns), .def = "1s", .min = 200000000, .max = UINT64_C(3600000000000),
	  .help = "Time within which every accepted entry is delivered or written to the spool; a crash loses at most this much." },
	{ .key = "spool.full", .type = PL_CONF_CHOICE, AT(spool_full), .def = "drop_oldest", .choices = when_full,
	  .help = "Entries to drop when the spool is full; they are counted." },
	{ .key = "dead_letter.path", .type = PL_CONF_STRING, AT(dead_letter_path),
	  .help = "File for entries that the server refuses, with its answer; by default dead-letter.jsonl in the folder of the spool." },
	{ .key = "dead_letter.size", .type = PL_CONF_SIZE, AT(dead_letter_bytes), .def = "64MiB", .min = 4096, .max = UINT64_C(1) << 40,
	  .help = "Largest size of the dead-letter file; entries beyond are only counted." },
	{ .key = "tls.ca", .type = PL_CONF_STRING, AT(tls.ca),
	  .help = "File of the CA certificates to trust instead of those of the system." },
	{ .key = "tls.cert", .type = PL_CONF_STRING, AT(tls.cert),
	  .help = "File of the client certificate." },
	{ .key = "tls.key", .type = PL_CONF_STRING, AT(tls.key),
	  .help = "File of the private key of the client certificate." },
	{ .key = "tls.insecure", .type = PL_CONF_BOOL, AT(tls.insecure), .def = "false",
	  .help = "Do not verify the certificate of the server. Anybody on the network path can then read and change the data." },
	{ 0 },
};
#undef AT

/* Keys of a quantity watched by level and for steps. T is the type of its values. */
#define LEVEL(name, T, is_on, at, what) \
	{ .key = "detect." #name ".enabled", .type = PL_CONF_BOOL, AT(detect.name.on), .def = is_on, \
	  .help = "Report an event when this value rises above its threshold, and when it is below again: " what "." }, \
	{ .key = "detect." #name ".threshold", .type = T, AT(detect.name.threshold), .def = at, .min = 0, .max = UINT32_MAX - 1, \
	  .help = "The event begins above this value; 0 means no absolute threshold." }, \
	{ .key = "detect." #name ".low", .type = T, AT(detect.name.low), .def = "0", .min = 0, .max = UINT32_MAX - 1, \
	  .help = "The event ends at or below this value; 0 means half of the threshold." }, \
	{ .key = "detect." #name ".relative", .type = PL_CONF_U64, AT(detect.name.relative), .def = "0", .min = 0, .max = 1000000, \
	  .help = "The event also begins this many per cent above the baseline of the place (see detect.learn); 0 means no relative threshold." }, \
	{ .key = "detect." #name ".relative_min", .type = T, AT(detect.name.relative_min), .def = "0", .min = 0, .max = UINT32_MAX - 1, \
	  .help = "Lower bound of the relative threshold." }, \
	{ .key = "detect." #name ".begin_hold", .type = PL_CONF_DURATION, AT(detect.name.begin_hold_ns), .def = "10ms", \
	  .help = "The event begins when every report was above for this time; 0s means with the first report." }, \
	{ .key = "detect." #name ".end_hold", .type = PL_CONF_DURATION, AT(detect.name.end_hold_ns), .def = "1s", \
	  .help = "The event ends when no report was above low for this time." }, \
	{ .key = "detect." #name ".step", .type = T, AT(detect.name.step), .def = "0", .min = 0, .max = UINT32_MAX - 1, \
	  .help = "Report an event when the value moved by more than this since the last event; 0 means never." }, \
	{ .key = "detect." #name ".step_relative", .type = PL_CONF_U64, AT(detect.name.step_relative), .def = "0", .min = 0, .max = 1000000, \
	  .help = "Report an event when the value moved by more than this many per cent since the last event; 0 means never." }, \
	{ .key = "detect." #name ".step_bits", .type = PL_CONF_U64, AT(detect.name.step_bits), .def = "0", .min = 0, .max = 31, \
	  .help = "Report an event when the value is in another interval of 2^step_bits than at the last event; 0 means never." }, \
	{ .key = "detect." #name ".step_first", .type = PL_CONF_BOOL, AT(detect.name.step_first), .def = "false", \
	  .help = "Report an event for the first value of each place." }, \
	{ .key = "detect." #name ".anomaly", .type = PL_CONF_BOOL, AT(detect.name.anomaly), .def = "false", \
	  .help = "Report an event when the value departs from the baseline of the place (see detect.learn)." }, \
	{ .key = "detect." #name ".anomaly_min", .type = T, AT(detect.name.anomaly_min), .def = "0", .min = 0, .max = UINT32_MAX - 1, \
	  .help = "A distance from the baseline up to this is no anomaly." }, \
	{ .key = "detect." #name ".limit_interval", .type = PL_CONF_DURATION, AT(detect.name.limit_interval_ns), .def = "0s", .max = UINT64_C(3600000000000), \
	  .help = "detect.limit_interval for this kind of event; 0 uses the common value." }, \
	{ .key = "detect." #name ".limit_burst", .type = PL_CONF_U64, AT(detect.name.limit_burst), .def = "0", .max = 1000, \
	  .help = "detect.limit_burst for this kind of event; 0 uses the common value." }

#define AT(member) .offset = offsetof(struct pl_config, member)
const struct pl_conf_row pl_config_rows[] = {
	{ .key = "sources", .type = PL_CONF_LIST, AT(sources), .rows = source_rows, .item_size = sizeof(struct pl_config_source), .max = MAX_SOURCES,
	  .help = "Where reports come in; without any, UDP ports 32766 and 54321, or none where there is dta.listen, rdma.interface or a tap." },
	{ .key = "profiles", .type = PL_CONF_LIST, AT(profiles), .rows = profile_rows, .item_size = sizeof(struct pl_config_profile), .max = MAX_PROFILES,
	  .help = "Settings of exporters that their reports do not carry, such as units and dialects." },
	{ .key = "units", .type = PL_CONF_LIST, AT(units), .rows = unit_rows, .item_size = sizeof(struct pl_config_unit), .max = PL_CORE_UNITS,
	  .help = "Units in which nodes report the occupancy of queues and buffers. Where they are known, thresholds of occupancies and reported occupancies are in bytes; otherwise both are in the node's own unit." },
	{ .key = "outputs", .type = PL_CONF_LIST, AT(outputs), .rows = output_rows, .item_size = sizeof(struct pl_config_output), .max = MAX_OUTPUTS,
	  .help = "Outputs of records and events, beside the metrics page." },
	{ .key = "pin", .type = PL_CONF_CHOICE, AT(pin), .def = "auto", .choices = pins,
	  .help = "Pin each worker to its own processor, near the NIC if that is known; auto: workers of interfaces only, if a processor stays free. Not changed by a reload." },
	{ .key = "user", .type = PL_CONF_STRING, AT(user), .check = check_user,
	  .help = "User to become once the sources are open, by name or number; all other files are opened as this user. Needs root. Not changed by a reload." },
	{ .key = "group", .type = PL_CONF_STRING, AT(group), .check = check_group,
	  .help = "Group to become; by default the user's. Not changed by a reload." },
	{ .key = "core_dumps", .type = PL_CONF_BOOL, AT(core_dumps), .def = "false",
	  .help = "Allow core files and debuggers; memory contains others' traffic. Not changed by a reload." },
	{ .key = "drain", .type = PL_CONF_DURATION, AT(drain_ns), .def = "4s", .min = 0, .max = UINT64_C(600000000000),
	  .help = "Longest time that a stop takes to deliver queued entries." },

	{ .key = "decode.max_exporters", .type = PL_CONF_U64, AT(decode.max_exporters), .def = "4096", .min = 1, .max = 1 << 20,
	  .help = "Exporters (address, node and hardware unit, each with its own sequence numbers) tracked per worker. When the table is full, sources (an address, for IPv6 a /64) have equal shares; an exporter not seen for detect.forget is replaced first." },
	{ .key = "decode.admit", .type = PL_CONF_CHOICE, AT(decode.admit), .def = "proven", .choices = admissions,
	  .help = "Time from which an exporter counts. proven: from its second report with consecutive sequence numbers; earlier reports are decoded, counted and delivered with the flag unproven, but make no series, flows, levels or events, because random bytes do not have consecutive numbers. Datagrams of tmpkt/1 wait until then. first: from its first report." },
	{ .key = "decode.max_paths", .type = PL_CONF_U64, AT(decode.max_paths), .def = "65536", .min = 1, .max = 1 << 24,
	  .help = "Largest number of paths remembered per worker." },
	{ .key = "decode.sequence_gap_max", .type = PL_CONF_U64, AT(decode.sequence_gap_max), .def = "65536", .min = 1, .max = 1 << 21,
	  .help = "Largest jump of the sequence number that counts as a loss; a larger one counts as a restart." },
	{ .key = "decode.latency_max", .type = PL_CONF_DURATION, AT(decode.latency_max_ns), .def = "2s", .min = 1, .max = UINT32_MAX,
	  .help = "Largest plausible hop or link latency; larger ones are left out. At most 4.29 s, the range of 32-bit times." },
	{ .key = "decode.gre_int_ethertype", .type = PL_CONF_U64, AT(decode.gre_int_ethertype), .def = "0", .min = 0, .max = 65535,
	  .help = "GRE protocol type that announces INT; none is assigned. 0 means none." },
	{ .key = "decode.geneve_int_class", .type = PL_CONF_U64, AT(decode.geneve_int_class), .def = "0x103", .min = 1, .max = 65535,
	  .help = "Geneve option class that announces INT." },
	{ .key = "decode.vxlan_ports", .type = PL_CONF_STRINGS, AT(decode.vxlan_ports), .max = PL_PORTS_MAX - 1, .check = pl_config_check_port,
	  .help = "UDP ports of VXLAN beside 4789; none given: 8472, which older networks use. 4789 alone: no other." },
	{ .key = "decode.ioam_time", .type = PL_CONF_STRINGS, AT(decode.ioam_time), .max = PL_IOAM_NAMESPACES_MAX, .check = check_ioam_time,
	  .help = "Time format of IOAM namespaces: NAMESPACE=posix, =ptp or =ntp; all others are posix, as Linux writes it." },

	{ .key = "aggregate.max_queues", .type = PL_CONF_U64, AT(aggregate.max_queues), .def = "1024", .min = 1, .max = 1 << 20,
	  .help = "Largest number of queues with their own series; all others share one." },
	{ .key = "aggregate.max_ports", .type = PL_CONF_U64, AT(aggregate.max_ports), .def = "1024", .min = 1, .max = 1 << 20,
	  .help = "Largest number of egress ports with their own series." },
	{ .key = "aggregate.max_links", .type = PL_CONF_U64, AT(aggregate.max_links), .def = "1024", .min = 1, .max = 1 << 20,
	  .help = "Largest number of links with their own series." },
	{ .key = "aggregate.max_paths", .type = PL_CONF_U64, AT(aggregate.max_paths), .def = "1024", .min = 1, .max = 1 << 20,
	  .help = "Largest number of paths with their own series." },
	{ .key = "aggregate.idle", .type = PL_CONF_DURATION, AT(aggregate.idle_ns), .def = "5m", .min = 1000000000, .max = UINT64_C(864000000000000),
	  .help = "A queue, port, link or path not seen for this time loses its series." },
	{ .key = "aggregate.slot", .type = PL_CONF_DURATION, AT(aggregate.slot_ns), .def = "15s", .min = 100000000, .max = UINT64_C(3600000000000),
	  .help = "Length of the time slots for which maxima are kept; use at least the scrape interval." },

	{ .key = "detect.where", .type = PL_CONF_CHOICE, AT(detect_where), .def = "user", .choices = wheres,
	  .help = "Where events are detected in reports of afxdp: sources. user: in user space. kernel: in the kernel; outputs get events, and only the reports that the kernel escalates. both: in the kernel, and every report also goes to outputs and metrics page. auto: both if an output takes reports or a query paths or hops, and detect.copy selects none, else kernel. If the kernel cannot detect, user space does, and the log says why. Not changed by a reload." },
	{ .key = "detect.aggregates", .type = PL_CONF_BOOL, AT(detect_aggregates), .def = "true",
	  .help = "With detection in the kernel only: the kernel also counts for the metrics page and for intervals (queues, ports, links, paths; histograms by powers of two). Without it, those contain only escalated reports. Not changed by a reload." },
	{ .key = "detect.copy.sample", .type = PL_CONF_U64, AT(copy.sample), .def = "0", .min = 0, .max = UINT32_MAX,
	  .help = "With detection in the kernel: copy 1 in this many reports to user space, for outputs that take reports and for tail; 0 means none." },
	{ .key = "detect.copy.address", .type = PL_CONF_STRING, AT(copy.address), .check = check_address,
	  .help = "Also copy all reports on flows from or to this address; with node or flags, only reports that match all of them." },
	{ .key = "detect.copy.node", .type = PL_CONF_STRING, AT(copy.node), .check = pl_config_check_number,
	  .help = "Copy only reports of this node or of packets that passed it." },
	{ .key = "detect.copy.flags", .type = PL_CONF_STRINGS, AT(copy.flags), .max = 16, .check = check_flag,
	  .help = "Copy only reports with one of these flags, such as dropped or congested (\"pathline help fields\" lists them)." },
	{ .key = "detect.path_change", .type = PL_CONF_BOOL, AT(detect.path_change), .def = "true",
	  .help = "Report an event when a flow takes another path." },
	{ .key = "detect.report_loss", .type = PL_CONF_BOOL, AT(detect.report_loss), .def = "true",
	  .help = "Report an event when reports of an exporter are missing, and its end when none was missing for loss_hold." },
	{ .key = "detect.loss_hold", .type = PL_CONF_DURATION, AT(detect.loss_hold_ns), .def = "10s", .min = 1000000, .max = UINT64_C(3600000000000),
	  .help = "A loss ends when nothing more was lost for this time." },
	{ .key = "detect.packet_loss", .type = PL_CONF_BOOL, AT(detect.packet_loss), .def = "true",
	  .help = "Report an event when packets of a flow are missing by the sequence numbers of its source (GEANT, hosts, IOAM) while no reports are missing, and its end when none was missing for loss_hold. With detection in the kernel such reports are escalated to user space." },
	{ .key = "detect.reordering", .type = PL_CONF_BOOL, AT(detect.reordering), .def = "false",
	  .help = "Report an event when packets of a flow with such sequence numbers are reordered, and its end when none was for loss_hold." },
	{ .key = "detect.packet_drop", .type = PL_CONF_BOOL, AT(detect.packet_drop), .def = "true",
	  .help = "Report an event for drop reports." },
	{ .key = "detect.loop", .type = PL_CONF_BOOL, AT(detect.loop), .def = "true",
	  .help = "Report an event when a packet passed a node twice." },
	{ .key = "detect.flow_start", .type = PL_CONF_BOOL, AT(detect.flow_start), .def = "false",
	  .help = "Report an event for every new flow. The limits do not apply: every flow is a key of its own." },
	{ .key = "detect.flow_end", .type = PL_CONF_BOOL, AT(detect.flow_end), .def = "false",
	  .help = "Report an event for every flow not seen for flow_idle." },
	LEVEL(queue_depth, PL_CONF_U64, "true", "1000", "a queue's depth, in bytes where units has the node, else in the node's unit"),
	LEVEL(hop_latency, PL_CONF_DURATION, "true", "1ms", "the time a packet takes through a node"),
	LEVEL(link_latency, PL_CONF_DURATION, "false", "1ms", "the time a packet takes over a link"),
	LEVEL(flow_latency, PL_CONF_DURATION, "false", "5ms", "the time a flow's packets take through all nodes together"),
	LEVEL(tx_util, PL_CONF_U64, "false", "80", "an egress port's utilization, in the exporters' unit"),
	LEVEL(buffer_depth, PL_CONF_U64, "false", "1000", "a buffer's occupancy, in bytes where units has the node, else in the node's unit"),
	{ .key = "detect.microburst.enabled", .type = PL_CONF_BOOL, AT(detect.microburst.on), .def = "false",
	  .help = "Report an event for queues that build up and drain within microburst.max, with the flows that sent most and those delayed most." },
	{ .key = "detect.microburst.threshold", .type = PL_CONF_U64, AT(detect.microburst.threshold), .def = "100", .min = 1, .max = UINT32_MAX - 1,
	  .help = "Queue depth above which a microburst begins, in bytes where units has the node, else in the node's unit." },
	{ .key = "detect.microburst.max", .type = PL_CONF_DURATION, AT(detect.microburst.max_ns), .def = "10ms", .min = 1000, .max = UINT64_C(60000000000),
	  .help = "Longest duration of a microburst." },
	{ .key = "detect.microburst.flows", .type = PL_CONF_U64, AT(detect.microburst.flows), .def = "3", .min = 0, .max = PL_CORE_BURST_FLOWS,
	  .help = "Number of culprits and of victims that are reported for each microburst, one event each." },
	{ .key = "detect.learn.window", .type = PL_CONF_DURATION, AT(detect.learn.window_ns), .def = "1s", .min = 1000000, .max = UINT64_C(3600000000000),
	  .help = "Length of the windows from which the baseline of a place is learned." },
	{ .key = "detect.learn.windows", .type = PL_CONF_U64, AT(detect.learn.windows), .def = "30", .min = 2, .max = 1000000,
	  .help = "Number of windows with values before relative thresholds and anomalies apply." },
	{ .key = "detect.learn.weight", .type = PL_CONF_U64, AT(detect.learn.shift), .def = "5", .min = 1, .max = 20,
	  .help = "Each window moves the baseline by 2^-weight of the difference: with 5 it is a mean of about 32 windows." },
	{ .key = "detect.learn.deviations", .type = PL_CONF_U64, AT(detect.learn.deviations), .def = "6", .min = 1, .max = 100000,
	  .help = "A value further from the baseline than this many mean absolute deviations is an anomaly." },
	{ .key = "detect.learn.begin_hold", .type = PL_CONF_DURATION, AT(detect.learn.begin_hold_ns), .def = "0s",
	  .help = "Time for which values must be that far away before an anomaly begins." },
	{ .key = "detect.learn.end_hold", .type = PL_CONF_DURATION, AT(detect.learn.end_hold_ns), .def = "100ms",
	  .help = "Time for which values must be back near the baseline before an anomaly ends." },
	{ .key = "detect.node_silent", .type = PL_CONF_DURATION, AT(detect.node_silent_ns), .def = "0s", .max = UINT64_C(864000000000000),
	  .help = "Report an event when a node was not seen for this time, and when it is seen again; 0 means never." },
	{ .key = "detect.keepalive", .type = PL_CONF_DURATION, AT(detect.keepalive_ns), .def = "0s", .max = UINT64_C(864000000000000),
	  .help = "Report an event for every active flow once per this time, even if nothing changes; 0 means never." },
	{ .key = "detect.max_flows", .type = PL_CONF_U64, AT(detect.max_flows), .def = "131072", .min = 8, .max = 1 << 26,
	  .help = "Largest number of flows whose path is remembered, per worker." },
	{ .key = "detect.max_queues", .type = PL_CONF_U64, AT(detect.max_queues), .def = "4096", .min = 8, .max = 1 << 20,
	  .help = "Largest number of queues remembered, per worker." },
	{ .key = "detect.max_links", .type = PL_CONF_U64, AT(detect.max_links), .def = "4096", .min = 8, .max = 1 << 20,
	  .help = "Largest number of links remembered, per worker; also the largest number of ports and buffers together." },
	{ .key = "detect.flow_idle", .type = PL_CONF_DURATION, AT(detect.flow_idle_ns), .def = "60s", .min = 1000000, .max = UINT64_C(864000000000000),
	  .help = "A flow not seen for longer counts as a new flow: no path change is reported." },
	{ .key = "detect.idle", .type = PL_CONF_DURATION, AT(detect.idle_ns), .def = "5s", .min = 1000000, .max = UINT64_C(3600000000000),
	  .help = "A level event ends when its place is not seen for this time." },
	{ .key = "detect.forget", .type = PL_CONF_DURATION, AT(detect.forget_ns), .def = "10m", .min = 1000000000, .max = UINT64_C(864000000000000),
	  .help = "A queue, port or link not seen for this time is forgotten." },
	{ .key = "detect.limit_interval", .type = PL_CONF_DURATION, AT(detect.limit_interval_ns), .def = "1s", .min = 1000000, .max = UINT64_C(3600000000000),
	  .help = "After a burst, at most one event of one kind and place per this time." },
	{ .key = "detect.limit_burst", .type = PL_CONF_U64, AT(detect.limit_burst), .def = "5", .min = 1, .max = 1000,
	  .help = "Largest number of events of one kind and place at once." },

	{ .key = "metrics.max_exporters", .type = PL_CONF_U64, AT(metrics.max_exporters), .def = "256", .min = 0, .max = 65536,
	  .help = "Largest number of exporters with their own series; all others share one." },
	{ .key = "metrics.buckets", .type = PL_CONF_CHOICE, AT(metrics.buckets), .def = "2", .choices = bucket_factors,
	  .help = "Factor between the bounds of histogram buckets; a smaller factor is more exact and makes more series." },

#include "pipeline/config_services.def"

	{ .key = "web.listen", .type = PL_CONF_STRING, AT(web.listen), .def = "127.0.0.1:8400", .check = check_listen,
	  .help = "Address and port of the metrics page, or off. Not changed by a reload." },
	{ .key = "web.names", .type = PL_CONF_STRINGS, AT(web.names), .max = 32,
	  .help = "Host names that the server answers to, beside localhost and the name of this host. Not changed by a reload." },
	{ .key = "web.max_connections", .type = PL_CONF_U64, AT(web.max_connections), .def = "128", .min = 1, .max = 4096,
	  .help = "Largest number of connections. At the limit, a new connection replaces an idle one; /healthz and /readyz are answered beyond it. Not changed by a reload." },
	{ .key = "web.max_per_address", .type = PL_CONF_U64, AT(web.max_per_address), .def = "16", .min = 1, .max = 4096,
	  .help = "Largest number of connections from one address, or from one /64 of IPv6. Not changed by a reload." },

	{ .key = "web.max_streams", .type = PL_CONF_U64, AT(web.max_streams), .def = "8", .min = 1, .max = 256,
	  .help = "Largest number of live streams (pathline tail) at a time. At the limit, a new stream replaces one of an address with more streams. Not changed by a reload." },
	{ .key = "web.stream_buffer", .type = PL_CONF_SIZE, AT(web.stream_buffer), .def = "1MiB", .min = 64 << 10, .max = 64 << 20,
	  .help = "Size of the data that may wait for each client of a stream; entries beyond are dropped and counted, and the client is notified. Not changed by a reload." },
	{ .key = "web.config_file", .type = PL_CONF_STRING, AT(web.config_file),
	  .help = "File with TLS settings and passwords, in the format of the exporter-toolkit of Prometheus; read again by a reload. See docs/guide/web.md (installed with the program)." },
	{ .key = "web.socket", .type = PL_CONF_STRING, AT(web.socket),
	  .help = "Path of a Unix socket that serves the same pages to its owner and group, such as /run/pathline-run/pathline.sock. Not changed by a reload." },

	{ .key = "log.level", .type = PL_CONF_CHOICE, AT(log.level), .def = "info", .choices = log_levels,
	  .help = "Least important level that is logged." },
	{ .key = "log.format", .type = PL_CONF_CHOICE, AT(log.format), .def = "auto", .choices = log_formats,
	  .help = "Format of log lines; auto is text on a terminal, else logfmt." },
	{ 0 },
};
#undef AT
/* clang-format on */

_Static_assert((int)PL_LOG_DEBUG == 4 && (int)PL_LOG_JSON == 3,
	"choices of log.* are in the order of the enums");
_Static_assert((int)PL_DIALECT_MAX == 6, "choices of dialect are in the order of the enum");
