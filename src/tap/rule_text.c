/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a rule of a tap as text. */
#include <string.h>

#include "base/num.h"
#include "tap/rules.h"

static void put_prefix(struct pl_buf *out, const char *key, const struct pl_tap_net *net)
{
	unsigned int bits = 0;
	struct pl_addr addr, mask;
	char text[PL_ADDR_TEXT_MAX];

	memcpy(addr.b, net->addr, sizeof(addr.b));
	memcpy(mask.b, net->mask, sizeof(mask.b));
	while (bits < 128 && (mask.b[bits / 8] & 0x80 >> bits % 8) != 0)
		bits++;
	if (bits == 0)
		return;
	pl_format_addr(text, &addr);
	pl_buf_printf(out, " %s=%s", key, text);
	if (bits < 128)
		pl_buf_printf(out, "/%u", pl_addr_is_v4(&addr) && bits >= 96 ? bits - 96 : bits);
}

static void put_range(struct pl_buf *out, const char *key, struct pl_tap_range range)
{
	if (range.low == 0 && range.high == UINT16_MAX)
		return;
	pl_buf_printf(out, " %s=%u", key, range.low);
	if (range.high != range.low)
		pl_buf_printf(out, "-%u", range.high);
}

static void put_protocol(struct pl_buf *out, uint8_t proto)
{
	const char *name = proto == 6    ? "tcp"
			   : proto == 17 ? "udp"
			   : proto == 1  ? "icmp"
			   : proto == 58 ? "icmp6"
					 : NULL;

	if (name != NULL)
		pl_buf_printf(out, " proto=%s", name);
	else
		pl_buf_printf(out, " proto=%u", proto);
}

void pl_tap_rule_text(struct pl_buf *out, const struct pl_tap_rule *rule)
{
	static const char *const actions[] = { "take", "skip", "mark" };

	pl_buf_str(out, actions[rule->action]);
	put_prefix(out, "src", &rule->src);
	put_prefix(out, "dst", &rule->dst);
	put_prefix(out, "net", &rule->net);
	if (rule->proto_mask != 0)
		put_protocol(out, rule->proto);
	put_range(out, "sport", rule->sport);
	put_range(out, "dport", rule->dport);
	put_range(out, "port", rule->port);
	if (rule->flags_mask != 0)
		pl_buf_printf(out, " flags=%u/%u", rule->flags, rule->flags_mask);
	put_range(out, "length", rule->length);
	put_range(out, "payload", rule->payload);
	if (rule->vlan_mask != 0)
		pl_buf_printf(out, " vlan=%u", rule->vlan);
	if ((rule->obs_mask & PL_OBS_OUT) != 0)
		pl_buf_str(out, (rule->obs & PL_OBS_OUT) != 0 ? " dir=out" : " dir=in");
	if ((rule->obs_mask & PL_OBS_POINT_MASK) != 0)
		pl_buf_printf(out, " point=%u", rule->obs & PL_OBS_POINT_MASK);
	if (rule->sample > 1)
		pl_buf_printf(out, " sample=%u", rule->sample);
	if (rule->sample_flows > 1)
		pl_buf_printf(out, " sample_flows=%u", rule->sample_flows);
}

void pl_tap_rules_text(struct pl_buf *out, const struct pl_tap_rules *rules, uint32_t i)
{
	const struct pl_tap_word *word = &rules->words[i];

	pl_tap_rule_text(out, &rules->rules[i]);
	if (word->n > 0)
		pl_buf_str(out, " contains=");
	for (uint32_t k = 0; k < word->n; k++) {
		const uint8_t byte = word->bytes[k];

		if (byte > ' ' && byte < 0x7f && byte != '%')
			pl_buf_printf(out, "%c", byte);
		else
			pl_buf_printf(out, "%%%02x", byte);
	}
}
