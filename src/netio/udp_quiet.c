/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes a UDP port and drops its packets. */
#include "netio/udp_quiet.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <unistd.h>

#include "netio/sockaddr.h"

int pl_udp_quiet_open(const char *interface, uint16_t port)
{
	const struct pl_addr every_v4 = pl_sockaddr_every_v4(), every = { { 0 } };
	struct sock_filter none[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	const struct sock_fprog program = { .len = 1, .filter = none };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;
	const bool six = fd >= 0;
	struct pl_sockaddr place;
	const int both = 0;

	if (!six)
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	pl_sockaddr_set(&place, six ? &every : &every_v4, port);
	if ((six && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both)) < 0) ||
		setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface,
			(socklen_t)strlen(interface)) < 0 ||
		bind(fd, (const struct sockaddr *)&place.sa, place.len) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}
