/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port driver of UDP sockets.
 *
 * Receiving is recvmmsg into buffers made once, from one of several sockets in turn
 * (netio/udp_turns.h). Kernel drops are read with SO_MEMINFO (Linux 4.12), which works at any time.
 * SO_RXQ_OVFL reports them with the next datagram only, so that drops at the end of a burst stay
 * unseen, and adds ancillary data to each datagram.
 */
#include "netio/udp_address.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "netio/udp_control.h"
#include "netio/udp_turns.h"

#define SOCKETS_MAX      256
#define RCVBUF_DEFAULT   (16u << 20)
#define DATAGRAM_MAX     65536u
#define GSO_SEGMENTS_MAX 64
#define GSO_BYTES_MAX    65000u
#define CONTROL_BYTES    (CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(struct in6_pktinfo)))
/* Offset between buffers: at a distance of a power of two they would share a few cache sets. */
#define STAGGER_BYTES    320u

struct udp_settings {
	uint64_t sockets, rcvbuf, sndbuf, maxlen;
	bool kernel_time, gso;
};

struct udp_port {
	struct pl_port port;
	struct udp_settings set;
	struct pl_addr local; /* bound address; unspecified = every address */
	bool tells_dst;       /* the kernel tells the address of each datagram */
	struct pl_udp_turns turns;
	/* PL_BATCH_MAX buffers of stride_bytes; pages are allocated when datagrams touch them */
	uint8_t *buffers;
	size_t stride_bytes;
	struct mmsghdr msgs[PL_BATCH_MAX]; /* a sending port rebuilds them for each batch */
	struct iovec iov[PL_BATCH_MAX];
	struct sockaddr_in6 from[PL_BATCH_MAX];
	_Alignas(struct cmsghdr) uint8_t control[PL_BATCH_MAX][CONTROL_BYTES];
};

static const char *const keys[] = { "sockets", "rcvbuf", "maxlen", "timestamp", "sndbuf", "gso",
	NULL };

static int read_settings(const struct pl_uri *uri, struct udp_settings *ret, struct pl_diag *diag)
{
	const char *who = pl_uri_get(uri, "timestamp");
	int r;

	*ret = (struct udp_settings){
		.sockets = 1, .rcvbuf = RCVBUF_DEFAULT, .maxlen = DATAGRAM_MAX
	};
	r = pl_uri_get_size(uri, "sockets", 1, SOCKETS_MAX, &ret->sockets, diag);
	if (r == 0)
		r = pl_uri_get_size(uri, "rcvbuf", 1, 1u << 30, &ret->rcvbuf, diag);
	if (r == 0)
		r = pl_uri_get_size(uri, "sndbuf", 1, 1u << 30, &ret->sndbuf, diag);
	if (r == 0)
		r = pl_uri_get_size(uri, "maxlen", 64, DATAGRAM_MAX, &ret->maxlen, diag);
	if (r == 0)
		r = pl_uri_get_bool(uri, "gso", &ret->gso, diag);
	if (r < 0)
		return r;
	ret->kernel_time = who != NULL && strcmp(who, "kernel") == 0;
	if (who != NULL && !ret->kernel_time && strcmp(who, "batch") != 0) {
		pl_diag_set(diag, "'timestamp=%s' in the URI must be 'batch' or 'kernel'", who);
		return -EINVAL;
	}
	return 0;
}

/* ---- addresses ---- */

static int udp_check(const struct pl_uri *uri, struct pl_diag *diag)
{
	struct udp_settings set;
	int r;

	r = read_settings(uri, &set, diag);
	if (r == 0)
		r = pl_udp_resolve(uri->target, NULL, diag);
	return r < 0 ? r : (int)set.sockets;
}

/* ---- opening ---- */

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* Returns a descriptor or negative errno. */
static int make_socket(int family, bool v6only)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return -errno;
	r = family == AF_INET6 ? set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, v6only) : 0;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

