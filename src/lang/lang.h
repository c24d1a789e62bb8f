/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries over records of packets, DNS messages and flows (record/packet.h), and of paths, hops,
 * events and values (record/record.h), in a subset of SQL:
 *
 *   [FOLD name (variable = first, …) STEP { steps } [END { steps }]] …
 *   [WITH name AS (query), …]
 *   SELECT [DISTINCT] items FROM source [WHERE pred] [GROUP BY keys] [HAVING pred]
 *   [ORDER BY column [DESC]] [LIMIT n] [EMIT FIRST | EMIT FINAL] [INTO 'output']
 *
 *   source   stream [TUMBLE(ts, 1s) | HOP(ts, 10s, 1s) | SESSION(ts, 30s)], the streams being those
 *            of pl_flat(), and paths, hops, events and values
 *            (query) AS a [[LEFT | ANTI] JOIN (query) AS b ON key, … | ON a.x = b.y AND …] …
 *            stream AS a [LEFT | ANTI] JOIN stream AS b ON a.x = b.y AND … WITHIN 100ms, either of
 *            them as (SELECT * FROM stream WHERE pred) too
 *            (query) AS a ZIP (query) AS b: rows that both make of the same record
 *   pred     or, and, not; = == != <> < <= > >=; in, also in prefixes: src in (10.0.0.0/8, fd00::/8)
 *   numbers  + - * / % & |, in this order of binding: unary -, then * / %, + -, &, |
 *   items    * | expression [AS name], …
 *   functions of numbers: v4(n) is the IPv4 address that n stands for, coalesce(x, y) is y where x
 *            is absent, double(n), if(pred, x, y), abs(n), least(m, n), greatest(m, n)
 *   aggregates: count(*) count(distinct x, …) sum min max avg stddev first last bit_or
 *            approx_distinct(x) quantile(x, 0.99) topk(x, k) hist(x) ewma(x, 0.125)
 *
 *   steps    variable = expression | EMIT [WHEN pred], …
 *            fold.variable is used as an aggregate is. A fold goes through the records of a key in
 *            the order in which they are fed (Marple, SIGCOMM 2017); with EMIT it makes the rows, one
 *            for each time, which are not final unless they are made when the window closes.
 *
 * The pipe form says the same step by step (`over 10s step 1s` is HOP, `over session 30s` SESSION):
 *
 *   packets | where tcp and syn_only | group dst over 1s agg n=count() | where n >= 40 | emit first
 *   packets | group src over 1s agg b=sum(wire_len) | map src, b * 8 as bits | sort bits desc | limit 10
 *
 *   packets | distinct src, dst over 1s | group src agg n=count()
 *   packets | where syn_only | group dst over 1s agg a=count()
 *     | left join (packets | where ack_only | group dst over 1s agg b=count()) on dst
 *     | map dst, a - coalesce(b, 0) as open
 *
 *   packets as a | where point = 1
 *     | join (packets | where point = 2) as b on flow_hash, tcp_seq within 100ms | map src, b.ts - a.ts
 *
 * INTO (`| into 'output'`) says where the rows go; the engine only passes it on (pl_query_into).
 * EXPLAIN in front of either form asks for the plan instead (pl_query_is_explain).
 *
 * A joined query has the name that AS gives it, or "right", and the stream before a join of records
 * that, or "left". A query in parentheses is in either form.
 *
 * EMIT FIRST gives a row as soon as the group satisfies HAVING, which may ask only for counts that
 * grow, and again when the window closes; EMIT FINAL, the default, only then.
 *
 * Columns are the fields of the record and those derived from them (lang/schema.c,
 * lang/records.c). Words of the language are written in either case, names of columns as they are.
 *
 * Over paths, hops, events and values every expression of --where (record/where.h) is a condition,
 * with the same answer: words (event == path_change), ids in hexadecimal digits, texts,
 * exists(x), missing(x), flags.dropped; of paths also hops.x > 5, all hops.x > 5, any hop (…), all
 * hops (…).
 *
 * Types are unsigned and signed 64-bit integers, doubles, addresses, booleans and texts. Integers are
 * unsigned but for differences, and what is made of these. A value that does not fit its type, a
 * division by zero and a result that is no finite number are absent, and counted. An absent value
 * satisfies no comparison, not even !=; an aggregate leaves it out; as a key it is a key of its
 * own. A text is one of a record (region, key, interface): it is equal to another or not, is a key,
 * is counted, and put in order byte by byte.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/diag.h"
#include "record/packet.h"

#define PL_QUERY_TEXT_MAX    8192
#define PL_QUERY_COLUMNS_MAX 64 /* most columns; a row has a bit for each, set when it is absent */
#define PL_QUERY_ITEMS_MAX   96 /* most items of a row; the first 64 may be absent */

enum pl_query_type {
	PL_QUERY_UNSIGNED,
	PL_QUERY_SIGNED,
	PL_QUERY_DOUBLE,
	PL_QUERY_ADDR,
	PL_QUERY_BOOL,
	PL_QUERY_LIST, /* value of topk and hist */
	PL_QUERY_TEXT, /* at most PL_TEXT_TOLD characters */
	PL_QUERY_TYPE_MAX,
};

