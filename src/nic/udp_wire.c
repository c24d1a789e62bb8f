/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 through a UDP socket, udp://HOST, for users without the right to frames. Datagrams become
 * packets (PL_LINK_RAW_IP) with the IP and UDP headers that they must have had, and frames of an
 * engine (PL_LINK_ETHERNET, RoCEv2, no tag) become datagrams. A socket tells everything of these
 * headers that the ICRC covers but IPv4's identification and whether fragments were allowed:
 *
 *   Sent packets: both are known. Fragments are forbidden, and the identification is 0, as Linux sets
 *   it for sockets that are not connected (RFC 6864, 4.1, leaves it free there). The ICRC is
 *   computed with these values.
 *   Received packets: both are found from the ICRC itself. One value of the 32 bits explains any
 *   ICRC, and one in 2^15 values is plausible. So a damaged IPv4 packet is taken for a whole one
 *   with a chance of 2^-15, where the link's own checks have missed it; with IPv6 of 2^-32 as
 *   anywhere.
 *
 * The socket does not give times to live, types of service and Ethernet addresses: packets have 0,
 * 0 and none. Packets are the wire's until the next reception.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/num.h"
#include "netio/sockaddr.h"
#include "nic/nic_wire.h"
#include "wire/layers.h"
#include "wire/roce.h"

#define ETH_BYTES    14
#define IP4_BYTES    20
#define IP6_BYTES    40
#define UDP_BYTES    8
#define ICRC_BYTES   4
/* Longer datagrams are not RoCE; they are cut, and counted as faults. */
#define DATAGRAM_MAX (PL_ROCE_PATH_MTU + 128)
#define PACKET_BYTES (IP6_BYTES + UDP_BYTES + DATAGRAM_MAX)
#define BTH_BYTES    12
#define NO_FRAGMENTS 0x40 /* of the sixth byte of an IPv4 header */

struct nic_wire {
	struct pl_port *port;
	char name[PL_ADDR_TEXT_MAX + 16];
	struct pl_addr own;
	struct pl_batch datagrams;
	uint8_t (*packets)[PACKET_BYTES];
	struct mmsghdr out[PL_BATCH_MAX];
	struct iovec bytes[PL_BATCH_MAX];
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} to[PL_BATCH_MAX];
	_Alignas(struct cmsghdr) uint8_t control[PL_BATCH_MAX][CMSG_SPACE(sizeof(int))];
};

/* ---- opening ---- */

static int refuse(struct pl_diag *diag, const char *uri, const char *what)
{
	pl_diag_set(diag, "'%s': %s", uri, what);
	return -EINVAL;
}

/* Adds port 4791 to the URI; the caller frees it. NULL: no memory. */
static char *with_port(const char *uri)
{
	const char *host = uri + strlen("udp://");
	const size_t len = strcspn(host, "?");
	const char *colon = memchr(host, ':', len), *bracket = memchr(host, ']', len);
	const bool there = host[0] == '[' ? bracket != NULL && bracket[1] == ':' : colon != NULL;
	char *full;

	if (asprintf(&full, "udp://%.*s%s%s", (int)len, host, there ? "" : ":4791", host + len) < 0)
		return NULL;
	return full;
}

/* Reads the address that the socket is bound to, which must be one address. */
static int bound_to(const struct nic_wire *wire, struct pl_addr *ret)
{
	struct pl_sockaddr bound = { .len = sizeof(bound.sa) };
	uint16_t port;

	if (getsockname(pl_port_fd(wire->port), (struct sockaddr *)&bound.sa, &bound.len) < 0)
		return -errno;
	*ret = pl_sockaddr_get(&bound.sa, &port);
	return 0;
}

/* Fragments are forbidden, so that the identification is 0. UDP has no checksum in RoCE (annex
 * A17.4.5.1), nor with IPv6. */
