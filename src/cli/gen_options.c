/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the options of "pathline gen". */
#include "cli/gen_options.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "cli/command.h"
#include "gen/event.h"
#include "gen/malform.h"
#include "gen/preset.h"

#define TOPOLOGY_MAX (1u << 20)
#define ROWS_MAX     96

/* As given on the command line; zero, NULL or negative = not given. */
static struct {
	const char *preset, *topology, *latency, *link, *queue, *util;
	const char *report, *version, *mode, *carrier, *dialect, *inner, *sink, *announce, *fields;
	const char *outer_ip, *inner_ip, *file, *proto;
	const char *ioam_options, *ioam_place, *ioam_type, *ioam_flags, *ioam_time;
	struct pl_opt_list events, malforms;
	uint64_t seed, flows, count, duration_ns, start_ns, first_seq, queue_report,
		clock_offset_ns;
	uint64_t hw_id, payload, npt, ds_words, source_words, reports, tcp_options, dscp, port,
		max_hops, flush_hops, gpe_chain, ip_options;
	uint64_t hops, events_per_s;
	uint64_t ioam_ns, ioam_nodes, ioam_snapshot;
	double rate, loss, duplicate, reorder, drop, missing, fragments;
	bool tcp_before_options, instrumented, flood, dry_run, story, tlv, destination_shim;
	bool ioam_seq_64;
} o;

/* A word and its number. */
struct word {
	const char *name;
	int value;
};

/* clang-format off */
static const struct word reports[] = { { "none", PL_GEN_REPORT_NONE }, { "0.5", PL_GEN_REPORT_V05 }, { "1.0", PL_GEN_REPORT_V10 }, { "2.0", PL_GEN_REPORT_V20 }, { 0 } };
static const struct word versions[] = { { "0.5", PL_GEN_INT_V05 }, { "1.0", PL_GEN_INT_V10 }, { "2.1", PL_GEN_INT_V21 }, { 0 } };
static const struct word modes[] = { { "md", PL_GEN_MD }, { "mx", PL_GEN_MX }, { "xd", PL_GEN_XD }, { 0 } };
static const struct word carriers[] = { { "udp", PL_GEN_UDP }, { "tcp", PL_GEN_TCP }, { "gre", PL_GEN_GRE }, { "vxlan-gpe", PL_GEN_GPE }, { "geneve", PL_GEN_GENEVE }, { 0 } };
static const struct word dialects[] = { { "spec", PL_DIALECT_SPEC }, { "intcollector", PL_DIALECT_INTCOLLECTOR }, { "geant", PL_DIALECT_GEANT }, { "noviflow", PL_DIALECT_NOVIFLOW }, { "host-int", PL_DIALECT_HOST_INT }, { "v0.4", PL_DIALECT_V04 }, { 0 } };
static const struct word inners[] = { { "ethernet", PL_GEN_ETHERNET }, { "vlan", PL_GEN_VLAN }, { "qinq", PL_GEN_QINQ }, { "mpls", PL_GEN_MPLS }, { "vxlan", PL_GEN_VXLAN }, { "ip", PL_GEN_IP }, { 0 } };
static const struct word protos[] = { { "tcp", PL_GEN_PROTO_TCP }, { "udp", PL_GEN_PROTO_UDP }, { "icmp", PL_GEN_PROTO_ICMP }, { 0 } };
static const struct word sinks[] = { { "stack", PL_GEN_SINK_STACK }, { "header", PL_GEN_SINK_HEADER }, { "both", PL_GEN_SINK_BOTH }, { 0 } };
static const struct word announces[] = { { "dscp", PL_GEN_ANNOUNCE_DSCP }, { "port", PL_GEN_ANNOUNCE_PORT }, { "marker", PL_GEN_ANNOUNCE_MARKER }, { 0 } };
static const struct word fields[] = {
	{ "node", 0x8000 }, { "ports", 0x4000 }, { "latency", 0x2000 }, { "queue", 0x1000 }, { "ingress-ts", 0x0800 }, { "egress-ts", 0x0400 },
	{ "ports2", 0x0200 }, { "congestion", 0x0200 }, { "tx-util", 0x0100 }, { "buffer", 0x0080 }, { "checksum", 0x0001 }, { 0 } };
