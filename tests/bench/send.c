/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of one size out of memory onto a wire, a veth pair whose other end counts and drops them
 * by XDP on the same processor: every way that the kernel has, against the least program, a packet
 * socket past the queueing discipline that is given 64 frames by one sendmmsg. Rates count what
 * arrived.
 *
 *   packet          a port packet:, sendmmsg past the queueing discipline (netio/raw_send.h)
 *   afxdp           a port afxdp:, its sending ring (copied by the kernel: veth has no zero copy)
 *   udp             a port udp://, sendmmsg
 *   udp-segments    the same with UDP segmentation (gso=true)
 *   packet-ring     a bare loop over PACKET_TX_RING past the queueing discipline, 64 frames a call
 *   packet-segments the least program with 32 frames in one, taken apart by the kernel
 *   (PACKET_VNET_HDR)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/complain.h"
#include "bpf/bench.skel.h"
#include "netio/port.h"
#include "netio/xdp.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "tests/bench/wire.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4 /* Linux 6.2 */
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define FRAME    106u /* a key-write of 8 bytes, its tag of 4 too */
#define HEADERS  42u
#define BATCH    64u
#define SEGMENTS 32u

struct send_case {
	const char *name, *uri;
	bool datagrams; /* what is sent has no headers of ours */
	bool segments;  /* bare, in pieces of SEGMENTS */
	bool ring;      /* bare, PACKET_TX_RING past the queueing discipline */
};

struct send_bench {
	struct pl_wire wire;
	struct pl_bpf_bench *skel;
	struct pl_xdp *drop;
	const struct send_case *c;
	uint8_t frames[BATCH][FRAME];
	uint8_t super[HEADERS + SEGMENTS * (FRAME - HEADERS)];
	struct pl_batch batch;
};

/* ---- the wire ---- */

/* An address, and the next hop's MAC address: nobody answers on the other side. */
static int address_sender(void)
{
	struct arpreq neighbour = { .arp_flags = ATF_COM | ATF_PERM,
		.arp_ha = { .sa_family = ARPHRD_ETHER, .sa_data = { 2, 0, 0, 0, 0, 2 } },
		.arp_dev = PL_WIRE_SENDER_NAME };
	struct sockaddr_in *n = (struct sockaddr_in *)(void *)&neighbour.arp_pa;
	const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r;

	if (s < 0)
		return -errno;
	r = pl_wire_address(PL_WIRE_SENDER_NAME, PL_WIRE_SENDER_ADDRESS);
	*n = (struct sockaddr_in){ .sin_family = AF_INET };
	n->sin_addr.s_addr = inet_addr(PL_WIRE_RECEIVER_ADDRESS);
	if (r == 0 && ioctl(s, SIOCSARP, &neighbour) < 0)
		r = -errno;
	close(s);
	return r;
}

static int open_wire(struct send_bench *b, struct pl_diag *diag)
{
	int r = pl_wire_open(&b->wire, 1, diag);

	if (r < 0)
		return r;
	b->skel = pl_bpf_bench__open_and_load();
	if (b->skel == NULL) {
		pl_diag_set(diag, "the XDP program does not load");
		return -EPERM;
	}
	r = pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	if (r == 0)
		r = pl_xdp_attach(&b->drop, PL_WIRE_RECEIVER_NAME,
			bpf_program__fd(b->skel->progs.pl_bench_lines), PL_XDP_NATIVE, NULL, diag);
	if (r == 0)
		r = pl_wire_enter(&b->wire, PL_WIRE_SENDER);
	if (r == 0)
		r = address_sender();
	(void)pl_wire_enter(&b->wire, PL_WIRE_HOME);
	return r;
}

static int make_frames(struct send_bench *b)
{
	static const uint8_t payload[FRAME - HEADERS] = { 1 };
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < BATCH; i++)
		r = pl_wire_frame(b->frames[i], FRAME, payload, sizeof(payload));
	if (r < 0)
		return r;
	memcpy(b->super, b->frames[0], FRAME);
	for (uint32_t i = 1; i < SEGMENTS; i++)
		memcpy(b->super + HEADERS + i * sizeof(payload), payload, sizeof(payload));
	return 0;
}

/* ---- bare ---- */

