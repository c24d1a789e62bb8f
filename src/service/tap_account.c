/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the account of a tap. */
#include "service/tap_account.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/account.h"
#include "service/tap_drops.h"
#include "service/tap_exporters.h"
#include "service/tap_floods.h"
#include "service/tap_places.h"

static const struct pl_stat service_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_tap_service, __VA_ARGS__)
#include "service/tap_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_tap_service_list = { service_rows,
	sizeof(service_rows) / sizeof(service_rows[0]) };

static const struct pl_stat rule_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_tap_rule_stats, __VA_ARGS__)
#include "service/tap_rule_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_tap_rule_list = { rule_rows, sizeof(rule_rows) / sizeof(rule_rows[0]) };

/* Gets the matches of each rule, of packets in user space and of all taps in the kernel. */
static void get_hits(struct pl_tap_service *t, uint64_t ret[PL_TAP_RULES_MAX + 1])
{
	memcpy(ret, t->tap.rules.hits, sizeof(t->tap.rules.hits));
	for (unsigned int i = 0; i < t->n_kernels; i++)
		pl_tap_kernel_hits(t->kernels[i], ret);
	for (unsigned int i = 0; i < t->n_drops; i++)
		pl_tap_drops_hits(t->drops[i], ret);
}

/* Writes the text of rule i, or after the last rule, the default for other packets. */
static void put_rule(struct pl_buf *text, const struct pl_tap_rules *rules, uint32_t i)
{
	pl_buf_init(text);
	if (i < rules->n)
		pl_tap_rules_text(text, rules, i);
	else
		pl_buf_str(text, "default take");
}

void pl_tap_put_rules(
	struct pl_tap_service *t, const struct pl_label *label, struct pl_exposition *page)
{
	const struct pl_tap_rules *rules = &t->tap.rules;
	uint64_t hits[PL_TAP_RULES_MAX + 1];

	get_hits(t, hits);
	for (uint32_t i = 0; i <= rules->n; i++) {
		struct pl_label labels[3];
		unsigned int n = 0;
		struct pl_buf text;

		put_rule(&text, rules, i);
		if (label != NULL)
			labels[n++] = *label;
		labels[n++] =
			(struct pl_label){ .name = "place", .form = PL_LABEL_U64, .number = i + 1 };
		labels[n++] = (struct pl_label){
			.name = "rule", .form = PL_LABEL_TEXT, .text = text.data
		};
		if (!text.failed)
			pl_exposition_u64(
				page, labels, n, hits[i < rules->n ? i : PL_TAP_RULES_MAX]);
		pl_buf_done(&text);
	}
}

static void put_rules_json(struct pl_tap_service *t, struct pl_json *json)
{
	static const char *const actions[] = { "take", "skip", "mark" };
	const struct pl_tap_rules *rules = &t->tap.rules;
	uint64_t hits[PL_TAP_RULES_MAX + 1];

	get_hits(t, hits);
	pl_json_key(json, "rules");
	pl_json_array(json);
	for (uint32_t i = 0; i <= rules->n; i++) {
		const struct pl_tap_rule_stats one = {
			.matches = hits[i < rules->n ? i : PL_TAP_RULES_MAX]
		};
		struct pl_buf text;

		put_rule(&text, rules, i);
		pl_json_object(json);
		pl_json_text(json, "rule", text.failed ? "" : text.data);
		pl_json_text(json, "action",
			actions[i < rules->n ? rules->rules[i].action : PL_TAP_TAKE]);
		pl_stats_json(&pl_tap_rule_list, &one, NULL, json);
		pl_json_object_end(json);
		pl_buf_done(&text);
	}
	pl_json_array_end(json);
}

void pl_tap_port_stats(const struct pl_tap_service *t, struct pl_port_stats *ret)
{
	*ret = (struct pl_port_stats){ 0 };
	for (unsigned int i = 0; i < t->n_ports; i++) {
		struct pl_port_stats one;

		pl_port_stats(t->ports[i], &one);
		pl_port_stats_add(ret, &one);
	}
}

