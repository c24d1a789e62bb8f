/* SPDX-License-Identifier: BSD-2-Clause */
/* State and helpers for reading reports of every version, for report_parse.c and report_v20.c. */
#pragma once

#include "wire/report.h"

enum { REPTYPE_INNER, REPTYPE_INT, REPTYPE_IOAM };
enum { INTYPE_NONE, INTYPE_TLV, INTYPE_DS, INTYPE_ETHERNET, INTYPE_IPV4, INTYPE_IPV6 };
enum { TLV_DS, TLV_ETHERNET, TLV_IPV4, TLV_IPV6 };

/* A 4-byte value of all ones is "not available" (v1.0 3.2.2). */
static inline void have_u32(struct pl_int_hop *hop, enum pl_int_field f, uint32_t *ret, uint32_t v)
{
	if (v != 0xffffffff) {
		*ret = v;
		hop->have |= PL_INT_HAS(f);
	}
}

static inline void get_ports(struct pl_int_hop *hop, uint32_t w)
{
	if (w != 0xffffffff) {
		hop->ingress_port = w >> 16;
		hop->egress_port = w & 0xffff;
		hop->have |= PL_INT_HAS(PL_INT_F_PORTS);
	}
}

static inline void get_queue(struct pl_int_hop *hop, uint32_t w)
{
	if (w != 0xffffffff) {
		hop->queue = w >> 24;
		hop->queue_depth = w & 0xffffff;
		hop->have |= PL_INT_HAS(PL_INT_F_QUEUE);
	}
}

static inline void set_node(struct pl_report *ret, uint32_t node)
{
	ret->have_node = true;
	ret->node = node;
	ret->hop.node = node;
	ret->hop.have |= PL_INT_HAS(PL_INT_F_NODE);
}

/* queue id:8 | drop reason:8 | pad:16. The queue has no depth here, only its id. */
static inline void set_drop(struct pl_report *ret, uint32_t w)
{
	if (w != 0xffffffff) {
		ret->have_drop_reason = true;
		ret->drop_reason = (uint8_t)(w >> 16);
		ret->drop_queue = (uint8_t)(w >> 24);
	}
}

/* ---- report_parse.c ---- */

/* Sets the inner packet and its link type; bytes overrule an announced type that cannot be true.
 * ip: 4, 6, or 0 for Ethernet. */
void pl_report_set_inner(struct pl_report *ret, struct pl_cursor inner, unsigned int ip);

/* ---- report_v20.c ---- */

/* Reads one individual report. *ret_skip: its type is reserved and it was skipped. */
enum pl_verdict pl_report_v20(struct pl_report_iter *it, struct pl_report *ret, bool *ret_skip);
