/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows a network interface by netlink. */
#include "netio/link.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int pl_link_ask(const char *name, unsigned long request, void *data, struct ifreq *req)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	if (s < 0)
		return -errno;
	*req = (struct ifreq){ .ifr_data = data };
	memcpy(req->ifr_name, name, strnlen(name, sizeof(req->ifr_name) - 1));
	r = ioctl(s, request, req) < 0 ? -errno : 0;
	close(s);
	return r;
}

/* Reads the state of the interface now. Returns false when there is none of this name. */
static bool look(const char *name, int *ret_index, bool *ret_up, bool *ret_set_up)
{
	struct ethtool_value value = { .cmd = ETHTOOL_GLINK };
	struct ifreq req;

	if (pl_link_ask(name, SIOCGIFINDEX, NULL, &req) < 0)
		return false;
	*ret_index = req.ifr_ifindex;
	/* Brings the carrier in the flags up to date: they lag by up to a second unless this is
	 * asked. A driver that does not answer leaves the flags as they are. */
	(void)pl_link_ask(name, SIOCETHTOOL, &value, &req);
	if (pl_link_ask(name, SIOCGIFFLAGS, NULL, &req) < 0)
		return false;
	*ret_set_up = (req.ifr_flags & IFF_UP) != 0;
	*ret_up = (req.ifr_flags & IFF_UP) != 0 && (req.ifr_flags & IFF_RUNNING) != 0;
	return true;
}

bool pl_link_identify(const char *name, struct pl_link_id *ret)
{
	struct ifreq req;

	*ret = (struct pl_link_id){ 0 };
	if (pl_link_ask(name, SIOCGIFINDEX, NULL, &req) < 0)
		return false;
	ret->ifindex = req.ifr_ifindex;
	if (pl_link_ask(name, SIOCGIFHWADDR, NULL, &req) == 0)
		memcpy(ret->mac, req.ifr_hwaddr.sa_data, sizeof(ret->mac));
	return true;
}

bool pl_link_is_loopback(const char *name)
{
	struct ifreq req;

	return pl_link_ask(name, SIOCGIFFLAGS, NULL, &req) == 0 &&
	       (req.ifr_flags & IFF_LOOPBACK) != 0;
}

int pl_link_open(struct pl_link_monitor *m, const char *name, struct pl_diag *diag)
{
	struct sockaddr_nl sa = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int r;

	memset(m, 0, sizeof(*m));
	m->fd = -1;
	if (name[0] == '\0' || strlen(name) >= sizeof(m->name) || strpbrk(name, "/ :") != NULL) {
		pl_diag_set(diag, "'%s' cannot be the name of an interface", name);
		return -EINVAL;
	}
	memcpy(m->name, name, strlen(name) + 1);
	m->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	/* Listens before looking, so that a change in between is not missed. */
	if (m->fd < 0 || bind(m->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		r = -errno;
		pl_diag_set(diag, "netlink: %s", strerror(-r));
		goto fail;
	}
	if (look(name, &m->ifindex, &m->up, &m->set_up))
		return 0;
	r = -ENODEV;
	pl_diag_set(diag, "there is no interface '%s'", name);
fail:
	pl_link_close(m);
	return r;
}

void pl_link_close(struct pl_link_monitor *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

static enum pl_link_change set_up(struct pl_link_monitor *m, bool up)
{
	if (m->up == up)
		return PL_LINK_SAME;
	m->up = up;
	return up ? PL_LINK_UP : PL_LINK_DOWN;
}

static enum pl_link_change gone(struct pl_link_monitor *m)
{
	m->ifindex = 0;
	m->up = false;
	return PL_LINK_GONE;
}

static enum pl_link_change back(struct pl_link_monitor *m, int ifindex, bool up)
{
	m->ifindex = ifindex;
	m->up = up;
	return PL_LINK_BACK;
}

/* Compares the interface with its last known state after lost messages. Returns the first
 * change. */
static enum pl_link_change look_again(struct pl_link_monitor *m)
{
	char name[IF_NAMESIZE];
	int ifindex;
	bool up;

	if (m->ifindex == 0)
		return look(m->name, &ifindex, &up, &m->set_up) ? back(m, ifindex, up)
								: PL_LINK_SAME;
	if (if_indextoname((unsigned int)m->ifindex, name) == NULL ||
		!look(name, &ifindex, &up, &m->set_up))
		return gone(m);
	/* A new name is reported after a change of up or down. */
	if (up == m->up && strcmp(name, m->name) != 0) {
		memcpy(m->name, name, sizeof(name));
		return PL_LINK_RENAMED;
	}
	return set_up(m, up);
}

static enum pl_link_change apply(struct pl_link_monitor *m, const struct nlmsghdr *h)
{
	const struct ifinfomsg *info = NLMSG_DATA(h);
	const char *name = NULL;
	size_t len;
	bool up;

	if ((h->nlmsg_type != RTM_NEWLINK && h->nlmsg_type != RTM_DELLINK) ||
		h->nlmsg_len < NLMSG_LENGTH(sizeof(*info)))
		return PL_LINK_SAME;
	/* Messages of a bridge about its ports (AF_BRIDGE) have this type too, and are not about
	 * the interface. */
	if (info->ifi_family != AF_UNSPEC)
		return PL_LINK_SAME;
	len = h->nlmsg_len - NLMSG_LENGTH(sizeof(*info));
	for (const struct rtattr *a = IFLA_RTA(info); RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if (a->rta_type == IFLA_IFNAME && RTA_PAYLOAD(a) <= IF_NAMESIZE &&
			memchr(RTA_DATA(a), '\0', RTA_PAYLOAD(a)) != NULL)
			name = RTA_DATA(a);
	}
	up = (info->ifi_flags & IFF_UP) != 0 && (info->ifi_flags & IFF_RUNNING) != 0;
	if (m->ifindex == 0) {
		if (h->nlmsg_type == RTM_NEWLINK && name != NULL && strcmp(name, m->name) == 0)
			return back(m, info->ifi_index, up);
		return PL_LINK_SAME;
	}
	if (info->ifi_index != m->ifindex)
		return PL_LINK_SAME;
	if (h->nlmsg_type == RTM_DELLINK)
		return gone(m);
	if (name != NULL && strcmp(name, m->name) != 0) {
		memcpy(m->name, name, strlen(name) + 1);
		m->again = true; /* the same message may also say up or down */
		return PL_LINK_RENAMED;
	}
	return set_up(m, up);
}

enum pl_link_change pl_link_next(struct pl_link_monitor *m)
{
	union {
		struct nlmsghdr h;
		char bytes[16384];
	} message;

	for (;;) {
		enum pl_link_change change = PL_LINK_SAME;
		ssize_t n;

		if (m->again) {
			change = look_again(m);
			m->again = change != PL_LINK_SAME;
			if (m->again)
				return change;
		}
		/* The kernel sends one message for each change. */
		n = recv(m->fd, &message, sizeof(message), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == ENOBUFS) {
			m->again = true;
			continue;
		}
		if (n <= 0)
			return PL_LINK_SAME;
		if (NLMSG_OK(&message.h, (size_t)n))
			change = apply(m, &message.h);
		if (change != PL_LINK_SAME)
			return change;
	}
}
