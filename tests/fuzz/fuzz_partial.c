/* SPDX-License-Identifier: BSD-2-Clause */
/* Partial results of queries: the first byte chooses the query, the rest is a piece, whose number of
 * the plan is made right. It is refused and leaves nothing, or it is taken, and a row comes of it. */
#include "fuzz.h"
#include "query/partial.h"

static const char *const texts[] = {
	"SELECT dst, count(*) AS n, sum(wire_len) AS s, min(ttl) AS a, avg(wire_len) AS m, "
	"stddev(wire_len) AS d FROM packets TUMBLE(ts, 10us) GROUP BY dst",
	"SELECT sport, proto, first(dst) AS f, last(ttl) AS l, bit_or(tcp_flags) AS o, "
	"min(sport - dport) AS z FROM packets TUMBLE(ts, 20us) GROUP BY sport, proto",
	"SELECT dport, count(distinct src) AS a, count(distinct src, sport) AS b, "
	"approx_distinct(sport) AS c FROM packets HOP(ts, 20us, 5us) GROUP BY dport",
	"SELECT quantile(wire_len, 0.9) AS q, hist(wire_len) AS h, topk(ttl, 3) AS t, "
	"sum(wire_len / 2.0) AS r, max(ttl * 1.5) AS x FROM packets TUMBLE(ts, 30us)",
};

static unsigned int rows;

static void sink(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	must(row->windowed && row->final);
	for (uint32_t i = 0; i < row->n; i++)
		must(row->values[i].absent || row->values[i].type != PL_QUERY_LIST ||
			row->values[i].list.n <= 65);
	rows++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pl_query_config config = { .max_groups = 16, .max_distinct = 32 };
	struct pl_query *query = NULL;
	struct pl_query_run *run = NULL;
	int64_t start, end;
	uint8_t *piece;
	int r;

	if (size < 1)
		return 0;
	must(pl_query_parse(&query, texts[data[0] % 4], NULL) == 0);
	must(pl_query_run_new(&run, query, &config, sink, NULL, NULL) == 0);
	piece = malloc(size);
	memcpy(piece, data + 1, size - 1);
	if (size > 16) {
		const uint64_t plan = pl_query_plan_hash(query);

		memcpy(piece + 8, &plan, sizeof(plan));
	}
	rows = 0;
	r = pl_query_partial_add(run, piece, size - 1);
	must(r != 0 || pl_query_partial_check(query, piece, size - 1, &start, &end) == 0);
	if (r == 0)
		(void)pl_query_partial_add(run, piece, size - 1);
	pl_query_partial_close(run, 0, 10, false);
	must(r == 0 || rows == 0);
	free(piece);
	pl_query_run_free(run);
	pl_query_free(query);
	return 0;
}
