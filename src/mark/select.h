/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets chosen by a hash of the bytes that no router changes (RFC 5475, RFC 9342 7): points along
 * a path choose the same ones without a mark (zero marking), or beside a colour (hashed marking),
 * and compare their times. A block keeps as many as it has room for: when it is full, one more bit
 * of the hash must be 0, and half of the samples are dropped.
 *
 * The hash is BOB (RFC 5475 A.2). It leaves out TTL, checksums, type of service and traffic class,
 * where marks are; of IPv4's flags the reserved bit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/layers.h"

#define PL_MARK_PAYLOAD_BYTES 16u /* bytes behind the IP header that the hash includes */

uint32_t pl_mark_bob(const uint8_t *bytes, uint32_t n, uint32_t start);

/* Returns the hash of a packet that has an IP header. */
uint32_t pl_mark_select_hash(const struct pl_layers *layers, uint32_t start);

struct pl_mark_sample {
	uint32_t hash;
	uint64_t time_ns;
};

/* Samples of a flow's block, or of all flows, in the caller's memory. */
struct pl_mark_samples {
	struct pl_mark_sample *samples;
	uint32_t n, room; /* room: 2 at least */
	uint32_t bits;    /* low bits of a hash that must be 0 */
};

void pl_mark_samples_init(struct pl_mark_samples *s, struct pl_mark_sample *samples, uint32_t room);
void pl_mark_samples_add(struct pl_mark_samples *s, uint32_t hash, uint64_t time_ns);

struct pl_mark_matched {
	uint32_t bits;                   /* the larger number of bits, which counts for both */
	uint32_t sampled, matched, lost; /* sampled = matched + lost + doubles */
	uint32_t doubles; /* the second point has the hash more than once: no delay */
};

/* Writes delays like pl_mark_samples_delays(), and counts what became of the samples of `from`; a
 * hash that `from` has twice is no sample. */
void pl_mark_samples_match(struct pl_mark_matched *ret, int64_t *ret_ns,
	struct pl_mark_samples *from, struct pl_mark_samples *to);

/* Writes the delays of packets that both points sampled, ascending, into room for as many as `from`
 * has; returns their number. The larger number of bits counts for both, and a hash that a point has
 * twice is left out. Reorders the samples. */
uint32_t pl_mark_samples_delays(
	int64_t *ret_ns, struct pl_mark_samples *from, struct pl_mark_samples *to);
