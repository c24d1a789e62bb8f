/* SPDX-License-Identifier: BSD-2-Clause */
/* State of reading a configuration, for conf.c (maps, lists) and conf_value.c (values). */
#pragma once

#include <stdio.h>

#include "base/conf.h"
#include "base/conf_tree.h"

#define PATH_TEXT_MAX 256

/* Place of a value in the configuration: the caller's structure, and the path for messages. */
struct pl_conf_place {
	void *conf;               /* structure of these rows */
	const char *prefix;       /* prefix of the keys in the current map: "web.", or "" */
	char path[PATH_TEXT_MAX]; /* for people: "sources[2].uri" */
	struct pl_diag *diag;
};

static inline void *field(const struct pl_conf_row *row, void *conf)
{
	return (char *)conf + row->offset;
}

/* True when the value is empty. */
static inline bool is_nothing(const struct pl_conf_node *node)
{
	return node->kind == PL_CONF_SCALAR && node->plain && node->text[0] == '\0';
}

/* ---- conf_value.c ---- */

__attribute__((format(printf, 3, 4))) int pl_conf_fail(
	struct pl_diag *diag, const struct pl_conf_node *node, const char *fmt, ...);
/* Sets the path for messages; one that is too long is cut. */
__attribute__((format(printf, 2, 3))) void pl_conf_set_path(
	char dst[PATH_TEXT_MAX], const char *fmt, ...);
int pl_conf_no_memory(struct pl_diag *diag);
int pl_conf_out_of_range(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node, const char *what);
bool pl_conf_in_range(const struct pl_conf_row *row, uint64_t v);
int pl_conf_wrong_kind(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node);
/* Allocates a string value, checked if the row has a check. */
int pl_conf_make_string(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node, char **ret);
int pl_conf_set_choice(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node);
int pl_conf_set_double(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node);
int pl_conf_set_number(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node);
int pl_conf_set_string(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node);
