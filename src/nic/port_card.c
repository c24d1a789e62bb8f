/* SPDX-License-Identifier: BSD-2-Clause */
/* A NIC on an interface: ports of netio/ receive from its queues, one sends, and the kernel tells the way to peers. */
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "nic/neighbour.h"
#include "nic/nic_card.h"

#define SPORT_FIRST     0xc000 /* where a peer's UDP source port is taken from, as NICs do */
#define URI_MAX         4096
#define ROCE_KEYS       "port=4791&also=roce1&"
#define BLOCK_KEY       "block=16KiB&"
/* The longest frame that is sent, which peers without jumbo frames take, and what a frame of AF_XDP holds (netio/afxdp.c). */
#define SEND_BYTES_MAX  1984
#define AFXDP_BYTES_MAX 3832

struct nic_card {
	struct nic_interface *interface;
	struct pl_port *recv[PL_NIC_PORTS_MAX], *send;
	uint32_t nrecv, turn; /* turn: the port to be asked first */
	struct pl_port *lender;
	int poll_fd,
		quiet_fd; /* quiet_fd has UDP port 4791, so that the host does not answer for it */
	char name[IF_NAMESIZE + 8];
};

/* ---- opening ---- */

/* Takes UDP port 4791 of the interface and drops what comes, before a buffer is used. Where somebody has the port
 * already the host does not complain to senders either. */
static int open_quiet(struct nic_card *card)
{
	struct sock_filter none[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog program = { .len = 1, .filter = none };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(PL_ROCE_PORT) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(PL_ROCE_PORT) };
	int both = 0, r = 0;
	bool six = true;

	if (card->quiet_fd >= 0)
		close(card->quiet_fd);
	card->quiet_fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (card->quiet_fd < 0) {
		six = false;
		card->quiet_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
	if (card->quiet_fd < 0)
		return -errno;
	if (six)
		(void)setsockopt(card->quiet_fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both));
	if (setsockopt(card->quiet_fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) <
			0 ||
		setsockopt(card->quiet_fd, SOL_SOCKET, SO_BINDTODEVICE, card->interface->name,
			(socklen_t)strlen(card->interface->name)) < 0)
		return -errno;
	if (bind(card->quiet_fd, six ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4,
		    six ? sizeof(v6) : sizeof(v4)) < 0)
		r = errno == EADDRINUSE ? 0 : -errno;
	return r;
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
 * The URI for RoCE of both versions, unless it names ports; `interface` (IF_NAMESIZE) and card->name from it. A packet socket
 * hands over a block when it is full or after some milliseconds, for which a window of atomics would wait in both directions:
 * small ones are full sooner.
 */
static int complete(struct nic_card *card, const char *uri, char *interface, char *dst, size_t cap,
	struct pl_diag *diag)
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
	if (len == 0 || len >= IF_NAMESIZE) {
		pl_diag_set(diag, "'%s': no name of an interface", uri);
		return -EINVAL;
	}
	snprintf(interface, IF_NAMESIZE, "%.*s", (int)len, at);
	snprintf(card->name, sizeof(card->name), "%s:%s", scheme, interface);
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

static int open_ports(struct nic_card *card, const char *uri, const char *interface,
	const struct pl_nic_options *options, struct pl_diag *diag)
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
		port.with = i > 0 ? card->recv[0] : NULL;
		r = pl_port_open(&card->recv[i], uri, PL_PORT_RECV, &port, diag);
		if (r < 0)
			break;
		card->nrecv++;
		if (epoll_ctl(card->poll_fd, EPOLL_CTL_ADD, pl_port_fd(card->recv[i]), &e) < 0) {
			r = -errno;
			pl_diag_set(diag, "%s", strerror(-r));
		}
	}
	if (r < 0)
		return r;
	snprintf(send, sizeof(send), "packet:%s", interface);
	port = (struct pl_port_options){ .rights = port.rights };
	return pl_port_open(&card->send, send, PL_PORT_SEND, &port, diag);
}

static void port_card_close(struct nic_card *card)
{
	if (card == NULL)
		return;
	/* The first one's program and group are the others', so it goes last. */
	for (uint32_t i = card->nrecv; i-- > 0;)
		pl_port_close(card->recv[i]);
	pl_port_close(card->send);
	if (card->quiet_fd >= 0)
		close(card->quiet_fd);
	free(card);
}

