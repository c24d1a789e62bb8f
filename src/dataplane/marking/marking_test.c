/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate marking in a switch: the tables of the example files, and points of ports, give the
 * same records as the engine for the same packets. The scenarios of the engine's own test run on
 * them, too.
 */
#include <errno.h>

#include "dataplane/pipeline_state.h"
#include "dataplane/program.h"

#define main scenarios
int scenarios(void);
#include "mark/scenarios_test.c"
#undef main

#include "base/rng.h"
#include "dataplane/telemetry/act.h"
#include "tap/tmpkt.h"
#include "wire/layers.h"

#define IP_BYTES 100 /* as in the engine's test */

static const char *const names[] = { "", "step", "pulse", "double", "multiplexed" };

static struct pl_dp_program programs[PL_MARK_METHOD_MAX], ports;
static struct pl_dp_pool *pool;

/* Two switches: 0 marks and counts what is sent, 1 counts what arrives. */
static struct test_switch {
	struct pl_dp_pipeline *pipeline;
	struct test_path *path;
	uint8_t dscp; /* DSCP of the last packet that left */
	uint32_t point, passed;
} switches[2];

static bool by_ports; /* points of ports in place of tables */
static uint64_t packets_passed, wrong_marks, wrong_sums, reloads;

/* ---- the switches ---- */

static void out(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	struct test_switch *s = arg;

	(void)stage;
	s->dscp = pkt->data[pkt->headers.l3 + 1] >> 2;
	wrong_sums += pl_checksum_fold(pl_checksum_add(0, pkt->data + pkt->headers.l3, 20)) != 0;
	packets_passed++;
	pl_dp_packet_free(pkt);
}

/* Adapts a record to the flow and clocks of the engine's test. */
static void block(void *arg, const struct pl_mark128 *record)
{
	struct test_switch *s = arg;
	struct pl_mark128 r = *record;

	if (r.point != s->point || (r.dst.b[15] != 2 && r.dst.b[15] != 0))
		return;
	r.src = r.dst = (struct pl_addr){ .b = { 0 } };
	r.tai_offset = s->path->tai_offset[s->point - 1];
	r.clock_error_ns = 0;
	r.mark_flags &= (uint16_t)~PL_MARK_IS_MARKER;
	test_record(s->path, &r);
}

static void load(uint8_t method)
{
	struct pl_diag diag = { .text = "" };
	char file[512];

	if (programs[method].text != NULL)
		return;
	snprintf(file, sizeof(file), "%s/marking-%s.yaml", EXAMPLES, names[method]);
	if (pl_dp_program_load(&programs[method], file, &diag) < 0) {
		printf("# %s: %s\n", file, diag.text);
		abort();
	}
}

/* Points of ports with any guard band below the limit; the example's tables have one of 40 ms. */
static void make_ports(const struct test_path *p)
{
	struct pl_diag diag = { .text = "" };
	char text[1024];

	snprintf(text, sizeof(text),
		"ports: [ { number: 1, uri: \"packet:a\" }, { number: 2, uri: \"packet:b\" } ]\n"
		"tables: [ { name: t, key: [ port.in exact ], entries: [ port.in=1 -> forward 2, "
		"port.in=2 -> forward 1 ] } ]\n"
		"marking:\n  method: %s\n  bits: [ dscp:0%s ]\n  clock_error: %" PRIu64
		"ns\n  delay: 0s\n  deviation: 0s\n"
		"  points:\n    - { number: 1, port: 1, role: marker }\n"
		"    - { number: 2, port: 2, role: unmarker }\n",
		names[p->method], p->method == PL_MARK_DOUBLE ? ", dscp:1" : "", p->guard_ns);
	if (pl_dp_program_parse(&ports, "ports", text, strlen(text), &diag) < 0) {
		printf("# %s\n", diag.text);
		abort();
	}
}

static struct pl_dp_pipeline *build(struct test_switch *s, const struct pl_dp_program *program)
{
	const struct pl_dp_pipeline_options o = { .pool = pool,
		.ops = { .out = out, .block = block, .arg = s } };
	struct pl_diag diag = { .text = "" };
	struct pl_dp_pipeline *ret;

