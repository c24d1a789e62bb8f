/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns of a port's sockets: only a sender that floods loses datagrams, in order, and is named;
 * when it is calm it goes back. */
#include "netio/udp_turns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/test.h"

#define SENDERS 4
#define ROUNDS  200
#define BURST   64

struct sender {
	int fd;
	struct pl_addr addr;
	uint32_t sent, got, last, backwards;
};

static struct pl_batch batch;

static struct pl_port *open_lanes(const char *uri, unsigned int index, unsigned int of)
{
	struct pl_port_options options = { .lanes = true, .index = index, .of = of };
	struct pl_diag diag = { "" };
	struct pl_port *port = NULL;

	ok(pl_port_open(&port, uri, PL_PORT_RECV, &options, &diag) == 0, "%s: %s", uri, diag.text);
	return port;
}

/* Opens a sender on 127.0.0.(1 + i), or on [::1]. */
static struct sender new_sender(unsigned int i, bool v6)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sender s = { .fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0) };

	sin.sin_addr.s_addr = htonl(0x7f000001u + i);
	s.addr = v6 ? pl_addr_v6(&sin6.sin6_addr) : pl_addr_v4(&sin.sin_addr);
	ok(bind(s.fd, v6 ? (struct sockaddr *)&sin6 : (struct sockaddr *)&sin,
		   v6 ? sizeof(sin6) : sizeof(sin)) == 0,
		"an address to send from");
	return s;
}

/* Sends datagrams that are numbered from 1. */
static void send_some(struct sender *s, uint16_t port, uint32_t n)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool v4 = pl_addr_is_v4(&s->addr);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while (n-- > 0) {
		uint32_t number = s->sent + 1;

		s->sent += sendto(s->fd, &number, 4, 0,
				   v4 ? (struct sockaddr *)&to : (struct sockaddr *)&to6,
				   v4 ? sizeof(to) : sizeof(to6)) == 4;
	}
}

static void read_batch(struct sender *senders, unsigned int n_senders)
{
	for (uint32_t i = 0; i < batch.n; i++) {
		for (unsigned int k = 0; k < n_senders; k++) {
			struct sender *s = &senders[k];
			uint32_t number;

			if (!pl_addr_equal(&batch.pkts[i].src, &s->addr))
				continue;
			memcpy(&number, batch.pkts[i].data, 4);
			s->backwards += number <= s->last;
			s->last = number;
			s->got++;
		}
	}
}

static int read_once(struct pl_port *port, struct sender *senders, unsigned int n)
{
	int r = pl_port_recv(port, &batch, 0, NULL);

	if (r > 0) {
		read_batch(senders, n);
		pl_port_release(port, &batch);
	}
	return r;
}

/* Floods: the first sender sends more than is read, the others a little. */
static void flood(struct pl_port *rx, struct sender *senders, uint16_t port)
{
	struct pl_port_stats stats;
	struct pl_port_flood floods[PL_PORT_FLOODS];
	uint64_t sent = 0;
	uint32_t n;
	int error;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (unsigned int part = 0; part < 5; part++)
			send_some(&senders[0], port, BURST);
		for (unsigned int k = 1; k < SENDERS; k++)
			send_some(&senders[k], port, 2);
		read_once(rx, senders, SENDERS);
	}
	while (read_once(rx, senders, SENDERS) > 0)
		;
	for (unsigned int k = 0; k < SENDERS; k++) {
		sent += senders[k].sent;
		eq(senders[k].backwards, 0, "sender %u: in order", k);
		if (k > 0)
			eq(senders[k].got, senders[k].sent, "sender %u loses nothing", k);
	}
	pl_port_stats(rx, &stats);
	eq(stats.packets + stats.kernel_drops, sent, "sent = received + dropped");
	ok(stats.kernel_drops > 0, "who floods loses");
	eq(stats.flood_drops, stats.kernel_drops, "all of it from its lane");
	n = pl_port_floods(rx, floods, &error);
	eq(n, 1, "one is named");
	ok(pl_addr_equal(&floods[0].who.addr, &senders[0].addr) && floods[0].who.bits == 128,
		"by its address");
	eq(floods[0].drops, senders[0].sent - senders[0].got, "with what it lost");
	ok(floods[0].lane >= 1 && floods[0].times == 1 && error == 0, "once, and has it still");
}

