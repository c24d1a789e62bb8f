/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends NACKs and confirmations to reporters. */
#include "chain/translate_answers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "netio/udp_quiet.h"
#include "runtime/say.h"
#include "wire/layers.h"

#define AGAIN_NS UINT64_C(1000000000)

/* ---- sockets ---- */

/* Reads the numbers of "…?port=N,N&…". */
static int list_ports(struct pl_answers *a, const char *uri, struct pl_diag *diag)
{
	const char *p = strstr(uri, "port=");

	for (p = p != NULL ? p + strlen("port=") : ""; *p >= '0' && *p <= '9';) {
		char *end;
		const unsigned long port = strtoul(p, &end, 10);

		if (a->n == PL_ANSWERS_PORTS_MAX)
			return pl_diag_fail(diag, -EINVAL, "'%s': at most %d UDP ports", uri,
				PL_ANSWERS_PORTS_MAX);
		a->own[a->n].fd = -1;
		a->own[a->n++].port = (uint16_t)port;
		p = *end == ',' ? end + 1 : "";
	}
	return 0;
}

int pl_answers_open(
	struct pl_answers *a, const char *uri, const struct pl_port *port, struct pl_diag *diag)
{
	const char *scheme = pl_port_uri_scheme(uri), *at;
	int r;

	*a = (struct pl_answers){ .shared_fd = -1 };
	if (scheme == NULL || strcmp(scheme, "pcap") == 0)
		return 0;
	if (strcmp(scheme, "udp") == 0) {
		a->shared_fd = pl_port_fd(port);
		return 0;
	}
	at = uri + strlen(scheme) + 1;
	if (strcspn(at, "?") >= sizeof(a->interface))
		return 0;
	memcpy(a->interface, at, strcspn(at, "?"));
	r = list_ports(a, at, diag);
	for (unsigned int i = 0; r >= 0 && i < a->n; i++) {
		r = a->own[i].fd = pl_udp_quiet_open(a->interface, a->own[i].port);
		if (r == -EADDRINUSE) {
			pl_say("%s: UDP port %u is in use: reporters get neither NACKs nor confirmations",
				a->interface, a->own[i].port);
			r = 0;
		} else if (r < 0) {
			pl_diag_set(diag, "%s: UDP port %u: %s", a->interface, a->own[i].port,
				strerror(-r));
		}
	}
	if (r < 0)
		pl_answers_close(a);
	return r < 0 ? r : 0;
}

static void close_own(struct pl_answers *a)
{
	for (unsigned int i = 0; i < a->n; i++) {
		if (a->own[i].fd >= 0)
			close(a->own[i].fd);
		a->own[i].fd = -1;
	}
}

void pl_answers_close(struct pl_answers *a)
{
	close_own(a);
	a->n = 0;
	a->shared_fd = -1;
}

/* Opens sockets again: the interface came back with another number. */
static void open_again(struct pl_answers *a)
{
	const uint64_t now_ns = pl_clock_mono_ns();

	if (now_ns < a->again_ns)
		return;
	a->again_ns = now_ns + AGAIN_NS;
	close_own(a);
	for (unsigned int i = 0; i < a->n; i++)
		a->own[i].fd = pl_udp_quiet_open(a->interface, a->own[i].port);
}

/* ---- sending ---- */

/* from: NULL leaves it to the kernel. Returns negative errno. */
static int send_from(int fd, const struct pl_addr *from, const struct pl_addr *to, uint16_t port,
	const void *bytes, size_t n)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = { .room = { 0 } };
	struct sockaddr_storage local = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(local);
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct iovec text = { (void *)(uintptr_t)bytes, n };
	struct msghdr m = { .msg_iov = &text, .msg_iovlen = 1 };
	struct cmsghdr *c = &control.align;
	bool six;

	if (getsockname(fd, (struct sockaddr *)&local, &len) < 0)
		return -errno;
	six = local.ss_family == AF_INET6;
	memcpy(&v6.sin6_addr, to->b, 16);
	memcpy(&v4.sin_addr, to->b + 12, 4);
	m.msg_name = six ? (void *)&v6 : (void *)&v4;
	m.msg_namelen = six ? sizeof(v6) : sizeof(v4);
	if (from != NULL && six) {
		struct in6_pktinfo info = { .ipi6_ifindex = 0 };

		memcpy(&info.ipi6_addr, from->b, 16);
		*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(info)),
			.cmsg_level = IPPROTO_IPV6,
			.cmsg_type = IPV6_PKTINFO };
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		m.msg_controllen = CMSG_SPACE(sizeof(info));
	} else if (from != NULL) {
		struct in_pktinfo info = { .ipi_ifindex = 0 };

		memcpy(&info.ipi_spec_dst, from->b + 12, 4);
		*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(info)),
			.cmsg_level = IPPROTO_IP,
			.cmsg_type = IP_PKTINFO };
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		m.msg_controllen = CMSG_SPACE(sizeof(info));
	}
	m.msg_control = from != NULL ? &control : NULL;
	return sendmsg(fd, &m, MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Socket of the port that the report went to. */
static int own_fd(const struct pl_answers *a, uint16_t port)
{
	for (unsigned int i = 0; i < a->n; i++) {
		if (a->own[i].port == port)
			return a->own[i].fd;
	}
	return -1;
}

bool pl_answers_send(struct pl_answers *a, const struct pl_packet *report, const struct pl_addr *to,
	uint16_t port, const void *bytes, size_t n)
{
	struct pl_layers layers;
	int r;

	if (a->shared_fd >= 0) {
		const struct pl_addr *from = report != NULL && report->link == PL_LINK_UDP &&
							     !pl_addr_is_unspecified(&report->dst)
						     ? &report->dst
						     : NULL;

		r = send_from(a->shared_fd, from, to, port, bytes, n);
		if (from != NULL && (r == -EINVAL || r == -EADDRNOTAVAIL))
			r = send_from(a->shared_fd, NULL, to, port, bytes, n);
		return r == 0;
	}
	if (report == NULL || a->n == 0 ||
		pl_layers_walk(&layers, pl_cursor(report->data, report->len),
			(enum pl_link)report->link, false) != PL_V_OK)
		return false;
	r = send_from(own_fd(a, layers.flow.dport), &layers.flow.dst, to, port, bytes, n);
	/* The report went to an address that is not this host's, such as a group's, or one seen on
	 * a mirror port. */
	if (r == -EINVAL || r == -EADDRNOTAVAIL)
		r = send_from(own_fd(a, layers.flow.dport), NULL, to, port, bytes, n);
	if (r == -ENODEV || r == -ENXIO || r == -EBADF)
		open_again(a);
	return r == 0;
}
