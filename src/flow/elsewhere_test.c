/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of a flow that several places see: what counts, what is listed, who takes over. */
#include "flow/test_packets.h"

#include "base/rng.h"
#include "flow/cache_state.h"
#include "flow/elsewhere.h"

enum { UDP = 17, TCP = 6, A = 1, B = 2, C = 3, OUT = PL_OBS_OUT };

#define MS UINT64_C(1000000)
#define S  SECOND

struct rig {
	struct pl_flow_cache *cache;
	const struct pl_flow_counters *n;
	struct kept kept;
};

static void open_rig(struct rig *rig, uint64_t active_ns, uint64_t end_ns)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;

	config.max_flows = 8;
	config.active_ns = active_ns;
	config.end_ns = end_ns;
	rig->cache = new_cache(&config, &rig->kept);
	rig->n = pl_flow_cache_counters(rig->cache);
}

static void close_rig(struct rig *rig)
{
	pl_flow_cache_free(rig->cache);
	free(rig->kept.records);
}

static struct pl_pkt96 at(uint16_t obs, uint64_t ns, unsigned int back, uint8_t proto)
{
	struct pl_pkt96 p = packet(EPOCH + ns, back, 40000, proto);

	p.obs = obs;
	return p;
}

static void feed(struct rig *rig, struct pl_pkt96 p)
{
	pl_flow_cache_feed(rig->cache, &p, 1);
}

static void udp(struct rig *rig, uint16_t obs, uint64_t ns, unsigned int back)
{
	feed(rig, at(obs, ns, back, UDP));
}

/* A packet each 100 ms from the first time up to, and without, the second. */
static void udps(struct rig *rig, uint16_t obs, uint64_t from, uint64_t to, unsigned int back)
{
	for (uint64_t ns = from; ns < to; ns += 100 * MS)
		udp(rig, obs, ns, back);
}

static const struct pl_flow288 *only(struct rig *rig, const char *what)
{
	static const struct pl_flow288 none;

	pl_flow_cache_finish(rig->cache);
	eq(rig->kept.n, 1, "%s: one record", what);
	return rig->kept.n == 1 ? rig->kept.records : &none;
}

/* The same packets at three places, both ways, in their order and in blocks. */
static void counts_each_once(bool blocks)
{
	const char *what = blocks ? "a ring after the other" : "a packet at all places";
	const struct pl_flow288 *r;
	struct rig rig;

	open_rig(&rig, 60 * S, S);
	for (unsigned int i = 0; i < 3000; i++) {
		const unsigned int which = blocks ? i / 1000 : i % 3,
				   nth = blocks ? i % 1000 : i / 3;
		const uint16_t in[] = { A, B, C | OUT }, out[] = { A | OUT, B, C };
		const unsigned int back = nth % 2;

		udp(&rig, back ? out[which] : in[which], nth * MS + which * 10000, back);
	}
	r = only(&rig, what);
	ok(r->pkts_fwd == 500 && r->pkts_rev == 500 && r->elsewhere_fwd == 1000 &&
			r->elsewhere_rev == 1000 && r->bytes_fwd == 500 * 40,
		"%s: each is counted once", what);
	eq(r->obs, A);
	eq(r->obs_rev, A | OUT);
	ok(r->also_1 == B && r->also_2 == (C | OUT) && r->also_3 == C && r->also_4 == 0 &&
			r->also_more == 0,
		"%s: the others are listed in the order seen", what);
	eq(rig.n->elsewhere, 2000);
	eq(rig.n->moved, 0);
	close_rig(&rig);
}

