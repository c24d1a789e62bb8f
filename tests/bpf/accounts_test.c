/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The detector in the kernel with its ticks: what it tells without a report, rules changed while it
 * runs, rings that are full, shares of one, tables that are full, copies of settled reports, a process without the
 * right to load it. After each the accounts are closed. Exit code 77 when the kernel does not let
 * us load programs.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "detect/direct.h"
#include "detect/kernel_detect.h"
#include "gen/gen.h"
#include "tests/bench/cpu.h"

#define MS UINT64_C(1000000)

static struct pl_kernel_detect *kd;
static struct pl_event_batch events;
static struct pl_batch frames, batch;
static struct pl_kernel_frame_of of[PL_BATCH_MAX];
static uint64_t now_ns = 1000 * MS, ts_ns = UINT64_C(1700000000000000000);

static struct pl_kernel_counters counters(void)
{
	struct pl_kernel_counters c = { 0 };

	ok(pl_kernel_detect_counters(kd, &c) == 0, "counters are read");
	return c;
}

static void open_queues(const struct pl_detect_options *detect, uint32_t ring, unsigned int queues)
{
	static const struct pl_decode_options decode;
	const struct pl_kernel_detect_options o = { .detect = detect,
		.decode = &decode,
		.queues = queues,
		.events_bytes = ring,
		.frames_bytes = ring };
	static struct pl_filter_rules filter;
	struct pl_diag diag = { 0 };
	int r = pl_kernel_detect_new(&kd, &o, &diag);

	if (r < 0) {
		printf("%s\n", diag.text);
		exit(r == -EPERM || r == -ENOTSUP ? 77 : 1);
	}
	filter.any_vlan = 1;
	pl_filter_rules_add_port(&filter, 32766);
	pl_filter_set(pl_kernel_program(pl_kernel_detect_kernel(kd))->filter, &filter);
}

static void open_with(const struct pl_detect_options *detect, uint32_t ring)
{
	open_queues(detect, ring, 1);
}

/* What packets come in by; interface 0: the one that the kernel takes for such tests. */
static struct xdp_md by;

static void send_one(const struct pl_packet *pkt)
{
	struct xdp_md ctx = by;
	struct bpf_test_run_opts o = {
		.sz = sizeof(o), .data_in = pkt->data, .data_size_in = pkt->len, .repeat = 1
	};
	int fd = pl_kernel_program(pl_kernel_detect_kernel(kd))->prog_fd;

	if (by.ingress_ifindex != 0) {
		ctx.data_end = pkt->len;
		o.ctx_in = &ctx;
		o.ctx_size_in = sizeof(ctx);
	}
	pl_kernel_time(pl_kernel_detect_kernel(kd), now_ns, ts_ns);
	if (bpf_prog_test_run_opts(fd, &o) < 0 || o.retval != XDP_DROP) {
		printf("Bail out! the program does not run\n");
		exit(1);
	}
}

static void later(uint64_t ns)
{
	now_ns += ns;
	ts_ns += ns;
}

static uint32_t told(unsigned int kind, unsigned int phase)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < events.n; i++)
		n += events.events[i].event == kind && events.events[i].phase == phase;
	return n;
}

static void poll_and_tick(void)
{
	events.n = 0;
	pl_kernel_detect_poll(kd, now_ns, ts_ns, &events);
	pl_kernel_detect_tick(kd, now_ns, ts_ns, &events);
}

static struct pl_gen *generated(const struct pl_gen_cfg *cfg)
{
	struct pl_diag diag = { 0 };
	struct pl_gen *gen = NULL;

	if (pl_gen_new(&gen, cfg, &diag) < 0) {
		printf("Bail out! %s\n", diag.text);
		exit(1);
	}
	return gen;
}

static struct pl_gen *generate_bitmap(uint16_t bitmap)
{
	return generated(&(struct pl_gen_cfg){ .topology = "chain:3",
		.flows = 1,
		.report = PL_GEN_REPORT_V10,
		.version = PL_GEN_INT_V10,
		.mode = PL_GEN_MD,
		.carrier = PL_GEN_UDP,
		.bitmap = bitmap });
}

