/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs services from their start to their end. */
#include "runtime/runtime.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "export/process.h"
#include "pipeline/pipeline.h"
#include "runtime/ending.h"
#include "runtime/notify.h"
#include "runtime/pages.h"
#include "runtime/signals.h"

#define FDS_MAX       256
#define WAIT_MAX_NS   UINT64_C(1000000000)
#define FLUSH_NS      UINT64_C(1000000000) /* time between checks for folded log lines */
/* A requested account is printed when all parts are up to date, or after a second at the latest. */
#define FRESH_LOOK_NS UINT64_C(10000000)
#define FRESH_MAX_NS  UINT64_C(1000000000)

static volatile sig_atomic_t to_stop, to_reload, to_tell, to_turn, hup_ends;

static struct runtime {
	const struct pl_runtime_options *o;
	struct pl_confine confine;
	struct pl_signals signals;
	struct pl_pages *pages; /* NULL: none */
	struct pollfd fds[FDS_MAX];
	unsigned int first[PL_SERVICES_MAX + 1]; /* first descriptor of each service in fds */
	bool busy[PL_SERVICES_MAX], broken;
	uint64_t watchdog_ns, petted_ns, flushed_ns;
	uint64_t tell_ns; /* since when accounts are requested; 0: they are not */
	/* Held by readers of services, and by the loop during its turns. */
	pthread_mutex_t lock;
	pthread_cond_t left;
	bool inside;
	unsigned int visitors;
} runtime = { .lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER };

/* ---- signals ---- */

static void on_signal(int signo)
{
	switch (signo) {
	case SIGUSR1:
		to_tell = 1;
		break;
	case SIGUSR2:
		to_turn = 1;
		break;
	case SIGHUP:
		if (hup_ends == 0) {
			to_reload = 1;
			break;
		}
		__attribute__((fallthrough));
	default:
		pl_ending_signal(to_stop == 0);
		to_stop = 1;
	}
}

/* Cleared before the signal is handled: one that comes meanwhile is another one. */
static bool taken(volatile sig_atomic_t *flag)
{
	if (*flag == 0)
		return false;
	*flag = 0;
	return true;
}

bool pl_runtime_ends(void)
{
	return to_stop != 0;
}

static bool reloads(const struct pl_runtime_options *o)
{
	for (unsigned int i = 0; i < o->n; i++) {
		if (o->services[i].ops->reload != NULL)
			return true;
	}
	return false;
}

/* SIGHUP without a configuration to read again: the terminal has gone, which ends the process as
 * SIGTERM does, with its accounts; an ignored SIGHUP (nohup) stays ignored. */
static void catch_signals(struct runtime *r)
{
	int also[4] = { SIGUSR1, SIGUSR2 };
	struct sigaction hup;

	to_stop = to_reload = to_tell = to_turn = 0;
	pl_ending_reset();
	hup_ends = !reloads(r->o);
	if (hup_ends == 0 || sigaction(SIGHUP, NULL, &hup) < 0 || hup.sa_handler != SIG_IGN)
		also[2] = SIGHUP;
	pl_signals_catch(&r->signals, on_signal, also);
}

