/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The marking domains of a configuration as one service: they compute loss and delay of segments
 * (mark/domain.h) from block records that points send as tmpkt/1, append to regions or put into
 * topics of Kafka; results are on the metrics page, in a table, and events. The sockets belong to a
 * tap of the domain's name, so the taps are drained first.
 */
#pragma once

#include "mark/domain.h"
#include "marks/region.h"
#include "marks/topic.h"
#include "pipeline/config.h"
#include "runtime/runtime.h"
#include "tap/receiver.h"
#include "web/http.h"

#define PL_MARKS_SOURCES_MAX 16

struct pl_marks;

struct pl_marks_one {
	const char *name;
	uint64_t period_ns;
	struct pl_marks *all;
	struct pl_mark_network network;
	struct pl_mark_domain *domain;
	struct pl_prefix allow[PL_CONFIG_PREFIXES_MAX];
	const char *ports[PL_MARKS_SOURCES_MAX];
	unsigned int n_ports;
	const char *const *to; /* outputs of results; owned by the configuration */
	size_t n_to;
	/* Set by the owner of the tap with the sockets and outputs. give: passes results to outputs,
	 * viewers and queries. give_blocks: passes accepted block records to viewers and queries. */
	struct pl_tmpkt_receiver *const *receiver;
	void (*give)(void *arg, const struct pl_seg192 *records, uint32_t n);
	void (*give_blocks)(void *arg, const struct pl_mark128 *records, uint32_t n);
	void *give_arg;
	struct pl_marks_region regions[PL_MARKS_SOURCES_MAX];
	unsigned int n_regions;
	struct pl_marks_region_stats region_stats;
	struct pl_marks_topic *topics; /* n_topics of them; NULL: not made yet */
	unsigned int n_topics;
	uint64_t events_dropped;
};

struct pl_marks {
	struct pl_marks_one *items[PL_CONFIG_MARKS_MAX];
	unsigned int n;
	/* Takes events, as pl_pipeline_put_events does. */
	uint32_t (*put)(void *arg, const struct pl_event *events, uint32_t n);
	void *arg;
	uint64_t regions_ns;               /* time of the next reading */
	uint64_t topics_ns, conditions_ns; /* next times for these */
	struct pl_condition_board conditions;
};

/* Makes the domains of a configuration, whose strings must stay valid; `put` and `arg` are set
 * before. -EINVAL with diag, -ENOMEM: the caller closes what was made. */
int pl_marks_init(struct pl_marks *ret, const struct pl_config *config, struct pl_diag *diag);
void pl_marks_close(struct pl_marks *marks);
/* Returns true when any event found no room. */
bool pl_marks_lost(const struct pl_marks *marks);
/* Upper bound of the domains' memory, in bytes. */
uint64_t pl_marks_memory(const struct pl_config *config);

/* Takes records that the receiver has; arg: struct pl_marks_one. Between two turns. */
void pl_marks_take(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n);

/* Called after the last datagram: reads regions and topics to their end, and reports unfinished
 * blocks as they are. arg: struct pl_marks_one. */
void pl_marks_finish(void *arg);

/* Takes thresholds, clock error and senders from the configuration, between two turns; no more. */
void pl_marks_change(struct pl_marks *marks, const struct pl_config *config);

/* account.c */
void pl_marks_put(void *marks, const struct pl_account *a);
void pl_marks_put_text(void *marks, struct pl_buf *text);
/* Replies with the page of segments and points; arg: struct pl_marks; NULL: none. */
pl_http_handler pl_marks_page;

extern const struct pl_service_ops pl_marks_service;
