/* SPDX-License-Identifier: BSD-2-Clause */
/* Partial results: a table cut into random parts, each run for itself, and the pieces of each
 * window joined in random order, give the rows that one run gives. Damaged pieces are refused. */
#include <errno.h>
#include <sys/resource.h>

#include "base/rng.h"
#include "base/test.h"
#include "query/partial.h"

enum { RECORDS = 1000, ROUNDS = 12, PARTS_MAX = 5, PIECES_MAX = 4096, WIDE = 12000 };

static struct pl_rng rng;
static struct pl_pkt64 packets[WIDE];
static uint32_t n_packets;

static unsigned int below(unsigned int n)
{
	return (unsigned int)pl_rng_below(&rng, n);
}

static const char *const texts[] = {
	"SELECT dst, count(*) AS n, sum(wire_len) AS s, min(ttl) AS a, max(wire_len) AS b, "
	"avg(wire_len) AS m, stddev(wire_len) AS d FROM packets TUMBLE(ts, 10us) GROUP BY dst",
	"SELECT sport, proto, first(dst) AS f, last(ttl) AS l, bit_or(tcp_flags) AS o, "
	"last(sport - dport) AS y, min(sport - dport) AS z, sum(sport - dport) AS w "
	"FROM packets TUMBLE(ts, 20us) GROUP BY sport, proto",
	"SELECT dport, count(distinct src) AS a, count(distinct src, sport) AS b, "
	"approx_distinct(sport) AS c FROM packets HOP(ts, 20us, 5us) GROUP BY dport",
	"SELECT quantile(wire_len, 0.9) AS q, hist(wire_len) AS h, topk(ttl, 3) AS t, "
	"sum(wire_len / 2.0) AS r, avg(double(ttl)) AS v, max(ttl * 1.5) AS x "
	"FROM packets HOP(ts, 30us, 10us)",
	"SELECT src, count(*) AS n FROM packets TUMBLE(ts, 15us) WHERE tcp GROUP BY src "
	"HAVING n >= 5 ORDER BY n DESC LIMIT 3",
	"SELECT a.dst, a.n - b.n AS d FROM "
	"(SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 10us) WHERE syn GROUP BY dst) AS a "
	"LEFT JOIN (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 10us) WHERE fin GROUP BY dst) "
	"AS b ON dst WHERE a.n > 1",
	"SELECT src, count(*) AS many FROM (SELECT src, dst, count(*) AS n FROM packets "
	"TUMBLE(ts, 25us) GROUP BY src, dst) AS a GROUP BY src HAVING many > 2",
	"SELECT a.src AS src, b.dst AS dst, count(*) AS n, sum(b.len) AS s FROM (SELECT src FROM packets "
	"TUMBLE(ts, 10us) WHERE tcp) AS a ZIP (SELECT dst, wire_len AS len FROM packets "
	"TUMBLE(ts, 10us) WHERE ttl > 8) AS b GROUP BY a.src, b.dst HAVING n > 1",
	"SELECT ttl > 32 AS high, coalesce(wire_len / ttl, 7) AS k, count(*) AS n, "
	"sum(wire_len / ttl) AS s, count(wire_len / ttl) AS c FROM packets TUMBLE(ts, 10us) "
	"GROUP BY ttl > 32, coalesce(wire_len / ttl, 7)",
};

/* Times are all different, so that first and last are, too. */
static void make_records(void)
{
	n_packets = 1 + below(RECORDS);
	for (uint32_t i = 0; i < RECORDS; i++) {
		struct pl_pkt64 *p = &packets[i];

		*p = (struct pl_pkt64){ .ts_ns = 1000000 + i * 33 + below(33),
			.sport = (uint16_t)below(20),
			.dport = (uint16_t)below(5),
			.ttl = (uint8_t)below(64),
			.wire_len = (uint16_t)below(1500),
			.proto = below(3) ? 6 : 17,
			.tcp_flags = (uint8_t)below(64),
			.obs = (uint16_t)(i < RECORDS / 3 ? 9 : below(25)) };
		p->src.b[15] = (uint8_t)below(30);
		p->dst.b[15] = (uint8_t)below(10);
	}
}

/* ---- rows as sorted texts ---- */

struct rows {
	char (*text)[512];
	unsigned int n, cap, incomplete;
};

static struct rows want, got;

