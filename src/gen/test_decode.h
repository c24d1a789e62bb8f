/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests: packets of generators, and a decoder with the settings that it needs for them. */
#pragma once

#include "base/test.h"
#include "decode/decode.h"
#include "gen/gen.h"

static struct pl_batch batch;
static struct pl_record_batch out;
static char why[256]; /* the last error */

static void begin(void)
{
	eq(pl_record_batch_init(&out, 16384, 65536), 0, "room for records");
}

static struct pl_decode *decoder(const struct pl_gen_cfg *cfg, bool announced)
{
	struct pl_profile profile = {
		.hints = { .dialect = (uint8_t)cfg->dialect,
			.dialect_pinned = cfg->dialect == PL_DIALECT_V04,
			.source_words = cfg->source_words },
		.tcp_placement = cfg->tcp_before_options ? PL_TCP_BEFORE_OPTIONS : PL_TCP_AUTO,
		.dscp_set = announced,
		.dscp_value = 0x17,
		.dscp_mask = 0x3f,
	};
	struct pl_decode_options options = {
		.profiles = &profile,
		.n_profiles = 1,
		.gre_int_ethertype = 0x88b5,
		.report_ports = { cfg->report_port != 0 ? cfg->report_port : 32766 },
		.n_report_ports = 1,
		/* small, because there are thousands of decoders */
		.max_exporters = 256,
		.max_paths = 1024,
	};
	struct pl_decode *d = NULL;

	eq(pl_decode_new(&d, &options), 0, "a decoder");
	return d;
}
