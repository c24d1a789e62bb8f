/* SPDX-License-Identifier: BSD-2-Clause */
/* Topologies of a lab: shapes, files, errors with their positions, addresses, equal paths. */
#include "lab/topology.h"

#include "base/buf.h"
#include "base/num.h"
#include "base/test.h"

static struct pl_lab_topology t;
static struct pl_diag diag;

static int parse(const char *text)
{
	pl_lab_topology_done(&t);
	diag = (struct pl_diag){ .text = "" };
	return pl_lab_topology_parse(&t, "x/net.yaml", text, strlen(text), &diag);
}

static int load(const char *what)
{
	pl_lab_topology_done(&t);
	diag = (struct pl_diag){ .text = "" };
	return pl_lab_topology_load(&t, what, &diag);
}

static void test_shapes(void)
{
	static const struct {
		const char *text;
		unsigned int nodes, links;
	} good[] = {
		{ "line", 5, 4 },
		{ "line:1", 3, 2 },
		{ "diamond", 6, 6 },
		{ "leaf-spine", 14, 16 },
		{ "leaf-spine:3x5x4", 20, 27 },
		{ "leaf-spine:2", 8, 8 },
		{ "wan-ring", 12, 12 },
		{ "wan-ring:3", 6, 6 },
	};
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "leaf-spin", "did you mean 'leaf-spine'?" },
		{ "", "no shape ''" },
		{ "leaf-spine:", "not of the form leaf-spine:LxSxH" },
		{ "leaf-spine:4x", "not of the form" },
		{ "leaf-spine:4xx2", "not of the form" },
		{ "leaf-spine:x4", "not of the form" },
		{ "leaf-spine:4x2x2x2", "not of the form" },
		{ "leaf-spine:0x2", "numbers from 1" },
		{ "leaf-spine:-1", "not of the form" },
		{ "leaf-spine:99999999999", "not of the form" },
		{ "leaf-spine:512x512", "more than 512 nodes" },
		{ "leaf-spine:200x200x1", "more than 512 nodes" },
		{ "wan-ring:2", "numbers from 3" },
		{ "diamond:3", "not of the form diamond" },
		{ "line: 3", "not of the form" },
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		eq(load(good[i].text), 0, "%s", good[i].text);
		eq(t.n_nodes, good[i].nodes, "%s: nodes", good[i].text);
		eq(t.n_links, good[i].links, "%s: links", good[i].text);
	}
	eq(load("leaf-spine:2"), 0, "a shape");
	streq(t.text, "shape: 'leaf-spine:2'\n", "is a file too");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ok(load(bad[i].text) < 0, "'%s' is refused", bad[i].text);
		ok(strstr(diag.text, bad[i].says) != NULL, "'%s' says why: %s", bad[i].text,
			diag.text);
	}
}

/* A link's own value goes before that of every link, also one that is nothing. */
static void test_own(void)
{
	const struct pl_lab_quality *q;

	eq(parse("every_link: {rate: 1G, queue: 1MiB, delay: 1ms, loss: 0.5, bare: true}\n"
		 "nodes: [{name: a}, {name: b}, {name: s, kind: router}]\n"
		 "links:\n  - {ends: [a, s]}\n"
		 "  - {ends: [b, s], rate: 8M, queue: 0B, delay: 0s, loss: 0, bare: false}\n"),
		0, "%s", diag.text);
	q = &t.links[0].quality;
	ok(q->rate_bps == 1000000000 && q->queue_bytes == 1 << 20 && q->delay_ns == 1000000 &&
			q->loss == 0.5 && q->bare,
		"values of every link");
	q = &t.links[1].quality;
	ok(q->rate_bps == 8000000 && q->queue_bytes == 65536 && q->delay_ns == 0 && q->loss <= 0 &&
			!q->bare,
		"values of its own");
}

#define TWO "nodes: [{name: a}, {name: b}, {name: s, kind: router}]\n"
#define RUN "nodes: [{name: a}, {name: b}]\nrun:\n"

