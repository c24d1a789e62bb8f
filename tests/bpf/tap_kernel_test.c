/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tap's programs in the running kernel, over random and damaged packets (test runs of XDP and
 * of tc) and over a real interface: records and reasons are those of tap/tap.c over the same bytes,
 * rules as in tap/rules.c, times as CLOCK_TAI has them; packets counted by key are counted once, also
 * while the tables change under senders. Needs root; also run on Linux 6.1, whose
 * verifier is older and where tc has no links (old_kernel.py).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/test.h"
#include "core/tap_joined.h"
#include "tap/kernel.h"
#include "tap/tap.h"

#include "bpf/tap.skel.h" /* knows the types above only by name */
#include "netio/rtnl_net.h"
#include "tap_packets.h"

#define PACKETS 20000
#define GOT_MAX 512    /* records of a packet */
#define REFUSED (-999) /* no test run takes the packet: it is too short for the hook */

static struct pl_bpf_tap *skel;
static struct ring_buffer *ring;
static struct pl_pkt96 got[GOT_MAX];
static uint32_t n_got;

/* A record, or a row of them, which is longer than a record. */
static int on_entry(void *arg, void *data, size_t size)
{
	struct pl_tap_row row = { .n = 1 };

	(void)arg;
	memcpy(&row, data, size);
	while (row.n > 0 && n_got < GOT_MAX)
		pl_tap_row_next(&row, &got[n_got++]);
	return 0;
}

static int tell(enum libbpf_print_level level, const char *format, va_list args)
{
	/* What the verifier has against a program. */
	if (level == LIBBPF_WARN) {
		printf("# ");
		vprintf(format, args);
	}
	return 0;
}

static int load(uint32_t record_bytes)
{
	struct pl_tap_control *control;
	int r;

	skel = pl_bpf_tap__open();
	if (skel == NULL)
		return -errno;
	control = (struct pl_tap_control *)&skel->rodata->pl_tap_control;
	control->record_bytes = record_bytes;
	control->wake_ns = 1000000;
	r = pl_bpf_tap__load(skel);
	if (r == 0)
		ring = ring_buffer__new(bpf_map__fd(skel->maps.pl_tap_ring), on_entry, NULL, NULL);
	return r < 0 ? r : ring == NULL ? -ENOMEM : 0;
}

static void unload(void)
{
	ring_buffer__free(ring);
	pl_bpf_tap__destroy(skel);
	ring = NULL;
	skel = NULL;
}

static void set_rules(struct pl_tap_rules *rules, const char *const *texts, uint16_t point)
{
	struct pl_tap_rule_set *set = (struct pl_tap_rule_set *)&skel->bss->pl_tap_sets[0];

	*rules = (struct pl_tap_rules){ 0 };
	for (; *texts != NULL; texts++)
		(void)pl_tap_rules_add(rules, *texts, NULL);
	memset(set, 0, sizeof(*set));
	memcpy(set->rules, rules->rules, sizeof(set->rules));
	set->n = rules->n;
	set->point = point;
}

static struct pl_tap_kernel_counts counts(void)
{
	const int processors = libbpf_num_possible_cpus();
	const size_t each = (bpf_map__value_size(skel->maps.pl_tap_work) + 7u) / 8u * 8u;
	struct pl_tap_kernel_counts sum = { 0 };
	uint8_t *values = calloc((size_t)processors, each);
	const uint32_t zero = 0;

	if (values == NULL ||
		bpf_map_lookup_elem(bpf_map__fd(skel->maps.pl_tap_work), &zero, values) < 0)
		abort();
	for (int cpu = 0; cpu < processors; cpu++) {
		const uint64_t *of = (const uint64_t *)(const void *)(values + (size_t)cpu * each);

		for (size_t i = 0; i < sizeof(sum) / 8; i++)
			((uint64_t *)&sum)[i] += of[i];
	}
	free(values);
	return sum;
}

/* gso_size: 0 for XDP, which knows none. */
static int test_run(int fd, const struct tap_packet *p, uint32_t gso_size)
{
	uint8_t out[1024];
	struct __sk_buff skb = { .gso_size = gso_size };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = p->bytes, .data_size_in = p->len,
		.data_out = out, .data_size_out = sizeof(out), .repeat = 1);

	if (gso_size != 0) {
		o.ctx_in = &skb;
		o.ctx_size_in = sizeof(skb);
	}
	if (bpf_prog_test_run_opts(fd, &o) < 0)
		return errno == EINVAL ? REFUSED : -1000;
	/* The packet goes on as it came. */
	return o.data_size_out == p->len && memcmp(out, p->bytes, p->len) == 0 ? (int)o.retval
									       : -1001;
}

