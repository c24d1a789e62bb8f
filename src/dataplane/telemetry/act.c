/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses arguments of telemetry actions, and finds their counters and registers. */
#include "dataplane/telemetry/act.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"

#define TEXT_MAX 512

/* ---- arguments ---- */

static int refuse(const char *action, const struct pl_dp_arg *arg, const char *value,
	const char *want, struct pl_diag *diag)
{
	pl_diag_set(diag, "action %s: %s=%s: %s", action, arg->name, value, want);
	return -EINVAL;
}

static void store(const struct pl_dp_arg *arg, uint64_t value)
{
	switch (arg->bytes) {
	case 1:
		*(uint8_t *)arg->target = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)arg->target = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)arg->target = (uint32_t)value;
		break;
	default:
		*(uint64_t *)arg->target = value;
		break;
	}
}

static int read_choice(
	const char *action, const struct pl_dp_arg *arg, const char *value, struct pl_diag *diag)
{
	char all[160] = "";

	for (const struct pl_dp_choice *c = arg->choices; c->name != NULL; c++) {
		if (strcmp(c->name, value) == 0) {
			store(arg, c->value);
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			c > arg->choices ? ", " : "", c->name);
	}
	pl_diag_set(diag, "action %s: %s is one of %s, not \"%s\"", action, arg->name, all, value);
	return -EINVAL;
}

static int read_fields(
	const char *action, const struct pl_dp_arg *arg, const char *value, struct pl_diag *diag)
{
	const char *names[PL_PACK_FIELDS_MAX];
	char copy[TEXT_MAX], *save = NULL;
	struct pl_diag inner = { 0 };
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", value);
	for (char *w = strtok_r(copy, ",", &save); w != NULL; w = strtok_r(NULL, ",", &save)) {
		if (n == PL_PACK_FIELDS_MAX)
			return refuse(action, arg, value, "too many fields", diag);
		names[n++] = w;
	}
	if (pl_pack_init(arg->target, PL_KIND_HOP, names, n, &inner) < 0)
		return refuse(action, arg, value, inner.text, diag);
	return 0;
}

static int read_endpoint(const char *value, struct pl_dp_endpoint *ret)
{
	ret->port = 0;
	if (pl_parse_addr(value, &ret->addr) == 0)
		return 0;
	return pl_parse_endpoint(value, &ret->addr, &ret->port);
}

static int read_value(
	const char *action, const struct pl_dp_arg *arg, const char *value, struct pl_diag *diag)
{
	uint64_t n;

	switch (arg->type) {
	case PL_DP_ARG_NUMBER:
		if (pl_parse_u64(value, &n) < 0 || n > arg->max) {
			pl_diag_set(diag, "action %s: %s is a number up to %" PRIu64 ", not \"%s\"",
				action, arg->name, arg->max, value);
			return -EINVAL;
		}
		store(arg, n);
		return 0;
	case PL_DP_ARG_CHOICE:
		return read_choice(action, arg, value, diag);
	case PL_DP_ARG_DURATION:
		if (pl_parse_duration(value, arg->target) < 0)
			return refuse(
				action, arg, value, "a duration such as 250us is needed", diag);
		return 0;
	case PL_DP_ARG_SIZE:
		if (pl_parse_size(value, &n) < 0 || n > arg->max)
			return refuse(action, arg, value, "bytes such as 64KiB are needed", diag);
		store(arg, n);
		return 0;
	case PL_DP_ARG_ENDPOINT:
		if (read_endpoint(value, arg->target) < 0)
			return refuse(action, arg, value,
				"an address is needed, with or without :PORT", diag);
		return 0;
	case PL_DP_ARG_MAC:
		if (pl_dp_mac_parse(value, arg->target) < 0)
			return refuse(action, arg, value,
				"a MAC address such as 02:00:00:00:00:01 is needed", diag);
		return 0;
	case PL_DP_ARG_FIELDS:
		return read_fields(action, arg, value, diag);
	case PL_DP_ARG_FLAG:
		break;
	}
	return refuse(action, arg, value, "this argument has no value", diag);
}

static int read_word(
	const char *action, char *word, struct pl_dp_arg *args, size_t n, struct pl_diag *diag)
{
	char *value = strchr(word, '=');
	const char *all[64];
	size_t i = 0;

	if (value != NULL)
		*value++ = '\0';
	for (; i < n && strcmp(args[i].name, word) != 0; i++)
		all[i < 64 ? i : 63] = args[i].name;
	if (i == n) {
		pl_diag_set(diag, "action %s has no argument \"%s\"", action, word);
		pl_diag_nearest(diag, '"', word, all, n < 64 ? n : 64);
		return -EINVAL;
	}
	if (args[i].given) {
		pl_diag_set(diag, "action %s: %s stands there twice", action, word);
		return -EINVAL;
	}
	args[i].given = true;
	if (args[i].type == PL_DP_ARG_FLAG && value == NULL) {
		*(bool *)args[i].target = true;
		return 0;
	}
	if (value == NULL) {
		pl_diag_set(diag, "action %s: %s needs a value: %s=…", action, word, word);
		return -EINVAL;
	}
	return read_value(action, &args[i], value, diag);
}

