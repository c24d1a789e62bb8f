/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A collector in one namespace and a peer in another, over a veth pair: connected over TCP and by
 * RDMA-CM, refused, ended, put into error and connected anew; by IPv4, then by IPv6. What was
 * written is read from the region's file. Needs root.
 */
#include "remote/collector.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/test.h"
#include "nic/test_pair.h"
#include "rdma/requester.h"
#include "remote/exchange_client.h"

#define LISTEN  ":21480"
#define CM_PORT 21481
#define SLOTS   64

static char folder[] = "/tmp/pathline-collector-XXXXXX";
static char paths[2][64];
static const struct pl_collector_store stores[] = { { "values", paths[0] }, { "other", paths[1] } };

/* ---- the collector, in a thread of the second namespace ---- */

static struct {
	pthread_t thread;
	struct pl_collector *c;
	atomic_bool stop;
	_Atomic uint32_t signals, last_imm;
	int result;
} side;

static void on_signal(void *arg, const struct pl_collector_signal *signal)
{
	(void)arg;
	atomic_store(&side.last_imm, signal->have_imm && signal->store == 0 ? signal->imm : 0);
	atomic_fetch_add(&side.signals, 1);
}

static void *collect(void *arg)
{
	(void)arg;
	(void)pair_enter(1);
	while (!atomic_load(&side.stop)) {
		struct pollfd p = { .fd = pl_collector_fd(side.c), .events = POLLIN };
		int n = pl_collector_step(side.c, NULL);

		if (n < 0 && n != -EAGAIN && n != -ENETDOWN) {
			side.result = n;
			break;
		}
		if (n == 0)
			(void)poll(&p, 1, pl_collector_wait_ms(side.c, 20));
	}
	return NULL;
}

/* The peers' nets; that of the outsiders is none of them. */
static const struct pl_prefix allow[] = {
	{ { { [10] = 0xff, 0xff, 10, 7, 0, 0 } }, 120 },
	{ { { 0xfd, 0, 0, 7 } }, 64 },
};

static int open_collector(
	struct pl_collector **ret, const struct pl_collector_options *options, struct pl_diag *diag)
{
	struct pl_collector *c;
	int r = pl_collector_new(&c, options, diag);

	if (r < 0)
		return r;
	r = pl_collector_open(c, diag);
	if (r < 0)
		(void)pl_collector_close(c);
	else
		*ret = c;
	return r;
}

static bool start(void)
{
	const struct pl_collector_options options = { .uri = "packet:plb0",
		.listen = LISTEN,
		.cm_port = CM_PORT,
		.stores = stores,
		.n_stores = 2,
		.allow = allow,
		.n_allow = 2,
		.max_peers = 4,
		.max_each = 4,
		.signal = on_signal };
	const struct pl_addr v4 = pair_addr(1), v6 = pair_addr6(1), *addresses;
	struct pl_diag diag = { .text = "" };

	(void)pair_enter(1);
	ok(open_collector(&side.c, &options, &diag) == 0, "opens %s", diag.text);
	if (side.c == NULL)
		return false;
	eq(pl_collector_cm_addresses(side.c, &addresses), 3,
		"RDMA-CM is at the interface's addresses");
	ok(pl_addr_equal(&addresses[0], &v4) && pl_addr_equal(&addresses[1], &v6) &&
			addresses[2].b[0] == 0xfe,
		"the link's own comes last");
	streq(pl_collector_address(side.c), "[::]:21480");
	(void)pair_enter(0);
	pthread_create(&side.thread, NULL, collect, NULL);
	return true;
}

/* ---- the peer ---- */

static bool by_ipv6;

static struct pl_addr address_of(int which)
{
	return by_ipv6 ? pair_addr6(which) : pair_addr(which);
}

static struct {
	struct pl_nic *nic;
	struct pl_requester *requester;
	struct pl_connector *connector;
	struct pl_roce_path path;
	struct pl_batch in;
	struct pl_frames out;
	uint8_t memory[16 * PL_ROCE_FRAME_MAX];
} peer;

