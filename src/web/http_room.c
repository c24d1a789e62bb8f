/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections, their deadlines, and room for the next one. Everything on the thread of
 * connections. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "web/http_internal.h"

enum {
	/* Limit of bytes that the kernel holds for a client. Enough for 10 MB/s over 50 ms. */
	SEND_BUFFER_BYTES = 256 * 1024,
};

#define STALLED_NS    (UINT64_C(1) * 1000000000u) /* a reader that reads nothing for this time */
/* time that a head gets even when room is short */
#define HEAD_GRACE_NS (UINT64_C(250) * 1000000u)

struct pl_http_connection *pl_http_connection_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info != NULL ? info->socket_context : NULL;
}

void pl_http_set_phase(struct MHD_Connection *c, enum pl_http_phase phase, uint64_t limit_ns)
{
	struct pl_http_connection *k = pl_http_connection_of(c);

	if (k == NULL)
		return;
	k->phase = phase;
	k->moved_ns = pl_clock_mono_ns();
	k->deadline_ns = limit_ns == UINT64_MAX ? UINT64_MAX : k->moved_ns + limit_ns;
}

bool pl_http_is_stalled(const struct pl_http_connection *k, uint64_t now_ns)
{
	return k->phase == PL_HTTP_ANSWER && now_ns - k->moved_ns >= STALLED_NS;
}

