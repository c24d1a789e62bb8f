/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares records that arrive from a marker with those of this host's meter. */
#include "marks/between.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "runtime/account.h"

/* Blocks that are waited for, of each flow; and the least of all. */
#define FLOW_BLOCKS   4u
#define BLOCKS_LEAST  65536u
/* Per turn, so that an endless sender does not keep the meter from its turn. */
#define DATAGRAMS_MAX 1024
/* All datagrams of a block of 4096 flows come at once. Those without room are sent again. */
#define ROOM_BYTES    (4 << 20)

/* Stands for the sender of the meter's own records. */
static const struct pl_addr nobody;

/* ---- records ---- */

void pl_mark_between_take(void *arg, const struct pl_mark128 *records, uint32_t n)
{
	struct pl_mark_between *b = arg;

	pl_mark_domain_take(b->domain, &nobody, records, n, b->other_rules, pl_clock_real_ns());
}

static void say_stranger(struct pl_mark_between *b, const struct pl_addr *from)
{
	char who[PL_ADDR_TEXT_MAX], wanted[PL_ADDR_TEXT_MAX];

	if (b->said_stranger)
		return;
	b->said_stranger = true;
	pl_format_addr(who, from);
	pl_format_addr(wanted, &b->from);
	pl_say("records of %s are left out: only those of %s are compared (--from)", who, wanted);
}

static void say_terms(struct pl_mark_between *b, const struct pl_mark_terms *theirs)
{
	char there[PL_MARK_TERMS_TEXT_MAX], here[PL_MARK_TERMS_TEXT_MAX];

	if (pl_mark_terms_fit(&b->told, theirs))
		return;
	b->told = *theirs;
	pl_mark_terms_format(there, theirs);
	pl_mark_terms_format(here, &b->o->terms);
	pl_say("the marker has %s, this meter %s: nothing is compared unless they are the same",
		there, here);
}

/* Notes different rules: flows chosen by only one of the two are neither lost nor surplus. */
static void look_at_rules(struct pl_mark_between *b, const struct pl_mark_terms *theirs)
{
	const bool were_other = b->other_rules;

	b->other_rules = theirs->rules != b->o->terms.rules;
	if (!b->other_rules || were_other)
		return;
	pl_say("the marker chooses packets by other rules than this meter: flows of which only one of them has records are told as missing, not as lost");
}

static void answer(const struct pl_mark_between *b, const struct pl_sockaddr *to,
	const struct pl_mark_pair *header)
{
	const struct pl_mark_pair answer = { .what = PL_MARK_PAIR_ANSWER,
		.run = header->run,
		.seq = header->seq,
		.terms = b->o->terms };
	uint8_t bytes[PL_MARK_PAIR_HEADER_BYTES];

	pl_mark_pair_put(bytes, &answer);
	/* An answer that is not sent counts as lost: the marker sends its records again. */
	(void)!sendto(b->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL,
		(const struct sockaddr *)&to->sa, to->len);
}

static bool is_marker(const struct pl_mark_between *b, const struct pl_sockaddr *sender,
	const struct pl_addr *from)
{
	const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)&sender->sa,
				  *want = (const struct sockaddr_in6 *)&b->o->from.sa;

	return pl_addr_equal(from, &b->from) &&
	       (sender->sa.ss_family != AF_INET6 || a->sin6_scope_id == want->sin6_scope_id);
}

static void take_records(
	struct pl_mark_between *b, const struct pl_mark_pair *header, const uint8_t *records)
{
	struct pl_mark128 aligned[PL_MARK_PAIR_RECORDS];
	bool torn;

	if (!pl_mark_heard(&b->heard, header, &torn))
		return;
	memcpy(aligned, records, header->count * sizeof(aligned[0]));
	pl_mark_domain_take(b->domain, &b->from, aligned, header->count, torn || b->other_rules,
		pl_clock_real_ns());
}

static void take_datagram(
	struct pl_mark_between *b, const struct pl_sockaddr *sender, const void *data, size_t len)
{
	struct pl_mark_heard_stats *s = &b->heard.stats;
	struct pl_mark_pair header;
	const uint8_t *records;
	uint16_t port;
	const struct pl_addr from = pl_sockaddr_get(&sender->sa, &port);

	s->datagrams++;
	if (!is_marker(b, sender, &from)) {
		s->strangers++;
		say_stranger(b, &from);
	} else if (!pl_mark_pair_parse(&header, &records, data, len) ||
		   header.what != PL_MARK_PAIR_RECORDS_OF) {
		s->unreadable++;
		if (!b->said_unreadable)
			pl_say("a datagram at the UDP port is none of a marker of this release: such ones are left out");
		b->said_unreadable = true;
	} else if (!pl_mark_terms_fit(&header.terms, &b->o->terms)) {
		s->other_terms++;
		say_terms(b, &header.terms);
		answer(b, sender, &header);
	} else {
		look_at_rules(b, &header.terms);
		take_records(b, &header, records);
		answer(b, sender, &header);
	}
}

/* Ignores events: results are printed instead. */
static void take_event(void *arg, const struct pl_event *event)
{
	(void)arg;
	(void)event;
}

/* ---- opening ---- */

