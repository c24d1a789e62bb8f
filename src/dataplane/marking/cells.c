/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the counters and registers in which tables count a block. */
#include "dataplane/marking/cells.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "dataplane/pipeline_state.h"

#define BLOCKS 4u
/* Values of the field mark. */
#define MARKS  256u

enum part { PACKETS, LATE, EARLY, BEYOND, PULSES, BYTES, SUM, FIRST, PULSE, PARTS };

static const struct {
	const char *name;
	enum pl_dp_cells kind;
} parts[PARTS] = {
	[PACKETS] = { "packets", PL_DP_COUNTERS },
	[LATE] = { "late", PL_DP_COUNTERS },
	[EARLY] = { "early", PL_DP_COUNTERS },
	[BEYOND] = { "beyond", PL_DP_COUNTERS },
	[PULSES] = { "pulses", PL_DP_COUNTERS },
	[BYTES] = { "bytes", PL_DP_REGISTERS },
	[SUM] = { "sum", PL_DP_REGISTERS },
	[FIRST] = { "first", PL_DP_REGISTERS },
	[PULSE] = { "pulse", PL_DP_REGISTERS },
};

struct pl_dp_block_cells {
	struct pl_dp_pipeline *p;
	char table[PL_DP_NAME_MAX + 1];
	bool running; /* method pulse: packets and bytes are running numbers */
	const struct pl_dp_cells_state *of[PARTS]; /* NULL: absent */
	uint32_t flows;                            /* number of flows in a block */
	uint64_t *base[PARTS];                     /* value of each cell when its block began */
	struct {
		uint64_t flow;  /* hash of the flow that has the number; 0: none */
		uint64_t whole; /* first block during all of which it had the number */
	} owners[MARKS];
};

/* ---- making ---- */

static int find_part(
	struct pl_dp_block_cells *c, enum part i, const char *prefix, struct pl_diag *diag)
{
	const bool snapshot = c->running && (i == PACKETS || i == BYTES);
	const enum pl_dp_cells kind = snapshot ? PL_DP_REGISTERS : parts[i].kind;
	char name[PL_DP_NAME_MAX + 16];
	const struct pl_dp_cells_state *s;

	snprintf(name, sizeof(name), "%s.%s", prefix, parts[i].name);
	s = pl_dp_cells_find(c->p, kind, name, strlen(name));
	c->of[i] = s;
	if (s == NULL && i == PACKETS) {
		pl_diag_set(diag, "there is no %s \"%s\"",
			kind == PL_DP_COUNTERS ? "counter" : "register", name);
		return -EINVAL;
	}
	if (s == NULL)
		return 0;
	if (s->size % BLOCKS != 0 || s->size != c->of[PACKETS]->size || s->size > MARKS * BLOCKS) {
		pl_diag_set(diag,
			"\"%s\" has %" PRIu32
			" cells: as many as %s.packets, 4 for each flow, 1024 at most",
			name, s->size, prefix);
		return -EINVAL;
	}
	c->base[i] = calloc(s->size, sizeof(*c->base[i]));
	return c->base[i] != NULL ? 0 : -ENOMEM;
}

