/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet ports on a veth pair in a network namespace of the test's own. A port that forwards:
 * pl_port_recv reports changes of the interface, even if pl_port_send noticed them first; opening
 * that fails; frames longer than what is received of them. A group of ports of which one could not
 * be opened. Needs root.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "netio/port.h"
#include "netio/rights.h"
#include "netio/test_veth.h"

#define FRAME_BYTES 60

static struct pl_port *port;

static int send_one(void)
{
	static const uint8_t frame[FRAME_BYTES] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88,
		0xb5 };
	static struct pl_batch batch;

	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){
		.data = frame, .len = FRAME_BYTES, .wire_len = FRAME_BYTES, .link = PL_LINK_ETHERNET
	};
	return pl_port_send(port, &batch, NULL);
}

/* Returns the first error of pl_port_recv, which is called after sending a frame each time; 0: none
 * within the time limit. */
static int news(void)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	static struct pl_batch batch;

	while (pl_clock_mono_ns() < until) {
		int r;

		(void)send_one();
		r = pl_port_recv(port, &batch, 20, NULL);
		if (r < 0)
			return r;
		if (r > 0)
			pl_port_release(port, &batch);
	}
	return 0;
}

/* Waits for the result `wanted`; others, as of a carrier, may come before it. */
static bool comes_to(int wanted)
{
	int r = news();

	while (r != wanted && r != 0)
		r = news();
	return r == wanted;
}

static int make(void)
{
	int r = veth_make("plf0", "plf1", -1, 1);

	if (r == 0)
		r = pl_rtnl_up("plf1", true);
	return r == 0 ? pl_rtnl_up("plf0", true) : r;
}

static int set_down(void)
{
	return pl_rtnl_up("plf0", false);
}

static int set_up(void)
{
	return pl_rtnl_up("plf0", true);
}

static int rename_to(const char *from, const char *to)
{
	struct ifreq ifr = { 0 };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", from);
	snprintf(ifr.ifr_newname, sizeof(ifr.ifr_newname), "%s", to);
	r = ioctl(fd, SIOCSIFNAME, &ifr) < 0 ? -errno : 0;
	close(fd);
	return r;
}

static int name_anew(void)
{
	return rename_to("plf0", "plf2");
}

static int name_back(void)
{
	return rename_to("plf2", "plf0");
}

static int take_carrier(void)
{
	return pl_rtnl_up("plf1", false);
}

static int give_carrier(void)
{
	return pl_rtnl_up("plf1", true);
}

static int take_away(void)
{
	return veth_remove("plf1");
}

static void test_changes(void)
{
	static const struct {
		const char *what;
		int (*change)(void);
		int told;
	} rows[] = {
		{ "set down", set_down, -ENETDOWN },
		{ "renamed while down", name_anew, -ENETDOWN },
		{ "named as before", name_back, -ENETDOWN },
		{ "set up", set_up, -EAGAIN },
		{ "without a carrier", take_carrier, -ENETDOWN },
		{ "with its carrier again", give_carrier, -EAGAIN },
		{ "removed", take_away, -ENETDOWN },
		{ "made again", make, -EAGAIN },
		{ "removed again", take_away, -ENETDOWN },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		eq((uint64_t)rows[i].change(), 0, "an interface that is %s", rows[i].what);
		ok(comes_to(rows[i].told), "%s: whoever receives is told", rows[i].what);
		if (rows[i].told == -ENETDOWN)
			ok(send_one() < 0, "%s: nothing is sent", rows[i].what);
	}
}

/* ---- sockets that another process opens ---- */

static enum { OPENED, REFUSED, WRONG } sockets; /* WRONG: cannot become a packet port */

