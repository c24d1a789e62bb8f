/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the side of a flow that listens. */
#include "flow/listening.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORDS        (65536 / 64)
#define SYSTEM_PORTS 1024u

enum { TCP, UDP, PROTOS };
enum { V4, V6, FAMILIES };

struct socket {
	struct pl_addr addr;
	uint16_t port;
	uint8_t proto; /* TCP, UDP */
};

/* Bits of ports come first: most flows are answered by two of them. */
struct pl_flow_listening {
	uint64_t any[PROTOS][FAMILIES][WORDS]; /* ports with a socket at every address */
	uint64_t some[PROTOS][WORDS];          /* ports with a socket at one address (in sockets) */
	uint16_t clients_from, clients_to;
	uint32_t n_sockets, n_locals, n_any, left_out;
	struct socket sockets[PL_FLOW_LISTENING_MAX];
	struct pl_addr locals[PL_FLOW_LISTENING_MAX];
};

int pl_flow_listening_new(struct pl_flow_listening **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret != NULL ? 0 : -ENOMEM;
}

void pl_flow_listening_free(struct pl_flow_listening *set)
{
	free(set);
}

/* ---- filling ---- */

void pl_flow_listening_clear(struct pl_flow_listening *set)
{
	memset(set->any, 0, sizeof(set->any));
	memset(set->some, 0, sizeof(set->some));
	set->n_sockets = set->n_locals = set->n_any = set->left_out = 0;
}

void pl_flow_listening_clients(struct pl_flow_listening *set, uint16_t from, uint16_t to)
{
	set->clients_from = from;
	set->clients_to = to;
}

void pl_flow_listening_local(struct pl_flow_listening *set, const struct pl_addr *addr)
{
	if (set->n_locals == PL_FLOW_LISTENING_MAX)
		set->left_out++;
	else
		set->locals[set->n_locals++] = *addr;
}

static void set_bit(uint64_t *words, uint16_t port)
{
	words[port / 64] |= UINT64_C(1) << port % 64;
}

static bool has_bit(const uint64_t *words, uint16_t port)
{
	return (words[port / 64] >> port % 64 & 1) != 0;
}

/* The unspecified address of IPv4 is ::ffff:0.0.0.0 here. */
static bool is_any(const struct pl_addr *addr)
{
	const struct pl_addr v4 = pl_addr_v4(&(uint32_t){ 0 });

	return pl_addr_is_unspecified(addr) || pl_addr_equal(addr, &v4);
}

/* Index of the protocol; PROTOS for one that is not followed. */
static unsigned int proto_of(uint8_t proto)
{
	return proto == PL_PROTO_TCP ? TCP : proto == PL_PROTO_UDP ? UDP : PROTOS;
}

void pl_flow_listening_socket(struct pl_flow_listening *set, uint8_t proto,
	const struct pl_addr *addr, uint16_t port, bool v6only)
{
	const unsigned int p = proto_of(proto);

	if (p == PROTOS || (p == UDP && port >= set->clients_from && port <= set->clients_to))
		return;
	if (is_any(addr)) {
		const bool v4 = pl_addr_is_v4(addr);

		if (v4 || !v6only)
			set_bit(set->any[p][V4], port);
		if (!v4)
			set_bit(set->any[p][V6], port);
		set->n_any++;
	} else if (set->n_sockets == PL_FLOW_LISTENING_MAX) {
		set->left_out++;
	} else {
		set_bit(set->some[p], port);
		set->sockets[set->n_sockets++] =
			(struct socket){ .addr = *addr, .port = port, .proto = (uint8_t)p };
	}
}

static int compare_sockets(const void *a, const void *b)
{
	const struct socket *x = a, *y = b;
	const int order = memcmp(&x->addr, &y->addr, sizeof(x->addr));

	if (order != 0)
		return order;
	return x->port != y->port ? x->port - y->port : x->proto - y->proto;
}

static int compare_addrs(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct pl_addr));
}

void pl_flow_listening_ready(struct pl_flow_listening *set)
{
	qsort(set->sockets, set->n_sockets, sizeof(set->sockets[0]), compare_sockets);
	qsort(set->locals, set->n_locals, sizeof(set->locals[0]), compare_addrs);
}

uint32_t pl_flow_listening_sockets(const struct pl_flow_listening *set)
{
	return set->n_sockets + set->n_any;
}

uint32_t pl_flow_listening_left_out(const struct pl_flow_listening *set)
{
	return set->left_out;
}

/* ---- asking ---- */

static bool is_local(const struct pl_flow_listening *set, const struct pl_addr *addr)
{
	return (pl_addr_is_v4(addr) && addr->b[12] == 127) ||
	       bsearch(addr, set->locals, set->n_locals, sizeof(set->locals[0]), compare_addrs) !=
		       NULL;
}

static bool listens(const struct pl_flow_listening *set, unsigned int p, const struct pl_addr *addr,
	uint16_t port)
{
	const struct socket one = { .addr = *addr, .port = port, .proto = (uint8_t)p };

	if (has_bit(set->any[p][pl_addr_is_v4(addr) ? V4 : V6], port) && is_local(set, addr))
		return true;
	return has_bit(set->some[p], port) &&
	       bsearch(&one, set->sockets, set->n_sockets, sizeof(one), compare_sockets) != NULL;
}

/* True when a socket at `port`, whose peer has port `other`, can be a server's. */
static bool may_serve(unsigned int p, uint16_t port, uint16_t other)
{
	return p != UDP || (other >= SYSTEM_PORTS && other != port);
}

uint8_t pl_flow_listening_role(const struct pl_flow_listening *set, const struct pl_flow_entry *f)
{
	const unsigned int p = proto_of(f->proto);
	bool src, dst;

	if (p == PROTOS)
		return PL_FLOW_ROLE_UNKNOWN;
	src = may_serve(p, f->sport, f->dport) && listens(set, p, &f->src, f->sport);
	dst = may_serve(p, f->dport, f->sport) && listens(set, p, &f->dst, f->dport);
	if (src == dst)
		return PL_FLOW_ROLE_UNKNOWN;
	return src ? PL_FLOW_ROLE_SERVER : PL_FLOW_ROLE_CLIENT;
}
