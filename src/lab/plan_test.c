/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans of labs: every step as a command, and properties that every plan must have. */
#include "lab/plan.h"

#include <errno.h>

#include "base/test.h"
#include "dataplane/program.h"

static struct pl_lab_topology t;
static struct pl_lab_plan plan;
static struct pl_buf text;
static struct pl_diag diag;

static int make(const char *yaml)
{
	pl_lab_plan_done(&plan);
	pl_lab_topology_done(&t);
	diag = (struct pl_diag){ .text = "" };
	if (pl_lab_topology_parse(&t, "net.yaml", yaml, strlen(yaml), &diag) < 0)
		return -EINVAL;
	return pl_lab_plan_make(&plan, &t, &diag);
}

static const char golden[] =
	"ip netns add net-a && ip -n net-a link set dev lo up\n"
	"ip netns exec net-a sysctl -qw net.ipv6.conf.default.addr_gen_mode=1\n"
	"ip netns exec net-a sysctl -qw net.ipv6.conf.default.accept_dad=0\n"
	"ip netns exec net-a sysctl -qw net.ipv6.conf.default.router_solicitations=0\n"
	"ip netns add net-b && ip -n net-b link set dev lo up\n"
	"ip netns exec net-b sysctl -qw net.ipv6.conf.default.addr_gen_mode=1\n"
	"ip netns exec net-b sysctl -qw net.ipv6.conf.default.accept_dad=0\n"
	"ip netns exec net-b sysctl -qw net.ipv6.conf.default.router_solicitations=0\n"
	"ip netns add net-r && ip -n net-r link set dev lo up\n"
	"ip netns exec net-r sysctl -qw net.ipv6.conf.default.addr_gen_mode=1\n"
	"ip netns exec net-r sysctl -qw net.ipv6.conf.default.accept_dad=0\n"
	"ip netns exec net-r sysctl -qw net.ipv6.conf.default.router_solicitations=0\n"
	"ip netns exec net-r sysctl -qw net.ipv4.ip_forward=1\n"
	"ip netns exec net-r sysctl -qw net.ipv6.conf.all.forwarding=1\n"
	"ip netns exec net-r sysctl -qw net.ipv4.fib_multipath_hash_policy=1\n"
	"ip netns exec net-r sysctl -qw net.ipv6.fib_multipath_hash_policy=1\n"
	"ip netns exec net-r sysctl -qw net.ipv4.icmp_ratelimit=0\n"
	"ip netns exec net-r sysctl -qw net.ipv6.icmp.ratelimit=0\n"
	"ip -n net-r address add 10.255.0.1/32 dev lo\n"
	"ip -n net-r address add fd00:ff::1/128 dev lo nodad\n"
	"ip link add r address 02:00:00:01:00:01 netns net-a type veth peer name a address 02:00:00:03:00:01 netns net-r\n"
	"ip netns exec net-a ethtool -K r tx off tso off gso off gro off\n"
	"ip -n net-a address add 10.1.0.1/31 dev r\n"
	"ip -n net-a address add fd00:1::1/127 dev r nodad\n"
	"ip -n net-a link set dev r up\n"
	"ip -n net-a neighbour replace 10.1.0.0 lladdr 02:00:00:03:00:01 dev r nud permanent\n"
	"ip -n net-a neighbour replace fd00:1:: lladdr 02:00:00:03:00:01 dev r nud permanent\n"
	"tc -n net-a qdisc replace dev r root tbf rate 5000000bit burst 3100 limit 65536\n"
	"ip netns exec net-r ethtool -K a tx off tso off gso off gro off\n"
	"ip -n net-r address add 10.1.0.0/31 dev a\n"
	"ip -n net-r address add fd00:1::/127 dev a nodad\n"
	"ip -n net-r link set dev a up\n"
	"ip -n net-r neighbour replace 10.1.0.1 lladdr 02:00:00:01:00:01 dev a nud permanent\n"
	"ip -n net-r neighbour replace fd00:1::1 lladdr 02:00:00:01:00:01 dev a nud permanent\n"
	"tc -n net-r qdisc replace dev a root tbf rate 5000000bit burst 3100 limit 65536\n"
	"ip link add r address 02:00:00:02:00:01 netns net-b type veth peer name b address 02:00:00:03:00:02 netns net-r\n"
	"ip netns exec net-b ethtool -K r tx off tso off gso off gro off\n"
	"ip -n net-b address add 10.1.1.1/31 dev r\n"
	"ip -n net-b address add fd00:1:0:1::1/127 dev r nodad\n"
	"ip -n net-b link set dev r up\n"
	"ip -n net-b neighbour replace 10.1.1.0 lladdr 02:00:00:03:00:02 dev r nud permanent\n"
	"ip -n net-b neighbour replace fd00:1:0:1:: lladdr 02:00:00:03:00:02 dev r nud permanent\n"
	"ip netns exec net-r ethtool -K b tx off tso off gso off gro off\n"
	"ip -n net-r address add 10.1.1.0/31 dev b\n"
	"ip -n net-r address add fd00:1:0:1::/127 dev b nodad\n"
	"ip -n net-r link set dev b up\n"
	"ip -n net-r neighbour replace 10.1.1.1 lladdr 02:00:00:02:00:01 dev b nud permanent\n"
	"ip -n net-r neighbour replace fd00:1:0:1::1 lladdr 02:00:00:02:00:01 dev b nud permanent\n"
	"ip -n net-a route add default via 10.1.0.0 dev r\n"
	"ip -n net-a -6 route add default via fd00:1:: dev r\n"
	"ip -n net-b route add default via 10.1.1.0 dev r\n"
	"ip -n net-b -6 route add default via fd00:1:0:1:: dev r\n"
	"ip netns exec net-b sh -c 'echo '\\''x'\\''' &\n"
	"ip netns exec net-a sh -c 'serve' > s.log 2>&1 & until grep -qF 'it'\\''s up' s.log; do sleep 0.1; done\n"
	"ip netns exec net-b sh -c 'ask' > q.log 2>&1 &\n";

static void test_golden(void)
{
	eq(make("nodes: [{name: a}, {name: b, run: [\"echo 'x'\"]}, {name: r, kind: router}]\n"
		"every_link: {bare: true}\nlinks:\n  - {ends: [a, r], rate: 5M}\n  - {ends: [b, r]}\n"
		"run:\n  - {node: a, name: s, command: serve, ready: it's up}\n"
		"  - {node: b, name: q, command: ask}\n"),
		0);
	pl_buf_reset(&text);
	pl_lab_plan_text(&plan, &text);
	if (!ok(strcmp(text.data, golden) == 0, "the whole plan")) {
		size_t at = 0;

		while (text.data[at] == golden[at])
			at++;
		printf("# differs at \"%.80s\", not \"%.80s\"\n", text.data + at, golden + at);
	}
}

/* The peer of an interface among the wires has no offloads either. */
static void test_wires(void)
{
	eq(make("name: net\nnodes: [{name: a}, {name: b, kind: router}]\nlinks: [{ends: [a, b]}]\n"),
		0, "a link that is not bare");
	pl_buf_reset(&text);
	pl_lab_plan_text(&plan, &text);
	ok(strstr(text.data,
		   " netns net-a type veth peer name w0.0 netns net--wires && ip netns exec net--wires "
		   "ethtool -K w0.0 tx off tso off gso off gro off && ip -n net--wires link set dev "
		   "w0.0 up\n") != NULL,
		"it is told in the dry run");
}

/* Follows all routes from a node and counts faults: by each equal path a packet must reach the
 * host, getting nearer at every link. */
static unsigned int follow(unsigned int at, unsigned int to, const uint32_t *distance)
{
	const struct pl_addr *dst = &t.nodes[to].v4;
	unsigned int lost = 0, found = 0;

	if (at == to)
		return 0;
	for (unsigned int i = 0; i < t.nodes[at].n_ports; i++) {
		const struct pl_lab_link *l = &t.links[t.nodes[at].links[i]];

		if (t.nodes[at].kind != PL_LAB_HOST && pl_addr_alike(&l->end[0].v4, dst, 127))
			return 0;
	}
	for (size_t i = 0; i < plan.n; i++) {
		const struct pl_lab_step *s = &plan.steps[i];

		if (s->kind != PL_LAB_ROUTE || s->node != at || !pl_addr_is_v4(&s->addr) ||
			!pl_addr_alike(&s->addr, dst, 96 + s->bits))
			continue;
		found++;
		for (unsigned int k = 0; k < s->n_ports; k++) {
			unsigned int port = plan.ports[s->first_port + k];
			const struct pl_lab_link *l = &t.links[t.nodes[at].links[port - 1]];
			unsigned int next = l->end[l->end[0].node == at].node;

			lost += distance[next] >= distance[at] ? 1 : follow(next, to, distance);
		}
	}
	return lost + (found != 1);
}

