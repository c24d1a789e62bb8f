/* SPDX-License-Identifier: BSD-2-Clause */
/* The translator's account: a sentence, a JSON object, families of the metrics page. */
#include <inttypes.h>

#include "service/account.h"
#include "service/translator.h"

static void put_packets(const struct pl_account *a, const struct pl_translate *x)
{
	struct pl_port_stats port = { 0 };

	for (unsigned int i = 0; i < x->n_ports; i++) {
		struct pl_port_stats one;

		pl_port_stats(x->ports[i], &one);
		pl_port_stats_add(&port, &one);
	}
	PL_COUNT(a, "dta_", "packets", "Packets that the translator received.", x->packets_taken);
	PL_COUNT(a, "dta_", "kernel_drops", "Packets for the translator that the kernel dropped.",
		port.kernel_drops);
	PL_COUNT(a, "dta_", "not_udp", "Packets without a complete UDP datagram.", x->not_dta);
}

static void put_reports(const struct pl_account *a, const struct pl_translator_counters *c)
{
	PL_COUNT(a, "dta_", "datagrams", "UDP datagrams that the translator received.",
		c->datagrams);
	PL_COUNT(a, "dta_", "reports",
		"DTA reports received: accepted, duplicate, unreadable and refused ones.",
		c->reports);
	PL_COUNT(a, "dta_", "accepted", "DTA reports that were accepted: executed or gathered.",
		c->accepted);
	PL_COUNT(a, "dta_", "duplicates", "Duplicate numbered DTA reports.", c->duplicates);
	PL_SPLIT(a, "dta_", "unreadable", "DTA reports that could not be read, by cause.");
	for (int i = 1; i < PL_DTA_VERDICT_MAX; i++)
		pl_account_part(
			a, "cause", pl_dta_verdict_name((enum pl_dta_verdict)i), c->faults[i]);
	pl_account_split_end(a);
	PL_SPLIT(a, "dta_", "refused", "DTA reports that were refused, by cause.");
	for (int i = 0; i < PL_REFUSED_MAX; i++)
		pl_account_part(a, "cause", pl_refusal_name((enum pl_refusal)i), c->refused[i]);
	pl_account_split_end(a);
}

static void put_sequence(const struct pl_account *a, const struct pl_translate *x,
	const struct pl_translator_counters *c)
{
	PL_COUNT(a, "dta_", "lost", "Numbered DTA reports that were lost.", c->lost);
	PL_COUNT(a, "dta_", "gaps", "Gaps in the numbers of DTA reports.", c->gaps);
	PL_COUNT(a, "dta_", "restarts", "Reporters that restarted on the same port.", c->restarts);
	PL_COUNT(a, "dta_", "displaced",
		"Active reporters that were replaced by others because the table was full.",
		c->displaced);
	PL_COUNT(a, "dta_", "taken_up",
		"Streams of reporters that were taken up after their first number.", c->taken_up);
	PL_LEVEL(a, "dta_", "taken_up_at", "Number at which the last such stream was taken up.",
		c->taken_up_at);
	PL_COUNT(a, "dta_", "nacks", "NACKs sent, which request missing reports.", c->nacks);
	PL_COUNT(a, "dta_", "answers", "Confirmations sent to reporters.", c->answers);
	PL_COUNT(a, "dta_", "nacks_unsent", "NACKs and confirmations that could not be sent.",
		x->nacks_unsent);
}

