/* SPDX-License-Identifier: BSD-2-Clause */
/* Two NICs over a veth pair between two namespaces: peers found by the kernel, RoCE frames across,
 * and the host's own traffic as it was. Needs root. */
#include "nic/nic.h"

#include <poll.h>

#include "base/clock.h"
#include "base/test.h"
#include "netio/rtnl_net.h"
#include "nic/test_pair.h"

static struct pl_frames frames;
static uint8_t memory[8 * PL_ROCE_FRAME_MAX];
static const uint8_t payload[1024];

/* The carrier of a new pair takes a moment, and the neighbour's answer another one. */
static int find_path(struct pl_nic *nic, const struct pl_addr *peer, struct pl_roce_path *path)
{
	int r;

	(void)eventually(
		(r = pl_nic_path(nic, peer, NULL, path, NULL)) != -EAGAIN && r != -EHOSTUNREACH);
	return r;
}

static int send_five(struct pl_nic *nic, const struct pl_roce_path *path)
{
	pl_frames_init(&frames, memory, sizeof(memory));
	for (uint32_t i = 0; i < 5; i++) {
		struct pl_roce p = {
			.path = *path, .opcode = PL_ROCE_UC | PL_ROCE_SEND_ONLY, .qpn = 77, .psn = i
		};

		pl_frames_put(&frames, &p, payload, sizeof(payload));
	}
	return pl_nic_send(nic, &frames, NULL);
}

/* Frames received until there are `wanted`, or nothing came for long. */
static uint32_t receive(struct pl_nic *nic, uint32_t wanted, uint32_t *ret_good)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	static struct pl_batch batch;
	uint32_t n = 0;

	while (n < wanted && pl_clock_mono_ns() < until) {
		int r = pl_nic_recv(nic, &batch, 100, NULL);

		if (r <= 0)
			continue;
		for (uint32_t i = 0; i < batch.n; i++) {
			const struct pl_packet *p = &batch.pkts[i];
			struct pl_roce roce;

			*ret_good += pl_roce_parse(&roce, pl_cursor(p->data, p->len), p->link) ==
					     PL_ROCE_F_OK &&
				     roce.opcode == (PL_ROCE_UC | PL_ROCE_SEND_ONLY);
		}
		n += batch.n;
		pl_nic_release(nic, &batch);
	}
	return n;
}

/* A socket that has sent to a UDP port on the other side. */
static int sent_to(uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = inet_addr("10.7.0.2") };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (connect(s, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		(void)!send(s, "12345678", 8, 0);
	return s;
}

/* Whether it heard that the port is refused. */
static bool refused(int s)
{
	int error = 0;
	socklen_t len = sizeof(error);

	(void)getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &len);
	return error == ECONNREFUSED;
}

/* The host refuses another port than RoCE's, and was silent about what came to RoCE's before. */
static void test_refused(const char *uri)
{
	const int roce = sent_to(PL_ROCE_PORT), other = sent_to(4790);

	ok(eventually(refused(other), send(other, "12345678", 8, 0)),
		"%s: the host refuses another port", uri);
	ok(!refused(roce), "%s: and is silent about RoCE's", uri);
	close(roce);
	close(other);
}

/* A datagram to another port reaches a socket of the host. */
static bool host_receives(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_port = htons(21501),
		.sin_addr.s_addr = inet_addr("10.7.0.2") };
	struct timeval limit = { .tv_sec = PL_TEST_PATIENCE_S };
	char got[8] = "";
	int to, from;

	(void)pair_enter(1);
	to = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	(void)!bind(to, (struct sockaddr *)&sa, sizeof(sa));
	(void)pair_enter(0);
	from = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)!sendto(from, "hello", 5, 0, (struct sockaddr *)&sa, sizeof(sa));
	close(from);
	(void)!recv(to, got, sizeof(got), 0);
	close(to);
	return strcmp(got, "hello") == 0;
}

