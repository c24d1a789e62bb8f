/* SPDX-License-Identifier: BSD-2-Clause */
/* Inserts, fills and removes IOAM traces in the Hop-by-Hop options of IPv6. */
#include "dataplane/telemetry/ioam_node.h"

#include <errno.h>
#include <string.h>

#include "wire/layers.h"

#define IP6_BYTES   40u
#define HEADER_MAX  272 /* most bytes of Hop-by-Hop with one trace: 2 + 2 + 257 and padding */
#define DATA_WORDS  61  /* most words of a trace: an option has 255 bytes, 10 before the data */
#define NODES_USUAL 8
#define TRACE_BYTES 8 /* bytes of the trace's header */
#define PAYLOAD_MAX 65535u
#define NTP_TO_UNIX UINT64_C(2208988800) /* seconds from 1900 to 1970 */
#define NS_PER_S    UINT64_C(1000000000)
#define DELAY_MAX   0x7ffffffeu
#define OPTION_PADN 1

int pl_dp_ioam_init(
	struct pl_dp_ioam *io, const struct pl_dp_ioam_config *config, struct pl_diag *diag)
{
	unsigned int words, fit;

	*io = (struct pl_dp_ioam){ .config = *config };
	if (io->config.type == 0)
		io->config.type = PL_IOAM_BIT(0) | PL_IOAM_BIT(1) | PL_IOAM_BIT(2) |
				  PL_IOAM_BIT(3) | PL_IOAM_BIT(4) | PL_IOAM_BIT(6);
	words = pl_ioam_node_len(io->config.type);
	if (io->config.type > 0xffffff || (io->config.type & 3) != 0 || words == 0) {
		pl_diag_set(diag, "a trace type has 24 bits, of which the node takes 0 to 21");
		return -EINVAL;
	}
	fit = DATA_WORDS / words;
	if (io->config.nodes > fit || fit == 0) {
		pl_diag_set(diag, "an option has room for %u nodes of %u words", fit, words);
		return -EINVAL;
	}
	if (io->config.nodes == 0)
		io->config.nodes = (uint8_t)(fit < NODES_USUAL ? fit : NODES_USUAL);
	return 0;
}

/* ---- what a node writes ---- */

static void set_time(const struct pl_dp_ioam *io, uint64_t ns, struct pl_ioam_node *n)
{
	uint64_t seconds = ns / NS_PER_S, rest = ns % NS_PER_S;

	n->have |= PL_IOAM_HAS_SECONDS | PL_IOAM_HAS_FRACTION;
	switch (io->config.time) {
	case PL_IOAM_TIME_PTP:
		n->seconds = (uint32_t)seconds;
		n->fraction = (uint32_t)rest;
		break;
	case PL_IOAM_TIME_NTP:
		n->seconds = (uint32_t)(seconds + NTP_TO_UNIX);
		n->fraction = (uint32_t)((rest << 32) / NS_PER_S);
		break;
	default:
		n->seconds = (uint32_t)seconds;
		n->fraction = (uint32_t)(rest / 1000);
		break;
	}
}

static void node_values(struct pl_ioam_node *n, const struct pl_dp_ioam *io,
	const struct pl_dp_node *node, const struct pl_dp_packet *pkt, uint8_t hop_limit)
{
	struct pl_dp_node in_bytes = *node;
	struct pl_int_hop hop;

	in_bytes.occupancy = PL_DP_IN_BYTES;
	pl_dp_node_hop(&hop, &in_bytes, pkt);
	*n = (struct pl_ioam_node){
		.have = PL_IOAM_HAS_HOP_LIMIT | PL_IOAM_HAS_NODE | PL_IOAM_HAS_INGRESS |
			PL_IOAM_HAS_EGRESS | PL_IOAM_HAS_INGRESS_WIDE | PL_IOAM_HAS_EGRESS_WIDE |
			PL_IOAM_HAS_QUEUE,
		.hop_limit = hop_limit,
		.node = node->id & 0xffffff,
		.ingress = (uint16_t)hop.ingress_port,
		.egress = (uint16_t)hop.egress_port,
		.ingress_wide = hop.ingress_port2,
		.egress_wide = hop.egress_port2,
		.queue = pkt->depth_bytes,
		.ns_data = io->config.data,
		.ns_data_wide = io->config.data_wide,
		.node_wide = node->id_wide,
		.buffer = node->buffer_bytes,
	};
	set_time(io, pkt->in_ns, n);
	/* no delay if the clock was set back meanwhile */
	if (pkt->out_ns != 0 && pkt->out_ns >= pkt->in_ns) {
		uint64_t delay = pkt->out_ns - pkt->in_ns;

		n->have |= PL_IOAM_HAS_DELAY;
		n->delay_overflow = delay > DELAY_MAX;
		n->delay_ns = n->delay_overflow ? DELAY_MAX : (uint32_t)delay;
	}
	if (io->config.have_data)
		n->have |= PL_IOAM_HAS_NS_DATA;
	if (io->config.have_data_wide)
		n->have |= PL_IOAM_HAS_NS_DATA_WIDE;
	if (node->id_wide != 0)
		n->have |= PL_IOAM_HAS_NODE_WIDE;
	if (node->have_buffer)
		n->have |= PL_IOAM_HAS_BUFFER;
}