static void put_operations(const struct pl_account *a, const struct pl_translator_counters *c)
{
	PL_COUNT(a, "dta_", "writes", "Writes of the translator into telemetry memory.", c->writes);
	PL_COUNT(a, "dta_", "adds", "Additions of the translator into telemetry memory.", c->adds);
	PL_COUNT(a, "dta_", "write_bytes", "Bytes of these writes.", c->write_bytes);
	PL_COUNT(a, "dta_", "immediates", "Writes with immediate, which wake readers.",
		c->immediates);
	PL_COUNT(a, "dta_", "entries_published", "Entries of lists that were published to readers.",
		c->entries_published);
	PL_COUNT(a, "dta_", "batches", "Batches in which entries were written.", c->batches);
	PL_COUNT(a, "dta_", "increments_merged", "Increments of counters that were written.",
		c->increments_merged);
	PL_COUNT(a, "dta_", "additions", "Additions that these increments were merged into.",
		c->additions);
	PL_COUNT(a, "dta_", "paths_written", "Paths of postcards that were written.",
		c->paths_written);
	PL_COUNT(a, "dta_", "paths_complete", "Complete paths that were written.",
		c->paths_complete);
	PL_COUNT(a, "dta_", "paths_evicted",
		"Paths written early because another flow needed their slot.", c->paths_evicted);
	PL_COUNT(a, "dta_", "paths_short", "Paths not written because postcards were missing.",
		c->paths_short);
	PL_COUNT(a, "dta_", "columns_merged", "Columns of sketches that were merged.",
		c->columns_merged);
	PL_COUNT(a, "dta_", "columns_written", "Columns of sketches that were written.",
		c->columns_written);
	PL_COUNT(a, "dta_", "epochs_complete", "Complete epochs of sketches.", c->epochs_complete);
	PL_COUNT(a, "dta_", "epochs_incomplete", "Incomplete epochs of sketches.",
		c->epochs_incomplete);
}

static void put(const struct pl_account *a, const struct pl_translate *x)
{
	const struct pl_translator_counters *c = pl_translator_counters(x->translator);
	const struct pl_translator_held held = pl_translator_held(x->translator);

	put_packets(a, x);
	put_reports(a, c);
	put_sequence(a, x, c);
	put_operations(a, c);
	PL_LEVEL(a, "dta_", "held", "Entries, increments and postcards that wait to be written.",
		held.entries + held.increments + held.postcards);
	PL_LEVEL(a, "dta_", "memory_bytes", "Fixed size of the memory of the translator.",
		pl_translator_memory(x->translator));
	pl_account_object(a, "out");
	x->out.account(x->out.arg, a);
	pl_account_object_end(a);
}

void pl_translate_put_json(void *translate, struct pl_json *json)
{
	const struct pl_account a = { .json = json };

	put(&a, translate);
}

void pl_translate_put_page(void *translate, struct pl_exposition *page)
{
	const struct pl_account a = { .page = page };

	put(&a, translate);
}

void pl_translate_put_text(void *translate, struct pl_buf *text)
{
	const struct pl_translate *x = translate;
	const struct pl_translator_counters *c = pl_translator_counters(x->translator);
	uint64_t ops;

	pl_buf_printf(text, "%" PRIu64 " reports in %" PRIu64 " datagrams: %" PRIu64 " accepted",
		c->reports, c->datagrams, c->accepted);
	if (c->duplicates > 0)
		pl_buf_printf(text, ", %" PRIu64 " duplicates", c->duplicates);
	if (c->restarts > 0)
		pl_buf_printf(text, ", %" PRIu64 " restarts of reporters", c->restarts);
	if (c->displaced > 0)
		pl_buf_printf(text, ", %" PRIu64 " reporters displaced by others", c->displaced);
	if (c->taken_up > 0)
		pl_buf_printf(text, ", %" PRIu64 " streams taken up late, the last one at %" PRIu64,
			c->taken_up, c->taken_up_at);
	for (int i = 1; i < PL_DTA_VERDICT_MAX; i++) {
		if (c->faults[i] > 0)
			pl_buf_printf(text, ", %" PRIu64 " unreadable (%s)", c->faults[i],
				pl_dta_verdict_name((enum pl_dta_verdict)i));
	}
	for (int i = 0; i < PL_REFUSED_MAX; i++) {
		if (c->refused[i] > 0)
			pl_buf_printf(text, ", %" PRIu64 " refused (%s)", c->refused[i],
				pl_refusal_name((enum pl_refusal)i));
	}
	pl_buf_printf(text, "; %" PRIu64 " writes, %" PRIu64 " additions", c->writes, c->adds);
	if (x->out.lost != NULL && x->out.lost(x->out.arg, &ops))
		pl_buf_printf(text,
			"; of them %" PRIu64 " and more for regions that were cut, lost", ops);
}
