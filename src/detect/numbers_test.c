/* SPDX-License-Identifier: BSD-2-Clause */
/* An exporter's account when a part of its numbers is counted after later ones
 * (detect/numbers.h). */
#include "detect/numbers.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/test.h"
#include "core/detect_steps.h"

#define NOW_NS UINT64_C(1000000000000)

static struct pl_detect *det;
static struct pl_core_env *env;
static struct pl_event_batch out;
static const struct pl_addr exporter = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2,
	1 } };

static void begin(void)
{
	const struct pl_detect_options options = { .numbers = true, .report_loss = true };

	if (pl_detect_new(&det, &options) < 0)
		abort();
	env = pl_detect_env(det);
	env->out = &out;
}

/* The exporter's account. */
static struct pl_sequence account(void)
{
	const struct pl_core_report r = { .exporter = exporter, .now_ns = NOW_NS };
	const struct pl_core_exporter *x = pl_core_exporter_of(env, &r);

	return x != NULL ? x->seq : (struct pl_sequence){ 0 };
}

/* A report of version 0.5, whose numbers are the device's. */
static void count(enum pl_kernel_number kind, uint32_t seq)
{
	const struct pl_core_numbered n = { .exporter = exporter, .seq = seq };
	const struct pl_core_report r = { .exporter = exporter, .seq = seq, .now_ns = NOW_NS };

	if (kind == PL_NUMBER_COUNTED)
		(void)pl_core_exporter_step(env, &r);
	else
		(void)pl_numbers_step(env, &n, kind, NOW_NS, NOW_NS, NOW_NS);
}

static void close_account(const char *what)
{
	struct pl_sequence s = account();

	eq(s.skipped - s.recovered, s.lost, "%s: the account of losses", what);
	ok(s.lost <= s.skipped, "%s: no more is found than was missing, lost %" PRIu64, what,
		s.lost);
}

/* Random bytes that pass for reports: whatever comes of them, it is no number of lost reports. */
static void random_numbers(void)
{
	static const enum pl_kernel_number kinds[] = { PL_NUMBER_UNREAD, PL_NUMBER_LATE,
		PL_NUMBER_LEFT, PL_NUMBER_COUNTED };
	struct pl_rng rng;
	uint64_t seen;

	pl_rng_seed(&rng, 12);
	for (unsigned int k = 0; k < 4; k++) {
		begin();
		for (unsigned int i = 0; i < 1000; i++)
			count(kinds[k < 3 ? k : pl_rng_below(&rng, 4)], (uint32_t)pl_rng_u64(&rng));
		seen = account().lost;
		ok(seen < 65536, "1000 random numbers, of kind %u: lost %" PRIu64, k, seen);
		close_account("random numbers");
		pl_detect_free(det);
	}
}

struct row {
	const char *what;
	uint64_t lost, reordered, duplicates, stragglers;
	unsigned int n;
	struct {
		uint32_t seq;
		bool late;
	} of[10];
};

