/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telemetry against the truth: a simulated leaf-spine network whose leaves are INT sources and
 * sinks, whose spines are transits, and whose reports a collector decodes. Each packet's hops must
 * be the same in both, each drop and loss reported at its place, each path change found, and
 * nothing else.
 */
#include "base/hash.h"
#include "base/rng.h"
#include "base/test.h"
#include "dataplane/test_fabric.h"
#include "dataplane/traffic.h"
#include "decode/decode.h"
#include "detect/events.h"

#define MS          UINT64_C(1000000)
#define SECOND      UINT64_C(1000000000)
#define START       (UINT64_C(1700000000) * SECOND)
#define FLOWS       48
#define FIRST_PORT  30000
#define SLOTS       65536
#define LEAVES      4
#define SPINES      2
#define NODES       300
#define CHANGES     1024
/* Incast begins in the middle of each period. */
#define PERIOD_NS   (200 * MS)
#define PERIODS     12
#define BURST_BYTES 20000

/* The values of a packet that truth and telemetry both have. */
struct seen {
	struct seen *next;
	uint32_t sport;
	uint64_t first_ns; /* time at the first switch */
	uint64_t path_id, latency_ns;
	unsigned int n;
	struct {
		uint64_t in_ns, out_ns;
		uint32_t latency_ns, depth, util;
		uint16_t queue;
	} hops[8];
};

struct change {
	uint32_t flow;
	uint64_t from, to;
};

struct world {
	struct pl_dp_sim *sim;
	struct pl_dp_traffic *traffic;
	struct pl_dp_fabric fabric;
	struct pl_decode *decode;
	struct pl_detect *detect;
	struct pl_record_batch records;
	struct pl_event_batch events;
	/* Reports lost on their way to the collector: one of each so many; 0: none. */
	uint64_t keeps_of, came, withheld;
	/* Packets seen by one side and not yet by the other. */
	struct seen *slots[SLOTS];
	uint64_t truth, reports, differ, twice;
	uint64_t deep; /* hops with packets in the queue */
	uint64_t bad_packets;
	/* Drops by node and flow: those of the truth minus reported ones. */
	int64_t drops[NODES][FLOWS + 1];
	uint64_t dropped, drop_reports;
	/* Losses by node and port of the link's near end. */
	uint64_t lost[NODES][8], losses;
	uint64_t kinds[PL_EVENT_KIND_MAX];
	/* Queues above the threshold, by node, port and period: truth (1) and telemetry (2). */
	uint8_t bursts[NODES][8][PERIODS];
	uint64_t burst_events, culprits, innocent;
	uint64_t tick_ns;
	/* Last true path of each flow; path changes of truth and telemetry, in order. */
	uint64_t paths[FLOWS + 1];
	struct change true_changes[CHANGES], changes[CHANGES];
	unsigned int n_true_changes, n_changes;
};

static struct world *w;

/* Compares one side's values of a packet with the other's, or keeps them for it. */
static void tell(const struct seen *s, bool truth)
{
	uint32_t slot = (uint32_t)(pl_hash_mix(s->first_ns, s->sport) % SLOTS);
	struct seen **at = &w->slots[slot], *other;

	while (*at != NULL && ((*at)->first_ns != s->first_ns || (*at)->sport != s->sport))
		at = &(*at)->next;
	other = *at;
	if (other == NULL) {
		*at = malloc(sizeof(*s));
		**at = *s;
		(*at)->next = NULL;
		/* Marks the side. */
		(*at)->n |= truth ? 0x100 : 0;
		return;
	}
	if (((other->n & 0x100) != 0) == truth) {
		w->twice++;
		return;
	}
	other->n &= 0xff;
	w->differ += other->path_id != s->path_id || other->latency_ns != s->latency_ns ||
		     other->n != s->n ||
		     memcmp(other->hops, s->hops, s->n * sizeof(s->hops[0])) != 0;
	*at = other->next;
	free(other);
}

/* Returns the number of packets that only one side has. */
static uint64_t left(bool truth)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < SLOTS; i++) {
		for (const struct seen *s = w->slots[i]; s != NULL; s = s->next)
			n += ((s->n & 0x100) != 0) == truth;
	}
	return n;
}

