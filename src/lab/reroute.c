/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces the routes of a simulation's switches. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/program.h"
#include "dataplane/sim_switch.h"
#include "lab/program.h"
#include "lab/simulation.h"

#define TABLE "routes"

/* Adds missing groups. Unused groups stay: they may be selected again. */
static int add_groups(
	struct pl_dp_pipeline *p, const struct pl_conf_list *groups, struct pl_diag *diag)
{
	const struct pl_dp_conf_group *g = groups->items;
	int r = 0;

	for (size_t i = 0; i < groups->n && r == 0; i++) {
		char *const *members = g[i].members.items;

		if (pl_dp_pipeline_has_group(p, g[i].name))
			continue;
		r = pl_dp_pipeline_group(p, g[i].name, diag);
		for (size_t k = 0; k < g[i].members.n && r == 0; k++)
			r = pl_dp_pipeline_member(p, g[i].name, members[k], diag);
	}
	return r;
}

static int replace_entries(
	struct pl_dp_pipeline *p, const struct pl_conf_list *tables, struct pl_diag *diag)
{
	const struct pl_dp_conf_table *t = tables->items;
	struct pl_dp_change *changes;
	char *const *entries;
	size_t i = 0, bad;
	int r;

	while (i < tables->n && strcmp(t[i].name, TABLE) != 0)
		i++;
	if (i == tables->n)
		return -EINVAL;
	changes = calloc(t[i].entries.n + 1, sizeof(*changes));
	if (changes == NULL)
		return -ENOMEM;
	changes[0] = (struct pl_dp_change){ .kind = PL_DP_CLEAR, .table = TABLE };
	entries = t[i].entries.items;
	for (size_t k = 0; k < t[i].entries.n; k++)
		changes[1 + k] = (struct pl_dp_change){ PL_DP_ADD, TABLE, entries[k] };
	r = pl_dp_pipeline_change(p, changes, t[i].entries.n + 1, &bad, diag);
	free(changes);
	return r;
}

static int reroute_switch(struct pl_dp_pipeline *pipeline, const struct pl_lab_program *as,
	unsigned int node, struct pl_diag *diag)
{
	struct pl_dp_program program;
	struct pl_buf text;
	int r;

	pl_buf_init(&text);
	r = pl_lab_program_text(as, node, &text);
	if (r == 0)
		r = pl_dp_program_parse(
			&program, as->t->nodes[node].name, text.data, text.len, diag);
	pl_buf_done(&text);
	if (r != 0)
		return r;
	r = add_groups(pipeline, &program.conf.groups, diag);
	if (r == 0)
		r = replace_entries(pipeline, &program.conf.tables, diag);
	pl_dp_program_done(&program);
	return r;
}

int pl_lab_simulation_reroute(
	struct pl_lab_simulation *s, const struct pl_lab_topology *t, struct pl_diag *diag)
{
	uint32_t *distances = calloc((size_t)t->n_nodes * t->n_nodes, sizeof(*distances));
	const struct pl_lab_program as = { .t = t, .distances = distances };
	int r = distances == NULL ? -ENOMEM : 0;

	for (unsigned int i = 0; i < t->n_nodes && r == 0; i++)
		pl_lab_distances(t, i, distances + (size_t)i * t->n_nodes);
	for (unsigned int i = 0; i < t->n_nodes && r == 0; i++) {
		struct pl_dp_sim_switch *w = pl_lab_simulation_switch(s, i);

		if (w != NULL)
			r = reroute_switch(pl_dp_sim_switch_pipeline(w), &as, i, diag);
	}
	free(distances);
	return r;
}