/* Writes each family once, with a sample for each output of the driver. */
static void put_numbers(struct pl_tap_out *const *outs, unsigned int n,
	const struct pl_tap_out_driver *driver, const struct pl_tap_out_numbers *numbers,
	struct pl_exposition *page)
{
	for (unsigned int k = 0; numbers->stats != NULL && k < numbers->stats->n; k++) {
		const struct pl_stat *stat = &numbers->stats->rows[k];

		if (!pl_exposition_stat(page, stat))
			continue;
		for (unsigned int i = 0; i < n; i++) {
			const struct pl_tap_out *out = outs[i];
			const void *of = out->driver == driver ? numbers->counters(out) : NULL;
			const struct pl_label label = {
				.name = "output", .form = PL_LABEL_TEXT, .text = out->name
			};

			if (of != NULL)
				pl_exposition_u64(page, &label, 1, pl_stat_read(stat, of));
		}
	}
}

static void put_outs_page(
	struct pl_tap_out *const *outs, unsigned int n, struct pl_exposition *page)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct pl_tap_out_driver *driver = outs[i]->driver;
		unsigned int first = 0;

		while (outs[first]->driver != driver)
			first++;
		for (unsigned int k = 0; first == i && k < PL_TAP_OUT_NUMBERS; k++)
			put_numbers(outs, n, driver, &driver->numbers[k], page);
	}
}

static void put_out_json(const struct pl_tap_out *out, const struct pl_account *a)
{
	for (unsigned int k = 0; k < PL_TAP_OUT_NUMBERS; k++) {
		const struct pl_tap_out_numbers *numbers = &out->driver->numbers[k];
		const void *of = numbers->stats != NULL ? numbers->counters(out) : NULL;

		if (of != NULL)
			pl_account_stats(a, numbers->stats, of);
	}
}

void pl_tap_outs_put(struct pl_tap_out *const *outs, unsigned int n, const struct pl_account *a)
{
	if (a->json == NULL) {
		put_outs_page(outs, n, a->page);
		return;
	}
	pl_json_key(a->json, "outputs");
	pl_json_array(a->json);
	for (unsigned int i = 0; i < n; i++) {
		pl_json_object(a->json);
		pl_json_text(a->json, "output", outs[i]->name);
		put_out_json(outs[i], a);
		pl_json_object_end(a->json);
	}
	pl_json_array_end(a->json);
}

/* `records` counts those of the kernel's records that were received. */
const struct pl_tap_stats *pl_tap_stats_now(struct pl_tap_service *t)
{
	struct pl_tap_stats sum = t->tap.stats;

	sum.records += t->kernel_records;
	for (unsigned int i = 0; i < t->n_kernels; i++) {
		struct pl_tap_kernel_counts c;

		pl_tap_kernel_counts(t->kernels[i], &c);
		sum.counted += c.counted;
		sum.counts_full += c.count_full;
		sum.counts_busy += c.count_busy;
		sum.joined += c.joined;
		sum.not_ip += c.not_ip;
		sum.broken += c.broken;
		sum.skipped += c.skipped;
		sum.not_sampled += c.not_sampled;
		sum.ring_full += c.ring_full;
		sum.bad_options += c.bad_options;
	}
	pl_tap_drops_add(t, &sum);
	if (t->n_kernels + t->n_drops > 0)
		sum.packets = sum.records + sum.counted + sum.not_ip + sum.broken + sum.skipped +
			      sum.not_sampled + sum.ring_full + sum.rate_limited +
			      sum.other_namespace + sum.other_interface + sum.not_network +
			      sum.missed;
	t->shown = sum;
	return &t->shown;
}

