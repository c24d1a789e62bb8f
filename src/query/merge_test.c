/* SPDX-License-Identifier: BSD-2-Clause */
/* Partial results of inputs joined: attempts that fail and are repeated, inputs that are idle or
 * say nothing, messages that are none. */
#include <errno.h>

#include "base/test.h"
#include "query/merge.h"

enum { SECOND = 1000000000, INPUTS = 3 };

struct rows {
	unsigned int n, incomplete;
	int64_t end;
	uint64_t count;
};

static struct pl_query *query;
static struct pl_query_merge *merge;
static struct rows rows;
static struct pl_query_sender sender;
static struct pl_buf message;
static uint64_t offset, lost_after;
static int answer; /* to a piece */

static void take_row(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	rows.n++;
	rows.incomplete += row->incomplete;
	rows.end = row->end_ns;
	rows.count = row->values[0].u;
}

static void take_piece(void *arg, int64_t start, int64_t end, const void *data, size_t len)
{
	(void)arg;
	(void)start;
	message.len = 0;
	pl_query_piece_message(&message, &sender, end, data, len);
	if (lost_after > 0 && lost_after-- == 1)
		return;
	eq(pl_query_merge_take(merge, message.data, message.len, offset++, 0), answer, "a piece");
}

/* The input sends its windows from second `from` on, each with this many records. */
static void pieces(uint32_t input, uint64_t attempt, int from, int to, int records)
{
	struct pl_query_run *run = NULL;

	sender.input = input;
	sender.attempt = attempt;
	if (pl_query_run_new(&run, query, NULL, take_row, NULL, NULL) < 0)
		abort();
	pl_query_partial_from(run, take_piece, NULL);
	for (int s = from; s < to; s++) {
		for (int k = 0; k < records; k++) {
			struct pl_pkt64 p = { .ts_ns = (uint64_t)s * SECOND + (uint64_t)k };

			pl_query_feed(run, PL_FLAT_PKT64, &p, 1, 0);
		}
	}
	pl_query_finish(run);
	pl_query_run_free(run);
}

static void mark(uint32_t input, uint64_t attempt, int second, bool idle)
{
	sender.input = input;
	sender.attempt = attempt;
	message.len = 0;
	pl_query_mark_message(&message, &sender, (int64_t)second * SECOND, idle);
	eq(pl_query_merge_take(merge, message.data, message.len, offset++, 0), 0, "a mark");
}

static void begin(void)
{
	const struct pl_query_merge_config config = { .inputs = INPUTS, .wait_ns = 10 };

	if (pl_query_merge_new(&merge, query, &config, take_row, NULL, NULL) < 0)
		abort();
	rows = (struct rows){ 0 };
	offset = 0;
}

static void check(uint64_t now, unsigned int n, uint64_t count, const char *when)
{
	pl_query_merge_turn(merge, now);
	eq(rows.n, n, "%s: rows", when);
	eq(rows.count, count, "%s: the last one's count", when);
}

static void test_windows(void)
{
	uint64_t oldest;

	begin();
	pieces(0, 1, 0, 2, 5);
	check(0, 0, 0, "nothing is marked");
	mark(0, 1, 2, false);
	pieces(1, 2, 0, 2, 3);
	mark(1, 2, 1, false);
	check(0, 0, 0, "one input has not marked");
	ok(pl_query_merge_oldest(merge, &oldest) && oldest == 0, "all of it is needed");
	mark(2, 3, 2, false);
	check(0, 1, 8, "the first window");
	eq(pl_query_merge_given(merge), SECOND);
	ok(pl_query_merge_oldest(merge, &oldest) && oldest == 1, "the second window is needed");
	mark(1, 2, 2, false);
	check(0, 2, 8, "the second");
	ok(!pl_query_merge_oldest(merge, &oldest), "nothing is needed");
	pl_query_merge_free(merge);
}

/* An attempt ends in the middle, another one sends all again. */
static void test_attempts(void)
{
	begin();
	lost_after = 2;
	pieces(0, 1, 0, 2, 5);
	pieces(0, 9, 0, 2, 5);
	mark(0, 9, 2, false);
	pieces(0, 7, 0, 2, 5);
	mark(0, 7, 2, false);
	mark(1, 2, 2, false);
	mark(2, 3, 2, false);
	check(0, 2, 5, "sent three times");
	eq(pl_query_merge_stats(merge)->repeated, 2);
	pieces(0, 8, 0, 2, 5);
	check(0, 2, 5, "and once more behind the rows");
	eq(pl_query_merge_stats(merge)->repeated, 4);
	pl_query_merge_free(merge);
	begin();
	pl_query_merge_resume(merge, SECOND);
	pieces(0, 1, 0, 2, 5);
	for (uint32_t i = 0; i < INPUTS; i++)
		mark(i, 1, 2, false);
	check(0, 1, 5, "the window behind those that were given");
	pl_query_merge_free(merge);
}

