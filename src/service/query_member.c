/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a query as a member of a Kafka consumer group. */
#include "service/query_member.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "query/result_json.h"
#include "runtime/kafka_files.h"
#include "runtime/say.h"
#include "service/query_member_parts.h"

#define WAIT_MS         50 /* for a message; short, for two topics and for signals */
#define MESSAGES_A_TURN 64
#define SYNC_NS         UINT64_C(200000000)
#define COMMIT_WAIT_MS  5000
#define NOT_COMMITTED   (-1)
#define MARK_NS         UINT64_C(1000000000) /* marks are repeated for members that begin to read */

void pl_query_member_fail(struct pl_query_member *m, int r, const struct pl_diag *why)
{
	if (m->failed == 0) {
		m->failed = r;
		m->why = *why;
	}
}

/* ---- what runs give ---- */

static void send(struct pl_query_member *m, const char *topic, int32_t partition,
	const struct pl_buf *key, const struct pl_buf *value)
{
	struct pl_diag why = { .text = "" };
	int r = -ENOMEM;

	/* After an abort, the rows are sent when their records are read again. */
	if (m->back)
		return;
	if (!value->failed)
		r = pl_kafka_writer_send(m->writer, topic, partition,
			key != NULL && key->len > 0 ? key->data : NULL, key != NULL ? key->len : 0,
			value->data, value->len);
	if (r == 0)
		return;
	pl_diag_set(&why, "a message for topic '%s' cannot be sent: %s", topic,
		value->failed ? strerror(ENOMEM) : pl_kafka_writer_trouble(m->writer));
	if (m->o->transactions && r != -ENOMEM && m->failed == 0)
		pl_query_member_take_back(m, &why);
	else
		pl_query_member_fail(m, -EIO, &why);
}

void pl_query_member_row(void *arg, const struct pl_query_row *row)
{
	struct pl_query_member *m = arg;

	m->rows++;
	if (m->o->results == NULL) {
		m->o->row(m->o->arg, row);
		return;
	}
	m->key.len = m->value.len = 0;
	pl_query_result_json(m->o->query, m->o->name, row, &m->key, &m->value);
	send(m, m->o->results, PL_KAFKA_BY_KEY, &m->key, &m->value);
}

/* Returns the sender of an input's pieces and marks: the member, in this assignment. */
static struct pl_query_sender sender_of(
	const struct pl_query_member *m, const struct pl_query_input *in)
{
	struct pl_query_sender sender = m->sender;

	sender.input = in->partition;
	sender.attempt = in->attempt;
	return sender;
}

/* Sends a piece; pieces of one window, of any input, go to one partition. */
void pl_query_member_piece(
	void *arg, int64_t start_ns, int64_t end_ns, const void *data, size_t len)
{
	const struct pl_query_input *in = arg;
	struct pl_query_member *m = in->member;
	const struct pl_query_sender sender = sender_of(m, in);

	m->value.len = 0;
	pl_query_piece_message(&m->value, &sender, end_ns, data, len);
	send(m, m->topic, (int32_t)(pl_hash_mix((uint64_t)start_ns, 1) % m->n_outputs), NULL,
		&m->value);
}

/* ---- reports and commits what is done ---- */

static void send_marks(struct pl_query_member *m, uint64_t now_ns)
{
	for (uint32_t i = 0; i < m->n_inputs; i++) {
		struct pl_query_input *in = m->inputs[i];
		const int64_t mark = in != NULL ? pl_query_run_watermark(in->run) : 0;
		struct pl_query_sender sender;

		if (in == NULL || (mark == in->marked && now_ns - in->mark_ns < MARK_NS))
			continue;
		in->marked = mark;
		in->mark_ns = now_ns;
		sender = sender_of(m, in);
		m->value.len = 0;
		pl_query_mark_message(&m->value, &sender, mark, in->idle);
		for (uint32_t k = 0; k < m->n_outputs; k++)
			send(m, m->topic, (int32_t)k, NULL, &m->value);
	}
}

/* Positions of a consumer's partitions, with the times up to which windows are done. */
struct places {
	struct pl_kafka_position at[PL_QUERY_INPUTS_MAX];
	char notes[PL_QUERY_INPUTS_MAX][64];
	uint32_t n;
};

