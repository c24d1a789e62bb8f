/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the taps of a configuration: those of each tap under its name. */
#include <string.h>

#include "runtime/account.h"
#include "service/tap_account.h"
#include "service/tap_drops.h"
#include "service/tap_exporters.h"
#include "service/tap_places.h"
#include "service/taps.h"

#define TEXT(NAME, TEXT)                                                                           \
	{                                                                                          \
		.name = (NAME), .form = PL_LABEL_TEXT, .text = (TEXT)                              \
	}

/* Returns the counters of a tap for a list; NULL: it has none. */
typedef const void *numbers(struct pl_tap_service *t);

static const void *of_tap(struct pl_tap_service *t)
{
	return pl_tap_stats_now(t);
}

static const void *of_receiver(struct pl_tap_service *t)
{
	return pl_tmpkt_receiver_stats(t->receiver);
}

static const void *of_service(struct pl_tap_service *t)
{
	return t;
}

static const void *of_flows(struct pl_tap_service *t)
{
	return t->flows != NULL ? pl_flow_cache_counters(t->flows) : NULL;
}

static const void *of_listening(struct pl_tap_service *t)
{
	return t->flows != NULL ? &t->listening_stats : NULL;
}

static const void *of_flow_state(struct pl_tap_service *t)
{
	return t->flows != NULL ? pl_flow_cache_state_counters(t->flows) : NULL;
}

/* Writes each family once, with a sample for each tap that has it. */
static void put_list(
	struct pl_taps *all, const struct pl_stats *list, numbers *of, struct pl_exposition *page)
{
	for (unsigned int k = 0; k < list->n; k++) {
		const struct pl_stat *stat = &list->rows[k];
		bool open = stat->family == NULL;

		for (unsigned int i = 0; stat->family != NULL && i < all->n; i++) {
			const struct pl_label label = TEXT("tap", all->taps[i]->name);
			const void *object = of(&all->taps[i]->service);

			if (object == NULL)
				continue;
			if (!open)
				pl_exposition_stat(page, stat);
			open = true;
			pl_exposition_u64(page, &label, 1, pl_stat_read(stat, object));
		}
	}
}

static void put_exporters(struct pl_taps *all, struct pl_exposition *page)
{
	struct pl_tap_service *taps[PL_CONFIG_TAPS_MAX];
	const char *names[PL_CONFIG_TAPS_MAX];

	for (unsigned int i = 0; i < all->n; i++) {
		taps[i] = &all->taps[i]->service;
		names[i] = all->taps[i]->name;
	}
	pl_tap_exporters_page(taps, names, all->n, page);
}

static void put_rules(struct pl_taps *all, struct pl_exposition *page)
{
	pl_exposition_stat(page, &pl_tap_rule_list.rows[0]);
	for (unsigned int i = 0; i < all->n; i++) {
		const struct pl_label label = TEXT("tap", all->taps[i]->name);

		pl_tap_put_rules(&all->taps[i]->service, &label, page);
	}
}

static void put_outs_list(struct pl_taps *all, const struct pl_tap_out_driver *driver,
	const struct pl_tap_out_numbers *list, struct pl_exposition *page)
{
	for (unsigned int k = 0; list->stats != NULL && k < list->stats->n; k++) {
		const struct pl_stat *stat = &list->stats->rows[k];

		if (!pl_exposition_stat(page, stat))
			continue;
		for (unsigned int i = 0; i < all->n; i++) {
			const struct pl_tap_service *t = &all->taps[i]->service;

			for (unsigned int o = 0; o < t->n_outs; o++) {
				const struct pl_tap_out *out = t->outs[o];
				const void *of = out->driver == driver ? list->counters(out) : NULL;
				const struct pl_label labels[] = { TEXT("tap", all->taps[i]->name),
					TEXT("output", out->name) };

				if (of != NULL)
					pl_exposition_u64(page, labels, 2, pl_stat_read(stat, of));
			}
		}
	}
}

static void put_outs(
	struct pl_taps *all, const struct pl_tap_out_driver *driver, struct pl_exposition *page)
{
	for (unsigned int k = 0; k < PL_TAP_OUT_NUMBERS; k++)
		put_outs_list(all, driver, &driver->numbers[k], page);
}

