/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands for kernel.c in a build without kernel programs: opening fails with a text. */
#include "tap/kernel.h"

#include <errno.h>
#include <string.h>

bool pl_tap_kernel_is(const char *uri)
{
	return strncmp(uri, "xdp:", 4) == 0 || strncmp(uri, "tc:", 3) == 0;
}

bool pl_tap_kernel_is_short(const char *uri)
{
	(void)uri;
	return false;
}

bool pl_tap_kernel_stamps(const char *uri)
{
	(void)uri;
	return false;
}

int pl_tap_kernel_check(const char *uri, bool counts, struct pl_diag *diag)
{
	(void)uri;
	(void)counts;
	(void)diag;
	return 0;
}

int pl_tap_kernel_open(struct pl_tap_kernel **ret, const char *uri,
	const struct pl_tap_kernel_options *options, struct pl_diag *diag)
{
	(void)ret;
	(void)options;
	pl_diag_set(diag, "%s: this build has no kernel programs; use packet:%s", uri,
		strchr(uri, ':') + 1);
	return -ENOTSUP;
}

void pl_tap_kernel_close(struct pl_tap_kernel *k)
{
	(void)k;
}

int pl_tap_kernel_unnoted(const struct pl_tap_kernel *k)
{
	(void)k;
	return 0;
}

const char *pl_tap_kernel_name(const struct pl_tap_kernel *k)
{
	(void)k;
	return "";
}

int pl_tap_kernel_fd(const struct pl_tap_kernel *k)
{
	(void)k;
	return -1;
}

uint64_t pl_tap_kernel_due_ns(const struct pl_tap_kernel *k)
{
	(void)k;
	return UINT64_MAX;
}

int pl_tap_kernel_recv(struct pl_tap_kernel *k, struct pl_pkt96 *ret, struct pl_diag *diag)
{
	(void)k;
	(void)ret;
	(void)diag;
	return 0;
}

uint64_t pl_tap_kernel_passed_ns(struct pl_tap_kernel *k)
{
	(void)k;
	return 0;
}

int pl_tap_kernel_read_counts(
	struct pl_tap_kernel *k, pl_tap_count_sink *sink, void *arg, struct pl_diag *diag)
{
	(void)k;
	(void)sink;
	(void)arg;
	(void)diag;
	return 0;
}

int pl_tap_kernel_stop_counts(
	struct pl_tap_kernel *k, pl_tap_count_sink *sink, void *arg, struct pl_diag *diag)
{
	return pl_tap_kernel_read_counts(k, sink, arg, diag);
}

bool pl_tap_kernel_is_stamped(struct pl_tap_kernel *k)
{
	(void)k;
	return false;
}

void pl_tap_kernel_rules(struct pl_tap_kernel *k, const struct pl_tap_rules *rules, uint16_t point)
{
	(void)point;
	(void)k;
	(void)rules;
}

void pl_tap_kernel_hits(struct pl_tap_kernel *k, uint64_t ret[PL_TAP_RULES_MAX + 1])
{
	(void)k;
	(void)ret;
}

uint32_t pl_tap_kernel_nic(const struct pl_tap_kernel *k)
{
	(void)k;
	return 0;
}

enum pl_clock_kind pl_tap_kernel_clock(const struct pl_tap_kernel *k)
{
	(void)k;
	return PL_STAMP_NONE;
}

void pl_tap_kernel_stop(struct pl_tap_kernel *k)
{
	(void)k;
}

void pl_tap_kernel_counts(struct pl_tap_kernel *k, struct pl_tap_kernel_counts *ret)
{
	(void)k;
	*ret = (struct pl_tap_kernel_counts){ 0 };
}

int pl_tap_kernel_program(const struct pl_tap_kernel *k)
{
	(void)k;
	return -ENOTSUP;
}
