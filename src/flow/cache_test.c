/* SPDX-License-Identifier: BSD-2-Clause */
/* The flow cache without TCP's numbers: keys, ends, time, bounds. */
#include "flow/test_packets.h"

#include <errno.h>

#include "flow/cache_state.h"

enum { UDP = 17, TCP = 6, FLOOD = 300000 };

static void feed(struct pl_flow_cache *cache, struct pl_pkt96 p)
{
	pl_flow_cache_feed(cache, &p, 1);
}

static struct pl_pkt96 tcp(uint64_t ns, unsigned int back, uint8_t flags, uint32_t seq)
{
	struct pl_pkt96 p = packet(EPOCH + ns, back, 40000, TCP);

	p.tcp_flags = flags;
	p.tcp_seq = seq;
	return p;
}

static struct pl_pkt96 udp(uint64_t ns, unsigned int back)
{
	return packet(EPOCH + ns, back, 40000, UDP);
}

static void done(struct pl_flow_cache *cache, struct kept *kept)
{
	pl_flow_cache_free(cache);
	free(kept->records);
}

static void refuses_configurations(void)
{
	static const struct {
		const char *name;
		struct pl_flow_config config;
	} wrong[] = {
		{ "no flows", { 0, SECOND, SECOND, SECOND } },
		{ "too many", { PL_FLOW_MAX_FLOWS + 1, SECOND, SECOND, SECOND } },
		{ "no idle timeout", { 8, 0, SECOND, 0 } },
		{ "one of more than an hour", { 8, PL_FLOW_IDLE_MAX + 1, SECOND, 0 } },
		{ "no active timeout", { 8, SECOND, 0, SECOND } },
		{ "one of more than a day", { 8, SECOND, PL_FLOW_ACTIVE_MAX + 1, SECOND } },
	};

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct pl_flow_cache *cache = NULL;
		struct pl_diag diag = { .text = "" };

		eq(pl_flow_cache_new(&cache, &wrong[i].config, keep, NULL, &diag), -EINVAL,
			"%s is refused", wrong[i].name);
		ok(diag.text[0] != '\0' && cache == NULL, "%s: %s", wrong[i].name, diag.text);
		eq(pl_flow_cache_new(&cache, &wrong[i].config, keep, NULL, NULL), -EINVAL,
			"%s without room for a reason", wrong[i].name);
	}
	pl_flow_cache_free(NULL);
}

static void adds_up(void)
{
	const struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache = new_cache(&config, &kept);
	const struct pl_pkt96 first = udp(0, 0);
	struct pl_pkt96 p = first;
	const struct pl_flow288 *r;

	p.obs = 5 | PL_OBS_OUT;
	p.vlan = 12;
	p.tcp_flags = 255;
	p.wire_len = 65535;
	feed(cache, p);
	p = udp(1000500, 1);
	p.vlan = 12;
	feed(cache, p);
	feed(cache, p);
	p.ts_ns = EPOCH + 5000;
	feed(cache, p);
	pl_flow_cache_finish(cache);
	ok(kept.n == 1, "both directions are one flow, also out of order");
	r = kept.records;
	eq(r->first_ts, EPOCH);
	eq(r->last_ts, EPOCH + 1000500);
	memeq(&r->src, &first.src, 16, "source");
	memeq(&r->dst, &first.dst, 16, "destination");
	eq(r->sport, 40000);
	eq(r->dport, 443);
	eq(r->proto, UDP);
	eq(r->end_reason, PL_FLOW_END_SHUTDOWN);
	eq(r->flags_fwd | r->flags_rev, 0, "no flags but TCP's");
	eq(r->bytes_fwd, 65535);
	eq(r->bytes_rev, 120);
	eq(r->pkts_fwd, 1);
	eq(r->pkts_rev, 3);
	eq(r->max_gap_us, 1000);
	eq(r->iat_mean_us, 333);
	eq(r->obs, 5 | PL_OBS_OUT);
	eq(r->vlan, 12);
	eq(r->flow_seq, 0);
	eq(pl_flow_cache_counters(cache)->backwards, 1);
	eq(pl_flow_cache_counters(cache)->live, 0);
	feed(cache, udp(0, 1));
	pl_flow_cache_finish(cache);
	ok(kept.n == 2 && kept.records[1].sport == 443 && kept.records[1].flow_seq == 1,
		"the cache goes on after it was emptied");
	done(cache, &kept);
}

