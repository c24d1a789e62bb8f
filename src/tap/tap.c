/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes records of packets. */
#include "tap/tap.h"

#include <stddef.h>
#include <string.h>

#include "base/prefetch.h"
#include "record/flow_hash.h"
#include "tap/dns.h"
#include "wire/layers.h"

#define AHEAD 4 /* packets whose headers are prefetched */

enum { OPTION_END = 0, OPTION_NOP = 1, OPTION_MSS = 2, OPTION_TIMESTAMPS = 8, OPTION_OTHER = 15 };

static uint16_t saturated(uint32_t v)
{
	return v < UINT16_MAX ? (uint16_t)v : UINT16_MAX;
}

/* Reads TCP options (RFC 9293 3.1, RFC 7323 3.2). Returns false at an option of wrong length; the
 * options before it stay. */
static bool read_options(struct pl_cursor c, struct pl_pkt96 *r)
{
	while (pl_cursor_left(&c) > 0) {
		const uint8_t kind = pl_get_u8(&c);
		struct pl_cursor body;
		uint8_t length;

		r->tcp_opts |= (uint16_t)(1u << (kind < OPTION_OTHER ? kind : OPTION_OTHER));
		if (kind == OPTION_END)
			return true;
		if (kind == OPTION_NOP)
			continue;
		length = pl_get_u8(&c);
		if (length < 2)
			return false;
		body = pl_cursor_split(&c, length - 2u);
		if (body.short_read)
			return false;
		if (kind == OPTION_MSS && length == 4) {
			r->mss = pl_get_be16(&body);
		} else if (kind == OPTION_TIMESTAMPS && length == 10) {
			r->tsval = pl_get_be32(&body);
			r->tsecr = pl_get_be32(&body);
		} else if (kind == OPTION_MSS || kind == OPTION_TIMESTAMPS) {
			return false;
		}
	}
	return true;
}

/* Reads the 12 bytes of options that nearly every segment of a connection with timestamps has (RFC
 * 7323, appendix A): NOP, NOP, timestamps. Same result as read_options. */
static bool read_usual_options(const struct pl_cursor *c, struct pl_pkt96 *r)
{
	const uint8_t *p = pl_cursor_peek(c, 12);

	if (p == NULL || pl_be32(p) != 0x0101080a)
		return false;
	r->tcp_opts = 1u << OPTION_NOP | 1u << OPTION_TIMESTAMPS;
	r->tsval = pl_be32(p + 4);
	r->tsecr = pl_be32(p + 8);
	return true;
}

/* Reads the TCP header. Returns its length, or 0: fewer than 20 bytes are there. */
static uint32_t read_tcp(struct pl_tap *tap, const struct pl_layers *l, struct pl_pkt96 *r)
{
	struct pl_cursor c = l->transport;
	const uint8_t *p = pl_cursor_take(&c, 20);
	uint32_t length;

	if (p == NULL)
		return 0;
	r->tcp_seq = pl_be32(p + 4);
	r->tcp_ack = pl_be32(p + 8);
	r->tcp_flags = p[13];
	r->tcp_win = pl_be16(p + 14);
	length = (uint32_t)(p[12] >> 4) * 4;
	if (length == 20 || (length == 32 && read_usual_options(&c, r)))
		return length;
	if (pl_cursor_left(&c) < length - 20)
		r->obs |= PL_OBS_TRUNCATED;
	else
		(void)pl_cursor_trim(&c, length - 20);
	if (!read_options(c, r) && (r->obs & PL_OBS_TRUNCATED) == 0)
		tap->stats.bad_options++;
	return length;
}

static void set_fragment(struct pl_pkt96 *r, uint32_t id, uint16_t offset, bool more)
{
	r->ip_id = (uint16_t)id;
	r->frag_off = (uint16_t)(offset | (more ? 0x8000 : 0));
}

static bool is_extension(uint8_t type)
{
	return type == PL_IP_HOPOPTS || type == PL_IP_ROUTING || type == PL_IP_FRAGMENT ||
	       type == PL_IP_DSTOPTS || type == PL_IP_AH;
}

/* Reads the fragment header among the extension headers, which the walk has checked. An atomic
 * fragment (RFC 6946) is a fragment too. */
static void read_fragment6(const struct pl_layers *l, struct pl_pkt96 *r)
{
	struct pl_cursor c = { l->network + 40,
		(l->flags & PL_LAYERS_NO_L4) != 0 ? l->payload.end : l->transport.pos, false };
	uint8_t next = l->network[6];

	for (int i = 0; i < PL_IP6_EXT_MAX; i++) {
		const uint8_t *p = pl_cursor_peek(&c, 8);
		const uint8_t type = next;

		if (p == NULL || !is_extension(type))
			return;
		if (type == PL_IP_FRAGMENT) {
			set_fragment(r, pl_be32(p + 4), pl_be16(p + 2) >> 3, (p[3] & 1) != 0);
			r->obs |= PL_OBS_FRAGMENT;
			return;
		}
		next = p[0];
		pl_cursor_skip(&c, type == PL_IP_AH ? (p[1] + 2u) * 4 : (p[1] + 1u) * 8);
	}
}

