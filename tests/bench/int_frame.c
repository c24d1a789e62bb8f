/* SPDX-License-Identifier: BSD-2-Clause */
/* Instruments a frame as the switch's INT source does. */
#include "tests/bench/int_frame.h"

#include <errno.h>
#include <string.h>

#include "dataplane/parse.h"
#include "dataplane/telemetry/int_source.h"

static int instrument(struct pl_dp_packet *pkt)
{
	const struct pl_dp_int_source_config config = { .version = PL_INT_V20 };
	const struct pl_dp_node node = { .id = 2 };
	static struct pl_dp_int_source source;
	int r = pl_dp_int_source_init(&source, &config, NULL);

	if (r < 0)
		return r;
	pkt->in_port = 1;
	pkt->out_port = 2;
	pkt->in_ns = 1;
	pkt->out_ns = 1001;
	if (!pl_dp_parse(pkt) || pl_dp_int_source(&source, &node, pkt) != PL_DP_INT_DONE)
		return -EBADMSG;
	return 0;
}

int pl_bench_instrument(uint8_t *frame, uint32_t bytes)
{
	struct pl_dp_pool *pool = NULL;
	struct pl_dp_packet *pkt;
	int r = pl_dp_pool_new(&pool, PL_DP_HEADROOM + bytes + PL_BENCH_INT_BYTES, 1);

	if (r < 0)
		return r;
	pkt = pl_dp_packet_of(pool, frame, bytes);
	r = pkt != NULL ? instrument(pkt) : -ENOMEM;
	if (r == 0 && pkt->len == bytes + PL_BENCH_INT_BYTES)
		memcpy(frame, pkt->data, pkt->len);
	else if (r == 0)
		r = -EMSGSIZE;
	pl_dp_packet_free(pkt);
	pl_dp_pool_free(pool);
	return r;
}