static void test_pair(const char *a_uri, const char *b_uri)
{
	const struct pl_addr a = pair_addr(0), b = pair_addr(1);
	struct pl_roce_path path = { .ttl = 0 };
	struct pl_diag diag = { .text = "" };
	struct pl_nic *left = NULL, *right = NULL;
	struct pl_port_stats stats;
	uint32_t good = 0;

	(void)pair_enter(1);
	ok(pl_nic_open(&right, b_uri, NULL, &diag) == 0, "%s: opens %s", b_uri, diag.text);
	(void)pair_enter(0);
	ok(pl_nic_open(&left, a_uri, NULL, &diag) == 0, "%s: opens %s", a_uri, diag.text);
	if (left == NULL || right == NULL)
		goto out;
	eq((uint64_t)find_path(left, &b, &path), 0, "%s: finds the peer", a_uri);
	ok(pl_addr_equal(&path.src, &a) && pl_addr_equal(&path.dst, &b), "%s: by its addresses",
		a_uri);
	memeq(path.smac, pl_nic_mac(left), 6, "%s: from its MAC address", a_uri);
	memeq(path.dmac, pl_nic_mac(right), 6, "%s: to the peer's", a_uri);
	eq(pl_nic_mtu(left), 1024, "%s: path MTU of an MTU of 1500", a_uri);

	eq((uint64_t)send_five(left, &path), 0, "%s: sends", a_uri);
	eq(frames.batch.n, 0, "%s: and has none left", a_uri);
	eq(pl_counter_read(&pl_nic_counters(left)->sent), 5, "%s: counts them", a_uri);
	pl_nic_stats(left, &stats);
	eq(stats.ring_sent, strncmp(a_uri, "afxdp", 5) == 0 ? 5 : 0, "%s: by its ring", a_uri);
	ok(pl_nic_note(left) == NULL, "%s: and there is nothing to note", a_uri);
	eq(receive(right, 5, &good), 5, "%s: receives", b_uri);
	eq(good, 5, "%s: and they are whole", b_uri);
	pl_nic_stats(right, &stats);
	eq(stats.packets, 5, "%s: counts them", b_uri);

	test_refused(b_uri);
	good = 0;
	if (strncmp(b_uri, "packet", 6) == 0) {
		eq(receive(right, 1, &good), 1, "%s: the NIC has that datagram", b_uri);
		eq(good, 0, "%s: which is no RoCE", b_uri);
	}
	ok(host_receives(), "%s: the host's datagrams pass", b_uri);
out:
	pl_nic_close(left);
	pl_nic_close(right);
}

/* A new pair, whose carrier the kernel's flags tell up to a second later, takes frames at once; one
 * that is down lets them wait, and has them sent when it is up again. */
static void test_down(void)
{
	const struct pl_addr b = pair_addr(1);
	struct pl_nic *left = NULL, *right = NULL;
	struct pl_roce_path path = { .ttl = 0 };
	uint32_t good = 0;
	int r;

	(void)pair_enter(1);
	(void)pl_nic_open(&right, "packet:plb0", NULL, NULL);
	(void)pair_enter(0);
	(void)pl_nic_open(&left, "packet:pla0", NULL, NULL);
	if (!ok(left != NULL && right != NULL, "a pair's ends open at once"))
		goto out;
	(void)find_path(left, &b, &path);
	eq((uint64_t)send_five(left, &path), 0, "they take frames at once");
	eq(receive(right, 5, &good), 5, "which arrive");
	(void)pl_rtnl_up("pla0", false);
	eq((uint64_t)-send_five(left, &path), ENETDOWN, "down");
	eq(frames.batch.n, 5, "frames wait");
	eq(pl_counter_read(&pl_nic_counters(left)->unsent), 0, "none is lost");
	(void)pl_rtnl_up("pla0", true);
	(void)eventually((r = pl_nic_send(left, &frames, NULL)) != -ENETDOWN);
	eq((uint64_t)r, 0, "up");
	eq(frames.batch.n, 0, "they are sent");
	(void)pl_rtnl_up("pla0", false);
	(void)send_five(left, &path);
	pl_nic_drop(left, &frames);
	ok(frames.batch.n == 0 && pl_counter_read(&pl_nic_counters(left)->unsent) == 5,
		"who does not wait has them counted");
	(void)pl_rtnl_up("pla0", true);
out:
	pl_nic_close(left);
	pl_nic_close(right);
}

#if PL_HAVE_BPF
/* The news that recv gives, which is wanted; others are skipped. */
static bool hears(struct pl_nic *nic, int wanted)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	static struct pl_batch batch;
	int r;

	do {
		r = pl_nic_recv(nic, &batch, 100, NULL);
		if (r > 0)
			pl_nic_release(nic, &batch);
	} while (r != wanted && pl_clock_mono_ns() < until);
	return r == wanted;
}

