/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connection managers and a link between them with losses that a test sets; for cm_test.c. */
#pragma once

#include "base/rng.h"
#include "base/test.h"
#include "rdma/cm.h"

#define MS UINT64_C(1000000)

static struct pl_connector *sides[2];
static uint64_t now_ns;
static uint32_t lose[2]; /* bit n: the n-th frame from this side is lost */
static uint32_t sent[2];
static uint8_t kinds[64]; /* messages that were sent, of both sides */
static uint32_t kinds_n;
static struct pl_rng rng;
static double loss;
static bool v6;
static uint64_t silent_ns;
static uint32_t next_qpn; /* of side 0 */
static uint32_t requests_each, requests_total;
static struct pl_addr denied; /* the only address that is not allowed */

static struct pl_addr addr(uint8_t last)
{
	if (v6)
		return pl_addr_v6((const uint8_t[16]){ 0xfd, [15] = last });
	return pl_addr_v4((const uint8_t[]){ 10, 0, 0, last });
}

static bool allowed(void *arg, const struct pl_addr *peer)
{
	(void)arg;
	return !pl_addr_equal(peer, &denied);
}

static void init(void)
{
	now_ns = 1000 * MS;
	memset(lose, 0, sizeof(lose));
	memset(sent, 0, sizeof(sent));
	kinds_n = 0;
	next_qpn = 100;
	loss = 0;
	for (uint8_t i = 0; i < 2; i++) {
		const struct pl_addr own[2] = { addr(1 + i), addr(101 + i) };
		const struct pl_connector_options o = { .own = own,
			.n_own = 2,
			.max_connections = 4,
			.resend_ns = 100 * MS,
			.silent_ns = i == 1 ? silent_ns : 0,
			.tries = 5,
			.allowed = i == 1 ? allowed : NULL,
			.requests_each = requests_each,
			.requests_per_second = requests_total,
			.seed = 1 };

		if (pl_connector_new(&sides[i], &o) < 0)
			abort();
	}
	pl_connector_listen(sides[1], 1337);
}

static void done(void)
{
	pl_connector_free(sides[0]);
	pl_connector_free(sides[1]);
}

/* Delivers the frames of one side to the other, unless they are lost. */
static uint32_t deliver(int from)
{
	static uint8_t space[16 * 400];
	static struct pl_frames frames;
	uint32_t n;

	pl_frames_init(&frames, space, sizeof(space));
	pl_connector_send(sides[from], now_ns, &frames);
	n = frames.batch.n;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t number = sent[from]++;
		struct pl_roce p;

		if (pl_roce_parse(&p,
			    pl_cursor(frames.batch.pkts[i].data, frames.batch.pkts[i].len),
			    PL_LINK_ETHERNET) != PL_ROCE_F_OK)
			abort();
		if (kinds_n < sizeof(kinds))
			kinds[kinds_n++] = p.payload.pos[17];
		if ((number < 32 && (lose[from] >> number & 1)) || pl_rng_unit(&rng) < loss)
			continue;
		pl_connector_receive(sides[1 - from], &p, now_ns);
	}
	return n;
}

static void settle(void)
{
	while (deliver(0) + deliver(1) > 0)
		;
}

static const char *sequence(void)
{
	static char text[512];

	text[0] = '\0';
	for (uint32_t i = 0; i < kinds_n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i > 0 ? " " : "",
			pl_cm_kind_name((enum pl_cm_kind)kinds[i]));
	kinds_n = 0;
	return text;
}

static struct pl_connection_terms terms(uint32_t qpn)
{
	return (struct pl_connection_terms){ .qpn = qpn,
		.psn = qpn + 1,
		.service = PL_ROCE_UC,
		.mtu = 1024,
		.resources = 4,
		.depth = 3,
		.retries = 7,
		.rnr_retries = 6,
		.ack_timeout = 14,
		.private = "about me",
		.private_len = 8 };
}

static uint32_t connect_to(uint16_t port)
{
	const struct pl_roce_path path = {
		.src = addr(1), .dst = addr(2), .ttl = 64, .sport = 49152
	};
	const struct pl_connection_terms t = terms(next_qpn++);
	uint32_t id = 0;

	if (pl_connector_connect(sides[0], &path, port, &t, now_ns, &id) < 0)
		abort();
	return id;
}

/* Fetches the event of a side; 0: none. */
static uint8_t event(int side, struct pl_connection_event *e)
{
	return pl_connector_event(sides[side], e) ? e->kind : 0;
}

static uint32_t accept(void)
{
	const struct pl_connection_terms t = terms(200);
	struct pl_connection_event e;

	eq(event(1, &e), PL_CONNECTION_REQUEST, "a request comes");
	eq(pl_connector_accept(sides[1], e.id, &t, now_ns), 0, "it is accepted");
	return e.id;
}

static uint32_t connected(void)
{
	struct pl_connection_event e;
	uint32_t passive;

	init();
	connect_to(1337);
	settle();
	passive = accept();
	settle();
	eq(event(0, &e), PL_CONNECTION_CONNECTED, "side 0 is connected");
	eq(event(1, &e), PL_CONNECTION_CONNECTED, "side 1 is connected");
	sequence();
	return passive;
}

/* Lets time pass in steps of 100 ms until the side has an event; returns the time passed, at most
 * most_ns. */
static uint64_t pass(uint64_t most_ns, struct pl_connection_event *e)
{
	const uint64_t before = now_ns;

	e->kind = 0;
	while (now_ns - before < most_ns && event(1, e) == 0) {
		now_ns += 100 * MS;
		settle();
	}
	return now_ns - before;
}
