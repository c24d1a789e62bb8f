/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plan of a query. Every stage reads records of one form, its input: those of a stream, or the rows
 * of sub-queries. It filters them and makes groups; the finished groups are records again, of the
 * form `groups`, from which the items of the result are made. So expressions are evaluated over
 * records everywhere, by expr.c.
 *
 * Rows between stages begin with 8 bytes of which bit i tells that column i, of the first 64, is
 * absent, and with 16 bytes of their origin (struct row_origin); then come the columns, 16 bytes
 * each.
 */
#pragma once

#include "lang/arena.h"
#include "lang/ast.h"
#include "lang/lang.h"

#define CELL_BYTES  16
#define ROW_HEAD    24
#define JOINS_MAX   8
#define STAGES_MAX  16
#define VECTORS_MAX 48 /* most vectors of an expression */

/* Bytes of a value in a cell. */
static inline uint8_t cell_width(enum pl_query_type type)
{
	return type == PL_QUERY_ADDR ? 16 : 8;
}

/* Origin of a row: the earliest time of its records, and a bit for each of their observation
 * points, as the run numbers them. */
struct row_origin {
	uint64_t first_ns, exp;
};

/* A column of records. */
struct column {
	const char *name, *source, *unit; /* source: alias of its sub-query, or NULL */
	uint32_t offset;
	uint8_t width; /* bytes; a text of records has more than 8 */
	enum pl_query_type type;
	bool qualified;    /* named only as source.name: an earlier column has its name */
	int8_t absent;     /* bit of the row's first word; -1: never absent */
	enum pl_form form; /* for a column of paths, hops, events and values; else U8 */
	bool time;         /* made of a column of times; see pl_query_is_time */
	bool of_path;      /* stream of hops: a column of the hop's path */
	/* 1 + the kind of the record at the offset, whose Community ID this text is; 0: the text is
	 * at the offset. */
	uint8_t id_of;
	/* The column is present when one of these bits is set in the 32 bits at the offset; 0:
	 * always. */
	uint32_t present, present_at;
	uint8_t shift;
	uint64_t mask; /* applied behind the shift */
	/* BOOL of a stream: true when the value under the mask is one of the two. */
	uint64_t is, or_is;
	const struct node *input; /* row of a fold: expression over records that makes it */
};

struct schema {
	uint32_t n, n_plain; /* those from n_plain on are derived, and not part of "*" */
	uint32_t size;       /* bytes of a record */
	struct column *columns;
};

enum node_op {
	N_CONST,
	N_COLUMN,
	N_TEST, /* column of numbers: (value - lo <= span) != invert, the value under the mask */
	N_PREFIX,
	N_NEG,
	N_NOT,
	N_ADD,
	N_SUB,
	N_MUL,
	N_DIV,
	N_MOD,
	N_BIT_AND,
	N_BIT_OR,
	N_COMPARE,
	N_AND,
	N_OR,
	N_TO_SIGNED,
	N_TO_DOUBLE,
	N_V4,
	N_COALESCE,
	N_IF, /* a ? b : c */
	N_ABS,
	N_LEAST,
	N_GREATEST,
	N_EXISTS,   /* presence of a column */
	N_EACH_HOP, /* path: some hop for which `a` is true; with `invert` all hops */
};

struct node {
	enum node_op op;
	enum pl_query_type type; /* of the result */
	enum token_kind compare; /* COMPARE: T_EQ … T_GE */
	uint8_t bits;            /* PREFIX */
	bool invert;
	uint32_t at;
	const struct node *a, *b, *c;
	const struct column *column;
	uint64_t mask, lo, span;
	union {
		uint64_t u;
		double d;
		const char *text; /* text of the query */
		struct pl_addr addr;
	};
};

enum agg_kind {
	AGG_COUNT,
	AGG_COUNT_DISTINCT,
	AGG_SUM,
	AGG_MIN,
	AGG_MAX,
	AGG_AVG,
	AGG_STDDEV,
	AGG_FIRST,
	AGG_LAST,
	AGG_BIT_OR,
	AGG_APPROX_DISTINCT,
	AGG_QUANTILE,
	AGG_TOPK,
	AGG_HIST,
	AGG_EWMA, /* q: weight of the newest value */
	AGG_FOLD, /* a variable of a fold */
};

#define DISTINCT_ARGS_MAX 8

struct agg {
	enum agg_kind kind;
	enum pl_query_type type; /* of the result */
	uint8_t n_args;
	const struct node *args[DISTINCT_ARGS_MAX];
	double q;
	uint32_t k;
	uint32_t offset, size; /* place in the group's accumulators */
	uint32_t at;
	const struct fold *fold; /* FOLD: k is the variable's number; size: 0 but for the first */
};

