/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of Protocol Buffers: places of tags and values are constants, counted from fields.def. */
#include "record/protobuf.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#define WIRE_FIXED64       1
#define WIRE_BYTES         2
#define WIRE_FIXED32       5

/* Bytes of a field's tag, and of its value with the length of bytes in front. */
#define TAG_BYTES(number)  ((number) < 16 ? 1 : 2)
#define VALUE_BYTES(type)  (sizeof(type) >= 16 ? sizeof(type) + 1 : sizeof(type) == 8 ? 8 : 4)
#define HEAD_BYTES(length) ((length) < 128 ? 2 : 3)
#define PLACE(kind, id, type)                                                                      \
	kind##_##id##_TAG,                                                                         \
		kind##_##id##_VALUE = kind##_##id##_TAG + TAG_BYTES(kind##_##id##_NUMBER),         \
		kind##_##id##_END = kind##_##id##_VALUE + (int)VALUE_BYTES(type) - 1,

/* Numbers of the fields, from 1 on. */
enum {
#define PL_FLAT_BEGIN(KIND, ...)                        KIND##_0 = 0,
#define PL_FLAT_FIELD(KIND, kind, has, offset, id, ...) KIND##_##id##_NUMBER,
#include "record/flats.def"
};

/* Places of their tags and values, from 0 on. */
enum {
#define PL_FLAT_BEGIN(KIND, ...)                              KIND##_BEFORE = -1,
#define PL_FLAT_FIELD(KIND, kind, has, offset, id, type, ...) PLACE(KIND, id, type)
#define PL_FLAT_END(KIND, kind)                               KIND##_LENGTH,
#include "record/flats.def"
};

#define PL_FLAT_BEGIN(KIND, ...) _Static_assert(KIND##_LENGTH + 3 <= PL_PROTOBUF_ROW_MAX, "");
#include "record/flats.def"
_Static_assert(PKT64_LENGTH == 105, "");

static const uint32_t lengths[PL_FLAT_MAX] = {
#define PL_FLAT_BEGIN(KIND, ...) [PL_FLAT_##KIND] = KIND##_LENGTH,
#include "record/flats.def"
};

/* Field number of an absent value: its tag has as many bytes as that of any field from the 16th
 * on. */
