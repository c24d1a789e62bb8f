/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates ports, cells, groups and tables of a pipeline, and finds them by name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "dataplane/pipeline_state.h"

static int check_new_name(
	bool taken, const char *name, unsigned int n, unsigned int max, struct pl_diag *diag)
{
	if (name[0] == '\0' || strlen(name) > PL_DP_NAME_MAX) {
		pl_diag_set(diag, "a name has 1 to %d bytes", PL_DP_NAME_MAX);
		return -EINVAL;
	}
	if (taken) {
		pl_diag_set(diag, "the name \"%s\" is there already", name);
		return -EINVAL;
	}
	if (n == max) {
		pl_diag_set(diag, "there are %u at most", max);
		return -EINVAL;
	}
	return 0;
}

/* ---- ports ---- */

int pl_dp_pipeline_port(struct pl_dp_pipeline *p, unsigned int number, uint64_t mac, uint32_t mtu,
	struct pl_diag *diag)
{
	if (number == 0 || number > PL_DP_PORTS_MAX) {
		pl_diag_set(diag, "ports have the numbers 1 to %d", PL_DP_PORTS_MAX);
		return -EINVAL;
	}
	if (p->gates[number].there) {
		pl_diag_set(diag, "there is a port %u already", number);
		return -EINVAL;
	}
	p->gates[number] = (struct pl_dp_gate){ .there = true, .up = true, .mac = mac, .mtu = mtu };
	return 0;
}

void pl_dp_pipeline_port_up(struct pl_dp_pipeline *p, unsigned int number, bool up)
{
	if (number <= PL_DP_PORTS_MAX)
		p->gates[number].up = up;
}

void pl_dp_pipeline_mac(struct pl_dp_pipeline *p, unsigned int number, uint64_t mac)
{
	if (number <= PL_DP_PORTS_MAX)
		p->gates[number].mac = mac;
}

uint32_t pl_dp_pipeline_node_id(const struct pl_dp_pipeline *p)
{
	return p->node_id;
}

uint32_t pl_dp_first_number(struct pl_dp_pipeline *p)
{
	return (uint32_t)pl_hash_mix(p->first_number, p->n_streams++);
}

/* ---- counters, meters, registers ---- */

void pl_dp_cells_free(struct pl_dp_cells_state *c)
{
	free(c->counters);
	free(c->registers);
	free(c->meters);
	free(c);
}

struct pl_dp_cells_state *pl_dp_cells_find(
	const struct pl_dp_pipeline *p, enum pl_dp_cells kind, const char *name, size_t len)
{
	for (unsigned int i = 0; i < p->cells[kind].n; i++) {
		struct pl_dp_cells_state *c = p->cells[kind].items[i];

		if (strlen(c->name) == len && memcmp(c->name, name, len) == 0)
			return c;
	}
	return NULL;
}

void pl_dp_cells_release(struct pl_dp_cells_state *c)
{
	struct pl_dp_named *list;
	unsigned int i = 0;

	if (c == NULL)
		return;
	c->users -= c->users > 0;
	if (c->users > 0 || !c->of_action)
		return;
	list = c->list;
	while (list->items[i] != c)
		i++;
	memmove(&list->items[i], &list->items[i + 1],
		(list->n - i - 1) * sizeof(struct pl_dp_cells_state *));
	list->n--;
	pl_dp_cells_free(c);
}

