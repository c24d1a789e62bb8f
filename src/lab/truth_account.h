/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of `pathline lab truth`, from the counters of queues, links and flows, real or simulated:
 * JSON objects, one a line, and records for queries. */
#pragma once

#include "base/buf.h"
#include "base/stats.h"
#include "dataplane/link.h"
#include "dataplane/queues.h"
#include "dataplane/sim.h"
#include "lab/topology.h"
#include "wire/layers.h"

/* Counters of a link's interfaces. */
struct pl_lab_wire_account {
#define PL_STAT PL_STAT_MEMBER
#include "lab/wire_stats.def"
#undef PL_STAT
};

/* One direction of a link. */
struct pl_lab_truth_link {
	unsigned int link, from; /* of the topology; `from`: the sending end */
	const struct pl_dp_port *port;
	const struct pl_dp_link *dp;
	const struct pl_lab_wire_account *wire; /* NULL: no interfaces */
};

/* The counters as JSON objects, and as records (link128, sent128 of record/fields.def). Owned;
 * zero-initialised. */
struct pl_lab_truth_account {
	struct pl_buf text, links, flows;
};
void pl_lab_truth_account_done(struct pl_lab_truth_account *b);
/* Append a link's or flow's counters. Nodes are numbered from 1 in the topology's order. */
void pl_lab_truth_link(const struct pl_lab_topology *t, const struct pl_lab_truth_link *l,
	uint64_t now_ns, struct pl_lab_truth_account *ret);
void pl_lab_truth_flow(const struct pl_flow *flow, uint32_t number,
	const struct pl_dp_flow_account *account, uint64_t now_ns,
	struct pl_lab_truth_account *ret);

#define PL_LAB_TRUTH_LINKS "links.link128"
#define PL_LAB_TRUTH_FLOWS "flows.sent128"
/* Writes the records to files of these names in an existing folder, replacing older ones. Negative
 * errno. */
int pl_lab_truth_account_write(const struct pl_lab_truth_account *b, const char *folder);
