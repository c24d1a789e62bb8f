/* SPDX-License-Identifier: BSD-2-Clause */
#include "tap/rules.h"

#include <errno.h>

#include "base/num.h"
#include "base/test.h"
#include "record/flow_hash.h"

static struct pl_pkt96 packet(const char *src, const char *dst, uint16_t sport, uint16_t dport)
{
	struct pl_pkt96 p = { .proto = 6,
		.sport = sport,
		.dport = dport,
		.vlan = 7,
		.tcp_flags = 18,
		.wire_len = 74,
		.pay_len = 6 };

	(void)pl_parse_addr(src, &p.src);
	(void)pl_parse_addr(dst, &p.dst);
	p.flow_hash = pl_flow_hash_packet(&p);
	return p;
}

/* The packet is 10.0.0.1:1000 > 10.9.0.2:443, TCP SYN and ACK, 74 bytes of which 6 are payload, VLAN
 * 7, at point 9, entering, unless the row says out. */
static const struct {
	const char *rule;
	bool out, match;
} conditions[] = {
	{ "skip", false, true },
	{ "skip src=10.0.0.1", false, true },
	{ "skip src=10.0.0.2", false, false },
	{ "skip src=10.9.0.2", false, false },
	{ "skip dst=10.9.0.0/16", false, true },
	{ "skip dst=10.0.0.0/16", false, false },
	{ "skip net=10.9.0.2", false, true },
	{ "skip net=10.0.0.1", false, true },
	{ "skip net=10.9.0.3", false, false },
	{ "skip net=2001:db8::/32", false, false },
	{ "skip sport=1000", false, true },
	{ "skip sport=443", false, false },
	{ "skip dport=443", false, true },
	{ "skip dport=444-65535", false, false },
	{ "skip dport=400-443", false, true },
	{ "skip port=443", false, true },
	{ "skip port=1000-1001", false, true },
	{ "skip port=444-999", false, false },
	{ "skip proto=tcp", false, true },
	{ "skip proto=6", false, true },
	{ "skip proto=udp", false, false },
	{ "skip proto=0", false, false },
	{ "skip flags=2", false, false },
	{ "skip flags=18", false, true },
	{ "skip flags=2/2", false, true },
	{ "skip flags=2/3", false, true },
	{ "skip flags=3/3", false, false },
	{ "skip flags=0/255", false, false },
	{ "skip length=74", false, true },
	{ "skip length=60-74", false, true },
	{ "skip length=75-65535", false, false },
	{ "skip length=0-73", false, false },
	{ "skip payload=6", false, true },
	{ "skip payload=1-65535", false, true },
	{ "skip payload=0", false, false },
	{ "skip payload=7-100", false, false },
	{ "skip payload=6 length=73", false, false },
	{ "skip vlan=7", false, true },
	{ "skip vlan=0", false, false },
	{ "skip dir=in", false, true },
	{ "skip dir=out", false, false },
	{ "skip dir=in", true, false },
	{ "skip dir=out", true, true },
	{ "skip point=9", false, true },
	{ "skip point=9", true, true },
	{ "skip point=8", true, false },
	{ "skip point=9 dir=in", true, false },
	{ "skip dir=out point=9", true, true },
	{ "skip net=10.9.0.3/31", false, true },
	{ "skip net=10.9.0.3/31 src=10.0.0.0/30", false, true },
	{ "skip dst=::/0", false, true },
	{ "skip proto=tcp dport=443 net=10.0.0.0/8 vlan=7", false, true },
	{ "skip proto=tcp dport=443 net=10.0.0.0/8 vlan=8", false, false },
};

static const struct {
	const char *rule, *says;
} wrong[] = {
	{ "", "begins with take, skip or mark" },
	{ "drop", "begins with take, skip or mark" },
	{ "port=3", "begins with take, skip or mark" },
	{ "take port", "write a condition as KEY=VALUE" },
	{ "take port=3 net=10.0.0.0/8 port=4", "the rule has 'port' twice" },
	{ "take protoc=tcp", "did you mean 'proto'" },
	{ "take colour=red", "is no condition" },
	{ "take port=", "port wants" },
	{ "take port=65536", "port wants" },
	{ "take port=5-4", "port wants" },
	{ "take port=5-", "port wants" },
	{ "take port=-5", "port wants" },
	{ "take src=10.0.0.0/33", "src wants" },
	{ "take src=ten", "src wants" },
	{ "take proto=256", "proto wants" },
	{ "take proto=sctpx", "proto wants" },
	{ "take vlan=4096", "vlan wants" },
	{ "take dir=both", "dir wants" },
	{ "take flags=syn", "flags wants" },
	{ "take flags=2/256", "flags wants" },
	{ "take flags=/2", "flags wants" },
	{ "take length=65536", "length wants" },
	{ "take length=9-8", "length wants" },
	{ "take payload=some", "payload wants" },
	{ "take payload=1-", "payload wants" },
	{ "take playload=1", "did you mean 'payload'" },
	{ "take contains=", "contains wants" },
	{ "take contains=a%2", "contains wants" },
	{ "take contains=%gg", "contains wants" },
	{ "take contains=123456789012345678901234567890123", "contains wants" },
	{ "take contains=zorro", "for taps of frames in user space" },
	{ "take contained=zorro", "did you mean 'contains'" },
	{ "take point=1024", "point wants" },
	{ "take sample=0", "sample wants" },
	{ "take sample=65536", "sample wants" },
	{ "take sample_flows=x", "sample_flows wants" },
	{ "take sample=256 sample_flows=256", "one packet in 65536" },
	{ "skip sample=10", "cannot sample" },
	{ "skip sample_flows=10", "cannot sample" },
};

