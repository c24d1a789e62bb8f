/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the plan of a lab as shell commands. */
#include <stdio.h>

#include "base/num.h"
#include "lab/plan.h"

void pl_lab_netns_name(
	const struct pl_lab_topology *t, unsigned int node, char ret[PL_LAB_NETNS_MAX])
{
	snprintf(ret, PL_LAB_NETNS_MAX, "%s-%s", t->name,
		node < t->n_nodes ? t->nodes[node].name : "-wires");
}

void pl_lab_wire_name(unsigned int link, unsigned int side, char ret[IF_NAMESIZE])
{
	snprintf(ret, IF_NAMESIZE, "w%u.%u", link % PL_LAB_LINKS_MAX, side % 2);
}

static void add_mac(struct pl_buf *out, const uint8_t *mac)
{
	pl_buf_printf(out, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		mac[5]);
}

static void veth_text(const struct pl_lab_plan *p, const struct pl_lab_link *l, struct pl_buf *out)
{
	char ns[PL_LAB_NETNS_MAX];

	for (unsigned int side = 0; side < 2; side++) {
		const struct pl_lab_end *e = &l->end[side];

		pl_lab_netns_name(p->t, e->node, ns);
		pl_buf_printf(out,
			side == 0 ? "ip link add %s address " : " type veth peer name %s address ",
			e->interface);
		add_mac(out, e->mac);
		pl_buf_printf(out, " netns %s", ns);
	}
}

static void offload_text(const char *ns, const char *interface, struct pl_buf *out)
{
	pl_buf_printf(out, "ip netns exec %s ethtool -K %s tx off tso off gso off gro off", ns,
		interface);
}

static void wire_text(const struct pl_lab_plan *p, const struct pl_lab_step *s, const char *ns,
	struct pl_buf *out)
{
	const struct pl_lab_end *e = &p->t->links[s->link].end[s->side];
	char wires[PL_LAB_NETNS_MAX], wire[IF_NAMESIZE];

	pl_lab_netns_name(p->t, p->t->n_nodes, wires);
	pl_lab_wire_name(s->link, s->side, wire);
	pl_buf_printf(out, "ip link add %s address ", e->interface);
	add_mac(out, e->mac);
	pl_buf_printf(out, " netns %s type veth peer name %s netns %s", ns, wire, wires);
	pl_buf_str(out, " && ");
	offload_text(wires, wire, out);
	pl_buf_printf(out, " && ip -n %s link set dev %s up", wires, wire);
}

static void route_text(const struct pl_lab_plan *p, const struct pl_lab_step *s, const char *ns,
	struct pl_buf *out)
{
	const struct pl_lab_node *node = &p->t->nodes[s->node];
	char addr[PL_ADDR_TEXT_MAX];

	pl_format_addr(addr, &s->addr);
	pl_buf_printf(out, "ip -n %s %sroute add ", ns, pl_addr_is_v4(&s->addr) ? "" : "-6 ");
	if (s->bits == 0)
		pl_buf_str(out, "default");
	else
		pl_buf_printf(out, "%s/%u", addr, s->bits);
	for (unsigned int i = 0; i < s->n_ports; i++) {
		unsigned int port = p->ports[s->first_port + i];
		const struct pl_lab_link *l = &p->t->links[node->links[port - 1]];
		unsigned int side = l->end[0].node != s->node;

		pl_format_addr(
			addr, pl_addr_is_v4(&s->addr) ? &l->end[!side].v4 : &l->end[!side].v6);
		pl_buf_printf(out, "%s via %s dev %s", s->n_ports > 1 ? " nexthop" : "", addr,
			l->end[side].interface);
	}
}

static void quoted(struct pl_buf *out, const char *text)
{
	pl_buf_chr(out, '\'');
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			pl_buf_str(out, "'\\''");
		else
			pl_buf_chr(out, *text);
	}
	pl_buf_chr(out, '\'');
}

/* Prints a command in the background with its log; waits for its `ready` text if it has one. */
static void run_text(const struct pl_lab_step *s, const char *ns, struct pl_buf *out)
{
	const struct pl_lab_command *c = s->of;

	pl_buf_printf(out, "ip netns exec %s sh -c ", ns);
	quoted(out, s->command);
	if (c != NULL && c->name != NULL)
		pl_buf_printf(out, " > %s.log 2>&1", c->name);
	pl_buf_str(out, " &");
	if (c == NULL || c->ready == NULL)
		return;
	pl_buf_str(out, " until grep -qF ");
	quoted(out, c->ready);
	pl_buf_printf(out, " %s.log; do sleep 0.1; done", c->name);
}

void pl_lab_step_text(const struct pl_lab_plan *p, const struct pl_lab_step *s, struct pl_buf *out)
{
	const struct pl_lab_link *l = &p->t->links[s->link];
	const struct pl_lab_end *e = &l->end[s->side];
	char ns[PL_LAB_NETNS_MAX], addr[PL_ADDR_TEXT_MAX], wire[IF_NAMESIZE];

	pl_lab_netns_name(p->t, s->node, ns);
	pl_format_addr(addr, &s->addr);
	switch (s->kind) {
	case PL_LAB_NETNS:
		pl_buf_printf(out, "ip netns add %s && ip -n %s link set dev lo up", ns, ns);
		break;
	case PL_LAB_SYSCTL:
		pl_buf_printf(out, "ip netns exec %s sysctl -qw %s=%s", ns, s->sysctl, s->value);
		break;
	case PL_LAB_VETH:
		veth_text(p, l, out);
		break;
	case PL_LAB_WIRE:
		wire_text(p, s, ns, out);
		break;
	case PL_LAB_OFFLOAD:
		offload_text(ns, e->interface, out);
		break;
	case PL_LAB_ADDRESS:
		pl_buf_printf(out, "ip -n %s address add %s/%u dev %s%s", ns, addr, s->bits,
			s->loopback ? "lo" : e->interface, pl_addr_is_v4(&s->addr) ? "" : " nodad");
		break;
	case PL_LAB_UP:
		pl_buf_printf(out, "ip -n %s link set dev %s up", ns, e->interface);
		break;
	case PL_LAB_NEIGHBOUR:
		pl_buf_printf(out, "ip -n %s neighbour replace %s lladdr ", ns, addr);
		add_mac(out, l->end[!s->side].mac);
		pl_buf_printf(out, " dev %s nud permanent", e->interface);
		break;
	case PL_LAB_ROUTE:
		route_text(p, s, ns, out);
		break;
	case PL_LAB_RATE:
		pl_buf_printf(out,
			"tc -n %s qdisc replace dev %s root tbf rate %llubit burst 3100 limit %llu",
			ns, e->interface, (unsigned long long)l->quality.rate_bps,
			(unsigned long long)l->quality.queue_bytes);
		break;
	case PL_LAB_MTU:
		pl_buf_printf(out, "ip -n %s link set dev %s mtu %u", ns, e->interface, s->bits);
		if (!l->quality.bare) {
			pl_lab_netns_name(p->t, p->t->n_nodes, ns);
			pl_lab_wire_name(s->link, s->side, wire);
			pl_buf_printf(
				out, " && ip -n %s link set dev %s mtu %u", ns, wire, s->bits);
		}
		break;
	case PL_LAB_FILE:
		pl_buf_printf(out, "cat > %s << 'END'\n%sEND", s->file, s->text);
		break;
	case PL_LAB_RUN:
		run_text(s, ns, out);
		break;
	}
}

void pl_lab_plan_text(const struct pl_lab_plan *p, struct pl_buf *out)
{
	for (size_t i = 0; i < p->n; i++) {
		pl_lab_step_text(p, &p->steps[i], out);
		pl_buf_chr(out, '\n');
	}
}
