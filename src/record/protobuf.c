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

#define PL_FIELD_NUMBER(kind, id) kind##_##id##_NUMBER,

enum {
	PKT64_0,
#define PL_PKT_FIELD(off, id, ...) PL_FIELD_NUMBER(PKT64, id)
#include "record/fields.def"
#undef PL_PKT_FIELD
};
enum {
#define PL_PKT_FIELD(off, id, type, ...) PLACE(PKT64, id, type)
#include "record/fields.def"
#undef PL_PKT_FIELD
	PKT64_LENGTH,
};
enum {
	PKT96_0,
#define PL_PKT_FIELD(off, id, ...)      PL_FIELD_NUMBER(PKT96, id)
#define PL_PKT_MORE_FIELD(off, id, ...) PL_FIELD_NUMBER(PKT96, id)
#include "record/fields.def"
#undef PL_PKT_FIELD
#undef PL_PKT_MORE_FIELD
};
enum {
#define PL_PKT_FIELD(off, id, type, ...)      PLACE(PKT96, id, type)
#define PL_PKT_MORE_FIELD(off, id, type, ...) PLACE(PKT96, id, type)
#include "record/fields.def"
#undef PL_PKT_FIELD
#undef PL_PKT_MORE_FIELD
	PKT96_LENGTH,
};
enum {
	DNS64_0,
#define PL_DNS_FIELD(off, id, ...) PL_FIELD_NUMBER(DNS64, id)
#include "record/fields.def"
#undef PL_DNS_FIELD
};
enum {
#define PL_DNS_FIELD(off, id, type, ...) PLACE(DNS64, id, type)
#include "record/fields.def"
#undef PL_DNS_FIELD
	DNS64_LENGTH,
};
enum {
	FLOW128_0,
#define PL_FLOW_FIELD(off, id, ...) PL_FIELD_NUMBER(FLOW128, id)
#include "record/fields.def"
#undef PL_FLOW_FIELD
};
enum {
#define PL_FLOW_FIELD(off, id, type, ...) PLACE(FLOW128, id, type)
#include "record/fields.def"
#undef PL_FLOW_FIELD
	FLOW128_LENGTH,
};

enum {
	MARK128_0,
#define PL_MARK_FIELD(off, id, ...) PL_FIELD_NUMBER(MARK128, id)
#include "record/fields.def"
#undef PL_MARK_FIELD
};
enum {
#define PL_MARK_FIELD(off, id, type, ...) PLACE(MARK128, id, type)
#include "record/fields.def"
#undef PL_MARK_FIELD
	MARK128_LENGTH,
};

enum {
	SEG192_0,
#define PL_SEG_FIELD(off, id, ...) PL_FIELD_NUMBER(SEG192, id)
#include "record/fields.def"
#undef PL_SEG_FIELD
};
enum {
#define PL_SEG_FIELD(off, id, type, ...) PLACE(SEG192, id, type)
#include "record/fields.def"
#undef PL_SEG_FIELD
	SEG192_LENGTH,
};

/* Field number of an absent value: its tag has as many bytes as that of any field from the 16th
 * on. */
