/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration text against a schema with every type of row. A text that parses can be dumped, and
 * the dump parses to the same dump.
 */
#include "base/buf.h"
#include "base/conf.h"
#include "fuzz.h"

struct inner {
	char *name;
	double weight;
	uint64_t span;
};

struct element {
	char *uri;
	uint64_t count;
	struct pl_conf_list names, inners;
};

struct conf {
	bool on;
	uint64_t number, size, duration;
	double ratio;
	char *text;
	unsigned int choice;
	struct pl_conf_list words, elements;
};

static const char *const choices[] = { "first", "second", NULL };

static const struct pl_conf_row inner_rows[] = {
	{ .key = "name",
		.type = PL_CONF_STRING,
		.offset = offsetof(struct inner, name),
		.help = "a string that may be absent" },
	{ .key = "weight",
		.type = PL_CONF_DOUBLE,
		.offset = offsetof(struct inner, weight),
		.help = "any number" },
	{ .key = "span",
		.type = PL_CONF_DURATION,
		.offset = offsetof(struct inner, span),
		.min = 5,
		.help = "a number whose zero means absent" },
	{ .type = PL_CONF_END },
};

static const struct pl_conf_row element_rows[] = {
	{ .key = "uri",
		.type = PL_CONF_STRING,
		.offset = offsetof(struct element, uri),
		.required = true,
		.help = "a string" },
	{ .key = "count",
		.type = PL_CONF_U64,
		.offset = offsetof(struct element, count),
		.def = "1",
		.help = "a number" },
	{ .key = "names",
		.type = PL_CONF_STRINGS,
		.offset = offsetof(struct element, names),
		.help = "a list" },
	{ .key = "inners",
		.type = PL_CONF_LIST,
		.offset = offsetof(struct element, inners),
		.rows = inner_rows,
		.item_size = sizeof(struct inner),
		.help = "a list in a list" },
	{ .type = PL_CONF_END },
};

static const struct pl_conf_row rows[] = {
	{ .key = "on",
		.type = PL_CONF_BOOL,
		.offset = offsetof(struct conf, on),
		.def = "true",
		.help = "x" },
	{ .key = "a.number",
		.type = PL_CONF_U64,
		.offset = offsetof(struct conf, number),
		.def = "5",
		.min = 1,
		.max = 1000,
		.help = "x" },
	{ .key = "a.size",
		.type = PL_CONF_SIZE,
		.offset = offsetof(struct conf, size),
		.def = "4KiB",
		.help = "x" },
	{ .key = "a.b.duration",
		.type = PL_CONF_DURATION,
		.offset = offsetof(struct conf, duration),
		.def = "10ms",
		.help = "x" },
	{ .key = "a.b.ratio",
		.type = PL_CONF_DOUBLE,
		.offset = offsetof(struct conf, ratio),
		.def = "0.5",
		.help = "x" },
	{ .key = "text",
		.type = PL_CONF_STRING,
		.offset = offsetof(struct conf, text),
		.help = "x" },
	{ .key = "choice",
		.type = PL_CONF_CHOICE,
		.offset = offsetof(struct conf, choice),
		.def = "second",
		.choices = choices,
		.help = "x" },
	{ .key = "words",
		.type = PL_CONF_STRINGS,
		.offset = offsetof(struct conf, words),
		.max = 8,
		.help = "x" },
	{ .key = "elements",
		.type = PL_CONF_LIST,
		.offset = offsetof(struct conf, elements),
		.rows = element_rows,
		.item_size = sizeof(struct element),
		.max = 8,
		.help = "x" },
	{ .type = PL_CONF_END },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf conf = { 0 }, again = { 0 };
	struct pl_diag diag = { 0 };
	struct pl_buf first, second;

	if (pl_conf_parse(rows, "fuzz", (const char *)data, size, &conf, &diag) < 0) {
		must(diag.text[0] != '\0');
		return 0;
	}
	pl_buf_init(&first);
	pl_buf_init(&second);
	pl_conf_dump(rows, &conf, &first);
	must(!first.failed);
	must(pl_conf_parse(rows, "dump", first.data, first.len, &again, &diag) == 0);
	pl_conf_dump(rows, &again, &second);
	must(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	pl_buf_done(&first);
	pl_buf_done(&second);
	pl_conf_done(rows, &conf);
	pl_conf_done(rows, &again);
	return 0;
}
