/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/demo_traffic.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "gen/gen.h"
#include "netio/port.h"

enum { FLOWS = 60, SPINES = 2, LEAVES = 4, QUEUE_PEAK = 40000 };

struct pl_demo_traffic {
	struct pl_gen *gen;
	struct pl_port *port;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	uint64_t sent, not_sent; /* the thread's */
	uint64_t model_start_ns;
	char description[96];
	struct pl_batch batch;
};

/* The kernel may take a part only; what it refuses is counted, never tried for ever. */
static void send_batch(struct pl_demo_traffic *t)
{
	while (t->batch.n > 0) {
		int n = pl_port_send(t->port, &t->batch, NULL);

		if (n <= 0) {
			t->not_sent += t->batch.n;
			return;
		}
		t->sent += (uint64_t)n;
		t->batch.n -= (uint32_t)n;
		memmove(t->batch.pkts, t->batch.pkts + n, t->batch.n * sizeof(t->batch.pkts[0]));
	}
}

static void *send_loop(void *arg)
{
	struct pl_demo_traffic *t = arg;
	uint64_t began_ns = pl_clock_mono_ns();

	while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
		uint64_t model_ns = t->model_start_ns + (pl_clock_mono_ns() - began_ns);
		int n;

		while ((n = pl_gen_next(t->gen, model_ns, &t->batch)) > 0 &&
			!atomic_load_explicit(&t->stop, memory_order_relaxed))
			send_batch(t);
		/* A batch drawn but not sent before the stop belongs to the account. */
		if (n > 0)
			send_batch(t);
		if (n < 0)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return NULL;
}

/* Thirds of the story: a link fails and comes back, a queue fills, reports are lost. */
static void tell(struct pl_gen_cfg *cfg, uint64_t story_ns)
{
	static const struct {
		enum pl_gen_event_kind kind;
		double at, length, value;
	} acts[] = {
		{ PL_GEN_EVENT_PATH, 0.15, 0.25, 0 },
		{ PL_GEN_EVENT_QUEUE, 0.50, 0.15, QUEUE_PEAK },
		{ PL_GEN_EVENT_LOSS, 0.75, 0.08, 0.5 },
	};

	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		cfg->events[cfg->n_events++] = (struct pl_gen_event){
			.kind = acts[i].kind,
			.at_ns = (uint64_t)(acts[i].at * (double)story_ns),
			.duration_ns = (uint64_t)(acts[i].length * (double)story_ns),
			.every_ns = story_ns,
			.queue = -1,
			.value = acts[i].value,
		};
}

int pl_demo_traffic_start(struct pl_demo_traffic **ret,
	const struct pl_demo_traffic_options *options, struct pl_diag *diag)
{
	struct pl_gen_cfg cfg = {
		.seed = options->seed,
		.rate = options->rate,
		.flows = FLOWS,
		.start_ns = pl_clock_real_ns(),
		.udp = true,
	};
	struct pl_demo_traffic *t = calloc(1, sizeof(*t));
	char topology[32];
	int r;

	if (t == NULL)
		return -ENOMEM;
	snprintf(topology, sizeof(topology), "leaf-spine:%dx%d", LEAVES, SPINES);
	snprintf(t->description, sizeof(t->description),
		"%d leaves, %d spines, %d flows; INT 2.1 in telemetry reports 2.0", LEAVES, SPINES,
		FLOWS);
	cfg.topology = topology;
	t->model_start_ns = cfg.start_ns;
	tell(&cfg, options->story_ns);
	r = pl_gen_new(&t->gen, &cfg, diag);
	if (r < 0)
		goto fail;
	r = pl_port_open(&t->port, options->uri, PL_PORT_SEND, NULL, diag);
	if (r < 0)
		goto fail;
	r = pl_thread_start(&t->thread, "pl-traffic", send_loop, t);
	if (r < 0)
		goto fail;
	t->running = true;
	*ret = t;
	return 0;
fail:
	pl_demo_traffic_free(t);
	return r;
}

void pl_demo_traffic_stop(struct pl_demo_traffic *t, struct pl_demo_account *ret)
{
	const struct pl_gen_counters *c = pl_gen_counters(t->gen);

	if (t->running) {
		atomic_store_explicit(&t->stop, true, memory_order_relaxed);
		pthread_join(t->thread, NULL);
		t->running = false;
	}
	*ret = (struct pl_demo_account){
		.made = c->packets + c->lost,
		.sent = t->sent,
		.lost_on_purpose = c->lost,
		.not_sent = t->not_sent,
	};
}

void pl_demo_traffic_free(struct pl_demo_traffic *t)
{
	struct pl_demo_account ignored;

	if (t == NULL)
		return;
	if (t->gen != NULL)
		pl_demo_traffic_stop(t, &ignored);
	if (t->port != NULL)
		pl_port_close(t->port);
	pl_gen_free(t->gen);
	free(t);
}

const char *pl_demo_traffic_describe(const struct pl_demo_traffic *traffic)
{
	return traffic->description;
}
