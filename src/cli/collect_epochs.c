/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/collect_epochs.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "memory/region.h"

#define RETRY_NS UINT64_C(1000000000) /* until what could not be kept is tried again */

struct pl_collect_epochs {
	struct pl_collector *collector;
	const struct pl_collector_options *options;
	const char *folder; /* NULL: old epochs are not kept */
	uint64_t every_ns;
	int fd; /* an event: a turn is due, and prepared */
	bool turns[PL_COLLECTOR_STORES_MAX];
	uint32_t n_late; /* of late; the collector's thread's own */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* under the lock */
	bool stop, asked, prepared;
	bool ready[PL_COLLECTOR_STORES_MAX]; /* emptied for the turn that is prepared */
	bool late[PL_COLLECTOR_STORES_MAX];  /* their turn is due, but they are not whole */
	bool came;                           /* one that was late has turned, and is to be kept */
	uint64_t turned, kept, put_off;
	char why[512]; /* of what could not be kept, so that it is told once */
};

bool pl_collect_epochs_any(const struct pl_collector *c, const struct pl_collector_options *options)
{
	for (uint32_t i = 0; i < options->n_stores; i++) {
		if (pl_collector_can_turn(c, i, NULL) == 0)
			return true;
	}
	return false;
}

/* ---- what ended is kept ---- */

/* FOLDER/FILE-NUMBER.plr, to be freed. */
static char *path_of(const struct pl_collect_epochs *e, uint32_t store, uint64_t epoch)
{
	const char *file = e->options->stores[store].path, *slash = strrchr(file, '/'), *dot;
	char *path;

	if (slash != NULL)
		file = slash + 1;
	dot = strrchr(file, '.');
	if (asprintf(&path, "%s/%.*s-%" PRIu64 ".plr", e->folder,
		    (int)(dot != NULL && dot > file ? (size_t)(dot - file) : strlen(file)), file,
		    epoch) < 0)
		return NULL;
	return path;
}

/* Whether the file is this epoch of this region: of an earlier region of the same name there may be one, too. */
static bool is_kept(const struct pl_region *g, uint64_t epoch, const char *path)
{
	struct pl_region_info ours, theirs;
	struct pl_region *file;

	if (pl_region_open(&file, path, PL_REGION_READ, NULL, NULL) < 0)
		return false;
	pl_region_get_info(g, &ours);
	pl_region_get_info(file, &theirs);
	(void)pl_region_close(file);
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): unused bytes are zero */
	return memcmp(&ours.params, &theirs.params, sizeof(ours.params)) == 0 &&
	       theirs.epoch == epoch && theirs.created_ns >= ours.created_ns;
}

static int keep(const struct pl_collect_epochs *e, uint32_t store, struct pl_diag *diag)
{
	const struct pl_region *g = pl_collector_region(e->collector, store);
	const uint64_t now = pl_region_epoch(g);
	char *path;
	int r;

	if (now == 0 || !pl_region_has_epoch(g, now - 1))
		return 0;
	path = path_of(e, store, now - 1);
	if (path == NULL)
		return -ENOMEM;
	r = pl_region_spill(g, now - 1, path, diag);
	if (r == 0)
		r = 1;
	else if (is_kept(g, now - 1, path))
		r = 0;
	free(path);
	return r;
}

/* Whether all that ended is in its files. */
static bool keep_all(struct pl_collect_epochs *e)
{
	bool good = true;

	for (uint32_t i = 0; e->folder != NULL && i < e->options->n_stores; i++) {
		struct pl_diag diag = { .text = "" };
		int r = e->turns[i] ? keep(e, i, &diag) : 0;

		pthread_mutex_lock(&e->lock);
		e->kept += r > 0;
		e->put_off += r < 0;
		if (r < 0 && strcmp(e->why, diag.text) != 0)
			pl_complain("%s: the epoch that ended is not kept: %s; the next one waits",
				e->options->stores[i].name, diag.text);
		if (r < 0)
			snprintf(e->why, sizeof(e->why), "%s", diag.text);
		pthread_mutex_unlock(&e->lock);
		good = good && r >= 0;
	}
	return good;
}

/* ---- the thread ---- */

/* *ret_due: for a turn, and not for what is to be kept only. False: it is the end. */
static bool wait_until(struct pl_collect_epochs *e, uint64_t until_ns, bool *ret_due)
{
	const struct timespec t = pl_clock_timespec(until_ns);
	int r = 0;

	pthread_mutex_lock(&e->lock);
	while (!e->stop && !e->asked && !e->came && r == 0)
		r = until_ns == UINT64_MAX ? pthread_cond_wait(&e->wake, &e->lock)
					   : pthread_cond_timedwait(&e->wake, &e->lock, &t);
	*ret_due = e->asked || r != 0;
	if (*ret_due)
		e->asked = false;
	e->came = false;
	/* Who is late from now on turns with the next ones: its old epoch is not yet kept. */
	for (uint32_t i = 0; i < e->options->n_stores; i++)
		e->ready[i] = e->turns[i] && !e->late[i];
	r = !e->stop;
	pthread_mutex_unlock(&e->lock);
	return r;
}

/* Empties what will be written, and has the collector turn. False: it is the end. */
static bool turn(struct pl_collect_epochs *e)
{
	const uint64_t one = 1;
	bool stop;

	for (uint32_t i = 0; i < e->options->n_stores; i++) {
		if (e->ready[i])
			(void)pl_collector_prepare_epoch(e->collector, i, NULL);
	}
	pthread_mutex_lock(&e->lock);
	e->prepared = true;
	(void)!write(
		e->fd, &one, sizeof(one)); /* an event that was not read yet is one all the same */
	while (e->prepared && !e->stop)
		pthread_cond_wait(&e->wake, &e->lock);
	stop = e->stop;
	pthread_mutex_unlock(&e->lock);
	return !stop;
}

