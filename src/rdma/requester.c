/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a requester: queue pairs, work, completions. */
#include <errno.h>
#include <string.h>

#include "base/stats.h"
#include "rdma/draw.h"
#include "rdma/requester_state.h"

int pl_requester_new(struct pl_requester **ret, const struct pl_requester_options *options)
{
	struct pl_requester_options o = *options;
	struct pl_requester *q;

	*ret = NULL;
	o.max_qps = o.max_qps == 0 ? 64 : o.max_qps;
	o.max_completions = o.max_completions == 0 ? 65536 : o.max_completions;
	if (o.max_qps > 65536 || o.max_completions > 1u << 24)
		return -EINVAL;
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return -ENOMEM;
	q->options = o;
	q->conns = calloc(o.max_qps, sizeof(*q->conns));
	q->completions = calloc(o.max_completions, sizeof(*q->completions));
	if (q->conns == NULL || q->completions == NULL ||
		!pl_rdma_index_init(&q->index, o.max_qps)) {
		pl_requester_free(q);
		return -ENOMEM;
	}
	*ret = q;
	return 0;
}

static void conn_done(struct pl_requester_conn *conn)
{
	free(conn->messages);
	free(conn->memory);
	memset(conn, 0, sizeof(*conn));
}

void pl_requester_free(struct pl_requester *q)
{
	if (q == NULL)
		return;
	for (uint32_t i = 0; q->conns != NULL && i < q->options.max_qps; i++)
		conn_done(&q->conns[i]);
	pl_rdma_index_done(&q->index);
	free(q->conns);
	free(q->completions);
	free(q);
}

static struct pl_requester_conn *conn_of(const struct pl_requester *q, uint32_t qpn)
{
	uint32_t place = qpn == 0 ? PL_RDMA_INDEX_NONE : pl_rdma_index_find(&q->index, qpn);

	return place == PL_RDMA_INDEX_NONE ? NULL : &q->conns[place];
}

static bool qp_good(const struct pl_requester_qp *c)
{
	const bool rc = c->service == PL_ROCE_RC;

	if (!rc && c->service != PL_ROCE_UC)
		return false;
	if (rc && (c->window < 2 || c->window > PL_RDMA_WINDOW_MAX || c->timeout_ns == 0))
		return false;
	return c->mtu >= 256 && c->mtu <= PL_ROCE_PATH_MTU && (c->mtu & (c->mtu - 1)) == 0 &&
	       c->qpn != 1 && c->qpn <= PL_ROCE_PSN_MASK && c->peer_qpn <= PL_ROCE_PSN_MASK &&
	       c->psn <= PL_ROCE_PSN_MASK && c->messages >= 1 &&
	       c->messages <= PL_RDMA_WINDOW_MAX && c->message_bytes <= PL_RDMA_MESSAGE_MAX &&
	       /* Everything that is posted has its own packet number. */
	       (uint64_t)c->messages * pl_roce_packets(c->message_bytes, c->mtu) < 1u << 23;
}

static void restart(struct pl_requester_conn *conn, uint32_t psn)
{
	conn->unacked = conn->next = conn->high = conn->tail = psn & PL_ROCE_PSN_MASK;
	conn->first = conn->n = conn->cursor = conn->since_ask = conn->asked = 0;
	conn->deadline_ns = conn->wait_ns = 0;
	conn->retries = conn->c.retries;
	conn->rnr_retries = conn->c.rnr_retries;
	conn->missed = UINT32_MAX;
	conn->failed = false;
	conn->ask = false;
	conn->allowed = conn->c.window;
	conn->gained = 0;
	conn->recover = conn->unacked;
	conn->pace = (struct pl_pace){ 0 };
	conn->timed_ns = conn->rtt_ns = conn->rtt_spread_ns = 0;
}

int pl_requester_qp_add(struct pl_requester *q, const struct pl_requester_qp *c, uint32_t *ret_qpn)
{
	struct pl_requester_conn *conn;
	uint32_t qpn, place = 0;

	if (!qp_good(c))
		return -EINVAL;
	qpn = pl_rdma_draw(&q->index, c->qpn, PL_ROCE_PSN_MASK);
	if (qpn == 0)
		return -EEXIST;
	while (place < q->options.max_qps && q->conns[place].used)
		place++;
	if (place == q->options.max_qps)
		return -ENOSPC;
	conn = &q->conns[place];
	*conn = (struct pl_requester_conn){ .c = *c, .used = true };
	conn->c.qpn = qpn;
	conn->messages = calloc(c->messages, sizeof(*conn->messages));
	conn->memory = calloc(c->messages, (size_t)c->message_bytes + 1);
	if (conn->messages == NULL || conn->memory == NULL) {
		conn_done(conn);
		return -ENOMEM;
	}
	restart(conn, c->psn);
	pl_rdma_index_add(&q->index, qpn, place);
	*ret_qpn = qpn;
	return 0;
}

int pl_requester_qp_remove(struct pl_requester *q, uint32_t qpn)
{
	struct pl_requester_conn *conn = conn_of(q, qpn);

	if (conn == NULL)
		return -ENOENT;
	q->promised -= conn->n;
	pl_rdma_index_remove(&q->index, qpn);
	conn_done(conn);
	return 0;
}

