/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP ports over loopback: addresses, steering, cut datagrams, and every datagram accounted for. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/test.h"
#include "netio/port.h"

#define PATIENCE_MS (PL_TEST_PATIENCE_S * 1000)

static struct pl_batch batch;

static struct pl_port *listen_on(const char *uri, const struct pl_port_options *options)
{
	struct pl_diag diag = { "" };
	struct pl_port *port = NULL;
	int r = pl_port_open(&port, uri, PL_PORT_RECV, options, &diag);

	ok(r == 0, "open %s: %s", uri, diag.text);
	return port;
}

static struct pl_port *send_to(const char *host, uint16_t port, const char *query)
{
	struct pl_diag diag = { "" };
	struct pl_port *sender = NULL;
	char uri[128];
	int r;

	snprintf(uri, sizeof(uri), "udp://%s:%u%s", host, port, query);
	r = pl_port_open(&sender, uri, PL_PORT_SEND, NULL, &diag);
	ok(r == 0, "open %s: %s", uri, diag.text);
	return sender;
}

static void fill_batch(uint32_t n, uint32_t len, uint8_t *bytes)
{
	batch.n = n;
	for (uint32_t i = 0; i < n; i++)
		batch.pkts[i] = (struct pl_packet){
			.data = bytes, .len = len, .wire_len = len, .link = PL_LINK_UDP
		};
}

static bool have_v6(void)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	bool yes = fd >= 0 && bind(fd, (struct sockaddr *)&sin6, sizeof(sin6)) == 0;

	if (fd >= 0)
		close(fd);
	return yes;
}

static void test_exchange(const char *uri, const char *host, const char *name_part)
{
	uint8_t bytes[100];
	struct pl_port *rx = listen_on(uri, NULL), *tx;
	struct pl_port_stats stats;
	uint64_t before = pl_clock_real_ns();
	struct pl_addr want;

	if (rx == NULL)
		return;
	ok(strstr(pl_port_name(rx), name_part) != NULL, "name %s", pl_port_name(rx));
	ok(pl_port_local_port(rx) != 0, "port 0 became %u", pl_port_local_port(rx));
	ok(pl_port_fd(rx) >= 0, "there is something to poll");
	eq(pl_port_recv(rx, &batch, 0, NULL), 0, "nothing yet");
	eq(pl_port_recv(rx, &batch, 5, NULL), 0, "nor in 5 ms");
	tx = send_to(host, pl_port_local_port(rx), "");
	memset(bytes, 0x42, sizeof(bytes));
	fill_batch(3, sizeof(bytes), bytes);
	batch.pkts[1].len = 0;
	eq(pl_port_send(tx, &batch, NULL), 3);
	eq(pl_port_recv(rx, &batch, PATIENCE_MS, NULL), 3, "all at once");
	pl_parse_addr(host, &want);
	for (uint32_t i = 0; i < 3; i++) {
		const struct pl_packet *p = &batch.pkts[i];

		eq(p->link, PL_LINK_UDP);
		eq(p->len, i == 1 ? 0 : 100, "length, also of an empty datagram");
		eq(p->wire_len, p->len);
		memeq(p->data, bytes, p->len);
		ok(pl_addr_equal(&p->src, &want), "source address");
		eq(p->sport, pl_port_local_port(tx), "source port");
		eq(p->dport, pl_port_local_port(rx));
		ok(p->ts_ns >= before && p->ts_ns <= pl_clock_real_ns(), "time of arrival");
	}
	pl_port_release(rx, &batch);
	pl_port_stats(rx, &stats);
	eq(stats.packets, 3);
	eq(stats.bytes, 200);
	eq(stats.kernel_drops + stats.cut + stats.errors, 0);
	ok(stats.rcvbuf_bytes > 0, "a buffer of %" PRIu64, stats.rcvbuf_bytes);
	pl_port_close(tx);
	pl_port_close(rx);
}

