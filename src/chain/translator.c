/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the translator. */
#include "chain/translator.h"
#include "chain/region_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "memory/key_names.h"
#include "memory/region.h"

#define DRAIN_TURNS      64 /* limit of turns for emptying the sockets at the end */
#define BATCHES_A_TURN   16
#define CAPTURE_WAIT_MS  500 /* wait for a pipe; a signal may come just before it */

/* Conditions: interval of checks, and how long a refusal is a condition. */
#define CONDITIONS_NS    UINT64_C(100000000)
#define REFUSED_SHOWN_NS UINT64_C(60000000000)

/* ---- ports ---- */

/* Opens as many sockets as the URI has. */
static int open_ports(struct pl_translate *x, const char *uri, const struct pl_rights *rights,
	struct pl_diag *diag)
{
	int n = pl_port_uri_sockets(uri, diag);

	if (n > PL_TRANSLATE_PORTS_MAX)
		n = pl_diag_fail(diag, -EINVAL, "at most %d sockets", PL_TRANSLATE_PORTS_MAX);
	if (n < 0)
		return -EINVAL;
	while (x->n_ports < (unsigned int)n) {
		const struct pl_port_options o = { .rights = rights,
			.index = x->n_ports,
			.of = (unsigned int)n,
			.tells_dst = true, /* answers leave from there */
			.with = x->n_ports > 0 ? x->ports[0] : NULL };
		int r = pl_port_open(&x->ports[x->n_ports], uri, PL_PORT_RECV, &o, diag);

		if (r < 0)
			return r;
		x->n_ports++;
	}
	return 0;
}

static void send_nack(
	void *arg, const struct pl_addr *to, uint16_t port, const void *bytes, size_t n)
{
	struct pl_translate *x = arg;

	x->nacks_unsent += !pl_answers_send(&x->answers, x->report, to, port, bytes, n);
}

/* ---- packets ---- */

static bool enough(const struct pl_translate *x)
{
	return x->o->count != 0 && pl_translator_counters(x->translator)->reports >= x->o->count;
}

static void take(struct pl_translate *x, uint64_t now_ns)
{
	for (uint32_t k = 0; k < x->packets.n; k++) {
		if (x->packets.pkts[k].ts_ns > x->file_ns)
			x->file_ns = x->packets.pkts[k].ts_ns;
		x->packets_taken++;
		x->report = &x->packets.pkts[k];
		x->not_dta += !pl_translator_packet(
			x->translator, x->live ? now_ns : x->file_ns, &x->packets.pkts[k]);
		if (!x->live)
			pl_translator_tick(x->translator, x->file_ns);
		if (x->out.pressed != NULL)
			x->out.pressed(x->out.arg, x->translator);
	}
	x->report = NULL;
	pl_translator_done(x->translator);
}

/* Takes packets. Returns negative errno with diag when the port is broken. */
static int receive(struct pl_translate *x, struct pl_port *port, struct pl_diag *diag)
{
	for (int i = 0; i < BATCHES_A_TURN && !enough(x); i++) {
		int r = pl_port_recv(port, &x->packets, x->live ? 0 : CAPTURE_WAIT_MS, diag);

		if (r == -ENODATA) {
			x->ended = true;
			return 0;
		}
		/* When the interface disappears or comes back, that is logged; the port stays
		 * open. */
		if (r == -ENETDOWN || r == -EAGAIN) {
			pl_say_diag(diag);
			*diag = (struct pl_diag){ .text = "" };
			return 0;
		}
		if (r <= 0)
			return r;
		take(x, pl_clock_mono_ns());
		pl_port_release(port, &x->packets);
	}
	return 0;
}

/* ---- opening ---- */

/* Adds DTA's port to an interface's URI, unless it names ports. */
static const char *with_port(const char *uri, struct pl_buf *text)
{
	const char *scheme = pl_port_uri_scheme(uri);

	if (scheme == NULL || (strcmp(scheme, "afxdp") != 0 && strcmp(scheme, "packet") != 0) ||
		strstr(uri, "port=") != NULL)
		return uri;
	pl_buf_printf(text, "%s%cport=%u", uri, strchr(uri, '?') == NULL ? '?' : '&', PL_PORT_DTA);
	return text->failed ? uri : text->data;
}

static bool is_file(const char *uri)
{
	const char *scheme = pl_port_uri_scheme(uri);

	return scheme == NULL || strcmp(scheme, "pcap") == 0;
}

static void interfaces(void *s, struct pl_confine *confine)
{
	const struct pl_translate *x = s;

	pl_confine_uri(confine, x->o->dta.listen, false);
	if (pl_translate_is_roce(x->o->to[0]))
		pl_confine_uri(confine, x->o->to[0], true);
}

static int files(void *s, struct pl_confine *confine)
{
	const struct pl_translate *x = s;
	int r = pl_confine_path(confine, x->o->dta.keep_epochs, true);

	for (size_t i = 0; r == 0 && i < x->o->n_to; i++) {
		if (!pl_translate_is_roce(x->o->to[i]))
			r = pl_confine_path(confine, x->o->to[i], true);
	}
	return r;
}

