/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints loss and delay between points, and their totals. */
#include "ask/mark_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/complain.h"
#include "base/num.h"
#include "show/row_cells.h"

#define COLUMN_LIST(COLUMN)                                                                        \
	COLUMN(TS, "ts_ns", 19, true, true, false)                                                 \
	COLUMN(BLOCK, "block", 10, true, false, false)                                             \
	COLUMN(SRC, "src", -15, false, false, false)                                               \
	COLUMN(SPORT, "sport", 5, true, false, false)                                              \
	COLUMN(DST, "dst", -15, false, false, false)                                               \
	COLUMN(DPORT, "dport", 5, true, false, false)                                              \
	COLUMN(PROTO, "proto", 5, true, true, false)                                               \
	COLUMN(FLOW_ID, "flow_id", 7, true, true, false)                                           \
	COLUMN(FROM, "from", -8, false, false, false)                                              \
	COLUMN(TO, "to", -8, false, false, false)                                                  \
	COLUMN(SENT, "sent", 8, true, false, false)                                                \
	COLUMN(RECEIVED, "received", 8, true, false, false)                                        \
	COLUMN(LOSS, "loss", 6, true, false, false)                                                \
	COLUMN(LOSS_RATIO, "loss_ratio", 10, true, true, false)                                    \
	COLUMN(DELAY, "delay_ns", 9, true, false, false)                                           \
	COLUMN(MEAN, "mean_ns", 9, true, false, false)                                             \
	COLUMN(FIRST, "first_ns", 9, true, true, false)                                            \
	COLUMN(JITTER, "jitter_ns", 9, true, true, false)                                          \
	COLUMN(CLOCK_ERROR, "clock_error_ns", 14, true, true, false)                               \
	COLUMN(TWO_WAY, "two_way_ns", 10, true, true, false)                                       \
	COLUMN(TWO_WAY_MEAN, "two_way_mean_ns", 15, true, true, false)                             \
	COLUMN(SAMPLED, "sampled", 7, true, true, false)                                           \
	COLUMN(MATCHED, "matched", 7, true, true, false)                                           \
	COLUMN(LEAST, "least_ns", 9, true, true, false)                                            \
	COLUMN(SAMPLES_MEAN, "samples_mean_ns", 15, true, true, false)                             \
	COLUMN(MEDIAN, "median_ns", 9, true, true, false)                                          \
	COLUMN(MOST, "most_ns", 9, true, true, false)                                              \
	COLUMN(LATE, "late", 6, true, true, false)                                                 \
	COLUMN(EARLY, "early", 6, true, true, false)                                               \
	COLUMN(SINCE, "since", 10, true, true, false)                                              \
	COLUMN(GUARD, "guard_ns", 9, true, true, false)                                            \
	COLUMN(MISSING, "missing", -8, false, true, false)                                         \
	COLUMN(ALARMS, "alarms", -12, false, false, false)

PL_COLUMNS(COLUMN_LIST);

/* ---- a result as a row ---- */

struct row {
	struct pl_row_cells cells;
	struct pl_buf alarms, missing, from, to;
};

static void put_flow(struct row *row, const struct pl_mark_flow *f)
{
	pl_row_cells_addr(&row->cells, SRC, &f->src);
	pl_row_cells_addr(&row->cells, DST, &f->dst);
	if (f->has_flow_id != 0) {
		pl_row_cells_u64(&row->cells, FLOW_ID, f->flow_id);
		return;
	}
	pl_row_cells_u64(&row->cells, SPORT, f->sport);
	pl_row_cells_u64(&row->cells, DPORT, f->dport);
	pl_row_cells_u64(&row->cells, PROTO, f->proto);
}

static void put_loss(struct row *row, const struct pl_mark_result *r)
{
	if ((r->has & PL_MARK_HAS_LOSS) == 0)
		return;
	pl_row_cells_u64(&row->cells, SENT, r->sent);
	pl_row_cells_u64(&row->cells, RECEIVED, r->received);
	pl_row_cells_s64(&row->cells, LOSS, r->loss);
	if (r->method == PL_MARK_PULSE)
		pl_row_cells_u64(&row->cells, SINCE, r->since);
	if (r->sent == 0)
		return;
	pl_row_cells_double(&row->cells, LOSS_RATIO, 9, (double)r->loss / (double)r->sent);
}

