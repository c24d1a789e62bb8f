/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One datagram of telemetry reports into path and hop records. The path of a report is what its
 * embedded stack says, source first, then the reporting node's own metadata from the report header
 * (Telemetry Report v2.0 3.3); a node in both is listed once and the header wins.
 */
#include "decode/internal.h"

#include "decode/report.h"

#include "core/detect_types.h"

static uint16_t flags_of(const struct pl_report *r)
{
	return (uint16_t)((r->dropped ? PL_FLAG_DROPPED : 0) |
			  (r->congested ? PL_FLAG_CONGESTED : 0) |
			  (r->tracked ? PL_FLAG_TRACKED : 0) |
			  (r->intermediate ? PL_FLAG_INTERMEDIATE | PL_FLAG_PARTIAL : 0));
}

void path_from_int(struct job *j, struct pl_path *path, const struct pl_int *in)
{
	if (__builtin_expect(in->version != PL_INT_VERSION_MAX, 1)) {
		path->int_version = in->version;
		path->dialect = in->host_int         ? PL_DIALECT_HOST_INT
				: in->layout != NULL ? in->layout->dialect
						     : PL_DIALECT_SPEC;
		path->present |= PL_PATH_HAS_dialect;
	}
	path->mode = in->kind == PL_INT_MX ? PL_MODE_MX : PL_MODE_MD;
	if (in->partial)
		path->flags |= PL_FLAG_PARTIAL;
	/* M: a node is missing anywhere. E: nodes are missing behind the newest in the stack. */
	if (in->mtu_limit)
		j->links = 0;
	else if (in->hop_limit)
		j->links = in->hops;
	if (in->copy)
		path->flags |= PL_FLAG_COPY;
	if (in->have_flow_seq) {
		path->flow_seq = in->flow_seq;
		path->present |= PL_PATH_HAS_flow_seq;
	}
	j->notes |= in->notes;
}

/* Adds the reporting node as the last hop, unless the stack has it already. Returns the new number
 * of hops. */
static unsigned int add_reporter(struct job *j, const struct pl_path *path,
	const struct pl_report *r, struct pl_hop *hops, unsigned int n)
{
	struct pl_hop own;

	/* Without metadata in the header, the stack gives the node's place, if there is one. */
	if (!r->have_hop && (n > 0 || !r->have_node))
		return n;
	hop_from_report(&own, r);
	/* derive() takes the hops of an IOAM path for ns, as IOAM's are; the header's may not
	 * be. */
	if (__builtin_expect(path->mode >= PL_MODE_IOAM_TRACE && path->mode <= PL_MODE_IOAM_POT, 0))
		hop_to_ns(j, &own);
	if (n > 0 && (hops[n - 1].present & PL_HOP_HAS_node) != 0 && hops[n - 1].node == own.node) {
		hop_merge(&hops[n - 1], &own);
		j->notes |= PL_NOTE_BIT(NODE_TWICE);
		return n;
	}
	if (n == PL_INT_HOPS_MAX)
		return n;
	hops[n] = own;
	return n + 1;
}

/* Decodes a drop summary of Host-INT: packets of a flow that did not get from one host to the
 * other. The nodes between are not known, so the two hosts are a part of a path. */
static unsigned int drop_summary(
	struct pl_path *path, struct pl_hop *hops, const struct pl_report *r)
{
	path->mode = PL_MODE_DROP_SUMMARY;
	path->flags |= PL_FLAG_PARTIAL;
	path->flow_seq = r->lost_first;
	pl_path_set_lost_count(path, r->lost_count);
	path->present |= PL_PATH_HAS_flow_seq;
	memset(hops, 0, 2 * sizeof(*hops));
	hops[0].node = r->node;
	hops[0].egress_port = r->hop.egress_port;
	hops[0].present = PL_HOP_HAS_node | PL_HOP_HAS_egress_port;
	hops[0].record_version = PL_RECORD_VERSION;
	hops[1].node = r->sink_node;
	hops[1].ingress_port = r->sink_port;
	hops[1].present = PL_HOP_HAS_node | PL_HOP_HAS_ingress_port;
	hops[1].record_version = PL_RECORD_VERSION;
	return 2;
}

