/* SPDX-License-Identifier: BSD-2-Clause */
/* Results and block records of alternate marking into messages of IPFIX. */
#include "ipfix/marks.h"

#include <fixbuf/public.h>

/* Kinds of data records. */
enum { SEGMENT, POINT };

/* Flags of elements: of both kinds of data record, of results, of block records. */
enum {
	K_ALWAYS = 0,
	K_MS = 1 << 0,
	K_US = 1 << 1,
	K_NS = 1 << 2,
	K_V6 = 1 << 3,
	K_V4 = 1 << 4,
	K_PORTS = 1 << 5,
	K_PROTO = 1 << 6,
	K_FLOW_ID = 1 << 7,
	K_CLOCK_ERROR = 1 << 8,
};
enum {
	S_ALWAYS = 0,
	S_MISSING = 1 << 10,
	S_LOSS = 1 << 11,
	S_LOSS_RATIO = 1 << 12,
	S_DELAY = 1 << 13,
	S_MEAN = 1 << 14,
	S_FIRST = 1 << 15,
	S_JITTER = 1 << 16,
	S_SINCE = 1 << 17,
};
enum {
	M_ALWAYS = 0,
	M_OF_BLOCK = 1 << 10,
	M_RUNNING = 1 << 11,
	M_SUM = 1 << 12,
	M_FIRST_AT = 1 << 13,
	M_PULSE_AT = 1 << 14,
};

#define MEMBER(type, member, ...) type member;
struct key {
#define PL_IPFIX_KEY MEMBER
#include "ipfix/marks.def"
#undef PL_IPFIX_KEY
} __attribute__((packed));
struct segment {
	struct key key;
#define PL_IPFIX_SEGMENT MEMBER
#include "ipfix/marks.def"
#undef PL_IPFIX_SEGMENT
} __attribute__((packed));
struct point {
	struct key key;
#define PL_IPFIX_POINT MEMBER
#include "ipfix/marks.def"
#undef PL_IPFIX_POINT
} __attribute__((packed));

