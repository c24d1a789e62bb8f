/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans of counts: which questions have one, and why others do not; and the rows of questions that
 * have one over random records, which a table as the kernel's counts, small enough to be full at
 * times, against the rows of the same question over the records alone.
 */
#include "lang/push_counts.h"

#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"
#include "lang/push.h"
#include "query/query.h"

#define SEEDS   20
#define RECORDS 3000
#define ROOM    24 /* keys of the table */
#define ROWS    20000

/* ---- known questions ---- */

static const struct {
	const char *question;
	const char *by; /* the columns, or a word of the reason why it is not counted */
	bool plan;
} known[] = {
	{ "SELECT count(*) AS n FROM packets", "nothing", true },
	{ "SELECT dst, dport, count(*) AS n, sum(wire_len) AS b FROM packets TUMBLE(ts, 1s) WHERE udp GROUP BY dst, dport",
		"dst, dport", true },
	{ "SELECT src, dst, sport, dport, proto, avg(pay_len) AS b FROM packets96 HOP(ts, 10s, 1s) "
	  "WHERE vlan = 7 GROUP BY src, dst, sport, dport, proto HAVING avg(pay_len) > 10",
		"src, dst, sport, dport, proto", true },
	{ "SELECT dst in (10.0.0.0/8) AS d, tos / 4 AS dscp, count(*) AS n FROM packets GROUP BY dst in (10.0.0.0/8), tos / 4",
		"dst, tos", true },
	{ "SELECT vlan, label, out, count(*) AS n FROM packets96 GROUP BY vlan, label, out ORDER BY n DESC LIMIT 3",
		"vlan, label, out", true },
	{ "SELECT dst, max(pay_len) AS m, count(distinct sport) AS s FROM packets WHERE syn_only GROUP BY dst",
		"dst, pay_len, sport", true },
	{ "SELECT dst, count(*) AS n FROM packets WHERE ttl < 3 GROUP BY dst", "rules", false },
	{ "SELECT dst, dport FROM packets", "one packet", false },
	{ "SELECT dst, count(*) AS n FROM packets GROUP BY dst LIMIT 3", "LIMIT", false },
	{ "SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY dst HAVING count(*) > 9 EMIT FIRST",
		"EMIT FIRST", false },
	{ "SELECT dst, count(*) AS n FROM packets SESSION(ts, 1s) GROUP BY dst", "session", false },
	{ "SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1ms) GROUP BY dst", "10 ms", false },
	{ "SELECT dst, count(*) AS n FROM packets HOP(ts, 1s, 999ms) GROUP BY dst", "10 ms",
		false },
	{ "SELECT dst, sum(ttl) AS n FROM packets GROUP BY dst", "sums up", false },
	{ "SELECT dst, sum(pay_len * 2) AS n FROM packets GROUP BY dst", "sums up", false },
	{ "SELECT dst, first(sport) AS n FROM packets GROUP BY dst", "order", false },
	{ "SELECT dst, quantile(pay_len, 0.5) AS n FROM packets GROUP BY dst", "needs the records",
		false },
	{ "SELECT dst, count(distinct tcp_seq) AS n FROM packets GROUP BY dst", "each packet",
		false },
	{ "SELECT ts / 1000 AS us, count(*) AS n FROM packets GROUP BY ts / 1000", "each packet",
		false },
	{ "SELECT src, dst, sport, vlan, tcp_opts, flow_hash, obs, count(*) AS n FROM packets96 "
	  "GROUP BY src, dst, sport, vlan, tcp_opts, flow_hash, obs",
		"too many", false },
	{ "SELECT dst, count(*) AS n FROM flows GROUP BY dst", "not read packets", false },
	{ "WITH a AS (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY dst) "
	  "SELECT max(n) AS n FROM a",
		"steps", false },
	{ "SELECT a.src, count(*) AS n FROM packets AS a JOIN packets AS b ON a.src = b.dst WITHIN 100ms "
	  "GROUP BY a.src",
		"steps", false },
};

static void test_known(void)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct pl_diag diag = { .text = "" };
		struct pl_tap_count_plan plan;
		struct pl_query *query;
		struct pl_buf by;
		const char *why;

		if (pl_query_parse(&query, known[i].question, &diag) < 0) {
			ok(false, "%s: %s", known[i].question, diag.text);
			continue;
		}
		why = pl_query_push_counts(query, false, &plan);
		pl_buf_init(&by);
		if (why == NULL)
			pl_query_push_counts_text(query, &by);
		ok((why == NULL) == known[i].plan &&
				(why == NULL ? strcmp(by.data, known[i].by) == 0
					     : strstr(why, known[i].by) != NULL),
			"%s: %s", known[i].question, why != NULL ? why : by.data);
		pl_buf_done(&by);
		pl_query_free(query);
	}
}

