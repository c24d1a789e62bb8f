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
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "netio/port.h"
#include "netio/rights.h"
#include "netio/rtnl.h"

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
	int r = pl_rtnl_veth("plf0", "plf1", -1, 1);

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
	return pl_rtnl_remove("plf1");
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

/* A port that could not be opened again is tried again, but not while the interface is down: then
 * its descriptor must not stay readable, or its thread would not sleep. */
static void test_failed_opening(void)
{
	static struct pl_batch batch;
	struct pollfd p = { .events = POLLIN };

	if (!open_port(2048))
		return;
	p.fd = pl_port_fd(port);
	eq((uint64_t)take_away(), 0, "removed");
	ok(comes_to(-ENETDOWN), "told");
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

int main(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
		return pl_test_skip("needs root and network namespaces");
	if (!ok(pl_rtnl_hush() == 0 && make() == 0, "a veth pair") || !open_port(2048))
		return pl_test_done();
	test_changes();
	(void)pl_port_close(port);
	if (!ok(make() == 0, "a new pair"))
		return pl_test_done();
	test_failed_opening();
	return pl_test_done();
}
