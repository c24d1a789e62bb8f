/* SPDX-License-Identifier: BSD-2-Clause */
/* Who of a flow listens, by sets; and what the flow cache makes of it: roles, and when they stay. */
#include "flow/listening.h"

#include "base/num.h"
#include "flow/test_packets.h"

#define CLIENT PL_FLOW_ROLE_CLIENT
#define SERVER PL_FLOW_ROLE_SERVER
#define NONE   PL_FLOW_ROLE_UNKNOWN

enum { TCP = 6, UDP = 17, SCTP = 132 };

static struct pl_addr addr(const char *text)
{
	struct pl_addr a;

	if (pl_parse_addr(text, &a) < 0)
		abort();
	return a;
}

static void listen_at(
	struct pl_flow_listening *set, uint8_t proto, const char *at, uint16_t port, bool v6only)
{
	const struct pl_addr a = addr(at);

	pl_flow_listening_socket(set, proto, &a, port, v6only);
}

static void local(struct pl_flow_listening *set, const char *at)
{
	const struct pl_addr a = addr(at);

	pl_flow_listening_local(set, &a);
}

/* A host with 192.0.2.1, 192.0.2.7 and 2001:db8::1. */
static struct pl_flow_listening *a_host(void)
{
	struct pl_flow_listening *set = NULL;

	if (pl_flow_listening_new(&set) < 0)
		abort();
	pl_flow_listening_clear(set);
	pl_flow_listening_clients(set, 32768, 60999);
	local(set, "192.0.2.7");
	local(set, "2001:db8::1");
	local(set, "192.0.2.1");
	listen_at(set, TCP, "0.0.0.0", 40000, false);
	listen_at(set, TCP, "::", 41000, false);
	listen_at(set, TCP, "::", 42000, true);
	listen_at(set, TCP, "192.0.2.7", 43000, false);
	listen_at(set, TCP, "2001:db8::1", 44000, true);
	listen_at(set, UDP, "0.0.0.0", 5000, false);
	listen_at(set, UDP, "0.0.0.0", 45000, false);
	listen_at(set, UDP, "192.0.2.1", 123, false);
	listen_at(set, UDP, "192.0.2.1", 61000, false);
	listen_at(set, SCTP, "0.0.0.0", 46000, false);
	pl_flow_listening_ready(set);
	return set;
}

static const struct situation {
	const char *what, *src, *dst;
	uint16_t sport, dport;
	uint8_t proto, role;
} situations[] = {
	{ "to a port that listens", "198.51.100.9", "192.0.2.1", 35000, 40000, TCP, CLIENT },
	{ "from one", "192.0.2.1", "198.51.100.9", 40000, 35000, TCP, SERVER },
	{ "at another address", "198.51.100.9", "192.0.2.7", 35000, 40000, TCP, CLIENT },
	{ "the peer has the port, and is another host", "192.0.2.1", "198.51.100.9", 35000, 40000,
		TCP, NONE },
	{ "neither is this host", "198.51.100.8", "198.51.100.9", 35000, 40000, TCP, NONE },
	{ "of this host to itself", "127.0.0.1", "127.0.0.1", 35000, 40000, TCP, CLIENT },
	{ "by an address of the loopback network", "127.0.0.1", "127.9.9.9", 35000, 40000, TCP,
		CLIENT },
	{ "both listen", "192.0.2.1", "192.0.2.7", 40000, 43000, TCP, NONE },
	{ "one address, the right one", "198.51.100.9", "192.0.2.7", 35000, 43000, TCP, CLIENT },
	{ "one address, another one", "198.51.100.9", "192.0.2.1", 35000, 43000, TCP, NONE },
	{ "IPv6 that takes IPv4", "198.51.100.9", "192.0.2.1", 35000, 41000, TCP, CLIENT },
	{ "IPv6 that takes IPv6", "2001:db8::9", "2001:db8::1", 35000, 41000, TCP, CLIENT },
	{ "IPv6 alone, by IPv4", "198.51.100.9", "192.0.2.1", 35000, 42000, TCP, NONE },
	{ "IPv6 alone, by IPv6", "2001:db8::9", "2001:db8::1", 35000, 42000, TCP, CLIENT },
	{ "IPv4 alone, by IPv6", "2001:db8::9", "2001:db8::1", 35000, 40000, TCP, NONE },
	{ "one address of IPv6", "2001:db8::1", "2001:db8::9", 44000, 35000, TCP, SERVER },
	{ "the port of the other protocol", "198.51.100.9", "192.0.2.1", 35000, 40000, UDP, NONE },
	{ "UDP", "198.51.100.9", "192.0.2.1", 1024, 5000, UDP, CLIENT },
	{ "UDP, a system port of the peer", "192.0.2.1", "198.51.100.9", 5000, 1023, UDP, NONE },
	{ "UDP, equal ports", "198.51.100.9", "192.0.2.1", 5000, 5000, UDP, NONE },
	{ "UDP, a port for clients", "198.51.100.9", "192.0.2.1", 2000, 45000, UDP, NONE },
	{ "UDP, above those for clients", "198.51.100.9", "192.0.2.1", 2000, 61000, UDP, CLIENT },
	{ "UDP, time asked of a peer", "192.0.2.1", "198.51.100.9", 123, 123, UDP, NONE },
	{ "UDP, time asked by a client", "198.51.100.9", "192.0.2.1", 2000, 123, UDP, CLIENT },
	{ "SCTP is not followed", "198.51.100.9", "192.0.2.1", 35000, 46000, SCTP, NONE },
	{ "no ports", "198.51.100.9", "192.0.2.1", 8, 40000, 1, NONE },
};

