/* SPDX-License-Identifier: BSD-2-Clause */
/* The meaning of drivers' answers; real interfaces are only those of every machine. */
#include "netio/rss.h"

#include <linux/ethtool.h>

#include "base/test.h"

int main(void)
{
	static const struct {
		const char *what;
		uint64_t udp4, udp6;
		enum pl_rss want;
	} rows[] = {
		{ "no answer", 0, 0, PL_RSS_UNKNOWN },
		{ "addresses", RXH_IP_SRC | RXH_IP_DST, RXH_IP_SRC | RXH_IP_DST, PL_RSS_ADDRESSES },
		{ "addresses, IPv4 only", RXH_IP_SRC | RXH_IP_DST, 0, PL_RSS_ADDRESSES },
		{ "ports too", RXH_IP_SRC | RXH_IP_DST | RXH_L4_B_0_1 | RXH_L4_B_2_3,
			RXH_IP_SRC | RXH_IP_DST, PL_RSS_PORTS },
		{ "ports too, of IPv6", RXH_IP_SRC, RXH_IP_SRC | RXH_L4_B_2_3, PL_RSS_PORTS },
		{ "the source port alone", RXH_L4_B_0_1, 0, PL_RSS_PORTS },
		{ "something else", RXH_VLAN, 0, PL_RSS_UNKNOWN },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		eq(pl_rss_meaning(rows[i].udp4, rows[i].udp6), rows[i].want, "%s", rows[i].what);
	eq(pl_rss_of("lo"), PL_RSS_UNKNOWN, "the loopback has no queues");
	eq(pl_rss_of("no-such-interface-here"), PL_RSS_UNKNOWN, "nor has what is not there");
	return pl_test_done();
}
