/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs of INT at hosts in the running kernel (test runs of tc and XDP), over random packets:
 * the source makes of each what core/host_int.h makes of it in user space, with checksums that are
 * right when all bytes are added up anew; the sink gives the packet back, hands on what it took off,
 * and counts what does not come. Needs root; also run on Linux 6.1, whose verifier is older
 * (old_kernel.py).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "netio/tai.h"

#include "host_int_packets.h"

#include "bpf/host_int.skel.h" /* knows the types above only by name */

#define PACKETS 4000
#define TC_NEXT UINT32_MAX

static struct pl_bpf_host_int *skel;
static struct ring_buffer *ring;
static struct pl_host_event got;
static uint32_t n_got;

static int on_event(void *arg, void *data, size_t size)
{
	(void)arg;
	n_got++;
	memset(&got, 0, sizeof(got));
	memcpy(&got, data, size < sizeof(got) ? size : sizeof(got));
	return 0;
}

static int tell(enum libbpf_print_level level, const char *format, va_list args)
{
	/* What the verifier has against a program. */
	if (level == LIBBPF_WARN) {
		printf("# ");
		vprintf(format, args);
	}
	return 0;
}

static int load(uint32_t every)
{
	const struct pl_hostint_options o = {
		.node = 77, .bitmap = PL_HOSTINT_BITMAP, .hops = 8, .dscp = 23
	};
	const struct pl_host_control control = { .dscp = 23,
		.wake_ns = 1000000,
		.every = every,
		.drop_malformed = 1,
		.drop_outside = 1 };
	struct pl_tap_rules rules = { 0 };
	struct pl_host_template template;
	struct pl_tap_rule_set *set;
	int r;

	skel = pl_bpf_host_int__open();
	if (skel == NULL || pl_hostint_template(&template, &o, NULL) < 0 ||
		pl_tap_rules_add(&rules, "take", NULL) < 0)
		return -errno;
	memcpy((void *)&skel->rodata->pl_host_control, &control, sizeof(control));
	memcpy((void *)&skel->rodata->pl_host_template, &template, sizeof(template));
	skel->bss->pl_host_ahead_ns = pl_tai_ahead_ns();
	set = (struct pl_tap_rule_set *)&skel->bss->pl_host_sets[0];
	memcpy(set->rules, rules.rules, sizeof(set->rules));
	set->n = rules.n;
	r = pl_bpf_host_int__load(skel);
	if (r < 0)
		return r;
	ring = ring_buffer__new(bpf_map__fd(skel->maps.pl_host_ring), on_event, NULL, NULL);
	return ring == NULL ? -ENOMEM : 0;
}

static void unload(void)
{
	ring_buffer__free(ring);
	pl_bpf_host_int__destroy(skel);
	ring = NULL;
	skel = NULL;
}

/* What the program returns; the packet is as it left it. */
static uint32_t run(const struct bpf_program *program, struct packet *p)
{
	static uint8_t out[PACKET_BYTES];
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = p->data, .data_size_in = p->len,
		.data_out = out, .data_size_out = sizeof(out), .repeat = 1);

	if (bpf_prog_test_run_opts(bpf_program__fd(program), &o) < 0)
		return 999;
	p->len = o.data_size_out;
	memcpy(p->data, out, p->len);
	return o.retval;
}

