/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses batches and applies rulings. All runs in the sender's thread, under the lock. */
#include "export/sender_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define LIMIT_LEAST 1024 /* lowest size limit learnt from 413 */

/* ---- the sender's thread: choice of batches ---- */

static void begin_work(struct sender *s, struct work w)
{
	w.active = true;
	w.hi = w.chunks.n;
	w.step = w.chunks.n;
	s->work = w;
}

/* Begins with the spool's oldest record that has a valid form. */
static bool work_from_spool(struct sender *s)
{
	struct pl_spool_record r;
	const uint32_t *ends;
	uint32_t n, text;

	while (s->spool != NULL && pl_spool_peek(s->spool, &r) == 0) {
		ends = (const uint32_t *)r.payload + 1;
		n = r.entries;
		text = r.len - (n + 1) * (uint32_t)sizeof(n);
		if (n > 0 && n < PL_SPOOL_PAYLOAD_MAX / 8 && r.len >= (n + 1) * sizeof(n) &&
			ends[-1] == n && ends[n - 1] == text) {
			bool rising = true;

			for (uint32_t i = 1; i < n; i++)
				rising = rising && ends[i - 1] <= ends[i];
			if (rising) {
				begin_work(
					s, (struct work){
						   .chunks = { (const char *)(ends + n), ends, n },
						   .spooled = true,
						   .suspect = (r.flags & FLAG_SUSPECT) != 0,
					   });
				return true;
			}
		}
		/* The checksum is right, but no sender wrote this. */
		pl_sender_drop(s, PL_EXPORT_DAMAGED, n);
		pl_count(&s->export.stats.damaged, 1);
		pl_spool_next(s->spool);
	}
	return false;
}

static bool work_from_memory(struct sender *s)
{
	struct held *h;

	if (s->n_ring == 0)
		return false;
	h = pl_sender_ring_pop(s);
	begin_work(s, (struct work){
			      .chunks = { h->text.data, h->ends, h->n },
			      .held = h,
			      .suspect = h->suspect,
		      });
	return true;
}

bool pl_sender_choose(struct sender *s)
{
	bool memory_first = !s->options.in_order && s->memory_turn;

	s->memory_turn = !s->memory_turn;
	return memory_first ? work_from_memory(s) || work_from_spool(s)
			    : work_from_spool(s) || work_from_memory(s);
}

/* Settles n entries, from the first unsettled one on. */
static void settle(struct sender *s, uint32_t n)
{
	struct work *w = &s->work;

	if (!w->spooled)
		s->queued -= n;
	w->lo += n;
	if (w->lo < w->chunks.n)
		return;
	if (w->spooled)
		pl_spool_next(s->spool);
	pl_sender_drop_copy(s);
	if (w->held != NULL)
		pl_sender_release(s, w->held);
	*w = (struct work){ .active = false };
}

/* Sets how many entries the next request carries, by `step` and the server's known size limit. */
void pl_sender_aim(struct sender *s)
{
	struct work *w = &s->work;
	uint32_t begin = pl_chunk_begin(&w->chunks, w->lo);

	w->hi = w->chunks.n - w->lo > w->step ? w->lo + w->step : w->chunks.n;
	while (s->body_limit != 0 && w->hi > w->lo + 1 &&
		w->chunks.ends[w->hi - 1] - begin > s->body_limit)
		w->hi = w->lo + (w->hi - w->lo) / 2;
}

/* ---- the sender's thread: rulings ---- */

static void write_letter(struct sender *s, const struct pl_ruling *r, uint32_t i)
{
	const struct pl_chunks *c = &s->work.chunks;
	uint32_t begin = pl_chunk_begin(c, i);
	struct pl_dead_letter letter = {
		.ts_ns = pl_clock_real_ns(),
		.output = s->name,
		.kind = s->ops->name,
		.answer = r->words,
		.status = s->answer.status,
		.entry = c->text + begin,
		.len = c->ends[i] - begin,
	};

	if (s->letters != NULL && pl_dead_letters_put(s->letters, &letter))
		pl_count(&s->export.stats.dead_letters, 1);
}