/* n reports of 3 hops over `flows` flows, queue depth as given. */
static struct pl_gen *generate(uint32_t flows, double depth, double loss)
{
	struct pl_gen_cfg cfg = { .topology = "chain:3",
		.flows = flows,
		.report = PL_GEN_REPORT_V10,
		.version = PL_GEN_INT_V10,
		.mode = PL_GEN_MD,
		.carrier = PL_GEN_UDP,
		.queue = { PL_DIST_CONST, depth, 0 },
		.loss = loss };

	return generated(&cfg);
}

static void feed(struct pl_gen *gen, uint32_t n)
{
	while (n > 0) {
		int got = pl_gen_next(gen, UINT64_MAX, &batch);

		for (int i = 0; i < got && n > 0; i++, n--) {
			later(1000);
			send_one(&batch.pkts[i]);
		}
	}
}

static void closed(const char *when)
{
	struct pl_kernel_counters c = counters();
	uint64_t up = 0;

	for (unsigned int i = 1; i < PL_ESCALATION_MAX; i++)
		up += c.escalated[i];
	eq(c.settled + up, c.packets, "%s: packets = settled + escalated", when);
}

static void test_levels(void)
{
	struct pl_detect_options o;
	struct pl_gen *deep = generate(10, 500, 0), *flat = generate(10, 5, 0);
	uint32_t begun;

	pl_detect_defaults(&o);
	o.queue_depth = (struct pl_detect_level){ .on = true, .threshold = 100 };
	open_with(&o, 1 << 20);
	feed(flat, 100);
	poll_and_tick();
	eq(told(PL_EVENT_QUEUE_DEPTH, PL_PHASE_BEGIN), 0, "flat queues tell nothing");
	feed(deep, 100);
	poll_and_tick();
	begun = told(PL_EVENT_QUEUE_DEPTH, PL_PHASE_BEGIN);
	ok(begun > 0, "deep ones begin");
	later(10000 * MS);
	poll_and_tick();
	eq(told(PL_EVENT_QUEUE_DEPTH, PL_PHASE_END), begun,
		"what is not heard of any more ends, each that began");
	eq(counters().core.raised, counters().core.ended, "raised = ended");
	closed("levels");
	/* Rules at run time. */
	o.queue_depth.threshold = 1000;
	eq(pl_kernel_detect_change(kd, &o, now_ns, ts_ns, &events), 0);
	feed(deep, 100);
	poll_and_tick();
	eq(told(PL_EVENT_QUEUE_DEPTH, PL_PHASE_BEGIN), 0, "a higher threshold holds at once");
	o.queue_depth.threshold = 100;
	eq(pl_kernel_detect_change(kd, &o, now_ns, ts_ns, &events), 0);
	later(2000 * MS);
	feed(deep, 100);
	poll_and_tick();
	ok(told(PL_EVENT_QUEUE_DEPTH, PL_PHASE_BEGIN) > 0, "a lower one too");
	o.max_flows = 4 * 131072;
	eq(pl_kernel_detect_change(kd, &o, now_ns, ts_ns, &events), -EINVAL,
		"tables do not change their size");
	pl_gen_free(deep);
	pl_gen_free(flat);
	pl_kernel_detect_free(kd);
}

/* A source that is removed ends all that it has begun: queues, losses, silent nodes. */
static void test_end(void)
{
	static const uint8_t kinds[] = { PL_EVENT_QUEUE_DEPTH, PL_EVENT_REPORT_LOSS,
		PL_EVENT_NODE_SILENT };
	struct pl_gen *gen = generate(10, 500, 0.2);
	uint32_t begun[3] = { 0 };
	struct pl_detect_options o;

	pl_detect_defaults(&o);
	o.queue_depth = (struct pl_detect_level){ .on = true, .threshold = 100 };
	o.node_silent_ns = 2000 * MS;
	open_with(&o, 1 << 20);
	feed(gen, 100);
	for (unsigned int i = 0; i < 3; i++) {
		poll_and_tick();
		for (unsigned int k = 0; k < 3; k++)
			begun[k] += told(kinds[k], PL_PHASE_BEGIN) - told(kinds[k], PL_PHASE_END);
		later(1500 * MS);
	}
	events.n = 0;
	pl_kernel_detect_end(kd, now_ns, ts_ns, &events);
	for (unsigned int k = 0; k < 3; k++) {
		ok(begun[k] > 0, "%s begins", pl_event_kind_name(kinds[k]));
		eq(told(kinds[k], PL_PHASE_END), begun[k], "and each ends");
	}
	eq(counters().core.raised, counters().core.ended, "nothing is left raised");
	pl_gen_free(gen);
	pl_kernel_detect_free(kd);
}

