/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records as text for comparison by eye and by diff, in golden files. Version 1 of the form:
 *
 *   path ts_ns=1 exporter=10.0.0.1 … flags=dropped,partial … flow.src=10.1.0.1 …
 *   TAB hop ingress_ts_ns=… node=1 …
 *   event ts_ns=1 event=path_change …
 *   value ts_ns=1 primitive=append …
 *
 * One record per line, NAME=VALUE pairs separated by one space in the order of fields.def, absent
 * values left out, a path's hops behind it on lines that begin with a tab. flags lists the set
 * ones, "none" when none is. No value holds a space or a "=". A new field appears in its place;
 * renaming or reordering makes a new version.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "record/record.h"

#define PL_TEXT_VERSION 1

void pl_path_text(
	struct pl_buf *buf, const struct pl_path *path, const struct pl_hop *hops, size_t n);
void pl_hop_text(struct pl_buf *buf, const struct pl_hop *hop);
void pl_event_text(struct pl_buf *buf, const struct pl_event *event);
void pl_value_text(struct pl_buf *buf, const struct pl_value *value);

/* Writes the names of the set flags, with commas between them; `none` when none is set. */
void pl_path_flags_text(struct pl_buf *buf, unsigned int flags, const char *none);
