/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What pathline top shows without a daemon: the tables of queues, links, ports and paths made anew
 * out of the reports that a history has (memory/history.h), and its events. Each answer takes in
 * what was written since the one before. One thread.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/diag.h"

struct pl_top_history;

/* A folder, or a file of one; records older than since_ns are left out. Complains; an exit code, 0
 * when good. */
int pl_top_history_open(struct pl_top_history **ret, const char *from, uint64_t since_ns);
/* Tells on standard error what was lost. NULL is fine. */
void pl_top_history_close(struct pl_top_history *h);

/* As the daemon answers "/api/v1/TABLE?…"; and a status with the member "history". 0, or an exit
 * code with diag. */
int pl_top_history_get(struct pl_top_history *h, const char *path, json_t **ret_status,
	json_t **ret_table, struct pl_diag *diag);