/* Each differs from the first in one part of the key. */
static void tells_keys_apart(void)
{
	const struct pl_flow_config config = PL_FLOW_CONFIG;
	struct pl_pkt96 p[9];
	struct kept kept;
	struct pl_flow_cache *cache = new_cache(&config, &kept);

	for (unsigned int i = 0; i < 9; i++)
		p[i] = udp(0, 0);
	p[1].sport++;
	p[2].dport++;
	p[3].proto = TCP;
	p[4].vlan = 1;
	p[5].src.b[15]++;
	p[6].dst.b[0]++;
	p[7].sport = 443, p[7].dport = 40000;
	p[8].src = p[0].dst, p[8].dst = p[0].src;
	pl_flow_cache_feed(cache, p, 9);
	eq(pl_flow_cache_counters(cache)->live, 8, "7 is 8 seen from the peer");
	for (unsigned int i = 0; i < 9; i++)
		p[i].flow_hash = 1 + i % 2;
	pl_flow_cache_feed(cache, p, 9);
	eq(pl_flow_cache_counters(cache)->live, 8, "a record's hash is not believed");
	done(cache, &kept);
}

static void leaves_out_what_has_no_key(void)
{
	static const struct {
		const char *name;
		uint16_t obs, frag_off;
		uint8_t proto;
		bool ports;
		uint64_t fragments, without_ports, live;
	} packets[] = {
		{ "a first fragment", PL_OBS_FRAGMENT, 32768, UDP, true, 0, 0, 1 },
		{ "a later one", PL_OBS_FRAGMENT, 32768 | 185, UDP, false, 1, 0, 0 },
		{ "the last one", PL_OBS_FRAGMENT, 370, TCP, false, 1, 0, 0 },
		{ "a later one as pkt64, without its offset", PL_OBS_FRAGMENT, 0, UDP, false, 1, 0,
			0 },
		{ "the first one as pkt64", PL_OBS_FRAGMENT, 0, UDP, true, 0, 0, 1 },
		{ "truncated before its ports", PL_OBS_TRUNCATED, 0, TCP, false, 0, 1, 0 },
		{ "the same of SCTP", PL_OBS_TRUNCATED, 0, 132, false, 0, 1, 0 },
		{ "of ICMP, before its type", PL_OBS_TRUNCATED, 0, 1, false, 0, 1, 0 },
		{ "truncated behind them", PL_OBS_TRUNCATED, 0, UDP, true, 0, 0, 1 },
		{ "truncated, of a protocol without", PL_OBS_TRUNCATED, 0, 47, false, 0, 0, 1 },
		{ "with port 0 on either side", 0, 0, UDP, false, 0, 0, 1 },
	};
	const struct pl_flow_config config = PL_FLOW_CONFIG;

	for (unsigned int i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		struct kept kept;
		struct pl_flow_cache *cache = new_cache(&config, &kept);
		const struct pl_flow_counters *n = pl_flow_cache_counters(cache);
		struct pl_pkt96 p = packet(EPOCH, 0, 40000, packets[i].proto);

		p.obs = packets[i].obs;
		p.frag_off = packets[i].frag_off;
		if (!packets[i].ports)
			p.sport = p.dport = 0;
		feed(cache, p);
		ok(n->packets == 1 && n->fragments == packets[i].fragments &&
				n->without_ports == packets[i].without_ports &&
				n->live == packets[i].live,
			"%s", packets[i].name);
		eq(n->fragment_bytes, 40 * n->fragments, "%s: bytes in no flow", packets[i].name);
		done(cache, &kept);
	}
}

struct ending {
	const char *name;
	struct {
		uint64_t ns;
		uint8_t back, flags;
		uint32_t seq;
	} packets[6];
	uint64_t expire_ns; /* 0: not */
	uint32_t n;         /* records before the end of all */
	uint8_t reasons[4];
	uint64_t reused;
};

#define MS UINT64_C(1000000)
#define S  SECOND

