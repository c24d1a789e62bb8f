/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JSON lines driver: writes one object per report, event, value or flat record
 * (record/json.h), appended (O_APPEND) to a file that is rotated by size and age: FILE becomes
 * FILE.1, FILE.1 becomes FILE.2, and so on.
 *
 * Lines are whole: after a short write the rest of the line is written first; if the file is left
 * in between, the torn end is cut off. A torn end found at opening (after a crash) is cut off, too.
 * When the disk is full or fails, up to buffer_bytes wait; further entries are dropped and counted
 * by cause, and a new attempt is made every retry_ns. Nothing is synced to the device: a power cut
 * may lose what the kernel has not written yet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "export/exporter.h"

struct pl_jsonl_options {
	const char *path;      /* copied */
	uint64_t max_bytes;    /* rotates before a file would exceed this; 0: never */
	uint64_t max_age_ns;   /* rotates a file older than this; 0: never */
	unsigned int keep;     /* rotated files kept, at most 1000; 0: 5 */
	unsigned int mode;     /* mode of new files; 0: 0640 */
	uint64_t buffer_bytes; /* most bytes of waiting text; 0: 1 MiB */
	uint64_t retry_ns;     /* between attempts; 0: 1 s */
	bool community_id;     /* flat records of packets and flows have it */
};

/* -errno with diag when the file cannot be opened. */
int pl_jsonl_open(struct pl_export **ret, const struct pl_jsonl_options *options, uint64_t now_ns,
	struct pl_diag *diag);
