/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executes operations in mapped memory: the sink of a translator in the collector's own process.
 * Writes are relaxed atomic words as all writers' are (memory/words.h), additions atomic, by one
 * writer at a time: a cell that would wrap keeps its value, while a NIC lets cells wrap. Later
 * writes are never seen before earlier ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/stats.h"
#include "dta/op.h"

/* Memory of a store. base NULL: none here, operations on it are refused. */
struct pl_apply_store {
	void *base; /* aligned to 64 bytes; borrowed */
	uint64_t bytes;
};

struct pl_apply {
	struct pl_apply_store *stores; /* [collector * n_stores + store]; borrowed */
	unsigned int collectors, n_stores;
	/* Called for operations with an immediate value, after they are done. May be NULL. */
	void (*wake)(void *arg, unsigned int collector, unsigned int store, uint32_t imm);
	void *wake_arg;
#define PL_STAT PL_STAT_MEMBER
#include "dta/apply_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_apply_stats_list;

/* For struct pl_op_sink.ops, with the struct pl_apply as its arg. */
void pl_apply_ops(void *apply, const struct pl_op *ops, size_t n);
