/* SPDX-License-Identifier: BSD-2-Clause */
/* Folds: their variables and steps over a row of cells, and how their parts could be merged. */
#include <string.h>

#include "lang/accumulator.h"

/* Cells of a fold's row: the variables, the names of the step, the inputs. */
#define FIRST_LOCAL FOLD_STATES_MAX
#define FIRST_INPUT FOLD_INPUT_CELL
#define LOCALS_MAX  (FIRST_INPUT - FIRST_LOCAL)
#define INPUTS_MAX  (PL_QUERY_COLUMNS_MAX - FIRST_INPUT)

/* Dependence of an expression on the variables: none, a * x + b, or another. */
enum dependence { OF_RECORD, LINEAR, OTHER };

struct maker {
	struct checker c; /* checks names of `names` */
	struct fold *fold;
	struct schema names;
	uint32_t n_record;                       /* names that are columns of records */
	uint8_t cells[2 * PL_QUERY_COLUMNS_MAX]; /* cells of the names behind those */
	enum dependence locals[LOCALS_MAX];
	bool used[LOCALS_MAX];
	uint32_t local_at[LOCALS_MAX];
};

struct ast_fold *pl_query_find_fold(
	const struct checker *c, const char *name, const char **ret_state)
{
	const char *point = strchr(name, '.');

	for (struct ast_fold *f = point != NULL ? c->folds : NULL; f != NULL; f = f->next) {
		if (strlen(f->name) == (size_t)(point - name) &&
			strncmp(f->name, name, (size_t)(point - name)) == 0) {
			*ret_state = point + 1;
			return f;
		}
	}
	return NULL;
}

/* ---- names ---- */

static const struct column *add_name(
	struct maker *m, const char *name, enum pl_query_type type, uint32_t cell)
{
	struct column *column = &m->names.columns[m->names.n];

	*column = (struct column){ .name = name,
		.unit = "",
		.offset = ROW_HEAD + cell * CELL_BYTES,
		.width = cell_width(type),
		.type = type,
		.absent = (int8_t)cell,
		.mask = UINT64_MAX,
		.is = 1,
		.or_is = 1 };
	m->cells[m->names.n - m->n_record] = (uint8_t)cell;
	m->names.n++;
	m->fold->row.columns[cell] = *column;
	return column;
}

/* Cell of a column of the fold's row; -1 for a column of the record. */
static int cell_of(const struct maker *m, const struct column *column)
{
	if (column >= m->fold->row.columns && column < m->fold->row.columns + PL_QUERY_COLUMNS_MAX)
		return (int)(column - m->fold->row.columns);
	if (column >= m->names.columns + m->n_record && column < m->names.columns + m->names.n)
		return m->cells[column - m->names.columns - m->n_record];
	return -1;
}

/* The names of a step: the columns of records, when there are any, and the variables. */
static bool begin_names(struct maker *m, const struct schema *record)
{
	const struct fold *fold = m->fold;

	m->n_record = record != NULL ? record->n : 0;
	m->names = (struct schema){ .n = m->n_record };
	m->names.columns = pl_query_new(
		m->c.lx, (m->n_record + PL_QUERY_COLUMNS_MAX) * sizeof(*m->names.columns));
	if (m->names.columns == NULL)
		return false;
	if (record != NULL)
		memcpy(m->names.columns, record->columns, record->n * sizeof(*record->columns));
	for (uint32_t i = 0; i < fold->n_states; i++)
		add_name(m, fold->states[i].name, fold->row.columns[i].type, i);
	m->c.schema = &m->names;
	return true;
}

/* ---- expressions over records become inputs ---- */

static bool depends(const struct maker *m, const struct node *node)
{
	if (node == NULL)
		return false;
	if (node->column != NULL && cell_of(m, node->column) >= 0)
		return true;
	return depends(m, node->a) || depends(m, node->b) || depends(m, node->c);
}

