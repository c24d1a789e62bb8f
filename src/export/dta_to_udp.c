/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target for reports that is a translator over UDP. A thread of its own receives from the
 * translator, whose requests for missing reports must be answered within milliseconds, and sends
 * reports that are due; a lock guards the reporter.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/thread.h"
#include "dta/reporter.h"
#include "export/dta_to.h"
#include "netio/udp_peer.h"

#define MS          UINT64_C(1000000)
#define SILENT_NS   (2000 * MS) /* silence of the translator that is reported */
#define PATIENCE_NS (10 * MS)   /* longest wait for room in the ring, per batch of records */
#define AWAKE_NS    (5 * MS)    /* between looks while reports wait for confirmation */
#define ASLEEP_NS   (100 * MS)
#define ANSWER_MAX  64

struct to_udp {
	struct pl_dta_to to;
	char address[80];
	bool sequenced;
	int fd, stop;
	pthread_t thread;
	bool running;

	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t progress;
	struct pl_reporter *reporter;
	uint64_t unsent, settled, lost, told_lost;
	uint64_t
		answered_ns; /* last time that some report was confirmed, or none was left for it */
	uint64_t waited_ns;  /* time spent waiting in the present batch */
	int send_error;
	_Atomic int error;
};

/* ---- the socket ---- */

static int parse(const char *address, struct pl_addr *addr, uint16_t *port, struct pl_diag *diag)
{
	const char *rest = strncmp(address, "udp://", 6) == 0 ? address + 6 : NULL;

	if (rest != NULL && strlen(rest) < 64 && rest[0] != ':' &&
		pl_parse_endpoint(rest, addr, port) == 0 && *port != 0 &&
		!pl_addr_is_unspecified(addr))
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"\"%s\" is not udp://ADDRESS:PORT, such as udp://10.0.0.9:%u", address,
		PL_PORT_DTA);
}

int pl_dta_to_udp_check(const char *address, struct pl_diag *diag)
{
	struct pl_addr addr;
	uint16_t port;

	return parse(address, &addr, &port, diag);
}

static int open_socket(const char *address, struct pl_diag *diag)
{
	struct pl_addr addr;
	uint16_t port;
	int r = parse(address, &addr, &port, diag);

	return r < 0 ? r : pl_udp_peer_open(&addr, port, address, diag);
}

/* Called with the lock held. A failed send is counted; a numbered report is sent again. */
static void send_datagram(void *arg, const void *bytes, size_t n)
{
	struct to_udp *u = arg;
	int r = pl_udp_peer_send(u->fd, bytes, n);

	u->send_error = -r;
	u->unsent += r < 0;
}

/* ---- the receiving thread ---- */

/* Called with the lock held. */
static void hear(struct to_udp *u)
{
	uint8_t bytes[ANSWER_MAX];
	bool any = false;
	ssize_t n;

	while ((n = recv(u->fd, bytes, sizeof(bytes), 0)) >= 0) {
		pl_reporter_nack(u->reporter, pl_clock_mono_ns(), bytes, (size_t)n);
		any = true;
	}
	if (any)
		pthread_cond_signal(&u->progress);
}

/* Returns the time until the thread must look again. */
static uint64_t wait_ns(const struct to_udp *u, uint64_t now_ns)
{
	const struct pl_reporter_progress p = pl_reporter_progress(u->reporter);
	uint64_t longest = u->sequenced && p.confirmed < p.put ? AWAKE_NS : ASLEEP_NS;
	uint64_t due = pl_reporter_due_ns(u->reporter);

	if (due <= now_ns)
		return 0;
	return due - now_ns < longest ? due - now_ns : longest;
}

static void *run(void *arg)
{
	struct to_udp *u = arg;
	struct pollfd fds[2] = { { .fd = u->stop, .events = POLLIN },
		{ .fd = u->fd, .events = POLLIN } };
	struct timespec wait = { .tv_nsec = 1 };

	while (ppoll(fds, 2, &wait, NULL) <= 0 || (fds[0].revents & POLLIN) == 0) {
		uint64_t now;

		pthread_mutex_lock(&u->lock);
		now = pl_clock_mono_ns();
		hear(u);
		pl_reporter_tick(u->reporter, now);
		wait = pl_clock_timespec(wait_ns(u, now));
		pthread_mutex_unlock(&u->lock);
	}
	return NULL;
}

/* ---- operations ---- */

static struct to_udp *self(struct pl_dta_to *to)
{
	return (struct to_udp *)to;
}

/* Waits for room for a report, in one batch for at most PATIENCE_NS; once that is used up, further
 * reports do not wait either until the translator answers. */
static int put_patiently(struct to_udp *u, uint64_t now_ns, const struct pl_dta_report *report)
{
	int r = pl_reporter_put(u->reporter, now_ns, report);

	while (r == -EAGAIN && u->waited_ns < PATIENCE_NS) {
		const uint64_t began = pl_clock_mono_ns();
		const struct timespec until = pl_clock_timespec(began + MS);

		(void)pthread_cond_clockwait(&u->progress, &u->lock, CLOCK_MONOTONIC, &until);
		u->waited_ns += pl_clock_mono_ns() - began;
		r = pl_reporter_put(u->reporter, pl_clock_mono_ns(), report);
	}
	return r;
}

