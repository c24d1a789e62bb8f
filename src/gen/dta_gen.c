/* SPDX-License-Identifier: BSD-2-Clause */
/* Generates streams of DTA reports. */
#include "gen/dta_gen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "wire/layers.h"

#define START_NS        UINT64_C(1700000000000000000)
#define DATAGRAM_MAX    2048u
#define COLUMNS_AT_ONCE 8u
#define SCRATCH_BYTES   1016u
#define SPORT           40041u /* as the published generator, which also uses the next ones */
#define SPORT_INT       5000u
#define DPORT_INT       5002u
#define DPORT_UDP       1337u
#define FLOW_HOSTS      10000000u
#define FLOW_PORTS      65535u
#define FLOW_PROTOS     2u
#define INT_HOPS        5u
#define INT_NODES       10000u
#define FLOWS_MAX       (1u << 20)

/* A flow with postcards still to send. */
struct flow {
	uint64_t id;
	uint8_t hop; /* next hop */
};

struct reporter {
	uint32_t seq;
	uint32_t epoch, column;
};

struct pl_dta_gen {
	struct pl_dta_gen_cfg cfg;
	struct pl_dta_gen_counters count;
	struct pl_rng rng;
	struct pl_zipf zipf;
	uint64_t n;                           /* reports made */
	uint64_t turns[PL_DTA_STREAM_MAX];    /* of each stream */
	uint64_t timeouts;                    /* timeouts of Marple's flows */
	uint64_t due_ns, origin_ns, origin_n; /* report origin_n was due at origin_ns */
	struct reporter *reporters;
	struct flow *flows;
	uint64_t next_flow;
	uint8_t (*bytes)[DATAGRAM_MAX];
	uint8_t scratch[SCRATCH_BYTES];
	uint8_t key[PL_DTA_KEY_BYTES_MAX];
};

uint32_t pl_dta_gen_node(uint64_t flow, unsigned int hop, uint32_t nodes)
{
	return 1 + (uint32_t)((pl_hash_mix(flow, hop) >> 32) * nodes >> 32);
}

uint64_t pl_dta_gen_value(uint64_t key)
{
	return pl_hash_mix(key, 0x76616c) & UINT32_MAX;
}

uint8_t pl_dta_gen_key_bytes(const struct pl_dta_gen_cfg *cfg, uint64_t key)
{
	if (!cfg->key_lengths)
		return cfg->key_bytes;
	return (uint8_t)(8 + pl_hash_mix(key, 0x6c656e) % (cfg->key_bytes - 7u));
}

/* Bound of the values of a cell: a register of HyperLogLog, of one byte, ends at 61. */
static uint32_t cells_below(unsigned int cell_bytes)
{
	return cell_bytes == 1 ? 62 : 100;
}

uint64_t pl_dta_gen_cell(uint32_t epoch, uint32_t column, unsigned int row, unsigned int cell_bytes)
{
	return pl_hash_mix((uint64_t)epoch << 32 | column, 0x63656c6c + row) %
	       cells_below(cell_bytes);
}

uint32_t pl_dta_gen_columns(unsigned int rows, unsigned int cell_bytes)
{
	const uint32_t n = SCRATCH_BYTES / (rows * cell_bytes);

	return n > COLUMNS_AT_ONCE ? COLUMNS_AT_ONCE : n;
}

static uint8_t path_length(const struct pl_dta_gen *g, uint64_t flow)
{
	return g->cfg.lengths ? (uint8_t)(1 + flow % g->cfg.hops) : g->cfg.hops;
}

/* ---- making ---- */

static int refuse(struct pl_diag *diag, const char *what)
{
	pl_diag_set(diag, "%s", what);
	return -EINVAL;
}

