/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds networks of nodes and links, and finds paths through them. */
#include "gen/topology.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"

#define UNREACHABLE 0xffff

struct link {
	uint16_t a, b;           /* node indices */
	uint16_t port_a, port_b; /* port at each end */
	bool up;
};

/* One direction of a link, in the adjacency list of its node. */
struct arc {
	uint16_t peer, peer_port, link;
};

struct pl_topo {
	unsigned int n_nodes, n_links, n_edges;
	uint32_t id[PL_TOPO_NODES_MAX];
	uint16_t edge[PL_TOPO_NODES_MAX];
	uint16_t first_arc[PL_TOPO_NODES_MAX +
			   1]; /* arcs of node i: first_arc[i] … first_arc[i + 1] - 1 */
	struct link links[PL_TOPO_LINKS_MAX];
	struct arc arcs[2 * PL_TOPO_LINKS_MAX];
	uint16_t *distance; /* [to * n_nodes + from], in links; UNREACHABLE */
};

static int node_add(struct pl_topo *t, uint32_t id)
{
	if (t->n_nodes == PL_TOPO_NODES_MAX)
		return -E2BIG;
	t->id[t->n_nodes] = id;
	return (int)t->n_nodes++;
}

static int find_link(const struct pl_topo *t, unsigned int a, unsigned int b)
{
	for (unsigned int i = 0; i < t->n_links; i++) {
		const struct link *l = &t->links[i];

		if ((l->a == a && l->b == b) || (l->a == b && l->b == a))
			return (int)i;
	}
	return -ENOENT;
}

static int link_add(struct pl_topo *t, unsigned int a, unsigned int b)
{
	if (t->n_links == PL_TOPO_LINKS_MAX)
		return -E2BIG;
	t->links[t->n_links++] = (struct link){ .a = (uint16_t)a, .b = (uint16_t)b, .up = true };
	return 0;
}

static void edge_add(struct pl_topo *t, unsigned int node)
{
	t->edge[t->n_edges++] = (uint16_t)node;
}

/* Numbers the ports in the order of the links, and makes the adjacency lists. */
static void index_links(struct pl_topo *t)
{
	uint16_t degree[PL_TOPO_NODES_MAX] = { 0 };

	for (unsigned int i = 0; i < t->n_links; i++) {
		t->links[i].port_a = ++degree[t->links[i].a];
		t->links[i].port_b = ++degree[t->links[i].b];
	}
	t->first_arc[0] = 0;
	for (unsigned int i = 0; i < t->n_nodes; i++)
		t->first_arc[i + 1] = (uint16_t)(t->first_arc[i] + degree[i]);
	for (unsigned int i = 0; i < t->n_links; i++) {
		const struct link *l = &t->links[i];

		t->arcs[t->first_arc[l->a] + l->port_a - 1] =
			(struct arc){ l->b, l->port_b, (uint16_t)i };
		t->arcs[t->first_arc[l->b] + l->port_b - 1] =
			(struct arc){ l->a, l->port_a, (uint16_t)i };
	}
}

/* Searches breadth first from one destination over the links that are up. */
static void find_distances_to(const struct pl_topo *t, unsigned int to, uint16_t *dist)
{
	uint16_t queue[PL_TOPO_NODES_MAX];
	unsigned int head = 0, tail = 0;

	for (unsigned int i = 0; i < t->n_nodes; i++)
		dist[i] = UNREACHABLE;
	dist[to] = 0;
	queue[tail++] = (uint16_t)to;
	while (head < tail) {
		unsigned int n = queue[head++];

		for (unsigned int i = t->first_arc[n]; i < t->first_arc[n + 1]; i++) {
			unsigned int peer = t->arcs[i].peer;

			if (!t->links[t->arcs[i].link].up || dist[peer] != UNREACHABLE)
				continue;
			dist[peer] = (uint16_t)(dist[n] + 1);
			queue[tail++] = (uint16_t)peer;
		}
	}
}

static void find_distances(struct pl_topo *t)
{
	for (unsigned int to = 0; to < t->n_nodes; to++)
		find_distances_to(t, to, t->distance + (size_t)to * t->n_nodes);
}

/* ---- the built-in shapes ---- */

