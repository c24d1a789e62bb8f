/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of taps. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "export/ipfix_out.h"
#include "flow/cache.h"
#include "kafka/kafka.h"
#include "lang/lang.h"
#include "netio/port.h"
#include "netio/uri.h"
#include "pipeline/config.h"
#include "pipeline/config_words.h"
#include "pipeline/tap_to.h"
#include "tap/drops.h"
#include "tap/kernel.h"
#include "tap/source.h"

#define NAME_BYTES 32

/* In the order of enum pl_config_tap_records. */
static const char *const records[] = { "packets", "flows", "dns", "drops", NULL };

static int check_name(const char *value, struct pl_diag *diag)
{
	const size_t n =
		strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

	if (pl_config_query_stream(value) != PL_QUERY_STREAMS)
		return pl_diag_fail(diag, -EINVAL,
			"no tap is called \"%s\": in the key from of queries that is what this process collects",
			value);
	if (n > 0 && n <= NAME_BYTES && value[n] == '\0')
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"the name of a tap has 1 to %d letters, digits, '_', '-' and '.'", NAME_BYTES);
}

static int check_source(const char *value, struct pl_diag *diag)
{
	const uint32_t can = pl_port_uri_can(value);
	char port[PL_URI_TEXT_MAX];
	int r;

	if (pl_tap_kernel_is(value))
		return pl_tap_kernel_check(value, false, diag);
	if (pl_tap_drops_is(value))
		return pl_tap_drops_check(value, diag);
	/* A misspelt scheme must not pass for a file name. */
	if (pl_port_uri_scheme(value) == NULL || strcmp(value, "pcap:-") == 0 ||
		strncmp(value, "kafka:", 6) == 0 ||
		((can & PL_PORT_CAN_LIVE) != 0 &&
			(can & (PL_PORT_CAN_INTERFACE | PL_PORT_CAN_DATAGRAMS)) == 0))
		return pl_diag_fail(diag, -EINVAL,
			"\"%s\" is no source of a tap: packet:INTERFACE, afxdp:INTERFACE, xdp:INTERFACE, "
			"tc:INTERFACE, drops:, "
			"udp://HOST:PORT (records as tmpkt/1) or pcap:FILE",
			value);
	r = pl_tap_source_tmpkt(value, port, sizeof(port), diag);
	return r < 0 || pl_port_uri_sockets(port, diag) < 0 ? -EINVAL : 0;
}

static int check_rule(const char *value, struct pl_diag *diag)
{
	struct pl_tap_rules rules = { .payloads = true };

	return pl_tap_rules_add(&rules, value, diag);
}

/* Kinds of outputs; `path`: KIND:PATH, the others KIND://…. */
static const struct {
	const char *kind;
	bool path;
} outputs[] = { { "udp", false }, { "kafka", false }, { "clickhouse", false }, { "ipfix", false },
	{ "influx", false }, { "dta", false }, { "region", true }, { "jsonl", true },
	{ "file", true } };

/* Returns -ENOTSUP with diag when this build lacks the kind. */
static int check_built(const char *kind, struct pl_diag *diag)
{
	if (strcmp(kind, "kafka") == 0)
		return pl_kafka_check(diag);
	return strcmp(kind, "ipfix") == 0 ? pl_ipfix_built(diag) : 0;
}

