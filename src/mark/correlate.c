/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps blocks of flows in a hash table with chains and their records in a pool, both of fixed
 * size. A block stays for a while after its results were given: jitter and pulse marking look
 * back. */
#include "mark/correlate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "mark/correlate_state.h"

#define BLOCKS_MAX        65536u
#define POINTS_MAX        4096u
#define SAMPLES_PER_BLOCK 8u  /* blocks have less room if flows pass more points */
#define LOOK              16u /* most blocks examined in the search for one to replace */

static const struct {
	const char *name, *help;
} alarms[] = {
#define ALARM(bit, id, name, help) [bit] = { name, help },
	PL_MARK_ALARMS(ALARM)
#undef ALARM
};

const char *pl_mark_alarm_name(unsigned int bit)
{
	return bit < sizeof(alarms) / sizeof(alarms[0]) ? alarms[bit].name : NULL;
}

const char *pl_mark_alarm_help(unsigned int bit)
{
	return bit < sizeof(alarms) / sizeof(alarms[0]) ? alarms[bit].help : NULL;
}

const struct pl_stats pl_mark_correlator_stats_list = {
	.rows =
		(const struct pl_stat[]){
#define PL_STAT(...) PL_STAT_ROW(struct pl_mark_correlator_stats, __VA_ARGS__)
#include "mark/correlate_stats.def"
#undef PL_STAT
		},
	.n = sizeof(struct pl_mark_correlator_stats) / sizeof(uint64_t),
};

/* ---- segments and points ---- */

static int compare_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

uint32_t pl_mark_place_of_point(const struct pl_mark_correlator *c, uint32_t point)
{
	const uint32_t *found =
		bsearch(&point, c->points, c->n_points, sizeof(*c->points), compare_u32);

	return found != NULL ? (uint32_t)(found - c->points) : UINT32_MAX;
}

static int gather_points(struct pl_mark_correlator *c)
{
	const struct pl_mark_correlator_config *config = &c->config;
	size_t n = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < config->n_segments; i++)
		n += config->segments[i].n_from + config->segments[i].n_to;
	c->points = calloc(n + 1, sizeof(*c->points));
	if (c->points == NULL)
		return -ENOMEM;
	n = 0;
	for (uint32_t i = 0; i < config->n_segments; i++) {
		const struct pl_mark_segment *s = &config->segments[i];

		for (uint32_t k = 0; k < s->n_from; k++)
			c->points[n++] = s->from[k];
		for (uint32_t k = 0; k < s->n_to; k++)
			c->points[n++] = s->to[k];
	}
	qsort(c->points, n, sizeof(*c->points), compare_u32);
	for (size_t i = 0; i < n; i++) {
		if (kept == 0 || c->points[kept - 1] != c->points[i])
			c->points[kept++] = c->points[i];
	}
	c->n_points = kept;
	return 0;
}

