/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The standing queries of a configuration as one service: over records of the process's taps and of
 * topics, and over paths, hops, events and values of its collector, with results as events, gauges,
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
	/* Takes events, on the service's thread; returns how many it took. */
	uint32_t (*put)(void *arg, const struct pl_event *events, uint32_t n);
	void *arg;
	/* the collector's; NULL before pl_standing_attach */
	struct pl_pipeline *pipeline;
	struct pl_output *output; /* the output that fills `feed` */
	struct pl_report_feed *feed;
	uint64_t due_ns, outs_due_ns;
	struct pl_condition_board conditions;
	bool began;
};

/* Checks, by their texts, that outputs support the rows of the configured queries, and that these have
 * room in this machine's memory; *ret_bytes: the most that they can take. Returns negative errno with
 * diag. */
int pl_standing_check(const struct pl_config *config, uint64_t *ret_bytes, struct pl_diag *diag);

/* Makes the queries of the configuration; only `put` and `arg` are set before. Returns negative
 * errno with diag; pl_standing_close frees all then, too. */
int pl_standing_init(struct pl_standing *s, struct pl_taps *taps, const struct pl_config *config,
	struct pl_diag *diag);

/* Adds the output of the collector that its entries come through; before the pipeline starts.
 * Returns negative errno with diag. */
int pl_standing_attach(struct pl_standing *s, struct pl_pipeline *pipeline, struct pl_diag *diag);

/* Applies a configuration while it runs, not from within a turn: unchanged queries keep their
 * windows, others are added and removed. Returns negative errno with diag: nothing has changed. */
int pl_standing_change(struct pl_standing *s, const struct pl_config *config, struct pl_diag *diag);

/* Moves the possible part of the queries into the kernel again, after rules of taps have changed.
 * Not to be called within a turn. */
void pl_standing_push_again(struct pl_standing *s);

/* Number of the collector's entries that found no room on the way to the queries. */
uint64_t pl_standing_missed(const struct pl_standing *s);
/* Returns whether a line, a row, an event, or an entry of the collector was lost. */
bool pl_standing_lost(const struct pl_standing *s);
void pl_standing_close(struct pl_standing *s);

extern const struct pl_service_ops pl_standing_service;
