/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translator behind an AF_XDP port over a veth pair, against R2, a loop that only touches and
 * recycles the same frames (bench_afxdp.h): DTA frames in, each with one report of one of 2^20 keys
 * or lists' entries, RoCE frames with their ICRC out, unreliable writes.
 *
 *   key-write     8 bytes, one copy: a frame for each frame
 *   2-copies      two frames for each
 *   append        entries of 16 bytes to 16 lists, 16 in a frame, and their head
 *   sent          key-write, and the frames are sent, by the port's own ring as `pathline
 *                 translate` does; by-packet: by a packet socket
 *
 * Items are DTA frames; each has to be accepted, and each operation has to become a frame, or there
 * is no figure.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/rng.h"
#include "dta/translator.h"
#include "netio/port.h"
#include "tests/bench/afxdp.h"
#include "tests/bench/uplink.h"

#define ROWS     (1u << 20)
#define KEY_AT   0 /* in a row of the table */
#define LIST_AT  8
#define DATAGRAM 128 /* the longest */

struct wire_case {
	const char *name;
	struct pl_store_params params;
	enum pl_afxdp_send send;
};

struct translate_wire {
	struct pl_afxdp_bench wire; /* first: what the runs are given */
	const struct wire_case *c;
	struct pl_translator *translator;
	struct pl_bench_uplink uplink;
	uint64_t ops;
	uint64_t unsent;
	uint8_t frame[PL_LIVE_FRAME_MAX];
	struct pl_live_field field;
	uint8_t (*rows)[PL_LIVE_ROW_BYTES];
	struct pl_batch batch;
};

/* ---- what is sent ---- */

/* Where in the datagram a field of the report stands: what differs when only the field does. */
static uint32_t place_of(const struct pl_dta_report *a, const struct pl_dta_report *b)
{
	uint8_t bytes[2][DATAGRAM];
	struct pl_build first = pl_build(bytes[0], DATAGRAM), second = pl_build(bytes[1], DATAGRAM);
	uint32_t at = 0;

	(void)pl_dta_put(&first, a);
	(void)pl_dta_put(&second, b);
	while (at < first.len && bytes[0][at] == bytes[1][at])
		at++;
	return at;
}

static int set_live(struct translate_wire *b)
{
	static const uint8_t zeros[16],
		ones[16] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const bool append = b->c->params.primitive == PL_APPEND;
	const struct pl_dta_report a = { .form = PL_DTA_PATHLINE,
		.op = append ? PL_DTA_APPEND : PL_DTA_KEY_WRITE,
		.key = append ? NULL : zeros,
		.key_bytes = append ? 0 : 8,
		.data = zeros,
		.data_bytes = append ? 16 : 8 };
	struct pl_dta_report other = a;
	uint8_t datagram[DATAGRAM];
	struct pl_build build = pl_build(datagram, sizeof(datagram));
	uint32_t headers;
	int len;

	if (pl_dta_put(&build, &a) < 0)
		return -EBADMSG;
	len = pl_wire_frame(b->frame, sizeof(b->frame), datagram, (uint32_t)build.len);
	if (len < 0)
		return len;
	headers = (uint32_t)len - (uint32_t)build.len;
	if (append)
		other.list = 0xffffffff;
	else
		other.key = ones;
	b->field = (struct pl_live_field){ .offset = (uint16_t)(headers + place_of(&a, &other)),
		.len = append ? 4 : 8,
		.kind = PL_LIVE_ROW,
		.at = append ? LIST_AT : KEY_AT };
	b->wire.live = (struct pl_live_cfg){ .frame = b->frame,
		.frame_bytes = (uint32_t)len,
		.restore_bytes = 48,
		.fields = &b->field,
		.nfields = 1,
		.rows = (const uint8_t(*)[PL_LIVE_ROW_BYTES])b->rows,
		.nrows = ROWS };
	return 0;
}

static int make_rows(struct translate_wire *b)
{
	struct pl_rng rng;

	b->rows = calloc(ROWS, sizeof(b->rows[0]));
	if (b->rows == NULL)
		return -ENOMEM;
	pl_rng_seed(&rng, 1);
	for (uint32_t i = 0; i < ROWS; i++) {
		const uint64_t key = pl_rng_u64(&rng);

		memcpy(b->rows[i] + KEY_AT, &key, 8);
		b->rows[i][LIST_AT + 3] = (uint8_t)(i % 16); /* 32 bits in network order */
	}
	return 0;
}

/* ---- what is measured ---- */

static void give(void *arg, const struct pl_op *ops, size_t n)
{
	struct translate_wire *b = arg;

	b->ops += n;
	pl_uplink_ops(b->uplink.uplink, ops, n);
}

/* As pathline translate: a batch of packets, then what came of it. */
static int take(struct pl_afxdp_bench *wire, void *receiver)
{
	struct translate_wire *b = (struct translate_wire *)wire;
	struct pl_port *port = receiver;
	int n = pl_port_recv(port, &b->batch, 10, NULL);
	uint64_t now_ns;

	if (n == -EAGAIN) /* the carrier came */
		return 0;
	if (n <= 0)
		return n;
	now_ns = pl_clock_mono_ns();
	for (uint32_t i = 0; i < b->batch.n; i++)
		(void)pl_translator_packet(b->translator, now_ns, &b->batch.pkts[i]);
	pl_translator_done(b->translator);
	pl_port_release(port, &b->batch);
	b->unsent += pl_bench_uplink_send(&b->uplink, now_ns, b->wire.send);
	return n;
}

static int subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct translate_wire *b = arg;
	const struct pl_translator_counters *c = pl_translator_counters(b->translator);
	const uint64_t reports = c->reports, accepted = c->accepted;
	int r;

	b->ops = b->uplink.made = 0;
	b->wire.send_by = b->c->send;
	r = pl_afxdp_measure_port(&b->wire, PL_AFXDP_URI, take, budget_ns, ret);
	/* A figure for reports that were refused, or of which there is no frame, would mean
	 * nothing. */
	if (r == 0 && (c->reports - reports < ret->items ||
			      c->accepted - accepted != c->reports - reports ||
			      b->uplink.made != b->ops)) {
		pl_complain("benchmark %s: of %" PRIu64 " reports %" PRIu64
			    " were accepted, of %" PRIu64 " writes %" PRIu64 " became frames",
			b->c->name, c->reports - reports, c->accepted - accepted, b->ops,
			b->uplink.made);
		r = -EBADMSG;
	}
	return r;
}

/* ---- the cases ---- */

static int begin(struct translate_wire *b)
{
	const struct pl_dta_store store = { .params = b->c->params };
	const struct pl_translator_config config = { .stores = &store, .n_stores = 1 };
	const struct pl_op_sink sink = { give, NULL, b };
	struct pl_diag diag = { .text = "" };
	uint64_t bytes;
	int r = pl_store_bytes(&b->c->params, &bytes, &diag);

	if (r == 0)
		r = pl_bench_uplink_begin(&b->uplink, bytes);
	if (r == 0)
		r = pl_translator_new(&b->translator, &config, &sink, &diag);
	return r == 0 ? set_live(b) : r;
}

#define KEY_WRITE(n)                                                                               \
	{                                                                                          \
		.primitive = PL_KEY_WRITE, .hash = PL_HASH_PATHLINE, .seed = 1, .key_write = {     \
			.slots = 64u << 20,                                                        \
			.value_bytes = 8,                                                          \
			.copies = (n)                                                              \
		}                                                                                  \
	}

static const struct wire_case cases[] = {
	{ "translate-wire/key-write", KEY_WRITE(1), PL_AFXDP_UNSENT },
	{ "translate-wire/key-write-2-copies", KEY_WRITE(2), PL_AFXDP_UNSENT },
	{ "translate-wire/append",
		{ .primitive = PL_APPEND,
			.hash = PL_HASH_PATHLINE,
			.append = { .slots = 1u << 20,
				.lists = 16,
				.entry_bytes = 16,
				.batch_max = 16,
				.sealed = 1 } },
		PL_AFXDP_UNSENT },
	{ "translate-wire/key-write-sent", KEY_WRITE(1), PL_AFXDP_BY_RING },
	{ "translate-wire/key-write-sent-by-packet", KEY_WRITE(1), PL_AFXDP_BY_PACKET },
};

static int one(struct pl_bench_ctx *ctx, struct pl_afxdp_bench *wire, size_t i)
{
	struct translate_wire *b = (struct translate_wire *)wire;
	const struct wire_case *c = &cases[i];
	const struct pl_bench_case compared = { .name = c->name,
		.ceiling_name = "R2: touch and recycle",
		.subject = subject,
		.ceiling = pl_afxdp_bare,
		.arg = b,
		.crosses_cores = true };
	int r;

	b->c = c;
	b->unsent = 0;
	r = begin(b);
	if (r == 0)
		r = pl_bench_compare(ctx, &compared);
	else
		pl_complain("benchmark %s: %s", c->name, strerror(-r));
	if (b->unsent > 0)
		pl_complain("benchmark %s: %" PRIu64 " frames were not sent", c->name, b->unsent);
	pl_translator_free(b->translator);
	b->translator = NULL;
	pl_bench_uplink_end(&b->uplink);
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	static struct translate_wire b;
	int r = make_rows(&b);

	if (r < 0)
		pl_complain("benchmark translate-wire: %s", strerror(-r));
	else
		r = pl_afxdp_run(
			ctx, &b.wire, "translate-wire", one, sizeof(cases) / sizeof(cases[0]));
	free(b.rows);
	return r;
}

const struct pl_bench pl_bench_translate_wire = {
	.name = "translate-wire",
	.summary =
		"DTA frames of an AF_XDP port into RoCE frames, against a loop that only takes them (root)",
	.run = run,
};