static size_t put_value(char *to, size_t cap, const struct pl_query_value *v)
{
	if (v->absent)
		return (size_t)snprintf(to, cap, " -");
	if (v->type == PL_QUERY_DOUBLE)
		return (size_t)snprintf(to, cap, " %.7g", v->d);
	if (v->type == PL_QUERY_ADDR)
		return (size_t)snprintf(to, cap, " a%u", v->addr.b[15]);
	if (v->type == PL_QUERY_BOOL)
		return (size_t)snprintf(to, cap, " %d", v->b);
	return (size_t)snprintf(to, cap, " %" PRId64, v->i);
}

static void take_row(void *arg, const struct pl_query_row *row)
{
	struct rows *rows = arg;
	char *to;
	size_t at;

	if (rows->n == rows->cap) {
		rows->cap = rows->cap * 2 + 64;
		rows->text = realloc(rows->text, rows->cap * sizeof(*rows->text));
	}
	to = rows->text[rows->n++];
	rows->incomplete += row->incomplete;
	at = (size_t)snprintf(to, 512, "%08" PRId64 " %08" PRId64, row->start_ns, row->end_ns);
	for (uint32_t i = 0; i < row->n; i++) {
		const struct pl_query_value *v = &row->values[i];

		if (v->type != PL_QUERY_LIST) {
			at += put_value(to + at, 512 - at, v);
			continue;
		}
		/* The counts of topk are exact here: there are fewer values than counters. */
		for (uint32_t k = 0; k < v->list.n && at < 300; k++) {
			at += put_value(to + at, 512 - at, &v->list.items[k].value);
			at += (size_t)snprintf(
				to + at, 512 - at, ":%" PRIu64, v->list.items[k].count);
		}
	}
	at += (size_t)snprintf(to + at, 512 - at, " from %" PRIu64, row->first_ns);
	for (uint32_t i = 0; i < row->n_exp; i++)
		at += (size_t)snprintf(to + at, 512 - at, ",%u", row->exp[i]);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* ---- pieces ---- */

static struct piece {
	int64_t start, end;
	uint8_t *data;
	size_t len;
} pieces[PIECES_MAX];
static unsigned int n_pieces;
static uint32_t piece_max; /* 0: the default */

static void take_piece(void *arg, int64_t start, int64_t end, const void *data, size_t len)
{
	struct piece *p = &pieces[n_pieces];

	(void)arg;
	if (n_pieces == PIECES_MAX)
		return;
	*p = (struct piece){ start, end, malloc(len), len };
	memcpy(p->data, data, len);
	n_pieces++;
}

static void forget_pieces(void)
{
	while (n_pieces > 0)
		free(pieces[--n_pieces].data);
}

static uint32_t longest(void)
{
	size_t most = 0;

	for (unsigned int i = 0; i < n_pieces; i++)
		most = pieces[i].len > most ? pieces[i].len : most;
	return (uint32_t)most;
}

static struct pl_query_run *new_run(
	const struct pl_query *query, const struct pl_query_config *c, struct rows *rows)
{
	struct pl_query_run *run = NULL;

	if (pl_query_run_new(&run, query, c, take_row, rows, NULL) < 0)
		abort();
	return run;
}

static void run_whole(const struct pl_query *query)
{
	const struct pl_query_config c = { .max_groups = 2048, .max_distinct = 1 << 15, .seed = 1 };
	struct pl_query_run *run = new_run(query, &c, &want);

	pl_query_feed(run, PL_FLAT_PKT64, packets, n_packets, 0);
	pl_query_finish(run);
	pl_query_run_free(run);
}

static void run_parts(const struct pl_query *query)
{
	const unsigned int parts = 1 + below(PARTS_MAX);
	static uint8_t part_of[WIDE];
	const unsigned int before = got.n;

	for (uint32_t i = 0; i < n_packets; i++)
		part_of[i] = (uint8_t)below(parts);
	for (unsigned int p = 0; p < parts; p++) {
		const struct pl_query_config c = {
			.max_groups = 2048, .max_distinct = 1 << 15, .seed = 2 + p
		};
		struct pl_query_run *run = new_run(query, &c, &got);

		pl_query_partial_from(run, take_piece, NULL);
		if (piece_max != 0)
			pl_query_partial_limit(run, piece_max);
		for (uint32_t i = 0; i < n_packets; i++) {
			if (part_of[i] == p)
				pl_query_feed(run, PL_FLAT_PKT64, &packets[i], 1, 0);
		}
		pl_query_finish(run);
		pl_query_run_free(run);
	}
	if (got.n != before)
		printf("# a run of partial results gave rows\n");
	for (unsigned int i = n_pieces; i > 1; i--) {
		const unsigned int k = below(i);
		struct piece t = pieces[i - 1];

		pieces[i - 1] = pieces[k];
		pieces[k] = t;
	}
}

static bool merge(const struct pl_query *query)
{
	const struct pl_query_config c = {
		.max_groups = 2048, .max_distinct = 1 << 15, .seed = 9, .max_windows = 4
	};
	struct pl_query_run *run = new_run(query, &c, &got);
	bool good = true;

	for (unsigned int i = 0; i < n_pieces; i++) {
		const struct piece *p = &pieces[i];
		bool first = true;
		int64_t start, end;

		good = good && pl_query_partial_check(query, p->data, p->len, &start, &end) == 0 &&
		       start == p->start && end == p->end;
		for (unsigned int k = 0; k < i; k++)
			first = first && pieces[k].end != p->end;
		if (!first)
			continue;
		for (unsigned int k = i; k < n_pieces; k++) {
			if (pieces[k].end == p->end)
				good = good && pl_query_partial_add(
						       run, pieces[k].data, pieces[k].len) == 0;
		}
		pl_query_partial_close(run, p->start, p->end, false);
	}
	pl_query_run_free(run);
	return good;
}

static bool same_rows(void)
{
	bool good = want.n == got.n && want.incomplete == got.incomplete;

	if (want.n > 0)
		qsort(want.text, want.n, sizeof(*want.text), by_text);
	if (got.n > 0)
		qsort(got.text, got.n, sizeof(*got.text), by_text);
	for (unsigned int i = 0; good && i < want.n; i++) {
		good = strcmp(want.text[i], got.text[i]) == 0;
		if (!good)
			printf("# want %s\n# got  %s\n", want.text[i], got.text[i]);
	}
	return good;
}

static struct pl_query *parse(const char *text)
{
	struct pl_diag diag = { .text = "" };
	struct pl_query *query = NULL;

	if (!ok(pl_query_parse(&query, text, &diag) == 0, "%s", text)) {
		printf("# %s\n", diag.text);
		exit(pl_test_done());
	}
	return query;
}

static bool round_of(const struct pl_query *query)
{
	bool good;

	want.n = got.n = want.incomplete = got.incomplete = 0;
	run_whole(query);
	run_parts(query);
	good = merge(query) && same_rows();
	if (!good)
		printf("# %u packets, %u pieces, %u rows, wanted %u\n", n_packets, n_pieces, got.n,
			want.n);
	forget_pieces();
	return good;
}

static void test_random(void)
{
	for (unsigned int t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
		struct pl_query *query = parse(texts[t]);
		unsigned int good = 0, rows = 0;

		eq(pl_query_split(query, 1, NULL), PL_QUERY_TWO_STAGES);
		for (int i = 0; i < ROUNDS; i++) {
			make_records();
			good += round_of(query);
			rows += want.n;
		}
		eq(good, ROUNDS, "parts give what the whole gives");
		ok(rows > 0, "there were rows");
		pl_query_free(query);
	}
}

/* A set that goes over several pieces. */
static void test_large_sets(void)
{
	struct pl_query *query = parse("SELECT count(distinct src, sport) AS a, count(*) AS n, "
				       "count(distinct wire_len) AS b FROM packets TUMBLE(ts, 1s)");

	n_packets = WIDE;
	for (uint32_t i = 0; i < WIDE; i++) {
		packets[i] = (struct pl_pkt64){ .ts_ns = i, .sport = (uint16_t)(i % 10000) };
		packets[i].wire_len = (uint16_t)(i % 7);
	}
	ok(round_of(query), "sets in several pieces");
	ok(want.n == 1 && strstr(want.text[0], " 10000 12000 7") != NULL, "%s", want.text[0]);
	pl_query_free(query);
}

/* Pieces are as short as they have to be, and the rows are the same. */
static void test_short_pieces(void)
{
	for (unsigned int t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
		struct pl_query *query = parse(texts[t]);
		const uint32_t least = pl_query_partial_least(query);
		unsigned int good = 0;
		uint32_t most;

		for (unsigned int i = 0; i < 4; i++) {
			make_records();
			piece_max = least + below(300);
			good += round_of(query);
		}
		eq(good, 4, "pieces of at most %u bytes give the same rows", piece_max);
		piece_max = least;
		run_parts(query);
		most = longest();
		ok(most <= piece_max, "the longest has %u", most);
		forget_pieces();
		piece_max = 0;
		n_packets = RECORDS;
		run_parts(query);
		/* One group is in one piece. */
		ok(longest() > most || strstr(texts[t], "GROUP BY") == NULL,
			"%u without that limit", longest());
		forget_pieces();
		pl_query_free(query);
	}
}

/* A window that is as long as those of the question, and lies between them, would be a result of
 * its own. */
static void test_off_the_grid(void)
{
	static const struct {
		const char *text;
		int64_t step;
	} cases[] = {
		{ "SELECT count(*) AS n FROM packets TUMBLE(ts, 10us)", 10000 },
		{ "SELECT dport, count(*) AS n FROM packets HOP(ts, 20us, 5us) GROUP BY dport",
			5000 },
	};
	static const int64_t moves[] = { 1, -1, 2500, 5000, 10000, -10000 };
	struct pl_query_run *run;

	for (unsigned int c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		const struct pl_query_config config = { .max_groups = 64, .max_windows = 4 };
		struct pl_query *query = parse(cases[c].text);

		make_records();
		run_parts(query);
		run = new_run(query, &config, &got);
		for (unsigned int m = 0; m < sizeof(moves) / sizeof(moves[0]); m++) {
			const int want_r = moves[m] % cases[c].step == 0 ? 0 : -EBADMSG;
			int64_t window[2];

			memcpy(window, pieces[0].data + 16, sizeof(window));
			window[0] += moves[m];
			window[1] += moves[m];
			memcpy(pieces[0].data + 16, window, sizeof(window));
			ok(pl_query_partial_check(query, pieces[0].data, pieces[0].len, &window[0],
				   &window[1]) == want_r,
				"steps of %" PRId64 " ns, moved by %" PRId64, cases[c].step,
				moves[m]);
			ok(pl_query_partial_add(run, pieces[0].data, pieces[0].len) == want_r,
				"added");
			window[0] = pieces[0].start;
			window[1] = pieces[0].end;
			memcpy(pieces[0].data + 16, window, sizeof(window));
		}
		pl_query_run_free(run);
		forget_pieces();
		pl_query_free(query);
	}
}

/* Any change of a byte, and any length that is cut, is refused or is another good piece. */
static void test_damaged(void)
{
	for (unsigned int t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
		struct pl_query *query = parse(texts[t]);
		const struct pl_query_config c = { .max_groups = 64, .max_windows = 4 };
		struct pl_query_run *run;
		unsigned int cut = 0, kept = 0;
		uint8_t copy[2048];

		make_records();
		n_packets = n_packets < 20 ? n_packets : 20;
		run_parts(query);
		run = new_run(query, &c, &got);
		for (size_t len = 0; len < pieces[0].len; len++)
			cut += pl_query_partial_add(run, pieces[0].data, len) == -EBADMSG;
		eq(cut, pieces[0].len, "a piece that is cut");
		for (int i = 0; i < 3000 && pieces[0].len <= sizeof(copy); i++) {
			memcpy(copy, pieces[0].data, pieces[0].len);
			copy[below((unsigned int)pieces[0].len)] ^= (uint8_t)(1 + below(255));
			kept += pl_query_partial_add(run, copy, pieces[0].len) == 0;
			if (i % 50 == 0)
				pl_query_partial_close(run, 0, 10, false);
		}
		ok(kept < 3000, "of 3000 damaged pieces %u read as others", kept);
		pl_query_partial_close(run, 0, 10, false);
		pl_query_run_free(run);
		forget_pieces();
		pl_query_free(query);
		got.n = 0;
	}
}

/* A piece tells the records that came too late since the piece before, whichever windows they were
 * of; rows of the window have the sum. Another version is refused. */
static void late_row(void *arg, const struct pl_query_row *row)
{
	*(uint64_t *)arg += row->late;
}

static void test_late(void)
{
	static const uint64_t times[2][6] = { { 5, 15, 6, 7, 25, 35 }, { 5, 9, 16, 8, 26, 38 } };
	struct pl_query *query =
		parse("SELECT sport, count(*) AS n FROM packets TUMBLE(ts, 10ns) GROUP BY sport");
	const struct pl_query_config c = { .lateness_ns = PL_QUERY_NO_LATENESS };
	struct pl_query_run *run;
	uint64_t late = 0;

	n_pieces = 0;
	for (unsigned int part = 0; part < 2; part++) {
		run = new_run(query, &c, &got);
		pl_query_partial_from(run, take_piece, NULL);
		for (unsigned int i = 0; i < 6; i++)
			pl_query_feed(run, PL_FLAT_PKT64,
				&(struct pl_pkt64){ .ts_ns = times[part][i] }, 1, 0);
		pl_query_finish(run);
		pl_query_run_free(run);
	}
	if (pl_query_run_new(&run, query, &c, late_row, &late, NULL) < 0)
		abort();
	for (unsigned int w = 0; w < 4; w++) {
		late = 0;
		for (unsigned int i = 0; i < n_pieces; i++) {
			if (pieces[i].start == (int64_t)w * 10)
				eq(pl_query_partial_add(run, pieces[i].data, pieces[i].len), 0);
		}
		pl_query_partial_close(run, (int64_t)w * 10, (int64_t)w * 10 + 10, false);
		eq(late, w == 1 ? 3 : 0, "late before window %u closed", w);
	}
	pieces[0].data[4]--;
	eq(pl_query_partial_add(run, pieces[0].data, pieces[0].len), -EBADMSG,
		"a piece of the version before");
	pl_query_run_free(run);
	forget_pieces();
	pl_query_free(query);
}

static void test_plans(void)
{
	static const struct {
		const char *text;
		enum pl_query_split split;
	} of[] = {
		{ "packets | where tcp", PL_QUERY_BY_PARTITION },
		{ "SELECT src, dst, sport, dport, proto, count(*) AS n FROM packets TUMBLE(ts, 1s) "
		  "GROUP BY src, dst, sport, dport, proto",
			PL_QUERY_BY_PARTITION },
		{ "SELECT src, dst, sport, dport, proto, count(*) AS n FROM packets TUMBLE(ts, 1s) "
		  "GROUP BY src, dst, sport, dport, proto ORDER BY n LIMIT 2",
			PL_QUERY_TWO_STAGES },
		{ "SELECT client, server, count(*) AS n FROM dns TUMBLE(ts, 1s) "
		  "GROUP BY client, server",
			PL_QUERY_BY_PARTITION },
		{ "SELECT src, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY src "
		  "HAVING n > 5 EMIT FIRST",
			PL_QUERY_NO_SPLIT },
		{ "SELECT src, count(*) AS n FROM packets GROUP BY src", PL_QUERY_NO_SPLIT },
		{ "SELECT src FROM packets LIMIT 5", PL_QUERY_NO_SPLIT },
		{ "SELECT a.src FROM packets AS a JOIN packets AS b ON src, dst WITHIN 1s",
			PL_QUERY_NO_SPLIT },
		{ "SELECT a.src FROM packets AS a JOIN packets AS b ON src, dst, sport, dport, proto "
		  "WITHIN 1s",
			PL_QUERY_BY_PARTITION },
		{ "SELECT a.src FROM packets AS a ANTI JOIN packets AS b ON a.src = b.dst AND a.dst = "
		  "b.src AND a.sport = b.dport AND a.dport = b.sport AND proto WITHIN 1s",
			PL_QUERY_BY_PARTITION },
		{ "SELECT a.src FROM packets AS a ANTI JOIN packets AS b ON a.src = b.dst AND a.dst = "
		  "b.src AND sport AND dport AND proto WITHIN 1s",
			PL_QUERY_NO_SPLIT },
		{ "SELECT a.src, count(*) AS n FROM packets96 TUMBLE(ts, 1s) AS a JOIN packets96 AS b "
		  "ON flow_hash WITHIN 1s GROUP BY a.src",
			PL_QUERY_TWO_STAGES },
		{ "SELECT a.src, b.dst, a.sport, a.dport, a.proto, count(*) AS n FROM packets96 "
		  "TUMBLE(ts, 1s) AS a JOIN packets96 AS b ON flow_hash WITHIN 1s "
		  "GROUP BY a.src, b.dst, a.sport, a.dport, a.proto",
			PL_QUERY_TWO_STAGES },
		{ "SELECT b.flow_hash, count(*) AS n FROM packets96 TUMBLE(ts, 1s) AS a JOIN packets96 "
		  "AS b ON flow_hash WITHIN 1s GROUP BY b.flow_hash",
			PL_QUERY_BY_PARTITION },
		{ "SELECT server, count(*) AS n FROM dns TUMBLE(ts, 1s) AS q ANTI JOIN (SELECT * FROM "
		  "dns WHERE response) AS r ON client, server, id WITHIN 2s GROUP BY server",
			PL_QUERY_TWO_STAGES },
		{ "SELECT a.src FROM packets AS a JOIN packets96 AS b ON src, dst, sport, dport, proto "
		  "WITHIN 1s",
			PL_QUERY_NO_SPLIT },
		{ "SELECT a.src, count(*) AS n FROM (SELECT src FROM packets TUMBLE(ts, 1s) WHERE tcp) AS a "
		  "ZIP (SELECT dst FROM packets TUMBLE(ts, 1s)) AS b GROUP BY a.src",
			PL_QUERY_TWO_STAGES },
		{ "FOLD f (n = 0) STEP { n = n + 1, EMIT } SELECT a.src, count(*) AS n FROM (SELECT src "
		  "FROM packets TUMBLE(ts, 1s)) AS a ZIP (SELECT src, f.n FROM packets GROUP BY src, dst, "
		  "sport, dport, proto) AS b GROUP BY a.src",
			PL_QUERY_NO_SPLIT },
		{ "SELECT a.src FROM (SELECT src FROM packets) AS a ZIP (SELECT dst FROM packets) AS b",
			PL_QUERY_BY_PARTITION },
		{ "FOLD f (n = 0) STEP { n = n + 1, EMIT WHEN n > 5 } SELECT a.src FROM (SELECT src "
		  "FROM packets TUMBLE(ts, 1s)) AS a ZIP (SELECT src, f.n FROM packets GROUP BY src) AS b",
			PL_QUERY_NO_SPLIT },
		{ "FOLD f (n = 0) STEP { n = n + 1, EMIT WHEN n > 5 } SELECT a.src, b.n FROM (SELECT src "
		  "FROM packets TUMBLE(ts, 1s)) AS a ZIP (SELECT src, f.n FROM packets GROUP BY src, dst, "
		  "sport, dport, proto) AS b",
			PL_QUERY_BY_PARTITION },
	};
	struct pl_query *a = parse(texts[0]), *b = parse(texts[1]);
	struct pl_query_run *run = NULL;
	const char *why;

	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct pl_query *query = parse(of[i].text);

		const enum pl_query_split split = pl_query_split(query, 1, &why);

		eq(split, of[i].split, "%s", why);
		ok(pl_query_split(query, 2, &why) != PL_QUERY_BY_PARTITION || i == 0 ||
				strstr(of[i].text, "ZIP") != NULL,
			"of two topics each row is of one record: %s", why);
		pl_query_free(query);
	}
	make_records();
	run_parts(a);
	run = new_run(b, NULL, &got);
	eq(pl_query_partial_add(run, pieces[0].data, pieces[0].len), -EBADMSG, "another plan");
	pl_query_run_free(run);
	forget_pieces();
	pl_query_free(a);
	pl_query_free(b);
}

