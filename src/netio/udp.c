/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port driver of UDP sockets.
 *
 * Receiving is recvmmsg into buffers made once. Kernel drops are asked for with SO_MEMINFO (Linux 4.12): it
 * tells the socket's counter at any time, while SO_RXQ_OVFL rides on the next datagram, so that drops at the
 * end of a burst stay unseen until another one comes, and costs ancillary data on each.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "netio/driver.h"

#define SOCKETS_MAX      256
#define RCVBUF_DEFAULT   (16u << 20)
#define DATAGRAM_MAX     65536u
#define GSO_SEGMENTS_MAX 64
#define GSO_BYTES_MAX    65000u
#define CONTROL_BYTES    CMSG_SPACE(sizeof(struct timespec))
/* Buffers that are a power of two apart fall into the same few sets of a cache. */
#define STAGGER_BYTES    320u

struct udp_address {
	struct sockaddr_storage sa;
	socklen_t len;
};

struct udp_settings {
	uint64_t sockets, rcvbuf, sndbuf, maxlen;
	bool kernel_time, gso;
};

struct udp_port {
	struct pl_port port;
	struct udp_settings set;
	struct pl_addr local; /* what the socket is bound to; unspecified = every address */
	uint32_t drops_seen;
	uint8_t *
		buffers; /* PL_BATCH_MAX of stride_bytes; only what datagrams touched takes memory */
	size_t stride_bytes;
	struct mmsghdr msgs[PL_BATCH_MAX]; /* sending makes them anew for each batch */
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
		pl_diag_set(diag, "'timestamp=%s' in the URI: 'batch' or 'kernel'", who);
		return -EINVAL;
	}
	return 0;
}

/* ---- addresses ---- */

static void set_sockaddr(struct udp_address *ret, const struct pl_addr *addr, uint16_t port)
{
	memset(ret, 0, sizeof(*ret));
	if (pl_addr_is_v4(addr)) {
		struct sockaddr_in *sin = (struct sockaddr_in *)&ret->sa;

		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		memcpy(&sin->sin_addr, addr->b + 12, 4);
		ret->len = sizeof(*sin);
	} else {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&ret->sa;

		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(port);
		memcpy(&sin6->sin6_addr, addr->b, 16);
		ret->len = sizeof(*sin6);
	}
}

static struct pl_addr addr_of(const void *sa, uint16_t *ret_port)
{
	if (((const struct sockaddr *)sa)->sa_family == AF_INET) {
		const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;

		*ret_port = ntohs(sin->sin_port);
		return pl_addr_v4(&sin->sin_addr);
	}
	*ret_port = ntohs(((const struct sockaddr_in6 *)sa)->sin6_port);
	return pl_addr_v6(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

/* "name:port" or "[fe80::1%eth0]:port", cut in place; what is numeric has been dealt with. */
static int split_host(char *text, char **ret_host, uint16_t *ret_port, struct pl_diag *diag)
{
	char *colon = strrchr(text, ':');
	uint64_t port;

	if (colon == NULL || pl_parse_u64(colon + 1, &port) < 0 || port > 65535) {
		pl_diag_set(diag, "'%s': not HOST:PORT with a port number up to 65535", text);
		return -EINVAL;
	}
	*colon = '\0';
	if (text[0] == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		text++;
	}
	if (*text == '\0' || strpbrk(text, "/[] ") != NULL) {
		pl_diag_set(diag, "'%s' is not the name or address of a host", text);
		return -EINVAL;
	}
	*ret_host = text;
	*ret_port = (uint16_t)port;
	return 0;
}

/* With ret NULL the form is checked and no name looked up. */
static int resolve(const char *target, struct udp_address *ret, struct pl_diag *diag)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM }, *list;
	char text[PL_URI_TEXT_MAX], service[8], *host;
	struct pl_addr addr;
	uint16_t port;
	int r;

