/* SPDX-License-Identifier: BSD-2-Clause */
/* Observes the connections of a capture, and prints a row for each direction. */
#include "ask/mark_observe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ask/mark_capture.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "show/row_cells.h"
#include "show/row_out.h"
#include "wire/layers.h"

/* ---- bits ---- */

static const char *const bit_names[PL_EFM_BITS] = { [PL_EFM_SPIN] = "spin",
	[PL_EFM_DELAY] = "delay",
	[PL_EFM_SQUARE] = "square",
	[PL_EFM_LOSS] = "loss",
	[PL_EFM_REFLECTION] = "reflection",
	[PL_EFM_ROUND_TRIP] = "trip",
	[PL_EFM_ECN_ECHO] = "ecn-echo" };

static int read_bit(struct pl_efm_config *ret, const char *text, struct pl_diag *diag)
{
	unsigned int bit = 0;

	while (bit < PL_EFM_BITS && (strncmp(text, bit_names[bit], strlen(bit_names[bit])) != 0 ||
					    text[strlen(bit_names[bit])] != ':'))
		bit++;
	if (bit < PL_EFM_BITS) {
		const char *digit = text + strlen(bit_names[bit]) + 1;

		if (digit[0] >= '3' && digit[0] <= '6' && digit[1] == '\0') {
			ret->masks[bit] = (uint8_t)(1u << (digit[0] - '0'));
			return 0;
		}
		return pl_diag_fail(diag, -EINVAL,
			"bit %s: %s:N with N from 3 to 6; of the first byte of a short header 7 is its form, and 0 to 2 are encrypted",
			text, bit_names[bit]);
	}
	return pl_diag_fail(diag, -EINVAL,
		"bit %s: of QUIC spin:N, delay:N, square:N, loss:N, reflection:N, trip:N or ecn-echo:N",
		text);
}

int pl_mark_observe_bits(
	struct pl_efm_config *ret, const char *const *texts, size_t n, struct pl_diag *diag)
{
	unsigned int seen = 0;

	memset(ret->masks, 0, sizeof(ret->masks));
	if (n == 0)
		ret->masks[PL_EFM_SPIN] = 0x20;
	for (size_t i = 0; i < n; i++) {
		if (read_bit(ret, texts[i], diag) < 0)
			return -EINVAL;
	}
	for (unsigned int bit = 0; bit < PL_EFM_BITS; bit++) {
		if ((seen & ret->masks[bit]) != 0)
			return pl_diag_fail(
				diag, -EINVAL, "bit %s is another one's, too", bit_names[bit]);
		seen |= ret->masks[bit];
	}
	if (ret->masks[PL_EFM_ROUND_TRIP] != 0 && ret->masks[PL_EFM_SPIN] == 0)
		return pl_diag_fail(
			diag, -EINVAL, "the round-trip loss bit needs the spin bit: spin:5");
	if (ret->masks[PL_EFM_REFLECTION] != 0 && ret->masks[PL_EFM_SQUARE] == 0)
		return pl_diag_fail(
			diag, -EINVAL, "the reflection bit needs the square bit: square:N");
	return 0;
}

/* ---- a direction as a row ---- */

#define COLUMN_LIST(COLUMN)                                                                        \
	COLUMN(TS, "ts_ns", 19, true, true, false)                                                 \
	COLUMN(SRC, "src", -15, false, false, false)                                               \
	COLUMN(SPORT, "sport", 5, true, false, false)                                              \
	COLUMN(DST, "dst", -15, false, false, false)                                               \
	COLUMN(DPORT, "dport", 5, true, false, false)                                              \
	COLUMN(SENDER, "sender", -6, false, false, false)                                          \
	COLUMN(PACKETS, "packets", 8, true, false, false)                                          \
	COLUMN(SPIN, "spin", -8, false, false, false)                                              \
	COLUMN(EDGES, "edges", 6, true, true, false)                                               \
	COLUMN(REJECTED, "rejected", 8, true, true, false)                                         \
	COLUMN(RTT, "rtt_ns", 10, true, false, false)                                              \
	COLUMN(RTT_MIN, "rtt_min_ns", 10, true, true, false)                                       \
	COLUMN(RTT_MAX, "rtt_max_ns", 10, true, true, false)                                       \
	COLUMN(SAMPLES, "samples", 7, true, false, false)                                          \
	COLUMN(BY, "by", -5, false, true, false)                                                   \
	COLUMN(HALF, "half_ns", 10, true, false, false)                                            \
	COLUMN(HALF_MIN, "half_min_ns", 11, true, true, false)                                     \
	COLUMN(HANDSHAKE, "handshake_ns", 12, true, true, false)                                   \
	COLUMN(ULOSS, "uloss", 8, true, false, false)                                              \
	COLUMN(ELOSS, "eloss", 8, true, false, false)                                              \
	COLUMN(DLOSS, "dloss", 8, true, false, false)                                              \
	COLUMN(TQLOSS, "tqloss", 8, true, true, false)                                             \
	COLUMN(REVERSE, "reverse_eloss", 13, true, true, false)                                    \
	COLUMN(HALF_LOSS, "half_loss", 9, true, true, false)                                       \
	COLUMN(TRIP, "trip_loss", 9, true, true, false)                                            \
	COLUMN(ECHO, "ecn_echo", 8, true, true, false)                                             \
	COLUMN(CE, "ce", 8, true, true, false)                                                     \
	COLUMN(SQUARE, "square", 6, true, true, false)                                             \
	COLUMN(BLOCKS, "blocks", 6, true, true, false)                                             \
	COLUMN(CIDS, "cid_changes", 11, true, true, false)                                         \
	COLUMN(NOTES, "notes", -12, false, false, false)

