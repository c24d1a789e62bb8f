/* SPDX-License-Identifier: BSD-2-Clause */
/* Damage to telemetry reports and the inner packets in them. */
#include "gen/malform_internal.h"

#include <string.h>

/* ---- the inner packet of a report ---- */

void pl_damage_inner_cut_in_stack(struct pl_build *b, struct pl_gen_damage *d)
{
	cut_to(b, d, pl_damage_inside_stack(b, d));
}

void pl_damage_inner_cut_in_l4(struct pl_build *b, struct pl_gen_damage *d)
{
	cut_to(b, d, d->inner_l3 + (is_ipv4(b, d->inner_l3) ? 20 : 40));
}

void pl_damage_inner_garbage(struct pl_build *b, struct pl_gen_damage *d)
{
	if (at(b, d, d->inner, 14) != NULL)
		memset(b->data + d->inner, 0xee, b->len - d->inner);
}

void pl_damage_inner_fragment(struct pl_build *b, struct pl_gen_damage *d)
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

void pl_damage_report_short(struct pl_build *b, struct pl_gen_damage *d)
{
	cut_to(b, d, d->payload + 6);
}

void pl_damage_report_length_max(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->individual, 4);

	if (p == NULL || b->len - d->individual >= 4 * 255)
		d->scrapped = true;
	else
		p[1] = 254;
}

void pl_damage_report_length_cut(struct pl_build *b, struct pl_gen_damage *d)
{
	/* The inner packet does not end with the datagram either. */
	pl_damage_report_length_max(b, d);
	if (d->inner != 0 && b->len - d->inner > 8)
		b->len -= 8;
	else
		d->scrapped = true;
}

void pl_damage_report_md_length_max(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->individual, 4);

	if (p == NULL || p[1] == 255)
		d->scrapped = true;
	else
		p[2] = p[1];
}

void pl_damage_report_tlv(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->individual, 4), *tlv = at(b, d, d->inner, 4);

	if (p == NULL || tlv == NULL)
		return;
	p[0] = (uint8_t)((p[0] & 0xf0) | 1);
	tlv[0] = 0x20; /* IPv4 */
	tlv[1] = 200;
}

/* Sets the lengths of an individual report of type INT to 0, as one BMv2 exporter does. */
void pl_damage_report_length_zero(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = insert(b, d, d->individual + 4, 8);

	if (p == NULL)
		return;
	memset(p, 0, 8);
	p[-4] = (uint8_t)(0x10 | (p[-4] & 0x0f));
	p[-3] = p[-2] = 0;
	d->inner += 8;
}

void pl_damage_report_version_20_lies(struct pl_build *b, struct pl_gen_damage *d)
{
	pl_damage_report_length_zero(b, d);
	if (!d->scrapped)
		b->data[d->payload] = (uint8_t)(0x10 | (b->data[d->payload] & 0x0f));
}

void pl_damage_report_type_reserved(struct pl_build *b, struct pl_gen_damage *d)
{
	static const uint8_t reserved[8] = { 0x50, 1, 0, 0 };

	if (at(b, d, d->individual, 4) == NULL || b->data[d->individual + 1] == 255) {
		d->scrapped = true;
		return;
	}
	pl_put(b, reserved, sizeof(reserved));
}

void pl_damage_report_ds(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->individual, 12);

	if (p == NULL || p[1] >= 253 || insert(b, d, d->inner, 4) == NULL) {
		d->scrapped = true;
		return;
	}
	memset(b->data + d->inner, 0x11, 4);
	p[1]++;
	p[2]++;
	p[7] = 0x42; /* of a domain, by the first instruction */
	p[8] = 0x80;
	d->inner += 4;
}

void pl_damage_f_bit_lies(struct pl_build *b, struct pl_gen_damage *d)
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