int pl_tap_to_check(const char *uri, struct pl_diag *diag)
{
	const size_t kind = strcspn(uri, ":");
	const char *rest = uri + kind + (uri[kind] == ':');
	const char *why =
		uri[kind] == '\0' && strchr(uri, '/') != NULL ? " (a file is file:PATH)" : "";

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		if (strlen(outputs[i].kind) != kind || strncmp(uri, outputs[i].kind, kind) != 0)
			continue;
		if (uri[kind] == '\0') {
			why = ", there is nothing behind its kind";
		} else if (outputs[i].path && (*rest == '\0' || *rest == '?')) {
			return pl_diag_fail(diag, -EINVAL,
				"'%s': no path behind the colon; write %s:PATH", uri,
				outputs[i].kind);
		} else {
			return check_built(outputs[i].kind, diag);
		}
	}
	return pl_diag_fail(diag, -EINVAL,
		"'%s' is no output%s: records of a tap go to udp://HOST:PORT, kafka://HOST/TOPIC, "
		"clickhouse://HOST/TABLE, ipfix://HOST (flows, marks), influx://HOST/DATABASE, dta://HOST, "
		"region:PATH, jsonl:PATH or file:PATH",
		uri, why);
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct pl_config_tap, member)
const struct pl_conf_row pl_config_tap_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "eth0", .check = check_name,
	  .help = "Name of the tap, for the metrics page." },
	{ .key = "sources", .type = PL_CONF_STRINGS, AT(sources), .required = true, .def = "[\"packet:eth0\"]", .min = 1, .max = 32, .check = check_source,
	  .help = "Sources of the tap's packets: packet:INTERFACE (copies of packets that enter and leave), afxdp:INTERFACE (takes entering packets from the host), xdp:INTERFACE (the kernel makes records of entering packets), tc:INTERFACE (the kernel makes records of both directions), drops: or drops:INTERFACE (packets that the kernel drops; records: drops), udp://HOST:PORT (records that others send as tmpkt/1), or pcap:FILE, which is read once." },
	{ .key = "rules", .type = PL_CONF_STRINGS, AT(rules), .max = PL_TAP_RULES_MAX, .check = check_rule,
	  .help = "Which packets become records, such as \"skip proto=udp port=53\" or \"take net=10.0.0.0/8 sample=100\"; the first rule that matches decides. Changed by a reload." },
	{ .key = "point", .type = PL_CONF_U64, AT(point), .def = "0", .max = PL_OBS_POINT_MASK,
	  .help = "Number of this observation point, in every record; several interfaces are numbered from this number on (from 1 if it is 0). Changed by a reload." },
	{ .key = "inner", .type = PL_CONF_BOOL, AT(inner), .def = "false",
	  .help = "Use the addresses and ports of the inner packet for packets in a tunnel." },
	{ .key = "vxlan_ports", .type = PL_CONF_STRINGS, AT(vxlan_ports), .max = PL_PORTS_MAX - 1, .check = pl_config_check_port,
	  .help = "UDP ports of VXLAN beside 4789, for inner and for frames of several packets; none given: 8472. 4789 alone: no other." },
	{ .key = "records", .type = PL_CONF_CHOICE, AT(records), .def = "packets", .choices = records,
	  .help = "Kind of records for the outputs of the key to: of packets, of flows (both directions of a connection, with round-trip times and retransmissions), of DNS messages, or of drops: packets that the kernel drops, with its reasons." },
	{ .key = "to", .type = PL_CONF_STRINGS, AT(to), .max = 8, .check = pl_tap_to_check,
	  .help = "Where its records go: udp://HOST:PORT (tmpkt/1), kafka://HOST/TOPIC, clickhouse://HOST/TABLE, ipfix://HOST (records: flows), influx://HOST/DATABASE, dta://HOST, region:PATH, jsonl:PATH, file:PATH." },
	{ .key = "exporter", .type = PL_CONF_U64, AT(exporter), .def = "0", .max = UINT32_MAX,
	  .help = "Number that identifies this exporter in tmpkt/1 datagrams, and its observation domain in IPFIX." },
	{ .key = "flows.idle", .type = PL_CONF_DURATION, AT(flows.idle_ns), .def = "15s", .min = 1000000, .max = PL_FLOW_IDLE_MAX,
	  .help = "Time without packets after which a flow is over." },
	{ .key = "flows.active", .type = PL_CONF_DURATION, AT(flows.active_ns), .def = "1m", .min = 1000000, .max = PL_FLOW_ACTIVE_MAX,
	  .help = "A flow that has not ended gets a record at this interval." },
	{ .key = "flows.table", .type = PL_CONF_U64, AT(flows.table), .def = "65536", .min = 16, .max = PL_FLOW_MAX_FLOWS,
	  .help = "Largest number of flows at a time; a further flow evicts another." },
	{ .key = "flows.state", .type = PL_CONF_STRING, AT(flows.state),
	  .help = "File that keeps the flows of live sources when the process ends, best on tmpfs; the next process continues them. Without it the flows end with the process." },
	{ 0 },
};
#undef AT
/* clang-format on */

