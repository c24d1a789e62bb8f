/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Screens of top whose pages have neither order nor filter of their own: loss and delay of marked
 * traffic (marks of the configuration), and flows in the caches of taps.
 */
#pragma once

#include <jansson.h>

#include "base/diag.h"
#include "show/top.h"
#include "web/client.h"

#define PL_TOP_SEGMENT_COLUMNS 9
extern const struct pl_top_column pl_top_segment_columns[PL_TOP_SEGMENT_COLUMNS];
#define PL_TOP_TAPPED_COLUMNS 8
extern const struct pl_top_column pl_top_tapped_columns[PL_TOP_TAPPED_COLUMNS];

struct pl_top_page;

/* Returns the page that a view's request is for; NULL: it is for a table of the daemon. */
const struct pl_top_page *pl_top_page_asked(const char *path);
/* Returns the error text for a history, which has no such page. */
const char *pl_top_page_without_daemon(const struct pl_top_page *page);
/* Gets the daemon's page and makes the request's table of it, sorted and cut. Returns 0, or an exit
 * code with diag. */
int pl_top_page_get(struct pl_client *client, const struct pl_top_page *page, const char *path,
	json_t **ret_table, struct pl_diag *diag);
/* Makes the table of the page's document. NULL: out of memory, or another document. */
json_t *pl_top_page_make(const struct pl_top_page *page, const json_t *doc, const char *path);