static bool open_peer(void)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	const struct pl_addr here = address_of(0), there = address_of(1);
	struct pl_connector_options cm = { .own = &here, .n_own = 1 };
	int r;

	pl_frames_init(&peer.out, peer.memory, sizeof(peer.memory));
	r = pl_nic_open(&peer.nic, "packet:pla0", NULL, NULL);
	if (r == 0)
		r = pl_requester_new(&peer.requester, &(struct pl_requester_options){ 0 });
	if (r == 0)
		memcpy(cm.smac, pl_nic_mac(peer.nic), sizeof(cm.smac));
	if (r == 0)
		r = pl_connector_new(&peer.connector, &cm);
	while (r == 0 && pl_nic_path(peer.nic, &there, NULL, &peer.path, NULL) < 0 &&
		pl_clock_mono_ns() < until)
		usleep(10000);
	return ok(r == 0 && peer.path.ttl > 0, "the peer's side by %s", by_ipv6 ? "IPv6" : "IPv4");
}

static void close_peer(void)
{
	pl_connector_free(peer.connector);
	pl_requester_free(peer.requester);
	pl_nic_close(peer.nic);
	memset(&peer, 0, sizeof(peer));
}

/* Sends what is to be sent and takes what came. */
static void turn(void)
{
	uint64_t now = pl_clock_mono_ns();
	int n;

	(void)pl_requester_send(peer.requester, now, &peer.out);
	(void)pl_nic_send(peer.nic, &peer.out, NULL);
	(void)pl_connector_send(peer.connector, now, &peer.out);
	(void)pl_nic_send(peer.nic, &peer.out, NULL);
	n = pl_nic_recv(peer.nic, &peer.in, 2, NULL);
	if (n <= 0)
		return;
	now = pl_clock_mono_ns();
	pl_requester_batch(peer.requester, &peer.in, NULL, now);
	for (uint32_t i = 0; i < peer.in.n; i++) {
		const struct pl_packet *p = &peer.in.pkts[i];
		struct pl_roce roce;

		if (pl_roce_parse(&roce, pl_cursor(p->data, p->len), PL_LINK_ETHERNET) ==
				PL_ROCE_F_OK &&
			roce.qpn == 1)
			pl_connector_receive(peer.connector, &roce, now);
	}
	pl_nic_release(peer.nic, &peer.in);
}

/* A queue pair to what the answer says. */
static uint32_t connect_to(const struct pl_exchange *x, uint32_t own)
{
	const struct pl_requester_qp qp = { .qpn = own,
		.service = x->service,
		.mtu = x->mtu,
		.pkey = x->pkey,
		.psn = x->psn,
		.peer_qpn = x->qpn,
		.path = peer.path,
		.messages = 64,
		.message_bytes = 1024,
		.window = 32,
		.atomics = x->depth,
		.timeout_ns = 50000000,
		.retries = 100,
		.rnr_retries = PL_RDMA_FOR_EVER };
	uint32_t qpn = 0;

	eq((uint64_t)pl_requester_qp_add(peer.requester, &qp, &qpn), 0, "a queue pair of ours");
	return qpn;
}

/* Posts it and waits for its end. */
static int carry_out(uint32_t qpn, const struct pl_rdma_work *work)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	struct pl_rdma_completed done = { .result = 99 };

	if (pl_requester_post(peer.requester, qpn, work) < 0)
		return -1;
	while (pl_requester_completions(peer.requester, &done, 1) == 0 &&
		pl_clock_mono_ns() < until)
		turn();
	return done.result;
}

static struct pl_rdma_work write_of(const struct pl_exchange *x, uint64_t offset, const void *data)
{
	return (struct pl_rdma_work){ .kind = PL_RDMA_WORK_WRITE,
		.va = x->va + offset,
		.rkey = x->key,
		.bytes = 8,
		.data = data };
}

static bool comes_to(_Atomic uint32_t *what, uint32_t value)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;

	while (atomic_load(what) < value && pl_clock_mono_ns() < until)
		turn();
	return atomic_load(what) == value;
}

/* The bytes of a store at an offset, from its file. */
static bool file_has(int store, uint64_t offset, const char *bytes)
{
	struct pl_region *region;
	bool same;

	if (pl_region_open(&region, paths[store], PL_REGION_READ, NULL, NULL) < 0)
		return false;
	same = memcmp((uint8_t *)pl_region_store(region, 0) + offset, bytes, 8) == 0;
	(void)pl_region_close(region);
	return same;
}

/* ---- over TCP ---- */

