/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a tap is given: an odd first byte and a datagram of tmpkt/1, or an even one, whose other bits
 * say how the frame behind it begins and whether it stands for several packets (how many bytes each
 * carried is then in its last two), and the frame. Every packet is counted once; a record's
 * lengths fit each other; the records of a datagram are as many as it announces.
 */
#include "fuzz.h"
#include "record/packet.h"
#include "tap/receiver.h"
#include "tap/tap.h"

static struct pl_batch batch;
static uint32_t taken;

static void take(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	(void)arg;
	must(kind != PL_FLAT_PKT64 && kind < PL_FLAT_MAX);
	must(n > 0 && records != NULL);
	taken += n;
}

static void datagram(const uint8_t *data, uint32_t size)
{
	struct pl_tmpkt_receiver *r;
	const struct pl_tmpkt_stats *s;

	batch.pkts[0] = (struct pl_packet){
		.data = data, .len = size, .wire_len = size, .link = PL_LINK_UDP
	};
	must(pl_tmpkt_receiver_new(&r, 16, false, take, NULL) == 0);
	taken = 0;
	/* The second time it is a duplicate, or as malformed as before. */
	pl_tmpkt_receiver_feed(r, &batch);
	pl_tmpkt_receiver_feed(r, &batch);
	s = pl_tmpkt_receiver_stats(r);
	must(s->datagrams == 2 && s->accepted + s->duplicates + s->too_short + s->bad_magic +
						  s->bad_version + s->bad_kind + s->bad_length +
						  s->bad_frame ==
					  2);
	must(s->accepted == s->duplicates && s->records == taken);
	pl_tmpkt_receiver_free(r);
}

static void frame(const uint8_t *data, uint32_t size, uint8_t how)
{
	static struct pl_tap tap;
	static struct pl_dns64 dns[PL_BATCH_MAX];
	static struct pl_pkt96 records[PL_BATCH_MAX];
	uint64_t made = 0;
	uint32_t n;

	tap = (struct pl_tap){ .inner = (how & 8) != 0, .dns = dns };
	batch.pkts[0] = (struct pl_packet){ .data = data,
		.len = size,
		.wire_len = size,
		.link = (uint8_t)(how % PL_LINK_UDP),
		.gso = (uint8_t)((how >> 4) % (PL_GSO_OTHER + 1)) };
	if (size >= 2)
		batch.pkts[0].gso_size = (uint16_t)(data[size - 2] << 8 | data[size - 1]);
	do {
		n = pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX);
		for (uint32_t i = 0; i < n; i++) {
			const struct pl_pkt96 *r = &records[i];

			must(r->flow_hash != 0 && (r->obs & PL_OBS_POINT_MASK) == 0);
			must(r->proto == 6 || r->tcp_flags == 0);
			must((r->obs & PL_OBS_TUNNEL) == 0 || tap.inner);
			must(r->record_seq == made + i);
		}
		made += n;
		must(tap.n_dns <= n && (n > 0 || !tap.more));
		if (tap.n_dns == 1)
			must(dns[0].name_len <= 255 && dns[0].labels <= 127);
	} while (tap.more);
	must(tap.stats.records == made && tap.stats.joined <= 1);
	must(made + tap.stats.not_ip + tap.stats.broken == tap.stats.packets);
	must(made <= (size > 0 ? size : 1) && tap.stats.dns <= made);
	must(made <= 1 || batch.pkts[0].gso > PL_GSO_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size == 0 || size > 65536)
		return 0;
	/* Of its own size, so that reading behind it is seen. */
	copy = malloc(size > 1 ? size - 1 : 1);
	must(copy != NULL);
	memcpy(copy, data + 1, size - 1);
	batch.n = 1;
	if ((data[0] & 1) != 0)
		datagram(copy, (uint32_t)size - 1);
	else
		frame(copy, (uint32_t)size - 1, data[0] >> 1);
	free(copy);
	return 0;
}