PL_COLUMNS(COLUMN_LIST);

struct observing {
	const struct pl_mark_observe_options *o;
	struct pl_tap_rules rules;
	struct pl_observer *observer;
	/* packets = datagrams of the observer + these */
	uint64_t packets, not_ip, not_udp, fragments, left_out;
	uint64_t directions, notes[32];
	struct pl_row_out out;
};

static void put_ratio(struct pl_row_cells *row, enum column column, bool has, double value)
{
	if (has)
		pl_row_cells_double(row, column, 6, value);
}

static void put_stat(struct pl_row_cells *row, enum column mean, enum column least,
	enum column most, const struct pl_efm_stat *s)
{
	if (s->n == 0)
		return;
	pl_row_cells_u64(row, mean, s->sum / s->n);
	pl_row_cells_u64(row, least, s->least);
	if (most != least)
		pl_row_cells_u64(row, most, s->most);
}

static void put_flow(struct pl_row_cells *row, const struct pl_observed *one)
{
	pl_row_cells_addr(row, SRC, &one->flow.src);
	pl_row_cells_addr(row, DST, &one->flow.dst);
	pl_row_cells_u64(row, SPORT, one->flow.sport);
	pl_row_cells_u64(row, DPORT, one->flow.dport);
	pl_row_cells_u64(row, TS, one->first_ns);
	pl_row_cells_u64(row, PACKETS, one->packets);
	row->values[SENDER] = one->efm.is_client ? "client" : one->efm.is_server ? "server" : NULL;
	if (one->handshake_ns != 0)
		pl_row_cells_u64(row, HANDSHAKE, one->handshake_ns);
	pl_row_cells_u64(row, CIDS, one->cids);
}

static void put_times(struct pl_row_cells *row, const struct pl_observed *one)
{
	const struct pl_efm_result *r = &one->efm;

	row->values[SPIN] = pl_efm_spins_name(r->spins);
	if (r->spins != PL_EFM_UNSET) {
		pl_row_cells_u64(row, EDGES, one->edges);
		pl_row_cells_u64(row, REJECTED, one->rejected + one->paused);
	}
	put_stat(row, RTT, RTT_MIN, RTT_MAX, &r->rtt);
	put_stat(row, HALF, HALF_MIN, HALF_MIN, &r->half);
	pl_row_cells_u64(row, SAMPLES, r->rtt.n);
	if (r->rtt.n > 0)
		row->values[BY] = r->by_delay ? "delay" : "spin";
}

static void put_losses(struct pl_row_cells *row, const struct pl_observed *one)
{
	const struct pl_efm_result *r = &one->efm;

	put_ratio(row, ULOSS, (r->has & PL_EFM_HAS_ULOSS) != 0, r->uloss);
	put_ratio(row, ELOSS, (r->has & PL_EFM_HAS_ELOSS) != 0, r->eloss);
	put_ratio(row, DLOSS, (r->has & PL_EFM_HAS_DLOSS) != 0, r->dloss);
	put_ratio(row, TQLOSS, (r->has & PL_EFM_HAS_TQLOSS) != 0, r->tqloss);
	put_ratio(row, REVERSE, (r->has & PL_EFM_HAS_REVERSE) != 0, r->reverse);
	put_ratio(row, HALF_LOSS, (r->has & PL_EFM_HAS_HALF) != 0, r->half_loss);
	put_ratio(row, TRIP, (r->has & PL_EFM_HAS_TRIP) != 0, r->trip);
	put_ratio(row, ECHO, (r->has & PL_EFM_HAS_ECHO) != 0, r->echo);
	put_ratio(row, CE, true, (double)one->congested / (double)one->packets);
	if ((r->has & PL_EFM_HAS_ULOSS) != 0) {
		pl_row_cells_u64(row, SQUARE, r->square);
		pl_row_cells_u64(row, BLOCKS, r->blocks);
	}
}

