/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that a node itself sends: ARP, neighbour discovery, echo, ICMP errors. */
#include "dataplane/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/hash.h"
#include "base/num.h"
#include "dataplane/field.h"
#include "dataplane/parse.h"
#include "dataplane/pipeline_state.h"
#include "dataplane/quote.h"
#include "dataplane/rewrite.h"
#include "dataplane/telemetry/act.h"
#include "wire/layers.h"

#define SECOND      UINT64_C(1000000000)
#define SLOTS       4096 /* twice the addresses that all ports can have */
#define MACS        12
#define ETHERNET    14 /* without tags */
#define TTL_USUAL   64
#define TTL_ND      255
#define ARP_TYPE    0x0806
#define ARP_BYTES   28
#define QUOTE_V4    (576 - 28)  /* most bytes of a packet quoted in an error (RFC 1812 4.3.2.3) */
#define QUOTE_V6    (1280 - 48) /* likewise (RFC 4443 2.4c) */
#define DSCP_ERROR  48          /* internetwork control (RFC 1812 4.3.2.5) */
#define ALL_NODES   UINT64_C(0x333300000001)
#define GROUP_BIT   (UINT64_C(1) << 40)
#define SOLICITED   0xe0 /* R, S, O of a neighbour advertisement */
#define UNSOLICITED 0xa0

enum {
	ECHO_REPLY_V4 = 0,
	UNREACHABLE_V4 = 3,
	ECHO_V4 = 8,
	TIME_EXCEEDED_V4 = 11,
	UNREACHABLE_V6 = 1,
	TOO_BIG_V6 = 2,
	TIME_EXCEEDED_V6 = 3,
	ECHO_V6 = 128,
	ECHO_REPLY_V6 = 129,
	SOLICITATION = 135,
	ADVERTISEMENT = 136,
	REDIRECT = 137,
};

enum count {
	ARP,
	ND,
	ECHO,
	TIME_EXCEEDED,
	TOO_BIG,
	UNREACHABLE,
	HELD,
	REFUSED,
	NO_ADDRESS,
	NO_PACKET,
	COUNTS,
};

struct own_port {
	struct pl_addr addresses[PL_DP_ADDRESSES_MAX];
	unsigned int n;
	uint32_t per_second; /* ICMP errors allowed */
	uint64_t next_ns;    /* earliest time of the next error; up to a second back */
};

struct pl_dp_own {
	struct pl_dp_pipeline *p;
	struct own_port ports[PL_DP_PORTS_MAX + 1];
	uint64_t (*counts[COUNTS])[2];
	struct pl_addr any[2];       /* first IPv4 address, first IPv6 address */
	struct pl_addr slots[SLOTS]; /* hash table of all addresses; zero: free */
};

/* ---- addresses ---- */

int pl_dp_own_new(struct pl_dp_own **ret, struct pl_dp_pipeline *p, struct pl_diag *diag)
{
	static const char *const names[COUNTS] = { "arp", "nd", "echo", "time_exceeded", "too_big",
		"unreachable", "held", "refused", "no_address", "no_packet" };
	struct pl_dp_own *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return -ENOMEM;
	o->p = p;
	for (unsigned int i = 0; i <= PL_DP_PORTS_MAX; i++)
		o->ports[i].per_second = PL_DP_ICMP_USUAL;
	for (unsigned int i = 0; i < COUNTS; i++) {
		o->counts[i] = pl_dp_act_counter(p, "own", names[i], diag);
		if (o->counts[i] == NULL) {
			free(o);
			return -EINVAL;
		}
	}
	*ret = o;
	return 0;
}

void pl_dp_own_free(struct pl_dp_own *own)
{
	free(own);
}

/* Returns the slot that has the address, or a free one for it. */
static struct pl_addr *slot_of(struct pl_dp_own *o, const struct pl_addr *a)
{
	uint32_t i = (uint32_t)pl_hash(a->b, sizeof(a->b), o->p->seed) % SLOTS;

	while (!pl_addr_is_unspecified(&o->slots[i]) &&
		memcmp(o->slots[i].b, a->b, sizeof(a->b)) != 0)
		i = (i + 1) % SLOTS;
	return &o->slots[i];
}

