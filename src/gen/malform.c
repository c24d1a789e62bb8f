/* SPDX-License-Identifier: BSD-2-Clause */
#include "gen/malform.h"

#include <string.h>

#include "wire/int.h"
#include "wire/layers.h"

/* The bytes written so far are the program's own, but a row may be asked of a packet that lacks what it
 * damages: then the packet stays whole and the row says so. */
static uint8_t *at(struct pl_build *b, struct pl_gen_damage *d, size_t offset, size_t n)
{
	if (b->full || offset > b->len || n > b->len - offset) {
		d->scrapped = true;
		return NULL;
	}
	return b->data + offset;
}

/* Makes room for n bytes at an offset. */
static uint8_t *insert(struct pl_build *b, struct pl_gen_damage *d, size_t offset, size_t n)
{
	size_t tail = b->len - offset;

	if (at(b, d, offset, 0) == NULL || pl_build_reserve(b, n) == NULL) {
		d->scrapped = true;
		return NULL;
	}
	memmove(b->data + offset + n, b->data + offset, tail);
	return b->data + offset;
}

static void erase(struct pl_build *b, size_t from, size_t to)
{
	memmove(b->data + from, b->data + to, b->len - to);
	b->len -= to - from;
}

static bool is_ipv4(const struct pl_build *b, size_t l3)
{
	return l3 < b->len && b->data[l3] >> 4 == 4;
}

static void fix_ipv4_checksum(uint8_t *ip)
{
	uint16_t sum;

	ip[10] = ip[11] = 0;
	sum = pl_checksum_fold(pl_checksum_add(0, ip, 20));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

/* ---- INT ---- */

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
		end -= 4; /* the tail; Host-INT's sequence number is left to the stack */
	return (unsigned int)(end - d->stack) / 4;
}

static void shim_type(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->shim, 1);

	if (p != NULL)
		*p = 0x77;
}

static void shim_length_min(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = int_length(b, d);

	if (p != NULL)
		*p = 1;
}

static void shim_length_max(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = int_length(b, d);
	unsigned int words, hops, fixed;

	if (p == NULL)
		return;
	/* whole hops, so that nothing but the length is wrong */
	words = hop_words(b, d);
	fixed = int_nibble(b, d) == 0 ? 4 : 3;
	hops = words == 0 ? 0 : (255 - fixed) / words;
	*p = (uint8_t)(fixed + hops * words);
	if (int_nibble(b, d) == 0) {
		b->data[d->md + 2] = 255;
		b->data[d->md + 3] = (uint8_t)hops;
	}
}

static void int_version(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 1);

	if (p != NULL)
		*p = (uint8_t)(0x70 | (*p & 0xf));
}

static void set_hop_ml(struct pl_build *b, struct pl_gen_damage *d, uint8_t v)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p != NULL)
		p[2] = v;
}

static void hop_ml_zero(struct pl_build *b, struct pl_gen_damage *d)
{
	set_hop_ml(b, d, 0);
}

static void hop_ml_wrong(struct pl_build *b, struct pl_gen_damage *d)
{
	set_hop_ml(b, d, 31);
}

static void ins_count(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p != NULL)
		p[1] = (uint8_t)((p[1] + 1) & 0x1f);
}

static void stack_odd(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = int_length(b, d);

	if (p == NULL || *p == 255 || insert(b, d, d->after, 4) == NULL) {
		d->scrapped = true;
		return;
	}
	memset(b->data + d->after, 0, 4);
	(*p)++;
}

static void hop_count_lies(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p != NULL) {
		p[3]++;
		p[2] = 255;
	}
}

static void hop_count_above_max(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p != NULL && p[3] > 0)
		p[2] = (uint8_t)(p[3] - 1);
	else
		d->scrapped = true;
}

static void tail_wrong(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->after - 4, 4);

	if (p != NULL)
		p[0] = 0x99; /* a protocol that INT cannot be between */
}

/* An INT option with one word of body; the words behind it become an option of an experimental class, so that
 * the Geneve header stays right. */
static void geneve_option_short(struct pl_build *b, struct pl_gen_damage *d)
{
	static const uint8_t other[3] = { 0xff, 0xf0, 0x01 };
	uint8_t *p = at(b, d, d->shim, 16);

	if (p == NULL)
		return;
	memcpy(p + 8, other, sizeof(other));
	p[8 + 3] = (uint8_t)((p[3] & 0x1f) - 2);
	p[3] = 1;
}

static void set_e(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p != NULL)
		p[0] |= int_nibble(b, d) == 2 ? 0x04 : 0x01;
}

