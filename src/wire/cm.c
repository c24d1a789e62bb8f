/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes messages of the connection manager of InfiniBand. */
#include <errno.h>
#include <string.h>

#include "wire/cm.h"

#define MAD_BYTES 24

/* Base version 1, class 7 (connection management) of version 2, method Send. */
#define MAD_START 0x01070203u

static const struct {
	const char *name;
	uint16_t fixed; /* bytes before the private data */
	uint16_t private;
} kinds[] = {
	[PL_CM_REQ] = { "REQ", 140, 92 },
	[PL_CM_MRA] = { "MRA", 10, 222 },
	[PL_CM_REJ] = { "REJ", 84, 148 },
	[PL_CM_REP] = { "REP", 36, 196 },
	[PL_CM_RTU] = { "RTU", 8, 224 },
	[PL_CM_DREQ] = { "DREQ", 12, 220 },
	[PL_CM_DREP] = { "DREP", 8, 224 },
};

static bool known(unsigned int kind)
{
	return kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[kind].name != NULL;
}

size_t pl_cm_private_bytes(enum pl_cm_kind kind)
{
	return known(kind) ? kinds[kind].private : 0;
}

const char *pl_cm_kind_name(enum pl_cm_kind kind)
{
	return known(kind) ? kinds[kind].name : NULL;
}

/* ---- reading ---- */

static struct pl_addr get_gid(struct pl_cursor *c)
{
	const uint8_t *p = pl_cursor_take(c, 16);
	struct pl_addr gid = { 0 };

	if (p != NULL)
		gid = pl_addr_v6(p);
	return gid;
}

static void get_path(struct pl_cm *cm, struct pl_cursor *c)
{
	uint32_t word;
	uint8_t byte;

	cm->local_lid = pl_get_be16(c);
	cm->remote_lid = pl_get_be16(c);
	cm->src = get_gid(c);
	cm->dst = get_gid(c);
	word = pl_get_be32(c);
	cm->flow_label = word >> 12;
	cm->rate = word & 0x3f;
	cm->tclass = pl_get_u8(c);
	cm->hop_limit = pl_get_u8(c);
	byte = pl_get_u8(c);
	cm->sl = byte >> 4;
	cm->subnet_local = (byte & 0x08) != 0;
	cm->ack_timeout = pl_get_u8(c) >> 3;
}

static void get_req(struct pl_cm *cm, struct pl_cursor *c)
{
	uint32_t word;
	uint8_t byte;

	pl_cursor_skip(c, 4);
	cm->service_id = pl_get_be64(c);
	cm->ca_guid = pl_get_be64(c);
	pl_cursor_skip(c, 8);
	word = pl_get_be32(c);
	cm->qpn = word >> 8;
	cm->resources = (uint8_t)word;
	cm->depth = (uint8_t)pl_get_be32(c);
	byte = (uint8_t)pl_get_be32(c);
	cm->remote_timeout = byte >> 3;
	cm->transport = byte >> 1 & 3;
	cm->flow_control = byte & 1;
	word = pl_get_be32(c);
	cm->psn = word >> 8;
	cm->local_timeout = (uint8_t)word >> 3;
	cm->retries = word & 7;
	cm->pkey = pl_get_be16(c);
	byte = pl_get_u8(c);
	cm->mtu = byte >> 4;
	cm->rnr_retries = byte & 7;
	byte = pl_get_u8(c);
	cm->cm_retries = byte >> 4;
	cm->srq = (byte & 0x08) != 0;
	get_path(cm, c);
	pl_cursor_skip(c, 44); /* the alternate path */
}

static void get_rep(struct pl_cm *cm, struct pl_cursor *c)
{
	uint8_t byte;

	pl_cursor_skip(c, 4);
	cm->qpn = pl_get_be32(c) >> 8;
	pl_cursor_skip(c, 4);
	cm->psn = pl_get_be32(c) >> 8;
	cm->resources = pl_get_u8(c);
	cm->depth = pl_get_u8(c);
	byte = pl_get_u8(c);
	cm->ack_delay = byte >> 3;
	cm->failover = byte >> 1 & 3;
	cm->flow_control = byte & 1;
	byte = pl_get_u8(c);
	cm->rnr_retries = byte >> 5;
	cm->srq = (byte & 0x10) != 0;
	cm->ca_guid = pl_get_be64(c);
}

int pl_cm_parse(struct pl_cm *ret, struct pl_cursor mad)
{
	struct pl_cursor c = mad;
	uint16_t kind;

	memset(ret, 0, sizeof(*ret));
	if (pl_cursor_left(&c) != PL_CM_BYTES || pl_get_be32(&c) != MAD_START)
		return -EBADMSG;
	pl_cursor_skip(&c, 4);
	ret->transaction = pl_get_be64(&c);
	kind = pl_get_be16(&c);
	pl_cursor_skip(&c, 6);
	if (!known(kind))
		return -EBADMSG;
	ret->kind = (uint8_t)kind;
	ret->local_id = pl_get_be32(&c);
	if (kind != PL_CM_REQ)
		ret->remote_id = pl_get_be32(&c);
	switch (kind) {
	case PL_CM_REQ:
		get_req(ret, &c);
		break;
	case PL_CM_REP:
		get_rep(ret, &c);
		break;
	case PL_CM_REJ:
		ret->about = pl_get_u8(&c) >> 6;
		ret->has_ari = pl_get_u8(&c) >> 1 != 0;
		ret->reason = pl_get_be16(&c);
		ret->ari = pl_get_u8(&c);
		pl_cursor_skip(&c, 71);
		if (!ret->has_ari)
			ret->ari = 0;
		break;
	case PL_CM_MRA:
		ret->about = pl_get_u8(&c) >> 6;
		ret->timeout = pl_get_u8(&c) >> 3;
		break;
	case PL_CM_DREQ:
		ret->qpn = pl_get_be32(&c) >> 8;
		break;
	default:
		break;
	}
	ret->private = c;
	return 0;
}