static struct pl_exchange_client *try_to_ask(
	const char *name, uint32_t qpn, uint8_t service, struct pl_exchange *ret, int *ret_result)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	struct pl_exchange ours = { .service = service,
		.gid = address_of(0),
		.pkey = PL_ROCE_PKEY,
		.qpn = qpn,
		.mtu = 1024,
		.depth = 4,
		.access = PL_RDMA_WRITE | PL_RDMA_ATOMIC };
	struct pl_exchange_client *c = NULL;
	struct pl_diag diag = { .text = "" };
	int r;

	strcpy(ours.name, name);
	r = pl_exchange_client_open(&c, by_ipv6 ? "[fd00:7::2]" LISTEN : "10.7.0.2" LISTEN, &ours,
		pl_clock_mono_ns(), PL_TEST_PATIENCE_NS, &diag);
	while (r == 0 && pl_clock_mono_ns() < until) {
		turn();
		r = pl_exchange_client_step(c, pl_clock_mono_ns(), ret, &diag);
	}
	*ret_result = r;
	return c;
}

static struct pl_exchange_client *ask(
	const char *name, uint32_t qpn, uint8_t service, struct pl_exchange *ret, int want)
{
	int r;
	struct pl_exchange_client *c = try_to_ask(name, qpn, service, ret, &r);

	eq((uint64_t)r, (uint64_t)want, "asks for '%s'", name);
	return c;
}

/* The collector learns of ended connections a moment later: asks until there is room. */
static struct pl_exchange_client *ask_patiently(uint32_t qpn)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	struct pl_exchange_client *c;
	struct pl_exchange x;
	int r;

	while (c = try_to_ask("other", qpn, PL_ROCE_UC, &x, &r),
		r == -EACCES && x.refusal == PL_EXCHANGE_NO_ROOM && pl_clock_mono_ns() < until)
		pl_exchange_client_close(c);
	eq((uint64_t)r, 1, "room again");
	return c;
}

static void test_tcp(void)
{
	struct pl_exchange_client *c, *refused;
	struct pl_rdma_work work;
	const uint32_t before = atomic_load(&side.signals);
	struct pl_exchange x, none;
	uint32_t qpn;

	refused = ask("nothing", 0x2000, PL_ROCE_UC, &none, -EACCES);
	eq(none.refusal, PL_EXCHANGE_NO_STORE, "because there is no such store");
	pl_exchange_client_close(refused);
	c = ask("values", 0x2001, PL_ROCE_RC, &x, 1);
	ok(x.access == (PL_RDMA_WRITE | PL_RDMA_ATOMIC), "reading is not offered");
	ok(x.depth == 4 && x.mtu == 1024 && x.store.key_write.slots == SLOTS, "the terms");
	qpn = connect_to(&x, 0x2001);
	work = write_of(&x, 16, by_ipv6 ? "TCP on 6" : "TCP on 4");
	eq(carry_out(qpn, &work), PL_RDMA_RESULT_OK, "writes");
	ok(file_has(0, 16, by_ipv6 ? "TCP on 6" : "TCP on 4"), "into the file");
	work.have_imm = true;
	work.imm = 0x1000002a;
	eq(carry_out(qpn, &work), PL_RDMA_RESULT_OK, "with immediate");
	ok(comes_to(&side.signals, before + 1) && atomic_load(&side.last_imm) == 0x1000002a,
		"which is told");
	for (int i = 0; i < 100; i++) {
		if (carry_out(qpn, &work) != PL_RDMA_RESULT_OK)
			break;
	}
	ok(comes_to(&side.signals, before + 101), "as often as one likes");
	work = (struct pl_rdma_work){
		.kind = PL_RDMA_WORK_ADD, .va = x.va + 32, .rkey = x.key, .swap_add = 5
	};
	eq(carry_out(qpn, &work), PL_RDMA_RESULT_OK, "adds");
	ok(file_has(0, 32, by_ipv6 ? "\12\0\0\0\0\0\0" : "\5\0\0\0\0\0\0"),
		"in the machine's byte order");

	/* The other store is another domain: an error ends the queue pair and its connection. */
	work = write_of(&x, x.bytes - 7, "too far!");
	eq(carry_out(qpn, &work), PL_RDMA_RESULT_ACCESS, "one byte outside is refused");
	(void)eventually(pl_exchange_client_step(c, pl_clock_mono_ns(), &none, NULL) != 1);
	eq((uint64_t)pl_exchange_client_step(c, pl_clock_mono_ns(), &none, NULL),
		(uint64_t)-ECONNRESET, "and the connection ended");
	pl_exchange_client_close(c);
	(void)pl_requester_qp_remove(peer.requester, qpn);
	c = ask("values", 0x2002, PL_ROCE_RC, &x, 1);
	qpn = connect_to(&x, 0x2002);
	work = write_of(&x, 24, by_ipv6 ? "anew by6" : "anew by4");
	eq(carry_out(qpn, &work), PL_RDMA_RESULT_OK, "asked anew it goes on");
	ok(file_has(0, 24, by_ipv6 ? "anew by6" : "anew by4") &&
			file_has(0, x.bytes - 8, "\0\0\0\0\0\0\0"),
		"in the file");
	(void)pl_requester_qp_remove(peer.requester, qpn);
	pl_exchange_client_close(c);
}

