/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines against a table with every type of row: arguments are lines. Nothing is lost and
 * nothing made up: what was taken stands somewhere in the arguments; a refusal says why. The URIs
 * of ports, too: each line is one.
 */
#include "base/opt.h"
#include "fuzz.h"
#include "netio/uri.h"

enum { ARGS = 16 };

static const char *const choices[] = { "table", "json", NULL };
static bool flag;
static const char *text, *choice;
static uint64_t number, size_bytes, duration_ns;
static double rate, ratio;
static struct pl_opt_list list;

static const struct pl_opt table[] = {
	{ PL_OPT_HEADING, 0, "General", NULL, NULL, NULL, NULL },
	{ PL_OPT_FLAG, 'f', "flag", &flag, NULL, "a flag", NULL },
	{ PL_OPT_STRING, 's', "string", &text, "TEXT", "a string", NULL },
	{ PL_OPT_U64, 'n', "count", &number, "N", "a number", NULL },
	{ PL_OPT_SIZE, 0, "size", &size_bytes, "SIZE", "a size", NULL },
	{ PL_OPT_DURATION, 0, "duration", &duration_ns, "TIME", "a duration", NULL },
	{ PL_OPT_RATE, 'r', "rate", &rate, "RATE", "a rate", NULL },
	{ PL_OPT_DOUBLE, 0, "ratio", &ratio, "X", "a ratio", NULL },
	{ PL_OPT_CHOICE, 'o', "output", &choice, "FORM", "a choice", choices },
	{ PL_OPT_LIST, 'l', "list", &list, "ITEM", "a list", NULL },
	{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
};

/* The string is an argument or the end of one. */
static bool of_arguments(const char *s, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (s >= argv[i] && s <= argv[i] + strlen(argv[i]))
			return true;
	}
	return false;
}

static void uri(const char *target)
{
	static const char *const keys[] = { "rcvbuf", "reuse", "mode", NULL };
	static struct pl_uri u;
	struct pl_diag diag = { 0 };
	uint64_t bytes = 77;
	bool b;

	if (pl_uri_split(&u, target, keys, &diag) < 0) {
		must(diag.text[0] != '\0');
		return;
	}
	must(u.nparams <= PL_URI_PARAMS_MAX && strlen(u.target) <= strlen(target));
	must(strncmp(u.target, target, strlen(u.target)) == 0);
	for (unsigned int i = 0; i < u.nparams; i++) {
		must(u.params[i].value[0] != '\0');
		must(strcmp(pl_uri_get(&u, u.params[i].key), u.params[i].value) == 0);
	}
	if (pl_uri_get_size(&u, "rcvbuf", 10, 1000, &bytes, &diag) == 0)
		must(bytes == 77 || (bytes >= 10 && bytes <= 1000));
	(void)pl_uri_get_bool(&u, "reuse", &b, &diag);
	/* Without keys, '?' is a character. */
	if (pl_uri_split(&u, target, NULL, &diag) == 0)
		must(strcmp(u.target, target) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *lines = malloc(size + 1), *rest = lines, *argv[ARGS + 1], name[] = "fuzz";
	struct pl_opt_list operands = { 0 };
	struct pl_diag diag = { 0 };
	int argc = 1, r;

	must(lines != NULL);
	memcpy(lines, data, size);
	lines[size] = '\0';
	argv[0] = name;
	while (rest != NULL && argc < ARGS) {
		argv[argc] = strsep(&rest, "\n");
		uri(argv[argc++]);
	}
	argv[argc] = NULL;
	flag = false;
	text = choice = NULL;
	list = (struct pl_opt_list){ 0 };
	r = pl_opt_parse(table, argc, argv, &operands, &diag);
	must(r == 0 || r == 1 || r == -22);
	must(r >= 0 || diag.text[0] != '\0');
	if (r == 0) {
		must(operands.n + list.n <= (size_t)argc - 1);
		for (size_t i = 0; i < operands.n; i++)
			must(of_arguments(operands.items[i], argc, argv));
		for (size_t i = 0; i < list.n; i++)
			must(of_arguments(list.items[i], argc, argv));
		must(text == NULL || of_arguments(text, argc, argv));
		must(choice == NULL || strcmp(choice, "table") == 0 || strcmp(choice, "json") == 0);
		must(rate == rate && rate - rate == 0 && ratio - ratio == 0);
	}
	pl_opt_list_done(&operands);
	pl_opt_list_done(&list);
	free(lines);
	return 0;
}
