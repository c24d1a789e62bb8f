/* SPDX-License-Identifier: BSD-2-Clause */
/* The batch loop: it distinguishes reports from packets that carry telemetry themselves, and keeps
 * the accounts. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/prefetch.h"
#include "decode/report.h"
#include "decode/shape.h"

#define DEFAULT_EXPORTERS   4096
#define DEFAULT_PATHS       65536
#define DEFAULT_IDLE        UINT64_C(600000000000)
#define DEFAULT_GAP_MAX     65536
#define DEFAULT_LATENCY_MAX UINT64_C(2000000000)
#define GENEVE_INT_CLASS    0x0103

#define PLANS_BYTES         ((PL_INT_CACHE_SLOTS + OWN_PLANS) * sizeof(struct hop_plan))

/* Packets whose first lines are fetched before their turn: a report's headers and three hops are
 * four lines. */
#define PREFETCH_AHEAD      4

static struct pl_decode_options with_defaults(const struct pl_decode_options *options)
{
	struct pl_decode_options o = *options;

	if (o.n_report_ports == 0) {
		o.report_ports[o.n_report_ports++] = 32766;
		o.report_ports[o.n_report_ports++] = 54321;
	}
	if (o.max_exporters == 0)
		o.max_exporters = DEFAULT_EXPORTERS;
	if (o.exporter_idle_ns == 0)
		o.exporter_idle_ns = DEFAULT_IDLE;
	if (o.max_paths == 0)
		o.max_paths = DEFAULT_PATHS;
	if (o.sequence_gap_max == 0)
		o.sequence_gap_max = DEFAULT_GAP_MAX;
	if (o.latency_max_ns == 0)
		o.latency_max_ns = DEFAULT_LATENCY_MAX;
	if (o.vxlan_ports == 0)
		o.vxlan_ports = PL_VXLAN_PORTS;
	if (o.geneve_int_class == 0)
		o.geneve_int_class = GENEVE_INT_CLASS;
	return o;
}

/* True for exporters whose profile has no setting that matters to the fast path. */
static bool is_usual(const struct pl_profile *p)
{
	return p->embedded == PL_EMBEDDED_AUTO && p->report_version == 0 && !p->marker_set &&
	       p->tcp_placement == PL_TCP_AUTO && p->timestamp_unit == PL_UNIT_NS &&
	       p->latency_unit == PL_UNIT_NS && p->hints.trailing_words == 0 &&
	       p->hints.source_words == 0 &&
	       !(p->hints.dialect == PL_DIALECT_V04 && p->hints.dialect_pinned);
}

void profile_settle(struct pl_profile *p)
{
	p->usual = is_usual(p);
	p->layout_key = pl_int_layout_key(0, 0, 0, false, p->hints.dialect, &p->hints);
}

int pl_decode_new(struct pl_decode **ret, const struct pl_decode_options *options)
{
	struct pl_decode *d = aligned_alloc(64, (sizeof(*d) + 63) / 64 * 64);
	int r;

	if (d == NULL)
		return -ENOMEM;
	memset(d, 0, sizeof(*d));
	d->opt = with_defaults(options);
	/* A record's latency is 32 bits of ns. */
	d->max_latency_ns =
		d->opt.latency_max_ns < UINT32_MAX ? (uint32_t)d->opt.latency_max_ns : UINT32_MAX;
	for (uint32_t port = 0; port <= UINT16_MAX; port++) {
		if (pl_is_tunnel_port(d->opt.vxlan_ports, port))
			d->tunnel_bits |= UINT64_C(1) << (port % 64);
	}
	d->next_report_id = (uint64_t)d->opt.worker << 56 | 1;
	for (unsigned int i = 0; i < d->opt.n_report_ports; i++)
		d->report_ports[d->opt.report_ports[i] / 64] |= UINT64_C(1)
								<< (d->opt.report_ports[i] % 64);

	r = -ENOMEM;
	d->decode_hops = hops_decode_best();
	d->take_shape = shape_take_best();
	d->plans = aligned_alloc(64, PLANS_BYTES);
	if (d->plans == NULL)
		goto fail;
	memset(d->plans, 0, PLANS_BYTES);
	d->own_plans = d->plans + PL_INT_CACHE_SLOTS;
	if (shapes_new(&d->shapes) < 0)
		goto fail;
	d->profiles = calloc(options->n_profiles + 1, sizeof(*d->profiles));
	if (d->profiles == NULL)
		goto fail;
	for (unsigned int i = 0; i < options->n_profiles; i++)
		d->profiles[i + 1] = options->profiles[i];
	for (unsigned int i = 0; i <= options->n_profiles; i++)
		profile_settle(&d->profiles[i]);
	d->opt.profiles = d->profiles;
	r = pl_seq_spaces_init(&d->exporters, d->opt.max_exporters, d->opt.exporter_idle_ns,
		d->opt.prove_exporters);
	if (r < 0)
		goto fail;
	r = paths_init(&d->paths, d->opt.max_paths);
	if (r < 0)
		goto fail;
	*ret = d;
	return 0;
fail:
	pl_decode_free(d);
	return r;
}

