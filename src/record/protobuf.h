/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records as Protocol Buffers, for systems that read no RowBinary: a message is a batch of rows,
 * and rows one behind the other are a batch, so batches are made by appending (Protocol Buffers,
 * "Encoding": the fields of a message may be concatenated).
 *
 * A row has fixed32, fixed64 and bytes of a fixed number (addresses; texts with the zeros behind
 * them) only, so every row of a kind has the same length and the same tags at the same places: a
 * row is written by copying a template and storing values. An absent value has the number of no
 * field: readers ignore it.
 */
#pragma once

#include "base/buf.h"
#include "record/packet.h"

#define PL_PROTOBUF_ROW_MAX 512

/* Appends the schema, a .proto file with the message `Pkt64Batch` and the like; it ends with a line
 * end. */
void pl_protobuf_schema(struct pl_buf *out, enum pl_flat_kind kind);

uint32_t pl_protobuf_row_size(enum pl_flat_kind kind);
/* Writes the tags and lengths of a row, with all values 0. */
void pl_protobuf_template(enum pl_flat_kind kind, uint8_t to[PL_PROTOBUF_ROW_MAX]);
/* Writes the row of a record, of pl_protobuf_row_size(kind) bytes, from the kind's template. */
void pl_protobuf_put(enum pl_flat_kind kind, const uint8_t *row, const void *record, uint8_t *to);
/* Reads the record back out of a row that pl_protobuf_put wrote. */
void pl_protobuf_get(enum pl_flat_kind kind, const uint8_t *row, void *record);
