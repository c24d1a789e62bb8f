/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks names of a lab, and finds its nodes and links by name. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab/topology.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

int pl_lab_check_name(const char *value, struct pl_diag *diag)
{
	const char *why = NULL;

	if (strlen(value) > PL_LAB_NAME_MAX)
		why = "is longer than 12 characters, and names of interfaces are made of it";
	else if (value[0] == '\0' || strchr(LETTERS, value[0]) == NULL ||
		 value[strspn(value, LETTERS DIGITS "_")] != '\0')
		why = "is not a letter and letters, digits or _ behind it";
	else if (strcmp(value, "lo") == 0 || strcmp(value, "all") == 0 ||
		 strcmp(value, "default") == 0)
		why = "is a word of the kernel's for interfaces";
	if (why == NULL)
		return 0;
	pl_diag_set(diag, "'%s' %s", value, why);
	return -EINVAL;
}

int pl_lab_check_lab_name(const char *value, struct pl_diag *diag)
{
	if (value[0] != '\0' && strchr(LETTERS, value[0]) != NULL &&
		value[strspn(value, LETTERS DIGITS "_-")] == '\0' &&
		strlen(value) <= PL_LAB_LAB_NAME_MAX)
		return 0;
	pl_diag_set(diag,
		"'%s' is no name of a lab: a letter, then letters, digits, _ or -, %d at most",
		value, PL_LAB_LAB_NAME_MAX);
	return -EINVAL;
}

static void say_unknown(
	struct pl_diag *diag, const char *what, const char *name, const char **names, size_t n)
{
	pl_diag_set(diag, "no %s is called '%s'", what, name);
	pl_diag_nearest(diag, '\'', name, names, n);
}

int pl_lab_find_node(const struct pl_lab_topology *t, const char *name, struct pl_diag *diag)
{
	const char *names[PL_LAB_NODES_MAX];

	for (unsigned int i = 0; i < t->n_nodes; i++) {
		names[i] = t->nodes[i].name;
		if (strcmp(names[i], name) == 0)
			return (int)i;
	}
	if (diag != NULL)
		say_unknown(diag, "node", name, names, t->n_nodes);
	return -ENOENT;
}

const struct pl_lab_command *pl_lab_find_command(const struct pl_lab_topology *t, const char *name)
{
	for (unsigned int i = 0; i < t->n_commands; i++) {
		if (t->commands[i].name != NULL && strcmp(t->commands[i].name, name) == 0)
			return &t->commands[i];
	}
	return NULL;
}

int pl_lab_find_link(const struct pl_lab_topology *t, const char *name, unsigned int *ret_end,
	struct pl_diag *diag)
{
	const char *dash = strchr(name, '-'), *near[2 * PL_LAB_PORTS_MAX];
	char first[PL_LAB_NAME_MAX + 1], texts[PL_LAB_PORTS_MAX][PL_LAB_LINK_TEXT_MAX];
	const struct pl_lab_node *node;
	unsigned int n = 0;
	int at;

	if (dash == NULL || dash - name > PL_LAB_NAME_MAX) {
		pl_diag_set(diag, "'%s' is no link: write NODE-NODE, such as %s-%s", name,
			t->n_links > 0 ? t->nodes[t->links[0].end[0].node].name : "h1",
			t->n_links > 0 ? t->links[0].end[0].interface : "s1");
		return -ENOENT;
	}
	snprintf(first, sizeof(first), "%.*s", (int)(dash - name), name);
	at = pl_lab_find_node(t, first, diag);
	if (at < 0)
		return at;
	node = &t->nodes[at];
	for (unsigned int i = 0; i < node->n_ports; i++) {
		const struct pl_lab_link *l = &t->links[node->links[i]];
		unsigned int side = l->end[0].node != (unsigned int)at;

		if (strcmp(l->end[side].interface, dash + 1) == 0) {
			*ret_end = side;
			return (int)node->links[i];
		}
		snprintf(texts[i], sizeof(texts[i]), "%s-%s", node->name, l->end[side].interface);
		near[n++] = texts[i];
	}
	say_unknown(diag, "link", name, near, n);
	return -ENOENT;
}

int pl_lab_find_directions(const struct pl_lab_topology *t, const char *name,
	unsigned int *ret_ends, struct pl_diag *diag)
{
	char copy[PL_LAB_LINK_TEXT_MAX + 8], *one;
	unsigned int end;
	int at;

	if ((size_t)snprintf(copy, sizeof(copy), "%s", name) >= sizeof(copy)) {
		pl_diag_set(diag, "'%s' is no link", name);
		return -EINVAL;
	}
	one = strchr(copy, '>');
	if (one != NULL)
		*one = '-';
	at = pl_lab_find_link(t, copy, &end, diag);
	if (at < 0)
		return at;
	if (t->links[at].quality.bare) {
		pl_diag_set(diag, "link %s is bare: the lab does not stand in between", copy);
		return -EINVAL;
	}
	*ret_ends = one != NULL ? 1u << end : 3;
	return at;
}
