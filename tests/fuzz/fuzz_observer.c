/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An observer of QUIC and datagrams of any bytes. First three bytes: N and X, room and whether any
 * port will do, which bits are where; then datagrams: a byte of direction, connection and port, one
 * of time, one of ECN and how many bytes a capture left out, one of length, the bytes. Whatever comes,
 * every datagram is counted once, every short header is in one direction's packets, and results make
 * sense.
 */
#include "fuzz.h"
#include "mark/observer.h"

struct sums {
	uint64_t packets, directions;
};

static bool is_share(double v)
{
	return v >= 0 && v <= 1;
}

static void told(void *arg, const struct pl_observed *one)
{
	const struct pl_efm_result *r = &one->efm;
	struct sums *s = arg;

	must(one->packets > 0 && one->first_ns <= one->last_ns && one->congested <= one->packets);
	must(one->edges < one->packets && one->rejected + one->paused <= one->edges + one->cids);
	must(!(r->is_client && r->is_server));
	must(r->spins <= PL_EFM_UNSET);
	must(r->by_delay || r->rtt.n == 0 || (r->spins == PL_EFM_SPINS && r->rtt.n < one->edges));
	must(r->rtt.n == 0 ||
		(r->rtt.least <= r->rtt.sum / r->rtt.n && r->rtt.sum / r->rtt.n <= r->rtt.most));
	must(r->rtt.n == 0 || r->rtt.most <= one->last_ns - one->first_ns);
	must(r->half.n == 0 || r->half.least <= r->half.most);
	/* More of a block than was sent is a few packets that came beside it. */
	must((r->has & PL_EFM_HAS_ULOSS) == 0 || (r->uloss <= 1 && r->uloss >= -0.5));
	must((r->has & PL_EFM_HAS_ULOSS) == 0 || r->blocks > 0);
	must((r->has & PL_EFM_HAS_ELOSS) == 0 || is_share(r->eloss));
	must((r->has & PL_EFM_HAS_ECHO) == 0 || is_share(r->echo));
	must((r->has & PL_EFM_HAS_TRIP) == 0 || r->trip <= 1);
	must((r->has & PL_EFM_HAS_DLOSS) == 0 || r->dloss <= 1);
	s->packets += one->packets;
	s->directions++;
}

static struct pl_mark_flow flow_of(uint8_t d)
{
	static const uint16_t ports[] = { 443, 4433, 443, 53 };
	struct pl_mark_flow f = { .proto = 17 };
	const unsigned int back = d & 1;

	f.src.b[15] = back != 0 ? 2 : 1;
	f.dst.b[15] = back != 0 ? 1 : 2;
	f.sport = back != 0 ? ports[d >> 3 & 3] : (uint16_t)(1000 + (d >> 1 & 3));
	f.dport = back != 0 ? (uint16_t)(1000 + (d >> 1 & 3)) : ports[d >> 3 & 3];
	return f;
}

static uint64_t step_of(uint8_t d)
{
	static const uint64_t steps[] = { 0, 1000, 1000000, 7000000, 40000000, 900000000,
		UINT64_C(40000000000), UINT64_C(1) << 50 };

	return steps[d & 7] * (1 + (d >> 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t places[][PL_EFM_BITS] = { { 0x20 }, { 0x20, 0, 0x10, 0x08 },
		{ 0x20, 0x40, 0x10, 0, 0x08 }, { 0x20, 0x08, 0, 0, 0, 0x10, 0x40 } };
	struct pl_observer_config config = { .efm = { .threshold = 0 } };
	const struct pl_observer_stats *s;
	struct pl_observer *o = NULL;
	struct sums sums = { 0 };
	uint64_t now = UINT64_C(1700000000000000000), given = 0;
	struct pl_cursor c = pl_cursor(data, size);

	if (size < 3)
		return 0;
	config.efm.square = data[0] & 3 ? 32u << (data[0] & 3) : 0;
	config.efm.threshold = data[0] >> 3;
	config.flows_max = 1 + (data[1] & 7);
	config.any_port = (data[1] & 8) != 0;
	memcpy(config.efm.masks, places[data[2] & 3], PL_EFM_BITS);
	pl_cursor_skip(&c, 3);
	must(pl_observer_new(&o, &config, NULL) == 0);
	s = pl_observer_stats(o);
	while (pl_cursor_left(&c) >= 4) {
		const uint8_t *head = pl_cursor_take(&c, 4);
		const struct pl_mark_flow flow = flow_of(head[0]);
		/* A short length is of the bytes there; the others repeat a short header. */
		const size_t n = head[3] < pl_cursor_left(&c) ? head[3] : pl_cursor_left(&c);
		const struct pl_cursor payload = pl_cursor_split(&c, n);
		const unsigned int times = 1 + (head[0] >> 5) * (head[0] >> 5);
		uint8_t *copy = malloc(n + 1);

		must(copy != NULL);
		if (n > 0)
			memcpy(copy, payload.pos, n);
		now = (head[1] & 8) != 0 ? now - step_of(head[1]) % now : now + step_of(head[1]);
		for (unsigned int i = 0; i < times; i++, given++)
			(void)pl_observer_take(o, &flow, now, head[2] & 3, pl_cursor(copy, n),
				(uint32_t)(head[2] >> 2) * (head[2] >> 2));
		free(copy);
		must(s->datagrams == given && s->flows <= config.flows_max);
	}
	must(s->datagrams == s->observed + s->handshake + s->other_short + s->not_quic + s->broken +
				     s->without_room);
	pl_observer_finish(o, told, &sums);
	must(sums.packets == s->observed && s->flows == 0);
	pl_observer_free(o);
	return 0;
}
