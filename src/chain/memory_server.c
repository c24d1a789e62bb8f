/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the memory server. */
#include "chain/memory_server.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "chain/collect_stats.h"
#include "memory/region.h"

#define STEPS_A_TURN 256 /* steps between two checks of signals and time, under load */
#define DRAIN_MS     50  /* longer than a capture ring holds frames */
#define DRAIN_NS     UINT64_C(2000000000)
#define WAIT_MS      200

/* ---- opening ---- */

static void interfaces(void *s, struct pl_confine *confine)
{
	const struct pl_memory_server *m = s;

	pl_confine_uri(confine, m->o->collector.uri, true);
}

static int files(void *s, struct pl_confine *confine)
{
	const struct pl_memory_server *m = s;
	const struct pl_collector_options *o = &m->o->collector;
	int r = pl_confine_path(confine, m->o->save, true);

	if (r == 0)
		r = pl_confine_path(confine, m->o->keep_epochs, true);
	for (uint32_t i = 0; r == 0 && i < o->n_stores; i++)
		r = pl_confine_path(confine, o->stores[i].path, true);
	return r;
}

static void on_immediate(void *arg, const struct pl_collector_signal *signal)
{
	const struct pl_memory_server *m = arg;

	if (signal->have_imm && m->workers != NULL)
		pl_workers_signal(m->workers, signal->store, signal->imm, signal->ns);
	if (m->o->written != NULL)
		m->o->written(m->o->written_arg);
}

static int open_epochs(struct pl_memory_server *m, struct pl_diag *diag)
{
	const bool wanted = m->o->epoch_ns != 0 || m->o->keep_epochs != NULL;

	m->epochs_arg = (struct pl_collect_epochs_arg){ m->collector, &m->options };
	if (!wanted && !pl_collect_epochs_any(&m->epochs_arg))
		return 0;
	return pl_collect_epochs_open(
		&m->epochs, &m->epochs_arg, m->o->epoch_ns, m->o->keep_epochs, diag);
}

static void tell_mended(const struct pl_memory_server *m)
{
	for (uint32_t i = 0; i < m->options.n_stores; i++) {
		struct pl_diag diag = { .text = "" };

		if (pl_region_mended(pl_collector_region(m->collector, i), &diag) > 0)
			pl_say("%s: %s", m->options.stores[i].path, diag.text);
	}
}

static int open_threads(struct pl_memory_server *m, struct pl_diag *diag)
{
	const struct pl_memory_server_options *o = m->o;
	int r = 0;

	m->workers_arg = (struct pl_collect_workers_arg){ &m->options, o->print };
	if (o->on_immediate)
		r = pl_collect_workers_open(
			&m->workers, m->collector, &m->workers_arg, o->workers, diag);
	if (r == 0 && o->save != NULL)
		r = pl_collect_save_open(
			&m->save, m->collector, &m->options, o->save, o->save_every_ns, diag);
	return r == 0 ? open_epochs(m, diag) : r;
}

static int acquire(void *s, const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_memory_server *m = s;

	(void)pl_region_guard();
	m->options = m->o->collector;
	m->options.rights = rights;
	m->options.signal = on_immediate;
	m->options.arg = m;
	return pl_collector_new(&m->collector, &m->options, diag);
}

static int open_service(void *s, struct pl_diag *diag)
{
	struct pl_memory_server *m = s;
	int r = pl_collector_open(m->collector, diag);

	if (r == 0)
		r = open_threads(m, diag);
	if (r == 0)
		tell_mended(m);
	m->began = r == 0;
	return r;
}

/* ---- running ---- */

static unsigned int fds(void *s, struct pollfd *ret, unsigned int max)
{
	const struct pl_memory_server *m = s;

	if (max < 2)
		return 0;
	ret[0] = (struct pollfd){ .fd = pl_collector_fd(m->collector), .events = POLLIN };
	ret[1] = (struct pollfd){ .fd = m->epochs != NULL ? pl_epochs_fd(m->epochs) : -1,
		.events = POLLIN };
	return 2;
}

static const struct pl_region *watched(void *arg, unsigned int i, const char **ret_path)
{
	const struct pl_memory_server *m = arg;

	*ret_path = m->options.stores[i].path;
	return pl_collector_region(m->collector, i);
}

static void look(struct pl_memory_server *m, uint64_t now_ns)
{
	pl_region_watch_look(&m->watch, now_ns, watched, m, m->watched, m->options.n_stores);
}

static void look_at_conditions(struct pl_memory_server *m)
{
	struct pl_diag diag = { .text = "" };
	struct pl_conditions list;

	pl_conditions_clear(&list);
	if (m->down)
		pl_condition_add(&list, PL_CONDITION_FAULT, "interface_down",
			"the interface is down: %s", m->o->collector.uri);
	if (!m->down && pl_collector_fits(m->collector, &diag) < 0)
		pl_condition_add(&list, PL_CONDITION_FAULT, "mtu_too_small", "%s", diag.text);
	pl_region_watch_conditions(&m->watch, watched, m, m->watched, m->options.n_stores, &list);
	if (m->epochs != NULL)
		pl_epochs_conditions(m->epochs, &list);
	pl_condition_board_put(&m->conditions, &list);
}

