/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes hop records of INT values, with the values that follow from them. A value of all ones over
 * its width is "not available" (INT v1.0 4.7, v2.1 5.8): it is absent in the record, never a
 * number. */
#include "decode/internal.h"
#include "record/path_id.h"

static const uint8_t absent[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

/* Address of a value; values the bitmap lacks read as all ones, so that one path serves both. */
static inline const uint8_t *at(
	const uint8_t *block, const struct pl_int_layout *l, enum pl_int_field f)
{
	uint8_t off = l->off[f];

	return off == PL_INT_NO_OFFSET ? absent : block + off;
}

static inline uint32_t flag(bool present, uint32_t mask)
{
	return present ? mask : 0;
}

/* The value, or 0 where it is missing: absent fields are zero in records. */
static inline uint32_t or_zero(uint32_t v)
{
	return v == UINT32_MAX ? 0 : v;
}

static inline void decode_hop(
	struct pl_hop *h, const uint8_t *block, const struct pl_int_layout *l, const bool ts64)
{
	uint32_t node = pl_be32(at(block, l, PL_INT_F_NODE));
	uint32_t ports = pl_be32(at(block, l, PL_INT_F_PORTS));
	uint32_t latency = pl_be32(at(block, l, PL_INT_F_LATENCY));
	uint32_t queue = pl_be32(at(block, l, PL_INT_F_QUEUE));
	uint32_t tx = pl_be32(at(block, l, PL_INT_F_TX_UTIL));
	uint32_t buffer = pl_be32(at(block, l, PL_INT_F_BUFFER));
	const uint8_t *in_at = at(block, l, PL_INT_F_INGRESS_TS);
	const uint8_t *eg_at = at(block, l, PL_INT_F_EGRESS_TS);
	uint64_t in = ts64 ? pl_be64(in_at) : pl_be32(in_at);
	uint64_t eg = ts64 ? pl_be64(eg_at) : pl_be32(eg_at);
	const uint64_t ts_missing = ts64 ? UINT64_MAX : UINT32_MAX;
	bool has_in = in != ts_missing, has_eg = eg != ts_missing;
	bool has_ports = ports != UINT32_MAX, has_queue = queue != UINT32_MAX;
	bool has_buffer = buffer != UINT32_MAX;
	unsigned int queue_shift = l->queue_16 ? 16 : 24;

	h->ingress_ts_ns = has_in ? in : 0;
	h->egress_ts_ns = has_eg ? eg : 0;
	h->node = or_zero(node);
	h->ingress_port = has_ports ? ports >> 16 : 0;
	h->egress_port = has_ports ? ports & 0xffff : 0;
	h->hop_latency_ns = or_zero(latency);
	h->queue_depth = has_queue ? queue & ((1u << queue_shift) - 1) : 0;
	h->tx_util = or_zero(tx);
	h->buffer_depth = has_buffer ? buffer & 0xffffff : 0;
	h->queue = has_queue ? (uint16_t)(queue >> queue_shift) : 0;
	h->buffer = has_buffer ? (uint8_t)(buffer >> 24) : 0;
	h->index = 0;
	h->present = flag(has_in, PL_HOP_HAS_ingress_ts_ns) |
		     flag(has_eg, PL_HOP_HAS_egress_ts_ns) |
		     flag(node != UINT32_MAX, PL_HOP_HAS_node) |
		     flag(has_ports, PL_HOP_HAS_ingress_port | PL_HOP_HAS_egress_port) |
		     flag(latency != UINT32_MAX, PL_HOP_HAS_hop_latency_ns) |
		     flag(has_queue, PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth) |
		     flag(tx != UINT32_MAX, PL_HOP_HAS_tx_util) |
		     flag(has_buffer, PL_HOP_HAS_buffer | PL_HOP_HAS_buffer_depth) |
		     flag(has_in || has_eg, PL_HOP_HAS_time_bits);
	h->link_latency_ns = 0;
	memset((uint8_t *)h + 64, 0, 64);
	h->time_bits = has_in || has_eg ? (ts64 ? 64 : 32) : 0;
	h->record_version = PL_RECORD_VERSION;
}

/* Bit 6: level-2 ports, or in v0.5 the queue's congestion status. */
void hop_decode_bit6(struct pl_hop *h, const uint8_t *block, const struct pl_int_layout *l)
{
	const uint8_t *p = block + l->off[PL_INT_F_PORTS2];
	uint32_t in, eg;

	if (!l->ports2_16) {
		in = pl_be32(p);
		eg = pl_be32(p + 4);
		if ((in & eg) == UINT32_MAX)
			return;
	} else {
		uint32_t w = pl_be32(p);

		if (w == UINT32_MAX)
			return;
		if (l->version == PL_INT_V05) {
			h->congestion_queue = (uint16_t)(w >> (l->queue_16 ? 16 : 24));
			h->congestion = w & (l->queue_16 ? 0xffff : 0xffffff);
			h->present |= PL_HOP_HAS_congestion | PL_HOP_HAS_congestion_queue;
			return;
		}
		in = w >> 16;
		eg = w & 0xffff;
	}
	h->ingress_port2 = in;
	h->egress_port2 = eg;
	h->present |= PL_HOP_HAS_ingress_port2 | PL_HOP_HAS_egress_port2;
}

void hop_decode_plain(struct pl_hop *h, const uint8_t *block, const struct pl_int_layout *l)
{
	if (l->ts64)
		decode_hop(h, block, l, true);
	else
		decode_hop(h, block, l, false);
	if (l->off[PL_INT_F_PORTS2] != PL_INT_NO_OFFSET)
		hop_decode_bit6(h, block, l);
}

/* Converts a v0.4 block, with 31-bit values and a bottom-of-stack bit, into the form of v0.5. */
__attribute__((cold, noinline)) static void decode_v04(
	struct pl_hop *h, const uint8_t *block, const struct pl_int_layout *l)
{
	uint8_t plain[4 * PL_INT_HOP_ML_MAX];

	for (unsigned int i = 0; i < l->words; i++) {
		uint32_t v = pl_be32(block + 4 * i) & 0x7fffffff;

		v = __builtin_bswap32(v == 0x7fffffff ? UINT32_MAX : v);
		memcpy(plain + 4 * i, &v, 4);
	}
	hop_decode_plain(h, plain, l);
}

bool hops_from_stack_plain(struct job *j, const struct pl_path *path, struct pl_hop *hops,
	const struct pl_int *in, const struct hop_plan *plan)
{
	uint32_t all = plan->present;

	for (unsigned int i = 0, k = in->hops; k-- > 0; i++) {
		const uint8_t *block = in->stack + (size_t)k * plan->block_bytes;

		if (in->layout->dialect == PL_DIALECT_V04)
			decode_v04(&hops[i], block, in->layout);
		else
			hop_decode_plain(&hops[i], block, in->layout);
		hops[i].ts_ns = path->ts_ns;
		hops[i].report_id = path->report_id;
		hops[i].index = (uint8_t)i;
		all &= hops[i].present;
	}
	if (all == plan->present)
		return true;
	j->notes |= PL_NOTE_BIT(VALUES_MISSING);
	return false;
}

bool hops_decode_none(struct pl_hop *hops, const struct hop_plan *plan, const uint8_t *stack,
	unsigned int n, const struct pl_path *path)
{
	(void)hops;
	(void)plan;
	(void)stack;
	(void)n;
	(void)path;
	return true;
}

hops_decode_fn *hops_decode_best(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512vl"))
		return hops_decode_avx512;
	if (__builtin_cpu_supports("avx2"))
		return hops_decode_avx2;
#endif
	return hops_decode_none;
}

void hop_from_report(struct pl_hop *hop, const struct pl_report *r)
{
	const struct pl_int_hop *v = &r->hop;
	uint32_t have = 0;

	memset(hop, 0, sizeof(*hop));
	hop->record_version = PL_RECORD_VERSION;
	if (r->have_node) {
		hop->node = r->node;
		have |= PL_HOP_HAS_node;
	}
	if (v->have & PL_INT_HAS(PL_INT_F_PORTS)) {
		hop->ingress_port = v->ingress_port;
		hop->egress_port = v->egress_port;
		have |= PL_HOP_HAS_ingress_port | PL_HOP_HAS_egress_port;
	}
	if (v->have & PL_INT_HAS(PL_INT_F_LATENCY)) {
		hop->hop_latency_ns = v->latency;
		have |= PL_HOP_HAS_hop_latency_ns;
	}
	if (v->have & PL_INT_HAS(PL_INT_F_QUEUE)) {
		hop->queue = (uint16_t)v->queue;
		hop->queue_depth = v->queue_depth;
		have |= PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth;
	} else if (r->have_drop_reason) {
		hop->queue = r->drop_queue;
		have |= PL_HOP_HAS_queue;
	}
	if (v->have & PL_INT_HAS(PL_INT_F_INGRESS_TS)) {
		hop->ingress_ts_ns = v->ingress_ts;
		have |= PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_time_bits;
	}
	if (v->have & PL_INT_HAS(PL_INT_F_EGRESS_TS)) {
		hop->egress_ts_ns = v->egress_ts;
		have |= PL_HOP_HAS_egress_ts_ns | PL_HOP_HAS_time_bits;
	}
	if (v->have & PL_INT_HAS(PL_INT_F_PORTS2)) {
		hop->ingress_port2 = v->ingress_port2;
		hop->egress_port2 = v->egress_port2;
		have |= PL_HOP_HAS_ingress_port2 | PL_HOP_HAS_egress_port2;
	}
	if (v->have & PL_INT_HAS(PL_INT_F_TX_UTIL)) {
		hop->tx_util = v->tx_util;
		have |= PL_HOP_HAS_tx_util;
	}
	if (v->have & PL_INT_HAS(PL_INT_F_BUFFER)) {
		hop->buffer = (uint8_t)v->buffer;
		hop->buffer_depth = v->buffer_depth;
		have |= PL_HOP_HAS_buffer | PL_HOP_HAS_buffer_depth;
	}
	if (have & PL_HOP_HAS_time_bits)
		hop->time_bits = r->ts_bits;
	hop->present = have;
}

/* Merges one field, by its presence bit. */
#define MERGE(field)                                                                               \
	do {                                                                                       \
		if (from->present & PL_HOP_HAS_##field)                                            \
			into->field = from->field;                                                 \
	} while (0)

void hop_merge(struct pl_hop *into, const struct pl_hop *from)
{
	/* A 32-bit header time must not stand beside a 64-bit one of the stack, nor overrule it. */
	uint32_t take = from->present;
	bool times = into->time_bits == 0 || into->time_bits == from->time_bits;

	MERGE(ingress_port);
	MERGE(egress_port);
	MERGE(hop_latency_ns);
	MERGE(queue);
	MERGE(queue_depth);
	MERGE(tx_util);
	MERGE(buffer);
	MERGE(buffer_depth);
	MERGE(ingress_port2);
	MERGE(egress_port2);
	if (times) {
		MERGE(ingress_ts_ns);
		MERGE(egress_ts_ns);
		MERGE(time_bits);
	} else {
		take &= ~(uint32_t)(PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_egress_ts_ns |
				    PL_HOP_HAS_time_bits);
	}
	into->present |= take;
}

#define BOTH_TIMES (PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_egress_ts_ns)

/* The difference of two times of the same width, in their unit; signed, so that a skew is seen. */
static inline int64_t difference(uint64_t later, uint64_t earlier, unsigned int bits)
{
	/* 32-bit clocks wrap every 4.3 s (ns): the difference is meant modulo 2^32. */
	if (bits == 32)
		return (int32_t)((uint32_t)later - (uint32_t)earlier);
	return (int64_t)(later - earlier);
}

static void link_latency(
	struct job *j, struct pl_hop *h, const struct pl_hop *before, bool microseconds)
{
	uint64_t ns;
	int64_t d;

	h->present |= PL_HOP_HAS_clock;
	if (h->time_bits != before->time_bits) {
		h->clock = PL_CLOCK_MIXED;
		return;
	}
	d = difference(h->ingress_ts_ns, before->egress_ts_ns, h->time_bits);
	if (d < 0) {
		h->clock = PL_CLOCK_SKEWED;
		j->notes |= PL_NOTE_BIT(CLOCK_SKEWED);
		return;
	}
	if (__builtin_mul_overflow((uint64_t)d, microseconds ? 1000u : 1u, &ns) ||
		ns > j->d->max_latency_ns) {
		h->clock = PL_CLOCK_IMPLAUSIBLE;
		return;
	}
	h->link_latency_ns = (int64_t)ns;
	h->present |= PL_HOP_HAS_link_latency_ns;
	h->clock = PL_CLOCK_OK;
}

static void hop_latency(struct job *j, struct pl_hop *h, bool microseconds)
{
	/* Times of 32 bits that are in ns by now (hop_to_ns) wrap no more. */
	const bool wraps = h->time_bits == 32 && (h->ingress_ts_ns | h->egress_ts_ns) <= UINT32_MAX;
	uint64_t d = wraps ? (uint32_t)(h->egress_ts_ns - h->ingress_ts_ns)
			   : h->egress_ts_ns - h->ingress_ts_ns;
	uint64_t ns;

	if (__builtin_mul_overflow(d, microseconds ? 1000u : 1u, &ns) ||
		ns > j->d->max_latency_ns) {
		j->notes |= PL_NOTE_BIT(LATENCY_IMPLAUSIBLE);
		return;
	}
	h->hop_latency_ns = (uint32_t)ns;
	h->present |= PL_HOP_HAS_hop_latency_ns;
}

/* Values of a node that counts in microseconds, after differences were taken in its own unit. */
__attribute__((cold, noinline)) static void to_ns(
	struct job *j, struct pl_hop *hops, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct pl_hop *h = &hops[i];

		if (j->profile->timestamp_unit != PL_UNIT_US)
			break;
		if (__builtin_mul_overflow(h->ingress_ts_ns, UINT64_C(1000), &h->ingress_ts_ns) ||
			__builtin_mul_overflow(h->egress_ts_ns, UINT64_C(1000), &h->egress_ts_ns)) {
			h->ingress_ts_ns = 0;
			h->egress_ts_ns = 0;
			h->present &= ~(uint32_t)BOTH_TIMES;
			j->notes |= PL_NOTE_BIT(LATENCY_IMPLAUSIBLE);
		}
	}
}

__attribute__((cold, noinline)) static void reported_latency_to_ns(struct job *j, struct pl_hop *h)
{
	if (__builtin_mul_overflow(h->hop_latency_ns, 1000u, &h->hop_latency_ns)) {
		h->hop_latency_ns = 0;
		h->present &= ~(uint32_t)PL_HOP_HAS_hop_latency_ns;
		j->notes |= PL_NOTE_BIT(LATENCY_IMPLAUSIBLE);
	}
}

void hop_to_ns(struct job *j, struct pl_hop *h)
{
	const bool latency_us = j->profile->latency_unit == PL_UNIT_US;

	if (latency_us && (h->present & PL_HOP_HAS_hop_latency_ns) != 0)
		reported_latency_to_ns(j, h);
	/* Before the times wrap elsewhere than the clock. */
	if (j->profile->timestamp_unit == PL_UNIT_US &&
		(h->present & (BOTH_TIMES | PL_HOP_HAS_hop_latency_ns)) == BOTH_TIMES)
		hop_latency(j, h, true);
	to_ns(j, h, 1);
}

/* An implausible latency is treated as missing; the node's times may still give one. */
__attribute__((cold, noinline)) static void unlikely_reported(
	struct job *j, struct pl_hop *h, bool microseconds)
{
	h->hop_latency_ns = 0;
	h->present &= ~(uint32_t)PL_HOP_HAS_hop_latency_ns;
	j->notes |= PL_NOTE_BIT(LATENCY_IMPLAUSIBLE);
	if ((h->present & BOTH_TIMES) == BOTH_TIMES)
		hop_latency(j, h, microseconds);
}

void derive(struct job *j, struct pl_path *path, struct pl_hop *hops, unsigned int n)
{
	/* IOAM has its unit in the packet, and is in ns by now. */
	const bool ioam = path->mode >= PL_MODE_IOAM_TRACE && path->mode <= PL_MODE_IOAM_POT;
	const bool ts_us = !ioam && j->profile->timestamp_unit == PL_UNIT_US;
	const bool latency_us = !ioam && j->profile->latency_unit == PL_UNIT_US;
	const bool whole = (path->flags & PL_FLAG_PARTIAL) == 0;
	uint64_t id = n, latency = 0;
	uint32_t all = UINT32_MAX;

	if (n == 0)
		return;
	for (unsigned int i = 0; i < n; i++) {
		struct pl_hop *h = &hops[i];

		h->index = (uint8_t)i;
		if (latency_us && (h->present & PL_HOP_HAS_hop_latency_ns) != 0)
			reported_latency_to_ns(j, h);
		if (h->hop_latency_ns > j->d->max_latency_ns)
			unlikely_reported(j, h, ts_us);
		else if ((h->present & (BOTH_TIMES | PL_HOP_HAS_hop_latency_ns)) == BOTH_TIMES)
			hop_latency(j, h, ts_us);
		if (i > 0 && i < j->links && (h->present & PL_HOP_HAS_ingress_ts_ns) != 0 &&
			(hops[i - 1].present & PL_HOP_HAS_egress_ts_ns) != 0)
			link_latency(j, h, &hops[i - 1], ts_us);
		latency += h->hop_latency_ns;
		all &= h->present;
		id = pl_path_id_step(id, h, h->present);
	}
	if (__builtin_expect(ts_us, 0))
		to_ns(j, hops, n);
	/* A part of a path has no identity: calling it a path would invent path changes. */
	if (whole && (all & PL_HOP_HAS_node) != 0) {
		path->path_id = pl_path_id_end(id);
		path->present |= PL_PATH_HAS_path_id;
	}
	if (whole && (all & PL_HOP_HAS_hop_latency_ns) != 0) {
		path->latency_ns = latency;
		path->present |= PL_PATH_HAS_latency_ns;
	}
	for (unsigned int i = 0; i < n; i++) {
		hops[i].ts_ns = path->ts_ns;
		hops[i].report_id = path->report_id;
		hops[i].path_id = path->path_id;
		hops[i].present |=
			flag((path->present & PL_PATH_HAS_path_id) != 0, PL_HOP_HAS_path_id);
	}
}

/* Rare case: a latency that cannot be. */
__attribute__((cold, noinline)) static void unlikely_link(
	struct job *j, struct pl_hop *h, int64_t between)
{
	h->link_latency_ns = 0;
	h->present &= ~(uint32_t)PL_HOP_HAS_link_latency_ns;
	h->clock = between < 0 ? PL_CLOCK_SKEWED : PL_CLOCK_IMPLAUSIBLE;
	if (between < 0)
		j->notes |= PL_NOTE_BIT(CLOCK_SKEWED);
}

__attribute__((cold, noinline)) static void unlikely_hop(struct job *j, struct pl_hop *h)
{
	h->hop_latency_ns = 0;
	h->present &= ~(uint32_t)PL_HOP_HAS_hop_latency_ns;
	j->notes |= PL_NOTE_BIT(LATENCY_IMPLAUSIBLE);
}

/* Derives values of one hop for derive_as: `before` is the egress time of the hop before it. */
static inline __attribute__((always_inline)) void derive_hop(struct job *j, struct pl_hop *h,
	uint64_t before, const uint64_t max, const bool first, const bool reported,
	const bool times, const bool wide)
{
	if (!times)
		return;
	if (!reported) {
		uint64_t inside = h->egress_ts_ns - h->ingress_ts_ns;

		if (!wide)
			inside = (uint32_t)inside;
		h->hop_latency_ns = (uint32_t)inside;
		if (__builtin_expect(inside > max, 0))
			unlikely_hop(j, h);
	}
	if (!first) {
		int64_t between = (int64_t)(h->ingress_ts_ns - before);

		if (!wide)
			between = (int32_t)between;
		h->link_latency_ns = between;
		if (__builtin_expect((uint64_t)between > max, 0))
			unlikely_link(j, h, between);
	}
}

/* Removes reported latencies above the limit, when their sum is above it. Returns the sum of the
 * others. */
__attribute__((cold, noinline)) static uint64_t recheck_reported(
	struct job *j, struct pl_hop *hops, unsigned int n)
{
	uint64_t latency = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (hops[i].hop_latency_ns > j->d->max_latency_ns)
			unlikely_reported(j, &hops[i], false);
		latency += hops[i].hop_latency_ns;
	}
	return latency;
}

