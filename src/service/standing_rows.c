/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a topic of rows for a standing query. */
#include "service/standing_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "query/result_json.h"
#include "runtime/say.h"
#include "service/result_row.h"
#include "service/standing_topic.h"

#define MESSAGES_A_TURN 64
#define WAYS            8
#define NONE            (-1)
#define POSITION_MS     1000 /* for the positions of the group */

/* Offsets of a partition: after the last row; after the last row before the mark that outputs have;
 * last committed. NONE: there is none. */
struct place {
	int64_t next, held, committed;
};

struct pl_standing_rows {
	bool commits;
	uint64_t due_ns, seed;
	uint64_t failed; /* commits_failed when last seen */
	struct place places[PL_STANDING_PARTITIONS];
	/* Hashes of rows read, the latest of each set first; 0: none. */
	uint64_t seen[PL_STANDING_ROWS_SEEN / WAYS][WAYS];
	struct pl_result_row row; /* of the present message */
};

/* ---- partitions ---- */

/* Reads the group's committed position, so that messages deleted since then are counted. */
static void assigned(void *arg, struct pl_kafka_position *positions, uint32_t n)
{
	struct pl_standing_query *q = arg;

	if (q->rows->commits)
		(void)pl_kafka_consumer_committed(
			q->sources[0].topic.consumer, positions, n, POSITION_MS, NULL, NULL, NULL);
}

static void revoked(void *arg, const uint32_t *partitions, uint32_t n, bool lost)
{
	struct pl_standing_query *q = arg;

	if (!lost)
		pl_standing_rows_commit(q, 0);
	for (uint32_t i = 0; i < n; i++) {
		if (partitions[i] < PL_STANDING_PARTITIONS)
			q->rows->places[partitions[i]] = (struct place){ NONE, NONE, NONE };
	}
}

/* Commits all positions again, because an earlier commit, whose result was not awaited, may have
 * failed. */
static void forget_committed(struct pl_standing_rows *rows)
{
	for (uint32_t i = 0; i < PL_STANDING_PARTITIONS; i++)
		rows->places[i].committed = NONE;
}

/* Commits in parts of 64; `upto` returns the offset to commit of a place. */
static void commit(
	struct pl_standing_query *q, int64_t (*upto)(const struct place *), uint32_t wait_ms)
{
	struct pl_kafka_position positions[64];
	struct pl_diag diag = { .text = "" };
	uint32_t n = 0;

	for (uint32_t i = 0; q->rows->commits && i < PL_STANDING_PARTITIONS; i++) {
		struct place *p = &q->rows->places[i];
		const int64_t offset = upto(p);

		if (offset != NONE && offset != p->committed) {
			p->committed = offset;
			positions[n++] = (struct pl_kafka_position){ i, offset, NULL };
		}
		if (n < 64 && (n == 0 || i + 1 < PL_STANDING_PARTITIONS))
			continue;
		if (pl_kafka_consumer_commit(
			    q->sources[0].topic.consumer, positions, n, wait_ms, &diag) < 0)
			pl_say("query %s: %s: %s", q->name, q->sources[0].topic.name, diag.text);
		n = 0;
	}
}

static int64_t all(const struct place *p)
{
	return p->next;
}

static int64_t held(const struct place *p)
{
	return p->held;
}

void pl_standing_rows_commit(struct pl_standing_query *q, uint32_t wait_ms)
{
	if (q->rows == NULL || q->sources[0].topic.consumer == NULL)
		return;
	if (wait_ms > 0)
		forget_committed(q->rows);
	if (pl_standing_outs_settled(q, true))
		commit(q, all, wait_ms);
	else if (pl_standing_outs_settled(q, false))
		commit(q, held, wait_ms);
}

static void tick(struct pl_standing_query *q, uint64_t now_ns)
{
	const uint64_t failed =
		pl_kafka_consumer_stats(q->sources[0].topic.consumer)->commits_failed;

	if (now_ns < q->rows->due_ns)
		return;
	q->rows->due_ns = now_ns + PL_STANDING_ROWS_HOLD_NS;
	if (failed != q->rows->failed)
		forget_committed(q->rows);
	q->rows->failed = failed;
	if (!pl_standing_outs_settled(q, false))
		return;
	commit(q, held, 0);
	pl_standing_outs_mark(q);
	for (uint32_t i = 0; i < PL_STANDING_PARTITIONS; i++)
		q->rows->places[i].held = q->rows->places[i].next;
}

/* ---- rows ---- */

/* Returns where the number after the last "late": ends, and *ret_from where it begins: a repeated
 * row may differ in it alone. Without such a number both are len. */