/* Drops entries lo … hi as rejected, with dead letters. */
static void bury(struct sender *s, const struct pl_ruling *r)
{
	struct work *w = &s->work;
	uint32_t n = w->hi - w->lo;

	for (uint32_t i = w->lo; i < w->hi; i++)
		write_letter(s, r, i);
	pl_sender_drop(s, PL_EXPORT_REJECTED, n);
	memcpy(s->words.refusal, r->words, sizeof(r->words));
	w->step = 1; /* bad entries often come together; `step` grows again with each good one */
	w->doubts = 0;
	settle(s, n);
}

static void refused(struct sender *s, const struct pl_ruling *r)
{
	struct work *w = &s->work;

	if (w->hi - w->lo == 1 || r->whole)
		bury(s, r);
	else
		w->step = (w->hi - w->lo) / 2;
}

static void delivered(struct sender *s)
{
	struct work *w = &s->work;
	uint32_t n = w->hi - w->lo;

	pl_count(&s->export.stats.delivered, n);
	s->failures = 0;
	s->send_error = 0;
	s->words.trouble[0] = '\0';
	s->ok_since_letter = true;
	w->doubts = 0;
	w->step = w->step <= UINT32_MAX / 4 ? w->step * 4 : UINT32_MAX;
	settle(s, n);
}

static int errno_of(const struct pl_http_answer *a)
{
	switch (a->status) {
	case 0:
		return a->error < 0 ? -a->error : EIO;
	case 401:
	case 403:
		return EACCES;
	case 404:
		return ENOENT;
	case 429:
	case 503:
		return EAGAIN;
	default:
		return EREMOTEIO;
	}
}

static void wait_for(struct sender *s, uint64_t now_ns, uint64_t wait_ns)
{
	if (wait_ns < s->answer.retry_after_ns)
		wait_ns = s->answer.retry_after_ns;
	s->not_before_ns = now_ns + wait_ns;
}

static void back_off(struct sender *s, const struct pl_ruling *r, uint64_t now_ns)
{
	s->failures += s->failures < UINT32_MAX;
	s->send_error = errno_of(&s->answer);
	memcpy(s->words.trouble, r->words, sizeof(r->words));
	wait_for(s, now_ns,
		r->kind == PL_RULING_HOLD ? s->options.hold_ns
					  : pl_backoff_ns(s->failures, s->options.retry_min_ns,
						    s->options.retry_max_ns, &s->rng));
	if (r->kind == PL_RULING_HOLD)
		s->renew_credentials = true;
}

static void reverse(char *text, uint32_t n)
{
	for (uint32_t i = 0; i < n / 2; i++) {
		char c = text[i];

		text[i] = text[n - 1 - i];
		text[n - 1 - i] = c;
	}
}

/* Moves the first unsettled entry of the batch to its end. */
static void turn_held(struct held *h, const struct work *w)
{
	const uint32_t begin = pl_chunk_begin(&w->chunks, w->lo), first = h->ends[w->lo] - begin;
	char *text = h->text.data + begin;

	reverse(text, first);
	reverse(text + first, h->ends[h->n - 1] - begin - first);
	reverse(text, h->ends[h->n - 1] - begin);
	for (uint32_t i = w->lo; i + 1 < h->n; i++)
		h->ends[i] = h->ends[i + 1] - first;
}

/* Returns true when a doubted entry, alone in its request, lets the others of its batch go first:
 * if one of these is taken, the server works. Not with in_order. */
static bool turns(const struct sender *s)
{
	const struct work *w = &s->work;

	return w->suspect && w->chunks.n - w->lo > 1 && !s->options.in_order;
}

