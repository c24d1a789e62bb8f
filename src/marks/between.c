/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares a marker's records that arrive with those of this host's meter. */
#include "service/mark_between.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/num.h"
#include "runtime/account.h"

#define EXPORTERS  16u
#define BLOCKS_MAX 65536u
/* So that a sender who never ends lets the meter have its turn. */
#define BATCHES    16

/* The meter's own records have no sender. */
static const struct pl_addr nobody;

/* ---- records ---- */

void pl_mark_between_take(void *arg, const struct pl_mark128 *records, uint32_t n)
{
	struct pl_mark_between *b = arg;

	pl_mark_domain_take(b->domain, &nobody, records, n, false, pl_clock_real_ns());
}

static void say_stranger(struct pl_mark_between *b, const struct pl_addr *from)
{
	char who[PL_ADDR_TEXT_MAX], wanted[PL_ADDR_TEXT_MAX];

	if (b->said_stranger || pl_addr_equal(from, &b->o->from))
		return;
	b->said_stranger = true;
	pl_format_addr(who, from);
	pl_format_addr(wanted, &b->o->from);
	pl_say("records of %s are left out: only those of %s are compared (--from)", who, wanted);
}

static void say_settings(struct pl_mark_between *b)
{
	if (b->said_settings || pl_mark_domain_stats(b->domain)->other_settings == 0)
		return;
	b->said_settings = true;
	pl_say("the marker has another --method or --period than this meter: its records are left out");
}

static void take_datagram(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct pl_mark_between *b = arg;
	const struct pl_addr *from = pl_tmpkt_receiver_from(b->receiver);

	if (kind != PL_FLAT_MARK128)
		return;
	say_stranger(b, from);
	pl_mark_domain_take(b->domain, from, records, n, pl_tmpkt_receiver_torn(b->receiver),
		pl_clock_real_ns());
	say_settings(b);
}

/* Events have no reader here: results are printed. */
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
	const struct pl_mark_domain_config config = { .name = "between",
		.network = &b->network,
		.method = o->method,
		.period_ns = o->period_ns,
		.clock_ns = o->clock_ns,
		.wait_ns = o->period_ns,
		.blocks_max = BLOCKS_MAX,
		.loss_above = 100,
		.end_after = 1,
		.allow = b->allow,
		.n_allow = 2,
		.event = take_event,
		.result = o->result,
		.arg = o->arg };
	int r;

	b->allow[0] = (struct pl_prefix){ .addr = o->from, .bits = 128 };
	b->allow[1] = (struct pl_prefix){ .addr = nobody, .bits = 128 };
	r = pl_mark_network_make(&b->network, points, 2, NULL, 0, diag);
	return r < 0 ? r : pl_mark_domain_new(&b->domain, &config, diag);
}

static int open_port(struct pl_mark_between *b, struct pl_diag *diag)
{
	char uri[32];
	int r;

	snprintf(uri, sizeof(uri), "udp://:%u", b->o->port);
	r = pl_port_open(&b->port, uri, PL_PORT_RECV, &(struct pl_port_options){ 0 }, diag);
	if (r == -EADDRINUSE)
		pl_diag_set(diag,
			"UDP port %u is in use, perhaps by another meter: name another one at both hosts, --from HOST:PORT and --to HOST:PORT",
			b->o->port);
	return r;
}

static int open_service(void *s, const struct pl_service_opening *opening, struct pl_diag *diag)
{
	struct pl_mark_between *b = s;
	int r = open_port(b, diag);

	if (r == 0)
		r = opening->opened(opening->arg, diag);
	if (r == 0)
		r = make_domain(b, diag);
	if (r == 0)
		r = pl_tmpkt_receiver_new(&b->receiver, EXPORTERS, take_datagram, b);
	return r;
}

void pl_mark_between_close(struct pl_mark_between *b)
{
	if (b->port != NULL)
		(void)pl_port_close(b->port);
	pl_tmpkt_receiver_free(b->receiver);
	pl_mark_domain_free(b->domain);
	pl_mark_network_done(&b->network);
	b->port = NULL;
	b->receiver = NULL;
	b->domain = NULL;
}

/* ---- running ---- */

static unsigned int fds(void *s, struct pollfd *ret, unsigned int max)
{
	const struct pl_mark_between *b = s;

	if (max == 0)
		return 0;
	ret[0] = (struct pollfd){ .fd = pl_port_fd(b->port), .events = POLLIN };
	return 1;
}

/* What has arrived. Negative errno with diag. */
static int receive(struct pl_mark_between *b, struct pl_diag *diag)
{
	for (int i = 0; i < BATCHES; i++) {
		const int r = pl_port_recv(b->port, &b->batch, 0, diag);

		if (r <= 0)
			return r;
		pl_tmpkt_receiver_feed(b->receiver, &b->batch);
		pl_port_release(b->port, &b->batch);
	}
	return 1;
}

static int turn(void *s, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_mark_between *b = s;
	const int r = receive(b, diag);

	(void)polled;
	(void)now_ns;
	if (r < 0)
		return r;
	pl_mark_domain_turn(b->domain, pl_clock_real_ns());
	return r > 0 ? PL_TURN_BUSY : PL_TURN_IDLE;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	const struct pl_mark_between *b = s;
	const uint64_t due = pl_mark_domain_due_ns(b->domain), now = pl_clock_real_ns();

	if (due == UINT64_MAX)
		return UINT64_MAX;
	return due > now ? now_ns + (due - now) : now_ns;
}

/* The marker may have sent its last records just now. */
static void drain(void *s)
{
	struct pl_mark_between *b = s;
	struct pl_diag diag = { .text = "" };

	(void)receive(b, &diag);
	pl_mark_domain_finish(b->domain);
}

/* ---- accounts ---- */

static void put(const struct pl_account *a, const struct pl_mark_between *b)
{
	const bool is = b != NULL && b->domain != NULL && b->receiver != NULL;

	if (b != NULL && !is)
		return;
	pl_account_object(a, "tmpkt");
	pl_account_stats(a, &pl_tmpkt_stats_list, is ? pl_tmpkt_receiver_stats(b->receiver) : NULL);
	pl_account_object_end(a);
	pl_account_object(a, "domain");
	pl_account_stats(
		a, &pl_mark_domain_stats_list, is ? pl_mark_domain_stats(b->domain) : NULL);
	pl_account_object_end(a);
	pl_account_object(a, "correlate");
	pl_account_stats(a, &pl_mark_correlator_stats_list,
		is ? pl_mark_domain_correlated(b->domain) : NULL);
	pl_account_object_end(a);
}

static void put_page(void *s, struct pl_exposition *page)
{
	put(&(struct pl_account){ .page = page }, s);
}

static void put_json(void *s, struct pl_json *json)
{
	put(&(struct pl_account){ .json = json }, s);
}

static void describe(struct pl_exposition *page)
{
	put(&(struct pl_account){ .page = page }, NULL);
}

const struct pl_service_ops pl_mark_between_ops = {
	.name = "between",
	.open = open_service,
	.fds = fds,
	.turn = turn,
	.due_ns = due_ns,
	.metrics = put_page,
	.describe = describe,
	.drain = drain,
	.counters = put_json,
};
