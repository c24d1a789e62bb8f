/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the rules of a tap, and chooses packets by them. */
#include "tap/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/num.h"

static int read_number(const char *text, uint64_t most, uint64_t *ret)
{
	uint64_t v = 0;
	int r = pl_parse_u64(text, &v);

	if (r == 0 && v > most)
		r = -ERANGE;
	if (r == 0)
		*ret = v;
	return r;
}

static int read_prefix(const char *text, struct pl_tap_net *ret)
{
	struct pl_addr addr, mask = { { 0 } };
	unsigned int bits;
	int r = pl_parse_prefix(text, &addr, &bits);

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < bits; i++)
		mask.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	memcpy(ret->addr, addr.b, sizeof(ret->addr));
	memcpy(ret->mask, mask.b, sizeof(ret->mask));
	return 0;
}

static int read_range(char *text, struct pl_tap_range *ret)
{
	char *dash = strchr(text, '-');
	uint64_t low = 0, high;
	int r;

	if (dash != NULL)
		*dash = '\0';
	r = read_number(text, UINT16_MAX, &low);
	high = low;
	if (r == 0 && dash != NULL)
		r = read_number(dash + 1, UINT16_MAX, &high);
	if (r == 0 && high < low)
		r = -ERANGE;
	if (r == 0)
		*ret = (struct pl_tap_range){ (uint16_t)low, (uint16_t)high };
	if (dash != NULL)
		*dash = '-';
	return r;
}

static int read_protocol(const char *text, uint8_t *ret)
{
	static const struct {
		const char *name;
		uint8_t number;
	} known[] = { { "tcp", 6 }, { "udp", 17 }, { "icmp", 1 }, { "icmp6", 58 } };
	uint64_t v = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].name, text) == 0) {
			*ret = known[i].number;
			return 0;
		}
	}
	if (read_number(text, UINT8_MAX, &v) < 0)
		return -EINVAL;
	*ret = (uint8_t)v;
	return 0;
}

static int read_sample(const char *text, uint32_t *ret)
{
	uint64_t v = 0;
	int r = read_number(text, PL_TAP_WEIGHT_MAX, &v);

	if (r == 0 && v == 0)
		r = -ERANGE;
	if (r == 0)
		*ret = (uint32_t)v;
	return r;
}

/* Reads VALUE/MASK, or VALUE of all flags. */
static int read_flags(struct pl_tap_rule *rule, char *text)
{
	char *slash = strchr(text, '/');
	uint64_t value = 0, mask = UINT8_MAX;
	int r;

	if (slash != NULL)
		*slash = '\0';
	r = read_number(text, UINT8_MAX, &value);
	if (r == 0 && slash != NULL)
		r = read_number(slash + 1, UINT8_MAX, &mask);
	if (slash != NULL)
		*slash = '/';
	if (r < 0)
		return r;
	rule->flags = (uint8_t)value;
	rule->flags_mask = (uint8_t)mask;
	return 0;
}

enum key {
	SRC,
	DST,
	NET,
	SPORT,
	DPORT,
	PORT,
	PROTO,
	FLAGS,
	LENGTH,
	PAYLOAD,
	CONTAINS,
	VLAN,
	DIR,
	POINT,
	SAMPLE,
	SAMPLE_FLOWS,
	KEYS
};
static const char *const keys[KEYS] = { "src", "dst", "net", "sport", "dport", "port", "proto",
	"flags", "length", "payload", "contains", "vlan", "dir", "point", "sample",
	"sample_flows" };
static const char *const wants[KEYS] = { "an address or prefix, such as 10.0.0.0/8",
	"an address or prefix, such as 10.0.0.0/8", "an address or prefix, such as 10.0.0.0/8",
	"a port or a range of them, such as 1000-1999",
	"a port or a range of them, such as 1000-1999",
	"a port or a range of them, such as 1000-1999",
	"tcp, udp, icmp, icmp6 or a number from 0 to 255",
	"the TCP flags' value and the mask of those that count, such as 2/18",
	"a number of bytes or a range of them, such as 64-127",
	"a number of bytes or a range of them, such as 1-65535",
	"1 to 32 bytes, with %20 for a blank and %25 for a percent sign",
	"a VLAN id from 0 to 4095", "in or out", "an observation point from 0 to 1023",
	"a number from 1 to 65535", "a number from 1 to 65535" };

/* Reads the bytes of a word: %HH is a byte by its hexadecimal number, all others stand for
 * themselves. */
