/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks DTA reports, turns them into operations, and counts them. */
#include "dta/translator.h"
#include "base/stats.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "dta/translator_state.h"
#include "wire/layers.h"

#define MS UINT64_C(1000000)

static const struct {
	const char *name, *help;
	bool again;
} refusals[] = {
#define PL_REFUSAL(id, name, again, help) [PL_REFUSED_##id] = { name, help, again },
#include "dta/refusals.def"
#undef PL_REFUSAL
};

const char *pl_refusal_name(enum pl_refusal cause)
{
	return refusals[cause].name;
}

const char *pl_refusal_help(enum pl_refusal cause)
{
	return refusals[cause].help;
}

/* ---- operations ---- */

void pl_translator_deliver(struct pl_translator *t)
{
	if (t->n_ops > 0)
		t->sink.ops(t->sink.arg, t->ops, t->n_ops);
	t->n_ops = 0;
	t->arena_used = 0;
}

struct pl_op *pl_translator_add(struct pl_translator *t, const struct store *s, int collector,
	uint64_t offset, uint64_t increment)
{
	struct pl_op *op = pl_translator_op(t);

	*op = (struct pl_op){
		.kind = PL_OP_ADD,
		.collector = (uint16_t)collector,
		.store = s->number,
		.bytes = 8,
		.offset = offset,
		.add = increment,
	};
	t->count.adds++;
	return op;
}

void pl_translator_wake(struct pl_translator *t, struct pl_op *op, uint32_t imm)
{
	op->immediate = true;
	op->imm = imm;
	t->count.immediates++;
}

int pl_collector_choose(unsigned int store, uint64_t key_hash, uint64_t up, unsigned int n)
{
	uint64_t best = 0, key = pl_hash_mix(key_hash, store);
	int chosen = -1;

	for (unsigned int c = 0; c < n; c++) {
		uint64_t score = pl_hash_mix(pl_hash_mix(key, c), key);

		if ((up >> c & 1) != 0 && (chosen < 0 || score > best)) {
			chosen = (int)c;
			best = score;
		}
	}
	return chosen;
}

/* ---- what primitives share ---- */

void *pl_translator_alloc(struct pl_translator *t, size_t n, size_t size)
{
	t->memory += n * size;
	return calloc(n, size);
}

int pl_translator_cache(struct pl_translator *t, struct pl_cache *c, uint32_t rows)
{
	int r = pl_cache_init(c, rows);

	t->memory += (uint64_t)c->sets * PL_CACHE_WAYS * (sizeof(struct pl_age) + 8);
	return r;
}

bool pl_filter_wants(const struct pl_dta_filter *f, const uint8_t *bytes)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < f->width; i++)
		v = v << 8 | bytes[f->offset + (f->little_endian ? f->width - 1 - i : i)];
	return v > f->above;
}

/* ---- reports ---- */

static bool refuse(struct pl_translator *t, enum pl_refusal cause)
{
	t->count.refused[cause]++;
	return false;
}

/* Finds the store of a report, or NULL and the refusal. */
static struct store *find_store(
	struct pl_translator *t, const struct pl_dta_report *r, enum pl_refusal *ret_cause)
{
	struct store *s;

	*ret_cause = PL_REFUSED_STORE;
	if (r->form != PL_DTA_PATHLINE)
		return r->op <= PL_DTA_SKETCH ? t->by_primitive[r->op] : NULL;
	if (r->store >= t->n_stores)
		return NULL;
	s = &t->stores[r->store];
	if (s->config.params.primitive != (uint32_t)r->op) {
		*ret_cause = PL_REFUSED_PRIMITIVE;
		return NULL;
	}
	return s;
}

/* Makes the checks whose refusals are final. Returns TAKEN with *ret_store and the rest of `in`
 * filled in, or the refusal. */
static int check(struct pl_translator *t, struct intake *in, struct store **ret_store)
{
	enum pl_refusal cause;
	struct store *s = find_store(t, in->report, &cause);

	int r;

	*ret_store = s;
	if (s == NULL)
		return (int)cause;
	r = s->primitive->check(s, in);
	if (r == (int)PL_REFUSED_SKETCH_REPORTERS)
		pl_translate_sketch_refused(s, in);
	return r;
}

