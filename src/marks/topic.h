/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block records out of a topic of Kafka, as outputs of `pathline mark` and `meter` write them. All
 * partitions are read, by a group of this reader's own, and nothing is committed: blocks of before the
 * start are over.
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

/* Who sent, as far as it can be told: by the number of the exporter and the point of its first record. */
struct pl_marks_sender {
	bool used;
	uint32_t exporter, point;
	uint64_t next, dropped; /* sequence number that follows, and drops that were told */
};

struct pl_marks_topic {
	const char *uri; /* the configuration's */
	char name[256];  /* that without its keys: values may be passwords */
	struct pl_kafka_consumer *consumer;
	struct pl_marks_sender senders[PL_MARK_POINTS_MAX];
	unsigned int n_senders;
	struct pl_marks_topic_stats stats;
	char trouble[256]; /* the client's last, which may be over; empty: none */
	bool away;         /* nothing comes, and this was told */
};

/* torn: some before them may be lost. */
typedef void pl_marks_topic_sink(
	void *arg, const struct pl_mark128 *records, uint32_t n, bool torn);

int pl_marks_topic_files(const char *uri, struct pl_confine *confine);
/* Behind the rights. A broker that is away is waited for. Negative errno with diag. */
int pl_marks_topic_open(struct pl_marks_topic *topic, const char *uri, struct pl_diag *diag);
/* What is there, at most a bounded piece; waits for nothing. Whether there is more at once. */
bool pl_marks_topic_turn(struct pl_marks_topic *topic, pl_marks_topic_sink *sink, void *arg);
/* Why nothing comes, no broker is up or no partition was given; NULL: it does, or nothing is known. */
const char *pl_marks_topic_trouble(const struct pl_marks_topic *topic);
void pl_marks_topic_close(struct pl_marks_topic *topic);
