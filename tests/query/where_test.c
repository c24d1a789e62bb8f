/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths, hops, events and values in queries. Conditions: random ones over random records against the
 * evaluator of --where (record/where.c), which shares nothing with this one. Groups: against loops
 * over the same records.
 */
#include "record/where.h"

#include <errno.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"
#include "query/query.h"

#define RECORDS  400
#define HOPS_MAX 7
#define ROUNDS   3000

static struct pl_rng rng;

static unsigned int below(unsigned int n)
{
	return (unsigned int)pl_rng_below(&rng, n);
}

/* ---- records ---- */

static struct pl_query_path paths[RECORDS];
static struct pl_hop hops_of[RECORDS * HOPS_MAX];
static struct pl_query_hop hops[RECORDS];
static struct pl_event events[RECORDS];
static struct pl_value values[RECORDS];

static const uint64_t numbers[] = { 0, 1, 2, 3, 5, 7, 50, 100, 255, 1000, 65535, 0x12345678,
	UINT32_MAX, INT64_MAX, UINT64_MAX };
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))
static const char *const addrs[] = { "10.0.0.1", "10.0.0.2", "10.1.2.3", "192.0.2.1", "fd00::1",
	"fe80::5:1" };
#define ADDRS (sizeof(addrs) / sizeof(addrs[0]))
/* Some look like something else, some begin alike; the last is as long as a text may be. */
static const char *const words[] = { "ddos", "lists", "lists-2", "17", "0x11", "10.0.0.1", "value",
	"10.0.0.1/443", "a/b>c", "true", "a-text-as-long-as-it-may-be:39-characters" };
#define WORDS (sizeof(words) / sizeof(words[0]))

static unsigned int bytes_of(uint8_t form)
{
	switch (form) {
	case PL_FORM_ADDR:
		return 16;
	case PL_FORM_U64:
	case PL_FORM_S64:
	case PL_FORM_HEX64:
		return 8;
	case PL_FORM_U32:
		return 4;
	case PL_FORM_U16:
	case PL_FORM_FLAGS:
		return 2;
	default:
		return 1;
	}
}

static bool is_word(uint8_t form)
{
	return pl_form_word((enum pl_form)form, 0) != NULL ||
	       pl_form_word((enum pl_form)form, 1) != NULL;
}

static unsigned int words_of(uint8_t form)
{
	unsigned int n = 0;

	while (pl_form_word((enum pl_form)form, n) != NULL)
		n++;
	return n;
}

/* Texts, where other fields are absent that lie in the same bytes. */
static void fill_texts(const struct pl_field *fields, size_t n, uint8_t *record, uint32_t present)
{
	for (size_t i = 0; i < n; i++) {
		const char *word = words[below(WORDS)];
		/* Of the field whose text is shorter, zeros behind it. */
		const size_t room = fields[i].offset >= 96   ? 32
				    : fields[i].offset == 48 ? 32
				    : fields[i].offset == 88 ? 40
							     : 16;

		if (fields[i].form != PL_FORM_TEXT || (fields[i].present & ~present) != 0)
			continue;
		memset(record + fields[i].offset, 0, room);
		memcpy(record + fields[i].offset, word,
			strlen(word) < room ? strlen(word) : room - 1);
	}
}

/* A record of random fields; which of them are there is random, too. */
static uint32_t fill(enum pl_record_kind kind, void *record)
{
	const uint32_t present = (uint32_t)pl_rng_u64(&rng);
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);

	for (size_t i = 0; i < n; i++) {
		uint8_t *to = (uint8_t *)record + fields[i].offset;
		uint64_t v = numbers[below(NUMBERS)];
		struct pl_addr a = { 0 };

		if (fields[i].name[0] == '\0' || fields[i].form >= PL_FORM_PRESENT)
			continue;
		if (fields[i].form == PL_FORM_FLAGS)
			v = pl_rng_u64(&rng);
		if (is_word(fields[i].form))
			v = below(words_of(fields[i].form));
		if (fields[i].form == PL_FORM_S64 && below(2) == 0)
			v = -v;
		if (pl_parse_addr(addrs[below(ADDRS)], &a) < 0)
			abort();
		if (fields[i].form == PL_FORM_ADDR)
			memcpy(to, &a, 16);
		else
			memcpy(to, &v, bytes_of(fields[i].form));
	}
	fill_texts(fields, n, record, present);
	return present;
}

