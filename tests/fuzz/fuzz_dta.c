/* SPDX-License-Identifier: BSD-2-Clause */
/* A DTA datagram, behind a byte for the form its exporter is set to; and the same bytes as a NACK.
 * What is accepted lies in the datagram, and written again reads the same. */
#include "fuzz.h"
#include "wire/dta.h"

static void same(const struct pl_dta_report *a, const struct pl_dta_report *b)
{
	must(a->form == b->form && a->op == b->op && a->immediate == b->immediate);
	must(a->sequenced == b->sequenced && a->asks == b->asks && a->seq == b->seq &&
		a->store == b->store);
	must(a->copies == b->copies && a->hop == b->hop && a->path_length == b->path_length);
	must(a->increment == b->increment && a->list == b->list && a->value == b->value);
	must(a->epoch == b->epoch && a->first_column == b->first_column);
	must(a->key_bytes == b->key_bytes && a->data_bytes == b->data_bytes);
	must(a->key_bytes == 0 || memcmp(a->key, b->key, a->key_bytes) == 0);
	must(a->data_bytes == 0 || memcmp(a->data, b->data, a->data_bytes) == 0);
}

static void within(const uint8_t *p, size_t n, const uint8_t *data, size_t size)
{
	must(n == 0 || (p >= data && (size_t)(p - data) <= size && n <= size - (size_t)(p - data)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[1 << 17];
	struct pl_dta_report r, again;
	struct pl_dta_nack nack;
	enum pl_dta_form form;
	struct pl_cursor c;

	if (size == 0)
		return 0;
	form = data[0] % PL_DTA_FORM_MAX;
	data++;
	size--;
	c = pl_cursor(data, size);
	while (pl_cursor_left(&c) > 0) {
		size_t left = pl_cursor_left(&c);
		struct pl_build b = pl_build(out, sizeof(out));
		struct pl_cursor back;

		if (pl_dta_next(&c, form, &r) != PL_DTA_OK) {
			must(pl_cursor_left(&c) == 0);
			break;
		}
		must(pl_cursor_left(&c) < left);
		within(r.key, r.key_bytes, data, size);
		within(r.data, r.data_bytes, data, size);
		must(pl_dta_put(&b, &r) == 0);
		back = pl_cursor(out, b.len);
		must(pl_dta_next(&back, form, &again) == PL_DTA_OK);
		same(&r, &again);
	}
	c = pl_cursor(data, size);
	if (pl_dta_nack_read(&c, &nack) == PL_DTA_OK) {
		struct pl_build b = pl_build(out, sizeof(out));
		struct pl_dta_nack twice;

		must(pl_dta_nack_put(&b, &nack) == 0);
		c = pl_cursor(out, b.len);
		must(pl_dta_nack_read(&c, &twice) == PL_DTA_OK && twice.last == nack.last &&
			twice.tells_lost == nack.tells_lost && twice.lost == nack.lost);
	}
	return 0;
}