	if (pl_dp_program_build(program, &o, NULL, &ret, &diag) == 0)
		return ret;
	printf("# %s\n", diag.text);
	abort();
}

static const struct pl_dp_program *program_of(const struct test_path *p)
{
	return !by_ports && p->guard_ns == SPREAD ? &programs[p->method] : &ports;
}

/* Reloads the same file. */
static void reload(struct test_switch *s)
{
	struct pl_dp_pipeline *again = build(s, program_of(s->path));

	pl_dp_pipeline_inherit(again, s->pipeline);
	s->pipeline = again;
	reloads++;
}

static void switches_begin(struct test_path *p)
{
	if (pool == NULL && pl_dp_pool_new(&pool, PL_DP_HEADROOM + 1600, 64) < 0)
		abort();
	load(p->method);
	if (program_of(p) == &ports)
		make_ports(p);
	for (unsigned int i = 0; i < 2; i++) {
		struct test_switch *s = &switches[i];

		*s = (struct test_switch){ .path = p, .point = i + 1 };
		s->pipeline = build(s, program_of(p));
		/* Starts before the first packet, so that its block is whole. */
		pl_dp_pipeline_turn(
			s->pipeline, (ZERO - 4) * PERIOD + (i == 1 ? (uint64_t)p->offset_ns : 0));
	}
}

/* ---- packets ---- */

static void pass(struct test_switch *s, uint16_t port, uint64_t time_ns, unsigned int bits)
{
	uint8_t frame[14 + IP_BYTES] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45,
		(uint8_t)(bits << 2), 0, IP_BYTES, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0,
		2, 1000 >> 8, 1000 & 0xff, 2000 >> 8, 2000 & 0xff, 0, IP_BYTES - 20 };
	const uint16_t sum = pl_checksum_fold(pl_checksum_add(0, frame + 14, 20));
	struct pl_dp_packet *pkt;

	frame[24] = (uint8_t)(sum >> 8);
	frame[25] = (uint8_t)sum;
	pkt = pl_dp_packet_of(pool, frame, sizeof(frame));
	if (pkt == NULL)
		abort();
	pkt->in_port = port;
	pkt->in_ns = time_ns;
	s->dscp = UINT8_MAX;
	if (s->path != NULL && ++s->passed % 301 == 0)
		reload(s);
	pl_dp_pipeline_ingress(s->pipeline, &pkt, 1);
}

static unsigned int switches_send(struct test_path *p, uint64_t time_ns)
{
	(void)p;
	pass(&switches[0], 1, time_ns, 0);
	return switches[0].dscp;
}

static void switches_arrive(struct test_path *p, uint64_t time_ns, unsigned int bits)
{
	(void)p;
	pass(&switches[1], 2, time_ns, bits);
	wrong_marks += switches[1].dscp != 0; /* the edge of the domain */
}

static void switches_end(struct test_path *p, uint64_t time_ns)
{
	for (unsigned int i = 0; i < 2; i++) {
		pl_dp_pipeline_turn(switches[i].pipeline,
			time_ns + (i == 1 && p->offset_ns > 0 ? (uint64_t)p->offset_ns : 0));
		pl_dp_pipeline_free(switches[i].pipeline);
	}
	if (program_of(p) == &ports)
		pl_dp_program_done(&ports);
}

static const struct test_form switches_form = { switches_begin, switches_send, switches_arrive,
	switches_end };

/* ---- against the engine, at random ---- */

struct truth {
	uint64_t sent, arrived;
};

/* Makes packets at random times, with single losses and bursts, delays that reorder them, also
 * across blocks, and idle blocks; within the guard band. */
