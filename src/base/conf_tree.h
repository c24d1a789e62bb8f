/* SPDX-License-Identifier: BSD-2-Clause */
/* YAML text as a tree of bounded size with positions; only this part of conf.c uses libyaml. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

#define PL_CONF_TEXT_MAX  (16 * 1024 * 1024)
#define PL_CONF_DEPTH_MAX 16
#define PL_CONF_NODES_MAX 200000

enum pl_conf_kind { PL_CONF_SCALAR, PL_CONF_MAP, PL_CONF_SEQ };

struct pl_conf_node {
	enum pl_conf_kind kind;
	bool plain;                 /* SCALAR without quotes */
	unsigned int line, column;  /* from 1 */
	char *text;                 /* SCALAR: UTF-8 without zero bytes */
	struct pl_conf_node *key;   /* of a MAP's child: its key, a SCALAR */
	struct pl_conf_node *child; /* first child, in the order of the text */
	struct pl_conf_node *next;
};

struct pl_conf_tree {
	struct pl_conf_node *nodes; /* root first; heap */
	size_t n;                   /* 0: an empty document */
};

/* Reads the text. Returns 0, -EINVAL with diag, or -ENOMEM. */
int pl_conf_tree_read(struct pl_conf_tree *ret, const char *text, size_t len, struct pl_diag *diag);
void pl_conf_tree_done(struct pl_conf_tree *tree);
