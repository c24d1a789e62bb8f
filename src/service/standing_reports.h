/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths, hops and events of the process's collector for its standing queries: an output of the
 * pipeline, whose thread hands them over (report_feed.h). For standing.c; but for missed, the
 * service's thread.
 */
#pragma once

#include "service/standing.h"

/* What it takes with this configuration. */
uint64_t pl_standing_reports_memory(const struct pl_config *config);

/* Adds the output; `streams` are those that are read, as bits 1 << stream. Negative errno with
 * diag. */
int pl_standing_open_reports(struct pl_standing *s, struct pl_pipeline *pipeline, uint32_t streams,
	struct pl_diag *diag);
/* Which streams are read from now on. Before the output is there, nothing. -ENOMEM. */
int pl_standing_want_reports(struct pl_standing *s, uint32_t streams);
/* Gives what came to the queries. */
void pl_standing_take_reports(struct pl_standing *s);
/* Ends the sources of the collector, and gives all that they left. */
void pl_standing_end_reports(struct pl_standing *s);