static void lists_what_fits(void)
{
	const struct pl_flow288 *r;
	struct rig rig;

	open_rig(&rig, 60 * S, S);
	for (uint16_t place = 1; place <= 7; place++)
		udp(&rig, place, place, 0);
	udp(&rig, 3, 8, 0);
	r = only(&rig, "seven places");
	ok(r->also_1 == 2 && r->also_6 == 7 && r->also_more == 0, "six others have a field each");
	close_rig(&rig);

	open_rig(&rig, 60 * S, S);
	for (uint16_t place = 1; place <= 8; place++)
		udp(&rig, place, place, 0);
	r = only(&rig, "eight places");
	ok(r->also_1 == 2 && r->also_6 == 7 && r->also_more == 1, "the seventh is told by a flag");
	eq(r->elsewhere_fwd, 7);
	close_rig(&rig);

	open_rig(&rig, 60 * S, S);
	udp(&rig, A, 0, 0);
	udp(&rig, 0, 1, 0);
	udp(&rig, OUT, 2, 0);
	r = only(&rig, "point 0");
	ok(r->also_1 == OUT && r->also_2 == 0 && r->also_more == 1,
		"what enters at point 0 has no number but 0");
	close_rig(&rig);
}

/* Each direction has its own place. */
static void counts_ways_apart(void)
{
	const struct pl_flow288 *r;
	struct pl_pkt96 p;
	struct rig rig;

	open_rig(&rig, 60 * S, S);
	udp(&rig, A, 0, 0);
	p = at(B | PL_OBS_TUNNEL | PL_OBS_SAMPLED, 1, 1, UDP);
	p.mss = 7;
	feed(&rig, p);
	udp(&rig, A, 2, 1);
	udp(&rig, B, 3, 1);
	udp(&rig, B, 4, 0);
	r = only(&rig, "asymmetric");
	ok(r->pkts_fwd == 1 && r->pkts_rev == 8 && r->elsewhere_fwd == 1 && r->elsewhere_rev == 1,
		"forward at one place, in reverse at another");
	eq(r->obs, A | PL_OBS_SAMPLED, "sampled: any packet was");
	eq(r->obs_rev, B | PL_OBS_TUNNEL, "the first in reverse");
	ok(r->also_1 == A && r->also_2 == B, "each was seen at the other's place, too");
	eq(r->last_ts, EPOCH + 3, "what is not counted changes no time");
	close_rig(&rig);

	open_rig(&rig, 60 * S, S);
	udp(&rig, A, 0, 0);
	eq(only(&rig, "one way")->obs_rev, 0);
	close_rig(&rig);
}

static void keeps_no_flow_alive(void)
{
	const struct pl_flow288 *r;
	struct rig rig;

	open_rig(&rig, 60 * S, S);
	udp(&rig, A, 0, 0);
	udp(&rig, B, MS / 2, 0);
	udp(&rig, B, 15 * S, 0);
	pl_flow_cache_finish(rig.cache);
	eq(rig.kept.n, 2, "over, though another place saw packets");
	r = rig.kept.records;
	ok(r[0].end_reason == PL_FLOW_END_IDLE && r[0].pkts_fwd == 1 && r[0].elsewhere_fwd == 1,
		"the first");
	ok(r[1].obs == B && r[1].pkts_fwd == 1 && r[1].also_1 == 0, "the next counts where it is");
	close_rig(&rig);
}

/* From A to B after 3 s: all of B's are added, whoever is read first. */
static void moves(bool b_first)
{
	const char *what = b_first ? "the new place is read first" : "the old place is read first";
	const struct pl_flow288 *r;
	struct rig rig;

	open_rig(&rig, 60 * S, S);
	udps(&rig, A, 0, 2500 * MS, 0);
	if (b_first)
		udps(&rig, B, 3 * S, 3300 * MS, 0);
	udps(&rig, A, 2500 * MS, 3 * S, 0);
	if (!b_first)
		udps(&rig, B, 3 * S, 3300 * MS, 0);
	udps(&rig, B, 3300 * MS, 4900 * MS, 0);
	eq(rig.n->moved, 0, "%s: not yet", what);
	udps(&rig, B, 4900 * MS, 5 * S, 0);
	eq(rig.n->moved, 1, "%s: 2 s after the last that was counted", what);
	udps(&rig, B, 5 * S, 6 * S, 0);
	r = only(&rig, what);
	ok(r->pkts_fwd == 60 && r->bytes_fwd == 60 * 40 && r->records == 60 &&
			r->elsewhere_fwd == 0,
		"%s: exact", what);
	ok(r->obs == A && r->also_1 == B && r->also_2 == 0, "%s: both are told", what);
	ok(r->last_ts == EPOCH + 5900 * MS && r->max_gap_us == 100000 && r->iat_mean_us == 100000,
		"%s: times", what);
	eq(rig.n->elsewhere, 0);
	close_rig(&rig);
}