static const struct word ioam_options[] = {
	{ "trace", PL_GEN_IOAM_TRACE }, { "incremental", PL_GEN_IOAM_INCREMENTAL }, { "e2e", PL_GEN_IOAM_E2E }, { "pot", PL_GEN_IOAM_POT }, { "dex", PL_GEN_IOAM_DEX }, { 0 } };
static const struct word ioam_fields[] = {
	{ "node", PL_IOAM_BIT(0) }, { "interfaces", PL_IOAM_BIT(1) }, { "time", PL_IOAM_BIT(2) | PL_IOAM_BIT(3) }, { "delay", PL_IOAM_BIT(4) }, { "data", PL_IOAM_BIT(5) },
	{ "queue", PL_IOAM_BIT(6) }, { "checksum", PL_IOAM_BIT(7) }, { "node-wide", PL_IOAM_BIT(8) }, { "interfaces-wide", PL_IOAM_BIT(9) }, { "data-wide", PL_IOAM_BIT(10) },
	{ "buffer", PL_IOAM_BIT(11) }, { "snapshot", PL_IOAM_SNAPSHOT }, { 0 } };
static const struct word ioam_flags[] = { { "overflow", PL_IOAM_OVERFLOW }, { "loopback", PL_IOAM_LOOPBACK }, { "active", PL_IOAM_ACTIVE }, { 0 } };
static const struct word ioam_times[] = { { "posix", PL_GEN_IOAM_POSIX }, { "ptp", PL_GEN_IOAM_PTP }, { "ntp", PL_GEN_IOAM_NTP }, { 0 } };

#define WORDS(name, ...) static const char *const name[] = { __VA_ARGS__, NULL }
WORDS(report_words, "none", "0.5", "1.0", "2.0");
WORDS(version_words, "0.5", "1.0", "2.1");
WORDS(mode_words, "md", "mx", "xd");
WORDS(carrier_words, "udp", "tcp", "gre", "vxlan-gpe", "geneve");
WORDS(ioam_carrier_words, "udp", "tcp");
WORDS(dialect_words, "spec", "intcollector", "geant", "noviflow", "host-int", "v0.4");
WORDS(inner_words, "ethernet", "vlan", "qinq", "mpls", "vxlan", "ip");
WORDS(proto_words, "tcp", "udp", "icmp");
WORDS(sink_words, "stack", "header", "both");
WORDS(announce_words, "dscp", "port", "marker");
WORDS(ip_words, "4", "6");
WORDS(place_words, "hop-by-hop", "destination", "usual");
WORDS(time_words, "posix", "ptp", "ntp");