static void set_m(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p == NULL || int_nibble(b, d) == 0)
		d->scrapped = true;
	else if (int_nibble(b, d) == 2)
		p[0] |= 0x02;
	else
		p[1] |= 0x80;
}

static void set_copy(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->md, 4);

	if (p != NULL)
		p[0] |= int_nibble(b, d) == 2 ? 0x08 : 0x02;
}

static void no_hops(struct pl_build *b, struct pl_gen_damage *d)
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

static void value_missing(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->stack, 8);

	if (p != NULL)
		memset(p + 4, 0xff, 4);
}

/* The clock of the newest hop in the stack is one second slow: its packet comes in before the previous hop
 * let it go. */
static void clock_slow(struct pl_build *b, struct pl_gen_damage *d)
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

static void destination_shim(struct pl_build *b, struct pl_gen_damage *d)
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

/* The same header, longer than what is there. */
static void destination_shim_past(struct pl_build *b, struct pl_gen_damage *d)
{
	size_t shim = d->shim;

	destination_shim(b, d);
	if (!d->scrapped)
		b->data[shim + (b->data[shim] == 0x20 ? 1 : 2)] = 250;
}

/* The newest hop does not know its latency, and its times say that it held the packet for more than a quarter
 * of an hour. */
static void latency_huge(struct pl_build *b, struct pl_gen_damage *d)
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

/* The form alone is what the row is about. */
static void nothing(struct pl_build *b, struct pl_gen_damage *d)
{
	(void)b;
	(void)d;
}

/* ---- the inner packet of a report ---- */

static void cut_to(struct pl_build *b, struct pl_gen_damage *d, size_t len)
{
	if (len >= b->len || len == 0)
		d->scrapped = true;
	else
		b->len = len;
}

/* Behind the first hop and one word of the second. */
static size_t inside_stack(struct pl_build *b, struct pl_gen_damage *d)
{
	if (d->shim == 0 || at(b, d, d->md, 4) == NULL)
		return 0;
	return d->stack + 4 * (size_t)hop_words(b, d) + 4;
}

static void inner_cut_in_stack(struct pl_build *b, struct pl_gen_damage *d)
{
	cut_to(b, d, inside_stack(b, d));
}

static void inner_cut_in_l4(struct pl_build *b, struct pl_gen_damage *d)
{
	cut_to(b, d, d->inner_l3 + (is_ipv4(b, d->inner_l3) ? 20 : 40));
}

static void inner_ip_version(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->inner_l3, 1);

	if (p != NULL)
		*p = 0x75;
}

static void inner_garbage(struct pl_build *b, struct pl_gen_damage *d)
{
	if (at(b, d, d->inner, 14) != NULL)
		memset(b->data + d->inner, 0xee, b->len - d->inner);
}

static void inner_fragment(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->inner_l3, 20);

	if (p == NULL || p[0] != 0x45) {
		d->scrapped = true;
		return;
	}
	p[6] = 0x00;
	p[7] = 0x10; /* 128 bytes into the packet */
	fix_ipv4_checksum(p);
}

/* ---- reports ---- */

static void report_version(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->payload, 4);

	if (p != NULL)
		p[0] = (uint8_t)(0x70 | (p[0] & 0xf));
}

static void report_short(struct pl_build *b, struct pl_gen_damage *d)
{
	cut_to(b, d, d->payload + 6);
}

static void report_proto_05(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->payload, 4);

	if (p != NULL)
		p[0] = (uint8_t)((p[0] & 0xf0) | 9);
}

static void report_proto_10(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->payload, 4);

	if (p != NULL)
		p[1] = (uint8_t)((p[1] & 0x1f) | 5 << 5);
}

static void report_length_max(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->individual, 4);

	if (p == NULL || b->len - d->individual >= 4 * 255)
		d->scrapped = true;
	else
		p[1] = 254;
}

static void report_md_length_max(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->individual, 4);

	if (p == NULL || p[1] == 255)
		d->scrapped = true;
	else
		p[2] = p[1];
}

static void report_md_length_min(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->individual, 4);

	if (p != NULL)
		p[2] = 0;
}

static void report_tlv(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->individual, 4), *tlv = at(b, d, d->inner, 4);

	if (p == NULL || tlv == NULL)
		return;
	p[0] = (uint8_t)((p[0] & 0xf0) | 1);
	tlv[0] = 0x20; /* IPv4 */
	tlv[1] = 200;
}

static void report_length_lies(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->payload, 4);

	if (p != NULL)
		p[0] = (uint8_t)((p[0] & 0xf0) | 1);
}

