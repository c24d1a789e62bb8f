/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters over TCP. The first byte says what follows, and whether a message's check values are
 * made to fit:
 *
 *   a message       what is read lies in the input, is sound, and written again reads the same; cut
 *                   anywhere it is incomplete
 *   34 bytes        written again they are the same bytes
 *   a connection    to a server (port 7471), its bytes in pieces: every whole message gets its
 *                   answer, in their order; who sends something else is ended; what was agreed ends
 *                   with the connection; accounts close
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/num.h"
#include "fuzz.h"
#include "netio/tcp.h"
#include "remote/exchange_server.h"
#include "wire/roce.h"

#define STEPS     10000u
#define ASKS_KEPT (4 * PL_EXCHANGE_ASKS_MAX)

static void put_be32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Messages as long as they say they are, or 100 bytes, one behind the other. */
static void make_fit(uint8_t *p, size_t n)
{
	while (n >= PL_EXCHANGE_BYTES) {
		size_t length = pl_be16(p + 6);

		memcpy(p, "PLRX\1", 5);
		if (length < PL_EXCHANGE_BYTES || length > n)
			length = PL_EXCHANGE_BYTES;
		p[6] = (uint8_t)(length >> 8);
		p[7] = (uint8_t)length;
		put_be32(p + 96, pl_crc32(0, p, 96));
		if (length >= PL_EXCHANGE_STORE_BYTES)
			put_be32(p + 180, pl_crc32(0, p + 100, 80));
		p += length;
		n -= length;
	}
}

static bool same(const struct pl_exchange *a, const struct pl_exchange *b)
{
	return a->service == b->service && pl_addr_equal(&a->gid, &b->gid) &&
	       memcmp(a->mac, b->mac, 6) == 0 && a->pkey == b->pkey && a->va == b->va &&
	       a->bytes == b->bytes && a->key == b->key && a->qpn == b->qpn && a->psn == b->psn &&
	       a->mtu == b->mtu && a->depth == b->depth && a->access == b->access &&
	       strcmp(a->name, b->name) == 0 && a->refusal == b->refusal &&
	       a->has_store == b->has_store && a->epoch == b->epoch &&
	       a->region_id == b->region_id && memcmp(&a->store, &b->store, sizeof(a->store)) == 0;
}

/* ---- a message ---- */

static void message(const uint8_t *data, size_t size)
{
	struct pl_exchange x, again;
	uint8_t bytes[PL_EXCHANGE_STORE_BYTES];
	struct pl_build b = pl_build(bytes, sizeof(bytes));
	size_t used, unused;
	int r = pl_exchange_get(&x, pl_cursor(data, size), &used);

	must(r == 1 || r == 0 || r == -EBADMSG || r == -EPROTO);
	if (r != 1)
		return;
	must(used >= PL_EXCHANGE_BYTES && used <= size);
	must(x.service == PL_ROCE_RC || x.service == PL_ROCE_UC);
	must(x.qpn <= PL_ROCE_PSN_MASK && x.psn <= PL_ROCE_PSN_MASK && x.mtu <= PL_ROCE_PATH_MTU);
	must(x.bytes == 0 || x.va + (x.bytes - 1) >= x.va);
	must(memchr(x.name, '\0', sizeof(x.name)) != NULL);
	if (x.has_store) {
		uint64_t store_bytes;

		must(pl_store_bytes(&x.store, &store_bytes, NULL) == 0 && store_bytes == x.bytes);
	}
	pl_exchange_put(&b, &x);
	must(!b.full && pl_exchange_get(&again, pl_cursor(bytes, b.len), &unused) == 1);
	must(unused == b.len && same(&x, &again));
	for (size_t n = 0; n < used; n += 1 + n / 8)
		must(pl_exchange_get(&again, pl_cursor(data, n), &unused) == 0);
}

static void compact(const uint8_t *data, size_t size)
{
	struct pl_exchange x = { .bytes = 77 };
	uint8_t bytes[PL_EXCHANGE_COMPACT_BYTES];
	struct pl_build b = pl_build(bytes, sizeof(bytes));
	int r = pl_exchange_get_compact(&x, pl_cursor(data, size));

	must(size >= PL_EXCHANGE_COMPACT_BYTES ? r == 1 || r == -EBADMSG : r == 0);
	must(x.bytes == 77);
	if (r != 1)
		return;
	pl_exchange_put_compact(&b, &x);
	must(!b.full && b.len == sizeof(bytes) && memcmp(bytes, data, sizeof(bytes)) == 0);
}

/* ---- a connection ---- */

static struct {
	struct pl_exchange_server *server;
	uint16_t port;
	uint64_t now_ns, ids, ended;
} s;

static int ask(void *arg, const struct pl_addr *peer, const struct pl_exchange *theirs,
	struct pl_exchange *ret_ours, uint64_t *ret_id)
{
	(void)arg;
	(void)peer;
	if (theirs->name[0] == 'n')
		return PL_EXCHANGE_NO_STORE;
	*ret_ours = *theirs;
	ret_ours->qpn = 77;
	ret_ours->va = 4096;
	ret_ours->has_store = true;
	ret_ours->store = (struct pl_store_params){ .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.key_write = { .slots = 64, .value_bytes = 4, .copies = 1 } };
	must(pl_store_bytes(&ret_ours->store, &ret_ours->bytes, NULL) == 0);
	*ret_id = ++s.ids;
	return 0;
}

