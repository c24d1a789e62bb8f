/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path: WRITE Only and FETCH_ADD over untagged RoCEv2 on IPv4 to a queue pair with no
 * rules beyond addresses. A group of frames is checked first, which prefetches the memory that they
 * name; then they are executed in order. It changes nothing before every check has passed; a frame
 * that it does not take goes the slow path (pl_responder_receive), which defines the correct
 * result: a test compares the two.
 */
#include <string.h>

#include "base/prefetch.h"
#include "memory/words.h"
#include "rdma/responder_state.h"

#define GROUP     32

/* Offsets in such a frame. */
#define IP        14
#define BTH       (IP + 20 + 8)
#define RETH      (BTH + 12)
#define PAYLOAD   (RETH + 16)
#define FRAME_MIN (PAYLOAD + 4)
#define ADD_FRAME (BTH + 12 + 28 + 4)

struct staged {
	struct pl_responder_qp *qp; /* NULL: slow path */
	uint8_t *dest;
	const uint8_t *payload;
	uint64_t add;
	uint32_t len, psn;
	bool ask, atomic;
};

/* Returns true when the bytes are such a frame, complete; *ret_len is the length of the payload. */
static inline bool usual(const struct pl_packet *pkt, uint32_t *ret_len)
{
	const uint8_t *p = pkt->data;
	uint64_t ip, fragment, udp;
	uint32_t total, inside, icrc;
	uint8_t pad;

	if (pkt->link != PL_LINK_ETHERNET || pkt->len < FRAME_MIN)
		return false;
	ip = pl_be64(p + IP - 2);
	fragment = pl_be64(p + IP + 6);
	udp = pl_be64(p + IP + 20);
	total = ip >> 16 & 0xffff;
	/* Requires IPv4 without options or congestion mark, not a fragment; UDP to port 4791 with
	 * the length of the IP header and without checksum. */
	if ((ip & 0xffffff0000000000) != 0x0800450000000000 || (~ip & 0x300000000) == 0 ||
		(fragment & 0x3fff00ff00000000) != 0x0000001100000000 ||
		(udp & 0x0000ffffffffffff) !=
			((uint64_t)PL_ROCE_PORT << 32 | (uint64_t)(total - 20) << 16) ||
		total > pkt->len - IP || total < FRAME_MIN - IP)
		return false;
	pad = p[BTH + 1] >> 4 & 3;
	inside = total - (FRAME_MIN - IP);
	if ((p[BTH + 1] & 0x0f) != 0)
		return false;
	if ((p[BTH] & PL_ROCE_OP_MASK) == PL_ROCE_WRITE_ONLY) {
		if (inside < pad || (inside & 3) != 0)
			return false;
		*ret_len = inside - pad;
	} else if (p[BTH] == (PL_ROCE_RC | PL_ROCE_FETCH_ADD) && total == ADD_FRAME - IP &&
		   pad == 0) {
		*ret_len = 8;
	} else {
		return false;
	}
	memcpy(&icrc, p + IP + total - 4, sizeof(icrc));
	return icrc == pl_roce_icrc_ip4(p + IP, total - 4);
}

/* Queue pair and region of the request before; they do not change within a batch. */
struct recent {
	uint32_t qpn, key; /* 0: none */
	struct pl_responder_qp *qp;
	const struct pl_rdma_region *region;
};

static inline struct pl_responder_qp *qp_of(
	const struct pl_responder *r, struct recent *recent, uint32_t qpn)
{
	if (qpn != recent->qpn) {
		recent->qpn = qpn;
		recent->qp = pl_responder_qp_of(r, qpn);
	}
	return recent->qp;
}

static inline const struct pl_rdma_region *region_of(
	const struct pl_responder *r, struct recent *recent, uint32_t key)
{
	if (key != recent->key) {
		recent->key = key;
		recent->region = pl_responder_region_of(r, key);
	}
	return recent->region;
}

/* Makes the checks of a request that do not depend on the requests before it. */
static inline void stage(const struct pl_responder *r, const struct pl_packet *pkt,
	struct recent *recent, struct staged *ret)
{
	const uint8_t *p = pkt->data;
	struct pl_responder_qp *qp;
	enum pl_rdma_cause cause;
	uint64_t addrs, va;
	uint32_t len;
	uint8_t access;
	bool atomic;