static void put_delays(struct row *row, const struct pl_mark_result *r)
{
	if ((r->has & PL_MARK_HAS_DELAY) != 0)
		pl_row_cells_s64(&row->cells, DELAY, r->delay_ns);
	if ((r->has & PL_MARK_HAS_MEAN) != 0)
		pl_row_cells_s64(&row->cells, MEAN, r->mean_ns);
	if ((r->has & PL_MARK_HAS_FIRST) != 0)
		pl_row_cells_s64(&row->cells, FIRST, r->first_ns);
	if ((r->has & PL_MARK_HAS_JITTER) != 0)
		pl_row_cells_s64(&row->cells, JITTER, r->jitter_ns);
	if ((r->has & (PL_MARK_HAS_DELAY | PL_MARK_HAS_MEAN | PL_MARK_HAS_FIRST)) != 0 &&
		r->clock_error_ns != UINT64_MAX)
		pl_row_cells_u64(&row->cells, CLOCK_ERROR, r->clock_error_ns);
}

static void put_round(struct row *row, const struct pl_mark_round *round)
{
	if ((round->has & PL_MARK_HAS_DELAY) != 0)
		pl_row_cells_s64(&row->cells, TWO_WAY, round->delay_ns);
	if ((round->has & PL_MARK_HAS_MEAN) != 0)
		pl_row_cells_s64(&row->cells, TWO_WAY_MEAN, round->mean_ns);
}

/* Puts delays of packets that a hash chose and that were counted in the block at both ends. */
static void put_chosen(struct row *row, struct pl_mark_rows *q, const struct pl_mark_result *r)
{
	const struct pl_mark_hashes_key key = { .block = r->block, .flow = r->flow };
	struct pl_mark_chosen chosen;

	if (!pl_mark_choose(&q->chooser, &chosen, q->captures, &q->segments[r->segment], &key, 0)) {
		if (!q->no_memory)
			pl_complain("out of memory: delays of chosen packets are missing");
		q->no_memory = true;
		return;
	}
	pl_row_cells_u64(&row->cells, SAMPLED, chosen.matched.sampled);
	pl_row_cells_u64(&row->cells, MATCHED, chosen.matched.matched);
	if (chosen.matched.matched == 0)
		return;
	pl_row_cells_s64(&row->cells, LEAST, chosen.least_ns);
	pl_row_cells_s64(&row->cells, SAMPLES_MEAN, chosen.mean_ns);
	pl_row_cells_s64(&row->cells, MEDIAN, chosen.median_ns);
	pl_row_cells_s64(&row->cells, MOST, chosen.most_ns);
}

void pl_mark_alarms_put(struct pl_buf *out, uint32_t alarms)
{
	const char *sep = "";

	for (unsigned int bit = 0; pl_mark_alarm_name(bit) != NULL; bit++) {
		if ((alarms >> bit & 1) == 0)
			continue;
		pl_buf_printf(out, "%s%s", sep, pl_mark_alarm_name(bit));
		sep = "+";
	}
}

static void put_words(struct row *row, const struct pl_mark_rows *q, const struct pl_mark_result *r,
	uint32_t alarms)
{
	pl_mark_alarms_put(&row->alarms, alarms);
	pl_mark_names_put(&row->missing, q->captures, r->missing, r->n_missing);
	row->cells.values[ALARMS] = row->alarms.len > 0 ? row->alarms.data : NULL;
	row->cells.values[MISSING] = row->missing.len > 0 ? row->missing.data : NULL;
}

void pl_mark_total_add(struct pl_mark_total *t, const struct pl_mark_result *r)
{
	t->results++;
	if ((r->has & PL_MARK_HAS_LOSS) != 0) {
		t->with_loss++;
		t->sent += r->sent;
		t->received += r->received;
		t->loss += r->loss;
	}
	if ((r->has & PL_MARK_HAS_DELAY) == 0)
		return;
	t->least_ns = t->with_delay == 0 || r->delay_ns < t->least_ns ? r->delay_ns : t->least_ns;
	t->most_ns = t->with_delay == 0 || r->delay_ns > t->most_ns ? r->delay_ns : t->most_ns;
	t->with_delay++;
}

static void add_total(struct pl_mark_rows *q, const struct pl_mark_result *r, uint32_t alarms)
{
	q->results++;
	for (unsigned int bit = 0; bit < 32; bit++)
		q->alarms[bit] += alarms >> bit & 1;
	if (pl_mark_result_is_sound(r))
		pl_mark_total_add(&q->totals[r->segment], r);
	else
		q->totals[r->segment].results++;
}

