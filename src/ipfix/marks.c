/* SPDX-License-Identifier: BSD-2-Clause */
/* Results and block records of alternate marking into messages of IPFIX. */
#include "ipfix/marks.h"

#include <fixbuf/public.h>

/* Kinds of data records. */
enum { SEGMENT, POINT };

/* Flags of elements: those of the key, and behind them one for each value of a result or a record. */
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
	K_BITS = 9,
};
#define FLAG(value) (UINT32_C(1) << (K_BITS + (value)))

enum {
#define PL_IPFIX_SEGMENT(type, member, ...) S_##member,
#include "ipfix/marks.def"
#undef PL_IPFIX_SEGMENT
	S_MAX,
};
enum {
#define PL_IPFIX_POINT(type, member, ...) M_##member,
#include "ipfix/marks.def"
#undef PL_IPFIX_POINT
	M_MAX,
};
_Static_assert(K_BITS + S_MAX <= 32 && K_BITS + M_MAX <= 32, "flags have 32 bits");

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
#define PL_IPFIX_SEGMENT(type, member, name, id, ...)                                              \
	{ (char *)(name), sizeof(type), FLAG(S_##member) },
static fbInfoElementSpec_t segment_elements[] = {
#include "ipfix/marks.def"
	FB_IESPEC_NULL,
};
#undef PL_IPFIX_SEGMENT
#define PL_IPFIX_POINT(type, member, name, id, ...)                                                \
	{ (char *)(name), sizeof(type), FLAG(M_##member) },
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

static uint32_t segment_flags(const struct pl_seg192 *r)
{
#define HAS(field) ((r->has & PL_SEG_HAS_##field) != 0)
	uint32_t flags = flow_flags(&r->src, &r->dst, r->proto, r->sport, r->dport);

	flags |= HAS(flow_id) ? K_FLOW_ID : 0u;
	flags |= HAS(clock_error_ns) ? K_CLOCK_ERROR : 0u;
#define PL_IPFIX_SEGMENT(type, member, name, id, known, ...)                                       \
	flags |= (known) ? FLAG(S_##member) : 0;
#include "ipfix/marks.def"
#undef PL_IPFIX_SEGMENT
#undef HAS
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

bool pl_ipfix_marks_segment(struct pl_ipfix_sets *x, const struct pl_seg192 *r, uint32_t export_s)
{
	struct segment to = {
		.key = KEY_OF(x, r),
#define PL_IPFIX_SEGMENT(type, member, name, id, known, value, help) .member = (value),
#include "ipfix/marks.def"
#undef PL_IPFIX_SEGMENT
	};

	set_times(&to.key);
	return put(x, SEGMENT, segment_flags(r), &to, sizeof(to), export_s);
}

/* ---- block records ---- */

#define TIMED   ((r->mark_flags & PL_MARK_UNTIMED) == 0)
#define RUNNING (r->method == PL_MARK_PULSE)

static uint32_t point_flags(const struct pl_mark128 *r)
{
	uint32_t flags = flow_flags(&r->src, &r->dst, r->proto, r->sport, r->dport);

	flags |= (r->mark_flags & PL_MARK_HAS_FLOW_ID) != 0 ? K_FLOW_ID : 0u;
	flags |= r->clock_error_ns != UINT32_MAX ? K_CLOCK_ERROR : 0u;
#define PL_IPFIX_POINT(type, member, name, id, known, ...) flags |= (known) ? FLAG(M_##member) : 0;
#include "ipfix/marks.def"
#undef PL_IPFIX_POINT
	return flags;
}

bool pl_ipfix_marks_point(struct pl_ipfix_sets *x, const struct pl_mark128 *r, uint32_t export_s)
{
	struct point to = {
		.key = KEY_OF(x, r),
#define PL_IPFIX_POINT(type, member, name, id, known, value, help) .member = (value),
#include "ipfix/marks.def"
#undef PL_IPFIX_POINT
	};

	set_times(&to.key);
	return put(x, POINT, point_flags(r), &to, sizeof(to), export_s);
}

/* ---- the rest ---- */

int pl_ipfix_marks_new(struct pl_ipfix_sets **ret, const struct pl_ipfix_sets_options *options)
{
	return pl_ipfix_sets_new(ret, &schema, options);
}
