/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks of nodes, with offset and drift. */
#include "dataplane/clock.h"

#include <errno.h>
#include <math.h>

#include "base/num.h"

#define PPB        1000000000
#define OFFSET_MAX UINT64_C(86400000000000)
#define PPM_MAX    1000

static uint64_t moved(uint64_t ns, int64_t by)
{
	if (by >= 0)
		return ns + (uint64_t)by;
	return ns > 0u - (uint64_t)by ? ns - (0u - (uint64_t)by) : 0;
}

int pl_dp_clock_set(struct pl_dp_clock *c, uint64_t true_ns, int64_t offset_ns, int64_t drift_ppb)
{
	if (drift_ppb > PL_DP_DRIFT_MAX || drift_ppb < -PL_DP_DRIFT_MAX)
		return -EINVAL;
	*c = (struct pl_dp_clock){ true_ns, moved(true_ns, offset_ns), drift_ppb };
	return 0;
}

int pl_dp_clock_parse_offset(const char *text, int64_t *ret_ns, struct pl_diag *diag)
{
	const bool behind = text[0] == '-';
	uint64_t ns;

	if (pl_parse_duration(text + behind, &ns) == 0 && ns <= OFFSET_MAX) {
		*ret_ns = behind ? -(int64_t)ns : (int64_t)ns;
		return 0;
	}
	pl_diag_set(diag, "'%s' is no offset of a clock, such as 5ms or -5ms, up to a day", text);
	return -EINVAL;
}

int pl_dp_clock_parse_drift(const char *text, int64_t *ret_ppb, struct pl_diag *diag)
{
	double ppm;

	if (pl_parse_double(text, &ppm) == 0 && ppm >= -PPM_MAX && ppm <= PPM_MAX &&
		fabs(ppm * 1000 - round(ppm * 1000)) < 1e-6) {
		*ret_ppb = (int64_t)round(ppm * 1000);
		return 0;
	}
	pl_diag_set(diag,
		"'%s' is no drift of a clock in ppm, such as 20 or -0.5: at most %d, three decimals",
		text, PPM_MAX);
	return -EINVAL;
}

int pl_dp_clock_check_offset(const char *text, struct pl_diag *diag)
{
	int64_t ns;

	return pl_dp_clock_parse_offset(text, &ns, diag);
}

int pl_dp_clock_check_drift(const char *text, struct pl_diag *diag)
{
	int64_t ppb;

	return pl_dp_clock_parse_drift(text, &ppb, diag);
}

uint64_t pl_dp_clock_read(const struct pl_dp_clock *c, uint64_t true_ns)
{
	const uint64_t passed = true_ns - c->since_ns;
	__int128 drifted;

	if (c->drift_ppb == 0)
		return c->shown_ns + passed;
	drifted = (__int128)passed * c->drift_ppb;
	/* Rounded down, also below 0: the clock never goes back. */
	drifted = drifted >= 0 ? drifted / PPB : -((-drifted + PPB - 1) / PPB);
	return c->shown_ns + passed + (uint64_t)(int64_t)drifted;
}
