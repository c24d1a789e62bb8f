/* SPDX-License-Identifier: BSD-2-Clause */
/* Damage to INT headers, their shims and stacks. */
#include "gen/malform_internal.h"

#include <string.h>

static void erase(struct pl_build *b, size_t from, size_t to)
{
	memmove(b->data + from, b->data + to, b->len - to);
	b->len -= to - from;
}

static unsigned int int_nibble(const struct pl_build *b, const struct pl_gen_damage *d)
{
	return b->data[d->md] >> 4;
}

static uint8_t *int_length(struct pl_build *b, struct pl_gen_damage *d)
{
	if (d->shim == 0 || at(b, d, d->shim, 12) == NULL) {
		d->scrapped = true;
		return NULL;
	}
	return b->data + d->shim + (int_nibble(b, d) == 2 ? 1 : 2);
}

static unsigned int hop_words(const struct pl_build *b, const struct pl_gen_damage *d)
{
	return b->data[d->md + (int_nibble(b, d) == 0 ? 1 : 2)] & 0x1f;
}

static unsigned int stack_words(const struct pl_build *b, const struct pl_gen_damage *d)
{
	size_t end = d->after;

	if (int_nibble(b, d) == 0 && end - d->stack >= 4)
		end -= 4; /* the tail; Host-INT's sequence number is left in the stack */
	return (unsigned int)(end - d->stack) / 4;
}

void pl_damage_shim_length_min(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = int_length(b, d);

	if (p != NULL)
		*p = 1;
}

void pl_damage_shim_length_max(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = int_length(b, d);
	unsigned int words, hops, fixed;

	if (p == NULL)
		return;
	/* whole hops, so that only the length is wrong */
	words = hop_words(b, d);
	fixed = int_nibble(b, d) == 0 ? 4 : 3;
	hops = words == 0 ? 0 : (255 - fixed) / words;
	*p = (uint8_t)(fixed + hops * words);
	if (int_nibble(b, d) == 0) {
		b->data[d->md + 2] = 255;
		b->data[d->md + 3] = (uint8_t)hops;
	}
}

void pl_damage_ins_count(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p != NULL)
		p[1] = (uint8_t)((p[1] + 1) & 0x1f);
}

void pl_damage_stack_odd(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = int_length(b, d);

	if (p == NULL || *p == 255 || insert(b, d, d->after, 4) == NULL) {
		d->scrapped = true;
		return;
	}
	memset(b->data + d->after, 0, 4);
	(*p)++;
}

void pl_damage_hop_count_lies(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p != NULL) {
		p[3]++;
		p[2] = 255;
	}
}

void pl_damage_hop_count_above_max(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p != NULL && p[3] > 0)
		p[2] = (uint8_t)(p[3] - 1);
	else
		d->scrapped = true;
}

/* Leaves an INT option one word of body; the words behind it become an option of an experimental
 * class, so that the Geneve header stays right. */
void pl_damage_geneve_option_short(struct pl_build *b, struct pl_gen_damage *d)
{
	static const uint8_t other[3] = { 0xff, 0xf0, 0x01 };
	uint8_t *p = at(b, d, d->shim, 16);

	if (p == NULL)
		return;
	memcpy(p + 8, other, sizeof(other));
	p[8 + 3] = (uint8_t)((p[3] & 0x1f) - 2);
	p[3] = 1;
}

void pl_damage_set_e(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p != NULL)
		p[0] |= int_nibble(b, d) == 2 ? 0x04 : 0x01;
}

void pl_damage_set_m(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p == NULL || int_nibble(b, d) == 0)
		d->scrapped = true;
	else if (int_nibble(b, d) == 2)
		p[0] |= 0x02;
	else
		p[1] |= 0x80;
}

void pl_damage_set_copy(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p != NULL)
		p[0] |= int_nibble(b, d) == 2 ? 0x08 : 0x02;
}

