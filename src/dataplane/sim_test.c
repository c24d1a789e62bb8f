/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulated network against the results expected of its times, rates and faults. */
#include "dataplane/sim.h"

#include <errno.h>

#include "base/hash.h"
#include "base/rng.h"
#include "base/test.h"
#include "dataplane/agenda.h"
#include "dataplane/traffic.h"

#define MS    UINT64_C(1000000)
#define START (UINT64_C(1700000000) * 1000 * MS)

/* h1 - s1 - s2 - h2, where a switch forwards from either port to the other. */
struct net {
	struct pl_dp_sim *sim;
	struct pl_dp_traffic *traffic;
	unsigned int host[2], sw[2];
	unsigned int links[3]; /* h1-s1, s1-s2, h2-s2, in the direction from the first */
	struct relay {
		struct net *net;
		unsigned int node;
		/* Values that the switch measured for each packet of the flow. */
		uint64_t latency[20000];
		uint32_t depth[20000];
		uint64_t in_ns[20000];
		uint8_t times[20000]; /* number of passes: copies cannot be told apart here */
		uint32_t grows;
	} relay[2];
	/* Counts from the truth. */
	uint64_t digest, paths, events, wrong, dropped_by_event[2], lost_by_event[3];
	uint64_t delivered, dropped, copies, compared;
	uint64_t received;
};

static struct net *net;

static void ingress(void *arg, struct pl_dp_packet *pkt)
{
	struct relay *r = arg;

	pkt->out_port = pkt->in_port == 1 ? 2 : 1;
	pl_dp_sim_out(r->net->sim, r->node, pkt);
}

static void egress(void *arg, struct pl_dp_packet *pkt)
{
	struct relay *r = arg;

	if (pkt->flow == 1 && pkt->serial < 20000) {
		r->latency[pkt->serial] = pkt->out_ns - pkt->in_ns;
		r->depth[pkt->serial] = pkt->depth_bytes;
		r->in_ns[pkt->serial] = pkt->in_ns;
		r->times[pkt->serial]++;
	}
	if (r->grows != 0)
		pl_dp_packet_insert(pkt, 14, r->grows);
	pl_dp_sim_wire(r->net->sim, r->node, pkt);
}

static void mix(const void *bytes, size_t len)
{
	net->digest = pl_hash(bytes, len, net->digest);
}

static void told_path(void *arg, const struct pl_path *p, const struct pl_hop *hops)
{
	struct net *n = arg;

	n->paths++;
	n->delivered += (p->flags & PL_FLAG_DROPPED) == 0;
	n->dropped += (p->flags & PL_FLAG_DROPPED) != 0;
	n->copies += (p->flags & PL_FLAG_COPY) != 0;
	mix(p, sizeof(*p));
	mix(hops, p->hop_count * sizeof(*hops));
	for (unsigned int i = 0; i < p->hop_count && p->flow_id == 1 && p->flow_seq < 20000; i++) {
		const struct relay *r = &n->relay[hops[i].node - 101];

		n->wrong += hops[i].index != i || hops[i].node != 101 + i;
		if ((hops[i].present & PL_HOP_HAS_hop_latency_ns) == 0 ||
			r->times[p->flow_seq] != 1)
			continue;
		n->compared++;
		n->wrong += hops[i].hop_latency_ns != r->latency[p->flow_seq] ||
			    hops[i].queue_depth != r->depth[p->flow_seq];
	}
}

static void told_event(void *arg, const struct pl_event *e)
{
	struct net *n = arg;

	n->events++;
	mix(e, sizeof(*e));
	n->wrong += e->event != PL_EVENT_PACKET_DROP;
	if ((e->present & PL_EVENT_HAS_peer_node) == 0) {
		n->dropped_by_event[e->node - 101]++;
		n->wrong += e->drop_reason != 71;
		return;
	}
	n->wrong += e->drop_reason != 0;
	if (pl_event_get_peer_node(e) == 1)
		n->lost_by_event[0] += e->node == 101 && pl_event_get_ingress_port(e) == 1;
	else if (pl_event_get_peer_node(e) == 101)
		n->lost_by_event[1] += e->node == 102 && pl_event_get_peer_port(e) == 2;
	else
		n->lost_by_event[2] += e->node == 2;
}

static void received(void *arg, const struct pl_dp_packet *pkt)
{
	struct net *n = arg;

	n->received++;
	pl_dp_traffic_receive(n->traffic, pkt);
}