static const struct pl_opt common[] = {
	{ PL_OPT_HEADING, .name = "Destination and amount" },
	{ PL_OPT_STRING, 'w', "write", &o.file, "FILE", "write a capture file (- is standard output)" },
	{ PL_OPT_RATE, 'r', "rate", &o.rate, "RATE", "reports or packets per second (default 1000, or the preset's)" },
	{ PL_OPT_COUNT, 'n', "count", &o.count, "N", "stop after N packets" },
	{ PL_OPT_DURATION, 'd', "duration", &o.duration_ns, "TIME", "stop after this time" },
	{ PL_OPT_U64, 0, "seed", &o.seed, "N", "the same seed gives the same packets (default 1)" },
	{ PL_OPT_DURATION, 0, "start", &o.start_ns, "TIME", "time of the first packet in a file, since 1970 (default 1700000000s)" },
	{ PL_OPT_FLAG, 0, "dry-run", &o.dry_run, NULL, "make the packets, send nothing, print the account" },
	{ PL_OPT_HEADING, .name = "The network" },
	{ PL_OPT_STRING, 't', "topology", &o.topology, "NET", "chain:N, ring:N, leaf-spine:LxS, fat-tree:K, random:N,DEGREE, links:A-B,… or @FILE (default leaf-spine:4x2)" },
	{ PL_OPT_U64, 0, "flows", &o.flows, "N", "flows through it (default 100)" },
	{ PL_OPT_STRING, 0, "latency", &o.latency, "DIST", "time within a node: const:V, uniform:A,B, exp:MEAN, normal:MEAN,SD, pareto:MIN,SHAPE (default exp:2us)" },
	{ PL_OPT_STRING, 0, "link", &o.link, "DIST", "time between nodes (default const:1us)" },
	{ PL_OPT_STRING, 0, "queue", &o.queue, "DIST", "queue depth (default exp:20)" },
	{ PL_OPT_STRING, 0, "util", &o.util, "DIST", "egress utilization (default uniform:0,100)" },
	{ PL_OPT_DURATION, 0, "clock-offset", &o.clock_offset_ns, "TIME", "largest clock offset of a node" },
	{ PL_OPT_DOUBLE, 0, "missing", &o.missing, "SHARE", "share of values that are not available" },
	{ PL_OPT_LIST, 'e', "event", &o.events, "EVENT", "KIND@START[+DURATION][:KEY=VALUE,…]; KIND is path (link=A-B), queue (node, port, queue, depth), loss (ratio, node), drop (ratio, node, reason), restart (node); every=TIME repeats it" },
	{ PL_OPT_FLAG, 0, "story", &o.story, NULL, "the demonstration's events: path change, queue build-up, lost reports" },
	{ PL_OPT_HEADING, .name = "Damage" },
	{ PL_OPT_LIST, 'm', "malform", &o.malforms, "NAME[:SHARE]", "damage packets; all uses every kind that fits the form, list prints the kinds and the verdict a decoder must give; kinds without a share are equally frequent" },
	{ PL_OPT_HEADING, .name = "The original packets" },
	{ PL_OPT_CHOICE, 0, "inner", &o.inner, "LINK", "link header of the original packets", inner_words },
	{ PL_OPT_U64, 0, "tcp-options", &o.tcp_options, "WORDS", "TCP options in the original packets" },
	{ PL_OPT_U64, 0, "payload", &o.payload, "BYTES", "payload bytes that are kept (default 16)" },
};

