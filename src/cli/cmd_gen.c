/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline gen: the generator's options, pacing against the clock, and the account at the end. */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "cli/command.h"
#include "gen/event.h"
#include "gen/gen.h"
#include "gen/malform.h"
#include "gen/preset.h"
#include "netio/port.h"

#define SLEEP_MAX_NS UINT64_C(50000000)   /* so that a signal is seen soon */
#define LAG_MAX_NS   UINT64_C(1000000000) /* further behind than this, time is given up */
#define TOPOLOGY_MAX (1u << 20)
#define FLOOD_RATE   1e6 /* model time per report when nothing is paced */

/* As given on the command line; zero, NULL or negative = not given. */
static struct {
	const char *preset, *topology, *latency, *link, *queue, *util;
	const char *report, *version, *mode, *carrier, *dialect, *inner, *sink, *announce, *fields;
	const char *outer_ip, *inner_ip, *file;
	struct pl_opt_list events, malforms;
	uint64_t seed, flows, count, duration_ns, start_ns, first_seq, queue_report,
		clock_offset_ns;
	uint64_t hw_id, payload, npt, ds_words, source_words, reports, tcp_options, dscp, port,
		max_hops;
	uint64_t hops, events_per_s;
	double rate, loss, duplicate, reorder, drop, missing;
	bool tcp_before_options, instrumented, flood, dry_run, story;
} o;

/* A word and the number it stands for. */
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
static const struct word inners[] = { { "ethernet", PL_GEN_ETHERNET }, { "vlan", PL_GEN_VLAN }, { "qinq", PL_GEN_QINQ }, { "vxlan", PL_GEN_VXLAN }, { "ip", PL_GEN_IP }, { 0 } };
static const struct word sinks[] = { { "stack", PL_GEN_SINK_STACK }, { "header", PL_GEN_SINK_HEADER }, { "both", PL_GEN_SINK_BOTH }, { 0 } };
static const struct word announces[] = { { "dscp", PL_GEN_ANNOUNCE_DSCP }, { "port", PL_GEN_ANNOUNCE_PORT }, { "marker", PL_GEN_ANNOUNCE_MARKER }, { 0 } };
static const struct word fields[] = {
	{ "node", 0x8000 }, { "ports", 0x4000 }, { "latency", 0x2000 }, { "queue", 0x1000 }, { "ingress-ts", 0x0800 }, { "egress-ts", 0x0400 },
	{ "ports2", 0x0200 }, { "congestion", 0x0200 }, { "tx-util", 0x0100 }, { "buffer", 0x0080 }, { "checksum", 0x0001 }, { 0 } };

