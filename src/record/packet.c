/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of records of packets and flows as tables. */
#include "record/packet.h"

#include <assert.h>

#define FIELD(at, id, type, f, n, u, h)                                                            \
	{ .name = (n), .unit = (u), .help = (h), .offset = (at), .form = PL_FORM_##f },

static const struct pl_field pkt64_fields[] = {
#define PL_PKT_FIELD FIELD
#include "record/fields.def"
#undef PL_PKT_FIELD
};

static const struct pl_field pkt96_fields[] = {
#define PL_PKT_FIELD      FIELD
#define PL_PKT_MORE_FIELD FIELD
#include "record/fields.def"
#undef PL_PKT_FIELD
#undef PL_PKT_MORE_FIELD
};

static const struct pl_field dns64_fields[] = {
#define PL_DNS_FIELD FIELD
#include "record/fields.def"
#undef PL_DNS_FIELD
};

static const struct pl_field flow128_fields[] = {
#define PL_FLOW_FIELD FIELD
#include "record/fields.def"
#undef PL_FLOW_FIELD
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct pl_flat kinds[PL_FLAT_MAX] = {
	[PL_FLAT_PKT64] = { "pkt64", "packets", "one packet", sizeof(struct pl_pkt64),
		COUNT(pkt64_fields), pkt64_fields },
	[PL_FLAT_PKT96] = { "pkt96", "packets96",
		"one packet, with TCP options and what else its "
		"headers say",
		sizeof(struct pl_pkt96), COUNT(pkt96_fields), pkt96_fields },
	[PL_FLAT_DNS64] = { "dns64", "dns", "one DNS message", sizeof(struct pl_dns64),
		COUNT(dns64_fields), dns64_fields },
	[PL_FLAT_FLOW128] = { "flow128", "flows", "both directions of a connection",
		sizeof(struct pl_flow128), COUNT(flow128_fields), flow128_fields },
};

const struct pl_flat *pl_flat(enum pl_flat_kind kind)
{
	assert((unsigned int)kind < PL_FLAT_MAX);
	return &kinds[kind];
}
