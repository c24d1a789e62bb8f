/* SPDX-License-Identifier: BSD-2-Clause */
#include "detect/exemplar.h"

#include "base/rng.h"
#include "base/test.h"

#define OFFERS 400

struct holder {
	struct pl_exemplar_gate gate;
	struct pl_exemplars e;
};

static struct pl_path flow(uint64_t id)
{
	return (struct pl_path){ .present = PL_PATH_HAS_src | PL_PATH_HAS_sport,
		.ts_ns = id,
		.src = pl_addr_v4("\x0a\0\0\1"),
		.sport = 7,
		.proto = 6 };
}

static void one_by_one(void)
{
	static struct holder h;
	struct pl_path p = flow(1), none = { .ts_ns = 99 };
	const struct pl_exemplar *x;

	ok(pl_exemplar_show(&h.gate, &h.e, 0) == NULL, "none at first");
	pl_exemplar_offer(&h.gate, &h.e, 0, 5, &none);
	ok(pl_exemplar_show(&h.gate, &h.e, 0) == NULL, "a report without a flow makes none");
	pl_exemplar_offer(&h.gate, &h.e, 0, 0, &p);
	x = pl_exemplar_show(&h.gate, &h.e, 0);
	ok(x != NULL && x->value == 0 && x->ts_ns == 1, "a value of zero is one");
	ok(x != NULL && x->has == (PL_EXEMPLAR_FLOW | PL_EXEMPLAR_PORTS) && x->sport == 7 &&
			x->proto == 6,
		"with its flow, without the path id it does not have");
	p.ts_ns = 2;
	pl_exemplar_offer(&h.gate, &h.e, 0, 0, &p);
	eq(pl_exemplar_show(&h.gate, &h.e, 0)->ts_ns, 1, "an equal one does not replace it");
	pl_exemplar_offer(&h.gate, &h.e, 0, UINT64_MAX, &p);
	pl_exemplar_offer(&h.gate, &h.e, 0, UINT64_MAX, &p);
	eq(pl_exemplar_show(&h.gate, &h.e, 0)->value, UINT64_MAX, "the largest integer");
	ok(pl_exemplar_show(&h.gate, &h.e, 1) != NULL, "shown through the next slot");
	ok(pl_exemplar_show(&h.gate, &h.e, 2) == NULL, "and no longer");
	pl_exemplar_offer(&h.gate, &h.e, 5, 3, &p);
	eq(pl_exemplar_show(&h.gate, &h.e, 5)->value, 3, "a gap forgets what was before it");
}

/* Against a list of all offers, in one holder and in two that are merged. */
static void at_random(uint64_t seed)
{
	struct offer {
		uint64_t slot, value;
	} offers[OFFERS];
	struct holder all = { 0 }, part[2] = { 0 };
	struct pl_rng rng;
	uint64_t slot = 0;
	bool good = true, merged = true;

	printf("# seed %" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	for (unsigned int i = 0; i < OFFERS; i++) {
		struct holder both = { 0 };
		struct pl_path p = flow(i);
		uint64_t now, want = 0;
		bool has = false;

		if (pl_rng_below(&rng, 8) == 0)
			slot += pl_rng_below(&rng, 4);
		offers[i] = (struct offer){ slot, pl_rng_below(&rng, 100) };
		pl_exemplar_offer(&all.gate, &all.e, slot, offers[i].value, &p);
		pl_exemplar_offer(&part[i % 2].gate, &part[i % 2].e, slot, offers[i].value, &p);
		pl_exemplar_merge(&both.gate, &both.e, &part[0].gate, &part[0].e);
		pl_exemplar_merge(&both.gate, &both.e, &part[1].gate, &part[1].e);
		for (now = slot; now < slot + 3; now++) {
			const struct pl_exemplar *x = pl_exemplar_show(&all.gate, &all.e, now);
			const struct pl_exemplar *y = pl_exemplar_show(&both.gate, &both.e, now);

			has = false;
			want = 0;
			for (unsigned int k = 0; k <= i; k++) {
				if (offers[k].slot + 1 < now)
					continue;
				has = true;
				want = offers[k].value > want ? offers[k].value : want;
			}
			good &= (x != NULL) == has && (x == NULL || x->value == want);
			good &= x == NULL || offers[x->ts_ns].value == x->value;
			merged &= (y != NULL) == has && (y == NULL || y->value == want);
		}
	}
	ok(good, "the largest of two slots, and its flow");
	ok(merged, "the same out of two parts");
}

int main(void)
{
	one_by_one();
	for (uint64_t seed = 1; seed <= 20; seed++)
		at_random(seed);
	return pl_test_done();
}