static void put(const struct pl_account *a, struct pl_tap_service *t)
{
	struct pl_port_stats ports;

	pl_tap_port_stats(t, &ports);
	pl_account_object(a, "tap");
	pl_account_stats(a, &pl_tap_stats_list, pl_tap_stats_now(t));
	if (a->json != NULL)
		pl_json_text(a->json, "clock", pl_clock_name(pl_clock_of(t->clocks)));
	pl_account_object_end(a);
	pl_account_object(a, "tmpkt");
	pl_account_stats(a, &pl_tmpkt_stats_list, pl_tmpkt_receiver_stats(t->receiver));
	pl_account_stats(a, &pl_tap_service_list, t);
	if (a->json != NULL)
		pl_tap_exporters_json(t, a->json);
	pl_account_object_end(a);
	if (a->json != NULL)
		pl_tap_drops_json(t, a->json);
	if (a->page != NULL && t->n_drops > 0) {
		pl_tap_drops_family(a->page);
		pl_tap_drops_samples(t, NULL, a->page);
	}
	if (t->flows != NULL) {
		pl_account_object(a, "flows");
		pl_account_stats(a, &pl_flow_counters_list, pl_flow_cache_counters(t->flows));
		pl_account_stats(a, &pl_tap_listening_list, &t->listening_stats);
		pl_account_stats(
			a, &pl_flow_state_counters_list, pl_flow_cache_state_counters(t->flows));
		pl_account_object_end(a);
	}
	pl_account_object(a, "ports");
	pl_account_stats(a, &pl_port_stats_list, &ports);
	if (a->json != NULL)
		pl_tap_floods_json(t, a->json);
	pl_account_object_end(a);
}

static void describe(const struct pl_account *a)
{
	const struct pl_tap_out_driver *const *drivers;
	const unsigned int n = pl_tap_out_drivers(&drivers);

	pl_account_stats(a, &pl_tap_stats_list, NULL);
	pl_account_stats(a, &pl_tmpkt_stats_list, NULL);
	pl_account_stats(a, &pl_tap_service_list, NULL);
	pl_tap_exporters_page(NULL, NULL, 0, a->page);
	pl_account_stats(a, &pl_tap_rule_list, NULL);
	pl_tap_places_family(a->page);
	pl_tap_drops_family(a->page);
	pl_account_stats(a, &pl_flow_counters_list, NULL);
	pl_account_stats(a, &pl_tap_listening_list, NULL);
	pl_account_stats(a, &pl_flow_state_counters_list, NULL);
	pl_account_stats(a, &pl_port_stats_list, NULL);
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int k = 0; k < PL_TAP_OUT_NUMBERS; k++) {
			if (drivers[i]->numbers[k].stats != NULL)
				pl_account_stats(a, drivers[i]->numbers[k].stats, NULL);
		}
	}
}

void pl_tap_put(void *tap, const struct pl_account *a)
{
	struct pl_tap_service *t = tap;

	if (t == NULL) {
		describe(a);
		return;
	}
	put(a, t);
	if (a->json != NULL) {
		put_rules_json(t, a->json);
		pl_tap_places_json(t, a->json);
	} else {
		pl_tap_exporters_page(&t, NULL, 1, a->page);
		pl_exposition_stat(a->page, &pl_tap_rule_list.rows[0]);
		pl_tap_put_rules(t, NULL, a->page);
		pl_tap_places_family(a->page);
		pl_tap_places_samples(t, NULL, a->page);
	}
	pl_tap_outs_put(t->outs, t->n_outs, a);
}

