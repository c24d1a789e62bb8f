/* SPDX-License-Identifier: BSD-2-Clause */
/* The switch's account: a sentence, a JSON object, families of the metrics page. */
#include <inttypes.h>

#include "runtime/account.h"
#include "service/switch.h"

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_switch, __VA_ARGS__)
#include "service/switch_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_switch_stats = { rows, sizeof(rows) / sizeof(rows[0]) };

static void read_kernel(struct pl_switch *s)
{
	s->kernel_drops = 0;
	for (unsigned int i = 0; i < s->n_ports; i++) {
		for (unsigned int k = 0; k < s->ports[i].n_lanes; k++) {
			struct pl_port_stats one;

			pl_port_stats(s->ports[i].lanes[k], &one);
			s->kernel_drops += one.kernel_drops;
		}
	}
}

static const struct pl_dp_account *account(const struct pl_switch *s, enum pl_dp_stage stage)
{
	return s != NULL ? pl_dp_pipeline_account(s->pipeline, stage) : NULL;
}

static uint64_t held(const struct pl_switch *s)
{
	uint64_t n = 0;

	for (unsigned int i = 0; s != NULL && i < s->n_ports; i++)
		n += pl_dp_port_held(s->ports[i].queues);
	return n;
}

static uint64_t sending(const struct pl_switch *s)
{
	uint64_t n = 0;

	for (unsigned int i = 0; s != NULL && i < s->n_ports; i++)
		n += s->ports[i].sending != NULL;
	return n;
}

static void put_drops(const struct pl_account *a, const struct pl_dp_account *k)
{
	for (unsigned int i = 1; k != NULL && i < PL_DP_DROP_MAX; i++)
		pl_account_part(a, "cause", pl_dp_drop_name((enum pl_dp_drop)i), k->dropped[i]);
	pl_account_split_end(a);
}

/* Writes one counter of each port. */
#define PORTS(key, member, help)                                                                   \
	PL_SPLIT(a, "switch_", key, help);                                                         \
	for (unsigned int i = 0; s != NULL && i < s->n_ports; i++)                                 \
		pl_account_part(a, "port", s->ports[i].name, s->ports[i].member);                  \
	pl_account_split_end(a)

void pl_switch_put(void *sw, const struct pl_account *a)
{
	struct pl_switch *s = sw;
	const struct pl_dp_account *in = account(s, PL_DP_INGRESS), *eg = account(s, PL_DP_EGRESS);

	if (s != NULL)
		read_kernel(s);
	pl_account_stats(a, &pl_switch_stats, s);
	PL_COUNT(a, "switch_", "packets", "Packets that came to the ingress tables.",
		in != NULL ? in->in : 0);
	PL_COUNT(a, "switch_", "packets_made",
		"Copies of packets, and packets that actions sent: made in the switch.",
		in != NULL ? in->made : 0);
	PL_COUNT(a, "switch_", "packets_queued", "Packets that left the ingress tables to a queue.",
		in != NULL ? in->out : 0);
	PL_LEVEL(a, "switch_", "packets_held", "Packets that wait in queues.", held(s));
	PL_COUNT(a, "switch_", "packets_consumed", "Packets that an action before the queues kept.",
		in != NULL ? in->consumed : 0);
	PL_COUNT(a, "switch_", "packets_consumed_egress",
		"Packets that an action behind the queues kept.", eg != NULL ? eg->consumed : 0);
	PL_COUNT(a, "switch_", "packets_out", "Packets that left the egress tables to their port.",
		eg != NULL ? eg->out : 0);
	PL_LEVEL(a, "switch_", "packets_sending",
		"Packets that are being sent, their last bit not yet, at the rate of their port; packets_out = frames_sent + frames_unsent + packets_sending.",
		sending(s));
	PL_SPLIT(a, "switch_", "dropped_ingress",
		"Packets dropped before their queue, by cause; packets + packets_made = packets_queued + dropped_ingress + packets_consumed.");
	put_drops(a, in);
	PL_SPLIT(a, "switch_", "dropped_egress",
		"Packets dropped by their queue or behind it, by cause; packets_queued = packets_out + dropped_egress + packets_consumed_egress + packets_held.");
	put_drops(a, eg);
	PORTS("port_received", rx_packets, "Frames received, by port.");
	PORTS("port_sent", tx_packets, "Frames sent, by port.");
	PORTS("port_unsent", tx_dropped, "Frames that the interface did not take, by port.");
}

void pl_switch_put_text(void *sw, struct pl_buf *text)
{
	struct pl_switch *s = sw;
	const struct pl_dp_account *in = pl_dp_pipeline_account(s->pipeline, PL_DP_INGRESS),
				   *eg = pl_dp_pipeline_account(s->pipeline, PL_DP_EGRESS);

	read_kernel(s);
	pl_buf_printf(text, "%" PRIu64 " frames received, %" PRIu64 " made, %" PRIu64 " sent",
		s->received_frames, in->made, s->sent);
	for (unsigned int i = 1; i < PL_DP_DROP_MAX; i++) {
		const uint64_t n = in->dropped[i] + eg->dropped[i];

		if (n > 0)
			pl_buf_printf(text, ", %" PRIu64 " dropped (%s)", n,
				pl_dp_drop_name((enum pl_dp_drop)i));
	}
	if (in->consumed + eg->consumed > 0)
		pl_buf_printf(text, ", %" PRIu64 " kept by actions", in->consumed + eg->consumed);
	if (held(s) > 0)
		pl_buf_printf(text, ", %" PRIu64 " in queues", held(s));
	if (sending(s) > 0)
		pl_buf_printf(text, ", %" PRIu64 " being sent", sending(s));
	if (s->cut + s->no_memory + s->unsent + s->kernel_drops > 0)
		pl_buf_printf(text,
			"; %" PRIu64 " cut, %" PRIu64 " without memory, %" PRIu64
			" not taken by an interface, %" PRIu64 " dropped by the kernel",
			s->cut, s->no_memory, s->unsent, s->kernel_drops);
}