/* Makes the checks whose refusals may pass. Takes nothing from the quotas. */
static int check_now(
	struct pl_translator *t, const struct intake *in, struct store *s, struct pl_sender *sender)
{
	int collector = pl_translator_choose(t, s, in->spread);

	if (collector < 0)
		return PL_REFUSED_COLLECTOR;
	if ((t->busy >> collector & 1) != 0)
		return PL_REFUSED_CONGESTED;
	if (!pl_bucket_has(&s->bucket, in->now_ns))
		return PL_REFUSED_STORE_QUOTA;
	if (sender != NULL && !pl_bucket_has(&sender->bucket, in->now_ns))
		return PL_REFUSED_REPORTER_QUOTA;
	return TAKEN;
}

static bool accept(struct pl_translator *t, const struct intake *in, struct store *s)
{
	if (!s->primitive->take(t, s, in)) {
		t->count.duplicates++;
		return false;
	}
	t->count.accepted++;
	t->count.by_primitive[in->report->op]++;
	pl_bucket_take(&s->bucket);
	return true;
}

/* Writes gathered reports before they are confirmed, because a reporter forgets them then.
 * Postcards and columns of sketches are not written: they are useless before they are complete. */
static void write_gathered(struct pl_translator *t, uint64_t now_ns)
{
	for (unsigned int i = 0; t->up != 0 && i < t->n_stores; i++) {
		struct store *s = &t->stores[i];
		const uint32_t primitive = s->config.params.primitive;

		if (primitive == PL_APPEND || primitive == PL_COUNTERS)
			s->primitive->tick(t, s, now_ns, true);
	}
	pl_translator_deliver(t);
}

/* Sends the number of the last report in order, which confirms it and those before. */
static void send_last(
	struct pl_translator *t, const struct pl_sender *s, uint64_t now_ns, bool answer)
{
	const struct pl_dta_nack nack = {
		.form = s->form,
		.last = s->form == PL_DTA_TRACKING ? (uint8_t)(s->expected - 1) : s->expected - 1,
		.answer = answer,
		.tells_lost = true,
		.lost = s->lost,
		.tells_refused = true,
		.refused = s->refused,
	};
	uint8_t bytes[PL_DTA_NACK_BYTES_MAX];
	struct pl_build b = pl_build(bytes, sizeof(bytes));

	if (t->sink.nack == NULL || pl_dta_nack_put(&b, &nack) < 0)
		return;
	write_gathered(t, now_ns);
	if (answer)
		t->count.answers++;
	else
		t->count.nacks++;
	t->sink.nack(t->sink.arg, &s->addr,
		s->form == PL_DTA_TRACKING && t->nack_port != 0 ? t->nack_port : s->port, bytes,
		b.len);
}

static void send_nack(struct pl_translator *t, struct pl_sender *s, uint64_t now_ns)
{
	pl_sender_nacked(s, now_ns);
	send_last(t, s, now_ns, false);
}

/* Returns true when the next NACK for a gap is due. Each one waits twice as long as the one before,
 * up to 16 intervals: the answer may be on its way. */
static bool nack_due(const struct pl_translator *t, const struct pl_sender *s, uint64_t now_ns)
{
	uint32_t doubled = s->tries <= 1 ? 0 : s->tries - 1 < 4 ? s->tries - 1 : 4;

	return !s->nacked || now_ns - s->nack_ns >= t->nack_interval_ns << doubled;
}

/* Takes up a stream that began with another translator. */
static void take_up(struct pl_translator *t, uint32_t seq)
{
	t->count.taken_up++;
	t->count.taken_up_at = seq;
}

/* Handles missing reports before `seq`. Returns true when they are given up: `seq` is the expected
 * number then. */
static bool handle_gap(struct pl_translator *t, struct pl_sender *s, uint32_t seq, uint32_t missing,
	uint64_t now_ns)
{
	bool due;

	if (!s->gap) {
		s->gap = true;
		s->tries = 0;
		t->count.gaps += !s->joining;
	}
	due = nack_due(t, s, now_ns);
	if (s->tries >= t->nack_tries && (due || t->nack_tries == 0)) {
		t->count.lost += missing;
		s->lost += missing;
		if (s->joining)
			take_up(t, s->joined);
		s->joining = false;
		s->expected = seq;
		s->gap = false;
		s->tries = 0;
		return true;
	}
	if (due)
		send_nack(t, s, now_ns);
	return false;
}

