/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A source whose reports the kernel reads and detects (detect/kernel.h): beside the workers of its
 * queues, whose sockets get nothing, or with `both` all that was settled, it has one more worker
 * that drives the detector. That one keeps the program's time, takes its events to the outputs,
 * decodes and detects what the kernel did not settle, and adds what was settled to the account.
 */
#pragma once

#include "detect/kernel_detect.h"
#include "pipeline/config.h"
#include "pipeline/worker.h"

struct pl_kernel_source;

/* The detector for a source of so many queues, not attached yet. -errno with diag: what is
 * missing. */
int pl_kernel_source_new(struct pl_kernel_source **ret, const struct pl_config *config,
	const struct pl_profile *profiles, const struct pl_config_source *source,
	unsigned int queues, bool both, struct pl_diag *diag);

/* What a queue's worker is opened with. */
const struct pl_xdp_program *pl_kernel_source_program(const struct pl_kernel_source *source);

/* Makes the driving worker, which owns the source from then on, also on failure (short of memory).
 * It is to be freed after those of the queues. */
int pl_kernel_source_worker(struct pl_worker **ret, struct pl_kernel_source *source,
	unsigned int queues, unsigned int id, struct pl_diag *diag);

/* NULL when the worker drives none. */
struct pl_kernel_source *pl_kernel_source_of(const struct pl_worker *worker);

/* New thresholds, and which reports are wanted in full, from the driving worker's next turn on;
 * sizes of tables stay. One thread. -ENOMEM */
int pl_kernel_source_change(struct pl_kernel_source *source, const struct pl_config *config);

/* Warns when outputs or queries of a configuration want reports that the kernel keeps, as it was
 * told at the start. Of a worker that drives no source, nothing. */
void pl_kernel_source_tell_kept(const struct pl_worker *worker, const struct pl_config *config);

void pl_kernel_source_free(struct pl_kernel_source *source);

/* What the kernel's side did, for the page: as of the driving worker's last quiet point. */
const struct pl_kernel_counters *pl_kernel_source_counters(const struct pl_kernel_source *source);
extern const struct pl_stats pl_kernel_stats;

/* What the kernel and this side hold at most. */
uint64_t pl_kernel_source_memory(const struct pl_config *config, unsigned int queues, bool both);
