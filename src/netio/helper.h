/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper: a process that keeps the three privileges (CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF) which
 * the collector gives up, to reopen ports when an interface comes back. It opens no file, reads no
 * packet, and answers two requests over a pair of sockets: for a raw socket, and for a BPF link of
 * the collector's program to an interface. It ends when the collector does.
 *
 * Start it before anything else is opened: it would inherit open descriptors.
 */
#pragma once

#include <stdbool.h>

#include "base/diag.h"
#include "netio/rights.h"

struct pl_helper;

struct pl_helper_options {
	bool packet;              /* it may open AF_PACKET sockets */
	const char *user, *group; /* of the helper; NULL: unchanged */
};

/* Forks the helper; the process must have one thread only. Returns 0 or negative errno with
 * diag. */
int pl_helper_start(
	struct pl_helper **ret, const struct pl_helper_options *options, struct pl_diag *diag);

/* Returns the functions for pl_port_options.rights: they try with this process's privileges, then
 * ask the helper. Valid until pl_helper_stop; NULL for NULL. */
const struct pl_rights *pl_helper_rights(const struct pl_helper *helper);

/* Ends the helper and waits for it. NULL is allowed. */
void pl_helper_stop(struct pl_helper *helper);