static void read_fragment(const struct pl_layers *l, struct pl_pkt96 *r)
{
	const uint8_t *p = l->network;
	uint16_t word;

	if (l->ip_version == 6) {
		read_fragment6(l, r);
		return;
	}
	word = pl_be16(p + 6);
	set_fragment(r, pl_be16(p + 4), word & 0x1fff, (word & 0x2000) != 0);
	if (r->frag_off != 0)
		r->obs |= PL_OBS_FRAGMENT;
}

static uint32_t network_length(const struct pl_layers *l, const struct pl_packet *pkt)
{
	const uint8_t *p = l->network;
	uint32_t length = l->ip_version == 4 ? pl_be16(p + 2) : 40u + pl_be16(p + 4);

	/* The length field is not the frame's length when the frame stands for several packets, and
	 * is 0 when the frame is too long for it (BIG TCP). */
	if (pkt->gso > PL_GSO_NONE || length == (l->ip_version == 4 ? 0 : 40))
		length = pkt->wire_len - (uint32_t)(p - pkt->data);
	return length;
}

static void read_transport(
	struct pl_tap *tap, const struct pl_layers *l, struct pl_pkt96 *r, uint32_t network_bytes)
{
	const uint32_t before = (uint32_t)(l->transport.pos - l->network);
	uint32_t header = (uint32_t)(l->payload.pos - l->transport.pos), length;

	length = network_bytes > before ? network_bytes - before : 0;
	if ((l->flags & PL_LAYERS_NO_L4) != 0)
		r->obs |= PL_OBS_TRUNCATED;
	if ((l->flags & (PL_LAYERS_NO_L4 | PL_LAYERS_FRAGMENT)) == 0) {
		if (r->proto == PL_IP_TCP)
			header = read_tcp(tap, l, r);
		else if (r->proto == PL_IP_UDP && (r->frag_off & 0x8000) == 0)
			length = pl_be16(l->transport.pos + 4);
	}
	r->pay_len = saturated(length > header ? length - header : 0);
}

/* Returns the VLAN id of the outer tag; the walk has that of the inner one. */
static uint16_t outer_vlan(const struct pl_packet *pkt, const struct pl_layers *l)
{
	if (pkt->link == PL_LINK_ETHERNET && pkt->len >= 16) {
		const uint16_t type = pl_be16(pkt->data + 12);

		if (pl_eth_is_tag(type))
			return pl_be16(pkt->data + 14) & 0xfff;
		return 0;
	}
	return (l->flow.have & PL_FLOW_VLAN) != 0 ? l->flow.vlan : 0;
}

/* Replaces *l by the layers within the tunnels, as far as these are known and whole. */
static void go_inside(const struct pl_tap *tap, struct pl_layers *l, struct pl_pkt96 *r)
{
	const uint64_t vxlan_ports = tap->vxlan_ports != 0 ? tap->vxlan_ports : PL_VXLAN_PORTS;

	for (int i = 0; i < PL_NESTING_MAX; i++) {
		struct pl_tunnel tunnel;
		struct pl_layers inner;

		if ((l->flags & (PL_LAYERS_FRAGMENT | PL_LAYERS_NO_L4)) != 0 ||
			pl_tunnel_open(&tunnel, l, vxlan_ports) != PL_V_OK ||
			tunnel.kind == PL_TUNNEL_NONE || tunnel.inner_link == PL_LINK_UNKNOWN ||
			pl_layers_walk(&inner, tunnel.inner, tunnel.inner_link, true) != PL_V_OK)
			return;
		if (i == 0 && tunnel.have_vni)
			r->label = (uint16_t)tunnel.vni;
		r->obs |= PL_OBS_TUNNEL;
		*l = inner;
	}
}

/* Makes the record of a packet. *ret_length: bytes from the IP header on, also above 65535. */
static bool make_record(struct pl_tap *tap, const struct pl_packet *pkt, struct pl_pkt96 *r,
	struct pl_layers *ret, uint32_t *ret_length)
{
	struct pl_layers l;
	enum pl_verdict v =
		pl_layers_walk(&l, pl_cursor(pkt->data, pkt->len), (enum pl_link)pkt->link, true);
	uint32_t length;

