/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes the epochs of regions, and keeps copies of ended ones. */
#include "chain/epochs.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "memory/region.h"
#include "runtime/say.h"

#define RETRY_NS UINT64_C(1000000000) /* time until a failed copy is tried again */

struct region {
	enum pl_epochs_kind kind;
	bool ready; /* emptied for the prepared turn */
	bool late;  /* its change is due, but not possible yet */
	bool stuck; /* its ended epoch cannot be kept; under the lock */
	/* under keep_lock */
	bool kept; /* all epochs but the present one, as of epoch `kept_at` */
	uint64_t kept_at;
};

struct pl_epochs {
	struct pl_epochs_writer writer;
	const char *folder; /* NULL: old epochs are not kept */
	uint64_t every_ns;
	int fd;          /* an event: a turn is prepared */
	uint32_t n_late; /* number of late regions; for the writer's thread only */
	bool running;    /* the thread runs */
	pthread_t thread;
	pthread_mutex_t keep_lock; /* held while keeping; never waited for under `lock` */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* under `lock` */
	struct region *regions;
	bool stop, asked, prepared;
	bool came; /* a late region, or one with its own changes, has changed its epoch, and the
		    * ended one must be kept */
	uint64_t turned, kept, put_off;
	char why[512]; /* reason of the last failed copy */
	_Atomic uint32_t n_stuck;
};

static const struct pl_region *region_of(const struct pl_epochs *e, uint32_t i)
{
	return e->writer.region(e->writer.arg, i);
}

/* ---- what ended is kept ---- */

/* Finds the part of a region's path that names its copies: *ret and its length. */
static int stem_of(const struct pl_epochs *e, uint32_t i, const char **ret)
{
	const char *file = e->writer.path(e->writer.arg, i), *slash = strrchr(file, '/'), *dot;

	if (slash != NULL)
		file = slash + 1;
	dot = strrchr(file, '.');
	*ret = file;
	return (int)(dot != NULL && dot > file ? (size_t)(dot - file) : strlen(file));
}

/* Makes FOLDER/FILE-NUMBER.plr, which the caller frees. */
static char *path_of(const struct pl_epochs *e, uint32_t i, uint64_t epoch)
{
	const char *stem;
	int n = stem_of(e, i, &stem);
	char *path;

	if (asprintf(&path, "%s/%.*s-%" PRIu64 ".plr", e->folder, n, stem, epoch) < 0)
		return NULL;
	return path;
}

/* Returns true when the file is this epoch of this region, and not of an earlier region of that
 * name. */
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

/* Copies an epoch. Returns 1 when it was copied, 0 when there is nothing to copy. */
static int copy(const struct pl_epochs *e, uint32_t i, uint64_t now, struct pl_diag *diag)
{
	const struct pl_region *g = region_of(e, i);
	char *path;
	int r;

	if (now == 0 || !pl_region_has_epoch(g, now - 1) || pl_region_is_cut(g))
		return 0;
	path = path_of(e, i, now - 1);
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

static const char *waits_for(const struct pl_epochs *e, uint32_t i)
{
	return e->regions[i].kind == PL_EPOCHS_OWN
		       ? "the next epoch reuses the half of the present one"
		       : "the next epoch waits";
}

/* Stores the result, with the lock held. A failure is reported when it begins and when it ends.
 * Meanwhile its reason is a condition; the reason may name a new file each time. */
static void note_kept(struct pl_epochs *e, uint32_t i, int r, const char *why)
{
	struct region *g = &e->regions[i];
	const char *name = e->writer.name(e->writer.arg, i);

	if (r < 0 && !g->stuck)
		pl_say("%s: cannot keep the ended epoch: %s; %s", name, why, waits_for(e, i));
	else if (r >= 0 && g->stuck)
		pl_say("%s: the ended epoch is kept now", name);
	if (r < 0)
		snprintf(e->why, sizeof(e->why), "%s", why);
	if (g->stuck != (r < 0))
		atomic_fetch_add_explicit(
			&e->n_stuck, r < 0 ? 1 : UINT32_MAX, memory_order_relaxed);
	g->stuck = r < 0;
}

/* Copies ended epochs of a region to files. Returns true when all are copied; else after an error
 * message. Called by both threads. */
static bool keep(struct pl_epochs *e, uint32_t i)
{
	struct pl_diag diag = { .text = "" };
	struct region *g = &e->regions[i];
	uint64_t now;
	int r = 0;

	pthread_mutex_lock(&e->keep_lock);
	now = pl_region_epoch(region_of(e, i));
	if (!g->kept || g->kept_at != now) {
		r = copy(e, i, now, &diag);
		g->kept = r >= 0;
		g->kept_at = now;
	}
	pthread_mutex_unlock(&e->keep_lock);
	pthread_mutex_lock(&e->lock);
	e->kept += r > 0;
	e->put_off += r < 0;
	note_kept(e, i, r, diag.text[0] != '\0' || r >= 0 ? diag.text : strerror(-r));
	pthread_mutex_unlock(&e->lock);
	return r >= 0;
}

/* Returns true when all ended epochs are in files. */
static bool keep_all(struct pl_epochs *e)
{
	bool good = true;

	for (uint32_t i = 0; e->folder != NULL && i < e->writer.n; i++) {
		if (e->regions[i].kind != PL_EPOCHS_NONE && !keep(e, i))
			good = good && e->regions[i].kind == PL_EPOCHS_OWN;
	}
	return good;
}

/* ---- the thread ---- */

/* Waits. *ret_due: a change is due, not only copies. Returns false at the end. */
static bool wait_until(struct pl_epochs *e, uint64_t until_ns, bool *ret_due)
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
	/* Regions that are late from now on change with the next ones, because their old epoch is
	 * not kept yet. */
	for (uint32_t i = 0; i < e->writer.n; i++)
		e->regions[i].ready = e->regions[i].kind == PL_EPOCHS_TIMED && !e->regions[i].late;
	r = !e->stop;
	pthread_mutex_unlock(&e->lock);
	return r;
}

