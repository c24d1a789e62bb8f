/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches in memory, their way to the spool, and the accounts. */
#include "export/sender_state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- accounts ---- */

void pl_sender_account(struct sender *s)
{
	struct pl_export_stats *st = &s->export.stats;
	uint64_t spooled = 0;

	if (s->spool != NULL) {
		struct pl_spool_counts c;

		pl_spool_counts(s->spool, &c);
		pl_count(&st->dropped[PL_EXPORT_SPOOL_FULL], c.dropped - s->seen.dropped);
		pl_count(&st->dropped[PL_EXPORT_DAMAGED],
			c.damaged_entries - s->seen.damaged_entries);
		pl_count(&st->damaged, c.damaged_records - s->seen.damaged_records);
		s->seen = c;
		spooled = c.entries;
		if (s->work.active && s->work.spooled)
			spooled -= s->work.lo; /* entries of the record that are settled */
		atomic_store_explicit(&st->spooled_bytes, c.bytes, memory_order_relaxed);
	}
	atomic_store_explicit(&st->spooled, spooled, memory_order_relaxed);
	atomic_store_explicit(&st->queued, s->queued, memory_order_relaxed);
	/* The spool's error has precedence: while it works, a server that is away costs nothing. */
	atomic_store_explicit(&st->last_error, s->spool_error != 0 ? s->spool_error : s->send_error,
		memory_order_relaxed);
	if (s->ops->folded != NULL) {
		uint64_t folded = s->ops->folded(s->format);

		pl_count(&st->folded, folded - pl_counter_read(&st->folded));
	}
}

void pl_sender_drop(struct sender *s, enum pl_export_drop cause, uint64_t n)
{
	pl_count(&s->export.stats.dropped[cause], n);
}

uint64_t pl_sender_spool_records(const struct sender *s)
{
	struct pl_spool_counts c = { .records = 0 };

	if (s->spool != NULL)
		pl_spool_counts(s->spool, &c);
	return c.records;
}

/* ---- batches in memory, moved to the spool ---- */

struct held *pl_sender_ring_pop(struct sender *s)
{
	struct held *h = s->ring[s->head];

	s->head = (s->head + 1) % s->n_all;
	s->n_ring--;
	return h;
}

void pl_sender_ring_push(struct sender *s, struct held *h)
{
	assert(s->n_ring < s->n_all);
	s->ring[(s->head + s->n_ring++) % s->n_all] = h;
	pthread_cond_signal(&s->wake);
}

void pl_sender_release(struct sender *s, struct held *h)
{
	pl_buf_reset(&h->text);
	h->n = 0;
	h->suspect = false;
	s->free_list[s->n_free++] = h;
}

/* Makes a record in s->record: number of entries, their ends, their text. turned: the first entry
 * is moved to the end. */
static int make_record(struct sender *s, const struct pl_chunks *c, uint32_t first, bool turned,
	bool suspect, struct pl_spool_record *ret)
{
	uint32_t begin = pl_chunk_begin(c, first), n = c->n - first;
	uint32_t aside = turned ? c->ends[first] - begin : 0;
	uint32_t len = c->ends[c->n - 1] - begin;
	uint64_t need = sizeof(n) + (uint64_t)n * sizeof(n) + len;
	uint32_t *at;

	if (need > s->record_cap) {
		/* A batch made with an earlier, larger configuration steps aside. */
		uint8_t *bigger = need <= PL_SPOOL_PAYLOAD_MAX ? realloc(s->record, need) : NULL;

		if (bigger == NULL)
			return -ENOMEM;
		s->record = bigger;
		s->record_cap = (uint32_t)need;
	}
	*ret = (struct pl_spool_record){ .entries = n,
		.payload = s->record,
		.len = (uint32_t)need,
		.flags = FLAG_KIND(s->kind_id) | (suspect ? FLAG_SUSPECT : 0) };
	at = (uint32_t *)(void *)s->record;
	*at++ = n;
	for (uint32_t i = first + turned; i < c->n; i++)
		*at++ = c->ends[i] - begin - aside;
	if (turned)
		*at++ = len;
	memcpy(at, c->text + begin + aside, len - aside);
	memcpy((uint8_t *)at + len - aside, c->text + begin, aside);
	return 0;
}

static int put_record(struct sender *s, struct pl_spool_record *r)
{
	int result = pl_spool_put(s->spool, r);

	s->spool_error = result == -EXFULL ? 0 : -result;
	s->unsynced = s->unsynced || result == 0;
	return result;
}

/* Stores entries from `first` on as a record of the spool. */
static int spool_from(struct sender *s, const struct pl_chunks *c, uint32_t first, bool suspect)
{
	struct pl_spool_record r;
	int result = make_record(s, c, first, false, suspect, &r);

	return result < 0 ? result : put_record(s, &r);
}

