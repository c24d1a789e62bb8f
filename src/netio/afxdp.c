/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port driver of AF_XDP sockets: one port is one queue, which is read, or sent to, or both. The
 * ports of an interface share one XDP program, ours (bpf/collect.bpf.c) or the caller's, which the
 * first of them attaches and the last takes off.
 *
 * A lent packet stays in the receive ring until it is released: then the address in its descriptor
 * goes into the fill ring and the receive ring moves on. So the driver keeps no list of lent
 * packets.
 */
#include "netio/afxdp_program.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/prefetch.h"
#include "bpf/collect_stamp.h"
#include "netio/tai.h"
#include "netio/xsk_send.h"

#define RING_DEFAULT 16384
#define SEND_RING    4096

struct afxdp_port {
	struct pl_iface iface; /* first */
	struct pl_afxdp_shared *shared;
	struct pl_xsk xsk;
	struct pl_afxdp_settings set;
	uint32_t queue;
	int node;              /* NUMA node of the device; read before files are given up */
	uint64_t drops_before; /* of sockets that were closed */
	const struct pl_rights *rights;
	bool first; /* reports the filter's counts, which are the interface's */
	/* Packet socket for packets that carry telemetry to other hosts: the program leaves them to
	 * the host, this socket gets copies. Only with the first queue's port, or NULL. */
	struct pl_port *beside;
	struct pl_batch *lent_beside; /* not NULL: the lent batch belongs to `beside` */
	bool beside_next;
	bool wants_to_send;
	struct pl_xsk_send send; /* port.sends, or for sending only */
	struct pl_diag why_not;  /* error of a port that wants to send and cannot */
};

static const char *const keys[] = { PL_IFACE_KEYS, "queues", "mode", "copy", NULL };

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

static int read_settings(
	const struct pl_uri *uri, struct pl_afxdp_settings *ret, struct pl_diag *diag)
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

/* ---- opening ---- */

static bool sends(const struct afxdp_port *self)
{
	return self->iface.port.mode == PL_PORT_SEND || self->iface.port.sends;
}