static size_t find_late(const char *message, size_t len, size_t *ret_from)
{
	static const char name[] = "\"" PL_QUERY_RESULT_LATE "\":", behind[] = ",\"exp\":";
	const size_t n = sizeof(name) - 1;
	size_t at = len;

	while (at >= n && memcmp(message + at - n, name, n) != 0)
		at--;
	*ret_from = at = at >= n ? at : len;
	while (at < len && message[at] >= '0' && message[at] <= '9')
		at++;
	if (len - at >= sizeof(behind) - 1 && memcmp(message + at, behind, sizeof(behind) - 1) == 0)
		return at;
	return *ret_from = len;
}

/* Returns whether the row was read before, and remembers it. */
static bool repeated(struct pl_standing_rows *rows, const char *message, size_t len)
{
	size_t from = len, behind = len;
	uint64_t hash, *set;

	if (rows->row.has_late)
		behind = find_late(message, len, &from);
	hash = pl_hash(message, from, rows->seed);
	hash = pl_hash(message + behind, len - behind, hash) | 1;
	set = rows->seen[(hash >> 1) % (PL_STANDING_ROWS_SEEN / WAYS)];

	for (unsigned int i = 0; i < WAYS; i++) {
		if (set[i] == hash)
			return true;
	}
	memmove(set + 1, set, (WAYS - 1) * sizeof(*set));
	set[0] = hash;
	return false;
}

/* Returns whether the message can be a line of a file: it has no control characters. */
static bool is_line(const char *message, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)message[i] < ' ')
			return false;
	}
	return true;
}

static void take(struct pl_standing_query *q, const char *message, size_t len)
{
	struct pl_result_row *row = &q->rows->row;
	const enum pl_result_verdict verdict =
		is_line(message, len) ? pl_result_row_read(row, q->query, q->name, message, len)
				      : PL_RESULT_ROW_BAD;

	if (verdict == PL_RESULT_ROW_BAD) {
		q->stats.rows_bad++;
	} else if (verdict == PL_RESULT_ROW_OTHER) {
		q->stats.rows_other++;
	} else if (row->row.windowed && repeated(q->rows, message, len)) {
		/* Equal rows of single records are no repetition. */
		q->stats.rows_repeated++;
	} else {
		q->stats.rows_read++;
		pl_standing_take_message(q, &row->row, message, len);
	}
}

bool pl_standing_rows_turn(struct pl_standing_query *q, uint64_t now_ns)
{
	int i = 0;

	for (; i < MESSAGES_A_TURN; i++) {
		struct pl_kafka_block block;

		if (pl_kafka_consumer_recv(q->sources[0].topic.consumer, &block, 0) <= 0)
			break;
		if (block.partition < PL_STANDING_PARTITIONS)
			q->rows->places[block.partition].next = block.next;
		if (block.records != NULL)
			take(q, block.records, block.len);
	}
	tick(q, now_ns);
	pl_kafka_source_tell(&q->sources[0].topic);
	return i == MESSAGES_A_TURN;
}

/* ---- open and close ---- */

static int open_consumer(struct pl_standing_query *q, struct pl_diag *diag)
{
	const struct pl_kafka_reader reader = { .uri = q->sources[0].from,
		/* When the message at its position was deleted, a group continues with the oldest
		 * row that exists. */
		.oldest = q->group != NULL };
	const struct pl_kafka_consumer_config config = { .raw = true,
		.group = q->group,
		.gather_ms = q->alerts ? PL_STANDING_GATHER_MS : 0,
		.assigned = assigned,
		.revoked = revoked,
		.arg = q };

	return pl_kafka_reader_open(
		&q->sources[0].topic.consumer, &reader, &config, &q->rows->commits, diag);
}

int pl_standing_rows_open(struct pl_standing_query *q, struct pl_diag *diag)
{
	q->rows = calloc(1, sizeof(*q->rows));
	if (q->rows == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < PL_STANDING_PARTITIONS; i++)
		q->rows->places[i] = (struct place){ NONE, NONE, NONE };
	q->rows->seed = pl_hash_seed();
	snprintf(q->sources[0].topic.name, sizeof(q->sources[0].topic.name), "%.*s",
		(int)strcspn(q->sources[0].from, "?"), q->sources[0].from);
	return open_consumer(q, diag);
}

void pl_standing_rows_close(struct pl_standing_query *q)
{
	if (q->rows == NULL)
		return;
	/* Closing without `leaves` commits in `revoked`. */
	if (q->leaves)
		pl_standing_rows_commit(q, 0);
	pl_standing_topic_close(&q->sources[0], q->leaves);
	free(q->rows);
	q->rows = NULL;
}
