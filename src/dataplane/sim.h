/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network in simulated time: switches (callbacks for packets: a pipeline or a test), hosts, ports
 * with queues, links, clocks, and the truth about each packet. It runs event by event, without
 * sockets and without the time of day: the same seed and calls give the same bytes.
 *
 * True time is the simulation's, in ns. A node sees its own clock, which sets in_ns and out_ns of a
 * packet. Nodes, ports, links, flows and timers are added before or between runs and stay. One
 * thread.
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

#define PL_DP_SIM_PORTS_MAX 1024 /* numbers of ports are below this */
/* Most hops of a path in the truth: as many as the INT decoder reads. Of a longer path the first
 * hops are kept. */
#define PL_DP_SIM_HOPS_MAX  32
/* Bit in the serial of packets that answer others of their flow: each direction is numbered on its
 * own. */
#define PL_DP_SERIAL_BACK   (UINT64_C(1) << 63)

struct pl_dp_sim;

/*
 * The truth as records: one path for each packet a host sent, when it arrived or was dropped, with
 * its hops, and one event for each drop, packet_drop. Fields as in telemetry, so that the two can be
 * joined, with these differences:
 *   ingress_ts_ns, egress_ts_ns, ts_ns, link_latency_ns   by true time; hop_latency_ns by the node's
 *   queue_depth, queue_bytes   bytes in its queue as it came
 *   flow_id, flow_seq          the flow's number and the packet's number in it
 *   e2e_ts_ns                  when the host sent it
 *   report_id                  the packet's number in this simulation
 *   copy, dropped, drop_reason of a copy that a link made; of a packet that was dropped
 *   path_id                    as the decoder computes it; absent when the packet was dropped
 * An event has node, port and queue of the drop. One on a link has drop_reason 0, node and
 * ingress_port of its receiver, and peer.node and peer.port of its sender.
 */
struct pl_dp_truth_ops {
	void (*path)(void *arg, const struct pl_path *path, const struct pl_hop *hops);
	void (*event)(void *arg, const struct pl_event *event);
	void *arg;
};

struct pl_dp_sim_cfg {
	uint64_t seed;
	uint64_t start_ns;            /* true time of the begin */
	uint32_t packets_max;         /* most packets alive; 0: 65536 */
	uint32_t packet_bytes;        /* of the longest packet; 0: 2048 */
	struct pl_dp_truth_ops truth; /* NULLs: only counters are kept */
};

/* Creates an empty simulation. -EINVAL, -ENOMEM. */
int pl_dp_sim_new(struct pl_dp_sim **ret, const struct pl_dp_sim_cfg *cfg);
void pl_dp_sim_free(struct pl_dp_sim *s);
uint64_t pl_dp_sim_now(const struct pl_dp_sim *s);
struct pl_dp_pool *pl_dp_sim_pool(struct pl_dp_sim *s);
uint64_t pl_dp_sim_seed(const struct pl_dp_sim *s);

/* Callbacks of a node. A node owns a packet passed to it, and within the call sends it by
 * pl_dp_sim_out (from ingress, or created by the node) or pl_dp_sim_wire (from egress), or reports
 * its end by pl_dp_sim_dropped or pl_dp_sim_arrived and frees it. */
struct pl_dp_sim_ops {
	/* Of a switch: a packet arrived. in_port and in_ns are set, metadata of other nodes is
	 * cleared. */
	void (*ingress)(void *arg, struct pl_dp_packet *pkt);
	/* Of a switch: a packet left its queue, which set depths, out_ns and tx_util. NULL: it is
	 * sent. */
	void (*egress)(void *arg, struct pl_dp_packet *pkt);
	/* The packet's queue had no room; pkt->drop is set. NULL: it is reported and freed. */
	void (*refused)(void *arg, struct pl_dp_packet *pkt);
	/* Of a host: a packet arrived, lent for the call. NULL: it is only counted. */
	void (*receive)(void *arg, const struct pl_dp_packet *pkt);
	void *arg;
};

struct pl_dp_sim_node_cfg {
	uint32_t id; /* id in records */
	bool host;
	struct pl_dp_sim_ops ops;
	struct pl_dp_clock clock;
};

/* Adds a node. -EINVAL: a switch without ingress; -ENOMEM. */
int pl_dp_sim_node(
	struct pl_dp_sim *s, const struct pl_dp_sim_node_cfg *cfg, unsigned int *ret_node);
/* Adds a port. -EINVAL with diag: no such node, the number is taken or too high, or as
 * pl_dp_port_new. */
int pl_dp_sim_port(struct pl_dp_sim *s, unsigned int node, unsigned int number,
	const struct pl_dp_port_cfg *cfg, struct pl_diag *diag);
