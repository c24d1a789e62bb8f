/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames that a port on an interface takes: the keys of the URI, and the rules as a classic BPF
 * program, which the kernel runs here on the messages of a socket pair. Its results for random
 * frames are compared with the rules written out in plain C, and with the XDP filter where BPF may
 * be loaded.
 */
#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"
#include "netio/iface.h"
#if PL_HAVE_BPF
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "netio/xdp.h"

#include "bpf/collect.skel.h" /* knows the types above only by name */
#endif

#define FRAME_MAX 160

static const char *const keys[] = { PL_IFACE_KEYS, NULL };

static int rules_of(const char *uri, struct pl_filter_rules *ret, struct pl_diag *diag)
{
	static struct pl_uri parts;
	int r = pl_uri_split(&parts, uri, keys, diag);

	return r < 0 ? r : pl_iface_rules(&parts, ret, diag);
}

static void test_rules(void)
{
	static const struct {
		const char *uri, *says; /* NULL: good */
	} rows[] = {
		{ "eth0", NULL },
		{ "eth0?port=1", NULL },
		{ "eth0?port=1,65535", NULL },
		{ "eth0?dst=10.0.0.1,fd00::1", NULL },
		{ "eth0?vlan=1,4094", NULL },
		{ "eth0?port=4791&also=roce1", NULL },
		{ "eth0?also=roce",
			"'also=roce' in the URI: not one of ioam, int, dscp:N, udp:PORT, gre and roce1" },
		{ "eth0?also=ioam,int,gre,roce1,dscp:0x20,dscp:63,udp:4791", NULL },
		{ "eth0?port=none&also=ioam", NULL },
		{ "eth0?also=dscp:64",
			"'also=dscp:64' in the URI: not a number up to 63 behind the ':'" },
		{ "eth0?also=dscp:",
			"'also=dscp:' in the URI: not a number up to 63 behind the ':'" },
		{ "eth0?also=udp:65536",
			"'also=udp:65536' in the URI: not a number up to 65535 behind the ':'" },
		{ "eth0?also=udp:1,udp:2,udp:3,udp:4,udp:5,udp:6,udp:7,udp:8,udp:9",
			"'also=' in the URI: more than 8 UDP ports" },
		{ "eth0?port=none,5", "'port=none' in the URI: not a UDP port, 1 to 65535" },
		{ "eth0?port=0", "'port=0' in the URI: not a UDP port, 1 to 65535" },
		{ "eth0?port=65536", "'port=65536' in the URI: not a UDP port, 1 to 65535" },
		{ "eth0?port=x", "'port=x' in the URI: not a UDP port, 1 to 65535" },
		{ "eth0?port=1,", "'port=' in the URI: an item that is empty or too long" },
		{ "eth0?port=1,,2", "'port=' in the URI: an item that is empty or too long" },
		{ "eth0?vlan=0", "'vlan=0' in the URI: not a VLAN id, 1 to 4094" },
		{ "eth0?vlan=4095", "'vlan=4095' in the URI: not a VLAN id, 1 to 4094" },
		{ "eth0?dst=10.0.0.256",
			"'dst=10.0.0.256' in the URI: not an IPv4 or IPv6 address" },
		{ "eth0?dst=::1,::2,::3,::4,::5,::6,::7,::8,::9,::a,::b,::c,::d,::e,::f,::10,::11",
			"'dst=' in the URI: more than 16 addresses" },
	};
	struct pl_filter_rules rules;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_diag diag = { .text = "" };
		int r = rules_of(rows[i].uri, &rules, &diag);

		eq((uint64_t)r, (uint64_t)(rows[i].says == NULL ? 0 : -EINVAL), "%s", rows[i].uri);
		streq(diag.text, rows[i].says == NULL ? "" : rows[i].says, "%s: words",
			rows[i].uri);
	}
	rules_of("eth0", &rules, NULL);
	ok(rules.any_vlan == 1 && rules.naddrs == 0, "no key: any VLAN, any address");
	ok((rules.ports[32766 / 8] >> 32766 % 8 & 1) && (rules.ports[54321 / 8] >> 54321 % 8 & 1),
		"no key: the usual ports");
}

