/* SPDX-License-Identifier: BSD-2-Clause */
/* Exchanges parameters over TCP, as the side that has the stores. */
#include "remote/exchange_server.h"
#include "base/stats.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEERS_DEFAULT   64
#define PEERS_MAX       65536
#define TIMEOUT_DEFAULT 10000000000u
#define WATCH_SECONDS   30
#define EVENTS          64
#define ACCEPTS         64 /* connections accepted in one step */
#define IN_BYTES        512
#define OUT_BYTES       (4 * PL_EXCHANGE_STORE_BYTES)

struct peer {
	int fd; /* -1: free */
	struct pl_addr addr;
	uint64_t until_ns; /* deadline for the next progress; UINT64_MAX: none */
	uint32_t in_bytes, out_bytes;
	uint32_t asks, nids;
	uint32_t events; /* epoll events of its descriptor */
	bool finished;   /* it sends no more: the connection ends once it has its answers */
	/* it sent something else than a message; the connection ends, and is counted already */
	bool spoiled;
	uint64_t ids[PL_EXCHANGE_ASKS_MAX];
	uint8_t in[IN_BYTES], out[OUT_BYTES];
};

struct pl_exchange_server {
	struct pl_exchange_server_options options;
	int poll_fd, listen_fd;
	char address[PL_TCP_TEXT_MAX];
	uint32_t npeers;             /* length of `peers` */
	struct peer *peers, *asking; /* asking: the peer during `ask` */
	struct pl_exchange_server_counters counters;
};

static int watch(struct pl_exchange_server *s, int op, int fd, uint32_t events, uint32_t index)
{
	struct epoll_event e = { .events = events, .data.u32 = index };

	return epoll_ctl(s->poll_fd, op, fd, &e) < 0 ? -errno : 0;
}

int pl_exchange_server_open(struct pl_exchange_server **ret,
	const struct pl_exchange_server_options *options, struct pl_diag *diag)
{
	struct pl_exchange_server *s = calloc(1, sizeof(*s));
	const uint32_t n = options->max_peers == 0 ? PEERS_DEFAULT : options->max_peers;
	int r = -ENOMEM;

	if (s == NULL)
		goto fail;
	s->options = *options;
	if (s->options.timeout_ns == 0)
		s->options.timeout_ns = TIMEOUT_DEFAULT;
	s->poll_fd = s->listen_fd = -1;
	if (n > PEERS_MAX) {
		r = -EINVAL;
		goto fail;
	}
	s->peers = calloc(n, sizeof(*s->peers));
	if (s->peers == NULL)
		goto fail;
	s->npeers = n;
	for (uint32_t i = 0; i < n; i++)
		s->peers[i].fd = -1;
	s->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->poll_fd < 0) {
		r = -errno;
		goto fail;
	}
	s->listen_fd = pl_tcp_listen(options->listen, ACCEPTS, NULL, s->address, diag);
	if (s->listen_fd < 0) {
		r = s->listen_fd;
		pl_exchange_server_close(s);
		return r;
	}
	r = watch(s, EPOLL_CTL_ADD, s->listen_fd, EPOLLIN, n);
	if (r < 0)
		goto fail;
	*ret = s;
	return 0;
fail:
	pl_diag_set(diag, "the control server: %s", strerror(-r));
	pl_exchange_server_close(s);
	return r;
}

static void end_ids(struct pl_exchange_server *s, struct peer *p)
{
	const uint32_t n = p->nids;

	p->nids = 0;
	for (uint32_t i = 0; i < n; i++)
		s->options.ended(s->options.arg, p->ids[i]);
}

static void end(struct pl_exchange_server *s, struct peer *p)
{
	if (p->fd < 0)
		return;
	close(p->fd);
	p->fd = -1;
	end_ids(s, p);
}

/* Ends a peer and counts the reason, unless one was counted before. */
static void end_for(struct pl_exchange_server *s, struct peer *p, struct pl_counter *reason)
{
	if (!p->spoiled)
		pl_count(reason, 1);
	end(s, p);
}

void pl_exchange_server_close(struct pl_exchange_server *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0; s->peers != NULL && i < s->npeers; i++)
		end(s, &s->peers[i]);
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	if (s->poll_fd >= 0)
		close(s->poll_fd);
	free(s->peers);
	free(s);
}

int pl_exchange_server_fd(const struct pl_exchange_server *s)
{
	return s->poll_fd;
}

const char *pl_exchange_server_address(const struct pl_exchange_server *s)
{
	return s->address;
}

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_exchange_server_counters, __VA_ARGS__)
#include "remote/exchange_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_exchange_server_stats_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

