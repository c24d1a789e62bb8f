/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes an append report of each record, and accounts for the reports. */
#include "export/dta_append.h"

#include <errno.h>
#include <stdlib.h>

struct dta_append {
	struct pl_export export; /* first */
	struct pl_dta_append_options o;
	struct pl_dta_to *to;
	uint64_t settled;       /* reports counted as delivered or lost */
	uint64_t lost, to_lose; /* reports lost so far; of them, not counted yet */
	uint64_t bytes, errors;
};

static struct dta_append *self(struct pl_export *e)
{
	return (struct dta_append *)e;
}

/* Counts reports that are done: the translator says how many were lost, not which. */
static void settle(struct dta_append *a, uint64_t now_ns)
{
	struct pl_export_stats *s = &a->export.stats;
	struct pl_dta_to_state state;
	uint64_t n, lost;

	a->to->ops->state(a->to, now_ns, &state);
	a->to_lose += state.lost - a->lost;
	a->lost = state.lost;
	n = state.settled - a->settled;
	lost = a->to_lose < n ? a->to_lose : n;
	a->to_lose -= lost;
	a->settled = state.settled;
	/* No report is left: the rest of to_lose was reported twice. */
	if (a->settled == a->to->taken)
		a->to_lose = 0;
	pl_count(&s->dropped[PL_EXPORT_IO], lost);
	pl_count(&s->delivered, n - lost);
	pl_count(&s->bytes, state.bytes - a->bytes);
	pl_count(&s->errors, state.errors - a->errors);
	a->bytes = state.bytes;
	a->errors = state.errors;
	atomic_store_explicit(&s->last_error, state.error, memory_order_relaxed);
	atomic_store_explicit(&s->queued, a->to->taken - a->settled, memory_order_relaxed);
}

static void append_one(struct dta_append *a, const uint8_t *record, uint32_t bytes, uint64_t now_ns)
{
	struct pl_export_stats *s = &a->export.stats;
	const struct pl_dta_report report = { .form = PL_DTA_PATHLINE,
		.op = PL_DTA_APPEND,
		.store = a->o.store,
		.list = a->o.list,
		.data = record,
		.data_bytes = bytes };
	const int r = a->to->ops->put(a->to, now_ns, &report);

	pl_count(&s->accepted, 1);
	if (r == 0)
		a->to->taken++;
	else
		pl_count(&s->dropped[r == -EAGAIN ? PL_EXPORT_MEMORY : PL_EXPORT_REJECTED], 1);
}

static void write_flat(struct pl_export *e, enum pl_flat_kind kind, const void *records, uint32_t n,
	uint32_t stride, uint64_t now_ns)
{
	struct dta_append *a = self(e);
	const uint8_t *p = records;

	for (uint32_t i = 0; i < n; i++, p += stride)
		append_one(a, p, pl_flat(kind)->size, now_ns);
	settle(a, now_ns);
}

static void flush(struct pl_export *e, uint64_t now_ns, bool all)
{
	struct dta_append *a = self(e);

	(void)all;
	a->to->ops->flush(a->to, now_ns);
	settle(a, now_ns);
}

static void words(struct pl_export *e, struct pl_export_words *ret)
{
	struct dta_append *a = self(e);

	ret->trouble[0] = ret->refusal[0] = '\0';
	a->to->ops->words(a->to, ret);
}

static void close_append(struct pl_export *e)
{
	struct dta_append *a = self(e);

	a->to->ops->close(a->to);
	free(a);
}

static const struct pl_export_ops ops = {
	.name = "dta",
	.write_flat = write_flat,
	.flush = flush,
	.words = words,
	.close = close_append,
};

int pl_dta_append_open(
	struct pl_export **ret, const struct pl_dta_append_options *options, struct pl_dta_to *to)
{
	struct dta_append *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		to->ops->close(to);
		return -ENOMEM;
	}
	a->export.ops = &ops;
	a->o = *options;
	a->to = to;
	*ret = &a->export;
	return 0;
}
