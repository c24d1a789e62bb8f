/* SPDX-License-Identifier: BSD-2-Clause */
/* The AltMark option: the words of RFC 9343's layout, and options that are none or broken. */
#include "base/test.h"
#include "wire/altmark.h"

static const struct {
	const char *what;
	uint8_t bytes[16];
	uint8_t n;
	enum pl_altmark_found found;
	struct pl_altmark is;
} rows[] = {
	{ "alone", { 0x12, 4, 0x12, 0x34, 0x58, 0 }, 6, PL_ALTMARK_FOUND,
		{ 0x12345, true, false } },
	{ "D", { 0x12, 4, 0, 0, 0x14, 0 }, 6, PL_ALTMARK_FOUND, { 1, false, true } },
	{ "reserved bits set", { 0x12, 4, 0xff, 0xff, 0xff, 0xff }, 6, PL_ALTMARK_FOUND,
		{ 0xfffff, true, true } },
	{ "behind others", { 0, 5, 2, 0, 0, 1, 0, 0x12, 4, 0, 0, 0x10, 0 }, 13, PL_ALTMARK_FOUND,
		{ 1, false, false } },
	{ "the first of two", { 0x12, 4, 0, 0, 0x10, 0, 0x12, 4, 0, 0, 0x28, 0 }, 12,
		PL_ALTMARK_FOUND, { 1, false, false } },
	{ "none", { 5, 2, 0, 0, 1, 0 }, 6, PL_ALTMARK_NONE, { 0 } },
	{ "nothing at all", { 0 }, 0, PL_ALTMARK_NONE, { 0 } },
	{ "padding only", { 0, 0, 1, 2, 0, 0 }, 6, PL_ALTMARK_NONE, { 0 } },
	{ "too short", { 0x12, 3, 0, 0, 0, 0 }, 6, PL_ALTMARK_BROKEN, { 0 } },
	{ "too long", { 0x12, 5, 0, 0, 0, 0, 0 }, 7, PL_ALTMARK_BROKEN, { 0 } },
	{ "cut in the word", { 0x12, 4, 0, 0, 0 }, 5, PL_ALTMARK_BROKEN, { 0 } },
	{ "cut behind the type", { 0x12 }, 1, PL_ALTMARK_BROKEN, { 0 } },
	{ "another one reaches beyond the header", { 5, 200, 0, 0, 1, 0 }, 6, PL_ALTMARK_BROKEN,
		{ 0 } },
};

int main(void)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_altmark a = { 0 };

		eq(pl_altmark_find(&a, pl_cursor(rows[i].bytes, rows[i].n)), rows[i].found, "%s",
			rows[i].what);
		ok(a.flow_id == rows[i].is.flow_id && a.loss == rows[i].is.loss &&
				a.delay == rows[i].is.delay,
			"%s: what it holds", rows[i].what);
	}
	return pl_test_done();
}
