/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of UDP ports, for udp.c. */
#pragma once

#include "netio/driver.h"
#include "netio/sockaddr.h"

/* Resolves HOST:PORT. With ret NULL it checks the form only and looks up no name. Negative errno
 * with diag. */
int pl_udp_resolve(const char *target, struct pl_sockaddr *ret, struct pl_diag *diag);
char *pl_udp_port_name(const struct pl_addr *addr, uint16_t port);