static bool take(const struct pl_path *p, const struct pl_hop *hops, bool truth, struct seen *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->sport = p->sport;
	ret->first_ns = hops[0].ingress_ts_ns;
	ret->path_id = p->path_id;
	ret->latency_ns = p->latency_ns;
	ret->n = p->hop_count;
	if (p->hop_count > 8)
		return false;
	for (unsigned int i = 0; i < ret->n; i++) {
		ret->hops[i].in_ns = hops[i].ingress_ts_ns;
		ret->hops[i].out_ns = hops[i].egress_ts_ns;
		ret->hops[i].latency_ns = hops[i].hop_latency_ns;
		ret->hops[i].depth = hops[i].queue_depth;
		ret->hops[i].queue = hops[i].queue;
		/* In percent, as on the wire. */
		ret->hops[i].util =
			truth ? (uint32_t)((uint64_t)hops[i].tx_util * 100 >> 16) : hops[i].tx_util;
	}
	return true;
}

static uint32_t flow_of(const struct pl_path *p)
{
	uint32_t flow = p->sport - FIRST_PORT;

	return flow <= FLOWS ? flow : 0;
}

/* ---- the truth ---- */

static void note_burst(uint64_t node, uint32_t port, uint64_t at_ns, uint8_t side)
{
	uint64_t period = (at_ns - START) / PERIOD_NS;

	if (node < NODES && port < 8 && period < PERIODS)
		w->bursts[node][port][period] |= side;
}

static void true_path(void *arg, const struct pl_path *p, const struct pl_hop *hops)
{
	uint32_t flow = flow_of(p);
	struct seen s;

	(void)arg;
	/* A packet that is dropped takes with it what it carries of the nodes before. */
	if ((p->flags & PL_FLAG_DROPPED) != 0)
		return;
	for (unsigned int i = 0; i < p->hop_count; i++) {
		if (hops[i].queue_depth > BURST_BYTES)
			note_burst(hops[i].node, hops[i].egress_port, hops[i].ingress_ts_ns, 1);
	}
	if (!take(p, hops, true, &s)) {
		w->differ++;
		return;
	}
	w->truth++;
	for (unsigned int i = 0; i < s.n; i++)
		w->deep += s.hops[i].depth != 0;
	tell(&s, true);
	if (w->paths[flow] != 0 && w->paths[flow] != p->path_id && w->n_true_changes < CHANGES)
		w->true_changes[w->n_true_changes++] =
			(struct change){ flow, w->paths[flow], p->path_id };
	w->paths[flow] = p->path_id;
}

static void true_event(void *arg, const struct pl_event *e)
{
	uint32_t flow = e->sport - FIRST_PORT;

	(void)arg;
	if ((e->present & PL_EVENT_HAS_peer_node) != 0) {
		w->lost[pl_event_get_peer_node(e)][pl_event_get_peer_port(e)]++;
		w->losses++;
		return;
	}
	w->dropped++;
	w->drops[e->node][flow <= FLOWS ? flow : 0]++;
}

/* ---- telemetry ---- */

static void flush(struct pl_record_batch *batch, void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < batch->n_paths; i++) {
		const struct pl_path *p = &batch->paths[i];
		const struct pl_hop *hops = &batch->hops[batch->first_hop[i]];
		struct seen s;

		if ((p->flags & PL_FLAG_DROPPED) != 0) {
			w->drop_reports++;
			w->drops[p->node][flow_of(p)]--;
			w->bad_packets += p->drop_reason != 71;
			continue;
		}
		w->reports++;
		if (p->hop_count == 0 || !take(p, hops, false, &s))
			w->bad_packets++;
		else
			tell(&s, false);
	}
	pl_detect_batch(w->detect, batch, pl_dp_sim_now(w->sim), &w->events);
	pl_record_batch_clear(batch);
}

static void collect(void *arg, const struct pl_dp_packet *pkt)
{
	static struct pl_batch batch;

	(void)arg;
	if (w->keeps_of > 0 && ++w->came % w->keeps_of == 0) {
		w->withheld++;
		return;
	}
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){ .data = pkt->data,
		.len = pkt->len,
		.wire_len = pkt->len,
		.ts_ns = pl_dp_sim_now(w->sim),
		.link = PL_LINK_ETHERNET };
	pl_decode_batch(w->decode, &batch, &w->records);
	w->bad_packets += pl_decode_outcomes(w->decode)[0].verdict != PL_V_OK;
	flush(&w->records, NULL);
}

