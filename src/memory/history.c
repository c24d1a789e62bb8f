/* SPDX-License-Identifier: BSD-2-Clause */
/* Histories opened and closed: which files, of which geometry. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/history_internal.h"

#define BATCH     64u /* most entries of a list that become visible together */
#define COPIES    2u
#define DROP_ROWS 4u

static const char *const names[PL_HISTORY_MAX] = { "events", "paths", "hops", "flows", "queues",
	"drops" };

const char *pl_history_store_name(enum pl_history_store store)
{
	return names[store];
}

char *history_file(const char *folder, enum pl_history_store store)
{
	char *path;

	return asprintf(&path, "%s/%s.region", folder, names[store]) < 0 ? NULL : path;
}

/* ---- geometry ---- */

/* A batch more than is to be kept: the one that may be being overwritten. */
static struct pl_store_params list_params(uint64_t kept, uint32_t content, uint32_t entry_bytes)
{
	return (struct pl_store_params){ .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.content = content,
		.append = { .slots = ((kept + BATCH - 1) / BATCH + 1) * BATCH,
			.lists = 1,
			.entry_bytes = entry_bytes,
			.batch_max = BATCH,
			.sealed = 1 } };
}

static struct pl_store_params last_params(uint64_t slots, uint32_t content, uint32_t value_bytes)
{
	return (struct pl_store_params){ .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.content = content,
		.key_write = { .slots = slots, .value_bytes = value_bytes, .copies = COPIES } };
}

static struct pl_store_params params_of(enum pl_history_store store, uint64_t slots)
{
	switch (store) {
	case PL_HISTORY_EVENTS:
		return list_params(slots, PL_CONTENT_EVENT, sizeof(struct pl_event));
	case PL_HISTORY_PATHS:
		return list_params(slots, PL_CONTENT_PATH, sizeof(struct pl_history_path));
	case PL_HISTORY_HOPS:
		return list_params(slots, PL_CONTENT_HOP, sizeof(struct pl_hop));
	case PL_HISTORY_FLOWS:
		return last_params(slots, PL_CONTENT_PATH, sizeof(struct pl_history_flow));
	case PL_HISTORY_QUEUES:
		return last_params(slots, PL_CONTENT_HOP, sizeof(struct pl_hop));
	default:
		return (struct pl_store_params){ .primitive = PL_COUNTERS,
			.hash = PL_HASH_PATHLINE,
			.counters = { .width = slots, .rows = DROP_ROWS } };
	}
}

static int check(const struct pl_history_options *o, struct pl_diag *diag)
{
	if (o->slots[PL_HISTORY_PATHS] == 0 || o->slots[PL_HISTORY_HOPS] != 0)
		return 0;
	pl_diag_set(diag, "a list of paths needs one of hops");
	return -EINVAL;
}

int pl_history_bytes(const struct pl_history_options *o, uint64_t *ret, struct pl_diag *diag)
{
	uint64_t sum = 0, bytes;
	int r = check(o, diag);

	for (unsigned int s = 0; s < PL_HISTORY_MAX && r == 0; s++) {
		struct pl_store_params params = params_of(s, o->slots[s]);
		struct pl_diag inner = { .text = "" };

		if (o->slots[s] == 0)
			continue;
		r = pl_store_bytes(&params, &bytes, &inner);
		if (r < 0)
			pl_diag_set(diag, "%s: %s", names[s], inner.text);
		else if (__builtin_add_overflow(sum, bytes, &sum))
			r = -EOVERFLOW;
	}
	if (r == 0)
		*ret = sum;
	return r;
}

int history_attach(struct pl_history *h, enum pl_history_store store)
{
	const struct pl_region *g = h->regions[store];
	const struct pl_store_params *params = pl_region_params(g);
	void *base = pl_region_store(g, pl_region_epoch(g));

	/* The present epoch is being emptied, or a killed writer left it so. */
	if (base == NULL)
		return -EAGAIN;
	switch (store) {
	case PL_HISTORY_EVENTS:
	case PL_HISTORY_PATHS:
	case PL_HISTORY_HOPS:
		return pl_append_init(&h->lists[store], params, base);
	case PL_HISTORY_FLOWS:
		return pl_key_write_init(&h->flows, params, base);
	case PL_HISTORY_QUEUES:
		return pl_key_write_init(&h->queues, params, base);
	default:
		return pl_counters_init(&h->drops, params, base);
	}
}

/* ---- life ---- */

static struct pl_history *new_history(const char *folder)
{
	struct pl_history *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->folder = strdup(folder);
	if (h->folder != NULL)
		return h;
	free(h);
	return NULL;
}

