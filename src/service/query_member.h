/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A query as a member of a Kafka consumer group, as a service. Each input partition that the group
 * assigns to this member has a run of its own, so that it moves alone: the position up to the first
 * record that an open window needs is committed, with the time up to which windows are closed, and
 * the next member to get the partition continues exactly there.
 *
 * A query whose groups each lie in one partition gives its rows at once. Any other runs in two
 * stages (query/merge.h): runs put partial results and marks into a topic, partitioned by window,
 * whose partitions a second group, GROUP.partials, shares among the same members; they merge and
 * give rows.
 *
 * Rows go to a topic as JSON messages (query/result_json.h), or to `row`. Positions are committed
 * when rows and partial results are acknowledged, or together with them in a transaction. When the
 * brokers refuse a transaction, as they do when partitions move meanwhile, it is aborted, and the
 * partitions that this member still has are read again from the committed position.
 */
#pragma once

#include "kafka/writer.h"
#include "query/merge.h"
#include "record/clocks.h"
#include "runtime/runtime.h"

#define PL_QUERY_MEMBER_PARTIALS 4 /* partitions of a new topic of partial results */

struct pl_query_member_options {
	const char *uri;      /* kafka://HOST[:PORT],…/TOPIC[?property=value&…] */
	const char *group;    /* the consumer group */
	const char *name;     /* name of the query in result messages */
	const char *results;  /* topic on the same brokers; NULL: rows go to `row` */
	const char *partials; /* topic on the same brokers; NULL: tm.partial.GROUP */
	bool transactions;
	const struct pl_query *query;
	enum pl_flat_kind kind;
	struct pl_query_config config;
	uint64_t idle_ns; /* time without a record after which a partition that was read to its end
			   * closes its windows and holds others back no longer; with a join of
			   * records its WITHIN longer */
	pl_query_sink *row;
	void (*turned)(void *arg); /* called after the rows of a turn, written when it returns */
	bool (*full)(void *arg);   /* returns true when no more rows are wanted */
	void *arg;
};

struct pl_query_input;
struct pl_query_output;

struct pl_query_member {
	const struct pl_query_member_options *o;
	struct pl_kafka_consumer *records, *partials;
	struct pl_kafka_writer *writer;
	struct pl_query_input **inputs;   /* by partition; NULL: not assigned to this member */
	struct pl_query_output **outputs; /* of the topic of partial results, likewise */
	uint32_t n_inputs, n_outputs;
	struct pl_query_sender sender;
	uint32_t piece_max;                 /* most bytes of a partial result */
	char topic[PL_KAFKA_TOPIC_MAX + 1]; /* topic of partial results */
	char name[PL_KAFKA_URI_MAX];        /* the URI without its keys */
	struct pl_buf key, value;
	uint64_t synced_ns, rows;
	uint64_t rows_done, rows_back; /* of `rows`: number up to the last commit; aborted */
	/* A transaction was aborted: reading goes back to the committed position. back_ns: since
	 * when no transaction has succeeded (0: no trouble); back_last_ns: time of the last abort;
	 * back_rows: an aborted transaction had rows, so only the success of one with rows ends the
	 * trouble. */
	bool back, back_rows;
	uint64_t back_ns, back_last_ns;
	/* Number of records, and of partial results, that were done before and were read again. */
	uint64_t records_again, pieces_again;
	uint32_t max_batch;
	struct pl_kafka_writer_stats written; /* counters of writers that were closed */
	/* counters of partitions that are no longer ours */
	struct pl_query_merge_stats merged;
	struct pl_query_stats asked;
	int failed;
	struct pl_diag why, trouble;
	struct pl_clocks clocks; /* clocks of the records that it read */
	bool by_flow;            /* all records of a flow must be in one partition */
	bool two_stages, began, told_version;
};

/* Returns how many places may hold records of one flow: as many topics for pl_query_split. */
uint32_t pl_query_member_places(const struct pl_kafka_uri *uri);

extern const struct pl_service_ops pl_query_member_service;

void pl_query_member_close(struct pl_query_member *m);
