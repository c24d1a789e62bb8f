/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The usual report, straight through: Ethernet, IPv4 and UDP (or a socket's payload), one report of v1.0 or
 * v2.0 without metadata of its own, an inner Ethernet frame with IPv4 and UDP or TCP, an INT-MD header of v1.0
 * or v2.x with at least one hop and nothing out of the ordinary. Whatever else a packet is, this says false
 * before it has changed anything, and the general way (report.c, find.c) decides: that way is the definition,
 * and decode_test.c and the fuzzer hold this one against it, record by record.
 *
 * Each fixed part is taken by one check against the cursor; loads within it follow.
 */
#include "decode/report.h"

#define OUTER        (14 + 20 + 8)
/* Report header, inner Ethernet, IPv4 and UDP, shim and metadata header: 12 + 42 + 16 bytes for v2.0 reports
 * of v2.x INT, 16 + 42 + 12 for v1.0 in v1.0; the least that both need, so one check serves. */
#define INSIDE       (12 + 42 + 12)
#define TCP_WORDS    5
#define DSCP_OF(tos) ((uint8_t)((tos) >> 2))

/* A packet of the usual kind as far as IPv4: Ethernet, no tag, no options, no fragment. p is at the frame. */
static inline bool usual_ipv4(const uint8_t *p)
{
	return (pl_be32(p + 12) & 0xffffff00) == (PL_ETH_IPV4 << 16 | 0x4500) &&
	       (pl_be16(p + 20) & 0x3fff) == 0;
}

/* The report header at u, left bytes of datagram; the size of the header, or 0. */
static inline size_t report_header(struct pl_report *r, const uint8_t *u, size_t left)
{
	uint32_t w = pl_be32(u);

	r->node = pl_be32(u + 4);
	/* v1.0: Length 4, NProt Ethernet, no RepMdBits, F. */
	if ((w & 0xffff8040) == 0x14000040) {
		r->version = PL_REPORT_V10;
		r->dropped = w >> 8 & 1;
		r->congested = w >> 7 & 1;
		r->hw_id = w & 0x3f;
		r->seq = pl_be32(u + 8);
		return 16;
	}
	/* v2.0: a group of one: RepType 0, InType Ethernet, to the end of the datagram, F, not I. */
	if (w >> 28 == 2 && u[8] == 0x03 && (u[11] & 0x30) == 0x20 &&
		(4 * (size_t)u[9] == left - 12 || u[9] == 0xff)) {
		r->version = PL_REPORT_V20;
		r->dropped = u[11] >> 7;
		r->congested = u[11] >> 6 & 1;
		r->hw_id = w >> 22 & 0x3f;
		r->seq = w & 0x3fffff;
		return 12;
	}
	return 0;
}

/* Shim and metadata header at c. Only what raises no note. */
static inline bool int_header(struct job *j, struct pl_int *in, struct pl_cursor *c)
{
	const uint8_t *p = pl_cursor_peek(c, 12);
	unsigned int words;
	size_t header;
	uint64_t key;
	uint32_t slot;

	if (p == NULL)
		return false;
	/* v2.x: shim type 1, NPT 0; D, E, M are 0. v1.0: shim type 1; C, E and M are 0. */
	if (p[0] == 0x10 && (p[4] & 0xfe) == 0x20) {
		header = 16;
		words = p[1];
		in->version = PL_INT_V20;
	} else if (p[0] == 0x01 && (p[4] & 0xf3) == 0x10 && p[5] < 0x80) {
		header = 12;
		words = p[2];
		in->version = PL_INT_V10;
	} else {
		return false;
	}
	in->hop_words = p[6] & 0x1f;
	in->bitmap = pl_be16(p + 8);
	in->dscp = DSCP_OF(p[3]);
	key = pl_int_layout_key(in->version, in->bitmap, in->hop_words, false,
		j->profile->hints.dialect, &j->profile->hints);
	slot = pl_int_layout_slot(key);
	/* Only layouts the general way has found before: then hop_words is one that fits, and not 0. */
	if (j->d->cache.key[slot] != key || words < 4)
		return false;
	words -= 3;
	in->layout = &j->d->cache.layout[slot];
	in->hops = (uint8_t)(words / in->hop_words);
	if (in->hops * in->hop_words != words)
		return false;
	if (in->version == PL_INT_V20) {
		/* Reserved instruction bits raise a note; a domain id changes what the words mean. */
		if ((in->bitmap & 0x007e) != 0 || pl_cursor_left(c) < 16 || pl_be16(p + 10) != 0)
			return false;
	} else if ((in->bitmap & 0x00fe) != 0 || in->layout->dialect == PL_DIALECT_GEANT) {
		return false;
	}
	pl_cursor_skip(c, header);
	in->stack = pl_cursor_take(c, 4 * (size_t)words);
	return in->stack != NULL;
}

/* The datagram of the packet and who sent it. */
static inline bool outer(
	struct job *j, struct pl_cursor *ret_payload, struct pl_addr *ret_addr, uint16_t *ret_port)
{
	const struct pl_packet *pkt = j->pkt;
	struct pl_cursor c = pl_cursor(pkt->data, pkt->len);
	const uint8_t *p;
	unsigned int length;

	if (pkt->link == PL_LINK_UDP) {
		*ret_payload = c;
		*ret_addr = pkt->src;
		*ret_port = pkt->sport;
		return j->d->opt.any_port || is_report_port(j->d, pkt->dport);
	}
	p = pl_cursor_take(&c, OUTER);
	if (p == NULL || pkt->link != PL_LINK_ETHERNET || !usual_ipv4(p) || p[23] != PL_IP_UDP ||
		DSCP_OF(p[15]) != 0 || !is_report_port(j->d, pl_be16(p + 36)))
		return false;
	length = pl_be16(p + 38);
	if (length < 8 || length + 20 != pl_be16(p + 16) || !pl_cursor_trim(&c, length - 8))
		return false;
	*ret_payload = c;
	*ret_addr = pl_addr_v4(p + 26);
	*ret_port = pl_be16(p + 34);
	return true;
}

bool decode_usual(struct job *j)
{
	struct pl_cursor c;
	struct pl_addr exporter;
	uint16_t exporter_port;
	struct pl_report r;
	struct pl_int in;
	const uint8_t *p, *l4;
	const struct hop_plan *plan;
	struct pl_path *path;
	struct pl_hop *hops;
	unsigned int total, n;

	if (!outer(j, &c, &exporter, &exporter_port))
		return false;
	j->profile = j->d->opt.n_profiles == 0 ? j->d->profiles : profile_of(j->d, &exporter);
	p = pl_cursor_peek(&c, INSIDE);
	if (p == NULL || !j->profile->usual)
		return false;
	total = (unsigned int)report_header(&r, p, pl_cursor_left(&c));
	if (total == 0)
		return false;
	pl_cursor_skip(&c, total);

	p = pl_cursor_take(&c, 14 + 20);
	if (p == NULL || !usual_ipv4(p))
		return false;
	total = pl_be16(p + 16);
	if (p[23] == PL_IP_UDP) {
		l4 = pl_cursor_take(&c, 8);
		if (l4 == NULL || total < 28 || pl_be16(l4 + 4) + 20u != total ||
			!pl_cursor_trim(&c, total - 28))
			return false;
	} else if (p[23] == PL_IP_TCP) {
		l4 = pl_cursor_take(&c, 4 * TCP_WORDS);
		if (l4 == NULL || l4[12] >> 4 != TCP_WORDS || total < 40 ||
			!pl_cursor_trim(&c, total - 40))
			return false;
	} else {
		return false;
	}
	if (!int_header(j, &in, &c))
		return false;
	plan = plan_of(j->d, in.layout);
	if ((plan->present & PL_HOP_HAS_node) == 0)
		return false;

	/* From here on it is this kind of packet. */
	account(j, &exporter, r.node, r.hw_id, r.seq, r.version);
	j->reports = 1;
	n = in.hops;
	path = begin_path(j);
	hops = hops_of(j);
	*path = (struct pl_path){
		.ts_ns = j->pkt->ts_ns,
		.exporter = exporter,
		.exporter_port = exporter_port,
		.report_version = r.version,
		.dialect = in.layout->dialect,
		.mode = PL_MODE_MD,
		.hw_id = r.hw_id,
		.seq = r.seq,
		.flags = (uint16_t)(PL_FLAG_TRACKED | (r.dropped ? PL_FLAG_DROPPED : 0) |
				    (r.congested ? PL_FLAG_CONGESTED : 0)),
		.int_version = in.version,
		.record_version = PL_RECORD_VERSION,
		.node = r.node,
		.src = pl_addr_v4(p + 26),
		.dst = pl_addr_v4(p + 30),
		.sport = pl_be16(l4),
		.dport = pl_be16(l4 + 2),
		.proto = p[23],
		.dscp = in.dscp,
		.present = PL_PATH_HAS_exporter | PL_PATH_HAS_exporter_port |
			   PL_PATH_HAS_report_version | PL_PATH_HAS_dialect | PL_PATH_HAS_hw_id |
			   PL_PATH_HAS_seq | PL_PATH_HAS_node | PL_PATH_HAS_src | PL_PATH_HAS_sport,
		.report_id = j->d->next_report_id++,
	};
	if (hops_from_stack(j, path, hops, &in, plan))
		derive_uniform(j, path, hops, n, plan->present);
	else
		derive(j, path, hops, n);
	commit_path(j, path, n);
	return true;
}