static void tells_who_listens(void)
{
	struct pl_flow_listening *set = a_host();

	for (size_t i = 0; i < sizeof(situations) / sizeof(situations[0]); i++) {
		const struct situation *s = &situations[i];
		const struct pl_flow_entry flow = { .src = addr(s->src),
			.dst = addr(s->dst),
			.sport = s->sport,
			.dport = s->dport,
			.proto = s->proto };

		eq(pl_flow_listening_role(set, &flow), s->role, "%s", s->what);
	}
	eq(pl_flow_listening_sockets(set), 8, "of UDP none at a port for clients, of SCTP none");
	eq(pl_flow_listening_left_out(set), 0);
	pl_flow_listening_free(set);
}

static void is_bounded(void)
{
	struct pl_flow_listening *set = a_host();
	struct pl_flow_entry flow = {
		.dst = addr("192.0.2.1"), .dport = 9, .sport = 9, .proto = TCP
	};

	pl_flow_listening_clear(set);
	eq(pl_flow_listening_sockets(set), 0);
	for (unsigned int i = 0; i < PL_FLOW_LISTENING_MAX + 3; i++) {
		struct pl_addr a = addr("203.0.113.0");

		a.b[14] = (uint8_t)(i >> 8);
		a.b[15] = (uint8_t)i;
		pl_flow_listening_socket(set, TCP, &a, 80, false);
		pl_flow_listening_local(set, &a);
	}
	listen_at(set, TCP, "0.0.0.0", 9, false);
	pl_flow_listening_ready(set);
	eq(pl_flow_listening_left_out(set), 6, "three sockets and three addresses");
	eq(pl_flow_listening_sockets(set), PL_FLOW_LISTENING_MAX + 1);
	eq(pl_flow_listening_role(set, &flow), NONE, "what was cleared is gone");
	flow.dst = addr("203.0.15.255");
	eq(pl_flow_listening_role(set, &flow), CLIENT, "the last that found room");
	pl_flow_listening_free(set);
}

/* ---- in the flow cache ---- */

/* From 192.0.2.1:40000, which listens, to a client. */
static struct pl_pkt96 from_server(uint64_t ts_ns, bool back, uint8_t flags)
{
	struct pl_pkt96 p = packet(ts_ns, back, 0, TCP);

	p.sport = back ? 35000 : 40000;
	p.dport = back ? 40000 : 35000;
	p.tcp_flags = flags;
	return p;
}

/* What a record says of a flow whose packets have these flags, and what listens as it begins and when its
 * record is made. */
