/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads block records from a topic of Kafka, as outputs of `pathline mark` and `meter` write them.
 * The reader has a group of its own, reads all partitions and commits nothing: blocks from before
 * the start are over.
 */
#pragma once

#include "base/diag.h"
#include "base/stats.h"
#include "mark/network.h"
#include "record/packet.h"
#include "runtime/confine.h"

struct pl_kafka_consumer;

struct pl_marks_topic_stats {
#define PL_STAT PL_STAT_MEMBER
#include "marks/topic_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_marks_topic_list;

/* A sender, identified by its exporter number and the point of its first record. */
struct pl_marks_sender {
	bool used;
	uint32_t exporter, point;
	uint64_t next, dropped; /* next: expected sequence number; dropped: drops reported */
};

struct pl_marks_topic {
	const char *uri; /* the configuration's */
	char name[256];  /* the URI without its keys: their values may be passwords */
	struct pl_kafka_consumer *consumer;
	struct pl_marks_sender senders[PL_MARK_POINTS_MAX];
	unsigned int n_senders;
	struct pl_marks_topic_stats stats;
	char trouble[256]; /* last error of the client, possibly over; empty: none */
	bool away;         /* trouble was logged */
};

/* torn: records before these may be lost. */
typedef void pl_marks_topic_sink(
	void *arg, const struct pl_mark128 *records, uint32_t n, bool torn);

int pl_marks_topic_files(const char *uri, struct pl_confine *confine);
/* Opens the client, after rights were given up; waits for no broker. Negative errno with diag. */
int pl_marks_topic_open(struct pl_marks_topic *topic, const char *uri, struct pl_diag *diag);
/* Passes a bounded number of messages to the sink, without waiting; true: there may be more. */
bool pl_marks_topic_turn(struct pl_marks_topic *topic, pl_marks_topic_sink *sink, void *arg);
/* Returns why nothing comes: no broker is up, or no partition is assigned. NULL: no reason. */
const char *pl_marks_topic_trouble(const struct pl_marks_topic *topic);
void pl_marks_topic_close(struct pl_marks_topic *topic);