static int bind_socket(struct udp_port *self, const struct pl_sockaddr *address,
	const struct pl_port_options *options)
{
	int fd = make_socket(address->sa.ss_family, options->v6only), r;

	if (fd < 0)
		return fd;
	self->turns.share = options->index;
	r = pl_udp_group_bind(&self->turns.group, fd, (const struct sockaddr *)&address->sa,
		address->len, options->index, options->of > 1 ? options->of : 1);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

/* "Every address" is one IPv6 socket for both families, or one of IPv4 where there is no IPv6. */
static int bind_any(struct udp_port *self, const struct pl_sockaddr *address,
	const struct pl_port_options *options)
{
	uint16_t port;
	struct pl_addr addr = pl_sockaddr_get(&address->sa, &port);
	struct pl_sockaddr v4;
	int fd;

	fd = bind_socket(self, address, options);
	if (!pl_addr_is_unspecified(&addr) || options->v6only ||
		(fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL))
		return fd;
	addr = pl_sockaddr_every_v4();
	pl_sockaddr_set(&v4, &addr, port);
	return bind_socket(self, &v4, options);
}

/* Sets the receive buffer, with CAP_NET_ADMIN beyond the system's limit. Returns the size that the
 * kernel granted, in its unit. */
static int size_rcvbuf(const struct udp_port *self, int fd)
{
	int granted = 0;
	socklen_t len = sizeof(granted);

	if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, (int)self->set.rcvbuf) < 0)
		(void)set_int(fd, SOL_SOCKET, SO_RCVBUF, (int)self->set.rcvbuf);
	(void)getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &len);
	return granted;
}

/* Opens a socket for a lane, which is bound when a sender needs it: sizing it takes privileges that
 * are given up by then. -1 on failure. */
static int prepare_lane(const struct udp_port *self, int family, bool v6only)
{
	int fd = make_socket(family, v6only);

	if (fd < 0)
		return -1;
	(void)size_rcvbuf(self, fd);
	if (!self->set.kernel_time || set_int(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1) == 0)
		return fd;
	close(fd);
	return -1;
}

static void prepare(struct udp_port *self, uint32_t i)
{
	struct msghdr *m = &self->msgs[i].msg_hdr;

	m->msg_namelen = sizeof(self->from[i]);
	m->msg_controllen = self->set.kernel_time || self->tells_dst ? CONTROL_BYTES : 0;
}