/* B saw all of it before, too. */
static void moves_to_copies(void)
{
	const struct pl_flow288 *r;
	struct rig rig;

	open_rig(&rig, 60 * S, S);
	for (uint64_t ns = 0; ns < 3 * S; ns += 100 * MS) {
		udp(&rig, A, ns, 0);
		udp(&rig, B, ns + MS / 2, 0);
	}
	udps(&rig, B, 3 * S + MS / 2, 6 * S, 0);
	udps(&rig, A, 6 * S, 8100 * MS, 0);
	r = only(&rig, "there and back");
	eq(r->pkts_fwd, 81);
	eq(r->elsewhere_fwd, 30);
	eq(rig.n->moved, 2);
	ok(r->obs == A && r->also_1 == B && r->also_2 == 0, "the first is not listed again");
	close_rig(&rig);
}

/* Seldom packets, of which another place's copy is read before: nothing says that A is silent. */
static void stays(void)
{
	const struct pl_flow288 *r;
	struct rig rig;

	open_rig(&rig, 60 * S, S);
	for (unsigned int i = 0; i < 40; i++) {
		udp(&rig, i % 2 ? B : A, i * 1500 * MS + (i % 2 ? 90 * MS : 0), 0);
		udp(&rig, i % 2 ? A : B, i * 1500 * MS + (i % 2 ? 0 : 90 * MS), 0);
	}
	eq(rig.n->moved, 0);
	r = only(&rig, "seldom");
	ok(r->pkts_fwd == 40 && r->elsewhere_fwd == 40 && r->obs == A, "none is counted twice");
	close_rig(&rig);
}

/* Behind the last packet that was counted nothing tells the rest of a flow from copies, unless it goes on for a second. */
static void ends_while_waiting(void)
{
	static const struct {
		const char *name;
		uint64_t to_ns;
		uint32_t packets, elsewhere, moved;
	} cases[] = {
		{ "for less than a second", 3800 * MS, 30, 8, 0 },
		{ "for more", 4200 * MS, 42, 0, 1 },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pl_flow288 *r;
		struct rig rig;

		open_rig(&rig, 60 * S, S);
		udps(&rig, A, 0, 3 * S, 0);
		udps(&rig, B, 3 * S, cases[i].to_ns, 0);
		pl_flow_cache_expire(rig.cache, EPOCH + 60 * S);
		r = only(&rig, cases[i].name);
		eq(r->end_reason, PL_FLOW_END_IDLE);
		eq(r->pkts_fwd, cases[i].packets, "%s", cases[i].name);
		eq(r->elsewhere_fwd, cases[i].elsewhere, "%s", cases[i].name);
		eq(rig.n->moved, cases[i].moved, "%s", cases[i].name);
		close_rig(&rig);
	}
}

/* A third place sees what the second does; when that is silent, it goes on. */
static void moves_to_the_third(void)
{
	const struct pl_flow288 *r;
	struct rig rig;

	open_rig(&rig, 60 * S, S);
	udps(&rig, A, 0, 3 * S, 0);
	for (uint64_t ns = 3 * S; ns < 6 * S; ns += 100 * MS) {
		udp(&rig, B, ns, 0);
		udp(&rig, C, ns, 0);
	}
	udps(&rig, C, 6 * S, 9 * S, 0);
	r = only(&rig, "three in turn");
	eq(r->pkts_fwd, 90);
	eq(r->elsewhere_fwd, 30);
	eq(rig.n->moved, 2);
	ok(r->obs == A && r->also_1 == B && r->also_2 == C && r->also_3 == 0, "all are told");
	close_rig(&rig);
}