static void test_loss(void)
{
	struct pl_detect_options o;
	struct pl_gen *gen = generate(10, 5, 0.2);
	struct pl_exporter x;
	uint64_t pos = 0, lost = 0, value = 0;

	pl_detect_defaults(&o);
	open_with(&o, 1 << 20);
	feed(gen, 1000);
	/* It begins at the second look, and is over when nothing more was lost for a while. */
	for (unsigned int i = 0; i < 3; i++) {
		later(20000 * MS);
		poll_and_tick();
		for (uint32_t k = 0; k < events.n; k++)
			value += events.events[k].event == PL_EVENT_REPORT_LOSS &&
						 events.events[k].phase == PL_PHASE_END
					 ? events.events[k].value
					 : 0;
	}
	while (pl_kernel_detect_exporter(kd, &pos, &x))
		lost += x.lost;
	ok(lost > 100, "reports are missing");
	eq(value, lost, "what is told is what the exporters' account miss");
	pl_gen_free(gen);
	pl_kernel_detect_free(kd);
}

static void test_rings(void)
{
	struct pl_kernel_wanted want = { .sample = 10 };
	struct pl_detect_options o;
	struct pl_gen *gen = generate(5000, 5, 0);
	struct pl_kernel_counters c;
	uint64_t got = 0, copies = 0;
	unsigned int n;

	pl_detect_defaults(&o);
	o.flow_start = true;
	o.limit_interval_ns = 1;
	open_with(&o, 4096);
	feed(gen, 5000);
	events.n = 0;
	got = pl_kernel_detect_poll(kd, now_ns, ts_ns, &events);
	c = counters();
	ok(c.core.events_dropped > 0, "a full ring of events loses some");
	eq(got, c.core.events[PL_EVENT_FLOW_START], "told = taken out of the ring");
	eq(c.core.events[PL_EVENT_FLOW_START] + c.core.events_dropped, c.core.made[PL_CORE_T_flow],
		"flows made = told + dropped");
	closed("ring full");
	pl_kernel_want(pl_kernel_detect_kernel(kd), &want);
	feed(gen, 1000);
	while ((n = pl_kernel_frames(pl_kernel_detect_kernel(kd), &frames, of)) > 0) {
		for (unsigned int i = 0; i < n; i++)
			copies += of[i].settled;
	}
	c = counters();
	eq(c.copied, copies, "copies of settled reports come up");
	eq(c.copied + c.copies_lost, 100, "one in ten is wanted");
	ok(c.copies_lost > 0, "a full ring of frames loses some, counted");
	closed("copies");
	pl_gen_free(gen);
	pl_kernel_detect_free(kd);
}

/* n reports that the program escalates, from 10.9.x.host. */
static void flood(const struct pl_packet *like, uint8_t host, uint32_t n)
{
	uint8_t bytes[512];
	struct pl_packet pkt = *like;

	if (like->len > sizeof(bytes))
		abort();
	memcpy(bytes, like->data, like->len);
	memcpy(bytes + 26, (uint8_t[]){ 10, 9, 0, host }, 4);
	bytes[42] = 0xff; /* no version of reports */
	pkt.data = bytes;
	for (; n > 0; n--)
		send_one(&pkt);
}

static uint32_t frames_of(uint8_t host)
{
	uint32_t n, sum = 0;

	while ((n = pl_kernel_frames(pl_kernel_detect_kernel(kd), &frames, of)) > 0) {
		for (uint32_t i = 0; i < n; i++)
			sum += frames.pkts[i].data[29] == host;
	}
	return sum;
}