static void situations(void)
{
	static const struct row rows[] = {
		{ "fills its gap", 0, 0, 0, 0, 4, { { 1, 0 }, { 2, 0 }, { 4, 0 }, { 3, 1 } } },
		{ "was before the account began", 3, 0, 0, 0, 4,
			{ { 10, 0 }, { 11, 0 }, { 12, 0 }, { 6, 1 } } },
		{ "and what lay between comes by itself", 2, 1, 0, 0, 5,
			{ { 10, 0 }, { 11, 0 }, { 12, 0 }, { 6, 1 }, { 8, 0 } } },
		{ "far before it", 489, 0, 0, 0, 4,
			{ { 1000, 0 }, { 1001, 0 }, { 1002, 0 }, { 510, 1 } } },
		{ "farther than a gap may be", 0, 0, 0, 1, 4,
			{ { 100000, 0 }, { 100001, 0 }, { 100002, 0 }, { 5, 1 } } },
		{ "behind the window, in a gap", 198, 0, 0, 0, 4,
			{ { 1, 0 }, { 2, 0 }, { 202, 0 }, { 50, 1 } } },
		{ "twice", 0, 0, 1, 0, 5, { { 1, 0 }, { 2, 0 }, { 4, 0 }, { 3, 1 }, { 3, 1 } } },
		/* What was lost before the restart is not found by numbers after it. */
		{ "behind a restart", 3, 1, 0, 0, 7,
			{ { 5000, 0 }, { 5001, 0 }, { 5003, 0 }, { 1000000, 0 }, { 1000001, 0 },
				{ 999996, 1 }, { 999998, 0 } } },
		{ "behind a restart, often", 1, 3, 0, 0, 9,
			{ { 5000, 0 }, { 5001, 0 }, { 5003, 0 }, { 1000000, 0 }, { 1000001, 0 },
				{ 999996, 1 }, { 999998, 0 }, { 999997, 0 }, { 999999, 0 } } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *t = &rows[i];
		struct pl_sequence s;

		begin();
		for (unsigned int k = 0; k < t->n; k++)
			count(t->of[k].late ? PL_NUMBER_LATE : PL_NUMBER_COUNTED, t->of[k].seq);
		s = account();
		eq(s.lost, t->lost, "%s: lost", t->what);
		eq(s.reordered, t->reordered, "%s: reordered", t->what);
		eq(s.duplicates, t->duplicates, "%s: duplicates", t->what);
		eq(s.stragglers, t->stragglers, "%s: stragglers", t->what);
		close_account(t->what);
		pl_detect_free(det);
	}
}

/* An exporter of whose reports every third waits for up to `far` others, and every tenth is
 * lost. */
static void streams(void)
{
	enum { N = 20000 };
	static uint32_t waiting[N];
	struct pl_rng rng;

	pl_rng_seed(&rng, 16);
	for (uint32_t far = 2; far <= 2000; far *= 10) {
		uint32_t n_waiting = 0, missing = 0;
		struct pl_sequence s;

		begin();
		for (uint32_t i = 0; i < N; i++) {
			const uint32_t kind =
				i > 2 && i < N - 1 ? (uint32_t)pl_rng_below(&rng, 30) : 29;

			if (kind < 10)
				waiting[n_waiting++] = i;
			else if (kind < 13)
				missing++;
			else
				count(PL_NUMBER_COUNTED, UINT32_MAX - N / 2 + i);
			if (n_waiting == 0 || i < waiting[0] + far)
				continue;
			for (uint32_t k = 0; k < n_waiting; k++)
				count(PL_NUMBER_LATE, UINT32_MAX - N / 2 + waiting[k]);
			n_waiting = 0;
		}
		for (uint32_t k = 0; k < n_waiting; k++)
			count(PL_NUMBER_LATE, UINT32_MAX - N / 2 + waiting[k]);
		s = account();
		eq(s.lost, missing, "waiting for %u: what is missing is lost", far);
		eq(s.reordered + s.duplicates + s.stragglers + s.restarts, 0,
			"waiting for %u: nothing else", far);
		close_account("a stream");
		pl_detect_free(det);
	}
}

/* A detector that is not needed any more ends the losses that it had begun. */
static void removed(void)
{
	begin();
	count(PL_NUMBER_COUNTED, 1);
	count(PL_NUMBER_COUNTED, 2);
	count(PL_NUMBER_COUNTED, 5);
	out.n = 0;
	pl_detect_tick(det, NOW_NS, NOW_NS, &out);
	pl_detect_tick(det, NOW_NS + 1, NOW_NS + 1, &out);
	ok(out.n == 1 && out.events[0].phase == PL_PHASE_BEGIN, "a loss begins");
	pl_detect_end(det, NOW_NS + 2, NOW_NS + 2, &out);
	ok(out.n == 2 && out.events[1].event == PL_EVENT_REPORT_LOSS &&
			out.events[1].phase == PL_PHASE_END && out.events[1].value == 2,
		"and ends with its detector");
	pl_detect_free(det);
}

int main(void)
{
	if (pl_event_batch_init(&out, 64) < 0)
		abort();
	random_numbers();
	situations();
	streams();
	removed();
	pl_event_batch_done(&out);
	return pl_test_done();
}