static void test_idle(void)
{
	begin();
	for (uint32_t i = 0; i < INPUTS; i++)
		mark(i, 1, 1, true);
	pieces(0, 1, 4, 5, 2);
	check(0, 0, 0, "pieces of an idle input wait for their mark");
	mark(0, 1, 5, false);
	check(0, 1, 2, "idle inputs hold nothing back");
	pieces(1, 1, 4, 5, 2);
	eq(pl_query_merge_stats(merge)->late, 1, "and are late when they come");
	pieces(0, 1, 5, 6, 4);
	mark(0, 1, 6, false);
	mark(1, 1, 5, false);
	check(5, 1, 2, "an input that is idle no longer");
	eq(rows.incomplete, 0);
	check(11, 2, 4, "is waited for so long");
	eq(rows.incomplete, 1, "which the rows tell");
	eq(pl_query_merge_stats(merge)->timed_out, 1);
	pl_query_merge_free(merge);
}

/* A window of which nothing was there when the one behind it had waited for long enough. */
static void test_left_behind(void)
{
	begin();
	pieces(0, 1, 4, 5, 2);
	mark(0, 1, 5, false);
	check(11, 1, 2, "given without the others");
	pieces(1, 1, 2, 3, 4);
	eq(pl_query_merge_stats(merge)->late, 1, "a piece of a window that was never given");
	eq(pl_query_merge_stats(merge)->repeated, 0, "is no repetition");
	pl_query_merge_free(merge);
}

/* There is room for one window. Of the next the first piece finds none, and the second does. */
static void test_no_room(void)
{
	const struct pl_query_merge_config config = {
		.inputs = INPUTS, .wait_ns = 10, .max_bytes = 200
	};

	if (pl_query_merge_new(&merge, query, &config, take_row, NULL, NULL) < 0)
		abort();
	rows = (struct rows){ 0 };
	offset = 0;
	pieces(0, 1, 0, 1, 5);
	answer = -ENOMEM;
	pieces(0, 1, 1, 2, 5);
	answer = 0;
	for (uint32_t i = 0; i < INPUTS; i++)
		mark(i, 1, 1, false);
	check(0, 1, 5, "the first window");
	eq(rows.incomplete, 0, "which has all");
	pieces(1, 1, 1, 2, 3);
	for (uint32_t i = 0; i < INPUTS; i++)
		mark(i, 1, 2, false);
	check(0, 2, 3, "the second");
	eq(rows.incomplete, 1, "which lacks what had no room");
	eq(pl_query_merge_stats(merge)->no_room, 1);
	pl_query_merge_free(merge);
}

static void test_refused(void)
{
	unsigned int n = 0;

	begin();
	sender.input = INPUTS;
	message.len = 0;
	pl_query_mark_message(&message, &sender, 5, false);
	eq(pl_query_merge_take(merge, message.data, message.len, 0, 0), -EBADMSG, "input");
	sender.input = 0;
	sender.plan++;
	message.len = 0;
	pl_query_mark_message(&message, &sender, 5, false);
	eq(pl_query_merge_take(merge, message.data, message.len, 0, 0), -EBADMSG, "plan");
	sender.plan--;
	message.len = 0;
	pl_query_mark_message(&message, &sender, 5, false);
	message.data[4] = 1;
	eq(pl_query_merge_take(merge, message.data, message.len, 0, 0), -EPROTONOSUPPORT,
		"a version of before");
	message.len = 0;
	pl_query_piece_message(&message, &sender, 5, "damaged", 7);
	for (size_t len = 0; len <= message.len; len++)
		n += pl_query_merge_take(merge, message.data, len, 0, 0) == -EBADMSG;
	eq(n, message.len + 1, "a piece that is none, and all that is shorter");
	check(100, 0, 0, "nothing came of these");
	eq(pl_query_merge_stats(merge)->refused, pl_query_merge_stats(merge)->messages);
	pl_query_merge_free(merge);
}

int main(void)
{
	if (pl_query_parse(&query, "SELECT count(*) AS n FROM packets TUMBLE(ts, 1s)", NULL) < 0)
		return 1;
	sender.plan = pl_query_plan_hash(query);
	sender.attempt = 1;
	pl_buf_init(&message);
	test_windows();
	test_attempts();
	test_idle();
	test_left_behind();
	test_no_room();
	test_refused();
	pl_buf_done(&message);
	pl_query_free(query);
	return pl_test_done();
}
