/* SPDX-License-Identifier: BSD-2-Clause */
/* Stories of a lab: valid and invalid ones, with the position of the error, and their times in a
 * simulation. */
#include "lab/story.h"

#include <errno.h>

#include "base/test.h"
#include "lab/faults.h"
#include "lab/simulation.h"

#define SECOND UINT64_C(1000000000)
#define START  (1000 * SECOND)

static struct pl_lab_topology t;
static struct pl_diag diag;

static int parse(const char *text)
{
	pl_lab_topology_done(&t);
	diag = (struct pl_diag){ .text = "" };
	return pl_lab_topology_parse(&t, "x/net.yaml", text, strlen(text), &diag);
}

static void test_read(void)
{
	const struct pl_lab_story_step *s;

	eq(parse("shape: diamond\n"), 0, "a file without a story: %s", diag.text);
	eq(t.story.n, 0, "has none");
	eq(parse("shape: diamond\nstory:\n"
		 "  - {at: 9s, stop: load}\n"
		 "  - {at: 2s, impair: 'h1>s1   loss=0.5 delay=2ms'}\n"
		 "  - {at: 2s, traffic: incast h1 h2, name: load, rate: 5M, size: 500B, on: 1ms, off: 9ms}\n"
		 "  - {at: 5s, restore: h1-s1}\n"
		 "  - {at: 9s, traffic: dns h2 h1, for: 3s}\n"),
		0, "a story: %s", diag.text);
	if (!eq(t.story.n, 5, "of five steps"))
		return;
	s = t.story.steps;
	ok(s[0].at_ns == 2 * SECOND && s[0].kind == PL_LAB_STORY_IMPAIR && s[0].n_words == 3,
		"the first in time is the first");
	streq(s[0].words[0], "h1>s1");
	streq(s[0].words[2], "delay=2ms");
	ok(s[1].kind == PL_LAB_STORY_TRAFFIC && s[1].traffic.kind == PL_LAB_INCAST &&
			s[1].traffic.n_from == 1 && s[1].traffic.rate_bps == 5000000 &&
			s[1].traffic.size == 500 && s[1].traffic.on_ns == 1000000 &&
			s[1].traffic.off_ns == 9000000 && s[1].traffic.duration_ns == 0,
		"of one time in the order of the file; traffic has its numbers");
	streq(s[2].text, "restore h1-s1");
	ok(s[3].kind == PL_LAB_STORY_STOP && s[3].stops == 1, "stop names the traffic before it");
	ok(s[4].traffic.size == 200 && s[4].traffic.rate_bps == 1000000 &&
			s[4].traffic.duration_ns == 3 * SECOND,
		"what is not given has its default");
}

static void test_refused(void)
{
#define STORY "shape: diamond\nstory:\n"
	static const struct {
		const char *text, *says;
		unsigned int line, column;
	} bad[] = {
		{ STORY "  - {at: 1s}\n", "one of impair, restore, traffic and stop", 3, 10 },
		{ STORY "  - {at: 1s, stop: x, restore: h1-s1}\n",
			"one of impair, restore, traffic and stop", 3, 20 },
		{ STORY "  - {impair: h1-s1 loss=1}\n", "at", 3, 5 },
		{ STORY "  - {at: soon, restore: h1-s1}\n", "at", 3, 10 },
		{ STORY "  - {at: 1s, impair: h1-s9 loss=1}\n", "no link is called 'h1-s9'", 3,
			22 },
		{ STORY "  - {at: 1s, impair: h1-s1 lose=1 los=1}\n", "did you mean 'loss'", 3,
			22 },
		{ STORY "  - {at: 1s, impair: h1-s1 loss=2}\n", "no value of loss", 3, 22 },
		{ STORY "  - {at: 1s, impair: h1-s1}\n", "no KEY=VALUE", 3, 22 },
		{ STORY "  - {at: 1s, impair: ''}\n", "nothing behind 'impair'", 3, 22 },
		{ STORY "  - {at: 1s, restore: h1-s1 loss=0}\n", "has a link only", 3, 23 },
		{ STORY "  - {at: 1s, traffic: flood h1 h2}\n", "no kind 'flood'", 3, 23 },
		{ STORY "  - {at: 1s, traffic: udp h1}\n", "KIND FROM", 3, 23 },
		{ STORY "  - {at: 1s, traffic: udp h1 h1}\n", "to itself", 3, 23 },
		{ STORY "  - {at: 1s, traffic: udp h1 s1}\n", "is no host", 3, 23 },
		{ STORY "  - {at: 1s, traffic: udp h1 h3}\n", "no node is called 'h3'", 3, 23 },
		{ STORY "  - {at: 1s, traffic: udp h1 h2, rate: 1}\n", "no rate", 3, 40 },
		{ STORY "  - {at: 1s, traffic: udp h1 h2, size: 5B}\n", "20 bytes at least", 3,
			40 },
		{ STORY "  - {at: 1s, restore: h1-s1, rate: 5M}\n", "are of traffic", 3, 23 },
		{ STORY "  - {at: 1s, stop: x}\n", "no traffic before has the name 'x'", 3, 20 },
		/* The traffic starts after the stop. */
		{ STORY "  - {at: 1s, stop: x}\n  - {at: 2s, traffic: udp h1 h2, name: x}\n",
			"no traffic before has the name 'x'", 3, 20 },
		{ "nodes: [{name: a}, {name: b}]\nlinks: [{ends: [a, b], bare: true}]\n"
		  "story: [{at: 1s, impair: a-b loss=1}]\n",
			"is bare", 3, 26 },
		{ "shape: line\nint: {version: 3.0}\n", "int.version", 2, 16 },
		{ "shape: line\nint: {fields: [node, port]}\n", "did you mean 'ports'", 2, 22 },
		{ "shape: line\nint: {fields: []}\n", "int.fields", 2, 15 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ok(parse(bad[i].text) < 0, "refused: %s", bad[i].says);
		ok(strstr(diag.text, bad[i].says) != NULL, "it says so: %s", diag.text);
		eq(diag.line, bad[i].line, "its line (%s)", bad[i].says);
		eq(diag.column, bad[i].column, "its column (%s)", bad[i].says);
	}
}

/* A text with any byte replaced must be parsed or refused, without a crash. */
static void test_hostile(void)
{
	static const char text[] = "shape: diamond\nstory:\n  - {at: 1s, impair: h1-s1 loss=1}\n"
				   "  - {at: 2s, traffic: udp h1 h2, name: x}\n"
				   "  - {at: 3s, stop: x}\n  - {at: 4s, restore: 'h1>s1'}\n";
	char copy[sizeof(text)];
	unsigned int refused = 0;

	eq(parse(text), 0, "the whole text: %s", diag.text);
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		for (unsigned int c = 0; c < 5; c++) {
			memcpy(copy, text, sizeof(text));
			copy[n] = "\0-[9>"[c];
			pl_lab_topology_done(&t);
			refused += pl_lab_topology_parse(
					   &t, "net.yaml", copy, sizeof(text) - 1, NULL) < 0;
		}
	}
	ok(refused > sizeof(text), "most of the damaged ones are refused: %u", refused);
}