/* Returns true when other batches wait; the open batch is one of them, and is closed. */
static bool any_others(struct sender *s)
{
	if (s->n_ring == 0 && s->open != NULL && s->open->n > 0) {
		pl_sender_ring_push(s, s->open);
		s->open = NULL;
	}
	return s->n_ring > 0 || pl_sender_spool_records(s) > 0;
}

/* Puts the unsettled rest of the batch being sent behind all others, marked as suspect. Returns
 * false when there are no others, or no room. */
static bool step_aside(struct sender *s)
{
	struct work *w = &s->work;
	const bool turned = turns(s);

	if (w->spooled) {
		if (!turned && s->n_ring == 0 && pl_sender_spool_records(s) <= 1)
			return false;
		if (pl_sender_spool_doubted(s, &w->chunks, w->lo, turned) < 0)
			return false;
		/* Its settled part is already out of the account; now the record ends. */
		pl_spool_next(s->spool);
		if (w->held != NULL)
			pl_sender_release(s, w->held);
	} else {
		uint32_t begin = pl_chunk_begin(&w->chunks, w->lo);
		struct held *h = w->held;

		if (turned)
			turn_held(h, w);
		if (!any_others(s))
			return false;
		for (uint32_t i = w->lo; i < h->n; i++)
			h->ends[i - w->lo] = h->ends[i] - begin;
		h->n -= w->lo;
		h->text.len -= begin;
		memmove(h->text.data, h->text.data + begin, h->text.len);
		h->suspect = true;
		pl_sender_drop_copy(s);
		pl_sender_ring_push(s, h);
	}
	*w = (struct work){ .active = false };
	return true;
}

static void doubtful(struct sender *s, const struct pl_ruling *r, uint64_t now_ns)
{
	struct work *w = &s->work;

	w->doubts++;
	if (w->suspect && s->ok_since_letter) {
		/* The server takes others, but not this. */
		if (w->hi - w->lo == 1)
			s->ok_since_letter = false;
		refused(s, r);
		return;
	}
	back_off(s, r, now_ns);
	if (w->suspect && w->hi - w->lo > 1) {
		/* If only suspects are left, a part that is taken proves that the server works. */
		w->step = (w->hi - w->lo) / 2;
	} else if (w->doubts >= s->options.doubt_after) {
		s->ok_since_letter = false; /* successes from before do not count */
		if (!step_aside(s))
			w->suspect = true; /* without others, its own parts are tried */
	}
}

static void too_big(struct sender *s, const struct pl_ruling *r)
{
	struct work *w = &s->work;
	uint64_t bytes = w->chunks.ends[w->hi - 1] - pl_chunk_begin(&w->chunks, w->lo);

	if (w->hi - w->lo == 1) {
		bury(s, r);
		return;
	}
	s->body_limit = bytes / 2 > LIMIT_LEAST ? bytes / 2 : LIMIT_LEAST;
	w->step = (w->hi - w->lo) / 2;
}

void pl_sender_rule(struct sender *s, uint64_t now_ns)
{
	struct pl_ruling r;

	if (s->answer.error == -ECANCELED)
		return;
	pl_count(&s->export.stats.requests, 1);
	if (s->ops->answer != NULL)
		s->ops->answer(s->format, &s->answer, s->work.hi - s->work.lo, &r);
	else
		pl_ruling_by_status(&s->answer, &r);
	if (r.kind != PL_RULING_DELIVERED)
		pl_count(&s->export.stats.errors, 1);
	switch (r.kind) {
	case PL_RULING_DELIVERED:
		delivered(s);
		break;
	case PL_RULING_REFUSED:
		refused(s, &r);
		break;
	case PL_RULING_TOO_BIG:
		too_big(s, &r);
		break;
	case PL_RULING_DOUBTFUL:
		doubtful(s, &r, now_ns);
		break;
	default:
		back_off(s, &r, now_ns);
		break;
	}
}