static const struct pl_opt int_only[] = {
	{ PL_OPT_CHOICE, 0, "inner-ip", &o.inner_ip, "VERSION", "IP version of the original packets", ip_words },
	{ PL_OPT_CHOICE, 0, "proto", &o.proto, "PROTO", "transport of the original packets, where INT leaves a choice", proto_words },
	{ PL_OPT_U64, 0, "ip-options", &o.ip_options, "WORDS", "IPv4 options, or IPv6 Hop-by-Hop padding, in the original packets" },
	{ PL_OPT_DOUBLE, 0, "fragments", &o.fragments, "SHARE", "share of later fragments among packets without INT" },
	{ PL_OPT_HEADING, .name = "The reports" },
	{ PL_OPT_STRING, 0, "preset", &o.preset, "NAME", "begin with a known configuration (list shows them)" },
	{ PL_OPT_CHOICE, 0, "report", &o.report, "VERSION", "report version; none = the instrumented packets themselves", report_words },
	{ PL_OPT_DOUBLE, 0, "drop", &o.drop, "SHARE", "share of packets that a node drops and reports" },
	{ PL_OPT_U64, 0, "queue-report", &o.queue_report, "DEPTH", "report queues deeper than this" },
	{ PL_OPT_CHOICE, 0, "sink", &o.sink, "WHERE", "where an INT-MD sink puts its own metadata", sink_words },
	{ PL_OPT_U64, 0, "flush-hops", &o.flush_hops, "N", "v2.0: a transit node with N hops in the stack reports and empties it (I)" },
	{ PL_OPT_FLAG, 0, "tlv", &o.tlv, NULL, "v2.0: inner contents as TLVs" },
	{ PL_OPT_U64, 0, "reports-per-datagram", &o.reports, "N", "v2.0: individual reports per datagram" },
	{ PL_OPT_U64, 0, "hw-id", &o.hw_id, "N", "hardware id of the exporters" },
	{ PL_OPT_CHOICE, 0, "outer-ip", &o.outer_ip, "VERSION", "IP version of the reports, in capture files", ip_words },
	{ PL_OPT_U64, 0, "port", &o.port, "PORT", "UDP port of the reports, in capture files (default 32766)" },
	{ PL_OPT_FLAG, 0, "instrumented", &o.instrumented, NULL, "the reports carry INT themselves" },
	{ PL_OPT_HEADING, .name = "Faults of the network" },
	{ PL_OPT_FLAG, 0, "flood", &o.flood, NULL, "send as fast as possible" },
	{ PL_OPT_DOUBLE, 0, "loss", &o.loss, "SHARE", "share of reports that are lost" },
	{ PL_OPT_DOUBLE, 0, "duplicate", &o.duplicate, "SHARE", "share of reports that are duplicated" },
	{ PL_OPT_DOUBLE, 0, "reorder", &o.reorder, "SHARE", "share of reports overtaken by the next one" },
	{ PL_OPT_U64, 0, "first-seq", &o.first_seq, "N", "first sequence number of every exporter" },
	{ PL_OPT_HEADING, .name = "INT in the packets" },
	{ PL_OPT_CHOICE, 0, "int", &o.version, "VERSION", "INT version", version_words },
	{ PL_OPT_CHOICE, 0, "mode", &o.mode, "MODE", "INT mode", mode_words },
	{ PL_OPT_CHOICE, 0, "carrier", &o.carrier, "CARRIER", "carrier of INT", carrier_words },
	{ PL_OPT_CHOICE, 0, "dialect", &o.dialect, "DIALECT", "dialect of INT that the nodes write", dialect_words },
	{ PL_OPT_STRING, 0, "fields", &o.fields, "LIST", "node, ports, latency, queue, ingress-ts, egress-ts, ports2 (v0.5: congestion), tx-util, buffer, checksum, with commas; or a bitmap like 0xff00" },
	{ PL_OPT_CHOICE, 0, "announce", &o.announce, "HOW", "mark that announces INT in a packet", announce_words },
	{ PL_OPT_U64, 0, "dscp", &o.dscp, "N", "DSCP that announces INT (default 0x17)" },
	{ PL_OPT_U64, 0, "npt", &o.npt, "N", "v2.1: next protocol type 1 or 2" },
	{ PL_OPT_U64, 0, "ds-words", &o.ds_words, "N", "v2.1: domain-specific words per hop" },
	{ PL_OPT_U64, 0, "source-words", &o.source_words, "N", "v2.1: domain-specific words of the source only" },
	{ PL_OPT_U64, 0, "max-hops", &o.max_hops, "N", "hop budget the source sets" },
	{ PL_OPT_FLAG, 0, "destination-shim", &o.destination_shim, NULL, "a destination-type header before the hop-by-hop one" },
	{ PL_OPT_U64, 0, "gpe-chain", &o.gpe_chain, "N", "VXLAN-GPE: N further INT shims behind the first" },
	{ PL_OPT_FLAG, 0, "tcp-before-options", &o.tcp_before_options, NULL, "INT behind the first 20 bytes of TCP" },
	{ PL_OPT_HEADING, .name = "INTCollector's own tests" },
	{ PL_OPT_U64, 0, "hops", &o.hops, "N", "hops" },
	{ PL_OPT_U64, 0, "events-per-s", &o.events_per_s, "N", "test 4: events per second" },
};

static const struct pl_opt ioam_only[] = {
	{ PL_OPT_CHOICE, 0, "carrier", &o.carrier, "PROTO", "transport of the packets", ioam_carrier_words },
	{ PL_OPT_HEADING, .name = "IOAM in the packets" },
	{ PL_OPT_STRING, 'o', "options", &o.ioam_options, "LIST", "trace, incremental, e2e, pot, dex, with commas (default trace)" },
	{ PL_OPT_CHOICE, 0, "place", &o.ioam_place, "WHERE", "extension header of the options; usual = e2e in Destination Options, the others in Hop-by-Hop", place_words },
	{ PL_OPT_STRING, 0, "trace-type", &o.ioam_type, "LIST", "node, interfaces, time, delay, data, queue, checksum, node-wide, interfaces-wide, data-wide, buffer, snapshot, with commas; or 24 bits like 0xf00000 (default node,interfaces,time,delay,queue)" },
	{ PL_OPT_U64, 0, "snapshot", &o.ioam_snapshot, "WORDS", "words of opaque state snapshot at every other node" },
	{ PL_OPT_U64, 0, "nodes", &o.ioam_nodes, "N", "number of nodes that the trace has room for (default 8, or as many as fit); the next node sets the overflow flag O" },
	{ PL_OPT_STRING, 0, "flags", &o.ioam_flags, "LIST", "overflow, loopback, active, with commas" },
	{ PL_OPT_U64, 0, "namespace", &o.ioam_ns, "N", "namespace id (default 0)" },
	{ PL_OPT_CHOICE, 0, "time-format", &o.ioam_time, "FORMAT", "time format of the nodes (default posix)", time_words },
	{ PL_OPT_FLAG, 0, "seq-64", &o.ioam_seq_64, NULL, "e2e: the 64-bit sequence number" },
};
/* clang-format on */

