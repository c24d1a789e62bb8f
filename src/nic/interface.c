/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and follows the number, name, addresses and MTU of an interface. */
#include "nic/interface.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netio/sockaddr.h"

/* Asks by the netlink socket, which stays in the namespace in which it was opened. */
static int ask(const struct nic_interface *in, unsigned long what, struct ifreq *req)
{
	return ioctl(in->news_fd, what, req) < 0 ? -errno : 0;
}

int nic_interface_find(struct nic_interface *in)
{
	struct ifreq req = { .ifr_ifindex = in->index };

	if (in->index != 0 && ask(in, SIOCGIFNAME, &req) == 0) {
		memcpy(in->name, req.ifr_name, sizeof(in->name));
		return in->index;
	}
	memcpy(req.ifr_name, in->name, sizeof(req.ifr_name));
	return ask(in, SIOCGIFINDEX, &req) == 0 ? req.ifr_ifindex : 0;
}

/* Reads MAC address, MTU and number. */
static int ask_all(struct nic_interface *in)
{
	const int index = nic_interface_find(in);
	struct ifreq req = { 0 };
	uint8_t mac[6];
	int r;

	memcpy(req.ifr_name, in->name, sizeof(req.ifr_name));
	r = ask(in, SIOCGIFHWADDR, &req);
	if (r == 0) {
		memcpy(mac, req.ifr_hwaddr.sa_data, sizeof(mac));
		r = ask(in, SIOCGIFMTU, &req);
	}
	if (r < 0 || index == 0)
		return r < 0 ? r : -ENODEV;
	in->moved |= in->changes > 0 && memcmp(in->mac, mac, sizeof(mac)) != 0;
	memcpy(in->mac, mac, sizeof(mac));
	in->index = index;
	in->changes++;
	in->frame_bytes = req.ifr_mtu < 0 ? 0 : (uint32_t)req.ifr_mtu + 18;
	return 0;
}

static int open_news(struct nic_interface *in)
{
	struct sockaddr_nl sa = { .nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };

	in->news_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (in->news_fd < 0 || bind(in->news_fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return 0;
}

int nic_interface_open(struct nic_interface *in, const char *name, struct pl_diag *diag)
{
	int r;

	*in = (struct nic_interface){ .news_fd = -1 };
	snprintf(in->name, sizeof(in->name), "%s", name);
	r = open_news(in);
	if (r == 0)
		r = ask_all(in);
	if (r < 0)
		pl_diag_set(diag, "%s: %s", in->name, strerror(-r));
	return r;
}

void nic_interface_close(struct nic_interface *in)
{
	if (in->news_fd >= 0)
		close(in->news_fd);
	in->news_fd = -1;
}

bool nic_interface_look(struct nic_interface *in)
{
	const int before = in->index;
	char message[8192];
	bool news = false;
	ssize_t n;

	do {
		n = recv(in->news_fd, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
		news |= n > 0 || (n < 0 && errno == ENOBUFS);
	} while (n > 0 || (n < 0 && (errno == ENOBUFS || errno == EINTR)));
	return news && ask_all(in) == 0 && in->index != before;
}

/* ---- addresses ---- */

static bool address_of(const struct ifaddrs *a, struct pl_addr *ret)
{
	uint16_t port;

	if (a->ifa_addr == NULL ||
		(a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
		return false;
	*ret = pl_sockaddr_get(a->ifa_addr, &port);
	return true;
}

void nic_interface_name(const struct pl_addr *address, char ret[static IF_NAMESIZE])
{
	struct ifaddrs *all = NULL;

	snprintf(ret, IF_NAMESIZE, "lo");
	(void)getifaddrs(&all);
	for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next) {
		struct pl_addr theirs;

		if (address_of(a, &theirs) && pl_addr_equal(&theirs, address))
			snprintf(ret, IF_NAMESIZE, "%s", a->ifa_name);
	}
	freeifaddrs(all);
}

/* Order of an address in the list; -1: not an address, or of another interface. */
static int address_rank(const struct nic_interface *in, const struct ifaddrs *a)
{
	const struct sockaddr_in6 *in6 = (const void *)a->ifa_addr;

	if (a->ifa_addr == NULL || strcmp(a->ifa_name, in->name) != 0)
		return -1;
	if (a->ifa_addr->sa_family == AF_INET)
		return 0;
	if (a->ifa_addr->sa_family != AF_INET6)
		return -1;
	return IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ? 2 : 1;
}

int nic_interface_addresses(
	const struct nic_interface *in, struct pl_addr **ret, uint32_t *ret_n, struct pl_diag *diag)
{
	struct ifaddrs *all = NULL;
	uint32_t ranks[3] = { 0 }, n = 0;
	struct pl_addr *addrs;

	(void)getifaddrs(&all);
	for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next) {
		const int rank = address_rank(in, a);

		if (rank >= 0)
			ranks[rank]++;
	}
	addrs = calloc(ranks[0] + ranks[1] + ranks[2] + 1, sizeof(*addrs));
	for (int rank = 0; rank < 3 && addrs != NULL; rank++) {
		for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next) {
			if (address_rank(in, a) == rank)
				n += address_of(a, &addrs[n]);
		}
	}
	freeifaddrs(all);
	if (addrs != NULL && n > ranks[2]) {
		*ret = addrs;
		*ret_n = n;
		return 0;
	}
	pl_diag_set(diag, addrs == NULL ? "%s: no memory" : "%s has no address", in->name);
	free(addrs);
	return addrs == NULL ? -ENOMEM : -EADDRNOTAVAIL;
}