static int read_bytes(const char *text, struct pl_tap_word *ret)
{
	ret->n = 0;
	for (const char *p = text; *p != '\0'; p++) {
		int byte = (uint8_t)*p;

		if (ret->n == PL_TAP_WORD_MAX)
			return -ERANGE;
		if (byte == '%') {
			byte = pl_parse_percent(p);
			if (byte < 0)
				return -EINVAL;
			p += 2;
		}
		ret->bytes[ret->n++] = (uint8_t)byte;
	}
	return ret->n > 0 ? 0 : -EINVAL;
}

static int read_condition(
	struct pl_tap_rule *rule, struct pl_tap_word *bytes, enum key key, char *value)
{
	uint64_t v = 0;
	int r;

	switch (key) {
	case SRC:
		return read_prefix(value, &rule->src);
	case DST:
		return read_prefix(value, &rule->dst);
	case NET:
		return read_prefix(value, &rule->net);
	case SPORT:
		return read_range(value, &rule->sport);
	case DPORT:
		return read_range(value, &rule->dport);
	case PORT:
		return read_range(value, &rule->port);
	case PROTO:
		rule->proto_mask = UINT8_MAX;
		return read_protocol(value, &rule->proto);
	case FLAGS:
		return read_flags(rule, value);
	case LENGTH:
		return read_range(value, &rule->length);
	case PAYLOAD:
		return read_range(value, &rule->payload);
	case CONTAINS:
		return read_bytes(value, bytes);
	case VLAN:
		r = read_number(value, 4095, &v);
		rule->vlan = (uint16_t)v;
		rule->vlan_mask = UINT16_MAX;
		return r;
	case DIR:
		rule->obs_mask |= PL_OBS_OUT;
		rule->obs &= (uint16_t)~PL_OBS_OUT;
		if (strcmp(value, "in") == 0)
			return 0;
		rule->obs |= PL_OBS_OUT;
		return strcmp(value, "out") == 0 ? 0 : -EINVAL;
	case POINT:
		r = read_number(value, PL_OBS_POINT_MASK, &v);
		rule->obs = (uint16_t)((rule->obs & ~PL_OBS_POINT_MASK) | v);
		rule->obs_mask |= PL_OBS_POINT_MASK;
		return r;
	case SAMPLE:
		return read_sample(value, &rule->sample);
	case SAMPLE_FLOWS:
		return read_sample(value, &rule->sample_flows);
	case KEYS:
		break;
	}
	return -EINVAL;
}

/* Reads one condition. told: bits of the conditions that the rule already has. */
static int read_word(struct pl_tap_rule *rule, struct pl_tap_word *bytes, char *word,
	uint32_t *told, struct pl_diag *diag)
{
	char *equals = strchr(word, '=');
	const char *near;

	if (equals == NULL) {
		pl_diag_set(diag, "'%s' in the rule: write a condition as KEY=VALUE", word);
		return -EINVAL;
	}
	*equals = '\0';
	for (int key = 0; key < KEYS; key++) {
		if (strcmp(keys[key], word) != 0)
			continue;
		if ((*told & 1u << key) != 0) {
			pl_diag_set(diag, "the rule has '%s' twice", word);
			return -EINVAL;
		}
		*told |= 1u << key;
		if (read_condition(rule, bytes, (enum key)key, equals + 1) == 0)
			return 0;
		pl_diag_set(diag, "'%s=%s' in the rule: %s wants %s", word, equals + 1, word,
			wants[key]);
		return -EINVAL;
	}
	near = pl_nearest(word, keys, KEYS);
	pl_diag_set(diag,
		near != NULL
			? "'%s' in the rule is no condition; did you mean '%s'?"
			: "'%s' in the rule is no condition; there are src, dst, net, sport, dport, "
			  "port, proto, flags, length, payload, contains, vlan, dir, point, sample and "
			  "sample_flows",
		word, near);
	return -EINVAL;
}

static const char *const actions[] = { "take", "skip", "mark" };

static int read_action(struct pl_tap_rule *rule, const char *word, struct pl_diag *diag)
{
	for (int i = 0; i < 3; i++) {
		if (strcmp(actions[i], word) == 0) {
			rule->action = (uint8_t)i;
			return 0;
		}
	}
	pl_diag_set(diag, "'%s': a rule begins with take, skip or mark", word);
	return -EINVAL;
}

