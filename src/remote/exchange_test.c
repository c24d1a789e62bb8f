/* SPDX-License-Identifier: BSD-2-Clause */
/* Server and client of the exchange over loopback, in one thread: what is agreed and refused, how
 * it ends, and what peers can do that is not meant. */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/test.h"
#include "remote/exchange_client.h"
#include "remote/exchange_server.h"
#include "wire/roce.h"

#define SECOND UINT64_C(1000000000)
#define PEERS  4

static struct pl_exchange_server *server;
static struct pl_exchange_server_options options;
static uint64_t ended_ids, nended, next_id;
static uint64_t skew_ns; /* what the server's clock is ahead */
static bool deny;

static const struct pl_exchange mine = { .service = PL_ROCE_UC,
	.gid = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } },
	.pkey = 0xffff,
	.qpn = 0x111111,
	.psn = 5,
	.mtu = 1024,
	.access = 2,
	.name = "flows" };

/* The server's time stands still unless a test moves it. */
static uint64_t now(void)
{
	return SECOND + skew_ns;
}

static bool allowed(void *arg, const struct pl_addr *peer)
{
	(void)arg;
	(void)peer;
	return !deny;
}

/* Has one store of 64 slots, named "flows". */
static int ask(void *arg, const struct pl_addr *peer, const struct pl_exchange *theirs,
	struct pl_exchange *ours, uint64_t *ret_id)
{
	(void)arg;
	(void)peer;
	if (strcmp(theirs->name, "flows") != 0)
		return PL_EXCHANGE_NO_STORE;
	*ours = *theirs;
	ours->qpn = 0x222222;
	ours->key = 0xabcdef01;
	ours->has_store = true;
	ours->epoch = 3;
	ours->store = (struct pl_store_params){ .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.key_write = { .slots = 64, .value_bytes = 4, .copies = 1 } };
	(void)pl_store_bytes(&ours->store, &ours->bytes, NULL);
	*ret_id = ++next_id;
	return 0;
}

static void ended(void *arg, uint64_t id)
{
	(void)arg;
	nended++;
	ended_ids += id;
}

static int step(struct pl_exchange_client *c, struct pl_exchange *x, struct pl_diag *diag)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	int r;

	do {
		pl_exchange_server_step(server, now());
		r = pl_exchange_client_step(c, pl_clock_mono_ns(), x, diag);
	} while (r == 0 && pl_clock_mono_ns() < until);
	return r;
}

static struct pl_exchange_client *begin(const struct pl_exchange *ours)
{
	struct pl_exchange_client *c = NULL;

	eq((uint64_t)pl_exchange_client_open(&c, pl_exchange_server_address(server), ours,
		   pl_clock_mono_ns(), PL_TEST_PATIENCE_NS, NULL),
		0, "begins");
	return c;
}

/* A connection without a client's manners. */
static int raw(const void *bytes, size_t n)
{
	struct pl_addr addr;
	struct sockaddr_in sa = { .sin_family = AF_INET };
	uint16_t port = 0;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)pl_parse_endpoint(pl_exchange_server_address(server), &addr, &port);
	sa.sin_port = htons(port);
	memcpy(&sa.sin_addr, addr.b + 12, 4);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
		(n > 0 && send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n))
		printf("# connect: %s\n", strerror(errno));
	return fd;
}

/* Steps the server until a counter has this value. */
static bool comes_to(const struct pl_counter *counter, uint64_t value)
{
	(void)eventually(pl_counter_read(counter) >= value, pl_exchange_server_step(server, now()));
	return pl_counter_read(counter) == value;
}

static void open_server(void)
{
	struct pl_diag diag = { .text = "" };

	options = (struct pl_exchange_server_options){ .listen = "127.0.0.1:0",
		.max_peers = PEERS,
		.allowed = allowed,
		.ask = ask,
		.ended = ended };
	nended = ended_ids = next_id = skew_ns = 0;
	deny = false;
	ok(pl_exchange_server_open(&server, &options, &diag) == 0, "listens %s", diag.text);
}

