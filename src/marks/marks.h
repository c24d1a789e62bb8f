/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The marking domains of a configuration as one service: block records that points send as tmpkt/1,
 * append to regions or put into topics of Kafka, become loss and delay of segments (mark/domain.h), on the metrics page, in a
 * table, and as events. Sockets are those of a tap of the domain's name; so the taps are drained
 * before.
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
	struct pl_marks *all;
	struct pl_mark_network network;
	struct pl_mark_domain *domain;
	struct pl_prefix allow[PL_CONFIG_PREFIXES_MAX];
	const char *ports[PL_MARKS_SOURCES_MAX];
	unsigned int n_ports;
	const char *const *to; /* outputs of results; the configuration's */
	size_t n_to;
	/* Set by the owner of the tap that has its sockets and outputs. give: results to outputs and
	 * queries. */
	struct pl_tmpkt_receiver *const *receiver;
	void (*give)(void *arg, const struct pl_seg192 *records, uint32_t n);
	void *give_arg;
	struct pl_marks_region regions[PL_MARKS_SOURCES_MAX];
	unsigned int n_regions;
	struct pl_marks_region_stats region_stats;
	struct pl_marks_topic *topics; /* n_topics; NULL: none */
	unsigned int n_topics;
	uint64_t events_dropped;
};

struct pl_marks {
	struct pl_marks_one *items[PL_CONFIG_MARKS_MAX];
	unsigned int n;
	/* Where events go, as pl_pipeline_put_events. */
	uint32_t (*put)(void *arg, const struct pl_event *events, uint32_t n);
	void *arg;
	bool began;
	uint64_t regions_ns;               /* when they are read next */
	uint64_t topics_ns, conditions_ns; /* likewise */
	struct pl_condition_board conditions;
};

/* Of the configuration, whose strings are kept. `put` and `arg` are there. -EINVAL with diag,
 * -ENOMEM: what was made is the caller's to close. */
int pl_marks_init(struct pl_marks *ret, const struct pl_config *config, struct pl_diag *diag);
void pl_marks_close(struct pl_marks *marks);
/* Whether an event found no room. */
bool pl_marks_lost(const struct pl_marks *marks);
/* What the domains of a configuration hold at most. */
uint64_t pl_marks_memory(const struct pl_config *config);

/* Records of a datagram that the receiver has; arg: struct pl_marks_one. Between two turns. */
void pl_marks_take(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n);

/* The last datagram was given: reads what regions have, and tells what is not over as it is. arg:
 * struct pl_marks_one. */
void pl_marks_finish(void *arg);

/* Bounds and senders become those of the configuration, between two turns; nothing else changes. */
void pl_marks_change(struct pl_marks *marks, const struct pl_config *config);

/* marks_account.c */
void pl_marks_put_page(void *marks, struct pl_exposition *page);
void pl_marks_describe(struct pl_exposition *page);
void pl_marks_put_json(void *marks, struct pl_json *json);
void pl_marks_put_text(void *marks, struct pl_buf *text);
/* The page of segments and points; arg: the marks, NULL: there are none. */
pl_http_handler pl_marks_page;

extern const struct pl_service_ops pl_marks_service;
