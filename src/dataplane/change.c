/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes entries: all changes of a set or none. Each table that changes gets a draft, which
 * replaces its entries when every change of the set was accepted and every lookup is built. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "dataplane/pipeline_state.h"

struct draft {
	bool begun;
	struct pl_dp_entry **entries; /* entries after the change */
	size_t n, cap;
	struct pl_dp_entry **gone, **made; /* removed from the table; created by this change */
	size_t n_gone, cap_gone, n_made, cap_made;
	/* Hash table by match: index of an entry, from 1 on; 0: free, GRAVE: deleted. */
	uint32_t *slots;
	size_t n_slots, used;
	struct pl_dp_lookup *lookup;
};

struct change {
	struct pl_dp_pipeline *p;
	struct draft drafts[PL_DP_TABLES_MAX];
	uint64_t serial;
	struct pl_diag *diag;
};

#define GRAVE UINT32_MAX

void pl_dp_entry_free(struct pl_dp_entry *e)
{
	if (e == NULL)
		return;
	pl_dp_actions_free(e->actions);
	free(e);
}

/* ---- an index of entries by what they match ---- */

static uint64_t hash_of_bound(const struct pl_dp_bound *b)
{
	const uint64_t h = pl_hash_mix(pl_hash_mix(b->first, b->last), b->period);

	return pl_hash_mix(h, (uint64_t)b->at << 1 | b->window);
}

/* Returns the first slot to probe. Bounds may be in any order. */
static size_t slot_of(const struct draft *d, const struct pl_dp_match *m)
{
	uint64_t h = pl_hash(m->value, sizeof(m->value), m->priority), bounds = 0;

	for (unsigned int i = 0; i < m->n_bounds; i++)
		bounds += hash_of_bound(&m->bounds[i]);
	h = pl_hash_mix(h, pl_hash(m->mask, sizeof(m->mask), m->prefix));
	return pl_hash_mix(h, bounds) & (d->n_slots - 1);
}

static void index_put(struct draft *d, uint32_t at)
{
	size_t slot = slot_of(d, &d->entries[at]->match);

	while (d->slots[slot] != 0)
		slot = (slot + 1) & (d->n_slots - 1);
	d->slots[slot] = at + 1;
	d->used++;
}

/* Makes room for one more entry, so that half of the slots stay free; drops slots of removed
 * entries. -ENOMEM. */
