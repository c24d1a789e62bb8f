/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline dta: a whole chain from generators to regions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask/region_read.h"
#include "base/buf.h"
#include "base/complain.h"
#include "chain/chain.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/region_args.h"
#include "remote/roce_uri.h"
#include "show/stdout.h"

static const char *const words[] = { "up", "check", "demo", "lookup", NULL };

static struct {
	const char *file, *dev;
	struct pl_region_args read;
	uint64_t duration_ns, status_ns;
	bool quiet, keep;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_STRING, 'c', "config", &args.file, "FILE",
			"up, check, lookup: YAML file that describes the chain (docs/guide/dta.md lists its keys)",
			NULL },
		{ PL_OPT_DURATION, 'd', "duration", &args.duration_ns, "TIME",
			"stop after this time, even if generators are not finished", NULL },
		{ PL_OPT_DURATION, 0, "status", &args.status_ns, "TIME",
			"print the state of every process this often; SIGUSR1 prints it at once",
			NULL },
		{ PL_OPT_CHOICE, 'o', "output", &args.read.form, "FORM",
			"format of status, accounts and differences, table or json: one object per line; of answers all",
			pl_out_forms },
		{ PL_OPT_FLAG, 0, "headless", &args.quiet, NULL,
			"do not pass on the output of the processes", NULL },
		{ PL_OPT_FLAG, 0, "keep", &args.keep, NULL,
			"keep the regions of a folder that this run created", NULL },
		{ PL_OPT_HEADING, 0, "Options for lookup", NULL, NULL, NULL, NULL },
		{ PL_OPT_STRING, 0, "dev", &args.dev, "INTERFACE",
			"ask the collectors over the network, by packet:IFACE or udp://ADDRESS of this network namespace; without it their files are read",
			NULL },
		PL_REGION_ARGS_ASK(args.read),
		{ PL_OPT_U64, 0, "list", &args.read.list, "NUMBER",
			"append: the list to read (default 0)", NULL },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

static int say(int r, const struct pl_diag *diag)
{
	if (diag->text[0] != '\0')
		pl_complain_diag(diag);
	else
		pl_complain("dta: %s", strerror(-r));
	return r == -EPERM || r == -EACCES ? PL_EXIT_PRIVILEGE : PL_EXIT_FAILED;
}

static int run_chain(struct pl_chain *c, struct pl_diag *diag)
{
	const int r = pl_chain_run(c, diag);
	int code;

	if (r < 0) {
		code = say(r, diag);
		return c->differ ? PL_EXIT_CONFIG : code;
	}
	return pl_chain_report(c) ? PL_EXIT_OK : PL_EXIT_FAILED;
}

/* Complains. The exit code: the configuration is bad, unless rights are missing. */
static int config_exit(int r, const struct pl_diag *diag)
{
	return say(r, diag) == PL_EXIT_PRIVILEGE ? PL_EXIT_PRIVILEGE : PL_EXIT_CONFIG;
}

static int run_word(const char *word)
{
	const struct pl_chain_options options = { .file = strcmp(word, "demo") == 0 ? NULL
										    : args.file,
		.duration_ns = args.duration_ns,
		.status_ns = args.status_ns,
		.quiet = args.quiet,
		.keep = args.keep,
		.json = strcmp(args.read.form, "json") == 0,
		.print = pl_stdout_print };
	struct pl_chain *c = calloc(1, sizeof(*c));
	struct pl_diag diag = { .text = "" };
	int r, code;

	if (c == NULL)
		return say(-ENOMEM, &diag);
	r = pl_chain_load(c, &options, &diag);
	if (r < 0) {
		code = config_exit(r, &diag);
		c->n_collectors = 0;
	} else if (strcmp(word, "check") == 0) {
		r = pl_chain_check(c, &diag);
		code = r == 0 ? PL_EXIT_OK : config_exit(r, &diag);
	} else {
		code = run_chain(c, &diag);
	}
	if (c->made_folder && args.keep)
		pl_complain("the regions are in %s", c->folder);
	pl_chain_done(c);
	free(c);
	return code;
}

