/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands for kernel.c and drops.c in a build without kernel programs: opening fails with a text. */
#include "tap/kernel.h"

#include <errno.h>
#include <string.h>

#include "tap/drops.h"

/* A stub has the parameters of the function that it stands for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

bool pl_tap_kernel_is(const char *uri)
{
	return strncmp(uri, "xdp:", 4) == 0 || strncmp(uri, "tc:", 3) == 0;
}

bool pl_tap_kernel_is_short(const char *uri)
{
	return false;
}

bool pl_tap_kernel_stamps(const char *uri)
{
	return false;
}

int pl_tap_kernel_check(const char *uri, bool counts, struct pl_diag *diag)
{
	return 0;
}

int pl_tap_kernel_open(struct pl_tap_kernel **ret, const char *uri,
	const struct pl_tap_kernel_options *options, struct pl_diag *diag)
{
	pl_diag_set(diag, "%s: this build has no kernel programs; use packet:%s", uri,
		strchr(uri, ':') + 1);
	return -ENOTSUP;
}

void pl_tap_kernel_close(struct pl_tap_kernel *k)
{
}

int pl_tap_kernel_unnoted(const struct pl_tap_kernel *k)
{
	return 0;
}

const char *pl_tap_kernel_name(const struct pl_tap_kernel *k)
{
	return "";
}

int pl_tap_kernel_fd(const struct pl_tap_kernel *k)
{
	return -1;
}

uint64_t pl_tap_kernel_due_ns(const struct pl_tap_kernel *k)
{
	return UINT64_MAX;
}

int pl_tap_kernel_recv(struct pl_tap_kernel *k, struct pl_pkt96 *ret, struct pl_diag *diag)
{
	return 0;
}

uint64_t pl_tap_kernel_passed_ns(struct pl_tap_kernel *k)
{
	return 0;
}

int pl_tap_kernel_read_counts(
	struct pl_tap_kernel *k, pl_tap_count_sink *sink, void *arg, struct pl_diag *diag)
{
	return 0;
}

int pl_tap_kernel_stop_counts(
	struct pl_tap_kernel *k, pl_tap_count_sink *sink, void *arg, struct pl_diag *diag)
{
	return pl_tap_kernel_read_counts(k, sink, arg, diag);
}

bool pl_tap_kernel_is_stamped(struct pl_tap_kernel *k)
{
	return false;
}

void pl_tap_kernel_rules(struct pl_tap_kernel *k, const struct pl_tap_rules *rules, uint16_t point)
{
}

void pl_tap_kernel_hits(struct pl_tap_kernel *k, uint64_t ret[PL_TAP_RULES_MAX + 1])
{
}

uint32_t pl_tap_kernel_nic(const struct pl_tap_kernel *k)
{
	return 0;
}

enum pl_clock_kind pl_tap_kernel_clock(const struct pl_tap_kernel *k)
{
	return PL_STAMP_NONE;
}

void pl_tap_kernel_stop(struct pl_tap_kernel *k)
{
}

void pl_tap_kernel_counts(struct pl_tap_kernel *k, struct pl_tap_kernel_counts *ret)
{
	*ret = (struct pl_tap_kernel_counts){ 0 };
}

int pl_tap_kernel_program(const struct pl_tap_kernel *k)
{
	return -ENOTSUP;
}

/* ---- drops ---- */

int pl_tap_drops_open(struct pl_tap_drops **ret, const char *uri, const struct pl_tap_rules *rules,
	uint16_t point, struct pl_diag *diag)
{
	pl_diag_set(diag, "%s: this build has no kernel programs", uri);
	return -ENOTSUP;
}

int pl_tap_drops_try(struct pl_diag *diag)
{
	return pl_tap_drops_open(NULL, "drops:", NULL, 0, diag);
}

void pl_tap_drops_close(struct pl_tap_drops *d)
{
}

const char *pl_tap_drops_name(const struct pl_tap_drops *d)
{
	return "";
}

int pl_tap_drops_fd(const struct pl_tap_drops *d)
{
	return -1;
}

uint64_t pl_tap_drops_due_ns(const struct pl_tap_drops *d)
{
	return UINT64_MAX;
}

int pl_tap_drops_recv(struct pl_tap_drops *d, struct pl_drop168 *ret, struct pl_diag *diag)
{
	return 0;
}

void pl_tap_drops_rules(struct pl_tap_drops *d, const struct pl_tap_rules *rules, uint16_t point)
{
}

void pl_tap_drops_hits(struct pl_tap_drops *d, uint64_t ret[PL_TAP_RULES_MAX + 1])
{
}

void pl_tap_drops_stop(struct pl_tap_drops *d)
{
}

void pl_tap_drops_counts(struct pl_tap_drops *d, struct pl_drops_counts *ret)
{
	*ret = (struct pl_drops_counts){ 0 };
}

uint64_t pl_tap_drops_missed(const struct pl_tap_drops *d)
{
	return 0;
}

void pl_tap_drops_by_reason(struct pl_tap_drops *d, uint64_t into[PL_DROPS_REASONS])
{
}

void pl_tap_drops_reason_name(
	const struct pl_tap_drops *d, uint32_t slot, char ret[PL_DROPS_NAME_MAX])
{
	ret[0] = '\0';
}