static const struct node *as_input(struct maker *m, const struct node *node)
{
	struct fold *fold = m->fold;
	struct column *column;
	uint32_t i = 0;

	while (i < fold->n_inputs && !pl_query_same(fold->inputs[i], node))
		i++;
	column = &fold->row.columns[FIRST_INPUT + i];
	if (i == fold->n_inputs) {
		if (i == INPUTS_MAX)
			return pl_query_check_error(&m->c, node->at,
				"the fold \"%s\" uses more than %d columns", fold->name,
				INPUTS_MAX);
		column->name = "";
		column->type = node->type;
		column->width = cell_width(node->type);
		column->input = node;
		fold->inputs[fold->n_inputs++] = node;
	}
	return pl_query_column_node(&m->c, column, node->at);
}

static const struct node *take_inputs(struct maker *m, const struct node *node)
{
	struct node *made;

	if (node == NULL || node->op == N_CONST)
		return node;
	/* END has no record: a constant there is no input. */
	if (!depends(m, node))
		return m->n_record > 0 ? as_input(m, node) : node;
	if (node->op == N_COLUMN)
		return node;
	made = pl_query_node(&m->c, node->op, node->type, node->at);
	if (made == NULL)
		return NULL;
	*made = *node;
	made->a = take_inputs(m, node->a);
	made->b = take_inputs(m, node->b);
	made->c = take_inputs(m, node->c);
	return m->c.failed ? NULL : made;
}

static const struct node *check_expr(struct maker *m, const struct ast *ast)
{
	const struct node *node = pl_query_check(&m->c, ast);

	if (node != NULL && node->type == PL_QUERY_LIST)
		return pl_query_check_error(&m->c, ast->at, "a fold has no lists");
	node = node != NULL ? take_inputs(m, node) : NULL;
	if (node != NULL && pl_query_vectors(node) > VECTORS_MAX)
		return pl_query_check_error(&m->c, ast->at, "the expression is too deep");
	return node;
}

/* ---- how parts would be merged ---- */

static enum dependence worse(enum dependence a, enum dependence b)
{
	return a > b ? a : b;
}

static enum dependence dependence(const struct maker *m, const struct node *node)
{
	enum dependence a, b, c;
	int cell;

	if (node == NULL || node->op == N_CONST)
		return OF_RECORD;
	if (node->column != NULL) {
		cell = cell_of(m, node->column);
		if (cell >= 0 && cell < FIRST_LOCAL)
			return node->op == N_COLUMN ? LINEAR : OTHER;
		return cell >= FIRST_LOCAL && cell < FIRST_INPUT ? m->locals[cell - FIRST_LOCAL]
								 : OF_RECORD;
	}
	a = dependence(m, node->a);
	b = dependence(m, node->b);
	c = dependence(m, node->c);
	if (a == OF_RECORD && b == OF_RECORD && c == OF_RECORD)
		return OF_RECORD;
	switch (node->op) {
	case N_ADD:
	case N_SUB:
		return worse(a, b);
	case N_NEG:
	case N_TO_DOUBLE:
	case N_TO_SIGNED:
		return a;
	case N_MUL:
		return a == OF_RECORD || b == OF_RECORD ? worse(a, b) : OTHER;
	case N_DIV: /* integer division rounds */
		return b == OF_RECORD && node->type == PL_QUERY_DOUBLE ? a : OTHER;
	case N_IF:
		return a == OF_RECORD ? worse(b, c) : OTHER;
	default:
		return OTHER;
	}
}

static bool is_variable(const struct maker *m, const struct node *node, uint32_t i)
{
	return node != NULL && node->op == N_COLUMN && cell_of(m, node->column) == (int)i;
}

/* Way to merge variable i that its assignment allows. */
static enum fold_merge merge_of(const struct maker *m, const struct node *node, uint32_t i)
{
	const bool first = is_variable(m, node->a, i), second = is_variable(m, node->b, i);
	const struct node *other = first ? node->b : node->a;

	if (first != second && dependence(m, other) == OF_RECORD) {
		const bool constant = m->fold->states[i].init->op == N_CONST;

		if (node->op == N_GREATEST)
			return FOLD_GREATEST;
		if (node->op == N_LEAST)
			return FOLD_LEAST;
		if (constant && (node->op == N_ADD || (node->op == N_SUB && first)))
			return FOLD_ADD;
	}
	return dependence(m, node) == OTHER ? FOLD_NONE : FOLD_LINEAR;
}