const struct pl_exchange_server_counters *pl_exchange_server_counters(
	const struct pl_exchange_server *s)
{
	return &s->counters;
}

void pl_exchange_server_drop(struct pl_exchange_server *s, uint64_t id)
{
	for (uint32_t i = 0; i < s->npeers; i++) {
		struct peer *p = &s->peers[i];

		for (uint32_t j = 0; p->fd >= 0 && j < p->nids; j++) {
			if (p->ids[j] != id)
				continue;
			p->ids[j] = p->ids[--p->nids];
			end(s, p);
		}
	}
}

bool pl_exchange_server_asks(const struct pl_exchange_server *s, uint64_t id)
{
	for (uint32_t j = 0; s->asking != NULL && j < s->asking->nids; j++) {
		if (s->asking->ids[j] == id)
			return true;
	}
	return false;
}

/* ---- one connection ---- */

static void set_deadline(struct pl_exchange_server *s, struct peer *p, uint64_t now_ns)
{
	p->until_ns = p->in_bytes == 0 && p->out_bytes == 0 && p->asks > 0
			      ? UINT64_MAX
			      : now_ns + s->options.timeout_ns;
}

static bool take_in(struct pl_exchange_server *s, struct peer *p, uint64_t now_ns)
{
	while (!p->finished && p->in_bytes < sizeof(p->in)) {
		ssize_t n = recv(p->fd, p->in + p->in_bytes, sizeof(p->in) - p->in_bytes, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0) {
			end_for(s, p, &s->counters.ended);
			return false;
		}
		if (n == 0) {
			p->finished = true;
			return true;
		}
		/* The time runs from a message's first byte: single bytes do not prolong it. */
		if (p->in_bytes == 0)
			p->until_ns = now_ns + s->options.timeout_ns;
		p->in_bytes += (uint32_t)n;
	}
	return true;
}

/* Adds the answer to one message, behind those that wait. */
static void answer(struct pl_exchange_server *s, struct peer *p, const struct pl_exchange *theirs)
{
	struct pl_build b = pl_build(p->out + p->out_bytes, sizeof(p->out) - p->out_bytes);
	struct pl_exchange ours = { .service = theirs->service };
	uint64_t id = 0;
	int r = PL_EXCHANGE_NO_ROOM;

	p->asks++;
	s->asking = p;
	if (p->nids < PL_EXCHANGE_ASKS_MAX)
		r = s->options.ask(s->options.arg, &p->addr, theirs, &ours, &id);
	s->asking = NULL;
	if (r == 0) {
		p->ids[p->nids++] = id;
		pl_count(&s->counters.agreed, 1);
	} else {
		ours = (struct pl_exchange){
			.service = theirs->service, .mtu = theirs->mtu, .refusal = (uint8_t)r
		};
		memcpy(ours.name, theirs->name, sizeof(ours.name));
		pl_count(&s->counters.refused, 1);
	}
	pl_exchange_put(&b, &ours);
	p->out_bytes += (uint32_t)b.len;
}

/* Answers the whole messages, as far as there is room. Returns false when something else than a
 * message follows. */
static bool answer_all(struct pl_exchange_server *s, struct peer *p)
{
	struct pl_exchange theirs;
	size_t used;

	while (sizeof(p->out) - p->out_bytes >= PL_EXCHANGE_STORE_BYTES) {
		int r = pl_exchange_get(&theirs, pl_cursor(p->in, p->in_bytes), &used);

		if (r == 0 && p->in_bytes < sizeof(p->in))
			return true;
		/* Not a message, too long a message, or more messages than any peer needs. */
		if (r <= 0 || p->asks == 4 * PL_EXCHANGE_ASKS_MAX)
			return false;
		assert(used <= p->in_bytes && p->in_bytes <= sizeof(p->in));
		memmove(p->in, p->in + used, p->in_bytes - used);
		p->in_bytes -= (uint32_t)used;
		answer(s, p, &theirs);
	}
	return true;
}

static bool put_out(struct pl_exchange_server *s, struct peer *p)
{
	while (p->out_bytes > 0) {
		ssize_t n = send(p->fd, p->out, p->out_bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			end_for(s, p, &s->counters.ended);
			return false;
		}
		memmove(p->out, p->out + n, p->out_bytes - (size_t)n);
		p->out_bytes -= (uint32_t)n;
	}
	return true;
}

static void watch_peer(struct pl_exchange_server *s, struct peer *p)
{
	const uint32_t events = (!p->finished && p->in_bytes < sizeof(p->in) ? EPOLLIN : 0u) |
				(p->out_bytes > 0 ? EPOLLOUT : 0u);

	if (events != p->events &&
		watch(s, EPOLL_CTL_MOD, p->fd, events, (uint32_t)(p - s->peers)) == 0)
		p->events = events;
}

