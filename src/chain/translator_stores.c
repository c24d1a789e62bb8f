/* SPDX-License-Identifier: BSD-2-Clause */
/* The translator's stores: those of the output, with the options for each. */
#include <errno.h>

#include "chain/translator.h"
#include "dta/limits.h"

/* Sets a filter; without a width it has as many bytes as the value, up to 8. */
static int put_above(const char *text, struct pl_dta_store *stores, unsigned int n)
{
	const struct pl_store_params *p;
	struct pl_dta_filter filter;
	uint32_t store, bytes;

	if (pl_dta_above_parse(text, &store, &filter) < 0 || store >= n)
		return -EINVAL;
	p = &stores[store].params;
	bytes = p->primitive == PL_APPEND ? p->append.entry_bytes : p->key_write.value_bytes;
	if (filter.width == 0)
		filter.width = (uint8_t)(bytes > 8 ? 8 : bytes);
	stores[store].filter = filter;
	return 0;
}

/* Sets the rate of every store, or with `one` that of one store. */
static int put_rate(const char *text, bool one, struct pl_dta_store *stores, unsigned int n)
{
	uint32_t store;
	double rate;

	if (pl_dta_rate_parse(text, &store, &rate) < 0 ||
		(store != PL_DTA_EVERY_STORE && store >= n))
		return -EINVAL;
	if (one && store != PL_DTA_EVERY_STORE)
		stores[store].quota.rate = rate;
	for (unsigned int i = 0; !one && store == PL_DTA_EVERY_STORE && i < n; i++)
		stores[i].quota.rate = rate;
	return 0;
}

int pl_translate_stores(const struct pl_translate_options *o, const struct pl_translate_out *out,
	struct pl_dta_store *ret, struct pl_diag *diag)
{
	const struct pl_config_dta *dta = &o->dta;
	char *const *rates = dta->store_rates.items, *const *above = dta->above.items;

	if (out->n_stores > PL_DTA_STORES_MAX)
		return pl_diag_fail(
			diag, -EINVAL, "translate: more than %u regions", PL_DTA_STORES_MAX);
	for (unsigned int i = 0; i < out->n_stores; i++)
		ret[i] = (struct pl_dta_store){
			.params = out->stores[i],
			.flush_ns = dta->flush_ns,
			.partial = dta->partial,
			.reporters = (uint32_t)dta->sketch_reporters,
			.cache_rows = (uint32_t)dta->cache_rows,
			.merge_max = (uint32_t)dta->merge,
			.batch = (uint32_t)dta->batch,
		};
	/* First the rates of all stores, then those of single ones. */
	for (int one = 0; one < 2; one++) {
		for (size_t i = 0; i < dta->store_rates.n; i++) {
			if (put_rate(rates[i], one, ret, out->n_stores) == 0)
				continue;
			return pl_diag_fail(diag, -EINVAL,
				"store rate %s: write RATE or STORE=RATE with a rate above 0 and a store from 0 to %u; leave it out for no limit",
				rates[i], out->n_stores - 1);
		}
	}
	for (size_t i = 0; i < dta->above.n; i++) {
		if (put_above(above[i], ret, out->n_stores) < 0)
			return pl_diag_fail(diag, -EINVAL,
				"above %s: write STORE=VALUE or STORE=VALUE@OFFSET+WIDTH with a store from 0 to %u",
				above[i], out->n_stores - 1);
	}
	return 0;
}