static void note_merge(struct maker *m, const struct node *node, uint32_t i)
{
	struct fold_state *state = &m->fold->states[i];
	enum fold_merge merge = merge_of(m, node, i);

	if (!state->assigned)
		state->merge = merge;
	else if (state->merge != merge)
		state->merge =
			merge > FOLD_LINEAR || state->merge > FOLD_LINEAR ? FOLD_NONE : FOLD_LINEAR;
	state->assigned = true;
}

static void conclude(struct fold *fold)
{
	for (uint32_t i = 0; i < fold->n_states; i++) {
		struct fold_state *state = &fold->states[i];

		if (!state->assigned)
			state->merge = state->init->op == N_CONST ? FOLD_KEEP : FOLD_NONE;
		if (state->merge > fold->merge)
			fold->merge = state->merge;
	}
	if (fold->emits)
		fold->merge = FOLD_NONE;
}

/* ---- variables and steps ---- */

static bool is_taken(struct maker *m, const char *name, uint32_t at)
{
	if (pl_query_find_column(&m->names, name, NULL) == NULL)
		return false;
	pl_query_check_error(
		&m->c, at, "\"%s\" is a column already: give the variable another name", name);
	return true;
}

static bool take_states(struct maker *m, const struct ast_fold *ast, const struct schema *record)
{
	struct fold *fold = m->fold;
	struct schema names;

	if (!begin_names(m, record))
		return false;
	names = m->names; /* a first value can use fields of the record only */
	for (const struct ast_item *i = ast->states; i != NULL; i = i->next) {
		struct fold_state *state = &fold->states[fold->n_states];

		if (fold->n_states == FOLD_STATES_MAX)
			return pl_query_refuse(
				&m->c, i->at, "more than %d variables", FOLD_STATES_MAX);
		if (is_taken(m, i->name, i->at))
			return false;
		m->c.schema = &names;
		state->name = i->name;
		state->init = check_expr(m, i->expr);
		m->c.schema = &m->names;
		if (state->init == NULL)
			return false;
		add_name(m, i->name, state->init->type, fold->n_states++);
	}
	return true;
}

/* The value for a variable, of its type. */
static const struct node *fit(
	struct maker *m, const struct node *node, const char *name, enum pl_query_type type)
{
	if (node->type == type)
		return node;
	if (type <= PL_QUERY_DOUBLE && node->type < type)
		return pl_query_convert(&m->c, node, type);
	return pl_query_check_error(&m->c, node->at,
		"\"%s\" begins as a value of type %s, and this is of type %s: begin it with one%s",
		name, pl_query_type_name(type), pl_query_type_name(node->type),
		type == PL_QUERY_UNSIGNED && node->type == PL_QUERY_SIGNED ? " (-0), or use abs()"
		: node->type == PL_QUERY_DOUBLE                            ? " (0.0)"
									   : "");
}

static bool assign(struct maker *m, struct fold_step *step, const struct ast_item *item)
{
	const struct column *column = pl_query_find_column(&m->names, item->name, NULL);
	const struct node *node = check_expr(m, item->expr);
	uint32_t locals = m->fold->n_locals;
	int cell = column != NULL ? cell_of(m, column) : -1;

	if (node == NULL)
		return false;
	if (column != NULL && cell < 0)
		return !is_taken(m, item->name, item->at);
	if (cell < 0) {
		if (locals == LOCALS_MAX)
			return pl_query_refuse(
				&m->c, item->at, "more than %d names in a fold", LOCALS_MAX);
		cell = FIRST_LOCAL + (int)locals;
		m->locals[locals] = dependence(m, node);
		m->local_at[locals] = item->at;
		add_name(m, item->name, node->type, (uint32_t)cell);
		m->fold->n_locals++;
	} else {
		node = fit(m, node, item->name, m->fold->row.columns[cell].type);
		if (node == NULL)
			return false;
		if (cell < FIRST_LOCAL)
			note_merge(m, node, (uint32_t)cell);
		else
			m->locals[cell - FIRST_LOCAL] =
				worse(m->locals[cell - FIRST_LOCAL], dependence(m, node));
	}
	*step = (struct fold_step){ .node = node, .to = (uint8_t)cell };
	return true;
}