static int copy_places(
	const struct pl_mark_correlator *c, uint32_t **ret, const uint32_t *points, uint32_t n)
{
	*ret = calloc(n, sizeof(**ret));
	if (*ret == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		(*ret)[i] = pl_mark_place_of_point(c, points[i]);
	return 0;
}

static int copy_segments(struct pl_mark_correlator *c)
{
	int r = 0;

	c->segments = calloc(c->config.n_segments, sizeof(*c->segments));
	if (c->segments == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < c->config.n_segments; i++) {
		const struct pl_mark_segment *from = &c->config.segments[i];
		struct segment *s = &c->segments[i];

		s->n_from = from->n_from;
		s->n_to = from->n_to;
		r = copy_places(c, &s->from, from->from, from->n_from);
		if (r == 0)
			r = copy_places(c, &s->to, from->to, from->n_to);
	}
	return r;
}

static int check(const struct pl_mark_correlator_config *config, struct pl_diag *diag)
{
	if (config->n_segments == 0)
		return pl_diag_fail(diag, -EINVAL,
			"no segment: loss and delay are between two measurement points");
	for (uint32_t i = 0; i < config->n_segments; i++) {
		const struct pl_mark_segment *s = &config->segments[i];

		if (s->n_from > 0 && s->n_to > 0)
			continue;
		return pl_diag_fail(diag, -EINVAL, "segment %u has no measurement points %s", i + 1,
			s->n_from == 0 ? "where packets go in" : "where they come out");
	}
	return 0;
}

static uint32_t samples_of(uint32_t blocks, uint32_t points)
{
	return blocks * (points < SAMPLES_PER_BLOCK ? points : SAMPLES_PER_BLOCK);
}

uint64_t pl_mark_correlator_memory(
	const struct pl_mark_correlator_config *config, uint32_t n_points)
{
	const uint32_t n = config->blocks_max != 0 ? config->blocks_max : BLOCKS_MAX;

	return sizeof(struct pl_mark_correlator) +
	       n * (sizeof(struct block) + 2 * sizeof(uint32_t)) +
	       samples_of(n, n_points) * sizeof(struct sample) +
	       n_points * (4 * sizeof(uint32_t) + sizeof(void *) + sizeof(struct fast)) +
	       (config->absent ? n_points * (SEEN_BLOCKS * sizeof(struct seen) +
						    sizeof(struct pl_mark128) + sizeof(bool))
			       : 0) +
	       config->n_segments * (sizeof(struct segment) + 2 * sizeof(uint32_t)) +
	       (config->shares ? pl_shares_memory(n) : 0);
}

static int make_room(struct pl_mark_correlator *c)
{
	uint32_t room = 4;

	/* Each segment has points at both ends (check()). */
	if (c->n_points == 0)
		return -EINVAL;
	c->n_blocks = c->config.blocks_max != 0 ? c->config.blocks_max : BLOCKS_MAX;
	c->n_samples = samples_of(c->n_blocks, c->n_points);
	while (room < c->n_blocks && room < UINT32_C(1) << 31)
		room *= 2;
	c->mask = room - 1;
	c->blocks = calloc(c->n_blocks, sizeof(*c->blocks));
	c->samples = calloc(c->n_samples, sizeof(*c->samples));
	c->places = calloc(room, sizeof(*c->places));
	c->at_point = calloc(c->n_points, sizeof(const void *));
	c->missing = calloc(c->n_points, sizeof(*c->missing));
	c->tai = calloc(c->n_points, sizeof(*c->tai));
	c->fast = calloc(c->n_points, sizeof(*c->fast));
	if (c->blocks == NULL || c->samples == NULL || c->places == NULL || c->at_point == NULL ||
		c->missing == NULL || c->tai == NULL || c->fast == NULL)
		return -ENOMEM;
	if (c->config.absent) {
		c->seen = calloc((size_t)c->n_points * SEEN_BLOCKS, sizeof(*c->seen));
		c->zeros = calloc(c->n_points, sizeof(*c->zeros));
		c->gaps = calloc(c->n_points, sizeof(*c->gaps));
		if (c->seen == NULL || c->zeros == NULL || c->gaps == NULL)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < c->n_blocks; i++)
		c->blocks[i].chain = i + 1 < c->n_blocks ? i + 1 : NO_BLOCK;
	for (uint32_t i = 0; i < c->n_samples; i++)
		c->samples[i].next = i + 1 < c->n_samples ? i + 1 : NO_SAMPLE;
	memset(c->places, 0xff, room * sizeof(*c->places));
	c->oldest = c->newest = NO_BLOCK;
	c->due_ns = UINT64_MAX;
	return c->config.shares ? pl_shares_init(&c->shares, c->n_blocks) : 0;
}

int pl_mark_correlator_new(struct pl_mark_correlator **ret,
	const struct pl_mark_correlator_config *config, struct pl_diag *diag)
{
	struct pl_mark_correlator *c;
	int r = check(config, diag);

	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->config = *config;
	c->seed = pl_hash_seed();
	r = gather_points(c);
	if (r == 0 && c->n_points > POINTS_MAX)
		r = pl_diag_fail(diag, -EINVAL, "%u measurement points: at most %u", c->n_points,
			POINTS_MAX);
	if (r == 0)
		r = copy_segments(c);
	if (r == 0)
		r = make_room(c);
	c->config.segments = NULL; /* it is the caller's */
	if (r < 0) {
		pl_mark_correlator_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void pl_mark_correlator_free(struct pl_mark_correlator *c)
{
	if (c == NULL)
		return;
	for (uint32_t i = 0; c->segments != NULL && i < c->config.n_segments; i++) {
		free(c->segments[i].from);
		free(c->segments[i].to);
	}
	free(c->segments);
	free(c->points);
	free(c->blocks);
	free(c->samples);
	free(c->places);
	free(c->at_point);
	free(c->missing);
	free(c->tai);
	free(c->fast);
	free(c->seen);
	free(c->zeros);
	free(c->gaps);
	if (c->config.shares)
		pl_shares_done(&c->shares);
	free(c);
}

/* ---- blocks ---- */

static uint32_t place_of(
	const struct pl_mark_correlator *c, const struct pl_mark_flow *flow, uint64_t block)
{
	return (uint32_t)pl_hash_mix(pl_hash(flow, sizeof(*flow), c->seed), block) & c->mask;
}

static uint32_t find(
	const struct pl_mark_correlator *c, const struct pl_mark_flow *flow, uint64_t block)
{
	uint32_t i = c->places[place_of(c, flow, block)];

	while (i != NO_BLOCK && (c->blocks[i].block != block ||
					memcmp(&c->blocks[i].flow, flow, sizeof(*flow)) != 0))
		i = c->blocks[i].chain;
	return i;
}

const struct block *pl_mark_block_before(
	const struct pl_mark_correlator *c, const struct block *b, uint64_t blocks)
{
	const uint32_t i = b->block > blocks ? find(c, &b->flow, b->block - blocks) : NO_BLOCK;

	return i != NO_BLOCK && c->blocks[i].period_ns == b->period_ns ? &c->blocks[i] : NULL;
}

void pl_mark_gather(const struct pl_mark_correlator *c, const struct block *b,
	const struct pl_mark128 **ret_at_point)
{
	memset(ret_at_point, 0, c->n_points * sizeof(const void *));
	for (uint32_t i = b->samples; i != NO_SAMPLE; i = c->samples[i].next)
		ret_at_point[c->samples[i].point] = &c->samples[i].record;
}

static void note_beyond(struct pl_mark_correlator *c, uint64_t block)
{
	if (block > c->beyond_block)
		c->beyond_block = block;
}

static void tell(struct pl_mark_correlator *c, struct block *b)
{
	struct pl_mark_result result;

	b->told = true;
	c->postponed -= b->postponed;
	c->stats.blocks++;
	c->stats.incomplete += b->n_samples < c->n_points;
	for (uint32_t i = 0; i < c->config.n_segments; i++) {
		if (!pl_mark_evaluate(&result, c, b, i))
			continue;
		result.deadline_ns = b->deadline_ns - (b->postponed ? b->period_ns : 0);
		if ((result.alarms & PL_MARK_ALARM_BEYOND) != 0)
			note_beyond(c, b->block);
		c->stats.results++;
		c->config.result(c->config.arg, &result);
	}
}

static void unlink_block(struct pl_mark_correlator *c, uint32_t i)
{
	struct block *b = &c->blocks[i];
	uint32_t *at = &c->places[place_of(c, &b->flow, b->block)];

	while (*at != i)
		at = &c->blocks[*at].chain;
	*at = b->chain;
	*(b->older != NO_BLOCK ? &c->blocks[b->older].newer : &c->oldest) = b->newer;
	*(b->newer != NO_BLOCK ? &c->blocks[b->newer].older : &c->newest) = b->older;
}

static void forget(struct pl_mark_correlator *c, uint32_t i)
{
	struct block *b = &c->blocks[i];

	unlink_block(c, i);
	if (c->config.shares)
		pl_shares_give(&c->shares, b->share);
	while (b->samples != NO_SAMPLE) {
		const uint32_t sample = b->samples;

		b->samples = c->samples[sample].next;
		c->samples[sample].next = c->free_sample;
		c->free_sample = sample;
	}
	b->used = false;
	b->chain = c->free_block;
	c->free_block = i;
}

/* Frees a block's place; if its results were not given yet, gives them first. */
static void push_out(struct pl_mark_correlator *c, uint32_t i)
{
	struct block *b = &c->blocks[i];

	if (!b->told) {
		c->stats.pushed_out++;
		tell(c, b);
	}
	forget(c, i);
}

/* Chooses among LOOK blocks one to push out for a sender that holds `held`: one whose results were
 * given, or one of the sender that holds most, two more at least; NO_BLOCK: none. */
static uint32_t choose(struct pl_mark_correlator *c, uint32_t held)
{
	uint32_t best = NO_BLOCK, most = held + 1;

	for (uint32_t k = 0; k < LOOK && k < c->n_blocks; k++) {
		const uint32_t i = c->hand++ % c->n_blocks;
		const struct block *b = &c->blocks[i];
		uint32_t holds;

		if (!b->used)
			continue;
		if (b->told)
			return i;
		holds = pl_shares_at(&c->shares, b->share)->held;
		if (holds > most) {
			most = holds;
			best = i;
		}
	}
	return best;
}

static bool make_place(struct pl_mark_correlator *c, const struct pl_addr *source)
{
	uint32_t i = c->oldest;

	if (c->free_block != NO_BLOCK)
		return true;
	if (c->config.shares)
		i = choose(c, pl_shares_held(&c->shares, source));
	if (i != NO_BLOCK)
		push_out(c, i);
	return i != NO_BLOCK;
}

/* Adds a block in a free place. */
static uint32_t add_block(struct pl_mark_correlator *c, const struct pl_addr *source,
	const struct pl_mark_flow *flow, const struct pl_mark128 *r)
{
	const uint32_t place = place_of(c, flow, r->block);
	const uint64_t kept = r->period_ns * (r->method == PL_MARK_PULSE ? PULSE_LOOK_BACK + 1 : 2);
	struct block *b;
	uint32_t i;

	i = c->free_block;
	b = &c->blocks[i];
	c->free_block = b->chain;
	*b = (struct block){ .flow = *flow,
		.samples = NO_SAMPLE,
		.block = r->block,
		.period_ns = r->period_ns,
		.deadline_ns = pl_mark_deadline(c, r),
		.older = c->newest,
		.newer = NO_BLOCK,
		.chain = c->places[place],
		.used = true };
	if (c->config.shares)
		b->share = pl_shares_take(&c->shares, source);
	b->end_ns = b->deadline_ns > UINT64_MAX - kept ? UINT64_MAX : b->deadline_ns + kept;
	c->places[place] = i;
	*(c->newest != NO_BLOCK ? &c->blocks[c->newest].newer : &c->oldest) = i;
	c->newest = i;
	if (b->deadline_ns < c->due_ns)
		c->due_ns = b->deadline_ns;
	return i;
}

static bool has_reported(const struct pl_mark_correlator *c, const struct block *b, uint32_t point)
{
	for (uint32_t i = b->samples; i != NO_SAMPLE; i = c->samples[i].next) {
		if (c->samples[i].point == point)
			return true;
	}
	return false;
}

static struct pl_mark_flow flow_of(const struct pl_mark128 *r)
{
	const bool has_id = (r->mark_flags & PL_MARK_HAS_FLOW_ID) != 0;

	return (struct pl_mark_flow){ .src = r->src,
		.dst = r->dst,
		.sport = r->sport,
		.dport = r->dport,
		.proto = r->proto,
		.has_flow_id = has_id,
		.flow_id = has_id ? r->flow_id : 0 };
}

static void take(
	struct pl_mark_correlator *c, uint32_t i, uint32_t point, const struct pl_mark128 *record)
{
	struct block *b = &c->blocks[i];
	const uint32_t at = c->free_sample;
	struct sample *s = &c->samples[at];

	c->free_sample = s->next;
	*s = (struct sample){ .point = point, .next = b->samples, .record = *record };
	b->samples = at;
	b->n_samples++;
	c->stats.taken++;
	/* Done also while a point's record of the block is missing, because later blocks may be
	 * reported first. */
	if ((record->mark_flags & PL_MARK_IS_BEYOND) != 0)
		note_beyond(c, b->block);
	if (b->n_samples == c->n_points)
		tell(c, b);
}

/* Returns true when a record's place is free, pushing out other blocks if needed, never block i. */
static bool has_sample(struct pl_mark_correlator *c, const struct pl_addr *source, uint32_t i)
{
	while (c->free_sample == NO_SAMPLE) {
		const uint32_t goes = c->config.shares
					      ? choose(c, pl_shares_held(&c->shares, source))
					      : c->oldest;

		if (goes == NO_BLOCK || goes == i)
			return false;
		push_out(c, goes);
	}
	return true;
}

void pl_mark_correlate(struct pl_mark_correlator *c, const struct pl_mark128 *record)
{
	static const struct pl_addr nobody;

	pl_mark_correlate_from(c, &nobody, record);
}

void pl_mark_correlate_from(
	struct pl_mark_correlator *c, const struct pl_addr *sender, const struct pl_mark128 *record)
{
	const struct pl_addr source = pl_addr_source(sender);
	const uint32_t point = pl_mark_place_of_point(c, record->point);
	struct pl_mark_flow flow;
	uint32_t i;

	c->stats.records++;
	if (!pl_mark_record_is_usable(record)) {
		c->stats.unusable++;
		return;
	}
	if (point == UINT32_MAX) {
		c->stats.other_points++;
		return;
	}
	if (pl_mark_is_ahead(c, record)) {
		c->stats.ahead++;
		return;
	}
	c->tai[point] = record->tai_offset + 1u;
	pl_mark_note_fast(c, point, record);
	if (c->config.absent)
		pl_mark_note_seen(c, point, &source, record);
	flow = flow_of(record);
	i = find(c, &flow, record->block);
	if (i != NO_BLOCK && has_reported(c, &c->blocks[i], point)) {
		c->stats.duplicates++;
		return;
	}
	if ((i != NO_BLOCK && c->blocks[i].told) ||
		(i == NO_BLOCK && pl_mark_deadline(c, record) < c->until_ns)) {
		c->stats.late++;
		return;
	}
	if (!has_sample(c, &source, i) || (i == NO_BLOCK && !make_place(c, &source))) {
		c->stats.without_room++;
		return;
	}
	if (i == NO_BLOCK)
		i = add_block(c, &source, &flow, record);
	take(c, i, point, record);
}

static bool is_due(struct pl_mark_correlator *c, struct block *b, uint64_t time_ns)
{
	return !b->told && b->deadline_ns < time_ns &&
	       (time_ns == UINT64_MAX || !pl_mark_postpone(c, b) || b->deadline_ns < time_ns);
}

void pl_mark_correlate_until(struct pl_mark_correlator *c, uint64_t time_ns)
{
	uint32_t i = c->oldest;

	if (time_ns > c->until_ns)
		c->until_ns = time_ns;
	while (i != NO_BLOCK) {
		struct block *b = &c->blocks[i];
		const uint32_t newer = b->newer;

		if (is_due(c, b, time_ns))
			tell(c, b);
		/* Blocks arrive in about the order of their numbers: behind the first one that
		 * stays, few could be dropped. */
		if (b->end_ns >= time_ns)
			break;
		forget(c, i);
		i = newer;
	}
	/* All blocks are checked only when one may be due, not for each datagram. */
	if (time_ns <= c->due_ns)
		return;
	c->due_ns = UINT64_MAX;
	for (; i != NO_BLOCK; i = c->blocks[i].newer) {
		struct block *b = &c->blocks[i];

		if (is_due(c, b, time_ns))
			tell(c, b);
		if (!b->told && b->deadline_ns < c->due_ns)
			c->due_ns = b->deadline_ns;
	}
}

void pl_mark_correlator_begin_anew(struct pl_mark_correlator *c, uint64_t time_ns)
{
	pl_mark_correlate_until(c, UINT64_MAX);
	while (c->oldest != NO_BLOCK)
		forget(c, c->oldest);
	memset(c->fast, 0, c->n_points * sizeof(*c->fast));
	if (c->config.absent)
		memset(c->seen, 0, (size_t)c->n_points * SEEN_BLOCKS * sizeof(*c->seen));
	c->until_ns = time_ns;
}

void pl_mark_correlator_set_clock(struct pl_mark_correlator *c, uint64_t clock_ns)
{
	c->config.clock_ns = clock_ns;
}

const struct pl_mark_correlator_stats *pl_mark_correlator_stats(const struct pl_mark_correlator *c)
{
	return &c->stats;
}
