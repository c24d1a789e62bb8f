/* SPDX-License-Identifier: BSD-2-Clause */
/* Configuration text to structures: maps, lists, keys and defaults. conf_value.c has the values of
 * keys, conf_write.c the reverse. */
#include "base/conf.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf_state.h"
#include "base/file.h"
#include "base/num.h"

#define NAMES_MAX 64

static void free_list(const struct pl_conf_row *row, struct pl_conf_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		if (row->type == PL_CONF_STRINGS) {
			free(((char **)list->items)[i]);
		} else if (row->type == PL_CONF_PAIRS) {
			free(((struct pl_conf_pair *)list->items)[i].name);
			free(((struct pl_conf_pair *)list->items)[i].value);
		} else {
			pl_conf_done(row->rows, (char *)list->items + i * row->item_size);
		}
	}
	free(list->items);
	*list = (struct pl_conf_list){ 0 };
}

/* Text has places; values of options (pl_conf_set) have none. */
static bool is_option(const struct pl_conf_node *node)
{
	return node->line == 0;
}

static int set_map(
	const struct pl_conf_row *rows, struct pl_conf_place *p, const struct pl_conf_node *map);

/* Element i of the list under construction. list->n counts it only once it may be freed. */
static int set_item(const struct pl_conf_place *p, const struct pl_conf_row *row,
	struct pl_conf_list *list, const struct pl_conf_node *node)
{
	struct pl_conf_place inner = { .prefix = "", .diag = p->diag };
	size_t i = list->n;
	int error;

	if (is_option(node))
		pl_conf_set_path(inner.path, "%s", p->path);
	else
		pl_conf_set_path(inner.path, "%s[%zu]", p->path, i);
	if (row->type == PL_CONF_STRINGS) {
		error = pl_conf_make_string(&inner, row, node, &((char **)list->items)[i]);
		list->n += error == 0;
		return error;
	}
	if (node->kind != PL_CONF_MAP && !is_nothing(node))
		return pl_conf_fail(
			p->diag, node, "\"%s\" must be a map of keys and values", inner.path);
	inner.conf = (char *)list->items + i * row->item_size;
	error = pl_conf_defaults(row->rows, inner.conf);
	if (error < 0)
		return pl_conf_no_memory(p->diag);
	list->n++;
	return set_map(row->rows, &inner, node);
}

static int set_list(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node)
{
	size_t size = row->type == PL_CONF_STRINGS ? sizeof(char *) : row->item_size;
	struct pl_conf_list *target = field(row, p->conf), list = { 0 };
	char count[32];
	size_t n = 0;
	int error = 0;

	/* A list of one entry may be written as that entry. */
	if (row->one && node->kind == PL_CONF_SCALAR && !is_nothing(node)) {
		struct pl_conf_node only = *node;
		const struct pl_conf_node one = { .kind = PL_CONF_SEQ,
			.line = node->line,
			.column = node->column,
			.child = &only };

		only.next = NULL;
		return set_list(p, row, &one);
	}
	if (node->kind != PL_CONF_SEQ && !is_nothing(node))
		return pl_conf_wrong_kind(p, row, node);
	for (const struct pl_conf_node *item = node->child; item != NULL; item = item->next)
		n++;
	if (!pl_conf_in_range(row, n)) {
		snprintf(count, sizeof(count), is_option(node) ? "%zu times" : "%zu entries", n);
		return pl_conf_out_of_range(p, row, node, count);
	}
	if (n > 0) {
		list.items = calloc(n, size);
		if (list.items == NULL)
			return pl_conf_no_memory(p->diag);
	}
	for (const struct pl_conf_node *item = node->child; item != NULL && error == 0;
		item = item->next)
		error = set_item(p, row, &list, item);
	if (error < 0) {
		free_list(row, &list);
		return error;
	}
	free_list(row, target);
	*target = list;
	return 0;
}

static int refuse_repeated(const struct pl_conf_place *p, const struct pl_conf_node *map,
	const struct pl_conf_node *node);

/* Pair i of the list under construction. list->n counts it only once it may be freed. */
static int set_pair(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *map, const struct pl_conf_node *node, struct pl_conf_list *list)
{
	struct pl_conf_pair *pair = (struct pl_conf_pair *)list->items + list->n;
	struct pl_conf_place inner = { .prefix = "", .diag = p->diag };
	int error = refuse_repeated(p, map, node);

	if (error < 0)
		return error;
	pl_conf_set_path(inner.path, "%s.%s", p->path, node->key->text);
	pair->name = strdup(node->key->text);
	if (pair->name == NULL)
		return pl_conf_no_memory(p->diag);
	error = pl_conf_make_string(&inner, row, node, &pair->value);
	if (error < 0) {
		free(pair->name);
		return error;
	}
	list->n++;
	return 0;
}