/* Sources that flood leave room in the ring for others; once it is emptied they have theirs. */
static void test_shares(void)
{
	const struct pl_detect_options none = { 0 };
	struct pl_gen *gen = generate(1, 5, 0);
	struct pl_kernel_counters c;
	uint64_t one, all;
	uint32_t room;

	if (pl_gen_next(gen, UINT64_MAX, &batch) < 1)
		abort();
	room = (1u << 16) / (uint32_t)pl_kernel_ring_room(24 + batch.pkts[0].len);
	open_with(&none, 1 << 16);
	flood(&batch.pkts[0], 1, 2 * room);
	c = counters();
	one = 2 * room - c.escalated_over_share;
	ok(one >= room * 7 / 10 - 2 && one <= room * 7 / 10 + 2,
		"one source fills seven tenths of a ring of %u frames: %u", room,
		(unsigned int)one);
	flood(&batch.pkts[0], 2, 10);
	eq(counters().escalated_over_share, 2 * room - one, "another source has room");
	for (unsigned int host = 2; host < 8; host++)
		flood(&batch.pkts[0], (uint8_t)host, room);
	all = counters().escalated_over_share;
	flood(&batch.pkts[0], 8, 2);
	eq(counters().escalated_over_share, all, "one more behind seven that flood has, too");
	eq(counters().escalated_lost, 0, "the ring is never full");
	eq(frames_of(8), 2, "its frames come up");
	flood(&batch.pkts[0], 1, room / 2);
	eq(counters().escalated_over_share, all, "an emptied ring is anybody's again");
	eq(frames_of(1), room / 2, "and what was put there comes up");
	closed("shares");
	pl_gen_free(gen);
	pl_kernel_detect_free(kd);
}

/* n reports from 10.9.0.host, of a flow that nobody saw before each. */
static void new_flows(struct pl_gen *gen, uint8_t host, uint32_t n)
{
	static uint8_t bytes[2048];

	while (n > 0) {
		int got = pl_gen_next(gen, UINT64_MAX, &batch);

		for (int i = 0; i < got && n > 0; i++, n--) {
			struct pl_packet p = batch.pkts[i];

			memcpy(bytes, p.data, p.len);
			memcpy(bytes + 26, (uint8_t[]){ 10, 9, 0, host }, 4);
			p.data = bytes;
			later(1000);
			send_one(&p);
		}
	}
}

static uint64_t started(void)
{
	return counters().core.events[PL_EVENT_FLOW_START];
}

/* A source that makes events leaves room in their ring for those of others. */
static void test_event_shares(void)
{
	struct pl_gen *gen = generate(20000, 5, 0);
	const uint32_t room = (1u << 16) / (uint32_t)pl_kernel_ring_room(sizeof(struct pl_event));
	struct pl_detect_options o;
	struct pl_kernel_counters c;
	uint64_t one, before;

	pl_detect_defaults(&o);
	o.flow_start = true;
	o.limit_interval_ns = 1;
	open_with(&o, 1 << 16);
	new_flows(gen, 1, 2 * room);
	one = started();
	ok(one >= room * 7 / 10 - 2 && one <= room * 7 / 10 + 2,
		"one source fills seven tenths of a ring of %u events: %u", room,
		(unsigned int)one);
	c = counters();
	eq(c.events_over_share, c.core.events_dropped, "what is above its share is counted");
	new_flows(gen, 2, 12);
	ok(started() - one >= 10, "another source is heard: %u of 12 reports, two of them proof",
		(unsigned int)(started() - one));
	for (uint8_t host = 2; host < 8; host++)
		new_flows(gen, host, room);
	before = started();
	new_flows(gen, 8, 6);
	ok(started() - before >= 4, "and one more behind seven that flood: %u of 6",
		(unsigned int)(started() - before));
	c = counters();
	eq(c.events_over_share, c.core.events_dropped, "the ring is never full");
	events.n = 0;
	eq(pl_kernel_detect_poll(kd, now_ns, ts_ns, &events), started(), "all come up");
	before = started();
	new_flows(gen, 1, room / 2);
	eq(started() - before, room / 2, "an emptied ring is anybody's again");
	closed("shares of events");
	pl_gen_free(gen);
	pl_kernel_detect_free(kd);
}

