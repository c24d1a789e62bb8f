/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generated streams of DTA reports: those of the published generator (keys, increments, entries of
 * lists, each one greater than the one before; records for collectors without DTA; a trace) and
 * more: postcards of interleaved flows, columns of sketches, keys that follow Zipf's law, reporters
 * that lose, duplicate and swap their datagrams. No sockets and no clock, as gen/gen.h; the same
 * configuration with the same seed gives the same bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "wire/dta.h"
#include "wire/packet.h"

enum pl_dta_stream {
	PL_DTA_STREAM_KEY_WRITE,
	PL_DTA_STREAM_APPEND,
	PL_DTA_STREAM_INCREMENT,
	PL_DTA_STREAM_POSTCARDS,
	PL_DTA_STREAM_SKETCH,
	/* all streams in turn, the last only with PL_DTA_PATHLINE, into stores from `store` on */
	PL_DTA_STREAM_MIX,
	/* Reports of Marple's queries, with chosen shares, because the published trace is not
	 * available: of 16 reports 12 are sizes of flowlets (list 1), 3 flows that lost packets
	 * (list 0), 1 the number of a flow's timeouts so far (value of a key; lists are in the next
	 * store). Entries of 13 bytes and more begin with the 5-tuple. */
	PL_DTA_STREAM_MARPLE,
	/* Streams of the published generator for collectors without DTA, a record in each datagram,
	 * in network order: udp-report key 32, data 32; from any address to port 1337 udp-flowcard
	 * source 32, destination 32, ports 16 and 16, protocol 8, data 32; to port 1337 int-paths
	 * source 32, destination 32, protocol 8, ports 16 and 16, five hops of 32; to port 5002 */
	PL_DTA_STREAM_UDP_REPORT,
	PL_DTA_STREAM_UDP_FLOWCARD,
	PL_DTA_STREAM_INT_PATHS,
	PL_DTA_STREAM_MAX,
};

#define PL_DTA_GEN_REPORTERS_MAX 4096u
#define PL_DTA_GEN_PACKED_MAX    32u

struct pl_dta_gen_cfg {
	uint64_t seed;
	enum pl_dta_stream stream;
	enum pl_dta_form form;
	bool sequenced, immediate;
	uint16_t store;
	/* 0: 4 in published forms, as their generator; else as many as the store has */
	uint8_t copies;
	/* reporters with addresses 10.0.0.200 and up, in turn, each with its own numbers. 0: 1 */
	uint32_t reporters;
	uint32_t packed; /* PATHLINE: reports in a datagram; 0: 1 */
	/* keys: numbers from 0, in network order; each one greater than the one before, or by
	 * Zipf's law */
	uint64_t keys;     /* number of keys; 0: 10^9, or as many as there are */
	uint8_t key_bytes; /* any length; zeros before the number. 0: 4 */
	bool key_lengths;  /* lengths from 8 to key_bytes bytes, by key */
	double zipf;       /* exponent; 0: keys in turn */
	/* the value is computed from the key, so that any answer can be checked; else a count */
	bool value_is_key;
	/* of values and entries: a number in network order, zeros before it; 0: 4 */
	uint16_t value_bytes;
	uint32_t lists; /* 0: 5 */
	/* postcards: flow f has path length 1 + f mod hops when `lengths`, else hops */
	uint32_t interleave; /* flows under way at the same time; 0: 1 */
	uint8_t hops;        /* 0: 5 */
	bool lengths, tell_length;
	uint32_t nodes; /* 0: 1000 */
	/* sketches: each reporter sends all columns, then the next epoch */
	uint32_t columns;             /* 0: 1024 */
	uint8_t rows, cell_bytes;     /* 0: 4 and 8; cells of 1 byte are registers of HyperLogLog */
	double loss, duplicate, swap; /* ratios of datagrams */
	double rate;                  /* reports per second; 0: 1000 */
	uint64_t start_ns, count, duration_ns; /* as in gen/gen.h; count: reports */
	struct pl_addr collector;              /* destination of frames; unspecified: 10.0.0.51 */
	bool udp;                              /* UDP payloads instead of frames */
};

/* Node of a hop (1 to hops) of a flow; value of a key: the answers that a query must give. */
uint32_t pl_dta_gen_node(uint64_t flow, unsigned int hop, uint32_t nodes);
uint64_t pl_dta_gen_value(uint64_t key);
/* Length of a key; 5-tuple of a flow of Marple's: source, destination, ports, protocol. */
#define PL_DTA_GEN_TUPLE_BYTES 13u
uint8_t pl_dta_gen_key_bytes(const struct pl_dta_gen_cfg *cfg, uint64_t key);
void pl_dta_gen_tuple(uint8_t to[PL_DTA_GEN_TUPLE_BYTES], uint64_t flow);
/* Cell of a sketch with `value_is_key`, the same from every reporter; number of columns in a
 * report. */
uint64_t pl_dta_gen_cell(
	uint32_t epoch, uint32_t column, unsigned int row, unsigned int cell_bytes);
uint32_t pl_dta_gen_columns(unsigned int rows, unsigned int cell_bytes);

struct pl_dta_gen;

/* Returns -EINVAL with diag for options that exclude each other, -ENOMEM. */
int pl_dta_gen_new(struct pl_dta_gen **ret, const struct pl_dta_gen_cfg *cfg, struct pl_diag *diag);
void pl_dta_gen_free(struct pl_dta_gen *g);

/* As pl_gen_next, pl_gen_due_ns and pl_gen_skip_to. */
int pl_dta_gen_next(struct pl_dta_gen *g, uint64_t until_ns, struct pl_batch *ret);
uint64_t pl_dta_gen_due_ns(const struct pl_dta_gen *g);
void pl_dta_gen_skip_to(struct pl_dta_gen *g, uint64_t now_ns);

struct pl_dta_gen_counters {
	uint64_t reports, datagrams;        /* generated, including lost ones */
	uint64_t lost, duplicated, swapped; /* datagrams */
};
const struct pl_dta_gen_counters *pl_dta_gen_counters(const struct pl_dta_gen *g);
/* The configuration with every default filled in. */
const struct pl_dta_gen_cfg *pl_dta_gen_cfg(const struct pl_dta_gen *g);

/* ---- Zipf's law ---- */

struct pl_zipf {
	double n, s, below, above, sure;
};

/* Ranks 1 to n, rank k with a probability proportional to k^-s; s > 0. */
void pl_zipf_init(struct pl_zipf *z, uint64_t n, double s);
struct pl_rng;
uint64_t pl_zipf_draw(const struct pl_zipf *z, struct pl_rng *rng);
