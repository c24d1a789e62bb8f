/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables for pathline top without a daemon: queues, links, ports and paths, computed from the
 * reports in a history (memory/history.h), and its events. Each answer includes records written
 * since the last one. For one thread.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/diag.h"

struct pl_top_history;

/* Opens a folder, or one of its files; records older than since_ns are left out. Reports errors on
 * standard error and returns an exit code, 0 on success. */
int pl_top_history_open(struct pl_top_history **ret, const char *from, uint64_t since_ns);
/* Reports losses on standard error. NULL is fine. */
void pl_top_history_close(struct pl_top_history *h);

/* Answers as the daemon does for "/api/v1/TABLE?…", and with a status that has the member
 * "history". Returns 0, or an exit code with diag. */
int pl_top_history_get(struct pl_top_history *h, const char *path, json_t **ret_status,
	json_t **ret_table, struct pl_diag *diag);