static void test_refused(void)
{
	static const struct {
		const char *text;
		unsigned int line, column;
		const char *says;
	} bad[] = {
		{ TWO "links:\n  - {ends: [a, b]}\n  - {ends: [a, c]}\n", 4, 16,
			"no node is called 'c'" },
		{ "nodes:\n  - {name: leaf1}\n  - {name: leaf2}\nlinks:\n  - {ends: [leaf1, leef2]}\n",
			5, 20, "did you mean 'leaf2'?" },
		{ TWO "links:\n  - {ends: [a, a]}\n", 3, 16, "a link from 'a' to itself" },
		{ "nodes:\n  - {name: a}\n  - {name: a}\n", 3, 12, "another node already" },
		{ "shape: diamond\nnodes:\n  - {name: s2}\n", 3, 12, "of the shape" },
		{ "nodes:\n  - {name: a_name_too_long}\n", 2, 12, "longer than 12" },
		{ "nodes:\n  - {name: a-b}\n", 2, 12, "is not a letter" },
		{ "nodes:\n  - {name: ''}\n", 2, 12, "is not a letter" },
		{ "nodes:\n  - {name: lo}\n", 2, 12, "word of the kernel's" },
		{ "nodes:\n  - {name: ../x}\n", 2, 12, "is not a letter" },
		{ "nodes:\n  - {name: a, kind: swich}\n", 2, 21, "swich" },
		{ "nodes:\n  - {nam: a}\n", 2, 6, "nam" },
		{ TWO "links:\n  - {ends: [a]}\n", 3, 12, "ends" },
		{ TWO "links:\n  - {ends: [a, b, s]}\n", 3, 12, "ends" },
		{ TWO "links:\n  - {ends: [a, b], rate: 7}\n", 3, 26, "no rate" },
		{ TWO "links:\n  - {ends: [a, b], rate: fast}\n", 3, 26, "no rate" },
		{ TWO "links:\n  - {ends: [a, b], loss: 1.5}\n", 3, 26, "loss" },
		{ TWO "links:\n  - {ends: [a, b], cost: 0}\n", 3, 26, "cost" },
		{ TWO "links:\n  - {ends: [a, b], loss: -1}\n", 3, 26, "loss" },
		{ TWO "links:\n  - {ends: [a, b], delay: 11s}\n", 3, 27, "delay" },
		{ "shape: star\n", 1, 8, "no shape 'star'" },
		{ "name: 9lab\nshape: line\n", 1, 7, "no name of a lab" },
		{ "name: a/b\nshape: line\n", 1, 7, "no name of a lab" },
		{ "shape: line\nrun:\n  - {node: h3, command: x}\n", 3, 12,
			"no node is called 'h3'" },
		{ RUN "  - {node: a, command: x, ready: up}\n", 3, 24, "has a name, too" },
		{ RUN "  - {node: a, command: x, account: true}\n", 3, 24, "has a name, too" },
		{ RUN "  - {node: a, command: x, check: x}\n", 3, 24, "has a name, too" },
		{ RUN "  - {node: a, command: x, name: b}\n", 3, 33, "name of a node's log" },
		{ RUN "  - {node: a, command: x, name: keeper}\n", 3, 33, "of a node's log" },
		{ RUN "  - {node: a, command: x, name: ../c}\n", 3, 33, "is not a letter" },
		{ RUN "  - {node: a, command: x, name: c}\n  - {node: b, command: x, name: c}\n", 4,
			33, "another command already" },
		{ "shape: [line]\n", 1, 8, "shape" },
		{ "shape: line\nclocks:\n  - {node: s9, offset: 1ms}\n", 3, 12,
			"no node is called 's9'" },
		{ "shape: line\nclocks:\n  - {node: h1, offset: 1ms}\n", 3, 12, "is no switch" },
		{ "shape: line\nclocks:\n  - {node: s1}\n  - {node: s1}\n", 4, 12,
			"has a clock already" },
		{ "shape: line\nclocks:\n  - {node: s1, offset: fast}\n", 3, 24,
			"no offset of a clock" },
		{ "shape: line\nclocks:\n  - {node: s1, drift: 2000}\n", 3, 23,
			"no drift of a clock" },
		{ "shape: line\nclocks:\n  - {node: s1, drifts: 2}\n", 3, 16,
			"did you mean \"drift\"?" },
		{ "{}\n", 0, 0, "no hosts" },
		{ TWO "links:\n  - {ends: [a, s]}\n", 0, 0, "no path from 'a' to 'b'" },
		{ "nodes: &x [{name: a}]\nlinks: *x\n", 1, 8, "" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ok(parse(bad[i].text) < 0, "refused: %s", bad[i].says);
		ok(strstr(diag.text, bad[i].says) != NULL, "it says so: %s", diag.text);
		eq(diag.line, bad[i].line, "its line (%s)", bad[i].says);
		if (bad[i].column != 0 && bad[i].says[0] != '\0')
			eq(diag.column, bad[i].column, "its column (%s)", bad[i].says);
	}
	streq(diag.file, "x/net.yaml", "and the file");
}

/* A text that is cut anywhere, or has any byte replaced, must be parsed or refused, without a
 * crash. */
static void test_hostile(void)
{
	static const char text[] =
		"name: net\nevery_link: {rate: 10M, loss: 0.1}\nnodes:\n  - {name: a}\n"
		"  - {name: b}\n  - {name: s, kind: switch, run: [\"x\"]}\n"
		"links:\n  - {ends: [a, s], delay: 1ms}\n  - {ends: [s, b]}\n";
	char copy[sizeof(text)];
	unsigned int refused = 0;

	eq(parse(text), 0, "the whole text");
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		pl_lab_topology_done(&t);
		refused += pl_lab_topology_parse(&t, "net.yaml", text, n, &diag) < 0;
		for (unsigned int c = 0; c < 4; c++) {
			memcpy(copy, text, sizeof(text));
			copy[n] = "\0-[9"[c];
			pl_lab_topology_done(&t);
			refused += pl_lab_topology_parse(
					   &t, "net.yaml", copy, sizeof(text) - 1, NULL) < 0;
		}
	}
	ok(refused > sizeof(text), "most of the damaged ones are refused: %u", refused);
}

