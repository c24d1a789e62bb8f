/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies the nodes of the paths that events name into the book (record/path_book.h), for those who
 * write the events. */
#pragma once

#include "pipeline/worker.h"

/* Looks the paths up in the decoder, or where they are tracked elsewhere. On the worker's thread,
 * before the events leave it. */
void pl_path_notes(const struct pl_event *events, uint32_t n, const struct pl_decode *decode,
	const struct pl_worker_aside *aside);