static void fill_defaults(struct pl_dta_gen_cfg *c)
{
	c->reporters = c->reporters != 0 ? c->reporters : 1;
	c->packed = c->packed != 0 ? c->packed : 1;
	c->key_bytes = c->key_bytes != 0 ? c->key_bytes : 4;
	if (c->keys == 0)
		c->keys = c->key_bytes < 4 ? UINT64_C(1) << (8 * c->key_bytes) : 1000000000;
	c->value_bytes = c->value_bytes != 0 ? c->value_bytes : 4;
	c->lists = c->lists != 0 ? c->lists : 5;
	c->interleave = c->interleave != 0 ? c->interleave : 1;
	c->hops = c->hops != 0 ? c->hops : 5;
	c->nodes = c->nodes != 0 ? c->nodes : 1000;
	c->columns = c->columns != 0 ? c->columns : 1024;
	c->rows = c->rows != 0 ? c->rows : 4;
	c->cell_bytes = c->cell_bytes != 0 ? c->cell_bytes : 8;
	c->rate = c->rate != 0 ? c->rate : 1000;
	c->start_ns = c->start_ns != 0 ? c->start_ns : START_NS;
	if (c->copies == 0 && c->form != PL_DTA_PATHLINE)
		c->copies = 4;
	if (pl_addr_is_unspecified(&c->collector))
		c->collector = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 51 });
}

/* Returns true for the other streams of the published generator, which are not reports. */
static bool is_plain(const struct pl_dta_gen_cfg *c)
{
	return c->stream >= PL_DTA_STREAM_UDP_REPORT;
}

static int check(const struct pl_dta_gen_cfg *c, struct pl_diag *diag)
{
	if (is_plain(c) && (c->packed > 1 || c->sequenced || c->immediate || c->key_bytes != 4))
		return refuse(diag,
			"streams without DTA have one record per datagram, no numbers, no --immediate, and keys of 4 bytes");
	if (c->form != PL_DTA_PATHLINE &&
		(c->packed > 1 || c->store != 0 || c->key_bytes != 4 || c->tell_length ||
			c->stream == PL_DTA_STREAM_SKETCH))
		return refuse(diag,
			"the published forms have one report in a datagram, keys of 4 bytes, "
			"no stores, no path length and no sketches");
	if (c->form == PL_DTA_PLAIN && c->sequenced)
		return refuse(diag, "plain reports have no numbers");
	if (c->reporters > PL_DTA_GEN_REPORTERS_MAX || c->packed > PL_DTA_GEN_PACKED_MAX)
		return refuse(diag, "at most 4096 reporters, and 32 reports in a datagram");
	if (c->udp && c->reporters > 1)
		return refuse(diag, "a UDP socket is one reporter; several reporters need frames");
	if (c->key_bytes < 8 && c->keys > UINT64_C(1) << (8 * c->key_bytes))
		return refuse(diag, "keys of this length cannot have that many different values");
	if (c->key_lengths && c->key_bytes < 8)
		return refuse(diag, "--key-lengths needs --key-bytes of 8 or more");
	if (c->value_bytes > 1000 ||
		(size_t)c->packed * (c->value_bytes + c->key_bytes + 36u) > 1400)
		return refuse(diag, "reports do not fit in a datagram of 1400 bytes");
	if (c->hops > 31 || c->rows > 16 ||
		(c->cell_bytes != 1 && c->cell_bytes != 4 && c->cell_bytes != 8))
		return refuse(diag, "at most 31 hops and 16 rows, cells of 1, 4 or 8 bytes");
	if (c->interleave > FLOWS_MAX)
		return refuse(diag, "at most 2^20 flows at the same time");
	if (c->zipf < 0 || c->zipf > 10 || c->rate < 0 || c->rate > 1e9)
		return refuse(diag, "Zipf's exponent is at most 10, the rate at most 10^9");
	if (c->loss < 0 || c->duplicate < 0 || c->swap < 0 || c->loss + c->duplicate + c->swap > 1)
		return refuse(diag, "each share must be from 0 to 1, and so must their sum");
	return 0;
}

static void begin_flow(struct pl_dta_gen *g, struct flow *f)
{
	*f = (struct flow){ g->next_flow++ % g->cfg.keys, 1 };
}