static uint64_t tai_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_TAI, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What the kernel does not tell a program of traffic control, and packet sockets are told: whether it
 * is TCP or UDP that stands for several packets. False: a tunnel, of which user space reads more. */
static bool tell_gso(struct pl_packet *pkt, uint16_t gso_size)
{
	static struct pl_tap probe;
	static struct pl_pkt96 records[PL_BATCH_MAX];
	struct pl_batch batch = { .n = 1 };

	pkt->gso_size = gso_size;
	pkt->gso = PL_GSO_TCP;
	batch.pkts[0] = *pkt;
	memset(&probe, 0, sizeof(probe));
	if (pl_tap_batch(&probe, &batch, records, PL_BATCH_MAX) == 0 || records[0].proto == 6)
		return true;
	pkt->gso = PL_GSO_UDP;
	return records[0].proto != 17 || !pl_is_tunnel_port(PL_VXLAN_PORTS, records[0].dport);
}

/* The records of a packet, as many as user space makes. */
static uint32_t make_all(struct pl_tap *tap, const struct pl_batch *batch, struct pl_pkt96 *ret)
{
	uint32_t n = 0;

	tap->seq = 0;
	do
		n += pl_tap_batch(tap, batch, ret + n,
			GOT_MAX - n < PL_BATCH_MAX ? GOT_MAX - n : PL_BATCH_MAX);
	while (tap->more && n < GOT_MAX);
	for (uint32_t i = 0; i < n; i++)
		ret[i].record_seq = 0;
	return n;
}

/* As far as the ring has them; of pkt64 rows have more. */
static bool all_same(
	const struct pl_pkt96 *want, const struct pl_pkt96 *have, uint32_t n, uint32_t bytes)
{
	for (uint32_t i = 0; i < n; i++) {
		if (memcmp(&want[i], &have[i], bytes) != 0)
			return false;
	}
	return true;
}

static bool same_counts(const struct pl_tap_kernel_counts *k, const struct pl_tap_stats *s)
{
	return k->not_ip == s->not_ip && k->broken == s->broken && k->skipped == s->skipped &&
	       k->not_sampled == s->not_sampled && k->ring_full == 0 &&
	       k->bad_options == s->bad_options && k->joined == s->joined &&
	       k->records == s->records;
}

/* Over packets of a seed, in each of which the kernel and user space must agree. joined: each frame
 * stands for several. */
static void compare(
	const char *what, int fd, int action, bool out, uint64_t seed, uint32_t bytes, bool joined)
{
	static const char *const rules[] = { "mark proto=tcp port=443 point=9",
		"take proto=udp sample=3", "skip vlan=3", "mark payload=1-20 length=0-80",
		"skip net=fe80::/10", "take flags=2/2", "take sport=0-30000 sample_flows=4",
		"skip proto=1", NULL };
	static struct pl_pkt96 want[GOT_MAX];
	struct tap_dice dice = { seed };
	static struct pl_tap tap;
	uint32_t wrong = 0, made = 0, late = 0, refused = 0, several = 0;
	struct pl_tap_kernel_counts end;

	memset(&tap, 0, sizeof(tap));
	tap.point = 9;
	set_rules(&tap.rules, rules, 9);
	for (uint32_t i = 0; i < PACKETS; i++) {
		const uint16_t each = joined ? (uint16_t)(1 + roll(&dice, 30)) : 0;
		struct pl_batch batch = { .n = 1 };
		struct tap_packet p;
		uint64_t before_ns;
		uint32_t n;
		int r;

		make_packet(&p, &dice, 0);
		batch.pkts[0] = (struct pl_packet){ .data = p.bytes,
			.len = p.len < PL_TAP_BYTES ? p.len : PL_TAP_BYTES,
			.wire_len = p.len,
			.link = PL_LINK_ETHERNET,
			.out = out,
			.gso = action == XDP_PASS ? PL_GSO_UNTOLD : PL_GSO_NONE };
		if (joined && !tell_gso(&batch.pkts[0], each))
			continue;
		n_got = 0;
		before_ns = tai_ns();
		r = test_run(fd, &p, each);
		if (r == REFUSED) {
			refused++;
			continue;
		}
		(void)ring_buffer__consume(ring);
		n = make_all(&tap, &batch, want);
		made += n_got;
		several += n_got > 1;
		for (uint32_t k = 0; k < n_got; k++) {
			late += got[k].ts_ns < before_ns || got[k].ts_ns > tai_ns() ||
				got[k].ts_ns != got[n_got - 1].ts_ns;
			want[k].ts_ns = got[k].ts_ns;
		}
		if (r != action || n != n_got || !all_same(want, got, n, bytes)) {
			if (wrong++ < 5)
				printf("# packet %u: returned %d, %u records, not %u\n", i, r,
					n_got, n);
		}
	}
	eq(wrong, 0, "%s: each packet's record, or none, is that of user space, and it goes on",
		what);
	eq(late, 0, "%s: times are CLOCK_TAI's, one of each frame", what);
	end = counts();
	ok(refused < PACKETS / 5 && made > PACKETS / 20 && end.records == made &&
			(several > PACKETS / 100) == joined && same_counts(&end, &tap.stats),
		"%s: %u records, %u frames with several, %u refused by the test run, %" PRIu64
		" broken, %" PRIu64 " not IP, %" PRIu64 " skipped, %" PRIu64
		" not sampled, as user space counts",
		what, made, several, refused, end.broken, end.not_ip, end.skipped, end.not_sampled);
}