static const struct pl_dp_port_cfg fast = { .n_classes = 1, .rate_bps = UINT64_C(10000000000) };

static void make_net(uint64_t seed, const struct pl_dp_port_cfg *middle,
	const struct pl_dp_link_cfg *link, struct pl_dp_clock clock)
{
	struct pl_dp_sim_cfg cfg = {
		.seed = seed, .start_ns = START, .truth = { told_path, told_event, net }
	};
	int r = 0;

	memset(net, 0, sizeof(*net));
	r |= pl_dp_sim_new(&net->sim, &cfg);
	r |= pl_dp_traffic_new(&net->traffic, net->sim, seed);
	for (unsigned int i = 0; i < 2; i++) {
		r |= pl_dp_sim_node(net->sim,
			&(struct pl_dp_sim_node_cfg){ .id = i + 1,
				.host = true,
				.ops = { .receive = received, .arg = net } },
			&net->host[i]);
		r |= pl_dp_sim_port(net->sim, net->host[i], 1, &fast, NULL);
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct relay *relay = &net->relay[i];

		r |= pl_dp_sim_node(net->sim,
			&(struct pl_dp_sim_node_cfg){ .id = 101 + i,
				.ops = { .ingress = ingress, .egress = egress, .arg = relay },
				.clock = clock },
			&net->sw[i]);
		*relay = (struct relay){ .net = net, .node = net->sw[i] };
		r |= pl_dp_sim_port(net->sim, net->sw[i], 1, &fast, NULL);
		r |= pl_dp_sim_port(net->sim, net->sw[i], 2, middle, NULL);
	}
	r |= pl_dp_sim_link(net->sim, net->host[0], 1, net->sw[0], 1, link, &net->links[0], NULL);
	r |= pl_dp_sim_link(net->sim, net->sw[0], 2, net->sw[1], 1, link, &net->links[1], NULL);
	r |= pl_dp_sim_link(net->sim, net->host[1], 1, net->sw[1], 2, link, &net->links[2], NULL);
	if (r != 0) {
		ok(false, "a network");
		exit(EXIT_FAILURE);
	}
}

static void free_net(void)
{
	pl_dp_traffic_free(net->traffic);
	pl_dp_sim_free(net->sim);
}

static struct pl_dp_flow_cfg flow_of(enum pl_dp_pattern pattern, double rate)
{
	static const uint8_t a[4] = { 10, 0, 0, 1 }, b[4] = { 10, 0, 0, 2 };

	return (struct pl_dp_flow_cfg){ .pattern = pattern,
		.from = net->host[0],
		.to = net->host[1],
		.tuple = { .src = pl_addr_v4(a),
			.dst = pl_addr_v4(b),
			.sport = 4000,
			.dport = 5000,
			.proto = PL_IP_UDP,
			.have = PL_FLOW_PORTS },
		.from_mac = { 2, 0, 0, 0, 0, 1 },
		.to_mac = { 2, 0, 0, 0, 0, 2 },
		.bytes = 1000,
		.rate = rate };
}

static uint32_t add(struct pl_dp_flow_cfg cfg)
{
	uint32_t flow = 0;
	struct pl_diag diag = { .text = "" };

	if (pl_dp_traffic_add(net->traffic, &cfg, &flow, &diag) != 0)
		ok(false, "a flow: %s", diag.text);
	return flow;
}

static bool flow_closed(uint32_t flow, uint64_t under_way)
{
	const struct pl_dp_flow_account *b = pl_dp_sim_flow_account(net->sim, flow);

	return b->sent + b->copied == b->delivered + b->dropped + b->lost + under_way;
}

