/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: makes them, brings them to ready, posts receives and takes completions. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "verbs/verbs_internal.h"
#include "wire/roce.h"

#define HOP_LIMIT 64

unsigned int verbs_access(uint8_t access)
{
	return IBV_ACCESS_LOCAL_WRITE |
	       ((access & PL_RDMA_READ) != 0 ? IBV_ACCESS_REMOTE_READ : 0) |
	       ((access & PL_RDMA_WRITE) != 0 ? IBV_ACCESS_REMOTE_WRITE : 0) |
	       ((access & PL_RDMA_ATOMIC) != 0 ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

struct verbs_qp *verbs_place(struct pl_verbs *v)
{
	for (uint32_t i = 0; i < v->options.max_qps; i++) {
		if (v->qps[i].qp == NULL) {
			v->qps[i] =
				(struct verbs_qp){ .generation =
							   (uint16_t)(v->qps[i].generation + 1) };
			return &v->qps[i];
		}
	}
	return NULL;
}

struct verbs_qp *verbs_find(struct pl_verbs *v, uint32_t qpn)
{
	for (uint32_t i = 0; i < v->options.max_qps; i++) {
		if (v->qps[i].qp != NULL && v->qps[i].qpn == qpn)
			return &v->qps[i];
	}
	return NULL;
}

/* ---- receives ---- */

static uint64_t receive_id(const struct pl_verbs *v, const struct verbs_qp *q)
{
	assert(q >= v->qps && q < v->qps + v->options.max_qps);
	return (uint64_t)q->generation << 32 | (uint64_t)(q - v->qps);
}

int verbs_post(struct pl_verbs *v, struct verbs_qp *q, uint32_t n)
{
	struct ibv_recv_wr wr = { .wr_id = receive_id(v, q) }, *bad;

	for (uint32_t i = 0; i < n; i++) {
		int error = ibv_post_recv(q->qp, &wr, &bad);

		if (error != 0) {
			pl_count(&v->counters.unposted, n - i);
			return error;
		}
	}
	return 0;
}

void verbs_broken(struct pl_verbs *v, struct verbs_qp *q)
{
	struct verbs_told *told;

	if (q->broken)
		return;
	q->broken = true;
	pl_count(&v->counters.broken, 1);
	told = verbs_tell(v, PL_VERBS_BROKEN);
	if (told != NULL)
		told->news.qpn = q->qpn;
}

static void immediate(struct pl_verbs *v, struct verbs_qp *q, const struct ibv_wc *wc)
{
	assert(v->done_head - v->done_tail <= v->done_cap);
	pl_count(&v->counters.immediates, 1);
	if (v->done_head - v->done_tail == v->done_cap)
		pl_count(&v->counters.immediates_lost, 1);
	else
		v->done[v->done_head++ % v->done_cap] = (struct pl_rdma_completion){
			.id = wc->wr_id,
			.qpn = q->qpn,
			.bytes = wc->byte_len,
			.imm = (wc->wc_flags & IBV_WC_WITH_IMM) != 0 ? be32toh(wc->imm_data) : 0,
			.kind = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? PL_RDMA_DONE_WRITE
									: PL_RDMA_DONE_SEND,
			.have_imm = (wc->wc_flags & IBV_WC_WITH_IMM) != 0,
		};
	(void)verbs_post(v, q, 1);
}

static void take(struct pl_verbs *v, const struct ibv_wc *wc)
{
	uint64_t place = wc->wr_id & UINT32_MAX;
	struct verbs_qp *q = place < v->options.max_qps ? &v->qps[place] : NULL;
	bool ours = q != NULL && q->qp != NULL && q->generation == wc->wr_id >> 32;

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		pl_count(&v->counters.flushed, 1);
	else if (wc->status != IBV_WC_SUCCESS)
		pl_count(&v->counters.failed, 1);
	if (!ours)
		return; /* of a removed queue pair */
	if (wc->status != IBV_WC_SUCCESS)
		verbs_broken(v, q);
	else
		immediate(v, q, wc);
}

void verbs_drain(struct pl_verbs *v)
{
	struct ibv_wc wc[32];
	int n;

	/* Bounded: a peer that sends faster than this loop takes must not hold it. */
	for (uint32_t taken = 0; taken < 2 * v->done_cap; taken += (uint32_t)n) {
		n = ibv_poll_cq(v->cq, 32, wc);
		v->undrained = false;
		if (n <= 0)
			return;
		for (int i = 0; i < n; i++)
			take(v, &wc[i]);
	}
	v->undrained = true;
}

uint32_t pl_verbs_completions(struct pl_verbs *v, struct pl_rdma_completion *ret, uint32_t max)
{
	uint32_t n = 0;

	assert(v->done_head - v->done_tail <= v->done_cap);
	while (n < max && v->done_tail != v->done_head)
		ret[n++] = v->done[v->done_tail++ % v->done_cap];
	return n;
}

/* ---- queue pairs ---- */

void verbs_init_attr(const struct pl_verbs *v, uint8_t service, struct ibv_qp_init_attr *ret)
{
	*ret = (struct ibv_qp_init_attr){
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.cap = { .max_send_wr = 1,
			.max_recv_wr = v->options.receives,
			.max_send_sge = 1,
			.max_recv_sge = 1 },
		.qp_type = service == PL_ROCE_UC ? IBV_QPT_UC : IBV_QPT_RC,
	};
}

static enum ibv_mtu mtu_code(uint16_t mtu)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && 256u << (code - IBV_MTU_256) < mtu)
		code++;
	return code;
}

