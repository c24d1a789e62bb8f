/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths and hops to a collector of IPFIX (ipfix/paths.h) over UDP or TCP (ipfix_link.h).
 *
 * An entry is a path with its hops. Over UDP it is delivered when the kernel took its message, over TCP
 * when the connection did. Dropped entries have the causes
 *
 *   format       its values are of a set that found no template (PL_IPFIX_SETS_MAX)
 *   memory_full  TCP: no room while there is no connection, or it takes nothing
 *   io           in a message that the kernel did not take, or that the connection broke with
 */
#pragma once

#include "export/exporter.h"
#include "export/ipfix_link.h"

/* -ENOTSUP with diag: this build has no IPFIX; the functions below say the same. */
int pl_ipfix_built(struct pl_diag *diag);

/* "ipfix://HOST[:PORT]?pen=N[&transport=udp|tcp&time=ms|us|ns&domain=N]". Touches no network. -EINVAL with
 * diag. */
int pl_ipfix_out_check(const char *uri, struct pl_diag *diag);
/* As it, -ENOMEM, or what the socket gives. */
int pl_ipfix_out_open(
	struct pl_export **ret, const char *uri, uint64_t now_ns, struct pl_diag *diag);
/* What it holds at most. */
uint64_t pl_ipfix_out_memory(void);
