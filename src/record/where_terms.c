/* SPDX-License-Identifier: BSD-2-Clause */
/* Terms of a filter expression: its text as tokens, and the meaning of names and values. */
#include "record/where_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"

/* ---- text to tokens ---- */

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("_.:/+-[]", c) != NULL);
}

static int next_compare(struct parser *p)
{
	static const struct {
		char text[3];
		enum compare compare;
	} list[] = { { "==", EQ }, { "!=", NE }, { "<=", LE }, { ">=", GE }, { "<", LT },
		{ ">", GT } };
	static const struct {
		char text[3];
		const char *instead;
	} foreign[] = { { "=", "==" }, { "&&", "and" }, { "||", "or" }, { "&", "and" },
		{ "|", "or" }, { "!", "not" } };

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		size_t len = strlen(list[i].text);

		if (strncmp(p->text + p->pos, list[i].text, len) == 0) {
			p->token.kind = T_COMPARE;
			p->token.compare = list[i].compare;
			p->token.len = len;
			p->pos += len;
			return 0;
		}
	}
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		if (strncmp(p->text + p->pos, foreign[i].text, strlen(foreign[i].text)) == 0)
			return fail_at(p, p->pos, "\"%s\" is written \"%s\" here", foreign[i].text,
				foreign[i].instead);
	}
	if (p->text[p->pos] > ' ' && p->text[p->pos] < 0x7f)
		return fail_at(p, p->pos, "unexpected \"%c\"", p->text[p->pos]);
	return fail_at(p, p->pos, "unexpected byte 0x%02x", (unsigned char)p->text[p->pos]);
}

int pl_where_next(struct parser *p)
{
	const char *end;
	char c;

	while (p->pos < p->len && strchr(" \t\r\n", p->text[p->pos]) != NULL)
		p->pos++;
	p->token.at = p->pos;
	p->token.len = 1;
	if (p->pos == p->len) {
		p->token.kind = T_END;
		p->token.len = 0;
		return 0;
	}
	c = p->text[p->pos];
	if (c == '(' || c == ')') {
		p->token.kind = c == '(' ? T_OPEN : T_CLOSE;
		p->pos++;
		return 0;
	}
	if (c == '"' || c == '\'') {
		end = memchr(p->text + p->pos + 1, c, p->len - p->pos - 1);
		if (end == NULL)
			return fail_at(p, p->pos, "the quote is not closed");
		p->token.kind = T_STRING;
		p->token.at = p->pos + 1;
		p->token.len = (size_t)(end - p->text) - p->token.at;
		p->pos = (size_t)(end - p->text) + 1;
		return 0;
	}
	if (!is_word_char(c))
		return next_compare(p);
	while (p->pos < p->len && is_word_char(p->text[p->pos]))
		p->pos++;
	p->token.kind = T_WORD;
	p->token.len = p->pos - p->token.at;
	return 0;
}

bool pl_where_token_is(const struct parser *p, const char *word)
{
	return p->token.kind == T_WORD && p->token.len == strlen(word) &&
	       memcmp(p->text + p->token.at, word, p->token.len) == 0;
}

/* ---- names ---- */

static bool find_in(
	const struct pl_field *fields, size_t n, const char *name, bool of_hops, struct name *ret)
{
	for (size_t i = 0; i < n; i++) {
		if (fields[i].name[0] != '\0' && strcmp(fields[i].name, name) == 0) {
			*ret = (struct name){ .field = &fields[i], .of_hops = of_hops };
			return true;
		}
	}
	return false;
}

static bool find_field(enum pl_record_kind kind, const char *name, struct name *ret)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);

	return find_in(fields, n, name, kind == PL_KIND_HOP, ret);
}

static bool find_name(const struct parser *p, const char *text, struct name *ret)
{
	const char *flag;

	if (p->fields != NULL)
		return find_in(p->fields, p->n_fields, text, false, ret);
	if (p->in_hop) {
		if (strncmp(text, "hops.", 5) == 0)
			text += 5;
		if (!find_field(PL_KIND_HOP, text, ret))
			return false;
		ret->of_hops = false; /* the record is the hop */
		return true;
	}
	if (strncmp(text, "hops.", 5) == 0)
		return find_field(PL_KIND_HOP, text + 5, ret);
	if (strncmp(text, "flags.", 6) != 0)
		return find_field(PL_KIND_PATH, text, ret);
	for (unsigned int bit = 0; (flag = pl_path_flag_name(bit)) != NULL; bit++) {
		if (strcmp(flag, text + 6) == 0 && find_field(PL_KIND_PATH, "flags", ret)) {
			ret->mask = (uint16_t)(1u << bit);
			return true;
		}
	}
	return false;
}

