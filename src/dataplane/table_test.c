/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables against a model that compares every entry field by field. */
#include "dataplane/table.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"

#define SEEDS   4000
#define ENTRIES 40
#define PACKETS 60

/* ---- the model: what an entry says, as its writer thinks of it ---- */

struct said {
	bool any;
	uint64_t value[2], mask[2]; /* exact, prefix, ternary */
	unsigned int bits;          /* prefix */
	uint64_t first, last, offset, width, period;
};

struct model_entry {
	uint32_t priority;
	struct said fields[PL_DP_FIELDS_MAX];
};

struct model {
	struct pl_rng rng;
	struct pl_dp_key key;
	struct model_entry entries[ENTRIES];
	struct pl_dp_entry table[ENTRIES];
	size_t n;
};

static uint64_t below(struct model *m, uint64_t n)
{
	return pl_rng_below(&m->rng, n);
}

static const struct {
	const char *text;
	enum pl_dp_field field;
	enum pl_dp_match_kind kind;
} pool[] = {
	{ "port.in exact", PL_DP_FIELD_IN_PORT, PL_DP_EXACT },
	{ "ip.dst prefix", PL_DP_FIELD_IP_DST, PL_DP_PREFIX },
	{ "ip.src ternary", PL_DP_FIELD_IP_SRC, PL_DP_TERNARY },
	{ "l4.dst range", PL_DP_FIELD_L4_DST, PL_DP_RANGE },
	{ "tcp.flags ternary", PL_DP_FIELD_TCP_FLAGS, PL_DP_TERNARY },
	{ "time window", PL_DP_FIELD_TIME, PL_DP_WINDOW },
	{ "eth.dst exact", PL_DP_FIELD_ETH_DST, PL_DP_EXACT },
	{ "mark range", PL_DP_FIELD_MARK, PL_DP_RANGE },
	{ "vlan.id prefix", PL_DP_FIELD_VLAN_ID, PL_DP_PREFIX },
	{ "time ternary", PL_DP_FIELD_TIME, PL_DP_TERNARY },
};

#define POOL (sizeof(pool) / sizeof(pool[0]))

/* Draws from few values, so that entries overlap. */
static void draw_value(struct model *m, enum pl_dp_field f, uint64_t ret[2])
{
	ret[1] = 0;
	if (pl_dp_fields[f].words == 2) {
		ret[0] = 0;
		ret[1] = UINT64_C(0xffff0a000000) | below(m, 4) << 16 | below(m, 2) << 8 |
			 below(m, 4);
		if (below(m, 4) == 0) {
			ret[0] = UINT64_C(0xfd00000000000000) | below(m, 3);
			ret[1] = below(m, 3);
		}
	} else if (f == PL_DP_FIELD_TIME) {
		ret[0] = below(m, 4000);
	} else {
		ret[0] = below(m, 7);
	}
}

static uint64_t top_ones(unsigned int width, unsigned int bits)
{
	uint64_t mask = 0;

	for (unsigned int i = 0; i < bits && i < width; i++)
		mask |= UINT64_C(1) << (width - 1 - i);
	return mask;
}

static void draw_field(struct model *m, unsigned int i, struct said *ret)
{
	const enum pl_dp_field f = (enum pl_dp_field)m->key.fields[i].field;
	const struct pl_dp_field_info *info = &pl_dp_fields[f];

	*ret = (struct said){ 0 };
	draw_value(m, f, ret->value);
	switch ((enum pl_dp_match_kind)m->key.fields[i].kind) {
	case PL_DP_EXACT:
		ret->mask[0] = ret->mask[1] = UINT64_MAX;
		return;
	case PL_DP_PREFIX:
		ret->any = below(m, 6) == 0;
		if (info->words == 2) {
			ret->bits = (unsigned int)(below(m, 2) == 0 ? 96 + below(m, 33)
								    : below(m, 129));
			ret->mask[0] = top_ones(64, ret->bits);
			ret->mask[1] = ret->bits > 64 ? top_ones(64, ret->bits - 64) : 0;
		} else {
			ret->bits = (unsigned int)below(m, info->bits + 1u);
			ret->mask[0] = top_ones(info->bits, ret->bits);
		}
		break;
	case PL_DP_TERNARY:
		ret->any = below(m, 4) == 0;
		ret->mask[0] = below(m, 8);
		ret->mask[1] = info->words == 2 ? UINT64_C(0xffffff000000) | below(m, 4) << 16 : 0;
		break;
	case PL_DP_RANGE:
		ret->any = below(m, 4) == 0;
		ret->first = below(m, 7);
		ret->last = ret->first + below(m, 3);
		return;
	case PL_DP_WINDOW:
		ret->any = below(m, 4) == 0;
		ret->period = 1 + below(m, 2000);
		ret->offset = below(m, ret->period);
		ret->width = 1 + below(m, ret->period);
		return;
	}
	ret->value[0] &= ret->mask[0];
	ret->value[1] &= ret->mask[1];
}