	if (pl_parse_endpoint(target, &addr, &port) == 0) {
		if (ret != NULL)
			set_sockaddr(ret, &addr, port);
		return 0;
	}
	snprintf(text, sizeof(text), "%s", target);
	r = split_host(text, &host, &port, diag);
	if (r < 0 || ret == NULL)
		return r;
	snprintf(service, sizeof(service), "%u", port);
	r = getaddrinfo(host, service, &hints, &list);
	if (r != 0) {
		pl_diag_set(diag, "host '%s': %s", host,
			r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
		return -EADDRNOTAVAIL;
	}
	memset(ret, 0, sizeof(*ret));
	memcpy(&ret->sa, list->ai_addr, list->ai_addrlen);
	ret->len = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

static char *port_name(const struct pl_addr *addr, uint16_t port)
{
	char text[PL_ADDR_TEXT_MAX], *name = NULL;

	pl_format_addr(text, addr);
	if (asprintf(&name, pl_addr_is_v4(addr) ? "udp://%s:%u" : "udp://[%s]:%u", text, port) < 0)
		return NULL;
	return name;
}

static int udp_check(const struct pl_uri *uri, struct pl_diag *diag)
{
	struct udp_settings set;
	int r;

	r = read_settings(uri, &set, diag);
	if (r == 0)
		r = resolve(uri->target, NULL, diag);
	return r < 0 ? r : (int)set.sockets;
}

/* ---- opening ---- */

/*
 * A classic BPF program picks the socket of the group: a hash of the source address, so that an exporter's
 * datagrams stay in one worker, in order, whatever source ports it uses. The kernel's own choice hashes the
 * ports too. Offsets are from the network header; no privilege is needed. Until all sockets of the group are
 * bound an index may not exist, and then the kernel's choice is taken.
 */
static int steer_by_source(int fd, unsigned int sockets)
{
	const uint32_t net = (uint32_t)SKF_NET_OFF, golden = 0x9e3779b1;
	struct sock_filter code[] = {
		/* clang-format off */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, net),              /*  0 version */
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),               /*  1 */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 4, 0, 2),         /*  2 */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, net + 12),         /*  3 IPv4: the source */
		BPF_STMT(BPF_JMP | BPF_JA, 13),                       /*  4 to 18 */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, net + 8),          /*  5 IPv6: four words */
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, golden),          /*  6 */
		BPF_STMT(BPF_MISC | BPF_TAX, 0),                      /*  7 */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, net + 12),         /*  8 */
		BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),               /*  9 */
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, golden),          /* 10 */
		BPF_STMT(BPF_MISC | BPF_TAX, 0),                      /* 11 */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, net + 16),         /* 12 */
		BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),               /* 13 */
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, golden),          /* 14 */
		BPF_STMT(BPF_MISC | BPF_TAX, 0),                      /* 15 */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, net + 20),         /* 16 */
		BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),               /* 17 */
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, golden),          /* 18 both */
		BPF_STMT(BPF_MISC | BPF_TAX, 0),                      /* 19 */
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),              /* 20 the upper bits are the mixed ones */
		BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),               /* 21 */
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, sockets),         /* 22 */
		BPF_STMT(BPF_RET | BPF_A, 0),                         /* 23 */
		/* clang-format on */
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) < 0
		       ? -errno
		       : 0;
}

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int bind_socket(const struct udp_address *address, bool shared)
{
	int fd, r = 0;

	fd = socket(address->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (address->sa.ss_family == AF_INET6)
		r = set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (r == 0 && shared)
		r = set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (r == 0 && bind(fd, (const struct sockaddr *)&address->sa, address->len) < 0)
		r = -errno;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

/* "Every address" is one IPv6 socket for both families, or one of IPv4 where there is no IPv6. */
static int bind_any(const struct udp_address *address, bool shared)
{
	uint16_t port;
	struct pl_addr addr = addr_of(&address->sa, &port);
	struct udp_address v4;
	int fd;

	fd = bind_socket(address, shared);
	if (!pl_addr_is_unspecified(&addr) || (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL))
		return fd;
	addr = pl_addr_v4("\0\0\0");
	set_sockaddr(&v4, &addr, port);
	return bind_socket(&v4, shared);
}

/* Asks for more than the system's limit first: that takes CAP_NET_ADMIN. */
static void size_rcvbuf(struct udp_port *self)
{
	int fd = self->port.fd, granted = 0;
	socklen_t len = sizeof(granted);

	if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, (int)self->set.rcvbuf) < 0)
		(void)set_int(fd, SOL_SOCKET, SO_RCVBUF, (int)self->set.rcvbuf);
	/* The kernel doubles what it is asked for, to have room for its own headers. */
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &len) == 0)
		self->port.stats.rcvbuf_bytes = (uint64_t)granted / 2;
}

static int read_drops(int fd, uint32_t *ret)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) < 0)
		return -errno;
	*ret = info[SK_MEMINFO_DROPS];
	return 0;
}

