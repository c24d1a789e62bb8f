/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives telemetry reports from live ports and decodes them for a question. */
#include "ask/query_reports.h"

#include <errno.h>
#include <inttypes.h>

#include "runtime/account.h"
#include "service/decode_stats.h"

#define BATCH_PATHS    1024
#define BATCH_HOPS     8192
#define BATCHES_A_TURN 16 /* batches from one port before the next port's turn */
#define TURN_NS        UINT64_C(100000000)

static void interfaces(void *arg, struct pl_confine *confine)
{
	const struct pl_query_reports *r = arg;

	for (size_t i = 0; i < r->n_uris; i++)
		pl_confine_uri(confine, r->uris[i], false);
}

static void flush(struct pl_record_batch *batch, void *arg)
{
	const struct pl_query_reports *r = arg;

	r->feed(r->arg, batch);
	pl_record_batch_clear(batch);
}

/* Opens a URI: one socket for an address; for an interface one per queue or member of the group. */
static int open_uri(struct pl_query_reports *r, const char *uri, const struct pl_rights *rights,
	struct pl_diag *diag)
{
	const bool interface = (pl_port_uri_can(uri) & PL_PORT_CAN_INTERFACE) != 0;
	const int n = interface ? pl_port_uri_sockets(uri, diag) : 1;
	const unsigned int first = r->n_ports;
	int e = n < 0 ? n : 0;

	for (int i = 0; e == 0 && i < n; i++) {
		struct pl_port_options options = { .rights = rights,
			.index = (unsigned int)i,
			.of = (unsigned int)n,
			.with = i > 0 ? r->ports[first] : NULL };

		for (size_t k = 0; k < r->n_uris; k++)
			options.v6only |= pl_port_uri_v6only(uri, r->uris[k]);

		if (r->n_ports == PL_QUERY_PORTS_MAX)
			return pl_diag_fail(
				diag, -EINVAL, "%s: at most %d sockets", uri, PL_QUERY_PORTS_MAX);
		e = pl_port_open(&r->ports[r->n_ports], uri, PL_PORT_RECV, &options, diag);
		r->n_ports += e == 0;
	}
	return e;
}

static int acquire(void *arg, const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_query_reports *r = arg;
	int e = 0;

	for (size_t i = 0; e == 0 && i < r->n_uris; i++)
		e = open_uri(r, r->uris[i], rights, diag);
	return e;
}

static int open_service(void *arg, struct pl_diag *diag)
{
	struct pl_query_reports *r = arg;
	struct pl_decode_options decode = *r->decode;

	(void)diag;
	/* All datagrams at these ports are taken for reports. */
	decode.any_port = true;
	if (pl_record_batch_init(&r->records, BATCH_PATHS, BATCH_HOPS) < 0 ||
		pl_decode_new(&r->decoder, &decode) < 0)
		return -ENOMEM;
	r->records.flush = flush;
	r->records.flush_arg = r;
	return 0;
}

static unsigned int fds(void *arg, struct pollfd *ret, unsigned int max)
{
	const struct pl_query_reports *r = arg;
	unsigned int n = 0;

	for (; n < r->n_ports && n < max; n++)
		ret[n] = (struct pollfd){ .fd = pl_port_fd(r->ports[n]), .events = POLLIN };
	return n;
}

/* Reads from a port. Returns 1 when there may be more, 0 when not, negative errno when the port
 * failed. */
static int receive(struct pl_query_reports *r, struct pl_port *port, struct pl_diag *diag)
{
	for (int i = 0; i < BATCHES_A_TURN; i++) {
		const int n = pl_port_recv(port, &r->packets, 0, diag);

		/* An interface that went down or came up is only reported; the port stays open. */
		if (n == -ENETDOWN || n == -EAGAIN) {
			pl_say_diag(diag);
			return 0;
		}
		if (n <= 0)
			return n;
		pl_decode_batch(r->decoder, &r->packets, &r->records);
		flush(&r->records, r);
		pl_port_release(port, &r->packets);
	}
	return 1;
}

static int turn(void *arg, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_query_reports *r = arg;
	int more = 0;

	for (unsigned int i = 0; i < r->n_ports; i++) {
		int one = polled == NULL || polled[i].revents != 0 ? receive(r, r->ports[i], diag)
								   : 0;

		if (one < 0)
			return one;
		more |= one;
	}
	if (more != 0 || now_ns - r->turned_ns >= TURN_NS) {
		r->turned_ns = now_ns;
		r->turned(r->arg);
	}
	return r->full(r->arg) ? PL_TURN_OVER : more != 0 ? PL_TURN_BUSY : PL_TURN_IDLE;
}

static uint64_t due_ns(void *arg, uint64_t now_ns)
{
	(void)now_ns;
	return ((const struct pl_query_reports *)arg)->turned_ns + TURN_NS;
}

static void sum_ports(const struct pl_query_reports *r, struct pl_port_stats *ret)
{
	*ret = (struct pl_port_stats){ 0 };
	for (unsigned int i = 0; i < r->n_ports; i++) {
		struct pl_port_stats one;

		pl_port_stats(r->ports[i], &one);
		pl_port_stats_add(ret, &one);
	}
}

static void put_text(void *arg, struct pl_buf *text)
{
	const struct pl_query_reports *r = arg;
	const struct pl_decode_counters *c = pl_decode_counters(r->decoder);
	struct pl_port_stats ports;
	struct pl_buf faults;

	sum_ports(r, &ports);
	pl_buf_init(&faults);
	pl_decode_stats_faults(&faults, r->decoder);
	pl_buf_printf(text, "%" PRIu64 " packets, %" PRIu64 " reports",
		pl_counter_read(&c->packets), pl_counter_read(&c->paths));
	if (ports.kernel_drops > 0)
		pl_buf_printf(text, "; %" PRIu64 " packets were dropped by the kernel",
			ports.kernel_drops);
	if (faults.len > 0)
		pl_buf_printf(text, "; %.*s", (int)faults.len, faults.data);
	pl_buf_done(&faults);
}

/* Its page has no families of reports. */
static void put(void *arg, const struct pl_account *a)
{
	const struct pl_query_reports *r = arg;
	const struct pl_decode_counters *c = pl_decode_counters(r->decoder);
	struct pl_port_stats ports;

	if (a->json == NULL)
		return;
	sum_ports(r, &ports);
	pl_account_object(a, "ports");
	pl_account_stats(a, &pl_port_stats_list, &ports);
	pl_account_object_end(a);
	pl_json_number(a->json, "packets", pl_counter_read(&c->packets));
	pl_json_number(a->json, "paths", pl_counter_read(&c->paths));
}

const struct pl_service_ops pl_query_reports_service = {
	.name = "reports",
	.interfaces = interfaces,
	.acquire = acquire,
	.open = open_service,
	.fds = fds,
	.turn = turn,
	.due_ns = due_ns,
	.account = put_text,
	.counters = put,
};

void pl_query_reports_close(struct pl_query_reports *r)
{
	for (unsigned int i = 0; i < r->n_ports; i++)
		(void)pl_port_close(r->ports[i]);
	pl_decode_free(r->decoder);
	pl_record_batch_done(&r->records);
}
