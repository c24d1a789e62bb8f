/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks up each key at its collector, and continues when a collector cannot be reached. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/query_keys.h"
#include "ask/region_lookup.h"
#include "ask/region_values.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "dta/translator.h"

#define MORE 3 /* columns added with several collectors */

/* A store at several collectors, in their order. */
struct spread {
	const struct pl_lookup_at *at;
	const struct pl_region_args *args;
	struct pl_lookup *lookups[PL_COLLECTORS_MAX]; /* NULL: not opened */
	int codes[PL_COLLECTORS_MAX];                 /* exit code of its failure, or 0 */
	struct pl_lookup *any;                        /* one of them: the store's parameters */
	struct pl_value_set nodes;
	int code; /* of the first failure */
	char collector[16], elsewhere[24];
};

int pl_lookup_exit(int error)
{
	switch (-error) {
	case EACCES:
	case EPERM:
		return PL_EXIT_PRIVILEGE;
	case EINVAL:
		return PL_EXIT_USAGE;
	case ENOENT:
	case EPROTO:
	case EBADMSG:
	case ERANGE:
	case ENOMEM:
	case EPIPE:
		return PL_EXIT_FAILED;
	default:
		return PL_EXIT_UNAVAILABLE;
	}
}

/* ---- collectors ---- */

static int fail(struct spread *s, unsigned int i, int code)
{
	s->codes[i] = code;
	s->code = s->code == 0 ? code : s->code;
	return code;
}

/* Reports the failure of a source. */
static int fail_read(struct spread *s, unsigned int i, int error, const struct pl_diag *diag)
{
	if (error != -EPIPE)
		pl_complain_diag(diag);
	return fail(s, i, pl_lookup_exit(error));
}

static int same_store(struct spread *s, const struct pl_lookup *l, unsigned int i)
{
	if (/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): unused bytes are zero */
		s->any == NULL ||
		memcmp(&s->any->q.params, &l->q.params, sizeof(struct pl_store_params)) == 0)
		return 0;
	return pl_fail(PL_EXIT_USAGE,
		"%s differs from the store of the first collector (parameters and seed must be equal)",
		s->at->names[i]);
}

/* Opens a collector's store. Returns 0, or an exit code; prints the error the first time. */
static int open_one(struct spread *s, unsigned int i)
{
	struct pl_diag diag = { .text = "" };
	struct pl_store_source source;
	struct pl_store_params params;
	struct pl_lookup *l;
	int r;

	if (s->lookups[i] != NULL || s->codes[i] != 0)
		return s->codes[i];
	r = s->at->open(s->at->arg, i, &source, &params);
	if (r == 0 && s->any == NULL)
		r = pl_lookup_check(&params, s->args);
	if (r != 0)
		return fail(s, i, r);
	l = calloc(1, sizeof(*l));
	if (l == NULL) {
		pl_complain("out of memory");
		return fail(s, i, PL_EXIT_FAILED);
	}
	l->args = s->args;
	l->nodes = &s->nodes;
	(void)pl_query_init(&l->q, &params, &source);
	r = same_store(s, l, i);
	if (r != 0) {
		free(l);
		return fail(s, i, r);
	}
	s->lookups[i] = l;
	s->any = s->any == NULL ? l : s->any;
	r = pl_query_begin(&l->q, &diag);
	return r < 0 ? fail_read(s, i, r, &diag) : 0;
}

/* Opens the first collector that can be opened, for the store's parameters; all when they are
 * files. */
static int open_any(struct spread *s)
{
	for (unsigned int i = 0; i < s->at->n && s->any == NULL; i++) {
		const int code = open_one(s, i);

		if (code == PL_EXIT_USAGE || code == PL_EXIT_NOTHING)
			return code;
	}
	if (s->any == NULL)
		return s->code;
	/* All files are opened: a missing one is reported, whatever the keys. */
	for (unsigned int i = 0; !s->at->remote && i < s->at->n; i++) {
		const int code = open_one(s, i);

		if (code != 0)
			return code;
	}
	return 0;
}

