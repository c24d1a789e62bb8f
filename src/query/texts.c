/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores each text of a run once. */
#include "query/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "record/record.h"

#define PLACES (2 * PL_QUERY_TEXTS_MAX)

struct texts {
	uint64_t seed;
	uint32_t n;
	uint32_t places[PLACES]; /* number of the text, + 1; 0: free */
	struct pl_text40 kept[PL_QUERY_TEXTS_MAX];
};

int pl_query_texts_new(struct texts **ret, uint64_t seed)
{
	struct texts *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->seed = seed;
	*ret = t;
	return 0;
}

void pl_query_texts_free(struct texts *texts)
{
	free(texts);
}

uint64_t pl_query_texts_bytes(void)
{
	return sizeof(struct texts);
}

bool pl_query_texts_full(const struct texts *texts)
{
	return texts->n == PL_QUERY_TEXTS_MAX;
}

const char *pl_query_text(struct texts *t, const char *from, size_t n)
{
	struct pl_text40 text = { "" };
	uint32_t at;

	memcpy(text.c, from, strnlen(from, n < PL_TEXT_TOLD ? n : PL_TEXT_TOLD));
	at = (uint32_t)pl_hash(text.c, sizeof(text.c), t->seed) % PLACES;
	while (t->places[at] != 0) {
		const char *kept = t->kept[t->places[at] - 1].c;

		if (memcmp(kept, text.c, sizeof(text.c)) == 0)
			return kept;
		at = (at + 1) % PLACES;
	}
	if (t->n == PL_QUERY_TEXTS_MAX)
		return NULL;
	t->kept[t->n++] = text;
	t->places[at] = t->n;
	return t->kept[t->n - 1].c;
}