static bool is_own(struct pl_dp_own *o, const struct pl_addr *a)
{
	return !pl_addr_is_unspecified(a) && !pl_addr_is_unspecified(slot_of(o, a));
}

/* Returns true for one host's address: not a group's, broadcast, 0 or loopback (RFC 1812 5.3.7). */
static bool is_host(const struct pl_addr *a)
{
	static const struct pl_addr loopback = { .b = { [15] = 1 } };
	const uint8_t first = a->b[12];

	if (pl_addr_is_v4(a))
		return first != 0 && first != 127 && first < 224;
	return a->b[0] != 0xff && !pl_addr_is_unspecified(a) &&
	       memcmp(a->b, loopback.b, sizeof(a->b)) != 0;
}

int pl_dp_own_add(
	struct pl_dp_own *own, unsigned int port, const char *address, struct pl_diag *diag)
{
	struct own_port *at = &own->ports[port];
	struct pl_addr a;

	if (pl_parse_addr(address, &a) < 0 || !is_host(&a)) {
		pl_diag_set(diag, "\"%s\" is not an address that a port can have, such as 10.0.1.1",
			address);
		return -EINVAL;
	}
	if (at->n == PL_DP_ADDRESSES_MAX) {
		pl_diag_set(diag, "a port has %d addresses at most", PL_DP_ADDRESSES_MAX);
		return -EINVAL;
	}
	at->addresses[at->n++] = a;
	*slot_of(own, &a) = a;
	if (pl_addr_is_unspecified(&own->any[!pl_addr_is_v4(&a)]))
		own->any[!pl_addr_is_v4(&a)] = a;
	return 0;
}

void pl_dp_own_rate(struct pl_dp_own *own, unsigned int port, uint32_t per_second)
{
	own->ports[port].per_second = per_second;
}

static bool port_has(const struct own_port *port, const struct pl_addr *a)
{
	for (unsigned int i = 0; i < port->n; i++) {
		if (memcmp(port->addresses[i].b, a->b, sizeof(a->b)) == 0)
			return true;
	}
	return false;
}

static struct pl_addr address_at(const struct pl_dp_packet *pkt, const uint8_t *ip, bool dst)
{
	if (pkt->headers.ip_version == 4)
		return pl_addr_v4(ip + (dst ? 16 : 12));
	return pl_addr_v6(ip + (dst ? 24 : 8));
}

static struct pl_addr address_of(const struct pl_dp_packet *pkt, bool dst)
{
	return address_at(pkt, pkt->data + pkt->headers.l3, dst);
}

/* Returns true for an address of the packet's IP version: in IPv6, ::ffff:0:0/96 represents IPv4
 * addresses here, and is no host's on the wire (RFC 4291 2.5.5.2). */
static bool of_version(const struct pl_dp_packet *pkt, const struct pl_addr *a)
{
	return pl_addr_is_v4(a) == (pkt->headers.ip_version == 4);
}

/* Returns true when the source of a packet is a host that can get an answer. */
static bool can_hear(struct pl_dp_own *o, const struct pl_dp_packet *pkt, const struct pl_addr *src)
{
	return is_host(src) && of_version(pkt, src) && !is_own(o, src);
}

static bool from_host(struct pl_dp_own *o, const struct pl_dp_packet *pkt)
{
	const struct pl_addr src = address_of(pkt, false);

	return can_hear(o, pkt, &src);
}

/* ---- sending ---- */

static void say(struct pl_dp_own *o, struct pl_dp_packet *answer, uint64_t to,
	const struct pl_dp_packet *pkt, enum count what, const struct pl_dp_call *call)
{
	if (answer == NULL) {
		pl_dp_act_count(o->counts[NO_PACKET], pkt);
		return;
	}
	pl_dp_mac_set(answer->data, to);
	pl_dp_mac_set(answer->data + 6, o->p->gates[pkt->in_port].mac);
	answer->from_mac = 0;
	answer->queue = 0;
	pl_dp_act_count(o->counts[what], answer);
	pl_dp_emit(call, answer, pkt->in_port);
}

/* ---- ARP ---- */