	if (pkt->gso > PL_GSO_NONE && l.network != NULL &&
		pl_tap_head_find(&tap->frame.head, pkt, l.network)) {
		pkt = &tap->frame.head.packet;
		v = pl_layers_walk(
			&l, pl_cursor(pkt->data, pkt->len), (enum pl_link)pkt->link, true);
	}
	if (__builtin_expect(v != PL_V_OK, 0)) {
		if (v == PL_V_LINK_UNKNOWN)
			tap->unread = 1u + pkt->sport;
		if (v == PL_V_ETHERTYPE_UNKNOWN || v == PL_V_LINK_UNKNOWN)
			tap->stats.not_ip++;
		else
			tap->stats.broken++;
		return false;
	}
	memset(r, 0, sizeof(*r));
	r->obs = tap->point;
	if (pkt->out)
		r->obs |= PL_OBS_OUT;
	r->vlan = outer_vlan(pkt, &l);
	if ((l.flags & PL_LAYERS_MPLS) != 0)
		r->label = (uint16_t)l.label;
	if (tap->inner)
		go_inside(tap, &l, r);
	r->ts_ns = pkt->ts_ns;
	r->src = l.flow.src;
	r->dst = l.flow.dst;
	if ((l.flow.have & PL_FLOW_PORTS) != 0) {
		r->sport = l.flow.sport;
		r->dport = l.flow.dport;
	}
	r->proto = l.flow.proto;
	r->ttl = l.ttl;
	r->tos = (uint8_t)(l.flow.dscp << 2 | l.ecn);
	length = network_length(&l, pkt);
	r->wire_len = saturated(length);
	read_fragment(&l, r);
	read_transport(tap, &l, r, length);
	r->flow_hash = pl_flow_hash_packet(r);
	*ret = l;
	*ret_length = length;
	return true;
}

static bool ruled(struct pl_tap *tap, struct pl_pkt96 *r, struct pl_cursor payload)
{
	const uint64_t before = tap->rules.overweight, unseen = tap->rules.unseen;
	const enum pl_tap_ruling ruling = pl_tap_rules_apply_to(&tap->rules, r, payload);

	tap->stats.overweight += tap->rules.overweight - before;
	tap->stats.unseen += tap->rules.unseen - unseen;
	switch (ruling) {
	case PL_TAP_RULED_SKIP:
		tap->stats.skipped++;
		return false;
	case PL_TAP_RULED_NOT_SAMPLED:
		tap->stats.not_sampled++;
		return false;
	case PL_TAP_RULED_TAKE:
		break;
	}
	return true;
}

/* Makes the record of a DNS message. payload: of the record's packet, as far as it was captured. */
static void see_dns(struct pl_tap *tap, const struct pl_layers *l, const struct pl_pkt96 *r,
	struct pl_cursor payload)
{
	if (r->proto != PL_IP_UDP || (r->sport != PL_DNS_PORT && r->dport != PL_DNS_PORT) ||
		(l->flags & PL_LAYERS_NO_L4) != 0 || (r->frag_off & 0x1fff) != 0)
		return;
	if (pl_dns_read(&tap->dns[tap->n_dns], r, payload)) {
		tap->n_dns++;
		tap->stats.dns++;
	} else {
		tap->stats.dns_broken++;
	}
}

void pl_tap_count_clock(struct pl_tap_stats *stats, enum pl_clock_kind clock, uint64_t records)
{
	uint64_t *const counters[PL_STAMP_KINDS] = { [PL_STAMP_NONE] = &stats->clock_none,
		[PL_STAMP_CAPTURE] = &stats->clock_capture,
		[PL_STAMP_READING] = &stats->clock_reading,
		[PL_STAMP_KERNEL] = &stats->clock_kernel,
		[PL_STAMP_TAI] = &stats->clock_tai,
		[PL_STAMP_NIC] = &stats->clock_nic,
		[PL_STAMP_SENDER] = &stats->clock_sender,
		[PL_STAMP_MIXED] = &stats->clock_mixed };

	*counters[clock] += records;
}

/* Counts records by the clock of their times, n[] of each; sets tap->clock, mixed when there are
 * several. */
static void note_clocks(struct pl_tap *tap, const uint32_t n[PL_STAMP_KINDS])
{
	uint32_t kinds = 0;

	for (unsigned int kind = 0; kind < PL_STAMP_KINDS; kind++) {
		if (n[kind] == 0)
			continue;
		kinds |= 1u << kind;
		pl_tap_count_clock(&tap->stats, (enum pl_clock_kind)kind, n[kind]);
	}
	if (kinds != 0)
		tap->clock = pl_clock_of(kinds);
}

/* Applies rules to the record of a packet, and checks for DNS; returns whether the record is
 * kept. */
static inline bool finish(
	struct pl_tap *tap, const struct pl_layers *l, struct pl_pkt96 *r, struct pl_cursor payload)
{
	if (tap->rules.n > 0 && !ruled(tap, r, payload))
		return false;
	if (tap->dns != NULL)
		see_dns(tap, l, r, payload);
	r->record_seq = tap->seq++;
	return true;
}

