/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests and benchmarks: a leaf-spine network in a simulation. */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "dataplane/sim_switch.h"

#define PL_DP_FABRIC_MAX 64 /* most leaves, spines, and hosts of a leaf */

/*
 * Leaves, each linked to all spines, with hosts:
 *
 *   leaf i (from 1)    id 100 + i; port h to its host h, port hosts + j to spine j, and when there is
 *                      a collector, port hosts + spines + 1 to it
 *   spine j            id 200 + j; port i to leaf i
 *   host h of leaf i   10.0.i.h/16, MAC 02:00:00:00:i:h
 *   collector          10.1.0.1, MAC 02:00:00:01:00:01, port i to leaf i
 *
 * Flows are spread over spines by their hash, the same in both directions; packets from spines to
 * the collector go by leaf 1.
 */
struct pl_dp_fabric_cfg {
	unsigned int leaves, spines, hosts;
	struct pl_dp_port_cfg host_ports, leaf_ports, spine_ports;
	struct pl_dp_link_cfg link;
	bool collector;
	/* Tables beside the routes, as YAML items of `tables`, indented by two; NULL: none. In the
	 * text "@i" is replaced by the number of the leaf or spine, "@h" by the number of hosts of
	 * a leaf. */
	const char *leaf_tables, *spine_tables;
	/* Receive callbacks of hosts, and of the collector. */
	void (*receive)(void *arg, const struct pl_dp_packet *pkt);
	void (*collect)(void *arg, const struct pl_dp_packet *pkt);
	void *arg;
};

struct pl_dp_fabric {
	struct pl_dp_fabric_cfg cfg;
	struct pl_dp_sim_switch *leaf[PL_DP_FABRIC_MAX], *spine[PL_DP_FABRIC_MAX];
	unsigned int host[PL_DP_FABRIC_MAX][PL_DP_FABRIC_MAX]; /* nodes by [leaf][host], from 0 */
	unsigned int collector;
	/* Links from leaf to spine; the next number is the reverse direction. */
	unsigned int up[PL_DP_FABRIC_MAX][PL_DP_FABRIC_MAX];
	/* Links from host to leaf; the next number is the reverse direction. */
	unsigned int access[PL_DP_FABRIC_MAX][PL_DP_FABRIC_MAX];
};

/* Numbers are from 1. */
static struct pl_addr pl_dp_fabric_addr(unsigned int leaf, unsigned int host)
{
	const uint8_t b[4] = { 10, 0, (uint8_t)leaf, (uint8_t)host };

	return pl_addr_v4(b);
}

static void pl_dp_fabric_mac(uint8_t ret[6], unsigned int leaf, unsigned int host)
{
	ret[0] = 2;
	ret[1] = ret[2] = ret[3] = 0;
	ret[4] = (uint8_t)leaf;
	ret[5] = (uint8_t)host;
}

static void put_ports(struct pl_buf *b, unsigned int n)
{
	pl_buf_str(b, "ports:\n");
	/* The URI is required, but a simulation has no interfaces. */
	for (unsigned int i = 1; i <= n; i++)
		pl_buf_printf(b, "  - { number: %u, uri: \"packet:sim%u\", mtu: 9000 }\n", i, i);
}

/* Writes the caller's tables, with numbers in place of @i and @h. */
static void put_tables(struct pl_buf *b, const char *tables, unsigned int i, unsigned int hosts)
{
	for (const char *c = tables; c != NULL && *c != '\0'; c++) {
		if (c[0] == '@' && (c[1] == 'i' || c[1] == 'h'))
			pl_buf_printf(b, "%u", *++c == 'i' ? i : hosts);
		else
			pl_buf_chr(b, *c);
	}
}

static void put_leaf(struct pl_buf *b, const struct pl_dp_fabric_cfg *c, unsigned int i)
{
	pl_buf_printf(b, "name: leaf%u\nid: %u\n", i, 100 + i);
	put_ports(b, c->hosts + c->spines + c->collector);
	pl_buf_str(b, "groups:\n  - name: up\n    members: [");
	for (unsigned int j = 1; j <= c->spines; j++)
		pl_buf_printf(b, "%s forward %u", j > 1 ? "," : "", c->hosts + j);
	pl_buf_str(b, " ]\ntables:\n  - name: routes\n    key: [ ip.dst prefix ]\n"
		      "    entries:\n");
	for (unsigned int h = 1; h <= c->hosts; h++)
		pl_buf_printf(b, "      - ip.dst=10.0.%u.%u/32 -> forward %u\n", i, h, h);
	pl_buf_str(b, "      - ip.dst=10.0.0.0/16 -> select up\n");
	if (c->collector)
		pl_buf_printf(
			b, "      - ip.dst=10.1.0.1/32 -> forward %u\n", c->hosts + c->spines + 1);
	put_tables(b, c->leaf_tables, i, c->hosts);
}

static void put_spine(struct pl_buf *b, const struct pl_dp_fabric_cfg *c, unsigned int j)
{
	pl_buf_printf(b, "name: spine%u\nid: %u\n", j, 200 + j);
	put_ports(b, c->leaves);
	pl_buf_str(b, "tables:\n  - name: routes\n    key: [ ip.dst prefix ]\n    entries:\n");
	for (unsigned int i = 1; i <= c->leaves; i++)
		pl_buf_printf(b, "      - ip.dst=10.0.%u.0/24 -> forward %u\n", i, i);
	if (c->collector)
		pl_buf_str(b, "      - ip.dst=10.1.0.1/32 -> forward 1\n");
	put_tables(b, c->spine_tables, j, c->hosts);
}

