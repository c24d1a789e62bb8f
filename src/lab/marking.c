/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the alternate marking of a lab's file. */
#include "lab/marking.h"

#include <errno.h>
#include <stdio.h>

#include "mark/bits.h"
#include "mark/guard.h"

const char *const pl_lab_marking_methods[] = {
	"none",
#define PL_MARK_METHOD(number, id, name, help) [number] = (name),
#include "record/fields.def"
	[PL_MARK_METHOD_MAX] = NULL,
};
const char *const pl_lab_marking_bys[] = { "flow", "hosts", "none", NULL };

static int check_bits(const struct pl_lab_marking_conf *c, bool with_int, struct pl_diag *diag)
{
	struct pl_mark_where where;
	int r = pl_mark_where_parse(
		&where, c->method, (const char *const *)c->bits.items, c->bits.n, diag);

	if (r == 0)
		r = pl_mark_where_is_written(&where, diag);
	if (r < 0)
		return r;
	if (where.colour.carrier == PL_MARK_AT_OPTION) {
		pl_diag_set(diag, "a switch can mark bits of the IP header, but no option");
		return -EINVAL;
	}
	if (!with_int || (where.colour.carrier == PL_MARK_AT_RESERVED && where.second.carrier == 0))
		return 0;
	pl_diag_set(diag, "INT uses the DSCP: mark with ipv4-reserved, or use \"telemetry: none\"");
	return -EINVAL;
}

int pl_lab_marking_make(struct pl_lab_marking *ret, const struct pl_lab_marking_conf *conf,
	bool with_int, const char **ret_key, struct pl_diag *diag)
{
	const struct pl_mark_spread spread = { conf->clock_error_ns, conf->delay_ns,
		conf->deviation_ns };
	char *const *bits = conf->bits.items;
	uint64_t guard;

	*ret = (struct pl_lab_marking){ .method = conf->method,
		.period_ns = conf->period_ns,
		.by = conf->by,
		.clock_error_ns = spread.clock_ns,
		.delay_ns = spread.delay_ns,
		.deviation_ns = spread.deviation_ns };
	if (conf->method == 0)
		return 0;
	*ret_key = "period";
	if (pl_mark_guard_check(&guard, conf->method, conf->period_ns, &spread, diag) < 0)
		return -EINVAL;
	*ret_key = "bits";
	if (check_bits(conf, with_int, diag) < 0)
		return -EINVAL;
	for (size_t i = 0; i < conf->bits.n && i < 2; i++)
		snprintf(ret->bits[i], sizeof(ret->bits[i]), "%s", bits[i]);
	return 0;
}