void pl_decode_free(struct pl_decode *d)
{
	if (d == NULL)
		return;
	pl_seq_spaces_done(&d->exporters);
	paths_done(&d->paths);
	free(d->plans);
	free(d->shapes);
	free(d->profiles);
	free(d);
}

uint64_t pl_decode_memory(const struct pl_decode_options *options)
{
	struct pl_decode_options o = with_defaults(options);

	return sizeof(struct pl_decode) + PLANS_BYTES + SHAPES * sizeof(struct header_shape) +
	       (o.n_profiles + 1) * sizeof(struct pl_profile) +
	       pl_seq_spaces_memory(o.max_exporters, o.prove_exporters) + paths_memory(o.max_paths);
}

/* Decodes a packet that carries its telemetry in its own headers, without report and exporter. */
static enum pl_verdict decode_data(struct job *j, const struct pl_layers *l)
{
	struct pl_cursor none = { NULL, NULL, false };
	struct found f;
	struct pl_path *path;
	struct pl_hop *hops;
	unsigned int n = 0;
	enum pl_verdict v;

	j->profile = profile_of(j->d, &l->flow.src);
	v = find_telemetry(j, &f, none, PL_LINK_UNKNOWN, l, false, false);
	if (v != PL_V_OK && v != PL_V_INT_TRUNCATED)
		return v;
	if (!f.have_int && !f.have_ioam)
		return PL_V_NOT_TELEMETRY;
	/* A report whose destination port INT had replaced: strip and go on. */
	if (f.have_int && v == PL_V_OK && f.flow.proto == PL_IP_UDP &&
		f.in.carrier == PL_INT_OVER_L4 && is_report_port(j->d, f.flow.dport)) {
		j->notes = 0;
		if (f.added)
			pl_cursor_skip(&f.in.rest, 8);
		return decode_reports(j, f.in.rest, &f.flow.src, f.flow.sport, true,
			(l->flags & PL_LAYERS_CUT) != 0);
	}

	path = begin_report(j);
	hops = hops_of(j);
	set_flow(path, &f.flow);
	if (f.have_int) {
		path_from_int(j, path, &f.in);
		if (f.in.hops > 0) {
			(void)hops_from_stack(j, path, hops, &f.in, plan_of(j->d, f.in.layout));
			n = f.in.hops;
		}
	} else {
		bool found;

		v = decode_ioam(j, path, hops, &n, &f.ioam, &found);
		if (v != PL_V_OK)
			return v;
		if (!found)
			return PL_V_NOT_TELEMETRY;
		if (f.more_ioam)
			j->notes |= PL_NOTE_BIT(IOAM_MORE);
	}
	derive(j, path, hops, n);
	commit_path(j, path, n);
	return v;
}

/* Decodes a trace that a node reported without its packet: a path of no flow. */
static enum pl_verdict decode_trace(struct job *j, struct pl_cursor body)
{
	struct pl_path *path = begin_report(j);
	struct pl_hop *hops = hops_of(j);
	unsigned int n;
	enum pl_verdict v;

	j->profile = &j->d->profiles[0];
	v = decode_ioam_trace(j, path, hops, &n, body);
	if (v != PL_V_OK)
		return v;
	derive(j, path, hops, n);
	commit_path(j, path, n);
	return PL_V_OK;
}

/* The report datagram may itself have been instrumented on its way: INT before the report,
 * announced by the outer DSCP. Reports and shims can look alike, so only bytes that validate are
 * stripped. */
