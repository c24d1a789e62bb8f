/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests that were put to soft-RoCE, put to the responder: the same answers, the same state,
 * the same effect. */
#include "base/test.h"
#include "capture.h"
#include "genuine.h"
#include "rdma/requester.h"

enum { ANY, NO, YES };
enum { V6 = 1, INIT = 2 };

static const struct probe {
	uint32_t last;
	const char *name;
	uint8_t service, access, region_access, depth;
	uint32_t psn;
	uint8_t flags, written, state;
	const char *beside, *instead;
} probes[] = {
#define PL_PROBE(                                                                                  \
	last, name, service, access, region, depth, psn, flags, written, state, beside, instead)   \
	{ last, name, PL_ROCE_##service, access, region, depth, psn, flags, written,               \
		PL_RDMA_##state, beside, instead },
#include "probe.def"
#undef PL_PROBE
};

#define PROBES (sizeof(probes) / sizeof(probes[0]))

static _Alignas(64) uint8_t region[GENUINE_BYTES];

static struct pl_addr addr(bool v6, uint8_t last)
{
	struct pl_addr a = pl_addr_v4((const uint8_t[]){ 10, 77, 0, last });

	if (v6) {
		memset(&a, 0, sizeof(a));
		memcpy(a.b, "\xfd\0\0\x77", 4);
		a.b[15] = last;
	}
	return a;
}

/* The key is the last that the case's requests name; the one case without a right one names it but
 * for a bit. */
static uint32_t key_of(const struct probe *probe, uint32_t first)
{
	uint32_t key = 0;

	for (uint32_t i = first; i < probe->last; i++) {
		struct pl_roce p;

		/* Also of frames with a wrong ICRC: what was read before it was found wrong is not
		 * looked at here. */
		if (pl_roce_parse(&p, pl_cursor(capture.pkts[i].data, capture.pkts[i].len),
			    PL_LINK_ETHERNET) == PL_ROCE_F_OK &&
			p.headers & (PL_ROCE_H_RETH | PL_ROCE_H_ATOMIC) && p.rkey != 0)
			key = p.rkey;
	}
	return strcmp(probe->name, "RC FETCH ADD, rkey wrong") == 0 ? key ^ 1 : key;
}

static struct pl_responder *set_up(const struct probe *probe, uint32_t qpn, uint32_t key)
{
	const bool v6 = probe->flags & V6;
	const struct pl_addr own = addr(v6, 1), peer = addr(v6, 0xfe);
	const struct pl_rdma_qp c = { .qpn = qpn,
		.service = probe->service,
		.access = probe->access,
		.state = probe->flags & INIT ? PL_RDMA_INIT : PL_RDMA_READY,
		.rnr_timer = 12,
		.depth = probe->depth,
		.mtu = 1024,
		.pkey = PL_ROCE_PKEY,
		.psn = probe->psn,
		.peer_qpn = 0xabcd,
		.qkey = 0x11111111,
		.receives = 8,
		.path = genuine_path(&own, &peer) };
	const struct pl_rdma_region reg = { .base = region,
		.bytes = sizeof(region),
		.va = GENUINE_VA,
		.key = key == 0 ? 0xdead : key,
		.access = probe->region_access };
	struct pl_responder *r;
	uint32_t n;

	memset(region, 0, sizeof(region));
	if (pl_responder_new(&r, &(struct pl_responder_options){ 0 }) < 0 ||
		pl_responder_region_add(r, &reg, &n) < 0 || pl_responder_qp_add(r, &c, &n) < 0)
		abort();
	return r;
}

static void beside(struct pl_responder *r, const struct probe *probe, uint32_t request,
	uint32_t qpn, uint32_t key)
{
	static uint8_t buffer[256];
	unsigned int before;
	char what[8];
	long long a, b = 0;

	if (probe->beside == NULL ||
		sscanf(probe->beside, "%u:%7[a-z]:%lld:%lld", &before, what, &a, &b) < 3 ||
		before != request)
		return;
	if (strcmp(what, "recv") == 0)
		pl_responder_post(r, qpn, 1, buffer, (uint32_t)a);
	else if (strcmp(what, "word") == 0)
		memcpy(region, &a, 8);
	else if (strcmp(what, "fill") == 0)
		memset(region, (int)b, (size_t)a);
	else
		pl_responder_region_remove(r, key);
}

static uint32_t region_sum(void)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < sizeof(region); i++)
		sum = sum * 31 + region[i];
	return sum;
}

/* From our side: what the tester sent. */
static bool is_request(const struct pl_packet *pkt)
{
	return pkt->len > 12 && memcmp(pkt->data + 6, "\x52\x54\0\0\0\1", 6) != 0;
}