/* As many nodes and links as a lab may have are read from a file. */
static void test_largest(void)
{
	struct pl_buf text;
	unsigned int links = 0;

	pl_buf_init(&text);
	pl_buf_str(&text, "telemetry: none\nnodes:\n");
	for (unsigned int i = 0; i < PL_LAB_NODES_MAX; i++)
		pl_buf_printf(
			&text, "  - {name: n%u, kind: %s}\n", i, i % 2 == 0 ? "host" : "router");
	pl_buf_str(&text, "links:\n");
	for (unsigned int i = 0; i < PL_LAB_NODES_MAX; i += 2)
		pl_buf_printf(&text, "  - {ends: [n%u, n%u], rate: 10M, queue: 1MiB}\n", i, i + 1);
	links = PL_LAB_NODES_MAX / 2;
	for (unsigned int by = 2; links < PL_LAB_LINKS_MAX; by += 2) {
		for (unsigned int i = 1; i < PL_LAB_NODES_MAX && links < PL_LAB_LINKS_MAX;
			i += 2, links++)
			pl_buf_printf(&text, "  - {ends: [n%u, n%u], delay: 1ms, cost: 2}\n", i,
				(i + by) % PL_LAB_NODES_MAX);
	}
	eq(parse(text.data), 0, "%s", diag.text);
	eq(t.n_nodes, PL_LAB_NODES_MAX);
	eq(t.n_links, PL_LAB_LINKS_MAX);
	pl_buf_str(&text, "  - {ends: [n1, n3]}\n");
	ok(parse(text.data) < 0, "one more is refused: %s", diag.text);
	pl_buf_done(&text);
}

static void is_address(const struct pl_addr *a, const char *want)
{
	char text[PL_ADDR_TEXT_MAX];

	pl_format_addr(text, a);
	streq(text, want);
}