static int open_bare(const struct send_bench *b, bool segments)
{
	const struct sockaddr_ll to = { .sll_family = AF_PACKET,
		.sll_ifindex = b->wire.ifindex[PL_WIRE_SENDER] };
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1;
	/* The kernel takes pieces apart behind the queueing discipline's door only. */
	const int option = segments ? PACKET_VNET_HDR : PACKET_QDISC_BYPASS;
	int r = 0;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_PACKET, option, &one, sizeof(one)) < 0 ||
		bind(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		r = -errno;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

static int send_bare(struct send_bench *b, int fd)
{
	struct iovec iov[BATCH];
	struct mmsghdr m[BATCH] = { 0 };

	for (uint32_t i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){ b->frames[i], FRAME };
		m[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	return sendmmsg(fd, m, BATCH, 0) < 0 ? -errno : 0;
}

static int send_segments(struct send_bench *b, int fd)
{
	struct virtio_net_hdr h = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.hdr_len = HEADERS,
		.gso_size = FRAME - HEADERS,
		.csum_start = HEADERS - 8,
		.csum_offset = 6 };
	struct iovec iov[] = { { &h, sizeof(h) }, { b->super, sizeof(b->super) } };
	struct mmsghdr m[BATCH / SEGMENTS] = { 0 };

	for (uint32_t i = 0; i < BATCH / SEGMENTS; i++)
		m[i].msg_hdr = (struct msghdr){ .msg_iov = iov, .msg_iovlen = 2 };
	return sendmmsg(fd, m, BATCH / SEGMENTS, 0) < 0 ? -errno : 0;
}

static int measure_bare(
	struct send_bench *b, bool segments, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const int fd = open_bare(b, segments);
	const uint64_t start = pl_clock_mono_ns(),
		       before = pl_wire_counted(bpf_map__fd(b->skel->maps.pl_bench_frames));
	int r = fd < 0 ? fd : 0;

	while (r == 0 && pl_clock_mono_ns() - start < budget_ns)
		r = segments ? send_segments(b, fd) : send_bare(b, fd);
	ret->ns = pl_clock_mono_ns() - start;
	ret->items = pl_wire_counted(bpf_map__fd(b->skel->maps.pl_bench_frames)) - before;
	if (fd >= 0)
		close(fd);
	return r;
}

/* ---- the ring of a packet socket ---- */

#define RING_FRAME  256u /* with its header */
#define RING_FRAMES 4096u

static int map_ring(int fd, uint8_t **ret)
{
	struct tpacket_req req = { .tp_block_size = 1u << 16,
		.tp_block_nr = RING_FRAMES * RING_FRAME >> 16,
		.tp_frame_size = RING_FRAME,
		.tp_frame_nr = RING_FRAMES };
	void *p;

	if (setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &req, sizeof(req)) < 0)
		return -errno;
	p = mmap(NULL, (size_t)RING_FRAMES * RING_FRAME, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

/* One batch, into slots that the kernel gave back. */
static int send_ring(struct send_bench *b, int fd, uint8_t *ring, uint32_t *at)
{
	for (uint32_t i = 0; i < BATCH; i++) {
		struct tpacket_hdr *h =
			(void *)(ring + (size_t)((*at + i) % RING_FRAMES) * RING_FRAME);

		if (__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE)
			break;
		memcpy((uint8_t *)h + TPACKET_HDRLEN - sizeof(struct sockaddr_ll), b->frames[i],
			FRAME);
		h->tp_len = FRAME;
		__atomic_store_n(&h->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
		if (i + 1 == BATCH)
			*at += BATCH;
	}
	return send(fd, NULL, 0, 0) < 0 && errno != EAGAIN && errno != ENOBUFS ? -errno : 0;
}

static int measure_ring(struct send_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const int fd = open_bare(b, false);
	uint8_t *ring = NULL;
	uint64_t start, before;
	uint32_t at = 0;
	int r = fd < 0 ? fd : map_ring(fd, &ring);

	start = pl_clock_mono_ns();
	before = pl_wire_counted(bpf_map__fd(b->skel->maps.pl_bench_frames));
	while (r == 0 && ring != NULL && pl_clock_mono_ns() - start < budget_ns)
		r = send_ring(b, fd, ring, &at);
	ret->ns = pl_clock_mono_ns() - start;
	ret->items = pl_wire_counted(bpf_map__fd(b->skel->maps.pl_bench_frames)) - before;
	if (ring != NULL)
		munmap(ring, (size_t)RING_FRAMES * RING_FRAME);
	if (fd >= 0)
		close(fd);
	return r;
}

/* ---- ports ---- */

static int measure_port(struct send_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const uint32_t skip = b->c->datagrams ? HEADERS : 0;
	struct pl_diag diag = { .text = "" };
	struct pl_port *port;
	uint64_t start, before;
	int r = pl_port_open(&port, b->c->uri, PL_PORT_SEND, NULL, &diag);

	if (r < 0) {
		pl_complain("benchmark %s: %s", b->c->name, diag.text);
		return r;
	}
	b->batch.n = BATCH;
	for (uint32_t i = 0; i < BATCH; i++)
		b->batch.pkts[i] = (struct pl_packet){ .data = b->frames[i] + skip,
			.len = FRAME - skip,
			.wire_len = FRAME - skip,
			.link = b->c->datagrams ? PL_LINK_UDP : PL_LINK_ETHERNET };
	start = pl_clock_mono_ns();
	before = pl_wire_counted(bpf_map__fd(b->skel->maps.pl_bench_frames));
	while (r >= 0 && pl_clock_mono_ns() - start < budget_ns)
		r = pl_port_send(port, &b->batch, &diag);
	if (r < 0)
		pl_complain("benchmark %s: %s", b->c->name, diag.text);
	(void)pl_port_close(port); /* what is still in a ring goes out */
	ret->ns = pl_clock_mono_ns() - start;
	ret->items = pl_wire_counted(bpf_map__fd(b->skel->maps.pl_bench_frames)) - before;
	return r < 0 ? r : 0;
}

/* ---- cases ---- */

static int from_sender(
	struct send_bench *b, bool ceiling, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	cpu_set_t before;
	int r;

	sched_getaffinity(0, sizeof(before), &before);
	(void)pl_cpu_pin(0);
	r = pl_wire_enter(&b->wire, PL_WIRE_SENDER);
	if (r == 0 && !ceiling && b->c->ring)
		r = measure_ring(b, budget_ns, ret);
	else if (r == 0)
		r = ceiling || b->c->uri == NULL
			    ? measure_bare(b, !ceiling && b->c->segments, budget_ns, ret)
			    : measure_port(b, budget_ns, ret);
	(void)pl_wire_enter(&b->wire, PL_WIRE_HOME);
	(void)sched_setaffinity(0, sizeof(before), &before);
	if (r == 0 && ret->items == 0) {
		pl_complain("benchmark %s: nothing arrives", b->c->name);
		r = -ENODATA;
	}
	return r;
}

static int subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return from_sender(arg, false, budget_ns, ret);
}

static int ceiling(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return from_sender(arg, true, budget_ns, ret);
}

static const struct send_case cases[] = {
	{ "send/packet", "packet:" PL_WIRE_SENDER_NAME, false, false, false },
	{ "send/afxdp", "afxdp:" PL_WIRE_SENDER_NAME "?queues=0", false, false, false },
	{ "send/udp", "udp://" PL_WIRE_RECEIVER_ADDRESS ":32766", true, false, false },
	{ "send/udp-segments", "udp://" PL_WIRE_RECEIVER_ADDRESS ":32766?gso=true", true, false,
		false },
	{ "send/packet-segments", NULL, false, true, false },
	{ "send/packet-ring", NULL, false, false, true },
};

static int run(struct pl_bench_ctx *ctx)
{
	struct send_bench *b = calloc(1, sizeof(*b));
	struct pl_diag diag = { .text = "" };
	int r = b != NULL ? make_frames(b) : -ENOMEM;

	if (r == 0)
		r = open_wire(b, &diag);
	if (r < 0)
		pl_complain("benchmark send: %s", diag.text[0] != '\0' ? diag.text : strerror(-r));
	for (size_t i = 0; r == 0 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pl_bench_case c = { .name = cases[i].name,
			.ceiling_name = "a packet socket, sendmmsg",
			.subject = subject,
			.ceiling = ceiling,
			.arg = b };

		b->c = &cases[i];
		r = pl_bench_compare(ctx, &c);
	}
	if (b != NULL) {
		pl_xdp_detach(b->drop);
		pl_bpf_bench__destroy(b->skel);
		pl_wire_close(&b->wire);
	}
	free(b);
	return r;
}

const struct pl_bench pl_bench_send = {
	.name = "send",
	.summary = "frames onto a veth pair by each way that the kernel has (root)",
	.run = run,
};
