/* SPDX-License-Identifier: BSD-2-Clause */
/* INT shims, headers and stacks in every carrier: whatever the verdict, nothing points outside. */
#include "fuzz.h"
#include "wire/int.h"

static void inside(const uint8_t *data, size_t size, const struct pl_cursor *c)
{
	if (c->pos == NULL && c->end == NULL)
		return;
	must(c->pos >= data && c->pos <= c->end && c->end <= data + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pl_int_cache cache;
	struct pl_int_hints hints = { 0 };
	struct pl_int in;
	struct pl_cursor c;
	enum pl_verdict v;

	if (size < 2)
		return 0;
	memset(&in, 0, sizeof(in));
	hints.dialect = data[1] % PL_DIALECT_MAX;
	hints.dialect_pinned = (data[1] & 0x80) != 0;
	hints.queue_word = data[1] >> 4 & 1;
	c = pl_cursor(data + 2, size - 2);
	if (data[0] % 4 == 3)
		v = pl_int_parse_geneve(&in, c, data[0] >> 4, &hints, &cache);
	else
		v = pl_int_parse(&in, &c, (enum pl_int_carrier)(data[0] % 4), &hints, &cache,
			(data[0] & 0x80) != 0);
	must(v < PL_V_MAX);
	inside(data, size, &c);
	if (v != PL_V_OK && v != PL_V_INT_TRUNCATED)
		return 0;
	must(in.version < PL_INT_VERSION_MAX || v == PL_V_INT_TRUNCATED ||
		in.kind == PL_INT_DESTINATION);
	must(in.hops <= in.announced_hops || in.announced_hops == 0);
	inside(data, size, &in.rest);
	if (in.hops > 0) {
		size_t bytes = (size_t)in.hops * in.hop_words * 4;

		must(in.hop_words > 0 && in.hop_words <= PL_INT_HOP_ML_MAX);
		must(in.stack >= data && bytes <= size);
		must(in.stack + bytes <= data + size);
		must(in.kind != PL_INT_MD || in.layout->words == in.hop_words);
		for (unsigned int f = 0; f < PL_INT_F_MAX; f++)
			must(in.layout->off[f] == PL_INT_NO_OFFSET ||
				in.layout->off[f] + 4u <= in.hop_words * 4u);
	}
	must((v == PL_V_INT_TRUNCATED) <= in.partial);
	return 0;
}