/* Adds a position to commit, with `read`, the offset read so far. A change of `read` alone is no
 * reason to commit. */
static void add_place(struct places *places, uint32_t partition, int64_t offset, int64_t until,
	int64_t read, int64_t *committed, int64_t *noted)
{
	const uint32_t n = places->n;

	if (offset == *committed && until == *noted)
		return;
	/* Nothing was read: there is no position. */
	if (offset == 0 && until == INT64_MIN)
		return;
	*committed = offset;
	*noted = until;
	snprintf(places->notes[n], sizeof(places->notes[n]), "until=%" PRId64 ",read=%" PRId64,
		until, read);
	places->at[n] = (struct pl_kafka_position){ partition, offset,
		until != INT64_MIN ? places->notes[n] : NULL };
	places->n++;
}

static void find_places(struct pl_query_member *m, struct places *inputs, struct places *outputs)
{
	uint64_t oldest;

	inputs->n = outputs->n = 0;
	for (uint32_t i = 0; i < m->n_inputs; i++) {
		struct pl_query_input *in = m->inputs[i];
		const bool open = in != NULL && pl_query_run_oldest(in->run, &oldest);

		if (in != NULL)
			add_place(inputs, i, open ? (int64_t)oldest : in->next,
				pl_query_run_done(in->run), in->next, &in->committed, &in->noted);
	}
	for (uint32_t i = 0; i < m->n_outputs; i++) {
		struct pl_query_output *out = m->outputs[i];
		const bool open = out != NULL && pl_query_merge_oldest(out->merge, &oldest);

		if (out != NULL)
			add_place(outputs, i, open ? (int64_t)oldest : out->next,
				pl_query_merge_given(out->merge), out->next, &out->committed,
				&out->noted);
	}
}

/* Has all positions committed again: a group that rebalances refuses commits for a moment. */
static void take_back(struct pl_query_member *m)
{
	for (uint32_t i = 0; i < m->n_inputs; i++) {
		if (m->inputs[i] != NULL)
			m->inputs[i]->committed = NOT_COMMITTED;
	}
	for (uint32_t i = 0; i < m->n_outputs; i++) {
		if (m->outputs[i] != NULL)
			m->outputs[i]->committed = NOT_COMMITTED;
	}
}

static int commit_transaction(struct pl_query_member *m,
	struct pl_kafka_consumer *const consumers[2], const struct pl_kafka_position *const at[2],
	const uint32_t n[2])
{
	const uint64_t before = pl_kafka_writer_stats(m->writer)->transactions;
	struct pl_diag why = { .text = "" };

	if (pl_kafka_writer_commit(m->writer, consumers, at, n, 2, PL_QUERY_MEMBER_WAIT_MS, &why) <
		0) {
		pl_query_member_take_back(m, &why);
		return 0;
	}
	/* After refused rows, only a transaction with rows shows that they are accepted again. */
	if (pl_kafka_writer_stats(m->writer)->transactions != before &&
		(!m->back_rows || m->rows != m->rows_done))
		m->back_ns = 0;
	m->rows_done = m->rows;
	return 0;
}

static int commit(struct pl_query_member *m)
{
	static struct places inputs, outputs;
	struct pl_kafka_consumer *const consumers[] = { m->records, m->partials };
	const struct pl_kafka_position *const at[] = { inputs.at, outputs.at };

	find_places(m, &inputs, &outputs);
	if (m->o->transactions) {
		const uint32_t n[] = { inputs.n, outputs.n };

		return commit_transaction(m, consumers, at, n);
	}
	if (pl_kafka_consumer_commit(m->records, inputs.at, inputs.n, COMMIT_WAIT_MS, NULL) < 0 ||
		(outputs.n > 0 && pl_kafka_consumer_commit(m->partials, outputs.at, outputs.n,
					  COMMIT_WAIT_MS, NULL) < 0))
		take_back(m);
	return 0;
}

/* Sends rows of complete windows; then, when these and partial results are acknowledged, marks;
 * when these are, commits positions. A transaction has them all in one. */