static void put_address(const uint64_t value[2], struct pl_buf *out)
{
	for (unsigned int i = 0; i < 8; i++)
		pl_buf_printf(out, "%s%x", i > 0 ? ":" : "",
			(unsigned int)(value[i / 4] >> (48 - i % 4 * 16) & 0xffff));
}

static void put_said(
	const struct model *m, unsigned int i, const struct said *s, struct pl_buf *out)
{
	const enum pl_dp_field f = (enum pl_dp_field)m->key.fields[i].field;
	const bool addr = pl_dp_fields[f].words == 2;

	if (s->any)
		return;
	pl_buf_printf(out, " %s=", pl_dp_fields[f].name);
	switch ((enum pl_dp_match_kind)m->key.fields[i].kind) {
	case PL_DP_RANGE:
		pl_buf_printf(out, "%" PRIu64 "-%" PRIu64, s->first, s->last);
		return;
	case PL_DP_WINDOW:
		pl_buf_printf(out, "%" PRIu64 "ns+%" PRIu64 "ns/%" PRIu64 "ns", s->offset, s->width,
			s->period);
		return;
	case PL_DP_EXACT:
	case PL_DP_PREFIX:
	case PL_DP_TERNARY:
		break;
	}
	if (addr)
		put_address(s->value, out);
	else
		pl_buf_printf(out, "%#" PRIx64, s->value[0]);
	if (m->key.fields[i].kind == PL_DP_PREFIX)
		pl_buf_printf(out, "/%u", s->bits);
	if (m->key.fields[i].kind == PL_DP_TERNARY) {
		pl_buf_chr(out, '&');
		if (addr)
			put_address(s->mask, out);
		else
			pl_buf_printf(out, "%#" PRIx64, s->mask[0]);
	}
}

static bool field_matches(
	const struct model *m, unsigned int i, const struct said *s, const uint64_t *words)
{
	const uint64_t *v = words + m->key.fields[i].at;
	const unsigned int n = pl_dp_fields[m->key.fields[i].field].words;

	if (s->any)
		return true;
	switch ((enum pl_dp_match_kind)m->key.fields[i].kind) {
	case PL_DP_RANGE:
		return *v >= s->first && *v <= s->last;
	case PL_DP_WINDOW:
		/* A window matches if it begins at or before the time and ends after it. */
		for (uint64_t k = 0; k < s->width; k++) {
			if ((s->offset + k) % s->period == *v % s->period)
				return true;
		}
		return false;
	case PL_DP_EXACT:
	case PL_DP_PREFIX:
	case PL_DP_TERNARY:
		break;
	}
	for (unsigned int w = 0; w < n; w++) {
		if ((v[w] & s->mask[w]) != s->value[w])
			return false;
	}
	return true;
}

/* Returns the prefix length, -1 without a prefix, which ranks below an empty one. */
static int prefix_of(const struct model *m, size_t e)
{
	for (unsigned int i = 0; i < m->key.n; i++) {
		if (m->key.fields[i].kind == PL_DP_PREFIX)
			return m->entries[e].fields[i].any ? -1 : (int)m->entries[e].fields[i].bits;
	}
	return -1;
}

static const struct pl_dp_entry *find_slowly(const struct model *m, const uint64_t *words)
{
	const struct pl_dp_entry *best = NULL;
	uint32_t priority = 0;
	int prefix = 0;

	for (size_t e = 0; e < m->n; e++) {
		bool all = true;

		for (unsigned int i = 0; i < m->key.n; i++)
			all = all && field_matches(m, i, &m->entries[e].fields[i], words);
		if (!all || (best != NULL && (m->entries[e].priority < priority ||
						     (m->entries[e].priority == priority &&
							     prefix_of(m, e) <= prefix))))
			continue;
		best = &m->table[e];
		priority = m->entries[e].priority;
		prefix = prefix_of(m, e);
	}
	return best;
}

/* ---- random tables and packets ---- */

static void draw_key(struct model *m)
{
	const unsigned int n = 1 + (unsigned int)below(m, 4);

	m->key = (struct pl_dp_key){ 0 };
	/* Refused fields (one twice, a second prefix) are left out. */
	while (m->key.n == 0 || (m->key.n < n && below(m, 8) != 0))
		(void)pl_dp_key_add(&m->key, pool[below(m, POOL)].text, NULL);
}