/* One packet through an idle network: every time follows from rates and delays. */
static void test_one(void)
{
	struct pl_dp_flow_cfg flow;
	struct pl_dp_port_cfg middle = { .n_classes = 1, .rate_bps = 80000000 };
	const struct pl_dp_flow_account *b;

	make_net(1, &middle, &(struct pl_dp_link_cfg){ .delay_ns = 5000 },
		(struct pl_dp_clock){ 0, 0, 0 });
	flow = flow_of(PL_DP_CONSTANT, 1);
	flow.packets = 1;
	add(flow);
	pl_dp_sim_run(net->sim, START + 1000 * MS);
	b = pl_dp_sim_flow_account(net->sim, 1);
	/* 1000 bytes: 800 ns at the host, 100 us at each switch. */
	eq(b->latency_ns, 800 + 100000 + 100000 + 3 * 5000);
	ok(b->sent == 1 && b->delivered == 1 && net->paths == 1, "one sent, delivered and told");
	eq(net->relay[0].latency[0], 100000);
	eq(net->relay[1].in_ns[0], START + 800 + 5000 + 100000 + 5000);
	eq(pl_dp_sim_now(net->sim), START + 1000 * MS);
	eq(net->wrong, 0);
	free_net();

	/* A packet that grows after the queue takes longer on the wire; its queue time stays. */
	make_net(1, &middle, &(struct pl_dp_link_cfg){ .delay_ns = 5000 },
		(struct pl_dp_clock){ 0, 0, 0 });
	net->relay[0].grows = 100;
	add(flow);
	pl_dp_sim_run(net->sim, START + 1000 * MS);
	b = pl_dp_sim_flow_account(net->sim, 1);
	eq(b->latency_ns, 800 + 110000 + 110000 + 3 * 5000);
	eq(net->relay[0].latency[0], 100000);
	free_net();
}

/* No hidden buffer: the last of B bytes that come at once is delivered 8 B / C after the first one's
 * begin, at the rate C of the narrowest port. */
static void test_no_hidden_buffer(void)
{
	const uint32_t n = 500;
	struct pl_dp_port_cfg middle = { .n_classes = 1, .rate_bps = 80000000 };
	struct pl_dp_flow_cfg flow;

	make_net(1, &middle, &(struct pl_dp_link_cfg){ .delay_ns = 5000 },
		(struct pl_dp_clock){ 0, 0, 0 });
	/* All in 50 us: the host's port takes 400 us for them, the first switch 50 ms. */
	flow = flow_of(PL_DP_CONSTANT, 1e7);
	flow.packets = n;
	add(flow);
	pl_dp_sim_run(net->sim, START + 1000 * MS);
	eq(pl_dp_sim_flow_account(net->sim, 1)->delivered, n);
	eq(net->relay[1].in_ns[n - 1] - net->relay[0].in_ns[0], n * UINT64_C(100000) + 5000);
	eq(net->relay[0].latency[n - 1], n * UINT64_C(100000) - (n - 1) * 800);
	eq(net->relay[1].latency[n - 1], 100000, "nothing waits behind the narrowest port");
	free_net();
}

/* A node's clock has an offset and drifts: the node sees its own time, the truth does not. */
static void test_clock(void)
{
	struct pl_dp_clock clock;
	struct pl_dp_flow_cfg flow;

	pl_dp_clock_set(&clock, START, 37 * 1000 * (int64_t)MS, 1000000);
	make_net(1, &fast, &(struct pl_dp_link_cfg){ .delay_ns = 5000 }, clock);
	flow = flow_of(PL_DP_CONSTANT, 1);
	add(flow);
	pl_dp_sim_run(net->sim, START + 1500 * MS);
	/* The second packet is sent after a second, in which the clock gained 1 ms. */
	eq(net->relay[0].in_ns[1], START + 1000 * MS + 5800 + 37000 * MS + MS + 5);
	pl_dp_clock_set(pl_dp_sim_clock(net->sim, net->sw[0]), START + 1500 * MS,
		-3000 * (int64_t)MS, 1000000);
	pl_dp_sim_run(net->sim, START + 2500 * MS);
	ok(net->relay[0].in_ns[2] < net->relay[0].in_ns[1], "a clock that was set back");
	eq(pl_dp_sim_flow_account(net->sim, 1)->latency_max_ns, 3 * 5800);
	eq(net->wrong, 0);
	free_net();
}

/* Overload and every fault at once: accounts agree at every time, the truth has each packet once,
 * with the values that nodes measured, and each drop at its place. */
