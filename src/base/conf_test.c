/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/conf.h"

#include <errno.h>
#include <unistd.h>

#include "base/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct port {
	uint64_t number;
	char *name;
};

struct source {
	char *uri;
	uint64_t buffer_bytes;
	struct pl_conf_list ports;
	struct pl_conf_list tags;
};

struct conf {
	bool fast;
	uint64_t workers, spare;
	double ratio;
	uint64_t memory_bytes, window_ns;
	char *title, *note;
	unsigned int level;
	struct pl_conf_list words;
	struct pl_conf_list sources;
	char *listen;
	uint64_t tls_port;
};

static const char *const levels[] = { "error", "warning", "notice", NULL };

static int check_uri(const char *value, struct pl_diag *diag)
{
	if (strstr(value, "://") != NULL)
		return 0;
	pl_diag_set(diag, "not a URI: %s", value);
	return -EINVAL;
}

static const struct pl_conf_row port_rows[] = {
	{ "number", PL_CONF_U64, offsetof(struct port, number), "80", 1, 65535, "The number." },
	{ "name", PL_CONF_STRING, offsetof(struct port, name), .help = "A name." },
	{ NULL },
};

static const struct pl_conf_row source_rows[] = {
	{ "uri", PL_CONF_STRING, offsetof(struct source, uri), "udp://:1", .help = "From where.",
		.required = true, .check = check_uri },
	{ "buffer", PL_CONF_SIZE, offsetof(struct source, buffer_bytes), "64KiB", 4096, 1 << 30 },
	{ "ports", PL_CONF_LIST, offsetof(struct source, ports), .rows = port_rows,
		.item_size = sizeof(struct port), .max = 3, .help = "Ports." },
	{ "tags", PL_CONF_STRINGS, offsetof(struct source, tags), .help = "Tags.", .max = 4,
		.one = true },
	{ NULL },
};

static const struct pl_conf_row rows[] = {
	{ "fast", PL_CONF_BOOL, offsetof(struct conf, fast), "true", .help = "Whether to hurry." },
	{ "workers", PL_CONF_U64, offsetof(struct conf, workers), "2", 1, 64, "Threads." },
	{ "spare", PL_CONF_U64, offsetof(struct conf, spare), NULL, 5, 9, "Spare." },
	{ "ratio", PL_CONF_DOUBLE, offsetof(struct conf, ratio), "0.5", 0, 1, "A share." },
	{ "memory", PL_CONF_SIZE, offsetof(struct conf, memory_bytes), "1.5MiB",
		.help = "Memory." },
	{ "window", PL_CONF_DURATION, offsetof(struct conf, window_ns), "10s", 1000000, 60000000000,
		"How long a window is, in a sentence that is long enough to be broken into two lines "
		"by whoever writes it." },
	{ "title", PL_CONF_STRING, offsetof(struct conf, title), "a: b #c", .help = "Title." },
	{ "note", PL_CONF_STRING, offsetof(struct conf, note), .help = "Note." },
	{ "level", PL_CONF_CHOICE, offsetof(struct conf, level), "notice", .choices = levels },
	{ "words", PL_CONF_STRINGS, offsetof(struct conf, words), "[one, two]", 0, 4, "Words." },
	{ "sources", PL_CONF_LIST, offsetof(struct conf, sources), .rows = source_rows,
		.item_size = sizeof(struct source), .help = "Sources." },
	{ "web.listen", PL_CONF_STRING, offsetof(struct conf, listen), ":9090", .help = "Where." },
	{ "web.tls.port", PL_CONF_U64, offsetof(struct conf, tls_port), "443", 1, 65535, "Port." },
	{ NULL },
};

static int parse(const char *text, struct conf *ret, struct pl_diag *diag)
{
	*ret = (struct conf){ 0 };
	if (diag != NULL)
		*diag = (struct pl_diag){ 0 };
	return pl_conf_parse(rows, "t.yaml", text, strlen(text), ret, diag);
}

static bool all_default(const struct conf *c)
{
	return c->fast && c->workers == 2 && c->spare == 0 && c->ratio == 0.5 &&
	       c->memory_bytes == 1572864 && c->window_ns == 10000000000 &&
	       strcmp(c->title, "a: b #c") == 0 && c->level == 2 && c->words.n == 2 &&
	       strcmp(((char **)c->words.items)[1], "two") == 0 &&
	       strcmp(c->listen, ":9090") == 0 && c->tls_port == 443;
}