static enum pl_verdict one(struct job *j, const struct pl_report *r, const struct pl_addr *exporter,
	uint16_t exporter_port, bool instrumented, bool proven)
{
	struct pl_path *path = begin_report(j);
	struct pl_hop *hops = hops_of(j);
	enum pl_verdict v = PL_V_OK;
	unsigned int n = 0;
	bool unread = r->unread;
	struct found f;

	j->notes = r->notes;
	if (r->verdict != PL_V_OK)
		return (enum pl_verdict)r->verdict;
	path->exporter = *exporter;
	path->exporter_port = exporter_port;
	path->report_version = r->version;
	path->hw_id = r->hw_id;
	path->seq = r->seq;
	path->flags = flags_of(r);
	path->mode = PL_MODE_XD;
	path->present = PL_PATH_HAS_exporter | PL_PATH_HAS_exporter_port |
			PL_PATH_HAS_report_version | PL_PATH_HAS_hw_id | PL_PATH_HAS_seq;
	if (r->have_node) {
		path->node = r->node;
		path->present |= PL_PATH_HAS_node;
	}
	if (r->have_drop_reason) {
		path->drop_reason = r->drop_reason;
		path->present |= PL_PATH_HAS_drop_reason;
	}
	if (__builtin_expect(instrumented, 0)) {
		path->flags |= PL_FLAG_INSTRUMENTED;
		j->notes |= PL_NOTE_BIT(INSTRUMENTED);
	}
	if (__builtin_expect(!proven, 0))
		set_unproven(j, path);
	if (r->intermediate)
		j->notes |= PL_NOTE_BIT(PARTIAL);

	if (__builtin_expect(r->inner_garbage, 0)) {
		v = PL_V_REPORT_INNER;
		unread = true;
	} else if (r->inner_link != PL_LINK_UNKNOWN) {
		v = find_telemetry(j, &f, r->inner, r->inner_link, NULL, true, r->tracked);
		if (v == PL_V_SHORT || v == PL_V_ETHERTYPE_UNKNOWN) {
			/* Cut before its addresses, or no IP packet: this is still a report, but
			 * without a flow. */
			j->notes |= PL_NOTE_BIT(INNER_CUT);
			f.unread = true;
			v = PL_V_OK;
		} else if (!f.have_flow) {
			v = PL_V_REPORT_INNER;
		} else if (v != PL_V_OK && v != PL_V_INT_TRUNCATED) {
			return v;
		}
		unread = (unread || f.unread) && !(f.have_int && f.in.kind != PL_INT_DESTINATION);
		if (f.have_flow)
			set_flow(path, &f.flow);
		if (f.have_int) {
			path_from_int(j, path, &f.in);
			if (f.in.hops > 0) {
				(void)hops_from_stack(
					j, path, hops, &f.in, plan_of(j->d, f.in.layout));
				n = f.in.hops;
			}
		} else if (f.have_ioam) {
			bool found;
			enum pl_verdict w = decode_ioam(j, path, hops, &n, &f.ioam, &found);

			if (w != PL_V_OK)
				return w;
			if (found && f.more_ioam)
				j->notes |= PL_NOTE_BIT(IOAM_MORE);
		}
	}
	/* The unread part may hold a stack, as F permits: then this is not all of the path. */
	if (__builtin_expect(unread, 0) && (r->tracked || v == PL_V_REPORT_INNER)) {
		path->flags |= PL_FLAG_PARTIAL;
		j->notes |= PL_NOTE_BIT(PARTIAL);
	}
	if (r->form == PL_REPORT_DROP_SUMMARY) {
		n = drop_summary(path, hops, r);
	} else {
		n = add_reporter(j, path, r, hops, n);
	}
	derive(j, path, hops, n);
	commit_path(j, path, n);
	return v;
}

bool account_elsewhere(struct job *j, const struct pl_addr *addr, const struct number *n)
{
	const struct pl_core_numbered numbered = { .exporter = *addr,
		.node = n->node,
		.seq = n->seq & number_mask(n),
		.hw_id = n->hw_id,
		.report_version = n->version };

	return j->d->opt.number(j->d->opt.number_arg, &numbered, j->pkt->ts_ns);
}