/* A socket of every address tells to which one a datagram was sent. */
static void test_tells_dst(const char *uri)
{
	struct pl_port *rx = listen_on(uri, &(struct pl_port_options){ .tells_dst = true }), *tx;
	uint8_t bytes[8] = { 0 };
	struct pl_addr want;

	tx = send_to("127.0.0.2", pl_port_local_port(rx), "");
	for (int i = 0; i < 2; i++) {
		fill_batch(1, sizeof(bytes), bytes);
		eq(pl_port_send(tx, &batch, NULL), 1);
		eq(pl_port_recv(rx, &batch, PATIENCE_MS, NULL), 1);
		pl_parse_addr("127.0.0.2", &want);
		ok(pl_addr_equal(&batch.pkts[0].dst, &want), "%s: destination", uri);
		pl_port_release(rx, &batch);
	}
	pl_port_close(tx);
	pl_port_close(rx);
}

static void test_cut_and_jumbo(void)
{
	static uint8_t bytes[65507];
	struct pl_port *rx = listen_on("udp://127.0.0.1:0?maxlen=1000", NULL), *tx;
	const uint64_t before = pl_clock_real_ns();
	struct pl_port_stats stats;

	tx = send_to("127.0.0.1", pl_port_local_port(rx), "");
	for (uint32_t i = 0; i < 4; i++) {
		static const uint32_t lens[] = { 999, 1000, 1001, 9000 };

		fill_batch(1, lens[i], bytes);
		eq(pl_port_send(tx, &batch, NULL), 1);
		eq(pl_port_recv(rx, &batch, PATIENCE_MS, NULL), 1);
		eq(batch.pkts[0].wire_len, lens[i], "what it had");
		eq(batch.pkts[0].len, lens[i] < 1000 ? lens[i] : 1000, "what fitted");
		pl_port_release(rx, &batch);
	}
	pl_port_stats(rx, &stats);
	eq(stats.cut, 2, "cut datagrams are counted");
	pl_port_close(tx);
	pl_port_close(rx);

	rx = listen_on("udp://127.0.0.1:0?timestamp=kernel", NULL);
	tx = send_to("127.0.0.1", pl_port_local_port(rx), "");
	bytes[65506] = 7;
	fill_batch(1, 65507, bytes);
	eq(pl_port_send(tx, &batch, NULL), 1, "the longest there is");
	eq(pl_port_recv(rx, &batch, PATIENCE_MS, NULL), 1);
	eq(batch.pkts[0].len, 65507);
	eq(batch.pkts[0].data[65506], 7);
	ok(batch.pkts[0].ts_ns >= before && batch.pkts[0].ts_ns <= pl_clock_real_ns(),
		"the kernel's time");
	pl_port_release(rx, &batch);
	fill_batch(1, 65508, bytes);
	eq(pl_port_send(tx, &batch, NULL), -EMSGSIZE, "one more is refused");
	pl_port_close(tx);
	pl_port_close(rx);
}

/* Without reading meanwhile: sent = received + dropped, to the datagram, also when nothing follows
 * the drops. */
static void test_drops(void)
{
	uint8_t bytes[200] = { 0 };
	struct pl_port *rx = listen_on("udp://127.0.0.1:0?rcvbuf=8KiB", NULL), *tx;
	struct pl_port_stats stats;
	uint64_t sent = 0, got = 0;
	int n;

	tx = send_to("127.0.0.1", pl_port_local_port(rx), "");
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 20; i++) {
			fill_batch(PL_BATCH_MAX, sizeof(bytes), bytes);
			n = pl_port_send(tx, &batch, NULL);
			sent += n > 0 ? (uint64_t)n : 0;
		}
		if (round == 1)
			continue;
		while ((n = pl_port_recv(rx, &batch, 0, NULL)) > 0) {
			got += (uint64_t)n;
			pl_port_release(rx, &batch);
		}
	}
	pl_port_stats(rx, &stats);
	eq(sent, 3 * 20 * PL_BATCH_MAX, "sent");
	eq(stats.packets, got);
	ok(stats.kernel_drops > 0 && got > 0, "%" PRIu64 " received, %" PRIu64 " dropped", got,
		stats.kernel_drops);
	eq(got + stats.kernel_drops, sent, "received + dropped = sent");
	pl_port_stats(rx, &stats);
	eq(got + stats.kernel_drops, sent, "asking twice counts once");
	pl_port_close(tx);
	pl_port_close(rx);
}