static void test_tables(void)
{
	struct pl_detect_options o;
	struct pl_gen *gen = generate(20000, 5, 0);
	struct pl_kernel_counters c;
	uint64_t live = 0;

	pl_detect_defaults(&o);
	o.max_flows = 1024;
	o.max_queues = 8;
	open_with(&o, 1 << 20);
	feed(gen, 20000);
	poll_and_tick();
	c = counters();
	for (uint64_t i = 0;
		i < (uint64_t)pl_kernel_tables(pl_kernel_detect_kernel(kd))[PL_CORE_T_flow].n;
		i++) {
		const struct pl_core_flow_set *s =
			pl_kernel_tables(pl_kernel_detect_kernel(kd))[PL_CORE_T_flow].sets;

		for (unsigned int w = 0; w < PL_CORE_WAYS; w++)
			live += s[i].way[w] >> 32 != 0;
	}
	ok(c.core.evicted[PL_CORE_T_flow] > 1000, "a small table of flows replaces the oldest");
	eq(c.core.made[PL_CORE_T_flow] - c.core.evicted[PL_CORE_T_flow] -
			c.core.aged[PL_CORE_T_flow],
		live, "flows made = live + aged + evicted");
	closed("tables full");
	pl_gen_free(gen);
	pl_kernel_detect_free(kd);
}

/* --- layouts of hops --- */

/* A report with that bitmap; true when it came up for its layout, as the frame that is taken last. */
static bool asks(uint16_t bitmap)
{
	struct pl_gen *gen = generate_bitmap(bitmap);
	unsigned int n;

	feed(gen, 1);
	pl_gen_free(gen);
	n = pl_kernel_frames(pl_kernel_detect_kernel(kd), &frames, of);
	return n == 1 && of[0].layout;
}

/* One exporter asks for all there are, and another one is served all the same. */
static void test_layouts(void)
{
	const struct pl_addr one = { .b = { 1 } }, other = { .b = { 2 } };
	struct pl_detect_options none = { 0 };
	struct pl_kernel *kernel;
	unsigned int asked = 0, learned = 0;

	open_with(&none, 1 << 20);
	kernel = pl_kernel_detect_kernel(kd);
	ok(asks(0xe100) && asks(0xe100), "what nobody vouches for is not learned");
	for (unsigned int i = 0; i < 127; i++) {
		if (!asks((uint16_t)(0x8000 | i << 8)))
			continue;
		asked++;
		learned += pl_kernel_learn(kernel, &frames.pkts[0], &one);
	}
	ok(asked > 100, "%u layouts are asked for", asked);
	eq(learned, PL_KERNEL_LAYOUTS_SHARE, "one source has its share of the table");
	eq(counters().layouts_full, asked - learned, "the rest is counted");
	ok(asks(0xfe00) && pl_kernel_learn(kernel, &frames.pkts[0], &other), "another has its own");
	ok(!asks(0xfe00), "whose reports are settled from then on");
	pl_kernel_detect_free(kd);
}

/* --- an exporter whose reports the program reads in part --- */

static struct pl_kernel_frame_of now_of;

static bool count_above(void *arg, const struct pl_core_numbered *n, uint64_t ts)
{
	(void)arg;
	return pl_kernel_detect_number(
		kd, now_of.queue, n, (enum pl_kernel_number)now_of.number, now_ns, ts);
}

static void drop_records(struct pl_record_batch *b, void *arg)
{
	(void)arg;
	pl_record_batch_clear(b);
}

/* As the daemon does: frame by frame, and the numbers between them. */
static void take_frames(struct pl_decode *decode, struct pl_record_batch *records)
{
	static struct pl_batch one = { .n = 1 };
	unsigned int n;

	while ((n = pl_kernel_frames(pl_kernel_detect_kernel(kd), &frames, of)) > 0) {
		for (unsigned int i = 0; i < n; i++) {
			now_of = of[i];
			if (frames.pkts[i].len == 0) {
				pl_kernel_detect_number(kd, of[i].queue, &of[i].numbered,
					PL_NUMBER_LEFT, now_ns, frames.pkts[i].ts_ns);
				continue;
			}
			one.pkts[0] = frames.pkts[i];
			pl_decode_batch(decode, &one, records);
		}
	}
}

