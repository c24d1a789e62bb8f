/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes counters as members of JSON or as families. */
#include "runtime/account.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void one(const struct pl_account *a, const char *key, const char *name,
	enum pl_metric_type type, const char *help, uint64_t value)
{
	if (a->json != NULL) {
		pl_json_number(a->json, key, value);
		return;
	}
	pl_exposition_family(a->page, name, type, NULL, help);
	pl_exposition_u64(a->page, NULL, 0, value);
}

void pl_account_counter(const struct pl_account *a, const char *key, const char *name,
	const char *help, uint64_t value)
{
	one(a, key, name, PL_METRIC_COUNTER, help, value);
}

void pl_account_gauge(const struct pl_account *a, const char *key, const char *name,
	const char *help, uint64_t value)
{
	one(a, key, name, PL_METRIC_GAUGE, help, value);
}

void pl_account_split(
	const struct pl_account *a, const char *key, const char *name, const char *help)
{
	if (a->json != NULL)
		pl_account_object(a, key);
	else
		pl_exposition_family(a->page, name, PL_METRIC_COUNTER, NULL, help);
}

void pl_account_part(
	const struct pl_account *a, const char *label, const char *text, uint64_t value)
{
	const struct pl_label l = { .name = label, .form = PL_LABEL_TEXT, .text = text };

	if (a->json != NULL)
		pl_json_number(a->json, text, value);
	else
		pl_exposition_u64(a->page, &l, 1, value);
}

void pl_account_split_end(const struct pl_account *a)
{
	pl_account_object_end(a);
}

void pl_account_object(const struct pl_account *a, const char *key)
{
	if (a->json == NULL)
		return;
	pl_json_key(a->json, key);
	pl_json_object(a->json);
}

void pl_account_object_end(const struct pl_account *a)
{
	if (a->json != NULL)
		pl_json_object_end(a->json);
}

/* Adds groups: their rows are consecutive; GROUP.KEY is member KEY of the object GROUP. */
static void add_groups(const struct pl_account *a, const struct pl_stats *stats, const void *object)
{
	char group[32] = "";

	for (unsigned int i = 0; i < stats->n; i++) {
		const char *key = stats->rows[i].key, *dot = key != NULL ? strchr(key, '.') : NULL;
		const size_t len = dot != NULL ? (size_t)(dot - key) : 0;

		if (dot == NULL || (strlen(group) == len && memcmp(group, key, len) == 0))
			continue;
		snprintf(group, sizeof(group), "%.*s", (int)len, key);
		pl_account_object(a, group);
		pl_stats_json(stats, object, group, a->json);
		pl_account_object_end(a);
	}
}

void pl_account_stats(const struct pl_account *a, const struct pl_stats *stats, const void *object)
{
	if (a->json != NULL && object == NULL)
		return;
	if (a->json != NULL) {
		pl_stats_json(stats, object, NULL, a->json);
		add_groups(a, stats, object);
		return;
	}
	for (unsigned int i = 0; i < stats->n; i++) {
		if (pl_exposition_stat(a->page, &stats->rows[i]) && object != NULL)
			pl_exposition_u64(a->page, NULL, 0, pl_stat_read(&stats->rows[i], object));
	}
}

void pl_account_add(struct pl_buf *text, uint64_t n, const char *what)
{
	if (n > 0)
		pl_buf_printf(text, ", %" PRIu64 " %s", n, what);
}
