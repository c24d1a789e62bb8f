/* SPDX-License-Identifier: BSD-2-Clause */
/* Partitions of a member of a group: assigned, revoked, and read again. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "runtime/say.h"
#include "service/query_member_parts.h"

#define ABORT_WAIT_MS 10000
#define GIVE_UP_NS    (PL_QUERY_MEMBER_WAIT_MS * UINT64_C(1000000))

/* Returns the time committed with a position, or INT64_MIN, and the offset read by then. A time
 * that no record can have caused is ignored: all records would be late. */
static int64_t time_of(
	struct pl_query_member *m, uint32_t partition, const char *note, int64_t *ret_read)
{
	const uint64_t ahead_ns =
		m->o->config.ahead_ns > 0 ? m->o->config.ahead_ns : PL_QUERY_AHEAD_NS;
	uint64_t latest;
	int64_t time, read;

	if (__builtin_add_overflow(
		    pl_clock_real_ns() + pl_query_window_ns(m->o->query), ahead_ns, &latest))
		latest = UINT64_MAX;
	*ret_read = 0;
	if (sscanf(note, "until=%" SCNd64 ",read=%" SCNd64, &time, &read) == 2)
		*ret_read = read;
	else if (sscanf(note, "until=%" SCNd64, &time) != 1)
		return INT64_MIN;
	if (time <= 0 || (uint64_t)time <= latest)
		return time;
	pl_say("%s: the time that the group committed for partition %" PRIu32
	       " is ahead of the clock, and is left out",
		m->name, partition);
	return INT64_MIN;
}

/* Calls `add` for each partition, with the position that the group committed. */
static void take_partitions(struct pl_query_member *m, struct pl_kafka_consumer *c,
	const struct pl_kafka_position *positions, uint32_t n, pl_kafka_committed *add)
{
	struct pl_diag why = { .text = "" };

	if (pl_kafka_consumer_committed(c, positions, n, PL_QUERY_MEMBER_WAIT_MS, add, m, &why) < 0)
		pl_query_member_fail(m, -EIO, &why);
}

static void add_input(void *arg, uint32_t partition, int64_t offset, const char *note)
{
	struct pl_query_member *m = arg;
	struct pl_query_input *in;
	struct pl_diag why = { .text = "out of memory" };
	int r = -ENOMEM;

	if (partition >= m->n_inputs || m->inputs[partition] != NULL)
		return;
	in = calloc(1, sizeof(*in));
	if (in != NULL)
		r = pl_query_run_new(
			&in->run, m->o->query, &m->o->config, pl_query_member_row, m, &why);
	if (r < 0) {
		free(in);
		pl_query_member_fail(m, r, &why);
		return;
	}
	in->member = m;
	in->partition = partition;
	in->committed = offset;
	in->noted = time_of(m, partition, note, &in->read);
	in->next = in->committed >= 0 ? in->committed : 0;
	in->attempt = pl_hash_mix(pl_clock_mono_ns(), m->sender.attempt ^ in->partition) | 1;
	in->marked = INT64_MIN;
	in->first = PL_QUERY_NONE_READ;
	in->last_ns = pl_clock_mono_ns();
	if (m->two_stages) {
		pl_query_partial_from(in->run, pl_query_member_piece, in);
		pl_query_partial_limit(in->run, m->piece_max);
	}
	if (in->noted != INT64_MIN)
		pl_query_run_resume(in->run, in->noted);
	m->inputs[partition] = in;
}

void pl_query_member_assigned(void *arg, struct pl_kafka_position *positions, uint32_t n)
{
	struct pl_query_member *m = arg;

	take_partitions(m, m->records, positions, n, add_input);
}

/* Aborts at once, although reading goes back later: the committed position cannot be fetched while
 * a transaction with positions is open. A writer that cannot abort is replaced: the new one of its
 * name aborts, or finds that the transaction was committed. */
void pl_query_member_take_back(struct pl_query_member *m, const struct pl_diag *cause)
{
	struct pl_diag why = { .text = "" };
	const uint64_t now_ns = pl_clock_mono_ns();
	int r = 0;

	pl_say("%s: %s: the transaction is taken back, and its records are read again", m->name,
		cause->text);
	/* A trouble that is long past is over. */
	if (m->back_ns == 0 || now_ns - m->back_last_ns >= 2 * GIVE_UP_NS) {
		m->back_ns = now_ns;
		m->back_rows = false;
	}
	m->back_last_ns = now_ns;
	m->back_rows = m->back_rows || m->rows != m->rows_done;
	m->back = true;
	m->rows_back += m->rows - m->rows_done;
	m->rows_done = m->rows;
	if (now_ns - m->back_ns >= GIVE_UP_NS) {
		pl_query_member_fail(m, -EIO, cause);
		return;
	}
	if (m->writer != NULL && pl_kafka_writer_abort(m->writer, ABORT_WAIT_MS, NULL) < 0)
		r = pl_query_member_rewrite(m, &why);
	if (r < 0)
		pl_query_member_fail(m, r, &why);
}

/* Aborts when partitions were lost: another member had them before we knew, and a transaction with
 * their rows, but without their positions, must not be committed. */
static void give_up_transaction(struct pl_query_member *m, bool lost)
{
	static const struct pl_diag cause = {
		.text = "the group gave partitions to another member"
	};

	if (lost && m->o->transactions && m->failed == 0 && !m->back)
		pl_query_member_take_back(m, &cause);
}

static void drop_input(struct pl_query_member *m, struct pl_query_input *in)
{
	pl_stats_add(&pl_query_stats_list, &m->asked, pl_query_run_stats(in->run));
	m->inputs[in->partition] = NULL;
	pl_query_run_free(in->run);
	free(in);
}

