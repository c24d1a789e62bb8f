/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs of records of two streams: equal keys, times at most `within_ns` apart. Records of each
 * side wait in a heap by their times. When the watermark is past the last possible partner of a
 * left record, its pairs are given, in the order of the right records' times; so the pairs do not
 * depend on the order of arrival. A right record is forgotten when no left record that may still
 * come is near it.
 */
#include <stdlib.h>
#include <string.h>

#include "query/origin.h"
#include "query/pairs_room.h"

/* Without a limit, n records of one key would take time proportional to n * n. */
#define PARTNERS_MAX 4096

/* Returns the length of a stretch: few stretches cover one window and the time around it. */
static int64_t longest(const struct pl_query_run *run, const struct pairs *pairs)
{
	const uint64_t size = run->query->window.size_ns;
	uint64_t ret = pairs->within_ns > size ? pairs->within_ns : size;

	ret = run->config.lateness_ns > ret ? run->config.lateness_ns : ret;
	return ret == 0 ? 1 : ret > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)ret;
}

int pl_query_pairs_init(struct pl_query_run *run, struct stage_run *s)
{
	const struct pairs *pairs = s->stage->pairs;
	const uint32_t max = run->config.max_groups;
	struct pair_room *room = calloc(1, sizeof(*room));

	s->pairs = room;
	if (room == NULL)
		return -ENOMEM;
	run->paired[run->n_paired++] = s;
	room->watermark = INT64_MIN;
	room->resumed = INT64_MIN;
	room->stretch = longest(run, pairs);
	pl_rng_seed(&room->rng, run->config.seed);
	room->refused.near = (int64_t)run->query->window.size_ns;
	room->row_bytes = pairs->both.size;
	room->rows = calloc(PL_QUERY_BATCH, room->row_bytes);
	for (unsigned int i = 0; i < 2; i++) {
		struct side *side = &room->sides[i];

		side->record_bytes = pairs->sides[i]->input.size;
		side->compared = pairs->sides[i]->kind == PL_QUERY_PATHS
					 ? (uint32_t)sizeof(struct pl_path)
					 : side->record_bytes;
		side->record_at = (uint32_t)sizeof(struct held) + (i == 0 ? pairs->key_bytes : 0);
		side->bytes = side->record_at + side->record_bytes;
		side->held = calloc(max, side->bytes);
		side->due = calloc(max, sizeof(*side->due));
		if (side->held == NULL || side->due == NULL)
			return -ENOMEM;
		run->bytes += (uint64_t)max * (side->bytes + sizeof(*side->due));
		run->stages[pairs->sides[i]->number].pairs_of = s;
	}
	if (room->rows == NULL ||
		pl_query_table_init(&room->keys, max, pairs->key_bytes,
			pairs->key_bytes + (uint32_t)sizeof(struct chain), run->config.seed) < 0)
		return -ENOMEM;
	run->bytes += pl_query_table_bytes(&room->keys) + PL_QUERY_BATCH * room->row_bytes;
	return 0;
}

void pl_query_pairs_done(struct stage_run *s)
{
	if (s->pairs == NULL)
		return;
	for (unsigned int i = 0; i < 2; i++) {
		free(s->pairs->sides[i].held);
		free(s->pairs->sides[i].due);
	}
	pl_query_table_done(&s->pairs->keys);
	free(s->pairs->rows);
	free(s->pairs);
}

/* ---- the heaps ---- */

/* Compares by time, then by bytes, so that the order does not depend on that of arrival. */
static bool is_before(const struct side *side, struct due a, struct due b)
{
	int order;

	if (a.ts != b.ts)
		return a.ts < b.ts;
	order = memcmp(record_of(side, a.at), record_of(side, b.at), side->compared);
	return order != 0 ? order < 0 : a.at < b.at;
}

