/* SPDX-License-Identifier: BSD-2-Clause */
/* Every kind of damage must get from the decoder the answer that its row names; alone, mixed, and
 * among good packets. */
#include "gen/malform.h"

#include "gen/test_decode.h"

#define PACKETS 60

static void check_damage(const struct pl_malform *kind, enum pl_gen_report report)
{
	struct pl_gen_cfg cfg = { .count = PACKETS,
		.topology = "chain:4",
		.flows = 5,
		.truth = true,
		.report = report,
		.seed = 7 };
	struct pl_diag diag = { .text = "" };
	enum pl_verdict want;
	uint64_t note;
	struct pl_gen *g;
	struct pl_decode *d;
	unsigned int wrong = 0, n = 0;

	if (pl_malform_add(&cfg, kind, 1, &diag) < 0 || pl_gen_new(&g, &cfg, &diag) < 0) {
		ok(false, "%s: %s", kind->name, diag.text);
		return;
	}
	pl_malform_expect(kind, pl_gen_cfg(g)->report, &want, &note);
	/* what is announced by configuration is judged, what merely looks so is let pass */
	d = decoder(pl_gen_cfg(g), (kind->note & PL_NOTE_BIT(F_BIT_LIES)) != 0 ||
					   pl_gen_cfg(g)->report == PL_GEN_REPORT_NONE);
	while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
		const struct pl_outcome *o;

		pl_record_batch_clear(&out);
		pl_decode_batch(d, &batch, &out);
		o = pl_decode_outcomes(d);
		for (uint32_t i = 0; i < batch.n; i++, n++) {
			if (o[i].verdict != want || (o[i].notes & note) != note) {
				wrong++;
				snprintf(why, sizeof(why), "%s, notes %#" PRIx64,
					pl_verdict_name((enum pl_verdict)o[i].verdict), o[i].notes);
			}
		}
	}
	ok(wrong == 0 && n == PACKETS, "%s in %s gives %s %s", kind->name,
		pl_gen_cfg(g)->report == PL_GEN_REPORT_NONE ? "a packet" : "a report",
		pl_verdict_name(want),
		note == 0 ? "" : pl_note_name((enum pl_note)__builtin_ctzll(note)));
	if (wrong > 0)
		printf("# %u of %u wrong; the last: %s\n", wrong, n, why);
	pl_decode_free(d);
	pl_gen_free(g);
}

static void test_damage(void)
{
	size_t n;
	const struct pl_malform *rows = pl_malforms(&n);

	for (size_t i = 0; i < n; i++) {
		check_damage(&rows[i], PL_GEN_REPORT_AUTO);
		if (rows[i].needs.report == PL_GEN_REPORT_AUTO && rows[i].stage == PL_MALFORM_INT &&
			rows[i].needs.ioam == 0)
			check_damage(&rows[i], PL_GEN_REPORT_NONE);
	}
}

/* All kinds of damage that fit a form, mixed: each packet gets the answer of what was done to
 * it. */
static void test_all_damage(void)
{
	static const struct pl_gen_cfg forms[] = {
		{ 0 },
		{ .udp = true },
		{ .version = PL_GEN_INT_V10 },
		{ .version = PL_GEN_INT_V05 },
		{ .report = PL_GEN_REPORT_NONE },
		{ .report = PL_GEN_REPORT_NONE, .carrier = PL_GEN_GENEVE },
		{ .sink = PL_GEN_SINK_STACK, .topology = "ring:5" },
		{ .ioam = { .options = PL_GEN_IOAM_TRACE } },
		{ .ioam = { .options = PL_GEN_IOAM_E2E, .seq_64 = true } },
		{ .ioam = { .options = PL_GEN_IOAM_DEX } },
		{ .ioam = { .options = PL_GEN_IOAM_POT } },
	};

	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		struct pl_gen_cfg cfg = forms[f];
		unsigned int wrong = 0, damaged = 0, n = 0;
		struct pl_diag diag = { .text = "" };
		struct pl_gen *g;
		struct pl_decode *d;

		cfg.count = 4000;
		cfg.truth = true;
		cfg.seed = f;
		if (cfg.topology == NULL)
			cfg.topology = "chain:4";
		if (!ok(pl_malform_add_all(&cfg, 0.75, &diag) == 0 &&
				    pl_gen_new(&g, &cfg, &diag) == 0,
			    "form %zu: %s", f, diag.text))
			continue;
		d = decoder(pl_gen_cfg(g), pl_gen_cfg(g)->report == PL_GEN_REPORT_NONE);
		while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
			const struct pl_outcome *o;

			pl_record_batch_clear(&out);
			pl_decode_batch(d, &batch, &out);
			o = pl_decode_outcomes(d);
			for (uint32_t i = 0; i < batch.n; i++, n++) {
				const struct pl_malform *kind = pl_gen_truth(g, i, 0)->malform;
				enum pl_verdict want = PL_V_OK;
				uint64_t note = 0;

				if (kind != NULL)
					pl_malform_expect(
						kind, pl_gen_cfg(g)->report, &want, &note);
				damaged += kind != NULL;
				if ((kind != NULL && (kind->note & PL_NOTE_BIT(F_BIT_LIES)) != 0) ||
					(o[i].verdict == want && (o[i].notes & note) == note))
					continue;
				wrong++;
				snprintf(why, sizeof(why), "%s: %s, notes %#" PRIx64,
					kind == NULL ? "whole" : kind->name,
					pl_verdict_name((enum pl_verdict)o[i].verdict), o[i].notes);
			}
		}
		ok(wrong == 0 && n == 4000 && damaged > 2800 && damaged < 3200,
			"form %zu, all damage: %u of %u damaged", f, damaged, n);
		if (wrong > 0)
			printf("# %u wrong; the last: %s\n", wrong, why);
		pl_decode_free(d);
		pl_gen_free(g);
	}
}

/* A share of damaged packets among good ones: the account agrees. */
static void test_damage_among_good(void)
{
	struct pl_gen_cfg cfg = { .count = 10000, .topology = "chain:4", .seed = 3 };
	const struct pl_decode_counters *c;
	uint64_t sum = 0;
	struct pl_gen *g;
	struct pl_decode *d;

	eq(pl_malform_add(&cfg, pl_malform_find("report_length"), 0.1, NULL), 0);
	eq(pl_gen_new(&g, &cfg, NULL), 0);
	d = decoder(pl_gen_cfg(g), false);
	while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
		pl_record_batch_clear(&out);
		pl_decode_batch(d, &batch, &out);
	}
	c = pl_decode_counters(d);
	for (unsigned int v = 0; v < PL_V_MAX; v++)
		sum += pl_counter_read(&c->verdicts[v]);
	eq(pl_counter_read(&c->packets), 10000);
	eq(sum, 10000, "packets = sum of verdicts");
	eq(pl_counter_read(&c->verdicts[PL_V_REPORT_LENGTH]), pl_gen_counters(g)->malformed);
	eq(pl_counter_read(&c->verdicts[PL_V_OK]), 10000 - pl_gen_counters(g)->malformed);
	pl_decode_free(d);
	pl_gen_free(g);
}

int main(void)
{
	begin();
	test_damage();
	test_damage_among_good();
	test_all_damage();
	pl_record_batch_done(&out);
	return pl_test_done();
}