static const struct pl_opt *options(void)
{
	static const char *const report_words[] = { "none", "0.5", "1.0", "2.0", NULL };
	static const char *const version_words[] = { "0.5", "1.0", "2.1", NULL };
	static const char *const mode_words[] = { "md", "mx", "xd", NULL };
	static const char *const carrier_words[] = { "udp", "tcp", "gre", "vxlan-gpe", "geneve", NULL };
	static const char *const dialect_words[] = { "spec", "intcollector", "geant", "noviflow", "host-int", "v0.4", NULL };
	static const char *const inner_words[] = { "ethernet", "vlan", "qinq", "vxlan", "ip", NULL };
	static const char *const sink_words[] = { "stack", "header", "both", NULL };
	static const char *const announce_words[] = { "dscp", "port", "marker", NULL };
	static const char *const ip_words[] = { "4", "6", NULL };
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, .name = "Where to, how much" },
		{ PL_OPT_STRING, 'w', "write", &o.file, "FILE", "write a capture file instead of sending (- is standard output)" },
		{ PL_OPT_RATE, 'r', "rate", &o.rate, "RATE", "reports per second (default 1000, or the preset's)" },
		{ PL_OPT_FLAG, 0, "flood", &o.flood, NULL, "send as fast as possible" },
		{ PL_OPT_U64, 'n', "count", &o.count, "N", "stop after N packets" },
		{ PL_OPT_DURATION, 'd', "duration", &o.duration_ns, "TIME", "stop after so long" },
		{ PL_OPT_U64, 0, "seed", &o.seed, "N", "the same seed gives the same packets (default 1)" },
		{ PL_OPT_DURATION, 0, "start", &o.start_ns, "TIME", "time of the first packet in a file, since 1970 (default 1700000000s)" },
		{ PL_OPT_FLAG, 0, "dry-run", &o.dry_run, NULL, "make the packets, send nothing, print the account" },
		{ PL_OPT_STRING, 0, "preset", &o.preset, "NAME", "begin with a known configuration (list shows them)" },
		{ PL_OPT_HEADING, .name = "The network" },
		{ PL_OPT_STRING, 't', "topology", &o.topology, "NET", "chain:N, ring:N, leaf-spine:LxS, fat-tree:K, random:N,DEGREE, links:A-B,… or @FILE (default leaf-spine:4x2)" },
		{ PL_OPT_U64, 0, "flows", &o.flows, "N", "flows through it (default 100)" },
		{ PL_OPT_STRING, 0, "latency", &o.latency, "DIST", "time within a node: const:V, uniform:A,B, exp:MEAN, normal:MEAN,SD, pareto:MIN,SHAPE (default exp:2us)" },
		{ PL_OPT_STRING, 0, "link", &o.link, "DIST", "time between nodes (default const:1us)" },
		{ PL_OPT_STRING, 0, "queue", &o.queue, "DIST", "queue depth (default exp:20)" },
		{ PL_OPT_STRING, 0, "util", &o.util, "DIST", "egress utilization (default uniform:0,100)" },
		{ PL_OPT_DURATION, 0, "clock-offset", &o.clock_offset_ns, "TIME", "each node's clock is off by a fixed amount up to this" },
		{ PL_OPT_DOUBLE, 0, "missing", &o.missing, "SHARE", "share of values that are not available" },
		{ PL_OPT_DOUBLE, 0, "drop", &o.drop, "SHARE", "share of packets that a node drops and reports" },
		{ PL_OPT_U64, 0, "queue-report", &o.queue_report, "DEPTH", "a node with a deeper queue reports it" },
		{ PL_OPT_LIST, 'e', "event", &o.events, "EVENT", "KIND@START[+DURATION][:KEY=VALUE,…]; KIND is path (link=A-B), queue (node, port, queue, depth), loss (ratio, node), drop (ratio, node, reason), restart (node); every=TIME repeats it" },
		{ PL_OPT_FLAG, 0, "story", &o.story, NULL, "the demonstration's events: path change, queue build-up, lost reports" },
		{ PL_OPT_HEADING, .name = "Reports on their way" },
		{ PL_OPT_DOUBLE, 0, "loss", &o.loss, "SHARE", "share of reports that are lost" },
		{ PL_OPT_DOUBLE, 0, "duplicate", &o.duplicate, "SHARE", "share of reports that come twice" },
		{ PL_OPT_DOUBLE, 0, "reorder", &o.reorder, "SHARE", "share of reports overtaken by the next one" },
		{ PL_OPT_U64, 0, "first-seq", &o.first_seq, "N", "first sequence number of every exporter" },
		{ PL_OPT_LIST, 'm', "malform", &o.malforms, "NAME[:SHARE]", "damage packets (list shows the names and what a decoder must answer)" },
		{ PL_OPT_HEADING, .name = "The form" },
		{ PL_OPT_CHOICE, 0, "report", &o.report, "VERSION", "report version; none = the instrumented packets themselves", report_words },
		{ PL_OPT_CHOICE, 0, "int", &o.version, "VERSION", "INT version", version_words },
		{ PL_OPT_CHOICE, 0, "mode", &o.mode, "MODE", "INT mode", mode_words },
		{ PL_OPT_CHOICE, 0, "carrier", &o.carrier, "CARRIER", "what INT travels over", carrier_words },
		{ PL_OPT_CHOICE, 0, "dialect", &o.dialect, "DIALECT", "whose reading of the specification", dialect_words },
		{ PL_OPT_STRING, 0, "fields", &o.fields, "LIST", "node,ports,latency,queue,ingress-ts,egress-ts,ports2 (v0.5: congestion),tx-util,buffer,checksum, or a bitmap like 0xff00" },
		{ PL_OPT_CHOICE, 0, "sink", &o.sink, "WHERE", "where an INT-MD sink puts its own metadata", sink_words },
		{ PL_OPT_CHOICE, 0, "announce", &o.announce, "HOW", "what tells that a packet carries INT", announce_words },
		{ PL_OPT_CHOICE, 0, "inner", &o.inner, "LINK", "how the original packets begin", inner_words },
		{ PL_OPT_CHOICE, 0, "inner-ip", &o.inner_ip, "VERSION", "IP version of the original packets", ip_words },
		{ PL_OPT_CHOICE, 0, "outer-ip", &o.outer_ip, "VERSION", "IP version of the reports, in capture files", ip_words },
		{ PL_OPT_U64, 0, "reports-per-datagram", &o.reports, "N", "individual reports per v2.0 datagram" },
		{ PL_OPT_U64, 0, "dscp", &o.dscp, "N", "DSCP that announces INT (default 0x17)" },
		{ PL_OPT_U64, 0, "npt", &o.npt, "N", "v2.1 next protocol type 1 or 2" },
		{ PL_OPT_U64, 0, "ds-words", &o.ds_words, "N", "v2.1 domain-specific words per hop" },
		{ PL_OPT_U64, 0, "source-words", &o.source_words, "N", "v2.1 domain-specific words of the source only" },
		{ PL_OPT_U64, 0, "max-hops", &o.max_hops, "N", "hop budget the source sets" },
		{ PL_OPT_U64, 0, "tcp-options", &o.tcp_options, "WORDS", "TCP options in the original packets" },
		{ PL_OPT_FLAG, 0, "tcp-before-options", &o.tcp_before_options, NULL, "INT behind the first 20 bytes of TCP" },
		{ PL_OPT_FLAG, 0, "instrumented", &o.instrumented, NULL, "the reports carry INT themselves" },
		{ PL_OPT_U64, 0, "payload", &o.payload, "BYTES", "original payload that is kept (default 16)" },
		{ PL_OPT_U64, 0, "hw-id", &o.hw_id, "N", "hardware id of the exporters" },
		{ PL_OPT_U64, 0, "port", &o.port, "PORT", "UDP port of the reports in capture files (default 32766)" },
		{ PL_OPT_U64, 0, "hops", &o.hops, "N", "INTCollector tests: hops" },
		{ PL_OPT_U64, 0, "events-per-s", &o.events_per_s, "N", "INTCollector test 4: events per second" },
		{ .type = PL_OPT_END },
	};

	memset(&o, 0, sizeof(o));
	o.seed = 1;
	return table;
}
/* clang-format on */

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
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
	if (v > max) {
		pl_complain("--%s: at most %llu", name, (unsigned long long)max);
		return -EINVAL;
	}
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
	if (o.missing != 0)
		cfg->missing = o.missing;
	return 0;
}

