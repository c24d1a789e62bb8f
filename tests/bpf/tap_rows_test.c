/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames that stand for several packets on the wire, as the tap in the kernel gives them: rows of its
 * ring over several calls, those of which nothing is known, packets counted by key. Frames are those
 * of test runs; tap_kernel_test.c compares the records with user space's. Needs root.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sched.h>
#include <unistd.h>

#include "base/test.h"
#include "tap/kernel.h"
#include "wire/tunnel_ports.h"

#include "netio/rtnl_net.h"
#include "tap_packets.h"

#define PORTS 8

/* By dport, in the word at 40. */
static const struct pl_tap_count_plan by_port = { .on = 1,
	.n = 1,
	.at = { 40 },
	.mask = { UINT64_C(0xffff) << 16 } };

static struct {
	uint64_t packets[PORTS], bytes, payload;
} sums;

static void on_counts(void *arg, const struct pl_tap_count *counts, uint32_t n)
{
	(void)arg;
	for (uint32_t i = 0; i < n; i++) {
		sums.packets[counts[i].record.dport % PORTS] += counts[i].value.packets;
		sums.bytes += counts[i].value.wire_bytes;
		sums.payload += counts[i].value.pay_bytes;
	}
}

/* The program looks at the frame, in a test run. */
static int run_frame(int fd, const struct tap_packet *p, uint32_t gso_size, uint32_t segs)
{
	struct __sk_buff skb = { .gso_size = gso_size, .gso_segs = segs };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = p->bytes, .data_size_in = p->len,
		.ctx_in = &skb, .ctx_size_in = sizeof(skb), .repeat = 1);

	return bpf_prog_test_run_opts(fd, &o);
}

/* Of UDP to this port, so many bytes. */
static void make_datagram(struct tap_packet *p, uint16_t dport, uint32_t payload)
{
	static const uint8_t head[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 0, 0,
		7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2 };

	p->len = 0;
	for (size_t i = 0; i < sizeof(head); i++)
		put8(p, head[i]);
	put16(p, 1234);
	put16(p, dport);
	put16(p, 8 + payload);
	put16(p, 0);
	while (payload-- > 0)
		put8(p, 0);
	set16(p, 16, p->len - 14);
}

/* Rows are given over several calls; of UDP the kernel's number of packets must be right; of tunnels
 * nothing is known here. */
static void test_rows(void)
{
	static struct pl_pkt96 records[PL_TAP_KERNEL_BATCH];
	static struct pl_tap_rules rules;
	const struct pl_tap_kernel_options o = { .rules = &rules };
	struct pl_diag diag = { .text = "" };
	struct pl_tap_kernel_counts c;
	uint64_t n = 0, wrong = 0, calls = 0;
	struct tap_packet p;
	struct pl_tap_kernel *k;
	int r, fd;

	rules = (struct pl_tap_rules){ 0 };
	if (!ok(pl_tap_kernel_open(&k, "tc:lo?dir=in&record=pkt64", &o, &diag) == 0, "opens %s",
		    diag.text))
		return;
	fd = pl_tap_kernel_program(k);
	make_datagram(&p, 5000, 400);
	for (int i = 0; i < 3; i++)
		eq(run_frame(fd, &p, 1, 400), 0, "a frame of one byte each");
	while ((r = pl_tap_kernel_recv(k, records, &diag)) > 0) {
		for (int i = 0; i < r; i++)
			wrong += records[i].pay_len != 1 || records[i].wire_len != 29 ||
				 records[i].ip_id != 0 || records[i].record_seq != 0 ||
				 records[i].flow_hash == 0;
		n += (uint64_t)r;
		calls++;
	}
	eq(n, 1200, "records of all packets");
	eq(wrong, 0, "each of them");
	eq(calls, (1200 + PL_TAP_KERNEL_BATCH - 1) / PL_TAP_KERNEL_BATCH, "calls");
	eq(run_frame(fd, &p, 100, 3), 0, "a frame of four packets that says three");
	make_datagram(&p, PL_PORT_VXLAN, 400);
	eq(run_frame(fd, &p, 100, 4), 0, "a frame in a tunnel");
	eq(pl_tap_kernel_recv(k, records, &diag), 2, "each is one record");
	eq(records[0].pay_len, 400);
	pl_tap_kernel_counts(k, &c);
	eq(c.joined, 2, "and counted");
	eq(c.records, 1202);
	eq(c.entries, 3 * 2 + 2, "a row and the last one's record of each");
	pl_tap_kernel_close(k);
}

/* Packets of a frame are counted by key as they were on the wire. */
static void test_rows_counted(void)
{
	static struct pl_tap_rules rules;
	const struct pl_tap_kernel_options o = { .rules = &rules, .plan = &by_port };
	struct pl_diag diag = { .text = "" };
	struct pl_tap_kernel_counts c;
	struct tap_packet p;
	struct pl_tap_kernel *k;

	memset(&sums, 0, sizeof(sums));
	rules = (struct pl_tap_rules){ 0 };
	(void)pl_tap_rules_add(&rules, "take proto=udp dport=8000 sample=4", NULL);
	(void)pl_tap_rules_add(&rules, "skip dport=8002", NULL);
	if (!ok(pl_tap_kernel_open(&k, "tc:lo?dir=in", &o, &diag) == 0, "opens %s", diag.text))
		return;
	for (uint16_t port = 8000; port < 8003; port++) {
		make_datagram(&p, port, 401);
		eq(run_frame(pl_tap_kernel_program(k), &p, 20, 21), 0, "a frame");
	}
	eq(pl_tap_kernel_stop_counts(k, on_counts, NULL, &diag), 0, "%s", diag.text);
	pl_tap_kernel_counts(k, &c);
	eq(sums.packets[0], 6, "packets 1, 5, … 21 of the first frame");
	eq(sums.packets[1], 21, "all of the second");
	eq(sums.bytes, 5 * 48 + 29 + 20 * 48 + 29, "and their bytes");
	eq(sums.payload, 6 * 20 - 19 + 401);
	eq(c.counted, 27);
	eq(c.not_sampled, 15);
	eq(c.skipped, 21);
	eq(c.records, 0);
	pl_tap_kernel_close(k);
}

int main(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
		return pl_test_skip("needs root and network namespaces");
	if (ok(pl_rtnl_up("lo", true) == 0, "an interface")) {
		test_rows();
		test_rows_counted();
	}
	return pl_test_done();
}
