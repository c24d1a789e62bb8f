/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces as sources of records that others made: packet:IFACE?carries=tmpkt and
 * afxdp:IFACE?carries=tmpkt receive tmpkt/1 datagrams by their UDP port, as reports are received;
 * the keys port (40050), dst and vlan choose among them. All other frames are left to the host.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

/* Returns 1 for a source whose frames are datagrams of tmpkt/1, and writes the URI of the port that
 * receives them; 0 for any other source, and writes its URI; -EINVAL with diag. */
int pl_tap_source_tmpkt(const char *uri, char *dst, size_t cap, struct pl_diag *diag);

/* Returns true when the source gives records that others made (tmpkt/1), not packets. */
bool pl_tap_source_is_tmpkt(const char *uri);