static void make_path(struct pl_rng *rng, uint8_t method, struct truth truth[BLOCKS])
{
	const uint32_t n = 200 + (uint32_t)pl_rng_below(rng, 400);
	const bool copies = pl_rng_below(rng, 8) == 0;
	uint64_t at = ZERO * PERIOD, gap = 4 * PERIOD / n;
	bool bad = false;

	memset(&path, 0, sizeof(path));
	memset(truth, 0, BLOCKS * sizeof(*truth));
	path.method = method;
	path.guard_ns = SPREAD;
	path.clock_ns = 40 * MS;
	path.offset_ns = (int64_t)pl_rng_below(rng, 40 * MS) - 35 * (int64_t)MS;
	for (uint32_t i = 0; i < n; i++) {
		struct test_packet *k = &path.packets[path.n++];

		at += 1 + pl_rng_below(rng, 2 * gap);
		if (pl_rng_below(rng, 200) == 0)
			at += pl_rng_below(rng, 2 * PERIOD);
		bad = bad ? pl_rng_below(rng, 10) != 0 : pl_rng_below(rng, 100) == 0;
		k->sent_ns = at;
		k->delay_ns = 5 * MS + pl_rng_below(rng, 30 * MS);
		k->lost = bad || pl_rng_below(rng, 50) == 0;
		k->copies = copies && pl_rng_below(rng, 20) == 0;
		truth[test_place(at / PERIOD)].sent++;
		truth[test_place(at / PERIOD)].arrived += k->lost ? 0 : 1u + k->copies;
	}
}

/* Returns true for equal records. Blocks before the engine's first flow have no packets. */
static bool same_records(const struct pl_mark128 *want, const struct pl_mark128 *got)
{
	struct pl_mark128 w = *want, g = *got;

	if (w.period_ns == 0)
		return g.packets == 0 && g.pulses == 0;
	w.src = w.dst = g.src = g.dst;
	w.sport = g.sport;
	w.dport = g.dport;
	w.proto = g.proto;
	if (memcmp(&w, &g, sizeof(w)) == 0)
		return true;
	printf("# block %" PRIu64 " point %u: packets %" PRIu64 " %" PRIu64 " bytes %" PRIu64
	       " %" PRIu64 " sum %" PRId64 " %" PRId64 " first %" PRId64 " %" PRId64
	       " pulse %" PRId64 " %" PRId64 " late %u %u early %u %u pulses %u %u flags %x %x\n",
		w.block, w.point, w.packets, g.packets, w.bytes, g.bytes, w.sum_ns, g.sum_ns,
		w.first_ns, g.first_ns, w.pulse_ns, g.pulse_ns, w.late, g.late, w.early, g.early,
		w.pulses, g.pulses, w.mark_flags, g.mark_flags);
	return false;
}

/* Returns true when losses are exact. A point that finds flows by their packets has no record
 * before the first arrives: then there is no loss, but an alarm. */
static bool loss_is_true(uint8_t method, const struct truth truth[BLOCKS])
{
	bool good = true, arrived = false;

	for (unsigned int i = 0; i < BLOCKS - 1 && method != PL_MARK_PULSE; i++) {
		const struct pl_mark_result *r = &path.results[i];

		arrived |= truth[i].arrived > 0;
		if (truth[i].sent == 0 && truth[i].arrived == 0)
			continue;
		if (by_ports && !arrived && (r->alarms & PL_MARK_ALARM_MISSING) != 0 &&
			(r->has & PL_MARK_HAS_LOSS) == 0)
			continue;
		good &= (r->has & PL_MARK_HAS_LOSS) != 0 &&
			r->loss == (int64_t)truth[i].sent - (int64_t)truth[i].arrived;
		good &= (r->alarms & PL_MARK_ALARM_BEYOND) == 0;
	}
	return good;
}

