/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads records from datagrams of tmpkt/1, and accounts for their sequence. */
#include "tap/receiver.h"

#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "decode/exporters.h"
#include "decode/sequence.h"
#include "record/flow_hash.h"
#include "wire/layers.h"

#define GAP_MAX       65536u                        /* a greater step is a restart, not a loss */
#define IDLE_NS       (UINT64_C(600) * 1000000000u) /* a silent exporter may be replaced after it */
#define HELD          1024u

/* Room for the records of a UDP payload as unpacked; flow128 grows most. */
#define RECORDS_BYTES (65536 / sizeof(struct pl_flow128) * sizeof(struct pl_flow288))
_Static_assert(RECORDS_BYTES >= 65536 / sizeof(struct pl_pkt64) * sizeof(struct pl_pkt96) &&
		       RECORDS_BYTES >= 65536,
	"");

/* A datagram of an exporter that is not proven yet. */
struct held {
	struct pl_addr addr;
	uint32_t len; /* 0: none */
	struct pl_tmpkt header;
	uint8_t records[PL_TMPKT_DATAGRAM_BYTES - PL_TMPKT_HEADER_BYTES];
};

struct pl_tmpkt_receiver {
	pl_tmpkt_sink *sink;
	void *arg;
	struct pl_tmpkt_stats stats;
	enum pl_clock_kind clock; /* of the present datagram */
	struct pl_addr from;
	uint32_t number; /* of the exporter */
	bool torn;
	struct pl_seq_spaces exporters;
	struct held *held; /* HELD of them; NULL: exporters need no proof */
	uint64_t next;     /* datagrams held so far: the place of the next one, modulo HELD */
	uint64_t records[RECORDS_BYTES / 8];
};

int pl_tmpkt_receiver_new(struct pl_tmpkt_receiver **ret, uint32_t exporters, bool prove,
	pl_tmpkt_sink *sink, void *arg)
{
	struct pl_tmpkt_receiver *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	/* Without proof too, strangers displace only each other. */
	if (pl_seq_spaces_init(&r->exporters, exporters, IDLE_NS, true) < 0)
		goto fail;
	if (prove) {
		r->held = calloc(HELD, sizeof(*r->held));
		if (r->held == NULL)
			goto fail;
	}
	r->sink = sink;
	r->arg = arg;
	*ret = r;
	return 0;
fail:
	pl_tmpkt_receiver_free(r);
	return -ENOMEM;
}

void pl_tmpkt_receiver_free(struct pl_tmpkt_receiver *receiver)
{
	if (receiver == NULL)
		return;
	pl_seq_spaces_done(&receiver->exporters);
	free(receiver->held);
	free(receiver);
}

/* Follows the exporter when it is proven; *from is its account before this datagram. An exporter on
 * probation counts nothing, and from its proof on all. Returns where the exporter is now. */
static struct pl_seq_space *add_up(struct pl_tmpkt_receiver *r, struct pl_seq_space *x,
	const struct pl_sequence *from, uint64_t ts_ns)
{
	static const struct pl_sequence nothing;
	const struct pl_sequence *before = x->followed ? from : &nothing;
	struct pl_seq_space *to = x;

	if (!x->seq.proven)
		return x;
	if (!x->followed)
		to = pl_seq_spaces_follow(&r->exporters, x, ts_ns);
	r->stats.displaced += r->exporters.gone;
	r->exporters.gone = 0;
	r->stats.exporters = pl_cells_count(&r->exporters.followed);
	if (to == NULL) {
		r->stats.untracked++;
		return x;
	}
	x = to;
	r->stats.lost += x->seq.lost - before->lost;
	r->stats.reordered += x->seq.reordered - before->reordered;
	r->stats.restarts += x->seq.restarts - before->restarts;
	return x;
}

/* Copies the records, aligned; those of the short kinds, pkt64/1 and flow128/1, are filled up with
 * zeros. */
static const void *unpack(
	struct pl_tmpkt_receiver *r, const struct pl_tmpkt *h, const uint8_t *records)
{
	const uint32_t from = pl_flat(h->kind)->size, to = pl_flat(pl_flat_long(h->kind))->size;