/* HType:16 PType:16 HLen:8 PLen:8 Op:16, then MAC and IPv4 address of sender and target. */
static enum pl_dp_own_end take_arp(struct pl_dp_own *o, const struct pl_dp_packet *pkt,
	const struct own_port *port, const struct pl_dp_call *call)
{
	static const uint8_t request[8] = { 0, 1, 8, 0, 6, 4, 0, 1 };
	struct pl_cursor c = pl_cursor(pkt->data, pkt->len);
	struct pl_dp_packet *answer;
	const uint8_t *arp;
	struct pl_addr target;
	uint8_t *a;

	pl_cursor_skip(&c, 12);
	for (uint16_t type = pl_get_be16(&c); type != ARP_TYPE && !c.short_read;
		type = pl_get_be16(&c))
		pl_cursor_skip(&c, 2);
	arp = pl_cursor_take(&c, ARP_BYTES);
	if (arp == NULL || memcmp(arp, request, sizeof(request)) != 0)
		return PL_DP_OWN_NOT;
	target = pl_addr_v4(arp + 24);
	if (!port_has(port, &target))
		return PL_DP_OWN_NOT;
	answer = pl_dp_packet_clone(pkt);
	if (answer != NULL) {
		a = answer->data + (arp - pkt->data);
		a[7] = 2;
		memcpy(a + 18, arp + 8, 10);
		pl_dp_mac_set(a + 8, o->p->gates[pkt->in_port].mac);
		memcpy(a + 14, arp + 24, 4);
	}
	say(o, answer, pl_dp_mac_get(pkt->data + 6), pkt, ARP, call);
	return PL_DP_OWN_ANSWERED;
}

/* ---- neighbour discovery ---- */

static bool icmp6_right(const struct pl_dp_packet *pkt, const struct pl_cursor *icmp)
{
	const size_t len = pl_cursor_left(icmp);
	uint32_t sum = PL_IP_ICMPV6 + (uint32_t)len;

	sum = pl_checksum_add(sum, pkt->data + pkt->headers.l3 + 8, 32);
	return pl_checksum_fold(pl_checksum_add(sum, icmp->pos, len)) == 0;
}

/* Checks a solicitation (RFC 4861 7.1.1, RFC 6980 5); *ret_dad: its sender has no address. */
static bool is_solicitation(
	struct pl_dp_own *o, const struct pl_dp_packet *pkt, struct pl_cursor icmp, bool *ret_dad)
{
	static const uint8_t group[13] = { 0xff, 2, [11] = 1, 0xff }; /* solicited nodes */
	const struct pl_addr src = address_of(pkt, false), dst = address_of(pkt, true);
	const uint8_t *p = pl_cursor_peek(&icmp, 24);

	*ret_dad = pl_addr_is_unspecified(&src);
	if (*ret_dad ? memcmp(dst.b, group, sizeof(group)) != 0 : !from_host(o, pkt))
		return false;
	if (p == NULL || p[1] != 0 || pkt->data[pkt->headers.l3 + 7] != TTL_ND ||
		pkt->headers.fragment || !icmp6_right(pkt, &icmp))
		return false;
	pl_cursor_skip(&icmp, 24);
	while (pl_cursor_left(&icmp) > 0) {
		p = pl_cursor_peek(&icmp, 2);
		if (p == NULL || p[1] == 0 || (*ret_dad && p[0] == 1))
			return false;
		if (pl_cursor_take(&icmp, 8 * (size_t)p[1]) == NULL)
			return false;
	}
	return true;
}

/* Returns the bytes from the ICMP header to the end of the IPv6 packet. */
static struct pl_cursor icmp6_of(const struct pl_dp_packet *pkt)
{
	const uint8_t *ip = pkt->data + pkt->headers.l3;
	struct pl_cursor c = pl_cursor(ip, pkt->len - pkt->headers.l3);

	(void)pl_cursor_trim(&c, 40 + (size_t)pl_be16(ip + 4));
	pl_cursor_skip(&c, (size_t)(pkt->headers.l4 - pkt->headers.l3));
	return c;
}