static int give_socket(const struct pl_rights *rights, int domain)
{
	int fd = -1;

	(void)rights;
	errno = EPERM;
	if (sockets == WRONG)
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	else if (sockets == OPENED)
		fd = socket(domain, SOCK_RAW | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static const struct pl_rights rights = { .socket = give_socket };

/* Opens the port that forwards and waits until it sends. */
static bool open_port(uint32_t bytes)
{
	const struct pl_port_options options = {
		.sends = true, .tap_bytes = bytes, .rights = &rights
	};
	struct pl_diag diag = { .text = "" };
	static struct pl_batch batch;
	int r = pl_port_open(&port, "packet:plf0", PL_PORT_RECV, &options, &diag);

	if (!ok(r == 0, "a port that forwards: %s", diag.text))
		return false;
	/* The carrier may come after the port was opened, and be reported then. */
	(void)eventually(send_one() == 1,
		if (pl_port_recv(port, &batch, 20, NULL) > 0) pl_port_release(port, &batch));
	return ok(send_one() == 1, "a frame is sent");
}

/* Removes the interface of the port, whose descriptor goes into `p`. */
static void lose_interface(struct pollfd *p)
{
	p->fd = pl_port_fd(port);
	eq((uint64_t)take_away(), 0, "removed");
	ok(comes_to(-ENETDOWN), "told");
}

/* A port that could not be opened again is tried again, but not while the interface is down: then
 * its descriptor must not stay readable, or its thread would not sleep. */
static void test_failed_opening(void)
{
	static struct pl_batch batch;
	struct pollfd p = { .events = POLLIN };

	if (!open_port(2048))
		return;
	lose_interface(&p);
	sockets = REFUSED;
	eq((uint64_t)make(), 0, "made again, but no socket can be opened");
	ok(comes_to(-ENETDOWN), "told");
	eq((uint64_t)set_down(), 0, "set down");
	ok(comes_to(-ENETDOWN), "told");
	usleep(600000); /* twice the time between two attempts, and more */
	ok(eventually(poll(&p, 1, 0) == 0, (void)pl_port_recv(port, &batch, 0, NULL)),
		"while it is down, the port has nothing to tell");
	sockets = OPENED;
	eq((uint64_t)set_up(), 0, "set up");
	ok(comes_to(-EAGAIN), "the port is opened again");
	(void)pl_port_close(port);
}

static bool full; /* the kernel lets nobody watch one more descriptor */
static unsigned int refused;

/* Stands before that of the C library. */
int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (full && op == EPOLL_CTL_ADD) {
		refused++;
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, event);
}

/* ---- frames longer than what is received of them ---- */

#define HEADS 42u /* bytes of Ethernet, IPv4 and UDP headers */

/* Sends a frame by plf1, with what a NIC has to do to it. */
static bool send_raw(const struct virtio_net_hdr *v, const uint8_t *frame, uint32_t len)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
		.sll_protocol = htons((uint16_t)(frame[12] << 8 | frame[13])),
		.sll_ifindex = (int)if_nametoindex("plf1") };
	const int one = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	uint8_t m[sizeof(*v) + 256];
	bool good;

	memcpy(m, v, sizeof(*v));
	memcpy(m + sizeof(*v), frame, len);
	good = setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) == 0 &&
	       sendto(fd, m, sizeof(*v) + len, 0, (void *)&to, sizeof(to)) ==
		       (ssize_t)(sizeof(*v) + len);
	close(fd);
	return good;
}

/* Sends a tagged frame whose checksum, 0x1234 until then, is left to the NIC. */
static bool send_partial(uint32_t len)
{
	static const uint8_t start[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 10, 8, 0,
		0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34,
		0x7f, 0xfe, 0, 0, 0x12, 0x34 };
	const struct virtio_net_hdr v = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 38, .csum_offset = 6
	};
	uint8_t frame[256] = { 0 };

	memcpy(frame, start, sizeof(start));
	frame[21] = (uint8_t)(len - 18);
	frame[43] = (uint8_t)(len - 38);
	return send_raw(&v, frame, len);
}

/* Receives the frame of send_partial, and checks it. */
static void expect_partial(uint32_t len, uint32_t bytes)
{
	static struct pl_batch batch;
	bool found = false;

	while (!found && eventually(pl_port_recv(port, &batch, 0, NULL) > 0)) {
		for (uint32_t i = 0; i < batch.n; i++) {
			const struct pl_packet *p = &batch.pkts[i];

			if (p->len < HEADS + 4 || p->data[12] != 0x81 || p->data[41] != 0xfe)
				continue;
			found = true;
			eq(p->wire_len, len, "%u bytes on the wire", len);
			eq(p->len, bytes, "of them %u were received", bytes);
			eq(p->data[44] == 0x12 && p->data[45] == 0x34, len != bytes,
				"the checksum is computed of all bytes, or not at all");
		}
		pl_port_release(port, &batch);
	}
	ok(found, "the frame came");
}

/* A port whose new socket cannot be watched is not open: nothing would wake its thread for a frame.
 * It is tried again. */
static void test_failed_watching(void)
{
	static struct pl_batch batch;
	struct pollfd p = { .events = POLLIN };

	if (!open_port(2048))
		return;
	lose_interface(&p);
	full = true;
	eq((uint64_t)make(), 0, "made again, but its socket cannot be watched");
	ok(eventually(refused > 0, (void)pl_port_recv(port, &batch, 20, NULL)), "it was tried");
	full = false;
	ok(comes_to(-EAGAIN), "the port is opened again");
	ok(eventually(poll(&p, 1, 0) == 0,
		   if (pl_port_recv(port, &batch, 0, NULL) > 0) pl_port_release(port, &batch)),
		"nothing is left to be received");
	ok(send_partial(60), "a frame comes");
	ok(poll(&p, 1, 60000) == 1, "and wakes who waits for the port");
	(void)pl_port_close(port);
}

