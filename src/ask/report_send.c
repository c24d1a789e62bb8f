/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends DTA reports from a socket at their rate, and again when a translator requests them. */
#include "ask/report_send.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/num.h"
#include "netio/udp_peer.h"
#include "runtime/confine_reader.h"
#include "runtime/signals.h"

#define WAIT_MAX_NS UINT64_C(50000000)
#define SETTLE_NS   UINT64_C(200000000)
#define PATIENCE_NS UINT64_C(2000000000) /* wait for a translator that answered before */

struct job {
	struct pl_report_send_options *o;
	struct pl_reporter *reporter;
	int fd;
	uint64_t unsent;
	int unsent_error; /* last errno */
};

static volatile sig_atomic_t stop;

static void on_stop(int signo)
{
	(void)signo;
	stop = 1;
}

/* ---- the socket ---- */

static int open_socket(const char *uri)
{
	const char *text = strncmp(uri, "udp://", 6) == 0 ? uri + 6 : uri;
	struct pl_diag diag = { .text = "" };
	struct pl_addr addr;
	uint16_t port;
	int fd;

	if (pl_parse_endpoint(text, &addr, &port) < 0 || port == 0 || pl_addr_is_unspecified(&addr))
		return pl_fail(-EINVAL, "report: \"%s\" is not udp://ADDRESS:PORT", uri);
	fd = pl_udp_peer_open(&addr, port, uri, &diag);
	if (fd < 0)
		pl_complain("report: %s", diag.text);
	return fd;
}

/* Sends a datagram; waits while the socket is full. One that is refused otherwise is counted, and
 * sent again when it is numbered. */
static void send_datagram(void *arg, const void *bytes, size_t n)
{
	struct job *j = arg;
	struct pollfd writable = { .fd = j->fd, .events = POLLOUT };

	while (send(j->fd, bytes, n, 0) < 0) {
		if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR) {
			j->unsent++;
			j->unsent_error = errno;
			return;
		}
		(void)poll(&writable, 1, 1);
		if (stop)
			return;
	}
}

static void take_nacks(struct job *j)
{
	uint8_t bytes[64];
	ssize_t n;

	while ((n = recv(j->fd, bytes, sizeof(bytes), 0)) >= 0)
		pl_reporter_nack(j->reporter, pl_clock_mono_ns(), bytes, (size_t)n);
}

/* Waits until the reporter has something to do, a NACK comes, or `until_ns`. */
static void wait_a_while(struct job *j, uint64_t until_ns)
{
	struct pollfd readable = { .fd = j->fd, .events = POLLIN };
	uint64_t now = pl_clock_mono_ns(), due = pl_reporter_due_ns(j->reporter), wait = 0;
	struct timespec ts;

	if (until_ns < due)
		due = until_ns;
	if (due > now)
		wait = due - now < WAIT_MAX_NS ? due - now : WAIT_MAX_NS;
	ts = (struct timespec){ 0, (long)wait };
	if (ppoll(&readable, 1, &ts, NULL) > 0)
		take_nacks(j);
	pl_reporter_tick(j->reporter, pl_clock_mono_ns());
}

static void step(struct pl_report_item *item)
{
	for (size_t i = 0; i < item->n; i++) {
		if (++item->bytes[item->little ? i : item->n - 1 - i] != 0)
			break;
	}
}

/* ---- reporting ---- */

static int refuse(const char *what)
{
	return pl_fail(-EINVAL, "report: %s", what);
}

static int put(struct job *j, const struct pl_dta_report *report)
{
	int r;

	while ((r = pl_reporter_put(j->reporter, pl_clock_mono_ns(), report)) == -EAGAIN && !stop)
		wait_a_while(j, UINT64_MAX);
	if (r == -EINVAL)
		return refuse(
			"this --form cannot carry the report: published forms have no --store, no --no-length, no sketches, and only keys of four bytes (--key-form be32)");
	if (r == -EMSGSIZE)
		return refuse("the report does not fit in a datagram of 1400 bytes");
	return r;
}

static int put_once(struct job *j)
{
	struct pl_dta_report hop = j->o->report;
	int r = 0;

	if (j->o->report.op != PL_DTA_POSTCARD)
		return put(j, &j->o->report);
	for (unsigned int i = 0; r == 0 && i < j->o->n_hops; i++) {
		hop.hop = (uint8_t)(i + 1);
		hop.path_length = j->o->cut ? 0 : (uint8_t)j->o->n_hops;
		hop.value = j->o->hops[i];
		/* The last one wakes the collector. */
		hop.immediate = j->o->report.immediate && i + 1 == j->o->n_hops;
		r = put(j, &hop);
	}
	return r;
}

static int report_all(struct job *j)
{
	int r = 0;

	for (uint64_t i = 0; r == 0 && !stop && (j->o->loop || i < j->o->count); i++) {
		r = put_once(j);
		if (j->o->step_key)
			step(&j->o->key);
		if (j->o->step_value)
			step(&j->o->value);
		if (j->o->reporter.sequenced && i % 64 == 0)
			take_nacks(j);
	}
	while (r == 0 && !stop && pl_reporter_waiting(j->reporter) > 0) {
		pl_reporter_flush(j->reporter, pl_clock_mono_ns());
		if (pl_reporter_waiting(j->reporter) > 0)
			wait_a_while(j, UINT64_MAX);
	}
	/* After a signal, reports that wait for the rate are not sent any more; those already
	 * packed are. */
	if (stop)
		pl_reporter_flush(j->reporter, pl_clock_mono_ns());
	return r == -EAGAIN ? 0 : r;
}