static enum pl_dp_own_end take_solicitation(struct pl_dp_own *o, const struct pl_dp_packet *pkt,
	const struct own_port *port, const struct pl_dp_call *call)
{
	static const uint8_t all_nodes[16] = { 0xff, 2, [15] = 1 };
	const struct pl_cursor icmp = icmp6_of(pkt);
	const uint8_t *p = pl_cursor_peek(&icmp, 24);
	const uint32_t link = pkt->headers.l3;
	struct pl_addr target, src = address_of(pkt, false);
	struct pl_dp_packet *answer;
	struct pl_flow flow = { .proto = PL_IP_ICMPV6, .sport = ADVERTISEMENT };
	struct pl_build b;
	uint8_t mac[6];
	size_t at;
	bool dad;

	if (p == NULL)
		return PL_DP_OWN_NOT;
	target = pl_addr_v6(p + 8);
	if (!of_version(pkt, &target) || !port_has(port, &target) ||
		!is_solicitation(o, pkt, icmp, &dad))
		return PL_DP_OWN_NOT;
	answer = pl_dp_packet_new(pkt->pool, link + 40 + 32);
	if (answer != NULL) {
		flow.src = target;
		flow.dst = dad ? pl_addr_v6(all_nodes) : src;
		pl_dp_mac_set(mac, o->p->gates[pkt->in_port].mac);
		b = pl_build(answer->data, answer->len);
		pl_put(&b, pkt->data, link);
		at = pl_put_ip(&b, &flow, TTL_ND, 0);
		pl_patch_u8(&b, at + 44, dad ? UNSOLICITED : SOLICITED);
		pl_put(&b, target.b, 16);
		pl_put(&b, (const uint8_t[]){ 2, 1 }, 2); /* target link-layer address */
		pl_put(&b, mac, 6);
		pl_end_ip(&b, at);
	}
	say(o, answer, dad ? ALL_NODES : pl_dp_mac_get(pkt->data + 6), pkt, ND, call);
	return PL_DP_OWN_ANSWERED;
}

/* ---- echo ---- */

/* The answer is a copy with swapped addresses; the type changes the checksum. */
static enum pl_dp_own_end take_echo(
	struct pl_dp_own *o, const struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct pl_dp_packet *answer = pl_dp_packet_clone(pkt);
	const bool v4 = pkt->headers.ip_version == 4;
	const uint64_t ttl[2] = { TTL_USUAL, 0 };
	const uint32_t bytes = v4 ? 4 : 16, at = pkt->headers.l3 + (v4 ? 12 : 8);
	uint32_t sum;
	uint8_t *icmp;

	if (answer != NULL) {
		memcpy(answer->data + at, pkt->data + at + bytes, bytes);
		memcpy(answer->data + at + bytes, pkt->data + at, bytes);
		pl_dp_field_write(answer, PL_DP_FIELD_IP_TTL, ttl);
		icmp = answer->data + answer->headers.l4;
		sum = (uint16_t)~pl_be16(icmp + 2) + (uint32_t)(uint16_t)~pl_be16(icmp);
		icmp[0] = v4 ? ECHO_REPLY_V4 : ECHO_REPLY_V6;
		sum += pl_be16(icmp);
		sum = pl_checksum_fold(sum);
		/* The sum of all zeros is 0, whose complement is all ones; for all other messages
		 * both forms are the same. */
		sum = sum == 0 ? 0xffff : sum;
		icmp[2] = (uint8_t)(sum >> 8);
		icmp[3] = (uint8_t)sum;
	}
	say(o, answer, pkt->from_mac, pkt, ECHO, call);
	return PL_DP_OWN_ANSWERED;
}

/* ---- every packet ---- */

/* Returns the type of an ICMP header of the packet's IP version; -1: it has none. */
static int icmp_type(const struct pl_dp_packet *pkt)
{
	const struct pl_dp_headers *h = &pkt->headers;

	if (h->l4 == PL_DP_NONE || h->l4 + 4u > pkt->len ||
		h->proto != (h->ip_version == 4 ? PL_IP_ICMP : PL_IP_ICMPV6))
		return -1;
	return pkt->data[h->l4];
}

static enum pl_dp_own_end for_us(
	struct pl_dp_own *o, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	const struct pl_dp_headers *h = &pkt->headers;
	const int type = icmp_type(pkt);
	/* No options: their routes would have to be reversed or continued (RFC 1812 4.3.3.6). */
	const bool plain = h->l4 == h->l3 + (h->ip_version == 4 ? 20 : 40);

	if (!pl_dp_ip_checksum_right(pkt)) {
		pkt->drop = PL_DP_DROP_MALFORMED;
		return PL_DP_OWN_DROPPED;
	}
	if (type == (h->ip_version == 4 ? ECHO_V4 : ECHO_V6) && pkt->data[h->l4 + 1] == 0 &&
		h->l4 + 8u <= pkt->len && plain && !h->fragment && from_host(o, pkt))
		return take_echo(o, pkt, call);
	pkt->drop = PL_DP_DROP_OWN;
	return PL_DP_OWN_DROPPED;
}

