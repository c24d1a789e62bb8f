/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the senders of most datagrams. */
#include "netio/heavy.h"

#include <stddef.h>

static void count_one(struct pl_heavy_counts *c, const struct pl_addr *name)
{
	int room = -1;

	for (int i = 0; i < PL_HEAVY_ROOM; i++) {
		if (c->count[i] == 0) {
			room = i;
		} else if (pl_addr_equal(&c->name[i], name)) {
			c->count[i]++;
			return;
		}
	}
	if (room >= 0) {
		c->name[room] = *name;
		c->count[room] = 1;
		return;
	}
	/* No room: this datagram and one of each counted name cancel out (Misra and Gries). */
	for (int i = 0; i < PL_HEAVY_ROOM; i++)
		c->count[i]--;
}

void pl_heavy_add(struct pl_heavy *h, const struct pl_packet *packets, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct pl_addr *a = &packets[i].src;
		struct pl_addr network = pl_addr_source(a);

		count_one(&h->addresses, a);
		if (!pl_addr_equal(a, &network))
			count_one(&h->networks, &network);
	}
	h->sampled += n;
}

struct found {
	struct pl_prefix who;
	uint32_t count;
};

/* Inserts into the list, heaviest first; a full list drops its lightest entry. Returns the new
 * length. */
static uint32_t insert(struct found *list, uint32_t n, uint32_t cap, const struct found *f)
{
	uint32_t at = n < cap ? n++ : n;

	for (; at > 0 && list[at - 1].count < f->count; at--) {
		if (at < cap)
			list[at] = list[at - 1];
	}
	if (at < cap)
		list[at] = *f;
	return n;
}

/* Returns the network's count minus those of its addresses in the list. */
static uint32_t without(
	const struct found *list, uint32_t n, const struct pl_addr *network, uint32_t count)
{
	for (uint32_t i = 0; i < n; i++) {
		if (list[i].who.bits == 128 && pl_addr_alike(&list[i].who.addr, network, 64))
			count -= list[i].count < count ? list[i].count : count;
	}
	return count;
}

uint32_t pl_heavy_senders(const struct pl_heavy *h, struct pl_prefix *ret, uint32_t cap)
{
	struct found list[2 * PL_HEAVY_PART];
	const uint32_t room = sizeof(list) / sizeof(list[0]);
	uint32_t n = 0, addresses;

	for (int i = 0; i < PL_HEAVY_ROOM; i++) {
		struct found f = { { h->addresses.name[i], 128 }, h->addresses.count[i] };

		if (f.count > 0 && f.count >= h->sampled / PL_HEAVY_PART)
			n = insert(list, n, room, &f);
	}
	addresses = n;
	for (int i = 0; i < PL_HEAVY_ROOM; i++) {
		struct found f = { { h->networks.name[i], 64 },
			without(list, addresses, &h->networks.name[i], h->networks.count[i]) };

		if (f.count > 0 && f.count >= h->sampled / PL_HEAVY_PART)
			n = insert(list, n, room, &f);
	}
	for (uint32_t i = 0; i < n && i < cap; i++)
		ret[i] = list[i].who;
	return n < cap ? n : cap;
}