/* ---- frames that stand for several packets ---- */

/* Returns the part of the frame's payload that packet i has. */
static struct pl_cursor payload_of(
	const struct pl_tap_joined *j, uint32_t i, const struct pl_layers *l)
{
	struct pl_cursor c = l->payload;

	pl_cursor_skip(&c, (size_t)i * j->each);
	(void)pl_cursor_trim(&c, j->each);
	return c;
}

/* Makes records of the present frame's packets, as many as there is room for; returns how many. */
static uint32_t take_joined(struct pl_tap *tap, struct pl_pkt96 *ret, uint32_t room)
{
	struct pl_tap_frame *f = &tap->frame;
	uint32_t n = 0;

	for (; n < room && f->at < f->joined.n; f->at++) {
		ret[n] = f->record;
		pl_tap_joined_packet(&f->joined, f->at, &ret[n]);
		tap->stats.packets++;
		n += finish(tap, &f->layers, &ret[n], payload_of(&f->joined, f->at, &f->layers));
	}
	return n;
}

/* Begins the packets of the frame with record r; returns false when it stays one record. */
static __attribute__((noinline)) bool begin_joined(struct pl_tap *tap, const struct pl_packet *pkt,
	const struct pl_layers *l, const struct pl_pkt96 *r, uint32_t length)
{
	const uint64_t vxlan_ports = tap->vxlan_ports != 0 ? tap->vxlan_ports : PL_VXLAN_PORTS;
	struct pl_tap_frame *f = &tap->frame;

	if (pkt->gso == PL_GSO_OTHER ||
		!pl_tap_joined_find(&f->joined, pkt, l, r, length, vxlan_ports)) {
		tap->stats.joined++;
		f->joined.n = 1;
	}
	f->at = f->joined.n == 1;
	f->record = *r;
	f->layers = *l;
	return f->at < f->joined.n;
}

/* ---- batches ---- */

uint32_t pl_tap_batch(
	struct pl_tap *tap, const struct pl_batch *batch, struct pl_pkt96 *ret, uint32_t room)
{
	struct pl_tap_frame *f = &tap->frame;
	uint32_t clocks[PL_STAMP_KINDS] = { 0 };
	uint32_t n = 0, at = tap->at, packets = 0, length;
	struct pl_layers layers;

	tap->n_dns = 0;
	while (n < room && at < batch->n) {
		const struct pl_packet *pkt = &batch->pkts[at];
		const uint64_t options = tap->stats.bad_options;
		struct pl_pkt96 *r = &ret[n];

		if (f->at < f->joined.n) {
			const uint32_t some = take_joined(tap, r, room - n);

			clocks[pkt->clock % PL_STAMP_KINDS] += some;
			n += some;
			at += f->at == f->joined.n;
			continue;
		}
		if (at + AHEAD < batch->n)
			pl_prefetch(batch->pkts[at + AHEAD].data);
		if (!make_record(tap, pkt, r, &layers, &length)) {
			tap->stats.joined += pkt->gso > PL_GSO_NONE;
			at++;
			packets++;
			continue;
		}
		if (__builtin_expect(pkt->gso > PL_GSO_NONE, 0) &&
			begin_joined(tap, pkt, &layers, r, length)) {
			tap->stats.bad_options +=
				(tap->stats.bad_options - options) * (f->joined.n - 1);
			continue;
		}
		if (pkt->gso == PL_GSO_UNTOLD && length > PL_TAP_WIRE_MOST &&
			pkt->wire_len > PL_TAP_WIRE_MOST)
			tap->stats.joined++;
		at++;
		packets++;
		if (!finish(tap, &layers, r, layers.payload))
			continue;
		clocks[pkt->clock % PL_STAMP_KINDS]++;
		n++;
	}
	note_clocks(tap, clocks);
	tap->stats.packets += packets;
	tap->stats.records += n;
	if (tap->rules.n == 0)
		tap->rules.hits[PL_TAP_RULES_MAX] += n;
	tap->more = at < batch->n;
	tap->at = tap->more ? at : 0;
	return n;
}

uint32_t pl_tap_rule(
	struct pl_tap *tap, struct pl_pkt96 *records, uint32_t n, enum pl_clock_kind clock)
{
	uint32_t kept = n;

	if (tap->rules.n == 0) {
		tap->rules.hits[PL_TAP_RULES_MAX] += n;
	} else {
		kept = 0;
		for (uint32_t i = 0; i < n; i++) {
			if (ruled(tap, &records[i], pl_cursor(NULL, 0)))
				records[kept++] = records[i];
		}
	}
	tap->clock = clock;
	tap->stats.packets += n;
	tap->stats.records += kept;
	pl_tap_count_clock(&tap->stats, clock, kept);
	return kept;
}

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_tap_stats, __VA_ARGS__)
#include "tap/tap_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_tap_stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };
