/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters as rules of a tap. A condition becomes a set of rules that is true wherever the condition
 * is: `and` intersects two sets, `or` joins them, `not` is carried down to the comparisons. Parts
 * that no rule can say, or without room, count as true, which makes the set larger and never
 * smaller. */
#include "lang/push.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lang/plan.h"

#define RULES_MOST (PL_TAP_RULES_MAX - 1) /* most rules that take: the last one skips */
#define BITS_MOST  8                      /* most bits of a mask that is compared bit by bit */

/* Records that one of n rules matches; all: every record. */
struct set {
	bool all, exact;
	uint32_t n;
	struct pl_tap_rule *rules;
};

/* Fields of packets in rules. */
enum field {
	NOTHING,
	SRC,
	DST,
	SPORT,
	DPORT,
	LENGTH,
	PAYLOAD,
	PROTO,
	FLAGS,
	PROTO_FLAGS, /* read as one number */
	OBS,
	VLAN,
};

static const struct pl_tap_rule any = {
	.sport = { 0, UINT16_MAX },
	.dport = { 0, UINT16_MAX },
	.port = { 0, UINT16_MAX },
	.length = { 0, UINT16_MAX },
	.payload = { 0, UINT16_MAX },
	.action = PL_TAP_TAKE,
	.sample = 1,
	.sample_flows = 1,
};

/* Returns the field of a column. The fields of pkt64 are the first ones of pkt96. */
static enum field field_of(const struct column *column, bool pkt64)
{
	static const struct {
		uint32_t offset;
		uint8_t width, field;
	} known[] = {
		{ offsetof(struct pl_pkt96, src), 16, SRC },
		{ offsetof(struct pl_pkt96, dst), 16, DST },
		{ offsetof(struct pl_pkt96, sport), 2, SPORT },
		{ offsetof(struct pl_pkt96, dport), 2, DPORT },
		{ offsetof(struct pl_pkt96, wire_len), 2, LENGTH },
		{ offsetof(struct pl_pkt96, pay_len), 2, PAYLOAD },
		{ offsetof(struct pl_pkt96, proto), 1, PROTO },
		{ offsetof(struct pl_pkt96, tcp_flags), 1, FLAGS },
		{ offsetof(struct pl_pkt96, proto), 2, PROTO_FLAGS },
		{ offsetof(struct pl_pkt96, obs), 2, OBS },
		{ offsetof(struct pl_pkt96, vlan), 2, VLAN },
	};

	if (column->shift != 0 || column->absent >= 0 || column->present != 0 ||
		(pkt64 && column->offset >= sizeof(struct pl_pkt64)))
		return NOTHING;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].offset == column->offset && known[i].width == column->width)
			return known[i].field;
	}
	return NOTHING;
}

/* ---- sets ---- */

static struct set every(bool exact)
{
	return (struct set){ .all = true, .exact = exact };
}

static struct set none(void)
{
	return (struct set){ .exact = true };
}

static void done(struct set *s)
{
	free(s->rules);
	*s = none();
}

/* Without room for it the set becomes everything. */
static void add(struct set *s, const struct pl_tap_rule *rule)
{
	struct pl_tap_rule *grown;

	if (s->all)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		if (memcmp(&s->rules[i], rule, sizeof(*rule)) == 0)
			return;
	}
	grown = s->n < RULES_MOST ? realloc(s->rules, (s->n + 1) * sizeof(*grown)) : NULL;
	if (grown == NULL) {
		done(s);
		*s = every(false);
		return;
	}
	s->rules = grown;
	s->rules[s->n++] = *rule;
}

static struct set one(const struct pl_tap_rule *rule)
{
	struct set s = none();

	add(&s, rule);
	return s;
}