/* Lets the peer have the waiting answers, then the end. Its bytes are read and dropped until it
 * ends, too: closing with unread bytes would reset the connection, and the answers under way would
 * be lost. */
static void see_off(struct pl_exchange_server *s, struct peer *p)
{
	if (!p->finished) {
		ssize_t n = recv(p->fd, p->in, sizeof(p->in), 0);

		if (n < 0 && errno != EINTR && errno != EAGAIN) {
			end(s, p);
			return;
		}
		p->finished = n == 0;
	}
	if (!put_out(s, p))
		return;
	if (p->out_bytes == 0) {
		if (p->finished) {
			end(s, p);
			return;
		}
		(void)shutdown(p->fd, SHUT_WR);
		end_ids(s, p);
	}
	watch_peer(s, p);
}

static void serve(struct pl_exchange_server *s, struct peer *p, uint64_t now_ns)
{
	const uint32_t asks = p->asks;
	uint32_t before;

	if (p->spoiled) {
		see_off(s, p);
		return;
	}
	/* A peer that does not read its answers gets no more: its messages are not read either. */
	if (!put_out(s, p) || !take_in(s, p, now_ns))
		return;
	/* More messages came than there is room for answers; no event would announce the waiting
	 * ones. */
	do {
		before = p->asks;
		if (!answer_all(s, p)) {
			pl_count(&s->counters.garbage, 1);
			p->spoiled = true;
			p->in_bytes = 0;
			p->until_ns = now_ns + s->options.timeout_ns;
			see_off(s, p);
			return;
		}
		if (!put_out(s, p))
			return;
	} while (p->asks != before && p->in_bytes > 0);
	if (p->finished && p->out_bytes == 0) {
		end_for(s, p, &s->counters.ended);
		return;
	}
	if (p->asks != asks || (p->in_bytes == 0 && p->out_bytes == 0))
		set_deadline(s, p, now_ns);
	watch_peer(s, p);
}

/* ---- all of them ---- */

static struct peer *free_slot(struct pl_exchange_server *s)
{
	for (uint32_t i = 0; i < s->npeers; i++) {
		if (s->peers[i].fd < 0)
			return &s->peers[i];
	}
	return NULL;
}

static bool crowded(const struct pl_exchange_server *s, const struct pl_addr *addr)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->npeers; i++)
		n += s->peers[i].fd >= 0 && pl_addr_equal(&s->peers[i].addr, addr);
	return s->options.max_each != 0 && n >= s->options.max_each;
}

static void take_one(
	struct pl_exchange_server *s, int fd, const struct pl_addr *addr, uint64_t now_ns)
{
	struct peer *p;

	pl_count(&s->counters.connections, 1);
	if (s->options.allowed != NULL && !s->options.allowed(s->options.arg, addr)) {
		pl_count(&s->counters.denied, 1);
		close(fd);
		return;
	}
	if (crowded(s, addr)) {
		pl_count(&s->counters.crowded, 1);
		close(fd);
		return;
	}
	p = free_slot(s);
	if (p == NULL || watch(s, EPOLL_CTL_ADD, fd, EPOLLIN, (uint32_t)(p - s->peers)) < 0) {
		pl_count(&s->counters.full, 1);
		close(fd);
		return;
	}
	pl_tcp_watch(fd, WATCH_SECONDS);
	*p = (struct peer){ .fd = fd,
		.addr = *addr,
		.events = EPOLLIN,
		.until_ns = now_ns + s->options.timeout_ns };
}

static void take_new(struct pl_exchange_server *s, uint64_t now_ns)
{
	struct pl_addr addr;

	for (int i = 0; i < ACCEPTS; i++) {
		int fd = pl_tcp_accept(s->listen_fd, &addr);

		if (fd < 0)
			return;
		take_one(s, fd, &addr, now_ns);
	}
}

void pl_exchange_server_step(struct pl_exchange_server *s, uint64_t now_ns)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(s->poll_fd, events, EVENTS, 0);

	for (int i = 0; i < n; i++) {
		const uint32_t index = events[i].data.u32;

		if (index == s->npeers)
			continue;
		/* A message of another peer may have ended this connection in this turn. */
		if (s->peers[index].fd >= 0)
			serve(s, &s->peers[index], now_ns);
	}
	/* Late peers make room for new ones, which are taken last: the freed slots have no events
	 * left. */
	for (uint32_t i = 0; i < s->npeers; i++) {
		if (s->peers[i].fd >= 0 && now_ns >= s->peers[i].until_ns)
			end_for(s, &s->peers[i], &s->counters.timeouts);
	}
	take_new(s, now_ns);
}