#define N(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct pl_opt *make_table(struct pl_opt *table, bool with_int, bool with_ioam)
{
	size_t n = 0;

	_Static_assert(N(common) + N(int_only) + N(ioam_only) < ROWS_MAX, "room for all rows");
	memset(&o, 0, sizeof(o));
	o.seed = 1;
	memcpy(table, common, sizeof(common));
	n += N(common);
	if (with_int) {
		memcpy(table + n, int_only, sizeof(int_only));
		n += N(int_only);
	}
	/* the carriers of IOAM are among those of INT */
	if (with_ioam) {
		memcpy(table + n, ioam_only + with_int,
			sizeof(ioam_only) - with_int * sizeof(*table));
		n += N(ioam_only) - with_int;
	}
	table[n] = (struct pl_opt){ .type = PL_OPT_END };
	return table;
}

const struct pl_opt *pl_gen_options_int(void)
{
	static struct pl_opt table[ROWS_MAX];

	return make_table(table, true, false);
}

const struct pl_opt *pl_gen_options_ioam(void)
{
	static struct pl_opt table[ROWS_MAX];

	return make_table(table, false, true);
}

const struct pl_opt *pl_gen_options_all(void)
{
	static struct pl_opt table[ROWS_MAX];

	return make_table(table, true, true);
}

void pl_gen_options_done(void)
{
	pl_opt_list_done(&o.events);
	pl_opt_list_done(&o.malforms);
}

struct pl_gen_run pl_gen_options_run(void)
{
	return (struct pl_gen_run){
		.file = o.file,
		.preset = o.preset,
		.list_malforms = o.malforms.n == 1 && strcmp(o.malforms.items[0], "list") == 0,
		.flood = o.flood,
		.dry_run = o.dry_run,
		.count = o.count,
		.duration_ns = o.duration_ns,
		.rate = o.rate,
	};
}

/* ---- options into a configuration ---- */

static int word_value(const struct word *words, const char *name)
{
	for (; words->name != NULL; words++) {
		if (strcmp(words->name, name) == 0)
			return words->value;
	}
	return -EINVAL;
}

/* The option parser has let nothing but the choices pass. */
static int choice(const struct word *words, const char *name, int otherwise)
{
	int v = name == NULL ? otherwise : word_value(words, name);

	assert(v >= 0);
	return v;
}

static int set_number(const char *name, uint64_t v, uint64_t max, void *target, size_t size)
{
	if (v == 0)
		return 0;
	if (v > max)
		return pl_fail(-EINVAL, "--%s: at most %llu", name, (unsigned long long)max);
	memcpy(target, &v, size); /* little-endian, as everything here */
	return 0;
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "set_number copies the low bytes");

