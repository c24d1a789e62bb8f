/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of every kind, read field by field as the encoding's document has it; protoc reads whole
 * messages in tests/interop/streams. */
#include "base/rng.h"
#include "base/test.h"
#include "record/protobuf.h"

struct reader {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t take(struct reader *r, unsigned int bytes)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->p) < bytes) {
		r->bad = true;
		return 0;
	}
	for (unsigned int i = 0; i < bytes; i++)
		value |= (uint64_t)*r->p++ << 8 * i;
	return value;
}

static uint64_t take_varint(struct reader *r)
{
	uint64_t value = 0, byte = 128;

	for (unsigned int shift = 0; byte >= 128 && shift < 64 && !r->bad; shift += 7) {
		byte = take(r, 1);
		value |= (byte & 127) << shift;
	}
	return value;
}

static uint64_t of_record(const struct pl_field *field, const uint8_t *record, unsigned int width)
{
	uint64_t value = 0;

	memcpy(&value, record + field->offset, width);
	return value;
}

static unsigned int width_of(const struct pl_field *field)
{
	return field->form == PL_FORM_U16 || field->form == PL_FORM_DROP_REASON ? 2
	       : field->form == PL_FORM_U32                                     ? 4
	       : field->form == PL_FORM_U64 || field->form == PL_FORM_S64 ||
			       field->form == PL_FORM_HEX64
		       ? 8
		       : 1;
}

static bool same_row(struct reader *r, const struct pl_flat *flat, const uint8_t *record)
{
	struct reader row;
	bool same = take_varint(r) == (1 << 3 | 2);
	uint64_t len = take_varint(r);

	if (!same || len > (size_t)(r->end - r->p))
		return false;
	row = (struct reader){ .p = r->p, .end = r->p + len };
	r->p += len;
	for (uint32_t i = 0; i < flat->n_fields && same; i++) {
		const struct pl_field *field = &flat->fields[i];
		const uint64_t tag = take_varint(&row);
		const bool is_there = field->present == 0 ||
				      (pl_flat_present(flat, record) & field->present) != 0;

		/* What is absent has the number of no field. */
		same = tag >> 3 == (is_there ? i + 1 : 2047);
		if (field->form == PL_FORM_ADDR || field->form == PL_FORM_TEXT) {
			const uint32_t behind =
				i + 1 < flat->n_fields ? field[1].offset : flat->size;
			const uint32_t n = behind - field->offset;

			same = same && (tag & 7) == 2 && take_varint(&row) == n &&
			       row.end - row.p >= n &&
			       memcmp(row.p, record + field->offset, n) == 0;
			row.p += n;
		} else if (width_of(field) == 8) {
			same = same && (tag & 7) == 1 &&
			       take(&row, 8) == of_record(field, record, 8);
		} else {
			same = same && (tag & 7) == 5 &&
			       take(&row, 4) == of_record(field, record, width_of(field));
		}
	}
	return same && row.p == row.end && !row.bad;
}

static void test_rows(enum pl_flat_kind kind)
{
	const struct pl_flat *flat = pl_flat(kind);
	const uint32_t size = pl_protobuf_row_size(kind);
	uint8_t row[PL_PROTOBUF_ROW_MAX], batch[50 * PL_PROTOBUF_ROW_MAX], back[PL_FLAT_BYTES_MAX];
	_Alignas(8) uint8_t records[50][PL_FLAT_BYTES_MAX];
	struct reader r = { .p = batch, .end = batch + (size_t)50 * size };
	struct pl_rng rng;
	bool same = true;

	pl_rng_seed(&rng, 20261125);
	pl_protobuf_template(kind, row);
	for (int i = 0; i < 50; i++) {
		for (size_t k = 0; k < sizeof(records[i]); k++)
			records[i][k] = (uint8_t)(i == 0   ? 0
						  : i == 1 ? 255
							   : pl_rng_below(&rng, 256));
		pl_protobuf_put(kind, row, records[i], batch + (size_t)i * size);
		pl_protobuf_get(kind, batch + (size_t)i * size, back);
		same = same && memcmp(back, records[i], flat->size) == 0;
	}
	ok(same, "%s: each is read back as it was", flat->name);
	for (int i = 0; i < 50; i++)
		same = same && same_row(&r, flat, records[i]);
	ok(same && r.p == r.end, "%s: 50 rows of %u bytes", flat->name, size);
}

int main(void)
{
	for (int kind = 0; kind < PL_FLAT_MAX; kind++)
		test_rows((enum pl_flat_kind)kind);
	eq(pl_protobuf_row_size(PL_FLAT_PKT64), 107);
	return pl_test_done();
}
