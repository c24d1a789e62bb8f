/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector of reports as a service: a pipeline with its web pages (daemon.h), which shows the
 * other services of the process too. It goes first.
 */
#pragma once

#include "runtime/runtime.h"
#include "service/daemon.h"

struct pl_report_collector_options {
	const char *file;  /* the configuration's; NULL: none */
	const char *named; /* what a reload reads, for people; NULL: nothing */
	/* Reads the configuration anew. As pl_config_load. */
	int (*load)(void *arg, struct pl_config *ret, const struct pl_config *now,
		struct pl_diag *diag);
	/* What else of it is changed by a reload, before the collector: negative errno with diag
	 * refuses all of it. NULL: nothing. */
	int (*changed)(void *arg, const struct pl_config *config, struct pl_diag *diag);
	void *changed_arg;
	/* The last chance to add an output, when all services are open. NULL: nothing. */
	int (*ready)(void *arg, struct pl_pipeline *pipeline, struct pl_diag *diag);
	void *ready_arg;
	struct pl_marks *marks; /* shown at /api/v1/segments; NULL: there are none */
	struct pl_taps *taps;   /* shown at /api/v1/tapped; NULL: there are none */
	bool alone;             /* there is no other service */
	void *arg;              /* of load */
};

struct pl_report_collector {
	const struct pl_report_collector_options *o;
	struct pl_config config; /* until it is open, when the pipeline has it */
	struct pl_daemon daemon;
	bool began;                  /* it was open, and all after it */
	uint64_t reports, status_ns; /* as the status told last */
	uint64_t left;               /* entries that were not delivered in the end */
};

extern const struct pl_service_ops pl_report_collector_service;

void pl_report_collector_close(struct pl_report_collector *c);
