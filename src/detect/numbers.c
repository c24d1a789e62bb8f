/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins the sequence accounts of the kernel with those of user space. */
#include "detect/numbers.h"

#include "core/detect_steps.h"

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

static void count(struct pl_core_env *env, struct pl_core_exporter *x,
	const struct pl_core_report *r, bool late)
{
	const uint32_t mask = pl_core_number_mask(r);

	if (!(late &&
		    pl_sequence_late(&x->seq, r->seq & mask, mask, env->rules.sequence_gap_max)) &&
		!pl_sequence_next(&x->seq, r->seq, mask))
		pl_core_sequence_unusual(env, &x->seq, r->seq, mask);
}

bool pl_numbers_step(struct pl_core_env *env, const struct pl_core_numbered *n,
	enum pl_kernel_number kind, uint64_t now_ns, uint64_t ts_ns, uint64_t program_ts_ns)
{
	const struct pl_core_report r = report_of(n, now_ns, ts_ns);
	struct pl_core_exporter *x;
	bool admitted = false, counted = false;

	pl_tables_silent_turn(env);
	x = pl_core_exporter_of(env, &r);
	if (x != NULL && kind != PL_NUMBER_COUNTED) {
		if (!x->above && kind != PL_NUMBER_LATE) {
			x->above = 1;
			x->above_ts_ns = program_ts_ns;
		}
		counted = true;
		count(env, x, &r, kind == PL_NUMBER_LATE || ts_ns <= x->above_ts_ns);
		admitted = pl_core_counted(env, x, now_ns) != 0;
		/* Never "the next number" for the program, which thus comes to see `above`. */
		if (x->above)
			x->seq.steady = false;
	}
	if (!counted)
		admitted = pl_core_admits(env, x) != 0;
	if (x == NULL && kind != PL_NUMBER_COUNTED)
		env->counters.untracked += admitted;
	pl_tables_turn_end(env);
	return admitted;
}
