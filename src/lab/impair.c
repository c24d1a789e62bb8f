/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses impairments of a lab's links. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "lab/wires.h"

void pl_lab_impairments_of(const struct pl_lab_quality *q, struct pl_lab_impairments *ret)
{
	*ret = (struct pl_lab_impairments){
		.port = { .rate_bps = q->rate_bps,
			.n_classes = 1,
			.classes = { { .limit_bytes = (uint32_t)q->queue_bytes } } },
		.link = { .delay_ns = q->delay_ns, .loss = q->loss },
	};
}

static int read_rate(struct pl_lab_impairments *i, const char *text)
{
	double bps;

	if (pl_parse_rate(text, &bps) < 0 || (bps != 0 && bps < 8000) || bps > 1e11)
		return -EINVAL;
	i->port.rate_bps = (uint64_t)bps;
	return 0;
}

static int read_queue(struct pl_lab_impairments *i, const char *text)
{
	uint64_t bytes;

	if (pl_parse_size(text, &bytes) < 0 || bytes == 0 || bytes > 1u << 30)
		return -EINVAL;
	i->port.classes[0].limit_bytes = (uint32_t)bytes;
	return 0;
}

static int read_jitter(struct pl_lab_impairments *i, const char *text)
{
	if (strcmp(text, "0") != 0)
		return pl_dist_parse(&i->link.jitter, text, true, NULL);
	i->link.jitter = (struct pl_dist){ .kind = PL_DIST_DEFAULT };
	return 0;
}

/* Copies the word up to the comma, and moves behind it. -EINVAL: it is longer than any number. */
static int next_word(const char **text, char ret[72])
{
	size_t len = strcspn(*text, ",");

	if (len >= 72)
		return -EINVAL;
	snprintf(ret, 72, "%.*s", (int)len, *text);
	*text += len + ((*text)[len] == ',');
	return 0;
}

static int add_number(const char *word, uint64_t list[PL_DP_LOSE_MAX], uint32_t *n)
{
	if (*n == PL_DP_LOSE_MAX || pl_parse_u64(word, &list[*n]) < 0)
		return -EINVAL;
	++*n;
	return 0;
}

/* Parses numbers with commas between them; "" for none. */
static int read_numbers(const char *text, uint64_t list[PL_DP_LOSE_MAX], uint32_t *ret_n)
{
	uint32_t n = 0;
	char word[72];

	while (*text != '\0') {
		if (next_word(&text, word) < 0 || add_number(word, list, &n) < 0)
			return -EINVAL;
	}
	*ret_n = n;
	return 0;
}

/* Parses FIRST+RUN/PERIOD: RUN packets in a row in every PERIOD packets. */
static int read_run(struct pl_dp_link_cfg *l, char *word)
{
	char *plus = strchr(word, '+'), *slash = strchr(word, '/');

	if (plus == NULL || slash == NULL || slash < plus || l->lose_run != 0)
		return -EINVAL;
	*plus = *slash = '\0';
	if (pl_parse_u64(word, &l->lose_first) < 0 || pl_parse_u64(plus + 1, &l->lose_run) < 0 ||
		pl_parse_u64(slash + 1, &l->lose_period) < 0 || l->lose_run == 0 ||
		l->lose_period < l->lose_run)
		return -EINVAL;
	return 0;
}

/* Parses numbers, and at most one run, with commas between them; "" for none. */
static int read_lose(struct pl_lab_impairments *i, const char *text)
{
	struct pl_dp_link_cfg *l = &i->link;
	char word[72];
	int r = 0;

	l->n_lose = 0;
	l->lose_first = l->lose_period = l->lose_run = 0;
	while (*text != '\0' && r == 0) {
		r = next_word(&text, word);
		if (r == 0)
			r = strchr(word, '+') != NULL ? read_run(l, word)
						      : add_number(word, l->lose, &l->n_lose);
	}
	return r;
}

static int read_copy(struct pl_lab_impairments *i, const char *text)
{
	return read_numbers(text, i->link.copy, &i->link.n_copy);
}

static int read_hold(struct pl_lab_impairments *i, const char *text)
{
	return read_numbers(text, i->link.hold, &i->link.n_hold);
}

enum form { SHARE, TIME, FLAG, OWN };