__attribute__((cold, noinline)) static bool strip(struct job *j, struct pl_cursor *payload)
{
	struct pl_cursor c = *payload;
	struct pl_int in;

	if (pl_int_parse(&in, &c, PL_INT_OVER_L4, &j->profile->hints, &j->d->cache, false) !=
			PL_V_OK ||
		in.hops == 0 || pl_cursor_left(&c) < 12)
		return false;
	*payload = c;
	return true;
}

static enum pl_verdict decode_packet(struct job *j)
{
	const struct pl_packet *pkt = j->pkt;
	struct pl_cursor bytes = pl_cursor(pkt->data, pkt->len);
	struct pl_decode *d = j->d;
	struct pl_layers l;
	enum pl_verdict v;

	if (pkt->link == PL_LINK_UDP) {
		if (!d->opt.any_port && !is_report_port(d, pkt->dport))
			return PL_V_NOT_TELEMETRY;
		return decode_reports(
			j, bytes, &pkt->src, pkt->sport, false, pkt->wire_len > pkt->len);
	}
	if (__builtin_expect(pkt->link >= PL_LINK_IOAM_TRACE, 0))
		return pkt->link == PL_LINK_IOAM_TRACE ? decode_trace(j, bytes) : PL_V_LINK_UNKNOWN;
	v = pl_layers_walk(&l, bytes, (enum pl_link)pkt->link, false);
	if (__builtin_expect(v != PL_V_OK, 0))
		return v == PL_V_ETHERTYPE_UNKNOWN ? PL_V_NOT_TELEMETRY : v;
	if (l.flow.proto == PL_IP_UDP && (l.flow.have & PL_FLOW_PORTS) != 0 &&
		(l.flags & PL_LAYERS_FRAGMENT) == 0 && is_report_port(d, l.flow.dport)) {
		bool instrumented = false;

		j->profile = profile_of(d, &l.flow.src);
		if (__builtin_expect(l.flow.dscp != 0, 0) &&
			(j->profile->dscp_set ? (l.flow.dscp & j->profile->dscp_mask) ==
							j->profile->dscp_value
					      : l.flow.dscp == 0x17))
			instrumented = strip(j, &l.payload);
		return decode_reports(j, l.payload, &l.flow.src, l.flow.sport, instrumented,
			(l.flags & PL_LAYERS_CUT) != 0);
	}
	return decode_data(j, &l);
}

static void close_account(struct pl_decode *d, uint32_t packets)
{
	struct pl_decode_counters *c = &d->counters;

	pl_count(&c->packets, packets);
	pl_count(&c->bytes, d->sum.bytes);
	pl_count(&c->reports, d->sum.reports);
	pl_count(&c->paths, d->sum.paths);
	pl_count(&c->hops, d->sum.hops);
	for (unsigned int i = 0; i < PL_V_MAX; i++) {
		if (d->sum.verdicts[i] != 0)
			pl_count(&c->verdicts[i], d->sum.verdicts[i]);
	}
	for (unsigned int i = 0; i < PL_N_MAX; i++) {
		if (d->sum.notes[i] != 0)
			pl_count(&c->notes[i], d->sum.notes[i]);
	}
	pl_count(&c->exporters_full, d->sum.exporters_full);
	pl_count(&c->exporters_gone, d->exporters.gone);
	d->exporters.gone = 0;
	pl_count(&c->unproven, d->sum.unproven);
	/* A late report takes a loss back: the sum may fall, modulo 2^64 the addition is right. */
	pl_count(&c->lost, d->sum.lost);
	pl_count(&c->reordered, d->sum.reordered);
	pl_count(&c->duplicates, d->sum.duplicates);
	pl_count(&c->restarts, d->sum.restarts);
	memset(&d->sum, 0, sizeof(d->sum));
}