/* Empties the next halves, and makes the writer turn. Returns false at the end. */
static bool turn(struct pl_epochs *e)
{
	const uint64_t one = 1;
	bool stop;

	for (uint32_t i = 0; i < e->writer.n; i++) {
		if (e->regions[i].ready)
			(void)e->writer.prepare(e->writer.arg, i);
	}
	pthread_mutex_lock(&e->lock);
	e->prepared = true;
	(void)!write(e->fd, &one, sizeof(one)); /* an unread event is enough */
	while (e->prepared && !e->stop)
		pthread_cond_wait(&e->wake, &e->lock);
	stop = e->stop;
	pthread_mutex_unlock(&e->lock);
	return !stop;
}

static void *run(void *arg)
{
	struct pl_epochs *e = arg;
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
		/* Epochs before the last one, left by a killed writer, or a full disk. */
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

/* ---- the writer's side ---- */

int pl_epochs_fd(const struct pl_epochs *e)
{
	return e->fd;
}

void pl_epochs_turn(struct pl_epochs *e)
{
	uint64_t events;

	pthread_mutex_lock(&e->lock);
	if (e->prepared) {
		(void)!read(e->fd, &events, sizeof(events));
		for (uint32_t i = 0; i < e->writer.n; i++) {
			if (e->regions[i].ready && e->writer.next(e->writer.arg, i) == -EAGAIN) {
				e->regions[i].late = true;
				e->n_late++;
			}
		}
		e->turned++;
		e->prepared = false;
		pthread_cond_signal(&e->wake);
	}
	pthread_mutex_unlock(&e->lock);
}

void pl_epochs_step(struct pl_epochs *e)
{
	if (e->n_late == 0)
		return;
	pthread_mutex_lock(&e->lock);
	for (uint32_t i = 0; i < e->writer.n; i++) {
		if (!e->regions[i].late || e->writer.next(e->writer.arg, i) == -EAGAIN)
			continue;
		e->regions[i].late = false;
		e->n_late--;
		e->came = true;
		pthread_cond_signal(&e->wake);
	}
	pthread_mutex_unlock(&e->lock);
}

bool pl_epochs_may_begin(struct pl_epochs *e, uint32_t i)
{
	return e->folder == NULL || keep(e, i);
}

void pl_epochs_begun(struct pl_epochs *e)
{
	pthread_mutex_lock(&e->lock);
	e->came = true;
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

void pl_epochs_ask(struct pl_epochs *e)
{
	pthread_mutex_lock(&e->lock);
	e->asked = true;
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

static void put_stores(struct pl_json *json, const struct pl_epochs *e)
{
	pl_json_key(json, "stores");
	pl_json_array(json);
	for (uint32_t i = 0; i < e->writer.n; i++) {
		if (e->regions[i].kind == PL_EPOCHS_NONE)
			continue;
		pl_json_object(json);
		pl_json_text(json, "store", e->writer.name(e->writer.arg, i));
		pl_json_number(json, "epoch", pl_region_epoch(region_of(e, i)));
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
}

const struct pl_epochs_names pl_epochs_dta = {
	.turned = "pathline_dta_out_epochs_turned",
	.kept = "pathline_dta_out_epochs_kept",
	.put_off = "pathline_dta_out_epochs_put_off",
	.late = "pathline_dta_out_epochs_late",
};
const struct pl_epochs_names pl_epochs_rdma = {
	.turned = "pathline_rdma_epochs_turned",
	.kept = "pathline_rdma_epochs_kept",
	.put_off = "pathline_rdma_epochs_put_off",
	.late = "pathline_rdma_epochs_late",
};

void pl_epochs_account(
	const struct pl_account *a, const struct pl_epochs_names *names, struct pl_epochs *e)
{
	uint64_t turned = 0, kept = 0, put_off = 0, late = 0;

	if (e != NULL) {
		pthread_mutex_lock(&e->lock);
		turned = e->turned;
		kept = e->kept;
		put_off = e->put_off;
		late = e->n_late;
		pthread_mutex_unlock(&e->lock);
	}
	pl_account_object(a, "epochs");
	pl_account_counter(a, "turned", names->turned, "Turns of epochs.", turned);
	pl_account_counter(a, "kept", names->kept, "Ended epochs that were copied to files.", kept);
	pl_account_counter(a, "put_off", names->put_off,
		"Times that an ended epoch could not be copied to its file, and so the next one waits (of a sketch: goes on without it).",
		put_off);
	pl_account_gauge(
		a, "late", names->late, "Regions whose turn is due and not yet done.", late);
	if (a->json != NULL && e != NULL)
		put_stores(a->json, e);
	pl_account_object_end(a);
}

void pl_epochs_conditions(struct pl_epochs *e, struct pl_conditions *ret)
{
	if (atomic_load_explicit(&e->n_stuck, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&e->lock);
	for (uint32_t i = 0; i < e->writer.n; i++) {
		if (e->regions[i].stuck)
			pl_condition_add(ret, PL_CONDITION_FAULT, "epoch_not_kept",
				"region %s: its ended epoch cannot be kept (%s): %s",
				e->writer.name(e->writer.arg, i), e->why, waits_for(e, i));
	}
	pthread_mutex_unlock(&e->lock);
}

/* Refuses regions whose files would have the same name. */
static int check_names(const struct pl_epochs *e, struct pl_diag *diag)
{
	const char *a, *b;

	for (uint32_t i = 0; i < e->writer.n; i++) {
		int n = stem_of(e, i, &a);

		for (uint32_t k = 0; k < i && e->regions[i].kind != PL_EPOCHS_NONE; k++) {
			if (e->regions[k].kind == PL_EPOCHS_NONE || stem_of(e, k, &b) != n ||
				memcmp(a, b, (size_t)n) != 0)
				continue;
			return pl_diag_fail(diag, -EINVAL,
				"--keep-epochs: two regions have the name %.*s", n, a);
		}
	}
	return 0;
}

static int check(const struct pl_epochs *e, struct pl_diag *diag)
{
	struct stat st;
	int r;

	if (e->folder == NULL)
		return 0;
	r = stat(e->folder, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
	if (r != 0)
		return pl_diag_fail(diag, -r, "--keep-epochs: %s: %s", e->folder, strerror(r));
	return check_names(e, diag);
}

void pl_epochs_free(struct pl_epochs *e)
{
	if (e == NULL)
		return;
	if (e->fd >= 0)
		close(e->fd);
	pthread_cond_destroy(&e->wake);
	pthread_mutex_destroy(&e->lock);
	pthread_mutex_destroy(&e->keep_lock);
	free(e->regions);
	free(e);
}

static int start(struct pl_epochs *e)
{
	int r = pl_thread_start(&e->thread, "pl-epochs", run, e);

	e->running = r == 0;
	return r;
}

static void init_locks(struct pl_epochs *e)
{
	pl_cond_init(&e->wake);
	pthread_mutex_init(&e->lock, NULL);
	pthread_mutex_init(&e->keep_lock, NULL);
}

int pl_epochs_open(struct pl_epochs **ret, const struct pl_epochs_writer *writer, uint64_t every_ns,
	const char *folder, struct pl_diag *diag)
{
	struct pl_epochs *e = calloc(1, sizeof(*e));
	int r = 0;

	if (e != NULL)
		e->regions = calloc(writer->n, sizeof(*e->regions));
	if (e == NULL || e->regions == NULL) {
		free(e);
		return pl_diag_fail(diag, -ENOMEM, "%s", strerror(ENOMEM));
	}
	e->writer = *writer;
	e->folder = folder;
	e->every_ns = every_ns;
	e->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->fd < 0)
		r = -errno;
	init_locks(e);
	for (uint32_t i = 0; i < writer->n; i++)
		e->regions[i].kind = writer->kind(writer->arg, i);
	if (r == 0)
		r = check(e, diag);
	if (r == 0)
		r = start(e);
	if (r < 0) {
		if (diag->text[0] == '\0')
			pl_diag_set(diag, "epochs: %s", strerror(-r));
		pl_epochs_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

void pl_epochs_stop(struct pl_epochs *e)
{
	if (e == NULL || !e->running)
		return;
	pthread_mutex_lock(&e->lock);
	e->stop = true;
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
	pthread_join(e->thread, NULL);
	e->running = false;
}
