/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process of its own that keeps the three rights (CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF) which the
 * collector gives up, for the one thing that needs them later: taking up again when an interface
 * comes back. It opens no file, reads no packet, and answers two messages over a pair of sockets: a
 * raw socket, and a link of a program that the collector holds to an interface. It ends when the
 * collector does.
 *
 * Before anything else is opened: what is open then it would hold on to.
 */
#pragma once

#include <stdbool.h>

#include "base/diag.h"
#include "netio/rights.h"

struct pl_helper;

struct pl_helper_options {
	bool packet;              /* whether it may give AF_PACKET sockets */
	const char *user, *group; /* to become; NULL: stay */
};

/* One thread only may exist. -errno with diag. */
int pl_helper_start(
	struct pl_helper **ret, const struct pl_helper_options *options, struct pl_diag *diag);

/* The functions that ports get: they try with the rights of this process, then ask the helper.
 * Valid until the stop. */
const struct pl_rights *pl_helper_rights(const struct pl_helper *helper);

/* NULL is allowed. */
void pl_helper_stop(struct pl_helper *helper);
