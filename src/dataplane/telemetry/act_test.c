/* SPDX-License-Identifier: BSD-2-Clause */
/* Telemetry actions from switches' files: a path of three switches from the file to the bytes,
 * reports with one sequence, drops reported once, and errors for wrong arguments. */
#include "dataplane/program.h"
#include "dataplane/telemetry/act.h"
#include "dataplane/test_packets.h"
#include "wire/report.h"

#define SWITCHES 3
#define OUT_MAX  64
#define PACKETS  400

struct node {
	struct pl_dp_pipeline *p;
	struct pl_dp_packet *out[OUT_MAX]; /* left by ports */
	unsigned int n;
};

static struct pl_dp_pool *pool;
static uint64_t seed; /* seed of the next pipelines */

static void keep(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	struct node *s = arg;

	(void)stage;
	if (s->n < OUT_MAX)
		s->out[s->n++] = pkt;
	else
		pl_dp_packet_free(pkt);
}

static int build(struct node *s, uint32_t id, const char *egress, struct pl_diag *diag)
{
	struct pl_dp_pipeline_options o = {
		.ops = { .out = keep, .arg = s }, .pool = pool, .seed = seed
	};
	struct pl_dp_program program;
	char text[2000];
	int r;

	snprintf(text, sizeof(text),
		"name: s%u\nid: %u\nports:\n"
		"  - { number: 1, uri: \"packet:a\" }\n"
		"  - { number: 2, uri: \"packet:b\" }\n"
		"  - { number: 9, uri: \"packet:c\" }\n"
		"tables:\n"
		"  - name: way\n    key: [ port.in exact ]\n    entries:\n"
		"      - port.in=1 -> forward 2\n"
		"  - name: telemetry\n    stage: egress\n    key: [ port.out exact ]\n"
		"    entries:\n%s",
		id, id, egress);
	*s = (struct node){ 0 };
	r = pl_dp_program_parse(&program, "s.yaml", text, strlen(text), diag);
	if (r < 0)
		return r;
	r = pl_dp_program_build(&program, &o, NULL, &s->p, diag);
	pl_dp_program_done(&program);
	return r;
}

/* Passes a packet through the switch: in by port 1, through a queue of constant depth, out. Returns
 * the packet that left by port 2, or NULL; those that left by port 9 stay in s->out. */
static struct pl_dp_packet *through(struct node *s, struct pl_dp_packet *pkt, uint64_t ns)
{
	struct pl_dp_packet *found = NULL;
	unsigned int n;

	pkt->in_port = 1;
	pkt->in_ns = ns;
	s->n = 0;
	pl_dp_pipeline_ingress(s->p, &pkt, 1);
	n = s->n;
	if (n != 1)
		return NULL;
	s->n = 0;
	pkt = s->out[0];
	pkt->out_ns = pkt->in_ns + 1000;
	pkt->depth_bytes = 5000;
	pl_dp_pipeline_egress(s->p, &pkt, 1);
	for (unsigned int i = 0; i < s->n; i++) {
		if (s->out[i]->out_port != 2)
			continue;
		found = s->out[i];
		s->out[i] = s->out[--s->n];
		break;
	}
	return found;
}

static void done(struct node *s)
{
	while (s->n > 0)
		pl_dp_packet_free(s->out[--s->n]);
	pl_dp_pipeline_free(s->p);
}

struct cell {
	const char *name;
	uint64_t value;
};

static void match_cell(void *arg, const char *name, uint32_t index, const uint64_t values[3])
{
	struct cell *c = arg;

	if (index == 0 && strcmp(c->name, name) == 0)
		c->value = values[0];
}

static uint64_t counter(const struct node *s, const char *name)
{
	struct cell c = { name, UINT64_MAX };

	pl_dp_pipeline_cells(s->p, PL_DP_COUNTERS, NULL, match_cell, &c, NULL);
	return c.value;
}

