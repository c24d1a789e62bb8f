/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All services that one configuration file asks for: collecting reports, translating DTA, serving
 * memory, showing the regions of others, taps, queries and marking domains. They are made from the
 * configuration and run by one runtime (runtime.h).
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
	struct pl_config config; /* as at the start, for all parts but the collector */
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
	struct pl_key_names *keys[PL_CONFIG_REGIONS_MAX]; /* keys of regions with writer: dta */
	struct pl_service services[PL_SERVICES_MAX];
	unsigned int n;
	bool has_queries; /* the service for queries is among them */
};

/*
 * Makes the services of a configuration, which is always taken over; *ret is zeroed. collector: how
 * it is read again; `changed` and `alone` are set here. Returns -EINVAL with diag, -ENOMEM.
 */
int pl_one_process_init(struct pl_one_process *ret, struct pl_config *config,
	const struct pl_report_collector_options *collector, struct pl_diag *diag);

/* Returns, after the run, whether any service is known to have lost something. */
bool pl_one_process_lost(struct pl_one_process *p);
/* Closes everything. Returns the first error of a region that could not be completed, or 0. */
int pl_one_process_done(struct pl_one_process *p);
