/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples packets by hash, and computes delays between the samples of two points. */
#include "mark/select.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Mixes three words (BOB): nine steps that differ in their shift, of which every second of three is
 * to the left. */
static void stir(uint32_t w[3])
{
	static const uint8_t distances[9] = { 13, 8, 13, 12, 16, 5, 3, 10, 15 };

	for (unsigned int i = 0; i < 9; i++) {
		uint32_t *x = &w[i % 3];
		const uint32_t y = w[(i + 1) % 3], z = w[(i + 2) % 3];

		*x = *x - y - z;
		*x ^= i % 3 == 1 ? z << distances[i] : z >> distances[i];
	}
}

uint32_t pl_mark_bob(const uint8_t *bytes, uint32_t n, uint32_t start)
{
	uint32_t w[3] = { 0x9e3779b9, 0x9e3779b9, start };
	uint32_t left = n;

	for (; left >= 12; left -= 12, bytes += 12) {
		for (unsigned int i = 0; i < 3; i++)
			w[i] += le32(bytes + 4 * i);
		stir(w);
	}
	w[2] += n;
	/* The lowest byte of the third word is for the length. */
	for (uint32_t i = 0; i < left; i++)
		w[i / 4] += (uint32_t)bytes[i] << 8 * (i < 8 ? i % 4 : i % 4 + 1);
	stir(w);
	return w[2];
}

/* Leaves a checksum out that hardware writes: a capture at the sender has it unfinished. That of TCP is
 * behind the bytes taken. */
static void clear_checksum(uint8_t *transport, uint32_t n, unsigned int proto)
{
	if (proto == IPPROTO_UDP && n >= 8)
		memset(transport + 6, 0, 2);
	else if (proto == IPPROTO_SCTP && n >= 12)
		memset(transport + 8, 0, 4);
}

uint32_t pl_mark_select_hash(const struct pl_layers *layers, uint32_t start)
{
	const uint8_t *ip = layers->network;
	const size_t there = pl_cursor_left(&layers->transport);
	struct pl_cursor transport = layers->transport;
	const uint32_t payload =
		there < PL_MARK_PAYLOAD_BYTES ? (uint32_t)there : PL_MARK_PAYLOAD_BYTES;
	uint8_t bytes[12 + 40 + PL_MARK_PAYLOAD_BYTES];
	uint32_t n = 0;
	const uint8_t *p;

	if (layers->ip_version == 4) {
		memcpy(bytes, ip + 4, 4); /* identification, flags, fragment offset */
		bytes[2] &= 0x7f;
		memcpy(bytes + 4, ip + 12, 8);
		n = 12;
	} else {
		memcpy(bytes, ip + 8, 32);
		if ((layers->flags & PL_LAYERS_ROUTED) != 0)
			memcpy(bytes + 16, layers->last_segment, 16);
		bytes[32] = layers->flow.proto;
		n = 33;
	}
	p = pl_cursor_take(&transport, payload);
	if (p != NULL) {
		memcpy(bytes + n, p, payload);
		if ((layers->flags & PL_LAYERS_FRAGMENT) == 0)
			clear_checksum(bytes + n, payload, layers->flow.proto);
	}
	return pl_mark_bob(bytes, n + (p != NULL ? payload : 0), start);
}

void pl_mark_samples_init(struct pl_mark_samples *s, struct pl_mark_sample *samples, uint32_t room)
{
	*s = (struct pl_mark_samples){ .samples = samples, .room = room };
}

static bool chosen(uint32_t hash, uint32_t bits)
{
	return bits == 0 || hash << (32 - bits) == 0;
}

static void thin(struct pl_mark_samples *s, uint32_t bits)
{
	uint32_t kept = 0;

	s->bits = bits;
	for (uint32_t i = 0; i < s->n; i++) {
		if (chosen(s->samples[i].hash, bits))
			s->samples[kept++] = s->samples[i];
	}
	s->n = kept;
}

void pl_mark_samples_add(struct pl_mark_samples *s, uint32_t hash, uint64_t time_ns)
{
	if (!chosen(hash, s->bits))
		return;
	while (s->n == s->room && s->bits < 32)
		thin(s, s->bits + 1);
	if (s->n < s->room && chosen(hash, s->bits))
		s->samples[s->n++] = (struct pl_mark_sample){ hash, time_ns };
}

static int compare(const void *a, const void *b)
{
	const struct pl_mark_sample *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static int compare_ns(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorts the samples, and drops those whose hash occurs more than once. */
static void make_unique(struct pl_mark_samples *s)
{
	uint32_t kept = 0, i = 0;

	qsort(s->samples, s->n, sizeof(*s->samples), compare);
	while (i < s->n) {
		uint32_t same = i + 1;

		while (same < s->n && s->samples[same].hash == s->samples[i].hash)
			same++;
		if (same == i + 1)
			s->samples[kept++] = s->samples[i];
		i = same;
	}
	s->n = kept;
}

void pl_mark_samples_match(struct pl_mark_matched *ret, int64_t *ret_ns,
	struct pl_mark_samples *from, struct pl_mark_samples *to)
{
	const uint32_t bits = from->bits > to->bits ? from->bits : to->bits;
	uint32_t k = 0;

	thin(from, bits);
	thin(to, bits);
	make_unique(from);
	qsort(to->samples, to->n, sizeof(*to->samples), compare);
	*ret = (struct pl_mark_matched){ .bits = bits, .sampled = from->n };
	for (uint32_t i = 0; i < from->n; i++) {
		const uint32_t hash = from->samples[i].hash;
		uint32_t same = 0;

		while (k < to->n && to->samples[k].hash < hash)
			k++;
		while (k + same < to->n && to->samples[k + same].hash == hash)
			same++;
		ret->lost += same == 0;
		ret->doubles += same > 1;
		if (same == 1)
			ret_ns[ret->matched++] =
				(int64_t)(to->samples[k].time_ns - from->samples[i].time_ns);
	}
	qsort(ret_ns, ret->matched, sizeof(*ret_ns), compare_ns);
}

uint32_t pl_mark_samples_delays(
	int64_t *ret_ns, struct pl_mark_samples *from, struct pl_mark_samples *to)
{
	struct pl_mark_matched m;

	pl_mark_samples_match(&m, ret_ns, from, to);
	return m.matched;
}
