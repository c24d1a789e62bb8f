/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The demonstration of packets: ordinary traffic with attacks (gen/traffic.h) becomes records, flows
 * and answers of standing questions, all in this process. No socket is opened, unless an output is
 * named. Because the traffic is made here, what the questions find is held against what was done.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/json.h"
#include "record/packet.h"
#include "runtime/confine.h"

struct pl_packets_demo_options {
	uint64_t duration_ns, seed;
	bool paced;     /* by the clock; else as fast as it goes */
	const char *to; /* an output for the records (tap_out.h); NULL: none */
	/* One line about something that happened, when it did since the start. */
	void (*tell)(void *arg, double seconds, const char *line);
	void *arg;
	const volatile sig_atomic_t *stop;
	/* Begun by pl_confine_init: rights are given up before the output is opened. NULL: kept. */
	struct pl_confine *confine;
};

#define PL_PACKETS_DEMO_TOP 8

struct pl_packets_demo_result {
	double seconds; /* of the traffic */
	uint64_t packets, records, flows;
	uint64_t packets_in_flows;               /* sum over the records of flows */
	uint64_t not_in_flows;                   /* that the cache counts as left out */
	uint64_t connections, connections_found; /* made, and seen from SYN to both FINs */
	uint64_t lost, retransmissions;          /* made, and found */
	uint64_t scan, scan_found;               /* rounds of the story with a scan */
	uint64_t flood, flood_found;
	uint64_t storm, storm_found;
	uint64_t false_alarms; /* rows of the questions that name somebody else */
	uint64_t out_lost;     /* records that the output did not take */
	/* The records of flows with the most bytes, the greatest first. */
	struct pl_flow288 top[PL_PACKETS_DEMO_TOP];
	uint32_t n_top;
};

/* Negative errno with diag. */
int pl_packets_demo(const struct pl_packets_demo_options *options,
	struct pl_packets_demo_result *ret, struct pl_diag *diag);

/* True when all accounts close and all was found. */
bool pl_packets_demo_right(const struct pl_packets_demo_result *result);
void pl_packets_demo_json(const struct pl_packets_demo_result *result, struct pl_json *json);
