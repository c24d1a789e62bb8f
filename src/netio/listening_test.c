/* SPDX-License-Identifier: BSD-2-Clause */
/* This test's own sockets as the kernel lists them: listening ones are listed, connected ones are
 * not. */
#include "netio/listening.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"
#include "base/test.h"

struct one {
	uint8_t proto;
	struct pl_addr addr;
	uint16_t port;
	bool v6only;
};

struct seen {
	struct one sockets[65536];
	struct pl_addr locals[4096];
	unsigned int n, n_locals;
};

static struct seen seen;

static void take_socket(
	void *arg, uint8_t proto, const struct pl_addr *addr, uint16_t port, bool v6only)
{
	(void)arg;
	if (seen.n == sizeof(seen.sockets) / sizeof(seen.sockets[0]))
		abort();
	seen.sockets[seen.n++] = (struct one){ proto, *addr, port, v6only };
}

static void take_local(void *arg, const struct pl_addr *addr)
{
	(void)arg;
	if (seen.n_locals < sizeof(seen.locals) / sizeof(seen.locals[0]))
		seen.locals[seen.n_locals++] = *addr;
}

static int look(struct pl_listening *l)
{
	const struct pl_listening_sink sink = { take_socket, take_local, NULL };
	struct pl_diag diag = { .text = "" };
	int r = 0;

	seen.n = seen.n_locals = 0;
	pl_listening_begin(l);
	while (r == 0)
		r = pl_listening_step(l, &sink, &diag);
	if (r < 0)
		printf("# %s\n", diag.text);
	return r;
}

static const struct one *find(uint8_t proto, uint16_t port)
{
	for (unsigned int i = 0; i < seen.n; i++) {
		if (seen.sockets[i].proto == proto && seen.sockets[i].port == port)
			return &seen.sockets[i];
	}
	return NULL;
}

/* Opens a socket bound to `address` and a free port, *ret_port. */
static int bound(int type, const char *address, bool v6only, uint16_t *ret_port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	const bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
	struct sockaddr *sa = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
	socklen_t len = is_v4 ? sizeof(v4) : sizeof(v6);
	const int one = v6only;
	int fd = socket(is_v4 ? AF_INET : AF_INET6, type, 0);

	if (!is_v4 && (inet_pton(AF_INET6, address, &v6.sin6_addr) != 1 ||
			      setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0))
		abort();
	if (fd < 0 || bind(fd, sa, len) < 0 || getsockname(fd, sa, &len) < 0)
		abort();
	*ret_port = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
	return fd;
}

static bool is_at(const struct one *s, const char *address)
{
	char text[PL_ADDR_TEXT_MAX];

	if (s == NULL)
		return false;
	(void)pl_format_addr(text, &s->addr);
	return strcmp(text, address) == 0;
}

int main(void)
{
	const struct pl_addr loopback = pl_addr_v4((const uint8_t[4]){ 127, 0, 0, 1 });
	struct pl_listening *l = NULL;
	struct pl_listening_range range;
	struct sockaddr_in to = { .sin_family = AF_INET };
	uint16_t any, one, six, dual, udp, connected, idle;
	int fds[7];
	bool local = false;

	eq(pl_listening_open(&l, NULL), 0);
	fds[0] = bound(SOCK_STREAM, "0.0.0.0", false, &any);
	fds[1] = bound(SOCK_STREAM, "127.0.0.1", false, &one);
	fds[2] = bound(SOCK_STREAM, "::", true, &six);
	fds[3] = bound(SOCK_STREAM, "::", false, &dual);
	fds[4] = bound(SOCK_DGRAM, "127.0.0.1", false, &udp);
	fds[5] = bound(SOCK_DGRAM, "127.0.0.1", false, &connected);
	fds[6] = bound(SOCK_STREAM, "127.0.0.1", false, &idle);
	for (int i = 0; i < 4; i++)
		eq(listen(fds[i], 1), 0);
	to.sin_port = htons(udp);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	eq(connect(fds[5], (struct sockaddr *)&to, sizeof(to)), 0);

	eq(look(l), 1, "a look is complete");
	ok(is_at(find(IPPROTO_TCP, any), "0.0.0.0"), "listens at every address");
	ok(is_at(find(IPPROTO_TCP, one), "127.0.0.1"), "listens at one");
	ok(is_at(find(IPPROTO_TCP, six), "::") && find(IPPROTO_TCP, six)->v6only, "of IPv6 alone");
	ok(is_at(find(IPPROTO_TCP, dual), "::") && !find(IPPROTO_TCP, dual)->v6only, "of both");
	ok(is_at(find(IPPROTO_UDP, udp), "127.0.0.1"), "of UDP, bound");
	ok(find(IPPROTO_UDP, connected) == NULL, "not one of UDP that is connected");
	ok(find(IPPROTO_TCP, idle) == NULL, "not one of TCP that is bound and does not listen");
	ok(find(IPPROTO_TCP, udp) == NULL || udp == any || udp == one || udp == six || udp == dual,
		"protocols are told apart");
	for (unsigned int i = 0; i < seen.n_locals; i++)
		local = local || pl_addr_equal(&seen.locals[i], &loopback);
	ok(local, "the address of the loopback interface");

	close(fds[0]);
	eq(look(l), 1, "and another");
	ok(find(IPPROTO_TCP, any) == NULL && find(IPPROTO_TCP, one) != NULL, "as of now");
	range = pl_listening_clients(l);
	ok(range.from <= any && any <= range.to, "%u lies among %u to %u", any, range.from,
		range.to);
	for (int i = 1; i < 7; i++)
		close(fds[i]);
	pl_listening_close(l);
	return pl_test_done();
}
