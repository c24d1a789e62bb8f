/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sources of a standing query: taps of the process, paths, hops, events and values of its collector, and
 * topics that it reads itself. A tap has every kind of records that the query reads, the others one.
 */
#pragma once

#include "runtime/confine.h"
#include "service/standing_query.h"
#include "service/taps.h"

/* Those of the configuration, once the query is parsed; opens nothing. How many partitions its run
 * needs. What was made is to be closed also on failure. Negative errno with diag: a tap that runs
 * only after a restart, or a topic that the query cannot read. */
int pl_standing_sources_make(struct pl_standing_query *q, const struct pl_taps *taps,
	const struct pl_config_query *c, uint32_t *ret_partitions, struct pl_diag *diag);
/* Whether they are those of the configuration, in its order. */
bool pl_standing_sources_same(const struct pl_standing_query *q, const struct pl_config_query *c);
int pl_standing_sources_files(const struct pl_standing_query *q, struct pl_confine *confine);
/* Opens topics, once the run is there. Negative errno with diag. */
int pl_standing_sources_open(struct pl_standing_query *q, struct pl_diag *diag);
/* Reads topics. Whether there is more at once. */
bool pl_standing_sources_turn(struct pl_standing_query *q, uint64_t now_ns);
/* Whether there are topics to be looked at. */
bool pl_standing_sources_poll(const struct pl_standing_query *q);
/* Its records have times of these clocks, bits 1 << enum pl_clock_kind: tells the log once when there
 * are several. */
void pl_standing_sources_clocks(struct pl_standing_query *q, uint32_t kinds);
/* Records of a tap into the run, if it is among the sources; packets are pkt96. */
void pl_standing_sources_take(struct pl_standing_query *q, const struct pl_taps *taps, int tap,
	enum pl_flat_kind kind, const void *records, uint32_t n);
/* Reports of the collector, and its events, into the run, where they are among the sources. Events of
 * standing queries are left out: one of a query's own would bring the next. */
void pl_standing_sources_reports(
	struct pl_standing_query *q, const struct pl_record_batch *reports);
void pl_standing_sources_events(
	struct pl_standing_query *q, const struct pl_event *events, uint32_t n);
void pl_standing_sources_values(
	struct pl_standing_query *q, const struct pl_value *values, uint32_t n);
/* Which streams of the collector it reads, as bits 1 << stream. */
uint32_t pl_standing_sources_streams(const struct pl_standing_query *q);
/* Which kinds of records it reads of the tap, as bits 1 << enum pl_flat_kind; packets are pkt96. */
uint32_t pl_standing_sources_kinds(const struct pl_standing_query *q, int tap);
void pl_standing_sources_close(struct pl_standing_query *q);