/* Returns the file that an output writes; *ret_len 0: none. */
static const char *file_of(const char *to, size_t *ret_len)
{
	const size_t kind = strncmp(to, "file:", 5) == 0    ? 5
			    : strncmp(to, "jsonl:", 6) == 0 ? 6
							    : 0;

	*ret_len = kind != 0 ? strcspn(to + kind, "?") : 0;
	return to + kind;
}

/* Returns whether an output of the list writes the same file. */
static bool is_written(const struct pl_conf_list *list, const char *to)
{
	char *const *items = list->items;
	size_t n, len;
	const char *file = file_of(to, &n);

	for (size_t i = 0; i < list->n && n > 0; i++) {
		const char *other = file_of(items[i], &len);

		if (len == n && memcmp(other, file, n) == 0)
			return true;
	}
	return false;
}

static bool is_capture(const char *source)
{
	return !pl_tap_kernel_is(source) && !pl_tap_drops_is(source) &&
	       (pl_port_uri_can(source) & PL_PORT_CAN_LIVE) == 0;
}

static int check_tap(const struct pl_config *c, const struct pl_config_tap *t, struct pl_diag *diag)
{
	const struct pl_config_source *of_reports = c->sources.items;
	char *const *sources = t->sources.items;

	for (size_t i = 0; i < t->sources.n; i++) {
		for (size_t k = 0; k < c->sources.n; k++) {
			if (strcmp(of_reports[k].uri, sources[i]) != 0 || is_capture(sources[i]))
				continue;
			return pl_diag_fail(diag, -EINVAL,
				"tap %s: %s is a source of reports already (the key sources)",
				t->name, sources[i]);
		}
	}
	return 0;
}

int pl_config_check_taps(const struct pl_config *c, struct pl_diag *diag)
{
	const struct pl_config_tap *t = c->taps.items;

	for (size_t i = 0; i < c->taps.n; i++) {
		char *const *to = t[i].to.items;

		if (check_tap(c, &t[i], diag) < 0)
			return -EINVAL;
		for (size_t k = 0; k < i; k++) {
			const char *what = strcmp(t[i].name, t[k].name) == 0 ? "name" : NULL;

			for (size_t n = 0; n < t[i].to.n && what == NULL; n++)
				what = is_written(&t[k].to, to[n]) ? "file" : NULL;
			if (what == NULL)
				continue;
			return pl_diag_fail(diag, -EINVAL, "taps %zu and %zu have the same %s",
				k + 1, i + 1, what);
		}
	}
	return 0;
}

void pl_config_tap_rules(const struct pl_config_tap *tap, struct pl_tap_rules *ret)
{
	char *const *texts = tap->rules.items;

	*ret = (struct pl_tap_rules){ .payloads = true };
	for (size_t i = 0; i < tap->rules.n; i++)
		(void)pl_tap_rules_add(ret, texts[i], NULL);
}

static void dump(const struct pl_config *c, struct pl_buf *out)
{
	const struct pl_config_tap *t = c->taps.items;

	for (size_t i = 0; i < c->taps.n; i++) {
		struct pl_config_tap fixed = t[i];

		fixed.rules = (struct pl_conf_list){ .items = NULL };
		fixed.point = 0;
		pl_conf_dump(pl_config_tap_rows, &fixed, out);
	}
}

bool pl_config_same_taps(const struct pl_config *a, const struct pl_config *b)
{
	return pl_config_same(a, b, dump);
}
