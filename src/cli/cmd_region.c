/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline region: creates, describes, looks up, dumps and verifies telemetry memory. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "ask/region_read.h"
#include "base/hash.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/region_args.h"
#include "remote/roce_uri.h"

static const char *const words[] = { "create", "info", "lookup", "dump", "verify", NULL };
static const char *const primitives[] = { "key-write", "append", "counters", "postcards", "sketch",
	NULL };
static const char *const hashes[] = { "pathline", "dta", NULL };
static const char *const sketch_kinds[] = { "count-min", "hyperloglog", NULL };

static struct {
	struct pl_region_args read;
	const char *primitive, *hash, *content, *kind;
	uint64_t slots, value_bytes, copies, lists, batch, rows, hops, cell_bytes, halves, seed;
	bool unsealed, shared, populate;
} args;

#define B(primitive) (1u << (primitive))

/* Options of create alone, with the primitives that take them; each has its own defaults. */
static const struct {
	const char *name;
	uint64_t *number; /* or NULL */
	const char **word;
	bool *flag;
	unsigned int of;
} settings[] = {
	{ "primitive", NULL, &args.primitive, NULL, UINT_MAX },
	{ "slots", &args.slots, NULL, NULL, UINT_MAX },
	{ "value-bytes", &args.value_bytes, NULL, NULL, B(PL_KEY_WRITE) | B(PL_APPEND) },
	{ "content", NULL, &args.content, NULL, B(PL_KEY_WRITE) | B(PL_APPEND) },
	{ "copies", &args.copies, NULL, NULL, B(PL_KEY_WRITE) | B(PL_POSTCARDS) },
	{ "lists", &args.lists, NULL, NULL, B(PL_APPEND) },
	{ "batch", &args.batch, NULL, NULL, B(PL_APPEND) },
	{ "unsealed", NULL, NULL, &args.unsealed, B(PL_APPEND) },
	{ "rows", &args.rows, NULL, NULL, B(PL_COUNTERS) | B(PL_SKETCH) },
	{ "shared", NULL, NULL, &args.shared, B(PL_COUNTERS) },
	{ "hops", &args.hops, NULL, NULL, B(PL_POSTCARDS) },
	{ "kind", NULL, &args.kind, NULL, B(PL_SKETCH) },
	{ "cell-bytes", &args.cell_bytes, NULL, NULL, B(PL_SKETCH) },
	{ "hash", NULL, &args.hash, NULL, UINT_MAX },
	{ "seed", &args.seed, NULL, NULL, UINT_MAX },
	{ "halves", &args.halves, NULL, NULL, UINT_MAX },
	{ "populate", NULL, NULL, &args.populate, UINT_MAX },
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static bool is_given(size_t i)
{
	return settings[i].number != NULL ? *settings[i].number != PL_OPT_NOT_GIVEN
	       : settings[i].word != NULL ? *settings[i].word != NULL
					  : *settings[i].flag;
}

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Output", NULL, NULL, NULL, NULL },
		PL_REGION_ARGS_FORM(args.read),
		{ PL_OPT_COUNT, 'n', "count", &args.read.count, "COUNT",
			"dump: stop after this many entries", NULL },
		{ PL_OPT_HEADING, 0, "Options for reading", NULL, NULL, NULL, NULL },
		PL_REGION_ARGS_KEYS(args.read),
		{ PL_OPT_U64, 0, "list", &args.read.list, "NUMBER",
			"append: the list to read (default 0)", NULL },
		{ PL_OPT_U64, 0, "from", &args.read.from, "NUMBER",
			"dump: begin at this slot, cell or entry", NULL },
		{ PL_OPT_HEADING, 0, "Options for create", NULL, NULL, NULL, NULL },
		{ PL_OPT_CHOICE, 0, "primitive", &args.primitive, "NAME", "primitive of the region",
			primitives },
		{ PL_OPT_U64, 0, "slots", &args.slots, "COUNT",
			"number of slots (key-write), entries of a list (append), cells of a row "
			"(counters), chunks (postcards) or columns (sketch)",
			NULL },
		{ PL_OPT_SIZE, 0, "value-bytes", &args.value_bytes, "SIZE",
			"bytes of a value or entry (default 4; with --content the length of the "
			"record)",
			NULL },
		{ PL_OPT_CHOICE, 0, "content", &args.content, "KIND",
			"content of values and entries (default bytes)", pl_region_contents },
		{ PL_OPT_U64, 0, "copies", &args.copies, "COUNT",
			"copies of a value or path (default 2; with --hash dta 4 for values, as published reports request, and 1 for paths)",
			NULL },
		{ PL_OPT_U64, 0, "lists", &args.lists, "COUNT",
			"append: lists (default 1, with --hash dta 5)", NULL },
		{ PL_OPT_U64, 0, "batch", &args.batch, "COUNT",
			"append: most entries written at once (default 16)", NULL },
		{ PL_OPT_FLAG, 0, "unsealed", &args.unsealed, NULL,
			"append: entries carry no number and no check value", NULL },
		{ PL_OPT_U64, 0, "rows", &args.rows, "COUNT",
			"counters, count-min: rows (default 4)", NULL },
		{ PL_OPT_FLAG, 0, "shared", &args.shared, NULL, "counters: rows share one array",
			NULL },
		{ PL_OPT_U64, 0, "hops", &args.hops, "COUNT",
			"postcards: hops of the longest path (default 7, with --hash dta 5)",
			NULL },
		{ PL_OPT_CHOICE, 0, "kind", &args.kind, "KIND", "sketch: kind (default count-min)",
			sketch_kinds },
		{ PL_OPT_U64, 0, "cell-bytes", &args.cell_bytes, "COUNT",
			"count-min: bytes of a cell, 4 or 8 (default 8)", NULL },
		{ PL_OPT_CHOICE, 0, "hash", &args.hash, "NAME",
			"hash that maps keys to slots (default pathline); dta is for writers that follow the published code",
			hashes },
		{ PL_OPT_U64, 0, "seed", &args.seed, "NUMBER",
			"seed of the hash (default random; not with --hash dta)", NULL },
		{ PL_OPT_U64, 0, "halves", &args.halves, "COUNT",
			"2: the previous epoch stays readable (default 1)", NULL },
		{ PL_OPT_FLAG, 0, "populate", &args.populate, NULL,
			"touch every page now instead of at its first write", NULL },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* ---- create ---- */

/* Refuses options that this primitive does not take. Returns 0, or an exit code after printing the
 * error. */
static int check_given(uint32_t primitive)
{
	const struct pl_region_args *r = &args.read;

	for (size_t i = 0; i < SETTINGS; i++) {
		if (!is_given(i) || (settings[i].of & B(primitive)) != 0)
			continue;
		return pl_fail(PL_EXIT_USAGE,
			"region create: --%s does not apply to the primitive %s", settings[i].name,
			args.primitive);
	}
	if (r->list == 0 && r->from == 0 && r->count == 0 && r->epoch == NULL && r->nodes == NULL &&
		r->collectors.n == 0 && !r->all)
		return 0;
	return pl_fail(PL_EXIT_USAGE, "region create: --%s applies to reading only",
		r->list != 0       ? "list"
		: r->from != 0     ? "from"
		: r->count != 0    ? "count"
		: r->epoch != NULL ? "epoch"
		: r->nodes != NULL ? "nodes"
		: r->all           ? "all"
				   : "collector");
}

/* Refuses options of create to words that read: they take a region as it is. */
static int check_reading(const char *word)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		if (!is_given(i))
			continue;
		return pl_fail(PL_EXIT_USAGE, "region %s: --%s applies to create only", word,
			settings[i].name);
	}
	if ((args.read.collectors.n == 0 && !args.read.all) || strcmp(word, "lookup") == 0)
		return 0;
	return pl_fail(PL_EXIT_USAGE, "region %s: --%s applies to lookup only", word,
		args.read.all ? "all" : "collector");
}