/* An individual report of type INT whose lengths are 0, as one BMv2 exporter sends it. */
static void report_length_zero(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = insert(b, d, d->individual + 4, 8);

	if (p == NULL)
		return;
	memset(p, 0, 8);
	p[-4] = (uint8_t)(0x10 | (p[-4] & 0x0f));
	p[-3] = p[-2] = 0;
	d->inner += 8;
}

static void report_version_20_lies(struct pl_build *b, struct pl_gen_damage *d)
{
	report_length_zero(b, d);
	if (!d->scrapped)
		b->data[d->payload] = (uint8_t)(0x10 | (b->data[d->payload] & 0x0f));
}

static void report_version_05_lies(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->payload, 4);

	if (p != NULL)
		p[0] = (uint8_t)(0x10 | (p[0] & 0xf));
}

static void report_type_reserved(struct pl_build *b, struct pl_gen_damage *d)
{
	static const uint8_t reserved[8] = { 0x50, 1, 0, 0 };

	if (at(b, d, d->individual, 4) == NULL || b->data[d->individual + 1] == 255) {
		d->scrapped = true;
		return;
	}
	pl_put(b, reserved, sizeof(reserved));
}

static void report_ds(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->individual, 12);

	if (p == NULL || p[1] >= 253 || insert(b, d, d->inner, 4) == NULL) {
		d->scrapped = true;
		return;
	}
	memset(b->data + d->inner, 0x11, 4);
	p[1]++;
	p[2]++;
	d->inner += 4;
}

static void inner_type_lies(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->individual, 4);

	if (p != NULL)
		p[0] = (uint8_t)((p[0] & 0xf0) | 4);
}

static void f_bit_lies(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->payload, 4);

	if (p == NULL)
		return;
	switch (p[0] >> 4) {
	case 0:
		p[1] &= (uint8_t)~0x20;
		break;
	case 1:
		p[3] &= (uint8_t)~0x40;
		break;
	default:
		p = at(b, d, d->individual, 4);
		if (p != NULL)
			p[3] &= (uint8_t)~0x20;
		break;
	}
}

/* ---- frames ---- */

static void frame_short(struct pl_build *b, struct pl_gen_damage *d)
{
	d->wire_len = (uint32_t)b->len;
	cut_to(b, d, d->frame_l3 + 10);
}

static void frame_cut_in_stack(struct pl_build *b, struct pl_gen_damage *d)
{
	d->wire_len = (uint32_t)b->len;
	cut_to(b, d, inside_stack(b, d));
}

static void frame_ethertype(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->frame_l3 - 2, 2);

	if (p != NULL) {
		p[0] = 0x88; /* LLDP */
		p[1] = 0xcc;
	}
}

static void frame_ip_version(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->frame_l3, 1);

	if (p != NULL)
		*p = (uint8_t)(0x70 | (*p & 0xf));
}

static void frame_ip_length(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->frame_l3, 20);

	if (p == NULL || p[0] >> 4 != 4)
		d->scrapped = true;
	else
		p[0] = 0x44;
}

/* A Hop-by-Hop header that is longer than the packet. */
static void frame_ip_options(struct pl_build *b, struct pl_gen_damage *d)
{
	static const uint8_t hop_by_hop[8] = { PL_IP_UDP, 255, 0x1e, 4 };
	uint8_t *p = at(b, d, d->frame_l3, 40);
	unsigned int length;

	if (p == NULL || p[0] >> 4 != 6 || insert(b, d, d->frame_l3 + 40, 8) == NULL) {
		d->scrapped = true;
		return;
	}
	memcpy(p + 40, hop_by_hop, 8);
	length = pl_be16(p + 4) + 8u;
	p[4] = (uint8_t)(length >> 8);
	p[5] = (uint8_t)length;
	p[6] = PL_IP_HOPOPTS;
}

static void frame_l4_length(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->frame_l3 + (is_ipv4(b, d->frame_l3) ? 20 : 40), 8);

	if (p != NULL) {
		p[4] = 0;
		p[5] = 4;
	}
}

/* IPv4 in IPv4 in IPv4 …, deeper than anybody needs. */
static void frame_nesting(struct pl_build *b, struct pl_gen_damage *d)
{
	for (unsigned int i = 0; i < PL_NESTING_MAX + 1; i++) {
		uint8_t *p = at(b, d, d->frame_l3, 20);
		unsigned int length;

		if (p == NULL || p[0] != 0x45 || insert(b, d, d->frame_l3, 20) == NULL) {
			d->scrapped = true;
			return;
		}
		memcpy(p, p + 20, 20);
		length = pl_be16(p + 2) + 20u;
		p[2] = (uint8_t)(length >> 8);
		p[3] = (uint8_t)length;
		p[9] = PL_IP_IPIP;
		fix_ipv4_checksum(p);
	}
}

/* VXLAN-GPE of a version that does not exist. */
static void tunnel_version(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->frame_l3 + (is_ipv4(b, d->frame_l3) ? 20 : 40) + 8, 8);

	if (p != NULL)
		p[0] |= 0x30;
}

/* ---- IOAM: option type, length, reserved, IOAM option type, then the body ---- */

static uint8_t *ioam(struct pl_build *b, struct pl_gen_damage *d, size_t n)
{
	if (d->ioam == 0) {
		d->scrapped = true;
		return NULL;
	}
	return at(b, d, d->ioam, n);
}

/* Makes the option n bytes long (type and length not counted); what is left of it becomes padding. */
static void ioam_shorten(struct pl_build *b, struct pl_gen_damage *d, uint8_t n)
{
	uint8_t *p = ioam(b, d, 4);
	uint8_t left;

	if (p == NULL || p[1] < n + 2) {
		d->scrapped = true;
		return;
	}
	left = (uint8_t)(p[1] - n);
	p[1] = n;
	p += 2 + n;
	p[0] = 1; /* PadN */
	p[1] = (uint8_t)(left - 2);
	memset(p + 2, 0, left - 2u);
}

static void ioam_short(struct pl_build *b, struct pl_gen_damage *d)
{
	ioam_shorten(b, d, 4);
}

static void ioam_length(struct pl_build *b, struct pl_gen_damage *d)
{
	const uint8_t *p = ioam(b, d, 4);

	if (p != NULL)
		ioam_shorten(b, d, (uint8_t)(p[1] - 4));
}

static void ioam_option(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 4);

	if (p != NULL)
		p[3] = 9;
}

static void ioam_integrity(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 4);

	if (p != NULL)
		p[3] = (uint8_t)(64 + p[3]);
}

static void ioam_node_len(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 12);

	if (p != NULL)
		p[6] = (uint8_t)(p[6] + 0x08);
}

static void ioam_remaining(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 12);

	if (p != NULL)
		p[7] |= 0x7f;
}

/* One word less than the nodes take. */
static void ioam_walk(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 12);

	if (p == NULL || (p[7] & 0x7f) == 0)
		d->scrapped = true;
	else
		p[7]--;
}

static void ioam_flag(struct pl_build *b, struct pl_gen_damage *d, unsigned int flag)
{
	uint8_t *p = ioam(b, d, 12);

	if (p != NULL) {
		p[6] |= (uint8_t)(flag >> 1);
		p[7] |= (uint8_t)((flag & 1) << 7);
	}
}

static void ioam_overflow(struct pl_build *b, struct pl_gen_damage *d)
{
	ioam_flag(b, d, PL_IOAM_OVERFLOW);
}

static void ioam_loopback(struct pl_build *b, struct pl_gen_damage *d)
{
	ioam_flag(b, d, PL_IOAM_LOOPBACK);
}

static void ioam_active(struct pl_build *b, struct pl_gen_damage *d)
{
	ioam_flag(b, d, PL_IOAM_ACTIVE);
}

static void ioam_flag_unassigned(struct pl_build *b, struct pl_gen_damage *d)
{
	ioam_flag(b, d, 1);
}

static void ioam_dex_legacy(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 12);

	if (p != NULL)
		p[7] = 0x03;
}

static void ioam_dex_flag(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 12);

	if (p != NULL)
		p[6] |= 0x01;
}

static void ioam_pot_flag(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 8);

	if (p != NULL)
		p[7] |= 0x80;
}

/* The fraction of an edge-to-edge option, its last word, in a format that knows a million of them. */
static void ioam_time(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 4);

	if (p != NULL && at(b, d, d->ioam, 2u + p[1]) != NULL)
		memset(p + 2 + p[1] - 4, 0xf0, 4);
}

static void ioam_sequence(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 16);

	if (p == NULL || (p[6] & 0x80) == 0)
		d->scrapped = true;
	else
		p[8] = 1;
}

/* An IPv6 option that is longer than its header. */
static void ioam_overrun(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 4);

	if (p != NULL)
		p[1] = 255;
}