static int add_cells(struct pl_dp_pipeline *p, enum pl_dp_cells kind, const char *name,
	uint32_t size, struct pl_dp_cells_state **ret, struct pl_diag *diag)
{
	struct pl_dp_named *list = &p->cells[kind];
	struct pl_dp_cells_state *c;

	if (check_new_name(pl_dp_cells_find(p, kind, name, strlen(name)) != NULL, name, list->n,
		    PL_DP_NAMED_MAX, diag) < 0)
		return -EINVAL;
	if (size == 0 || size > PL_DP_CELLS_MAX) {
		pl_diag_set(diag, "\"%s\" has 1 to %u cells", name, PL_DP_CELLS_MAX);
		return -EINVAL;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->size = size;
	if (kind == PL_DP_COUNTERS)
		c->counters = calloc(size, sizeof(*c->counters));
	else if (kind == PL_DP_REGISTERS)
		c->registers = calloc(size, sizeof(*c->registers));
	else
		c->meters = calloc(size, sizeof(*c->meters));
	if (c->counters == NULL && c->registers == NULL && c->meters == NULL) {
		pl_dp_cells_free(c);
		return -ENOMEM;
	}
	c->list = list;
	list->items[list->n++] = c;
	*ret = c;
	return 0;
}

int pl_dp_pipeline_counter(
	struct pl_dp_pipeline *p, const char *name, uint32_t size, struct pl_diag *diag)
{
	struct pl_dp_cells_state *c;

	return add_cells(p, PL_DP_COUNTERS, name, size, &c, diag);
}

int pl_dp_pipeline_register(
	struct pl_dp_pipeline *p, const char *name, uint32_t size, struct pl_diag *diag)
{
	struct pl_dp_cells_state *c;

	return add_cells(p, PL_DP_REGISTERS, name, size, &c, diag);
}

int pl_dp_pipeline_meter(struct pl_dp_pipeline *p, const char *name, uint32_t size,
	const struct pl_dp_meter_cfg *cfg, struct pl_diag *diag)
{
	struct pl_dp_cells_state *c;
	int r;

	if (cfg->rate_bps == 0 || cfg->burst == 0 || cfg->burst > PL_DP_BURST_BYTES_MAX ||
		cfg->peak_burst > PL_DP_BURST_BYTES_MAX) {
		pl_diag_set(diag, "a meter has a rate and a burst of up to 1 GiB");
		return -EINVAL;
	}
	if (cfg->peak_bps != 0 && (cfg->peak_bps < cfg->rate_bps || cfg->peak_burst == 0)) {
		pl_diag_set(
			diag, "a peak rate is not below the committed rate, and has a peak_burst");
		return -EINVAL;
	}
	r = add_cells(p, PL_DP_METERS, name, size, &c, diag);
	if (r == 0)
		c->meter = *cfg;
	return r;
}

static void tell_cells(const struct pl_dp_cells_state *c,
	void (*each)(void *arg, const char *name, uint32_t index, const uint64_t values[3]),
	void *arg)
{
	for (uint32_t i = 0; i < c->size; i++) {
		uint64_t v[3] = { 0 };

		if (c->counters != NULL)
			memcpy(v, c->counters[i], sizeof(c->counters[i]));
		else if (c->registers != NULL)
			v[0] = c->registers[i];
		else
			memcpy(v, c->meters[i].packets, sizeof(v));
		each(arg, c->name, i, v);
	}
}

int pl_dp_pipeline_cells(const struct pl_dp_pipeline *p, enum pl_dp_cells kind, const char *name,
	void (*each)(void *arg, const char *name, uint32_t index, const uint64_t values[3]),
	void *arg, struct pl_diag *diag)
{
	static const char *const kinds[] = { "counter", "meter", "register" };
	const struct pl_dp_named *list = &p->cells[kind];
	bool found = name == NULL;

	for (unsigned int i = 0; i < list->n; i++) {
		if (name != NULL && strcmp(list->items[i]->name, name) != 0)
			continue;
		found = true;
		tell_cells(list->items[i], each, arg);
	}
	if (found)
		return 0;
	pl_diag_set(diag, "there is no %s \"%s\"", kinds[kind], name);
	return -ENOENT;
}

/* ---- groups ---- */

struct pl_dp_group *pl_dp_group_find(const struct pl_dp_pipeline *p, const char *name)
{
	for (unsigned int i = 0; i < p->n_groups; i++) {
		if (strcmp(p->groups[i]->name, name) == 0)
			return p->groups[i];
	}
	return NULL;
}

bool pl_dp_pipeline_has_group(const struct pl_dp_pipeline *p, const char *name)
{
	return pl_dp_group_find(p, name) != NULL;
}

int pl_dp_pipeline_group(struct pl_dp_pipeline *p, const char *name, struct pl_diag *diag)
{
	struct pl_dp_group *g;

	if (check_new_name(pl_dp_group_find(p, name) != NULL, name, p->n_groups, PL_DP_NAMED_MAX,
		    diag) < 0)
		return -EINVAL;
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return -ENOMEM;
	snprintf(g->name, sizeof(g->name), "%s", name);
	p->groups[p->n_groups++] = g;
	return 0;
}

/* ---- tables ---- */

int pl_dp_table_index(const struct pl_dp_pipeline *p, const char *name)
{
	for (unsigned int i = 0; i < p->n_tables; i++) {
		if (strcmp(p->tables[i]->name, name) == 0)
			return (int)i;
	}
	return -1;
}

int pl_dp_pipeline_table(struct pl_dp_pipeline *p, const char *name, enum pl_dp_stage stage,
	uint32_t size, const char *const *key, size_t n, size_t *ret_bad, struct pl_diag *diag)
{
	struct pl_dp_table *t;
	int r = 0;

	*ret_bad = n;
	if (check_new_name(
		    pl_dp_table_index(p, name) >= 0, name, p->n_tables, PL_DP_TABLES_MAX, diag) < 0)
		return -EINVAL;
	if (size == 0 || size > PL_DP_ENTRIES_MAX) {
		pl_diag_set(diag, "\"%s\" has room for 1 to %d entries", name, PL_DP_ENTRIES_MAX);
		return -EINVAL;
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->stage = stage;
	t->size = size;
	for (size_t k = 0; r == 0 && k < n; k++) {
		r = pl_dp_key_add(&t->key, key[k], diag);
		if (r < 0)
			*ret_bad = k;
	}
	if (r == 0)
		r = pl_dp_lookup_new(&t->lookup, &t->key, NULL, 0);
	if (r < 0) {
		free(t);
		return r;
	}
	for (unsigned int i = 0; i < t->key.n; i++)
		p->hashes |= t->key.fields[i].field == PL_DP_FIELD_FLOW_HASH;
	p->tables[p->n_tables++] = t;
	return 0;
}

void pl_dp_pipeline_tables(const struct pl_dp_pipeline *p,
	void (*each)(void *arg, const char *name, enum pl_dp_stage stage, size_t entries,
		uint64_t hits, uint64_t misses),
	void *arg)
{
	for (unsigned int i = 0; i < p->n_tables; i++) {
		const struct pl_dp_table *t = p->tables[i];

		each(arg, t->name, t->stage, t->n, t->hits, t->misses);
	}
}