static int set_pairs(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node)
{
	struct pl_conf_list *target = field(row, p->conf), list = { 0 };
	char count[32];
	size_t n = 0;
	int error = 0;

	if (node->kind != PL_CONF_MAP && !is_nothing(node))
		return pl_conf_fail(
			p->diag, node, "\"%s\" must be a map of keys and values", p->path);
	for (const struct pl_conf_node *x = node->child; x != NULL; x = x->next)
		n++;
	if (!pl_conf_in_range(row, n)) {
		snprintf(count, sizeof(count), "%zu entries", n);
		return pl_conf_out_of_range(p, row, node, count);
	}
	list.items = calloc(n + 1, sizeof(struct pl_conf_pair));
	if (list.items == NULL)
		return pl_conf_no_memory(p->diag);
	for (const struct pl_conf_node *x = node->child; x != NULL && error == 0; x = x->next)
		error = set_pair(p, row, node, x, &list);
	if (error < 0) {
		free_list(row, &list);
		return error;
	}
	free_list(row, target);
	*target = list;
	return 0;
}

static int set_value(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node)
{
	if (row->type == PL_CONF_LIST || row->type == PL_CONF_STRINGS)
		return set_list(p, row, node);
	if (row->type == PL_CONF_PAIRS)
		return set_pairs(p, row, node);
	if (is_nothing(node))
		return row->def == NULL && !row->required ? 0 : pl_conf_wrong_kind(p, row, node);
	if (row->type == PL_CONF_STRING)
		return pl_conf_set_string(p, row, node);
	if (node->kind != PL_CONF_SCALAR)
		return pl_conf_wrong_kind(p, row, node);
	switch (row->type) {
	case PL_CONF_BOOL:
		if (pl_parse_bool(node->text, field(row, p->conf)) < 0)
			return pl_conf_wrong_kind(p, row, node);
		return 0;
	case PL_CONF_CHOICE:
		return pl_conf_set_choice(p, row, node);
	case PL_CONF_DOUBLE:
	case PL_CONF_RATE:
		return pl_conf_set_double(p, row, node);
	default:
		return pl_conf_set_number(p, row, node);
	}
}

/* Tells whether `key` continues prefix + name: exactly (the row itself) or with a dot (a map above
 * rows). */
enum match { NO_MATCH, ROW, MAP_ABOVE };

static enum match match_key(const char *key, const char *prefix, const char *name)
{
	size_t np = strlen(prefix), nn = strlen(name);

	if (strncmp(key, prefix, np) != 0 || strncmp(key + np, name, nn) != 0)
		return NO_MATCH;
	if (key[np + nn] == '\0')
		return ROW;
	return key[np + nn] == '.' ? MAP_ABOVE : NO_MATCH;
}

static const struct pl_conf_row *find_row(
	const struct pl_conf_row *rows, const char *prefix, const char *name, enum match *ret_match)
{
	*ret_match = NO_MATCH;
	if (strchr(name, '.') != NULL)
		return NULL;
	for (; rows->type != PL_CONF_END; rows++) {
		*ret_match = match_key(rows->key, prefix, name);
		if (*ret_match != NO_MATCH)
			return rows;
	}
	return NULL;
}

static int unknown_key(const struct pl_conf_row *rows, const struct pl_conf_place *p,
	const struct pl_conf_node *key)
{
	char words[NAMES_MAX][64];
	const char *names[NAMES_MAX];
	size_t np = strlen(p->prefix), n = 0;
	int r;

	for (; rows->type != PL_CONF_END && n < NAMES_MAX; rows++) {
		const char *rest = rows->key + np;

		if (strncmp(rows->key, p->prefix, np) != 0)
			continue;
		snprintf(words[n], sizeof(words[n]), "%.*s", (int)strcspn(rest, "."), rest);
		names[n] = words[n];
		n++;
	}
	r = pl_conf_fail(p->diag, key, "unknown key \"%s\"%s%s%s", key->text,
		p->path[0] != '\0' ? " in \"" : "", p->path, p->path[0] != '\0' ? "\"" : "");
	pl_diag_nearest(p->diag, '"', key->text, names, n);
	return r;
}

/* Keys in a map are all known by then, so there are few. */
static int refuse_repeated(const struct pl_conf_place *p, const struct pl_conf_node *map,
	const struct pl_conf_node *node)
{
	for (const struct pl_conf_node *other = map->child; other != node; other = other->next) {
		if (strcmp(other->key->text, node->key->text) == 0)
			return pl_conf_fail(p->diag, node->key,
				"duplicate key \"%s\" (first in line %u)", node->key->text,
				other->key->line);
	}
	return 0;
}