	ret->qp = NULL;
	if (!usual(pkt, &len) || !pl_responder_is_meant(r, p))
		return;
	atomic = p[BTH] == (PL_ROCE_RC | PL_ROCE_FETCH_ADD);
	access = atomic ? PL_RDMA_ATOMIC : PL_RDMA_WRITE;
	va = pl_be64(p + RETH);
	qp = qp_of(r, recent, pl_be24(p + BTH + 5));
	memcpy(&addrs, p + IP + 12, sizeof(addrs));
	if (qp == NULL || !qp->plain || qp->learn || addrs != qp->addrs ||
		(p[BTH] & PL_ROCE_SERVICE_MASK) != qp->c.service ||
		pl_be16(p + BTH + 2) != qp->c.pkey || qp->c.pkey < PL_ROCE_PKEY_FULL ||
		(qp->c.access & access) == 0)
		return;
	if (atomic ? qp->c.depth == 0 || (va & 7) != 0
		   : len > qp->c.mtu || pl_be32(p + RETH + 12) != len || len == 0)
		return;
	ret->dest = pl_responder_within(
		region_of(r, recent, pl_be32(p + RETH + 8)), qp, va, len, access, &cause);
	if (ret->dest == NULL)
		return;
	pl_prefetch_write(ret->dest);
	ret->qp = qp;
	ret->payload = p + PAYLOAD;
	ret->atomic = atomic;
	ret->add = atomic ? pl_be64(p + RETH + 12) : 0;
	ret->len = len;
	ret->psn = pl_be24(p + BTH + 9);
	ret->ask = p[BTH + 8] >> 7;
}

/* Makes the checks that depend on the requests before it. */
static inline bool in_turn(const struct pl_responder_qp *qp, const struct staged *s)
{
	if (qp == NULL || qp->state != PL_RDMA_READY || qp->in != PL_RDMA_NONE)
		return false;
	if (qp->c.service == PL_ROCE_UC)
		return !pl_responder_is_far(qp, s->psn); /* else it is counted as a guess */
	return s->psn == qp->psn && pl_responder_may_say(qp, 2);
}

static inline void execute(
	struct pl_responder *r, struct pl_responder_qp *qp, const struct staged *s)
{
	qp->psn = pl_psn_add(s->psn, 1);
	qp->msn = pl_psn_add(qp->msn, 1);
	qp->packets++;
	qp->told = false;
	if (s->atomic) {
		pl_responder_atomic_done(r, qp, s->psn,
			__atomic_fetch_add((uint64_t *)(void *)s->dest, s->add, __ATOMIC_SEQ_CST));
		return;
	}
	pl_words_place(s->dest, s->payload, s->len);
	if (s->ask && qp->c.service == PL_ROCE_RC)
		pl_responder_say(r, qp,
			&(struct pl_rdma_answer){ .kind = PL_RDMA_SAY_AETH,
				.syndrome = PL_ROCE_ACK_UNLIMITED,
				.psn = s->psn,
				.msn = qp->msn });
}

void pl_responder_batch(struct pl_responder *r, const struct pl_batch *in, uint8_t *ret_causes)
{
	struct staged staged[GROUP];
	struct recent recent = { .qpn = 0 };
	uint64_t fast = 0, adds = 0, bytes = 0;

	for (uint32_t at = 0; at < in->n; at += GROUP) {
		const uint32_t n = in->n - at < GROUP ? in->n - at : GROUP;

		for (uint32_t i = 0; i < n; i++)
			stage(r, &in->pkts[at + i], &recent, &staged[i]);
		for (uint32_t i = 0; i < n; i++) {
			const struct staged *s = &staged[i];
			enum pl_rdma_cause cause = PL_RDMA_C_OK;

			if (__builtin_expect(in_turn(s->qp, s), 1)) {
				execute(r, s->qp, s);
				fast++;
				adds += s->atomic;
				bytes += s->atomic ? 0 : s->len;
			} else {
				cause = pl_responder_receive(r, &in->pkts[at + i]);
				pl_count(&r->counters.causes[cause], 1);
			}
			if (ret_causes != NULL)
				ret_causes[at + i] = (uint8_t)cause;
		}
	}
	pl_count(&r->counters.causes[PL_RDMA_C_OK], fast);
	pl_count(&r->counters.writes, fast - adds);
	pl_count(&r->counters.adds, adds);
	pl_count(&r->counters.write_bytes, bytes);
	pl_count(&r->counters.packets, in->n);
}