static bool same(const struct packet *a, const struct packet *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static uint64_t counter(size_t at)
{
	const int processors = libbpf_num_possible_cpus();
	const size_t each = (bpf_map__value_size(skel->maps.pl_host_work) + 7u) / 8u * 8u;
	uint8_t *values = calloc((size_t)processors, each);
	const uint32_t zero = 0;
	uint64_t sum = 0, one;

	if (values == NULL ||
		bpf_map_lookup_elem(bpf_map__fd(skel->maps.pl_host_work), &zero, values) < 0)
		abort();
	for (int cpu = 0; cpu < processors; cpu++) {
		memcpy(&one, values + (size_t)cpu * each + at, sizeof(one));
		sum += one;
	}
	free(values);
	return sum;
}

#define SOURCE(member) counter(offsetof(struct pl_host_source_counts, member))
#define SINK(member)                                                                               \
	counter(sizeof(struct pl_host_source_counts) + offsetof(struct pl_host_sink_counts, member))

/* As user space adds INT, with the number and the time that the kernel gave. */
static bool as_user_space(const struct packet *before, const struct packet *after)
{
	static uint8_t rest[PACKET_BYTES], want[PACKET_BYTES];
	const struct pl_host_template *t =
		(const struct pl_host_template *)&skel->rodata->pl_host_template;
	const uint8_t *in = after->data + before->payload;
	const uint32_t by = 4 * t->words, n = before->len - before->payload;
	struct pl_host_walk w;

	memset(&w, 0, sizeof(w));
	w.wire = before->len;
	w.there = before->len < PL_HOST_HEAD ? before->len : PL_HOST_HEAD;
	memcpy(w.bytes, before->data, w.there);
	if (after->len != before->len + by || pl_host_read(&w, false) != PL_HOST_TAKEN)
		return false;
	memset(rest, 0, sizeof(rest));
	memcpy(rest, before->data + before->payload, n);
	pl_host_add(&w, t, pl_be32(in + by - 4), pl_be64(in + 4 * (size_t)t->time_word),
		pl_host_sum(rest, (n + 3) / 4 * 4, 0));
	memcpy(want, w.bytes, before->payload + by);
	memcpy(want + before->payload + by, rest, n);
	return memcmp(want, after->data, after->len) == 0;
}

static void test_round_trip(void)
{
	static struct packet before, p, sent;
	uint32_t wrong[6] = { 0 };

	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t hops = random_number(4);

		do
			make_packet(&before, true);
		while (before.tagged || before.padded ||
			before.data[before.network + 1] >> 2 == 23);
		p = before;
		wrong[0] += run(skel->progs.pl_host_source, &p) != TC_NEXT;
		wrong[1] += !as_user_space(&before, &p) || !checks_hold(&p);
		while (hops-- > 0)
			add_transit(&p);
		sent = p;
		n_got = 0;
		wrong[2] += run(skel->progs.pl_host_sink, &p) != 2; /* XDP_PASS */
		wrong[3] += !same(&p, &before);
		(void)ring_buffer__consume(ring);
		wrong[4] += n_got != 1 || got.int_at != before.payload ||
			    got.bytes != before.payload + 4 + 4u * sent.data[before.payload + 1] ||
			    memcmp(got.head, sent.data, got.bytes) != 0;
		wrong[5] += pl_clock_real_ns() + pl_tai_ahead_ns() - got.ts_ns > 60000000000;
	}
	eq(wrong[0], 0, "the source lets all %u packets go on", PACKETS);
	eq(wrong[1], 0, "each is as user space makes it, with right checksums");
	eq(wrong[2], 0, "the sink lets all go on");
	eq(wrong[3], 0, "each as it was before it had INT");
	eq(wrong[4], 0, "what came is handed on, from the first byte to the last of INT");
	eq(wrong[5], 0, "with its time");
	eq(SOURCE(instrumented), PACKETS, "the source counts them");
	eq(SINK(stripped), PACKETS, "so does the sink");
	eq(SINK(reports), PACKETS, "each is reported");
	eq(SINK(skipped_numbers) + SINK(duplicates) + SINK(restarts), 0, "no number is missing");
}

/* The flow of a datagram of the test, by its source port. */
static void make_flow(struct packet *p, uint32_t port)
{
	do
		make_packet(p, false);
	while (p->tcp || p->v6 || p->data[p->network + 1] >> 2 == 23);
	memset(p->data + p->network + 12, 10, 8);
	put16(p->data + p->transport, port);
	put16(p->data + p->transport + 2, 53);
	set_checks(p);
}

static void test_numbers(void)
{
	static struct packet p;
	const uint64_t skipped = SINK(skipped_numbers), late = SINK(late),
		       duplicates = SINK(duplicates);
	static struct packet held;

	for (uint32_t i = 0; i < 300; i++) {
		make_flow(&p, 7);
		(void)run(skel->progs.pl_host_source, &p);
		if (i == 100)
			held = p;
		if (i % 50 == 10 || i == 100)
			continue;
		(void)run(skel->progs.pl_host_sink, &p);
		if (i == 111)
			(void)run(skel->progs.pl_host_sink, &held);
	}
	/* Once more: it is taken off a copy of what was sent. */
	make_flow(&p, 7);
	(void)run(skel->progs.pl_host_source, &p);
	held = p;
	(void)run(skel->progs.pl_host_sink, &p);
	(void)run(skel->progs.pl_host_sink, &held);
	eq(SINK(skipped_numbers) - skipped, 7,
		"six packets that do not come, and one that is late");
	eq(SINK(late) - late, 1, "is counted late");
	eq(SINK(duplicates) - duplicates, 1, "one that comes twice");
}

