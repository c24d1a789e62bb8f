/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of the decoder for facts that are not in the bytes: one profile for every exporter. read,
 * listen and query share them. Exporters that differ from each other are the configuration file's
 * matter.
 */
#pragma once

#include "base/opt.h"
#include "decode/decode.h"

struct pl_decode_args {
	struct pl_opt_list report_ports, ioam_times, vxlan_ports;
	const char *report_version, *dialect, *queue_word, *tcp_placement;
	const char *dscp, *marker, *time_unit, *latency_unit;
	uint64_t int_port, gre_type, geneve_class, trailing_words, source_words;
};

/* Fills what PL_DECODE_ARGS rows parsed into *ret, which refers to *profile. Prints the error and
 * returns an exit code, 0 when good. */
int pl_decode_args_apply(const struct pl_decode_args *args, struct pl_decode_options *ret,
	struct pl_profile *profile);
/* Returns true when any of them was given. */
bool pl_decode_args_given(const struct pl_decode_args *args);
void pl_decode_args_done(struct pl_decode_args *args);

/* Reads --vxlan-port into a word of ports (wire/tunnel_ports.h). Prints the error and returns an
 * exit code, 0 when good. */
int pl_vxlan_ports_apply(const struct pl_opt_list *ports, uint64_t *ret);

extern const char *const pl_arg_report_versions[],
	*const pl_arg_dialects[], *const pl_arg_queue_words[], *const pl_arg_placements[],
								       *const pl_arg_units[];

/* Rows for an option table; a is a struct pl_decode_args of static storage. */
#define PL_DECODE_ARGS(a)                                                                             \
	{ PL_OPT_HEADING, 0, "Settings that reports do not carry", NULL, NULL, NULL, NULL },          \
		{ PL_OPT_LIST, 0, "report-port", &(a).report_ports, "PORT",                           \
			"UDP destination port of reports; may be repeated (default 32766 and 54321)", \
			NULL },                                                                       \
		{ PL_OPT_CHOICE, 0, "report-version", &(a).report_version, "VERSION",                 \
			"read reports as this version instead of believing their version field",      \
			pl_arg_report_versions },                                                     \
		{ PL_OPT_CHOICE, 0, "dialect", &(a).dialect, "DIALECT",                               \
			"read INT headers as this dialect only (default: detected)",                  \
			pl_arg_dialects },                                                            \
		{ PL_OPT_CHOICE, 0, "queue-word", &(a).queue_word, "SPLIT",                           \
			"queue id and depth as 8 and 24 bits, or as 16 and 16",                       \
			pl_arg_queue_words },                                                         \
		{ PL_OPT_U64, 0, "trailing-words", &(a).trailing_words, "N",                          \
			"each hop's values are followed by N words of a vendor, to be skipped",       \
			NULL },                                                                       \
		{ PL_OPT_U64, 0, "source-words", &(a).source_words, "N",                              \
			"INT sources with a domain id put N words of their own under the stack",      \
			NULL },                                                                       \
		{ PL_OPT_CHOICE, 0, "tcp-placement", &(a).tcp_placement, "WHERE",                     \
			"INT over TCP stands before or after the TCP options",                        \
			pl_arg_placements },                                                          \
		{ PL_OPT_STRING, 0, "dscp", &(a).dscp, "VALUE[/MASK]",                                \
			"packets with this DSCP carry INT", NULL },                                   \
		{ PL_OPT_U64, 0, "int-port", &(a).int_port, "PORT",                                   \
			"packets to this UDP port carry INT", NULL },                                 \
		{ PL_OPT_U64, 0, "gre-type", &(a).gre_type, "TYPE",                                   \
			"GRE packets of this protocol type carry INT (none is assigned)", NULL },     \
		{ PL_OPT_U64, 0, "geneve-class", &(a).geneve_class, "CLASS",                          \
			"Geneve options of this class are INT (default 0x0103)", NULL },              \
		{ PL_OPT_LIST, 0, "vxlan-port", &(a).vxlan_ports, "PORT",                             \
			"UDP port of VXLAN beside 4789; may be repeated (default 8472; 4789: none)",  \
			NULL },                                                                       \
		{ PL_OPT_LIST, 0, "ioam-time", &(a).ioam_times, "NAMESPACE=FORMAT",                   \
			"times of an IOAM namespace: posix (default), ptp or ntp; may be repeated",   \
			NULL },                                                                       \
		{ PL_OPT_STRING, 0, "marker", &(a).marker, "HEX",                                     \
			"INT follows this 64-bit probe marker", NULL },                               \
		{ PL_OPT_CHOICE, 0, "time-unit", &(a).time_unit, "UNIT",                              \
			"unit of the nodes' timestamps (default ns)", pl_arg_units },                 \
	{                                                                                             \
		PL_OPT_CHOICE, 0, "latency-unit", &(a).latency_unit, "UNIT",                          \
			"unit of the nodes' hop latencies (default ns)", pl_arg_units                 \
	}
