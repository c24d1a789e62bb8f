/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code shared by the telemetry actions of tables (extern.h): arguments as NAME=VALUE, the node's
 * values, and counters and registers of the pipeline, so that the results of actions can be read by
 * name and streams continue when an entry is replaced:
 *
 *   counter   ACTION.OUTCOME, packets and bytes; made with the first entry that has the action
 *   register  ACTION.STREAM.XXXXXXXX of each stream of numbers: the receiver decides the last part;
 *             goes with the last entry that uses it
 */
#pragma once

#include "base/diag.h"
#include "dataplane/extern.h"
#include "dataplane/pipeline_state.h"
#include "dataplane/telemetry/datagram.h"
#include "dataplane/telemetry/telemetry.h"
#include "record/pack.h"

enum pl_dp_arg_type {
	PL_DP_ARG_NUMBER,   /* unsigned integer, at most max */
	PL_DP_ARG_FLAG,     /* bool, the name alone */
	PL_DP_ARG_CHOICE,   /* uint8_t or bool, the value of a choice */
	PL_DP_ARG_DURATION, /* uint64_t, ns */
	PL_DP_ARG_SIZE,     /* unsigned integer, bytes, at most max */
	PL_DP_ARG_ENDPOINT, /* struct pl_dp_endpoint, address with or without a port */
	PL_DP_ARG_MAC,      /* uint64_t */
	PL_DP_ARG_FIELDS,   /* struct pl_pack, names of fields separated by commas */
};

struct pl_dp_endpoint {
	struct pl_addr addr;
	uint16_t port;
};

struct pl_dp_choice {
	const char *name; /* NULL: the end */
	uint8_t value;
};

struct pl_dp_arg {
	const char *name;
	enum pl_dp_arg_type type;
	void *target; /* unchanged when the argument is not given */
	size_t bytes; /* of the target */
	uint64_t max;
	const struct pl_dp_choice *choices;
	bool given; /* set by pl_dp_args_read */
};

/* A row: the type, the name, the variable that gets the value, and .max or .choices. */
#define PL_DP_ARG(kind, text, variable, ...)                                                       \
	{                                                                                          \
		.name = text, .type = PL_DP_ARG_##kind, .target = &(variable),                     \
		.bytes = sizeof(variable), __VA_ARGS__                                             \
	}

/* Parses arguments. -EINVAL with diag, which names the action and the nearest argument. */
int pl_dp_args_read(const char *action, const char *text, struct pl_dp_arg *args, size_t n,
	struct pl_diag *diag);

/* ---- arguments that several actions have ---- */

#define PL_DP_NODE_ARGS   5
#define PL_DP_DOMAIN_ARGS 8
#define PL_DP_TO_ARGS     6

/* times=ns|us latency_unit=ns|us depth=bytes|packets|cells cell=80 util=100 */
size_t pl_dp_node_args(struct pl_dp_node *n, struct pl_dp_arg *rows);

/* The node's values for actions; the ports are the pipeline's at that time. */
struct pl_dp_act_node {
	struct pl_dp_node node;
	struct pl_dp_port_ids ports[PL_DP_PORTS_MAX + 1];
};
/* units: set by pl_dp_node_args; NULL: the defaults. */
void pl_dp_act_node_init(
	struct pl_dp_act_node *n, const struct pl_dp_pipeline *p, const struct pl_dp_node *units);

/* dscp=23 mask=63 port=33122 marker=0x… gre=0x88b5 class=0x0103 tcp=after|before accept=… */
size_t pl_dp_domain_args(struct pl_dp_int_domain *d, struct pl_dp_arg *rows);

/* to=ADDR[:PORT] from=ADDR[:PORT] out=PORT mac=MAC to_dscp=DSCP no_sum */
struct pl_dp_to_args {
	struct pl_dp_endpoint to, from;
	uint64_t mac;
	uint16_t out;
	uint8_t dscp;
	bool no_sum;
};
size_t pl_dp_to_args(struct pl_dp_to_args *a, struct pl_dp_arg *rows);
/* Fills in the datagram's headers. -EINVAL with diag: an address is missing, or the switch has no
 * such port. */
int pl_dp_to_of(const char *action, const struct pl_dp_to_args *a, const struct pl_dp_pipeline *p,
	struct pl_dp_datagram *ret, struct pl_diag *diag);

/* ---- counters and registers ---- */

/* Finds or creates the counter ACTION.WHAT. NULL with diag. */
uint64_t (*pl_dp_act_counter(
	struct pl_dp_pipeline *p, const char *action, const char *what, struct pl_diag *diag))[2];
/* Finds or creates a counter for each outcome. -EINVAL with diag. */
int pl_dp_act_outcomes(struct pl_dp_pipeline *p, const char *action,
	uint64_t (*ret[PL_DP_INT_MAX])[2], struct pl_diag *diag);
/* Finds or creates the register of a stream, once for each action that is being created; its step
 * owns a reference. NULL with diag. */
uint64_t *pl_dp_act_register(struct pl_dp_pipeline *p, const char *action, const char *what,
	const struct pl_dp_datagram *to, struct pl_diag *diag);

static inline void pl_dp_act_count(uint64_t (*cell)[2], const struct pl_dp_packet *pkt)
{
	(*cell)[0]++;
	(*cell)[1] += pkt->len;
}