#define NAMES_MAX    128
#define NAME_MAX_LEN 48

/* Lists all names, to find the nearest. */
static size_t list_names(const struct parser *p, char names[NAMES_MAX][NAME_MAX_LEN])
{
	size_t count = 0, n;
	const char *flag;

	for (size_t i = 0; i < p->n_fields && count < NAMES_MAX; i++) {
		if (p->fields[i].name[0] != '\0')
			snprintf(names[count++], NAME_MAX_LEN, "%s", p->fields[i].name);
	}
	if (p->fields != NULL)
		return count;
	for (int kind = p->in_hop ? PL_KIND_HOP : PL_KIND_PATH; kind <= PL_KIND_HOP; kind++) {
		const struct pl_field *fields = pl_fields((enum pl_record_kind)kind, &n);

		for (size_t i = 0; i < n && count < NAMES_MAX; i++) {
			if (fields[i].name[0] == '\0' || fields[i].form == PL_FORM_FLAGS)
				continue;
			snprintf(names[count++], NAME_MAX_LEN, "%s%s",
				kind == PL_KIND_HOP && !p->in_hop ? "hops." : "", fields[i].name);
		}
	}
	if (p->in_hop)
		return count;
	for (unsigned int bit = 0; (flag = pl_path_flag_name(bit)) != NULL && count < NAMES_MAX;
		bit++)
		snprintf(names[count++], NAME_MAX_LEN, "flags.%s", flag);
	return count;
}

static int fail_unknown(struct parser *p, size_t at, const char *text)
{
	static const char *const prefixes[] = { "hops.", "flow.", "flags." };
	char names[NAMES_MAX][NAME_MAX_LEN];
	const char *list[NAMES_MAX], *nearest;
	char full[VALUE_MAX + 8];
	struct name name;
	size_t n;

	if (p->in_hop) {
		p->in_hop = false;
		if (find_name(p, text, &name))
			return fail_at(p, at,
				"\"%s\" is a field of the path, not of a hop: test it outside of the parentheses",
				text);
		p->in_hop = true;
	}
	for (size_t i = 0; !p->in_hop && i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		snprintf(full, sizeof(full), "%s%s", prefixes[i], text);
		if (find_name(p, full, &name))
			return fail_at(
				p, at, "unknown field \"%s\", did you mean \"%s\"?", text, full);
	}
	n = list_names(p, names);
	for (size_t i = 0; i < n; i++)
		list[i] = names[i];
	nearest = pl_nearest(text, list, n);
	if (nearest != NULL)
		return fail_at(p, at, "unknown field \"%s\", did you mean \"%s\"?", text, nearest);
	if (p->fields != NULL)
		return fail_at(p, at, "unknown field \"%s\"", text);
	return fail_at(p, at, "unknown field \"%s\"; \"pathline help fields\" lists them", text);
}

/* The token's text, terminated. */
static int take_text(struct parser *p, const char *what, char ret[VALUE_MAX], size_t *ret_at)
{
	*ret_at = p->token.at;
	if (p->token.kind != T_WORD && p->token.kind != T_STRING) {
		if (p->token.kind == T_END)
			return fail_at(
				p, p->token.at, "expected %s, but the expression ends", what);
		return fail_at(p, p->token.at, "expected %s", what);
	}
	if (p->token.len >= VALUE_MAX)
		return fail_at(p, p->token.at, "too long for a name or value");
	memcpy(ret, p->text + p->token.at, p->token.len);
	ret[p->token.len] = '\0';
	if (strlen(ret) != p->token.len)
		return fail_at(p, p->token.at, "the text contains a NUL");
	return pl_where_next(p);
}

int pl_where_take_name(struct parser *p, struct name *ret, char text[VALUE_MAX], size_t *ret_at)
{
	static const char *const keywords[] = { "and", "or", "in" };
	int r;

	if (p->token.kind == T_STRING)
		return fail_at(
			p, p->token.at, "expected a field name, which is written without quotes");
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		if (pl_where_token_is(p, keywords[i]))
			return fail_at(
				p, p->token.at, "expected a field name before \"%s\"", keywords[i]);
	}
	r = take_text(p, "a field name", text, ret_at);
	if (r < 0)
		return r;
	if (!find_name(p, text, ret))
		return fail_unknown(p, *ret_at, text);
	if (ret->field->form == PL_FORM_FLAGS && ret->mask == 0)
		return fail_at(p, *ret_at, "flags is a set; name one, as in flags.dropped");
	return 0;
}

/* ---- values ---- */

static unsigned int number_bits(const struct pl_field *field)
{
	switch (field->form) {
	case PL_FORM_U8:
		return 8;
	case PL_FORM_U16:
		return 16;
	case PL_FORM_U32:
		return 32;
	case PL_FORM_U64:
	case PL_FORM_S64:
		return 64;
	default:
		return 0;
	}
}

