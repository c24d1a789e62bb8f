/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/nic.h"

#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/num.h"
#include "nic/neighbour.h"
#include "nic/udp_card.h"

#define HOP_LIMIT       64
#define SPORT_FIRST     0xc000 /* where a peer's UDP source port is taken from, as NICs do */
#define URI_MAX         4096
#define ROCE_KEYS       "port=4791&also=roce1&"
#define BLOCK_KEY       "block=16KiB&"
/* What the sending ring of a packet socket takes of a frame (netio/packet.c), and a frame of AF_XDP holds (netio/afxdp.c). */
#define SEND_BYTES_MAX  1984
#define AFXDP_BYTES_MAX 3832
#define LOOK_MASK       63 /* under load it is seen so often whether the interface changed */

struct pl_nic {
	struct pl_port *recv[PL_NIC_PORTS_MAX], *send;
	uint32_t nrecv, turn;    /* turn: the port to be asked first */
	struct pl_udp_card *udp; /* instead of ports, for udp: */
	struct pl_port *lender;
	int poll_fd, quiet_fd, /* has UDP port 4791, so that the host does not answer for it */
		news_fd;       /* netlink: links and addresses of this host change */
	char name[PL_ADDR_TEXT_MAX + 16], interface[IF_NAMESIZE];
	int ifindex; /* of the interface when it was asked last */
	uint8_t mac[6];
	bool moved; /* the MAC address is another than at the beginning */
	uint16_t mtu, receive_mtu;
	uint32_t changes, takes; /* takes: receptions since it was idle */
	struct pl_nic_counters counters;
};

/* ---- the interface ---- */

/* By the netlink socket, which stays in the namespace that it was opened in. */
static int ask(const struct pl_nic *nic, unsigned long what, struct ifreq *req)
{
	return ioctl(nic->news_fd, what, req) < 0 ? -errno : 0;
}

/* The number of the interface, under the name that it has now; another one of its name, where it is gone. 0: none. */
static int find_interface(struct pl_nic *nic)
{
	struct ifreq req = { .ifr_ifindex = nic->ifindex };

	if (nic->ifindex != 0 && ask(nic, SIOCGIFNAME, &req) == 0) {
		memcpy(nic->interface, req.ifr_name, sizeof(nic->interface));
		return nic->ifindex;
	}
	memcpy(req.ifr_name, nic->interface, sizeof(req.ifr_name));
	return ask(nic, SIOCGIFINDEX, &req) == 0 ? req.ifr_ifindex : 0;
}