static void at_random(uint8_t method, unsigned int seeds)
{
	static struct pl_mark128 want[2][BLOCKS];
	struct truth truth[BLOCKS];
	uint64_t differ = 0, wrong = 0, packets = 0;
	struct pl_rng rng;

	for (unsigned int seed = 1; seed <= seeds; seed++) {
		pl_rng_seed(&rng, seed * 100 + method);
		make_path(&rng, method, truth);
		packets += path.n;
		test_form = &test_own_form;
		test_run(&path);
		memcpy(want, path.records, sizeof(want));
		test_form = &switches_form;
		test_run(&path);
		/* The last place also stands for all later blocks. */
		for (unsigned int i = 0; i < 2 * BLOCKS; i++)
			differ += i % BLOCKS != BLOCKS - 1 &&
				  !same_records(&want[i / BLOCKS][i % BLOCKS],
					  &path.records[i / BLOCKS][i % BLOCKS]);
		wrong += !loss_is_true(method, truth);
		if (differ > 3)
			break;
	}
	ok(differ == 0 && wrong == 0,
		"%s, %s: records of %u random paths (%" PRIu64
		" packets) are the engine's, and losses the true ones",
		names[method], by_ports ? "points of ports" : "tables", seeds, packets);
}

/* Clocks that differ by more than the guard band. A block whose few packets all moved to another
 * one cannot detect it; but each path with a wrong loss has an alarm. */
static void beyond(uint8_t method, unsigned int seeds)
{
	struct truth truth[BLOCKS];
	uint64_t wrong = 0, silent = 0;
	struct pl_rng rng;

	for (unsigned int seed = 1; seed <= seeds; seed++) {
		pl_rng_seed(&rng, seed * 100 + method + 50);
		make_path(&rng, method, truth);
		path.offset_ns = (int64_t)(60 * MS + pl_rng_below(&rng, 700 * MS)) *
				 (seed % 2 != 0 ? 1 : -1);
		test_run(&path);
		bool alarm = false;
		uint64_t here = 0;

		for (unsigned int i = 0; i < BLOCKS - 1; i++) {
			const struct pl_mark_result *r = &path.results[i];
			const int64_t lost = (int64_t)truth[i].sent - (int64_t)truth[i].arrived;

			alarm |= (r->alarms & (PL_MARK_ALARM_BEYOND | PL_MARK_ALARM_PULSES)) != 0;
			here += (r->has & PL_MARK_HAS_LOSS) != 0 && r->loss != lost;
		}
		wrong += here;
		silent += here > 0 && !alarm;
	}
	ok(wrong > 0 && silent == 0,
		"%s: %" PRIu64 " losses are not the true ones, on paths that all have an alarm",
		names[method], wrong);
}

/* ---- what the tables are made of ---- */

static void actions(void)
{
	static const char text[] =
		"ports: [ { number: 1, uri: \"packet:a\" }, { number: 2, uri: \"packet:b\" } ]\n"
		"counters: [ { name: c, size: 8 } ]\n"
		"registers: [ { name: r, size: 8 } ]\n"
		"tables:\n"
		"  - { name: a, miss: \"forward 2; mark 2; set ip.dscp 2&6; first r[mark+1] 250ms/1s\" }\n"
		"  - { name: b, key: [ value exact ], entries: [ \"value=1 -> count c[mark+4]\", value=0 -> set value 9 ] }\n"
		"  - { name: d, key: [ value exact ], entries: [ \"value=9 -> count c[mark+7]\" ] }\n";
	static const struct {
		const char *action, *why;
	} refused[] = {
		{ "set ip.dscp 1&64", "a mask wider than the field" },
		{ "set ip.dscp 1&0", "an empty mask" },
		{ "set ip.src 10.0.0.1&1", "a mask of an address" },
		{ "first r[0] 1s/1s", "an offset that is the period" },
		{ "first r[0] 1s", "no period" },
		{ "first c[0] 0s/1s", "a counter" },
		{ "count c[mark+8]", "a cell behind the last" },
		{ "count c[mark+]", "no number" },
	};
	struct test_switch s = { .point = 9 };
	const struct pl_dp_pipeline_options o = { .pool = pool, .ops = { .out = out, .arg = &s } };
	struct pl_dp_program program;
	struct pl_diag diag = { .text = "" };
	const struct pl_dp_cells_state *c, *r;
	size_t bad;

	if (pl_dp_program_parse(&program, "actions", text, sizeof(text) - 1, &diag) < 0 ||
		pl_dp_program_build(&program, &o, NULL, &s.pipeline, &diag) < 0) {
		ok(false, "%s", diag.text);
		return;
	}
	c = pl_dp_cells_find(s.pipeline, PL_DP_COUNTERS, "c", 1);
	r = pl_dp_cells_find(s.pipeline, PL_DP_REGISTERS, "r", 1);
	pass(&s, 1, 100 * PERIOD + 240 * MS, 0x3d);
	eq(s.dscp, 0x3b, "set writes the bits of its mask");
	eq(r->registers[3], 100 * PERIOD + 240 * MS, "the first packet's time is in the register");
	pass(&s, 1, 100 * PERIOD + 249 * MS, 0);
	pass(&s, 1, 100 * PERIOD + 250 * MS, 0);
	pass(&s, 1, 101 * PERIOD + 249 * MS, 0);
	pass(&s, 1, 103 * PERIOD + 0 * MS, 0);
	eq(r->registers[3], 103 * PERIOD, "and that of the last period that had one");
	eq(c->counters[6][0], 3, "three periods from 250 ms on have packets");
	eq(c->counters[1][0], 2,
		"two packets are not the first; the index is taken modulo the size");
	for (unsigned int i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		char entry[64];

		snprintf(entry, sizeof(entry), "value=%u -> %s", 20 + i, refused[i].action);
		eq(pl_dp_pipeline_change(s.pipeline,
			   &(struct pl_dp_change){ PL_DP_ADD, "b", entry }, 1, &bad, &diag),
			(uint64_t)-EINVAL, "refused: %s", refused[i].why);
	}
	pl_dp_pipeline_free(s.pipeline);
	pl_dp_program_done(&program);
}