static const struct ending endings[] = {
	{ "a nanosecond before the idle timeout", { { 0, 0, ACK, 1 } }, 15 * S - 1, 0 },
	{ "the idle timeout", { { 0, 0, ACK, 1 } }, 15 * S, 1, { PL_FLOW_END_IDLE } },
	{ "a packet after the idle timeout", { { 0, 0, ACK, 1 }, { 15 * S, 1, ACK, 1 } }, 0, 1,
		{ PL_FLOW_END_IDLE } },
	{ "FIN one way", { { 0, 0, FIN | ACK, 1 } }, 2 * S, 0 },
	{ "FIN both ways, within the grace", { { 0, 0, FIN | ACK, 1 }, { MS, 1, FIN | ACK, 1 } },
		S + MS - 1, 0 },
	{ "FIN both ways, after it", { { 0, 0, FIN | ACK, 1 }, { MS, 1, FIN | ACK, 1 } }, S + MS, 1,
		{ PL_FLOW_END_FINISHED } },
	{ "two FINs of one side", { { 0, 0, FIN | ACK, 1 }, { MS, 0, FIN | ACK, 1 } }, 2 * S, 0 },
	{ "the last ACK does not prolong it",
		{ { 0, 0, FIN | ACK, 1 }, { MS, 1, FIN | ACK, 1 }, { 900 * MS, 0, ACK, 2 } },
		S + MS, 1, { PL_FLOW_END_FINISHED } },
	{ "RST", { { 0, 0, ACK, 1 }, { MS, 1, RST, 1 } }, S + MS, 1, { PL_FLOW_END_FINISHED } },
	{ "the active timeout, with the next packet",
		{ { 0, 0, ACK, 1 }, { 14 * S, 0, ACK, 1 }, { 28 * S, 0, ACK, 1 },
			{ 42 * S, 0, ACK, 1 }, { 56 * S, 0, ACK, 1 }, { 60 * S, 0, ACK, 1 } },
		60 * S, 1, { PL_FLOW_END_ACTIVE } },
	{ "a nanosecond before it",
		{ { 0, 0, ACK, 1 }, { 14 * S, 0, ACK, 1 }, { 28 * S, 0, ACK, 1 },
			{ 42 * S, 0, ACK, 1 }, { 56 * S, 0, ACK, 1 }, { 60 * S - 1, 0, ACK, 1 } },
		60 * S - 1, 0 },
	{ "ports reused after a RST",
		{ { 0, 0, SYN, 100 }, { MS, 1, RST | ACK, 0 }, { 2 * MS, 0, SYN, 200 } }, 3 * MS, 1,
		{ PL_FLOW_END_FINISHED }, 1 },
	{ "the same SYN again after a RST is not another",
		{ { 0, 0, SYN, 100 }, { MS, 1, RST | ACK, 0 }, { 2 * MS, 0, SYN, 100 } }, 3 * MS, 0,
		{ 0 }, 0 },
	{ "ports reused by the peer, after one FIN",
		{ { 0, 0, SYN, 100 }, { MS, 0, FIN | ACK, 101 }, { 2 * MS, 1, SYN, 200 } }, 3 * MS,
		1, { PL_FLOW_END_FINISHED }, 1 },
	{ "a SYN-ACK reuses nothing", { { 0, 0, FIN | ACK, 100 }, { 2 * MS, 1, SACK, 200 } },
		3 * MS, 0, { 0 }, 0 },
	{ "a SYN into an open connection ends nothing",
		{ { 0, 0, SYN, 100 }, { MS, 0, ACK, 101 }, { 2 * MS, 0, SYN, 200 } }, 3 * MS, 0,
		{ 0 }, 0 },
	{ "a packet after the end begins another",
		{ { 0, 0, ACK, 1 }, { MS, 0, RST, 1 }, { S + MS, 0, ACK, 1 } }, S + MS, 1,
		{ PL_FLOW_END_FINISHED } },
};

static void ends(const struct ending *e)
{
	const struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache = new_cache(&config, &kept);
	uint64_t packets = 0, fed = 0;

	for (; fed < 6 && e->packets[fed].flags != 0; fed++)
		feed(cache, tcp(e->packets[fed].ns, e->packets[fed].back, e->packets[fed].flags,
				    e->packets[fed].seq));
	if (e->expire_ns != 0)
		pl_flow_cache_expire(cache, EPOCH + e->expire_ns);
	eq(kept.n, e->n, "%s: records", e->name);
	for (uint32_t i = 0; i < kept.n && i < e->n; i++)
		eq(kept.records[i].end_reason, e->reasons[i], "%s: reason", e->name);
	eq(pl_flow_cache_counters(cache)->reused, e->reused, "%s: reused", e->name);
	pl_flow_cache_finish(cache);
	for (uint32_t i = 0; i < kept.n; i++)
		packets += kept.records[i].pkts_fwd + kept.records[i].pkts_rev;
	eq(packets, fed, "%s: every packet is in a record", e->name);
	done(cache, &kept);
}

