/* SPDX-License-Identifier: BSD-2-Clause */
/* Within decode/: reports, and what is shared with packets that carry INT themselves. */
#pragma once

#include "decode/internal.h"

/* All reports of one datagram. The verdict is the first that was not OK; reports before and after a bad one
 * are kept when their lengths allow. cut: the capture holds less than the datagram. */
enum pl_verdict decode_reports(struct job *j, struct pl_cursor datagram,
	const struct pl_addr *exporter, uint16_t exporter_port, bool instrumented, bool cut);

/* The usual report, see fast.c; false and nothing changed when the packet is any other. */
bool decode_usual(struct job *j);

/* The rest of account(): a number that is not the next one. */
__attribute__((cold)) void account_unusual(
	struct job *j, struct exporter *e, uint32_t seq, unsigned int bits);

/* A number for somebody else's books. */
void account_elsewhere(struct job *j, const struct pl_addr *addr, uint64_t node, uint8_t hw_id,
	uint32_t seq, uint8_t version);

/* The sequence number of one datagram, into its exporter's books. */
static inline __attribute__((always_inline)) void account(struct job *j, const struct pl_addr *addr,
	uint64_t node, uint8_t hw_id, uint32_t seq, uint8_t version)
{
	const uint32_t mask = version == PL_REPORT_V20 ? 0x3fffff : UINT32_MAX;
	struct exporter *e;

	if (__builtin_expect(j->d->opt.number != NULL, 0)) {
		account_elsewhere(j, addr, node, hw_id, seq & mask, version);
		return;
	}
	e = exporters_get(&j->d->exporters, addr, node, hw_id);
	if (__builtin_expect(e == NULL, 0)) {
		j->d->sum.exporters_full++;
		return;
	}
	e->last_ts_ns = j->pkt->ts_ns;
	e->report_version = version;
	if (__builtin_expect(!pl_sequence_next(&e->seq, seq, mask), 0))
		account_unusual(j, e, seq & mask, version == PL_REPORT_V20 ? 22 : 32);
}

/* What counts in a sequence. The record has it too, but written in one piece: reading parts of that back would
 * wait for it. */
struct number {
	uint32_t node, seq;
	uint8_t hw_id, version;
};

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

/* What an INT header says about the path as a whole. */
void path_from_int(struct job *j, struct pl_path *path, const struct pl_int *in);
