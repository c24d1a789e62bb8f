/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows from the other host's address: the way to it, the packets, the numbers of the points. */
#include "cli/mark_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/mark_rows.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/num.h"
#include "nic/neighbour.h"
#include "pipeline/tap_to.h"
#include "record/packet.h"
#include "service/mark_between.h"

/* What errors say of the addresses that a host may have. */
#define ADDRESSES                                                                                  \
	"such as 10.1.0.2, fd00::2, 10.1.0.2:40051 or [fd00::2]:40051; link-local ones cannot be " \
	"used"

static bool is_somebody(const struct pl_addr *a)
{
	static const uint8_t any[4];

	const bool link_local = a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;

	return !pl_addr_is_unspecified(a) && !link_local &&
	       !(pl_addr_is_v4(a) && memcmp(a->b + 12, any, sizeof(any)) == 0);
}

/* An address, or one with a port. */
static bool is_host(struct pl_mark_peer *p, const char *text)
{
	p->port = PL_MARK_BETWEEN_PORT;
	if (pl_parse_addr(text, &p->host) == 0)
		return is_somebody(&p->host);
	return pl_parse_endpoint(text, &p->host, &p->port) == 0 && p->port != 0 &&
	       is_somebody(&p->host);
}

static int find_dev(struct pl_mark_peer *p, struct pl_mark_args *a, const char *text)
{
	struct pl_diag diag = { .text = "" };
	int index;

	if (a->dev != NULL)
		return 0;
	if (pl_route_interface(&p->host, &index, &diag) < 0) {
		pl_complain("%s: %s; name the interface by --dev", text, diag.text);
		return PL_EXIT_USAGE;
	}
	if (if_indextoname((unsigned int)index, p->dev) == NULL) {
		pl_complain("%s: its interface has gone; name one by --dev", text);
		return PL_EXIT_FAILED;
	}
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

static void put_uri(struct pl_mark_peer *p)
{
	char host[PL_ADDR_TEXT_MAX];
	const bool v4 = pl_addr_is_v4(&p->host);

	pl_format_addr(host, &p->host);
	snprintf(p->uri, sizeof(p->uri), "udp://%s%s%s:%u", v4 ? "" : "[", host, v4 ? "" : "]",
		p->port);
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
	if (a->point != 0 && a->point != point) {
		pl_complain("--point: between two hosts the marker is 1 and the meter 2");
		return PL_EXIT_USAGE;
	}
	a->point = point;
	p->is = true;
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
		if (diag.text[0] != '\0') {
			pl_complain("--to %s: no address of a host (%s), and no output (%s)",
				a->to.items[i], ADDRESSES, diag.text);
			return PL_EXIT_USAGE;
		}
		if (p->is) {
			pl_complain("--to: one host; records go to others by --to udp://HOST:PORT");
			return PL_EXIT_USAGE;
		}
		*p = one;
		code = fill(p, a, a->to.items[i], PL_MARK_BETWEEN_MARKER, "dst");
		if (code != 0)
			return code;
		put_uri(p);
		a->to.items[i] = p->uri;
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
	if (!is_host(p, a->from)) {
		pl_complain(
			"--from %s: the address of the host that marks (%s)", a->from, ADDRESSES);
		return PL_EXIT_USAGE;
	}
	if (a->pin != NULL) {
		pl_complain(
			"--pin: with --from blocks are compared while the command runs; leave out --pin");
		return PL_EXIT_USAGE;
	}
	return fill(p, a, a->from, PL_MARK_BETWEEN_METER, "src");
}

/* ---- the meter ---- */

static struct {
	struct pl_mark_between between;
	struct pl_mark_capture points[2]; /* their names */
	struct pl_mark_segment segment;
	struct pl_mark_rows rows;
	struct pl_mark_out out; /* nobody gets records of results */
	uint64_t count;         /* rows, at most; 0: no limit */
	uint64_t compared;      /* results with numbers */
	bool told_clock;
} live;

/* One line for each block says nothing new of clocks; and idle flows are no news. */
static void print_result(void *arg, const struct pl_mark_result *result)
{
	(void)arg;
	if ((result->alarms & PL_MARK_ALARM_UNSYNCED) != 0 && !live.told_clock)
		pl_complain(
			"one of the kernels does not call its clock synchronised: delays are as good as the clocks are");
	live.told_clock |= (result->alarms & PL_MARK_ALARM_UNSYNCED) != 0;
	live.compared += (result->has & PL_MARK_HAS_LOSS) != 0;
	if ((result->has & PL_MARK_HAS_LOSS) != 0 && result->sent == 0 && result->received == 0)
		return;
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

int pl_mark_peer_compare(const struct pl_mark_peer *peer, struct pl_mark_host *h,
	struct pl_mark_host_options *o, const struct pl_mark_args *a, const char *form)
{
	static const uint32_t points[] = { PL_MARK_BETWEEN_MARKER, PL_MARK_BETWEEN_METER };
	const struct pl_mark_between_options options = { .from = peer->host,
		.port = peer->port,
		.method = (uint8_t)o->kernel.setup.method,
		.period_ns = o->kernel.setup.period_ns,
		.result = print_result };
	int code;

	pl_format_addr(live.points[0].name, &peer->host);
	snprintf(live.points[1].name, sizeof(live.points[1].name), "here");
	live.segment = (struct pl_mark_segment){ &points[0], &points[1], 1, 1 };
	live.count = a->count;
	live.rows.captures = live.points;
	live.rows.segments = &live.segment;
	live.rows.n_segments = live.rows.there = 1;
	live.rows.guard_ns = o->kernel.setup.guard_ns;
	live.rows.give = &live.out;
	live.rows.unsaid = PL_MARK_ALARM_UNSYNCED;
	if (!pl_mark_rows_init(&live.rows, form))
		return PL_EXIT_FAILED;
	live.between.o = &options;
	o->records = pl_mark_between_take;
	o->full = is_full;
	o->arg = &live.between;
	code = pl_mark_args_run(h, &live.between, a);
	if (h->began && !pl_row_out_end(&live.rows.out))
		code = PL_EXIT_FAILED;
	if (h->began)
		pl_mark_rows_tell(&live.rows);
	else
		pl_buf_done(&live.rows.out.buf);
	if (code == PL_EXIT_OK && live.compared == 0) {
		pl_complain(
			"nothing was compared: no records of %s came to UDP port %u, or it sent no packets",
			live.points[0].name, peer->port);
		code = PL_EXIT_NOTHING;
	}
	pl_mark_host_close(h);
	pl_mark_between_close(&live.between);
	pl_mark_rows_done(&live.rows);
	return code;
}