/* Returns whether an output before this one has the same driver. */
static bool was_put(const struct pl_taps *all, unsigned int tap, unsigned int out)
{
	const struct pl_tap_out_driver *driver = all->taps[tap]->service.outs[out]->driver;

	for (unsigned int i = 0; i <= tap; i++) {
		const struct pl_tap_service *t = &all->taps[i]->service;

		for (unsigned int o = 0; o < (i == tap ? out : t->n_outs); o++) {
			if (t->outs[o]->driver == driver)
				return true;
		}
	}
	return false;
}

/* Sockets of taps have families of their own, apart from the collector's. all NULL: no samples. */
static void put_ports(const struct pl_taps *all, struct pl_exposition *page)
{
	static const struct {
		const char *family, *help;
		size_t at;
	} rows[] = {
		{ "pathline_tap_kernel_drops",
			"Packets that the kernel dropped because there was no room in a tap's socket or ring.",
			offsetof(struct pl_port_stats, kernel_drops) },
		{ "pathline_tap_flood_drops",
			"Dropped datagrams of senders that flooded a tap and had a socket of their own.",
			offsetof(struct pl_port_stats, flood_drops) },
		{ "pathline_tap_floods",
			"Times that a sender flooded a tap and got a socket of its own.",
			offsetof(struct pl_port_stats, floods) },
	};

	struct pl_port_stats ports[PL_CONFIG_TAPS_MAX];

	/* Read once, so that the drops of floods are among all drops. */
	for (unsigned int i = 0; all != NULL && i < all->n; i++)
		pl_tap_port_stats(&all->taps[i]->service, &ports[i]);
	for (unsigned int k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		pl_exposition_family(page, rows[k].family, PL_METRIC_COUNTER, NULL, rows[k].help);
		for (unsigned int i = 0; all != NULL && i < all->n; i++) {
			const struct pl_label label = TEXT("tap", all->taps[i]->name);
			uint64_t n;

			memcpy(&n, (const char *)&ports[i] + rows[k].at, sizeof(n));
			pl_exposition_u64(page, &label, 1, n);
		}
	}
}

static void put_drops(struct pl_taps *all, struct pl_exposition *page)
{
	bool open = false;

	for (unsigned int i = 0; i < all->n; i++) {
		if (all->taps[i]->service.n_drops == 0)
			continue;
		if (!open)
			pl_tap_drops_family(page);
		open = true;
		pl_tap_drops_samples(&all->taps[i]->service, all->taps[i]->name, page);
	}
}

static void put_page(struct pl_taps *all, struct pl_exposition *page)
{
	put_list(all, &pl_tap_stats_list, of_tap, page);
	put_list(all, &pl_tmpkt_stats_list, of_receiver, page);
	put_list(all, &pl_tap_service_list, of_service, page);
	put_exporters(all, page);
	put_rules(all, page);
	pl_tap_places_family(page);
	for (unsigned int i = 0; i < all->n; i++)
		pl_tap_places_samples(&all->taps[i]->service, all->taps[i]->name, page);
	put_list(all, &pl_flow_counters_list, of_flows, page);
	put_list(all, &pl_tap_listening_list, of_listening, page);
	put_list(all, &pl_flow_state_counters_list, of_flow_state, page);
	put_drops(all, page);
	put_ports(all, page);
	for (unsigned int i = 0; i < all->n; i++) {
		const struct pl_tap_service *t = &all->taps[i]->service;

		for (unsigned int o = 0; o < t->n_outs; o++) {
			if (!was_put(all, i, o))
				put_outs(all, t->outs[o]->driver, page);
		}
	}
}

void pl_taps_put(void *taps, const struct pl_account *a)
{
	struct pl_taps *all = taps;

	if (all == NULL) {
		pl_tap_put(NULL, a);
		put_ports(NULL, a->page);
	} else if (a->json == NULL) {
		put_page(all, a->page);
	} else {
		for (unsigned int i = 0; i < all->n; i++) {
			pl_account_object(a, all->taps[i]->name);
			pl_tap_put(&all->taps[i]->service, a);
			pl_account_object_end(a);
		}
	}
}

void pl_taps_put_text(void *taps, struct pl_buf *text)
{
	const struct pl_taps *all = taps;

	for (unsigned int i = 0; i < all->n; i++) {
		pl_buf_printf(text, "%s%s: ", i > 0 ? "; " : "", all->taps[i]->name);
		pl_tap_put_text(&all->taps[i]->service, text);
	}
}