static void test_programs(void)
{
	static const struct {
		const char *what;
		int program, action;
		bool out;
		uint32_t bytes;
		bool joined;
	} of[] = { { "xdp", 0, XDP_PASS, false, 96, false },
		{ "xdp, pkt64", 0, XDP_PASS, false, 64, false },
		{ "tc, entering", 1, -1, false, 96, false },
		{ "tc, leaving", 2, -1, true, 96, false }, { "tc, joined", 1, -1, false, 96, true },
		{ "tc, to be taken apart, pkt64", 2, -1, true, 64, true } };

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		const int r = load(of[i].bytes);
		const struct bpf_program *program;

		if (!ok(r == 0, "%s: the kernel takes the programs (%s)", of[i].what, strerror(-r)))
			return;
		program = of[i].program == 0   ? skel->progs.pl_tap_xdp
			  : of[i].program == 1 ? skel->progs.pl_tap_in
					       : skel->progs.pl_tap_out;
		compare(of[i].what, bpf_program__fd(program), of[i].action, of[i].out, 77 + i,
			of[i].bytes, of[i].joined);
		unload();
	}
}

/* ---- on an interface ---- */

static void send_datagrams(uint32_t n, uint16_t port)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (uint32_t i = 0; i < n; i++)
		(void)sendto(fd, "0123456789", 10, 0, (const struct sockaddr *)&to, sizeof(to));
	close(fd);
}

/* Records that came within a while after the last one. */
static uint32_t collect(struct pl_tap_kernel *k, struct pl_pkt96 *ret)
{
	struct pollfd p = { .fd = pl_tap_kernel_fd(k), .events = POLLIN };
	struct pl_diag diag = { .text = "" };
	uint32_t n = 0;
	int r;

	do {
		(void)poll(&p, 1, pl_tap_kernel_due_ns(k) != UINT64_MAX ? 20 : 300);
		r = pl_tap_kernel_recv(k, ret + n, &diag);
		n += r > 0 ? (uint32_t)r : 0;
	} while (r > 0 || pl_tap_kernel_due_ns(k) != UINT64_MAX);
	return n;
}

