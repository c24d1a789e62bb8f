/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/where.h"

#include <errno.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"

static struct pl_addr addr(const char *text)
{
	struct pl_addr a = { 0 };

	if (pl_parse_addr(text, &a) < 0)
		abort();
	return a;
}

static struct pl_path path;
static struct pl_hop hops[3];

static void make_records(void)
{
	path = (struct pl_path){ .ts_ns = 5,
		.exporter = addr("10.0.0.1"),
		.report_version = 1,
		.int_version = 1,
		.dialect = 2,
		.mode = PL_MODE_MD,
		.hop_count = 3,
		.seq = 77,
		.flags = PL_FLAG_TRACKED,
		.src = addr("10.1.2.3"),
		.dst = addr("fd00::5"),
		.dport = 443,
		.path_id = 0xabcdef,
		.present = PL_PATH_HAS_exporter | PL_PATH_HAS_report_version | PL_PATH_HAS_dialect |
			   PL_PATH_HAS_seq | PL_PATH_HAS_src | PL_PATH_HAS_dport |
			   PL_PATH_HAS_path_id };
	for (int i = 0; i < 3; i++)
		hops[i] = (struct pl_hop){ .node = (uint64_t)i + 1,
			.queue_depth = 50u * (unsigned int)i,
			.hop_latency_ns = 1000u << i,
			.link_latency_ns = -5,
			.index = (uint8_t)i,
			.present =
				PL_HOP_HAS_node | PL_HOP_HAS_hop_latency_ns |
				(i > 0 ? PL_HOP_HAS_queue_depth | PL_HOP_HAS_link_latency_ns : 0) };
}

