/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector of reports as a service: a pipeline with its web pages (daemon.h), which show the
 * other services of the process as well. It must be the first service.
 */
#pragma once

#include "runtime/runtime.h"
#include "service/daemon.h"

struct pl_report_collector_options {
	const char *file;  /* the configuration file; NULL: none */
	const char *named; /* name, for messages, of what a reload reads; NULL: nothing */
	/* Loads the configuration again, as pl_config_load. */
	int (*load)(void *arg, struct pl_config *ret, const struct pl_config *now,
		struct pl_diag *diag);
	/* Changes the other services at a reload, before the collector. Negative errno with diag
	 * refuses the reload. NULL: none. */
	int (*changed)(void *arg, const struct pl_config *config, struct pl_diag *diag);
	void *changed_arg;
	/* Called when all services are open: the last chance to add an output. NULL: unused. */
	int (*ready)(void *arg, struct pl_pipeline *pipeline, struct pl_diag *diag);
	void *ready_arg;
	struct pl_marks *marks; /* shown at /api/v1/segments; NULL: none */
	struct pl_taps *taps;   /* shown at /api/v1/tapped; NULL: none */
	bool alone;             /* there are no other services */
	void *arg;              /* argument of load */
};

struct pl_report_collector {
	const struct pl_report_collector_options *o;
	struct pl_config config; /* until it is open; then the pipeline owns it */
	struct pl_daemon daemon;
	bool began;                  /* opened, with all services after it */
	uint64_t reports, status_ns; /* at the time that the last status is of */
	uint64_t look_ns;            /* time of the next check of the status */
	uint64_t left;               /* entries not delivered at the end */
};

extern const struct pl_service_ops pl_report_collector_service;

void pl_report_collector_close(struct pl_report_collector *c);