static int to_init(struct pl_verbs *v, struct ibv_qp *qp, const struct pl_rdma_qp *want)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		.port_num = v->options.port,
		.qp_access_flags =
			verbs_access(want->access) & ~(unsigned int)IBV_ACCESS_LOCAL_WRITE };

	return ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* Brings a queue pair to ready. Answers have the numbers of requests; the send side of a queue pair
 * that never sends requests begins at 0. */
static int to_ready(struct pl_verbs *v, struct ibv_qp *qp, const struct pl_rdma_qp *want)
{
	bool rc = want->service == PL_ROCE_RC;
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(want->mtu < v->mtu ? want->mtu : v->mtu),
		.dest_qp_num = want->peer_qpn,
		.rq_psn = want->psn,
		.max_dest_rd_atomic = want->depth < v->depth ? want->depth : v->depth,
		.min_rnr_timer = want->rnr_timer,
		.ah_attr = { .is_global = 1,
			.port_num = v->options.port,
			.grh = { .sgid_index = (uint8_t)v->gid.index,
				.hop_limit = want->path.ttl != 0 ? want->path.ttl : HOP_LIMIT } } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1 };
	int error;

	memcpy(rtr.ah_attr.grh.dgid.raw, want->path.dst.b, 16);
	error = ibv_modify_qp(qp, &rtr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			(rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	if (error != 0)
		return error;
	return ibv_modify_qp(qp, &rts,
		IBV_QP_STATE | IBV_QP_SQ_PSN |
			(rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						IBV_QP_MAX_QP_RD_ATOMIC
			    : 0));
}

static int check(const struct pl_rdma_qp *qp, struct pl_diag *diag)
{
	if ((qp->service != PL_ROCE_RC && qp->service != PL_ROCE_UC) || qp->mtu < 256 ||
		qp->mtu > 4096 || qp->psn > PL_ROCE_PSN_MASK || qp->peer_qpn > PL_ROCE_PSN_MASK ||
		qp->rnr_timer > 31 || pl_addr_is_unspecified(&qp->path.dst)) {
		pl_diag_set(diag, "the parameters of the queue pair are not supported");
		return -EINVAL;
	}
	return 0;
}

int pl_verbs_qp_add(
	struct pl_verbs *v, const struct pl_rdma_qp *qp, uint32_t *ret_qpn, struct pl_diag *diag)
{
	struct ibv_qp_init_attr init;
	struct ibv_pd *pd;
	struct verbs_qp *q;
	int r = check(qp, diag), error;

	if (r == 0)
		r = pl_verbs_address(v, diag);
	if (r < 0)
		return r;
	pd = verbs_domain(v, qp->domain);
	q = verbs_place(v);
	if (q == NULL) {
		pl_diag_set(diag, "the limit of %u queue pairs is reached", v->options.max_qps);
		return -ENOSPC;
	}
	verbs_init_attr(v, qp->service, &init);
	q->qp = pd != NULL ? ibv_create_qp(pd, &init) : NULL;
	if (q->qp == NULL)
		return verbs_failed(diag, "cannot make a queue pair", errno);
	q->qpn = q->qp->qp_num;
	error = to_init(v, q->qp, qp);
	/* Posted before it is ready: the first request may need one. */
	if (error == 0)
		error = verbs_post(v, q, v->options.receives);
	if (error == 0)
		error = to_ready(v, q->qp, qp);
	if (error != 0) {
		ibv_destroy_qp(q->qp);
		q->qp = NULL;
		return verbs_failed(diag, "cannot make a queue pair ready", error);
	}
	pl_count(&v->counters.qps, 1);
	*ret_qpn = q->qpn;
	return 0;
}

int pl_verbs_qp_remove(struct pl_verbs *v, uint32_t qpn)
{
	struct verbs_qp *q = verbs_find(v, qpn);

	if (q == NULL)
		return -ENOENT;
	/* Its completions come first. */
	verbs_drain(v);
	if (q->id != NULL) {
		verbs_connection_end(v, q->id);
	} else {
		ibv_destroy_qp(q->qp);
		q->qp = NULL;
	}
	return 0;
}
