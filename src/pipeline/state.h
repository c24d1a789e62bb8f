/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a pipeline: pipeline.c starts and stops it, source.c and reload.c change its
 * parts, snapshot.c copies for readers: ready.c, metrics.c, series.c, api*.c. `lock` guards
 * all members. */
#pragma once

#include <pthread.h>
#include <sched.h>

#include "base/condition.h"
#include "pipeline/pipeline.h"
#include "pipeline/region_source.h"

#define PL_OUTPUTS_MAX 32

struct pl_pipeline {
	pthread_mutex_t lock;
	struct pl_config config;
	struct pl_profile *profiles;
	struct pl_worker *workers[PL_WORKERS_MAX];
	unsigned int n_workers;
	unsigned int next_id;
	const struct pl_rights *rights;
	struct pl_output *outputs[PL_OUTPUTS_MAX];
	char *output_ids
		[PL_OUTPUTS_MAX]; /* pl_config_output_identity; NULL: added, not configured */
	uint64_t output_full[PL_OUTPUTS_MAX]; /* time of the last check of pl_pipeline_ready */
	uint64_t output_full_ns[PL_OUTPUTS_MAX];
	unsigned int n_outputs;
	bool running, stopping;

	struct pl_region_source *regions;           /* NULL: none are read */
	struct pl_region_keys keys;                 /* of pl_pipeline_name_keys */
	uint64_t alerts_refused, alerts_refused_ns; /* of regions; time of the last one, 0: none */
	struct pl_event_feed *events;               /* of queries and marks; NULL: none */

	/* Copy for readers. */
	struct pl_aggregate *merged;
	uint64_t snapshot_ns; /* monotonic; 0: a new one must be made */
	/* Snapshots of all workers are requested together, and taken together. asked, taken: how
	 * many times. */
	bool asking;
	uint64_t asked, taken, asked_ns;
	uint64_t published_ns; /* time of the last snapshot; the first one is empty */
	bool behind;           /* a worker did not answer in time */

	/* Sums of the exporters without series of their own, as read last and as shown. */
	struct pl_exporter others_read, others_shown;

	/* Sums of workers that were removed. */
	struct pl_totals gone;
	struct pl_port_stats gone_ports;

	uint64_t started_ns;
	uint64_t reloads_ok, reloads_failed;
	bool last_reload_ok;
	uint64_t last_reload_ok_ns; /* since the Unix epoch */

	/* From pl_pipeline_add_families; NULL: none. */
	void (*families)(void *pipeline, struct pl_exposition *page);

	/* The last result of pl_pipeline_ready, for readers that must not wait; under its own
	 * lock. */
	pthread_mutex_t said_lock;
	struct pl_buf said;
	struct pl_conditions said_conditions;
	bool said_ready; /* it was made at least once */
};

/* Refreshes every worker's snapshot and the merged aggregate; the lock is held, but released while
 * waiting. When a worker does not answer within about a second they stay as they were, and the next
 * call may have the answer; pl_pipeline_age_ns tells their age. Returns 0; -ESRCH when the pipeline
 * does not run. */
int pl_pipeline_snapshot(struct pl_pipeline *pipeline);
/* As pl_pipeline_snapshot, but does not wait: uses the latest answers, and requests the next
 * ones. */
int pl_pipeline_snapshot_now(struct pl_pipeline *pipeline);
/* Returns for how long workers have not answered; 0: they all have. With the lock held. */
uint64_t pl_pipeline_open_ns(const struct pl_pipeline *pipeline);
/* Makes the next reader ask all workers again, because their answers are outdated. With the lock
 * held. */
void pl_pipeline_forget_answers(struct pl_pipeline *pipeline);
uint64_t pl_pipeline_age_ns(const struct pl_pipeline *pipeline);
/* Takes the answers, if all are there. With the lock held. */
void pl_pipeline_look(struct pl_pipeline *pipeline);

/* Parts to make again. rules: detectors stay and get new rules. copies: other reports of those that
 * the kernel settled are wanted. */
struct pl_changes {
	bool decode, aggregate, detect, rules, copies;
};

/* ---- shared by pipeline.c and reload.c ---- */

/* Opens the sockets of a source as workers, not started, and adds them behind the first *n. */
int pl_pipeline_open_source(struct pl_pipeline *pipeline, const struct pl_config *config,
	const struct pl_profile *profiles, const struct pl_config_source *source,
	struct pl_worker **workers, unsigned int *n, struct pl_diag *diag);
/* Adds the worker that reads regions, not started, behind the first *n; makes p->regions. Does
 * nothing when no region is read. */
int pl_pipeline_open_regions(struct pl_pipeline *pipeline, const struct pl_config *config,
	struct pl_worker **workers, unsigned int *n, struct pl_diag *diag);
/* Adds the worker for events of queries and marks; makes p->events. As above. */
int pl_pipeline_open_events(struct pl_pipeline *pipeline, const struct pl_config *config,
	struct pl_worker **workers, unsigned int *n, struct pl_diag *diag);
/* Returns the processor for a worker, -1 for none. */
int pl_source_cpu(const struct pl_worker *worker, enum pl_config_pin pin);
/* Returns the i-th allowed processor, modulo their number, preferring those in `near` (NULL, or
 * none of them allowed: any); -1: none. */
int pl_source_choose_cpu(const cpu_set_t *allowed, const cpu_set_t *near, unsigned int i);
/* Parses "0-3,8" as in /sys. Returns -EINVAL. */
int pl_source_parse_cpus(const char *text, cpu_set_t *ret);
int pl_pipeline_open_output(struct pl_pipeline *pipeline, struct pl_output **ret,
	const struct pl_config_output *config, struct pl_diag *diag);
/* Takes the output over, also on failure. Returns -ENOMEM. */
int pl_pipeline_keep_output(
	struct pl_pipeline *pipeline, struct pl_output *output, const char *identity);
/* Makes the parts that `make` asks for, without taps. */
int pl_pipeline_engine_new(struct pl_engine **ret, const struct pl_config *config,
	const struct pl_profile *profiles, const struct pl_worker *worker,
	const struct pl_changes *make);
int pl_pipeline_add_tap(struct pl_engine *engine, struct pl_output *output);
/* Starts a worker with an engine and a tap for each output not skipped (NULL: for all). */
int pl_pipeline_start_worker(struct pl_pipeline *pipeline, struct pl_worker *worker,
	const struct pl_config *config, const struct pl_profile *profiles, const bool *skip_output);
