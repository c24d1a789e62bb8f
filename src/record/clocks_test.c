/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks of records are told once, when there are several. */
#include "record/clocks.h"

#include <string.h>

#include "base/test.h"

static void test_told_once(void)
{
	static const struct {
		uint32_t kinds;
		bool tells;
		const char *what;
	} steps[] = {
		{ 0, false, "no record" },
		{ 1u << PL_STAMP_NONE, false, "one of which nobody told" },
		{ 1u << PL_STAMP_KERNEL, false, "the first clock" },
		{ 1u << PL_STAMP_KERNEL, false, "the same" },
		{ 1u << PL_STAMP_NONE, false, "again one of which nobody told" },
		{ 1u << PL_STAMP_NIC, true, "another one" },
		{ 1u << PL_STAMP_NIC, false, "which was told" },
		{ 1u << PL_STAMP_TAI, false, "a third one is not told" },
	};
	struct pl_clocks c = { .kinds = 0 };
	struct pl_buf text;
	struct pl_json json;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		eq(pl_clocks_note(&c, steps[i].kinds), steps[i].tells, "%s", steps[i].what);
	pl_buf_init(&text);
	pl_clocks_text(&c, &text);
	pl_buf_chr(&text, '\0');
	ok(strstr(text.data, "nic") != NULL && strstr(text.data, "kernel") != NULL &&
			strstr(text.data, "tai") != NULL && strstr(text.data, "none") == NULL,
		"the text names them: %s", text.data);
	pl_buf_reset(&text);
	pl_json_init(&json, &text);
	pl_json_object(&json);
	pl_clocks_json(&c, &json);
	pl_json_object_end(&json);
	pl_buf_chr(&text, '\0');
	ok(strncmp(text.data, "{\"clocks\":[\"", 12) == 0, "as JSON: %s", text.data);
	pl_buf_done(&text);
}

static void test_mixed(void)
{
	struct pl_clocks c = { .kinds = 0 };

	ok(pl_clocks_note(&c, 1u << PL_STAMP_MIXED),
		"a stream of several clocks is told by itself");
}

int main(void)
{
	test_told_once();
	test_mixed();
	return pl_test_done();
}
