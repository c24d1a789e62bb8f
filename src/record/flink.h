/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of Flink SQL over topics of records. Messages of RowBinary need the format `pathline`
 * (share/flink/PathlineFormatFactory.java) in Flink's classpath; messages of JSON, one record each,
 * its own format `json`. Flink has no unsigned numbers and no addresses: numbers are BIGINT,
 * addresses texts.
 */
#pragma once

#include "base/buf.h"
#include "record/packet.h"

struct pl_flink_topic {
	const char *brokers; /* "HOST:PORT,…" */
	const char *name;
	const char *group; /* group of consumers */
	bool json;
};

/* Appends CREATE TABLE, named `table`: with the column `rowtime`, the time of events, whose
 * watermark is as far behind the newest as that of pathline's questions is by default (query/query.h).
 * Texts may hold any character but NUL. */
void pl_flink_table(struct pl_buf *out, enum pl_flat_kind kind, const char *table,
	const struct pl_flink_topic *topic);
