/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes to InfluxDB: line protocol for the write interface of version 1 (/write) or 2
 * (/api/v2/write), also as VictoriaMetrics takes it. docs/formats/influx.md lists measurements,
 * tags and fields.
 *
 *   pathline_event   one line per event: kind, place, and the flow concerned as text
 *   pathline_hop     one line per hop of a report, numbers only; on request
 *   pathline_NAME    one line per point of a series (export/series.h)
 *
 * Tags have values from fixed lists, or are nodes, ports, queues, reasons and exporters, never
 * anything of a flow. The number of distinct sets of tags in a run is bounded: further sets get
 * "other" in place of numbers and addresses, and are counted. Integers are signed 64-bit at the
 * server: a larger one is written as text under the name NAME_u64. The server keeps one point for
 * each set of tags and time, so of two such points the later one is moved on by nanoseconds. Times
 * before the year 2000 or more than a day ahead are refused.
 *
 * Only points are ever written: databases are neither created nor dropped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/sender.h"

struct pl_influx_options {
	const char *url; /* of the server, with its path, if any: http://host:8086 */
	bool v2;
	const char *database, *retention_policy; /* version 1; the policy may be NULL */
	const char *org, *bucket;                /* version 2; the organization may be NULL */
	uint32_t max_keys;                       /* distinct sets of tags; 0: 10000, at most 2^24 */
	bool community_id; /* flat records of packets and flows have it, as a field */
};

/* `sender` is given without url, headers and token scheme, which are filled in here. Returns what
 * pl_sender_open does. */
int pl_influx_open(struct pl_export **ret, const struct pl_influx_options *options,
	const struct pl_sender_options *sender, uint64_t now_ns, struct pl_diag *diag);
uint64_t pl_influx_memory(uint32_t max_keys);

/* Parts for tests and benchmarks. */
#define PL_INFLUX_URL_MAX 4096
int pl_influx_url(char dst[PL_INFLUX_URL_MAX], const struct pl_influx_options *options);
extern const struct pl_format_ops pl_influx_format;
int pl_influx_format_new(void **ret, uint32_t max_keys, bool community_id);