static int read_rule(
	struct pl_tap_rule *rule, struct pl_tap_word *bytes, char *text, struct pl_diag *diag)
{
	char *rest = NULL, *word = strtok_r(text, " \t", &rest);
	int r = read_action(rule, word != NULL ? word : "", diag);
	uint32_t told = 0;

	while (r == 0 && (word = strtok_r(NULL, " \t", &rest)) != NULL)
		r = read_word(rule, bytes, word, &told, diag);
	if (r == 0 && rule->action == PL_TAP_SKIP && (rule->sample > 1 || rule->sample_flows > 1)) {
		pl_diag_set(diag, "a rule that skips cannot sample; take with sample=, then skip");
		r = -EINVAL;
	}
	if (r == 0 && (uint64_t)rule->sample * rule->sample_flows > PL_TAP_WEIGHT_MAX) {
		pl_diag_set(diag,
			"the rule takes one packet in %" PRIu64
			": a record says how many it stands for, and has room for %d; use sample= and "
			"sample_flows= whose product is at most that",
			(uint64_t)rule->sample * rule->sample_flows, PL_TAP_WEIGHT_MAX);
		r = -EINVAL;
	}
	return r;
}

int pl_tap_rules_add(struct pl_tap_rules *rules, const char *text, struct pl_diag *diag)
{
	struct pl_tap_rule rule = { .sport = { 0, UINT16_MAX },
		.dport = { 0, UINT16_MAX },
		.port = { 0, UINT16_MAX },
		.length = { 0, UINT16_MAX },
		.payload = { 0, UINT16_MAX },
		.sample = 1,
		.sample_flows = 1 };
	struct pl_tap_word bytes = { .n = 0 };
	char *copy;
	int r;

	if (rules->n == PL_TAP_RULES_MAX) {
		pl_diag_set(diag, "at most %d rules", PL_TAP_RULES_MAX);
		return -E2BIG;
	}
	copy = strdup(text);
	if (copy == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	r = read_rule(&rule, &bytes, copy, diag);
	free(copy);
	if (r == 0 && bytes.n > 0 && !rules->payloads) {
		pl_diag_set(diag,
			"contains= is for taps of frames in user space: packet:, afxdp: and capture files");
		r = -EINVAL;
	}
	if (r < 0)
		return r;
	rules->words[rules->n] = bytes;
	rules->rules[rules->n++] = rule;
	return 0;
}

/* ---- deciding ---- */

/* True when the payload of a packet contains the word, or there is none. pay_len: all its bytes, of
 * which payload has those that were captured. */
static bool contains(struct pl_tap_rules *rules, const struct pl_tap_word *word,
	struct pl_cursor payload, uint16_t pay_len)
{
	const size_t left = pl_cursor_left(&payload);

	if (word->n == 0 ||
		(left >= word->n && memmem(payload.pos, left, word->bytes, word->n) != NULL))
		return true;
	rules->unseen += left < pay_len;
	return false;
}

enum pl_tap_ruling pl_tap_rules_apply_to(
	struct pl_tap_rules *rules, struct pl_pkt96 *record, struct pl_cursor payload)
{
	struct pl_tap_share alone = { .n = 1 };

	for (uint32_t i = 0; i < rules->n; i++) {
		uint64_t before = 0;
		uint32_t over;
		enum pl_tap_ruling ruling;

		if (!pl_tap_rule_matches(&rules->rules[i], record) ||
			!contains(rules, &rules->words[i], payload, record->pay_len))
			continue;
		rules->hits[i]++;
		if (!pl_tap_is_edge(record))
			before = rules->matched[i]++;
		ruling = pl_tap_rule_tap(&rules->rules[i], record, before, &alone, &over);
		rules->overweight += over;
		return ruling;
	}
	rules->hits[PL_TAP_RULES_MAX]++;
	return PL_TAP_RULED_TAKE;
}

const char *pl_tap_rules_rest(const struct pl_tap_rules *rules, uint32_t *ret_n)
{
	const char *rest = "take";
	struct pl_buf text;

	*ret_n = rules->n;
	if (rules->n == 0)
		return rest;
	pl_buf_init(&text);
	pl_tap_rules_text(&text, rules, rules->n - 1);
	for (int i = 0; i < 3 && !text.failed; i++) {
		if (strcmp(text.data, actions[i]) == 0) {
			rest = actions[i];
			*ret_n = rules->n - 1;
		}
	}
	pl_buf_done(&text);
	return rest;
}
