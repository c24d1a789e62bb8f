/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects the truth of a simulated network, and writes it as a history. */
#include "lab/truth_history.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/history.h"

#define BATCH 256u

struct pl_lab_truth_history {
	const char *folder;   /* borrowed */
	FILE *paths, *events; /* each path is followed by its hops */
	FILE *marks;          /* opened early: later the process may lack the right */
	uint64_t n_paths, n_hops, n_events, n_marks;
	int failed;
};

static int check_free(const char *folder, struct pl_diag *diag)
{
	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s.region", folder, pl_history_store_name(s));
		if (access(path, F_OK) != 0)
			continue;
		pl_diag_set(diag,
			"%s: there is a history already: remove it, or name another folder",
			folder);
		return -EEXIST;
	}
	return 0;
}

int pl_lab_truth_history_new(
	struct pl_lab_truth_history **ret, const char *folder, struct pl_diag *diag)
{
	struct pl_lab_truth_history *t;
	int r = check_free(folder, diag);

	if (r < 0)
		return r;
	/* A process that drops its privileges later cannot make it then. */
	if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
		r = -errno;
		pl_diag_set(diag, "%s: %s", folder, strerror(-r));
		return r;
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	t->folder = folder;
	t->paths = tmpfile();
	t->events = t->paths != NULL ? tmpfile() : NULL;
	t->marks = t->events != NULL ? tmpfile() : NULL;
	if (t->marks == NULL) {
		r = -errno;
		pl_diag_set(
			diag, "cannot make a temporary file for the truth: %s", strerror(errno));
		pl_lab_truth_history_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

static void put(struct pl_lab_truth_history *t, FILE *f, const void *records, size_t size, size_t n)
{
	if (t->failed == 0 && fwrite(records, size, n, f) != n)
		t->failed = -errno;
}

void pl_lab_truth_history_path(
	struct pl_lab_truth_history *t, const struct pl_path *path, const struct pl_hop *hops)
{
	put(t, t->paths, path, sizeof(*path), 1);
	put(t, t->paths, hops, sizeof(*hops), path->hop_count);
	t->n_paths++;
	t->n_hops += path->hop_count;
}

void pl_lab_truth_history_event(struct pl_lab_truth_history *t, const struct pl_event *event)
{
	put(t, t->events, event, sizeof(*event), 1);
	t->n_events++;
}

void pl_lab_truth_history_mark(struct pl_lab_truth_history *t, const struct pl_mark128 *record)
{
	put(t, t->marks, record, sizeof(*record), 1);
	t->n_marks++;
}

/* ---- at the end ---- */

static int copy_paths(struct pl_lab_truth_history *t, struct pl_history *h)
{
	struct pl_record_batch b = { 0 };
	int r = pl_record_batch_init(&b, BATCH, BATCH * 2);

	for (uint64_t i = 0; r == 0 && i < t->n_paths; i++) {
		struct pl_path path;

		if (b.n_paths == b.cap_paths || b.cap_hops - b.n_hops < UINT8_MAX) {
			pl_history_put_paths(h, &b);
			pl_record_batch_clear(&b);
		}
		if (fread(&path, sizeof(path), 1, t->paths) != 1 ||
			fread(&b.hops[b.n_hops], sizeof(b.hops[0]), path.hop_count, t->paths) !=
				path.hop_count) {
			r = -EIO;
			break;
		}
		b.first_hop[b.n_paths] = b.n_hops;
		b.paths[b.n_paths++] = path;
		b.n_hops += path.hop_count;
	}
	if (r == 0)
		pl_history_put_paths(h, &b);
	pl_record_batch_done(&b);
	return r;
}

static int copy_events(struct pl_lab_truth_history *t, struct pl_history *h)
{
	struct pl_event event;

	for (uint64_t i = 0; i < t->n_events; i++) {
		if (fread(&event, sizeof(event), 1, t->events) != 1)
			return -EIO;
		pl_history_put_events(h, &event, 1);
	}
	return 0;
}

static int rewound(FILE *f)
{
	return fflush(f) != 0 || fseeko(f, 0, SEEK_SET) != 0 ? -errno : 0;
}

/* Writes the block records, replacing those of an earlier run. */
static int copy_marks(struct pl_lab_truth_history *t)
{
	char path[4096], bytes[32768];
	size_t n;
	FILE *f;
	int r;

	if (snprintf(path, sizeof(path), "%s/" PL_LAB_TRUTH_MARKS, t->folder) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (t->n_marks == 0)
		return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
	r = rewound(t->marks);
	f = r == 0 ? fopen(path, "we") : NULL;
	if (f == NULL)
		return r == 0 ? -errno : r;
	while (r == 0 && (n = fread(bytes, 1, sizeof(bytes), t->marks)) > 0) {
		if (fwrite(bytes, 1, n, f) != n)
			r = -errno;
	}
	if (r == 0 && ferror(t->marks))
		r = -EIO;
	return fclose(f) != 0 && r == 0 ? -errno : r;
}

/* Empty lists exist, too: queries may read them. */
static uint64_t at_least_one(uint64_t n)
{
	return n > 0 ? n : 1;
}

int pl_lab_truth_history_write(struct pl_lab_truth_history *t, struct pl_diag *diag)
{
	const struct pl_history_options options = { .slots = {
							    [PL_HISTORY_EVENTS] =
								    at_least_one(t->n_events),
							    [PL_HISTORY_PATHS] =
								    at_least_one(t->n_paths),
							    [PL_HISTORY_HOPS] =
								    at_least_one(t->n_hops),
						    } };
	struct pl_history *h = NULL;
	int r = t->failed, end;

	r = r == 0 ? rewound(t->paths) : r;
	r = r == 0 ? rewound(t->events) : r;
	if (r < 0) {
		pl_diag_set(diag, "the temporary file of the truth: %s", strerror(-r));
		return r;
	}
	r = pl_history_begin(&h, t->folder, &options, diag);
	if (r < 0)
		return r;
	r = copy_paths(t, h);
	r = r == 0 ? copy_events(t, h) : r;
	r = r == 0 ? copy_marks(t) : r;
	end = pl_history_close(h);
	r = r == 0 ? end : r;
	if (r < 0)
		pl_diag_set(diag, "%s: %s", t->folder, strerror(-r));
	return r;
}

void pl_lab_truth_history_free(struct pl_lab_truth_history *t)
{
	if (t == NULL)
		return;
	if (t->paths != NULL)
		fclose(t->paths);
	if (t->events != NULL)
		fclose(t->events);
	if (t->marks != NULL)
		fclose(t->marks);
	free(t);
}