/* Returns true when a field is in the key twice: a word of a match then means the first. */
static bool has_twice(const struct model *m)
{
	for (unsigned int i = 0; i < m->key.n; i++) {
		for (unsigned int k = 0; k < i; k++) {
			if (m->key.fields[i].field == m->key.fields[k].field)
				return true;
		}
	}
	return false;
}

static int draw_entries(struct model *m)
{
	int wrong = 0;

	m->n = below(m, ENTRIES + 1);
	for (size_t e = 0; e < m->n; e++) {
		struct model_entry *entry = &m->entries[e];
		struct pl_buf text, again;
		struct pl_dp_match reread;
		struct pl_diag diag = { .text = "" };

		pl_buf_init(&text);
		pl_buf_init(&again);
		entry->priority = (uint32_t)(below(m, 3) * 10);
		if (entry->priority != 0)
			pl_buf_printf(&text, "priority %u", entry->priority);
		for (unsigned int i = 0; i < m->key.n; i++) {
			draw_field(m, i, &entry->fields[i]);
			put_said(m, i, &entry->fields[i], &text);
		}
		m->table[e] = (struct pl_dp_entry){ .serial = e };
		if (pl_dp_match_parse(&m->key, text.data != NULL ? text.data : "", text.len,
			    &m->table[e].match, &diag) < 0) {
			printf("# %s: %s\n", text.data, diag.text);
			wrong++;
		}
		/* The written text is parsed to an equal match. */
		pl_dp_match_put(&m->key, &m->table[e].match, &again);
		if (pl_dp_match_parse(&m->key, again.data != NULL ? again.data : "", again.len,
			    &reread, &diag) < 0 ||
			!pl_dp_match_equal(&m->key, &reread, &m->table[e].match)) {
			printf("# \"%s\" became \"%s\"\n", text.data, again.data);
			wrong++;
		}
		pl_buf_done(&text);
		pl_buf_done(&again);
	}
	return wrong;
}

static void test_model(void)
{
	static struct model m;
	struct pl_dp_entry *entries[ENTRIES];
	int misread = 0, wrong = 0;
	uint64_t hits = 0, misses = 0;

	for (unsigned int seed = 1; seed <= SEEDS; seed++) {
		struct pl_dp_lookup *l = NULL;

		pl_rng_seed(&m.rng, seed);
		do
			draw_key(&m);
		while (has_twice(&m));
		misread += draw_entries(&m);
		for (size_t e = 0; e < m.n; e++)
			entries[e] = &m.table[e];
		if (pl_dp_lookup_new(&l, &m.key, entries, m.n) < 0)
			break;
		for (unsigned int k = 0; k < PACKETS; k++) {
			uint64_t words[PL_DP_KEY_WORDS_MAX] = { 0 };
			const struct pl_dp_entry *want, *got;

			for (unsigned int i = 0; i < m.key.n; i++) {
				uint64_t v[2];

				draw_value(&m, (enum pl_dp_field)m.key.fields[i].field, v);
				memcpy(words + m.key.fields[i].at, v,
					8 * pl_dp_fields[m.key.fields[i].field].words);
			}
			want = find_slowly(&m, words);
			got = pl_dp_lookup_find(l, words);
			if (got != want && wrong++ == 0)
				printf("# seed %u, packet %u\n", seed, k);
			hits += want != NULL;
			misses += want == NULL;
		}
		pl_dp_lookup_free(l);
	}
	eq(misread, 0, "every entry is read, and written so that it is read again");
	eq(wrong, 0, "every packet finds the entry of the model");
	ok(hits > 20000 && misses > 20000, "%" PRIu64 " hits, %" PRIu64 " misses", hits, misses);
}

/* ---- text ---- */

