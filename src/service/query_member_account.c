/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the account of a member of a group: as JSON, on the metrics page and in words. */
#include <inttypes.h>

#include "runtime/account.h"
#include "service/query_member_parts.h"

/* Returns the sum over present and former partitions. */
static struct pl_query_merge_stats merged(const struct pl_query_member *m)
{
	struct pl_query_merge_stats sum = m->merged;

	for (uint32_t i = 0; i < m->n_outputs; i++) {
		if (m->outputs[i] != NULL)
			pl_stats_add(&pl_query_merge_list, &sum,
				pl_query_merge_stats(m->outputs[i]->merge));
	}
	sum.late -= m->pieces_again;
	sum.repeated += m->pieces_again;
	return sum;
}

static struct pl_query_stats asked(const struct pl_query_member *m)
{
	struct pl_query_stats sum = m->asked;

	for (uint32_t i = 0; i < m->n_inputs; i++) {
		if (m->inputs[i] != NULL)
			pl_stats_add(
				&pl_query_stats_list, &sum, pl_query_run_stats(m->inputs[i]->run));
	}
	sum.late -= m->records_again;
	return sum;
}

static void put_rows(const struct pl_account *a, uint64_t n, uint64_t back, uint64_t again)
{
	PL_COUNT(a, "query_", "member_records_done",
		"Records of windows that the group had done with: they were read again, and left out, beside those of windows that were open when a partition moved.",
		again);
	PL_COUNT(a, "query_", "member_rows", "Rows that this member of a group gave.", n);
	PL_COUNT(a, "query_", "member_rows_taken_back",
		"Of those, rows whose transaction was taken back: they are given again, by this member or another.",
		back);
}

static struct pl_kafka_writer_stats written(const struct pl_query_member *m)
{
	struct pl_kafka_writer_stats sum = m->written;

	if (m->writer != NULL)
		pl_stats_add(&pl_kafka_writer_list, &sum, pl_kafka_writer_stats(m->writer));
	return sum;
}

static void put_lag(const struct pl_account *a, uint64_t lag)
{
	PL_LEVEL(a, "query_", "partials_lag",
		"Messages in the assigned partitions of partial results behind the last one committed.",
		lag);
}

static void put(const struct pl_query_member *m, const struct pl_account *a)
{
	const struct pl_query_merge_stats sum = merged(m);
	const struct pl_query_stats runs = asked(m);
	const struct pl_kafka_writer_stats writer = written(m);

	pl_account_object(a, "kafka");
	pl_account_stats(a, &pl_kafka_consumer_list, pl_kafka_consumer_stats(m->records));
	pl_account_stats(a, &pl_kafka_client_list, pl_kafka_consumer_client(m->records));
	put_rows(a, m->rows, m->rows_back, m->records_again);
	pl_account_object_end(a);
	pl_account_object(a, "query");
	pl_account_stats(a, &pl_query_stats_list, &runs);
	pl_account_object_end(a);
	if (m->writer != NULL) {
		pl_account_object(a, "writer");
		pl_account_stats(a, &pl_kafka_writer_list, &writer);
		pl_account_object_end(a);
	}
	pl_account_object(a, "partials");
	pl_account_stats(a, &pl_query_merge_list, &sum);
	if (m->partials != NULL)
		put_lag(a, pl_kafka_consumer_client(m->partials)->lag);
	pl_account_object_end(a);
	if (a->json != NULL && m->clocks.kinds != 0)
		pl_clocks_json(&m->clocks, a->json);
}

void pl_query_member_put(void *service, const struct pl_account *a)
{
	if (service != NULL) {
		put(service, a);
		return;
	}
	pl_account_stats(a, &pl_kafka_consumer_list, NULL);
	pl_account_stats(a, &pl_kafka_client_list, NULL);
	pl_account_stats(a, &pl_kafka_writer_list, NULL);
	put_rows(a, 0, 0, 0);
	pl_account_stats(a, &pl_query_stats_list, NULL);
	pl_account_stats(a, &pl_query_merge_list, NULL);
	put_lag(a, 0);
}

void pl_query_member_text(void *service, struct pl_buf *text)
{
	const struct pl_query_member *m = service;
	const struct pl_kafka_consumer_stats *stats = pl_kafka_consumer_stats(m->records);
	const struct pl_query_merge_stats sum = merged(m);
	const struct pl_query_stats runs = asked(m);
	const struct pl_kafka_writer_stats writer = written(m);

	pl_buf_printf(text, "%" PRIu64 " messages, %" PRIu64 " records, %" PRIu64 " rows",
		stats->received, stats->records, m->rows);
	pl_account_add(text, pl_kafka_consumer_bad(stats), "messages that are none of ours");
	pl_account_add(text, stats->expired, "messages that were deleted before they were read");
	pl_account_add(text, runs.late, "records too late");
	pl_account_add(text, m->records_again, "records read again that were done");
	pl_account_add(text, runs.ahead, "records ahead of the clock (--ahead)");
	pl_account_add(text, writer.aborted, "transactions taken back");
	pl_account_add(text, m->rows_back, "rows taken back with them");
	pl_account_add(text, writer.too_large, "messages too large");
	pl_account_add(text, sum.late, "partial results too late");
	pl_account_add(text, sum.timed_out, "windows without all partitions");
	if (m->clocks.told) {
		pl_buf_str(text, ", times of the clocks ");
		pl_clocks_names(&m->clocks, text);
	}
}
