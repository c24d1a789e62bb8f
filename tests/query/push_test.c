/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of filters: those of known questions, and of random conditions over random records, where no
 * rule may refuse a record that the condition accepts, and rules that say that they are exact accept
 * no other one. The condition is asked of the query itself, which evaluates it without rules.
 */
#include "lang/push.h"
#include "query/query.h"

#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"

#define SEEDS   4000
#define RECORDS 400

static struct pl_rng rng;

static unsigned int below(unsigned int n)
{
	return (unsigned int)pl_rng_below(&rng, n);
}

/* ---- known questions ---- */

static const struct {
	const char *question;
	uint32_t rules; /* 0: all packets */
	bool exact;
} known[] = {
	{ "SELECT * FROM packets", 0, true },
	{ "SELECT * FROM packets WHERE tcp", 2, true },
	{ "SELECT * FROM packets WHERE icmp", 3, true },
	{ "SELECT * FROM packets WHERE not icmp", 2, false },
	{ "SELECT * FROM packets WHERE udp and not (dst in (10.0.0.0/8, fd00::/8))", 4, false },
	{ "SELECT * FROM packets WHERE udp and not (dst in (10.0.0.0/8) and ttl < 9)", 2, false },
	{ "WITH a AS (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE proto != 6 GROUP BY dst), "
	  "b AS (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE proto != 17 GROUP BY dst) "
	  "SELECT a.dst, a.n + b.n AS n FROM a JOIN b ON dst",
		0, false },
	{ "SELECT * FROM packets WHERE tcp and dport in (22, 80, 443)", 4, true },
	{ "SELECT * FROM packets WHERE src in (10.0.0.0/8, fd00::/8) and out", 3, true },
	{ "SELECT * FROM packets WHERE src = 10.0.0.1 and dst != 10.0.0.2", 3, false },
	{ "SELECT * FROM packets WHERE dport != 22", 3, true },
	{ "SELECT * FROM packets WHERE not (dport >= 22 and dport <= 80)", 3, true },
	{ "SELECT * FROM packets WHERE tcp_flags & 2 > 0", 2, true },
	{ "SELECT * FROM packets WHERE tcp_flags & 18 != 2", 3, true },
	{ "SELECT * FROM packets WHERE dport = 70000", 1, true },
	{ "SELECT * FROM packets WHERE udp and tcp", 1, true },
	{ "SELECT * FROM packets WHERE wire_len > 70000", 1, true },
	{ "SELECT * FROM packets WHERE udp and pay_len * 2 > wire_len", 2, false },
	{ "SELECT * FROM packets WHERE udp or pay_len * 2 > wire_len", 0, false },
	{ "SELECT * FROM packets WHERE ttl < 5", 0, false },
	{ "SELECT * FROM packets WHERE rule", 0, false },
	{ "SELECT * FROM packets96 WHERE vlan = 7 and pay_len > 0", 2, true },
	{ "SELECT dst, count(*) AS n FROM packets WHERE syn_only GROUP BY dst", 2, true },
	/* One branch wants all. */
	{ "WITH a AS (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY dst), "
	  "b AS (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE tcp GROUP BY dst) "
	  "SELECT a.dst, a.n + b.n AS n FROM a JOIN b ON dst",
		0, true },
	{ "WITH a AS (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE udp GROUP BY dst), "
	  "b AS (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE tcp GROUP BY dst) "
	  "SELECT a.dst, a.n + b.n AS n FROM a JOIN b ON dst",
		3, true },
	/* Each side of a join of records has a filter of its own. */
	{ "SELECT a.src FROM packets96 AS a JOIN packets96 AS b ON a.flow_hash = b.flow_hash "
	  "WITHIN 100ms WHERE a.out and not b.out and a.ttl > b.ttl",
		3, true },
	{ "SELECT a.src FROM packets AS a ANTI JOIN (SELECT * FROM packets WHERE tcp) AS b "
	  "ON a.src = b.dst WITHIN 100ms WHERE a.udp",
		3, true },
	/* The flow cache needs all packets, and DNS messages are not the tap's. */
	{ "SELECT * FROM flows WHERE tcp", 0, false },
	{ "SELECT * FROM dns WHERE qtype = 1", 0, false },
};

static void test_known(void)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct pl_diag diag = { .text = "" };
		struct pl_query_push push;
		struct pl_query *query;

		if (pl_query_parse(&query, known[i].question, &diag) < 0) {
			ok(false, "%s: %s", known[i].question, diag.text);
			continue;
		}
		pl_query_push(query, false, &push);
		ok(push.n == known[i].rules && push.exact == known[i].exact,
			"%s: %u rules, %s; there should be %u", known[i].question, push.n,
			push.exact ? "exact" : "not exact", known[i].rules);
		pl_query_free(query);
	}
}

