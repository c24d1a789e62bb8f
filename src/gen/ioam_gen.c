/* SPDX-License-Identifier: BSD-2-Clause */
/* Generates IPv6 packets with IOAM. */
#include "gen/ioam_gen.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/hash.h"

#define FIRST_HOP_LIMIT 64
#define DATA_WORDS      61 /* of a trace: an option has 255 bytes, 10 of them before the data */
#define NODES_USUAL     8
#define NTP_TO_UNIX     UINT32_C(2208988800) /* seconds from 1900 to 1970 */
#define NS_PER_S        UINT64_C(1000000000)
#define AREA_MAX        2046 /* bytes of options in one extension header */

static unsigned int node_words(const struct pl_gen_ioam *io)
{
	unsigned int words = pl_ioam_node_len(io->trace_type);

	return (io->trace_type & PL_IOAM_SNAPSHOT) != 0 ? words + 1 + io->snapshot_words : words;
}

/* ---- what a node writes ---- */

static void set_time(
	const struct pl_gen_ioam *io, uint64_t ns, uint32_t *ret_seconds, uint32_t *ret_fraction)
{
	uint64_t seconds = ns / NS_PER_S, rest = ns % NS_PER_S;

	switch (io->time) {
	case PL_GEN_IOAM_PTP:
		*ret_fraction = (uint32_t)rest;
		break;
	case PL_GEN_IOAM_NTP:
		seconds += NTP_TO_UNIX;
		*ret_fraction = (uint32_t)((rest << 32) / NS_PER_S);
		break;
	default:
		*ret_fraction = (uint32_t)(rest / 1000);
		break;
	}
	*ret_seconds = (uint32_t)seconds;
}

/* Set of IOAM fields for the model's fields, which are those of INT. */
static uint32_t have_of(uint32_t int_have)
{
	static const uint32_t of_field[PL_INT_F_MAX] = {
		[PL_INT_F_NODE] = PL_IOAM_HAS_NODE | PL_IOAM_HAS_NODE_WIDE,
		[PL_INT_F_PORTS] = PL_IOAM_HAS_INGRESS | PL_IOAM_HAS_EGRESS,
		[PL_INT_F_LATENCY] = PL_IOAM_HAS_DELAY,
		[PL_INT_F_QUEUE] = PL_IOAM_HAS_QUEUE,
		[PL_INT_F_INGRESS_TS] = PL_IOAM_HAS_SECONDS | PL_IOAM_HAS_FRACTION,
		[PL_INT_F_PORTS2] = PL_IOAM_HAS_INGRESS_WIDE | PL_IOAM_HAS_EGRESS_WIDE,
		[PL_INT_F_BUFFER] = PL_IOAM_HAS_BUFFER,
	};
	uint32_t have = PL_IOAM_HAS_HOP_LIMIT | PL_IOAM_HAS_NS_DATA | PL_IOAM_HAS_NS_DATA_WIDE |
			PL_IOAM_HAS_CHECKSUM;

	for (unsigned int f = 0; f < PL_INT_F_MAX; f++)
		have |= (int_have & PL_INT_HAS(f)) != 0 ? of_field[f] : 0;
	return have;
}

static void make_node(const struct pl_gen_ioam *io, const struct pl_int_hop *hop, unsigned int i,
	struct pl_ioam_node *ret)
{
	static const uint8_t opaque[] =
		"opaque state of the node at this moment, in the words of its schema";

	_Static_assert(sizeof(opaque) >= 4 * PL_GEN_SNAPSHOT_MAX, "as long as a snapshot may be");
	*ret = (struct pl_ioam_node){
		.have = have_of(hop->have),
		.hop_limit = (uint8_t)(FIRST_HOP_LIMIT - 1 - i),
		.node = hop->node & 0xffffff,
		.node_wide = UINT64_C(0x0a) << 48 | hop->node,
		.ingress = (uint16_t)hop->ingress_port,
		.egress = (uint16_t)hop->egress_port,
		.ingress_wide = hop->ingress_port2,
		.egress_wide = hop->egress_port2,
		.delay_ns = hop->latency & 0x7fffffff,
		.delay_overflow = hop->latency >> 31,
		.ns_data = 0xc0000000 | (hop->node & 0xffffff),
		.ns_data_wide = UINT64_C(0xd0) << 56 | hop->node,
		.queue = hop->queue_depth,
		.buffer = hop->buffer_depth,
	};
	set_time(io, hop->ingress_ts, &ret->seconds, &ret->fraction);
	/* every other node has a schema, so that blocks have different lengths */
	if ((io->trace_type & PL_IOAM_SNAPSHOT) != 0 && i % 2 == 0) {
		ret->have |= PL_IOAM_HAS_SCHEMA;
		ret->schema = 700 + i;
		ret->snapshot = pl_cursor(opaque, 4 * (size_t)io->snapshot_words);
	}
}

/* ---- options ---- */