static bool join_net(struct pl_tap_net *a, const struct pl_tap_net *b)
{
	for (int i = 0; i < 2; i++) {
		if (((a->addr[i] ^ b->addr[i]) & a->mask[i] & b->mask[i]) != 0)
			return false;
		a->addr[i] |= b->addr[i];
		a->mask[i] |= b->mask[i];
	}
	return true;
}

static bool join_range(struct pl_tap_range *a, struct pl_tap_range b)
{
	a->low = b.low > a->low ? b.low : a->low;
	a->high = b.high < a->high ? b.high : a->high;
	return a->low <= a->high;
}

/* Values are 0 where their mask is. */
#define JOIN_BITS(member, mask)                                                                    \
	if (((a->member ^ b->member) & a->mask & b->mask) != 0)                                    \
		return false;                                                                      \
	a->member |= b->member;                                                                    \
	a->mask |= b->mask

/* Makes the rule that matches packets that both rules match; false when there are none. */
static bool intersect(struct pl_tap_rule *a, const struct pl_tap_rule *b)
{
	JOIN_BITS(proto, proto_mask);
	JOIN_BITS(flags, flags_mask);
	JOIN_BITS(obs, obs_mask);
	JOIN_BITS(vlan, vlan_mask);
	return join_net(&a->src, &b->src) && join_net(&a->dst, &b->dst) &&
	       join_range(&a->sport, b->sport) && join_range(&a->dport, b->dport) &&
	       join_range(&a->length, b->length) && join_range(&a->payload, b->payload);
}

/* Makes the intersection of both, which are used up. If it has no room, the smaller one will do. */
static struct set both(struct set a, struct set b)
{
	struct set s = none();

	if (a.all || b.all) {
		s = a.all ? b : a;
		s.exact = a.exact && b.exact;
		return s;
	}
	s.exact = a.exact && b.exact;
	for (uint32_t i = 0; i < a.n; i++) {
		for (uint32_t k = 0; k < b.n; k++) {
			struct pl_tap_rule rule = a.rules[i];

			if (intersect(&rule, &b.rules[k]))
				add(&s, &rule);
		}
	}
	if (s.all) {
		struct set *kept = a.n <= b.n ? &a : &b;

		s = *kept;
		s.exact = false;
		*kept = none();
	}
	done(&a);
	done(&b);
	return s;
}

static struct set either(struct set a, struct set b)
{
	const bool exact = (a.all && a.exact) || (b.all && b.exact) || (a.exact && b.exact);

	if (b.all)
		done(&a);
	if (a.all || b.all) {
		done(&b);
		return every(exact);
	}
	for (uint32_t i = 0; i < b.n; i++)
		add(&a, &b.rules[i]);
	done(&b);
	a.exact = a.exact && exact;
	return a;
}

/* ---- comparisons ---- */

static uint64_t most_of(enum field field)
{
	return field == PROTO || field == FLAGS ? UINT8_MAX : UINT16_MAX;
}

/* Returns the set where the field, under the mask, equals `value`. The mask has one bit or
 * several. */
static struct set same_bits(enum field field, uint64_t mask, uint64_t value)
{
	struct pl_tap_rule rule = any;

	if (field == PROTO && mask == UINT8_MAX) {
		rule.proto = (uint8_t)value;
		rule.proto_mask = UINT8_MAX;
	} else if (field == FLAGS) {
		rule.flags = (uint8_t)value;
		rule.flags_mask = (uint8_t)mask;
	} else if (field == VLAN && mask == UINT16_MAX) {
		rule.vlan = (uint16_t)value;
		rule.vlan_mask = UINT16_MAX;
	} else if (field == OBS && (mask == PL_OBS_OUT || mask == PL_OBS_POINT_MASK)) {
		rule.obs = (uint16_t)value;
		rule.obs_mask = (uint16_t)mask;
	} else {
		return every(false);
	}
	return one(&rule);
}

/* Rules for a value of which one bit differs. */
static struct set other_bits(enum field field, uint64_t mask, uint64_t value)
{
	struct set s = none();

