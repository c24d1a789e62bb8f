/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/jsonl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/test.h"
#include "record/json.h"

#define SECOND ((uint64_t)1000000000)

static char dir[64];
static void (*before_lock)(void); /* called before flock: acts as another process */

/* Replaces the C library's function. */
int flock(int fd, int operation)
{
	void (*first)(void) = before_lock;

	before_lock = NULL;
	if (first != NULL)
		first();
	return (int)syscall(SYS_flock, fd, operation);
}
static struct pl_record_batch batch;

static const char *in_dir(const char *name)
{
	static char path[4][400];
	static unsigned int i;

	i = (i + 1) % 4;
	snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
	return path[i];
}

static void clear_dir(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (e->d_name[0] != '.')
			unlink(in_dir(e->d_name));
	}
	if (d != NULL)
		closedir(d);
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(in_dir(name), "w");

	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
}

/* Returns the file's text until the next call; "" when there is no file. */
static const char *text_of(const char *name)
{
	static char *text;
	size_t len;

	free(text);
	text = NULL;
	if (pl_file_read(in_dir(name), 1 << 30, &text, &len) < 0)
		text = strdup("");
	return text;
}

/* Returns the number of lines when each looks like one whole object, else -1. */
static long whole_lines(const char *name)
{
	const char *p = text_of(name);
	long n = 0;

	while (*p != '\0') {
		const char *end = strchr(p, '\n');

		if (end == NULL || end - p < 2 || strncmp(p, "{\"kind\":\"", 9) != 0 ||
			end[-1] != '}')
			return -1;
		for (const char *q = p; q < end; q++) {
			if (strncmp(q, "}{", 2) == 0)
				return -1;
		}
		n++;
		p = end + 1;
	}
	return n;
}

static struct pl_export *opened(struct pl_jsonl_options o, const char *name)
{
	struct pl_diag diag = { .text = "" };
	struct pl_export *e = NULL;

	o.path = in_dir(name);
	if (pl_jsonl_open(&e, &o, 0, &diag) < 0)
		printf("# %s\n", diag.text);
	return e;
}

static void write_paths(struct pl_export *e, unsigned int n, uint64_t now_ns)
{
	pl_record_batch_clear(&batch);
	for (unsigned int i = 0; i < n; i++) {
		batch.paths[i] = (struct pl_path){
			.report_id = i, .hop_count = 2, .record_version = PL_RECORD_VERSION
		};
		batch.first_hop[i] = 2 * i;
		batch.hops[2 * i] = (struct pl_hop){ .node = i, .present = PL_HOP_HAS_node };
		batch.hops[2 * i + 1] = (struct pl_hop){ .index = 1 };
		batch.n_paths++;
		batch.n_hops += 2;
	}
	pl_export_write_paths(e, &batch, now_ns);
}

static uint64_t count(const struct pl_counter *c)
{
	return pl_counter_read(c);
}

/* Checks accepted = delivered + dropped + queued. */
static bool balanced(const struct pl_export *e)
{
	uint64_t sum = count(&e->stats.delivered) + e->stats.queued;

	for (unsigned int c = 0; c < PL_EXPORT_DROP_MAX; c++)
		sum += count(&e->stats.dropped[c]);
	return sum == count(&e->stats.accepted);
}

static void refused(void)
{
	static const struct {
		const char *name;
		struct pl_jsonl_options o;
		int want;
	} rows[] = {
		{ "no path", { .path = NULL }, -EINVAL },
		{ "empty path", { .path = "" }, -EINVAL },
		{ "a folder", { .path = "/tmp" }, -EISDIR },
		{ "a folder that is not there", { .path = "/nonexistent/x" }, -ENOENT },
		{ "too many files", { .path = "/dev/null", .keep = 1001 }, -EINVAL },
		{ "a tiny buffer", { .path = "/dev/null", .buffer_bytes = 100 }, -EINVAL },
	};
	struct pl_jsonl_options o = { 0 };
	struct pl_export *e = NULL, *other;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_diag diag = { .text = "" };

		eq(pl_jsonl_open(&e, &rows[i].o, 0, &diag), rows[i].want, "%s", rows[i].name);
		ok(diag.text[0] != '\0', "%s: says why", rows[i].name);
	}
	if (mkfifo(in_dir("fifo"), 0600) == 0)
		ok(opened(o, "fifo") == NULL, "a FIFO is refused, and does not hang");
	put("foreign", "not ours");
	ok(opened(o, "foreign") == NULL, "a foreign file without an end of line");
	streq(text_of("foreign"), "not ours", "is left as it was");
	e = opened(o, "taken");
	other = opened(o, "taken");
	ok(e != NULL && other == NULL, "two writers of one file");
	pl_export_close(e);
	pl_export_close(NULL);
	clear_dir();
}

