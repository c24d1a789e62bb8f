/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traffic between hosts of a running lab, with real sockets in their namespaces, and an account of
 * packets sent and received.
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

/* Account of a sender, or of the receiver for all of them. request and dns count requests and
 * answers as packets; bulk only bytes. */
struct pl_lab_traffic_account {
	uint64_t sent, sent_bytes;
	uint64_t came, came_bytes;         /* received; at a sender: answers */
	uint64_t failed;                   /* refused by the sender's own kernel */
	uint64_t time_sum_ns, time_max_ns; /* until the answer */
};

/* Runs the traffic until it ends. ret: accounts of the senders in order, then of the receiver.
 * -EINVAL, or a socket's error, with diag. */
int pl_lab_traffic_run(const struct pl_lab_found *f, const struct pl_lab_traffic *t,
	struct pl_lab_traffic_account ret[PL_LAB_SENDERS_MAX + 1], struct pl_diag *diag);
/* Runs it in a simulated lab; counts frames, of both directions. */
int pl_lab_traffic_simulated(const struct pl_lab_found *f, const struct pl_lab_traffic *t,
	struct pl_lab_traffic_account ret[PL_LAB_SENDERS_MAX + 1], struct pl_diag *diag);
/* Runs it in a process of the lab, which has the nodes' namespaces open. SIGTERM ends the sending;
 * the accounts are complete even then. */
int pl_lab_traffic_run_within(const struct pl_lab_topology *topology, const int *namespaces,
	const struct pl_lab_traffic *t, struct pl_lab_traffic_account ret[PL_LAB_SENDERS_MAX + 1],
	struct pl_diag *diag);
/* Prints the accounts as text, or as a JSON object in one line. */
void pl_lab_traffic_show(const struct pl_lab_topology *topology, const struct pl_lab_traffic *t,
	const struct pl_lab_traffic_account *a, bool json, struct pl_buf *out);
