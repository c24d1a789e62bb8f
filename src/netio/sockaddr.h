/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses and ports as the kernel has them, and back. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/addr.h"

struct pl_sockaddr {
	struct sockaddr_storage sa;
	socklen_t len;
};

/* Returns the address that stands for every IPv4 address of this host. */
static inline struct pl_addr pl_sockaddr_every_v4(void)
{
	return pl_addr_v4("\0\0\0");
}

/* Returns address and port of a socket address, IPv4 or IPv6. Inline, because it runs for every
 * datagram. */
static inline struct pl_addr pl_sockaddr_get(const void *sa, uint16_t *ret_port)
{
	if (((const struct sockaddr *)sa)->sa_family == AF_INET) {
		const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;

		*ret_port = ntohs(sin->sin_port);
		return pl_addr_v4(&sin->sin_addr);
	}
	*ret_port = ntohs(((const struct sockaddr_in6 *)sa)->sin6_port);
	return pl_addr_v6(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

static inline void pl_sockaddr_set(
	struct pl_sockaddr *ret, const struct pl_addr *addr, uint16_t port)
{
	memset(ret, 0, sizeof(*ret));
	if (pl_addr_is_v4(addr)) {
		struct sockaddr_in *sin = (struct sockaddr_in *)&ret->sa;

		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		memcpy(&sin->sin_addr, addr->b + 12, 4);
		ret->len = sizeof(*sin);
	} else {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&ret->sa;

		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(port);
		memcpy(&sin6->sin6_addr, addr->b, 16);
		ret->len = sizeof(*sin6);
	}
}
