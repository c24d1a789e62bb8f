/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network in simulated time: switches (whoever is called for a packet: a pipeline, a test), hosts,
 * ports with queues, links, clocks, and the truth about each packet. Event by event, without sockets
 * and without the time of day: the same seed and the same calls give the same bytes.
 *
 * True time is the simulation's, in ns. A node sees its own clock: in_ns and out_ns of a packet are
 * by it. Nodes, ports, links, flows and timers are added before or between runs and stay. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "dataplane/clock.h"
#include "dataplane/link.h"
#include "dataplane/packet.h"
#include "dataplane/queues.h"
#include "record/record.h"

#define PL_DP_SIM_PORTS_MAX 1024 /* numbers of ports are below */
/* Hops of a path that the truth keeps: as many as INT telemetry is read to. Of a longer one it has
 * the first. */
#define PL_DP_SIM_HOPS_MAX  32
/* In the serial of packets that answer others of their flow: each way counts for itself. */
#define PL_DP_SERIAL_BACK   (UINT64_C(1) << 63)

struct pl_dp_sim;

/*
 * The truth as records: one path for each packet a host sent, when it arrived or was dropped, with
 * its hops, and one event for each drop, packet_drop. Fields as in telemetry, so that the two can be
 * joined, with these of their own:
 *   ingress_ts_ns, egress_ts_ns, ts_ns, link_latency_ns   by true time; hop_latency_ns by the node's
 *   queue_depth, queue_bytes   bytes in its queue as it came
 *   flow_id, flow_seq          the flow's number and the packet's number at its host
 *   e2e_ts_ns                  when the host sent it
 *   report_id                  the packet's number in this simulation
 *   copy, dropped, drop_reason of a copy that a link made; where its way ended
 *   path_id                    as the decoder works it out; absent when it was dropped
 * An event has node, port and queue of the drop. One on a link has drop_reason 0, node and
 * ingress_port of its far end, and peer.node and peer.port of the near end.
 */
struct pl_dp_truth_ops {
	void (*path)(void *arg, const struct pl_path *path, const struct pl_hop *hops);
	void (*event)(void *arg, const struct pl_event *event);
	void *arg;
};

struct pl_dp_sim_cfg {
	uint64_t seed;
	uint64_t start_ns;            /* true time at which it begins */
	uint32_t packets_max;         /* alive at once; 0: 65536 */
	uint32_t packet_bytes;        /* of the longest; 0: 2048 */
	struct pl_dp_truth_ops truth; /* NULLs: only books are kept */
};

/* -EINVAL, -ENOMEM. */
int pl_dp_sim_new(struct pl_dp_sim **ret, const struct pl_dp_sim_cfg *cfg);
void pl_dp_sim_free(struct pl_dp_sim *s);
uint64_t pl_dp_sim_now(const struct pl_dp_sim *s);
struct pl_dp_pool *pl_dp_sim_pool(struct pl_dp_sim *s);
uint64_t pl_dp_sim_seed(const struct pl_dp_sim *s);

/* What a node does. A packet handed over is the node's: it goes on by pl_dp_sim_out (from ingress,
 * or made by the node), by pl_dp_sim_wire (from egress), or is told of by pl_dp_sim_dropped or
 * pl_dp_sim_arrived and freed by the node. All of it within the call. */
struct pl_dp_sim_ops {
	/* A switch: in_port and in_ns are set, what other nodes left in the packet is cleared. */
	void (*ingress)(void *arg, struct pl_dp_packet *pkt);
	/* A switch: it left its queue, which set depths, out_ns and tx_util. NULL: it is sent. */
	void (*egress)(void *arg, struct pl_dp_packet *pkt);
	/* Its queue had no room; pkt->drop is set. NULL: it is told of and freed. */
	void (*refused)(void *arg, struct pl_dp_packet *pkt);
	/* A host: a packet arrived. Lent for the call. NULL: it is only booked. */
	void (*receive)(void *arg, const struct pl_dp_packet *pkt);
	void *arg;
};

struct pl_dp_sim_node_cfg {
	uint32_t id; /* in records */
	bool host;
	struct pl_dp_sim_ops ops;
	struct pl_dp_clock clock;
};

/* -EINVAL: a switch without ingress; -ENOMEM. */
int pl_dp_sim_node(
	struct pl_dp_sim *s, const struct pl_dp_sim_node_cfg *cfg, unsigned int *ret_node);
/* -EINVAL with diag: no such node, the number is taken or too high, or as pl_dp_port_new. */
int pl_dp_sim_port(struct pl_dp_sim *s, unsigned int node, unsigned int number,
	const struct pl_dp_port_cfg *cfg, struct pl_diag *diag);
