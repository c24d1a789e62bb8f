/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What alerts of a benchmark go to: a webhook on loopback, in the network namespace of the thread
 * that opens it. It stamps each request when its last byte was read, and hands over the alerts of
 * standing queries whose key is an IPv4 address. A thread of its own; one connection at a time.
 */
#pragma once

#include <stdint.h>

struct pl_alert_receiver;

/* An alert: the query's name, its key (host byte order), its value, and when it was there, in
 * nanoseconds since the Unix epoch. Called by the receiver's thread. */
typedef void pl_alert_fn(
	void *arg, const char *query, uint32_t key, uint64_t value, uint64_t stamp_ns);

/* Negative errno. *ret_port: where it listens. */
int pl_alert_receiver_open(
	struct pl_alert_receiver **ret, uint16_t *ret_port, pl_alert_fn *take, void *arg);
void pl_alert_receiver_close(struct pl_alert_receiver *r);

/* A listening socket on loopback and its port; negative errno. */
int pl_alert_listen(uint16_t *ret_port);
