/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port driver of AF_PACKET sockets: TPACKET_V3 blocks for receiving, messages past the queueing
 * discipline for sending (raw_send.h). The kernel hands over copies: the host sees every frame too.
 * packet_socket.c makes the sockets.
 */
#include "netio/packet_state.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/prefetch.h"
#include "netio/hwtstamp.h"
#include "netio/raw_send.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4 /* Linux 6.2 */
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define FANOUT_MAX   256
#define RING_DEFAULT 16384 /* frames of FRAME_BYTES; shorter ones need less */
#define BLOCK_BYTES  (256u << 10)
#define BLOCK_LEAST  (8u << 10)
#define BLOCK_MOST   (1u << 20)

static const char *const keys[] = { PL_IFACE_KEYS, "fanout", "block", "hwtstamp", NULL };

static int read_settings(const struct pl_uri *uri, struct settings *ret, struct pl_diag *diag)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->fanout = 1;
	ret->ring = RING_DEFAULT;
	ret->block_bytes = BLOCK_BYTES;
	r = pl_uri_get_size(uri, "fanout", 1, FANOUT_MAX, &ret->fanout, diag);
	if (r == 0)
		r = pl_uri_get_size(uri, "block", BLOCK_LEAST, BLOCK_MOST, &ret->block_bytes, diag);
	if (r == 0 && (ret->block_bytes & (ret->block_bytes - 1)) != 0) {
		pl_diag_set(diag, "'block' in the URI must be a power of two from 8 KiB to 1 MiB");
		r = -EINVAL;
	}
	if (r == 0)
		r = pl_uri_get_bool(uri, "hwtstamp", &ret->hwtstamp, diag);
	if (r == 0)
		r = pl_iface_ring(uri, &ret->ring, diag);
	return r == 0 ? pl_iface_rules(uri, &ret->rules, diag) : r;
}

static int packet_check(const struct pl_uri *uri, struct pl_diag *diag)
{
	struct settings set;
	int r = read_settings(uri, &set, diag);

	return r < 0 ? r : (int)set.fanout;
}

static int again(struct pl_iface *iface, struct pl_diag *diag)
{
	return pl_packet_socket_open((struct packet_port *)iface, diag);
}

static void lost(struct pl_iface *iface)
{
	pl_packet_socket_close((struct packet_port *)iface);
}

static const struct pl_iface_ops ops = { .lost = lost, .again = again };

static int packet_close(struct pl_port *port);

static int open_with(struct pl_port **ret_port, const char *name, const struct settings *set,
	enum pl_port_mode mode, const struct pl_port_options *options, struct pl_diag *diag)
{
	struct packet_port *self = calloc(1, sizeof(*self));
	int r;

	if (self == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	self->iface.port.mode = mode;
	self->rights = options->rights;
	self->set = *set;
	self->forwards = mode == PL_PORT_RECV && set->tap_bytes > 0 && options->sends;
	self->iface.port.sends = self->forwards;
	r = pl_iface_open(&self->iface, name, &ops, diag);
	if (r < 0)
		goto fail;
	if (asprintf(&self->iface.port.name, "packet:%s", self->iface.link.name) < 0) {
		self->iface.port.name = NULL;
		r = -ENOMEM;
	}
	if (r == 0 && mode == PL_PORT_RECV && options->of > 1)
		r = pl_packet_group_open(self, options);
	if (r < 0) {
		pl_diag_set(diag, "%s", strerror(-r));
		goto fail;
	}
	/* Once for the interface, which the members of a group share. */
	r = set->hwtstamp && options->index == 0 ? pl_hwtstamp_ask(name, diag) : 0;
	if (r == 0)
		r = pl_packet_socket_open(self, diag);
	if (r < 0)
		goto fail;
	self->iface.port.clock = pl_packet_takes_nic(set) && pl_hwtstamp_is_on(name)
					 ? PL_STAMP_NIC
					 : PL_STAMP_KERNEL;
	*ret_port = &self->iface.port;
	return 0;
fail:
	packet_close(&self->iface.port);
	return r;
}

static int packet_open(struct pl_port **ret_port, const struct pl_uri *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag)
{
	struct settings set;
	int r = read_settings(uri, &set, diag);

	set.tap_bytes = mode == PL_PORT_RECV ? options->tap_bytes : 0;
	if (r == 0 && set.tap_bytes > 0)
		r = pl_iface_tap_rules(uri, &set.rules, diag);
	return r < 0 ? r : open_with(ret_port, uri->target, &set, mode, options, diag);
}

int pl_packet_open_rules(struct pl_port **ret_port, const char *name,
	const struct pl_filter_rules *rules, const struct pl_port_options *options,
	struct pl_diag *diag)
{
	const struct pl_port_options alone = { .rights = options->rights };
	const struct settings set = {
		.fanout = 1, .ring = RING_DEFAULT, .block_bytes = BLOCK_BYTES, .rules = *rules
	};
	int r = open_with(ret_port, name, &set, PL_PORT_RECV, &alone, diag);