int pl_dp_args_read(const char *action, const char *text, struct pl_dp_arg *args, size_t n,
	struct pl_diag *diag)
{
	char copy[TEXT_MAX], *save = NULL;

	if (strlen(text) >= sizeof(copy)) {
		pl_diag_set(diag, "action %s: its arguments are too long", action);
		return -EINVAL;
	}
	memcpy(copy, text, strlen(text) + 1);
	for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
		int r = read_word(action, w, args, n, diag);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- arguments that several actions have ---- */

size_t pl_dp_node_args(struct pl_dp_node *n, struct pl_dp_arg *rows)
{
	static const struct pl_dp_choice units[] = { { "ns", false }, { "us", true }, { NULL, 0 } };
	static const struct pl_dp_choice depths[] = { { "bytes", PL_DP_IN_BYTES },
		{ "packets", PL_DP_IN_PACKETS }, { "cells", PL_DP_IN_CELLS }, { NULL, 0 } };
	const struct pl_dp_arg mine[PL_DP_NODE_ARGS] = {
		PL_DP_ARG(CHOICE, "times", n->us, .choices = units),
		PL_DP_ARG(CHOICE, "latency_unit", n->latency_us, .choices = units),
		PL_DP_ARG(CHOICE, "depth", n->occupancy, .choices = depths),
		PL_DP_ARG(NUMBER, "cell", n->cell_bytes, .max = UINT16_MAX),
		PL_DP_ARG(NUMBER, "util", n->util_full, .max = UINT32_MAX),
	};

	*n = (struct pl_dp_node){ 0 };
	memcpy(rows, mine, sizeof(mine));
	return PL_DP_NODE_ARGS;
}

void pl_dp_act_node_init(
	struct pl_dp_act_node *n, const struct pl_dp_pipeline *p, const struct pl_dp_node *units)
{
	*n = (struct pl_dp_act_node){ 0 };
	for (unsigned int i = 0; i <= PL_DP_PORTS_MAX; i++) {
		const uint32_t mtu = p->gates[i].mtu;

		n->ports[i].level1 = (uint16_t)i;
		n->ports[i].level2 = i;
		n->ports[i].mtu = (uint16_t)(mtu < UINT16_MAX ? mtu : UINT16_MAX);
	}
	if (units != NULL)
		n->node = *units;
	n->node.id = p->node_id;
	n->node.id_wide = p->node_id;
	n->node.ports = n->ports;
	n->node.n_ports = PL_DP_PORTS_MAX + 1;
}

size_t pl_dp_domain_args(struct pl_dp_int_domain *d, struct pl_dp_arg *rows)
{
	enum { ANY = PL_DP_BY_DSCP | PL_DP_BY_PORT | PL_DP_BY_MARKER | PL_DP_BY_TUNNEL };
	static const struct pl_dp_choice places[] = { { "after", false }, { "before", true },
		{ NULL, 0 } };
	static const struct pl_dp_choice ways[] = { { "dscp", PL_DP_BY_DSCP },
		{ "port", PL_DP_BY_PORT }, { "marker", PL_DP_BY_MARKER },
		{ "tunnel", PL_DP_BY_TUNNEL }, { "any", ANY }, { NULL, 0 } };
	const struct pl_dp_arg mine[PL_DP_DOMAIN_ARGS] = {
		PL_DP_ARG(NUMBER, "dscp", d->dscp, .max = 63),
		PL_DP_ARG(NUMBER, "mask", d->dscp_mask, .max = 63),
		PL_DP_ARG(NUMBER, "port", d->port, .max = UINT16_MAX),
		PL_DP_ARG(NUMBER, "marker", d->marker, .max = UINT64_MAX),
		PL_DP_ARG(NUMBER, "gre", d->gre_ethertype, .max = UINT16_MAX),
		PL_DP_ARG(NUMBER, "class", d->geneve_class, .max = UINT16_MAX),
		PL_DP_ARG(CHOICE, "tcp", d->tcp_before_options, .choices = places),
		PL_DP_ARG(CHOICE, "accept", d->by, .choices = ways),
	};

	*d = (struct pl_dp_int_domain){ .dscp = 0x17, .dscp_mask = 0x3f, .by = ANY };
	memcpy(rows, mine, sizeof(mine));
	return PL_DP_DOMAIN_ARGS;
}

size_t pl_dp_to_args(struct pl_dp_to_args *a, struct pl_dp_arg *rows)
{
	const struct pl_dp_arg mine[PL_DP_TO_ARGS] = {
		PL_DP_ARG(ENDPOINT, "to", a->to),
		PL_DP_ARG(ENDPOINT, "from", a->from),
		PL_DP_ARG(NUMBER, "out", a->out, .max = PL_DP_PORTS_MAX),
		PL_DP_ARG(MAC, "mac", a->mac),
		PL_DP_ARG(NUMBER, "to_dscp", a->dscp, .max = 63),
		PL_DP_ARG(FLAG, "no_sum", a->no_sum),
	};

	*a = (struct pl_dp_to_args){ 0 };
	memcpy(rows, mine, sizeof(mine));
	return PL_DP_TO_ARGS;
}

int pl_dp_to_of(const char *action, const struct pl_dp_to_args *a, const struct pl_dp_pipeline *p,
	struct pl_dp_datagram *ret, struct pl_diag *diag)
{
	const struct pl_dp_gate *gate = &p->gates[a->out];
	struct pl_diag inner = { 0 };