static void test_conditions(void)
{
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
		struct pl_tap_rules rules = { 0 };
		struct pl_pkt96 p = packet("10.0.0.1", "10.9.0.2", 1000, 443);

		p.obs = 9 | (conditions[i].out ? PL_OBS_OUT : 0);
		eq(pl_tap_rules_add(&rules, conditions[i].rule, NULL), 0, "%s", conditions[i].rule);
		eq(pl_tap_rules_apply(&rules, &p) == PL_TAP_RULED_SKIP, conditions[i].match,
			"%s, %s", conditions[i].rule, conditions[i].out ? "leaving" : "entering");
	}
}

/* The payload is that of a packet of which 9 bytes are on the wire. */
static const struct {
	const char *rule, *payload;
	bool match, unseen;
} insides[] = {
	{ "skip contains=a", "abcdefghi", true, false },
	{ "skip contains=i", "abcdefghi", true, false },
	{ "skip contains=abcdefghi", "abcdefghi", true, false },
	{ "skip contains=abcdefghij", "abcdefghi", false, false },
	{ "skip contains=bd", "abcdefghi", false, false },
	{ "skip contains=A", "abcdefghi", false, false },
	{ "skip contains=%64%45", "abcdefghi", false, false },
	{ "skip contains=%64%65", "abcdefghi", true, false },
	{ "skip contains=hi", "abcdefgh", false, true },
	{ "skip contains=gh", "abcdefgh", true, false },
	{ "skip contains=a", "", false, true },
	{ "skip contains=a dport=444", "bcdefgh", false, false },
};

static void test_insides(void)
{
	for (size_t i = 0; i < sizeof(insides) / sizeof(insides[0]); i++) {
		struct pl_tap_rules rules = { .payloads = true };
		struct pl_pkt96 p = packet("10.0.0.1", "10.9.0.2", 1000, 443);
		const struct pl_cursor payload =
			pl_cursor((const uint8_t *)insides[i].payload, strlen(insides[i].payload));

		p.pay_len = 9;
		eq(pl_tap_rules_add(&rules, insides[i].rule, NULL), 0, "%s", insides[i].rule);
		eq(pl_tap_rules_apply_to(&rules, &p, payload) == PL_TAP_RULED_SKIP,
			insides[i].match, "%s in %s", insides[i].rule, insides[i].payload);
		eq(rules.unseen, insides[i].unseen, "%s in %s of 9 bytes: unseen", insides[i].rule,
			insides[i].payload);
	}
}

static void test_wrong(void)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct pl_tap_rules rules = { 0 };
		struct pl_diag diag = { .text = "" };

		eq(pl_tap_rules_add(&rules, wrong[i].rule, &diag), (uint64_t)-EINVAL, "'%s'",
			wrong[i].rule);
		ok(strstr(diag.text, wrong[i].says) != NULL && rules.n == 0, "'%s' says: %s",
			wrong[i].rule, diag.text);
	}
}

static void test_order(void)
{
	struct pl_tap_rules rules = { 0 };
	struct pl_pkt96 dns = packet("10.0.0.1", "10.9.0.2", 1000, 53),
			web = packet("10.0.0.1", "10.9.0.2", 1000, 443),
			other = packet("10.0.0.1", "10.9.0.2", 1000, 25);

	(void)pl_tap_rules_add(&rules, "mark port=53", NULL);
	(void)pl_tap_rules_add(&rules, "take port=443", NULL);
	eq(pl_tap_rules_apply(&rules, &other), PL_TAP_RULED_TAKE, "what no rule matches is taken");
	(void)pl_tap_rules_add(&rules, "skip", NULL);
	eq(pl_tap_rules_apply(&rules, &dns), PL_TAP_RULED_TAKE);
	eq(dns.obs, PL_OBS_RULE, "marked");
	eq(pl_tap_rules_apply(&rules, &web), PL_TAP_RULED_TAKE);
	eq(web.obs, 0, "not marked");
	eq(pl_tap_rules_apply(&rules, &other), PL_TAP_RULED_SKIP, "the last rule");
	for (uint32_t i = rules.n; i < PL_TAP_RULES_MAX; i++)
		(void)pl_tap_rules_add(&rules, "take", NULL);
	eq(pl_tap_rules_add(&rules, "take", NULL), (uint64_t)-E2BIG, "one too many");
}

