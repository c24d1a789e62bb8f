/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port driver of the kernel's own IOAM trace events, ioam6: an IOAM node on Linux reports every
 * trace that it filled in or received to a multicast group of generic netlink (Linux 6.9,
 * net/ipv6/ioam6.c). A message holds the trace, but nothing else of its packet. It becomes a packet
 * of PL_LINK_IOAM_TRACE: the option as it would stand in IPv6, the unused words left out.
 */
#include "netio/ioam6.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "netio/driver.h"

#define FAMILY        "IOAM6"
#define GROUP         "ioam6_events"
#define MESSAGE_BYTES 2048 /* an option has 255 at most */
#define EVENT_BYTES   264
#define RCVBUF_BYTES  (4u << 20)

/* uapi linux/ioam6_genl.h, since 6.9. */
enum { EVENT_TRACE = 1 };
enum { ATTR_NAMESPACE = 1, ATTR_NODELEN, ATTR_TYPE, ATTR_DATA };

struct ioam6_port {
	struct pl_port port; /* first */
	uint8_t events[PL_BATCH_MAX][EVENT_BYTES];
	uint8_t message[MESSAGE_BYTES];
};

/* ---- attributes ---- */

/* Returns the next attribute of an area of `left` bytes and moves both behind it; NULL at the end
 * or at a damaged attribute. */
static const struct nlattr *next_attr(const uint8_t **area, size_t *left)
{
	const struct nlattr *a = (const struct nlattr *)(const void *)*area;
	size_t room;

	if (*left < sizeof(*a) || a->nla_len < sizeof(*a) || a->nla_len > *left)
		return NULL;
	room = NLA_ALIGN(a->nla_len);
	*area += room < *left ? room : *left;
	*left -= room < *left ? room : *left;
	return a;
}

static size_t attr_bytes(const struct nlattr *a)
{
	return a->nla_len - NLA_HDRLEN;
}

static const uint8_t *attr_data(const struct nlattr *a)
{
	return (const uint8_t *)a + NLA_HDRLEN;
}

/* Reads a number in host byte order; false when the attribute has another size. */
static bool number(const struct nlattr *a, void *ret, size_t size)
{
	if (attr_bytes(a) != size)
		return false;
	memcpy(ret, attr_data(a), size);
	return true;
}

int pl_ioam6_event(uint8_t *dst, size_t cap, const uint8_t *message, size_t len)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)message;
	const struct genlmsghdr *g =
		(const struct genlmsghdr *)(const void *)(message + NLMSG_HDRLEN);
	const uint8_t *area = message + NLMSG_HDRLEN + GENL_HDRLEN, *data = NULL;
	const struct nlattr *a;
	unsigned int seen = 0;
	size_t left, bytes = 0;
	uint32_t type = 0;
	uint16_t ns = 0;
	uint8_t node_len = 0;

	if (len < NLMSG_HDRLEN + GENL_HDRLEN || h->nlmsg_len > len ||
		h->nlmsg_len < NLMSG_HDRLEN + GENL_HDRLEN || g->cmd != EVENT_TRACE)
		return -EBADMSG;
	left = h->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN;
	while ((a = next_attr(&area, &left)) != NULL) {
		bool good = true;

		switch (a->nla_type & NLA_TYPE_MASK) {
		case ATTR_NAMESPACE:
			good = number(a, &ns, sizeof(ns));
			break;
		case ATTR_NODELEN:
			good = number(a, &node_len, sizeof(node_len));
			break;
		case ATTR_TYPE:
			good = number(a, &type, sizeof(type));
			break;
		case ATTR_DATA:
			data = attr_data(a);
			bytes = attr_bytes(a);
			break;
		default:
			continue;
		}
		if (!good)
			return -EBADMSG;
		seen |= 1u << (a->nla_type & NLA_TYPE_MASK);
	}
	/* The data may be missing: no node had room to add any. */
	if ((seen & 0xe) != 0xe || node_len > 31 || 8 + bytes > cap)
		return -EBADMSG;
	/* RFC 9197 4.4.1: Namespace-ID:16 | NodeLen:5 Flags:4 RemainingLen:7 | Trace-Type:24
	 * Reserved:8 */
	dst[0] = (uint8_t)(ns >> 8);
	dst[1] = (uint8_t)ns;
	dst[2] = (uint8_t)(node_len << 3);
	dst[3] = 0;
	for (int i = 0; i < 4; i++)
		dst[4 + i] = (uint8_t)(type >> (24 - 8 * i));
	dst[7] = 0;
	if (bytes > 0)
		memcpy(dst + 8, data, bytes);
	return (int)(8 + bytes);
}

