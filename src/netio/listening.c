/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the kernel which sockets listen, and for the addresses of interfaces. */
#include "netio/listening.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 32768
#define RANGE_PATH   "/proc/sys/net/ipv4/ip_local_port_range"
#define RANGE_FROM   32768
#define RANGE_TO     60999

/* The requests of one reading, in order. A UDP socket that is bound and not connected has the state
 * "closed". */
static const struct {
	uint8_t family, proto; /* proto 0: addresses */
	uint32_t states;
} questions[] = {
	{ AF_INET, IPPROTO_TCP, 1u << TCP_LISTEN },
	{ AF_INET6, IPPROTO_TCP, 1u << TCP_LISTEN },
	{ AF_INET, IPPROTO_UDP, 1u << TCP_CLOSE },
	{ AF_INET6, IPPROTO_UDP, 1u << TCP_CLOSE },
	{ AF_UNSPEC, 0, 0 },
};
#define QUESTIONS (sizeof(questions) / sizeof(questions[0]))

struct pl_listening {
	int diag_fd, route_fd, range_fd;
	unsigned int at; /* index of the request */
	bool asked;
	uint32_t seq;
	union {
		struct nlmsghdr h;
		uint8_t bytes[ANSWER_BYTES];
	} u;
};

int pl_listening_open(struct pl_listening **ret, struct pl_diag *diag)
{
	struct pl_listening *l = calloc(1, sizeof(*l));
	int r = 0;

	if (l == NULL)
		return -ENOMEM;
	l->diag_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	r = l->diag_fd < 0 ? -errno : 0;
	l->route_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	r = r == 0 && l->route_fd < 0 ? -errno : r;
	l->range_fd = open(RANGE_PATH, O_RDONLY | O_CLOEXEC);
	if (r < 0) {
		pl_diag_set(diag, "netlink: %s", strerror(-r));
		pl_listening_close(l);
		return r;
	}
	*ret = l;
	return 0;
}

void pl_listening_close(struct pl_listening *l)
{
	if (l == NULL)
		return;
	if (l->diag_fd >= 0)
		close(l->diag_fd);
	if (l->route_fd >= 0)
		close(l->route_fd);
	if (l->range_fd >= 0)
		close(l->range_fd);
	free(l);
}

void pl_listening_begin(struct pl_listening *l)
{
	l->at = 0;
	l->asked = false;
}

/* ---- questions ---- */

static int send_question(int fd, const void *question, size_t bytes)
{
	const struct sockaddr_nl to = { .nl_family = AF_NETLINK };

	return sendto(fd, question, bytes, 0, (const struct sockaddr *)&to, sizeof(to)) < 0 ? -errno
											    : 0;
}

static int ask_for_sockets(struct pl_listening *l)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} q = { .h = { .nlmsg_len = sizeof(q),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			.nlmsg_seq = l->seq },
		.r = { .sdiag_family = questions[l->at].family,
			.sdiag_protocol = questions[l->at].proto,
			.idiag_states = questions[l->at].states } };

	return send_question(l->diag_fd, &q, sizeof(q));
}

static int ask_for_addresses(struct pl_listening *l)
{
	struct {
		struct nlmsghdr h;
		struct ifaddrmsg m;
	} q = { .h = { .nlmsg_len = sizeof(q),
			.nlmsg_type = RTM_GETADDR,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			.nlmsg_seq = l->seq },
		.m = { .ifa_family = AF_UNSPEC } };

	return send_question(l->route_fd, &q, sizeof(q));
}

/* ---- answers ---- */

static bool v6only_of(const struct nlmsghdr *h)
{
	const struct inet_diag_msg *m = NLMSG_DATA(h);
	const struct rtattr *a = (const struct rtattr *)(const void *)(m + 1);
	size_t len = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));

	for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if (a->rta_type == INET_DIAG_SKV6ONLY && RTA_PAYLOAD(a) >= 1)
			return *(const uint8_t *)RTA_DATA(a) != 0;
	}
	return false;
}

