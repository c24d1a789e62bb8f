/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses faults of links and sets them at their times. */
#include "lab/faults.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "lab/wires.h"

#define TEXT_MAX  512
#define WORDS_MAX 16

/* The impairments of one direction of a link from a time on. */
struct change {
	uint64_t at_ns;                       /* since the simulation's start */
	const char *text;                     /* the fault's text, borrowed */
	const struct pl_lab_story_step *step; /* or the story step, which has text */
	unsigned int link, end;
	unsigned int node, port, dp_link; /* of the simulation */
	struct pl_lab_impairments state;
};

struct pl_lab_faults {
	struct pl_dp_sim *sim;
	uint64_t start_ns;
	uint32_t timer;
	size_t n, next;
	struct change changes[];
};

/* A parsed text. */
struct fault {
	char copy[TEXT_MAX];
	const char *link;
	const char *words[WORDS_MAX];
	unsigned int n_words;
	uint64_t at_ns;
};

static int split(struct fault *f, const char *text, struct pl_diag *diag)
{
	char *colon, *at, *word, *rest;

	f->n_words = 0;
	f->at_ns = 0;
	if ((size_t)snprintf(f->copy, sizeof(f->copy), "%s", text) >= sizeof(f->copy)) {
		pl_diag_set(diag, "longer than %d characters", TEXT_MAX - 1);
		return -EINVAL;
	}
	colon = strchr(f->copy, ':');
	if (colon == NULL || colon == f->copy) {
		pl_diag_set(diag, "it is not LINK:KEY=VALUE, such as leaf1-spine1:loss=0.01");
		return -EINVAL;
	}
	*colon = '\0';
	f->link = f->copy;
	at = strrchr(colon + 1, '@');
	if (at != NULL) {
		*at = '\0';
		if (pl_parse_duration(at + 1, &f->at_ns) < 0) {
			pl_diag_set(diag, "'%s' is no time since the start, such as 2s or 500ms",
				at + 1);
			return -EINVAL;
		}
	}
	for (word = strtok_r(colon + 1, " ", &rest); word != NULL;
		word = strtok_r(NULL, " ", &rest)) {
		if (f->n_words == WORDS_MAX) {
			pl_diag_set(diag, "more than %d keys", WORDS_MAX);
			return -EINVAL;
		}
		f->words[f->n_words++] = word;
	}
	if (f->n_words == 0) {
		pl_diag_set(diag, "no KEY=VALUE behind the link, such as loss=0.01");
		return -EINVAL;
	}
	return 0;
}

/* Adds one or both directions of a link, sorted by time, behind those of the same time. */
static int add(struct pl_lab_faults *f, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, const char *link_text, const struct change *like,
	struct pl_diag *diag)
{
	char name[TEXT_MAX], *one;
	unsigned int first;
	int link;

	snprintf(name, sizeof(name), "%s", link_text);
	one = strchr(name, '>');
	if (one != NULL)
		*one = '-';
	link = pl_lab_find_link(t, name, &first, diag);
	if (link < 0)
		return link;
	for (unsigned int end = 0; end < 2; end++) {
		struct change c = *like;
		size_t at = f->n;

		if (one != NULL && end != first)
			continue;
		c.link = (unsigned int)link;
		c.end = end;
		pl_lab_simulation_sender(s, c.link, end, &c.node, &c.port, &c.dp_link);
		while (at > 0 && f->changes[at - 1].at_ns > c.at_ns)
			at--;
		memmove(&f->changes[at + 1], &f->changes[at], (f->n - at) * sizeof(c));
		f->changes[at] = c;
		f->n++;
	}
	return 0;
}

static int add_story(struct pl_lab_faults *f, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, struct pl_diag *diag)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->story.n; i++) {
		const struct pl_lab_story_step *step = &t->story.steps[i];
		const struct change c = { .at_ns = step->at_ns, .text = step->text, .step = step };

		if (step->kind == PL_LAB_STORY_IMPAIR || step->kind == PL_LAB_STORY_RESTORE)
			r = add(f, s, t, step->words[0], &c, diag);
	}
	return r;
}