static const struct told {
	const char *what;
	uint8_t flags[3]; /* the second is the client's; 0: none */
	bool tunnel, at_first, at_last;
	uint8_t role, by;
} told[] = {
	{ "in the midst", { ACK }, false, true, true, SERVER, PL_FLOW_ROLE_BY_LISTENING },
	{ "the server ends with it", { ACK }, false, true, false, SERVER,
		PL_FLOW_ROLE_BY_LISTENING },
	{ "found out later", { ACK }, false, false, true, SERVER, PL_FLOW_ROLE_BY_LISTENING },
	{ "never", { ACK }, false, false, false, NONE, PL_FLOW_ROLE_BY_NOTHING },
	{ "a SYN is better", { ACK, SYN }, false, true, true, SERVER, PL_FLOW_ROLE_BY_SYN },
	{ "also against it", { SYN }, false, true, true, CLIENT, PL_FLOW_ROLE_BY_SYN },
	{ "a SYN-ACK is better", { ACK, ACK, SACK }, false, true, true, SERVER,
		PL_FLOW_ROLE_BY_SYN_ACK },
	{ "flags that tell nothing", { SYN | FIN }, false, true, true, SERVER,
		PL_FLOW_ROLE_BY_LISTENING },
	{ "in a tunnel", { ACK }, true, true, true, NONE, PL_FLOW_ROLE_BY_NOTHING },
};

static void is_asked(void)
{
	const struct pl_flow_config config = PL_FLOW_CONFIG;
	struct pl_flow_listening *set = a_host();

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		struct kept kept;
		struct pl_flow_cache *cache = new_cache(&config, &kept);

		pl_flow_cache_set_listening(cache, told[i].at_first ? set : NULL);
		for (unsigned int k = 0; k < 3 && told[i].flags[k] != 0; k++) {
			struct pl_pkt96 p = from_server(EPOCH + k, k == 1, told[i].flags[k]);

			p.obs |= told[i].tunnel ? PL_OBS_TUNNEL : 0;
			pl_flow_cache_feed(cache, &p, 1);
		}
		pl_flow_cache_set_listening(cache, told[i].at_last ? set : NULL);
		pl_flow_cache_finish(cache);
		ok(kept.n == 1 && kept.records[0].role == told[i].role &&
				kept.records[0].role_by == told[i].by,
			"%s: %s by %s", told[i].what,
			pl_form_word(PL_FORM_FLOW_ROLE, kept.records[0].role),
			pl_form_word(PL_FORM_FLOW_ROLE_BY, kept.records[0].role_by));
		pl_flow_cache_free(cache);
		free(kept.records);
	}
	pl_flow_listening_free(set);
}

/* All records say what the first one said: also "unknown", and whatever comes later. */
static void stays(bool known)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct pl_flow_listening *set = a_host();
	struct kept kept;
	struct pl_flow_cache *cache;

	config.active_ns = SECOND;
	cache = new_cache(&config, &kept);
	pl_flow_cache_set_listening(cache, known ? set : NULL);
	for (unsigned int i = 0; i < 4; i++) {
		const struct pl_pkt96 p =
			from_server(EPOCH + i * SECOND, i % 2 != 0, i == 3 ? SYN : ACK);

		pl_flow_cache_feed(cache, &p, 1);
		if (i > 0)
			pl_flow_cache_set_listening(cache, known ? NULL : set);
	}
	pl_flow_cache_finish(cache);
	eq(kept.n, 4);
	for (unsigned int i = 0; i < kept.n; i++) {
		eq(kept.records[i].role, known ? SERVER : NONE, "record %u", i);
		eq(kept.records[i].role_by,
			known ? PL_FLOW_ROLE_BY_LISTENING : PL_FLOW_ROLE_BY_NOTHING);
	}
	pl_flow_cache_free(cache);
	free(kept.records);
	pl_flow_listening_free(set);
}

int main(void)
{
	tells_who_listens();
	is_bounded();
	is_asked();
	stays(true);
	stays(false);
	return pl_test_done();
}
