/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of an aggregate that are full: whose keys have cells, and that nothing is lost when one
 * changes hands. */
#include "detect/aggregate.h"

#include "detect/batch_maker.h"

enum { ROOM = 64 };

static struct pl_record_batch batch;
static struct pl_aggregate *agg;
static uint64_t now_ns = 1000000000;

/* One report of 10.9.0.source about a node. */
static void report(unsigned int source, uint64_t node, unsigned int flags)
{
	const uint8_t b[4] = { 10, 9, 0, (uint8_t)source };
	struct pl_path *p;
	struct pl_hop *h;

	pl_record_batch_clear(&batch);
	p = add_path(&batch, flags);
	p->exporter = pl_addr_v4(b);
	p->present |= PL_PATH_HAS_exporter;
	h = add_hop(
		&batch, node, PL_HOP_HAS_node | PL_HOP_HAS_egress_port | PL_HOP_HAS_queue_depth);
	h->egress_port = 1;
	h->queue_depth = 7;
	set_path_id(&batch);
	pl_aggregate_batch(agg, &batch);
}

/* One packet that carries IOAM itself, with a proof of transit, about a node. */
static void transit(uint64_t packet_id, uint64_t node)
{
	struct pl_path *p;
	struct pl_hop *h;

	pl_record_batch_clear(&batch);
	p = add_path(&batch, 0);
	p->mode = PL_MODE_IOAM_TRACE;
	pl_path_set_ioam_namespace(p, 1);
	pl_path_set_pot_packet_id(p, (packet_id + 1) * UINT64_C(0x9e3779b97f4a7c15));
	pl_path_set_pot_cumulative(p, packet_id);
	h = add_hop(
		&batch, node, PL_HOP_HAS_node | PL_HOP_HAS_egress_port | PL_HOP_HAS_queue_depth);
	h->egress_port = 1;
	set_path_id(&batch);
	pl_aggregate_batch(agg, &batch);
}

/* Nodes from `first` on that have cells, and the packets of all cells. */
static unsigned int nodes_from(const struct pl_aggregate *a, uint64_t first, uint64_t *ret_packets)
{
	const struct pl_agg_queue *q;
	unsigned int n = 0;
	uint32_t pos = 0;

	*ret_packets = pl_aggregate_queue_overflow(a)->packets;
	while ((q = pl_aggregate_queue(a, &pos)) != NULL) {
		n += q->key.node >= first && q->key.node < first + 1000;
		*ret_packets += q->packets;
	}
	return n;
}

static void second(void)
{
	now_ns += 1000000000;
	pl_aggregate_tick(agg, now_ns);
}

int main(void)
{
	const struct pl_aggregate_options options = {
		.max_queues = ROOM, .max_ports = ROOM, .max_links = ROOM, .max_paths = ROOM
	};
	struct pl_aggregate *copy, *sum;
	uint64_t packets, sent = 0;

	if (pl_record_batch_init(&batch, 16, 512) < 0 || pl_aggregate_new(&agg, &options) < 0 ||
		pl_aggregate_new(&copy, &options) < 0 || pl_aggregate_new(&sum, &options) < 0)
		return 1;
	second();
	for (unsigned int i = 0; i < 500; i++, sent++)
		report(1, 1000 + i, 0);
	eq(nodes_from(agg, 1000, &packets), ROOM, "a source that is alone has all cells");
	eq(packets, sent);
	for (unsigned int i = 0; i < 40; i++, sent++)
		report(2, 5000 + i % 10, 0);
	eq(nodes_from(agg, 5000, &packets), 10, "another one gets those that it needs");
	eq(packets, sent, "what the cells counted that made room is in the one labelled other");
	for (unsigned int i = 0; i < 500; i++, sent++)
		report(1, 2000 + i, 0);
	second();
	for (unsigned int i = 0; i < 500; i++, sent++)
		report(1, 3000 + i, 0);
	eq(nodes_from(agg, 5000, &packets), 10, "and keeps them");
	eq(packets, sent);
	eq(pl_aggregate_totals(agg)->displaced[PL_AGG_QUEUES], 10);
	ok(pl_aggregate_totals(agg)->displaced[PL_AGG_PORTS] == 10 &&
			pl_aggregate_totals(agg)->displaced[PL_AGG_PATHS] == 10,
		"ports and paths likewise");
	pl_aggregate_copy(copy, agg);
	eq(nodes_from(copy, 5000, &packets), 10, "a copy is the same");

	/* Those of a worker that saw only the first source come first. */
	pl_aggregate_reset(agg);
	for (unsigned int i = 0; i < ROOM; i++, sent++)
		report(1, 9000 + i, 0);
	pl_aggregate_merge(sum, agg);
	pl_aggregate_merge(sum, copy);
	eq(nodes_from(sum, 5000, &packets), 10,
		"nor does a source get more by another worker's cells");
	eq(packets, sent);

	pl_aggregate_reset(agg);
	for (unsigned int i = 0; i < 100; i++)
		report(1, 1000 + i, PL_FLAG_UNPROVEN);
	eq(nodes_from(agg, 0, &packets) + packets, 0,
		"of exporters that are not proven nothing is left");
	eq(pl_aggregate_totals(agg)->unproven, 100);
	eq(pl_aggregate_totals(agg)->reports, 0);

	/* In packets that carry IOAM the bytes of the exporter have a proof of transit. */
	pl_aggregate_reset(agg);
	second();
	for (unsigned int i = 0; i < ROOM; i++)
		report(1 + i % 2, 1000 + i, 0);
	for (unsigned int i = 0; i < 32; i++)
		transit(i, 5000 + i);
	ok(nodes_from(agg, 5000, &packets) <= 22, "packets without an exporter are of one source");
	pl_aggregate_free(agg);
	pl_aggregate_free(copy);
	pl_aggregate_free(sum);
	pl_record_batch_done(&batch);
	return pl_test_done();
}