/* More than there is room for, and room again. */
static void test_full(void)
{
	struct pl_exchange_client *c[5];
	struct pl_exchange x;

	c[0] = ask_patiently(0x2100);
	for (uint32_t i = 1; i < 4; i++)
		c[i] = ask("other", 0x2100 + i, PL_ROCE_UC, &x, 1);
	ok(x.access == PL_RDMA_WRITE && x.depth == 0, "unreliable ones write and nothing else");
	c[4] = ask("other", 0x2104, PL_ROCE_UC, &x, -EACCES);
	eq(x.refusal, PL_EXCHANGE_NO_ROOM, "one too many");
	pl_exchange_client_close(c[3]);
	pl_exchange_client_close(c[4]);
	c[3] = ask_patiently(0x2105);
	for (int i = 0; i < 4; i++)
		pl_exchange_client_close(c[i]);
}

/* ---- by RDMA-CM ---- */

static uint8_t cm_connect(
	const char *name, uint32_t qpn, struct pl_connection_event *e, struct pl_exchange *x)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	const struct pl_connection_terms terms = { .qpn = qpn,
		.service = PL_ROCE_RC,
		.mtu = 512,
		.depth = 2,
		.retries = 7,
		.rnr_retries = 7,
		.ack_timeout = 14,
		.private = name,
		.private_len = (uint32_t)strlen(name) };
	uint32_t id;
	size_t used;

	e->kind = 0;
	if (!ok(pl_connector_connect(
			peer.connector, &peer.path, CM_PORT, &terms, pl_clock_mono_ns(), &id) == 0,
		    "asks for '%s' by RDMA-CM", name))
		return 0;
	while (!pl_connector_event(peer.connector, e) && pl_clock_mono_ns() < until)
		turn();
	if (e->kind == PL_CONNECTION_CONNECTED)
		ok(pl_exchange_get(x, pl_cursor(e->terms.private, e->terms.private_len), &used) ==
				1,
			"the reply has the store's parameters");
	return e->kind;
}

static void test_cm(void)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	struct pl_connection_event e = { .kind = 0 };
	struct pl_rdma_work work;
	struct pl_exchange x;
	uint32_t qpn, id;

	eq(cm_connect("nothing", 0x3000, &e, &x), PL_CONNECTION_REJECTED,
		"no such store: rejected");
	eq(e.reason, 28, "by the consumer");
	do
		(void)cm_connect("other", 0x3001, &e, &x);
	while (e.kind == PL_CONNECTION_REJECTED && e.reason == 3 && pl_clock_mono_ns() < until);
	if (!ok(e.kind == PL_CONNECTION_CONNECTED, "connected"))
		return;
	id = e.id;
	ok(e.terms.qpn == x.qpn && e.terms.psn == x.psn && x.mtu == 512, "both say the same");
	qpn = connect_to(&x, 0x3001);
	work = write_of(&x, 8, by_ipv6 ? "CM by v6" : "CM by v4");
	eq(carry_out(qpn, &work), PL_RDMA_RESULT_OK, "writes");
	ok(file_has(1, 8, by_ipv6 ? "CM by v6" : "CM by v4"), "into the other file");
	ok(pl_connector_disconnect(peer.connector, id, pl_clock_mono_ns()) == 0, "disconnects");
	do
		turn();
	while (!pl_connector_event(peer.connector, &e) && pl_clock_mono_ns() < until);
	eq(e.kind, PL_CONNECTION_CLOSED, "closed");
	(void)pl_requester_qp_remove(peer.requester, qpn);
}

/* ---- what cannot be ---- */