static int set_fields(struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	char copy[160], *save = NULL;
	uint64_t bits = 0;

	if (o.fields == NULL)
		return 0;
	if (pl_parse_u64(o.fields, &bits) == 0 && bits > 0 && bits <= 0xffff) {
		cfg->bitmap = (uint16_t)bits;
		return 0;
	}
	bits = 0;
	snprintf(copy, sizeof(copy), "%s", o.fields);
	for (char *f = strtok_r(copy, ",", &save); f != NULL; f = strtok_r(NULL, ",", &save)) {
		int bit = word_value(fields, f);

		if (bit < 0) {
			pl_diag_set(diag, "--fields: \"%s\" is no field of INT", f);
			return -EINVAL;
		}
		bits |= (uint64_t)bit;
	}
	if (bits == 0) {
		pl_diag_set(diag, "--fields: \"%s\" names no field", o.fields);
		return -EINVAL;
	}
	cfg->bitmap = (uint16_t)bits;
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

static int add_malform(struct pl_gen_cfg *cfg, const char *text, struct pl_diag *diag)
{
	const char *colon = strchr(text, ':');
	const struct pl_malform *kind;
	char name[64];
	double ratio = 1;
	size_t n;

	snprintf(name, sizeof(name), "%.*s", colon == NULL ? 63 : (int)(colon - text), text);
	kind = pl_malform_find(name);
	if (kind == NULL) {
		const struct pl_malform *rows = pl_malforms(&n);
		const char *names[128], *near;

		if (n > sizeof(names) / sizeof(names[0]))
			n = sizeof(names) / sizeof(names[0]);
		for (size_t i = 0; i < n; i++)
			names[i] = rows[i].name;
		near = pl_nearest(name, names, n);
		pl_diag_set(diag, "--malform: no \"%s\"%s%s (\"--malform list\" shows them)", name,
			near != NULL ? "; nearest: " : "", near != NULL ? near : "");
		return -EINVAL;
	}
	if (colon != NULL && pl_parse_double(colon + 1, &ratio) < 0) {
		pl_diag_set(diag, "--malform %s: \"%s\" is not a share", name, colon + 1);
		return -EINVAL;
	}
	return pl_malform_add(cfg, kind, ratio, diag);
}

static int set_lists(struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	if (o.story)
		pl_gen_story(cfg);
	for (size_t i = 0; i < o.events.n; i++) {
		if (cfg->n_events == PL_GEN_EVENTS_MAX) {
			pl_diag_set(diag, "more than %d events", PL_GEN_EVENTS_MAX);
			return -EINVAL;
		}
		if (pl_gen_event_parse(&cfg->events[cfg->n_events++], o.events.items[i], diag) < 0)
			return -EINVAL;
	}
	for (size_t i = 0; i < o.malforms.n; i++) {
		if (add_malform(cfg, o.malforms.items[i], diag) < 0)
			return -EINVAL;
	}
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
	if (r < 0) {
		pl_diag_set(diag, "%s: %s", o.topology + 1, strerror(-r));
		return r;
	}
	if (strncmp(data, "links:", 6) != 0)
		pl_buf_str(text, "links:");
	pl_buf_add(text, data, len);
	free(data);
	if (text->failed)
		return -ENOMEM;
	cfg->topology = text->data;
	return 0;
}

static int make_config(
	struct pl_gen_cfg *cfg, struct pl_buf *topology, bool udp, struct pl_diag *diag)
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
	if (o.inner_ip != NULL)
		cfg->inner_ip = o.inner_ip[0] == '6' ? 6 : 4;
	if (o.outer_ip != NULL)
		cfg->outer_ip = o.outer_ip[0] == '6' ? 6 : 4;
	cfg->tcp_before_options |= o.tcp_before_options;
	cfg->instrumented |= o.instrumented;
	if (set_numbers(cfg) < 0)
		return -ECANCELED; /* told already */
	if (set_fields(cfg, diag) < 0 || set_distributions(cfg, diag) < 0 ||
		set_lists(cfg, diag) < 0)
		return -EINVAL;
	return set_topology(cfg, topology, diag);
}