/* Hops of a path follow those of the one before, or begin somewhere else. */
static void make_records(void)
{
	uint32_t at = 0;

	memset(hops_of, 0, sizeof(hops_of));
	for (uint32_t i = 0; i < RECORDS; i++) {
		struct pl_path *path = &paths[i].path;

		*path = (struct pl_path){ 0 };
		path->present = fill(PL_KIND_PATH, path);
		path->record_version = 1;
		path->ts_ns = i;
		path->hop_count = (uint8_t)below(HOPS_MAX + 1);
		at = below(20) == 0 ? i * HOPS_MAX : at;
		at = at + path->hop_count > RECORDS * HOPS_MAX ? 0 : at;
		paths[i].hops = path->hop_count > 0 ? &hops_of[at] : NULL;
		paths[i].n_hops = path->hop_count;
		at += path->hop_count;
		hops[i] = (struct pl_query_hop){ .path = *path };
		hops[i].hop.present = fill(PL_KIND_HOP, &hops[i].hop);
		hops[i].hop.ts_ns = i;
		events[i] = (struct pl_event){ 0 };
		events[i].present = fill(PL_KIND_EVENT, &events[i]);
		events[i].ts_ns = i;
		values[i] = (struct pl_value){ 0 };
		values[i].present = fill(PL_KIND_VALUE, &values[i]);
		values[i].ts_ns = i;
	}
	for (uint32_t i = 0; i < RECORDS * HOPS_MAX; i++)
		hops_of[i].present = fill(PL_KIND_HOP, &hops_of[i]);
}

/* ---- conditions ---- */

static char text[PL_WHERE_TEXT_MAX];
static size_t used;

__attribute__((format(printf, 1, 2))) static void put(const char *fmt, ...)
{
	__builtin_va_list ap;

	__builtin_va_start(ap, fmt);
	used += (size_t)vsnprintf(text + used, sizeof(text) - used, fmt, ap);
	__builtin_va_end(ap);
	if (used >= sizeof(text))
		abort();
}

static const char *any_compare(bool ordered)
{
	static const char *const signs[] = { "==", "!=", "<", "<=", ">", ">=" };

	return signs[below(ordered ? 6 : 2)];
}

static void put_number(const struct pl_field *field)
{
	const unsigned int bits = 8 * bytes_of(field->form);
	uint64_t v = numbers[below(NUMBERS)],
		 max = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	const char *sign = "";

	if (field->form == PL_FORM_S64) {
		max = INT64_MAX;
		sign = below(2) ? "-" : "";
	}
	v = v > max ? max : v;
	if (strcmp(field->unit, "ns") == 0 && below(3) == 0)
		put("%s%uus", sign, below(3));
	else if (strcmp(field->unit, "ns") == 0 && below(6) == 0)
		put("%s0.%03ums", sign, below(3));
	else if (below(4) == 0)
		put("%s0x%" PRIx64, sign, v);
	else
		put("%s%" PRIu64, sign, v);
}

static void put_value(const struct pl_field *field)
{
	static const char *const quotes[] = { "", "", "", "\"", "'" };
	const char *quote = quotes[field->form == PL_FORM_TEXT ? 3 + below(2) : below(5)];

	put("%s", quote);
	if (field->form == PL_FORM_TEXT) {
		/* The longest has 41 characters, of which a field keeps 39 at most. */
		put("%.39s%s", words[below(WORDS)], quote);
		return;
	}
	if (field->form == PL_FORM_ADDR)
		put("%s", addrs[below(ADDRS)]);
	else if (is_word(field->form))
		put("%s", pl_form_word((enum pl_form)field->form, below(words_of(field->form))));
	else if (field->form == PL_FORM_HEX64)
		put(below(3) == 0  ? "0x%" PRIX64
			: below(2) ? "%016" PRIx64
				   : "%" PRIx64,
			numbers[below(NUMBERS)]);
	else
		put_number(field);
	put("%s", quote);
}