static int open_socket(struct afxdp_port *self, struct pl_diag *diag)
{
	struct pl_iface *iface = &self->iface;
	struct pl_xsk_cfg cfg = { .ifname = iface->link.name,
		.ifindex = iface->link.ifindex,
		.queue = self->queue,
		.recv = iface->port.mode == PL_PORT_RECV ? self->set.ring : 0,
		.send = sends(self) ? SEND_RING : 0,
		.frame_bytes = pl_afxdp_frame_bytes(iface->link.name),
		.copy = self->set.copy,
		.node = self->node,
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
	if (cfg.send > 0)
		pl_xsk_send_begin(&self->send, &self->xsk);
	r = pl_iface_set_data(iface, self->xsk.fd);
	if (r < 0) {
		pl_diag_set(diag, "%s: %s", cfg.ifname, strerror(-r));
		if (cfg.send > 0)
			pl_xsk_send_end(&self->send, &self->xsk);
		pl_xsk_close(&self->xsk);
	}
	return r;
}

/* Opens the socket for both directions where that is wanted and possible, else for receiving only,
 * with the reason in why_not. */
static int open_first(struct afxdp_port *self, struct pl_diag *diag)
{
	const char *name = self->iface.link.name;
	int r = 0;

	if (!self->wants_to_send)
		return open_socket(self, diag);
	if (self->queue >= pl_afxdp_queues(name, PL_PORT_SEND)) {
		pl_diag_set(&self->why_not, "queue %u of %s cannot send", self->queue, name);
		return open_socket(self, diag);
	}
	r = pl_xsk_send_init(&self->send, SEND_RING);
	if (r < 0) {
		pl_diag_set(diag, "%s", strerror(-r));
		return r;
	}
	self->iface.port.sends = true;
	if (open_socket(self, &self->why_not) == 0)
		return 0;
	self->iface.port.sends = false;
	return open_socket(self, diag);
}

static int again(struct pl_iface *iface, struct pl_diag *diag)
{
	struct afxdp_port *self = (struct afxdp_port *)iface;
	int r = 0;

	if (self->shared != NULL)
		r = pl_afxdp_attach(self->shared, iface->link.name, iface->link.ifindex, diag);
	return r < 0 ? r : open_socket(self, diag);
}

static uint64_t socket_drops(const struct pl_xsk *x)
{
	struct xdp_statistics s = { 0 };
	socklen_t len = sizeof(s);

	if (x->fd < 0 || getsockopt(x->fd, SOL_XDP, XDP_STATISTICS, &s, &len) < 0)
		return 0;
	/* A frame that finds the fill ring empty is in rx_dropped too; one that finds the receive
	 * ring full is not. */
	return s.rx_dropped + s.rx_ring_full;
}

static void lost(struct pl_iface *iface)
{
	struct afxdp_port *self = (struct afxdp_port *)iface;

	if (self->shared != NULL)
		(void)pl_afxdp_attach(self->shared, iface->link.name, 0, NULL);
	self->drops_before += socket_drops(&self->xsk);
	if (self->xsk.fd >= 0 && sends(self))
		pl_xsk_send_end(&self->send, &self->xsk);
	(void)pl_iface_set_data(iface, -1);
	pl_xsk_close(&self->xsk);
}

static const struct pl_iface_ops ops = { .lost = lost, .again = again };

static int afxdp_close(struct pl_port *port);

static int choose_queue(
	struct afxdp_port *self, const struct pl_port_options *options, struct pl_diag *diag)
{
	uint32_t have = pl_afxdp_queues(self->iface.link.name, self->iface.port.mode),
		 i = options->index;

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
	self->iface.port.clock = PL_STAMP_READING;
	self->first = options->with == NULL;
	self->rights = options->rights;
	self->wants_to_send = mode == PL_PORT_RECV && options->sends;
	r = pl_iface_open(&self->iface, uri->target, &ops, diag);
	if (r == 0)
		r = choose_queue(self, options, diag);
	if (r < 0)
		return r;
	self->node = pl_afxdp_memory_node(self->iface.link.name);
	r = make_name(self);
	if (mode == PL_PORT_SEND) {
		if (r == 0)
			r = pl_xsk_send_init(&self->send, SEND_RING);
		if (r < 0) {
			pl_diag_set(diag, "%s", strerror(ENOMEM));
			return -ENOMEM;
		}
	} else if (options->with != NULL) {
		self->shared = ((struct afxdp_port *)options->with)->shared;
		pthread_mutex_lock(&self->shared->lock);
		self->shared->refs++;
		pthread_mutex_unlock(&self->shared->lock);
	} else if (r == 0) {
		r = pl_afxdp_shared_new(
			&self->shared, self->iface.link.name, &self->set, options, diag);
	}
	if (self->shared != NULL && self->shared->stamps)
		self->iface.port.clock = PL_STAMP_TAI;
	if (r == 0)
		r = open_first(self, diag);
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
	pl_iface_init(&self->iface);
	self->xsk.fd = -1;
	r = read_settings(uri, &self->set, diag);
	if (r == 0 && mode == PL_PORT_RECV && options->tap_bytes > 0)
		r = pl_iface_tap_rules(uri, &self->set.rules, diag);
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
	struct pl_afxdp_settings set;
	int r = read_settings(uri, &set, diag);

	if (r < 0)
		return r;
	return set.nqueues > 0 ? set.nqueues : (int)pl_afxdp_queues(uri->target, PL_PORT_RECV);
}

/* ---- receiving ---- */

/* Sets the frame's time: the program's stamp in front of it, or now. The stamp is cleared, so that
 * it is not taken for that of a later frame. */
static void set_time(struct pl_packet *p, uint64_t now_ns, uint64_t tai_ahead_ns)
{
	struct pl_collect_stamp *s = (struct pl_collect_stamp *)((uintptr_t)p->data - sizeof(*s));
	struct pl_collect_stamp stamp;

	memcpy(&stamp, s, sizeof(stamp));
	p->ts_ns = now_ns;
	p->clock = PL_STAMP_READING;
	if (stamp.magic != PL_COLLECT_STAMP)
		return;
	p->ts_ns = stamp.tai_ns - tai_ahead_ns;
	p->clock = PL_STAMP_TAI;
	memset(s, 0, sizeof(stamp.magic));
}

static int take(struct afxdp_port *self, struct pl_batch *batch)
{
	struct pl_xsk_ring *rx = &self->xsk.rx;
	uint32_t at, n;
	const bool stamps = self->shared != NULL && self->shared->stamps;
	uint64_t now, tai_ahead;

	if (self->xsk.fd < 0)
		return 0;
	at = *rx->consumer;
	n = pl_xsk_load(rx->producer) - at;
	if (n == 0)
		return 0;
	if (n > PL_BATCH_MAX)
		n = PL_BATCH_MAX;
	now = pl_clock_real_ns();
	tai_ahead = stamps ? pl_tai_ahead_ns() : 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_desc *d = pl_xsk_desc(rx, at + i);
		struct pl_packet *p = &batch->pkts[i];

		p->data = self->xsk.memory + d->addr;
		p->len = p->wire_len = d->len;
		p->ts_ns = now;
		p->clock = PL_STAMP_READING;
		p->link = PL_LINK_ETHERNET;
		p->out = 0;
		/* XDP runs before GRO and gets no frames that are still to be segmented. */
		p->gso = PL_GSO_NONE;
		/* The first two cache lines hold the packet's headers and those of the report. */
		pl_prefetch(p->data);
		pl_prefetch(p->data + 64);
		if (stamps)
			pl_prefetch(p->data - sizeof(struct pl_collect_stamp));
	}
	for (uint32_t i = 0; stamps && i < n; i++)
		set_time(&batch->pkts[i], now, tai_ahead);
	return (int)n;
}

