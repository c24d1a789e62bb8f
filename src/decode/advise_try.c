/* SPDX-License-Identifier: BSD-2-Clause */
/* A separate decoder tries settings; its last profile is for the exporter of the sample only. A
 * setting is right when every packet that failed decodes with hops and a flow, and when every
 * packet that decoded before gives the same records, except for doubted depths. */
#include "decode/advise_try.h"

#include <errno.h>
#include <stdlib.h>

#include "decode/shape.h"

#define SCRATCH_PATHS 64
#define DEPTH_16      0x10000u
#define DEPTHS_MIN    2 /* least words in a packet to doubt them */

static void drop_records(struct pl_record_batch *batch, void *arg)
{
	(void)arg;
	pl_record_batch_clear(batch);
}

static int batch_init(struct pl_record_batch *batch)
{
	int r = pl_record_batch_init(batch, SCRATCH_PATHS, PL_BATCH_HOPS_MIN);

	batch->flush = drop_records;
	return r;
}

int trial_init(struct trial *t, const struct pl_decode_options *decode)
{
	struct pl_decode_options options = *decode;
	struct pl_profile *profiles = calloc(decode->n_profiles + 1, sizeof(*profiles));
	int r = -ENOMEM;

	if (profiles == NULL)
		return -ENOMEM;
	if (decode->n_profiles > 0)
		memcpy(profiles, decode->profiles, decode->n_profiles * sizeof(*profiles));
	/* The tables of the probe are not used. */
	options.max_exporters = 1;
	options.max_paths = 1;
	options.any_port = true;
	options.prove_exporters = false;
	options.number = NULL;
	options.profiles = profiles;
	options.n_profiles = decode->n_profiles + 1;
	if (batch_init(&t->before) == 0 && batch_init(&t->after) == 0)
		r = pl_decode_new(&t->probe, &options);
	free(profiles);
	if (r == 0)
		t->spare = &t->probe->profiles[options.n_profiles];
	return r;
}

uint64_t trial_memory(const struct pl_decode_options *decode)
{
	struct pl_decode_options options = *decode;

	options.max_exporters = 1;
	options.max_paths = 1;
	options.n_profiles++;
	return pl_decode_memory(&options) + 2 * SCRATCH_PATHS * sizeof(struct pl_path) +
	       2 * PL_BATCH_HOPS_MIN * sizeof(struct pl_hop);
}

void trial_done(struct trial *t)
{
	pl_decode_free(t->probe);
	pl_record_batch_done(&t->before);
	pl_record_batch_done(&t->after);
}

/* Sets the exporter of the spare profile; NULL: none. */
static void set_spare(
	struct trial *t, const struct pl_profile *profile, const struct pl_addr *exporter)
{
	if (profile != NULL) {
		*t->spare = *profile;
		profile_settle(t->spare);
		shapes_forget(t->probe->shapes);
	}
	if (exporter != NULL)
		t->spare->prefix = *exporter;
	else
		memset(&t->spare->prefix, 0xff, sizeof(t->spare->prefix));
	t->spare->prefix_bits = 128;
}

static enum pl_verdict decode_one(
	struct trial *t, const struct kept *k, struct pl_record_batch *out)
{
	pl_record_batch_clear(out);
	t->one.n = 1;
	t->one.pkts[0] = k->packet;
	t->one.pkts[0].data = k->bytes;
	/* Records of two tries are compared. */
	t->probe->next_report_id = 1;
	pl_decode_batch(t->probe, &t->one, out);
	return (enum pl_verdict)pl_decode_outcomes(t->probe)[0].verdict;
}

enum pl_verdict trial_before(struct trial *t, const struct kept *k)
{
	set_spare(t, NULL, NULL);
	return decode_one(t, k, &t->before);
}

enum depths trial_depths(const struct pl_record_batch *records)
{
	const uint32_t both = PL_HOP_HAS_queue_depth | PL_HOP_HAS_queue;
	unsigned int words = 0, above = 0;
	uint32_t upper = 0;

