/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes advices as entries of a configuration, as options of commands, and in words. */
#include "decode/advise.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "wire/report.h"

/* Words in the order of the enums. */
static const char *const queue_words[] = { "auto", "8+24", "16+16" };
static const char *const placements[] = { "auto", "before-options", "after-options" };
static const char *const units[] = { "ns", "us" };
static const char *const embedded[] = { "auto", "announced", "never" };

static const char *version_word(int version)
{
	return version == 0 ? "auto"
			    : pl_report_version_name((enum pl_report_version)(version - 1));
}

static void write_word(struct pl_buf *out, const char *key, const char *word)
{
	pl_buf_printf(out, ", %s: %s", key, word);
}

static void write_number(struct pl_buf *out, const char *key, unsigned int value)
{
	if (value != 0)
		pl_buf_printf(out, ", %s: %u", key, value);
}

/* The keys that the announcement of INT has. */
static void write_announcement(struct pl_buf *out, const struct pl_profile *p)
{
	if (p->embedded != PL_EMBEDDED_AUTO)
		write_word(out, "embedded", embedded[p->embedded]);
	if (p->dscp_set)
		pl_buf_printf(out, ", dscp: 0x%02x/0x%02x", p->dscp_value, p->dscp_mask);
	write_number(out, "int_port", p->int_port);
	if (p->marker_set)
		pl_buf_printf(out, ", marker: 0x%016" PRIx64, p->marker);
}

void pl_advice_entry(const struct pl_advice *advice, struct pl_buf *out)
{
	const struct pl_profile *p = &advice->profile;
	char addr[PL_ADDR_TEXT_MAX];

	pl_format_addr(addr, &advice->exporter);
	/* In braces, the colons of IPv6 need quotes. */
	/* Quoted so that a line of the log can be pasted. */
	pl_buf_printf(out, strchr(addr, ':') != NULL ? "{match: '%s'" : "{match: %s", addr);
	if (p->report_version != 0)
		pl_buf_printf(out, ", report_version: '%s'", version_word(p->report_version));
	if (p->hints.dialect != PL_DIALECT_SPEC || p->hints.dialect_pinned)
		write_word(out, "dialect", pl_dialect_name((enum pl_dialect)p->hints.dialect));
	if (p->hints.dialect_pinned)
		write_word(out, "dialect_pinned", "true");
	if (p->hints.queue_word != PL_QUEUE_WORD_AUTO)
		write_word(out, "queue_word", queue_words[p->hints.queue_word]);
	write_number(out, "trailing_words", p->hints.trailing_words);
	write_number(out, "source_words", p->hints.source_words);
	if (p->tcp_placement != PL_TCP_AUTO)
		write_word(out, "tcp_placement", placements[p->tcp_placement]);
	if (p->timestamp_unit != PL_UNIT_NS)
		write_word(out, "timestamp_unit", units[p->timestamp_unit]);
	if (p->latency_unit != PL_UNIT_NS)
		write_word(out, "latency_unit", units[p->latency_unit]);
	write_announcement(out, p);
	pl_buf_chr(out, '}');
}

static void option(struct pl_buf *out, const char *name, const char *word)
{
	pl_buf_printf(out, " --%s %s", name, word);
}

void pl_advice_options(const struct pl_advice *advice, struct pl_buf *out)
{
	const struct pl_profile *p = &advice->profile, *was = &advice->before;

	if (p->report_version != was->report_version)
		option(out, "report-version", version_word(p->report_version));
	if (p->hints.dialect != was->hints.dialect)
		option(out, "dialect", pl_dialect_name((enum pl_dialect)p->hints.dialect));
	if (p->hints.queue_word != was->hints.queue_word)
		option(out, "queue-word", queue_words[p->hints.queue_word]);
	if (p->tcp_placement != was->tcp_placement)
		option(out, "tcp-placement", placements[p->tcp_placement]);
	if (p->hints.trailing_words != was->hints.trailing_words)
		pl_buf_printf(out, " --trailing-words %u", p->hints.trailing_words);
}

void pl_advice_reason(const struct pl_advice *advice, struct pl_buf *out)
{
	char addr[PL_ADDR_TEXT_MAX];

	pl_format_addr(addr, &advice->exporter);
	if (advice->verdict != PL_V_OK)
		pl_buf_printf(out, "%s sends packets that do not decode (%s)", addr,
			pl_verdict_name((enum pl_verdict)advice->verdict));
	else
		pl_buf_printf(out,
			"%s reports queue depths above 65535 at every hop (%" PRIu32
			" at node %" PRIu64
			"), as words of 16 bits of queue and 16 of depth read wrong do (queue %" PRIu32
			", depth %" PRIu32 ")",
			addr, advice->depth, advice->node, advice->depth >> 16,
			advice->depth & UINT16_MAX);
}

void pl_advice_text(const struct pl_advice *advice, struct pl_buf *out)
{
	pl_advice_reason(advice, out);
	pl_buf_str(out, "; this reads them, and nothing else:");
	pl_advice_options(advice, out);
	pl_buf_str(
		out, ". In a configuration, where what decodes now still does:\nprofiles:\n  - ");
	pl_advice_entry(advice, out);
}
