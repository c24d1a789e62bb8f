/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the reports of a host that is an INT sink. */
#include "hostint/reporter.h"

#include "bpf/host_int_kernel.h"

#define SEQ_MASK 0x3fffffu /* v2.0 3.3: 22 bits */

static void begin(struct pl_hostint_reporter *r)
{
	const struct pl_report_head head = { .version = PL_REPORT_V20,
		.hw_id = r->hw_id,
		.seq = r->seq & SEQ_MASK,
		.node = r->node };

	r->b = pl_build(r->datagram, sizeof(r->datagram));
	r->reports = 0;
	pl_report_put_group(&r->b, &head);
}

void pl_hostint_reporter_init(struct pl_hostint_reporter *r)
{
	begin(r);
}

void pl_hostint_flush(struct pl_hostint_reporter *r)
{
	if (r->reports == 0)
		return;
	r->send(r->arg, r->datagram, (uint32_t)r->b.len, r->reports);
	r->seq++;
	begin(r);
}

static bool put(struct pl_hostint_reporter *r, const struct pl_host_event *e)
{
	const struct pl_report_head head = { .version = PL_REPORT_V20,
		.tracked = true,
		.node = r->node,
		.md_bits = PL_INT_BIT(PL_INT_F_INGRESS_TS),
		.inner_link = r->raw ? PL_LINK_RAW_IP : PL_LINK_ETHERNET,
		.inner_ip_version = e->head[0] >> 4 };
	const struct pl_int_hop hop = { .have = PL_INT_HAS(PL_INT_F_INGRESS_TS),
		.ingress_ts = e->ts_ns };
	struct pl_build before = r->b;
	size_t at = pl_report_put(&r->b, &head, &hop);

	pl_put(&r->b, e->head, e->bytes);
	pl_report_end(&r->b, &head, at);
	if (r->b.full) {
		r->b = before;
		return false;
	}
	r->reports++;
	return true;
}

void pl_hostint_report(struct pl_hostint_reporter *r, struct pl_host_event *e)
{
	/* The collector is to count missing numbers of flows as lost reports, not as lost
	 * packets. */
	if ((int32_t)(e->lost - r->lost) > 0) {
		r->lost = e->lost;
		pl_hostint_flush(r);
		r->seq++;
		begin(r);
	}
	if (r->sampled)
		e->head[e->int_at + 14] |= PL_HOST_SAMPLED >> 8;
	if (put(r, e))
		return;
	pl_hostint_flush(r);
	/* A datagram has room for the longest report: PL_HOST_EVENT_HEAD and 32 bytes. */
	(void)put(r, e);
}
