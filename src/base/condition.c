/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps lists of conditions. */
#include "base/condition.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

/* One lock for all boards; it is held only while a board is copied. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void pl_condition_add(struct pl_conditions *list, enum pl_condition_level level, const char *name,
	const char *fmt, ...)
{
	struct pl_condition *c = &list->items[list->n];
	va_list ap;

	list->fault = list->fault || level == PL_CONDITION_FAULT;
	if (list->n == PL_CONDITIONS_MAX) {
		list->hidden++;
		return;
	}
	list->n++;
	c->name = name;
	c->level = level;
	va_start(ap, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, ap);
	va_end(ap);
}

const char *pl_conditions_why(const struct pl_conditions *list)
{
	if (!list->fault)
		return NULL;
	for (unsigned int i = 0; i < list->n; i++) {
		if (list->items[i].level == PL_CONDITION_FAULT)
			return list->items[i].text;
	}
	return "more is wrong than can be listed";
}

void pl_conditions_json(const struct pl_conditions *list, const char *part, struct pl_json *json)
{
	for (unsigned int i = 0; i < list->n; i++) {
		const struct pl_condition *c = &list->items[i];

		pl_json_object(json);
		pl_json_text(json, "part", part);
		pl_json_text(json, "condition", c->name);
		pl_json_text(json, "level", c->level == PL_CONDITION_FAULT ? "fault" : "warning");
		pl_json_text(json, "text", c->text);
		pl_json_object_end(json);
	}
	if (list->hidden == 0)
		return;
	pl_json_object(json);
	pl_json_text(json, "part", part);
	pl_json_text(json, "condition", "more");
	pl_json_text(json, "level", list->fault ? "fault" : "warning");
	pl_json_text(json, "text", "more is wrong than can be listed");
	pl_json_number(json, "more", list->hidden);
	pl_json_object_end(json);
}

static void copy(struct pl_conditions *to, const struct pl_conditions *from)
{
	to->n = from->n;
	to->hidden = from->hidden;
	to->fault = from->fault;
	for (unsigned int i = 0; i < from->n; i++)
		to->items[i] = from->items[i];
}

/* Without conditions neither thread takes the lock. */
void pl_condition_board_put(struct pl_condition_board *b, const struct pl_conditions *list)
{
	const unsigned int n = list->n + list->hidden;

	if (n == 0 && atomic_load_explicit(&b->n, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&lock);
	copy(&b->shown, list);
	atomic_store_explicit(&b->n, n, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}

void pl_condition_board_get(struct pl_condition_board *b, struct pl_conditions *ret)
{
	pl_conditions_clear(ret);
	if (atomic_load_explicit(&b->n, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&lock);
	copy(ret, &b->shown);
	pthread_mutex_unlock(&lock);
}
