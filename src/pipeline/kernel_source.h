/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A source whose reports the kernel reads and detects (detect/kernel.h): besides the workers of its
 * queues, whose sockets get nothing, or with `both` everything that was settled, one more worker
 * drives the detector. It keeps the program's time, gives its events to the outputs, decodes and
 * detects what the kernel did not settle, and adds what was settled to the account.
 */
#pragma once

#include "detect/kernel_detect.h"
#include "pipeline/config.h"
#include "pipeline/worker.h"

struct pl_kernel_source;

/* Makes a detector for a source with this number of queues, not attached yet. Returns negative
 * errno with diag. */
int pl_kernel_source_new(struct pl_kernel_source **ret, const struct pl_config *config,
	const struct pl_profile *profiles, const struct pl_config_source *source,
	unsigned int queues, bool both, struct pl_diag *diag);

/* Returns the program with which the queues' ports are opened. */
const struct pl_xdp_program *pl_kernel_source_program(const struct pl_kernel_source *source);

/* Makes the driving worker, which owns the source from then on, also on failure (no memory). It
 * must be freed after the workers of the queues. */
int pl_kernel_source_worker(struct pl_worker **ret, struct pl_kernel_source *source,
	unsigned int queues, unsigned int id, struct pl_diag *diag);

/* Returns the source that the worker drives, or NULL. */
struct pl_kernel_source *pl_kernel_source_of(const struct pl_worker *worker);

/* Sets thresholds and the reports wanted in full, from the driving worker's next turn on; sizes of
 * tables stay. One thread. Returns -ENOMEM. */
int pl_kernel_source_change(struct pl_kernel_source *source, const struct pl_config *config);

/* Warns when outputs or queries of a configuration need reports that the kernel does not copy, as
 * fixed at the start. Ignores workers that drive no source. */
void pl_kernel_source_tell_kept(const struct pl_worker *worker, const struct pl_config *config);

void pl_kernel_source_free(struct pl_kernel_source *source);

/* Returns the kernel's counters as of the driving worker's last quiet point. */
const struct pl_kernel_counters *pl_kernel_source_counters(const struct pl_kernel_source *source);
extern const struct pl_stats pl_kernel_stats;

/* Upper bound of memory, in the kernel and in this process, in bytes. */
uint64_t pl_kernel_source_memory(const struct pl_config *config, unsigned int queues, bool both);
