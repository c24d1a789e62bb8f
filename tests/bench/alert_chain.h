/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `bench alert` measures: processes of this program that tap the receiver's end of the wire of
 * benchmarks, ask two standing queries, and send their events to a webhook. Without a topic one
 * process does it all; with one a second process taps into the topic that the first one reads.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

#define PL_ALERT_WINDOW_NS   UINT64_C(100000000) /* of the query "window" */
#define PL_ALERT_LATENESS_NS UINT64_C(200000000)

struct pl_alert_chain {
	char dir[64];
	pid_t query, tap; /* 0: none */
	uint16_t web;     /* of the process with the queries, on loopback */
};

/* Starts the processes in the network namespace of the calling thread, and waits until they are
 * ready. topic: kafka://HOST:PORT/TOPIC, or NULL. Negative errno with diag. To be closed also on
 * failure. */
int pl_alert_chain_open(struct pl_alert_chain *c, const char *tapped, const char *topic,
	uint16_t webhook, struct pl_diag *diag);
void pl_alert_chain_close(struct pl_alert_chain *c);

/* Records that the queries were given so far; in that namespace. Negative errno: the process does
 * not answer. */
int pl_alert_chain_records(const struct pl_alert_chain *c, uint64_t *ret);
