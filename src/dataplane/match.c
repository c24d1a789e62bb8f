/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts keys and matches from and to text. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "dataplane/table.h"

static const char *const kinds[] = { "exact", "prefix", "ternary", "range", "window" };

#define KINDS     (sizeof(kinds) / sizeof(kinds[0]))
#define VALUE_MAX 128

/* ---- keys ---- */

static int refuse_kind(const struct pl_dp_key *key, enum pl_dp_field field, unsigned int kind,
	struct pl_diag *diag)
{
	for (unsigned int i = 0; i < key->n; i++) {
		if (key->fields[i].field == field && key->fields[i].kind == kind) {
			pl_diag_set(diag, "%s is twice in the key", pl_dp_fields[field].name);
			return -EINVAL;
		}
		if (key->fields[i].kind == PL_DP_PREFIX && kind == PL_DP_PREFIX) {
			pl_diag_set(diag, "a key has one prefix field at most; use ternary for %s",
				pl_dp_fields[field].name);
			return -EINVAL;
		}
	}
	if (kind == PL_DP_WINDOW && field != PL_DP_FIELD_TIME) {
		pl_diag_set(diag, "a window is of the field time only, not of %s",
			pl_dp_fields[field].name);
		return -EINVAL;
	}
	if (kind == PL_DP_RANGE && pl_dp_fields[field].words > 1) {
		pl_diag_set(
			diag, "%s has no ranges; use prefix or ternary", pl_dp_fields[field].name);
		return -EINVAL;
	}
	return 0;
}

int pl_dp_key_add(struct pl_dp_key *key, const char *text, struct pl_diag *diag)
{
	const size_t len = strcspn(text, " "), blanks = strspn(text + len, " ");
	const char *word = text + len + blanks;
	enum pl_dp_field field = pl_dp_field_find(text, len, diag);
	unsigned int kind = 0;

	if (field == PL_DP_FIELD_MAX)
		return -EINVAL;
	while (kind < KINDS && strcmp(word, kinds[kind]) != 0)
		kind++;
	if (kind == KINDS) {
		pl_diag_set(diag,
			"\"%s\": after the field write exact, prefix, ternary, range or window",
			text);
		pl_diag_nearest(diag, '"', word, kinds, KINDS);
		return -EINVAL;
	}
	if (key->n == PL_DP_FIELDS_MAX) {
		pl_diag_set(diag, "a key has %d fields at most", PL_DP_FIELDS_MAX);
		return -EINVAL;
	}
	if (refuse_kind(key, field, kind, diag) < 0)
		return -EINVAL;
	key->fields[key->n].field = (uint8_t)field;
	key->fields[key->n].kind = (uint8_t)kind;
	key->fields[key->n].at = (uint8_t)key->words;
	key->words += pl_dp_fields[field].words;
	key->n++;
	return 0;
}

/* ---- reading matches ---- */

/* The place of a value of field i in a match. */
struct place {
	const struct pl_dp_key *key;
	unsigned int i;
	enum pl_dp_field field;
	const struct pl_dp_field_info *info;
	struct pl_dp_match *match;
	uint64_t *value, *mask;
	struct pl_diag *diag;
};

static struct place place_of(const struct pl_dp_key *key, unsigned int i, struct pl_dp_match *match,
	struct pl_diag *diag)
{
	const enum pl_dp_field field = (enum pl_dp_field)key->fields[i].field;

	return (struct place){ key, i, field, &pl_dp_fields[field], match,
		match->value + key->fields[i].at, match->mask + key->fields[i].at, diag };
}

