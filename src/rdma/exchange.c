/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes the messages in which peers exchange parameters over TCP. */
#include <errno.h>
#include <string.h>

#include "base/crc32.h"
#include "base/utf8.h"
#include "rdma/exchange.h"
#include "wire/roce.h"

#define MAGIC        0x504c5258u /* "PLRX" */
#define VERSION      1
#define CRC_AT       96
#define STORE_AT     116
#define STORE_CRC_AT 180

const char *pl_exchange_refusal_text(uint8_t refusal)
{
	switch (refusal) {
	case PL_EXCHANGE_AGREED:
		return "agreed";
	case PL_EXCHANGE_NO_STORE:
		return "there is no store of this name";
	case PL_EXCHANGE_NO_RIGHT:
		return "this address is not allowed";
	case PL_EXCHANGE_NO_ROOM:
		return "there is no room for another queue pair";
	case PL_EXCHANGE_NO_TERMS:
		return "the request has invalid parameters";
	case PL_EXCHANGE_NO_NIC:
		return "its NIC is missing or has no address";
	case PL_EXCHANGE_NO_WAY:
		return "it has no route to this address";
	case PL_EXCHANGE_FAILED:
		return "its NIC did not create the queue pair";
	case PL_EXCHANGE_NO_PROOF:
		return "the queue pair has another address than the connection, and this host may not request queue pairs for others (collect --proxy)";
	default:
		return "refused";
	}
}

void pl_exchange_put(struct pl_build *b, const struct pl_exchange *x)
{
	const size_t at = b->len;
	char name[PL_EXCHANGE_NAME_MAX] = { 0 };

	memcpy(name, x->name, strnlen(x->name, sizeof(name)));
	pl_put_be32(b, MAGIC);
	pl_put_u8(b, VERSION);
	pl_put_u8(b, x->service);
	pl_put_be16(b, x->has_store ? PL_EXCHANGE_STORE_BYTES : PL_EXCHANGE_BYTES);
	pl_put(b, x->gid.b, 16);
	pl_put(b, x->mac, 6);
	pl_put_be16(b, x->pkey);
	pl_put_be64(b, x->va);
	pl_put_u8(b, x->refusal);
	pl_put_zero(b, 7);
	pl_put_be64(b, x->bytes);
	pl_put_be32(b, x->key);
	pl_put_be32(b, x->qpn);
	pl_put_be32(b, x->psn);
	pl_put_be16(b, x->mtu);
	pl_put_u8(b, x->depth);
	pl_put_u8(b, x->access);
	pl_put(b, name, sizeof(name));
	if (!b->full)
		pl_put_be32(b, pl_crc32(0, b->data + at, CRC_AT));
	if (!x->has_store)
		return;
	pl_put_be64(b, x->epoch);
	pl_put_be64(b, x->region_id);
	pl_put(b, &x->store, sizeof(x->store));
	if (!b->full)
		pl_put_be32(b, pl_crc32(0, b->data + at + PL_EXCHANGE_BYTES,
				       STORE_CRC_AT - PL_EXCHANGE_BYTES));
}

/* Returns true for text up to the first zero, and zeros from there on. */
static bool name_good(const char name[PL_EXCHANGE_NAME_MAX])
{
	size_t n = strnlen(name, PL_EXCHANGE_NAME_MAX), left = n;
	const char *p = name;

	for (size_t i = n; i < PL_EXCHANGE_NAME_MAX; i++) {
		if (name[i] != '\0')
			return false;
	}
	while (left > 0) {
		size_t step;
		uint32_t cp;

		if (!pl_utf8_next(p, left, &step, &cp) || cp < 0x20 || cp == 0x7f)
			return false;
		p += step;
		left -= step;
	}
	return true;
}

static bool sound(const struct pl_exchange *x)
{
	return (x->service == PL_ROCE_RC || x->service == PL_ROCE_UC) && x->mtu >= 256 &&
	       x->mtu <= PL_ROCE_PATH_MTU && (x->mtu & (x->mtu - 1)) == 0 &&
	       x->qpn <= PL_ROCE_PSN_MASK && x->psn <= PL_ROCE_PSN_MASK && x->access < 8 &&
	       (x->bytes == 0 || x->va + (x->bytes - 1) >= x->va) && name_good(x->name);
}

