/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/opt.h"

#include <errno.h>

#include "base/buf.h"
#include "base/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct {
	bool stats, verbose;
	const char *where, *output, *only;
	uint64_t count, most, buffer_bytes, every_ns;
	double rate, share;
	struct pl_opt_list sets;
} v;

static const char *const outputs[] = { "table", "json", NULL };

static const struct pl_opt table[] = {
	{ PL_OPT_FLAG, 's', "stats", &v.stats, .help = "end with counts" },
	{ PL_OPT_FLAG, 'v', "verbose", &v.verbose, .help = "say more" },
	{ PL_OPT_STRING, 'w', "where", &v.where, "EXPR",
		"only records that match, with a help text that "
		"needs more than one line to say so" },
	{ PL_OPT_HEADING, .name = "Limits" },
	{ PL_OPT_U64, 'n', "count", &v.count, "COUNT", "stop after so many" },
	{ PL_OPT_COUNT, 0, "most", &v.most, "COUNT", "how many at most" },
	{ PL_OPT_SIZE, 0, "a-rather-long-buffer-option", &v.buffer_bytes, "BYTES", "how much" },
	{ PL_OPT_DURATION, 0, "every", &v.every_ns, "TIME", "how often" },
	{ PL_OPT_RATE, 'r', NULL, &v.rate, "RATE", "how fast" },
	{ PL_OPT_DOUBLE, 0, "share", &v.share, NULL, "how much of it" },
	{ PL_OPT_CHOICE, 'o', "output", &v.output, "FORM", "form", .choices = outputs },
	{ PL_OPT_LIST, 0, "set", &v.sets, "KEY=VALUE", "set a key" },
	{ PL_OPT_ONCE, 0, "only", &v.only, "WHAT", "one of them" },
	{ PL_OPT_END },
};

/* Splits a line at blanks and parses it. */
static int parse(const char *line, struct pl_opt_list *ret, struct pl_diag *diag)
{
	static char copy[512];
	char *argv[32], *save = NULL;
	int argc = 0;

	pl_opt_list_done(&v.sets);
	memset(&v, 0, sizeof(v));
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &save); word != NULL;
		word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	argv[argc] = NULL;
	if (diag != NULL)
		*diag = (struct pl_diag){ 0 };
	return pl_opt_parse(table, argc, argv, ret, diag);
}

static void test_good(void)
{
	struct pl_opt_list rest;

	eq(parse("x a --stats -n 5 - -w e --output=json b -- -v --x", &rest, NULL), 0);
	ok(v.stats && !v.verbose && v.count == 5, "flags and numbers");
	streq(v.where, "e");
	streq(v.output, "json");
	if (ok(rest.n == 5, "operands in order, also between options")) {
		streq(rest.items[0], "a");
		streq(rest.items[1], "-");
		streq(rest.items[2], "b");
		streq(rest.items[3], "-v", "behind --");
		streq(rest.items[4], "--x");
	}
	pl_opt_list_done(&rest);
	eq(parse("x -vsn5", &rest, NULL), 0);
	ok(v.verbose && v.stats && v.count == 5, "short options combine");
	eq(parse("x -vn 0x10 -r2.5k --every 1.5s --share=1e-1 --a-rather-long-buffer-option=1KiB",
		   &rest, NULL),
		0);
	ok(v.count == 16 && v.rate == 2500 && v.every_ns == 1500000000 && v.share == 0.1 &&
			v.buffer_bytes == 1024,
		"every kind");
	eq(parse("x --most 1 -n 0", &rest, NULL), 0);
	ok(v.most == 1 && v.count == 0, "the least count, and the least number");
	eq(parse("x --set a=1 --set=b=2 --set c --set d --set e", &rest, NULL), 0);
	ok(v.sets.n == 5, "a list");
	streq(v.sets.items[1], "b=2", "only the first = divides");
	streq(v.sets.items[4], "e");
	eq(parse("x --where= --set -v", &rest, NULL), 0);
	streq(v.where, "", "an empty value");
	streq(v.sets.items[0], "-v", "a value may look like an option");
	eq(parse("x a --help", &rest, NULL), 1);
	ok(rest.n == 0 && rest.items == NULL, "nothing left behind");
	eq(parse("x -vh", &rest, NULL), 1);
	eq(parse("x", &rest, NULL), 0);
	eq(rest.n, 0);
}