static void test_sampling(void)
{
	struct pl_tap_rules packets = { 0 }, flows = { 0 };
	unsigned int taken = 0, kept = 0, split = 0, by_partition[8] = { 0 }, most = 0;

	(void)pl_tap_rules_add(&packets, "take sample=10", NULL);
	(void)pl_tap_rules_add(&flows, "take sample_flows=8", NULL);
	for (unsigned int i = 0; i < 8000; i++) {
		const uint16_t port = (uint16_t)(1024 + i);
		struct pl_pkt96 there = packet("10.0.0.1", "10.9.0.2", port, 443),
				back = packet("10.9.0.2", "10.0.0.1", 443, port);
		bool one, two;

		there.tcp_flags = back.tcp_flags = 0x10;
		one = pl_tap_rules_apply(&flows, &there) == PL_TAP_RULED_TAKE;
		two = pl_tap_rules_apply(&flows, &back) == PL_TAP_RULED_TAKE;

		split += one != two;
		kept += one;
		if (one) {
			by_partition[there.flow_hash % 8]++;
			split += there.obs != PL_OBS_SAMPLED;
		}
		taken += pl_tap_rules_apply(&packets, &there) == PL_TAP_RULED_TAKE;
	}
	eq(taken, 800, "every tenth packet");
	eq(split, 0, "both directions of a flow, or none; records say that they are a sample");
	/* Binomial, 8000 at 1/8: six standard deviations are 178. */
	ok(kept > 822 && kept < 1178, "one flow in eight: %u of 8000", kept);
	for (int i = 0; i < 8; i++)
		most = by_partition[i] > most ? by_partition[i] : most;
	ok(most < kept / 4, "sampled flows are spread over partitions: at most %u of %u in one",
		most, kept);
}

/* Packets that begin or end a connection are in every sample, and leave it as it is; others say for
 * how many they stand. */
static void test_weights(void)
{
	static const struct {
		const char *rule;
		uint8_t flags;
		uint16_t obs, mss; /* before */
		bool taken;
		uint16_t weight;
	} rows[] = {
		{ "take sample=10", 0x10, 0, 0, true, 10 },
		{ "take sample=10", 0x10, 0, 0, false, 0 },
		{ "take sample=10", 0x12, 0, 1460, true, 1460 },
		{ "take sample=10", 0x11, 0, 0, true, 1 },
		{ "take sample=10", 0x04, 0, 0, true, 1 },
		{ "take sample=10", 0x10, 0, 0, false, 0 },
		{ "take sample=1", 0x10, 0, 0, true, 0 },
		{ "take sample_flows=100000", 0x10, 0, 0, true, 0 }, /* no rule: all are taken */
		{ "take sample=4 sample_flows=1", 0x10, PL_OBS_SAMPLED, 100, true, 400 },
		{ "take sample=655", 0x10, PL_OBS_SAMPLED, 100, true, 65500 },
		{ "take sample=656", 0x10, PL_OBS_SAMPLED, 100, true, 0 },
		{ "take sample=9", 0x10, PL_OBS_SAMPLED, 0, true, 0 },
		{ "take sample=9", 0x11, PL_OBS_SAMPLED, 1, true, 1 },
		{ "take sample=9", 0x02, PL_OBS_SAMPLED, 1460, true, 1460 },
	};
	struct pl_tap_rules rules = { 0 };
	uint64_t overweight = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_pkt96 r = packet("10.0.0.1", "10.9.0.2", 1000, 443);
		bool taken;

		if (i == 0 || strcmp(rows[i].rule, rows[i - 1].rule) != 0) {
			overweight += rules.overweight;
			rules = (struct pl_tap_rules){ 0 };
			(void)pl_tap_rules_add(&rules, rows[i].rule, NULL);
		}
		r.proto = 6;
		r.tcp_flags = rows[i].flags;
		r.obs = rows[i].obs;
		r.mss = rows[i].mss;
		taken = pl_tap_rules_apply(&rules, &r) == PL_TAP_RULED_TAKE;
		eq(taken, rows[i].taken, "row %zu: taken", i);
		if (taken)
			eq(r.mss, rows[i].weight, "row %zu: weight", i);
		if (taken && rules.n > 0)
			eq(r.obs, rules.rules[0].sample > 1 ? PL_OBS_SAMPLED : rows[i].obs,
				"row %zu: bits", i);
	}
	eq(overweight + rules.overweight, 1, "one stands for more than it can say");
}