/* Two links, one each way: *ret_link is from a to b, the next number from b to a. -EINVAL with diag:
 * a port does not exist or has a link already, or as pl_dp_link_new. */
int pl_dp_sim_link(struct pl_dp_sim *s, unsigned int a, unsigned int a_port, unsigned int b,
	unsigned int b_port, const struct pl_dp_link_cfg *cfg, unsigned int *ret_link,
	struct pl_diag *diag);

/* Changed while it runs, from now on. -EINVAL with diag. */
int pl_dp_sim_port_set(struct pl_dp_sim *s, unsigned int node, unsigned int number,
	const struct pl_dp_port_cfg *cfg, struct pl_diag *diag);
int pl_dp_sim_link_set(struct pl_dp_sim *s, unsigned int link, const struct pl_dp_link_cfg *cfg,
	struct pl_diag *diag);
/* NULL: there is none. */
struct pl_dp_clock *pl_dp_sim_clock(struct pl_dp_sim *s, unsigned int node);

/* A host sends a packet by its port 1 now; flow and queue are set by the caller, serial too. */
void pl_dp_sim_send(struct pl_dp_sim *s, unsigned int host, struct pl_dp_packet *pkt);
/* To the queue of pkt->out_port. What the node did not get by ingress (a report, a mirror's clone)
 * has no truth of its own. */
void pl_dp_sim_out(struct pl_dp_sim *s, unsigned int node, struct pl_dp_packet *pkt);
/* Into the link behind pkt->out_port. */
void pl_dp_sim_wire(struct pl_dp_sim *s, unsigned int node, struct pl_dp_packet *pkt);
/* Its way ends here, by pkt->drop; the caller frees it. */
void pl_dp_sim_dropped(struct pl_dp_sim *s, unsigned int node, const struct pl_dp_packet *pkt);
/* Its way ends here, as it was for the node, which answered; the caller frees it. */
void pl_dp_sim_arrived(struct pl_dp_sim *s, const struct pl_dp_packet *pkt);
/* What the node's clock shows now. */
uint64_t pl_dp_sim_node_ns(const struct pl_dp_sim *s, unsigned int node);

/* Called at the time that it is armed for, within a run; it may arm itself again. -ENOMEM. */
int pl_dp_sim_timer(struct pl_dp_sim *s, void (*fn)(void *arg), void *arg, uint32_t *ret_timer);
/* UINT64_MAX: not at all. A time that has passed is now. */
void pl_dp_sim_arm(struct pl_dp_sim *s, uint32_t timer, uint64_t at_ns);

/* Everything that happens up to and at a time, which then is now. */
void pl_dp_sim_run(struct pl_dp_sim *s, uint64_t until_ns);

/*
 * Who watches packets at ports: as they arrive, before the node or host has them, and on their way
 * into the queue of a port. Lent for the call; bytes of the packet may be changed, not its length.
 */
struct pl_dp_sim_watch {
	void (*pass)(void *arg, unsigned int node, unsigned int port, bool out,
		struct pl_dp_packet *pkt);
	void *arg;
};
/* One at a time, from now on; NULL: nobody. */
void pl_dp_sim_set_watch(struct pl_dp_sim *s, const struct pl_dp_sim_watch *watch);

/* ---- books ---- */

/* At every time sent + copied = delivered + dropped + lost + under way. */
struct pl_dp_flow_books {
#define PL_STAT PL_STAT_MEMBER
#include "dataplane/flow_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_dp_flow_stats;

/* A flow has a number from 1. -ENOMEM. */
int pl_dp_sim_flow(struct pl_dp_sim *s, uint32_t *ret_flow);
uint32_t pl_dp_sim_flows(const struct pl_dp_sim *s);
const struct pl_dp_flow_books *pl_dp_sim_flow_books(const struct pl_dp_sim *s, uint32_t flow);
const struct pl_dp_link *pl_dp_sim_link_at(const struct pl_dp_sim *s, unsigned int link);
/* NULL: there is none. */
const struct pl_dp_port *pl_dp_sim_port_at(
	const struct pl_dp_sim *s, unsigned int node, unsigned int number);

struct pl_dp_sim_books {
	uint64_t events;                  /* steps of the simulation */
	uint64_t sent, delivered;         /* by hosts, to hosts and nodes that answered, with copies
					   * and what nodes made */
	uint64_t made;                    /* that nodes sent and had not got */
	uint64_t dropped[PL_DP_DROP_MAX]; /* by nodes, and on links */
	uint64_t untraced;                /* packets without truth, for want of memory */
};
const struct pl_dp_sim_books *pl_dp_sim_books(const struct pl_dp_sim *s);
