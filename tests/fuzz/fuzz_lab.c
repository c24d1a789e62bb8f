/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a lab: what is refused has words; of what is accepted every link is found by its name,
 * the story is in the order of time and names what there is, each of its changes can be made, and
 * the files of the switches are right, of a lab and of a simulation.
 */
#include <errno.h>

#include "base/buf.h"
#include "dataplane/program.h"
#include "fuzz.h"
#include "lab/program.h"
#include "lab/wires.h"

/* Of larger networks it takes too long. */
#define PROGRAMS_MAX 24

static void look_at_link(const struct pl_lab_topology *t, unsigned int i)
{
	const struct pl_lab_link *l = &t->links[i];
	char name[PL_LAB_LINK_TEXT_MAX];
	unsigned int end;

	for (unsigned int side = 0; side < 2; side++) {
		must(l->end[side].node < t->n_nodes);
		must(l->end[side].port >= 1 &&
			l->end[side].port <= t->nodes[l->end[side].node].n_ports);
		must(t->nodes[l->end[side].node].links[l->end[side].port - 1] == i);
	}
	must(l->end[0].node != l->end[1].node && l->cost >= 1);
	pl_lab_link_text(t, l, name);
	must(pl_lab_find_link(t, name, &end, NULL) == (int)i && end < 2);
}

static void look_at_traffic(const struct pl_lab_topology *t, const struct pl_lab_traffic *f)
{
	must(f->kind <= PL_LAB_DNS && f->n_from >= 1 && f->n_from <= PL_LAB_SENDERS_MAX);
	must(f->to < t->n_nodes && t->nodes[f->to].kind == PL_LAB_HOST);
	for (unsigned int i = 0; i < f->n_from; i++)
		must(f->from[i] < t->n_nodes && f->from[i] != f->to &&
			t->nodes[f->from[i]].kind == PL_LAB_HOST);
	must(f->size >= 20 && f->size <= 65000 && f->rate_bps >= 1000 && f->on_ns > 0);
}

static void look_at_story(const struct pl_lab_topology *t)
{
	const struct pl_lab_story *s = &t->story;

	for (size_t i = 0; i < s->n; i++) {
		const struct pl_lab_story_step *step = &s->steps[i];
		struct pl_lab_impairments state;

		must(i == 0 || s->steps[i - 1].at_ns <= step->at_ns);
		must(step->text != NULL && step->n_words >= 1);
		switch (step->kind) {
		case PL_LAB_STORY_TRAFFIC:
			look_at_traffic(t, &step->traffic);
			break;
		case PL_LAB_STORY_STOP:
			must(step->stops < i);
			must(s->steps[step->stops].kind == PL_LAB_STORY_TRAFFIC);
			break;
		case PL_LAB_STORY_IMPAIR:
		case PL_LAB_STORY_RESTORE:
			must(step->link < t->n_links && step->ends >= 1 && step->ends <= 3);
			pl_lab_impairments_of(&t->links[step->link].quality, &state);
			for (unsigned int w = 1; w < step->n_words; w++)
				must(pl_lab_impair_word(&state, step->words[w], NULL) == 0);
			break;
		}
	}
}

static void look_at_programs(const struct pl_lab_topology *t, bool real)
{
	uint32_t *distances = calloc((size_t)t->n_nodes * t->n_nodes, sizeof(*distances));
	const struct pl_lab_program as = { .t = t, .distances = distances, .real = real };

	must(distances != NULL);
	for (unsigned int i = 0; i < t->n_nodes; i++)
		pl_lab_distances(t, i, distances + (size_t)i * t->n_nodes);
	for (unsigned int i = 0; i < t->n_nodes; i++) {
		struct pl_diag diag = { .text = "" };
		struct pl_dp_program program;
		struct pl_buf text;
		int r;

		if (t->nodes[i].kind != PL_LAB_SWITCH)
			continue;
		pl_buf_init(&text);
		r = pl_lab_program_text(&as, i, &text);
		must(r == 0 || r == -ENOSPC);
		if (r == 0) {
			must(pl_dp_program_parse(&program, "fuzz", text.data, text.len, &diag) ==
				0);
			must(pl_dp_program_check(&program, &diag) == 0);
			pl_dp_program_done(&program);
		}
		pl_buf_done(&text);
	}
	free(distances);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_diag diag = { .text = "" };
	struct pl_lab_topology t;

	if (pl_lab_topology_parse(&t, "fuzz.yaml", (const char *)data, size, &diag) < 0) {
		must(diag.text[0] != '\0');
		pl_lab_topology_done(&t);
		return 0;
	}
	must(t.name[0] != '\0' && t.n_nodes >= 1 && t.int_fields != 0);
	for (unsigned int i = 0; i < t.n_links; i++)
		look_at_link(&t, i);
	look_at_story(&t);
	if (t.n_nodes <= PROGRAMS_MAX) {
		look_at_programs(&t, false);
		if (pl_lab_topology_add_collector(&t, &diag) == 0)
			look_at_programs(&t, true);
		else
			must(diag.text[0] != '\0');
	}
	pl_lab_topology_done(&t);
	return 0;
}