static void put_flag(void)
{
	static const char *const truths[] = { "true", "false", "yes", "no", "on", "off" };
	unsigned int n = 0;

	while (pl_path_flag_name(n) != NULL)
		n++;
	put("flags.%s", pl_path_flag_name(below(n)));
	if (below(2) == 0)
		put(" %s %s", any_compare(false), truths[below(6)]);
}

static const struct pl_field *any_field(enum pl_record_kind kind)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n), *field;

	do
		field = &fields[below(64) % n];
	while (field->name[0] == '\0' || field->form == PL_FORM_FLAGS ||
		field->form == PL_FORM_BYTES);
	return field;
}

static void put_test(enum pl_record_kind kind, const char *prefix)
{
	const struct pl_field *field = any_field(kind);
	const bool ordered = !is_word(field->form) ? field->form != PL_FORM_ADDR &&
							     field->form != PL_FORM_HEX64 &&
							     field->form != PL_FORM_TEXT
						   : field->form == PL_FORM_REPORT_VERSION ||
							     field->form == PL_FORM_INT_VERSION;

	if (kind == PL_KIND_PATH && below(8) == 0) {
		put_flag();
	} else if (below(6) == 0) {
		put("%s%s%s)", below(2) ? "exists(" : "missing( ", prefix, field->name);
	} else if (field->form == PL_FORM_ADDR && below(2) == 0) {
		static const char *const prefixes[] = { "10.0.0.0/8", "10.0.0.0/30", "fd00::/8",
			"0.0.0.0/0", "::/0", "10.0.0.2" };

		put("%s%s in %s", prefix, field->name, prefixes[below(6)]);
	} else {
		put("%s%s%s%s%s", prefix, field->name, below(2) ? " " : "", any_compare(ordered),
			below(2) ? " " : "");
		put_value(field);
	}
}

static void put_condition(enum pl_record_kind kind, unsigned int depth, bool in_hop)
{
	const char *prefix = in_hop && below(3) == 0 ? "hops." : "";

	if (below(4) == 0)
		put("not ");
	switch (depth == 0 ? 0 : below(kind == PL_KIND_PATH && !in_hop ? 6 : 4)) {
	case 1:
	case 2:
		put("(");
		put_condition(kind, depth - 1, in_hop);
		put(")");
		for (unsigned int n = below(3); n > 0; n--) {
			put(below(2) ? " and " : " or ");
			put_condition(kind, depth - 1, in_hop);
		}
		break;
	case 4:
		put(below(2) ? "all hops (" : "any hop(");
		put_condition(PL_KIND_HOP, depth - 1, true);
		put(")");
		break;
	case 5:
		if (below(2) == 0)
			put("all ");
		put_test(PL_KIND_HOP, "hops.");
		break;
	default:
		put_test(kind, prefix);
		break;
	}
}

/* ---- both evaluators ---- */

static uint8_t taken[RECORDS];

static void take(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	taken[row->values[0].u]++;
}

static const struct {
	unsigned int stream;
	enum pl_record_kind kind;
	const void *records;
} streams[] = { { PL_QUERY_PATHS, PL_KIND_PATH, paths }, { PL_QUERY_HOPS, PL_KIND_HOP, hops },
	{ PL_QUERY_EVENTS, PL_KIND_EVENT, events }, { PL_QUERY_VALUES, PL_KIND_VALUE, values } };

/* The rows of a condition into taken[]; false: refused. */
static bool ask(unsigned int which, const char *condition, struct pl_diag *diag)
{
	static const struct pl_query_config config = { .max_groups = 16 };
	char question[PL_WHERE_TEXT_MAX + 64];
	struct pl_query_run *run = NULL;
	struct pl_query *query = NULL;
	bool good;

	memset(taken, 0, sizeof(taken));
	snprintf(question, sizeof(question),
		below(2) ? "SELECT ts_ns FROM %s WHERE %s" : "%s | where %s | map ts_ns",
		pl_query_stream_name(streams[which].stream), condition);
	good = pl_query_parse(&query, question, diag) == 0 &&
	       pl_query_run_new(&run, query, &config, take, NULL, diag) == 0;
	if (good) {
		good = pl_query_feed(
			       run, streams[which].stream, streams[which].records, RECORDS, 0) == 0;
		pl_query_finish(run);
	}
	pl_query_run_free(run);
	pl_query_free(query);
	return good;
}

