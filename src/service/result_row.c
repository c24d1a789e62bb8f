/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses a result row from its message. */
#include "service/result_row.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "query/result_json.h"

#define EXACT_MAX 9007199254740992.0 /* 2^53: up to here doubles represent every integer */
#define WORDS     256                /* most values of an enumeration */

/* Reads a decimal number, without the other notations of pl_parse_u64. */
static bool read_digits(const char *text, uint64_t *ret)
{
	return text[0] != '\0' && strspn(text, "0123456789") == strlen(text) &&
	       pl_parse_u64(text, ret) == 0;
}

/* Reads sign and size of an integer: from the string NAME_s if there is one, else the number. */
static bool read_integer(const json_t *object, const char *name, bool *ret_negative, uint64_t *ret)
{
	char second[160];
	const json_t *number = json_object_get(object, name);
	const char *text;
	double d;

	snprintf(second, sizeof(second), "%s_s", name);
	text = json_string_value(json_object_get(object, second));
	if (text != NULL) {
		*ret_negative = text[0] == '-';
		return read_digits(text + *ret_negative, ret);
	}
	if (!json_is_real(number))
		return false;
	d = json_real_value(number);
	*ret_negative = d < 0;
	d = d < 0 ? -d : d;
	if (d > EXACT_MAX)
		return false;
	*ret = (uint64_t)d;
	return (double)*ret == d;
}

static bool read_signed(const json_t *object, const char *name, int64_t *ret)
{
	uint64_t size;
	bool negative;

	if (!read_integer(object, name, &negative, &size))
		return false;
	if (negative)
		return !__builtin_sub_overflow(INT64_C(0), size, ret);
	return !__builtin_add_overflow(INT64_C(0), size, ret);
}

static bool read_unsigned(const json_t *object, const char *name, uint64_t *ret)
{
	bool negative;

	return read_integer(object, name, &negative, ret) && (!negative || *ret == 0);
}

/* Reads the number of an enumeration's word ("idle"). */
static bool read_word(
	const struct pl_query_column *column, const char *word, struct pl_query_value *v)
{
	char text[PL_QUERY_WORD_MAX];

	for (v->u = 0; v->u < WORDS; v->u++) {
		const char *one = pl_query_value_word(column, v, text);

		if (one != NULL && strcmp(one, word) == 0)
			return true;
	}
	return false;
}

static bool read_other(const json_t *member, struct pl_query_value *v)
{
	switch (v->type) {
	case PL_QUERY_DOUBLE:
		v->d = json_real_value(member);
		return json_is_real(member);
	case PL_QUERY_ADDR:
		return json_is_string(member) &&
		       pl_parse_addr(json_string_value(member), &v->addr) == 0;
	case PL_QUERY_BOOL:
		v->b = json_is_true(member);
		return json_is_boolean(member);
	case PL_QUERY_LIST:
		v->absent = true;
		return json_is_array(member);
	case PL_QUERY_UNSIGNED:
	case PL_QUERY_SIGNED:
	case PL_QUERY_TEXT:
	case PL_QUERY_TYPE_MAX:
		break;
	}
	return false;
}

/* Copies the text into the row, because the message does not last. */
static bool read_text(const json_t *member, struct pl_query_value *v, char text[PL_TEXT_TOLD + 1])
{
	const size_t n = json_string_length(member);

	if (!json_is_string(member) || n > PL_TEXT_TOLD)
		return false;
	memcpy(text, json_string_value(member), n + 1);
	v->text = text;
	return strlen(text) == n;
}

static bool read_value(const json_t *object, const struct pl_query_column *column,
	struct pl_query_value *v, char text[PL_TEXT_TOLD + 1])
{
	const json_t *member = json_object_get(object, column->name);

