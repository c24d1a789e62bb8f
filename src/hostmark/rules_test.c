/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's rules: those of the configuration, and others for packets whose ports are not known. */
#include "base/test.h"
#include "hostmark/hostmark.h"

/* The first of the rules for packets without ports that matches; -1: none. */
static int blind_rule(const struct pl_mark_rules *m, const struct pl_pkt96 *r)
{
	for (uint32_t i = 0; i < m->n; i++) {
		const struct pl_tap_rule *u = &m->rules[PL_TAP_RULES_MAX + i];

		if (pl_tap_rule_matches(u, r))
			return u->action == PL_TAP_TAKE && u->sample_flows == 1 ? (int)i : -1;
	}
	return -1;
}

/* A packet whose ports and protocol are not known is chosen if a rule may choose it. */
int main(void)
{
	static const struct {
		const char *rules[2];
		bool may;
	} rows[] = { { { "take proto=udp dport=54" }, true }, { { "take proto=tcp" }, true },
		{ { "take src=10.0.0.0/8 port=1" }, true },
		{ { "take src=10.0.0.0/8 sample_flows=100" }, true },
		{ { "take src=10.1.0.0/16" }, false }, { { "take dst=10.0.0.1 port=1" }, false },
		{ { "skip" }, false }, { { "skip src=10.0.0.0/8", "take" }, false },
		{ { "skip proto=tcp", "take" }, true }, { { "skip sport=5", "take" }, true },
		{ { "skip port=5", "take dst=10.9.0.0/16" }, false } };
	struct pl_pkt96 r = { .proto = 0 };

	r.src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 1 });
	r.dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 2 });
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_tap_rules rules = { 0 };
		struct pl_mark_rules made = { 0 };

		for (uint32_t k = 0; k < 2 && rows[i].rules[k] != NULL; k++)
			ok(pl_tap_rules_add(&rules, rows[i].rules[k], NULL) == 0);
		pl_hostmark_make_rules(&made, &rules);
		ok(memcmp(made.rules, rules.rules, rules.n * sizeof(made.rules[0])) == 0);
		ok((blind_rule(&made, &r) >= 0) == rows[i].may,
			"without ports rule \"%s\" %s the packet", rows[i].rules[0],
			rows[i].may ? "may choose" : "does not choose");
	}
	return pl_test_done();
}
