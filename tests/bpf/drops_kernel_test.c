/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program of dropped packets in the running kernel: datagrams to a closed port of loopback, as
 * many as the kernel counts itself, and frames without IP; rules, rate, a full ring; other
 * namespaces. Needs root; also run on Linux 6.1 (old_kernel.py), whose
 * tracepoint tells less and whose sk_buff is laid out in another way.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/test.h"
#include "netio/rtnl_net.h"
#include "tap/drops.h"

#define PORT    4001
#define WAIT_NS UINT64_C(60000000000)

static struct pl_drop168 got[8192];
static uint32_t n_got;
static const struct pl_tap_rules all;

static uint64_t mono_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct pl_tap_drops *open_drops(const char *uri, const struct pl_tap_rules *rules)
{
	struct pl_diag diag = { .text = "" };
	struct pl_tap_drops *d = NULL;

	n_got = 0;
	ok(pl_tap_drops_open(&d, uri, rules, 5, &diag) == 0, "%s: %s", uri, diag.text);
	return d;
}

static uint32_t of_port(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_got; i++)
		n += got[i].dport == PORT;
	return n;
}

/* Until there are so many, or so many to PORT, or as long as a machine may take. */
static void receive(struct pl_tap_drops *d, uint32_t n, uint32_t n_of_port)
{
	const uint64_t until = mono_ns() + WAIT_NS;

	while ((n_got < n || of_port() < n_of_port) && mono_ns() < until) {
		struct pl_diag diag = { .text = "" };
		int r = 0;

		if (n_got + PL_TAP_DROPS_BATCH <= sizeof(got) / sizeof(got[0]))
			r = pl_tap_drops_recv(d, got + n_got, &diag);
		if (r < 0)
			break;
		n_got += (uint32_t)r;
	}
}

/* A line's number in the second of the two lines of a protocol in /proc/net/snmp. */
static uint64_t no_ports(void)
{
	FILE *f = fopen("/proc/thread-self/net/snmp", "re");
	char line[1024];
	unsigned long long n = 0, in;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		(void)sscanf(line, "Udp: %llu %llu", &in, &n);
	if (f != NULL)
		fclose(f);
	return n;
}

static void send_to(int family, uint16_t port, unsigned int n)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const int s = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (unsigned int i = 0; i < n; i++)
		(void)sendto(s, "twenty bytes of data", 20, 0,
			family == AF_INET ? (const struct sockaddr *)&v4
					  : (const struct sockaddr *)&v6,
			family == AF_INET ? sizeof(v4) : sizeof(v6));
	close(s);
}

static void closes(struct pl_tap_drops *d, uint64_t drops)
{
	uint64_t by[PL_DROPS_REASONS] = { 0 }, sum = 0;
	struct pl_drops_counts c;

	pl_tap_drops_counts(d, &c);
	pl_tap_drops_by_reason(d, by);
	for (uint32_t i = 0; i < PL_DROPS_REASONS; i++)
		sum += by[i];
	eq(sum, c.records + c.skipped + c.not_sampled + c.rate_limited + c.ring_full,
		"every drop has a reason");
	/* Of others on the machine one may be missed. */
	ok(sum >= drops, "all are counted: %lu of %lu, %lu missed", (unsigned long)sum,
		(unsigned long)drops, (unsigned long)pl_tap_drops_missed(d));
}

static void test_records(void)
{
	struct pl_tap_drops *d = open_drops("drops:", &all);
	const uint64_t before = no_ports();
	uint64_t by[PL_DROPS_REASONS] = { 0 };
	uint32_t wrong = 0, v4 = 0, v6 = 0, named = 0;
	char name[PL_DROPS_NAME_MAX];

	if (d == NULL)
		return;
	send_to(AF_INET, PORT, 500);
	send_to(AF_INET6, PORT, 300);
	eq(no_ports() - before, 500, "the kernel counts those of IPv4");
	receive(d, 0, 800);
	for (uint32_t i = 0; i < n_got; i++) {
		const struct pl_drop168 *r = &got[i];

		if (r->dport != PORT)
			continue;
		v4 += r->ethertype == ETHERTYPE_IP;
		v6 += r->ethertype == ETHERTYPE_IPV6;
		wrong += r->reason != PL_DROP_NO_SOCKET || r->proto != 17 || r->pay_len != 20 ||
			 r->ifindex != 1 || strcmp(r->interface.c, "lo") != 0 || r->obs != 5 ||
			 r->vlan != 0 || r->flow_hash == 0 || r->skb_len < 20 ||
			 !pl_addr_equal(&r->src, &r->dst) ||
			 r->wire_len != (r->ethertype == ETHERTYPE_IP ? 48 : 68);
		named += strncmp(r->place.c, "__udp", 5) == 0 || strncmp(r->place.c, "udp", 3) == 0;
	}
	eq(v4, 500, "a record of each");
	eq(v6, 300, "and of those of IPv6");
	eq(wrong, 0, "with what the packet was");
	eq(named, 800, "and its place: %s", n_got > 0 ? got[0].place.c : "");
	pl_tap_drops_by_reason(d, by);
	for (uint32_t i = 0; i < PL_DROPS_REASONS; i++) {
		pl_tap_drops_reason_name(d, i, name);
		if (strcmp(name, "NO_SOCKET") == 0)
			ok(by[i] >= 800, "NO_SOCKET is %u here", i);
	}
	closes(d, 800);
	pl_tap_drops_close(d);
}