static int set_up(const struct nic_wire *wire)
{
	static const struct {
		bool four;
		int level, option, value;
	} wanted[] = { { true, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE },
		{ true, SOL_SOCKET, SO_NO_CHECK, 1 },
		{ false, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE },
		{ false, IPPROTO_UDP, UDP_NO_CHECK6_TX, 1 },
		{ false, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1 } };

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (wanted[i].four == pl_addr_is_v4(&wire->own) &&
			setsockopt(pl_port_fd(wire->port), wanted[i].level, wanted[i].option,
				&wanted[i].value, sizeof(wanted[i].value)) < 0)
			return -errno;
	}
	return 0;
}

static int open_socket(struct nic_wire *wire, const char *uri, struct pl_diag *diag)
{
	char *full;
	int r;

	/* The parser reports that the form is not udp://…. */
	if (strncmp(uri, "udp://", 6) != 0)
		return pl_port_uri_sockets(uri, diag);
	full = with_port(uri);
	if (full == NULL)
		return -ENOMEM;
	r = pl_port_uri_sockets(full, diag);
	if (r > 1)
		r = refuse(diag, uri, "sockets= must be 1");
	if (r == 1)
		r = pl_port_open(&wire->port, full, PL_PORT_RECV, NULL, diag);
	free(full);
	if (r < 0)
		return r;
	if (pl_port_local_port(wire->port) != PL_ROCE_PORT)
		return refuse(diag, uri, "the port must be 4791, the UDP port of RoCEv2");
	r = bound_to(wire, &wire->own);
	if (r == 0 && pl_addr_is_unspecified(&wire->own))
		return refuse(diag, uri, "missing address of this host, such as udp://10.0.0.1");
	if (r == 0)
		r = set_up(wire);
	if (r < 0)
		pl_diag_set(diag, "%s", strerror(-r));
	return r;
}

static void udp_wire_close(struct nic_wire *wire)
{
	if (wire == NULL)
		return;
	pl_port_close(wire->port);
	free(wire->packets);
	free(wire);
}

static int open_all(struct nic_wire *wire, const char *uri, struct nic_interface *interface,
	int poll_fd, struct pl_diag *diag)
{
	struct epoll_event e = { .events = EPOLLIN };
	char text[PL_ADDR_TEXT_MAX], name[IF_NAMESIZE];
	int r = open_socket(wire, uri, diag);

	if (r < 0)
		return r;
	pl_format_addr(text, &wire->own);
	snprintf(wire->name, sizeof(wire->name), "udp://%s", text);
	if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, pl_port_fd(wire->port), &e) < 0) {
		r = -errno;
		pl_diag_set(diag, "%s", strerror(-r));
		return r;
	}
	nic_interface_name(&wire->own, name);
	return nic_interface_open(interface, name, diag);
}

static int udp_wire_open(struct nic_wire **ret, const char *uri,
	const struct pl_nic_options *options, struct nic_interface *interface, int poll_fd,
	struct pl_diag *diag)
{
	struct nic_wire *wire = calloc(1, sizeof(*wire));
	int r;

	(void)options; /* no right is needed */
	if (wire != NULL)
		wire->packets = calloc(PL_BATCH_MAX, sizeof(wire->packets[0]));
	if (wire == NULL || wire->packets == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		udp_wire_close(wire);
		return -ENOMEM;
	}
	r = open_all(wire, uri, interface, poll_fd, diag);
	if (r < 0) {
		udp_wire_close(wire);
		return r;
	}
	*ret = wire;
	return 0;
}

static const char *udp_wire_name(const struct nic_wire *wire)
{
	return wire->name;
}

static struct nic_wire_room udp_wire_room(const struct nic_wire *wire)
{
	(void)wire;
	return (struct nic_wire_room){ .send = UINT32_MAX, .receive = UINT32_MAX };
}

static const struct pl_addr *udp_wire_address(const struct nic_wire *wire)
{
	return &wire->own;
}