/* Parses the report in a packet that left by port 9. */
static bool read_report(struct pl_dp_packet *pkt, struct pl_report *ret)
{
	struct pl_report_iter it;
	struct pl_layers l;
	enum pl_verdict v;

	return test_locate(pkt) && test_wrong(pkt) == NULL &&
	       pl_layers_walk(&l, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET, false) ==
		       PL_V_OK &&
	       l.flow.dport == 32766 && pl_report_begin(&it, l.payload, -1, false) == PL_V_OK &&
	       pl_report_next(&it, ret, &v);
}

#define TO "to=10.9.9.9 from=10.9.9.1 out=9 mac=02:00:00:00:00:99"

static void test_path(void)
{
	static const char *const egress[SWITCHES] = {
		"      - port.out=2 -> int_source version=1.0 instructions=0xf000\n",
		"      - port.out=2 -> int_transit\n",
		"      - port.out=2 -> int_transit; int_sink " TO " report=1.0 hw=3\n",
	};
	struct node s[SWITCHES];
	struct pl_diag diag = { 0 };
	struct pl_rng rng;
	uint32_t wrong = 0, reports = 0, instrumented = 0;

	pl_rng_seed(&rng, 1);
	for (uint32_t i = 0; i < SWITCHES; i++) {
		if (!ok(build(&s[i], 11 + i, egress[i], &diag) == 0, "%s", diag.text))
			return;
	}
	for (uint32_t k = 0; k < PACKETS; k++) {
		uint8_t before[TEST_BYTES];
		uint32_t len;
		struct pl_dp_packet *pkt;
		struct pl_report report;

		/* short enough that every MTU has room */
		do
			len = test_make(before, &rng, TEST_PLAIN);
		while (len > 1300);
		pkt = pl_dp_packet_of(pool, before, len);
		for (uint32_t i = 0; i < SWITCHES && pkt != NULL; i++) {
			pkt = through(&s[i], pkt, 1000000 + 10000 * i);
			if (pkt == NULL || i != SWITCHES - 1)
				continue;
			wrong += pkt->len != len || memcmp(pkt->data, before, len) != 0;
			for (unsigned int j = 0; j < s[i].n; j++) {
				if (!read_report(s[i].out[j], &report) || report.node != 13 ||
					report.seq != reports || report.hw_id != 3 ||
					!report.tracked || report.hop.latency != 1000 ||
					report.hop.queue_depth != 5000)
					wrong++;
				reports++;
				pl_dp_packet_free(s[i].out[j]);
			}
			s[i].n = 0;
		}
		wrong += pkt == NULL;
		pl_dp_packet_free(pkt);
	}
	eq(wrong, 0, "the original bytes, and what reports say");
	instrumented = (uint32_t)counter(&s[0], "int_source.done");
	eq(instrumented, PACKETS);
	eq(reports, instrumented, "one report of each");
	eq(counter(&s[1], "int_transit.done"), instrumented);
	eq(counter(&s[2], "int_sink.done"), instrumented);
	eq(counter(&s[2], "int_sink.reports"), reports);
	/* replacing an entry does not restart the stream */
	{
		const struct pl_dp_change change = { PL_DP_SET, "telemetry",
			"port.out=2 -> int_transit; int_sink " TO " report=1.0 hw=3 snap=40" };
		struct pl_report report = { 0 };
		struct pl_dp_packet *pkt;
		uint8_t bytes[TEST_BYTES];
		uint32_t len = 0;
		size_t bad;

		eq(pl_dp_pipeline_change(s[2].p, &change, 1, &bad, &diag), 0, "%s", diag.text);
		while (len == 0 || len > 1300)
			len = test_make(bytes, &rng, TEST_PLAIN);
		pkt = pl_dp_packet_of(pool, bytes, len);
		for (uint32_t i = 0; i < SWITCHES; i++)
			pkt = through(&s[i], pkt, 1);
		ok(s[2].n == 1 && read_report(s[2].out[0], &report), "a report");
		eq(report.seq, reports);
		pl_dp_packet_free(pkt);
	}
	for (uint32_t i = 0; i < SWITCHES; i++)
		done(&s[i]);
	eq(pl_dp_pool_alive(pool), 0);
}

