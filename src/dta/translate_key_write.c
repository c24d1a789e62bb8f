/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes writes of key-write reports: nothing is gathered. */
#include "dta/translator_state.h"

static int key_write_init(struct pl_translator *t, struct store *s, struct pl_diag *diag)
{
	(void)t;
	(void)diag;
	return pl_key_write_init(&s->key_write, &s->config.params, NULL);
}

static int key_write_check(const struct store *s, struct intake *in)
{
	const struct pl_dta_report *r = in->report;

	if (r->copies > s->key_write.copies)
		return PL_REFUSED_COUNT_OF_COPIES;
	if (r->data_bytes != s->key_write.value_bytes)
		return PL_REFUSED_VALUE_SIZE;
	if (!pl_filter_passes(&s->config.filter, r->data))
		return PL_REFUSED_FILTERED;
	in->key = pl_key_carried(&s->key_write.hashing, r->key, r->key_bytes);
	in->spread = in->key.h;
	return TAKEN;
}

static bool key_write_take(struct pl_translator *t, struct store *s, const struct intake *in)
{
	const struct pl_key_write *kw = &s->key_write;
	unsigned int copies = in->report->copies != 0 ? in->report->copies : kw->copies;
	int collector = pl_translator_choose(t, s, in->spread);
	uint8_t *image = pl_translator_room(t, kw->slot_bytes);
	unsigned int copy = 0;
	struct pl_op *op;

	pl_key_write_image(kw, in->key, in->report->data, image);
	do {
		op = pl_translator_write(t, s, collector, pl_key_write_offset(kw, in->key, copy),
			image, kw->write_bytes);
		if (t->sink.key != NULL)
			t->sink.key(t->sink.arg, s->number, op->offset / kw->slot_bytes,
				in->report->key, in->report->key_bytes);
	} while (++copy < copies);
	if (in->report->immediate)
		pl_translator_wake(t, op, pl_op_imm(PL_KEY_WRITE, op->offset / kw->slot_bytes));
	return true;
}

const struct primitive pl_translate_key_write = {
	.init = key_write_init,
	.check = key_write_check,
	.take = key_write_take,
};