static int number_nodes(struct pl_topo *t, uint64_t n)
{
	if (n == 0 || n > PL_TOPO_NODES_MAX)
		return -E2BIG;
	for (uint32_t i = 0; i < n; i++)
		(void)node_add(t, i + 1);
	return 0;
}

static int make_chain(struct pl_topo *t, unsigned int n, unsigned int unused, uint64_t seed)
{
	(void)unused;
	(void)seed;
	if (number_nodes(t, n) < 0)
		return -E2BIG;
	for (unsigned int i = 1; i < n; i++)
		(void)link_add(t, i - 1, i);
	edge_add(t, 0);
	if (n > 1)
		edge_add(t, n - 1);
	return 0;
}

static int make_ring(struct pl_topo *t, unsigned int n, unsigned int unused, uint64_t seed)
{
	(void)unused;
	(void)seed;
	if (n < 3)
		return -EINVAL;
	if (number_nodes(t, n) < 0)
		return -E2BIG;
	for (unsigned int i = 0; i < n; i++) {
		(void)link_add(t, i, (i + 1) % n);
		edge_add(t, i);
	}
	return 0;
}

static int make_leaf_spine(
	struct pl_topo *t, unsigned int leaves, unsigned int spines, uint64_t seed)
{
	(void)seed;
	if (leaves == 0 || spines == 0)
		return -EINVAL;
	if (number_nodes(t, (uint64_t)leaves + spines) < 0)
		return -E2BIG;
	for (unsigned int l = 0; l < leaves; l++) {
		for (unsigned int s = 0; s < spines; s++) {
			if (link_add(t, l, leaves + s) < 0)
				return -E2BIG;
		}
		edge_add(t, l);
	}
	return 0;
}

static int make_fat_tree(struct pl_topo *t, unsigned int k, unsigned int unused, uint64_t seed)
{
	unsigned int half = k / 2, edges, cores;

	(void)unused;
	(void)seed;
	if (k < 2 || k % 2 != 0)
		return -EINVAL;
	if (k > 28 || number_nodes(t, (uint64_t)k * k + (uint64_t)half * half) < 0)
		return -E2BIG;
	/* ids: all edge nodes, then all aggregation nodes, then the cores */
	edges = k * half;
	cores = 2 * edges;
	for (unsigned int pod = 0; pod < k; pod++) {
		for (unsigned int i = 0; i < half; i++) {
			for (unsigned int j = 0; j < half; j++) {
				if (link_add(t, pod * half + i, edges + pod * half + j) < 0 ||
					link_add(t, edges + pod * half + i, cores + i * half + j) <
						0)
					return -E2BIG;
			}
			edge_add(t, pod * half + i);
		}
	}
	return 0;
}

/* Makes a random tree first, so that the network is connected, then adds random links. */
static int make_random(struct pl_topo *t, unsigned int n, unsigned int degree, uint64_t seed)
{
	struct pl_rng rng;
	unsigned int want;

	if (number_nodes(t, n) < 0)
		return -E2BIG;
	pl_rng_seed(&rng, seed);
	for (unsigned int i = 1; i < n; i++)
		(void)link_add(t, (unsigned int)pl_rng_below(&rng, i), i);
	if (degree == 0)
		degree = 3;
	want = n / 2 * degree;
	for (unsigned int tries = 0; t->n_links < want && tries < 8 * want; tries++) {
		unsigned int a = (unsigned int)pl_rng_below(&rng, n);
		unsigned int b = (unsigned int)pl_rng_below(&rng, n);

		if (a != b && find_link(t, a, b) < 0 && link_add(t, a, b) < 0)
			return -E2BIG;
	}
	for (unsigned int i = 0; i < n; i++)
		edge_add(t, i);
	return 0;
}

static const struct shape {
	const char *name;
	char separator; /* between the two numbers; 0: one number */
	bool second_optional;
	int (*make)(struct pl_topo *t, unsigned int a, unsigned int b, uint64_t seed);
} shapes[] = {
	{ "chain:", 0, false, make_chain },
	{ "ring:", 0, false, make_ring },
	{ "leaf-spine:", 'x', false, make_leaf_spine },
	{ "fat-tree:", 0, false, make_fat_tree },
	{ "random:", ',', true, make_random },
};