/* Ways to merge the values that a variable has in two parts of the records. */
enum fold_merge {
	FOLD_KEEP,     /* never assigned */
	FOLD_ADD,      /* x = x + …: the sum */
	FOLD_GREATEST, /* x = greatest(x, …) */
	FOLD_LEAST,
	FOLD_LINEAR, /* a * x + b, a and b of the record: needs the parts' order; not merged */
	FOLD_NONE,   /* cannot be merged */
};

struct fold_state {
	const char *name;
	const struct node *init; /* over `row`; the variable's value at the first record */
	enum fold_merge merge;
	bool assigned;
};

#define FOLD_STATES_MAX 16
#define FOLD_STEPS_MAX  32
#define FOLDS_MAX       4  /* most folds of a stage */
#define FOLD_INPUT_CELL 32 /* cells before the inputs: 16 variables, 16 names */

struct fold_step {
	const struct node *node; /* over `row`; EMIT: the condition, or NULL */
	uint8_t to;              /* cell of `row` that is assigned */
	bool emit;
};

/*
 * A fold of a stage. Its expressions are over a row of cells: the variables, then the names of the
 * step, then the inputs, which are expressions over records without variables, evaluated for a
 * whole batch. The accumulator is a struct acc_fold.
 */
struct fold {
	const char *name;
	uint32_t offset, at; /* offset of the accumulator in the group's; place in the text */
	uint32_t n_states, n_locals, n_inputs, n_steps, n_end;
	struct fold_state states[FOLD_STATES_MAX];
	const struct node *inputs[PL_QUERY_COLUMNS_MAX];
	struct fold_step steps[FOLD_STEPS_MAX], end[FOLD_STEPS_MAX];
	struct schema row;
	enum fold_merge merge; /* worst of its variables */
	bool emits;
};

struct key {
	const struct node *node;
	uint32_t offset; /* offset in the key */
	uint8_t width;   /* 1, 2, 4, 8, 16 */
};

#define PAIR_KEYS_MAX 30

struct join_key {
	const struct column *left, *right;
};

struct stage;

struct join {
	enum join_kind kind;
	struct stage *stage;
	uint32_t n_keys;
	struct join_key *keys;
	struct schema out; /* columns of the sources before, and this one's */
};

/* Pairs of records of two streams: their keys are equal, and their times at most `within_ns` apart.
 * A row is 8 bytes, whose bit 1 says that there is no right record, then the record of the left,
 * then that of the right. */
struct pairs {
	enum join_kind kind;
	uint64_t within_ns;
	uint32_t at;            /* place of WITHIN in the text */
	struct stage *sides[2]; /* scans, without items */
	uint32_t n_keys, key_bytes;
	struct key *keys[2];   /* keys over the records of a side, in the same places of the key */
	struct schema both;    /* columns of a row */
	const struct node *on; /* LEFT, ANTI: further condition of a pair, over `both`; or NULL */
};

/* Rows of two stages that come from the same record. A row is that of a join, and behind it the
 * record's time, 8 bytes. */
struct zip {
	struct stage *sides[2];
};

struct stage {
	uint32_t number;
	uint32_t at; /* place of its source in the text */
	/* Input: a stream when n_sources is 0. */
	unsigned int kind;
	uint32_t n_sources;
	struct join sources[JOINS_MAX];
	struct zip *zip;     /* the sources are rows of the same record */
	struct pairs *pairs; /* input: a scan of these pairs; kind is PL_QUERY_STREAMS */
	struct schema input;
	struct schema hops;        /* stream of paths: columns of a hop */
	const struct column *time; /* time of a stream's records */

	const struct node *where[16]; /* all of them must hold */
	uint32_t n_where;

	bool grouped;
	uint32_t n_keys, n_aggs;
	struct key keys[PL_QUERY_COLUMNS_MAX];
	struct agg aggs[PL_QUERY_COLUMNS_MAX];
	uint32_t key_bytes; /* with the words of the window and of absent columns in front */
	uint32_t acc_bytes;
	struct fold *folds[FOLDS_MAX];
	uint32_t n_folds;
	bool emits;           /* a fold makes the rows */
	struct schema groups; /* columns: keys, then aggregates */
	const struct node *having;

	uint32_t n_items;
	const struct node *items[PL_QUERY_ITEMS_MAX];
	struct schema out;
	int order; /* number of the item; -1: none */
	bool descending, has_limit, emit_first;
	uint64_t limit;
};

