/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a host's INT source or sink. */
#include "service/int_host.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "runtime/account.h"
#include "service/tap_rules.h"

#define EVENTS_A_TURN 1024
#define DRAIN_TURNS   4096
#define WAIT_NS       UINT64_C(20000000) /* longest that a report waits for its datagram to fill */
#define LOOK_NS       UINT64_C(1000000000)

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_int_host, __VA_ARGS__)
#include "service/int_host_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

/* ---- reports ---- */

static void send_datagram(void *arg, const void *datagram, uint32_t len, uint32_t reports)
{
	struct pl_int_host *h = arg;
	static _Thread_local struct pl_batch batch;

	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){
		.data = datagram, .len = len, .wire_len = len, .link = PL_LINK_UDP
	};
	for (unsigned int i = 0; i < h->n_ports; i++) {
		if (pl_port_send(h->ports[i], &batch, NULL) == 1) {
			h->datagrams++;
			h->sent += reports;
		} else {
			h->unsent += reports;
		}
	}
	if (h->o->datagram != NULL)
		h->o->datagram(h->o->arg, datagram, len);
}

static void take(void *arg, struct pl_host_event *event)
{
	struct pl_int_host *h = arg;

	h->taken++;
	pl_hostint_report(&h->reporter, event);
}

static bool enough(const struct pl_int_host *h)
{
	return h->o->full != NULL && h->o->full(h->o->arg);
}

/* Returns the number of packets read, or negative errno with diag. */
static int receive(struct pl_int_host *h, struct pl_diag *diag)
{
	const int n = pl_hostint_recv(h->kernel, EVENTS_A_TURN, take, h, diag);

	/* When the interface disappears or returns, only a log line is written; the program is
	 * attached again elsewhere. */
	if (n == -ENETDOWN || n == -EAGAIN) {
		pl_say_diag(diag);
		*diag = (struct pl_diag){ .text = "" };
		return 0;
	}
	return n;
}

static void flush(struct pl_int_host *h, uint64_t now_ns)
{
	if (h->reporter.reports == 0) {
		h->flush_ns = 0;
	} else if (h->flush_ns == 0) {
		h->flush_ns = now_ns + WAIT_NS;
	} else if (now_ns >= h->flush_ns) {
		pl_hostint_flush(&h->reporter);
		h->flush_ns = 0;
	}
	if (h->o->turned != NULL)
		h->o->turned(h->o->arg);
}

/* ---- opening ---- */

/* Refuses sampling by a sink: the other packets would be dropped, or keep their INT. */
static int check_rules(
	const struct pl_int_host *h, const struct pl_tap_rules *rules, struct pl_diag *diag)
{
	struct pl_buf text = { 0 };

	for (uint32_t i = 0; h->o->kernel.sink && i < rules->n; i++) {
		const struct pl_tap_rule *rule = &rules->rules[i];

		if (rule->sample <= 1 && rule->sample_flows <= 1)
			continue;
		pl_tap_rule_text(&text, rule);
		pl_diag_set(diag,
			"rule \"%.*s\": a sink removes INT from all packets that a rule matches, so its rules cannot sample; sample at the source, or report fewer with --every",
			(int)text.len, text.data);
		pl_buf_done(&text);
		return -EINVAL;
	}
	return 0;
}

static void interfaces(void *s, struct pl_confine *confine)
{
	struct pl_int_host *h = s;

	snprintf(h->uri, sizeof(h->uri), "%s:%s", h->o->kernel.sink ? "xdp" : "tc",
		h->o->kernel.dev);
	pl_confine_uri(confine, h->uri, false);
}

static int files(void *s, struct pl_confine *confine)
{
	const struct pl_int_host *h = s;

	return pl_confine_path(confine, h->o->rules_file, false);
}