/* ---- lookup ---- */

/* A chain as a file has it, and where its regions are. */
struct asked {
	struct pl_dta_conf conf;
	struct pl_dta_regions regions;
	const struct pl_dta_conf_collector *collectors;
	unsigned int n_collectors, n_stores;
};

static int load(struct asked *a, struct pl_diag *diag)
{
	int r = pl_conf_load(pl_dta_conf_rows, args.file, &a->conf, NULL, diag);

	if (r == 0)
		r = pl_dta_conf_check(&a->conf, diag);
	if (r == 0 && (a->conf.lab || a->conf.folder == NULL)) {
		pl_diag_set(diag,
			"\"folder\": lookup needs the folder of a chain's regions, and a chain without one has new ones each time");
		r = -EINVAL;
	}
	if (r < 0)
		return r;
	a->collectors = a->conf.collectors.items;
	a->n_collectors = (unsigned int)a->conf.collectors.n;
	a->n_stores = (unsigned int)a->conf.stores.n;
	return pl_dta_regions_init(
		&a->regions, &a->conf, a->collectors, a->n_collectors, a->conf.folder, diag);
}

/* -1, after complaining. */
static int find_store(const struct asked *a, const char *name)
{
	const struct pl_dta_conf_store *stores = a->conf.stores.items;

	for (unsigned int s = 0; s < a->n_stores; s++) {
		if (strcmp(stores[s].name, name) == 0)
			return (int)s;
	}
	pl_complain("%s has no store '%s'", args.file, name);
	return -1;
}

/* The collectors' files, in the order of the translator. */
static int look_in_files(const struct asked *a, const char *const *keys, size_t n)
{
	const unsigned int s = (unsigned int)args.read.store;
	struct pl_diag diag = { .text = "" };
	const char *paths[PL_COLLECTORS_MAX] = { NULL };
	struct pl_region *g;
	int code;

	for (unsigned int i = 0; i < a->n_collectors; i++)
		paths[i] = a->regions.paths[i * a->n_stores + s];
	(void)pl_region_guard();
	if (pl_region_open(&g, paths[0], PL_REGION_READ, NULL, &diag) < 0) {
		pl_complain_diag(&diag);
		return PL_EXIT_FAILED;
	}
	args.read.collectors.items = paths + 1;
	args.read.collectors.n = a->n_collectors - 1;
	code = pl_region_lookup(g, paths[0], &args.read, keys, n);
	args.read.collectors.items = NULL;
	args.read.collectors.n = 0;
	(void)pl_region_close(g);
	return code;
}

/* The collectors themselves, as the translator has them. */
static int look_far_away(const struct asked *a, const char *const *keys, size_t n)
{
	const struct pl_dta_conf_store *stores = a->conf.stores.items;
	struct pl_buf uri = { 0 };
	int code;

	pl_buf_printf(&uri, "%s", PL_ROCE_URI);
	for (unsigned int i = 0; i < a->n_collectors; i++)
		pl_buf_printf(&uri, "%s%s", i > 0 ? "," : "", a->collectors[i].listen);
	pl_buf_printf(&uri, "/%s?dev=%s", stores[args.read.store].name, args.dev);
	if (uri.failed)
		pl_complain("out of memory");
	code = uri.failed ? PL_EXIT_FAILED : pl_region_lookup_remote(uri.data, &args.read, keys, n);
	pl_buf_done(&uri);
	return code;
}

static int look_up(const char *store, const char *const *keys, size_t n)
{
	struct asked a = { .n_stores = 0 };
	struct pl_diag diag = { .text = "" };
	int r = load(&a, &diag), s, code = PL_EXIT_USAGE;

	if (r < 0) {
		code = config_exit(r, &diag);
	} else if ((s = find_store(&a, store)) >= 0) {
		args.read.store = (uint64_t)s;
		code = args.dev != NULL ? look_far_away(&a, keys, n) : look_in_files(&a, keys, n);
	}
	pl_dta_regions_done(&a.regions);
	pl_conf_done(pl_dta_conf_rows, &a.conf);
	return code;
}

