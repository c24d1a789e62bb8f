/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the files of decode/; no other file includes this. */
#pragma once

#include "base/hash.h"
#include "base/shares.h"
#include "decode/decode.h"
#include "decode/exporters.h"
#include "decode/sequence.h"
#include "wire/layers.h"
#include "wire/report.h"

/* Slots of an open-addressing table for `max` entries: a power of two, half of it free. */
static inline uint32_t slots_for(uint32_t max)
{
	uint32_t n = 16;

	while (n < 2 * (uint64_t)max && n < UINT32_C(1) << 31)
		n *= 2;
	return n;
}

/* ---- paths.c: interned paths ---- */

/* A slot; two fill a line. */
struct path_slot {
	uint64_t path_id; /* 0 = free */
	uint64_t reports, last_ts_ns;
	uint32_t info;  /* position in shapes and order */
	uint32_t share; /* source that has it */
};

struct path_shape {
	uint8_t hop_count;
	struct pl_path_step steps[PL_PATH_STEPS_MAX];
};

#define PATHS_RECENT_BITS 6

/* Interned paths. When the table is full, a source with less than an even share of it takes the
 * place of a path of another that has more (base/shares.h); a source with more takes that of its
 * own or of an idle path, a few times in a batch, so that sources with more paths than there is
 * room for cost the others no time. */
struct paths {
	struct path_slot *slots;
	struct path_shape *shapes;
	uint64_t seed;
	uint32_t *order; /* slot of the i-th path */
	uint32_t n, max, mask;
	struct pl_shares shares;
	uint32_t hand;      /* position of the next search for a path to displace */
	uint32_t exchanges; /* exchanges left in this batch to sources with more than their share */
	uint32_t displaced; /* paths displaced in this batch */
	/* Paths seen last, by bits of the id. These can be aimed at; that costs a lookup in the
	 * slots. None is ever NULL. */
	struct path_slot *recent[1 << PATHS_RECENT_BITS];
};

int paths_init(struct paths *p, uint32_t max);
void paths_done(struct paths *p);
uint64_t paths_memory(uint32_t max);
/* Finds the slot of an id; NULL when there is none. */
const struct path_slot *paths_find(const struct paths *p, uint64_t path_id);
/* Counts the paths first … n_paths-1 of the batch. Returns the number of those without room;
 * p->displaced counts the evicted ones. */
uint32_t paths_intern(struct paths *p, const struct pl_record_batch *batch, uint32_t first);

/* ---- decode.c ---- */

struct hop_plan;
struct header_shape;
#define OWN_PLANS 8
#define SHAPES    16

/* Decodes the whole stack into hops, source first, without the values that derive() fills. True
 * when some value is missing: then the result is void, and the plain decoder does it. */
typedef bool hops_decode_fn(struct pl_hop *hops, const struct hop_plan *plan, const uint8_t *stack,
	unsigned int n, const struct pl_path *path);

/* Writes the record of a packet of that shape, without the header's marks and the hops. False, with
 * the record in any state, when the packet has another shape. */
typedef bool shape_take_fn(const struct header_shape *s, const uint8_t *data, struct pl_path *path);

struct pl_decode {
	struct pl_decode_options opt;
	struct pl_profile *profiles; /* profiles; [0] is the default */
	struct pl_int_cache cache;
	struct hop_plan *plans; /* plans of the layouts in cache, by slot; valid if keys agree */
	uint64_t plan_keys[PL_INT_CACHE_SLOTS];
	struct hop_plan *own_plans;  /* OWN_PLANS plans of metadata in report headers, by bitmap */
	hops_decode_fn *decode_hops; /* best version for this processor */
	shape_take_fn *take_shape;   /* best version for this processor */
	struct header_shape *shapes; /* SHAPES of them, by the length of the packet: see shape.h */
	struct pl_seq_spaces exporters;
	struct paths paths;
	uint64_t next_report_id;
	uint32_t max_latency_ns;
	/* one bit for each value of the lower six bits of a port that may announce a tunnel */
	uint64_t tunnel_bits;
	uint64_t report_ports[65536 / 64];
	struct pl_outcome outcomes[PL_BATCH_MAX];
	struct pl_decode_counters counters;
	uint32_t interned_from; /* first path of the batch not yet interned */
	/* Sums of the batch being decoded, added to the counters at its end. */
	struct {
		uint64_t bytes, reports, paths, hops, verdicts[PL_V_MAX], notes[PL_N_MAX];
		uint64_t exporters_full, unproven, lost, reordered, duplicates, restarts;
	} sum;
};