static void counts_anew_after_active(void)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	const struct pl_flow288 *r;
	struct kept kept;
	struct pl_flow_cache *cache;
	struct pl_pkt96 p;

	config.active_ns = S;
	cache = new_cache(&config, &kept);
	feed(cache, tcp(0, 0, SYN, 100));
	p = tcp(10 * MS, 1, SACK, 500);
	p.tcp_ack = 101;
	feed(cache, p);
	p = tcp(20 * MS, 0, ACK, 101);
	p.tcp_ack = 501;
	feed(cache, p);
	p = tcp(S, 1, PSH | ACK, 501);
	p.tcp_ack = 101;
	feed(cache, p);
	feed(cache, tcp(S + 5 * MS, 1, FIN, 501));
	pl_flow_cache_finish(cache);
	ok(kept.n == 2, "two records of a flow");
	r = kept.records;
	ok(r[0].end_reason == PL_FLOW_END_ACTIVE && r[1].end_reason == PL_FLOW_END_SHUTDOWN,
		"the reasons");
	ok(r[0].hs_external_us == 10000 && r[0].hs_internal_us == 10000 && r[0].rtt_min_us == 20000,
		"the handshake is in the first");
	ok(r[1].hs_external_us == 0 && r[1].hs_internal_us == 0 && r[1].rtt_min_us == 0 &&
			r[1].rtt_avg_us == 0,
		"and not in the second");
	ok(r[0].flags_fwd == (SYN | ACK) && r[0].flags_rev == SACK && r[1].flags_fwd == 0 &&
			r[1].flags_rev == (PSH | ACK | FIN),
		"flags");
	ok(r[0].pkts_fwd == 2 && r[0].pkts_rev == 1 && r[1].pkts_fwd == 0 && r[1].pkts_rev == 2,
		"packets");
	ok(r[1].first_ts == EPOCH + S && r[1].last_ts == EPOCH + S + 5 * MS &&
			r[1].max_gap_us == 5000 && r[1].iat_mean_us == 5000,
		"times");
	memeq(&r[1].src, &r[0].src, 16, "forward stays what it was");
	done(cache, &kept);
}

struct role {
	uint16_t sport, dport;
	uint8_t proto,
		flags[3]; /* of packets from port `sport`, back, and from it again; 0: none */
	uint8_t role, by;
};

/* `src` is who sends the first packet. */
static const struct role roles[] = {
	{ 40000, 443, TCP, { SYN }, PL_FLOW_ROLE_CLIENT, PL_FLOW_ROLE_BY_SYN },
	{ 443, 40000, TCP, { SYN }, PL_FLOW_ROLE_CLIENT, PL_FLOW_ROLE_BY_SYN },
	{ 443, 40000, TCP, { SACK }, PL_FLOW_ROLE_SERVER, PL_FLOW_ROLE_BY_SYN_ACK },
	{ 40000, 443, TCP, { SACK, SYN }, PL_FLOW_ROLE_SERVER, PL_FLOW_ROLE_BY_SYN },
	{ 40000, 443, TCP, { SACK, SACK }, PL_FLOW_ROLE_SERVER, PL_FLOW_ROLE_BY_SYN_ACK },
	{ 40000, 443, TCP, { SYN, SYN }, PL_FLOW_ROLE_CLIENT, PL_FLOW_ROLE_BY_SYN },
	{ 443, 40000, TCP, { ACK, SYN }, PL_FLOW_ROLE_SERVER, PL_FLOW_ROLE_BY_SYN },
	{ 443, 40000, TCP, { SYN | ACK | FIN }, PL_FLOW_ROLE_SERVER, PL_FLOW_ROLE_BY_PORTS },
	{ 443, 40000, TCP, { SYN | FIN }, PL_FLOW_ROLE_SERVER, PL_FLOW_ROLE_BY_PORTS },
	{ 443, 1024, TCP, { ACK }, PL_FLOW_ROLE_SERVER, PL_FLOW_ROLE_BY_PORTS },
	{ 32768, 32767, UDP, { 1 }, PL_FLOW_ROLE_CLIENT, PL_FLOW_ROLE_BY_PORTS },
	{ 32767, 32768, UDP, { 1 }, PL_FLOW_ROLE_SERVER, PL_FLOW_ROLE_BY_PORTS },
	{ 53, 123, UDP, { 1 }, PL_FLOW_ROLE_UNKNOWN, PL_FLOW_ROLE_BY_NOTHING },
	{ 1024, 32767, UDP, { 1 }, PL_FLOW_ROLE_UNKNOWN, PL_FLOW_ROLE_BY_NOTHING },
	{ 40000, 50000, UDP, { 1 }, PL_FLOW_ROLE_UNKNOWN, PL_FLOW_ROLE_BY_NOTHING },
	{ 8, 40000, 1, { 1 }, PL_FLOW_ROLE_UNKNOWN, PL_FLOW_ROLE_BY_NOTHING }, /* no ports */
};

