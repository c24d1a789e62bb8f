/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generated ordinary traffic, as frames: clients and servers with TCP connections (handshake,
 * request, answer, both FINs, timestamps; some segments are lost and sent again) and DNS questions
 * over UDP. No sockets and no clock; the same configuration gives the same bytes.
 *
 * The story, an option, begins 5 s after the start and repeats every 30 s: a port scan for 2 s from
 * PL_TRAFFIC_SCANNER, at 10 s a SYN flood for 3 s from random sources to the first server, at 15 s
 * for 4 s a path to the third server that loses PL_TRAFFIC_STORM_LOSS of the segments, so that they
 * are sent again, at 20 s for 5 s late answers of the second server. pl_traffic_truth counts these.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "wire/packet.h"

#define PL_TRAFFIC_SCANNER      "198.51.100.66"
#define PL_TRAFFIC_FIRST_SERVER "192.0.2.1"
#define PL_TRAFFIC_SLOW_SERVER  "192.0.2.2"
#define PL_TRAFFIC_STORM_SERVER "192.0.2.3"
#define PL_TRAFFIC_STORM_LOSS   0.6

struct pl_traffic_cfg {
	uint64_t seed;
	uint64_t start_ns;    /* time of the first packet, since the Unix epoch */
	uint64_t duration_ns; /* 0: without end */
	uint64_t count;       /* packets; 0: no limit */
	/* new TCP connections per second; as many DNS questions. 0: 100 */
	double connections;
	double loss;               /* ratio of TCP segments that are lost and sent again */
	uint32_t clients, servers; /* 0: 200 and 10 */
	bool story;
};

struct pl_traffic_truth {
	uint64_t packets, connections, questions;
	uint64_t lost;        /* segments that were sent again */
	uint64_t storm;       /* of these in the story's storm */
	uint64_t scans, syns; /* packets of the scan without answers; packets of the flood */
};

struct pl_traffic;

/* Returns -EINVAL with diag, -ENOMEM. */
int pl_traffic_new(struct pl_traffic **ret, const struct pl_traffic_cfg *cfg, struct pl_diag *diag);
void pl_traffic_free(struct pl_traffic *traffic);

/* As pl_gen_next, pl_gen_due_ns and pl_gen_skip_to of gen/gen.h. */
int pl_traffic_next(struct pl_traffic *traffic, uint64_t until_ns, struct pl_batch *ret);
uint64_t pl_traffic_due_ns(const struct pl_traffic *traffic);
void pl_traffic_skip_to(struct pl_traffic *traffic, uint64_t now_ns);

const struct pl_traffic_truth *pl_traffic_truth(const struct pl_traffic *traffic);