static int add_switch(struct pl_dp_fabric *f, struct pl_dp_sim *sim, bool leaf, unsigned int i,
	struct pl_diag *diag)
{
	struct pl_dp_program program;
	struct pl_buf text;
	int r;

	pl_buf_init(&text);
	if (leaf)
		put_leaf(&text, &f->cfg, i);
	else
		put_spine(&text, &f->cfg, i);
	if (text.failed) {
		pl_buf_done(&text);
		return -ENOMEM;
	}
	r = pl_dp_program_parse(&program, leaf ? "leaf" : "spine", text.data, text.len, diag);
	if (r == 0) {
		r = pl_dp_sim_switch_new(leaf ? &f->leaf[i - 1] : &f->spine[i - 1], sim, &program,
			leaf ? &f->cfg.leaf_ports : &f->cfg.spine_ports, NULL, diag);
		pl_dp_program_done(&program);
	}
	pl_buf_done(&text);
	return r;
}

static int add_hosts(struct pl_dp_fabric *f, struct pl_dp_sim *sim, struct pl_diag *diag)
{
	const struct pl_dp_fabric_cfg *c = &f->cfg;
	struct pl_dp_sim_node_cfg node = { .host = true,
		.ops = { .receive = c->receive, .arg = c->arg } };
	int r = 0;

	for (unsigned int i = 0; i < c->leaves; i++) {
		unsigned int leaf = pl_dp_sim_switch_node(f->leaf[i]);

		for (unsigned int h = 0; r == 0 && h < c->hosts; h++) {
			node.id = (i + 1) * 1000 + h + 1;
			r = pl_dp_sim_node(sim, &node, &f->host[i][h]);
			if (r == 0)
				r = pl_dp_sim_port(sim, f->host[i][h], 1, &c->host_ports, diag);
			if (r == 0)
				r = pl_dp_sim_link(sim, f->host[i][h], 1, leaf, h + 1, &c->link,
					&f->access[i][h], diag);
		}
	}
	return r;
}

static int add_collector(struct pl_dp_fabric *f, struct pl_dp_sim *sim, struct pl_diag *diag)
{
	const struct pl_dp_fabric_cfg *c = &f->cfg;
	const struct pl_dp_sim_node_cfg node = {
		.id = 1, .host = true, .ops = { .receive = c->collect, .arg = c->arg }
	};
	unsigned int link;
	int r = pl_dp_sim_node(sim, &node, &f->collector);

	for (unsigned int i = 0; r == 0 && i < c->leaves; i++) {
		r = pl_dp_sim_port(sim, f->collector, i + 1, &c->host_ports, diag);
		if (r == 0)
			r = pl_dp_sim_link(sim, f->collector, i + 1,
				pl_dp_sim_switch_node(f->leaf[i]), c->hosts + c->spines + 1,
				&(struct pl_dp_link_cfg){ .delay_ns = 1000 }, &link, diag);
	}
	return r;
}

/* Builds the network. -EINVAL with diag, -ENOMEM; call pl_dp_fabric_done in any case. */
static int pl_dp_fabric_init(struct pl_dp_fabric *f, struct pl_dp_sim *sim,
	const struct pl_dp_fabric_cfg *cfg, struct pl_diag *diag)
{
	int r = 0;

	memset(f, 0, sizeof(*f));
	if (cfg->leaves > PL_DP_FABRIC_MAX || cfg->spines > PL_DP_FABRIC_MAX ||
		cfg->hosts > PL_DP_FABRIC_MAX || cfg->leaves == 0 || cfg->spines == 0) {
		pl_diag_set(diag,
			"a leaf-spine network has 1 to %u leaves and spines, and at most "
			"%u hosts of a leaf",
			PL_DP_FABRIC_MAX, PL_DP_FABRIC_MAX);
		return -EINVAL;
	}
	f->cfg = *cfg;
	for (unsigned int i = 1; r == 0 && i <= cfg->leaves; i++)
		r = add_switch(f, sim, true, i, diag);
	for (unsigned int j = 1; r == 0 && j <= cfg->spines; j++)
		r = add_switch(f, sim, false, j, diag);
	if (r == 0)
		r = add_hosts(f, sim, diag);
	for (unsigned int i = 0; r == 0 && i < cfg->leaves; i++) {
		for (unsigned int j = 0; r == 0 && j < cfg->spines; j++)
			r = pl_dp_sim_link(sim, pl_dp_sim_switch_node(f->leaf[i]),
				cfg->hosts + j + 1, pl_dp_sim_switch_node(f->spine[j]), i + 1,
				&cfg->link, &f->up[i][j], diag);
	}
	if (r == 0 && cfg->collector)
		r = add_collector(f, sim, diag);
	return r;
}

static void pl_dp_fabric_done(struct pl_dp_fabric *f)
{
	for (unsigned int i = 0; i < PL_DP_FABRIC_MAX; i++) {
		pl_dp_sim_switch_free(f->leaf[i]);
		pl_dp_sim_switch_free(f->spine[i]);
	}
}