static uint64_t faults(uint64_t seed)
{
	struct pl_dp_port_cfg middle = { .n_classes = 1, .rate_bps = UINT64_C(40000000) };
	struct pl_dp_link_cfg link = { .delay_ns = 200000,
		.jitter = { PL_DIST_EXP, 50000, 0 },
		.loss = 0.01,
		.duplicate = 0.01,
		.reorder = 0.01,
		.reorder_ns = MS,
		.corrupt = 0.001 };
	const struct pl_dp_flow_account *b;
	const struct pl_dp_sim_account *all;
	struct pl_dp_flow_cfg flow;
	uint64_t lost = 0, digest;
	bool closed = true;

	middle.classes[0].limit_bytes = 20000;
	make_net(seed, &middle, &link, (struct pl_dp_clock){ 0, 0, 0 });
	flow = flow_of(PL_DP_POISSON, 5500);
	flow.stop_ns = START + 1500 * MS;
	add(flow);
	flow = flow_of(PL_DP_CONSTANT, 3000);
	flow.tuple.sport = 4001;
	flow.stop_ns = START + 1000 * MS;
	add(flow);
	for (uint64_t t = 1; t <= 2000; t++) {
		uint64_t alive;

		pl_dp_sim_run(net->sim, START + t * MS);
		alive = pl_dp_pool_alive(pl_dp_sim_pool(net->sim));
		b = pl_dp_sim_flow_account(net->sim, 1);
		closed = closed &&
			 b->sent + b->copied - b->delivered - b->dropped - b->lost <= alive;
		if (t > 1100)
			closed = closed && flow_closed(1, alive);
	}
	ok(closed, "accounts agree at every time");
	all = pl_dp_sim_account(net->sim);
	b = pl_dp_sim_flow_account(net->sim, 1);
	ok(b->sent > 7500 && b->dropped > 500 && b->lost > 100 && b->copied > 100 &&
			b->reordered > 50,
		"%" PRIu64 " sent, %" PRIu64 " dropped, %" PRIu64 " lost, %" PRIu64 " copied",
		b->sent, b->dropped, b->lost, b->copied);
	ok(flow_closed(1, 0) && flow_closed(2, 0), "all packets came to an end");
	eq(net->wrong, 0, "the truth is what the nodes booked");
	ok(net->compared > b->sent && net->copies > 0, "%" PRIu64 " hops", net->compared);
	eq(net->delivered, all->delivered);
	eq(net->received, all->delivered);
	eq(net->dropped, all->dropped[PL_DP_DROP_QUEUE] + all->dropped[PL_DP_DROP_LINK]);
	eq(net->events, net->dropped);
	for (unsigned int i = 0; i < 2; i++) {
		const struct pl_dp_queue_account *q =
			pl_dp_port_account(pl_dp_sim_port_at(net->sim, net->sw[i], 2), 0);

		eq(net->dropped_by_event[i], q->dropped_bytes_limit, "drops of queue %u", i);
	}
	for (unsigned int i = 0; i < 3; i++) {
		static const unsigned int back[3] = { 0, 0, 1 };
		unsigned int link_i = net->links[i] + back[i];
		const struct pl_dp_link_account *l =
			pl_dp_link_account(pl_dp_sim_link_at(net->sim, link_i));

		eq(net->lost_by_event[i], l->lost_random, "losses of link %u", i);
		lost += l->lost_random;
	}
	eq(lost, all->dropped[PL_DP_DROP_LINK]);
	eq(all->untraced, 0);
	eq(pl_dp_pool_alive(pl_dp_sim_pool(net->sim)), 0);
	digest = net->digest;
	free_net();
	return digest;
}

/* Every pattern sends its traffic. */
static void test_patterns(void)
{
	const struct pl_dp_traffic_account *t;
	struct pl_dp_flow_cfg flow;
	uint64_t n;

	make_net(5, &fast, &(struct pl_dp_link_cfg){ .delay_ns = 1000 },
		(struct pl_dp_clock){ 0, 0, 0 });
	flow = flow_of(PL_DP_CONSTANT, 300);
	flow.stop_ns = START + 10000 * MS;
	add(flow);
	add(flow_of(PL_DP_POISSON, 1000));
	flow = flow_of(PL_DP_ON_OFF, 1000);
	flow.on_ns = 20 * MS;
	flow.off_ns = 60 * MS;
	add(flow);
	flow = flow_of(PL_DP_BURSTS, 0);
	flow.burst = 32;
	flow.period_ns = 100 * MS;
	flow.start_ns = START + 50 * MS;
	add(flow);
	flow.rate = 100000;
	add(flow);
	pl_dp_sim_run(net->sim, START + 20000 * MS);
	eq(pl_dp_sim_flow_account(net->sim, 1)->sent, 3000, "300 a second for 10 s");
	n = pl_dp_sim_flow_account(net->sim, 2)->sent;
	ok(n > 20000 - 600 && n < 20000 + 600, "Poisson: %" PRIu64, n);
	n = pl_dp_sim_flow_account(net->sim, 3)->sent;
	ok(n > 4000 && n < 6000, "on a quarter of the time: %" PRIu64, n);
	eq(pl_dp_sim_flow_account(net->sim, 4)->sent, 200 * 32, "bursts");
	eq(pl_dp_sim_flow_account(net->sim, 5)->sent, 200 * 32, "bursts at a rate");
	ok(pl_dp_port_account(pl_dp_sim_port_at(net->sim, net->host[0], 1), 0)->peak_packets >= 31,
		"all at once");
	free_net();

	make_net(6, &fast,
		&(struct pl_dp_link_cfg){ .delay_ns = MS, .loss = 0.002, .duplicate = 0.1 },
		(struct pl_dp_clock){ 0, 0, 0 });
	flow = flow_of(PL_DP_REQUESTS, 0);
	flow.burst = 10;
	flow.reply_bytes = 1500;
	flow.timeout_ns = 50 * MS;
	flow.off_ns = 10 * MS;
	flow.packets = 1000;
	flow.tuple.proto = PL_IP_TCP;
	add(flow);
	pl_dp_sim_run(net->sim, START + 60000 * MS);
	t = pl_dp_traffic_account(net->traffic);
	eq(t->sent, 1000);
	eq(t->completed + t->timeouts, 1000);
	ok(t->timeouts > 10 && t->timeouts < 150, "%" PRIu64 " without an answer", t->timeouts);
	ok(t->completion_ns / t->completed > 6 * MS && t->completion_max_ns < 50 * MS,
		"their times");
	ok(flow_closed(1, 0), "the account agrees");
	free_net();
}