/* Adds two links, one for each direction: *ret_link is from a to b, the next number from b to a.
 * -EINVAL with diag: a port does not exist or has a link already, or as pl_dp_link_new. */
int pl_dp_sim_link(struct pl_dp_sim *s, unsigned int a, unsigned int a_port, unsigned int b,
	unsigned int b_port, const struct pl_dp_link_cfg *cfg, unsigned int *ret_link,
	struct pl_diag *diag);

/* Change a port or link from now on. -EINVAL with diag. */
int pl_dp_sim_port_set(struct pl_dp_sim *s, unsigned int node, unsigned int number,
	const struct pl_dp_port_cfg *cfg, struct pl_diag *diag);
int pl_dp_sim_link_set(struct pl_dp_sim *s, unsigned int link, const struct pl_dp_link_cfg *cfg,
	struct pl_diag *diag);
/* Returns the clock of a node, or NULL. */
struct pl_dp_clock *pl_dp_sim_clock(struct pl_dp_sim *s, unsigned int node);

/* Sends a packet from a host by its port 1 now; the caller has set flow, queue and serial. */
void pl_dp_sim_send(struct pl_dp_sim *s, unsigned int host, struct pl_dp_packet *pkt);
/* Puts a packet into the queue of pkt->out_port. One that the node did not receive (a report, a
 * mirror's clone) has no truth. */
void pl_dp_sim_out(struct pl_dp_sim *s, unsigned int node, struct pl_dp_packet *pkt);
/* Sends a packet into the link of pkt->out_port. */
void pl_dp_sim_wire(struct pl_dp_sim *s, unsigned int node, struct pl_dp_packet *pkt);
/* Reports that the node drops a packet, for pkt->drop; the caller frees it. */
void pl_dp_sim_dropped(struct pl_dp_sim *s, unsigned int node, const struct pl_dp_packet *pkt);
/* Reports a packet that was for the node, which answered; the caller frees it. */
void pl_dp_sim_arrived(struct pl_dp_sim *s, const struct pl_dp_packet *pkt);
/* Returns the time of the node's clock now. */
uint64_t pl_dp_sim_node_ns(const struct pl_dp_sim *s, unsigned int node);

/* Adds a timer: fn is called within a run at the time that the timer is armed for, and may arm it
 * again. -ENOMEM. */
int pl_dp_sim_timer(struct pl_dp_sim *s, void (*fn)(void *arg), void *arg, uint32_t *ret_timer);
/* Sets the timer's time; a past one means now, UINT64_MAX never. */
void pl_dp_sim_arm(struct pl_dp_sim *s, uint32_t timer, uint64_t at_ns);

/* Runs all events up to and including until_ns, which then is the present time. */
void pl_dp_sim_run(struct pl_dp_sim *s, uint64_t until_ns);

/*
 * A watcher of packets at ports: called as they arrive, before the node or host gets them, and
 * before they enter the queue of a port. The packet is lent for the call; its bytes may be changed,
 * not its length.
 */
struct pl_dp_sim_watch {
	void (*pass)(void *arg, unsigned int node, unsigned int port, bool out,
		struct pl_dp_packet *pkt);
	void *arg;
};
/* Sets the only watcher, from now on; NULL: none. */
void pl_dp_sim_set_watch(struct pl_dp_sim *s, const struct pl_dp_sim_watch *watch);

/* ---- account ---- */

/* Counters of a flow; at every time sent + copied = delivered + dropped + lost + under way. */
struct pl_dp_flow_account {
#define PL_STAT PL_STAT_MEMBER
#include "dataplane/flow_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_dp_flow_stats;

/* Adds a flow. Numbers begin at 1. -ENOMEM. */
int pl_dp_sim_flow(struct pl_dp_sim *s, uint32_t *ret_flow);
uint32_t pl_dp_sim_flows(const struct pl_dp_sim *s);
const struct pl_dp_flow_account *pl_dp_sim_flow_account(const struct pl_dp_sim *s, uint32_t flow);
const struct pl_dp_link *pl_dp_sim_link_at(const struct pl_dp_sim *s, unsigned int link);
/* Returns a port, or NULL. */
const struct pl_dp_port *pl_dp_sim_port_at(
	const struct pl_dp_sim *s, unsigned int node, unsigned int number);

struct pl_dp_sim_account {
	uint64_t events;                  /* steps of the simulation */
	uint64_t sent, delivered;         /* packets sent by hosts, and delivered to hosts and
					   * answering nodes; copies and packets that nodes made are
					   * included */
	uint64_t made;                    /* that nodes created */
	uint64_t dropped[PL_DP_DROP_MAX]; /* by nodes and on links, by enum pl_dp_drop */
	uint64_t untraced;                /* packets without truth, for want of memory */
};
const struct pl_dp_sim_account *pl_dp_sim_account(const struct pl_dp_sim *s);
