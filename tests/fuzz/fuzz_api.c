/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The query of a table of the API, as it stands behind the "?": two lines of input, the table's
 * name and the query. A refusal has a status, a stable code and a sentence; the names of parameters
 * that are known are found and no others; an expression that was accepted is accepted again, and by
 * another table only if that has its columns.
 */
#include "fuzz.h"
#include "pipeline/api.h"
#include "record/where.h"
#include "web/request.h"

static const char *const names[] = { "sort", "where", "limit" };

static void check(const struct pl_api_table *table, const char *query)
{
	char sort[48], where[768], limit[24], unknown[16];
	struct pl_api_problem why = { 0 }, again = { 0 };
	struct pl_api_query q = { 0 };
	int r;

	if (pl_http_query_unknown(query, names, 3, unknown, sizeof(unknown)) == 1)
		must(unknown[0] != '\0' && strlen(unknown) < sizeof(unknown));
	if (pl_http_query_get(query, "sort", sort, sizeof(sort)) == 1)
		q.sort = sort;
	if (pl_http_query_get(query, "where", where, sizeof(where)) == 1)
		q.where = where;
	if (pl_http_query_get(query, "limit", limit, sizeof(limit)) == 1)
		q.limit = strtoull(limit, NULL, 10);
	r = pl_api_check(table, &q, &why);
	must(r == pl_api_check(table, &q, &again));
	if (r == 0)
		return;
	must(why.status == 400 && why.code != NULL && why.diag.text[0] != '\0');
	must(strcmp(why.code, "bad_sort") == 0 || strcmp(why.code, "bad_where") == 0 ||
		strcmp(why.code, "bad_limit") == 0);
	must((strcmp(why.code, "bad_limit") == 0) == (q.limit > PL_API_LIMIT_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pl_api_table *table;
	char *text = malloc(size + 1), *rest = text, *name;

	must(text != NULL);
	if (size > 4096) {
		free(text);
		return 0;
	}
	memcpy(text, data, size);
	text[size] = '\0';
	name = strsep(&rest, "\n");
	table = pl_api_table_find(name);
	if (table == NULL)
		table = pl_api_table_at(0);
	if (rest != NULL)
		check(table, rest);
	free(text);
	return 0;
}