/* clang-format off */
#define IOAM(kinds) { .ioam = (kinds), .frames = true }
#define NOTE(id) PL_V_OK, PL_NOTE_BIT(id)
#define L4 .carrier = PL_GEN_UDP
static const struct pl_malform rows[] = {
	/* INT; needs.mode so that there is a stack */
	{ "shim_type", "shim type 7", { L4, .mode = PL_GEN_MD }, PL_V_SHIM_TYPE, 0, PL_MALFORM_INT, shim_type, .hides = true },
	{ "shim_length_min", "shim length 1", { L4, .mode = PL_GEN_MD }, PL_V_SHIM_LENGTH_MIN, 0, PL_MALFORM_INT, shim_length_min },
	{ "shim_length_max", "shim length past the packet", { L4, .mode = PL_GEN_MD }, PL_V_SHIM_LENGTH_MAX, 0, PL_MALFORM_INT, shim_length_max },
	{ "int_version", "metadata header of version 7", { L4, .mode = PL_GEN_MD }, PL_V_INT_VERSION, 0, PL_MALFORM_INT, int_version, .hides = true },
	{ "hop_ml_zero", "hop length 0", { L4, .version = PL_GEN_INT_V21, .mode = PL_GEN_MD }, PL_V_INT_HOP_ML, 0, PL_MALFORM_INT, hop_ml_zero },
	{ "hop_ml_wrong", "hop length that fits no layout of the bitmap", { L4, .version = PL_GEN_INT_V10, .mode = PL_GEN_MD }, PL_V_INT_HOP_ML, 0, PL_MALFORM_INT, hop_ml_wrong },
	{ "ins_count", "v0.5 instruction count one too high", { L4, .version = PL_GEN_INT_V05, .mode = PL_GEN_MD }, PL_V_INT_INS_COUNT, 0, PL_MALFORM_INT, ins_count },
	{ "stack_words", "v1.0 stack of one word too many", { L4, .version = PL_GEN_INT_V10, .mode = PL_GEN_MD }, PL_V_INT_STACK_WORDS, 0, PL_MALFORM_INT, stack_odd },
	{ "stack_words_21", "v2.1 stack of one word too many, without a domain id", { L4, .version = PL_GEN_INT_V21, .mode = PL_GEN_MD }, PL_V_INT_STACK_WORDS, 0, PL_MALFORM_INT, stack_odd },
	{ "hop_count", "v0.5 hop count one too high", { L4, .version = PL_GEN_INT_V05, .mode = PL_GEN_MD }, PL_V_INT_HOP_COUNT, 0, PL_MALFORM_INT, hop_count_lies },
	{ "hop_count_max", "v0.5 hop count above its maximum", { L4, .version = PL_GEN_INT_V05, .mode = PL_GEN_MD }, PL_V_INT_HOP_COUNT, 0, PL_MALFORM_INT, hop_count_above_max },
	{ "int_tail", "v0.5 tail of an impossible protocol", { L4, .version = PL_GEN_INT_V05, .mode = PL_GEN_MD }, PL_V_INT_TAIL, 0, PL_MALFORM_INT, tail_wrong },
	{ "geneve_option", "Geneve INT option of one word", { .report = PL_GEN_REPORT_NONE, .carrier = PL_GEN_GENEVE, .mode = PL_GEN_MD, .frames = true }, PL_V_INT_GENEVE_OPTION, 0, PL_MALFORM_INT, geneve_option_short },
	{ "hop_limit", "E set", { .mode = PL_GEN_MD }, NOTE(HOP_LIMIT), PL_MALFORM_INT, set_e },
	{ "mtu_limit", "M set", { .version = PL_GEN_INT_V21, .mode = PL_GEN_MD }, NOTE(MTU_LIMIT), PL_MALFORM_INT, set_m },
	{ "mtu_limit_10", "M set, v1.0", { .version = PL_GEN_INT_V10, .mode = PL_GEN_MD }, NOTE(MTU_LIMIT), PL_MALFORM_INT, set_m },
	{ "copy", "C or D set", { .mode = PL_GEN_MD }, NOTE(COPY), PL_MALFORM_INT, set_copy },
	{ "no_hops", "an empty stack", { L4, .mode = PL_GEN_MD }, NOTE(NO_HOPS), PL_MALFORM_INT, no_hops },
	{ "reserved_bits", "reserved instruction bits", { .mode = PL_GEN_MD, .bitmap = 0x0060 }, NOTE(RESERVED_BITS), PL_MALFORM_INT, nothing },
	{ "values_missing", "a value of all ones", { .mode = PL_GEN_MD }, NOTE(VALUES_MISSING), PL_MALFORM_INT, value_missing },
	{ "destination_shim", "a destination-type header before the hop-by-hop one", { L4, .mode = PL_GEN_MD }, NOTE(DESTINATION_SHIM), PL_MALFORM_INT, destination_shim },
	{ "destination_shim_length", "a destination-type header past the packet", { L4, .mode = PL_GEN_MD }, PL_V_SHIM_LENGTH_MAX, 0, PL_MALFORM_INT, destination_shim_past, .hides = true },
	{ "latency_implausible", "times of a hop a quarter of an hour apart", { L4, .version = PL_GEN_INT_V21, .mode = PL_GEN_MD, .sink = PL_GEN_SINK_STACK, .bitmap = 0x0c00 }, NOTE(LATENCY_IMPLAUSIBLE), PL_MALFORM_INT, latency_huge },
	{ "ds_unknown", "domain-specific words of an unknown domain", { .version = PL_GEN_INT_V21, .mode = PL_GEN_MD, .ds_words = 2 }, NOTE(DS_UNKNOWN), PL_MALFORM_INT, nothing },
	{ "source_metadata", "source-only domain-specific words", { .version = PL_GEN_INT_V21, .mode = PL_GEN_MD, .source_words = 2 }, NOTE(SOURCE_METADATA), PL_MALFORM_INT, nothing },
	{ "clock_skewed", "a node whose clock is far behind", { .report = PL_GEN_REPORT_V20, .version = PL_GEN_INT_V21, .mode = PL_GEN_MD, .sink = PL_GEN_SINK_STACK, L4 }, NOTE(CLOCK_SKEWED), PL_MALFORM_INT, clock_slow },
	/* reports */
	{ "report_version", "report of version 7", { .report = PL_GEN_REPORT_V10 }, PL_V_REPORT_VERSION, 0, PL_MALFORM_REPORT, report_version },
	{ "report_short", "report cut inside its header", { .report = PL_GEN_REPORT_V10 }, PL_V_REPORT_SHORT, 0, PL_MALFORM_REPORT, report_short },
	{ "report_proto_05", "v0.5 next protocol 9", { .report = PL_GEN_REPORT_V05 }, PL_V_REPORT_PROTO, 0, PL_MALFORM_REPORT, report_proto_05 },
	{ "report_proto", "v1.0 next protocol 5", { .report = PL_GEN_REPORT_V10 }, PL_V_REPORT_PROTO, 0, PL_MALFORM_REPORT, report_proto_10 },
	{ "report_length", "v2.0 report length past the datagram", { .report = PL_GEN_REPORT_V20 }, PL_V_REPORT_LENGTH, 0, PL_MALFORM_REPORT, report_length_max },
	{ "report_md_length", "v2.0 metadata length past the report", { .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_HEADER }, PL_V_REPORT_MD_LENGTH, 0, PL_MALFORM_REPORT, report_md_length_max },
	{ "report_md_bits", "v2.0 metadata length 0 with metadata bits", { .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_HEADER }, PL_V_REPORT_MD_LENGTH, 0, PL_MALFORM_REPORT, report_md_length_min },
	{ "report_tlv", "v2.0 TLV past its report", { .report = PL_GEN_REPORT_V20 }, PL_V_REPORT_TLV, 0, PL_MALFORM_REPORT, report_tlv },
	{ "report_inner", "inner packet of IP version 7", { .report = PL_GEN_REPORT_V10, .mode = PL_GEN_XD }, PL_V_REPORT_INNER, 0, PL_MALFORM_INNER, inner_ip_version },
	{ "inner_noise", "inner packet of noise", { .report = PL_GEN_REPORT_V10 }, NOTE(INNER_CUT), PL_MALFORM_INNER, inner_garbage },
	{ "report_length_lies", "v1.0 report length 1", { .report = PL_GEN_REPORT_V10 }, NOTE(REPORT_LENGTH_LIES), PL_MALFORM_REPORT, report_length_lies },
	{ "report_length_zero", "v2.0 report of type INT, both lengths 0", { .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_STACK, .mode = PL_GEN_MD }, NOTE(REPORT_LENGTH_ZERO), PL_MALFORM_REPORT, report_length_zero },
	{ "report_version_lies", "the same with version nibble 1", { .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_STACK, .mode = PL_GEN_MD }, NOTE(REPORT_VERSION_LIES), PL_MALFORM_REPORT, report_version_20_lies },
	{ "report_version_lies_05", "v0.5 report with version nibble 1", { .report = PL_GEN_REPORT_V05 }, NOTE(REPORT_VERSION_LIES), PL_MALFORM_REPORT, report_version_05_lies },
	{ "report_type", "v2.0 individual report of a reserved type behind the good one", { .report = PL_GEN_REPORT_V20 }, NOTE(REPORT_TYPE_SKIPPED), PL_MALFORM_REPORT, report_type_reserved },
	{ "report_ds", "v2.0 domain-specific metadata in the report", { .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_HEADER }, NOTE(REPORT_DS_RAW), PL_MALFORM_REPORT, report_ds },
	{ "inner_type", "v2.0 inner type IPv4 before Ethernet bytes", { .report = PL_GEN_REPORT_V20, .inner = PL_GEN_ETHERNET }, NOTE(INNER_TYPE_LIES), PL_MALFORM_REPORT, inner_type_lies },
	{ "inner_cut", "inner packet cut before its ports", { .mode = PL_GEN_XD, .report = PL_GEN_REPORT_V20 }, NOTE(INNER_CUT), PL_MALFORM_INNER, inner_cut_in_l4 },
	{ "inner_truncated", "inner packet cut inside the INT stack", { .mode = PL_GEN_MD, .report = PL_GEN_REPORT_V10, L4 }, PL_V_INT_TRUNCATED, 0, PL_MALFORM_INNER, inner_cut_in_stack },
	{ "fragment", "inner packet is a later fragment", { .mode = PL_GEN_XD, .report = PL_GEN_REPORT_V20 }, NOTE(FRAGMENT), PL_MALFORM_INNER, inner_fragment },
	{ "node_twice", "sink both in the header and on top of the stack", { .mode = PL_GEN_MD, .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_BOTH }, NOTE(NODE_TWICE), PL_MALFORM_INT, nothing },
	{ "f_bit", "F clear although INT is announced inside", { .mode = PL_GEN_MD, .report = PL_GEN_REPORT_V10, .announce = PL_GEN_ANNOUNCE_DSCP }, NOTE(F_BIT_LIES), PL_MALFORM_REPORT, f_bit_lies },
	/* frames */
	{ "instrumented", "the report itself carries INT", { .report = PL_GEN_REPORT_V20, .instrumented = true, .frames = true }, NOTE(INSTRUMENTED), PL_MALFORM_FRAME, nothing },
	{ "short", "frame cut inside its IP header", { .frames = true }, PL_V_SHORT, 0, PL_MALFORM_FRAME, frame_short },
	{ "int_truncated", "capture cut inside the INT stack", { .report = PL_GEN_REPORT_NONE, .mode = PL_GEN_MD, .frames = true, L4 }, PL_V_INT_TRUNCATED, 0, PL_MALFORM_FRAME, frame_cut_in_stack },
	{ "ethertype", "EtherType of LLDP", { .inner = PL_GEN_ETHERNET, .frames = true }, PL_V_NOT_TELEMETRY, 0, PL_MALFORM_FRAME, frame_ethertype },
	{ "ip_version", "IP version 7", { .frames = true }, PL_V_IP_VERSION, 0, PL_MALFORM_FRAME, frame_ip_version },
	{ "ip_length", "IPv4 header length 4", { .outer_ip = 4, .frames = true }, PL_V_IP_LENGTH, 0, PL_MALFORM_FRAME, frame_ip_length },
	{ "ip_options", "IPv6 extension header past the packet", { .report = PL_GEN_REPORT_V20, .outer_ip = 6, .frames = true }, PL_V_IP_OPTIONS, 0, PL_MALFORM_FRAME, frame_ip_options },
	{ "l4_length", "UDP length 4", { .carrier = PL_GEN_UDP, .frames = true }, PL_V_L4_LENGTH, 0, PL_MALFORM_FRAME, frame_l4_length },
	{ "nesting", "IPv4 in IPv4, nine times", { .outer_ip = 4, .frames = true }, PL_V_NESTING, 0, PL_MALFORM_FRAME, frame_nesting },
	{ "tunnel", "VXLAN-GPE of version 3", { .report = PL_GEN_REPORT_NONE, .carrier = PL_GEN_GPE, .frames = true }, PL_V_TUNNEL_HEADER, 0, PL_MALFORM_FRAME, tunnel_version },
	/* IOAM */
	{ "ioam_short", "IOAM option of 4 bytes", IOAM(PL_GEN_IOAM_TRACE), PL_V_IOAM_SHORT, 0, PL_MALFORM_FRAME, ioam_short },
	{ "ioam_option", "IOAM option type 9", IOAM(PL_GEN_IOAM_TRACE), PL_V_IOAM_OPTION, 0, PL_MALFORM_FRAME, ioam_option },
	{ "ioam_node_len", "NodeLen one word too long", IOAM(PL_GEN_IOAM_TRACE), PL_V_IOAM_NODE_LEN, 0, PL_MALFORM_FRAME, ioam_node_len },
	{ "ioam_remaining", "RemainingLen past the option", IOAM(PL_GEN_IOAM_TRACE), PL_V_IOAM_REMAINING, 0, PL_MALFORM_FRAME, ioam_remaining },
	{ "ioam_walk", "RemainingLen one word too short", IOAM(PL_GEN_IOAM_TRACE), PL_V_IOAM_WALK, 0, PL_MALFORM_FRAME, ioam_walk },
	{ "ioam_length_e2e", "edge-to-edge option without its last word", IOAM(PL_GEN_IOAM_E2E), PL_V_IOAM_LENGTH, 0, PL_MALFORM_FRAME, ioam_length },
	{ "ioam_length_pot", "proof of transit without its last word", IOAM(PL_GEN_IOAM_POT), PL_V_IOAM_LENGTH, 0, PL_MALFORM_FRAME, ioam_length },
	{ "ioam_length_dex", "direct export without its last word", IOAM(PL_GEN_IOAM_DEX), PL_V_IOAM_LENGTH, 0, PL_MALFORM_FRAME, ioam_length },
	{ "ioam_overrun", "IOAM option past its extension header", IOAM(PL_GEN_IOAM_TRACE), PL_V_IP_OPTIONS, 0, PL_MALFORM_FRAME, ioam_overrun },
	{ "ioam_overflow", "O set", IOAM(PL_GEN_IOAM_TRACE), NOTE(IOAM_OVERFLOW), PL_MALFORM_FRAME, ioam_overflow },
	{ "ioam_loopback", "L set", IOAM(PL_GEN_IOAM_TRACE), NOTE(IOAM_LOOPBACK), PL_MALFORM_FRAME, ioam_loopback },
	{ "ioam_active", "A set", IOAM(PL_GEN_IOAM_TRACE), NOTE(IOAM_ACTIVE), PL_MALFORM_FRAME, ioam_active },
	{ "ioam_legacy_dex", "direct export with extension flags 0x03", IOAM(PL_GEN_IOAM_DEX), NOTE(IOAM_LEGACY_DEX), PL_MALFORM_FRAME, ioam_dex_legacy },
	{ "ioam_time", "a fraction that microseconds do not have", IOAM(PL_GEN_IOAM_E2E), NOTE(IOAM_TIME), PL_MALFORM_FRAME, ioam_time },
	{ "ioam_sequence", "64-bit sequence number above 32 bits", { .ioam = PL_GEN_IOAM_E2E, .seq_64 = true, .frames = true }, NOTE(IOAM_SEQUENCE), PL_MALFORM_FRAME, ioam_sequence },
	{ "ioam_more", "both kinds of trace", IOAM(PL_GEN_IOAM_TRACE | PL_GEN_IOAM_INCREMENTAL), NOTE(IOAM_MORE), PL_MALFORM_FRAME, nothing },
	{ "ioam_integrity", "option type of an integrity-protected trace", IOAM(PL_GEN_IOAM_TRACE), NOTE(IOAM_INTEGRITY), PL_MALFORM_FRAME, ioam_integrity },
	{ "unassigned", "the fourth flag of a trace", IOAM(PL_GEN_IOAM_TRACE), NOTE(UNASSIGNED), PL_MALFORM_FRAME, ioam_flag_unassigned },
	{ "unassigned_dex", "a flag of direct export", IOAM(PL_GEN_IOAM_DEX), NOTE(UNASSIGNED), PL_MALFORM_FRAME, ioam_dex_flag },
	{ "unassigned_pot", "a flag of proof of transit", IOAM(PL_GEN_IOAM_POT), NOTE(UNASSIGNED), PL_MALFORM_FRAME, ioam_pot_flag },
};
/* clang-format on */

const struct pl_malform *pl_malforms(size_t *ret_n)
{
	*ret_n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

const struct pl_malform *pl_malform_find(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	}
	return NULL;
}

void pl_malform_expect(const struct pl_malform *kind, enum pl_gen_report report,
	enum pl_verdict *ret_verdict, uint64_t *ret_note)
{
	*ret_verdict = kind->verdict;
	*ret_note = kind->note;
	if (kind->hides && report != PL_GEN_REPORT_NONE) {
		*ret_verdict = PL_V_OK;
		*ret_note = PL_NOTE_BIT(EMBEDDED_INVALID);
	}
}