static uint32_t or_default(uint64_t given, uint32_t fallback)
{
	/* Too large a number stays too large: it is refused with the parameters. */
	return given == PL_OPT_NOT_GIVEN ? fallback
	       : given > UINT32_MAX      ? UINT32_MAX
					 : (uint32_t)given;
}

static void make_params(struct pl_store_params *p)
{
	bool dta = args.hash != NULL && strcmp(args.hash, "dta") == 0;
	bool loglog = args.kind != NULL && strcmp(args.kind, "hyperloglog") == 0;
	uint32_t content =
		args.content != NULL ? pl_opt_place(pl_region_contents, args.content) : 0;
	uint32_t value_bytes = or_default(
		args.value_bytes, content != PL_CONTENT_BYTES ? pl_content_bytes(content) : 4);

	*p = (struct pl_store_params){
		.primitive = pl_primitive_by_name(args.primitive),
		.hash = dta ? PL_HASH_DTA : PL_HASH_PATHLINE,
		.seed = args.seed != PL_OPT_NOT_GIVEN ? args.seed
			: dta                         ? 0
						      : pl_hash_seed(),
		.content = content,
	};
	switch (p->primitive) {
	case PL_KEY_WRITE:
		p->key_write.slots = args.slots;
		p->key_write.value_bytes = value_bytes;
		p->key_write.copies = or_default(args.copies, dta ? 4 : 2);
		break;
	case PL_APPEND:
		p->append.slots = args.slots;
		p->append.lists = or_default(args.lists, dta ? 5 : 1);
		p->append.entry_bytes = value_bytes;
		p->append.batch_max = or_default(args.batch, 16);
		p->append.sealed = !args.unsealed;
		break;
	case PL_COUNTERS:
		p->counters.width = args.slots;
		p->counters.rows = or_default(args.rows, 4);
		p->counters.shared = args.shared || dta;
		break;
	case PL_POSTCARDS:
		p->postcards.chunks = args.slots;
		p->postcards.hops = or_default(args.hops, dta ? 5 : 7);
		p->postcards.copies = or_default(args.copies, dta ? 1 : 2);
		break;
	default:
		p->sketch.columns = args.slots;
		p->sketch.kind = loglog ? PL_SKETCH_HYPERLOGLOG : PL_SKETCH_COUNT_MIN;
		p->sketch.rows = or_default(args.rows, loglog ? 1 : 4);
		p->sketch.cell_bytes = or_default(args.cell_bytes, loglog ? 1 : 8);
	}
}