/* INT-MX and INT-XD: packets carry no values of nodes, and each node reports each packet by itself. */
static void test_each_node(void)
{
	static const char *const modes[2][SWITCHES] = {
		{ "int_source mode=mx; report kind=flow " TO, "report kind=flow " TO,
			"report kind=flow " TO "; int_sink" },
		{ "report kind=flow " TO, "report kind=flow " TO, "report kind=flow " TO },
	};
	const uint32_t header = 4 + 12; /* of MX, without a stack */
	struct pl_diag diag = { 0 };
	struct pl_rng rng;

	pl_rng_seed(&rng, 3);
	for (uint32_t xd = 0; xd < 2; xd++) {
		struct node s[SWITCHES];
		uint32_t wrong = 0, seen = 0;

		for (uint32_t i = 0; i < SWITCHES; i++) {
			char egress[200];

			snprintf(
				egress, sizeof(egress), "      - port.out=2 -> %s\n", modes[xd][i]);
			if (!ok(build(&s[i], 11 + i, egress, &diag) == 0, "%s", diag.text))
				return;
		}
		for (uint32_t k = 0; k < 50; k++) {
			uint8_t before[TEST_BYTES];
			struct pl_dp_packet *pkt;
			uint32_t len;

			do
				len = test_make(before, &rng, TEST_PLAIN);
			while (len > 1300);
			pkt = pl_dp_packet_of(pool, before, len);
			for (uint32_t i = 0; i < SWITCHES && pkt != NULL; i++) {
				const bool bare = xd != 0 || i == SWITCHES - 1;
				struct pl_report report = { 0 };

				pkt = through(&s[i], pkt, 1000000 + 10000 * i);
				wrong += pkt == NULL || pkt->len != len + (bare ? 0 : header) ||
					 (bare && memcmp(pkt->data, before, len) != 0);
				wrong += s[i].n != 1 || !read_report(s[i].out[0], &report) ||
					 report.node != 11 + i || report.seq != k ||
					 !report.tracked || report.hop.latency != 1000 ||
					 report.hop.queue_depth != 5000;
				seen += s[i].n;
				while (s[i].n > 0)
					pl_dp_packet_free(s[i].out[--s[i].n]);
			}
			pl_dp_packet_free(pkt);
		}
		eq(wrong, 0, "%s: the packet, and a report of each node with its values",
			xd ? "XD" : "MX");
		eq(seen, 50 * SWITCHES);
		for (uint32_t i = 0; i < SWITCHES; i++)
			done(&s[i]);
	}
	eq(pl_dp_pool_alive(pool), 0);
}

/* A node reports each drop once, but not drops of its reports. */
static void test_drops(void)
{
	struct pl_report report = { 0 };
	struct pl_dp_packet *pkt;
	struct pl_diag diag = { 0 };
	uint8_t bytes[TEST_BYTES];
	struct pl_rng rng;
	struct node s;
	uint32_t len;

	pl_rng_seed(&rng, 4);
	if (!ok(build(&s, 5, "      - port.out=2 -> report kind=drop " TO "\n", &diag) == 0, "%s",
		    diag.text))
		return;
	len = test_make(bytes, &rng, TEST_PLAIN);
	pkt = pl_dp_packet_of(pool, bytes, len);
	pkt->in_port = 2; /* no entry: no route */
	pl_dp_pipeline_ingress(s.p, &pkt, 1);
	ok(s.n == 1 && read_report(s.out[0], &report), "a report of the drop");
	ok(report.dropped && report.have_drop_reason, "that says so");
	eq(report.drop_reason, 2, "no route");
	eq(report.node, 5);
	done(&s);

	if (!ok(build(&s, 5, "      - port.out=2 -> report kind=drop " TO "\n", &diag) == 0))
		return;
	pl_dp_pipeline_port_up(s.p, 9, false);
	pkt = pl_dp_packet_of(pool, bytes, len);
	pkt->in_port = 2;
	pl_dp_pipeline_ingress(s.p, &pkt, 1);
	eq(s.n, 0, "the way to the collector is down");
	eq(pl_dp_pipeline_account(s.p, PL_DP_INGRESS)->dropped[PL_DP_DROP_PORT], 1,
		"one report dropped, and no report about it");
	done(&s);
	eq(pl_dp_pool_alive(pool), 0);
}

