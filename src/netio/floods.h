/* SPDX-License-Identifier: BSD-2-Clause */
/* Senders that flood a port: the log tells of them, and their list in accounts. */
#pragma once

#include "base/json.h"
#include "netio/port.h"

/* Changes that were told already, of one port. */
struct pl_floods_told {
	uint64_t since_ns[PL_PORT_FLOODS];
	int error;
};

/* Logs the changes that were not told yet: who is received apart, and who with the others again; and when no
 * socket could be had for one. subject: of the log. */
void pl_floods_tell(
	struct pl_floods_told *told, struct pl_port *port, const char *uri, const char *subject);

/* Adds the senders to the array that is open. */
void pl_floods_json(struct pl_json *json, const struct pl_port_flood *floods, uint32_t n);
