/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/account.h"

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