/* Receives from the socket `beside`. Its link errors are ignored: this port reports them itself. */
static int take_beside(struct afxdp_port *self, struct pl_batch *batch)
{
	int n = self->beside == NULL ? 0 : pl_port_recv(self->beside, batch, 0, NULL);

	self->lent_beside = n > 0 ? batch : NULL;
	return n > 0 ? n : 0;
}

/* Receives from both sockets in turn, so that neither starves the other. */
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

	/* Done first, because a batch of the socket `beside` could not be given back after an
	 * error. */
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
	/* The fill ring has an entry for each frame: it cannot be full. */
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
	port->stats.rcvbuf_bytes = (uint64_t)self->xsk.recv_frames * self->xsk.frame_bytes;
	port->stats.ring_sent = self->send.sent;
	port->stats.ring_full = self->send.full;
	port->stats.ring_drops = self->send.dropped;
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

/* Checks the interface before sending; a port that also receives follows it in recv. */
static int look_after(struct afxdp_port *self, struct pl_diag *diag)
{
	int r = self->iface.port.mode == PL_PORT_SEND ? pl_iface_wait(&self->iface, 0, diag) : 0;

	if (self->iface.up && self->xsk.fd >= 0)
		return 0;
	if (r >= 0)
		pl_diag_set(diag, "%s is down", self->iface.link.name);
	return -ENETDOWN;
}

static int afxdp_send(struct pl_port *port, const struct pl_batch *batch, struct pl_diag *diag)
{
	struct afxdp_port *self = (struct afxdp_port *)port;
	uint32_t end = 0, done;
	int r = look_after(self, diag);

	if (r < 0)
		return r;
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
	done = pl_xsk_send(&self->send, &self->xsk, batch->pkts, end, &r);
	if (r == 0)
		return (int)done;
	port->stats.errors++;
	pl_diag_set(diag, "%s: %s", port->name,
		r == -ETIMEDOUT ? "the interface accepts no frames" : strerror(-r));
	return done > 0 ? (int)done : r;
}

static const char *afxdp_why_not(const struct pl_port *port)
{
	return ((const struct afxdp_port *)port)->why_not.text;
}

/* ---- the end ---- */

static int afxdp_close(struct pl_port *port)
{
	struct afxdp_port *self = (struct afxdp_port *)port;
	int r = 0;

	/* Queued frames are sent before their memory is freed. */
	if (self->xsk.fd >= 0 && sends(self))
		r = pl_xsk_send_drain(&self->send, &self->xsk);
	pl_xsk_close(&self->xsk);
	(void)pl_port_close(self->beside);
	pl_afxdp_shared_put(self->shared);
	pl_iface_close(&self->iface);
	pl_xsk_send_done(&self->send);
	free(port->name);
	free(self);
	return r;
}

const struct pl_port_driver pl_port_afxdp = {
	.scheme = "afxdp",
	.can = PL_PORT_AFXDP_CAN,
	.keys = keys,
	.check = afxdp_check,
	.open = afxdp_open,
	.recv = afxdp_recv,
	.release = afxdp_release,
	.send = afxdp_send,
	.why_not = afxdp_why_not,
	.stats = afxdp_stats,
	.close = afxdp_close,
};
