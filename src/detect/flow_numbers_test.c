/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets lost and out of order by the flows' own numbers, in packets that carry IOAM themselves:
 * whose numbers they are, and when what is missing says nothing of the network. packet_loss_test.c
 * has reports. */
#include "detect/events.h"

#include "detect/batch_maker.h"

#define SECOND UINT64_C(1000000000)

static struct pl_record_batch batch;
static struct pl_event_batch out;
static struct pl_detect *det;
static uint64_t now_ns;

static void begin(void)
{
	const struct pl_detect_options o = { .packet_loss = true, .reordering = true };

	if (pl_detect_new(&det, &o) < 0)
		abort();
	out.n = 0;
	now_ns = SECOND;
}

/* Whose: IOAM's mode, namespace and flow id. */
struct whose {
	uint8_t mode;
	bool has_id;
	uint16_t space;
	uint32_t id;
};

static void packet(struct whose w, uint32_t seq)
{
	struct pl_path *p;

	pl_record_batch_clear(&batch);
	p = add_path(&batch, 0);
	p->present = PL_PATH_HAS_src | PL_PATH_HAS_sport | PL_PATH_HAS_flow_seq;
	p->mode = w.mode;
	p->src.b[15] = 1;
	p->dst.b[15] = 2;
	p->sport = 5000;
	p->dport = 443;
	p->proto = 17;
	p->flow_seq = seq;
	if (w.has_id) {
		p->flow_id = w.id;
		p->present |= PL_PATH_HAS_flow_id;
	}
	pl_path_set_ioam_namespace(p, w.space);
	pl_detect_batch(det, &batch, now_ns, &out);
	pl_detect_numbers(det, &batch, now_ns);
}

static void look(uint64_t unseen)
{
	now_ns += SECOND;
	pl_detect_unseen(det, unseen, false);
	pl_detect_numbers_tick(det, now_ns, now_ns, &out);
}

static const struct pl_flow_number_counters *counted(void)
{
	return pl_detect_number_counters(det);
}

static unsigned int told(enum pl_event_kind kind, enum pl_event_phase phase)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < out.n; i++)
		n += out.events[i].event == kind && out.events[i].phase == phase;
	return n;
}

/* Two sources of numbers in one flow: each counts by itself, from where it began. */
static void two(const char *name, struct whose a, struct whose b)
{
	begin();
	for (uint32_t i = 0; i < 500; i++) {
		packet(a, 1000 + i);
		packet(b, 1040 + 2 * i - (i > 250 ? i - 250 : 0));
		if (i % 100 == 99)
			look(0);
	}
	look(0);
	look(0);
	eq(counted()->packets, 1000, "%s: each packet has a number", name);
	eq(counted()->flows, 2, "%s: two are followed", name);
	eq(counted()->lost, 250, "%s: what the one lacks is lost", name);
	eq(counted()->reordered + counted()->duplicates + counted()->restarts + counted()->unsure,
		0, "%s: nothing else", name);
	eq(told(PL_EVENT_PACKET_LOSS, PL_PHASE_BEGIN), 1, "%s: told once", name);
	eq(told(PL_EVENT_REORDERING, PL_PHASE_BEGIN), 0, "%s: none overtakes another", name);
	pl_detect_free(det);
}

static void test_whose(void)
{
	const struct whose dex = { PL_MODE_IOAM_DEX, true, 10, 77 };
	const struct whose dex_space = { PL_MODE_IOAM_DEX, true, 11, 77 };
	const struct whose dex_id = { PL_MODE_IOAM_DEX, true, 10, 78 };
	const struct whose e2e = { PL_MODE_IOAM_E2E, false, 10, 0 };
	const struct whose e2e_space = { PL_MODE_IOAM_E2E, false, 11, 0 };
	const struct whose traced = { PL_MODE_IOAM_TRACE, false, 10, 0 };
	const struct whose traced_id = { PL_MODE_IOAM_TRACE, true, 10, 79 };

	two("one flow id in two namespaces", dex, dex_space);
	two("two flow ids in a namespace", dex, dex_id);
	two("edge to edge in two namespaces", e2e, e2e_space);
	two("direct export and edge to edge", dex, e2e);
	two("traces with numbers of direct export and edge to edge", traced_id, traced);
	two("traces with two flow ids", traced_id,
		(struct whose){ PL_MODE_IOAM_TRACE, true, 10, 80 });
}

/* The same numbers, seen with and without the trace: one stream. */
static void test_one(void)
{
	begin();
	for (uint32_t i = 0; i < 200; i++)
		packet((struct whose){ i % 3 == 0 ? PL_MODE_IOAM_TRACE : PL_MODE_IOAM_DEX, true, 10,
			       77 },
			i);
	look(0);
	look(0);
	eq(counted()->flows, 1, "with and without a trace: one is followed");
	eq(counted()->lost + counted()->unsure + counted()->reordered, 0,
		"with and without a trace: nothing is missing");
	pl_detect_free(det);
}

