/* SPDX-License-Identifier: BSD-2-Clause */
/* Conditions of a part of a process: a list of present faults and warnings. Readiness, status and
 * metrics are all made from this list, so they agree. A condition has a fixed word for its kind,
 * and a text that says what is wrong, where, and what to do. */
#pragma once

#include <stdbool.h>

#include "base/json.h"

enum pl_condition_level {
	PL_CONDITION_FAULT,   /* the part cannot do its work: it is not ready */
	PL_CONDITION_WARNING, /* the part works, but needs attention */
};

#define PL_CONDITIONS_MAX 16

struct pl_condition {
	const char *name; /* "region_removed", of static storage */
	enum pl_condition_level level;
	char text[320];
};

struct pl_conditions {
	unsigned int n, hidden; /* hidden: conditions without room */
	bool fault;             /* any of them is a fault */
	struct pl_condition items[PL_CONDITIONS_MAX];
};

/* Clears the list, but not the items behind n: a service makes a list at every turn. */
static inline void pl_conditions_clear(struct pl_conditions *list)
{
	list->n = list->hidden = 0;
	list->fault = false;
}

void pl_condition_add(struct pl_conditions *list, enum pl_condition_level level, const char *name,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Text of the first fault; NULL when there is none, and the part is ready. */
const char *pl_conditions_why(const struct pl_conditions *list);
/* Writes an object for each condition into the open array; `part` is the name of their part. */
void pl_conditions_json(const struct pl_conditions *list, const char *part, struct pl_json *json);

/* Board on which one thread shows its list to all others. Zeroed: an empty list. */
struct pl_condition_board {
	_Atomic unsigned int n; /* conditions of shown, hidden ones too */
	struct pl_conditions shown;
};
void pl_condition_board_put(struct pl_condition_board *board, const struct pl_conditions *list);
/* Copies the list; any thread may call it, and never waits for another's turn. */
void pl_condition_board_get(struct pl_condition_board *board, struct pl_conditions *ret);
