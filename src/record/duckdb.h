/* SPDX-License-Identifier: BSD-2-Clause */
/* Views of DuckDB over files of JSON lines: those of 'pathline tap -o jsonl', which print words and
 * hashes as texts, and of 'pathline query -o jsonl', which print their numbers. Numbers are BIGINT,
 * so that sums and products of small ones do not overflow; hashes are UBIGINT, addresses texts as
 * we print them, words their numbers. */
#pragma once

#include "base/buf.h"
#include "record/packet.h"

/* Appends CREATE OR REPLACE VIEW, named `table`, over the file of the table's name with ".jsonl"
 * behind it. The table may hold any character but NUL. */
void pl_duckdb_view(struct pl_buf *out, enum pl_flat_kind kind, const char *table);
