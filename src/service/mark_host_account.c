/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the account of a host's marker, meter or domain edge. */
#include <inttypes.h>

#include "runtime/account.h"
#include "service/mark_host.h"
#include "service/tap_account.h"

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_mark_host, __VA_ARGS__)
#include "service/mark_host_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

static void put(const struct pl_account *a, struct pl_mark_host *h)
{
	const enum pl_hostmark_role role = h->o->kernel.role;

	/* The service could not be opened. */
	if (h->kernel == NULL)
		return;
	pl_hostmark_counts(h->kernel, &h->shown);
	pl_account_object(a, role == PL_HOSTMARK_MARKER  ? "marker"
			     : role == PL_HOSTMARK_METER ? "meter"
							 : "edge");
	if (role == PL_HOSTMARK_MARKER)
		pl_account_stats(a, &pl_hostmark_marker_list, &h->shown.marker);
	else if (role == PL_HOSTMARK_METER)
		pl_account_stats(a, &pl_hostmark_meter_list, &h->shown.meter);
	else
		pl_account_stats(a, &pl_hostmark_edge_list, &h->shown.edge);
	pl_account_object_end(a);
	if (role == PL_HOSTMARK_EDGE)
		return;
	if (h->probe != NULL) {
		pl_account_object(a, "probes");
		pl_account_stats(a, &pl_probe_stats_list, pl_probe_stats(h->probe));
		pl_account_object_end(a);
	}
	pl_account_object(a, "blocks");
	pl_account_stats(a, &stats_list, h);
	pl_account_object_end(a);
	pl_tap_outs_put(h->outs, h->n_outs, a);
}

void pl_mark_host_put(void *s, const struct pl_account *a)
{
	if (s != NULL) {
		put(a, s);
		return;
	}
	/* Families of outputs are described by the tap. */
	pl_account_stats(a, &pl_hostmark_marker_list, NULL);
	pl_account_stats(a, &pl_hostmark_meter_list, NULL);
	pl_account_stats(a, &pl_hostmark_edge_list, NULL);
	pl_account_stats(a, &pl_probe_stats_list, NULL);
	pl_account_stats(a, &stats_list, NULL);
}

static void put_marker(struct pl_buf *text, const struct pl_mark_marker_counts *c)
{
	pl_buf_printf(text, "%" PRIu64 " packets, %" PRIu64 " marked", c->packets, c->marked);
	pl_account_add(text, c->fragments, "later fragments marked");
	pl_account_add(text, c->checked, "only looked at");
	pl_account_add(text, c->not_ip, "not IP");
	pl_account_add(text, c->broken, "broken");
	pl_account_add(text, c->unread, "with headers too long to be read");
	pl_account_add(text, c->skipped, "chosen by no rule");
	pl_account_add(text, c->overflow, "left because the table of flows is full");
	pl_account_add(text, c->no_place, "without a place for the mark");
	pl_account_add(text, c->over_mtu, "too long for the option");
	pl_account_add(text, c->in_use, "that had a marking bit before");
}

static void put_meter(struct pl_buf *text, const struct pl_mark_meter_counts *c)
{
	pl_buf_printf(text, "%" PRIu64 " packets, %" PRIu64 " counted", c->packets, c->counted);
	pl_account_add(text, c->late, "of them late");
	pl_account_add(text, c->early, "of them early");
	pl_account_add(text, c->fragments, "later fragments");
	pl_account_add(text, c->not_ip, "not IP");
	pl_account_add(text, c->broken, "broken");
	pl_account_add(text, c->unread, "with headers too long to be read");
	pl_account_add(text, c->skipped, "chosen by no rule");
	pl_account_add(text, c->overflow, "not counted because the table of flows is full");
	pl_account_add(text, c->unmarked, "without a place for the mark");
}

static void put_edge(struct pl_buf *text, const struct pl_mark_edge_counts *c)
{
	pl_buf_printf(
		text, "%" PRIu64 " packets, %" PRIu64 " cleared of marks", c->packets, c->cleared);
	pl_account_add(text, c->clean, "without one");
	pl_account_add(text, c->not_ip, "not IP");
	pl_account_add(text, c->broken, "broken");
	pl_account_add(text, c->unread, "with headers too long to be read");
	pl_account_add(text, c->skipped, "chosen by no rule");
}

void pl_mark_host_put_text(void *s, struct pl_buf *text)
{
	struct pl_mark_host *h = s;
	struct pl_mark_counts c;

	if (h->kernel == NULL)
		return;
	pl_hostmark_counts(h->kernel, &c);
	if (h->o->kernel.role == PL_HOSTMARK_EDGE) {
		put_edge(text, &c.edge);
		return;
	}
	if (h->o->kernel.role == PL_HOSTMARK_MARKER)
		put_marker(text, &c.marker);
	else
		put_meter(text, &c.meter);
	pl_buf_printf(text, "; %" PRIu64 " flows, %" PRIu64 " blocks read", h->flows, h->blocks);
	if (h->probe != NULL) {
		const struct pl_probe_stats *p = pl_probe_stats(h->probe);

		pl_account_add(text, p->sent, "probes sent");
		pl_account_add(text, p->unreachable + p->down + p->full + p->refused + p->failed,
			"not sent");
		pl_account_add(text, p->missed, "missed");
	}
	pl_account_add(text, h->missed, "blocks not read in time");
	pl_account_add(text, h->steps, "times the clock was set");
	pl_account_add(text, h->late_changes, "times the block was changed too late");
	for (unsigned int i = 0; i < h->n_outs; i++) {
		const uint64_t lost = h->outs[i]->driver->lost(h->outs[i]);

		if (lost > 0)
			pl_buf_printf(text, "; %s did not take %" PRIu64 " records",
				h->outs[i]->name, lost);
	}
}