static int open_out(struct pl_translate *x, struct pl_diag *diag)
{
	const struct pl_translate_options *o = x->o;

	if (x->out.connect != NULL)
		return x->out.connect(x->out.arg, diag);
	return pl_translate_to_regions(&x->out, o->to, o->n_to, o->names != NULL ? o->names : o->to,
		o->collectors, o->dta.epoch_ns, o->dta.keep_epochs, diag);
}

static void apply(void *arg, const struct pl_op *ops, size_t n)
{
	struct pl_translate *x = arg;

	x->out.ops(x->out.arg, ops, n);
}

static void note_key(void *arg, uint16_t store, uint64_t slot, const void *key, size_t key_bytes)
{
	const struct pl_translate *x = arg;

	if (x->o->keys[store] != NULL)
		pl_key_names_note(x->o->keys[store], slot, key, key_bytes);
}

static int make_translator(struct pl_translate *x, struct pl_diag *diag)
{
	const struct pl_translate_options *o = x->o;
	const struct pl_op_sink sink = { apply, send_nack, x, o->keys != NULL ? note_key : NULL };
	const struct pl_translator_config config = {
		.stores = x->stores,
		.n_stores = x->out.n_stores,
		.collectors = x->out.collectors,
		.form = o->dta.form == 1 ? PL_DTA_PLAIN : PL_DTA_TRACKING,
		.access = o->allow,
		.n_access = o->n_allow,
		.reporters = (uint32_t)o->dta.reporters,
		.reporter_quota = { .rate = o->dta.reporter_rate },
		.nack_interval_ns = o->dta.nack_interval_ns,
		/* No reporter of a file hears a NACK. */
		.nack_tries = is_file(o->dta.listen) ? 0 : (uint32_t)o->dta.nack_tries,
		.nack_port = (uint16_t)o->dta.nack_port,
	};
	int r = pl_translate_stores(o, &x->out, x->stores, diag);

	if (r == 0)
		r = pl_translator_new(&x->translator, &config, &sink, diag);
	if (r == 0 && x->out.resume != NULL)
		r = x->out.resume(x->out.arg, x->translator);
	return r;
}

static int acquire(void *s, const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_translate *x = s;
	struct pl_buf text;
	const char *uri;
	int r;

	(void)pl_region_guard();
	pl_buf_init(&text);
	uri = with_port(x->o->dta.listen, &text);
	r = open_ports(x, uri, rights, diag);
	if (r == 0) {
		x->live = pl_port_fd(x->ports[0]) >= 0 && !is_file(uri);
		r = pl_answers_open(&x->answers, uri, x->ports[0], diag);
	}
	pl_buf_done(&text);
	if (r == 0 && pl_translate_is_roce(x->o->to[0]))
		r = pl_translate_to_roce(&x->out, x->o->to[0], rights, diag);
	return r;
}

static int open_service(void *s, struct pl_diag *diag)
{
	struct pl_translate *x = s;
	int r = open_out(x, diag);

	if (r == 0 && x->o->written != NULL && x->out.tell != NULL)
		x->out.tell(x->out.arg, x->o->written, x->o->written_arg);
	if (r == 0)
		r = make_translator(x, diag);
	x->began = r == 0;
	return r;
}

/* ---- running ---- */

static unsigned int fds(void *s, struct pollfd *ret, unsigned int max)
{
	struct pl_translate *x = s;
	unsigned int n = 0;

	for (; x->live && n < x->n_ports && n < max; n++)
		ret[n] = (struct pollfd){ .fd = pl_port_fd(x->ports[n]), .events = POLLIN };
	if (x->out.fds != NULL)
		n += x->out.fds(x->out.arg, ret + n, max - n);
	return n;
}

/* Returns true when there are more refusals than at the last check, not counting filtered
 * reports. */
static bool more_refused(struct pl_translate *x, const struct pl_translator_counters *c)
{
	uint64_t unreadable = 0;
	bool more;

	for (unsigned int i = 1; i < PL_DTA_VERDICT_MAX; i++)
		unreadable += c->faults[i];
	more = unreadable != x->unreadable;
	x->unreadable = unreadable;
	for (unsigned int i = 0; i < PL_REFUSED_MAX; i++) {
		more = more || (i != PL_REFUSED_FILTERED && c->refused[i] != x->refused[i]);
		x->refused[i] = c->refused[i];
	}
	return more;
}

