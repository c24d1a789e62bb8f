/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the nodes and links of ready-made networks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "lab/topology.h"

#define PARAMETERS_MAX 3

int pl_lab_add_node(struct pl_lab_topology *t, const char *name, unsigned int kind)
{
	struct pl_lab_node *more;

	if (t->n_nodes == PL_LAB_NODES_MAX)
		return -E2BIG;
	more = realloc(t->nodes, (t->n_nodes + 1) * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	t->nodes = more;
	more[t->n_nodes] = (struct pl_lab_node){ .kind = kind };
	snprintf(more[t->n_nodes].name, sizeof(more->name), "%s", name);
	return (int)t->n_nodes++;
}

int pl_lab_add_link(struct pl_lab_topology *t, unsigned int a, unsigned int b,
	const struct pl_lab_quality *quality)
{
	struct pl_lab_link *more;

	if (t->n_links == PL_LAB_LINKS_MAX)
		return -E2BIG;
	more = realloc(t->links, (t->n_links + 1) * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	t->links = more;
	more[t->n_links] = (struct pl_lab_link){
		.end = { { .node = a }, { .node = b } }, .quality = *quality, .cost = 1
	};
	return (int)t->n_links++;
}

/* A shape while it is made; keeps the first error. */
struct maker {
	struct pl_lab_topology *t;
	const struct pl_lab_quality *quality;
	int error;
};

static unsigned int node(struct maker *m, unsigned int kind, const char *word, uint64_t number)
{
	char name[PL_LAB_NAME_MAX + 1];
	int i;

	snprintf(name, sizeof(name), "%s%u", word, (unsigned int)number);
	i = m->error < 0 ? m->error : pl_lab_add_node(m->t, name, kind);
	if (i >= 0)
		return (unsigned int)i;
	m->error = i;
	return 0;
}

static void wire(
	struct maker *m, unsigned int a, unsigned int b, const struct pl_lab_quality *quality)
{
	int r = m->error < 0 ? m->error : pl_lab_add_link(m->t, a, b, quality);

	if (r < 0)
		m->error = r;
}

static void make_line(struct maker *m, const uint64_t *p)
{
	unsigned int first = node(m, PL_LAB_HOST, "h", 1), last = node(m, PL_LAB_HOST, "h", 2);
	unsigned int before = first;

	for (uint64_t i = 1; i <= p[0]; i++) {
		unsigned int s = node(m, PL_LAB_SWITCH, "s", i);

		wire(m, before, s, m->quality);
		before = s;
	}
	wire(m, before, last, m->quality);
}

static void make_diamond(struct maker *m, const uint64_t *p)
{
	unsigned int h[2], s[4];

	(void)p;
	for (unsigned int i = 0; i < 2; i++)
		h[i] = node(m, PL_LAB_HOST, "h", i + 1);
	for (unsigned int i = 0; i < 4; i++)
		s[i] = node(m, PL_LAB_SWITCH, "s", i + 1);
	wire(m, h[0], s[0], m->quality);
	wire(m, s[0], s[1], m->quality);
	wire(m, s[0], s[2], m->quality);
	wire(m, s[1], s[3], m->quality);
	wire(m, s[2], s[3], m->quality);
	wire(m, s[3], h[1], m->quality);
}

static void make_leaf_spine(struct maker *m, const uint64_t *p)
{
	unsigned int leaf0 = m->t->n_nodes, spine0, host;

	for (uint64_t i = 1; i <= p[0]; i++)
		(void)node(m, PL_LAB_SWITCH, "leaf", i);
	spine0 = m->t->n_nodes;
	for (uint64_t i = 1; i <= p[1]; i++)
		(void)node(m, PL_LAB_SWITCH, "spine", i);
	for (uint64_t leaf = 0; leaf < p[0] && m->error == 0; leaf++) {
		for (uint64_t i = 0; i < p[2] && m->error == 0; i++) {
			host = node(m, PL_LAB_HOST, "h", leaf * p[2] + i + 1);
			wire(m, host, leaf0 + (unsigned int)leaf, m->quality);
		}
	}
	for (uint64_t leaf = 0; leaf < p[0] && m->error == 0; leaf++) {
		for (uint64_t i = 0; i < p[1] && m->error == 0; i++)
			wire(m, leaf0 + (unsigned int)leaf, spine0 + (unsigned int)i, m->quality);
	}
}

/* Links of the ring are long and slow, unless the file sets their rate or delay. */
static void make_wan_ring(struct maker *m, const uint64_t *p)
{
	struct pl_lab_quality far = *m->quality;
	unsigned int first = m->t->n_nodes;

	if (far.rate_bps == 0)
		far.rate_bps = 10000000;
	if (far.delay_ns == 0)
		far.delay_ns = 10000000;
	for (uint64_t i = 1; i <= p[0]; i++)
		(void)node(m, PL_LAB_SWITCH, "r", i);
	for (uint64_t i = 0; i < p[0] && m->error == 0; i++)
		wire(m, node(m, PL_LAB_HOST, "h", i + 1), first + (unsigned int)i, m->quality);
	for (uint64_t i = 0; i < p[0] && m->error == 0; i++)
		wire(m, first + (unsigned int)i, first + (unsigned int)((i + 1) % p[0]), &far);
}

static const struct shape {
	const char *name, *form;
	unsigned int n;                 /* number of parameters */
	uint64_t usual[PARAMETERS_MAX]; /* defaults */
	uint64_t least[PARAMETERS_MAX];
	void (*make)(struct maker *m, const uint64_t *p);
} shapes[] = {
	{ "line", "line:N", 1, { 3 }, { 1 }, make_line },
	{ "diamond", "diamond", 0, { 0 }, { 0 }, make_diamond },
	{ "leaf-spine", "leaf-spine:LxSxH", 3, { 4, 2, 2 }, { 1, 1, 1 }, make_leaf_spine },
	{ "wan-ring", "wan-ring:N", 1, { 6 }, { 3 }, make_wan_ring },
};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static const struct shape *find(const char *text, size_t n, struct pl_diag *diag)
{
	const char *names[SHAPES], *near;
	char word[64];

	for (size_t i = 0; i < SHAPES; i++) {
		names[i] = shapes[i].name;
		if (strlen(shapes[i].name) == n && strncmp(shapes[i].name, text, n) == 0)
			return &shapes[i];
	}
	snprintf(word, sizeof(word), "%.*s", (int)n, text);
	near = pl_nearest(word, names, SHAPES);
	pl_diag_set(diag,
		"no shape '%s'%s%s%s: there are line:N, diamond, leaf-spine:LxSxH and wan-ring:N, and the networks dta, intcollector, marking, marking-multiplexed and p4-to-rdma; a file is named with a / or ends in .yaml",
		word, near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
		near != NULL ? "'?" : "");
	return NULL;
}

/* Parses numbers with an x between them; missing ones get their defaults. */
static int read_parameters(const struct shape *s, const char *text, uint64_t *ret)
{
	memcpy(ret, s->usual, sizeof(s->usual));
	for (unsigned int i = 0; *text != '\0'; i++) {
		size_t n = strcspn(text, "x");
		char digits[8];

		if (i == s->n || n == 0 || n >= sizeof(digits))
			return -EINVAL;
		snprintf(digits, sizeof(digits), "%.*s", (int)n, text);
		if (digits[strspn(digits, "0123456789")] != '\0' ||
			pl_parse_u64(digits, &ret[i]) < 0 || ret[i] < s->least[i] ||
			ret[i] > PL_LAB_NODES_MAX)
			return -EINVAL;
		text += n;
		if (*text == 'x' && *++text == '\0')
			return -EINVAL;
	}
	return 0;
}

int pl_lab_shape(struct pl_lab_topology *t, const char *text, const struct pl_lab_quality *quality,
	struct pl_diag *diag)
{
	size_t n = strcspn(text, ":");
	const struct shape *s = find(text, n, diag);
	struct maker m = { .t = t, .quality = quality };
	uint64_t p[PARAMETERS_MAX];

	if (s == NULL)
		return -EINVAL;
	if ((text[n] == ':' && text[n + 1] == '\0') ||
		read_parameters(s, text + n + (text[n] == ':'), p) < 0) {
		pl_diag_set(diag, "'%s' is not of the form %s, with numbers from %u to %d", text,
			s->form, (unsigned int)s->least[0], PL_LAB_NODES_MAX);
		return -EINVAL;
	}
	s->make(&m, p);
	if (m.error == -E2BIG) {
		pl_diag_set(diag, "'%s' has more than %d nodes or %d links", text, PL_LAB_NODES_MAX,
			PL_LAB_LINKS_MAX);
		return -EINVAL;
	}
	return m.error;
}
