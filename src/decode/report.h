/* SPDX-License-Identifier: BSD-2-Clause */
/* Within decode/: reports, and what is shared with packets that carry INT themselves. */
#pragma once

#include "decode/internal.h"

/* All reports of one datagram. The verdict is the first that was not OK; reports before and after a bad one
 * are kept when their lengths allow. */
enum pl_verdict decode_reports(struct job *j, struct pl_cursor datagram,
	const struct pl_addr *exporter, uint16_t exporter_port, bool instrumented);

/* What an INT header says about the path as a whole. */
void path_from_int(struct job *j, struct pl_path *path, const struct pl_int *in);