/* Returns a direction's impairments at the start. */
static struct pl_lab_impairments at_first(const struct pl_lab_faults *f, const struct change *c)
{
	return (struct pl_lab_impairments){
		.port = *pl_dp_port_get(pl_dp_sim_port_at(f->sim, c->node, c->port)),
		.link = *pl_dp_link_get(pl_dp_sim_link_at(f->sim, c->dp_link)),
	};
}

/* Returns a direction's impairments before change i: those of the change before it. */
static struct pl_lab_impairments before(const struct pl_lab_faults *f, size_t i)
{
	const struct change *c = &f->changes[i];

	for (size_t k = i; k > 0; k--) {
		if (f->changes[k - 1].link == c->link && f->changes[k - 1].end == c->end)
			return f->changes[k - 1].state;
	}
	return at_first(f, c);
}

static int set_words(struct pl_lab_impairments *state, const char *const *words, unsigned int n,
	struct pl_diag *diag)
{
	int r = 0;

	for (unsigned int w = 0; r == 0 && w < n; w++)
		r = pl_lab_impair_word(state, words[w], diag);
	return r;
}

static int work_out(
	struct pl_lab_faults *f, struct fault *fault, const char **ret_text, struct pl_diag *diag)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < f->n; i++) {
		struct change *c = &f->changes[i];
		const struct pl_lab_story_step *step = c->step;

		*ret_text = c->text;
		c->state = step != NULL && step->kind == PL_LAB_STORY_RESTORE ? at_first(f, c)
									      : before(f, i);
		if (step != NULL) {
			r = set_words(&c->state, step->words + 1, step->n_words - 1, diag);
		} else {
			r = split(fault, c->text, diag);
			if (r == 0)
				r = set_words(&c->state, fault->words, fault->n_words, diag);
		}
		if (c->state.port.rate_bps == 0)
			c->state.port.rate_bps = PL_LAB_SIMULATION_RATE_BPS;
		if (r == 0)
			r = pl_lab_impairments_check(&c->state, diag);
	}
	return r;
}

/* Applies the changes that are due and sets the timer for the next one. The changes were checked
 * before, so applying them cannot fail. */
static void turn(void *arg)
{
	struct pl_lab_faults *f = arg;
	const uint64_t now_ns = pl_dp_sim_now(f->sim) - f->start_ns;
	struct pl_diag diag;

	for (; f->next < f->n && f->changes[f->next].at_ns <= now_ns; f->next++) {
		const struct change *c = &f->changes[f->next];

		(void)pl_dp_sim_port_set(f->sim, c->node, c->port, &c->state.port, &diag);
		(void)pl_dp_sim_link_set(f->sim, c->dp_link, &c->state.link, &diag);
	}
	if (f->next < f->n)
		pl_dp_sim_arm(f->sim, f->timer, f->start_ns + f->changes[f->next].at_ns);
}

int pl_lab_faults_new(struct pl_lab_faults **ret, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, const char *const *texts, size_t n, struct pl_diag *diag)
{
	struct pl_lab_faults *f =
		calloc(1, sizeof(*f) + 2 * (n + t->story.n) * sizeof(f->changes[0]));
	struct fault *fault = calloc(1, sizeof(*fault));
	const char *text = NULL;
	int r = f != NULL && fault != NULL ? 0 : -ENOMEM;

	if (r == 0) {
		f->sim = pl_lab_simulation_sim(s);
		f->start_ns = pl_dp_sim_now(f->sim);
		r = add_story(f, s, t, diag);
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		text = texts[i];
		r = split(fault, text, diag);
		if (r == 0)
			r = add(f, s, t, fault->link,
				&(struct change){ .at_ns = fault->at_ns, .text = text }, diag);
	}
	if (r == 0)
		r = work_out(f, fault, &text, diag);
	if (r < 0 && text != NULL && diag->text[0] != '\0') {
		char why[sizeof(diag->text)];

		snprintf(why, sizeof(why), "%s", diag->text);
		pl_diag_set(diag, "%s: %s", text, why);
	}
	if (r == 0)
		r = pl_dp_sim_timer(f->sim, turn, f, &f->timer);
	free(fault);
	if (r < 0) {
		free(f);
		return r;
	}
	turn(f);
	*ret = f;
	return 0;
}

void pl_lab_faults_free(struct pl_lab_faults *f)
{
	free(f);
}