static void test_interface(const char *uri, uint32_t each)
{
	static struct pl_pkt96 records[4 * PL_TAP_KERNEL_BATCH];
	static struct pl_tap_rules rules;
	struct pl_tap_kernel_options o = { .rules = &rules, .point = 3 };
	struct pl_diag diag = { .text = "" };
	struct pl_tap_kernel_counts c;
	struct pl_tap_kernel *k, *second;
	struct timespec now;
	uint32_t n, leaving = 0, wrong = 0;
	int r;

	rules = (struct pl_tap_rules){ 0 };
	(void)pl_tap_rules_add(&rules, "take proto=udp dport=7777", NULL);
	(void)pl_tap_rules_add(&rules, "skip", NULL);
	r = pl_tap_kernel_open(&k, uri, &o, &diag);
	if (!ok(r == 0, "%s: opens %s", uri, diag.text))
		return;
	send_datagrams(100, 7777);
	send_datagrams(50, 7778);
	n = collect(k, records);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	eq(n, 100 * each, "%s: records of what the rules take", uri);
	for (uint32_t i = 0; i < n; i++) {
		leaving += (records[i].obs & PL_OBS_OUT) != 0;
		wrong += records[i].dport != 7777 || records[i].wire_len != 38 ||
			 (records[i].obs & PL_OBS_POINT_MASK) != 3 ||
			 records[i].ts_ns / 1000000000 + 60 < (uint64_t)now.tv_sec ||
			 records[i].ts_ns / 1000000000 > (uint64_t)now.tv_sec;
	}
	eq(leaving, each == 2 ? n / 2 : 0, "%s: their direction", uri);
	eq(wrong, 0, "%s: their values, and the time of day", uri);
	rules.n = 0;
	(void)pl_tap_rules_add(&rules, "take proto=udp dport=7778 sample=10", NULL);
	(void)pl_tap_rules_add(&rules, "skip", NULL);
	pl_tap_kernel_rules(k, &rules, 4);
	send_datagrams(100, 7777);
	send_datagrams(100, 7778);
	n = collect(k, records);
	eq(n, 10 * each, "%s: other rules are in force", uri);
	eq(records[0].obs & PL_OBS_POINT_MASK, 4, "%s: with another observation point", uri);
	r = pl_tap_kernel_open(&second, uri, &o, &diag);
	ok(r == 0 || r == -EBUSY, "%s: a second one: %s", uri, r == 0 ? "beside it" : diag.text);
	if (r == 0)
		pl_tap_kernel_close(second);
	pl_tap_kernel_stop(k);
	send_datagrams(100, 7778);
	eq(collect(k, records), 0, "%s: nothing after its end", uri);
	pl_tap_kernel_counts(k, &c);
	eq(c.records, 110 * each, "%s: the kernel counts as many", uri);
	ok(c.skipped >= 150 * each && c.not_sampled == 90 * each, "%s: and what the rules left out",
		uri);
	pl_tap_kernel_close(k);
}

/* ---- counts ---- */

#define SENDERS     3
#define EACH        4800 /* packets, a multiple of 100 * PORTS */
#define TURNS_LEAST 8
#define PANE_NS     1000000
#define PORTS       8
#define KEY_MASK    (UINT64_C(0xffff) << 16) /* of the word at 40: dport */

static struct {
	uint64_t packets[PORTS], bytes, counts, too_early, before_ns, records;
} sums;

static _Atomic uint32_t n_senders; /* that are not done */
static _Atomic uint32_t turns;     /* of the tables, since senders began */

static const struct pl_tap_count_plan by_port = { .on = 1,
	.pane_ns = PANE_NS,
	.n = 1,
	.at = { 40 },
	.mask = { KEY_MASK } };

static void on_counts(void *arg, const struct pl_tap_count *counts, uint32_t n)
{
	(void)arg;
	for (uint32_t i = 0; i < n; i++) {
		const struct pl_pkt96 *r = &counts[i].record;

		sums.packets[r->dport % PORTS] += counts[i].value.packets;
		sums.bytes += counts[i].value.wire_bytes;
		sums.counts++;
		/* A window that was told to be over has no packets any more. */
		sums.too_early += r->ts_ns + PANE_NS <= sums.before_ns;
	}
}

static void *send_all(void *arg)
{
	/* The tables turn while packets come, however seldom the reader runs. */
	for (uint32_t i = 0; i < EACH / 100; i++) {
		(void)eventually(turns >= i * TURNS_LEAST / (EACH / 100));
		send_datagrams(100, (uint16_t)(8000 + (i + *(uint32_t *)arg) % PORTS));
	}
	n_senders--;
	return NULL;
}

static void take_records(struct pl_tap_kernel *k)
{
	static struct pl_pkt96 records[PL_TAP_KERNEL_BATCH];
	struct pl_diag diag = { .text = "" };
	int n;

	while ((n = pl_tap_kernel_recv(k, records, &diag)) > 0) {
		sums.records += (uint32_t)n;
		for (int i = 0; i < n; i++) {
			sums.packets[records[i].dport % PORTS]++;
			sums.bytes += records[i].wire_len;
			sums.too_early += records[i].ts_ns < sums.before_ns;
		}
	}
}