static void prepare(struct udp_port *self, uint32_t i)
{
	struct msghdr *m = &self->msgs[i].msg_hdr;

	m->msg_namelen = sizeof(self->from[i]);
	m->msg_controllen = self->set.kernel_time ? CONTROL_BYTES : 0;
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
		m->msg_control = self->set.kernel_time ? self->control[i] : NULL;
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

static int open_recv(struct udp_port *self, const struct udp_address *address,
	const struct pl_port_options *options)
{
	bool shared = options->of > 1 || self->set.sockets > 1;
	struct udp_address bound = { .len = sizeof(bound.sa) };
	int r;

	if (self->port.fd < 0) {
		self->port.fd = bind_any(address, shared);
		if (self->port.fd < 0)
			return self->port.fd;
		r = options->of > 1 ? steer_by_source(self->port.fd, options->of) : 0;
		if (r < 0)
			return r;
	}
	if (getsockname(self->port.fd, (struct sockaddr *)&bound.sa, &bound.len) < 0)
		return -errno;
	self->local = addr_of(&bound.sa, &self->port.local_port);
	self->port.name = port_name(&self->local, self->port.local_port);
	if (self->port.name == NULL)
		return -ENOMEM;
	if (pl_addr_is_v4(&self->local) && memcmp(self->local.b + 12, "\0\0\0", 4) == 0)
		self->local = (struct pl_addr){ { 0 } };
	size_rcvbuf(self);
	if (self->set.kernel_time) {
		r = set_int(self->port.fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
		if (r < 0)
			return r;
	}
	r = read_drops(self->port.fd, &self->drops_seen);
	return r < 0 ? r : make_buffers(self);
}

static int open_send(struct udp_port *self, const struct udp_address *address)
{
	struct udp_address bound = { .len = sizeof(bound.sa) };
	struct pl_addr addr;
	uint16_t port;

	addr = addr_of(&address->sa, &port);
	self->port.name = port_name(&addr, port);
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
		self->local = addr_of(&bound.sa, &self->port.local_port);
	return 0;
}

static int udp_close(struct pl_port *port)
{
	struct udp_port *self = (struct udp_port *)port;

	if (self->buffers != NULL)
		munmap(self->buffers, self->stride_bytes * PL_BATCH_MAX);
	if (port->fd >= 0)
		close(port->fd);
	free(port->name);
	free(self);
	return 0;
}

static int udp_open(struct pl_port **ret_port, const struct pl_uri *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag)
{
	struct udp_address address;
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
	r = read_settings(uri, &self->set, diag);
	if (r == 0)
		r = resolve(uri->target, &address, diag);
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

static uint64_t kernel_time(struct msghdr *m, uint64_t otherwise)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			struct timespec ts;

			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
		}
	}
	return otherwise;
}

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
		p->ts_ns = self->set.kernel_time ? kernel_time(m, now) : now;
		p->src = addr_of(&self->from[i], &p->sport);
		p->dst = self->local;
		p->dport = self->port.local_port;
		prepare(self, i);
	}
}

/* 0: nothing there. */
static int receive(struct udp_port *self)
{
	/* MSG_TRUNC: tell the length that it had, not the one that fitted. */
	int n = recvmmsg(self->port.fd, self->msgs, PL_BATCH_MAX, MSG_DONTWAIT | MSG_TRUNC, NULL);

	if (n >= 0)
		return n;
	switch (errno) {
	case EAGAIN:
	case EINTR:
		return 0;
	case ECONNREFUSED: /* of the past, on a connected socket that was handed to us */
	case ENOBUFS:
	case ENOMEM:
		self->port.stats.errors++;
		return 0;
	default:
		self->port.stats.errors++;
		return -errno;
	}
}

static int udp_recv(
	struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	struct udp_port *self = (struct udp_port *)port;
	int n;

	n = receive(self);
	if (n == 0 && timeout_ms != 0) {
		struct pollfd p = { .fd = port->fd, .events = POLLIN };

		if (poll(&p, 1, timeout_ms) > 0)
			n = receive(self);
	}
	if (n > 0)
		fill(self, ret_batch, (uint32_t)n);
	if (n < 0)
		pl_diag_set(diag, "%s: %s", port->name, strerror(-n));
	return n;
}

/* The kernel's counter has 32 bits: asked for at least once in 4 G drops, its wrap is seen. */
static void udp_stats(struct pl_port *port)
{
	struct udp_port *self = (struct udp_port *)port;
	uint32_t drops = 0;

	if (port->mode != PL_PORT_RECV || read_drops(port->fd, &drops) < 0)
		return;
	port->stats.kernel_drops += drops - self->drops_seen;
	self->drops_seen = drops;
}

/* ---- sending ---- */

/*
 * Message k: one datagram, or with GSO a run of equal ones, of which the last may be shorter, handed to the
 * kernel in one piece that leaves the machine as the same datagrams. Returns how many packets it holds.
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

/* The messages of packets at … end; first[k] is the first packet of message k. Returns their number. */
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

/* What failed can be tried again: an interrupted call; news that nobody listened to an earlier datagram;
 * a path that does not take GSO, from now on without it. */
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
	.keys = keys,
	.check = udp_check,
	.open = udp_open,
	.recv = udp_recv,
	.send = udp_send,
	.stats = udp_stats,
	.close = udp_close,
};
