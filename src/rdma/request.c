/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes packets of posted work: windows, repeats from a lost packet on, timeouts. */
#include "rdma/requester_state.h"

uint64_t pl_requester_timeout_ns(const struct pl_requester_conn *conn)
{
	const uint64_t least = conn->c.timeout_ns, usual = conn->rtt_ns + 4 * conn->rtt_spread_ns;

	return usual <= least ? least : usual < 10 * least ? usual : 10 * least;
}

/*
 * The peer drops packets behind a gap, so all of them are sent again: many, with a wide window.
 * Each loss halves the number of packets that may be under way (once for all that were under way by
 * then); each `allowed` packets that arrive add one.
 */
void pl_requester_narrow(struct pl_requester_conn *conn)
{
	if (pl_psn_diff(conn->unacked, conn->recover) < 0)
		return;
	conn->recover = conn->high;
	conn->gained = 0;
	conn->allowed = conn->allowed / 2 > 2 ? conn->allowed / 2 : 2;
}

/*
 * No answer came at all. Each time fewer packets are sent, down to one, because a link that loses
 * periodically would otherwise lose the same packet of each round.
 */
static void narrow_further(struct pl_requester_conn *conn)
{
	conn->recover = conn->high;
	conn->gained = 0;
	conn->allowed = conn->allowed / 2 > 1 ? conn->allowed / 2 : 1;
}

void pl_requester_widen(struct pl_requester_conn *conn, uint32_t n)
{
	conn->gained += n;
	while (conn->allowed < conn->c.window && conn->gained >= conn->allowed) {
		conn->gained -= conn->allowed;
		conn->allowed++;
	}
	if (conn->allowed == conn->c.window)
		conn->gained = 0;
}

void pl_requester_rewind(struct pl_requester_conn *conn, uint32_t psn)
{
	conn->cursor = 0;
	while (conn->cursor < conn->n) {
		const struct pl_requester_message *m = pl_requester_message(conn, conn->cursor);

		if (((psn - m->psn) & PL_ROCE_PSN_MASK) < m->packets)
			break;
		conn->cursor++;
	}
	conn->next = psn;
	conn->ask = true;
	conn->timed_ns = 0; /* an answer could belong to either of two packets */
}

/* First, Middle, Last, Only of a kind, in the order of their opcodes. */
static uint8_t opcode(const struct pl_requester_message *m, uint32_t i)
{
	static const uint8_t codes[2][4] = {
		[PL_RDMA_WORK_WRITE] = { PL_ROCE_WRITE_FIRST, PL_ROCE_WRITE_MIDDLE,
			PL_ROCE_WRITE_LAST, PL_ROCE_WRITE_ONLY },
		[PL_RDMA_WORK_SEND] = { PL_ROCE_SEND_FIRST, PL_ROCE_SEND_MIDDLE, PL_ROCE_SEND_LAST,
			PL_ROCE_SEND_ONLY },
	};
	const bool last = i == m->packets - 1;
	uint8_t code;

	if (m->work.kind == PL_RDMA_WORK_READ)
		return PL_ROCE_READ_REQUEST;
	if (m->work.kind == PL_RDMA_WORK_ADD)
		return PL_ROCE_FETCH_ADD;
	if (m->work.kind == PL_RDMA_WORK_SWAP)
		return PL_ROCE_CMP_SWAP;
	code = codes[m->work.kind][i == 0 ? (last ? 3 : 0) : (last ? 2 : 1)];
	return last && m->work.have_imm ? (uint8_t)(code + 1) : code;
}

/* Returns true when packet i asks for an acknowledgement: the last packet of all, and one in each
 * half of the window. */
static bool asks(struct pl_requester_conn *conn, const struct pl_requester_message *m, uint32_t i)
{
	const bool end = conn->cursor == conn->n - 1 && i == m->packets - 1;

	conn->since_ask++;
	if (!conn->ask && !end && conn->since_ask < (conn->allowed + 1) / 2 &&
		!pl_requester_asks(m))
		return false;
	conn->since_ask = 0;
	conn->ask = false;
	return true;
}

static void put(struct pl_requester *q, struct pl_requester_conn *conn,
	struct pl_requester_message *m, uint64_t now_ns, struct pl_frames *out)
{
	const uint32_t i = (conn->next - m->psn) & PL_ROCE_PSN_MASK;
	const uint32_t at = i * conn->c.mtu;
	const uint32_t left = m->work.kind == PL_RDMA_WORK_READ ? 0 : m->work.bytes - at;
	const uint32_t len = left < conn->c.mtu ? left : conn->c.mtu;
	const bool rc = conn->c.service == PL_ROCE_RC;
	const struct pl_roce packet = {
		.path = conn->c.path,
		.opcode = conn->c.service | opcode(m, i),
		.solicited = m->work.solicited && i == m->packets - 1,
		.migrated = true,
		.ack_req = rc && asks(conn, m, i),
		.pkey = conn->c.pkey,
		.qpn = conn->c.peer_qpn,
		.psn = conn->next,
		.va = m->work.va,
		.rkey = m->work.rkey,
		.length = m->work.bytes,
		.swap_add = m->work.swap_add,
		.compare = m->work.compare,
		.imm = m->work.imm,
	};

