/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the story of a lab, and checks that every step is possible. */
#include "lab/story.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/opt.h"
#include "lab/wires.h"

#define RATE_MIN  1000
#define RATE_MAX  1e11
#define SIZE_MIN  20
#define SIZE_MOST 65000
#define DAY_NS    UINT64_C(86400000000000)

const char *const pl_lab_traffic_kinds[] = { "bulk", "udp", "onoff", "incast", "request", "dns",
	NULL };

static int check_rate(const char *value, struct pl_diag *diag)
{
	double rate;

	if (pl_parse_rate(value, &rate) == 0 && rate >= RATE_MIN && rate <= RATE_MAX)
		return 0;
	pl_diag_set(diag, "'%s' is no rate in bits per second from 1k to 100G, such as 5M", value);
	return -EINVAL;
}

#define AT(member) .offset = offsetof(struct pl_lab_story_conf, member)
/* clang-format off */
const struct pl_conf_row pl_lab_story_rows[] = {
	{ .key = "at", .type = PL_CONF_DURATION, AT(at_ns), .required = true, .def = "5s", .max = 30 * DAY_NS,
	  .help = "Time after the lab is up, or after a simulation's start." },
	{ .key = "impair", .type = PL_CONF_STRING, AT(impair),
	  .help = "A link and its new values, as for pathline lab impair: \"leaf1-spine2 loss=0.01 delay=2ms\"." },
	{ .key = "restore", .type = PL_CONF_STRING, AT(restore),
	  .help = "A link that gets the values of the file again: \"leaf1-spine2\", or \"leaf1>spine2\" for one direction." },
	{ .key = "traffic", .type = PL_CONF_STRING, AT(traffic),
	  .help = "Kind, senders and receiver, as for pathline lab traffic: \"udp h1 h8\"." },
	{ .key = "name", .type = PL_CONF_STRING, AT(name),
	  .help = "Name of the traffic, for a later stop." },
	{ .key = "rate", .type = PL_CONF_STRING, AT(rate), .check = check_rate,
	  .help = "Bits of payload per second of each sender of the traffic; by default 1M." },
	{ .key = "size", .type = PL_CONF_SIZE, AT(size), .def = "0B", .max = SIZE_MOST,
	  .help = "Bytes of a datagram or answer of the traffic; 0B: 1000, with dns 200." },
	{ .key = "for", .type = PL_CONF_DURATION, AT(for_ns), .def = "0s", .max = 30 * DAY_NS,
	  .help = "Duration of the traffic; 0s: until it is stopped." },
	{ .key = "on", .type = PL_CONF_DURATION, AT(on_ns), .def = "10ms", .min = 1000, .max = DAY_NS,
	  .help = "For onoff and incast: how long they send each time." },
	{ .key = "off", .type = PL_CONF_DURATION, AT(off_ns), .def = "90ms", .max = DAY_NS,
	  .help = "Time of silence after sending of onoff and incast." },
	{ .key = "stop", .type = PL_CONF_STRING, AT(stop),
	  .help = "Name of traffic that ends." },
	{ 0 },
};
/* clang-format on */

/* State while a story is made. */
struct maker {
	const struct pl_lab_topology *t;
	const struct pl_lab_story_conf *items;
	struct pl_lab_story *s;
	struct pl_diag *diag;
	size_t *order; /* item by step */
	const char *key;
};

static int no_memory(struct maker *m)
{
	pl_diag_set(m->diag, "out of memory");
	return -ENOMEM;
}

static int split(struct maker *m, struct pl_lab_story_step *step, const char *text)
{
	char *word, *rest;

	step->copy = strdup(text);
	if (step->copy == NULL)
		return no_memory(m);
	for (word = strtok_r(step->copy, " \t\n", &rest); word != NULL;
		word = strtok_r(NULL, " \t\n", &rest)) {
		if (step->n_words == PL_LAB_STORY_WORDS) {
			pl_diag_set(m->diag, "more than %d words", PL_LAB_STORY_WORDS);
			return -EINVAL;
		}
		step->words[step->n_words++] = word;
	}
	if (step->n_words > 0)
		return 0;
	pl_diag_set(m->diag, "there is nothing behind '%s'", m->key);
	return -EINVAL;
}

/* ---- links ---- */

