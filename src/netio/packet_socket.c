/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens packet sockets: their ring of blocks, their filter, their fanout group.
 *
 * pl_port_options.with names the port whose fanout group a socket joins; a hash of the source
 * address chooses the member. Until a socket has joined its group, its filter refuses every frame,
 * so none is received twice.
 */
#include "netio/packet_state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "netio/caps.h"
#include "netio/link.h"
#include "netio/raw_send.h"

#ifndef PACKET_IGNORE_OUTGOING /* Linux 4.20 */
#define PACKET_IGNORE_OUTGOING 23
#endif
#ifndef PACKET_FANOUT_FLAG_UNIQUEID /* Linux 4.9 */
#define PACKET_FANOUT_FLAG_UNIQUEID 0x2000
#endif

#define FRAME_BYTES 2048u
#define RETIRE_MS   2 /* time-out after which a block that is not full is delivered */

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

static int take_frames(int fd, const struct settings *set)
{
	struct sock_filter *code = calloc(PL_IFACE_CBPF_MAX, sizeof(*code));
	int r;

	if (code == NULL)
		return -ENOMEM;
	r = set->rules.all ? pl_iface_cbpf_all(set->tap_bytes, code, PL_IFACE_CBPF_MAX)
			   : pl_iface_cbpf(&set->rules, code, PL_IFACE_CBPF_MAX);
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

/* Returns true from Linux 6.2 on. Before, virtio_net_hdr cannot describe UDP segmentation, and a
 * ring with these headers drops such frames; a tap omits the headers rather than lose frames. */
static bool gives_all(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 2));
}

static int make_ring(struct packet_port *self, int fd)
{
	const uint32_t block = (uint32_t)self->set.block_bytes;
	struct tpacket_req3 req = {
		.tp_block_size = block, .tp_frame_size = FRAME_BYTES, .tp_retire_blk_tov = RETIRE_MS
	};
	int r;

	/* At least two blocks: one to read, one for the kernel to fill. */
	req.tp_block_nr = self->set.ring / (block / FRAME_BYTES);
	if (req.tp_block_nr < 2)
		req.tp_block_nr = 2;
	req.tp_frame_nr = req.tp_block_nr * (block / FRAME_BYTES);
	self->blocks = req.tp_block_nr;
	self->ring_bytes = (size_t)req.tp_block_nr * block;
	self->block = self->left = self->row.left = 0;
	r = set_int(fd, PACKET_VERSION, TPACKET_V3);
	/* Room in front of the frame for put_tag_back. */
	if (r == 0)
		r = set_int(fd, PACKET_RESERVE, 2 * TAG_BYTES);
	/* A virtio_net_hdr in front of each frame shows whether the frame stands for several
	 * packets. */
	self->vnet = !self->set.rules.all || gives_all();
	if (r == 0 && self->vnet)
		r = set_int(fd, PACKET_VNET_HDR, 1);
	/* Frames get the NIC's time where there is one, else the kernel's. */
	if (r == 0 && pl_packet_takes_nic(&self->set))
		r = set_int(fd, PACKET_TIMESTAMP, SOF_TIMESTAMPING_RAW_HARDWARE);
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

/* Joins the fanout group; the first member creates it and sets the program that chooses. The kernel
 * removes a group with its last socket. */
static int join(struct pl_packet_group *g, int fd)
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

static void leave(struct pl_packet_group *g)
{
	if (g == NULL)
		return;
	pthread_mutex_lock(&g->lock);
	g->members--;
	pthread_mutex_unlock(&g->lock);
}

void pl_packet_group_put(struct pl_packet_group *g)
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
			caps[0] != '\0' ? caps : "privileges that this process lacks (EPERM)");
	} else if (error == ENOMEM) {
		pl_diag_set(diag, "%s: no memory for the ring; use a smaller ring=", name);
	} else if (error == E2BIG) {
		pl_diag_set(diag, "%s: too many ports, addresses or VLANs for the kernel's filter",
			name);
	} else {
		pl_diag_set(diag, "%s: packet socket: %s", name, strerror(error));
	}
}