static const struct {
	const char *text;
	bool want;
} matches[] = {
	{ "hops.queue_depth > 99 and flow.dport == 443", true },
	{ "hops.queue_depth > 100 and flow.dport == 443", false },
	{ "seq == 77", true },
	{ "seq == 0x4d", true },
	{ "seq != 77", false },
	{ "seq < 78", true },
	{ "seq < 77", false },
	{ "seq <= 77", true },
	{ "seq > 76", true },
	{ "seq > 77", false },
	{ "seq >= 77", true },
	{ "seq >= 78", false },
	{ "not seq == 77", false },
	{ "not not seq == 77", true },
	{ "not (seq == 76)", true },
	/* not, then and, then or */
	{ "seq == 77 or seq == 1 and seq == 2", true },
	{ "(seq == 77 or seq == 1) and seq == 2", false },
	{ "not seq == 1 and seq == 2", false },
	{ "not (seq == 1 and seq == 2)", true },
	{ "seq == 1 or seq == 2 or seq == 77", true },
	{ "seq == 77 and mode == md and seq == 1", false },
	{ "seq == 1 and seq == 2 or seq == 77", true },
	/* missing values */
	{ "flow.sport == 0", true }, /* shares its presence with dport */
	{ "hw_id == 0", false },
	{ "hw_id != 0", false },
	{ "not (hw_id == 0)", true },
	{ "hw_id < 255", false },
	{ "exists(hw_id)", false },
	{ "missing(hw_id)", true },
	{ "exists(seq) and not missing(seq)", true },
	{ "exists(ts_ns)", true },
	{ "missing(ts_ns)", false },
	{ "exists ( hops.queue_depth )", true },
	{ "missing(hops.queue_depth)", true },
	{ "not exists(hops.queue_depth)", false },
	{ "exists(hops.buffer)", false },
	/* any hop, all hops */
	{ "hops.node == 2", true },
	{ "hops.node == 4", false },
	{ "hops.node != 1", true },
	{ "all hops.node != 1", false },
	{ "all hops.node < 4", true },
	{ "all hops.queue_depth < 1000", false },
	{ "all exists(hops.node)", true },
	{ "all missing(hops.node)", false },
	{ "all missing(hops.buffer)", true },
	{ "not all hops.node == 1", true },
	{ "hops.queue_depth < 50", false }, /* the first hop has none, rather than 0 */
	/* one and the same hop */
	{ "hops.node == 2 and hops.queue_depth == 100", true }, /* two different ones */
	{ "any hop (node == 2 and queue_depth == 100)", false },
	{ "any hop (node == 3 and queue_depth == 100)", true },
	{ "any hop (hops.node == 3 and hops.queue_depth == 100)", true },
	{ "any hop(node==3)and seq==77", true },
	{ "any hop (node == 3) and any hop (node == 2)", true },
	{ "any hop (node == 3 and not (queue_depth < 100 or link_latency_ns > 0))", true },
	{ "any hop (node == 1 and missing(queue_depth))", true },
	{ "any hop (node == 2 and missing(queue_depth))", false },
	{ "not any hop (node == 4)", true },
	{ "any hop (not node == 1)", true },
	{ "all hops (node < 4)", true },
	{ "all hops (node < 3 or queue_depth == 100)", true },
	{ "all hops (node == 1 or exists(queue_depth))", true },
	{ "all hops (queue_depth > 0)", false },
	{ "not all hops (queue_depth > 0)", true },
	{ "seq == 1 or any hop (node == 2 or node == 9) and seq == 77", true },
	{ "any hop (node == 9) or all hops (node == 9) or seq == 77", true },
	{ "any hop (hop_latency_ns > 3us and (node == 1 or node == 3))", true },
	{ "any hop (hop_latency_ns > 3us and (node == 1 or node == 2))", false },
	/* units */
	{ "hops.hop_latency_ns > 3us", true },
	{ "hops.hop_latency_ns > 4us", false },
	{ "hops.hop_latency_ns == 4000", true },
	{ "hops.hop_latency_ns == 0.004ms", true },
	/* signed */
	{ "hops.link_latency_ns < 0", true },
	{ "hops.link_latency_ns == -5", true },
	{ "hops.link_latency_ns > -5", false },
	{ "hops.link_latency_ns > -1us", true },
	{ "hops.link_latency_ns > -9223372036854775808", true },
	/* words */
	{ "mode == md", true },
	{ "mode == \"md\"", true },
	{ "mode == 'md'", true },
	{ "mode != ioam-trace", true },
	{ "dialect == geant", true },
	{ "report_version == 1.0", true },
	{ "report_version >= 1.0", true },
	{ "report_version < 1.0", false },
	{ "int_version < 2.1", true },
	/* flags */
	{ "flags.tracked", true },
	{ "flags.dropped", false },
	{ "not flags.dropped", true },
	{ "flags.dropped == false", true },
	{ "flags.tracked == true", true },
	{ "flags.tracked != true", false },
	{ "flags.dropped or flags.tracked", true },
	{ "exists(flags.dropped)", true },
	/* addresses */
	{ "flow.src == 10.1.2.3", true },
	{ "flow.src != 10.1.2.3", false },
	{ "flow.src in 10.0.0.0/8", true },
	{ "flow.src in 10.1.2.0/31", false },
	{ "flow.src in 10.1.2.2/31", true },
	{ "flow.src in 11.0.0.0/8", false },
	{ "flow.src in 10.1.2.3", true },
	{ "flow.src in 0.0.0.0/0", true },
	{ "flow.dst in 0.0.0.0/0", false },
	{ "flow.dst in fd00::/8", true },
	{ "flow.dst in ::/0", true },
	{ "flow.dst == fd00:0::5", true },
	{ "flow.dst in fd00::4/126", true },
	{ "flow.dst in fd00::6/127", false },
	/* ids */
	{ "path_id == abcdef", true },
	{ "path_id == 0000000000abcdef", true },
	{ "path_id == 0xABCDEF", true },
	{ "path_id != abcdef", false },
	/* spaces */
	{ "  seq==77  ", true },
	{ "seq==77 and(mode==md)", true },
	{ "\tseq\n==\r77", true },
	{ "((((((seq == 77))))))", true },
};

static void test_matches(void)
{
	for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
		struct pl_diag diag = { 0 };
		struct pl_where *w;

		if (!ok(pl_where_new(&w, matches[i].text, &diag) == 0, "compiles: %s",
			    matches[i].text)) {
			printf("# column %u: %s\n", diag.column, diag.text);
			continue;
		}
		eq(pl_where_match(w, &path, hops, 3), matches[i].want, "%s", matches[i].text);
		pl_where_free(w);
	}
}

