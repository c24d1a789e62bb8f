/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of pathline/reporter.h. */
#include <pathline/reporter.h>

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/num.h"
#include "dta/reporter.h"
#include "lib/common.h"
#include "netio/udp_peer.h"

#define LINGER_NS  UINT64_C(1000000)
#define MS         UINT64_C(1000000)
#define ANSWER_MAX 64

struct pathline_reporter {
	struct pl_reporter *reporter;
	int fd;
	bool numbered;
	uint64_t unsent;
};

/* A full socket is waited for a moment; what is refused otherwise is counted, and sent again when
 * it is numbered. */
static void send_datagram(void *arg, const void *bytes, size_t n)
{
	struct pathline_reporter *r = arg;

	r->unsent += pl_udp_peer_send(r->fd, bytes, n) < 0;
}

static int open_socket(const char *to, struct pl_diag *diag)
{
	struct pl_addr addr;
	uint16_t port;

	if (pl_parse_endpoint(to, &addr, &port) < 0 || port == 0 || pl_addr_is_unspecified(&addr))
		return pl_diag_fail(diag, -EINVAL, "'%s' is not ADDRESS:PORT", to);
	return pl_udp_peer_open(&addr, port, to, diag);
}

int pathline_reporter_open(struct pathline_reporter **ret, const char *to,
	const struct pathline_reporter_options *options, struct pathline_error *error)
{
	static const struct pathline_reporter_options usual = { 0 };
	struct pathline_reporter *r = calloc(1, sizeof(*r));
	struct pl_reporter_config config = { .form = PL_DTA_PATHLINE };
	struct pl_diag diag = { .text = "" };
	int result = 0;

	if (r == NULL)
		return lib_result(-ENOMEM, &diag, error);
	if (options == NULL)
		options = &usual;
	r->fd = -1;
	r->numbered = options->unnumbered == 0;
	config.sequenced = r->numbered;
	config.ring = options->ring;
	config.linger_ns = options->linger_ns != 0 ? options->linger_ns : LINGER_NS;
	config.rate = options->rate;
	if (options->unnumbered > 1 || !(options->rate >= 0))
		result = pl_diag_fail(&diag, -EINVAL,
			"unnumbered must be 0 or 1, and the rate must not be negative");
	if (result == 0) {
		r->fd = open_socket(to, &diag);
		result = r->fd < 0 ? r->fd : 0;
	}
	if (result == 0)
		result = pl_reporter_new(&r->reporter, &config, send_datagram, r, &diag);
	if (result < 0)
		pathline_reporter_close(r);
	else
		*ret = r;
	return lib_result(result, &diag, error);
}

void pathline_reporter_close(struct pathline_reporter *r)
{
	if (r == NULL)
		return;
	pl_reporter_free(r->reporter);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

/* ---- reports ---- */

static bool is_key(size_t key_bytes)
{
	return key_bytes > 0 && key_bytes <= PL_DTA_KEY_BYTES_MAX;
}

int pathline_reporter_key_write(struct pathline_reporter *r, uint16_t store, const void *key,
	size_t key_bytes, const void *value, size_t value_bytes)
{
	if (!is_key(key_bytes))
		return -EINVAL;
	if (value_bytes > UINT16_MAX)
		return -EMSGSIZE;
	return pl_reporter_key_write(r->reporter, pl_clock_mono_ns(), store, key,
		(uint8_t)key_bytes, value, (uint32_t)value_bytes);
}

int pathline_reporter_append(struct pathline_reporter *r, uint16_t store, uint32_t list,
	const void *entries, size_t bytes)
{
	if (bytes > UINT16_MAX)
		return -EMSGSIZE;
	return pl_reporter_append(
		r->reporter, pl_clock_mono_ns(), store, list, entries, (uint32_t)bytes);
}

int pathline_reporter_increment(struct pathline_reporter *r, uint16_t store, const void *key,
	size_t key_bytes, uint64_t increment)
{
	if (!is_key(key_bytes))
		return -EINVAL;
	return pl_reporter_increment(
		r->reporter, pl_clock_mono_ns(), store, key, (uint8_t)key_bytes, increment);
}

int pathline_reporter_postcard(struct pathline_reporter *r, uint16_t store, const void *key,
	size_t key_bytes, uint8_t hop, uint8_t path_length, uint32_t value)
{
	if (!is_key(key_bytes))
		return -EINVAL;
	return pl_reporter_postcard(r->reporter, pl_clock_mono_ns(), store, key, (uint8_t)key_bytes,
		hop, path_length, value);
}

/* ---- time ---- */

static bool take_answers(struct pathline_reporter *r)
{
	unsigned char bytes[ANSWER_MAX];
	bool any = false;
	ssize_t n;

	while ((n = recv(r->fd, bytes, sizeof(bytes), 0)) >= 0) {
		pl_reporter_nack(r->reporter, pl_clock_mono_ns(), bytes, (size_t)n);
		any = true;
	}
	return any;
}

/* Sleeps at most once: until a datagram comes, a report is due, or until_ns. */
static bool turn(struct pathline_reporter *r, uint64_t until_ns)
{
	struct pollfd readable = { .fd = r->fd, .events = POLLIN };
	const uint64_t now = pl_clock_mono_ns(), due = pl_reporter_due_ns(r->reporter);
	const uint64_t at = due < until_ns ? due : until_ns;
	const struct timespec wait = pl_clock_timespec(at > now ? at - now : 0);
	bool any = false;

	if (ppoll(&readable, 1, &wait, NULL) > 0)
		any = take_answers(r);
	pl_reporter_tick(r->reporter, pl_clock_mono_ns());
	return any;
}

int pathline_reporter_wait(struct pathline_reporter *r, unsigned int timeout_ms)
{
	const uint64_t until = pl_clock_mono_ns() + timeout_ms * MS;

	while (!turn(r, until) && pl_clock_mono_ns() < until)
		;
	return 0;
}

/* Returns true when the translator may lack a report, as far as this side knows. */
static bool pending(const struct pathline_reporter *r)
{
	const struct pl_reporter_counters *c = pl_reporter_counters(r->reporter);

	if (pl_reporter_waiting(r->reporter) > 0)
		return true;
	return r->numbered && c->reports > 0 &&
	       (c->answers == 0 || pl_reporter_unconfirmed(r->reporter) > 0);
}

int pathline_reporter_finish(struct pathline_reporter *r, unsigned int timeout_ms)
{
	const uint64_t until = pl_clock_mono_ns() + timeout_ms * MS;

	pl_reporter_flush(r->reporter, pl_clock_mono_ns());
	while (pending(r) && pl_clock_mono_ns() < until) {
		(void)turn(r, until);
		pl_reporter_flush(r->reporter, pl_clock_mono_ns());
	}
	return pending(r) ? -ETIMEDOUT : 0;
}

void pathline_reporter_count(
	const struct pathline_reporter *r, struct pathline_reporter_counts *ret)
{
	const struct pl_reporter_counters *c = pl_reporter_counters(r->reporter);

	*ret = (struct pathline_reporter_counts){ .reports = c->reports,
		.datagrams = c->datagrams,
		.again = c->again,
		.lost = c->unavailable + c->given_up,
		.unsent = r->unsent,
		.refused = c->refused };
}
