/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A query as a member of a Kafka consumer group, as a service. Each input partition that the group
 * gives to this member has a run of its own, so that it moves alone: what it read is committed up
 * to the first record that an open window needs, with the time up to which windows are closed, and
 * whoever gets the partition goes on exactly there.
 *
 * A query whose groups each lie in one partition gives its rows at once. Any other goes in two
 * stages (query/merge.h): runs put partial results and marks into a topic, partitioned by window,
 * whose partitions a second group, GROUP.partials, shares among the same members; they merge and
 * give rows.
 *
 * Rows go to a topic as JSON messages (query/result_json.h), or to `row`. Positions are committed
 * when rows and partial results are acknowledged, or together with them in a transaction. One that
 * the brokers refuse, as they do when partitions move meanwhile, is taken back: the partitions that
 * are still this member's are read again from where the group stands.
 */
#pragma once

#include "kafka/writer.h"
#include "query/merge.h"
#include "record/clocks.h"
#include "runtime/runtime.h"

#define PL_QUERY_MEMBER_PARTIALS 4 /* partitions of a topic of partial results that is made */

struct pl_query_member_options {
	const char *uri;      /* kafka://HOST[:PORT],…/TOPIC[?property=value&…] */
	const char *group;    /* the consumer group */
	const char *name;     /* of the query, in result messages */
	const char *results;  /* topic on the same brokers; NULL: rows go to `row` */
	const char *partials; /* topic on the same brokers; NULL: tm.partial.GROUP */
	bool transactions;
	const struct pl_query *query;
	enum pl_flat_kind kind;
	struct pl_query_config config;
	uint64_t idle_ns; /* a partition that was read to its end, without a record: its windows
			     close, and it holds others back no longer; with a join of records its
			     WITHIN longer */
	pl_query_sink *row;
	void (*turned)(void *arg); /* behind the rows of a turn; they are written when it returns */
	bool (*full)(void *arg);   /* no more rows are wanted */
	void *arg;
};

struct pl_query_input;
struct pl_query_output;

struct pl_query_member {
	const struct pl_query_member_options *o;
	struct pl_kafka_consumer *records, *partials;
	struct pl_kafka_writer *writer;
	struct pl_query_input **inputs;   /* by partition; NULL: another member's */
	struct pl_query_output **outputs; /* of the partials, likewise */
	uint32_t n_inputs, n_outputs;
	struct pl_query_sender sender;
	uint32_t piece_max;                 /* bytes of a partial result */
	char topic[PL_KAFKA_TOPIC_MAX + 1]; /* of partial results */
	char name[PL_KAFKA_URI_MAX];        /* the URI without its keys */
	struct pl_buf key, value;
	uint64_t synced_ns, rows;
	uint64_t rows_done, rows_back; /* of the rows, up to the last commit, and taken back */
	/* A transaction was taken back: what is read goes back to where the group stands. Since when
	 * none has been committed, and, where one of those had rows, none with rows; 0: it is not
	 * so. When it was the last time. */
	bool back, back_rows;
	uint64_t back_ns, back_last_ns;
	/* Records, and pieces, that were done before and read again beside those that were not. */
	uint64_t records_again, pieces_again;
	uint32_t max_batch;
	struct pl_kafka_writer_stats written; /* of writers that were given up */
	/* of partitions that are no longer ours */
	struct pl_query_merge_stats merged;
	struct pl_query_stats asked;
	int failed;
	struct pl_diag why, trouble;
	struct pl_clocks clocks; /* of the records that it read */
	bool by_flow;            /* all of a flow has to be in one partition */
	bool two_stages, began, told_version;
};

/* As many topics as pl_query_split is to know of: in how many places the records of a flow may be. */
uint32_t pl_query_member_places(const struct pl_kafka_uri *uri);

extern const struct pl_service_ops pl_query_member_service;

void pl_query_member_close(struct pl_query_member *m);
