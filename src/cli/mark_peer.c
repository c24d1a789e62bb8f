/* SPDX-License-Identifier: BSD-2-Clause */
/* Derives from the other host's address: the route to it, the packets, the numbers of the
 * points. */
#include "cli/mark_peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/mark_rows.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/hash.h"
#include "base/num.h"
#include "marks/between.h"
#include "nic/neighbour.h"
#include "pipeline/tap_to.h"
#include "service/tap_rules.h"

/* Text of errors about the forms of a host's address. */
#define ADDRESSES "such as 10.1.0.2, fd00::2, fe80::2%eth0, 10.1.0.2:40051 or [fd00::2]:40051"

static bool is_link_local(const struct pl_addr *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

static bool is_somebody(const struct pl_addr *a)
{
	static const uint8_t any[4];

	return !pl_addr_is_unspecified(a) &&
	       !(pl_addr_is_v4(a) && memcmp(a->b + 12, any, sizeof(any)) == 0);
}

/* Takes "%eth0" out of "fe80::2%eth0" or "[fe80::2%eth0]:40051". */
static bool cut_interface(char *text, char ret_dev[IF_NAMESIZE])
{
	char *from = strchr(text, '%');
	size_t n;

	ret_dev[0] = '\0';
	if (from == NULL)
		return true;
	n = strcspn(from + 1, "]");
	if (n == 0 || n >= IF_NAMESIZE)
		return false;
	memcpy(ret_dev, from + 1, n);
	ret_dev[n] = '\0';
	memmove(from, from + 1 + n, strlen(from + 1 + n) + 1);
	return true;
}

/* An address, or one with a port; a link-local one with its interface. */
static bool is_host(struct pl_mark_peer *p, const char *given)
{
	char text[128];

	p->port = PL_MARK_BETWEEN_PORT;
	if (strlen(given) >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%s", given);
	if (!cut_interface(text, p->dev))
		return false;
	if (pl_parse_addr(text, &p->host) < 0 &&
		(pl_parse_endpoint(text, &p->host, &p->port) < 0 || p->port == 0))
		return false;
	return is_somebody(&p->host) && (p->dev[0] == '\0' || is_link_local(&p->host));
}

/* The interface of a link-local address: the one behind its %, or that of --dev. */
static int find_own_link(struct pl_mark_peer *p, struct pl_mark_args *a, const char *text)
{
	if (p->dev[0] != '\0' && a->dev != NULL && strcmp(a->dev, p->dev) != 0)
		return pl_fail(PL_EXIT_USAGE, "%s: --dev %s is another interface", text, a->dev);
	if (p->dev[0] == '\0' && a->dev == NULL)
		return pl_fail(PL_EXIT_USAGE,
			"%s: a link-local address needs its interface: %s%%eth0", text, text);
	if (p->dev[0] == '\0' && strlen(a->dev) < sizeof(p->dev))
		snprintf(p->dev, sizeof(p->dev), "%s", a->dev);
	if (if_nametoindex(p->dev) == 0)
		return pl_fail(PL_EXIT_USAGE, "%s: there is no interface %s", text, p->dev);
	a->dev = p->dev;
	return 0;
}

static int find_dev(struct pl_mark_peer *p, struct pl_mark_args *a, const char *text)
{
	struct pl_diag diag = { .text = "" };
	int index;

	if (is_link_local(&p->host))
		return find_own_link(p, a, text);
	if (a->dev != NULL)
		return 0;
	if (pl_route_interface(&p->host, &index, &diag) < 0)
		return pl_fail(
			PL_EXIT_USAGE, "%s: %s; name the interface by --dev", text, diag.text);
	if (if_indextoname((unsigned int)index, p->dev) == NULL)
		return pl_fail(
			PL_EXIT_FAILED, "%s: its interface has gone; name one by --dev", text);
	a->dev = p->dev;
	return 0;
}

/* All packets of the other host but the records of blocks, which are as many flows as there are sockets. */
static void make_rules(struct pl_mark_peer *p, struct pl_mark_args *a, const char *what)
{
	char host[PL_ADDR_TEXT_MAX];

	pl_format_addr(host, &p->host);
	snprintf(p->rules[0], sizeof(p->rules[0]), "skip proto=udp dport=%u", p->port);
	snprintf(p->rules[1], sizeof(p->rules[1]), "take %s=%s", what, host);
	a->usual_rules[0] = p->rules[0];
	a->usual_rules[1] = p->rules[1];
}

/* Address that the marker sends to, or that the meter's records come from. */
static struct pl_sockaddr address_of(const struct pl_mark_peer *p)
{
	struct pl_sockaddr address;

	pl_sockaddr_set(&address, &p->host, p->port);
	if (is_link_local(&p->host))
		((struct sockaddr_in6 *)&address.sa)->sin6_scope_id = if_nametoindex(p->dev);
	return address;
}

/* The given rules; without any, rules follow from the addresses of the hosts. */
static uint64_t rules_of(const struct pl_mark_args *a, const struct pl_mark_host_options *o)
{
	struct pl_tap_rules rules = o->rules;
	struct pl_diag diag = { .text = "" };

	if (a->rules.n == 0 && a->rules_file == NULL)
		return 0;
	/* A file that cannot be read is reported when the service reads it. */
	if (a->rules_file != NULL)
		(void)pl_tap_rules_read(&rules, a->rules_file, &diag);
	return pl_hash(rules.rules, rules.n * sizeof(rules.rules[0]), 0) | 1;
}

/* One bit for loss and delay, unless something else was asked for. */
static void choose_method(struct pl_mark_args *a)
{
	if (a->method == NULL && a->bits.n < 2)
		a->method =
			pl_mark_methods[(a->loss_only ? PL_MARK_STEP : PL_MARK_MULTIPLEXED) - 1];
}

static int fill(struct pl_mark_peer *p, struct pl_mark_args *a, const char *text, uint64_t point,
	const char *what)
{
	if (a->point != 0 && a->point != point)
		return pl_fail(PL_EXIT_USAGE,
			"--point: between two hosts the marker is 1 and the meter 2");
	if (a->flows != PL_OPT_NOT_GIVEN && a->flows > PL_MARK_PAIR_FLOWS_MAX)
		return pl_fail(PL_EXIT_USAGE, "--flows: between two hosts %u at most",
			PL_MARK_PAIR_FLOWS_MAX);
	a->point = point;
	p->is = true;
	(void)pl_format_addr(p->name, &p->host);
	make_rules(p, a, what);
	choose_method(a);
	return find_dev(p, a, text);
}

static int fill_marker(struct pl_mark_peer *p, struct pl_mark_args *a)
{
	for (size_t i = 0; i < a->to.n; i++) {
		struct pl_mark_peer one = { .is = false };
		struct pl_diag diag = { .text = "" };
		int code;

		if (!is_host(&one, a->to.items[i]) && pl_tap_to_check(a->to.items[i], &diag) == 0)
			continue;
		if (diag.text[0] != '\0')
			return pl_fail(PL_EXIT_USAGE,
				"--to %s: no address of a host (%s), and no output (%s)",
				a->to.items[i], ADDRESSES, diag.text);
		if (p->is)
			return pl_fail(PL_EXIT_USAGE,
				"--to: one host; records go to others by --to udp://HOST:PORT");
		*p = one;
		code = fill(p, a, a->to.items[i], PL_MARK_BETWEEN_MARKER, "dst");
		if (code != 0)
			return code;
		memmove(&a->to.items[i], &a->to.items[i + 1],
			(--a->to.n - i) * sizeof(a->to.items[0]));
		i--;
	}
	return 0;
}

int pl_mark_peer_fill(struct pl_mark_peer *p, struct pl_mark_args *a, enum pl_hostmark_role role)
{
	*p = (struct pl_mark_peer){ .is = false };
	if (role == PL_HOSTMARK_MARKER)
		return fill_marker(p, a);
	if (a->from == NULL)
		return 0;
	if (!is_host(p, a->from))
		return pl_fail(PL_EXIT_USAGE,
			"--from %s: not the address of the host that marks (%s)", a->from,
			ADDRESSES);
	if (a->pin != NULL)
		return pl_fail(PL_EXIT_USAGE,
			"--pin: with --from blocks are compared while the command runs; leave out --pin");
	return fill(p, a, a->from, PL_MARK_BETWEEN_METER, "src");
}

void pl_mark_peer_send(const struct pl_mark_peer *peer, struct pl_mark_to *ret,
	const struct pl_mark_args *a, const struct pl_mark_host_options *o)
{
	static struct pl_mark_to_options options;

	options = (struct pl_mark_to_options){ .to = address_of(peer),
		.name = peer->name,
		.terms = pl_mark_terms_of(&o->kernel.setup, rules_of(a, o)),
		.flows_max = o->kernel.flows_max != 0 ? o->kernel.flows_max : PL_HOSTMARK_FLOWS };
	*ret = (struct pl_mark_to){ .o = &options, .fd = -1 };
}

/* ---- the meter ---- */

static struct {
	struct pl_mark_between between;
	struct pl_mark_capture points[2]; /* their names */
	struct pl_mark_segment segment;
	struct pl_mark_rows rows;
	struct pl_mark_out out; /* there is no output for records of results */
	uint64_t count;         /* rows, at most; 0: no limit */
	uint64_t compared;      /* results with numbers */
	uint64_t unmarked;      /* packets of flows that the marker does not mark */
	bool told_clock;
} live;

/* Leaves out rows without news: those that only repeat the state of the clocks, and idle flows. A
 * flow without a record of the marker is not chosen by the marker's rules, or comes from elsewhere:
 * it is neither loss nor surplus. */
static void print_result(void *arg, const struct pl_mark_result *result)
{
	(void)arg;
	if ((result->alarms & PL_MARK_ALARM_UNSYNCED) != 0 && !live.told_clock)
		pl_complain(
			"one of the kernels does not call its clock synchronised: delays are as good as the clocks are");
	live.told_clock |= (result->alarms & PL_MARK_ALARM_UNSYNCED) != 0;
	if ((result->has & PL_MARK_HAS_LOSS) != 0 && result->sent == 0 &&
		(result->unsent || result->received == 0) &&
		(result->alarms & PL_MARK_ALARM_BEYOND) == 0) {
		live.unmarked += result->received;
		return;
	}
	live.compared += (result->has & PL_MARK_HAS_LOSS) != 0;
	live.rows.tai_offset = result->tai_offset;
	if (live.count == 0 || live.rows.results < live.count)
		pl_mark_rows_add(&live.rows, result);
}

static bool is_full(void *arg)
{
	(void)arg;
	return pl_row_out_full(&live.rows.out) ||
	       (live.count != 0 && live.rows.results >= live.count);
}

static void tell_nothing(const struct pl_mark_peer *peer)
{
	if (live.between.heard.stats.other_terms > 0)
		pl_complain("nothing was compared: %s marks otherwise, as was said", peer->name);
	else if (live.between.other_rules)
		pl_complain("nothing was compared: no flow was chosen by the rules of both");
	else
		pl_complain(
			"nothing was compared: no records of %s came to UDP port %u, or it sent no packets",
			peer->name, peer->port);
}

int pl_mark_peer_compare(const struct pl_mark_peer *peer, struct pl_mark_host *h,
	struct pl_mark_host_options *o, const struct pl_mark_args *a, const char *form)
{
	static const uint32_t points[] = { PL_MARK_BETWEEN_MARKER, PL_MARK_BETWEEN_METER };
	const struct pl_mark_between_options options = { .from = address_of(peer),
		.terms = pl_mark_terms_of(&o->kernel.setup, rules_of(a, o)),
		.flows_max = o->kernel.flows_max,
		.result = print_result };
	const struct pl_service between = { &pl_mark_between_ops, &live.between };
	int code;

	snprintf(live.points[0].name, sizeof(live.points[0].name), "%s", peer->name);
	snprintf(live.points[1].name, sizeof(live.points[1].name), "here");
	live.segment = (struct pl_mark_segment){ &points[0], &points[1], 1, 1 };
	live.count = a->count;
	live.rows.captures = live.points;
	live.rows.segments = &live.segment;
	live.rows.n_segments = live.rows.there = 1;
	live.rows.guard_ns = o->kernel.setup.guard_ns;
	live.rows.give = &live.out;
	if (!pl_mark_rows_init(&live.rows, form))
		return PL_EXIT_FAILED;
	live.between = (struct pl_mark_between){ .o = &options, .fd = -1 };
	o->records = pl_mark_between_take;
	o->full = is_full;
	o->arg = &live.between;
	code = pl_mark_args_run(h, &between, a);
	if (h->began && !pl_row_out_end(&live.rows.out))
		code = PL_EXIT_FAILED;
	if (h->began)
		pl_mark_rows_tell(&live.rows);
	else
		pl_buf_done(&live.rows.out.buf);
	if (live.unmarked > 0)
		pl_complain("%" PRIu64 " packets of flows that %s does not mark are in no row",
			live.unmarked, peer->name);
	if (code == PL_EXIT_OK && live.compared == 0) {
		tell_nothing(peer);
		code = PL_EXIT_NOTHING;
	}
	pl_mark_host_close(h);
	pl_mark_between_close(&live.between);
	pl_mark_rows_done(&live.rows);
	return code;
}
