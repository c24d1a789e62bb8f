/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes RoCE packets. */
#include <string.h>

#include "wire/layers.h"
#include "wire/roce.h"

#define IP4_BYTES  20
#define IP6_BYTES  40 /* and the GRH */
#define UDP_BYTES  8
#define BTH_BYTES  12
#define ICRC_BYTES 4

/* Services that have an operation. */
enum { RC = 1, UC = 2, UD = 4 };

struct op {
	uint8_t headers, services;
};

#define RETH     PL_ROCE_H_RETH
#define ATOMIC   PL_ROCE_H_ATOMIC
#define AETH     PL_ROCE_H_AETH
#define ORIGINAL PL_ROCE_H_ORIGINAL
#define IMM      PL_ROCE_H_IMM
#define IETH     PL_ROCE_H_IETH

static const struct op ops[PL_ROCE_OP_MASK + 1] = {
#define PL_ROCE_OP(code, id, text, h, s) [code] = { .headers = h, .services = s },
#include "wire/roce_ops.def"
#undef PL_ROCE_OP
};

static const struct op *op_of(uint8_t opcode)
{
	static const uint8_t service[8] = { [0] = RC, [1] = UC, [3] = UD };
	const struct op *op = &ops[opcode & PL_ROCE_OP_MASK];

	return (op->services & service[opcode >> 5]) != 0 ? op : NULL;
}

int pl_roce_headers(uint8_t opcode)
{
	const struct op *op = op_of(opcode);

	if (op == NULL)
		return -1;
	return (opcode & PL_ROCE_SERVICE_MASK) == PL_ROCE_UD ? op->headers | PL_ROCE_H_DETH
							     : op->headers;
}

uint64_t pl_roce_rnr_ns(uint8_t code)
{
	/* In units of 10 us. */
	static const uint32_t table[32] = { 65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96,
		128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
		16384, 24576, 32768, 49152 };

	return (uint64_t)table[code & 0x1f] * 10000;
}

/* ---- reading ---- */

/* The bytes before the BTH, once they are known to be whole. */
struct net {
	enum pl_roce_net kind;
	struct pl_cursor packet; /* from the network header through the ICRC */
	struct pl_cursor inside; /* from the BTH through the ICRC */
};

static enum pl_roce_fault read_link(
	struct pl_roce_path *path, struct pl_cursor *c, uint16_t *ret_type)
{
	const uint8_t *p = pl_cursor_take(c, 14);

	if (p == NULL)
		return PL_ROCE_F_SHORT;
	memcpy(path->dmac, p, 6);
	memcpy(path->smac, p + 6, 6);
	*ret_type = pl_be16(p + 12);
	if (*ret_type == PL_ETH_VLAN) {
		path->tagged = true;
		path->tci = pl_get_be16(c);
		*ret_type = pl_get_be16(c);
	}
	return c->short_read ? PL_ROCE_F_SHORT : PL_ROCE_F_OK;
}

/* Reads UDP. `udp` begins at its header and ends with the IP payload; sum is that of the pseudo
 * header. */
static enum pl_roce_fault read_udp(
	struct pl_roce_path *path, struct net *net, struct pl_cursor udp, uint32_t sum)
{
	const uint8_t *start = udp.pos;
	const size_t len = pl_cursor_left(&udp);
	const uint8_t *p = pl_cursor_take(&udp, UDP_BYTES);

	if (p == NULL)
		return PL_ROCE_F_IP_LENGTH;
	if (pl_be16(p + 2) != PL_ROCE_PORT)
		return PL_ROCE_F_NOT_ROCE;
	if (pl_be16(p + 4) != len)
		return PL_ROCE_F_IP_LENGTH;
	if (pl_be16(p + 6) != 0 && pl_checksum_fold(pl_checksum_add(sum, start, len)) != 0)
		return PL_ROCE_F_UDP_CHECKSUM;
	path->sport = pl_be16(p);
	net->inside = udp;
	return PL_ROCE_F_OK;
}

static enum pl_roce_fault read_ip4(struct pl_roce_path *path, struct net *net, struct pl_cursor c)
{
	const uint8_t *p = pl_cursor_peek(&c, IP4_BYTES);
	size_t header, total;
	uint32_t sum;

