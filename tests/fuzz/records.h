/* SPDX-License-Identifier: BSD-2-Clause */
/* What must hold for whatever a decoder gives out, and for its account. For the targets decode and
 * stream. */
#pragma once

#include "decode/internal.h"
#include "fuzz.h"

/* A field that is not there is zero, every byte of it; the bits of `present` are those of
 * fields. */
static inline void check_absent(
	const void *record, uint32_t present, uint32_t bit, size_t at, size_t size)
{
	const uint8_t *p = (const uint8_t *)record + at;

	if (bit == 0 || (present & bit) != 0)
		return;
	for (size_t i = 0; i < size; i++)
		must(p[i] == 0);
}

static inline void check_hop(const struct pl_path *path, const struct pl_hop *hop, unsigned int i)
{
	const uint32_t present = hop->present;
	uint32_t known = 0, filled = present;

	must((present & PL_HOP_HAS_ns_data) == 0 || (present & PL_HOP_HAS_congestion) == 0);
	if ((filled & PL_HOP_HAS_ns_data) != 0)
		filled |= PL_HOP_HAS_congestion;
#define PL_HOP_FIELD(off, id, type, ...)                                                           \
	check_absent(hop, filled, PL_HOP_HAS_##id, off, sizeof(type));                             \
	known |= PL_HOP_HAS_##id;
#define PL_HOP_ALIAS(off, type, form, presence, id, ...) known |= PL_HOP_HAS_##id;
#include "record/fields.def"
	must((present & ~known) == 0);
	must(hop->index == i);
	must(hop->record_version == PL_RECORD_VERSION);
	must(hop->report_id == path->report_id && hop->path_id == path->path_id);
	must(hop->ts_ns == path->ts_ns);
	must(((present & PL_HOP_HAS_path_id) != 0) == ((path->present & PL_PATH_HAS_path_id) != 0));
	must((present & PL_HOP_HAS_time_bits) == 0 || hop->time_bits == 32 || hop->time_bits == 64);
	/* A link latency stands where two clocks agree, and nowhere else; the first hop has
	 * none. */
	must(hop->clock < PL_CLOCK_MAX);
	must(((present & PL_HOP_HAS_link_latency_ns) != 0) ==
		((present & PL_HOP_HAS_clock) != 0 && hop->clock == PL_CLOCK_OK));
	must(hop->link_latency_ns >= 0);
	must(i > 0 || (present & PL_HOP_HAS_clock) == 0);
}

#define OF_IOAM                                                                                    \
	(PL_PATH_HAS_ioam_namespace | PL_PATH_HAS_e2e_ts_ns | PL_PATH_HAS_pot_packet_id |          \
		PL_PATH_HAS_pot_cumulative)
#define OF_REPORT (PL_PATH_HAS_exporter | PL_PATH_HAS_exporter_port | PL_PATH_HAS_node)

static inline void check_path(const struct pl_record_batch *b, uint32_t i)
{
	const struct pl_path *path = &b->paths[i];
	const struct pl_hop *hops = &b->hops[b->first_hop[i]];
	uint32_t all = UINT32_MAX, known = 0, filled = path->present;
	uint64_t latency = 0;

	must(b->first_hop[i] + path->hop_count <= b->n_hops);
	/* One place, one of its two meanings. */
	must((filled & PL_PATH_HAS_lost_count) == 0 || (filled & PL_PATH_HAS_flow_id) == 0);
	if ((filled & PL_PATH_HAS_lost_count) != 0)
		filled |= PL_PATH_HAS_flow_id;
	/* What IOAM has stands where a report would name its exporter. */
	if ((filled & OF_IOAM) != 0) {
		must((filled & OF_REPORT) == 0);
		filled |= OF_REPORT;
	}
#define PL_PATH_FIELD(off, id, type, ...)                                                          \
	check_absent(path, filled, PL_PATH_HAS_##id, off, sizeof(type));                           \
	known |= PL_PATH_HAS_##id;
#define PL_PATH_ALIAS(off, type, form, presence, id, ...) known |= PL_PATH_HAS_##id;
#include "record/fields.def"
	must((path->present & ~known) == 0);
	must(path->mode < PL_MODE_MAX && path->report_id != 0);
	must(path->record_version == PL_RECORD_VERSION);
	must((path->present & PL_PATH_HAS_src) == 0 || path->dscp < 64);
	must((path->present & PL_PATH_HAS_vlan) == 0 || path->vlan < 4096);
	for (unsigned int h = 0; h < path->hop_count; h++) {
		check_hop(path, &hops[h], h);
		all &= hops[h].present;
		latency += hops[h].hop_latency_ns;
	}
	/* A part of a path has no identity and no sum. */
	if ((path->flags & PL_FLAG_PARTIAL) != 0 || path->hop_count == 0)
		all = 0;
	must(((path->present & PL_PATH_HAS_path_id) != 0) == ((all & PL_HOP_HAS_node) != 0));
	must((path->path_id != 0) == ((path->present & PL_PATH_HAS_path_id) != 0));
	must(((path->present & PL_PATH_HAS_latency_ns) != 0) ==
		((all & PL_HOP_HAS_hop_latency_ns) != 0));
	must((path->present & PL_PATH_HAS_latency_ns) == 0 || path->latency_ns == latency);
}

static inline void check_batch(const struct pl_record_batch *b)
{
	must(b->n_paths <= b->cap_paths && b->n_hops <= b->cap_hops);
	for (uint32_t i = 0; i < b->n_paths; i++)
		check_path(b, i);
}

/* packets = sum of verdicts; what the exporters' own account say adds up to what the decoder's
 * say. */
static inline void check_account(const struct pl_decode *d)
{
	const struct pl_decode_counters *c = pl_decode_counters(d);
	uint64_t verdicts = 0, lost = 0, reordered = 0, duplicates = 0, restarts = 0;
	struct pl_exporter e;

	for (unsigned int v = 0; v < PL_V_MAX; v++)
		verdicts += pl_counter_read(&c->verdicts[v]);
	must(verdicts == pl_counter_read(&c->packets));
	for (uint32_t pos = 0; pl_decode_exporter(d, &pos, &e);) {
		must(pos <= d->opt.max_exporters);
		must(e.reports > 0 && e.first_ts_ns <= e.last_ts_ns && e.hw_id < 64);
		must(e.reordered + e.duplicates + e.restarts + e.stragglers <= e.reports);
		lost += e.lost;
		reordered += e.reordered;
		duplicates += e.duplicates;
		restarts += e.restarts;
	}
	if (pl_counter_read(&c->exporters_gone) != 0)
		return; /* theirs are missing */
	must(lost == pl_counter_read(&c->lost) && reordered == pl_counter_read(&c->reordered));
	must(duplicates == pl_counter_read(&c->duplicates));
	must(restarts == pl_counter_read(&c->restarts));
}

/* The decoder without its shortcuts, which are held against it. */
static inline void only_general(struct pl_decode *d)
{
	for (unsigned int i = 0; i <= d->opt.n_profiles; i++)
		d->profiles[i].usual = false;
	d->decode_hops = hops_decode_none;
}

/* Decoders with different ways through the code: plain; INT by DSCP, and anything a report; INT by
 * port and marker; TCP and embedding pinned, times in microseconds; v0.4; the clocks IOAM may use.
 * `more` is set on top. */
enum { DECODERS = 6 };

static inline struct pl_decode *make_decoder(unsigned int way, const struct pl_decode_options *more)
{
	struct pl_decode_options o = *more;
	struct pl_profile profile = { 0 };
	struct pl_decode *d;

	switch (way) {
	case 1:
		profile.dscp_set = true;
		profile.dscp_value = 0x17;
		profile.dscp_mask = 0x3f;
		o.any_port = true;
		break;
	case 2:
		profile.int_port = 5000;
		profile.marker_set = true;
		profile.marker = UINT64_C(0xaaaaaaaabbbbbbbb);
		o.gre_int_ethertype = 0x88b5;
		break;
	case 3:
		profile.tcp_placement = PL_TCP_BEFORE_OPTIONS;
		profile.embedded = PL_EMBEDDED_ANNOUNCED;
		profile.dscp_set = true;
		profile.dscp_value = 1;
		profile.dscp_mask = 1;
		profile.timestamp_unit = PL_UNIT_US;
		profile.latency_unit = PL_UNIT_US;
		break;
	case 4:
		profile.hints.dialect = PL_DIALECT_V04;
		profile.hints.dialect_pinned = true;
		break;
	case 5:
		profile.prefix_bits = 97; /* half of IPv4 */
		profile.prefix.b[10] = profile.prefix.b[11] = 0xff;
		profile.report_version = 1 + PL_REPORT_V20;
		o.ioam_namespaces[0] = (struct pl_ioam_namespace){ 0, PL_IOAM_TIME_NTP };
		o.ioam_namespaces[1] = (struct pl_ioam_namespace){ 1, PL_IOAM_TIME_PTP };
		o.ioam_namespaces[2] = (struct pl_ioam_namespace){ 123, PL_IOAM_TIME_PTP };
		o.n_ioam_namespaces = 3;
		break;
	default:
		break;
	}
	if (way > 0) {
		o.profiles = &profile;
		o.n_profiles = 1;
	}
	must(pl_decode_new(&d, &o) == 0);
	return d;
}
