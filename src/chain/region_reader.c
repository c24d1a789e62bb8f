/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens regions of other writers, to show them. */
#include "chain/region_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS UINT64_C(1000000000)

static void close_all(struct pl_region_reader *items, unsigned int n)
{
	for (unsigned int i = 0; items != NULL && i < n; i++) {
		(void)pl_region_close(items[i].region);
		free(items[i].name);
		free(items[i].path);
	}
	free(items);
}

int pl_region_readers_init(struct pl_region_readers *r, const char *const *names,
	const char *const *paths, unsigned int n)
{
	*r = (struct pl_region_readers){ .n = n };
	r->items = calloc(n > 0 ? n : 1, sizeof(*r->items));
	if (r->items == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++) {
		r->items[i].name = strdup(names[i]);
		r->items[i].path = strdup(paths[i]);
		if (r->items[i].name == NULL || r->items[i].path == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int open_regions(struct pl_region_readers *r, struct pl_diag *diag)
{
	int e = 0;

	(void)pl_region_guard();
	for (unsigned int i = 0; e == 0 && i < r->n; i++)
		e = pl_region_open(
			&r->items[i].region, r->items[i].path, PL_REGION_READ, NULL, diag);
	return e;
}

struct swap {
	struct pl_region_readers *r, *other;
};

/* Runs between two turns, when no page reads them. */
static void swap(void *arg)
{
	const struct swap *s = arg;
	struct pl_region_reader *items = s->r->items;
	const unsigned int n = s->r->n;

	s->r->items = s->other->items;
	s->r->n = s->other->n;
	s->other->items = items;
	s->other->n = n;
}

int pl_region_readers_change(struct pl_region_readers *r, const char *const *names,
	const char *const *paths, unsigned int n, struct pl_diag *diag)
{
	struct pl_region_readers fresh;
	struct swap both = { r, &fresh };
	int e = pl_region_readers_init(&fresh, names, paths, n);

	if (e == 0)
		e = open_regions(&fresh, diag);
	if (e == 0)
		pl_runtime_visit(swap, &both);
	pl_region_readers_done(&fresh);
	return e;
}

void pl_region_readers_done(struct pl_region_readers *r)
{
	close_all(r->items, r->n);
	r->items = NULL;
	r->n = 0;
}

/* ---- as a service ---- */

static int files(void *s, struct pl_confine *confine)
{
	const struct pl_region_readers *r = s;
	int e = 0;

	for (unsigned int i = 0; e == 0 && i < r->n; i++)
		e = pl_confine_path(confine, r->items[i].path, false);
	return e;
}

static int open_service(void *s, struct pl_diag *diag)
{
	return open_regions(s, diag);
}

/* Follows the file of the name: another process may have made it again. Until there is one, the old
 * mapping is shown. */
static void follow(struct pl_region_reader *reader, struct pl_conditions *ret)
{
	const bool cut = pl_region_is_cut(reader->region);
	struct pl_region *fresh;

	if (!cut && pl_region_is_at(reader->region, reader->path))
		return;
	if (pl_region_open(&fresh, reader->path, PL_REGION_READ, NULL, NULL) < 0) {
		if (cut)
			pl_condition_add(ret, PL_CONDITION_FAULT, "region_truncated",
				"region %s was truncated: writes beyond its end are lost",
				reader->path);
		else
			pl_condition_add(ret, PL_CONDITION_FAULT, "region_removed",
				"region %s was removed: it is looked for again", reader->path);
		return;
	}
	(void)pl_region_close(reader->region);
	reader->region = fresh;
}

/* During a turn no page reads them. */
static int turn(void *s, const struct pollfd *fds, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_region_readers *r = s;
	struct pl_conditions list;

	(void)fds;
	(void)diag;
	if (now_ns < r->next_ns)
		return PL_TURN_IDLE;
	pl_conditions_clear(&list);
	for (unsigned int i = 0; i < r->n; i++)
		follow(&r->items[i], &list);
	pl_condition_board_put(&r->conditions, &list);
	r->next_ns = now_ns + LOOK_NS;
	return PL_TURN_IDLE;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	const struct pl_region_readers *r = s;

	(void)now_ns;
	return r->n > 0 ? r->next_ns : UINT64_MAX;
}

static void conditions(void *s, struct pl_conditions *ret)
{
	struct pl_region_readers *r = s;

	pl_condition_board_get(&r->conditions, ret);
}

static void regions(void *s, struct pl_region_list *ret)
{
	const struct pl_region_readers *r = s;

	for (unsigned int i = 0; i < r->n; i++)
		pl_region_list_add(ret, r->items[i].region, r->items[i].name);
}

const struct pl_service_ops pl_region_reader_service = {
	.name = "regions",
	.files = files,
	.open = open_service,
	.turn = turn,
	.due_ns = due_ns,
	.conditions = conditions,
	.regions = regions,
};
