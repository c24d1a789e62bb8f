/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of the data plane: their pool, inserting and removing bytes. */
#include "dataplane/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clear.h"

struct pl_dp_pool {
	struct pl_dp_packet *free;
	uint32_t size, max, alive, made;
};

int pl_dp_pool_new(struct pl_dp_pool **ret, uint32_t size, uint32_t max)
{
	struct pl_dp_pool *p;

	if (size <= PL_DP_HEADROOM || size > UINT16_MAX || max == 0)
		return -EINVAL;
	p = calloc(1, sizeof *p);
	if (p == NULL)
		return -ENOMEM;
	p->size = size;
	p->max = max;
	*ret = p;
	return 0;
}

void pl_dp_pool_free(struct pl_dp_pool *p)
{
	struct pl_dp_packet *pkt;

	if (p == NULL)
		return;
	while ((pkt = p->free) != NULL) {
		p->free = pkt->next;
		free(pkt);
	}
	free(p);
}

uint32_t pl_dp_pool_alive(const struct pl_dp_pool *p)
{
	return p->alive;
}

static uint8_t *buffer(struct pl_dp_packet *pkt)
{
	return (uint8_t *)(pkt + 1);
}

/* Takes a packet from the pool, with all members unset. NULL: `max` are alive, or no memory. */
static struct pl_dp_packet *take(struct pl_dp_pool *p)
{
	struct pl_dp_packet *pkt = p->free;

	if (p->alive == p->max)
		return NULL;
	if (pkt != NULL) {
		p->free = pkt->next;
	} else {
		pkt = malloc(sizeof *pkt + p->size);
		if (pkt == NULL)
			return NULL;
		p->made++;
	}
	p->alive++;
	return pkt;
}

struct pl_dp_packet *pl_dp_packet_new(struct pl_dp_pool *p, uint32_t len)
{
	struct pl_dp_packet *pkt;

	if (len > p->size - PL_DP_HEADROOM)
		return NULL;
	pkt = take(p);
	if (pkt == NULL)
		return NULL;
	pl_clear(pkt, offsetof(struct pl_dp_packet, came));
	pkt->pool = p;
	pkt->data = buffer(pkt) + PL_DP_HEADROOM;
	pkt->len = len;
	pkt->size = p->size;
	return pkt;
}

struct pl_dp_packet *pl_dp_packet_of(struct pl_dp_pool *p, const void *bytes, uint32_t len)
{
	struct pl_dp_packet *pkt = pl_dp_packet_new(p, len);

	if (pkt != NULL)
		memcpy(pkt->data, bytes, len);
	return pkt;
}

struct pl_dp_packet *pl_dp_packet_clone(const struct pl_dp_packet *from)
{
	struct pl_dp_packet *pkt = take(from->pool);

	if (pkt == NULL)
		return NULL;
	*pkt = *from;
	pkt->next = NULL;
	pkt->data = buffer(pkt) + (from->data - (const uint8_t *)(from + 1));
	memcpy(pkt->data, from->data, from->len);
	return pkt;
}

void pl_dp_packet_free(struct pl_dp_packet *pkt)
{
	struct pl_dp_pool *p;

	if (pkt == NULL)
		return;
	p = pkt->pool;
	pkt->next = p->free;
	p->free = pkt;
	p->alive--;
}

static void shift(uint16_t *offset, uint32_t at, int by)
{
	if (*offset != PL_DP_NONE && *offset >= at)
		*offset = (uint16_t)(*offset + by);
}

static void shift_headers(struct pl_dp_headers *h, uint32_t at, int by)
{
	shift(&h->vlan, at, by);
	shift(&h->l3, at, by);
	shift(&h->l4, at, by);
	shift(&h->payload, at, by);
}

int pl_dp_packet_insert(struct pl_dp_packet *pkt, uint32_t at, uint32_t n)
{
	uint32_t before = (uint32_t)(pkt->data - buffer(pkt)),
		 behind = pkt->size - before - pkt->len;
	bool front = n <= before && (at <= pkt->len / 2 || n > behind);

	if (at > pkt->len)
		return -EINVAL;
	if (!front && n > behind)
		return -ENOBUFS;
	if (front) {
		memmove(pkt->data - n, pkt->data, at);
		pkt->data -= n;
	} else {
		memmove(pkt->data + at + n, pkt->data + at, pkt->len - at);
	}
	pkt->len += n;
	shift_headers(&pkt->headers, at, (int)n);
	return 0;
}

int pl_dp_packet_remove(struct pl_dp_packet *pkt, uint32_t at, uint32_t n)
{
	if (at > pkt->len || n > pkt->len - at)
		return -EINVAL;
	if (at <= pkt->len / 2) {
		memmove(pkt->data + n, pkt->data, at);
		pkt->data += n;
	} else {
		memmove(pkt->data + at, pkt->data + at + n, pkt->len - at - n);
	}
	pkt->len -= n;
	shift_headers(&pkt->headers, at + n, -(int)n);
	return 0;
}

const char *pl_dp_drop_name(enum pl_dp_drop d)
{
	static const char *const names[] = {
		[PL_DP_GOES_ON] = "",
#define PL_DP_DROP(id, name, code, text) [PL_DP_DROP_##id] = name,
#include "dataplane/drops.def"
#undef PL_DP_DROP
	};

	return d < PL_DP_DROP_MAX ? names[d] : "?";
}

uint8_t pl_dp_drop_code(enum pl_dp_drop d)
{
	static const uint8_t codes[] = {
#define PL_DP_DROP(id, name, code, text) [PL_DP_DROP_##id] = code,
#include "dataplane/drops.def"
#undef PL_DP_DROP
	};

	return d < PL_DP_DROP_MAX ? codes[d] : 0;
}
