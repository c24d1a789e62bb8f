/* SPDX-License-Identifier: BSD-2-Clause */
/* The time of a switch when the clocks of its host are set. */
#include "service/switch.h"

#include "base/test.h"

#define S UINT64_C(1000000000)

static void test_steps(void)
{
	/* In seconds: the host's clocks, and the switch's time expected, to 1 ms. */
	static const struct {
		uint64_t real, mono, time;
		const char *what;
	} steps[] = {
		{ 1000, 10, 1000, "the first reading" },
		{ 1001, 11, 1001, "a second" },
		{ 2001, 12, 2001, "set forward" },
		{ 2001, 12, 2001, "no time passed" },
		{ 1900, 13, 2002, "set back: a second passed nevertheless" },
		{ 1901, 14, 2003, "it goes on" },
		{ 2100, 15, 2100, "set forward again" },
	};
	struct pl_switch s = { .now_ns = 0 };
	uint64_t before = 0, back = 0, real, mono;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const uint64_t t = pl_switch_time(&s, steps[i].real * S, steps[i].mono * S);

		ok(t >= before && t <= steps[i].time * S && t > steps[i].time * S - S / 500, "%s",
			steps[i].what);
		eq(s.ahead_ns, t - steps[i].real * S, "%s: how far it is ahead", steps[i].what);
		before = t;
	}
	/* One second back, then turns of any length for more than half an hour. */
	real = 2099 * S;
	mono = 15 * S;
	for (unsigned int i = 0; i < 2100; i++) {
		const uint64_t passed = i % 2 == 0 ? S / 2 : S + S / 2;

		real += passed;
		mono += passed;
		back += pl_switch_time(&s, real, mono) < before;
		before = s.now_ns;
	}
	eq(back, 0, "it never goes back");
	eq(s.ahead_ns, 0, "a second is caught up in less than 35 minutes");
	eq(s.now_ns, real, "and the time is the host's again");
}

/* The clock of the file: the node's time differs from the host's by its offset and drift. */
static void test_error(void)
{
	static const struct {
		uint64_t after_ns;
		int64_t offset_ns, drift_ppb, want;
	} cases[] = {
		{ 0, 5000000, 0, 5000000 },
		{ 10 * S, 5000000, 20000, 5200000 },
		{ 10 * S, -5000000, -20000, -5200000 },
		{ 10 * S, -2 * (int64_t)S, 500, -2 * (int64_t)S + 5000 },
		{ 1, 0, -1000000, -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_switch s = { .clock_mono_ns = 10 };
		uint64_t t;

		eq(pl_dp_clock_set(&s.clock, 1000 * S, cases[i].offset_ns, cases[i].drift_ppb), 0);
		pl_switch_time(&s, 1000 * S, 10);
		/* Two steps: drift is counted from the opening on, not from the last reading. */
		pl_switch_time(&s, 1000 * S + cases[i].after_ns / 2, 10 + cases[i].after_ns / 2);
		t = pl_switch_time(&s, 1000 * S + cases[i].after_ns, 10 + cases[i].after_ns);
		eq((int64_t)(t - 1000 * S - cases[i].after_ns), cases[i].want, "case %zu", i);
		eq(s.error_ns, cases[i].want, "it is known");
		eq(s.ahead_ns, 0, "no lead that is caught up");
		eq(s.step_ns, 0, "and no step");
	}
}

/* A packet that waits while the clock is set forward has waited what passed meanwhile. */
static void test_held(void)
{
	const struct pl_dp_port_cfg cfg = { .n_classes = 1, .rate_bps = 8000 };
	struct pl_switch_port port = { .number = 1 };
	struct pl_switch s = { .ports = &port, .n_ports = 1 };
	struct pl_dp_pool *pool = NULL;
	struct pl_dp_packet *pkt;

	if (!ok(pl_dp_pool_new(&pool, 2000, 4) == 0 &&
			    pl_dp_port_new(&port.queues, &cfg, NULL) == 0,
		    "a port"))
		return;
	pl_switch_time(&s, 1000 * S, 10 * S);
	for (unsigned int i = 0; i < 2; i++) {
		pkt = pl_dp_packet_new(pool, 1000);
		pkt->queue = 0;
		pkt->in_ns = s.now_ns;
		ok(pl_dp_port_enqueue(port.queues, pkt, s.now_ns), "a packet");
	}
	pl_dp_packet_free(pl_dp_port_dequeue(port.queues, s.now_ns));
	pl_switch_time(&s, 5001 * S, 11 * S);
	pkt = pl_dp_port_dequeue(port.queues, s.now_ns);
	if (ok(pkt != NULL, "the second one leaves")) {
		eq(pkt->out_ns - pkt->in_ns, 2 * S, "a second of waiting, one of sending");
		eq(pl_dp_port_account(port.queues, 0)->residence_max_ns, 2 * S);
		pl_dp_packet_free(pkt);
	}
	pl_dp_port_free(port.queues);
	pl_dp_pool_free(pool);
}

int main(void)
{
	test_steps();
	test_error();
	test_held();
	return pl_test_done();
}