static int open_ports(struct pl_int_host *h, struct pl_diag *diag)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < h->o->n_to && i < PL_INT_HOST_TO_MAX; i++) {
		r = pl_port_open(&h->ports[i], h->o->to[i], PL_PORT_SEND, NULL, diag);
		h->n_ports += r == 0;
	}
	return r;
}

static int acquire(void *s, const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_int_host *h = s;
	struct pl_hostint_options kernel = h->o->kernel;
	int r = 0;

	h->rules = h->o->rules;
	if (h->o->rules_file != NULL)
		r = pl_tap_rules_read(&h->rules, h->o->rules_file, diag);
	if (r == 0)
		r = check_rules(h, &h->rules, diag);
	h->reporter = (struct pl_hostint_reporter){ .node = kernel.node,
		.hw_id = h->o->hw_id,
		.sampled = kernel.every != 1,
		/* Starting at 0 would make the reports of a restarted sink look like duplicates. */
		.seq = (uint32_t)pl_hash_seed(),
		.send = send_datagram,
		.arg = h };
	pl_hostint_reporter_init(&h->reporter);
	kernel.rules = &h->rules;
	kernel.rights = rights;
	if (r == 0)
		r = pl_hostint_open(&h->kernel, &kernel, diag);
	if (r == 0)
		h->reporter.raw = pl_hostint_is_raw(h->kernel);
	return r;
}

static int open_service(void *s, struct pl_diag *diag)
{
	struct pl_int_host *h = s;
	const int r = open_ports(h, diag);

	h->began = r == 0;
	return r;
}

/* ---- running ---- */

static unsigned int fds(void *s, struct pollfd *ret, unsigned int max)
{
	const struct pl_int_host *h = s;

	if (max == 0)
		return 0;
	ret[0] = (struct pollfd){ .fd = pl_hostint_fd(h->kernel), .events = POLLIN };
	return 1;
}

static int turn(void *s, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_int_host *h = s;
	int n = 0;

	if (polled[0].revents != 0 || now_ns >= pl_hostint_due_ns(h->kernel))
		n = receive(h, diag);
	if (n < 0)
		return n;
	flush(h, now_ns);
	return enough(h) ? PL_TURN_OVER : n == EVENTS_A_TURN ? PL_TURN_BUSY : PL_TURN_IDLE;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	const struct pl_int_host *h = s;
	uint64_t due = pl_hostint_due_ns(h->kernel);

	if (now_ns + LOOK_NS < due)
		due = now_ns + LOOK_NS;
	return h->flush_ns != 0 && h->flush_ns < due ? h->flush_ns : due;
}

/* When the file has an error, the present rules stay. */
static void reload(void *s)
{
	struct pl_int_host *h = s;
	struct pl_tap_rules again = h->o->rules;
	struct pl_diag diag = { .text = "" };

	if (h->o->rules_file == NULL) {
		pl_say("there is nothing to read again: no rules were given by --rules");
		return;
	}
	if (pl_tap_rules_read_again(&again, h->o->rules_file, &diag) < 0 ||
		check_rules(h, &again, &diag) < 0) {
		pl_say("the rules stay as they are: %s", diag.text);
		return;
	}
	h->rules = again;
	pl_hostint_rules(h->kernel, &h->rules);
	pl_say("rules of %s are in force: %u", h->o->rules_file, (unsigned int)again.n);
}

static void drain(void *s)
{
	struct pl_int_host *h = s;
	struct pl_diag diag = { .text = "" };

	if (h->kernel == NULL)
		return;
	pl_hostint_stop(h->kernel);
	for (int i = 0; i < DRAIN_TURNS && !enough(h) && receive(h, &diag) > 0; i++)
		;
	pl_hostint_flush(&h->reporter);
	if (h->o->turned != NULL)
		h->o->turned(h->o->arg);
}

bool pl_int_host_complete(const struct pl_int_host *h)
{
	return h->unsent == 0;
}

