/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of DTA reports: the published generator's bytes, and what each stream promises. */
#include "gen/dta_gen.h"

#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "base/test.h"
#include "wire/layers.h"

static struct pl_batch batch;

static struct pl_dta_gen *make(struct pl_dta_gen_cfg cfg)
{
	struct pl_diag diag = { .text = "" };
	struct pl_dta_gen *g;

	ok(pl_dta_gen_new(&g, &cfg, &diag) == 0, "%s", diag.text);
	if (g == NULL)
		exit(1);
	return g;
}

static void test_published(void)
{
	/* opcode, number, flags, copies, key, value */
	static const uint8_t key_write[2][12] = { { 1, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ 1, 1, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1 } };
	static const uint8_t append[2][11] = { { 2, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 1 },
		{ 2, 1, 0x40, 0, 0, 0, 1, 0, 0, 0, 2 } };
	struct pl_dta_gen *g =
		make((struct pl_dta_gen_cfg){ .form = PL_DTA_TRACKING, .count = 300, .udp = true });

	ok(pl_dta_gen_next(g, UINT64_MAX, &batch) > 1);
	eq(batch.pkts[0].len, 12);
	memeq(batch.pkts[0].data, key_write[0], 12);
	memeq(batch.pkts[1].data, key_write[1], 12);
	pl_dta_gen_free(g);

	g = make((struct pl_dta_gen_cfg){ .form = PL_DTA_TRACKING,
		.stream = PL_DTA_STREAM_APPEND,
		.sequenced = true,
		.udp = true });
	ok(pl_dta_gen_next(g, UINT64_MAX, &batch) > 6);
	memeq(batch.pkts[0].data, append[0], 11);
	memeq(batch.pkts[1].data, append[1], 11);
	eq(batch.pkts[5].data[6], 0, "five lists in turn");
	pl_dta_gen_free(g);
}

/* Calls `look` with each report of a run; returns how many there were. */
static uint64_t each_report(struct pl_dta_gen *g, bool udp,
	void (*look)(const struct pl_dta_report *r, const struct pl_addr *from))
{
	uint64_t n = 0, bad = 0;

	while (pl_dta_gen_next(g, UINT64_MAX, &batch) >= 0) {
		for (uint32_t i = 0; i < batch.n; i++) {
			const struct pl_packet *p = &batch.pkts[i];
			struct pl_cursor c = pl_cursor(p->data, p->len);
			struct pl_layers layers = { .payload = c };
			struct pl_dta_report r;

			if (!udp &&
				(pl_layers_walk(&layers, c, PL_LINK_ETHERNET, false) != PL_V_OK ||
					layers.flow.dport != PL_PORT_DTA))
				bad++;
			for (c = layers.payload; pl_cursor_left(&c) > 0; n++) {
				if (pl_dta_next(&c, PL_DTA_TRACKING, &r) != PL_DTA_OK)
					bad++;
				else
					look(&r, &layers.flow.src);
			}
		}
	}
	eq(bad, 0, "all of it can be read");
	return n;
}

#define FLOWS 5000u

static uint8_t next_hop[FLOWS];
static uint64_t out_of_order, wrong_node, most_open, now_open;

static void look_nic(const struct pl_dta_report *r, const struct pl_addr *from)
{
	uint32_t flow = pl_be32(r->key);

	(void)from;
	if (flow >= FLOWS) {
		out_of_order++;
		return;
	}
	out_of_order += r->hop != ++next_hop[flow] || r->path_length != 1 + flow % 5;
	wrong_node +=
		r->value != pl_dta_gen_node(flow, r->hop, 50) || r->value > 50 || r->value == 0;
	now_open += r->hop == 1;
	if (now_open > most_open)
		most_open = now_open;
	now_open -= r->hop == r->path_length;
}