static int turn(void *s, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_memory_server *m = s;
	int n = 0;

	if (m->epochs != NULL && (polled[1].revents & POLLIN) != 0)
		pl_epochs_turn(m->epochs);
	for (unsigned int i = 0; i < STEPS_A_TURN; i++) {
		n = pl_collector_step(m->collector, diag);
		if (n == -ENETDOWN || n == -EAGAIN) {
			pl_say_diag(diag);
			*diag = (struct pl_diag){ .text = "" };
		} else if (n < 0) {
			return n;
		}
		m->down = n == -ENETDOWN || (m->down && n != -EAGAIN);
		if (m->epochs != NULL)
			pl_epochs_step(m->epochs);
		if (n <= 0)
			break;
	}
	look(m, now_ns);
	look_at_conditions(m);
	return n > 0 ? PL_TURN_BUSY : PL_TURN_IDLE;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	const struct pl_memory_server *m = s;

	return now_ns + (uint64_t)pl_collector_wait_ms(m->collector, WAIT_MS) * 1000000u;
}

static void conditions(void *s, struct pl_conditions *ret)
{
	struct pl_memory_server *m = s;

	pl_condition_board_get(&m->conditions, ret);
}

static void epoch(void *s)
{
	struct pl_memory_server *m = s;

	if (m->epochs != NULL)
		pl_epochs_ask(m->epochs);
	else
		pl_say("no region has epochs (region create --halves 2)");
}

static void regions(void *s, struct pl_region_list *ret)
{
	const struct pl_memory_server *m = s;

	for (uint32_t i = 0; i < m->options.n_stores; i++)
		pl_region_list_add(
			ret, pl_collector_region(m->collector, i), m->options.stores[i].name);
}

/* ---- the end ---- */

static void end_threads(struct pl_memory_server *m)
{
	if (m->threads_ended)
		return;
	pl_workers_close(m->workers, &m->workers_stats);
	pl_collect_save_close(m->save, &m->save_stats);
	pl_epochs_stop(m->epochs);
	m->threads_ended = true;
}

/* Takes the requests that peers sent before the end: until none comes for a moment, with a limit.
 * Signalled values are printed. */
static void drain(void *s)
{
	struct pl_memory_server *m = s;
	const uint64_t until = pl_clock_mono_ns() + DRAIN_NS;
	struct pollfd fd = { .fd = pl_collector_fd(m->collector), .events = POLLIN };

	while (pl_clock_mono_ns() < until) {
		if (pl_collector_step(m->collector, NULL) <= 0 && poll(&fd, 1, DRAIN_MS) <= 0)
			break;
	}
	end_threads(m);
	look(m, UINT64_MAX);
}

static void sentence(void *s, struct pl_buf *text)
{
	const struct pl_memory_server *m = s;

	pl_collect_tell(m->collector, text);
	pl_region_watch_tell(&m->watch, text);
}

/* Writes counters; at the end also the counters of threads, which have ended by then. */
static void put(void *s, const struct pl_account *a)
{
	const struct pl_region_watch none = { .cut = 0 };
	struct pl_memory_server *m = s;

	if (m == NULL) {
		pl_collect_describe(a);
		pl_region_watch_account(a, &pl_region_watch_rdma, &none);
		pl_epochs_account(a, &pl_epochs_rdma, NULL);
		return;
	}
	pl_collect_account(a, m->collector, &m->options);
	pl_region_watch_account(a, &pl_region_watch_rdma, &m->watch);
	if (m->epochs != NULL || a->json == NULL)
		pl_epochs_account(a, &pl_epochs_rdma, m->epochs);
	if (a->json == NULL)
		return;
	if (m->threads_ended && m->o->on_immediate)
		pl_collect_workers_stats(a->json, &m->workers_stats);
	if (m->threads_ended && m->o->save != NULL)
		pl_collect_save_stats(a->json, &m->save_stats);
}

int pl_memory_server_close(struct pl_memory_server *m)
{
	end_threads(m);
	pl_epochs_free(m->epochs);
	m->epochs = NULL;
	return pl_collector_close(m->collector);
}

const struct pl_service_ops pl_memory_service = {
	.name = "memory",
	.interfaces = interfaces,
	.files = files,
	.acquire = acquire,
	.open = open_service,
	.fds = fds,
	.turn = turn,
	.due_ns = due_ns,
	.conditions = conditions,
	.regions = regions,
	.epoch = epoch,
	.drain = drain,
	.account = sentence,
	.counters = put,
};