const char *pl_query_type_name(enum pl_query_type type);

/* Streams: an enum pl_flat_kind, or one of these. */
enum {
	PL_QUERY_PATHS = PL_FLAT_MAX,
	PL_QUERY_HOPS,
	PL_QUERY_EVENTS,
	PL_QUERY_VALUES,
	PL_QUERY_STREAMS,
};

const char *pl_query_stream_name(unsigned int stream); /* "packets", …, "paths", "hops", … */
/* Finds a stream by its name, in either case; PL_QUERY_STREAMS when there is none. */
unsigned int pl_query_find_stream(const char *name);

/* Record of the stream of paths, with its hops, at most 255, which need last only for the call that
 * feeds it. Hops of successive paths are evaluated together if they lie one behind the other. */
struct pl_query_path {
	struct pl_path path;
	const struct pl_hop *hops;
	uint64_t n_hops;
};

/* Record of the stream of hops, with the path of the hop, or zeros when that is not known. */
struct pl_query_hop {
	struct pl_hop hop;
	struct pl_path path;
};

/* Records of the stream of events are struct pl_event, those of values struct pl_value. */

struct pl_query;

/* Parses a query. Returns 0, -EINVAL with diag, which has line and column of the character at
 * fault, or -ENOMEM. */
int pl_query_parse(struct pl_query **ret, const char *text, struct pl_diag *diag);
void pl_query_free(struct pl_query *query);

/* Appends the plan, a line for each step, to `out`. */
void pl_query_explain(const struct pl_query *query, struct pl_buf *out);

/* Columns of the result. The name is valid as long as the query. */
#define PL_QUERY_WORD_MAX 24

struct pl_query_column {
	const char *name;
	const char
		*unit; /* for an unchanged column of records: "ns" (since the Unix epoch), "bytes",
		        * "us" or "" */
	enum pl_query_type type;
	uint8_t form; /* enum pl_form: an unchanged column of paths, hops, events, values; else
		       * U8 */
};

struct pl_query_value;

uint32_t pl_query_columns(const struct pl_query *query, const struct pl_query_column **ret);
bool pl_query_has_column(const struct pl_query *query, const char *name);

/* Value as a word ("path_change") or an id of 16 hexadecimal digits; NULL when it is neither. */
const char *pl_query_value_word(const struct pl_query_column *column,
	const struct pl_query_value *value, char ret_text[PL_QUERY_WORD_MAX]);
/* True when the column's values are words or ids. */
bool pl_query_column_has_words(const struct pl_query_column *column);
/* Appends a value that is there as a text, with all digits, yes or no; nothing of a list. */
void pl_query_value_put(struct pl_buf *out, const struct pl_query_value *value);

/* True when there is no window and rows, or the groups that they are made of, are kept until there are
 * no more records. */
bool pl_query_keeps_all(const struct pl_query *query);
/* True when rows of a window leave before it closes: by EMIT FIRST, or from a fold. */
bool pl_query_gives_early(const struct pl_query *query);

/* True when the query reads records of the stream. */
bool pl_query_reads(const struct pl_query *query, unsigned int stream);
/* True when the query reads columns of the path that a hop belongs to. */
bool pl_query_reads_paths_of_hops(const struct pl_query *query);
/* True when the query reads marks that rules of taps have set (PL_OBS_RULE). */
bool pl_query_reads_marks(const struct pl_query *query);

/* Length of windows, ns, or the gap of SESSION; 0: no windows. */
uint64_t pl_query_window_ns(const struct pl_query *query);
/* Distance from the begin of a window to that of the next, or the gap of sessions; 0: no
 * windows. */
uint64_t pl_query_step_ns(const struct pl_query *query);
/* True when the column of this number is a key of GROUP BY, of the result or of a query within
 * it. */
bool pl_query_column_is_key(const struct pl_query *query, uint32_t number);
/* Longest WITHIN of the joins of records, ns; 0: none. */
uint64_t pl_query_within_ns(const struct pl_query *query);
/* Output that INTO names, as it is written; NULL: none. */
const char *pl_query_into(const struct pl_query *query);
/* True when the text begins with EXPLAIN: it asks for a plan instead of an answer. */
bool pl_query_is_explain(const struct pl_query *query);
/* Returns the text behind EXPLAIN and blanks; all of it when it begins otherwise. */
const char *pl_query_behind_explain(const char *text);

/* True when windows are of SESSION: each has a length of its own. */
bool pl_query_has_sessions(const struct pl_query *query);
/* True when rows belong to windows; rows of single records do not. */
bool pl_query_gives_windows(const struct pl_query *query);

/* Item of a list. From topk: a value, whose `count` is at most `error` above the true count, the
 * most frequent first. From hist: the number of values that are at least `value` and below twice
 * that (for 0: that are 0), in order of `value`. */
struct pl_query_item;

struct pl_query_value {
	enum pl_query_type type;
	bool absent;
	union {
		uint64_t u;
		int64_t i;
		double d;
		bool b;
		struct pl_addr addr;
		const char *text; /* valid during the call that gives the row */
		struct {
			const struct pl_query_item *items;
			uint32_t n;
		} list;
	};
};

struct pl_query_item {
	struct pl_query_value value;
	uint64_t count, error;
};