static void push(struct side *side, struct due due)
{
	uint32_t at = side->n++;

	while (at > 0 && is_before(side, due, side->due[(at - 1) / 2])) {
		side->due[at] = side->due[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	side->due[at] = due;
}

static uint32_t pop(struct side *side)
{
	const uint32_t first = side->due[0].at;
	const struct due last = side->due[--side->n];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < side->n) {
		if (child + 1 < side->n && is_before(side, side->due[child + 1], side->due[child]))
			child++;
		if (!is_before(side, side->due[child], last))
			break;
		side->due[at] = side->due[child];
		at = child;
	}
	side->due[at] = last;
	return first;
}

/* ---- records that wait ---- */

/* Takes a place for one more record. Returns false when there is none. */
static bool take_place(const struct pl_query_run *run, struct side *side, uint32_t *ret)
{
	if (side->free_list != 0) {
		*ret = side->free_list - 1;
		side->free_list = held_at(side, *ret)->next;
		return true;
	}
	*ret = side->used;
	if (side->used == run->config.max_groups)
		return false;
	side->used++;
	return true;
}

static void free_place(struct side *side, uint32_t at)
{
	held_at(side, at)->next = side->free_list;
	side->free_list = at + 1;
}

static struct chain *chain_of(const struct pair_room *room, uint32_t entry)
{
	return (struct chain *)(void *)(table_at(&room->keys, entry) + room->keys.key_bytes);
}

static struct held *right_at(const struct pair_room *room, uint32_t link)
{
	return held_at(&room->sides[1], link - 1);
}

/* Returns true when a right record is before another; both + 1. */
static bool comes_before(struct pair_room *room, uint32_t a, uint32_t b)
{
	room->steps++;
	return is_before(&room->sides[1], (struct due){ right_at(room, a)->ts, a - 1 },
		(struct due){ right_at(room, b)->ts, b - 1 });
}

/* Returns the link that points to the record `link`. */
static uint32_t *hook_of(const struct pair_room *room, struct chain *chain, uint32_t link)
{
	struct held *above;

	if (right_at(room, link)->above == 0)
		return &chain->root;
	above = right_at(room, right_at(room, link)->above);
	return above->earlier == link ? &above->earlier : &above->later;
}

/* Moves a node up to the height of its weight; the nodes that it passes become its children. */
static void rise(struct pair_room *room, struct chain *chain, uint32_t link)
{
	struct held *held = right_at(room, link), *above;
	uint32_t passed, *hook, *from;

	while (held->above != 0 && right_at(room, held->above)->weight < held->weight) {
		room->steps++;
		passed = held->above;
		above = right_at(room, passed);
		hook = hook_of(room, chain, passed);
		from = above->earlier == link ? &held->later : &held->earlier;
		if (above->earlier == link)
			above->earlier = *from;
		else
			above->later = *from;
		if (*from != 0)
			right_at(room, *from)->above = passed;
		*from = passed;
		held->above = above->above;
		above->above = link;
		*hook = link;
	}
}

/* Returns the number of the record behind which the new one is inserted, + 1; 0: none. Most records
 * come in order and are inserted at the end. */
static uint32_t place_of(struct pair_room *room, const struct chain *chain, uint32_t link)
{
	uint32_t before = 0;

	if (chain->last == 0 || !comes_before(room, link, chain->last))
		return chain->last;
	if (comes_before(room, link, chain->first))
		return 0;
	for (uint32_t at = chain->root; at != 0;) {
		const bool earlier = comes_before(room, link, at);

		before = earlier ? before : at;
		at = earlier ? right_at(room, at)->earlier : right_at(room, at)->later;
	}
	return before;
}

static void enter_chain(struct pair_room *room, uint32_t at, const uint8_t *key)
{
	struct held *held = held_at(&room->sides[1], at);
	const uint32_t link = at + 1;
	struct chain *chain;

	pl_query_table_add(
		&room->keys, key, 1, &held->of_key); /* there is room: as many keys as records */
	chain = chain_of(room, held->of_key);
	held->weight = (uint32_t)pl_rng_u64(&room->rng);
	held->before = place_of(room, chain, link);
	held->next = held->before != 0 ? right_at(room, held->before)->next : chain->first;
	/* One of two neighbours has no child on the side of the other. */
	if (held->before != 0 && right_at(room, held->before)->later == 0) {
		held->above = held->before;
		right_at(room, held->before)->later = link;
	} else if (held->next != 0) {
		held->above = held->next;
		right_at(room, held->next)->earlier = link;
	} else {
		chain->root = link;
	}
	if (held->before != 0)
		right_at(room, held->before)->next = link;
	else
		chain->first = link;
	if (held->next != 0)
		right_at(room, held->next)->before = link;
	else
		chain->last = link;
	rise(room, chain, link);
}

/* Removes the first record of its key: it has no earlier child. */
static void leave_chain(struct pair_room *room, uint32_t at)
{
	const struct held *held = held_at(&room->sides[1], at);
	struct chain *chain = chain_of(room, held->of_key);

	*hook_of(room, chain, at + 1) = held->later;
	if (held->later != 0)
		right_at(room, held->later)->above = held->above;
	chain->first = held->next;
	if (held->next != 0)
		right_at(room, held->next)->before = 0;
	else
		chain->last = 0;
	if (chain->first == 0)
		pl_query_table_remove(&room->keys, held->of_key);
}

/* Marks rows near this time as incomplete. */
static void mark(const struct pairs *pairs, struct pair_room *room, int64_t ts)
{
	const int64_t within = (int64_t)pairs->within_ns;

	pl_query_losses_add(&room->refused, ts - within, ts + within);
}

/* Stores the least position of a stretch. When two stretches share a place, the position of the
 * earlier one is kept longer than necessary. */
static void note_place(const struct pl_query_run *run, struct pair_room *room, int64_t ts)
{
	const int64_t number = ts / room->stretch;
	struct place *place = &room->places[(uint64_t)number % PLACES];

	if (!place->used)
		*place = (struct place){ number, UINT64_MAX, true };
	place->number = number > place->number ? number : place->number;
	if (run->windows.position < place->position)
		place->position = run->windows.position;
}

static void hold(struct pl_query_run *run, struct stage_run *s, unsigned int i, int64_t ts,
	const uint8_t *key, const uint8_t *record)
{
	const struct pairs *pairs = s->stage->pairs;
	struct pair_room *room = s->pairs;
	struct side *side = &room->sides[i];
	struct held *held;
	uint32_t at;

	if (!take_place(run, side, &at)) {
		run->stats.held_refused++;
		mark(pairs, room, ts);
		return;
	}
	held = held_at(side, at);
	*held = (struct held){ .ts = ts };
	if (i == 0)
		memcpy(held + 1, key, pairs->key_bytes);
	memcpy((uint8_t *)held + side->record_at, record, side->record_bytes);
	if (i == 1)
		enter_chain(room, at, key);
	push(side, (struct due){ ts, at });
	note_place(run, room, ts);
}

static bool has_key(const uint8_t *key)
{
	uint32_t absent;

	memcpy(&absent, key + 4, sizeof(absent));
	return absent == 0;
}

void pl_query_pairs_add(
	struct pl_query_run *run, struct stage_run *side, const uint8_t *records, uint32_t n)
{
	const struct stage *of = side->stage;
	const struct rows rows = pl_query_scan_where(run, of, records, n);
	struct stage_run *s = side->pairs_of;
	const struct pairs *pairs = s->stage->pairs;
	const unsigned int i = of != pairs->sides[0];
	/* An absent key equals no other. */
	const bool needs_key = i == 1 || pairs->kind == J_INNER;

	pl_query_keys_make(run, pairs->keys[i], pairs->n_keys, pairs->key_bytes, &rows, NULL);
	for (uint32_t k = 0; k < rows.n; k++) {
		const uint8_t *record = row_at(&rows, k);
		const uint8_t *key = run->keys + (size_t)k * pairs->key_bytes;
		uint64_t ts;

		memcpy(&ts, record + of->time->offset, sizeof(ts));
		if (ts > PL_QUERY_TIME_MAX)
			run->stats.bad_time++;
		else if ((int64_t)ts < s->pairs->watermark) {
			run->stats.late++;
			run->late_told += (int64_t)ts < s->pairs->resumed;
		} else if (i == 0 && (int64_t)ts + (int64_t)pairs->within_ns < s->pairs->resumed)
			continue;
		/* A record too far ahead is counted with its batch; it would wait without end. */
		else if ((int64_t)ts <= run->windows.latest && (!needs_key || has_key(key)))
			hold(run, s, i, (int64_t)ts, key, record);
	}
}

/* ---- pairs ---- */

/* Records ahead of the clock were left out when they came. The clock may now be behind that of
 * their source. */
static void flush(struct pl_query_run *run, struct stage_run *s)
{
	const int64_t latest = run->windows.latest;
	struct pair_room *room = s->pairs;
	const uint32_t n = room->n;

	if (n == 0)
		return;
	room->n = 0;
	run->stats.pairs += n;
	run->pairs_incomplete = room->incomplete;
	run->windows.latest = PL_QUERY_TIME_MAX;
	pl_query_scan(run, s, room->rows, n);
	run->windows.latest = latest;
	run->pairs_incomplete = false;
}

/* Returns the origin of a record of a side. */
static struct row_origin origin_of(
	struct pl_query_run *run, const struct pairs *pairs, unsigned int i, const uint8_t *record)
{
	const struct stage_run *side = &run->stages[pairs->sides[i]->number];
	struct row_origin o = { .exp = pl_query_origin_bit_of(run, side, record) };

	memcpy(&o.first_ns, record + side->stage->time->offset, sizeof(o.first_ns));
	return o;
}

/* Makes a row of both records; `right` NULL: none. */
static void put_row(struct pl_query_run *run, struct stage_run *s, uint32_t at, const uint8_t *left,
	const uint8_t *right)
{
	struct row_origin o = origin_of(run, s->stage->pairs, 0, left);
	const struct pair_room *room = s->pairs;
	uint8_t *row = room->rows + (size_t)at * room->row_bytes;
	const uint32_t n = room->sides[0].record_bytes;
	const uint64_t head = right == NULL ? 2 : 0;

	if (right != NULL)
		o = pl_query_origin_join(o, origin_of(run, s->stage->pairs, 1, right));
	memcpy(row, &head, sizeof(head));
	row_set_origin(row, o);
	memcpy(row + ROW_HEAD, left, n);
	if (right != NULL)
		memcpy(row + ROW_HEAD + n, right, room->sides[1].record_bytes);
	else
		memset(row + ROW_HEAD + n, 0, room->sides[1].record_bytes);
}

/* Keeps, of the n rows behind the kept ones, those for which the rest of ON is true. */
static uint32_t choose(struct pl_query_run *run, struct stage_run *s, uint32_t n)
{
	struct pair_room *room = s->pairs;
	const size_t size = room->row_bytes;
	uint8_t *from = room->rows + room->n * size;
	struct rows rows = { from, room->row_bytes, n, NULL };

	if (s->stage->pairs->on == NULL)
		return n;
	at_times_of(run, s->stage);
	n = pl_query_filter(&run->eval, s->stage->pairs->on, &rows, run->sel);
	for (uint32_t k = 0; k < n; k++)
		memmove(from + k * size, from + run->sel[k] * size, size);
	return n;
}

/* Gives the pairs of a left record; returns their number. */
static uint64_t give_pairs(
	struct pl_query_run *run, struct stage_run *s, uint32_t at, uint32_t first)
{
	const struct pairs *pairs = s->stage->pairs;
	const int64_t within = (int64_t)pairs->within_ns;
	struct pair_room *room = s->pairs;
	const struct side *left = &room->sides[0], *right = &room->sides[1];
	const int64_t ts = held_at(left, at)->ts;
	uint64_t found = 0;
	uint32_t n = 0, near = 0;

	for (uint32_t k = first; k != 0 && held_at(right, k - 1)->ts <= ts + within;
		k = held_at(right, k - 1)->next) {
		if (held_at(right, k - 1)->ts < ts - within)
			continue;
		if (pairs->kind == J_ANTI && pairs->on == NULL)
			return 1;
		if (near++ == PARTNERS_MAX) {
			run->stats.partners_refused++;
			mark(pairs, room, ts);
			room->incomplete = true;
			break;
		}
		put_row(run, s, room->n + n++, record_of(left, at), record_of(right, k - 1));
		if (room->n + n < PL_QUERY_BATCH)
			continue;
		n = choose(run, s, n);
		found += n;
		if (pairs->kind == J_ANTI && n > 0)
			return found;
		room->n += pairs->kind == J_ANTI ? 0 : n;
		n = 0;
		if (room->n == PL_QUERY_BATCH)
			flush(run, s);
	}
	n = n > 0 ? choose(run, s, n) : 0;
	room->n += pairs->kind == J_ANTI ? 0 : n;
	return found + n;
}

static void give_left(struct pl_query_run *run, struct stage_run *s, uint32_t at)
{
	const struct pairs *pairs = s->stage->pairs;
	struct pair_room *room = s->pairs;
	const struct held *held = held_at(&room->sides[0], at);
	const bool incomplete = pl_query_pairs_incomplete(s, held->ts, held->ts + 1) ||
				window_lacks(run, held->ts, held->ts + 1);
	const uint8_t *key = (const uint8_t *)(held + 1);
	uint32_t entry = has_key(key) ? pl_query_table_find(&room->keys, key) : TABLE_NONE;
	uint64_t found = 0;

	if (room->n == PL_QUERY_BATCH || incomplete != room->incomplete)
		flush(run, s);
	room->incomplete = incomplete;
	if (entry != TABLE_NONE)
		found = give_pairs(run, s, at, chain_of(room, entry)->first);
	if (found > 0 || pairs->kind == J_INNER)
		return;
	if (room->n == PL_QUERY_BATCH)
		flush(run, s);
	put_row(run, s, room->n++, record_of(&room->sides[0], at), NULL);
}

/* Forgets right records that no left record is near any more; the first left record has the time
 * `first`. */
static void forget(struct pair_room *room, int64_t first, int64_t within)
{
	struct side *right = &room->sides[1];

	while (right->n > 0 && right->due[0].ts + within < first) {
		const uint32_t at = pop(right);

		leave_chain(room, at);
		free_place(right, at);
	}
}

void pl_query_pairs_until(struct pl_query_run *run, struct stage_run *s, int64_t goal)
{
	const int64_t within = (int64_t)s->stage->pairs->within_ns;
	struct pair_room *room = s->pairs;
	struct side *left = &room->sides[0];

	while (left->n > 0 && left->due[0].ts + within < goal) {
		uint32_t at;

		/* Old records are dropped here, so that a left record does not have to pass all
		 * earlier ones of its key. */
		forget(room, left->due[0].ts, within);
		at = pop(left);
		give_left(run, s, at);
		free_place(left, at);
	}
	flush(run, s);
	if (goal > INT64_MIN + within)
		forget(room, goal - within, within);
	room->watermark = goal > room->watermark ? goal : room->watermark;
}

/* Forgets stretches before every record of a pair still to be given, or of an open window. */
static void forget_places(const struct pl_query_run *run, struct stage_run *s)
{
	const int64_t within = (int64_t)s->stage->pairs->within_ns;
	const bool windowed = run->windows.spec.kind != W_NONE;
	const int64_t behind = within + (windowed ? (int64_t)run->query->window.size_ns : within);
	const int64_t done = windowed ? run->windows.watermark : s->pairs->watermark;

	for (unsigned int i = 0; i < PLACES && done > INT64_MIN + behind; i++) {
		struct place *place = &s->pairs->places[i];

		if ((place->number + 1) * s->pairs->stretch <= done - behind)
			place->used = false;
	}
}

void pl_query_pairs_closed(const struct pl_query_run *run, struct stage_run *s, int64_t goal)
{
	const int64_t behind =
		(int64_t)s->stage->pairs->within_ns + (int64_t)run->query->window.size_ns;
	struct pair_room *room = s->pairs;

	forget_places(run, s);
	if ((run->windows.spec.kind == W_NONE && s->stage->grouped) || goal < INT64_MIN + behind ||
		pl_query_losses_within(&room->refused, goal - behind, INT64_MAX))
		return;
	room->refused.n = 0;
}

int64_t pl_query_pairs_next(const struct stage_run *s)
{
	const struct side *left = &s->pairs->sides[0];

	return left->n > 0 ? left->due[0].ts : INT64_MAX;
}
