/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads YAML with libyaml into a tree of bounded size. */
#include "base/conf_tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* current event */
	struct pl_conf_tree *tree;
	size_t room; /* nodes in the tree's array */
	struct pl_diag *diag;
};

__attribute__((format(printf, 3, 4))) static int refuse(
	struct reader *r, const yaml_mark_t *mark, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pl_diag_at(
		r->diag, (unsigned int)mark->line + 1, (unsigned int)mark->column + 1, "%s", text);
	return -EINVAL;
}

/* Errors of libyaml's reader (bytes that are no UTF-8) carry an offset, the others a mark. */
static int yaml_error(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	const char *context = p->context, *problem = p->problem != NULL ? p->problem : "not YAML";

	switch (p->error) {
	case YAML_MEMORY_ERROR:
		pl_diag_set(r->diag, "out of memory");
		return -ENOMEM;
	case YAML_READER_ERROR:
		return refuse(r, &p->mark, "%s at byte %zu", problem, p->problem_offset);
	default:
		return refuse(r, &p->problem_mark, "%s%s%s", context != NULL ? context : "",
			context != NULL ? ": " : "", problem);
	}
}

static int advance(struct reader *r)
{
	yaml_event_delete(&r->event);
	if (!yaml_parser_parse(&r->parser, &r->event)) {
		/* The event is not valid then. */
		memset(&r->event, 0, sizeof(r->event));
		return yaml_error(r);
	}
	return 0;
}

static int new_node(struct reader *r, enum pl_conf_kind kind, struct pl_conf_node **ret)
{
	const yaml_mark_t *mark = &r->event.start_mark;
	struct pl_conf_node *node;

	if (r->tree->n >= r->room)
		return refuse(r, mark, "more than %d values", PL_CONF_NODES_MAX);
	node = &r->tree->nodes[r->tree->n++];
	node->kind = kind;
	node->line = (unsigned int)mark->line + 1;
	node->column = (unsigned int)mark->column + 1;
	*ret = node;
	return 0;
}

static int read_scalar(struct reader *r, struct pl_conf_node **ret)
{
	const char *text = (const char *)r->event.data.scalar.value;
	size_t len = r->event.data.scalar.length;
	int error;

	if (r->event.data.scalar.anchor != NULL)
		return refuse(r, &r->event.start_mark, "anchors are not accepted");
	if (r->event.data.scalar.tag != NULL)
		return refuse(r, &r->event.start_mark, "tags are not accepted");
	if (memchr(text, '\0', len) != NULL)
		return refuse(r, &r->event.start_mark, "a zero byte inside a value");
	error = new_node(r, PL_CONF_SCALAR, ret);
	if (error != 0)
		return error;
	(*ret)->plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	(*ret)->text = strdup(text);
	return (*ret)->text == NULL ? -ENOMEM : 0;
}

static int read_node(struct reader *r, unsigned int depth, struct pl_conf_node **ret);

/* The current event opened a map or a list; returns with the one that closes it. */
static int read_children(struct reader *r, unsigned int depth, struct pl_conf_node *parent)
{
	yaml_event_type_t last =
		parent->kind == PL_CONF_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
	struct pl_conf_node **link = &parent->child, *key = NULL;
	int error;

	for (;;) {
		error = advance(r);
		if (error < 0)
			return error;
		if (r->event.type == last)
			return 0;
		if (parent->kind == PL_CONF_MAP) {
			if (r->event.type != YAML_SCALAR_EVENT && r->event.type != YAML_ALIAS_EVENT)
				return refuse(r, &r->event.start_mark, "a key must be a word");
			error = read_node(r, depth, &key);
			if (error == 0)
				error = advance(r);
			if (error < 0)
				return error;
		}
		error = read_node(r, depth, link);
		if (error < 0)
			return error;
		(*link)->key = key;
		link = &(*link)->next;
	}
}

static int read_node(struct reader *r, unsigned int depth, struct pl_conf_node **ret)
{
	const yaml_mark_t *mark = &r->event.start_mark;
	const yaml_char_t *anchor, *tag;
	bool map = r->event.type == YAML_MAPPING_START_EVENT;
	int error;

	switch (r->event.type) {
	case YAML_SCALAR_EVENT:
		return read_scalar(r, ret);
	case YAML_ALIAS_EVENT:
		return refuse(r, mark, "aliases are not accepted");
	case YAML_MAPPING_START_EVENT:
		anchor = r->event.data.mapping_start.anchor;
		tag = r->event.data.mapping_start.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = r->event.data.sequence_start.anchor;
		tag = r->event.data.sequence_start.tag;
		break;
	default:
		return refuse(r, mark, "a value is missing");
	}
	if (anchor != NULL || tag != NULL)
		return refuse(r, mark, "%s are not accepted", anchor != NULL ? "anchors" : "tags");
	if (depth >= PL_CONF_DEPTH_MAX)
		return refuse(r, mark, "nested more than %d levels deep", PL_CONF_DEPTH_MAX);
	error = new_node(r, map ? PL_CONF_MAP : PL_CONF_SEQ, ret);
	return error != 0 ? error : read_children(r, depth + 1, *ret);
}

static int read_document(struct reader *r)
{
	struct pl_conf_node *root = NULL;
	int error;

	error = advance(r); /* the start of the stream */
	if (error == 0)
		error = advance(r);
	if (error < 0 || r->event.type == YAML_STREAM_END_EVENT)
		return error;
	error = advance(r);
	if (error == 0)
		error = read_node(r, 0, &root);
	if (error == 0)
		error = advance(r); /* the end of the document */
	if (error == 0)
		error = advance(r);
	if (error < 0)
		return error;
	if (r->event.type != YAML_STREAM_END_EVENT)
		return refuse(r, &r->event.start_mark, "a second document is not accepted");
	return 0;
}

int pl_conf_tree_read(struct pl_conf_tree *ret, const char *text, size_t len, struct pl_diag *diag)
{
	struct reader r = { .tree = ret, .diag = diag };
	int error;

	*ret = (struct pl_conf_tree){ 0 };
	if (len > PL_CONF_TEXT_MAX) {
		pl_diag_at(diag, 0, 0, "more than %d bytes", PL_CONF_TEXT_MAX);
		return -EINVAL;
	}
	/* The array never moves: children point into it. A byte makes three nodes at most, as "?"
	 * does: a map, a key and a value. */
	r.room = len < PL_CONF_NODES_MAX / 3 ? 3 * len + 1 : PL_CONF_NODES_MAX;
	ret->nodes = calloc(r.room, sizeof(*ret->nodes));
	if (ret->nodes == NULL || !yaml_parser_initialize(&r.parser)) {
		pl_conf_tree_done(ret);
		pl_diag_at(diag, 0, 0, "out of memory");
		return -ENOMEM;
	}
	/* The encoding is set, not guessed: libyaml would also take UTF-16. */
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	error = read_document(&r);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	if (error < 0)
		pl_conf_tree_done(ret);
	return error;
}

void pl_conf_tree_done(struct pl_conf_tree *tree)
{
	for (size_t i = 0; tree->nodes != NULL && i < tree->n; i++)
		free(tree->nodes[i].text);
	free(tree->nodes);
	*tree = (struct pl_conf_tree){ 0 };
}
