/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The running collector: sources, workers, outputs, as a configuration says. One worker thread per
 * socket of each source; one thread per output. received = decoded + every verdict that is not
 * "ok", and records accepted by an output = delivered + dropped by cause + waiting, at every quiet
 * point.
 *
 * One thread controls (new … free); pl_pipeline_stats, pl_pipeline_ready and pl_metrics_write may
 * be called by any other thread at the same time. Nothing here is on the packet path.
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

/* Opens every source: what may take rights that are given up before the start. Takes the
 * configuration over on success. rights: of a helper (netio/helper.h), which outlives the
 * pipeline, or NULL. -EINVAL, errno of what could not be opened, with diag. */
int pl_pipeline_new(struct pl_pipeline **ret, struct pl_config *config,
	const struct pl_rights *rights, struct pl_diag *diag);

/* An output beyond the configured ones, before the start; kept by reloads. Nobody was promised it:
 * it is in neither the sums of pl_pipeline_stats nor the readiness. Takes `export` over, always. */
int pl_pipeline_add_output(struct pl_pipeline *pipeline, const char *name, struct pl_export *export,
	uint32_t queue_records, struct pl_diag *diag);

/* Families of others, at the end of pl_metrics_write and so wherever those of the pipeline go.
 * Before the start; `write` is called by any thread, and waits for nobody that holds the
 * pipeline. */
struct pl_exposition;
void pl_pipeline_add_families(struct pl_pipeline *pipeline,
	void (*write)(void *arg, struct pl_exposition *page), void *arg);

/* Opens the outputs and starts all threads. errno of what could not be opened, with diag. */
int pl_pipeline_start(struct pl_pipeline *pipeline, struct pl_diag *diag);

/*
 * Goes over to another configuration without losing a packet: sources, outputs and tables that stay
 * the same go on with all they know. Takes `config` over on success; on failure nothing has
 * changed. Keys that cannot be changed while running stay as they were and are named in the log.
 */
int pl_pipeline_reload(
	struct pl_pipeline *pipeline, struct pl_config *config, struct pl_diag *diag);
/* A reload that failed before it came here (the file was bad); for the metrics. */
void pl_pipeline_reload_failed(struct pl_pipeline *pipeline);

/* Outputs let go of their files and open them by name again. */
void pl_pipeline_reopen(struct pl_pipeline *pipeline);

/* Empties the sockets and regions, and ends their workers: events of standing queries go on to the
 * outputs, until pl_pipeline_stop. */
void pl_pipeline_end_sources(struct pl_pipeline *pipeline, uint64_t limit_ns);
/* Empties the sockets, then the outputs, until the deadline (from now). Returns entries left
 * undelivered. */
uint64_t pl_pipeline_stop(struct pl_pipeline *pipeline, uint64_t limit_ns);
void pl_pipeline_free(struct pl_pipeline *pipeline);

struct pl_pipeline_stats {
	struct pl_totals totals;
	struct pl_port_stats ports; /* sums; rcvbuf of the smallest */
	unsigned int workers, workers_failed;
	uint64_t exporters, flows, raised;
	struct pl_output_stats outputs; /* sums over the configured ones */
	uint64_t started_ns;            /* since the Unix epoch */
	uint64_t age_ns;                /* of what workers told: long when one does not answer */
};
/* What workers told last when one does not answer within a second. -ESRCH when it does not run. */
int pl_pipeline_stats(struct pl_pipeline *pipeline, struct pl_pipeline_stats *ret);

/* Adds what all workers see now to `into`, which is emptied first. As pl_pipeline_stats. */
int pl_pipeline_aggregate(struct pl_pipeline *pipeline, struct pl_aggregate *into);

/* Whether every promise holds: listeners alive, outputs able to write and to keep up. Adds an
 * object that says so to `json` unless it is NULL. */
bool pl_pipeline_ready(struct pl_pipeline *pipeline, struct pl_buf *json);
/* The same, but never waits for who reads the pipeline or changes it: then it is what
 * pl_pipeline_ready said last. */
bool pl_pipeline_ready_now(struct pl_pipeline *pipeline, struct pl_buf *json);
/* The same as a list; a failed reload is in it too, as a warning. */
void pl_pipeline_conditions(struct pl_pipeline *pipeline, struct pl_conditions *ret);

/* The configuration in use; the controlling thread only. */
const struct pl_config *pl_pipeline_config(const struct pl_pipeline *pipeline);

/* Events of standing queries, for the outputs. How many were taken: none where the configuration
 * has no queries, and fewer than n when so many wait already. The controlling thread. */
uint32_t pl_pipeline_put_events(
	struct pl_pipeline *pipeline, const struct pl_event *events, uint32_t n);

/* Has regions of this process read now, not at their interval, because they were written. On the
 * controlling thread. */
void pl_pipeline_wake_regions(struct pl_pipeline *pipeline);
/* Where the keys of a region's slots are noted by its writer, in this process: before the start. Both
 * live as long as the pipeline. */
struct pl_key_names;
void pl_pipeline_name_keys(
	struct pl_pipeline *pipeline, const char *region, const struct pl_key_names *names);

/* Name and port of socket i, in the order of the configuration; NULL behind the last. Before a
 * reload. */
const char *pl_pipeline_listener(
	const struct pl_pipeline *pipeline, unsigned int i, uint16_t *ret_port);

/* The output of that name, which lives as long as the pipeline if pl_pipeline_add_output made it;
 * NULL. */
struct pl_output *pl_pipeline_find_output(struct pl_pipeline *pipeline, const char *name);

/* Upper bound of what a pipeline holds, without the program and its stacks. */
uint64_t pl_pipeline_memory(const struct pl_config *config);
