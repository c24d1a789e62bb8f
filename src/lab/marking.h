/* SPDX-License-Identifier: BSD-2-Clause */
/* Alternate marking in a lab's file: its settings, and the rows of its section. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/conf.h"
#include "base/diag.h"

/* Alternate marking by the switches: they mark packets from hosts and routers, and count at every
 * port in both directions. */
struct pl_lab_marking {
	unsigned int method; /* enum pl_mark_method; 0: there is none */
	uint64_t period_ns;
	unsigned int by;  /* enum pl_dp_point_by */
	char bits[2][24]; /* names of mark/bits.h; the second may be "" */
	uint64_t clock_error_ns, delay_ns, deviation_ns;
};

/* Returns the number of the measurement point of a port (from 1) in one direction: node 5 (from 1),
 * port 3 has 5003 in, 5503 out. */
static inline uint32_t pl_lab_point(unsigned int node, unsigned int port, bool out)
{
	return node * 1000 + port + (out ? 500 : 0);
}

/* The section's values in the file. */
struct pl_lab_marking_conf {
	unsigned int method, by;
	uint64_t period_ns, clock_error_ns, delay_ns, deviation_ns;
	struct pl_conf_list bits;
};

extern const char
	*const pl_lab_marking_methods[];       /* indexed by enum pl_mark_method; ends with NULL */
extern const char *const pl_lab_marking_bys[]; /* indexed by enum pl_dp_point_by; ends with NULL */

/* clang-format off */
#define PL_LAB_MARKING_ROWS(at) \
	{ .key = "marking.method", .type = PL_CONF_CHOICE, .offset = (at) + offsetof(struct pl_lab_marking_conf, method), .def = "none", .choices = pl_lab_marking_methods, \
	  .help = "Method of alternate marking: switches mark what hosts and routers send, and count at every port in both directions; none: they do not." }, \
	{ .key = "marking.period", .type = PL_CONF_DURATION, .offset = (at) + offsetof(struct pl_lab_marking_conf, period_ns), .def = "1s", .min = 1000, .max = UINT64_C(3600000000000), \
	  .help = "Duration of a block." }, \
	{ .key = "marking.by", .type = PL_CONF_CHOICE, .offset = (at) + offsetof(struct pl_lab_marking_conf, by), .def = "none", .choices = pl_lab_marking_bys, \
	  .help = "Which packets are counted together: flow (5-tuple), hosts (addresses), none (all)." }, \
	{ .key = "marking.bits", .type = PL_CONF_STRINGS, .offset = (at) + offsetof(struct pl_lab_marking_conf, bits), .def = "[ ipv4-reserved ]", .min = 1, .max = 2, \
	  .help = "Bit of the colour: ipv4-reserved, or without INT also dscp:0 and so on; with method double also the bit of the pulse." }, \
	{ .key = "marking.clock_error", .type = PL_CONF_DURATION, .offset = (at) + offsetof(struct pl_lab_marking_conf, clock_error_ns), .def = "1ms", .max = UINT64_C(3600000000000), \
	  .help = "Largest difference between the clocks of two points, for the guard band." }, \
	{ .key = "marking.delay", .type = PL_CONF_DURATION, .offset = (at) + offsetof(struct pl_lab_marking_conf, delay_ns), .def = "50ms", .max = UINT64_C(3600000000000), \
	  .help = "Mean delay between any two points, for the guard band." }, \
	{ .key = "marking.deviation", .type = PL_CONF_DURATION, .offset = (at) + offsetof(struct pl_lab_marking_conf, deviation_ns), .def = "10ms", .max = UINT64_C(3600000000000), \
	  .help = "Standard deviation of the delay, three times in the guard band." }
/* clang-format on */

/* Checks the section and fills *ret. with_int: packets carry INT, which uses the DSCP. -EINVAL with
 * diag; *ret_key is the wrong key of the section. */
int pl_lab_marking_make(struct pl_lab_marking *ret, const struct pl_lab_marking_conf *conf,
	bool with_int, const char **ret_key, struct pl_diag *diag);