static int index_grow(struct draft *d)
{
	size_t n = 16;
	uint32_t *slots;

	if (d->n_slots > 0 && (d->used + 1) * 2 <= d->n_slots)
		return 0;
	while (n < (d->n + 1) * 4)
		n *= 2;
	slots = calloc(n, sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	free(d->slots);
	d->slots = slots;
	d->n_slots = n;
	d->used = 0;
	for (size_t i = 0; i < d->n; i++)
		index_put(d, (uint32_t)i);
	return 0;
}

/* Returns the slot of the entry with an equal match; NULL when there is none. */
static uint32_t *index_find(
	const struct draft *d, const struct pl_dp_key *key, const struct pl_dp_match *m)
{
	size_t slot = slot_of(d, m);

	for (; d->slots[slot] != 0; slot = (slot + 1) & (d->n_slots - 1)) {
		if (d->slots[slot] != GRAVE &&
			pl_dp_match_equal(key, &d->entries[d->slots[slot] - 1]->match, m))
			return &d->slots[slot];
	}
	return NULL;
}

/* ---- drafts ---- */

static int push(struct pl_dp_entry ***list, size_t *n, size_t *cap, struct pl_dp_entry *e)
{
	if (*n == *cap) {
		const size_t more = *cap > 0 ? *cap * 2 : 16;
		/* NOLINTNEXTLINE(bugprone-sizeof-expression): a list of pointers */
		struct pl_dp_entry **grown = realloc(*list, more * sizeof(e));

		if (grown == NULL)
			return -ENOMEM;
		*list = grown;
		*cap = more;
	}
	(*list)[(*n)++] = e;
	return 0;
}

static int begin(struct draft *d, const struct pl_dp_table *t)
{
	if (d->begun)
		return 0;
	for (size_t i = 0; i < t->n; i++) {
		if (push(&d->entries, &d->n, &d->cap, t->entries[i]) < 0)
			return -ENOMEM;
	}
	d->begun = true;
	return index_grow(d);
}

/* Removes an entry from the draft. Entries of the table are freed in commit(); those that this
 * change created are freed with `made`. */
static int leave(struct draft *d, struct pl_dp_entry *e)
{
	return e->made ? 0 : push(&d->gone, &d->n_gone, &d->cap_gone, e);
}

static int take_out(struct draft *d, uint32_t *slot)
{
	const uint32_t at = *slot - 1, last = (uint32_t)d->n - 1;
	int r = leave(d, d->entries[at]);

	if (r < 0)
		return r;
	*slot = GRAVE;
	if (at != last) {
		size_t s = slot_of(d, &d->entries[last]->match);

		while (d->slots[s] != last + 1)
			s = (s + 1) & (d->n_slots - 1);
		d->slots[s] = at + 1;
		d->entries[at] = d->entries[last];
	}
	d->n--;
	return 0;
}

static int put_in(struct change *c, struct draft *d, const struct pl_dp_match *match,
	const char *actions, int t)
{
	struct pl_dp_entry *e = calloc(1, sizeof(*e));
	struct pl_dp_actions *a = NULL;
	int r;

	if (e == NULL)
		return -ENOMEM;
	r = pl_dp_actions_parse(c->p, t, actions, &a, c->diag);
	e->match = *match;
	e->actions = a;
	e->serial = ++c->serial;
	e->made = true;
	if (r == 0)
		r = index_grow(d);
	if (r == 0)
		r = push(&d->made, &d->n_made, &d->cap_made, e);
	if (r < 0) {
		pl_dp_entry_free(e);
		return r;
	}
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list of those made has it */
	r = push(&d->entries, &d->n, &d->cap, e);
	if (r == 0)
		index_put(d, (uint32_t)d->n - 1);
	return r;
}

/* Replaces an entry: the new one takes over counters and serial. */
static int replace(struct change *c, struct draft *d, uint32_t *slot,
	const struct pl_dp_match *match, const char *actions, int t)
{
	struct pl_dp_entry *old = d->entries[*slot - 1], *e = calloc(1, sizeof(*e));
	struct pl_dp_actions *a = NULL;
	int r;

	if (e == NULL)
		return -ENOMEM;
	r = pl_dp_actions_parse(c->p, t, actions, &a, c->diag);
	*e = *old;
	e->match = *match;
	e->actions = a;
	e->made = true;
	if (r == 0)
		r = push(&d->made, &d->n_made, &d->cap_made, e);
	if (r < 0) {
		pl_dp_entry_free(e);
		return r;
	}
	r = leave(d, old);
	if (r == 0)
		d->entries[*slot - 1] = e;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list of those made has it */
	return r;
}

/* ---- one change ---- */

static int clear(struct draft *d)
{
	for (size_t i = 0; i < d->n; i++) {
		int r = leave(d, d->entries[i]);

		if (r < 0)
			return r;
	}
	d->n = d->used = d->n_slots = 0;
	return index_grow(d);
}

/* Parses the match of an entry; *ret_actions is the text behind the arrow, NULL without an
 * arrow. */
static int split(const struct change *c, const struct pl_dp_change *x, const struct pl_dp_key *key,
	struct pl_dp_match *match, const char **ret_actions)
{
	const char *arrow = strstr(x->entry, "->");

	*ret_actions = arrow != NULL ? arrow + 2 : NULL;
	if (arrow == NULL && x->kind != PL_DP_DELETE) {
		pl_diag_set(c->diag, "the entry has no actions: write \"%s -> ACTION; ACTION\"",
			x->entry);
		return -EINVAL;
	}
	return pl_dp_match_parse(key, x->entry,
		arrow != NULL ? (size_t)(arrow - x->entry) : strlen(x->entry), match, c->diag);
}

static int unknown_table(const struct change *c, const char *name)
{
	const char *names[PL_DP_TABLES_MAX];

	for (unsigned int i = 0; i < c->p->n_tables; i++)
		names[i] = c->p->tables[i]->name;
	pl_diag_set(c->diag, "there is no table \"%s\"", name);
	pl_diag_nearest(c->diag, '"', name, names, c->p->n_tables);
	return -ENOENT;
}

static int change_one(struct change *c, const struct pl_dp_change *x)
{
	const int i = pl_dp_table_index(c->p, x->table);
	const struct pl_dp_table *t;
	struct draft *d;
	struct pl_dp_match match;
	const char *actions;
	uint32_t *slot;
	int r;

	if (i < 0)
		return unknown_table(c, x->table);
	t = c->p->tables[i];
	d = &c->drafts[i];
	r = begin(d, t);
	if (r < 0)
		return r;
	if (x->kind == PL_DP_CLEAR)
		return clear(d);
	r = split(c, x, &t->key, &match, &actions);
	if (r < 0)
		return r;
	slot = index_find(d, &t->key, &match);
	if (x->kind == PL_DP_DELETE) {
		if (slot != NULL)
			return take_out(d, slot);
		pl_diag_set(c->diag, "table %s has no entry with this match", t->name);
		return -ENOENT;
	}
	if (slot != NULL && x->kind == PL_DP_SET)
		return replace(c, d, slot, &match, actions, i);
	if (slot != NULL) {
		pl_diag_set(c->diag,
			"table %s has an entry that matches the same with the same priority; use set to replace it",
			t->name);
		return -EEXIST;
	}
	if (t->key.n == 0) {
		pl_diag_set(c->diag, "table %s has no key, so it has no entries", t->name);
		return -EINVAL;
	}
	if (d->n == t->size) {
		pl_diag_set(
			c->diag, "table %s is full: it has room for %u entries", t->name, t->size);
		return -ENOSPC;
	}
	return put_in(c, d, &match, actions, i);
}

/* ---- the set ---- */

static void discard(struct change *c)
{
	for (unsigned int i = 0; i < c->p->n_tables; i++) {
		struct draft *d = &c->drafts[i];

		for (size_t k = 0; k < d->n_made; k++)
			pl_dp_entry_free(d->made[k]);
		pl_dp_lookup_free(d->lookup);
		free(d->entries);
		free(d->gone);
		free(d->made);
		free(d->slots);
	}
}

/* Frees entries that this change created and removed again. */
static void free_unused(struct draft *d)
{
	for (size_t i = 0; i < d->n; i++)
		d->entries[i]->made = false;
	for (size_t i = 0; i < d->n_made; i++) {
		if (d->made[i]->made)
			pl_dp_entry_free(d->made[i]);
	}
}

static void commit(struct change *c)
{
	for (unsigned int i = 0; i < c->p->n_tables; i++) {
		struct draft *d = &c->drafts[i];
		struct pl_dp_table *t = c->p->tables[i];

		if (!d->begun)
			continue;
		free_unused(d);
		for (size_t k = 0; k < d->n_gone; k++)
			pl_dp_entry_free(d->gone[k]);
		pl_dp_lookup_free(t->lookup);
		free(t->entries);
		t->entries = d->entries;
		t->n = d->n;
		t->lookup = d->lookup;
		free(d->gone);
		free(d->made);
		free(d->slots);
	}
	c->p->serial = c->serial;
}

static int add_watcher(struct pl_dp_watcher **list, size_t *n, const struct pl_dp_actions *a)
{
	for (unsigned int i = 0; a != NULL && i < a->n; i++) {
		struct pl_dp_watcher *grown;

		if (a->steps[i].ext == NULL || a->steps[i].ext->dropped == NULL)
			continue;
		grown = realloc(*list, (*n + 1) * sizeof(**list));
		if (grown == NULL)
			return -ENOMEM;
		*list = grown;
		grown[(*n)++] = (struct pl_dp_watcher){ a->steps[i].ext, a->steps[i].state };
	}
	return 0;
}

/* Lists the actions to call for drops; for tables with a draft, those of the draft's entries. */
static int make_watchers(const struct pl_dp_pipeline *p, const struct draft *drafts,
	struct pl_dp_watcher **ret, size_t *ret_n)
{
	int r = 0;

	*ret = NULL;
	*ret_n = 0;
	for (unsigned int i = 0; r == 0 && i < p->n_tables; i++) {
		const bool changed = drafts != NULL && drafts[i].begun;
		struct pl_dp_entry *const *entries =
			changed ? drafts[i].entries : p->tables[i]->entries;
		const size_t n = changed ? drafts[i].n : p->tables[i]->n;

		r = add_watcher(ret, ret_n, p->tables[i]->miss);
		for (size_t k = 0; r == 0 && k < n; k++)
			r = add_watcher(ret, ret_n, entries[k]->actions);
	}
	for (unsigned int i = 0; r == 0 && i < p->n_groups; i++) {
		for (unsigned int k = 0; r == 0 && k < p->groups[i]->n; k++)
			r = add_watcher(ret, ret_n, p->groups[i]->members[k]);
	}
	if (r < 0) {
		free(*ret);
		*ret = NULL;
	}
	return r;
}

int pl_dp_watchers_make(struct pl_dp_pipeline *p)
{
	struct pl_dp_watcher *made;
	size_t n;
	int r = make_watchers(p, NULL, &made, &n);

	if (r < 0)
		return r;
	free(p->watchers);
	p->watchers = made;
	p->n_watchers = n;
	return 0;
}

int pl_dp_pipeline_change(struct pl_dp_pipeline *p, const struct pl_dp_change *changes, size_t n,
	size_t *ret_bad, struct pl_diag *diag)
{
	struct change *c = calloc(1, sizeof(*c));
	struct pl_dp_watcher *watchers = NULL;
	size_t n_watchers = 0;
	int r = 0;

	*ret_bad = 0;
	if (c == NULL)
		return -ENOMEM;
	c->p = p;
	c->serial = p->serial;
	c->diag = diag;
	for (size_t i = 0; r == 0 && i < n; i++) {
		*ret_bad = i;
		r = change_one(c, &changes[i]);
	}
	for (unsigned int i = 0; r == 0 && i < p->n_tables; i++) {
		if (c->drafts[i].begun)
			r = pl_dp_lookup_new(&c->drafts[i].lookup, &p->tables[i]->key,
				c->drafts[i].entries, c->drafts[i].n);
	}
	if (r == 0)
		r = make_watchers(p, c->drafts, &watchers, &n_watchers);
	if (r < 0) {
		discard(c);
	} else {
		commit(c);
		free(p->watchers);
		p->watchers = watchers;
		p->n_watchers = n_watchers;
	}
	free(c);
	return r;
}
