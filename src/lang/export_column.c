/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of streams in SQL: fields of the record, and what is derived from their bits. */
#include <string.h>

#include "lang/export_state.h"

void pl_export_refuse(struct exporter *e, uint32_t at, const char *what)
{
	if (e->failed)
		return;
	e->failed = true;
	pl_query_fail(&e->lx, at, "%s not translate to %s", what,
		e->dialect == PL_QUERY_CLICKHOUSE ? "ClickHouse"
		: e->dialect == PL_QUERY_FLINK    ? "Flink SQL"
						  : "DuckDB");
}

/* Names of the language have letters, digits and "_" only. */
void pl_export_name(struct exporter *e, const char *name)
{
	const char mark = e->dialect == PL_QUERY_DUCKDB ? '"' : '`';

	pl_buf_chr(e->out, mark);
	pl_buf_str(e->out, name);
	pl_buf_chr(e->out, mark);
}

void pl_export_number(struct exporter *e, uint64_t value, uint32_t at)
{
	if (e->dialect == PL_QUERY_FLINK && value > INT64_MAX)
		pl_export_refuse(e, at, "numbers above 9223372036854775807 do");
	pl_buf_u64(e->out, value);
}

static void put_field(struct exporter *e, const void *arg)
{
	const struct pl_field *field = arg;
	/* The only fields in ns are times, which ClickHouse has as DateTime64(9). */
	const bool time = e->dialect == PL_QUERY_CLICKHOUSE && strcmp(field->unit, "ns") == 0;

	pl_buf_printf(e->out, time ? "toUnixTimestamp64Nano(%s." : "%s.", e->source);
	pl_export_name(e, field->name);
	if (time)
		pl_buf_chr(e->out, ')');
}

static uint64_t ones(unsigned int bits)
{
	return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

/* Flink has no operators on bits: each run of ones in the mask is a quotient and a remainder. */
static void put_runs(struct exporter *e, void (*put)(struct exporter *e, const void *arg),
	const void *arg, unsigned int shift, uint64_t mask, uint32_t at)
{
	bool first = true;

	pl_buf_chr(e->out, '(');
	for (unsigned int lo = 0; lo < 64; lo++) {
		unsigned int len = 0;

		if ((mask >> lo & 1) == 0)
			continue;
		while (lo + len < 64 && (mask >> (lo + len) & 1) != 0)
			len++;
		pl_buf_str(e->out, first ? "MOD(" : " + MOD(");
		put(e, arg);
		pl_buf_str(e->out, " / ");
		pl_export_number(e, (uint64_t)1 << (shift + lo), at);
		pl_buf_str(e->out, ", ");
		pl_export_number(e, len < 63 ? (uint64_t)1 << len : UINT64_MAX, at);
		pl_buf_str(e->out, ") * ");
		pl_export_number(e, (uint64_t)1 << lo, at);
		first = false;
		lo += len;
	}
	pl_buf_str(e->out, first ? "0)" : ")");
}

void pl_export_bits(struct exporter *e, void (*put)(struct exporter *e, const void *arg),
	const void *arg, unsigned int shift, uint64_t mask, uint64_t all, uint32_t at)
{
	if (shift == 0 && (mask & all) == all) {
		put(e, arg);
		return;
	}
	if (e->dialect == PL_QUERY_FLINK) {
		put_runs(e, put, arg, shift, mask & all >> shift, at);
		return;
	}
	if (e->dialect == PL_QUERY_DUCKDB) {
		pl_buf_str(e->out, shift > 0 ? "((" : "(");
		put(e, arg);
		if (shift > 0)
			pl_buf_printf(e->out, " >> %u)", shift);
		pl_buf_printf(e->out, " & %llu)", (unsigned long long)(mask & all >> shift));
		return;
	}
	pl_buf_str(e->out, "bitAnd(");
	if (shift > 0)
		pl_buf_str(e->out, "bitShiftRight(");
	put(e, arg);
	if (shift > 0)
		pl_buf_printf(e->out, ", %u)", shift);
	pl_buf_printf(e->out, ", %llu)", (unsigned long long)mask);
}

/* (record's bytes & mask) = value, field by field. */
static void put_equal(struct exporter *e, const struct column *column, uint64_t value, uint32_t at)
{
	const struct pl_flat *flat = pl_flat(e->stage->kind);
	bool first = true;

	pl_buf_chr(e->out, '(');
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		const struct pl_field *field = &flat->fields[i];
		const unsigned int bits = 8 * pl_field_width(field);
		unsigned int skip;
		uint64_t mask;

		if (field->offset < column->offset ||
			field->offset >= column->offset + column->width)
			continue;
		skip = 8 * (field->offset - column->offset);
		mask = column->mask >> skip & ones(bits);
		if (mask == 0)
			continue;
		pl_buf_str(e->out, first ? "" : " AND ");
		pl_export_bits(e, put_field, field, 0, mask, ones(bits), at);
		pl_buf_str(e->out, " = ");
		pl_export_number(e, value >> skip & mask, at);
		first = false;
	}
	pl_buf_chr(e->out, ')');
}