static int set_numbers(struct pl_gen_cfg *cfg)
{
	const struct {
		const char *name;
		uint64_t value, max;
		void *target;
		size_t size;
	} rows[] = {
		{ "flows", o.flows, PL_GEN_FLOWS_MAX, &cfg->flows, sizeof(cfg->flows) },
		{ "first-seq", o.first_seq, UINT32_MAX, &cfg->first_seq, sizeof(cfg->first_seq) },
		{ "queue-report", o.queue_report, UINT32_MAX, &cfg->queue_report,
			sizeof(cfg->queue_report) },
		{ "hw-id", o.hw_id, 63, &cfg->hw_id, 1 },
		{ "payload", o.payload, 4096, &cfg->payload, sizeof(cfg->payload) },
		{ "npt", o.npt, 2, &cfg->npt, 1 },
		{ "ds-words", o.ds_words, 16, &cfg->ds_words, 1 },
		{ "source-words", o.source_words, 31, &cfg->source_words, 1 },
		{ "reports-per-datagram", o.reports, PL_GEN_REPORTS_MAX, &cfg->reports_per_datagram,
			1 },
		{ "tcp-options", o.tcp_options, 10, &cfg->tcp_options, 1 },
		{ "dscp", o.dscp, 63, &cfg->dscp, 1 },
		{ "port", o.port, UINT16_MAX, &cfg->report_port, sizeof(cfg->report_port) },
		{ "max-hops", o.max_hops, 255, &cfg->max_hops, 1 },
		{ "flush-hops", o.flush_hops, 63, &cfg->flush_hops, 1 },
		{ "gpe-chain", o.gpe_chain, 2, &cfg->gpe_chain, 1 },
		{ "ip-options", o.ip_options, 10, &cfg->ip_options, 1 },
		{ "namespace", o.ioam_ns, UINT16_MAX, &cfg->ioam.ns, sizeof(cfg->ioam.ns) },
		{ "nodes", o.ioam_nodes, 61, &cfg->ioam.nodes, 1 },
		{ "snapshot", o.ioam_snapshot, PL_GEN_SNAPSHOT_MAX, &cfg->ioam.snapshot_words, 1 },
		{ "hops", o.hops, 31, &cfg->replay_hops, 1 },
		{ "events-per-s", o.events_per_s, 10000, &cfg->replay_events,
			sizeof(cfg->replay_events) },
		{ "count", o.count, UINT64_MAX, &cfg->count, 8 },
		{ "duration", o.duration_ns, UINT64_MAX, &cfg->duration_ns, 8 },
		{ "start", o.start_ns, INT64_MAX, &cfg->start_ns, 8 },
		{ "clock-offset", o.clock_offset_ns, UINT64_C(1) << 60, &cfg->clock_offset_ns, 8 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (set_number(rows[i].name, rows[i].value, rows[i].max, rows[i].target,
			    rows[i].size) < 0)
			return -EINVAL;
	}
	if (o.rate != 0)
		cfg->rate = o.rate;
	if (o.loss != 0)
		cfg->loss = o.loss;
	if (o.duplicate != 0)
		cfg->duplicate = o.duplicate;
	if (o.reorder != 0)
		cfg->reorder = o.reorder;
	if (o.drop != 0)
		cfg->drop = o.drop;
	if (o.fragments != 0)
		cfg->fragments = o.fragments;
	if (o.missing != 0)
		cfg->missing = o.missing;
	return 0;
}

/* Words with commas between them, as a set of bits; or, where `max` is not 0, a number up to it. */
static int set_bits(const char *option, const struct word *words, const char *text, uint64_t max,
	uint64_t *ret, struct pl_diag *diag)
{
	char copy[256], *save = NULL;
	const char *names[24], *near;
	uint64_t bits = 0;
	size_t n = 0;

	if (max != 0 && pl_parse_u64(text, &bits) == 0 && bits > 0 && bits <= max) {
		*ret = bits;
		return 0;
	}
	bits = 0;
	for (; n < N(names) && words[n].name != NULL; n++)
		names[n] = words[n].name;
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *w = strtok_r(copy, ",", &save); w != NULL; w = strtok_r(NULL, ",", &save)) {
		int bit = word_value(words, w);

		if (bit < 0) {
			near = pl_nearest(w, names, n);
			return pl_diag_fail(diag, -EINVAL, "--%s: no \"%s\"%s%s%s", option, w,
				near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
				near != NULL ? "\"?" : "");
		}
		bits |= (uint64_t)bit;
	}
	if (bits == 0)
		return pl_diag_fail(diag, -EINVAL, "--%s: \"%s\" names no item", option, text);
	*ret = bits;
	return 0;
}

static int set_fields(struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	uint64_t bits;

	if (o.fields == NULL)
		return 0;
	if (set_bits("fields", fields, o.fields, 0xffff, &bits, diag) < 0)
		return -EINVAL;
	cfg->bitmap = (uint16_t)bits;
	return 0;
}

