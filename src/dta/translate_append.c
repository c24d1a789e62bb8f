/* SPDX-License-Identifier: BSD-2-Clause */
/* Append: entries of a list are gathered, then written together with the list's head behind
 * them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dta/translator_state.h"

#define BATCH_DEFAULT 16u
#define BATCH_MAX     1024u

static int append_init(struct pl_translator *t, struct store *s, struct pl_diag *diag)
{
	struct append_state *a = &s->append;
	uint32_t lists, *batch = &s->config.batch;
	int r = pl_append_init(&a->geometry, &s->config.params, NULL);

	if (r < 0)
		return r;
	lists = a->geometry.lists;
	if (*batch == 0)
		*batch = a->geometry.batch_max < BATCH_DEFAULT ? a->geometry.batch_max
							       : BATCH_DEFAULT;
	if (*batch > a->geometry.batch_max || *batch > BATCH_MAX) {
		pl_diag_set(diag, "a batch has at most %u entries",
			a->geometry.batch_max < BATCH_MAX ? a->geometry.batch_max : BATCH_MAX);
		return -EINVAL;
	}
	a->swap = s->published && a->geometry.entry_bytes == 4;
	a->heads = pl_translator_alloc(t, (size_t)t->collectors * lists, sizeof(*a->heads));
	a->held = pl_translator_alloc(t, (size_t)lists * *batch, a->geometry.entry_bytes);
	a->n_held = pl_translator_alloc(t, lists, sizeof(*a->n_held));
	t->memory += (uint64_t)lists * sizeof(struct pl_age);
	if (pl_ages_init(&a->ages, lists) < 0 || a->heads == NULL || a->held == NULL ||
		a->n_held == NULL)
		return -ENOMEM;
	return 0;
}

static void append_done(struct store *s)
{
	pl_ages_done(&s->append.ages);
	free(s->append.heads);
	free(s->append.held);
	free(s->append.n_held);
}

static int append_check(const struct store *s, struct intake *in)
{
	const struct pl_dta_report *r = in->report;
	uint32_t bytes = s->append.geometry.entry_bytes;
	bool passes = false;

	if (r->copies > 1)
		return PL_REFUSED_COUNT_OF_COPIES;
	if (r->list >= s->append.geometry.lists)
		return PL_REFUSED_LIST;
	if (r->data_bytes == 0 || r->data_bytes % bytes != 0)
		return PL_REFUSED_ENTRY_SIZE;
	for (uint32_t at = 0; at < r->data_bytes && !passes; at += bytes)
		passes = pl_filter_passes(&s->config.filter, r->data + at);
	if (!passes)
		return PL_REFUSED_FILTERED;
	in->spread = r->list;
	return TAKEN;
}

static uint8_t *held_entry(const struct append_state *a, uint32_t batch, uint32_t list, uint32_t i)
{
	return a->held + ((size_t)list * batch + i) * a->geometry.entry_bytes;
}

/* Writes the entries of a list (two writes at the end of the ring), then the head. */
static void publish(struct pl_translator *t, struct store *s, uint32_t list, bool wake)
{
	struct append_state *a = &s->append;
	const struct pl_append *g = &a->geometry;
	int collector = pl_translator_choose(t, s, list);
	uint64_t *head = &a->heads[(size_t)collector * g->lists + list];
	uint32_t n = a->n_held[list], run_bytes = n * g->entry_stride, done = 0;
	uint8_t *images = pl_translator_room(t, run_bytes + 8);
	struct pl_extent runs[2], place = pl_append_head_place(g, list);
	unsigned int n_runs = pl_append_place(g, list, *head, n, runs);
	struct pl_op *op;

	for (uint32_t i = 0; i < n; i++)
		pl_append_image(g, list, *head + i, held_entry(a, s->config.batch, list, i),
			images + (size_t)i * g->entry_stride);
	for (unsigned int i = 0; i < n_runs; i++) {
		pl_translator_write(
			t, s, collector, runs[i].offset, images + done, (uint32_t)runs[i].bytes);
		done += (uint32_t)runs[i].bytes;
	}
	*head += n;
	memcpy(images + run_bytes, head, sizeof(*head));
	op = pl_translator_write(t, s, collector, place.offset, images + run_bytes, 8);
	if (wake)
		pl_translator_wake(t, op, pl_op_imm(PL_APPEND, list));
	a->n_held[list] = 0;
	pl_ages_stop(&a->ages, list);
	t->held.entries -= n;
	t->count.entries_published += n;
	t->count.batches++;
}

static void hold(struct pl_translator *t, struct store *s, uint32_t list, const uint8_t *entry,
	uint64_t now_ns)
{
	struct append_state *a = &s->append;
	uint8_t *to = held_entry(a, s->config.batch, list, a->n_held[list]);
	uint32_t word;

	if (a->swap) {
		word = pl_be32(entry);
		memcpy(to, &word, sizeof(word));
	} else {
		memcpy(to, entry, a->geometry.entry_bytes);
	}
	if (a->n_held[list]++ == 0)
		pl_ages_start(&a->ages, list, now_ns);
	t->held.entries++;
	t->count.entries++;
}

static bool append_take(struct pl_translator *t, struct store *s, const struct intake *in)
{
	const struct pl_dta_report *r = in->report;
	uint32_t bytes = s->append.geometry.entry_bytes, last = r->data_bytes - bytes;

	for (uint32_t at = 0; at <= last; at += bytes) {
		if (!pl_filter_passes(&s->config.filter, r->data + at)) {
			t->count.entries_filtered++;
			continue;
		}
		if (s->append.n_held[r->list] == s->config.batch)
			publish(t, s, r->list, false);
		hold(t, s, r->list, r->data + at, in->now_ns);
	}
	/* At least one was held: the check made sure. */
	if (r->immediate || s->append.n_held[r->list] == s->config.batch)
		publish(t, s, r->list, r->immediate);
	return true;
}

static uint64_t append_due(const struct store *s)
{
	return pl_ages_due_ns(&s->append.ages, s->config.flush_ns);
}

static void append_tick(struct pl_translator *t, struct store *s, uint64_t now_ns, bool all)
{
	while (s->append.ages.oldest != PL_AGES_NONE && (all || append_due(s) <= now_ns))
		publish(t, s, s->append.ages.oldest, false);
}

const struct primitive pl_translate_append = {
	.init = append_init,
	.done = append_done,
	.check = append_check,
	.take = append_take,
	.tick = append_tick,
	.due = append_due,
};
