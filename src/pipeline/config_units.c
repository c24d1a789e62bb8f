/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of occupancy in the configuration, for ranges of nodes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "pipeline/config.h"

int pl_config_parse_nodes(const char *text, uint64_t *ret_first, uint64_t *ret_last)
{
	const char *dash = strchr(text, '-');
	char first[32];

	if (strcmp(text, "all") == 0) {
		*ret_first = 0;
		*ret_last = UINT64_MAX;
		return 0;
	}
	if (dash == NULL) {
		if (pl_parse_u64(text, ret_first) < 0)
			return -EINVAL;
		*ret_last = *ret_first;
		return 0;
	}
	if ((size_t)(dash - text) >= sizeof(first))
		return -EINVAL;
	memcpy(first, text, (size_t)(dash - text));
	first[dash - text] = '\0';
	if (pl_parse_u64(first, ret_first) < 0 || pl_parse_u64(dash + 1, ret_last) < 0)
		return -EINVAL;
	return *ret_first <= *ret_last ? 0 : -EINVAL;
}

/* Returns whether a is within b, and not equal. */
static bool within(const struct pl_core_unit *a, const struct pl_core_unit *b)
{
	return a->first >= b->first && a->last <= b->last &&
	       (a->first != b->first || a->last != b->last);
}

static bool apart(const struct pl_core_unit *a, const struct pl_core_unit *b)
{
	return a->last < b->first || b->last < a->first;
}

int pl_config_units(const struct pl_config *config, struct pl_core_units *ret, struct pl_diag *diag)
{
	const struct pl_config_unit *from = config->units.items;

	*ret = (struct pl_core_units){ 0 };
	for (uint32_t i = 0; i < config->units.n && i < PL_CORE_UNITS; i++) {
		struct pl_core_unit u = { .queue_bytes = (uint32_t)from[i].queue_cell_bytes,
			.buffer_bytes = (uint32_t)from[i].buffer_cell_bytes };
		uint32_t at = 0;

		/* The texts were checked when the file was read. */
		if (pl_config_parse_nodes(from[i].nodes, &u.first, &u.last) < 0)
			return -EINVAL;
		for (uint32_t j = 0; j < ret->n; j++) {
			if (apart(&u, &ret->of[j]) || within(&u, &ret->of[j]))
				continue;
			if (!within(&ret->of[j], &u))
				return pl_diag_fail(diag, -EINVAL,
					"units for nodes %s overlap others, from %llu to %llu: give each node one unit, or one range within the other",
					from[i].nodes, (unsigned long long)ret->of[j].first,
					(unsigned long long)ret->of[j].last);
			at = j + 1; /* behind all ranges within it */
		}
		memmove(&ret->of[at + 1], &ret->of[at], (ret->n - at) * sizeof(ret->of[0]));
		ret->of[at] = u;
		ret->n++;
	}
	return 0;
}
