/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of the rows of malform.c, by the damaged part of the packet. */
#pragma once

#include <string.h>

#include "gen/malform.h"
#include "wire/int.h"
#include "wire/layers.h"

typedef void pl_damage_fn(struct pl_build *b, struct pl_gen_damage *d);

/* Pointer to n bytes of the packet. A packet may lack the part that a row damages: the row marks it
 * as scrapped then. */
static inline uint8_t *at(struct pl_build *b, struct pl_gen_damage *d, size_t offset, size_t n)
{
	if (b->full || offset > b->len || n > b->len - offset) {
		d->scrapped = true;
		return NULL;
	}
	return b->data + offset;
}

/* Makes room for n bytes at an offset. */
static inline uint8_t *insert(struct pl_build *b, struct pl_gen_damage *d, size_t offset, size_t n)
{
	size_t tail = b->len - offset;

	if (at(b, d, offset, 0) == NULL || pl_build_reserve(b, n) == NULL) {
		d->scrapped = true;
		return NULL;
	}
	memmove(b->data + offset + n, b->data + offset, tail);
	return b->data + offset;
}

static inline bool is_ipv4(const struct pl_build *b, size_t l3)
{
	return l3 < b->len && b->data[l3] >> 4 == 4;
}

static inline void fix_ipv4_checksum(uint8_t *ip)
{
	uint16_t sum;

	ip[10] = ip[11] = 0;
	sum = pl_checksum_fold(pl_checksum_add(0, ip, 20));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

static inline void cut_to(struct pl_build *b, struct pl_gen_damage *d, size_t len)
{
	if (len >= b->len || len == 0)
		d->scrapped = true;
	else
		b->len = len;
}

/* ---- malform_int.c ---- */

pl_damage_fn pl_damage_shim_length_min, pl_damage_shim_length_max, pl_damage_ins_count,
	pl_damage_stack_odd, pl_damage_hop_count_lies, pl_damage_hop_count_above_max,
	pl_damage_geneve_option_short, pl_damage_set_e, pl_damage_set_m, pl_damage_set_copy,
	pl_damage_no_hops, pl_damage_value_missing, pl_damage_clock_slow,
	pl_damage_destination_shim, pl_damage_destination_shim_past, pl_damage_latency_huge;
/* Offset behind the first hop and one word of the second. */
size_t pl_damage_inside_stack(struct pl_build *b, struct pl_gen_damage *d);

/* ---- malform_report.c ---- */

pl_damage_fn pl_damage_inner_cut_in_stack, pl_damage_inner_cut_in_l4, pl_damage_inner_garbage,
	pl_damage_inner_fragment, pl_damage_report_short, pl_damage_report_length_max,
	pl_damage_report_length_cut, pl_damage_report_md_length_max, pl_damage_report_tlv,
	pl_damage_report_length_zero, pl_damage_report_version_20_lies,
	pl_damage_report_type_reserved, pl_damage_report_ds, pl_damage_f_bit_lies;

/* ---- malform_frame.c ---- */

pl_damage_fn pl_damage_frame_short, pl_damage_frame_cut_in_stack, pl_damage_frame_ethertype,
	pl_damage_frame_ip_length, pl_damage_frame_ip_options, pl_damage_frame_l4_length,
	pl_damage_frame_nesting, pl_damage_tunnel_version;

/* ---- malform_ioam.c ---- */

pl_damage_fn pl_damage_ioam_short, pl_damage_ioam_length, pl_damage_ioam_node_len,
	pl_damage_ioam_walk, pl_damage_ioam_time, pl_damage_ioam_sequence;
