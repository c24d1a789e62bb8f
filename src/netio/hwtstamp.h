/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hardware timestamps of received frames: whether a driver takes them, and asking it to (the
 * kernel's documentation networking/timestamping.rst, 3.1). The setting is the interface's: it
 * holds for every program and stays when this one ends.
 */
#pragma once

#include <stdbool.h>

#include "base/diag.h"

/* Returns true when the driver stamps every received frame now. */
bool pl_hwtstamp_is_on(const char *ifname);

/* Has the driver stamp every received frame; transmit stamps stay as they are. Negative errno with
 * diag: -EOPNOTSUPP or -ERANGE when it cannot, -EPERM without CAP_NET_ADMIN, -ENODEV. */
int pl_hwtstamp_ask(const char *ifname, struct pl_diag *diag);