int pl_requester_qp_ready(struct pl_requester *q, uint32_t qpn, uint32_t psn, uint32_t peer_qpn)
{
	struct pl_requester_conn *conn = conn_of(q, qpn);

	if (conn == NULL)
		return -ENOENT;
	if (conn->n > 0)
		pl_requester_fail(q, conn, PL_RDMA_RESULT_FLUSHED);
	conn->c.peer_qpn = peer_qpn & PL_ROCE_PSN_MASK;
	restart(conn, psn);
	return 0;
}

int pl_requester_qp_status(
	const struct pl_requester *q, uint32_t qpn, struct pl_requester_status *ret)
{
	const struct pl_requester_conn *conn = conn_of(q, qpn);

	if (conn == NULL)
		return -ENOENT;
	*ret = (struct pl_requester_status){ .failed = conn->failed,
		.psn = conn->tail,
		.unacked = conn->unacked,
		.posted = conn->n,
		.window = conn->allowed,
		.rate = pl_pace_rate(&conn->pace) };
	return 0;
}

int pl_requester_post(struct pl_requester *q, uint32_t qpn, const struct pl_rdma_work *work)
{
	struct pl_requester_conn *conn = conn_of(q, qpn);
	struct pl_requester_message *m;
	uint8_t *memory;
	uint32_t place;
	bool atomic, asks;

	if (conn == NULL)
		return -ENOENT;
	if (conn->failed)
		return -ENOTCONN;
	atomic = pl_rdma_work_is_atomic(work);
	asks = atomic || work->kind == PL_RDMA_WORK_READ;
	if (asks && (conn->c.atomics == 0 || conn->c.service != PL_ROCE_RC))
		return -EINVAL;
	if (atomic && (work->va & 7) != 0)
		return -EINVAL;
	if (work->kind == PL_RDMA_WORK_READ && work->bytes > conn->c.mtu)
		return -EMSGSIZE;
	if (!asks && work->bytes > conn->c.message_bytes)
		return -EMSGSIZE;
	if (conn->n == conn->c.messages ||
		q->completions_n + q->promised >= q->options.max_completions)
		return -EAGAIN;
	if (conn->n == 0)
		conn->first = 0; /* reuses memory that caches hold */
	place = conn->first + conn->n;
	place -= place < conn->c.messages ? 0 : conn->c.messages;
	memory = conn->memory + place * ((size_t)conn->c.message_bytes + 1);
	m = &conn->messages[place];
	*m = (struct pl_requester_message){ .work = *work, .psn = conn->tail };
	m->work.data = memory;
	if (atomic)
		m->work.bytes = 0;
	else if (!asks && work->bytes > 0)
		memcpy(memory, work->data, work->bytes);
	m->packets = pl_roce_packets(m->work.bytes, conn->c.mtu);
	conn->tail = pl_psn_add(conn->tail, m->packets);
	conn->n++;
	q->promised++;
	return 0;
}

void pl_requester_finish(
	struct pl_requester *q, struct pl_requester_conn *conn, enum pl_rdma_result result)
{
	const struct pl_requester_message *m = pl_requester_message(conn, 0);
	uint32_t place;

	assert(q->promised > 0 && q->completions_n < q->options.max_completions);
	q->promised--;
	if (result != PL_RDMA_RESULT_OK || !m->work.quiet) {
		if (q->completions_n == 0)
			q->completions_first = 0; /* reuses memory that caches hold */
		place = q->completions_first + q->completions_n;
		place -= place < q->options.max_completions ? 0 : q->options.max_completions;
		q->completions[place] = (struct pl_rdma_completed){ .id = m->work.id,
			.qpn = conn->c.qpn,
			.result = (uint8_t)result,
			.original = m->original };
		q->completions_n++;
	}
	/* Counted down only here: until then later ones must not displace it from the peer's
	 * memory. */
	if (m->sent && pl_requester_asks(m)) {
		assert(conn->asked > 0);
		conn->asked--;
	}
	conn->first = conn->first + 1 < conn->c.messages ? conn->first + 1 : 0;
	conn->n--;
	if (conn->cursor > 0)
		conn->cursor--;
}

void pl_requester_fail(
	struct pl_requester *q, struct pl_requester_conn *conn, enum pl_rdma_result result)
{
	while (conn->n > 0) {
		pl_requester_finish(q, conn, result);
		result = PL_RDMA_RESULT_FLUSHED;
	}
	conn->failed = true;
	conn->deadline_ns = conn->wait_ns = 0;
}

uint32_t pl_requester_completions(
	struct pl_requester *q, struct pl_rdma_completed *ret, uint32_t max)
{
	uint32_t n = 0;

	for (; n < max && q->completions_n > 0; n++) {
		ret[n] = q->completions[q->completions_first];
		q->completions_first = q->completions_first + 1 < q->options.max_completions
					       ? q->completions_first + 1
					       : 0;
		q->completions_n--;
	}
	return n;
}

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_requester_counters, __VA_ARGS__)
#include "rdma/requester_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_requester_stats_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

const struct pl_requester_counters *pl_requester_counters(const struct pl_requester *q)
{
	return &q->counters;
}
