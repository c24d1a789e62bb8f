/* SPDX-License-Identifier: BSD-2-Clause */
/* Senders that flood a port: the sentences for the log, and their list in accounts. */
#pragma once

#include <stddef.h>

#include "base/json.h"
#include "netio/port.h"

/* Changes that were told already, of one port. */
struct pl_floods_told {
	uint64_t since_ns[PL_PORT_FLOODS];
	int error;
};

enum pl_flood_news {
	PL_FLOOD_NO_NEWS,
	PL_FLOOD_CHANGE, /* a sender is received apart, or with the others again */
	PL_FLOOD_ERROR,  /* no socket could be had for one */
};

/* Writes the next change that was not told yet as a sentence, and takes it for told. */
enum pl_flood_news pl_floods_news(
	struct pl_floods_told *told, struct pl_port *port, const char *uri, char *text, size_t cap);

/* Adds the senders to the array that is open. */
void pl_floods_json(struct pl_json *json, const struct pl_port_flood *floods, uint32_t n);