/* Returns true when a sequenced report is next in order. */
static bool in_turn(struct pl_translator *t, struct pl_sender *s, const struct intake *in)
{
	struct pl_seq_seen seen;
	enum pl_seq seq = pl_sender_look(
		s, in->report->seq, t->count.datagrams, in->now_ns, t->nack_tries > 0, &seen);

	t->count.restarts += seen.restarted;
	if (seen.taken_up)
		take_up(t, in->report->seq);
	switch (seq) {
	case PL_SEQ_NEXT:
		return true;
	case PL_SEQ_DUPLICATE:
		t->count.duplicates++;
		return false;
	default:
		if (handle_gap(t, s, in->report->seq, seen.missing, in->now_ns))
			return true;
		return refuse(t, PL_REFUSED_GAP);
	}
}

static void report(struct pl_translator *t, struct intake *in)
{
	const struct pl_dta_report *r = in->report;
	const bool sequenced = r->sequenced;
	struct pl_sender *sender = NULL;
	struct store *s;
	int cause;

	if (sequenced || t->limits_senders) {
		sender = pl_senders_find(&t->senders, in->from, in->from_port, r->form, in->now_ns);
		t->count.displaced = t->senders.displaced;
		if (sender == NULL) {
			refuse(t, PL_REFUSED_REPORTERS);
			return;
		}
	}
	if (r->asks)
		t->asker = sender;
	if (sequenced && !in_turn(t, sender, in))
		return;
	cause = check(t, in, &s);
	if (cause == TAKEN)
		cause = check_now(t, in, s, sender);
	/* A report that may be sent again does not advance the numbers: it is missing. */
	if (sequenced && (cause == TAKEN || !refusals[cause].again))
		pl_sender_take(sender, r->seq);
	/* A filtered report is not counted as refused: the filter was configured. */
	if (sequenced && cause != TAKEN && !refusals[cause].again && cause != PL_REFUSED_FILTERED)
		sender->refused++;
	if (cause != TAKEN) {
		refuse(t, (enum pl_refusal)cause);
	} else if (accept(t, in, s) && sender != NULL) {
		pl_bucket_take(&sender->bucket);
	}
}

static bool may_report(const struct pl_translator *t, const struct pl_addr *from)
{
	for (unsigned int i = 0; i < t->n_access; i++) {
		if (pl_prefix_has(&t->access[i], from))
			return true;
	}
	return t->n_access == 0;
}

void pl_translator_push(struct pl_translator *t, uint64_t now_ns, const struct pl_addr *from,
	uint16_t from_port, const void *bytes, size_t n)
{
	struct pl_cursor c = pl_cursor(bytes, n);
	struct pl_dta_report r;

	t->asker = NULL;
	t->count.datagrams++;
	if (!may_report(t, from)) {
		t->count.reports++;
		refuse(t, PL_REFUSED_ACCESS);
		return;
	}
	do {
		struct intake in = {
			.report = &r, .from = from, .from_port = from_port, .now_ns = now_ns
		};
		enum pl_dta_verdict verdict = pl_dta_next(&c, t->form, &r);

		t->count.reports++;
		if (verdict == PL_DTA_OK)
			report(t, &in);
		else
			t->count.faults[verdict]++;
	} while (pl_cursor_left(&c) > 0);
	/* Once in a datagram, so that a forged one does not cause many. */
	if (t->asker != NULL && !t->asker->joining)
		send_last(t, t->asker, now_ns, true);
}

void pl_translator_done(struct pl_translator *t)
{
	pl_translator_deliver(t);
}

bool pl_translator_packet(struct pl_translator *t, uint64_t now_ns, const struct pl_packet *packet)
{
	struct pl_layers layers;

	if (packet->link == PL_LINK_UDP) {
		if (packet->len < packet->wire_len)
			return false;
		pl_translator_push(
			t, now_ns, &packet->src, packet->sport, packet->data, packet->len);
		return true;
	}
	if (pl_layers_walk(&layers, pl_cursor(packet->data, packet->len),
		    (enum pl_link)packet->link, false) != PL_V_OK ||
		layers.flow.proto != PL_IP_UDP ||
		(layers.flags & (PL_LAYERS_FRAGMENT | PL_LAYERS_CUT)) != 0)
		return false;
	pl_translator_push(t, now_ns, &layers.flow.src, layers.flow.sport, layers.payload.pos,
		pl_cursor_left(&layers.payload));
	return true;
}