/* Damaged and cut packets: no run changes one that it does not take, and none is given back that
 * was not whole. */
static void test_damage(void)
{
	static struct packet before, p;
	uint32_t changed = 0, hidden = 0, dropped = 0;

	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t verdict;

		make_packet(&p, true);
		if (p.unchecked || p.tagged || p.data[p.network + 1] >> 2 == 23)
			continue;
		(void)run(skel->progs.pl_host_source, &p);
		for (uint32_t k = 1 + random_number(3); k > 0; k--)
			p.data[p.transport + random_number(p.len - p.transport)] ^=
				(uint8_t)(1u << random_number(8));
		if (random_number(4) == 0)
			p.len = 14 + random_number(p.len - 14);
		before = p;
		verdict = run(skel->progs.pl_host_sink, &p);
		if (verdict == 999)
			continue;
		dropped += verdict == 1;
		changed += p.len == before.len && !same(&p, &before);
		hidden += p.len < before.len && verdict == 2 && p.len >= p.payload &&
			  checks_hold(&p) && transport_sum(&before) != 0xffff;
	}
	eq(changed, 0, "what is not taken off is not touched");
	eq(hidden, 0, "what was wrong with a packet stays wrong");
	ok(dropped > 0, "what is no INT is dropped, as asked: %u", dropped);
	(void)ring_buffer__consume(ring);
}

static void test_copy(void)
{
	static struct packet p;

	make_flow(&p, 8);
	(void)run(skel->progs.pl_host_source, &p);
	p.data[p.payload + 4] |= 8;
	set_checks(&p);
	n_got = 0;
	eq(run(skel->progs.pl_host_sink, &p), 1, "a copy (bit D) ends at the sink");
	(void)ring_buffer__consume(ring);
	eq(n_got, 1, "once it was read");
	eq(SINK(copies), 1, "and is counted");
}

static void test_left_alone(void)
{
	static struct packet before, p;
	const uint64_t marked = SOURCE(marked);

	make_flow(&before, 9);
	before.data[before.network + 1] = 23 << 2;
	set_checks(&before);
	p = before;
	(void)run(skel->progs.pl_host_source, &p);
	ok(same(&p, &before) && SOURCE(marked) == marked + 1, "what has the DSCP already stays");
	make_flow(&before, 9);
	before.unchecked = false;
	set_checks(&before);
	p = before;
	put16(check_of(&p), get16(check_of(&p)) ^ 0x0100u);
	before = p;
	(void)run(skel->progs.pl_host_source, &p);
	ok(same(&p, &before) && SOURCE(checksum) == 1, "so does a packet whose checksum is wrong");
	put16(check_of(&p), pseudo_sum(&p));
	(void)run(skel->progs.pl_host_source, &p);
	ok(p.len > before.len && checks_hold(&p),
		"one that the NIC was to complete has a right one");
	skel->bss->pl_host_sets[0].n = 0;
	make_flow(&before, 9);
	p = before;
	(void)run(skel->progs.pl_host_source, &p);
	ok(same(&p, &before) && SOURCE(skipped) > 0, "so does what no rule chooses");
	skel->bss->pl_host_sets[0].n = 1;
	eq(SOURCE(dropped), 0, "the source dropped nothing in all of this");
	eq(SINK(failed), 0, "nor did the sink");
}

static void test_every(void)
{
	static struct packet p;
	uint32_t seen = 0;

	unload();
	ok(load(10) == 0, "loads again");
	for (uint32_t i = 0; i < 95; i++) {
		make_flow(&p, 10);
		(void)run(skel->progs.pl_host_source, &p);
		(void)run(skel->progs.pl_host_sink, &p);
		n_got = 0;
		(void)ring_buffer__consume(ring);
		seen += n_got;
	}
	eq(seen, 10, "of 95 packets every tenth is reported");
	eq(SINK(not_reported), 85, "the others are counted");
}

int main(int argc, char **argv)
{
	int r;

	(void)argc;
	(void)argv;
	libbpf_set_print(tell);
	r = load(1);
	if (r == -EPERM || geteuid() != 0)
		return pl_test_skip("missing: the right to load programs");
	if (!ok(r == 0, "the kernel takes both programs"))
		return pl_test_done();
	test_round_trip();
	test_numbers();
	test_damage();
	test_copy();
	test_left_alone();
	test_every();
	unload();
	return pl_test_done();
}
