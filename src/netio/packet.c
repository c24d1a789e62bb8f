/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port driver of AF_PACKET sockets: TPACKET_V3 blocks for receiving, messages past the queueing discipline for
 * sending (raw_send.h). The kernel hands over copies: the host sees every frame too.
 *
 * Which sockets share a group (fanout) is said by pl_port_options.with; the member is chosen by a hash of the
 * source address. Until a socket has joined its group a filter refuses everything, so nothing is received twice.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/prefetch.h"
#include "netio/caps.h"
#include "netio/iface.h"
#include "netio/raw_send.h"
#include "netio/rights.h"

#ifndef PACKET_IGNORE_OUTGOING /* Linux 4.20 */
#define PACKET_IGNORE_OUTGOING 23
#endif
#ifndef PACKET_FANOUT_FLAG_UNIQUEID /* Linux 4.9 */
#define PACKET_FANOUT_FLAG_UNIQUEID 0x2000
#endif

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4 /* Linux 6.2 */
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define FANOUT_MAX   256
#define RING_DEFAULT 16384 /* frames of FRAME_BYTES; shorter ones take less */
#define FRAME_BYTES  2048u
#define BLOCK_BYTES  (256u << 10)
#define BLOCK_LEAST  (8u << 10)
#define BLOCK_MOST   (1u << 20)
#define RETIRE_MS    2 /* a block that is not full is handed over after so long */
#define TAG_BYTES    4u

/* What the members of a fanout group have in common. */
struct group {
	pthread_mutex_t lock;
	unsigned int refs, members; /* ports; of them, those that have a socket in the group */
	uint16_t id;
};

struct settings {
	uint64_t fanout;
	uint32_t ring;
	uint64_t block_bytes;
	struct pl_filter_rules rules;
};

/*
 * Datagrams in a row behind one header: what a sender leaves to its card to take apart arrives in one piece over
 * veth, and from a virtual machine's host. They are handed over as datagrams. Kernels before 6.2 drop such a frame
 * on the way to a ring, and count it.
 */
struct row {
	const uint8_t *at; /* the next one's bytes */
	uint32_t left;     /* bytes; 0 = there is no row */
	uint32_t each;     /* bytes, the last one's may be fewer */
	struct pl_addr src, dst;
	uint16_t sport, dport;
};

struct packet_port {
	struct pl_iface iface; /* first */
	struct settings set;
	const struct pl_rights *rights;
	struct group *group; /* NULL: alone */
	uint8_t *ring;
	size_t ring_bytes;
	uint32_t blocks;
	uint32_t block;                  /* that is being read */
	uint32_t left;                   /* packets of it that were not lent yet */
	const struct tpacket3_hdr *next; /* the first of them */
	struct row row;                  /* what is left of the frame at next */
};

static const char *const keys[] = { PL_IFACE_KEYS, "fanout", "block", NULL };

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
		pl_diag_set(diag, "'block' in the URI: a power of two from 8 KiB to 1 MiB");
		r = -EINVAL;
	}
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

/* ---- opening ---- */

static int set_option(int fd, int name, const void *value, size_t len)
{
	return setsockopt(fd, SOL_PACKET, name, value, (socklen_t)len) < 0 ? -errno : 0;
}

static int set_int(int fd, int name, int value)
{
	return set_option(fd, name, &value, sizeof(value));
}

static int set_filter(int fd, struct sock_filter *code, int n)
{
	struct sock_fprog program = { .len = (uint16_t)n, .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
}

static int refuse_all(int fd)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, 0) };

	return set_filter(fd, code, 1);
}

static int take_reports(int fd, const struct pl_filter_rules *rules)
{
	struct sock_filter *code = calloc(PL_IFACE_CBPF_MAX, sizeof(*code));
	int r;

	if (code == NULL)
		return -ENOMEM;
	r = pl_iface_cbpf(rules, code, PL_IFACE_CBPF_MAX);
	if (r > 0)
		r = set_filter(fd, code, r);
	free(code);
	return r;
}

