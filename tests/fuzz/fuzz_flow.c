/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet records through a small flow cache. First two bytes: the cache's timeouts and size, and the
 * size of batches; then a packet for every ten bytes: time, direction and flow, flags, numbers,
 * lengths, marks, place. Whatever comes, each packet is in one flow record or counted as left out,
 * bytes too, records are numbered one by one, and times in a record make sense.
 */
#include "base/diag.h"
#include "flow/cache.h"
#include "fuzz.h"

enum { STEP = 10, BATCH = 16 };

struct sums {
	uint64_t packets, elsewhere, bytes, records;
	uint64_t by_reason[6];
};

static void add(void *arg, const struct pl_flow288 *records, uint32_t n)
{
	struct sums *s = arg;

	must(n > 0 && n <= PL_FLOW_RECORDS);
	for (uint32_t i = 0; i < n; i++) {
		const struct pl_flow288 *r = &records[i];
		const uint64_t packets = (uint64_t)r->pkts_fwd + r->pkts_rev;

		must(r->flow_seq == (uint32_t)s->records++);
		must(r->end_reason >= PL_FLOW_END_IDLE && r->end_reason <= PL_FLOW_END_SHUTDOWN);
		must(packets > 0 && r->last_ts >= r->first_ts);
		must(r->iat_mean_us <= r->max_gap_us);
		must((r->rtt_min_us == 0) == (r->rtt_avg_us == 0));
		must(r->rtt_min_us <= r->rtt_avg_us);
		must(r->retrans_fwd + r->ooo_fwd <= r->pkts_fwd);
		must(r->retrans_rev + r->ooo_rev <= r->pkts_rev);
		must(r->records == packets);
		must(r->role <= PL_FLOW_ROLE_SERVER && r->role_by <= PL_FLOW_ROLE_BY_PORTS);
		must((r->role == PL_FLOW_ROLE_UNKNOWN) == (r->role_by == PL_FLOW_ROLE_BY_NOTHING));
		must((uint64_t)r->retrans_fast_fwd + r->retrans_timeout_fwd +
				r->retrans_spurious_fwd <=
			r->retrans_fwd);
		must((r->rtt_seq_dst_n == 0) == (r->rtt_seq_dst_min_us == 0));
		must(r->rtt_ts_src_min_us <= r->rtt_ts_src_avg_us);
		must(r->obs_rev == 0 || r->pkts_rev > 0);
		must((r->also_1 != 0 || r->also_more != 0) ||
			(r->elsewhere_fwd == 0 && r->elsewhere_rev == 0));
		must(r->also_6 == 0 || (r->also_1 != 0 && r->also_1 != r->also_6));
		must(r->unseen_ns == 0);
		s->packets += packets;
		s->elsewhere += (uint64_t)r->elsewhere_fwd + r->elsewhere_rev;
		s->bytes += r->bytes_fwd + r->bytes_rev;
		s->by_reason[r->end_reason]++;
	}
}

static struct pl_pkt96 packet(const uint8_t *d, uint64_t *now)
{
	static const uint64_t steps[] = { 0, 1000, 3000000, 200000000, 1000000000,
		UINT64_C(15000000000), UINT64_C(40000000000), UINT64_C(1) << 52 };
	static const uint8_t protos[] = { 6, 6, 17, 132 };
	const bool back = (d[1] & 1) != 0;
	const uint64_t step = steps[d[0] & 7] + (d[0] >> 4);
	struct pl_pkt96 p = { .proto = protos[d[1] >> 6], .tcp_flags = d[2], .wire_len = 60 };

	*now = (d[0] & 8) != 0 ? *now - step : *now + step;
	p.ts_ns = *now;
	p.src.b[15] = back ? 2 : 1;
	p.dst.b[15] = back ? 1 : 2;
	p.sport = back ? 80 : (uint16_t)(d[1] >> 1 & 31);
	p.dport = back ? (uint16_t)(d[1] >> 1 & 31) : 80;
	p.tcp_seq = (uint32_t)(int32_t)(int8_t)d[3] * ((d[8] & 1) != 0 ? 1u << 24 : 1);
	p.tcp_ack = (uint32_t)(int32_t)(int8_t)d[4];
	p.pay_len = d[5];
	p.tcp_win = d[6] & 3;
	p.ip_id = d[6] >> 2;
	p.tsval = d[7] >> 4;
	p.tsecr = d[7] & 15;
	p.tcp_opts = (d[8] & 2) != 0 ? 1 << 8 : 0;
	p.vlan = d[8] >> 2 & 1;
	p.obs = (uint16_t)((d[8] >> 3 & 31) << 10);
	p.obs |= (uint16_t)(d[9] >> 4);
	p.frag_off = d[9] & 3;
	if ((d[9] & 4) != 0)
		p.sport = p.dport = 0;
	return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	const struct pl_flow_counters *n;
	struct pl_flow_cache *cache;
	struct pl_pkt96 packets[BATCH];
	struct sums sums = { 0 };
	uint64_t now = UINT64_C(1700000000000000000), fed = 0;
	uint32_t in_batch = 0, batch;

	if (size < 2)
		return 0;
	config.max_flows = 8u << (data[0] & 3);
	config.active_ns = 1 + ((uint64_t)(data[0] >> 2 & 7) << 30);
	config.idle_ns = 1 + ((uint64_t)(data[0] >> 5) << 32);
	config.end_ns = data[1] >> 4 < 8 ? config.idle_ns / 2 : config.idle_ns;
	batch = 1 + data[1] % BATCH;
	must(pl_flow_cache_new(&cache, &config, add, &sums, NULL) == 0);
	n = pl_flow_cache_counters(cache);
	for (size_t at = 2; at + STEP <= size; at += STEP) {
		packets[in_batch++] = packet(data + at, &now);
		fed++;
		if (in_batch == batch || at + 2 * STEP > size) {
			pl_flow_cache_feed(cache, packets, in_batch);
			in_batch = 0;
		}
		must(n->live <= config.max_flows);
		if ((data[at + 9] & 8) != 0)
			pl_flow_cache_expire(cache, now);
	}
	pl_flow_cache_finish(cache);
	must(n->packets == fed && n->live == 0);
	must(sums.packets == fed - n->fragments - n->without_ports - n->elsewhere);
	must(sums.elsewhere == n->elsewhere);
	must(sums.bytes == 60 * sums.packets);
	must(sums.by_reason[PL_FLOW_END_IDLE] == n->ended_idle);
	must(sums.by_reason[PL_FLOW_END_ACTIVE] == n->ended_active);
	must(sums.by_reason[PL_FLOW_END_FINISHED] == n->ended_finished);
	must(sums.by_reason[PL_FLOW_END_EVICTED] == n->ended_evicted);
	must(sums.by_reason[PL_FLOW_END_SHUTDOWN] == n->ended_shutdown);
	must(sums.records - n->ended_active == n->started);
	pl_flow_cache_free(cache);
	return 0;
}