static const struct {
	const char *text;
	unsigned int column;
	const char *says;
} faults[] = {
	{ "", 1, "the expression is empty" },
	{ "   ", 4, "the expression is empty" },
	{ "seq", 4, "expected a comparison" },
	{ "seq ==", 7, "expected a value, but the expression ends" },
	{ "seq == ", 8, "but the expression ends" },
	{ "seq = 5", 5, "\"=\" is written \"==\" here" },
	{ "seq == 5 && mode == md", 10, "\"&&\" is written \"and\" here" },
	{ "seq == 5 || mode == md", 10, "\"||\" is written \"or\" here" },
	{ "!flags.dropped", 1, "\"!\" is written \"not\" here" },
	{ "seq == 5 mode == md", 10, "expected and, or, or the end" },
	{ "seq == 5 and", 13, "expected a field name, but the expression ends" },
	{ "and seq == 5", 1, "expected a field name before \"and\"" },
	{ "seq == 5 and or mode == md", 14, "expected a field name before \"or\"" },
	{ "not", 4, "expected a field name, but the expression ends" },
	{ "(seq == 5", 10, "for the \"(\" in column 1" },
	{ "seq == 5 and ((seq == 6)", 25, "for the \"(\" in column 14" },
	{ "seq == 5)", 9, "a \")\" without a \"(\"" },
	{ "()", 2, "expected a field name" },
	{ "(seq == 5 seq == 6)", 11, "for the \"(\" in column 1" },
	{ "\"seq\" == 5", 2, "without quotes" },
	{ "== 5", 1, "expected a field name" },
	{ "sek == 5", 1, "did you mean \"seq\"?" },
	{ "queue_depth > 5", 1, "did you mean \"hops.queue_depth\"?" },
	{ "dport == 5", 1, "did you mean \"flow.dport\"?" },
	{ "dropped", 1, "did you mean \"flags.dropped\"?" },
	{ "seq == 1 or hops.queue_dept > 5", 13, "did you mean \"hops.queue_depth\"?" },
	{ "hop.queue_depth > 5", 1, "did you mean \"hops.queue_depth\"?" },
	{ "flags.droped", 1, "did you mean \"flags.dropped\"?" },
	{ "zzzzzzzzzzzz == 1", 1, "help fields" },
	{ "record_version == 1", 1, "unknown field" },
	{ "present == 1", 1, "unknown field" },
	{ "flags == 1", 1, "flags is a set" },
	{ "exists(flags)", 8, "flags is a set" },
	{ "seq == x", 8, "\"x\" is not a number" },
	{ "seq == 5us", 8, "\"5us\" is not a number" },
	{ "seq == -5", 8, "seq cannot be negative" },
	{ "seq == 4294967296", 8, "seq holds at most 4294967295" },
	{ "flow.dport == 65536", 15, "flow.dport holds at most 65535" },
	{ "hw_id == 256", 10, "hw_id holds at most 255" },
	{ "seq == 99999999999999999999999", 8, "holds at most" },
	{ "hops.hop_latency_ns > 5s", 23, "holds at most 4294967295" },
	{ "hops.hop_latency_ns > 5parsec", 23, "or a time such as 50us" },
	{ "hops.link_latency_ns == 9223372036854775808", 25, "holds at most 9223372036854775807" },
	{ "hops.link_latency_ns == -9223372036854775809", 25,
		"holds at most -9223372036854775808" },
	{ "hops.link_latency_ns == --5", 25, "is not a number" },
	{ "seq == (5)", 8, "expected a value" },
	{ "mode == mdd", 9, "mode cannot be \"mdd\"; it must be one of md, mx, xd" },
	{ "mode == \"\"", 10, "mode cannot be \"\"" },
	{ "mode < md", 6, "mode has no order" },
	{ "path_id < 5", 9, "path_id has no order" },
	{ "path_id == 12345678901234567", 12, "16 hexadecimal digits" },
	{ "path_id == xyz", 12, "16 hexadecimal digits" },
	{ "path_id == 0x", 12, "16 hexadecimal digits" },
	{ "flow.src > 10.0.0.1", 10, "compare it with ==, in or !=" },
	{ "flow.src == 10.0.0.0/8", 13, "a prefix is compared with \"in\"" },
	{ "flow.src == 10.0.0", 13, "is not an address" },
	{ "flow.src in 10.0.0.0/33", 13, "is not a prefix" },
	{ "flow.src in", 12, "expected a value, but the expression ends" },
	{ "seq in 5", 5, "\"in\" needs an address" },
	{ "flags.dropped in true", 15, "\"in\" needs an address" },
	{ "flags.dropped == maybe", 18, "neither true nor false" },
	{ "flags.dropped < true", 15, "has no order" },
	{ "exists seq", 8, "expected \"(\"" },
	{ "exists(", 8, "expected a field name, but the expression ends" },
	{ "exists()", 8, "expected a field name" },
	{ "exists(seq", 11, "expected \")\"" },
	{ "exists(seq == 5)", 12, "expected \")\"" },
	{ "missing(sek)", 9, "did you mean \"seq\"?" },
	{ "all seq == 5", 1, "\"all\" needs a field of the hops" },
	{ "seq == 1 or all exists(seq)", 13, "\"all\" needs a field of the hops" },
	{ "all (hops.node == 1)", 5, "expected a field name" },
	{ "all not hops.node == 1", 5, "unknown field \"not\"" },
	{ "any", 4, "expected \"hop\"" },
	{ "any hops (node == 1)", 5, "expected \"hop\"" },
	{ "any hop", 8, "expected \"(\" and tests of one hop" },
	{ "any hop node == 1", 9, "expected \"(\" and tests of one hop" },
	{ "any hop (", 10, "expected a field name" },
	{ "any hop ()", 10, "expected a field name" },
	{ "any hop (node == 1", 19, "for the \"(\" in column 9" },
	{ "any hop (nod == 1)", 10, "did you mean \"node\"?" },
	{ "any hop (flow.dport == 443)", 10, "\"flow.dport\" is a field of the path" },
	{ "any hop (flags.dropped)", 10, "is a field of the path, not of a hop" },
	{ "any hop (any hop (node == 1))", 10, "no hops of its own" },
	{ "any hop (all hops (node == 1))", 10, "no hops of its own" },
	{ "any hop (all node == 1)", 10, "one hop only" },
	{ "all hop (node == 1)", 5, "unknown field \"hop\"" },
	{ "all hops node == 1", 10, "expected \"(\"" },
	{ "any hop (node == 1) node == 2", 21, "expected and, or, or the end" },
	{ "any hop (node == 1) and queue_depth > 5", 25, "did you mean \"hops.queue_depth\"?" },
	{ "mode == \"md", 9, "the quote is not closed" },
	{ "mode == 'md\"", 9, "the quote is not closed" },
	{ "seq == 5 # x", 10, "unexpected \"#\"" },
	{ "seq == 5 \x01", 10, "unexpected byte 0x01" },
	{ "seq == \xc3\xa9", 8, "unexpected byte 0xc3" },
	{ "seq === 5", 7, "\"=\" is written" },
	{ "seq <> 5", 6, "expected a value" },
	{ "seq =< 5", 5, "\"=\" is written" },
};