struct pl_query {
	struct arena arena;
	char *text;
	struct stage *stages[STAGES_MAX]; /* a sub-query comes before the stage that reads it; the
					   * last stage makes the result */
	uint32_t n_stages;
	struct ast_window window; /* window of all stages */
	uint64_t within_ns;       /* longest WITHIN; 0: none */
	bool paths_of_hops;       /* columns of the path of a hop are read */
	bool marks;               /* the column with marks of rules is read */
	bool texts;               /* columns of texts are read */
	bool explain;             /* the plan is wanted */
	const char *into;         /* NULL: none */
	struct pl_query_column columns[PL_QUERY_ITEMS_MAX];
};

/* clauses.c: length that divides all windows, which are not W_NONE: they begin and end at multiples of
 * it. */
uint64_t pl_query_windows_pane(const struct ast_window *spec);
/* lang.c: finds the source of a join that has the column with this number of the input; *number becomes
 * that of its own columns. */
uint32_t pl_query_source_of(const struct stage *stage, uint32_t *number);

/* schema.c. Schemas are made in the arena; false: there is no memory. */
bool pl_query_flat_schema(struct lexer *lx, unsigned int stream, struct schema *ret);
/* Returns the last column of the name. *ret_n (ret_n may be NULL): how many there are. */
const struct column *pl_query_find_column(
	const struct schema *schema, const char *name, int *ret_n);
/* Makes rows of columns, whose names and types the caller fills in. */
bool pl_query_row_schema(struct lexer *lx, uint32_t n, struct schema *ret);

/* True for a column of times since the Unix epoch, such as ts, first_ts, ts_ns, and what is made of
 * one. */
bool pl_query_is_time(const struct column *column);

/* records.c, for paths, hops, events and values. */
uint32_t pl_query_stream_size(unsigned int stream);
/* True when values of the form are words. */
bool pl_query_form_has_words(enum pl_form form);
bool pl_query_record_schema(struct lexer *lx, unsigned int stream, struct schema *ret);
/* Makes the columns of a path's hops. */
bool pl_query_hop_schema(struct lexer *lx, struct schema *ret);

struct checker {
	struct lexer *lx; /* arena and errors */
	struct pl_query *query;
	const struct ast_with *with; /* queries that may be named, up to with_end */
	const struct ast_with *with_end;
	struct ast_fold *folds;
	struct stage *stage;
	const struct ast_select *select;
	const struct schema *schema; /* columns of the names */
	bool quiet;                  /* errors are not reported, only noted */
	bool failed;
	bool aliases; /* names may be those of items */
	bool in_hop;  /* names are those of one hop of a path */
	unsigned int depth;
};

