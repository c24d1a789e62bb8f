/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Option rows that several subcommands have, so that one thing has one wording, and what was given
 * made into values. The targets of rows are of static storage.
 */
#pragma once

#include <stddef.h>

#include "base/addr.h"
#include "base/conf_opt.h"
#include "pipeline/config.h"
#include "runtime/runtime.h"

/* In the order of enum pl_dta_form. */
extern const char *const pl_arg_dta_forms[];
extern const char *const pl_arg_text_or_json[];

/* Of a command that serves until it is told to end; duration is a uint64_t, stats a bool. */
#define PL_ARGS_SERVING(duration, stats)                                                           \
	{ PL_OPT_DURATION, 0, "duration", &(duration), "TIME", "stop after this time", NULL },     \
	{                                                                                          \
		PL_OPT_FLAG, 0, "stats", &(stats), NULL,                                           \
			"end with all counters as a JSON object on standard output", NULL          \
	}

/* Of a command that writes regions with epochs (chain/epochs.h); every is a uint64_t, folder a
 * const char *, sketches a literal: when theirs begin. */
#define PL_ARGS_EPOCHS(every, folder, sketches)                                                    \
	{ PL_OPT_DURATION, 0, "epoch", &(every), "TIME",                                           \
		"interval of epochs, for regions with two halves; sketches " sketches              \
		", lists never; SIGUSR2 begins one at once",                                       \
		NULL },                                                                            \
	{                                                                                          \
		PL_OPT_STRING, 0, "keep-epochs", &(folder), "FOLDER",                              \
			"folder where ended epochs are kept, as regions FILE-NUMBER.plr", NULL     \
	}

/* Of a service with a page of its own: where is a const char *. */
#define PL_ARGS_WEB(where)                                                                                 \
	{                                                                                                  \
		PL_OPT_STRING, 0, "web", &(where), "ADDRESS",                                              \
			"serve /metrics, /healthz and /readyz there (127.0.0.1:8401), without a password " \
			"who reaches it",                                                                  \
			NULL                                                                               \
	}

/* Of a command that gives up its rights: user and group are const char *. */
#define PL_ARGS_CONFINE(user, group)                                                               \
	{ PL_OPT_STRING, 0, "user", &(user), "NAME",                                               \
		"become this user once everything that needs privileges is open", NULL },          \
	{                                                                                          \
		PL_OPT_STRING, 0, "group", &(group), "NAME",                                       \
			"become this group too (default the user's)", NULL                         \
	}

/* What a command that runs a service is told beside the service's own options. */
struct pl_args_service {
	const char *user, *group, *web;
	uint64_t duration_ns;
	bool stats;
};

#define PL_ARGS_SERVICE(s)                                                                         \
	PL_ARGS_WEB((s).web), PL_ARGS_CONFINE((s).user, (s).group),                                \
		PL_ARGS_SERVING((s).duration_ns, (s).stats)

/* Options of a process that runs so, and prints to the terminal. */
struct pl_runtime_options pl_args_runtime(const struct pl_args_service *s,
	const struct pl_service *services, unsigned int n, void (*begun)(void *arg), void *arg);

/* Which packets of captures and interfaces are looked at; filter is a const char *. */
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

/* Sets all of them to not given; after parsing, those that were not given to 0, which stands for
 * their defaults. A zero that was given is no default: then an exit code, else 0; complains. */
void pl_arg_numbers_begin(const struct pl_arg_number *numbers, size_t n);
int pl_arg_numbers_end(const char *command, const struct pl_arg_number *numbers, size_t n);

/* The configuration's defaults, and over them the options that were given. 0, or an exit code;
 * complains. */
int pl_args_configure(struct pl_config *ret, const struct pl_conf_opts *opts);

/* Reads the values of an option, --allow for one, into at most max prefixes. 0, or an exit code;
 * complains. */
int pl_arg_prefixes(const char *option, const struct pl_opt_list *list, struct pl_prefix *ret,
	unsigned int max);
