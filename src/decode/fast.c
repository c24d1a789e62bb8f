/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path for a common report: Ethernet, IPv4 and UDP (or a socket's payload), one report of
 * v1.0 or v2.0, in v2.0 also with the reporting node's metadata, an inner Ethernet frame, at most
 * one VLAN tag, IPv4 or IPv6 and UDP or TCP, an INT-MD header of v1.0 or v2.x with at least one hop
 * and nothing out of the ordinary. For any other packet it returns false before it has changed
 * anything, and the slow path (report.c, find.c) decides: that is the reference, and decode_test.c
 * and the fuzzer compare the fast path with it, record by record. Headers that were walked once are
 * known by their shape the next time (shape.h). Reports with a VLAN tag, over IPv6 or with the node's
 * own metadata are walked each time: 2.6 to 3.4 times as fast as by the slow path in the same run
 * (docs/benchmarks.md, decode-int/walked-…), which is what the walk is for.
 *
 * Each fixed part is taken by one check against the cursor; loads within it follow.
 */
#include <limits.h>

#include "decode/report.h"
#include "decode/shape.h"

#define OUTER         (14 + 20 + 8)
/* Report header, inner Ethernet, IPv4 and UDP, shim and metadata header: 12 + 42 + 16 bytes for
 * v2.0 reports of v2.x INT, 16 + 42 + 12 for v1.0 in v1.0; the least that both need, so one check
 * serves. */
#define INSIDE        (12 + 42 + 12)
#define DSCP_OF(tos)  ((uint8_t)((tos) >> 2))

/* Ethernet with IPv4 behind it: type, version and length of the header, and the bits of the
 * DSCP. */
#define ETH_IPV4_AT   12
#define ETH_IPV4      (PL_ETH_IPV4 << 16 | 0x4500)
#define ETH_IPV4_MASK 0xffffff00
#define ETH_DSCP_MASK 0x000000fc
/* Length, identification, fragment, hop limit, protocol: what makes the packet a fragment. */
#define IPV4_WORD_AT  16
#define IPV4_FRAGMENT UINT64_C(0x3fff0000)

struct usual_report {
	uint8_t version;
	const struct hop_plan *own; /* plan of the node's own metadata; NULL: there are none */
	const uint8_t *own_block;
};

/* Reads the node's own metadata, at u of the datagram (v2.0, 3.4.1): RepMdBits:16, domain id:16,
 * domain's bits and status, then the metadata, which must fill MDLength. Returns the bytes they
 * take, or 0. */
static inline unsigned int own_metadata(
	struct job *j, struct usual_report *r, const uint8_t *u, unsigned int md_words)
{
	const uint16_t bitmap = pl_be16(u);

	/* Reserved bits raise a note; bit 15 is the drop reason. */
	if (bitmap == 0 || (bitmap & ~0x7f80u) != 0)
		return 0;
	r->own = own_plan_of(j->d, bitmap);
	r->own_block = u + 8;
	return r->own == NULL || r->own->layout.words != md_words ? 0 : 8 + 4 * md_words;
}

/* The report header at u, left bytes of datagram; the size of the header, or 0. */
static inline unsigned int report_header(
	struct job *j, struct usual_report *r, const uint8_t *u, size_t left)
{
	const uint32_t w = pl_be32(u), v = pl_be32(u + 8);

	r->own = NULL;
	r->own_block = NULL;
	/* v2.0: a single report: RepType 0 or 1, InType Ethernet, to the end of the datagram, F,
	 * not I. */
	if (w >> 28 == 2 && (v & 0xef000030) == 0x03000020 &&
		((v >> 16 & 0xff) * 4 == left - 12 || (v >> 16 & 0xff) == 0xff)) {
		r->version = PL_REPORT_V20;
		if ((v & 0x10000000) != 0) {
			unsigned int md = own_metadata(j, r, u + 12, v >> 8 & 0xff);

			return md == 0 ? 0 : 12 + md;
		}
		return 12;
	}
	/* v1.0: Length 4, NProt Ethernet, no RepMdBits, F. */
	if ((w & 0xffff8040) == 0x14000040) {
		r->version = PL_REPORT_V10;
		return 16;
	}
	return 0;
}

/* The TCP or UDP header behind an Ethernet and an IPv4 header; c is cut to the packet and is behind
 * it. Returns the Ethernet header, or NULL. */
static inline const uint8_t *inner(
	const struct pl_decode *d, struct pl_cursor *c, const uint8_t **ret_l4)
{
	const uint8_t *p = c->pos;
	unsigned int total;
	uint64_t ip;

	if (pl_cursor_left(c) < 14 + 20 + 8 ||
		(pl_be32(p + ETH_IPV4_AT) & ETH_IPV4_MASK) != ETH_IPV4)
		return NULL;
	pl_cursor_skip(c, 14 + 20 + 8);
	*ret_l4 = p + 34;
	ip = pl_be64(p + IPV4_WORD_AT);
	total = (unsigned int)(ip >> 48);
	if ((ip & (IPV4_FRAGMENT | 0xff)) == PL_IP_UDP) {
		if (total < 28 || pl_be16(p + 38) + 20u != total ||
			is_tunnel_port(d, pl_be16(p + 36)) || !pl_cursor_trim(c, total - 28))
			return NULL;
		return p;
	}
	/* 20 bytes of TCP, 12 of them still before us. */
	if ((ip & (IPV4_FRAGMENT | 0xff)) != PL_IP_TCP || total < 40 ||
		!pl_cursor_trim(c, total - 28) || pl_cursor_left(c) < 12 || p[46] >> 4 != 5)
		return NULL;
	pl_cursor_skip(c, 12);
	return p;
}

/* Reads a flow that inner() does not handle: with a VLAN tag, or over IPv6. */
struct other_flow {
	struct pl_addr src, dst;
	uint16_t vlan;
	uint8_t proto;
	bool is;
};

/* The bytes behind UDP or TCP in an IP packet that announces `length` bytes for both; *c is at the
 * transport header. Returns that header, or NULL. */
static const uint8_t *other_transport(
	const struct pl_decode *d, struct pl_cursor *c, uint8_t proto, size_t length)
{
	const uint8_t *l4 = c->pos;

	if (!pl_cursor_trim(c, length))
		return NULL;
	if (proto == PL_IP_UDP) {
		if (pl_cursor_left(c) < 8 || pl_be16(l4 + 4) != length ||
			is_tunnel_port(d, pl_be16(l4 + 2)))
			return NULL;
		pl_cursor_skip(c, 8);
		return l4;
	}
	if (proto != PL_IP_TCP || pl_cursor_left(c) < 20 || l4[12] >> 4 != 5)
		return NULL;
	pl_cursor_skip(c, 20);
	return l4;
}

/* Parses the other inner headers, as inner() does. */
static __attribute__((noinline)) const uint8_t *other_inner(
	const struct pl_decode *d, struct pl_cursor *c, struct other_flow *f)
{
	const uint8_t *p = pl_cursor_take(c, 14);
	unsigned int type = p == NULL ? 0 : pl_be16(p + 12);

	*f = (struct other_flow){ .is = true };
	if (type == PL_ETH_VLAN) {
		p = pl_cursor_take(c, 4);
		if (p == NULL)
			return NULL;
		f->vlan = pl_be16(p) & 0xfff;
		type = pl_be16(p + 2);
	}
	p = c->pos;
	if (type == PL_ETH_IPV6 && pl_cursor_left(c) >= 40 && p[0] >> 4 == 6) {
		pl_cursor_skip(c, 40);
		f->src = pl_addr_v6(p + 8);
		f->dst = pl_addr_v6(p + 24);
		f->proto = p[6];
		return other_transport(d, c, f->proto, pl_be16(p + 4));
	}
	if (type != PL_ETH_IPV4 || pl_cursor_left(c) < 20 || p[0] != 0x45 ||
		(pl_be16(p + 6) & 0x3fff) != 0 || pl_be16(p + 2) < 20)
		return NULL;
	pl_cursor_skip(c, 20);
	f->src = pl_addr_v4(p + 12);
	f->dst = pl_addr_v4(p + 16);
	f->proto = p[9];
	return other_transport(d, c, f->proto, pl_be16(p + 2) - 20u);
}

/* Reads shim and metadata header at c, unless they raise a note: the stack and the original DSCP go
 * to `in`; returns the plan of its layout, or NULL. */
static inline const struct hop_plan *int_header(
	struct job *j, struct pl_int *in, struct pl_cursor *c)
{
	const uint8_t *p = c->pos;
	const struct hop_plan *plan;
	unsigned int words, header;
	uint64_t shim, key;
	uint32_t slot, bits;

	if (pl_cursor_left(c) < 12)
		return NULL;
	shim = pl_be64(p);
	bits = pl_be32(p + 8);
	key = j->profile->layout_key | (uint64_t)(bits >> 16) << 32 | (shim >> 8 & 0x1f);
	if ((shim & 0xff000000fe000000) == 0x1000000020000000) {
		/* v2.x: shim type 1, NPT 0; D, E, M are 0. A domain id changes the meaning of the
		 * words. */
		header = 16;
		words = shim >> 48 & 0xff;
		key |= (uint64_t)PL_INT_V20 << 16;
		if ((bits & 0xffff) != 0)
			return NULL;
	} else if ((shim & 0xff000000f3800000) == 0x0100000010000000) {
		/* v1.0: shim type 1; C, E and M are 0. */
		header = 12;
		words = shim >> 40 & 0xff;
		key |= (uint64_t)PL_INT_V10 << 16;
	} else {
		return NULL;
	}
	slot = pl_int_layout_place(j->d->plan_keys, key);
	plan = &j->d->plans[slot];
	/* Only layouts that the slow path has found before: their blocks have words. */
	if (j->d->plan_keys[slot] != key || !plan->usual || words < 4)
		return NULL;
	words -= 3;
	in->hops = (uint8_t)(words * plan->hops_per_word >> 16);
	if (in->hops * plan->layout.words != words ||
		pl_cursor_left(c) < header + 4 * (size_t)words)
		return NULL;
	pl_cursor_skip(c, header);
	in->dscp = DSCP_OF(shim >> 32 & 0xff);
	in->layout = &plan->layout;
	in->stack = c->pos;
	return plan;
}

/* Reads the datagram of the packet, and its sender. */
static inline bool outer(
	struct job *j, struct pl_cursor *ret_payload, struct pl_addr *ret_addr, uint16_t *ret_port)
{
	const struct pl_packet *pkt = j->pkt;
	struct pl_cursor c = pl_cursor(pkt->data, pkt->len);
	const uint8_t *p;
	uint64_t ip, udp;
	unsigned int length;

	if (pkt->link == PL_LINK_UDP) {
		*ret_payload = c;
		*ret_addr = pkt->src;
		*ret_port = pkt->sport;
		return j->d->opt.any_port || is_report_port(j->d, pkt->dport);
	}
	if (pl_cursor_left(&c) < OUTER || pkt->link != PL_LINK_ETHERNET)
		return false;
	p = c.pos;
	pl_cursor_skip(&c, OUTER);
	if ((pl_be32(p + ETH_IPV4_AT) & (ETH_IPV4_MASK | ETH_DSCP_MASK)) != ETH_IPV4)
		return false;
	ip = pl_be64(p + IPV4_WORD_AT);
	udp = pl_be64(p + 34);
	length = udp >> 16 & 0xffff;
	if ((ip & (IPV4_FRAGMENT | 0xff)) != PL_IP_UDP || length < 8 || length + 20 != ip >> 48 ||
		!is_report_port(j->d, udp >> 32 & 0xffff) || !pl_cursor_trim(&c, length - 8))
		return false;
	*ret_payload = c;
	*ret_addr = pl_addr_v4(p + 26);
	*ret_port = (uint16_t)(udp >> 48);
	return true;
}

/* The reporting node's own metadata into `hop`, the last of the path. False when the general way
 * must look: a value is missing, or the stack has the node already. */
static inline bool own_hop(struct job *j, const struct pl_path *path, struct pl_hop *hop,
	const struct usual_report *r, const struct pl_int *in)
{
	if (pl_be32(in->stack + in->layout->off[PL_INT_F_NODE]) == path->node ||
		(size_t)(r->own_block - j->pkt->data) < r->own->window_back ||
		j->d->decode_hops(hop, r->own, r->own_block, 1, path))
		return false;
	hop->node = path->node;
	hop->present |= PL_HOP_HAS_node;
	hop->index = in->hops;
	return true;
}

/* Hops of both plans have the same values. */
static inline bool alike(const struct hop_plan *stack, const struct hop_plan *own)
{
	return stack->present == (own->present | PL_HOP_HAS_node) &&
	       stack->time_bits == own->time_bits;
}

static __attribute__((noinline)) void set_other(struct pl_path *path, const struct other_flow *f)
{
	path->src = f->src;
	path->dst = f->dst;
	path->proto = f->proto;
	/* Id 0 is a priority without a VLAN. */
	path->vlan = f->vlan;
	if (f->vlan != 0)
		path->present |= PL_PATH_HAS_vlan;
}

static inline uint16_t flags_of(const uint8_t *u, uint8_t version)
{
	const unsigned int marks = version == PL_REPORT_V20 ? u[11] : pl_be16(u + 2) >> 1;

	return (uint16_t)(PL_FLAG_TRACKED | (marks >> 7 & 1) * PL_FLAG_DROPPED |
			  (marks >> 6 & 1) * PL_FLAG_CONGESTED);
}

/* Completes a report that surely is a common one: its stack, and all that follows from it. `own` is
 * the plan of the hop behind the stack's, or NULL. */
static inline __attribute__((always_inline)) void complete(struct job *j, struct pl_path *path,
	struct pl_hop *hops, const struct pl_addr *exporter, const struct number *number,
	const struct pl_int *in, const struct hop_plan *plan, const struct hop_plan *own)
{
	const unsigned int n = in->hops + (own != NULL);

	j->d->next_report_id++;
	if (__builtin_expect(!account(j, exporter, number), 0))
		set_unproven(j, path);
	/* The window of a plan lies within the packet: more headers than that are before the
	 * stack. */
	if (__builtin_expect(!j->d->decode_hops(hops, plan, in->stack, in->hops, path) &&
				     (own == NULL || alike(plan, own)),
		    1)) {
		derive_uniform(j, path, hops, n, plan->present);
	} else {
		path->present &= ~(uint32_t)(PL_PATH_HAS_path_id | PL_PATH_HAS_latency_ns);
		j->links = UINT_MAX;
		(void)hops_from_stack(j, path, hops, in, plan);
		derive(j, path, hops, n);
	}
	commit_path(j, path, n);
}

/* Decodes a packet that may have the shape. False before anything is changed when it has not, or
 * when the parts outside the shape are unusual. */
static inline bool decode_shaped(struct job *j, const struct header_shape *s)
{
	const struct pl_packet *pkt = j->pkt;
	const uint8_t *data = pkt->data, *report = data + s->at.report;
	struct pl_path *path = begin_path(j);
	struct pl_addr exporter;
	struct number number;
	struct pl_int in;

	if (!j->d->take_shape(s, data, path) ||
		(s->path.proto == PL_IP_UDP && is_tunnel_port(j->d, pl_be16(data + s->at.l4 + 2))))
		return false;
	if (pkt->link == PL_LINK_UDP) {
		if (!j->d->opt.any_port && !is_report_port(j->d, pkt->dport))
			return false;
		exporter = pkt->src;
		path->exporter = exporter;
		path->exporter_port = pkt->sport;
	} else {
		exporter = pl_addr_v4(data + SHAPE_EXPORTER);
	}
	if (__builtin_expect(j->d->opt.n_profiles != 0, 0)) {
		if (profile_of(j->d, &exporter) != s->profile)
			return false;
		j->profile = s->profile;
	}
	number = number_of(report, s->version);
	path->ts_ns = pkt->ts_ns;
	path->report_id = j->d->next_report_id;
	path->dscp = DSCP_OF(data[s->at.shim + 3]);
	path->hw_id = number.hw_id;
	path->flags = flags_of(report, s->version);
	in.stack = data + s->at.stack;
	in.hops = s->hops;
	in.layout = &s->plan->layout;
	complete(j, path, hops_of(j), &exporter, &number, &in, s->plan, NULL);
	return true;
}

/* Decodes any other common report, step by step. */
static __attribute__((noinline)) bool decode_walked(struct job *j)
{
	struct pl_cursor c;
	struct pl_addr exporter;
	uint16_t exporter_port;
	struct usual_report r;
	struct other_flow other;
	struct pl_cursor behind;
	struct usual_places at;
	struct number number;
	struct pl_int in;
	const uint8_t *start = j->pkt->data, *p, *l4;
	const struct hop_plan *plan;
	struct pl_path *path;
	struct pl_hop *hops;
	unsigned int header;

	if (!outer(j, &c, &exporter, &exporter_port))
		return false;
	if (__builtin_expect(j->d->opt.n_profiles != 0, 0))
		j->profile = profile_of(j->d, &exporter);
	if (pl_cursor_left(&c) < INSIDE || !j->profile->usual)
		return false;
	header = report_header(j, &r, c.pos, pl_cursor_left(&c));
	if (header == 0)
		return false;
	at.report = (uint16_t)(c.pos - start);
	pl_cursor_skip(&c, header);
	behind = c;
	p = inner(j->d, &c, &l4);
	other.is = false;
	if (__builtin_expect(p == NULL, 0)) {
		c = behind;
		p = l4 = other_inner(j->d, &c, &other);
		if (p == NULL)
			return false;
	}
	at.inner = (uint16_t)(p - start);
	at.l4 = (uint16_t)(l4 - start);
	at.shim = (uint16_t)(c.pos - start);
	plan = int_header(j, &in, &c);
	if (plan == NULL)
		return false;
	at.stack = (uint16_t)(in.stack - start);

	path = begin_path(j);
	hops = hops_of(j);
	*path = plan->path;
	path->ts_ns = j->pkt->ts_ns;
	path->report_id = j->d->next_report_id;
	path->exporter = exporter;
	path->exporter_port = exporter_port;
	path->report_version = r.version;
	number = number_of(start + at.report, r.version);
	path->node = number.node;
	path->seq = number.seq;
	path->hw_id = number.hw_id;
	path->flags = flags_of(start + at.report, r.version);
	if (r.own != NULL && !own_hop(j, path, &hops[in.hops], &r, &in))
		return false;

	/* From here on the packet is known to be a common report. */
	path->sport = pl_be16(l4);
	path->dport = pl_be16(l4 + 2);
	if (other.is) {
		set_other(path, &other);
	} else {
		path->src = pl_addr_v4(p + 26);
		path->dst = pl_addr_v4(p + 30);
		path->proto = p[23];
	}
	path->dscp = in.dscp;
	if (r.own == NULL && !other.is)
		shape_learn(j, path, &at, plan, in.hops);
	complete(j, path, hops, &exporter, &number, &in, plan, r.own);
	return true;
}

bool decode_usual(struct job *j)
{
	const struct header_shape *s = shape_place(j->d, j->pkt->len);

	return (__builtin_expect(shape_may_be(s, j->d, j->pkt), 1) && decode_shaped(j, s)) ||
	       decode_walked(j);
}