int pl_dta_gen_new(struct pl_dta_gen **ret, const struct pl_dta_gen_cfg *cfg, struct pl_diag *diag)
{
	struct pl_dta_gen *g = calloc(1, sizeof(*g));
	int r;

	*ret = NULL;
	if (g == NULL)
		return -ENOMEM;
	g->cfg = *cfg;
	fill_defaults(&g->cfg);
	r = check(&g->cfg, diag);
	if (r == 0) {
		g->reporters = calloc(g->cfg.reporters, sizeof(*g->reporters));
		g->flows = calloc(g->cfg.interleave, sizeof(*g->flows));
		g->bytes = calloc(PL_BATCH_MAX, sizeof(*g->bytes));
		if (g->reporters == NULL || g->flows == NULL || g->bytes == NULL)
			r = -ENOMEM;
	}
	if (r < 0) {
		pl_dta_gen_free(g);
		return r;
	}
	pl_rng_seed(&g->rng, g->cfg.seed);
	if (g->cfg.zipf > 0)
		pl_zipf_init(&g->zipf, g->cfg.keys, g->cfg.zipf);
	for (uint32_t i = 0; i < g->cfg.interleave; i++)
		begin_flow(g, &g->flows[i]);
	g->due_ns = g->origin_ns = g->cfg.start_ns;
	*ret = g;
	return 0;
}

void pl_dta_gen_free(struct pl_dta_gen *g)
{
	if (g == NULL)
		return;
	free(g->reporters);
	free(g->flows);
	free(g->bytes);
	free(g);
}

/* ---- one report ---- */

static void put_number(uint8_t *to, size_t n, uint64_t v)
{
	memset(to, 0, n);
	for (size_t i = 0; i < n && i < 8; i++)
		to[n - 1 - i] = (uint8_t)(v >> (8 * i));
}

static uint64_t next_key(struct pl_dta_gen *g, uint64_t turn)
{
	return g->cfg.zipf > 0 ? pl_zipf_draw(&g->zipf, &g->rng) - 1 : turn % g->cfg.keys;
}

static void set_key(struct pl_dta_gen *g, struct pl_dta_report *r, uint64_t key)
{
	r->key_bytes = pl_dta_gen_key_bytes(&g->cfg, key);
	r->key = g->key;
	put_number(g->key, r->key_bytes, key);
}

static void set_value(struct pl_dta_gen *g, struct pl_dta_report *r, uint64_t v)
{
	r->data = g->scratch;
	r->data_bytes = g->cfg.value_bytes;
	put_number(g->scratch, g->cfg.value_bytes, v);
}

static void make_postcard(struct pl_dta_gen *g, struct pl_dta_report *r)
{
	struct flow *f = &g->flows[pl_rng_below(&g->rng, g->cfg.interleave)];
	uint8_t length = path_length(g, f->id);

	set_key(g, r, f->id);
	r->hop = f->hop;
	r->path_length = g->cfg.tell_length ? length : 0;
	r->value = pl_dta_gen_node(f->id, f->hop, g->cfg.nodes);
	if (f->hop++ == length)
		begin_flow(g, f);
}

static void make_columns(struct pl_dta_gen *g, struct pl_dta_report *r, struct reporter *from)
{
	const uint32_t cell = g->cfg.cell_bytes, width = g->cfg.rows * cell;
	uint32_t n = pl_dta_gen_columns(g->cfg.rows, cell);

	if (n > g->cfg.columns - from->column)
		n = g->cfg.columns - from->column;
	r->epoch = from->epoch;
	r->first_column = from->column;
	r->data = g->scratch;
	r->data_bytes = n * width;
	for (uint32_t at = 0; at < r->data_bytes; at += cell) {
		const uint64_t v = g->cfg.value_is_key
					   ? pl_dta_gen_cell(from->epoch, from->column + at / width,
						     at % width / cell, cell)
					   : pl_rng_below(&g->rng, cells_below(cell));

		put_number(g->scratch + at, cell, v);
	}
	from->column += n;
	if (from->column == g->cfg.columns) {
		from->column = 0;
		from->epoch++;
	}
}