/* Simulates the network for `seconds` and returns the counters of its only flow. */
static struct pl_dp_flow_account simulate(const char *text, unsigned int seconds)
{
	const struct pl_lab_simulation_cfg cfg = {
		.seed = 1, .start_ns = START, .duration_ns = seconds * SECOND
	};
	struct pl_dp_flow_account account = { .sent = 0 };
	struct pl_lab_simulation *s = NULL;
	struct pl_lab_faults *f = NULL;

	ok(parse(text) == 0 && pl_lab_simulation_new(&s, &t, &cfg, &diag) == 0 &&
			pl_lab_faults_new(&f, s, &t, NULL, 0, &diag) == 0,
		"a simulation: %s", diag.text);
	if (f != NULL) {
		struct pl_dp_sim *sim = pl_lab_simulation_sim(s);

		pl_dp_sim_run(sim, START + (seconds + 1) * SECOND);
		eq(pl_dp_sim_flows(sim), 1, "of one flow");
		account = *pl_dp_sim_flow_account(sim, 1);
	}
	pl_lab_simulation_free(s);
	pl_lab_faults_free(f);
	return account;
}

/* At 100 packets a second the number of lost packets is known exactly. */
static void test_on_time(void)
{
	struct pl_dp_flow_account b =
		simulate("shape: line:1\nstory:\n"
			 "  - {at: 1s, traffic: udp h1 h2, rate: 800k, name: load}\n"
			 "  - {at: 1505ms, impair: h1-s1 loss=1}\n"
			 "  - {at: 1755ms, restore: 'h1>s1'}\n"
			 "  - {at: 2s, stop: load}\n",
			10);

	eq(b.sent, 100, "from 1 s to 2 s");
	eq(b.sent_bytes, 100 * 1042, "1000 bytes and their headers");
	eq(b.lost, 25, "from 1.505 s to 1.755 s");
	eq(b.delivered, 75, "and no others");

	b = simulate(
		"shape: line:1\nstory:\n"
		"  - {at: 1s, traffic: onoff h1 h2, rate: 800k, on: 100ms, off: 400ms, for: 2s}\n",
		10);
	eq(b.sent, 40, "10 packets in each 100 ms, four times");
	eq(b.delivered, 40, "which arrive");
	b = simulate(
		"shape: line:1\nstory:\n  - {at: 8s, traffic: udp h1 h2, rate: 800k, for: 1h}\n",
		10);
	eq(b.sent, 200, "traffic ends with the simulation");
	b = simulate("shape: line:1\nevery_link: {delay: 1ms}\nstory:\n"
		     "  - {at: 1s, traffic: request h1 h2, size: 3000, for: 1s}\n",
		2);
	ok(b.sent > 800 && b.sent < 1000 && b.sent % 4 == 0 && b.sent == b.delivered,
		"a request and three packets of an answer every 4 ms and a little: %llu",
		(unsigned long long)b.sent);

	eq(parse("shape: line:1\nstory:\n  - {at: 1s, traffic: bulk h1 h2}\n"), 0, "bulk");
	{
		const struct pl_lab_simulation_cfg cfg = { .duration_ns = 5 * SECOND };
		struct pl_lab_simulation *s = NULL;

		eq(pl_lab_simulation_new(&s, &t, &cfg, &diag), -EINVAL, "is not simulated");
		ok(strstr(diag.text, "traffic bulk h1 h2: bulk is TCP") != NULL, "it says so: %s",
			diag.text);
	}
}

static void test_int(void)
{
	eq(parse("shape: line\n"), 0);
	ok(t.int_version == PL_LAB_INT_V21 && t.int_fields == PL_LAB_INT_FIELDS,
		"INT 2.1 with all fields unless the file says otherwise");
	eq(parse("shape: line\nint: {version: 1.0, fields: [queue, node]}\n"), 0, "%s", diag.text);
	ok(t.int_version == PL_LAB_INT_V10 && t.int_fields == 0x9000, "INT 1.0 with two");
}

int main(void)
{
	test_read();
	test_refused();
	test_hostile();
	test_on_time();
	test_int();
	pl_lab_topology_done(&t);
	return pl_test_done();
}
