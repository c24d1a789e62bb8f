/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JSON lines file exporter: one object per report, event and value (record/json.h), appended
 * (O_APPEND) to a file that is rotated by size and age; FILE becomes FILE.1, FILE.1 becomes FILE.2,
 * and so on.
 *
 * Lines are whole: after a short write the rest of the line goes first, before anything else; if
 * the file is left in between, the torn end is cut off. A torn end found when opening (a crash) is
 * cut off too. When the disk is full or fails, up to buffer_bytes wait, what comes beyond is
 * dropped and counted by cause, and each retry_ns a new attempt is made. Nothing is synced to the
 * device: a power cut may lose what the kernel had not written yet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "export/exporter.h"

struct pl_jsonl_options {
	const char *path;         /* copied */
	uint64_t max_bytes;       /* rotate before a file would be larger; 0: never */
	uint64_t max_age_ns;      /* rotate when a file is older; 0: never */
	unsigned int keep;        /* rotated files kept, at most 1000; 0: 5 */
	unsigned int mode;        /* of new files; 0: 0640 */
	uint64_t buffer_bytes;    /* text that may wait; 0: 1 MiB */
	uint64_t retry_ns;        /* 0: 1 s */
	bool no_paths, no_events; /* leave out reports, or events: they are not accepted either */
};

/* -errno with diag when the file cannot be opened. */
int pl_jsonl_open(struct pl_export **ret, const struct pl_jsonl_options *options, uint64_t now_ns,
	struct pl_diag *diag);