static void add_refusals(const struct pl_translator_counters *c, struct pl_conditions *ret)
{
	struct pl_buf text;

	pl_buf_init(&text);
	for (unsigned int i = 1; i < PL_DTA_VERDICT_MAX; i++) {
		if (c->faults[i] > 0)
			pl_buf_printf(&text, ", %" PRIu64 " unreadable (%s)", c->faults[i],
				pl_dta_verdict_name((enum pl_dta_verdict)i));
	}
	for (unsigned int i = 0; i < PL_REFUSED_MAX; i++) {
		if (c->refused[i] > 0 && i != PL_REFUSED_FILTERED)
			pl_buf_printf(&text, ", %" PRIu64 " refused (%s)", c->refused[i],
				pl_refusal_name((enum pl_refusal)i));
	}
	pl_condition_add(ret, PL_CONDITION_WARNING, "reports_refused",
		"reports were refused within the last minute; since the start:%s",
		text.failed ? "" : text.data + 1);
	pl_buf_done(&text);
}

static void look_at_conditions(struct pl_translate *x, uint64_t now_ns)
{
	const struct pl_translator_counters *c = pl_translator_counters(x->translator);
	struct pl_conditions list;

	pl_conditions_clear(&list);
	if (x->out.conditions != NULL)
		x->out.conditions(x->out.arg, &list);
	if (more_refused(x, c))
		x->refused_ns = now_ns;
	if (x->refused_ns != 0 && now_ns - x->refused_ns < REFUSED_SHOWN_NS)
		add_refusals(c, &list);
	if (x->nacks_unsent != x->unsent)
		x->unsent_ns = now_ns;
	x->unsent = x->nacks_unsent;
	if (x->unsent_ns != 0 && now_ns - x->unsent_ns < REFUSED_SHOWN_NS)
		pl_condition_add(&list, PL_CONDITION_WARNING, "answers_unsent",
			"NACKs or confirmations could not be sent within the last minute, %" PRIu64
			" since the start: their reporters hear nothing",
			x->unsent);
	pl_condition_board_put(&x->conditions, &list);
}

static int turn(void *s, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_translate *x = s;
	int r = 0;

	(void)now_ns;
	for (unsigned int i = 0; r == 0 && i < x->n_ports; i++) {
		if (!x->live || polled[i].revents != 0)
			r = receive(x, x->ports[i], diag);
	}
	if (r < 0)
		return r;
	now_ns = pl_clock_mono_ns();
	if (x->live)
		pl_translator_tick(x->translator, now_ns);
	if (x->out.turn != NULL)
		x->out_ns = x->out.turn(x->out.arg, x->translator, now_ns);
	if (now_ns >= x->conditions_ns) {
		look_at_conditions(x, now_ns);
		x->conditions_ns = now_ns + CONDITIONS_NS;
	}
	return x->ended || enough(x) ? PL_TURN_OVER : PL_TURN_IDLE;
}

static bool waits(void *s)
{
	const struct pl_translate *x = s;

	return !x->live;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	const struct pl_translate *x = s;
	const uint64_t due = pl_translator_due_ns(x->translator);

	(void)now_ns;
	return x->out.turn != NULL && x->out_ns < due ? x->out_ns : due;
}

static void drain(void *s)
{
	struct pl_translate *x = s;
	struct pl_diag diag = { .text = "" };

	for (int i = 0; i < DRAIN_TURNS && x->live && !enough(x); i++) {
		const uint64_t before = x->packets_taken;

		for (unsigned int k = 0; k < x->n_ports; k++)
			(void)receive(x, x->ports[k], &diag);
		if (x->packets_taken == before)
			break;
	}
	pl_translator_flush(x->translator, pl_clock_mono_ns());
	if (x->out.finish != NULL)
		x->out.finish(x->out.arg);
}

static void regions(void *s, struct pl_region_list *ret)
{
	const struct pl_translate *x = s;

	if (x->out.regions != NULL)
		x->out.regions(x->out.arg, ret);
}

static void epoch(void *s)
{
	struct pl_translate *x = s;

	if (x->out.next_epoch != NULL)
		x->out.next_epoch(x->out.arg);
	else
		pl_say("no region has epochs that SIGUSR2 could begin");
}

static void conditions(void *s, struct pl_conditions *ret)
{
	struct pl_translate *x = s;

	pl_condition_board_get(&x->conditions, ret);
}

bool pl_translate_lost(struct pl_translate *x)
{
	return x->out.lost != NULL && x->out.lost(x->out.arg);
}

int pl_translate_close(struct pl_translate *x)
{
	for (unsigned int i = 0; i < x->n_ports; i++)
		(void)pl_port_close(x->ports[i]);
	x->n_ports = 0;
	pl_answers_close(&x->answers);
	pl_translator_free(x->translator);
	x->translator = NULL;
	return x->out.close != NULL ? x->out.close(x->out.arg) : 0; /* zeroed: nothing was open */
}

const struct pl_service_ops pl_translate_service = {
	.name = "translator",
	.interfaces = interfaces,
	.files = files,
	.acquire = acquire,
	.open = open_service,
	.fds = fds,
	.turn = turn,
	.waits = waits,
	.due_ns = due_ns,
	.conditions = conditions,
	.regions = regions,
	.epoch = epoch,
	.drain = drain,
	.account = pl_translate_put_text,
	.counters = pl_translate_put,
};