/* A run that begins again at the oldest record it needs, behind what was done, gives the windows that
 * were not closed and the pairs that were not given, and none twice. */
static bool begin_again(struct pl_query *query)
{
	const struct pl_query_config c = {
		.max_groups = 2048, .max_distinct = 1 << 15, .lateness_ns = 5000, .seed = 3
	};
	struct pl_query_run *run = new_run(query, &c, &want);
	uint64_t oldest, at;
	int64_t done;

	for (at = 0; at < n_packets; at++)
		pl_query_feed(run, PL_FLAT_PKT64, &packets[at], 1, 0);
	pl_query_run_close_open(run);
	pl_query_run_free(run);
	run = new_run(query, &c, &got);
	for (at = 0; at < n_packets; at++) {
		pl_query_run_at(run, at);
		pl_query_feed(run, PL_FLAT_PKT64, &packets[at], 1, 0);
		if (below(200) != 0)
			continue;
		if (pl_query_run_oldest(run, &oldest))
			at = oldest - 1;
		done = pl_query_run_done(run);
		pl_query_run_free(run);
		run = new_run(query, &c, &got);
		pl_query_run_resume(run, done);
		eq(pl_query_run_done(run), done, "what was done stays so");
	}
	pl_query_run_close_open(run);
	pl_query_run_free(run);
	return same_rows();
}

