/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports conditions of a tap: broken sources, and outputs that lose records. */
#include <inttypes.h>
#include <stdatomic.h>

#include "service/tap.h"

#define CONDITIONS_NS UINT64_C(100000000)
#define LOST_SHOWN_NS UINT64_C(10000000000)

void pl_tap_service_conditions(
	struct pl_tap_service *t, const char *name, uint64_t now_ns, struct pl_conditions *ret)
{
	const unsigned int broken = atomic_load_explicit(&t->n_broken, memory_order_relaxed);

	if (broken > 0)
		pl_condition_add(ret, PL_CONDITION_FAULT, "source_broken",
			"tap %s: %u of its sources are broken, and not read until a restart", name,
			broken);
	if (t->state_cut)
		pl_condition_add(ret, PL_CONDITION_FAULT, "flow_state_cut",
			"tap %s: another process cut its flow state; flows end with this process",
			name);
	for (unsigned int i = 0; i < t->n_outs; i++) {
		const struct pl_tap_out *out = t->outs[i];
		const uint64_t lost = out->driver->lost(out);

		if (out->driver->conditions != NULL)
			out->driver->conditions(out, name, ret);
		if (lost > t->lost[i])
			t->lost_ns[i] = now_ns;
		t->lost[i] = lost;
		if (t->lost_ns[i] != 0 && now_ns - t->lost_ns[i] < LOST_SHOWN_NS)
			pl_condition_add(ret, PL_CONDITION_FAULT, "output_losing",
				"tap %s: %s lost records within the last 10 s, %" PRIu64
				" since the start",
				name, out->name, lost);
	}
}

void pl_tap_service_look(struct pl_tap_service *t, uint64_t now_ns)
{
	struct pl_conditions list;

	if (now_ns < t->conditions_ns)
		return;
	pl_conditions_clear(&list);
	pl_tap_service_conditions(t, "tap", now_ns, &list);
	pl_condition_board_put(&t->conditions, &list);
	t->conditions_ns = now_ns + CONDITIONS_NS;
}

bool pl_tap_complete(const struct pl_tap_service *t)
{
	if (t->counts_lost)
		return false;
	for (unsigned int i = 0; i < t->n_outs; i++) {
		if (t->outs[i]->driver->lost(t->outs[i]) > 0)
			return false;
	}
	return true;
}