/* ---- the group ---- */

/* Returns the id of GROUP in the answer about the family; 0 when the kernel has no such group. */
static uint32_t group_of(const uint8_t *answer, size_t len)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)answer;
	const struct nlattr *a, *each, *part;
	const uint8_t *area = answer + NLMSG_HDRLEN + GENL_HDRLEN, *groups, *parts;
	size_t left, groups_left, parts_left;

	if (len < NLMSG_HDRLEN + GENL_HDRLEN || h->nlmsg_len > len || h->nlmsg_type == NLMSG_ERROR)
		return 0;
	left = len - NLMSG_HDRLEN - GENL_HDRLEN;
	while ((a = next_attr(&area, &left)) != NULL) {
		if ((a->nla_type & NLA_TYPE_MASK) != CTRL_ATTR_MCAST_GROUPS)
			continue;
		groups = attr_data(a);
		groups_left = attr_bytes(a);
		while ((each = next_attr(&groups, &groups_left)) != NULL) {
			bool ours = false;
			uint32_t id = 0;

			parts = attr_data(each);
			parts_left = attr_bytes(each);
			while ((part = next_attr(&parts, &parts_left)) != NULL) {
				if (part->nla_type == CTRL_ATTR_MCAST_GRP_ID)
					(void)number(part, &id, sizeof(id));
				else if (part->nla_type == CTRL_ATTR_MCAST_GRP_NAME)
					ours = attr_bytes(part) == sizeof(GROUP) &&
					       memcmp(attr_data(part), GROUP, sizeof(GROUP)) == 0;
			}
			if (ours)
				return id;
		}
	}
	return 0;
}

/* Asks the kernel about the family. Returns the group's id, 0 when there is none, or negative
 * errno. */
static int64_t find_group(int fd)
{
	struct {
		struct nlmsghdr h;
		struct genlmsghdr g;
		struct nlattr a;
		char name[NLA_ALIGN(sizeof(FAMILY))];
	} ask = { .h = { .nlmsg_len = sizeof(ask),
			  .nlmsg_type = GENL_ID_CTRL,
			  .nlmsg_flags = NLM_F_REQUEST },
		.g = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 },
		.a = { .nla_len = NLA_HDRLEN + sizeof(FAMILY), .nla_type = CTRL_ATTR_FAMILY_NAME },
		.name = FAMILY };
	union {
		struct nlmsghdr h;
		uint8_t bytes[8192];
	} answer;
	ssize_t n;

	if (send(fd, &ask, sizeof(ask), 0) < 0)
		return -errno;
	n = recv(fd, &answer, sizeof(answer), 0);
	return n < 0 ? -errno : (int64_t)group_of(answer.bytes, (size_t)n);
}

static int ioam6_close(struct pl_port *port)
{
	if (port->fd >= 0)
		close(port->fd);
	free(port->name);
	free(port);
	return 0;
}