/* A list that may be written as its one entry. */
static void test_one(void)
{
	struct pl_diag diag;
	struct conf c;

	eq(parse("sources: [{uri: 'u://', tags: a}]", &c, &diag), 0, "one entry: %s", diag.text);
	if (eq(c.sources.n, 1, "a source") &&
		eq(((struct source *)c.sources.items)->tags.n, 1, "one tag"))
		streq(((char **)((struct source *)c.sources.items)->tags.items)[0], "a",
			"which is the word");
	pl_conf_done(rows, &c);
}

static void test_defaults(void)
{
	static const char *const texts[] = { "", "\n", "# nothing\n", "---\n", "{}", "web:\n",
		"web: {}", "sources:\n", "sources: []", "note:", "spare:\n", "---\n...\n",
		"\xef\xbb\xbf" };
	struct pl_diag diag;
	struct conf c;

	for (size_t i = 0; i < COUNT(texts); i++) {
		eq(parse(texts[i], &c, &diag), 0, "text %zu: %s", i, diag.text);
		ok(all_default(&c) && c.note == NULL && c.sources.n == 0,
			"text %zu is all defaults", i);
		pl_conf_done(rows, &c);
	}
	ok(c.title == NULL && c.words.items == NULL, "done leaves nothing");
}

static const char full[] = "fast: off\n"
			   "workers: 0x10\n"
			   "ratio: 1e-1\n"
			   "memory: '4096'\n"
			   "window: 250ms\n"
			   "title: \"${PL_TEST_A} $$5 $x ${PL_TEST_EMPTY}.\"\n"
			   "note: |\n"
			   "  two\n"
			   "  lines\n"
			   "level: error\n"
			   "words: []\n"
			   "sources:\n"
			   "- uri: udp://:1\n"
			   "- uri: pcap://${PL_TEST_A}\n"
			   "  buffer: 1MiB\n"
			   "  tags: [a, ~, \"\", true]\n"
			   "  ports:\n"
			   "  - {number: 5, name: five}\n"
			   "  -\n"
			   "web:\n"
			   "  tls: {port: 1}\n";

static void check_full(const struct conf *c, const char *what)
{
	const struct source *s = c->sources.items;
	const struct port *p;

	ok(!c->fast && c->workers == 16 && c->ratio == 0.1 && c->memory_bytes == 4096,
		"%s: numbers", what);
	ok(c->window_ns == 250000000 && c->level == 0 && c->words.n == 0 && c->tls_port == 1,
		"%s: more", what);
	streq(c->title, "v\xc3\xa4l $5 $x .", "%s: the environment and dollars", what);
	streq(c->note, "two\nlines\n", "%s: lines", what);
	streq(c->listen, ":9090", "%s: a default beside a value", what);
	if (!ok(c->sources.n == 2, "%s: two sources", what))
		return;
	streq(s[0].uri, "udp://:1", "%s: first", what);
	eq(s[0].buffer_bytes, 65536, "%s: default in an element", what);
	streq(s[1].uri, "pcap://v\xc3\xa4l", "%s: second", what);
	if (!ok(s[1].tags.n == 4 && s[1].ports.n == 2, "%s: lists inside", what))
		return;
	streq(((char **)s[1].tags.items)[1], "~", "%s: no null", what);
	streq(((char **)s[1].tags.items)[2], "", "%s: empty word", what);
	streq(((char **)s[1].tags.items)[3], "true", "%s: no boolean", what);
	p = s[1].ports.items;
	ok(p[0].number == 5 && p[1].number == 80 && p[1].name == NULL, "%s: list in a list", what);
	streq(p[0].name, "five", "%s: its string", what);
}

static void test_values(void)
{
	struct pl_diag diag;
	struct pl_buf out, again;
	struct conf c, back;

	setenv("PL_TEST_A", "v\xc3\xa4l", 1);
	setenv("PL_TEST_EMPTY", "", 1);
	pl_buf_init(&out);
	pl_buf_init(&again);
	if (!ok(parse(full, &c, &diag) == 0, "all types: %u:%u %s", diag.line, diag.column,
		    diag.text))
		return;
	check_full(&c, "text");
	pl_conf_dump(rows, &c, &out);
	unsetenv("PL_TEST_A");
	if (!ok(parse(out.data, &back, &diag) == 0, "dump: %u:%u %s", diag.line, diag.column,
		    diag.text))
		printf("%s", out.data);
	check_full(&back, "dump");
	pl_conf_dump(rows, &back, &again);
	streq(again.data, out.data, "dump of a dump");
	pl_conf_done(rows, &c);
	pl_conf_done(rows, &back);
	pl_buf_done(&out);
	pl_buf_done(&again);
}

