/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parser that the kernel program has, against the whole decoder. The first byte picks the link
 * and whether the exporter has a profile; the rest is one packet. What the parser settles the
 * decoder must have decoded to the same values and notes. The packet lies at the end of its memory:
 * one byte read beyond it is found by the sanitizer.
 */
#include "../bpf/direct_check.h"
#include "fuzz.h"

static struct pl_decode *decoders[2];
static struct pl_direct direct[2];
static struct pl_record_batch records;

static void no_flush(struct pl_record_batch *b, void *arg)
{
	(void)arg;
	pl_record_batch_clear(b);
}

static void make_decoders(void)
{
	static const struct pl_profile profile = {
		.dscp_set = true,
		.dscp_value = 0x17,
		.dscp_mask = 0x3f,
		.hints = { .dialect = PL_DIALECT_INTCOLLECTOR },
	};

	for (unsigned int i = 0; i < 2; i++) {
		const struct pl_decode_options options = {
			.max_exporters = 64,
			.max_paths = 64,
			.profiles = &profile,
			.n_profiles = i,
		};

		must(pl_decode_new(&decoders[i], &options) == 0);
		must(pl_direct_init(&direct[i], &options) == 0);
	}
	must(pl_record_batch_init(&records, 64, 768) == 0);
	records.flush = no_flush;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pl_batch in = { .n = 1 };
	static struct pl_core_scratch scratch;
	const struct pl_outcome *outcome;
	unsigned int way;

	if (decoders[0] == NULL)
		make_decoders();
	if (size < 2)
		return 0;
	way = data[0] >> 1 & 1;
	in.pkts[0] = (struct pl_packet){
		.data = data + 1,
		.len = (uint32_t)(size - 1),
		.wire_len = (uint32_t)(size - 1),
		.ts_ns = UINT64_C(1700000000000000000),
		.link = data[0] & 1 ? PL_LINK_UDP : PL_LINK_ETHERNET,
		.sport = 40000,
		.dport = 32766,
	};
	pl_record_batch_clear(&records);
	pl_decode_batch(decoders[way], &in, &records);
	if (pl_direct_report(&direct[way], &scratch, &in.pkts[0], 1) != PL_ESCALATION_NONE)
		return 0;
	outcome = &pl_decode_outcomes(decoders[way])[0];
	must(outcome->verdict == PL_V_OK && records.n_paths == 1);
	must(outcome->notes == scratch.notes);
	must(direct_differs(&scratch, &records.paths[0], records.hops) == NULL);
	return 0;
}
