/* SPDX-License-Identifier: BSD-2-Clause */
/* A compiled filter expression: matching with records, and its text. */
#include "record/where.h"

#include <stdlib.h>
#include <string.h>

#include "record/where_state.h"

void pl_where_free(struct pl_where *where)
{
	if (where == NULL)
		return;
	for (size_t i = 0; i < where->n; i++)
		free(where->steps[i].text);
	free(where->steps);
	free(where);
}

/* ---- matching ---- */

static bool in_prefix(const struct pl_addr *addr, const struct pl_addr *prefix, unsigned int bits)
{
	unsigned int whole = bits / 8, left = bits % 8;

	if (memcmp(addr->b, prefix->b, whole) != 0)
		return false;
	return left == 0 || ((addr->b[whole] ^ prefix->b[whole]) >> (8 - left)) == 0;
}

static bool holds(enum compare compare, bool less, bool equal)
{
	switch (compare) {
	case EQ:
		return equal;
	case NE:
		return !equal;
	case LT:
		return less;
	case LE:
		return less || equal;
	case GT:
		return !less && !equal;
	case GE:
		return !less;
	default:
		return false;
	}
}

static bool satisfies(const struct step *s, const void *record, uint32_t present)
{
	/* An unknown time is 0 in conditions, as in queries. */
	bool has = s->field->present == 0 || (present & s->field->present) != 0;
	const struct pl_addr *addr;
	uint64_t v;

	if (s->compare == EXISTS)
		return has;
	if (s->compare == MISSING)
		return !has;
	if (!has)
		return false;
	if (s->field->form == PL_FORM_ADDR) {
		addr = (const struct pl_addr *)((const uint8_t *)record + s->field->offset);
		if (s->compare == IN)
			return in_prefix(addr, &s->addr, s->prefix_bits);
		return pl_addr_equal(addr, &s->addr) == (s->compare == EQ);
	}
	/* Texts of rows may be longer than those of records. */
	if (s->field->form == PL_FORM_TEXT)
		return (strncmp((const char *)record + s->field->offset, s->text,
				strlen(s->text) + 1) == 0) == (s->compare == EQ);
	v = put_load(s->field, record);
	if (s->compare == FLAG)
		return ((v & s->mask) != 0) == (s->value != 0);
	if (s->field->form == PL_FORM_S64)
		return holds(
			(enum compare)s->compare, (int64_t)v < (int64_t)s->value, v == s->value);
	return holds((enum compare)s->compare, v < s->value, v == s->value);
}

static bool test(const struct step *s, const void *record, uint32_t present,
	const struct pl_hop *hops, size_t n)
{
	if (!s->of_hops)
		return satisfies(s, record, present);
	for (size_t i = 0; i < n; i++) {
		if (satisfies(s, &hops[i], hops[i].present) != s->all)
			return !s->all;
	}
	return s->all && n > 0;
}

static bool each_hop(const struct pl_where *where, size_t from, const struct step *s,
	const struct pl_hop *hops, size_t n);

/* The steps [from, to) of a path and its hops, or (hops NULL, n 0) of a flat record, which a hop is
 * too. */
static bool run(const struct pl_where *where, size_t from, size_t to, const void *record,
	uint32_t present, const struct pl_hop *hops, size_t n)
{
	bool truth = false;

	for (size_t i = from; i < to;) {
		const struct step *s = &where->steps[i];

		i++;
		switch ((enum op)s->op) {
		case OP_TEST:
			truth = test(s, record, present, hops, n);
			break;
		case OP_NOT:
			truth = !truth;
			break;
		case OP_SKIP_IF_FALSE:
			i = truth ? i : s->target;
			break;
		case OP_SKIP_IF_TRUE:
			i = truth ? s->target : i;
			break;
		case OP_EACH_HOP:
			truth = each_hop(where, i, s, hops, n);
			i = s->target;
			break;
		}
	}
	return truth;
}

static bool each_hop(const struct pl_where *where, size_t from, const struct step *s,
	const struct pl_hop *hops, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (run(where, from, s->target, &hops[i], hops[i].present, NULL, 0) != s->all)
			return !s->all;
	}
	return s->all && n > 0;
}

bool pl_where_match(const struct pl_where *where, const struct pl_path *path,
	const struct pl_hop *hops, size_t n)
{
	return run(where, 0, where->n, path, path->present, hops, n);
}

bool pl_where_match_row(const struct pl_where *where, const void *row, uint32_t present)
{
	return run(where, 0, where->n, row, present, NULL, 0);
}

const char *pl_where_help(void)
{
	return "Filter expressions (--where) select records.\n"
	       "\n"
	       "  FIELD == VALUE         also != < <= > >=; words, addresses and ids: == and != only\n"
	       "  FIELD in PREFIX        addresses: flow.src in 10.0.0.0/8\n"
	       "  flags.NAME             the flag is set\n"
	       "  exists(FIELD)          the record has a value; missing(FIELD): it has none\n"
	       "  any hop (X)            one hop satisfies all of X, whose names are those of a hop\n"
	       "  all hops (X)           every hop satisfies X\n"
	       "  all TEST               every hop satisfies a test of a hops. field\n"
	       "  not X, X and Y, X or Y not binds tightest, then and, then or; parentheses group\n"
	       "\n"
	       "FIELD is a name from \"pathline help fields\". A test of a hops. field is true when any\n"
	       "hop satisfies it, each test with a hop of its own: hops.node == 5 and hops.queue_depth > 50\n"
	       "is true when one hop is node 5 and one hop, perhaps another, has a deep queue. To test\n"
	       "one and the same hop, write any hop (node == 5 and queue_depth > 50). VALUE is a number (123, 0x7b, -5), a time for fields in ns (50us, 1.5ms,\n"
	       "or plain ns), a word (md, 2.0, geant), an address, or hexadecimal digits for an id.\n"
	       "Quotes around a value are allowed.\n"
	       "\n"
	       "A missing value satisfies no comparison, not even !=; it satisfies not (FIELD == VALUE).\n"
	       "A path without hops satisfies no test of a hops. field, with all or all hops neither.\n"
	       "\n"
	       "  hops.queue_depth > 100 and flow.dport == 443\n"
	       "  any hop (node == 5 and queue_depth > 50) and flow.dport == 443\n"
	       "  flags.dropped or all hops.hop_latency_ns > 50us\n"
	       "  flow.src in 10.0.0.0/8 and not (mode == md or missing(flow.vlan))\n";
}
