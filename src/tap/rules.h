/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses which packets of a tap become records. Rules are tried in their order and the first one
 * that matches decides; a packet that none matches becomes a record. A rule is an action and
 * conditions, separated by spaces:
 *
 *   skip proto=udp port=53
 *   take src=10.0.0.0/8 sample=100
 *   skip
 *
 * Actions: take, skip, mark (take, and set PL_OBS_RULE). Conditions, all of which must hold:
 * src=, dst=, net= (either) PREFIX; sport=, dport=, port= (either) N or N-M; proto= a number or
 * tcp, udp, icmp, icmp6; flags=VALUE/MASK of TCP; length= and payload= N or N-M, bytes of the packet
 * (wire_len) and of what it carries (pay_len); vlan=N; dir=in or out; point=N, the observation point;
 * contains=WORD, bytes that stand somewhere in the payload (%HH for a byte by its hexadecimal
 * number, as for a blank).
 * Sampling, for take and mark: sample=N, every Nth packet that the rule matches; sample_flows=N, all
 * packets of one flow in N, chosen by the flow hash, so that taps along a path choose the same flows.
 * Packets of TCP with SYN, FIN or RST are in every sample and do not count for sample=. A record of a
 * sample says in its field mss for how many packets it stands (pl_tap_rule_weigh).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"
#include "core/tap_rules.h"
#include "record/packet.h"
#include "wire/cursor.h"

#define PL_TAP_WORD_MAX 32

/* Bytes that a payload must contain. They are not a part of struct pl_tap_rule: programs in the
 * kernel do not look into payloads. */
struct pl_tap_word {
	uint8_t n; /* 0: no condition */
	uint8_t bytes[PL_TAP_WORD_MAX];
};

struct pl_tap_rules {
	uint32_t n;
	/* Set by a user that passes payloads to pl_tap_rules_apply(): without, a rule with
	 * contains= is refused. */
	bool payloads;
	struct pl_tap_rule rules[PL_TAP_RULES_MAX];
	struct pl_tap_word words[PL_TAP_RULES_MAX]; /* of the rules */
	uint64_t matched[PL_TAP_RULES_MAX];         /* edges apart (core/tap_rules.h) */
	/* Packets that each rule was the first to match; behind them packets that none matched. */
	uint64_t hits[PL_TAP_RULES_MAX + 1];
	uint64_t overweight; /* records of more packets than their weight can hold */
	/* Packets in which a word was not found, though it may be in a part that is not there. */
	uint64_t unseen;
};

/* Adds a rule from its text. Returns with diag -EINVAL, -ENOMEM, or -E2BIG when there are
 * PL_TAP_RULES_MAX. */
int pl_tap_rules_add(struct pl_tap_rules *rules, const char *text, struct pl_diag *diag);

/* Appends the text of a rule that has no word. */
void pl_tap_rule_text(struct pl_buf *out, const struct pl_tap_rule *rule);

/* Appends the text of rules->rules[i], with its word. */
void pl_tap_rules_text(struct pl_buf *out, const struct pl_tap_rules *rules, uint32_t i);

/* Decides about a record, whose flow_hash and vlan are set; sets its bits PL_OBS_RULE and
 * PL_OBS_SAMPLED, and in a sample its weight. payload: what the packet carries, as far as it is
 * there. */
enum pl_tap_ruling pl_tap_rules_apply_to(
	struct pl_tap_rules *rules, struct pl_pkt96 *record, struct pl_cursor payload);

/* The same for rules without words (payloads is false). */
static inline enum pl_tap_ruling pl_tap_rules_apply(
	struct pl_tap_rules *rules, struct pl_pkt96 *record)
{
	return pl_tap_rules_apply_to(rules, record, pl_cursor(NULL, 0));
}

/* Returns the action for packets that match no rule with a condition: "take", "skip" or "mark".
 * *ret_n: number of the rules before that action. */
const char *pl_tap_rules_rest(const struct pl_tap_rules *rules, uint32_t *ret_n);
