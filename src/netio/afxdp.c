/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port driver of AF_XDP sockets: one port is one receive queue. The ports of an interface share one XDP
 * program, ours (bpf/collect.bpf.c) or the caller's, which the first of them attaches and the last takes off.
 *
 * A packet that is lent stays in the receive ring until it is released: then its descriptor's address goes into
 * the fill ring and the receive ring moves on. So no list of what is lent is kept.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/prefetch.h"
#include "netio/caps.h"
#include "netio/iface.h"
#include "netio/xdp.h"
#include "netio/xsk.h"

#include "bpf/collect.skel.h" /* knows the types above only by name */

#define QUEUES_MAX   256
#define RING_DEFAULT 16384
#define SEND_RING    4096
#define SEND_WAIT_MS 1000
#define XDP_ROOM     256u /* the kernel keeps as much in front of each frame */
#define VLAN_ROOM    8u

/* What the ports of one interface have in common. */
struct shared {
	pthread_mutex_t lock;
	unsigned int refs;
	enum pl_xdp_mode mode;
	const struct pl_rights *rights;
	struct pl_bpf_collect *own; /* NULL: the program is the caller's */
	struct pl_xdp_program program;
	struct pl_xdp *xdp; /* NULL: there is no interface at present */
};

struct settings {
	uint32_t queues[QUEUES_MAX];
	int nqueues; /* 0: all */
	uint32_t ring;
	enum pl_xdp_mode mode;
	enum pl_xsk_copy copy;
	bool busy_poll;
	struct pl_filter_rules rules;
};

struct afxdp_port {
	struct pl_iface iface; /* first */
	struct shared *shared;
	struct pl_xsk xsk;
	struct settings set;
	uint32_t queue;
	uint64_t drops_before; /* of sockets that are gone */
	const struct pl_rights *rights;
	bool first; /* tells the counts of the filter, which are the interface's */
	/* Packets that carry telemetry to somebody else: the program leaves them to the host, and a packet socket
	 * beside this one copies them. With the first queue's port; NULL: none are asked for. */
	struct pl_port *beside;
	struct pl_batch *lent_beside; /* not NULL: the batch that is lent is its */
	bool beside_next;
	/* Sending: frames that the kernel does not have. */
	uint32_t *free_frames, nfree;
};

static const char *const keys[] = { PL_IFACE_KEYS, "queues", "mode", "copy", "busy_poll", NULL };

static int choice(const struct pl_uri *uri, const char *key, const char *const *words, int *ret,
	struct pl_diag *diag)
{
	const char *text = pl_uri_get(uri, key);

	*ret = 0;
	if (text == NULL)
		return 0;
	for (int i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], text) == 0) {
			*ret = i;
			return 0;
		}
	}
	pl_diag_set(
		diag, "'%s=%s' in the URI: %s, %s or %s", key, text, words[0], words[1], words[2]);
	return -EINVAL;
}

static int read_settings(const struct pl_uri *uri, struct settings *ret, struct pl_diag *diag)
{
	static const char *const modes[] = { "auto", "native", "generic", NULL };
	static const char *const copies[] = { "auto", "zero", "copy", NULL };
	const char *queues = pl_uri_get(uri, "queues");
	int mode, copy = 0, r;

	memset(ret, 0, sizeof(*ret));
	ret->ring = RING_DEFAULT;
	r = choice(uri, "mode", modes, &mode, diag);
	if (r == 0)
		r = choice(uri, "copy", copies, &copy, diag);
	if (r == 0)
		r = pl_uri_get_bool(uri, "busy_poll", &ret->busy_poll, diag);
	if (r == 0)
		r = pl_iface_ring(uri, &ret->ring, diag);
	if (r == 0)
		r = pl_iface_rules(uri, &ret->rules, diag);
	if (r == 0 && queues != NULL)
		r = ret->nqueues =
			pl_iface_numbers("queues", queues, 4095, ret->queues, QUEUES_MAX, diag);
	if (r < 0)
		return r;
	ret->mode = (enum pl_xdp_mode)mode;
	ret->copy = (enum pl_xsk_copy)copy;
	return 0;
}

