/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes that a running lab can follow: a file against files that differ in one thing each. */
#include "lab/change.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/test.h"

#define NODES                                                                                      \
	"nodes: [{name: h1}, {name: h2}, {name: s1, kind: switch}]\n"                              \
	"links:\n  - {ends: [h1, s1], delay: 2ms}\n  - {ends: [h2, s1]}\n"
#define STORY                                                                                      \
	"story:\n  - {at: 1s, impair: h1-s1 loss=0.1}\n  - {at: 2s, traffic: udp h1 h2, rate: 1M}\n"
#define RUN "run:\n  - {node: h1, name: a, command: x, ready: on, account: true, check: y}\n"

static struct pl_lab_topology was, want;

static void parse(struct pl_lab_topology *t, const char *text)
{
	struct pl_diag diag = { .text = "" };

	ok(pl_lab_topology_parse(t, "net.yaml", text, strlen(text), &diag) == 0, "%s: %s", text,
		diag.text);
}

static void compare(
	const char *a, const char *b, bool simulated, const char *says, unsigned int line)
{
	struct pl_diag diag = { .text = "" };
	int r;

	parse(&was, a);
	parse(&want, b);
	r = pl_lab_change_check(&was, &want, simulated, &diag);
	eq(r, says != NULL ? -EINVAL : 0, "%s: %s", b, diag.text);
	if (says != NULL)
		ok(strstr(diag.text, says) != NULL, "%s: %s", says, diag.text);
	eq(diag.line, line, "in line %u", line);
	pl_lab_topology_done(&was);
	pl_lab_topology_done(&want);
}

static void test_follows(void)
{
	static const struct {
		const char *was, *want;
		bool not_simulated;
	} rows[] = {
		{ NODES, NODES, false },
		{ NODES, "every_link: {rate: 1M}\n" NODES, false },
		{ NODES, "int: {version: 1.0}\n" NODES, true },
		{ NODES, "int: {fields: [node]}\n" NODES, true },
		{ "marking: {method: step}\n" NODES, "marking: {method: pulse}\n" NODES, true },
		{ "marking: {method: step}\n" NODES, "marking: {method: step, by: flow}\n" NODES,
			true },
		{ NODES, NODES RUN, false },
		{ NODES, NODES STORY, true },
		{ NODES STORY, NODES STORY, false },
		{ NODES STORY, "every_link: {rate: 1M}\n" NODES STORY, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		compare(rows[i].was, rows[i].want, false, NULL, 0);
		if (!rows[i].not_simulated)
			compare(rows[i].was, rows[i].want, true, NULL, 0);
	}
}

static void test_refused(void)
{
	compare(NODES,
		"nodes: [{name: h1}, {name: h2}, {name: s1, kind: router}]\nlinks: [{ends: [h1, s1]}, {ends: [h2, s1]}]\n",
		false, "node 's1' is of another kind", 1);
	compare(NODES, NODES "  - {ends: [h2, s1]}\n", false, "link 'h2-s1.2' comes", 5);
	compare(NODES "  - {ends: [h2, s1]}\n", NODES, false, "link 'h2-s1.2' goes", 0);
	compare(NODES, "shape: line:1\n", false, "link 'h2-s1' goes", 0);
	compare(NODES, "shape: line:2\n", false, "node 's2' comes", 0);
	compare("shape: line:2\n", NODES, false, "node 's2' goes", 0);
	compare(NODES, "telemetry: none\n" NODES, false, "key 'telemetry'", 0);
	compare(NODES, "marking: {method: step}\n" NODES, false, "is no longer none", 0);
	compare("marking: {method: step}\n" NODES, NODES, false, "becomes none", 0);
	compare(NODES, "int: {version: 1.0}\n" NODES, true, "section 'int'", 0);
	compare(NODES, NODES STORY, true, "section 'story'", 0);
	compare(NODES, NODES "clocks:\n  - {node: s1, offset: 1ms}\n", false,
		"node 's1' has another clock", 1);
	compare(NODES "clocks:\n  - {node: s1, drift: 1}\n", NODES, false,
		"node 's1' has another clock", 1);
	compare(NODES STORY, "every_link: {rate: 1M}\n" NODES STORY, true,
		"link 'h1-s1' is changed by the story", 4);
}

static void test_same(void)
{
	static const char *const runs[] = {
		"run:\n  - {node: h2, name: a, command: x, ready: on, account: true}\n",
		"run:\n  - {node: h1, name: b, command: x, ready: on, account: true}\n",
		"run:\n  - {node: h1, name: a, command: z, ready: on, account: true}\n",
		"run:\n  - {node: h1, name: a, command: x, ready: off, account: true}\n",
		"run:\n  - {node: h1, name: a, command: x, account: true}\n",
		"run:\n  - {node: h1, name: a, command: x, ready: on}\n",
		"run:\n  - {node: h1, command: x}\n",
	};
	static const char *const stories[] = {
		"story:\n  - {at: 1s, impair: h1-s1 loss=0.1}\n",
		"story:\n  - {at: 1s, impair: h1-s1 loss=0.2}\n  - {at: 2s, traffic: udp h1 h2, rate: 1M}\n",
		"story:\n  - {at: 1s, impair: h1-s1 loss=0.1}\n  - {at: 3s, traffic: udp h1 h2, rate: 1M}\n",
		"story:\n  - {at: 1s, impair: h1-s1 loss=0.1}\n  - {at: 2s, traffic: udp h1 h2, rate: 2M}\n",
		"story:\n  - {at: 1s, impair: h1-s1 loss=0.1}\n  - {at: 2s, traffic: udp h1 h2, rate: 1M, for: 1s}\n",
		"story:\n  - {at: 1s, impair: h1-s1 loss=0.1}\n  - {at: 2s, traffic: udp h2 h1, rate: 1M}\n",
	};
	char text[1024];

	parse(&was, NODES RUN STORY);
	parse(&want, NODES
		"run:\n  - {node: h1, name: a, command: x, ready: on, account: true}\n" STORY);
	ok(pl_lab_change_same_command(&was.commands[0], &want.commands[0]),
		"another check is no other command");
	ok(pl_lab_change_same_story(&was.story, &want.story), "the same story");
	pl_lab_topology_done(&want);
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		snprintf(text, sizeof(text), "%s%s", NODES, runs[i]);
		parse(&want, text);
		ok(!pl_lab_change_same_command(&was.commands[0], &want.commands[0]), "%s", runs[i]);
		pl_lab_topology_done(&want);
	}
	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		snprintf(text, sizeof(text), "%s%s", NODES, stories[i]);
		parse(&want, text);
		ok(!pl_lab_change_same_story(&was.story, &want.story), "%s", stories[i]);
		pl_lab_topology_done(&want);
	}
	pl_lab_topology_done(&was);
}

int main(void)
{
	test_follows();
	test_refused();
	test_same();
	return pl_test_done();
}