static void test_postcards(void)
{
	struct pl_dta_gen *g = make((struct pl_dta_gen_cfg){ .form = PL_DTA_PATHLINE,
		.stream = PL_DTA_STREAM_POSTCARDS,
		.count = 10000,
		.interleave = 100,
		.lengths = true,
		.tell_length = true,
		.nodes = 50,
		.packed = 7,
		.reporters = 3 });

	eq(each_report(g, false, look_nic), 10003, "whole datagrams");
	eq(out_of_order, 0);
	eq(wrong_node, 0);
	ok(most_open > 60 && most_open <= 100, "%" PRIu64 " flows at the same time", most_open);
	pl_dta_gen_free(g);
}

static uint32_t next_column[2], column_epoch[2];
static uint64_t wrong_columns;

static void look_columns(const struct pl_dta_report *r, const struct pl_addr *from)
{
	unsigned int who = from->b[15] - 200u;

	if (who > 1) {
		wrong_columns++;
		return;
	}
	wrong_columns += r->first_column != next_column[who] || r->epoch != column_epoch[who] ||
			 r->data_bytes % 8 != 0;
	next_column[who] += r->data_bytes / 8;
	if (next_column[who] == 100) {
		next_column[who] = 0;
		column_epoch[who]++;
	}
}

static void test_sketch(void)
{
	struct pl_dta_gen *g = make((struct pl_dta_gen_cfg){ .form = PL_DTA_PATHLINE,
		.stream = PL_DTA_STREAM_SKETCH,
		.columns = 100,
		.rows = 2,
		.cell_bytes = 4,
		.reporters = 2,
		.count = 200 });

	eq(each_report(g, false, look_columns), 200);
	eq(wrong_columns, 0, "columns in order, epoch by epoch, of each reporter");
	ok(column_epoch[0] > 5);
	pl_dta_gen_free(g);
}

static unsigned int wrong_cells;

static void look_registers(const struct pl_dta_report *r, const struct pl_addr *from)
{
	(void)from;
	for (uint32_t i = 0; i < r->data_bytes; i++) {
		const uint8_t *cells = r->data;

		wrong_cells += cells[i] > 61 ||
			       cells[i] != pl_dta_gen_cell(r->epoch, r->first_column + i, 0, 1);
	}
}

/* Cells that follow from their place: registers of HyperLogLog, of two reporters. */
static void test_cells(void)
{
	struct pl_dta_gen *g = make((struct pl_dta_gen_cfg){ .form = PL_DTA_PATHLINE,
		.stream = PL_DTA_STREAM_SKETCH,
		.columns = 50,
		.rows = 1,
		.cell_bytes = 1,
		.value_is_key = true,
		.reporters = 2,
		.count = 100 });

	eq(each_report(g, false, look_registers), 100);
	eq(wrong_cells, 0, "every register is what anybody can say it is");
	ok(pl_dta_gen_cell(0, 7, 0, 8) != pl_dta_gen_cell(1, 7, 0, 8) ||
		pl_dta_gen_cell(0, 8, 0, 8) != pl_dta_gen_cell(1, 8, 0, 8));
	eq(pl_dta_gen_columns(4, 8), 8);
	eq(pl_dta_gen_columns(16, 8), 7, "no more than a report holds");
	pl_dta_gen_free(g);
}

static uint64_t seen[1001];

static void look_key(const struct pl_dta_report *r, const struct pl_addr *from)
{
	uint32_t key = pl_be32(r->key);

	(void)from;
	seen[key < 1000 ? key : 1000]++;
}

static void test_zipf(void)
{
	struct pl_dta_gen *g = make((struct pl_dta_gen_cfg){ .form = PL_DTA_PATHLINE,
		.stream = PL_DTA_STREAM_INCREMENT,
		.keys = 1000,
		.zipf = 1.2,
		.count = 200000,
		.packed = 20,
		.udp = true });
	double sum = 0;

	eq(each_report(g, true, look_key), 200000);
	eq(seen[1000], 0);
	for (int k = 1; k <= 1000; k++)
		sum += pow(k, -1.2);
	for (int k = 1; k <= 1000; k = k < 4 ? k + 1 : k * 5) {
		double want = 200000 * pow(k, -1.2) / sum;

		/* Six standard deviations. */
		ok(fabs((double)seen[k - 1] - want) < 6 * sqrt(want) + 1,
			"rank %d: %" PRIu64 " of %.0f", k, seen[k - 1], want);
	}
	pl_dta_gen_free(g);
}

