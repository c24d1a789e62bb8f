/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries as text: what is understood, and where errors point. */
#include <errno.h>

#include "base/test.h"
#include "lang/lang.h"

static const struct {
	const char *text;
	unsigned int column;
	const char *says;
} faults[] = {
	{ "", 1, "the query is empty" },
	{ "  -- nothing", 13, "the query is empty" },
	{ "EXPLAIN ", 9, "the query is empty" },
	{ ";", 1, "the query is empty" },
	{ "SELECT src FROM packets;;", 24, "ends a question" },
	{ "SELECT src FROM packets; LIMIT 3", 24, "ends a question" },
	{ "SELECT n FROM (SELECT count(*) AS n FROM packets;) AS a", 49, "ends a question" },
	{ "SELECT n FROM (SELECT count(*) AS n FROM packets;", 49, "expected \")\"" },
	{ "EXPLAIN EXPLAIN SELECT src FROM packets", 9, "expected SELECT" },
	{ "EXPLIAN SELECT src FROM packets", 1, "did you mean \"EXPLAIN\"?" },
	{ "SELEC src FROM packets", 1, "expected SELECT" },
	{ "SELECT", 7, "expected a column" },
	{ "SELECT FROM packets", 8, "expected a column" },
	{ "SELECT src packets", 12, "expected a comma, AS or FROM" },
	{ "SELECT src FROM", 16, "expected a stream" },
	{ "SELECT src FROM paquets", 17, "did you mean \"packets\"?" },
	{ "SELECT src FROM xyzzy", 17, "there are packets, packets96, dns, flows" },
	{ "SELECT scr FROM packets", 8, "did you mean \"src\"?" },
	{ "SELECT src, tcp_seg FROM packets", 13, "did you mean \"tcp_seq\"?" },
	{ "SELECT tsval FROM packets", 8, "unknown column \"tsval\"" },
	{ "SELECT flow_hash FROM packets", 8, "unknown column" },
	{ "SELECT syn FROM flows", 8, "unknown column" },
	{ "SELECT src FROM packets WHERE", 30, "but the query ends" },
	{ "SELECT src FROM packets WHERE src", 31, "WHERE needs a condition" },
	{ "SELECT src FROM packets WHERE src == 5", 35, "type address with one of type unsigned" },
	{ "SELECT src FROM packets WHERE src < 10.0.0.1", 35, "have no order" },
	{ "SELECT src FROM packets WHERE src == 10.0.0.0/8", 38, "behind \"in\" only" },
	{ "SELECT src FROM packets WHERE src in 10.0.0.0/33", 38, "is not a prefix" },
	{ "SELECT src FROM packets WHERE src = 10.0.0.300", 37, "is not an address" },
	{ "SELECT src FROM packets WHERE dport in 10.0.0.0/8", 40, "a prefix needs an address" },
	{ "SELECT src FROM packets WHERE src in 5", 38, "expected a prefix, or a list" },
	{ "SELECT src FROM packets WHERE dport in ()", 41, "expected a column" },
	{ "SELECT src FROM packets WHERE dport in (22, 23", 47, "expected \")\"" },
	{ "SELECT src FROM packets WHERE dport in (22, src)", 45, "compares" },
	{ "SELECT src FROM packets WHERE dport not 22", 41, "expected \"in\"" },
	{ "SELECT src FROM packets WHERE tcp && udp", 35, "\"&&\" is written \"and\"" },
	{ "SELECT src FROM packets WHERE tcp || udp", 35, "\"||\" is written \"or\"" },
	{ "SELECT src FROM packets WHERE !tcp", 31, "\"!\" is written \"not\"" },
	{ "SELECT src FROM packets WHERE tcp and 5", 39, "\"and\" needs a condition" },
	{ "SELECT src FROM packets WHERE tcp + 5 = 6", 31, "needs numbers" },
	{ "SELECT src FROM packets WHERE 1 < dport < 5", 41, "joined by and" },
	{ "SELECT src FROM packets WHERE dport = 99999999999999999999", 39, "64 bits" },
	{ "SELECT src FROM packets WHERE dport = 12abc", 39, "neither a number nor a time" },
	{ "SELECT src FROM packets WHERE dport = 1.5 & 2", 43, "needs integers" },
	{ "SELECT src FROM packets WHERE (tcp", 35, "expected \")\"" },
	{ "SELECT src FROM packets WHERE tcp)", 34, "expected the next clause" },
	{ "SELECT src FROM packets WHERE src = '10.0.0.1", 37, "the quote is not closed" },
	{ "SELECT src FROM packets WHERE src = 'host'", 37, "none of them" },
	{ "SELECT src FROM packets WHERE dport = 5 $", 41, "unexpected \"$\"" },
	{ "SELECT src FROM packets WHERE dport = \x01", 39, "unexpected byte 0x01" },
	{ "SELECT src FROM packets WHERE count(*) > 5", 40, "stand in HAVING" },
	{ "SELECT src FROM packets TUMBLE(ts, 0s)", 36, "a window lasts" },
	{ "SELECT src FROM packets TUMBLE(ts, 5)", 36, "a duration" },
	{ "SELECT src FROM packets TUMBLE(time, 5s)", 32, "expected ts" },
	{ "SELECT src FROM packets TUMBLE ts", 32, "expected \"(\"" },
	{ "SELECT src FROM packets HOP(ts, 5s)", 35, "the step" },
	{ "SELECT src, count(*) FROM packets GROUP BY src WINDOW 0s", 55, "a window lasts" },
	{ "SELECT src, count(*) FROM packets GROUP BY src WINDOW 1s STEP 2s", 63, "longer than" },
	{ "SELECT src FROM packets TUMBLE(ts, 1s) WINDOW 1s", 40, "a window already" },
	{ "SELECT n FROM (SELECT count(*) AS n FROM packets) WINDOW 1s", 51, "of one stream" },
	{ "SELECT src, count(*) FROM packets HAVING src = 1 WINDOW 1s", 50, "in this order" },
	{ "SELECT count(*) FROM packets SESSION(ts, 5)", 42, "a duration" },
	{ "SELECT count(*) FROM packets SESSION(ts, 5s, 1s)", 44, "expected \")\"" },
	{ "SELECT src FROM packets SESSION(ts, 5s)", 25, "SESSION needs GROUP BY" },
	{ "SELECT src, count(*) AS n FROM packets SESSION(ts, 5s) GROUP BY src ORDER BY n", 78,
		"do not go together with SESSION" },
	{ "SELECT src, count(*) FROM packets SESSION(ts, 5s) GROUP BY src LIMIT 1", 35,
		"do not go together with SESSION" },
	{ "SELECT a.n FROM (SELECT count(*) AS n FROM packets SESSION(ts, 5s)) AS a", 52,
		"neither joined nor grouped again" },
	{ "packets | group src over session 5 agg n=count()", 34, "a duration" },
	{ "packets | group src over session 5s step 1s agg n=count()", 37, "expected \"|\"" },
	{ "SELECT src FROM packets HOP(ts, 5s, 6s)", 37, "leave records out" },
	{ "SELECT src, count(*) FROM packets", 8, "neither a key of GROUP BY" },
	{ "SELECT src, count(*) FROM packets GROUP BY dst", 8, "neither a key of GROUP BY" },
	{ "SELECT src + 1, count(*) FROM packets GROUP BY dst", 8, "neither a key" },
	{ "SELECT * FROM packets GROUP BY dst", 8, "the columns are named" },
	{ "SELECT dst FROM packets GROUP dst", 31, "expected BY" },
	{ "SELECT count(*) AS n FROM packets GROUP BY n", 8, "not an aggregate" },
	{ "SELECT sum(src) FROM packets", 12, "sum needs a number" },
	{ "SELECT sum(*) FROM packets", 8, "sum needs a value" },
	{ "SELECT sum() FROM packets", 8, "sum needs a value" },
	{ "SELECT sum(dport, sport) FROM packets", 19, "needs one value" },
	{ "SELECT sum(distinct dport) FROM packets", 8, "distinct is of count only" },
	{ "SELECT sum(count(*)) FROM packets", 12, "not within another" },
	{ "SELECT bit_or(src) FROM packets", 15, "bit_or needs an unsigned number" },
	{ "SELECT quantile(dport) FROM packets", 8, "quantile needs a share" },
	{ "SELECT quantile(dport, 2.0) FROM packets", 24, "quantile needs a share" },
	{ "SELECT topk(dport, 0) FROM packets", 20, "topk needs a number from 1" },
	{ "SELECT topk(dport, 1000) FROM packets", 20, "topk needs a number from 1" },
	{ "SELECT cuont(*) FROM packets", 8, "did you mean \"count\"?" },
	{ "SELECT v4(src) FROM packets", 11, "v4 needs an unsigned number" },
	{ "SELECT coalesce(src, 1) FROM packets", 8, "of different types" },
	{ "SELECT dst FROM packets GROUP BY dst HAVING count(*)", 45, "HAVING needs a condition" },
	{ "SELECT dst, count(*) AS n FROM packets GROUP BY dst HAVING m > 5", 60,
		"unknown column" },
	{ "SELECT dst, count(*) AS n FROM packets GROUP BY dst ORDER BY m", 62, "no column \"m\"" },
	{ "SELECT dst, dst FROM packets", 13, "two columns of the name \"dst\"" },
	{ "SELECT dst FROM packets ORDER BY dst", 34, "ORDER BY needs GROUP BY" },
	{ "SELECT dst, topk(src, 3) AS t FROM packets GROUP BY dst ORDER BY dst", 66,
		"does not go together with lists" },
	{ "SELECT dst FROM packets LIMIT 1s", 31, "a number of rows" },
	{ "SELECT dst FROM packets LIMIT -1", 31, "a number of rows" },
	{ "SELECT dst FROM packets EMIT SOON", 30, "FIRST or FINAL" },
	{ "SELECT dst FROM packets EMIT FIRST", 30, "EMIT FIRST is of a stream with HAVING" },
	{ "SELECT dst FROM packets HOP(ts, 2s, 1s) GROUP BY dst HAVING count(*) > 5 EMIT FIRST", 79,
		"without HOP" },
	{ "SELECT dst FROM packets GROUP BY dst HAVING avg(ttl) > 5 EMIT FIRST", 54, "stay true" },
	{ "SELECT dst FROM packets GROUP BY dst HAVING count(*) < 5 EMIT FIRST", 54, "stay true" },
	{ "SELECT dst FROM packets GROUP BY dst HAVING not count(*) > 5 EMIT FIRST", 45,
		"stay true" },
	{ "SELECT src FROM (SELECT src FROM packets)", 17, "a sub-query has GROUP BY" },
	{ "SELECT src FROM (SELECT src FROM packets GROUP BY src", 54, "expected \")\"" },
	{ "SELECT dst FROM (SELECT src FROM packets GROUP BY src)", 8, "unknown column \"dst\"" },
	{ "SELECT t FROM (SELECT topk(src, 2) AS t FROM packets)", 15, "outermost" },
	{ "WITH a AS (SELECT src FROM packets GROUP BY src) SELECT b FROM a", 57,
		"unknown column" },
	{ "WITH packets AS (SELECT src FROM dns GROUP BY src) SELECT src FROM packets", 6,
		"is a stream" },
	{ "WITH a AS (SELECT src FROM a GROUP BY src) SELECT src FROM a", 28, "unknown stream" },
	{ "SELECT x FROM packets AS a JOIN packets AS b ON src", 15, "a join is of groups" },
	{ "WITH a AS (SELECT src FROM packets GROUP BY src), b AS (SELECT dst FROM packets GROUP BY "
	  "dst) SELECT src FROM a JOIN b ON src",
		123, "a join key compares" },
	{ "WITH a AS (SELECT src FROM packets GROUP BY src), b AS (SELECT dport FROM packets GROUP BY "
	  "dport) SELECT src FROM a JOIN b ON a.src = b.dport",
		133, "of type address before" },
	{ "WITH a AS (SELECT src FROM packets TUMBLE(ts, 1s) GROUP BY src), b AS (SELECT src FROM "
	  "packets TUMBLE(ts, 2s) GROUP BY src) SELECT a.src FROM a JOIN b ON src",
		96, "have the same window" },
	{ "WITH a AS (SELECT src FROM packets GROUP BY src), b AS (SELECT src FROM packets GROUP BY "
	  "src) SELECT c.src FROM a JOIN b ON src",
		102, "unknown column \"c.src\"" },
	{ "WITH a AS (SELECT src, ttl FROM packets GROUP BY src, ttl), b AS (SELECT src, ttl FROM "
	  "packets GROUP BY src, ttl) SELECT ttl FROM a JOIN b ON src",
		122, "several sources" },
	/* the pipe form */
	{ "packets |", 10, "expected a step" },
	{ "packets | wehre tcp", 11, "expected a step" },
	{ "paquets | where tcp", 1, "did you mean \"packets\"?" },
	{ "packets | where tcp udp", 21, "\"|\" and a step" },
	{ "packets | group", 16, "expected a column" },
	{ "packets | group over 1s", 24, "keys, or agg" },
	{ "packets | group dst over 5", 26, "a duration" },
	{ "packets | group dst over 1s step 2s", 34, "leave records out" },
	{ "packets | group dst agg count()", 30, "expected \"=\"" },
	{ "packets | group dst agg n=count() | group n over 1s", 45, "has their window" },
	{ "packets | group dst agg n=count() | where m > 1", 43, "unknown column \"m\"" },
	{ "packets | map dst | where tcp", 21, "the last steps" },
	{ "packets | group dst | limit 5 | where tcp", 33, "the last steps" },
	{ "packets | map dst as", 21, "a name for the column" },
	{ "packets | where tcp | emit first", 28, "EMIT FIRST is of" },
	{ "SELECT place + 1 AS p FROM drops", 8, "needs numbers, and this is of type text" },
	{ "SELECT max(place) AS p FROM drops", 12, "needs a number, and this is of type text" },
	{ "SELECT approx_distinct(place) AS n FROM drops", 24, "of texts, count(distinct x)" },
	{ "SELECT src FROM drops WHERE reason = NO_SOCKT", 38, "did you mean \"NO_SOCKET\"?" },
	{ "SELECT src FROM drops WHERE interface < eth0", 39, "have no order" },
	{ "SELECT src FROM drops WHERE interface in (10.0.0.0/8)", 43,
		"a prefix needs an address" },
	{ "SELECT src FROM drops WHERE place = 'a text of forty characters is longer yet'", 37,
		"no text has more than 39" },
	{ "SELECT src FROM drops WHERE src = 'eth0'", 35, "\"eth0\" is none of them here" },
	{ "SELECT bytes FROM values", 8, "unknown column \"bytes\"" },
	{ "SELECT src FROM flows WHERE end_reason = 'evictd'", 42, "did you mean \"evicted\"?" },
	{ "SELECT src FROM flows WHERE end_reason = wrong", 42, "it is one of idle" },
	{ "SELECT src FROM packets WHERE proto = tpc", 39, "did you mean \"tcp\"?" },
	{ "SELECT src FROM packets WHERE proto in (tcp, 'quic')", 46,
		"it is a number or one of icmp, igmp, tcp" },
	{ "SELECT src FROM packets WHERE tcp_flags = 'syn|akc'", 43, "cannot be \"syn|akc\"" },
	{ "SELECT src FROM packets WHERE tcp_flags = 'syn|'", 43, "cannot be \"syn|\"" },
	{ "SELECT src FROM packets WHERE ttl = 'tcp'", 37, "is not a number" },
	{ "SELECT src FROM packets WHERE ttl = '2026-11-22'", 37, "is not a number" },
	{ "SELECT src, count(*) AS n FROM packets GROUP BY src HAVING n > 'many'", 64,
		"is not a number" },
	{ "SELECT src, count(ts) AS n FROM packets GROUP BY src HAVING n > '2026-11-22'", 65,
		"is not a number" },
	{ "SELECT src FROM packets WHERE ts < '2026-11-22T25:00:00'", 36,
		"is neither a time such as 2026-11-22T01:37:27Z nor a number" },
	{ "SELECT src FROM packets GROUP BY src, TUMBLE(ts, 1s)", 39,
		"behind the stream, FROM packets TUMBLE(ts, 1s), or behind GROUP BY as WINDOW 1s" },
	{ "SELCT src FROM packets", 1, "not \"SELCT\"; did you mean \"SELECT\"?" },
	{ "WTIH a AS (SELECT src FROM packets) SELECT src FROM a", 1, "did you mean \"WITH\"?" },
	{ "SELECT src FORM packets", 12, "did you mean \"FROM\"?" },
	{ "SELECT src FROM packets TUMBEL(ts, 1s)", 25, "did you mean \"TUMBLE\"?" },
	{ "SELECT src FROM packets SESION(ts, 1s)", 25, "did you mean \"SESSION\"?" },
	{ "SELECT src FROM packets WERE tcp", 25, "did you mean \"WHERE\"?" },
	{ "SELECT src FROM packets where tcp adn syn", 35, "did you mean \"AND\"?" },
	{ "SELECT src FROM packets GRUOP BY src", 25, "did you mean \"GROUP\"?" },
	{ "SELECT src, count(*) AS n FROM packets GROUP BY src HAVIN n > 1", 53,
		"did you mean \"HAVING\"?" },
	{ "SELECT src, count(*) AS n FROM packets GROUP BY src ODER BY n", 53,
		"did you mean \"ORDER\"?" },
	{ "SELECT src, count(*) AS n FROM packets GROUP BY src LIMTI 1", 53,
		"did you mean \"LIMIT\"?" },
	{ "SELECT count(*) AS n FROM packets EMIT FRIST", 40, "did you mean \"FIRST\"?" },
	{ "SELECT count(*) AS n FROM packets EMIT FINALLY", 40, "did you mean \"FINAL\"?" },
	{ "SELECT count(*) AS n FROM packets EMTI FINAL", 35, "did you mean \"EMIT\"?" },
	{ "SELECT n FROM (SELECT count(*) AS n FROM packets WEHRE tcp) AS a", 50,
		"did you mean \"WHERE\"?" },
	{ "SELECT n FROM (SELECT src FROM packets) AS a LEFT JION (SELECT src FROM packets) AS b "
	  "ON src",
		51, "did you mean \"JOIN\"?" },
	{ "packets | wher tcp", 11, "did you mean \"where\"?" },
	{ "packets | where tcp | wher syn", 23, "did you mean \"where\"?" },
	{ "packets | where tcp | grup dst agg n=count()", 23, "did you mean \"group\"?" },
	{ "packets | group dst ovr 1s agg n=count()", 21, "did you mean \"over\"?" },
	{ "packets | group dst agg n=count() | srot n", 37, "did you mean \"sort\"?" },
	{ "packets | group dst agg n=count() | limt 10", 37, "did you mean \"limit\"?" },
	{ "packets | group dst agg n=count() | where n > 5 | emti first", 51,
		"did you mean \"emit\"?" },
	{ "packets | group dst agg n=count() | where n > 5 | emit frist", 56,
		"did you mean \"first\"?" },
	{ "packets | xyzzy dst", 11, "not \"xyzzy\"" },
	{ "SELECT DISTINCT * FROM packets", 17, "are named" },
	{ "SELECT DISTINCT src, count(*) FROM packets", 22, "not of aggregates" },
	{ "SELECT DISTINCT src FROM packets GROUP BY src", 8, "of two queries" },
	{ "SELECT DISTINCT src FROM packets HAVING tcp", 8, "of two queries" },
	{ "SELECT DISTINCT FROM packets", 17, "expected a column" },
	{ "packets | distinct", 19, "expected a column" },
	{ "packets | distinct src over 1", 29, "a duration" },
	{ "packets | distinct src | distinct src over 1s", 39, "a group of groups" },
	{ "packets | group dst agg n=count() | join packets on dst", 42, "WITHIN 100ms" },
	{ "packets | group dst agg n=count() | left (packets | distinct dst) on dst", 42,
		"expected join" },
	{ "packets | group dst agg n=count() | join (packets | distinct dst)", 66,
		"ON and the keys" },
	{ "packets | group dst agg n=count() | join (packets | distinct dst on dst", 66,
		"\")\" behind the sub-query" },
	{ "packets | group dst agg n=count() | join (packets | distinct dsst) on dst", 62,
		"did you mean \"dst\"?" },
	{ "SELECT a.x FROM packets AS a ZIP packets AS b", 17, "two queries over one stream" },
	{ "SELECT a.x FROM (SELECT ttl AS x FROM packets) AS a ZIP (SELECT id FROM dns) AS b", 57,
		"read the same stream" },
	{ "SELECT a.n FROM (SELECT count(*) AS n FROM packets) AS a ZIP (SELECT ttl FROM packets) AS b",
		17, "rows of single records" },
	{ "SELECT a.x FROM (SELECT ttl AS x FROM packets LIMIT 3) AS a ZIP (SELECT ttl FROM packets) "
	  "AS b",
		17, "behind the zip" },
	{ "FOLD f (n = 0) STEP { n = n + 1, EMIT } END { EMIT } SELECT a.x FROM (SELECT ttl AS x FROM "
	  "packets) AS a ZIP (SELECT src, f.n FROM packets GROUP BY src) AS b",
		110, "a row of END" },
	{ "SELECT a.x FROM (SELECT ttl AS x FROM packets) AS a ZIP (SELECT ttl FROM packets) AS b ZIP "
	  "(SELECT ttl FROM packets) AS c",
		92, "of two queries" },
	{ "WITH a AS (SELECT p.x FROM a AS p ZIP a AS q) SELECT p.x FROM a AS p ZIP a AS q", 28,
		"two queries over one stream" },
	{ "WITH p AS (SELECT src FROM packets) SELECT a.src FROM p TUMBLE(ts, 1s) AS a ZIP p AS b",
		57, "behind the stream" },
	{ "packets | map ttl as x | zip packets", 30, "\"(\" and a query" },
	{ "packets | map ttl as x | zpi (packets | map src)", 26, "did you mean \"zip\"?" },
	/* joins of records */
	{ "SELECT a.src FROM packets AS a JOIN packets AS b ON src", 19, "WITHIN 100ms" },
	{ "SELECT a.src FROM packets AS a JOIN packets AS b ON src WITHIN", 63, "a duration" },
	{ "SELECT a.src FROM packets AS a JOIN packets AS b ON src WITHIN 0s", 64, "from 1ns" },
	{ "SELECT a.src FROM packets AS a JOIN packets AS b ON src WTIHIN 1s", 57,
		"did you mean \"WITHIN\"" },
	{ "SELECT x.n FROM (SELECT src, count(*) AS n FROM packets GROUP BY src) AS x JOIN "
	  "packets AS b ON src WITHIN 1s",
		17, "its records are joined as they are" },
	{ "SELECT a.src FROM packets AS a JOIN (SELECT src FROM packets) AS b ON src WITHIN 1s", 37,
		"its records are joined as they are" },
	{ "WITH p AS (SELECT * FROM packets) SELECT a.src FROM p TUMBLE(ts, 1s) AS a JOIN packets AS b "
	  "ON src WITHIN 1s",
		55, "behind the stream" },
	{ "SELECT a.src FROM packets AS a JOIN packets ON src WITHIN 1s JOIN packets AS c ON src",
		67, "of two streams" },
	{ "SELECT a.k FROM (SELECT dst AS k, count(*) FROM packets GROUP BY dst) AS a JOIN (SELECT "
	  "src AS k, count(*) FROM packets GROUP BY src) AS b ON k JOIN packets AS c ON k WITHIN 1s",
		175, "nothing else" },
	{ "SELECT a.src FROM packets JOIN packets ON src WITHIN 1s", 32, "one name" },
	{ "SELECT a.src FROM packets AS a JOIN (SELECT * FROM packets) ON src WITHIN 1s", 37,
		"needs a name" },
	{ "SELECT a.src FROM packets AS a JOIN packets AS b ON a.ttl > b.ttl WITHIN 1s", 59,
		"needs a key" },
	{ "SELECT a.src FROM packets AS a JOIN packets AS b ON a.ttl = 64 WITHIN 1s", 59,
		"needs a key" },
	{ "SELECT a.src FROM packets AS a JOIN dns AS b ON ttl WITHIN 1s", 49,
		"not a column of both" },
	{ "SELECT a.src FROM packets AS a JOIN packets AS b ON src = dst WITHIN 1s", 53,
		"several sources: write it with its source, a.src or b.src" },
	{ "SELECT a.src FROM packets AS a JOIN packets AS b ON a.src = b.dts WITHIN 1s", 61,
		"unknown column" },
	{ "SELECT a.src FROM packets AS a JOIN packets AS b ON a.src = b.dst AND b.ttl WITHIN 1s",
		71, "ON" },
	{ "SELECT * FROM packets AS a JOIN packets AS b ON src WITHIN 1s", 8, "are named" },
	{ "SELECT dst FROM packets AS a JOIN packets AS b ON src WITHIN 1s", 8, "several sources" },
	{ "SELECT a.src, b.ts FROM packets AS a ANTI JOIN packets AS b ON src WITHIN 1s", 15,
		"unknown column" },
	{ "SELECT a.src FROM packets TUMBLE(ts, 1s) AS a JOIN packets TUMBLE(ts, 2s) AS b ON src "
	  "WITHIN 1s",
		60, "the same window" },
	{ "SELECT a.src, count(*) FROM packets SESSION(ts, 1s) AS a JOIN packets AS b ON src WITHIN "
	  "1s GROUP BY a.src",
		37, "over one stream" },
	{ "SELECT a.src FROM packets AS a JOIN packets AS b ON src WITHIN 1s ORDER BY src", 76,
		"ORDER BY needs" },
	{ "packets as a | join packets as b on src within 1s | group a.src over 1s agg n=count() | "
	  "join packets as c on src within 1s | map src",
		89, "its records are joined as they are" },
	{ "SELECT src FROM packets INTO", 29, "an output in quotes" },
	{ "SELECT src FROM packets INTO alerts", 30, "an output in quotes" },
	{ "SELECT src FROM packets INTO 'file:x", 30, "the quote is not closed" },
	{ "SELECT src FROM packets INTO ''", 30, "the output has no name" },
	{ "SELECT src FROM packets INTO '-' LIMIT 3", 34, "expected the end" },
	{ "SELECT src FROM packets ITNO '-'", 25, "did you mean \"INTO\"?" },
	{ "SELECT n FROM (SELECT count(*) AS n FROM packets INTO '-') AS a", 50,
		"not in a sub-query" },
	{ "packets | into '-' | limit 3", 20, "expected the end" },
	{ "packets | group dst | inot '-'", 23, "did you mean \"into\"?" },
	{ "packets | group dst agg n=count() | join (packets | distinct dst | into '-') on dst", 68,
		"not in a sub-query" },
};

