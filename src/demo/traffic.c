/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulates the network of the demonstration, and sends the reports of its switches. */
#include "demo/traffic.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/thread.h"
#include "lab/simulation.h"
#include "netio/port.h"

#define SHAPE       "leaf-spine:4x2x2"
#define FLOWS       60
#define FRAME_BYTES 200
#define STEP_NS     UINT64_C(1000000)
/* Largest report: INT of four switches and the headers of the packet, with the frame around it. */
#define REPORT_MAX  2048
/* Ethernet, IPv4 without options, UDP: in front of a report of the data plane. */
#define HEADERS     (14 + 20 + 8)
/* The link that fails, and the direction in which packets queue up. */
#define FAILS       "leaf1-spine1"
#define QUEUES      "spine2>leaf4"
#define LEAKS       PL_DEMO_LEAK_FROM ">" PL_DEMO_LEAK_TO
#define LOST_SHARE  0.5
/* Time that the queue which fills holds a packet for: below the guard band of marking. */
#define QUEUE_NS    UINT64_C(200000000)
#define QUEUE_MIN   8000

enum act { LEAK, FAIL, HEAL, NARROW, WIDEN, LOSE, KEEP, SEAL, ACTS };
/* All the while a link loses a little. Thirds of the story: a link fails and comes back, a queue
 * fills, reports are lost. */
static const double times[ACTS] = { 0.05, 0.15, 0.40, 0.50, 0.65, 0.75, 0.83, 0.97 };

struct pl_demo_traffic {
	struct pl_lab_topology topology;
	struct pl_lab_simulation *simulation;
	struct pl_dp_sim *sim;
	struct pl_demo_losses *losses;
	struct pl_port *port;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	_Atomic uint64_t passed_ns;
	uint64_t start_ns, story_ns;
	/* The thread's. */
	uint64_t round;
	unsigned int next; /* act */
	uint32_t timer;
	bool lossy;
	struct pl_rng rng;
	uint64_t made, sent, lost, not_sent;
	char description[96];
	struct pl_batch batch;
	uint8_t reports[PL_BATCH_MAX][REPORT_MAX];
};

/* ---- reports ---- */

/* The kernel may take a part only; reports that it refuses are counted, never tried for ever. */
static void send_batch(struct pl_demo_traffic *t)
{
	while (t->batch.n > 0) {
		int n = pl_port_send(t->port, &t->batch, NULL);

		if (n <= 0) {
			t->not_sent += t->batch.n;
			t->batch.n = 0;
			return;
		}
		t->sent += (uint64_t)n;
		t->batch.n -= (uint32_t)n;
		memmove(t->batch.pkts, t->batch.pkts + n, t->batch.n * sizeof(t->batch.pkts[0]));
	}
}

static void collect(void *arg, const struct pl_dp_packet *pkt)
{
	struct pl_demo_traffic *t = arg;
	uint8_t *report = t->reports[t->batch.n];

	if (pkt->len < HEADERS || pkt->len - HEADERS > REPORT_MAX)
		return;
	t->made++;
	if (t->lossy && pl_rng_unit(&t->rng) < LOST_SHARE) {
		t->lost++;
		return;
	}
	memcpy(report, pkt->data + HEADERS, pkt->len - HEADERS);
	t->batch.pkts[t->batch.n++] = (struct pl_packet){ .data = report,
		.len = pkt->len - HEADERS,
		.wire_len = pkt->len - HEADERS,
		.ts_ns = pl_dp_sim_now(t->sim),
		.link = PL_LINK_UDP };
	if (t->batch.n == PL_BATCH_MAX)
		send_batch(t);
}

/* ---- the story ---- */

static void impair(struct pl_demo_traffic *t, const char *link, const char *word)
{
	(void)pl_lab_simulation_impair(t->simulation, &t->topology, link, &word, 1, NULL);
}

/* Neighbours see at once that the link is down, or up, and go round it, or by it again. */
static void set_link(struct pl_demo_traffic *t, bool down)
{
	unsigned int end;
	int link = pl_lab_find_link(&t->topology, FAILS, &end, NULL);

	if (link < 0)
		return;
	t->topology.links[link].down = down;
	impair(t, FAILS, down ? "down=yes" : "down=no");
	(void)pl_lab_simulation_reroute(t->simulation, &t->topology, NULL);
}

/* Half the rate that it has carried so far. */
static void narrow(struct pl_demo_traffic *t)
{
	unsigned int end, node, port, dp_link, ends;
	int link = pl_lab_find_directions(&t->topology, QUEUES, &ends, NULL);
	uint64_t bytes, ns = pl_dp_sim_now(t->sim) - t->start_ns, rate, queue;
	char word[48];

	if (link < 0 || ns == 0)
		return;
	end = ends == 1 ? 0 : 1;
	pl_lab_simulation_sender(t->simulation, (unsigned int)link, end, &node, &port, &dp_link);
	bytes = pl_dp_link_account(pl_dp_sim_link_at(t->sim, dp_link))->in_bytes;
	rate = (uint64_t)((double)bytes * 8e9 / (double)ns / 2);
	rate = rate > 8000 ? rate : 8000;
	queue = (uint64_t)((double)rate / 8 * QUEUE_NS / 1e9);
	snprintf(word, sizeof(word), "queue=%lluB",
		(unsigned long long)(queue > QUEUE_MIN ? queue : QUEUE_MIN));
	impair(t, QUEUES, word);
	snprintf(word, sizeof(word), "rate=%llu", (unsigned long long)rate);
	impair(t, QUEUES, word);
}