static int put(struct pl_dta_to *to, uint64_t now_ns, const struct pl_dta_report *report)
{
	struct to_udp *u = self(to);
	int r;

	(void)now_ns;
	pthread_mutex_lock(&u->lock);
	r = put_patiently(u, pl_clock_mono_ns(), report);
	pthread_mutex_unlock(&u->lock);
	return r;
}

static void flush(struct pl_dta_to *to, uint64_t now_ns)
{
	struct to_udp *u = self(to);

	(void)now_ns;
	pthread_mutex_lock(&u->lock);
	pl_reporter_flush(u->reporter, pl_clock_mono_ns());
	pthread_mutex_unlock(&u->lock);
}

/* Updates settled and lost reports. Lost are those that left the ring without an answer, as far as
 * can be known, and those that the translator gave up or refused, or asked for in vain. */
static void look(struct to_udp *u, uint64_t now_ns)
{
	const struct pl_reporter_progress p = pl_reporter_progress(u->reporter);
	const struct pl_reporter_counters *c = pl_reporter_counters(u->reporter);
	const uint64_t told =
		(c->given_up > c->unavailable ? c->given_up : c->unavailable) + c->refused;
	const uint64_t known = !u->sequenced ? p.sent : p.confirmed;
	const uint64_t before = u->settled;
	uint64_t from = known > before ? known : before;

	if (u->sequenced && p.kept > from) {
		u->lost += p.kept - from;
		from = p.kept;
	}
	u->settled = from;
	u->lost += told - u->told_lost;
	u->told_lost = told;
	if (known > before || known == p.put) {
		u->answered_ns = now_ns;
		u->waited_ns = 0;
	}
	u->error = u->send_error != 0                    ? u->send_error
		   : now_ns > u->answered_ns + SILENT_NS ? ETIMEDOUT
							 : 0;
}

static void state(struct pl_dta_to *to, uint64_t now_ns, struct pl_dta_to_state *ret)
{
	struct to_udp *u = self(to);
	const struct pl_reporter_counters *c;

	(void)now_ns;
	pthread_mutex_lock(&u->lock);
	look(u, pl_clock_mono_ns());
	c = pl_reporter_counters(u->reporter);
	*ret = (struct pl_dta_to_state){ .settled = u->settled,
		.lost = u->lost,
		.bytes = c->bytes,
		.errors = u->unsent,
		.error = u->error };
	pthread_mutex_unlock(&u->lock);
}

static void words(struct pl_dta_to *to, struct pl_export_words *ret)
{
	struct to_udp *u = self(to);
	int error = atomic_load_explicit(&u->error, memory_order_relaxed);

	if (error == ETIMEDOUT)
		snprintf(ret->trouble, sizeof(ret->trouble),
			"the translator at %s does not answer; is it running, and does its allow list have this host?",
			u->address);
	else if (error != 0)
		snprintf(ret->trouble, sizeof(ret->trouble), "%s: %s", u->address,
			strerrordesc_np(error));
}

static void close_to(struct pl_dta_to *to)
{
	struct to_udp *u = self(to);
	const uint64_t one = 1;

	if (u->running) {
		(void)!write(u->stop, &one, sizeof(one));
		pthread_join(u->thread, NULL);
	}
	pl_reporter_free(u->reporter);
	if (u->fd >= 0)
		close(u->fd);
	if (u->stop >= 0)
		close(u->stop);
	pthread_cond_destroy(&u->progress);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

static const struct pl_dta_to_ops ops = {
	.put = put,
	.flush = flush,
	.state = state,
	.words = words,
	.close = close_to,
};

int pl_dta_to_udp(struct pl_dta_to **ret, const char *address, uint32_t ring, bool sequenced,
	struct pl_diag *diag)
{
	const struct pl_reporter_config config = {
		.form = PL_DTA_PATHLINE, .sequenced = sequenced, .ring = ring, .linger_ns = MS
	};
	struct to_udp *u = calloc(1, sizeof(*u));
	int r;

	if (u == NULL)
		return -ENOMEM;
	u->to = (struct pl_dta_to){ .ops = &ops, .window = ring };
	u->sequenced = sequenced;
	u->answered_ns = pl_clock_mono_ns();
	u->fd = u->stop = -1;
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->progress, NULL);
	snprintf(u->address, sizeof(u->address), "%s", address);
	u->fd = open_socket(address, diag);
	r = u->fd < 0 ? u->fd : 0;
	if (r == 0)
		r = pl_reporter_new(&u->reporter, &config, send_datagram, u, diag);
	if (r == 0) {
		u->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		r = u->stop < 0 ? -errno : pl_thread_start(&u->thread, "pl-dta", run, u);
	}
	if (r < 0) {
		close_to(&u->to);
		return r;
	}
	u->running = true;
	*ret = &u->to;
	return 0;
}