	if (p == NULL)
		return PL_ROCE_F_SHORT;
	header = (size_t)(p[0] & 0x0f) * 4;
	total = pl_be16(p + 2);
	if (p[9] != PL_IP_UDP)
		return PL_ROCE_F_NOT_ROCE;
	if (p[0] >> 4 != 4 || header < IP4_BYTES)
		return PL_ROCE_F_IP_HEADER;
	if ((pl_be16(p + 6) & 0x3fff) != 0)
		return PL_ROCE_F_FRAGMENT;
	if (header > IP4_BYTES) {
		const uint8_t *udp = pl_cursor_peek(&c, header + 4);

		return udp != NULL && pl_be16(udp + header + 2) == PL_ROCE_PORT
			       ? PL_ROCE_F_IP_HEADER
			       : PL_ROCE_F_NOT_ROCE;
	}
	if (total < IP4_BYTES)
		return PL_ROCE_F_IP_LENGTH;
	if (!pl_cursor_trim(&c, total))
		return PL_ROCE_F_SHORT;
	net->kind = PL_ROCE_NET_IP4;
	net->packet = c;
	path->tos = p[1];
	path->ip_id = pl_be16(p + 4);
	path->may_fragment = (p[6] & 0x40) == 0;
	path->ttl = p[8];
	path->src = pl_addr_v4(p + 12);
	path->dst = pl_addr_v4(p + 16);
	pl_cursor_skip(&c, IP4_BYTES);
	sum = pl_checksum_add(PL_IP_UDP + (uint32_t)pl_cursor_left(&c), p + 12, 8);
	return read_udp(path, net, c, sum);
}

/* Reads IPv6 or the GRH, which has the same layout. */
static enum pl_roce_fault read_ip6(
	struct pl_roce_path *path, struct net *net, struct pl_cursor c, bool grh)
{
	const uint8_t *p = pl_cursor_peek(&c, IP6_BYTES);
	uint32_t sum, word;

	if (p == NULL)
		return PL_ROCE_F_SHORT;
	word = pl_be32(p);
	if (!grh && p[6] == PL_IP_FRAGMENT)
		return PL_ROCE_F_FRAGMENT;
	if (p[6] != (grh ? PL_ROCE_NEXT_HEADER : PL_IP_UDP))
		return PL_ROCE_F_NOT_ROCE;
	if (word >> 28 != 6)
		return PL_ROCE_F_IP_HEADER;
	if (!pl_cursor_trim(&c, IP6_BYTES + (size_t)pl_be16(p + 4)))
		return PL_ROCE_F_SHORT;
	net->kind = grh ? PL_ROCE_NET_GRH : PL_ROCE_NET_IP6;
	net->packet = c;
	path->v1 = grh;
	path->tos = (uint8_t)(word >> 20);
	path->flow_label = word & 0xfffff;
	path->ttl = p[7];
	path->src = pl_addr_v6(p + 8);
	path->dst = pl_addr_v6(p + 24);
	pl_cursor_skip(&c, IP6_BYTES);
	if (grh) {
		net->inside = c;
		return PL_ROCE_F_OK;
	}
	sum = pl_checksum_add(PL_IP_UDP + (uint32_t)pl_cursor_left(&c), p + 8, 32);
	return read_udp(path, net, c, sum);
}

static enum pl_roce_fault read_net(
	struct pl_roce_path *path, struct net *net, struct pl_cursor c, enum pl_link link)
{
	const uint8_t *p;
	uint16_t type;

	if (link == PL_LINK_ETHERNET) {
		enum pl_roce_fault fault = read_link(path, &c, &type);

		if (fault != PL_ROCE_F_OK)
			return fault;
	} else if (link == PL_LINK_RAW_IP) {
		p = pl_cursor_peek(&c, 1);
		if (p == NULL)
			return PL_ROCE_F_SHORT;
		type = p[0] >> 4 == 4 ? PL_ETH_IPV4 : PL_ETH_IPV6;
	} else {
		return PL_ROCE_F_NOT_ROCE;
	}
	switch (type) {
	case PL_ETH_IPV4:
		return read_ip4(path, net, c);
	case PL_ETH_IPV6:
		return read_ip6(path, net, c, false);
	case PL_ROCE_ETHERTYPE:
		return read_ip6(path, net, c, true);
	default:
		return PL_ROCE_F_NOT_ROCE;
	}
}

static void read_bth(struct pl_roce *r, const uint8_t *p)
{
	r->opcode = p[0];
	r->solicited = (p[1] & 0x80) != 0;
	r->migrated = (p[1] & 0x40) != 0;
	r->pad = p[1] >> 4 & 3;
	r->pkey = pl_be16(p + 2);
	r->notify = p[4];
	r->qpn = pl_be24(p + 5);
	r->ack_req = (p[8] & 0x80) != 0;
	r->reserved = p[8] & 0x7f;
	r->psn = pl_be24(p + 9);
}

