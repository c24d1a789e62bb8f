/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of ClickHouse for records of packets, DNS messages and flows. The bytes of a record are
 * those of a row in RowBinary (ClickHouse, "Formats for input and output data: RowBinary"): columns
 * in the order of the record, numbers little-endian, an address as IPv6 has it there.
 */
#pragma once

#include "base/buf.h"
#include "record/packet.h"

#define PL_CLICKHOUSE_HEADER_MAX 2048 /* bytes of pl_clickhouse_header() */

/* End of a statement that makes a table: an INSERT that comes again, byte for byte, is stored once. */
#define PL_CLICKHOUSE_ONCE       "SETTINGS non_replicated_deduplication_window = 1000;\n"

struct pl_clickhouse_topic {
	const char *brokers; /* "HOST:PORT,…" */
	const char *name;
	const char *group; /* group of consumers */
};

/* Appends the header of the format RowBinaryWithNamesAndTypes: number, names and types of the
 * columns, which stand in front of the rows. */
void pl_clickhouse_header(struct pl_buf *out, enum pl_flat_kind kind);

/* Appends the name of the column that holds the field's bytes: the field's own, behind "raw_" if
 * its value may be absent. In that case the column of the field's name is NULL. */
void pl_clickhouse_put_stored(struct pl_buf *out, const struct pl_field *field);

/* Appends the statements: the table, named `table`, ordered by time; with a topic also one that
 * reads it (NAME_topic), and the view that moves its rows into the first (NAME_from_topic), which then
 * has columns of the message that each row came in. Texts may hold any character but NUL. */
void pl_clickhouse_tables(struct pl_buf *out, enum pl_flat_kind kind, const char *table,
	const struct pl_clickhouse_topic *topic);