static int map_ring(struct packet_port *self, int fd)
{
	void *p = mmap(NULL, self->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	self->ring = p;
	return 0;
}

static int make_ring(struct packet_port *self, int fd)
{
	const uint32_t block = (uint32_t)self->set.block_bytes;
	struct tpacket_req3 req = {
		.tp_block_size = block, .tp_frame_size = FRAME_BYTES, .tp_retire_blk_tov = RETIRE_MS
	};
	int r;

	/* Two blocks at least: one to read, one to fill. */
	req.tp_block_nr = self->set.ring / (block / FRAME_BYTES);
	if (req.tp_block_nr < 2)
		req.tp_block_nr = 2;
	req.tp_frame_nr = req.tp_block_nr * (block / FRAME_BYTES);
	self->blocks = req.tp_block_nr;
	self->ring_bytes = (size_t)req.tp_block_nr * block;
	self->block = self->left = self->row.left = 0;
	r = set_int(fd, PACKET_VERSION, TPACKET_V3);
	/* Room in front of the frame for the tag that the kernel took out. */
	if (r == 0)
		r = set_int(fd, PACKET_RESERVE, 2 * TAG_BYTES);
	/* Says of each frame whether it is a row of datagrams. */
	if (r == 0)
		r = set_int(fd, PACKET_VNET_HDR, 1);
	if (r == 0)
		r = set_option(fd, PACKET_RX_RING, &req, sizeof(req));
	return r == 0 ? map_ring(self, fd) : r;
}

static int bind_to(int fd, int ifindex, uint16_t protocol)
{
	struct sockaddr_ll sa = {
		.sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = ifindex
	};

	return bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
}

/* The first member of a group makes it and tells how to choose; a group ends with its last socket. */
static int join(struct group *g, int fd)
{
	uint32_t wanted = PACKET_FANOUT_CBPF << 16;
	struct sock_filter code[64];
	struct sock_fprog program = { .filter = code };
	socklen_t len = sizeof(wanted);
	int r;

	pthread_mutex_lock(&g->lock);
	if (g->members > 0)
		wanted |= g->id;
	else
		wanted |= PACKET_FANOUT_FLAG_UNIQUEID << 16;
	r = set_option(fd, PACKET_FANOUT, &wanted, sizeof(wanted));
	if (r == 0 && g->members == 0) {
		r = pl_iface_cbpf_source(code, sizeof(code) / sizeof(code[0]));
		program.len = r > 0 ? (uint16_t)r : 0;
		if (r > 0)
			r = set_option(fd, PACKET_FANOUT_DATA, &program, sizeof(program));
		if (r == 0 && getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &wanted, &len) < 0)
			r = -errno;
		g->id = (uint16_t)wanted;
	}
	if (r == 0)
		g->members++;
	pthread_mutex_unlock(&g->lock);
	return r;
}

static void leave(struct group *g)
{
	if (g == NULL)
		return;
	pthread_mutex_lock(&g->lock);
	g->members--;
	pthread_mutex_unlock(&g->lock);
}

static void put_group(struct group *g)
{
	unsigned int left;

	if (g == NULL)
		return;
	pthread_mutex_lock(&g->lock);
	left = --g->refs;
	pthread_mutex_unlock(&g->lock);
	if (left > 0)
		return;
	pthread_mutex_destroy(&g->lock);
	free(g);
}

static void tell(const char *name, int error, struct pl_diag *diag)
{
	char caps[96];

	if (error == EPERM || error == EACCES) {
		pl_caps_text(pl_caps_missing(PL_CAP_NET_RAW), caps, sizeof(caps));
		pl_diag_set(diag, "%s: a packet socket needs %s", name,
			caps[0] != '\0' ? caps : "what this process may not do (EPERM)");
	} else if (error == ENOMEM) {
		pl_diag_set(diag, "%s: no memory for the ring; a smaller ring=", name);
	} else if (error == E2BIG) {
		pl_diag_set(diag, "%s: too many ports, addresses or VLANs for the kernel's filter",
			name);
	} else {
		pl_diag_set(diag, "%s: packet socket: %s", name, strerror(error));
	}
}