static void test_refused(void)
{
	static const struct {
		const char *key[3], *match, *says;
	} cases[] = {
		{ { "ip.dts prefix" }, NULL, "did you mean \"ip.dst\"?" },
		{ { "ip.dst prefxi" }, NULL, "did you mean \"prefix\"?" },
		{ { "ip.dst prefix", "ip.src prefix" }, NULL, "one prefix field at most" },
		{ { "ip.dst exact", "ip.dst exact" }, NULL, "twice in the key" },
		{ { "l4.dst window" }, NULL, "of the field time only" },
		{ { "ip.dst range" }, NULL, "has no ranges" },
		{ { "port.in exact" }, "", "which is an exact field" },
		{ { "port.in exact" }, "port.in=70000", "16 bits" },
		{ { "port.in exact" }, "port.in=one", "not a value of port.in" },
		{ { "port.in exact" }, "port.in=1 port.in=2", "twice in the entry" },
		{ { "port.in exact" }, "mark=1", "not in the key" },
		{ { "port.in exact" }, "port.in", "not FIELD=VALUE" },
		{ { "port.in exact" }, "priority x port.in=1", "behind priority" },
		{ { "ip.dst prefix" }, "ip.dst=10.0.0.1/24", "outside of its mask" },
		{ { "ip.dst prefix" }, "ip.dst=10.0.0.0/33", "not a length" },
		{ { "ip.dst prefix" }, "ip.dst=10.0.0/8", "not an address" },
		{ { "l4.dst range" }, "l4.dst=9-8", "ends before it begins" },
		{ { "l4.dst ternary" }, "l4.dst=3&1", "outside of its mask" },
		{ { "time window" }, "time=1s+1s/1s", "not a window" },
		{ { "time window" }, "time=0s+2s/1s", "not a window" },
		{ { "time window" }, "time=0s+1s/0s", "not a window" },
		{ { "time window" }, "time=0s", "not a window" },
		{ { "eth.dst exact" }, "eth.dst=02:00:00:00:00", "not a value of eth.dst" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_dp_key key = { 0 };
		struct pl_dp_match match;
		struct pl_diag diag = { .text = "" };
		int r = 0;

		for (unsigned int k = 0; k < 3 && cases[i].key[k] != NULL && r == 0; k++)
			r = pl_dp_key_add(&key, cases[i].key[k], &diag);
		if (r == 0 && cases[i].match != NULL)
			r = pl_dp_match_parse(
				&key, cases[i].match, strlen(cases[i].match), &match, &diag);
		ok(r == -EINVAL && strstr(diag.text, cases[i].says) != NULL, "%s: %s",
			cases[i].says, diag.text);
	}
}

static void test_written(void)
{
	static const struct {
		const char *key, *match, *again, *more;
	} cases[] = {
		{ "ip.dst prefix", "  ip.dst=10.1.0.0/16 ", "ip.dst=10.1.0.0/16" },
		{ "ip.dst prefix", "ip.dst=0.0.0.0/0", "ip.dst=0.0.0.0/0" },
		{ "ip.dst prefix", "ip.dst=fd00::/8", "ip.dst=fd00::/8" },
		{ "ip.dst prefix", "", "" },
		{ "ip.src ternary", "priority 7 ip.src=10.0.0.1", "priority 7 ip.src=10.0.0.1" },
		/* The mask is of IPv4 addresses only, as a prefix is. */
		{ "ip.src ternary", "ip.src=10.0.0.0&255.0.0.0", "ip.src=10.0.0.0/8" },
		{ "ip.src ternary", "ip.src=10.0.0.7&255.0.0.255", "ip.src=10.0.0.7&255.0.0.255" },
		{ "tcp.flags ternary", "tcp.flags=0x2&0x12", "tcp.flags=2&18" },
		{ "time window", "time=250ms+0.25s/1s", "time=250ms+250ms/1s" },
		{ "eth.dst exact", "eth.dst=02:00:00:00:AA:01", "eth.dst=02:00:00:00:aa:01" },
		{ "l4.dst range", "l4.dst=80", "l4.dst=80-80" },
		/* If the first were left out, the second would be parsed for it. */
		{ "ip.dst ternary", "ip.dst=::/0 ip.dst=10.0.0.0/8",
			"ip.dst=::/0 ip.dst=10.0.0.0/8", "ip.dst prefix" },
		{ "ip.dst ternary", "ip.dst=::/0", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_dp_key key = { 0 };
		struct pl_dp_match match;
		struct pl_diag diag = { .text = "" };
		struct pl_buf text;

		pl_buf_init(&text);
		eq(pl_dp_key_add(&key, cases[i].key, &diag), 0);
		if (cases[i].more != NULL)
			eq(pl_dp_key_add(&key, cases[i].more, &diag), 0);
		eq(pl_dp_match_parse(&key, cases[i].match, strlen(cases[i].match), &match, &diag),
			0, "%s %s", cases[i].match, diag.text);
		pl_dp_match_put(&key, &match, &text);
		streq(text.data != NULL ? text.data : "", cases[i].again, "written again: %s",
			cases[i].again);
		pl_buf_done(&text);
	}
}

int main(void)
{
	test_refused();
	test_written();
	test_model();
	return pl_test_done();
}
