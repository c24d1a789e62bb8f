/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, sets up and removes interfaces by netlink. */
#include "netio/rtnl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "netio/rtnl_message.h"

/* Begins a request about the interface of this name; NULL: about a new one. */
static struct ifinfomsg *begin(
	struct pl_rtnl_request *q, uint16_t type, uint16_t flags, const char *name)
{
	struct ifinfomsg *info = pl_rtnl_begin(q, type, flags, sizeof(*info));

	info->ifi_index = name != NULL ? (int)if_nametoindex(name) : 0;
	return info;
}

static void add_end(struct pl_rtnl_request *q, const char *name, unsigned int queues)
{
	pl_rtnl_add(q, IFLA_IFNAME, name, strlen(name) + 1);
	pl_rtnl_add(q, IFLA_NUM_TX_QUEUES, &queues, sizeof(queues));
	pl_rtnl_add(q, IFLA_NUM_RX_QUEUES, &queues, sizeof(queues));
}

int pl_rtnl_veth(const char *name, const char *peer, int peer_ns, unsigned int queues)
{
	struct pl_rtnl_request q;
	uint32_t info, data, end;

	(void)begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, NULL);
	add_end(&q, name, queues);
	info = pl_rtnl_nest(&q, IFLA_LINKINFO);
	pl_rtnl_add(&q, IFLA_INFO_KIND, "veth", 5);
	data = pl_rtnl_nest(&q, IFLA_INFO_DATA);
	end = pl_rtnl_nest(&q, VETH_INFO_PEER);
	pl_rtnl_room(&q, sizeof(struct ifinfomsg));
	add_end(&q, peer, queues);
	if (peer_ns >= 0)
		pl_rtnl_add(&q, IFLA_NET_NS_FD, &peer_ns, sizeof(peer_ns));
	pl_rtnl_nest_end(&q, end);
	pl_rtnl_nest_end(&q, data);
	pl_rtnl_nest_end(&q, info);
	return pl_rtnl_ask(&q);
}

int pl_rtnl_up(const char *name, bool up)
{
	struct pl_rtnl_request q;
	struct ifinfomsg *info = begin(&q, RTM_NEWLINK, 0, name);

	info->ifi_change = IFF_UP;
	info->ifi_flags = up ? IFF_UP : 0;
	return info->ifi_index == 0 ? -ENODEV : pl_rtnl_ask(&q);
}

int pl_rtnl_mtu(const char *name, uint32_t mtu)
{
	struct pl_rtnl_request q;
	struct ifinfomsg *info = begin(&q, RTM_NEWLINK, 0, name);

	pl_rtnl_add(&q, IFLA_MTU, &mtu, sizeof(mtu));
	return info->ifi_index == 0 ? -ENODEV : pl_rtnl_ask(&q);
}

int pl_rtnl_hush(void)
{
	int fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (write(fd, "1", 1) != 1)
		r = -errno;
	close(fd);
	return r;
}

int pl_rtnl_remove(const char *name)
{
	struct pl_rtnl_request q;
	struct ifinfomsg *info = begin(&q, RTM_DELLINK, 0, name);

	return info->ifi_index == 0 ? -ENODEV : pl_rtnl_ask(&q);
}