static void test_faults(void)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct pl_diag diag = { 0 };
		struct pl_query *q = NULL;

		ok(pl_query_parse(&q, faults[i].text, &diag) == -EINVAL, "refused: %s",
			faults[i].text);
		eq(diag.line, 1);
		eq(diag.column, faults[i].column, "its character: %s", faults[i].text);
		if (!ok(strstr(diag.text, faults[i].says) != NULL, "says: %s", faults[i].says))
			printf("# says \"%s\"\n", diag.text);
		ok(q == NULL && pl_query_parse(&q, faults[i].text, NULL) == -EINVAL);
	}
}

static const struct {
	const char *text, *plan;
} plans[] = {
	{ "select dst, count(*) as n from packets tumble(ts, 1s) where tcp and syn_only group by dst "
	  "having n >= 40 emit first",
		"step 1\n  scan packets, windows of 1s\n  filter tcp\n  filter syn_only\n"
		"  group by dst\n  aggregate count(*) (32 bytes for each group)\n"
		"  having (count >= 40), told at once and at the end\n  result dst as dst, count as n\n" },
	{ "SELECT src FROM packets WHERE (tcp_flags & 0x17) = 2 and 80 >= dport and not "
	  "src in (10.0.0.0/8, ::1)",
		"step 1\n  scan packets\n  filter tcp_flags & 23 = 2\n  filter dport <= 80\n"
		"  filter not ((src in 10.0.0.0/8 or (src = ::1)))\n  result src as src\n" },
	{ "SELECT wire_len * 2 + 1, 2 - 3 | 4 & 5 FROM packets",
		"step 1\n  scan packets\n  result ((wire_len * 2) + 1) as column1, "
		"((2 - 3) | signed((4 & 5))) as column2\n" },
	{ "SELECT sport / 2.5 AS h, -ttl AS m FROM packets LIMIT 3 -- three",
		"step 1\n  scan packets\n  result (double(sport) / 2.5) as h, -(signed(ttl)) as m\n"
		"  limit 3\n" },
	{ "SELECT dport, quantile(pay_len, 0.5), topk(src, 3), count(distinct src, dst) FROM packets "
	  "HOP(ts, 10s, 500ms) GROUP BY dport LIMIT 5",
		NULL },
	{ "WITH a AS (SELECT src AS host, count(*) AS n FROM packets GROUP BY src), b AS (SELECT dst AS "
	  "host, count(*) AS n FROM packets GROUP BY dst) SELECT host, a.n - coalesce(b.n, 0) AS d FROM "
	  "a LEFT JOIN b ON host WHERE a.n > 1 ORDER BY d",
		NULL },
	{ "packets | where tcp and syn_only | group dst over 1s agg n=count() | where n >= 40 | emit "
	  "first",
		"step 1\n  scan packets, windows of 1s\n  filter tcp\n  filter syn_only\n"
		"  group by dst\n  aggregate count(*) (32 bytes for each group)\n"
		"  having (count >= 40), told at once and at the end\n  result dst as dst, count as n\n" },
	{ "SELECT a.src, b.ts - a.ts AS d FROM packets AS a JOIN packets96 AS b ON a.src = b.dst AND "
	  "b.tcp_ack = a.tcp_seq + 1 AND b.ts >= a.ts AND b.syn_ack WITHIN 100ms WHERE a.syn_only AND "
	  "b.ttl > 3",
		"step 1\n  scan packets\n  filter a.syn_only\n"
		"step 2\n  scan packets96\n  filter b.syn_ack\n  filter b.ttl >= 4\n"
		"step 3\n  join records of step 1 with those of step 2 within 100ms on a.src = b.dst, "
		"(a.tcp_seq + 1) = b.tcp_ack (184 bytes for each pair)\n  filter (b.ts >= a.ts)\n"
		"  result a.src as src, (b.ts - a.ts) as d\n" },
	{ "packets as a | where tcp | left join (packets | where udp) as b on src, dst and b.ts >= a.ts "
	  "within 1s | where a.ttl > 3 | where missing(b.src) | group src over 1s agg n=count()",
		"step 1\n  scan packets, windows of 1s\n  filter a.tcp\n  filter a.ttl >= 4\n"
		"step 2\n  scan packets, windows of 1s\n  filter b.udp\n"
		"step 3\n  left join records of step 1 with those of step 2 within 1s on a.src = b.src, "
		"a.dst = b.dst and (b.ts >= a.ts) (152 bytes for each pair)\n"
		"  filter not (exists(b.src))\n  group by a.src\n"
		"  aggregate count(*) (32 bytes for each group)\n  result src as src, count as n\n" },
	{ "packets | where tcp | map ttl as x | zip (packets | where ttl > 3 | map src) as b | where x > 9 "
	  "| group b.src over 1s agg n=count()",
		NULL },
	{ "packets | anti join dns as b on src = b.client within 2s",
		"step 1\n  scan packets\nstep 2\n  scan dns\n"
		"step 3\n  anti join records of step 1 with those of step 2 within 2s on left.src = "
		"b.client (152 bytes for each pair)\n  result left.ts_ns as ts_ns, left.src as src, "
		"left.dst as dst, left.sport as sport, left.dport as dport, left.proto as proto, "
		"left.tcp_flags as tcp_flags, left.ttl as ttl, left.tos as tos, left.tcp_seq as tcp_seq, "
		"left.tcp_ack as tcp_ack, left.tcp_win as tcp_win, left.wire_len as wire_len, "
		"left.pay_len as pay_len, left.obs as obs\n" },
	{ "packets | where tcp_flags | 2 = 2 | where ttl > 3 | map src, ttl | 1 as odd | limit 2",
		"step 1\n  scan packets\n  filter ((tcp_flags | 2) = 2)\n  filter ttl >= 4\n"
		"  result src as src, (ttl | 1) as odd\n  limit 2\n" },
	{ "packets | group src over 2s step 1s agg b=sum(wire_len) | map src, b * 8 as bits | sort bits "
	  "desc | limit 10",
		"step 1\n  scan packets, windows of 2s every 1s\n  group by src\n"
		"  aggregate sum(wire_len) (48 bytes for each group)\n"
		"  result src as src, sum as b\n"
		"step 2\n  read rows of step 1\n  result src as src, (b * 8) as bits\n"
		"  order by bits, greatest first\n  limit 10\n" },
	{ "packets | group src, dst | group src agg n=count() | where n > 2",
		"step 1\n  scan packets\n  group by src, dst\n  result src as src, dst as dst\n"
		"step 2\n  read rows of step 1\n  group by src\n"
		"  aggregate count(*) (32 bytes for each group)\n  having (count > 2)\n"
		"  result src as src, count as n\n" },
	{ "SELECT src, count(*) AS n FROM packets SESSION(ts, 30s) GROUP BY src",
		"step 1\n  scan packets, a session of a key ends with no record of it for 30s\n"
		"  group by src\n  aggregate count(*) (32 bytes for each group)\n"
		"  result src as src, count as n\n" },
	{ "SELECT src FROM packets WHERE proto = tcp and tcp_flags & 'syn|ack' = 'syn'",
		"step 1\n  scan packets\n  filter proto = 6\n  filter tcp_flags & 18 = 2\n"
		"  result src as src\n" },
	{ "SELECT src FROM packets WHERE ts >= '2026-11-22T01:37:27.5Z' and '2026-11-23' > ts_ns",
		"step 1\n  scan packets\n  filter ts >= 1795311447500000000\n"
		"  filter ts_ns <= 1795391999999999999\n  result src as src\n" },
	{ "SELECT src, max(ts) AS newest FROM packets GROUP BY src HAVING newest > '2026-11-22'",
		NULL },
	{ "SELECT src FROM (SELECT src, min(ts) AS oldest FROM packets GROUP BY src) AS a "
	  "WHERE oldest < '2026-11-22'",
		NULL },
	{ "SELECT a.dst FROM flows AS a JOIN dns AS b ON a.src = b.client WITHIN 1s "
	  "WHERE a.first_ts > '1970-01-01T00:01:00'",
		NULL },
	{ "SELECT src FROM packets WHERE proto in (UDP, 'icmp6', 132) or tcp_flags != 'SYN|ACK'",
		NULL },
	{ "SELECT src FROM flows WHERE end_reason in ('evicted', idle, 3) and 'tcp' = proto",
		NULL },
	{ "packets | map dport | sport as both", NULL },
	{ "packets | where dport | sport > 5 and dport | sport in (80, 81)", NULL },
	{ "packets | group src over session 30s agg n=count()",
		"step 1\n  scan packets, a session of a key ends with no record of it for 30s\n"
		"  group by src\n  aggregate count(*) (32 bytes for each group)\n"
		"  result src as src, count as n\n" },
	{ "flows | where tcp", NULL },
};