int pl_query_member_sync(struct pl_query_member *m, uint64_t now_ns)
{
	struct pl_diag why = { .text = "" };
	int r = 0;

	m->synced_ns = now_ns;
	if (m->back)
		return m->failed;
	for (uint32_t i = 0; i < m->n_outputs; i++) {
		if (m->outputs[i] != NULL)
			pl_query_merge_turn(m->outputs[i]->merge, now_ns);
	}
	m->o->turned(m->o->arg);
	/* Rows that standard output did not take are not done. */
	if (m->o->results == NULL && m->o->full(m->o->arg))
		return m->failed;
	if (m->writer != NULL && !m->o->transactions)
		r = pl_kafka_writer_flush(m->writer, PL_QUERY_MEMBER_WAIT_MS, &why);
	if (r == 0 && m->two_stages && m->failed == 0 && !m->back) {
		send_marks(m, now_ns);
		if (!m->o->transactions)
			r = pl_kafka_writer_flush(m->writer, PL_QUERY_MEMBER_WAIT_MS, &why);
	}
	if (r == 0 && m->failed == 0 && !m->back)
		r = commit(m);
	if (r < 0)
		pl_query_member_fail(m, r, &why);
	return m->failed;
}

/* ---- turns ---- */

static void note_clock(struct pl_query_member *m, enum pl_clock_kind clock)
{
	struct pl_buf text;

	if (!pl_clocks_note(&m->clocks, pl_clock_bit(clock)))
		return;
	pl_buf_init(&text);
	pl_clocks_text(&m->clocks, &text);
	pl_say("%s: %.*s", m->name, (int)text.len, text.data != NULL ? text.data : "");
	pl_buf_done(&text);
}

/* Fails when records of one flow are spread over partitions, which would give wrong rows. */
static bool is_spread(struct pl_query_member *m, const struct pl_kafka_message *message)
{
	struct pl_diag why = { .text = "" };

	if (!message->spread || !m->by_flow)
		return false;
	pl_diag_set(&why,
		"%s: its records were written with partition=spread, and this question needs a flow in one partition: add partition=spread to the URI of --from",
		m->name);
	pl_query_member_fail(m, -EINVAL, &why);
	return true;
}

static void read_records(struct pl_query_member *m, uint64_t now_ns)
{
	struct pl_kafka_block block;

	for (int i = 0; i < MESSAGES_A_TURN && m->failed == 0; i++) {
		struct pl_query_input *in;
		uint64_t late;

		if (pl_kafka_consumer_recv(m->records, &block, i == 0 ? WAIT_MS : 0) <= 0)
			break;
		in = block.partition < m->n_inputs ? m->inputs[block.partition] : NULL;
		if (in == NULL)
			continue;
		if (in->first == PL_QUERY_NONE_READ)
			in->first = block.offset;
		if (m->back)
			break;
		in->next = block.next;
		in->at_end = block.at_end;
		if (block.records == NULL)
			continue;
		if (is_spread(m, &block.message))
			break;
		in->idle = false;
		in->last_ns = now_ns;
		note_clock(m, block.message.clock);
		pl_query_clock(in->run, pl_kafka_block_clock(&block, pl_clock_real_ns()));
		pl_query_run_at(in->run, (uint64_t)block.offset);
		late = pl_query_run_stats(in->run)->late;
		(void)pl_query_feed(in->run, m->o->kind, block.records, block.message.n, 0);
		if (block.offset < in->read)
			m->records_again += pl_query_run_stats(in->run)->late - late;
	}
}

/* Logs this once. Rows lack the groups of such members, and are marked incomplete after a wait. */
static void tell_version(struct pl_query_member *m)
{
	if (!m->told_version)
		pl_say("%s: a member of another version of pathline sends partial results that this "
		       "one does not read, and they are left out: run one version in the group, or "
		       "name another topic by --partials until all are of one",
			m->topic);
	m->told_version = true;
}

