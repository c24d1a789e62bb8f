/* SPDX-License-Identifier: BSD-2-Clause */
/* Configurations that are accepted and refused, key by key and between keys. */
#include "pipeline/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "detect/units.h"
#include "pipeline/pipeline.h"
#include "raw/port.h"

/* words: text that the error must contain; NULL: it is accepted. */
static const struct {
	const char *name, *text, *words;
} situations[] = {
	{ "nothing", "", NULL },
	{ "udp", "sources:\n  - uri: udp://:1\n", NULL },
	{ "udp, IPv6", "sources:\n  - uri: udp://[::1]:1\n", NULL },
	{ "a capture file", "sources:\n  - uri: pcap:/tmp/x.pcap\n", NULL },
	{ "no kind of source", "sources:\n  - uri: tcp://:1\n", "unknown kind of port" },
	{ "a bare file name", "sources:\n  - uri: x.pcap\n", "write pcap:x.pcap" },
	{ "standard input", "sources:\n  - uri: 'pcap:-'\n", "standard input" },
	{ "no port number", "sources:\n  - uri: udp://localhost\n", "HOST:PORT" },
	{ "an unknown key of the URI", "sources:\n  - uri: udp://:1?sokets=2\n", "sokets" },
	{ "no URI", "sources:\n  - sockets: 2\n", "uri" },
	{ "sockets for a file", "sources:\n  - uri: pcap:x\n    sockets: 2\n",
		"apply to udp: only" },
	{ "rcvbuf for a file", "sources:\n  - uri: pcap:x\n    rcvbuf: 1MiB\n",
		"apply to udp: only" },
	{ "the same twice", "sources:\n  - uri: udp://:1\n  - uri: udp://:1\n",
		"sources 1 and 2 are the same" },
	{ "too many sockets",
		"sources:\n  - uri: udp://:1\n    sockets: 64\n  - uri: udp://:2\n    sockets: 64\n"
		"  - uri: udp://:3\n    sockets: 64\n  - uri: udp://:4\n    sockets: 64\n  - uri: udp://:5\n",
		"257 sockets in total; the limit is 256" },
	{ "sockets beyond the limit", "sources:\n  - uri: udp://:1\n    sockets: 65\n", "64" },
	{ "low above the threshold", "detect:\n  queue_depth:\n    threshold: 10\n    low: 11\n",
		"detect.queue_depth.low is above" },
	{ "low at the threshold", "detect:\n  queue_depth:\n    threshold: 10\n    low: 10\n",
		NULL },
	{ "low above the threshold of what is off",
		"detect:\n  hop_latency:\n    enabled: false\n    threshold: 1ms\n    low: 2ms\n",
		NULL },
	{ "an anomaly without a threshold",
		"detect:\n  queue_depth:\n    threshold: 0\n    anomaly: true\n", NULL },
	{ "steps without a threshold", "detect:\n  queue_depth:\n    threshold: 0\n    step: 50\n",
		NULL },
	{ "a level that can tell nothing", "detect:\n  queue_depth:\n    threshold: 0\n",
		"would never report an event" },
	{ "the kernel and the default sources", "detect:\n  where: kernel\n",
		"no source is afxdp:" },
	{ "the kernel and a UDP source", "sources:\n  - uri: udp://:1\ndetect:\n  where: both\n",
		"reports of udp://:1 are detected in user space" },
	{ "the kernel and one source of its own",
		"sources:\n  - uri: udp://:1\n  - uri: 'afxdp:eth0'\ndetect:\n  where: kernel\n",
		NULL },
	{ "auto takes any source", "sources:\n  - uri: udp://:1\ndetect:\n  where: auto\n", NULL },
	{ "two outputs of one name",
		"outputs:\n  - name: a\n    path: x\n  - name: a\n    path: y\n",
		"have the same name" },
	{ "a name like a made-up one",
		"outputs:\n  - path: x\n  - name: jsonl0\n    path: y\n  - path: z\n", NULL },
	{ "two outputs to one file", "outputs:\n  - path: x\n  - path: x\n", "have the same path" },
	{ "an output of nothing",
		"outputs:\n  - path: x\n    paths: false\n    events: false\n    values: false\n",
		"paths, events and values are off" },
	{ "an expression that is none", "outputs:\n  - path: x\n    where: 'node ='\n",
		"character" },
	{ "profiles for the same", "profiles:\n  - match: 10.0.0.0/8\n  - match: 10.0.0.0/8\n",
		"profiles 1 and 2" },
	{ "a prefix that is none", "profiles:\n  - match: 10.0.0.0/33\n", "10.0.0.0/33" },
	{ "a value outside its mask", "profiles:\n  - match: ::/0\n    dscp: 0x20/0x10\n", "dscp" },
	{ "units", "units:\n  - nodes: 1-9\n    queue_cell_bytes: 208\n  - nodes: 20\n", NULL },
	{ "units within others",
		"units:\n  - nodes: all\n    queue_cell_bytes: 80\n  - nodes: 2-9\n  - nodes: 9\n",
		NULL },
	{ "units for the same nodes", "units:\n  - nodes: 1-9\n  - nodes: 1-9\n",
		"units for nodes 1-9 overlap others, from 1 to 9" },
	{ "units that overlap", "units:\n  - nodes: 1-9\n  - nodes: 9-10\n",
		"units for nodes 9-10 overlap others" },
	{ "units without nodes", "units:\n  - queue_cell_bytes: 80\n", "nodes" },
	{ "a range that goes back", "units:\n  - nodes: 9-1\n", "\"9-1\" is not a node id" },
	{ "half a range", "units:\n  - nodes: 9-\n", "\"9-\" is not a node id" },
	{ "a cell above the limit", "units:\n  - nodes: 1\n    queue_cell_bytes: 65537\n",
		"65536" },
	{ "a translator on a source's interface",
		"sources: [{uri: 'afxdp:eth0?queues=0'}]\ndta: {listen: 'afxdp://eth0'}\n"
		"regions: [{name: a, path: /a, writer: dta}]\n",
		"source 1 and dta.listen both take the interface eth0: it has one XDP program" },
	{ "a memory server on a tap's interface",
		"rdma: {interface: 'afxdp:eth0'}\nregions: [{name: a, path: /a, writer: rdma}]\n"
		"taps: [{name: t, sources: ['xdp:eth0'], to: ['file:/x']}]\n",
		"rdma.interface and tap 1 both take the interface eth0" },
	{ "two taps of one interface",
		"taps: [{name: t, sources: ['xdp:eth0'], to: ['file:/x']},"
		" {name: u, sources: ['afxdp:eth0'], to: ['file:/y']}]\n",
		"tap 1 and tap 2 both take the interface eth0" },
	{ "a translator that writes by a source's interface",
		"sources: [{uri: 'afxdp:eth0'}]\n"
		"dta: {listen: 'udp://:40040', to: 'roce://10.0.0.2:7471/a?service=rc&dev=afxdp:eth0'}\n",
		"source 1 and dta.to both take the interface eth0" },
	{ "other interfaces, and others' ways to them",
		"sources: [{uri: 'afxdp:eth0'}, {uri: 'packet:eth0'}, {uri: 'afxdp:eth'}]\n"
		"dta: {listen: 'afxdp:eth1'}\nregions: [{name: a, path: /a, writer: dta}]\n",
		NULL },
	{ "ports that the kernel chooses",
		"sources: [{uri: 'udp://[::1]:0'}, {uri: 'udp://[::1]:0?sockets=2'}]\n", NULL },
	{ "a translator on a source's address",
		"sources: [{uri: 'udp://:5000?sockets=2'}]\ndta: {listen: 'udp://:5000'}\n"
		"regions: [{name: a, path: /a, writer: dta}]\n",
		"source 1 and dta.listen both take the address :5000" },
	{ "flows that end early, and late",
		"taps: [{name: a, sources: ['packet:eth0'], flows: {idle: 500ms, active: 1d}}, "
		"{name: b, sources: ['packet:eth1'], flows: {idle: 1h}}]\n",
		NULL },
	{ "flows that are kept for longer than a cache can",
		"taps: [{name: a, sources: ['packet:eth0'], flows: {idle: 2h}}]\n", "flows.idle" },
	{ "flows with records of more than a day",
		"taps: [{name: a, sources: ['packet:eth0'], flows: {active: 2d}}]\n",
		"flows.active" },
#if PL_HAVE_KAFKA
	{ "packets into a topic, and out of one",
		"sources: [{uri: 'kafka://h/r?until=end'}]\n"
		"outputs: [{type: raw, to: 'kafka://h/kept?compression.codec=zstd', spool: {path: /s}}]\n",
		NULL },
	{ "raw without a topic", "outputs: [{type: raw}]\n", "to is missing" },
	{ "raw to a collector of IPFIX", "outputs: [{type: raw, to: 'ipfix://h?pen=1'}]\n",
		"kafka://HOST[:PORT]/TOPIC" },
	{ "raw with an expression",
		"outputs: [{type: raw, to: 'kafka://h/t', where: 'node == 1'}]\n",
		"where does not apply" },
	{ "raw that should write events",
		"outputs: [{type: raw, to: 'kafka://h/t', events: true}]\n",
		"cannot write events" },
	{ "raw with a property that is refused",
		"outputs: [{type: raw, to: 'kafka://h/t?acks=nine'}]\n", "acks" },
	{ "raw where the kernel reads the packets",
		"sources: [{uri: 'afxdp:eth0'}]\ndetect: {where: kernel}\n"
		"outputs: [{type: raw, to: 'kafka://h/t'}]\n",
		"detect.where must be user or auto" },
	{ "a topic of packets with a word that is none",
		"sources: [{uri: 'kafka://h/r?until=now'}]\n", "until=end" },
	{ "a tap of a topic of packets",
		"taps: [{name: a, sources: ['kafka://h/r'], to: ['file:/f']}]\n",
		"is no source of a tap" },
	{ "a source twice, without its keys",
		"queries: [{name: a, query: ddos, from: ['kafka://h/x?k=v', 'kafka://h/x?k=v']}]\n",
		"\"kafka://h/x\" stands twice in the key from" },
	{ "sources that are the same topic",
		"queries: [{name: a, query: ddos, from: ['kafka://h/w,x', 'kafka://h:9092/x?k=v']}]\n",
		"two sources in the key from are the same topic, kafka://h:9092/x: each" },
	{ "a topic of two kinds of records",
		"queries: [{name: a, query: 'SELECT a.client FROM dns AS a JOIN packets AS b ON "
		"a.client = b.src WITHIN 1s', from: ['kafka://h/x?kind=dns64', "
		"'kafka://h/x?kind=pkt64']}]\n",
		NULL },
	{ "rows that are JSON",
		"queries: [{name: a, query: ddos, from: 'kafka://h/x?format=json', reads: rows}]\n",
		"rows are JSON objects: leave format= out" },
#endif
	{ "a key one letter off", "sorces:\n  - uri: udp://:1\n", "sources" },
};

