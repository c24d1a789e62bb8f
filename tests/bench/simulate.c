/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated leaf-spine of 14 nodes (4 leaves, 2 spines, 8 hosts), 64 flows of Poisson traffic
 * between all hosts, 20,000 packets per simulated second in all, frames of 200 bytes over links of
 * 10 Gb/s: parsed and routed by tables in every switch, queued, delayed. One thread; processor time
 * for each packet that a host sends. The ceiling makes as many steps of an agenda of as many things,
 * and nothing else.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/complain.h"
#include "base/rng.h"
#include "dataplane/agenda.h"
#include "dataplane/test_fabric.h"
#include "dataplane/traffic.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"

enum { LEAVES = 4, SPINES = 2, HOSTS = 2, FLOWS = 64, RATE = 20000 };

/* Simulated time between two looks at the clock: 200 packets. */
#define TURN_NS UINT64_C(10000000)
/* Steps for a packet, and things of the agenda, as the network has them. */
#define THINGS  200

struct bench {
	struct pl_dp_sim *sim;
	struct pl_dp_traffic *traffic;
	struct pl_dp_fabric fabric;
	struct pl_dp_agenda agenda;
	struct pl_rng rng;
	double steps; /* of the simulation, for each packet */
	uint64_t records;
};

static void path(void *arg, const struct pl_path *p, const struct pl_hop *hops)
{
	struct bench *b = arg;

	for (unsigned int i = 0; i < p->hop_count; i++)
		b->records += hops[i].index;
	b->records++;
}

static void event(void *arg, const struct pl_event *e)
{
	struct bench *b = arg;

	b->records += e->event;
}

static int simulate(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct bench *b = arg;
	const uint64_t start = pl_cpu_thread_ns(), sent = pl_dp_sim_account(b->sim)->sent,
		       events = pl_dp_sim_account(b->sim)->events;

	do {
		pl_dp_sim_run(b->sim, pl_dp_sim_now(b->sim) + TURN_NS);
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	ret->items = pl_dp_sim_account(b->sim)->sent - sent;
	b->steps = (double)(pl_dp_sim_account(b->sim)->events - events) / (double)ret->items;
	return 0;
}

static int steps(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct bench *b = arg;
	const uint64_t start = pl_cpu_thread_ns();
	const uint64_t n = (uint64_t)(b->steps * 200);
	uint32_t thing = 0;

	ret->items = 0;
	do {
		for (uint64_t i = 0; i < n; i++) {
			uint64_t at = pl_dp_agenda_first(&b->agenda, &thing);

			pl_dp_agenda_set(&b->agenda, thing, at + 1 + pl_rng_below(&b->rng, 100000));
		}
		ret->items += 200;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static int add_flows(struct bench *b, struct pl_diag *diag)
{
	uint32_t flow;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < FLOWS; i++) {
		const unsigned int from = i % 8, to = (from + 1 + i / 8 % 7) % 8;
		struct pl_dp_flow_cfg cfg = { .pattern = PL_DP_POISSON,
			.from = b->fabric.host[from / HOSTS][from % HOSTS],
			.to = b->fabric.host[to / HOSTS][to % HOSTS],
			.bytes = 200,
			.rate = (double)RATE / FLOWS };

		cfg.tuple = (struct pl_flow){
			.src = pl_dp_fabric_addr(from / HOSTS + 1, from % HOSTS + 1),
			.dst = pl_dp_fabric_addr(to / HOSTS + 1, to % HOSTS + 1),
			.sport = (uint16_t)(30000 + i),
			.dport = 5000,
			.proto = PL_IP_UDP,
			.have = PL_FLOW_PORTS,
		};
		pl_dp_fabric_mac(cfg.from_mac, from / HOSTS + 1, from % HOSTS + 1);
		pl_dp_fabric_mac(cfg.to_mac, to / HOSTS + 1, to % HOSTS + 1);
		r = pl_dp_traffic_add(b->traffic, &cfg, &flow, diag);
	}
	return r;
}

static int add_things(struct bench *b)
{
	uint32_t thing;

	pl_rng_seed(&b->rng, 1);
	for (unsigned int i = 0; i < THINGS; i++) {
		if (pl_dp_agenda_add(&b->agenda, &thing) != 0)
			return -ENOMEM;
		pl_dp_agenda_set(&b->agenda, thing, pl_rng_below(&b->rng, 100000));
	}
	return 0;
}

static int one(struct pl_bench_ctx *ctx, const char *name, bool truth)
{
	static const struct pl_dp_port_cfg port = { .n_classes = 1,
		.rate_bps = UINT64_C(10000000000) };
	const struct pl_dp_fabric_cfg fabric = { .leaves = LEAVES,
		.spines = SPINES,
		.hosts = HOSTS,
		.host_ports = port,
		.leaf_ports = port,
		.spine_ports = port,
		.link = { .delay_ns = 2000 } };
	struct bench b = { .steps = 10 };
	struct pl_dp_sim_cfg cfg = { .seed = 1 };
	const struct pl_bench_case c = { .name = name,
		.ceiling_name = "the agenda's steps only",
		.subject = simulate,
		.ceiling = steps,
		.warm_items = RATE,
		.arg = &b };
	struct pl_diag diag = { .text = "" };
	int r;

	if (!pl_bench_wanted(ctx, name))
		return 0;
	if (truth)
		cfg.truth = (struct pl_dp_truth_ops){ path, event, &b };
	r = pl_dp_sim_new(&b.sim, &cfg);
	if (r == 0)
		r = pl_dp_fabric_init(&b.fabric, b.sim, &fabric, &diag);
	if (r == 0)
		r = pl_dp_traffic_new(&b.traffic, b.sim, 1);
	if (r == 0)
		r = add_flows(&b, &diag);
	if (r == 0)
		r = add_things(&b);
	if (r != 0)
		pl_complain("%s: the network cannot be made: %s", name,
			diag.text[0] != '\0' ? diag.text : strerror(-r));
	else
		r = pl_bench_compare(ctx, &c);
	pl_dp_agenda_done(&b.agenda);
	pl_dp_traffic_free(b.traffic);
	pl_dp_fabric_done(&b.fabric);
	pl_dp_sim_free(b.sim);
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	int r = one(ctx, "simulate/leaf-spine", false);

	return r == 0 ? one(ctx, "simulate/leaf-spine-truth", true) : r;
}

const struct pl_bench pl_bench_simulate = {
	.name = "simulate",
	.summary =
		"a simulated leaf-spine of 14 nodes, packets sent by its hosts; ceiling: the steps of its agenda only",
	.run = run,
};