/* Masks are of the columns' bits, and a short record has no VLAN. */
static void test_words(void)
{
	struct pl_tap_count_plan plan;
	struct pl_query *query;

	eq(pl_query_parse(&query,
		   "SELECT vlan, out, count(*) AS n FROM packets96 TUMBLE(ts, 2s) GROUP BY vlan, out",
		   NULL),
		0);
	ok(pl_query_push_counts(query, true, &plan) != NULL, "pkt64 has no VLAN");
	ok(pl_query_push_counts(query, false, &plan) == NULL && plan.on && plan.n == 2 &&
			plan.pane_ns == 2000000000,
		"two words, of windows of two seconds");
	ok(plan.at[0] == 56 && plan.mask[0] == (uint64_t)PL_OBS_OUT << 48, "one bit of obs");
	ok(plan.at[1] == 80 && plan.mask[1] == (uint64_t)0xffff << 48, "the VLAN");
	pl_query_free(query);
}

/* ---- counted and recorded ---- */

static struct pl_rng rng;

static uint32_t below(uint32_t n)
{
	return (uint32_t)pl_rng_below(&rng, n);
}

static const char *const questions[] = {
	"SELECT dst, dport, count(*) AS n, sum(wire_len) AS b, avg(pay_len) AS a FROM packets "
	"TUMBLE(ts, 10ms) WHERE udp GROUP BY dst, dport",
	"SELECT src in (10.0.0.0/31) AS s, dport > 50 AS high, count(dport) AS n, sum(pay_len) AS b FROM packets "
	"HOP(ts, 60ms, 20ms) GROUP BY src in (10.0.0.0/31), dport > 50",
	"SELECT vlan, out, max(pay_len) AS m, min(ttl) AS l, bit_or(tcp_flags) AS f, count(*) AS n "
	"FROM packets96 TUMBLE(ts, 30ms) WHERE not (dport >= 22 and dport <= 60) GROUP BY vlan, out",
	"SELECT dst, count(distinct src) AS s, approx_distinct(dport) AS d, count(*) AS n FROM packets "
	"TUMBLE(ts, 50ms) WHERE dst in (10.0.0.0/30, fd00::/8) GROUP BY dst ORDER BY n DESC LIMIT 2",
	"SELECT count(*) AS n, sum(wire_len) AS b FROM packets96 WHERE tcp or vlan = 3",
	"SELECT proto, point, syn_only, count(*) AS n FROM packets GROUP BY proto, point, syn_only "
	"HAVING count(*) > 20",
};

#define ROW_BYTES 216

struct answer {
	uint32_t n;
	uint8_t rows[ROWS][ROW_BYTES]; /* values, and behind them where they are from */
};

static struct answer recorded, counted;

static void take_row(void *arg, const struct pl_query_row *row)
{
	struct answer *a = arg;
	uint8_t *to = a->rows[a->n++];

	memset(to, 0, sizeof(a->rows[0]));
	memcpy(to, &row->start_ns, 8);
	to[8] = row->incomplete;
	memcpy(to + ROW_BYTES - 16, &row->first_ns, 8);
	for (uint32_t i = 0; i < row->n_exp && i < 3; i++)
		memcpy(to + ROW_BYTES - 8 + i * 2, &row->exp[i], 2);
	to[ROW_BYTES - 1] = (uint8_t)row->n_exp;
	for (uint32_t i = 0; i < row->n; i++) {
		to[9 + i * 17] = row->values[i].absent;
		if (!row->values[i].absent)
			memcpy(to + 10 + i * 17, &row->values[i].addr,
				row->values[i].type == PL_QUERY_ADDR   ? 16
				: row->values[i].type == PL_QUERY_BOOL ? 1
								       : 8);
	}
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(recorded.rows[0]));
}

static struct pl_pkt96 record(uint64_t ts_ns)
{
	static const uint8_t protocols[] = { 6, 17, 17, 1 };
	struct pl_pkt96 r = { .ts_ns = ts_ns,
		.sport = (uint16_t)below(65536),
		.dport = (uint16_t)(below(4) * 30),
		.proto = protocols[below(4)],
		.tcp_flags = (uint8_t)(1u << below(6)),
		.ttl = (uint8_t)(60 + below(3)),
		.tos = (uint8_t)below(256),
		.tcp_seq = below(UINT32_MAX),
		.wire_len = (uint16_t)below(65536),
		.pay_len = (uint16_t)(below(3) * 500),
		.obs = (uint16_t)((below(2) ? PL_OBS_OUT : 0) | (below(4) ? 0 : PL_OBS_FRAGMENT)),
		.vlan = (uint16_t)below(4) };

	(void)pl_parse_addr(below(2) ? "10.0.0.0" : "fd00::", &r.src);
	(void)pl_parse_addr(below(3) ? "10.0.0.0" : "fd00::", &r.dst);
	r.src.b[15] = (uint8_t)below(3);
	r.dst.b[15] = (uint8_t)below(8);
	return r;
}

/* The kernel's tables, here one. */
static struct {
	uint32_t n;
	struct pl_tap_count_key keys[ROOM];
	struct pl_tap_count_value values[ROOM];
} table;