static bool changes(const struct pl_lab_story_step *step, unsigned int link, unsigned int end)
{
	return (step->kind == PL_LAB_STORY_IMPAIR || step->kind == PL_LAB_STORY_RESTORE) &&
	       step->link == link && (step->ends >> end & 1) != 0;
}

/* Computes a direction's impairments after the steps up to `last`. */
static int state_after(struct maker *m, size_t last, unsigned int link, unsigned int end,
	struct pl_lab_impairments *ret)
{
	int r = 0;

	pl_lab_impairments_of(&m->t->links[link].quality, ret);
	for (size_t i = 0; i <= last && r == 0; i++) {
		const struct pl_lab_story_step *step = &m->s->steps[i];

		if (!changes(step, link, end))
			continue;
		if (step->kind == PL_LAB_STORY_RESTORE)
			pl_lab_impairments_of(&m->t->links[link].quality, ret);
		for (unsigned int w = 1; w < step->n_words && r == 0; w++)
			r = pl_lab_impair_word(ret, step->words[w], m->diag);
	}
	return r;
}

static int check_link(struct maker *m, size_t i)
{
	struct pl_lab_story_step *step = &m->s->steps[i];
	int link = pl_lab_find_directions(m->t, step->words[0], &step->ends, m->diag), r = 0;

	if (link < 0)
		return -EINVAL;
	step->link = (unsigned int)link;
	if (step->kind == PL_LAB_STORY_RESTORE && step->n_words > 1) {
		pl_diag_set(m->diag, "'%s': restore has a link only", step->words[1]);
		return -EINVAL;
	}
	if (step->kind == PL_LAB_STORY_IMPAIR && step->n_words < 2) {
		pl_diag_set(m->diag, "no KEY=VALUE behind the link, such as loss=0.01");
		return -EINVAL;
	}
	for (unsigned int end = 0; end < 2 && r == 0; end++) {
		struct pl_lab_impairments state;

		if (!changes(step, step->link, end))
			continue;
		r = state_after(m, i, step->link, end, &state);
		if (r == 0)
			r = pl_lab_impairments_check(&state, m->diag);
	}
	return r;
}

/* ---- traffic ---- */

static int read_hosts(struct maker *m, struct pl_lab_story_step *step)
{
	struct pl_lab_traffic *f = &step->traffic;

	if (step->n_words < 3 || step->n_words > PL_LAB_SENDERS_MAX + 2) {
		pl_diag_set(m->diag,
			"traffic is KIND FROM… TO, such as udp h1 h2, with %d senders at most",
			PL_LAB_SENDERS_MAX);
		return -EINVAL;
	}
	for (unsigned int i = 1; i < step->n_words; i++) {
		int at = pl_lab_find_node(m->t, step->words[i], m->diag);

		if (at < 0)
			return -EINVAL;
		if (m->t->nodes[at].kind != PL_LAB_HOST) {
			pl_diag_set(m->diag, "'%s' is no host: only hosts send and receive",
				step->words[i]);
			return -EINVAL;
		}
		if (i + 1 == step->n_words)
			f->to = (unsigned int)at;
		else
			f->from[f->n_from++] = (unsigned int)at;
	}
	for (unsigned int i = 0; i < f->n_from; i++) {
		if (f->from[i] == f->to) {
			pl_diag_set(m->diag, "'%s' sends to itself", m->t->nodes[f->to].name);
			return -EINVAL;
		}
	}
	return 0;
}

static int read_traffic(
	struct maker *m, struct pl_lab_story_step *step, const struct pl_lab_story_conf *c)
{
	const unsigned int k = pl_opt_place(pl_lab_traffic_kinds, step->words[0]);
	double rate = 1e6;

	if (pl_lab_traffic_kinds[k] == NULL) {
		pl_diag_set(m->diag, "no kind '%s': bulk, udp, onoff, incast, request or dns",
			step->words[0]);
		return -EINVAL;
	}
	if (c->rate != NULL)
		(void)pl_parse_rate(c->rate, &rate); /* checked before */
	step->traffic = (struct pl_lab_traffic){ .kind = (enum pl_lab_traffic_kind)k,
		.duration_ns = c->for_ns,
		.on_ns = c->on_ns,
		.off_ns = c->off_ns,
		.rate_bps = (uint64_t)rate,
		.size = (uint32_t)(c->size != 0      ? c->size
				   : k == PL_LAB_DNS ? 200
						     : 1000) };
	if (step->traffic.size < SIZE_MIN) {
		m->key = "size";
		pl_diag_set(m->diag, "a payload has %d bytes at least", SIZE_MIN);
		return -EINVAL;
	}
	return read_hosts(m, step);
}

