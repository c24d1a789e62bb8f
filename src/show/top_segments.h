/* SPDX-License-Identifier: BSD-2-Clause */
/* The screen of top for loss and delay of marked traffic (marks of the configuration). */
#pragma once

#include <jansson.h>

#include "base/diag.h"
#include "show/top.h"
#include "web/client.h"

#define PL_TOP_SEGMENT_COLUMNS 9
extern const struct pl_top_column pl_top_segment_columns[PL_TOP_SEGMENT_COLUMNS];

/* Whether the request of a view is one for this screen. */
bool pl_top_segments_asked(const char *path);
/* The daemon's page of segments as a table: sorted and cut as the request says. 0, or an exit code
 * with diag. */
int pl_top_segments_get(
	struct pl_client *client, const char *path, json_t **ret_table, struct pl_diag *diag);
/* The same of a page. NULL: out of memory. */
json_t *pl_top_segments_make(const json_t *page, const char *path);
