/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and sets up interfaces, addresses, neighbours, routes and rates by netlink. */
#include "netio/rtnl_net.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "netio/link.h"
#include "netio/rtnl_message.h"

#define TICKS_PER_US_FALLBACK 15.625 /* ticks of the packet scheduler's clock, 64 ns each */

static void add_end(struct pl_rtnl_request *q, const struct pl_rtnl_end *e)
{
	pl_rtnl_add(q, IFLA_IFNAME, e->name, strlen(e->name) + 1);
	if (e->mac != NULL)
		pl_rtnl_add(q, IFLA_ADDRESS, e->mac, 6);
	if (e->queues != 0) {
		pl_rtnl_add(q, IFLA_NUM_TX_QUEUES, &e->queues, sizeof(e->queues));
		pl_rtnl_add(q, IFLA_NUM_RX_QUEUES, &e->queues, sizeof(e->queues));
	}
	if (e->ns >= 0)
		pl_rtnl_add(q, IFLA_NET_NS_FD, &e->ns, sizeof(e->ns));
}

int pl_rtnl_veth_between(const struct pl_rtnl_end *a, const struct pl_rtnl_end *b)
{
	struct pl_rtnl_request q;
	uint32_t info, data, end;

	(void)pl_rtnl_begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
	add_end(&q, a);
	info = pl_rtnl_nest(&q, IFLA_LINKINFO);
	pl_rtnl_add(&q, IFLA_INFO_KIND, "veth", 5);
	data = pl_rtnl_nest(&q, IFLA_INFO_DATA);
	end = pl_rtnl_nest(&q, VETH_INFO_PEER);
	(void)pl_rtnl_room(&q, sizeof(struct ifinfomsg));
	add_end(&q, b);
	pl_rtnl_nest_end(&q, end);
	pl_rtnl_nest_end(&q, data);
	pl_rtnl_nest_end(&q, info);
	return pl_rtnl_ask(&q);
}

/* Begins a request to set up an interface. */
static struct ifinfomsg *about(struct pl_rtnl_request *q, const char *interface)
{
	struct ifinfomsg *info = pl_rtnl_begin(q, RTM_NEWLINK, 0, sizeof(*info));

	info->ifi_index = (int)if_nametoindex(interface);
	return info;
}

int pl_rtnl_up(const char *interface, bool up)
{
	struct pl_rtnl_request q;
	struct ifinfomsg *info = about(&q, interface);

	info->ifi_change = IFF_UP;
	info->ifi_flags = up ? IFF_UP : 0;
	return info->ifi_index == 0 ? -ENODEV : pl_rtnl_ask(&q);
}

int pl_rtnl_mtu(const char *interface, uint32_t mtu)
{
	struct pl_rtnl_request q;
	struct ifinfomsg *info = about(&q, interface);

	pl_rtnl_add(&q, IFLA_MTU, &mtu, sizeof(mtu));
	return info->ifi_index == 0 ? -ENODEV : pl_rtnl_ask(&q);
}

int pl_rtnl_address(const char *interface, const struct pl_addr *addr, unsigned int bits)
{
	struct pl_rtnl_request q;
	struct ifaddrmsg *m = pl_rtnl_begin(&q, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*m));

	m->ifa_family = pl_rtnl_family(addr);
	m->ifa_prefixlen = (uint8_t)bits;
	m->ifa_flags = IFA_F_NODAD;
	m->ifa_index = if_nametoindex(interface);
	pl_rtnl_add_addr(&q, IFA_LOCAL, addr);
	pl_rtnl_add_addr(&q, IFA_ADDRESS, addr);
	return m->ifa_index == 0 ? -ENODEV : pl_rtnl_ask(&q);
}

int pl_rtnl_neighbour(const char *interface, const struct pl_addr *addr, const uint8_t mac[6])
{
	struct pl_rtnl_request q;
	struct ndmsg *m = pl_rtnl_begin(&q, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*m));

	m->ndm_family = pl_rtnl_family(addr);
	m->ndm_ifindex = (int)if_nametoindex(interface);
	m->ndm_state = NUD_PERMANENT;
	pl_rtnl_add_addr(&q, NDA_DST, addr);
	pl_rtnl_add(&q, NDA_LLADDR, mac, 6);
	return m->ndm_ifindex == 0 ? -ENODEV : pl_rtnl_ask(&q);
}