/* What waits while the flow gets a record belongs to the next. */
static void goes_into_the_next_record(void)
{
	const struct pl_flow288 *r;
	struct rig rig;

	open_rig(&rig, 4 * S, S);
	udps(&rig, A, 0, 3 * S, 0);
	udps(&rig, C, 50 * MS, 3 * S, 1);
	for (uint64_t ns = 3 * S; ns < 7 * S; ns += 100 * MS) {
		udp(&rig, B, ns, 0);
		udp(&rig, C, ns + 50 * MS, 1);
	}
	pl_flow_cache_finish(rig.cache);
	r = rig.kept.records;
	eq(rig.kept.n, 2);
	ok(r[0].end_reason == PL_FLOW_END_ACTIVE && r[0].pkts_fwd == 30 && r[0].pkts_rev == 40 &&
			r[0].elsewhere_fwd == 0 && r[0].also_1 == B,
		"the first has none of those that wait");
	ok(r[1].pkts_fwd == 40 && r[1].pkts_rev == 30 && r[1].elsewhere_fwd == 0,
		"the second has all of them");
	ok(r[1].obs == B && r[1].obs_rev == C && r[1].also_1 == B && r[1].also_2 == 0,
		"it begins where the flow is now");
	close_rig(&rig);
}

/* A list is of one record. */
static void lists_anew(void)
{
	const struct pl_flow288 *r;
	struct rig rig;

	open_rig(&rig, S, S);
	udp(&rig, A, 0, 0);
	udp(&rig, B, 1, 0);
	udp(&rig, A, S, 0);
	udp(&rig, C, S + 1, 0);
	udp(&rig, A, 2 * S, 0);
	pl_flow_cache_finish(rig.cache);
	r = rig.kept.records;
	eq(rig.kept.n, 3);
	ok(r[0].also_1 == B && r[1].also_1 == C && r[1].also_2 == 0 && r[2].also_1 == 0,
		"each has its own");
	ok(r[0].elsewhere_fwd == 1 && r[1].elsewhere_fwd == 1 && r[2].elsewhere_fwd == 0,
		"and its own number");
	close_rig(&rig);
}

/* Samples count by their weight wherever they are seen. */
static void weighs(void)
{
	const struct pl_flow288 *r;
	struct rig rig;

	open_rig(&rig, 60 * S, S);
	udp(&rig, A, 0, 0);
	for (uint64_t ns = MS / 2; ns <= 5 * S; ns += S) {
		struct pl_pkt96 p = at(B | PL_OBS_SAMPLED, ns, 0, UDP);

		p.mss = 100;
		feed(&rig, p);
	}
	r = only(&rig, "samples");
	eq(r->pkts_fwd, 1 + 400);
	eq(r->bytes_fwd, 401 * 40);
	eq(r->elsewhere_fwd, 100, "the copy of the first");
	eq(r->records, 5);
	eq(r->obs, A | PL_OBS_SAMPLED);
	eq(rig.n->elsewhere, 1);
	close_rig(&rig);
}

static void has_room(void)
{
	struct rig rig;

	open_rig(&rig, 60 * S, S);
	udps(&rig, A, 0, 2 * S, 0);
	for (unsigned int i = 0; i < 8; i++)
		if (rig.cache->flows[i].packets[0] == 20)
			rig.cache->flows[i].packets[0] = UINT32_MAX - 10;
	udps(&rig, B, 2 * S, 5 * S, 0);
	pl_flow_cache_finish(rig.cache);
	ok(rig.kept.n == 2 && rig.kept.records[0].pkts_fwd == UINT32_MAX - 10 &&
			rig.kept.records[0].end_reason == PL_FLOW_END_ACTIVE,
		"a record when those that are added do not fit");
	ok(rig.kept.n == 2 && rig.kept.records[1].pkts_fwd == 30 && rig.kept.records[1].obs == B,
		"and they in the next");
	close_rig(&rig);

	open_rig(&rig, 60 * S, S);
	udp(&rig, A, 0, 0);
	udp(&rig, B, 1, 0);
	for (unsigned int i = 0; i < 8; i++)
		if (rig.cache->flows[i].packets[0] == 1)
			rig.cache->others[i].uncounted[0] = UINT32_MAX - 1;
	udp(&rig, B, 2, 0);
	udp(&rig, B, 3, 0);
	eq(only(&rig, "copies without end")->elsewhere_fwd, UINT32_MAX, "that or more");
	eq(rig.n->elsewhere, 3);
	close_rig(&rig);
}

