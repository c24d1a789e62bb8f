/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads how a NIC spreads datagrams over its queues. */
#include "netio/rss.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "netio/link.h"

#define PORTS (RXH_L4_B_0_1 | RXH_L4_B_2_3)

static uint64_t fields_of(const char *interface, uint32_t flow_type)
{
	struct ethtool_rxnfc nfc = { .cmd = ETHTOOL_GRXFH, .flow_type = flow_type };
	struct ifreq req;

	return pl_link_ask(interface, SIOCETHTOOL, &nfc, &req) < 0 ? 0 : nfc.data;
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
	return pl_rss_meaning(fields_of(interface, UDP_V4_FLOW), fields_of(interface, UDP_V6_FLOW));
}