	for (uint32_t i = 0; i < records->n_hops; i++) {
		const struct pl_hop *h = &records->hops[i];

		if ((h->present & both) != both)
			continue;
		if (h->queue != 0)
			return DEPTHS_BELIEVED;
		words++;
		if (h->queue_depth < DEPTH_16)
			continue;
		if (above++ > 0 && h->queue_depth >> 16 != upper)
			return DEPTHS_BELIEVED;
		upper = h->queue_depth >> 16;
	}
	if (words < DEPTHS_MIN || above == 0)
		return DEPTHS_NONE;
	return above == words ? DEPTHS_DOUBTED : DEPTHS_BELIEVED;
}

/* ---- result of a setting for a packet ---- */

/* True when a packet that failed now has an INT header, hops and a flow. A report's own header is
 * no proof, because bytes of nearly any kind may be one. */
static bool decodes(struct trial *t, const struct kept *k)
{
	/* A report's header read by another version's layout shows by these. */
	const uint64_t odd =
		t->spare->report_version == 0
			? 0
			: PL_NOTE_BIT(REPORT_LENGTH_LIES) | PL_NOTE_BIT(REPORT_LENGTH_ZERO) |
				  PL_NOTE_BIT(REPORT_LENGTH_INNER) |
				  PL_NOTE_BIT(REPORT_TYPE_SKIPPED) | PL_NOTE_BIT(REPORT_DS_RAW) |
				  PL_NOTE_BIT(INNER_TYPE_LIES);
	const uint64_t bad = odd | PL_NOTE_BIT(LATENCY_IMPLAUSIBLE) |
			     PL_NOTE_BIT(EMBEDDED_INVALID) | PL_NOTE_BIT(RESERVED_BITS) |
			     PL_NOTE_BIT(UNASSIGNED);
	const uint32_t needed = PL_PATH_HAS_src | PL_PATH_HAS_dialect;
	const struct pl_record_batch *out = &t->after;

	if (decode_one(t, k, &t->after) != PL_V_OK || out->n_paths == 0 ||
		(pl_decode_outcomes(t->probe)[0].notes & bad) != 0)
		return false;
	for (uint32_t i = 0; i < out->n_paths; i++) {
		if (out->paths[i].hop_count == 0 || (out->paths[i].present & needed) != needed)
			return false;
	}
	return trial_depths(out) != DEPTHS_DOUBTED;
}

static bool same_records(struct pl_record_batch *a, struct pl_record_batch *b)
{
	if (a->n_paths != b->n_paths || a->n_hops != b->n_hops)
		return false;
	for (uint32_t i = 0; i < a->n_paths; i++)
		a->paths[i].dialect = b->paths[i].dialect;
	return memcmp(a->paths, b->paths, a->n_paths * sizeof(*a->paths)) == 0 &&
	       memcmp(a->hops, b->hops, a->n_hops * sizeof(*a->hops)) == 0;
}

/* True when a packet that decoded gives the same records as before, except for doubted depths.
 * `before` is filled. */
static bool keeps(struct trial *t, const struct kept *k)
{
	if (decode_one(t, k, &t->after) != PL_V_OK)
		return false;
	if (trial_depths(&t->before) != DEPTHS_DOUBTED)
		return same_records(&t->before, &t->after);
	return t->after.n_hops == t->before.n_hops && trial_depths(&t->after) != DEPTHS_DOUBTED;
}

static bool is_right(struct trial *t, const struct pl_addr *exporter,
	const struct pl_profile *profile, const struct kept *bad, unsigned int n_bad,
	const struct kept *good, unsigned int n_good)
{
	set_spare(t, profile, exporter);
	for (unsigned int i = 0; i < n_bad; i++) {
		if (!decodes(t, &bad[i]))
			return false;
	}
	for (unsigned int i = 0; i < n_good; i++) {
		set_spare(t, NULL, NULL);
		(void)decode_one(t, &good[i], &t->before);
		set_spare(t, NULL, exporter);
		if (!keeps(t, &good[i]))
			return false;
	}
	return true;
}

