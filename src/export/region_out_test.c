/* SPDX-License-Identifier: BSD-2-Clause */
/* Records into regions: accounts, and reports about files that are moved away or cut while open. */
#include "export/region_out.h"

#include <errno.h>
#include <unistd.h>

#include "base/test.h"

static char folder[80], path[112];

static const char *file(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const struct pl_history_options sizes = { .slots = { 256, 256, 1024, 256, 256, 64 } };

static struct pl_export *open_out(void)
{
	struct pl_region_out_options options = { .folder = folder, .history = sizes };
	struct pl_diag diag = { .text = "" };
	struct pl_export *e;

	if (pl_region_out_open(&e, &options, &diag) < 0) {
		printf("# %s\n", diag.text);
		abort();
	}
	return e;
}

static void write_some(struct pl_export *e, uint32_t n)
{
	static uint64_t reports;
	struct pl_record_batch b;
	struct pl_event event = { .event = PL_EVENT_LOOP, .record_version = 1 };

	if (pl_record_batch_init(&b, 64, 256) < 0)
		abort();
	for (uint32_t i = 0; i < n; i++) {
		b.paths[i] = (struct pl_path){
			.hop_count = 2, .report_id = reports + i, .record_version = 1
		};
		b.first_hop[i] = 2 * i;
		for (uint32_t k = 0; k < 2; k++)
			b.hops[2 * i + k] = (struct pl_hop){ .report_id = reports + i, .node = k };
		b.n_hops += 2;
	}
	b.n_paths = n;
	reports += n;
	pl_export_write_paths(e, &b, 0);
	pl_export_write_events(e, &event, 1, 0);
	pl_record_batch_done(&b);
}

static uint64_t count(enum pl_history_store store)
{
	static struct pl_history_record record;
	struct pl_history_reader r;
	struct pl_history *h;
	uint64_t n = 0;

	if (pl_history_open(&h, folder, NULL) < 0 || pl_history_reader_init(&r, h, store, 0, 0) < 0)
		abort();
	while (pl_history_next(&r, &record))
		n += record.kind != PL_KIND_PATH || record.n_hops == 2;
	pl_history_close(h);
	return n;
}

static uint64_t dropped(const struct pl_export *e)
{
	return pl_counter_read(&e->stats.dropped[PL_EXPORT_IO]);
}

static void clean_up(void)
{
	static const char *const names[] = { "events", "paths", "hops", "flows", "queues",
		"drops" };
	char name[32];

	for (size_t i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "%s.region", names[i]);
		unlink(file(name));
		snprintf(name, sizeof(name), "%s.old", names[i]);
		unlink(file(name));
	}
	rmdir(folder);
}

static void accounts(void)
{
	struct pl_export *e = open_out();

	write_some(e, 10);
	write_some(e, 64);
	pl_export_flush(e, 0, true);
	eq(pl_counter_read(&e->stats.accepted), 76);
	eq(pl_counter_read(&e->stats.delivered), 76, "in the regions is delivered");
	eq(pl_counter_read(&e->stats.bytes), (3 * 74 + 2) * 128);
	eq(atomic_load(&e->stats.last_error), 0);
	eq(count(PL_HISTORY_PATHS), 74, "paths with their hops, while it is open");
	pl_export_close(e);
	e = open_out();
	write_some(e, 1);
	pl_export_close(e);
	eq(count(PL_HISTORY_PATHS), 75, "and after another run");
	eq(count(PL_HISTORY_EVENTS), 3);
	clean_up();
}

static void moved_away(void)
{
	struct pl_export *e = open_out();
	struct pl_diag diag = { .text = "" };
	char from[112];

	write_some(e, 5);
	eq(pl_export_reopen(e, 0, &diag), 0, "nothing has changed");
	eq(count(PL_HISTORY_PATHS), 5);
	snprintf(from, sizeof(from), "%s", file("paths.region"));
	eq(rename(from, file("paths.old")), 0);
	write_some(e, 5);
	eq(pl_export_reopen(e, 0, &diag), 0, "a list moved away is begun anew %s", diag.text);
	write_some(e, 3);
	eq(count(PL_HISTORY_PATHS), 3, "with what comes from then on");
	eq(count(PL_HISTORY_EVENTS), 3, "the others go on");
	eq(rename(file("paths.old"), from), 0);
	eq(count(PL_HISTORY_PATHS), 10, "the old one has what came before");
	eq(dropped(e), 0);
	pl_export_close(e);
	clean_up();
}

static void cut(void)
{
	struct pl_export *e = open_out();
	struct pl_export_words words;
	struct pl_diag diag = { .text = "" };

	eq(pl_region_guard(), 0);
	write_some(e, 5);
	eq(truncate(file("hops.region"), 4096), 0);
	write_some(e, 5);
	pl_export_flush(e, 0, false);
	write_some(e, 5);
	eq(dropped(e), 6, "behind the cut nothing counts as written");
	eq(pl_counter_read(&e->stats.accepted), 18);
	eq(pl_counter_read(&e->stats.delivered), 12);
	eq(atomic_load(&e->stats.last_error), EIO);
	e->ops->words(e, &words);
	ok(strstr(words.trouble, "was truncated while it was open") != NULL, "and it is told: %s",
		words.trouble);
	eq(unlink(file("hops.region")), 0);
	eq(pl_export_reopen(e, 0, &diag), 0, "taken away, it is made anew: %s", diag.text);
	pl_export_flush(e, 0, false);
	eq(atomic_load(&e->stats.last_error), 0);
	write_some(e, 5);
	eq(dropped(e), 6);
	eq(count(PL_HISTORY_PATHS), 5, "the old paths have no hops, the new ones have");
	pl_export_close(e);
	clean_up();
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%.40s/pl-region-out-%ld", tmp != NULL ? tmp : "/tmp",
		(long)getpid());
	accounts();
	moved_away();
	cut();
	return pl_test_done();
}