int pl_history_close(struct pl_history *h)
{
	int r = 0;

	if (h == NULL)
		return 0;
	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++) {
		int failed = pl_region_close(h->regions[s]);

		r = r == 0 ? failed : r;
	}
	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++) {
		free(h->trouble[s]);
		free(h->aside[s]);
	}
	free(h->folder);
	free(h);
	return r;
}

const char *pl_history_trouble(const struct pl_history *h, enum pl_history_store store)
{
	return h->trouble[store];
}

const struct pl_region *pl_history_region(const struct pl_history *h, enum pl_history_store store)
{
	return h->regions[store];
}

/* The text of `inner` behind the file's name, unless it has it. */
static int tell(struct pl_diag *diag, const char *path, const struct pl_diag *inner, int error)
{
	const char *text = inner->text[0] != '\0' ? inner->text : strerror(-error);

	if (strstr(text, path) != NULL)
		pl_diag_set(diag, "%s", text);
	else
		pl_diag_set(diag, "%s: %s", path, text);
	return error;
}

/* Compares the region's geometry with the one asked for; the seed may differ. */
static int compare(const struct pl_region *g, const struct pl_store_params *want, uint64_t slots,
	const char *path, struct pl_diag *diag)
{
	const struct pl_store_params *has = pl_region_params(g);

	if (has->primitive != want->primitive || has->hash != want->hash ||
		has->content != want->content) {
		pl_diag_set(diag, "%s is another kind of region: remove it", path);
		return -EINVAL;
	}
	if (memcmp(has->raw, want->raw, sizeof(has->raw)) == 0)
		return 0;
	pl_diag_set(diag,
		"%s was made for another size than %" PRIu64
		": configure that size, or remove the file",
		path, slots);
	return -EINVAL;
}

/* ---- renaming damaged files ---- */

/* Returns 0 when the path is free, and h->aside has the file's new name; otherwise the file kept
 * its name. */
static int set_aside(struct pl_history *h, enum pl_history_store store, const char *path)
{
	struct pl_diag why = { .text = "" };
	char *aside = NULL;
	int r = pl_region_set_aside(path, &aside, &why);

	if (r < 0)
		return r;
	free(h->aside[store]);
	h->aside[store] = aside;
	h->why[store] = why;
	return 0;
}

/* Gives the file its name back, unless another file has it by now. */
static void put_back(struct pl_history *h, enum pl_history_store store)
{
	char *path = h->aside[store] != NULL ? history_file(h->folder, store) : NULL;

	if (path != NULL)
		(void)renameat2(AT_FDCWD, h->aside[store], AT_FDCWD, path, RENAME_NOREPLACE);
	free(path);
	free(h->aside[store]);
	h->aside[store] = NULL;
}

/* Reports the renamed file, once all has succeeded. */
static void tell_aside(
	struct pl_history *h, enum pl_history_store store, const struct pl_history_options *o)
{
	struct pl_diag text = { .text = "" };
	char *path = h->aside[store] != NULL ? history_file(h->folder, store) : NULL;

	if (path != NULL && o->tell != NULL) {
		(void)tell(&text, path, &h->why[store], 0);
		pl_diag_set(&h->why[store], "%s; it was renamed to %s, and a new one begins",
			text.text, h->aside[store]);
		o->tell(h->why[store].text);
	}
	free(path);
	free(h->aside[store]);
	h->aside[store] = NULL;
}

#define TRIES 10 /* other processes may create or rename the file between two checks */

/* Opens the existing file; a damaged one is renamed, so that there is none. -EAGAIN when it is
 * another file by now. */
static int open_good(struct pl_history *h, enum pl_history_store store, const char *path,
	const struct pl_region_options *options, struct pl_diag *inner)
{
	int r = pl_region_open(&h->regions[store], path, PL_REGION_WRITE, options, inner), aside;

	if (r != -EBADMSG && r != -ERANGE)
		return r;
	aside = set_aside(h, store, path);
	if (aside == -EAGAIN || aside == -ENOENT || aside == -EBUSY)
		return -EAGAIN;
	return aside == 0 ? -ENOENT : r;
}

/* Opens the existing file, or makes it. *ret_made: it is new. */
static int open_or_make(struct pl_history *h, enum pl_history_store store,
	const struct pl_history_options *o, const char *path, bool *ret_made, struct pl_diag *inner)
{
	const struct pl_region_options options = { .sync_ns = o->sync_ns };
	struct pl_store_params fresh = params_of(store, o->slots[store]);
	int r = -EAGAIN;

	fresh.seed = o->seed != 0 ? o->seed : pl_hash_seed();
	for (int i = 0; i < TRIES && (r == -EAGAIN || r == -EEXIST); i++) {
		inner->text[0] = '\0';
		r = open_good(h, store, path, &options, inner);
		if (r != -ENOENT)
			continue;
		inner->text[0] = '\0';
		r = pl_region_create(&h->regions[store], path, &fresh, &options, inner);
		*ret_made = r == 0;
	}
	return r;
}