/* ---- random conditions ---- */

static const char *const numbers[] = { "sport", "dport", "wire_len", "pay_len", "proto",
	"tcp_flags", "vlan", "obs", "point", "ttl", "tcp_opts" };
static const char *const words[] = { "tcp", "udp", "icmp", "syn", "fin", "rst", "syn_only",
	"syn_ack", "ack_only", "out", "is_fragment", "truncated", "rule", "true", "false" };
static const char *const prefixes[] = { "0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/30", "10.0.0.4/31",
	"10.0.0.3/32", "fd00::/8", "fe00::/7", "fd00::4/126", "::/0", "8000::/1" };
static const char *const addresses[] = { "10.0.0.1", "10.0.0.3", "10.0.0.5", "192.168.1.1",
	"fd00::1", "fd00::5", "fe80::1", "::" };

static uint64_t value(void)
{
	static const uint64_t some[] = { 0, 1, 2, 3, 6, 7, 16, 17, 18, 22, 23, 58, 64, 80, 255, 256,
		443, 1023, 1024, 4096, 65534, 65535, 65536, UINT32_MAX, UINT64_MAX };

	return some[below(25)];
}

static void condition(char **to, unsigned int depth)
{
	static const char *const signs[] = { "=", "!=", "<", "<=", ">", ">=" };
	const char *side = below(2) ? "src" : "dst";

	if (depth > 0 && below(3) > 0) {
		const bool both = below(2);

		*to += sprintf(*to, below(4) == 0 ? "not (" : "(");
		condition(to, depth - 1);
		*to += sprintf(*to, both ? " and " : " or ");
		condition(to, depth - 1);
		*to += sprintf(*to, ")");
		return;
	}
	switch (below(8)) {
	case 0:
	case 1:
		*to += sprintf(*to, "%s%s", below(3) ? "" : "not ", words[below(15)]);
		break;
	case 2:
		*to += sprintf(
			*to, "%s in (%s, %s)", side, prefixes[below(10)], prefixes[below(10)]);
		break;
	case 3:
		*to += sprintf(*to, "%s %s %s", side, below(2) ? "=" : "!=", addresses[below(8)]);
		break;
	case 4:
		*to += sprintf(*to, "%s & %" PRIu64 " %s %" PRIu64, numbers[below(11)], value(),
			signs[below(6)], value());
		break;
	case 5:
		*to += sprintf(
			*to, "%" PRIu64 " %s %s", value(), signs[below(6)], numbers[below(11)]);
		break;
	case 6:
		*to += sprintf(
			*to, "%s + %s > %" PRIu64, numbers[below(11)], numbers[below(11)], value());
		break;
	default:
		*to += sprintf(*to, "%s %s %" PRIu64, numbers[below(11)], signs[below(6)], value());
		break;
	}
}

static struct pl_pkt96 record(uint32_t number)
{
	static const uint8_t protocols[] = { 6, 6, 6, 17, 17, 1, 58, 0, 255 };
	static const uint16_t bits[] = { 0, 0, PL_OBS_OUT, PL_OBS_FRAGMENT, PL_OBS_TRUNCATED };
	struct pl_pkt96 r = { .record_seq = number,
		.ts_ns = 1000,
		.sport = (uint16_t)(value() + below(3) - 1),
		.dport = (uint16_t)(value() + below(3) - 1),
		.wire_len = (uint16_t)(value() + below(3) - 1),
		.pay_len = (uint16_t)(value() + below(3) - 1),
		.ttl = (uint8_t)value(),
		.proto = protocols[below(9)],
		.tcp_flags = (uint8_t)(below(3) ? below(32) : below(256)),
		.tcp_opts = (uint16_t)value(),
		.vlan = (uint16_t)(below(2) ? 0 : value()),
		.obs = (uint16_t)(bits[below(5)] | (below(2) ? 0 : value() % 1024)) };

	for (int i = 0; i < 2; i++) {
		struct pl_addr *addr = i ? &r.dst : &r.src;
		unsigned int prefix_bits;

		if (below(2))
			(void)pl_parse_addr(addresses[below(8)], addr);
		else
			(void)pl_parse_prefix(prefixes[below(10)], addr, &prefix_bits);
		if (below(2))
			addr->b[15] = (uint8_t)below(8);
		if (below(8) == 0)
			addr->b[0] ^= (uint8_t)(1 << below(8));
	}
	return r;
}

static bool accepted[RECORDS];

static void take_row(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	accepted[row->values[0].u] = true;
}

static bool taken(const struct pl_query_push *push, const struct pl_pkt96 *r)
{
	for (uint32_t i = 0; i < push->n; i++) {
		if (pl_tap_rule_matches(&push->rules[i], r))
			return push->rules[i].action == PL_TAP_TAKE;
	}
	return true;
}