static bool read_number(const char **p, uint32_t *ret)
{
	uint64_t v = 0;
	const char *s = *p;

	if (!isdigit((unsigned char)*s))
		return false;
	while (isdigit((unsigned char)*s)) {
		v = v * 10 + (uint64_t)(*s++ - '0');
		if (v > UINT32_MAX)
			return false;
	}
	*p = s;
	*ret = (uint32_t)v;
	return true;
}

static int make_shape(struct pl_topo *t, const struct shape *s, const char *args, uint64_t seed,
	struct pl_diag *diag)
{
	uint32_t a = 0, b = 0;
	bool good = read_number(&args, &a);
	int r;

	if (good && s->separator != 0 && *args == s->separator) {
		args++;
		good = read_number(&args, &b);
	} else if (s->separator != 0 && !s->second_optional) {
		good = false;
	}
	r = good && *args == '\0' ? s->make(t, a, b, seed) : -EINVAL;
	if (r == -E2BIG)
		pl_diag_set(diag, "topology: more than %d nodes or %d links", PL_TOPO_NODES_MAX,
			PL_TOPO_LINKS_MAX);
	else if (r < 0)
		pl_diag_set(diag,
			"topology: \"%s\" has invalid numbers; write it like chain:3, ring:5, leaf-spine:4x2, fat-tree:4, random:20,3",
			s->name);
	return r == -E2BIG ? -EINVAL : r;
}

/* ---- the listed form ---- */

static void skip_separators(const char **p)
{
	while (**p == ',' || isspace((unsigned char)**p))
		(*p)++;
}

static int node_listed(struct pl_topo *t, uint32_t id, bool add)
{
	int n = pl_topo_node_by_id(t, id);

	return n < 0 && add ? node_add(t, id) : n;
}

static int fail_at(const char *text, const char *p, const char *what, struct pl_diag *diag)
{
	unsigned int line = 1, column = 1;

	for (const char *s = text; s < p; s++) {
		column++;
		if (*s == '\n') {
			line++;
			column = 1;
		}
	}
	pl_diag_at(diag, line, column, "topology: %s", what);
	return -EINVAL;
}

static int make_listed(struct pl_topo *t, const char *text, struct pl_diag *diag)
{
	const char *p = text + strlen("links:");
	uint32_t a, b;

	for (skip_separators(&p); *p != '\0' && *p != ';'; skip_separators(&p)) {
		int na, nb;

		if (!read_number(&p, &a) || *p != '-' || (p++, !read_number(&p, &b)))
			return fail_at(text, p, "expected a link as two node ids, \"1-2\"", diag);
		na = node_listed(t, a, true);
		nb = node_listed(t, b, true);
		if (na < 0 || nb < 0)
			return fail_at(text, p, "too many nodes", diag);
		if (na == nb || find_link(t, (unsigned int)na, (unsigned int)nb) >= 0)
			return fail_at(text, p, "a link to itself, or listed twice", diag);
		if (link_add(t, (unsigned int)na, (unsigned int)nb) < 0)
			return fail_at(text, p, "too many links", diag);
	}
	if (t->n_links == 0)
		return fail_at(text, p, "no links", diag);
	if (*p == '\0') {
		for (unsigned int i = 0; i < t->n_nodes; i++)
			edge_add(t, i);
		return 0;
	}
	p++;
	skip_separators(&p);
	if (strncmp(p, "hosts:", 6) != 0)
		return fail_at(text, p, "expected \"hosts:\"", diag);
	p += 6;
	for (skip_separators(&p); *p != '\0'; skip_separators(&p)) {
		int n = read_number(&p, &a) ? node_listed(t, a, false) : -ENOENT;

		if (n < 0)
			return fail_at(text, p, "hosts at a node that has no link", diag);
		for (unsigned int i = 0; i < t->n_edges; i++) {
			if (t->edge[i] == n)
				return fail_at(text, p, "hosts at a node listed twice", diag);
		}
		edge_add(t, (unsigned int)n);
	}
	return t->n_edges > 0 ? 0 : fail_at(text, p, "no hosts", diag);
}

