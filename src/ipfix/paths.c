/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths and hops into messages of IPFIX. */
#include "ipfix/paths.h"

#include <fixbuf/public.h>
#include <string.h>

#include "ipfix/sets.h"

/* Kinds of data records. */
enum { PATH, HOP };

/* Flags of elements: those of the key, and behind them one for each value of a path or a hop. */
enum {
	K_ALWAYS = 0,
	K_MS = 1 << 0,
	K_US = 1 << 1,
	K_NS = 1 << 2,
	K_PATH_ID = 1 << 3,
	K_FLOW = 1 << 4,
	K_V6 = 1 << 5,
	K_V4 = 1 << 6,
	K_PORTS = 1 << 7,
	K_ICMP4 = 1 << 8,
	K_ICMP6 = 1 << 9,
	K_BITS = 10,
};
#define FLAG(value) (UINT32_C(1) << (K_BITS + (value)))

enum {
#define PL_IPFIX_PATH(type, member, ...) P_##member,
#include "ipfix/paths.def"
#undef PL_IPFIX_PATH
	P_MAX,
};
enum {
#define PL_IPFIX_HOP(type, member, ...) H_##member,
#include "ipfix/paths.def"
#undef PL_IPFIX_HOP
	H_MAX,
};
_Static_assert(K_BITS + P_MAX <= 32 && K_BITS + H_MAX <= 32, "flags have 32 bits");

#define MEMBER(type, member, ...) type member;
struct key {
#define PL_IPFIX_KEY MEMBER
#include "ipfix/paths.def"
#undef PL_IPFIX_KEY
} __attribute__((packed));
struct path {
	struct key key;
#define PL_IPFIX_PATH MEMBER
#include "ipfix/paths.def"
#undef PL_IPFIX_PATH
} __attribute__((packed));
struct hop {
	struct key key;
#define PL_IPFIX_HOP MEMBER
#include "ipfix/paths.def"
#undef PL_IPFIX_HOP
} __attribute__((packed));

