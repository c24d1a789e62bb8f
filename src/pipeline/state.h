/* SPDX-License-Identifier: BSD-2-Clause */
/* What a pipeline is made of; for the files of this folder. Everything is under `lock`. */
#pragma once

#include <pthread.h>
#include <sched.h>

#include "base/condition.h"
#include "pipeline/pipeline.h"

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
		[PL_OUTPUTS_MAX]; /* pl_config_output_identity; NULL = added, not configured */
	uint64_t output_full[PL_OUTPUTS_MAX]; /* last seen by pl_pipeline_ready */
	uint64_t output_full_ns[PL_OUTPUTS_MAX];
	unsigned int n_outputs;
	bool running, stopping;

	struct pl_region_source *regions;           /* NULL: none are read */
	uint64_t alerts_refused, alerts_refused_ns; /* of regions, and when the last was; 0: none */
	struct pl_event_feed *events;               /* of standing queries; NULL: there were none */

	/* Readers' copy. */
	struct pl_aggregate *merged;
	uint64_t snapshot_ns; /* monotonic; 0: another one is wanted */
	/* All workers are asked for snapshots together, and theirs are taken together. asked,
	 * taken: how many times. */
	bool asking;
	uint64_t asked, taken, asked_ns;
	uint64_t published_ns; /* of what was taken last; that of the start is empty */
	bool behind;           /* it was waited for in vain */

	/* Of workers that are gone. */
	struct pl_totals gone;
	struct pl_port_stats gone_ports;

	uint64_t started_ns;
	uint64_t reloads_ok, reloads_failed;
	bool last_reload_ok;
	uint64_t last_reload_ok_ns; /* since the Unix epoch */

	/* pl_pipeline_add_families; NULL: there are none */
	void (*families)(void *arg, struct pl_exposition *page);
	void *families_arg;

	/* What pl_pipeline_ready said last, for those who must not wait; under a lock of its
	 * own. */
	pthread_mutex_t said_lock;
	struct pl_buf said;
	struct pl_conditions said_conditions;
	bool said_ready; /* it was said once */
};

/* With the lock held, of which it lets go while it waits: makes every worker's snapshot and the
 * merged aggregate fresh. When a worker does not answer within about a second they stay what they
 * were, and the next one may have the answer; pl_pipeline_age_ns tells how old they are. 0; -ESRCH
 * when it does not run. */
int pl_pipeline_snapshot(struct pl_pipeline *pipeline);
/* With the lock held: every worker is asked anew, because what one answered is no more. */
void pl_pipeline_forget_answers(struct pl_pipeline *pipeline);
uint64_t pl_pipeline_age_ns(const struct pl_pipeline *pipeline);
/* With the lock held: takes what was asked for, if it is there. */
void pl_pipeline_look(struct pl_pipeline *pipeline);

/* Which parts to make anew. rules: the detectors stay, by other rules. copies: of what the kernel
 * settled, others are wanted. */
struct pl_changes {
	bool decode, aggregate, detect, rules, copies;
};

/* For pipeline.c and reload.c. */

/* Opens the sockets of one source as workers, unstarted, behind the *n there are. */
int pl_pipeline_open_source(struct pl_pipeline *pipeline, const struct pl_config *config,
	const struct pl_profile *profiles, const struct pl_config_source *source,
	struct pl_worker **workers, unsigned int *n, struct pl_diag *diag);
/* The worker that reads regions, unstarted, behind the *n there are; makes p->regions. Nothing when
 * none is to be read. */
int pl_pipeline_open_regions(struct pl_pipeline *pipeline, const struct pl_config *config,
	struct pl_worker **workers, unsigned int *n, struct pl_diag *diag);
/* The worker that takes the events of standing queries; makes p->events. As above. */
int pl_pipeline_open_events(struct pl_pipeline *pipeline, const struct pl_config *config,
	struct pl_worker **workers, unsigned int *n, struct pl_diag *diag);
/* The processor for a worker, -1 for none. */
int pl_source_cpu(const struct pl_worker *worker, enum pl_config_pin pin);
/* Of those allowed, the i-th that is near (NULL or none of them allowed: any), round and round; -1:
 * none. */
int pl_source_choose_cpu(const cpu_set_t *allowed, const cpu_set_t *near, unsigned int i);
/* "0-3,8" as in /sys; -EINVAL. */
int pl_source_parse_cpus(const char *text, cpu_set_t *ret);
int pl_pipeline_open_output(struct pl_pipeline *pipeline, struct pl_output **ret,
	const struct pl_config_output *config, struct pl_diag *diag);
/* Takes the output over, also on failure. */
int pl_pipeline_keep_output(
	struct pl_pipeline *pipeline, struct pl_output *output, const char *identity);
/* Parts as `make` says, no taps yet. */
int pl_pipeline_engine_new(struct pl_engine **ret, const struct pl_config *config,
	const struct pl_profile *profiles, const struct pl_worker *worker,
	const struct pl_changes *make);
int pl_pipeline_add_tap(struct pl_engine *engine, struct pl_output *output);
/* A whole engine with a tap of every output but those to skip (NULL = none), and its thread. */
int pl_pipeline_start_worker(struct pl_pipeline *pipeline, struct pl_worker *worker,
	const struct pl_config *config, const struct pl_profile *profiles, const bool *skip_output);