static int number_value(
	struct parser *p, struct step *s, const char *text, size_t at, const char *name)
{
	bool is_signed = s->field->form == PL_FORM_S64, negative = text[0] == '-';
	bool is_time = strcmp(s->field->unit, "ns") == 0;
	unsigned int bits = number_bits(s->field);
	uint64_t v, max = is_signed ? (uint64_t)INT64_MAX + negative : UINT64_MAX >> (64 - bits);
	int r;

	if (negative && !is_signed)
		return fail_at(p, at, "%s cannot be negative", name);
	r = pl_parse_u64(text + negative, &v);
	if (r == -EINVAL && is_time)
		r = pl_parse_duration(text + negative, &v);
	if (r == -EINVAL)
		return fail_at(p, at, "\"%s\" is not a number%s", text,
			is_time ? " or a time such as 50us" : "");
	if (r == -ERANGE || v > max)
		return fail_at(p, at, "%s holds at most %s%llu", name, negative ? "-" : "",
			(unsigned long long)max);
	s->value = negative ? -v : v;
	return 0;
}

static int hex_value(struct parser *p, struct step *s, const char *text, size_t at)
{
	const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
	size_t n = strlen(digits);

	if (n == 0 || n > 16 || strspn(digits, "0123456789abcdefABCDEF") != n)
		return fail_at(p, at, "\"%s\" is not an id of up to 16 hexadecimal digits", text);
	s->value = strtoull(digits, NULL, 16);
	return 0;
}

static int addr_value(struct parser *p, struct step *s, const char *text, size_t at)
{
	unsigned int bits;

	if (s->compare == IN) {
		if (pl_parse_prefix(text, &s->addr, &bits) < 0)
			return fail_at(p, at, "\"%s\" is not a prefix such as 10.0.0.0/8", text);
		s->prefix_bits = (uint8_t)bits;
		return 0;
	}
	if (pl_parse_addr(text, &s->addr) == 0)
		return 0;
	if (pl_parse_prefix(text, &s->addr, &bits) == 0)
		return fail_at(p, at, "a prefix is compared with \"in\"");
	return fail_at(p, at, "\"%s\" is not an address", text);
}

static int bool_value(struct parser *p, struct step *s, const char *text, size_t at)
{
	bool v;

	if (pl_parse_bool(text, &v) < 0)
		return fail_at(p, at, "\"%s\" is neither true nor false", text);
	s->value = v == (s->compare == EQ);
	s->compare = FLAG;
	return 0;
}

#define WORDS_TOLD 256 /* most bytes of them in a message */

static int word_value(
	struct parser *p, struct step *s, const char *text, size_t at, const char *name)
{
	enum pl_form form = (enum pl_form)s->field->form;
	const char *word;
	struct pl_buf list;
	bool found = false;
	int r = 0;

	pl_buf_init(&list);
	/* Some forms are numbered from 1 on. */
	for (unsigned int v = 0; !found && ((word = pl_form_word(form, v)) != NULL || v == 0);
		v++) {
		if (word == NULL)
			continue;
		found = strcmp(word, text) == 0;
		if (found)
			s->value = v;
		pl_buf_str(&list, list.len == 0 ? "" : ", ");
		pl_buf_str(&list, word);
	}
	if (!found)
		r = fail_at(p, at, "%s cannot be \"%s\"; it must be one of %s", name, text,
			list.failed || list.len > WORDS_TOLD
				? "the words that 'pathline help fields' lists"
				: list.data);
	pl_buf_done(&list);
	return r;
}

static int text_value(struct step *s, const char *text)
{
	s->text = strdup(text);
	return s->text != NULL ? 0 : -ENOMEM;
}

bool pl_where_is_ordered(const struct pl_field *field)
{
	return number_bits(field) != 0 || field->form == PL_FORM_REPORT_VERSION ||
	       field->form == PL_FORM_INT_VERSION;
}

int pl_where_take_value(struct parser *p, struct step *s, const char *name)
{
	char text[VALUE_MAX];
	size_t at;
	int r = take_text(p, "a value", text, &at);

	if (r < 0)
		return r;
	if (number_bits(s->field) != 0)
		return number_value(p, s, text, at, name);
	if (s->field->form == PL_FORM_HEX64)
		return hex_value(p, s, text, at);
	if (s->field->form == PL_FORM_ADDR)
		return addr_value(p, s, text, at);
	if (s->field->form == PL_FORM_FLAGS)
		return bool_value(p, s, text, at);
	if (s->field->form == PL_FORM_TEXT)
		return text_value(s, text);
	return word_value(p, s, text, at, name);
}