/* One flow in many, by the ends of all others. */
static void test_edges_of_flows(void)
{
	struct pl_tap_rules rules = { 0 };
	unsigned int kept = 0, edges = 0;

	(void)pl_tap_rules_add(&rules, "mark sample_flows=16", NULL);
	for (unsigned int i = 0; i < 1000; i++) {
		struct pl_pkt96 r = packet("10.0.0.1", "10.9.0.2", (uint16_t)(1024 + i), 443);

		r.proto = 6;
		r.tcp_flags = 0x11;
		edges += pl_tap_rules_apply(&rules, &r) == PL_TAP_RULED_TAKE && r.mss == 1 &&
			 r.obs == (PL_OBS_SAMPLED | PL_OBS_RULE);
		r.tcp_flags = 0x10;
		r.obs = r.mss = 0;
		kept += pl_tap_rules_apply(&rules, &r) == PL_TAP_RULED_TAKE && r.mss == 16;
	}
	eq(edges, 1000, "every connection's end");
	ok(kept > 10 && kept < 200, "%u of the others", kept);
}

/* Hits count the first rule that matched; pl_tap_rules_rest names the action for the rest. */
static void test_hits(void)
{
	static const struct {
		const char *last, *rest;
		uint32_t n;
	} rows[] = { { "skip", "skip", 2 }, { "take", "take", 2 }, { "mark", "mark", 2 },
		{ "skip proto=17", "take", 3 }, { "take sample=2", "take", 3 } };
	uint32_t n;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_tap_rules rules = { 0 };
		const bool all = rows[i].n == 2 || strchr(rows[i].last, '=') == NULL ||
				 strstr(rows[i].last, "sample") != NULL;

		streq(pl_tap_rules_rest(&rules, &n), "take");
		eq(n, 0);
		(void)pl_tap_rules_add(&rules, "take dport=1-99", NULL);
		(void)pl_tap_rules_add(&rules, "skip dport=50-199", NULL);
		(void)pl_tap_rules_add(&rules, rows[i].last, NULL);
		streq(pl_tap_rules_rest(&rules, &n), rows[i].rest, "%s", rows[i].last);
		eq(n, rows[i].n, "%s: rules before", rows[i].last);
		for (uint16_t port = 1; port <= 300; port++) {
			struct pl_pkt96 r = packet("10.0.0.1", "10.9.0.2", 1000, port);

			(void)pl_tap_rules_apply(&rules, &r);
		}
		eq(rules.hits[0], 99);
		eq(rules.hits[1], 100);
		eq(rules.hits[2], all ? 101 : 0, "%s: matches", rows[i].last);
		eq(rules.hits[PL_TAP_RULES_MAX], all ? 0 : 101, "%s: the rest", rows[i].last);
	}
}

/* The text of a rule makes the same rule. */
static void test_text(void)
{
	static const char *const more[] = { "mark src=2001:db8::/32 dst=0.0.0.0/0 sample=7",
		"take net=10.0.0.0/31 proto=icmp6 port=1-2",
		"take proto=255 dir=out sample_flows=9", "take dst=8000::/1 proto=icmp vlan=4095",
		"take src=::", "mark contains=zorro dport=23", "take contains=%00%20%25%ffx" };
	const size_t n = sizeof(conditions) / sizeof(conditions[0]);

	for (size_t i = 0; i < n + sizeof(more) / sizeof(more[0]); i++) {
		const char *rule = i < n ? conditions[i].rule : more[i - n];
		struct pl_tap_rules one = { .payloads = true }, other = { .payloads = true };
		struct pl_diag diag = { .text = "" };
		struct pl_buf text;

		pl_buf_init(&text);
		(void)pl_tap_rules_add(&one, rule, &diag);
		pl_tap_rules_text(&text, &one, 0);
		(void)pl_tap_rules_add(&other, text.data, &diag);
		ok(one.n == 1 && memcmp(&one, &other, sizeof(one)) == 0, "%s: %s %s", rule,
			text.data, diag.text);
		pl_buf_done(&text);
	}
}

int main(void)
{
	test_text();
	test_conditions();
	test_insides();
	test_wrong();
	test_order();
	test_sampling();
	test_weights();
	test_hits();
	test_edges_of_flows();
	return pl_test_done();
}
