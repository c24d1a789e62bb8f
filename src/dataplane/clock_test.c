/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataplane/clock.h"

#include <errno.h>

#include <string.h>

#include "base/rng.h"
#include "base/test.h"

#define SECOND UINT64_C(1000000000)

static void test_shown(void)
{
	static const struct {
		int64_t offset_ns, drift_ppb;
		uint64_t after_ns;
		int64_t want; /* difference from the true time */
	} cases[] = {
		{ 0, 0, 5 * SECOND, 0 },
		{ 37000000000, 0, 5 * SECOND, 37000000000 },
		{ -300, 0, 0, -300 },
		{ 0, 1000, SECOND, 1000 },
		{ 0, -1000, SECOND, -1000 },
		{ 250, 100, 3600 * SECOND, 250 + 360000 },
		{ 0, 1, 999999999, 0 },
		{ 0, -1, 1, -1 },
		{ 0, 50000, SECOND * 100 * 365 * 86400, 50000 * INT64_C(3153600000) },
		{ 0, PL_DP_DRIFT_MAX, 10 * SECOND, 5 * (int64_t)SECOND },
	};
	const uint64_t start = UINT64_C(1700000000) * SECOND;
	struct pl_dp_clock c = { 0, 0, 0 };

	eq(pl_dp_clock_read(&c, 123), 123, "all zero is right");
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		eq(pl_dp_clock_set(&c, start, cases[i].offset_ns, cases[i].drift_ppb), 0);
		eq(pl_dp_clock_read(&c, start + cases[i].after_ns) - start - cases[i].after_ns,
			cases[i].want, "case %u", i);
	}
	eq(pl_dp_clock_set(&c, 5, 0, PL_DP_DRIFT_MAX + 1), -EINVAL);
	eq(pl_dp_clock_set(&c, 5, 0, -PL_DP_DRIFT_MAX - 1), -EINVAL);
	eq(pl_dp_clock_set(&c, 100, -200, 0), 0);
	eq(pl_dp_clock_read(&c, 100), 0, "not before the epoch");
}

/* Whatever its drift, a clock begins at the time that it is set to, and never goes back. */
static void test_forward(void)
{
	struct pl_rng rng;
	int wrong = 0;

	pl_rng_seed(&rng, 5);
	for (int i = 0; i < 1000; i++) {
		const int64_t offset = (int64_t)pl_rng_below(&rng, 2000) - 1000;
		uint64_t now = SECOND, last = SECOND + (uint64_t)offset;
		struct pl_dp_clock c;

		pl_dp_clock_set(&c, now, offset, (int64_t)pl_rng_below(&rng, 1000000) - 500000);
		wrong += pl_dp_clock_read(&c, now) != last;
		for (int k = 0; k < 100; k++) {
			const uint64_t shown =
				pl_dp_clock_read(&c, now += pl_rng_below(&rng, 3000));

			wrong += shown < last;
			last = shown;
		}
	}
	eq(wrong, 0);
}

static void test_parsed(void)
{
	static const struct {
		const char *text;
		int64_t ns;
	} offsets[] = { { "5ms", 5000000 }, { "-5ms", -5000000 }, { "0s", 0 }, { "-1ns", -1 },
		{ "24h", INT64_C(86400000000000) } };
	static const struct {
		const char *text;
		int64_t ppb;
	} drifts[] = { { "20", 20000 }, { "-0.5", -500 }, { "0", 0 }, { "0.001", 1 },
		{ "-1000", -1000000 } };
	static const char *const bad_offsets[] = { "", "-", "--5ms", "5", "25h", "fast" };
	static const char *const bad_drifts[] = { "", "-", "0.0001", "1001", "20ppm", "nan" };
	struct pl_diag diag;
	int64_t got = 1;

	for (unsigned int i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		eq(pl_dp_clock_parse_offset(offsets[i].text, &got, NULL), 0);
		eq(got, offsets[i].ns, "%s", offsets[i].text);
	}
	for (unsigned int i = 0; i < sizeof(drifts) / sizeof(drifts[0]); i++) {
		eq(pl_dp_clock_parse_drift(drifts[i].text, &got, NULL), 0);
		eq(got, drifts[i].ppb, "%s", drifts[i].text);
	}
	for (unsigned int i = 0; i < sizeof(bad_offsets) / sizeof(bad_offsets[0]); i++) {
		diag = (struct pl_diag){ .text = "" };
		eq(pl_dp_clock_check_offset(bad_offsets[i], &diag), -EINVAL, "%s", bad_offsets[i]);
		ok(strstr(diag.text, "no offset of a clock") != NULL, "and says why");
	}
	for (unsigned int i = 0; i < sizeof(bad_drifts) / sizeof(bad_drifts[0]); i++) {
		diag = (struct pl_diag){ .text = "" };
		eq(pl_dp_clock_check_drift(bad_drifts[i], &diag), -EINVAL, "%s", bad_drifts[i]);
		ok(strstr(diag.text, "no drift of a clock") != NULL, "and says why");
	}
}

int main(void)
{
	test_parsed();
	test_shown();
	test_forward();
	return pl_test_done();
}