static void test_numbers(void)
{
	static const struct {
		const char *text;
		int n; /* negative: refused */
		uint32_t last;
	} rows[] = { { "0", 1, 0 }, { "0-3", 4, 3 }, { "1,3,5-6", 4, 6 }, { "7-7", 1, 7 },
		{ "", -1, 0 }, { "3-1", -1, 0 }, { "1,1", -1, 0 }, { "0-2,1", -1, 0 },
		{ "9", -1, 0 }, { "0-9", -1, 0 }, { "-1", -1, 0 }, { "1-", -1, 0 }, { "a", -1, 0 },
		{ "0-8", -1, 0 } /* more than the list has room for */ };
	uint32_t list[8];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int n = pl_iface_numbers("queues", rows[i].text, 8, list, 8, NULL);

		if (rows[i].n < 0) {
			ok(n == -EINVAL, "numbers '%s' are refused", rows[i].text);
		} else if (eq((uint64_t)n, (uint64_t)rows[i].n, "numbers '%s'", rows[i].text)) {
			eq(list[n - 1], rows[i].last, "numbers '%s': the last", rows[i].text);
		}
	}
}

/* ---- the programs ---- */

enum what { NOTHING, FRAGMENT, WHOLE };

/* A second, simple implementation of the rules; frames have one tag at most. */
static enum what wanted(const struct pl_filter_rules *rules, const uint8_t *p, uint32_t len)
{
	struct pl_addr dst;
	uint32_t at = 14, type, protocol, vlan = 0;
	enum what what = WHOLE;
	bool good;

	if (len < 14)
		return NOTHING;
	type = (uint32_t)p[12] << 8 | p[13];
	if (type == 0x8100 || type == 0x88a8) {
		if (len < 18)
			return NOTHING;
		vlan = ((uint32_t)p[14] << 8 | p[15]) & 0xfff;
		good = rules->any_vlan || (rules->vlans[vlan >> 3] >> (vlan & 7) & 1) != 0;
		type = (uint32_t)p[16] << 8 | p[17];
		at = 18;
	} else {
		good = rules->any_vlan != 0;
	}
	if (type == 0x0800) {
		if (len < at + 20 || p[at] >> 4 != 4 || (p[at] & 15) < 5 || p[at + 9] != 17 ||
			(p[at + 6] & 0x1f) != 0 || p[at + 7] != 0)
			return NOTHING;
		what = (p[at + 6] & 0x20) != 0 ? FRAGMENT : WHOLE;
		dst = pl_addr_v4(p + at + 16);
		at += (p[at] & 15u) * 4;
	} else if (type == 0x86dd) {
		if (len < at + 40 || p[at] >> 4 != 6)
			return NOTHING;
		dst = pl_addr_v6(p + at + 24);
		protocol = p[at + 6];
		at += 40;
		for (int i = 0; i < 2 && (protocol == 0 || protocol == 60); i++) {
			if (len < at + 2)
				return NOTHING;
			protocol = p[at];
			at += (p[at + 1] + 1u) * 8;
		}
		if (protocol == 44) {
			if (len < at + 8 || p[at + 2] != 0 || (p[at + 3] & 0xf8) != 0)
				return NOTHING;
			protocol = p[at];
			at += 8;
			what = FRAGMENT;
		}
		if (protocol != 17)
			return NOTHING;
	} else {
		return type == 0x8915 && rules->roce1 && good ? WHOLE : NOTHING;
	}
	if (len < at + 8)
		return NOTHING;
	type = (uint32_t)p[at + 2] << 8 | p[at + 3];
	if ((rules->ports[type >> 3] >> (type & 7) & 1) == 0 || !good)
		return NOTHING;
	for (uint32_t i = 0; i < rules->naddrs; i++) {
		if (pl_addr_equal(&dst, &rules->addrs[i]))
			return what;
	}
	return rules->naddrs == 0 ? what : NOTHING;
}

static const uint8_t v4_frame[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 40, 0, 0,
	0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34, 0x7f, 0xfe, 0, 20, 0, 0, 0x20,
	0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8 };
static const uint8_t v6_frame[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0,
	0, 20, 17, 64, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xfd, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 2, 0x12, 0x34, 0xd4, 0x31, 0, 20, 0, 0, 0x20, 0, 0, 0, 1, 2, 3, 4, 5,
	6, 7, 8 };