static void test_places(void)
{
	static const char *const of[] = {
		"SELECT dport, count(distinct src) AS a, count(distinct src, sport) AS b FROM packets "
		"HOP(ts, 20us, 5us) GROUP BY dport",
		"SELECT a.sport, a.ts - 0 AS t, b.ts - a.ts AS d FROM packets AS a JOIN packets AS b "
		"ON src WITHIN 2us WHERE b.proto = 17",
		"SELECT a.sport, a.ts - 0 AS t, b.ts - a.ts AS d FROM packets AS a LEFT JOIN "
		"(SELECT * FROM packets WHERE proto = 17) AS b ON src, dst WITHIN 3us",
		"SELECT sport, ts - 0 AS t FROM packets AS a ANTI JOIN "
		"(SELECT * FROM packets WHERE proto = 17) AS b ON src WITHIN 3us",
		"SELECT a.dst, count(*) AS n, count(b.ts) AS m FROM packets HOP(ts, 4us, 2us) AS a LEFT "
		"JOIN (SELECT * FROM packets WHERE syn) AS b ON src WITHIN 1us WHERE a.fin GROUP BY a.dst",
		"SELECT a.dst, count(*) AS n FROM packets TUMBLE(ts, 3us) AS a ANTI JOIN "
		"(SELECT * FROM packets WHERE proto = 17) AS b ON src, a.ts > b.ts WITHIN 2us "
		"GROUP BY a.dst",
	};

	for (unsigned int t = 0; t < sizeof(of) / sizeof(of[0]); t++) {
		struct pl_query *query = parse(of[t]);
		unsigned int good = 0, rows = 0;

		for (int i = 0; i < ROUNDS; i++) {
			want.n = got.n = want.incomplete = got.incomplete = 0;
			make_records();
			for (uint32_t k = 0; k + 1 < n_packets; k += 2)
				packets[k].ts_ns += below(4000);
			good += begin_again(query);
			rows += want.n;
		}
		eq(good, ROUNDS, "begun again, each row once: %s", of[t]);
		ok(rows > 0, "there were rows");
		pl_query_free(query);
	}
}