/* node.c. Makers of nodes return NULL after an error. */
const struct node *pl_query_check_error(struct checker *c, uint32_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* As pl_query_check_error, where a truth is returned: false. */
#define pl_query_refuse(...) (pl_query_check_error(__VA_ARGS__) != NULL)
/* Nearest of the names, as the end of an error: ", did you mean \"x\"?", or "". */
const char *pl_query_did_you_mean(
	char *dst, size_t cap, const char *name, const char *const *names, size_t n);
struct node *pl_query_node(
	struct checker *c, enum node_op op, enum pl_query_type type, uint32_t at);
struct node *pl_query_constant(
	struct checker *c, enum pl_query_type type, uint64_t value, uint32_t at);
/* b: NULL for one operand. */
struct node *pl_query_operation(struct checker *c, enum node_op op, enum pl_query_type type,
	uint32_t at, const struct node *a, const struct node *b);
const struct node *pl_query_column_node(
	struct checker *c, const struct column *column, uint32_t at);
/* Converts a number into another type. */
const struct node *pl_query_convert(
	struct checker *c, const struct node *node, enum pl_query_type type);
/* Makes a test of a comparison of a column with a constant. */
const struct node *pl_query_fuse(struct checker *c, const struct node *node);
/* Returns the node, which may be NULL, if it is a condition; `what` needs one. */
const struct node *pl_query_check_bool(
	struct checker *c, const struct node *node, const char *what);
bool pl_query_same(const struct node *a, const struct node *b);
bool pl_query_apart(const struct node *node);
uint32_t pl_query_vectors(const struct node *node);
/* Bytes of a key that holds the value. */
uint8_t pl_query_key_width(const struct node *node);
/* Sets the offsets of the keys; returns the bytes of all, with the words in front. */
uint32_t pl_query_lay_out_keys(struct key *keys, uint32_t n);
/* Sets the type of a column that has the values of the expression; and what a column of records says
 * about them. */
void pl_query_describe(struct column *column, const struct node *node);
const char *pl_query_agg_name(enum agg_kind kind);
/* Returns the enum agg_kind; -1: no aggregate has the name. */
int pl_query_find_agg(const char *name);

/* check_expr.c */
/* Check of operands: over records, or over groups. */
typedef const struct node *check_fn(struct checker *c, const struct ast *ast);
const struct node *pl_query_check(struct checker *c, const struct ast *ast);
const struct node *pl_query_check_name(struct checker *c, const struct ast *ast);
const struct node *pl_query_check_call(struct checker *c, const struct ast *ast, check_fn *check);
const struct node *pl_query_check_operator(
	struct checker *c, const struct ast *ast, check_fn *check);
/* check_fold.c */
/* Finds the fold and the variable of "fold.variable"; *ret_state may become NULL. */
struct ast_fold *pl_query_find_fold(
	const struct checker *c, const char *name, const char **ret_state);
/* Returns the number of the aggregate that is the variable, or -1 after an error. */
int pl_query_check_fold(struct checker *c, const struct ast *ast);
/* Checks the limits of a stage with folds. */
bool pl_query_check_folds(struct checker *c);
/* check_group.c: over groups, keys and aggregates. */
const struct node *pl_query_check_group(struct checker *c, const struct ast *ast);
/* check_record.c: constructs of --where. */
/* Checks the operand of a comparison with `with`: a word or an id, if the column has them. */
const struct node *pl_query_check_beside(
	struct checker *c, const struct ast *ast, const struct node *with, check_fn *check);
/* check_word.c: checks a word for the number of a protocol, or for flags, beside their column;
 * false when it is no such word. *ret is NULL after an error. */
bool pl_query_check_word(
	struct checker *c, const struct ast *ast, const struct node *with, const struct node **ret);
/* True for the name of a column. */
bool pl_query_is_column(const struct checker *c, const struct ast *ast);
/* True when it tests the hops of a path one by one. */
bool pl_query_is_hop_test(const struct checker *c, const struct ast *ast);
/* Returns NULL without an error when there is no such column. */
const struct node *pl_query_check_name_of_hop(struct checker *c, const struct ast *ast);
/* Checks exists(x) and missing(x). */
const struct node *pl_query_check_exists(struct checker *c, const struct ast *ast, check_fn *check);
/* check_agg.c */
int pl_query_check_agg(struct checker *c, const struct ast *ast);
/* Adds an aggregate to the stage, and returns its column; NULL after an error. */
struct column *pl_query_add_agg(struct checker *c, const struct agg *agg, const char *name);
bool pl_query_monotone(const struct checker *c, const struct node *having, uint32_t *ret_at);
/* explain.c: writes an expression as text. */
void pl_query_put_node(struct pl_buf *out, const struct node *node);
/* check_where.c */
/* Checks WHERE; adds a condition to those of the stage. */
bool pl_query_check_where(struct checker *c);
bool pl_query_check_add(struct checker *c, const struct node *condition);
/* Returns false, with an error, when the expression needs too many vectors; false for NULL. */
bool pl_query_check_depth(struct checker *c, const struct node *node);
bool pl_query_has_aggregate(const struct checker *c, const struct ast *ast);
bool pl_query_names_column(const struct node *node);
/* The expression over the records of one side (0 or 1), or over pairs (2), without an error; or
 * NULL. */
const struct node *pl_query_try_over(const struct checker *c, const struct pairs *pairs,
	unsigned int side, const struct ast *ast);
/* Moves a condition to the filter of a side of the pairs, when it names only that. */
bool pl_query_check_push(
	struct checker *c, struct pairs *pairs, unsigned int side, const struct ast *ast);
/* check_stream.c */
/* Sets a stream as the input of the stage. */
bool pl_query_check_stream(struct checker *c, const struct ast_source *source);
/* Reports a stream that there is not; returns false. */
bool pl_query_unknown_stream(struct checker *c, const struct ast_source *source);
/* Query of the name in WITH, or NULL. */
const struct ast_with *pl_query_find_with(const struct checker *c, const char *name);
/* Gives the stage its number. */
bool pl_query_check_enter(struct checker *c, struct stage *stage, uint32_t at);
/* Sets join->out to the columns of `left`, which may be NULL, and those of the join's stage. */
bool pl_query_check_columns(struct checker *c, const struct ast_source *source,
	const struct schema *left, struct join *join);
/* check_from.c: sets the stage's sources, its input and its time. */
bool pl_query_check_from(struct checker *c);
/* check_zip.c: checks two sources that are queries whose rows come from the same records. */
bool pl_query_check_zip(struct checker *c);
/* check_pairs.c: checks a join of records. */
bool pl_query_check_pairs(struct checker *c);
/* check.c */
/* Makes the stage of a select, with the sub-queries before it; NULL after an error. */
struct stage *pl_query_check_stage(struct checker *outer, const struct ast_select *select);
int pl_query_check_query(struct lexer *lx, struct pl_query *query, const struct ast_query *ast);