static void tells_roles(void)
{
	const struct pl_flow_config config = PL_FLOW_CONFIG;

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		const struct role *role = &roles[i];
		struct kept kept;
		struct pl_flow_cache *cache = new_cache(&config, &kept);

		for (unsigned int k = 0; k < 3 && role->flags[k] != 0; k++) {
			struct pl_pkt96 p = packet(EPOCH + k, k % 2, 0, role->proto);

			p.sport = k % 2 != 0 ? role->dport : role->sport;
			p.dport = k % 2 != 0 ? role->sport : role->dport;
			p.tcp_flags = role->flags[k];
			feed(cache, p);
		}
		pl_flow_cache_finish(cache);
		ok(kept.n == 1 && kept.records[0].role == role->role &&
				kept.records[0].role_by == role->by,
			"role %zu: %s by %s", i,
			pl_form_word(PL_FORM_FLOW_ROLE, kept.records[0].role),
			pl_form_word(PL_FORM_FLOW_ROLE_BY, kept.records[0].role_by));
		done(cache, &kept);
	}
}

/* Evidence that comes behind the first record does not turn what it said. */
static void keeps_roles(void)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache;

	config.active_ns = S;
	cache = new_cache(&config, &kept);
	feed(cache, packet(EPOCH, 0, 40000, TCP));
	for (unsigned int i = 1; i < 4; i++) {
		struct pl_pkt96 p = packet(EPOCH + i * S, i % 2, 40000, TCP);

		p.tcp_flags = i == 1 ? SYN : 0;
		feed(cache, p);
	}
	pl_flow_cache_finish(cache);
	eq(kept.n, 4);
	for (unsigned int i = 0; i < kept.n; i++) {
		const struct pl_flow288 *r = &kept.records[i];

		ok(r->role == PL_FLOW_ROLE_CLIENT && r->role_by == PL_FLOW_ROLE_BY_PORTS &&
				r->sport == 40000,
			"record %u: the role and the sides stay", i);
		eq(r->flow_flags, i == 0 ? 0 : PL_FLOW_FURTHER);
	}
	done(cache, &kept);
}

/* A sampled packet stands for others, unless it is a SYN. */
static void weighs_what_was_sampled(void)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache;
	struct pl_pkt96 p = tcp(0, 0, SYN, 100);
	const struct pl_flow288 *r;

	config.active_ns = S;
	cache = new_cache(&config, &kept);
	p.mss = 1460;
	feed(cache, p);
	p = tcp(1, 0, ACK, 101);
	p.mss = 100;
	p.obs = PL_OBS_SAMPLED;
	feed(cache, p);
	p.tcp_flags = SYN;
	feed(cache, p);
	p = tcp(2, 1, ACK, 101);
	p.obs = PL_OBS_SAMPLED;
	feed(cache, p);
	p = tcp(3, 1, ACK, 101);
	p.mss = 9;
	feed(cache, p);
	feed(cache, tcp(S, 1, ACK, 101));
	pl_flow_cache_finish(cache);
	r = kept.records;
	eq(kept.n, 2);
	eq(r[0].pkts_fwd, 102);
	eq(r[0].bytes_fwd, 102 * 40);
	ok(r[0].pkts_rev == 2 && r[0].bytes_rev == 80, "without a weight, and not sampled");
	eq(r[0].records, 5);
	eq(r[0].obs, PL_OBS_SAMPLED, "though the first packet was not");
	ok(r[1].obs == 0 && r[1].records == 1 && r[1].pkts_rev == 1, "the next record has none");
	done(cache, &kept);
}