static bool emit(struct maker *m, struct fold_step *step, const struct ast_item *item)
{
	*step = (struct fold_step){ .emit = true };
	m->fold->emits = true;
	if (item->expr == NULL)
		return true;
	step->node = pl_query_check_bool(&m->c, check_expr(m, item->expr), "EMIT WHEN");
	return step->node != NULL;
}

static void note_used(struct maker *m, const struct node *node)
{
	if (node == NULL)
		return;
	if (node->column != NULL) {
		int local = cell_of(m, node->column) - FIRST_LOCAL;

		if (local >= 0 && local < LOCALS_MAX)
			m->used[local] = true;
	}
	note_used(m, node->a);
	note_used(m, node->b);
	note_used(m, node->c);
}

/* A name that nothing reads is a mistake in writing: most often a variable's. */
static bool all_used(struct maker *m)
{
	const struct fold *fold = m->fold;
	const char *names[FOLD_STATES_MAX];
	char hint[NAME_MAX_LEN + 32];

	for (uint32_t i = 0; i < fold->n_states; i++)
		names[i] = fold->states[i].name;
	for (uint32_t i = 0; i < fold->n_locals; i++) {
		const char *name = fold->row.columns[FIRST_LOCAL + i].name;

		if (m->used[i])
			continue;
		return pl_query_refuse(&m->c, m->local_at[i],
			"\"%s\" is no variable of the fold, and nothing uses it%s", name,
			pl_query_did_you_mean(hint, sizeof(hint), name, names, fold->n_states));
	}
	return true;
}

static bool take_steps(
	struct maker *m, const struct ast_item *items, struct fold_step *steps, uint32_t *n)
{
	for (const struct ast_item *i = items; i != NULL; i = i->next) {
		if (*n == FOLD_STEPS_MAX)
			return pl_query_refuse(&m->c, i->at, "more than %d steps", FOLD_STEPS_MAX);
		if (!(i->name != NULL ? assign(m, &steps[*n], i) : emit(m, &steps[*n], i)))
			return false;
		note_used(m, steps[(*n)++].node);
	}
	return true;
}

static bool make(struct maker *m, const struct ast_fold *ast, const struct schema *record)
{
	struct fold *fold = m->fold;

	if (!pl_query_row_schema(m->c.lx, PL_QUERY_COLUMNS_MAX, &fold->row) ||
		!take_states(m, ast, record) ||
		!take_steps(m, ast->steps, fold->steps, &fold->n_steps))
		return false;
	conclude(fold);
	/* At the end there is no record, and the names of the step are not valid. */
	return begin_names(m, NULL) && take_steps(m, ast->end, fold->end, &fold->n_end) &&
	       all_used(m);
}

/* ---- in the stage ---- */

static struct fold *fold_of(struct checker *c, struct ast_fold *ast)
{
	struct stage *stage = c->stage;
	struct maker *m;

	for (uint32_t i = 0; i < stage->n_folds; i++) {
		if (stage->folds[i]->name == ast->name)
			return stage->folds[i];
	}
	if (stage->n_folds == FOLDS_MAX) {
		pl_query_check_error(c, ast->at, "more than %d folds in one query", FOLDS_MAX);
		return NULL;
	}
	m = pl_query_new(c->lx, sizeof(*m));
	if (m != NULL)
		m->fold = pl_query_new(c->lx, sizeof(*m->fold));
	if (m == NULL || m->fold == NULL)
		return NULL;
	m->c = *c;
	m->c.aliases = m->c.failed = false;
	m->fold->name = ast->name;
	m->fold->at = ast->at;
	ast->used = true;
	if (!make(m, ast, &stage->input)) {
		c->failed = true;
		return NULL;
	}
	m->fold->offset = stage->acc_bytes;
	stage->acc_bytes += (uint32_t)sizeof(struct acc_fold) + m->fold->n_states * CELL_BYTES;
	stage->folds[stage->n_folds++] = m->fold;
	return m->fold;
}