/* Waits for the translator's last requests: now it asks for reports that it still misses. */
static void settle(struct job *j)
{
	const struct pl_reporter_counters *c = pl_reporter_counters(j->reporter);
	uint64_t nacks = 0, unconfirmed = 0, until = pl_clock_mono_ns() + SETTLE_NS;

	while (!stop && pl_clock_mono_ns() < until) {
		wait_a_while(j, until);
		if (c->nacks == nacks && pl_reporter_unconfirmed(j->reporter) == unconfirmed &&
			(c->answers == 0 || unconfirmed > 0))
			continue;
		nacks = c->nacks;
		unconfirmed = pl_reporter_unconfirmed(j->reporter);
		if (c->answers > 0 && unconfirmed == 0)
			return;
		until = pl_clock_mono_ns() + (c->answers > 0 ? PATIENCE_NS : SETTLE_NS);
	}
}

static void tell_account(const struct job *j)
{
	const struct pl_reporter_counters *c = pl_reporter_counters(j->reporter);

	fprintf(stderr, "%" PRIu64 " reports in %" PRIu64 " datagrams, %" PRIu64 " bytes",
		c->sent - c->again - c->probes, c->datagrams, c->bytes);
	if (j->o->reporter.sequenced)
		fprintf(stderr,
			"; %" PRIu64 " NACKs, %" PRIu64 " reports sent again, %" PRIu64
			" asked for too late",
			c->nacks, c->again, c->unavailable);
	if (j->unsent > 0)
		fprintf(stderr, "; %" PRIu64 " datagrams that the system refused (%s)", j->unsent,
			strerror(j->unsent_error));
	fputc('\n', stderr);
}

/* Returns true when no translator answered. Published forms have no confirmation; and after a
 * signal it does not wait for one, but reports that left the ring by then were held long enough. */
static bool unheard(const struct job *j)
{
	const struct pl_reporter_counters *c = pl_reporter_counters(j->reporter);

	return j->o->reporter.sequenced && j->o->reporter.form == PL_DTA_PATHLINE &&
	       c->answers == 0 && c->reports > 0 &&
	       (!stop || pl_reporter_progress(j->reporter).kept > 0);
}

/* Returns an exit code; prints the reports that were lost or refused, with the cause. */
static int outcome(const struct job *j)
{
	uint64_t late = pl_reporter_counters(j->reporter)->unavailable,
		 given_up = pl_reporter_counters(j->reporter)->given_up,
		 refused = pl_reporter_counters(j->reporter)->refused,
		 unconfirmed = pl_reporter_unconfirmed(j->reporter);

	if (unheard(j))
		pl_complain("report: no translator confirmed a report (%s)", j->o->to);
	if (refused > 0)
		pl_complain(
			"report: the translator refused %" PRIu64
			" reports: no such store or list, another size, or above a quota; its own account names the cause",
			refused);
	if (late > 0)
		pl_complain(
			"report: %" PRIu64
			" reports are lost: the translator requested them when they had left the ring already (--ring, --hold)",
			late);
	if (given_up > 0)
		pl_complain(
			"report: %" PRIu64
			" reports are lost: the translator gave up on them (translate --nack-tries)",
			given_up);
	if (unconfirmed > 0 && !stop)
		pl_complain("report: %" PRIu64
			    " reports were sent, but the translator did not confirm them",
			unconfirmed);
	if (unheard(j) || refused > 0 || late > 0 || given_up > 0 || (unconfirmed > 0 && !stop) ||
		(j->unsent > 0 && !j->o->reporter.sequenced))
		return PL_EXIT_FAILED;
	return PL_EXIT_OK;
}

/* Sends all reports. The job keeps what was opened, also after an error. */
static int send_all(struct job *j)
{
	struct pl_diag diag = { .text = "" };
	int r;

	j->fd = open_socket(j->o->to);
	if (j->fd < 0)
		return j->fd == -EINVAL ? PL_EXIT_USAGE : PL_EXIT_UNAVAILABLE;
	r = pl_reporter_new(&j->reporter, &j->o->reporter, send_datagram, j, &diag);
	if (r < 0) {
		pl_complain("report: %s", diag.text[0] != '\0' ? diag.text : strerror(-r));
		return r == -EINVAL ? PL_EXIT_USAGE : PL_EXIT_FAILED;
	}
	pl_signals_handle(on_stop, (const int[]){ 0 });
	/* From here on the process can only send, and read a translator's answers. */
	r = pl_confine_reader(NULL, 0);
	if (r != 0)
		return r;
	r = report_all(j);
	if (r < 0)
		return r == -EINVAL ? PL_EXIT_USAGE : PL_EXIT_FAILED;
	if (j->o->reporter.sequenced)
		settle(j);
	tell_account(j);
	return outcome(j);
}

int pl_report_send(struct pl_report_send_options *options)
{
	struct job j = { .o = options, .fd = -1 };
	const int code = send_all(&j);

	pl_reporter_free(j.reporter);
	if (j.fd >= 0)
		close(j.fd);
	return code;
}
