/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the bytes that an INT source puts into packets. */
#include <errno.h>
#include <string.h>

#include "hostint/hostint.h"
#include "wire/int.h"

_Static_assert(PL_HOST_DS_ID == PL_INT_DS_HOSTS, "one domain");
_Static_assert(PL_HOST_NUMBERED == PL_INT_DS_NUMBERED, "one instruction");
_Static_assert(PL_HOST_SAMPLED == PL_INT_DS_SAMPLED, "one flag");

static const struct pl_stat source_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_host_source_counts, __VA_ARGS__)
#include "bpf/host_source_counts.def"
#undef PL_STAT
};
const struct pl_stats pl_hostint_source_list = { source_rows,
	sizeof(source_rows) / sizeof(source_rows[0]) };

static const struct pl_stat sink_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_host_sink_counts, __VA_ARGS__)
#include "bpf/host_sink_counts.def"
#undef PL_STAT
};
const struct pl_stats pl_hostint_sink_list = { sink_rows,
	sizeof(sink_rows) / sizeof(sink_rows[0]) };

int pl_hostint_template(
	struct pl_host_template *ret, const struct pl_hostint_options *o, struct pl_diag *diag)
{
	const struct pl_int_header header = { .version = PL_INT_V20,
		.kind = PL_INT_MD,
		.carrier = PL_INT_OVER_L4,
		.bitmap = o->bitmap,
		.hops_left = o->hops,
		.ds_id = PL_INT_DS_HOSTS,
		.ds_bitmap = PL_INT_DS_NUMBERED,
		.source_words = 1 };
	const struct pl_int_hop hop = { .have = PL_INT_HAS(PL_INT_F_NODE), .node = o->node };
	struct pl_build b = pl_build(ret->int_words, sizeof(ret->int_words));
	struct pl_int_layout layout;
	int r;

	memset(ret, 0, sizeof(*ret));
	if (o->bitmap == 0 || (o->bitmap & 0x007f) != 0) {
		pl_diag_set(diag, "instructions 0x%04x: there are bits 0x8000 (node id) to 0x0080",
			o->bitmap);
		return -EINVAL;
	}
	r = pl_int_layout_make(&layout, PL_INT_V20, o->bitmap, 0, PL_DIALECT_SPEC);
	if (r == 0)
		r = pl_int_put(&b, &header, &hop, 1);
	if (r < 0) {
		pl_diag_set(diag,
			"instructions 0x%04x: a hop has more values than a source adds to a packet (%u bytes)",
			o->bitmap, 4 * PL_HOST_WORDS_MAX);
		return -EINVAL;
	}
	ret->words = (uint32_t)b.len / 4;
	ret->dscp = o->dscp;
	if (layout.off[PL_INT_F_EGRESS_TS] != PL_INT_NO_OFFSET)
		ret->time_word = 4 + layout.off[PL_INT_F_EGRESS_TS] / 4u;
	return 0;
}