static void must(int r)
{
	assert(r == 0 || r == -ENOBUFS);
	(void)r;
}

/* Writes the nodes' data until a node finds no room: that one sets O, and later nodes write
 * nothing. Returns the number of nodes that wrote. */
static unsigned int put_trace(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *item, bool incremental, struct pl_ioam_node nodes[])
{
	const struct pl_gen_ioam *io = &cfg->ioam;
	unsigned int room = io->nodes * node_words(io), n = 0;
	struct pl_ioam_trace head = {
		.type = io->trace_type,
		.ns = io->ns,
		.flags = io->flags,
		.incremental = incremental,
	};

	for (; n <= item->hop && n < PL_IOAM_NODES_MAX; n++) {
		unsigned int words = pl_ioam_node_len(io->trace_type);

		make_node(io, &item->packet->hops[n], n, &nodes[n]);
		if ((io->trace_type & PL_IOAM_SNAPSHOT) != 0)
			words += 1 + (unsigned int)pl_cursor_left(&nodes[n].snapshot) / 4;
		if (words > room) {
			head.flags |= PL_IOAM_OVERFLOW;
			break;
		}
		room -= words;
	}
	head.remaining = (uint8_t)room;
	must(pl_ioam_put_trace(b, &head, PL_IP6_OPT_IOAM_MUTABLE, nodes, n));
	return n;
}

static void put_e2e(
	const struct pl_gen_cfg *cfg, struct pl_build *b, const struct pl_gen_item *item)
{
	struct pl_ioam_e2e e2e = {
		.ns = cfg->ioam.ns,
		.have_seq = true,
		.have_seconds = true,
		.have_fraction = true,
		.seq = item->packet->flow_seq,
	};

	set_time(&cfg->ioam, item->packet->hops[0].ingress_ts, &e2e.seconds, &e2e.fraction);
	must(pl_ioam_put_e2e(b, &e2e, PL_IP6_OPT_IOAM, cfg->ioam.seq_64));
}

/* Writes a proof of transit without shared secrets: the cumulative value is a mix of the packet's
 * number and the nodes on its path. */
static void put_pot(
	const struct pl_gen_cfg *cfg, struct pl_build *b, const struct pl_gen_item *item)
{
	struct pl_ioam_pot pot = {
		.ns = cfg->ioam.ns,
		.have_values = true,
		.packet_id = (uint64_t)item->packet->flow << 32 | item->packet->flow_seq,
	};

	for (unsigned int i = 0; i <= item->hop; i++)
		pot.cumulative =
			pl_hash_mix(pot.cumulative ^ pot.packet_id, item->packet->hops[i].node);
	must(pl_ioam_put_pot(b, &pot, PL_IP6_OPT_IOAM_MUTABLE));
}

static void put_dex(
	const struct pl_gen_cfg *cfg, struct pl_build *b, const struct pl_gen_item *item)
{
	struct pl_ioam_dex dex = {
		.type = cfg->ioam.trace_type,
		.ns = cfg->ioam.ns,
		.have_flow = true,
		.have_seq = true,
		.flow = item->packet->flow,
		.seq = item->packet->flow_seq,
	};

	must(pl_ioam_put_dex(b, &dex, PL_IP6_OPT_IOAM));
}

/* ---- the packet ---- */

static void tell(const struct pl_gen_cfg *cfg, const struct pl_gen_item *item, unsigned int n_nodes,
	struct pl_gen_truth *t)
{
	t->flow = *item->flow;
	t->flow_index = item->packet->flow;
	t->flow_seq = item->packet->flow_seq;
	t->seq = t->node = 0;
	t->dropped = t->congested = t->tracked = t->intermediate = false;
	t->drop_reason = 0;
	t->form = PL_GEN_TRUTH_PACKET;
	t->n_hops = item->hop + 1;
	memcpy(t->hops, item->packet->hops, t->n_hops * sizeof(t->hops[0]));
	t->n_nodes = n_nodes;
	for (unsigned int i = 0; i < n_nodes; i++)
		make_node(&cfg->ioam, &item->packet->hops[i], i, &t->nodes[i]);
}