static void test_situations(void)
{
	for (size_t i = 0; i < sizeof(situations) / sizeof(situations[0]); i++) {
		struct pl_diag diag = { .text = "" };
		struct pl_config c;
		char text[1024];
		int r = pl_config_parse(
			&c, "f", situations[i].text, strlen(situations[i].text), &diag);

		pl_diag_format(&diag, text, sizeof(text));
		if (situations[i].words == NULL) {
			ok(r == 0, "%s: accepted%s%s", situations[i].name, r < 0 ? ": " : "",
				r < 0 ? text : "");
		} else if (!ok(r == -EINVAL && strstr(text, situations[i].words) != NULL,
				   "%s: refused", situations[i].name)) {
			printf("# %d: %s\n", r, text);
		}
		if (r == 0)
			pl_config_done(&c);
	}
}

/* Rules on values of a region, with the line of the key at fault. */
static void test_alerts(void)
{
	static const struct {
		const char *rules, *words;
	} cases[] = {
		{ "above: 10", NULL },
		{ "above: 0", NULL },
		{ "above: 10, low: 10, below: 10, high: 10, rate: 0", NULL },
		{ "above: 18446744073709551615, begin_hold: 1h, end_hold: 1ms", NULL },
		{ "begin_hold: 5s", NULL },
		{ "above: 10, below: 11", "alert.below is more than alert.above" },
		{ "above: 10, low: 11", "alert.low is more than alert.above" },
		{ "low: 11", "alert.low without alert.above" },
		{ "below: 10, high: 9", "alert.high is less than alert.below" },
		{ "rate: 1, high: 9", "alert.high without alert.below" },
		{ "above: -1", "above" },
		{ "rate: 1.5", "rate" },
		{ "above: 1, end_hold: 0s", "end_hold" },
		{ "beyond: 1", "beyond" },
	};
	static const char *const regions[] = { "value: {format: record}", "read: {every: 0s}" };
	struct pl_config c;
	char text[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_diag diag = { .text = "" };
		int r;

		snprintf(text, sizeof(text),
			"regions:\n  - name: a\n    path: /none/x\n    alert: {%s}\n",
			cases[i].rules);
		r = pl_config_parse(&c, "f", text, strlen(text), &diag);
		if (r == 0)
			pl_config_done(&c);
		ok(cases[i].words == NULL ? r == 0
					  : r == -EINVAL && diag.line == 4 && diag.column > 12 &&
						    strstr(diag.text, cases[i].words) != NULL,
			"alert: {%s}: %u: %s", cases[i].rules, diag.line, diag.text);
	}
	for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
		struct pl_diag diag = { .text = "" };

		snprintf(text, sizeof(text),
			"regions:\n  - name: a\n    path: /none/x\n    %s\n    alert:\n      rate: 1\n",
			regions[i]);
		ok(pl_config_parse(&c, "f", text, strlen(text), &diag) == -EINVAL && diag.line == 6,
			"an alert and %s: %u: %s", regions[i], diag.line, diag.text);
	}
}