/* Makes the frame a first fragment, or at times a later one. Returns its length. */
static uint32_t make_fragment(struct pl_rng *rng, uint8_t *p, uint32_t ip, uint32_t len, bool v6)
{
	const uint8_t offset = pl_rng_below(rng, 4) == 0 ? 1 : 0;
	uint8_t *header = p + ip + 40;

	if (!v6) {
		p[ip + 6] = 0x20;
		p[ip + 7] = offset;
		return len;
	}
	/* In front of a payload that may be options: the filter does not look for those there. */
	memmove(header + 8, header, len - (ip + 40));
	memset(header, 0, 8);
	header[0] = p[ip + 6];
	header[3] = (uint8_t)(offset << 3 | pl_rng_below(rng, 2));
	p[ip + 6] = 44;
	return len + 8;
}

/* Makes a frame out of a good one: tagged, with options or extension headers, damaged, or cut.
 * Returns its length. */
static uint32_t random_frame(struct pl_rng *rng, uint8_t *p)
{
	bool v6 = pl_rng_below(rng, 2) != 0;
	uint32_t len = v6 ? sizeof(v6_frame) : sizeof(v4_frame), ip = 14;

	memset(p, 0, FRAME_MAX);
	memcpy(p, v6 ? v6_frame : v4_frame, len);
	if (pl_rng_below(rng, 2) != 0) {
		memmove(p + 16, p + 12, len - 12);
		p[12] = 0x81;
		p[13] = 0;
		if (pl_rng_below(rng, 4) == 0) {
			p[12] = 0x88;
			p[13] = 0xa8;
		}
		p[14] = (uint8_t)(pl_rng_below(rng, 8) << 5);
		p[15] = (uint8_t)(9 + pl_rng_below(rng, 3));
		len += 4;
		ip += 4;
	}
	if (pl_rng_below(rng, 3) == 0) {
		uint32_t more = v6 ? 8 * (1 + (uint32_t)pl_rng_below(rng, 2)) : 8,
			 at = ip + (v6 ? 40 : 20);

		memmove(p + at + more, p + at, len - at);
		memset(p + at, 1, more);
		len += more;
		if (v6) {
			p[ip + 6] = pl_rng_below(rng, 2) != 0 ? 0 : 60;
			p[at] = more == 16 ? 60 : 17;
			p[at + 1] = 0;
			p[at + 8] = more == 16 ? 17 : p[at + 8];
			p[at + 9] = more == 16 ? 0 : p[at + 9];
		} else {
			p[ip] = 0x47;
		}
	}
	if (pl_rng_below(rng, 8) == 0)
		len = make_fragment(rng, p, ip, len, v6);
	if (pl_rng_below(rng, 10) == 0) {
		p[ip - 2] = 0x89;
		p[ip - 1] = 0x15;
	}
	if (pl_rng_below(rng, 3) == 0)
		p[ip + (v6 ? 39 : 19)] = (uint8_t)pl_rng_below(rng, 4);
	for (uint64_t n = pl_rng_below(rng, 3); n > 0; n--)
		p[12 + pl_rng_below(rng, 50)] ^= (uint8_t)(1u << pl_rng_below(rng, 8));
	if (pl_rng_below(rng, 8) == 0)
		len = 14 + (uint32_t)pl_rng_below(rng, len - 14);
	return len;
}

/* Returns what the program passes of the frame. */
static enum what passes(const int *pair, const uint8_t *frame, uint32_t len)
{
	uint8_t back[FRAME_MAX];
	ssize_t n = send(pair[0], frame, len, 0);

	if (n == (ssize_t)len)
		n = recv(pair[1], back, sizeof(back), MSG_DONTWAIT);
	return n == (ssize_t)len ? WHOLE : n == PL_IFACE_FRAGMENT ? FRAGMENT : NOTHING;
}

