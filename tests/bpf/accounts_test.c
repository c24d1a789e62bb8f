/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The detector in the kernel with its ticks: what it tells without a report, rules changed while it runs, rings that
 * are full, tables that are full, copies of settled reports, a process without the right to load it. After each the
 * accounts are closed. Exit code 77 when the kernel does not let us load programs.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "detect/kernel_detect.h"
#include "detect/lean.h"
#include "gen/gen.h"

#define MS UINT64_C(1000000)

static struct pl_kernel_detect *kd;
static struct pl_event_batch events;
static struct pl_batch frames, batch;
static bool settled[PL_BATCH_MAX];
static uint64_t now_ns = 1000 * MS, ts_ns = UINT64_C(1700000000000000000);

static struct pl_kernel_counters counters(void)
{
	struct pl_kernel_counters c = { 0 };

	ok(pl_kernel_detect_counters(kd, &c) == 0, "counters are read");
	return c;
}

static void open_with(const struct pl_detect_options *detect, uint32_t ring)
{
	static const struct pl_decode_options decode;
	const struct pl_kernel_detect_options o = {
		.detect = detect, .decode = &decode, .events_bytes = ring, .frames_bytes = ring
	};
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

static void send(const struct pl_packet *pkt)
{
	struct bpf_test_run_opts o = {
		.sz = sizeof(o), .data_in = pkt->data, .data_size_in = pkt->len, .repeat = 1
	};
	int fd = pl_kernel_program(pl_kernel_detect_kernel(kd))->prog_fd;

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
	struct pl_diag diag = { 0 };
	struct pl_gen *gen = NULL;

	if (pl_gen_new(&gen, &cfg, &diag) < 0) {
		printf("Bail out! %s\n", diag.text);
		exit(1);
	}
	return gen;
}

static void feed(struct pl_gen *gen, uint32_t n)
{
	while (n > 0) {
		int got = pl_gen_next(gen, UINT64_MAX, &batch);

		for (int i = 0; i < got && n > 0; i++, n--) {
			later(1000);
			send(&batch.pkts[i]);
		}
	}
}

static void closed(const char *when)
{
	struct pl_kernel_counters c = counters();
	uint64_t up = 0;

	for (unsigned int i = 1; i < PL_HANDUP_MAX; i++)
		up += c.handed_up[i];
	eq(c.settled + up, c.packets, "%s: packets = settled + handed up", when);
}

static void test_levels(void)
{
	struct pl_detect_options o;
	struct pl_gen *deep = generate(10, 500, 0), *flat = generate(10, 5, 0);
	uint32_t begun;

	pl_detect_defaults(&o);
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

static void test_loss(void)
{
	struct pl_detect_options o;
	struct pl_gen *gen = generate(10, 5, 0.2);
	struct pl_exporter x;
	uint64_t pos = 0, lost = 0, value = 0;

	pl_detect_defaults(&o);
	open_with(&o, 1 << 20);
	feed(gen, 1000);
	later(2000 * MS);
	poll_and_tick();
	for (uint32_t i = 0; i < events.n; i++)
		value +=
			events.events[i].event == PL_EVENT_REPORT_LOSS ? events.events[i].value : 0;
	while (pl_kernel_detect_exporter(kd, &pos, &x))
		lost += x.lost;
	ok(lost > 100, "reports are missing");
	eq(value, lost, "what is told is what the exporters' books miss");
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
	while ((n = pl_kernel_frames(pl_kernel_detect_kernel(kd), &frames, settled)) > 0) {
		for (unsigned int i = 0; i < n; i++)
			copies += settled[i];
	}
	c = counters();
	eq(c.copied, copies, "copies of settled reports come up");
	eq(c.copied + c.copies_lost, 100, "one in ten is wanted");
	ok(c.copies_lost > 0, "a full ring of frames loses some, counted");
	closed("copies");
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

int main(void)
{
	if (pl_event_batch_init(&events, 65536) < 0)
		return 1;
	test_levels();
	test_loss();
	test_rings();
	test_tables();
	test_refused();
	pl_event_batch_done(&events);
	return pl_test_done();
}
