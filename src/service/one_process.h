/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one configuration file has a process do: collect reports, translate DTA, serve memory, show
 * the regions of others, tap interfaces, answer queries. The services are made from it and run by
 * one runtime (runtime.h).
 */
#pragma once

#include "chain/configured.h"
#include "chain/region_reader.h"
#include "marks/marks.h"
#include "memory/key_names.h"
#include "service/report_collector.h"
#include "service/standing.h"
#include "service/taps.h"

struct pl_one_process {
	struct pl_config config; /* of the parts but the collector; as it was at the start */
	struct pl_report_collector_options collector_options;
	struct pl_report_collector collector;
	struct pl_translate_configured dta;
	struct pl_translate translate;
	struct pl_memory_configured rdma;
	struct pl_memory_server memory;
	struct pl_region_readers readers;
	struct pl_taps taps;
	struct pl_standing queries;
	struct pl_marks marks;
	struct pl_taps_added marks_taps[PL_CONFIG_MARKS_MAX];
	struct pl_key_names *keys[PL_CONFIG_REGIONS_MAX]; /* of regions with writer: dta */
	struct pl_service services[PL_SERVICES_MAX];
	unsigned int n;
	bool has_queries; /* their service is among them */
};

/*
 * Makes the services of a configuration, which is taken over, always; *ret is zeroed. collector:
 * how it is read again; `changed` and `alone` are not the caller's. -EINVAL with diag, -ENOMEM.
 */
int pl_one_process_init(struct pl_one_process *ret, struct pl_config *config,
	const struct pl_report_collector_options *collector, struct pl_diag *diag);

/* Once it has run: whether something was lost that can be known. */
bool pl_one_process_lost(struct pl_one_process *p);
/* The first error of what could not be brought to its end, or 0. */
int pl_one_process_done(struct pl_one_process *p);