/* The larger of key and URI counts; a URI gets the buffer that the key asks for. */
static void test_sources(void)
{
	static const struct {
		const char *uri;
		uint64_t key_sockets, rcvbuf_bytes;
		unsigned int sockets;
		const char *opened;
	} rows[] = {
		{ "udp://:1", 1, 0, 1, "udp://:1" },
		{ "udp://:1?sockets=4", 1, 0, 4, "udp://:1?sockets=4" },
		{ "udp://:1?sockets=4", 8, 0, 8, "udp://:1?sockets=4" },
		{ "udp://:1", 2, 4096, 2, "udp://:1?rcvbuf=4096" },
		{ "udp://:1?maxlen=2048", 2, 1, 2, "udp://:1?maxlen=2048&rcvbuf=1" },
	};
	struct pl_config_source source = { .uri = NULL };
	char uri[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		source = (struct pl_config_source){ .uri = (char *)rows[i].uri,
			.sockets = rows[i].key_sockets,
			.rcvbuf_bytes = rows[i].rcvbuf_bytes };
		eq(pl_config_sockets(&source), rows[i].sockets, "%s: sockets", rows[i].uri);
		ok(pl_config_source_uri(&source, uri, sizeof(uri)), "%s: fits", rows[i].uri);
		streq(uri, rows[i].opened);
	}
	ok(!pl_config_source_uri(&source, uri, 8), "a URI that does not fit is told");
}