static void test_faults(void)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct pl_diag diag = { 0 };
		struct pl_where *w = NULL;

		ok(pl_where_new(&w, faults[i].text, &diag) == -EINVAL, "refused: %s",
			faults[i].text);
		eq(diag.line, 1);
		eq(diag.column, faults[i].column, "its column: %s", faults[i].text);
		if (!ok(strstr(diag.text, faults[i].says) != NULL, "says: %s", faults[i].says))
			printf("# says \"%s\"\n", diag.text);
		ok(w == NULL && pl_where_new(&w, faults[i].text, NULL) == -EINVAL);
	}
}

static void test_bounds(void)
{
	char text[PL_WHERE_TEXT_MAX + 64];
	struct pl_diag diag = { 0 };
	struct pl_where *w;
	size_t n = 0;

	for (int extra = 0; extra <= 1; extra++) {
		n = 0;
		for (int i = 0; i < PL_WHERE_DEPTH_MAX + extra; i++)
			text[n++] = '(';
		memcpy(text + n, "seq == 77", 9);
		n += 9;
		for (int i = 0; i < PL_WHERE_DEPTH_MAX + extra; i++)
			text[n++] = ')';
		text[n] = '\0';
		if (extra == 0) {
			eq(pl_where_new(&w, text, &diag), 0, "as deep as allowed");
			ok(pl_where_match(w, &path, hops, 3));
			pl_where_free(w);
		} else {
			ok(pl_where_new(&w, text, &diag) == -EINVAL, "one deeper");
			eq(diag.column, PL_WHERE_DEPTH_MAX + 1);
		}
	}
	memset(text, ' ', sizeof(text));
	memcpy(text, "seq == 77", 9);
	text[PL_WHERE_TEXT_MAX] = '\0';
	eq(pl_where_new(&w, text, &diag), 0, "as long as allowed");
	pl_where_free(w);
	text[PL_WHERE_TEXT_MAX] = ' ';
	text[PL_WHERE_TEXT_MAX + 1] = '\0';
	ok(pl_where_new(&w, text, &diag) == -EINVAL, "one longer");
	for (n = 0; n + 20 < PL_WHERE_TEXT_MAX; n += 4)
		memcpy(text + n, "not ", 4);
	memcpy(text + n, "seq == 77", sizeof("seq == 77"));
	eq(pl_where_new(&w, text, &diag), 0, "a thousand nots");
	eq(pl_where_match(w, &path, hops, 3), n / 4 % 2 == 0);
	pl_where_free(w);
	memset(text, 'x', 300);
	text[300] = '\0';
	ok(pl_where_new(&w, text, &diag) == -EINVAL, "a long name");
	pl_where_free(NULL);
	eq(pl_where_new(&w, "all hops.node > 0", &diag), 0);
	ok(!pl_where_match(w, &path, NULL, 0), "a path without hops satisfies no hops. test");
	pl_where_free(w);
	eq(pl_where_new(&w, "all hops (node > 0) or any hop (node > 0 or missing(node))", &diag),
		0);
	ok(!pl_where_match(w, &path, NULL, 0), "nor one of a hop");
	pl_where_free(w);
}