static int set_ioam(struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	struct pl_gen_ioam *io = &cfg->ioam;
	uint64_t options = PL_GEN_IOAM_TRACE, type = 0, flags = 0;
	const char *place = o.ioam_place != NULL ? o.ioam_place : "usual";

	if ((o.ioam_options != NULL &&
		    set_bits("options", ioam_options, o.ioam_options, 0, &options, diag) < 0) ||
		(o.ioam_type != NULL && set_bits("trace-type", ioam_fields, o.ioam_type, 0xffffff,
						&type, diag) < 0) ||
		(o.ioam_flags != NULL &&
			set_bits("flags", ioam_flags, o.ioam_flags, 0, &flags, diag) < 0))
		return -EINVAL;
	/* damage chooses the options that were not given */
	if (o.ioam_options != NULL || o.malforms.n == 0)
		io->options = (uint8_t)options;
	io->trace_type = (uint32_t)type;
	io->flags = (uint8_t)flags;
	io->time = (enum pl_gen_ioam_time)choice(ioam_times, o.ioam_time, PL_GEN_IOAM_POSIX);
	io->seq_64 = o.ioam_seq_64;
	if (strcmp(place, "destination") == 0)
		io->destination = 0xff;
	else if (strcmp(place, "usual") == 0)
		io->destination = PL_GEN_IOAM_E2E;
	return 0;
}

static int set_distributions(struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	if ((o.latency != NULL && pl_dist_parse(&cfg->latency, o.latency, true, diag) < 0) ||
		(o.link != NULL && pl_dist_parse(&cfg->link, o.link, true, diag) < 0) ||
		(o.queue != NULL && pl_dist_parse(&cfg->queue, o.queue, false, diag) < 0) ||
		(o.util != NULL && pl_dist_parse(&cfg->util, o.util, false, diag) < 0))
		return -EINVAL;
	return 0;
}

/* NAME[:SHARE]; "all" is every kind that fits the form. */
static int add_malform(struct pl_gen_cfg *cfg, const char *text, struct pl_diag *diag)
{
	const char *colon = strchr(text, ':');
	const struct pl_malform *kind;
	char name[64];
	double ratio = 0;

	snprintf(name, sizeof(name), "%.*s", colon == NULL ? 63 : (int)(colon - text), text);
	if (colon != NULL && (pl_parse_double(colon + 1, &ratio) < 0 || !(ratio > 0)))
		return pl_diag_fail(
			diag, -EINVAL, "--malform %s: \"%s\" is not a share", name, colon + 1);
	if (strcmp(name, "all") == 0)
		return pl_malform_add_all(cfg, ratio, diag);
	kind = pl_malform_find(name);
	if (kind == NULL) {
		const struct pl_malform *rows;
		const char *names[PL_GEN_MALFORMS_MAX], *near;
		size_t n;

		rows = pl_malforms(&n);
		for (size_t i = 0; i < n; i++)
			names[i] = rows[i].name;
		near = pl_nearest(name, names, n);
		if (near != NULL)
			pl_diag_set(diag, "--malform: no \"%s\"; did you mean \"%s\"?", name, near);
		else
			pl_diag_set(
				diag, "--malform: no \"%s\" (\"--malform list\" shows them)", name);
		return -EINVAL;
	}
	return pl_malform_add(cfg, kind, ratio, diag);
}

static int set_events(struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	if (o.story)
		pl_gen_story(cfg);
	for (size_t i = 0; i < o.events.n; i++) {
		if (cfg->n_events == PL_GEN_EVENTS_MAX)
			return pl_diag_fail(
				diag, -EINVAL, "more than %d events", PL_GEN_EVENTS_MAX);
		if (pl_gen_event_parse(&cfg->events[cfg->n_events++], o.events.items[i], diag) < 0)
			return -EINVAL;
	}
	return 0;
}

static int set_malforms(struct pl_gen_cfg *cfg, bool ioam, struct pl_diag *diag)
{
	for (size_t i = 0; i < o.malforms.n; i++) {
		if (ioam && cfg->ioam.options == 0 && strcmp(o.malforms.items[i], "all") == 0)
			cfg->ioam.options = PL_GEN_IOAM_TRACE;
		if (add_malform(cfg, o.malforms.items[i], diag) < 0)
			return -EINVAL;
		if (!ioam && cfg->ioam.options != 0)
			return pl_diag_fail(diag, -EINVAL,
				"--malform %s damages IOAM: pathline gen ioam",
				o.malforms.items[i]);
	}
	if (ioam && cfg->ioam.options == 0)
		cfg->ioam.options = PL_GEN_IOAM_TRACE;
	return 0;
}