/* Both forms of a query make one plan. */
static const struct {
	const char *pipe, *select;
} forms[] = {
	{ "packets | where syn and not ack | group src over 1s agg n=count() | where n > 100",
		"SELECT src, count() AS n FROM packets WHERE syn AND NOT ack GROUP BY src WINDOW 1s "
		"HAVING n > 100" },
	{ "packets | group src over 10s step 1s agg n=count() ;",
		"SELECT src, count(*) AS n FROM packets GROUP BY src WINDOW 10s STEP 1s; -- the end\n" },
	{ "packets | where tcp | distinct src, dport / 1000 as k over 1s",
		"SELECT DISTINCT src, dport / 1000 AS k FROM packets TUMBLE(ts, 1s) WHERE tcp" },
	{ "packets | distinct src, dst over 1s | group src agg n=count() | where n > 9",
		"SELECT src, count(*) AS n FROM (SELECT DISTINCT src, dst FROM packets "
		"TUMBLE(ts, 1s)) GROUP BY src HAVING n > 9" },
	{ "packets | group src over session 5s agg n=count()",
		"SELECT src, count(*) AS n FROM packets SESSION(ts, 5s) GROUP BY src" },
	{ "packets | group src, dst over 1s | distinct dst",
		"SELECT DISTINCT dst FROM (SELECT src, dst FROM packets TUMBLE(ts, 1s) "
		"GROUP BY src, dst)" },
	{ "packets | where syn | group dst over 1s agg a=count() "
	  "| left join (packets | where fin | group dst over 1s agg b=count()) on dst "
	  "| where a > coalesce(b, 0) | map dst, a - coalesce(b, 0) as open | sort open desc",
		"SELECT dst, a - coalesce(b, 0) AS open FROM "
		"(SELECT dst, count(*) AS a FROM packets TUMBLE(ts, 1s) WHERE syn GROUP BY dst) LEFT JOIN "
		"(SELECT dst, count(*) AS b FROM packets TUMBLE(ts, 1s) WHERE fin GROUP BY dst) AS right "
		"ON dst WHERE a > coalesce(b, 0) ORDER BY open DESC" },
	{ "packets | group dst agg a=count() | anti join (packets | distinct src) as s on dst = s.src",
		"SELECT * FROM (SELECT dst, count(*) AS a FROM packets GROUP BY dst) ANTI JOIN "
		"(SELECT DISTINCT src FROM packets) AS s ON dst = s.src" },
	{ "packets | group dst agg a=count() | join (packets | group dst agg b=count()) as x on dst "
	  "| inner join (SELECT dst, max(ttl) AS c FROM packets GROUP BY dst) as y on dst "
	  "| group a agg n=count() | limit 5",
		"SELECT a, count(*) AS n FROM (packets | group dst agg a=count()) JOIN "
		"(SELECT dst, count(*) AS b FROM packets GROUP BY dst) AS x ON dst INNER JOIN "
		"(packets | group dst agg c=max(ttl)) AS y ON dst GROUP BY a LIMIT 5" },
};