/* Required rows directly in this map. */
static int require_keys(const struct pl_conf_row *rows, const struct pl_conf_place *p,
	const struct pl_conf_node *map)
{
	size_t np = strlen(p->prefix);

	for (; rows->type != PL_CONF_END; rows++) {
		const struct pl_conf_node *node = map->child;

		if (!rows->required || strncmp(rows->key, p->prefix, np) != 0 ||
			strchr(rows->key + np, '.') != NULL)
			continue;
		while (node != NULL && strcmp(node->key->text, rows->key + np) != 0)
			node = node->next;
		if (node == NULL)
			return pl_conf_fail(p->diag, map, "%s%s%skey \"%s\" is missing",
				p->path[0] != '\0' ? "\"" : "", p->path,
				p->path[0] != '\0' ? "\": " : "", rows->key + np);
	}
	return 0;
}

/* Sets a map that is no row, one level down: "web" of "web.listen". */
static int set_inner_map(const struct pl_conf_row *rows, const struct pl_conf_place *p,
	const struct pl_conf_node *node)
{
	struct pl_conf_node none = {
		.kind = PL_CONF_MAP, .line = node->line, .column = node->column
	};
	struct pl_conf_place inner = { .conf = p->conf, .diag = p->diag };
	char prefix[PATH_TEXT_MAX];

	snprintf(prefix, sizeof(prefix), "%s%s.", p->prefix, node->key->text);
	pl_conf_set_path(
		inner.path, "%s%s%s", p->path, p->path[0] != '\0' ? "." : "", node->key->text);
	inner.prefix = prefix;
	if (is_nothing(node))
		return set_map(rows, &inner, &none);
	if (node->kind != PL_CONF_MAP)
		return pl_conf_fail(
			p->diag, node, "\"%s\" must be a map of keys and values", inner.path);
	return set_map(rows, &inner, node);
}

static int set_map(
	const struct pl_conf_row *rows, struct pl_conf_place *p, const struct pl_conf_node *map)
{
	size_t path_len = strlen(p->path);
	int error = 0;

	for (const struct pl_conf_node *node = map->child; node != NULL && error == 0;
		node = node->next) {
		const struct pl_conf_row *row;
		enum match match;

		row = find_row(rows, p->prefix, node->key->text, &match);
		if (match == NO_MATCH)
			return unknown_key(rows, p, node->key);
		error = refuse_repeated(p, map, node);
		if (error < 0)
			return error;
		if (match == MAP_ABOVE) {
			error = set_inner_map(rows, p, node);
			continue;
		}
		snprintf(p->path + path_len, sizeof(p->path) - path_len, "%s%s",
			path_len > 0 ? "." : "", node->key->text);
		error = set_value(p, row, node);
		p->path[path_len] = '\0';
	}
	return error < 0 ? error : require_keys(rows, p, map);
}

/* A default comes from the program: when it does not fit its own row, that is a bug. */
static int set_default(const struct pl_conf_row *row, void *conf)
{
	struct pl_conf_place p = { .conf = conf, .prefix = "" };
	struct pl_conf_node scalar = { .kind = PL_CONF_SCALAR };
	struct pl_conf_tree tree;
	int error;

	if (row->type == PL_CONF_LIST || row->type == PL_CONF_STRINGS) {
		error = pl_conf_tree_read(&tree, row->def, strlen(row->def), NULL);
		assert(error < 0 || tree.n > 0);
		if (error == 0) {
			error = set_list(&p, row, &tree.nodes[0]);
			pl_conf_tree_done(&tree);
		}
	} else {
		scalar.text = strdup(row->def);
		error = scalar.text == NULL ? -ENOMEM : set_value(&p, row, &scalar);
		free(scalar.text);
	}
	assert(error == 0 || error == -ENOMEM);
	return error;
}

int pl_conf_defaults(const struct pl_conf_row *rows, void *ret_conf)
{
	for (const struct pl_conf_row *row = rows; row->type != PL_CONF_END; row++) {
		/* A required row has no default; its `def` is an example. */
		int error = row->def != NULL && !row->required ? set_default(row, ret_conf) : 0;

		if (error < 0) {
			pl_conf_done(rows, ret_conf);
			return error;
		}
	}
	return 0;
}