#define ABSENT_NUMBER 2047u
#define PL_FLAT_FIELD(KIND, kind, has, offset, id, ...)                                            \
	_Static_assert((has) == 0 || TAG_BYTES(KIND##_##id##_NUMBER) == 2, "");
#include "record/flats.def"

/* ---- rows ---- */

/* Numbers of 8 and 16 bits are fixed32 as well. */
static uint32_t width_of(const struct pl_field *field)
{
	const uint32_t width = pl_field_width(field);

	return width < 4 ? 4 : width;
}

uint32_t pl_protobuf_row_size(enum pl_flat_kind kind)
{
	return HEAD_BYTES(lengths[kind]) + lengths[kind];
}

static uint8_t *put_varint(uint8_t *to, uint32_t value)
{
	for (; value >= 128; value >>= 7)
		*to++ = (uint8_t)(value | 128);
	*to++ = (uint8_t)value;
	return to;
}

void pl_protobuf_template(enum pl_flat_kind kind, uint8_t to[PL_PROTOBUF_ROW_MAX])
{
	const struct pl_flat *flat = pl_flat(kind);
	uint8_t *at = to;

	memset(to, 0, PL_PROTOBUF_ROW_MAX);
	at = put_varint(at, 1 << 3 | WIRE_BYTES);
	at = put_varint(at, lengths[kind]);
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		const uint32_t width = width_of(&flat->fields[i]);

		at = put_varint(at, (i + 1) << 3 | (width >= 16         ? WIRE_BYTES
							   : width == 8 ? WIRE_FIXED64
									: WIRE_FIXED32));
		if (width >= 16)
			at = put_varint(at, width);
		at += width;
	}
	assert((uint32_t)(at - to) == pl_protobuf_row_size(kind));
}

static inline void put_value(uint8_t *to, const void *value, size_t width)
{
	uint32_t number = 0;

	if (width >= 16) {
		memcpy(to + 1, value, width);
	} else if (width == 8) {
		memcpy(to, value, 8);
	} else {
		memcpy(&number, value, width);
		memcpy(to, &number, 4);
	}
}

/* put_pkt64, and so on. */
#define PL_FLAT_BEGIN(KIND, kind, ...)                                                             \
	static void put_##kind(const struct pl_##kind *r, uint8_t *to)                             \
	{
#define PL_FLAT_FIELD(KIND, kind, has, offset, id, ...)                                            \
	put_value(to + KIND##_##id##_VALUE, &r->id, sizeof(r->id));
#define PL_FLAT_END(KIND, kind) }
#include "record/flats.def"

static void hide(uint8_t *tag, size_t width)
{
	(void)put_varint(tag, ABSENT_NUMBER << 3 | (width == 8 ? WIRE_FIXED64 : WIRE_FIXED32));
}

static void hide_absent(const struct pl_seg192 *r, uint8_t *to)
{
#define PL_SEG_FIELD(off, id, ...)                                                                 \
	if (PL_SEG_HAS_##id != 0 && (r->has & PL_SEG_HAS_##id) == 0)                               \
		hide(to + SEG192_##id##_TAG, sizeof(r->id));
#include "record/fields.def"
}

void pl_protobuf_put(enum pl_flat_kind kind, const uint8_t *row, const void *record, uint8_t *to)
{
	uint8_t *values = to + HEAD_BYTES(lengths[kind]);

	memcpy(to, row, pl_protobuf_row_size(kind));
	switch (kind) {
#define PL_FLAT_BEGIN(KIND, kind, ...)                                                             \
	case PL_FLAT_##KIND:                                                                       \
		put_##kind(record, values);                                                        \
		break;
#include "record/flats.def"
	case PL_FLAT_MAX:
		break;
	}
	if (kind == PL_FLAT_SEG192)
		hide_absent(record, values);
}

void pl_protobuf_get(enum pl_flat_kind kind, const uint8_t *row, void *record)
{
	const struct pl_flat *flat = pl_flat(kind);
	const uint8_t *at = row + HEAD_BYTES(lengths[kind]);

	memset(record, 0, flat->size);
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		const struct pl_field *field = &flat->fields[i];
		const uint32_t width = pl_field_width(field);

		at += TAG_BYTES(i + 1) + (width >= 16); /* the length of bytes */
		memcpy((uint8_t *)record + field->offset, at, width);
		at += width_of(field);
	}
}

/* ---- the schema ---- */

static void put_message_name(struct pl_buf *out, const char *name)
{
	pl_buf_chr(out, (char)toupper((unsigned char)name[0]));
	pl_buf_str(out, name + 1);
	pl_buf_str(out, "Batch");
}

void pl_protobuf_schema(struct pl_buf *out, enum pl_flat_kind kind)
{
	const struct pl_flat *flat = pl_flat(kind);

	pl_buf_printf(out,
		"// %s/%d as Protocol Buffers: each row has %u bytes.\nsyntax = \"proto3\";\n\n"
		"package pathline;\n\noption java_package = \"pathline\";\n"
		"option java_multiple_files = true;\n\nmessage ",
		flat->name, PL_FLAT_VERSION, pl_protobuf_row_size(kind));
	put_message_name(out, flat->name);
	pl_buf_str(out, " {\n  message Row {\n");
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		const struct pl_field *field = &flat->fields[i];
		const uint32_t width = width_of(field);

		pl_buf_printf(out, "    // %s\n    %s%s %s = %u;\n", field->help,
			field->present != 0 ? "optional " : "",
			width >= 16                  ? "bytes"
			: field->form == PL_FORM_S64 ? "sfixed64"
			: width == 8                 ? "fixed64"
						     : "fixed32",
			field->name, i + 1);
	}
	if (flat->present_at != 0)
		pl_buf_printf(out, "    reserved %u;\n", ABSENT_NUMBER);
	pl_buf_str(out, "  }\n  repeated Row row = 1;\n}\n");
}