static int bad_checksums;

static void check_sum(void *arg, const struct pl_dp_packet *pkt)
{
	const bool v4 = (pkt->data[14] >> 4) == 4;
	const uint8_t *ip = pkt->data + 14, *l4 = ip + (v4 ? 20 : 40);
	uint32_t len = pkt->len - 14 - (v4 ? 20 : 40), sum = len;

	(void)arg;
	sum += v4 ? ip[9] : ip[6];
	sum = pl_checksum_add(sum, v4 ? ip + 12 : ip + 8, v4 ? 8 : 32);
	bad_checksums += pl_checksum_fold(pl_checksum_add(sum, l4, len)) != 0;
	bad_checksums += v4 && pl_checksum_fold(pl_checksum_add(0, ip, 20)) != 0;
	net->received++;
}

/* Packets of hosts are well-formed, of both families and protocols, with correct checksums. */
static void test_packets(void)
{
	struct pl_diag diag;
	struct pl_dp_sim *sim = NULL;
	struct pl_dp_traffic *traffic = NULL;
	unsigned int host[2], link;
	uint32_t flow;

	net->received = 0;
	pl_dp_sim_new(&sim, &(struct pl_dp_sim_cfg){ .seed = 1 });
	pl_dp_traffic_new(&traffic, sim, 1);
	for (unsigned int i = 0; i < 2; i++) {
		pl_dp_sim_node(sim,
			&(struct pl_dp_sim_node_cfg){ .host = true, .ops.receive = check_sum },
			&host[i]);
		pl_dp_sim_port(sim, host[i], 1, &fast, &diag);
	}
	pl_dp_sim_link(sim, host[0], 1, host[1], 1, &(struct pl_dp_link_cfg){ .delay_ns = 1 },
		&link, &diag);
	for (unsigned int i = 0; i < 8; i++) {
		struct pl_dp_flow_cfg cfg = flow_of(PL_DP_CONSTANT, 1000);

		cfg.from = host[0];
		cfg.to = host[1];
		cfg.packets = 3000;
		cfg.bytes = (i & 4) != 0 ? 61 + 20 : 150;
		cfg.ecn = 2;
		cfg.tuple.proto = (i & 1) != 0 ? PL_IP_TCP : PL_IP_UDP;
		if ((i & 2) != 0) {
			cfg.tuple.src.b[0] = cfg.tuple.dst.b[0] = 0xfd;
			cfg.tuple.src.b[10] = cfg.tuple.dst.b[10] = 0;
		}
		eq(pl_dp_traffic_add(traffic, &cfg, &flow, &diag), 0, "flow %u", i);
	}
	pl_dp_sim_run(sim, 4000 * MS);
	eq(net->received, 8 * 3000);
	eq(bad_checksums, 0);
	pl_dp_traffic_free(traffic);
	pl_dp_sim_free(sim);
}

