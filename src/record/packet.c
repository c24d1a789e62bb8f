/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of records of packets and flows as tables. */
#include "record/packet.h"

#include <assert.h>

const char *const pl_mark_methods[] = {
#define PL_MARK_METHOD(number, id, name, help) [(number)-1] = (name),
#include "record/fields.def"
	[PL_MARK_METHOD_MAX - 1] = NULL,
};

#define PL_FLAT_BEGIN(KIND, kind, ...) static const struct pl_field kind##_fields[] = {
#define PL_FLAT_FIELD(KIND, kind, has, at, id, type, f, n, u, h)                                   \
	{ .name = (n),                                                                             \
		.unit = (u),                                                                       \
		.help = (h),                                                                       \
		.offset = (at),                                                                    \
		.form = PL_FORM_##f,                                                               \
		.text_bytes = PL_FORM_##f == PL_FORM_TEXT ? sizeof(type) : 0,                      \
		.present = (has) },
/* clang-format off */
#define PL_FLAT_END(KIND, kind) };
/* clang-format on */
#include "record/flats.def"

static const struct pl_flat kinds[PL_FLAT_MAX] = {
#define PL_FLAT_BEGIN(KIND, kind, bytes, stream, present_at, help)                                 \
	[PL_FLAT_##KIND] = { #kind, stream, help, bytes,                                           \
		sizeof(kind##_fields) / sizeof(kind##_fields[0]), kind##_fields, present_at },
#include "record/flats.def"
};

const struct pl_flat *pl_flat(enum pl_flat_kind kind)
{
	assert((unsigned int)kind < PL_FLAT_MAX);
	return &kinds[kind];
}