/* ---- records as datagrams of the switch ---- */

static struct {
	unsigned int datagrams, records, told;
	bool good;
} sent;

static void take(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	const uint8_t *records;
	struct pl_tmpkt head;

	(void)arg;
	(void)stage;
	if (pkt->own) {
		sent.datagrams++;
		sent.good &= pkt->out_port == 2 &&
			     pl_tmpkt_parse(&head, &records, pkt->data + 42, pkt->len - 42) ==
				     PL_TMPKT_OK &&
			     head.kind == PL_FLAT_MARK128 && head.exporter == 7;
		sent.records += sent.good ? head.count : 0;
	}
	pl_dp_packet_free(pkt);
}

static void tell(void *arg, const struct pl_mark128 *record)
{
	(void)arg;
	(void)record;
	sent.told++;
}

static void datagrams(void)
{
	static const char text[] =
		"id: 7\nports: [ { number: 1, uri: \"packet:a\" }, { number: 2, uri: \"packet:b\" } ]\n"
		"tables: [ { name: t, miss: forward 2 } ]\n"
		"marking:\n  send: \"to=192.0.2.1 from=192.0.2.2 out=2 mac=02:00:00:00:00:99\"\n"
		"  points:\n    - { number: 1, port: 1, role: marker, by: none }\n"
		"    - { number: 2, port: 2, direction: out, by: flow }\n";
	const struct pl_dp_pipeline_options o = { .pool = pool,
		.ops = { .out = take, .block = tell } };
	struct test_switch s = { .point = 9 };
	struct pl_dp_program program;
	struct pl_diag diag = { .text = "" };

	sent.good = true;
	if (pl_dp_program_parse(&program, "datagrams", text, sizeof(text) - 1, &diag) < 0 ||
		pl_dp_program_build(&program, &o, NULL, &s.pipeline, &diag) < 0) {
		ok(false, "%s", diag.text);
		return;
	}
	eq(pl_dp_pipeline_due(s.pipeline), 0, "points begin with the first turn");
	pl_dp_pipeline_turn(s.pipeline, 100 * PERIOD + 1);
	eq(pl_dp_pipeline_due(s.pipeline), 100 * PERIOD + PERIOD / 2,
		"and are read in the middle of blocks");
	pl_dp_pipeline_turn(s.pipeline, 103 * PERIOD + PERIOD / 2 - 1);
	eq(sent.told, 2, "of all packets together each block has a record, without packets, too");
	pl_dp_pipeline_turn(s.pipeline, 103 * PERIOD + PERIOD / 2);
	eq(sent.told, 3);
	pass(&s, 1, 104 * PERIOD, 0);
	pl_dp_pipeline_turn(s.pipeline, 200000000 * PERIOD);
	ok(sent.told > 60 && sent.told < 200, "a clock that jumps ahead is not counted through: %u",
		sent.told);
	ok(sent.good && sent.records == sent.told && sent.datagrams > 0,
		"%u records leave in %u datagrams", sent.records, sent.datagrams);
	pl_dp_pipeline_free(s.pipeline);
	pl_dp_program_done(&program);
}

