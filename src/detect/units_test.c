/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of occupancy: which one holds for a node, bytes in records, and thresholds in bytes that are
 * exact to the cell: events of a stream must be those of the same stream multiplied by hand. */
#include "detect/units.h"

#include <errno.h>

#include "base/rng.h"
#include "detect/batch_maker.h"
#include "detect/events.h"
#include "detect/test_raised.h"

#define MS     ((uint64_t)1000000)
#define SECOND (1000 * MS)

static struct pl_record_batch batch;
static struct pl_event_batch out;

static const struct pl_core_units some = { .n = 3,
	.of = { { 5, 5, 80, 0 }, { 1, 9, 208, 256 }, { 100, UINT64_MAX, 1, 65536 } } };

static void lookup(void)
{
	static const struct {
		uint64_t node;
		uint32_t queue, buffer;
	} rows[] = { { 0, 0, 0 }, { 1, 208, 256 }, { 4, 208, 256 }, { 5, 80, 0 }, { 6, 208, 256 },
		{ 9, 208, 256 }, { 10, 0, 0 }, { 99, 0, 0 }, { 100, 1, 65536 },
		{ UINT64_MAX, 1, 65536 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		eq(pl_units_queue(&some, rows[i].node), rows[i].queue, "node %" PRIu64 ": queues",
			rows[i].node);
		eq(pl_units_buffer(&some, rows[i].node), rows[i].buffer,
			"node %" PRIu64 ": buffers", rows[i].node);
	}
}

static struct pl_hop *hop(uint64_t node, uint32_t depth, uint32_t buffer)
{
	struct pl_hop *h;

	pl_record_batch_clear(&batch);
	add_path(&batch, 0)->ts_ns = 1;
	h = add_hop(
		&batch, node, PL_HOP_HAS_node | PL_HOP_HAS_queue_depth | PL_HOP_HAS_buffer_depth);
	h->queue_depth = depth;
	h->buffer_depth = buffer;
	return h;
}

static void records(void)
{
	struct pl_hop *h = hop(1, 10, 20);

	pl_units_batch(&some, &batch);
	ok((h->present & PL_HOP_HAS_queue_bytes) && pl_hop_get_queue_bytes(h) == 2080 &&
			h->queue_depth == 10,
		"a queue in cells of 208, the depth as it came");
	ok((h->present & PL_HOP_HAS_buffer_bytes) && pl_hop_get_buffer_bytes(h) == 5120,
		"a buffer in cells of 256");
	h = hop(100, UINT32_MAX, UINT32_MAX);
	pl_units_batch(&some, &batch);
	eq(pl_hop_get_buffer_bytes(h), (uint64_t)UINT32_MAX * 65536, "the largest is whole");
	h = hop(5, 1, 1);
	pl_units_batch(&some, &batch);
	ok(!(h->present & PL_HOP_HAS_buffer_bytes) && pl_hop_get_queue_bytes(h) == 80,
		"what is not known has no bytes");
	h = hop(1, 1, 1);
	h->present |= PL_HOP_HAS_ns_data_wide | PL_HOP_HAS_node_wide;
	h->ns_data_wide = 7;
	h->node_wide = 1;
	pl_units_batch(&some, &batch);
	ok(!(h->present & (PL_HOP_HAS_queue_bytes | PL_HOP_HAS_buffer_bytes)) &&
			h->ns_data_wide == 7 && h->node_wide == 1,
		"IOAM's wide fields stay");
	h = hop(1, 1, 1);
	h->present &= ~(uint32_t)PL_HOP_HAS_node;
	pl_units_batch(&some, &batch);
	ok(!(h->present & PL_HOP_HAS_queue_bytes), "a hop without a node has none");
}

/* With small tables. */
static struct pl_detect *made(struct pl_detect_options *o)
{
	struct pl_detect *det = NULL;

	o->max_flows = o->max_queues = o->max_links = o->max_drops = o->max_exporters = 64;
	if (pl_detect_new(&det, o) < 0)
		abort();
	out.n = 0;
	return det;
}

static void depth(struct pl_detect *det, uint64_t node, uint32_t value, uint64_t now_ns)
{
	struct pl_hop *h = hop(node, value, 0);

	h->present &= ~(uint32_t)PL_HOP_HAS_buffer_depth;
	pl_detect_batch(det, &batch, now_ns, &out);
}

/* Begins above the threshold and ends at or below low, to the byte. */
static void borders(void)
{
	static const uint32_t cells[] = { 1, 80, 176, 208, 256, 65536 };

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		const uint32_t c = cells[i], at = 10;

		for (int off = -1; off <= 1; off++) {
			const uint64_t bytes = (uint64_t)c * at;
			struct pl_detect_options o = { .queue_depth = { .on = true,
							       .threshold =
								       bytes + (uint64_t)off + c,
							       .low = bytes + (uint64_t)off,
							       .end_hold_ns = 1 } };
			/* off < 0: `at` cells are more than low; else not */
			const uint32_t first = at + 1 + (off >= 0), last = at - (off < 0);
			struct pl_detect *det;

			o.units = (struct pl_core_units){ .n = 1, .of = { { 7, 7, c, 0 } } };
			if (c == 1 && off != 0)
				continue;
			det = made(&o);
			depth(det, 7, first - 1, SECOND);
			eq(out.n, 0, "cells of %u, %+d: %u is not above", c, off, first - 1);
			depth(det, 7, first, SECOND + 1);
			ok(out.n == 1 && out.events[0].phase == PL_PHASE_BEGIN &&
					out.events[0].value == (uint64_t)first * c &&
					out.events[0].threshold == o.queue_depth.threshold &&
					(out.events[0].present & PL_EVENT_HAS_unit),
				"cells of %u, %+d: %u is, in bytes", c, off, first);
			depth(det, 7, last + 1, SECOND + 2);
			depth(det, 7, last + 1, SECOND + 4);
			eq(out.n, 1, "cells of %u, %+d: %u holds it", c, off, last + 1);
			depth(det, 7, last, SECOND + 5);
			depth(det, 7, last, SECOND + 7);
			ok(out.n == 2 && out.events[1].phase == PL_PHASE_END &&
					out.events[1].value == (uint64_t)first * c,
				"cells of %u, %+d: %u ends it", c, off, last);
			pl_detect_free(det);
		}
	}
}