/* ---- sending ---- */

/* All of the batch, or negative errno. */
static int send_all(struct pl_port *port, struct pl_batch *batch, struct pl_diag *diag)
{
	while (batch->n > 0 && !stopped) {
		int n = pl_port_send(port, batch, diag);

		if (n < 0)
			return n;
		batch->n -= (uint32_t)n;
		memmove(batch->pkts, batch->pkts + n, batch->n * sizeof(batch->pkts[0]));
	}
	return 0;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts;

	if (ns > SLEEP_MAX_NS)
		ns = SLEEP_MAX_NS;
	ts = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	nanosleep(&ts, NULL);
}

struct account {
	uint64_t begin_ns, end_ns; /* monotonic */
	uint64_t skipped;          /* times that the clock ran away */
	uint64_t sent, sent_bytes;
};

/* Model time follows the clock from the generator's start on; unpaced, it runs as fast as packets leave. */
static int run(struct pl_gen *gen, struct pl_port *port, bool paced, struct account *acc,
	struct pl_diag *diag)
{
	static struct pl_batch batch;
	uint64_t start = pl_gen_cfg(gen)->start_ns;
	int r = 0;

	acc->begin_ns = pl_clock_mono_ns();
	while (!stopped) {
		uint64_t now = paced ? start + (pl_clock_mono_ns() - acc->begin_ns) : 0;
		uint64_t due = pl_gen_due_ns(gen), bytes = 0;
		uint32_t n;

		if (o.flood && o.duration_ns != 0 &&
			pl_clock_mono_ns() - acc->begin_ns >= o.duration_ns)
			break;
		if (due == UINT64_MAX)
			break;
		if (paced && now + 1 > due + LAG_MAX_NS) {
			pl_gen_skip_to(gen, now);
			acc->skipped++;
		}
		r = pl_gen_next(gen, paced ? now + 1 : UINT64_MAX, &batch);
		if (r == -ENODATA) {
			r = 0;
			break;
		}
		if (r == 0) {
			due = pl_gen_due_ns(gen);
			if (paced && due != UINT64_MAX && due > now)
				sleep_ns(due - now);
			continue;
		}
		n = batch.n;
		for (uint32_t i = 0; i < n; i++)
			bytes += batch.pkts[i].len;
		r = port == NULL ? 0 : send_all(port, &batch, diag);
		if (r < 0)
			break;
		acc->sent += n - (port == NULL ? 0 : batch.n);
		acc->sent_bytes += bytes;
	}
	acc->end_ns = pl_clock_mono_ns();
	return r;
}