static void test_forms(void)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const char *texts[] = { forms[i].pipe, forms[i].select };
		struct pl_buf made[2];

		for (int k = 0; k < 2; k++) {
			struct pl_diag diag = { 0 };
			struct pl_query *q = NULL;

			pl_buf_init(&made[k]);
			if (ok(pl_query_parse(&q, texts[k], &diag) == 0, "%s", texts[k]))
				pl_query_explain(q, &made[k]);
			else
				printf("# %u: %s\n", diag.column, diag.text);
			pl_query_free(q);
		}
		if (made[0].len > 0 && made[1].len > 0)
			streq(made[0].data, made[1].data, "one plan");
		pl_buf_done(&made[0]);
		pl_buf_done(&made[1]);
	}
}

static void test_plans(void)
{
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct pl_diag diag = { 0 };
		struct pl_query *q = NULL;
		struct pl_buf out;

		pl_buf_init(&out);
		if (!ok(pl_query_parse(&q, plans[i].text, &diag) == 0, "%s", plans[i].text)) {
			printf("# %u: %s\n", diag.column, diag.text);
			continue;
		}
		pl_query_explain(q, &out);
		if (plans[i].plan != NULL)
			streq(out.data, plans[i].plan, "its plan");
		else
			ok(out.len > 0);
		pl_buf_done(&out);
		pl_query_free(q);
	}
}

