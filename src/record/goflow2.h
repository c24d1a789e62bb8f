/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows as messages of goflow2 (its FlowMessage, by the numbers of its fields), for its readers:
 * each is one direction of a flow, behind its length as a varint, as goflow2 itself puts them into
 * Kafka. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "record/packet.h"

#define PL_GOFLOW2_MAX 256 /* bytes of a message, with its length */

/* The exporter of the flows. */
struct pl_goflow2_source {
	uint32_t exporter;
	bool has_sampler;
	struct pl_addr sampler; /* address by which readers identify the tap */
};

/* Makes the message of one direction of a flow128 or flow288 record, with its length in front.
 * Returns its bytes; 0 when the direction has no packets. */
size_t pl_goflow2_put(uint8_t to[PL_GOFLOW2_MAX], enum pl_flat_kind kind, const void *flow,
	bool reverse, const struct pl_goflow2_source *source);

/* Leaves one direction in a flow128 or flow288 record: the other one makes no message. */
void pl_goflow2_keep(void *flow, bool reverse);

/* Appends the schema, a .proto file with the fields in use; it ends with a line end. */
void pl_goflow2_schema(struct pl_buf *out);
