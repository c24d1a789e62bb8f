/* SPDX-License-Identifier: BSD-2-Clause */
/* A domain reads a full region as fast as it can, and to its end before it stops. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "marks/marks.h"

#define PERIOD UINT64_C(60000000000) /* long enough that nothing is late on a slow machine */
#define SLOTS  UINT64_C(32768)
#define MANY   20000u

static uint32_t put_event(void *arg, const struct pl_event *events, uint32_t n)
{
	(void)arg;
	(void)events;
	return n;
}

static void give_blocks(void *arg, const struct pl_mark128 *records, uint32_t n)
{
	(void)arg;
	(void)records;
	(void)n;
}

static void give(void *arg, const struct pl_seg192 *records, uint32_t n)
{
	(void)arg;
	(void)records;
	(void)n;
}

static char path[64];

static struct pl_region *make_region(struct pl_append *ret)
{
	const struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 1,
		.content = PL_CONTENT_FLAT + PL_FLAT_MARK128,
		.append = { .slots = SLOTS, .lists = 1, .entry_bytes = 128, .batch_max = 256 } };
	struct pl_region *region = NULL;

	snprintf(path, sizeof(path), "region:/tmp/marks_test.%d.plr", (int)getpid());
	ok(pl_region_create(&region, strchr(path, ':') + 1, &params, NULL, NULL) == 0);
	ok(pl_append_init(ret, &params, pl_region_store(region, pl_region_epoch(region))) == 0);
	return region;
}

static void append(const struct pl_append *a, uint64_t block)
{
	for (uint32_t i = 0; i < MANY; i++) {
		const struct pl_mark128 r = { .block = block,
			.period_ns = PERIOD,
			.method = PL_MARK_STEP,
			.mark_flags = PL_MARK_IS_SYNCED,
			.point = 1,
			.sport = (uint16_t)i,
			.proto = 17,
			.packets = 1 };

		pl_append_put(a, 0, &r, 1);
	}
}

/* The key zoom adds a segment, and a part without a way is refused. */
static void test_zoom(void)
{
	char *points[] = { (char *)"a=1", (char *)"b=2", (char *)"c=3", (char *)"d=4" },
	     *zoom[] = { (char *)"b>d" }, *sources[] = { (char *)"udp://:0" };
	struct pl_config_marks m = { .name = (char *)"m",
		.sources = { sources, 1 },
		.points = { points, 4 },
		.zoom = { zoom, 1 },
		.period_ns = PERIOD,
		.end_after = 1,
		.blocks = 64 };
	const struct pl_config config = { .marks = { &m, 1 } };
	struct pl_marks marks = { .put = put_event };
	struct pl_diag diag = { .text = "" };
	const struct pl_mark_segment_state *s;
	uint32_t n = 0;

	ok(pl_marks_init(&marks, &config, &diag) == 0);
	s = pl_mark_domain_segments(marks.items[0]->domain, &n);
	ok(n == 5 && strcmp(s[4].name, "b>d") == 0);
	pl_marks_close(&marks);
	zoom[0] = (char *)"d>b";
	ok(pl_marks_init(&marks, &config, &diag) < 0);
	pl_marks_close(&marks);
	streq(diag.text, "zoom \"d>b\": no way leads from there");
}

/* A point whose records all come two periods late is warned of by its name. */
static void test_behind(void)
{
	static const struct pl_addr nobody;
	char *points[] = { (char *)"a=1", (char *)"b=2" }, *sources[] = { (char *)"udp://:0" };
	struct pl_config_marks m = { .name = (char *)"m",
		.sources = { sources, 1 },
		.points = { points, 2 },
		.period_ns = PERIOD,
		.wait_ns = 4 * PERIOD,
		.end_after = 1,
		.blocks = 64 };
	const struct pl_config config = { .marks = { &m, 1 } };
	struct pl_marks marks = { .put = put_event };
	const uint64_t first = pl_clock_real_ns() / PERIOD - 20;
	struct pl_conditions list;

	ok(pl_marks_init(&marks, &config, NULL) == 0);
	marks.items[0]->give = give;
	for (uint64_t k = first; k < first + 12; k++) {
		for (uint32_t p = 1; p <= 2; p++) {
			const struct pl_mark128 r = { .block = k,
				.period_ns = PERIOD,
				.method = PL_MARK_STEP,
				.point = p,
				.proto = 17 };

			pl_mark_domain_take(marks.items[0]->domain, &nobody, &r, 1, false,
				pl_mark_read_at(PL_MARK_STEP, k, PERIOD) + (p - 1) * 2 * PERIOD);
		}
	}
	(void)pl_marks_service.turn(&marks, NULL, pl_clock_mono_ns(), NULL);
	pl_marks_service.conditions(&marks, &list);
	ok(list.n == 1 && !list.fault);
	streq(list.items[0].name, "point_behind");
	ok(strstr(list.items[0].text, "marks m: records of point b come 120.0 s") != NULL);
	pl_marks_close(&marks);
}

/* The bound of memory has what the client of a topic keeps. */
static void test_memory(void)
{
	char *points[] = { (char *)"a=1", (char *)"b=2" }, *sources[] = { (char *)"udp://:0" };
	struct pl_config_marks m = { .name = (char *)"m",
		.sources = { sources, 1 },
		.points = { points, 2 },
		.period_ns = PERIOD,
		.blocks = 64 };
	const struct pl_config config = { .marks = { &m, 1 } };
	const uint64_t without = pl_marks_memory(&config);

	sources[0] = (char *)"kafka://127.0.0.1/t";
	ok(pl_marks_memory(&config) == without + (UINT64_C(256) << 20));
	sources[0] = (char *)"kafka://127.0.0.1/t?queued.max.messages.kbytes=1024";
	ok(pl_marks_memory(&config) == without + (UINT64_C(1) << 20));
}

int main(void)
{
	char *points[] = { (char *)"a=1", (char *)"b=2" }, *sources[] = { path };
	struct pl_config_marks m = { .name = (char *)"m",
		.sources = { sources, 1 },
		.points = { points, 2 },
		.period_ns = PERIOD,
		.wait_ns = PERIOD,
		.loss_above = 1,
		.end_after = 1,
		.blocks = 65536 };
	const struct pl_config config = { .marks = { &m, 1 } };
	struct pl_marks marks = { .put = put_event };
	const uint64_t block = pl_clock_real_ns() / PERIOD;
	struct pl_append a;
	struct pl_region *region = make_region(&a);
	unsigned int turns = 0;
	uint64_t now_ns;

	test_zoom();
	test_behind();
	test_memory();
	ok(pl_marks_init(&marks, &config, NULL) == 0);
	marks.items[0]->give = give;
	marks.items[0]->give_blocks = give_blocks;
	ok(pl_marks_service.open(&marks, NULL) == 0);
	append(&a, block);
	now_ns = pl_clock_mono_ns();
	/* The time stays the same. */
	while (pl_marks_service.turn(&marks, NULL, now_ns, NULL) == PL_TURN_BUSY && turns < 100)
		turns++;
	ok(marks.items[0]->region_stats.records == MANY);
	ok(turns > 1 && turns < 10);
	append(&a, block + 1);
	pl_marks_finish(marks.items[0]);
	ok(marks.items[0]->region_stats.records == 2 * MANY);
	ok(marks.items[0]->region_stats.overrun == 0);
	ok(pl_mark_domain_correlated(marks.items[0]->domain)->taken == 2 * MANY);
	pl_marks_close(&marks);
	ok(pl_region_close(region) == 0);
	unlink(strchr(path, ':') + 1);
	return pl_test_done();
}