#define AT(member) offsetof(struct pl_lab_impairments, link.member)
static const struct key {
	const char *name, *example;
	enum form form;
	size_t offset;
	int (*read)(struct pl_lab_impairments *i, const char *text);
} keys[] = {
	{ "rate", "10M, 0 for none", OWN, 0, read_rate },
	{ "queue", "64KiB", OWN, 0, read_queue },
	{ "delay", "5ms", TIME, AT(delay_ns), NULL },
	{ "jitter", "normal:1ms,200us, 0 for none", OWN, 0, read_jitter },
	{ "jitter_reorders", "yes", FLAG, AT(jitter_reorders), NULL },
	{ "loss", "0.01", SHARE, AT(loss), NULL },
	{ "to_bad", "0.001", SHARE, AT(to_bad), NULL },
	{ "to_good", "0.1", SHARE, AT(to_good), NULL },
	{ "bad_loss", "0.5", SHARE, AT(bad_loss), NULL },
	{ "lose", "0,5,17 or 10+2/100", OWN, 0, read_lose },
	{ "duplicate", "0.01", SHARE, AT(duplicate), NULL },
	{ "copy", "0,5,17", OWN, 0, read_copy },
	{ "corrupt", "0.01", SHARE, AT(corrupt), NULL },
	{ "reorder", "0.01", SHARE, AT(reorder), NULL },
	{ "hold", "0,5,17", OWN, 0, read_hold },
	{ "reorder_time", "2ms", TIME, AT(reorder_ns), NULL },
	{ "down", "yes", FLAG, AT(down), NULL },
};
#undef AT

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static int read_value(struct pl_lab_impairments *i, const struct key *k, const char *text)
{
	void *at = (char *)i + k->offset;
	uint64_t ns;
	double v;

	switch (k->form) {
	case SHARE:
		if (pl_parse_double(text, &v) < 0 || v < 0 || v > 1)
			return -EINVAL;
		*(double *)at = v;
		return 0;
	case TIME:
		if (pl_parse_duration(text, &ns) < 0 || ns > UINT64_C(10000000000))
			return -EINVAL;
		*(uint64_t *)at = ns;
		return 0;
	case FLAG:
		return pl_parse_bool(text, at);
	case OWN:
		return k->read(i, text);
	}
	return -EINVAL;
}

int pl_lab_impair_word(struct pl_lab_impairments *i, const char *word, struct pl_diag *diag)
{
	const char *names[KEYS], *equal = strchr(word, '=');
	char name[32];

	snprintf(name, sizeof(name), "%.*s", equal != NULL ? (int)(equal - word) : 31, word);
	for (size_t k = 0; k < KEYS; k++) {
		names[k] = keys[k].name;
		if (equal == NULL || strcmp(name, keys[k].name) != 0)
			continue;
		if (read_value(i, &keys[k], equal + 1) == 0)
			return 0;
		pl_diag_set(diag, "'%s' is no value of %s, such as %s", equal + 1, name,
			keys[k].example);
		return -EINVAL;
	}
	pl_diag_set(diag, equal == NULL ? "'%s' is not KEY=VALUE" : "no key '%s' of a link", name);
	pl_diag_nearest(diag, '\'', name, names, KEYS);
	return -EINVAL;
}

static bool same_value(
	const struct key *k, const struct pl_lab_impairments *a, const struct pl_lab_impairments *b)
{
	const void *x = (const char *)a + k->offset, *y = (const char *)b + k->offset;

	switch (k->form) {
	case SHARE:
		return *(const double *)x == *(const double *)y;
	case TIME:
		return *(const uint64_t *)x == *(const uint64_t *)y;
	case FLAG:
		return *(const bool *)x == *(const bool *)y;
	case OWN:
		return true;
	}
	return false;
}

static bool same_numbers(const uint64_t *a, uint32_t n_a, const uint64_t *b, uint32_t n_b)
{
	return n_a == n_b && memcmp(a, b, n_a * sizeof(*a)) == 0;
}

bool pl_lab_impairments_same(const struct pl_lab_impairments *a, const struct pl_lab_impairments *b)
{
	const struct pl_dp_link_cfg *x = &a->link, *y = &b->link;

	for (size_t k = 0; k < KEYS; k++) {
		if (!same_value(&keys[k], a, b))
			return false;
	}
	return a->port.rate_bps == b->port.rate_bps &&
	       a->port.classes[0].limit_bytes == b->port.classes[0].limit_bytes &&
	       pl_dist_same(&x->jitter, &y->jitter) && x->lose_first == y->lose_first &&
	       x->lose_run == y->lose_run && x->lose_period == y->lose_period &&
	       same_numbers(x->lose, x->n_lose, y->lose, y->n_lose) &&
	       same_numbers(x->copy, x->n_copy, y->copy, y->n_copy) &&
	       same_numbers(x->hold, x->n_hold, y->hold, y->n_hold);
}

int pl_lab_impairments_check(const struct pl_lab_impairments *i, struct pl_diag *diag)
{
	struct pl_dp_link *link = NULL;
	struct pl_dp_port *port = NULL;
	int r = pl_dp_link_new(&link, &i->link, 0, diag);

	if (r == 0)
		r = pl_dp_port_new(&port, &i->port, diag);
	if (port != NULL)
		pl_dp_port_free(port);
	if (link != NULL)
		pl_dp_link_free(link);
	return r;
}