static int find_state(struct checker *c, const struct fold *fold, const char *name, uint32_t at)
{
	const char *names[FOLD_STATES_MAX];
	char hint[NAME_MAX_LEN + 32];

	for (uint32_t i = 0; i < fold->n_states; i++) {
		names[i] = fold->states[i].name;
		if (strcmp(names[i], name) == 0)
			return (int)i;
	}
	pl_query_check_error(c, at, "the fold \"%s\" has no variable \"%s\"%s", fold->name, name,
		pl_query_did_you_mean(hint, sizeof(hint), name, names, fold->n_states));
	return -1;
}

int pl_query_check_fold(struct checker *c, const struct ast *ast)
{
	struct stage *stage = c->stage;
	const char *name;
	struct ast_fold *definition = pl_query_find_fold(c, ast->name, &name);
	struct fold *fold = fold_of(c, definition);
	struct agg agg;
	bool first = true;
	int state;

	if (fold == NULL)
		return -1;
	state = find_state(c, fold, name, ast->at);
	if (state < 0)
		return -1;
	for (uint32_t i = 0; i < stage->n_aggs; i++) {
		if (stage->aggs[i].fold != fold)
			continue;
		first = false;
		if (stage->aggs[i].k == (uint32_t)state)
			return (int)i;
	}
	agg = (struct agg){ .kind = AGG_FOLD,
		.type = fold->row.columns[state].type,
		.k = (uint32_t)state,
		.offset = fold->offset,
		.size = first ? (uint32_t)sizeof(struct acc_fold) + fold->n_states * CELL_BYTES : 0,
		.at = ast->at,
		.fold = fold };
	return pl_query_add_agg(c, &agg, fold->states[state].name) != NULL ? (int)stage->n_aggs - 1
									   : -1;
}

/* Rows of sub-queries have an order when they were put in one, or as a fold made them. */
static bool has_order(const struct stage *stage)
{
	const struct stage *from = stage->n_sources == 1 ? stage->sources[0].stage : NULL;

	return stage->n_sources == 0 || (from != NULL && (from->order >= 0 || from->emits));
}

bool pl_query_check_folds(struct checker *c)
{
	struct stage *stage = c->stage;
	const enum window_kind window = c->query->window.kind;

	for (uint32_t i = 0; i < stage->n_aggs; i++) {
		const struct agg *agg = &stage->aggs[i];
		const bool merges = agg->kind == AGG_FOLD && agg->fold->merge <= FOLD_LEAST;
		const char *fault = NULL;

		if (agg->kind != AGG_FOLD && agg->kind != AGG_EWMA)
			continue;
		stage->emits = stage->emits || (agg->kind == AGG_FOLD && agg->fold->emits);
		if (!has_order(stage))
			fault = "is of records in their order; rows of sub-queries have one with "
				"ORDER BY";
		else if (stage->emit_first && agg->kind == AGG_FOLD)
			fault = "does not go together with EMIT FIRST: it says itself when to EMIT";
		else if (window == W_SESSION && stage->emits)
			fault = "emits rows, and a session gives one row: use TUMBLE";
		else if (window != W_NONE && window != W_TUMBLE && !merges)
			fault = "cannot be merged from parts, which this window is made of: use "
				"TUMBLE";
		if (fault != NULL)
			return pl_query_refuse(c, agg->at, "%s %s",
				agg->kind == AGG_FOLD ? agg->fold->name : "ewma", fault);
	}
	for (uint32_t i = 0; stage->emits && i < stage->n_aggs; i++) {
		if (stage->aggs[i].fold == stage->aggs[0].fold && stage->aggs[i].fold != NULL)
			continue;
		return pl_query_refuse(c, stage->aggs[i].at,
			"beside a fold that emits rows there is no other fold or aggregate");
	}
	return true;
}