static void appends(void)
{
	struct pl_jsonl_options o = { 0 };
	struct pl_event event = { .event = PL_EVENT_PATH_CHANGE, .record_version = 1 };
	struct pl_export *e;

	put("x", "{\"kind\":\"old\"}\n{\"kind\":\"torn");
	e = opened(o, "x");
	streq(text_of("x"), "{\"kind\":\"old\"}\n", "the torn end of a crash is cut off");
	write_paths(e, 3, 0);
	pl_export_write_events(e, &event, 1, 0);
	eq(e->stats.queued, 4, "queued");
	eq(whole_lines("x"), 1, "nothing written before it is due");
	pl_export_flush(e, 0, false);
	eq(count(&e->stats.delivered), 4, "delivered");
	eq(whole_lines("x"), 5, "appended");
	ok(balanced(e), "balanced");
	pl_export_close(e);
	put("y", "{\"kind\":\"only a torn line");
	e = opened(o, "y");
	streq(text_of("y"), "", "a file of one torn line");
	pl_export_close(e);
	clear_dir();
}

static void end_line(void)
{
	FILE *f = fopen(in_dir("x"), "a");

	if (f == NULL || fputs(" and its end\"}\n{\"kind\":\"more\"}\n", f) < 0 || fclose(f) != 0)
		abort();
}

static void rotate(void)
{
	if (rename(in_dir("x"), in_dir("x.1")) < 0)
		abort();
}

/* Another process writes to the file until this one locks it. */
static void another_writes(void)
{
	struct pl_jsonl_options o = { 0 };
	struct pl_export *e;

	put("x", "{\"kind\":\"half");
	before_lock = end_line;
	e = opened(o, "x");
	eq(whole_lines("x"), 2, "what another wrote before it let go is kept");
	pl_export_close(e);
	before_lock = rotate;
	e = opened(o, "x");
	write_paths(e, 3, 0);
	pl_export_flush(e, 0, true);
	eq(whole_lines("x"), 3, "a file that it renamed is not this one's");
	eq(whole_lines("x.1"), 2, "and stays as it was");
	pl_export_close(e);
	clear_dir();
}

static void rotates_by_size(void)
{
	struct pl_jsonl_options o = { .max_bytes = 2000, .keep = 3 };
	struct pl_export *e = opened(o, "r");
	long sum = 0;
	struct stat st;

	for (unsigned int i = 0; i < 50; i++) {
		write_paths(e, 7, i * SECOND);
		pl_export_flush(e, i * SECOND, false);
	}
	ok(count(&e->stats.rotations) > 3, "rotated %" PRIu64 " times", count(&e->stats.rotations));
	eq(count(&e->stats.delivered), 350, "all delivered");
	for (unsigned int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof(name), i == 0 ? "r" : "r.%u", i);
		ok(stat(in_dir(name), &st) == 0 && st.st_size <= 2000, "%s within the size", name);
		ok(whole_lines(name) > 0, "%s has whole lines only", name);
		sum += whole_lines(name);
	}
	ok(stat(in_dir("r.4"), &st) < 0, "no more than three are kept");
	ok(sum < 350, "older ones are gone");
	pl_export_close(e);

	/* a line longer than the limit gets its own file */
	o.max_bytes = 10;
	o.keep = 100;
	e = opened(o, "l");
	write_paths(e, 4, 0);
	pl_export_flush(e, 0, false);
	eq(count(&e->stats.delivered), 4, "lines beyond the limit are delivered");
	eq(whole_lines("l"), 1, "one per file");
	eq(whole_lines("l.3"), 1, "to the first");
	pl_export_close(e);
	clear_dir();
}

