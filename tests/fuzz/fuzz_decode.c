/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole decoder, packet to records, for every link type and for options that change its way.
 * The first byte picks them: the link (modulo 6), the options (bits 4, 5 and 7), the older vector
 * code (bit 6). The rest is one packet, given whole, then cut in the middle, as a capture would,
 * and whole again: the fast path takes layouts that were found before.
 *
 * Every record is checked for itself; the fast path for the usual report and the vector code must
 * give what the general way gives, byte by byte.
 */
#include "decode/shape.h"
#include "records.h"

enum { PACKETS = 3, PATHS = 64, HOPS = 768 };

static struct pl_decode *decoders[DECODERS], *general[DECODERS];
static struct pl_record_batch batch, other;
/* Two ways to read hops that must agree; the same one where there is no second. */
static hops_decode_fn *best, *second;

/* Many small reports in a datagram may fill it. */
static void no_flush(struct pl_record_batch *b, void *arg)
{
	(void)arg;
	check_batch(b);
	pl_record_batch_clear(b);
}

static void make_decoders(void)
{
	const struct pl_decode_options small = { .max_exporters = 64, .max_paths = 64 };

	for (unsigned int i = 0; i < DECODERS; i++) {
		decoders[i] = make_decoder(i, &small);
		general[i] = make_decoder(i, &small);
		only_general(general[i]);
	}
	best = second = hops_decode_best();
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		second = hops_decode_avx2;
#endif
	must(pl_record_batch_init(&batch, PATHS, HOPS) == 0);
	must(pl_record_batch_init(&other, PATHS, HOPS) == 0);
	batch.flush = no_flush;
	other.flush = no_flush;
}

static void same(const struct pl_decode *a, const struct pl_decode *b)
{
	for (unsigned int i = 0; i < PACKETS; i++) {
		const struct pl_outcome *x = &pl_decode_outcomes(a)[i];
		const struct pl_outcome *y = &pl_decode_outcomes(b)[i];

		must(x->verdict < PL_V_MAX && x->verdict == y->verdict);
		must(x->reports == y->reports && x->notes == y->notes);
	}
	must(batch.n_paths == other.n_paths && batch.n_hops == other.n_hops);
	must(memcmp(batch.paths, other.paths, batch.n_paths * sizeof(*batch.paths)) == 0);
	must(memcmp(batch.hops, other.hops, batch.n_hops * sizeof(*batch.hops)) == 0);
	must(memcmp(batch.pkt, other.pkt, batch.n_paths * sizeof(*batch.pkt)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pl_batch in;
	unsigned int way;

	if (decoders[0] == NULL)
		make_decoders();
	if (size < 1)
		return 0;
	way = (data[0] >> 4 & 3) + (data[0] >> 5 & 4);
	if (way >= DECODERS)
		way = 0;
	/* Whichever vector code this processor has, the other version is tried as well. */
	decoders[way]->decode_hops = (data[0] & 0x40) != 0 ? second : best;
	decoders[way]->take_shape = (data[0] & 0x40) != 0 ? shape_take_plain : shape_take_best();
	shapes_forget(decoders[way]->shapes);
	in.n = PACKETS;
	for (unsigned int i = 0; i < in.n; i++) {
		struct pl_packet *p = &in.pkts[i];

		p->data = data + 1;
		p->len = (uint32_t)(i == 1 ? (size - 1) / 2 : size - 1);
		p->wire_len = (uint32_t)(size - 1);
		p->ts_ns = UINT64_C(1700000000000000000);
		p->link = data[0] % PL_LINK_MAX;
		p->sport = 40000;
		p->dport = 32766;
	}
	pl_record_batch_clear(&batch);
	pl_record_batch_clear(&other);
	pl_decode_batch(decoders[way], &in, &batch);
	pl_decode_batch(general[way], &in, &other);
	check_batch(&batch);
	for (uint32_t i = 0; i < batch.n_paths; i++)
		must(batch.pkt[i] < in.n);
	same(decoders[way], general[way]);
	check_account(decoders[way]);
	return 0;
}