static void test_agree(void)
{
	const struct pl_exchange_server_counters *n;
	struct pl_exchange other = mine, x;
	struct pl_exchange_client *c, *d;
	struct pl_diag diag = { .text = "" };

	open_server();
	n = pl_exchange_server_counters(server);
	c = begin(&mine);
	eq(step(c, &x, &diag), 1, "agreed %s", diag.text);
	ok(x.qpn == 0x222222 && x.key == 0xabcdef01 && x.has_store && x.epoch == 3 &&
			x.store.key_write.slots == 64,
		"the answer is the server's");
	eq(pl_exchange_client_step(c, pl_clock_mono_ns(), &x, NULL), 1, "and stays");
	memcpy(other.name, "none", 5);
	d = begin(&other);
	eq(step(d, &x, &diag), -EACCES, "refused: %s", diag.text);
	eq(x.refusal, PL_EXCHANGE_NO_STORE, "with the reason");
	pl_exchange_client_close(d);
	ok(comes_to(&n->ended, 1), "the refused one goes");
	eq(nended, 0, "and had nothing to end");
	pl_exchange_client_close(c);
	ok(comes_to(&n->ended, 2), "the other one goes");
	ok(nended == 1 && ended_ids == 1, "its queue pair ends");

	c = begin(&mine);
	eq(step(c, &x, NULL), 1, "another one");
	pl_exchange_server_drop(server, 2);
	eq(nended, 1, "dropped by its owner, who is not told");
	(void)eventually(pl_exchange_client_step(c, pl_clock_mono_ns(), &x, &diag) != 1);
	eq(pl_exchange_client_step(c, pl_clock_mono_ns(), &x, &diag), -ECONNRESET, "%s", diag.text);
	pl_exchange_client_close(c);
	c = begin(&mine);
	eq(step(c, &x, NULL), 1, "one more");
	pl_exchange_server_close(server);
	eq(nended, 2, "the server's end is everybody's");
	pl_exchange_client_close(c);
}

/* More messages in a piece than there is room for answers: nobody waits for the rest. */
static void test_many_at_once(void)
{
	for (unsigned int many = 1; many <= PL_EXCHANGE_ASKS_MAX; many++) {
		uint8_t bytes[PL_EXCHANGE_ASKS_MAX * PL_EXCHANGE_BYTES];
		struct pl_build b = pl_build(bytes, sizeof(bytes));
		const struct pl_exchange_server_counters *n;
		int fd;

		open_server();
		n = pl_exchange_server_counters(server);
		for (unsigned int i = 0; i < many; i++)
			pl_exchange_put(&b, &mine);
		fd = raw(bytes, b.len);
		ok(comes_to(&n->agreed, many), "%u at once: each is answered", many);
		eq(pl_counter_read(&n->timeouts), 0);
		close(fd);
		ok(comes_to(&n->ended, 1));
		pl_exchange_server_close(server);
	}
}

/* Everything until the end. Returns how many bytes; -1: it did not end well. */
static ssize_t read_all(int fd, uint8_t *bytes, size_t room)
{
	size_t n = 0;
	ssize_t r;

	while ((r = recv(fd, bytes + n, room - n, 0)) > 0)
		n += (size_t)r;
	return r < 0 ? -1 : (ssize_t)n;
}

/* Who sends no more behind its messages has the answers to all of them, and then the end. */
static void test_half_closed(void)
{
	for (unsigned int many = 1; many <= PL_EXCHANGE_ASKS_MAX; many++) {
		uint8_t bytes[(PL_EXCHANGE_ASKS_MAX + 1) * PL_EXCHANGE_BYTES];
		uint8_t got[PL_EXCHANGE_ASKS_MAX * PL_EXCHANGE_STORE_BYTES + 1];
		struct pl_build b = pl_build(bytes, sizeof(bytes));
		const struct pl_exchange_server_counters *n;
		struct pl_exchange other = mine, x;
		size_t used;
		int fd;

		open_server();
		n = pl_exchange_server_counters(server);
		for (unsigned int i = 0; i <= many; i++)
			pl_exchange_put(&b, &mine);
		/* Every other time half a message comes behind. */
		fd = raw(bytes, b.len - (many % 2 == 0 ? 50 : PL_EXCHANGE_BYTES));
		eq((uint64_t)shutdown(fd, SHUT_WR), 0);
		ok(comes_to(&n->ended, 1), "%u, and no more: the connection ends", many);
		eq((uint64_t)read_all(fd, got, sizeof(got)), many * PL_EXCHANGE_STORE_BYTES,
			"after all answers");
		eq((uint64_t)pl_exchange_get(&x,
			   pl_cursor(got + (many - 1) * PL_EXCHANGE_STORE_BYTES,
				   PL_EXCHANGE_STORE_BYTES),
			   &used),
			1, "the last one whole");
		ok(x.qpn == 0x222222 && x.has_store, "and right");
		eq(nended, many, "with every queue pair");
		close(fd);

		memcpy(other.name, "none", 5);
		b = pl_build(bytes, sizeof(bytes));
		pl_exchange_put(&b, &other);
		fd = raw(bytes, b.len);
		(void)shutdown(fd, SHUT_WR);
		ok(comes_to(&n->ended, 2) && read_all(fd, got, sizeof(got)) == PL_EXCHANGE_BYTES &&
				got[40] == PL_EXCHANGE_NO_STORE,
			"a refusal comes too");
		close(fd);
		pl_exchange_server_close(server);
	}
}