/* A counter that is full makes a record; no packet is lost in it. */
static void counts_no_further_than_it_can(void)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache;

	config.max_flows = 8;
	cache = new_cache(&config, &kept);
	feed(cache, udp(0, 0));
	for (unsigned int i = 0; i < 8; i++)
		if (cache->flows[i].packets[0] == 1)
			cache->flows[i].packets[0] = UINT32_MAX;
	feed(cache, udp(1, 1));
	eq(kept.n, 0, "the other counter has room");
	feed(cache, udp(2, 0));
	pl_flow_cache_finish(cache);
	ok(kept.n == 2 && kept.records[0].end_reason == PL_FLOW_END_ACTIVE &&
			kept.records[0].pkts_fwd == UINT32_MAX && kept.records[0].pkts_rev == 1,
		"a record when it is full");
	ok(kept.n == 2 && kept.records[1].pkts_fwd == 1 && kept.records[1].pkts_rev == 0,
		"and the packet in the next");
	done(cache, &kept);
}

/* Also by the weight of one packet. */
static void has_room_for_weights(void)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache;
	struct pl_pkt96 p = udp(1, 0);

	config.max_flows = 8;
	cache = new_cache(&config, &kept);
	feed(cache, udp(0, 0));
	for (unsigned int i = 0; i < 8; i++)
		if (cache->flows[i].packets[0] == 1)
			cache->flows[i].packets[0] = UINT32_MAX - 10;
	p.obs = PL_OBS_SAMPLED;
	p.mss = 10;
	feed(cache, p);
	eq(kept.n, 0, "ten fit");
	feed(cache, p);
	pl_flow_cache_finish(cache);
	ok(kept.n == 2 && kept.records[0].pkts_fwd == UINT32_MAX && kept.records[1].pkts_fwd == 10,
		"ten more are in the next");
	done(cache, &kept);
}

/* Whatever comes, the cache holds so many flows, and every packet is in one record. */
static void stands_floods(bool spoofed)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache;
	const struct pl_flow_counters *n;
	uint64_t packets = 0, most = 0;

	config.max_flows = 1000;
	cache = new_cache(&config, &kept);
	n = pl_flow_cache_counters(cache);
	for (uint32_t i = 0; i < FLOOD; i++) {
		struct pl_pkt96 p = tcp(i, 0, SYN, i);

		if (spoofed)
			memcpy(p.src.b + 12, &i, sizeof(i));
		p.dport = (uint16_t)i;
		p.sport = (uint16_t)(i >> 16);
		feed(cache, p);
		most = n->live > most ? n->live : most;
	}
	ok(most == 1000, "%s: %" PRIu64 " flows at most", spoofed ? "flood" : "scan", most);
	eq(n->ended_evicted, FLOOD - 1000, "the others made room");
	pl_flow_cache_finish(cache);
	for (uint32_t i = 0; i < kept.n; i++)
		packets += kept.records[i].pkts_fwd + kept.records[i].pkts_rev;
	eq(packets, FLOOD, "every packet is in a record");
	eq(kept.n, FLOOD, "one each");
	done(cache, &kept);
}

/* A table that is nearly full loses hardly a flow: each has two lines. */
static void fills_well(void)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache;

	config.max_flows = 65536;
	cache = new_cache(&config, &kept);
	for (uint32_t i = 0; i < 65536 * 3 / 4; i++) {
		struct pl_pkt96 p = udp(i, 0);

		memcpy(p.src.b + 12, &i, sizeof(i));
		feed(cache, p);
		if (i == 65536 / 2)
			eq(pl_flow_cache_counters(cache)->ended_evicted, 0, "half full: none lost");
	}
	ok(pl_flow_cache_counters(cache)->ended_evicted < 50,
		"three quarters full: %" PRIu64 " lost, fewer than one in a thousand",
		pl_flow_cache_counters(cache)->ended_evicted);
	done(cache, &kept);
}

