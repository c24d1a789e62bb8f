/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of a translator on collectors' memory: writes of bytes and additions to cells of 64
 * bits, by store and offset. The sink (dta/apply.h for mapped memory, an RDMA requester for remote
 * memory) executes them in their order for each collector: an entry before the head that counts it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

enum pl_op_kind {
	PL_OP_WRITE,
	PL_OP_ADD, /* fetch-and-add to an aligned, little-endian cell of 64 bits */
};

struct pl_op {
	uint8_t kind; /* enum pl_op_kind */
	bool immediate;
	uint16_t collector; /* 0 and up */
	uint16_t store;     /* number of the store in the translator's configuration */
	uint32_t bytes;     /* ADD: 8 */
	uint64_t offset;    /* within the bounds of the store */
	union {
		/* WRITE: bytes to be written unchanged; valid during the call */
		const uint8_t *data;
		uint64_t add;
	};
	/* with immediate: primitive << 28 | low 28 bits of the slot, cell, chunk, list or epoch */
	uint32_t imm;
};

#define PL_OPS_MAX 64u /* given to the sink at once */

/* Immediate value of a write (reference: primitive in the upper four bits). */
static inline uint32_t pl_op_imm(uint32_t primitive, uint64_t index)
{
	return primitive << 28 | ((uint32_t)index & 0x0fffffffu);
}

/*
 * Sink of operations, and of NACKs to reporters. The first two functions take everything that they
 * are given, and count operations that cannot be executed. `nack` may be NULL: gaps then end by the
 * limit of tries alone.
 */
struct pl_op_sink {
	void (*ops)(void *arg, const struct pl_op *ops, size_t n);
	void (*nack)(
		void *arg, const struct pl_addr *to, uint16_t port, const void *bytes, size_t n);
	void *arg;
	/* Called with the key, as it was reported, of a slot of a key-write store, before the
	 * slot's operation. NULL: keys are not wanted. */
	void (*key)(void *arg, uint16_t store, uint64_t slot, const void *key, size_t key_bytes);
};