static int join(int fd, struct pl_diag *diag)
{
	const int bytes = RCVBUF_BYTES;
	int64_t group = find_group(fd);
	uint32_t id = (uint32_t)group;

	if (group <= 0) {
		pl_diag_set(diag,
			group == 0 || group == -ENOENT
				? "ioam6: this kernel has no IOAM trace events (Linux 6.9 or later, "
				  "with IPv6)"
				: "ioam6: %s",
			strerror((int)-group));
		return group == 0 || group == -ENOENT ? -EOPNOTSUPP : (int)group;
	}
	/* A large buffer, because events come at the rate of packets. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &id, sizeof(id)) == 0)
		return 0;
	pl_diag_set(diag,
		errno == EPERM ? "ioam6: the kernel's IOAM events need CAP_NET_ADMIN" : "ioam6: %s",
		strerror(errno));
	return -errno;
}

static int ioam6_open(struct pl_port **ret_port, const struct pl_uri *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag)
{
	struct ioam6_port *self = calloc(1, sizeof(*self));
	int r = 0;

	(void)options;
	if (self == NULL)
		return -ENOMEM;
	self->port.fd = -1;
	self->port.clock = PL_STAMP_READING;
	if (mode != PL_PORT_RECV || *uri->target != '\0') {
		pl_diag_set(diag, "ioam6: must have nothing after the colon, and cannot send");
		r = -EINVAL;
	} else if ((self->port.name = strdup("ioam6:")) == NULL) {
		r = -ENOMEM;
	} else {
		self->port.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
		r = self->port.fd < 0 ? -errno : join(self->port.fd, diag);
	}
	if (r < 0) {
		(void)ioam6_close(&self->port);
		return r;
	}
	*ret_port = &self->port;
	return 0;
}

/* ---- receiving ---- */

/* Receives up to a batch of events without waiting. */
static int take(struct ioam6_port *self, struct pl_batch *batch)
{
	uint64_t now = pl_clock_real_ns();
	uint32_t n = 0;

	while (n < PL_BATCH_MAX) {
		ssize_t got =
			recv(self->port.fd, self->message, sizeof(self->message), MSG_DONTWAIT);
		int len;

		/* ENOBUFS: the socket dropped and counted some events; later ones follow. */
		if (got < 0 && errno == ENOBUFS)
			continue;
		if (got < 0)
			return n > 0 || errno == EAGAIN || errno == EINTR ? (int)n : -errno;
		len = pl_ioam6_event(self->events[n], EVENT_BYTES, self->message, (size_t)got);
		if (len < 0) {
			self->port.stats.errors++;
			continue;
		}
		batch->pkts[n] = (struct pl_packet){ .data = self->events[n],
			.len = (uint32_t)len,
			.wire_len = (uint32_t)len,
			.ts_ns = now,
			.clock = PL_STAMP_READING,
			.link = PL_LINK_IOAM_TRACE };
		n++;
	}
	return (int)n;
}

static int ioam6_recv(
	struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	struct ioam6_port *self = (struct ioam6_port *)port;
	struct pollfd p = { .fd = port->fd, .events = POLLIN };
	int n = take(self, ret_batch);

	if (n == 0 && poll(&p, 1, timeout_ms) > 0)
		n = take(self, ret_batch);
	if (n < 0)
		pl_diag_set(diag, "ioam6: %s", strerror(-n));
	return n;
}

static void ioam6_stats(struct pl_port *port)
{
	uint32_t info[16] = { 0 };
	socklen_t len = sizeof(info);

	/* Word 8 is the number of dropped messages (SK_MEMINFO_DROPS). */
	if (getsockopt(port->fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0 && len >= 36)
		port->stats.kernel_drops = info[8];
	/* The kernel doubles what it grants, for its own bookkeeping. */
	port->stats.rcvbuf_bytes = info[1] / 2;
}

const struct pl_port_driver pl_port_ioam6 = {
	.scheme = "ioam6",
	.can = PL_PORT_CAN_LIVE,
	.open = ioam6_open,
	.recv = ioam6_recv,
	.stats = ioam6_stats,
	.close = ioam6_close,
};
