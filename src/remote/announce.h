/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compact exchange of parameters (rdma/exchange.h): as the P4-to-RDMA collector does, this side
 * connects to the controller of a switch, sends 34 bytes, and gets the same back when the
 * controller has them in its tables.
 */
#pragma once

#include "base/diag.h"
#include "rdma/exchange.h"

#define PL_ANNOUNCE_PORT 19876 /* port of published controllers */

/* Sends `ours` to `controller` ("host:port", numeric) and waits for its answer, up to timeout_ms in
 * all. Returns -EINVAL; -ETIMEDOUT; -EBADMSG when the controller answered something else;
 * -ECONNRESET when it answered nothing; other errors of the system. All with diag. */
int pl_announce(const char *controller, const struct pl_exchange *ours, int timeout_ms,
	struct pl_diag *diag);
