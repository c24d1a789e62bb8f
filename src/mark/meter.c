/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps flows in an open-addressed table, each with four tagged cells. */
#include "mark/meter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define FLOWS_MAX   65536u
#define IDLE_BLOCKS 10u
/* Blocks that are read one by one when the clock jumps ahead. */
#define JUMP_BLOCKS 64u

struct flow {
	struct pl_mark_flow key;
	uint64_t first, last;    /* first and last block with packets */
	uint64_t packets, bytes; /* all so far; used by pulse marking */
	uint64_t pulsed;         /* block of the last pulse that was sent */
	bool kept;               /* known before its first packet, and never forgotten */
	struct pl_mark_cell cells[PL_MARK_CELLS];
};

struct pl_mark_meter {
	struct pl_mark_meter_config config;
	struct pl_mark_meter_stats stats;
	struct flow *flows; /* present flows, in the order of arrival */
	uint32_t *places;   /* hash table: index into flows, plus 1 */
	uint32_t n, mask;
	uint64_t seed;
	uint64_t next;    /* next block to be read; 0: no packet came yet */
	uint64_t no_room; /* last block in which a flow found no room */
};

const struct pl_stats pl_mark_meter_stats_list = {
	.rows =
		(const struct pl_stat[]){
#define PL_STAT(...) PL_STAT_ROW(struct pl_mark_meter_stats, __VA_ARGS__)
#include "mark/meter_stats.def"
#undef PL_STAT
		},
	.n = sizeof(struct pl_mark_meter_stats) / sizeof(uint64_t),
};

int pl_mark_meter_new(
	struct pl_mark_meter **ret, const struct pl_mark_meter_config *config, struct pl_diag *diag)
{
	struct pl_mark_meter *m;
	uint32_t room = 4;

	if (config->point.period_ns < PL_MARK_PERIOD_MIN_NS ||
		config->point.period_ns > PL_MARK_PERIOD_MAX_NS)
		return pl_diag_fail(diag, -EINVAL, "a period of %.9g s: from 1 us to 1 h",
			(double)config->point.period_ns / 1e9);
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	m->config = *config;
	if (m->config.flows_max == 0)
		m->config.flows_max = FLOWS_MAX;
	if (m->config.idle_blocks == 0)
		m->config.idle_blocks = IDLE_BLOCKS;
	while (room < m->config.flows_max + m->config.flows_max / 2 && room < UINT32_C(1) << 31)
		room *= 2;
	m->mask = room - 1;
	m->seed = pl_hash_seed();
	m->flows = calloc(m->config.flows_max, sizeof(*m->flows));
	m->places = calloc(room, sizeof(*m->places));
	if (m->flows == NULL || m->places == NULL) {
		pl_mark_meter_free(m);
		return -ENOMEM;
	}
	*ret = m;
	return 0;
}

void pl_mark_meter_free(struct pl_mark_meter *m)
{
	if (m == NULL)
		return;
	free(m->flows);
	free(m->places);
	free(m);
}

/* ---- the table ---- */

/* Returns the place of the flow, or the free place where it belongs. */
static uint32_t place_of(const struct pl_mark_meter *m, const struct pl_mark_flow *key)
{
	uint32_t at = (uint32_t)pl_hash(key, sizeof(*key), m->seed) & m->mask;

	while (m->places[at] != 0 &&
		memcmp(&m->flows[m->places[at] - 1].key, key, sizeof(*key)) != 0)
		at = (at + 1) & m->mask;
	return at;
}

static void fill_places(struct pl_mark_meter *m)
{
	memset(m->places, 0, ((size_t)m->mask + 1) * sizeof(*m->places));
	for (uint32_t i = 0; i < m->n; i++)
		m->places[place_of(m, &m->flows[i].key)] = i + 1;
}

static struct flow *flow_of(struct pl_mark_meter *m, const struct pl_mark_flow *key)
{
	const uint32_t at = place_of(m, key);
	struct flow *f;

	if (m->places[at] != 0)
		return &m->flows[m->places[at] - 1];
	if (m->n == m->config.flows_max)
		return NULL;
	f = &m->flows[m->n++];
	memset(f, 0, sizeof(*f));
	f->key = *key;
	f->first = UINT64_MAX;
	m->places[at] = m->n;
	m->stats.flows = m->n;
	return f;
}

/* ---- reading ---- */

static void forget_idle(struct pl_mark_meter *m, uint64_t block)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		if (!m->flows[i].kept && m->flows[i].last + m->config.idle_blocks <= block)
			continue;
		if (kept != i)
			m->flows[kept] = m->flows[i];
		kept++;
	}
	if (kept == m->n)
		return;
	m->n = kept;
	m->stats.flows = kept;
	fill_places(m);
}

static void read_block(struct pl_mark_meter *m, uint64_t block)
{
	struct pl_mark_point point = m->config.point;
	struct pl_mark128 record;

	if (m->no_room >= block && m->no_room != 0)
		point.flags |= PL_MARK_NO_ROOM;
	for (uint32_t i = 0; i < m->n; i++) {
		const struct flow *f = &m->flows[i];

		if (f->first > block)
			continue;
		pl_mark_record(&record, &point, &f->key, block, &f->cells[block % PL_MARK_CELLS]);
		m->config.record(m->config.arg, &record);
		m->stats.records++;
	}
	forget_idle(m, block);
}