/* ---- the interface ---- */

static int ask(const char *name, unsigned long request, void *data, struct ifreq *req)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	if (s < 0)
		return -errno;
	memset(req, 0, sizeof(*req));
	memcpy(req->ifr_name, name, strnlen(name, IFNAMSIZ - 1));
	req->ifr_data = data;
	r = ioctl(s, request, req) < 0 ? -errno : 0;
	close(s);
	return r;
}

/* Receive queues; 1 where the driver does not tell. */
static uint32_t count_queues(const char *name)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq req = { 0 };
	uint32_t n = 0;

	if (ask(name, SIOCETHTOOL, &channels, &req) == 0)
		n = channels.rx_count + channels.combined_count;
	return n == 0 ? 1 : n > QUEUES_MAX ? QUEUES_MAX : n;
}

/* The smaller frame as long as the interface's packets fit. */
static uint32_t frame_bytes(const char *name)
{
	struct ifreq req = { 0 };

	if (ask(name, SIOCGIFMTU, NULL, &req) < 0 || req.ifr_mtu < 0)
		return 2048;
	return (uint32_t)req.ifr_mtu + ETH_HLEN + VLAN_ROOM + XDP_ROOM <= 2048 ? 2048 : 4096;
}

static int memory_node(const char *name)
{
	char path[96];
	int node = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/numa_node", name);
	f = fopen(path, "re");
	if (f == NULL)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

/* ---- the program ---- */

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int load(struct shared *s, uint32_t queues, const char *name, struct pl_diag *diag)
{
	libbpf_print_fn_t before;
	char caps[96];
	int r;

	/* What libbpf would print is no library's business; what a person needs is in diag. */
	before = libbpf_set_print(quiet);
	s->own = pl_bpf_collect__open();
	if (s->own == NULL) {
		r = -errno;
	} else {
		r = bpf_map__set_max_entries(s->own->maps.pl_xsks, queues);
		if (r == 0)
			r = pl_bpf_collect__load(s->own);
	}
	libbpf_set_print(before);
	if (r == 0) {
		s->program = (struct pl_xdp_program){
			.prog_fd = bpf_program__fd(s->own->progs.pl_collect),
			.xsks_fd = bpf_map__fd(s->own->maps.pl_xsks),
			.counts_fd = bpf_map__fd(s->own->maps.pl_filter_counts),
			.filter = &s->own->bss->pl_filter,
		};
		return 0;
	}
	if (r == -EPERM || r == -EACCES) {
		pl_caps_text(pl_caps_missing(PL_CAP_BPF | PL_CAP_NET_ADMIN | PL_CAP_NET_RAW), caps,
			sizeof(caps));
		pl_diag_set(diag, "%s: loading the XDP program needs %s", name,
			caps[0] != '\0' ? caps : "what this process may not do (EPERM)");
		return -EPERM;
	}
	pl_diag_set(diag, "%s: the kernel does not take the XDP program: %s", name, strerror(-r));
	return r;
}

static void put_shared(struct shared *s)
{
	unsigned int left;

	if (s == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	left = --s->refs;
	pthread_mutex_unlock(&s->lock);
	if (left > 0)
		return;
	pl_xdp_detach(s->xdp);
	pl_bpf_collect__destroy(s->own);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int new_shared(struct shared **ret, const char *name, const struct settings *set,
	const struct pl_port_options *options, struct pl_diag *diag)
{
	struct shared *s = calloc(1, sizeof(*s));
	uint32_t queues = count_queues(name);
	int r = 0;

	if (s == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	pthread_mutex_init(&s->lock, NULL);
	s->refs = 1;
	s->mode = set->mode;
	s->rights = options->rights;
	for (int i = 0; i < set->nqueues; i++)
		queues = set->queues[i] >= queues ? set->queues[i] + 1 : queues;
	if (options->program != NULL)
		s->program = *options->program;
	else
		r = load(s, queues, name, diag);
	if (r == 0) {
		pl_filter_set(s->program.filter, &set->rules);
		r = pl_xdp_attach(&s->xdp, name, s->program.prog_fd, s->mode, s->rights, diag);
	}
	if (r < 0) {
		put_shared(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* After the interface was removed: the first port that sees it takes the program off, the first that sees it
 * back attaches it anew. */
static int attach_to(struct shared *s, const char *name, int ifindex, struct pl_diag *diag)
{
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->xdp != NULL && pl_xdp_ifindex(s->xdp) != ifindex) {
		pl_xdp_detach(s->xdp);
		s->xdp = NULL;
	}
	if (s->xdp == NULL && ifindex != 0)
		r = pl_xdp_attach(&s->xdp, name, s->program.prog_fd, s->mode, s->rights, diag);
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* ---- opening ---- */

static int open_socket(struct afxdp_port *self, struct pl_diag *diag)
{
	struct pl_iface *iface = &self->iface;
	struct pl_xsk_cfg cfg = { .ifname = iface->link.name,
		.ifindex = iface->link.ifindex,
		.queue = self->queue,
		.ring = self->set.ring,
		.frame_bytes = frame_bytes(iface->link.name),
		.send = iface->port.mode == PL_PORT_SEND,
		.busy_poll = self->set.busy_poll,
		.copy = self->set.copy,
		.node = memory_node(iface->link.name),
		.rights = self->rights };
	int r;

	r = pl_xsk_open(&self->xsk, &cfg, diag);
	if (r == 0 && self->shared != NULL &&
		bpf_map_update_elem(
			self->shared->program.xsks_fd, &self->queue, &self->xsk.fd, BPF_ANY) < 0) {
		r = -errno;
		pl_diag_set(diag, "%s: queue %u in the program's map of sockets: %s", cfg.ifname,
			self->queue, strerror(-r));
		pl_xsk_close(&self->xsk);
	}
	if (r < 0)
		return r;
	for (uint32_t i = 0; cfg.send && i < self->set.ring; i++)
		self->free_frames[i] = i;
	self->nfree = self->set.ring;
	return pl_iface_set_data(iface, self->xsk.fd);
}

static int again(struct pl_iface *iface, struct pl_diag *diag)
{
	struct afxdp_port *self = (struct afxdp_port *)iface;
	int r = 0;

	if (self->shared != NULL)
		r = attach_to(self->shared, iface->link.name, iface->link.ifindex, diag);
	return r < 0 ? r : open_socket(self, diag);
}

static uint64_t socket_drops(const struct pl_xsk *x)
{
	struct xdp_statistics s = { 0 };
	socklen_t len = sizeof(s);

	if (x->fd < 0 || getsockopt(x->fd, SOL_XDP, XDP_STATISTICS, &s, &len) < 0)
		return 0;
	/* A frame that finds the fill ring empty is in rx_dropped too; one that finds the receive ring full is not. */
	return s.rx_dropped + s.rx_ring_full;
}

static void lost(struct pl_iface *iface)
{
	struct afxdp_port *self = (struct afxdp_port *)iface;

	if (self->shared != NULL)
		(void)attach_to(self->shared, iface->link.name, 0, NULL);
	self->drops_before += socket_drops(&self->xsk);
	(void)pl_iface_set_data(iface, -1);
	pl_xsk_close(&self->xsk);
}

static const struct pl_iface_ops ops = { .lost = lost, .again = again };

static int afxdp_close(struct pl_port *port);

static int choose_queue(
	struct afxdp_port *self, const struct pl_port_options *options, struct pl_diag *diag)
{
	uint32_t have = count_queues(self->iface.link.name), i = options->index;

	if (self->set.nqueues > 0 && i < (uint32_t)self->set.nqueues)
		self->queue = self->set.queues[i];
	else
		self->queue = self->set.nqueues > 0 ? QUEUES_MAX : i;
	if (self->queue < have)
		return 0;
	pl_diag_set(diag, "%s has %u queue%s, there is no queue %u", self->iface.link.name, have,
		have == 1 ? "" : "s",
		self->queue == QUEUES_MAX && self->set.nqueues > 0 ? i : self->queue);
	return -EINVAL;
}

static int make_name(struct afxdp_port *self)
{
	if (asprintf(&self->iface.port.name, "afxdp:%s?queues=%u", self->iface.link.name,
		    self->queue) >= 0)
		return 0;
	self->iface.port.name = NULL;
	return -ENOMEM;
}

static int open_beside(
	struct afxdp_port *self, const struct pl_port_options *options, struct pl_diag *diag)
{
	struct pl_filter_rules rules = self->set.rules;
	int r;

	if (!self->first || !pl_filter_rules_have_data(&rules))
		return 0;
	/* Reports come by the program. */
	memset(rules.ports, 0, sizeof(rules.ports));
	rules.roce1 = 0;
	r = pl_packet_open_rules(&self->beside, self->iface.link.name, &rules, options, diag);
	return r < 0 ? r : pl_iface_set_beside(&self->iface, pl_port_fd(self->beside));
}

static int prepare(struct afxdp_port *self, const struct pl_uri *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag)
{
	int r;

	self->iface.port.mode = mode;
	self->first = options->with == NULL;
	self->rights = options->rights;
	if (mode == PL_PORT_SEND)
		self->set.ring = SEND_RING;
	r = pl_iface_open(&self->iface, uri->target, &ops, diag);
	if (r == 0)
		r = choose_queue(self, options, diag);
	if (r < 0)
		return r;
	r = make_name(self);
	if (mode == PL_PORT_SEND) {
		self->free_frames = calloc(self->set.ring, sizeof(*self->free_frames));
		if (r < 0 || self->free_frames == NULL) {
			pl_diag_set(diag, "%s", strerror(ENOMEM));
			return -ENOMEM;
		}
	} else if (options->with != NULL) {
		self->shared = ((struct afxdp_port *)options->with)->shared;
		pthread_mutex_lock(&self->shared->lock);
		self->shared->refs++;
		pthread_mutex_unlock(&self->shared->lock);
	} else if (r == 0) {
		r = new_shared(&self->shared, self->iface.link.name, &self->set, options, diag);
	}
	if (r == 0)
		r = open_socket(self, diag);
	if (r == 0 && mode == PL_PORT_RECV)
		r = open_beside(self, options, diag);
	return r;
}

static int afxdp_open(struct pl_port **ret_port, const struct pl_uri *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag)
{
	struct afxdp_port *self = calloc(1, sizeof(*self));
	int r;

	if (self == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	self->xsk.fd = self->iface.port.fd = self->iface.link.fd = self->iface.timer_fd = -1;
	r = read_settings(uri, &self->set, diag);
	if (r == 0)
		r = prepare(self, uri, mode, options, diag);
	if (r < 0) {
		(void)afxdp_close(&self->iface.port);
		return r;
	}
	*ret_port = &self->iface.port;
	return 0;
}

static int afxdp_check(const struct pl_uri *uri, struct pl_diag *diag)
{
	struct settings set;
	int r = read_settings(uri, &set, diag);

	if (r < 0)
		return r;
	return set.nqueues > 0 ? set.nqueues : (int)count_queues(uri->target);
}

/* ---- receiving ---- */

static int take(struct afxdp_port *self, struct pl_batch *batch)
{
	struct pl_xsk_ring *rx = &self->xsk.rx;
	uint32_t at, n;
	uint64_t now;

	if (self->xsk.fd < 0)
		return 0;
	at = *rx->consumer;
	n = pl_xsk_load(rx->producer) - at;
	if (n == 0)
		return 0;
	if (n > PL_BATCH_MAX)
		n = PL_BATCH_MAX;
	now = pl_clock_real_ns();
	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_desc *d = pl_xsk_desc(rx, at + i);
		struct pl_packet *p = &batch->pkts[i];

		p->data = self->xsk.memory + d->addr;
		p->len = p->wire_len = d->len;
		p->ts_ns = now;
		p->link = PL_LINK_ETHERNET;
		/* Headers and the report's own are on its first lines. */
		pl_prefetch(p->data);
		pl_prefetch(p->data + 64);
	}
	return (int)n;
}

/* What the socket beside has. That the interface went, this port says itself. */
static int take_beside(struct afxdp_port *self, struct pl_batch *batch)
{
	int n = self->beside == NULL ? 0 : pl_port_recv(self->beside, batch, 0, NULL);

	self->lent_beside = n > 0 ? batch : NULL;
	return n > 0 ? n : 0;
}

/* From both in turn, so that neither waits for the other to run dry. */
static int take_either(struct afxdp_port *self, struct pl_batch *batch)
{
	int n = 0;

	self->beside_next = self->beside != NULL && !self->beside_next;
	if (self->beside_next)
		n = take_beside(self, batch);
	if (n == 0)
		n = take(self, batch);
	return n > 0 || self->beside_next ? n : take_beside(self, batch);
}

static int afxdp_recv(
	struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	struct afxdp_port *self = (struct afxdp_port *)port;
	int n, r;

	if (self->set.busy_poll && self->xsk.fd >= 0)
		(void)recvfrom(self->xsk.fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
	/* Before anything is lent: what is taken beside cannot be given back. */
	if (self->beside != NULL) {
		r = pl_iface_turn(&self->iface, diag);
		if (r < 0)
			return r;
	}
	n = take_either(self, ret_batch);
	if (n > 0) {
		r = self->beside != NULL ? 0 : pl_iface_turn(&self->iface, diag);
		return r < 0 ? r : n;
	}
	r = pl_iface_wait(&self->iface, timeout_ms, diag);
	return r <= 0 ? r : take_either(self, ret_batch);
}

static void afxdp_release(struct pl_port *port, struct pl_batch *batch)
{
	struct afxdp_port *self = (struct afxdp_port *)port;
	struct pl_xsk_ring *rx = &self->xsk.rx, *fill = &self->xsk.fill;
	uint32_t at, to;

	if (self->lent_beside != NULL) {
		self->lent_beside = NULL;
		pl_port_release(self->beside, batch);
		return;
	}
	at = *rx->consumer;
	to = *fill->producer;
	/* There are as many frames as the fill ring has room: it cannot be full. */
	for (uint32_t i = 0; i < batch->n; i++)
		*pl_xsk_addr(fill, to + i) = pl_xsk_desc(rx, at + i)->addr;
	pl_xsk_store(fill->producer, to + batch->n);
	pl_xsk_store(rx->consumer, at + batch->n);
	if (pl_xsk_needs_wakeup(fill))
		(void)recvfrom(self->xsk.fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

static void afxdp_stats(struct pl_port *port)
{
	struct afxdp_port *self = (struct afxdp_port *)port;
	struct pl_filter_counts counts;

	port->stats.kernel_drops = self->drops_before + socket_drops(&self->xsk);
	port->stats.rcvbuf_bytes = (uint64_t)self->xsk.frames * self->xsk.frame_bytes;
	if (self->beside != NULL) {
		struct pl_port_stats beside;

		pl_port_stats(self->beside, &beside);
		port->stats.kernel_drops += beside.kernel_drops;
		port->stats.cut = beside.cut;
	}
	if (self->shared == NULL || !self->first ||
		pl_xdp_counts(self->shared->program.counts_fd, &counts) < 0)
		return;
	port->stats.no_socket = counts.frames[PL_FILTER_NO_SOCKET];
	port->stats.fragments = counts.frames[PL_FILTER_FRAGMENT];
	port->stats.filtered = 0;
	for (unsigned int c = 0; c < PL_FILTER_MAX; c++) {
		if (c != PL_FILTER_TAKEN && c != PL_FILTER_NO_SOCKET)
			port->stats.filtered += counts.frames[c];
	}
}

/* ---- sending ---- */

static void take_back(struct afxdp_port *self)
{
	struct pl_xsk_ring *done = &self->xsk.done;
	uint32_t at = *done->consumer, n = pl_xsk_load(done->producer) - at;

	for (uint32_t i = 0; i < n; i++)
		self->free_frames[self->nfree++] =
			(uint32_t)(*pl_xsk_addr(done, at + i) / self->xsk.frame_bytes);
	pl_xsk_store(done->consumer, at + n);
}

/* Has the kernel send what is in the ring. 0, or what is wrong for good. */
static int kick(struct afxdp_port *self)
{
	if (sendto(self->xsk.fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0 || errno == EAGAIN ||
		errno == EBUSY || errno == ENOBUFS || errno == EINTR)
		return 0;
	return -errno;
}

static uint32_t put(struct afxdp_port *self, const struct pl_packet *pkts, uint32_t n)
{
	struct pl_xsk_ring *tx = &self->xsk.tx;
	uint32_t at = *tx->producer;

	if (n > self->nfree)
		n = self->nfree;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = (uint64_t)self->free_frames[--self->nfree] * self->xsk.frame_bytes;

		memcpy(self->xsk.memory + addr, pkts[i].data, pkts[i].len);
		*pl_xsk_desc(tx, at + i) = (struct xdp_desc){ .addr = addr, .len = pkts[i].len };
	}
	pl_xsk_store(tx->producer, at + n);
	return n;
}

/* Waits for frames to come back; how long is bounded. */
static int wait_for(struct afxdp_port *self, uint32_t wanted)
{
	uint64_t until = pl_clock_mono_ns() + (uint64_t)SEND_WAIT_MS * 1000000u;

	for (;;) {
		struct pollfd p = { .fd = self->xsk.fd, .events = POLLOUT };
		int r = kick(self);

		if (r < 0)
			return r;
		take_back(self);
		if (self->nfree >= wanted)
			return 0;
		if (pl_clock_mono_ns() >= until)
			return -ETIMEDOUT;
		(void)poll(&p, 1, 1);
	}
}

static int afxdp_send(struct pl_port *port, const struct pl_batch *batch, struct pl_diag *diag)
{
	struct afxdp_port *self = (struct afxdp_port *)port;
	uint32_t end = 0, done = 0;
	int r;

	r = pl_iface_wait(&self->iface, 0, diag);
	if (!self->iface.up) {
		if (r >= 0)
			pl_diag_set(diag, "%s is down", self->iface.link.name);
		return -ENETDOWN;
	}
	while (end < batch->n && batch->pkts[end].link == PL_LINK_ETHERNET &&
		batch->pkts[end].len <= self->xsk.frame_bytes)
		end++;
	if (end == 0) {
		pl_diag_set(diag,
			batch->pkts[0].link == PL_LINK_ETHERNET
				? "%s: a frame of %u bytes is too long"
				: "%s: only Ethernet frames can be sent",
			port->name, batch->pkts[0].len);
		return -EINVAL;
	}
	while (done < end) {
		take_back(self);
		done += put(self, batch->pkts + done, end - done);
		r = done < end ? wait_for(self, 1) : kick(self);
		if (r == 0)
			continue;
		port->stats.errors++;
		pl_diag_set(diag, "%s: %s", port->name,
			r == -ETIMEDOUT ? "the interface takes no frames" : strerror(-r));
		return done > 0 ? (int)done : r;
	}
	return (int)done;
}

/* ---- the end ---- */

static int afxdp_close(struct pl_port *port)
{
	struct afxdp_port *self = (struct afxdp_port *)port;
	int r = 0;

	/* What was sent is out before the memory goes. */
	if (self->xsk.fd >= 0 && port->mode == PL_PORT_SEND)
		r = wait_for(self, self->set.ring);
	pl_xsk_close(&self->xsk);
	(void)pl_port_close(self->beside);
	put_shared(self->shared);
	pl_iface_close(&self->iface);
	free(self->free_frames);
	free(port->name);
	free(self);
	return r;
}

const struct pl_port_driver pl_port_afxdp = {
	.scheme = "afxdp",
	.keys = keys,
	.check = afxdp_check,
	.open = afxdp_open,
	.recv = afxdp_recv,
	.release = afxdp_release,
	.send = afxdp_send,
	.stats = afxdp_stats,
	.close = afxdp_close,
};
