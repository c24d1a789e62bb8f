/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Live frames into an AF_XDP port, over a veth pair in a network namespace of the test's own: every
 * frame is there or counted, at the rate that one processor makes them, and what differs from frame
 * to frame is what was asked for. Needs root.
 */
#include "tests/bench/live.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "netio/port.h"
#include "netio/test_veth.h"

#define FRAME_BYTES 128
#define COUNT_AT    46
#define ROW_AT      100
#define FRAMES      200000u

/* Ethernet, IPv4 10.0.0.1 to 10.0.0.2, UDP to 32766; the checksum of IPv4 does not matter here. */
static const uint8_t frame[FRAME_BYTES] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0,
	114, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x7f, 0xfe, 0x7f, 0xfe, 0, 94,
	0, 0, 0x20 };

static const struct pl_live_field fields[] = {
	{ .offset = COUNT_AT, .len = 4, .kind = PL_LIVE_COUNT },
	{ .offset = ROW_AT, .len = 8, .kind = PL_LIVE_ROW, .at = 8 },
};

static uint8_t rows[4][PL_LIVE_ROW_BYTES];

struct reader {
	struct pl_port *port;
	struct pl_batch batch;
	_Atomic uint64_t sent;   /* so many, and no more will be; 0 meanwhile */
	_Atomic uint64_t frames; /* looked at while it reads by a sender that waits for them */
	uint64_t until_ns, lost_before;
	uint64_t backwards, wrong, row_seen[4];
	uint32_t last;
	int error;
};

static void look_at(struct reader *r, const struct pl_packet *p)
{
	const uint8_t *d = p->data;
	uint32_t count = (uint32_t)d[COUNT_AT] << 24 | (uint32_t)d[COUNT_AT + 1] << 16 |
			 (uint32_t)d[COUNT_AT + 2] << 8 | d[COUNT_AT + 3];

	if (r->frames++ > 0 && count <= r->last)
		r->backwards++;
	r->last = count;
	if (p->len != FRAME_BYTES || memcmp(d, frame, COUNT_AT) != 0 || d[ROW_AT] > 3 ||
		memcmp(d + ROW_AT, rows[d[ROW_AT] & 3] + 8, 8) != 0)
		r->wrong++;
	else
		r->row_seen[d[ROW_AT]]++;
}

/* Frames for which the pair's own ring of 256 had no room: NAPI runs behind the generator, but a
 * busy machine lets it wait. */
static uint64_t lost_in_pair(void)
{
	struct ifaddrs *all;
	uint64_t n = 0;

	if (getifaddrs(&all) < 0)
		return 0;
	for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next) {
		if (a->ifa_addr != NULL && a->ifa_addr->sa_family == AF_PACKET &&
			strcmp(a->ifa_name, "pln0") == 0)
			n = ((const struct rtnl_link_stats *)a->ifa_data)->tx_dropped;
	}
	freeifaddrs(all);
	return n;
}

/* Whether every frame that was sent was received or counted as lost. */
static bool accounted(const struct reader *r)
{
	const uint64_t sent = atomic_load(&r->sent);
	struct pl_port_stats stats;

	pl_port_stats(r->port, &stats);
	return sent > 0 && r->frames + stats.kernel_drops + lost_in_pair() - r->lost_before >= sent;
}

static void *read_on(void *arg)
{
	struct reader *r = arg;

	for (;;) {
		int n = pl_port_recv(r->port, &r->batch, 20, NULL);

		if (n == -EAGAIN || n == -ENETDOWN) /* the carrier comes */
			continue;
		if (n < 0) {
			r->error = n;
			return NULL;
		}
		if (n == 0 && (accounted(r) || pl_clock_mono_ns() > r->until_ns))
			return NULL;
		for (int i = 0; i < n; i++)
			look_at(r, &r->batch.pkts[i]);
		if (n > 0)
			pl_port_release(r->port, &r->batch);
	}
}

static struct reader *reader_on(const char *uri)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct pl_diag diag = { .text = "" };

	if (r == NULL || !ok(pl_port_open(&r->port, uri, PL_PORT_RECV, NULL, &diag) == 0, "%s: %s",
				 uri, diag.text)) {
		free(r);
		return NULL;
	}
	r->until_ns = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	r->lost_before = lost_in_pair();
	return r;
}

/* late: it begins to read when all was sent. */
static void test_run(const char *uri, bool late)
{
	struct pl_live_cfg cfg = { .ifindex = (int)if_nametoindex("pln0"),
		.frame = frame,
		.frame_bytes = FRAME_BYTES,
		.restore_bytes = 48,
		.fields = fields,
		.nfields = 2,
		.rows = (const uint8_t(*)[PL_LIVE_ROW_BYTES])rows,
		.nrows = 4 };
	struct reader *r = reader_on(uri);
	struct pl_diag diag = { .text = "" };
	struct pl_port_stats stats;
	struct pl_live *live = NULL;
	pthread_t thread;

	if (r == NULL)
		return;
	if (ok(pl_live_new(&live, &cfg, &diag) == 0, "%s: the generator: %s", uri, diag.text)) {
		if (!late)
			pthread_create(&thread, NULL, read_on, r);
		eq((uint64_t)pl_live_send(live, FRAMES), 0, "%s: sends", uri);
		atomic_store(&r->sent, FRAMES);
		if (late)
			pthread_create(&thread, NULL, read_on, r);
		pthread_join(thread, NULL);
		pl_port_stats(r->port, &stats);
		eq((uint64_t)r->error, 0, "%s: reads", uri);
		eq(pl_live_sent(live), FRAMES, "%s: all were made", uri);
		eq(r->frames + stats.kernel_drops + lost_in_pair() - r->lost_before, FRAMES,
			"%s: received + drops = sent", uri);
		eq(stats.packets, r->frames, "%s: the port counts the same", uri);
		ok(!late || stats.kernel_drops > 0, "%s: a late reader loses some", uri);
		eq(r->wrong, 0, "%s: every frame is as it was made", uri);
		eq(r->backwards, 0, "%s: in order", uri);
		ok(r->row_seen[0] > 0 && r->row_seen[1] > 0 && r->row_seen[2] > 0 &&
				r->row_seen[3] > 0,
			"%s: from each row", uri);
	}
	pl_live_free(live);
	pl_port_close(r->port);
	free(r);
}