static void read_headers(struct pl_roce *r, struct pl_cursor *c)
{
	if (r->headers & PL_ROCE_H_DETH) {
		r->qkey = pl_get_be32(c);
		pl_cursor_skip(c, 1);
		r->src_qpn = pl_get_be24(c);
	}
	if (r->headers & (PL_ROCE_H_RETH | PL_ROCE_H_ATOMIC)) {
		r->va = pl_get_be64(c);
		r->rkey = pl_get_be32(c);
	}
	if (r->headers & PL_ROCE_H_RETH)
		r->length = pl_get_be32(c);
	if (r->headers & PL_ROCE_H_ATOMIC) {
		r->swap_add = pl_get_be64(c);
		r->compare = pl_get_be64(c);
	}
	if (r->headers & PL_ROCE_H_AETH) {
		r->syndrome = pl_get_u8(c);
		r->msn = pl_get_be24(c);
	}
	if (r->headers & PL_ROCE_H_ORIGINAL)
		r->original = pl_get_be64(c);
	if (r->headers & PL_ROCE_H_IMM)
		r->imm = pl_get_be32(c);
	if (r->headers & PL_ROCE_H_IETH)
		r->rkey = pl_get_be32(c);
}

static enum pl_roce_fault read_transport(struct pl_roce *r, const struct net *net)
{
	struct pl_cursor c = net->inside;
	size_t covered = pl_cursor_left(&net->packet) - ICRC_BYTES;
	const uint8_t *bth = pl_cursor_take(&c, BTH_BYTES);
	uint32_t own;
	int headers;

	if (bth == NULL || pl_cursor_left(&c) < ICRC_BYTES)
		return PL_ROCE_F_IP_LENGTH;
	read_bth(r, bth);
	own = pl_roce_icrc(net->packet.pos, covered, net->kind);
	memcpy(&r->icrc, c.end - ICRC_BYTES, sizeof(r->icrc));
	if (r->icrc != own)
		return PL_ROCE_F_ICRC;
	if ((bth[1] & 0x0f) != 0)
		return PL_ROCE_F_TVER;
	pl_cursor_trim(&c, pl_cursor_left(&c) - ICRC_BYTES);
	headers = r->opcode == PL_ROCE_CNP ? 0 : pl_roce_headers(r->opcode);
	if (headers < 0)
		return PL_ROCE_F_OPCODE;
	r->headers = (uint8_t)headers;
	read_headers(r, &c);
	if (c.short_read)
		return PL_ROCE_F_SHORT;
	if (r->pad > pl_cursor_left(&c))
		return PL_ROCE_F_PAD;
	pl_cursor_trim(&c, pl_cursor_left(&c) - r->pad);
	r->payload = c;
	return PL_ROCE_F_OK;
}

enum pl_roce_fault pl_roce_parse(struct pl_roce *ret, struct pl_cursor frame, enum pl_link link)
{
	enum pl_roce_fault fault;
	struct net net;

	memset(ret, 0, sizeof(*ret));
	fault = read_net(&ret->path, &net, frame, link);
	return fault == PL_ROCE_F_OK ? read_transport(ret, &net) : fault;
}

/*
 * ---- writing ----
 *
 * Room for the whole frame is taken at once, then bytes are stored one behind the other: each of
 * these returns where the next one goes.
 */

static uint8_t *store(uint8_t *p, const void *bytes, size_t n)
{
	if (n > 0)
		memcpy(p, bytes, n);
	return p + n;
}

static uint8_t *store8(uint8_t *p, uint8_t v)
{
	*p = v;
	return p + 1;
}

static uint8_t *store16(uint8_t *p, uint16_t v)
{
	v = __builtin_bswap16(v);
	return store(p, &v, sizeof(v));
}

static uint8_t *store32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	return store(p, &v, sizeof(v));
}

static uint8_t *store64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	return store(p, &v, sizeof(v));
}

static uint8_t *store_link(uint8_t *p, const struct pl_roce_path *path, uint16_t type)
{
	p = store(p, path->dmac, 6);
	p = store(p, path->smac, 6);
	if (path->tagged) {
		p = store16(p, PL_ETH_VLAN);
		p = store16(p, path->tci);
	}
	return store16(p, type);
}

static uint8_t *store_ip4(uint8_t *p, const struct pl_roce_path *path, size_t inside)
{
	uint8_t *const header = p;

	p = store8(p, 0x45);
	p = store8(p, path->tos);
	p = store16(p, (uint16_t)(IP4_BYTES + UDP_BYTES + inside));
	p = store16(p, path->ip_id);
	p = store16(p, path->may_fragment ? 0 : 0x4000);
	p = store8(p, path->ttl);
	p = store8(p, PL_IP_UDP);
	p = store16(p, 0);
	p = store(p, path->src.b + 12, 4);
	p = store(p, path->dst.b + 12, 4);
	store16(header + 10, pl_checksum_fold(pl_checksum_add(0, header, IP4_BYTES)));
	return p;
}

