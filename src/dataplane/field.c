/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds fields by name, converts their values to and from text, and reads them from packets. */
#include "dataplane/field.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "wire/cursor.h"
#include "wire/layers.h"

#define KIND_NUMBER PL_DP_FIELD_NUMBER
#define KIND_MAC    PL_DP_FIELD_MAC
#define KIND_ADDR   PL_DP_FIELD_ADDR
#define KIND_TIME   PL_DP_FIELD_NS

/* clang-format off */
const struct pl_dp_field_info pl_dp_fields[PL_DP_FIELD_MAX] = {
#define PL_DP_FIELD(id, name, bits, kind, help) \
	{ name, help, bits, KIND_##kind, (bits) > 64 ? 2 : 1 },
#include "dataplane/fields.def"
#undef PL_DP_FIELD
};
/* clang-format on */

enum pl_dp_field pl_dp_field_find(const char *name, size_t len, struct pl_diag *diag)
{
	const char *names[PL_DP_FIELD_MAX];
	char text[64];

	for (unsigned int f = 0; f < PL_DP_FIELD_MAX; f++) {
		names[f] = pl_dp_fields[f].name;
		if (strlen(names[f]) == len && memcmp(names[f], name, len) == 0)
			return (enum pl_dp_field)f;
	}
	snprintf(text, sizeof(text), "%.*s", len < 63 ? (int)len : 63, name);
	pl_diag_set(diag, "unknown field \"%s\"", text);
	pl_diag_nearest(diag, '"', text, names, PL_DP_FIELD_MAX);
	return PL_DP_FIELD_MAX;
}

/* ---- text ---- */

int pl_dp_mac_parse(const char *text, uint64_t *ret)
{
	uint64_t mac = 0;

	if (strlen(text) != 17)
		return -EINVAL;
	for (unsigned int i = 0; i < 17; i++) {
		const int d = pl_hex_digit(text[i]);

		if (i % 3 == 2 ? text[i] != ':' : d < 0)
			return -EINVAL;
		if (i % 3 != 2)
			mac = mac << 4 | (unsigned int)d;
	}
	*ret = mac;
	return 0;
}

static void put_mac(uint64_t mac, struct pl_buf *out)
{
	for (int shift = 40; shift >= 0; shift -= 8)
		pl_buf_printf(
			out, "%02x%s", (unsigned int)(mac >> shift & 0xff), shift > 0 ? ":" : "");
}

uint64_t pl_dp_mac_get(const uint8_t bytes[6])
{
	return (uint64_t)pl_be32(bytes) << 16 | pl_be16(bytes + 4);
}

void pl_dp_mac_set(uint8_t bytes[6], uint64_t mac)
{
	for (unsigned int i = 0; i < 6; i++)
		bytes[i] = (uint8_t)(mac >> (40 - 8 * i));
}

static void addr_words(const uint8_t *b, uint64_t *ret)
{
	ret[0] = pl_be64(b);
	ret[1] = pl_be64(b + 8);
}

static int parse_number(
	const struct pl_dp_field_info *f, const char *text, uint64_t *ret, struct pl_diag *diag)
{
	uint64_t v;
	int r = f->kind == PL_DP_FIELD_MAC ? pl_dp_mac_parse(text, &v) : pl_parse_u64(text, &v);

	/* A time may also be written as a duration since 1970. */
	if (r < 0 && f->kind == PL_DP_FIELD_NS)
		r = pl_parse_duration(text, &v);
	if (r < 0 && f->kind == PL_DP_FIELD_MAC)
		r = pl_parse_u64(text, &v);
	if (r < 0) {
		pl_diag_set(diag, "\"%s\" is not a value of %s, which is a %s", text, f->name,
			f->kind == PL_DP_FIELD_MAC  ? "MAC address"
			: f->kind == PL_DP_FIELD_NS ? "time in ns"
						    : "number");
		return -EINVAL;
	}
	if (f->bits < 64 && v >> f->bits != 0) {
		pl_diag_set(diag, "\"%s\" is too large for %s, which has %u bits", text, f->name,
			f->bits);
		return -EINVAL;
	}
	*ret = v;
	return 0;
}

int pl_dp_value_parse(
	enum pl_dp_field field, const char *text, uint64_t ret[2], struct pl_diag *diag)
{
	const struct pl_dp_field_info *f = &pl_dp_fields[field];
	struct pl_addr addr;

	ret[1] = 0;
	if (f->kind != PL_DP_FIELD_ADDR)
		return parse_number(f, text, ret, diag);
	if (pl_parse_addr(text, &addr) < 0) {
		pl_diag_set(diag, "\"%s\" is not an address for %s", text, f->name);
		return -EINVAL;
	}
	addr_words(addr.b, ret);
	return 0;
}

void pl_dp_value_put(enum pl_dp_field field, const uint64_t *value, struct pl_buf *out)
{
	char text[PL_ADDR_TEXT_MAX];
	struct pl_addr addr;

	switch (pl_dp_fields[field].kind) {
	case PL_DP_FIELD_MAC:
		put_mac(value[0], out);
		break;
	case PL_DP_FIELD_ADDR:
		addr = pl_dp_addr_of(value);
		pl_buf_add(out, text, pl_format_addr(text, &addr));
		break;
	default:
		pl_buf_u64(out, value[0]);
		break;
	}
}

/* ---- packets ---- */

static void read_addr(const struct pl_dp_packet *pkt, bool dst, uint64_t *ret)
{
	const uint8_t *ip = pkt->data + pkt->headers.l3;

	if (pkt->headers.ip_version == 4) {
		ret[0] = 0;
		ret[1] = UINT64_C(0xffff00000000) | pl_be32(ip + (dst ? 16 : 12));
	} else if (pkt->headers.ip_version == 6) {
		addr_words(ip + (dst ? 24 : 8), ret);
	} else {
		ret[0] = ret[1] = 0;
	}
}

static uint64_t traffic_class(const struct pl_dp_packet *pkt)
{
	const uint8_t *ip = pkt->data + pkt->headers.l3;

	if (pkt->headers.ip_version == 4)
		return ip[1];
	return pkt->headers.ip_version == 6 ? pl_be16(ip) >> 4 & 0xff : 0;
}

static bool has_ports(const struct pl_dp_packet *pkt)
{
	return pkt->headers.l4 != PL_DP_NONE &&
	       (pkt->headers.proto == PL_IP_TCP || pkt->headers.proto == PL_IP_UDP);
}

void pl_dp_field_read(
	const struct pl_dp_packet *pkt, enum pl_dp_field field, uint64_t time_ns, uint64_t *ret)
{
	const struct pl_dp_headers *h = &pkt->headers;
	const uint8_t *p = pkt->data;

	switch (field) {
	case PL_DP_FIELD_IN_PORT:
		*ret = pkt->in_port;
		break;
	case PL_DP_FIELD_OUT_PORT:
		*ret = pkt->out_port;
		break;
	case PL_DP_FIELD_ETH_DST:
		*ret = pl_dp_mac_get(p);
		break;
	case PL_DP_FIELD_ETH_SRC:
		*ret = pl_dp_mac_get(p + 6);
		break;
	case PL_DP_FIELD_ETH_TYPE:
		*ret = h->ethertype;
		break;
	case PL_DP_FIELD_VLAN_ID:
		*ret = h->vlan != PL_DP_NONE ? pl_be16(p + h->vlan + 2) & 0xfff : 0;
		break;
	case PL_DP_FIELD_VLAN_PCP:
		*ret = h->vlan != PL_DP_NONE ? p[h->vlan + 2] >> 5 : 0;
		break;
	case PL_DP_FIELD_IP_VERSION:
		*ret = h->ip_version;
		break;
	case PL_DP_FIELD_IP_SRC:
		read_addr(pkt, false, ret);
		break;
	case PL_DP_FIELD_IP_DST:
		read_addr(pkt, true, ret);
		break;
	case PL_DP_FIELD_IP_PROTO:
		*ret = h->ip_version != 0 ? h->proto : 0;
		break;
	case PL_DP_FIELD_IP_DSCP:
		*ret = traffic_class(pkt) >> 2;
		break;
	case PL_DP_FIELD_IP_ECN:
		*ret = traffic_class(pkt) & 3;
		break;
	case PL_DP_FIELD_IP_TTL:
		*ret = h->ip_version == 4 ? p[h->l3 + 8] : h->ip_version == 6 ? p[h->l3 + 7] : 0;
		break;
	case PL_DP_FIELD_IP_RESERVED:
		*ret = h->ip_version == 4 ? p[h->l3 + 6] >> 7 : 0;
		break;
	case PL_DP_FIELD_IP_LENGTH:
		*ret = h->ip_version == 4   ? pl_be16(p + h->l3 + 2)
		       : h->ip_version == 6 ? 40u + pl_be16(p + h->l3 + 4)
					    : 0;
		break;
	case PL_DP_FIELD_IP_FRAGMENT:
		*ret = h->fragment;
		break;
	case PL_DP_FIELD_L4_SRC:
		*ret = has_ports(pkt) ? pl_be16(p + h->l4) : 0;
		break;
	case PL_DP_FIELD_L4_DST:
		*ret = has_ports(pkt) ? pl_be16(p + h->l4 + 2) : 0;
		break;
	case PL_DP_FIELD_TCP_FLAGS:
		*ret = h->l4 != PL_DP_NONE && h->proto == PL_IP_TCP ? p[h->l4 + 13] : 0;
		break;
	case PL_DP_FIELD_FLOW_HASH:
		*ret = pkt->flow_hash;
		break;
	case PL_DP_FIELD_LENGTH:
		*ret = pkt->len;
		break;
	case PL_DP_FIELD_MARK:
		*ret = pkt->mark;
		break;
	case PL_DP_FIELD_COLOUR:
		*ret = pkt->colour;
		break;
	case PL_DP_FIELD_VALUE:
		*ret = pkt->value;
		break;
	case PL_DP_FIELD_QUEUE:
		*ret = pkt->queue;
		break;
	case PL_DP_FIELD_QUEUE_BYTES:
		*ret = pkt->depth_bytes;
		break;
	case PL_DP_FIELD_TIME:
		*ret = time_ns;
		break;
	case PL_DP_FIELD_MAX:
		*ret = 0;
		break;
	}
}
