/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the control messages of datagrams. */
#include "netio/udp_control.h"

#include <netinet/in.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "wire/packet.h"

uint64_t pl_udp_kernel_time(struct msghdr *m, uint64_t otherwise, uint8_t *ret_clock)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			struct timespec ts;

			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			*ret_clock = PL_STAMP_KERNEL;
			return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
		}
	}
	return otherwise;
}

struct pl_addr pl_udp_told_dst(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			return pl_addr_v4(&info.ipi_addr);
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			return pl_addr_v6(&info.ipi6_addr);
		}
	}
	return (struct pl_addr){ { 0 } };
}