int pl_sender_spool_doubted(
	struct sender *s, const struct pl_chunks *c, uint32_t first, bool turned)
{
	struct pl_spool_record r;
	int result = make_record(s, c, first, turned, true, &r);

	return result < 0 ? result : put_record(s, &r);
}

/* Moves a batch from memory to the spool; without one, or on an error, drops and counts it. */
static void evict(struct sender *s, struct held *h)
{
	struct pl_chunks c = { h->text.data, h->ends, h->n };
	int r;

	s->queued -= h->n;
	if (s->spool == NULL) {
		pl_sender_drop(s, PL_EXPORT_MEMORY, h->n);
	} else {
		r = spool_from(s, &c, 0, h->suspect);
		if (r < 0)
			pl_sender_drop(s, pl_export_drop_of(r), h->n);
	}
	pl_sender_release(s, h);
}

/* Stores the batch being sent as the spool's oldest record, so that it stays ahead of later ones.
 * Possible only while the spool is empty; the peek then holds that record. */
static void spool_work(struct sender *s)
{
	struct work *w = &s->work;
	struct pl_spool_record r;

	if (!w->active || w->spooled || s->spool == NULL || pl_sender_spool_records(s) != 0)
		return;
	if (spool_from(s, &w->chunks, 0, w->suspect) < 0 || pl_spool_peek(s->spool, &r) < 0)
		return;
	w->spooled = true;
	s->queued -= w->chunks.n - w->lo;
	pl_sender_account(s);
}

/* Stores a copy of the batch being sent behind the older records of the spool. */
static void copy_work(struct sender *s)
{
	struct work *w = &s->work;
	struct pl_spool_record r;

	if (!w->active || w->spooled || w->copied ||
		make_record(s, &w->chunks, w->lo, false, w->suspect, &r) < 0)
		return;
	w->copied = pl_spool_put_copy(s->spool, &r, &w->copy) == 0;
	s->unsynced = s->unsynced || w->copied;
}

void pl_sender_drop_copy(struct sender *s)
{
	if (s->work.copied)
		pl_spool_settle_copy(s->spool, &s->work.copy);
	s->work.copied = false;
}

void pl_sender_commit(struct sender *s, uint64_t begun_ns)
{
	if (s->work.active && s->work.held != NULL && s->work.held->begun_ns <= begun_ns) {
		spool_work(s);
		copy_work(s);
	}
	while (s->n_ring > 0 && s->ring[s->head]->begun_ns <= begun_ns)
		evict(s, pl_sender_ring_pop(s));
	if (s->open != NULL && s->open->n > 0 && s->n_ring == 0 && s->open->begun_ns <= begun_ns) {
		evict(s, s->open);
		s->open = NULL;
	}
	pthread_cond_signal(&s->wake);
}

/* Returns an empty buffer; without one, moves the oldest batch out of memory. */
static struct held *take_buffer(struct sender *s)
{
	if (s->n_free == 0) {
		spool_work(s);
		assert(s->n_ring > 0); /* of at least four, one may be in the work and one open */
		evict(s, pl_sender_ring_pop(s));
	}
	return s->free_list[--s->n_free];
}

bool pl_sender_full(const struct sender *s, const struct held *h)
{
	return h->n >= s->options.batch_entries || h->text.len >= s->options.batch_bytes;
}

/* Returns the batch for new entries. */
struct held *pl_sender_room(struct sender *s, uint64_t now_ns)
{
	if (s->open != NULL && pl_sender_full(s, s->open)) {
		pl_sender_ring_push(s, s->open);
		s->open = NULL;
	}
	if (s->open == NULL) {
		s->open = take_buffer(s);
		s->open->begun_ns = now_ns;
		s->open->first = s->entered;
	}
	return s->open;
}

/* Moves all batches from memory to the spool, the oldest first. None may be in flight. */
void pl_sender_put_away(struct sender *s)
{
	struct work *w = &s->work;

	if (w->active && !w->spooled) {
		uint32_t left = w->chunks.n - w->lo;
		int r = spool_from(s, &w->chunks, w->lo, w->suspect);

		s->queued -= left;
		if (r < 0)
			pl_sender_drop(s, pl_export_drop_of(r), left);
		pl_sender_drop_copy(s);
		pl_sender_release(s, w->held);
		*w = (struct work){ .active = false };
	}
	while (s->n_ring > 0)
		evict(s, pl_sender_ring_pop(s));
	if (s->open != NULL && s->open->n > 0) {
		evict(s, s->open);
		s->open = NULL;
	}
}

void pl_sender_drop_lent(struct sender *s)
{
	struct work *w = &s->work;

	if (!w->active || !w->spooled || !pl_spool_lent_only(s->spool))
		return;
	pl_sender_drop(s, PL_EXPORT_SPOOL_FULL, w->chunks.n - w->lo);
	pl_spool_next(s->spool);
	if (w->held != NULL)
		pl_sender_release(s, w->held);
	*w = (struct work){ .active = false };
}