/* of 16 reports, so many that announce INT on themselves: the program does not read those. every:
 * frames are taken after so many reports. One decoder sees all of them, and its account is what
 * must come out. */
static void mixed(unsigned int of_16, unsigned int every)
{
	const struct pl_decode_options options = { .any_port = true };
	struct pl_decode_options above_options = { .number = count_above };
	struct pl_gen *gen = generate(10, 5, 0.05);
	struct pl_record_batch records;
	struct pl_decode *all = NULL, *above = NULL;
	struct pl_exporter want, got;
	struct pl_detect_options o;
	uint64_t rng = 88172645463325252u, pos = 0, n_got = 0;
	uint32_t n_want = 0;

	pl_detect_defaults(&o);
	open_with(&o, 1 << 22);
	if (pl_decode_new(&all, &options) < 0 || pl_decode_new(&above, &above_options) < 0 ||
		pl_record_batch_init(&records, 256, 4096) < 0)
		abort();
	records.flush = drop_records;
	for (unsigned int n = 0; n < 6000;) {
		int many = pl_gen_next(gen, UINT64_MAX, &batch);

		for (int i = 0; i < many; i++, n++) {
			static uint8_t copy[2048];
			static struct pl_batch one = { .n = 1 };

			one.pkts[0] = batch.pkts[i];
			memcpy(copy, one.pkts[0].data, one.pkts[0].len);
			one.pkts[0].data = copy;
			rng ^= rng << 13;
			rng ^= rng >> 7;
			rng ^= rng << 17;
			if (rng % 16 < of_16)
				copy[15] = 0x17 << 2; /* DSCP; the checksum nobody looks at */
			pl_decode_batch(all, &one, &records);
			later(1000);
			send_one(&one.pkts[0]);
			if (n % every == every - 1)
				take_frames(above, &records);
		}
	}
	take_frames(above, &records);
	later(1000 * MS);
	poll_and_tick();
	while (pl_kernel_detect_exporter(kd, &pos, &got)) {
		bool same = false;

		n_got++;
		for (uint32_t i = 0; !same && pl_decode_exporter(all, &i, &want);)
			same = pl_addr_equal(&want.addr, &got.addr) && want.node == got.node;
		ok(same, "%u of 16, every %u: an exporter that there is", of_16, every);
		eq(got.reports, want.reports, "its reports");
		eq(got.lost, want.lost, "and what is lost of them");
		eq(got.reordered, want.reordered, "none out of order by our doing");
		eq(got.stragglers, want.stragglers, "nor given up");
	}
	for (uint32_t i = 0; pl_decode_exporter(all, &i, &want);)
		n_want++;
	eq(n_got, n_want, "all of them");
	eq(counters().numbers_lost, 0, "no number is lost on the way");
	closed("mixed");
	pl_record_batch_done(&records);
	pl_decode_free(all);
	pl_decode_free(above);
	pl_gen_free(gen);
	pl_kernel_detect_free(kd);
}

static void test_mixed(void)
{
	mixed(4, 20);
	mixed(4, 3000);
	mixed(1, 700);
	mixed(16, 1000);
	mixed(0, 100);
}

