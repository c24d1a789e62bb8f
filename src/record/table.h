/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records for people (table, wide) and for spreadsheets (CSV).
 *
 * Table is meant for 80 columns: time (UTC), exporter, flow, path as node>node>node, latency, flags
 * by letter. Columns are aligned while the values fit; a longer value is never cut, it pushes the
 * rest to the right. "-" is a missing value. It may change from release to release; CSV and JSON do
 * not.
 *
 * CSV (RFC 4180, but with a bare line feed): a header row, then one row per hop with the path's
 * columns repeated; a path without hops gives one row. A missing value is an empty field. No name
 * or value can hold a comma, a quote or a line break, so none is quoted.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "record/record.h"

void pl_path_csv_header(struct pl_buf *buf);
void pl_path_csv(
	struct pl_buf *buf, const struct pl_path *path, const struct pl_hop *hops, size_t n);
/* A hop on its own: time, path, and its columns. */
void pl_hop_csv_header(struct pl_buf *buf);
void pl_hop_csv(struct pl_buf *buf, const struct pl_hop *hop);
void pl_event_csv_header(struct pl_buf *buf);
void pl_event_csv(struct pl_buf *buf, const struct pl_event *event);
void pl_value_csv_header(struct pl_buf *buf);
void pl_value_csv(struct pl_buf *buf, const struct pl_value *value);

void pl_path_table_header(struct pl_buf *buf, bool wide);
void pl_path_table(struct pl_buf *buf, const struct pl_path *path, const struct pl_hop *hops,
	size_t n, bool wide);
void pl_hop_table_header(struct pl_buf *buf);
void pl_hop_table(struct pl_buf *buf, const struct pl_hop *hop);
void pl_event_table_header(struct pl_buf *buf);
void pl_event_table(struct pl_buf *buf, const struct pl_event *event);
void pl_value_table_header(struct pl_buf *buf);
void pl_value_table(struct pl_buf *buf, const struct pl_value *value);