/* Finds the last earlier traffic of that name. */
static int find_stopped(struct maker *m, size_t i, const char *name)
{
	for (size_t k = i; k-- > 0;) {
		const char *other = m->items[m->order[k]].name;

		if (m->s->steps[k].kind != PL_LAB_STORY_TRAFFIC || other == NULL ||
			strcmp(other, name) != 0)
			continue;
		m->s->steps[i].stops = k;
		return 0;
	}
	pl_diag_set(m->diag, "no traffic before has the name '%s'", name);
	return -EINVAL;
}

/* ---- all ---- */

static int choose_kind(struct maker *m, const struct pl_lab_story_conf *c,
	struct pl_lab_story_step *step, const char **ret_text)
{
	const struct {
		const char *key, *text;
		enum pl_lab_story_kind kind;
	} choices[] = {
		{ "impair", c->impair, PL_LAB_STORY_IMPAIR },
		{ "restore", c->restore, PL_LAB_STORY_RESTORE },
		{ "traffic", c->traffic, PL_LAB_STORY_TRAFFIC },
		{ "stop", c->stop, PL_LAB_STORY_STOP },
	};
	unsigned int n = 0;

	m->key = "at";
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		if (choices[i].text == NULL)
			continue;
		n++;
		m->key = choices[i].key;
		step->kind = choices[i].kind;
		*ret_text = choices[i].text;
	}
	if (n == 1)
		return 0;
	pl_diag_set(m->diag, "a step has one of impair, restore, traffic and stop");
	return -EINVAL;
}

static int make_step(struct maker *m, size_t i)
{
	const struct pl_lab_story_conf *c = &m->items[m->order[i]];
	struct pl_lab_story_step *step = &m->s->steps[i];
	const char *text = NULL;
	int r;

	step->at_ns = c->at_ns;
	r = choose_kind(m, c, step, &text);
	if (r != 0)
		return r;
	m->s->n = i + 1;
	if (asprintf(&step->text, "%s %s", m->key, text) < 0) {
		step->text = NULL;
		return no_memory(m);
	}
	r = split(m, step, text);
	if (r != 0)
		return r;
	if (step->kind == PL_LAB_STORY_TRAFFIC)
		return read_traffic(m, step, c);
	if (c->name != NULL || c->rate != NULL || c->size != 0 || c->for_ns != 0) {
		pl_diag_set(m->diag, "name, rate, size and for are of traffic");
		return -EINVAL;
	}
	return step->kind == PL_LAB_STORY_STOP ? find_stopped(m, i, text) : check_link(m, i);
}

/* Sorts items by time, stably. */
static void order_items(struct maker *m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = i;

		while (at > 0 && m->items[m->order[at - 1]].at_ns > m->items[i].at_ns) {
			m->order[at] = m->order[at - 1];
			at--;
		}
		m->order[at] = i;
	}
}

int pl_lab_story_make(struct pl_lab_story *ret, const struct pl_lab_topology *t,
	const struct pl_conf_list *items, size_t *ret_item, const char **ret_key,
	struct pl_diag *diag)
{
	struct maker m = { .t = t, .items = items->items, .s = ret, .diag = diag, .key = "at" };
	int r = 0;

	*ret = (struct pl_lab_story){ .n = 0 };
	*ret_item = 0;
	if (items->n == 0)
		return 0;
	ret->steps = calloc(items->n, sizeof(*ret->steps));
	m.order = calloc(items->n, sizeof(*m.order));
	if (ret->steps == NULL || m.order == NULL)
		r = no_memory(&m);
	if (r == 0)
		order_items(&m, items->n);
	for (size_t i = 0; i < items->n && r == 0; i++) {
		*ret_item = m.order[i];
		r = make_step(&m, i);
	}
	*ret_key = m.key;
	free(m.order);
	return r;
}

void pl_lab_story_done(struct pl_lab_story *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->steps[i].text);
		free(s->steps[i].copy);
	}
	free(s->steps);
	*s = (struct pl_lab_story){ .n = 0 };
}
