/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends paths and hops to an IPFIX collector (ipfix/paths.h) over UDP or TCP (ipfix_link.h).
 *
 * An entry is a path with its hops. Over UDP it is delivered when the kernel took its message, over
 * TCP when the connection did. Causes of dropped entries:
 *
 *   format       no template was left for its set of values (PL_IPFIX_SETS_MAX)
 *   memory_full  TCP: no room while there is no connection, or a stalled one
 *   io           in a message that the kernel did not take, or lost with the connection
 */
#pragma once

#include "export/exporter.h"
#include "export/ipfix_link.h"

/* Returns -ENOTSUP with diag in a build without IPFIX, as do the functions below. */
int pl_ipfix_built(struct pl_diag *diag);

/* Checks "ipfix://HOST[:PORT]?pen=N[&transport=udp|tcp&time=ms|us|ns&domain=N]" without using the
 * network. -EINVAL with diag. */
int pl_ipfix_out_check(const char *uri, struct pl_diag *diag);
/* Returns what pl_ipfix_out_check does, -ENOMEM, or an error of the socket. */
int pl_ipfix_out_open(
	struct pl_export **ret, const char *uri, uint64_t now_ns, struct pl_diag *diag);
/* Upper bound of memory, in bytes. */
uint64_t pl_ipfix_out_memory(void);
