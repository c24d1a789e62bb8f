/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The standing queries of a configuration as one service: over the records of the process's taps
 * and of topics, and over paths, hops, events and values of its collector, with results as events, gauges,
 * log lines, lines of files and messages of topics. It is opened before the taps, so that it is
 * drained after them, and after the collector, whose sources it ends before its own last rows.
 */
#pragma once

#include "pipeline/config.h"
#include "runtime/runtime.h"
#include "service/taps.h"

struct pl_output;
struct pl_pipeline;
struct pl_report_feed;
struct pl_standing_query;

struct pl_standing {
	struct pl_taps *taps;
	struct pl_standing_query *queries[PL_CONFIG_QUERIES_MAX];
	unsigned int n;
	/* Takes events on the service's thread; how many found room. */
	uint32_t (*put)(void *arg, const struct pl_event *events, uint32_t n);
	void *arg;
	/* Of the collector; NULL before pl_standing_attach. */
	struct pl_pipeline *pipeline;
	struct pl_output *output; /* through which `feed` gets reports and events */
	struct pl_report_feed *feed;
	uint64_t due_ns, outs_due_ns;
	struct pl_condition_board conditions;
	bool began;
};

/* Whether outputs have a form for the rows of the configuration's queries; opens nothing. Negative
 * errno with diag. */
int pl_standing_check(const struct pl_config *config, struct pl_diag *diag);

/* The queries of the configuration. `put` and `arg` are set, the rest is zero. Negative errno with
 * diag: what was made is the caller's to close. */
int pl_standing_init(struct pl_standing *s, struct pl_taps *taps, const struct pl_config *config,
	struct pl_diag *diag);

/* Adds the output of the collector through which its records come; before the pipeline's start.
 * Negative errno with diag. */
int pl_standing_attach(struct pl_standing *s, struct pl_pipeline *pipeline, struct pl_diag *diag);

/* While it runs, from outside of turns: queries that stay the same keep their windows, others come
 * and go. Negative errno with diag: nothing has changed. */
int pl_standing_change(struct pl_standing *s, const struct pl_config *config, struct pl_diag *diag);

/* Once rules of taps have changed: what queries have these do in the kernel. From outside of
 * turns. */
void pl_standing_push_again(struct pl_standing *s);

/* Reports and events of the collector that found no room on the way to the queries. */
uint64_t pl_standing_missed(const struct pl_standing *s);
/* Whether a line or an event of a query was lost. */
bool pl_standing_lost(const struct pl_standing *s);
void pl_standing_close(struct pl_standing *s);

extern const struct pl_service_ops pl_standing_service;
