/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the actions of entries from text. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "dataplane/pipeline_state.h"
#include "dataplane/rewrite.h"

#define WORDS_MAX  8
#define ACTION_MAX 512

static const char *const names[] = {
#define PL_DP_ACTION(id, name, args, help) name,
#include "dataplane/actions.def"
#undef PL_DP_ACTION
};
static const char *const arguments[] = {
#define PL_DP_ACTION(id, name, args, help) args,
#include "dataplane/actions.def"
#undef PL_DP_ACTION
};

#define ACTIONS (sizeof(names) / sizeof(names[0]))

static const struct pl_dp_extern *const externs[] = {
#define PL_DP_EXTERN(id) &pl_dp_extern_##id,
#include "dataplane/externs.def"
#undef PL_DP_EXTERN
	NULL,
};

/* State of parsing one action: its words in a copy of its text, split at blanks. */
struct parser {
	struct pl_dp_pipeline *p;
	int table; /* number of the table; -1: a member of a group */
	enum pl_dp_stage stage;
	struct pl_diag *diag;
	char text[ACTION_MAX];
	char *words[WORDS_MAX];
	unsigned int n;
	struct pl_dp_step *step;
};

static int refuse_arguments(const struct parser *x, unsigned int action)
{
	pl_diag_set(x->diag, "action %s: write \"%s%s%s\"", names[action], names[action],
		arguments[action][0] != '\0' ? " " : "", arguments[action]);
	return -EINVAL;
}

/* ---- arguments ---- */

static int read_port(const struct parser *x, const char *word)
{
	uint64_t n;

	if (pl_parse_u64(word, &n) < 0 || n > PL_DP_PORTS_MAX || !x->p->gates[n].there) {
		pl_diag_set(x->diag, "\"%s\" is not the number of a port of this switch", word);
		return -EINVAL;
	}
	x->step->port = (uint16_t)n;
	return 0;
}

static int read_u64(const struct parser *x, const char *word, uint64_t max, uint64_t *ret)
{
	if (pl_parse_u64(word, ret) == 0 && *ret <= max)
		return 0;
	pl_diag_set(x->diag, "\"%s\" is not a number up to %" PRIu64, word, max);
	return -EINVAL;
}

static int read_mac(const struct parser *x, const char *word)
{
	if (pl_dp_mac_parse(word, &x->step->value[0]) == 0)
		return 0;
	pl_diag_set(x->diag, "\"%s\" is not a MAC address such as 02:00:00:00:00:01", word);
	return -EINVAL;
}

/* Parses the name of a field that holds a single number. */
static int read_field(const struct parser *x, const char *word, uint8_t *ret)
{
	enum pl_dp_field f = pl_dp_field_find(word, strlen(word), x->diag);

	if (f == PL_DP_FIELD_MAX)
		return -EINVAL;
	if (pl_dp_fields[f].words > 1) {
		pl_diag_set(x->diag, "%s is an address, not a number", pl_dp_fields[f].name);
		return -EINVAL;
	}
	*ret = (uint8_t)f;
	return 0;
}

/* Parses NAME, NAME[3], NAME[FIELD] or NAME[FIELD+3]. */
static int read_cell(const struct parser *x, enum pl_dp_cells kind, char *word)
{
	static const char *const kinds[] = { "counter", "meter", "register" };
	char *bracket = strchr(word, '[');
	const size_t len = bracket != NULL ? (size_t)(bracket - word) : strlen(word);
	struct pl_dp_cells_state *c = pl_dp_cells_find(x->p, kind, word, len);
	const char *all[PL_DP_NAMED_MAX];
	uint64_t index;

	if (c == NULL) {
		for (unsigned int i = 0; i < x->p->cells[kind].n; i++)
			all[i] = x->p->cells[kind].items[i]->name;
		pl_diag_set(x->diag, "there is no %s \"%.*s\"", kinds[kind], (int)len, word);
		pl_diag_nearest(x->diag, '"', word, all, x->p->cells[kind].n);
		return -EINVAL;
	}
	x->step->cells = c;
	if (bracket == NULL)
		return 0;
	if (bracket[strlen(bracket) - 1] != ']') {
		pl_diag_set(x->diag, "\"%s\" has no ] behind its index", word);
		return -EINVAL;
	}
	bracket[strlen(bracket) - 1] = '\0';
	if (pl_parse_u64(bracket + 1, &index) < 0) {
		char *plus = strchr(bracket + 1, '+');

		if (plus != NULL) {
			*plus = '\0';
			if (read_u64(x, plus + 1, c->size - 1, &index) < 0)
				return -EINVAL;
			x->step->index = (uint32_t)index;
		}
		return read_field(x, bracket + 1, &x->step->index_field);
	}
	if (index >= c->size) {
		pl_diag_set(x->diag, "%s has %" PRIu32 " cells, from 0 on; \"%s\" is none of them",
			c->name, c->size, bracket + 1);
		return -EINVAL;
	}
	x->step->index = (uint32_t)index;
	return 0;
}

