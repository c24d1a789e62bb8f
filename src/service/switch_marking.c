/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends block records of a switch's measurement points to the outputs of the host. */
#include <sys/timex.h>

#include "service/switch.h"

int pl_switch_marking_files(const struct pl_switch *s, struct pl_confine *confine)
{
	char *const *to = s->program->conf.marking.to.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->program->conf.marking.to.n; i++)
		r = pl_tap_out_files(to[i], confine);
	return r;
}

int pl_switch_marking_open(struct pl_switch *s, struct pl_diag *diag)
{
	const struct pl_tap_out_settings settings = { .kind = PL_FLAT_MARK128,
		.exporter = (uint32_t)s->program->conf.id };
	char *const *to = s->program->conf.marking.to.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->program->conf.marking.to.n; i++) {
		r = pl_tap_out_open(&s->outs[s->n_outs], to[i], &settings, diag);
		s->n_outs += r == 0;
	}
	return r;
}

void pl_switch_marking_block(void *sw, const struct pl_mark128 *record)
{
	struct pl_switch *s = sw;

	for (unsigned int i = 0; i < s->n_outs; i++)
		s->outs[i]->driver->put(s->outs[i], record, 1);
}

/* Reads the kernel's clock state. */
void pl_switch_marking_clock(void *sw, bool *ret_synced, uint64_t *ret_error_ns)
{
	struct timex t = { .modes = 0 };

	(void)sw;
	*ret_synced = adjtimex(&t) >= 0 && (t.status & STA_UNSYNC) == 0;
	*ret_error_ns = *ret_synced ? (uint64_t)t.maxerror * 1000 : UINT64_MAX;
}

void pl_switch_marking_turn(struct pl_switch *s, uint64_t mono_ns)
{
	if (pl_dp_pipeline_due(s->pipeline) <= s->now_ns)
		pl_dp_pipeline_turn(s->pipeline, s->now_ns);
	/* Runs even when a reload removed all points, because records may still wait in outputs. */
	s->outs_due_ns = UINT64_MAX;
	for (unsigned int i = 0; i < s->n_outs; i++) {
		const uint64_t due = s->outs[i]->driver->turn(s->outs[i], mono_ns);

		s->outs_due_ns = due < s->outs_due_ns ? due : s->outs_due_ns;
	}
}

uint64_t pl_switch_marking_due_ns(struct pl_switch *s, uint64_t mono_ns)
{
	const uint64_t due = pl_dp_pipeline_due(s->pipeline),
		       wait = due > s->now_ns ? due - s->now_ns : 0,
		       points = due != UINT64_MAX ? mono_ns + wait : UINT64_MAX,
		       outs = s->n_outs > 0 ? s->outs_due_ns : UINT64_MAX;

	return points < outs ? points : outs;
}

void pl_switch_marking_close(struct pl_switch *s)
{
	for (unsigned int i = 0; i < s->n_outs; i++) {
		s->outs[i]->driver->finish(s->outs[i]);
		pl_tap_out_close(s->outs[i]);
	}
	s->n_outs = 0;
}
