/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A dialer against collectors made of the same folder's parts, over a veth pair: who comes up, who
 * is refused, what happens when one goes and is back. Real sockets and frames, so the clock is the
 * real one; nothing waits for a time.
 */
#include "remote/dialer.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "memory/append.h"
#include "nic/test_pair.h"
#include "rdma/responder.h"
#include "remote/exchange_server.h"

#define STORES 2
#define VA     UINT64_C(0x1000)

static const struct pl_store_params params[STORES] = {
	{ .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.key_write = { .slots = 64, .value_bytes = 4, .copies = 1 } },
	{ .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.append = { .slots = 64,
			.lists = 3,
			.entry_bytes = 8,
			.batch_max = 4,
			.sealed = 1 } },
};
static const char *const names[STORES] = { "last", "lists" };

/* The other side: in the pair's second namespace. */
static struct far {
	struct pl_nic *nic;
	struct pl_exchange_server *server;
	struct pl_responder *responder;
	void *memory[STORES];
	uint32_t key[STORES];
	uint64_t bytes[STORES];
	struct pl_store_params told[STORES];
	uint8_t access;
	uint32_t uc; /* queue pairs that were asked for so */
	char address[64];
} far;

static struct pl_nic *nic;
static struct pl_uplink *uplink;
static struct pl_dialer *dialer;
static uint8_t frames_memory[2][64 * 2048];

static int answer(void *arg, const struct pl_addr *peer, const struct pl_exchange *theirs,
	struct pl_exchange *ret, uint64_t *ret_id)
{
	const unsigned int s = strcmp(theirs->name, names[1]) == 0;
	struct pl_rdma_qp qp = { .service = theirs->service,
		.access = far.access,
		.state = PL_RDMA_READY,
		.depth = 16,
		.mtu = theirs->mtu,
		.pkey = theirs->pkey,
		.domain = 1,
		.psn = 77,
		.peer_qpn = theirs->qpn };
	uint32_t qpn;
	int r;

	(void)arg;
	if (strcmp(theirs->name, names[s]) != 0)
		return PL_EXCHANGE_NO_STORE;
	/* Routes are those of the thread's namespace. */
	if (pair_enter(1) < 0)
		return PL_EXCHANGE_NO_TERMS;
	r = pl_nic_path(far.nic, peer, theirs->mac, &qp.path, NULL);
	if (pair_enter(0) < 0 || r < 0 || pl_responder_qp_add(far.responder, &qp, &qpn) < 0)
		return PL_EXCHANGE_NO_ROOM;
	far.uc += theirs->service == PL_ROCE_UC;
	*ret = (struct pl_exchange){ .service = theirs->service,
		.gid = qp.path.src,
		.pkey = theirs->pkey,
		.va = VA,
		.bytes = far.bytes[s],
		.key = far.key[s],
		.qpn = qpn,
		.psn = 77,
		.mtu = theirs->mtu,
		.depth = 16,
		.access = far.access & theirs->access,
		.has_store = true,
		.store = far.told[s] };
	memcpy(ret->name, names[s], strlen(names[s]));
	(void)pl_store_bytes(&ret->store, &ret->bytes, NULL);
	*ret_id = qpn;
	return 0;
}

static void ended(void *arg, uint64_t id)
{
	(void)arg;
	(void)pl_responder_qp_remove(far.responder, (uint32_t)id);
}

/* The server alone goes and comes: its stores stay. In the second namespace. */
static bool serve(const char *listen)
{
	const struct pl_exchange_server_options o = {
		.listen = listen, .ask = answer, .ended = ended
	};
	struct pl_diag diag = { .text = "" };
	bool good = pair_enter(1) == 0 && pl_exchange_server_open(&far.server, &o, &diag) == 0;

	if (good)
		snprintf(far.address, sizeof(far.address), "%s",
			pl_exchange_server_address(far.server));
	else
		printf("# %s\n", diag.text);
	return pair_enter(0) == 0 && good;
}

