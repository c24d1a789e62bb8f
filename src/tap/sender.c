/* SPDX-License-Identifier: BSD-2-Clause */
/* Gathers records into datagrams of tmpkt/1. */
#include "tap/sender.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/flow_hash.h"

struct lane {
	uint32_t records;
	uint32_t clocks;        /* bits of the kinds of the records' clocks */
	uint64_t base_ns, hash; /* of the first record */
	uint8_t datagram[PL_TMPKT_DATAGRAM_BYTES];
};

struct pl_tmpkt_sender {
	struct pl_tmpkt_sender_config cfg;
	enum pl_flat_kind given; /* of the records that are put */
	uint32_t size;           /* of a record that is sent */
	uint32_t seq;
	enum pl_clock_kind clock; /* of records that are put now */
	struct lane lanes[];
};

int pl_tmpkt_sender_new(struct pl_tmpkt_sender **ret, const struct pl_tmpkt_sender_config *config)
{
	struct pl_tmpkt_sender *s;

	if (config->lanes == 0 || config->lanes > PL_TMPKT_LANES_MAX || config->records == 0 ||
		config->records > pl_tmpkt_fits(config->kind, PL_TMPKT_DATAGRAM_BYTES))
		return -EINVAL;
	s = calloc(1, sizeof(*s) + config->lanes * sizeof(s->lanes[0]));
	if (s == NULL)
		return -ENOMEM;
	s->cfg = *config;
	s->seq = config->first;
	s->given = pl_flat_long(config->kind);
	s->size = pl_flat(config->kind)->size;
	*ret = s;
	return 0;
}

void pl_tmpkt_sender_free(struct pl_tmpkt_sender *sender)
{
	free(sender);
}

static void send_lane(struct pl_tmpkt_sender *s, uint32_t i)
{
	struct lane *lane = &s->lanes[i];
	const struct pl_tmpkt header = { .kind = s->cfg.kind,
		.clock = s->cfg.tells_clock ? pl_clock_of(lane->clocks) : PL_STAMP_NONE,
		.count = (uint16_t)lane->records,
		.exporter = s->cfg.exporter,
		.seq = s->seq++,
		.base_ns = lane->base_ns,
		.hash = lane->hash };

	pl_tmpkt_put(lane->datagram, &header);
	s->cfg.send(s->cfg.arg, i, lane->datagram, PL_TMPKT_HEADER_BYTES + lane->records * s->size,
		lane->records);
	lane->records = 0;
}

void pl_tmpkt_sender_put(struct pl_tmpkt_sender *sender, const void *records, uint32_t n)
{
	const uint32_t step = pl_flat(sender->given)->size;
	const uint8_t *p = records;

	for (uint32_t i = 0; i < n; i++, p += step) {
		const uint64_t hash = pl_flow_hash_record(sender->given, p);
		const uint32_t at = (uint32_t)(hash % sender->cfg.lanes);
		struct lane *lane = &sender->lanes[at];

		if (lane->records == 0) {
			/* Records of every kind begin with their time. */
			memcpy(&lane->base_ns, p, sizeof(lane->base_ns));
			lane->hash = hash;
			lane->clocks = 0;
		}
		lane->clocks |= 1u << sender->clock;
		/* pkt64/1 is the beginning of pkt96/1, and flow128/1 of flow288/1. */
		memcpy(lane->datagram + PL_TMPKT_HEADER_BYTES + lane->records * sender->size, p,
			sender->size);
		if (++lane->records == sender->cfg.records)
			send_lane(sender, at);
	}
}

void pl_tmpkt_sender_clock(struct pl_tmpkt_sender *sender, enum pl_clock_kind clock)
{
	sender->clock = clock;
}

void pl_tmpkt_sender_flush(struct pl_tmpkt_sender *sender)
{
	for (uint32_t i = 0; i < sender->cfg.lanes; i++) {
		if (sender->lanes[i].records > 0)
			send_lane(sender, i);
	}
}

void pl_tmpkt_sender_empty(struct pl_tmpkt_sender *sender)
{
	const struct pl_tmpkt header = {
		.kind = sender->cfg.kind, .exporter = sender->cfg.exporter, .seq = sender->seq++
	};
	uint8_t datagram[PL_TMPKT_HEADER_BYTES];

	pl_tmpkt_put(datagram, &header);
	sender->cfg.send(sender->cfg.arg, 0, datagram, sizeof(datagram), 0);
}