static bool where_takes(const struct pl_where *w, unsigned int which, uint32_t i)
{
	if (streams[which].stream == PL_QUERY_PATHS)
		return pl_where_match(w, &paths[i].path, paths[i].hops, paths[i].n_hops);
	if (streams[which].stream == PL_QUERY_HOPS)
		return pl_where_match_row(w, &hops[i].hop, hops[i].hop.present);
	if (streams[which].stream == PL_QUERY_VALUES)
		return pl_where_match_row(w, &values[i], values[i].present);
	return pl_where_match_row(w, &events[i], events[i].present);
}

/* Whether both give the same answer; *ret_n: how many records pass. */
static bool compare(unsigned int which, const char *condition, uint32_t *ret_n)
{
	struct pl_diag diag = { .text = "" };
	struct pl_where *w;
	bool same;
	size_t n;
	int r;

	if (streams[which].kind == PL_KIND_PATH) {
		r = pl_where_new(&w, condition, &diag);
	} else {
		const struct pl_field *fields = pl_fields(streams[which].kind, &n);

		r = pl_where_new_over(&w, fields, n, condition, &diag);
	}
	if (r < 0) {
		printf("# --where: %s: %s\n", condition, diag.text);
		return false;
	}
	same = ask(which, condition, &diag);
	if (!same)
		printf("# query: %s: column %u: %s\n", condition, diag.column, diag.text);
	*ret_n = 0;
	for (uint32_t i = 0; same && i < RECORDS; i++) {
		const bool want = where_takes(w, which, i);

		*ret_n += want;
		same = taken[i] == want;
		if (!same)
			printf("# record %u of %s: %s\n", i,
				pl_query_stream_name(streams[which].stream), condition);
	}
	pl_where_free(w);
	return same;
}

static void test_random(void)
{
	uint32_t some = 0, wrong = 0, n = 0;

	for (uint32_t round = 0; round < ROUNDS && wrong < 5; round++) {
		const unsigned int which = below(5) == 0 ? 1 : below(3) == 0 ? 2 + below(2) : 0;

		if (round % 100 == 0)
			make_records();
		used = 0;
		put_condition(streams[which].kind, 1 + below(3), false);
		wrong += !compare(which, text, &n);
		some += n > 0 && n < RECORDS;
	}
	eq(wrong, 0, "%d random conditions: the same as --where", ROUNDS);
	ok(some > ROUNDS / 3, "%u of them take some records and leave some", some);
}

/* What random ones are unlikely to be. */
static void test_chosen(void)
{
	static const struct {
		unsigned int which;
		const char *condition;
	} list[] = { { 0, "seq == 1 or seq == 2 and not seq != 3" },
		{ 0, "any hop (node == 1 and (queue_depth > 50 or missing(queue)))" },
		{ 0, "all hops (node == 1 or not (queue_depth > 50))" },
		{ 0, "not all hops.node == 1" }, { 0, "path_id == 12345678" },
		{ 0, "mode != ioam-trace and dialect == host-int" },
		{ 0, "dialect == v0.4 or report_version >= 1.0" }, { 2, "unit == bytes" },
		{ 2, "event == path_change and phase == once" },
		{ 2, "quantity == queue_depth or role == victim" },
		{ 1, "link_latency_ns > -9223372036854775808 and clock != ok" },
		{ 2, "query == ddos or key != 10.0.0.1" }, { 3, "region == lists-2" },
		{ 3, "region != lists and key == 17" }, { 3, "name == value or missing(name)" },
		{ 0, "seq == 1 and seq == 1 and seq == 1 and seq == 1 and seq == 1 and seq == 1 and "
		     "seq == 1 and seq == 1 and seq == 1 and seq == 1 and seq == 1 and seq == 1 and "
		     "seq == 1 and seq == 1 and seq == 1 and seq == 1 and seq == 1 and seq < 2" } };
	uint32_t n;

	make_records();
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		ok(compare(list[i].which, list[i].condition, &n), "%s", list[i].condition);
}

