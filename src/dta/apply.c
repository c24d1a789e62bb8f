/* SPDX-License-Identifier: BSD-2-Clause */
/* Executes operations in mapped stores. */
#include "dta/apply.h"
#include "base/stats.h"

#include "base/prefetch.h"
#include "memory/words.h"

/* Writes with the widest words that fit; the place is aligned to 4 bytes at least, as all places of
 * stores are. */
static void place(uint8_t *to, const uint8_t *from, size_t n)
{
	if (((uintptr_t)to & 7) == 0) {
		size_t whole = n & ~(size_t)7;

		pl_words_store(to, from, whole);
		to += whole;
		from += whole;
		n -= whole;
	}
	pl_words32_store(to, from, n & ~(size_t)3);
	for (size_t i = n & ~(size_t)3; i < n; i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

static bool fits(const struct pl_apply_store *store, const struct pl_op *op)
{
	if (op->bytes > store->bytes || op->offset > store->bytes - op->bytes)
		return false;
	return op->kind == PL_OP_ADD ? op->bytes == 8 && (op->offset & 7) == 0
				     : (op->offset & 3) == 0;
}

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_apply, __VA_ARGS__)
#include "dta/apply_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_apply_stats_list = { stat_rows, sizeof(stat_rows) / sizeof(stat_rows[0]) };

/* Finds the store of an operation. NULL: none. */
static const struct pl_apply_store *store_of(const struct pl_apply *a, const struct pl_op *op)
{
	const struct pl_apply_store *store;

	if (op->collector >= a->collectors || op->store >= a->n_stores)
		return NULL;
	store = &a->stores[(size_t)op->collector * a->n_stores + op->store];
	return store->base == NULL ? NULL : store;
}

static void apply(struct pl_apply *a, const struct pl_op *op)
{
	const struct pl_apply_store *store = store_of(a, op);
	void *to;

	if (store == NULL) {
		a->no_store++;
		return;
	}
	if (!fits(store, op)) {
		a->outside++;
		return;
	}
	to = (uint8_t *)store->base + op->offset;
	pl_words_release();
	if (op->kind == PL_OP_ADD) {
		if (__atomic_load_n((const uint64_t *)to, __ATOMIC_RELAXED) >
			UINT64_MAX - op->add) {
			a->overflows++;
			return;
		}
		__atomic_fetch_add((uint64_t *)to, op->add, __ATOMIC_RELAXED);
		a->adds++;
	} else {
		place(to, op->data, op->bytes);
		a->writes++;
		a->bytes += op->bytes;
	}
	if (op->immediate) {
		a->immediates++;
		if (a->wake != NULL)
			a->wake(a->wake_arg, op->collector, op->store, op->imm);
	}
}

void pl_apply_ops(void *arg, const struct pl_op *ops, size_t n)
{
	/* Places are random: all are prefetched before the first is used. */
	for (size_t i = 0; i < n; i++) {
		const struct pl_apply_store *store = store_of(arg, &ops[i]);

		if (store != NULL && fits(store, &ops[i]))
			pl_prefetch_write((const uint8_t *)store->base + ops[i].offset);
	}
	for (size_t i = 0; i < n; i++)
		apply(arg, &ops[i]);
}