	if (__builtin_popcountll(mask) > BITS_MOST)
		return every(false);
	for (uint64_t left = mask; left != 0; left &= left - 1) {
		const uint64_t bit = left & -left;

		s = either(s, same_bits(field, bit, ~value & bit));
	}
	return s;
}

static struct set of_range(enum field field, uint64_t low, uint64_t high)
{
	struct pl_tap_rule rule = any;
	struct pl_tap_range range = { (uint16_t)low, (uint16_t)high };

	if (low == 0 && high == UINT16_MAX)
		return every(true);
	if (field == SPORT)
		rule.sport = range;
	else if (field == DPORT)
		rule.dport = range;
	else if (field == LENGTH)
		rule.length = range;
	else
		rule.payload = range;
	return one(&rule);
}

static bool is_range(enum field field)
{
	return field == SPORT || field == DPORT || field == LENGTH || field == PAYLOAD;
}

static struct set bits(enum field field, uint64_t mask, uint64_t value, bool negate);

/* Low byte the protocol, high byte the flags. */
static struct set proto_and_flags(uint64_t mask, uint64_t value, bool negate)
{
	struct set proto = bits(PROTO, mask & UINT8_MAX, value & UINT8_MAX, negate);
	struct set flags = bits(FLAGS, mask >> 8, value >> 8, negate);

	return negate ? either(proto, flags) : both(proto, flags);
}

/* (field & mask) == value, or not. */
static struct set bits(enum field field, uint64_t mask, uint64_t value, bool negate)
{
	mask &= most_of(field);
	if ((value & ~mask) != 0)
		return negate ? every(true) : none();
	if (mask == 0)
		return negate ? none() : every(true);
	if (field == PROTO_FLAGS)
		return proto_and_flags(mask, value, negate);
	if (is_range(field)) {
		if (mask != UINT16_MAX)
			return every(false);
		if (!negate)
			return of_range(field, value, value);
		return either(value > 0 ? of_range(field, 0, value - 1) : none(),
			value < UINT16_MAX ? of_range(field, value + 1, UINT16_MAX) : none());
	}
	return negate ? other_bits(field, mask, value) : same_bits(field, mask, value);
}

/* Rules for low <= (field & mask) <= high, with low <= high, or for its negation. */
static struct set range(enum field field, uint64_t mask, uint64_t low, uint64_t high, bool negate)
{
	const uint64_t most = most_of(field);

	if (low == high)
		return bits(field, mask, low, negate);
	/* All values but one, such as "tcp_flags & 2 > 0". */
	if (low == 1 && high >= (mask & most))
		return bits(field, mask, 0, !negate);
	if (low == 0 && high >= (mask & most))
		return negate ? none() : every(true);
	if (low > (mask & most))
		return negate ? every(true) : none();
	if (!is_range(field) || (mask & most) != most)
		return every(false);
	high = high < most ? high : most;
	if (!negate)
		return of_range(field, low, high);
	return either(low > 0 ? of_range(field, 0, low - 1) : none(),
		high < most ? of_range(field, high + 1, most) : none());
}

static struct set test(const struct node *node, bool negate, bool pkt64)
{
	const enum field field = field_of(node->column, pkt64);
	uint64_t high;

	if (field == NOTHING || field == SRC || field == DST ||
		__builtin_add_overflow(node->lo, node->span, &high))
		return every(false);
	return range(field, node->mask, node->lo, high, negate != node->invert);
}

/* A column that is true for one of two values. */
static struct set condition(const struct column *column, bool negate, bool pkt64)
{
	const enum field field = field_of(column, pkt64);
	struct set one_of, other;

	if (field == NOTHING || field == SRC || field == DST)
		return every(false);
	one_of = bits(field, column->mask, column->is, negate);
	if (column->is == column->or_is)
		return one_of;
	other = bits(field, column->mask, column->or_is, negate);
	return negate ? both(one_of, other) : either(one_of, other);
}