static void read_partials(struct pl_query_member *m, uint64_t now_ns)
{
	struct pl_kafka_block block;

	for (int i = 0; m->partials != NULL && i < MESSAGES_A_TURN && m->failed == 0 && !m->back;
		i++) {
		struct pl_query_output *out;
		uint64_t late;

		if (pl_kafka_consumer_recv(m->partials, &block, 0) <= 0)
			break;
		out = block.partition < m->n_outputs ? m->outputs[block.partition] : NULL;
		if (out == NULL)
			continue;
		if (out->first == PL_QUERY_NONE_READ)
			out->first = block.offset;
		if (m->back)
			break;
		out->next = block.next;
		if (block.records == NULL)
			continue;
		late = pl_query_merge_stats(out->merge)->late;
		if (pl_query_merge_take(out->merge, block.records, block.len,
			    (uint64_t)block.offset, now_ns) == -EPROTONOSUPPORT)
			tell_version(m);
		if (block.offset < out->read)
			m->pieces_again += pl_query_merge_stats(out->merge)->late - late;
	}
}

/* Closes the open windows of a partition that was read to its end and has had no record for
 * idle_ns. A partition that is only slow is not idle; messages of other formats are no records.
 * With a join, the wait is WITHIN longer: its time advances to the last possible partner, so that
 * records which come next would be late. */
static void find_idle(struct pl_query_member *m, uint64_t now_ns)
{
	const uint64_t idle_ns = m->o->idle_ns, within_ns = pl_query_within_ns(m->o->query);

	for (uint32_t i = 0; i < m->n_inputs; i++) {
		struct pl_query_input *in = m->inputs[i];
		const uint64_t quiet_ns = in != NULL ? now_ns - in->last_ns : 0;

		if (in == NULL || in->idle || !in->at_end || quiet_ns < idle_ns ||
			quiet_ns - idle_ns < within_ns)
			continue;
		pl_query_run_close_open(in->run);
		in->idle = true;
		in->mark_ns = 0; /* send a mark at once */
	}
}

/* Tells of messages that their topic deleted before the group read them. */
static void tell_expired(struct pl_query_member *m)
{
	const char *expired = pl_kafka_consumer_expired(m->records);

	if (expired != NULL)
		pl_say("%s: %s", m->name, expired);
}

static int turn(void *service, const struct pollfd *fds, uint64_t unused, struct pl_diag *diag)
{
	struct pl_query_member *m = service;
	uint64_t now_ns;

	(void)fds;
	(void)unused;
	read_records(m, pl_clock_mono_ns());
	tell_expired(m);
	now_ns = pl_clock_mono_ns();
	read_partials(m, now_ns);
	find_idle(m, now_ns);
	if (m->failed == 0 && m->back)
		pl_query_member_go_back(m);
	if (m->failed == 0 && now_ns - m->synced_ns >= SYNC_NS)
		(void)pl_query_member_sync(m, now_ns);
	if (m->failed != 0) {
		*diag = m->why;
		return m->failed;
	}
	return m->o->full(m->o->arg) ? PL_TURN_OVER : PL_TURN_IDLE;
}

static int open_service(void *service, struct pl_diag *diag)
{
	struct pl_query_member *m = service;
	int r;

	pl_buf_init(&m->key);
	pl_buf_init(&m->value);
	snprintf(m->name, sizeof(m->name), "%.*s", (int)strcspn(m->o->uri, "?"), m->o->uri);
	r = pl_query_member_open(m, diag);
	if (r == -ENOMEM)
		pl_diag_set(diag, "%s", strerror(ENOMEM));
	m->began = r == 0;
	return r;
}

static int files(void *service, struct pl_confine *confine)
{
	const struct pl_query_member *m = service;

	return pl_kafka_files(m->o->uri, confine);
}

static bool waits(void *service)
{
	(void)service;
	return true;
}

static void drain(void *service)
{
	struct pl_query_member *m = service;

	if (m->failed == 0 && pl_query_member_sync(m, pl_clock_mono_ns()) < 0)
		pl_say_diag(&m->why);
}

const struct pl_service_ops pl_query_member_service = {
	.name = "member",
	.files = files,
	.open = open_service,
	.turn = turn,
	.waits = waits,
	.drain = drain,
	.account = pl_query_member_text,
	.counters = pl_query_member_put,
};
