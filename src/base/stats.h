/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters and gauges of a structure for people and programs, each declared once in a list (X.def)
 * beside the structure. The structure's members, the families of the metrics page, members of JSON
 * objects and "pathline help metrics" are made of the list.
 *
 * A list has rows PL_STAT(KIND, member, key, family, unit, help): a 64-bit member, or a counter
 * (base/counter.h); the key in JSON, "GROUP.KEY" within the object GROUP, NULL for none; the
 * family without "_total", NULL for none; its unit or NULL; a sentence that says what is
 * counted. KIND is COUNTER or GAUGE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"

struct pl_json;

struct pl_stat {
	const char *name; /* name of the member */
	const char *key, *family, *unit, *help;
	uint32_t offset;
	bool gauge;
};

struct pl_stats {
	const struct pl_stat *rows;
	unsigned int n;
};

enum pl_stat_kind { PL_STAT_COUNTER, PL_STAT_GAUGE };

/* Rows of a list that is included in a structure, or in a table of its rows. */
#define PL_STAT_MEMBER(kind, member, ...)         uint64_t member;
/* Row of a structure with one writer and any readers (base/counter.h). */
#define PL_STAT_COUNTER_MEMBER(kind, member, ...) struct pl_counter member;
#define PL_STAT_ROW(type, kind, member, key, family, unit, help)                                   \
	{ #member, key, family, unit, help, (uint32_t)offsetof(type, member),                      \
		PL_STAT_##kind == PL_STAT_GAUGE },

uint64_t pl_stat_read(const struct pl_stat *stat, const void *object);

/* Adds every number. */
void pl_stats_add(const struct pl_stats *stats, void *into, const void *from);

/* Writes members of the open JSON object, by key: those of the group; with NULL those of none. */
void pl_stats_json(
	const struct pl_stats *stats, const void *object, const char *group, struct pl_json *json);