/* While no new file can be made, no old one is lost. */
static void cannot_rotate(void)
{
	struct pl_jsonl_options o = { .max_bytes = 2000, .keep = 2, .retry_ns = SECOND };
	struct pl_export *e = opened(o, "r");
	uint64_t rotations;
	long kept[3];
	struct stat st;

	for (unsigned int i = 0; count(&e->stats.rotations) < 3; i++) {
		write_paths(e, 7, i * SECOND);
		pl_export_flush(e, i * SECOND, false);
	}
	rotations = count(&e->stats.rotations);
	kept[1] = whole_lines("r.1");
	kept[2] = whole_lines("r.2");
	ok(mkdir(in_dir("r.0"), 0700) == 0, "something is in the way of the next file");
	for (unsigned int i = 100; i < 110; i++) {
		write_paths(e, 7, i * SECOND);
		pl_export_flush(e, i * SECOND, false);
	}
	eq(count(&e->stats.rotations), rotations, "nothing rotates");
	ok(count(&e->stats.errors) > 1, "it is tried again");
	ok(whole_lines("r.1") == kept[1] && whole_lines("r.2") == kept[2], "old files are there");
	ok(whole_lines("r") >= 70, "lines go on into the present one");
	ok(rmdir(in_dir("r.0")) == 0 && balanced(e), "it goes");
	write_paths(e, 1, 200 * SECOND);
	pl_export_flush(e, 200 * SECOND, false);
	eq(count(&e->stats.rotations), rotations + 1, "then it rotates");
	eq(whole_lines("r.2"), kept[1], "by one");
	ok(stat(in_dir("r.0"), &st) < 0, "and leaves nothing more");
	pl_export_close(e);
	clear_dir();
}

static void rotates_by_age(void)
{
	struct pl_jsonl_options o = { .max_age_ns = 10 * SECOND };
	struct pl_export *e = opened(o, "a");

	pl_export_flush(e, 11 * SECOND, false);
	eq(count(&e->stats.rotations), 0, "an empty file does not rotate");
	write_paths(e, 1, 11 * SECOND);
	pl_export_flush(e, 11 * SECOND, false);
	pl_export_flush(e, 15 * SECOND, false);
	eq(count(&e->stats.rotations), 1, "an old one does, though nothing comes");
	eq(whole_lines("a.1"), 1, "with its line");
	pl_export_close(e);
	clear_dir();
}

static void reopens(void)
{
	struct pl_jsonl_options o = { 0 };
	struct pl_diag diag = { .text = "" };
	struct pl_export *e = opened(o, "h");

	write_paths(e, 2, 0);
	rename(in_dir("h"), in_dir("moved"));
	eq(pl_export_reopen(e, 0, &diag), 0, "reopened after the file was moved away");
	write_paths(e, 3, 0);
	pl_export_flush(e, 0, false);
	eq(whole_lines("moved"), 2, "what was queued went into the old file");
	eq(whole_lines("h"), 3, "the rest into the new one");
	eq(pl_export_reopen(e, 0, &diag), 0, "reopened though nothing moved");
	write_paths(e, 1, 0);
	pl_export_flush(e, 0, false);
	eq(whole_lines("h"), 4, "goes on in the same file");
	rename(in_dir("h"), in_dir("moved"));
	mkdir(in_dir("h"), 0700);
	ok(pl_export_reopen(e, 0, &diag) < 0, "a folder in its place: %s", diag.text);
	write_paths(e, 1, 0);
	pl_export_flush(e, 0, true);
	eq(whole_lines("moved"), 5, "goes on with the file it had");
	ok(balanced(e), "balanced");
	pl_export_close(e);
	rmdir(in_dir("h"));
	clear_dir();
}

static void full_device(void)
{
	struct pl_jsonl_options o = { .path = "/dev/full" };
	struct pl_export_words words;
	struct pl_export *e = NULL;

	if (!ok(pl_jsonl_open(&e, &o, 0, NULL) == 0, "/dev/full opened"))
		return;
	for (unsigned int i = 0; i < 400; i++)
		write_paths(e, 60, i * SECOND / 40);
	eq(count(&e->stats.delivered), 0, "nothing delivered");
	ok(e->stats.queued > 0, "some wait");
	ok(count(&e->stats.dropped[PL_EXPORT_NO_SPACE]) > 0,
		"the rest is dropped for want of space");
	ok(balanced(e), "balanced");
	eq(e->stats.last_error, ENOSPC, "the error is known");
	e->ops->words(e, &words);
	streq(words.trouble, strerror(ENOSPC), "and is told in words");
	ok(count(&e->stats.errors) <= 11, "one attempt a second: %" PRIu64,
		count(&e->stats.errors));
	pl_export_close(e);
}

static void set_limit(uint64_t bytes)
{
	struct rlimit r;

	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = bytes;
	if (setrlimit(RLIMIT_FSIZE, &r) < 0)
		abort();
}

/* The disk fills up at every byte of a line and then has room again: lines are whole and not
 * repeated. */