static struct set prefix(const struct node *of, const struct pl_addr *addr, unsigned int n_bits,
	bool negate, bool pkt64)
{
	const enum field field = of->op == N_COLUMN ? field_of(of->column, pkt64) : NOTHING;
	struct pl_addr value = *addr, mask = { { 0 } };
	struct pl_tap_rule rule = any;
	struct pl_tap_net *net;

	if (field != SRC && field != DST)
		return every(false);
	if (n_bits == 0)
		return negate ? none() : every(true);
	if (negate)
		return every(false);
	for (unsigned int bit = 0; bit < n_bits; bit++)
		mask.b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	for (unsigned int i = 0; i < sizeof(value.b); i++)
		value.b[i] &= mask.b[i];
	net = field == SRC ? &rule.src : &rule.dst;
	memcpy(net->addr, value.b, sizeof(net->addr));
	memcpy(net->mask, mask.b, sizeof(net->mask));
	return one(&rule);
}

/* Rules for a comparison of addresses: equal, or not. */
static struct set comparison(const struct node *node, bool negate, bool pkt64)
{
	const struct node *column = node->a, *value = node->b;

	if (column->op == N_CONST) {
		column = node->b;
		value = node->a;
	}
	if (column->type != PL_QUERY_ADDR || value->op != N_CONST ||
		(node->compare != T_EQ && node->compare != T_NE))
		return every(false);
	return prefix(column, &value->addr, 128, negate != (node->compare == T_NE), pkt64);
}

/* ---- expressions ---- */

/* A set that holds every record for which the expression is true; with `not`, false or absent. */
static struct set over(const struct node *node, bool negate, bool pkt64)
{
	switch (node->op) {
	case N_CONST:
		return (node->u != 0) != negate ? every(true) : none();
	case N_COLUMN:
		return condition(node->column, negate, pkt64);
	case N_TEST:
		return test(node, negate, pkt64);
	case N_PREFIX:
		return prefix(node->a, &node->addr, node->bits, negate, pkt64);
	case N_COMPARE:
		return comparison(node, negate, pkt64);
	case N_NOT:
		return over(node->a, !negate, pkt64);
	case N_AND:
	case N_OR:
		return (node->op == N_AND) != negate
			       ? both(over(node->a, negate, pkt64), over(node->b, negate, pkt64))
			       : either(over(node->a, negate, pkt64), over(node->b, negate, pkt64));
	default:
		return every(false);
	}
}

/* True when the stage reads records, not rows or pairs of records. */
static bool is_scan(const struct stage *stage)
{
	return stage->n_sources == 0 && stage->pairs == NULL && stage->zip == NULL;
}

static bool of_packets(const struct stage *stage)
{
	return stage->kind == PL_FLAT_PKT64 || stage->kind == PL_FLAT_PKT96;
}

/* True when every stage that reads records reads packets. */
static bool only_packets(const struct pl_query *query)
{
	for (uint32_t i = 0; i < query->n_stages; i++) {
		if (is_scan(query->stages[i]) && !of_packets(query->stages[i]))
			return false;
	}
	return true;
}

/* The single stage that reads records; NULL when there are several. */
static const struct stage *only_scan(const struct pl_query *query)
{
	const struct stage *found = NULL;

	for (uint32_t i = 0; i < query->n_stages; i++) {
		if (!is_scan(query->stages[i]))
			continue;
		if (found != NULL)
			return NULL;
		found = query->stages[i];
	}
	return found;
}

/* Rules for packets that a part of a filter excludes: for parts that rules cannot express
 * themselves, but whose opposite they can. */
static bool excluded(const struct node *node, bool pkt64, struct set *ret)
{
	struct set s = over(node, false, pkt64);
	const bool said = s.exact;

	done(&s);
	*ret = said ? none() : over(node, true, pkt64);
	if (!said && ret->exact && !ret->all)
		return true;
	done(ret);
	return false;
}

