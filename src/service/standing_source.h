/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sources of a standing query: taps of the process, paths, hops, events and values of its
 * collector, and topics that it reads itself. A tap gives every kind of records that the query
 * reads, other sources one.
 */
#pragma once

#include "runtime/confine.h"
#include "service/standing_query.h"
#include "service/taps.h"

/* Makes the sources as configured, after the query is parsed; opens nothing. *ret_partitions is the
 * number of partitions that the run needs. To be closed also on failure. Returns negative errno
 * with diag, when a tap only runs after a restart, or a topic does not fit the query. */
int pl_standing_sources_make(struct pl_standing_query *q, const struct pl_taps *taps,
	const struct pl_config_query *c, uint32_t *ret_partitions, struct pl_diag *diag);
/* Returns whether the sources are those of the configuration, in its order. */
bool pl_standing_sources_same(const struct pl_standing_query *q, const struct pl_config_query *c);
int pl_standing_sources_files(const struct pl_standing_query *q, struct pl_confine *confine);
/* Opens topics; the run must be there. Returns negative errno with diag. */
int pl_standing_sources_open(struct pl_standing_query *q, struct pl_diag *diag);
/* Reads topics. Returns whether there may be more at once. */
bool pl_standing_sources_turn(struct pl_standing_query *q, uint64_t now_ns);
/* Returns whether any source is a topic, which must be polled. */
bool pl_standing_sources_poll(const struct pl_standing_query *q);
/* Notes that its records have times of these clocks, bits 1 << enum pl_clock_kind; logs once that
 * there are several. */
void pl_standing_sources_clocks(struct pl_standing_query *q, uint32_t kinds);
/* Feeds records of a tap to the run, if that is a source; packets are pkt96. */
void pl_standing_sources_take(struct pl_standing_query *q, const struct pl_taps *taps, int tap,
	enum pl_flat_kind kind, const void *records, uint32_t n);
/* Feeds reports, events or values of the collector to the run, if they are among the sources.
 * Events of standing queries are left out: an event of the query itself would cause the next. */
void pl_standing_sources_reports(
	struct pl_standing_query *q, const struct pl_record_batch *reports);
void pl_standing_sources_events(
	struct pl_standing_query *q, const struct pl_event *events, uint32_t n);
void pl_standing_sources_values(
	struct pl_standing_query *q, const struct pl_value *values, uint32_t n);
/* Returns the collector's streams that it reads, as bits 1 << stream. */
uint32_t pl_standing_sources_streams(const struct pl_standing_query *q);
/* Returns the kinds of records that it reads of the tap, as bits 1 << kind; packets are pkt96. */
uint32_t pl_standing_sources_kinds(const struct pl_standing_query *q, int tap);
void pl_standing_sources_close(struct pl_standing_query *q);