static void put_notes(struct pl_row_cells *row, struct observing *q, uint32_t notes)
{
	char *at = row->texts[NOTES];

#define NOTE(bit, id, name, help)                                                                  \
	if ((notes >> (bit)&1) != 0) {                                                             \
		q->notes[bit]++;                                                                   \
		at += snprintf(at, (size_t)(row->texts[NOTES] + PL_ROW_CELL_BYTES - at),           \
			"%s" name, at > row->texts[NOTES] ? "+" : "");                             \
	}
	PL_EFM_NOTES(NOTE)
#undef NOTE
	row->values[NOTES] = at > row->texts[NOTES] ? row->texts[NOTES] : NULL;
}

static void print_direction(void *arg, const struct pl_observed *one)
{
	struct observing *q = arg;
	struct pl_row_cells row = { .values = { NULL } };

	q->directions++;
	put_flow(&row, one);
	put_times(&row, one);
	put_losses(&row, one);
	put_notes(&row, q, one->efm.notes);
	if (pl_row_out_full(&q->out))
		return;
	pl_row_out_add(&q->out, row.values);
	pl_row_out_write(&q->out);
}

/* ---- the capture ---- */

static void take(void *arg, const struct pl_packet *p)
{
	struct observing *q = arg;
	struct pl_mark_flow flow = { .proto = PL_IP_UDP };
	struct pl_layers layers;
	struct pl_pkt96 record;

	q->packets++;
	if (pl_layers_walk(&layers, pl_cursor(p->data, p->len), (enum pl_link)p->link, true) !=
			PL_V_OK ||
		layers.network == NULL) {
		q->not_ip++;
		return;
	}
	if ((layers.flags & PL_LAYERS_FRAGMENT) != 0) {
		q->fragments++;
		return;
	}
	if (layers.flow.proto != PL_IP_UDP || (layers.flow.have & PL_FLOW_PORTS) == 0) {
		q->not_udp++;
		return;
	}
	record = pl_mark_capture_record(p, &layers);
	if (pl_tap_rules_apply(&q->rules, &record) == PL_TAP_RULED_SKIP) {
		q->left_out++;
		return;
	}
	flow.src = layers.flow.src;
	flow.dst = layers.flow.dst;
	flow.sport = layers.flow.sport;
	flow.dport = layers.flow.dport;
	(void)pl_observer_take(
		q->observer, &flow, p->ts_ns, layers.ecn, layers.payload, layers.missing);
}

/* ---- messages at the end ---- */

static void tell_stats(const struct observing *q)
{
	const struct pl_observer_stats *s = pl_observer_stats(q->observer);

	fprintf(stderr,
		"%s: %" PRIu64 " packets: %" PRIu64 " no IP or broken, %" PRIu64
		" fragments behind the first, %" PRIu64 " no UDP, %" PRIu64 " left out by --rule",
		q->o->path, q->packets, q->not_ip, q->fragments, q->not_udp, q->left_out);
	for (unsigned int i = 0; i < pl_observer_stats_list.n; i++) {
		const struct pl_stat *stat = &pl_observer_stats_list.rows[i];

		if (!stat->gauge)
			fprintf(stderr, ", %s %" PRIu64, stat->key, pl_stat_read(stat, s));
	}
	fputc('\n', stderr);
}

static void tell(const struct observing *q)
{
	const struct pl_observer_stats *s = pl_observer_stats(q->observer);

	if (q->o->stats)
		tell_stats(q);
	if (q->directions == 0)
		pl_complain(
			"%s: no packet of QUIC with a short header; those of other ports than 443 are taken behind their handshake, or chosen by --rule",
			q->o->path);
	if (s->without_room > 0)
		pl_complain("%s: %" PRIu64 " packets of more connections than --flows", q->o->path,
			s->without_room);
#define NOTE(bit, id, name, help)                                                                  \
	if (q->notes[bit] > 0)                                                                     \
		pl_complain(name ", in %" PRIu64 " of %" PRIu64 " directions: " help,              \
			q->notes[bit], q->directions);
	PL_EFM_NOTES(NOTE)
#undef NOTE
}

int pl_mark_observe(const struct pl_mark_observe_options *options)
{
	struct observing q = { .o = options, .rules = options->rules };
	struct pl_diag diag = { 0 };
	bool read, wrote;
	const int r = pl_observer_new(&q.observer, &options->observer, &diag);

	if (r < 0) {
		pl_complain("%s", r == -ENOMEM ? "out of memory" : diag.text);
		return r == -ENOMEM ? PL_EXIT_FAILED : PL_EXIT_USAGE;
	}
	pl_row_out_init(&q.out, options->form, columns, COLUMNS);
	read = pl_mark_capture_each(q.o->path, take, &q);
	pl_observer_finish(q.observer, print_direction, &q);
	wrote = pl_row_out_end(&q.out);
	tell(&q);
	pl_observer_free(q.observer);
	return !read || !wrote ? PL_EXIT_FAILED : q.directions == 0 ? PL_EXIT_NOTHING : PL_EXIT_OK;
}