int pl_dp_block_cells_new(struct pl_dp_block_cells **ret, struct pl_dp_pipeline *p,
	const char *prefix, const char *table, uint8_t method, struct pl_diag *diag)
{
	struct pl_dp_block_cells *c;
	int r = 0;

	if (pl_dp_table_index(p, table) < 0) {
		pl_diag_set(diag, "there is no table \"%s\"", table);
		return -EINVAL;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->p = p;
	c->running = method == PL_MARK_PULSE;
	snprintf(c->table, sizeof(c->table), "%s", table);
	for (enum part i = 0; r == 0 && i < PARTS; i++)
		r = find_part(c, i, prefix, diag);
	if (r < 0) {
		pl_dp_block_cells_free(c);
		return r;
	}
	c->flows = c->of[PACKETS]->size / BLOCKS;
	*ret = c;
	return 0;
}

void pl_dp_block_cells_free(struct pl_dp_block_cells *c)
{
	if (c == NULL)
		return;
	for (enum part i = 0; i < PARTS; i++)
		free(c->base[i]);
	free(c);
}

/* ---- counts ---- */

static uint64_t now_of(const struct pl_dp_block_cells *c, enum part i, uint32_t at)
{
	const struct pl_dp_cells_state *s = c->of[i];

	if (s == NULL)
		return 0;
	return s->counters != NULL ? s->counters[at][0] : s->registers[at];
}

static uint64_t since(const struct pl_dp_block_cells *c, enum part i, uint32_t at)
{
	return c->of[i] != NULL ? now_of(c, i, at) - c->base[i][at] : 0;
}

/* Begins a block. Returns the number of packets counted in its cells that belong to no block. */
static uint64_t begin_block(struct pl_dp_block_cells *c, uint64_t block)
{
	const enum part counted = c->running ? PULSES : PACKETS;
	uint64_t stray = 0;

	for (uint32_t n = 0; n < c->flows; n++) {
		const uint32_t at = (uint32_t)(block % BLOCKS) * c->flows + n;

		stray += since(c, counted, at);
		for (enum part i = 0; i < PARTS; i++) {
			if (c->of[i] != NULL)
				c->base[i][at] = now_of(c, i, at);
		}
	}
	return stray;
}

bool pl_dp_block_cells_same(const struct pl_dp_block_cells *a, const struct pl_dp_block_cells *b)
{
	bool same = strcmp(a->table, b->table) == 0;

	for (enum part i = 0; same && i < PARTS; i++) {
		const struct pl_dp_cells_state *x = a->of[i], *y = b->of[i];

		same = x == NULL || y == NULL ? x == y
					      : x->size == y->size && strcmp(x->name, y->name) == 0;
	}
	return same;
}

void pl_dp_block_cells_inherit(struct pl_dp_block_cells *c, const struct pl_dp_block_cells *old)
{
	for (enum part i = 0; i < PARTS; i++) {
		if (c->of[i] != NULL)
			memcpy(c->base[i], old->base[i], c->of[i]->size * sizeof(*c->base[i]));
	}
	memcpy(c->owners, old->owners, sizeof(c->owners));
}

/* Converts the time in a register to an offset in the block; false when it is of another block.
 * Packets may be half a period early or late. */
static bool offset_of(const struct pl_dp_block_cells *c, enum part i, uint32_t at, uint64_t block,
	uint64_t period_ns, int64_t *ret)
{
	const uint64_t time = now_of(c, i, at), begin = block * period_ns;

	if (time < begin - period_ns / 2 || time >= begin + period_ns + period_ns / 2)
		return false;
	*ret = (int64_t)(time - begin);
	return true;
}

static void read_cell(const struct pl_dp_block_cells *c, struct pl_mark_cell *ret, uint64_t block,
	uint32_t n, uint64_t period_ns)
{
	const uint32_t at = (uint32_t)(block % BLOCKS) * c->flows + n;

	*ret = (struct pl_mark_cell){ .block = block,
		.early = (uint32_t)since(c, EARLY, at),
		.pulses = (uint32_t)since(c, PULSES, at) };
	if (ret->pulses > 0)
		(void)offset_of(c, PULSE, at, block, period_ns, &ret->pulse_ns);
	if (c->running) {
		if (ret->pulses == 0)
			return;
		ret->packets = now_of(c, PACKETS, at);
		ret->bytes = now_of(c, BYTES, at);
		ret->first_ns = ret->pulse_ns;
		return;
	}
	ret->packets = since(c, PACKETS, at);
	ret->bytes = since(c, BYTES, at);
	ret->late = (uint32_t)since(c, LATE, at);
	ret->beyond = (uint32_t)since(c, BEYOND, at);
	/* Sums are modulo 2^64: the difference is exact, because the sum of offsets fits. */
	if (c->of[SUM] != NULL)
		ret->sum_ns = (int64_t)(since(c, SUM, at) - ret->packets * block * period_ns);
	if (ret->packets > 0)
		(void)offset_of(c, FIRST, at, block, period_ns, &ret->first_ns);
}

/* ---- flows ---- */

/* Returns the mark that the actions set; 256: none. */
static uint32_t mark_of(const struct pl_dp_actions *a)
{
	uint32_t mark = MARKS;

	for (unsigned int i = 0; a != NULL && i < a->n; i++) {
		if (a->steps[i].action == PL_DP_ACTION_MARK)
			mark = (uint32_t)a->steps[i].value[0];
	}
	return mark;
}

static void flow_of(
	struct pl_mark_flow *ret, const struct pl_dp_key *key, const struct pl_dp_match *m)
{
	*ret = (struct pl_mark_flow){ .proto = 0 };
	for (unsigned int i = 0; i < key->n; i++) {
		const uint64_t *v = &m->value[key->fields[i].at];

		switch (key->fields[i].field) {
		case PL_DP_FIELD_IP_SRC:
			ret->src = pl_dp_addr_of(v);
			break;
		case PL_DP_FIELD_IP_DST:
			ret->dst = pl_dp_addr_of(v);
			break;
		case PL_DP_FIELD_IP_PROTO:
			ret->proto = (uint8_t)*v;
			break;
		case PL_DP_FIELD_L4_SRC:
			ret->sport = (uint16_t)*v;
			break;
		case PL_DP_FIELD_L4_DST:
			ret->dport = (uint16_t)*v;
			break;
		default:
			break;
		}
	}
}

/* Returns the next flow with a new number; the table's miss comes after the entries. */
static bool next_flow(const struct pl_dp_block_cells *c, size_t *i, bool told[MARKS],
	uint32_t *ret_n, struct pl_mark_flow *ret)
{
	const struct pl_dp_table *t = c->p->tables[pl_dp_table_index(c->p, c->table)];

	while (*i <= t->n) {
		const struct pl_dp_entry *e = *i < t->n ? t->entries[*i] : NULL;
		const uint32_t n = mark_of(e != NULL ? e->actions : t->miss);

		++*i;
		if (n >= c->flows || told[n])
			continue;
		told[n] = true;
		*ret_n = n;
		*ret = (struct pl_mark_flow){ .proto = 0 };
		if (e != NULL)
			flow_of(ret, &t->key, &e->match);
		return true;
	}
	return false;
}

/* Assigns number n to a flow. When it was another flow's, blocks before `whole` are partial: they
 * may have counts of both. */
static void own(
	struct pl_dp_block_cells *c, uint32_t n, const struct pl_mark_flow *flow, uint64_t whole)
{
	const uint64_t hash = pl_hash(flow, sizeof(*flow), 0) | 1;

	if (c->owners[n].flow == hash)
		return;
	c->owners[n].flow = hash;
	c->owners[n].whole = whole;
}

bool pl_dp_block_cells_leave(const struct pl_dp_block_cells *c)
{
	return c->p->tables[pl_dp_table_index(c->p, c->table)]->stage == PL_DP_EGRESS;
}

void pl_dp_block_cells_begin(struct pl_dp_block_cells *c)
{
	bool told[MARKS] = { false };
	struct pl_mark_flow flow;
	size_t i = 0;
	uint32_t n;

	for (uint64_t block = 0; block < BLOCKS; block++)
		(void)begin_block(c, block);
	while (next_flow(c, &i, told, &n, &flow))
		own(c, n, &flow, 0);
}

uint64_t pl_dp_block_cells_read(struct pl_dp_block_cells *c, const struct pl_mark_point *point,
	uint64_t block, void (*record)(void *arg, const struct pl_mark128 *record), void *arg)
{
	bool told[MARKS] = { false };
	struct pl_mark_flow flow;
	size_t i = 0;
	uint32_t n;

	while (next_flow(c, &i, told, &n, &flow)) {
		struct pl_mark_cell cell;
		struct pl_mark128 r;

		own(c, n, &flow, block + 2);
		read_cell(c, &cell, block, n, point->period_ns);
		pl_mark_record(&r, point, &flow, block, &cell);
		if (block < c->owners[n].whole)
			r.mark_flags |= PL_MARK_IS_PARTIAL;
		record(arg, &r);
	}
	for (n = 0; n < c->flows; n++) {
		if (!told[n])
			c->owners[n].flow = 0;
	}
	return begin_block(c, block + 2);
}