/* A source that began anew when it had come beyond the middle of its numbers. */
static void test_anew(void)
{
	const struct whose e2e = { PL_MODE_IOAM_E2E, false, 10, 0 };

	begin();
	for (uint32_t i = 0; i < 400; i++) {
		packet(e2e, i < 200 ? 3000000000 + i : i - 200);
		if (i % 100 == 99)
			look(0);
	}
	look(0);
	look(0);
	eq(counted()->lost, 0, "a source that begins anew lost nothing");
	eq(counted()->restarts, 1, "and is seen to");
	pl_detect_free(det);
}

static void test_page(void)
{
	struct pl_flow_seen seen[4];
	uint32_t n;

	begin();
	for (uint32_t i = 0; i < 100; i++) {
		if (i % 10 != 5)
			packet((struct whose){ PL_MODE_IOAM_DEX, true, 10, 77 }, i);
		packet((struct whose){ PL_MODE_IOAM_DEX, true, 11, 77 }, i != 50 ? i : 49);
	}
	look(0);
	look(0);
	n = pl_detect_top_flows(det, seen, 4, 0);
	eq(n, 1, "page: one flow");
	ok(n == 1 && seen[0].numbered, "page: it has numbers, with flow ids");
	eq(n == 1 ? seen[0].lost : 0, 11, "page: what was lost of it in either namespace");
	pl_detect_free(det);
}

/* Losses of this machine are none of the network: before the gap, with it, and after it was seen to
 * stay. */
static void test_unseen(void)
{
	const struct whose w = { PL_MODE_IOAM_E2E, false, 10, 0 };
	static const struct {
		const char *name;
		unsigned int at; /* the look from which on 3 packets had no room */
		uint64_t lost, unsure;
	} cases[] = {
		{ "no room in the look before the gap", 4, 0, 5 },
		{ "no room in the look of the gap", 5, 0, 5 },
		{ "no room in the look after the gap", 6, 0, 5 },
		{ "no room long before", 1, 5, 0 },
		{ "no room long after", 9, 5, 0 },
		{ "never without room", 100, 5, 0 },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		begin();
		for (unsigned int second = 0; second < 12; second++) {
			for (uint32_t i = 0; i < 20; i++)
				packet(w, second * 20 + i + (second >= 5 ? 5 : 0));
			look(second >= cases[c].at ? 3 : 0);
		}
		eq(counted()->lost, cases[c].lost, "%s: lost", cases[c].name);
		eq(counted()->unsure, cases[c].unsure, "%s: unsure", cases[c].name);
		eq(told(PL_EVENT_PACKET_LOSS, PL_PHASE_BEGIN), cases[c].lost > 0 ? 1 : 0,
			"%s: told", cases[c].name);
		pl_detect_free(det);
	}
}

/* A packet of the n-th flow of a sender. */
static void numbered(unsigned int sender, unsigned int n, uint32_t seq)
{
	struct pl_path *p;

	pl_record_batch_clear(&batch);
	p = add_path(&batch, 0);
	p->present = PL_PATH_HAS_src | PL_PATH_HAS_sport | PL_PATH_HAS_flow_seq;
	p->mode = PL_MODE_IOAM_E2E;
	p->src = pl_addr_v4((const uint8_t[]){ 10, 0, (uint8_t)(sender >> 8), (uint8_t)sender });
	p->dst.b[15] = 2;
	p->sport = (uint16_t)n;
	p->proto = 17;
	p->flow_seq = seq;
	pl_detect_numbers(det, &batch, now_ns);
}

/* One sender takes all there is room for: with flows that are proven, or in anybody's name. */
static void test_shares(void)
{
	const struct pl_detect_options o = {
		.packet_loss = true, .reordering = true, .max_flows = 512 /* 64 numbered */
	};

	for (unsigned int forged = 0; forged < 2; forged++) {
		if (pl_detect_new(&det, &o) < 0)
			abort();
		out.n = 0;
		now_ns = SECOND;
		for (unsigned int i = 0; i < 300; i++) {
			numbered(forged ? 1000 + i : 1, i, 5);
			if (!forged)
				numbered(1, i, 7);
		}
		look(0);
		look(0);
		for (unsigned int second = 0; second < 6; second++) {
			for (uint32_t i = 0; i < 20; i++)
				numbered(2, 1, second * 20 + i + (second >= 3 ? 5 : 0));
			for (unsigned int i = 0; i < 30; i++)
				numbered(forged ? 2000 + 30 * second + i : 1,
					1000 + 30 * second + i, 5);
			look(0);
		}
		ok(counted()->displaced > 0, "some made room, counted");
		ok(forged || counted()->full > 0, "and who found none is");
		eq(told(PL_EVENT_PACKET_LOSS, PL_PHASE_BEGIN) -
					told(PL_EVENT_PACKET_LOSS, PL_PHASE_END) >
				0,
			true, "a loss of another sender is told");
		eq(counted()->flows, 64);
		pl_detect_free(det);
	}
}

int main(void)
{
	if (pl_record_batch_init(&batch, 4, PL_BATCH_HOPS_MIN) < 0 ||
		pl_event_batch_init(&out, 256) < 0)
		abort();
	test_whose();
	test_one();
	test_anew();
	test_page();
	test_unseen();
	test_shares();
	pl_record_batch_done(&batch);
	pl_event_batch_done(&out);
	return pl_test_done();
}