/* Writes the result as a record, with the meters' numbers of points. */
static void give_record(struct pl_mark_rows *q, const struct pl_mark_result *r, uint32_t alarms)
{
	struct pl_mark_result told = *r;
	struct pl_seg192 record;

	told.alarms = alarms;
	pl_mark_segment_record(&record, &told, &q->segments[r->segment]);
	record.from_point = q->captures[record.from_point - 1].number;
	record.to_point = q->captures[record.to_point - 1].number;
	if ((record.has & PL_SEG_HAS_missing_point) != 0)
		record.missing_point = q->captures[record.missing_point - 1].number;
	pl_mark_out_put(q->give, &record);
}

bool pl_mark_rows_is_back(const struct pl_mark_rows *q, const struct pl_addr *src)
{
	for (unsigned int i = 0; i < q->n_back; i++) {
		if (pl_prefix_has(&q->back[i], src))
			return true;
	}
	return false;
}

static void add_round(
	struct pl_mark_rows *q, const struct pl_mark_result *r, struct pl_mark_round *ret)
{
	const uint32_t link = r->segment % q->there;
	struct pl_mark_rounds *t = &q->rounds[link];

	if (!pl_mark_two_way_add(q->two_way, r, link, r->segment >= q->there, ret)) {
		if (!q->no_memory)
			pl_complain("out of memory: two-way delays are missing");
		q->no_memory = true;
	}
	/* No packet returns before it was sent, whatever the clocks. */
	if (((ret->has & PL_MARK_HAS_DELAY) != 0 && ret->delay_ns < 0) ||
		((ret->has & PL_MARK_HAS_MEAN) != 0 && ret->mean_ns < 0)) {
		ret->has = 0;
		q->negative_rounds++;
	}
	if ((ret->has & PL_MARK_HAS_DELAY) == 0)
		return;
	t->least_ns = t->n == 0 || ret->delay_ns < t->least_ns ? ret->delay_ns : t->least_ns;
	t->most_ns = t->n == 0 || ret->delay_ns > t->most_ns ? ret->delay_ns : t->most_ns;
	t->n++;
}

void pl_mark_rows_add(void *arg, const struct pl_mark_result *result)
{
	struct pl_mark_rows *q = arg;
	struct pl_mark_result told = *result;
	const struct pl_mark_result *r = &told;
	const struct pl_mark_segment *s = &q->segments[r->segment];
	uint32_t alarms = r->alarms & ~q->unsaid;
	struct row row = { .cells = { .values = { NULL } } };
	struct pl_mark_round round = { 0 };

	if (pl_mark_rows_is_back(q, &r->flow.src) != (r->segment >= q->there))
		return;
	if (q->apart[r->segment]) {
		alarms |= PL_MARK_ALARM_CLOCK_FAULT;
		told.has = 0;
	}
	if (q->two_way != NULL)
		add_round(q, r, &round);
	told.alarms = alarms;
	add_total(q, r, alarms);
	q->ways[r->segment >= q->there]++;
	give_record(q, r, alarms);
	if (q->quiet || pl_row_out_full(&q->out))
		return;
	pl_buf_init(&row.alarms);
	pl_buf_init(&row.missing);
	pl_buf_init(&row.from);
	pl_buf_init(&row.to);
	pl_row_cells_u64(
		&row.cells, TS, r->block * r->period_ns - q->tai_offset * UINT64_C(1000000000));
	pl_row_cells_u64(&row.cells, BLOCK, r->block);
	put_flow(&row, &r->flow);
	pl_mark_names_put(&row.from, q->captures, s->from, s->n_from);
	pl_mark_names_put(&row.to, q->captures, s->to, s->n_to);
	row.cells.values[FROM] = row.from.data;
	row.cells.values[TO] = row.to.data;
	put_loss(&row, r);
	put_delays(&row, r);
	put_round(&row, &round);
	if (q->sampled && !q->apart[r->segment])
		put_chosen(&row, q, r);
	pl_row_cells_u64(&row.cells, LATE, r->late);
	pl_row_cells_u64(&row.cells, EARLY, r->early);
	if (q->guard_ns != 0)
		pl_row_cells_u64(&row.cells, GUARD, q->guard_ns);
	put_words(&row, q, r, alarms);
	pl_row_out_add(&q->out, row.cells.values);
	pl_row_out_write(&q->out);
	pl_buf_done(&row.alarms);
	pl_buf_done(&row.missing);
	pl_buf_done(&row.from);
	pl_buf_done(&row.to);
}

