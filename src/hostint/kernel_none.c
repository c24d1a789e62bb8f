/* SPDX-License-Identifier: BSD-2-Clause */
/* INT at hosts in a build without kernel programs: says so. */
#include <errno.h>

#include "hostint/hostint.h"

/* A stub has the parameters of the function that it stands for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int pl_hostint_open(
	struct pl_hostint **ret, const struct pl_hostint_options *o, struct pl_diag *diag)
{
	pl_diag_set(
		diag, "%s: this build has no kernel programs, which INT at hosts needs", o->dev);
	return -ENOTSUP;
}

void pl_hostint_close(struct pl_hostint *h)
{
}

const char *pl_hostint_name(const struct pl_hostint *h)
{
	return "";
}

bool pl_hostint_is_raw(const struct pl_hostint *h)
{
	return false;
}

uint32_t pl_hostint_growth(const struct pl_hostint *h)
{
	return 0;
}

int pl_hostint_unnoted(const struct pl_hostint *h)
{
	return 0;
}

int pl_hostint_fd(const struct pl_hostint *h)
{
	return -1;
}

uint64_t pl_hostint_due_ns(const struct pl_hostint *h)
{
	return UINT64_MAX;
}

int pl_hostint_recv(
	struct pl_hostint *h, uint32_t most, pl_hostint_take *take, void *arg, struct pl_diag *diag)
{
	return 0;
}

void pl_hostint_rules(struct pl_hostint *h, const struct pl_tap_rules *rules)
{
}

int pl_hostint_program(const struct pl_hostint *h)
{
	return -1;
}

void pl_hostint_stop(struct pl_hostint *h)
{
}

void pl_hostint_source_counts(struct pl_hostint *h, struct pl_host_source_counts *ret)
{
	*ret = (struct pl_host_source_counts){ 0 };
}

void pl_hostint_sink_counts(struct pl_hostint *h, struct pl_host_sink_counts *ret)
{
	*ret = (struct pl_host_sink_counts){ 0 };
}
