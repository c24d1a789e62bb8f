/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a switch (YAML, base/conf.h); dataplane/program.h builds a pipeline from it.
 *
 *   name: s1
 *   id: 1
 *   control: /run/s1.sock
 *   ports:
 *     - { number: 1, uri: "packet:s1-h1", mac: "02:00:00:00:01:01" }
 *     - { number: 2, uri: "packet:s1-h2", mac: "02:00:00:00:01:02" }
 *   tables:
 *     - name: routes
 *       key: [ ip.dst prefix ]
 *       entries:
 *         - ip.dst=10.0.1.0/24 -> route 1 02:00:00:00:00:11
 *         - ip.dst=10.0.2.0/24 -> route 2 02:00:00:00:00:12
 *
 * A table's key is a list of "FIELD KIND"; FIELD is in fields.def, KIND is
 *
 *   exact    FIELD=VALUE, in every entry
 *   prefix   FIELD=VALUE/BITS, the longest one matches; at most one field of a table
 *   ternary  FIELD=VALUE&MASK, FIELD=VALUE, for addresses also VALUE/BITS
 *   range    FIELD=FIRST-LAST or FIELD=VALUE
 *   window   FIELD=OFFSET+WIDTH/PERIOD: the times of day from OFFSET on, for WIDTH, in every
 *            PERIOD since 1970: time=250ms+250ms/1s. Only for `time`
 *
 * An entry is "[priority N] MATCH... -> ACTION; ACTION...". A field that is left out (exact fields
 * cannot be) matches everything. Of several matching entries the one with the highest priority
 * (default 0) is taken, then the one with the longest prefix, then the first.
 *
 * Actions are in actions.def. The tables of a stage are looked up in their order. `miss` has the
 * actions for packets that no entry matches (none: the next table follows). A packet that has no
 * output port at the end is dropped as no_route.
 */
#pragma once

#include "base/conf.h"

#define PL_DP_NAME_MAX    31
#define PL_DP_PORTS_MAX   256 /* numbers from 1 on */
#define PL_DP_TABLES_MAX  64
#define PL_DP_ENTRIES_MAX 65536 /* of a table */
#define PL_DP_CELLS_MAX   (1u << 20)
#define PL_DP_NAMED_MAX   256 /* counters; also meters, registers, groups */
#define PL_DP_FIELDS_MAX  8   /* of a key */

struct pl_dp_conf_queue {
	uint64_t limit, weight, burst, ecn;
	char *rate;
};

struct pl_dp_conf_port {
	uint64_t number, mtu, limit, overhead;
	char *name, *uri, *mac, *rate;
	struct pl_conf_list queues, addresses;
	uint64_t icmp;
};

struct pl_dp_conf_cells { /* a counter or a register */
	char *name;
	uint64_t size;
};

struct pl_dp_conf_meter {
	char *name, *rate, *peak_rate;
	uint64_t size, burst, peak_burst;
};

struct pl_dp_conf_group {
	char *name;
	struct pl_conf_list members;
};

struct pl_dp_conf_table {
	char *name, *miss;
	unsigned int stage; /* enum pl_dp_stage */
	uint64_t size;
	struct pl_conf_list key, entries;
};

struct pl_dp_conf_point { /* measurement point of alternate marking */
	uint64_t number, port, flows;
	unsigned int direction; /* 0: in, 1: out */
	unsigned int role;      /* enum pl_dp_point_role */
	unsigned int by;        /* enum pl_dp_point_by */
	char *cells, *table;
};

struct pl_dp_conf_marking {
	unsigned int method; /* enum pl_mark_method, less 1 */
	uint64_t period, clock_error, delay, deviation;
	struct pl_conf_list bits, points, to;
	char *send;
};

struct pl_dp_conf {
	char *name, *control, *truth;
	char *clock_offset, *clock_drift; /* NULL: none */
	uint64_t id;
	struct pl_conf_list ports, counters, meters, registers, groups, tables;
	struct pl_dp_conf_marking marking;
};

extern const struct pl_conf_row pl_dp_conf_rows[];