static void print_account(const struct pl_gen *gen, const struct account *acc, bool paced)
{
	const struct pl_gen_counters *c = pl_gen_counters(gen);
	double s = (double)(acc->end_ns - acc->begin_ns) / 1e9;
	char rate[32], asked[32];
	const struct {
		const char *what;
		uint64_t n;
	} rows[] = { { "lost", c->lost }, { "sent twice", c->duplicated },
		{ "reordered", c->reordered }, { "exporters restarted", c->restarts },
		{ "drop reports", c->dropped }, { "queue reports", c->queue_reports },
		{ "damaged", c->malformed }, { "without a way", c->unrouted } };

	pl_format_count(rate, sizeof(rate), s > 0 ? (double)c->reports / s : 0);
	fprintf(stderr, "%llu packets (%llu reports, %llu bytes) in %.3f s: %s reports/s",
		(unsigned long long)acc->sent, (unsigned long long)c->reports,
		(unsigned long long)acc->sent_bytes, s, rate);
	if (paced) {
		pl_format_count(asked, sizeof(asked), pl_gen_cfg(gen)->rate);
		fprintf(stderr, " (asked for %s)", asked);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].n > 0)
			fprintf(stderr, "; %s: %llu", rows[i].what, (unsigned long long)rows[i].n);
	}
	fputc('\n', stderr);
	if (acc->skipped > 0)
		pl_complain(
			"could not keep up: fell more than a second behind %llu times and went on "
			"from there",
			(unsigned long long)acc->skipped);
}

/* ---- lists ---- */

static const char *name_of(const struct word *words, int value)
{
	for (; words->name != NULL; words++) {
		if (words->value == value)
			return words->name;
	}
	return NULL;
}