/* ---- receiving ---- */

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Writes network and UDP headers before `bytes` bytes of payload. Returns their length. */
static uint32_t put_headers(
	const struct nic_wire *wire, uint8_t *p, const struct pl_packet *datagram, uint32_t bytes)
{
	const bool four = pl_addr_is_v4(&datagram->src);
	uint8_t *udp = p + (four ? IP4_BYTES : IP6_BYTES);

	memset(p, 0, IP6_BYTES + UDP_BYTES);
	if (four) {
		p[0] = 0x45;
		put16(p + 2, IP4_BYTES + UDP_BYTES + bytes);
		p[6] = NO_FRAGMENTS;
		p[9] = PL_IP_UDP;
		memcpy(p + 12, datagram->src.b + 12, 4);
		memcpy(p + 16, wire->own.b + 12, 4);
	} else {
		p[0] = 0x60;
		put16(p + 4, UDP_BYTES + bytes);
		p[6] = PL_IP_UDP;
		memcpy(p + 8, datagram->src.b, 16);
		memcpy(p + 24, wire->own.b, 16);
	}
	put16(udp, datagram->sport);
	put16(udp + 2, PL_ROCE_PORT);
	put16(udp + 4, UDP_BYTES + bytes);
	return (uint32_t)(udp - p) + UDP_BYTES;
}

/* Finds the identification, which the socket does not give, from the ICRC; when there is no
 * solution the packet stays unchanged, and is damaged. */
static void find_identification(uint8_t *packet, uint32_t len)
{
	uint32_t icrc;
	uint16_t id;
	bool fragments;

	if (len < IP4_BYTES + UDP_BYTES + BTH_BYTES + ICRC_BYTES)
		return;
	memcpy(&icrc, packet + len - ICRC_BYTES, sizeof(icrc));
	if (!pl_roce_icrc_find_id(packet, len - ICRC_BYTES, icrc, &id, &fragments))
		return;
	put16(packet + 4, id);
	packet[6] = fragments ? 0 : NO_FRAGMENTS;
}

static void make_packet(
	const struct nic_wire *wire, uint8_t *at, const struct pl_packet *in, struct pl_packet *ret)
{
	const uint32_t there = in->len < DATAGRAM_MAX ? in->len : DATAGRAM_MAX;
	const uint32_t headers = put_headers(wire, at, in, in->wire_len);

	assert(headers + there <= sizeof(wire->packets[0]));
	memcpy(at + headers, in->data, there);
	if (pl_addr_is_v4(&in->src) && there == in->wire_len)
		find_identification(at, headers + there);
	*ret = (struct pl_packet){ .data = at,
		.len = headers + there,
		.wire_len = headers + in->wire_len,
		.ts_ns = in->ts_ns,
		.link = PL_LINK_RAW_IP };
}

static int udp_wire_recv(
	struct nic_wire *wire, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	int n = pl_port_recv(wire->port, &wire->datagrams, timeout_ms, diag);

	ret_batch->n = 0;
	if (n <= 0)
		return n;
	for (uint32_t i = 0; i < wire->datagrams.n; i++)
		make_packet(wire, wire->packets[i], &wire->datagrams.pkts[i], &ret_batch->pkts[i]);
	ret_batch->n = wire->datagrams.n;
	pl_port_release(wire->port, &wire->datagrams);
	return n;
}

/* The datagrams went back already. */
static void udp_wire_release(struct nic_wire *wire, struct pl_batch *batch)
{
	(void)wire;
	(void)batch;
}

/* ---- sending ---- */

static void set_tos(struct nic_wire *wire, uint32_t i, bool four, uint8_t tos)
{
	struct msghdr *m = &wire->out[i].msg_hdr;
	const int value = tos;
	struct cmsghdr *c;

	if (tos == 0)
		return;
	m->msg_control = wire->control[i];
	m->msg_controllen = sizeof(wire->control[i]);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = four ? IPPROTO_IP : IPPROTO_IPV6;
	c->cmsg_type = four ? IP_TOS : IPV6_TCLASS;
	c->cmsg_len = CMSG_LEN(sizeof(value));
	memcpy(CMSG_DATA(c), &value, sizeof(value));
}