/* Parses the mask of VALUE&MASK; bits outside the mask keep their values. */
static int read_mask(const struct parser *x, enum pl_dp_field f, const char *text)
{
	const uint64_t all =
		pl_dp_fields[f].bits < 64 ? (UINT64_C(1) << pl_dp_fields[f].bits) - 1 : UINT64_MAX;
	uint64_t mask;

	if (pl_dp_fields[f].kind == PL_DP_FIELD_ADDR || pl_dp_fields[f].kind == PL_DP_FIELD_MAC ||
		pl_parse_u64(text, &mask) < 0 || mask == 0 || mask > all) {
		pl_diag_set(x->diag,
			"\"&%s\" is no mask of %s: a number of its bits, of numbers only", text,
			pl_dp_fields[f].name);
		return -EINVAL;
	}
	x->step->mask = all & ~mask;
	x->step->value[0] &= mask;
	return 0;
}

static int read_set(const struct parser *x)
{
	enum pl_dp_field f = pl_dp_field_find(x->words[1], strlen(x->words[1]), x->diag);
	char *mask = strchr(x->words[2], '&');

	if (f == PL_DP_FIELD_MAX)
		return -EINVAL;
	if (!pl_dp_field_is_written(f)) {
		pl_diag_set(x->diag, "%s cannot be set", pl_dp_fields[f].name);
		return -EINVAL;
	}
	x->step->field = (uint8_t)f;
	if (mask != NULL)
		*mask++ = '\0';
	if (pl_dp_value_parse(f, x->words[2], x->step->value, x->diag) < 0)
		return -EINVAL;
	return mask != NULL ? read_mask(x, f, mask) : 0;
}

static int read_first(const struct parser *x)
{
	char *slash = strchr(x->words[2], '/');

	if (read_cell(x, PL_DP_REGISTERS, x->words[1]) < 0)
		return -EINVAL;
	if (slash != NULL)
		*slash++ = '\0';
	if (slash != NULL && pl_parse_duration(x->words[2], &x->step->value[0]) == 0 &&
		pl_parse_duration(slash, &x->step->mask) == 0 && x->step->value[0] < x->step->mask)
		return 0;
	pl_diag_set(x->diag,
		"action first: OFFSET/PERIOD is such as 0s/1s, with an offset below the period");
	return -EINVAL;
}

static int read_write(const struct parser *x)
{
	const char *value = x->words[2];

	if (read_cell(x, PL_DP_REGISTERS, x->words[1]) < 0)
		return -EINVAL;
	x->step->add = value[0] == '+';
	value += x->step->add;
	return pl_parse_u64(value, &x->step->value[0]) == 0
		       ? 0
		       : read_field(x, value, &x->step->value_field);
}

static int read_group(const struct parser *x)
{
	const char *all[PL_DP_NAMED_MAX];

	x->step->group = pl_dp_group_find(x->p, x->words[1]);
	if (x->step->group != NULL)
		return 0;
	for (unsigned int i = 0; i < x->p->n_groups; i++)
		all[i] = x->p->groups[i]->name;
	pl_diag_set(x->diag, "there is no group \"%s\"", x->words[1]);
	pl_diag_nearest(x->diag, '"', x->words[1], all, x->p->n_groups);
	return -EINVAL;
}

static int read_goto(const struct parser *x)
{
	int to = pl_dp_table_index(x->p, x->words[1]);

	if (x->table < 0 || to <= x->table || x->p->tables[to]->stage != x->stage) {
		pl_diag_set(x->diag, "\"%s\" is not a later table of the same stage", x->words[1]);
		return -EINVAL;
	}
	x->step->index = (uint32_t)to;
	return 0;
}

/* ---- actions ---- */

static unsigned int words_of(unsigned int action)
{
	unsigned int n = 1;

	for (const char *s = arguments[action]; *s != '\0'; s++)
		n += s == arguments[action] || s[-1] == ' ';
	return n;
}

