/* SPDX-License-Identifier: BSD-2-Clause */
#include "detect/numbers.h"

#include "bpf/detect_steps.h"

#define OWNED_AFTER_NS UINT64_C(100000000)

static struct pl_core_report report_of(
	const struct pl_core_numbered *n, uint64_t now_ns, uint64_t ts_ns)
{
	return (struct pl_core_report){ .now_ns = now_ns,
		.ts_ns = ts_ns,
		.exporter = n->exporter,
		.node = n->node,
		.seq = n->seq,
		.hw_id = n->hw_id,
		.report_version = n->report_version };
}

/*
 * A number that came in its turn, but is counted after later ones: because the program did not read it, and did not know
 * yet that it is counted here. It fills its gap, however far back, or was there before the account began; neither makes
 * it a straggler or out of order. False when it is none of that.
 */
static bool count_late(struct pl_sequence *s, uint32_t seq, uint32_t mask)
{
	const uint32_t behind = (s->highest - seq) & mask;
	const uint64_t covered = s->reports - s->duplicates - s->stragglers + s->lost;

	if (!s->started || s->constant || s->same > 0 || behind == 0 || behind > mask / 2 ||
		pl_sequence_seen(s, behind))
		return false;
	if (behind < covered && s->lost > 0) {
		s->lost--;
		s->recovered++;
	} else if (behind >= covered) {
		s->lost += behind - covered;
		s->skipped += behind - covered;
	}
	s->reports++;
	if (behind < PL_SEQUENCE_WINDOW) {
		pl_sequence_mark(s, behind);
		s->span = behind >= s->span ? behind + 1 : s->span;
	}
	return true;
}

static void count(
	struct pl_core_env *env, struct pl_core_exporter *x, const struct pl_core_report *r)
{
	const uint32_t mask = pl_core_number_mask(r);
	const bool late = r->ts_ns <= x->above_ts_ns;

	if (!(late && count_late(&x->seq, r->seq & mask, mask)) &&
		!pl_sequence_next(&x->seq, r->seq, mask))
		pl_core_sequence_unusual(env, &x->seq, r->seq, mask);
	/* Never "the next number" for the program, which thus comes to see `above`. */
	x->seq.steady = false;
}

/* The program has let go of these: what waits of them is counted. */
static void own(struct pl_numbers *s, const struct pl_core_exporter *only, uint64_t now_ns)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < s->n; i++) {
		const struct pl_core_report r =
			report_of(&s->waiting[i].n, now_ns, s->waiting[i].ts_ns);
		struct pl_core_exporter *x = pl_core_exporter_of(s->waiting[i].env, &r);

		if (x != NULL && only != NULL && x != only) {
			s->waiting[kept++] = s->waiting[i];
			continue;
		}
		if (x == NULL)
			continue; /* its table is full: counted there */
		x->above = x->owned = 1;
		count(s->waiting[i].env, x, &r);
	}
	s->n = kept;
}

static void wait_for(struct pl_numbers *s, struct pl_core_env *env,
	const struct pl_core_numbered *n, uint64_t now_ns, uint64_t ts_ns)
{
	/* So many that the program has long left those runs in which it did not see `above`. */
	if (s->n == PL_NUMBERS_WAITING)
		own(s, NULL, now_ns);
	if (s->n == 0)
		s->since_ns = now_ns;
	s->waiting[s->n].env = env;
	s->waiting[s->n].n = *n;
	s->waiting[s->n++].ts_ns = ts_ns;
}

void pl_numbers_step(struct pl_numbers *s, struct pl_core_env *env,
	const struct pl_core_numbered *n, enum pl_kernel_number kind, uint64_t now_ns,
	uint64_t ts_ns, uint64_t program_ts_ns)
{
	const struct pl_core_report r = report_of(n, now_ns, ts_ns);
	struct pl_core_exporter *x;

	if (kind == PL_NUMBER_COUNTED)
		return;
	x = pl_core_exporter_of(env, &r);
	if (x == NULL)
		return;
	if (!x->owned && kind == PL_NUMBER_UNREAD) {
		x->seq.steady = false;
		if (!x->above)
			x->above_ts_ns = program_ts_ns;
		__atomic_store_n(&x->above, 1, __ATOMIC_RELEASE);
		wait_for(s, env, n, now_ns, ts_ns);
		return;
	}
	if (!x->owned) {
		x->owned = 1;
		own(s, x, now_ns);
	}
	count(env, x, &r);
}

void pl_numbers_tick(struct pl_numbers *s, uint64_t now_ns)
{
	if (s->n > 0 && pl_core_elapsed(now_ns, s->since_ns) >= OWNED_AFTER_NS)
		own(s, NULL, now_ns);
}
