/* SPDX-License-Identifier: BSD-2-Clause */
/* A NIC on an interface: ports of netio/ receive from its queues, one of them or a packet socket
 * sends, and the kernel tells the way to peers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/hash.h"
#include "netio/udp_quiet.h"
#include "nic/neighbour.h"
#include "nic/nic_wire.h"

#define SPORT_FIRST     0xc000 /* first of the UDP source ports for peers, as NICs choose them */
#define URI_MAX         4096
#define ROCE_KEYS       "port=4791&also=roce1&"
#define BLOCK_KEY       "block=16KiB&"
/* The longest frame that is sent, which peers without jumbo frames take, and what a frame of AF_XDP
 * holds (netio/afxdp.c). */
#define SEND_BYTES_MAX  1984
#define AFXDP_BYTES_MAX 3832

struct nic_wire {
	struct nic_interface *interface;
	struct pl_port *recv[PL_NIC_PORTS_MAX];
	struct pl_port *send; /* one of them that sends too, or `packet` */
	struct pl_port *packet;
	/* reason why `send` is `packet`, although it need not be; the first port's */
	const char *note;
	uint32_t nrecv, turn; /* turn: the port to read first */
	struct pl_port *lender;
	int poll_fd,
		quiet_fd; /* quiet_fd has UDP port 4791, so that the host sends no ICMP for it */
	char name[IF_NAMESIZE + 8];
};

/* ---- opening ---- */