/* Checks the action's place: actions that choose a port or queue are for ingress only; members of a
 * group cannot select, goto or stop. */
static int check_place(const struct parser *x, unsigned int action)
{
	switch (action) {
	case PL_DP_ACTION_FORWARD:
	case PL_DP_ACTION_ROUTE:
	case PL_DP_ACTION_FLOOD:
	case PL_DP_ACTION_QUEUE:
	case PL_DP_ACTION_SELECT:
		if (x->stage != PL_DP_EGRESS)
			break;
		pl_diag_set(x->diag, "action %s is for ingress tables: behind the queue it is late",
			names[action]);
		return -EINVAL;
	default:
		break;
	}
	if (x->table < 0 && (action == PL_DP_ACTION_SELECT || action == PL_DP_ACTION_GOTO ||
				    action == PL_DP_ACTION_STOP)) {
		pl_diag_set(x->diag, "action %s is for entries, not for members of a group",
			names[action]);
		return -EINVAL;
	}
	return 0;
}

static int read_arguments(const struct parser *x, unsigned int action)
{
	struct pl_dp_step *s = x->step;

	switch ((enum pl_dp_action)action) {
	case PL_DP_ACTION_FORWARD:
	case PL_DP_ACTION_MIRROR:
		return read_port(x, x->words[1]);
	case PL_DP_ACTION_ROUTE:
		return read_port(x, x->words[1]) < 0 ? -EINVAL : read_mac(x, x->words[2]);
	case PL_DP_ACTION_SET:
		return read_set(x);
	case PL_DP_ACTION_PUSH_VLAN:
	case PL_DP_ACTION_PUSH_SVLAN:
		return read_u64(x, x->words[1], 4094, &s->value[0]);
	case PL_DP_ACTION_QUEUE:
		return read_u64(x, x->words[1], 7, &s->value[0]);
	case PL_DP_ACTION_MARK:
		return read_u64(x, x->words[1], UINT8_MAX, &s->value[0]);
	case PL_DP_ACTION_COUNT:
		return read_cell(x, PL_DP_COUNTERS, x->words[1]);
	case PL_DP_ACTION_METER:
	case PL_DP_ACTION_POLICE:
		return read_cell(x, PL_DP_METERS, x->words[1]);
	case PL_DP_ACTION_READ:
		return read_cell(x, PL_DP_REGISTERS, x->words[1]);
	case PL_DP_ACTION_WRITE:
		return read_write(x);
	case PL_DP_ACTION_FIRST:
		return read_first(x);
	case PL_DP_ACTION_SELECT:
		return read_group(x);
	case PL_DP_ACTION_GOTO:
		return read_goto(x);
	case PL_DP_ACTION_FLOOD:
	case PL_DP_ACTION_DROP:
	case PL_DP_ACTION_TTL:
	case PL_DP_ACTION_POP_VLAN:
	case PL_DP_ACTION_STOP:
	case PL_DP_ACTION_EXTERN:
		break;
	}
	return 0;
}

static const struct pl_dp_extern *find_extern(const struct parser *x, const char *name)
{
	for (const struct pl_dp_extern *const *e = externs; *e != NULL; e++) {
		if (strcmp((*e)->name, name) == 0)
			return *e;
	}
	for (const struct pl_dp_extern *const *e = x->p->externs; e != NULL && *e != NULL; e++) {
		if (strcmp((*e)->name, name) == 0)
			return *e;
	}
	return NULL;
}

static int unknown(const struct parser *x)
{
	const char *all[ACTIONS + 64];
	unsigned int n = 0;

	for (; n < ACTIONS; n++)
		all[n] = names[n];
	for (const struct pl_dp_extern *const *e = externs; *e != NULL && n < ACTIONS + 64; e++)
		all[n++] = (*e)->name;
	for (const struct pl_dp_extern *const *e = x->p->externs;
		e != NULL && *e != NULL && n < ACTIONS + 64; e++)
		all[n++] = (*e)->name;
	pl_diag_set(x->diag, "unknown action \"%s\"", x->words[0]);
	pl_diag_nearest(x->diag, '"', x->words[0], all, n);
	return -EINVAL;
}

static int make_extern(struct parser *x, const struct pl_dp_extern *e, const char *rest)
{
	int r;

	if (x->stage == PL_DP_INGRESS ? !e->ingress : !e->egress) {
		pl_diag_set(x->diag, "action %s is for %s tables", e->name,
			e->ingress ? "ingress" : "egress");
		return -EINVAL;
	}
	x->p->shared = NULL;
	r = e->make(x->p, rest, &x->step->state, x->diag);
	x->step->cells = x->p->shared;
	if (r == 0) {
		x->step->action = PL_DP_ACTION_EXTERN;
		x->step->ext = e;
	}
	return r;
}

