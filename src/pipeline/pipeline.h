/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The running collector: sources, workers, outputs, as configured. One worker thread per socket of
 * each source; one thread per output. received = decoded + every verdict that is not "ok", and
 * records accepted by an output = delivered + dropped by cause + waiting, at every quiet point.
 *
 * One thread controls it (new … free); pl_pipeline_stats, pl_pipeline_ready and pl_metrics_write
 * may be called by any other thread at the same time. No function here is on the packet path.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"
#include "export/exporter.h"
#include "netio/port.h"
#include "pipeline/config.h"
#include "pipeline/output.h"
#include "pipeline/worker.h"

struct pl_conditions;
struct pl_pipeline;

/* Opens every source, which may need rights that are given up before the start. Takes the
 * configuration over on success. rights: of a helper (netio/helper.h), which outlives the pipeline,
 * or NULL. Returns -EINVAL, or the errno of what could not be opened, with diag. */
int pl_pipeline_new(struct pl_pipeline **ret, struct pl_config *config,
	const struct pl_rights *rights, struct pl_diag *diag);

/* Adds an output beyond the configured ones, before the start; reloads keep it. It counts neither
 * in pl_pipeline_stats nor in the readiness. Takes `export` over, always. */
int pl_pipeline_add_output(struct pl_pipeline *pipeline, const char *name, struct pl_export *export,
	uint32_t queue_records, struct pl_diag *diag);

/* Adds families behind those of pl_metrics_write, so they appear wherever the pipeline's families
 * do. To be called before the start. Any thread may call `write` with the pipeline, and `write`
 * must not wait for a thread that holds the pipeline. */
struct pl_exposition;
void pl_pipeline_add_families(
	struct pl_pipeline *pipeline, void (*write)(void *pipeline, struct pl_exposition *page));

/* Opens the outputs and starts all threads. Returns negative errno with diag. */
int pl_pipeline_start(struct pl_pipeline *pipeline, struct pl_diag *diag);

/*
 * Changes to another configuration without losing a packet: unchanged sources, outputs and tables
 * keep their state. Takes `config` over on success; on failure nothing has changed. Keys that
 * cannot be changed while running stay as they were and are named in the log.
 */
int pl_pipeline_reload(
	struct pl_pipeline *pipeline, struct pl_config *config, struct pl_diag *diag);
/* Counts a reload that failed before pl_pipeline_reload (a bad file). */
void pl_pipeline_reload_failed(struct pl_pipeline *pipeline);

/* Has outputs close their files and open them by name again. */
void pl_pipeline_reopen(struct pl_pipeline *pipeline);

/* Drains sockets and regions, and ends their workers: events of standing queries still go to the
 * outputs, until pl_pipeline_stop. */
void pl_pipeline_end_sources(struct pl_pipeline *pipeline, uint64_t limit_ns);
/* Drains the sockets, then the outputs, within limit_ns. Returns the number of entries left
 * undelivered. */
uint64_t pl_pipeline_stop(struct pl_pipeline *pipeline, uint64_t limit_ns);
void pl_pipeline_free(struct pl_pipeline *pipeline);

struct pl_pipeline_stats {
	struct pl_totals totals;
	struct pl_port_stats ports; /* sums; rcvbuf of the smallest */
	unsigned int workers, workers_failed;
	uint64_t exporters, flows, raised;
	struct pl_output_stats outputs; /* sums over configured outputs */
	uint64_t started_ns;            /* since the Unix epoch */
	uint64_t age_ns;                /* of the workers' state: high when one does not answer */
	uint64_t open_ns; /* for how long a worker has not answered; 0: all answered */
};
/* Gives the state; when a worker is slow, that of its last answer. Returns -ESRCH when nothing
 * runs. */
int pl_pipeline_stats(struct pl_pipeline *pipeline, struct pl_pipeline_stats *ret);
/* As the function before, without waiting for workers: gives their answers to the last request, and
 * makes the next one. */
int pl_pipeline_stats_now(struct pl_pipeline *pipeline, struct pl_pipeline_stats *ret);

/* Empties `into`, then adds what all workers see now. As pl_pipeline_stats. */
int pl_pipeline_aggregate(struct pl_pipeline *pipeline, struct pl_aggregate *into);

/* Returns whether all is well: listeners open, outputs able to write and to keep up. Adds an object
 * with the details to `json` unless it is NULL. */
bool pl_pipeline_ready(struct pl_pipeline *pipeline, struct pl_buf *json);
/* The same, but never waits for threads that read or change the pipeline: then it returns the last
 * result of pl_pipeline_ready. */
bool pl_pipeline_ready_now(struct pl_pipeline *pipeline, struct pl_buf *json);
/* The same as a list, which also has a failed reload, as a warning. */
void pl_pipeline_conditions(void *pipeline, struct pl_conditions *ret);

/* The configuration in use; for the controlling thread only. */
const struct pl_config *pl_pipeline_config(const struct pl_pipeline *pipeline);

/* Gives events of queries and marks to the outputs. Returns how many were taken: none if none are
 * configured, fewer than n when too many wait. The controlling thread. */
uint32_t pl_pipeline_put_events(
	struct pl_pipeline *pipeline, const struct pl_event *events, uint32_t n);

/* Has this process's regions read now, instead of after their interval, because they were written.
 * On the controlling thread. */
void pl_pipeline_wake_regions(struct pl_pipeline *pipeline);
/* Sets where the writer of a region, in this process, notes the keys of its slots; before the
 * start. Both live as long as the pipeline. */
struct pl_key_names;
void pl_pipeline_name_keys(
	struct pl_pipeline *pipeline, const char *region, const struct pl_key_names *names);

/* Name and port of socket i, in the order of the configuration; NULL after the last. Before a
 * reload. */
const char *pl_pipeline_listener(
	const struct pl_pipeline *pipeline, unsigned int i, uint16_t *ret_port);

/* Returns the output of that name, which lives as long as the pipeline if pl_pipeline_add_output
 * made it; or NULL. */
struct pl_output *pl_pipeline_find_output(struct pl_pipeline *pipeline, const char *name);

/* Upper bound of a pipeline's memory, without the program and its stacks. */
uint64_t pl_pipeline_memory(const struct pl_config *config);