enum pl_dp_own_end pl_dp_own_take(
	struct pl_dp_own *own, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	const uint64_t to = pl_dp_mac_get(pkt->data), from = pl_dp_mac_get(pkt->data + 6);
	const struct own_port *port;
	struct pl_addr dst;
	bool ours;

	pkt->from_mac = 0;
	if (pkt->in_port > PL_DP_PORTS_MAX || (from & GROUP_BIT) != 0)
		return PL_DP_OWN_NOT;
	ours = to == own->p->gates[pkt->in_port].mac;
	if (ours)
		pkt->from_mac = from;
	else if ((to & GROUP_BIT) == 0)
		return PL_DP_OWN_NOT;
	port = &own->ports[pkt->in_port];
	if (pkt->headers.ethertype == ARP_TYPE)
		return port->n > 0 ? take_arp(own, pkt, port, call) : PL_DP_OWN_NOT;
	if (pkt->headers.ip_version == 0)
		return PL_DP_OWN_NOT;
	pkt->from_tags_bytes = (uint8_t)(pkt->headers.l3 - ETHERNET);
	memcpy(pkt->from_tags, pkt->data + MACS, pkt->from_tags_bytes);
	if (ours)
		pl_dp_quote_save(pkt);
	if (pkt->headers.ip_version == 6 && port->n > 0 && icmp_type(pkt) == SOLICITATION &&
		take_solicitation(own, pkt, port, call) == PL_DP_OWN_ANSWERED)
		return PL_DP_OWN_ANSWERED;
	dst = address_of(pkt, true);
	if (!ours || !of_version(pkt, &dst) || !is_own(own, &dst))
		return PL_DP_OWN_NOT;
	return for_us(own, pkt, call);
}

/* ---- errors ---- */

struct error {
	enum count what;
	uint8_t type, code;
	uint32_t mtu;
};

/* Chooses the error for a dropped packet; false: none. */
static bool error_of(const struct pl_dp_own *o, const struct pl_dp_packet *pkt, struct error *ret)
{
	const bool v4 = pkt->headers.ip_version == 4;
	const uint8_t proto = pkt->headers.proto;

	*ret = (struct error){ .what = UNREACHABLE, .type = v4 ? UNREACHABLE_V4 : UNREACHABLE_V6 };
	switch (pkt->drop) {
	case PL_DP_DROP_TTL:
		ret->what = TIME_EXCEEDED;
		ret->type = v4 ? TIME_EXCEEDED_V4 : TIME_EXCEEDED_V6;
		return true;
	case PL_DP_DROP_MTU:
		ret->what = TOO_BIG;
		ret->mtu = o->p->gates[pkt->out_port].mtu;
		if (v4)
			ret->code = 4; /* fragmentation needed (RFC 1191) */
		else
			ret->type = TOO_BIG_V6;
		return true;
	case PL_DP_DROP_NO_ROUTE:
		return true;
	case PL_DP_DROP_OWN:
		ret->code = v4 ? 3 : 4; /* port unreachable */
		return proto == PL_IP_UDP || proto == PL_IP_TCP;
	default:
		return false;
	}
}

/* Returns true when an error may be sent (RFC 1812 4.3.2.7, RFC 4443 2.4e), by the addresses on
 * arrival: it goes to that source. */
static bool may_tell(struct pl_dp_own *o, const struct pl_dp_packet *pkt)
{
	const struct pl_dp_headers *h = &pkt->headers;
	const int type = icmp_type(pkt);
	struct pl_addr src, dst;

	/* Later fragments have no transport header. */
	if (pkt->from_mac == 0 || (h->fragment && h->l4 == PL_DP_NONE))
		return false;
	src = address_at(pkt, pkt->came, false);
	dst = address_at(pkt, pkt->came, true);
	if (!can_hear(o, pkt, &src) || !is_host(&dst) || !pl_dp_ip_checksum_right(pkt))
		return false;
	/* No errors: in IPv4 only requests and replies, in IPv6 types from 128 on. */
	if (h->proto != (h->ip_version == 4 ? PL_IP_ICMP : PL_IP_ICMPV6))
		return true;
	if (h->ip_version == 6)
		return type >= 128 && type != REDIRECT;
	return type == ECHO_V4 || type == ECHO_REPLY_V4 || type >= 13;
}