void pl_damage_no_hops(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = int_length(b, d);
	unsigned int words;

	if (p == NULL)
		return;
	words = stack_words(b, d);
	*p = (uint8_t)(*p - words);
	if (int_nibble(b, d) == 0)
		b->data[d->md + 3] = 0;
	erase(b, d->stack, d->stack + 4 * (size_t)words);
	d->after -= 4 * (size_t)words;
}

void pl_damage_value_missing(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->stack, 8);

	if (p != NULL)
		memset(p + 4, 0xff, 4);
}

/* Sets the clock of the newest hop one second back: its packet arrives before the previous hop sent
 * it. */
void pl_damage_clock_slow(struct pl_build *b, struct pl_gen_damage *d)
{
	const uint8_t *p = at(b, d, d->md, 12);
	struct pl_int_layout l;

	if (p == NULL || pl_int_layout_find(&l, PL_INT_V20, pl_be16(p + 4), p[2] & 0x1f, true,
				 PL_DIALECT_SPEC, PL_QUEUE_WORD_AUTO) < 0) {
		d->scrapped = true;
		return;
	}
	for (int f = PL_INT_F_INGRESS_TS; f <= PL_INT_F_EGRESS_TS; f++) {
		size_t off = d->stack + l.off[f];

		if (l.off[f] == PL_INT_NO_OFFSET || at(b, d, off, 8) == NULL)
			continue;
		pl_patch_be32(b, off, 0);
		pl_patch_be32(b, off + 4, 1000);
	}
}

void pl_damage_destination_shim(struct pl_build *b, struct pl_gen_damage *d)
{
	static const uint8_t v1[12] = { 0x02, 0, 3, 0 }, v2[12] = { 0x20, 2 };
	bool is_v2 = d->md + 4 <= b->len && int_nibble(b, d) == 2;
	uint8_t *p = insert(b, d, d->shim, 12);

	if (p == NULL)
		return;
	memcpy(p, is_v2 ? v2 : v1, 12);
	d->shim += 12;
	d->md += 12;
	d->stack += 12;
	d->after += 12;
}

/* Makes the destination-type header longer than the packet. */
void pl_damage_destination_shim_past(struct pl_build *b, struct pl_gen_damage *d)
{
	size_t shim = d->shim;

	pl_damage_destination_shim(b, d);
	if (!d->scrapped)
		b->data[shim + (b->data[shim] == 0x20 ? 1 : 2)] = 250;
}

/* Removes the latency of the newest hop; by its times it held the packet for more than a quarter of
 * an hour. */
void pl_damage_latency_huge(struct pl_build *b, struct pl_gen_damage *d)
{
	const uint8_t *p = at(b, d, d->md, 12);
	struct pl_int_layout l;

	if (p == NULL ||
		pl_int_layout_find(&l, PL_INT_V20, pl_be16(p + 4), p[2] & 0x1f, true,
			PL_DIALECT_SPEC, PL_QUEUE_WORD_AUTO) < 0 ||
		l.off[PL_INT_F_EGRESS_TS] == PL_INT_NO_OFFSET ||
		at(b, d, d->stack, 4 * (size_t)l.words) == NULL) {
		d->scrapped = true;
		return;
	}
	if (l.off[PL_INT_F_LATENCY] != PL_INT_NO_OFFSET)
		pl_patch_be32(b, d->stack + l.off[PL_INT_F_LATENCY], 0xffffffff);
	p = b->data + d->stack + l.off[PL_INT_F_EGRESS_TS];
	pl_patch_be32(b, d->stack + l.off[PL_INT_F_EGRESS_TS], pl_be32(p) + 256);
}

/* Offset behind the first hop and one word of the second. */
size_t pl_damage_inside_stack(struct pl_build *b, struct pl_gen_damage *d)
{
	if (d->shim == 0 || at(b, d, d->md, 4) == NULL)
		return 0;
	return d->stack + 4 * (size_t)hop_words(b, d) + 4;
}