/* The number of a key, however many zeros there are before it; -1: there is something else. */
static uint64_t number_of(const uint8_t *key, unsigned int n)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (v >> 56 != 0)
			return UINT64_MAX;
		v = v << 8 | key[i];
	}
	return v;
}

static struct pl_dta_gen_cfg keyed;
static uint64_t next_number, wrong_keys, shortest, longest;

static void look_length(const struct pl_dta_report *r, const struct pl_addr *from)
{
	(void)from;
	wrong_keys += number_of(r->key, r->key_bytes) != next_number++ % keyed.keys ||
		      r->key_bytes != pl_dta_gen_key_bytes(&keyed, (next_number - 1) % keyed.keys);
	if (r->key_bytes < shortest)
		shortest = r->key_bytes;
	if (r->key_bytes > longest)
		longest = r->key_bytes;
}

static void test_keys(void)
{
	static const struct {
		uint8_t bytes;
		bool lengths;
	} rows[] = { { 1, false }, { 3, false }, { 13, false }, { 255, false }, { 255, true },
		{ 9, true } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_dta_gen *g = make((struct pl_dta_gen_cfg){ .form = PL_DTA_PATHLINE,
			.key_bytes = rows[i].bytes,
			.key_lengths = rows[i].lengths,
			.count = 3000,
			.packed = 4 });

		keyed = *pl_dta_gen_cfg(g);
		next_number = longest = 0;
		shortest = UINT64_MAX;
		eq(each_report(g, false, look_length), 3000);
		eq(wrong_keys, 0, "keys of %u bytes", rows[i].bytes);
		eq(longest, rows[i].bytes);
		eq(shortest, rows[i].lengths ? 8 : rows[i].bytes);
		pl_dta_gen_free(g);
	}
}

/* ---- records that are no reports ---- */

/* Calls `look` with each datagram of a run, which is to be so long; its frames go from and to these
 * ports. */
static void each_record(enum pl_dta_stream stream, size_t bytes, unsigned int sport,
	unsigned int dport, void (*look)(const uint8_t *p, const struct pl_addr *from, uint32_t i))
{
	struct pl_dta_gen *g = make((struct pl_dta_gen_cfg){
		.form = PL_DTA_PATHLINE, .stream = stream, .count = 20000 });
	uint64_t n = 0, bad = 0;

	while (pl_dta_gen_next(g, UINT64_MAX, &batch) >= 0) {
		for (uint32_t i = 0; i < batch.n; i++) {
			struct pl_cursor c = pl_cursor(batch.pkts[i].data, batch.pkts[i].len);
			struct pl_layers layers = { .payload = c };

			if (pl_layers_walk(&layers, c, PL_LINK_ETHERNET, false) != PL_V_OK ||
				layers.flow.dport != dport || layers.flow.sport != sport ||
				pl_cursor_left(&layers.payload) != bytes)
				bad++;
			else
				look(layers.payload.pos, &layers.flow.src, (uint32_t)n++);
		}
	}
	eq(bad, 0, "all of them are as long as they should be");
	eq(n, 20000);
	pl_dta_gen_free(g);
}

static uint64_t wrong_records, sources[2], largest_hop;
static struct pl_addr source_before;

static void look_udp_report(const uint8_t *p, const struct pl_addr *from, uint32_t i)
{
	wrong_records += pl_be32(p) != i || pl_be32(p + 4) != i;
	sources[0] += !pl_addr_equal(from, &source_before);
	source_before = *from;
}

static bool within(uint32_t v, uint32_t most)
{
	return v >= 1 && v <= most;
}

