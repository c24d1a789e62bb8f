/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends one DTA report, or many with rising keys or values, to a translator, and answers its
 * requests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dta/reporter.h"

#define PL_REPORT_HOPS_MAX 31u

/* A key or a value, whose number rises from report to report when it is stepped. */
struct pl_report_item {
	uint8_t *bytes;
	size_t n;
	bool number, little; /* bytes are a number; least significant byte first */
};

struct pl_report_send_options {
	const char *to; /* udp://ADDRESS:PORT */
	struct pl_reporter_config reporter;
	struct pl_dta_report report;      /* key and data are those of the items */
	struct pl_report_item key, value; /* borrowed, and stepped */
	bool step_key, step_value;
	uint32_t hops[PL_REPORT_HOPS_MAX]; /* values of a postcard, a report each */
	unsigned int n_hops;
	bool cut;       /* the reports of a postcard do not have the length of the path */
	uint64_t count; /* number of reports (postcards), unless: */
	bool loop;      /* until a signal ends it */
};

/*
 * Sends until all reports are sent and, when numbered, confirmed or given up, or until SIGINT or
 * SIGTERM comes. Gives up the process's privileges once its socket is open. Prints errors and its
 * account on standard error. Returns an exit code: PL_EXIT_FAILED when reports are lost.
 */
int pl_report_send(struct pl_report_send_options *options);