static void print_malforms(void)
{
	size_t n;
	const struct pl_malform *rows = pl_malforms(&n);

	printf("%-22s %-28s %-34s %s\n", "NAME", "ANSWER", "FORM", "DAMAGE");
	for (size_t i = 0; i < n; i++) {
		const struct pl_malform_needs *needs = &rows[i].needs;
		const char *words[] = {
			needs->report != 0 ? name_of(reports, (int)needs->report) : NULL,
			needs->version != 0 ? name_of(versions, (int)needs->version) : NULL,
			needs->mode != 0 ? name_of(modes, (int)needs->mode) : NULL,
			needs->carrier != 0 ? name_of(carriers, (int)needs->carrier) : NULL,
			needs->frames ? "capture file" : NULL,
		};
		static const char *const labels[] = { "report ", "int ", "", "", "" };
		char answer[64], form[96] = "";
		size_t at = 0;

		if (rows[i].note != 0)
			snprintf(answer, sizeof(answer), "note %s",
				pl_note_name((enum pl_note)__builtin_ctzll(rows[i].note)));
		else
			snprintf(answer, sizeof(answer), "%s", pl_verdict_name(rows[i].verdict));
		for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
			if (words[w] != NULL)
				at += (size_t)snprintf(form + at, sizeof(form) - at, "%s%s%s",
					at > 0 ? ", " : "", labels[w], words[w]);
		}
		printf("%-22s %-28s %-34s %s\n", rows[i].name, answer, form, rows[i].help);
	}
}

static void print_presets(void)
{
	size_t n;
	const struct pl_gen_preset *rows = pl_gen_presets(&n);

	for (size_t i = 0; i < n; i++)
		printf("%-22s %s\n", rows[i].name, rows[i].help);
}

/* ---- the command ---- */

static bool is_udp(const char *uri)
{
	return strncmp(uri, "udp:", 4) == 0;
}

static const char *destination(const struct pl_opt_list *operands)
{
	if (o.file != NULL)
		return o.file;
	return operands->n > 1 ? operands->items[1] : NULL;
}

static int check_usage(const struct pl_opt_list *operands, const char *uri)
{
	if (operands->n > 2 || (o.file != NULL && operands->n > 1)) {
		pl_complain("gen: one destination, please");
		return -EINVAL;
	}
	if (uri == NULL && !o.dry_run) {
		pl_complain("gen: where to? Give udp://HOST:PORT, -w FILE or --dry-run");
		return -EINVAL;
	}
	if (uri != NULL && !is_udp(uri) &&
		(o.flood || (o.count == 0 && o.duration_ns == 0 && strcmp(uri, "-") != 0))) {
		pl_complain(o.flood ? "gen: --flood is for sending"
				    : "gen: a file needs an end: --count or --duration");
		return -EINVAL;
	}
	if (uri == NULL && o.count == 0 && o.duration_ns == 0) {
		pl_complain("gen: a dry run needs an end: --count or --duration");
		return -EINVAL;
	}
	return 0;
}

