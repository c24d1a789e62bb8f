/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the frames that a translator sends to a collector's memory, without one. */
#include "tests/bench/uplink.h"

#include <errno.h>
#include <stdlib.h>

#include "rdma/responder.h"
#include "tests/bench/roce.h"

#define FRAMES_BYTES (PL_BATCH_MAX * (PL_ROCE_PATH_MTU + PL_ROCE_OVERHEAD))

int pl_bench_uplink_begin(struct pl_bench_uplink *b, uint64_t store_bytes)
{
	const struct pl_uplink_options options = { .collectors = 1, .n_stores = 1 };
	const struct pl_roce_path path = pl_bench_path(1, 2);
	struct pl_exchange ours, theirs = { .service = PL_ROCE_UC,
		.gid = path.dst,
		.pkey = PL_ROCE_PKEY,
		.va = UINT64_C(0x7f0000000000),
		.bytes = store_bytes,
		.key = 0x5eed,
		.qpn = 0x17,
		.mtu = PL_ROCE_PATH_MTU,
		.access = PL_RDMA_WRITE };
	struct pl_diag diag = { .text = "" };
	int r;

	*b = (struct pl_bench_uplink){ .uplink = NULL };
	b->memory = malloc(FRAMES_BYTES);
	if (b->memory == NULL)
		return -ENOMEM;
	pl_frames_init(&b->frames, b->memory, FRAMES_BYTES);
	r = pl_uplink_new(&b->uplink, &options);
	if (r == 0)
		r = pl_uplink_offer(b->uplink, 0, 0, PL_ROCE_UC, &path, PL_ROCE_PATH_MTU, &ours);
	if (r == 0)
		r = pl_uplink_answer(b->uplink, 0, 0, &theirs, store_bytes, false, &diag);
	if (r == 0 && !pl_uplink_up(b->uplink, 0))
		r = -EPROTO;
	return r;
}

void pl_bench_uplink_end(struct pl_bench_uplink *b)
{
	pl_uplink_free(b->uplink);
	free(b->memory);
	*b = (struct pl_bench_uplink){ .uplink = NULL };
}

uint64_t pl_bench_uplink_send(struct pl_bench_uplink *b, uint64_t now_ns, struct pl_port *port)
{
	uint64_t unsent = 0;
	bool all;

	do {
		uint32_t n;
		int sent;

		all = pl_uplink_send(b->uplink, now_ns, &b->frames);
		n = b->frames.batch.n;
		sent = n == 0 || port == NULL ? (int)n : pl_port_send(port, &b->frames.batch, NULL);
		unsent += n - (sent > 0 ? (uint32_t)sent : 0);
		b->made += n;
		pl_frames_clear(&b->frames);
	} while (!all);
	return unsent;
}
