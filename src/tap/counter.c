/* SPDX-License-Identifier: BSD-2-Clause */
/* Switches the tables in which the tap's program counts, and reads them. */
#include "tap/counter.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "base/clock.h"

int pl_tap_counter_turn(struct pl_tap_counter *c, uint64_t *ret_began_ns)
{
	const uint32_t zero = 0;
	const unsigned int next = 1 - c->now;

	*ret_began_ns = pl_clock_real_ns();
	if (bpf_map_update_elem(c->turns_fd, &zero, &c->table_fd[next], BPF_ANY) < 0)
		return -errno;
	c->now = next;
	return 0;
}

int pl_tap_counter_stop(struct pl_tap_counter *c)
{
	const uint32_t zero = 0;

	if (bpf_map_delete_elem(c->turns_fd, &zero) < 0 && errno != ENOENT)
		return -errno;
	c->now = 1 - c->now;
	return 0;
}

int pl_tap_counter_read(struct pl_tap_counter *c, const struct pl_tap_count_plan *plan,
	pl_tap_count_sink *sink, void *arg)
{
	const int fd = c->table_fd[1 - c->now];
	uint32_t at = 0;
	bool first = true;

	for (;;) {
		uint32_t n = PL_TAP_COUNTER_BATCH;
		const int r = bpf_map_lookup_and_delete_batch(
			fd, first ? NULL : &at, &at, c->keys, c->values, &n, NULL);
		const bool end = r < 0 && errno == ENOENT;

		if (r < 0 && !end)
			return -errno;
		for (uint32_t i = 0; i < n; i++)
			pl_tap_count_make(&c->counts[i], plan, &c->keys[i], &c->values[i]);
		if (n > 0)
			sink(arg, c->counts, n);
		if (end)
			return 0;
		first = false;
	}
}
