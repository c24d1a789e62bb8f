/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is wrong with a part of a process at present: a list of conditions, from which its readiness,
 * its status and its metrics are told, so that none of them says less than another. A condition has
 * a name of its kind, a word that does not change, and a text that says what is wrong, where, and
 * what to do.
 */
#pragma once

#include <stdbool.h>

#include "base/json.h"

enum pl_condition_level {
	PL_CONDITION_FAULT,   /* it cannot do what it is there for: it is not ready */
	PL_CONDITION_WARNING, /* it can; somebody should look at it */
};

#define PL_CONDITIONS_MAX 16

struct pl_condition {
	const char *name; /* "region_removed", of static storage */
	enum pl_condition_level level;
	char text[320];
};

struct pl_conditions {
	unsigned int n, hidden; /* hidden: those that found no room */
	bool fault;             /* one of all of them is a fault */
	struct pl_condition items[PL_CONDITIONS_MAX];
};

/* Without touching what is behind n: a list is made at every turn of a service. */
static inline void pl_conditions_clear(struct pl_conditions *list)
{
	list->n = list->hidden = 0;
	list->fault = false;
}

void pl_condition_add(struct pl_conditions *list, enum pl_condition_level level, const char *name,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The text of the first fault; NULL: there is none, it is ready. */
const char *pl_conditions_why(const struct pl_conditions *list);
/* An object for each into the array that is open; `part` says whose they are. */
void pl_conditions_json(const struct pl_conditions *list, const char *part, struct pl_json *json);

/* The list that one thread makes, for all others. Zeroed: there are none. */
struct pl_condition_board {
	_Atomic unsigned int n; /* of shown, hidden ones too */
	struct pl_conditions shown;
};
void pl_condition_board_put(struct pl_condition_board *board, const struct pl_conditions *list);
/* Any thread; waits for no turn of anybody. */
void pl_condition_board_get(struct pl_condition_board *board, struct pl_conditions *ret);