static int add_hops(struct pl_rtnl_request *q, const struct pl_rtnl_hop *hops, unsigned int n)
{
	uint32_t at = pl_rtnl_nest(q, RTA_MULTIPATH);

	for (unsigned int i = 0; i < n; i++) {
		uint32_t begin = q->u.h.nlmsg_len;
		struct rtnexthop *h = pl_rtnl_room(q, sizeof(*h));

		h->rtnh_ifindex = (int)if_nametoindex(hops[i].interface);
		if (h->rtnh_ifindex == 0)
			return -ENODEV;
		pl_rtnl_add_addr(q, RTA_GATEWAY, hops[i].via);
		h->rtnh_len = (uint16_t)(q->u.h.nlmsg_len - begin);
	}
	pl_rtnl_nest_end(q, at);
	return 0;
}

int pl_rtnl_route(
	const struct pl_addr *to, unsigned int bits, const struct pl_rtnl_hop *hops, unsigned int n)
{
	struct pl_rtnl_request q;
	struct rtmsg *m = pl_rtnl_begin(&q, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*m));
	int r;

	if (n > PL_RTNL_HOPS_MAX)
		return -E2BIG;
	*m = (struct rtmsg){ .rtm_family = pl_rtnl_family(to),
		.rtm_dst_len = (uint8_t)bits,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_BOOT,
		.rtm_scope = RT_SCOPE_UNIVERSE,
		.rtm_type = RTN_UNICAST };
	if (bits > 0)
		pl_rtnl_add_addr(&q, RTA_DST, to);
	r = add_hops(&q, hops, n);
	return r < 0 ? r : pl_rtnl_ask(&q);
}

/* Converts a time to ticks of the packet scheduler's clock. */
static uint32_t ticks(uint64_t ns)
{
	unsigned int us_per = 0, ticks_per = 0;
	double per_us = TICKS_PER_US_FALLBACK;
	FILE *f = fopen("/proc/net/psched", "re");

	if (f != NULL) {
		if (fscanf(f, "%x %x", &us_per, &ticks_per) == 2 && ticks_per > 0)
			per_us = (double)us_per / ticks_per;
		fclose(f);
	}
	return (uint32_t)((double)ns / 1000 * per_us);
}

static int remove_rate(const char *interface)
{
	struct pl_rtnl_request q;
	struct tcmsg *m = pl_rtnl_begin(&q, RTM_DELQDISC, 0, sizeof(*m));
	int r;

	m->tcm_family = AF_UNSPEC;
	m->tcm_ifindex = (int)if_nametoindex(interface);
	m->tcm_parent = TC_H_ROOT;
	r = m->tcm_ifindex == 0 ? -ENODEV : pl_rtnl_ask(&q);
	/* There was no rate. */
	return r == -ENOENT || r == -EINVAL ? 0 : r;
}

int pl_rtnl_rate(const char *interface, uint64_t bps, uint64_t queue_bytes)
{
	const uint64_t bytes_per_s = bps / 8;
	/* Two frames; with less than one frame tbf would never send. */
	const uint32_t burst = 3100;
	struct tc_tbf_qopt opt = { .limit = (uint32_t)queue_bytes };
	struct pl_rtnl_request q;
	struct tcmsg *m;
	uint32_t at;

	if (bps == 0)
		return remove_rate(interface);
	opt.rate.linklayer = TC_LINKLAYER_ETHERNET;
	opt.rate.rate = bytes_per_s > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes_per_s;
	opt.buffer = ticks(UINT64_C(1000000000) * burst / bytes_per_s);
	m = pl_rtnl_begin(&q, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*m));
	m->tcm_family = AF_UNSPEC;
	m->tcm_ifindex = (int)if_nametoindex(interface);
	m->tcm_parent = TC_H_ROOT;
	pl_rtnl_add(&q, TCA_KIND, "tbf", 4);
	at = pl_rtnl_nest(&q, TCA_OPTIONS);
	pl_rtnl_add(&q, TCA_TBF_PARMS, &opt, sizeof(opt));
	pl_rtnl_add(&q, TCA_TBF_BURST, &burst, sizeof(burst));
	if (bytes_per_s > UINT32_MAX)
		pl_rtnl_add(&q, TCA_TBF_RATE64, &bytes_per_s, sizeof(bytes_per_s));
	pl_rtnl_nest_end(&q, at);
	if (m->tcm_ifindex == 0)
		return -ENODEV;
	int r = pl_rtnl_ask(&q);
	return r == -ENOENT ? -EOPNOTSUPP : r;
}

int pl_rtnl_no_offload(const char *interface)
{
	static const uint32_t commands[] = { ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO,
		ETHTOOL_SGRO };
	int r = 0;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct ethtool_value value = { .cmd = commands[i] };
		struct ifreq req;
		const int one = pl_link_ask(interface, SIOCETHTOOL, &value, &req);

		if (one < 0 && one != -EOPNOTSUPP && r == 0)
			r = one;
	}
	return r;
}