static void put_rule(
	struct pl_query_push *push, const struct pl_tap_rule *rule, enum pl_tap_action action)
{
	push->rules[push->n] = *rule;
	push->rules[push->n++].action = (uint8_t)action;
}

/* Adds rules that skip what a part of the filter excludes, such as a prefix; all of a part, or
 * none. */
static void put_excluded(
	const struct node *node, bool pkt64, uint32_t room, struct pl_query_push *push)
{
	struct set s;

	if (node->op == N_AND) {
		put_excluded(node->a, pkt64, room, push);
		put_excluded(node->b, pkt64, room, push);
		return;
	}
	if (!excluded(node, pkt64, &s))
		return;
	if (push->n + s.n <= room) {
		for (uint32_t i = 0; i < s.n; i++)
			put_rule(push, &s.rules[i], PL_TAP_SKIP);
	}
	done(&s);
}

void pl_query_push(const struct pl_query *query, bool pkt64, struct pl_query_push *ret)
{
	const struct stage *only;
	struct set s = none();

	*ret = (struct pl_query_push){ .n = 0 };
	if (!only_packets(query))
		return;
	for (uint32_t i = 0; i < query->n_stages; i++) {
		const struct stage *stage = query->stages[i];
		struct set passed = every(true);

		if (!is_scan(stage))
			continue;
		for (uint32_t k = 0; k < stage->n_where; k++)
			passed = both(passed, over(stage->where[k], false, pkt64));
		s = either(s, passed);
	}
	ret->exact = s.exact;
	/* With several stages, one may exclude packets that another needs. */
	only = only_scan(query);
	for (uint32_t k = 0; only != NULL && k < only->n_where; k++)
		put_excluded(only->where[k], pkt64, PL_TAP_RULES_MAX - (s.all ? 0 : s.n + 1), ret);
	for (uint32_t i = 0; i < s.n; i++)
		put_rule(ret, &s.rules[i], PL_TAP_TAKE);
	if (!s.all)
		put_rule(ret, &any, PL_TAP_SKIP);
	done(&s);
}

/* True when the rules skip the packets that the part of a filter excludes. */
static bool is_excluded(const struct pl_query_push *push, const struct node *node, bool pkt64)
{
	struct set s;
	bool there = false;

	if (!excluded(node, pkt64, &s))
		return false;
	for (uint32_t i = 0; s.n > 0 && i < push->n; i++) {
		struct pl_tap_rule rule = push->rules[i];

		rule.action = PL_TAP_TAKE;
		there |= push->rules[i].action == PL_TAP_SKIP &&
			 memcmp(&rule, &s.rules[0], sizeof(rule)) == 0;
	}
	done(&s);
	return there;
}

/* Lists the parts of a filter, joined by `and`, that rules cannot express completely. */
static void put_rest(const struct pl_query_push *push, const struct stage *stage,
	const struct node *node, bool pkt64, struct pl_buf *out)
{
	struct set s;

	if (node->op == N_AND) {
		put_rest(push, stage, node->a, pkt64, out);
		put_rest(push, stage, node->b, pkt64, out);
		return;
	}
	s = over(node, false, pkt64);
	if (!s.exact && !is_excluded(push, node, pkt64)) {
		pl_buf_printf(out, "    step %u, filter ", stage->number + 1);
		pl_query_put_node(out, node);
		pl_buf_chr(out, '\n');
	}
	done(&s);
}

void pl_query_push_rest(const struct pl_query *query, bool pkt64, struct pl_buf *out)
{
	struct pl_query_push push;

	pl_query_push(query, pkt64, &push);
	for (uint32_t i = 0; i < query->n_stages; i++) {
		const struct stage *stage = query->stages[i];

		for (uint32_t k = 0; is_scan(stage) && k < stage->n_where; k++)
			put_rest(&push, stage, stage->where[k], pkt64, out);
	}
}