/* ---- TCP ---- */

static uint32_t sent[2];

/* The next segment of 100 bytes of a side, as two places see it. */
static void segment(struct rig *rig, uint16_t first, uint16_t second, uint64_t ns,
	unsigned int back, uint8_t flags)
{
	struct pl_pkt96 p = at(first, ns, back, TCP);

	p.tcp_flags = flags;
	p.pay_len = 100;
	p.wire_len = 140;
	p.tcp_seq = sent[back];
	p.tcp_ack = sent[1 - back];
	sent[back] += 100 + ((flags & FIN) != 0);
	if (first != 0)
		feed(rig, p);
	p.obs = second;
	p.ts_ns += 20000;
	if (second != 0)
		feed(rig, p);
}

static bool is_spotless(const struct pl_flow_counters *n)
{
	return n->out_of_order + n->retrans_fast + n->retrans_timeout + n->retrans_spurious +
		       n->retrans_other + n->gaps + n->keepalives + n->duplicate_acks ==
	       0;
}

static void spares_tcp(void)
{
	const struct pl_flow288 *r;
	struct rig rig;

	sent[0] = sent[1] = 1000;
	open_rig(&rig, 60 * S, S);
	for (uint64_t i = 0; i < 30; i++)
		segment(&rig, A, B, i * 100 * MS, i % 2, ACK);
	r = only(&rig, "TCP");
	ok(is_spotless(rig.n), "copies are no retransmissions");
	ok(r->pkts_fwd == 15 && r->pkts_rev == 15 && r->bytes_fwd == 15 * 140, "each once");
	ok(r->rtt_seq_dst_n == 15 && r->rtt_seq_dst_missed == 0, "round-trip times of one place");
	close_rig(&rig);
}

static void moves_tcp(void)
{
	const struct pl_flow288 *r;
	struct rig rig;

	sent[0] = sent[1] = 1000;
	open_rig(&rig, 60 * S, S);
	for (uint64_t i = 0; i < 90; i++)
		segment(&rig, i < 30 ? A : i < 60 ? B : C, 0, i * 100 * MS, i % 2, ACK);
	r = only(&rig, "TCP that moves");
	eq(rig.n->moved, 4, "each way twice");
	ok(is_spotless(rig.n), "a move is no gap");
	ok(r->pkts_fwd == 45 && r->pkts_rev == 45 && r->bytes_rev == 45 * 140, "exact");
	eq(r->rtt_seq_dst_n + r->rtt_seq_dst_missed, 45, "every segment is measured or missed");
	eq(r->rtt_ts_src_n + r->rtt_ts_src_missed, 45);
	ok(r->rtt_seq_dst_n > 15 && r->rtt_seq_dst_avg_us == 100000, "times are of one place each");
	close_rig(&rig);
}

static void ends_elsewhere(void)
{
	const struct pl_flow288 *r;
	struct rig rig;

	sent[0] = sent[1] = 1000;
	open_rig(&rig, 60 * S, S);
	for (uint64_t i = 0; i < 30; i++)
		segment(&rig, A, 0, i * 100 * MS, i % 2, ACK);
	for (uint64_t i = 30; i < 45; i++)
		segment(&rig, B, 0, i * 100 * MS, i % 2, i >= 43 ? ACK | FIN : ACK);
	pl_flow_cache_expire(rig.cache, EPOCH + 60 * S);
	r = only(&rig, "ended elsewhere");
	eq(r->end_reason, PL_FLOW_END_FINISHED);
	ok(r->pkts_fwd == 23 && r->pkts_rev == 22, "exact");
	ok(r->flags_fwd == (ACK | FIN) && r->flags_rev == (ACK | FIN), "with its flags");
	close_rig(&rig);
}