/* A node's reports may come by any queue: it is silent when none of them heard it. */
static void test_silent(void)
{
	struct pl_detect_options o = { .node_silent_ns = 2000 * MS };
	struct pl_gen *gen = generate(10, 5, 0);
	unsigned int index;

	/* In a namespace of this process: an interface with two queues. */
	if (unshare(CLONE_NEWNET) < 0 ||
		system("ip link add pl-acc0 numrxqueues 2 numtxqueues 2 type veth peer name pl-acc1 "
		       "numrxqueues 2 numtxqueues 2 && ip link set pl-acc0 up && ip link set pl-acc1 up") !=
			0) {
		printf("# SKIP two queues: no namespace or no veth here\n");
		pl_gen_free(gen);
		return;
	}
	index = if_nametoindex("pl-acc0");
	open_queues(&o, 1 << 20, 2);
	/* Attached, the interface has its receive queues ready. */
	eq(bpf_xdp_attach(
		   (int)index, pl_kernel_program(pl_kernel_detect_kernel(kd))->prog_fd, 0, NULL),
		0, "attached");
	by.ingress_ifindex = index;
	feed(gen, 30);
	poll_and_tick();
	by.rx_queue_index = 1;
	for (int i = 0; i < 5; i++) {
		later(1000 * MS);
		feed(gen, 30);
		poll_and_tick();
		eq(events.n, 0, "heard by the second queue, for %d s not by the first", i + 1);
	}
	later(3000 * MS);
	poll_and_tick();
	eq(told(PL_EVENT_NODE_SILENT, PL_PHASE_BEGIN), 3, "by neither: three nodes, once each");
	poll_and_tick();
	eq(events.n, 0, "and not again");
	by.rx_queue_index = 0;
	feed(gen, 30);
	poll_and_tick();
	eq(told(PL_EVENT_NODE_SILENT, PL_PHASE_END), 3, "by the first again");
	closed("two queues");
	by = (struct xdp_md){ 0 };
	pl_gen_free(gen);
	pl_kernel_detect_free(kd);
}

/* More exporters than one set holds: each has its own account. */
static void test_exporters(void)
{
	struct pl_gen *gen = generate(10, 5, 0);
	struct pl_exporter x;
	struct pl_detect_options o;
	uint64_t pos = 0, n = 0, reports = 0;

	pl_detect_defaults(&o);
	open_with(&o, 1 << 20);
	for (int round = 0; round < 20; round++) {
		int got = pl_gen_next(gen, UINT64_MAX, &batch);

		/* Of 40 sources, by the last byte of the IPv4 address; its checksum nobody looks at
		 * here. */
		for (int i = 0; i < got && i < 40; i++) {
			static uint8_t copy[2048];
			struct pl_packet p = batch.pkts[i];

			memcpy(copy, p.data, p.len);
			copy[29] = (uint8_t)(i + 1);
			p.data = copy;
			send_one(&p);
		}
	}
	while (pl_kernel_detect_exporter(kd, &pos, &x)) {
		n++;
		reports += x.reports;
	}
	eq(n, 80, "40 addresses, two reporting nodes each: so many sequences");
	eq(reports, 800, "each report in one of their accounts");
	eq(counters().core.evicted[PL_CORE_T_exporter], 0, "and none forgotten");
	pl_gen_free(gen);
	pl_kernel_detect_free(kd);
}

/* Without the right there is one sentence that names it. */
static void test_refused(void)
{
	int fds[2], status = 0;
	char said[256] = "";
	pid_t pid;

	if (pipe(fds) < 0 || (pid = fork()) < 0)
		return;
	if (pid == 0) {
		static const struct pl_decode_options decode;
		struct pl_diag diag = { 0 };
		struct pl_detect_options d;
		struct pl_kernel_detect_options o = { .detect = &d, .decode = &decode };
		int r;

		pl_detect_defaults(&d);
		if (setuid(65534) < 0)
			_exit(3);
		r = pl_kernel_detect_new(&kd, &o, &diag);
		(void)!write(fds[1], diag.text, strlen(diag.text));
		_exit(r == -EPERM ? 0 : 1);
	}
	(void)waitpid(pid, &status, 0);
	(void)!read(fds[0], said, sizeof(said) - 1);
	close(fds[0]);
	close(fds[1]);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "without the right: -EPERM");
	ok(strstr(said, "CAP_BPF") != NULL, "and what is missing: %s", said);
}

/* With an argument: without the long ones, for a machine that is slow. */
int main(int argc, char **argv)
{
	(void)argv;
	/* Each processor counts for itself which is the tenth. */
	if (pl_event_batch_init(&events, 65536) < 0 || pl_cpu_pin(0) < 0)
		return 1;
	test_levels();
	test_shares();
	test_event_shares();
	test_tables();
	test_refused();
	/* An emulated machine takes half a minute to verify the program, once for each of these. */
	if (argc < 2) {
		test_end();
		test_loss();
		test_rings();
		test_layouts();
		test_mixed();
		test_silent();
		test_exporters();
	}
	pl_event_batch_done(&events);
	return pl_test_done();
}