#define ABSENT_NUMBER 2047u
#define PL_SEG_FIELD(off, id, ...)                                                                 \
	_Static_assert(PL_SEG_HAS_##id == 0 || TAG_BYTES(SEG192_##id##_NUMBER) == 2, "");
#include "record/fields.def"
#undef PL_SEG_FIELD

enum {
	LINK128_0,
#define PL_LINK_FIELD(off, id, ...) PL_FIELD_NUMBER(LINK128, id)
#include "record/fields.def"
#undef PL_LINK_FIELD
};
enum {
#define PL_LINK_FIELD(off, id, type, ...) PLACE(LINK128, id, type)
#include "record/fields.def"
#undef PL_LINK_FIELD
	LINK128_LENGTH,
};

enum {
	SENT128_0,
#define PL_SENT_FIELD(off, id, ...) PL_FIELD_NUMBER(SENT128, id)
#include "record/fields.def"
#undef PL_SENT_FIELD
};
enum {
#define PL_SENT_FIELD(off, id, type, ...) PLACE(SENT128, id, type)
#include "record/fields.def"
#undef PL_SENT_FIELD
	SENT128_LENGTH,
};

enum {
	DROP168_0,
#define PL_PKT_FIELD(off, id, ...)      PL_FIELD_NUMBER(DROP168, id)
#define PL_PKT_MORE_FIELD(off, id, ...) PL_FIELD_NUMBER(DROP168, id)
#define PL_DROP_FIELD(off, id, ...)     PL_FIELD_NUMBER(DROP168, id)
#include "record/fields.def"
#undef PL_PKT_FIELD
#undef PL_PKT_MORE_FIELD
#undef PL_DROP_FIELD
};
enum {
#define PL_PKT_FIELD(off, id, type, ...)      PLACE(DROP168, id, type)
#define PL_PKT_MORE_FIELD(off, id, type, ...) PLACE(DROP168, id, type)
#define PL_DROP_FIELD(off, id, type, ...)     PLACE(DROP168, id, type)
#include "record/fields.def"
#undef PL_PKT_FIELD
#undef PL_PKT_MORE_FIELD
#undef PL_DROP_FIELD
	DROP168_LENGTH,
};

enum {
	FLOW288_0,
#define PL_FLOW_FIELD(off, id, ...)      PL_FIELD_NUMBER(FLOW288, id)
#define PL_FLOW_MORE_FIELD(off, id, ...) PL_FIELD_NUMBER(FLOW288, id)
#include "record/fields.def"
#undef PL_FLOW_FIELD
#undef PL_FLOW_MORE_FIELD
};
enum {
#define PL_FLOW_FIELD(off, id, type, ...)      PLACE(FLOW288, id, type)
#define PL_FLOW_MORE_FIELD(off, id, type, ...) PLACE(FLOW288, id, type)
#include "record/fields.def"
#undef PL_FLOW_FIELD
#undef PL_FLOW_MORE_FIELD
	FLOW288_LENGTH,
};

static const uint32_t lengths[PL_FLAT_MAX] = { [PL_FLAT_PKT64] = PKT64_LENGTH,
	[PL_FLAT_PKT96] = PKT96_LENGTH,
	[PL_FLAT_DNS64] = DNS64_LENGTH,
	[PL_FLAT_FLOW128] = FLOW128_LENGTH,
	[PL_FLAT_MARK128] = MARK128_LENGTH,
	[PL_FLAT_SEG192] = SEG192_LENGTH,
	[PL_FLAT_LINK128] = LINK128_LENGTH,
	[PL_FLAT_SENT128] = SENT128_LENGTH,
	[PL_FLAT_DROP168] = DROP168_LENGTH,
	[PL_FLAT_FLOW288] = FLOW288_LENGTH };

_Static_assert(PKT64_LENGTH == 105 && FLOW128_LENGTH + 3 <= PL_PROTOBUF_ROW_MAX &&
		       MARK128_LENGTH + 3 <= PL_PROTOBUF_ROW_MAX &&
		       SEG192_LENGTH + 3 <= PL_PROTOBUF_ROW_MAX &&
		       LINK128_LENGTH + 3 <= PL_PROTOBUF_ROW_MAX &&
		       SENT128_LENGTH + 3 <= PL_PROTOBUF_ROW_MAX &&
		       DROP168_LENGTH + 3 <= PL_PROTOBUF_ROW_MAX &&
		       FLOW288_LENGTH + 3 <= PL_PROTOBUF_ROW_MAX,
	"");

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

#define PUT(kind, id) put_value(to + kind##_##id##_VALUE, &r->id, sizeof(r->id));

static void put_pkt64(const struct pl_pkt64 *r, uint8_t *to)
{
#define PL_PKT_FIELD(off, id, ...) PUT(PKT64, id)
#include "record/fields.def"
#undef PL_PKT_FIELD
}

static void put_pkt96(const struct pl_pkt96 *r, uint8_t *to)
{
#define PL_PKT_FIELD(off, id, ...)      PUT(PKT96, id)
#define PL_PKT_MORE_FIELD(off, id, ...) PUT(PKT96, id)
#include "record/fields.def"
#undef PL_PKT_FIELD
#undef PL_PKT_MORE_FIELD
}

static void put_dns64(const struct pl_dns64 *r, uint8_t *to)
{
#define PL_DNS_FIELD(off, id, ...) PUT(DNS64, id)
#include "record/fields.def"
#undef PL_DNS_FIELD
}

static void put_flow128(const struct pl_flow128 *r, uint8_t *to)
{
#define PL_FLOW_FIELD(off, id, ...) PUT(FLOW128, id)
#include "record/fields.def"
#undef PL_FLOW_FIELD
}

static void put_flow288(const struct pl_flow288 *r, uint8_t *to)
{
#define PL_FLOW_FIELD(off, id, ...)      PUT(FLOW288, id)
#define PL_FLOW_MORE_FIELD(off, id, ...) PUT(FLOW288, id)
#include "record/fields.def"
#undef PL_FLOW_FIELD
#undef PL_FLOW_MORE_FIELD
}

static void put_mark128(const struct pl_mark128 *r, uint8_t *to)
{
#define PL_MARK_FIELD(off, id, ...) PUT(MARK128, id)
#include "record/fields.def"
#undef PL_MARK_FIELD
}

static void hide(uint8_t *tag, size_t width)
{
	(void)put_varint(tag, ABSENT_NUMBER << 3 | (width == 8 ? WIRE_FIXED64 : WIRE_FIXED32));
}

static void put_seg192(const struct pl_seg192 *r, uint8_t *to)
{
#define PL_SEG_FIELD(off, id, ...) PUT(SEG192, id)
#include "record/fields.def"
#undef PL_SEG_FIELD
#define PL_SEG_FIELD(off, id, ...)                                                                 \
	if (PL_SEG_HAS_##id != 0 && (r->has & PL_SEG_HAS_##id) == 0)                               \
		hide(to + SEG192_##id##_TAG, sizeof(r->id));
#include "record/fields.def"
#undef PL_SEG_FIELD
}

static void put_link128(const struct pl_link128 *r, uint8_t *to)
{
#define PL_LINK_FIELD(off, id, ...) PUT(LINK128, id)
#include "record/fields.def"
#undef PL_LINK_FIELD
}

static void put_sent128(const struct pl_sent128 *r, uint8_t *to)
{
#define PL_SENT_FIELD(off, id, ...) PUT(SENT128, id)
#include "record/fields.def"
#undef PL_SENT_FIELD
}

static void put_drop168(const struct pl_drop168 *r, uint8_t *to)
{
#define PL_PKT_FIELD(off, id, ...)      PUT(DROP168, id)
#define PL_PKT_MORE_FIELD(off, id, ...) PUT(DROP168, id)
#define PL_DROP_FIELD(off, id, ...)     PUT(DROP168, id)
#include "record/fields.def"
#undef PL_PKT_FIELD
#undef PL_PKT_MORE_FIELD
#undef PL_DROP_FIELD
}

void pl_protobuf_put(enum pl_flat_kind kind, const uint8_t *row, const void *record, uint8_t *to)
{
	uint8_t *values = to + HEAD_BYTES(lengths[kind]);

	memcpy(to, row, pl_protobuf_row_size(kind));
	switch (kind) {
	case PL_FLAT_PKT64:
		put_pkt64(record, values);
		break;
	case PL_FLAT_PKT96:
		put_pkt96(record, values);
		break;
	case PL_FLAT_DNS64:
		put_dns64(record, values);
		break;
	case PL_FLAT_FLOW128:
		put_flow128(record, values);
		break;
	case PL_FLAT_MARK128:
		put_mark128(record, values);
		break;
	case PL_FLAT_SEG192:
		put_seg192(record, values);
		break;
	case PL_FLAT_LINK128:
		put_link128(record, values);
		break;
	case PL_FLAT_SENT128:
		put_sent128(record, values);
		break;
	case PL_FLAT_DROP168:
		put_drop168(record, values);
		break;
	case PL_FLAT_FLOW288:
		put_flow288(record, values);
		break;
	case PL_FLAT_MAX:
		break;
	}
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
