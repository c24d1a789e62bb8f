/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The controller of a switch that writes into a collector's memory without a translator, for the
 * P4-to-RDMA collector (rdma/exchange.h, compact): a collector connects and sends where to write,
 * the controller puts an entry with that into a table of the switch, and sends the collector its
 * bytes back.
 */
#pragma once

#include "base/diag.h"

struct pl_switch_controller {
	const char *listen; /* "ADDRESS:PORT" */
	const char *socket; /* control socket of the switch */
	const char *table;
	const char *entry; /* in which {va}, {rkey} and {qpn} stand for the collector's values */
};

/* Serves one collector after the other until SIGTERM or SIGINT; reports on standard error. A
 * collector that sends nothing valid within ten seconds, or whose entry the switch refuses, gets no
 * answer. Negative errno with diag: -EINVAL for an entry without one of the three. */
int pl_switch_controller_run(const struct pl_switch_controller *c, struct pl_diag *diag);