/* A node reports no packet that it has made itself. */
static void test_own(void)
{
	static const char *const kinds[] = { "kind=flow", "kind=queue threshold=1" };
	struct pl_diag diag = { 0 };
	uint8_t bytes[TEST_BYTES];
	struct pl_rng rng;
	uint32_t len;

	pl_rng_seed(&rng, 4);
	len = test_make(bytes, &rng, TEST_PLAIN);
	for (size_t i = 0; i < 2; i++) {
		struct pl_dp_packet *report;
		char egress[400];
		struct node s;

		snprintf(egress, sizeof(egress),
			"      - port.out=2 -> report %s " TO "\n"
			"      - port.out=9 -> mark 1; report %s " TO "\n",
			kinds[i], kinds[i]);
		if (!ok(build(&s, 5, egress, &diag) == 0, "%s", diag.text))
			return;
		pl_dp_packet_free(through(&s, pl_dp_packet_of(pool, bytes, len), 1000));
		eq(s.n, 1);
		report = s.out[0];
		s.n = 0;
		report->out_ns = report->in_ns + 1000;
		report->depth_bytes = 5000;
		pl_dp_pipeline_egress(s.p, &report, 1);
		eq(s.n, 1, "%s: no report of the report", kinds[i]);
		eq(counter(&s, "report.reports"), 1);
		done(&s);
	}
	eq(pl_dp_pool_alive(pool), 0);
}

/* Returns the number of reports that a filter with few places held back, for flows that displace
 * each other. */
static uint64_t held(uint64_t with_seed)
{
	struct pl_diag diag = { 0 };
	uint8_t bytes[TEST_BYTES];
	struct pl_rng rng;
	struct node s;
	uint64_t n;
	int r;

	seed = with_seed;
	r = build(
		&s, 5, "      - port.out=2 -> int_source; int_sink " TO " path flows=16\n", &diag);
	seed = 0;
	if (!ok(r == 0, "%s", diag.text))
		return 0;
	for (unsigned int round = 0; round < 4; round++) {
		pl_rng_seed(&rng, 9);
		for (unsigned int i = 0; i < 12; i++) {
			uint32_t len;

			do
				len = test_make(bytes, &rng, TEST_PLAIN);
			while (len > 1300);
			pl_dp_packet_free(through(&s, pl_dp_packet_of(pool, bytes, len), 1000));
			while (s.n > 0)
				pl_dp_packet_free(s.out[--s.n]);
		}
	}
	n = counter(&s, "int_sink.held");
	done(&s);
	return n;
}

/* Reports depend on the pipeline's seed, not on the process. */
static void test_seed(void)
{
	/* results of held() for seeds 1 to 8; the hash is the same everywhere */
	static const uint64_t expect[8] = { 25, 17, 26, 30, 29, 36, 30, 29 };
	uint32_t others = 0;

	for (uint64_t i = 1; i <= 8; i++) {
		eq(held(i), expect[i - 1], "seed %u", (unsigned int)i);
		others += expect[i - 1] != expect[0];
	}
	ok(others > 0, "another seed, other reports");
}