/* ---- what is refused ---- */

static void test_faults(void)
{
	static const struct {
		const char *question;
		unsigned int column;
		const char *says;
	} list[] = {
		{ "SELECT ts FROM events WHERE event = 'path_chang'", 37,
			"did you mean \"path_change\"?" },
		{ "SELECT ts FROM events WHERE event = 3", 37, "event cannot be \"3\"" },
		{ "SELECT ts FROM events WHERE phase in (once, 'twice')", 45,
			"it is one of once, begin, end" },
		{ "SELECT ts FROM paths WHERE path_id = xyz", 38, "hexadecimal" },
		{ "SELECT ts FROM paths WHERE any hop (seq = 1)", 37, "field of the path" },
		{ "SELECT ts FROM paths WHERE any hop (nod = 1)", 37, "did you mean \"node\"?" },
		{ "SELECT ts FROM paths WHERE any hop node = 1", 36, "expected \"(\"" },
		{ "SELECT ts FROM paths WHERE any hop (any hop (node = 1))", 37,
			"no hops of its own" },
		{ "SELECT ts FROM hops WHERE any hop (node = 1)", 27,
			"these records have no hops" },
		{ "SELECT hops.node FROM paths", 8, "any hop" },
		{ "SELECT ts FROM paths WHERE flow.sorc = 1", 28, "did you mean \"flow.src\"?" },
		{ "SELECT ts FROM paths WHERE exists(5)", 28, "needs the name of a column" },
		{ "SELECT ts FROM paths WHERE seq = 'x'", 34, "\"x\" is not a number" },
		{ "SELECT ts FROM paths WHERE flags.dropped = maybe", 44, "unknown column" },
		{ "SELECT ts FROM packets WHERE exists(hops.node)", 37, "unknown column" },
		{ "SELECT ts FROM path", 16, "did you mean \"paths\"?" },
		{ "SELECT max(event) AS n FROM events GROUP BY any hop (node = 1)", 45,
			"have no hops" },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct pl_diag diag = { .text = "" };
		struct pl_query *query = NULL;

		eq(pl_query_parse(&query, list[i].question, &diag), -EINVAL, "%s",
			list[i].question);
		eq(diag.column, list[i].column, "column: %s", diag.text);
		ok(strstr(diag.text, list[i].says) != NULL, "%s", diag.text);
		pl_query_free(query);
	}
}

/* ---- groups, and the path of a hop ---- */

static struct {
	uint64_t node, deepest, n;
	bool no_node, no_deepest;
} rows[RECORDS];
static uint32_t n_rows;

static void take_group(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	rows[n_rows].no_node = row->values[0].absent;
	rows[n_rows].node = row->values[0].absent ? 0 : row->values[0].u;
	rows[n_rows].no_deepest = row->values[1].absent;
	rows[n_rows].deepest = row->values[1].absent ? 0 : row->values[1].u;
	rows[n_rows++].n = row->values[2].u;
}

static bool run_text(
	const char *question, pl_query_sink *sink, unsigned int stream, const void *records)
{
	struct pl_diag diag = { .text = "" };
	struct pl_query_run *run = NULL;
	struct pl_query *query = NULL;
	bool good = pl_query_parse(&query, question, &diag) == 0 &&
		    pl_query_run_new(&run, query, &(struct pl_query_config){ .max_groups = 999 },
			    sink, NULL, &diag) == 0 &&
		    pl_query_feed(run, stream, records, RECORDS, 0) == 0;

	ok(good, "%s %s", question, diag.text);
	if (good)
		pl_query_finish(run);
	pl_query_run_free(run);
	pl_query_free(query);
	return good;
}