/* "@FILE" into the file's text, which *ret_text then owns. */
static int set_topology(struct pl_gen_cfg *cfg, struct pl_buf *text, struct pl_diag *diag)
{
	char *data;
	size_t len;
	int r;

	if (o.topology == NULL)
		return 0;
	cfg->topology = o.topology;
	if (o.topology[0] != '@')
		return 0;
	r = pl_file_read(o.topology + 1, TOPOLOGY_MAX, &data, &len);
	if (r < 0)
		return pl_diag_fail(diag, r, "%s: %s", o.topology + 1, strerror(-r));
	if (strncmp(data, "links:", 6) != 0)
		pl_buf_str(text, "links:");
	pl_buf_add(text, data, len);
	free(data);
	if (text->failed)
		return -ENOMEM;
	cfg->topology = text->data;
	return 0;
}

int pl_gen_options_config(
	struct pl_gen_cfg *cfg, struct pl_buf *topology, bool ioam, bool udp, struct pl_diag *diag)
{
	if (o.preset != NULL && pl_gen_preset_set(cfg, o.preset, diag) < 0)
		return -EINVAL;
	cfg->seed = o.seed;
	cfg->udp = udp;
	cfg->report = (enum pl_gen_report)choice(reports, o.report, (int)cfg->report);
	cfg->version = (enum pl_gen_version)choice(versions, o.version, (int)cfg->version);
	cfg->mode = (enum pl_gen_mode)choice(modes, o.mode, (int)cfg->mode);
	cfg->carrier = (enum pl_gen_carrier)choice(carriers, o.carrier, (int)cfg->carrier);
	cfg->dialect = (enum pl_dialect)choice(dialects, o.dialect, (int)cfg->dialect);
	cfg->inner = (enum pl_gen_inner)choice(inners, o.inner, (int)cfg->inner);
	cfg->sink = (enum pl_gen_sink)choice(sinks, o.sink, (int)cfg->sink);
	cfg->announce = (enum pl_gen_announce)choice(announces, o.announce, (int)cfg->announce);
	cfg->proto = (enum pl_gen_proto)choice(protos, o.proto, (int)cfg->proto);
	if (o.inner_ip != NULL)
		cfg->inner_ip = o.inner_ip[0] == '6' ? 6 : 4;
	if (o.outer_ip != NULL)
		cfg->outer_ip = o.outer_ip[0] == '6' ? 6 : 4;
	cfg->tcp_before_options |= o.tcp_before_options;
	cfg->instrumented |= o.instrumented;
	cfg->inner_tlv |= o.tlv;
	cfg->destination_shim |= o.destination_shim;
	if (set_numbers(cfg) < 0)
		return -ECANCELED; /* the error was printed already */
	if (set_fields(cfg, diag) < 0 || set_distributions(cfg, diag) < 0 ||
		set_events(cfg, diag) < 0 || (ioam && set_ioam(cfg, diag) < 0) ||
		set_malforms(cfg, ioam, diag) < 0)
		return -EINVAL;
	return set_topology(cfg, topology, diag);
}

/* ---- words for people ---- */

static const char *name_of(const struct word *words, int value)
{
	for (; words->name != NULL; words++) {
		if (words->value == value)
			return words->name;
	}
	return NULL;
}

static void add_word(char *dst, size_t cap, const char *label, const char *word)
{
	size_t at = strlen(dst);

	if (word != NULL)
		snprintf(dst + at, cap - at, "%s%s%s", at > 0 ? ", " : "", label, word);
}

void pl_gen_malform_form(const struct pl_malform *kind, char *dst, size_t cap)
{
	const struct pl_malform_needs *needs = &kind->needs;

	dst[0] = '\0';
	for (const struct word *w = ioam_options; w->name != NULL; w++) {
		if ((needs->ioam & w->value) != 0)
			add_word(dst, cap, "ioam ", w->name);
	}
	add_word(dst, cap, "report ", name_of(reports, (int)needs->report));
	add_word(dst, cap, "int ", name_of(versions, (int)needs->version));
	add_word(dst, cap, "", name_of(modes, (int)needs->mode));
	add_word(dst, cap, "", name_of(carriers, (int)needs->carrier));
	if (needs->frames && needs->ioam == 0)
		add_word(dst, cap, "", "capture file");
}