static void test_addresses(void)
{
	unsigned int end;

	eq(load("leaf-spine"), 0);
	/* Nodes are leaf1..4, spine1..2, h1..h8; links of hosts come first. */
	is_address(&t.nodes[0].v4, "10.255.0.1");
	is_address(&t.nodes[5].v6, "fd00:ff::6");
	is_address(&t.nodes[6].v4, "10.1.0.1");
	is_address(&t.nodes[13].v4, "10.1.7.1");
	is_address(&t.nodes[13].v6, "fd00:1:0:7::1");
	is_address(&t.links[0].end[1].v4, "10.1.0.0");
	is_address(&t.links[8].end[0].v4, "10.128.0.0");
	is_address(&t.links[15].end[1].v6, "fd00:2:0:7::1");
	streq(t.links[8].end[0].interface, "spine1");
	streq(t.links[8].end[1].interface, "leaf1");
	eq(t.links[8].end[0].port, 3, "behind the two of the hosts");
	eq(pl_lab_find_link(&t, "spine1-leaf1", &end, &diag), 8);
	eq(end, 1);
	eq(pl_lab_find_link(&t, "leaf1-spine1", &end, &diag), 8);
	eq(end, 0);
	ok(pl_lab_find_link(&t, "leaf1-spine3", &end, &diag) < 0 &&
			strstr(diag.text, "did you mean 'leaf1-spine") != NULL,
		"%s", diag.text);
	ok(pl_lab_find_link(&t, "leaf1", &end, &diag) < 0, "half a link: %s", diag.text);
	ok(pl_lab_find_link(&t, "x-leaf1", &end, &diag) < 0, "no such node: %s", diag.text);

	eq(parse("nodes: [{name: a}, {name: b}]\n"
		 "links:\n  - {ends: [a, b]}\n  - {ends: [b, a]}\n"),
		0, "parallel links");
	streq(t.name, "net", "named after the file");
	streq(t.links[1].end[0].interface, "a.2");
	streq(t.links[1].end[1].interface, "b.2");
	is_address(&t.links[1].end[0].v4, "10.1.1.0");
	eq(pl_lab_find_link(&t, "a-b.2", &end, &diag), 1);
}

/* No two ends may share an IP or MAC address, even in a large network. */
static void test_unique(void)
{
	unsigned int same = 0;

	eq(load("leaf-spine:60x8x7"), 0);
	for (unsigned int i = 0; i < 2 * t.n_links; i++) {
		const struct pl_lab_end *a = &t.links[i / 2].end[i % 2];

		for (unsigned int k = 0; k < i; k++) {
			const struct pl_lab_end *b = &t.links[k / 2].end[k % 2];

			same += pl_addr_equal(&a->v4, &b->v4) || pl_addr_equal(&a->v6, &b->v6) ||
				memcmp(a->mac, b->mac, 6) == 0 ||
				(a->node == b->node && strcmp(a->interface, b->interface) == 0);
		}
		for (unsigned int k = 0; k < t.n_nodes; k++) {
			same += t.nodes[k].kind != PL_LAB_HOST &&
				(pl_addr_equal(&a->v4, &t.nodes[k].v4) ||
					pl_addr_equal(&a->v6, &t.nodes[k].v6));
		}
	}
	eq(same, 0, "nothing twice among %u links", t.n_links);
}