int pl_topo_new(struct pl_topo **ret, const char *text, uint64_t seed, struct pl_diag *diag)
{
	struct pl_topo *t = calloc(1, sizeof(*t));
	int r = -EINVAL;

	if (t == NULL)
		return -ENOMEM;
	if (strncmp(text, "links:", 6) == 0) {
		r = make_listed(t, text, diag);
	} else {
		const struct shape *s = NULL;

		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
			if (strncmp(text, shapes[i].name, strlen(shapes[i].name)) == 0)
				s = &shapes[i];
		}
		if (s != NULL)
			r = make_shape(t, s, text + strlen(s->name), seed, diag);
		else
			pl_diag_set(diag,
				"topology \"%.60s\" is none of chain:, ring:, leaf-spine:, fat-tree:, random:, links:",
				text);
	}
	if (r < 0)
		goto fail;
	assert(t->n_nodes > 0);
	t->distance = calloc((size_t)t->n_nodes * t->n_nodes, sizeof(*t->distance));
	if (t->distance == NULL) {
		r = -ENOMEM;
		goto fail;
	}
	index_links(t);
	find_distances(t);
	*ret = t;
	return 0;
fail:
	pl_topo_free(t);
	return r;
}

void pl_topo_free(struct pl_topo *topo)
{
	if (topo == NULL)
		return;
	free(topo->distance);
	free(topo);
}

unsigned int pl_topo_nodes(const struct pl_topo *topo)
{
	return topo->n_nodes;
}

uint32_t pl_topo_node_id(const struct pl_topo *topo, unsigned int node)
{
	assert(node < topo->n_nodes);
	return topo->id[node];
}

int pl_topo_node_by_id(const struct pl_topo *topo, uint32_t id)
{
	for (unsigned int i = 0; i < topo->n_nodes; i++) {
		if (topo->id[i] == id)
			return (int)i;
	}
	return -ENOENT;
}

unsigned int pl_topo_edges(const struct pl_topo *topo)
{
	return topo->n_edges;
}

unsigned int pl_topo_edge(const struct pl_topo *topo, unsigned int i)
{
	assert(i < topo->n_edges);
	return topo->edge[i];
}

unsigned int pl_topo_route(const struct pl_topo *topo, unsigned int from, unsigned int to,
	uint64_t hash, struct pl_topo_step *ret_steps, unsigned int max)
{
	const uint16_t *dist = topo->distance + (size_t)to * topo->n_nodes;
	const uint16_t *first = topo->first_arc;
	unsigned int node = from, n = 0;
	/* the port to the hosts follows that of the last link */
	uint16_t ingress = (uint16_t)(first[from + 1] - first[from] + 1);

	if (dist[from] == UNREACHABLE || dist[from] >= max)
		return 0;
	while (node != to) {
		const struct arc *next[PL_TOPO_NODES_MAX];
		unsigned int n_next = 0, pick;

		for (unsigned int i = first[node]; i < first[node + 1]; i++) {
			if (topo->links[topo->arcs[i].link].up &&
				dist[topo->arcs[i].peer] == dist[node] - 1)
				next[n_next++] = &topo->arcs[i];
		}
		assert(n_next > 0); /* a node at a finite distance has a next hop */
		/* each node hashes differently: neighbours must not all choose alike */
		pick = (unsigned int)(((unsigned __int128)pl_hash_mix(hash, topo->id[node]) *
					      n_next) >>
				      64);
		ret_steps[n++] = (struct pl_topo_step){
			.node = (uint16_t)node,
			.ingress_port = ingress,
			.egress_port = (uint16_t)(next[pick] - (topo->arcs + first[node]) + 1),
		};
		ingress = next[pick]->peer_port;
		node = next[pick]->peer;
	}
	ret_steps[n++] = (struct pl_topo_step){
		.node = (uint16_t)to,
		.ingress_port = ingress,
		.egress_port = (uint16_t)(first[to + 1] - first[to] + 1),
	};
	return n;
}

int pl_topo_link_set(struct pl_topo *topo, unsigned int a, unsigned int b, bool up)
{
	int i = find_link(topo, a, b);

	if (i < 0)
		return i;
	topo->links[i].up = up;
	find_distances(topo);
	return 0;
}

bool pl_topo_survives(
	struct pl_topo *topo, unsigned int a, unsigned int b, unsigned int x, unsigned int y)
{
	uint16_t dist[PL_TOPO_NODES_MAX];
	int i = find_link(topo, x, y);
	bool was;

	if (i < 0)
		return false;
	was = topo->links[i].up;
	topo->links[i].up = false;
	find_distances_to(topo, b, dist);
	topo->links[i].up = was;
	return dist[a] != UNREACHABLE;
}