bool pl_http_is_gone(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* ---- addresses ---- */

struct pl_addr pl_http_address_share(const struct pl_addr *a)
{
	struct pl_addr key = *a;

	/* One IPv6 host has a /64. */
	if (!pl_addr_is_v4(a))
		memset(key.b + 8, 0, 8);
	return key;
}

static struct pl_http_peer *peer_of(struct pl_http *h, const struct pl_addr *address)
{
	const struct pl_addr key = pl_http_address_share(address);
	struct pl_http_peer *p = h->peers;

	while (p != NULL && memcmp(&p->address, &key, sizeof(key)) != 0)
		p = p->next;
	if (p != NULL)
		return p;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return NULL;
	p->address = key;
	p->next = h->peers;
	p->link = &h->peers;
	if (p->next != NULL)
		p->next->link = &p->next;
	h->peers = p;
	return p;
}

static void leave_peer(struct pl_http_connection *k)
{
	struct pl_http_peer *p = k->peer;

	k->peer = NULL;
	if (p == NULL || --p->connections > 0)
		return;
	*p->link = p->next;
	if (p->next != NULL)
		p->next->link = p->link;
	free(p);
}

/* ---- room ---- */

/* Rank of a connection for being ended in favour of another one; 0 = never. */
static unsigned int dispensable(const struct pl_http_connection *k, uint64_t now)
{
	switch (k->phase) {
	case PL_HTTP_IDLE:
		return 3;
	case PL_HTTP_HEAD:
		return now - k->moved_ns >= HEAD_GRACE_NS ? 2 : 0;
	case PL_HTTP_ANSWER:
		return pl_http_is_stalled(k, now) ? 1 : 0;
	case PL_HTTP_WORK:
		return pl_http_is_gone(k->fd) ? 4 : 0;
	}
	return 0;
}

static unsigned int share_of(const struct pl_http_connection *k)
{
	return k->peer != NULL ? k->peer->connections : 1;
}

static bool is_better(
	const struct pl_http_connection *k, const struct pl_http_connection *than, uint64_t now)
{
	unsigned int a = dispensable(k, now), b = than != NULL ? dispensable(than, now) : 0;

	if (a != b || a == 0)
		return a > b;
	if (share_of(k) != share_of(than))
		return share_of(k) > share_of(than);
	return k->moved_ns < than->moved_ns;
}

void pl_http_end_connection(struct pl_http_connection *k)
{
	if (k->ended)
		return;
	k->ended = true;
	k->http->n_connections--;
	leave_peer(k);
	/* The library owns the descriptor and closes it, on this thread. */
	shutdown(k->fd, SHUT_RDWR);
}

static bool end_for_another(struct pl_http *h, struct pl_http_connection *k)
{
	if (k == NULL)
		return false;
	pl_count(&h->counters.ended, 1);
	pl_http_end_connection(k);
	return true;
}

/* Ends the least active connection, of a peer or (NULL) of all. Returns false when all are
 * active. */
static bool make_room(
	struct pl_http *h, const struct pl_http_peer *peer, const struct pl_http_connection *but)
{
	uint64_t now = pl_clock_mono_ns();
	struct pl_http_connection *best = NULL;

	for (struct pl_http_connection *k = h->connections; k != NULL; k = k->next) {
		if (k != but && !k->ended && (peer == NULL || k->peer == peer) &&
			is_better(k, best, now))
			best = k;
	}
	return end_for_another(h, best);
}

/* Ends the connection that has waited longest for its head, however short: connections come faster
 * than heads. */
static bool end_a_head(struct pl_http *h, const struct pl_http_connection *but)
{
	struct pl_http_connection *best = NULL;

	for (struct pl_http_connection *k = h->connections; k != NULL; k = k->next) {
		if (k != but && !k->ended && k->phase == PL_HTTP_HEAD &&
			(best == NULL || k->moved_ns < best->moved_ns))
			best = k;
	}
	return end_for_another(h, best);
}

/* Admits a connection, which is in the list already. */
static void admit(struct pl_http *h, struct pl_http_connection *k)
{
	bool taken = true;

	if (k->peer != NULL && k->peer->connections > h->max_per_address)
		taken = make_room(h, k->peer, k);
	k->extra = taken && h->n_connections > h->max_connections && !make_room(h, NULL, k);
	if (k->extra && h->n_connections > h->max_connections + PL_HTTP_EXTRA_CONNECTIONS)
		taken = end_a_head(h, k);
	if (!taken) {
		pl_count(&h->counters.refused, 1);
		pl_http_end_connection(k);
	}
}

bool pl_http_has_place(struct pl_http_connection *k)
{
	struct pl_http *h = k->http;

	k->extra = k->extra && h->n_connections > h->max_connections && !make_room(h, NULL, k);
	return !k->extra;
}

/* ---- connections ---- */

static void begin(struct pl_http_listener *l, struct MHD_Connection *c, void **context)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct pl_http *h = l->http;
	struct pl_http_connection *k = calloc(1, sizeof(*k));
	struct pl_addr address = pl_http_client_address(c);
	const int buffer = SEND_BUFFER_BYTES;

	pl_count(&h->counters.connections, 1);
	*context = k;
	/* Without a record only the library's inactivity time-out applies. */
	if (k == NULL || info == NULL)
		return;
	k->http = h;
	k->fd = info->connect_fd;
	k->phase = PL_HTTP_HEAD;
	k->moved_ns = pl_clock_mono_ns();
	k->deadline_ns = k->moved_ns + PL_HTTP_HEAD_LIMIT_NS;
	k->next = h->connections;
	k->link = &h->connections;
	if (k->next != NULL)
		k->next->link = &k->next;
	h->connections = k;
	h->n_connections++;
	(void)setsockopt(k->fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	k->peer = l->local ? NULL : peer_of(h, &address);
	if (k->peer != NULL)
		k->peer->connections++;
	admit(h, k);
}

static void end(struct pl_http_connection *k)
{
	if (k->link != NULL) {
		*k->link = k->next;
		if (k->next != NULL)
			k->next->link = k->link;
		if (!k->ended)
			k->http->n_connections--;
		leave_peer(k);
	}
	free(k);
}

void pl_http_on_connection(void *arg, struct MHD_Connection *c, void **context,
	enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		begin(arg, c, context);
	} else if (*context != NULL) {
		end(*context);
		*context = NULL;
	}
}

/* The library's own time-out counts from the last byte, so a byte a second would keep a connection
 * without end. */
void pl_http_expire(struct pl_http *h)
{
	uint64_t now = pl_clock_mono_ns();

	for (struct pl_http_connection *k = h->connections; k != NULL; k = k->next) {
		if (k->ended || now < k->deadline_ns)
			continue;
		pl_count(&h->counters.expired, 1);
		pl_http_end_connection(k);
	}
}