/* The other packets that an entry can send. */
static void test_exports(void)
{
	static const char egress[] =
		"      - port.out=2 -> report kind=queue " TO " threshold=4000 quota=2; record " TO
		" kind=pkt64; dta " TO " op=key-write key=flow value=queue_depth; roce_write " TO
		" qpn=17 rkey=1 va=0x1000 value=node,queue_depth slots=4\n";
	struct pl_diag diag = { 0 };
	uint8_t bytes[TEST_BYTES];
	struct pl_rng rng;
	struct node s;
	uint32_t len, sent = 0;

	pl_rng_seed(&rng, 4);
	if (!ok(build(&s, 5, egress, &diag) == 0, "%s", diag.text))
		return;
	len = test_make(bytes, &rng, TEST_PLAIN);
	for (int i = 0; i < 5; i++) {
		struct pl_dp_packet *pkt =
			through(&s, pl_dp_packet_of(pool, bytes, len), 1000 + (uint64_t)i);

		ok(pkt != NULL && pkt->len == len && memcmp(pkt->data, bytes, len) == 0,
			"the packet as it was");
		pl_dp_packet_free(pkt);
		sent += s.n;
		while (s.n > 0)
			pl_dp_packet_free(s.out[--s.n]);
	}
	eq(sent, 2 + 3 * 5);
	eq(counter(&s, "report.reports"), 2);
	eq(counter(&s, "report.held"), 3);
	eq(counter(&s, "record.datagrams"), 5);
	eq(counter(&s, "dta.reports"), 5);
	eq(counter(&s, "roce_write.writes"), 5);
	done(&s);
	eq(pl_dp_pool_alive(pool), 0);
}

/* Records that wait when their entry is removed are lost, and counted. */
static void test_unsent(void)
{
	const struct pl_dp_change gone[] = {
		{ PL_DP_SET, "telemetry", "port.out=2 -> record " TO " records=4" },
		{ PL_DP_DELETE, "telemetry", "port.out=2" },
	};
	struct pl_diag diag = { 0 };
	uint8_t bytes[TEST_BYTES];
	struct pl_rng rng;
	struct node s;
	uint32_t len;
	size_t bad;

	pl_rng_seed(&rng, 4);
	if (!ok(build(&s, 5, "      - port.out=2 -> record " TO " records=3\n", &diag) == 0, "%s",
		    diag.text))
		return;
	len = test_make(bytes, &rng, TEST_PLAIN);
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int k = 0; k < 5; k++) {
			pl_dp_packet_free(through(&s, pl_dp_packet_of(pool, bytes, len), 1000));
			while (s.n > 0)
				pl_dp_packet_free(s.out[--s.n]);
		}
		eq(counter(&s, "record.datagrams"), 1 + i);
		eq(pl_dp_pipeline_change(s.p, &gone[i], 1, &bad, &diag), 0, "%s", diag.text);
		/* 5 records of which 3 were sent, then 5 of which 4 were sent */
		eq(counter(&s, "record.unsent"), i == 0 ? 2 : 3);
	}
	done(&s);
	eq(pl_dp_pool_alive(pool), 0);
}

static void count_cell(void *arg, const char *name, uint32_t index, const uint64_t values[3])
{
	(void)name;
	(void)index;
	(void)values;
	++*(unsigned int *)arg;
}

/* More collectors in turn than there is room for registers: each one's register is freed. */
static void test_registers(void)
{
	struct pl_diag diag = { 0 };
	unsigned int cells = 0;
	struct node s;
	size_t bad;
	int wrong = 0;

	if (!ok(build(&s, 5, "      - port.out=2 -> int_transit\n", &diag) == 0, "%s", diag.text))
		return;
	for (unsigned int i = 0; i < 3 * PL_DP_NAMED_MAX; i++) {
		char entry[200];
		const struct pl_dp_change c = { PL_DP_SET, "telemetry", entry };

		snprintf(entry, sizeof(entry),
			"port.out=2 -> report to=10.9.%u.%u from=10.9.9.1 out=9; "
			"roce_write to=10.9.9.9 from=10.9.9.1 out=9 qpn=%u rkey=1 va=0 value=node",
			i >> 8, i & 255, i);
		wrong += pl_dp_pipeline_change(s.p, &c, 1, &bad, &diag) < 0;
	}
	eq(wrong, 0, "collectors and queue pairs come and go: %s", diag.text);
	pl_dp_pipeline_cells(s.p, PL_DP_REGISTERS, NULL, count_cell, &cells, NULL);
	eq(cells, 4, "two registers are left, of two cells each");
	done(&s);
}