static void test_template(void)
{
	struct pl_diag diag;
	struct pl_buf out;
	struct conf c;
	char *to, *line;

	pl_buf_init(&out);
	pl_conf_template(rows, &out);
	eq(parse(out.data, &c, &diag), 0, "template: %u:%u %s", diag.line, diag.column, diag.text);
	ok(all_default(&c) && c.sources.n == 0, "the template is all defaults");
	pl_conf_done(rows, &c);
	ok(strstr(out.data, "## Threads. Range: 1 to 64.\n# workers: 2\n") != NULL,
		"help and range");
	ok(strstr(out.data, "Range: 1ms to 1m.") != NULL, "a range in its own unit");
	ok(strstr(out.data, "One of: error, warning, notice.") != NULL, "choices");

	to = out.data;
	for (line = out.data; *line != '\0';) {
		size_t n = strcspn(line, "\n") + 1;

		if (strncmp(line, "# ", 2) == 0) {
			memmove(to, line + 2, n - 2);
			to += n - 2;
		} else {
			memmove(to, line, n);
			to += n;
		}
		line += n;
	}
	*to = '\0';
	if (!ok(parse(out.data, &c, &diag) == 0, "uncommented: %u:%u %s", diag.line, diag.column,
		    diag.text))
		printf("%s", out.data);
	else
		ok(all_default(&c) && c.sources.n == 1,
			"uncommented it has the defaults and one source");
	pl_conf_done(rows, &c);
	pl_buf_done(&out);
}