/* Sends one datagram from an address, by a source port that the kernel picks. */
static void send_from(int family, uint32_t number, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET },
			   to = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(family, SOCK_DGRAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sin.sin_addr.s_addr = htonl(0x7f000000u + number);
	if (family == AF_INET && bind(fd, (struct sockaddr *)&sin, sizeof(sin)) == 0)
		(void)sendto(fd, &number, sizeof(number), 0, (struct sockaddr *)&to, sizeof(to));
	else if (family == AF_INET6)
		(void)sendto(fd, &number, sizeof(number), 0, (struct sockaddr *)&to6, sizeof(to6));
	close(fd);
}

#define SOCKETS   4
#define EXPORTERS 64
#define DATAGRAMS 20

/* All datagrams of one address reach one socket, whatever their source port; addresses are spread
 * over the sockets. */
static void test_steering(bool v6)
{
	static unsigned int seen[EXPORTERS + 1][SOCKETS];
	unsigned int total = 0, torn = 0, load[SOCKETS] = { 0 };
	struct pl_port *ports[SOCKETS];
	char uri[64];

	memset(seen, 0, sizeof(seen));
	snprintf(uri, sizeof(uri), "udp://:0?sockets=%d", SOCKETS);
	for (unsigned int i = 0; i < SOCKETS; i++) {
		struct pl_port_options options = { .index = i, .of = SOCKETS };

		ports[i] = listen_on(uri, &options);
		if (ports[i] == NULL)
			return;
		snprintf(uri, sizeof(uri), "udp://:%u?sockets=%d", pl_port_local_port(ports[0]),
			SOCKETS);
	}
	for (uint32_t n = 0; n < DATAGRAMS; n++) {
		for (uint32_t e = 1; e <= EXPORTERS; e++)
			send_from(AF_INET, e, pl_port_local_port(ports[0]));
		if (v6)
			send_from(AF_INET6, 0, pl_port_local_port(ports[0]));
	}
	for (unsigned int i = 0; i < SOCKETS; i++) {
		int n;

		while ((n = pl_port_recv(ports[i], &batch, 0, NULL)) > 0) {
			for (int k = 0; k < n; k++) {
				uint32_t who;

				memcpy(&who, batch.pkts[k].data, 4);
				seen[who][i]++;
				total++;
			}
			pl_port_release(ports[i], &batch);
		}
	}
	for (unsigned int e = 0; e <= EXPORTERS; e++) {
		unsigned int homes = 0;

		for (unsigned int i = 0; i < SOCKETS; i++) {
			homes += seen[e][i] > 0;
			load[i] += seen[e][i] > 0;
		}
		torn += homes > 1;
	}
	eq(total, DATAGRAMS * (EXPORTERS + (v6 ? 1 : 0)), "all arrived, v4%s", v6 ? " and v6" : "");
	eq(torn, 0, "no exporter is torn between sockets");
	for (unsigned int i = 0; i < SOCKETS; i++)
		ok(load[i] >= EXPORTERS / SOCKETS / 3, "socket %u has %u exporters", i, load[i]);
	for (unsigned int i = 0; i < SOCKETS; i++)
		pl_port_close(ports[i]);
}

static void test_errors(void)
{
	struct pl_port *rx = listen_on("udp://127.0.0.1:0", NULL), *other = NULL, *tx;
	struct pl_port_stats stats;
	struct pl_diag diag = { "" };
	uint8_t bytes[10] = { 0 };
	uint16_t port;
	char uri[64];
	int good = 0;

	port = pl_port_local_port(rx);
	snprintf(uri, sizeof(uri), "udp://127.0.0.1:%u", port);
	eq(pl_port_open(&other, uri, PL_PORT_RECV, NULL, &diag), -EADDRINUSE, "taken: %s",
		diag.text);
	ok(strstr(diag.text, uri) != NULL, "the address is named");
	eq(pl_port_open(&other, "udp://192.0.2.1:1", PL_PORT_RECV, NULL, &diag), -EADDRNOTAVAIL,
		"not ours: %s", diag.text);
	ok(pl_port_open(&other, "udp://:1?bogus=1", PL_PORT_RECV, NULL, &diag) == -EINVAL &&
			other == NULL,
		"%s", diag.text);
	tx = send_to("127.0.0.1", port, "?sndbuf=64KiB");
	pl_port_close(rx);
	/* The receiver is closed: sending goes on, and counts errors. */
	for (int i = 0; i < 10; i++) {
		fill_batch(2, sizeof(bytes), bytes);
		good += pl_port_send(tx, &batch, NULL) == 2;
	}
	eq(good, 10, "a closed port does not stop the sender");
	pl_port_stats(tx, &stats);
	ok(stats.errors > 0, "%" PRIu64 " errors", stats.errors);
	fill_batch(2, sizeof(bytes), bytes);
	batch.pkts[0].link = PL_LINK_ETHERNET;
	eq(pl_port_send(tx, &batch, &diag), -EINVAL, "frames cannot be sent: %s", diag.text);
	pl_port_close(tx);
}