static void run(const struct probe *probe, uint32_t first, uint32_t qpn)
{
	const uint32_t key = key_of(probe, first);
	struct pl_responder *r = set_up(probe, qpn, key);
	char ours[2048] = "", genuine[2048] = "";
	struct pl_rdma_qp_status status;
	uint32_t requests = 0;

	for (uint32_t i = first; i < probe->last; i++) {
		const struct pl_packet *pkt = &capture.pkts[i];
		struct pl_roce p;

		if (is_request(pkt)) {
			uint32_t before;

			beside(r, probe, requests, qpn, key);
			before = region_sum();
			ask(r, pkt, ours, sizeof(ours));
			if (requests++ == 0 && probe->written != ANY)
				ok((region_sum() != before) == (probe->written == YES),
					"%s: memory", probe->name);
		} else if (pl_roce_parse(&p, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET) ==
				   PL_ROCE_F_OK &&
			   is_answer(&p)) {
			append(genuine, sizeof(genuine), &p);
		}
	}
	streq(ours, probe->instead != NULL ? probe->instead : genuine, "%s: answers", probe->name);
	if (probe->instead != NULL)
		ok(strcmp(ours, genuine) != 0, "%s: not as soft-RoCE", probe->name);
	pl_responder_qp_status(r, qpn, &status);
	eq(status.state, probe->state, "%s: state", probe->name);
	pl_responder_free(r);
}

/* Cases of an outstanding request: the requester's. What was sent is compared, then the forged
 * answer given. */
static void run_requester(const struct probe *probe, uint32_t first, uint32_t qpn,
	enum pl_rdma_result result, bool completes)
{
	const struct pl_requester_qp c = { .qpn = qpn,
		.service = PL_ROCE_RC,
		.mtu = 1024,
		.pkey = PL_ROCE_PKEY,
		.psn = 0x500,
		.peer_qpn = 0xabcd,
		.messages = 4,
		.message_bytes = 64,
		.window = 4,
		.timeout_ns = 1000000000,
		.retries = 7,
		.path = { .src = addr(false, 1), .dst = addr(false, 0xfe), .ttl = 64 } };
	static uint8_t space[4 * PL_ROCE_FRAME_MAX];
	static struct pl_frames frames;
	static struct pl_batch batch;
	struct pl_rdma_completed done;
	struct pl_requester *q;
	struct pl_roce ours, genuine;
	uint32_t n;

	if (pl_requester_new(&q, &(struct pl_requester_options){ 0 }) < 0 ||
		pl_requester_qp_add(q, &c, &n) < 0 ||
		pl_requester_post(q, qpn,
			&(struct pl_rdma_work){
				.va = 0x1000, .rkey = 1, .bytes = 8, .data = region }) < 0)
		abort();
	pl_frames_init(&frames, space, sizeof(space));
	pl_requester_send(q, 1, &frames);
	eq(pl_roce_parse(&genuine, pl_cursor(capture.pkts[first].data, capture.pkts[first].len),
		   PL_LINK_ETHERNET),
		PL_ROCE_F_OK);
	pl_roce_parse(&ours, pl_cursor(frames.batch.pkts[0].data, frames.batch.pkts[0].len),
		PL_LINK_ETHERNET);
	ok(frames.batch.n == 1 && ours.opcode == genuine.opcode && ours.psn == genuine.psn &&
			ours.va == genuine.va && ours.rkey == genuine.rkey &&
			ours.length == genuine.length && ours.ack_req == genuine.ack_req &&
			ours.qpn == genuine.qpn,
		"%s: the request", probe->name);
	batch.n = 1;
	batch.pkts[0] = capture.pkts[first + 1];
	pl_requester_batch(q, &batch, NULL, 2);
	n = pl_requester_completions(q, &done, 1);
	ok(completes ? n == 1 && done.result == result : n == 0, "%s: what comes of it",
		probe->name);
	pl_requester_free(q);
}

int main(int argc, char **argv)
{
	uint32_t first = 0;

	if (argc != 2)
		return EXIT_FAILURE;
	load(argv[1], "rxe-probe-6.12");
	eq(capture.n, probes[PROBES - 1].last, "all packets belong to a case");
	eq(PROBES, 112);
	for (uint32_t i = 0; i < PROBES; i++) {
		const struct probe *probe = &probes[i];
		const uint32_t qpn = 0x11 + i;

		if (strcmp(probe->name, "RC forged NAK against an outstanding request") == 0)
			run_requester(probe, first, qpn, PL_RDMA_RESULT_ACCESS, true);
		/* soft-RoCE takes this one for the answer; a number that was never sent is none. */
		else if (strcmp(probe->name,
				 "RC forged NAK with a PSN outside the outstanding window") == 0)
			run_requester(probe, first, qpn, PL_RDMA_RESULT_OK, false);
		else if (
			strcmp(probe->name,
				"RC forged ACK of an outstanding request that was never delivered") ==
			0)
			run_requester(probe, first, qpn, PL_RDMA_RESULT_OK, true);
		else
			run(probe, first, qpn);
		first = probe->last;
	}
	return pl_test_done();
}