static int prepare_recv(struct packet_port *self, int fd)
{
	int r = refuse_all(fd);

	if (r == 0)
		r = make_ring(self, fd);
	if (r == 0)
		r = set_int(fd, PACKET_IGNORE_OUTGOING, 1);
	if (r == 0)
		r = bind_to(fd, self->iface.link.ifindex, ETH_P_ALL);
	if (r == 0 && self->group != NULL) {
		r = join(self->group, fd);
		if (r < 0)
			return r;
	}
	if (r == 0)
		r = take_reports(fd, &self->set.rules);
	if (r < 0 && self->group != NULL)
		leave(self->group);
	return r;
}

static void unmap(struct packet_port *self)
{
	if (self->ring != NULL)
		munmap(self->ring, self->ring_bytes);
	self->ring = NULL;
}

static int open_socket(struct packet_port *self, struct pl_diag *diag)
{
	const struct pl_rights *rights = self->rights;
	int fd = rights != NULL ? rights->socket(rights, AF_PACKET)
				: socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		r = rights != NULL ? fd : -errno;
	else if (self->iface.port.mode == PL_PORT_RECV)
		r = prepare_recv(self, fd);
	else
		r = raw_send_prepare(fd);
	if (r == 0 && self->iface.port.mode == PL_PORT_SEND)
		r = bind_to(fd, self->iface.link.ifindex, 0);
	if (r == 0)
		return pl_iface_set_data(&self->iface, fd);
	tell(self->iface.link.name, -r, diag);
	unmap(self);
	if (fd >= 0)
		close(fd);
	return r;
}

static int again(struct pl_iface *iface, struct pl_diag *diag)
{
	return open_socket((struct packet_port *)iface, diag);
}

