/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of packets through decoders with state: sequence numbers, interned paths, layouts found
 * before, tables that fill. First byte: the way through the decoder (bits 0-1), tables of a few
 * entries (bit 2), packets per batch less one (bits 4-7). Then packets: length 2 bytes, link and a
 * number of repeats 1 byte, the bytes; the last may be cut. A packet repeats with its last sequence
 * byte counting on, as an exporter would send.
 *
 * Cutting the stream into batches, a small output batch and the shortcuts change nothing: a second
 * decoder takes the packets one by one the general way and must give the same records, verdicts and
 * account. Where tables are full it takes and gives the same batches: a source makes room for its own
 * paths so many times a batch (decode/paths.c).
 */
#include "records.h"

/* A packet of 1 KiB holds at most 256 reports or hops, a batch 16 packets. */
enum {
	PACKETS = 64,
	PACKET_BYTES = 1024,
	PATHS = 8192,
	HOPS = 16384,
	SMALL_PATHS = 4,
	SMALL_HOPS = 260,
	ROOM_FOR_ALL = 1024, /* paths: more than an input of 4 KiB has reports */
};

struct collected {
	struct pl_path paths[PATHS];
	struct pl_hop hops[HOPS];
	uint32_t n_paths, n_hops;
};

static struct pl_record_batch small, large, as_large;
static struct collected first, second;

static void collect(struct pl_record_batch *b, void *arg)
{
	struct collected *c = arg;

	check_batch(b);
	must(c->n_paths + b->n_paths <= PATHS && c->n_hops + b->n_hops <= HOPS);
	memcpy(c->paths + c->n_paths, b->paths, b->n_paths * sizeof(*b->paths));
	memcpy(c->hops + c->n_hops, b->hops, b->n_hops * sizeof(*b->hops));
	c->n_paths += b->n_paths;
	c->n_hops += b->n_hops;
	pl_record_batch_clear(b);
}

static void make_batches(void)
{
	must(pl_record_batch_init(&small, SMALL_PATHS, SMALL_HOPS) == 0);
	must(pl_record_batch_init(&large, 256, 1024) == 0);
	must(pl_record_batch_init(&as_large, 256, 1024) == 0);
	small.flush = collect;
	small.flush_arg = &second;
	as_large.flush = collect;
	as_large.flush_arg = &second;
	large.flush = collect;
	large.flush_arg = &first;
}

/* The packets of the stream, with their bytes in blocks of their own; at most PACKETS. */
static unsigned int cut(struct pl_packet *pkts, const uint8_t *data, size_t size)
{
	unsigned int n = 0;

	while (size >= 3 && n < PACKETS) {
		size_t len = (size_t)data[0] << 8 | data[1];
		unsigned int repeats = 1 + (data[2] >> 4);

		if (len > size - 3)
			len = size - 3;
		if (len > PACKET_BYTES)
			len = PACKET_BYTES;
		for (unsigned int i = 0; i < repeats && n < PACKETS; i++, n++) {
			uint8_t *bytes = malloc(len);

			must(bytes != NULL || len == 0);
			memcpy(bytes, data + 3, len);
			/* A report behind Ethernet, IPv4 and UDP, or at the start: v2.0 and
			 * v1.0. */
			if (len > 42 + 12) {
				bytes[42 + 3] = (uint8_t)(bytes[42 + 3] + i);
				bytes[42 + 11] = (uint8_t)(bytes[42 + 11] + i);
			} else if (len > 12) {
				bytes[3] = (uint8_t)(bytes[3] + i);
			}
			pkts[n] = (struct pl_packet){ .data = bytes,
				.len = (uint32_t)len,
				.wire_len = (uint32_t)len,
				.ts_ns = UINT64_C(1700000000000000000) + 1000 * n,
				.link = (data[2] & 0xf) % PL_LINK_MAX,
				.sport = 40000,
				.dport = 32766 };
		}
		data += 3 + len;
		size -= 3 + len;
	}
	return n;
}

static void same(const struct pl_decode *a, const struct pl_decode *b)
{
	const struct pl_decode_counters *x = pl_decode_counters(a), *y = pl_decode_counters(b);
	struct pl_exporter e, f;
	struct pl_path_info p, q;

	must(first.n_paths == second.n_paths && first.n_hops == second.n_hops);
	must(memcmp(first.paths, second.paths, first.n_paths * sizeof(*first.paths)) == 0);
	must(memcmp(first.hops, second.hops, first.n_hops * sizeof(*first.hops)) == 0);
	/* All of it is counters. */
	must(memcmp(x, y, sizeof(*x)) == 0);
	must(pl_counter_read(&x->paths) == first.n_paths);
	must(pl_counter_read(&x->hops) == first.n_hops);
	for (uint32_t i = 0, k = 0; pl_decode_exporter(a, &i, &e);) {
		must(pl_decode_exporter(b, &k, &f));
		must(pl_addr_equal(&e.addr, &f.addr) && e.node == f.node && e.hw_id == f.hw_id);
		must(e.reports == f.reports && e.lost == f.lost && e.last_seq == f.last_seq);
	}
	for (uint32_t i = 0; pl_decode_path(a, i, &p); i++) {
		must(i < a->opt.max_paths);
		must(pl_decode_path(b, i, &q) && p.path_id == q.path_id);
		must(p.reports == q.reports && p.hop_count == q.hop_count);
		must(pl_decode_path_find(a, p.path_id, &q) && p.reports == q.reports);
	}
}

static void same_outcomes(const struct pl_outcome *a, const struct pl_outcome *b, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		must(a[i].verdict == b[i].verdict && a[i].notes == b[i].notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pl_batch in;
	struct pl_packet pkts[PACKETS];
	struct pl_decode_options options = { .max_exporters = 64, .max_paths = ROOM_FOR_ALL };
	struct pl_decode *a, *b;
	struct pl_record_batch *to = &small;
	unsigned int n, step, by;
	bool few;

	if (size < 1)
		return 0;
	if (small.paths == NULL)
		make_batches();
	few = (data[0] & 4) != 0;
	if (few) {
		to = &as_large;
		options.max_exporters = 2;
		options.max_paths = 2;
		options.sequence_gap_max = 100;
	}
	a = make_decoder(data[0] & 3, &options);
	b = make_decoder(data[0] & 3, &options);
	only_general(b);
	step = 1 + (data[0] >> 4);
	first.n_paths = first.n_hops = second.n_paths = second.n_hops = 0;
	n = cut(pkts, data + 1, size - 1);
	for (unsigned int at = 0; at < n && first.n_paths < PATHS / 2 && first.n_hops < HOPS / 2;) {
		in.n = 0;
		while (in.n < step && at < n)
			in.pkts[in.n++] = pkts[at++];
		pl_decode_batch(a, &in, &large);
		collect(&large, &first);
		by = few ? in.n : 1;
		for (unsigned int i = 0; i < in.n; i += by) {
			static struct pl_batch part;

			part.n = by;
			memcpy(part.pkts, in.pkts + i, by * sizeof(part.pkts[0]));
			pl_decode_batch(b, &part, to);
			same_outcomes(pl_decode_outcomes(b), pl_decode_outcomes(a) + i, by);
			collect(to, &second);
		}
	}
	check_account(a);
	same(a, b);
	for (unsigned int i = 0; i < n; i++)
		free((void *)(uintptr_t)pkts[i].data);
	pl_decode_free(a);
	pl_decode_free(b);
	return 0;
}