/* What is no message takes nothing back of what was agreed before it; however much comes behind
 * it. */
static void test_garbage_behind(void)
{
	static uint8_t bytes[PL_EXCHANGE_ASKS_MAX * PL_EXCHANGE_BYTES + 100000];

	for (unsigned int many = 0; many <= PL_EXCHANGE_ASKS_MAX; many++) {
		uint8_t got[PL_EXCHANGE_ASKS_MAX * PL_EXCHANGE_STORE_BYTES + 1];
		struct pl_build b = pl_build(bytes, sizeof(bytes));
		const struct pl_exchange_server_counters *n;
		struct pl_exchange x;
		size_t used;
		int fd;

		open_server();
		n = pl_exchange_server_counters(server);
		for (unsigned int i = 0; i < many; i++)
			pl_exchange_put(&b, &mine);
		memset(bytes + b.len, 'x', sizeof(bytes) - b.len);
		fd = raw(bytes, b.len + (many % 2 == 0 ? 7 : 100000));
		if (many % 3 == 0)
			(void)shutdown(fd, SHUT_WR);
		ok(comes_to(&n->garbage, 1), "%u, and garbage", many);
		eq((uint64_t)read_all(fd, got, sizeof(got)), many * PL_EXCHANGE_STORE_BYTES,
			"all answers, then the end");
		for (unsigned int i = 0; i < many; i++)
			ok(pl_exchange_get(&x,
				   pl_cursor(got + i * PL_EXCHANGE_STORE_BYTES,
					   PL_EXCHANGE_STORE_BYTES),
				   &used) == 1 &&
					x.qpn == 0x222222,
				"%u whole", i);
		eq(nended, many, "with every queue pair");
		if (many % 3 != 0)
			ok(send(fd, bytes, 50, MSG_NOSIGNAL) == 50, "not reset meanwhile");
		close(fd);
		fd = raw(bytes, 0);
		ok(comes_to(&n->connections, 2), "and the next one may come");
		for (unsigned int i = 0; i < 100; i++)
			pl_exchange_server_step(server, now());
		eq(pl_counter_read(&n->garbage), 1);
		eq(pl_counter_read(&n->ended) + pl_counter_read(&n->timeouts), 0, "counted once");
		close(fd);
		pl_exchange_server_close(server);
	}
}

/* Who goes on with garbage, or does not go, has its time. */
static void test_garbage_stays(void)
{
	const struct pl_exchange_server_counters *n;
	uint8_t message[PL_EXCHANGE_BYTES + 10] = { 0 }, got[PL_EXCHANGE_STORE_BYTES + 1];
	struct pl_build b = pl_build(message, sizeof(message));
	int fd;

	open_server();
	n = pl_exchange_server_counters(server);
	pl_exchange_put(&b, &mine);
	fd = raw(message, sizeof(message));
	ok(comes_to(&n->garbage, 1), "one that stays");
	eq((uint64_t)read_all(fd, got, sizeof(got)), PL_EXCHANGE_STORE_BYTES, "has its answer");
	for (unsigned int i = 0; i < 20; i++) {
		ok(send(fd, message, PL_EXCHANGE_BYTES, MSG_NOSIGNAL) > 0, "and goes on");
		skew_ns = i * SECOND / 4;
		pl_exchange_server_step(server, now());
	}
	eq(pl_counter_read(&n->agreed), 1, "for nothing");
	skew_ns = 11 * SECOND;
	pl_exchange_server_step(server, now());
	ok(eventually(send(fd, message, PL_EXCHANGE_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
		      errno != EAGAIN),
		"until its time is over");
	eq(pl_counter_read(&n->timeouts) + pl_counter_read(&n->ended), 0, "counted once");
	close(fd);
	pl_exchange_server_close(server);
}

/* Who does not read either is not waited for. */
static void test_half_closed_deaf(void)
{
	const struct pl_exchange_server_counters *n;
	uint8_t message[PL_EXCHANGE_BYTES];
	struct pl_build b = pl_build(message, sizeof(message));
	struct linger hard = { .l_onoff = 1 };
	int fd;

	open_server();
	n = pl_exchange_server_counters(server);
	pl_exchange_put(&b, &mine);
	fd = raw(message, sizeof(message));
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
	ok(comes_to(&n->ended, 1), "one that was reset");
	fd = raw(message, 50);
	(void)shutdown(fd, SHUT_WR);
	ok(comes_to(&n->ended, 2), "half a message, and no more");
	eq((uint64_t)read_all(fd, message, sizeof(message)), 0, "is not answered");
	close(fd);
	eq(nended, pl_counter_read(&n->agreed), "no queue pair is left");
	pl_exchange_server_close(server);
}

static void test_hostile(void)
{
	const struct pl_exchange_server_counters *n;
	uint8_t message[PL_EXCHANGE_BYTES], many[80 * PL_EXCHANGE_BYTES];
	struct pl_build b = pl_build(message, sizeof(message));
	int fds[PEERS + 3];
	uint8_t got[8];

	open_server();
	n = pl_exchange_server_counters(server);
	pl_exchange_put(&b, &mine);
	for (size_t i = 0; i < sizeof(many); i++)
		many[i] = message[i % sizeof(message)];

	fds[0] = raw("GET / HTTP/1.0\r\n\r\n", 18);
	ok(comes_to(&n->garbage, 1), "another protocol");
	eq(recv(fds[0], got, 1, 0) <= 0, true, "is closed");
	close(fds[0]);
	message[70]++;
	fds[0] = raw(message, sizeof(message));
	ok(comes_to(&n->garbage, 2), "a wrong check value");
	close(fds[0]);
	message[70]--;
	message[6] = 0x40; /* a message of 16484 bytes */
	fds[0] = raw(message, sizeof(message));
	(void)!send(fds[0], many, 600, MSG_NOSIGNAL);
	ok(comes_to(&n->garbage, 3), "a length beyond every message");
	close(fds[0]);
	message[6] = 0;

	fds[0] = raw(many, sizeof(many));
	ok(comes_to(&n->garbage, 4), "no end of messages");
	eq(pl_counter_read(&n->agreed), PL_EXCHANGE_ASKS_MAX, "so many queue pairs at most");
	eq(nended, PL_EXCHANGE_ASKS_MAX, "all of which end");
	close(fds[0]);

	fds[0] = raw(message, 50);
	fds[1] = raw(NULL, 0);
	ok(comes_to(&n->connections, 6), "one that stops half way, and one that says nothing");
	pl_exchange_server_step(server, now()); /* the half is read: its time begins */
	skew_ns = 9 * SECOND;
	pl_exchange_server_step(server, now());
	eq(pl_counter_read(&n->timeouts), 0, "have their time");
	skew_ns = 11 * SECOND;
	ok(comes_to(&n->timeouts, 2), "and no more");
	close(fds[0]);
	close(fds[1]);

	fds[0] = raw(message, sizeof(message));
	ok(comes_to(&n->agreed, PL_EXCHANGE_ASKS_MAX + 1), "one that is good");
	(void)!send(fds[0], message, 50, 0);
	skew_ns = 60 * SECOND;
	pl_exchange_server_step(server, now());
	eq(pl_counter_read(&n->timeouts), 2, "may be quiet");
	skew_ns = 71 * SECOND;
	ok(comes_to(&n->timeouts, 3), "but not begin and stop");
	close(fds[0]);

	for (int i = 0; i < PEERS + 3; i++)
		fds[i] = raw(message, sizeof(message));
	ok(comes_to(&n->full, 3), "more than there is room for");
	ok(comes_to(&n->agreed, PL_EXCHANGE_ASKS_MAX + 1 + PEERS), "the others are served");
	for (int i = 0; i < PEERS + 3; i++)
		close(fds[i]);
	ok(comes_to(&n->ended, PEERS), "and go");
	deny = true;
	fds[0] = raw(message, sizeof(message));
	ok(comes_to(&n->denied, 1), "an address that may not");
	close(fds[0]);
	eq(nended, PL_EXCHANGE_ASKS_MAX + 1 + PEERS, "every queue pair has ended");
	pl_exchange_server_close(server);
}

/* A server that is none, for the client: what it sends, and what is said of it. */
static void test_client(void)
{
	static const struct {
		const char *bytes;
		size_t n;
		int want;
		const char *name;
	} cases[] = { { "SSH-2.0-x\r\n", 11, -EBADMSG, "another protocol" },
		{ "PLRX\2\0\0\144", 8, -EPROTO, "another version" },
		{ "", 0, -ECONNRESET, "one that closes" } };
	static const char *const bad[] = { "", "localhost:1", "127.0.0.1", ":7471", "127.0.0.1:0" };
	struct pl_exchange_client *c = NULL;
	struct pl_diag diag = { .text = "" };
	char where[PL_TCP_TEXT_MAX];
	int fd = pl_tcp_listen("127.0.0.1:0", 4, NULL, where, &diag), r, peer;
	struct pl_exchange x;
	struct pl_addr addr;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		eq(pl_exchange_client_open(&c, bad[i], &mine, 0, SECOND, &diag), -EINVAL, "%s",
			diag.text);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)pl_exchange_client_open(
			&c, where, &mine, pl_clock_mono_ns(), PL_TEST_PATIENCE_NS, &diag);
		(void)eventually((peer = pl_tcp_accept(fd, &addr)) != -EAGAIN);
		(void)eventually(recv(peer, &(uint8_t[PL_EXCHANGE_BYTES]){ 0 }, PL_EXCHANGE_BYTES,
					 MSG_PEEK) == PL_EXCHANGE_BYTES,
			pl_exchange_client_step(c, 0, &x, &diag));
		(void)!recv(peer, &(uint8_t[PL_EXCHANGE_BYTES]){ 0 }, PL_EXCHANGE_BYTES, 0);
		if (cases[i].n > 0)
			(void)!send(peer, cases[i].bytes, cases[i].n, 0);
		else
			close(peer);
		(void)eventually((r = pl_exchange_client_step(c, 0, &x, &diag)) != 0);
		eq((uint64_t)r, (uint64_t)cases[i].want, "%s: %s", cases[i].name, diag.text);
		pl_exchange_client_close(c);
		if (cases[i].n > 0)
			close(peer);
	}
	(void)pl_exchange_client_open(&c, where, &mine, 0, SECOND, &diag);
	eq(pl_exchange_client_step(c, SECOND - 1, &x, &diag), 0, "one that says nothing");
	eq((uint64_t)pl_exchange_client_step(c, SECOND, &x, &diag), (uint64_t)-ETIMEDOUT, "%s",
		diag.text);
	pl_exchange_client_close(c);
	close(fd);
	r = pl_exchange_client_open(
		&c, where, &mine, pl_clock_mono_ns(), PL_TEST_PATIENCE_NS, &diag);
	while (r == 0)
		r = pl_exchange_client_step(c, pl_clock_mono_ns(), &x, &diag);
	eq((uint64_t)r, (uint64_t)-ECONNREFUSED, "nobody there: %s", diag.text);
	pl_exchange_client_close(c);
	pl_exchange_client_close(NULL);
}

int main(void)
{
	test_agree();
	test_many_at_once();
	test_half_closed();
	test_half_closed_deaf();
	test_garbage_behind();
	test_garbage_stays();
	test_hostile();
	test_client();
	return pl_test_done();
}