static const struct pl_field *field_at(const struct exporter *e, const struct column *column)
{
	const struct pl_flat *flat = pl_flat(e->stage->kind);

	for (uint32_t i = 0; i < flat->n_fields; i++) {
		if (flat->fields[i].offset == column->offset)
			return &flat->fields[i];
	}
	return NULL;
}

static void put_value(struct exporter *e, const struct column *column, uint64_t mask, uint32_t at)
{
	const struct pl_field *field = field_at(e, column);

	if (field == NULL) {
		pl_export_refuse(e, at, "columns of this kind do");
		return;
	}
	if (column->type == PL_QUERY_TEXT && e->dialect == PL_QUERY_CLICKHOUSE) {
		/* A FixedString without the zeros behind the text. */
		pl_buf_str(e->out, "toStringCutToZero(");
		put_field(e, field);
		pl_buf_chr(e->out, ')');
	} else if (column->type == PL_QUERY_ADDR || column->type == PL_QUERY_TEXT) {
		put_field(e, field);
	} else {
		pl_export_bits(e, put_field, field, column->shift, mask,
			ones(8 * pl_field_width(field)), at);
	}
}

void pl_export_stream_column(struct exporter *e, const struct column *column, uint32_t at)
{
	if (column->id_of != 0) {
		pl_export_refuse(e, at, "Community IDs do");
		return;
	}
	if (column->type != PL_QUERY_BOOL) {
		put_value(e, column, column->mask, at);
		return;
	}
	if (column->is == column->or_is) {
		put_equal(e, column, column->is, at);
		return;
	}
	pl_buf_chr(e->out, '(');
	put_equal(e, column, column->is, at);
	pl_buf_str(e->out, " OR ");
	put_equal(e, column, column->or_is, at);
	pl_buf_chr(e->out, ')');
}

void pl_export_test(struct exporter *e, const struct node *node)
{
	const uint64_t last = node->lo + node->span;
	/* The test of an absent value is false, not NULL. */
	const bool optional = node->column->present != 0;

	pl_buf_str(e->out, optional ? "COALESCE((" : "(");
	put_value(e, node->column, node->mask, node->at);
	if (node->span == 0) {
		pl_buf_str(e->out, node->invert ? " <> " : " = ");
		pl_export_number(e, node->lo, node->at);
	} else if (node->lo == 0) {
		pl_buf_str(e->out, " <= ");
		pl_export_number(e, node->span, node->at);
	} else if (last == UINT64_MAX) {
		pl_buf_str(e->out, " >= ");
		pl_export_number(e, node->lo, node->at);
	} else {
		pl_buf_str(e->out, " BETWEEN ");
		pl_export_number(e, node->lo, node->at);
		pl_buf_str(e->out, " AND ");
		pl_export_number(e, last, node->at);
	}
	pl_buf_str(e->out, optional ? "), FALSE)" : ")");
}

void pl_export_side(struct exporter *e, unsigned int side)
{
	e->stage = e->stage->pairs->sides[side];
	e->source = side == 0 ? "t1" : "t2";
}

void pl_export_whole(struct exporter *e, const struct stage *stage)
{
	e->stage = stage;
	e->source = "r";
}

void pl_export_time(struct exporter *e)
{
	const struct stage *stage = e->stage;

	if (stage->pairs != NULL) {
		/* The time of a pair is that of the left. */
		pl_export_side(e, 0);
		pl_export_time(e);
		pl_export_whole(e, stage);
		return;
	}
	put_field(e, field_at(e, e->stage->time));
}
