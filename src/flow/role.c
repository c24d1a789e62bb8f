/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells client and server of a flow. */
#include "flow/role.h"

/* Ports below the first are for servers alone on common systems (RFC 6335 6: system ports); clients
 * get theirs from the second on (Linux; RFC 6335 says 49152). */
#define SYSTEM_PORTS 1024u
#define CLIENT_PORTS 32768u

void pl_flow_role_syn(struct pl_flow_entry *flow, unsigned int d, uint8_t tcp_flags)
{
	const uint8_t flags = tcp_flags & (PL_TCP_FIN | PL_TCP_SYN | PL_TCP_RST | PL_TCP_ACK);
	const bool answer = flags == (PL_TCP_SYN | PL_TCP_ACK);

	if ((flow->state & PL_FLOW_GIVEN) != 0 || flow->role_by == PL_FLOW_ROLE_BY_SYN)
		return;
	if (!answer && flags != PL_TCP_SYN)
		return;
	if (answer && flow->role_by == PL_FLOW_ROLE_BY_SYN_ACK)
		return;
	flow->role = (d == 0) != answer ? PL_FLOW_ROLE_CLIENT : PL_FLOW_ROLE_SERVER;
	flow->role_by = answer ? PL_FLOW_ROLE_BY_SYN_ACK : PL_FLOW_ROLE_BY_SYN;
}

/* Addresses in a tunnel may be those of other networks. */
static struct pl_flow_told by_listening(
	const struct pl_flow_entry *flow, const struct pl_flow_listening *set)
{
	const uint8_t role = set != NULL && (flow->place[0] & PL_OBS_TUNNEL) == 0
				     ? pl_flow_listening_role(set, flow)
				     : PL_FLOW_ROLE_UNKNOWN;

	return (struct pl_flow_told){ role, role != PL_FLOW_ROLE_UNKNOWN
						    ? PL_FLOW_ROLE_BY_LISTENING
						    : PL_FLOW_ROLE_BY_NOTHING };
}

void pl_flow_role_start(
	struct pl_flow_entry *flow, const struct pl_flow_listening *set, uint8_t tcp_flags)
{
	struct pl_flow_told told;

	/* A SYN, with or without ACK, is better evidence. */
	if (set == NULL || (tcp_flags & PL_TCP_SYN) != 0)
		return;
	told = by_listening(flow, set);
	flow->role = told.role;
	flow->role_by = told.by;
}

/* True when a is below the limit and b is not. */
static bool alone_below(uint16_t a, uint16_t b, uint32_t limit)
{
	return a < limit && b >= limit;
}

/* True when port a looks like a server's, and b like its client's. */
static bool serves(uint16_t a, uint16_t b)
{
	return alone_below(a, b, SYSTEM_PORTS) ||
	       (!alone_below(b, a, SYSTEM_PORTS) && alone_below(a, b, CLIENT_PORTS));
}

struct pl_flow_told pl_flow_role_of(
	const struct pl_flow_entry *flow, const struct pl_flow_listening *set)
{
	struct pl_flow_told told = { flow->role, flow->role_by };

	if ((flow->state & PL_FLOW_GIVEN) != 0 || told.by != PL_FLOW_ROLE_BY_NOTHING ||
		!pl_flow_has_ports(flow->proto))
		return told;
	told = by_listening(flow, set);
	if (told.by != PL_FLOW_ROLE_BY_NOTHING)
		return told;
	if (serves(flow->dport, flow->sport))
		told.role = PL_FLOW_ROLE_CLIENT;
	else if (serves(flow->sport, flow->dport))
		told.role = PL_FLOW_ROLE_SERVER;
	if (told.role != PL_FLOW_ROLE_UNKNOWN)
		told.by = PL_FLOW_ROLE_BY_PORTS;
	return told;
}