static void test_paths(void)
{
	static const char *const shapes[] = { "shape: line\n", "shape: diamond\n",
		"shape: leaf-spine:3x4x2\n" };
	uint32_t distance[PL_LAB_NODES_MAX];

	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		unsigned int lost = 0;

		eq(make(shapes[s]), 0, "%s", shapes[s]);
		/* Routers instead of switches, as only their routes are in the plan. */
		for (unsigned int i = 0; i < t.n_nodes; i++)
			t.nodes[i].kind =
				t.nodes[i].kind == PL_LAB_HOST ? PL_LAB_HOST : PL_LAB_ROUTER;
		pl_lab_plan_done(&plan);
		eq(pl_lab_plan_make(&plan, &t, &diag), 0);
		for (unsigned int to = 0; to < t.n_nodes; to++) {
			pl_lab_distances(&t, to, distance);
			for (unsigned int from = 0;
				from < t.n_nodes && t.nodes[to].kind == PL_LAB_HOST; from++)
				lost += follow(from, to, distance);
		}
		eq(lost, 0, "by routes everything comes to every host");
	}
}

/* Files of switches must be valid for pathline switch, and their kernels get no addresses or
 * routes. */
static void test_switches(void)
{
	static const char *const networks[] = { "shape: line\n", "shape: leaf-spine:4x4x2\n",
		"shape: wan-ring:8\ntelemetry: none\n",
		"nodes: [{name: a}, {name: b}, {name: s, kind: switch}, {name: r, kind: router}]\n"
		"every_link: {rate: 10M, queue: 30kB, delay: 1ms}\n"
		"links: [{ends: [a, s]}, {ends: [s, r]}, {ends: [r, s]}, {ends: [r, b]}]\n" };

	for (size_t n = 0; n < sizeof(networks) / sizeof(networks[0]); n++) {
		unsigned int switches = 0, files = 0, kernel = 0;
		bool collector;

		eq(make(networks[n]), 0, "%s", networks[n]);
		eq(pl_lab_topology_add_collector(&t, &diag), 0, "%s", diag.text);
		pl_lab_plan_done(&plan);
		eq(pl_lab_plan_make(&plan, &t, &diag), 0, "%s", diag.text);
		collector = t.nodes[t.n_nodes - 1].collector;
		eq(collector, n != 2);
		for (unsigned int i = 0; i < t.n_nodes; i++)
			switches += t.nodes[i].kind == PL_LAB_SWITCH;
		for (size_t i = 0; i < plan.n; i++) {
			const struct pl_lab_step *s = &plan.steps[i];
			struct pl_dp_program program;

			if (s->node >= t.n_nodes || t.nodes[s->node].kind != PL_LAB_SWITCH)
				continue;
			kernel += s->kind == PL_LAB_ADDRESS || s->kind == PL_LAB_ROUTE ||
				  s->kind == PL_LAB_NEIGHBOUR || s->kind == PL_LAB_RATE;
			if (s->kind != PL_LAB_FILE)
				continue;
			files++;
			eq(pl_dp_program_parse(&program, s->file, s->text, strlen(s->text), &diag),
				0, "%s", diag.text);
			eq(pl_dp_program_check(&program, &diag), 0, "%s", diag.text);
			eq(program.conf.ports.n, t.nodes[s->node].n_ports);
			ok((strstr(s->text, "int_source") != NULL) == collector);
			if (n == 3)
				ok(strstr(s->text,
					   "rate: 10000000, queues: [ { limit: 30000B } ]") != NULL,
					"%s", s->text);
			pl_dp_program_done(&program);
		}
		eq(files, switches);
		eq(kernel, 0);
	}
	eq(make("shape: line\nnodes: [{name: collector}]\nlinks: [{ends: [collector, s1]}]\n"), 0);
	eq(pl_lab_topology_add_collector(&t, &diag), -EINVAL);
	ok(strstr(diag.text, "give yours another name") != NULL, "%s", diag.text);
	eq(make("shape: leaf-spine:100x29x1\n"), 0);
	eq(pl_lab_topology_add_collector(&t, &diag), -EINVAL);
	ok(strstr(diag.text, "129 switches") != NULL, "%s", diag.text);
}

static void test_refused(void)
{
	eq(make("shape: line\nevery_link: {delay: 1ms, bare: true}\n"), -EOPNOTSUPP);
	ok(strstr(diag.text, "link h1-s1 is bare") != NULL, "%s", diag.text);
}

int main(void)
{
	test_golden();
	test_wires();
	test_paths();
	test_switches();
	test_refused();
	pl_buf_done(&text);
	pl_lab_plan_done(&plan);
	pl_lab_topology_done(&t);
	return pl_test_done();
}
