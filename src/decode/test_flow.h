/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses out of text, and flows of UDP between them, for tests. */
#pragma once

#include "base/num.h"
#include "base/test.h"
#include "wire/layers.h"

static struct pl_addr addr(const char *text)
{
	struct pl_addr a = { { 0 } };

	if (pl_parse_addr(text, &a) < 0)
		ok(false, "not an address: %s", text);
	return a;
}

static struct pl_flow udp(
	const char *src, const char *dst, uint16_t sport, uint16_t dport, uint8_t dscp)
{
	return (struct pl_flow){
		.src = addr(src),
		.dst = addr(dst),
		.sport = sport,
		.dport = dport,
		.proto = PL_IP_UDP,
		.dscp = dscp,
		.have = PL_FLOW_PORTS,
	};
}