/* ---- the packet ---- */

/* Returns true for a complete IPv6 packet; else *ret is the outcome. */
static bool is_ip6(const struct pl_dp_packet *pkt, enum pl_dp_int_outcome *ret)
{
	const struct pl_dp_headers *h = &pkt->headers;
	const uint8_t *ip = pkt->data + h->l3;

	*ret = PL_DP_INT_NOT_IP;
	if (h->ip_version != 6 || h->l3 == PL_DP_NONE)
		return false;
	*ret = PL_DP_INT_MALFORMED;
	/* payload length 0: a jumbogram (RFC 2675), or nothing to trace */
	return pkt->len >= h->l3 + IP6_BYTES && pl_be16(ip + 4) != 0 &&
	       (uint32_t)pl_be16(ip + 4) <= pkt->len - h->l3 - IP6_BYTES;
}

static void add_length(struct pl_dp_packet *pkt, int32_t n)
{
	uint8_t *ip = pkt->data + pkt->headers.l3;
	uint32_t v = (uint32_t)(pl_be16(ip + 4) + n);

	ip[4] = (uint8_t)(v >> 8);
	ip[5] = (uint8_t)v;
}

/* Returns DONE when the packet may grow by n bytes; else LENGTH or MTU. */
static enum pl_dp_int_outcome may_grow(
	const struct pl_dp_node *node, const struct pl_dp_packet *pkt, uint32_t n)
{
	const struct pl_dp_port_ids *port = pl_dp_node_port(node, pkt->out_port);
	uint32_t bytes = pl_be16(pkt->data + pkt->headers.l3 + 4);

	if (bytes + n > PAYLOAD_MAX)
		return PL_DP_INT_LENGTH;
	return port != NULL && port->mtu != 0 && IP6_BYTES + bytes + n > port->mtu ? PL_DP_INT_MTU
										   : PL_DP_INT_DONE;
}

enum pl_dp_int_outcome pl_dp_ioam_encapsulate(
	const struct pl_dp_ioam *io, const struct pl_dp_node *node, struct pl_dp_packet *pkt)
{
	uint8_t header[HEADER_MAX], *ip;
	struct pl_build area = pl_build(header + 2, sizeof(header) - 2);
	const struct pl_ioam_trace trace = {
		.type = io->config.type,
		.ns = io->config.ns,
		.incremental = io->config.incremental,
		.remaining = (uint8_t)((io->config.nodes - 1u) * pl_ioam_node_len(io->config.type)),
	};
	enum pl_dp_int_outcome r;
	struct pl_ioam_node own;
	uint32_t bytes, at = pkt->headers.l3 + IP6_BYTES;

	if (!is_ip6(pkt, &r))
		return r;
	if (pkt->headers.fragment)
		return PL_DP_INT_FRAGMENT;
	ip = pkt->data + pkt->headers.l3;
	if (ip[6] == PL_IP_HOPOPTS)
		return PL_DP_INT_ALREADY;
	node_values(&own, io, node, pkt, ip[7]);
	if (pl_ioam_put_trace(&area, &trace, PL_IP6_OPT_IOAM_MUTABLE, &own, 1) < 0)
		return PL_DP_INT_LENGTH;
	/* whole units of 8 bytes; 4 bytes are missing at most, because traces are words */
	if ((area.len + 2) % 8 != 0)
		pl_put_be32(&area, OPTION_PADN << 24 | 2 << 16);
	bytes = (uint32_t)area.len + 2;
	header[0] = ip[6];
	header[1] = (uint8_t)(bytes / 8 - 1);
	r = may_grow(node, pkt, bytes);
	if (r != PL_DP_INT_DONE)
		return r;
	if (area.full || pl_dp_packet_insert(pkt, at, bytes) < 0)
		return PL_DP_INT_ROOM;
	memcpy(pkt->data + at, header, bytes);
	pkt->data[pkt->headers.l3 + 6] = PL_IP_HOPOPTS;
	add_length(pkt, (int32_t)bytes);
	return PL_DP_INT_DONE;
}