void pl_int_host_close(struct pl_int_host *h)
{
	for (unsigned int i = 0; i < h->n_ports; i++)
		(void)pl_port_close(h->ports[i]);
	h->n_ports = 0;
	pl_hostint_close(h->kernel);
	h->kernel = NULL;
}

/* ---- accounts ---- */

static void put(void *s, const struct pl_account *a)
{
	struct pl_int_host *h = s;

	if (h == NULL) {
		pl_account_stats(a, &pl_hostint_source_list, NULL);
		pl_account_stats(a, &pl_hostint_sink_list, NULL);
		pl_account_stats(a, &stats_list, NULL);
		return;
	}
	/* The service could not be opened. */
	if (h->kernel == NULL)
		return;
	if (!h->o->kernel.sink) {
		pl_hostint_source_counts(h->kernel, &h->shown.source);
		pl_account_object(a, "source");
		pl_account_stats(a, &pl_hostint_source_list, &h->shown.source);
		pl_account_object_end(a);
		return;
	}
	pl_hostint_sink_counts(h->kernel, &h->shown.sink);
	pl_account_object(a, "sink");
	pl_account_stats(a, &pl_hostint_sink_list, &h->shown.sink);
	pl_account_object_end(a);
	pl_account_object(a, "output");
	pl_account_stats(a, &stats_list, h);
	pl_account_object_end(a);
}

static void put_source_text(struct pl_int_host *h, struct pl_buf *text)
{
	struct pl_host_source_counts c;

	pl_hostint_source_counts(h->kernel, &c);
	pl_buf_printf(
		text, "%" PRIu64 " packets, %" PRIu64 " given INT", c.packets, c.instrumented);
	pl_account_add(text, c.not_ip + c.other, "that cannot carry it");
	pl_account_add(text, c.broken, "broken");
	pl_account_add(text, c.skipped, "chosen by no rule");
	pl_account_add(text, c.not_sampled, "not sampled");
	pl_account_add(text, c.marked, "that had its DSCP already");
	pl_account_add(text, c.segments, "taken apart into segments only later");
	pl_account_add(text, c.over_mtu, "too long for the MTU");
	pl_account_add(text, c.checksum, "whose checksum does not fit");
	pl_account_add(text, c.no_room, "without room");
	pl_account_add(text, c.dropped, "dropped");
}

static void put_sink_text(struct pl_int_host *h, struct pl_buf *text)
{
	struct pl_host_sink_counts c;

	pl_hostint_sink_counts(h->kernel, &c);
	pl_buf_printf(text, "%" PRIu64 " packets, INT taken off %" PRIu64, c.packets, c.stripped);
	/* The counters of processors are read one after the other: a number may be late already and
	 * not skipped yet. */
	pl_account_add(text, c.skipped_numbers > c.late ? c.skipped_numbers - c.late : 0,
		"lost on the way");
	pl_account_add(text, c.duplicates, "duplicates");
	pl_account_add(text, c.copies, "copies");
	pl_account_add(text, c.malformed, "malformed");
	pl_account_add(text, c.outside, "from outside");
	pl_account_add(text, c.failed, "dropped because the kernel failed");
	pl_buf_printf(text, "; %" PRIu64 " reported", h->taken);
	pl_account_add(text, c.ring_full, "not, because the kernel's ring was full");
	pl_account_add(text, h->unsent, "reports that a collector did not get");
}

static void put_text(void *s, struct pl_buf *text)
{
	struct pl_int_host *h = s;

	if (h->kernel == NULL)
		return;
	if (h->o->kernel.sink)
		put_sink_text(h, text);
	else
		put_source_text(h, text);
}

const struct pl_service_ops pl_int_host_ops = {
	.name = "int",
	.interfaces = interfaces,
	.files = files,
	.acquire = acquire,
	.open = open_service,
	.fds = fds,
	.turn = turn,
	.due_ns = due_ns,
	.reload = reload,
	.drain = drain,
	.account = put_text,
	.counters = put,
};