/* EXPLAIN stands before either form, and changes nothing of the plan; elsewhere it is no word. */
static void test_explain(void)
{
	static const struct {
		const char *text, *behind;
		bool is;
	} texts[] = {
		{ "EXPLAIN SELECT src FROM packets", "SELECT src FROM packets", true },
		{ " explain\t packets | map src", "packets | map src", true },
		{ "EXPLAIN FOLD f (n = 0) STEP { n = n + 1, EMIT } SELECT f.n FROM packets",
			"FOLD f (n = 0) STEP { n = n + 1, EMIT } SELECT f.n FROM packets", true },
		{ "SELECT src FROM packets", "SELECT src FROM packets", false },
		{ "SELECT src AS explain FROM packets", "SELECT src AS explain FROM packets",
			false },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct pl_query *q[2] = { NULL };
		struct pl_buf told[2];

		streq(pl_query_behind_explain(texts[i].text), texts[i].behind);
		for (unsigned int k = 0; k < 2; k++) {
			struct pl_diag diag = { 0 };

			pl_buf_init(&told[k]);
			if (!ok(pl_query_parse(&q[k], k == 0 ? texts[i].text : texts[i].behind,
					&diag) == 0,
				    "%s: %s", texts[i].text, diag.text))
				return;
			eq(pl_query_is_explain(q[k]), k == 0 && texts[i].is);
			pl_query_explain(q[k], &told[k]);
			pl_buf_chr(&told[k], '\0');
			pl_query_free(q[k]);
		}
		streq(told[0].data, told[1].data);
		pl_buf_done(&told[0]);
		pl_buf_done(&told[1]);
	}
	streq(pl_query_behind_explain("explaining"), "explaining");
	streq(pl_query_behind_explain("EXPLAIN"), "EXPLAIN");
}