static int generate(const struct pl_opt_list *operands)
{
	const char *uri = destination(operands);
	bool udp = uri != NULL && is_udp(uri), paced = udp && !o.flood;
	struct sigaction action = { .sa_handler = on_signal };
	struct pl_diag diag = { .text = "" };
	struct pl_gen_cfg cfg = { 0 };
	struct account acc = { 0 };
	struct pl_port *port = NULL;
	struct pl_gen *gen = NULL;
	struct pl_buf topology;
	int r, exit_code = PL_EXIT_USAGE;

	pl_buf_init(&topology);
	if (check_usage(operands, uri) < 0)
		goto out;
	r = make_config(&cfg, &topology, udp, &diag);
	if (r < 0)
		goto told;
	if (paced) /* live: the model's clock is the real one */
		cfg.start_ns = pl_clock_real_ns();
	if (o.flood) {
		cfg.duration_ns = 0;
		cfg.rate = o.rate != 0 ? o.rate : FLOOD_RATE;
		cfg.start_ns = pl_clock_real_ns();
	}
	r = pl_gen_new(&gen, &cfg, &diag);
	if (r < 0)
		goto told;
	exit_code = PL_EXIT_FAILED;
	if (uri != NULL && !o.dry_run) {
		r = pl_port_open(&port, uri, PL_PORT_SEND, NULL, &diag);
		if (r < 0)
			goto told;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	r = run(gen, port, paced && !o.dry_run, &acc, &diag);
	if (r >= 0) {
		r = pl_port_close(port);
		port = NULL;
		if (r < 0)
			pl_diag_set(&diag, "%s: %s", uri, strerror(-r));
	}
	print_account(gen, &acc, paced && !o.dry_run);
	if (r >= 0)
		exit_code = PL_EXIT_OK;
told:
	if (r < 0 && r != -ECANCELED) {
		if (diag.text[0] == '\0')
			pl_diag_set(&diag, "%s", strerror(-r));
		pl_complain_diag(&diag);
	}
out:
	(void)pl_port_close(port);
	pl_gen_free(gen);
	pl_buf_done(&topology);
	return exit_code;
}

static bool asks_for_list(void)
{
	return o.malforms.n == 1 && strcmp(o.malforms.items[0], "list") == 0;
}

static int gen_int(const struct pl_opt_list *operands)
{
	if (o.preset != NULL && strcmp(o.preset, "list") == 0) {
		print_presets();
		return PL_EXIT_OK;
	}
	if (asks_for_list()) {
		print_malforms();
		return PL_EXIT_OK;
	}
	return generate(operands);
}

/* What can be made. Other kinds of telemetry add a row. */
static const struct kind {
	const char *name;
	int (*run)(const struct pl_opt_list *operands);
} kinds[] = {
	{ "int", gen_int },
};

static const char *const kind_words[] = { "int", NULL };

static int run_gen(int argc, char **argv)
{
	struct pl_opt_list operands;
	int exit_code = PL_EXIT_USAGE;

	if (pl_command_parse(&pl_command_gen, argc, argv, &operands, &exit_code) != 0)
		return exit_code;
	if (operands.n == 0) {
		pl_complain("gen: what? (int)");
	} else {
		const struct kind *kind = NULL;

		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			if (strcmp(operands.items[0], kinds[i].name) == 0)
				kind = &kinds[i];
		}
		if (kind != NULL)
			exit_code = kind->run(&operands);
		else
			pl_complain("gen: no kind \"%s\" (there is: int)", operands.items[0]);
	}
	pl_opt_list_done(&operands);
	pl_opt_list_done(&o.events);
	pl_opt_list_done(&o.malforms);
	return exit_code;
}

const struct pl_command pl_command_gen = {
	.name = "gen",
	.summary = "make telemetry: to a UDP address at a rate, or into a capture file",
	.usage = "int [OPTION]… [URI]",
	.description =
		"Models a network with flows through it and encodes what its nodes would report: INT 0.5, "
		"1.0 and\n2.1 in telemetry reports 0.5, 1.0 and 2.0, or the instrumented packets "
		"themselves. The same seed\ngives the same bytes. To udp://HOST:PORT packets leave at the "
		"rate asked for and carry the real\ntime; in a capture file time begins at a fixed "
		"moment.\n\n"
		"What goes with what is chosen when it is not given: --int 1.0 alone means report 1.0; "
		"--malform\nsets the form it needs.",
	.examples =
		"  pathline gen int --rate 10k udp://127.0.0.1:32766\n"
		"  pathline gen int --count 1000 --int 1.0 --topology chain:6 -w six-hops.pcap\n"
		"  pathline gen int --mode xd --duration 60s --event path@20s+20s udp://127.0.0.1:32766\n"
		"  pathline gen int --count 100 --malform report_length:0.1 -w - | pathline read -\n"
		"  pathline gen int --preset intcollector-test8 --count 10 -w test8.pcap\n",
	.options = options,
	.words = kind_words,
	.run = run_gen,
};
