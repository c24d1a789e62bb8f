/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the demonstration's reports come from: something that sends real datagrams to a collector's
 * address and keeps an account of what it sent, with a story of three things that happen: a path
 * changes, a queue builds up, reports are lost on purpose. What it is made of is its own business;
 * now it is the generator's model of a leaf-spine network, in a thread.
 */
#pragma once

#include <stdint.h>

#include "base/diag.h"

struct pl_demo_traffic;

struct pl_demo_traffic_options {
	const char *uri;   /* of the collector: "udp://127.0.0.1:40000" */
	double rate;       /* reports per second */
	uint64_t story_ns; /* the story's length; it is told again and again */
	uint64_t seed;
};

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
