/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests: two network namespaces with a veth pair between them, 10.7.0.1/24 on pla0 in the
 * first, 10.7.0.2/24 on plb0 in the second, without IPv6 unless pair_make6 gives them fd00:7::1 and
 * fd00:7::2. They go with the process. Needs root. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "netio/test_veth.h"

static int pair_ns[2];

__attribute__((unused)) static struct pl_addr pair_addr(int side)
{
	return pl_addr_v4((const uint8_t[]){ 10, 7, 0, (uint8_t)(side + 1) });
}

__attribute__((unused)) static struct pl_addr pair_addr6(int side)
{
	return pl_addr_v6((const uint8_t[16]){ 0xfd, 0, 0, 7, [15] = (uint8_t)(side + 1) });
}

__attribute__((unused)) static int pair_enter(int side)
{
	return setns(pair_ns[side], CLONE_NEWNET) < 0 ? -errno : 0;
}

static int pair_give_address(const char *name, const char *addr)
{
	struct ifreq req = { 0 };
	struct sockaddr_in sa = { .sin_family = AF_INET };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	strcpy(req.ifr_name, name);
	sa.sin_addr.s_addr = inet_addr(addr);
	memcpy(&req.ifr_addr, &sa, sizeof(sa));
	r = ioctl(s, SIOCSIFADDR, &req) < 0 ? -errno : 0;
	sa.sin_addr.s_addr = inet_addr("255.255.255.0");
	memcpy(&req.ifr_netmask, &sa, sizeof(sa));
	if (r == 0 && ioctl(s, SIOCSIFNETMASK, &req) < 0)
		r = -errno;
	close(s);
	return r;
}

static int pair_namespace(void)
{
	int fd;

	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	(void)veth_hush();
	fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Leaves the calling thread in the first one. */
static int pair_make(void)
{
	int r = 0;

	for (int side = 1; side >= 0 && r == 0; side--) {
		pair_ns[side] = pair_namespace();
		r = pair_ns[side] < 0 ? pair_ns[side] : 0;
	}
	if (r == 0)
		r = veth_make("pla0", "plb0", pair_ns[1], 1);
	for (int side = 1; side >= 0 && r == 0; side--) {
		r = pair_enter(side);
		if (r == 0)
			r = pl_rtnl_up(side == 0 ? "pla0" : "plb0", true);
		if (r == 0)
			r = pair_give_address(
				side == 0 ? "pla0" : "plb0", side == 0 ? "10.7.0.1" : "10.7.0.2");
	}
	return r;
}

static int pair_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* Gives both sides addresses of IPv6 besides, at once, without asking whether they are taken. */
__attribute__((unused)) static int pair_make6(void)
{
	int r = 0;

	for (int side = 1; side >= 0 && r == 0; side--) {
		/* struct in6_ifreq of <linux/ipv6.h>, which does not go with <netinet/in.h>. */
		struct {
			struct pl_addr addr;
			uint32_t prefix;
			int ifindex;
		} req = { .addr = pair_addr6(side), .prefix = 64 };
		const bool a = side == 0;
		int s;

		r = pair_enter(side);
		if (r == 0)
			r = pair_write(a ? "/proc/sys/net/ipv6/conf/pla0/accept_dad"
					 : "/proc/sys/net/ipv6/conf/plb0/accept_dad",
				"0");
		if (r == 0)
			r = pair_write(a ? "/proc/sys/net/ipv6/conf/pla0/disable_ipv6"
					 : "/proc/sys/net/ipv6/conf/plb0/disable_ipv6",
				"0");
		if (r < 0)
			break;
		s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		req.ifindex = (int)if_nametoindex(a ? "pla0" : "plb0");
		r = ioctl(s, SIOCSIFADDR, &req) < 0 ? -errno : 0;
		if (s >= 0)
			close(s);
	}
	return r;
}
