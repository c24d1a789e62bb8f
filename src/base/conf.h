/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * YAML configuration against a schema. One table of rows has every key: type, range, default, help;
 * from it come the parser, `config dump` with defaults filled in, `config init` and the manual. The
 * schema decides types, never YAML's implicit rules. An unknown or repeated key, a value out of
 * range or of the wrong kind is an error with file, line, column, the key, and the nearest known
 * key. Anchors and aliases and tags are refused, and so is a second document. Bounded: 16 MiB of
 * text, 16 levels, 200,000 values. An empty file is all defaults.
 *
 * In string values ${NAME} is the environment's variable NAME (an unset one is an error) and $$ is
 * $.
 *
 * A row's key is a dotted path: "web.listen". A list of maps is a row of type PL_CONF_LIST whose
 * key is the path of the list ("sources") and whose `rows` describe one element, which may hold
 * lists again. Values land in a caller's structure at `offset`; element structures live in a heap
 * array, see struct pl_conf_list. A list in the text replaces the default list. A map or a list
 * with nothing behind its colon is empty; any other row without default and with nothing behind its
 * colon is absent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"

enum pl_conf_type {
	PL_CONF_END,
	PL_CONF_BOOL,     /* bool */
	PL_CONF_U64,      /* uint64_t */
	PL_CONF_DOUBLE,   /* double */
	PL_CONF_RATE,     /* double, per second: 10k */
	PL_CONF_SIZE,     /* uint64_t, bytes */
	PL_CONF_DURATION, /* uint64_t, ns */
	/* char *, heap, owned by the configuration; NULL when absent without default */
	PL_CONF_STRING,
	PL_CONF_CHOICE,  /* unsigned int, index into `choices` */
	PL_CONF_STRINGS, /* struct pl_conf_list of char * */
	PL_CONF_LIST,    /* struct pl_conf_list of structures described by `rows` */
	/* struct pl_conf_list of struct pl_conf_pair: a map whose keys are the file's own */
	PL_CONF_PAIRS,
};

/* Both are on the heap, owned by the configuration. */
struct pl_conf_pair {
	char *name, *value;
};

struct pl_conf_list {
	void *items; /* heap array */
	size_t n;
};

struct pl_conf_row {
	const char *key;
	enum pl_conf_type type;
	size_t offset;
	/* default in the form of the file, lists as "[a, b]"; NULL = absent/zero. For a required
	 * row an example for the template */
	const char *def;
	uint64_t min, max; /* inclusive range of a number, of a list's length; max 0 = no end */
	const char *help;  /* one sentence */
	const char *const *choices;     /* CHOICE: NULL-terminated */
	const struct pl_conf_row *rows; /* LIST */
	size_t item_size;               /* LIST */
	bool required;                  /* required within its map */
	bool one; /* STRINGS: a list of one entry may be written as that entry */
	/* extra check of a STRING value (a URI, an address): 0, or negative with diag text set */
	int (*check)(const char *value, struct pl_diag *diag);
	/* For a command that has the row as an option (base/conf_opt.h): the option's name, NULL =
	 * the key; and its placeholder, NULL = by the type. */
	const char *option, *value;
};

/* Sets every default; the structure must be zeroed. Returns 0 or -ENOMEM. */
int pl_conf_defaults(const struct pl_conf_row *rows, void *ret_conf);

/* Sets defaults, then parses the text over them. `name` is for diag->file. Returns 0, -EINVAL with
 * diag, or -ENOMEM. After an error nothing is left allocated in ret_conf. */
int pl_conf_parse(const struct pl_conf_row *rows, const char *name, const char *text, size_t len,
	void *ret_conf, struct pl_diag *diag);

/* Sets one row from words, without expanding variables: all words of PL_CONF_STRINGS, else the only
 * one. Messages call the value `name`. Returns 0, -EINVAL with diag, or -ENOMEM. */
int pl_conf_set(const struct pl_conf_row *row, const char *name, const char *const *words, size_t n,
	void *conf, struct pl_diag *diag);

/* Finds the place of a value in a parsed text, by the path that messages use:
 * "tables[2].entries[0]". For checks across values, after parsing. Sets line and column of diag; 0
 * when there is no such place. */
void pl_conf_where(const char *text, size_t len, const char *path, struct pl_diag *diag);

/* How a text ends, which shows whether it is complete or truncated. */
struct pl_conf_ending {
	bool newline; /* the last line ends with a newline */
	bool marker;  /* the last line is "...", the end of a YAML document */
	bool keys;    /* the text has more than comments */
};
void pl_conf_look_at_end(const char *text, size_t len, struct pl_conf_ending *ret);

/* Reads a file with pl_file_read ("-" is standard input), then parses it with pl_conf_parse.
 * Returns also the errors of reading, with diag, and -EINVAL for an empty file: "{}", or a comment,
 * says that defaults are meant. ret_ending may be NULL. */
int pl_conf_load(const struct pl_conf_row *rows, const char *path, void *ret_conf,
	struct pl_conf_ending *ret_ending, struct pl_diag *diag);

/* Writes the configuration as YAML with every key, defaults filled in. It parses back to the
 * same. */
void pl_conf_dump(const struct pl_conf_row *rows, const void *conf, struct pl_buf *out);

/* Writes a commented template: every key with its help behind "##"; optional keys behind "# ". It
 * parses as a valid file, also without every "# ". */
void pl_conf_template(const struct pl_conf_row *rows, struct pl_buf *out);

void pl_conf_done(const struct pl_conf_row *rows, void *conf);
