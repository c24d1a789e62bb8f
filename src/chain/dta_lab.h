/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two network namespaces of this process with a veth pair between them: 10.77.0.1/24 on eth0 in the
 * translator's, 10.77.0.2/24 on eth0 in the collector's, without IPv6; loopback is up in both. They
 * go with the process.
 */
#pragma once

#include "base/diag.h"

#define PL_DTA_LAB_COLLECTOR       "10.77.0.2:7471"
#define PL_DTA_LAB_TRANSLATOR      "10.77.0.1/32"
#define PL_DTA_LAB_INTERFACE       "packet:eth0"

/* Who may not make namespaces has the loopback, and UDP sockets. */
#define PL_DTA_LOOPBACK_COLLECTOR  "127.0.0.1:7471"
#define PL_DTA_LOOPBACK_INTERFACE  "udp://127.0.0.1"
#define PL_DTA_LOOPBACK_TRANSLATOR "udp://127.0.0.2"
#define PL_DTA_LOOPBACK_ALLOW      "127.0.0.2/32"

struct pl_dta_lab {
	int translator, collector; /* descriptors of the namespaces; -1: none */
};

/* Leaves the calling thread where it was. -EPERM without root. Negative errno with diag. */
int pl_dta_lab_make(struct pl_dta_lab *ret, struct pl_diag *diag);
void pl_dta_lab_done(struct pl_dta_lab *lab);

/* A namespace by its name in /run/netns, or by a path: its descriptor, or negative errno with
 * diag. */
int pl_dta_netns_open(const char *name, struct pl_diag *diag);