void pl_tap_put_sources(const struct pl_tap_service *t, struct pl_buf *text)
{
	uint32_t kinds = 0, n;
	const char *rest;

	for (unsigned int i = 0; i < t->n_ports; i++)
		kinds |= 1u << (t->datagrams[i] ? PL_STAMP_SENDER : pl_port_clock(t->ports[i]));
	for (unsigned int i = 0; i < t->n_kernels; i++)
		kinds |= 1u << pl_tap_kernel_clock(t->kernels[i]);
	kinds |= t->n_drops > 0 ? 1u << PL_STAMP_TAI : 0;
	pl_buf_printf(text, "%s%s, clock %s",
		t->n_ports > 0     ? pl_port_name(t->ports[0])
		: t->n_kernels > 0 ? pl_tap_kernel_name(t->kernels[0])
				   : pl_tap_drops_name(t->drops[0]),
		t->n_ports + t->n_kernels + t->n_drops > 1 ? " and others" : "",
		pl_clock_name(pl_clock_of(kinds)));
	pl_tap_places_text(t, text);
	rest = pl_tap_rules_rest(&t->tap.rules, &n);
	if (n == 0)
		pl_buf_printf(text, ", rules: %s all", rest);
	else
		pl_buf_printf(text, ", %u rule%s, then %s", n, n == 1 ? "" : "s", rest);
}

/* Returns the number of records that an output holds: its counters named "waiting". */
static uint64_t waiting(const struct pl_tap_out *out)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < PL_TAP_OUT_NUMBERS; i++) {
		const struct pl_tap_out_numbers *numbers = &out->driver->numbers[i];
		const void *object = numbers->stats != NULL ? numbers->counters(out) : NULL;

		for (unsigned int k = 0; object != NULL && k < numbers->stats->n; k++) {
			if (strcmp(numbers->stats->rows[k].name, "waiting") == 0)
				n += pl_stat_read(&numbers->stats->rows[k], object);
		}
	}
	return n;
}

void pl_tap_put_text(void *tap, struct pl_buf *text)
{
	struct pl_tap_service *t = tap;
	const struct pl_tap_stats *s = pl_tap_stats_now(t);
	const struct pl_tmpkt_stats *d = pl_tmpkt_receiver_stats(t->receiver);
	struct pl_port_stats ports;

	pl_tap_port_stats(t, &ports);
	pl_buf_printf(text, "%" PRIu64 " packets, %" PRIu64 " records", s->packets, s->records);
	if (t->flows != NULL)
		pl_buf_printf(text, ", %" PRIu64 " records of flows", t->records);
	if (s->records > 0)
		pl_buf_printf(text, " (clock %s)", pl_clock_name(pl_clock_of(t->clocks)));
	pl_account_add(text, s->counted, "counted in the kernel");
	pl_account_add(text, s->joined, "joined frames that count as one packet");
	pl_account_add(text, ports.not_matched, "that do not match the filter");
	pl_account_add(text, s->not_ip, "not IP");
	pl_account_add(text, s->broken, "broken");
	pl_account_add(text, s->skipped, "skipped by rules");
	pl_account_add(text, s->not_sampled, "not sampled");
	pl_account_add(text, s->ring_full, "lost because the kernel's ring was full");
	pl_account_add(text, s->rate_limited, "beyond the rate");
	pl_account_add(text, s->other_namespace, "of other namespaces");
	pl_account_add(text, s->other_interface, "of other interfaces");
	pl_account_add(text, s->not_network, "not of the network");
	pl_account_add(text, s->missed, "missed");
	pl_account_add(text, ports.kernel_drops, "dropped by the kernel");
	if (d->datagrams > 0)
		pl_buf_printf(text, "; %" PRIu64 " datagrams of tmpkt/1 accepted", d->accepted);
	pl_account_add(text, d->duplicates, "duplicates");
	pl_account_add(text, d->lost, "lost");
	pl_account_add(text, d->held + d->unproven, "of exporters that are not proven");
	pl_account_add(text, d->datagrams - d->accepted - d->duplicates - d->held - d->unproven,
		"malformed");
	for (unsigned int i = 0; i < t->n_outs; i++) {
		const uint64_t lost = t->outs[i]->driver->lost(t->outs[i]),
			       left = waiting(t->outs[i]);

		if (lost > 0)
			pl_buf_printf(text, "; %s did not take %" PRIu64 " records",
				t->outs[i]->name, lost);
		if (left > 0)
			pl_buf_printf(
				text, "; %" PRIu64 " records wait for %s", left, t->outs[i]->name);
	}
}
