/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes on the loopback interface, by times that the test says. */
#include "hostmark/probe.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "tap/rules.h"

#define S     UINT64_C(1000000000)
#define BEGIN (UINT64_C(1700000000) * S)

static int receiver = -1;

/* Numbers of the probes that came, in their order; UINT64_MAX: there is none. */
static uint64_t take(uint16_t *ret_port)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	uint8_t payload[64];
	uint64_t number = 0;
	const ssize_t n = recvfrom(
		receiver, payload, sizeof(payload), MSG_DONTWAIT, (struct sockaddr *)&from, &len);

	if (n != PL_PROBE_BYTES)
		return UINT64_MAX;
	*ret_port = from.sin_port;
	for (int i = 0; i < 8; i++)
		number = number << 8 | payload[i];
	return number;
}

static void resolving(void)
{
	static const char *const texts[] = { "127.0.0.1", "127.0.0.1:9", "localhost:4000", "::1",
		"[::1]", "[::1]:9" };
	static const uint16_t ports[] = { 9, 9, 4000, 9, 9, 9 };
	struct pl_diag diag = { .text = "" };
	struct pl_sockaddr to;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		uint16_t port = 0;
		const int r = pl_probe_resolve(&to, texts[i], &diag);

		eq(r, 0, "%s: %s", texts[i], diag.text);
		(void)pl_sockaddr_get(&to.sa, &port);
		eq(port, ports[i], "%s", texts[i]);
	}
	ok(pl_probe_resolve(&to, "127.0.0.1:70000", &diag) < 0, "no such port");
	ok(pl_probe_resolve(&to, "a host", &diag) < 0, "no such name");
}

static struct pl_probe *begin(const char *dev, uint64_t now_ns)
{
	struct sockaddr_in own = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(own);
	struct pl_probe_options o = { .dev = dev, .in_block = 4, .period_ns = S, .from_ns = S / 2 };
	struct pl_probe *p = NULL;

	if (receiver < 0) {
		receiver = socket(AF_INET, SOCK_DGRAM, 0);
		if (bind(receiver, (struct sockaddr *)&own, len) < 0)
			abort();
	}
	(void)getsockname(receiver, (struct sockaddr *)&own, &len);
	memcpy(&o.to.sa, &own, sizeof(own));
	o.to.len = len;
	return pl_probe_open(&p, &o, now_ns, NULL) == 0 ? p : NULL;
}

static void times(void)
{
	struct pl_probe *p = begin("lo", BEGIN);
	const struct pl_probe_stats *s;
	uint16_t port = 0, first = 0;

	if (p == NULL)
		abort();
	s = pl_probe_stats(p);
	eq(pl_probe_due_ns(p), BEGIN + S / 4, "the first behind the begin");
	pl_probe_send(p, BEGIN + S / 4 - 1);
	eq(s->sent, 0, "none before it is due");
	pl_probe_send(p, BEGIN + S / 4);
	ok(s->sent == 1 && take(&first) == 0, "then one, with its number");
	eq(pl_probe_due_ns(p), BEGIN + S / 2, "one is in the middle of the block");
	pl_probe_send(p, BEGIN + S / 2 + 5);
	pl_probe_send(p, BEGIN + S / 2 + 6);
	ok(s->sent == 2 && take(&port) == 1 && port == first, "one each, from the same port");
	pl_probe_send(p, BEGIN + 3 * S + S / 2 + 7);
	ok(s->sent == 3 && s->missed == 11 && take(&port) == 2 && take(&port) == UINT64_MAX,
		"what was missed is counted, and not made up for");
	eq(pl_probe_due_ns(p), BEGIN + 3 * S + 3 * S / 4, "and then it goes on");
	pl_probe_send(p, BEGIN - 100 * S);
	eq(pl_probe_due_ns(p), BEGIN - 100 * S + S / 4, "also at a clock that was set back");
	eq(s->sent, 3);
	pl_probe_close(p);
	pl_probe_close(NULL);
	ok(begin("no-such0", BEGIN) == NULL, "an interface that is not there is refused");
}

static void rule(void)
{
	struct pl_tap_rules rules = { 0 };
	struct pl_sockaddr to;
	struct pl_pkt96 r = { .proto = 17, .dport = 9 };

	(void)pl_tap_rules_add(&rules, "skip proto=udp", NULL);
	(void)pl_probe_resolve(&to, "10.0.0.2", NULL);
	eq(pl_probe_add_rule(&rules, &to, NULL), 0);
	r.dst = pl_addr_v4("\x0a\0\0\x02");
	eq(pl_tap_rules_apply(&rules, &r), PL_TAP_RULED_TAKE, "probes are taken by the first rule");
	r.dport = 10;
	ok(pl_tap_rules_apply(&rules, &r) != PL_TAP_RULED_TAKE, "others are not");
	while (rules.n < PL_TAP_RULES_MAX)
		(void)pl_tap_rules_add(&rules, "take", NULL);
	eq(-pl_probe_add_rule(&rules, &to, NULL), E2BIG, "there is no room behind the last");
}

int main(void)
{
	resolving();
	times();
	rule();
	if (receiver >= 0)
		close(receiver);
	return pl_test_done();
}