static int make_pair(const struct pl_filter_rules *rules, int *pair)
{
	static struct sock_filter code[PL_IFACE_CBPF_MAX];
	struct sock_fprog program = { .filter = code };
	int n = pl_iface_cbpf(rules, code, PL_IFACE_CBPF_MAX);

	if (n < 0)
		return n;
	program.len = (uint16_t)n;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
		return -errno;
	return setsockopt(pair[1], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0
		       ? -errno
		       : 0;
}

#if PL_HAVE_BPF
static struct pl_bpf_collect *skel;

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* Returns true when the filter takes the frame; no socket receives it. */
static bool xdp_takes(const uint8_t *frame, uint32_t len)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = len, .repeat = 1);
	struct pl_filter_counts before, after;
	int counts = bpf_map__fd(skel->maps.pl_filter_counts);
	uint64_t sum = 0;

	pl_xdp_counts(counts, &before);
	if (bpf_prog_test_run_opts(bpf_program__fd(skel->progs.pl_collect), &o) < 0)
		return false;
	pl_xdp_counts(counts, &after);
	for (unsigned int c = 0; c < PL_FILTER_MAX; c++)
		sum += after.frames[c] - before.frames[c];
	/* Every frame has one cause, and none is dropped. */
	if (sum != 1 || o.retval != 2 /* XDP_PASS */)
		printf("# %u causes, action %u\n", (unsigned int)sum, o.retval);
	return after.frames[PL_FILTER_NO_SOCKET] > before.frames[PL_FILTER_NO_SOCKET];
}
#endif

static unsigned int fragments; /* first fragments of wanted datagrams, in all tests */

static void test_programs(const char *uri, uint64_t seed)
{
	unsigned int taken = 0, wrong = 0, wrong_xdp = 0, xdp = 0;
	static struct pl_filter_rules rules;
	uint8_t frame[FRAME_MAX];
	struct pl_rng rng;
	int pair[2];

	pl_rng_seed(&rng, seed);
	rules_of(uri, &rules, NULL);
	if (!eq((uint64_t)make_pair(&rules, pair), 0, "%s: the kernel takes the program", uri))
		return;
#if PL_HAVE_BPF
	if (skel != NULL)
		pl_filter_set(&skel->bss->pl_filter, &rules);
#endif
	for (int i = 0; i < 20000; i++) {
		uint32_t len = random_frame(&rng, frame);
		const enum what want = wanted(&rules, frame, len);

		taken += want == WHOLE;
		fragments += want == FRAGMENT;
		wrong += passes(pair, frame, len) != want;
#if PL_HAVE_BPF
		/* The kernel's test run wants 14 bytes at least. */
		if (skel == NULL || i % 4 != 0 || len < 14)
			continue;
		xdp++;
		wrong_xdp += xdp_takes(frame, len) != (want == WHOLE);
#endif
	}
	ok(taken > 500, "%s: %u of the frames are wanted (seed %" PRIu64 ")", uri, taken, seed);
	eq(wrong, 0, "%s: the classic program agrees", uri);
	if (xdp > 0)
		eq(wrong_xdp, 0, "%s: so does the XDP filter", uri);
	close(pair[0]);
	close(pair[1]);
}

/* ---- packets that carry telemetry themselves ---- */

#define ETH4            "020000000002020000000001 0800 "
#define ETH6            "020000000002020000000001 86dd "
#define TO6             " fd000000000000000000000000000001 fd000000000000000000000000000002 "
/* IPv4 and 8 bytes of UDP to a port; IPv6 with 8 bytes of UDP behind extension headers. */
#define IP4(tos, proto) "45" tos "0030 00000000 40" proto "0000 0a000001 0a000002 "
#define UDP(port)       "1234" port "001c0000 "
#define REST            "00000000 00000000 00000000 00000000 00000000"
#define TCP(offset)     "12340050 00000000 00000000 " offset "00ffff 00000000 "