/* ---- what changes while blocks are under way ---- */

static struct {
	struct pl_mark128 last;
	unsigned int n;
	bool synced;
	uint64_t error_ns;
} told;

static void keep_last(void *arg, const struct pl_mark128 *record)
{
	(void)arg;
	told.last = *record;
	told.n++;
}

static void tell_clock(void *arg, bool *ret_synced, uint64_t *ret_error_ns)
{
	(void)arg;
	*ret_synced = told.synced;
	*ret_error_ns = told.error_ns;
}

/* Builds tables that count packets from 10.0.0.1, or of another entry, in all four blocks of the
 * cells `name`. */
static struct pl_dp_pipeline *build_cells(
	struct pl_dp_program *program, const char *name, unsigned int flows, const char *entry)
{
	const struct pl_dp_pipeline_options o = {
		.pool = pool,
		.ops = { .out = out, .block = keep_last, .clock = tell_clock, .arg = &switches[0] }
	};
	struct pl_dp_pipeline *ret = NULL;
	struct pl_diag diag = { .text = "" };
	char text[2048];
	int n = snprintf(text, sizeof(text),
		"ports: [ { number: 1, uri: \"packet:a\" }, { number: 2, uri: \"packet:b\" } ]\n"
		"counters: [ { name: %s.packets, size: %u } ]\n"
		"tables:\n"
		"  - { name: f, key: [ ip.src exact ], miss: \"forward 2; stop\", entries: [ %s ] }\n"
		"  - name: w\n    key: [ time window ]\n    entries:\n",
		name, 4 * flows, entry);

	for (unsigned int i = 0; i < 4; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			"      - \"time=%us+1s/4s -> count %s.packets[mark+%u]; forward 2\"\n", i,
			name, i * flows);
	n += snprintf(text + n, sizeof(text) - (size_t)n,
		"marking:\n  points: [ { number: 1, cells: %s, table: f, role: marker } ]\n", name);
	if (pl_dp_program_parse(program, "cells", text, (size_t)n, &diag) < 0 ||
		pl_dp_program_build(program, &o, NULL, &ret, &diag) < 0) {
		printf("# %s\n", diag.text);
		abort();
	}
	return ret;
}

#define ONE "ip.src=10.0.0.1 -> mark 1"

static void send_some(struct test_switch *s, uint64_t at_ns, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		pass(s, 1, at_ns + i, 0);
}

/* Reloads a file in the middle of a block: counts of the same cells stay, others add no packets. */
static void other_cells(void)
{
	static const struct {
		const char *name, *what;
		unsigned int flows, packets;
		bool partial;
	} again[] = {
		{ "m", "the same cells", 8, 12, false },
		{ "n", "cells of another name", 8, 2, true },
		{ "m", "more cells", 16, 2, true },
		{ "m", "fewer cells", 4, 2, true },
	};

	for (unsigned int i = 0; i < sizeof(again) / sizeof(again[0]); i++) {
		struct test_switch s = { .point = 9 };
		struct pl_dp_program was, is;
		struct pl_dp_pipeline *other;

		s.pipeline = build_cells(&was, "m", 8, ONE);
		pl_dp_pipeline_turn(s.pipeline, 100 * PERIOD);
		send_some(&s, 101 * PERIOD + 300 * MS, 20);
		send_some(&s, 105 * PERIOD + 300 * MS, 10);
		eq(told.last.packets, told.last.block == 101 ? 20 : 0);
		other = build_cells(&is, again[i].name, again[i].flows, ONE);
		pl_dp_pipeline_inherit(other, s.pipeline);
		s.pipeline = other;
		send_some(&s, 105 * PERIOD + 700 * MS, 2);
		pl_dp_pipeline_turn(s.pipeline, 106 * PERIOD + 500 * MS);
		ok(told.last.block == 105 && told.last.packets == again[i].packets &&
				((told.last.mark_flags & PL_MARK_IS_PARTIAL) != 0) ==
					again[i].partial,
			"%s: block %" PRIu64 ", %" PRIu64 " packets, flags %x", again[i].what,
			told.last.block, told.last.packets, told.last.mark_flags);
		pl_dp_pipeline_free(s.pipeline);
		pl_dp_program_done(&was);
		pl_dp_program_done(&is);
	}
}

