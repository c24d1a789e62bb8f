/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints loss and delay of a simulated network by marking, beside the truth. */
#include "ask/mark_truth.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/num.h"
#include "show/row_cells.h"

/* Columns from `dropped` on are the truth. */
#define COLUMN_LIST(COLUMN)                                                                        \
	COLUMN(AT, "at_s", 7, true, false, false)                                                  \
	COLUMN(BLOCK, "block", 10, true, true, false)                                              \
	COLUMN(FROM, "from", -6, false, false, false)                                              \
	COLUMN(TO, "to", -6, false, false, false)                                                  \
	COLUMN(SRC, "src", -9, false, true, false)                                                 \
	COLUMN(SPORT, "sport", 5, true, false, false)                                              \
	COLUMN(DST, "dst", -9, false, true, false)                                                 \
	COLUMN(DPORT, "dport", 5, true, true, false)                                               \
	COLUMN(PROTO, "proto", 5, true, true, false)                                               \
	COLUMN(SENT, "sent", 7, true, false, false)                                                \
	COLUMN(RECEIVED, "received", 8, true, false, false)                                        \
	COLUMN(LOSS, "loss", 6, true, false, false)                                                \
	COLUMN(DELAY, "delay_ns", 9, true, false, false)                                           \
	COLUMN(MEAN, "mean_ns", 9, true, false, false)                                             \
	COLUMN(FIRST, "first_ns", 9, true, true, false)                                            \
	COLUMN(SINCE, "since", 10, true, true, false)                                              \
	COLUMN(ALARMS, "alarms", -8, false, false, false)                                          \
	COLUMN(DROPPED, "dropped", 7, true, false, false)                                          \
	COLUMN(LOST, "lost", 6, true, false, false)                                                \
	COLUMN(RESIDENCE, "residence_ns", 12, true, true, false)                                   \
	COLUMN(LONGEST, "residence_max_ns", 16, true, true, false)                                 \
	COLUMN(TRUE_DELAY, "true_delay_ns", 13, true, false, false)                                \
	COLUMN(TRUE_MEAN, "true_mean_ns", 12, true, false, false)

PL_COLUMNS(COLUMN_LIST);

int pl_mark_truth_init(struct pl_mark_truth_rows *q, const char *form, uint64_t start_ns,
	const struct pl_lab_topology *t)
{
	*q = (struct pl_mark_truth_rows){ .start_ns = start_ns, .n = 2 * t->n_links };
	q->totals = calloc(q->n + 1, sizeof(*q->totals));
	if (q->totals == NULL)
		return -ENOMEM;
	pl_row_out_init(&q->out, form, columns, COLUMNS);
	return 0;
}

/* ---- a result as a row ---- */

static void put_numbers(struct pl_row_cells *row, const struct pl_mark_result *r)
{
	if ((r->has & PL_MARK_HAS_LOSS) != 0) {
		pl_row_cells_u64(row, SENT, r->sent);
		pl_row_cells_u64(row, RECEIVED, r->received);
		pl_row_cells_s64(row, LOSS, r->loss);
		if (r->method == PL_MARK_PULSE)
			pl_row_cells_u64(row, SINCE, r->since);
	}
	if ((r->has & PL_MARK_HAS_DELAY) != 0)
		pl_row_cells_s64(row, DELAY, r->delay_ns);
	if ((r->has & PL_MARK_HAS_MEAN) != 0)
		pl_row_cells_s64(row, MEAN, r->mean_ns);
	if ((r->has & PL_MARK_HAS_FIRST) != 0)
		pl_row_cells_s64(row, FIRST, r->first_ns);
}

static void put_truth(struct pl_row_cells *row, const struct pl_lab_metering_truth *t)
{
	if (!t->known)
		return;
	pl_row_cells_u64(row, DROPPED, t->dropped);
	pl_row_cells_u64(row, LOST, t->lost);
	if (t->left > 0) {
		pl_row_cells_u64(row, RESIDENCE, t->residence_ns / t->left);
		pl_row_cells_u64(row, LONGEST, t->residence_max_ns);
	}
	if (t->has_pulse)
		pl_row_cells_u64(row, TRUE_DELAY, t->pulse_ns);
	if (t->arrived > 0)
		pl_row_cells_u64(row, TRUE_MEAN, t->transit_ns / t->arrived);
}