/* The kernel's counts begin anew when they are read. */
static void packet_stats(struct pl_port *port)
{
	struct packet_port *self = (struct packet_port *)port;
	struct tpacket_stats_v3 s = { 0 };
	socklen_t len = sizeof(s);

	port->stats.rcvbuf_bytes = self->ring_bytes;
	if (port->mode == PL_PORT_RECV && self->iface.data_fd >= 0 &&
		getsockopt(self->iface.data_fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0)
		port->stats.kernel_drops += s.tp_drops;
}

static void close_socket(struct packet_port *self)
{
	int fd = self->iface.data_fd;

	if (fd < 0)
		return;
	packet_stats(&self->iface.port);
	leave(self->group);
	self->iface.data_fd = -1;
	unmap(self);
	close(fd);
	self->left = self->row.left = 0;
}

static void lost(struct pl_iface *iface)
{
	close_socket((struct packet_port *)iface);
}

static const struct pl_iface_ops ops = { .lost = lost, .again = again };

static int packet_close(struct pl_port *port);

static int open_group(struct packet_port *self, const struct pl_port_options *options)
{
	if (options->with != NULL) {
		self->group = ((struct packet_port *)options->with)->group;
		pthread_mutex_lock(&self->group->lock);
		self->group->refs++;
		pthread_mutex_unlock(&self->group->lock);
		return 0;
	}
	self->group = calloc(1, sizeof(*self->group));
	if (self->group == NULL)
		return -ENOMEM;
	pthread_mutex_init(&self->group->lock, NULL);
	self->group->refs = 1;
	return 0;
}

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
	r = pl_iface_open(&self->iface, name, &ops, diag);
	if (r < 0)
		goto fail;
	if (asprintf(&self->iface.port.name, "packet:%s", self->iface.link.name) < 0) {
		self->iface.port.name = NULL;
		r = -ENOMEM;
	}
	if (r == 0 && mode == PL_PORT_RECV && options->of > 1)
		r = open_group(self, options);
	if (r < 0) {
		pl_diag_set(diag, "%s", strerror(-r));
		goto fail;
	}
	r = open_socket(self, diag);
	if (r < 0)
		goto fail;
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

/* The kernel took the outer VLAN tag out of the frame; it goes back where it was on the wire. */
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

static void fill(struct packet_port *self, struct pl_packet *p, const struct tpacket3_hdr *h)
{
	uint8_t *frame = (uint8_t *)(uintptr_t)h + h->tp_mac;

	p->len = h->tp_snaplen;
	p->wire_len = h->tp_len;
	if ((h->tp_status & TP_STATUS_VLAN_VALID) != 0) {
		frame = put_tag_back(frame, h);
		p->len += TAG_BYTES;
		p->wire_len += TAG_BYTES;
	}
	p->data = frame;
	p->ts_ns = time_of(h);
	p->link = PL_LINK_ETHERNET;
	if (p->len < p->wire_len)
		self->iface.port.stats.cut++;
}

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* The frame passed the filter, so its headers are there; lengths are checked all the same. */
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
	if (h->tp_snaplen < at + 40 + 8 || frame[at + (v4 ? 9 : 6)] != IPPROTO_UDP)
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

static void take_of_row(struct row *row, uint64_t ts_ns, struct pl_packet *p)
{
	uint32_t len = row->left < row->each ? row->left : row->each;

	*p = (struct pl_packet){ .data = row->at,
		.len = len,
		.wire_len = len,
		.ts_ns = ts_ns,
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

/* From one block at a time. */
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

		if (self->row.left == 0 && h->tp_snaplen == PL_IFACE_FRAGMENT)
			self->iface.port.stats.fragments++;
		else if (self->row.left > 0 || begin_row(self, h))
			take_of_row(&self->row, time_of(h), &batch->pkts[n++]);
		else
			fill(self, &batch->pkts[n++], h);
		if (self->row.left > 0)
			continue;
		pl_prefetch((const uint8_t *)h + h->tp_next_offset + 64);
		self->next = (const struct tpacket3_hdr *)(const void *)((const uint8_t *)h +
									 h->tp_next_offset);
		self->left--;
	}
	if (n == 0) /* it had fragments only */
		give_block_back(self);
	return (int)n;
}

static int packet_recv(
	struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	struct packet_port *self = (struct packet_port *)port;
	int n = take(self, ret_batch), r;

	if (n > 0)
		return n;
	r = pl_iface_wait(&self->iface, timeout_ms, diag);
	return r <= 0 ? r : take(self, ret_batch);
}

static void packet_release(struct pl_port *port, struct pl_batch *batch)
{
	struct packet_port *self = (struct packet_port *)port;

	(void)batch;
	if (self->left == 0)
		give_block_back(self);
}

/* ---- sending ---- */

static int packet_send(struct pl_port *port, const struct pl_batch *batch, struct pl_diag *diag)
{
	struct packet_port *self = (struct packet_port *)port;
	uint32_t frames = 0, sent;
	int r;

	r = pl_iface_wait(&self->iface, 0, diag);
	if (!self->iface.up) {
		if (r >= 0)
			pl_diag_set(diag, "%s is down", self->iface.link.name);
		return -ENETDOWN;
	}
	while (frames < batch->n && batch->pkts[frames].link == PL_LINK_ETHERNET)
		frames++;
	sent = raw_send(self->iface.data_fd, batch->pkts, frames, &r);
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
		r == -ETIMEDOUT ? "the interface takes no frames" : strerror(-r));
	return sent > 0 ? (int)sent : r;
}

/* ---- the end ---- */

static int packet_close(struct pl_port *port)
{
	struct packet_port *self = (struct packet_port *)port;

	close_socket(self);
	put_group(self->group);
	pl_iface_close(&self->iface);
	free(port->name);
	free(self);
	return 0;
}

const struct pl_port_driver pl_port_packet = {
	.scheme = "packet",
	.keys = keys,
	.check = packet_check,
	.open = packet_open,
	.recv = packet_recv,
	.release = packet_release,
	.send = packet_send,
	.stats = packet_stats,
	.close = packet_close,
};
