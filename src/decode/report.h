/* SPDX-License-Identifier: BSD-2-Clause */
/* Within decode/: reports, and what is shared with packets that carry INT themselves. */
#pragma once

#include "decode/internal.h"

/* All reports of one datagram. The verdict is the first that was not OK; reports before and after a bad one
 * are kept when their lengths allow. */
enum pl_verdict decode_reports(struct job *j, struct pl_cursor datagram,
	const struct pl_addr *exporter, uint16_t exporter_port, bool instrumented);

/* The usual report, see fast.c; false and nothing changed when the packet is any other. */
bool decode_usual(struct job *j);

/* The sequence number of one datagram, into its exporter's books. */
void account(struct job *j, const struct pl_addr *addr, uint64_t node, uint8_t hw_id, uint32_t seq,
	uint8_t version);

/* What an INT header says about the path as a whole. */
void path_from_int(struct job *j, struct pl_path *path, const struct pl_int *in);
