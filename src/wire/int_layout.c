/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computes where each value of a hop's block stands, from (version, instruction bitmap, hop
 * length). INT v0.5 4.7.1, v1.0 4.7.1, v2.1 5.7: values follow in ascending bit order, then
 * domain-specific words, then the checksum complement. The dialects differ in widths only; the hop
 * length tells them apart.
 */
#include <errno.h>

#include "wire/int.h"

/* Widths of a dialect where they differ from the specification's. */
struct widths {
	uint8_t dialect;
	uint8_t version;
	bool ts64, ports2_16, queue_16;
};

/* In the order of trial. */
static const struct widths candidates[] = {
	{ PL_DIALECT_SPEC, PL_INT_V05, .ports2_16 = true },
	{ PL_DIALECT_HOST_INT, PL_INT_V05, .ports2_16 = true },
	{ PL_DIALECT_V04, PL_INT_V05, .ports2_16 = true },
	{ PL_DIALECT_INTCOLLECTOR, PL_INT_V05, .ports2_16 = true, .queue_16 = true },
	{ PL_DIALECT_SPEC, PL_INT_V10, .ts64 = false },
	{ PL_DIALECT_NOVIFLOW, PL_INT_V10, .ts64 = false },
	{ PL_DIALECT_INTCOLLECTOR, PL_INT_V10, .ports2_16 = true, .queue_16 = true },
	{ PL_DIALECT_GEANT, PL_INT_V10, .ts64 = true, .ports2_16 = true },
	{ PL_DIALECT_SPEC, PL_INT_V20, .ts64 = true },
};

static void fill(struct pl_int_layout *l, const struct widths *w, uint16_t bitmap)
{
	unsigned int at = 0;

	*l = (struct pl_int_layout){
		.bitmap = bitmap,
		.version = w->version,
		.dialect = w->dialect,
		.ts64 = w->ts64,
		.ports2_16 = w->ports2_16,
		.queue_16 = w->queue_16,
	};
	for (unsigned int bit = 0; bit < 16; bit++) {
		bool known = bit < PL_INT_F_BUFFER ||
			     (bit == PL_INT_F_BUFFER && w->version == PL_INT_V20);
		unsigned int size = 4;

		if (known)
			l->off[bit] = PL_INT_NO_OFFSET;
		if ((bitmap & PL_INT_BIT(bit)) == 0)
			continue;
		if ((bit == PL_INT_F_INGRESS_TS || bit == PL_INT_F_EGRESS_TS) && w->ts64)
			size = 8;
		if (bit == PL_INT_F_PORTS2 && !w->ports2_16)
			size = 8;
		if (known)
			l->off[bit] = (uint8_t)at;
		at += size;
	}
	if (w->version != PL_INT_V20)
		l->off[PL_INT_F_BUFFER] = PL_INT_NO_OFFSET;
	l->baseline_words = (uint8_t)(at / 4);
	l->words = l->baseline_words;
}

static bool fits(const struct pl_int_layout *l, unsigned int hop_words, bool has_ds)
{
	if (l->version == PL_INT_V20 && has_ds)
		return hop_words >= l->baseline_words;
	return hop_words == l->baseline_words;
}

int pl_int_layout_find(struct pl_int_layout *ret, enum pl_int_version version, uint16_t bitmap,
	unsigned int hop_words, bool has_ds, enum pl_dialect prefer, enum pl_queue_word queue)
{
	const size_t n = sizeof(candidates) / sizeof(candidates[0]);
	struct pl_int_layout l;

	if (hop_words == 0 || hop_words > PL_INT_HOP_ML_MAX)
		return -ENOENT;
	/* First the preferred dialect, then those that need no hint. */
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < n; i++) {
			const struct widths *w = &candidates[i];
			bool preferred = w->dialect == prefer;
			bool hinted = w->dialect == PL_DIALECT_V04 ||
				      w->dialect == PL_DIALECT_HOST_INT ||
				      w->dialect == PL_DIALECT_NOVIFLOW;

			if (w->version != version || preferred != (round == 0) ||
				(!preferred && hinted))
				continue;
			fill(&l, w, bitmap);
			if (!fits(&l, hop_words, has_ds))
				continue;
			l.words = (uint8_t)hop_words;
			if (queue != PL_QUEUE_WORD_AUTO)
				l.queue_16 = queue == PL_QUEUE_WORD_16_16;
			*ret = l;
			return 0;
		}
	}
	return -ENOENT;
}

int pl_int_layout_make(struct pl_int_layout *ret, enum pl_int_version version, uint16_t bitmap,
	unsigned int ds_words, enum pl_dialect dialect)
{
	const size_t n = sizeof(candidates) / sizeof(candidates[0]);
	struct pl_int_layout l;

	for (size_t i = 0; i < n; i++) {
		if (candidates[i].version != version || candidates[i].dialect != dialect)
			continue;
		fill(&l, &candidates[i], bitmap);
		if (ds_words != 0 && version != PL_INT_V20)
			return -EINVAL;
		if (l.baseline_words + ds_words > PL_INT_HOP_ML_MAX)
			return -E2BIG;
		l.words = (uint8_t)(l.baseline_words + ds_words);
		*ret = l;
		return 0;
	}
	return -EINVAL;
}

const char *pl_dialect_name(enum pl_dialect d)
{
	static const char *const names[] = { "spec", "intcollector", "geant", "noviflow",
		"host-int", "v0.4" };

	return names[d];
}