#define PL_IPFIX_KEY(type, member, name, id, flag, help) { (char *)(name), sizeof(type), K_##flag },
#define PL_IPFIX_SEGMENT(type, member, name, id, flag, help)                                       \
	{ (char *)(name), sizeof(type), S_##flag },
static fbInfoElementSpec_t segment_elements[] = {
#include "ipfix/marks.def"
	FB_IESPEC_NULL,
};
#undef PL_IPFIX_SEGMENT
#define PL_IPFIX_POINT(type, member, name, id, flag, help)                                         \
	{ (char *)(name), sizeof(type), M_##flag },
static fbInfoElementSpec_t point_elements[] = {
#include "ipfix/marks.def"
	FB_IESPEC_NULL,
};
#undef PL_IPFIX_KEY
#undef PL_IPFIX_POINT

static fbInfoElementSpec_t
	*const kinds[] = { [SEGMENT] = segment_elements, [POINT] = point_elements };

static const struct pl_ipfix_own own_elements[] = {
#define PL_IPFIX_KEY     PL_IPFIX_OWN
#define PL_IPFIX_SEGMENT PL_IPFIX_OWN
#define PL_IPFIX_POINT   PL_IPFIX_OWN
#include "ipfix/marks.def"
#undef PL_IPFIX_KEY
#undef PL_IPFIX_SEGMENT
#undef PL_IPFIX_POINT
};

static const struct pl_ipfix_schema schema = { .kinds = kinds,
	.n_kinds = sizeof(kinds) / sizeof(kinds[0]),
	.own = own_elements,
	.n_own = sizeof(own_elements) / sizeof(own_elements[0]),
	.times = { K_MS, K_US, K_NS } };

/* ---- the flow ---- */

/* Flags of the flow's values. Records counted by hosts alone, or all together, have no particular
 * addresses, ports or protocol. */
static uint32_t flow_flags(const struct pl_addr *src, const struct pl_addr *dst, uint8_t proto,
	uint16_t sport, uint16_t dport)
{
	const bool any = pl_addr_is_unspecified(src) && pl_addr_is_unspecified(dst),
		   ports = proto == 6 || proto == 17 || proto == 132 || sport != 0 || dport != 0;
	uint32_t flags = (proto != 0 ? K_PROTO : 0u) | (ports ? K_PORTS : 0u);

	if (!any)
		flags |= pl_addr_is_v4(src) && pl_addr_is_v4(dst) ? K_V4 : K_V6;
	return flags;
}

/* Key that both kinds of records have by the same names. */
#define KEY_OF(x, r)                                                                               \
	(struct key)                                                                               \
	{                                                                                          \
		.start_ms = pl_ipfix_time((x)->unit, (r)->ts_ns),                                  \
		.end_ms = pl_ipfix_time((x)->unit, (r)->ts_ns + (r)->period_ns), .src6 = (r)->src, \
		.dst6 = (r)->dst, .src4 = pl_ipfix_v4(&(r)->src), .dst4 = pl_ipfix_v4(&(r)->dst),  \
		.sport = (r)->sport, .dport = (r)->dport, .proto = (r)->proto,                     \
		.flow_id = (r)->flow_id, .block = (r)->block, .period_ns = (r)->period_ns,         \
		.method = (r)->method, .tai_offset = (r)->tai_offset,                              \
		.clock_error_ns = (r)->clock_error_ns, .late = (r)->late, .early = (r)->early      \
	}

/* The times are the same number under the three elements, of which a template has one. */
static void set_times(struct key *k)
{
	k->start_us = k->start_ns = k->start_ms;
	k->end_us = k->end_ns = k->end_ms;
}

/* ---- results ---- */

static uint32_t segment_flags(const struct pl_seg192 *s)
{
	static const struct {
		uint32_t has, flag;
	} values[] = {
		{ PL_SEG_HAS_flow_id, K_FLOW_ID },
		{ PL_SEG_HAS_clock_error_ns, K_CLOCK_ERROR },
		{ PL_SEG_HAS_missing_point, S_MISSING },
		{ PL_SEG_HAS_loss, S_LOSS },
		{ PL_SEG_HAS_loss_ppb, S_LOSS_RATIO },
		{ PL_SEG_HAS_delay_ns, S_DELAY },
		{ PL_SEG_HAS_mean_ns, S_MEAN },
		{ PL_SEG_HAS_first_ns, S_FIRST },
		{ PL_SEG_HAS_jitter_ns, S_JITTER },
		{ PL_SEG_HAS_since, S_SINCE },
	};
	uint32_t flags = flow_flags(&s->src, &s->dst, s->proto, s->sport, s->dport);

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		flags |= (s->has & values[i].has) != 0 ? values[i].flag : 0;
	return flags;
}

static bool put(struct pl_ipfix_sets *x, uint8_t kind, uint32_t flags, const void *record,
	size_t bytes, uint32_t export_s)
{
	struct pl_ipfix_set *set = pl_ipfix_set_of(x, kind, flags | x->time);

	if (set == NULL)
		return false;
	if (x->m.used + set->bytes > sizeof(x->m.bytes))
		pl_ipfix_send(&x->m, export_s);
	pl_ipfix_set_announce(x, set, export_s);
	pl_ipfix_set_put(x, set, record, bytes, export_s);
	x->m.entries++;
	return true;
}

bool pl_ipfix_marks_segment(struct pl_ipfix_sets *x, const struct pl_seg192 *s, uint32_t export_s)
{
	struct segment r = { .key = KEY_OF(x, s),
		.segment = s->segment,
		.from_point = s->from_point,
		.to_point = s->to_point,
		.from_count = s->from_count,
		.to_count = s->to_count,
		.missing_count = s->missing_count,
		.missing_point = s->missing_point,
		.alarms = s->alarms,
		.pulses_sent = s->pulses_sent,
		.pulses_received = s->pulses_received,
		.sent = s->sent,
		.received = s->received,
		.loss = s->loss,
		.loss_ppb = s->loss_ppb,
		.delay_ns = s->delay_ns,
		.mean_ns = s->mean_ns,
		.first_ns = s->first_ns,
		.jitter_ns = s->jitter_ns,
		.since = s->since };

	set_times(&r.key);
	return put(x, SEGMENT, segment_flags(s), &r, sizeof(r), export_s);
}

/* ---- block records ---- */

static uint32_t point_flags(const struct pl_mark128 *m)
{
	const bool timed = (m->mark_flags & PL_MARK_UNTIMED) == 0,
		   running = m->method == PL_MARK_PULSE;
	uint32_t flags = flow_flags(&m->src, &m->dst, m->proto, m->sport, m->dport);

	flags |= (m->mark_flags & PL_MARK_HAS_FLOW_ID) != 0 ? K_FLOW_ID : 0;
	flags |= m->clock_error_ns != UINT32_MAX ? K_CLOCK_ERROR : 0;
	flags |= running ? M_RUNNING : M_OF_BLOCK;
	flags |= timed && !running ? M_SUM : 0;
	flags |= timed && m->packets > 0 ? M_FIRST_AT : 0;
	flags |= timed && m->pulses > 0 ? M_PULSE_AT : 0;
	return flags;
}

bool pl_ipfix_marks_point(struct pl_ipfix_sets *x, const struct pl_mark128 *m, uint32_t export_s)
{
	struct point r = { .key = KEY_OF(x, m),
		.point = m->point,
		.packets = m->packets,
		.bytes = m->bytes,
		.all_packets = m->packets,
		.all_bytes = m->bytes,
		.mark_flags = m->mark_flags,
		.pulses = m->pulses,
		.sum_ns = m->sum_ns,
		.first_ns = m->first_ns,
		.pulse_ns = m->pulse_ns };

	set_times(&r.key);
	return put(x, POINT, point_flags(m), &r, sizeof(r), export_s);
}

/* ---- the rest ---- */

int pl_ipfix_marks_new(struct pl_ipfix_sets **ret, const struct pl_ipfix_sets_options *options)
{
	return pl_ipfix_sets_new(ret, &schema, options);
}