/* Joins the group, if any, and only then takes frames. */
static int start(const struct packet_port *self, int fd)
{
	int r = self->group != NULL ? join(self->group, fd) : 0;

	if (r < 0)
		return r;
	r = take_frames(fd, &self->set);
	if (r < 0)
		leave(self->group);
	return r;
}

static int prepare_recv(struct packet_port *self, int fd)
{
	int r = refuse_all(fd);

	if (r == 0)
		r = make_ring(self, fd);
	/* Frames that leave by a loopback would be received a second time as they enter. */
	if (r == 0 && (!self->set.rules.all || pl_link_is_loopback(self->iface.link.name)))
		r = set_int(fd, PACKET_IGNORE_OUTGOING, 1);
	if (r == 0)
		r = bind_to(fd, self->iface.link.ifindex, ETH_P_ALL);
	return r == 0 ? start(self, fd) : r;
}

static int make_socket(const struct packet_port *self)
{
	const struct pl_rights *rights = self->rights;
	int fd = rights != NULL ? rights->socket(rights, AF_PACKET)
				: socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	return fd < 0 && rights == NULL ? -errno : fd;
}

/* Prepares both sockets of a port that forwards. */
static int prepare_both(struct packet_port *self, int fd)
{
	int send_fd = make_socket(self), r;

	if (send_fd < 0)
		return send_fd;
	r = pl_packet_direct_open(self, fd, send_fd, self->set.tap_bytes);
	if (r == 0)
		r = bind_to(send_fd, self->iface.link.ifindex, 0);
	return r == 0 ? bind_to(fd, self->iface.link.ifindex, ETH_P_ALL) : r;
}

static void unmap(struct packet_port *self)
{
	if (self->ring != NULL)
		munmap(self->ring, self->ring_bytes);
	self->ring = NULL;
}

int pl_packet_socket_open(struct packet_port *self, struct pl_diag *diag)
{
	int fd = make_socket(self), r;

	if (fd < 0)
		r = fd;
	else if (self->forwards)
		r = prepare_both(self, fd);
	else if (self->iface.port.mode == PL_PORT_RECV)
		r = prepare_recv(self, fd);
	else
		r = raw_send_prepare(fd);
	if (r == 0 && self->iface.port.mode == PL_PORT_SEND)
		r = bind_to(fd, self->iface.link.ifindex, 0);
	if (r == 0) {
		r = pl_iface_set_data(&self->iface, fd);
		if (r == 0)
			return 0;
		/* prepare_recv() joined it. */
		if (!self->forwards && self->iface.port.mode == PL_PORT_RECV)
			leave(self->group);
	}
	tell(self->iface.link.name, -r, diag);
	unmap(self);
	pl_packet_direct_close(self);
	if (fd >= 0)
		close(fd);
	return r;
}

void pl_packet_socket_stats(struct pl_port *port)
{
	struct packet_port *self = (struct packet_port *)port;
	struct tpacket_stats_v3 s = { 0 };
	socklen_t len = sizeof(s);

	port->stats.rcvbuf_bytes = self->ring_bytes;
	if (port->mode == PL_PORT_RECV && self->iface.data_fd >= 0 &&
		getsockopt(self->iface.data_fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0)
		port->stats.kernel_drops += s.tp_drops;
}

void pl_packet_socket_close(struct packet_port *self)
{
	int fd = self->iface.data_fd;

	if (fd < 0)
		return;
	pl_packet_socket_stats(&self->iface.port);
	leave(self->group);
	self->iface.data_fd = -1;
	unmap(self);
	pl_packet_direct_close(self);
	close(fd);
	self->left = self->row.left = 0;
}

int pl_packet_group_open(struct packet_port *self, const struct pl_port_options *options)
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