/* The packet being decoded, and the report in it. */
struct job {
	struct pl_decode *d;
	const struct pl_packet *pkt;
	uint32_t index; /* number in the batch */
	const struct pl_profile *profile;
	struct pl_record_batch *out;
	uint64_t notes; /* notes of the current report */
	uint16_t reports;
	unsigned int links; /* from this hop on, hops side by side need not be neighbours */
};

static inline bool is_report_port(const struct pl_decode *d, uint16_t port)
{
	return d->report_ports[port / 64] >> (port % 64) & 1;
}

/* Profile for an exporter: the longest matching prefix. */
const struct pl_profile *profile_of(const struct pl_decode *d, const struct pl_addr *addr);

/* Sets the members of a profile that are pl_decode_new's. */
void profile_settle(struct pl_profile *p);

/* Interns the batch's paths that are not interned yet. */
void settle_paths(struct pl_decode *d, const struct pl_record_batch *out);

/* Interns and flushes the output batch. */
void make_room(struct job *j) __attribute__((cold));

/* Next path record, not cleared, with room for 255 hops behind it. */
static inline struct pl_path *begin_path(struct job *j)
{
	struct pl_record_batch *out = j->out;

	if (__builtin_expect(out->n_paths == out->cap_paths ||
				     out->cap_hops - out->n_hops <= PL_INT_HOPS_MAX,
		    0))
		make_room(j);
	return &out->paths[out->n_paths];
}

/* Next path record, cleared, with the packet's values. */
struct pl_path *begin_report(struct job *j);

/* Completes the record: `n` hops were written at hops_of(j). */
static inline void commit_path(struct job *j, struct pl_path *path, unsigned int n)
{
	struct pl_record_batch *out = j->out;

	path->hop_count = (uint8_t)n;
	out->first_hop[out->n_paths] = out->n_hops;
	out->pkt[out->n_paths] = j->index;
	out->n_paths++;
	out->n_hops += n;
	j->d->sum.paths++;
	j->d->sum.hops += n;
}

static inline struct pl_hop *hops_of(struct job *j)
{
	return &j->out->hops[j->out->n_hops];
}

/* Adds j->notes to the counters and to the packet's outcome, and clears them. */
void count_notes(struct job *j);

void set_flow(struct pl_path *path, const struct pl_flow *flow);

/* ---- find.c: telemetry in a packet ---- */

/* True when a UDP payload to this port begins with a tunnel's header. INT is not guessed there: a
 * Geneve header with a word or 16 of options begins like a shim. */
static inline bool is_tunnel_port(const struct pl_decode *d, uint16_t dport)
{
	return __builtin_expect(d->tunnel_bits >> (dport % 64) & 1, 0) != 0 &&
	       pl_is_tunnel_port(d->opt.vxlan_ports, dport);
}

struct found {
	struct pl_flow flow; /* the original flow, restored */
	struct pl_int in;    /* valid with have_int */
	bool have_int;
	bool have_flow;
	bool announced; /* by the profile; false: found by validating bytes */
	bool added; /* the source added the UDP header before INT: the original one follows INT */
	struct pl_layers ioam; /* valid with have_ioam: the level whose options hold IOAM */
	bool have_ioam;
	bool unread;    /* some level could not be read: it may hold INT */
	bool more_ioam; /* another level holds IOAM, too */
};

/*
 * Looks through a packet (all its levels) for INT and IOAM. `inside` says that it is the inner
 * packet of a report whose F bit is `tracked`: then INT is also found by validating the bytes.
 * `walked` may hold the first level, already walked. PL_V_OK also when nothing was found.
 */
enum pl_verdict find_telemetry(struct job *j, struct found *ret, struct pl_cursor bytes,
	enum pl_link link, const struct pl_layers *walked, bool inside, bool tracked);

/* ---- hop_plan.c, hops.c, hops_avx2.c: values into records ---- */

#define PLAN_PORTS2_NONE  (-1)
#define PLAN_PORTS2_OTHER (-2)

/* Plan by which a block of one layout becomes a record, made once per layout. */
struct hop_plan {
	/* Record bytes 0-31 and 32-63 from the three 16-byte parts of a 48-byte window; 0x80 =
	 * zero. */
	uint8_t shuffle[2][3][32] __attribute__((aligned(64)));
	/* Alternative for the block's first 64 bytes, for both halves of the record: source of each
	 * byte, and the bytes taken from there. */
	uint8_t permute[2][64];
	uint64_t permuted[2];
	/* Bytes that are the same in every record: present, time_bits, version. */
	uint8_t fixed[128] __attribute__((aligned(64)));
	/* Values that the layout gives to the path of a common report. */
	struct pl_path path;
	struct pl_int_layout layout;
	unsigned int block_bytes;
	uint32_t hops_per_word; /* 2^16 / words of a block, rounded up: right for up to 255 words */
	bool usual;             /* reports with this layout may take the fast path */
	/* bytes from the window's start to the block's start; the window ends with the block or,
	 * for blocks above 48 bytes, whose values are in the first 48, within it */
	unsigned int window_back;
	uint64_t block_mask;  /* mask of the block's bytes, of 64 */
	uint32_t known_words; /* words of the window with values; all ones in one: missing */
	uint32_t present;     /* bits of a block without missing values */
	int ports2_at;        /* 32+32-bit level-2 ports in the block, or PLAN_PORTS2_* */
	uint8_t time_bits;
	bool usable;
};

