/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of UDP ports, for udp.c. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "netio/driver.h"

struct pl_udp_address {
	struct sockaddr_storage sa;
	socklen_t len;
};

/* Returns address and port of a socket address. Inline, because it runs for every datagram. */
static inline struct pl_addr pl_udp_address_get(const void *sa, uint16_t *ret_port)
{
	if (((const struct sockaddr *)sa)->sa_family == AF_INET) {
		const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;

		*ret_port = ntohs(sin->sin_port);
		return pl_addr_v4(&sin->sin_addr);
	}
	*ret_port = ntohs(((const struct sockaddr_in6 *)sa)->sin6_port);
	return pl_addr_v6(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

void pl_udp_address_set(struct pl_udp_address *ret, const struct pl_addr *addr, uint16_t port);
/* Resolves HOST:PORT. With ret NULL it checks the form only and looks up no name. Negative errno
 * with diag. */
int pl_udp_resolve(const char *target, struct pl_udp_address *ret, struct pl_diag *diag);
char *pl_udp_port_name(const struct pl_addr *addr, uint16_t port);