/* Place of a trace of the namespace; offsets from the packet's data. */
struct site {
	struct pl_ioam_trace trace;
	uint32_t header, header_end; /* Hop-by-Hop header */
	uint32_t option, option_end;
	uint32_t used; /* first word that a node filled */
	bool alone;    /* the only option but padding */
};

static bool is_padding(struct pl_cursor c)
{
	while (pl_cursor_left(&c) > 0) {
		uint8_t type = pl_get_u8(&c);

		if (type > OPTION_PADN)
			return false;
		if (type == OPTION_PADN)
			pl_cursor_skip(&c, pl_get_u8(&c));
	}
	return !c.short_read;
}

static enum pl_dp_int_outcome find(
	const struct pl_dp_ioam *io, const struct pl_dp_packet *pkt, struct site *ret)
{
	const uint8_t *data = pkt->data, *ip = data + pkt->headers.l3, *p;
	enum pl_dp_int_outcome r, none = PL_DP_INT_NONE;
	struct pl_cursor c, area, rest;
	struct pl_ioam_option option;
	enum pl_verdict v;

	if (!is_ip6(pkt, &r))
		return r;
	if (ip[6] != PL_IP_HOPOPTS)
		return PL_DP_INT_NONE;
	c = pl_cursor(ip + IP6_BYTES, pl_be16(ip + 4));
	p = pl_cursor_peek(&c, 2);
	if (p == NULL)
		return PL_DP_INT_MALFORMED;
	area = pl_cursor_split(&c, 8 * ((size_t)p[1] + 1));
	if (area.short_read)
		return PL_DP_INT_MALFORMED;
	ret->header = (uint32_t)(area.pos - data);
	ret->header_end = (uint32_t)(area.end - data);
	pl_cursor_skip(&area, 2);
	rest = area;
	while (pl_ioam_next(&rest, &option, &v)) {
		if (option.kind > PL_IOAM_INCREMENTAL || option.integrity ||
			option.option_type != PL_IP6_OPT_IOAM_MUTABLE)
			continue;
		if (pl_cursor_left(&option.body) >= 2 &&
			pl_be16(option.body.pos) != io->config.ns) {
			none = PL_DP_INT_NAMESPACE;
			continue;
		}
		if (pl_ioam_trace_parse(&ret->trace, &option) != PL_V_OK)
			return PL_DP_INT_MALFORMED;
		/* type, length, reserved and kind precede the body */
		ret->option = (uint32_t)(option.body.pos - data) - 4;
		ret->option_end = (uint32_t)(option.body.end - data);
		ret->used = (uint32_t)(ret->trace.nodes.pos - data);
		ret->alone =
			is_padding((struct pl_cursor){ area.pos, data + ret->option, false }) &&
			is_padding((struct pl_cursor){ option.body.end, area.end, false });
		return PL_DP_INT_DONE;
	}
	return v == PL_V_OK || v == PL_V_IOAM_OPTION ? none : PL_DP_INT_MALFORMED;
}

/* Writes padding from `from` to `to`. */
static void pad(struct pl_dp_packet *pkt, uint32_t from, uint32_t to)
{
	uint8_t *p = pkt->data + from;

	memset(p, 0, to - from);
	if (to - from > 1) {
		p[0] = OPTION_PADN;
		p[1] = (uint8_t)(to - from - 2);
	}
}