static void torn_lines(void)
{
	struct pl_jsonl_options o = { 0 };
	bool good = true, summed = true, resumed = true, cut = true;
	struct stat st;
	size_t line;

	struct pl_export *e = opened(o, "t");
	write_paths(e, 1, 0);
	pl_export_flush(e, 0, true);
	pl_export_close(e);
	line = strlen(text_of("t"));
	for (size_t at = 1; at <= 2 * line; at++) {
		clear_dir();
		e = opened(o, "t");
		set_limit(at);
		write_paths(e, 3, 0);
		pl_export_flush(e, 0, false);
		summed &= balanced(e) && count(&e->stats.delivered) == at / line;
		summed &= e->stats.last_error == EFBIG;
		if (at % 2 == 0) {
			set_limit(UINT64_MAX);
			pl_export_flush(e, SECOND / 2, false);
			resumed &= count(&e->stats.delivered) == at / line; /* no room yet */
			pl_export_flush(e, SECOND, false);
			resumed &= count(&e->stats.delivered) == 3 && e->stats.last_error == 0;
			good &= whole_lines("t") == 3;
		} else {
			/* renamed while torn: the old file is cut, the line is in the new one */
			rename(in_dir("t"), in_dir("old"));
			set_limit(UINT64_MAX);
			set_limit(at);
			pl_export_reopen(e, 0, NULL);
			set_limit(UINT64_MAX);
			pl_export_flush(e, 0, true);
			good &= whole_lines("old") == (long)(at / line) && whole_lines("t") >= 0;
			good &= whole_lines("old") + whole_lines("t") == 3;
		}
		pl_export_close(e);

		/* closing a torn file */
		clear_dir();
		e = opened(o, "t");
		set_limit(at);
		write_paths(e, 3, 0);
		pl_export_flush(e, 0, true);
		pl_export_close(e);
		set_limit(UINT64_MAX);
		cut &= stat(in_dir("t"), &st) == 0 && (size_t)st.st_size == at / line * line;
	}
	ok(good, "whole lines, each once");
	ok(summed, "balanced while the disk is full");
	ok(resumed, "resumes by itself, at the retry time and not before");
	ok(cut, "closed while torn: the end is cut off");
	clear_dir();
}

/* Random sizes, changing limits and rotation: the files hold exactly what was delivered. */
static void random_faults(void)
{
	struct pl_jsonl_options o = { .max_bytes = 20000, .keep = 1000 };
	struct pl_export *e = opened(o, "f");
	struct pl_rng rng;
	uint64_t now = 0;
	long lines = 0;
	bool good = true;

	printf("# seed 11\n");
	pl_rng_seed(&rng, 11);
	for (unsigned int i = 0; i < 1000; i++) {
		now += pl_rng_below(&rng, SECOND);
		if (i / 400 % 2 == 1)
			set_limit(pl_rng_below(&rng, 100)); /* less than a line */
		else
			set_limit(pl_rng_below(&rng, 3) == 0 ? UINT64_MAX
							     : pl_rng_below(&rng, 25000));
		write_paths(e, (unsigned int)pl_rng_below(&rng, 60), now);
		if (pl_rng_below(&rng, 2) == 0)
			pl_export_flush(e, now, false);
		if (pl_rng_below(&rng, 50) == 0)
			pl_export_reopen(e, now, NULL);
		good &= balanced(e);
	}
	set_limit(UINT64_MAX);
	pl_export_flush(e, now, true);
	ok(good, "balanced all the time");
	for (unsigned int i = 0; i <= 1000; i++) {
		char name[16];
		long n;

		snprintf(name, sizeof(name), i == 0 ? "f" : "f.%u", i);
		n = whole_lines(name);
		if (n < 0)
			good = ok(false, "%s has a torn line", name);
		lines += n;
	}
	eq(lines, count(&e->stats.delivered), "lines on the disk are lines delivered");
	eq(e->stats.queued, 0, "none left");
	ok(count(&e->stats.dropped[PL_EXPORT_NO_SPACE]) > 0, "some had to be dropped");
	printf("# %ld lines, %" PRIu64 " dropped, %" PRIu64 " files\n", lines,
		count(&e->stats.dropped[PL_EXPORT_NO_SPACE]), count(&e->stats.rotations) + 1);
	pl_export_close(e);
	clear_dir();
}

int main(void)
{
	snprintf(dir, sizeof(dir), "/tmp/pathline-jsonl-XXXXXX");
	if (mkdtemp(dir) == NULL || pl_record_batch_init(&batch, 64, 256) < 0)
		return EXIT_FAILURE;
	signal(SIGXFSZ, SIG_IGN);
	refused();
	appends();
	another_writes();
	rotates_by_size();
	cannot_rotate();
	rotates_by_age();
	reopens();
	full_device();
	torn_lines();
	random_faults();
	pl_record_batch_done(&batch);
	rmdir(dir);
	text_of(""); /* frees */
	return pl_test_done();
}