static bool open_far(void)
{
	struct pl_diag diag = { .text = "" };
	bool good = pair_enter(1) == 0 && pl_nic_open(&far.nic, "packet:plb0", NULL, &diag) == 0 &&
		    pl_responder_new(&far.responder, &(struct pl_responder_options){ 0 }) == 0;

	far.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC;
	for (unsigned int s = 0; good && s < STORES; s++) {
		struct pl_rdma_region g = { .va = VA, .domain = 1, .access = far.access };

		far.told[s] = params[s];
		(void)pl_store_bytes(&params[s], &far.bytes[s], NULL);
		far.memory[s] = g.base = aligned_alloc(64, far.bytes[s]);
		g.bytes = far.bytes[s];
		if (g.base == NULL)
			abort();
		memset(g.base, 0, g.bytes);
		good = pl_responder_region_add(far.responder, &g, &far.key[s]) == 0;
	}
	if (!good)
		printf("# %s\n", diag.text);
	return pair_enter(0) == 0 && good;
}

/* One round of both sides. */
static void step(void)
{
	static struct pl_frames out[2];
	static struct pl_batch batch;

	(void)pl_dialer_step(dialer, pl_clock_mono_ns());
	pl_frames_init(&out[0], frames_memory[0], sizeof(frames_memory[0]));
	(void)pl_uplink_send(uplink, pl_clock_mono_ns(), &out[0]);
	if (out[0].batch.n > 0)
		(void)pl_nic_send(nic, &out[0], NULL);
	if (far.server != NULL)
		pl_exchange_server_step(far.server, pl_clock_mono_ns());
	if (pl_nic_recv(far.nic, &batch, 1, NULL) > 0) {
		pl_responder_batch(far.responder, &batch, NULL);
		pl_nic_release(far.nic, &batch);
		pl_frames_init(&out[1], frames_memory[1], sizeof(frames_memory[1]));
		(void)pl_responder_answers(far.responder, &out[1]);
		if (out[1].batch.n > 0)
			(void)pl_nic_send(far.nic, &out[1], NULL);
	}
	if (pl_nic_recv(nic, &batch, 0, NULL) > 0) {
		pl_uplink_batch(uplink, &batch, pl_clock_mono_ns());
		pl_nic_release(nic, &batch);
	}
}

static bool wait_up(bool up)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;

	while (pl_uplink_is_up(uplink, 0) != up && pl_clock_mono_ns() < until)
		step();
	return pl_uplink_is_up(uplink, 0) == up;
}

static bool wait_failures(uint64_t n)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;

	while (pl_dialer_counters(dialer, 0)->failures < n && pl_clock_mono_ns() < until)
		step();
	return pl_dialer_counters(dialer, 0)->failures >= n;
}

static void begin(const char *server)
{
	static const char *servers[1];
	const struct pl_uplink_options uo = { .collectors = 1, .n_stores = STORES };
	struct pl_dialer_options o = { .nic = nic,
		.servers = servers,
		.stores = names,
		.collectors = 1,
		.n_stores = STORES,
		.retry_min_ns = 1000000,
		.retry_max_ns = 4000000 };
	struct pl_diag diag = { .text = "" };

	servers[0] = server;
	far.uc = 0;
	if (pl_uplink_new(&uplink, &uo) < 0)
		abort();
	o.uplink = uplink;
	if (pl_dialer_new(&dialer, &o, &diag) < 0)
		printf("# %s\n", diag.text);
}

static void end(void)
{
	pl_dialer_free(dialer);
	pl_uplink_free(uplink);
}