void pl_ioam_gen_packet(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *item, struct pl_gen_damage *damage, struct pl_gen_truth *truth)
{
	static const uint8_t order[] = { PL_GEN_IOAM_TRACE, PL_GEN_IOAM_INCREMENTAL,
		PL_GEN_IOAM_POT, PL_GEN_IOAM_DEX, PL_GEN_IOAM_E2E };
	const struct pl_gen_ioam *io = &cfg->ioam;
	struct pl_ioam_node nodes[PL_IOAM_NODES_MAX];
	uint8_t memory[2][AREA_MAX];
	struct pl_build areas[2] = { pl_build(memory[0], AREA_MAX), pl_build(memory[1], AREA_MAX) };
	struct pl_ip6_options options = { .hop = memory[0], .dst = memory[1] };
	unsigned int n_nodes = 0, n;
	size_t at;

	for (size_t i = 0; i < sizeof(order); i++) {
		struct pl_build *area = &areas[(io->destination & order[i]) != 0];

		if ((io->options & order[i]) == 0)
			continue;
		switch (order[i]) {
		case PL_GEN_IOAM_TRACE:
		case PL_GEN_IOAM_INCREMENTAL:
			n = put_trace(cfg, area, item, order[i] == PL_GEN_IOAM_INCREMENTAL, nodes);
			n_nodes = n > n_nodes ? n : n_nodes;
			break;
		case PL_GEN_IOAM_POT:
			put_pot(cfg, area, item);
			break;
		case PL_GEN_IOAM_DEX:
			put_dex(cfg, area, item);
			break;
		default:
			put_e2e(cfg, area, item);
			break;
		}
	}
	options.hop_len = areas[0].len;
	options.dst_len = areas[1].len;
	damage->link = cfg->inner == PL_GEN_IP ? PL_LINK_RAW_IP : PL_LINK_ETHERNET;
	pl_gen_put_link(cfg, b, item->flow);
	damage->frame_l3 = damage->inner_l3 = b->len;
	at = pl_put_ip_options(b, item->flow, (uint8_t)(FIRST_HOP_LIMIT - 1 - item->hop),
		cfg->tcp_options, &options);
	/* the first option is behind 2 bytes of header and 2 of padding, after the IPv6 header */
	damage->ioam = damage->frame_l3 + 40 + 2 + 2;
	pl_put_zero(b, cfg->payload);
	pl_end_ip(b, at);
	pl_malform_at(damage, PL_MALFORM_FRAME, b);
	if (truth != NULL)
		tell(cfg, item, n_nodes, truth);
}

/* ---- defaults and what goes together ---- */

static int refuse(struct pl_diag *diag, const char *text)
{
	pl_diag_set(diag, "%s", text);
	return -EINVAL;
}

int pl_ioam_gen_resolve(struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	struct pl_gen_ioam *io = &cfg->ioam;
	unsigned int fit;

	if (io->trace_type == 0) /* id, interfaces, time, delay, queue */
		io->trace_type = PL_IOAM_BIT(0) | PL_IOAM_BIT(1) | PL_IOAM_BIT(2) | PL_IOAM_BIT(3) |
				 PL_IOAM_BIT(4) | PL_IOAM_BIT(6) |
				 (io->snapshot_words > 0 ? PL_IOAM_SNAPSHOT : 0);
	if (cfg->udp)
		return refuse(diag, "IOAM travels in packets: write them to a capture file");
	if (cfg->inner_ip == 4)
		return refuse(diag, "IOAM options are IPv6's");
	if (cfg->report > PL_GEN_REPORT_NONE || cfg->replay != PL_GEN_REPLAY_NONE ||
		cfg->reports_per_datagram > 1 || cfg->instrumented)
		return refuse(diag, "IOAM is in the packets themselves, not in telemetry reports");
	if (cfg->carrier > PL_GEN_TCP || cfg->inner == PL_GEN_VXLAN)
		return refuse(diag, "IOAM is made in plain TCP and UDP packets");
	if (cfg->tcp_options > 10)
		return refuse(diag, "TCP has room for 10 words of options");
	if (io->options >= 2 * PL_GEN_IOAM_DEX || io->trace_type > 0xffffff || io->flags > 0xf)
		return refuse(diag, "there is no such IOAM option, trace type or flag");
	if (io->snapshot_words > PL_GEN_SNAPSHOT_MAX)
		return refuse(diag, "a snapshot has at most 16 words");
	if (io->snapshot_words > 0 && (io->trace_type & PL_IOAM_SNAPSHOT) == 0)
		return refuse(diag, "a snapshot needs its bit (22) in the trace type");
	if ((io->trace_type & 1) != 0)
		return refuse(diag, "bit 23 of a trace type is reserved and sent as 0");
	if (node_words(io) == 0)
		return refuse(diag, "this trace type asks the nodes for nothing");
	fit = DATA_WORDS / node_words(io);
	if (fit == 0 || io->nodes > fit) {
		pl_diag_set(
			diag, "an option has room for %u nodes of %u words", fit, node_words(io));
		return -EINVAL;
	}
	if (io->nodes == 0)
		io->nodes = (uint8_t)(fit < NODES_USUAL ? fit : NODES_USUAL);
	/* the rest of the form, so that pl_gen_cfg shows it */
	cfg->report = PL_GEN_REPORT_NONE;
	cfg->inner_ip = cfg->outer_ip = 6;
	cfg->mode = PL_GEN_MD;
	if (cfg->carrier == PL_GEN_CARRIER_AUTO)
		cfg->carrier = PL_GEN_UDP;
	if (cfg->inner == PL_GEN_INNER_AUTO)
		cfg->inner = PL_GEN_ETHERNET;
	return 0;
}