/* Reads the longer part of a message. */
static bool get_store(struct pl_exchange *ret, const uint8_t *p)
{
	uint64_t bytes;

	if (pl_be32(p + STORE_CRC_AT) !=
		pl_crc32(0, p + PL_EXCHANGE_BYTES, STORE_CRC_AT - PL_EXCHANGE_BYTES))
		return false;
	ret->has_store = true;
	ret->epoch = pl_be64(p + PL_EXCHANGE_BYTES);
	ret->region_id = pl_be64(p + PL_EXCHANGE_BYTES + 8);
	memcpy(&ret->store, p + STORE_AT, sizeof(ret->store));
	return pl_store_bytes(&ret->store, &bytes, NULL) == 0 && bytes == ret->bytes;
}

int pl_exchange_get(struct pl_exchange *ret, struct pl_cursor stream, size_t *ret_used)
{
	struct pl_cursor c = stream;
	const uint8_t *p = pl_cursor_peek(&c, 8), *bytes;
	uint16_t length;

	*ret_used = 0;
	/* Bytes that cannot become a message are refused as soon as possible. */
	for (size_t i = 0; i < 4 && i < pl_cursor_left(&c); i++) {
		if (c.pos[i] != (uint8_t)(MAGIC >> (24 - 8 * i)))
			return -EBADMSG;
	}
	if (p == NULL)
		return 0;
	length = pl_be16(p + 6);
	if (p[4] != VERSION) {
		*ret_used = p[4];
		return -EPROTO;
	}
	if (length < PL_EXCHANGE_BYTES)
		return -EBADMSG;
	p = pl_cursor_peek(&c, length);
	if (p == NULL)
		return 0;
	if (pl_be32(p + CRC_AT) != pl_crc32(0, p, CRC_AT))
		return -EBADMSG;
	memset(ret, 0, sizeof(*ret));
	pl_cursor_skip(&c, 5);
	ret->service = pl_get_u8(&c);
	pl_cursor_skip(&c, 2);
	ret->gid = pl_addr_v6(p + 8);
	memcpy(ret->mac, p + 24, 6);
	pl_cursor_skip(&c, 22);
	ret->pkey = pl_get_be16(&c);
	ret->va = pl_get_be64(&c);
	ret->refusal = pl_get_u8(&c);
	pl_cursor_skip(&c, 7);
	ret->bytes = pl_get_be64(&c);
	ret->key = pl_get_be32(&c);
	ret->qpn = pl_get_be32(&c);
	ret->psn = pl_get_be32(&c);
	ret->mtu = pl_get_be16(&c);
	ret->depth = pl_get_u8(&c);
	ret->access = pl_get_u8(&c);
	bytes = pl_cursor_take(&c, PL_EXCHANGE_NAME_MAX);
	if (bytes == NULL)
		return -EBADMSG;
	memcpy(ret->name, bytes, PL_EXCHANGE_NAME_MAX);
	if (!sound(ret) || (length >= PL_EXCHANGE_STORE_BYTES && !get_store(ret, p)))
		return -EBADMSG;
	*ret_used = length;
	return 1;
}

void pl_exchange_put_compact(struct pl_build *b, const struct pl_exchange *x)
{
	pl_put_be64(b, x->va);
	pl_put_be32(b, x->key);
	pl_put_be32(b, x->qpn);
	pl_put_be16(b, x->lid);
	pl_put(b, x->gid.b, 16);
}

int pl_exchange_get_compact(struct pl_exchange *ret, struct pl_cursor stream)
{
	const uint8_t *p = pl_cursor_take(&stream, PL_EXCHANGE_COMPACT_BYTES);

	if (p == NULL)
		return 0;
	if (pl_be32(p + 12) > PL_ROCE_PSN_MASK)
		return -EBADMSG;
	ret->va = pl_be64(p);
	ret->key = pl_be32(p + 8);
	ret->qpn = pl_be32(p + 12);
	ret->lid = pl_be16(p + 16);
	ret->gid = pl_addr_v6(p + 18);
	return 1;
}