static void test_errors(void)
{
	static const struct {
		const char *entry, *says;
	} cases[] = {
		{ "int_source verzion=1.0", "did you mean \"version\"" },
		{ "int_source version=3.0", "one of 0.5, 1.0, 2.1" },
		{ "int_source version=1.0 mode=mx", "only in INT 2.1" },
		{ "int_source version", "needs a value" },
		{ "int_source dscp=64", "up to 63" },
		{ "int_source hops=1 hops=2", "twice" },
		{ "int_transit tcp=around", "after, before" },
		{ "int_sink to=10.0.0.1 from=10.0.0.2", "out=PORT is needed" },
		{ "int_sink to=10.0.0.1 from=10.0.0.2 out=7", "out=PORT is needed" },
		{ "int_sink to=10.0.0.1 from=fd00::1 out=9", "both IPv4 or both IPv6" },
		{ "int_sink " TO " flows=3 path", "power of two" },
		{ "int_sink " TO " report=2.1", "0.5, 1.0, 2.0" },
		{ "report kind=queue " TO, "threshold" },
		{ "report " TO " quota=3", "threshold" },
		{ "report kind=drop", "out=PORT" },
		{ "ioam_encap ns=1 type=1", "24 bits" },
		{ "ioam_encap ns=70000", "up to 65535" },
		{ "ioam_transit ns=1 type=2", "no argument \"type\"" },
		{ "record " TO " records=9999", "at most" },
		{ "dta " TO " op=push key=flow", "key-write, append" },
		{ "dta " TO " op=append", "need a value" },
		{ "dta " TO " key=flow value=quue_depth", "help fields" },
		{ "roce_write " TO " qpn=1 rkey=1 value=node", "rkey and va" },
		{ "roce_write " TO " qpn=1 rkey=1 va=0 value=node slot=2", "too small" },
		{ "roce_write " TO " qpn=1 rkey=1 va=0 value=node form=v3", "one of v1, v2" },
		{ "roce_write " TO " qpn=1 rkey=1 va=0 value=node service=ud", "one of uc, rc" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_diag diag = { 0 };
		char entry[300];
		struct node s;

		snprintf(entry, sizeof(entry), "      - port.out=2 -> %s\n", cases[i].entry);
		if (!ok(build(&s, 1, entry, &diag) < 0, "%s", cases[i].entry)) {
			done(&s);
			continue;
		}
		ok(strstr(diag.text, cases[i].says) != NULL, "%s", diag.text);
	}
}

/* The error of a table is shown at the line of what is wrong. */
static void test_error_places(void)
{
#define SECOND "      - port.out=2 -> int_transit\n"
	static const struct {
		const char *egress, *says;
		unsigned int line;
	} cases[] = {
		{ SECOND "  - name: way\n    stage: egress\n    key: [ port.out exact ]\n",
			"is there already", 17 },
		{ SECOND "  - name: third\n    stage: egress\n    key:\n"
			 "      - port.out exact\n      - nothing exact\n",
			"nothing", 21 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_diag diag = { 0 };
		struct node s;

		if (!ok(build(&s, 1, cases[i].egress, &diag) < 0, "a wrong table")) {
			done(&s);
			continue;
		}
		ok(strstr(diag.text, cases[i].says) != NULL, "%s", diag.text);
		eq(diag.line, cases[i].line, "and its line");
	}
}

int main(void)
{
	eq(pl_dp_pool_new(&pool, 4096, 128), 0);
	test_path();
	test_each_node();
	test_drops();
	test_own();
	test_seed();
	test_exports();
	test_unsent();
	test_registers();
	test_errors();
	test_error_places();
	pl_dp_pool_free(pool);
	return pl_test_done();
}
