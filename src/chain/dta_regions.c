/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks and makes the regions of a chain. */
#include "chain/dta_regions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "memory/region.h"

/* What two stores of a primitive can differ in; 0: any primitive. */
static const struct field {
	const char *name;
	uint32_t primitive;
	uint32_t offset, bytes;
	bool unsaid; /* by the file */
} fields[] = {
#define ANY(name, member, unsaid)                                                                  \
	{                                                                                          \
		name, 0, offsetof(struct pl_store_params, member),                                 \
			sizeof(((struct pl_store_params *)NULL)->member), unsaid                   \
	}
#define OF(primitive, name, member, unsaid)                                                        \
	{                                                                                          \
		name, primitive, offsetof(struct pl_store_params, member),                         \
			sizeof(((struct pl_store_params *)NULL)->member), unsaid                   \
	}
	ANY("hash", hash, false),
	ANY("seed", seed, false),
	ANY("content", content, true),
	OF(PL_KEY_WRITE, "slots", key_write.slots, false),
	OF(PL_KEY_WRITE, "value_bytes", key_write.value_bytes, false),
	OF(PL_KEY_WRITE, "copies", key_write.copies, false),
	OF(PL_APPEND, "slots", append.slots, false),
	OF(PL_APPEND, "lists", append.lists, false),
	OF(PL_APPEND, "value_bytes", append.entry_bytes, false),
	OF(PL_APPEND, "batch", append.batch_max, true),
	OF(PL_APPEND, "sealed", append.sealed, true),
	OF(PL_COUNTERS, "slots", counters.width, false),
	OF(PL_COUNTERS, "rows", counters.rows, false),
	OF(PL_COUNTERS, "shared", counters.shared, true),
	OF(PL_POSTCARDS, "slots", postcards.chunks, false),
	OF(PL_POSTCARDS, "hops", postcards.hops, false),
	OF(PL_POSTCARDS, "copies", postcards.copies, false),
	OF(PL_SKETCH, "kind", sketch.kind, false),
	OF(PL_SKETCH, "slots", sketch.columns, false),
	OF(PL_SKETCH, "rows", sketch.rows, false),
	OF(PL_SKETCH, "cell_bytes", sketch.cell_bytes, false),
#undef OF
#undef ANY
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

static uint64_t value_of(const struct pl_store_params *p, const struct field *f)
{
	uint64_t v = 0;

	memcpy(&v, (const uint8_t *)p + f->offset, f->bytes);
	return v;
}

static const char *word_of(const struct field *f, uint64_t v, char text[24])
{
	if (strcmp(f->name, "hash") == 0)
		return v == PL_HASH_DTA ? "dta" : "pathline";
	if (strcmp(f->name, "kind") == 0)
		return v == PL_SKETCH_HYPERLOGLOG ? "hyperloglog" : "count-min";
	snprintf(text, 24, "%" PRIu64, v);
	return text;
}

/* ---- names ---- */

int pl_dta_regions_init(struct pl_dta_regions *r, const struct pl_dta_conf *conf,
	const struct pl_dta_conf_collector *collectors, unsigned int n_collectors,
	const char *folder, struct pl_diag *diag)
{
	const struct pl_dta_conf_store *stores = conf->stores.items;

	*r = (struct pl_dta_regions){ .conf = conf,
		.collectors = collectors,
		.n_stores = (unsigned int)conf->stores.n,
		.n = n_collectors * (unsigned int)conf->stores.n };
	r->paths = calloc(r->n, sizeof(*r->paths));
	if (r->paths == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < r->n; i++) {
		int n = snprintf(r->paths[i], sizeof(r->paths[i]), "%s/%s-%s.plr", folder,
			collectors[i / r->n_stores].name, stores[i % r->n_stores].name);

		if (n < 0 || n >= (int)sizeof(r->paths[i])) {
			pl_diag_set(diag, "folder: the path is too long");
			return -EINVAL;
		}
	}
	return 0;
}

void pl_dta_regions_done(struct pl_dta_regions *r)
{
	free(r->paths);
	r->paths = NULL;
	r->n = 0;
}

void pl_dta_regions_epoch(const struct pl_dta_regions *r, unsigned int region, uint64_t epoch,
	char ret[PL_DTA_PATH_BYTES + 32])
{
	const char *path = r->paths[region];

	snprintf(ret, PL_DTA_PATH_BYTES + 32, "%.*s-%" PRIu64 ".plr",
		(int)(strlen(path) - strlen(".plr")), path, epoch);
}

/* ---- what is there ---- */

struct comparison {
	struct pl_dta_regions *r;
	const char *first[PL_DTA_CONF_STORES_MAX]; /* whose unsaid fields are the store's */
	const char *seed_of;                       /* whose seed it is; NULL: the file's */
	unsigned int n;
	pl_dta_difference_fn *say;
	void *arg;
};

static void tell(struct comparison *c, const char *text)
{
	c->say(c->arg, text);
	c->n++;
}

static void differs(struct comparison *c, const char *path, const char *what, const char *theirs,
	const char *ours, const char *whose)
{
	char text[3 * PL_DTA_PATH_BYTES];

	snprintf(text, sizeof(text), "%s: %s is %s, but %s in %s", path, what, theirs, ours, whose);
	tell(c, text);
}

/* False: it cannot be, which is said when it is to be compared. */
static bool look(const char *path, struct pl_region_info *ret)
{
	struct pl_region *g;

	if (pl_region_open(&g, path, PL_REGION_READ, NULL, NULL) < 0)
		return false;
	pl_region_get_info(g, ret);
	(void)pl_region_close(g);
	return true;
}

/* The seed is the same everywhere: the file's, that of a region that is there, or a drawn one. */
static uint64_t find_seed(struct comparison *c)
{
	for (unsigned int i = 0; c->r->conf->seed == 0 && i < c->r->n; i++) {
		struct pl_region_info info;

		/* The hash of DTA has none. */
		if (!look(c->r->paths[i], &info) || info.params.seed == 0)
			continue;
		c->seed_of = c->r->paths[i];
		return info.params.seed;
	}
	return c->r->conf->seed != 0 ? c->r->conf->seed : pl_hash_seed();
}

static void find_params(struct comparison *c, unsigned int store, uint64_t seed)
{
	struct pl_store_params *p = &c->r->params[store];
	struct pl_dta_conf conf = *c->r->conf;

	conf.seed = seed;
	pl_dta_conf_params(&conf, (const struct pl_dta_conf_store *)conf.stores.items + store, p);
	for (unsigned int i = store; i < c->r->n; i += c->r->n_stores) {
		struct pl_region_info info;

		if (!look(c->r->paths[i], &info) || info.params.primitive != p->primitive)
			continue;
		c->first[store] = c->r->paths[i];
		for (size_t k = 0; k < N_FIELDS; k++) {
			const struct field *f = &fields[k];

			if (f->unsaid && (f->primitive == 0 || f->primitive == p->primitive))
				memcpy((uint8_t *)p + f->offset,
					(uint8_t *)&info.params + f->offset, f->bytes);
		}
		return;
	}
}

static void compare_params(struct comparison *c, unsigned int store, const char *path,
	const struct pl_store_params *theirs)
{
	const struct pl_store_params *ours = &c->r->params[store];

	if (theirs->primitive != ours->primitive) {
		differs(c, path, "primitive", pl_primitive_name(theirs->primitive),
			pl_primitive_name(ours->primitive), "the file");
		return;
	}
	for (size_t i = 0; i < N_FIELDS; i++) {
		const struct field *f = &fields[i];
		const uint64_t a = value_of(theirs, f), b = value_of(ours, f);
		const char *whose = !f->unsaid                ? "the file"
				    : c->first[store] != NULL ? c->first[store]
							      : "new regions";
		char here[24], there[24];

		if (f->offset == offsetof(struct pl_store_params, seed)) {
			/* Of another hash: that is said. */
			if (theirs->hash != ours->hash)
				continue;
			whose = c->seed_of != NULL ? c->seed_of : whose;
		}
		if ((f->primitive == 0 || f->primitive == ours->primitive) && a != b)
			differs(c, path, f->name, word_of(f, a, here), word_of(f, b, there), whose);
	}
}

/* False: there is no such file. */
static bool compare(struct comparison *c, unsigned int store, const char *path, unsigned int halves)
{
	struct pl_diag diag = { .text = "" };
	struct pl_region_info info;
	struct pl_region *g;
	char text[3 * PL_DTA_PATH_BYTES];

	if (access(path, F_OK) != 0 && errno == ENOENT)
		return false;
	if (pl_region_open(&g, path, PL_REGION_READ, NULL, &diag) < 0) {
		snprintf(text, sizeof(text), "%s", diag.text);
		tell(c, text);
		return true;
	}
	pl_region_get_info(g, &info);
	(void)pl_region_close(g);
	compare_params(c, store, path, &info.params);
	if (info.halves < halves) {
		snprintf(text, sizeof(text), "%s: the region has one half, but epochs need two",
			path);
		tell(c, text);
	}
	return true;
}

unsigned int pl_dta_regions_compare(struct pl_dta_regions *r, pl_dta_difference_fn *say, void *arg)
{
	const struct pl_dta_conf_store *stores = r->conf->stores.items;
	struct comparison c = { .r = r, .say = say, .arg = arg };
	const uint64_t seed = find_seed(&c);
	const unsigned int n_stores = r->n_stores;

	for (unsigned int s = 0; s < n_stores; s++)
		find_params(&c, s, seed);
	for (unsigned int i = 0; n_stores > 0 && i < r->n; i++) {
		const unsigned int s = i % n_stores;
		char path[PL_DTA_PATH_BYTES + 32];

		(void)compare(&c, s, r->paths[i], pl_dta_conf_turns(r->conf, &stores[s]) ? 2 : 1);
		pl_dta_regions_epoch(r, i, 0, path);
		for (uint64_t k = 1; compare(&c, s, path, 1); k++)
			pl_dta_regions_epoch(r, i, k, path);
	}
	return c.n;
}

bool pl_dta_regions_made(const struct pl_dta_regions *r, unsigned int region)
{
	return access(r->paths[region], F_OK) == 0;
}

static void put_difference(void *arg, const char *text)
{
	pl_json_str(arg, text);
}

unsigned int pl_dta_regions_json(struct pl_dta_regions *r, struct pl_json *json)
{
	unsigned int n;

	pl_json_key(json, "differences");
	pl_json_array(json);
	n = r->n > 0 ? pl_dta_regions_compare(r, put_difference, json) : 0;
	pl_json_array_end(json);
	pl_json_key(json, "regions");
	pl_json_array(json);
	for (unsigned int i = 0; i < r->n; i++) {
		const struct pl_dta_conf_store *stores = r->conf->stores.items;

		pl_json_object(json);
		pl_json_key(json, "collector");
		pl_json_str(json, r->collectors[i / r->n_stores].name);
		pl_json_key(json, "store");
		pl_json_str(json, stores[i % r->n_stores].name);
		pl_json_key(json, "file");
		pl_json_str(json, r->paths[i]);
		pl_json_key(json, "made");
		pl_json_bool(json, pl_dta_regions_made(r, i));
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
	return n;
}

int pl_dta_regions_make(const struct pl_dta_regions *r, struct pl_diag *diag)
{
	const struct pl_dta_conf_store *stores = r->conf->stores.items;
	int e = 0;

	for (unsigned int i = 0; e == 0 && i < r->n; i++) {
		const unsigned int s = i % r->n_stores;
		const struct pl_region_options options = {
			.halves = pl_dta_conf_turns(r->conf, &stores[s]) ? 2 : 1
		};
		struct pl_region *g;

		if (pl_dta_regions_made(r, i))
			continue;
		e = pl_region_create(&g, r->paths[i], &r->params[s], &options, diag);
		if (e == 0)
			e = pl_region_close(g);
	}
	return e;
}