/* Runs of equally long datagrams sent in one piece arrive as single datagrams, in order. */
static void test_gso(void)
{
	static uint8_t bytes[PL_BATCH_MAX][2000];
	static const uint32_t lens[] = { 100, 100, 100, 50, 100, 0, 0, 2000, 2000, 1999, 2000 };
	struct pl_port *rx = listen_on("udp://127.0.0.1:0", NULL), *tx;
	uint32_t want[PL_BATCH_MAX], at = 0;
	unsigned int wrong = 0;
	int n;

	tx = send_to("127.0.0.1", pl_port_local_port(rx), "?gso=on");
	batch.n = PL_BATCH_MAX;
	for (uint32_t i = 0; i < PL_BATCH_MAX; i++) {
		want[i] = i < 11 ? lens[i] : i < 200 ? 300 : 600;
		memset(bytes[i], (int)i, want[i]);
		batch.pkts[i] = (struct pl_packet){
			.data = bytes[i], .len = want[i], .wire_len = want[i], .link = PL_LINK_UDP
		};
	}
	eq(pl_port_send(tx, &batch, NULL), PL_BATCH_MAX, "GSO takes all");
	while (at < PL_BATCH_MAX && (n = pl_port_recv(rx, &batch, PATIENCE_MS, NULL)) > 0) {
		for (int i = 0; i < n; i++, at++)
			wrong += at >= PL_BATCH_MAX || batch.pkts[i].len != want[at] ||
				 memcmp(batch.pkts[i].data, bytes[at], want[at]) != 0;
		pl_port_release(rx, &batch);
	}
	eq(at, PL_BATCH_MAX, "all arrive");
	eq(wrong, 0, "as they were");
	pl_port_close(tx);
	pl_port_close(rx);
}

static void test_adopted(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct pl_port_options options = { 0 };
	struct pl_port *rx = NULL, *tx;
	uint8_t byte = 1;
	int fds[2];

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	options.fd = socket(AF_INET, SOCK_DGRAM, 0);
	ok(bind(options.fd, (struct sockaddr *)&sin, sizeof(sin)) == 0, "a socket from elsewhere");
	eq(pl_port_open(&rx, "udp://:1", PL_PORT_RECV, &options, NULL), 0, "is taken over");
	ok(strncmp(pl_port_name(rx), "udp://127.0.0.1:", 16) == 0, "%s", pl_port_name(rx));
	tx = send_to("127.0.0.1", pl_port_local_port(rx), "");
	fill_batch(1, 1, &byte);
	eq(pl_port_send(tx, &batch, NULL), 1);
	eq(pl_port_recv(rx, &batch, PATIENCE_MS, NULL), 1, "and read");
	pl_port_release(rx, &batch);
	pl_port_close(tx);
	pl_port_close(rx);
	if (!ok(pipe(fds) == 0, "pipe"))
		return;
	options.fd = fds[0];
	eq(pl_port_open(&rx, "udp://:1", PL_PORT_RECV, &options, NULL), -ENOTSOCK, "a pipe is not");
	eq(close(fds[0]), -1, "and was closed");
	close(fds[1]);
}

/* Sockets for every IPv6 and every IPv4 address on one port: each receives its own family,
 * whichever is opened first. */