static int create(const char *path)
{
	struct pl_region_options region_options = { .populate = args.populate };
	struct pl_diag diag = { .text = "" };
	struct pl_store_params params;
	struct pl_region *g;
	int r;

	if (args.primitive == NULL || args.slots == PL_OPT_NOT_GIVEN)
		return pl_fail(PL_EXIT_USAGE, "region create: missing --primitive or --slots");
	r = check_given(pl_primitive_by_name(args.primitive));
	if (r != 0)
		return r;
	if (args.halves != PL_OPT_NOT_GIVEN && (args.halves < 1 || args.halves > 2))
		return pl_fail(PL_EXIT_USAGE, "--halves must be 1 or 2");
	region_options.halves = args.halves == 2 ? 2 : 1;
	make_params(&params);
	r = pl_region_create(&g, path, &params, &region_options, &diag);
	if (r == 0)
		r = pl_region_close(g);
	if (r < 0) {
		pl_complain("%s", diag.text[0] != '\0' ? diag.text : strerror(-r));
		return r == -EINVAL ? PL_EXIT_USAGE : PL_EXIT_FAILED;
	}
	return PL_EXIT_OK;
}

/* ---- the words ---- */

static int open_and(const char *word, const char *path, const char *const *keys, size_t n)
{
	struct pl_diag diag = { .text = "" };
	struct pl_region *g;
	int code;

	/* If the file is truncated while it is read, an error is printed, instead of ending by a
	 * signal. */
	(void)pl_region_guard();
	if (pl_region_open(&g, path, PL_REGION_READ, NULL, &diag) < 0) {
		if (strstr(diag.text, path) != NULL)
			pl_complain("%s", diag.text);
		else
			pl_complain("%s: %s", path, diag.text);
		return PL_EXIT_FAILED;
	}
	if (strcmp(word, "info") == 0)
		code = pl_region_describe(g, path, args.read.form);
	else if (strcmp(word, "lookup") == 0)
		code = pl_region_lookup(g, path, &args.read, keys, n);
	else if (strcmp(word, "dump") == 0)
		code = pl_region_dump(g, &args.read);
	else
		code = pl_region_verify(g, &args.read);
	(void)pl_region_close(g);
	return code;
}

