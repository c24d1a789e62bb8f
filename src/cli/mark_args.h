/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of the commands of alternate marking, and their conversion into values. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/opt.h"
#include "cli/args.h"
#include "service/mark_host.h"

extern const char *const pl_mark_arg_by[], *const pl_mark_arg_directions[];

struct pl_command;

/* Static storage. */
struct pl_mark_args {
	const char *from; /* of a meter */
	const char
		*usual_rules[2]; /* where none was given; NULL: every packet, or none is an error */
	const char *dev, *method, *by, *direction, *mode, *rules_file, *pin, *probe;
	const char *form;
	struct pl_args_service service;
	struct pl_opt_list bits, rules, to;
	uint64_t period_ns, clock_error_ns, delay_ns, deviation_ns;
	uint64_t flows, point, probes, check_ns, count;
	bool loss_only;
};

#define PL_MARK_ARGS_DEV(a, does)                                                                  \
	{                                                                                          \
		PL_OPT_STRING, 0, "dev", &(a).dev, "INTERFACE", does, NULL                         \
	}
#define PL_MARK_ARGS_BITS(a)                                                                                 \
	{                                                                                                    \
		PL_OPT_LIST, 0, "bit", &(a).bits, "BIT",                                                     \
			"marking bit, the same in the whole domain: dscp:N, bit 0 (the lowest) to 5 of "     \
			"the DSCP, tos:N of IPv4 or tclass:N of IPv6, 2 to 7, ipv4-reserved (in front of "   \
			"DF), altmark, the IPv6 option of RFC 9343 in Hop-by-Hop Options, altmark-dst, the " \
			"same in Destination Options, or ecn:N, bit 0 or 1 of the ECN field, which forges "  \
			"congestion marks where ECN is used (default dscp:0); given twice, the second one "  \
			"is for the packet whose delay is measured (double marking; altmark has both)",      \
			NULL                                                                                 \
	}
#define PL_MARK_ARGS_RULES(a, chosen)                                                              \
	{ PL_OPT_LIST, 0, "rule", &(a).rules, "RULE",                                              \
		chosen                                                                             \
		"; take or skip with conditions, such as \"take dst=10.0.0.0/8 port=443\"; "       \
		"the first rule that matches decides, a packet that none matches is left "         \
		"alone; may be repeated",                                                          \
		NULL },                                                                            \
	{                                                                                          \
		PL_OPT_STRING, 0, "rules", &(a).rules_file, "FILE",                                \
			"rules from a file, one in a line, behind those of --rule", NULL           \
	}
#define PL_MARK_ARGS_METHOD(a)                                                                               \
	{                                                                                                    \
		PL_OPT_CHOICE, 0, "method", &(a).method, "METHOD",                                           \
			"step: colours; double: and a second bit on one packet of each block for its "       \
			"delay (default with two bits); multiplexed: both in one bit; pulse: one packet "    \
			"of each block is marked, no colours; for the last two clocks and delays must stay " \
			"within a quarter of the period (default step)",                                     \
			pl_mark_methods                                                                      \
	}
#define PL_MARK_ARGS_BLOCKS(a)                                                                                            \
	{ PL_OPT_DURATION, 0, "period", &(a).period_ns, "TIME",                                                           \
		"duration of a block, the same at all points (default 1s)", NULL },                                       \
		{ PL_OPT_CHOICE, 0, "by", &(a).by, "WHAT",                                                                \
			"count by flow (addresses, protocol, ports; default), hosts (addresses), or none: "               \
			"all chosen packets together",                                                                    \
			pl_mark_arg_by },                                                                                 \
		{ PL_OPT_U64, 0, "flows", &(a).flows, "COUNT",                                                            \
			"flows at a time; packets of further ones are counted as such (default 4096; of captures 65536)", \
			NULL },                                                                                           \
		{ PL_OPT_DURATION, 0, "clock-error", &(a).clock_error_ns, "TIME",                                         \
			"the most that clocks of two points differ (default 1ms)", NULL },                                \
		{ PL_OPT_DURATION, 0, "delay", &(a).delay_ns, "TIME",                                                     \
			"mean delay from the marker to the last meter (default 50ms)", NULL },                            \
	{                                                                                                                 \
		PL_OPT_DURATION, 0, "deviation", &(a).deviation_ns, "TIME",                                               \
			"standard deviation of that delay (default 10ms); clock error, delay and "                        \
			"three deviations are the guard band, outside of which packets are told "                         \
			"as evidence against a result; it must be below half of the period, a "                           \
			"quarter with multiplexed and pulse",                                                             \
			NULL                                                                                              \
	}
#define PL_MARK_ARGS_LOSS_ONLY(a)                                                                            \
	{                                                                                                    \
		PL_OPT_FLAG, 0, "loss-only", &(a).loss_only, NULL,                                           \
			"count for loss alone: no clock is read for a packet, which takes half of the time " \
			"then, and records have no times, so there is no delay; method step, at a meter "    \
			"double too",                                                                        \
			NULL                                                                                 \
	}
#define PL_MARK_ARGS_RECORDS(a, also, when)                                                                   \
	{ PL_OPT_U64, 0, "point", &(a).point, "NUMBER",                                                       \
		"number of this measurement point, at most 32 bits, which no other has", NULL },              \
		{ PL_OPT_LIST, 0, "to", &(a).to, "OUTPUT",                                                    \
			also                                                                                  \
			"send records of blocks there: udp://HOST:PORT, kafka://HOST/TOPIC, "                 \
			"clickhouse://HOST/TABLE, ipfix://HOST?pen=N, dta://HOST, region:PATH or file:PATH; " \
			"may be repeated",                                                                    \
			NULL },                                                                               \
		{ PL_OPT_CHOICE, 'o', "output", &(a).form, "FORM", when, pl_out_forms },                      \
		{ PL_OPT_COUNT, 'n', "count", &(a).count, "COUNT",                                            \
			"stop after this many printed records", NULL },                                       \
	{                                                                                                     \
		PL_OPT_STRING, 0, "pin", &(a).pin, "FOLDER",                                                  \
			"keep program and counters in this folder of a BPF file system when the "             \
			"process ends, for the next one to go on with; rm -r FOLDER ends it",                 \
			NULL                                                                                  \
	}
#define PL_MARK_ARGS_RUNNING(a)                                                                    \
	{ PL_OPT_HEADING, 0, "Running", NULL, NULL, NULL, NULL }, PL_ARGS_SERVICE((a).service)

/* The given clock error, or the default. */
uint64_t pl_mark_args_clock_error(const struct pl_mark_args *a);

/* Before parsing: defaults. */
void pl_mark_args_begin(struct pl_mark_args *a);
void pl_mark_args_done(struct pl_mark_args *a);

/* Runs a host that was filled in, and, unless NULL, the service that gets its records. Returns an
 * exit code; prints errors. */
int pl_mark_args_run(
	struct pl_mark_host *h, const struct pl_service *beside, const struct pl_mark_args *a);

/* Serves with the given options, in a role; rules: at least one must be given. Prints errors;
 * returns an exit code. */
int pl_mark_args_serve(const struct pl_command *command, struct pl_mark_args *a,
	enum pl_hostmark_role role, bool rules, bool prints);