static void test_flood(const char *uri, bool v6)
{
	struct sender senders[SENDERS];
	struct pl_port *rx = open_lanes(uri, 0, 0);

	if (rx == NULL)
		return;
	for (unsigned int k = 0; k < SENDERS; k++)
		senders[k] = new_sender(k, v6 && k == 0);
	flood(rx, senders, pl_port_local_port(rx));
	for (unsigned int k = 0; k < SENDERS; k++)
		close(senders[k].fd);
	pl_port_close(rx);
}

/* Every share of a group has its own lanes: a flood of one costs neither other senders of that
 * share nor other shares any datagram. */
static void test_shares(void)
{
	enum { SHARES = 3 };
	struct pl_port *rx[SHARES];
	struct sender senders[SENDERS];
	uint64_t dropped = 0, got = 0;
	char uri[64] = "udp://127.0.0.1:0?rcvbuf=1MiB";
	uint16_t port;

	for (unsigned int i = 0; i < SHARES; i++) {
		rx[i] = open_lanes(uri, i, SHARES);
		if (rx[i] == NULL)
			return;
		snprintf(uri, sizeof(uri), "udp://127.0.0.1:%u?rcvbuf=1MiB",
			pl_port_local_port(rx[0]));
	}
	port = pl_port_local_port(rx[0]);
	for (unsigned int k = 0; k < SENDERS; k++)
		senders[k] = new_sender(k, false);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		send_some(&senders[0], port, 6 * BURST);
		send_some(&senders[1], port, 6 * BURST);
		send_some(&senders[2], port, 2);
		send_some(&senders[3], port, 2);
		for (unsigned int i = 0; i < SHARES; i++)
			read_once(rx[i], senders, SENDERS);
	}
	for (unsigned int i = 0; i < SHARES; i++) {
		struct pl_port_stats stats;

		while (read_once(rx[i], senders, SENDERS) > 0)
			;
		pl_port_stats(rx[i], &stats);
		dropped += stats.kernel_drops;
		got += stats.packets;
	}
	for (unsigned int k = 0; k < SENDERS; k++) {
		got -= senders[k].sent;
		eq(senders[k].backwards, 0, "shares, sender %u: in order", k);
	}
	eq(got + dropped, 0, "shares: sent = received + dropped");
	ok(dropped > 0, "shares: who floods loses");
	eq(senders[2].got + senders[3].got, senders[2].sent + senders[3].sent,
		"shares: nobody else does");
	/* The last socket takes the place of a closed one: senders still reach the sockets of their
	 * share. */
	pl_port_close(rx[0]);
	rx[0] = open_lanes(uri, 0, SHARES);
	for (unsigned int k = 0; k < SENDERS; k++) {
		unsigned int homes = 0;

		for (unsigned int i = 0; i < SHARES; i++) {
			uint32_t before = senders[k].got;

			if (i == 0)
				send_some(&senders[k], port, 5);
			while (read_once(rx[i], senders, SENDERS) > 0)
				;
			homes += senders[k].got > before;
		}
		eq(homes, 1, "shares, sender %u: one socket, also after another was opened anew",
			k);
	}
	for (unsigned int k = 0; k < SENDERS; k++) {
		eq(senders[k].backwards, 0, "shares, sender %u: in order to the end", k);
		close(senders[k].fd);
	}
	for (unsigned int i = 0; i < SHARES; i++)
		pl_port_close(rx[i]);
}

/* Begins turns of a first socket and one that can become a lane. Returns the UDP port. */
static uint16_t start_turns(struct pl_udp_turns *t)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);

	*t = (struct pl_udp_turns){ .share = 0 };
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (unsigned int i = 0; i <= PL_UDP_LANES; i++)
		t->sockets[i].fd = i < 2 ? socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0) : -1;
	eq(pl_udp_group_bind(&t->group, t->sockets[0].fd, (struct sockaddr *)&sin, len, 0, 1), 0);
	getsockname(t->sockets[0].fd, (struct sockaddr *)&sin, &len);
	pl_udp_turns_start(t, 64 * 1024);
	return ntohs(sin.sin_port);
}

