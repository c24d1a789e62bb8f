/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and helps of verdicts and notes, from their lists. */
#include "wire/verdict.h"

struct row {
	const char *name, *help;
};

static const struct row verdicts[] = {
#define PL_VERDICT(id, name, help) { name, help },
#include "wire/verdicts.def"
#undef PL_VERDICT
};

static const struct row notes[] = {
#define PL_NOTE(id, name, help) { name, help },
#include "wire/notes.def"
#undef PL_NOTE
};

const char *pl_verdict_name(enum pl_verdict v)
{
	return verdicts[v].name;
}

const char *pl_verdict_help(enum pl_verdict v)
{
	return verdicts[v].help;
}

const char *pl_note_name(enum pl_note n)
{
	return notes[n].name;
}

const char *pl_note_help(enum pl_note n)
{
	return notes[n].help;
}
