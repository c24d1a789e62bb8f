/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records into a table of ClickHouse, over its HTTP interface: batches as
 * INSERT INTO table (columns) FORMAT RowBinary, whose body is the records as they are
 * (record/clickhouse.h). What becomes of batches is the sender's (export/sender.h): kept while the
 * server is away, in memory and in a spool; halved when a part is refused.
 *
 * What an answer means follows from its exception code (ClickHouse, src/Common/ErrorCodes.cpp),
 * where there is one: a missing table, column or right is for an operator to mend; a busy server is
 * tried again; bytes that are no rows of the table refuse all of a batch, since its records are
 * alike; a row that makes too many parts (a time far off) refuses its half.
 */
#pragma once

#include "export/sender.h"
#include "record/packet.h"

struct pl_clickhouse_options {
	const char *server;           /* "http://HOST:PORT" or https */
	const char *database, *table; /* any characters; database NULL: the user's default */
	enum pl_flat_kind kind;
	/* Of rows of a question (export/clickhouse_rows.h) instead of records: these. NULL: records */
	const char *columns;
	struct pl_sender_options sender; /* url aside */
};

/* As pl_sender_open. */
int pl_clickhouse_open(struct pl_export **ret, const struct pl_clickhouse_options *options,
	uint64_t now_ns, struct pl_diag *diag);

/* n records, each the first bytes of `stride`: pkt64/1 is how pkt96/1 begins. Afterwards each is
 * delivered, queued or counted as dropped. */
void pl_clickhouse_write(
	struct pl_export *e, const void *records, uint32_t n, uint32_t stride, uint64_t now_ns);

/* Appends a name of ClickHouse in its quotes. */
void pl_clickhouse_put_name(struct pl_buf *out, const char *name);

/* For tests: what an answer to n records means. */
void pl_clickhouse_answer(const struct pl_http_answer *answer, uint32_t n, struct pl_ruling *ret);
