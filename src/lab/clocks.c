/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes the clocks of switches from a lab's file. */
#include "lab/clocks.h"

#include <errno.h>

#include "dataplane/clock.h"
#include "lab/topology.h"

/* clang-format off */
const struct pl_conf_row pl_lab_clock_rows[] = {
	{ .key = "node", .type = PL_CONF_STRING, .offset = offsetof(struct pl_lab_clock_conf, node), .required = true, .def = "s1",
	  .help = "Name of the switch." },
	{ .key = "offset", .type = PL_CONF_STRING, .offset = offsetof(struct pl_lab_clock_conf, offset), .def = "0s", .check = pl_dp_clock_check_offset,
	  .help = "Offset of its clock from true time, such as 5ms or -5ms." },
	{ .key = "drift", .type = PL_CONF_STRING, .offset = offsetof(struct pl_lab_clock_conf, drift), .def = "0", .check = pl_dp_clock_check_drift,
	  .help = "Drift of the switch's clock in ppm, from its start on; above 0 the clock is fast." },
	{ 0 },
};
/* clang-format on */

/* Returns the index of the node, which is a switch without a clock of its own yet; -EINVAL with
 * diag. */
static int find(const struct pl_lab_topology *t, const struct pl_conf_list *conf, size_t i,
	struct pl_diag *diag)
{
	const struct pl_lab_clock_conf *clocks = conf->items;
	int at = pl_lab_find_node(t, clocks[i].node, diag);

	if (at < 0)
		return -EINVAL;
	if (t->nodes[at].kind != PL_LAB_SWITCH) {
		pl_diag_set(diag, "'%s' is no switch, and only switches have clocks of their own",
			clocks[i].node);
		return -EINVAL;
	}
	for (size_t k = 0; k < i; k++) {
		if (pl_lab_find_node(t, clocks[k].node, NULL) == at) {
			pl_diag_set(diag, "'%s' has a clock already", clocks[i].node);
			return -EINVAL;
		}
	}
	return at;
}

int pl_lab_clocks_make(struct pl_lab_topology *t, const struct pl_conf_list *conf, size_t *ret_at,
	const char **ret_key, struct pl_diag *diag)
{
	const struct pl_lab_clock_conf *clocks = conf->items;
	int r = 0;

	for (size_t i = 0; i < conf->n && r == 0; i++) {
		int at = find(t, conf, i, diag);

		*ret_at = i;
		*ret_key = "node";
		if (at < 0)
			return at;
		/* The texts were checked when the file was read. */
		r = pl_dp_clock_parse_offset(clocks[i].offset, &t->nodes[at].clock_offset_ns, diag);
		if (r == 0)
			r = pl_dp_clock_parse_drift(
				clocks[i].drift, &t->nodes[at].clock_drift_ppb, diag);
	}
	return r;
}
