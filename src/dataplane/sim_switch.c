/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a pipeline as a node of a simulation. */
#include "dataplane/sim_switch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

struct pl_dp_sim_switch {
	struct pl_dp_sim *sim;
	struct pl_dp_pipeline *pipeline;
	unsigned int node;
	uint32_t timer; /* for work of the pipeline without packets */
	struct pl_dp_sim_blocks blocks;
};

static void ingress(void *arg, struct pl_dp_packet *pkt)
{
	struct pl_dp_sim_switch *w = arg;

	pl_dp_pipeline_ingress(w->pipeline, &pkt, 1);
}

static void egress(void *arg, struct pl_dp_packet *pkt)
{
	struct pl_dp_sim_switch *w = arg;

	pl_dp_pipeline_egress(w->pipeline, &pkt, 1);
}

static void refused(void *arg, struct pl_dp_packet *pkt)
{
	struct pl_dp_sim_switch *w = arg;

	pl_dp_pipeline_dropped(w->pipeline, pkt, pl_dp_sim_node_ns(w->sim, w->node));
}

static void out(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	struct pl_dp_sim_switch *w = arg;

	if (stage == PL_DP_INGRESS)
		pl_dp_sim_out(w->sim, w->node, pkt);
	else
		pl_dp_sim_wire(w->sim, w->node, pkt);
}

static void dropped(void *arg, const struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	struct pl_dp_sim_switch *w = arg;

	(void)stage;
	pl_dp_sim_dropped(w->sim, w->node, pkt);
}

static void answered(void *arg, const struct pl_dp_packet *pkt)
{
	struct pl_dp_sim_switch *w = arg;

	pl_dp_sim_arrived(w->sim, pkt);
}

static void block(void *arg, const struct pl_mark128 *record)
{
	struct pl_dp_sim_switch *w = arg;

	if (w->blocks.block != NULL)
		w->blocks.block(w->blocks.arg, record);
}

void pl_dp_sim_switch_blocks(struct pl_dp_sim_switch *w, const struct pl_dp_sim_blocks *blocks)
{
	w->blocks = *blocks;
}

/* Timer. The pipeline's times are by the node's clock, which drifts and is set: the next true time
 * is computed again each time. */
static void on_time(void *arg)
{
	struct pl_dp_sim_switch *w = arg;
	const uint64_t now = pl_dp_sim_now(w->sim), shown = pl_dp_sim_node_ns(w->sim, w->node);
	uint64_t due = pl_dp_pipeline_due(w->pipeline);

	if (due <= shown) {
		pl_dp_pipeline_turn(w->pipeline, shown);
		due = pl_dp_pipeline_due(w->pipeline);
	}
	if (due != UINT64_MAX)
		due = now + (due > shown ? due - shown : 1);
	pl_dp_sim_arm(w->sim, w->timer, due);
}

static int add_timer(struct pl_dp_sim_switch *w)
{
	int r;

	if (pl_dp_pipeline_due(w->pipeline) == UINT64_MAX)
		return 0;
	r = pl_dp_sim_timer(w->sim, on_time, w, &w->timer);
	if (r == 0)
		pl_dp_sim_arm(w->sim, w->timer, pl_dp_sim_now(w->sim));
	return r;
}

int pl_dp_sim_switch_new(struct pl_dp_sim_switch **ret, struct pl_dp_sim *sim,
	const struct pl_dp_program *program, const struct pl_dp_port_cfg *ports,
	const struct pl_dp_extern *const *externs, struct pl_diag *diag)
{
	struct pl_dp_sim_switch *w = calloc(1, sizeof(*w));
	const struct pl_dp_conf_port *port = program->conf.ports.items;
	struct pl_dp_sim_node_cfg node = {
		.id = (uint32_t)program->conf.id,
		.ops = { .ingress = ingress, .egress = egress, .refused = refused, .arg = w },
	};
	struct pl_dp_pipeline_options options = {
		.pool = pl_dp_sim_pool(sim),
		.ops = { .out = out,
			.dropped = dropped,
			.answered = answered,
			.block = block,
			.arg = w },
		/* not 0, which means a random one */
		.seed = pl_hash_mix(pl_dp_sim_seed(sim), program->conf.id) | 1,
		.externs = externs,
	};
	int r;

	if (w == NULL)
		return -ENOMEM;
	w->sim = sim;
	r = pl_dp_program_build(program, &options, NULL, &w->pipeline, diag);
	pl_dp_program_clock(program, pl_dp_sim_now(sim), &node.clock);
	if (r == 0)
		r = pl_dp_sim_node(sim, &node, &w->node);
	for (size_t i = 0; r == 0 && i < program->conf.ports.n; i++) {
		r = pl_dp_sim_port(sim, w->node, (unsigned int)port[i].number, ports, diag);
	}
	if (r == 0)
		r = add_timer(w);
	if (r != 0) {
		pl_dp_sim_switch_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void pl_dp_sim_switch_free(struct pl_dp_sim_switch *w)
{
	if (w == NULL)
		return;
	pl_dp_pipeline_free(w->pipeline);
	free(w);
}

unsigned int pl_dp_sim_switch_node(const struct pl_dp_sim_switch *w)
{
	return w->node;
}

struct pl_dp_pipeline *pl_dp_sim_switch_pipeline(struct pl_dp_sim_switch *w)
{
	return w->pipeline;
}
