/* SPDX-License-Identifier: BSD-2-Clause */
#include "netio/rtnl.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_BYTES 1024

struct request {
	union {
		struct nlmsghdr h;
		uint8_t bytes[REQUEST_BYTES];
	} u;
};

/* Zeroed room at the end of the message, aligned as netlink wants it. */
static void *add_room(struct request *q, size_t bytes)
{
	uint8_t *p = q->u.bytes + q->u.h.nlmsg_len;

	assert(q->u.h.nlmsg_len + NLMSG_ALIGN(bytes) <= sizeof(q->u.bytes));
	memset(p, 0, NLMSG_ALIGN(bytes));
	q->u.h.nlmsg_len += (uint32_t)NLMSG_ALIGN(bytes);
	return p;
}

static void begin(struct request *q, uint16_t type, uint16_t flags, const char *name)
{
	struct ifinfomsg *info;

	q->u.h = (struct nlmsghdr){ .nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags };
	info = add_room(q, sizeof(*info));
	info->ifi_index = name != NULL ? (int)if_nametoindex(name) : 0;
}

static void add(struct request *q, uint16_t type, const void *data, size_t bytes)
{
	struct rtattr *a = add_room(q, RTA_LENGTH(bytes));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(bytes);
	if (bytes > 0)
		memcpy(RTA_DATA(a), data, bytes);
}

static uint32_t nest(struct request *q, uint16_t type)
{
	uint32_t at = q->u.h.nlmsg_len;

	add(q, type, NULL, 0);
	return at;
}

static void nest_end(struct request *q, uint32_t at)
{
	struct rtattr *a = (struct rtattr *)(void *)(q->u.bytes + at);

	a->rta_len = (uint16_t)(q->u.h.nlmsg_len - at);
}

static int ask(struct request *q)
{
	union {
		struct nlmsghdr h;
		uint8_t bytes[4096];
	} answer;
	struct sockaddr_nl sa = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), r = 0;
	const struct nlmsgerr *e = NLMSG_DATA(&answer.h);
	ssize_t n = -1;

	if (fd < 0)
		return -errno;
	if (sendto(fd, q, q->u.h.nlmsg_len, 0, (struct sockaddr *)&sa, sizeof(sa)) >= 0)
		n = recv(fd, &answer, sizeof(answer), 0);
	if (n < 0)
		r = -errno;
	else if (!NLMSG_OK(&answer.h, (size_t)n) || answer.h.nlmsg_type != NLMSG_ERROR)
		r = -EPROTO;
	else
		r = e->error;
	close(fd);
	return r;
}

static void add_end(struct request *q, const char *name, unsigned int queues)
{
	add(q, IFLA_IFNAME, name, strlen(name) + 1);
	add(q, IFLA_NUM_TX_QUEUES, &queues, sizeof(queues));
	add(q, IFLA_NUM_RX_QUEUES, &queues, sizeof(queues));
}

int pl_rtnl_veth(const char *name, const char *peer, int peer_ns, unsigned int queues)
{
	struct request q;
	uint32_t info, data, end;

	begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, NULL);
	add_end(&q, name, queues);
	info = nest(&q, IFLA_LINKINFO);
	add(&q, IFLA_INFO_KIND, "veth", 5);
	data = nest(&q, IFLA_INFO_DATA);
	end = nest(&q, VETH_INFO_PEER);
	add_room(&q, sizeof(struct ifinfomsg));
	add_end(&q, peer, queues);
	if (peer_ns >= 0)
		add(&q, IFLA_NET_NS_FD, &peer_ns, sizeof(peer_ns));
	nest_end(&q, end);
	nest_end(&q, data);
	nest_end(&q, info);
	return ask(&q);
}

int pl_rtnl_up(const char *name, bool up)
{
	struct request q;
	struct ifinfomsg *info = NLMSG_DATA(&q.u.h);

	begin(&q, RTM_NEWLINK, 0, name);
	info->ifi_change = IFF_UP;
	info->ifi_flags = up ? IFF_UP : 0;
	return info->ifi_index == 0 ? -ENODEV : ask(&q);
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
	struct request q;
	struct ifinfomsg *info = NLMSG_DATA(&q.u.h);

	begin(&q, RTM_DELLINK, 0, name);
	return info->ifi_index == 0 ? -ENODEV : ask(&q);
}