/* Makes message i of the datagram in a frame. Returns false when there is none: RoCEv1. */
static bool make_message(struct nic_wire *wire, uint32_t i, const struct pl_packet *frame)
{
	/* The frame is the caller's, who lets it be changed. */
	uint8_t *ip = (uint8_t *)(uintptr_t)frame->data + ETH_BYTES;
	const uint32_t len = frame->len - ETH_BYTES;
	const bool four = ip[0] >> 4 == 4;
	const uint32_t headers = (four ? IP4_BYTES : IP6_BYTES) + UDP_BYTES;
	struct msghdr *m = &wire->out[i].msg_hdr;
	uint8_t *udp = ip + headers - UDP_BYTES;
	uint32_t icrc;

	if (pl_be16(frame->data + ETH_BYTES - 2) != (four ? PL_ETH_IPV4 : PL_ETH_IPV6))
		return false;
	*m = (struct msghdr){ .msg_name = &wire->to[i],
		.msg_namelen = four ? sizeof(wire->to[i].v4) : sizeof(wire->to[i].v6),
		.msg_iov = &wire->bytes[i],
		.msg_iovlen = 1 };
	/* The kernel sets fields that the ICRC covers: the socket's port, whatever the path has,
	 * and IPv4's identification 0. */
	if (four || pl_be16(udp) != PL_ROCE_PORT) {
		put16(udp, PL_ROCE_PORT);
		if (four)
			put16(ip + 4, 0);
		icrc = four ? pl_roce_icrc_ip4(ip, len - ICRC_BYTES)
			    : pl_roce_icrc(ip, len - ICRC_BYTES, PL_ROCE_NET_IP6);
		memcpy(ip + len - ICRC_BYTES, &icrc, sizeof(icrc));
	}
	if (four) {
		wire->to[i].v4 = (struct sockaddr_in){ .sin_family = AF_INET,
			.sin_port = htons(PL_ROCE_PORT) };
		memcpy(&wire->to[i].v4.sin_addr, ip + 16, 4);
	} else {
		wire->to[i].v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
			.sin6_port = htons(PL_ROCE_PORT) };
		memcpy(&wire->to[i].v6.sin6_addr, ip + 24, 16);
	}
	set_tos(wire, i, four, four ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4));
	wire->bytes[i] = (struct iovec){ ip + headers, len - headers };
	return true;
}

static int udp_wire_send(struct nic_wire *wire, struct pl_batch *frames, struct pl_diag *diag)
{
	const int fd = pl_port_fd(wire->port);
	uint32_t at = 0, messages = 0, sent = 0;
	int error = 0;

	assert(frames->n <= PL_BATCH_MAX);
	for (uint32_t i = 0; i < frames->n; i++)
		messages += make_message(wire, messages, &frames->pkts[i]);
	while (at < messages) {
		int n = sendmmsg(fd, wire->out + at, messages - at, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) { /* this frame failed; later ones may go elsewhere */
			error = errno;
			n = 0;
			at++;
		}
		at += (uint32_t)n;
		sent += (uint32_t)n;
	}
	if (sent == 0 && error != 0) {
		pl_diag_set(diag, "%s: %s", pl_port_name(wire->port), strerror(error));
		return -error;
	}
	return (int)sent;
}

/* ---- peers ---- */

/* The kernel finds the route; the source port is the socket's. */
static int udp_wire_path(struct nic_wire *wire, const struct pl_addr *peer, const uint8_t *mac,
	struct pl_roce_path *ret, struct pl_diag *diag)
{
	(void)mac;
	if (pl_addr_is_v4(peer) != pl_addr_is_v4(&wire->own)) {
		pl_diag_set(
			diag, "%s has no address of the address family of the peer", wire->name);
		return -ENETUNREACH;
	}
	*ret = (struct pl_roce_path){
		.src = wire->own, .dst = *peer, .ttl = NIC_HOP_LIMIT, .sport = PL_ROCE_PORT
	};
	return 0;
}

static void udp_wire_stats(struct nic_wire *wire, struct pl_port_stats *ret)
{
	memset(ret, 0, sizeof(*ret));
	pl_port_stats(wire->port, ret);
}

const struct nic_wire_ops nic_udp_wire = {
	.open = udp_wire_open,
	.close = udp_wire_close,
	.name = udp_wire_name,
	.room = udp_wire_room,
	.address = udp_wire_address,
	.recv = udp_wire_recv,
	.release = udp_wire_release,
	.send = udp_wire_send,
	.path = udp_wire_path,
	.stats = udp_wire_stats,
};