/* A sender with never more than a window on its way loses nothing: what the ports have room for,
 * they take. */
static void test_self_clocked(const char *uri)
{
	enum { WINDOW = 192, WINDOWS = 150 }; /* the pair has room for 256 */
	struct pl_live_cfg cfg = { .ifindex = (int)if_nametoindex("pln0"),
		.frame = frame,
		.frame_bytes = FRAME_BYTES,
		.restore_bytes = 48,
		.fields = fields,
		.nfields = 1 };
	struct reader *r = reader_on(uri);
	struct pl_diag diag = { .text = "" };
	struct pl_port_stats stats;
	struct pl_live *live = NULL;
	uint64_t sent = 0;
	pthread_t thread;

	if (r == NULL || !ok(pl_live_new(&live, &cfg, &diag) == 0, "%s: %s", uri, diag.text))
		return;
	pthread_create(&thread, NULL, read_on, r);
	for (int i = 0; i < WINDOWS && pl_live_send(live, WINDOW) == 0; i++) {
		sent += WINDOW;
		if (!eventually(atomic_load(&r->frames) >= sent))
			break;
	}
	atomic_store(&r->sent, sent);
	pthread_join(thread, NULL);
	pl_port_stats(r->port, &stats);
	eq(sent, (uint64_t)WINDOW * WINDOWS, "%s: a sender that waits is never kept waiting", uri);
	eq(r->frames, sent, "%s: every frame came", uri);
	eq(stats.kernel_drops + lost_in_pair() - r->lost_before, 0, "%s: none was lost", uri);
	eq(r->backwards, 0, "%s: in order", uri);
	pl_live_free(live);
	pl_port_close(r->port);
	free(r);
}

/* The carrier of a new pair takes a moment. */
static bool has_carrier(const char *name)
{
	struct ifreq ifr = { .ifr_name = "" };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool runs;

	strcpy(ifr.ifr_name, name);
	runs = ioctl(fd, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_RUNNING) != 0;
	close(fd);
	return runs;
}

static void test_refusals(void)
{
	struct pl_live_field f = fields[1];
	struct pl_live_cfg cfg = {
		.ifindex = 1, .frame = frame, .frame_bytes = FRAME_BYTES, .fields = &f, .nfields = 1
	};
	struct pl_live *live;

	f.offset = FRAME_BYTES - 7;
	ok(pl_live_new(&live, &cfg, NULL) == -EINVAL, "a field past the frame");
	f.offset = 0;
	f.len = 3;
	ok(pl_live_new(&live, &cfg, NULL) == -EINVAL, "a field of three bytes");
	f.len = 8;
	cfg.nrows = 3;
	ok(pl_live_new(&live, &cfg, NULL) == -EINVAL, "three rows");
	cfg.nrows = 0;
	cfg.frame_bytes = 20;
	ok(pl_live_new(&live, &cfg, NULL) == -EINVAL, "a frame too short for Ethernet");
	cfg.frame_bytes = FRAME_BYTES;
	cfg.ifindex = 9999;
	ok(pl_live_new(&live, &cfg, NULL) < 0, "no such interface");
	pl_live_free(NULL);
}

static void test_window(void)
{
	const struct pl_live_cfg cfg = { .ifindex = (int)if_nametoindex("pln0"),
		.frame = frame,
		.frame_bytes = FRAME_BYTES,
		.window = 100 };
	struct pl_live *live = NULL;

	if (!ok(pl_live_new(&live, &cfg, NULL) == 0, "with a window"))
		return;
	eq(-pl_live_send(live, 300), EAGAIN, "the window is full");
	eq(pl_live_sent(live), 100, "and no more were made");
	pl_live_took(live, 70);
	eq(-pl_live_send(live, 70), 0, "as many as were taken");
	eq(-pl_live_send(live, 1), EAGAIN, "and not one more");
	eq(pl_live_sent(live), 170);
	pl_live_free(live);
}

int main(void)
{
	struct pl_live_cfg cfg = { .ifindex = 1, .frame = frame, .frame_bytes = FRAME_BYTES };
	struct pl_live *live = NULL;

	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
		return pl_test_skip("needs root and network namespaces");
	if (pl_live_new(&live, &cfg, NULL) == -EPERM)
		return pl_test_skip("the kernel lets no BPF program in");
	pl_live_free(live);
	for (uint8_t i = 0; i < 4; i++)
		memset(rows[i] + 8, i, 8);
	if (!ok(veth_hush() == 0 && veth_make("pln0", "pln1", -1, 1) == 0 &&
			    pl_rtnl_up("pln0", true) == 0 && pl_rtnl_up("pln1", true) == 0,
		    "a veth pair"))
		return pl_test_done();
	ok(eventually(has_carrier("pln0") && has_carrier("pln1")), "with a carrier");
	test_refusals();
	test_window();
	test_run("afxdp:pln1", false);
	test_run("afxdp:pln1?ring=256", true);
	test_self_clocked("afxdp:pln1");
	return pl_test_done();
}