/* Levels, steps by distance and by bits, microbursts: a node in cells and a node in bytes whose
 * values are multiplied before must tell the same. */
static void same_as_bytes(void)
{
	static const uint32_t cells[] = { 3, 80, 176, 208, 256 };
	struct pl_rng rng;
	uint64_t told = 0;
	bool good = true;

	printf("# seed 11\n");
	pl_rng_seed(&rng, 11);
	for (unsigned int round = 0; good && round < 300; round++) {
		const uint32_t c = cells[pl_rng_below(&rng, 5)];
		struct pl_detect_options o = { .queue_depth = { .on = true,
						       .threshold = 1 + pl_rng_below(&rng, 20000),
						       .end_hold_ns = 1 + pl_rng_below(&rng, MS),
						       .limit_burst = 1000000 } };
		struct pl_detect_options b;
		struct pl_detect *in_cells, *in_bytes;
		struct pl_event kept[8];

		o.queue_depth.low = pl_rng_below(&rng, o.queue_depth.threshold) + 1;
		o.queue_depth.step = (uint32_t)pl_rng_below(&rng, 2) * 1000;
		o.queue_depth.step_bits = (uint32_t)pl_rng_below(&rng, 14);
		o.microburst.on = true;
		o.microburst.threshold = 1 + (uint32_t)pl_rng_below(&rng, 10000);
		o.units = (struct pl_core_units){ .n = 1, .of = { { 7, 7, c, 0 } } };
		b = o;
		b.units.of[0].queue_bytes = 1;
		in_cells = made(&o);
		in_bytes = made(&b);
		for (unsigned int i = 0; good && i < 200; i++) {
			const uint32_t v = (uint32_t)pl_rng_below(&rng, 30000 / c + 2);
			const uint64_t now = SECOND + i * MS / 4;
			uint32_t n;

			out.n = 0;
			depth(in_cells, 7, v, now);
			if (i % 20 == 0)
				pl_detect_tick(in_cells, now, now, &out);
			n = out.n;
			good = n <= 8;
			memcpy(kept, out.events, (good ? n : 0) * sizeof(kept[0]));
			out.n = 0;
			depth(in_bytes, 7, v * c, now);
			if (i % 20 == 0)
				pl_detect_tick(in_bytes, now, now, &out);
			good = good && out.n == n &&
			       memcmp(kept, out.events, n * sizeof(kept[0])) == 0;
			told += n;
			if (!good)
				printf("# cells of %u: value %u, %u events, of bytes %u\n", c, v, n,
					out.n);
		}
		pl_detect_free(in_cells);
		pl_detect_free(in_bytes);
	}
	ok(good && told > 10000, "%" PRIu64 " events are those of bytes", told);
}

/* Another unit at run time: the level that it does not reach any more ends, in the new unit. */
static void changed(void)
{
	struct pl_detect_options o = {
		.queue_depth = { .on = true, .threshold = 1000, .low = 1000, .end_hold_ns = 1 }
	};
	struct pl_detect *det = made(&o);
	struct raised_level level;
	uint64_t pos = 0;

	depth(det, 7, 900, SECOND);
	eq(out.n, 0, "900 of an unknown unit");
	o.units = (struct pl_core_units){ .n = 1, .of = { { 0, UINT64_MAX, 80, 0 } } };
	eq(pl_detect_change(det, &o, SECOND, 1, &out), 0, "cells of 80");
	depth(det, 7, 900, SECOND + 1);
	ok(out.n == 1 && out.events[0].value == 72000, "the same value is above, in bytes");
	ok(next_raised(det, &pos, &level) && level.bytes && level.max == 72000,
		"and raised, in bytes");
	out.n = 0;
	o.units.n = 0;
	eq(pl_detect_change(det, &o, SECOND + 2, 1, &out), 0, "unknown again");
	depth(det, 7, 900, SECOND + 3);
	depth(det, 7, 900, SECOND + 5);
	ok(out.n == 1 && out.events[0].phase == PL_PHASE_END && out.events[0].value == 900 &&
			!(out.events[0].present & PL_EVENT_HAS_unit),
		"and ends, as it is");
	o.units = (struct pl_core_units){ .n = 1, .of = { { 2, 1, 80, 0 } } };
	eq(pl_detect_change(det, &o, SECOND, 1, &out), -EINVAL, "nodes in no order");
	o.units.of[0] = (struct pl_core_unit){ 1, 2, PL_CORE_UNIT_BYTES + 1, 0 };
	eq(pl_detect_change(det, &o, SECOND, 1, &out), -EINVAL, "a cell too large");
	o.units.n = PL_CORE_UNITS + 1;
	eq(pl_detect_change(det, &o, SECOND, 1, &out), -EINVAL, "too many");
	pl_detect_free(det);
}

int main(void)
{
	if (pl_record_batch_init(&batch, 512, 1024) < 0 || pl_event_batch_init(&out, 512) < 0)
		return EXIT_FAILURE;
	lookup();
	records();
	borders();
	same_as_bytes();
	changed();
	pl_record_batch_done(&batch);
	pl_event_batch_done(&out);
	return pl_test_done();
}