/* Behind IP, UDP and the longest transport headers; the overhead counts Ethernet and a tag too. */
static uint16_t path_mtu(uint32_t frame_bytes)
{
	uint16_t mtu = PL_ROCE_PATH_MTU;

	while (mtu > 256 && (uint32_t)mtu + PL_ROCE_OVERHEAD > frame_bytes)
		mtu /= 2;
	return mtu;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* MAC address, MTU and number as they are. */
static int ask_interface(struct pl_nic *nic)
{
	const int ifindex = find_interface(nic);
	struct ifreq req = { 0 };
	uint8_t mac[6];
	uint32_t room;
	int r;

	memcpy(req.ifr_name, nic->interface, sizeof(req.ifr_name));
	r = ask(nic, SIOCGIFHWADDR, &req);
	if (r == 0) {
		memcpy(mac, req.ifr_hwaddr.sa_data, sizeof(mac));
		r = ask(nic, SIOCGIFMTU, &req);
	}
	if (r < 0 || ifindex == 0)
		return r < 0 ? r : -ENODEV;
	nic->moved |= nic->changes > 0 && memcmp(nic->mac, mac, sizeof(mac)) != 0;
	memcpy(nic->mac, mac, sizeof(mac));
	nic->ifindex = ifindex;
	nic->changes++;
	room = req.ifr_mtu < 0 ? 0 : (uint32_t)req.ifr_mtu + 18;
	nic->mtu = path_mtu(nic->udp != NULL ? room : least(room, SEND_BYTES_MAX));
	nic->receive_mtu = path_mtu(
		strncmp(nic->name, "afxdp:", 6) == 0 ? least(room, AFXDP_BYTES_MAX) : room);
	return 0;
}

/* Takes UDP port 4791 of the interface and drops what comes, before a buffer is used. Where somebody has the port
 * already the host does not complain to senders either. */
static int open_quiet(struct pl_nic *nic)
{
	struct sock_filter none[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog program = { .len = 1, .filter = none };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(PL_ROCE_PORT) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(PL_ROCE_PORT) };
	int both = 0, r = 0;
	bool six = true;

	if (nic->quiet_fd >= 0)
		close(nic->quiet_fd);
	nic->quiet_fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (nic->quiet_fd < 0) {
		six = false;
		nic->quiet_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
	if (nic->quiet_fd < 0)
		return -errno;
	if (six)
		(void)setsockopt(nic->quiet_fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both));
	if (setsockopt(nic->quiet_fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) <
			0 ||
		setsockopt(nic->quiet_fd, SOL_SOCKET, SO_BINDTODEVICE, nic->interface,
			(socklen_t)strlen(nic->interface)) < 0)
		return -errno;
	if (bind(nic->quiet_fd, six ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4,
		    six ? sizeof(v6) : sizeof(v4)) < 0)
		r = errno == EADDRINUSE ? 0 : -errno;
	return r;
}

static int open_news(struct pl_nic *nic)
{
	struct sockaddr_nl sa = { .nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	struct epoll_event e = { .events = EPOLLIN };

	nic->news_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (nic->news_fd < 0 || bind(nic->news_fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
		epoll_ctl(nic->poll_fd, EPOLL_CTL_ADD, nic->news_fd, &e) < 0)
		return -errno;
	return 0;
}

/*
 * Something changed on this host: the interface is asked again. One that is away keeps what it had; it tells when it
 * comes. A socket is bound to the number of an interface, so the quiet one is made anew for a new number.
 */
static void look(struct pl_nic *nic)
{
	const int before = nic->ifindex;
	char message[8192];
	bool news = false;
	ssize_t n;

	do {
		n = recv(nic->news_fd, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
		news |= n > 0 || (n < 0 && errno == ENOBUFS);
	} while (n > 0 || (n < 0 && (errno == ENOBUFS || errno == EINTR)));
	if (news && ask_interface(nic) == 0 && nic->ifindex != before && nic->udp == NULL)
		(void)open_quiet(nic); /* without, the host speaks up; frames travel all the same */
}

/* ---- opening ---- */

static bool address_of(const struct ifaddrs *a, struct pl_addr *ret)
{
	const struct sockaddr_in *in = (const void *)a->ifa_addr;
	const struct sockaddr_in6 *in6 = (const void *)a->ifa_addr;

	if (a->ifa_addr == NULL ||
		(a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
		return false;
	*ret = a->ifa_addr->sa_family == AF_INET ? pl_addr_v4(&in->sin_addr)
						 : pl_addr_v6(&in6->sin6_addr);
	return true;
}

static bool has_key(const char *query, const char *key)
{
	const size_t n = strlen(key);

	for (; query != NULL && *query != '\0'; query = strchr(query, '&')) {
		query += *query == '&';
		if (strncmp(query, key, n) == 0 && query[n] == '=')
			return true;
	}
	return false;
}

/*
 * The URI for RoCE of both versions, unless it names ports; nic->interface and nic->name from it. A packet socket hands
 * over a block when it is full or after some milliseconds, for which a window of atomics would wait in both directions:
 * small ones are full sooner.
 */
static int complete(
	struct pl_nic *nic, const char *uri, char *dst, size_t cap, struct pl_diag *diag)
{
	const char *scheme = pl_port_uri_scheme(uri), *at, *query;
	size_t len;

	if (scheme == NULL && strncmp(uri, "afxdp:", 6) == 0)
		return pl_port_uri_sockets(uri, diag); /* says why there is none */
	if (scheme == NULL || (strcmp(scheme, "packet") != 0 && strcmp(scheme, "afxdp") != 0)) {
		pl_diag_set(diag,
			"'%s': an interface is wanted, packet:IFACE or afxdp:IFACE, or an address, udp://HOST",
			uri);
		return -EINVAL;
	}
	at = uri + strlen(scheme) + 1;
	len = strcspn(at, "?");
	query = at[len] == '?' ? at + len + 1 : "";
	if (len == 0 || len >= sizeof(nic->interface)) {
		pl_diag_set(diag, "'%s': no name of an interface", uri);
		return -EINVAL;
	}
	memcpy(nic->interface, at, len);
	snprintf(nic->name, sizeof(nic->name), "%s:%s", scheme, nic->interface);
	len = (size_t)snprintf(dst, cap, "%s:%s?%s%s%s", scheme, nic->interface,
		has_key(query, "port") ? "" : ROCE_KEYS,
		strcmp(scheme, "packet") != 0 || has_key(query, "block") ? "" : BLOCK_KEY, query);
	if (len < cap) {
		if (dst[len - 1] == '&' || dst[len - 1] == '?')
			dst[len - 1] = '\0';
		return 0;
	}
	pl_diag_set(diag, "the URI is too long");
	return -EINVAL;
}

static int open_ports(struct pl_nic *nic, const char *uri, const struct pl_nic_options *options,
	struct pl_diag *diag)
{
	const int n = pl_port_uri_sockets(uri, diag);
	struct pl_port_options port = { .of = (unsigned int)n,
		.rights = options != NULL ? options->rights : NULL };
	char send[IF_NAMESIZE + 16];
	int r = n < 0 ? n : 0;

	if (n > PL_NIC_PORTS_MAX) {
		pl_diag_set(diag,
			"%d queues are more than one wire reads (%d): name them with queues=", n,
			PL_NIC_PORTS_MAX);
		r = -EINVAL;
	}
	for (int i = 0; r == 0 && i < n; i++) {
		struct epoll_event e = { .events = EPOLLIN };

		port.index = (unsigned int)i;
		port.with = i > 0 ? nic->recv[0] : NULL;
		r = pl_port_open(&nic->recv[i], uri, PL_PORT_RECV, &port, diag);
		if (r < 0)
			break;
		nic->nrecv++;
		if (epoll_ctl(nic->poll_fd, EPOLL_CTL_ADD, pl_port_fd(nic->recv[i]), &e) < 0) {
			r = -errno;
			pl_diag_set(diag, "%s", strerror(-r));
		}
	}
	if (r < 0)
		return r;
	snprintf(send, sizeof(send), "packet:%s", nic->interface);
	port = (struct pl_port_options){ .rights = port.rights };
	return pl_port_open(&nic->send, send, PL_PORT_SEND, &port, diag);
}

/* Whose interface has the address: the loopback's, when it is none that an interface has by name (127.0.0.2). */
static void name_interface(struct pl_nic *nic, const struct pl_addr *address)
{
	struct ifaddrs *all = NULL;

	snprintf(nic->interface, sizeof(nic->interface), "lo");
	(void)getifaddrs(&all);
	for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next) {
		struct pl_addr theirs;

		if (address_of(a, &theirs) && pl_addr_equal(&theirs, address))
			snprintf(nic->interface, sizeof(nic->interface), "%s", a->ifa_name);
	}
	freeifaddrs(all);
}

/* First listens, then asks: what changes in between is told. */
static int begin_asking(struct pl_nic *nic, struct pl_diag *diag)
{
	int r = open_news(nic);

	if (r == 0)
		r = ask_interface(nic);
	if (r < 0)
		pl_diag_set(diag, "%s: %s", nic->interface, strerror(-r));
	return r;
}

static int open_udp(struct pl_nic *nic, const char *uri, struct pl_diag *diag)
{
	struct epoll_event e = { .events = EPOLLIN };
	char text[PL_ADDR_TEXT_MAX];
	int r = pl_udp_card_open(&nic->udp, uri, diag);

	if (r < 0)
		return r;
	pl_format_addr(text, pl_udp_card_address(nic->udp));
	snprintf(nic->name, sizeof(nic->name), "udp://%s", text);
	if (epoll_ctl(nic->poll_fd, EPOLL_CTL_ADD, pl_port_fd(pl_udp_card_port(nic->udp)), &e) <
		0) {
		r = -errno;
		pl_diag_set(diag, "%s", strerror(-r));
		return r;
	}
	name_interface(nic, pl_udp_card_address(nic->udp));
	return begin_asking(nic, diag);
}

static int open_interface(struct pl_nic *nic, const char *uri, const struct pl_nic_options *options,
	struct pl_diag *diag)
{
	char full[URI_MAX];
	int r = complete(nic, uri, full, sizeof(full), diag);

	if (r == 0)
		r = open_ports(nic, full, options, diag);
	if (r == 0)
		r = begin_asking(nic, diag);
	if (r < 0)
		return r;
	r = open_quiet(nic);
	if (r < 0)
		pl_diag_set(
			diag, "%s: UDP port %d: %s", nic->interface, PL_ROCE_PORT, strerror(-r));
	return r;
}

int pl_nic_open(struct pl_nic **ret, const char *uri, const struct pl_nic_options *options,
	struct pl_diag *diag)
{
	struct pl_nic *nic = calloc(1, sizeof(*nic));
	int r;

	if (nic == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	nic->quiet_fd = nic->news_fd = -1;
	nic->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	r = nic->poll_fd < 0 ? -errno : 0;
	if (r < 0)
		pl_diag_set(diag, "%s", strerror(-r));
	else if (strncmp(uri, "udp://", 6) == 0)
		r = open_udp(nic, uri, diag);
	else
		r = open_interface(nic, uri, options, diag);
	if (r < 0) {
		pl_nic_close(nic);
		return r;
	}
	*ret = nic;
	return 0;
}

void pl_nic_close(struct pl_nic *nic)
{
	if (nic == NULL)
		return;
	/* The first one's program and group are the others', so it goes last. */
	for (uint32_t i = nic->nrecv; i-- > 0;)
		pl_port_close(nic->recv[i]);
	pl_port_close(nic->send);
	pl_udp_card_close(nic->udp);
	if (nic->quiet_fd >= 0)
		close(nic->quiet_fd);
	if (nic->news_fd >= 0)
		close(nic->news_fd);
	if (nic->poll_fd >= 0)
		close(nic->poll_fd);
	free(nic);
}

int pl_nic_fd(const struct pl_nic *nic)
{
	return nic->poll_fd;
}

const char *pl_nic_name(const struct pl_nic *nic)
{
	return nic->name;
}

const uint8_t *pl_nic_mac(const struct pl_nic *nic)
{
	return nic->mac;
}

uint16_t pl_nic_mtu(const struct pl_nic *nic)
{
	return nic->mtu;
}

uint16_t pl_nic_receive_mtu(const struct pl_nic *nic)
{
	return nic->receive_mtu;
}

uint32_t pl_nic_changes(const struct pl_nic *nic)
{
	return nic->changes;
}

/* In which order they are told; -1: it is none, or of another interface. */
static int address_rank(const struct pl_nic *nic, const struct ifaddrs *a)
{
	const struct sockaddr_in6 *in6 = (const void *)a->ifa_addr;

	if (a->ifa_addr == NULL || strcmp(a->ifa_name, nic->interface) != 0)
		return -1;
	if (a->ifa_addr->sa_family == AF_INET)
		return 0;
	if (a->ifa_addr->sa_family != AF_INET6)
		return -1;
	return IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ? 2 : 1;
}

int pl_nic_addresses(
	const struct pl_nic *nic, struct pl_addr **ret, uint32_t *ret_n, struct pl_diag *diag)
{
	struct ifaddrs *all = NULL;
	uint32_t ranks[3] = { 0 }, n = 0;
	struct pl_addr *addrs;

	if (nic->udp == NULL)
		(void)getifaddrs(&all);
	for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next) {
		const int rank = address_rank(nic, a);

		if (rank >= 0)
			ranks[rank]++;
	}
	addrs = calloc(ranks[0] + ranks[1] + ranks[2] + 1, sizeof(*addrs));
	if (nic->udp != NULL && addrs != NULL) /* a socket has one */
		addrs[n++] = *pl_udp_card_address(nic->udp);
	for (int rank = 0; rank < 3 && addrs != NULL; rank++) {
		for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next) {
			if (address_rank(nic, a) == rank)
				n += address_of(a, &addrs[n]);
		}
	}
	freeifaddrs(all);
	if (addrs != NULL && n > ranks[2]) {
		*ret = addrs;
		*ret_n = n;
		return 0;
	}
	pl_diag_set(diag, addrs == NULL ? "%s: no memory" : "%s has no address", nic->interface);
	free(addrs);
	return addrs == NULL ? -ENOMEM : -EADDRNOTAVAIL;
}

/* ---- frames ---- */

static int take(struct pl_nic *nic, struct pl_batch *batch, int timeout_ms, struct pl_diag *diag)
{
	for (uint32_t i = 0; i < nic->nrecv; i++) {
		struct pl_port *port = nic->recv[nic->turn];
		int r;

		nic->turn = nic->turn + 1 < nic->nrecv ? nic->turn + 1 : 0;
		r = pl_port_recv(port, batch, timeout_ms, diag);
		if (r > 0)
			nic->lender = port;
		if (r != 0)
			return r;
	}
	return 0;
}

static int take_any(
	struct pl_nic *nic, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	struct epoll_event e;
	int r;

	if (nic->udp != NULL)
		return pl_udp_card_recv(nic->udp, ret_batch, timeout_ms, diag);
	if (nic->nrecv == 1)
		return take(nic, ret_batch, timeout_ms, diag);
	r = take(nic, ret_batch, 0, diag);
	if (r != 0 || timeout_ms == 0)
		return r;
	r = epoll_wait(nic->poll_fd, &e, 1, timeout_ms);
	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	return r == 0 ? 0 : take(nic, ret_batch, 0, diag);
}

int pl_nic_recv(
	struct pl_nic *nic, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	int r;

	/* Before what came is read: it may be for an address that is ours since a moment ago. */
	if ((nic->takes++ & LOOK_MASK) == 0)
		look(nic);
	r = take_any(nic, ret_batch, timeout_ms, diag);
	if (r <= 0)
		nic->takes = 0;
	return r;
}

void pl_nic_release(struct pl_nic *nic, struct pl_batch *batch)
{
	if (nic->lender != NULL)
		pl_port_release(nic->lender, batch);
	nic->lender = NULL;
}

/* Engines hold the way to a peer as it was told; the MAC address counts in no check of a packet. */
static void stamp(const struct pl_nic *nic, struct pl_frames *frames)
{
	for (uint32_t i = 0; i < frames->batch.n; i++) {
		const size_t at = (size_t)(frames->batch.pkts[i].data - frames->build.data);

		memcpy(frames->build.data + at + sizeof(nic->mac), nic->mac, sizeof(nic->mac));
	}
}

int pl_nic_send(struct pl_nic *nic, struct pl_frames *frames, struct pl_diag *diag)
{
	const uint32_t n = frames->batch.n;
	int r;

	if (n == 0)
		return 0;
	if (nic->moved)
		stamp(nic, frames);
	r = nic->udp != NULL ? pl_udp_card_send(nic->udp, &frames->batch, diag)
			     : pl_port_send(nic->send, &frames->batch, diag);
	if (r == -ENETDOWN)
		return r;
	pl_count(&nic->counters.sent, r > 0 ? (uint64_t)r : 0);
	pl_count(&nic->counters.unsent, r > 0 ? n - (uint64_t)r : n);
	pl_frames_clear(frames);
	return r < 0 ? r : (uint32_t)r < n ? -EIO : 0;
}

void pl_nic_drop(struct pl_nic *nic, struct pl_frames *frames)
{
	pl_count(&nic->counters.unsent, frames->batch.n);
	pl_frames_clear(frames);
}

/* ---- peers ---- */

static int find_mac(int ifindex, const struct pl_addr *host, uint8_t mac[6], struct pl_diag *diag)
{
	int r = pl_neighbour_find(ifindex, host, mac);

	/* One that failed is asked for again; the answer stays what it was until then. */
	if (r == -ENOENT || r == -EHOSTUNREACH) {
		int asked = pl_neighbour_ask(ifindex, host);

		if (r == -ENOENT)
			r = asked == 0 || asked == -EAGAIN ? -EAGAIN : asked;
	}
	if (r < 0)
		pl_diag_set(diag,
			r == -EAGAIN ? "the peer's MAC address is being asked for"
				     : "the peer's MAC address: %s",
			strerror(-r));
	return r;
}

/* The kernel finds the way; the source port is the socket's. */
static int udp_path(const struct pl_nic *nic, const struct pl_addr *peer, struct pl_roce_path *ret,
	struct pl_diag *diag)
{
	const struct pl_addr *own = pl_udp_card_address(nic->udp);

	if (pl_addr_is_v4(peer) != pl_addr_is_v4(own)) {
		pl_diag_set(diag, "%s has no address of the peer's kind", nic->name);
		return -ENETUNREACH;
	}
	*ret = (struct pl_roce_path){
		.src = *own, .dst = *peer, .ttl = HOP_LIMIT, .sport = PL_ROCE_PORT
	};
	return 0;
}

int pl_nic_path(struct pl_nic *nic, const struct pl_addr *peer, const uint8_t *mac,
	struct pl_roce_path *ret, struct pl_diag *diag)
{
	struct pl_route route;
	int ifindex, r;

	if (nic->udp != NULL)
		return udp_path(nic, peer, ret, diag);
	/* The interface may have been away. */
	look(nic);
	ifindex = find_interface(nic);
	if (ifindex == 0) {
		pl_diag_set(diag, "there is no interface '%s'", nic->interface);
		return -ENETUNREACH;
	}
	r = pl_route_find(ifindex, peer, &route, diag);
	if (r < 0)
		return r;
	*ret = (struct pl_roce_path){ .src = route.source,
		.dst = *peer,
		.ttl = HOP_LIMIT,
		.sport =
			(uint16_t)(SPORT_FIRST | (pl_hash(peer->b, sizeof(peer->b), 0) & 0x3fff)) };
	memcpy(ret->smac, nic->mac, sizeof(ret->smac));
	if (mac != NULL) {
		memcpy(ret->dmac, mac, sizeof(ret->dmac));
		return 0;
	}
	return find_mac(ifindex, &route.next_hop, ret->dmac, diag);
}

/* ---- accounts ---- */

const struct pl_nic_counters *pl_nic_counters(const struct pl_nic *nic)
{
	return &nic->counters;
}

void pl_nic_stats(struct pl_nic *nic, struct pl_port_stats *ret)
{
	struct pl_port_stats one;

	memset(ret, 0, sizeof(*ret));
	if (nic->udp != NULL)
		pl_port_stats(pl_udp_card_port(nic->udp), ret);
	for (uint32_t i = 0; i < nic->nrecv; i++) {
		pl_port_stats(nic->recv[i], &one);
		pl_port_stats_add(ret, &one);
	}
}