/* A SYN at another place begins a connection only when it is no copy of an earlier one's. */
static void reuses_ports(void)
{
	struct pl_pkt96 p = at(A, 0, 0, TCP);
	struct rig rig;

	open_rig(&rig, 60 * S, S);
	p.tcp_flags = ACK;
	feed(&rig, p);
	p = at(A, MS, 1, TCP);
	p.tcp_flags = RST;
	feed(&rig, p);
	p = at(B, MS / 2, 0, TCP);
	p.tcp_flags = SYN;
	feed(&rig, p);
	eq(rig.n->reused, 0, "the SYN came before the end");
	p.ts_ns = EPOCH + 2 * MS;
	p.tcp_seq = 7;
	feed(&rig, p);
	eq(rig.n->reused, 1, "this one did not");
	p = at(A, 2 * MS + 1, 0, TCP);
	p.tcp_flags = SYN;
	p.tcp_seq = 7;
	feed(&rig, p);
	pl_flow_cache_finish(rig.cache);
	eq(rig.kept.n, 2);
	ok(rig.kept.records[1].obs == B && rig.kept.records[1].also_1 == A &&
			rig.kept.records[1].elsewhere_fwd == 1,
		"its copy is of the new one");
	close_rig(&rig);
}

/* ---- any order ---- */

enum { PLACES = 3, MOST = 400 };

struct ring {
	struct pl_pkt96 packets[MOST];
	uint32_t n, at;
};

/* Rings are read in turns of any length; none is a second behind another. */
static void read_rings(struct rig *rig, struct ring *rings, struct pl_rng *rng)
{
	for (uint32_t left = 1; left > 0;) {
		struct ring *ring = &rings[pl_rng_below(rng, PLACES)];
		uint64_t limit = UINT64_MAX;
		uint32_t turn = 1 + (uint32_t)pl_rng_below(rng, 60);

		for (unsigned int i = 0; i < PLACES; i++)
			if (rings[i].at < rings[i].n &&
				rings[i].packets[rings[i].at].ts_ns + 800 * MS < limit)
				limit = rings[i].packets[rings[i].at].ts_ns + 800 * MS;
		for (; turn > 0 && ring->at < ring->n && ring->packets[ring->at].ts_ns < limit;
			turn--)
			feed(rig, ring->packets[ring->at++]);
		left = 0;
		for (unsigned int i = 0; i < PLACES; i++)
			left += rings[i].n - rings[i].at;
	}
}

static void put(struct ring *ring, uint16_t obs, uint64_t ns, unsigned int back, uint16_t bytes)
{
	if (ring->n == MOST)
		abort();
	ring->packets[ring->n] = at(obs, ns, back, UDP);
	ring->packets[ring->n++].wire_len = bytes;
}

/* Steps of a flow that never is silent for as long as the idle timeout; now and then for seconds. */
static uint64_t next_step(struct pl_rng *rng)
{
	return 1000 + pl_rng_below(rng, pl_rng_below(rng, 20) == 0 ? 4 * S : 200 * MS);
}

static bool agrees(struct rig *rig, const uint64_t bytes[2], uint32_t n, uint64_t seed)
{
	uint64_t got[2] = { 0 }, packets = 0;

	pl_flow_cache_finish(rig->cache);
	for (uint32_t i = 0; i < rig->kept.n; i++) {
		const unsigned int first = rig->kept.records[i].sport == 443;

		got[first] += rig->kept.records[i].bytes_fwd;
		got[1 - first] += rig->kept.records[i].bytes_rev;
		packets += rig->kept.records[i].pkts_fwd + rig->kept.records[i].pkts_rev;
	}
	if (got[0] == bytes[0] && got[1] == bytes[1] && packets == n && rig->n->started == 1)
		return true;
	printf("# seed %" PRIu64 ": %" PRIu64 " packets of %u, moved %" PRIu64 "\n", seed, packets,
		n, rig->n->moved);
	return false;
}

