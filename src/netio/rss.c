/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads how a NIC spreads datagrams over its queues. */
#include "netio/rss.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORTS (RXH_L4_B_0_1 | RXH_L4_B_2_3)

static uint64_t fields_of(int s, const char *interface, uint32_t flow_type)
{
	struct ethtool_rxnfc nfc = { .cmd = ETHTOOL_GRXFH, .flow_type = flow_type };
	struct ifreq req = { .ifr_data = (void *)&nfc };

	memcpy(req.ifr_name, interface, strnlen(interface, IFNAMSIZ - 1));
	return ioctl(s, SIOCETHTOOL, &req) < 0 ? 0 : nfc.data;
}

enum pl_rss pl_rss_meaning(uint64_t udp4, uint64_t udp6)
{
	if (((udp4 | udp6) & PORTS) != 0)
		return PL_RSS_PORTS;
	return (udp4 & RXH_IP_SRC) != 0 || (udp6 & RXH_IP_SRC) != 0 ? PL_RSS_ADDRESSES
								    : PL_RSS_UNKNOWN;
}

enum pl_rss pl_rss_of(const char *interface)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	enum pl_rss rss;

	if (s < 0)
		return PL_RSS_UNKNOWN;
	rss = pl_rss_meaning(
		fields_of(s, interface, UDP_V4_FLOW), fields_of(s, interface, UDP_V6_FLOW));
	close(s);
	return rss;
}