static int make_buffers(struct udp_port *self)
{
	void *p;

	self->stride_bytes = (self->set.maxlen + 63) / 64 * 64 + STAGGER_BYTES;
	p = mmap(NULL, self->stride_bytes * PL_BATCH_MAX, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	self->buffers = p;
	for (uint32_t i = 0; i < PL_BATCH_MAX; i++) {
		struct msghdr *m = &self->msgs[i].msg_hdr;

		self->iov[i].iov_base = self->buffers + i * self->stride_bytes;
		self->iov[i].iov_len = self->set.maxlen;
		m->msg_iov = &self->iov[i];
		m->msg_iovlen = 1;
		m->msg_name = &self->from[i];
		m->msg_control = self->set.kernel_time || self->tells_dst ? self->control[i] : NULL;
		prepare(self, i);
	}
	return 0;
}

static int adopt(int fd)
{
	int type = 0, domain = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return -errno;
	return type == SOCK_DGRAM && (domain == AF_INET || domain == AF_INET6) ? 0 : -EPROTOTYPE;
}

static int open_recv(struct udp_port *self, const struct pl_sockaddr *address,
	const struct pl_port_options *options)
{
	struct pl_sockaddr bound = { .len = sizeof(bound.sa) };
	int granted, r;

	if (self->port.fd < 0) {
		self->port.fd = bind_any(self, address, options);
		if (self->port.fd < 0)
			return self->port.fd;
	}
	if (getsockname(self->port.fd, (struct sockaddr *)&bound.sa, &bound.len) < 0)
		return -errno;
	self->local = pl_sockaddr_get(&bound.sa, &self->port.local_port);
	self->port.name = pl_udp_port_name(&self->local, self->port.local_port);
	if (self->port.name == NULL)
		return -ENOMEM;
	if (pl_addr_is_v4(&self->local) && memcmp(self->local.b + 12, "\0\0\0", 4) == 0)
		self->local = (struct pl_addr){ { 0 } };
	granted = size_rcvbuf(self, self->port.fd);
	/* The kernel doubles the requested size, to have room for its own headers. */
	self->port.stats.rcvbuf_bytes = (uint64_t)granted / 2;
	if (self->set.kernel_time) {
		r = set_int(self->port.fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
		if (r < 0)
			return r;
	}
	if (options->tells_dst && pl_addr_is_unspecified(&self->local)) {
		r = bound.sa.ss_family == AF_INET
			    ? set_int(self->port.fd, IPPROTO_IP, IP_PKTINFO, 1)
			    : set_int(self->port.fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
		if (r < 0)
			return r;
		self->tells_dst = true;
	}
	self->port.clock = self->set.kernel_time ? PL_STAMP_KERNEL : PL_STAMP_READING;
	self->turns.sockets[0].fd = self->port.fd;
	for (unsigned int i = 1; options->lanes && self->turns.group != NULL && i <= PL_UDP_LANES;
		i++)
		self->turns.sockets[i].fd = prepare_lane(self, bound.sa.ss_family, options->v6only);
	pl_udp_turns_start(&self->turns, (uint32_t)granted);
	return make_buffers(self);
}

static int open_send(struct udp_port *self, const struct pl_sockaddr *address)
{
	struct pl_sockaddr bound = { .len = sizeof(bound.sa) };
	struct pl_addr addr;
	uint16_t port;

	addr = pl_sockaddr_get(&address->sa, &port);
	self->port.name = pl_udp_port_name(&addr, port);
	if (self->port.name == NULL)
		return -ENOMEM;
	if (self->port.fd < 0)
		self->port.fd = socket(address->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (self->port.fd < 0)
		return -errno;
	if (connect(self->port.fd, (const struct sockaddr *)&address->sa, address->len) < 0)
		return -errno;
	if (self->set.sndbuf != 0)
		(void)set_int(self->port.fd, SOL_SOCKET, SO_SNDBUF, (int)self->set.sndbuf);
	if (getsockname(self->port.fd, (struct sockaddr *)&bound.sa, &bound.len) == 0)
		self->local = pl_sockaddr_get(&bound.sa, &self->port.local_port);
	return 0;
}

static int udp_close(struct pl_port *port)
{
	struct udp_port *self = (struct udp_port *)port;

	if (self->buffers != NULL)
		munmap(self->buffers, self->stride_bytes * PL_BATCH_MAX);
	/* sockets[0] is the port's socket; only open_recv has set it before. */
	self->turns.sockets[0].fd = port->fd;
	if (self->turns.bound == 0)
		self->turns.bound = 1;
	pl_udp_turns_close(&self->turns);
	free(port->name);
	free(self);
	return 0;
}

static int udp_open(struct pl_port **ret_port, const struct pl_uri *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag)
{
	struct pl_sockaddr address;
	struct udp_port *self;
	int r;

	self = calloc(1, sizeof(*self));
	if (self == NULL) {
		if (options->fd > 0)
			close(options->fd);
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	self->port.fd = options->fd > 0 ? options->fd : -1;
	for (unsigned int i = 0; i <= PL_UDP_LANES; i++)
		self->turns.sockets[i].fd = -1;
	r = read_settings(uri, &self->set, diag);
	if (r == 0)
		r = pl_udp_resolve(uri->target, &address, diag);
	if (r < 0)
		goto fail;
	r = options->fd > 0 ? adopt(options->fd) : 0;
	if (r == 0)
		r = mode == PL_PORT_RECV ? open_recv(self, &address, options)
					 : open_send(self, &address);
	if (r < 0) {
		pl_diag_set(diag, "udp://%s: %s", uri->target, strerror(-r));
		goto fail;
	}
	*ret_port = &self->port;
	return 0;
fail:
	udp_close(&self->port);
	return r;
}

/* ---- receiving ---- */

static void fill(struct udp_port *self, struct pl_batch *batch, uint32_t n)
{
	uint64_t now = pl_clock_real_ns();

	for (uint32_t i = 0; i < n; i++) {
		struct pl_packet *p = &batch->pkts[i];
		struct msghdr *m = &self->msgs[i].msg_hdr;
		uint32_t len = self->msgs[i].msg_len;

		p->data = self->iov[i].iov_base;
		p->wire_len = len;
		p->len = len;
		if (__builtin_expect(len > self->set.maxlen, 0)) {
			p->len = (uint32_t)self->set.maxlen;
			self->port.stats.cut++;
		}
		p->link = PL_LINK_UDP;
		p->out = 0;
		p->gso = PL_GSO_NONE;
		p->clock = PL_STAMP_READING;
		p->ts_ns = self->set.kernel_time ? pl_udp_kernel_time(m, now, &p->clock) : now;
		p->src = pl_sockaddr_get(&self->from[i], &p->sport);
		p->dst = self->tells_dst ? pl_udp_told_dst(m) : self->local;
		p->dport = self->port.local_port;
		prepare(self, i);
	}
}

/* Receives from one socket. Returns the number of datagrams, 0 for none, or negative errno. */
static int receive_from(struct udp_port *self, int fd)
{
	/* MSG_TRUNC: returns the datagram's whole length, not the bytes that fitted. */
	int n = recvmmsg(fd, self->msgs, PL_BATCH_MAX, MSG_DONTWAIT | MSG_TRUNC, NULL);

	if (n >= 0)
		return n;
	switch (errno) {
	case EAGAIN:
	case EINTR:
		return 0;
	case ECONNREFUSED: /* of an earlier datagram, on a connected socket given by the caller */
	case ENOBUFS:
	case ENOMEM:
		self->port.stats.errors++;
		return 0;
	default:
		self->port.stats.errors++;
		return -errno;
	}
}

/* Receives from the socket whose turn it is, then from the next ones; 0 when all are empty. */
static int receive(struct udp_port *self, struct pl_batch *ret_batch)
{
	struct pl_udp_turns *t = &self->turns;
	int n = 0;

	/* After this number of turns each lane was read once, and the first socket before each of
	 * them. */
	for (unsigned int tries = 2 * t->bound - 1; n == 0 && tries > 0; tries--) {
		unsigned int i = pl_udp_turns_next(t);

		n = receive_from(self, t->sockets[i].fd);
		if (n < 0)
			break;
		if (n > 0)
			fill(self, ret_batch, (uint32_t)n);
		pl_udp_turns_took(t, i, ret_batch->pkts, (uint32_t)n,
			t->bound > 1 || n >= (int)t->much ? pl_clock_mono_ns() : 0);
	}
	return n;
}

static bool wait_for_any(const struct udp_port *self, int timeout_ms)
{
	struct pollfd fds[1 + PL_UDP_LANES];

	for (unsigned int i = 0; i < self->turns.bound; i++)
		fds[i] = (struct pollfd){ .fd = self->turns.sockets[i].fd, .events = POLLIN };
	return poll(fds, self->turns.bound, timeout_ms) > 0;
}

static int udp_recv(
	struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	struct udp_port *self = (struct udp_port *)port;
	int n;

	n = receive(self, ret_batch);
	if (n == 0 && timeout_ms != 0 && wait_for_any(self, timeout_ms))
		n = receive(self, ret_batch);
	if (n < 0)
		pl_diag_set(diag, "%s: %s", port->name, strerror(-n));
	return n;
}

static void udp_stats(struct pl_port *port)
{
	struct udp_port *self = (struct udp_port *)port;

	if (port->mode != PL_PORT_RECV)
		return;
	pl_udp_turns_drops(&self->turns);
	port->stats.kernel_drops = self->turns.dropped;
	port->stats.flood_drops = self->turns.flood_dropped;
	port->stats.floods = self->turns.moved;
}

static uint32_t udp_floods(struct pl_port *port, struct pl_port_flood *ret, int *ret_error)
{
	const struct pl_udp_turns *t = &((struct udp_port *)port)->turns;

	memcpy(ret, t->floods, t->n_floods * sizeof(*ret));
	*ret_error = t->error;
	return t->n_floods;
}

static unsigned int udp_lane_fds(const struct pl_port *port, int *ret, unsigned int max)
{
	const struct pl_udp_turns *t = &((const struct udp_port *)port)->turns;
	unsigned int n = 0;

	for (unsigned int i = 1; i < t->bound && n < max; i++)
		ret[n++] = t->sockets[i].fd;
	return n;
}

/* ---- sending ---- */

/*
 * Builds message k: one datagram, or with GSO a run of equally long ones (the last may be shorter),
 * which the kernel or NIC splits again. Returns how many packets it holds.
 */
static uint32_t put_message(struct udp_port *self, uint32_t k, const struct pl_packet *pkts,
	uint32_t left, struct iovec *iov)
{
	struct msghdr *m = &self->msgs[k].msg_hdr;
	size_t len = pkts[0].len, total = len;
	uint32_t n = 1;

	while (self->set.gso && n < left && n < GSO_SEGMENTS_MAX && pkts[n - 1].len == len &&
		pkts[n].len > 0 && pkts[n].len <= len && total + pkts[n].len <= GSO_BYTES_MAX)
		total += pkts[n++].len;
	*m = (struct msghdr){ .msg_iov = iov, .msg_iovlen = n };
	if (n > 1) {
		uint16_t segment = (uint16_t)len;
		struct cmsghdr *c;

		m->msg_control = self->control[k];
		m->msg_controllen = CMSG_SPACE(sizeof(segment));
		c = CMSG_FIRSTHDR(m);
		c->cmsg_level = SOL_UDP;
		c->cmsg_type = UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof(segment));
		memcpy(CMSG_DATA(c), &segment, sizeof(segment));
	}
	return n;
}

/* Builds the messages of packets at … end; first[k] is the first packet of message k. Returns their
 * number. */
static uint32_t put_messages(struct udp_port *self, const struct pl_batch *batch, uint32_t at,
	uint32_t end, uint32_t *first)
{
	uint32_t k = 0;

	for (; at < end; k++) {
		first[k] = at;
		at += put_message(self, k, &batch->pkts[at], end - at, &self->iov[at]);
	}
	first[k] = end;
	return k;
}

/* Returns true when a send can be retried: after an interrupted call; after ECONNREFUSED for an
 * earlier datagram; without GSO, on a path that does not support it. */
static bool may_retry(struct udp_port *self, int error, bool segmented)
{
	if (error == ECONNREFUSED)
		self->port.stats.errors++;
	if (segmented && (error == EINVAL || error == EIO || error == EMSGSIZE)) {
		self->set.gso = false;
		return true;
	}
	return error == EINTR || error == ECONNREFUSED;
}

static int udp_send(struct pl_port *port, const struct pl_batch *batch, struct pl_diag *diag)
{
	struct udp_port *self = (struct udp_port *)port;
	uint32_t first[PL_BATCH_MAX + 1], messages, done = 0, end = 0;
	unsigned int tries = 0;

	for (; end < batch->n && batch->pkts[end].link == PL_LINK_UDP; end++) {
		self->iov[end].iov_base = (void *)(uintptr_t)batch->pkts[end].data;
		self->iov[end].iov_len = batch->pkts[end].len;
	}
	if (end == 0) {
		pl_diag_set(diag, "%s: only datagrams can be sent, not frames", port->name);
		return -EINVAL;
	}
	while (done < end) {
		int r;

		messages = put_messages(self, batch, done, end, first);
		r = sendmmsg(port->fd, self->msgs, messages, 0);
		if (r > 0) {
			done = first[r];
			continue;
		}
		if (may_retry(self, errno, first[1] - first[0] > 1) && tries++ <= 2 * end)
			continue;
		if (done > 0)
			break;
		port->stats.errors++;
		pl_diag_set(diag, "%s: %s", port->name, strerror(errno));
		return -errno;
	}
	return (int)done;
}

const struct pl_port_driver pl_port_udp = {
	.scheme = "udp",
	.can = PL_PORT_CAN_LIVE | PL_PORT_CAN_SEND | PL_PORT_CAN_DATAGRAMS | PL_PORT_CAN_SHARE,
	.keys = keys,
	.check = udp_check,
	.open = udp_open,
	.recv = udp_recv,
	.send = udp_send,
	.stats = udp_stats,
	.floods = udp_floods,
	.lane_fds = udp_lane_fds,
	.close = udp_close,
};