static int open_all(struct nic_card *card, const char *uri, const struct pl_nic_options *options,
	struct pl_diag *diag)
{
	char full[URI_MAX], interface[IF_NAMESIZE];
	int r = complete(card, uri, interface, full, sizeof(full), diag);

	if (r == 0)
		r = open_ports(card, full, interface, options, diag);
	if (r == 0)
		r = nic_interface_open(card->interface, interface, diag);
	if (r < 0)
		return r;
	r = open_quiet(card);
	if (r < 0)
		pl_diag_set(diag, "%s: UDP port %d: %s", interface, PL_ROCE_PORT, strerror(-r));
	return r;
}

static int port_card_open(struct nic_card **ret, const char *uri,
	const struct pl_nic_options *options, struct nic_interface *interface, int poll_fd,
	struct pl_diag *diag)
{
	struct nic_card *card = calloc(1, sizeof(*card));
	int r;

	if (card == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	card->interface = interface;
	card->poll_fd = poll_fd;
	card->quiet_fd = -1;
	r = open_all(card, uri, options, diag);
	if (r < 0) {
		port_card_close(card);
		return r;
	}
	*ret = card;
	return 0;
}

static const char *port_card_name(const struct nic_card *card)
{
	return card->name;
}

static struct nic_card_room port_card_room(const struct nic_card *card)
{
	return (struct nic_card_room){ .send = SEND_BYTES_MAX,
		.receive = strncmp(card->name, "afxdp:", 6) == 0 ? AFXDP_BYTES_MAX : UINT32_MAX };
}

/* A socket is bound to the number of an interface. */
static void port_card_renumbered(struct nic_card *card)
{
	(void)open_quiet(card); /* without, the host speaks up; frames travel all the same */
}

/* ---- frames ---- */

static int take(struct nic_card *card, struct pl_batch *batch, int timeout_ms, struct pl_diag *diag)
{
	for (uint32_t i = 0; i < card->nrecv; i++) {
		struct pl_port *port = card->recv[card->turn];
		int r;

		card->turn = card->turn + 1 < card->nrecv ? card->turn + 1 : 0;
		r = pl_port_recv(port, batch, timeout_ms, diag);
		if (r > 0)
			card->lender = port;
		if (r != 0)
			return r;
	}
	return 0;
}

static int port_card_recv(
	struct nic_card *card, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	struct epoll_event e;
	int r;

	if (card->nrecv == 1)
		return take(card, ret_batch, timeout_ms, diag);
	r = take(card, ret_batch, 0, diag);
	if (r != 0 || timeout_ms == 0)
		return r;
	r = epoll_wait(card->poll_fd, &e, 1, timeout_ms);
	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	return r == 0 ? 0 : take(card, ret_batch, 0, diag);
}

static void port_card_release(struct nic_card *card, struct pl_batch *batch)
{
	if (card->lender != NULL)
		pl_port_release(card->lender, batch);
	card->lender = NULL;
}

static int port_card_send(struct nic_card *card, struct pl_batch *frames, struct pl_diag *diag)
{
	return pl_port_send(card->send, frames, diag);
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

static int port_card_path(struct nic_card *card, const struct pl_addr *peer, const uint8_t *mac,
	struct pl_roce_path *ret, struct pl_diag *diag)
{
	const int ifindex = nic_interface_find(card->interface);
	struct pl_route route;
	int r;

	if (ifindex == 0) {
		pl_diag_set(diag, "there is no interface '%s'", card->interface->name);
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
	memcpy(ret->smac, card->interface->mac, sizeof(ret->smac));
	if (mac != NULL) {
		memcpy(ret->dmac, mac, sizeof(ret->dmac));
		return 0;
	}
	return find_mac(ifindex, &route.next_hop, ret->dmac, diag);
}

static void port_card_stats(struct nic_card *card, struct pl_port_stats *ret)
{
	struct pl_port_stats one;

	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i < card->nrecv; i++) {
		pl_port_stats(card->recv[i], &one);
		pl_port_stats_add(ret, &one);
	}
}

const struct nic_card_ops nic_port_card = {
	.open = port_card_open,
	.close = port_card_close,
	.name = port_card_name,
	.room = port_card_room,
	.renumbered = port_card_renumbered,
	.recv = port_card_recv,
	.release = port_card_release,
	.send = port_card_send,
	.path = port_card_path,
	.stats = port_card_stats,
};