static void evicts_who_was_silent(void)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache;

	config.max_flows = 3; /* is 8 */
	cache = new_cache(&config, &kept);
	for (uint16_t i = 0; i < 8; i++)
		feed(cache, packet(EPOCH + i * 2 * MS, 0, 40000 + i, TCP));
	feed(cache, packet(EPOCH + 20 * MS, 1, 40000, TCP));
	eq(kept.n, 0, "eight have room");
	feed(cache, packet(EPOCH + 30 * MS, 0, 40008, TCP));
	feed(cache, tcp(40 * MS, 0, RST, 1));
	feed(cache, packet(EPOCH + 50 * MS, 0, 40009, TCP));
	pl_flow_cache_expire(cache, 0);
	ok(kept.n == 2 && kept.records[0].sport == 40001 &&
			kept.records[0].end_reason == PL_FLOW_END_EVICTED,
		"the ninth takes the place of the one that is silent for longest");
	ok(kept.n == 2 && kept.records[1].sport == 40000 &&
			kept.records[1].end_reason == PL_FLOW_END_FINISHED,
		"a flow that has ended goes before any other, and is finished");
	feed(cache, packet(EPOCH + 20 * S, 0, 50000, TCP));
	pl_flow_cache_expire(cache, 0);
	ok(kept.n == 10 && kept.records[9].end_reason == PL_FLOW_END_IDLE,
		"none is evicted where some are over");
	done(cache, &kept);
}

static void scans_by_itself(void)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache;

	config.max_flows = 8000;
	cache = new_cache(&config, &kept);
	for (uint16_t i = 0; i < 2000; i++)
		feed(cache, packet(EPOCH, 0, 1000 + i, UDP));
	feed(cache, packet(EPOCH + 14 * S, 0, 1, UDP));
	for (uint32_t i = 0; i < 4000; i++)
		feed(cache, packet(EPOCH + 16 * S, 0, 1, UDP));
	ok(pl_flow_cache_counters(cache)->live == 1 && kept.n >= 2000 - PL_FLOW_RECORDS,
		"flows that are over go though nobody asks");
	ok(kept.calls <= 2000 / PL_FLOW_RECORDS, "in batches: %u calls", kept.calls);
	done(cache, &kept);
}

/* However few packets come, the record of a flow comes at most one and a half idle timeouts after its
 * last packet. */
static void tells_when_few_packets_come(void)
{
	const struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache = new_cache(&config, &kept);

	for (uint16_t i = 0; i < 100; i++)
		feed(cache, packet(EPOCH + i * S, 0, 1000 + i, UDP));
	feed(cache, packet(EPOCH + 100 * S, 0, 1, UDP));
	ok(kept.n >= 100 - 15 * 3 / 2, "%u of 100 flows of a packet a second are told of", kept.n);
	for (uint32_t i = 0; i < kept.n; i++)
		eq(kept.records[i].end_reason, PL_FLOW_END_IDLE, "flow %u is over", i);
	done(cache, &kept);
}

/* No flow is kept after its end for longer than one that has none. */
static void ends_no_later_than_idle(void)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache;

	config.idle_ns = SECOND / 2;
	cache = new_cache(&config, &kept);
	feed(cache, tcp(0, 0, RST, 1));
	pl_flow_cache_expire(cache, EPOCH + SECOND / 2 - 1);
	eq(kept.n, 0, "within an idle timeout of half a second");
	pl_flow_cache_expire(cache, EPOCH + SECOND / 2);
	ok(kept.n == 1 && kept.records[0].end_reason == PL_FLOW_END_FINISHED, "and after it");
	done(cache, &kept);
}

/* One packet from the far future makes each flow over at once, until the clock is set back. */
static void survives_a_wrong_clock(void)
{
	const struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache = new_cache(&config, &kept);
	const struct pl_flow_counters *n = pl_flow_cache_counters(cache);

	feed(cache, packet(UINT64_MAX, 0, 1, UDP));
	for (uint32_t i = 0; i < PL_FLOW_BEHIND; i++)
		feed(cache, udp(i, 0));
	eq(n->set_back, 1, "set back after %u packets", PL_FLOW_BEHIND);
	eq(n->started, 1 + PL_FLOW_BEHIND, "each was a flow of its own");
	for (uint32_t i = 0; i < 100; i++)
		feed(cache, udp(PL_FLOW_BEHIND + i, 0));
	eq(n->started, 1 + PL_FLOW_BEHIND, "the last of them goes on");
	pl_flow_cache_expire(cache, 0);
	eq(n->live, 1, "that of the future is over");
	pl_flow_cache_expire(cache, EPOCH + (UINT64_C(1) << 51));
	eq(n->live, 0, "half of 2^32 ticks later all are");
	done(cache, &kept);
}

/* What was of a time after that to which the clock is set back is over, though it comes there again
 * before anybody looks. */