	if (r == 0)
		(*ret_port)->driver = &pl_port_packet;
	return r;
}

/* ---- receiving ---- */

static struct tpacket_block_desc *block_at(const struct packet_port *self, uint32_t i)
{
	return (struct tpacket_block_desc *)(void *)(self->ring +
						     (size_t)i * self->set.block_bytes);
}

/* Puts the outer VLAN tag, which the kernel took out, back. Returns the frame's new start. */
static uint8_t *put_tag_back(uint8_t *frame, const struct tpacket3_hdr *h)
{
	uint16_t tpid =
		(h->tp_status & TP_STATUS_VLAN_TPID_VALID) != 0 ? h->hv1.tp_vlan_tpid : ETH_P_8021Q;
	uint16_t tci = (uint16_t)h->hv1.tp_vlan_tci;

	memmove(frame - TAG_BYTES, frame, 2 * ETH_ALEN);
	frame -= TAG_BYTES;
	frame[12] = (uint8_t)(tpid >> 8);
	frame[13] = (uint8_t)tpid;
	frame[14] = (uint8_t)(tci >> 8);
	frame[15] = (uint8_t)tci;
	return frame;
}

static uint64_t time_of(const struct tpacket3_hdr *h)
{
	return (uint64_t)h->tp_sec * 1000000000u + h->tp_nsec;
}

static unsigned int direction_of(const struct tpacket3_hdr *h)
{
	const struct sockaddr_ll *sa =
		(const void *)((const uint8_t *)h + TPACKET_ALIGN(sizeof(*h)));

	return sa->sll_pkttype;
}

/* Reads the virtio_net_hdr in front of the frame. Call it before put_tag_back, which overwrites the
 * header. */
static void tell_gso(const struct packet_port *self, struct pl_packet *p, const uint8_t *frame)
{
	struct virtio_net_hdr v;

	p->gso = PL_GSO_UNTOLD;
	if (!self->vnet)
		return;
	memcpy(&v, frame - sizeof(v), sizeof(v));
	p->gso_size = v.gso_size;
	switch (v.gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_NONE:
		p->gso = PL_GSO_NONE;
		break;
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV6:
		p->gso = PL_GSO_TCP;
		break;
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		p->gso = PL_GSO_UDP;
		break;
	default:
		p->gso = PL_GSO_OTHER;
	}
}

static void fill(struct packet_port *self, struct pl_packet *p, const struct tpacket3_hdr *h)
{
	uint8_t *frame = (uint8_t *)(uintptr_t)h + h->tp_mac;

	tell_gso(self, p, frame);
	p->len = h->tp_snaplen;
	p->wire_len = h->tp_len;
	if ((h->tp_status & TP_STATUS_VLAN_VALID) != 0) {
		frame = put_tag_back(frame, h);
		p->len += TAG_BYTES;
		p->wire_len += TAG_BYTES;
	}
	p->data = frame;
	p->ts_ns = time_of(h);
	p->clock = pl_packet_clock(h->tp_status);
	p->link = PL_LINK_ETHERNET;
	p->out = self->set.rules.all && direction_of(h) == PACKET_OUTGOING;
	if (p->len < p->wire_len && !self->set.rules.all)
		self->iface.port.stats.cut++;
}

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Starts a row if the frame holds several datagrams; false: it does not. The frame passed the
 * filter, but lengths are checked all the same. */
static bool begin_row(struct packet_port *self, const struct tpacket3_hdr *h)
{
	const uint8_t *frame = (const uint8_t *)h + h->tp_mac;
	struct row *row = &self->row;
	struct virtio_net_hdr v;
	uint32_t at = ETH_HLEN;
	bool v4;

	memcpy(&v, frame - sizeof(v), sizeof(v));
	if (v.gso_type != VIRTIO_NET_HDR_GSO_UDP_L4 || v.gso_size == 0)
		return false;
	if (be16(frame + 12) == ETH_P_8021Q || be16(frame + 12) == ETH_P_8021AD)
		at += TAG_BYTES;
	v4 = be16(frame + at - 2) == ETH_P_IP;
	if (h->tp_snaplen < at + (v4 ? 20 : 40) + 8 || frame[at + (v4 ? 9 : 6)] != IPPROTO_UDP)
		return false;
	row->src = v4 ? pl_addr_v4(frame + at + 12) : pl_addr_v6(frame + at + 8);
	row->dst = v4 ? pl_addr_v4(frame + at + 16) : pl_addr_v6(frame + at + 24);
	at += v4 ? (frame[at] & 15u) * 4 : 40;
	if (h->tp_snaplen <= at + 8)
		return false;
	row->sport = be16(frame + at);
	row->dport = be16(frame + at + 2);
	row->at = frame + at + 8;
	row->left = h->tp_snaplen - at - 8;
	row->each = v.gso_size;
	return true;
}

static void take_of_row(struct row *row, const struct tpacket3_hdr *h, struct pl_packet *p)
{
	uint32_t len = row->left < row->each ? row->left : row->each;

	*p = (struct pl_packet){ .data = row->at,
		.len = len,
		.wire_len = len,
		.ts_ns = time_of(h),
		.clock = pl_packet_clock(h->tp_status),
		.link = PL_LINK_UDP,
		.sport = row->sport,
		.dport = row->dport,
		.src = row->src,
		.dst = row->dst };
	row->at += len;
	row->left -= len;
}

static void give_block_back(struct packet_port *self)
{
	struct tpacket_block_desc *b = block_at(self, self->block);

	__atomic_store_n(&b->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	self->block = (self->block + 1) % self->blocks;
}

/* Receives from one block at a time. */
static int take(struct packet_port *self, struct pl_batch *batch)
{
	uint32_t n = 0;

	if (self->ring == NULL)
		return 0;
	if (self->left == 0) {
		const struct tpacket_block_desc *b = block_at(self, self->block);

		if ((__atomic_load_n(&b->hdr.bh1.block_status, __ATOMIC_ACQUIRE) &
			    TP_STATUS_USER) == 0)
			return 0;
		self->left = b->hdr.bh1.num_pkts;
		if (self->left == 0) {
			give_block_back(self);
			return 0;
		}
		self->next =
			(const struct tpacket3_hdr *)(const void *)((const uint8_t *)b +
								    b->hdr.bh1.offset_to_first_pkt);
	}
	while (n < PL_BATCH_MAX && self->left > 0) {
		const struct tpacket3_hdr *h = self->next;

		if (self->set.rules.all)
			fill(self, &batch->pkts[n++], h);
		else if (self->row.left == 0 && h->tp_snaplen == PL_IFACE_FRAGMENT)
			self->iface.port.stats.fragments++;
		else if (self->row.left > 0 || begin_row(self, h))
			take_of_row(&self->row, h, &batch->pkts[n++]);
		else
			fill(self, &batch->pkts[n++], h);
		if (self->row.left > 0)
			continue;
		pl_prefetch((const uint8_t *)h + h->tp_next_offset + 64);
		self->next = (const struct tpacket3_hdr *)(const void *)((const uint8_t *)h +
									 h->tp_next_offset);
		self->left--;
	}
	if (n == 0) /* the block had only fragments */
		give_block_back(self);
	return (int)n;
}

static int packet_recv(
	struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	struct packet_port *self = (struct packet_port *)port;
	int (*const from)(struct packet_port * self, struct pl_batch * batch) =
		self->forwards ? pl_packet_direct_take : take;
	int n = from(self, ret_batch), r;

	if (n > 0)
		return n;
	r = pl_iface_wait(&self->iface, timeout_ms, diag);
	return r <= 0 ? r : from(self, ret_batch);
}

static void packet_release(struct pl_port *port, struct pl_batch *batch)
{
	struct packet_port *self = (struct packet_port *)port;

	(void)batch;
	if (self->left == 0 && !self->forwards)
		give_block_back(self);
}

/* ---- sending ---- */

static int packet_send(struct pl_port *port, const struct pl_batch *batch, struct pl_diag *diag)
{
	struct packet_port *self = (struct packet_port *)port;
	uint32_t frames = 0, sent;
	int r = 0;

	if (self->forwards)
		pl_iface_look(&self->iface);
	else
		r = pl_iface_wait(&self->iface, 0, diag);
	if (!self->iface.up || (self->forwards && self->direct == NULL)) {
		if (r >= 0)
			pl_diag_set(diag, "%s is down", self->iface.link.name);
		return -ENETDOWN;
	}
	while (frames < batch->n && batch->pkts[frames].link == PL_LINK_ETHERNET)
		frames++;
	sent = raw_send(self->forwards ? pl_packet_direct_fd(self) : self->iface.data_fd,
		batch->pkts, frames, &r);
	if (r == 0 && frames == batch->n)
		return (int)sent;
	if (r == 0) {
		pl_diag_set(diag, "%s: only Ethernet frames can be sent", port->name);
		return sent > 0 ? (int)sent : -EINVAL;
	}
	if (r == -EMSGSIZE) {
		pl_diag_set(diag, "%s: a frame of %u bytes is too long", port->name,
			batch->pkts[sent].len);
		return sent > 0 ? (int)sent : -EINVAL;
	}
	port->stats.errors++;
	pl_diag_set(diag, "%s: %s", port->name,
		r == -ETIMEDOUT ? "the interface accepts no frames" : strerror(-r));
	return sent > 0 ? (int)sent : r;
}

/* ---- the end ---- */

static int packet_close(struct pl_port *port)
{
	struct packet_port *self = (struct packet_port *)port;

	pl_packet_socket_close(self);
	pl_packet_group_put(self->group);
	pl_iface_close(&self->iface);
	free(port->name);
	free(self);
	return 0;
}

const struct pl_port_driver pl_port_packet = {
	.scheme = "packet",
	.can = PL_PORT_CAN_LIVE | PL_PORT_CAN_SEND | PL_PORT_CAN_INTERFACE,
	.keys = keys,
	.check = packet_check,
	.open = packet_open,
	.recv = packet_recv,
	.release = packet_release,
	.send = packet_send,
	.stats = pl_packet_socket_stats,
	.close = packet_close,
};