static void test_data(void)
{
	static const struct {
		const char *name, *frame;
		const char *takers; /* ids of the rules below that take it */
	} rows[] = {
		/* clang-format off */
		{ "an ordinary packet", ETH4 IP4("00", "11") UDP("0035") REST, "" },
		{ "a report", ETH4 IP4("00", "11") UDP("7ffe") REST, "r" },
		{ "DSCP 0x17", ETH4 IP4("5c", "11") UDP("0035") REST, "id" },
		{ "DSCP 0x17, TCP", ETH4 IP4("5f", "06") TCP("50") REST, "id" },
		{ "DSCP 0x17, tagged", "020000000002020000000001 8100 600a 0800 " IP4("5c", "11") UDP("0035") REST, "id" },
		{ "DSCP 0x17, a later fragment", ETH4 "455c0030 00000001 40110000 0a000001 0a000002" REST REST, "" },
		{ "DSCP 0x16", ETH4 IP4("58", "11") UDP("0035") REST, "d" },
		{ "Host-INT", ETH4 IP4("00", "11") UDP("8162") REST, "i" },
		{ "UDP port of a rule", ETH4 IP4("00", "11") UDP("1388") REST, "u" },
		{ "the probe marker", ETH4 IP4("00", "11") UDP("0035") "aaaaaaaabbbbbbbb" REST, "i" },
		{ "half of it", ETH4 IP4("00", "11") UDP("0035") "aaaaaaaabbbbbbb0" REST, "" },
		{ "the marker behind TCP options", ETH4 IP4("00", "06") TCP("60") "01010101 aaaaaaaabbbbbbbb" REST, "i" },
		{ "VXLAN-GPE with INT", ETH4 IP4("00", "11") UDP("12b6") "0c000082 00000100" REST, "i" },
		{ "VXLAN-GPE without", ETH4 IP4("00", "11") UDP("12b6") "0c000003 00000100" REST, "" },
		{ "Geneve with options", ETH4 IP4("00", "11") UDP("17c1") "04006558 00000100" REST, "i" },
		{ "Geneve without", ETH4 IP4("00", "11") UDP("17c1") "00006558 00000100" REST, "" },
		{ "GRE", ETH4 IP4("00", "2f") "00000800" REST, "g" },
		{ "IPv6, DSCP 0x17", ETH6 "65c00000 001c 1140" TO6 UDP("0035") REST, "id" },
		{ "IPv6, a report", ETH6 "60000000 001c 1140" TO6 UDP("7ffe") REST, "r" },
		{ "IOAM in hop-by-hop", ETH6 "60000000 0030 0040" TO6 "1102 0100 310e0000007b0800800000003e000001 01020000" UDP("0035") REST, "o" },
		{ "IOAM in destination options", ETH6 "60000000 0030 3c40" TO6 "1102 0100 110e0000007b0800800000003e000001 01020000" UDP("0035") REST, "o" },
		{ "IOAM behind a router alert and pads", ETH6 "60000000 0030 0040" TO6 "1102 05020000 00 0100 310a00000000000000000000 01" UDP("0035") REST, "o" },
		{ "IOAM behind a routing header", ETH6 "60000000 0040 2b40" TO6 "3c00040000000000 1102 0100 310e0000007b0800800000003e000001 01020000" UDP("0035") REST, "o" },
		{ "a router alert only", ETH6 "60000000 0030 0040" TO6 "3a00 05020000 0100 8f000000" REST, "" },
		{ "a report with IOAM", ETH6 "60000000 0030 0040" TO6 "1102 0100 310e0000007b0800800000003e000001 01020000" UDP("7ffe") REST, "ro" },
		{ "options beyond the frame", ETH6 "60000000 0030 0040" TO6 "11ff 0102 0000", "" },
		{ "a header of pads", ETH6 "60000000 0024 0040" TO6 "1100 000000000000" UDP("7ffe") REST, "r" },
		{ "an IPv4 header in an IPv6 frame", ETH6 IP4("5c", "11") UDP("0035") REST, "" },
		{ "cut in its UDP header", ETH4 IP4("00", "11") "12347ffe", "" },
		{ "ARP", "020000000002020000000001 0806 0001080006040001 " REST, "" },
		/* clang-format on */
	};
	static const struct {
		char id;
		const char *uri;
	} rules[] = { { 'r', "eth0" }, { 'o', "eth0?port=none&also=ioam" },
		{ 'i', "eth0?port=none&also=int" },
		{ 'd', "eth0?port=none&also=dscp:0x17,dscp:22" },
		{ 'u', "eth0?port=none&also=udp:5000" }, { 'g', "eth0?port=none&also=gre" } };
	static struct pl_filter_rules filter;
	int pair[2];

	for (size_t k = 0; k < sizeof(rules) / sizeof(rules[0]); k++) {
		rules_of(rules[k].uri, &filter, NULL);
		if (!eq((uint64_t)make_pair(&filter, pair), 0, "%s: the kernel takes it",
			    rules[k].uri))
			continue;
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			uint8_t frame[FRAME_MAX];
			size_t len = pl_test_hex(frame, sizeof(frame), rows[i].frame);

			eq(passes(pair, frame, (uint32_t)len),
				strchr(rows[i].takers, rules[k].id) != NULL ? WHOLE : NOTHING,
				"%s: %s", rules[k].uri, rows[i].name);
		}
		close(pair[0]);
		close(pair[1]);
	}
}

