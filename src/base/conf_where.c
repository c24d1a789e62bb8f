/* SPDX-License-Identifier: BSD-2-Clause */
/* Place of a value in the text of a configuration. */
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/conf_tree.h"

static const struct pl_conf_node *by_key(
	const struct pl_conf_node *map, const char *name, size_t len)
{
	const struct pl_conf_node *node = map->kind == PL_CONF_MAP ? map->child : NULL;

	while (node != NULL &&
		(strlen(node->key->text) != len || memcmp(node->key->text, name, len) != 0))
		node = node->next;
	return node;
}

static const struct pl_conf_node *by_index(const struct pl_conf_node *list, unsigned long i)
{
	const struct pl_conf_node *node = list->kind == PL_CONF_SEQ ? list->child : NULL;

	/* A list of one entry may be written as that entry. */
	if (list->kind == PL_CONF_SCALAR && i == 0)
		return list;
	for (; node != NULL && i > 0; i--)
		node = node->next;
	return node;
}

void pl_conf_where(const char *text, size_t len, const char *path, struct pl_diag *diag)
{
	const struct pl_conf_node *node;
	struct pl_conf_tree tree;
	char *end;

	if (diag == NULL)
		return;
	diag->line = diag->column = 0;
	if (pl_conf_tree_read(&tree, text, len, NULL) < 0)
		return;
	node = tree.n > 0 ? &tree.nodes[0] : NULL;
	while (node != NULL && *path != '\0') {
		if (*path == '[') {
			node = by_index(node, strtoul(path + 1, &end, 10));
			path = *end == ']' ? end + 1 : end;
		} else {
			const size_t n = strcspn(path, ".[");

			node = by_key(node, path, n);
			path += n;
		}
		path += *path == '.';
	}
	if (node != NULL) {
		diag->line = node->line;
		diag->column = node->column;
	}
	pl_conf_tree_done(&tree);
}
