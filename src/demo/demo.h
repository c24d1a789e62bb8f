/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The demonstrations of pathline demo: the collector at work on real datagrams over loopback, and
 * packets that become records, flows and answers. They need nothing: no argument, no right, no
 * network.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pl_demo_options {
	bool headless;        /* only the summary at the end; packets: not by the clock */
	const char *form;     /* of the summary: table, json or jsonl */
	uint64_t duration_ns; /* 0: reports until q or a signal, packets for 30 s */
	uint64_t seed;
	double rate;    /* reports: per second */
	const char *to; /* packets: an output for the records (tapout/tap_out.h); NULL: none */
};

/*
 * Compares the totals at the end: every report of the network was lost on purpose, or sent;
 * everything sent was received, or dropped by the kernel, which counts that. Returns an exit code,
 * after an error message.
 */
int pl_demo_reports(const struct pl_demo_options *options);

int pl_demo_packets(const struct pl_demo_options *options);