bool pl_mark_rows_init(struct pl_mark_rows *q, const char *form)
{
	static struct pl_column told[COLUMNS];

	if (q->n_back > 0) {
		q->two_way = pl_mark_two_way_new();
		if (q->two_way == NULL)
			return false;
	}
	memcpy(told, columns, sizeof(told));
	told[TWO_WAY].wide = told[TWO_WAY_MEAN].wide = q->n_back == 0;
	told[SAMPLED].wide = told[LEAST].wide = told[MEDIAN].wide = told[MOST].wide = !q->sampled;
	pl_row_out_init(&q->out, form, told, COLUMNS);
	return true;
}

void pl_mark_rows_done(struct pl_mark_rows *q)
{
	pl_mark_two_way_free(q->two_way);
	pl_mark_chooser_done(&q->chooser);
	q->two_way = NULL;
}

/* ---- messages at the end ---- */

static void tell_duration(const char *before, int64_t ns)
{
	char text[32];

	pl_format_duration(text, sizeof(text), ns < 0 ? -(uint64_t)ns : (uint64_t)ns);
	fprintf(stderr, "%s%s%s", before, ns < 0 ? "-" : "", text);
}

void pl_mark_total_tell_delay(const struct pl_mark_total *t)
{
	if (t->with_delay == 0)
		return;
	tell_duration("; delay ", t->least_ns);
	tell_duration(" to ", t->most_ns);
	fprintf(stderr, " (%" PRIu64 ")", t->with_delay);
}

void pl_mark_alarms_tell(const uint64_t alarms[32], uint64_t results)
{
	for (unsigned int bit = 0; pl_mark_alarm_name(bit) != NULL; bit++) {
		if (alarms[bit] > 0)
			pl_complain("%s, in %" PRIu64 " of %" PRIu64 " results: %s",
				pl_mark_alarm_name(bit), alarms[bit], results,
				pl_mark_alarm_help(bit));
	}
}

/* Reports errors of --back. */
static void tell_ways(const struct pl_mark_rows *q)
{
	if (q->negative_rounds > 0)
		pl_complain(
			"%" PRIu64
			" two-way delays are below 0 and left out: packets pass the captures in the other order than --back says",
			q->negative_rounds);
	if (q->results > 0 && q->ways[1] == 0)
		pl_complain("no packet is from the addresses of --back");
	if (q->results > 0 && q->ways[0] == 0)
		pl_complain(
			"all packets are from the addresses of --back: none goes the other way");
}

static void tell_rounds(const struct pl_mark_rows *q)
{
	struct pl_buf names;

	for (uint32_t i = 0; i < q->there; i++) {
		const struct pl_mark_rounds *t = &q->rounds[i];

		if (t->n == 0)
			continue;
		pl_buf_init(&names);
		pl_mark_names_put(&names, q->captures, q->segments[i].from, q->segments[i].n_from);
		pl_buf_str(&names, " and ");
		pl_mark_names_put(&names, q->captures, q->segments[i].to, q->segments[i].n_to);
		fprintf(stderr, "%s", names.data != NULL ? names.data : "");
		tell_duration(": two-way delay ", t->least_ns);
		tell_duration(" to ", t->most_ns);
		fprintf(stderr, " (%" PRIu64 ")\n", t->n);
		pl_buf_done(&names);
	}
	tell_ways(q);
}

void pl_mark_rows_tell(const struct pl_mark_rows *q)
{
	struct pl_buf names;

	for (uint32_t i = 0; i < q->n_segments; i++) {
		const struct pl_mark_total *t = &q->totals[i];

		if (t->results == 0)
			continue;
		pl_buf_init(&names);
		pl_mark_names_put(&names, q->captures, q->segments[i].from, q->segments[i].n_from);
		pl_buf_str(&names, " to ");
		pl_mark_names_put(&names, q->captures, q->segments[i].to, q->segments[i].n_to);
		fprintf(stderr,
			"%s: sent %" PRIu64 ", received %" PRIu64 ", lost %" PRId64 " in %" PRIu64
			" of %" PRIu64 " blocks of flows",
			names.data != NULL ? names.data : "", t->sent, t->received, t->loss,
			t->with_loss, t->results);
		pl_buf_done(&names);
		pl_mark_total_tell_delay(t);
		fputc('\n', stderr);
	}
	if (q->two_way != NULL)
		tell_rounds(q);
	pl_mark_alarms_tell(q->alarms, q->results);
}
