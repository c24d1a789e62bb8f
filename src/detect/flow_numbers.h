/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets lost and overtaken, by the numbers that sources put into the packets of a flow
 * (flow_seq): GEANT's 16 bits, those of hosts in INT 2.1 (PL_INT_DS_HOSTS), IOAM's edge to edge and
 * direct export. Host-INT's are not used: its reports are sent now and then, so a gap says nothing;
 * it reports its losses in drop summaries.
 *
 * A packet is missing when its number is missing for longer than a check interval (a second). But
 * the number is also missing when the packet's report was lost, and two numbers are swapped when
 * reports were reordered. So a missing packet is *lost* only if the exporter's own report numbers
 * had no gap and no disorder since the flow's previous report; else it is *unsure*, which is
 * counted separately and causes no event. The same holds for packets out of order, and for packets
 * that are observed directly (IOAM) if this machine had no room for some of them.
 *
 * Internal to detect/; one per detector that sees every report of its exporters.
 */
#pragma once

#include "base/shares.h"
#include "detect/tables.h"

/* State of the flow numbers. The table is shared by sources (base/shares.h): exporters or, of
 * packets that are seen themselves, their senders. A flow of which no two numbers fitted each other
 * yet makes room first. */
struct pl_flow_numbers {
	struct pl_cells cells;
	struct pl_shares shares;
	uint32_t hand;
	/* Flows that were evicted before one of their events had ended: the next check ends it.
	 * When this is full too, such flows stay. */
	struct numbered_flow *gone;
	uint32_t n_gone;
	uint64_t seed;
	struct pl_flow_number_counters counters;
};

int pl_flow_numbers_init(struct pl_flow_numbers *f, uint32_t max); /* returns 0 or -ENOMEM */
void pl_flow_numbers_done(struct pl_flow_numbers *f);
uint64_t pl_flow_numbers_memory(uint32_t max);

void pl_flow_numbers_batch(
	struct pl_flow_numbers *f, const struct pl_record_batch *batch, uint64_t now_ns);

/* Reads how often the exporter's sequence numbers had a gap or came out of order, until now and
 * until the check before. Returns false when its reports are not numbered, or the exporter is not
 * known. A key of all zeros means no exporter: the packets themselves are captured. */
typedef bool pl_exporter_trouble_fn(void *arg, const struct pl_core_exporter_key *exporter,
	uint64_t *ret_now, uint64_t *ret_before);

/* Called about once a second, after the exporters were checked: begins and ends events, and
 * forgets flows that are over. */
void pl_flow_numbers_tick(struct pl_flow_numbers *f, struct pl_core_env *env,
	pl_exporter_trouble_fn *trouble, void *arg, uint64_t now_ns, uint64_t ts_ns);

/* Adds packets lost and reordered to those of these flows whose numbers are followed, in whatever
 * namespaces. */
void pl_flow_numbers_add(const struct pl_flow_numbers *f, struct pl_flow_seen *seen, uint32_t n);