/* The last messages may take long: a further TERM or INT ends the process meanwhile. */
static void hear_the_end(const struct runtime *r)
{
	struct pl_buf accounts;
	sigset_t set;

	pl_buf_init(&accounts);
	for (unsigned int i = 0; i < r->o->n; i++) {
		const struct pl_service *s = &r->o->services[i];

		if (s->ops->account == NULL)
			continue;
		pl_buf_printf(&accounts, "%s: ", s->ops->name);
		s->ops->account(s->s, &accounts);
		pl_buf_chr(&accounts, '\n');
	}
	pl_ending_begins(&accounts);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- who reads services, and when ---- */

static void enter(struct runtime *r)
{
	pthread_mutex_lock(&r->lock);
	while (r->visitors > 0)
		pthread_cond_wait(&r->left, &r->lock);
	r->inside = true;
	pthread_mutex_unlock(&r->lock);
}

static void leave(struct runtime *r)
{
	pthread_mutex_lock(&r->lock);
	r->inside = false;
	pthread_cond_broadcast(&r->left);
	pthread_mutex_unlock(&r->lock);
}

void pl_runtime_visit(void (*visit)(void *arg), void *arg)
{
	struct runtime *r = &runtime;

	pthread_mutex_lock(&r->lock);
	r->visitors++;
	while (r->inside)
		pthread_cond_wait(&r->left, &r->lock);
	visit(arg);
	r->visitors--;
	pthread_cond_broadcast(&r->left);
	pthread_mutex_unlock(&r->lock);
}

static void visit_metrics(void *page)
{
	const struct pl_runtime_options *o = runtime.o;
	const struct pl_account a = { .page = page };
	struct pl_region_list list = { .n = 0 };

	for (unsigned int i = 0; o != NULL && i < o->n; i++) {
		if (o->services[i].ops->counters != NULL)
			o->services[i].ops->counters(o->services[i].s, &a);
		if (o->services[i].ops->regions != NULL)
			o->services[i].ops->regions(o->services[i].s, &list);
	}
	if (list.n > 0)
		pl_regions_metrics(page, &list);
}

void pl_runtime_families(void *collector, struct pl_exposition *page)
{
	struct pl_readiness parts;

	pl_runtime_visit(visit_metrics, page);
	pl_runtime_readiness(collector, &parts);
	pl_readiness_page(&parts, page);
}

void pl_runtime_readiness(void *collector, struct pl_readiness *ret)
{
	const struct pl_runtime_options *o = runtime.o;

	ret->n = 0;
	if (collector != NULL)
		pl_readiness_add(ret, "collector", pl_pipeline_conditions, collector);
	for (unsigned int i = ret->n; o != NULL && i < o->n; i++)
		pl_readiness_add(ret, o->services[i].ops->name, o->services[i].ops->conditions,
			o->services[i].s);
}

static void visit_accounts(void *json)
{
	const struct pl_runtime_options *o = runtime.o;
	struct pl_buf text;

	pl_buf_init(&text);
	for (unsigned int i = 1; o != NULL && i < o->n; i++) {
		pl_buf_reset(&text);
		if (o->services[i].ops->account == NULL)
			continue;
		o->services[i].ops->account(o->services[i].s, &text);
		if (text.failed || text.len == 0)
			continue;
		pl_json_key(json, o->services[i].ops->name);
		pl_json_str(json, text.data);
	}
	pl_buf_done(&text);
}

void pl_runtime_accounts(void *collector, struct pl_json *json)
{
	(void)collector;
	pl_runtime_visit(visit_accounts, json);
}

/* ---- opening ---- */

/* All services have opened what needs privileges; packets and files are handled after these are
 * given up. */
static int drop_rights(struct runtime *r, struct pl_diag *diag)
{
	const struct pl_runtime_options *o = r->o;
	int e = 0;

	for (unsigned int i = 0; e == 0 && i < o->n; i++)
		e = o->services[i].ops->files != NULL
			    ? o->services[i].ops->files(o->services[i].s, &r->confine)
			    : 0;
	if (e < 0)
		return pl_diag_fail(diag, e, "the files that are named: %s", strerror(-e));
	return pl_confine(&r->confine, diag);
}

static int open_services(struct runtime *r, struct pl_diag *diag)
{
	const struct pl_rights *rights = pl_confine_rights(&r->confine);
	const struct pl_service *all = r->o->services;
	int e = 0;

	for (unsigned int i = 0; e == 0 && i < r->o->n; i++)
		e = all[i].ops->acquire != NULL ? all[i].ops->acquire(all[i].s, rights, diag) : 0;
	if (e == 0)
		e = drop_rights(r, diag);
	for (unsigned int i = r->o->n; e == 0 && i-- > 0;)
		e = all[i].ops->open != NULL ? all[i].ops->open(all[i].s, diag) : 0;
	return e;
}

static int page_metrics(void *arg, struct pl_exposition *page)
{
	(void)arg;
	pl_runtime_families(NULL, page);
	pl_exposition_process(page);
	return 0;
}

static bool page_ready(void *arg, struct pl_buf *text)
{
	struct pl_readiness r;
	struct pl_json json;
	bool ready;

	(void)arg;
	pl_runtime_readiness(NULL, &r);
	if (text == NULL)
		return pl_readiness_members(&r, 0, NULL);
	pl_json_init(&json, text);
	pl_json_object(&json);
	ready = pl_readiness_members(&r, 0, &json);
	pl_json_key(&json, "ready");
	pl_json_bool(&json, ready);
	pl_json_object_end(&json);
	return ready;
}

static int open_all(struct runtime *r, struct pl_diag *diag)
{
	const struct pl_runtime_options *o = r->o;
	int e;

	pl_confine_init(&r->confine, &o->rights);
	for (unsigned int i = 0; i < o->n; i++) {
		if (o->services[i].ops->interfaces != NULL)
			o->services[i].ops->interfaces(o->services[i].s, &r->confine);
	}
	e = pl_confine_begin(&r->confine, diag);
	if (e == 0)
		e = open_services(r, diag);
	if (e == 0 && o->web != NULL)
		e = pl_pages_serve(&r->pages, o->web, page_metrics, page_ready, NULL, diag);
	return e;
}

/* ---- turns ---- */

static void gather(struct runtime *r)
{
	const struct pl_runtime_options *o = r->o;
	unsigned int n = 0;

	for (unsigned int i = 0; i < o->n; i++) {
		r->first[i] = n;
		if (o->services[i].ops->fds != NULL)
			n += o->services[i].ops->fds(o->services[i].s, r->fds + n, FDS_MAX - n);
	}
	r->first[o->n] = n;
	for (unsigned int i = 0; i < n; i++)
		r->fds[i].revents = 0;
}

static bool waits(const struct pl_service *s)
{
	return s->ops->waits != NULL && s->ops->waits(s->s);
}

/* Returns true when the loop waits for all services, false when a service does its own waiting. */
static bool polls(const struct runtime *r)
{
	for (unsigned int i = 0; i < r->o->n; i++) {
		if (waits(&r->o->services[i]))
			return false;
	}
	return true;
}

/* Returns false when a service has failed or finished. */
static bool take_turns(
	struct runtime *r, uint64_t now_ns, bool *ret_busy, struct pl_diag *diag, int *ret_error)
{
	const struct pl_runtime_options *o = r->o;

	*ret_busy = false;
	for (unsigned int i = 0; i < o->n; i++) {
		const struct pl_service *s = &o->services[i];
		int e = s->ops->turn(s->s, r->fds + r->first[i], now_ns, diag);

		if (e < 0) {
			r->broken = true;
			*ret_error = e;
		}
		if (e < 0 || e == PL_TURN_OVER)
			return false;
		*ret_busy |= e == PL_TURN_BUSY;
	}
	return true;
}

static uint64_t wait_ns(const struct runtime *r, uint64_t end_ns)
{
	const struct pl_runtime_options *o = r->o;
	const uint64_t now_ns = pl_clock_mono_ns();
	uint64_t until = end_ns;

	for (unsigned int i = 0; i < o->n; i++) {
		const struct pl_service *s = &o->services[i];
		uint64_t due = s->ops->due_ns != NULL ? s->ops->due_ns(s->s, now_ns) : UINT64_MAX;

		until = due < until ? due : until;
	}
	if (r->watchdog_ns != 0 && r->petted_ns + r->watchdog_ns / 2 < until)
		until = r->petted_ns + r->watchdog_ns / 2;
	if (r->tell_ns != 0 && now_ns + FRESH_LOOK_NS < until)
		until = now_ns + FRESH_LOOK_NS;
	if (until <= now_ns)
		return 0;
	return until - now_ns < WAIT_MAX_NS ? until - now_ns : WAIT_MAX_NS;
}

/* ---- answers ---- */

static void put_counters(const struct runtime *r)
{
	const struct pl_runtime_options *o = r->o;
	struct pl_buf text;
	struct pl_json json;
	const struct pl_account a = { .json = &json };

	pl_buf_init(&text);
	pl_json_init(&json, &text);
	pl_json_object(&json);
	for (unsigned int i = 0; i < o->n; i++) {
		const struct pl_service *s = &o->services[i];

		if (s->ops->counters == NULL)
			continue;
		/* With one service its members are those of the object. */
		if (o->n > 1) {
			pl_json_key(&json, s->ops->name);
			pl_json_object(&json);
		}
		s->ops->counters(s->s, &a);
		if (o->n > 1)
			pl_json_object_end(&json);
	}
	pl_json_object_end(&json);
	pl_buf_chr(&text, '\n');
	if (text.failed)
		pl_say("%s", strerror(ENOMEM));
	else
		o->print.text(o->print.arg, text.data, text.len);
	pl_buf_done(&text);
}

static void tell_accounts(const struct runtime *r, const char *when)
{
	const struct pl_runtime_options *o = r->o;

	for (unsigned int i = 0; i < o->n; i++) {
		const struct pl_service *s = &o->services[i];
		struct pl_buf text;

		if (s->ops->account == NULL)
			continue;
		pl_buf_init(&text);
		s->ops->account(s->s, &text);
		if (text.failed || text.len == 0)
			;
		else if (o->log)
			pl_log(PL_LOG_NOTICE, s->ops->name, "%s: %s", when, text.data);
		else {
			pl_buf_chr(&text, '\n');
			if (!text.failed)
				o->tell.text(o->tell.arg, text.data, text.len);
		}
		pl_buf_done(&text);
	}
}

static void ask_for_epochs(const struct runtime *r)
{
	bool any = false;

	for (unsigned int i = 0; i < r->o->n; i++) {
		const struct pl_service *s = &r->o->services[i];

		if (s->ops->epoch == NULL)
			continue;
		s->ops->epoch(s->s);
		any = true;
	}
	if (!any)
		pl_say("SIGUSR2 ignored: no region has epochs");
}

static bool are_fresh(const struct runtime *r)
{
	bool fresh = true;

	for (unsigned int i = 0; i < r->o->n; i++) {
		const struct pl_service *s = &r->o->services[i];

		fresh &= s->ops->is_fresh == NULL || s->ops->is_fresh(s->s, r->tell_ns);
	}
	return fresh;
}

static void answer_signals(struct runtime *r, uint64_t now_ns)
{
	if (taken(&to_tell))
		r->tell_ns = now_ns;
	if (r->tell_ns != 0 && (are_fresh(r) || now_ns - r->tell_ns >= FRESH_MAX_NS)) {
		if (r->o->print.text != NULL)
			put_counters(r);
		else
			tell_accounts(r, "so far");
		r->tell_ns = 0;
	}
	if (taken(&to_turn))
		ask_for_epochs(r);
}

static void reload(const struct runtime *r)
{
	pl_notify_reloading();
	for (unsigned int i = 0; i < r->o->n; i++) {
		if (r->o->services[i].ops->reload != NULL)
			r->o->services[i].ops->reload(r->o->services[i].s);
	}
	pl_notify("READY=1");
}

/* Only when every thread answers. */
static void pet_watchdog(struct runtime *r, uint64_t now_ns)
{
	bool alive = true;

	if (r->watchdog_ns == 0 || now_ns - r->petted_ns < r->watchdog_ns / 2)
		return;
	for (unsigned int i = 0; i < r->o->n; i++) {
		const struct pl_service *s = &r->o->services[i];

		alive &= s->ops->alive == NULL || s->ops->alive(s->s);
	}
	if (alive)
		pl_notify("WATCHDOG=1");
	r->petted_ns = now_ns;
}

/* Logs the number of folded lines when their time is over, without waiting for another one. */
static void flush_log(struct runtime *r, uint64_t now_ns)
{
	if (now_ns - r->flushed_ns < FLUSH_NS)
		return;
	pl_log_flush(false);
	r->flushed_ns = now_ns;
}

/* ---- the loop ---- */

static int loop(struct runtime *r, struct pl_diag *diag)
{
	const uint64_t end_ns =
		r->o->duration_ns != 0 ? pl_clock_mono_ns() + r->o->duration_ns : UINT64_MAX;
	const bool by_poll = polls(r);
	uint64_t now_ns = pl_clock_mono_ns();
	int error = 0;
	bool go = true, busy;

	if (by_poll)
		pl_signals_block(&r->signals);
	r->petted_ns = now_ns;
	gather(r);
	while (go && to_stop == 0 && now_ns < end_ns) {
		enter(r);
		go = take_turns(r, now_ns, &busy, diag, &error);
		answer_signals(r, now_ns);
		gather(r);
		leave(r);
		if (taken(&to_reload))
			reload(r);
		pet_watchdog(r, now_ns);
		flush_log(r, now_ns);
		if (go && by_poll)
			pl_signals_poll(&r->signals, r->fds, r->first[r->o->n],
				busy ? 0 : wait_ns(r, end_ns));
		now_ns = pl_clock_mono_ns();
	}
	return error;
}

/* Drains in reverse order, because services that were opened last feed no others. */
static void drain(struct runtime *r)
{
	enter(r);
	hear_the_end(r);
	for (unsigned int i = r->o->n; i-- > 1;) {
		if (r->o->services[i].ops->drain != NULL)
			r->o->services[i].ops->drain(r->o->services[i].s);
	}
	leave(r);
	/* The first service may have pages, whose threads read the others. */
	if (r->o->n > 0 && r->o->services[0].ops->drain != NULL)
		r->o->services[0].ops->drain(r->o->services[0].s);
}

int pl_runtime(const struct pl_runtime_options *options, bool *ret_opened, struct pl_diag *diag)
{
	struct runtime *r = &runtime;
	int e;

	r->o = options;
	r->broken = false;
	r->pages = NULL;
	r->tell_ns = 0;
	pl_say_by_log(options->log);
	catch_signals(r);
	e = open_all(r, diag);
	*ret_opened = e == 0;
	if (e == 0) {
		if (options->begun != NULL)
			options->begun(options->arg);
		if (pl_confine_gap(&r->confine) != NULL)
			pl_say("%s", pl_confine_gap(&r->confine));
		r->watchdog_ns = pl_notify_watchdog_ns();
		pl_notify("READY=1");
		e = loop(r, diag);
		pl_notify("STOPPING=1");
		if (options->log)
			pl_notice(options->services[0].ops->name, "stopping");
		drain(r);
		tell_accounts(r, "stopped");
		if (options->stats && options->print.text != NULL)
			put_counters(r);
	}
	pl_pages_close(r->pages);
	pl_confine_end(&r->confine);
	return e;
}
