/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies on disk of a collector's regions, made every so often by a thread beside it: what an RDMA
 * NIC writes lies in memory, and is gone with the power. */
#pragma once

#include "base/json.h"
#include "remote/collector.h"

struct pl_collect_save;

/* FOLDER/NAME.plr of each store NAME, one after the other every `every_ns`. `options` and the
 * collector stay until it is closed. -EINVAL (a name with a slash, no time), -ENOTDIR and others of
 * the system, with diag. */
int pl_collect_save_open(struct pl_collect_save **ret, const struct pl_collector *c,
	const struct pl_collector_options *options, const char *folder, uint64_t every_ns,
	struct pl_diag *diag);

struct pl_collect_save_stats {
	uint64_t saved, failed; /* copies */
	char why[512];          /* the last failure; empty when there was none */
};

/* Makes a last copy of each. NULL is fine: zeros. */
void pl_collect_save_close(struct pl_collect_save *s, struct pl_collect_save_stats *ret);

/* Member "save" of an object that is open. */
void pl_collect_save_stats(struct pl_json *json, const struct pl_collect_save_stats *s);
