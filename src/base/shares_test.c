/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources with more than their share of a table make room, and only they; who is a source. */
#include "base/shares.h"

#include "base/hash.h"
#include "base/num.h"
#include "base/test.h"

enum { ROOM = 64 };

struct cell {
	uint64_t key;
	uint64_t seen_ns;
	uint32_t share;
	uint32_t of;
};

static struct pl_cells table;
static struct pl_shares shares;
static uint32_t hand;
static uint64_t now, keys;

static struct pl_addr address(uint32_t n)
{
	uint8_t b[4] = { 10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n };

	return pl_addr_v4(b);
}

static struct pl_share_entry entry_of(const void *arg, const void *cell)
{
	const struct cell *c = cell;
	const uint64_t *idle = arg;

	return (struct pl_share_entry){
		.share = c->share, .seen_ns = c->seen_ns, .idle = now - c->seen_ns > *idle
	};
}

static bool ask(uint32_t of, uint64_t idle)
{
	const struct pl_addr source = address(of);
	const uint64_t key = ++keys;
	uint32_t cell;
	struct cell *c;

	if (pl_cells_count(&table) == table.cap) {
		cell = pl_shares_choose(&shares, &table, &hand, pl_shares_held(&shares, &source),
			false, entry_of, &idle);
		if (cell == PL_CELL_NONE)
			return false;
		pl_shares_give(&shares, ((struct cell *)pl_cells_at(&table, cell))->share);
		pl_cells_remove(&table, cell);
	}
	cell = pl_cells_insert(&table, pl_hash(&key, 8, 1), &key, 8);
	c = pl_cells_at(&table, cell);
	c->seen_ns = now;
	c->of = of;
	c->share = pl_shares_take(&shares, &source);
	return true;
}

static uint32_t held(uint32_t of)
{
	const struct pl_addr source = address(of);
	uint32_t n = 0, pos = 0;
	const struct cell *c;

	while ((c = pl_cells_next(&table, &pos)) != NULL)
		n += c->of == of;
	eq(pl_shares_held(&shares, &source), n, "the account of source %u", of);
	return n;
}

static void begin(void)
{
	if (pl_cells_init(&table, ROOM, sizeof(struct cell)) < 0 ||
		pl_shares_init(&shares, ROOM) < 0)
		abort();
	hand = 0;
	now = 1000;
}

static void end(void)
{
	pl_cells_done(&table);
	pl_shares_done(&shares);
}

static void fair(void)
{
	begin();
	for (unsigned int i = 0; i < 10 * ROOM; i++)
		(void)ask(1, 1000);
	eq(held(1), ROOM, "alone, a source has all of it");
	for (unsigned int i = 0; i < 5; i++)
		ok(ask(2, 1000), "another one gets what it asks for");
	for (unsigned int i = 0; i < 10 * ROOM; i++)
		(void)ask(1, 1000);
	eq(held(2), 5, "and keeps it, however much the first asks for");
	for (unsigned int i = 0; i < 100 * ROOM; i++)
		(void)ask(3, 1000);
	eq(held(2), 5);
	ok(held(1) >= 29 && held(3) >= 29, "two that ask for more share the rest: %u and %u",
		held(1), held(3));
	end();
}

static void idle(void)
{
	begin();
	for (unsigned int i = 0; i < ROOM; i++)
		ok(ask(i, 1000));
	ok(!ask(ROOM, 1000), "who holds one keeps it");
	now += 2000;
	ok(ask(ROOM, 1000), "but for who is idle");
	end();
}

/* A small host beside 10,000 random requests of one source, whatever the order. */
static void stream(void)
{
	uint64_t rng = 7;
	unsigned int refused = 0;

	begin();
	for (unsigned int i = 0; i < 10000; i++) {
		rng = rng * 6364136223846793005u + 1442695040888963407u;
		now++;
		if (rng >> 60 == 0 && held(2) < 8)
			refused += !ask(2, 100000);
		else
			(void)ask(1, 100000);
	}
	eq(refused, 0, "nobody who holds little is refused");
	eq(held(2), 8);
	end();
}

static struct pl_addr parsed(const char *text)
{
	struct pl_addr a;

	if (pl_parse_addr(text, &a) < 0)
		abort();
	return pl_addr_source(&a);
}

static bool same(const char *a, const char *b)
{
	const struct pl_addr x = parsed(a), y = parsed(b);

	return pl_addr_equal(&x, &y);
}

int main(void)
{
	fair();
	idle();
	stream();
	ok(!same("10.0.0.1", "10.0.0.2") && same("10.0.0.1", "10.0.0.1"), "an IPv4 host");
	ok(same("2001:db8::1", "2001:db8::ffff:1") && !same("2001:db8::1", "2001:db8:0:1::1"),
		"an IPv6 network");
	ok(!same("fe80::1", "fe80::2"), "on a link each host is its own");
	return pl_test_done();
}
