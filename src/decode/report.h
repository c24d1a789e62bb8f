/* SPDX-License-Identifier: BSD-2-Clause */
/* Within decode/: reports, and what is shared with packets that carry INT themselves. */
#pragma once

#include "decode/internal.h"

/* All reports of one datagram. The verdict is the first that was not OK; reports before and after a
 * bad one are kept when their lengths allow. cut: the capture holds less than the datagram. */
enum pl_verdict decode_reports(struct job *j, struct pl_cursor datagram,
	const struct pl_addr *exporter, uint16_t exporter_port, bool instrumented, bool cut);

/* The usual report, see fast.c; false and nothing changed when the packet is any other. */
bool decode_usual(struct job *j);

/* The values that sequence accounting reads. The record has them, too, but was just written in one
 * piece: reading parts of it back would stall until the write is done. */
struct number {
	uint64_t node;
	uint32_t seq;
	uint8_t hw_id, version;
};

static inline uint32_t number_mask(const struct number *n)
{
	return n->version == PL_REPORT_V20 ? 0x3fffff : UINT32_MAX;
}

/* Of the report header at u. */
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

/* The rest of account(): a number that is not the next one of its exporter, or e is NULL and it is
 * the first. */
__attribute__((cold)) bool account_unusual(
	struct job *j, struct exporter *e, const struct pl_addr *addr, const struct number *n);

/* A number for somebody else's books; whether the exporter is proven there. */
bool account_elsewhere(struct job *j, const struct pl_addr *addr, const struct number *n);

/* The sequence number of one datagram, into its exporter's books. Whether the exporter is
 * proven. */
static inline __attribute__((always_inline)) bool account(
	struct job *j, const struct pl_addr *addr, const struct number *n)
{
	struct exporter *e;

	if (__builtin_expect(j->d->opt.number != NULL, 0))
		return account_elsewhere(j, addr, n);
	e = exporters_get(&j->d->exporters, addr, n->node, n->hw_id);
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