static void test_beside(bool v6_first)
{
	const struct pl_port_options none = { 0 }, v6only = { .v6only = true };
	struct pl_port *rx[2], *tx;
	struct pl_diag diag = { 0 };
	uint8_t byte = 7;
	char uri[2][64];
	int r;

	/* Finds a port that is free in both families, by a socket for both. */
	if (!ok(pl_port_open(&rx[0], "udp://:0", PL_PORT_RECV, &none, &diag) == 0, "%s", diag.text))
		return;
	snprintf(uri[0], sizeof(uri[0]), "udp://0.0.0.0:%u", pl_port_local_port(rx[0]));
	snprintf(uri[1], sizeof(uri[1]), "udp://[::]:%u", pl_port_local_port(rx[0]));
	pl_port_close(rx[0]);
	ok(pl_port_uri_v6only(uri[1], uri[0]) && !pl_port_uri_v6only(uri[0], uri[1]));
	for (int i = 0; i < 2; i++) {
		const int at = i ^ v6_first;

		r = pl_port_open(&rx[at], uri[at], PL_PORT_RECV, at == 1 ? &v6only : &none, &diag);
		if (!ok(r == 0, "%s beside the other: %s", uri[at], r < 0 ? diag.text : "open"))
			return;
	}
	for (int at = 0; at < 2; at++) {
		tx = send_to(at == 0 ? "127.0.0.1" : "[::1]", pl_port_local_port(rx[at]), "");
		fill_batch(1, 1, &byte);
		eq(pl_port_send(tx, &batch, NULL), 1);
		eq(pl_port_recv(rx[at], &batch, PATIENCE_MS, NULL), 1, "%s has its own", uri[at]);
		ok(pl_addr_is_v4(&batch.pkts[0].src) == (at == 0));
		pl_port_release(rx[at], &batch);
		pl_port_close(tx);
	}
	pl_port_close(rx[0]);
	pl_port_close(rx[1]);
}

static void test_which_are_beside(void)
{
	static const struct {
		const char *uri, *other;
		bool want;
	} rows[] = {
		{ "udp://[::]:9", "udp://0.0.0.0:9", true },
		{ "udp://:9", "udp://0.0.0.0:9", true },
		{ "udp://*:9?rcvbuf=1MiB", "udp://0.0.0.0:9?sockets=2", true },
		{ "udp://0.0.0.0:9", "udp://[::]:9", false },
		{ "udp://[::]:9", "udp://0.0.0.0:10", false },
		{ "udp://[::]:9", "udp://10.0.0.1:9", false },
		{ "udp://[fd00::1]:9", "udp://0.0.0.0:9", false },
		{ "udp://[::]:9", "udp://[::]:9", false },
		{ "udp://[::]:0", "udp://0.0.0.0:0", false },
		{ "udp://[::]:9", "packet:eth0", false },
		{ "a.pcap", "udp://0.0.0.0:9", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		eq(pl_port_uri_v6only(rows[i].uri, rows[i].other), rows[i].want, "%s beside %s",
			rows[i].uri, rows[i].other);
}

int main(void)
{
	bool v6 = have_v6();

	test_exchange("udp://127.0.0.1:0", "127.0.0.1", "udp://127.0.0.1:");
	test_exchange("udp://:0", "127.0.0.1", v6 ? "udp://[::]:" : "udp://0.0.0.0:");
	test_exchange("udp://0.0.0.0:0", "127.0.0.1", "udp://0.0.0.0:");
	test_exchange("udp://*:0", "127.0.0.1", v6 ? "udp://[::]:" : "udp://0.0.0.0:");
	test_exchange("udp://localhost:0?timestamp=kernel", "127.0.0.1", "udp://");
	if (v6) {
		test_exchange("udp://:0", "[::1]", "udp://[::]:");
		test_exchange("udp://*:0", "[::1]", "udp://[::]:");
		test_exchange("udp://[::1]:0?timestamp=kernel", "[::1]", "udp://[::1]:");
		test_beside(true);
		test_beside(false);
	}
	test_which_are_beside();
	test_tells_dst("udp://:0");
	test_tells_dst("udp://0.0.0.0:0?timestamp=kernel");
	test_cut_and_jumbo();
	test_drops();
	test_steering(v6);
	test_errors();
	test_gso();
	test_adopted();
	return pl_test_done();
}
