/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target for reports that is a region of this process: a translator of one store, whose
 * operations run on the mapped file as in the translator service.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dta/apply.h"
#include "dta/translator.h"
#include "export/dta_map.h"
#include "export/dta_to.h"
#include "memory/append.h"
#include "memory/region.h"

#define WINDOW       1024u
#define CACHE_ROWS   64u /* the postcards of one path come together */
/* Maximum of bytes in batches of all lists together. */
#define HELD_MAX     (UINT64_C(4) << 20)
#define LOOK_NS      UINT64_C(100000000)
#define LOOK_NAME_NS UINT64_C(1000000000)

struct to_region {
	struct pl_dta_to to;
	char *path;
	struct pl_region *region;
	struct pl_translator *translator;
	struct pl_apply apply;
	struct pl_apply_store store;
	uint64_t done, flushed, look_ns; /* reports taken, and reports in the region */
	uint64_t look_name_ns;
	_Atomic bool cut;
	_Atomic bool gone;   /* no file has its name, or another region's file */
	_Atomic int refusal; /* enum pl_refusal of the last refused report; -1: sum full */
};

static struct to_region *self(struct pl_dta_to *to)
{
	return (struct to_region *)to;
}

/* ---- operations ---- */

/* Returns the cause for which a report was refused: the one whose counter grew since `before`. */
static int cause_since(const struct pl_translator *t, const uint64_t *before)
{
	const uint64_t *now = pl_translator_counters(t)->refused;

	for (int i = 0; i < PL_REFUSED_MAX; i++) {
		if (now[i] != before[i])
			return i;
	}
	return 0;
}

static int put(struct pl_dta_to *to, uint64_t now_ns, const struct pl_dta_report *report)
{
	struct to_region *g = self(to);
	const uint64_t overflows = g->apply.overflows;
	uint64_t refused[PL_REFUSED_MAX];

	if (atomic_load_explicit(&g->cut, memory_order_relaxed))
		return -EIO;
	memcpy(refused, pl_translator_counters(g->translator)->refused, sizeof(refused));
	if (!pl_translator_report(g->translator, now_ns, report)) {
		atomic_store_explicit(
			&g->refusal, cause_since(g->translator, refused), memory_order_relaxed);
		return -EINVAL;
	}
	if (g->apply.overflows != overflows) {
		atomic_store_explicit(&g->refusal, -1, memory_order_relaxed);
		return -EOVERFLOW;
	}
	g->done++;
	return 0;
}

static void flush(struct pl_dta_to *to, uint64_t now_ns)
{
	struct to_region *g = self(to);

	pl_translator_flush(g->translator, now_ns);
	g->flushed = g->done;
	if (now_ns < g->look_ns)
		return;
	g->look_ns = now_ns + LOOK_NS;
	if (pl_region_is_cut(g->region))
		atomic_store_explicit(&g->cut, true, memory_order_relaxed);
	if (now_ns < g->look_name_ns)
		return;
	g->look_name_ns = now_ns + LOOK_NAME_NS;
	atomic_store_explicit(&g->gone, !pl_region_is_at(g->region, g->path), memory_order_relaxed);
}

static void state(struct pl_dta_to *to, uint64_t now_ns, struct pl_dta_to_state *ret)
{
	const struct to_region *g = self(to);

	(void)now_ns;
	*ret = (struct pl_dta_to_state){ .settled = g->flushed,
		.bytes = g->apply.bytes + 8 * g->apply.adds,
		.error = atomic_load_explicit(&g->cut, memory_order_relaxed)    ? EIO
			 : atomic_load_explicit(&g->gone, memory_order_relaxed) ? ESTALE
										: 0 };
}

static void words(struct pl_dta_to *to, struct pl_export_words *ret)
{
	struct to_region *g = self(to);
	const int refusal = atomic_load_explicit(&g->refusal, memory_order_relaxed);

	if (atomic_load_explicit(&g->cut, memory_order_relaxed))
		snprintf(ret->trouble, sizeof(ret->trouble),
			"%s was truncated while it was open; create it again and restart", g->path);
	else if (atomic_load_explicit(&g->gone, memory_order_relaxed))
		snprintf(ret->trouble, sizeof(ret->trouble),
			"%s was removed or made anew while it was open: records go on into the file that was there; restart to write into a new one",
			g->path);
	if (refusal == 0)
		return;
	snprintf(ret->refusal, sizeof(ret->refusal), "%s: %s", g->path,
		refusal < 0 ? "the sum of the key is full"
			    : pl_refusal_help((enum pl_refusal)refusal));
}

static void close_to(struct pl_dta_to *to)
{
	struct to_region *g = self(to);

	pl_translator_free(g->translator);
	(void)pl_region_close(g->region);
	free(g->path);
	free(g);
}