static void test_up(void)
{
	struct pl_append a;
	const uint32_t value = 4711;
	struct pl_op op = { .bytes = 4, .offset = 16, .data = (const uint8_t *)&value };

	(void)pl_append_init(&a, &params[1], far.memory[1]);
	(void)pl_append_put(&a, 2, "an entryan entry", 2);
	begin(far.address);
	ok(pl_dialer_store(dialer, 0) == NULL, "nobody said yet what the stores are");
	ok(wait_up(true), "it comes up: %s", pl_dialer_why(dialer, 0));
	ok(pl_dialer_store(dialer, 1) != NULL &&
			memcmp(pl_dialer_store(dialer, 1), &params[1], sizeof(params[1])) == 0,
		"and says what its stores are");
	ok(pl_dialer_head(dialer, 0, 1, 2) == 2 && pl_dialer_head(dialer, 0, 1, 0) == 0 &&
			pl_dialer_head(dialer, 0, 1, 3) == 0 &&
			pl_dialer_head(dialer, 0, 0, 0) == 0,
		"and where its lists are");
	eq(far.uc, 2, "both stores by unreliable connections");
	pl_uplink_ops(uplink, &op, 1);
	for (uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
		memcmp((uint8_t *)far.memory[0] + 16, &value, 4) != 0 &&
		pl_clock_mono_ns() < until;)
		step();
	memeq((uint8_t *)far.memory[0] + 16, &value, 4, "an operation arrives");

	/* It goes, and is back with another entry. */
	pl_exchange_server_close(far.server);
	far.server = NULL;
	ok(wait_up(false) && pl_dialer_why(dialer, 0)[0] != '\0', "it is gone: %s",
		pl_dialer_why(dialer, 0));
	ok(wait_failures(3), "it is tried again and again");
	(void)pl_append_put(&a, 2, "an entry", 1);
	ok(serve(far.address) && wait_up(true), "until it is back: %s", pl_dialer_why(dialer, 0));
	eq(pl_dialer_head(dialer, 0, 1, 2), 3, "with the list as it is by then");
	ok(pl_dialer_counters(dialer, 0)->losses == 1 &&
			pl_uplink_counters(uplink, 0)->connections == 2,
		"counted");
	end();
}

static void test_refused(void)
{
	const uint8_t access = far.access;

	begin(far.address);
	ok(wait_up(true), "as it should be");
	pl_exchange_server_close(far.server);
	far.told[0].seed++;
	ok(serve(far.address) && wait_up(false) && wait_failures(1) &&
			strstr(pl_dialer_why(dialer, 0), "seed") != NULL,
		"another store in its place: %s", pl_dialer_why(dialer, 0));
	far.told[0] = params[0];
	ok(wait_up(true), "and the right one again");
	end();

	far.access = PL_RDMA_WRITE;
	begin(far.address);
	ok(wait_failures(1) && strstr(pl_dialer_why(dialer, 0), "read") != NULL,
		"lists whose heads may not be read: %s", pl_dialer_why(dialer, 0));
	far.access = access;
	end();

	far.key[1] ^= 1;
	begin(far.address);
	ok(wait_failures(1) && strstr(pl_dialer_why(dialer, 0), "heads") != NULL,
		"READs that are refused: %s", pl_dialer_why(dialer, 0));
	far.key[1] ^= 1;
	end();
}

static void test_options(void)
{
	static const char *const bad[] = { "10.7.0.2", "10.7.0.2:0", "nobody:7471", ":7471" };
	static const char *const long_name[] = { "a name of more than 24 bytes" };
	struct pl_diag diag = { .text = "" };
	struct pl_dialer *d;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct pl_dialer_options o = {
			.servers = &bad[i], .stores = names, .collectors = 1, .n_stores = 1
		};

		ok(pl_dialer_new(&d, &o, &diag) == -EINVAL, "%s: %s", bad[i], diag.text);
	}
	{
		static const char *const good[] = { "10.7.0.2:7471" };
		const struct pl_dialer_options o = {
			.servers = good, .stores = long_name, .collectors = 1, .n_stores = 1
		};

		ok(pl_dialer_new(&d, &o, &diag) == -EINVAL, "%s", diag.text);
	}
}

int main(void)
{
	int r = geteuid() == 0 ? pair_make() : -EPERM;

	test_options();
	if (r < 0) {
		printf("ok %u - the rest # SKIP two network namespaces with a veth pair: %s\n",
			++pl_test_run, strerror(-r));
		return pl_test_done();
	}
	if (!ok(open_far() && serve("10.7.0.2:0") &&
			    pl_nic_open(&nic, "packet:pla0", NULL, NULL) == 0,
		    "both ends"))
		return pl_test_done();
	test_up();
	test_refused();
	pl_exchange_server_close(far.server);
	pl_responder_free(far.responder);
	pl_nic_close(far.nic);
	pl_nic_close(nic);
	for (unsigned int s = 0; s < STORES; s++)
		free(far.memory[s]);
	return pl_test_done();
}