	if (!gate->there) {
		pl_diag_set(
			diag, "action %s: out=PORT is needed, with a port of this switch", action);
		return -EINVAL;
	}
	*ret = (struct pl_dp_datagram){
		.src = a->from.addr,
		.dst = a->to.addr,
		.sport = a->from.port,
		.dport = a->to.port,
		.dscp = a->dscp,
		.no_sum = a->no_sum,
	};
	pl_dp_mac_set(ret->smac, gate->mac);
	pl_dp_mac_set(ret->dmac, a->mac != 0 ? a->mac : UINT64_C(0xffffffffffff));
	if (pl_dp_datagram_check(ret, &inner) < 0) {
		pl_diag_set(diag, "action %s: to=ADDRESS and from=ADDRESS: %s", action, inner.text);
		return -EINVAL;
	}
	return 0;
}

/* ---- counters and registers ---- */

static struct pl_dp_cells_state *cells_of(
	struct pl_dp_pipeline *p, enum pl_dp_cells kind, const char *name, struct pl_diag *diag)
{
	struct pl_dp_cells_state *c = pl_dp_cells_find(p, kind, name, strlen(name));

	if (c != NULL)
		return c;
	/* Registers have two cells: PSN and slot for RDMA. */
	if ((kind == PL_DP_COUNTERS ? pl_dp_pipeline_counter(p, name, 1, diag)
				    : pl_dp_pipeline_register(p, name, 2, diag)) < 0)
		return NULL;
	c = pl_dp_cells_find(p, kind, name, strlen(name));
	c->of_action = kind == PL_DP_REGISTERS;
	return c;
}

uint64_t (*pl_dp_act_counter(
	struct pl_dp_pipeline *p, const char *action, const char *what, struct pl_diag *diag))[2]
{
	char name[PL_DP_NAME_MAX + 1];
	struct pl_dp_cells_state *c;

	snprintf(name, sizeof(name), "%s.%s", action, what);
	c = cells_of(p, PL_DP_COUNTERS, name, diag);
	return c == NULL ? NULL : c->counters;
}

int pl_dp_act_outcomes(struct pl_dp_pipeline *p, const char *action,
	uint64_t (*ret[PL_DP_INT_MAX])[2], struct pl_diag *diag)
{
	for (int i = 0; i < PL_DP_INT_MAX; i++) {
		ret[i] = pl_dp_act_counter(
			p, action, pl_dp_int_outcome_name((enum pl_dp_int_outcome)i), diag);
		if (ret[i] == NULL)
			return -EINVAL;
	}
	return 0;
}

uint64_t *pl_dp_act_register(struct pl_dp_pipeline *p, const char *action, const char *what,
	const struct pl_dp_datagram *to, struct pl_diag *diag)
{
	const struct {
		struct pl_addr src, dst;
		uint32_t dport;
	} key = { to->src, to->dst, to->dport };
	char name[PL_DP_NAME_MAX + 1];
	struct pl_dp_cells_state *c;

	snprintf(name, sizeof(name), "%.14s.%.6s.%08" PRIx32, action, what,
		(uint32_t)pl_hash(&key, sizeof(key), 0));
	c = cells_of(p, PL_DP_REGISTERS, name, diag);
	if (c == NULL)
		return NULL;
	p->shared = c;
	return c->registers;
}