bool pl_translator_report(struct pl_translator *t, uint64_t now_ns, const struct pl_dta_report *r)
{
	static const struct pl_addr here;
	struct intake in = { .report = r, .from = &here, .now_ns = now_ns };
	struct store *s;
	int cause = check(t, &in, &s);
	bool accepted = false;

	t->count.reports++;
	if (cause == TAKEN)
		cause = check_now(t, &in, s, NULL);
	if (cause != TAKEN)
		refuse(t, (enum pl_refusal)cause);
	else
		accepted = accept(t, &in, s);
	pl_translator_deliver(t);
	return accepted;
}

/* ---- time ---- */

static void let_go(struct pl_translator *t, uint64_t now_ns, bool all)
{
	if (t->up == 0)
		return;
	for (unsigned int i = 0; i < t->n_stores; i++) {
		struct store *s = &t->stores[i];

		if (s->primitive->tick != NULL && (all || s->primitive->due(s) <= now_ns))
			s->primitive->tick(t, s, now_ns, all);
	}
	pl_translator_deliver(t);
}

void pl_translator_tick(struct pl_translator *t, uint64_t now_ns)
{
	let_go(t, now_ns, false);
}

void pl_translator_flush(struct pl_translator *t, uint64_t now_ns)
{
	let_go(t, now_ns, true);
}

uint64_t pl_translator_due_ns(const struct pl_translator *t)
{
	uint64_t due = UINT64_MAX;

	for (unsigned int i = 0; t->up != 0 && i < t->n_stores; i++) {
		const struct store *s = &t->stores[i];
		uint64_t at = s->primitive->due != NULL ? s->primitive->due(s) : UINT64_MAX;

		if (at < due)
			due = at;
	}
	return due;
}

/* ---- collectors ---- */

void pl_translator_set_collector(
	struct pl_translator *t, unsigned int collector, enum pl_collector_state state)
{
	uint64_t bit;

	if (collector >= t->collectors)
		return;
	bit = UINT64_C(1) << collector;
	t->up = state == PL_COLLECTOR_DOWN ? t->up & ~bit : t->up | bit;
	t->busy = state == PL_COLLECTOR_BUSY ? t->busy | bit : t->busy & ~bit;
	for (unsigned int i = 0; state == PL_COLLECTOR_DOWN && i < t->n_stores; i++) {
		struct store *s = &t->stores[i];

		/* The columns that the collector got before are unknown. */
		if (s->config.params.primitive == PL_SKETCH &&
			s->sketch.collector == (int)collector)
			s->sketch.collector = -1;
	}
	if (t->up == 0)
		return;
	for (unsigned int i = 0; i < t->n_stores; i++) {
		if (t->stores[i].config.params.primitive == PL_SKETCH)
			pl_translate_sketch.tick(t, &t->stores[i], 0, false);
	}
	pl_translator_deliver(t);
}

int pl_translator_resume_list(struct pl_translator *t, unsigned int collector, unsigned int store,
	uint32_t list, uint64_t head)
{
	struct store *s;

	if (collector >= t->collectors || store >= t->n_stores)
		return -EINVAL;
	s = &t->stores[store];
	if (s->config.params.primitive != PL_APPEND || list >= s->append.geometry.lists)
		return -EINVAL;
	s->append.heads[(size_t)collector * s->append.geometry.lists + list] = head;
	return 0;
}

/* ---- readers ---- */

uint64_t pl_translator_memory(const struct pl_translator *t)
{
	return t->memory;
}

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_translator_counters, __VA_ARGS__)
#include "dta/translator_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_translator_stats_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

const struct pl_translator_counters *pl_translator_counters(const struct pl_translator *t)
{
	return &t->count;
}

struct pl_translator_held pl_translator_held(const struct pl_translator *t)
{
	return t->held;
}
