/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives records of drops, and counts drops by reason. */
#include "service/tap_drops.h"

#include <errno.h>
#include <string.h>

#include "service/tap_rules.h"
#include "tap/source.h"

/* ---- sources ---- */

int pl_tap_source_makes(const char *uri, uint32_t kinds, struct pl_diag *diag)
{
	const uint32_t drops = 1u << PL_FLAT_DROP168;

	if (pl_tap_drops_is(uri) && kinds != drops) {
		pl_diag_set(diag,
			"%s has records of drops only, and others are asked for: start a tap for each "
			"kind of records",
			uri);
		return -EINVAL;
	}
	if (!pl_tap_drops_is(uri) && (kinds & drops) != 0 && !pl_tap_source_is_tmpkt(uri)) {
		pl_diag_set(diag,
			"%s has no records of drops: give drops:, drops:IFACE, or udp://HOST:PORT that "
			"another tap sends them to",
			uri);
		return -EINVAL;
	}
	return 0;
}

int pl_tap_drops_source(struct pl_tap_service *t, const char *uri, struct pl_diag *diag)
{
	int r;

	if (t->n_drops == PL_TAP_DROPS_MAX) {
		pl_diag_set(diag, "at most %d sources of drops", PL_TAP_DROPS_MAX);
		return -EINVAL;
	}
	r = pl_tap_drops_open(&t->drops[t->n_drops], uri, &t->tap.rules, t->point, diag);
	t->n_drops += r == 0;
	return r;
}

/* ---- at work ---- */

unsigned int pl_tap_drops_fds(
	const struct pl_tap_service *t, struct pollfd *ret, unsigned int n, unsigned int max)
{
	for (unsigned int i = 0; i < t->n_drops && n < max; i++)
		ret[n++] = (struct pollfd){ .fd = pl_tap_drops_fd(t->drops[i]), .events = POLLIN };
	return n;
}

static int receive_one(struct pl_tap_service *t, struct pl_tap_drops *d, struct pl_diag *diag)
{
	for (int i = 0; i < PL_TAP_BATCHES_A_TURN && !pl_tap_service_enough(t); i++) {
		const int n = pl_tap_drops_recv(d, t->dropped, diag);

		if (n <= 0)
			return n;
		for (int r = 0; r < n; r++)
			t->dropped[r].record_seq = t->tap.seq++;
		t->kernel_records += (uint64_t)n;
		pl_tap_count_clock(&t->tap.stats, PL_STAMP_TAI, (uint32_t)n);
		pl_tap_service_clock(t, PL_STAMP_TAI);
		pl_tap_service_give(t, PL_FLAT_DROP168, t->dropped, (uint32_t)n);
	}
	return 0;
}

int pl_tap_drops_receive(struct pl_tap_service *t, struct pl_diag *diag)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < t->n_drops; i++)
		r = receive_one(t, t->drops[i], diag);
	return r;
}

uint64_t pl_tap_drops_due(const struct pl_tap_service *t, uint64_t due_ns)
{
	for (unsigned int i = 0; i < t->n_drops; i++) {
		const uint64_t due = pl_tap_drops_due_ns(t->drops[i]);

		due_ns = due < due_ns ? due : due_ns;
	}
	return due_ns;
}

/* ---- accounts ---- */

void pl_tap_drops_add(struct pl_tap_service *t, struct pl_tap_stats *sum)
{
	for (unsigned int i = 0; i < t->n_drops; i++) {
		struct pl_drops_counts c;

		pl_tap_drops_counts(t->drops[i], &c);
		sum->skipped += c.skipped;
		sum->not_sampled += c.not_sampled;
		sum->rate_limited += c.rate_limited;
		sum->ring_full += c.ring_full;
		sum->other_namespace += c.other_namespace;
		sum->other_interface += c.other_interface;
		sum->not_network += c.not_network;
		sum->missed += pl_tap_drops_missed(t->drops[i]);
	}
}

/* Adds up the counters of all sources, which number reasons alike. */
static void sum_reasons(struct pl_tap_service *t, uint64_t by[PL_DROPS_REASONS])
{
	memset(by, 0, PL_DROPS_REASONS * sizeof(*by));
	for (unsigned int i = 0; i < t->n_drops; i++)
		pl_tap_drops_by_reason(t->drops[i], by);
}

void pl_tap_drops_family(struct pl_exposition *page)
{
	pl_exposition_family(page, "pathline_tap_drops", PL_METRIC_COUNTER, NULL,
		"Packets that the kernel dropped, by its reason, at the interfaces that the tap looks at, records or not.");
}

void pl_tap_drops_samples(struct pl_tap_service *t, const char *tap, struct pl_exposition *page)
{
	uint64_t by[PL_DROPS_REASONS];
	char name[PL_DROPS_NAME_MAX];

	sum_reasons(t, by);
	for (uint32_t slot = 0; slot < PL_DROPS_REASONS; slot++) {
		const struct pl_label labels[] = {
			{ .name = "reason", .form = PL_LABEL_TEXT, .text = name },
			{ .name = "tap", .form = PL_LABEL_TEXT, .text = tap }
		};

		if (by[slot] == 0)
			continue;
		pl_tap_drops_reason_name(t->drops[0], slot, name);
		pl_exposition_u64(page, labels, tap != NULL ? 2 : 1, by[slot]);
	}
}

void pl_tap_drops_json(struct pl_tap_service *t, struct pl_json *json)
{
	uint64_t by[PL_DROPS_REASONS];
	char name[PL_DROPS_NAME_MAX];

	if (t->n_drops == 0)
		return;
	sum_reasons(t, by);
	pl_json_key(json, "drops");
	pl_json_object(json);
	for (uint32_t slot = 0; slot < PL_DROPS_REASONS; slot++) {
		if (by[slot] == 0)
			continue;
		pl_tap_drops_reason_name(t->drops[0], slot, name);
		pl_json_number(json, name, by[slot]);
	}
	pl_json_object_end(json);
}
