/* SPDX-License-Identifier: BSD-2-Clause */
/* Senders that flood a port: log lines about them, and their list in accounts. */
#pragma once

#include "base/json.h"
#include "netio/port.h"

/* Changes of one port that were logged already. */
struct pl_floods_told {
	uint64_t since_ns[PL_PORT_FLOODS];
	int error;
};

/* Logs new changes: senders that got a separate socket, senders that are received with the others
 * again, and senders for which no socket could be opened. subject: of the log. */
void pl_floods_tell(
	struct pl_floods_told *told, struct pl_port *port, const char *uri, const char *subject);

/* Adds the senders to the array that is open. */
void pl_floods_json(struct pl_json *json, const struct pl_port_flood *floods, uint32_t n);
