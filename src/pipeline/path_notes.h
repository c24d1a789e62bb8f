/* SPDX-License-Identifier: BSD-2-Clause */
/* The nodes of the paths that events tell of, into the book (record/path_book.h), for those who
 * write the events down. */
#pragma once

#include "pipeline/worker.h"

/* On the worker's thread, before the events leave it. From the decoder's paths, or those that were
 * followed elsewhere. */
void pl_path_notes(const struct pl_event *events, uint32_t n, const struct pl_decode *decode,
	const struct pl_worker_aside *aside);