static void test_refused(void)
{
	static const struct {
		enum pl_dp_pattern pattern;
		double rate;
		uint32_t bytes, burst;
		uint8_t proto;
		const char *says;
	} bad[] = {
		{ PL_DP_CONSTANT, 0, 100, 0, PL_IP_UDP },
		{ PL_DP_CONSTANT, -1, 100, 0, PL_IP_UDP },
		{ PL_DP_CONSTANT, 1, 100, 0, PL_IP_ICMP },
		{ PL_DP_CONSTANT, 1, 41, 0, PL_IP_UDP, "a frame of 41 bytes" },
		{ PL_DP_CONSTANT, 1, 70000, 0, PL_IP_UDP, "a frame of 70000 bytes" },
		{ PL_DP_ON_OFF, 1, 100, 0, PL_IP_UDP },
		{ PL_DP_BURSTS, 1, 100, 0, PL_IP_UDP },
		{ PL_DP_BURSTS, 1, 100, 5, PL_IP_UDP },
		{ PL_DP_REQUESTS, 1, 100, 5, PL_IP_UDP },
		{ PL_DP_REQUESTS, 1, 41, 5, PL_IP_UDP, "a frame of 41 bytes" },
		{ PL_DP_REQUESTS, 1, 100, 5, PL_IP_UDP, "a frame of 40 bytes" },
	};
	unsigned int node;
	uint32_t flow;

	make_net(1, &fast, &(struct pl_dp_link_cfg){ .delay_ns = 1 },
		(struct pl_dp_clock){ 0, 0, 0 });
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct pl_dp_flow_cfg cfg = flow_of(bad[i].pattern, bad[i].rate);
		struct pl_diag diag = { .text = "" };

		cfg.bytes = bad[i].bytes;
		cfg.burst = bad[i].burst;
		cfg.tuple.proto = bad[i].proto;
		if (bad[i].says != NULL) {
			cfg.reply_bytes = 40;
			cfg.timeout_ns = MS;
		}
		eq(pl_dp_traffic_add(net->traffic, &cfg, &flow, &diag), -EINVAL, "flow %u", i);
		ok(diag.text[0] != '\0' &&
				(bad[i].says == NULL || strstr(diag.text, bad[i].says) != NULL),
			"its text: %s", diag.text);
	}
	eq(pl_dp_sim_node(net->sim, &(struct pl_dp_sim_node_cfg){ .id = 7 }, &node), -EINVAL);
	eq(pl_dp_sim_port(net->sim, 99, 1, &fast, NULL), -EINVAL, "no such node");
	eq(pl_dp_sim_port(net->sim, net->sw[0], 1, &fast, NULL), -EINVAL, "taken");
	eq(pl_dp_sim_link(net->sim, net->sw[0], 1, net->sw[0], 2,
		   &(struct pl_dp_link_cfg){ .loss = 0 }, &node, NULL),
		-EINVAL, "linked already");
	eq(pl_dp_sim_link_set(net->sim, 99, &(struct pl_dp_link_cfg){ .loss = 0 }, NULL), -EINVAL);
	free_net();
}

/* Random times are set, changed and removed, against a plain array. */
static void test_agenda(void)
{
	struct pl_dp_agenda a = { .n = 0 };
	uint64_t at[100];
	struct pl_rng rng;
	int wrong = 0;

	pl_rng_seed(&rng, 8);
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t thing;

		wrong += pl_dp_agenda_add(&a, &thing) != 0 || thing != i;
		at[i] = PL_DP_AGENDA_NEVER;
	}
	for (int round = 0; round < 100000; round++) {
		uint32_t thing = (uint32_t)pl_rng_below(&rng, 100), first = 0, got = 0;

		at[thing] =
			pl_rng_below(&rng, 3) == 0 ? PL_DP_AGENDA_NEVER : pl_rng_below(&rng, 200);
		pl_dp_agenda_set(&a, thing, at[thing]);
		for (uint32_t i = 1; i < 100; i++)
			first = at[i] < at[first] ? i : first;
		wrong += pl_dp_agenda_first(&a, &got) != at[first];
		wrong += at[first] != PL_DP_AGENDA_NEVER && got != first;
	}
	eq(wrong, 0);
	pl_dp_agenda_done(&a);
}

int main(void)
{
	uint64_t a, b, c;

	net = calloc(1, sizeof(*net));
	test_agenda();
	test_one();
	test_no_hidden_buffer();
	test_clock();
	a = faults(1);
	b = faults(1);
	c = faults(2);
	ok(a == b, "the same seed, the same records");
	ok(a != c, "another seed, others");
	test_patterns();
	test_packets();
	test_refused();
	free(net);
	return pl_test_done();
}
