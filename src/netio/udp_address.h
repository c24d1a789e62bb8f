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

/* Inline: of every datagram. */
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
/* With ret NULL the form is checked and no name looked up. */
int pl_udp_resolve(const char *target, struct pl_udp_address *ret, struct pl_diag *diag);
char *pl_udp_port_name(const struct pl_addr *addr, uint16_t port);
