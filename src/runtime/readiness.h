/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of the conditions of a process's parts: /readyz, members of a status, families. All of
 * them read the same lists. */
#pragma once

#include "base/condition.h"
#include "export/exposition.h"

#define PL_READINESS_PARTS_MAX 9 /* PL_SERVICES_MAX and the collector */

/* Parts, and the functions that give their lists; `ret` of get is empty. Any thread. */
struct pl_readiness {
	unsigned int n;
	const char *name[PL_READINESS_PARTS_MAX];
	void (*get[PL_READINESS_PARTS_MAX])(void *arg, struct pl_conditions *ret); /* NULL: none */
	void *arg[PL_READINESS_PARTS_MAX];
};

void pl_readiness_add(struct pl_readiness *r, const char *name,
	void (*get)(void *arg, struct pl_conditions *ret), void *arg);
/* Adds a member for each part from that one on to an open object, unless json is NULL. Returns true
 * when none of them has a fault. */
bool pl_readiness_members(const struct pl_readiness *r, unsigned int first, struct pl_json *json);
/* Adds the conditions of all parts to an open array. Returns true when none is a fault. */
bool pl_readiness_list(const struct pl_readiness *r, struct pl_json *json);
/* pathline_ready and pathline_condition. NULL: without samples. */
void pl_readiness_page(const struct pl_readiness *r, struct pl_exposition *page);
