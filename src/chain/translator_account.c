/* SPDX-License-Identifier: BSD-2-Clause */
/* The translator's account: a sentence, a JSON object, families of the metrics page. */
#include <inttypes.h>

#include "chain/translate_roce_state.h"
#include "chain/translator.h"
#include "runtime/account.h"

static const struct pl_stat service_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_translate, __VA_ARGS__)
#include "chain/translate_stats.def"
#undef PL_STAT
};
static const struct pl_stats service_list = { service_rows,
	sizeof(service_rows) / sizeof(service_rows[0]) };

static void put_causes(const struct pl_account *a, const struct pl_translator_counters *c)
{
	PL_SPLIT(a, "dta_", "unreadable", "DTA reports that could not be read, by cause.");
	for (int i = 1; c != NULL && i < PL_DTA_VERDICT_MAX; i++)
		pl_account_part(
			a, "cause", pl_dta_verdict_name((enum pl_dta_verdict)i), c->faults[i]);
	pl_account_split_end(a);
	PL_SPLIT(a, "dta_", "refused", "DTA reports that were refused, by cause.");
	for (int i = 0; c != NULL && i < PL_REFUSED_MAX; i++)
		pl_account_part(a, "cause", pl_refusal_name((enum pl_refusal)i), c->refused[i]);
	pl_account_split_end(a);
}

static uint64_t kernel_drops(const struct pl_translate *x)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < x->n_ports; i++) {
		struct pl_port_stats one;

		pl_port_stats(x->ports[i], &one);
		sum += one.kernel_drops;
	}
	return sum;
}

/* x NULL: families without samples, and zeros. */
static void put_numbers(const struct pl_account *a, const struct pl_translate *x)
{
	const struct pl_translator_counters *c =
		x != NULL ? pl_translator_counters(x->translator) : NULL;
	struct pl_translator_held held = { 0 };

	if (x != NULL)
		held = pl_translator_held(x->translator);
	pl_account_stats(a, &service_list, x);
	PL_COUNT(a, "dta_", "kernel_drops", "Packets for the translator that the kernel dropped.",
		x != NULL ? kernel_drops(x) : 0);
	pl_account_stats(a, &pl_translator_stats_list, c);
	put_causes(a, c);
	PL_LEVEL(a, "dta_", "held", "Entries, increments and postcards that wait to be written.",
		held.entries + held.increments + held.postcards);
	PL_LEVEL(a, "dta_", "memory_bytes", "Fixed size of the memory of the translator.",
		x != NULL ? pl_translator_memory(x->translator) : 0);
}

void pl_translate_put(void *translate, const struct pl_account *a)
{
	const struct pl_translate *x = translate;

	put_numbers(a, x);
	if (x == NULL) {
		pl_translate_regions_describe(a);
		pl_roce_out_describe(a);
		return;
	}
	pl_account_object(a, "out");
	x->out.account(x->out.arg, a);
	pl_account_object_end(a);
}

void pl_translate_put_text(void *translate, struct pl_buf *text)
{
	const struct pl_translate *x = translate;
	const struct pl_translator_counters *c = pl_translator_counters(x->translator);

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
	if (x->out.tell_lost != NULL)
		x->out.tell_lost(x->out.arg, text);
}