int pl_conf_parse(const struct pl_conf_row *rows, const char *name, const char *text, size_t len,
	void *ret_conf, struct pl_diag *diag)
{
	struct pl_conf_node none = { .kind = PL_CONF_MAP, .line = 1, .column = 1 };
	struct pl_conf_place p = { .conf = ret_conf, .prefix = "", .diag = diag };
	struct pl_conf_tree tree;
	const struct pl_conf_node *root;
	int error;

	if (diag != NULL)
		snprintf(diag->file, sizeof(diag->file), "%s", name);
	error = pl_conf_tree_read(&tree, text, len, diag);
	if (error < 0)
		return error;
	error = pl_conf_defaults(rows, ret_conf);
	if (error < 0) {
		pl_conf_tree_done(&tree);
		return pl_conf_no_memory(diag);
	}
	root = tree.n == 0 || is_nothing(&tree.nodes[0]) ? &none : &tree.nodes[0];
	if (root->kind != PL_CONF_MAP)
		error = pl_conf_fail(
			diag, root, "the configuration must be a map of keys and values");
	else
		error = set_map(rows, &p, root);
	pl_conf_tree_done(&tree);
	if (error < 0)
		pl_conf_done(rows, ret_conf);
	return error;
}

/* More than blanks, or than blanks and comments. */
static bool has_more(const char *text, size_t len, bool than_comments)
{
	bool comment = false;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			comment = false;
		else if (text[i] == '#' && than_comments)
			comment = true;
		else if (!comment && text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
			return true;
	}
	return false;
}

void pl_conf_look_at_end(const char *text, size_t len, struct pl_conf_ending *ret)
{
	static const char marker[] = "...";
	size_t end = len;

	*ret = (struct pl_conf_ending){ .keys = has_more(text, len, true) };
	ret->newline = len > 0 && text[len - 1] == '\n';
	while (end > 0 && strchr(" \t\r\n", text[end - 1]) != NULL && text[end - 1] != '\0')
		end--;
	ret->marker = end >= 3 && memcmp(text + end - 3, marker, 3) == 0 &&
		      (end == 3 || text[end - 4] == '\n');
}

int pl_conf_load(const struct pl_conf_row *rows, const char *path, void *ret_conf,
	struct pl_conf_ending *ret_ending, struct pl_diag *diag)
{
	const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
	char *text;
	size_t len;
	int error;

	error = pl_file_read(path, PL_CONF_TEXT_MAX, &text, &len);
	if (error < 0) {
		if (diag != NULL)
			snprintf(diag->file, sizeof(diag->file), "%s", name);
		if (error == -EFBIG)
			pl_diag_at(diag, 0, 0, "more than %d bytes", PL_CONF_TEXT_MAX);
		else
			pl_diag_at(diag, 0, 0, "cannot read: %s", strerrordesc_np(-error));
		return error;
	}
	if (!has_more(text, len, false)) {
		if (diag != NULL)
			snprintf(diag->file, sizeof(diag->file), "%s", name);
		pl_diag_at(diag, 0, 0, "the file is empty ({} means all defaults)");
		error = -EINVAL;
	} else {
		error = pl_conf_parse(rows, name, text, len, ret_conf, diag);
	}
	if (ret_ending != NULL)
		pl_conf_look_at_end(text, len, ret_ending);
	free(text);
	return error;
}

void pl_conf_done(const struct pl_conf_row *rows, void *conf)
{
	for (; rows->type != PL_CONF_END; rows++) {
		if (rows->type == PL_CONF_STRING) {
			char **value = field(rows, conf);

			free(*value);
			*value = NULL;
		} else if (rows->type == PL_CONF_LIST || rows->type == PL_CONF_STRINGS ||
			   rows->type == PL_CONF_PAIRS) {
			free_list(rows, field(rows, conf));
		}
	}
}

/* The word is meant literally: each $ is doubled, as it must be in a file. */
static char *quoted(const char *word)
{
	char *text = malloc(2 * strlen(word) + 1), *to = text;

	for (; text != NULL && *word != '\0'; word++) {
		if (*word == '$')
			*to++ = '$';
		*to++ = *word;
	}
	if (text != NULL)
		*to = '\0';
	return text;
}

int pl_conf_set(const struct pl_conf_row *row, const char *name, const char *const *words, size_t n,
	void *conf, struct pl_diag *diag)
{
	struct pl_conf_place p = { .conf = conf, .prefix = "", .diag = diag };
	struct pl_conf_node *nodes = calloc(n, sizeof(*nodes));
	const struct pl_conf_node list = { .kind = PL_CONF_SEQ, .child = nodes };
	bool made = nodes != NULL;
	int r;

	assert(n > 0 && (n == 1 || row->type == PL_CONF_STRINGS));
	pl_conf_set_path(p.path, "%s", name);
	for (size_t i = 0; made && i < n; i++) {
		nodes[i].text = quoted(words[i]);
		nodes[i].next = i + 1 < n ? &nodes[i + 1] : NULL;
		made = nodes[i].text != NULL;
	}
	if (!made)
		r = pl_conf_no_memory(diag);
	else
		r = set_value(&p, row, row->type == PL_CONF_STRINGS ? &list : nodes);
	for (size_t i = 0; nodes != NULL && i < n; i++)
		free(nodes[i].text);
	free(nodes);
	return r;
}
