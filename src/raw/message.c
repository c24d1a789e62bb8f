/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads entries of packets. */
#include "raw/message.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "wire/layers.h"

void pl_raw_head_make(struct pl_raw_head *ret, const struct pl_packet *p)
{
	*ret = (struct pl_raw_head){
		.ts_ns = p->ts_ns,
		.sport = p->sport,
		.dport = p->dport,
		.len = p->len,
		.wire_len = p->wire_len,
		.link = p->link,
		.out = p->out,
		.clock = p->clock,
		.gso = p->gso,
	};
	if (p->link != PL_LINK_UDP)
		return;
	memcpy(ret->src, p->src.b, sizeof(ret->src));
	memcpy(ret->dst, p->dst.b, sizeof(ret->dst));
}

static bool is_good(const struct pl_raw_head *h)
{
	static const uint8_t zero[sizeof(h->zero)];

	return h->len <= PL_RAW_LEN_MAX && h->link < PL_LINK_MAX && h->out <= 1 &&
	       h->clock < PL_STAMP_KINDS && h->gso <= PL_GSO_OTHER &&
	       memcmp(h->zero, zero, sizeof(zero)) == 0;
}

int pl_raw_next(const void *data, size_t len, size_t *at, struct pl_packet *ret)
{
	const uint8_t *p = (const uint8_t *)data + *at;
	struct pl_raw_head h;

	if (*at == len)
		return 0;
	if (len - *at < sizeof(h))
		return -EBADMSG;
	memcpy(&h, p, sizeof(h));
	if (!is_good(&h) || len - *at < pl_raw_entry_size(h.len))
		return -EBADMSG;
	*ret = (struct pl_packet){
		.data = p + sizeof(h),
		.len = h.len,
		.wire_len = h.wire_len,
		.ts_ns = h.ts_ns,
		.link = h.link,
		.out = h.out,
		.sport = h.sport,
		.dport = h.dport,
		.clock = h.clock,
		.gso = h.gso,
		.src = pl_addr_v6(h.src),
		.dst = pl_addr_v6(h.dst),
	};
	*at += pl_raw_entry_size(h.len);
	return 1;
}

uint64_t pl_raw_hash(const struct pl_packet *p)
{
	struct pl_addr src = p->src;
	struct pl_layers layers;
	uint64_t words[2];

	if (p->link != PL_LINK_UDP) {
		const struct pl_cursor frame = pl_cursor(p->data, p->len);

		memset(&src, 0, sizeof(src));
		if (pl_layers_walk(&layers, frame, (enum pl_link)p->link, true) == PL_V_OK)
			src = layers.flow.src;
	}
	memcpy(words, src.b, sizeof(words));
	return pl_hash_mix(words[1] ^ 0x8d1f6a2b3c97e405u, pl_hash_mix(words[0], 1));
}