static void ends_the_future(void)
{
	const struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache = new_cache(&config, &kept);
	const struct pl_flow_counters *n = pl_flow_cache_counters(cache);

	feed(cache, packet(EPOCH + 100 * S, 0, 1, UDP));
	for (uint32_t i = 0; i < PL_FLOW_BEHIND; i++)
		feed(cache, udp(0, 0));
	eq(n->set_back, 1);
	eq(n->ended_idle, PL_FLOW_BEHIND, "with all but the last of those behind");
	feed(cache, packet(EPOCH + 101 * S, 0, 1, UDP));
	pl_flow_cache_finish(cache);
	eq(n->started, 2 + PL_FLOW_BEHIND, "its next packet is another flow's");
	done(cache, &kept);
}

static struct pl_pkt96 icmp(unsigned int back, uint8_t proto, uint16_t type, uint16_t code)
{
	struct pl_pkt96 p = udp(0, back);

	p.proto = proto;
	p.sport = type;
	p.dport = code;
	return p;
}

/* A message of the flow's first type, and another one. */
static const struct {
	const char *name;
	uint8_t proto;
	uint16_t type[2], code[2];
	unsigned int back; /* the second one comes from the other host */
	uint32_t flows, reverse;
} messages[] = {
	{ "echo and its reply", 1, { 8, 0 }, { 0, 0 }, 1, 1, 1 },
	{ "a reply seen first", 1, { 0, 8 }, { 0, 0 }, 1, 1, 1 },
	{ "two hosts that ping each other", 1, { 8, 8 }, { 0, 0 }, 1, 2, 0 },
	{ "replies of both", 1, { 0, 0 }, { 0, 0 }, 1, 2, 0 },
	{ "a host that asks and answers", 1, { 8, 0 }, { 0, 0 }, 0, 2, 0 },
	{ "an echo of another code", 1, { 8, 8 }, { 0, 1 }, 0, 1, 0 },
	{ "timestamps", 1, { 13, 14 }, { 0, 0 }, 1, 1, 1 },
	{ "address masks", 1, { 17, 18 }, { 0, 0 }, 1, 1, 1 },
	{ "another's answer", 1, { 8, 14 }, { 0, 0 }, 1, 2, 0 },
	{ "unreachable both ways", 1, { 3, 3 }, { 3, 3 }, 1, 2, 0 },
	{ "unreachable again", 1, { 3, 3 }, { 3, 3 }, 0, 1, 0 },
	{ "unreachable for another reason", 1, { 3, 3 }, { 3, 1 }, 0, 2, 0 },
	{ "echo of ICMPv6", 58, { 128, 129 }, { 0, 0 }, 1, 1, 1 },
	{ "neighbours", 58, { 135, 136 }, { 0, 0 }, 1, 1, 1 },
	{ "types of ICMPv4 in ICMPv6", 58, { 8, 0 }, { 0, 0 }, 1, 2, 0 },
	{ "another protocol", 2, { 8, 0 }, { 0, 0 }, 1, 2, 0 },
};

static void pairs_messages_of_icmp(unsigned int i)
{
	const struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache = new_cache(&config, &kept);

	feed(cache, icmp(0, messages[i].proto, messages[i].type[0], messages[i].code[0]));
	feed(cache, icmp(messages[i].back, messages[i].proto, messages[i].type[1],
			    messages[i].code[1]));
	pl_flow_cache_finish(cache);
	eq(kept.n, messages[i].flows, "%s: flows", messages[i].name);
	eq(kept.records[0].pkts_rev, messages[i].reverse, "%s: back", messages[i].name);
	if (kept.n == 1)
		eq(kept.records[0].sport << 8 | kept.records[0].dport,
			messages[i].type[0] << 8 | messages[i].code[0], "%s: the first one's type",
			messages[i].name);
	done(cache, &kept);
}

int main(void)
{
	refuses_configurations();
	adds_up();
	tells_keys_apart();
	leaves_out_what_has_no_key();
	for (unsigned int i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
		pairs_messages_of_icmp(i);
	for (unsigned int i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		ends(&endings[i]);
	counts_anew_after_active();
	tells_roles();
	keeps_roles();
	weighs_what_was_sampled();
	counts_no_further_than_it_can();
	has_room_for_weights();
	stands_floods(true);
	stands_floods(false);
	fills_well();
	evicts_who_was_silent();
	scans_by_itself();
	tells_when_few_packets_come();
	ends_no_later_than_idle();
	survives_a_wrong_clock();
	ends_the_future();
	return pl_test_done();
}