static void decode_all(struct pl_decode *d, const struct pl_batch *in, struct pl_record_batch *out)
{
	struct job j = { .d = d, .out = out, .profile = &d->profiles[0] };
	const uint32_t n = in->n;
	uint64_t usual = 0, bytes = 0;

	d->interned_from = out->n_paths;
	for (uint32_t i = 0; i < n; i++) {
		struct pl_outcome *o = &d->outcomes[i];

		j.pkt = &in->pkts[i];
		j.index = i;
		j.notes = 0;
		bytes += j.pkt->len;
		o->notes = 0;
		if (i + PREFETCH_AHEAD < n) {
			const struct pl_packet *ahead = &in->pkts[i + PREFETCH_AHEAD];

			pl_prefetch(ahead->data);
			pl_prefetch(ahead->data + 64);
			pl_prefetch(ahead->data + 128);
			pl_prefetch(ahead->data + 192);
			if (ahead->len > 256) {
				pl_prefetch(ahead->data + 256);
				pl_prefetch(ahead->data + 320);
			}
		}
		if (__builtin_expect(decode_usual(&j), 1)) {
			usual++;
			o->verdict = PL_V_OK;
			o->reports = 1;
		} else {
			enum pl_verdict v;

			j.reports = 0;
			v = decode_packet(&j);
			o->verdict = (uint8_t)v;
			o->reports = j.reports;
			d->sum.verdicts[v]++;
			d->sum.reports += j.reports;
		}
		if (__builtin_expect(j.notes != 0, 0))
			count_notes(&j);
	}
	settle_paths(d, out);
	d->sum.verdicts[PL_V_OK] += usual;
	d->sum.reports += usual;
	d->sum.bytes += bytes;
}

void pl_decode_batch(struct pl_decode *d, const struct pl_batch *in, struct pl_record_batch *out)
{
	decode_all(d, in, out);
	close_account(d, in->n);
}

void pl_decode_copies(struct pl_decode *d, const struct pl_batch *in, struct pl_record_batch *out)
{
	decode_all(d, in, out);
	memset(&d->sum, 0, sizeof(d->sum));
}

const struct pl_outcome *pl_decode_outcomes(const struct pl_decode *d)
{
	return d->outcomes;
}

const struct pl_decode_counters *pl_decode_counters(const struct pl_decode *d)
{
	return &d->counters;
}

static const struct pl_stat exporter_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_exporter, __VA_ARGS__)
#include "decode/exporter_counts.def"
#undef PL_STAT
};
const struct pl_stats pl_exporter_stats = { exporter_rows,
	sizeof(exporter_rows) / sizeof(exporter_rows[0]) };

void pl_exporter_count(struct pl_exporter *x, const struct pl_sequence *seq)
{
	x->unsequenced = seq->constant;
	x->shared = seq->shared;
	x->reports = seq->reports;
	x->lost = seq->lost;
	x->skipped = seq->skipped;
	x->recovered = seq->recovered;
	x->reordered = seq->reordered;
	x->duplicates = seq->duplicates;
	x->restarts = seq->restarts;
	x->stragglers = seq->stragglers;
	x->last_seq = seq->highest;
	x->seen[0] = seq->seen[0];
	x->seen[1] = seq->seen[1];
	x->span = seq->span;
}

bool pl_decode_exporter(const struct pl_decode *d, uint32_t *pos, struct pl_exporter *ret)
{
	const struct pl_seq_space *e = pl_cells_next(&d->exporters.followed, pos);

	if (e == NULL)
		return false;
	*ret = (struct pl_exporter){
		.addr = e->key.addr,
		.node = e->key.node,
		.hw_id = (uint8_t)e->key.hw_id,
		.report_version = e->report_version,
		.late = e->late,
		.first_ts_ns = e->first_ts_ns,
		.last_ts_ns = e->last_ts_ns,
	};
	pl_exporter_count(ret, &e->seq);
	return true;
}

static void fill(const struct pl_decode *d, const struct path_slot *slot, struct pl_path_info *ret)
{
	const struct path_shape *shape = &d->paths.shapes[slot->info];

	ret->path_id = slot->path_id;
	ret->reports = slot->reports;
	ret->last_ts_ns = slot->last_ts_ns;
	ret->hop_count = shape->hop_count;
	memcpy(ret->steps, shape->steps, sizeof(ret->steps));
}

bool pl_decode_path(const struct pl_decode *d, uint32_t i, struct pl_path_info *ret)
{
	if (i >= d->paths.n)
		return false;
	fill(d, &d->paths.slots[d->paths.order[i]], ret);
	return true;
}

bool pl_decode_path_find(const struct pl_decode *d, uint64_t path_id, struct pl_path_info *ret)
{
	const struct path_slot *slot = paths_find(&d->paths, path_id);

	if (slot == NULL)
		return false;
	fill(d, slot, ret);
	return true;
}