/* Keys that ask for more lose no reports: more frames pass, and all that passed without. */
static void test_data_beside(const char *plain, const char *more, uint64_t seed)
{
	static struct pl_filter_rules rules;
	unsigned int both = 0, added = 0, lost = 0;
	int with[2], without[2];
	uint8_t frame[FRAME_MAX];
	struct pl_rng rng;

	rules_of(plain, &rules, NULL);
	if (!eq((uint64_t)make_pair(&rules, without), 0, "%s", plain))
		return;
	rules_of(more, &rules, NULL);
	if (!eq((uint64_t)make_pair(&rules, with), 0, "%s", more))
		return;
	pl_rng_seed(&rng, seed);
	for (int i = 0; i < 40000; i++) {
		uint32_t len = random_frame(&rng, frame);
		const enum what a = passes(without, frame, len), b = passes(with, frame, len);

		both += a == WHOLE && b == WHOLE;
		added += a != WHOLE && b == WHOLE;
		lost += b < a;
	}
	eq(lost, 0, "%s takes what %s takes", more, plain);
	ok(both > 500 && added > 0, "%u by both, %u more", both, added);
	close(with[0]);
	close(with[1]);
	close(without[0]);
	close(without[1]);
}

static void test_limits(void)
{
	static struct pl_filter_rules rules = { .any_vlan = 1 };
	static struct sock_filter code[PL_IFACE_CBPF_MAX];

	for (uint32_t p = 1; p < 900; p++)
		pl_filter_rules_add_port(&rules, (uint16_t)p);
	ok(pl_iface_cbpf(&rules, code, PL_IFACE_CBPF_MAX) > 1800, "900 ports fit");
	for (uint32_t p = 1000; p < 2000; p++)
		pl_filter_rules_add_port(&rules, (uint16_t)p);
	ok(pl_iface_cbpf(&rules, code, PL_IFACE_CBPF_MAX) == -E2BIG, "too many are refused");
	ok(pl_iface_cbpf_source(code, 64) > 0, "the program of a group fits");
	ok(pl_iface_cbpf_source(code, 8) == -E2BIG, "and is not cut");
}

int main(void)
{
	test_rules();
	test_numbers();
	test_limits();
#if PL_HAVE_BPF
	libbpf_set_print(quiet);
	skel = pl_bpf_collect__open_and_load();
	if (skel == NULL)
		printf("# the XDP filter is not held against the others: it may not be loaded here\n");
#endif
	test_programs("eth0", 1);
	test_programs("eth0?vlan=10", 2);
	test_programs("eth0?vlan=9,11&port=32766", 3);
	test_programs("eth0?dst=10.0.0.2,fd00::2", 4);
	test_programs("eth0?vlan=10,11&dst=10.0.0.9&also=roce1", 6);
	test_programs("eth0?dst=fd00::1,10.0.0.1,fd00::2&vlan=10,11&port=54321,32766,1", 5);
	test_data();
	test_data_beside("eth0?dst=10.0.0.2,fd00::2",
		"eth0?dst=10.0.0.2,fd00::2&also=ioam,int,gre,dscp:1,udp:4660,udp:32764", 7);
	test_data_beside("eth0?vlan=10", "eth0?vlan=10&also=int,dscp:2,dscp:8,udp:54320", 8);
	ok(fragments > 1000, "%u frames were first fragments of wanted datagrams", fragments);
#if PL_HAVE_BPF
	pl_bpf_collect__destroy(skel);
#endif
	return pl_test_done();
}