/*
 * The witness: random expression trees over a few fields, evaluated from the tree with plain
 * recursion and the structures' members, against the compiled text.
 */
struct tree {
	uint64_t value;
	unsigned int left, right;
	unsigned int test, compare;
	char kind; /* 'a' and, 'o' or, 'n' not, else a test */
	bool all;
};

static struct tree trees[512];
static unsigned int n_trees;

static const char *const compare_words[] = { "==", "!=", "<", "<=", ">", ">=" };

static unsigned int grow(struct pl_rng *rng, unsigned int depth)
{
	unsigned int at = n_trees++;
	struct tree t = { .kind = "aonttt"[pl_rng_below(rng, depth == 0 ? 3 : 6)] };

	if (depth >= 5)
		t.kind = 't';
	if (t.kind == 'a' || t.kind == 'o') {
		t.left = grow(rng, depth + 1);
		t.right = grow(rng, depth + 1);
	} else if (t.kind == 'n') {
		t.left = grow(rng, depth + 1);
	} else {
		t.test = (unsigned int)pl_rng_below(rng, 6);
		t.compare = (unsigned int)pl_rng_below(rng, 6);
		t.value = pl_rng_below(rng, 4);
		t.all = pl_rng_below(rng, 2) != 0;
	}
	trees[at] = t;
	return at;
}

static int print_tree(char *dst, const struct tree *t)
{
	const char *word = compare_words[t->compare], *all = t->all ? "all " : "";
	int n;

	switch (t->kind) {
	case 'a':
	case 'o':
		n = sprintf(dst, "(");
		n += print_tree(dst + n, &trees[t->left]);
		n += sprintf(dst + n, t->kind == 'a' ? ") and (" : ") or (");
		n += print_tree(dst + n, &trees[t->right]);
		return n + sprintf(dst + n, ")");
	case 'n':
		n = sprintf(dst, "not (");
		n += print_tree(dst + n, &trees[t->left]);
		return n + sprintf(dst + n, ")");
	default:
		break;
	}
	switch (t->test) {
	case 0:
		return sprintf(dst, "seq %s %d", word, (int)t->value);
	case 1:
		return sprintf(dst, "%shops.queue_depth %s %d", all, word, (int)t->value);
	case 2:
		return sprintf(dst, "%shops.link_latency_ns %s %dns", all, word, (int)t->value - 2);
	case 3:
		return sprintf(dst, "flags.congested");
	case 4:
		return sprintf(dst, "%smissing(hops.queue_depth)", all);
	default:
		return sprintf(dst, "exists(seq)");
	}
}

static bool compared(unsigned int compare, int64_t a, int64_t b)
{
	const bool results[] = { a == b, a != b, a<b, a <= b, a> b, a >= b };

	return results[compare];
}

