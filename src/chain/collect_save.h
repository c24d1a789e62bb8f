/* SPDX-License-Identifier: BSD-2-Clause */
/* Regular copies of a collector's regions on disk, by a thread of its own: the memory that an RDMA
 * NIC writes is lost at a power cut. */
#pragma once

#include "base/json.h"
#include "remote/collector.h"

struct pl_collect_save;

/* Saves each store NAME as FOLDER/NAME.plr, one after the other, every `every_ns`. `options` and
 * the collector stay until it is closed. Returns -EINVAL (a name with a slash, no time), -ENOTDIR
 * and other errors of the system, with diag. */
int pl_collect_save_open(struct pl_collect_save **ret, const struct pl_collector *c,
	const struct pl_collector_options *options, const char *folder, uint64_t every_ns,
	struct pl_diag *diag);

struct pl_collect_save_stats {
	uint64_t saved, failed; /* copies */
	char why[512];          /* the last failure; empty: none */
};

/* Makes a last copy of each store. NULL is fine: zeros. */
void pl_collect_save_close(struct pl_collect_save *s, struct pl_collect_save_stats *ret);

/* Adds the member "save" to an open object. */
void pl_collect_save_stats(struct pl_json *json, const struct pl_collect_save_stats *s);
