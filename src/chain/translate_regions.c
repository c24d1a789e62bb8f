/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of the translator into region files of this machine. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chain/epochs.h"
#include "chain/region_watch.h"
#include "chain/translate_out.h"
#include "dta/apply.h"
#include "memory/append.h"
#include "memory/region.h"
#include "memory/sketch.h"
#include "runtime/region_metrics.h"
#include "runtime/say.h"

struct regions {
	struct pl_apply apply;
	struct pl_region **region; /* with the indexes of apply.stores */
	struct pl_store_params *params;
	const char *const *paths, *const *names; /* owned by the caller */
	bool overflow_told;
	struct pl_region_watched *state; /* with the indexes of region */
	struct pl_region_watch watch;
	unsigned int n;
	struct pl_epochs *epochs;   /* NULL: no region has epochs */
	uint64_t turned;            /* turns of sketches */
	void (*written)(void *arg); /* called by apply.wake */
	void *written_arg;
};

/* ---- epochs ---- */

static enum pl_epochs_kind epochs_kind(void *arg, uint32_t i)
{
	const struct regions *g = arg;
	struct pl_region_info info;

	pl_region_get_info(g->region[i], &info);
	return info.halves != 2 || info.params.primitive == PL_APPEND ? PL_EPOCHS_NONE
	       : info.params.primitive == PL_SKETCH                   ? PL_EPOCHS_OWN
								      : PL_EPOCHS_TIMED;
}

static const struct pl_region *epochs_region(void *arg, uint32_t i)
{
	const struct regions *g = arg;

	return g->region[i];
}

static const char *epochs_path(void *arg, uint32_t i)
{
	const struct regions *g = arg;

	return g->paths[i];
}

static int epochs_prepare(void *arg, uint32_t i)
{
	const struct regions *g = arg;

	return pl_region_prepare_epoch(g->region[i], NULL);
}

static int epochs_next(void *arg, uint32_t i)
{
	const struct regions *g = arg;
	struct pl_region *region = g->region[i];
	int r = !g->state[i].cut ? pl_region_next_epoch(region, NULL) : -ENODATA;

	if (r == 0)
		g->apply.stores[i].base = pl_region_store(region, pl_region_epoch(region));
	return r;
}

static int open_epochs(
	struct regions *g, uint64_t every_ns, const char *folder, struct pl_diag *diag)
{
	const struct pl_epochs_writer writer = { g->n, epochs_kind, epochs_region, epochs_path,
		epochs_path, epochs_prepare, epochs_next, g };
	bool any = false, timed = false;

	for (unsigned int i = 0; i < g->n; i++) {
		any |= epochs_kind(g, i) != PL_EPOCHS_NONE;
		timed |= epochs_kind(g, i) == PL_EPOCHS_TIMED;
	}
	if ((every_ns != 0 && !timed) || (folder != NULL && !any))
		return pl_diag_fail(diag, -EINVAL,
			"epochs: no region has epochs: they need a region with two halves (region create --halves 2), other than lists%s",
			any ? "; the epochs of a sketch begin with its reporters" : "");
	return any ? pl_epochs_open(&g->epochs, &writer, every_ns, folder, diag) : 0;
}

static unsigned int fds(void *arg, struct pollfd *ret, unsigned int max)
{
	const struct regions *g = arg;

	if (max == 0)
		return 0;
	ret[0] = (struct pollfd){ .fd = pl_epochs_fd(g->epochs), .events = POLLIN };
	return 1;
}

static void next_epoch(void *arg)
{
	struct regions *g = arg;

	pl_epochs_ask(g->epochs);
}

/* ---- operations ---- */

/* Region of a sketch that begins with this operation: its count of columns is set to zero. -1:
 * another operation. */
static int begun_by(const struct regions *g, const struct pl_op *op)
{
	static const uint8_t none[8];

	if (op->collector >= g->apply.collectors || op->store >= g->apply.n_stores ||
		g->params[op->store].primitive != PL_SKETCH || op->kind != PL_OP_WRITE ||
		op->offset != 0 || op->bytes != sizeof(none) ||
		memcmp(op->data, none, sizeof(none)) != 0)
		return -1;
	return (int)(op->collector * g->apply.n_stores + op->store);
}

/* Begins a sketch of reporters: in a region of two halves the one before stays as it is, complete
 * or not. */
