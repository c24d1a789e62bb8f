/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a translator from its configuration, which it checks, and frees it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dta/translator_state.h"

#define MS UINT64_C(1000000)

static const struct primitive *const primitives[] = {
	[PL_KEY_WRITE] = &pl_translate_key_write,
	[PL_APPEND] = &pl_translate_append,
	[PL_COUNTERS] = &pl_translate_counters,
	[PL_POSTCARDS] = &pl_translate_postcards,
	[PL_SKETCH] = &pl_translate_sketch,
};

static int bad(struct pl_diag *diag, unsigned int store, const char *what)
{
	pl_diag_set(diag, "store %u: %s", store, what);
	return -EINVAL;
}

static int check_filter(const struct pl_dta_store *c, unsigned int i, struct pl_diag *diag)
{
	uint32_t bytes = c->params.primitive == PL_KEY_WRITE ? c->params.key_write.value_bytes
							     : c->params.append.entry_bytes;

	if (!c->filter.on)
		return 0;
	if (c->params.primitive == PL_SKETCH)
		return bad(diag, i, "a sketch has no filter");
	if (c->params.primitive != PL_KEY_WRITE && c->params.primitive != PL_APPEND)
		return 0;
	if (c->filter.width == 0 || c->filter.width > 8)
		return bad(diag, i, "the number of the filter has 1 to 8 bytes");
	if (c->filter.offset > bytes || c->filter.width > bytes - c->filter.offset)
		return bad(diag, i, "the number of the filter lies behind the end of the value");
	return 0;
}

static int init_store(struct pl_translator *t, struct store *s, const struct pl_dta_store *c,
	struct pl_diag *diag)
{
	struct pl_diag why = { .text = "" };
	unsigned int i = (unsigned int)(s - t->stores);
	uint64_t bytes;
	int r;

	if (pl_store_bytes(&c->params, &bytes, &why) < 0)
		return bad(diag, i, why.text);
	r = check_filter(c, i, diag);
	if (r < 0)
		return r;
	s->config = *c;
	s->number = (uint16_t)i;
	s->published = c->params.hash == PL_HASH_DTA;
	if (s->config.flush_ns == 0)
		s->config.flush_ns = c->params.primitive == PL_SKETCH ? 10000 * MS : 100 * MS;
	pl_bucket_init(&s->bucket, c->quota.rate, c->quota.burst, 0);
	s->primitive = primitives[c->params.primitive];
	r = s->primitive->init(t, s, &why);
	if (r == -EINVAL)
		return bad(diag, i, why.text);
	if (t->by_primitive[c->params.primitive] == NULL)
		t->by_primitive[c->params.primitive] = s;
	return r;
}

static int check_config(const struct pl_translator_config *c, struct pl_diag *diag)
{
	if (c->n_stores == 0 || c->n_stores > PL_DTA_STORES_MAX)
		pl_diag_set(diag, "a translator has 1 to %u stores", PL_DTA_STORES_MAX);
	else if (c->collectors > PL_COLLECTORS_MAX)
		pl_diag_set(diag, "there are at most %u collectors", PL_COLLECTORS_MAX);
	else if (c->form >= PL_DTA_PATHLINE)
		pl_diag_set(diag, "published reports are plain or tracking");
	else if (c->n_access > PL_ACCESS_MAX)
		pl_diag_set(diag, "the access list has at most %u prefixes", PL_ACCESS_MAX);
	else
		return 0;
	return -EINVAL;
}

static int copy_access(
	struct pl_translator *t, const struct pl_translator_config *c, struct pl_diag *diag)
{
	for (unsigned int i = 0; i < c->n_access; i++) {
		if (c->access[i].bits > 128) {
			pl_diag_set(diag, "a prefix has at most 128 bits");
			return -EINVAL;
		}
	}
	if (c->n_access == 0)
		return 0;
	t->access = pl_translator_alloc(t, c->n_access, sizeof(*t->access));
	if (t->access == NULL)
		return -ENOMEM;
	memcpy(t->access, c->access, c->n_access * sizeof(*t->access));
	t->n_access = c->n_access;
	return 0;
}

/* Size of the largest write: a whole batch of a list. */
static uint32_t arena_bytes(const struct pl_translator *t)
{
	uint32_t bytes = ARENA_BYTES;

	for (unsigned int i = 0; i < t->n_stores; i++) {
		const struct store *s = &t->stores[i];

		if (s->config.params.primitive == PL_APPEND &&
			s->config.batch * s->append.geometry.entry_stride + 64 > bytes)
			bytes = s->config.batch * s->append.geometry.entry_stride + 64;
	}
	return bytes;
}

static int init(struct pl_translator *t, const struct pl_translator_config *c, struct pl_diag *diag)
{
	uint32_t reporters = c->reporters != 0 ? c->reporters : 1024;
	int r = copy_access(t, c, diag);

	if (r == 0)
		r = pl_senders_init(&t->senders, reporters,
			c->reporter_idle_ns != 0 ? c->reporter_idle_ns : 60000 * MS,
			c->reporter_quota.rate, c->reporter_quota.burst);
	t->memory +=
		pl_cells_memory(reporters, sizeof(struct pl_sender)) + pl_shares_memory(reporters);
	if (r == 0) {
		t->stores = pl_translator_alloc(t, c->n_stores, sizeof(*t->stores));
		r = t->stores == NULL ? -ENOMEM : 0;
	}
	while (r == 0 && t->n_stores < c->n_stores) {
		/* Counted before it is complete: its destructor handles that. */
		t->n_stores++;
		r = init_store(t, &t->stores[t->n_stores - 1], &c->stores[t->n_stores - 1], diag);
	}
	if (r < 0)
		return r;
	t->arena_bytes = arena_bytes(t);
	t->arena = pl_translator_alloc(t, 1, t->arena_bytes);
	return t->arena == NULL ? -ENOMEM : 0;
}

int pl_translator_new(struct pl_translator **ret, const struct pl_translator_config *config,
	const struct pl_op_sink *sink, struct pl_diag *diag)
{
	struct pl_translator *t;
	int r = check_config(config, diag);

	*ret = NULL;
	if (r < 0)
		return r;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	t->memory = sizeof(*t);
	t->sink = *sink;
	t->collectors = config->collectors != 0 ? config->collectors : 1;
	t->up = t->collectors == 64 ? UINT64_MAX : (UINT64_C(1) << t->collectors) - 1;
	t->form = config->form;
	t->limits_senders = config->reporter_quota.rate != 0;
	t->nack_interval_ns = config->nack_interval_ns != 0 ? config->nack_interval_ns : MS;
	t->nack_tries = config->nack_tries;
	t->nack_port = config->nack_port;
	r = init(t, config, diag);
	if (r < 0)
		pl_translator_free(t);
	else
		*ret = t;
	return r;
}

void pl_translator_free(struct pl_translator *t)
{
	if (t == NULL)
		return;
	for (unsigned int i = 0; i < t->n_stores; i++) {
		if (t->stores[i].primitive != NULL && t->stores[i].primitive->done != NULL)
			t->stores[i].primitive->done(&t->stores[i]);
	}
	pl_senders_done(&t->senders);
	free(t->stores);
	free(t->access);
	free(t->arena);
	free(t);
}