/* Gives a number to another flow in the middle of a block: that block is partial. */
static void other_flow(void)
{
	struct test_switch s = { .point = 9 };
	struct pl_dp_program program;
	struct pl_diag diag = { .text = "" };
	const struct pl_dp_change change[] = { { PL_DP_DELETE, "f", "ip.src=10.0.0.9" },
		{ PL_DP_ADD, "f", ONE } };
	size_t bad;

	s.pipeline = build_cells(&program, "m", 8, "ip.src=10.0.0.9 -> mark 1");
	pl_dp_pipeline_turn(s.pipeline, 100 * PERIOD);
	pl_dp_pipeline_turn(s.pipeline, 103 * PERIOD + 500 * MS);
	ok(told.last.block == 102 && (told.last.mark_flags & PL_MARK_IS_PARTIAL) == 0,
		"a block of one flow");
	send_some(&s, 104 * PERIOD, 10);
	eq(pl_dp_pipeline_change(s.pipeline, change, 2, &bad, &diag), 0, "another flow: %s",
		diag.text);
	send_some(&s, 104 * PERIOD + 400 * MS, 10);
	for (unsigned int block = 104; block < 107; block++) {
		send_some(&s, (block + 1) * PERIOD + 100 * MS, 5);
		pl_dp_pipeline_turn(s.pipeline, (block + 1) * PERIOD + 500 * MS);
		ok(told.last.block == block && told.last.src.b[15] == 1 &&
				told.last.packets == (block == 104 ? 10 : 5) &&
				((told.last.mark_flags & PL_MARK_IS_PARTIAL) != 0) ==
					(block == 104),
			"block %u: %" PRIu64 " packets, flags %x", block, told.last.packets,
			told.last.mark_flags);
	}
	pl_dp_pipeline_free(s.pipeline);
	pl_dp_program_done(&program);
}

/* Records have the clock's state when their block was read, also when a packet came before the
 * turn. */
static void clocks(void)
{
	struct test_switch s = { .point = 9 };
	struct pl_dp_program program;

	s.pipeline = build_cells(&program, "m", 8, ONE);
	told.synced = true;
	told.error_ns = 5;
	pass(&s, 1, 100 * PERIOD, 0);
	pass(&s, 1, 102 * PERIOD + 500 * MS, 0);
	ok((told.last.mark_flags & PL_MARK_IS_SYNCED) != 0 && told.last.clock_error_ns == 5,
		"a clock in step");
	told.synced = false;
	told.error_ns = UINT64_MAX;
	pass(&s, 1, 103 * PERIOD + 500 * MS, 0);
	ok((told.last.mark_flags & PL_MARK_IS_SYNCED) == 0 &&
			told.last.clock_error_ns == UINT32_MAX,
		"and no more, by the next block");
	pl_dp_pipeline_free(s.pipeline);
	pl_dp_program_done(&program);
}

/* ---- behind queues ---- */

static uint64_t residence_ns; /* from arrival to the last bit */

static void leave(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	struct test_switch *s = arg;

	if (stage == PL_DP_EGRESS) {
		pl_dp_packet_free(pkt);
		return;
	}
	pkt->out_ns = pkt->in_ns + residence_ns;
	pl_dp_pipeline_egress(s->pipeline, &pkt, 1);
}