static void test_refusals(void)
{
	static const struct {
		struct pl_collector_store stores[2];
		const char *uri;
		int want;
	} cases[] = {
		{ { { "", paths[0] }, { "b", paths[1] } }, "packet:plb0", -EINVAL },
		{ { { "a\n", paths[0] }, { "b", paths[1] } }, "packet:plb0", -EINVAL },
		{ { { "a name of more than twenty-four", paths[0] }, { "b", paths[1] } },
			"packet:plb0", -EINVAL },
		{ { { "a", paths[0] }, { "a", paths[1] } }, "packet:plb0", -EINVAL },
		{ { { "a", paths[0] }, { "b", "/nonexistent/x" } }, "packet:plb0", -ENOENT },
		{ { { "a", paths[0] }, { "b", paths[0] } }, "packet:plb0", -EBUSY },
		{ { { "a", paths[0] }, { "b", paths[1] } }, "packet:nosuch", -ENODEV },
		{ { { "a", paths[0] }, { "b", paths[1] } }, "udp://:4791", -EINVAL },
	};
	struct pl_collector_options options = {
		.listen = "127.0.0.1:0", .n_stores = 2, .allow = allow, .n_allow = 2
	};
	struct pl_collector *c = NULL;
	struct pl_diag diag;

	(void)pair_enter(1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		diag.text[0] = '\0';
		options.uri = cases[i].uri;
		options.stores = cases[i].stores;
		eq((uint64_t)open_collector(&c, &options, &diag), (uint64_t)cases[i].want, "%s",
			diag.text);
		ok(diag.text[0] != '\0', "and says so");
	}
	options.uri = "packet:plb0";
	options.n_allow = 0;
	diag.text[0] = '\0';
	eq((uint64_t)open_collector(&c, &options, &diag), (uint64_t)-EINVAL,
		"beyond the loopback it is to be said who may write");
	ok(strstr(diag.text, "--allow 10.0.0.0/24") != NULL, "%s", diag.text);
	options.n_allow = 2;
	options.n_stores = 0;
	ok(open_collector(&c, &options, &diag) == -EINVAL, "%s", diag.text);
	ok(pl_collector_close(NULL) == 0, "nothing to close");
	(void)pair_enter(0);
}

static void check_accounts(void)
{
	static struct pl_collector_stats s;
	uint64_t sum = 0, tcp = 0, cm = 0, packets = 0;

	pl_collector_get_stats(side.c, &s);
	for (int i = 0; i < PL_RDMA_CAUSE_MAX; i++)
		sum += pl_counter_read(&s.responder->causes[i]);
	eq(sum, pl_counter_read(&s.responder->packets), "packets are the sum of their causes");
	eq(s.n_accounts, 4, "an account for each store of each address of the peer");
	for (uint32_t i = 0; i < s.n_accounts; i++) {
		tcp += s.accounts[i].tcp;
		cm += s.accounts[i].cm;
		packets += s.accounts[i].packets;
		eq(s.accounts[i].connected, 0, "nobody is connected");
		ok(s.accounts[i].refused <= s.accounts[i].packets, "refused ones are among them");
	}
	eq(tcp, 2 * 7, "asked for over TCP");
	eq(cm, 2 * 1, "and by RDMA-CM");
	ok(packets >= 2 * 105 && packets <= sum, "packets of peers");
	eq(s.failed, 2 * 1, "one of each went to error");
	eq(s.signals, 2 * 101, "signals");
	eq(side.result, 0, "the collector never failed");
}

int main(void)
{
	const struct pl_store_params params = { .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.key_write = { .slots = SLOTS, .value_bytes = 4, .copies = 1 } };
	struct pl_region *region;

	if (geteuid() != 0 || pair_make() < 0 || pair_make6() < 0)
		return pl_test_skip("needs root and network namespaces");
	if (mkdtemp(folder) == NULL)
		return 1;
	for (int i = 0; i < 2; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%d.plr", folder, i);
		ok(pl_region_create(&region, paths[i], &params, NULL, NULL) == 0, "a region");
		(void)pl_region_close(region);
	}
	test_refusals();
	if (start()) {
		for (int i = 0; i < 2; i++) {
			by_ipv6 = i == 1;
			if (open_peer()) {
				test_tcp();
				test_full();
				test_cm();
			}
			close_peer();
		}
		atomic_store(&side.stop, true);
		pthread_join(side.thread, NULL);
		check_accounts();
		eq((uint64_t)pl_collector_close(side.c), 0, "closes");
	}
	for (int i = 0; i < 2; i++)
		(void)unlink(paths[i]);
	(void)rmdir(folder);
	return pl_test_done();
}
