/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet sockets without a ring, for a port that forwards: a ring delivers whole blocks, 2 ms late
 * when frames are few. Only entering frames are received. A host's stack leaves checksums to the
 * NIC, and veth does not compute them: this file does, as a NIC would (linux/virtio_net.h:
 * NEEDS_CSUM).
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "netio/packet_state.h"
#include "netio/raw_send.h"
#include "wire/layers.h"

#ifndef PACKET_IGNORE_OUTGOING /* Linux 4.20 */
#define PACKET_IGNORE_OUTGOING 23
#endif

#define AT_ONCE      64
#define ROOM         TAG_BYTES /* room in front of a frame for its VLAN tag */
#define SOCKET_BYTES (4 << 20)

/* Aligned as the kernel writes it. */
union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata)) +
		   CMSG_SPACE(sizeof(struct timespec))];
};

struct pl_packet_direct {
	int send_fd;
	uint32_t each; /* most bytes received of a frame */
	uint8_t *frames;
	struct mmsghdr messages[AT_ONCE];
	struct iovec parts[AT_ONCE][2];
	struct virtio_net_hdr heads[AT_ONCE];
	union control controls[AT_ONCE];
};

static int set_on(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

void pl_packet_direct_close(struct packet_port *self)
{
	struct pl_packet_direct *d = self->direct;

	if (d == NULL)
		return;
	if (d->send_fd >= 0)
		close(d->send_fd);
	free(d->frames);
	free(d);
	self->direct = NULL;
}

/* Prepares both sockets: fd, which receives, and send_fd. */
int pl_packet_direct_open(struct packet_port *self, int fd, int send_fd, uint32_t bytes)
{
	struct pl_packet_direct *d = calloc(1, sizeof(*d));
	int r;

	if (d == NULL) {
		close(send_fd);
		return -ENOMEM;
	}
	self->direct = d;
	d->send_fd = send_fd;
	d->each = bytes;
	d->frames = malloc((size_t)AT_ONCE * (bytes + ROOM));
	if (d->frames == NULL)
		return -ENOMEM;
	r = raw_send_prepare(send_fd);
	if (r == 0)
		r = set_on(fd, SOL_PACKET, PACKET_VNET_HDR, 1);
	if (r == 0)
		r = set_on(fd, SOL_PACKET, PACKET_AUXDATA, 1);
	if (r == 0)
		r = set_on(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	if (r == 0)
		r = set_on(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	/* SO_RCVBUFFORCE needs CAP_NET_ADMIN; the limit for other processes holds only about 180
	 * frames. */
	if (r == 0 && set_on(fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BYTES) < 0)
		(void)set_on(fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BYTES);
	return r;
}

int pl_packet_direct_fd(const struct packet_port *self)
{
	return self->direct->send_fd;
}

/* ---- receiving ---- */

static void prepare(struct pl_packet_direct *d)
{
	for (unsigned int i = 0; i < AT_ONCE; i++) {
		d->parts[i][0] = (struct iovec){ &d->heads[i], sizeof(d->heads[i]) };
		d->parts[i][1] =
			(struct iovec){ d->frames + (size_t)i * (d->each + ROOM) + ROOM, d->each };
		d->messages[i] =
			(struct mmsghdr){ .msg_hdr = { .msg_iov = d->parts[i],
						  .msg_iovlen = 2,
						  .msg_control = &d->controls[i],
						  .msg_controllen = sizeof(d->controls[i]) } };
	}
}

/* Computes the checksum that the sender left to a NIC: the field holds the sum of the
 * pseudo-header. */
static void complete_checksum(const struct virtio_net_hdr *v, uint8_t *frame, uint32_t len)
{
	uint16_t sum;
	const uint32_t at = (uint32_t)v->csum_start + v->csum_offset;

	if ((v->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) == 0 || at + 2 > len)
		return;
	sum = pl_checksum_fold(pl_checksum_add(0, frame + v->csum_start, len - v->csum_start));
	if (sum == 0)
		sum = 0xffff;
	frame[at] = (uint8_t)(sum >> 8);
	frame[at + 1] = (uint8_t)sum;
}

static void put_tag(struct pl_packet *p, uint8_t *frame, const struct tpacket_auxdata *aux)
{
	const uint16_t tpid =
		(aux->tp_status & TP_STATUS_VLAN_TPID_VALID) != 0 ? aux->tp_vlan_tpid : ETH_P_8021Q;

	memmove(frame - TAG_BYTES, frame, 2 * ETH_ALEN);
	frame -= TAG_BYTES;
	frame[12] = (uint8_t)(tpid >> 8);
	frame[13] = (uint8_t)tpid;
	frame[14] = (uint8_t)(aux->tp_vlan_tci >> 8);
	frame[15] = (uint8_t)aux->tp_vlan_tci;
	p->data = frame;
	p->len += TAG_BYTES;
	p->wire_len += TAG_BYTES;
}

static void fill(struct pl_packet_direct *d, unsigned int i, struct pl_packet *p)
{
	struct msghdr *m = &d->messages[i].msg_hdr;
	uint8_t *frame = d->parts[i][1].iov_base;
	const uint32_t whole = d->messages[i].msg_len;

	*p = (struct pl_packet){
		.data = frame, .link = PL_LINK_ETHERNET, .clock = PL_STAMP_KERNEL
	};
	p->wire_len = whole > sizeof(d->heads[i]) ? whole - (uint32_t)sizeof(d->heads[i]) : 0;
	p->len = p->wire_len;
	/* A frame that was cut keeps its field: the sum needs all bytes. */
	if ((m->msg_flags & MSG_TRUNC) == 0)
		complete_checksum(&d->heads[i], frame, p->len);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		struct tpacket_auxdata aux;
		struct timespec ts;

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			p->ts_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
		} else if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
			/* tp_len is the whole length of a frame that was cut, without its tag. */
			if (aux.tp_len > p->wire_len)
				p->wire_len = aux.tp_len;
			if ((aux.tp_status & TP_STATUS_VLAN_VALID) != 0)
				put_tag(p, frame, &aux);
		}
	}
}

int pl_packet_direct_take(struct packet_port *self, struct pl_batch *batch)
{
	struct pl_packet_direct *d = self->direct;
	int n;

	if (d == NULL || self->iface.data_fd < 0)
		return 0;
	prepare(d);
	n = recvmmsg(self->iface.data_fd, d->messages, AT_ONCE, MSG_DONTWAIT, NULL);
	if (n < 0) {
		/* ENETDOWN is not counted: the link monitor reports the interface. */
		if (errno != EAGAIN && errno != EINTR && errno != ENETDOWN)
			self->iface.port.stats.errors++;
		return 0;
	}
	for (int i = 0; i < n; i++)
		fill(d, (unsigned int)i, &batch->pkts[i]);
	return n;
}
