/* SPDX-License-Identifier: BSD-2-Clause */
#include "raw/message.h"

#include <errno.h>

#include "base/rng.h"
#include "base/test.h"

#define ENTRIES 40

static uint8_t made[1 << 16], body[1 << 12];
static struct pl_packet packets[ENTRIES];
static size_t made_len;

static void fill(void *to, size_t n, struct pl_rng *rng)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = (uint8_t)pl_rng_u64(rng);
}

/* Makes packets of every link and of many lengths, and their entries. */
static void make(void)
{
	struct pl_rng rng;

	pl_rng_seed(&rng, 7);
	fill(body, sizeof(body), &rng);
	made_len = 0;
	for (unsigned int i = 0; i < ENTRIES; i++) {
		struct pl_packet *p = &packets[i];
		struct pl_raw_head head;

		*p = (struct pl_packet){ .data = body + i * 16,
			.len = i,
			.wire_len = i + i % 3,
			.ts_ns = pl_rng_u64(&rng),
			.link = (uint8_t)(i % PL_LINK_MAX),
			.out = i % 2,
			.sport = (uint16_t)pl_rng_u64(&rng),
			.dport = (uint16_t)pl_rng_u64(&rng),
			.clock = (uint8_t)(i % PL_STAMP_KINDS),
			.gso = (uint8_t)(i % (PL_GSO_OTHER + 1)) };
		if (p->link == PL_LINK_UDP) {
			fill(p->src.b, sizeof(p->src.b), &rng);
			fill(p->dst.b, sizeof(p->dst.b), &rng);
		}
		pl_raw_head_make(&head, p);
		memset(made + made_len, 0, pl_raw_entry_size(p->len));
		memcpy(made + made_len, &head, sizeof(head));
		memcpy(made + made_len + sizeof(head), p->data, p->len);
		made_len += pl_raw_entry_size(p->len);
	}
}

static bool same(const struct pl_packet *a, const struct pl_packet *b)
{
	return a->len == b->len && a->wire_len == b->wire_len && a->ts_ns == b->ts_ns &&
	       a->link == b->link && a->out == b->out && a->sport == b->sport &&
	       a->dport == b->dport && a->clock == b->clock && a->gso == b->gso &&
	       pl_addr_equal(&a->src, &b->src) && pl_addr_equal(&a->dst, &b->dst) &&
	       memcmp(a->data, b->data, a->len) == 0;
}

static void round_trip(void)
{
	struct pl_packet p;
	unsigned int n = 0, equal = 0;
	size_t at = 0;
	int r;

	while ((r = pl_raw_next(made, made_len, &at, &p)) == 1 && n < ENTRIES)
		equal += same(&p, &packets[n++]);
	eq(r, 0, "the end is told");
	eq(n, ENTRIES, "as many packets as there were");
	eq(equal, ENTRIES, "each is what it was");
	eq(pl_raw_entry_size(0), 64, "an empty packet");
	eq(pl_raw_entry_size(1), 72, "entries are multiples of 8 bytes");
}

/* Cut at every byte: whole packets are read; an error unless the cut is between two. */
static void cut(void)
{
	unsigned int wrong = 0;

	for (size_t len = 0; len < made_len; len++) {
		/* A copy of exactly this length, so that the sanitizer sees reads beyond it. */
		uint8_t *copy = malloc(len + 1);
		struct pl_packet p;
		size_t at = 0, whole = 0;
		unsigned int n = 0;
		int r;

		memcpy(copy, made, len);
		while ((r = pl_raw_next(copy, len, &at, &p)) == 1)
			n++;
		for (unsigned int i = 0; i < n; i++)
			whole += pl_raw_entry_size(packets[i].len);
		wrong += whole != at || r != (at == len ? 0 : -EBADMSG) ||
			 len - at >= pl_raw_entry_size(packets[n].len);
		free(copy);
	}
	eq(wrong, 0, "cut at any byte");
}

static void refused(const char *what, size_t offset, uint8_t value)
{
	uint8_t copy[128];
	struct pl_packet p;
	size_t at = 0;

	memcpy(copy, made + pl_raw_entry_size(0), sizeof(copy));
	eq(pl_raw_next(copy, 72, &at, &p), 1, "an entry");
	copy[offset] = value;
	at = 0;
	eq(pl_raw_next(copy, 72, &at, &p), -EBADMSG, "%s is refused", what);
	eq(at, 0, "and not passed over");
}

static void hashes(void)
{
	/* Ethernet, IPv4, UDP from 10.0.0.1 */
	static const uint8_t frame[46] = { [12] = 8,
		[14] = 0x45,
		[17] = 32,
		[22] = 64,
		[23] = 17,
		[26] = 10,
		[29] = 1,
		[30] = 10,
		[33] = 2,
		[34] = 1,
		[36] = 2,
		[39] = 12 };
	struct pl_packet a = { .link = PL_LINK_UDP, .sport = 1 }, b;
	uint8_t other[sizeof(frame)];

	a.src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 1 });
	b = a;
	b.sport = 2;
	b.ts_ns = 5;
	eq(pl_raw_hash(&a), pl_raw_hash(&b), "packets of one source go together");
	b.src.b[15] = 2;
	ok(pl_raw_hash(&a) != pl_raw_hash(&b), "those of another elsewhere");
	b = (struct pl_packet){ .link = PL_LINK_ETHERNET, .data = frame, .len = sizeof(frame) };
	eq(pl_raw_hash(&a), pl_raw_hash(&b), "a frame has the source that its datagram has");
	memcpy(other, frame, sizeof(frame));
	other[29] = 2;
	b.data = other;
	ok(pl_raw_hash(&a) != pl_raw_hash(&b), "frames of another source go elsewhere");
	b.len = 3;
	(void)pl_raw_hash(&b); /* any bytes must have a hash */
}

int main(void)
{
	make();
	round_trip();
	cut();
	refused("a length beyond the end", 44, 200);
	refused("a length that none has", 46, 255);
	refused("a link that is none", 52, PL_LINK_MAX);
	refused("a direction that is none", 53, 2);
	refused("a clock that is none", 54, PL_STAMP_KINDS);
	refused("an offload that is none", 55, PL_GSO_OTHER + 1);
	refused("a byte of a later version", 63, 1);
	hashes();
	return pl_test_done();
}