/* Checks a burst: flows 1 to 7 fill the queue of host 1 at leaf 1. */
static void take_burst(const struct pl_event *e)
{
	uint32_t flow = e->sport - FIRST_PORT;

	if ((e->present & PL_EVENT_HAS_role) == 0) {
		w->burst_events++;
		note_burst(e->node, e->port, e->ts_ns, 2);
	} else if (e->node == 101 && e->port == 1 && pl_event_get_role(e) == PL_ROLE_CULPRIT) {
		w->culprits++;
		w->innocent += flow == 0 || flow > 7;
	}
}

static void take_events(struct pl_event_batch *batch, void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < batch->n; i++) {
		const struct pl_event *e = &batch->events[i];
		uint32_t flow = e->sport - FIRST_PORT;

		w->kinds[e->event]++;
		if (e->event == PL_EVENT_PATH_CHANGE && w->n_changes < CHANGES)
			w->changes[w->n_changes++] =
				(struct change){ flow, e->old_path_id, e->path_id };
		if (e->event == PL_EVENT_MICROBURST)
			take_burst(e);
	}
	batch->n = 0;
}

static void tick(void *arg)
{
	uint32_t *timer = arg;
	uint64_t now = pl_dp_sim_now(w->sim);

	pl_detect_exporters(w->detect, w->decode, now, now, &w->events);
	pl_detect_tick(w->detect, now, now, &w->events);
	take_events(&w->events, NULL);
	pl_dp_sim_arm(w->sim, *timer, now + w->tick_ns);
}

/* ---- the network ---- */

/* Ports of a leaf: two hosts, then two spines, then the collector. */
#define TO(from, out) "to=10.1.0.1 from=" from " out=" out " mac=02:00:00:01:00:01 report=2.0"
#define COUNTERS                                                                                   \
	"  - name: in\n    miss: count in[port.in]\n"                                              \
	"  - name: out\n    stage: egress\n    miss: count out[port.out]\n"                        \
	"counters:\n  - { name: in, size: 8 }\n  - { name: out, size: 8 }\n"

static const char leaf_tables[] =
	"  - name: telemetry\n    stage: egress\n    key: [ port.in range, port.out range ]\n"
	"    entries:\n"
	"      - port.in=1-@h port.out=1-@h -> int_source; int_sink " TO("10.2.1.@i",
		"5") "\n"
		     "      - port.in=1-@h port.out=3-4 -> int_source\n"
		     "      - port.in=3-4 port.out=1-@h -> int_transit; int_sink " TO(
			     "10.2.1.@i", "5") "\n"
					       "  - name: drops\n    miss: report kind=drop " TO(
						       "10.2.1.@i", "5") "\n" COUNTERS;
static const char spine_tables[] =
	"  - name: telemetry\n    stage: egress\n    miss: int_transit\n"
	"  - name: drops\n    miss: report kind=drop " TO("10.2.2.@i", "1") "\n" COUNTERS;

static uint32_t timer;

static void make_world(uint64_t seed, uint64_t rate_bps, uint32_t limit_bytes)
{
	struct pl_dp_port_cfg port = { .n_classes = 1, .rate_bps = rate_bps };
	struct pl_dp_fabric_cfg cfg = { .leaves = LEAVES,
		.spines = SPINES,
		.hosts = 2,
		.host_ports = { .n_classes = 1, .rate_bps = 10 * SECOND },
		.link = { .delay_ns = 5000 },
		.collector = true,
		.leaf_tables = leaf_tables,
		.spine_tables = spine_tables,
		.collect = collect };
	struct pl_decode_options decode = { .prove_exporters = true };
	struct pl_detect_options detect;
	struct pl_diag diag = { .text = "" };
	int r;

	w = calloc(1, sizeof(*w));
	w->tick_ns = 100 * MS;
	port.classes[0].limit_bytes = limit_bytes;
	cfg.leaf_ports = cfg.spine_ports = port;
	pl_detect_defaults(&detect);
	detect.microburst.on = true;
	detect.microburst.threshold = BURST_BYTES;
	detect.microburst.max_ns = 50 * MS;
	detect.microburst.flows = 4;
	detect.limit_burst = 100000;
	r = pl_dp_sim_new(&w->sim, &(struct pl_dp_sim_cfg){ .seed = seed,
					   .start_ns = START,
					   .truth = { true_path, true_event, NULL } });
	r |= pl_dp_fabric_init(&w->fabric, w->sim, &cfg, &diag);
	ok(r == 0, "a network %s%s:%u", diag.text, diag.file, diag.line);
	if (r != 0)
		exit(EXIT_FAILURE);
	r |= pl_dp_traffic_new(&w->traffic, w->sim, seed);
	r |= pl_decode_new(&w->decode, &decode);
	r |= pl_detect_new(&w->detect, &detect);
	r |= pl_record_batch_init(&w->records, 64, 1024);
	r |= pl_event_batch_init(&w->events, 256);
	w->records.flush = flush;
	w->events.flush = take_events;
	r |= pl_dp_sim_timer(w->sim, tick, &timer, &timer);
	pl_dp_sim_arm(w->sim, timer, START + 100 * MS);
	ok(r == 0, "a collector");
}

