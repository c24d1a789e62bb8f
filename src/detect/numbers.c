/* SPDX-License-Identifier: BSD-2-Clause */
#include "detect/numbers.h"

#include "bpf/detect_steps.h"

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

static void count(struct pl_core_env *env, struct pl_core_exporter *x,
	const struct pl_core_report *r, bool late)
{
	const uint32_t mask = pl_core_number_mask(r);

	if (!(late && count_late(&x->seq, r->seq & mask, mask)) &&
		!pl_sequence_next(&x->seq, r->seq, mask))
		pl_core_sequence_unusual(env, &x->seq, r->seq, mask);
}

bool pl_numbers_step(struct pl_core_env *env, const struct pl_core_numbered *n,
	enum pl_kernel_number kind, uint64_t now_ns, uint64_t ts_ns, uint64_t program_ts_ns)
{
	const struct pl_core_report r = report_of(n, now_ns, ts_ns);
	struct pl_core_exporter *x;
	bool admitted;

	pl_tables_silent_turn(env);
	x = pl_core_exporter_of(env, &r);
	if (x != NULL && kind != PL_NUMBER_COUNTED) {
		if (!x->above && kind != PL_NUMBER_LATE) {
			x->above = 1;
			x->above_ts_ns = program_ts_ns;
		}
		count(env, x, &r, kind == PL_NUMBER_LATE || ts_ns <= x->above_ts_ns);
		/* Never "the next number" for the program, which thus comes to see `above`. */
		if (x->above)
			x->seq.steady = false;
	}
	admitted = pl_core_admits(env, x) != 0;
	pl_tables_turn_end(env);
	return admitted;
}