static uint64_t time_of(const struct pl_demo_traffic *t)
{
	return t->start_ns + t->round * t->story_ns +
	       (uint64_t)(times[t->next % ACTS] * (double)t->story_ns);
}

static void tell(void *arg)
{
	struct pl_demo_traffic *t = arg;

	switch ((enum act)t->next) {
	case LEAK:
		impair(t, LEAKS, "loss=0.01");
		pl_demo_losses_leak(t->losses, pl_dp_sim_now(t->sim));
		break;
	case SEAL:
		impair(t, LEAKS, "loss=0");
		break;
	case FAIL:
	case HEAL:
		set_link(t, t->next == FAIL);
		break;
	case NARROW:
		narrow(t);
		break;
	case WIDEN:
		impair(t, QUEUES, "rate=0");
		impair(t, QUEUES, "queue=256KiB");
		break;
	case LOSE:
	case KEEP:
	case ACTS:
		t->lossy = t->next == LOSE;
		break;
	}
	t->next = t->next + 1 == ACTS ? 0 : t->next + 1;
	t->round += t->next == 0;
	pl_dp_sim_arm(t->sim, t->timer, time_of(t));
}

/* ---- life ---- */

static bool is_stopped(const struct pl_demo_traffic *t)
{
	return atomic_load_explicit(&t->stop, memory_order_relaxed);
}

/* In steps: who is behind does not have to come to the end of it before he stops. */
static void *send_loop(void *arg)
{
	struct pl_demo_traffic *t = arg;
	uint64_t began_ns = pl_clock_mono_ns();

	while (!is_stopped(t)) {
		uint64_t until_ns = t->start_ns + (pl_clock_mono_ns() - began_ns);

		while (pl_dp_sim_now(t->sim) + STEP_NS <= until_ns && !is_stopped(t)) {
			pl_dp_sim_run(t->sim, pl_dp_sim_now(t->sim) + STEP_NS);
			send_batch(t);
			atomic_store_explicit(&t->passed_ns, pl_dp_sim_now(t->sim) - t->start_ns,
				memory_order_relaxed);
		}
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return NULL;
}

static void true_path(void *arg, const struct pl_path *path, const struct pl_hop *hops)
{
	struct pl_demo_traffic *t = arg;

	pl_demo_losses_path(t->losses, path, hops);
}

static int make_network(struct pl_demo_traffic *t, const struct pl_demo_traffic_options *options,
	struct pl_diag *diag)
{
	const struct pl_lab_simulation_cfg cfg = { .seed = options->seed,
		.start_ns = t->start_ns,
		.duration_ns = PL_LAB_FOR_EVER_NS,
		.rate = options->rate,
		.flows = FLOWS,
		.bytes = FRAME_BYTES,
		.truth = { .path = true_path, .arg = t },
		.collect = collect,
		.arg = t };
	const struct pl_demo_losses_options losses = { PL_DEMO_LEAK_FROM, PL_DEMO_LEAK_TO };
	int r = pl_lab_topology_load(&t->topology, SHAPE, diag);

	if (r == 0)
		r = pl_lab_simulation_new(&t->simulation, &t->topology, &cfg, diag);
	if (r < 0)
		return r;
	t->sim = pl_lab_simulation_sim(t->simulation);
	r = pl_demo_losses_new(&t->losses, t->simulation, &t->topology, &losses, diag);
	if (r == 0)
		r = pl_dp_sim_timer(t->sim, tell, t, &t->timer);
	if (r == 0)
		pl_dp_sim_arm(t->sim, t->timer, time_of(t));
	return r;
}

int pl_demo_traffic_start(struct pl_demo_traffic **ret,
	const struct pl_demo_traffic_options *options, struct pl_diag *diag)
{
	struct pl_demo_traffic *t = calloc(1, sizeof(*t));
	int r;

	if (t == NULL)
		return -ENOMEM;
	t->start_ns = pl_clock_real_ns();
	t->story_ns = options->story_ns;
	pl_rng_seed(&t->rng, options->seed);
	snprintf(t->description, sizeof(t->description),
		"4 leaves, 2 spines, 8 hosts, %d flows; INT 2.1 in reports 2.0", FLOWS);
	r = make_network(t, options, diag);
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
	if (t->running) {
		atomic_store_explicit(&t->stop, true, memory_order_relaxed);
		pthread_join(t->thread, NULL);
		t->running = false;
	}
	*ret = (struct pl_demo_account){
		.made = t->made,
		.sent = t->sent,
		.lost_on_purpose = t->lost,
		.not_sent = t->not_sent,
	};
}

void pl_demo_traffic_free(struct pl_demo_traffic *t)
{
	struct pl_demo_account ignored;

	if (t == NULL)
		return;
	pl_demo_traffic_stop(t, &ignored);
	if (t->port != NULL)
		pl_port_close(t->port);
	pl_demo_losses_free(t->losses);
	pl_lab_simulation_free(t->simulation);
	pl_lab_topology_done(&t->topology);
	free(t);
}

const char *pl_demo_traffic_describe(const struct pl_demo_traffic *traffic)
{
	return traffic->description;
}

uint64_t pl_demo_traffic_passed_ns(const struct pl_demo_traffic *traffic)
{
	return atomic_load_explicit(&traffic->passed_ns, memory_order_relaxed);
}

void pl_demo_traffic_losses(struct pl_demo_traffic *t, struct pl_demo_losses_sum *ret)
{
	pl_demo_losses_read(t->losses, ret);
}