static void test_cut_frames(void)
{
	if (!open_port(64))
		return;
	ok(send_partial(66), "a frame as long as what is received, its tag aside");
	expect_partial(66, 66);
	ok(send_partial(200), "a longer frame");
	expect_partial(200, 68);
	ok(send_partial(70), "a frame that is longer by less than a tag");
	expect_partial(70, 68);
	(void)pl_port_close(port);
}

/* ---- a group of which a member could not be opened ---- */

#define REPORTS 50

static void send_reports(void)
{
	static uint8_t frames[REPORTS][HEADS + 18] = { { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0,
		0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34,
		0x7f, 0xfe, 0, 26, 0, 0 } };
	static struct pl_batch batch;
	struct pl_port *out = NULL;

	batch.n = REPORTS;
	for (uint8_t i = 0; i < REPORTS; i++) {
		memcpy(frames[i], frames[0], sizeof(frames[0]));
		frames[i][29] = i;
		batch.pkts[i] = (struct pl_packet){ .data = frames[i],
			.len = sizeof(frames[i]),
			.wire_len = sizeof(frames[i]),
			.link = PL_LINK_ETHERNET };
	}
	if (ok(pl_port_open(&out, "packet:plf1", PL_PORT_SEND, NULL, NULL) == 0, "a sender")) {
		eq((uint64_t)pl_port_send(out, &batch, NULL), REPORTS, "reports of many sources");
		(void)pl_port_close(out);
	}
}

static uint32_t received(struct pl_port *member, int wait_ms)
{
	static struct pl_batch batch;
	const int n = pl_port_recv(member, &batch, wait_ms, NULL);

	if (n > 0)
		pl_port_release(member, &batch);
	return n > 0 ? (uint32_t)n : 0;
}

static void test_group(void)
{
	struct pl_port *members[3] = { NULL };
	struct pl_port_options options = { .of = 3, .rights = &rights };
	uint32_t n = 0;

	for (unsigned int i = 0; i < 3; i++) {
		options.index = i;
		options.with = members[0];
		sockets = i == 1 ? WRONG : OPENED;
		eq(pl_port_open(
			   &members[i], "packet:plf0?fanout=3", PL_PORT_RECV, &options, NULL) == 0,
			i != 1, "member %u", i);
	}
	if (members[0] == NULL || members[2] == NULL)
		return;
	send_reports();
	(void)eventually((n += received(members[0], 0) + received(members[2], 0)) >= REPORTS);
	/* A group of its own would have given a member every frame too. */
	for (int i = 0; i < 20; i++)
		n += received(members[i % 2 * 2], 10);
	eq(n, REPORTS, "each report reaches one member");
	(void)pl_port_close(members[2]);
	(void)pl_port_close(members[0]);
}

/* Two datagrams of 8 bytes that a sender left to its NIC to take apart: with their header less than
 * an IPv6 header and a UDP header are long. */
static void test_short_row(void)
{
	static const uint8_t frame[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 44,
		0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34, 0x7f, 0xfe, 0,
		24, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2 };
	const struct virtio_net_hdr v = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = 5 /* VIRTIO_NET_HDR_GSO_UDP_L4 */,
		.hdr_len = HEADS,
		.gso_size = 8,
		.csum_start = 34,
		.csum_offset = 6 };
	static struct pl_batch batch;
	struct pl_port *in = NULL;
	uint32_t n = 0, good = 0;

	if (!ok(pl_port_open(&in, "packet:plf0", PL_PORT_RECV, NULL, NULL) == 0, "a receiver"))
		return;
	if (!send_raw(&v, frame, sizeof(frame))) {
		printf("# this kernel does not take such a frame\n");
		(void)pl_port_close(in);
		return;
	}
	while (n < 2 && eventually(pl_port_recv(in, &batch, 0, NULL) > 0)) {
		for (uint32_t i = 0; i < batch.n; i++, n++)
			good += batch.pkts[i].link == PL_LINK_UDP && batch.pkts[i].len == 8 &&
				batch.pkts[i].data[0] == n + 1;
		pl_port_release(in, &batch);
	}
	ok(n == 2 && good == 2, "two short datagrams of one frame");
	(void)pl_port_close(in);
}

int main(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
		return pl_test_skip("needs root and network namespaces");
	if (!ok(veth_hush() == 0 && make() == 0, "a veth pair") || !open_port(2048))
		return pl_test_done();
	test_changes();
	(void)pl_port_close(port);
	if (!ok(make() == 0, "a new pair"))
		return pl_test_done();
	test_failed_opening();
	test_failed_watching();
	test_cut_frames();
	test_group();
	test_short_row();
	return pl_test_done();
}