static void free_world(void)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		for (struct seen *s = w->slots[i], *next; s != NULL; s = next) {
			next = s->next;
			free(s);
		}
	}
	pl_record_batch_done(&w->records);
	pl_event_batch_done(&w->events);
	pl_detect_free(w->detect);
	pl_decode_free(w->decode);
	pl_dp_traffic_free(w->traffic);
	pl_dp_fabric_done(&w->fabric);
	pl_dp_sim_free(w->sim);
	free(w);
}

/* Adds flow i between two hosts, IPv4 UDP or TCP; hosts are numbered from 0. */
static void add_flow(unsigned int i, unsigned int from, unsigned int to, struct pl_dp_flow_cfg cfg)
{
	struct pl_diag diag = { .text = "" };
	uint32_t flow;

	cfg.from = w->fabric.host[from / 2][from % 2];
	cfg.to = w->fabric.host[to / 2][to % 2];
	cfg.tuple = (struct pl_flow){ .src = pl_dp_fabric_addr(from / 2 + 1, from % 2 + 1),
		.dst = pl_dp_fabric_addr(to / 2 + 1, to % 2 + 1),
		.sport = (uint16_t)(FIRST_PORT + i),
		.dport = (uint16_t)(5000 + i % 7),
		.proto = i % 3 == 0 ? PL_IP_TCP : PL_IP_UDP,
		.have = PL_FLOW_PORTS };
	pl_dp_fabric_mac(cfg.from_mac, from / 2 + 1, from % 2 + 1);
	pl_dp_fabric_mac(cfg.to_mac, to / 2 + 1, to % 2 + 1);
	if (pl_dp_traffic_add(w->traffic, &cfg, &flow, &diag) != 0 || flow != i)
		ok(false, "flow %u: %s", i, diag.text);
}

static void add_flows(enum pl_dp_pattern pattern, double rate, uint32_t bytes, uint64_t stop_ns)
{
	for (unsigned int i = 1; i <= FLOWS; i++) {
		unsigned int from = i % 8, to = (from + 1 + i / 8 % 7) % 8;

		/* Constant flows that do not all begin at once, as real ones do not. */
		add_flow(i, from, to,
			(struct pl_dp_flow_cfg){ .pattern = pattern,
				.rate = rate,
				.bytes = bytes,
				.start_ns = START + i * 1234567,
				.stop_ns = stop_ns });
	}
}

struct cells {
	const char *name;
	uint64_t *of;
};

static void take_cell(void *arg, const char *name, uint32_t index, const uint64_t values[3])
{
	const struct cells *c = arg;

	if (index < 8 && strcmp(c->name, name) == 0)
		c->of[index] = values[0];
}

static void counters(struct pl_dp_sim_switch *sw, const char *name, uint64_t ret[8])
{
	struct cells c = { name, ret };

	memset(ret, 0, 8 * sizeof(ret[0]));
	pl_dp_pipeline_cells(
		pl_dp_sim_switch_pipeline(sw), PL_DP_COUNTERS, name, take_cell, &c, NULL);
}

/* Compares losses between switches by the counters of their tables with the truth. */
static uint64_t losses_misplaced(void)
{
	uint64_t wrong = 0, leaf_in[LEAVES][8], leaf_out[LEAVES][8], in[8], out[8];

	for (unsigned int i = 0; i < LEAVES; i++) {
		counters(w->fabric.leaf[i], "in", leaf_in[i]);
		counters(w->fabric.leaf[i], "out", leaf_out[i]);
	}
	for (unsigned int j = 0; j < SPINES; j++) {
		counters(w->fabric.spine[j], "in", in);
		counters(w->fabric.spine[j], "out", out);
		for (unsigned int i = 0; i < LEAVES; i++) {
			wrong += leaf_out[i][3 + j] - in[i + 1] != w->lost[101 + i][3 + j];
			wrong += out[i + 1] - leaf_in[i][3 + j] != w->lost[201 + j][i + 1];
		}
	}
	return wrong;
}