static void put_many(const struct pl_roce_path *path, uint32_t n)
{
	const struct pl_roce p = {
		.path = *path, .opcode = PL_ROCE_UC | PL_ROCE_SEND_ONLY, .qpn = 77
	};

	for (uint32_t i = 0; i < n; i++)
		pl_frames_put(&frames, &p, payload, 16);
}

/* One socket that sends and receives: batches longer than the kernel takes at once, more frames
 * than the ring has, answers in between, and the interface down and up again, which sending does
 * not keep from being told. */
static void test_ring(const char *a_uri)
{
	enum { AT_ONCE = 100, ROUNDS = 60 }; /* of a ring of 4096 */
	const struct pl_addr b = pair_addr(1);
	struct pl_nic *left = NULL, *right = NULL;
	struct pl_roce_path path = { .ttl = 0 }, back = { .ttl = 0 };
	struct pl_port_stats stats;
	uint32_t good = 0, came = 0, answers = 0;
	bool sent = true;

	(void)pair_enter(1);
	(void)pl_nic_open(&right, "afxdp:plb0", NULL, NULL);
	(void)pair_enter(0);
	(void)pl_nic_open(&left, a_uri, NULL, NULL);
	if (!ok(left != NULL && right != NULL, "%s: opens", a_uri))
		goto out;
	(void)find_path(left, &b, &path);
	back = path;
	memcpy(back.smac, path.dmac, 6);
	memcpy(back.dmac, path.smac, 6);
	back.src = path.dst;
	back.dst = path.src;
	for (int i = 0; i < ROUNDS && sent; i++) {
		pl_frames_init(&frames, memory, sizeof(memory));
		put_many(&path, AT_ONCE);
		sent = pl_nic_send(left, &frames, NULL) == 0;
		came += receive(right, AT_ONCE, &good);
		put_many(&back, AT_ONCE);
		sent = sent && pl_nic_send(right, &frames, NULL) == 0;
		answers += receive(left, AT_ONCE, &good);
	}
	ok(sent, "%s: all are taken", a_uri);
	eq(came, AT_ONCE * ROUNDS, "%s: and arrive without any later ones", a_uri);
	eq(answers, AT_ONCE * ROUNDS, "%s: answers too", a_uri);
	eq(good, 2 * AT_ONCE * ROUNDS, "%s: whole", a_uri);
	pl_nic_stats(left, &stats);
	eq(stats.ring_sent, AT_ONCE * ROUNDS, "%s: by the ring", a_uri);
	eq(stats.ring_drops + stats.errors, 0, "%s: which lost none", a_uri);

	(void)pl_rtnl_up("pla0", false);
	ok(hears(left, -ENETDOWN), "%s: down is told", a_uri);
	eq((uint64_t)-send_five(left, &path), ENETDOWN, "%s: down", a_uri);
	eq(frames.batch.n, 5, "%s: frames wait", a_uri);
	(void)pl_rtnl_up("pla0", true);
	ok(hears(left, -EAGAIN), "%s: up is told", a_uri);
	eq((uint64_t)pl_nic_send(left, &frames, NULL), 0, "%s: they are sent", a_uri);
	good = 0;
	(void)receive(right, 5, &good);
	eq(good, 5, "%s: and arrive", a_uri);
out:
	pl_nic_close(left);
	pl_nic_close(right);
}
#endif