/* Makes or opens one region. */
static int begin_store(struct pl_history *h, enum pl_history_store store,
	const struct pl_history_options *o, bool *ret_made, struct pl_diag *diag)
{
	struct pl_store_params params = params_of(store, o->slots[store]);
	char *path = history_file(h->folder, store);
	struct pl_diag inner = { .text = "" };
	int r;

	if (path == NULL)
		return -ENOMEM;
	*ret_made = false;
	r = open_or_make(h, store, o, path, ret_made, &inner);
	if (r == 0 && !*ret_made)
		r = compare(h->regions[store], &params, o->slots[store], path, &inner);
	if (r == 0)
		r = history_attach(h, store);
	if (r < 0)
		r = tell(diag, path, &inner, r);
	else if (pl_region_mended(h->regions[store], &inner) > 0 && o->tell != NULL) {
		struct pl_diag text = { .text = "" };

		(void)tell(&text, path, &inner, 0);
		o->tell(text.text);
	}
	free(path);
	return r;
}

static void take_away(struct pl_history *h, const bool *made, bool folder)
{
	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++) {
		char *path = made[s] ? history_file(h->folder, s) : NULL;

		if (path != NULL)
			pl_region_unlink(h->regions[s], path);
		free(path);
		put_back(h, s);
	}
	if (folder)
		rmdir(h->folder);
}

int pl_history_begin(struct pl_history **ret, const char *folder,
	const struct pl_history_options *options, struct pl_diag *diag)
{
	struct pl_history *h = new_history(folder);
	bool made[PL_HISTORY_MAX] = { false }, made_folder;
	uint64_t bytes;
	int r;

	if (h == NULL)
		return -ENOMEM;
	r = pl_history_bytes(options, &bytes, diag);
	if (r < 0) {
		(void)pl_history_close(h);
		return r;
	}
	made_folder = mkdir(folder, 0750) == 0;
	if (!made_folder && errno != EEXIST) {
		r = -errno;
		pl_diag_set(diag, "%s: %s", folder, strerror(-r));
	}
	for (unsigned int s = 0; s < PL_HISTORY_MAX && r == 0; s++) {
		if (options->slots[s] > 0)
			r = begin_store(h, s, options, &made[s], diag);
	}
	if (r < 0) {
		take_away(h, made, made_folder);
		(void)pl_history_close(h);
		return r;
	}
	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++)
		tell_aside(h, s, options);
	*ret = h;
	return 0;
}

/* Store to which a file belongs by its contents; PL_HISTORY_MAX: none. */
static enum pl_history_store kind_of(const struct pl_store_params *p)
{
	bool last = p->primitive == PL_KEY_WRITE;

	/* Counters do not name their contents; those of a history have this layout. */
	if (p->primitive == PL_COUNTERS)
		return p->hash == PL_HASH_PATHLINE && p->counters.shared == 0 &&
				       p->counters.rows == DROP_ROWS
			       ? PL_HISTORY_DROPS
			       : PL_HISTORY_MAX;
	if (p->content == PL_CONTENT_EVENT && !last)
		return PL_HISTORY_EVENTS;
	if (p->content == PL_CONTENT_PATH && !last)
		return PL_HISTORY_PATHS;
	if (p->content == PL_CONTENT_HOP)
		return last ? PL_HISTORY_QUEUES : PL_HISTORY_HOPS;
	if (p->content == PL_CONTENT_PATH &&
		p->key_write.value_bytes == sizeof(struct pl_history_flow))
		return PL_HISTORY_FLOWS;
	return PL_HISTORY_MAX;
}

/* True when the entries can be read as those of this store. */
static bool fits(enum pl_history_store store, const struct pl_store_params *p)
{
	struct pl_store_params want = params_of(store, BATCH);

	if (p->primitive != want.primitive || p->content != want.content)
		return false;
	if (p->primitive == PL_APPEND)
		return p->append.entry_bytes == want.append.entry_bytes ||
		       (store == PL_HISTORY_PATHS &&
			       p->append.entry_bytes == sizeof(struct pl_path));
	return p->primitive != PL_KEY_WRITE ||
	       p->key_write.value_bytes == want.key_write.value_bytes;
}