static uint64_t drops_misplaced(void)
{
	uint64_t wrong = 0;

	for (unsigned int n = 0; n < NODES; n++) {
		for (unsigned int f = 0; f <= FLOWS; f++)
			wrong += w->drops[n][f] != 0;
	}
	return wrong;
}

static void same_in_both(void)
{
	eq(w->differ, 0, "each hop is the same in truth and telemetry");
	eq(left(true), 0, "no packet without a report");
	eq(left(false), 0, "no report without a packet");
	ok(w->twice == 0 && w->bad_packets == 0, "and none twice, or broken");
	eq(w->reports, w->truth);
}

/* Full queues, incast, drops; and links between switches that lose packets. */
static void test_exact(void)
{
	struct pl_dp_link_cfg lossy = { .delay_ns = 5000, .loss = 0.02 },
			      bursts = { .delay_ns = 7000,
				      .jitter = { PL_DIST_EXP, 20000, 0 },
				      .to_bad = 0.01,
				      .to_good = 0.2,
				      .bad_loss = 1 };
	unsigned int up, down;

	make_world(1, 20000000, 60000);
	add_flows(PL_DP_POISSON, 400, 600, START + 2 * SECOND);
	pl_dp_sim_run(w->sim, START + 500 * MS);
	eq(w->losses, 0);
	/* Leaf 2 to spine 1, and spine 2 to leaf 4. */
	up = w->fabric.up[1][0];
	down = w->fabric.up[3][1] + 1;
	eq(pl_dp_sim_link_set(w->sim, up, &lossy, NULL), 0);
	eq(pl_dp_sim_link_set(w->sim, down, &bursts, NULL), 0);
	pl_dp_sim_run(w->sim, START + 3 * SECOND);
	same_in_both();
	ok(w->truth > 30000 && w->deep > 10000, "%" PRIu64 " packets, %" PRIu64 " hops in a queue",
		w->truth, w->deep);
	ok(w->losses > 50, "%" PRIu64 " lost on links", w->losses);
	eq(w->lost[102][3] + w->lost[202][4], w->losses, "on those two links");
	eq(losses_misplaced(), 0, "each found on its link");
	eq(w->kinds[PL_EVENT_PATH_CHANGE], 0);
	free_world();
}

/* Incast every 50 ms beside light traffic: drops by place and flow, each burst once with its
 * flows. */
static void test_incast(void)
{
	struct pl_dp_flow_cfg burst = { .pattern = PL_DP_BURSTS,
		.burst = 20,
		.period_ns = PERIOD_NS,
		.bytes = 1000,
		.start_ns = START + 100 * MS,
		.stop_ns = START + (PERIODS - 2) * PERIOD_NS };
	struct pl_dp_flow_cfg light = { .pattern = PL_DP_POISSON,
		.rate = 300,
		.bytes = 200,
		.start_ns = START,
		.stop_ns = START + 2500 * MS };
	struct pl_dp_port_cfg slow = { .n_classes = 1, .rate_bps = 100000000 };
	unsigned int found = 0, missed = 0, invented = 0, host = 0;

	make_world(2, 10 * SECOND, 0);
	w->tick_ns = 10 * MS;
	slow.classes[0].limit_bytes = 60000;
	for (unsigned int i = 0; i < LEAVES * 2; i++)
		eq(pl_dp_sim_port_set(w->sim, pl_dp_sim_switch_node(w->fabric.leaf[i / 2]),
			   i % 2 + 1, &slow, NULL),
			0);
	for (unsigned int i = 1; i <= 7; i++)
		add_flow(i, i, 0, burst);
	for (unsigned int i = 8; i <= FLOWS; i++)
		add_flow(i, i % 8, (i + 1 + i / 8 % 6) % 8, light);
	pl_dp_sim_run(w->sim, START + 4 * SECOND);
	same_in_both();
	ok(w->dropped > 500, "%" PRIu64 " dropped", w->dropped);
	eq(w->drop_reports, w->dropped, "each drop reported");
	eq(drops_misplaced(), 0, "by its node and of its flow");
	ok(w->kinds[PL_EVENT_PACKET_DROP] > 0, "and an event");
	for (unsigned int i = 0; i < NODES; i++) {
		for (unsigned int k = 0; k < 8 * PERIODS; k++) {
			uint8_t by = w->bursts[i][k / PERIODS][k % PERIODS];

			found += by == 3;
			missed += by == 1;
			invented += by == 2;
			host += i == 101 && k / PERIODS == 1 && by == 3;
		}
	}
	eq(host, PERIODS - 2, "each incast is a microburst at its queue");
	ok(missed == 0 && invented == 0,
		"of %u queues in a period that were deep %u were missed, and %u others told", found,
		missed, invented);
	ok(w->culprits >= 4 * (PERIODS - 2), "%" PRIu64 " culprits told", w->culprits);
	eq(w->innocent, 0, "and all are");
	eq(w->kinds[PL_EVENT_PATH_CHANGE], 0);
	eq(losses_misplaced(), 0, "a drop in a queue is no loss on a link");
	free_world();
}

