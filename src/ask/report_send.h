/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends one DTA report, or many that go on from it, to a translator, and waits for what it requests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dta/reporter.h"

#define PL_REPORT_HOPS_MAX 31u

/* A key or a value: whose number goes up from report to report when it is stepped. */
struct pl_report_item {
	uint8_t *bytes;
	size_t n;
	bool number, little; /* bytes are a number; least significant byte first */
};

struct pl_report_send_options {
	const char *to; /* udp://ADDRESS:PORT */
	struct pl_reporter_config reporter;
	struct pl_dta_report report;      /* its key and data are the items' */
	struct pl_report_item key, value; /* borrowed, and stepped */
	bool step_key, step_value;
	uint32_t hops[PL_REPORT_HOPS_MAX]; /* of a postcard: its values, a report each */
	unsigned int n_hops;
	bool cut;       /* the reports of a postcard do not say how long the path is */
	uint64_t count; /* reports (postcards), unless: */
	bool loop;      /* until a signal ends it */
};

/*
 * Until all is sent and, of numbered reports, confirmed or given up, or SIGINT or SIGTERM comes.
 * Gives up the process's rights once its socket is open. An exit code: PL_EXIT_FAILED when reports
 * are lost. Tells its account on standard error, and complains.
 */
int pl_report_send(struct pl_report_send_options *options);