static void take_socket(const struct pl_listening *l, const struct nlmsghdr *h,
	const struct pl_listening_sink *sink)
{
	const struct inet_diag_msg *m = NLMSG_DATA(h);
	struct pl_addr addr;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->id.idiag_sport == 0)
		return;
	addr = m->idiag_family == AF_INET ? pl_addr_v4(m->id.idiag_src)
					  : pl_addr_v6(m->id.idiag_src);
	sink->socket(sink->arg, questions[l->at].proto, &addr, ntohs(m->id.idiag_sport),
		m->idiag_family == AF_INET6 && v6only_of(h));
}

/* IFA_LOCAL is the host's own address where IFA_ADDRESS is the peer's. */
static void take_address(const struct nlmsghdr *h, const struct pl_listening_sink *sink)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	const struct rtattr *a = IFA_RTA(m), *best = NULL;
	const size_t bytes = m->ifa_family == AF_INET ? 4 : 16;
	size_t len = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));
	struct pl_addr addr;

	for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if (RTA_PAYLOAD(a) == bytes &&
			(a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && best == NULL)))
			best = a;
	}
	if (best == NULL)
		return;
	addr = bytes == 4 ? pl_addr_v4(RTA_DATA(best)) : pl_addr_v6(RTA_DATA(best));
	sink->local(sink->arg, &addr);
}

/* Returns 1 for the last message of the answer, 0, or negative errno. */
static int take_message(const struct pl_listening *l, const struct nlmsghdr *h,
	const struct pl_listening_sink *sink)
{
	if (h->nlmsg_seq != l->seq)
		return 0; /* answer to a reading that failed */
	if (h->nlmsg_type == NLMSG_DONE)
		return 1;
	if (h->nlmsg_type == NLMSG_ERROR && h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
	if (h->nlmsg_type == SOCK_DIAG_BY_FAMILY && questions[l->at].proto != 0)
		take_socket(l, h, sink);
	else if (h->nlmsg_type == RTM_NEWADDR &&
		 h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifaddrmsg)))
		take_address(h, sink);
	return 0;
}

static int take_messages(struct pl_listening *l, ssize_t n, const struct pl_listening_sink *sink)
{
	const struct nlmsghdr *h = &l->u.h;
	unsigned int left = (unsigned int)n;
	int r = 0;

	for (; r == 0 && NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
		r = take_message(l, h, sink);
	return r;
}

static int ask(struct pl_listening *l)
{
	l->seq++;
	l->asked = true;
	return questions[l->at].proto != 0 ? ask_for_sockets(l) : ask_for_addresses(l);
}

int pl_listening_step(
	struct pl_listening *l, const struct pl_listening_sink *sink, struct pl_diag *diag)
{
	const int fd = questions[l->at].proto != 0 ? l->diag_fd : l->route_fd;
	int r = l->asked ? 0 : ask(l);
	ssize_t n = 0;

	/* recv does not wait: the kernel makes the answer while it is received. */
	if (r == 0) {
		n = recv(fd, l->u.bytes, sizeof(l->u.bytes), 0);
		r = n < 0 ? -errno : take_messages(l, n, sink);
	}
	if (r == -EINTR)
		return 0;
	if (r == -ENOENT && questions[l->at].family == AF_INET6)
		r = 1; /* a kernel without IPv6 */
	if (r < 0) {
		pl_diag_set(diag, "the kernel does not say what listens: %s", strerror(-r));
		return r;
	}
	l->at += r == 1;
	l->asked = r == 0;
	return l->at == QUESTIONS;
}

struct pl_listening_range pl_listening_clients(const struct pl_listening *l)
{
	struct pl_listening_range range = { RANGE_FROM, RANGE_TO };
	unsigned int from, to;
	char text[64];
	ssize_t n = l->range_fd >= 0 ? pread(l->range_fd, text, sizeof(text) - 1, 0) : -1;

	if (n <= 0)
		return range;
	text[n] = '\0';
	if (sscanf(text, "%u %u", &from, &to) == 2 && from <= to && to <= UINT16_MAX)
		range = (struct pl_listening_range){ (uint16_t)from, (uint16_t)to };
	return range;
}