/* Returns true when the port's rate allows an error; a burst may have as many as a second. */
static bool within_rate(struct own_port *port, uint64_t now_ns)
{
	uint64_t each, begin;

	if (port->per_second == 0)
		return false;
	each = SECOND / port->per_second;
	begin = now_ns + each > SECOND ? now_ns + each - SECOND : 0;
	/* The second condition: the node's clock was set back. */
	if (port->next_ns < begin || port->next_ns > now_ns + SECOND)
		port->next_ns = begin;
	if (port->next_ns > now_ns)
		return false;
	port->next_ns += each;
	return true;
}

static struct pl_dp_packet *make_error(
	const struct pl_dp_packet *pkt, const struct error *e, const struct pl_addr *from)
{
	const bool v4 = pkt->headers.ip_version == 4;
	/* The link header as received: actions may have changed tags since. */
	const uint32_t link = ETHERNET + pkt->from_tags_bytes, max = v4 ? QUOTE_V4 : QUOTE_V6;
	const uint8_t *rest;
	const uint32_t bytes = pl_dp_quote(pkt, max, &rest),
		       head = bytes < pkt->came_saved ? bytes : pkt->came_saved;
	const struct pl_flow flow = { .src = *from,
		.dst = address_at(pkt, pkt->came, false),
		.proto = v4 ? PL_IP_ICMP : PL_IP_ICMPV6,
		.dscp = v4 ? DSCP_ERROR : 0,
		.sport = e->type,
		.dport = e->code };
	struct pl_dp_packet *error;
	struct pl_build b;
	size_t at;

	error = pl_dp_packet_new(pkt->pool, link + (v4 ? 20u : 40u) + 8 + bytes);
	if (error == NULL)
		return NULL;
	b = pl_build(error->data, error->len);
	pl_put_zero(&b, MACS);
	pl_put(&b, pkt->from_tags, pkt->from_tags_bytes);
	pl_put_be16(&b, v4 ? PL_ETH_IPV4 : PL_ETH_IPV6);
	at = pl_put_ip(&b, &flow, TTL_USUAL, 0);
	if (e->mtu != 0)
		pl_patch_be32(&b, at + (v4 ? 24 : 44), e->mtu);
	pl_put(&b, pkt->came, head);
	pl_put(&b, rest, bytes - head);
	pl_end_ip(&b, at);
	if (b.full) {
		pl_dp_packet_free(error);
		return NULL;
	}
	return error;
}

void pl_dp_own_dropped(
	struct pl_dp_own *own, const struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	const bool v6 = pkt->headers.ip_version == 6;
	struct pl_addr from = own->any[v6];
	struct own_port *port;
	struct error e;

	if (pkt->headers.ip_version == 0 || pkt->in_port > PL_DP_PORTS_MAX || pkt->own ||
		!error_of(own, pkt, &e))
		return;
	port = &own->ports[pkt->in_port];
	for (unsigned int i = 0; i < port->n; i++) {
		if (pl_addr_is_v4(&port->addresses[i]) == !v6) {
			from = port->addresses[i];
			break;
		}
	}
	/* The error's source is the address that the packet was sent to (RFC 1122 3.2.1.3). */
	if (pkt->drop == PL_DP_DROP_OWN)
		from = address_of(pkt, true);
	if (!may_tell(own, pkt)) {
		pl_dp_act_count(own->counts[REFUSED], pkt);
	} else if (pl_addr_is_unspecified(&from)) {
		pl_dp_act_count(own->counts[NO_ADDRESS], pkt);
	} else if (!within_rate(port, call->now_ns)) {
		pl_dp_act_count(own->counts[HELD], pkt);
	} else {
		say(own, make_error(pkt, &e, &from), pkt->from_mac, pkt, e.what, call);
	}
}
