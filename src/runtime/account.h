/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service's counters, each listed once: key, help, value. The same lines make the members of a
 * JSON object and the families of a metrics page; values that a page cannot have (lists, texts) are
 * written into `json` directly.
 */
#pragma once

#include "base/counter.h"
#include "base/json.h"
#include "base/stats.h"
#include "export/exposition.h"

/* Destination of counters: one of both. */
struct pl_account {
	struct pl_json *json; /* an open object */
	struct pl_exposition *page;
};

/* PREFIX and KEY are literals: the member KEY, the family pathline_PREFIXKEY. */
#define PL_COUNT(a, PREFIX, KEY, HELP, value)                                                      \
	pl_account_counter(a, KEY, "pathline_" PREFIX KEY, HELP, value)
#define PL_LEVEL(a, PREFIX, KEY, HELP, value)                                                      \
	pl_account_gauge(a, KEY, "pathline_" PREFIX KEY, HELP, value)
/* A counter by cause or the like, followed by its parts: an object in the member KEY, one
 * family. */
#define PL_SPLIT(a, PREFIX, KEY, HELP) pl_account_split(a, KEY, "pathline_" PREFIX KEY, HELP)

void pl_account_counter(const struct pl_account *a, const char *key, const char *name,
	const char *help, uint64_t value);
void pl_account_gauge(const struct pl_account *a, const char *key, const char *name,
	const char *help, uint64_t value);
void pl_account_split(
	const struct pl_account *a, const char *key, const char *name, const char *help);
/* Adds a part, named `text`. */
void pl_account_part(
	const struct pl_account *a, const char *label, const char *text, uint64_t value);
void pl_account_split_end(const struct pl_account *a);

/* Adds all numbers of a list (base/stats.h): as members, or families. object NULL: families without
 * a sample, and no member. */
void pl_account_stats(const struct pl_account *a, const struct pl_stats *stats, const void *object);

/* Appends ", N what" to a text for the user; nothing for 0. */
void pl_account_add(struct pl_buf *text, uint64_t n, const char *what);

/* Opens an object within the object; families have no objects. */
void pl_account_object(const struct pl_account *a, const char *key);
void pl_account_object_end(const struct pl_account *a);