/* Frames of a protocol that the host does not speak. */
static void test_frames(void)
{
	const int s = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	const struct sockaddr_ll lo = { .sll_family = AF_PACKET, .sll_ifindex = 1 };
	struct pl_tap_drops *d = open_drops("drops:lo", &all);
	uint8_t frame[60] = { [12] = 0x88, [13] = 0xb5 };
	uint32_t found = 0;

	if (d == NULL)
		return;
	for (unsigned int k = 0; k < 20; k++)
		(void)!sendto(s, frame, sizeof(frame), 0, (const struct sockaddr *)&lo, sizeof(lo));
	close(s);
	receive(d, 20, 0);
	for (uint32_t k = 0; k < n_got; k++)
		found += got[k].ethertype == 0x88b5 && pl_addr_is_unspecified(&got[k].src) &&
			 got[k].proto == 0 && got[k].flow_hash == 0 &&
			 got[k].reason == PL_DROP_UNHANDLED_PROTO;
	eq(found, 20, "an unknown protocol: %s, ethertype %x",
		pl_form_word(PL_FORM_DROP_REASON, got[0].reason), got[0].ethertype);
	closes(d, 20);
	pl_tap_drops_close(d);
}

static void test_rules(void)
{
	struct pl_tap_rules rules = { .n = 0 };
	struct pl_drops_counts c;
	struct pl_tap_drops *d;

	(void)pl_tap_rules_add(&rules, "skip dport=4002", NULL);
	(void)pl_tap_rules_add(&rules, "mark dport=4003 sample=10", NULL);
	d = open_drops("drops:lo", &rules);
	if (d == NULL)
		return;
	send_to(AF_INET, 4002, 100);
	send_to(AF_INET, 4003, 100);
	send_to(AF_INET, 4004, 100);
	receive(d, 110, 0);
	eq(n_got, 110, "what rules take");
	pl_tap_drops_counts(d, &c);
	ok(c.skipped == 100 && c.not_sampled == 90, "and what they leave: %lu, %lu",
		(unsigned long)c.skipped, (unsigned long)c.not_sampled);
	closes(d, 300);
	pl_tap_drops_close(d);
}

static void test_bounds(void)
{
	struct pl_tap_drops *d = open_drops("drops:?rate=10", &all);
	struct pl_drops_counts c;
	uint64_t begun = mono_ns(), took;

	if (d == NULL)
		return;
	send_to(AF_INET, PORT, 20000);
	pl_tap_drops_counts(d, &c);
	took = mono_ns() - begun;
	eq(c.records + c.rate_limited, 20000, "each is a record or beyond the rate");
	ok(c.records >= 10 && c.records <= 11 + took / 100000000, "%lu records",
		(unsigned long)c.records);
	closes(d, 20000);
	pl_tap_drops_close(d);
	d = open_drops("drops:?ring=64KiB&rate=10000000", &all);
	if (d == NULL)
		return;
	send_to(AF_INET, PORT, 2000);
	pl_tap_drops_counts(d, &c);
	ok(c.ring_full > 0 && c.records + c.ring_full == 2000, "a full ring: %lu records",
		(unsigned long)c.records);
	receive(d, (uint32_t)c.records, 0);
	eq(n_got, c.records, "which are all there");
	closes(d, 2000);
	pl_tap_drops_close(d);
}

static void test_elsewhere(void)
{
	struct pl_tap_drops *d = open_drops("drops:", &all);
	struct pl_drops_counts c;
	pid_t pid;

	if (d == NULL)
		return;
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNET) == 0 && pl_rtnl_up("lo", true) == 0)
			send_to(AF_INET, PORT, 100);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	send_to(AF_INET, PORT, 1);
	receive(d, 1, 0);
	pl_tap_drops_counts(d, &c);
	ok(c.other_namespace >= 100 && c.records == 1, "of another namespace: %lu",
		(unsigned long)c.other_namespace);
	pl_tap_drops_stop(d);
	send_to(AF_INET, PORT, 5);
	pl_tap_drops_counts(d, &c);
	eq(c.records, 1, "stopped: no more");
	pl_tap_drops_close(d);
}

int main(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
		return pl_test_skip("needs root and network namespaces");
	if (ok(pl_rtnl_up("lo", true) == 0, "an interface")) {
		test_records();
		test_frames();
		test_rules();
		test_bounds();
		test_elsewhere();
	}
	return pl_test_done();
}
