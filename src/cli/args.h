/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Option rows of several subcommands, so that one option has one wording, and their conversion into
 * values. The targets of rows are of static storage.
 */
#pragma once

#include <stddef.h>

#include "base/conf_opt.h"
#include "pipeline/config.h"
#include "runtime/runtime.h"

/* In the order of enum pl_dta_form. */
extern const char *const pl_arg_dta_forms[];
extern const char *const pl_arg_text_or_json[];

/* Rows of a command that serves until it is ended; duration is a uint64_t, stats a bool. */
#define PL_ARGS_SERVING(duration, stats)                                                           \
	{ PL_OPT_DURATION, 0, "duration", &(duration), "TIME", "stop after this time", NULL },     \
	{                                                                                          \
		PL_OPT_FLAG, 0, "stats", &(stats), NULL,                                           \
			"end with all counters as a JSON object on standard output", NULL          \
	}

/* Rows of a service with a page of its own: where is a const char *. */
#define PL_ARGS_WEB(where)                                                                             \
	{                                                                                              \
		PL_OPT_STRING, 0, "web", &(where), "ADDRESS",                                          \
			"serve /metrics, /healthz and /readyz there (127.0.0.1:8401); no password is " \
			"asked for",                                                                   \
			NULL                                                                           \
	}

/* Rows of a command that gives up its rights: user and group are const char *. */
#define PL_ARGS_CONFINE(user, group)                                                               \
	{ PL_OPT_STRING, 0, "user", &(user), "NAME",                                               \
		"become this user once everything that needs privileges is open", NULL },          \
	{                                                                                          \
		PL_OPT_STRING, 0, "group", &(group), "NAME",                                       \
			"become this group too (default the user's)", NULL                         \
	}

/* Options of a command that runs a service, beside the service's own. */
struct pl_args_service {
	const char *user, *group, *web;
	uint64_t duration_ns;
	bool stats;
};

#define PL_ARGS_SERVICE(s)                                                                         \
	PL_ARGS_WEB((s).web), PL_ARGS_CONFINE((s).user, (s).group),                                \
		PL_ARGS_SERVING((s).duration_ns, (s).stats)

/* Options of the runtime for a process that runs these services and prints to the terminal. */
struct pl_runtime_options pl_args_runtime(const struct pl_args_service *s,
	const struct pl_service *services, unsigned int n, void (*begun)(void *arg), void *arg);

/* Row of the filter for packets of captures and interfaces; filter is a const char *. */
#define PL_ARGS_FILTER(filter)                                                                     \
	{                                                                                          \
		PL_OPT_ONCE, 0, "filter", &(filter), "EXPR",                                       \
			"look only at packets that match the expression, as of tcpdump: "          \
			"\"udp port 6000 and net 10.0.0.0/8\" (man pcap-filter)",                  \
			NULL                                                                       \
	}

/* text is a const char *. */
#define PL_ARGS_TEXT_OR_JSON(text)                                                                 \
	{                                                                                          \
		PL_OPT_CHOICE, 'o', "output", &(text), "FORMAT", "output format",                  \
			pl_arg_text_or_json                                                        \
	}

struct pl_arg_number {
	const char *name; /* of the option */
	uint64_t *v;
};

/* pl_arg_numbers_begin sets all numbers to "not given"; pl_arg_numbers_end, after parsing, sets
 * those not given to 0, their default. A given zero is refused. Returns 0, or an exit code after an
 * error message. */
void pl_arg_numbers_begin(const struct pl_arg_number *numbers, size_t n);
int pl_arg_numbers_end(const char *command, const struct pl_arg_number *numbers, size_t n);

/* Applies the given options over the configuration's defaults. Returns 0, or an exit code after an
 * error message. */
int pl_args_configure(struct pl_config *ret, const struct pl_conf_opts *opts);
