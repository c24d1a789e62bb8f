/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The story of a lab: steps at times after it is up, read from `story` of its file. A running lab
 * (teller.h) and a simulation (simulation.h, faults.h) carry them out alike.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/conf.h"
#include "base/diag.h"

enum pl_lab_traffic_kind {
	PL_LAB_BULK,
	PL_LAB_UDP,
	PL_LAB_ONOFF,
	PL_LAB_INCAST,
	PL_LAB_REQUEST,
	PL_LAB_DNS,
};
extern const char *const pl_lab_traffic_kinds[]; /* ends with NULL */

#define PL_LAB_SENDERS_MAX 64
/* Duration of traffic without end: longer than any lab is up. */
#define PL_LAB_FOR_EVER_NS UINT64_C(315360000000000000)

struct pl_lab_traffic {
	enum pl_lab_traffic_kind kind;
	unsigned int from[PL_LAB_SENDERS_MAX], n_from, to; /* nodes */
	uint64_t duration_ns, on_ns, off_ns;
	uint64_t rate_bps; /* payload bits per second of each sender */
	uint32_t size;     /* bytes of a payload, 20 to 65000 */
};

enum pl_lab_story_kind {
	PL_LAB_STORY_IMPAIR,  /* changes a link, like pathline lab impair */
	PL_LAB_STORY_RESTORE, /* resets a link to the file's values */
	PL_LAB_STORY_TRAFFIC, /* starts traffic, like pathline lab traffic */
	PL_LAB_STORY_STOP,    /* ends the traffic of a name */
};

#define PL_LAB_STORY_MAX   1024
/* Maximum number of words of a step. */
#define PL_LAB_STORY_WORDS (PL_LAB_SENDERS_MAX + 2)

struct pl_lab_story_step {
	uint64_t at_ns;
	enum pl_lab_story_kind kind;
	char *text;                            /* as printed: "impair h1-s1 loss=0.01" */
	char *copy;                            /* holds the words */
	const char *words[PL_LAB_STORY_WORDS]; /* IMPAIR, RESTORE: link, then KEY=VALUE */
	unsigned int n_words;
	unsigned int link, ends;       /* IMPAIR, RESTORE: the link, bits of the sending ends */
	struct pl_lab_traffic traffic; /* TRAFFIC; duration 0: until it is stopped */
	size_t stops;                  /* STOP: step of its traffic */
};

/* Steps sorted by time. */
struct pl_lab_story {
	struct pl_lab_story_step *steps;
	size_t n;
};

struct pl_lab_topology;

/* Keys of a step, and the structure that they are read into. */
extern const struct pl_conf_row pl_lab_story_rows[];
struct pl_lab_story_conf {
	uint64_t at_ns;
	char *impair, *restore, *traffic, *stop, *name, *rate;
	uint64_t size, for_ns, on_ns, off_ns;
};

/*
 * Makes the story from the file's items (struct pl_lab_story_conf); the topology must have its
 * nodes and links. -EINVAL with diag: *ret_item and *ret_key are the wrong ones; -ENOMEM. The story
 * is to be freed also after a failure.
 */
int pl_lab_story_make(struct pl_lab_story *ret, const struct pl_lab_topology *t,
	const struct pl_conf_list *items, size_t *ret_item, const char **ret_key,
	struct pl_diag *diag);
void pl_lab_story_done(struct pl_lab_story *s);
