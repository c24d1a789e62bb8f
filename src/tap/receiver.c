/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads records from datagrams of tmpkt/1, and accounts for their sequence. */
#include "tap/receiver.h"

#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "decode/sequence.h"
#include "record/flow_hash.h"
#include "wire/layers.h"

#define WAYS          16
#define GAP_MAX       65536u /* a greater step is a restart, not a loss */

/* Room for the records of a UDP payload as unpacked; flow128 grows most. */
#define RECORDS_BYTES (65536 / sizeof(struct pl_flow128) * sizeof(struct pl_flow288))
_Static_assert(RECORDS_BYTES >= 65536 / sizeof(struct pl_pkt64) * sizeof(struct pl_pkt96) &&
		       RECORDS_BYTES >= 65536,
	"");

struct exporter {
	struct pl_addr addr;
	uint32_t id;
	bool used;
	uint64_t turn; /* of its last datagram */
	struct pl_sequence seq;
};

struct pl_tmpkt_receiver {
	pl_tmpkt_sink *sink;
	void *arg;
	struct pl_tmpkt_stats stats;
	uint64_t turn;
	enum pl_clock_kind clock; /* of the present datagram */
	struct pl_addr from;
	bool torn;
	uint32_t mask; /* of buckets */
	struct exporter *exporters;
	uint64_t records[RECORDS_BYTES / 8];
};

int pl_tmpkt_receiver_new(
	struct pl_tmpkt_receiver **ret, uint32_t exporters, pl_tmpkt_sink *sink, void *arg)
{
	struct pl_tmpkt_receiver *r = calloc(1, sizeof(*r));
	uint32_t buckets = 1;

	if (r == NULL)
		return -ENOMEM;
	while (buckets * WAYS < exporters && buckets < 1u << 20)
		buckets *= 2;
	r->exporters = calloc((size_t)buckets * WAYS, sizeof(*r->exporters));
	if (r->exporters == NULL) {
		free(r);
		return -ENOMEM;
	}
	r->mask = buckets - 1;
	r->sink = sink;
	r->arg = arg;
	*ret = r;
	return 0;
}

void pl_tmpkt_receiver_free(struct pl_tmpkt_receiver *receiver)
{
	if (receiver == NULL)
		return;
	free(receiver->exporters);
	free(receiver);
}

/* Returns true when a is to be displaced rather than b. */
static bool rather(const struct exporter *a, const struct exporter *b)
{
	if (a->used != b->used)
		return !a->used;
	if (a->seq.proven != b->seq.proven)
		return !a->seq.proven;
	return a->turn < b->turn;
}

static struct exporter *exporter_of(
	struct pl_tmpkt_receiver *r, const struct pl_addr *addr, uint32_t id)
{
	/* Hashes the address alone: a sender that makes up exporter ids displaces only its own
	 * bucket. */
	const uint64_t hash = pl_hash(addr->b, sizeof(addr->b), pl_hash_seed());
	struct exporter *bucket = &r->exporters[(size_t)(hash & r->mask) * WAYS], *worst = bucket;

	for (int i = 0; i < WAYS; i++) {
		struct exporter *e = &bucket[i];

		if (e->used && e->id == id && pl_addr_equal(&e->addr, addr))
			return e;
		if (rather(e, worst))
			worst = e;
	}
	if (worst->used)
		r->stats.displaced++;
	else
		r->stats.exporters++;
	*worst = (struct exporter){ .addr = *addr, .id = id, .used = true };
	return worst;
}

/* Accounts for the datagram's sequence number; returns false for a duplicate. */
static bool account(
	struct pl_tmpkt_receiver *r, const struct pl_addr *from, const struct pl_tmpkt *h)
{
	struct exporter *e = exporter_of(r, from, h->exporter);
	const struct pl_sequence before = e->seq;

	e->turn = ++r->turn;
	pl_sequence_update(&e->seq, h->seq, 32, GAP_MAX);
	/* An exporter without sequence numbers has no duplicates; the counts revoke what it was
	 * taken for. */
	r->stats.lost += e->seq.lost - before.lost;
	r->stats.reordered += e->seq.reordered - before.reordered;
	r->stats.restarts += e->seq.restarts - before.restarts;
	r->from = *from;
	r->torn = !before.proven || e->seq.lost > before.lost || e->seq.restarts > before.restarts;
	return e->seq.duplicates <= before.duplicates;
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
		if (!account(r, &from, &h)) {
			r->stats.duplicates++;
			continue;
		}
		r->stats.accepted++;
		r->stats.records += h.count;
		r->clock = h.clock != PL_STAMP_NONE ? h.clock : PL_STAMP_SENDER;
		r->sink(r->arg, pl_flat_long(h.kind), unpack(r, &h, records), h.count);
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

bool pl_tmpkt_receiver_torn(const struct pl_tmpkt_receiver *receiver)
{
	return receiver->torn;
}

const struct pl_tmpkt_stats *pl_tmpkt_receiver_stats(const struct pl_tmpkt_receiver *receiver)
{
	return &receiver->stats;
}

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_tmpkt_stats, __VA_ARGS__)
#include "tap/tmpkt_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_tmpkt_stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };
