/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers of a structure by its list: read, added, printed by group. */
#include "base/stats.h"

#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/test.h"

struct counts {
	uint64_t a, b;
	const char *text;
	uint64_t size, hidden;
};

static const struct pl_stat rows[] = {
#define ROW(...) PL_STAT_ROW(struct counts, __VA_ARGS__)
	ROW(COUNTER, a, "a", "pathline_a", NULL, "First.")
		ROW(COUNTER, b, "in.b", "pathline_b", NULL, "Second.")
			ROW(GAUGE, size, "in.size", "pathline_size_bytes", "bytes", "Size.")
				ROW(COUNTER, hidden, NULL, NULL, NULL, "Of no page.")
};
static const struct pl_stats stats = { rows, sizeof(rows) / sizeof(rows[0]) };

static void json_is(const struct counts *c, const char *group, const char *want)
{
	struct pl_json json;
	struct pl_buf text;

	pl_buf_init(&text);
	pl_json_init(&json, &text);
	pl_json_object(&json);
	pl_stats_json(&stats, c, group, &json);
	pl_json_object_end(&json);
	streq(text.data, want, "%s", group != NULL ? group : "no group");
	pl_buf_done(&text);
}

int main(void)
{
	struct counts c = { 1, UINT64_MAX, "", 3, 4 }, more = { 10, 1, "x", 30, 40 };

	eq(pl_stat_read(&rows[1], &c), UINT64_MAX, "all bits are read");
	json_is(&c, NULL, "{\"a\":1}");
	json_is(&c, "in", "{\"b\":18446744073709551615,\"size\":3}");
	json_is(&c, "i", "{}");
	json_is(&c, "inn", "{}");
	pl_stats_add(&stats, &c, &more);
	eq(c.a, 11, "counters are added");
	eq(c.b, 0, "and wrap");
	eq(c.hidden, 44, "those without a name too");
	eq(c.size, 33, "gauges too");
	return pl_test_done();
}