void pl_dta_gen_tuple(uint8_t to[PL_DTA_GEN_TUPLE_BYTES], uint64_t flow)
{
	uint64_t hosts = pl_hash_mix(flow, 0x686f7374), ports = pl_hash_mix(flow, 0x706f7274);

	put_number(to, 4, 10u << 24 | (uint32_t)(hosts & 0xffffff));
	put_number(to + 4, 4, 10u << 24 | (uint32_t)(hosts >> 32 & 0xffffff));
	put_number(to + 8, 2, 1024 + (ports & UINT32_MAX) % (FLOW_PORTS - 1024));
	put_number(to + 10, 2, 1 + (ports >> 32) % 1023);
	to[12] = PL_IP_TCP;
}

/* Sets an entry about a flow: the 5-tuple if there is room, and a number, which identifies the flow
 * when there is no 5-tuple. */
static void set_entry(struct pl_dta_gen *g, struct pl_dta_report *r, uint64_t flow, uint64_t v)
{
	const size_t tuple =
		g->cfg.value_bytes < PL_DTA_GEN_TUPLE_BYTES ? 0 : PL_DTA_GEN_TUPLE_BYTES;

	r->op = PL_DTA_APPEND;
	r->data = g->scratch;
	r->data_bytes = g->cfg.value_bytes;
	if (tuple != 0)
		pl_dta_gen_tuple(g->scratch, flow);
	put_number(g->scratch + tuple, g->cfg.value_bytes - tuple, v);
}

static void make_marple(struct pl_dta_gen *g, struct pl_dta_report *r, uint64_t turn)
{
	const uint64_t flow = next_key(g, turn);
	const uint32_t what = (uint32_t)pl_rng_below(&g->rng, 16);
	uint64_t packets = 1;

	/* Lists are in the store after that of the values. */
	if (what > 0 && g->cfg.form == PL_DTA_PATHLINE)
		r->store++;
	if (what == 0) {
		r->op = PL_DTA_KEY_WRITE;
		r->copies = g->cfg.copies;
		set_key(g, r, flow);
		set_value(g, r, g->cfg.value_is_key ? pl_dta_gen_value(flow) : ++g->timeouts);
	} else if (what < 4) {
		r->list = 0;
		set_entry(g, r, flow, flow);
	} else {
		while (packets < 1000 && pl_rng_below(&g->rng, 8) != 0)
			packets++;
		r->list = 1;
		set_entry(g, r, flow, packets);
	}
}

static uint32_t from_one(struct pl_dta_gen *g, uint32_t most)
{
	return 1 + (uint32_t)pl_rng_below(&g->rng, most);
}

/* Writes a record that is not a report. */
static void put_record(struct pl_dta_gen *g, struct pl_build *b)
{
	const uint64_t turn = g->turns[g->cfg.stream]++;

	if (g->cfg.stream == PL_DTA_STREAM_UDP_REPORT) {
		pl_put_be32(b, (uint32_t)next_key(g, turn));
		pl_put_be32(b, (uint32_t)turn);
	} else {
		pl_put_be32(b, from_one(g, FLOW_HOSTS));
		pl_put_be32(b, from_one(g, FLOW_HOSTS));
		if (g->cfg.stream == PL_DTA_STREAM_INT_PATHS)
			pl_put_u8(b, (uint8_t)from_one(g, FLOW_PROTOS));
		pl_put_be16(b, (uint16_t)from_one(g, FLOW_PORTS));
		pl_put_be16(b, (uint16_t)from_one(g, FLOW_PORTS));
		if (g->cfg.stream == PL_DTA_STREAM_UDP_FLOWCARD) {
			pl_put_u8(b, (uint8_t)from_one(g, FLOW_PROTOS));
			pl_put_be32(b, (uint32_t)turn);
		}
	}
	for (unsigned int i = 0; g->cfg.stream == PL_DTA_STREAM_INT_PATHS && i < INT_HOPS; i++)
		pl_put_be32(b, from_one(g, INT_NODES));
	g->n++;
	g->count.reports++;
}