/* A piece that has no memory is counted, and a piece that needs none tells that it is lost. */
static void test_no_memory(void)
{
#ifndef __SANITIZE_ADDRESS__ /* ends the process instead */
	struct pl_query *query =
		parse("SELECT sport, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY sport");
	const struct pl_query_config c = { .max_groups = WIDE, .seed = 1 };
	struct pl_query_run *run = new_run(query, &c, &got);
	void *taken = NULL, **more; /* all blocks that are free, each with the next */
	struct rlimit before, none;
	unsigned int told = 0;
	uint32_t flags;

	for (uint32_t i = 0; i < WIDE; i++)
		packets[i] = (struct pl_pkt64){ .ts_ns = i, .sport = (uint16_t)i };
	pl_query_partial_from(run, take_piece, NULL);
	pl_query_partial_limit(run, 1 << 30); /* one piece, which is large */
	pl_query_feed(run, PL_FLAT_PKT64, packets, WIDE, 0);
	getrlimit(RLIMIT_AS, &before);
	none = (struct rlimit){ 1, before.rlim_max };
	setrlimit(RLIMIT_AS, &none);
	while ((more = malloc(1 << 16)) != NULL) {
		*more = taken;
		taken = more;
	}
	pl_query_finish(run);
	setrlimit(RLIMIT_AS, &before);
	while ((more = taken) != NULL) {
		taken = *more;
		free(more);
	}
	for (unsigned int i = 0; i < n_pieces; i++) {
		memcpy(&flags, pieces[i].data + 32, sizeof(flags));
		told += flags & 1;
	}
	ok(pl_query_run_stats(run)->groups_refused > 0, "groups are lost, and counted");
	ok(told > 0, "pieces tell so");
	forget_pieces();
	pl_query_run_free(run);
	pl_query_free(query);
#endif
}

int main(int argc, char **argv)
{
	const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20261125;

	printf("# seed %" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	test_random();
	test_large_sets();
	test_short_pieces();
	test_off_the_grid();
	test_damaged();
	test_late();
	test_plans();
	test_places();
	test_no_memory();
	free(want.text);
	free(got.text);
	return pl_test_done();
}