/* Tables change as fast as they can while several processors count. sees_all: no queue before the
 * program loses packets, as the one between leaving and entering lo does. */
static void test_counts(const char *uri, bool sees_all, bool full)
{
	static struct pl_tap_rules rules;
	const struct pl_tap_kernel_options o = { .rules = &rules, .plan = &by_port };
	struct pl_diag diag = { .text = "" };
	struct pl_tap_kernel_counts c = { 0 };
	uint64_t all = SENDERS * EACH;
	uint32_t numbers[SENDERS], uneven = 0;
	pthread_t senders[SENDERS];
	struct pl_tap_kernel *k;
	int r;

	memset(&sums, 0, sizeof(sums));
	rules = (struct pl_tap_rules){ 0 };
	(void)pl_tap_rules_add(&rules, "take proto=udp dport=8000-8007", NULL);
	(void)pl_tap_rules_add(&rules, "skip", NULL);
	r = pl_tap_kernel_open(&k, uri, &o, &diag);
	if (!ok(r == 0, "%s: opens %s", uri, diag.text))
		return;
	n_senders = SENDERS;
	turns = 0;
	for (uint32_t i = 0; i < SENDERS; i++) {
		numbers[i] = i;
		if (pthread_create(&senders[i], NULL, send_all, &numbers[i]) != 0)
			abort();
	}
	do {
		r = pl_tap_kernel_read_counts(k, on_counts, NULL, &diag);
		take_records(k);
		if (pl_tap_kernel_passed_ns(k) > sums.before_ns)
			sums.before_ns = pl_tap_kernel_passed_ns(k);
		turns++;
	} while (r == 0 && n_senders > 0);
	for (uint32_t i = 0; i < SENDERS; i++)
		(void)pthread_join(senders[i], NULL);
	pl_tap_kernel_stop(k);
	ok(r == 0 && pl_tap_kernel_stop_counts(k, on_counts, NULL, &diag) == 0, "%s: %s", uri,
		diag.text);
	take_records(k);
	pl_tap_kernel_counts(k, &c);
	if (!sees_all && c.counted + c.records < all)
		all = c.counted + c.records;
	for (uint32_t i = 0; i < PORTS && sees_all; i++)
		uneven += sums.packets[i] != all / PORTS;
	eq(uneven, 0, "%s: packets of each port", uri);
	eq(c.counted + c.records, all, "%s: every packet is counted or recorded", uri);
	eq(sums.bytes, 38 * all,
		"%s: each once, in %u turns, %" PRIu64 " counts and %" PRIu64 " records", uri,
		turns, sums.counts, sums.records);
	eq(sums.too_early, 0, "%s: none of a time that had passed", uri);
	ok(c.counted > 0 && turns >= TURNS_LEAST - 1 && (c.count_full > 0) == full &&
			sums.records == c.records && c.records == c.count_full + c.count_busy,
		"%s: %" PRIu64 " without room for their key", uri, c.count_full);
	pl_tap_kernel_close(k);
}

/* Time passes when the records of before a turn were received, although the ring has more. */
static void test_ring_never_empty(void)
{
	static const struct pl_tap_count_plan plan = {
		.on = 1, .n = 1, .at = { 40 }, .mask = { KEY_MASK }
	};
	static struct pl_pkt96 records[PL_TAP_KERNEL_BATCH];
	static struct pl_tap_rules rules;
	const struct pl_tap_kernel_options o = { .rules = &rules, .plan = &plan };
	const uint64_t before = 300, behind = 4000;
	uint64_t first_ns, received = 0;
	struct pl_diag diag = { .text = "" };
	struct pl_tap_kernel *k;

	memset(&sums, 0, sizeof(sums));
	rules = (struct pl_tap_rules){ 0 };
	(void)pl_tap_rules_add(&rules, "take proto=udp dport=8000-8007", NULL);
	(void)pl_tap_rules_add(&rules, "skip", NULL);
	if (!ok(pl_tap_kernel_open(&k, "tc:lo?dir=out&counts=1&ring=16MiB", &o, &diag) == 0,
		    "opens %s", diag.text))
		return;
	/* The first port has the only room for a key. */
	for (int turn = 0; turn < 2; turn++) {
		send_datagrams(1, 8000);
		send_datagrams(turn == 0 ? before : behind, 8001);
		if (turn == 0)
			eq(pl_tap_kernel_read_counts(k, on_counts, NULL, &diag), 0, "a turn");
	}
	eq(pl_tap_kernel_recv(k, records, &diag), PL_TAP_KERNEL_BATCH, "a batch");
	received += PL_TAP_KERNEL_BATCH;
	eq(pl_tap_kernel_passed_ns(k), 0, "of before the turn some are missing");
	eq(pl_tap_kernel_read_counts(k, on_counts, NULL, &diag), 0, "another turn");
	do {
		const int n = pl_tap_kernel_recv(k, records, &diag);

		received += n > 0 ? (uint64_t)n : 0;
		first_ns = pl_tap_kernel_passed_ns(k);
	} while (first_ns == 0 && received < before + behind);
	ok(first_ns > 0 && received >= before && received < before + behind,
		"time passed behind %" PRIu64 " of %" PRIu64 " records", received, before + behind);
	eq(pl_tap_kernel_read_counts(k, on_counts, NULL, &diag), 0, "a third turn");
	while (pl_tap_kernel_recv(k, records, &diag) > 0)
		;
	ok(pl_tap_kernel_passed_ns(k) > first_ns, "and goes on at the end of the ring");
	eq(sums.packets[0], 2, "the others were counted");
	pl_tap_kernel_close(k);
}