/* Takes the region over. */
static int adopt(struct pl_history *h, enum pl_history_store store, struct pl_region *g,
	const char *path, struct pl_diag *diag)
{
	struct pl_diag inner = { .text = "" };
	int r;

	if (store == PL_HISTORY_MAX || !fits(store, pl_region_params(g))) {
		pl_diag_set(diag, "%s holds no records of a history", path);
		(void)pl_region_close(g);
		return -EINVAL;
	}
	h->regions[store] = g;
	r = history_attach(h, store);
	return r < 0 ? tell(diag, path, &inner, r) : 0;
}

/* Opens one file of a folder; -ENOENT when it is not there. */
static int open_store(struct pl_history *h, enum pl_history_store store, struct pl_diag *diag)
{
	char *path = history_file(h->folder, store);
	struct pl_diag inner = { .text = "" };
	struct pl_region *g;
	int r;

	if (path == NULL)
		return -ENOMEM;
	r = pl_region_open(&g, path, PL_REGION_READ, NULL, &inner);
	if (r == 0)
		r = adopt(h, store, g, path, diag);
	else if (r != -ENOENT)
		r = tell(diag, path, &inner, r);
	free(path);
	return r;
}

/* Opens all files that can be read. Returns the first error when none can. */
static int open_folder(struct pl_history *h, struct pl_diag *diag)
{
	struct pl_diag fault = { .text = "" };
	int first = -ENOENT;
	bool any = false;

	pl_diag_set(&fault, "%s: there is no history in it", h->folder);
	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++) {
		struct pl_diag one = { .text = "" };
		int r = open_store(h, s, &one);

		any |= r == 0;
		if (r == 0 || r == -ENOENT)
			continue;
		if (r == -ENOMEM)
			return r;
		(void)pl_region_close(h->regions[s]);
		h->regions[s] = NULL;
		h->trouble[s] = strdup(one.text);
		if (first == -ENOENT) {
			first = r;
			fault = one;
		}
	}
	if (any)
		return 0;
	if (diag != NULL)
		*diag = fault;
	return first;
}

static int open_file(struct pl_history *h, struct pl_diag *diag)
{
	struct pl_diag inner = { .text = "" };
	struct pl_region *g;
	int r = pl_region_open(&g, h->folder, PL_REGION_READ, NULL, &inner);

	h->single = true;
	return r < 0 ? tell(diag, h->folder, &inner, r)
		     : adopt(h, kind_of(pl_region_params(g)), g, h->folder, diag);
}

int pl_history_open(struct pl_history **ret, const char *path, struct pl_diag *diag)
{
	struct pl_history *h = new_history(path);
	struct stat st;
	int r;

	if (h == NULL)
		return -ENOMEM;
	if (stat(path, &st) < 0) {
		r = -errno;
		pl_diag_set(diag, "%s: %s", path, strerror(-r));
	} else {
		r = S_ISDIR(st.st_mode) ? open_folder(h, diag) : open_file(h, diag);
	}
	if (r < 0) {
		(void)pl_history_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

static bool is_replaced(const struct pl_history *h, enum pl_history_store store)
{
	struct stat was, is;
	bool replaced;
	char *path;

	if (h->regions[store] == NULL)
		return false;
	path = h->single ? strdup(h->folder) : history_file(h->folder, store);
	replaced = path != NULL && fstat(pl_region_fd(h->regions[store]), &was) == 0 &&
		   (stat(path, &is) < 0 || was.st_ino != is.st_ino || was.st_dev != is.st_dev);
	free(path);
	return replaced;
}

bool pl_history_replaced(const struct pl_history *h)
{
	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++) {
		if (is_replaced(h, s))
			return true;
	}
	return false;
}

/* Creates the file again; on failure the old one stays open. */
static int renew_store(struct pl_history *h, enum pl_history_store store,
	const struct pl_history_options *options, struct pl_diag *diag)
{
	struct pl_region *old = h->regions[store];
	bool made;
	int r;

	h->regions[store] = NULL;
	r = begin_store(h, store, options, &made, diag);
	if (r < 0) {
		(void)pl_region_close(h->regions[store]);
		h->regions[store] = old;
		(void)history_attach(h, store);
		put_back(h, store);
		return r;
	}
	(void)pl_region_close(old);
	tell_aside(h, store, options);
	return 0;
}

int pl_history_renew(
	struct pl_history *h, const struct pl_history_options *options, struct pl_diag *diag)
{
	int r = 0;

	/* The folder itself may have been moved; if it cannot be made, its files say so. */
	(void)mkdir(h->folder, 0750);
	for (unsigned int s = 0; s < PL_HISTORY_MAX && r == 0; s++) {
		if (is_replaced(h, s))
			r = renew_store(h, s, options, diag);
	}
	return r;
}
