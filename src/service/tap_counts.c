/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the counts of a service's taps in the kernel, and reports the time that each has
 * reached. */
#include "service/tap_counts.h"

#include "base/clock.h"

#define EACH_NS   UINT64_C(200000000) /* between two reads */
#define PASSED_NS UINT64_C(100000000) /* between two calls of print.passed */

static void take(void *arg, const struct pl_tap_count *counts, uint32_t n)
{
	struct pl_tap_service *t = arg;

	t->tap.stats.counts_read += n;
	t->o->print.counts(t->o->print.arg, counts, n);
}

int pl_tap_counts_end(struct pl_tap_service *t, struct pl_diag *diag)
{
	int r = 0;

	for (unsigned int i = 0; i < t->n_kernels && t->counting; i++) {
		const int one = pl_tap_kernel_stop_counts(t->kernels[i], take, t, diag);

		r = r == 0 ? one : r;
	}
	t->counting = false;
	return r;
}

static bool has_stamps(const struct pl_tap_service *t)
{
	for (unsigned int i = 0; i < t->n_kernels; i++) {
		if (pl_tap_kernel_clock(t->kernels[i]) == PL_STAMP_NIC ||
			pl_tap_kernel_is_stamped(t->kernels[i]))
			return true;
	}
	return false;
}

int pl_tap_counts_stop(struct pl_tap_service *t, struct pl_diag *diag)
{
	const int r = pl_tap_counts_end(t, diag);

	t->o->print.counting(t->o->print.arg, false);
	return r;
}

int pl_tap_counts_begin(struct pl_tap_service *t, struct pl_diag *diag)
{
	if (t->o->plan == NULL)
		return 0;
	t->counting = true;
	t->o->print.counting(t->o->print.arg, true);
	return has_stamps(t) ? pl_tap_counts_stop(t, diag) : 0;
}

int pl_tap_counts_turn(struct pl_tap_service *t, uint64_t now_ns, struct pl_diag *diag)
{
	int r = 0;

	if (!t->counting || now_ns < t->count_ns)
		return 0;
	if (has_stamps(t))
		return pl_tap_counts_stop(t, diag);
	for (unsigned int i = 0; i < t->n_kernels && r == 0; i++)
		r = pl_tap_kernel_read_counts(t->kernels[i], take, t, diag);
	t->count_ns = pl_clock_mono_ns() + EACH_NS;
	return r;
}

void pl_tap_tell_passed(struct pl_tap_service *t)
{
	uint64_t least = UINT64_MAX;

	if (t->o->print.passed == NULL || t->n_ports > 0)
		return;
	for (unsigned int i = 0; i < t->n_kernels; i++) {
		const uint64_t one = pl_tap_kernel_passed_ns(t->kernels[i]);

		least = one < least ? one : least;
	}
	if (least == UINT64_MAX || least < t->passed_ns + PASSED_NS)
		return;
	t->passed_ns = least;
	t->o->print.passed(t->o->print.arg, least);
}
