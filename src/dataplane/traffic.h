/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traffic of a simulated network: hosts send UDP or TCP packets of flows, by a pattern. Each flow
 * has its own random numbers, so that another flow does not change it. Packets have the flow's
 * tuple and a payload of zeros, whose first 8 bytes (if it has 8) are the packet's number.
 */
#pragma once

#include "dataplane/sim.h"
#include "wire/layers.h"

enum pl_dp_pattern {
	PL_DP_CONSTANT, /* a packet every 1 / rate */
	PL_DP_POISSON,  /* gaps exponential with mean 1 / rate */
	/* Packets at the rate in bursts of exponential length with mean on_ns, between pauses of
	 * exponential length with mean off_ns. */
	PL_DP_ON_OFF,
	/* `burst` packets every period_ns, at the rate (0: all at once). Flows of many hosts to one
	 * with the same start and period are incast. */
	PL_DP_BURSTS,
	/* The source sends a request; when it arrives, the destination answers with `burst` packets
	 * of reply_bytes at the rate (0: at once). When all have arrived, or timeout_ns after the
	 * request, the next request follows after an exponential time with mean off_ns. */
	PL_DP_REQUESTS,
};

struct pl_dp_flow_cfg {
	enum pl_dp_pattern pattern;
	unsigned int from, to; /* hosts: nodes of the simulation */
	struct pl_flow tuple;  /* TCP or UDP; addresses of one family, vlan 0: no tag */
	uint8_t from_mac[6], to_mac[6];
	uint8_t queue;  /* class of the hosts' ports */
	uint8_t ecn;    /* codepoint of the IP header: 0 Not-ECT, 2 ECT(0) */
	uint32_t bytes; /* bytes of a frame, with room for its headers */
	uint32_t reply_bytes;
	double rate;                /* packets per second */
	uint64_t start_ns, stop_ns; /* true times; stop 0: never */
	uint64_t packets;           /* most packets; 0: no limit */
	uint64_t on_ns, off_ns, period_ns, timeout_ns;
	uint32_t burst;
};

struct pl_dp_traffic;

/* Creates the traffic of a simulation, which outlives it. -ENOMEM. */
int pl_dp_traffic_new(struct pl_dp_traffic **ret, struct pl_dp_sim *sim, uint64_t seed);
void pl_dp_traffic_free(struct pl_dp_traffic *t);

/* Adds a flow, which begins at start_ns. *ret_flow is its number in the simulation's accounts (both
 * directions). -EINVAL with diag, -ENOMEM. */
int pl_dp_traffic_add(struct pl_dp_traffic *t, const struct pl_dp_flow_cfg *cfg, uint32_t *ret_flow,
	struct pl_diag *diag);

/* To be called by the hosts' `receive`: answers requests and counts answers. */
void pl_dp_traffic_receive(void *traffic, const struct pl_dp_packet *pkt);

struct pl_dp_traffic_account {
	uint64_t sent;          /* packets of senders, with requests, without answers */
	uint64_t timeouts;      /* requests without a complete answer in time */
	uint64_t completed;     /* requests with a complete answer */
	uint64_t completion_ns; /* sum of their times */
	uint64_t completion_max_ns;
};
const struct pl_dp_traffic_account *pl_dp_traffic_account(const struct pl_dp_traffic *t);