/* Adds the node's words to an incremental trace, before those of the others, and pads the header to
 * whole units of 8 bytes. */
static enum pl_dp_int_outcome grow(const struct pl_dp_node *node, struct pl_dp_packet *pkt,
	const struct site *s, const uint8_t *block, uint32_t bytes)
{
	uint32_t option_end = s->option_end + bytes, units = (option_end - s->header + 7) / 8,
		 end = s->header + 8 * units;
	int32_t grown = (int32_t)end - (int32_t)s->header_end;
	enum pl_dp_int_outcome r;

	/* Other options must not be moved. */
	if (!s->alone)
		return PL_DP_INT_NO_BLOCK;
	if (pkt->data[s->option + 1] + bytes > UINT8_MAX || units > UINT8_MAX + 1u)
		return PL_DP_INT_LENGTH;
	/* Existing padding may have room for all words. */
	r = may_grow(node, pkt, grown > 0 ? (uint32_t)grown : 0);
	if (r != PL_DP_INT_DONE)
		return r;
	if (pl_dp_packet_insert(pkt, s->used, bytes) < 0)
		return PL_DP_INT_ROOM;
	if (grown > (int32_t)bytes) {
		if (pl_dp_packet_insert(pkt, option_end, (uint32_t)grown - bytes) < 0) {
			pl_dp_packet_remove(pkt, s->used, bytes);
			return PL_DP_INT_ROOM;
		}
	} else {
		pl_dp_packet_remove(pkt, option_end, bytes - (uint32_t)grown);
	}
	memcpy(pkt->data + s->used, block, bytes);
	pad(pkt, option_end, end);
	pkt->data[s->option + 1] = (uint8_t)(pkt->data[s->option + 1] + bytes);
	pkt->data[s->header + 1] = (uint8_t)(units - 1);
	add_length(pkt, grown);
	return PL_DP_INT_DONE;
}

enum pl_dp_int_outcome pl_dp_ioam_transit(
	const struct pl_dp_ioam *io, const struct pl_dp_node *node, struct pl_dp_packet *pkt)
{
	uint8_t block[4 * 32];
	struct pl_build b = pl_build(block, sizeof(block));
	struct pl_ioam_node own;
	struct site s;
	enum pl_dp_int_outcome r = find(io, pkt, &s);
	uint8_t *head;

	if (r != PL_DP_INT_DONE)
		return r;
	head = pkt->data + s.option + 4;
	if ((s.trace.flags & PL_IOAM_OVERFLOW) != 0)
		return PL_DP_INT_HOP_LIMIT;
	node_values(&own, io, node, pkt, pkt->data[pkt->headers.l3 + 7]);
	if (pl_ioam_put_node(&b, s.trace.type, &own) < 0)
		return PL_DP_INT_MALFORMED;
	if (b.len == 0)
		return PL_DP_INT_NO_BLOCK;
	if (4 * (size_t)s.trace.remaining < b.len) {
		head[2] |= 0x04; /* O */
		return PL_DP_INT_HOP_LIMIT;
	}
	if (s.trace.incremental) {
		r = grow(node, pkt, &s, block, (uint32_t)b.len);
		head = pkt->data + s.option + 4;
		/* without this block the trace has a gap: set O */
		if (r != PL_DP_INT_DONE) {
			head[2] |= 0x04;
			return r;
		}
	} else {
		memcpy(pkt->data + s.used - b.len, block, b.len);
	}
	head[3] = (uint8_t)((head[3] & 0x80) | (s.trace.remaining - b.len / 4));
	return PL_DP_INT_DONE;
}

enum pl_dp_int_outcome pl_dp_ioam_decapsulate(const struct pl_dp_ioam *io, struct pl_dp_packet *pkt)
{
	struct site s;
	enum pl_dp_int_outcome r = find(io, pkt, &s);
	uint32_t bytes;

	if (r == PL_DP_INT_DONE && s.alone) {
		pkt->data[pkt->headers.l3 + 6] = pkt->data[s.header];
		bytes = s.header_end - s.header;
		pl_dp_packet_remove(pkt, s.header, bytes);
		add_length(pkt, -(int32_t)bytes);
	} else if (r == PL_DP_INT_DONE) {
		pad(pkt, s.option, s.option_end);
	}
	return r;
}