/* All places see all packets, up to 100 ms apart. */
static bool sees_copies(uint64_t seed)
{
	static struct ring rings[PLACES];
	uint64_t now = 0, bytes[2] = { 0 }, apart[PLACES];
	uint32_t n;
	struct pl_rng rng;
	struct rig rig;
	bool good;

	pl_rng_seed(&rng, seed);
	open_rig(&rig, seed % 3 == 0 ? 3 * S : 60 * S, S);
	for (unsigned int i = 0; i < PLACES; i++) {
		rings[i].n = rings[i].at = 0;
		apart[i] = pl_rng_below(&rng, seed % 2 == 0 ? MS / 2 : 100 * MS);
	}
	for (n = 0; n < 200; n++) {
		const unsigned int back = pl_rng_below(&rng, 3) == 0;
		const uint16_t size = (uint16_t)(40 + pl_rng_below(&rng, 1400));

		now += next_step(&rng);
		bytes[back] += size;
		for (uint16_t i = 0; i < PLACES; i++)
			put(&rings[i], i + 1, now + apart[back ? PLACES - 1 - i : i], back, size);
	}
	read_rings(&rig, rings, &rng);
	good = agrees(&rig, bytes, n, seed) && rig.n->moved == 0 && rig.n->elsewhere == 400;
	close_rig(&rig);
	return good;
}

/* One place after the other sees the packets; of the flow's first and last seconds there are several
 * packets at one place. */
static bool sees_moves(uint64_t seed)
{
	static struct ring rings[PLACES];
	uint64_t now = 0, since = 0, bytes[2] = { 0 };
	uint16_t place = 0;
	struct pl_rng rng;
	struct rig rig;
	uint32_t n;
	bool good;

	pl_rng_seed(&rng, seed);
	open_rig(&rig, seed % 3 == 0 ? 7 * S : 60 * S, S);
	for (unsigned int i = 0; i < PLACES; i++)
		rings[i].n = rings[i].at = 0;
	for (n = 0; n < 300; n++) {
		const unsigned int back = n % 2;

		now += 5 * MS + pl_rng_below(&rng, 200 * MS);
		bytes[back] += 40 + n;
		if (now - since > 4 * S && n < 250 && pl_rng_below(&rng, 8) == 0) {
			place = (uint16_t)((place + 1 + pl_rng_below(&rng, 2)) % PLACES);
			since = now;
		}
		put(&rings[place], place + 1, now, back, (uint16_t)(40 + n));
	}
	read_rings(&rig, rings, &rng);
	good = agrees(&rig, bytes, n, seed) && rig.n->elsewhere == 0 && rig.n->moved >= 2;
	close_rig(&rig);
	return good;
}

static void stands_any_order(void)
{
	uint32_t wrong[2] = { 0 };

	for (uint64_t seed = 1; seed <= 500; seed++) {
		wrong[0] += !sees_copies(seed);
		wrong[1] += !sees_moves(seed);
	}
	eq(wrong[0], 0, "copies in any order: each packet once, and nothing moves");
	eq(wrong[1], 0, "a flow that moves, in any order: every packet once");
}

int main(void)
{
	counts_each_once(false);
	counts_each_once(true);
	lists_what_fits();
	counts_ways_apart();
	keeps_no_flow_alive();
	moves(false);
	moves(true);
	moves_to_copies();
	stays();
	ends_while_waiting();
	moves_to_the_third();
	goes_into_the_next_record();
	lists_anew();
	weighs();
	has_room();
	spares_tcp();
	moves_tcp();
	ends_elsewhere();
	reuses_ports();
	stands_any_order();
	return pl_test_done();
}