static void begin_sketch(struct regions *g, unsigned int i)
{
	struct pl_sketch s;

	(void)pl_sketch_init(&s, pl_region_params(g->region[i]), g->apply.stores[i].base);
	if (g->state[i].cut || g->epochs == NULL || epochs_kind(g, i) != PL_EPOCHS_OWN ||
		pl_sketch_completed(&s) == 0 || !pl_epochs_may_begin(g->epochs, i) ||
		epochs_next(g, i) < 0)
		return;
	g->turned++;
	pl_epochs_begun(g->epochs);
}

static void apply(void *arg, const struct pl_op *ops, size_t n)
{
	struct regions *g = arg;
	size_t done = 0;

	for (size_t i = 0; i < n; i++) {
		int begun = begun_by(g, &ops[i]);

		if (begun < 0)
			continue;
		pl_apply_ops(&g->apply, ops + done, i - done);
		done = i;
		begin_sketch(g, (unsigned int)begun);
	}
	pl_apply_ops(&g->apply, ops + done, n - done);
}

/* Tells readers of this process about operations with an immediate value. */
static void wake(void *arg, unsigned int collector, unsigned int store, uint32_t imm)
{
	const struct regions *g = arg;

	(void)collector;
	(void)store;
	(void)imm;
	g->written(g->written_arg);
}

static void tell(void *arg, void (*written)(void *arg), void *written_arg)
{
	struct regions *g = arg;

	g->written = written;
	g->written_arg = written_arg;
	g->apply.wake = wake;
	g->apply.wake_arg = g;
}

static const struct pl_region *watched(void *arg, unsigned int i, const char **ret_path)
{
	const struct regions *g = arg;

	*ret_path = g->paths[i];
	return g->region[i];
}

/* Looks at the files: operations on a region that was cut are dropped and counted. */
static void look(struct regions *g, uint64_t now_ns)
{
	pl_region_watch_look(&g->watch, now_ns, watched, g, g->state, g->n);
	if (g->apply.overflows > 0 && !g->overflow_told) {
		pl_say("a counter is full: additions beyond 2^64 - 1 are dropped and counted (out.overflows)");
		g->overflow_told = true;
	}
	for (unsigned int i = 0; g->watch.cut > 0 && i < g->n; i++) {
		if (g->state[i].cut)
			g->apply.stores[i].base = NULL;
	}
}

static uint64_t turn(void *arg, struct pl_translator *t, uint64_t now_ns)
{
	struct regions *g = arg;

	(void)t;
	look(g, now_ns);
	/* Called between batches of operations, so that all operations of a report are in one
	 * epoch. */
	if (g->epochs != NULL)
		pl_epochs_turn(g->epochs);
	return UINT64_MAX;
}

static void finish(void *arg)
{
	struct regions *g = arg;

	look(g, UINT64_MAX);
	pl_epochs_stop(g->epochs);
}

static bool lost(void *arg)
{
	const struct regions *g = arg;

	return pl_region_watch_lost(&g->watch);
}

static void tell_lost(void *arg, struct pl_buf *text)
{
	const struct regions *g = arg;

	pl_region_watch_tell(&g->watch, text);
	if (g->apply.no_store > 0)
		pl_buf_printf(text, "; %" PRIu64 " operations for truncated regions were lost",
			g->apply.no_store);
}

static void conditions(void *arg, struct pl_conditions *ret)
{
	struct regions *g = arg;

	pl_region_watch_conditions(&g->watch, watched, g, g->state, g->n, ret);
	if (g->epochs != NULL)
		pl_epochs_conditions(g->epochs, ret);
	if (g->apply.overflows > 0)
		pl_condition_add(ret, PL_CONDITION_WARNING, "counter_full",
			"a counter is full: %" PRIu64 " additions beyond 2^64 - 1 were dropped",
			g->apply.overflows);
}

