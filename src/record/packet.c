/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of records of packets and flows as tables. */
#include "record/packet.h"

#include <assert.h>

#define FIELD(at, id, type, f, n, u, h)                                                            \
	{ .name = (n),                                                                             \
		.unit = (u),                                                                       \
		.help = (h),                                                                       \
		.offset = (at),                                                                    \
		.form = PL_FORM_##f,                                                               \
		.text_bytes = PL_FORM_##f == PL_FORM_TEXT ? sizeof(type) : 0 },

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

const char *const pl_mark_methods[] = {
#define PL_MARK_METHOD(number, id, name, help) [(number)-1] = (name),
#include "record/fields.def"
#undef PL_MARK_METHOD
	[PL_MARK_METHOD_MAX - 1] = NULL,
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

static const struct pl_field flow288_fields[] = {
#define PL_FLOW_FIELD      FIELD
#define PL_FLOW_MORE_FIELD FIELD
#include "record/fields.def"
#undef PL_FLOW_FIELD
#undef PL_FLOW_MORE_FIELD
};

static const struct pl_field mark128_fields[] = {
#define PL_MARK_FIELD FIELD
#include "record/fields.def"
#undef PL_MARK_FIELD
};

#define ALWAYS -1
static const struct pl_field seg192_fields[] = {
#define PL_SEG_FIELD(at, id, type, f, presence, n, u, h)                                           \
	{ .name = (n),                                                                             \
		.unit = (u),                                                                       \
		.help = (h),                                                                       \
		.offset = (at),                                                                    \
		.form = PL_FORM_##f,                                                               \
		.present = PL_SEG_HAS_##id },
#include "record/fields.def"
#undef PL_SEG_FIELD
};
#undef ALWAYS
static const struct pl_field link128_fields[] = {
#define PL_LINK_FIELD FIELD
#include "record/fields.def"
#undef PL_LINK_FIELD
};

static const struct pl_field sent128_fields[] = {
#define PL_SENT_FIELD FIELD
#include "record/fields.def"
#undef PL_SENT_FIELD
};

static const struct pl_field drop168_fields[] = {
#define PL_PKT_FIELD      FIELD
#define PL_PKT_MORE_FIELD FIELD
#define PL_DROP_FIELD     FIELD
#include "record/fields.def"
#undef PL_PKT_FIELD
#undef PL_PKT_MORE_FIELD
#undef PL_DROP_FIELD
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct pl_flat kinds[PL_FLAT_MAX] = {
	[PL_FLAT_PKT64] = { "pkt64", "packets", "one packet", sizeof(struct pl_pkt64),
		COUNT(pkt64_fields), pkt64_fields, 0 },
	[PL_FLAT_PKT96] = { "pkt96", "packets96",
		"one packet, with TCP options and what else its "
		"headers say",
		sizeof(struct pl_pkt96), COUNT(pkt96_fields), pkt96_fields, 0 },
	[PL_FLAT_DNS64] = { "dns64", "dns", "one DNS message", sizeof(struct pl_dns64),
		COUNT(dns64_fields), dns64_fields, 0 },
	[PL_FLAT_FLOW128] = { "flow128", "flows", "both directions of a connection",
		sizeof(struct pl_flow128), COUNT(flow128_fields), flow128_fields, 0 },
	[PL_FLAT_MARK128] = { "mark128", "marks",
		"a flow's packets of one block of alternate marking", sizeof(struct pl_mark128),
		COUNT(mark128_fields), mark128_fields, 0 },
	[PL_FLAT_SEG192] = { "seg192", "segments",
		"loss and delay of a flow's block of alternate marking between points",
		sizeof(struct pl_seg192), COUNT(seg192_fields), seg192_fields,
		offsetof(struct pl_seg192, has) },
	[PL_FLAT_LINK128] = { "link128", "truth_links",
		"the account of a direction of a link, kept by the network itself",
		sizeof(struct pl_link128), COUNT(link128_fields), link128_fields, 0 },
	[PL_FLAT_SENT128] = { "sent128", "truth_flows",
		"the account of a flow, kept by the network itself", sizeof(struct pl_sent128),
		COUNT(sent128_fields), sent128_fields, 0 },
	[PL_FLAT_DROP168] = { "drop168", "drops", "one packet that the kernel dropped",
		sizeof(struct pl_drop168), COUNT(drop168_fields), drop168_fields, 0 },
	[PL_FLAT_FLOW288] = { "flow288", "flows288",
		"both directions of a connection, with roles, round-trip times by method and more "
		"of TCP",
		sizeof(struct pl_flow288), COUNT(flow288_fields), flow288_fields, 0 },
};

const struct pl_flat *pl_flat(enum pl_flat_kind kind)
{
	assert((unsigned int)kind < PL_FLAT_MAX);
	return &kinds[kind];
}
