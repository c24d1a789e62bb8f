/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of exporters, bounded: the rest is summed. */
#pragma once

#include <stddef.h>

#include "decode/decode.h"

struct pl_exporters {
	struct pl_exporter *list; /* heap, the caller frees */
	size_t n;
	struct pl_exporter others; /* sum of the rest */
	uint64_t n_others;
};

/* Compares address, node and hardware unit, for qsort. */
int pl_exporter_compare(const void *a, const void *b);

void pl_exporter_add(struct pl_exporter *into, const struct pl_exporter *x);

/* Keeps at most `limit` of the list: as many of each source as there is room for, in the order in
 * which they appeared; adds the rest to the others. On -ENOMEM the list is freed. */
int pl_exporters_bound(struct pl_exporters *e, size_t limit);
