/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares a running lab's network with the one that it is to become. */
#include "lab/change.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

struct compared {
	const struct pl_lab_topology *was, *want;
	struct pl_diag *diag;
};

/* ---- what may differ ---- */

bool pl_lab_change_same_command(const struct pl_lab_command *was, const struct pl_lab_command *want)
{
	return was->node == want->node && was->account == want->account &&
	       pl_text_same(was->name, want->name) && pl_text_same(was->text, want->text) &&
	       pl_text_same(was->ready, want->ready);
}

bool pl_lab_change_same_quality(const struct pl_lab_quality *was, const struct pl_lab_quality *want)
{
	return was->rate_bps == want->rate_bps && was->queue_bytes == want->queue_bytes &&
	       was->delay_ns == want->delay_ns && was->loss == want->loss &&
	       was->bare == want->bare;
}

static bool same_traffic(const struct pl_lab_traffic *a, const struct pl_lab_traffic *b)
{
	return a->kind == b->kind && a->n_from == b->n_from &&
	       memcmp(a->from, b->from, a->n_from * sizeof(a->from[0])) == 0 && a->to == b->to &&
	       a->duration_ns == b->duration_ns && a->on_ns == b->on_ns && a->off_ns == b->off_ns &&
	       a->rate_bps == b->rate_bps && a->size == b->size;
}

bool pl_lab_change_same_story(const struct pl_lab_story *was, const struct pl_lab_story *want)
{
	for (size_t i = 0; i < was->n && i < want->n; i++) {
		const struct pl_lab_story_step *a = &was->steps[i], *b = &want->steps[i];

		if (a->at_ns != b->at_ns || a->kind != b->kind || a->stops != b->stops ||
			!pl_text_same(a->text, b->text))
			return false;
		if (a->kind == PL_LAB_STORY_TRAFFIC && !same_traffic(&a->traffic, &b->traffic))
			return false;
	}
	return was->n == want->n;
}

static bool same_marking(const struct pl_lab_marking *a, const struct pl_lab_marking *b)
{
	return a->method == b->method && a->period_ns == b->period_ns && a->by == b->by &&
	       strcmp(a->bits[0], b->bits[0]) == 0 && strcmp(a->bits[1], b->bits[1]) == 0 &&
	       a->clock_error_ns == b->clock_error_ns && a->delay_ns == b->delay_ns &&
	       a->deviation_ns == b->deviation_ns;
}

/* ---- what may not ---- */

/* Sets diag; what, name, becomes: "node", "h3", "comes". Returns -EINVAL. */
static int refuse(const struct compared *c, unsigned int line, unsigned int column,
	const char *what, const char *name, const char *becomes)
{
	pl_diag_at(c->diag, line, column,
		"%s '%s' %s, which a lab that is up cannot follow; nothing is changed: pathline lab down %s, then up with this file",
		what, name, becomes, c->want->name);
	return -EINVAL;
}

static int check_nodes(const struct compared *c)
{
	const struct pl_lab_topology *was = c->was, *want = c->want;

	for (unsigned int i = 0; i < want->n_nodes; i++) {
		const struct pl_lab_node *n = &want->nodes[i];
		const int at = pl_lab_find_node(was, n->name, NULL);

		if (at < 0)
			return refuse(c, n->line, n->column, "node", n->name, "comes");
		if (was->nodes[at].kind != n->kind)
			return refuse(c, n->line, n->column, "node", n->name, "is of another kind");
		if (was->nodes[at].clock_offset_ns != n->clock_offset_ns ||
			was->nodes[at].clock_drift_ppb != n->clock_drift_ppb)
			return refuse(c, n->line, n->column, "node", n->name, "has another clock");
	}
	for (unsigned int i = 0; i < was->n_nodes; i++) {
		if (pl_lab_find_node(want, was->nodes[i].name, NULL) < 0)
			return refuse(c, 0, 0, "node", was->nodes[i].name, "goes");
	}
	for (unsigned int i = 0; i < want->n_nodes; i++) {
		const struct pl_lab_node *n = &want->nodes[i];

		if (strcmp(was->nodes[i].name, n->name) != 0)
			return refuse(c, n->line, n->column, "node", n->name,
				"has another place in the list, and with it another number");
	}
	return 0;
}