/* Sends to the first socket, which is not read, until a sender was moved, or that is overdue. */
static void fill_up(struct pl_udp_turns *t, struct sender *s, uint16_t port)
{
	static struct pl_packet packets[PL_BATCH_MAX];
	const uint64_t before = t->moved;

	for (unsigned int i = 0; i < PL_BATCH_MAX; i++)
		packets[i].src = s->addr;
	for (unsigned int i = 0; i < 1000 && t->moved == before; i++) {
		send_some(s, port, 100);
		pl_udp_turns_took(t, 0, packets, PL_BATCH_MAX, 1);
	}
}

/* A lane that waits for one socket gets no senders out of another: it would be read before what is
 * left of its own senders there. */
static void test_waiting(void)
{
	static struct pl_udp_turns t;
	const uint16_t port = start_turns(&t);
	struct sender a = new_sender(0, false), b = new_sender(1, false);

	fill_up(&t, &a, port);
	ok(t.moved == 1 && t.n_floods == 1, "one sender has the lane");
	t.sockets[1].after = 2;
	t.sockets[1].behind = 7;
	fill_up(&t, &b, port);
	ok(t.moved == 1 && t.n_floods == 1, "no other gets it while it waits for socket 2");
	ok(t.sockets[1].after == 2 && t.sockets[1].behind == 7, "and it waits as before");
	t.sockets[1].behind = 0;
	fill_up(&t, &b, port);
	ok(t.moved == 2 && t.n_floods == 2, "then another gets it");
	ok(t.sockets[1].after == 0 && t.sockets[1].behind > 0, "and is waited for");
	pl_udp_turns_close(&t);
	close(a.fd);
	close(b.fd);
}

/* A lane without traffic for PL_UDP_CALM_NS gives its senders back; the test passes the time as an
 * argument. */
static void test_calm(void)
{
	static struct pl_udp_turns t;
	static struct pl_packet packets[1];
	const uint16_t port = start_turns(&t);
	struct sender s = new_sender(0, false);
	uint8_t bytes[8];
	uint64_t now = 1;

	packets[0].src = s.addr;
	fill_up(&t, &s, port);
	eq(t.moved, 1, "a socket that fills: its sender gets a lane");
	ok(t.bound == 2 && t.sockets[1].behind > 0, "read when what is before it was read");
	pl_udp_turns_took(&t, 0, packets, 1, now);
	eq(t.sockets[1].behind, 0);
	send_some(&s, port, 1);
	eq(recv(t.sockets[1].fd, bytes, sizeof(bytes), 0), 4, "there it is received");
	pl_udp_turns_took(&t, 1, packets, 1, now);
	pl_udp_turns_took(&t, 1, packets, 0, now + PL_UDP_CALM_NS - 1);
	eq(t.floods[0].lane, 1, "not yet calm");
	pl_udp_turns_took(&t, 1, packets, 0, now + PL_UDP_CALM_NS);
	eq(t.floods[0].lane, 0, "calm for so long: it goes back");
	eq(t.n_floods, 1, "and is remembered");
	send_some(&s, port, 1);
	eq(recv(t.sockets[1].fd, bytes, sizeof(bytes), 0), -1, "nothing more in the lane");
	pl_udp_turns_close(&t);
	close(s.fd);
}

int main(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	bool v6 = fd >= 0;

	if (fd >= 0)
		close(fd);
	test_flood("udp://127.0.0.1:0?rcvbuf=1MiB", false);
	test_flood("udp://127.0.0.1:0?rcvbuf=300KiB&timestamp=kernel", false);
	if (v6) {
		test_flood("udp://:0?rcvbuf=1MiB", false);
		test_flood("udp://:0?rcvbuf=1MiB", true);
	}
	test_shares();
	test_waiting();
	test_calm();
	return pl_test_done();
}