static void add_total(struct pl_mark_truth_rows *q, const struct pl_lab_metering_result *l)
{
	const struct pl_mark_result *r = l->by_marking;
	struct pl_mark_truth_total *t = &q->totals[2 * l->link + l->end];

	snprintf(t->from, sizeof(t->from), "%s", l->from);
	snprintf(t->to, sizeof(t->to), "%s", l->to);
	pl_mark_total_add(&t->sum, r);
	q->results++;
	for (unsigned int bit = 0; bit < 32; bit++)
		q->alarms[bit] += r->alarms >> bit & 1;
	if ((r->has & PL_MARK_HAS_LOSS) != 0)
		q->wrong +=
			l->truth.known && r->loss != (int64_t)(l->truth.dropped + l->truth.lost);
}

void pl_mark_truth_add(void *arg, const struct pl_lab_metering_result *result)
{
	struct pl_mark_truth_rows *q = arg;
	const struct pl_mark_result *r = result->by_marking;
	struct pl_row_cells row = { .values = { NULL } };
	struct pl_buf alarms;

	add_total(q, result);
	if (pl_row_out_full(&q->out))
		return;
	/* The first block may have begun before the simulation. */
	pl_row_cells_double(
		&row, AT, 9, (double)(int64_t)(r->block * r->period_ns - q->start_ns) / 1e9);
	pl_row_cells_u64(&row, BLOCK, r->block);
	row.values[FROM] = result->from;
	row.values[TO] = result->to;
	pl_row_cells_addr(&row, SRC, &r->flow.src);
	pl_row_cells_addr(&row, DST, &r->flow.dst);
	pl_row_cells_u64(&row, SPORT, r->flow.sport);
	pl_row_cells_u64(&row, DPORT, r->flow.dport);
	pl_row_cells_u64(&row, PROTO, r->flow.proto);
	put_numbers(&row, r);
	put_truth(&row, &result->truth);
	pl_buf_init(&alarms);
	pl_mark_alarms_put(&alarms, r->alarms);
	row.values[ALARMS] = alarms.len > 0 ? alarms.data : NULL;
	pl_row_out_add(&q->out, row.values);
	pl_row_out_write(&q->out);
	pl_buf_done(&alarms);
}

/* ---- messages at the end ---- */

/* Prints the drops and losses of all packets of the direction, marked or not. */
static void tell_account(const struct pl_lab_simulation *s, struct pl_dp_sim *sim, unsigned int i)
{
	const struct pl_dp_queue_account *q;
	const struct pl_dp_link_account *l;
	unsigned int node, port, link;

	pl_lab_simulation_sender(s, i / 2, i % 2, &node, &port, &link);
	q = pl_dp_port_account(pl_dp_sim_port_at(sim, node, port), 0);
	l = pl_dp_link_account(pl_dp_sim_link_at(sim, link));
	fprintf(stderr, "; its queue dropped %" PRIu64 ", the link lost %" PRIu64,
		q->dropped_bytes_limit + q->dropped_packets_limit + q->dropped_port_limit,
		l->lost_random + l->lost_burst + l->lost_listed + l->lost_down + l->lost_full +
			l->lost_memory);
	if (l->duplicated > 0)
		fprintf(stderr, " and copied %" PRIu64, l->duplicated);
}

void pl_mark_truth_tell(const struct pl_mark_truth_rows *q, const struct pl_lab_simulation *s,
	struct pl_dp_sim *sim, const struct pl_lab_metering_account *account)
{
	for (unsigned int i = 0; i < q->n; i++) {
		const struct pl_mark_truth_total *t = &q->totals[i];

		if (t->sum.results == 0)
			continue;
		fprintf(stderr,
			"%s to %s: sent %" PRIu64 ", received %" PRIu64 ", lost %" PRId64
			" by marking",
			t->from, t->to, t->sum.sent, t->sum.received, t->sum.loss);
		tell_account(s, sim, i);
		pl_mark_total_tell_delay(&t->sum);
		fputc('\n', stderr);
	}
	fprintf(stderr,
		"marked %" PRIu64 ", without room for the mark %" PRIu64
		"; blocks of flows whose loss by marking is not the true one: %" PRIu64
		" of %" PRIu64 "\n",
		account->marked, account->unmarked, q->wrong, q->results);
	pl_mark_alarms_tell(q->alarms, q->results);
	if (account->without_room > 0 || account->no_memory > 0)
		pl_complain("not counted: %" PRIu64
			    " packets at points without room for their flow, %" PRIu64
			    " for want of memory",
			account->without_room, account->no_memory);
}

bool pl_mark_truth_end(struct pl_mark_truth_rows *q)
{
	bool good = pl_row_out_end(&q->out);

	free(q->totals);
	q->totals = NULL;
	return good;
}