/* Changes the routes of leaf 1 twice while packets flow. */
static void test_path_change(void)
{
	struct pl_dp_pipeline *p;
	struct pl_diag diag = { .text = "" };
	struct pl_dp_change change = { PL_DP_SET, "routes", "ip.dst=10.0.0.0/16 -> forward 3" };
	unsigned int wrong = 0;
	size_t bad;

	make_world(3, SECOND, 0);
	add_flows(PL_DP_CONSTANT, 50, 300, START + 3 * SECOND);
	p = pl_dp_sim_switch_pipeline(w->fabric.leaf[0]);
	pl_dp_sim_run(w->sim, START + SECOND);
	eq(pl_dp_pipeline_change(p, &change, 1, &bad, &diag), 0, "%s", diag.text);
	pl_dp_sim_run(w->sim, START + 2 * SECOND);
	change.entry = "ip.dst=10.0.0.0/16 -> select up";
	eq(pl_dp_pipeline_change(p, &change, 1, &bad, &diag), 0, "%s", diag.text);
	pl_dp_sim_run(w->sim, START + 4 * SECOND);
	same_in_both();
	ok(w->n_true_changes >= 4 && w->n_true_changes % 2 == 0, "%u changes, there and back",
		w->n_true_changes);
	eq(w->n_changes, w->n_true_changes, "each is told");
	for (unsigned int i = 0; i < w->n_true_changes; i++) {
		const struct change *t = &w->true_changes[i];
		unsigned int found = 0;

		for (unsigned int j = 0; j < w->n_changes; j++)
			found += memcmp(t, &w->changes[j], sizeof(*t)) == 0;
		wrong += found != 1;
	}
	eq(wrong, 0, "with the old path and the new one");
	eq(w->burst_events + w->dropped + w->losses, 0);
	free_world();
}

/* Reports that do not come: they are told as reports, and no packet is taken for lost. */
static void test_report_loss(void)
{
	uint64_t others = 0;

	make_world(5, SECOND, 0);
	w->keeps_of = 7;
	add_flows(PL_DP_POISSON, 200, 300, START + 3 * SECOND);
	pl_dp_sim_run(w->sim, START + 4 * SECOND);
	ok(w->withheld > 1000 && w->dropped + w->losses == 0,
		"%" PRIu64 " reports are lost, and no packet", w->withheld);
	eq(w->truth - w->reports, w->withheld, "each packet without a report is one of them");
	eq(left(false), 0, "no report without a packet");
	eq(w->differ, 0, "those that came say what happened");
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++)
		others += i != PL_EVENT_REPORT_LOSS ? w->kinds[i] : 0;
	eq(w->kinds[PL_EVENT_REPORT_LOSS], LEAVES, "the loss of each leaf's reports is told");
	eq(others, 0, "and no drop, burst or other path");
	free_world();
}

/* An hour without events: nothing is reported. */
static void test_steady(void)
{
	uint64_t events = 0;

	make_world(4, SECOND, 0);
	add_flows(PL_DP_POISSON, 1, 200, START + 3600 * SECOND);
	pl_dp_sim_run(w->sim, START + 3601 * SECOND);
	same_in_both();
	ok(w->truth > 150000, "%" PRIu64 " packets", w->truth);
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++)
		events += w->kinds[i];
	eq(events, 0, "no event, of a path, a burst, or anything");
	free_world();
}

int main(void)
{
	test_exact();
	test_incast();
	test_path_change();
	test_report_loss();
	test_steady();
	return pl_test_done();
}
