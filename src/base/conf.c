/* SPDX-License-Identifier: BSD-2-Clause */
/* Configuration text to structures. What goes the other way is conf_write.c. */
#include "base/conf.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf_tree.h"
#include "base/file.h"
#include "base/num.h"
#include "base/utf8.h"

#define PATH_TEXT_MAX 256
#define NAMES_MAX     64

/* Where in the configuration a value lies: the caller's structure, and the words for a message. */
struct place {
	void *conf;               /* structure of these rows */
	const char *prefix;       /* of the keys in the current map: "web.", or "" */
	char path[PATH_TEXT_MAX]; /* for people: "sources[2].uri" */
	struct pl_diag *diag;
};

static void *field(const struct pl_conf_row *row, void *conf)
{
	return (char *)conf + row->offset;
}

__attribute__((format(printf, 3, 4))) static int fail(
	struct pl_diag *diag, const struct pl_conf_node *node, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pl_diag_at(diag, node->line, node->column, "%s", text);
	return -EINVAL;
}

/* A path is for people; one that is too long is cut. */
__attribute__((format(printf, 2, 3))) static void set_path(
	char dst[PATH_TEXT_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(dst, PATH_TEXT_MAX, fmt, ap);
	va_end(ap);
}

static int no_memory(struct pl_diag *diag)
{
	pl_diag_set(diag, "out of memory");
	return -ENOMEM;
}

/* How a range reads in the row's own unit. */
static void format_bound(const struct pl_conf_row *row, uint64_t v, char dst[PL_EXACT_TEXT_MAX])
{
	if (row->type == PL_CONF_SIZE)
		pl_format_size_exact(dst, v);
	else if (row->type == PL_CONF_DURATION)
		pl_format_duration_exact(dst, v);
	else
		snprintf(dst, PL_EXACT_TEXT_MAX, "%llu", (unsigned long long)v);
}

static int out_of_range(const struct place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node, const char *what)
{
	char min[PL_EXACT_TEXT_MAX], max[PL_EXACT_TEXT_MAX];

	format_bound(row, row->min, min);
	format_bound(row, row->max, max);
	if (row->max == 0 && row->min == 0)
		return fail(p->diag, node, "\"%s\" is too large: %s", p->path, what);
	if (row->max == 0)
		return fail(
			p->diag, node, "\"%s\" must be at least %s, not %s", p->path, min, what);
	return fail(p->diag, node, "\"%s\" must be from %s to %s, not %s", p->path, min, max, what);
}

static bool in_range(const struct pl_conf_row *row, uint64_t v)
{
	return v >= row->min && (row->max == 0 || v <= row->max);
}

static const char *wanted(enum pl_conf_type type)
{
	switch (type) {
	case PL_CONF_BOOL:
		return "true or false";
	case PL_CONF_U64:
		return "a whole number";
	case PL_CONF_DOUBLE:
		return "a number";
	case PL_CONF_SIZE:
		return "a size such as 4096, 64KiB or 1GiB";
	case PL_CONF_DURATION:
		return "a duration such as 250us, 1.5s or 2m";
	case PL_CONF_STRINGS:
		return "a list of words";
	case PL_CONF_LIST:
		return "a list of maps";
	case PL_CONF_PAIRS:
		return "a map of keys and values";
	case PL_CONF_CHOICE:
		return "one word";
	case PL_CONF_STRING:
	case PL_CONF_END:
		break;
	}
	return "a value";
}

static int wrong_kind(
	const struct place *p, const struct pl_conf_row *row, const struct pl_conf_node *node)
{
	static const char *const kinds[] = { "", "a map", "a list" };

	if (node->kind != PL_CONF_SCALAR)
		return fail(p->diag, node, "\"%s\" wants %s, not %s", p->path, wanted(row->type),
			kinds[node->kind]);
	if (node->text[0] == '\0')
		return fail(p->diag, node, "\"%s\" needs %s", p->path, wanted(row->type));
	return fail(p->diag, node, "\"%s\" wants %s, not \"%s\"", p->path, wanted(row->type),
		node->text);
}

/* Nothing was written where a value could stand. */
static bool is_nothing(const struct pl_conf_node *node)
{
	return node->kind == PL_CONF_SCALAR && node->plain && node->text[0] == '\0';
}

static bool name_char(char c, bool first)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
	       (!first && c >= '0' && c <= '9');
}