static int run_word(const char *word, const char *const *operands, size_t n)
{
	int code;

	if (pl_roce_uri_is(operands[0]) && strcmp(word, "lookup") != 0)
		return pl_fail(PL_EXIT_USAGE,
			"region %s: works on files; over the network there is lookup only", word);
	if (strcmp(word, "create") == 0)
		return create(operands[0]);
	code = check_reading(word);
	if (code != 0)
		return code;
	if (pl_roce_uri_is(operands[0]))
		return pl_region_lookup_remote(operands[0], &args.read, operands + 1, n - 1);
	return open_and(word, operands[0], operands + 1, n - 1);
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
	args.read.command = "region lookup";
	for (size_t i = 0; i < SETTINGS; i++) {
		if (settings[i].number != NULL)
			*settings[i].number = PL_OPT_NOT_GIVEN;
	}
	if (pl_command_parse(&pl_command_region, argc, argv, &operands, &code) != 0)
		return code;
	word = operands.n > 0 ? operands.items[0] : "";
	if (words[pl_opt_place(words, word)] == NULL || operands.n < 2 ||
		(operands.n > 2 && strcmp(word, "lookup") != 0)) {
		code = pl_fail(PL_EXIT_USAGE,
			"region needs one of: create FILE, info FILE, lookup FILE KEY..., dump FILE, verify FILE");
	} else {
		code = run_word(word, operands.items + 1, operands.n - 1);
	}
	pl_opt_list_done(&operands);
	pl_opt_list_done(&args.read.collectors);
	return code;
}

const struct pl_command pl_command_region = {
	.name = "region",
	.summary = "create, describe, query, dump and verify telemetry memory",
	.usage = "create FILE | info FILE | lookup FILE|roce://… KEY… | dump FILE | verify FILE",
	.description =
		"A region is a file with one store, which one process writes and any number read.\n"
		"\n"
		"create makes an empty region and allocates all its space. info describes a region. lookup\n"
		"looks up keys: the last value of a key, the path of a flow, the sum of a counter with its\n"
		"possible error; for append, KEY is the number of an entry; a single key \"-\" reads keys\n"
		"from standard input. If a translator spreads keys over several collectors, FILE is the\n"
		"region of the first one and --collector names those of the others: lookup asks the\n"
		"collector that holds the key. roce://HOST:PORT/STORE?dev=packet:IFACE in place of FILE asks\n"
		"a collector over the network, by RDMA READ; several collectors stand there in the order of\n"
		"the translator: HOST:PORT,HOST:PORT. Only the one that holds a key is asked; --all asks the\n"
		"others too where it has no answer. dump prints all entries that are not empty; records\n"
		"(--content) in the formats of \"pathline read\". verify counts entries and damaged entries;\n"
		"\"whole\" is absent where an entry cannot be checked without its key. A sketch is whole\n"
		"when all its columns are complete; otherwise info and lookup print how many are and dump\n"
		"which, as the other columns may hold an earlier sketch. All but create work while the\n"
		"region is written.\n"
		"\n"
		"Exit codes: 0 done; 1 the file is no region or is damaged; 3 a key was not found or is\n"
		"ambiguous, its sketch is not whole, there was nothing to dump, the epoch is gone, or\n"
		"entries are damaged; 69 a collector cannot be reached or ended meanwhile; 77 it does not let\n"
		"this host read, or a privilege is missing.",
	.examples =
		"  pathline region create /dev/shm/last --primitive key-write --slots 10000000 --value-bytes 28\n"
		"  pathline region lookup /dev/shm/last --key-form u32 0x0a000001\n"
		"  pathline region lookup c1/last.plr --collector c2/last.plr host7\n"
		"  pathline region lookup 'roce://10.0.0.2:7471/last?dev=packet:eth1' host7\n"
		"  pathline region create ev.region --primitive append --slots 65536 --content event\n"
		"  pathline region dump -o jsonl -n 100 ev.region\n",
	.options = options,
	.words = words,
	.run = run,
};