static uint64_t all_ones(unsigned int bits)
{
	return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

/* Sets the mask to the field's first `bits` bits. */
static void set_prefix_mask(const struct place *p, unsigned int bits)
{
	if (p->info->words == 2) {
		p->mask[0] = bits == 0 ? 0 : UINT64_MAX << (bits < 64 ? 64 - bits : 0);
		p->mask[1] = bits <= 64 ? 0 : UINT64_MAX << (128 - bits);
	} else {
		p->mask[0] = all_ones(p->info->bits) ^ all_ones(p->info->bits - bits);
	}
}

/* Refuses a value with bits outside of its mask: the written value would not be the matched one. */
static int check_masked(const struct place *p, const char *text)
{
	for (unsigned int w = 0; w < p->info->words; w++) {
		if ((p->value[w] & ~p->mask[w]) != 0) {
			pl_diag_set(
				p->diag, "%s=%s has bits outside of its mask", p->info->name, text);
			return -EINVAL;
		}
	}
	return 0;
}

/* Parses VALUE/BITS or VALUE. */
static int read_prefix(const struct place *p, char *text)
{
	char *slash = strchr(text, '/');
	unsigned int bits = p->info->bits;
	uint64_t n;

	if (slash != NULL)
		*slash = '\0';
	if (pl_dp_value_parse(p->field, text, p->value, p->diag) < 0)
		return -EINVAL;
	if (slash != NULL) {
		/* An IPv4 prefix counts from the first bit of the IPv4 address. */
		const unsigned int mapped =
			p->info->words == 2 && strchr(text, ':') == NULL ? 96 : 0;

		if (pl_parse_u64(slash + 1, &n) < 0 || n > bits - mapped) {
			pl_diag_set(p->diag, "\"%s\" is not a length of a prefix of %s", slash + 1,
				p->info->name);
			return -EINVAL;
		}
		bits = mapped + (unsigned int)n;
		*slash = '/';
	}
	set_prefix_mask(p, bits);
	if (p->key->fields[p->i].kind == PL_DP_PREFIX)
		p->match->prefix = (uint16_t)(bits + 1);
	return check_masked(p, text);
}

static int read_ternary(const struct place *p, char *text)
{
	char *and = strchr(text, '&');
	uint64_t mask[2];

	if (and == NULL)
		return read_prefix(p, text);
	*and = '\0';
	if (pl_dp_value_parse(p->field, text, p->value, p->diag) < 0 ||
		pl_dp_value_parse(p->field, and+1, mask, p->diag) < 0)
		return -EINVAL;
	/* A mask written as an IPv4 address is of IPv4 addresses only (::ffff:0:0/96). */
	if (p->info->words == 2 && strchr(text, ':') == NULL && strchr(and+1, ':') == NULL) {
		mask[0] = UINT64_MAX;
		mask[1] |= UINT64_MAX << 32;
	}
	*and = '&';
	memcpy(p->mask, mask, p->info->words * sizeof(*mask));
	return check_masked(p, text);
}

static int add_bound(const struct place *p, struct pl_dp_bound bound)
{
	bound.at = p->key->fields[p->i].at;
	p->match->bounds[p->match->n_bounds++] = bound;
	return 0;
}

static int read_range(const struct place *p, char *text)
{
	char *dash = strchr(text, '-');
	uint64_t first[2], last[2];

	if (dash != NULL)
		*dash = '\0';
	if (pl_dp_value_parse(p->field, text, first, p->diag) < 0 ||
		pl_dp_value_parse(p->field, dash != NULL ? dash + 1 : text, last, p->diag) < 0)
		return -EINVAL;
	if (first[0] > last[0]) {
		pl_diag_set(p->diag, "%s=%s-%s ends before it begins", p->info->name, text,
			dash != NULL ? dash + 1 : text);
		return -EINVAL;
	}
	return add_bound(p, (struct pl_dp_bound){ .first = first[0], .last = last[0] });
}

/* Parses OFFSET+WIDTH/PERIOD. */
static int read_window(const struct place *p, char *text)
{
	char *plus = strchr(text, '+'), *slash = plus != NULL ? strchr(plus, '/') : NULL;
	struct pl_dp_bound b = { .window = true };

	if (slash != NULL) {
		*plus = *slash = '\0';
		if (pl_parse_duration(text, &b.first) == 0 &&
			pl_parse_duration(plus + 1, &b.last) == 0 &&
			pl_parse_duration(slash + 1, &b.period) == 0 && b.period > 0 &&
			b.first < b.period && b.last > 0 && b.last <= b.period)
			return add_bound(p, b);
		*plus = '+';
		*slash = '/';
	}
	pl_diag_set(p->diag,
		"%s=%s is not a window OFFSET+WIDTH/PERIOD such as 250ms+250ms/1s, with an offset below the period and a width up to it",
		p->info->name, text);
	return -EINVAL;
}

static int read_value(const struct place *p, char *text)
{
	switch ((enum pl_dp_match_kind)p->key->fields[p->i].kind) {
	case PL_DP_EXACT:
		set_prefix_mask(p, p->info->bits);
		return pl_dp_value_parse(p->field, text, p->value, p->diag);
	case PL_DP_PREFIX:
		return read_prefix(p, text);
	case PL_DP_TERNARY:
		return read_ternary(p, text);
	case PL_DP_RANGE:
		return read_range(p, text);
	case PL_DP_WINDOW:
		return read_window(p, text);
	}
	return -EINVAL;
}

/* Parses "FIELD=VALUE" into the first place of that field without a value: a key may have a field
 * with two kinds. */
static int read_word(const struct pl_dp_key *key, char *word, struct pl_dp_match *match,
	uint32_t *seen, struct pl_diag *diag)
{
	char *equals = strchr(word, '=');
	enum pl_dp_field field;
	bool known = false;

	if (equals == NULL) {
		pl_diag_set(diag, "\"%s\" is not FIELD=VALUE", word);
		return -EINVAL;
	}
	field = pl_dp_field_find(word, (size_t)(equals - word), diag);
	if (field == PL_DP_FIELD_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < key->n; i++) {
		struct place p;

		if (key->fields[i].field != field)
			continue;
		known = true;
		if ((*seen >> i & 1) != 0)
			continue;
		*seen |= 1u << i;
		p = place_of(key, i, match, diag);
		return read_value(&p, equals + 1);
	}
	pl_diag_set(diag, known ? "%s is twice in the entry" : "%s is not in the key of the table",
		pl_dp_fields[field].name);
	return -EINVAL;
}

static int check_exact(const struct pl_dp_key *key, uint32_t seen, struct pl_diag *diag)
{
	for (unsigned int i = 0; i < key->n; i++) {
		if (key->fields[i].kind == PL_DP_EXACT && (seen >> i & 1) == 0) {
			pl_diag_set(diag, "the entry has no %s, which is an exact field of the key",
				pl_dp_fields[key->fields[i].field].name);
			return -EINVAL;
		}
	}
	return 0;
}

/* Copies the next word into dst. Returns 1, 0 at the end, -EINVAL with diag when it is too long. */
static int next_word(const char **text, const char *end, char dst[VALUE_MAX], struct pl_diag *diag)
{
	size_t len = 0;

	while (*text < end && **text == ' ')
		(*text)++;
	while (*text + len < end && (*text)[len] != ' ')
		len++;
	if (len >= VALUE_MAX) {
		pl_diag_set(diag, "a word of the entry is longer than %d bytes", VALUE_MAX - 1);
		return -EINVAL;
	}
	memcpy(dst, *text, len);
	dst[len] = '\0';
	*text += len;
	return len > 0;
}

static int read_priority(const char **text, const char *end, uint32_t *ret, struct pl_diag *diag)
{
	char word[VALUE_MAX];
	uint64_t n;
	int r = next_word(text, end, word, diag);

	if (r < 0)
		return r;
	if (r == 0 || pl_parse_u64(word, &n) < 0 || n > UINT32_MAX) {
		pl_diag_set(diag, "behind priority stands a number up to %" PRIu32, UINT32_MAX);
		return -EINVAL;
	}
	*ret = (uint32_t)n;
	return 0;
}

int pl_dp_match_parse(const struct pl_dp_key *key, const char *text, size_t len,
	struct pl_dp_match *ret, struct pl_diag *diag)
{
	const char *end = text + len;
	char word[VALUE_MAX];
	uint32_t seen = 0;
	bool first = true;
	int r;

	*ret = (struct pl_dp_match){ 0 };
	while ((r = next_word(&text, end, word, diag)) > 0) {
		r = first && strcmp(word, "priority") == 0
			    ? read_priority(&text, end, &ret->priority, diag)
			    : read_word(key, word, ret, &seen, diag);
		if (r < 0)
			return r;
		first = false;
	}
	return r < 0 ? r : check_exact(key, seen, diag);
}

/* ---- writing them ---- */

static void put_bound(const struct pl_dp_key *key, unsigned int i, const struct pl_dp_match *m,
	struct pl_buf *out)
{
	char text[3][PL_EXACT_TEXT_MAX];

	for (unsigned int k = 0; k < m->n_bounds; k++) {
		const struct pl_dp_bound *b = &m->bounds[k];

		if (b->at != key->fields[i].at)
			continue;
		if (b->window) {
			pl_format_duration_exact(text[0], b->first);
			pl_format_duration_exact(text[1], b->last);
			pl_format_duration_exact(text[2], b->period);
			pl_buf_printf(out, " time=%s+%s/%s", text[0], text[1], text[2]);
			continue;
		}
		pl_buf_printf(out, " %s=", pl_dp_fields[key->fields[i].field].name);
		pl_dp_value_put((enum pl_dp_field)key->fields[i].field, &b->first, out);
		pl_buf_chr(out, '-');
		pl_dp_value_put((enum pl_dp_field)key->fields[i].field, &b->last, out);
	}
}

/* Returns the number of leading ones of a prefix mask; -1 for any other mask. */
static int prefix_bits(const struct place *p)
{
	const unsigned int bits = p->info->bits;

	for (unsigned int n = 0; n <= bits; n++) {
		struct pl_dp_match m;
		struct place q = *p;

		q.mask = m.mask;
		set_prefix_mask(&q, n);
		if (memcmp(q.mask, p->mask, p->info->words * sizeof(*q.mask)) == 0)
			return (int)n;
	}
	return -1;
}

/* Returns true when the field is in the key again with another kind: its first value must then be
 * written even if it matches everything, because the parser would take the next one for it. */
static bool is_before_itself(const struct place *p)
{
	for (unsigned int i = p->i + 1; i < p->key->n; i++) {
		if (p->key->fields[i].field == p->field)
			return true;
	}
	return false;
}

static bool is_v4(const struct place *p, const uint64_t *words)
{
	return p->info->words == 2 && words[0] == 0 && words[1] >> 32 == 0xffff;
}

/* Writes a mask so that it is read again: in the form of IPv4 it is one of IPv4 addresses only. */
static void put_mask(const struct place *p, struct pl_buf *out)
{
	const uint64_t low = p->mask[p->info->words - 1] & UINT32_MAX,
		       short_form[2] = { 0, UINT64_C(0xffff) << 32 | low };

	if (is_v4(p, p->value) && p->mask[0] == UINT64_MAX && p->mask[1] >> 32 == UINT32_MAX)
		pl_dp_value_put(p->field, short_form, out);
	else if (is_v4(p, p->mask))
		pl_buf_printf(out, "::ffff:%x:%x", (unsigned int)(low >> 16),
			(unsigned int)(low & UINT16_MAX));
	else
		pl_dp_value_put(p->field, p->mask, out);
}

static void put_masked(const struct place *p, struct pl_buf *out)
{
	const int bits = prefix_bits(p);
	const bool v4 = bits >= 96 && is_v4(p, p->value);

	if (bits == 0 && p->key->fields[p->i].kind == PL_DP_TERNARY && !is_before_itself(p))
		return;
	if (p->key->fields[p->i].kind == PL_DP_PREFIX && p->match->prefix == 0)
		return;
	pl_buf_printf(out, " %s=", p->info->name);
	pl_dp_value_put(p->field, p->value, out);
	if (bits < 0) {
		pl_buf_chr(out, '&');
		put_mask(p, out);
	} else if (bits != p->info->bits) {
		pl_buf_printf(out, "/%d", v4 ? bits - 96 : bits);
	}
}

void pl_dp_match_put(
	const struct pl_dp_key *key, const struct pl_dp_match *match, struct pl_buf *out)
{
	const size_t begin = out->len;
	struct pl_dp_match m = *match;

	if (m.priority != 0)
		pl_buf_printf(out, " priority %" PRIu32, m.priority);
	for (unsigned int i = 0; i < key->n; i++) {
		const struct place p = place_of(key, i, &m, NULL);

		if (key->fields[i].kind >= PL_DP_RANGE)
			put_bound(key, i, match, out);
		else
			put_masked(&p, out);
	}
	/* Removes the blank before the first word. */
	if (!out->failed && out->len > begin) {
		memmove(out->data + begin, out->data + begin + 1, out->len - begin);
		out->len--;
	}
}

bool pl_dp_match_equal(
	const struct pl_dp_key *key, const struct pl_dp_match *a, const struct pl_dp_match *b)
{
	bool taken[PL_DP_FIELDS_MAX] = { false };

	if (a->priority != b->priority || a->prefix != b->prefix || a->n_bounds != b->n_bounds ||
		memcmp(a->value, b->value, key->words * sizeof(*a->value)) != 0 ||
		memcmp(a->mask, b->mask, key->words * sizeof(*a->mask)) != 0)
		return false;
	/* Bounds may be in any order. */
	for (unsigned int i = 0; i < a->n_bounds; i++) {
		unsigned int k = 0;

		while (k < b->n_bounds && (taken[k] || a->bounds[i].at != b->bounds[k].at ||
						  a->bounds[i].window != b->bounds[k].window ||
						  a->bounds[i].first != b->bounds[k].first ||
						  a->bounds[i].last != b->bounds[k].last ||
						  a->bounds[i].period != b->bounds[k].period))
			k++;
		if (k == b->n_bounds)
			return false;
		taken[k] = true;
	}
	return true;
}