/* Distances must equal those of repeated relaxation (Bellman-Ford). */
static void test_paths(void)
{
	static const char *const shapes[] = { "line:4", "diamond", "leaf-spine:3x3x2",
		"wan-ring:7" };
	uint32_t d[PL_LAB_NODES_MAX];
	unsigned int ports[PL_LAB_PORTS_MAX], wrong = 0, n;

	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		eq(load(shapes[s]), 0);
		for (unsigned int i = 0; i < t.n_links; i++)
			t.links[i].cost = 1 + i * 7 % 3;
		for (unsigned int to = 0; to < t.n_nodes; to++) {
			uint32_t slow[PL_LAB_NODES_MAX];

			for (unsigned int i = 0; i < t.n_nodes; i++)
				slow[i] = i == to ? 0 : 1000000;
			for (unsigned int round = 0; round < t.n_nodes; round++) {
				for (unsigned int e = 0; e < 2 * t.n_links; e++) {
					unsigned int a = t.links[e / 2].end[e % 2].node;
					unsigned int b = t.links[e / 2].end[!(e % 2)].node;

					if ((t.nodes[b].kind != PL_LAB_HOST || b == to) &&
						slow[b] + t.links[e / 2].cost < slow[a])
						slow[a] = slow[b] + t.links[e / 2].cost;
				}
			}
			pl_lab_distances(&t, to, d);
			for (unsigned int i = 0; i < t.n_nodes; i++)
				wrong += d[i] != slow[i];
		}
		eq(wrong, 0, "%s: every distance", shapes[s]);
	}
	eq(load("leaf-spine:3x3x1"), 0);
	pl_lab_distances(&t, (unsigned int)pl_lab_find_node(&t, "h3", NULL), d);
	n = pl_lab_next_hops(&t, d, 0, ports);
	eq(n, 3, "every spine is a way from leaf to leaf");
	ok(ports[0] == 2 && ports[1] == 3 && ports[2] == 4, "by its ports in order");
	eq(pl_lab_next_hops(&t, d, 2, ports), 1, "one at the leaf of the host");
}

static void test_qualities(void)
{
	eq(parse("every_link: {rate: 1G, delay: 1ms}\nnodes: [{name: a}, {name: b}]\n"
		 "links:\n  - {ends: [a, b], rate: 5M, queue: 500kB, loss: 0.05}\n"
		 "  - {ends: [a, b]}\nrun:\n  - {node: b, command: 'sleep 1'}\n"),
		0);
	eq(t.links[0].quality.rate_bps, 5000000);
	eq(t.links[0].quality.queue_bytes, 500000);
	eq(t.links[0].quality.delay_ns, 1000000);
	ok(t.links[0].quality.loss > 0.049 && t.links[0].quality.loss < 0.051);
	eq(t.links[1].quality.rate_bps, 1000000000);
	eq(t.links[1].quality.queue_bytes, 65536);
	eq(t.n_commands, 1);
	eq(t.commands[0].node, 1);
	streq(t.commands[0].text, "sleep 1");
}

static void test_commands(void)
{
	eq(parse("nodes: [{name: a, run: first}, {name: b, run: [second, third]}]\n"
		 "links: [{ends: [a, b]}]\n"
		 "run:\n  - {node: b, name: s, ready: up, account: true, check: 'true', command: fourth}\n"
		 "  - {node: a, command: fifth}\n"),
		0);
	eq(t.n_commands, 5);
	streq(t.commands[2].text, "third", "of nodes first");
	eq(t.commands[2].node, 1);
	ok(t.commands[2].name == NULL && !t.commands[2].account);
	ok(pl_lab_find_command(&t, "s") == &t.commands[3], "by its name");
	streq(t.commands[3].ready, "up");
	streq(t.commands[3].check, "true");
	ok(t.commands[3].account);
	streq(t.commands[4].text, "fifth", "then those of the list, in order");
	ok(pl_lab_find_command(&t, "fifth") == NULL);
}

/* Built-in networks must load like files. */
static void test_published(void)
{
	static const char *const names[] = { "dta", "intcollector", "marking",
		"marking-multiplexed", "p4-to-rdma" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		eq(load(names[i]), 0, "%s: %s", names[i], diag.text);
		streq(t.name, names[i]);
		streq(t.text, pl_lab_published(names[i]), "its text makes it again");
	}
	ok(pl_lab_published("dt") == NULL);
}

int main(void)
{
	test_shapes();
	test_own();
	test_refused();
	test_hostile();
	test_largest();
	test_addresses();
	test_unique();
	test_paths();
	test_qualities();
	test_commands();
	test_published();
	pl_lab_topology_done(&t);
	return pl_test_done();
}