static void test_bad(void)
{
	static const struct {
		const char *line, *want;
	} cases[] = {
		{ "x --statz", "unknown option --statz, did you mean --stats?" },
		{ "x --hepl", "unknown option --hepl, did you mean --help?" },
		{ "x --sta", "unknown option --sta, did you mean --stats?" },
		{ "x --zzzzzzzz", "unknown option --zzzzzzzz" },
		{ "x --zzzzzzzz=5", "unknown option --zzzzzzzz" },
		{ "x --=5", "unknown option --" },
		{ "x --Limits", "unknown option --Limits" },
		{ "x -x", "unknown option -x" },
		{ "x -vx", "unknown option -x in -vx" },
		{ "x --stats=yes", "option --stats takes no value" },
		{ "x --help=yes", "unknown option --help, did you mean --help?" },
		{ "x --count", "option --count needs a value: COUNT" },
		{ "x -vn", "option -n needs a value: COUNT" },
		{ "x --share", "option --share needs a value" },
		{ "x -n five", "option -n must be a number such as 10 or 0x1f, not \"five\"" },
		{ "x -n-5", "option -n must be a number such as 10 or 0x1f, not \"-5\"" },
		{ "x --count=", "option --count must be a number such as 10 or 0x1f, not \"\"" },
		{ "x -n 99999999999999999999", "option -n: \"99999999999999999999\" is too large" },
		{ "x --most 0", "option --most must be a number of 1 or more, not \"0\"" },
		{ "x --most=few", "option --most must be a number of 1 or more, not \"few\"" },
		{ "x --every 5",
			"option --every must be a duration such as 250us, 1.5s or 2m, not \"5\"" },
		{ "x -r fast", "option -r must be a rate such as 1000, 10k or 2.5M, not \"fast\"" },
		{ "x --share x", "option --share must be a number such as 0.5 or 1e3, not \"x\"" },
		{ "x -o jsn", "option -o must be one of table, json, not \"jsn\"" },
		{ "x a b --set 1 -x", "unknown option -x" },
		{ "x --only a --only a", "option --only is given twice" },
		{ "x --only=a b --only=c", "option --only is given twice" },
	};
	struct pl_opt_list rest;
	struct pl_diag diag;

	for (size_t i = 0; i < COUNT(cases); i++) {
		eq(parse(cases[i].line, &rest, &diag), (uint64_t)-EINVAL, "%s", cases[i].line);
		streq(diag.text, cases[i].want);
		ok(rest.n == 0 && rest.items == NULL, "no operands are left to free");
	}
	pl_opt_list_done(&v.sets);
}

static void test_help(void)
{
	static const char want[] =
		"Options:\n"
		"  -s, --stats                 end with counts\n"
		"  -v, --verbose               say more\n"
		"  -w, --where EXPR            only records that match, with a help text that\n"
		"                              needs more than one line to say so\n"
		"\n"
		"Limits:\n"
		"  -n, --count COUNT           stop after so many\n"
		"      --most COUNT            how many at most\n"
		"      --a-rather-long-buffer-option BYTES\n"
		"                              how much\n"
		"      --every TIME            how often\n"
		"  -r RATE                     how fast\n"
		"      --share VALUE           how much of it\n"
		"  -o, --output FORM           form (table, json)\n"
		"      --set KEY=VALUE         set a key\n"
		"      --only WHAT             one of them\n"
		"  -h, --help                  show this help\n";
	struct pl_buf out;

	pl_buf_init(&out);
	pl_opt_help(table, &out);
	streq(out.data, want);
	pl_buf_done(&out);
}

int main(void)
{
	test_good();
	test_bad();
	test_help();
	return pl_test_done();
}
