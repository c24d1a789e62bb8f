/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths, hops, events and values of the process's collector for its standing queries: an output of
 * the pipeline, whose thread passes them on (report_feed.h). For standing.c; on the service's
 * thread, except for pl_standing_missed and pl_standing_reports_memory.
 */
#pragma once

#include "service/standing.h"

/* Upper bound of its memory for this configuration, in bytes. */
uint64_t pl_standing_reports_memory(const struct pl_config *config);

/* Adds the output; `streams` are the streams that are read, as bits 1 << stream. Returns negative
 * errno with diag. */
int pl_standing_open_reports(struct pl_standing *s, struct pl_pipeline *pipeline, uint32_t streams,
	struct pl_diag *diag);
/* Sets the streams that are read from now on; no-op without an output. Returns -ENOMEM. */
int pl_standing_want_reports(struct pl_standing *s, uint32_t streams);
/* Gives waiting entries to the queries. */
void pl_standing_take_reports(struct pl_standing *s);
/* Ends the collector's sources, and gives all their last entries to the queries. */
void pl_standing_end_reports(struct pl_standing *s);