/* A packet with the NIC's time gets a record, and the tap says that there was one; but with records
 * of 64 bytes, which have the kernel's times, it is a packet as others are. */
static void test_stamped(uint32_t record_bytes)
{
	const bool whole = record_bytes == sizeof(struct pl_pkt96);
	uint8_t frame[64] = { [12] = 8, [14] = 0x45, [17] = 46, [22] = 64, [23] = 17, [39] = 26 };
	struct __sk_buff skb = { .hwtstamp = 0 };
	struct pl_tap_count_plan *plan;
	struct pl_tap_kernel_counts c;

	skel = pl_bpf_tap__open();
	if (!ok(skel != NULL, "the programs are there"))
		return;
	plan = (struct pl_tap_count_plan *)&skel->rodata->pl_tap_plan;
	*plan = by_port;
	((struct pl_tap_control *)&skel->rodata->pl_tap_control)->record_bytes = record_bytes;
	(void)bpf_map__set_max_entries(skel->maps.pl_tap_counts_a, 16);
	if (!ok(pl_bpf_tap__load(skel) == 0, "the kernel takes them"))
		return;
	for (int i = 0; i < 3; i++) {
		LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = sizeof(frame),
			.ctx_in = &skb, .ctx_size_in = sizeof(skb), .repeat = 1);

		skb.hwtstamp = i == 1 ? 12345 : 0;
		eq(bpf_prog_test_run_opts(bpf_program__fd(skel->progs.pl_tap_in), &o), 0, "run %d",
			i);
	}
	c = counts();
	ok(c.counted == (whole ? 2 : 3) && c.records == whole && c.stamped == whole,
		"%" PRIu64 " counted, %" PRIu64 " recorded, %" PRIu64 " with a time of the NIC",
		c.counted, c.records, c.stamped);
	unload();
}

/* Settings that are refused close no descriptor of others. */
static void test_refused(void)
{
	const struct pl_tap_kernel_options o = { .point = 1 };
	struct pl_diag diag = { .text = "" };
	struct pl_tap_kernel *k = NULL;

	ok(pl_tap_kernel_open(&k, "tc:lo?record=nothing", &o, &diag) < 0, "%s", diag.text);
	ok(fcntl(0, F_GETFD) >= 0, "standard input stays open");
}

int main(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
		return pl_test_skip("needs root and network namespaces");
	libbpf_set_print(tell);
	test_programs();
	test_refused();
	if (ok(pl_rtnl_up("lo", true) == 0, "an interface")) {
		test_interface("tc:lo", 1);
		test_interface("tc:lo?dir=both", 2);
		test_interface("tc:lo?dir=in&record=pkt64", 1);
		test_interface("xdp:lo?mode=generic", 1);
		test_counts("tc:lo?dir=out&ring=16MiB", true, false);
		test_counts("xdp:lo?mode=generic&counts=4&ring=16MiB", false, true);
		test_ring_never_empty();
		test_stamped(sizeof(struct pl_pkt96));
		test_stamped(sizeof(struct pl_pkt64));
	}
	return pl_test_done();
}