	*v = (struct pl_query_value){ .type = column->type, .absent = json_is_null(member) };
	if (member == NULL || v->absent)
		return member != NULL;
	if (v->type == PL_QUERY_UNSIGNED && json_is_string(member))
		return read_word(column, json_string_value(member), v);
	if (v->type == PL_QUERY_UNSIGNED)
		return read_unsigned(object, column->name, &v->u);
	if (v->type == PL_QUERY_SIGNED)
		return read_signed(object, column->name, &v->i);
	if (v->type == PL_QUERY_TEXT)
		return read_text(member, v, text);
	return read_other(member, v);
}

/* Reads both ends of the window, or neither. */
static bool read_window(const json_t *object, struct pl_query_row *row)
{
	row->windowed = json_object_get(object, "w0") != NULL;
	return !row->windowed ||
	       (read_signed(object, "w0", &row->start_ns) &&
		       read_signed(object, "w1", &row->end_ns) && row->start_ns < row->end_ns);
}

/* Reads the observation points: ascending, with null at the end when there are more. */
static bool read_exp(struct pl_result_row *ret, const json_t *array)
{
	const size_t n = json_array_size(array);
	double before = -1;

	ret->row.exp = ret->exp;
	for (size_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(array, i);
		const double point = json_real_value(one);

		if (json_is_null(one) && i + 1 == n) {
			ret->row.exp_more = true;
			return true;
		}
		if (!json_is_real(one) || i == PL_QUERY_EXP_MAX || point <= before ||
			point > PL_OBS_POINT_MASK || point != (double)(uint16_t)point)
			return false;
		before = point;
		ret->exp[ret->row.n_exp++] = (uint16_t)point;
	}
	return array == NULL || json_is_array(array);
}

/* Reads members that messages of older versions lack. */
static bool read_origin(struct pl_result_row *ret, const json_t *object)
{
	const json_t *first = json_object_get(object, "first_ts");
	bool good = true;

	ret->row.first_ns = PL_QUERY_NO_TIME;
	ret->has_late = json_object_get(object, PL_QUERY_RESULT_LATE) != NULL;
	if (first != NULL && !json_is_null(first))
		good = read_unsigned(object, "first_ts", &ret->row.first_ns);
	if (ret->has_late)
		good = good && read_unsigned(object, PL_QUERY_RESULT_LATE, &ret->row.late);
	return good && read_exp(ret, json_object_get(object, "exp"));
}

static bool read_row(struct pl_result_row *ret, const struct pl_query *query, const json_t *object)
{
	const struct pl_query_column *columns;
	bool keys[PL_QUERY_ITEMS_MAX] = { false };
	bool good = read_window(object, &ret->row);

	ret->row.n = pl_query_columns(query, &columns);
	ret->row.values = ret->values;
	ret->row.final = json_is_true(json_object_get(object, "final"));
	ret->row.incomplete = json_is_true(json_object_get(object, "incomplete"));
	good = good && read_origin(ret, object);
	(void)pl_query_key_columns(query, keys);
	for (uint32_t i = 0; good && i < ret->row.n; i++)
		good = read_value(json_object_get(object, keys[i] ? "key" : "val"), &columns[i],
			&ret->values[i], ret->texts[i]);
	return good;
}

enum pl_result_verdict pl_result_row_read(struct pl_result_row *ret, const struct pl_query *query,
	const char *name, const char *message, size_t len)
{
	/* Read as doubles, integers beyond 64 bits do not make jansson refuse the message. */
	json_t *object = len <= PL_RESULT_ROW_MAX
				 ? json_loadb(message, len,
					   JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL)
				 : NULL;
	const char *q = json_string_value(json_object_get(object, "q"));
	enum pl_result_verdict verdict = PL_RESULT_ROW_BAD;
	uint64_t version;

	*ret = (struct pl_result_row){ .row = { .n = 0 } };
	if (q != NULL && read_unsigned(object, "v", &version) &&
		version == PL_QUERY_RESULT_VERSION) {
		if (strcmp(q, name) != 0)
			verdict = PL_RESULT_ROW_OTHER;
		else if (read_row(ret, query, object))
			verdict = PL_RESULT_ROW_GOOD;
	}
	json_decref(object);
	return verdict;
}
