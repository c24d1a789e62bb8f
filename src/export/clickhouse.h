/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inserts records into a table of ClickHouse over its HTTP interface: batches as INSERT INTO table
 * (columns) FORMAT RowBinary, whose body is the records byte for byte (record/clickhouse.h). The
 * sender (export/sender.h) handles the batches: it keeps them while the server is away, in memory
 * and in a spool, and halves a batch of which a part is refused.
 *
 * The ruling on an answer follows from its exception code (ClickHouse, src/Common/ErrorCodes.cpp),
 * where there is one: a missing table, column or right is held until an operator mends it; a busy
 * server is tried again; bytes that are not rows of the table refuse the whole batch, since its
 * records are alike; a row that makes too many parts (a time far off) refuses its half.
 */
#pragma once

#include "export/sender.h"
#include "record/packet.h"

struct pl_clickhouse_options {
	const char *server;           /* "http://HOST:PORT" or https */
	const char *database, *table; /* database NULL: the user's default */
	enum pl_flat_kind kind;
	/* Columns of the rows of a query (export/clickhouse_rows.h); NULL: records are written */
	const char *columns;
	struct pl_sender_options sender; /* without url */
};

/* Returns what pl_sender_open does. */
int pl_clickhouse_open(struct pl_export **ret, const struct pl_clickhouse_options *options,
	uint64_t now_ns, struct pl_diag *diag);

/* Writes n records, of each the first bytes of `stride`: pkt64/1 is the beginning of pkt96/1.
 * Afterwards each is delivered, queued, or counted as dropped. */
void pl_clickhouse_write(
	struct pl_export *e, const void *records, uint32_t n, uint32_t stride, uint64_t now_ns);

/* Appends an identifier of ClickHouse in its quotes. */
void pl_clickhouse_put_name(struct pl_buf *out, const char *name);

/* For tests: rules on an answer to n records. */
void pl_clickhouse_answer(const struct pl_http_answer *answer, uint32_t n, struct pl_ruling *ret);
