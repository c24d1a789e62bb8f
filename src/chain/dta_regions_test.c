/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions made by one file are compared with another: every difference has its words, and no other
 * has. */
#include <stddef.h>
#include <unistd.h>

#include "base/test.h"
#include "chain/dta_regions.h"
#include "memory/region.h"

static char folder[] = "/tmp/pathline-regions-XXXXXX";
static char said[4096];

static void say(void *arg, const char *text)
{
	const size_t n = strlen(said);

	(void)arg;
	snprintf(said + n, sizeof(said) - n, "%s\n", text);
}

static void load(
	struct pl_dta_conf *conf, struct pl_dta_regions *r, const char *store, const char *more)
{
	struct pl_diag diag = { .text = "" };
	char text[1024];

	snprintf(text, sizeof(text),
		"folder: %s\n%s\nstores:\n  - {name: s, %s}\ncollectors:\n"
		"  - {name: c1, interface: \"packet:e0\", listen: \"10.0.0.2:7471\", allow: [10.0.0.5/32]}\n"
		"  - {name: c2, interface: \"packet:e0\", listen: \"10.0.0.3:7471\", allow: [10.0.0.5/32]}\n"
		"translator: {interface: \"packet:e1\"}\n",
		folder, more, store);
	memset(conf, 0, sizeof(*conf));
	ok(pl_conf_parse(pl_dta_conf_rows, "x", text, strlen(text), conf, &diag) == 0 &&
			pl_dta_conf_check(conf, &diag) == 0,
		"%s %s", store, diag.text);
	ok(pl_dta_regions_init(r, conf, conf->collectors.items, (unsigned int)conf->collectors.n,
		   conf->folder, &diag) == 0,
		"%s", diag.text);
}

static void unload(struct pl_dta_conf *conf, struct pl_dta_regions *r)
{
	pl_dta_regions_done(r);
	pl_conf_done(pl_dta_conf_rows, conf);
}

/* Regions as the file says, where there are none. */
static void make(const char *store, const char *more)
{
	struct pl_diag diag = { .text = "" };
	struct pl_dta_conf conf;
	struct pl_dta_regions r;

	load(&conf, &r, store, more);
	said[0] = '\0';
	eq(pl_dta_regions_compare(&r, say, NULL), 0, "nothing to compare%s", said);
	ok(pl_dta_regions_make(&r, &diag) == 0, "%s", diag.text);
	unload(&conf, &r);
}

static unsigned int compare(const char *store, const char *more)
{
	struct pl_dta_conf conf;
	struct pl_dta_regions r;
	unsigned int n;

	load(&conf, &r, store, more);
	said[0] = '\0';
	n = pl_dta_regions_compare(&r, say, NULL);
	unload(&conf, &r);
	return n;
}

static const char *path(const char *name)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s/%s.plr", folder, name);
	return text;
}

static void forget(void)
{
	(void)unlink(path("c1-s"));
	(void)unlink(path("c2-s"));
	(void)unlink(path("c1-s-0"));
}

#define KEYS     "slots: 4096, value_bytes: 8"
#define LISTS    "primitive: append, slots: 64, lists: 3, value_bytes: 8"
#define COUNTERS "primitive: counters, slots: 1024, rows: 2"
#define CARDS    "primitive: postcards, slots: 1024"
#define SKETCH   "primitive: sketch, slots: 64, rows: 2"