static uint8_t *store_ip6(uint8_t *p, const struct pl_roce_path *path, size_t inside)
{
	p = store32(
		p, UINT32_C(6) << 28 | (uint32_t)path->tos << 20 | (path->flow_label & 0xfffff));
	p = store16(p, (uint16_t)(path->v1 ? inside : UDP_BYTES + inside));
	p = store8(p, path->v1 ? PL_ROCE_NEXT_HEADER : PL_IP_UDP);
	p = store8(p, path->ttl);
	p = store(p, path->src.b, 16);
	return store(p, path->dst.b, 16);
}

static uint8_t *store_udp(uint8_t *p, const struct pl_roce_path *path, size_t inside)
{
	p = store16(p, path->sport);
	p = store16(p, PL_ROCE_PORT);
	p = store16(p, (uint16_t)(UDP_BYTES + inside));
	return store16(p, 0);
}

static uint8_t *store_bth(uint8_t *p, const struct pl_roce *r, uint8_t pad)
{
	p = store8(p, r->opcode);
	p = store8(p, (uint8_t)(r->solicited << 7 | r->migrated << 6 | pad << 4));
	p = store16(p, r->pkey);
	p = store32(p, (uint32_t)r->notify << 24 | (r->qpn & PL_ROCE_PSN_MASK));
	return store32(p, (uint32_t)r->ack_req << 31 | (uint32_t)(r->reserved & 0x7f) << 24 |
				  (r->psn & PL_ROCE_PSN_MASK));
}

static uint8_t *store_headers(uint8_t *p, const struct pl_roce *r, uint8_t headers)
{
	if (headers & PL_ROCE_H_DETH) {
		p = store32(p, r->qkey);
		p = store32(p, r->src_qpn & PL_ROCE_PSN_MASK);
	}
	if (headers & (PL_ROCE_H_RETH | PL_ROCE_H_ATOMIC)) {
		p = store64(p, r->va);
		p = store32(p, r->rkey);
	}
	if (headers & PL_ROCE_H_RETH)
		p = store32(p, r->length);
	if (headers & PL_ROCE_H_ATOMIC) {
		p = store64(p, r->swap_add);
		p = store64(p, r->compare);
	}
	if (headers & PL_ROCE_H_AETH)
		p = store32(p, (uint32_t)r->syndrome << 24 | (r->msn & PL_ROCE_PSN_MASK));
	if (headers & PL_ROCE_H_ORIGINAL)
		p = store64(p, r->original);
	if (headers & PL_ROCE_H_IMM)
		p = store32(p, r->imm);
	if (headers & PL_ROCE_H_IETH)
		p = store32(p, r->rkey);
	return p;
}

static size_t headers_bytes(uint8_t headers)
{
	static const uint8_t bytes[7] = { 8, 16, 28, 4, 8, 4, 4 };
	size_t n = 0;

	for (; headers != 0; headers &= (uint8_t)(headers - 1))
		n += bytes[__builtin_ctz(headers)];
	return n;
}

void pl_roce_put(struct pl_build *b, const struct pl_roce *packet, const void *payload, size_t len)
{
	const struct pl_roce_path *path = &packet->path;
	const bool ip4 = !path->v1 && pl_addr_is_v4(&path->dst);
	const int headers = packet->opcode == PL_ROCE_CNP ? 0 : pl_roce_headers(packet->opcode);
	const uint8_t pad = -len & 3;
	const size_t link = path->tagged ? 18 : 14;
	const size_t before = (ip4 ? IP4_BYTES : IP6_BYTES) + (path->v1 ? 0 : UDP_BYTES);
	size_t inside;
	uint8_t *p, *net;
	uint32_t icrc;

	if (headers < 0 || len > PL_ROCE_PATH_MTU) {
		b->full = true;
		return;
	}
	inside = BTH_BYTES + headers_bytes((uint8_t)headers) + len + pad + ICRC_BYTES;
	p = pl_build_reserve(b, link + before + inside);
	if (p == NULL)
		return;
	p = net = store_link(p, path,
		path->v1 ? PL_ROCE_ETHERTYPE
		: ip4    ? PL_ETH_IPV4
			 : PL_ETH_IPV6);
	p = ip4 ? store_ip4(p, path, inside) : store_ip6(p, path, inside);
	if (!path->v1)
		p = store_udp(p, path, inside);
	p = store_bth(p, packet, pad);
	p = store_headers(p, packet, (uint8_t)headers);
	p = store(p, payload, len);
	p = store(p, "\0\0", pad);
	if (ip4)
		icrc = pl_roce_icrc_ip4(net, (size_t)(p - net));
	else
		icrc = pl_roce_icrc(
			net, (size_t)(p - net), path->v1 ? PL_ROCE_NET_GRH : PL_ROCE_NET_IP6);
	store(p, &icrc, sizeof(icrc));
}
