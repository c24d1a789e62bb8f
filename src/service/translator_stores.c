/* SPDX-License-Identifier: BSD-2-Clause */
/* The translator's stores: what the output has, by what was asked for. */
#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "service/translator.h"

/* "STORE=VALUE[@OFFSET+WIDTH]" */
static int parse_above(const char *text, struct pl_dta_store *stores, unsigned int n)
{
	char copy[96], *value, *at, *width;
	uint64_t store, above, offset = 0, bytes = 0;
	const struct pl_store_params *p;
	struct pl_dta_filter *f;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, strlen(text) + 1);
	value = strchr(copy, '=');
	if (value == NULL)
		return -EINVAL;
	*value++ = '\0';
	at = strchr(value, '@');
	if (at != NULL) {
		*at++ = '\0';
		width = strchr(at, '+');
		if (width == NULL)
			return -EINVAL;
		*width++ = '\0';
		if (pl_parse_u64(at, &offset) < 0 || pl_parse_u64(width, &bytes) < 0 ||
			offset > UINT16_MAX || bytes == 0 || bytes > 8)
			return -EINVAL;
	}
	if (pl_parse_u64(copy, &store) < 0 || pl_parse_u64(value, &above) < 0 || store >= n)
		return -EINVAL;
	p = &stores[store].params;
	f = &stores[store].filter;
	if (bytes == 0) {
		bytes = p->primitive == PL_APPEND ? p->append.entry_bytes
						  : p->key_write.value_bytes;
		bytes = bytes > 8 ? 8 : bytes;
	}
	*f = (struct pl_dta_filter){
		.on = true, .width = (uint8_t)bytes, .offset = (uint16_t)offset, .above = above
	};
	return 0;
}

/* "RATE" is of all stores, "STORE=RATE" of one, wherever it stands. */
static int parse_store_rate(const char *text, bool one, struct pl_dta_store *stores, unsigned int n)
{
	const char *equals = strchr(text, '=');
	uint64_t store;
	char number[24];
	double rate;

	if (pl_parse_rate(equals != NULL ? equals + 1 : text, &rate) < 0 || rate == 0)
		return -EINVAL;
	if (equals == NULL) {
		for (unsigned int i = 0; !one && i < n; i++)
			stores[i].quota.rate = rate;
		return 0;
	}
	if ((size_t)(equals - text) >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, (size_t)(equals - text));
	number[equals - text] = '\0';
	if (pl_parse_u64(number, &store) < 0 || store >= n)
		return -EINVAL;
	if (one)
		stores[store].quota.rate = rate;
	return 0;
}

int pl_translate_stores(const struct pl_translate_options *o, const struct pl_translate_out *out,
	struct pl_dta_store *ret, struct pl_diag *diag)
{
	if (out->n_stores > PL_DTA_STORES_MAX) {
		pl_diag_set(diag, "translate: more than %u regions", PL_DTA_STORES_MAX);
		return -EINVAL;
	}
	for (unsigned int i = 0; i < out->n_stores; i++)
		ret[i] = (struct pl_dta_store){
			.params = out->stores[i],
			.flush_ns = o->flush_ns,
			.partial = o->partial,
			.reporters = o->sketch_reporters,
			.cache_rows = o->cache_rows,
			.merge_max = o->merge,
			.batch = o->batch,
		};
	/* First those of all stores, then of one each. */
	for (int one = 0; one < 2; one++) {
		for (size_t i = 0; i < o->n_store_rates; i++) {
			if (parse_store_rate(o->store_rates[i], one, ret, out->n_stores) == 0)
				continue;
			pl_diag_set(diag,
				"--store-rate %s: write RATE or STORE=RATE with a rate above 0 and a store from 0 to %u; leave the option out for no limit",
				o->store_rates[i], out->n_stores - 1);
			return -EINVAL;
		}
	}
	for (size_t i = 0; i < o->n_above; i++) {
		if (parse_above(o->above[i], ret, out->n_stores) < 0) {
			pl_diag_set(diag,
				"--above %s: write STORE=VALUE or STORE=VALUE@OFFSET+WIDTH with a store from 0 to %u",
				o->above[i], out->n_stores - 1);
			return -EINVAL;
		}
	}
	return 0;
}
