/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the kernel for routes and neighbours. */
#include "nic/neighbour.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#define DISCARD_PORT 9

/* A request and its answer: netlink messages of a few attributes. */
struct question {
	union {
		struct nlmsghdr h;
		uint8_t bytes[256];
	} u;
};

struct answer {
	union {
		struct nlmsghdr h;
		uint8_t bytes[8192];
	} u;
};

static void add_attr(struct question *q, uint16_t type, const void *data, size_t bytes)
{
	struct rtattr *a = (struct rtattr *)(void *)(q->u.bytes + NLMSG_ALIGN(q->u.h.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(a), data, bytes);
	q->u.h.nlmsg_len = NLMSG_ALIGN(q->u.h.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static void add_addr(struct question *q, uint16_t type, const struct pl_addr *addr)
{
	if (pl_addr_is_v4(addr))
		add_attr(q, type, addr->b + 12, 4);
	else
		add_attr(q, type, addr->b, 16);
}

static uint8_t family(const struct pl_addr *addr)
{
	return pl_addr_is_v4(addr) ? AF_INET : AF_INET6;
}

/* Asks; the answer has `type`, and at least `body` bytes. The kernel answers at once or returns an
 * error. */
static int ask(struct question *q, struct answer *ret, uint16_t type, size_t body)
{
	struct sockaddr_nl sa = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), r = 0;
	ssize_t n = -1;

	if (fd < 0)
		return -errno;
	if (sendto(fd, q, q->u.h.nlmsg_len, 0, (struct sockaddr *)&sa, sizeof(sa)) >= 0)
		n = recv(fd, ret, sizeof(*ret), 0);
	if (n < 0)
		r = -errno;
	close(fd);
	if (r < 0)
		return r;
	if (!NLMSG_OK(&ret->u.h, (size_t)n))
		return -EPROTO;
	if (ret->u.h.nlmsg_type == NLMSG_ERROR && ret->u.h.nlmsg_len >= NLMSG_LENGTH(sizeof(int))) {
		r = ((const struct nlmsgerr *)NLMSG_DATA(&ret->u.h))->error;
		return r != 0 ? r : -EPROTO;
	}
	return ret->u.h.nlmsg_type == type && ret->u.h.nlmsg_len >= NLMSG_LENGTH(body) ? 0
										       : -EPROTO;
}

/* Finds an attribute of the answer with exactly this many bytes; NULL: none. */
static const void *attr(const struct answer *a, size_t body, uint16_t type, size_t bytes)
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
	const struct answer *a, size_t body, uint16_t type, bool v4, struct pl_addr *ret)
{
	const void *bytes = attr(a, body, type, v4 ? 4 : 16);

	if (bytes == NULL)
		return false;
	*ret = v4 ? pl_addr_v4(bytes) : pl_addr_v6(bytes);
	return true;
}

/* The kernel's route to an address, through an interface unless `out` is 0. */
static int ask_route(const struct pl_addr *to, uint32_t out, struct answer *ret)
{
	struct question q = { .u.h = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
				      .nlmsg_type = RTM_GETROUTE,
				      .nlmsg_flags = NLM_F_REQUEST } };
	struct rtmsg *m = NLMSG_DATA(&q.u.h);

	m->rtm_family = family(to);
	m->rtm_dst_len = pl_addr_is_v4(to) ? 32 : 128;
	add_addr(&q, RTA_DST, to);
	if (out != 0)
		add_attr(&q, RTA_OIF, &out, sizeof(out));
	return ask(&q, ret, RTM_NEWROUTE, sizeof(struct rtmsg));
}

int pl_route_find(int ifindex, const struct pl_addr *to, struct pl_route *ret, struct pl_diag *diag)
{
	const bool v4 = pl_addr_is_v4(to);
	struct answer a = { .u.bytes = { 0 } };
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
	struct answer a = { .u.bytes = { 0 } };
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
	struct question q = { .u.h = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
				      .nlmsg_type = RTM_GETNEIGH,
				      .nlmsg_flags = NLM_F_REQUEST } };
	struct ndmsg *m = NLMSG_DATA(&q.u.h);
	const void *mac;
	struct answer a = { .u.bytes = { 0 } };
	int r;

	m->ndm_family = family(host);
	m->ndm_ifindex = ifindex;
	add_addr(&q, NDA_DST, host);
	r = ask(&q, &a, RTM_NEWNEIGH, sizeof(struct ndmsg));
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
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(DISCARD_PORT) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(DISCARD_PORT),
		.sin6_scope_id = (uint32_t)ifindex };
	const bool is_v4 = pl_addr_is_v4(host);
	int fd = socket(family(host), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r = 0;

	if (fd < 0)
		return -errno;
	memcpy(&v4.sin_addr, host->b + 12, 4);
	memcpy(&v6.sin6_addr, host->b, 16);
	/* The interface is the route's; the socket is bound to it where allowed, for hosts with
	 * several routes. */
	(void)setsockopt(fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6,
		is_v4 ? IP_UNICAST_IF : IPV6_UNICAST_IF, &(uint32_t){ htonl((uint32_t)ifindex) },
		sizeof(uint32_t));
	if (sendto(fd, "", 0, MSG_DONTWAIT,
		    is_v4 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6,
		    is_v4 ? sizeof(v4) : sizeof(v6)) < 0)
		r = -errno;
	close(fd);
	return r;
}
