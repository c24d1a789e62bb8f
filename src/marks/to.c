/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends a marker's records to the meter of another host, and receives its answers. */
#include "marks/to.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "runtime/account.h"

#define KEPT_MAX      PL_MARK_HEARD_WINDOW /* most unanswered datagrams: 10 MB */
#define ANSWERS_MAX   1024                 /* per turn */
#define DRAIN_ROUNDS  5
#define DRAIN_WAIT_MS 100

/* ---- sending ---- */

static bool send_datagram(void *arg, const void *datagram, size_t len)
{
	const struct pl_mark_to *t = arg;

	return sendto(t->fd, datagram, len, MSG_DONTWAIT | MSG_NOSIGNAL,
		       (const struct sockaddr *)&t->o->to.sa, t->o->to.len) == (ssize_t)len;
}

static void look_at_time(struct pl_mark_to *t)
{
	t->due_ns = pl_mark_sender_turn(t->sender, pl_clock_mono_ns());
}

void pl_mark_to_take(struct pl_mark_to *t, const struct pl_mark128 *records, uint32_t n)
{
	pl_mark_sender_put(t->sender, records, n, pl_clock_mono_ns());
}

void pl_mark_to_turned(struct pl_mark_to *t)
{
	pl_mark_sender_flush(t->sender, false, pl_clock_mono_ns());
	look_at_time(t);
}

/* ---- answers ---- */

static void look_at_terms(struct pl_mark_to *t, const struct pl_mark_terms *theirs)
{
	char there[PL_MARK_TERMS_TEXT_MAX], here[PL_MARK_TERMS_TEXT_MAX];

	if (pl_mark_terms_fit(&t->o->terms, theirs)) {
		if (theirs->rules != t->o->terms.rules && !t->said_rules)
			pl_say("the meter of %s chooses packets by other rules than this marker: flows of which only one of them has records are told as missing there",
				t->o->name);
		t->said_rules |= theirs->rules != t->o->terms.rules;
		return;
	}
	if (pl_mark_terms_fit(&t->told, theirs))
		return;
	t->told = *theirs;
	pl_mark_terms_format(there, theirs);
	pl_mark_terms_format(here, &t->o->terms);
	pl_say("the meter of %s has %s, this marker %s: it compares nothing unless they are the same",
		t->o->name, there, here);
}

/* Receives answers; returns false when there may be more. */
static bool receive(struct pl_mark_to *t)
{
	uint8_t data[PL_MARK_PAIR_HEADER_BYTES + 1];

	for (int i = 0; i < ANSWERS_MAX; i++) {
		const ssize_t n = recv(t->fd, data, sizeof(data), MSG_DONTWAIT);
		struct pl_mark_terms theirs;

		/* Other errors are of an earlier datagram, whose port is closed; it is sent
		 * again. */
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0 || !pl_mark_sender_answered(t->sender, data, (size_t)n, &theirs))
			continue;
		t->answered = true;
		t->said_silent = false;
		look_at_terms(t, &theirs);
	}
	return false;
}

static void say_silent(struct pl_mark_to *t)
{
	const uint64_t given_up = pl_mark_sender_stats(t->sender)->given_up;
	uint16_t port;

	if (given_up == t->given_up)
		return;
	t->given_up = given_up;
	if (t->said_silent)
		return;
	t->said_silent = true;
	(void)pl_sockaddr_get(&t->o->to.sa, &port);
	pl_say("%s does not answer%s at UDP port %u: is its 'pathline meter --from' this host there, and does a firewall let the port pass?",
		t->o->name, t->answered ? " any more" : "", port);
}

/* ---- the service ---- */

static int acquire(void *s, const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_mark_to *t = s;
	int r;

	(void)rights;
	t->fd = socket(t->o->to.sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->fd >= 0)
		return 0;
	r = -errno;
	return pl_diag_fail(diag, r, "a socket to %s: %s", t->o->name, strerror(-r));
}

static int open_service(void *s, struct pl_diag *diag)
{
	struct pl_mark_to *t = s;
	const uint32_t wanted = t->o->flows_max / PL_MARK_PAIR_RECORDS + 2;
	const struct pl_mark_sender_config config = { .run = (uint32_t)pl_hash_mix(
							      pl_hash_seed(), pl_clock_real_ns()),
		.kept_max = wanted < KEPT_MAX ? wanted : KEPT_MAX,
		.terms = t->o->terms,
		.send = send_datagram,
		.arg = t };
	const int r = pl_mark_sender_new(&t->sender, &config);

	(void)diag;
	if (r < 0)
		return r;
	/* An empty datagram tells both sides at once whether their terms fit. */
	pl_mark_sender_flush(t->sender, true, pl_clock_mono_ns());
	look_at_time(t);
	return 0;
}

void pl_mark_to_close(struct pl_mark_to *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	pl_mark_sender_free(t->sender);
	t->sender = NULL;
}

static unsigned int fds(void *s, struct pollfd *ret, unsigned int max)
{
	const struct pl_mark_to *t = s;

	if (max == 0)
		return 0;
	ret[0] = (struct pollfd){ .fd = t->fd, .events = POLLIN };
	return 1;
}

static int turn(void *s, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_mark_to *t = s;
	const bool all = receive(t);

	(void)polled;
	(void)now_ns;
	(void)diag;
	look_at_time(t);
	say_silent(t);
	return all ? PL_TURN_IDLE : PL_TURN_BUSY;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	const struct pl_mark_to *t = s;

	return t->due_ns > now_ns ? t->due_ns : now_ns;
}

/* Waits for answers to the last block: no later turn would send it again. */
static void drain(void *s)
{
	struct pl_mark_to *t = s;
	struct pollfd readable = { .fd = t->fd, .events = POLLIN };

	for (int i = 0; i < DRAIN_ROUNDS && pl_mark_sender_open(t->sender) > 0; i++) {
		if (i > 0)
			pl_mark_sender_again(t->sender, pl_clock_mono_ns());
		if (poll(&readable, 1, DRAIN_WAIT_MS) > 0)
			(void)receive(t);
	}
}

/* ---- accounts ---- */

static void put(void *s, const struct pl_account *a)
{
	const struct pl_mark_to *t = s;

	if (t != NULL && t->sender == NULL)
		return;
	pl_account_object(a, "sent");
	pl_account_stats(
		a, &pl_mark_sender_stats_list, t != NULL ? pl_mark_sender_stats(t->sender) : NULL);
	pl_account_object_end(a);
}

static void put_text(void *s, struct pl_buf *text)
{
	const struct pl_mark_to *t = s;

	if (t->sender == NULL)
		return;
	pl_buf_printf(text, "%s answered %" PRIu64 " of %" PRIu64 " datagrams with records",
		t->o->name, pl_mark_sender_stats(t->sender)->answered,
		pl_mark_sender_stats(t->sender)->datagrams);
}

const struct pl_service_ops pl_mark_to_ops = {
	.name = "to",
	.acquire = acquire,
	.open = open_service,
	.fds = fds,
	.turn = turn,
	.due_ns = due_ns,
	.drain = drain,
	.account = put_text,
	.counters = put,
};