void pl_mark_meter_until(struct pl_mark_meter *m, uint64_t time_ns)
{
	const struct pl_mark_point *p = &m->config.point;
	const uint64_t now = time_ns / p->period_ns;

	if (m->next == 0)
		return;
	for (unsigned int i = 1;
		m->n > 0 && pl_mark_read_at(p->method, m->next, p->period_ns) <= time_ns; i++) {
		read_block(m, m->next++);
		/* By then all counts are read and idle flows forgotten; flows kept for good would
		 * have a record for every block of the jump. */
		if (i == m->config.idle_blocks + PL_MARK_CELLS && now > m->next + JUMP_BLOCKS)
			m->next = now - JUMP_BLOCKS;
	}
	/* Skips blocks that no flow has, so that a time far ahead takes no longer. */
	if (pl_mark_read_at(p->method, m->next, p->period_ns) <= time_ns)
		m->next =
			(time_ns - p->period_ns / 2) / p->period_ns + 1 - pl_mark_reach(p->method);
}

void pl_mark_meter_finish(struct pl_mark_meter *m)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < m->n; i++)
		last = m->flows[i].last > last ? m->flows[i].last : last;
	while (m->n > 0 && m->next <= last)
		read_block(m, m->next++);
	m->n = 0;
	m->stats.flows = 0;
	m->next = 0;
	fill_places(m);
}

/* ---- counting ---- */

static bool is_time(const struct pl_mark_meter *m, uint64_t time_ns)
{
	return time_ns / m->config.point.period_ns > pl_mark_reach(m->config.point.method) &&
	       time_ns <= UINT64_MAX / 4;
}

static void count_pulse_marking(struct flow *f, const struct pl_mark_seen *seen)
{
	struct pl_mark_cell *c = &f->cells[seen->block % PL_MARK_CELLS];

	pl_mark_cell_pulse(c, seen);
	if (c->pulses > 1)
		return;
	pl_mark_cell_snapshot(c, seen, f->packets, f->bytes);
}

void pl_mark_meter_count(struct pl_mark_meter *m, const struct pl_mark_flow *flow, uint64_t time_ns,
	unsigned int bits, uint32_t packets, uint64_t bytes)
{
	const struct pl_mark_point *point = &m->config.point;
	const bool running = point->method == PL_MARK_PULSE;
	struct pl_mark_seen seen = pl_mark_see(point->method, time_ns, point->period_ns, bits);
	struct flow *f;

	if (running && (bits & 1) == 0)
		seen = pl_mark_seen_at(
			time_ns, point->period_ns, time_ns / point->period_ns, PL_MARK_ON_TIME, 0);
	m->stats.packets += packets;
	if (!is_time(m, time_ns)) {
		m->stats.bad_time += packets;
		return;
	}
	pl_mark_meter_until(m, time_ns);
	if (m->next == 0)
		m->next = time_ns / point->period_ns - pl_mark_reach(point->method);
	/* Times of a capture may go back by a little. */
	if (seen.block < m->next) {
		m->stats.too_late += packets;
		return;
	}
	f = flow_of(m, flow);
	if (f == NULL) {
		m->stats.without_room += packets;
		m->no_room = seen.block > m->no_room ? seen.block : m->no_room;
		return;
	}
	m->stats.counted += packets;
	f->first = seen.block < f->first ? seen.block : f->first;
	f->last = seen.block > f->last ? seen.block : f->last;
	f->packets += packets;
	f->bytes += bytes;
	if (running && seen.pulse == 0)
		return;
	if (running) {
		count_pulse_marking(f, &seen);
		return;
	}
	pl_mark_cell_count(&f->cells[seen.block % PL_MARK_CELLS], &seen, packets, bytes,
		point->period_ns, m->config.guard_ns);
	if (seen.pulse != 0)
		pl_mark_cell_pulse(&f->cells[seen.block % PL_MARK_CELLS], &seen);
}

unsigned int pl_mark_meter_send(struct pl_mark_meter *m, const struct pl_mark_flow *flow,
	uint64_t time_ns, uint32_t packets, uint64_t bytes)
{
	const struct pl_mark_point *point = &m->config.point;
	const uint64_t block = time_ns / point->period_ns;
	unsigned int bits = pl_mark_bits(point->method, block, 0);
	struct flow *f = NULL;

	if (is_time(m, time_ns)) {
		pl_mark_meter_until(m, time_ns);
		f = flow_of(m, flow);
	}
	if (f != NULL)
		bits = pl_mark_send(
			&f->pulsed, point->method, point->period_ns, m->config.guard_ns, time_ns);
	pl_mark_meter_count(m, flow, time_ns, bits, packets, bytes);
	return bits;
}

int pl_mark_meter_follow(struct pl_mark_meter *m, const struct pl_mark_flow *flow, uint64_t time_ns)
{
	const uint64_t block = time_ns / m->config.point.period_ns;
	struct flow *f;

	if (!is_time(m, time_ns))
		return -EINVAL;
	pl_mark_meter_until(m, time_ns);
	if (m->next == 0)
		m->next = block - pl_mark_reach(m->config.point.method);
	f = flow_of(m, flow);
	if (f == NULL)
		return -ENOSPC;
	f->kept = true;
	f->first = block < f->first ? block : f->first;
	f->last = block > f->last ? block : f->last;
	return 0;
}

const struct pl_mark_meter_stats *pl_mark_meter_stats(const struct pl_mark_meter *m)
{
	return &m->stats;
}
