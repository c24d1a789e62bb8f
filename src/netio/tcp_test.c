/* SPDX-License-Identifier: BSD-2-Clause */
#include "netio/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/test.h"

static bool sends_at_once(int fd)
{
	int on = 0;
	socklen_t len = sizeof(on);

	return getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len) == 0 && on != 0;
}

/* Connects to a listener on this address and checks both ends. */
static void connected(const char *where)
{
	struct pl_diag diag = { .text = "" };
	char text[PL_TCP_TEXT_MAX];
	struct pl_addr at, from;
	uint16_t port = 0;
	int fd = pl_tcp_listen(where, 4, NULL, text, &diag), out, in;

	if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) {
		ok(true, "%s # SKIP no such address here", where);
		return;
	}
	ok(fd >= 0, "listens on %s", text);
	ok(pl_parse_endpoint(text, &at, &port) == 0 && port != 0, "and says where");
	eq((uint64_t)pl_tcp_accept(fd, &from), (uint64_t)-EAGAIN, "nobody yet");
	out = pl_tcp_connect(&at, port, NULL, &diag);
	ok(out >= 0, "%s", diag.text);
	(void)eventually((in = pl_tcp_accept(fd, &from)) != -EAGAIN);
	ok(in >= 0 && pl_addr_equal(&from, &at), "one from there");
	ok(sends_at_once(out) && sends_at_once(in), "short messages do not wait for each other");
	close(in);
	close(out);
	close(fd);
}

/* Connects from a given address of this host; from one that the kernel chooses where the given one
 * is not ours. */
static void connected_from(void)
{
	const struct pl_addr own = pl_addr_v4((const uint8_t[]){ 127, 0, 0, 9 }),
			     foreign = pl_addr_v4((const uint8_t[]){ 192, 0, 2, 1 }),
			     v6 = pl_addr_v6((const uint8_t[16]){ 0xfd, [15] = 1 });
	const struct pl_addr local = pl_addr_v4((const uint8_t[]){ 127, 0, 0, 1 });
	const struct {
		const struct pl_addr *from, *want;
	} cases[] = { { &own, &own }, { &foreign, &local }, { &v6, &local } };
	char text[PL_TCP_TEXT_MAX];
	struct pl_diag diag = { .text = "" };
	struct pl_addr addr, seen;
	uint16_t port = 0;
	int fd = pl_tcp_listen("127.0.0.1:0", 4, NULL, text, &diag);

	ok(fd >= 0 && pl_parse_endpoint(text, &addr, &port) == 0, "%s %s", text, diag.text);
	for (size_t i = 0; fd >= 0 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		int out = pl_tcp_connect(&addr, port, cases[i].from, &diag), in;

		(void)eventually((in = pl_tcp_accept(fd, &seen)) != -EAGAIN);
		ok(in >= 0 && pl_addr_equal(&seen, cases[i].want), "case %zu %s", i, diag.text);
		close(in);
		close(out);
	}
	close(fd);
}

int main(void)
{
	static const char *const bad[] = { "", "127.0.0.1", "localhost:1", "127.0.0.1:65536" };
	struct pl_diag diag = { .text = "" };

	connected("127.0.0.1:0");
	connected("[::1]:0");
	connected_from();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		eq((uint64_t)pl_tcp_listen(bad[i], 1, NULL, NULL, &diag), (uint64_t)-EINVAL, "%s",
			diag.text);
	return pl_test_done();
}
