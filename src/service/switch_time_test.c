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

int main(void)
{
	test_steps();
	return pl_test_done();
}
