/* SPDX-License-Identifier: BSD-2-Clause */
/* Switches in simulated time that copy their own copies, or send answers: time advances, and the
 * accounts agree. */
#include "base/test.h"
#include "dataplane/sim_switch.h"
#include "wire/layers.h"

#define PACKETS 10

static const char program_text[] =
	"name: s1\nid: 1\n"
	"ports:\n  - { number: 1, uri: \"packet:a\" }\n  - { number: 2, uri: \"packet:b\" }\n"
	"tables:\n"
	"  - name: way\n    key: [ port.in exact ]\n    entries:\n"
	"      - port.in=1 -> forward 2\n"
	"  - name: spy\n    stage: egress\n    key: [ port.out exact ]\n    entries:\n"
	"      - port.out=2 -> mirror 2\n";

static uint64_t received, paths, dropped_paths;

static void receive(void *arg, const struct pl_dp_packet *pkt)
{
	(void)arg;
	(void)pkt;
	received++;
}

static void note_path(void *arg, const struct pl_path *path, const struct pl_hop *hops)
{
	(void)arg;
	(void)hops;
	paths++;
	dropped_paths += (path->flags & PL_FLAG_DROPPED) != 0;
}

/* Pings of a switch: each is counted as delivered, with its path in the truth. */
static void test_answers(void)
{
	static const char text[] =
		"name: s1\nid: 1\n"
		"ports: [ { number: 1, uri: \"packet:a\", addresses: [ 10.0.0.9 ],\n"
		"           mac: \"02:00:00:00:00:09\" } ]\n";
	const struct pl_dp_port_cfg ports = { .rate_bps = 10000000, .n_classes = 1 };
	const struct pl_dp_sim_cfg cfg = { .seed = 1, .truth = { .path = note_path } };
	const struct pl_dp_link_cfg link = { .delay_ns = 1000 };
	struct pl_dp_sim_node_cfg host = { .id = 10, .host = true, .ops = { .receive = receive } };
	const struct pl_flow ping = { .src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 1 }),
		.dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 9 }),
		.proto = PL_IP_ICMP,
		.sport = 8 };
	const struct pl_dp_flow_account *account;
	struct pl_dp_program program;
	struct pl_dp_sim_switch *w;
	struct pl_diag diag = { .text = "" };
	struct pl_dp_sim *sim;
	unsigned int node, l;
	uint32_t flow;

	received = 0;
	if (!ok(pl_dp_program_parse(&program, "s.yaml", text, sizeof(text) - 1, &diag) == 0, "%s",
		    diag.text))
		return;
	(void)pl_dp_sim_new(&sim, &cfg);
	eq(pl_dp_sim_switch_new(&w, sim, &program, &ports, NULL, &diag), 0, "%s", diag.text);
	(void)pl_dp_sim_node(sim, &host, &node);
	(void)pl_dp_sim_port(sim, node, 1, &ports, NULL);
	eq(pl_dp_sim_link(sim, node, 1, pl_dp_sim_switch_node(w), 1, &link, &l, &diag), 0);
	(void)pl_dp_sim_flow(sim, &flow);
	for (unsigned int i = 0; i < PACKETS; i++) {
		struct pl_dp_packet *pkt = pl_dp_packet_new(pl_dp_sim_pool(sim), 14 + 20 + 8);
		struct pl_build b = pl_build(pkt->data, pkt->len);

		pl_put_eth(&b, PL_ETH_IPV4, 0);
		pl_patch(&b, 0, (const uint8_t[]){ 2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1 }, 12);
		pl_end_ip(&b, pl_put_ip(&b, &ping, 64, 0));
		pkt->flow = flow;
		pkt->serial = i;
		pl_dp_sim_send(sim, node, pkt);
	}
	pl_dp_sim_run(sim, UINT64_C(1000000000));
	account = pl_dp_sim_flow_account(sim, flow);
	eq(received, PACKETS, "an answer to each");
	eq(account->sent, PACKETS);
	eq(account->delivered, PACKETS, "all answers arrived");
	eq(pl_dp_sim_account(sim)->delivered, 2 * PACKETS, "and the answers did");
	eq(paths, PACKETS, "a path of each is told");
	eq(dropped_paths, 0, "of none as dropped");
	pl_dp_sim_switch_free(w);
	pl_dp_sim_free(sim);
	pl_dp_program_done(&program);
}

