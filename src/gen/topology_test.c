/* SPDX-License-Identifier: BSD-2-Clause */
#include "gen/topology.h"

#include <errno.h>

#include "base/test.h"

static void test_refused(void)
{
	static const char *const bad[] = { "", "chain", "chain:", "chain:0", "chain:1025",
		"chain:3x", "ring:2", "leaf-spine:4", "leaf-spine:4x", "leaf-spine:0x2",
		"leaf-spine:1000x100", "fat-tree:3", "fat-tree:30", "star:5", "links:", "links:1",
		"links:1-", "links:1-1", "links:1-2,2-1", "links:1-2;",
		"links:1-2;hosts:", "links:1-2;hosts:3", "links:1-2;hosts:1,1",
		"links:1-99999999999", "random:5000" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct pl_topo *t = NULL;
		struct pl_diag diag = { .text = "" };

		ok(pl_topo_new(&t, bad[i], 1, &diag) == -EINVAL && t == NULL, "\"%s\" is refused",
			bad[i]);
		ok(diag.text[0] != '\0', "and says why: %s", diag.text);
	}
}

/* Steps fit together: the peer of the egress port is the next node, by the link's own view from
 * there. */
static bool path_holds(const struct pl_topo *t, const struct pl_topo_step *s, unsigned int n)
{
	for (unsigned int i = 0; i + 1 < n; i++) {
		struct pl_topo_step back[PL_TOPO_PATH_MAX];

		if (pl_topo_route(t, s[i + 1].node, s[i].node, 0, back, PL_TOPO_PATH_MAX) != 2 ||
			back[0].egress_port != s[i + 1].ingress_port ||
			back[1].ingress_port != s[i].egress_port)
			return false;
		for (unsigned int j = i + 1; j < n; j++) {
			if (s[j].node == s[i].node)
				return false;
		}
	}
	return true;
}

static void test_shapes(void)
{
	static const struct {
		const char *text;
		unsigned int nodes, edges, longest;
	} good[] = {
		{ "chain:1", 1, 1, 1 },
		{ "chain:3", 3, 2, 3 },
		{ "chain:64", 64, 2, 64 },
		{ "ring:5", 5, 5, 3 },
		{ "leaf-spine:4x2", 6, 4, 3 },
		{ "fat-tree:4", 20, 8, 5 },
		{ "random:20,3", 20, 20, 0 },
		{ "links:10-20,20-30\n30-40;hosts:10 40", 4, 2, 4 },
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct pl_topo_step steps[PL_TOPO_PATH_MAX];
		struct pl_topo *t = NULL;
		unsigned int longest = 0;
		bool holds = true;

		if (!ok(pl_topo_new(&t, good[i].text, 7, NULL) == 0, "%s", good[i].text))
			continue;
		eq(pl_topo_nodes(t), good[i].nodes);
		eq(pl_topo_edges(t), good[i].edges);
		for (unsigned int a = 0; a < pl_topo_edges(t); a++) {
			for (unsigned int b = 0; b < pl_topo_edges(t); b++) {
				unsigned int n = pl_topo_route(t, pl_topo_edge(t, a),
					pl_topo_edge(t, b), a * 31 + b, steps, PL_TOPO_PATH_MAX);

				holds &= n > 0 && path_holds(t, steps, n);
				if (n > longest)
					longest = n;
			}
		}
		ok(holds, "%s: every pair has a path that holds together", good[i].text);
		if (good[i].longest != 0)
			eq(longest, good[i].longest, "%s: longest path", good[i].text);
		pl_topo_free(t);
	}
}

static void test_ecmp_and_failure(void)
{
	struct pl_topo_step s[PL_TOPO_PATH_MAX];
	struct pl_topo *t;
	unsigned int via[6] = { 0 }, n, first;

	ok(pl_topo_new(&t, "leaf-spine:4x2", 1, NULL) == 0);
	for (uint64_t h = 0; h < 1000; h++) {
		n = pl_topo_route(t, 0, 3, h * 0x9e3779b97f4a7c15u, s, PL_TOPO_PATH_MAX);
		via[s[1].node]++;
	}
	ok(via[4] > 400 && via[5] > 400, "both spines carry: %u and %u", via[4], via[5]);
	n = pl_topo_route(t, 0, 3, 42, s, PL_TOPO_PATH_MAX);
	eq(n, 3);
	first = s[1].node;
	ok(pl_topo_survives(t, 0, 3, 0, first), "another way remains");
	eq(pl_topo_link_set(t, 0, first, false), 0);
	n = pl_topo_route(t, 0, 3, 42, s, PL_TOPO_PATH_MAX);
	ok(n == 3 && s[1].node != first, "the flow takes the other spine");
	ok(!pl_topo_survives(t, 0, 3, 0, s[1].node), "which is now the only one");
	eq(pl_topo_link_set(t, 0, s[1].node, false), 0);
	eq(pl_topo_route(t, 0, 3, 42, s, PL_TOPO_PATH_MAX), 0, "cut off");
	eq(pl_topo_link_set(t, 0, first, true), 0);
	eq(pl_topo_route(t, 0, 3, 42, s, PL_TOPO_PATH_MAX), 3, "back again");
	ok(pl_topo_link_set(t, 0, 1, false) == -ENOENT, "leaves have no link");
	eq(pl_topo_route(t, 0, 3, 42, s, 2), 0, "longer than there is room for");
	pl_topo_free(t);
}

int main(void)
{
	test_refused();
	test_shapes();
	test_ecmp_and_failure();
	return pl_test_done();
}