/* Takes UDP port 4791 of the interface. */
static int open_quiet(struct nic_wire *wire)
{
	if (wire->quiet_fd >= 0)
		close(wire->quiet_fd);
	wire->quiet_fd = pl_udp_quiet_open(wire->interface->name, PL_ROCE_PORT);
	return wire->quiet_fd == -EADDRINUSE || wire->quiet_fd >= 0 ? 0 : wire->quiet_fd;
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
 * The URI for RoCE of both versions, unless it names ports; `interface` (IF_NAMESIZE) and
 * wire->name from it. A packet socket hands over a block when it is full or after some
 * milliseconds, for which a window of atomics would wait in both directions: small ones are full
 * sooner.
 */
static int complete(struct nic_wire *wire, const char *uri, char *interface, char *dst, size_t cap,
	struct pl_diag *diag)
{
	const char *scheme = pl_port_uri_scheme(uri), *at, *query;
	size_t len;

	if (scheme == NULL && strncmp(uri, "afxdp:", 6) == 0)
		return pl_port_uri_sockets(uri, diag); /* tells why there is none */
	if (scheme == NULL || (pl_port_uri_can(uri) & PL_PORT_CAN_INTERFACE) == 0) {
		pl_diag_set(diag, "'%s': not packet:IFACE, afxdp:IFACE or udp://ADDRESS", uri);
		return -EINVAL;
	}
	at = uri + strlen(scheme) + 1;
	len = strcspn(at, "?");
	query = at[len] == '?' ? at + len + 1 : "";
	if (len == 0 || len >= IF_NAMESIZE) {
		pl_diag_set(diag, "'%s': not the name of an interface", uri);
		return -EINVAL;
	}
	snprintf(interface, IF_NAMESIZE, "%.*s", (int)len, at);
	snprintf(wire->name, sizeof(wire->name), "%s:%s", scheme, interface);
	len = (size_t)snprintf(dst, cap, "%s:%s?%s%s%s", scheme, interface,
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

static int open_recv(
	struct nic_wire *wire, const char *uri, struct pl_port_options *port, struct pl_diag *diag)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct pl_port **recv = &wire->recv[wire->nrecv];
	const char *why = NULL;
	int r;

	port->index = wire->nrecv;
	port->with = wire->nrecv > 0 ? wire->recv[0] : NULL;
	port->sends = wire->send == NULL && (pl_port_uri_can(uri) & PL_PORT_CAN_BOTH) != 0;
	r = pl_port_open(recv, uri, PL_PORT_RECV, port, diag);
	if (r < 0)
		return r;
	wire->nrecv++;
	if (port->sends && pl_port_sends(*recv, &why))
		wire->send = *recv;
	if (wire->nrecv == 1)
		wire->note = why;
	if (epoll_ctl(wire->poll_fd, EPOLL_CTL_ADD, pl_port_fd(*recv), &e) == 0)
		return 0;
	r = -errno;
	pl_diag_set(diag, "%s", strerror(-r));
	return r;
}

static int open_ports(struct nic_wire *wire, const char *uri, const char *interface,
	const struct pl_nic_options *options, struct pl_diag *diag)
{
	const int n = pl_port_uri_sockets(uri, diag);
	struct pl_port_options port = { .of = (unsigned int)n,
		.rights = options != NULL ? options->rights : NULL };
	char send[IF_NAMESIZE + 16];
	int r = n < 0 ? n : 0;

	if (n > PL_NIC_PORTS_MAX) {
		pl_diag_set(diag,
			"%d queues, but at most %d can be read: select them with queues=", n,
			PL_NIC_PORTS_MAX);
		r = -EINVAL;
	}
	for (int i = 0; r == 0 && i < n; i++)
		r = open_recv(wire, uri, &port, diag);
	if (r < 0)
		return r;
	if (wire->send != NULL) {
		wire->note = NULL;
		return 0;
	}
	snprintf(send, sizeof(send), "packet:%s", interface);
	port = (struct pl_port_options){ .rights = port.rights };
	r = pl_port_open(&wire->packet, send, PL_PORT_SEND, &port, diag);
	wire->send = wire->packet;
	return r;
}

static void port_wire_close(struct nic_wire *wire)
{
	if (wire == NULL)
		return;
	/* The first socket's program and group are shared, so it is closed last. */
	for (uint32_t i = wire->nrecv; i-- > 0;)
		pl_port_close(wire->recv[i]);
	pl_port_close(wire->packet);
	if (wire->quiet_fd >= 0)
		close(wire->quiet_fd);
	free(wire);
}

static int open_all(struct nic_wire *wire, const char *uri, const struct pl_nic_options *options,
	struct pl_diag *diag)
{
	char full[URI_MAX], interface[IF_NAMESIZE];
	int r = complete(wire, uri, interface, full, sizeof(full), diag);

	if (r == 0)
		r = open_ports(wire, full, interface, options, diag);
	if (r == 0)
		r = nic_interface_open(wire->interface, interface, diag);
	if (r < 0)
		return r;
	r = open_quiet(wire);
	if (r < 0)
		pl_diag_set(diag, "%s: UDP port %d: %s", interface, PL_ROCE_PORT, strerror(-r));
	return r;
}

static int port_wire_open(struct nic_wire **ret, const char *uri,
	const struct pl_nic_options *options, struct nic_interface *interface, int poll_fd,
	struct pl_diag *diag)
{
	struct nic_wire *wire = calloc(1, sizeof(*wire));
	int r;

	if (wire == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	wire->interface = interface;
	wire->poll_fd = poll_fd;
	wire->quiet_fd = -1;
	r = open_all(wire, uri, options, diag);
	if (r < 0) {
		port_wire_close(wire);
		return r;
	}
	*ret = wire;
	return 0;
}

static const char *port_wire_name(const struct nic_wire *wire)
{
	return wire->name;
}

static const char *port_wire_note(const struct nic_wire *wire)
{
	return wire->note;
}

static struct nic_wire_room port_wire_room(const struct nic_wire *wire)
{
	return (struct nic_wire_room){ .send = SEND_BYTES_MAX,
		.receive = (pl_port_uri_can(wire->name) & PL_PORT_CAN_BOTH) != 0 ? AFXDP_BYTES_MAX
										 : UINT32_MAX };
}

/* A socket is bound to the number of an interface. */
static void port_wire_renumbered(struct nic_wire *wire)
{
	/* without it the host answers by ICMP; frames are carried all the same */
	(void)open_quiet(wire);
}

/* ---- frames ---- */

static int take(struct nic_wire *wire, struct pl_batch *batch, int timeout_ms, struct pl_diag *diag)
{
	for (uint32_t i = 0; i < wire->nrecv; i++) {
		struct pl_port *port = wire->recv[wire->turn];
		int r;

		wire->turn = wire->turn + 1 < wire->nrecv ? wire->turn + 1 : 0;
		r = pl_port_recv(port, batch, timeout_ms, diag);
		if (r > 0)
			wire->lender = port;
		if (r != 0)
			return r;
	}
	return 0;
}

static int port_wire_recv(
	struct nic_wire *wire, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	struct epoll_event e;
	int r;

	if (wire->nrecv == 1)
		return take(wire, ret_batch, timeout_ms, diag);
	r = take(wire, ret_batch, 0, diag);
	if (r != 0 || timeout_ms == 0)
		return r;
	r = epoll_wait(wire->poll_fd, &e, 1, timeout_ms);
	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	return r == 0 ? 0 : take(wire, ret_batch, 0, diag);
}

static void port_wire_release(struct nic_wire *wire, struct pl_batch *batch)
{
	if (wire->lender != NULL)
		pl_port_release(wire->lender, batch);
	wire->lender = NULL;
}

static int port_wire_send(struct nic_wire *wire, struct pl_batch *frames, struct pl_diag *diag)
{
	return pl_port_send(wire->send, frames, diag);
}

/* ---- peers ---- */

static int find_mac(int ifindex, const struct pl_addr *host, uint8_t mac[6], struct pl_diag *diag)
{
	int r = pl_neighbour_find(ifindex, host, mac);

	/* A failed neighbour is resolved again; the answer stays the same until then. */
	if (r == -ENOENT || r == -EHOSTUNREACH) {
		int asked = pl_neighbour_ask(ifindex, host);

		if (r == -ENOENT)
			r = asked == 0 || asked == -EAGAIN ? -EAGAIN : asked;
	}
	if (r < 0)
		pl_diag_set(diag,
			r == -EAGAIN ? "the MAC address of the peer is being resolved"
				     : "the peer's MAC address: %s",
			strerror(-r));
	return r;
}

static int port_wire_path(struct nic_wire *wire, const struct pl_addr *peer, const uint8_t *mac,
	struct pl_roce_path *ret, struct pl_diag *diag)
{
	const int ifindex = nic_interface_find(wire->interface);
	struct pl_route route;
	int r;

	if (ifindex == 0) {
		pl_diag_set(diag, "there is no interface '%s'", wire->interface->name);
		return -ENETUNREACH;
	}
	r = pl_route_find(ifindex, peer, &route, diag);
	if (r < 0)
		return r;
	*ret = (struct pl_roce_path){ .src = route.source,
		.dst = *peer,
		.ttl = NIC_HOP_LIMIT,
		.sport =
			(uint16_t)(SPORT_FIRST | (pl_hash(peer->b, sizeof(peer->b), 0) & 0x3fff)) };
	memcpy(ret->smac, wire->interface->mac, sizeof(ret->smac));
	if (mac != NULL) {
		memcpy(ret->dmac, mac, sizeof(ret->dmac));
		return 0;
	}
	return find_mac(ifindex, &route.next_hop, ret->dmac, diag);
}

static void port_wire_stats(struct nic_wire *wire, struct pl_port_stats *ret)
{
	struct pl_port_stats one;

	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i < wire->nrecv; i++) {
		pl_port_stats(wire->recv[i], &one);
		pl_port_stats_add(ret, &one);
	}
}

const struct nic_wire_ops nic_port_wire = {
	.open = port_wire_open,
	.close = port_wire_close,
	.name = port_wire_name,
	.note = port_wire_note,
	.room = port_wire_room,
	.renumbered = port_wire_renumbered,
	.recv = port_wire_recv,
	.release = port_wire_release,
	.send = port_wire_send,
	.path = port_wire_path,
	.stats = port_wire_stats,
};