	for (uint32_t i = 0; i < h->count; i++) {
		void *p = (uint8_t *)r->records + (size_t)i * to;

		memcpy(p, records + (size_t)i * from, from);
		memset((uint8_t *)p + from, 0, to - from);
		if (h->kind == PL_FLAT_PKT64)
			((struct pl_pkt96 *)p)->flow_hash = pl_flow_hash_packet(p);
	}
	return r->records;
}

static void give(struct pl_tmpkt_receiver *r, const struct pl_addr *from, const struct pl_tmpkt *h,
	const uint8_t *records)
{
	r->stats.accepted++;
	if (h->count == 0) {
		r->stats.empty++;
		return;
	}
	r->stats.records += h->count;
	r->from = *from;
	r->number = h->exporter;
	r->clock = h->clock != PL_STAMP_NONE ? h->clock : PL_STAMP_SENDER;
	r->sink(r->arg, pl_flat_long(h->kind), unpack(r, h, records), h->count);
}

/* ---- datagrams that wait for the proof of their exporter ---- */

static void leave_out(struct pl_tmpkt_receiver *r, const struct pl_tmpkt *h)
{
	r->stats.unproven++;
	r->stats.unproven_records += h->count;
}

static void hold(struct pl_tmpkt_receiver *r, const struct pl_addr *from, const struct pl_tmpkt *h,
	const uint8_t *records)
{
	struct held *slot = &r->held[r->next % HELD];
	const size_t len = (size_t)h->count * pl_flat(h->kind)->size;

	if (len > sizeof(slot->records)) {
		leave_out(r, h);
		return;
	}
	if (slot->len != 0)
		leave_out(r, &slot->header);
	else
		r->stats.held++;
	slot->addr = *from;
	slot->len = (uint32_t)len;
	slot->header = *h;
	memcpy(slot->records, records, len);
	r->next++;
}

/* Gives the datagrams that an exporter sent before its proof, in their order; returns whether there
 * were any. */
static bool give_held(struct pl_tmpkt_receiver *r, const struct pl_addr *from, uint32_t exporter)
{
	bool any = false;

	for (uint64_t i = r->next > HELD ? r->next - HELD : 0; i < r->next; i++) {
		struct held *slot = &r->held[i % HELD];

		if (slot->len == 0 || slot->header.exporter != exporter ||
			!pl_addr_equal(&slot->addr, from))
			continue;
		slot->len = 0;
		r->stats.held--;
		give(r, from, &slot->header, slot->records);
		any = true;
	}
	return any;
}

/* ---- datagrams ---- */

static void refuse(struct pl_tmpkt_stats *stats, enum pl_tmpkt_fault fault)
{
	switch (fault) {
	case PL_TMPKT_SHORT:
		stats->too_short++;
		break;
	case PL_TMPKT_MAGIC:
		stats->bad_magic++;
		break;
	case PL_TMPKT_VERSION:
		stats->bad_version++;
		break;
	case PL_TMPKT_KIND:
		stats->bad_kind++;
		break;
	case PL_TMPKT_LENGTH:
	case PL_TMPKT_OK:
		stats->bad_length++;
		break;
	}
}

/* Accounts for the datagram's sequence number, and gives its records unless they have to wait for
 * proof, or came before. */