static void test_differences(void)
{
	static const struct {
		const char *store, *more, *later, *later_more;
		const char *says; /* of c1; NULL: nothing */
	} cases[] = {
		{ KEYS, "", KEYS, "", NULL },
		{ KEYS, "", KEYS ", reports: 10", "", NULL },
		{ KEYS, "", LISTS, "", "primitive is key-write, but append in the file" },
		{ KEYS, "", "slots: 4095, value_bytes: 8", "", "slots is 4096, but 4095 in" },
		{ KEYS, "", "slots: 4096, value_bytes: 12", "", "value_bytes is 8, but 12 in" },
		{ KEYS, "", KEYS ", copies: 1", "", "copies is 2, but 1 in" },
		{ KEYS, "", KEYS ", hash: dta", "", "hash is pathline, but dta in" },
		{ KEYS, "seed: 7", KEYS, "seed: 7", NULL },
		{ KEYS, "seed: 7", KEYS, "", NULL },
		{ KEYS, "seed: 7", KEYS, "seed: 8", "seed is 7, but 8 in the file" },
		{ KEYS, "", KEYS, "epoch: 1s", "one half, but epochs need two" },
		{ KEYS, "epoch: 1s", KEYS, "", NULL },
		{ LISTS, "", LISTS, "epoch: 1s", NULL },
		{ LISTS, "", "primitive: append, slots: 128, lists: 3, value_bytes: 8", "",
			"slots is 64, but 128 in" },
		{ LISTS, "", "primitive: append, slots: 64, lists: 4, value_bytes: 8", "",
			"lists is 3, but 4 in" },
		{ LISTS, "", "primitive: append, slots: 64, lists: 3, value_bytes: 4", "",
			"value_bytes is 8, but 4 in" },
		{ COUNTERS, "", "primitive: counters, slots: 1024, rows: 3", "",
			"rows is 2, but 3 in" },
		{ COUNTERS, "", "primitive: counters, slots: 1023, rows: 2", "",
			"slots is 1024, but 1023 in" },
		{ CARDS, "", CARDS ", hops: 6", "", "hops is 5, but 6 in" },
		{ CARDS, "", CARDS ", copies: 3", "", "copies is 2, but 3 in" },
		{ SKETCH, "", SKETCH ", cell_bytes: 4", "", "cell_bytes is 8, but 4 in" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int n;

		make(cases[i].store, cases[i].more);
		n = compare(cases[i].later, cases[i].later_more);
		/* Both collectors have it. */
		eq(n, cases[i].says != NULL ? 2 : 0, "%s %s: %s", cases[i].later,
			cases[i].later_more, said);
		ok(cases[i].says == NULL ||
				(strncmp(said, path("c1-s"), strlen(path("c1-s"))) == 0 &&
					strstr(said, cases[i].says) != NULL),
			"%s", said);
		forget();
	}
	make(SKETCH, "");
	eq(compare("primitive: sketch, slots: 64, kind: hyperloglog", ""), 6, "%s", said);
	ok(strstr(said, "kind is count-min, but hyperloglog in the file") != NULL, "%s", said);
	forget();
}

/* What the file does not say is of the first region that is there; a new one is made alike. */
static void test_unsaid(void)
{
	struct pl_store_params p = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 5,
		.append = { .slots = 64, .lists = 3, .entry_bytes = 8, .batch_max = 8 } };
	struct pl_region *g = NULL;

	eq(pl_region_create(&g, path("c1-s"), &p, NULL, NULL), 0);
	(void)pl_region_close(g);
	make(LISTS, "");
	eq(pl_region_open(&g, path("c2-s"), PL_REGION_READ, NULL, NULL), 0);
	memeq(pl_region_params(g), &p, sizeof(p), "the second collector's is the same");
	(void)pl_region_close(g);
	(void)unlink(path("c2-s"));
	p.append.batch_max = 16;
	p.append.sealed = 1;
	p.seed = 6;
	eq(pl_region_create(&g, path("c2-s"), &p, NULL, NULL), 0);
	(void)pl_region_close(g);
	eq(compare(LISTS, ""), 3, "%s", said);
	ok(strstr(said, "c2-s.plr: batch is 16, but 8 in ") != NULL, "%s", said);
	ok(strstr(said, "c2-s.plr: sealed is 1, but 0 in ") != NULL, "%s", said);
	ok(strstr(said, "c2-s.plr: seed is 6, but 5 in ") != NULL, "%s", said);
	forget();
}

/* Files of epochs that ended are asked in the end, too; what is no region cannot be. */
static void test_epochs_and_damage(void)
{
	struct pl_dta_conf conf;
	struct pl_dta_regions r;
	struct pl_region *g = NULL;
	FILE *f;

	make(KEYS, "epoch: 1s");
	load(&conf, &r, "slots: 64, value_bytes: 8", "seed: 5");
	(void)pl_dta_regions_compare(&r, say, NULL);
	eq(pl_region_create(&g, path("c1-s-0"), &r.params[0], NULL, NULL), 0);
	(void)pl_region_close(g);
	unload(&conf, &r);
	eq(compare(KEYS, "epoch: 1s"), 2, "%s", said);
	ok(strstr(said, "c1-s-0.plr: slots is 64, but 4096 in the file") != NULL, "%s", said);
	(void)unlink(path("c1-s-0"));
	f = fopen(path("c2-s"), "w");
	ok(f != NULL && fputs("no region", f) >= 0 && fclose(f) == 0, "another file");
	eq(compare(KEYS, "epoch: 1s"), 1, "%s", said);
	ok(strncmp(said, path("c2-s"), strlen(path("c2-s"))) == 0, "%s", said);
	forget();
}

int main(void)
{
	if (mkdtemp(folder) == NULL)
		return 1;
	test_differences();
	test_unsaid();
	test_epochs_and_damage();
	(void)rmdir(folder);
	return pl_test_done();
}
