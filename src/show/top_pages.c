/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes tables of pages of the daemon that have no order and no filter. */
#include "show/top_pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_code.h"

struct pl_top_page {
	const char *path;
	const char *rows;           /* name of the document's list */
	const char *by;             /* default order */
	bool (*add)(json_t *row);   /* adds members for the screen; NULL: none */
	const char *without_daemon; /* hint when there is no daemon */
};

const struct pl_top_column pl_top_segment_columns[PL_TOP_SEGMENT_COLUMNS] = {
	{ "DOMAIN", "domain", 10, PL_TOP_TEXT },
	{ "SEGMENT", "segment", 20, PL_TOP_TEXT },
	{ "FLOWS", "flows", 6, PL_TOP_NUMBER },
	{ "SENT", "sent", 9, PL_TOP_NUMBER },
	{ "LOST", "loss", 7, PL_TOP_NUMBER },
	{ "IN ALL", "lost", 8, PL_TOP_NUMBER },
	{ "DELAY NS", "delay_ns", 10, PL_TOP_NUMBER },
	{ "MOST NS", "delay_most_ns", 10, PL_TOP_NUMBER },
	{ "ALARMS", "words", 0, PL_TOP_TEXT },
};

const struct pl_top_column pl_top_tapped_columns[PL_TOP_TAPPED_COLUMNS] = {
	{ "TAP", "tap", 8, PL_TOP_TEXT },
	{ "PACKETS", "packets", 8, PL_TOP_NUMBER },
	{ "PER S", "packets", 7, PL_TOP_RATE },
	{ "BYTES", "bytes", 10, PL_TOP_NUMBER },
	{ "RTT", "rtt_ns", 6, PL_TOP_DURATION },
	{ "AGAIN", "retransmitted", 5, PL_TOP_NUMBER },
	{ "IDLE", "idle_ns", 6, PL_TOP_DURATION },
	{ "FLOW", "flow.src", 0, PL_TOP_FLOW },
};

/* Adds a text of the alarms with a plus between them; the list stays. */
static bool add_words(json_t *row)
{
	const json_t *alarms = json_object_get(row, "alarms");
	char text[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < json_array_size(alarms) && at < sizeof(text); i++) {
		const char *word = json_string_value(json_array_get(alarms, i));

		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i > 0 ? "+" : "",
			word != NULL ? word : "?");
	}
	return json_object_set_new(row, "words", json_string(text)) == 0;
}

/* Adds the packets lost since the daemon began. */
static bool add_total(json_t *row)
{
	const json_t *lost = json_object_get(json_object_get(row, "totals"), "lost");

	return !json_is_integer(lost) ||
	       json_object_set_new(row, "lost", json_integer(json_integer_value(lost))) == 0;
}

static bool add_to_segment(json_t *row)
{
	return add_words(row) && add_total(row);
}

static const struct pl_top_page pages[] = {
	{ "/api/v1/segments", "segments", "segment", add_to_segment,
		"a history has no table of segments: 'pathline tail --from NAME.seg192' prints a file of them" },
	{ "/api/v1/tapped", "tapped", "-bytes", NULL,
		"a history has no flows of taps: 'pathline query' asks files and topics of them" },
};

const struct pl_top_page *pl_top_page_asked(const char *path)
{
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		const size_t n = strlen(pages[i].path);

		if (strncmp(path, pages[i].path, n) == 0 && (path[n] == '?' || path[n] == '\0'))
			return &pages[i];
	}
	return NULL;
}

const char *pl_top_page_without_daemon(const struct pl_top_page *page)
{
	return page->without_daemon;
}

/* ---- order ---- */

struct order {
	char key[32];
	bool descending;
	size_t limit;
};

static void read_order(struct order *ret, const struct pl_top_page *page, const char *path)
{
	const char *sort = strstr(path, "sort="), *limit = strstr(path, "limit=");

	*ret = (struct order){ .limit = SIZE_MAX };
	sort = sort != NULL ? sort + strlen("sort=") : page->by;
	ret->descending = *sort == '-';
	sort += ret->descending;
	snprintf(ret->key, sizeof(ret->key), "%.*s", (int)strcspn(sort, "&"), sort);
	if (limit != NULL)
		ret->limit = strtoul(limit + strlen("limit="), NULL, 10);
}

/* Orders two rows; those without the value come last. */
static int compare(const json_t *a, const json_t *b, const struct order *order)
{
	const json_t *x = json_object_get(a, order->key), *y = json_object_get(b, order->key);
	int is;

	if (x == NULL || y == NULL)
		return (x == NULL) - (y == NULL);
	if (json_is_string(x) && json_is_string(y))
		is = strcmp(json_string_value(x), json_string_value(y));
	else
		is = (json_number_value(x) > json_number_value(y)) -
		     (json_number_value(x) < json_number_value(y));
	return order->descending ? -is : is;
}

/* Inserts a row at its place, behind equal ones. */
static int insert(json_t *rows, json_t *row, const struct order *order)
{
	size_t low = 0, high = json_array_size(rows);

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (compare(json_array_get(rows, middle), row, order) > 0)
			high = middle;
		else
			low = middle + 1;
	}
	return json_array_insert_new(rows, low, row);
}

json_t *pl_top_page_make(const struct pl_top_page *page, const json_t *from, const char *path)
{
	const json_t *list = json_object_get(from, page->rows);
	const size_t n = json_array_size(list);
	json_t *doc = json_object(), *rows = json_array();
	struct order order;
	bool good = doc != NULL && rows != NULL;

	read_order(&order, page, path);
	for (size_t i = 0; i < n && good; i++) {
		json_t *row = json_deep_copy(json_array_get(list, i));

		good = row != NULL && json_is_object(row) && (page->add == NULL || page->add(row));
		if (!good)
			json_decref(row);
		else
			good = insert(rows, row, &order) == 0;
		if (good && json_array_size(rows) > order.limit)
			good = json_array_remove(rows, order.limit) == 0;
	}
	good = good && json_object_set(doc, "ts_ns", json_object_get(from, "ts_ns")) == 0 &&
	       json_object_set_new(doc, "total", json_integer((json_int_t)n)) == 0 &&
	       json_object_set_new(doc, "matched", json_integer((json_int_t)n)) == 0 &&
	       json_object_set(doc, "rows", rows) == 0;
	json_decref(rows);
	if (good)
		return doc;
	json_decref(doc);
	return NULL;
}

int pl_top_page_get(struct pl_client *client, const struct pl_top_page *page, const char *path,
	json_t **ret_table, struct pl_diag *diag)
{
	json_t *doc = NULL;
	int code;

	if (strstr(path, "where=") != NULL)
		return pl_diag_fail(diag, PL_EXIT_USAGE,
			"the table %s has no filter: leave out --where", page->rows);
	code = pl_client_get(client, page->path, &doc, diag);
	if (code != 0)
		return code;
	*ret_table = pl_top_page_make(page, doc, path);
	json_decref(doc);
	if (*ret_table != NULL)
		return 0;
	return pl_diag_fail(
		diag, PL_EXIT_FAILED, "the daemon's page %s cannot be read", page->path);
}