static uint64_t all_of(unsigned int n)
{
	return n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* Returns the number by which a translator chooses a collector: a list, or a sketch, is at one. */
static uint64_t spread_of(const struct spread *s, uint64_t hash)
{
	const uint32_t primitive = s->any->q.params.primitive;

	return primitive == PL_APPEND ? s->args->list : primitive == PL_SKETCH ? 0 : hash;
}

/* Chooses a collector among those in `up`; -1: none. */
static int choose(const struct spread *s, uint64_t hash, uint64_t up)
{
	if (s->at->n == 1)
		return 0;
	return pl_collector_choose((unsigned int)s->args->store, spread_of(s, hash), up, s->at->n);
}

/* Returns the collector that has the whole sketch. */
static unsigned int sketch_at(const struct spread *s)
{
	return (unsigned int)choose(s, 0, all_of(s->at->n));
}

/* ---- keys ---- */

/* A key to look up. */
struct asked {
	char *text;
	uint8_t *key;
	size_t bytes;
};

/* Returns the sum that other collectors count for a key: additions made there while its collector
 * was down, and keys that collide with it there. NULL: the store has no counters, or they are not
 * asked. */
static const char *count_elsewhere(
	struct spread *s, unsigned int here, const void *key, size_t bytes)
{
	struct pl_diag diag = { .text = "" };
	struct pl_estimate e;
	uint64_t sum = 0;

	if (s->any->q.params.primitive != PL_COUNTERS || !s->at->every)
		return NULL;
	for (unsigned int i = 0; i < s->at->n; i++) {
		struct pl_query *q;
		int r;

		if (i == here)
			continue;
		if (open_one(s, i) != 0)
			return NULL;
		q = &s->lookups[i]->q;
		r = pl_query_sum(q, pl_key_carried(&q->c.hashing, key, bytes), &e, &diag);
		if (r < 0) {
			(void)fail_read(s, i, r, &diag);
			return NULL;
		}
		sum += e.value;
	}
	snprintf(s->elsewhere, sizeof(s->elsewhere), "%" PRIu64, sum);
	return s->elsewhere;
}

/* Looks up a key at one collector. Returns what `look` of struct pl_looker returns; errors were
 * printed already. */
static int look_at(struct spread *s, const struct pl_looker *looker, unsigned int i,
	const void *key, size_t bytes, const char **values)
{
	struct pl_diag diag = { .text = "" };
	int r;

	if (open_one(s, i) != 0)
		return -1;
	r = looker->look(s->lookups[i], key, bytes, values, &diag);
	if (r >= 0)
		return r;
	(void)fail_read(s, i, r, &diag);
	return -1;
}

/*
 * Asks the collector that has the key while all are up; then, with `every`, the others, in the
 * order in which they replace it. Returns as look_at; negative when no collector could be asked.
 */
static int look_one(struct spread *s, const struct pl_looker *looker, const void *key, size_t bytes,
	const char **values)
{
	const unsigned int n = s->at->n;
	const uint64_t hash = looker->hash(s->any, key, bytes);
	uint64_t up = all_of(n);
	const char *one[PL_LOOKUP_COLUMNS], **more;
	int first = -1, found = -1, c;

	if (n == 1)
		return look_at(s, looker, 0, key, bytes, values);
	while (found != 1 && (c = choose(s, hash, up)) >= 0) {
		const int r = look_at(s, looker, (unsigned int)c, key, bytes, one);

		one[0] = values[0];
		if (r == 1 || (r == 0 && first < 0)) {
			memcpy(values, one, looker->n * sizeof(*values));
			first = c;
			found = r;
		}
		if (!looker->goes_on || !s->at->every)
			break;
		up &= ~(UINT64_C(1) << c);
	}
	if (first < 0)
		return -1;
	snprintf(s->collector, sizeof(s->collector), "%d", first);
	more = &values[looker->n];
	*more++ = s->collector;
	if (s->at->remote)
		*more++ = s->at->names[first];
	*more = count_elsewhere(s, (unsigned int)first, key, bytes);
	return found;
}

/* Turns a number's bytes as reports of the published forms carry it: most significant byte first,
 * whichever way it was written. */
static void carry(const struct pl_store_params *params, const char *form, uint8_t *key)
{
	uint32_t word;

	if (params->hash != PL_HASH_DTA || strcmp(form, "u32") != 0)
		return;
	memcpy(&word, key, sizeof(word));
	word = __builtin_bswap32(word);
	memcpy(key, &word, sizeof(word));
}

/* Adds the columns behind those of the primitive; returns how many. */
static unsigned int add_columns(const struct spread *s, struct pl_column *ret)
{
	unsigned int n = 0;

	if (s->at->n == 1)
		return 0;
	ret[n++] = (struct pl_column){ "collector", 9, true, false };
	if (s->at->remote)
		ret[n++] = (struct pl_column){ "server", -21, false, false };
	if (s->any->q.params.primitive == PL_COUNTERS)
		ret[n++] = (struct pl_column){ "elsewhere", 20, true, false };
	return n;
}

/* Keys that are looked up together: over the network they cost one wait. */
struct group {
	struct asked keys[PL_QUERY_AHEAD];
	unsigned int n;
	bool end; /* no more keys follow */
};

static void empty(struct group *g)
{
	for (unsigned int i = 0; i < g->n; i++) {
		free(g->keys[i].text);
		free(g->keys[i].key);
	}
	g->n = 0;
}

/* Reads a group of keys. Returns 0, or an exit code; keys before a text that is no key are asked
 * all the same. */
static int read_group(struct spread *s, struct pl_key_source *source, struct group *g)
{
	const struct pl_store_params *params = &s->any->q.params;
	const char *form = params->primitive == PL_APPEND ? "u64" : s->args->key_form, *text;
	const unsigned int most = s->at->remote ? PL_QUERY_AHEAD : 1;

	while (g->n < most) {
		struct asked *k = &g->keys[g->n];

		text = pl_key_source_next(source);
		if (text == NULL) {
			g->end = true;
			break;
		}
		if (pl_key_parse(text, form, &k->key, &k->bytes) < 0) {
			pl_complain("'%s' is not a key of the form %s", text, form);
			g->end = true;
			return PL_EXIT_USAGE;
		}
		g->n++;
		carry(params, form, k->key);
		k->text = strdup(text);
		if (k->text == NULL)
			return pl_fail(PL_EXIT_FAILED, "out of memory");
	}
	return 0;
}

/* Reads the bytes for the keys of a group at the collector of each. An error is found again, and
 * reported, when a key is asked. */
static void read_ahead(struct spread *s, const struct pl_looker *looker, const struct group *g)
{
	uint64_t hashes[PL_QUERY_AHEAD], of_one[PL_QUERY_AHEAD];
	struct pl_diag diag = { .text = "" };

	if (!s->at->remote)
		return;
	for (unsigned int i = 0; i < g->n; i++)
		hashes[i] = looker->hash(s->any, g->keys[i].key, g->keys[i].bytes);
	for (unsigned int c = 0; c < s->at->n; c++) {
		unsigned int n = 0;
		int r;

		for (unsigned int i = 0; i < g->n; i++) {
			if (choose(s, hashes[i], all_of(s->at->n)) == (int)c)
				of_one[n++] = hashes[i];
		}
		if (n == 0 || open_one(s, c) != 0)
			continue;
		r = pl_query_fetch(&s->lookups[c]->q, of_one, n, (uint32_t)s->args->list, &diag);
		if (r < 0)
			(void)fail_read(s, c, r, &diag);
	}
}

struct answers {
	struct pl_row_out out;
	bool all, left_out; /* all: all were found; left_out: some could not be asked */
};

static void look_up_group(
	struct spread *s, const struct pl_looker *looker, const struct group *g, struct answers *a)
{
	const char *values[PL_LOOKUP_COLUMNS + MORE];

	read_ahead(s, looker, g);
	for (unsigned int i = 0; i < g->n; i++) {
		const struct asked *k = &g->keys[i];
		int r;

		values[0] = k->text;
		r = look_one(s, looker, k->key, k->bytes, values);
		a->all &= r == 1;
		a->left_out |= r < 0;
		if (r >= 0)
			pl_row_out_add(&a->out, values);
	}
}

static int look_up_all(
	struct spread *s, const struct pl_looker *looker, struct pl_key_source *source)
{
	struct pl_column columns[PL_LOOKUP_COLUMNS + MORE];
	struct answers a = { .all = true };
	struct group g = { .n = 0 };
	int code = 0;

	memcpy(columns, looker->columns, looker->n * sizeof(*columns));
	pl_row_out_init(
		&a.out, s->args->form, columns, looker->n + add_columns(s, columns + looker->n));
	/* When the only collector fails, there is no other one. */
	while (code == 0 && !g.end && (s->at->n > 1 || s->code == 0)) {
		code = read_group(s, source, &g);
		look_up_group(s, looker, &g, &a);
		empty(&g);
	}
	if (!pl_row_out_end(&a.out) || source->failed)
		return PL_EXIT_FAILED;
	if (a.left_out && s->at->n > 1)
		pl_complain("keys of collectors that could not be asked are left out%s",
			s->at->every ? "" : "; --all asks the other collectors for them");
	if (code != 0)
		return code;
	/* A failed collector matters only when a key was not found at the others. */
	if (s->code != 0 && !a.all)
		return s->code;
	return a.all ? PL_EXIT_OK : PL_EXIT_NOTHING;
}

static int look_up_cardinality(struct spread *s, struct pl_lookup **ret)
{
	const unsigned int at = sketch_at(s);
	struct pl_diag diag = { .text = "" };
	int r = open_one(s, at);

	if (r != 0)
		return r;
	*ret = s->lookups[at];
	r = pl_lookup_cardinality(*ret, &diag);
	if (r < 0)
		return fail_read(s, at, r, &diag);
	return r == 1 ? PL_EXIT_OK : PL_EXIT_NOTHING;
}

static bool is_sketch(const struct spread *s, uint32_t kind)
{
	return s->any->q.params.primitive == PL_SKETCH && s->any->q.s.kind == kind;
}

/* Checks that each collector was read within one epoch. */
static int check_unchanged(struct spread *s, int code)
{
	for (unsigned int i = 0; s->at->unchanged != NULL && i < s->at->n; i++) {
		int changed = 0;

		if (s->lookups[i] != NULL && s->codes[i] == 0)
			changed = s->at->unchanged(s->at->arg, i);
		code = changed != 0 ? changed : code;
	}
	return code;
}

static int look_up(struct spread *s, const char *const *keys, size_t n)
{
	struct pl_key_source source = { .keys = keys, .n = n };
	struct pl_lookup *sketch = NULL;
	int code;

	/* open_any opened a store. */
	assert(s->any != NULL);
	if (is_sketch(s, PL_SKETCH_HYPERLOGLOG)) {
		code = look_up_cardinality(s, &sketch);
	} else if (n == 0) {
		code = pl_fail(PL_EXIT_USAGE, "%s: missing key", s->args->command);
	} else {
		code = look_up_all(s, &pl_lookers[s->any->q.params.primitive], &source);
		if (is_sketch(s, PL_SKETCH_COUNT_MIN))
			sketch = s->lookups[sketch_at(s)];
	}
	if (sketch != NULL && (code == PL_EXIT_OK || code == PL_EXIT_NOTHING))
		pl_region_tell_whole(&sketch->q.s, sketch->q.complete);
	code = check_unchanged(s, code);
	pl_key_source_done(&source);
	return code;
}

int pl_lookup_keys(const struct pl_lookup_at *at, const struct pl_region_args *args,
	const char *const *keys, size_t n)
{
	struct spread s = { .at = at, .args = args };
	int code = 0;

	if (args->nodes != NULL && pl_nodes_parse(args->nodes, &s.nodes) < 0)
		return pl_fail(
			PL_EXIT_USAGE, "--nodes needs numbers and ranges, such as 1-100,205");
	code = open_any(&s);
	if (code == 0)
		code = look_up(&s, keys, n);
	for (unsigned int i = 0; i < at->n; i++) {
		if (s.lookups[i] != NULL)
			pl_query_done(&s.lookups[i]->q);
		free(s.lookups[i]);
	}
	pl_value_set_done(&s.nodes);
	return code;
}
