/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The controller of a switch that writes into a collector's memory by itself, as the P4-to-RDMA collector has it
 * (rdma/exchange.h, compact): a collector connects and says where to write, an entry with that comes into
 * a table of the switch, and the collector gets its bytes back.
 */
#pragma once

#include "base/diag.h"

struct pl_switch_controller {
	const char *listen; /* "ADDRESS:PORT" */
	const char *socket; /* control socket of the switch */
	const char *table;
	const char *entry; /* in which {va}, {rkey} and {qpn} are the collector's */
};

/* Until SIGTERM or SIGINT, for one collector after the other; what happens is said on standard error. A
 * collector that says nothing sensible within ten seconds, or whose entry the switch refuses, gets no answer.
 * Negative errno with diag: -EINVAL for an entry that has not all three. */
int pl_switch_controller_run(const struct pl_switch_controller *c, struct pl_diag *diag);