static void ended(void *arg, uint64_t id)
{
	(void)arg;
	must(id > 0 && id <= s.ids);
	s.ended++;
}

static void open_server(void)
{
	const struct pl_exchange_server_options o = {
		.listen = "127.0.0.1:0", .ask = ask, .ended = ended
	};
	struct pl_addr addr;

	if (s.server != NULL)
		return;
	must(pl_exchange_server_open(&s.server, &o, NULL) == 0);
	must(pl_parse_endpoint(pl_exchange_server_address(s.server), &addr, &s.port) == 0);
}

/* What a reader of the whole stream finds: messages, and whether it ends with something else. */
static unsigned int expect(const uint8_t *data, size_t size, struct pl_exchange *ret, bool *ret_bad)
{
	unsigned int n = 0;
	size_t used;
	int r;

	for (;;) {
		r = pl_exchange_get(&ret[n], pl_cursor(data, size), &used);
		*ret_bad = r < 0 || (r == 0 && size >= 512);
		if (r != 1)
			return n;
		if (n++ == ASKS_KEPT || used > 512) {
			*ret_bad = true;
			return n - 1;
		}
		data += used;
		size -= used;
	}
}

/* Answers that came, in their order; an end is an end. */
static size_t take(int fd, uint8_t *in, size_t have, size_t cap, bool *ret_end)
{
	ssize_t n = recv(fd, in + have, cap - have, MSG_DONTWAIT);

	*ret_end = n == 0 || (n < 0 && errno != EAGAIN);
	return n > 0 ? have + (size_t)n : have;
}

static void connection(const uint8_t *data, size_t size, size_t piece)
{
	static struct pl_exchange asked[ASKS_KEPT + 1];
	static uint8_t in[(ASKS_KEPT + 1) * PL_EXCHANGE_STORE_BYTES];
	const struct pl_exchange_server_counters *c;
	const uint8_t host[] = { 127, 0, 0, 1 };
	const struct pl_addr loopback = pl_addr_v4(host);
	unsigned int n, got = 0;
	size_t have = 0, before, sent = 0, at = 0;
	bool bad, end = false, shut = false;
	int fd;

	open_server();
	n = expect(data, size, asked, &bad);
	fd = pl_tcp_connect(&loopback, s.port, NULL, NULL);
	must(fd >= 0);
	for (unsigned int i = 0; i < STEPS && !end; i++) {
		const size_t left = size - sent, now = left < piece ? left : piece;
		ssize_t r = now > 0 ? send(fd, data + sent, now, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

		sent += r > 0 ? (size_t)r : 0;
		/* The last ones are awaited before this side says that it is done. */
		if (sent == size && !shut && (bad || have >= (size_t)n * PL_EXCHANGE_BYTES)) {
			unsigned int whole = 0;
			struct pl_exchange x;
			size_t used, look = 0;

			while (pl_exchange_get(&x, pl_cursor(in + look, have - look), &used) == 1) {
				look += used;
				whole++;
			}
			shut = (bad || whole >= n) && shutdown(fd, SHUT_WR) == 0;
		}
		pl_exchange_server_step(s.server, ++s.now_ns);
		before = have;
		have = take(fd, in, have, sizeof(in), &end);
		/* The kernel may wait 40 ms with a small piece. */
		if (!end && r <= 0 && have == before)
			usleep(200);
	}
	must(end); /* it does not hang */
	close(fd);
	for (size_t used; at < have; at += used) {
		struct pl_exchange x;
		int r = pl_exchange_get(&x, pl_cursor(in + at, have - at), &used);

		must(r == 1 || (r == 0 && bad));
		if (r == 0)
			break;
		must(got < n && strcmp(x.name, asked[got].name) == 0);
		must(x.refusal != 0 || x.qpn == 77 || asked[got].refusal != 0);
		must(asked[got].name[0] != 'n' || x.refusal == PL_EXCHANGE_NO_STORE);
		got++;
	}
	must(bad || got == n);
	c = pl_exchange_server_counters(s.server);
	must(s.ended == s.ids && pl_counter_read(&c->agreed) == s.ids);
	must(pl_counter_read(&c->connections) == pl_counter_read(&c->garbage) +
							 pl_counter_read(&c->ended) +
							 pl_counter_read(&c->timeouts));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size < 2 || size > 8192)
		return 0;
	copy = malloc(size - 2);
	must(copy != NULL || size == 2);
	if (size > 2)
		memcpy(copy, data + 2, size - 2);
	if ((data[0] & 4) != 0)
		make_fit(copy, size - 2);
	if ((data[0] & 3) == 0)
		message(copy, size - 2);
	else if ((data[0] & 3) == 1)
		compact(copy, size - 2);
	else
		connection(copy, size - 2, (size_t)data[1] * 8 + 1);
	free(copy);
	return 0;
}