static void look_flowcard(const uint8_t *p, const struct pl_addr *from, uint32_t i)
{
	(void)from;
	wrong_records += !within(pl_be32(p), 10000000) || !within(pl_be32(p + 4), 10000000) ||
			 !within(pl_be16(p + 8), 65535) || !within(pl_be16(p + 10), 65535) ||
			 !within(p[12], 2) || pl_be32(p + 13) != i;
	sources[1] += pl_be32(p) > 5000000;
}

static void look_int_path(const uint8_t *p, const struct pl_addr *from, uint32_t i)
{
	(void)from;
	(void)i;
	wrong_records += !within(pl_be32(p), 10000000) || !within(pl_be32(p + 4), 10000000) ||
			 !within(p[8], 2) || !within(pl_be16(p + 9), 65535) ||
			 !within(pl_be16(p + 11), 65535);
	for (unsigned int h = 0; h < 5; h++) {
		uint32_t hop = pl_be32(p + 13 + 4 * (size_t)h);

		wrong_records += !within(hop, 10000);
		largest_hop = hop > largest_hop ? hop : largest_hop;
	}
}

static void test_records(void)
{
	each_record(PL_DTA_STREAM_UDP_REPORT, 8, 40041, 1337, look_udp_report);
	eq(wrong_records, 0, "a key and a value that rise by one");
	ok(sources[0] > 19990, "from many addresses");
	each_record(PL_DTA_STREAM_UDP_FLOWCARD, 17, 40041, 1337, look_flowcard);
	eq(wrong_records, 0, "a flow and a value");
	ok(sources[1] > 9500 && sources[1] < 10500, "flows of any address");
	each_record(PL_DTA_STREAM_INT_PATHS, 33, 5000, 5002, look_int_path);
	eq(wrong_records, 0, "a flow and its path");
	ok(largest_hop > 9990, "hops of any number");
}

/* ---- Marple ---- */

static uint64_t marple[3], wrong_marple, packets_of_flowlets;
static unsigned int entry_bytes;

static void look_marple(const struct pl_dta_report *r, const struct pl_addr *from)
{
	const uint8_t *entry = r->data;
	uint8_t tuple[PL_DTA_GEN_TUPLE_BYTES];
	unsigned int at = entry_bytes < sizeof(tuple) ? 0 : (unsigned int)sizeof(tuple);
	uint64_t v;

	(void)from;
	if (r->op == PL_DTA_KEY_WRITE) {
		marple[0]++;
		wrong_marple += r->store != 5 || r->data_bytes != entry_bytes ||
				number_of(entry, entry_bytes) != marple[0];
		return;
	}
	wrong_marple += r->op != PL_DTA_APPEND || r->list > 1 || r->store != 6 ||
			r->data_bytes != entry_bytes;
	if (r->op != PL_DTA_APPEND || r->list > 1)
		return;
	marple[1 + r->list]++;
	v = number_of(entry + at, entry_bytes - at);
	if (r->list == 1) {
		wrong_marple += v < 1 || v > 1000;
		packets_of_flowlets += v;
	} else if (at > 0) {
		pl_dta_gen_tuple(tuple, v);
		wrong_marple += v >= 500 || memcmp(tuple, entry, at) != 0;
	} else {
		wrong_marple += v >= 500;
	}
}

static void test_marple(void)
{
	static const uint16_t bytes[] = { 4, 18 };

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		struct pl_dta_gen *g = make((struct pl_dta_gen_cfg){ .form = PL_DTA_PATHLINE,
			.stream = PL_DTA_STREAM_MARPLE,
			.keys = 500,
			.value_bytes = bytes[i],
			.store = 5,
			.count = 32000 });

		entry_bytes = bytes[i];
		memset(marple, 0, sizeof(marple));
		packets_of_flowlets = 0;
		eq(each_report(g, false, look_marple), 32000);
		eq(wrong_marple, 0, "entries of %u bytes", entry_bytes);
		ok(marple[0] > 1800 && marple[0] < 2200 && marple[1] > 5600 && marple[1] < 6400,
			"%" PRIu64 " values, %" PRIu64 " and %" PRIu64 " entries", marple[0],
			marple[1], marple[2]);
		ok(packets_of_flowlets > 7 * marple[2] && packets_of_flowlets < 9 * marple[2]);
		pl_dta_gen_free(g);
	}
}