/* *text is behind "${"; moves it behind "}" and adds the variable's value. */
static int add_variable(const struct place *p, const struct pl_conf_node *node, const char **text,
	struct pl_buf *out)
{
	const char *end = *text, *value;
	char name[128];
	size_t n;

	while (name_char(*end, end == *text))
		end++;
	n = (size_t)(end - *text);
	if (n == 0 || *end != '}' || n >= sizeof(name))
		return fail(p->diag, node,
			"\"%s\": ${NAME} is not closed or its name is not one (write $$ for $)",
			p->path);
	memcpy(name, *text, n);
	name[n] = '\0';
	value = getenv(name); // NOLINT(concurrency-mt-unsafe): nobody here calls setenv
	if (value == NULL)
		return fail(
			p->diag, node, "\"%s\": the environment has no variable %s", p->path, name);
	if (!pl_utf8_valid(value, strlen(value)))
		return fail(p->diag, node, "\"%s\": the variable %s is not UTF-8", p->path, name);
	pl_buf_str(out, value);
	*text = end + 1;
	return 0;
}

static int expand(const struct place *p, const struct pl_conf_node *node, char **ret)
{
	const char *text = node->text;
	struct pl_buf out;
	int error = 0;

	pl_buf_init(&out);
	out.limit = PL_CONF_TEXT_MAX;
	pl_buf_str(&out, "");
	while (*text != '\0' && error == 0) {
		if (text[0] == '$' && text[1] == '$') {
			pl_buf_chr(&out, '$');
			text += 2;
		} else if (text[0] == '$' && text[1] == '{') {
			text += 2;
			error = add_variable(p, node, &text, &out);
		} else {
			pl_buf_chr(&out, *text++);
		}
	}
	if (error == 0 && out.failed)
		error = no_memory(p->diag);
	if (error < 0) {
		pl_buf_done(&out);
		return error;
	}
	*ret = out.data;
	return 0;
}

/* A string value of its own memory, checked if the row asks for it. */
static int make_string(const struct place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node, char **ret)
{
	struct pl_diag why = { 0 };
	char *value;
	int error;

	if (node->kind != PL_CONF_SCALAR)
		return wrong_kind(p, row, node);
	error = expand(p, node, &value);
	if (error < 0)
		return error;
	if (row->check != NULL && row->check(value, &why) < 0) {
		error = fail(p->diag, node, "\"%s\": %s", p->path, why.text);
		free(value);
		return error;
	}
	*ret = value;
	return 0;
}

static int set_choice(
	const struct place *p, const struct pl_conf_row *row, const struct pl_conf_node *node)
{
	char words[256] = "";
	const char *near;
	size_t n = 0, used = 0;

	for (; row->choices[n] != NULL; n++) {
		if (strcmp(node->text, row->choices[n]) == 0) {
			*(unsigned int *)field(row, p->conf) = (unsigned int)n;
			return 0;
		}
		if (used < sizeof(words))
			used += (size_t)snprintf(words + used, sizeof(words) - used, "%s%s",
				n > 0 ? ", " : "", row->choices[n]);
	}
	near = pl_nearest(node->text, row->choices, n);
	return fail(p->diag, node, "\"%s\" wants one of %s, not \"%s\"%s%s%s", p->path, words,
		node->text, near != NULL ? ", did you mean \"" : "", near != NULL ? near : "",
		near != NULL ? "\"?" : "");
}

static int set_double(
	const struct place *p, const struct pl_conf_row *row, const struct pl_conf_node *node)
{
	double v;
	int error = pl_parse_double(node->text, &v);

	if (error == -EINVAL)
		return wrong_kind(p, row, node);
	if (error < 0 || ((row->min != 0 || row->max != 0) && v < (double)row->min) ||
		(row->max != 0 && v > (double)row->max))
		return out_of_range(p, row, node, node->text);
	*(double *)field(row, p->conf) = v;
	return 0;
}

static int set_number(
	const struct place *p, const struct pl_conf_row *row, const struct pl_conf_node *node)
{
	uint64_t v;
	int error;

	if (row->type == PL_CONF_SIZE)
		error = pl_parse_size(node->text, &v);
	else if (row->type == PL_CONF_DURATION)
		error = pl_parse_duration(node->text, &v);
	else
		error = pl_parse_u64(node->text, &v);
	if (error == -EINVAL)
		return wrong_kind(p, row, node);
	if (error < 0 || !in_range(row, v))
		return out_of_range(p, row, node, node->text);
	*(uint64_t *)field(row, p->conf) = v;
	return 0;
}

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

