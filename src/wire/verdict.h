/* SPDX-License-Identifier: BSD-2-Clause */
/* The verdict on a packet and the notes about it: see verdicts.def and notes.def. */
#pragma once

#include <stdint.h>

enum pl_verdict {
#define PL_VERDICT(id, name, help) PL_V_##id,
#include "wire/verdicts.def"
#undef PL_VERDICT
	PL_V_MAX,
};

enum pl_note {
#define PL_NOTE(id, name, help) PL_N_##id,
#include "wire/notes.def"
#undef PL_NOTE
	PL_N_MAX,
};

_Static_assert(PL_N_MAX <= 64, "a set of notes is one 64-bit word");

#define PL_NOTE_BIT(id) (UINT64_C(1) << PL_N_##id)

const char *pl_verdict_name(enum pl_verdict v);
const char *pl_verdict_help(enum pl_verdict v);
const char *pl_note_name(enum pl_note n);
const char *pl_note_help(enum pl_note n);