/* True when all hops have a latency, although one was implausible. */
__attribute__((cold, noinline)) static bool have_latencies(
	const struct pl_hop *hops, unsigned int n)
{
	uint32_t all = UINT32_MAX;

	for (unsigned int i = 0; i < n; i++)
		all &= hops[i].present;
	return (all & PL_HOP_HAS_hop_latency_ns) != 0;
}

/* Derives the values for one set of facts, known when compiled. It writes the common result and
 * corrects it in rare cases. */
static inline __attribute__((always_inline)) void derive_as(struct job *j, struct pl_path *path,
	struct pl_hop *hops, unsigned int n, uint32_t present, const bool reported,
	const bool times, const bool wide)
{
	struct pl_hop *const end = hops + n;
	const uint64_t max = j->d->max_latency_ns;
	uint64_t id = n, latency, before;

	present |= PL_HOP_HAS_path_id | (times ? PL_HOP_HAS_hop_latency_ns : 0);
	hops->present = present;
	derive_hop(j, hops, 0, max, true, reported, times, wide);
	id = pl_path_id_step(id, hops, present);
	latency = hops->hop_latency_ns;
	before = hops->egress_ts_ns;
	/* The first has no link before it. */
	present |= times ? PL_HOP_HAS_clock | PL_HOP_HAS_link_latency_ns : 0;
	for (struct pl_hop *h = hops + 1; h != end; h++) {
		h->present = present;
		derive_hop(j, h, before, max, false, reported, times, wide);
		id = pl_path_id_step(id, h, present);
		latency += h->hop_latency_ns;
		before = h->egress_ts_ns;
	}
	id = pl_path_id_end(id);
	path->path_id = id;
	if (reported && __builtin_expect(latency > max, 0))
		latency = recheck_reported(j, hops, n);
	if ((reported || times) &&
		(__builtin_expect((j->notes & PL_NOTE_BIT(LATENCY_IMPLAUSIBLE)) == 0, 1) ||
			have_latencies(hops, n))) {
		path->latency_ns = latency;
		path->present |= PL_PATH_HAS_latency_ns;
	}
	for (struct pl_hop *h = hops; h != end; h++)
		h->path_id = id;
}

void derive_uniform(
	struct job *j, struct pl_path *path, struct pl_hop *hops, unsigned int n, uint32_t present)
{
	const bool reported = (present & PL_HOP_HAS_hop_latency_ns) != 0;
	const bool times = (present & BOTH_TIMES) == BOTH_TIMES;

	if (times && hops[0].time_bits == 64) {
		if (reported)
			derive_as(j, path, hops, n, present, true, true, true);
		else
			derive_as(j, path, hops, n, present, false, true, true);
	} else if (times) {
		if (reported)
			derive_as(j, path, hops, n, present, true, true, false);
		else
			derive_as(j, path, hops, n, present, false, true, false);
	} else {
		derive_as(j, path, hops, n, present, reported, false, false);
	}
}
