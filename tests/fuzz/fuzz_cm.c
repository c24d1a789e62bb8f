/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection managers. The first byte says which: odd, the rest is a management datagram (its
 * header made right when the second bit says so): what is read is written to a message that reads
 * the same. Even, steps of four bytes for two connection managers that talk: connect, accept,
 * refuse, end, time, frames lost, doubled and altered. Whatever happened, once time passes and
 * nothing is lost any more both fall silent; every message that came has been counted. With the
 * second bit peers' silence is noticed: then both fall silent once nothing arrives any more.
 */
#include "fuzz.h"
#include "rdma/cm.h"

#define MS UINT64_C(1000000)

static struct pl_connector *sides[2];
static uint32_t ids[2][8];
static uint32_t ids_n[2];
static uint64_t now_ns;

static struct pl_addr addr(uint8_t last)
{
	return pl_addr_v4((const uint8_t[]){ 10, 0, 0, last });
}

static void message(const uint8_t *data, size_t size, bool mend)
{
	static const uint8_t header[] = { 1, 7, 2, 3 };
	uint8_t mad[PL_CM_BYTES] = { 0 }, again[PL_CM_BYTES];
	struct pl_build b = pl_build(again, sizeof(again));
	struct pl_cm first, second;

	memcpy(mad, data, size < sizeof(mad) ? size : sizeof(mad));
	if (mend) {
		memcpy(mad, header, sizeof(header));
		mad[16] = 0;
		mad[17] = (uint8_t)(0x10 + mad[17] % 7);
	}
	if (pl_cm_parse(&first, pl_cursor(mad, sizeof(mad))) < 0)
		return;
	must(pl_cm_kind_name((enum pl_cm_kind)first.kind) != NULL);
	must(pl_cursor_left(&first.private) == pl_cm_private_bytes((enum pl_cm_kind)first.kind));
	pl_cm_put(&b, &first, first.private.pos, pl_cursor_left(&first.private));
	must(!b.full && b.len == PL_CM_BYTES);
	must(pl_cm_parse(&second, pl_cursor(again, sizeof(again))) == 0);
	must(memcmp(first.private.pos, second.private.pos, pl_cursor_left(&first.private)) == 0);
	first.private = second.private;
	must(memcmp(&first, &second, sizeof(first)) == 0);
}

/* Frames of a side to the other: lost, doubled, altered as `how` says. Returns how many were
 * sent. */
static uint32_t deliver(int from, uint8_t how, uint8_t at, uint8_t bits)
{
	static uint8_t space[64 * 400];
	static struct pl_frames frames;

	pl_frames_init(&frames, space, sizeof(space));
	pl_connector_send(sides[from], now_ns, &frames);
	for (uint32_t i = 0; i < frames.batch.n; i++) {
		uint8_t mad[PL_CM_BYTES];
		struct pl_roce p;

		must(pl_roce_parse(&p,
			     pl_cursor(frames.batch.pkts[i].data, frames.batch.pkts[i].len),
			     PL_LINK_ETHERNET) == PL_ROCE_F_OK);
		must(pl_cursor_left(&p.payload) == PL_CM_BYTES);
		memcpy(mad, p.payload.pos, sizeof(mad));
		p.payload = pl_cursor(mad, sizeof(mad));
		if (how & 4)
			mad[at] ^= bits;
		if (how & 8)
			p.path.src.b[15] ^= bits;
		for (unsigned int n = 0; n < (how & 3); n++)
			pl_connector_receive(sides[1 - from], &p, now_ns);
	}
	return frames.batch.n;
}

static void events(int side, bool accept)
{
	const struct pl_connection_terms t = { .qpn = 9, .mtu = 1024, .service = PL_ROCE_RC };
	struct pl_connection_event e;

	while (pl_connector_event(sides[side], &e)) {
		must(e.terms.private_len <= PL_CONNECTION_PRIVATE_MAX);
		if (e.kind != PL_CONNECTION_REQUEST)
			continue;
		if (accept)
			pl_connector_accept(sides[side], e.id, &t, now_ns);
		else
			pl_connector_reject(sides[side], e.id, PL_CM_CONSUMER, now_ns);
		ids[side][ids_n[side]++ % 8] = e.id;
	}
}

static void step(const uint8_t *b)
{
	const int side = b[0] & 1;
	const struct pl_roce_path path = {
		.src = addr((uint8_t)(1 + side)), .dst = addr((uint8_t)(2 - side)), .ttl = 64
	};
	const struct pl_connection_terms t = { .qpn = b[1],
		.mtu = 256,
		.service = PL_ROCE_UC,
		.private = "some",
		.private_len = b[2] % 5 };
	uint32_t id;

	switch (b[0] >> 1 & 7) {
	case 0:
		if (pl_connector_connect(sides[side], &path, b[3] % 4, &t, now_ns, &id) == 0)
			ids[side][ids_n[side]++ % 8] = id;
		break;
	case 1:
		events(side, (b[1] & 3) != 0);
		break;
	case 2:
		pl_connector_disconnect(sides[side], ids[side][b[1] % 8], now_ns);
		break;
	case 3:
		now_ns += b[1] * MS * 4;
		break;
	case 4:
		pl_connector_heard(sides[side], ids[side][b[1] % 8], now_ns);
		break;
	default:
		deliver(side, b[1], b[2], b[3]);
		break;
	}
}

static void talk(const uint8_t *data, size_t size, bool watched)
{
	now_ns = 1000 * MS;
	memset(ids, 0, sizeof(ids));
	memset(ids_n, 0, sizeof(ids_n));
	for (uint8_t i = 0; i < 2; i++) {
		const struct pl_addr own = addr(1 + i);
		const struct pl_connector_options o = { .own = &own,
			.n_own = 1,
			.max_connections = 6,
			.resend_ns = 50 * MS,
			.silent_ns = watched ? 2000 * MS : 0,
			.tries = 3 };

		must(pl_connector_new(&sides[i], &o) == 0);
		must(pl_connector_listen(sides[i], 1) == 0);
		must(pl_connector_listen(sides[i], 2) == 0);
	}
	for (; size >= 4; data += 4, size -= 4)
		step(data);
	/* An MRA that was altered may ask for a minute. */
	for (int i = 0; i < 200; i++) {
		deliver(0, 1, 0, 0);
		deliver(1, 1, 0, 0);
		events(0, true);
		events(1, true);
		now_ns += 2000 * MS;
	}
	for (int i = 0; watched && i < 20; i++) {
		deliver(0, 0, 0, 0);
		deliver(1, 0, 0, 0);
		events(0, true);
		events(1, true);
		now_ns += 2000 * MS;
	}
	must(deliver(0, 1, 0, 0) + deliver(1, 1, 0, 0) == 0);
	for (int i = 0; i < 2; i++) {
		const struct pl_connector_counters *c = pl_connector_counters(sides[i]);

		must(pl_connector_next_ns(sides[i]) == UINT64_MAX);
		must(pl_counter_read(&c->malformed) + pl_counter_read(&c->foreign) +
				pl_counter_read(&c->unknown) + pl_counter_read(&c->repeated) +
				pl_counter_read(&c->limited) <=
			pl_counter_read(&c->received));
		pl_connector_free(sides[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] & 1)
		message(data + 1, size - 1, data[0] & 2);
	else
		talk(data + 1, size - 1, data[0] & 2);
	return 0;
}