static bool count(const struct pl_tap_count_plan *plan, const struct pl_pkt96 *r)
{
	struct pl_tap_count_key key = { pl_tap_count_window(plan->pane_ns, r->ts_ns), { 0 } };
	uint32_t i = 0;

	for (uint32_t w = 0; w < PL_TAP_COUNT_WORDS; w++)
		key.words[w] = pl_tap_count_word(r, plan->at[w], plan->mask[w]);
	while (i < table.n && memcmp(&table.keys[i], &key, sizeof(key)) != 0)
		i++;
	if (i == ROOM)
		return false;
	if (i == table.n) {
		table.values[table.n] = (struct pl_tap_count_value){ .first_ns = r->ts_ns };
		table.keys[table.n++] = key;
	}
	if (r->ts_ns < table.values[i].first_ns)
		table.values[i].first_ns = r->ts_ns;
	table.values[i].packets++;
	table.values[i].wire_bytes += r->wire_len;
	table.values[i].pay_bytes += r->pay_len;
	return true;
}

static void read_table(struct pl_query_run *run, const struct pl_tap_count_plan *plan)
{
	struct pl_tap_count counts[ROOM];

	for (uint32_t i = 0; i < table.n; i++)
		pl_tap_count_make(&counts[i], plan, &table.keys[i], &table.values[i]);
	(void)pl_query_feed_counts(run, counts, table.n);
	table.n = 0;
}

static bool taken(const struct pl_query_push *push, const struct pl_pkt96 *r)
{
	for (uint32_t i = 0; i < push->n; i++) {
		if (pl_tap_rule_matches(&push->rules[i], r))
			return push->rules[i].action == PL_TAP_TAKE;
	}
	return true;
}

static struct pl_query_run *new_run(const struct pl_query *query, struct answer *to)
{
	const struct pl_query_config config = { .max_groups = 4096, .seed = 1 };
	struct pl_query_run *run = NULL;

	to->n = 0;
	if (pl_query_run_new(&run, query, &config, take_row, to, NULL) < 0)
		abort();
	return run;
}

/* How many packets were counted; *ret_records: that became records beside, *ret_late: that were late. */
static uint64_t both(const struct pl_query *query, uint64_t *ret_records, uint64_t *ret_late)
{
	struct pl_query_run *plain = new_run(query, &recorded), *pushed = new_run(query, &counted);
	uint64_t ts_ns = 1000000000 + below(1000000000), n_counted;
	struct pl_tap_count_plan plan;
	struct pl_query_push push;

	(void)pl_query_push_counts(query, false, &plan);
	pl_query_push(query, false, &push);
	pl_query_told(pushed, true);
	for (uint32_t i = 0; i < RECORDS; i++) {
		const struct pl_pkt96 r = record(ts_ns += below(200000));

		(void)pl_query_feed_flat(plain, PL_FLAT_PKT96, &r, 1, 0);
		if (taken(&push, &r) && !count(&plan, &r)) {
			(void)pl_query_feed_flat(pushed, PL_FLAT_PKT96, &r, 1, 0);
			++*ret_records;
		}
		/* Records came in the meantime, of later times too. */
		if (below(100) == 0) {
			read_table(pushed, &plan);
			(void)pl_query_passed(pushed, PL_FLAT_PKT64, ts_ns, 0);
			(void)pl_query_passed(pushed, PL_FLAT_PKT96, ts_ns, 0);
		}
		pl_query_advance(pushed, ts_ns * 100);
	}
	read_table(pushed, &plan);
	pl_query_finish(plain);
	pl_query_finish(pushed);
	*ret_late += pl_query_run_stats(pushed)->late;
	n_counted = pl_query_run_stats(pushed)->counted;
	pl_query_run_free(plain);
	pl_query_run_free(pushed);
	qsort(recorded.rows, recorded.n, sizeof(recorded.rows[0]), by_bytes);
	qsort(counted.rows, counted.n, sizeof(counted.rows[0]), by_bytes);
	return n_counted;
}

static void test_random(const char *question)
{
	struct pl_diag diag = { .text = "" };
	uint64_t counts = 0, records = 0, late = 0;
	struct pl_tap_count_plan plan;
	uint32_t wrong = 0, rows = 0;
	struct pl_query *query;

	if (!ok(pl_query_parse(&query, question, &diag) == 0, "%s %s", question, diag.text))
		return;
	if (!ok(pl_query_push_counts(query, false, &plan) == NULL, "it is counted"))
		return;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		pl_rng_seed(&rng, seed);
		counts += both(query, &records, &late);
		rows += recorded.n;
		if (recorded.n != counted.n ||
			memcmp(recorded.rows, counted.rows,
				recorded.n * sizeof(recorded.rows[0])) != 0) {
			wrong++;
			printf("# seed %" PRIu64 ": %u rows, of records %u\n", seed, counted.n,
				recorded.n);
		}
	}
	ok(rows >= SEEDS, "%u rows", rows);
	eq(wrong, 0,
		"%" PRIu64 " packets as counts and %" PRIu64 " as records have the rows of records",
		counts, records);
	ok(counts > 0 && late == 0, "some were counted, none was late");
	pl_query_free(query);
}

int main(void)
{
	test_known();
	test_words();
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
		test_random(questions[i]);
	return pl_test_done();
}