/* ---- writing ---- */

static void put_path(struct pl_build *b, const struct pl_cm *cm)
{
	pl_put_be16(b, cm->local_lid);
	pl_put_be16(b, cm->remote_lid);
	pl_put(b, cm->src.b, 16);
	pl_put(b, cm->dst.b, 16);
	pl_put_be32(b, cm->flow_label << 12 | (cm->rate & 0x3fu));
	pl_put_u8(b, cm->tclass);
	pl_put_u8(b, cm->hop_limit);
	pl_put_u8(b, (uint8_t)(cm->sl << 4 | cm->subnet_local << 3));
	pl_put_u8(b, (uint8_t)(cm->ack_timeout << 3));
}

static void put_req(struct pl_build *b, const struct pl_cm *cm)
{
	pl_put_zero(b, 4);
	pl_put_be64(b, cm->service_id);
	pl_put_be64(b, cm->ca_guid);
	pl_put_zero(b, 8);
	pl_put_be24(b, cm->qpn);
	pl_put_u8(b, cm->resources);
	pl_put_zero(b, 3);
	pl_put_u8(b, cm->depth);
	pl_put_zero(b, 3);
	pl_put_u8(b,
		(uint8_t)(cm->remote_timeout << 3 | (cm->transport & 3) << 1 | cm->flow_control));
	pl_put_be24(b, cm->psn);
	pl_put_u8(b, (uint8_t)(cm->local_timeout << 3 | (cm->retries & 7)));
	pl_put_be16(b, cm->pkey);
	pl_put_u8(b, (uint8_t)(cm->mtu << 4 | (cm->rnr_retries & 7)));
	pl_put_u8(b, (uint8_t)(cm->cm_retries << 4 | cm->srq << 3));
	put_path(b, cm);
	pl_put_zero(b, 44);
}

static void put_rep(struct pl_build *b, const struct pl_cm *cm)
{
	pl_put_zero(b, 4);
	pl_put_be24(b, cm->qpn);
	pl_put_zero(b, 5);
	pl_put_be24(b, cm->psn);
	pl_put_zero(b, 1);
	pl_put_u8(b, cm->resources);
	pl_put_u8(b, cm->depth);
	pl_put_u8(b, (uint8_t)(cm->ack_delay << 3 | (cm->failover & 3) << 1 | cm->flow_control));
	pl_put_u8(b, (uint8_t)(cm->rnr_retries << 5 | cm->srq << 4));
	pl_put_be64(b, cm->ca_guid);
}

void pl_cm_put(struct pl_build *b, const struct pl_cm *cm, const void *private, size_t len)
{
	if (!known(cm->kind) || len > kinds[cm->kind].private) {
		b->full = true;
		return;
	}
	pl_put_be32(b, MAD_START);
	pl_put_zero(b, 4);
	pl_put_be64(b, cm->transaction);
	pl_put_be16(b, cm->kind);
	pl_put_zero(b, 6);
	pl_put_be32(b, cm->local_id);
	if (cm->kind != PL_CM_REQ)
		pl_put_be32(b, cm->remote_id);
	switch (cm->kind) {
	case PL_CM_REQ:
		put_req(b, cm);
		break;
	case PL_CM_REP:
		put_rep(b, cm);
		break;
	case PL_CM_REJ:
		pl_put_u8(b, (uint8_t)(cm->about << 6));
		pl_put_u8(b, (uint8_t)(cm->has_ari << 1)); /* its length */
		pl_put_be16(b, cm->reason);
		pl_put_u8(b, cm->has_ari ? cm->ari : 0);
		pl_put_zero(b, 71);
		break;
	case PL_CM_MRA:
		pl_put_u8(b, (uint8_t)(cm->about << 6));
		pl_put_u8(b, (uint8_t)(cm->timeout << 3));
		break;
	case PL_CM_DREQ:
		pl_put_be24(b, cm->qpn);
		pl_put_u8(b, 0);
		break;
	default:
		break;
	}
	pl_put(b, private, len);
	pl_put_zero(b, kinds[cm->kind].private - len);
}

/* Annex A11.5: version, IP version, source port, addresses (IPv4 in the last four bytes). */

bool pl_cm_get_ip(struct pl_cm_ip *ret, struct pl_cursor *private)
{
	const uint8_t *p = pl_cursor_peek(private, PL_CM_IP_BYTES);
	uint8_t version;

	if (p == NULL)
		return false;
	version = p[1] >> 4;
	if (p[0] != 0 || (version != 4 && version != 6))
		return false;
	ret->src_port = pl_be16(p + 2);
	ret->src = version == 4 ? pl_addr_v4(p + 4 + 12) : pl_addr_v6(p + 4);
	ret->dst = version == 4 ? pl_addr_v4(p + 20 + 12) : pl_addr_v6(p + 20);
	pl_cursor_skip(private, PL_CM_IP_BYTES);
	return true;
}

static void put_addr(struct pl_build *b, const struct pl_addr *a, bool v4)
{
	if (v4)
		pl_put_zero(b, 12);
	pl_put(b, v4 ? a->b + 12 : a->b, v4 ? 4 : 16);
}

void pl_cm_put_ip(struct pl_build *b, const struct pl_cm_ip *ip)
{
	const bool v4 = pl_addr_is_v4(&ip->dst);

	pl_put_u8(b, 0);
	pl_put_u8(b, v4 ? 0x40 : 0x60);
	pl_put_be16(b, ip->src_port);
	put_addr(b, &ip->src, v4);
	put_addr(b, &ip->dst, v4);
}