static void take(struct pl_tmpkt_receiver *r, const struct pl_addr *from, const struct pl_tmpkt *h,
	const uint8_t *records, uint64_t ts_ns)
{
	struct pl_seq_space *x = pl_seq_spaces_get(&r->exporters, from, h->exporter, 0);
	struct pl_sequence before;
	bool proven, again, gave = false;

	if (x == NULL)
		x = pl_seq_spaces_make(&r->exporters, from, h->exporter, 0, ts_ns);
	before = x->seq;
	x->last_ts_ns = ts_ns;
	pl_sequence_update(&x->seq, h->seq, 32, GAP_MAX);
	proven = x->seq.proven;
	/* An exporter without sequence numbers has no duplicates; counts made before that was known
	 * are taken back. */
	again = x->seq.duplicates > before.duplicates;
	if (!before.proven || x->seq.lost > before.lost || x->seq.restarts > before.restarts)
		x->torn = true;
	r->torn = x->torn;
	x = add_up(r, x, &before, ts_ns);
	if (proven && !before.proven)
		gave = give_held(r, from, h->exporter);
	if (again)
		r->stats.duplicates++;
	else if (proven || r->held == NULL || h->count == 0)
		give(r, from, h, records);
	else
		hold(r, from, h, records);
	/* A datagram without records, or a repeated one, gives no records that could be marked as
	 * torn, so the next records are. */
	x->torn = x->torn && (again || h->count == 0) && !gave;
}

/* Finds the payload and the sender of the datagram in a frame. */
static bool unwrap(const struct pl_packet *frame, struct pl_cursor *ret, struct pl_addr *ret_from)
{
	struct pl_layers l;

	if (pl_layers_walk(&l, pl_cursor(frame->data, frame->len), (enum pl_link)frame->link,
		    false) != PL_V_OK ||
		l.flow.proto != PL_IP_UDP ||
		(l.flags & (PL_LAYERS_FRAGMENT | PL_LAYERS_NO_L4)) != 0)
		return false;
	*ret = l.payload;
	*ret_from = l.flow.src;
	return true;
}

void pl_tmpkt_receiver_feed(struct pl_tmpkt_receiver *receiver, const struct pl_batch *batch)
{
	struct pl_tmpkt_receiver *r = receiver;

	for (uint32_t i = 0; i < batch->n; i++) {
		const struct pl_packet *pkt = &batch->pkts[i];
		enum pl_tmpkt_fault fault;
		struct pl_cursor payload = pl_cursor(pkt->data, pkt->len);
		struct pl_addr from = pkt->src;
		const uint8_t *records;
		struct pl_tmpkt h;

		r->stats.datagrams++;
		if (pkt->link != PL_LINK_UDP && !unwrap(pkt, &payload, &from)) {
			r->stats.bad_frame++;
			continue;
		}
		fault = pl_tmpkt_parse(&h, &records, payload.pos, pl_cursor_left(&payload));
		if (fault != PL_TMPKT_OK) {
			refuse(&r->stats, fault);
			continue;
		}
		take(r, &from, &h, records, pkt->ts_ns);
	}
}

enum pl_clock_kind pl_tmpkt_receiver_clock(const struct pl_tmpkt_receiver *receiver)
{
	return receiver->clock;
}

const struct pl_addr *pl_tmpkt_receiver_from(const struct pl_tmpkt_receiver *receiver)
{
	return &receiver->from;
}

uint32_t pl_tmpkt_receiver_number(const struct pl_tmpkt_receiver *receiver)
{
	return receiver->number;
}

bool pl_tmpkt_receiver_torn(const struct pl_tmpkt_receiver *receiver)
{
	return receiver->torn;
}

const struct pl_tmpkt_stats *pl_tmpkt_receiver_stats(const struct pl_tmpkt_receiver *receiver)
{
	return &receiver->stats;
}

bool pl_tmpkt_receiver_exporter(
	const struct pl_tmpkt_receiver *receiver, uint32_t *pos, struct pl_exporter *ret)
{
	const struct pl_seq_space *x = pl_cells_next(&receiver->exporters.followed, pos);

	if (x == NULL)
		return false;
	*ret = (struct pl_exporter){ .addr = x->key.addr,
		.node = x->key.node,
		.first_ts_ns = x->first_ts_ns,
		.last_ts_ns = x->last_ts_ns };
	pl_exporter_count(ret, &x->seq);
	return true;
}

static const struct pl_stat exporter_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_exporter, __VA_ARGS__)
#include "tap/tmpkt_exporter_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_tmpkt_exporter_stats_list = { exporter_rows,
	sizeof(exporter_rows) / sizeof(exporter_rows[0]) };

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_tmpkt_stats, __VA_ARGS__)
#include "tap/tmpkt_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_tmpkt_stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };
