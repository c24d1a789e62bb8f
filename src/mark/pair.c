/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses and writes mkpair/1, and keeps account of the datagrams received from a marker. */
#include "mark/pair.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "mark/packet.h"
#include "mark/period.h"
#include "wire/cursor.h"

#define MAGIC   0x31504b4du /* "MKP1" */
#define VERSION 1

const struct pl_stats pl_mark_heard_stats_list = {
	.rows =
		(const struct pl_stat[]){
#define PL_STAT(...) PL_STAT_ROW(struct pl_mark_heard_stats, __VA_ARGS__)
#include "mark/pair_heard_stats.def"
#undef PL_STAT
		},
	.n = sizeof(struct pl_mark_heard_stats) / sizeof(uint64_t),
};

/* ---- terms ---- */

struct pl_mark_terms pl_mark_terms_of(const struct pl_mark_setup *setup, uint64_t rules)
{
	return (struct pl_mark_terms){ .period_ns = setup->period_ns,
		.rules = rules,
		.colour = setup->colour,
		.second = setup->second,
		.method = (uint8_t)setup->method,
		.by = (uint8_t)setup->by,
		.place = (uint8_t)setup->place,
		.versions = (uint8_t)setup->versions };
}

static unsigned int place_of(const struct pl_mark_terms *t)
{
	return t->place == PL_MARK_IN_DST ? PL_MARK_IN_HOP : t->place;
}

uint16_t pl_mark_terms_flags(const struct pl_mark_terms *terms)
{
	const unsigned int bit = terms->colour != 0 ? (unsigned int)__builtin_ctz(terms->colour)
						    : 0,
			   second = terms->second != 0
					    ? (unsigned int)__builtin_ctz(terms->second) + 1
					    : 0;
	/* The mark has 28 possible places: nine bits in three sets of versions, and the option. */
	const unsigned int place =
		terms->place != PL_MARK_IN_HEADER ? 27 : bit * 3 + (terms->versions - 1u) % 3;

	return (uint16_t)((1 + ((place * 10 + second) * 3 + terms->by) % 63) << 10);
}

bool pl_mark_terms_fit(const struct pl_mark_terms *a, const struct pl_mark_terms *b)
{
	return a->period_ns == b->period_ns && a->method == b->method && a->by == b->by &&
	       place_of(a) == place_of(b) && a->versions == b->versions && a->colour == b->colour &&
	       a->second == b->second;
}

/* Writes a bit as --bit names it. The peer may have sent any value. */
static void format_bit(char *dst, size_t cap, const struct pl_mark_terms *t, uint32_t bit)
{
	const unsigned int n = bit != 0 && bit < 256 ? (unsigned int)__builtin_ctz(bit) : 8;
	const unsigned int both = PL_MARK_IP4 | PL_MARK_IP6;

	if (t->place != PL_MARK_IN_HEADER)
		snprintf(dst, cap, t->place == PL_MARK_IN_DST ? "altmark-dst" : "altmark");
	else if (bit == PL_MARK_RESERVED)
		snprintf(dst, cap, "ipv4-reserved");
	else if (n > 7 || bit != 1u << n)
		snprintf(dst, cap, "0x%x", bit);
	else if (n < 2)
		snprintf(dst, cap, "ecn:%u", n);
	else if (t->versions == both)
		snprintf(dst, cap, "dscp:%u", n - 2);
	else
		snprintf(dst, cap, t->versions == PL_MARK_IP4 ? "tos:%u" : "tclass:%u", n);
}

void pl_mark_terms_format(char dst[PL_MARK_TERMS_TEXT_MAX], const struct pl_mark_terms *terms)
{
	static const char *const by[] = {
		[PL_MARK_BY_FLOW] = "flow", [PL_MARK_BY_HOSTS] = "hosts", [PL_MARK_BY_NONE] = "none"
	};
	char bit[16], second[16], more[24] = "", period[PL_EXACT_TEXT_MAX];

	format_bit(bit, sizeof(bit), terms, terms->colour);
	if (terms->second != 0) {
		format_bit(second, sizeof(second), terms, terms->second);
		snprintf(more, sizeof(more), " --bit %s", second);
	}
	(void)pl_format_duration_exact(period, terms->period_ns);
	snprintf(dst, PL_MARK_TERMS_TEXT_MAX, "--method %s --bit %s%s --by %s --period %s",
		terms->method > 0 && terms->method < PL_MARK_METHOD_MAX
			? pl_mark_methods[terms->method - 1]
			: "?",
		bit, more, terms->by < sizeof(by) / sizeof(by[0]) ? by[terms->by] : "?", period);
}

/* ---- bytes ---- */

