/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole decoder, packet to records, for every link type and for options that change its way. The first
 * byte picks them; the rest is one packet, given whole and then cut in the middle, as a capture would.
 */
#include "decode/decode.h"
#include "fuzz.h"

enum { PATHS = 64, HOPS = 256 };

static struct pl_decode *decoders[4];
static struct pl_record_batch batch;
static uint64_t paths_seen, hops_seen;

/* A field that is not there is zero. */
static void check_record(enum pl_record_kind kind, const void *record, uint32_t present)
{
	const struct pl_field *fields;
	size_t n;

	fields = pl_fields(kind, &n);
	for (size_t i = 0; i < n; i++) {
		const uint8_t *at = (const uint8_t *)record + fields[i].offset;

		if (fields[i].present == 0 || (present & fields[i].present) != 0)
			continue;
		must(at[0] == 0);
	}
}

static void check_batch(struct pl_record_batch *b, void *arg)
{
	(void)arg;
	must(b->n_paths <= b->cap_paths && b->n_hops <= b->cap_hops);
	for (uint32_t i = 0; i < b->n_paths; i++) {
		const struct pl_path *path = &b->paths[i];

		must(path->mode < PL_MODE_MAX);
		must(path->record_version == PL_RECORD_VERSION);
		must(b->first_hop[i] + path->hop_count <= b->n_hops);
		must(b->pkt[i] < 2);
		check_record(PL_KIND_PATH, path, path->present);
		for (unsigned int h = 0; h < path->hop_count; h++) {
			const struct pl_hop *hop = &b->hops[b->first_hop[i] + h];

			must(hop->index == h);
			must(hop->report_id == path->report_id);
			check_record(PL_KIND_HOP, hop, hop->present);
		}
	}
	paths_seen += b->n_paths;
	hops_seen += b->n_hops;
	pl_record_batch_clear(b);
}

/* Plain; INT by DSCP, anything a report; INT by port and marker; TCP and embedding pinned. */
static void make_decoders(void)
{
	static struct pl_profile profiles[4];
	static struct pl_decode_options options[4];

	profiles[1].dscp_set = true;
	profiles[1].dscp_value = 0x17;
	profiles[1].dscp_mask = 0x3f;
	profiles[2].int_port = 5000;
	profiles[2].marker_set = true;
	profiles[2].marker = UINT64_C(0xaaaaaaaabbbbbbbb);
	profiles[3].tcp_placement = PL_TCP_BEFORE_OPTIONS;
	profiles[3].embedded = PL_EMBEDDED_ANNOUNCED;
	profiles[3].dscp_set = true;
	profiles[3].dscp_value = 1;
	profiles[3].dscp_mask = 1;
	for (unsigned int i = 0; i < 4; i++) {
		options[i].max_exporters = 64;
		options[i].max_paths = 64;
		options[i].any_port = i == 1;
		options[i].gre_int_ethertype = i == 2 ? 0x88b5 : 0;
		if (i > 0) {
			options[i].profiles = &profiles[i];
			options[i].n_profiles = 1;
		}
		must(pl_decode_new(&decoders[i], &options[i]) == 0);
	}
	must(pl_record_batch_init(&batch, PATHS, HOPS) == 0);
	batch.flush = check_batch;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_batch in = { .n = 2 };
	const struct pl_decode_counters *counters;
	const struct pl_outcome *outcomes;
	struct pl_decode *d;
	uint64_t verdicts = 0;

	if (decoders[0] == NULL)
		make_decoders();
	if (size < 1)
		return 0;
	d = decoders[data[0] >> 4 & 3];
	for (unsigned int i = 0; i < in.n; i++) {
		struct pl_packet *p = &in.pkts[i];

		p->data = data + 1;
		p->len = (uint32_t)(i == 0 ? size - 1 : (size - 1) / 2);
		p->wire_len = (uint32_t)(size - 1);
		p->ts_ns = UINT64_C(1700000000000000000);
		p->link = data[0] % PL_LINK_MAX;
		p->sport = 40000;
		p->dport = 32766;
	}
	pl_decode_batch(d, &in, &batch);
	check_batch(&batch, NULL);
	outcomes = pl_decode_outcomes(d);
	must(outcomes[0].verdict < PL_V_MAX && outcomes[1].verdict < PL_V_MAX);
	counters = pl_decode_counters(d);
	for (unsigned int v = 0; v < PL_V_MAX; v++)
		verdicts += pl_counter_read(&counters->verdicts[v]);
	must(verdicts == pl_counter_read(&counters->packets));
	return 0;
}
