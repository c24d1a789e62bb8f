/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of reporters: whose it is when one host has many ports. */
#include "base/test.h"
#include "dta/senders.h"

enum { ROOM = 32 };
#define MS UINT64_C(1000000)

static struct pl_senders senders;
static uint64_t now_ns = 1000 * MS;

static struct pl_sender *hear(unsigned int host, unsigned int port)
{
	const uint8_t b[4] = { 10, 9, 0, (uint8_t)host };
	const struct pl_addr addr = pl_addr_v4(b);

	now_ns += 1000;
	return pl_senders_find(&senders, &addr, (uint16_t)port, PL_DTA_PATHLINE, now_ns);
}

static void begin(void)
{
	if (pl_senders_init(&senders, ROOM, 60000 * MS, 0, 0) < 0)
		abort();
}

/* Who is heard once makes room for anybody. */
static void once(void)
{
	struct pl_sender *x;

	begin();
	for (unsigned int port = 1; port <= 4000; port++)
		ok(hear(1, port) != NULL, "nobody is refused");
	x = hear(2, 1);
	ok(x != NULL, "nor one of another host");
	x->expected = 77;
	for (unsigned int port = 1; port <= 500; port++)
		(void)hear(1, port);
	x = hear(2, 1);
	ok(x != NULL && x->expected == 77 && x->again, "who is remembered beside it");
	pl_senders_done(&senders);
}

/* Who goes on sending keeps its host's share, and no more. */
static void often(void)
{
	unsigned int refused = 0, kept = 0;

	begin();
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int port = 1; port <= ROOM; port++)
			ok(hear(1, port) != NULL, "a host alone has all there is");
	}
	for (unsigned int port = ROOM + 1; port <= 2 * ROOM; port++)
		refused += hear(1, port) == NULL;
	eq(refused, ROOM, "and no more");
	for (unsigned int host = 2; host < 10; host++) {
		struct pl_sender *x = hear(host, 9);

		ok(x != NULL, "another one has its place beside it");
		x->expected = host;
		(void)hear(host, 9);
	}
	eq(senders.displaced, 8);
	for (unsigned int port = 1; port <= 1000; port++)
		(void)hear(1, port);
	for (unsigned int host = 2; host < 10; host++) {
		struct pl_sender *x = hear(host, 9);

		kept += x != NULL && x->expected == host;
	}
	eq(kept, 8, "and keeps it");
	now_ns += 61000 * MS;
	ok(hear(1, 5000) != NULL, "who was silent for long makes room");
	pl_senders_done(&senders);
}

int main(void)
{
	once();
	often();
	return pl_test_done();
}
