/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds requests to rtnetlink, sends them and takes the answers. */
#include "netio/rtnl_message.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void *pl_rtnl_room(struct pl_rtnl_request *q, size_t bytes)
{
	uint8_t *p = q->u.bytes + q->u.h.nlmsg_len;

	assert(q->u.h.nlmsg_len + NLMSG_ALIGN(bytes) <= sizeof(q->u.bytes));
	memset(p, 0, NLMSG_ALIGN(bytes));
	q->u.h.nlmsg_len += (uint32_t)NLMSG_ALIGN(bytes);
	return p;
}

void *pl_rtnl_begin(struct pl_rtnl_request *q, uint16_t type, uint16_t flags, size_t bytes)
{
	q->u.h = (struct nlmsghdr){ .nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags };
	return pl_rtnl_room(q, bytes);
}

void pl_rtnl_add(struct pl_rtnl_request *q, uint16_t type, const void *data, size_t bytes)
{
	struct rtattr *a = pl_rtnl_room(q, RTA_LENGTH(bytes));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(bytes);
	if (bytes > 0)
		memcpy(RTA_DATA(a), data, bytes);
}

void pl_rtnl_add_addr(struct pl_rtnl_request *q, uint16_t type, const struct pl_addr *addr)
{
	if (pl_addr_is_v4(addr))
		pl_rtnl_add(q, type, addr->b + 12, 4);
	else
		pl_rtnl_add(q, type, addr->b, 16);
}

uint8_t pl_rtnl_family(const struct pl_addr *addr)
{
	return pl_addr_is_v4(addr) ? AF_INET : AF_INET6;
}

uint32_t pl_rtnl_nest(struct pl_rtnl_request *q, uint16_t type)
{
	uint32_t at = q->u.h.nlmsg_len;

	pl_rtnl_add(q, type, NULL, 0);
	return at;
}

void pl_rtnl_nest_end(struct pl_rtnl_request *q, uint32_t at)
{
	struct rtattr *a = (struct rtattr *)(void *)(q->u.bytes + at);

	a->rta_len = (uint16_t)(q->u.h.nlmsg_len - at);
}

/* Sends the request and receives the first message of the answer. The kernel answers at once. */
static int exchange(const struct pl_rtnl_request *q, struct pl_rtnl_answer *ret)
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
	else if (!NLMSG_OK(&ret->u.h, (size_t)n))
		r = -EPROTO;
	close(fd);
	return r;
}

/* Error of an answer, 0 for success; -EPROTO when it is another message. */
static int error_of(const struct pl_rtnl_answer *a)
{
	if (a->u.h.nlmsg_type != NLMSG_ERROR || a->u.h.nlmsg_len < NLMSG_LENGTH(sizeof(int)))
		return -EPROTO;
	return ((const struct nlmsgerr *)NLMSG_DATA(&a->u.h))->error;
}

int pl_rtnl_ask(struct pl_rtnl_request *q)
{
	struct pl_rtnl_answer answer;
	int r = exchange(q, &answer);

	return r < 0 ? r : error_of(&answer);
}

int pl_rtnl_get(struct pl_rtnl_request *q, struct pl_rtnl_answer *ret, uint16_t type, size_t body)
{
	int r = exchange(q, ret);

	if (r < 0)
		return r;
	if (ret->u.h.nlmsg_type == type && ret->u.h.nlmsg_len >= NLMSG_LENGTH(body))
		return 0;
	r = error_of(ret);
	return r != 0 ? r : -EPROTO;
}