static void test_errors(void)
{
	static const struct {
		const char *text;
		unsigned int line, column;
		const char *want; /* whole text */
	} cases[] = {
		{ "sorces: []", 1, 1, "unknown key \"sorces\", did you mean \"sources\"?" },
		{ "zzzzzz: 1", 1, 1, "unknown key \"zzzzzz\"" },
		{ "web.listen: x", 1, 1, "unknown key \"web.listen\"" },
		{ "web:\n  lisen: x", 2, 3,
			"unknown key \"lisen\" in \"web\", did you mean \"listen\"?" },
		{ "web:\n  tls:\n    prt: 1", 3, 5,
			"unknown key \"prt\" in \"web.tls\", did you mean \"port\"?" },
		{ "sources:\n- uri: a://\n  tgs: []", 3, 3,
			"unknown key \"tgs\" in \"sources[0]\", did you mean \"tags\"?" },
		{ "<<: {fast: on}", 1, 1, "unknown key \"<<\"" },
		{ "fast: on\nworkers: 1\nfast: on", 3, 1,
			"duplicate key \"fast\" (first in line 1)" },
		{ "web: {}\nweb: {}", 2, 1, "duplicate key \"web\" (first in line 1)" },
		{ "workers: 65", 1, 10, "\"workers\" must be from 1 to 64, not 65" },
		{ "workers: 0", 1, 10, "\"workers\" must be from 1 to 64, not 0" },
		{ "workers: 99999999999999999999", 1, 10,
			"\"workers\" must be from 1 to 64, not 99999999999999999999" },
		{ "memory: 99999999TiB", 1, 9, "\"memory\" is too large: 99999999TiB" },
		{ "window: 2m", 1, 9, "\"window\" must be from 1ms to 1m, not 2m" },
		{ "ratio: 1.5", 1, 8, "\"ratio\" must be from 0 to 1, not 1.5" },
		{ "ratio: -0.5", 1, 8, "\"ratio\" must be from 0 to 1, not -0.5" },
		{ "words: [a, b, c, d, e]", 1, 8, "\"words\" must be from 0 to 4, not 5 entries" },
		{ "workers: two", 1, 10, "\"workers\" must be a whole number, not \"two\"" },
		{ "workers: -1", 1, 10, "\"workers\" must be a whole number, not \"-1\"" },
		{ "workers:", 1, 9, "\"workers\" needs a whole number" },
		{ "workers: ''", 1, 10, "\"workers\" needs a whole number" },
		{ "title:", 1, 7, "\"title\" needs a value" },
		{ "workers: [1]", 1, 10, "\"workers\" must be a whole number, not a list" },
		{ "title: {a: b}", 1, 8, "\"title\" must be a value, not a map" },
		{ "fast: maybe", 1, 7, "\"fast\" must be true or false, not \"maybe\"" },
		{ "window: 5", 1, 9,
			"\"window\" must be a duration such as 250us, 1.5s or 2m, not \"5\"" },
		{ "level: warnin", 1, 8,
			"\"level\" must be one of error, warning, notice, not \"warnin\", did you mean \"warning\"?" },
		{ "web: 5", 1, 6, "\"web\" must be a map of keys and values" },
		{ "web: [a]", 1, 6, "\"web\" must be a map of keys and values" },
		{ "sources: {uri: x}", 1, 10, "\"sources\" must be a list of maps, not a map" },
		{ "sources: [x]", 1, 11, "\"sources[0]\" must be a map of keys and values" },
		{ "sources:\n  - buffer: 4KiB\n", 2, 5, "\"sources[0]\": key \"uri\" is missing" },
		{ "sources:\n  -\n", 2, 4, "\"sources[0]\": key \"uri\" is missing" },
		{ "sources: [{uri: x}]", 1, 17, "\"sources[0].uri\": not a URI: x" },
		{ "sources: [{uri: 'a://'}, {uri: 'a://', ports: [{number: 0}]}]", 1, 57,
			"\"sources[1].ports[0].number\" must be from 1 to 65535, not 0" },
		{ "sources: [{uri: 'u://', tags: {a: b}}]", 1, 31,
			"\"sources[0].tags\" must be a list of words, not a map" },
		{ "words: [a, [b]]", 1, 12, "\"words[1]\" must be a list of words, not a list" },
		{ "words: a", 1, 8, "\"words\" must be a list of words, not \"a\"" },
		{ "title: ${PL_TEST_UNSET}", 1, 8,
			"\"title\": there is no environment variable PL_TEST_UNSET" },
		{ "title: ${PL_TEST", 1, 8,
			"\"title\": ${NAME} is not closed or its name is not one (write $$ for $)" },
		{ "title: a${}", 1, 8,
			"\"title\": ${NAME} is not closed or its name is not one (write $$ for $)" },
		{ "title: ${PL_TEST_BAD}", 1, 8,
			"\"title\": the variable PL_TEST_BAD is not UTF-8" },
		{ "title: &a x", 1, 8, "anchors are not accepted" },
		{ "web: &a {}", 1, 6, "anchors are not accepted" },
		{ "title: *a", 1, 8, "aliases are not accepted" },
		{ "*a : b", 1, 1, "aliases are not accepted" },
		{ "workers: !!int 5", 1, 10, "tags are not accepted" },
		{ "words: !x [a]", 1, 8, "tags are not accepted" },
		{ "title: \"a\\0b\"", 1, 8, "a zero byte inside a value" },
		{ "[a]: b", 1, 1, "a key must be a word" },
		{ "? {a: b}\n: c", 1, 3, "a key must be a word" },
		{ "fast: on\n---\nfast: on\n", 2, 1, "a second document is not accepted" },
		{ "[1, 2]", 1, 1, "the configuration must be a map of keys and values" },
		{ "hello", 1, 1, "the configuration must be a map of keys and values" },
		{ "words: [[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]", 1, 23,
			"nested more than 16 levels deep" },
		{ "fast: \x1b[0m\xff", 0, 0, NULL },
		{ "web:\n\tlisten: x", 2, 1, NULL },
		{ "title: 'open", 1, 13, NULL },
		{ "a: b: c", 1, 5, NULL },
		{ "words: [a", 2, 1, NULL },
		{ "%YAML 9.0\n---\n", 1, 1, NULL },
		{ "title: \"\\q\"", 0, 0, NULL },
	};
	struct pl_diag diag;
	struct conf c;

	setenv("PL_TEST_BAD", "\xff", 1);
	for (size_t i = 0; i < COUNT(cases); i++) {
		eq(parse(cases[i].text, &c, &diag), -EINVAL, "case %zu is refused", i);
		if (cases[i].want != NULL)
			streq(diag.text, cases[i].want);
		else
			ok(diag.text[0] != '\0', "case %zu: %u:%u %s", i, diag.line, diag.column,
				diag.text);
		if (cases[i].line != 0)
			ok(diag.line == cases[i].line && diag.column == cases[i].column,
				"case %zu at %u:%u, got %u:%u", i, cases[i].line, cases[i].column,
				diag.line, diag.column);
		streq(diag.file, "t.yaml");
		ok(c.title == NULL && c.words.items == NULL && c.sources.items == NULL,
			"case %zu leaves nothing allocated", i);
		eq(parse(cases[i].text, &c, NULL), -EINVAL, "case %zu without diag", i);
	}
}