static void *run(void *arg)
{
	struct pl_collect_epochs *e = arg;
	uint64_t due_ns = UINT64_MAX;
	bool due;

	if (e->every_ns != 0)
		due_ns = pl_clock_mono_ns() + e->every_ns;
	while (wait_until(e, due_ns, &due)) {
		const uint64_t now_ns = pl_clock_mono_ns();

		if (!due) {
			(void)keep_all(e);
			continue;
		}
		/* What a killed collector left of the epoch before, or a full disk. */
		if (!keep_all(e)) {
			due_ns = now_ns + RETRY_NS;
			continue;
		}
		if (e->every_ns != 0)
			due_ns = now_ns > due_ns + e->every_ns || now_ns < due_ns
					 ? now_ns + e->every_ns
					 : due_ns + e->every_ns;
		else
			due_ns = UINT64_MAX;
		if (!turn(e))
			break;
		(void)keep_all(e); /* else before the next turn */
	}
	(void)keep_all(e);
	return NULL;
}

/* ---- the collector's side ---- */

int pl_collect_epochs_fd(const struct pl_collect_epochs *e)
{
	return e->fd;
}

void pl_collect_epochs_turn(struct pl_collect_epochs *e)
{
	uint64_t events;

	(void)!read(e->fd, &events, sizeof(events));
	pthread_mutex_lock(&e->lock);
	if (e->prepared) {
		for (uint32_t i = 0; i < e->options->n_stores; i++) {
			if (e->ready[i] &&
				pl_collector_next_epoch(e->collector, i, NULL) == -EAGAIN) {
				e->late[i] = true;
				e->n_late++;
			}
		}
		e->turned++;
		e->prepared = false;
		pthread_cond_signal(&e->wake);
	}
	pthread_mutex_unlock(&e->lock);
}

void pl_collect_epochs_step(struct pl_collect_epochs *e)
{
	if (e->n_late == 0)
		return;
	pthread_mutex_lock(&e->lock);
	for (uint32_t i = 0; i < e->options->n_stores; i++) {
		if (!e->late[i] || pl_collector_next_epoch(e->collector, i, NULL) == -EAGAIN)
			continue;
		e->late[i] = false;
		e->n_late--;
		e->came = true;
		pthread_cond_signal(&e->wake);
	}
	pthread_mutex_unlock(&e->lock);
}

void pl_collect_epochs_ask(struct pl_collect_epochs *e)
{
	pthread_mutex_lock(&e->lock);
	e->asked = true;
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

void pl_collect_epochs_stats(struct pl_json *json, struct pl_collect_epochs *e)
{
	pl_json_key(json, "epochs");
	pl_json_object(json);
	pthread_mutex_lock(&e->lock);
	pl_json_number(json, "turned", e->turned);
	pl_json_number(json, "kept", e->kept);
	pl_json_number(json, "put_off", e->put_off);
	pl_json_number(json, "late", e->n_late);
	pthread_mutex_unlock(&e->lock);
	pl_json_key(json, "stores");
	pl_json_array(json);
	for (uint32_t i = 0; i < e->options->n_stores; i++) {
		if (!e->turns[i])
			continue;
		pl_json_object(json);
		pl_json_key(json, "store");
		pl_json_str(json, e->options->stores[i].name);
		pl_json_number(
			json, "epoch", pl_region_epoch(pl_collector_region(e->collector, i)));
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
	pl_json_object_end(json);
}

static int check(const struct pl_collector *c, const struct pl_collector_options *options,
	const char *folder, struct pl_diag *diag)
{
	struct stat st;
	int r = 0;

	if (!pl_collect_epochs_any(c, options)) {
		pl_diag_set(diag,
			"epochs: no store has any: those in two halves do, but for lists, "
			"of the software card");
		return -EINVAL;
	}
	if (folder != NULL)
		r = stat(folder, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
	if (r != 0)
		pl_diag_set(diag, "--keep-epochs: %s: %s", folder, strerror(r));
	return -r;
}

void pl_collect_epochs_free(struct pl_collect_epochs *e)
{
	if (e == NULL)
		return;
	if (e->fd >= 0)
		close(e->fd);
	pthread_cond_destroy(&e->wake);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

int pl_collect_epochs_open(struct pl_collect_epochs **ret, struct pl_collector *c,
	const struct pl_collector_options *options, uint64_t every_ns, const char *folder,
	struct pl_diag *diag)
{
	struct pl_collect_epochs *e;
	pthread_condattr_t attr;
	int r = check(c, options, folder, diag);

	if (r < 0)
		return r;
	e = calloc(1, sizeof(*e));
	if (e == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	*e = (struct pl_collect_epochs){ .collector = c,
		.options = options,
		.folder = folder,
		.every_ns = every_ns,
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	for (uint32_t i = 0; i < options->n_stores; i++)
		e->turns[i] = pl_collector_can_turn(c, i, NULL) == 0;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&e->wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&e->lock, NULL);
	r = e->fd < 0 ? errno : pthread_create(&e->thread, NULL, run, e);
	if (r != 0) {
		pl_diag_set(diag, "epochs: %s", strerror(r));
		pl_collect_epochs_free(e);
		return -r;
	}
	*ret = e;
	return 0;
}

void pl_collect_epochs_stop(struct pl_collect_epochs *e)
{
	if (e == NULL)
		return;
	pthread_mutex_lock(&e->lock);
	e->stop = true;
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
	pthread_join(e->thread, NULL);
}
