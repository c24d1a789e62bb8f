/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A marker whose flow is sent by several processors at once: one packet of each block is the pulse,
 * whichever of them sends it. State of each processor by itself, or a look and a store in place of a
 * compare-and-swap, would make two.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "hostmark/hostmark.h"

#define SENDERS   4
#define PERIOD_NS UINT64_C(20000000)
#define LASTS_NS  UINT64_C(6000000000)

static void *send_many(void *arg)
{
	const uint64_t *until_ns = arg;
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = { htonl(INADDR_LOOPBACK) }
	};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (uint32_t i = 0; pl_clock_mono_ns() < *until_ns; i++) {
		(void)sendto(fd, "x", 1, 0, (const struct sockaddr *)&to, sizeof(to));
		if (i % 256 == 0)
			usleep(100);
	}
	close(fd);
	return NULL;
}

struct sum {
	uint64_t packets, pulses;
	uint32_t one, more; /* blocks by their pulses */
	uint32_t missed;    /* blocks that were overwritten before they were read */
};

static void add(
	void *arg, const struct pl_mark_key *key, const struct pl_mark_cell *cell, bool overwritten)
{
	struct sum *sum = arg;

	(void)key;
	sum->missed += overwritten;
	if (overwritten)
		return;
	sum->packets += cell->packets;
	sum->pulses += cell->pulses;
	sum->one += cell->pulses == 1;
	sum->more += cell->pulses > 1;
}

static void read_until(struct pl_hostmark *h, uint64_t *next, uint64_t until_ns, struct sum *sum)
{
	while (pl_clock_mono_ns() < until_ns) {
		if (*next + 3 <= pl_clock_read(CLOCK_TAI) / PERIOD_NS)
			pl_hostmark_read(h, (*next)++, UINT32_MAX, add, sum);
		else
			usleep(1000);
	}
}

int main(void)
{
	static struct pl_tap_rules rules;
	struct pl_hostmark_options o = { .dev = "lo",
		.role = PL_HOSTMARK_MARKER,
		.rules = &rules,
		.setup = { .period_ns = PERIOD_NS,
			.guard_ns = PERIOD_NS / 4,
			.from_ns = PERIOD_NS / 2,
			.to_ns = PERIOD_NS / 4 * 3,
			.method = PL_MARK_DOUBLE,
			.by = PL_MARK_BY_HOSTS,
			.versions = PL_MARK_IP4,
			.colour = 4,
			.second = 8 } };
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct pl_diag diag = { .text = "" };
	struct pl_mark_counts counts;
	struct pl_hostmark *h = NULL;
	struct sum sum = { 0 };
	pthread_t threads[SENDERS];
	uint64_t until_ns, next;
	int fd, r;

	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
		return pl_test_skip("missing: the right to load programs");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &up) < 0 ||
		pl_tap_rules_add(&rules, "take", NULL) < 0)
		abort();
	r = pl_hostmark_open(&h, &o, &diag);
	if (r == -EPERM)
		return pl_test_skip("missing: the right to load programs");
	if (!ok(r == 0, "a marker on the loopback interface: %s", diag.text))
		return pl_test_done();
	pl_hostmark_arm(h);
	next = pl_clock_read(CLOCK_TAI) / PERIOD_NS;
	until_ns = pl_clock_mono_ns() + LASTS_NS;
	for (unsigned int i = 0; i < SENDERS; i++) {
		if (pthread_create(&threads[i], NULL, send_many, &until_ns) != 0)
			abort();
	}
	read_until(h, &next, until_ns, &sum);
	for (unsigned int i = 0; i < SENDERS; i++)
		(void)pthread_join(threads[i], NULL);
	read_until(h, &next, pl_clock_mono_ns() + 10 * PERIOD_NS, &sum);
	pl_hostmark_counts(h, &counts);
	eq(sum.more, 0, "no block has two pulses");
	ok(sum.one > 20, "%u blocks have one, of %" PRIu64 " packets", sum.one, sum.packets);
	ok(counts.marker.pulses == sum.pulses || sum.missed > 0, "all are counted");
	pl_hostmark_close(h);
	close(fd);
	return pl_test_done();
}