/* The memory that config check prints grows with what is configured, and with nothing else. */
static void test_memory(void)
{
	static const char *const texts[] = {
		"sources:\n  - uri: udp://:1\n",
		"sources:\n  - uri: udp://:1\n    sockets: 4\n",
		"sources:\n  - uri: udp://:1\n    sockets: 4\noutputs:\n  - path: x\n",
		"sources:\n  - uri: udp://:1\n    sockets: 4\noutputs:\n  - path: x\n    queue: 1000000\n",
	};
	uint64_t before = 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct pl_config c;
		uint64_t now;

		if (pl_config_parse(&c, "f", texts[i], strlen(texts[i]), NULL) < 0)
			abort();
		now = pl_pipeline_memory(&c);
		ok(now > before, "memory %zu: %" PRIu64 " MiB", i, now >> 20);
		before = now;
		pl_config_done(&c);
	}
}

/* The narrowest range comes first, whatever the order in the file. */
static void test_units(void)
{
	static const char text[] = "units:\n"
				   "  - nodes: 2-9\n    queue_cell_bytes: 176\n"
				   "  - nodes: 50\n    buffer_cell_bytes: 1\n"
				   "  - nodes: all\n    queue_cell_bytes: 80\n"
				   "  - nodes: 0x4\n    queue_cell_bytes: 208\n"
				   "  - nodes: 3-5\n    queue_cell_bytes: 256\n";
	static const struct {
		uint64_t node;
		uint32_t queue, buffer;
	} rows[] = { { 0, 80, 0 }, { 1, 80, 0 }, { 2, 176, 0 }, { 3, 256, 0 }, { 4, 208, 0 },
		{ 5, 256, 0 }, { 6, 176, 0 }, { 9, 176, 0 }, { 10, 80, 0 }, { 50, 0, 1 },
		{ UINT64_MAX, 80, 0 } };
	struct pl_detect_options detect;
	struct pl_config c;

	if (pl_config_parse(&c, "f", text, strlen(text), NULL) < 0)
		abort();
	pl_config_detect(&c, &detect);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		eq(pl_units_queue(&detect.units, rows[i].node), rows[i].queue,
			"node %" PRIu64 ": queues", rows[i].node);
		eq(pl_units_buffer(&detect.units, rows[i].node), rows[i].buffer,
			"node %" PRIu64 ": buffers", rows[i].node);
	}
	pl_config_done(&c);
}

static void test_defaults(void)
{
	struct pl_config c;
	const struct pl_config_source *s;

	eq(pl_config_defaults(&c), 0);
	s = c.sources.items;
	eq(c.sources.n, 2);
	streq(s[0].uri, "udp://:32766");
	streq(s[1].uri, "udp://:54321");
	eq(pl_config_workers(&c), 2);
	streq(c.web.listen, "127.0.0.1:8400", "the page is on the loopback");
	eq(c.outputs.n, 0);
	eq(c.dta.flush_ns, 0, "each store of telemetry memory has the wait of its primitive");
	pl_config_done(&c);
	pl_config_done(&c);
}

int main(void)
{
	pl_raw_port_add();
	test_situations();
	test_sources();
	test_alerts();
	test_memory();
	test_units();
	test_defaults();
	return pl_test_done();
}
