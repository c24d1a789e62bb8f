/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs of type dta: records into telemetry memory. */
#include <errno.h>

#include "base/num.h"
#include "export/dta_out.h"
#include "memory/region.h"
#include "pipeline/kind.h"

/* Upper bound of memory of a region's translator, apart from lists. */
#define REGION_BYTES (UINT64_C(8) << 20)

/* Returns the number of the region, 0 without one. The configuration was checked. */
static uint64_t store_of(const struct pl_config_output *o)
{
	uint64_t store = 0;

	if (o->to != NULL && o->dta.region != NULL)
		(void)pl_parse_u64(o->dta.region, &store);
	return store;
}

static void map_options(const struct pl_config_output *o, struct pl_dta_map_options *ret)
{
	*ret = (struct pl_dta_map_options){
		.op = (enum pl_dta_op)(o->dta.primitive + PL_DTA_KEY_WRITE),
		.record = (enum pl_record_kind)o->dta.record,
		.key = (const char *const *)o->dta.key.items,
		.n_key = o->dta.key.n,
		.key_form = (enum pl_key_form)o->dta.key_form,
		.value = (const char *const *)o->dta.value.items,
		.n_value = o->dta.value.n,
		.big_endian = o->dta.byte_order == 1,
		.immediate = o->dta.immediate,
		.store = (uint16_t)store_of(o),
		.list = (uint32_t)o->dta.list,
	};
}

/* Takes paths with their hops, or events, depending on the record. */
static void resolve(struct pl_config_output *o)
{
	const bool event = o->dta.record == PL_KIND_EVENT;

	o->paths = o->paths_word == 0 ? !event : o->paths;
	o->events = o->events_word == 0 ? event : o->events;
}

static int check_target(const struct pl_config_output *o, struct pl_diag *diag)
{
	uint64_t store;

	if (o->to == NULL && o->dta.region == NULL)
		pl_diag_set(diag, "to is missing, or region: where the reports go");
	else if (o->to != NULL && o->dta.region != NULL &&
		 (pl_parse_u64(o->dta.region, &store) < 0 || store > UINT16_MAX))
		pl_diag_set(diag, "with to, region is the number of a region at the translator");
	else if (o->to == NULL && o->dta.immediate)
		pl_diag_set(diag, "immediate needs to: readers of a region here are not woken");
	else if (o->paths != (o->dta.record != PL_KIND_EVENT) ||
		 o->events != (o->dta.record == PL_KIND_EVENT))
		pl_diag_set(diag, "paths and events follow from record; remove them");
	else if (o->where != NULL && o->dta.record == PL_KIND_EVENT)
		pl_diag_set(diag, "where selects reports; it does not apply to record: event");
	else
		return 0;
	return -EINVAL;
}

static int check(const struct pl_config_output *o, struct pl_diag *diag)
{
	struct pl_dta_map_options options;
	struct pl_dta_map map;
	int r = pl_output_check_to(o, diag);

	if (r == 0 && o->to != NULL)
		r = pl_dta_to_udp_check(o->to, diag);
	if (r == 0)
		r = check_target(o, diag);
	map_options(o, &options);
	return r < 0 ? r : pl_dta_map_init(&map, &options, diag);
}

static int open_out(struct pl_export **ret, const struct pl_config_output *o, uint64_t now_ns,
	struct pl_diag *diag)
{
	struct pl_dta_map_options options;
	struct pl_dta_to *to = NULL;
	struct pl_dta_map map;
	int r;

	(void)now_ns;
	map_options(o, &options);
	r = pl_dta_map_init(&map, &options, diag);
	if (r < 0)
		return r;
	if (o->to != NULL) {
		r = pl_dta_to_udp(&to, o->to, (uint32_t)o->dta.ring, o->dta.sequenced, diag);
	} else {
		/* A file truncated by others gives an error instead of SIGBUS. */
		r = pl_region_guard();
		if (r == 0)
			r = pl_dta_to_region(&to, o->dta.path, &map, o->keep.sync_ns, diag);
	}
	return r < 0 ? r : pl_dta_out_open(ret, &options, to, diag);
}

static uint64_t memory(const struct pl_config_output *o)
{
	return o->to != NULL ? o->dta.ring * 1500 : REGION_BYTES;
}

const struct pl_output_kind pl_output_kind_dta = {
	.paths = PL_MAY,
	.events = PL_MAY,
	.series = PL_CANNOT,
	.to = true,
	.dta = true,
	.resolve = resolve,
	.check = check,
	.open = open_out,
	.memory = memory,
};