/* ---- the settings, the commonest first ---- */

#define N_DIALECTS (PL_DIALECT_MAX - 1)
#define N_VERSIONS PL_REPORT_VERSION_MAX
#define N_PLACES   2
#define FIRST_PAIR (N_DIALECTS + 1 + N_VERSIONS + N_PLACES + PL_INT_TRAILING_MAX)
#define N_SETTINGS (FIRST_PAIR + N_VERSIONS * N_DIALECTS)

static void set_dialect(struct pl_profile *p, unsigned int dialect)
{
	p->hints.dialect = (uint8_t)dialect;
	/* The dialect is recognised only when it is pinned. */
	p->hints.dialect_pinned |= dialect == PL_DIALECT_V04;
}

/* Puts the i-th setting into the profile. Returns false when the profile excludes it. */
static bool set(struct pl_profile *p, unsigned int i)
{
	if (i < N_DIALECTS) {
		set_dialect(p, 1 + i);
	} else if ((i -= N_DIALECTS) == 0) {
		if (p->hints.queue_word != PL_QUEUE_WORD_AUTO)
			return false;
		p->hints.queue_word = PL_QUEUE_WORD_16_16;
	} else if ((i -= 1) < N_VERSIONS) {
		p->report_version = N_VERSIONS - (int)i;
	} else if ((i -= N_VERSIONS) < N_PLACES) {
		p->tcp_placement = (uint8_t)(PL_TCP_BEFORE_OPTIONS + i);
	} else if ((i -= N_PLACES) < PL_INT_TRAILING_MAX) {
		p->hints.trailing_words = (uint8_t)(1 + i);
	} else {
		i -= PL_INT_TRAILING_MAX;
		p->report_version = N_VERSIONS - (int)(i / N_DIALECTS);
		set_dialect(p, 1 + i % N_DIALECTS);
	}
	return true;
}

/* The depth that is doubted, of the first packet. */
static void tell_depth(struct trial *t, const struct kept *good, struct pl_advice *ret)
{
	(void)trial_before(t, good);
	for (uint32_t i = 0; i < t->before.n_hops; i++) {
		if ((t->before.hops[i].present & PL_HOP_HAS_queue_depth) == 0)
			continue;
		ret->depth = t->before.hops[i].queue_depth;
		ret->node = t->before.hops[i].node;
		return;
	}
}

/* True when all packets that decode are doubted, in a way that 16 + 16 bits explain. */
static bool are_doubted(struct trial *t, const struct kept *good, unsigned int n_good)
{
	for (unsigned int i = 0; i < n_good; i++) {
		(void)trial_before(t, &good[i]);
		if (trial_depths(&t->before) != DEPTHS_DOUBTED)
			return false;
	}
	return n_good > 0;
}

bool trial_find(struct trial *t, const struct pl_addr *exporter, const struct kept *bad,
	unsigned int n_bad, const struct kept *good, unsigned int n_good, struct pl_advice *ret)
{
	struct pl_profile base;

	if (n_bad == 0 && !are_doubted(t, good, n_good))
		return false;
	set_spare(t, NULL, NULL);
	base = *profile_of(t->probe, exporter);
	base.prefix = *exporter;
	base.prefix_bits = 128;
	for (unsigned int i = 0; i < N_SETTINGS; i++) {
		struct pl_profile p = base;

		if (!set(&p, i) || !is_right(t, exporter, &p, bad, n_bad, good, n_good))
			continue;
		*ret = (struct pl_advice){ .exporter = *exporter,
			.profile = p,
			.before = base,
			.packets = (uint8_t)(n_bad > 0 ? n_bad : n_good) };
		if (n_bad == 0)
			tell_depth(t, good, ret);
		return true;
	}
	return false;
}