/* What INTO names is handed on as it is written, in both forms, and longer than other texts may be. */
static void test_into(void)
{
	static const char *const uri =
		"kafka://one.example:9092,two.example:9092/alerts?linger.ms=5&compression.codec=lz4";
	static const char *const texts[] = { "SELECT src FROM packets LIMIT 3 INTO '%s'",
		"packets | map src | limit 3 | into \"%s\"",
		"packets | map src, ttl | 1 as odd | INTO '%s' ; -- the end" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct pl_diag diag = { 0 };
		struct pl_query *q = NULL;
		char text[256];

		snprintf(text, sizeof(text), texts[i], uri);
		if (ok(pl_query_parse(&q, text, &diag) == 0, "%s: %s", text, diag.text))
			streq(pl_query_into(q), uri, "its output");
		pl_query_free(q);
	}
	for (int i = 0; i < 2; i++) {
		struct pl_query *q = NULL;

		pl_query_parse(&q, i == 0 ? "SELECT src FROM packets" : "packets | map src", NULL);
		ok(q != NULL && pl_query_into(q) == NULL, "none is named");
		pl_query_free(q);
	}
}

static void test_bounds(void)
{
	static char text[PL_QUERY_TEXT_MAX + 64];
	struct pl_diag diag = { 0 };
	struct pl_query *q;
	size_t n;

	for (int depth = 32; depth <= 33; depth++) {
		n = (size_t)sprintf(text, "SELECT ");
		for (int i = 0; i < depth; i++)
			text[n++] = '(';
		n += (size_t)sprintf(text + n, "ttl");
		for (int i = 0; i < depth; i++)
			text[n++] = ')';
		sprintf(text + n, " FROM packets");
		eq(pl_query_parse(&q, text, &diag), depth == 32 ? 0 : -EINVAL, "%d deep", depth);
		if (depth == 32)
			pl_query_free(q);
	}
	n = (size_t)sprintf(text, "SELECT ttl FROM packets WHERE ttl = 1");
	while (n < PL_QUERY_TEXT_MAX - 16)
		n += (size_t)sprintf(text + n, " or ttl = 1");
	eq(pl_query_parse(&q, text, &diag), 0, "hundreds of tests");
	pl_query_free(q);
	memset(text + n, ' ', sizeof(text) - n);
	text[PL_QUERY_TEXT_MAX] = '\0';
	eq(pl_query_parse(&q, text, &diag), 0, "as long as allowed");
	pl_query_free(q);
	text[PL_QUERY_TEXT_MAX] = ' ';
	text[PL_QUERY_TEXT_MAX + 1] = '\0';
	eq(pl_query_parse(&q, text, &diag), -EINVAL, "one longer");
	n = (size_t)sprintf(text, "SELECT count(*) AS n FROM packets HAVING n = 1");
	while (n < PL_QUERY_TEXT_MAX - 16)
		n += (size_t)sprintf(text + n, " or n = 1");
	eq(pl_query_parse(&q, text, &diag), 0, "hundreds of tests of a group");
	pl_query_free(q);
	ok(pl_query_parse(&q, "SELECT src\nFROM packets\nWHERE srx = ::1", &diag) == -EINVAL);
	eq(diag.line, 3, "the line of an error");
	eq(diag.column, 7, "and its character there");
	pl_query_free(NULL);
}

