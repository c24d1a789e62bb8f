/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network of the demonstration: it sends real reports to a collector's address and keeps an
 * account of them, with a story of four things that happen: a link begins to lose 1 % of its packets,
 * a link fails and its flows take another path, a queue builds up, reports are lost on purpose. It is a lab's leaf-spine network, simulated
 * (lab/simulation.h) by the clock in a thread: switches with tables and queues, hosts that send.
 */
#pragma once

#include <stdint.h>

#include "base/diag.h"
#include "demo/losses.h"

struct pl_demo_traffic;

struct pl_demo_traffic_options {
	const char *uri;   /* of the collector: "udp://127.0.0.1:40000" */
	double rate;       /* packets of hosts per second, each of which is reported */
	uint64_t story_ns; /* the story's length; it is repeated */
	uint64_t seed;
};

/* The link that loses, one way. */
#define PL_DEMO_LEAK_FROM "leaf3"
#define PL_DEMO_LEAK_TO   "spine1"

struct pl_demo_account {
	uint64_t made; /* reports of the network: sent + lost on purpose + not sent */
	uint64_t sent; /* datagrams, one report each, that the kernel took */
	uint64_t lost_on_purpose;
	uint64_t not_sent; /* the kernel did not take them */
};

/* Starts sending. -EINVAL, errno with diag. */
int pl_demo_traffic_start(struct pl_demo_traffic **ret,
	const struct pl_demo_traffic_options *options, struct pl_diag *diag);
/* Stops and settles the account, which balances then. */
void pl_demo_traffic_stop(struct pl_demo_traffic *traffic, struct pl_demo_account *ret);
void pl_demo_traffic_free(struct pl_demo_traffic *traffic);

/* One line on what is shown: "leaf-spine network of 6 nodes, 60 flows". */
const char *pl_demo_traffic_describe(const struct pl_demo_traffic *traffic);

/* Returns the time that passed in the network, which is behind the clock on a slow machine. */
uint64_t pl_demo_traffic_passed_ns(const struct pl_demo_traffic *traffic);

/* Sums the losses that its switches find by marking. */
void pl_demo_traffic_losses(struct pl_demo_traffic *traffic, struct pl_demo_losses_sum *ret);
