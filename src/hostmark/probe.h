/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of small UDP packets, so that an idle network has packets that can be marked: a fixed
 * number in each block, evenly spaced, the first one at the time of the method's packet for delay.
 * They leave by one interface from one port. A block never has more of them: probes that could not
 * be sent are counted, and not sent later. The payload is 32 bytes: the number of the packet from 0
 * on, 64 bits in network byte order, then zeros.
 */
#pragma once

#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "netio/udp_address.h"
#include "tap/rules.h"

#define PL_PROBE_BYTES      32u
#define PL_PROBE_PORT       9u /* discard (RFC 863) */
#define PL_PROBE_DEFAULT    10u
#define PL_PROBE_SECOND_MAX 1000u /* packets in a second */

struct pl_probe_options {
	const char *dev; /* outlives the probe */
	struct pl_sockaddr to;
	uint32_t in_block; /* probes in a block, at least 1 */
	uint64_t period_ns;
	uint64_t from_ns; /* time of the first probe in the block */
};

struct pl_probe_stats {
#define PL_STAT PL_STAT_MEMBER
#include "hostmark/probe_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_probe_stats_list;

struct pl_probe;

/* Resolves address and port of "HOST" or "HOST:PORT"; names are looked up. Returns -EINVAL or
 * -EADDRNOTAVAIL with diag. */
int pl_probe_resolve(struct pl_sockaddr *ret, const char *target, struct pl_diag *diag);

/* Adds a rule that takes probes to that address before the others. Returns negative errno with
 * diag. */
int pl_probe_add_rule(
	struct pl_tap_rules *rules, const struct pl_sockaddr *to, struct pl_diag *diag);

/* Begins after now_ns, in the clock of pl_probe_send. Returns negative errno with diag: no socket
 * on the interface. */
int pl_probe_open(struct pl_probe **ret, const struct pl_probe_options *options, uint64_t now_ns,
	struct pl_diag *diag);
void pl_probe_close(struct pl_probe *p); /* NULL is allowed */

/* Sends the probe that is due by CLOCK_TAI; if several are due, the last one. Never waits. */
void pl_probe_send(struct pl_probe *p, uint64_t now_ns);
uint64_t pl_probe_due_ns(const struct pl_probe *p); /* time of the next one, by CLOCK_TAI */
const struct pl_probe_stats *pl_probe_stats(const struct pl_probe *p);