static enum pl_dta_stream stream_of(const struct pl_dta_gen *g)
{
	unsigned int kinds = g->cfg.form == PL_DTA_PATHLINE ? 5 : 4;

	return g->cfg.stream == PL_DTA_STREAM_MIX ? (enum pl_dta_stream)(g->n % kinds)
						  : g->cfg.stream;
}

static void make_report(struct pl_dta_gen *g, struct pl_dta_report *r, struct reporter *from)
{
	enum pl_dta_stream stream = stream_of(g);
	uint64_t turn = g->turns[stream]++, key;

	*r = (struct pl_dta_report){
		.form = g->cfg.form,
		.immediate = g->cfg.immediate,
		.sequenced = g->cfg.sequenced,
		.store = g->cfg.store,
	};
	if (g->cfg.stream == PL_DTA_STREAM_MIX && g->cfg.form == PL_DTA_PATHLINE)
		r->store = (uint16_t)(g->cfg.store + stream);
	/* The published generator numbers all reports of its form, sequenced or not. */
	if (g->cfg.form == PL_DTA_TRACKING)
		r->seq = (uint8_t)from->seq++;
	else if (g->cfg.sequenced)
		r->seq = from->seq++;
	switch (stream) {
	case PL_DTA_STREAM_KEY_WRITE:
		key = next_key(g, turn);
		r->op = PL_DTA_KEY_WRITE;
		r->copies = g->cfg.copies;
		set_key(g, r, key);
		set_value(g, r, g->cfg.value_is_key ? pl_dta_gen_value(key) : turn);
		break;
	case PL_DTA_STREAM_APPEND:
		r->op = PL_DTA_APPEND;
		r->list = (uint32_t)(turn % g->cfg.lists);
		set_value(g, r, turn + 1);
		break;
	case PL_DTA_STREAM_INCREMENT:
		r->op = PL_DTA_INCREMENT;
		r->copies = g->cfg.copies;
		set_key(g, r, next_key(g, turn));
		r->increment = g->cfg.value_is_key ? 1 : turn;
		break;
	case PL_DTA_STREAM_MARPLE:
		make_marple(g, r, turn);
		break;
	case PL_DTA_STREAM_POSTCARDS:
		r->op = PL_DTA_POSTCARD;
		make_postcard(g, r);
		break;
	default:
		r->op = PL_DTA_SKETCH;
		make_columns(g, r, from);
		break;
	}
	g->n++;
	g->count.reports++;
}

/* ---- datagrams ---- */

/* Source of a datagram: udp-report has random sources, for receivers that spread datagrams by
 * source. */
static struct pl_addr source(struct pl_dta_gen *g, uint32_t reporter)
{
	const bool any = g->cfg.stream == PL_DTA_STREAM_UDP_REPORT;
	const uint32_t v = any ? from_one(g, 2000000000) : 10u << 24 | (200 + reporter);
	uint8_t b[4];

	put_number(b, sizeof(b), v);
	if (pl_addr_is_v4(&g->cfg.collector))
		return pl_addr_v4(b);
	return (struct pl_addr){ { 0xfd, [12] = any ? b[0] : 0, b[1], b[2], b[3] } };
}

