/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores each text of a run once, and forgets those that nothing holds any more. */
#include "query/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "record/record.h"

#define PLACES (2 * PL_QUERY_TEXTS_MAX)
#define FEW    4096 /* with fewer free places old texts are dropped: a batch may bring this many */

struct texts {
	uint64_t seed;
	uint64_t batch, swept; /* number of this batch; `oldest` of the last sweep */
	bool full;             /* a text was refused since */
	uint32_t n_free;
	uint32_t places[PLACES]; /* number of the text, + 1; 0: free */
	uint32_t free[PL_QUERY_TEXTS_MAX];
	uint64_t used[PL_QUERY_TEXTS_MAX]; /* last batch with the text; 0: free */
	struct pl_text40 kept[PL_QUERY_TEXTS_MAX];
};

int pl_query_texts_new(struct texts **ret, uint64_t seed)
{
	struct texts *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->seed = seed;
	t->batch = 1;
	while (t->n_free < PL_QUERY_TEXTS_MAX) {
		t->free[t->n_free] = PL_QUERY_TEXTS_MAX - 1 - t->n_free;
		t->n_free++;
	}
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
	return texts->full;
}

/* Returns the place of the text, or a free one. */
static uint32_t place_of(const struct texts *t, const struct pl_text40 *text)
{
	uint32_t at = (uint32_t)pl_hash(text->c, sizeof(text->c), t->seed) % PLACES;

	while (t->places[at] != 0 &&
		memcmp(t->kept[t->places[at] - 1].c, text->c, sizeof(text->c)) != 0)
		at = (at + 1) % PLACES;
	return at;
}

static void forget(struct texts *t, uint64_t oldest)
{
	memset(t->places, 0, sizeof(t->places));
	for (uint32_t i = 0; i < PL_QUERY_TEXTS_MAX; i++) {
		if (t->used[i] >= oldest) {
			t->places[place_of(t, &t->kept[i])] = i + 1;
		} else if (t->used[i] != 0) {
			t->used[i] = 0;
			t->free[t->n_free++] = i;
		}
	}
	t->swept = oldest;
	t->full = t->n_free == 0;
}

uint64_t pl_query_texts_next(struct texts *t, uint64_t oldest)
{
	if (t->n_free < FEW && oldest > t->swept)
		forget(t, oldest);
	return ++t->batch;
}

const char *pl_query_text(struct texts *t, const char *from, size_t n)
{
	struct pl_text40 text = { "" };
	uint32_t at;

	memcpy(text.c, from, strnlen(from, n < PL_TEXT_TOLD ? n : PL_TEXT_TOLD));
	at = place_of(t, &text);
	if (t->places[at] == 0) {
		t->full = t->n_free == 0;
		if (t->full)
			return NULL;
		t->places[at] = t->free[--t->n_free] + 1;
		t->kept[t->places[at] - 1] = text;
	}
	t->used[t->places[at] - 1] = t->batch;
	return t->kept[t->places[at] - 1].c;
}
