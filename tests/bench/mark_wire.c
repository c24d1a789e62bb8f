/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate marking on a wire: datagrams from one host to another over the wire of benchmarks, marked
 * at the sender's interface and metered at the receiver's, against the same datagrams without either.
 * The sender's processor does all: its system call, both programs, the receiver's socket, which is
 * full. What counts is what a datagram takes longer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "hostmark/hostmark.h"
#include "tests/bench/bench.h"
#include "tests/bench/mark_wire.h"
#include "tests/bench/tap_stream.h"
#include "tests/bench/wire.h"

#define NAME     "mark/wire"
#define DATAGRAM 100
#define PORT     9000

struct wire_bench {
	struct pl_wire wire;
	struct pl_tap_rules rules;
	struct pl_hostmark *marker, *meter;
	int to, from; /* sockets */
};

/* ---- datagrams ---- */

static int open_sockets(struct wire_bench *b)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int r;

	to.sin_addr.s_addr = inet_addr(PL_WIRE_RECEIVER_ADDRESS);
	b->to = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	r = b->to < 0 || bind(b->to, (const struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
	if (r == 0)
		r = pl_wire_enter(&b->wire, PL_WIRE_SENDER);
	if (r < 0)
		return r;
	b->from = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (b->from < 0 || connect(b->from, (const struct sockaddr *)&to, sizeof(to)) < 0)
		r = -errno;
	(void)pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	return r;
}

static int send_all(const struct wire_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	static const uint8_t payload[DATAGRAM];
	const uint64_t start = pl_clock_mono_ns();

	ret->items = 0;
	do {
		for (unsigned int i = 0; i < 64; i++) {
			if (send(b->from, payload, sizeof(payload), 0) < 0)
				return -errno;
		}
		ret->items += 64;
		ret->ns = pl_clock_mono_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

/* ---- with and without ---- */

static int open_programs(struct wire_bench *b, struct pl_diag *diag)
{
	struct pl_hostmark_options o = { .dev = PL_WIRE_RECEIVER_NAME,
		.role = PL_HOSTMARK_METER,
		.rules = &b->rules,
		.setup = { .period_ns = 1000000000,
			.guard_ns = 250000000,
			.from_ns = 500000000,
			.to_ns = 750000000,
			.method = PL_MARK_MULTIPLEXED,
			.versions = PL_MARK_IP4 | PL_MARK_IP6,
			.colour = 4 } };
	int r = pl_hostmark_open(&b->meter, &o, diag);

	if (r == 0)
		r = pl_wire_enter(&b->wire, PL_WIRE_SENDER);
	if (r < 0)
		return r;
	o.dev = PL_WIRE_SENDER_NAME;
	o.role = PL_HOSTMARK_MARKER;
	r = pl_hostmark_open(&b->marker, &o, diag);
	if (r == 0)
		pl_hostmark_arm(b->marker);
	(void)pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	return r;
}

/* Every datagram was marked and metered. */
static int check(const struct wire_bench *b, uint64_t datagrams)
{
	struct pl_mark_counts marked, metered;

	pl_hostmark_counts(b->marker, &marked);
	pl_hostmark_counts(b->meter, &metered);
	if (marked.marker.marked >= datagrams && metered.meter.counted >= datagrams)
		return 0;
	pl_complain("benchmark " NAME ": datagrams were not marked, or not metered");
	return -ENODATA;
}

static int marked(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct wire_bench *b = arg;
	struct pl_diag diag = { .text = "" };
	int r = open_programs(b, &diag);

	if (r < 0)
		pl_complain("benchmark " NAME ": %s", diag.text);
	else
		r = send_all(b, budget_ns, ret);
	if (r == 0)
		r = check(b, ret->items);
	pl_hostmark_close(b->marker);
	pl_hostmark_close(b->meter);
	b->marker = b->meter = NULL;
	return r;
}

static int unmarked(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return send_all(arg, budget_ns, ret);
}

int pl_mark_wire_run(struct pl_bench_ctx *ctx)
{
	static struct wire_bench b;
	const struct pl_bench_case c = { .name = NAME,
		.ceiling_name = "the datagrams without marks",
		.subject = marked,
		.ceiling = unmarked,
		.arg = &b,
		.adds = true };
	struct pl_diag diag = { .text = "" };
	int r;

	if (!pl_bench_wanted(ctx, NAME))
		return 0;
	b = (struct wire_bench){ .to = -1, .from = -1 };
	r = pl_tap_rules_add(&b.rules, "take", &diag);
	if (r == 0)
		r = pl_wire_open(&b.wire, 1, &diag);
	if (r < 0) {
		pl_complain("benchmark " NAME ": %s", diag.text);
		return r;
	}
	r = pl_tap_stream_addresses(&b.wire);
	if (r == 0)
		r = open_sockets(&b);
	if (r == 0)
		r = pl_bench_compare(ctx, &c);
	if (b.to >= 0)
		close(b.to);
	if (b.from >= 0)
		close(b.from);
	(void)pl_wire_enter(&b.wire, PL_WIRE_HOME);
	pl_wire_close(&b.wire);
	return r;
}