static bool has_link(const struct pl_lab_topology *t, const char *text)
{
	char other[PL_LAB_LINK_TEXT_MAX];

	for (unsigned int i = 0; i < t->n_links; i++) {
		pl_lab_link_text(t, &t->links[i], other);
		if (strcmp(text, other) == 0)
			return true;
	}
	return false;
}

/* Explains the first link that differs from the old list. Links must stay in order: their addresses
 * follow from it. */
static int refuse_link(const struct compared *c, unsigned int i)
{
	const struct pl_lab_topology *was = c->was, *want = c->want;
	char text[PL_LAB_LINK_TEXT_MAX] = "";

	if (i < was->n_links) {
		pl_lab_link_text(was, &was->links[i], text);
		if (!has_link(want, text))
			return refuse(c, 0, 0, "link", text, "goes");
	}
	if (i >= want->n_links)
		return refuse(c, 0, 0, "link", text, "has another place in the list");
	pl_lab_link_text(want, &want->links[i], text);
	return refuse(c, want->links[i].line, want->links[i].column, "link", text,
		has_link(was, text) ? "has another place in the list, and with it other addresses"
				    : "comes");
}

static int check_links(const struct compared *c)
{
	const struct pl_lab_topology *was = c->was, *want = c->want;

	for (unsigned int i = 0; i < was->n_links || i < want->n_links; i++) {
		const struct pl_lab_link *a = &was->links[i], *b = &want->links[i];
		char text[PL_LAB_LINK_TEXT_MAX];

		if (i >= was->n_links || i >= want->n_links || a->end[0].node != b->end[0].node ||
			a->end[1].node != b->end[1].node)
			return refuse_link(c, i);
		if (a->quality.bare == b->quality.bare)
			continue;
		pl_lab_link_text(want, b, text);
		return refuse(c, b->line, b->column, "link", text,
			b->quality.bare ? "is bare" : "is no longer bare");
	}
	return 0;
}

/* The running story's steps were computed from the old quality of their links. */
static int check_told_links(const struct compared *c)
{
	const struct pl_lab_story *s = &c->was->story;

	for (size_t i = 0; i < s->n; i++) {
		const struct pl_lab_link *link = &c->want->links[s->steps[i].link];

		if (s->steps[i].kind != PL_LAB_STORY_IMPAIR &&
			s->steps[i].kind != PL_LAB_STORY_RESTORE)
			continue;
		if (!pl_lab_change_same_quality(
			    &c->was->links[s->steps[i].link].quality, &link->quality))
			return refuse(c, link->line, link->column, "link", s->steps[i].words[0],
				"is changed by the story of a simulated lab, and is to be another");
	}
	return 0;
}

static int check_simulated(const struct compared *c)
{
	const struct pl_lab_topology *was = c->was, *want = c->want;

	if (was->int_version != want->int_version || was->int_fields != want->int_fields)
		return refuse(c, 0, 0, "section", "int", "of a simulated lab is another");
	if (!same_marking(&was->marking, &want->marking))
		return refuse(c, 0, 0, "section", "marking", "of a simulated lab is another");
	if (!pl_lab_change_same_story(&was->story, &want->story))
		return refuse(c, 0, 0, "section", "story", "of a simulated lab is another");
	return check_told_links(c);
}

int pl_lab_change_check(const struct pl_lab_topology *was, const struct pl_lab_topology *want,
	bool simulated, struct pl_diag *diag)
{
	const struct compared c = { was, want, diag };
	int r;

	if (was->telemetry != want->telemetry)
		return refuse(&c, 0, 0, "key", "telemetry", "is another");
	if ((was->marking.method == 0) != (want->marking.method == 0))
		return refuse(&c, 0, 0, "key", "marking.method",
			want->marking.method != 0 ? "is no longer none" : "becomes none");
	r = check_nodes(&c);
	if (r == 0)
		r = check_links(&c);
	return r == 0 && simulated ? check_simulated(&c) : r;
}

/* ---- telling ---- */

void pl_lab_change_tell(struct pl_buf *out, const char *kind, const char *did, const char *name)
{
	size_t len = strcspn(name, "\n");

	pl_buf_printf(out, "%s\t%s\t%.*s\n", kind, did, (int)(len < 200 ? len : 200), name);
}