static void build_behind(
	struct test_switch *s, struct pl_dp_program *program, const char *send, const char *point)
{
	const struct pl_dp_pipeline_options o = { .pool = pool,
		.ops = { .out = leave, .block = keep_last, .arg = s } };
	struct pl_diag diag = { .text = "" };
	char text[1024];

	snprintf(text, sizeof(text),
		"ports: [ { number: 1, uri: \"packet:a\" }, { number: 2, uri: \"packet:b\" } ]\n"
		"tables: [ { name: t, miss: forward 2 } ]\nmarking:\n%s  points: [ %s ]\n",
		send, point);
	if (pl_dp_program_parse(program, "behind", text, strlen(text), &diag) < 0 ||
		pl_dp_program_build(program, &o, NULL, &s->pipeline, &diag) < 0) {
		printf("# %s\n", diag.text);
		abort();
	}
}

/* A marker at the port by which the switch's own records leave: their colour is its own. */
static void own_colour(void)
{
	struct test_switch s = { .point = 9 };
	struct pl_dp_program program;
	unsigned int in_use = 0;

	residence_ns = 1;
	told.n = 0;
	build_behind(&s, &program,
		"  send: \"to=192.0.2.1 from=192.0.2.2 out=2 mac=02:00:00:00:00:99\"\n",
		"{ number: 1, port: 2, direction: out, role: marker, by: none }");
	for (uint64_t block = 100; block < 110; block++) {
		pl_dp_pipeline_turn(s.pipeline, block * PERIOD + PERIOD / 2);
		in_use += told.n > 0 && (told.last.mark_flags & PL_MARK_IN_USE) != 0;
	}
	ok(told.n > 5 && told.last.packets > 0, "records are sent, and counted: %u", told.n);
	eq(in_use, 0, "the bits are not in use by others");
	pl_dp_pipeline_free(s.pipeline);
	pl_dp_program_done(&program);
}

/* The last bit of a packet on a slow port leaves long after now: other points go on counting. */
static void slow_port(void)
{
	struct test_switch s = { .point = 9 };
	struct pl_dp_program program;

	residence_ns = PERIOD + PERIOD / 2;
	build_behind(&s, &program, "", "{ number: 1, port: 1, by: none }");
	pl_dp_pipeline_turn(s.pipeline, 100 * PERIOD);
	pass(&s, 1, 102 * PERIOD + 100 * MS, 0);
	pass(&s, 1, 102 * PERIOD + 200 * MS, 0);
	pl_dp_pipeline_turn(s.pipeline, 103 * PERIOD + PERIOD / 2);
	ok(told.last.block == 102 && told.last.packets == 2, "block %" PRIu64 ": %" PRIu64 " of 2",
		told.last.block, told.last.packets);
	pl_dp_pipeline_free(s.pipeline);
	pl_dp_program_done(&program);
}

int main(int argc, char *argv[])
{
	/* An argument sets another number of seeds. */
	const unsigned int seeds = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 100;

	int code;

	test_form = &switches_form;
	for (unsigned int i = 0; i < 2; i++) {
		by_ports = i == 1;
		for (uint8_t method = PL_MARK_STEP; method <= PL_MARK_MULTIPLEXED; method++)
			at_random(method, seeds);
	}
	by_ports = false;
	for (uint8_t method = PL_MARK_STEP; method <= PL_MARK_MULTIPLEXED; method++) {
		if (method != PL_MARK_PULSE)
			beyond(method, seeds / 2);
	}
	ok(wrong_marks == 0 && wrong_sums == 0, "marks are gone behind the edge, checksums right");
	ok(packets_passed > 0 && reloads > 0,
		"%" PRIu64
		" packets went through the switches, whose files were read again %" PRIu64 " times",
		packets_passed, reloads);
	actions();
	datagrams();
	other_cells();
	other_flow();
	clocks();
	own_colour();
	slow_port();
	code = scenarios(); /* also ends the test */
	for (unsigned int i = 0; i < PL_MARK_METHOD_MAX; i++) {
		if (programs[i].text != NULL)
			pl_dp_program_done(&programs[i]);
	}
	pl_dp_pool_free(pool);
	return code;
}