/* A question of so many columns of a record, and one more item. */
static void test_columns(void)
{
	static const struct {
		const char *last, *stream;
		int n, result;
	} cases[] = {
		{ "sport + 1", "flows288", 63, 0 },
		{ "sport + 1", "flows288", 64, -EINVAL },
		{ "sport", "flows288", 64, 0 },
		{ "sport", "flows288", 95, 0 },
		{ "sport", "flows288", 96, -EINVAL },
		{ "loss", "segments", 63, 0 },
		{ "loss", "segments", 64, -EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[4096];
		struct pl_diag diag = { 0 };
		struct pl_query *q = NULL;
		size_t n = (size_t)sprintf(text, "SELECT ");

		for (int k = 0; k < cases[i].n; k++)
			n += (size_t)sprintf(text + n, "dport AS a%d, ", k);
		sprintf(text + n, "%s AS last FROM %s", cases[i].last, cases[i].stream);
		eq(pl_query_parse(&q, text, &diag), cases[i].result, "%d columns, and %s",
			cases[i].n, cases[i].last);
		pl_query_free(q);
	}
}

/* A query that stands gives rows before its records end: by a window, or record by record. */
static void test_keeps_all(void)
{
	static const struct {
		const char *text;
		bool keeps;
	} queries[] = {
		{ "SELECT src FROM packets WHERE syn", false },
		{ "SELECT src, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY src", false },
		{ "SELECT src, count(*) AS n FROM packets SESSION(ts, 1s) GROUP BY src", false },
		{ "SELECT DISTINCT src FROM packets WINDOW 1s", false },
		{ "SELECT a.src FROM packets AS a JOIN packets AS b ON src WITHIN 1s", false },
		{ "FOLD f (n = 0) STEP { n = n + 1, EMIT WHEN n > 5 } SELECT f.n FROM packets",
			false },
		{ "FOLD f (n = 0) STEP { n = n + 1, EMIT WHEN n > 5 } SELECT src, f.n FROM packets "
		  "GROUP BY src WINDOW 1s",
			false },
		{ "FOLD f (n = 0) STEP { n = n + 1, EMIT WHEN n > 5 } SELECT src, f.n FROM packets "
		  "GROUP BY src",
			true },
		{ "SELECT a.src FROM (SELECT src FROM packets) AS a ZIP (SELECT dst FROM packets) "
		  "AS b",
			false },
		{ "SELECT src, count(*) AS n FROM packets GROUP BY src", true },
		{ "SELECT count(*) AS n FROM packets", true },
		{ "SELECT DISTINCT src FROM packets", true },
		{ "SELECT src, count(*) AS n FROM packets GROUP BY src HAVING n > 5 EMIT FIRST",
			true },
		{ "FOLD f (n = 0) STEP { n = n + 1, EMIT } SELECT src, f.n FROM packets GROUP BY src "
		  "ORDER BY n",
			true },
		{ "FOLD f (n = 0) STEP { n = n + 1, EMIT } SELECT hist(n) AS h FROM (SELECT src, f.n "
		  "FROM packets GROUP BY src) AS e",
			true },
		{ "SELECT count(*) AS n FROM packets AS a JOIN packets AS b ON src WITHIN 1s",
			true },
		{ "FOLD f (n = 0) STEP { n = n + 1 } SELECT src, f.n FROM packets GROUP BY src",
			true },
	};

	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		struct pl_diag diag = { 0 };
		struct pl_query *query;

		if (!ok(pl_query_parse(&query, queries[i].text, &diag) == 0, "%s: %s",
			    queries[i].text, diag.text))
			continue;
		eq(pl_query_keeps_all(query), queries[i].keeps, "%s: %s", queries[i].text,
			queries[i].keeps ? "keeps all" : "gives rows meanwhile");
		pl_query_free(query);
	}
}

int main(void)
{
	test_faults();
	test_plans();
	test_keeps_all();
	test_forms();
	test_explain();
	test_into();
	test_bounds();
	test_columns();
	return pl_test_done();
}
