/* SPDX-License-Identifier: BSD-2-Clause */
/* Damage to IOAM options: option type, length, reserved, IOAM option type, body. */
#include "gen/malform_internal.h"

#include <string.h>

static uint8_t *ioam(struct pl_build *b, struct pl_gen_damage *d, size_t n)
{
	if (d->ioam == 0) {
		d->scrapped = true;
		return NULL;
	}
	return at(b, d, d->ioam, n);
}

/* Makes the option n bytes long (without type and length); the rest of it becomes padding. */
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

void pl_damage_ioam_short(struct pl_build *b, struct pl_gen_damage *d)
{
	ioam_shorten(b, d, 4);
}

void pl_damage_ioam_length(struct pl_build *b, struct pl_gen_damage *d)
{
	const uint8_t *p = ioam(b, d, 4);

	if (p != NULL)
		ioam_shorten(b, d, (uint8_t)(p[1] - 4));
}

void pl_damage_ioam_node_len(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 12);

	if (p != NULL)
		p[6] = (uint8_t)(p[6] + 0x08);
}

/* Leaves one word less than the nodes take. */
void pl_damage_ioam_walk(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 12);

	if (p == NULL || (p[7] & 0x7f) == 0)
		d->scrapped = true;
	else
		p[7]--;
}

/* Sets the fraction of an edge-to-edge option, its last word, to more than a million
 * microseconds. */
void pl_damage_ioam_time(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 4);

	if (p != NULL && at(b, d, d->ioam, 2u + p[1]) != NULL)
		memset(p + 2 + p[1] - 4, 0xf0, 4);
}

void pl_damage_ioam_sequence(struct pl_build *b, struct pl_gen_damage *d)
{
	uint8_t *p = ioam(b, d, 16);

	if (p == NULL || (p[6] & 0x80) == 0)
		d->scrapped = true;
	else
		p[8] = 1;
}