static void test_bounds(void)
{
	struct pl_diag diag = { 0 };
	struct conf c = { 0 };
	struct pl_buf text;

	pl_buf_init(&text);
	pl_buf_str(&text, "words: [");
	for (int i = 0; i < 200001; i++)
		pl_buf_str(&text, "a,");
	pl_buf_str(&text, "]");
	eq(parse(text.data, &c, &diag), -EINVAL);
	streq(diag.text, "more than 200000 values");
	pl_buf_reset(&text);
	pl_buf_str(&text, "#");
	for (int i = 0; i < 1 << 24; i++)
		pl_buf_chr(&text, 'x');
	eq(parse(text.data, &c, &diag), -EINVAL);
	streq(diag.text, "more than 16777216 bytes");
	text.data[--text.len] = '\0';
	eq(parse(text.data, &c, &diag), 0, "16 MiB itself is taken");
	pl_conf_done(rows, &c);
	pl_buf_reset(&text);
	for (int i = 0; i < 100000; i++)
		pl_buf_chr(&text, '[');
	eq(parse(text.data, &c, &diag), -EINVAL, "deep nesting ends: %s", diag.text);
	pl_buf_done(&text);
	eq(pl_conf_load(rows, "/nonexistent/x.yaml", &c, NULL, &diag), -ENOENT);
	streq(diag.text, "cannot read: No such file or directory");
	streq(diag.file, "/nonexistent/x.yaml");
}

/* The tree has room for the values of any text, however few bytes they take. */
static void test_short_texts(void)
{
	static const char letters[] = "-?:a{}[], \n";
	const unsigned int n = sizeof(letters) - 1;
	unsigned int wrong = 0;
	char text[5] = "";

	for (unsigned int i = 0; i < n * n * n * n; i++) {
		struct pl_diag diag = { 0 };
		struct conf c = { 0 };

		for (unsigned int k = 0, rest = i; k < 4; k++, rest /= n)
			text[k] = letters[rest % n];
		if (parse(text, &c, &diag) == 0)
			pl_conf_done(rows, &c);
		wrong += strstr(diag.text, "more than") != NULL;
	}
	eq(wrong, 0, "texts of four bytes without room for their values");
}

/* A map whose keys are the file's own. */
static void pairs(void)
{
	static const struct pl_conf_row pair_rows[] = {
		{ .key = "users", .type = PL_CONF_PAIRS, .offset = 0, .max = 2, .help = "Names." },
		{ .type = PL_CONF_END },
	};
	static const struct {
		const char *text;
		size_t n; /* 99: refused */
	} cases[] = {
		{ "users:\n  a: 1\n  'b c': \"x$$y\"\n", 2 },
		{ "users: {}\n", 0 },
		{ "users:\n", 0 },
		{ "", 0 },
		{ "users: [a]\n", 99 },
		{ "users: a\n", 99 },
		{ "users:\n  a: [1]\n", 99 },
		{ "users:\n  a: 1\n  a: 2\n", 99 },
		{ "users:\n  a: 1\n  b: 2\n  c: 3\n", 99 },
	};
	struct pl_conf_list list, again;
	struct pl_diag diag = { .text = "" };
	struct pl_buf out;

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct pl_conf_pair *p;
		int r;

		list = again = (struct pl_conf_list){ 0 };
		r = pl_conf_parse(
			pair_rows, "t", cases[i].text, strlen(cases[i].text), &list, &diag);
		eq(r < 0, cases[i].n == 99, "pairs %zu: %s", i, diag.text);
		if (r < 0)
			continue;
		eq(list.n, cases[i].n);
		p = list.items;
		if (list.n == 2) {
			streq(p[1].name, "b c");
			streq(p[1].value, "x$y");
		}
		pl_buf_init(&out);
		pl_conf_dump(pair_rows, &list, &out);
		eq(pl_conf_parse(pair_rows, "t", out.data, out.len, &again, &diag), 0,
			"reads back: %s", diag.text);
		eq(again.n, list.n);
		pl_buf_done(&out);
		pl_conf_done(pair_rows, &list);
		pl_conf_done(pair_rows, &again);
	}
}

/* A text that was cut does not end as it did. */
static void endings(void)
{
	static const struct {
		const char *text;
		bool newline, marker, keys;
	} all[] = {
		{ "", false, false, false },
		{ "a: 1", false, false, true },
		{ "a: 1\n", true, false, true },
		{ "a: 1\n..", false, false, true },
		{ "a: 1\n...", false, true, true },
		{ "a: 1\n...\n\n", true, true, true },
		{ "a: 1...\n", true, false, true },
		{ "# a: 1\n", true, false, false },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct pl_conf_ending e;

		pl_conf_look_at_end(all[i].text, strlen(all[i].text), &e);
		ok(e.newline == all[i].newline && e.marker == all[i].marker &&
				e.keys == all[i].keys,
			"the end of \"%s\"", all[i].text);
	}
}

int main(void)
{
	test_defaults();
	test_one();
	test_values();
	test_template();
	test_errors();
	test_bounds();
	test_short_texts();
	pairs();
	endings();
	return pl_test_done();
}