static bool hop_holds(const struct tree *t, const struct pl_hop *h)
{
	if (t->test == 1)
		return (h->present & PL_HOP_HAS_queue_depth) != 0 &&
		       compared(t->compare, h->queue_depth, (int64_t)t->value);
	if (t->test == 2)
		return (h->present & PL_HOP_HAS_link_latency_ns) != 0 &&
		       compared(t->compare, h->link_latency_ns, (int64_t)t->value - 2);
	return (h->present & PL_HOP_HAS_queue_depth) == 0;
}

static bool tree_holds(const struct tree *t, size_t n)
{
	size_t hold = 0;

	if (t->kind == 'a')
		return tree_holds(&trees[t->left], n) && tree_holds(&trees[t->right], n);
	if (t->kind == 'o')
		return tree_holds(&trees[t->left], n) || tree_holds(&trees[t->right], n);
	if (t->kind == 'n')
		return !tree_holds(&trees[t->left], n);
	if (t->test == 0)
		return (path.present & PL_PATH_HAS_seq) != 0 &&
		       compared(t->compare, path.seq, (int64_t)t->value);
	if (t->test == 3)
		return (path.flags & PL_FLAG_CONGESTED) != 0;
	if (t->test == 5)
		return (path.present & PL_PATH_HAS_seq) != 0;
	for (size_t i = 0; i < n; i++)
		hold += hop_holds(t, &hops[i]);
	return t->all ? n > 0 && hold == n : hold > 0;
}

static void test_witness(void)
{
	uint64_t seed = 443;
	unsigned int agree = 0, compiled = 0, yes = 0, total = 0;
	static char text[64 * 1024];
	struct pl_rng rng;

	printf("# seed %" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	for (int round = 0; round < 2000; round++) {
		struct pl_where *w;
		unsigned int root;

		n_trees = 0;
		root = grow(&rng, 0);
		if (print_tree(text, &trees[root]) > PL_WHERE_TEXT_MAX)
			continue;
		total++;
		if (pl_where_new(&w, text, NULL) < 0) {
			printf("# refused: %s\n", text);
			continue;
		}
		compiled++;
		for (int i = 0; i < 20; i++) {
			size_t n = pl_rng_below(&rng, 4);
			bool want, got;

			path.present = pl_rng_below(&rng, 3) == 0 ? 0 : PL_PATH_HAS_seq;
			path.seq = (uint32_t)pl_rng_below(&rng, 4);
			path.flags = (uint16_t)pl_rng_below(&rng, 4);
			for (size_t h = 0; h < n; h++) {
				hops[h].present = (uint32_t)pl_rng_u64(&rng);
				hops[h].queue_depth = (uint32_t)pl_rng_below(&rng, 4);
				hops[h].link_latency_ns = (int64_t)pl_rng_below(&rng, 4) - 2;
			}
			want = tree_holds(&trees[root], n);
			got = pl_where_match(w, &path, hops, n);
			agree += got == want;
			yes += want;
			if (got != want)
				printf("# differs: %s\n", text);
		}
		pl_where_free(w);
	}
	eq(compiled, total, "every generated expression compiles");
	eq(agree, total * 20, "the program agrees with the plain evaluation");
	ok(yes > total * 4 && yes < total * 16, "both answers occur (%u of %u)", yes, total * 20);
}

/* Texts of rows may be longer than those of records. */
static void test_long_texts(void)
{
	static const struct {
		uint32_t present;
		char nodes[96];
	} row = { .nodes = "10001>10002>10003>10004>10005>10006>10007>10008" };
	static const struct pl_field field = { .name = "nodes",
		.unit = "",
		.help = "",
		.offset = sizeof(uint32_t),
		.form = PL_FORM_TEXT };
	static const struct {
		const char *text;
		bool want;
	} cases[] = {
		{ "nodes == \"10001>10002>10003>10004>10005>10006>10007>10008\"", true },
		{ "nodes == \"10001>10002>10003>10004>10005>10006>10007>10009\"", false },
		{ "nodes != \"10001>10002>10003>10004>10005>10006>10007>10009\"", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_where *w;

		if (pl_where_new_over(&w, &field, 1, cases[i].text, NULL) < 0)
			abort();
		eq(pl_where_match_row(w, &row, 0), cases[i].want, "%s", cases[i].text);
		pl_where_free(w);
	}
}

int main(void)
{
	make_records();
	test_matches();
	test_faults();
	test_bounds();
	test_witness();
	test_long_texts();
	return pl_test_done();
}