#define PL_IPFIX_KEY(type, member, name, id, flag, help) { (char *)(name), sizeof(type), K_##flag },
#define PL_IPFIX_PATH(type, member, name, id, ...)                                                 \
	{ (char *)(name), sizeof(type), FLAG(P_##member) },
static fbInfoElementSpec_t path_elements[] = {
#include "ipfix/paths.def"
	FB_IESPEC_NULL,
};
#undef PL_IPFIX_PATH
#define PL_IPFIX_HOP(type, member, name, id, ...)                                                  \
	{ (char *)(name), sizeof(type), FLAG(H_##member) },
static fbInfoElementSpec_t hop_elements[] = {
#include "ipfix/paths.def"
	FB_IESPEC_NULL,
};
#undef PL_IPFIX_KEY
#undef PL_IPFIX_HOP

static const struct pl_ipfix_own own_elements[] = {
#define PL_IPFIX_KEY  PL_IPFIX_OWN
#define PL_IPFIX_PATH PL_IPFIX_OWN
#define PL_IPFIX_HOP  PL_IPFIX_OWN
#include "ipfix/paths.def"
#undef PL_IPFIX_KEY
#undef PL_IPFIX_PATH
#undef PL_IPFIX_HOP
};

static fbInfoElementSpec_t *const kinds[] = { [PATH] = path_elements, [HOP] = hop_elements };

static const struct pl_ipfix_schema schema = { .kinds = kinds,
	.n_kinds = sizeof(kinds) / sizeof(kinds[0]),
	.own = own_elements,
	.n_own = sizeof(own_elements) / sizeof(own_elements[0]),
	.times = { K_MS, K_US, K_NS } };

/* ---- which values a record has ---- */

static bool is_v4(const struct pl_path *p)
{
	return pl_addr_is_v4(&p->src) && pl_addr_is_v4(&p->dst);
}

/* Flags of the flow's values; those of a path and of its hops. */
static uint32_t flow_flags(const struct pl_path *p)
{
	const bool v4 = is_v4(p);
	uint32_t flags;

	if ((p->present & PL_PATH_HAS_src) == 0)
		return 0;
	flags = K_FLOW | (v4 ? K_V4 : K_V6);
	if ((p->present & PL_PATH_HAS_sport) == 0)
		return flags;
	if (p->proto == (v4 ? 1 : 58))
		return flags | (v4 ? K_ICMP4 : K_ICMP6);
	return flags | K_PORTS;
}

static uint32_t path_flags(const struct pl_ipfix_sets *x, const struct pl_path *r)
{
#define HAS(field) ((r->present & PL_PATH_HAS_##field) != 0)
	uint32_t flags = x->time | flow_flags(r) | (HAS(path_id) ? K_PATH_ID : 0u);

#define PL_IPFIX_PATH(type, member, name, id, known, ...) flags |= (known) ? FLAG(P_##member) : 0;
#include "ipfix/paths.def"
#undef PL_IPFIX_PATH
#undef HAS
	return flags;
}

/* shared: flags that the hops of a path share. */
static uint32_t hop_flags(uint32_t shared, const struct pl_hop *r)
{
#define HAS(field) ((r->present & PL_HOP_HAS_##field) != 0)
	uint32_t flags = shared | (HAS(path_id) ? K_PATH_ID : 0u);

#define PL_IPFIX_HOP(type, member, name, id, known, ...) flags |= (known) ? FLAG(H_##member) : 0;
#include "ipfix/paths.def"
#undef PL_IPFIX_HOP
#undef HAS
	return flags;
}

/* ---- records ---- */

static void fill_key(const struct pl_ipfix_sets *x, struct key *k, const struct pl_path *p)
{
	const uint64_t at = pl_ipfix_time(x->unit, p->ts_ns);
	const uint16_t icmp = (uint16_t)(p->sport << 8 | (p->dport & 0xff));

	*k = (struct key){ .start_ms = at,
		.end_ms = at,
		.start_us = at,
		.end_us = at,
		.start_ns = at,
		.end_ns = at,
		.report_id = p->report_id,
		.path_id = p->path_id,
		.src6 = p->src,
		.dst6 = p->dst,
		.src4 = pl_ipfix_v4(&p->src),
		.dst4 = pl_ipfix_v4(&p->dst),
		.sport = p->sport,
		.dport = p->dport,
		.icmp4 = icmp,
		.icmp6 = icmp,
		.proto = p->proto };
}

/* Values of forwardingStatus, without a reason: the reasons of the element are not those of
 * nodes. */
enum { FORWARDED = 0x40, DROPPED = 0x80 };

static void fill_path(const struct pl_ipfix_sets *x, struct path *to, const struct pl_path *r)
{
	*to = (struct path){
#define PL_IPFIX_PATH(type, member, name, id, known, value, help) .member = (value),
#include "ipfix/paths.def"
#undef PL_IPFIX_PATH
	};
	fill_key(x, &to->key, r);
}

static void fill_hop(struct hop *to, const struct key *key, const struct pl_hop *r)
{
	*to = (struct hop){
		.key = *key,
#define PL_IPFIX_HOP(type, member, name, id, known, value, help) .member = (value),
#include "ipfix/paths.def"
#undef PL_IPFIX_HOP
	};
	to->key.path_id = r->path_id;
}

bool pl_ipfix_paths_put(struct pl_ipfix_sets *x, const struct pl_path *path,
	const struct pl_hop *hops, uint32_t export_s)
{
	const uint32_t shared = x->time | flow_flags(path);
	struct pl_ipfix_sets *all = x;
	struct pl_ipfix_set *first = pl_ipfix_set_of(all, PATH, path_flags(x, path)),
			    *sets[UINT8_MAX];
	bool known = first != NULL;
	uint32_t room = known ? first->bytes : 0;
	struct path p;
	struct hop h;

	for (unsigned int i = 0; known && i < path->hop_count; i++) {
		sets[i] = pl_ipfix_set_of(all, HOP, hop_flags(shared, &hops[i]));
		known = sets[i] != NULL;
		room += known ? sets[i]->bytes : 0;
	}
	if (!known)
		return false;
	if (all->m.used + room > sizeof(all->m.bytes))
		pl_ipfix_send(&all->m, export_s);
	pl_ipfix_set_announce(all, first, export_s);
	for (unsigned int i = 0; i < path->hop_count; i++)
		pl_ipfix_set_announce(all, sets[i], export_s);
	fill_path(x, &p, path);
	pl_ipfix_set_put(all, first, &p, sizeof(p), export_s);
	for (unsigned int i = 0; i < path->hop_count; i++) {
		fill_hop(&h, &p.key, &hops[i]);
		pl_ipfix_set_put(all, sets[i], &h, sizeof(h), export_s);
	}
	all->m.entries++;
	return true;
}

/* ---- the rest ---- */

int pl_ipfix_paths_new(struct pl_ipfix_sets **ret, const struct pl_ipfix_sets_options *options)
{
	return pl_ipfix_sets_new(ret, &schema, options);
}