static void send_one(struct pl_dp_sim *sim, unsigned int host, uint16_t sport)
{
	struct pl_dp_packet *pkt = pl_dp_packet_new(pl_dp_sim_pool(sim), 200);
	const struct pl_flow flow = { .src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 1 }),
		.dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 2 }),
		.sport = sport,
		.dport = 9,
		.proto = PL_IP_UDP,
		.have = PL_FLOW_PORTS };
	struct pl_build b = pl_build(pkt->data, pkt->len);
	size_t at;

	pl_put_eth(&b, PL_ETH_IPV4, 0);
	at = pl_put_ip(&b, &flow, 64, 0);
	pl_put_zero(&b, b.cap - b.len);
	pl_end_ip(&b, at);
	pl_dp_sim_send(sim, host, pkt);
}

/* rate 0: packets take no time, and only PL_DP_COPIES_MAX ends copies of copies. */
static void run(uint64_t rate_bps)
{
	const struct pl_dp_port_cfg ports = { .rate_bps = rate_bps, .n_classes = 1 };
	const struct pl_dp_sim_cfg cfg = { .seed = 1 };
	const struct pl_dp_link_cfg link = { .delay_ns = 1000 };
	struct pl_dp_sim_node_cfg host = { .host = true, .ops = { .receive = receive } };
	struct pl_dp_program program;
	struct pl_dp_sim_switch *w;
	struct pl_diag diag = { .text = "" };
	const struct pl_dp_account *in, *out;
	struct pl_dp_sim *sim;
	unsigned int hosts[2], l;

	received = 0;
	if (!ok(pl_dp_program_parse(
			&program, "s.yaml", program_text, sizeof(program_text) - 1, &diag) == 0,
		    "%s", diag.text))
		return;
	(void)pl_dp_sim_new(&sim, &cfg);
	eq(pl_dp_sim_switch_new(&w, sim, &program, &ports, NULL, &diag), 0, "%s", diag.text);
	for (unsigned int i = 0; i < 2; i++) {
		host.id = 10 + i;
		(void)pl_dp_sim_node(sim, &host, &hosts[i]);
		(void)pl_dp_sim_port(sim, hosts[i], 1, &ports, NULL);
		eq(pl_dp_sim_link(
			   sim, hosts[i], 1, pl_dp_sim_switch_node(w), i + 1, &link, &l, &diag),
			0, "%s", diag.text);
	}
	for (uint16_t i = 0; i < PACKETS; i++)
		send_one(sim, hosts[0], i);
	pl_dp_sim_run(sim, UINT64_C(1000000000));
	eq(pl_dp_sim_now(sim), UINT64_C(1000000000), "time goes on");
	in = pl_dp_pipeline_account(pl_dp_sim_switch_pipeline(w), PL_DP_INGRESS);
	out = pl_dp_pipeline_account(pl_dp_sim_switch_pipeline(w), PL_DP_EGRESS);
	eq(received, 5 * PACKETS, "each packet arrives with four copies of copies");
	eq(in->dropped[PL_DP_DROP_LOOP], PACKETS, "the one that is too many is counted");
	eq(in->in + in->made, in->out + in->dropped[PL_DP_DROP_LOOP], "accounts agree");
	eq(out->in, out->out, "behind the queues too");
	pl_dp_sim_switch_free(w);
	pl_dp_sim_free(sim);
	pl_dp_program_done(&program);
}

int main(void)
{
	run(0);
	run(10000000);
	test_answers();
	return pl_test_done();
}