static void test_groups(void)
{
	uint64_t sum = 0;

	make_records();
	n_rows = 0;
	run_text("SELECT node, max(queue_depth) AS deepest, count(*) AS n FROM hops GROUP BY node",
		take_group, PL_QUERY_HOPS, hops);
	for (uint32_t i = 0; i < n_rows; i++) {
		uint64_t deepest = 0, n = 0;
		bool some = false;

		for (uint32_t k = 0; k < RECORDS; k++) {
			const struct pl_hop *hop = &hops[k].hop;
			const bool has = (hop->present & PL_HOP_HAS_node) != 0;

			if (has == rows[i].no_node || (has && hop->node != rows[i].node))
				continue;
			n++;
			if ((hop->present & PL_HOP_HAS_queue_depth) == 0)
				continue;
			some = true;
			deepest = hop->queue_depth > deepest ? hop->queue_depth : deepest;
		}
		sum += n;
		ok(n == rows[i].n && some != rows[i].no_deepest && deepest == rows[i].deepest,
			"node %" PRIu64, rows[i].node);
	}
	eq(sum, RECORDS, "every hop is in a group");
}

static void test_path_of_hop(void)
{
	uint32_t want = 0, got = 0;

	make_records();
	for (uint32_t i = 0; i < RECORDS; i += 2)
		hops[i].path = (struct pl_path){ 0 };
	memset(taken, 0, sizeof(taken));
	run_text(
		"SELECT ts FROM hops WHERE mode = md and missing(flags.dropped) = false and flow.dport > 5",
		take, PL_QUERY_HOPS, hops);
	for (uint32_t i = 0; i < RECORDS; i++) {
		const struct pl_path *p = &hops[i].path;

		want += i % 2 == 1 && p->mode == PL_MODE_MD &&
			(p->present & PL_PATH_HAS_dport) != 0 && p->dport > 5;
		got += taken[i];
	}
	ok(want > 0, "some hops are of such a path");
	eq(got, want, "hops by what is known of their path");
}

static uint64_t counted;

static void take_count(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	counted = row->values[0].u;
}

/* A batch as a decoder makes it, of both streams. */
static void test_reports(void)
{
	static struct pl_path list[RECORDS];
	static uint32_t first[RECORDS];
	const struct pl_record_batch batch = {
		.paths = list, .first_hop = first, .hops = hops_of, .n_paths = RECORDS
	};
	const char *const questions[] = { "SELECT count(*) AS n FROM paths WHERE hops.node = 1",
		"SELECT count(*) AS n FROM hops WHERE node = 1 and flow.sport < 100" };
	uint64_t want[2] = { 0, 0 };

	make_records();
	for (uint32_t i = 0; i < RECORDS; i++) {
		uint32_t n = 0;

		list[i] = paths[i].path;
		first[i] = i % (RECORDS - 1) * HOPS_MAX;
		for (uint32_t k = 0; k < list[i].hop_count; k++)
			n += (hops_of[first[i] + k].present & PL_HOP_HAS_node) != 0 &&
			     hops_of[first[i] + k].node == 1;
		want[0] += n > 0;
		want[1] +=
			(list[i].present & PL_PATH_HAS_sport) != 0 && list[i].sport < 100 ? n : 0;
	}
	for (int i = 0; i < 2; i++) {
		struct pl_diag diag = { .text = "" };
		struct pl_query_run *run = NULL;
		struct pl_query *query = NULL;

		counted = UINT64_MAX;
		if (!ok(pl_query_parse(&query, questions[i], &diag) == 0 &&
				    pl_query_run_new(&run, query, &(struct pl_query_config){ 0 },
					    take_count, NULL, &diag) == 0,
			    "%s", questions[i]))
			continue;
		eq(pl_query_reads_paths_of_hops(query), i == 1);
		eq(pl_query_feed_reports(run, &batch, 0), 0);
		pl_query_finish(run);
		eq(counted, want[i], "%s", questions[i]);
		pl_query_run_free(run);
		pl_query_free(query);
	}
}

int main(void)
{
	pl_rng_seed(&rng, 14);
	test_random();
	test_chosen();
	test_faults();
	test_groups();
	test_path_of_hop();
	test_reports();
	return pl_test_done();
}