void plan_make(struct hop_plan *plan, const struct pl_int_layout *layout);

/* Plan of a layout in d's cache. */
static inline const struct hop_plan *plan_of(
	struct pl_decode *d, const struct pl_int_layout *layout)
{
	size_t slot = (size_t)(layout - d->cache.layout);
	struct hop_plan *plan = &d->plans[slot];

	if (__builtin_expect(d->plan_keys[slot] != d->cache.key[slot], 0)) {
		plan_make(plan, layout);
		d->plan_keys[slot] = d->cache.key[slot];
	}
	return plan;
}

/* Plan for the reporting node's own metadata in a v2.0 report header. Their words are those of an
 * INT v2.x block without a node id. */
const struct hop_plan *own_plan_of(struct pl_decode *d, uint16_t bitmap);

/* Decodes one block, in every case. Leaves index, ts_ns, report_id. */
void hop_decode_plain(struct pl_hop *h, const uint8_t *block, const struct pl_int_layout *l);
/* Decodes bit 6: level-2 ports, or in v0.5 the queue's congestion status. */
void hop_decode_bit6(struct pl_hop *h, const uint8_t *block, const struct pl_int_layout *l);
/* Best of the functions below for this processor. hops_decode_none leaves all to the plain
 * decoder. */
hops_decode_fn *hops_decode_best(void);
hops_decode_fn hops_decode_none, hops_decode_avx2, hops_decode_avx512;
/* Best of the functions for headers: shape.c, shape_avx512.c. */
shape_take_fn *shape_take_best(void);
shape_take_fn shape_take_plain, shape_take_avx512;

bool hops_from_stack_plain(struct job *j, const struct pl_path *path, struct pl_hop *hops,
	const struct pl_int *in, const struct hop_plan *plan);

/* Decodes the stack into hops, source first; true when all of them have the same values. */
static inline bool hops_from_stack(struct job *j, const struct pl_path *path, struct pl_hop *hops,
	const struct pl_int *in, const struct hop_plan *plan)
{
	/* The window may begin before the first block: headers are there, except in a malformed
	 * packet. */
	if (plan->usable && (size_t)(in->stack - j->pkt->data) >= plan->window_back &&
		!j->d->decode_hops(hops, plan, in->stack, in->hops, path))
		return true;
	return hops_from_stack_plain(j, path, hops, in, plan);
}

/* Makes a hop of the reporting node's own metadata. */
void hop_from_report(struct pl_hop *hop, const struct pl_report *r);
/* Converts a hop of a node that counts in microseconds, by the exporter's profile. */
void hop_to_ns(struct job *j, struct pl_hop *hop);
/* Merges a hop into the one that the same node already has; values of the header win. */
void hop_merge(struct pl_hop *into, const struct pl_hop *from);
/* Fills values that follow from others: latencies, path id, the hops' place in the path. */
void derive(struct job *j, struct pl_path *path, struct pl_hop *hops, unsigned int n);
/* Fills them for hops that all have the values `present`, with times in ns and no partial stack;
 * path->present has the bit of the path id already. */
void derive_uniform(
	struct job *j, struct pl_path *path, struct pl_hop *hops, unsigned int n, uint32_t present);

/* ---- ioam.c ---- */

/* True when the level's options hold IOAM, or bytes that are no option. */
bool holds_ioam(const struct pl_layers *level);

/* Decodes IOAM of one level's options into path (mode, flow_id, flow_seq) and hops (source first);
 * *ret_n is the number of hops. *ret_found: the options had IOAM. */
enum pl_verdict decode_ioam(struct job *j, struct pl_path *path, struct pl_hop *hops,
	unsigned int *ret_n, const struct pl_layers *level, bool *ret_found);
/* Decodes the body of one trace option, whose packet is not known. */
enum pl_verdict decode_ioam_trace(struct job *j, struct pl_path *path, struct pl_hop *hops,
	unsigned int *ret_n, struct pl_cursor body);
