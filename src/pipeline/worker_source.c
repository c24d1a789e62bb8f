/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a worker's port, also again after a loss, and watches drops of its socket. */
#include "pipeline/worker_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* Pause between attempts to open a lost source: doubled from the first to the second. */
#define PAUSE_MIN_NS   (UINT64_C(100) * 1000000u)
#define PAUSE_MAX_NS   (UINT64_C(1) * 1000000000u)

#define SETTLE_LOOK_US 1000

/* ---- delivery of packets ---- */

static void mark_taps(void *arg)
{
	const struct pl_engine *e = ((const struct pl_worker *)arg)->engine;

	for (unsigned int i = 0; i < e->n_taps; i++)
		pl_tap_mark(e->taps[i]);
}

/* Returns the state of all taps, as pl_tap_settled; -1: waiting is useless. */
static int taps_settled(struct pl_worker *w)
{
	int all = atomic_load_explicit(&w->unsettled, memory_order_acquire) ? -1 : 1;

	for (unsigned int i = 0; i < w->engine->n_taps; i++) {
		const int one = pl_tap_settled(w->engine->taps[i]);

		if (one < all)
			all = one;
	}
	return all;
}

static bool settled(void *arg, uint32_t wait_ms)
{
	const uint64_t until = pl_clock_mono_ns() + wait_ms * UINT64_C(1000000);
	int all = taps_settled(arg);

	while (all == 0 && pl_clock_mono_ns() < until) {
		usleep(SETTLE_LOOK_US);
		all = taps_settled(arg);
	}
	return all == 1;
}

/* ---- the port ---- */

int pl_worker_open_port(struct pl_worker *w, struct pl_port **ret, struct pl_diag *diag)
{
	struct pl_port_options options = {
		.index = w->index,
		.of = w->of,
		.with = w->source.with,
		.program = w->source.program,
		.rights = w->source.rights,
		.lanes = true,
		.v6only = w->source.v6only,
		.reader = &w->reader,
	};

	w->reader = (struct pl_port_reader){ .mark = mark_taps, .settled = settled, .arg = w };
	return w->source.open != NULL
		       ? w->source.open(w->source.open_arg, &w->source, ret, diag)
		       : pl_port_open(ret, w->source.uri, PL_PORT_RECV, &options, diag);
}

void pl_worker_set_trouble(struct pl_worker *w, int error, const char *words)
{
	pthread_mutex_lock(&w->trouble_lock);
	snprintf(w->trouble, sizeof(w->trouble), "%s", words);
	pthread_mutex_unlock(&w->trouble_lock);
	atomic_store(&w->error, error);
}

static void close_port(struct pl_worker *w)
{
	struct pl_port_stats last;

	pl_port_stats(w->port, &last);
	pl_port_stats_add(&w->gone, &last);
	/* Closing a receiving port cannot lose anything. */
	(void)pl_port_close(w->port);
	w->port = NULL;
	w->floods_told = (struct pl_floods_told){ .error = 0 };
}

void pl_worker_lost(struct pl_worker *w, int error, const char *words)
{
	pl_worker_set_trouble(w, error, words);
	atomic_fetch_add_explicit(&w->losses, 1, memory_order_relaxed);
	w->lost_ns = w->now_ns;
	pl_error("worker", "%s: lost: %s", w->uri, words);
}

void pl_worker_back(struct pl_worker *w)
{
	pl_worker_set_trouble(w, 0, "");
	pl_notice(
		"worker", "%s: back after %.1f s", w->uri, (double)(w->now_ns - w->lost_ns) * 1e-9);
}

bool pl_worker_hear_port(struct pl_worker *w, int error, const struct pl_diag *diag)
{
	const char *words = diag->text[0] != '\0' ? diag->text : strerror(error);

	switch (error) {
	case ENODATA:
		pl_notice("worker", "%s: end of file", w->uri);
		return false;
	case EBADMSG:
		pl_worker_lost(w, error, words);
		return false;
	case ENETDOWN: /* the port waits for its interface itself */
		if (atomic_load(&w->error) == 0)
			pl_worker_lost(w, error, words);
		else
			pl_worker_set_trouble(w, error, words);
		return true;
	case EAGAIN:
		if (atomic_load(&w->error) != 0)
			pl_worker_back(w);
		else
			pl_notice("worker", "%s: %s", w->uri, words);
		return true;
	default: /* the port is unusable */
		pl_worker_lost(w, error, words);
		close_port(w);
		w->pause_ns = PAUSE_MIN_NS;
		w->retry_ns = w->now_ns + w->pause_ns;
		return true;
	}
}

bool pl_worker_regain(struct pl_worker *w)
{
	struct pl_diag diag = { .text = "" };
	int r;

	if (w->now_ns < w->retry_ns)
		return true;
	r = pl_worker_open_port(w, &w->port, &diag);
	if (r == 0) {
		pl_worker_back(w);
		return true;
	}
	w->port = NULL;
	pl_worker_set_trouble(w, -r, diag.text[0] != '\0' ? diag.text : strerror(-r));
	if (r == -EPERM || r == -EACCES) {
		pl_error("worker",
			"%s: cannot be opened again without the privileges of the start; restart pathline",
			w->uri);
		return false;
	}
	w->pause_ns = w->pause_ns * 2 < PAUSE_MAX_NS ? w->pause_ns * 2 : PAUSE_MAX_NS;
	w->retry_ns = w->now_ns + w->pause_ns;
	return true;
}

/* ---- drops of the socket ---- */

uint64_t pl_worker_unseen(struct pl_worker *w)
{
	struct pl_port_stats now = { 0 };

	if (w->port != NULL)
		pl_port_stats(w->port, &now);
	return w->gone.kernel_drops + now.kernel_drops + w->gone.outages + now.outages +
	       atomic_load_explicit(&w->losses, memory_order_relaxed);
}

void pl_worker_look_floods(struct pl_worker *w)
{
	if (w->port != NULL)
		pl_floods_tell(&w->floods_told, w->port, w->uri, "worker");
}
