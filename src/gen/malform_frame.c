/* SPDX-License-Identifier: BSD-2-Clause */
/* Damage to frames: Ethernet, IP, UDP and tunnels. */
#include "gen/malform_internal.h"

#include <string.h>

void pl_damage_frame_short(struct pl_build *b, struct pl_gen_damage *d)
{
	d->wire_len = (uint32_t)b->len;
	cut_to(b, d, d->frame_l3 + 10);
}

void pl_damage_frame_cut_in_stack(struct pl_build *b, struct pl_gen_damage *d)
{
	d->wire_len = (uint32_t)b->len;
	cut_to(b, d, pl_damage_inside_stack(b, d));
}

void pl_damage_frame_ethertype(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->frame_l3 - 2, 2);

	if (p != NULL) {
		p[0] = 0x88; /* LLDP */
		p[1] = 0xcc;
	}
}

void pl_damage_frame_ip_length(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->frame_l3, 20);

	if (p == NULL || p[0] >> 4 != 4)
		d->scrapped = true;
	else
		p[0] = 0x44;
}

/* Makes a Hop-by-Hop header longer than the packet. */
void pl_damage_frame_ip_options(struct pl_build *b, struct pl_gen_damage *d)
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

void pl_damage_frame_l4_length(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->frame_l3 + (is_ipv4(b, d->frame_l3) ? 20 : 40), 8);

	if (p != NULL) {
		p[4] = 0;
		p[5] = 4;
	}
}

/* Nests IPv4 in IPv4 deeper than any network. */
void pl_damage_frame_nesting(struct pl_build *b, struct pl_gen_damage *d)
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

/* Sets a version of VXLAN-GPE that does not exist. */
void pl_damage_tunnel_version(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = at(b, d, d->frame_l3 + (is_ipv4(b, d->frame_l3) ? 20 : 40) + 8, 8);

	if (p != NULL)
		p[0] |= 0x30;
}