/* Resumes each list at its head in the region. */
static int resume(void *arg, struct pl_translator *t)
{
	const struct regions *g = arg;

	for (unsigned int i = 0; i < g->n; i++) {
		unsigned int store = i % g->apply.n_stores;
		struct pl_append a;

		if (pl_append_init(&a, &g->params[store], g->apply.stores[i].base) < 0)
			continue; /* of another primitive */
		for (uint32_t list = 0; list < a.lists; list++) {
			int r = pl_translator_resume_list(
				t, i / g->apply.n_stores, store, list, pl_append_head(&a, list));

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static void put_numbers(const struct pl_account *a, const struct pl_apply *apply, uint64_t turned,
	const struct pl_region_watch *watch, struct pl_epochs *epochs)
{
	pl_account_stats(a, &pl_apply_stats_list, apply);
	PL_COUNT(a, "dta_out_", "turned", "Sketches that began in the other half.", turned);
	pl_region_watch_account(a, &pl_region_watch_dta, watch);
	if (epochs != NULL || a->json == NULL)
		pl_epochs_account(a, &pl_epochs_dta, epochs);
}

static void account(void *arg, const struct pl_account *a)
{
	const struct regions *g = arg;

	put_numbers(a, &g->apply, g->turned, &g->watch, g->epochs);
}

void pl_translate_regions_describe(const struct pl_account *a)
{
	const struct pl_region_watch none = { .cut = 0 };

	put_numbers(a, NULL, 0, &none, NULL);
}

static void list_regions(void *arg, struct pl_region_list *ret)
{
	const struct regions *g = arg;

	for (unsigned int i = 0; i < g->n; i++)
		pl_region_list_add(ret, g->region[i], g->names[i]);
}

static int close_all(void *arg)
{
	struct regions *g = arg;
	int r = 0;

	pl_epochs_stop(g->epochs);
	pl_epochs_free(g->epochs);
	for (unsigned int i = 0; g->region != NULL && i < g->n; i++) {
		int error = pl_region_close(g->region[i]);

		r = r == 0 ? error : r;
	}
	free(g->region);
	free(g->apply.stores);
	free(g->params);
	free(g->state);
	free(g);
	return r;
}

/* Opens a region: the first collector's regions define the stores, the others' must be the same. */
static int open_one(struct regions *g, unsigned int i, const char *path, struct pl_diag *diag)
{
	unsigned int store = i % g->apply.n_stores;
	struct pl_diag mended = { .text = "" };
	struct pl_region *region;
	struct pl_region_info info;
	int r = pl_region_open(&region, path, PL_REGION_WRITE, NULL, diag);

	if (r < 0)
		return r;
	g->region[i] = region;
	if (pl_region_mended(region, &mended) > 0)
		pl_say("%s: %s", path, mended.text);
	pl_region_get_info(region, &info);
	if (i < g->apply.n_stores) {
		g->params[store] = info.params;
	} else if (/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): unused bytes are zero */
		memcmp(&g->params[store], &info.params, sizeof(info.params)) != 0) {
		return pl_diag_fail(diag, -EBADMSG,
			"%s differs from the store of the first collector (parameters and seed must be equal)",
			path);
	}
	g->apply.stores[i] =
		(struct pl_apply_store){ pl_region_store(region, pl_region_epoch(region)),
			info.store_bytes };
	return 0;
}

int pl_translate_to_regions(struct pl_translate_out *ret, const char *const *paths, size_t n,
	const char *const *names, unsigned int collectors, uint64_t epoch_ns,
	const char *keep_epochs, struct pl_diag *diag)
{
	struct regions *g = calloc(1, sizeof(*g));
	int r = 0;

	if (g == NULL)
		return -ENOMEM;
	g->n = (unsigned int)n;
	g->paths = paths;
	g->names = names;
	g->state = calloc(n, sizeof(*g->state));
	g->apply.collectors = collectors;
	g->apply.n_stores = (unsigned int)(n / collectors);
	g->region = calloc(n, sizeof(struct pl_region *));
	g->apply.stores = calloc(n, sizeof(*g->apply.stores));
	g->params = calloc(g->apply.n_stores, sizeof(*g->params));
	if (g->region == NULL || g->apply.stores == NULL || g->params == NULL || g->state == NULL)
		r = -ENOMEM;
	for (unsigned int i = 0; r == 0 && i < n; i++)
		r = open_one(g, i, paths[i], diag);
	if (r == 0)
		r = open_epochs(g, epoch_ns, keep_epochs, diag);
	if (r < 0) {
		(void)close_all(g);
		return r;
	}
	*ret = (struct pl_translate_out){
		.ops = apply,
		.resume = resume,
		.account = account,
		.regions = list_regions,
		.close = close_all,
		.turn = turn,
		.finish = finish,
		.lost = lost,
		.tell_lost = tell_lost,
		.conditions = conditions,
		.tell = tell,
		.arg = g,
		.stores = g->params,
		.n_stores = g->apply.n_stores,
		.collectors = collectors,
	};
	if (g->epochs != NULL) {
		ret->fds = fds;
		ret->next_epoch = next_epoch;
	}
	return 0;
}