static uint16_t le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t le32(const uint8_t *p)
{
	return __builtin_bswap32(pl_be32(p));
}

static uint64_t le64(const uint8_t *p)
{
	return __builtin_bswap64(pl_be64(p));
}

/* Appends a number: little-endian as on this machine, like those of records. */
static void put(uint8_t **at, const void *value, size_t n)
{
	memcpy(*at, value, n);
	*at += n;
}

bool pl_mark_pair_parse(
	struct pl_mark_pair *ret, const uint8_t **ret_records, const void *data, size_t len)
{
	const uint8_t *p = data;

	if (len < PL_MARK_PAIR_HEADER_BYTES || le32(p) != MAGIC || p[4] != VERSION)
		return false;
	*ret = (struct pl_mark_pair){ .what = p[5],
		.count = le16(p + 6),
		.run = le32(p + 8),
		.seq = le32(p + 12),
		.oldest = le32(p + 16),
		.terms = { .period_ns = le64(p + 24),
			.rules = le64(p + 32),
			.colour = le32(p + 40),
			.second = le32(p + 44),
			.method = p[48],
			.by = p[49],
			.place = p[50],
			.versions = p[51] } };
	*ret_records = p + PL_MARK_PAIR_HEADER_BYTES;
	if (ret->what == PL_MARK_PAIR_ANSWER)
		return ret->count == 0 && len == PL_MARK_PAIR_HEADER_BYTES;
	return ret->what == PL_MARK_PAIR_RECORDS_OF && ret->count <= PL_MARK_PAIR_RECORDS &&
	       len == PL_MARK_PAIR_HEADER_BYTES + ret->count * sizeof(struct pl_mark128);
}

void pl_mark_pair_put(uint8_t dst[PL_MARK_PAIR_HEADER_BYTES], const struct pl_mark_pair *header)
{
	const struct pl_mark_terms *t = &header->terms;
	const uint8_t head[2] = { VERSION, header->what },
		      tail[4] = { t->method, t->by, t->place, t->versions };
	const uint32_t magic = MAGIC;

	memset(dst, 0, PL_MARK_PAIR_HEADER_BYTES);
	put(&dst, &magic, 4);
	put(&dst, head, 2);
	put(&dst, &header->count, 2);
	put(&dst, &header->run, 4);
	put(&dst, &header->seq, 4);
	put(&dst, &header->oldest, 4);
	dst += 4;
	put(&dst, &t->period_ns, 8);
	put(&dst, &t->rules, 8);
	put(&dst, &t->colour, 4);
	put(&dst, &t->second, 4);
	put(&dst, tail, 4);
}

/* ---- datagrams received ---- */

static uint64_t *word_of(struct pl_mark_heard *h, uint32_t seq)
{
	return &h->bits[seq % PL_MARK_HEARD_WINDOW / 64];
}

static uint64_t bit_of(uint32_t seq)
{
	return UINT64_C(1) << seq % 64;
}

/* Settles sequence numbers before base: those that were not received are lost. */
static void settle(struct pl_mark_heard *h, uint32_t base)
{
	if ((int32_t)(base - h->base) <= 0)
		return;
	for (uint32_t n = 0; h->base != base && n < PL_MARK_HEARD_WINDOW; n++, h->base++) {
		h->stats.lost += (*word_of(h, h->base) & bit_of(h->base)) == 0;
		*word_of(h, h->base) &= ~bit_of(h->base);
	}
	/* Behind the window none came. */
	h->stats.lost += base - h->base;
	h->base = base;
}

static void begin(struct pl_mark_heard *h, const struct pl_mark_pair *header)
{
	memset(h->bits, 0, sizeof(h->bits));
	h->any = true;
	h->run = header->run;
	h->base = h->top = header->oldest;
	h->stats.runs++;
}

bool pl_mark_heard(struct pl_mark_heard *h, const struct pl_mark_pair *header, bool *ret_torn)
{
	const bool anew = !h->any || h->run != header->run;
	const uint32_t seq = header->seq;
	const uint64_t lost = h->stats.lost;

	if (anew)
		begin(h, header);
	settle(h, header->oldest);
	settle(h, seq - PL_MARK_HEARD_WINDOW + 1);
	*ret_torn = anew || h->stats.lost != lost || (int32_t)(seq - h->top) > 0;
	if ((int32_t)(seq - h->base) < 0 || (*word_of(h, seq) & bit_of(seq)) != 0) {
		h->stats.duplicates++;
		return false;
	}
	*word_of(h, seq) |= bit_of(seq);
	if ((int32_t)(seq - h->top) >= 0)
		h->top = seq + 1;
	h->stats.accepted++;
	return true;
}
