/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes DTA reports of records. */
#include "export/dta_map.h"

#include <errno.h>
#include <string.h>

#define RECORD_BYTES sizeof(struct pl_path)
/* Postcard value for "no hop" (memory/postcards.h); a hop's value cannot be it. */
#define BLANK        UINT32_MAX

/* ---- checking the options ---- */

static bool has_key(const struct pl_dta_map_options *o)
{
	return o->op != PL_DTA_APPEND;
}

static int check_key(const struct pl_dta_map *m, struct pl_diag *diag)
{
	const enum pl_key_form form = m->o.key_form;

	if (!has_key(&m->o)) {
		if (m->key.n > 0)
			pl_diag_set(diag, "key does not apply to append: entries have none");
		return m->key.n > 0 ? -EINVAL : 0;
	}
	if (m->key.n == 0)
		pl_diag_set(diag, "key is missing: the fields that are the key, such as [flow]");
	else if (form > PL_KEY_HEX && !pl_pack_is_number(&m->key, 64))
		pl_diag_set(diag,
			"key_form u32, be32 and u64 are for a key of one field that is a number");
	else if (form == PL_KEY_TEXT && pl_pack_has_flags(&m->key))
		pl_diag_set(diag, "flags have no text that is a key; use key_form: hex");
	else if ((form == PL_KEY_TEXT ? pl_pack_text_max(&m->key) : pl_pack_bytes(&m->key)) >
		 PL_DTA_KEY_BYTES_MAX)
		pl_diag_set(diag, "the key may have more than %u bytes; leave out fields",
			PL_DTA_KEY_BYTES_MAX);
	else
		return 0;
	return -EINVAL;
}

static int check_value(const struct pl_dta_map *m, struct pl_diag *diag)
{
	if (m->o.op == PL_DTA_INCREMENT && m->value.n > 0 && !pl_pack_is_number(&m->value, 64))
		pl_diag_set(diag, "the value of counters is one field that is a number, or none");
	else if (m->o.op == PL_DTA_POSTCARD && m->o.record != PL_KIND_HOP)
		pl_diag_set(diag, "postcards need record: hop");
	else if (m->o.op == PL_DTA_POSTCARD && !pl_pack_is_number(&m->value, 64))
		pl_diag_set(diag, "the value of postcards is one field that is a number");
	else
		return 0;
	return -EINVAL;
}

int pl_dta_map_init(
	struct pl_dta_map *ret, const struct pl_dta_map_options *options, struct pl_diag *diag)
{
	static const char *const node[] = { "node" };
	const char *const *value = options->value;
	size_t n_value = options->n_value;
	int r;

	*ret = (struct pl_dta_map){ .o = *options };
	ret->o.key = ret->o.value = NULL;
	if (options->op == PL_DTA_POSTCARD && n_value == 0) {
		value = node;
		n_value = 1;
	}
	ret->whole = n_value == 0;
	r = pl_pack_init(&ret->key, options->record, options->key, options->n_key, diag);
	if (r == 0)
		r = pl_pack_init(&ret->value, options->record, value, n_value, diag);
	if (r == 0)
		r = check_key(ret, diag);
	return r == 0 ? check_value(ret, diag) : r;
}

uint32_t pl_dta_map_value_bytes(const struct pl_dta_map *m)
{
	if (m->o.op != PL_DTA_KEY_WRITE && m->o.op != PL_DTA_APPEND)
		return 0;
	return m->whole ? RECORD_BYTES : pl_pack_bytes(&m->value);
}

/* ---- reports ---- */

static void put_number(uint8_t *to, uint64_t v, unsigned int bytes, bool big)
{
	for (unsigned int i = 0; i < bytes; i++)
		to[i] = (uint8_t)(v >> 8 * (big ? bytes - 1 - i : i));
}

static enum pl_dta_map_answer make_key(
	struct pl_dta_map *m, const struct pl_pack_record *record, struct pl_dta_report *ret)
{
	const enum pl_key_form form = m->o.key_form;
	uint64_t number;
	size_t n;

	if (form == PL_KEY_TEXT) {
		n = pl_pack_text(&m->key, record, (char *)m->key_bytes);
		if (n == 0)
			return PL_DTA_MAP_MISSING;
	} else if (form == PL_KEY_HEX) {
		n = pl_pack_bytes(&m->key);
		if (!pl_pack_put(&m->key, record, m->o.big_endian, m->key_bytes))
			return PL_DTA_MAP_MISSING;
	} else {
		n = form == PL_KEY_U64 ? 8 : 4;
		if (!pl_pack_number(&m->key, record, &number))
			return PL_DTA_MAP_MISSING;
		if (n == 4 && number > UINT32_MAX)
			return PL_DTA_MAP_RANGE;
		put_number(m->key_bytes, number, (unsigned int)n, form == PL_KEY_BE32);
	}
	ret->key = m->key_bytes;
	ret->key_bytes = (uint8_t)n;
	return PL_DTA_MAP_MADE;
}

static enum pl_dta_map_answer make_postcard(
	struct pl_dta_map *m, const struct pl_pack_record *record, struct pl_dta_report *ret)
{
	const struct pl_hop *hop = record->record;
	uint64_t value;

	if (!pl_pack_number(&m->value, record, &value))
		return PL_DTA_MAP_MISSING;
	if (value >= BLANK || hop->index >= PL_DTA_HOPS_MAX ||
		hop->index >= record->path->hop_count)
		return PL_DTA_MAP_RANGE;
	ret->value = (uint32_t)value;
	ret->hop = (uint8_t)(hop->index + 1);
	ret->path_length = record->path->hop_count;
	return PL_DTA_MAP_MADE;
}

static enum pl_dta_map_answer make_value(
	struct pl_dta_map *m, const struct pl_pack_record *record, struct pl_dta_report *ret)
{
	if (m->o.op == PL_DTA_POSTCARD)
		return make_postcard(m, record, ret);
	if (m->o.op == PL_DTA_INCREMENT) {
		ret->increment = 1;
		return m->whole || pl_pack_number(&m->value, record, &ret->increment)
			       ? PL_DTA_MAP_MADE
			       : PL_DTA_MAP_MISSING;
	}
	ret->data = m->whole ? record->record : m->value_bytes;
	ret->data_bytes = pl_dta_map_value_bytes(m);
	return m->whole || pl_pack_put(&m->value, record, m->o.big_endian, m->value_bytes)
		       ? PL_DTA_MAP_MADE
		       : PL_DTA_MAP_MISSING;
}

enum pl_dta_map_answer pl_dta_map_report(
	struct pl_dta_map *m, const struct pl_pack_record *record, struct pl_dta_report *ret)
{
	enum pl_dta_map_answer answer = PL_DTA_MAP_MADE;

	*ret = (struct pl_dta_report){ .form = PL_DTA_PATHLINE,
		.op = m->o.op,
		.immediate = m->o.immediate,
		.store = m->o.store,
		.list = m->o.list };
	if (has_key(&m->o))
		answer = make_key(m, record, ret);
	return answer == PL_DTA_MAP_MADE ? make_value(m, record, ret) : answer;
}
