/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads, adds and prints the numbers of a structure by its list. */
#include "base/stats.h"

#include <string.h>

#include "base/json.h"

uint64_t pl_stat_read(const struct pl_stat *stat, const void *object)
{
	const void *member = (const char *)object + stat->offset;

	return __atomic_load_n((const uint64_t *)member, __ATOMIC_RELAXED);
}

void pl_stats_add(const struct pl_stats *stats, void *into, const void *from)
{
	for (unsigned int i = 0; i < stats->n; i++) {
		const struct pl_stat *s = &stats->rows[i];
		uint64_t v = pl_stat_read(s, into) + pl_stat_read(s, from);

		memcpy((char *)into + s->offset, &v, sizeof(v));
	}
}

/* The key within the group; NULL when it is of another. */
static const char *key_within(const char *key, const char *group)
{
	const char *dot = key != NULL ? strchr(key, '.') : NULL;
	size_t n = group != NULL ? strlen(group) : 0;

	if (key == NULL || group == NULL)
		return dot == NULL ? key : NULL;
	return dot == key + n && strncmp(key, group, n) == 0 ? dot + 1 : NULL;
}

void pl_stats_json(
	const struct pl_stats *stats, const void *object, const char *group, struct pl_json *json)
{
	for (unsigned int i = 0; i < stats->n; i++) {
		const char *key = key_within(stats->rows[i].key, group);

		if (key != NULL)
			pl_json_number(json, key, pl_stat_read(&stats->rows[i], object));
	}
}
