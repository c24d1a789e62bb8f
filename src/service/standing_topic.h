/* SPDX-License-Identifier: BSD-2-Clause */
/* A topic of Kafka as a source of a standing query; each query reads its own. */
#pragma once

#include "export/exposition.h"
#include "runtime/confine.h"
#include "service/standing_query.h"

#define PL_STANDING_TOPIC_NS   UINT64_C(20000000) /* how often it is looked at */
#define PL_STANDING_PARTITIONS 4096
/* How long brokers gather records for a query with `to: events`: an alert waits so long. */
#define PL_STANDING_GATHER_MS  10

int pl_standing_topic_files(const struct pl_standing_source *s, struct pl_confine *confine);
/* Negative errno with diag. */
int pl_standing_topic_open(struct pl_standing_source *s, struct pl_diag *diag);
/* Whether there is more at once. */
bool pl_standing_topic_turn(struct pl_standing_source *s, uint64_t now_ns);
/* Families of those among the queries that read topics: of each query the sum over its topics. */
void pl_standing_topics_page(
	struct pl_standing_query *const *queries, unsigned int n, struct pl_exposition *page);
/* Records of partitions that are beyond those that there may be. */
uint64_t pl_standing_topics_refused(const struct pl_standing_query *q);
/* `leaves`: as a reload has it, which waits for nothing. */
void pl_standing_topic_close(struct pl_standing_source *s, bool leaves);
