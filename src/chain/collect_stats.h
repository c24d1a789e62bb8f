/* SPDX-License-Identifier: BSD-2-Clause */
/* The account of the memory server: its counters, and a line for the user, without keys, queue pair
 * numbers and packet numbers. */
#pragma once

#include "remote/collector.h"
#include "runtime/account.h"

void pl_collect_account(const struct pl_account *a, struct pl_collector *c,
	const struct pl_collector_options *options);
/* Writes its families, without samples. */
void pl_collect_describe(const struct pl_account *a);
/* Appends the line, without an end of line. */
void pl_collect_tell(struct pl_collector *c, struct pl_buf *out);