/* Two addresses of the loopback, by UDP sockets. */
static void test_sockets(void)
{
	const struct pl_addr a = pl_addr_v4((const uint8_t[]){ 127, 0, 0, 1 }),
			     b = pl_addr_v4((const uint8_t[]){ 127, 0, 0, 2 }),
			     six = { .b = { [15] = 1 } };
	struct pl_nic *left = NULL, *right = NULL;
	struct pl_diag diag = { .text = "" };
	struct pl_roce_path path;
	struct pl_addr *own;
	struct pl_port_stats stats;
	uint32_t good = 0, n = 0;

	(void)pl_rtnl_up("lo", true);
	(void)pl_nic_open(&left, "udp://127.0.0.1", NULL, &diag);
	(void)pl_nic_open(&right, "udp://127.0.0.2:4791", NULL, &diag);
	if (!ok(left != NULL && right != NULL, "sockets: %s", diag.text))
		goto out;
	ok(strcmp(pl_nic_name(right), "udp://127.0.0.2") == 0, "%s", pl_nic_name(right));
	ok(pl_nic_mtu(left) == 4096, "the loopback carries the largest packets");
	ok(pl_nic_addresses(right, &own, &n, &diag) == 0 && n == 1 && pl_addr_equal(own, &b),
		"a socket has one address");
	free(own);
	ok(pl_nic_path(left, &b, NULL, &path, &diag) == 0 && pl_addr_equal(&path.src, &a) &&
			path.sport == PL_ROCE_PORT,
		"the path needs nobody's MAC address");
	ok(pl_nic_path(left, &six, NULL, &path, &diag) == -ENETUNREACH, "%s", diag.text);
	(void)pl_nic_path(left, &b, NULL, &path, &diag);
	eq((uint64_t)send_five(left, &path), 0, "sockets: sends");
	eq(pl_counter_read(&pl_nic_counters(left)->sent), 5, "sockets: counts them");
	eq(receive(right, 5, &good), 5, "sockets: receives");
	eq(good, 5, "sockets: and they are whole");
	pl_nic_stats(right, &stats);
	eq(stats.packets, 5, "sockets: counts them");
	path.v1 = true;
	(void)send_five(left, &path);
	eq(pl_counter_read(&pl_nic_counters(left)->unsent), 5, "sockets: RoCEv1 is no datagram");
	path.v1 = false;
	path.dst = pl_addr_v4((const uint8_t[]){ 255, 255, 255, 255 });
	ok(send_five(left, &path) < 0, "sockets: where nobody may send");
	eq(pl_counter_read(&pl_nic_counters(left)->unsent), 10, "sockets: is counted");
out:
	pl_nic_close(left);
	pl_nic_close(right);
}

static void test_refusals(void)
{
	static const char *const bad[] = { "udp://:4791", "udp://10.7.0.1:4790",
		"udp://10.7.0.1?sockets=2", "udp://10.99.99.99", "pla0", "pcap:x",
		"packet:", "packet:?ring=64", "packet:a-name-that-is-too-long",
		"packet:pla0?rings=64", "packet:pla0?block=12KiB", "packet:pla0?block=4KiB",
		"packet:pla0?block=2MiB", "packet:nosuch0", "afxdp:pla0?queues=9" };
	static const char *const good[] = { "packet:pla0?block=8KiB",
		"packet:pla0?ring=64&block=1MiB", "packet:pla0?port=4791", "packet:pla0?ring=64" };
	const struct pl_addr far = { .b = { 0x20, 1, 0xd, 0xb8, [15] = 1 } },
			     nobody = pl_addr_v4((const uint8_t[]){ 10, 7, 0, 99 });
	const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	struct pl_roce_path path;
	struct pl_diag diag;
	struct pl_nic *nic;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		diag.text[0] = '\0';
		ok(pl_nic_open(&nic, bad[i], NULL, &diag) < 0 && diag.text[0] != '\0', "%s: %s",
			bad[i], diag.text);
	}
#if !PL_HAVE_BPF
	ok(pl_nic_open(&nic, "afxdp:pla0", NULL, &diag) < 0 &&
			strstr(diag.text, "built without AF_XDP") != NULL,
		"what is not built in is called so: %s", diag.text);
#endif
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		diag.text[0] = '\0';
		if (ok(pl_nic_open(&nic, good[i], NULL, &diag) == 0, "%s%s", good[i], diag.text))
			pl_nic_close(nic);
	}
	if (!ok(pl_nic_open(&nic, "packet:pla0", NULL, NULL) == 0, "opens"))
		return;
	ok(pl_nic_path(nic, &far, NULL, &path, &diag) == -ENETUNREACH, "no route: %s", diag.text);
	ok(pl_nic_path(nic, &nobody, mac, &path, NULL) == 0,
		"a MAC address that is given is not asked for");
	memeq(path.dmac, mac, 6, "and taken");
	ok(pl_nic_path(nic, &nobody, NULL, &path, &diag) == -EAGAIN, "nobody there: %s", diag.text);
	pl_nic_close(nic);
	pl_nic_close(NULL);
}

int main(void)
{
	if (geteuid() != 0 || pair_make() < 0)
		return pl_test_skip("needs root and network namespaces");
	test_down();
	test_pair("packet:pla0", "packet:plb0");
#if PL_HAVE_BPF
	test_pair("packet:pla0", "afxdp:plb0");
	test_pair("afxdp:pla0?queues=0", "afxdp:plb0?queues=0&ring=1024");
	test_ring("afxdp:pla0");
	test_ring("afxdp:pla0?mode=generic&copy=copy&ring=256");
#endif
	test_sockets();
	test_refusals();
	return pl_test_done();
}