struct sums {
	uint64_t pushed, exact, records, taken, accepted;
};

/* The number of records that were decided wrong. */
static uint32_t one_seed(uint64_t seed, struct sums *sums)
{
	static struct pl_pkt96 records[RECORDS];
	const struct pl_query_config config = { .max_groups = 16 };
	char text[PL_QUERY_TEXT_MAX] = "SELECT record_seq FROM packets96 WHERE ", *end;
	struct pl_diag diag = { .text = "" };
	struct pl_query_push push;
	struct pl_query_run *run;
	struct pl_query *query;
	uint32_t wrong = 0;

	pl_rng_seed(&rng, seed);
	end = text + strlen(text);
	condition(&end, 1 + below(4));
	if (pl_query_parse(&query, text, &diag) < 0 ||
		pl_query_run_new(&run, query, &config, take_row, NULL, &diag) < 0) {
		printf("# %s: %s\n", text, diag.text);
		return 1;
	}
	memset(accepted, 0, sizeof(accepted));
	for (uint32_t i = 0; i < RECORDS; i++)
		records[i] = record(i);
	(void)pl_query_feed(run, PL_FLAT_PKT96, records, RECORDS, 0);
	pl_query_finish(run);
	pl_query_push(query, false, &push);
	sums->pushed += push.n > 0;
	sums->exact += push.exact;
	for (uint32_t i = 0; i < RECORDS; i++) {
		const bool one = taken(&push, &records[i]);

		sums->records++;
		sums->taken += one;
		sums->accepted += accepted[i];
		wrong += accepted[i] && !one;
		wrong += push.exact && one && !accepted[i];
	}
	if (wrong > 0)
		printf("# seed %" PRIu64 ": %u records wrong, %u rules, %s: %s\n", seed, wrong,
			push.n, push.exact ? "exact" : "not exact", text);
	pl_query_run_free(run);
	pl_query_free(query);
	return wrong;
}

static void test_random(void)
{
	struct sums sums = { 0 };
	uint32_t wrong = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		wrong += one_seed(seed, &sums) > 0;
	eq(wrong, 0, "%d conditions over %d records each", SEEDS, RECORDS);
	ok(sums.pushed > SEEDS / 4 && sums.exact > SEEDS / 4,
		"%" PRIu64 " have rules, %" PRIu64 " are said whole", sums.pushed, sums.exact);
	ok(sums.taken < sums.records / 4 * 3 && sums.accepted < sums.taken,
		"%" PRIu64 " of %" PRIu64 " records are taken, %" PRIu64 " accepted", sums.taken,
		sums.records, sums.accepted);
}

/* ---- bounds ---- */

/* More alternatives than there may be rules, and a long chain of conditions. */
static void test_bounds(void)
{
	char text[PL_QUERY_TEXT_MAX], *end = text;
	struct pl_diag diag = { .text = "" };
	struct pl_query_push push;
	struct pl_query *query;
	uint32_t n = 0;

	end += sprintf(end, "SELECT * FROM packets WHERE udp and dport in (0");
	for (int i = 1; i < 64; i++)
		end += sprintf(end, ", %d", 2 * i);
	sprintf(end, ")");
	eq(pl_query_parse(&query, text, &diag), 0, "64 ports: %s", diag.text);
	pl_query_push(query, false, &push);
	ok(push.n == 2 && !push.exact, "64 ports: %u rules, the protocol alone", push.n);
	pl_query_free(query);

	end = text + sprintf(text, "SELECT * FROM packets WHERE tcp");
	for (; end - text < PL_QUERY_TEXT_MAX - 32 && n < 500; n++)
		end += sprintf(end, " and dport > %u", n);
	eq(pl_query_parse(&query, text, &diag), 0, "a long chain: %s", diag.text);
	pl_query_push(query, false, &push);
	ok(push.n == 2 && push.exact && push.rules[0].dport.low == n, "a long chain: %u rules",
		push.n);
	pl_query_free(query);
}

/* Of a tap with short records what stands behind them does not choose. */
static void test_short_records(void)
{
	struct pl_query_push push;
	struct pl_buf rest;
	struct pl_query *query;

	pl_buf_init(&rest);
	eq(pl_query_parse(&query, "SELECT * FROM packets96 WHERE vlan = 0 and tcp", NULL), 0);
	pl_query_push(query, true, &push);
	ok(push.n == 2 && !push.exact && push.rules[0].vlan_mask == 0, "pkt64 has no VLAN");
	pl_query_push_rest(query, true, &rest);
	streq(rest.data != NULL ? rest.data : "", "    step 1, filter vlan = 0\n",
		"what the rules do not say");
	pl_buf_done(&rest);
	pl_query_free(query);
}

int main(void)
{
	test_known();
	test_random();
	test_bounds();
	test_short_records();
	return pl_test_done();
}