static int set_map(const struct pl_conf_row *rows, struct place *p, const struct pl_conf_node *map);

/* Element i of the list under construction. list->n counts it only once it may be freed. */
static int set_item(const struct place *p, const struct pl_conf_row *row, struct pl_conf_list *list,
	const struct pl_conf_node *node)
{
	struct place inner = { .prefix = "", .diag = p->diag };
	size_t i = list->n;
	int error;

	set_path(inner.path, "%s[%zu]", p->path, i);
	if (row->type == PL_CONF_STRINGS) {
		error = make_string(&inner, row, node, &((char **)list->items)[i]);
		list->n += error == 0;
		return error;
	}
	if (node->kind != PL_CONF_MAP && !is_nothing(node))
		return fail(p->diag, node, "\"%s\" must be a map of keys and values", inner.path);
	inner.conf = (char *)list->items + i * row->item_size;
	error = pl_conf_defaults(row->rows, inner.conf);
	if (error < 0)
		return no_memory(p->diag);
	list->n++;
	return set_map(row->rows, &inner, node);
}

static int set_list(
	const struct place *p, const struct pl_conf_row *row, const struct pl_conf_node *node)
{
	size_t size = row->type == PL_CONF_STRINGS ? sizeof(char *) : row->item_size;
	struct pl_conf_list *target = field(row, p->conf), list = { 0 };
	char count[32];
	size_t n = 0;
	int error = 0;

	if (node->kind != PL_CONF_SEQ && !is_nothing(node))
		return wrong_kind(p, row, node);
	for (const struct pl_conf_node *item = node->child; item != NULL; item = item->next)
		n++;
	if (!in_range(row, n)) {
		snprintf(count, sizeof(count), "%zu entries", n);
		return out_of_range(p, row, node, count);
	}
	if (n > 0) {
		list.items = calloc(n, size);
		if (list.items == NULL)
			return no_memory(p->diag);
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

static int refuse_repeated(
	const struct place *p, const struct pl_conf_node *map, const struct pl_conf_node *node);

/* Pair i of the list under construction. list->n counts it only once it may be freed. */
static int set_pair(const struct place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *map, const struct pl_conf_node *node, struct pl_conf_list *list)
{
	struct pl_conf_pair *pair = (struct pl_conf_pair *)list->items + list->n;
	struct place inner = { .prefix = "", .diag = p->diag };
	int error = refuse_repeated(p, map, node);

	if (error < 0)
		return error;
	set_path(inner.path, "%s.%s", p->path, node->key->text);
	pair->name = strdup(node->key->text);
	if (pair->name == NULL)
		return no_memory(p->diag);
	error = make_string(&inner, row, node, &pair->value);
	if (error < 0) {
		free(pair->name);
		return error;
	}
	list->n++;
	return 0;
}

static int set_pairs(
	const struct place *p, const struct pl_conf_row *row, const struct pl_conf_node *node)
{
	struct pl_conf_list *target = field(row, p->conf), list = { 0 };
	char count[32];
	size_t n = 0;
	int error = 0;

	if (node->kind != PL_CONF_MAP && !is_nothing(node))
		return fail(p->diag, node, "\"%s\" must be a map of keys and values", p->path);
	for (const struct pl_conf_node *x = node->child; x != NULL; x = x->next)
		n++;
	if (!in_range(row, n)) {
		snprintf(count, sizeof(count), "%zu entries", n);
		return out_of_range(p, row, node, count);
	}
	list.items = calloc(n + 1, sizeof(struct pl_conf_pair));
	if (list.items == NULL)
		return no_memory(p->diag);
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

static int set_string(
	const struct place *p, const struct pl_conf_row *row, const struct pl_conf_node *node)
{
	char **target = field(row, p->conf), *value = NULL;
	int error;

	error = make_string(p, row, node, &value);
	if (error < 0)
		return error;
	free(*target);
	*target = value;
	return 0;
}

static int set_value(
	const struct place *p, const struct pl_conf_row *row, const struct pl_conf_node *node)
{
	if (row->type == PL_CONF_LIST || row->type == PL_CONF_STRINGS)
		return set_list(p, row, node);
	if (row->type == PL_CONF_PAIRS)
		return set_pairs(p, row, node);
	if (is_nothing(node))
		return row->def == NULL && !row->required ? 0 : wrong_kind(p, row, node);
	if (row->type == PL_CONF_STRING)
		return set_string(p, row, node);
	if (node->kind != PL_CONF_SCALAR)
		return wrong_kind(p, row, node);
	switch (row->type) {
	case PL_CONF_BOOL:
		if (pl_parse_bool(node->text, field(row, p->conf)) < 0)
			return wrong_kind(p, row, node);
		return 0;
	case PL_CONF_CHOICE:
		return set_choice(p, row, node);
	case PL_CONF_DOUBLE:
		return set_double(p, row, node);
	default:
		return set_number(p, row, node);
	}
}

/* Whether `key` continues prefix + name: exactly (the row itself) or with a dot (a map above rows). */
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

static int unknown_key(
	const struct pl_conf_row *rows, const struct place *p, const struct pl_conf_node *key)
{
	char words[NAMES_MAX][64];
	const char *names[NAMES_MAX], *near;
	size_t np = strlen(p->prefix), n = 0;

	for (; rows->type != PL_CONF_END && n < NAMES_MAX; rows++) {
		const char *rest = rows->key + np;

		if (strncmp(rows->key, p->prefix, np) != 0)
			continue;
		snprintf(words[n], sizeof(words[n]), "%.*s", (int)strcspn(rest, "."), rest);
		names[n] = words[n];
		n++;
	}
	near = pl_nearest(key->text, names, n);
	return fail(p->diag, key, "unknown key \"%s\"%s%s%s%s%s%s", key->text,
		p->path[0] != '\0' ? " in \"" : "", p->path, p->path[0] != '\0' ? "\"" : "",
		near != NULL ? ", did you mean \"" : "", near != NULL ? near : "",
		near != NULL ? "\"?" : "");
}

/* Keys in a map are all known by then, so there are few. */
static int refuse_repeated(
	const struct place *p, const struct pl_conf_node *map, const struct pl_conf_node *node)
{
	for (const struct pl_conf_node *other = map->child; other != node; other = other->next) {
		if (strcmp(other->key->text, node->key->text) == 0)
			return fail(p->diag, node->key,
				"key \"%s\" is here a second time (first in line %u)",
				node->key->text, other->key->line);
	}
	return 0;
}

/* Required rows directly in this map. */
static int require_keys(
	const struct pl_conf_row *rows, const struct place *p, const struct pl_conf_node *map)
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
			return fail(p->diag, map, "%s%s%skey \"%s\" is missing",
				p->path[0] != '\0' ? "\"" : "", p->path,
				p->path[0] != '\0' ? "\": " : "", rows->key + np);
	}
	return 0;
}

/* One level down into a map that is no row: "web" of "web.listen". */
static int set_inner_map(
	const struct pl_conf_row *rows, const struct place *p, const struct pl_conf_node *node)
{
	struct pl_conf_node none = {
		.kind = PL_CONF_MAP, .line = node->line, .column = node->column
	};
	struct place inner = { .conf = p->conf, .diag = p->diag };
	char prefix[PATH_TEXT_MAX];

	snprintf(prefix, sizeof(prefix), "%s%s.", p->prefix, node->key->text);
	set_path(inner.path, "%s%s%s", p->path, p->path[0] != '\0' ? "." : "", node->key->text);
	inner.prefix = prefix;
	if (is_nothing(node))
		return set_map(rows, &inner, &none);
	if (node->kind != PL_CONF_MAP)
		return fail(p->diag, node, "\"%s\" must be a map of keys and values", inner.path);
	return set_map(rows, &inner, node);
}

static int set_map(const struct pl_conf_row *rows, struct place *p, const struct pl_conf_node *map)
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
	struct place p = { .conf = conf, .prefix = "" };
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
		/* What is required has no default; its `def` is an example. */
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
	struct place p = { .conf = ret_conf, .prefix = "", .diag = diag };
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
		return no_memory(diag);
	}
	root = tree.n == 0 || is_nothing(&tree.nodes[0]) ? &none : &tree.nodes[0];
	if (root->kind != PL_CONF_MAP)
		error = fail(diag, root, "the configuration must be a map of keys and values");
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
		pl_diag_at(diag, 0, 0,
			"the file is empty, or not written yet ({} would mean the defaults)");
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
