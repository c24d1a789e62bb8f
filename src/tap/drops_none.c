/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands for drops.c in a build without kernel programs: opening fails with a text. */
#include "tap/drops.h"

#include <errno.h>

int pl_tap_drops_open(struct pl_tap_drops **ret, const char *uri, const struct pl_tap_rules *rules,
	uint16_t point, struct pl_diag *diag)
{
	(void)ret;
	(void)rules;
	(void)point;
	pl_diag_set(diag, "%s: this build has no kernel programs", uri);
	return -ENOTSUP;
}

int pl_tap_drops_try(struct pl_diag *diag)
{
	return pl_tap_drops_open(NULL, "drops:", NULL, 0, diag);
}

void pl_tap_drops_close(struct pl_tap_drops *d)
{
	(void)d;
}

const char *pl_tap_drops_name(const struct pl_tap_drops *d)
{
	(void)d;
	return "";
}

int pl_tap_drops_fd(const struct pl_tap_drops *d)
{
	(void)d;
	return -1;
}

uint64_t pl_tap_drops_due_ns(const struct pl_tap_drops *d)
{
	(void)d;
	return UINT64_MAX;
}

int pl_tap_drops_recv(struct pl_tap_drops *d, struct pl_drop168 *ret, struct pl_diag *diag)
{
	(void)d;
	(void)ret;
	(void)diag;
	return 0;
}

void pl_tap_drops_rules(struct pl_tap_drops *d, const struct pl_tap_rules *rules, uint16_t point)
{
	(void)d;
	(void)rules;
	(void)point;
}

void pl_tap_drops_hits(struct pl_tap_drops *d, uint64_t ret[PL_TAP_RULES_MAX + 1])
{
	(void)d;
	(void)ret;
}

void pl_tap_drops_stop(struct pl_tap_drops *d)
{
	(void)d;
}

void pl_tap_drops_counts(struct pl_tap_drops *d, struct pl_drops_counts *ret)
{
	(void)d;
	*ret = (struct pl_drops_counts){ 0 };
}

uint64_t pl_tap_drops_missed(const struct pl_tap_drops *d)
{
	(void)d;
	return 0;
}

void pl_tap_drops_by_reason(struct pl_tap_drops *d, uint64_t into[PL_DROPS_REASONS])
{
	(void)d;
	(void)into;
}

void pl_tap_drops_reason_name(
	const struct pl_tap_drops *d, uint32_t slot, char ret[PL_DROPS_NAME_MAX])
{
	(void)d;
	(void)slot;
	ret[0] = '\0';
}
