/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP messages that are answered by others: a request and its answer are the two directions of one
 * flow. The pairs are those of the Community ID's specification, so that flows and ids agree. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PL_ICMP_PROTO = 1, PL_ICMP6_PROTO = 58 };

#define PL_ICMP_NO_ANSWER (-1)

/* The type of messages that answer `type`, or of those that it answers; PL_ICMP_NO_ANSWER: neither. */
static inline int pl_icmp_answer(uint8_t proto, uint16_t type)
{
	static const uint8_t pairs4[][2] = { { 8, 0 }, { 13, 14 }, { 15, 16 }, { 10, 9 },
		{ 17, 18 } };
	static const uint8_t pairs6[][2] = { { 128, 129 }, { 133, 134 }, { 135, 136 }, { 130, 131 },
		{ 139, 140 }, { 144, 145 } };
	const uint8_t(*pairs)[2] = proto == PL_ICMP_PROTO ? pairs4 : pairs6;
	const size_t n = proto == PL_ICMP_PROTO    ? sizeof(pairs4) / 2
			 : proto == PL_ICMP6_PROTO ? sizeof(pairs6) / 2
						   : 0;

	for (size_t i = 0; i < n; i++) {
		if (type == pairs[i][0] || type == pairs[i][1])
			return type == pairs[i][0] ? pairs[i][1] : pairs[i][0];
	}
	return PL_ICMP_NO_ANSWER;
}