static int make_domain(struct pl_mark_between *b, struct pl_diag *diag)
{
	const struct pl_mark_between_options *o = b->o;
	static char marker[] = "1", meter[] = "2";
	char *points[] = { marker, meter };
	const uint32_t blocks = FLOW_BLOCKS * o->flows_max;
	const struct pl_mark_domain_config config = { .name = "between",
		.network = &b->network,
		.method = o->terms.method,
		.period_ns = o->terms.period_ns,
		.clock_ns = o->clock_ns,
		.wait_ns = o->terms.period_ns,
		.blocks_max = blocks > BLOCKS_LEAST ? blocks : BLOCKS_LEAST,
		.loss_above = 100,
		.end_after = 1,
		.allow = b->allow,
		.n_allow = 2,
		.event = take_event,
		.result = o->result,
		.arg = o->arg };
	int r;

	b->allow[0] = (struct pl_prefix){ .addr = b->from, .bits = 128 };
	b->allow[1] = (struct pl_prefix){ .addr = nobody, .bits = 128 };
	r = pl_mark_network_make(&b->network, points, 2, NULL, 0, diag);
	return r < 0 ? r : pl_mark_domain_new(&b->domain, &config, diag);
}

/* Opens the socket on all addresses of the marker's IP version. */
static int open_port(struct pl_mark_between *b, struct pl_diag *diag)
{
	struct pl_sockaddr own = b->o->from;
	const int room = ROOM_BYTES, on = 1;
	uint16_t port;
	int r;

	(void)pl_sockaddr_get(&own.sa, &port);
	if (own.sa.ss_family == AF_INET)
		pl_sockaddr_set(&own, &(struct pl_addr){ .b = { [10] = 0xff, [11] = 0xff } }, port);
	else
		pl_sockaddr_set(&own, &nobody, port);
	b->fd = socket(own.sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (b->fd >= 0 && own.sa.ss_family == AF_INET6)
		(void)setsockopt(b->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (b->fd >= 0 && bind(b->fd, (const struct sockaddr *)&own.sa, own.len) == 0) {
		(void)setsockopt(b->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
		return 0;
	}
	r = -errno;
	pl_diag_set(diag, "UDP port %u: %s", port, strerror(-r));
	if (r == -EADDRINUSE)
		pl_diag_set(diag,
			"UDP port %u is in use, perhaps by another meter: name another one at both hosts, --from HOST:PORT and --to HOST:PORT",
			port);
	return r;
}

static int acquire(void *s, const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_mark_between *b = s;
	uint16_t port;

	(void)rights;
	b->from = pl_sockaddr_get(&b->o->from.sa, &port);
	return open_port(b, diag);
}

static int open_service(void *s, struct pl_diag *diag)
{
	return make_domain(s, diag);
}

void pl_mark_between_close(struct pl_mark_between *b)
{
	if (b->fd >= 0)
		close(b->fd);
	pl_mark_domain_free(b->domain);
	pl_mark_network_done(&b->network);
	b->fd = -1;
	b->domain = NULL;
}

/* ---- running ---- */

static unsigned int fds(void *s, struct pollfd *ret, unsigned int max)
{
	const struct pl_mark_between *b = s;

	if (max == 0)
		return 0;
	ret[0] = (struct pollfd){ .fd = b->fd, .events = POLLIN };
	return 1;
}

/* Receives datagrams. Returns false when there may be more. */
static bool receive(struct pl_mark_between *b)
{
	uint8_t data[PL_MARK_PAIR_BYTES + 1];

	for (int i = 0; i < DATAGRAMS_MAX; i++) {
		struct pl_sockaddr sender = { .len = sizeof(sender.sa) };
		const ssize_t n = recvfrom(b->fd, data, sizeof(data), MSG_DONTWAIT,
			(struct sockaddr *)&sender.sa, &sender.len);

		/* Other errors belong to an earlier answer that its receiver refused. */
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n >= 0)
			take_datagram(b, &sender, data, (size_t)n);
	}
	return false;
}

static int turn(void *s, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_mark_between *b = s;
	const bool all = receive(b);

	(void)polled;
	(void)now_ns;
	(void)diag;
	pl_mark_domain_turn(b->domain, pl_clock_real_ns());
	return all ? PL_TURN_IDLE : PL_TURN_BUSY;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	const struct pl_mark_between *b = s;
	const uint64_t due = pl_mark_domain_due_ns(b->domain), now = pl_clock_real_ns();

	if (due == UINT64_MAX)
		return UINT64_MAX;
	return due > now ? now_ns + (due - now) : now_ns;
}

/* The marker may have just sent its last records. */
static void drain(void *s)
{
	struct pl_mark_between *b = s;

	(void)receive(b);
	pl_mark_domain_finish(b->domain);
}

/* ---- accounts ---- */

static void put(void *s, const struct pl_account *a)
{
	const struct pl_mark_between *b = s;
	const struct pl_mark_domain *domain = b != NULL ? b->domain : NULL;

	if (b != NULL && domain == NULL)
		return;
	pl_account_object(a, "heard");
	pl_account_stats(a, &pl_mark_heard_stats_list, b != NULL ? &b->heard.stats : NULL);
	pl_account_object_end(a);
	pl_account_object(a, "domain");
	pl_account_stats(a, &pl_mark_domain_stats_list,
		domain != NULL ? pl_mark_domain_stats(domain) : NULL);
	pl_account_object_end(a);
	pl_account_object(a, "correlate");
	pl_account_stats(a, &pl_mark_correlator_stats_list,
		domain != NULL ? pl_mark_domain_correlated(domain) : NULL);
	pl_account_object_end(a);
}

const struct pl_service_ops pl_mark_between_ops = {
	.name = "between",
	.acquire = acquire,
	.open = open_service,
	.fds = fds,
	.turn = turn,
	.due_ns = due_ns,
	.drain = drain,
	.counters = put,
};