	conn->c.path.ip_id = q->ip_id++;
	if (packet.ack_req && conn->timed_ns == 0 && conn->next == conn->high) {
		conn->timed = conn->next;
		conn->timed_ns = now_ns;
	}
	pl_frames_put(out, &packet, (const uint8_t *)m->work.data + at, len);
	if (conn->next == conn->high) {
		conn->high = pl_psn_add(conn->high, 1);
		pl_count(&q->counters.packets, 1);
		pl_count(&q->counters.bytes, len);
	} else {
		pl_count(&q->counters.repeated, 1);
	}
	conn->next = pl_psn_add(conn->next, 1);
	if (i == 0 && !m->sent) {
		m->sent = true;
		pl_count(&q->counters.messages, 1);
		if (pl_requester_asks(m))
			conn->asked++;
	}
	if (i == m->packets - 1)
		conn->cursor++;
}

/* Returns true when the window allows another packet of this message. */
static bool may_send(const struct pl_requester_conn *conn, const struct pl_requester_message *m)
{
	if (conn->c.service != PL_ROCE_RC)
		return true;
	if (((conn->next - conn->unacked) & PL_ROCE_PSN_MASK) >= conn->allowed)
		return false;
	return m->sent || !pl_requester_asks(m) || conn->asked < conn->c.atomics;
}

/* Sends packets of a connection. Returns true when it has nothing more to send now. */
static bool send_conn(struct pl_requester *q, struct pl_requester_conn *conn, uint64_t now_ns,
	struct pl_frames *out)
{
	uint32_t room = pl_pace_room(&conn->pace, now_ns);

	for (; conn->cursor < conn->n && room > 0; room--) {
		struct pl_requester_message *m = pl_requester_message(conn, conn->cursor);
		const uint32_t payload = m->work.bytes < conn->c.mtu ? m->work.bytes : conn->c.mtu;

		if (!may_send(conn, m))
			return true;
		if (!pl_frames_room(out, 1, payload))
			return false;
		put(q, conn, m, now_ns, out);
		pl_pace_sent(&conn->pace, 1, now_ns);
		if (conn->c.service == PL_ROCE_RC) {
			if (conn->deadline_ns == 0)
				conn->deadline_ns = now_ns + pl_requester_timeout_ns(conn);
		} else if (conn->cursor > 0) {
			conn->unacked = conn->next;
			pl_requester_finish(q, conn, PL_RDMA_RESULT_OK);
		}
	}
	return true;
}

/* Checks the timers. Returns true when nothing may be sent. */
static bool timers(struct pl_requester *q, struct pl_requester_conn *conn, uint64_t now_ns)
{
	if (conn->wait_ns != 0) {
		if (now_ns < conn->wait_ns)
			return true;
		conn->wait_ns = 0;
		/* The peer may have accepted a repeat that was under way when it refused the first
		 * one: then nothing waits for an answer. */
		conn->deadline_ns =
			conn->unacked == conn->high ? 0 : now_ns + pl_requester_timeout_ns(conn);
	}
	if (conn->deadline_ns == 0 || now_ns < conn->deadline_ns)
		return false;
	pl_count(&q->counters.timeouts, 1);
	if (conn->retries == 0) {
		pl_requester_fail(q, conn, PL_RDMA_RESULT_RETRIES);
		return true;
	}
	conn->retries--;
	conn->deadline_ns = now_ns + pl_requester_timeout_ns(conn);
	narrow_further(conn);
	pl_requester_rewind(conn, conn->unacked);
	return false;
}

bool pl_requester_send(struct pl_requester *q, uint64_t now_ns, struct pl_frames *out)
{
	for (uint32_t i = 0; i < q->options.max_qps; i++) {
		struct pl_requester_conn *conn = &q->conns[q->turn];

		if (conn->used && !conn->failed && !timers(q, conn, now_ns) &&
			!send_conn(q, conn, now_ns, out))
			return false; /* the connection sends on in its next turn */
		q->turn = (q->turn + 1) % q->options.max_qps;
	}
	return true;
}

uint64_t pl_requester_next_ns(const struct pl_requester *q)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < q->options.max_qps; i++) {
		const struct pl_requester_conn *conn = &q->conns[i];
		uint64_t at = conn->wait_ns != 0 ? conn->wait_ns : conn->deadline_ns;

		if (conn->used && at != 0 && at < next)
			next = at;
		/* Congestion limits the rate: packets that the window would allow wait. */
		at = pl_pace_due_ns(&conn->pace);
		if (conn->used && conn->wait_ns == 0 && conn->pace.bucket.rate != 0 &&
			conn->cursor < conn->n &&
			may_send(conn, pl_requester_message(conn, conn->cursor)) && at < next)
			next = at;
	}
	return next;
}
