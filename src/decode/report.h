/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports, and functions shared with packets that carry INT themselves. Within decode/. */
#pragma once

#include "decode/internal.h"

/* Decodes all reports of one datagram. The verdict is the first that was not OK; reports before and
 * after a bad one are kept when their lengths allow. cut: the capture holds less than the
 * datagram. */
enum pl_verdict decode_reports(struct job *j, struct pl_cursor datagram,
	const struct pl_addr *exporter, uint16_t exporter_port, bool instrumented, bool cut);

/* Decodes a common report, see fast.c; false, with nothing changed, for any other packet. */
bool decode_usual(struct job *j);

/* Values for sequence accounting. The record has them, too, but was just written in one piece:
 * reading parts of it back would stall until the write is done. */
struct number {
	uint64_t node;
	uint32_t seq;
	uint8_t hw_id, version;
};

static inline uint32_t number_mask(const struct number *n)
{
	return n->version == PL_REPORT_V20 ? 0x3fffff : UINT32_MAX;
}

/* Reads them from the report header at u. */
static inline struct number number_of(const uint8_t *u, uint8_t version)
{
	const bool v20 = version == PL_REPORT_V20;

	return (struct number){
		.node = pl_be32(u + 4),
		.seq = v20 ? pl_be32(u) & 0x3fffff : pl_be32(u + 8),
		.hw_id = v20 ? pl_be16(u) >> 6 & 0x3f : u[3] & 0x3f,
		.version = version,
	};
}

/* Rest of account(), for a number that is not the next one of its exporter, or the first: then e is
 * NULL. */
__attribute__((cold)) bool account_unusual(
	struct job *j, struct pl_seq_space *e, const struct pl_addr *addr, const struct number *n);

/* Counts a number in an account outside the decoder. True when the exporter is proven there. */
bool account_elsewhere(struct job *j, const struct pl_addr *addr, const struct number *n);

/* Counts the sequence number of one datagram in its exporter's account. True when the exporter is
 * proven. */
static inline __attribute__((always_inline)) bool account(
	struct job *j, const struct pl_addr *addr, const struct number *n)
{
	struct pl_seq_space *e;

	if (__builtin_expect(j->d->opt.number != NULL, 0))
		return account_elsewhere(j, addr, n);
	e = pl_seq_spaces_get(&j->d->exporters, addr, n->node, n->hw_id);
	if (__builtin_expect(e == NULL, 0))
		return account_unusual(j, NULL, addr, n);
	e->last_ts_ns = j->pkt->ts_ns;
	e->report_version = n->version;
	return __builtin_expect(pl_sequence_next(&e->seq, n->seq, number_mask(n)), 1) ||
	       account_unusual(j, e, addr, n);
}

/* Marks the report of an exporter that is not proven. */
static inline void set_unproven(struct job *j, struct pl_path *path)
{
	path->flags |= PL_FLAG_UNPROVEN;
	j->d->sum.unproven++;
}

/* Sets the fields of the path from the INT header. */
void path_from_int(struct job *j, struct pl_path *path, const struct pl_int *in);