static void put_datagram(struct pl_dta_gen *g, struct pl_build *b, uint32_t reporter)
{
	const bool paths = g->cfg.stream == PL_DTA_STREAM_INT_PATHS, plain = is_plain(&g->cfg);
	const struct pl_flow flow = { .src = source(g, reporter),
		.dst = g->cfg.collector,
		.sport = paths ? SPORT_INT : SPORT,
		.dport = paths   ? DPORT_INT
			 : plain ? DPORT_UDP
				 : PL_PORT_DTA,
		.proto = PL_IP_UDP,
		.have = PL_FLOW_PORTS };
	struct pl_dta_report r;
	size_t ip = 0;

	if (!g->cfg.udp) {
		pl_put_eth(b, pl_addr_is_v4(&flow.dst) ? PL_ETH_IPV4 : PL_ETH_IPV6, 0);
		ip = pl_put_ip(b, &flow, 64, 0);
	}
	if (plain)
		put_record(g, b);
	for (uint32_t i = 0; !plain && i < g->cfg.packed; i++) {
		make_report(g, &r, &g->reporters[reporter]);
		if (pl_dta_put(b, &r) < 0)
			b->full = true;
	}
	if (!g->cfg.udp)
		pl_end_ip(b, ip);
	g->count.datagrams++;
}

static void advance(struct pl_dta_gen *g)
{
	g->due_ns = g->origin_ns + (uint64_t)((double)(g->n - g->origin_n) * 1e9 / g->cfg.rate);
}

static bool at_end(const struct pl_dta_gen *g)
{
	return (g->cfg.count != 0 && g->n >= g->cfg.count) ||
	       (g->cfg.duration_ns != 0 && g->due_ns - g->cfg.start_ns >= g->cfg.duration_ns);
}

/* Loses, duplicates or swaps packet i, the last of the batch. */
static void damage(struct pl_dta_gen *g, struct pl_batch *batch)
{
	double u = pl_rng_unit(&g->rng);
	uint32_t last = batch->n - 1;

	if (u < g->cfg.loss) {
		batch->n--;
		g->count.lost++;
	} else if (u < g->cfg.loss + g->cfg.duplicate) {
		batch->pkts[batch->n++] = batch->pkts[last];
		g->count.duplicated++;
	} else if (u < g->cfg.loss + g->cfg.duplicate + g->cfg.swap && last > 0) {
		struct pl_packet before = batch->pkts[last - 1];

		batch->pkts[last - 1] = batch->pkts[last];
		batch->pkts[last] = before;
		batch->pkts[last].ts_ns = batch->pkts[last - 1].ts_ns;
		g->count.swapped++;
	}
}

int pl_dta_gen_next(struct pl_dta_gen *g, uint64_t until_ns, struct pl_batch *ret)
{
	unsigned int rounds = 0;

	ret->n = 0;
	if (at_end(g))
		return -ENODATA;
	/* Room for a duplicate; and an end when all are lost. */
	for (unsigned int slot = 0; slot < PL_BATCH_MAX / 2 && ret->n < PL_BATCH_MAX - 1 &&
				    rounds < 65536 && !at_end(g) && g->due_ns < until_ns;
		rounds++) {
		struct pl_build b = pl_build(g->bytes[slot], DATAGRAM_MAX);
		uint32_t n = ret->n;

		put_datagram(g, &b, (uint32_t)(g->count.datagrams % g->cfg.reporters));
		if (b.full)
			return -EINVAL;
		ret->pkts[ret->n++] = (struct pl_packet){ .data = g->bytes[slot],
			.len = (uint32_t)b.len,
			.wire_len = (uint32_t)b.len,
			.ts_ns = g->due_ns,
			.link = g->cfg.udp ? PL_LINK_UDP : PL_LINK_ETHERNET };
		advance(g);
		damage(g, ret);
		if (ret->n > n)
			slot++;
	}
	return (int)ret->n;
}

uint64_t pl_dta_gen_due_ns(const struct pl_dta_gen *g)
{
	return at_end(g) ? UINT64_MAX : g->due_ns;
}

void pl_dta_gen_skip_to(struct pl_dta_gen *g, uint64_t now_ns)
{
	g->origin_ns = g->due_ns = now_ns;
	g->origin_n = g->n;
}

const struct pl_dta_gen_counters *pl_dta_gen_counters(const struct pl_dta_gen *g)
{
	return &g->count;
}

const struct pl_dta_gen_cfg *pl_dta_gen_cfg(const struct pl_dta_gen *g)
{
	return &g->cfg;
}