/* Parses the action in x->text into x->step. */
static int read_action(struct parser *x)
{
	char whole[ACTION_MAX], *save = NULL;
	const struct pl_dp_extern *e;
	unsigned int action = 0;
	int r;

	memcpy(whole, x->text, sizeof(whole));
	x->n = 0;
	for (char *w = strtok_r(x->text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
		if (x->n < WORDS_MAX)
			x->words[x->n] = w;
		x->n++;
	}
	if (x->n == 0) {
		pl_diag_set(x->diag, "an action is missing");
		return -EINVAL;
	}
	*x->step = (struct pl_dp_step){ .index_field = PL_DP_FIELD_MAX,
		.value_field = PL_DP_FIELD_MAX };
	while (action < ACTIONS && strcmp(names[action], x->words[0]) != 0)
		action++;
	if (action == ACTIONS) {
		e = find_extern(x, x->words[0]);
		return e == NULL ? unknown(x)
				 : make_extern(x, e,
					   whole + (x->words[0] - x->text) + strlen(e->name) +
						   (x->n > 1));
	}
	if (x->n != words_of(action))
		return refuse_arguments(x, action);
	if (check_place(x, action) < 0)
		return -EINVAL;
	x->step->action = (uint8_t)action;
	r = read_arguments(x, action);
	if (r == 0 &&
		(action == PL_DP_ACTION_SELECT || x->step->index_field == PL_DP_FIELD_FLOW_HASH ||
			x->step->value_field == PL_DP_FIELD_FLOW_HASH))
		x->p->hashes = true;
	return r;
}

void pl_dp_actions_free(struct pl_dp_actions *a)
{
	if (a == NULL)
		return;
	for (unsigned int i = 0; i < a->n; i++) {
		if (a->steps[i].ext != NULL && a->steps[i].ext->free != NULL)
			a->steps[i].ext->free(a->steps[i].state);
		pl_dp_cells_release(a->steps[i].cells);
	}
	free(a->text);
	free(a);
}

/* Copies the next action of the text into x->text, without blanks around it. */
static int cut(struct parser *x, const char **text)
{
	const char *begin = *text + strspn(*text, " ");
	size_t len = strcspn(begin, ";");

	*text = begin + len;
	while (len > 0 && begin[len - 1] == ' ')
		len--;
	if (len >= ACTION_MAX) {
		pl_diag_set(x->diag, "an action has %d bytes at most", ACTION_MAX - 1);
		return -EINVAL;
	}
	memcpy(x->text, begin, len);
	memset(x->text + len, 0, ACTION_MAX - len);
	return 0;
}

int pl_dp_actions_parse(struct pl_dp_pipeline *p, int table, const char *text,
	struct pl_dp_actions **ret, struct pl_diag *diag)
{
	struct pl_dp_actions *a = calloc(
				     1, sizeof(*a) + PL_DP_STEPS_MAX * sizeof(struct pl_dp_step)),
			     *fit;
	struct parser x = { .p = p,
		.table = table,
		.stage = table < 0 ? PL_DP_INGRESS : p->tables[table]->stage,
		.diag = diag };
	const size_t skip = strspn(text, " ");
	int r = 0;

	if (a == NULL)
		return -ENOMEM;
	a->text = strdup(text + skip);
	if (a->text == NULL) {
		r = -ENOMEM;
		goto fail;
	}
	for (;;) {
		if (a->n == PL_DP_STEPS_MAX) {
			pl_diag_set(diag, "an entry has %d actions at most", PL_DP_STEPS_MAX);
			r = -EINVAL;
			goto fail;
		}
		x.step = &a->steps[a->n];
		r = cut(&x, &text);
		if (r == 0)
			r = read_action(&x);
		if (x.step->cells != NULL)
			x.step->cells->users++;
		if (r < 0) {
			pl_dp_cells_release(x.step->cells);
			goto fail;
		}
		a->n++;
		if (*text == '\0')
			break;
		text++;
	}
	fit = realloc(a, sizeof(*a) + a->n * sizeof(struct pl_dp_step));
	*ret = fit != NULL ? fit : a;
	return 0;
fail:
	pl_dp_actions_free(a);
	return r;
}