/* Refuses options that this word does not take. 0, or an exit code after complaining. */
static int check_given(const char *word, size_t n)
{
	const struct pl_region_args *r = &args.read;
	const bool lookup = strcmp(word, "lookup") == 0;

	if (lookup ? n < 2 || args.file == NULL
		   : n > 1 || (strcmp(word, "demo") != 0 &&
				      ((strcmp(word, "up") != 0 && strcmp(word, "check") != 0) ||
					      args.file == NULL))) {
		pl_complain(
			"dta needs one of: up -c FILE, check -c FILE, demo, lookup -c FILE STORE KEY...");
		return PL_EXIT_USAGE;
	}
	if (!lookup && strcmp(r->form, "table") != 0 && strcmp(r->form, "json") != 0) {
		pl_complain("dta %s: -o %s applies to lookup only", word, r->form);
		return PL_EXIT_USAGE;
	}
	if (!lookup && (args.dev != NULL || r->epoch != NULL || r->nodes != NULL || r->all ||
			       r->list != 0)) {
		pl_complain(
			"dta %s: --dev, --epoch, --nodes, --all and --list apply to lookup only",
			word);
		return PL_EXIT_USAGE;
	}
	return 0;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	const char *word;
	int code;

	memset(&args, 0, sizeof(args));
	args.read.form = pl_out_forms[PL_OUT_TABLE];
	args.read.key_form = pl_key_forms[0];
	args.read.threshold = 1;
	args.read.command = "dta lookup";
	if (pl_command_parse(&pl_command_dta, argc, argv, &operands, &code) != 0)
		return code;
	word = operands.n > 0 ? operands.items[0] : "";
	code = check_given(word, operands.n);
	if (code == 0)
		code = strcmp(word, "lookup") == 0
			       ? look_up(operands.items[1], operands.items + 2, operands.n - 2)
			       : run_word(word);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_dta = {
	.name = "dta",
	.summary = "run a whole chain: generators, translator, RoCE, collectors, regions",
	.usage = "[OPTION]… up -c FILE | check -c FILE | demo | lookup -c FILE STORE KEY…",
	.description =
		"up starts the chain that a file describes: regions (created if missing), collectors, a\n"
		"translator and generators, each in a process and network namespace of its own. It passes\n"
		"on their output and stops them in the order of the data flow, so that no report is lost\n"
		"on the way: when the generators are done, after --duration, at SIGINT or SIGTERM, or when\n"
		"a process ends by itself (collectors are restarted up to `restarts` times). Then it looks\n"
		"up everything that was generated. SIGUSR1 and --status print the account of every\n"
		"process, SIGUSR2 begins an epoch if the file has epochs.\n"
		"\n"
		"Existing regions must match the file in primitive, hash, slots and so on, and share one\n"
		"seed; otherwise up prints each difference and starts nothing. check only compares and\n"
		"creates nothing. With -o json it prints one object in a line: `folder`, `differences`\n"
		"(texts) and `regions` (collector, store, file, made).\n"
		"\n"
		"demo needs no file: two network namespaces with a veth pair between them, and a store of\n"
		"each of the five primitives. Without root it uses UDP sockets on the loopback.\n"
		"\n"
		"lookup looks keys up in a store of the chain as \"pathline region lookup\" does, at the\n"
		"collector to which the translator gives them: in the files, or with --dev over the network.\n"
		"Exit codes are those of region lookup.\n"
		"\n"
		"Exit codes: 0 all answers are right and all accounts agree; 1 an answer is wrong, an account\n"
		"does not agree, or a process failed; 77 a privilege is missing; 78 the file is wrong or\n"
		"differs from the regions.",
	.examples = "  pathline dta demo\n"
		    "  pathline dta demo --headless -o json\n"
		    "  pathline dta lookup -c chain.yaml last --key-form be32 7 8 9\n"
		    "  pathline dta up -c chain.yaml --duration 1h --status 1m\n",
	.options = options,
	.words = words,
	.run = run,
};