static uint64_t digest(uint64_t seed, struct pl_dta_gen_counters *ret, uint64_t *ret_packets)
{
	struct pl_dta_gen *g = make((struct pl_dta_gen_cfg){ .seed = seed,
		.form = PL_DTA_PATHLINE,
		.stream = PL_DTA_STREAM_MIX,
		.count = 20000,
		.sequenced = true,
		.loss = 0.1,
		.duplicate = 0.05,
		.swap = 0.2,
		.zipf = 0.9 });
	uint64_t sum = 0;

	*ret_packets = 0;
	while (pl_dta_gen_next(g, UINT64_MAX, &batch) >= 0) {
		*ret_packets += batch.n;
		for (uint32_t i = 0; i < batch.n; i++) {
			for (uint32_t k = 0; k < batch.pkts[i].len; k++)
				sum = sum * 31 + batch.pkts[i].data[k];
		}
	}
	*ret = *pl_dta_gen_counters(g);
	pl_dta_gen_free(g);
	return sum;
}

static void test_damage(void)
{
	struct pl_dta_gen_counters c;
	uint64_t packets, first = digest(7, &c, &packets);

	eq(packets, c.datagrams - c.lost + c.duplicated);
	ok(c.lost > 1800 && c.lost < 2200 && c.duplicated > 850 && c.duplicated < 1150, "shares");
	ok(c.swapped > 3500 && c.swapped < 4400, "%" PRIu64 " swapped", c.swapped);
	ok(digest(7, &c, &packets) == first, "the same seed, the same bytes");
	ok(digest(8, &c, &packets) != first, "another, others");
}

static void test_refused(void)
{
	static const struct pl_dta_gen_cfg bad[] = {
		{ .form = PL_DTA_PLAIN, .sequenced = true },
		{ .form = PL_DTA_TRACKING, .packed = 2 },
		{ .form = PL_DTA_TRACKING, .stream = PL_DTA_STREAM_SKETCH },
		{ .form = PL_DTA_PATHLINE, .key_bytes = 7, .key_lengths = true },
		{ .form = PL_DTA_PATHLINE, .key_bytes = 2, .keys = 65537 },
		{ .form = PL_DTA_PATHLINE, .key_bytes = 255, .packed = 5 },
		{ .form = PL_DTA_TRACKING, .key_bytes = 5 },
		{ .stream = PL_DTA_STREAM_INT_PATHS, .form = PL_DTA_PATHLINE, .packed = 2 },
		{ .stream = PL_DTA_STREAM_UDP_REPORT, .form = PL_DTA_PATHLINE, .sequenced = true },
		{ .form = PL_DTA_PATHLINE, .loss = 0.7, .swap = 0.7 },
		{ .form = PL_DTA_PATHLINE, .udp = true, .reporters = 2 },
		{ .form = PL_DTA_PATHLINE, .packed = 32, .value_bytes = 900 },
		{ .form = PL_DTA_PATHLINE, .keys = UINT64_C(1) << 40 },
	};
	struct pl_diag diag;
	struct pl_dta_gen *g;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		diag.text[0] = '\0';
		ok(pl_dta_gen_new(&g, &bad[i], &diag) == -EINVAL && g == NULL, "%s", diag.text);
	}
}

int main(void)
{
	test_published();
	test_postcards();
	test_sketch();
	test_cells();
	test_zipf();
	test_keys();
	test_records();
	test_marple();
	test_damage();
	test_refused();
	return pl_test_done();
}