static const struct pl_dta_to_ops ops = {
	.put = put,
	.flush = flush,
	.state = state,
	.words = words,
	.close = close_to,
};

/* ---- opening ---- */

static uint32_t primitive_of(enum pl_dta_op op)
{
	/* Primitives and operations have the same numbers. */
	return (uint32_t)op;
}

static uint32_t content_of(const struct pl_dta_map *map)
{
	static const uint32_t contents[PL_KIND_MAX] = { [PL_KIND_PATH] = PL_CONTENT_PATH,
		[PL_KIND_HOP] = PL_CONTENT_HOP,
		[PL_KIND_EVENT] = PL_CONTENT_EVENT };

	return map->whole ? contents[map->o.record] : PL_CONTENT_BYTES;
}

static int check_value(const char *path, const struct pl_store_params *p,
	const struct pl_dta_map *map, struct pl_diag *diag)
{
	const uint32_t bytes = pl_dta_map_value_bytes(map);
	const uint32_t wants =
		p->primitive == PL_APPEND ? p->append.entry_bytes : p->key_write.value_bytes;

	if (bytes != wants)
		pl_diag_set(diag, "%s has values of %u bytes, but the record's are %u bytes", path,
			wants, bytes);
	else if (p->content != PL_CONTENT_BYTES && p->content != content_of(map))
		pl_diag_set(diag, "%s is for whole records of another kind", path);
	else if (p->primitive == PL_APPEND && map->o.list >= p->append.lists)
		pl_diag_set(diag, "%s has the lists 0 to %u, not %u", path, p->append.lists - 1,
			map->o.list);
	else
		return 0;
	return -EINVAL;
}

static int check_store(const char *path, const struct pl_store_params *p,
	const struct pl_dta_map *map, struct pl_diag *diag)
{
	const uint32_t primitive = primitive_of(map->o.op);

	if (p->primitive != primitive)
		return pl_diag_fail(diag, -EINVAL, "%s is a %s region, not %s", path,
			pl_primitive_name(p->primitive), pl_primitive_name(primitive));
	if (p->hash == PL_HASH_DTA && map->key.n > 0 && map->o.key_form != PL_KEY_BE32)
		return pl_diag_fail(diag, -EINVAL,
			"%s has keys of 32 bits (--hash dta): use key_form: be32 and a key of one number",
			path);
	return primitive == PL_KEY_WRITE || primitive == PL_APPEND ? check_value(path, p, map, diag)
								   : 0;
}

static int make_translator(struct to_region *g, struct pl_diag *diag)
{
	struct pl_dta_store store = {
		.params = *pl_region_params(g->region), .merge_max = 1, .cache_rows = CACHE_ROWS
	};
	const struct pl_translator_config config = {
		.stores = &store, .n_stores = 1, .reporters = 1
	};
	const struct pl_op_sink sink = { .ops = pl_apply_ops, .arg = &g->apply };
	struct pl_append a;
	int r;

	if (store.params.primitive == PL_APPEND &&
		UINT64_C(16) * store.params.append.lists * store.params.append.entry_bytes >
			HELD_MAX)
		store.batch = 1;
	r = pl_translator_new(&g->translator, &config, &sink, diag);
	if (r < 0 || pl_append_init(&a, &store.params, g->store.base) < 0)
		return r;
	for (uint32_t list = 0; r == 0 && list < a.lists; list++)
		r = pl_translator_resume_list(g->translator, 0, 0, list, pl_append_head(&a, list));
	return r;
}

int pl_dta_to_region(struct pl_dta_to **ret, const char *path, const struct pl_dta_map *map,
	uint64_t sync_ns, struct pl_diag *diag)
{
	const struct pl_region_options options = { .sync_ns = sync_ns };
	struct to_region *g = calloc(1, sizeof(*g));
	struct pl_region_info info;
	int r = -ENOMEM;

	if (g == NULL)
		return -ENOMEM;
	g->to = (struct pl_dta_to){ .ops = &ops, .window = WINDOW };
	g->path = strdup(path);
	if (g->path != NULL)
		r = pl_region_open(&g->region, path, PL_REGION_WRITE, &options, diag);
	if (r == 0)
		r = check_store(path, pl_region_params(g->region), map, diag);
	if (r == 0) {
		pl_region_get_info(g->region, &info);
		g->store = (struct pl_apply_store){
			pl_region_store(g->region, pl_region_epoch(g->region)), info.store_bytes
		};
		g->apply = (struct pl_apply){ .stores = &g->store, .collectors = 1, .n_stores = 1 };
		r = make_translator(g, diag);
	}
	if (r < 0) {
		close_to(&g->to);
		return r;
	}
	*ret = &g->to;
	return 0;
}
