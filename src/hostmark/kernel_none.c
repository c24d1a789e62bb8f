/* SPDX-License-Identifier: BSD-2-Clause */
/* Alternate marking at hosts in a build without kernel programs: says so. */
#include <errno.h>

#include "hostmark/hostmark.h"

/* A stub has the parameters of the function that it stands for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int pl_hostmark_open(
	struct pl_hostmark **ret, const struct pl_hostmark_options *o, struct pl_diag *diag)
{
	return pl_diag_fail(diag, -ENOTSUP,
		"%s: this build has no kernel programs, which marking and metering need", o->dev);
}

void pl_hostmark_close(struct pl_hostmark *h)
{
}

const char *pl_hostmark_name(const struct pl_hostmark *h)
{
	return "";
}

int pl_hostmark_unnoted(const struct pl_hostmark *h)
{
	return 0;
}

bool pl_hostmark_resumed(const struct pl_hostmark *h)
{
	return false;
}

bool pl_hostmark_is_anew(const struct pl_hostmark *h)
{
	return false;
}

int pl_hostmark_fd(const struct pl_hostmark *h)
{
	return -1;
}

int pl_hostmark_turn(struct pl_hostmark *h, struct pl_diag *diag)
{
	return 0;
}

bool pl_hostmark_attached(const struct pl_hostmark *h)
{
	return false;
}

void pl_hostmark_arm(struct pl_hostmark *h)
{
}

int pl_hostmark_start_ticks(struct pl_hostmark *h, struct pl_diag *diag)
{
	return 0;
}

struct pl_ticker_state pl_hostmark_tick(struct pl_hostmark *h)
{
	return (struct pl_ticker_state){ 0 };
}

uint64_t pl_hostmark_next(const struct pl_hostmark *h)
{
	return 0;
}

void pl_hostmark_set_next(struct pl_hostmark *h, uint64_t block)
{
}

void pl_hostmark_drop_behind(struct pl_hostmark *h, uint64_t last)
{
}

struct pl_mark_watch *pl_hostmark_watch(struct pl_hostmark *h)
{
	static struct pl_mark_watch none;

	return &none;
}

void pl_hostmark_read(
	struct pl_hostmark *h, uint64_t block, uint32_t idle, pl_hostmark_take *take, void *arg)
{
}

uint64_t pl_hostmark_flows(const struct pl_hostmark *h)
{
	return 0;
}

void pl_hostmark_counts(struct pl_hostmark *h, struct pl_mark_counts *ret)
{
	*ret = (struct pl_mark_counts){ .marker = { 0 } };
}
