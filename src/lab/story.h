/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens in a lab by itself: steps at times after it is up, read from `story` of its file.
 * A lab that is up (teller.h) and a simulation (simulation.h, faults.h) carry them out alike.
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
extern const char *const pl_lab_traffic_kinds[]; /* NULL behind the last */

#define PL_LAB_SENDERS_MAX 64
/* Of traffic that is stopped, or ends with the lab: longer than any lab is up. */
#define PL_LAB_FOR_EVER_NS UINT64_C(315360000000000000)

struct pl_lab_traffic {
	enum pl_lab_traffic_kind kind;
	unsigned int from[PL_LAB_SENDERS_MAX], n_from, to; /* nodes */
	uint64_t duration_ns, on_ns, off_ns;
	uint64_t rate_bps; /* of each sender's payload */
	uint32_t size;     /* bytes of a payload, 20 to 65000 */
};

enum pl_lab_story_kind {
	PL_LAB_STORY_IMPAIR,  /* a link is changed, as by pathline lab impair */
	PL_LAB_STORY_RESTORE, /* a link is as the file has it */
	PL_LAB_STORY_TRAFFIC, /* hosts send, as by pathline lab traffic */
	PL_LAB_STORY_STOP,    /* traffic with a name ends */
};

#define PL_LAB_STORY_MAX   1024
/* Words behind the link, or the kind of traffic. */
#define PL_LAB_STORY_WORDS (PL_LAB_SENDERS_MAX + 2)

struct pl_lab_story_step {
	uint64_t at_ns;
	enum pl_lab_story_kind kind;
	char *text;                            /* as it is told: "impair h1-s1 loss=0.01" */
	char *copy;                            /* what the words are in */
	const char *words[PL_LAB_STORY_WORDS]; /* IMPAIR, RESTORE: link, then KEY=VALUE */
	unsigned int n_words;
	unsigned int link, ends;       /* IMPAIR, RESTORE: the link, bits of the ends that send */
	struct pl_lab_traffic traffic; /* TRAFFIC; duration 0: until it is stopped */
	size_t stops;                  /* STOP: the step of the traffic */
};

/* In the order of time. */
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
 * Of the items of a file, struct pl_lab_story_conf, over a topology whose nodes and links are there.
 * -EINVAL with diag: *ret_item and *ret_key say where; -ENOMEM. The story is to be freed either way.
 */
int pl_lab_story_make(struct pl_lab_story *ret, const struct pl_lab_topology *t,
	const struct pl_conf_list *items, size_t *ret_item, const char **ret_key,
	struct pl_diag *diag);
void pl_lab_story_done(struct pl_lab_story *s);
