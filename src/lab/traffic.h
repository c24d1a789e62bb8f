/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traffic between hosts of a lab that is up, with real sockets in their namespaces, and an account of
 * what was sent and what came.
 *
 *   bulk     TCP, as much as goes
 *   udp      datagrams at a constant rate
 *   onoff    datagrams at that rate for a time, then none for a time
 *   incast   the same from all senders at the same moments
 *   request  TCP: a request of 64 bytes and an answer of `size` bytes, one after the other
 *   dns      UDP: questions of 40 bytes and answers of `size` bytes at `rate_bps` of answers; an
 *            answer that does not come within two seconds is none
 */
#pragma once

#include "base/buf.h"
#include "lab/up.h"

/* Of one sender, and what its peer says of all. Requests and answers count as packets of request and
 * dns; bulk has bytes only. */
struct pl_lab_traffic_account {
	uint64_t sent, sent_bytes;
	uint64_t came, came_bytes;         /* at the receiver; answers at who asked */
	uint64_t failed;                   /* refused by the sender's own kernel */
	uint64_t time_sum_ns, time_max_ns; /* of answers */
};

/* Waits until it is over. Accounts of senders in order, and behind them that of the receiver.
 * -EINVAL, or what a socket said, with diag. */
int pl_lab_traffic_run(const struct pl_lab_found *f, const struct pl_lab_traffic *t,
	struct pl_lab_traffic_account ret[PL_LAB_SENDERS_MAX + 1], struct pl_diag *diag);
/* The same in a lab whose network is simulated; packets and bytes are of frames, in both directions. */
int pl_lab_traffic_simulated(const struct pl_lab_found *f, const struct pl_lab_traffic *t,
	struct pl_lab_traffic_account ret[PL_LAB_SENDERS_MAX + 1], struct pl_diag *diag);
/* The same from the process of a lab, which has the namespaces of its nodes open; SIGTERM ends the
 * sending, and the accounts are whole all the same. */
int pl_lab_traffic_run_within(const struct pl_lab_topology *topology, const int *namespaces,
	const struct pl_lab_traffic *t, struct pl_lab_traffic_account ret[PL_LAB_SENDERS_MAX + 1],
	struct pl_diag *diag);
/* For people, or a JSON object in a line. */
void pl_lab_traffic_show(const struct pl_lab_topology *topology, const struct pl_lab_traffic *t,
	const struct pl_lab_traffic_account *a, bool json, struct pl_buf *out);