/* Adds the changes of an exporter's account to the sums of the batch. */
static void add_up(
	struct pl_decode *d, const struct pl_sequence *now, const struct pl_sequence *before)
{
	d->sum.lost += now->lost - before->lost;
	d->sum.reordered += now->reordered - before->reordered;
	d->sum.duplicates += now->duplicates - before->duplicates;
	d->sum.restarts += now->restarts - before->restarts;
}

bool account_unusual(
	struct job *j, struct pl_seq_space *e, const struct pl_addr *addr, const struct number *n)
{
	static const struct pl_sequence nothing;
	const uint32_t mask = number_mask(n), seq = n->seq & mask;
	struct pl_decode *d = j->d;
	struct pl_sequence before;
	struct pl_seq_space *kept;

	if (e == NULL) {
		e = pl_seq_spaces_make(&d->exporters, addr, n->node, n->hw_id, j->pkt->ts_ns);
		if (e == NULL) {
			d->sum.exporters_full++;
			return true;
		}
		e->report_version = n->version;
		e->seq.reports++;
	}
	before = e->followed ? e->seq : nothing;
	if (d->opt.partial) {
		pl_sequence_prove(&e->seq, seq, mask, d->opt.sequence_gap_max);
		e->seq.started = true;
		e->seq.highest = seq;
	} else {
		pl_sequence_step(&e->seq, seq, mask, d->opt.sequence_gap_max);
	}
	if (!e->seq.proven)
		return false;
	kept = e->followed ? e : pl_seq_spaces_follow(&d->exporters, e, j->pkt->ts_ns);
	if (kept == NULL) {
		/* Every number of this exporter comes here, until there is room. */
		e->seq.steady = false;
		e->late = true;
		d->sum.exporters_full++;
		return true;
	}
	if (!d->opt.partial)
		add_up(d, &kept->seq, &before);
	return true;
}

/* Number of a report. v0.5 numbers the reports of a device and names it by its address only; a drop
 * report that names the node as well has the same numbering. */
static struct number number_in(const struct pl_report *r)
{
	return (struct number){ .node = r->version == PL_REPORT_V05 ? 0 : r->node,
		.seq = r->seq,
		.hw_id = r->hw_id,
		.version = r->version };
}

/* Counts the number of a report that is not read: it arrived, so it is not lost. An exporter that
 * has to be proven does not begin with one. */
static void account_unread(struct job *j, const struct pl_addr *addr, const struct number *n)
{
	if (j->d->opt.number != NULL || !j->d->exporters.prove ||
		pl_seq_spaces_get(&j->d->exporters, addr, n->node, n->hw_id) != NULL)
		(void)account(j, addr, n);
}

enum pl_verdict decode_reports(struct job *j, struct pl_cursor datagram,
	const struct pl_addr *exporter, uint16_t exporter_port, bool instrumented, bool cut)
{
	struct pl_report_iter it;
	struct pl_report r;
	enum pl_verdict v, verdict = PL_V_OK;
	bool accounted = false, proven = true;

	j->profile = profile_of(j->d, exporter);
	v = pl_report_begin(&it, datagram, j->profile->report_version - 1, cut);
	if (it.numbered) {
		/* The group is numbered, whatever its reports are. */
		const struct number n = {
			.node = it.node, .seq = it.seq, .hw_id = it.hw_id, .version = it.version
		};

		if (v == PL_V_OK)
			proven = account(j, exporter, &n);
		else
			account_unread(j, exporter, &n);
		accounted = true;
	}
	if (v != PL_V_OK)
		return v;
	while (pl_report_next(&it, &r, &v)) {
		enum pl_verdict w;

		if (!accounted) {
			const struct number n = number_in(&r);

			proven = account(j, exporter, &n);
		}
		accounted = true;
		j->reports++;
		w = one(j, &r, exporter, exporter_port, instrumented, proven);
		count_notes(j);
		if (w != PL_V_OK && verdict == PL_V_OK)
			verdict = w;
	}
	if (!accounted && v == PL_V_REPORT_PROTO) {
		const struct number n = number_in(&r);

		account_unread(j, exporter, &n);
	}
	/* Notes about reports that were stepped over and not followed by one. */
	j->notes = it.notes;
	count_notes(j);
	return verdict != PL_V_OK ? verdict : v;
}
