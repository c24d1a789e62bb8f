/* SPDX-License-Identifier: BSD-2-Clause */
/* Options out of rows: names, help, values and what is wrong with them. */
#include "base/conf_opt.h"

#include <string.h>

#include "base/buf.h"
#include "base/test.h"

struct conf {
	uint64_t peers, silent_ns;
	double rate;
	bool read;
	unsigned int form;
	char *folder, *other;
	struct pl_conf_list allow;
};

static const char *const forms[] = { "tracking", "plain", NULL };

#define AT(member) .offset = offsetof(struct conf, member)
static const struct pl_conf_row rows[] = {
	{ .key = "a.peers_each",
		.type = PL_CONF_U64,
		AT(peers),
		.def = "64",
		.min = 1,
		.max = 100,
		.help = "Most peers." },
	{ .key = "a.silent",
		.type = PL_CONF_DURATION,
		AT(silent_ns),
		.def = "0s",
		.help = "RDMA time; 0s: never." },
	{ .key = "b.other", .type = PL_CONF_STRING, AT(other), .help = "Of somebody else." },
	{ .key = "a.rate", .type = PL_CONF_RATE, AT(rate), .def = "0", .help = "Rate." },
	{ .key = "a.read",
		.type = PL_CONF_BOOL,
		AT(read),
		.def = "false",
		.help = "Let them read." },
	{ .key = "a.form",
		.type = PL_CONF_CHOICE,
		AT(form),
		.def = "tracking",
		.choices = forms,
		.help = "Form." },
	{ .key = "a.sub.folder",
		.type = PL_CONF_STRING,
		AT(folder),
		.help = "Folder.",
		.value = "FOLDER" },
	{ .key = "a.operand", .type = PL_CONF_STRING, AT(other), .help = "An operand." },
	{ .key = "a.allowed",
		.type = PL_CONF_STRINGS,
		AT(allow),
		.max = 2,
		.help = "Those.",
		.option = "allow",
		.value = "PREFIX" },
	{ 0 },
};

static const char *const operands[] = { "a.operand", NULL };
static bool stats;
static const struct pl_opt more[] = {
	{ PL_OPT_FLAG, 0, "stats", &stats, NULL, "counters", NULL },
	{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
};

/* The code; of an error its text. */
static int given(struct conf *conf, struct pl_diag *diag, int argc, const char *const *argv)
{
	static struct pl_conf_opts o;
	struct pl_opt_list list = { 0 };
	const struct pl_opt *table = pl_conf_opts(&o, rows, "a.", operands, more);
	int r;

	memset(conf, 0, sizeof(*conf));
	diag->text[0] = '\0';
	r = pl_opt_parse(table, argc, (char **)(uintptr_t)argv, &list, diag);
	if (r == 0)
		r = pl_conf_defaults(rows, conf);
	if (r == 0)
		r = pl_conf_opts_set(&o, conf, diag);
	pl_opt_list_done(&list);
	pl_conf_opts_done(&o);
	return r;
}

#define GIVEN(conf, diag, ...)                                                                     \
	given(conf, diag, sizeof((const char *[]){ "x", __VA_ARGS__ }) / sizeof(char *),           \
		(const char *[]){ "x", __VA_ARGS__ })

static void test_help(void)
{
	static struct pl_conf_opts o;
	struct pl_buf out;

	pl_buf_init(&out);
	pl_opt_help(pl_conf_opts(&o, rows, "a.", operands, more), &out);
	ok(strstr(out.data, "--peers-each NUMBER     most peers (default 64)") != NULL, "a number");
	ok(strstr(out.data, "--silent TIME           RDMA time; 0s: never\n") != NULL, "a time");
	ok(strstr(out.data, "--sub-folder FOLDER     folder\n") != NULL, "a placeholder");
	ok(strstr(out.data, "--allow PREFIX          those; may be repeated") != NULL, "a list");
	ok(strstr(out.data, "--read                  let them read\n") != NULL, "a flag");
	ok(strstr(out.data, "--stats") != NULL, "the command's own");
	ok(strstr(out.data, "operand") == NULL && strstr(out.data, "other") == NULL, "no more");
	pl_buf_done(&out);
}

static void test_values(void)
{
	struct pl_diag diag = { .text = "" };
	struct conf c;

	eq(given(&c, &diag, 1, (const char *[]){ "x" }), 0);
	eq(c.peers, 64);
	ok(!c.read && c.allow.n == 0 && c.folder == NULL, "defaults");
	pl_conf_done(rows, &c);
	eq(GIVEN(&c, &diag, "--peers-each", "7", "--silent=2s", "--rate", "10k", "--read", "--form",
		   "plain", "--sub-folder", "/a/$b/${c}", "--allow", "p", "--allow", "q"),
		0);
	eq(c.peers, 7);
	eq(c.silent_ns, 2000000000);
	ok(c.rate == 10000 && c.read, "a rate and a flag");
	eq(c.form, 1);
	streq(c.folder, "/a/$b/${c}");
	eq(c.allow.n, 2);
	streq(((char **)c.allow.items)[1], "q");
	pl_conf_done(rows, &c);
}

static void test_wrong(void)
{
	struct pl_diag diag = { .text = "" };
	struct conf c;

	ok(GIVEN(&c, &diag, "--peers-each", "101") < 0, "a number out of range");
	streq(diag.text, "\"--peers-each\" must be from 1 to 100, not 101");
	pl_conf_done(rows, &c);
	ok(GIVEN(&c, &diag, "--silent", "soon") < 0, "no time");
	streq(diag.text, "\"--silent\" must be a duration such as 250us, 1.5s or 2m, not \"soon\"");
	pl_conf_done(rows, &c);
	ok(GIVEN(&c, &diag, "--allow", "a", "--allow", "b", "--allow", "c") < 0, "too many");
	streq(diag.text, "\"--allow\" must be from 0 to 2, not 3 times");
	pl_conf_done(rows, &c);
	ok(GIVEN(&c, &diag, "--form", "plan") < 0, "no such word");
	ok(GIVEN(&c, &diag, "--operand", "x") < 0, "what is an operand is no option");
}

int main(void)
{
	test_help();
	test_values();
	test_wrong();
	return pl_test_done();
}