static void drop_output(struct pl_query_member *m, uint32_t partition, struct pl_query_output *out)
{
	pl_stats_add(&pl_query_merge_list, &m->merged, pl_query_merge_stats(out->merge));
	m->outputs[partition] = NULL;
	pl_query_merge_free(out->merge);
	free(out);
}

void pl_query_member_revoked(void *arg, const uint32_t *partitions, uint32_t n, bool lost)
{
	struct pl_query_member *m = arg;

	give_up_transaction(m, lost);
	if (!lost && m->failed == 0)
		(void)pl_query_member_sync(m, pl_clock_mono_ns());
	for (uint32_t i = 0; i < n; i++) {
		struct pl_query_input *in =
			partitions[i] < m->n_inputs ? m->inputs[partitions[i]] : NULL;

		if (in != NULL)
			drop_input(m, in);
	}
}

static void add_output(void *arg, uint32_t partition, int64_t offset, const char *note)
{
	struct pl_query_member *m = arg;
	const struct pl_query_merge_config config = { .run = m->o->config, .inputs = m->n_inputs };
	struct pl_query_output *out;
	struct pl_diag why = { .text = "out of memory" };
	int r = -ENOMEM;

	if (partition >= m->n_outputs || m->outputs[partition] != NULL)
		return;
	out = calloc(1, sizeof(*out));
	if (out != NULL)
		r = pl_query_merge_new(
			&out->merge, m->o->query, &config, pl_query_member_row, m, &why);
	if (r < 0) {
		free(out);
		pl_query_member_fail(m, r, &why);
		return;
	}
	out->committed = offset;
	out->noted = time_of(m, partition, note, &out->read);
	out->next = out->committed >= 0 ? out->committed : 0;
	out->first = PL_QUERY_NONE_READ;
	pl_query_merge_resume(out->merge, out->noted);
	m->outputs[partition] = out;
}

void pl_query_partials_assigned(void *arg, struct pl_kafka_position *positions, uint32_t n)
{
	struct pl_query_member *m = arg;

	take_partitions(m, m->partials, positions, n, add_output);
}

void pl_query_partials_revoked(void *arg, const uint32_t *partitions, uint32_t n, bool lost)
{
	struct pl_query_member *m = arg;

	give_up_transaction(m, lost);
	if (!lost && m->failed == 0)
		(void)pl_query_member_sync(m, pl_clock_mono_ns());
	for (uint32_t i = 0; i < n; i++) {
		struct pl_query_output *out =
			partitions[i] < m->n_outputs ? m->outputs[partitions[i]] : NULL;

		if (out != NULL)
			drop_output(m, partitions[i], out);
	}
}

/* ---- back to where the group stands ---- */

/* Adds a partition to the ones that are read again; `first` is the first offset read of it. */
static void add_back(
	struct pl_kafka_position *positions, uint32_t *n, uint32_t partition, int64_t first)
{
	positions[(*n)++] = (struct pl_kafka_position){ .partition = partition, .offset = first };
}

/* Replaces each offset by the committed one, where there is one. Partitions of which nothing was
 * read are removed: they are at that position already. */
static uint32_t places_back(struct pl_kafka_position *positions, uint32_t n,
	int64_t (*committed)(const struct pl_query_member *m, uint32_t partition),
	const struct pl_query_member *m)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const int64_t to = committed(m, positions[i].partition);

		if (positions[i].offset == PL_QUERY_NONE_READ)
			continue;
		positions[kept] = positions[i];
		if (to >= 0)
			positions[kept].offset = to;
		kept++;
	}
	return kept;
}

static int64_t input_committed(const struct pl_query_member *m, uint32_t partition)
{
	return m->inputs[partition] != NULL ? m->inputs[partition]->committed : PL_KAFKA_COMMITTED;
}

static int64_t output_committed(const struct pl_query_member *m, uint32_t partition)
{
	return m->outputs[partition] != NULL ? m->outputs[partition]->committed
					     : PL_KAFKA_COMMITTED;
}

void pl_query_member_go_back(struct pl_query_member *m)
{
	static struct pl_kafka_position positions[PL_QUERY_INPUTS_MAX];
	struct pl_diag why = { .text = "" };
	uint32_t n = 0;
	int r = 0;

	m->back = false;
	/* Rows given since the abort are given again, too. */
	m->rows_back += m->rows - m->rows_done;
	m->rows_done = m->rows;
	for (uint32_t i = 0; i < m->n_inputs; i++) {
		if (m->inputs[i] == NULL)
			continue;
		add_back(positions, &n, i, m->inputs[i]->first);
		drop_input(m, m->inputs[i]);
	}
	if (n > 0)
		take_partitions(m, m->records, positions, n, add_input);
	n = places_back(positions, n, input_committed, m);
	if (m->failed == 0)
		r = pl_kafka_consumer_seek(m->records, positions, n, PL_QUERY_MEMBER_WAIT_MS, &why);
	n = 0;
	for (uint32_t i = 0; i < m->n_outputs; i++) {
		if (m->outputs[i] == NULL)
			continue;
		add_back(positions, &n, i, m->outputs[i]->first);
		drop_output(m, i, m->outputs[i]);
	}
	if (n > 0 && m->failed == 0)
		take_partitions(m, m->partials, positions, n, add_output);
	n = places_back(positions, n, output_committed, m);
	if (m->failed == 0 && r == 0)
		r = pl_kafka_consumer_seek(
			m->partials, positions, n, PL_QUERY_MEMBER_WAIT_MS, &why);
	if (r < 0)
		pl_query_member_fail(m, r, &why);
}
