/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the kernel for routes and neighbours. */
#include "nic/neighbour.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netio/rtnl_message.h"
#include "netio/sockaddr.h"

#define DISCARD_PORT 9

/* Finds an attribute of the answer with exactly this many bytes; NULL: none. */
static const void *attr(const struct pl_rtnl_answer *a, size_t body, uint16_t type, size_t bytes)
{
	const struct rtattr *at =
		(const struct rtattr *)(const void *)(a->u.bytes + NLMSG_LENGTH(body));
	size_t len = a->u.h.nlmsg_len - NLMSG_LENGTH(body);

	for (; RTA_OK(at, len); at = RTA_NEXT(at, len)) {
		if (at->rta_type == type && RTA_PAYLOAD(at) == bytes)
			return RTA_DATA(at);
	}
	return NULL;
}

/* Reads an address of the family from the attributes. */
static bool addr_attr(
	const struct pl_rtnl_answer *a, size_t body, uint16_t type, bool v4, struct pl_addr *ret)
{
	const void *bytes = attr(a, body, type, v4 ? 4 : 16);

	if (bytes == NULL)
		return false;
	*ret = v4 ? pl_addr_v4(bytes) : pl_addr_v6(bytes);
	return true;
}

/* The kernel's route to an address, through an interface unless `out` is 0. */
static int ask_route(const struct pl_addr *to, uint32_t out, struct pl_rtnl_answer *ret)
{
	struct pl_rtnl_request q;
	struct rtmsg *m = pl_rtnl_begin(&q, RTM_GETROUTE, 0, sizeof(*m));

	m->rtm_family = pl_rtnl_family(to);
	m->rtm_dst_len = pl_addr_is_v4(to) ? 32 : 128;
	pl_rtnl_add_addr(&q, RTA_DST, to);
	if (out != 0)
		pl_rtnl_add(&q, RTA_OIF, &out, sizeof(out));
	return pl_rtnl_get(&q, ret, RTM_NEWROUTE, sizeof(*m));
}

int pl_route_find(int ifindex, const struct pl_addr *to, struct pl_route *ret, struct pl_diag *diag)
{
	const bool v4 = pl_addr_is_v4(to);
	struct pl_rtnl_answer a = { .u.bytes = { 0 } };
	const struct rtmsg *m = NLMSG_DATA(&a.u.h);
	int r = ask_route(to, (uint32_t)ifindex, &a);

	if (r == 0) {
		if (m->rtm_type != RTN_UNICAST ||
			!addr_attr(&a, sizeof(*m), RTA_PREFSRC, v4, &ret->source))
			r = -ENETUNREACH;
		else if (!addr_attr(&a, sizeof(*m), RTA_GATEWAY, v4, &ret->next_hop))
			ret->next_hop = *to;
	}
	if (r == 0)
		return 0;
	pl_diag_set(diag, "no route to the peer through this interface: %s", strerror(-r));
	return -ENETUNREACH;
}

int pl_route_interface(const struct pl_addr *to, int *ret_ifindex, struct pl_diag *diag)
{
	struct pl_rtnl_answer a = { .u.bytes = { 0 } };
	const struct rtmsg *m = NLMSG_DATA(&a.u.h);
	const void *out = NULL;
	int r = ask_route(to, 0, &a);

	if (r == 0 && m->rtm_type == RTN_LOCAL) {
		pl_diag_set(diag, "it is an address of this host");
		return -ENETUNREACH;
	}
	if (r == 0 && m->rtm_type == RTN_UNICAST)
		out = attr(&a, sizeof(*m), RTA_OIF, sizeof(uint32_t));
	if (out == NULL) {
		pl_diag_set(diag, "there is no route to it%s%s", r < 0 ? ": " : "",
			r < 0 ? strerror(-r) : "");
		return -ENETUNREACH;
	}
	memcpy(ret_ifindex, out, sizeof(uint32_t));
	return 0;
}

int pl_neighbour_find(int ifindex, const struct pl_addr *host, uint8_t ret_mac[6])
{
	struct pl_rtnl_request q;
	struct ndmsg *m = pl_rtnl_begin(&q, RTM_GETNEIGH, 0, sizeof(*m));
	struct pl_rtnl_answer a = { .u.bytes = { 0 } };
	const void *mac;
	int r;

	m->ndm_family = pl_rtnl_family(host);
	m->ndm_ifindex = ifindex;
	pl_rtnl_add_addr(&q, NDA_DST, host);
	r = pl_rtnl_get(&q, &a, RTM_NEWNEIGH, sizeof(*m));
	if (r < 0)
		return r;
	m = NLMSG_DATA(&a.u.h);
	if ((m->ndm_state & NUD_FAILED) != 0)
		return -EHOSTUNREACH;
	if ((m->ndm_state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)) ==
		0)
		return (m->ndm_state & NUD_INCOMPLETE) != 0 ? -EAGAIN : -ENOENT;
	mac = attr(&a, sizeof(*m), NDA_LLADDR, 6);
	if (mac == NULL)
		return -ENOENT;
	memcpy(ret_mac, mac, 6);
	return 0;
}

int pl_neighbour_ask(int ifindex, const struct pl_addr *host)
{
	const bool is_v4 = pl_addr_is_v4(host);
	int fd = socket(pl_rtnl_family(host), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r = 0;
	struct pl_sockaddr to;

	if (fd < 0)
		return -errno;
	pl_sockaddr_set(&to, host, DISCARD_PORT);
	if (!is_v4)
		((struct sockaddr_in6 *)&to.sa)->sin6_scope_id = (uint32_t)ifindex;
	/* The interface is the route's; the socket is bound to it where allowed, for hosts with
	 * several routes. */
	(void)setsockopt(fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6,
		is_v4 ? IP_UNICAST_IF : IPV6_UNICAST_IF, &(uint32_t){ htonl((uint32_t)ifindex) },
		sizeof(uint32_t));
	if (sendto(fd, "", 0, MSG_DONTWAIT, (const struct sockaddr *)&to.sa, to.len) < 0)
		r = -errno;
	close(fd);
	return r;
}
