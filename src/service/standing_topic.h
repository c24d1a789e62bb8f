/* SPDX-License-Identifier: BSD-2-Clause */
/* A Kafka topic as a source of a standing query; each query reads its own. */
#pragma once

#include "export/exposition.h"
#include "runtime/confine.h"
#include "service/standing_query.h"

#define PL_STANDING_TOPIC_NS   UINT64_C(20000000) /* interval of polling */
#define PL_STANDING_PARTITIONS 4096
/* Longest time for which brokers gather records of a query with `to: events`: it delays alerts. */
#define PL_STANDING_GATHER_MS  10

int pl_standing_topic_files(const struct pl_standing_source *s, struct pl_confine *confine);
/* Opens the topic. Returns negative errno with diag. */
int pl_standing_topic_open(struct pl_standing_source *s, struct pl_diag *diag);
/* Reads messages. Returns whether there may be more at once. */
bool pl_standing_topic_turn(struct pl_standing_source *s, uint64_t now_ns);
/* Writes families of the queries that read topics: sums over the topics of each query. */
void pl_standing_topics_page(
	struct pl_standing_query *const *queries, unsigned int n, struct pl_exposition *page);
/* Number of records left out because of their partition's number. */
uint64_t pl_standing_topics_refused(const struct pl_standing_query *q);
/* Closes the topic; `leaves`: as for a reload, without waiting. */
void pl_standing_topic_close(struct pl_standing_source *s, bool leaves);
