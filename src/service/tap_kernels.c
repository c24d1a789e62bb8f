/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives records of taps in the kernel. */
#include "service/tap_kernels.h"

#include <errno.h>

/* Notes the clocks of n records of the kernel, `nic` of which have times of the NIC. */
static void note_kernel_clock(struct pl_tap_service *t, uint32_t n, uint32_t nic)
{
	pl_tap_count_clock(&t->tap.stats, PL_STAMP_NIC, nic);
	pl_tap_count_clock(&t->tap.stats, PL_STAMP_TAI, n - nic);
	t->clocks |= nic > 0 && nic < n ? 1u << PL_STAMP_NIC | 1u << PL_STAMP_TAI : 0;
	pl_tap_service_clock(t, nic == 0 ? PL_STAMP_TAI : nic == n ? PL_STAMP_NIC : PL_STAMP_MIXED);
}

/* The kernel has applied rules and numbers; only record_seq is set here. */
static int receive(struct pl_tap_service *t, unsigned int i, struct pl_diag *diag)
{
	for (int k = 0; k < PL_TAP_BATCHES_A_TURN && !pl_tap_service_enough(t); k++) {
		const int n = pl_tap_kernel_recv(t->kernels[i], t->made, diag);

		/* An interface that goes or returns is logged only. */
		if (n == -ENETDOWN || n == -EAGAIN) {
			pl_say_diag(diag);
			*diag = (struct pl_diag){ .text = "" };
			return 0;
		}
		if (n <= 0)
			return n;
		for (int r = 0; r < n; r++)
			t->made[r].record_seq = t->tap.seq++;
		t->kernel_records += (uint64_t)n;
		note_kernel_clock(t, (uint32_t)n, pl_tap_kernel_nic(t->kernels[i]));
		pl_tap_service_packets(t, t->made, (uint32_t)n);
	}
	return 0;
}

int pl_tap_kernels_receive(struct pl_tap_service *t, const struct pollfd *polled, uint64_t now_ns,
	struct pl_diag *diag)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < t->n_kernels; i++) {
		if (polled[i].revents != 0 || t->o->print.passed != NULL ||
			now_ns >= pl_tap_kernel_due_ns(t->kernels[i]))
			r = receive(t, i, diag);
	}
	return r;
}

uint64_t pl_tap_kernels_due(const struct pl_tap_service *t, uint64_t due_ns)
{
	for (unsigned int i = 0; i < t->n_kernels; i++) {
		const uint64_t due = pl_tap_kernel_due_ns(t->kernels[i]);

		due_ns = due < due_ns ? due : due_ns;
	}
	return due_ns;
}

void pl_tap_kernels_drain(struct pl_tap_service *t, struct pl_diag *diag)
{
	for (unsigned int i = 0; i < t->n_kernels; i++) {
		for (uint64_t before = UINT64_MAX;
			before != t->kernel_records && !pl_tap_service_enough(t);) {
			before = t->kernel_records;
			(void)receive(t, i, diag);
		}
	}
}
