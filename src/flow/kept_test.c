/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow cache whose process is killed at any instant. A child feeds packets in memory that it shares, and is
 * stopped behind each of its instructions; whenever one changed that memory, a copy is mended and
 * gone on with, as the next process would. No packet is ever lost or twice but the one that was under way, which is
 * counted as torn; records are numbered on. Without single steps the child is stopped at random instants.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "base/rng.h"
#include "flow/cache_state.h"
#include "flow/test_packets.h"

enum { PACKETS = 400, GOT = 2048, FLIPS = 20000 };

/* What a child does, in its order: a packet, or a call between packets. */
struct act {
	enum { FEED, EXPIRE, LEAVE } what;
	struct pl_pkt96 packet;
	uint64_t now_ns;
};

struct shared {
	uint32_t fed, begun, n_got; /* fed: acts that are done */
	struct pl_flow288 got[GOT];
};

struct scene {
	const char *name;
	struct pl_flow_config config;
	struct act acts[PACKETS];
	uint32_t n, from; /* from: the first one that is looked at */
	bool places;      /* packets are seen at several: their bytes are not all told */
};

struct stage {
	struct scene scene;
	size_t bytes;
	uint8_t *memory, *seen, *copy; /* the child's; as it was looked at last; of one look */
	struct shared *shared;
	uint64_t looks, steps, bad, torn;
};

static void take(void *arg, const struct pl_flow288 *records, uint32_t n)
{
	struct shared *s = arg;

	if (s->n_got + n > GOT)
		abort();
	memcpy(s->got + s->n_got, records, n * sizeof(*records));
	PL_FLOW_FENCE();
	s->n_got += n;
}

static struct pl_flow_cache *cache_in(const struct scene *scene, uint8_t *memory, void *sink_arg)
{
	struct pl_flow_cache *c = pl_flow_cache_bare(&scene->config, take, sink_arg);

	if (c == NULL)
		abort();
	pl_flow_cache_place(c, memory, pl_flow_buckets_for(&scene->config));
	return c;
}

static void act(struct pl_flow_cache *c, const struct act *a)
{
	if (a->what == FEED)
		pl_flow_cache_feed(c, &a->packet, 1);
	else if (a->what == EXPIRE)
		pl_flow_cache_expire(c, a->now_ns);
	else
		pl_flow_cache_leave(c, a->now_ns);
}

/* ---- sums ---- */

struct sums {
	uint64_t packets, bytes, elsewhere;
};

static void add_record(struct sums *s, const struct pl_flow288 *r)
{
	s->packets += (uint64_t)r->pkts_fwd + r->pkts_rev;
	s->bytes += r->bytes_fwd + r->bytes_rev;
	s->elsewhere += (uint64_t)r->elsewhere_fwd + r->elsewhere_rev;
}

static void add_flow(struct sums *s, const struct pl_flow_entry *f, const struct pl_flow_other *o)
{
	for (unsigned int d = 0; d < 2; d++) {
		s->packets += f->packets[d];
		s->bytes += f->bytes[d];
		if ((f->state & PL_FLOW_ELSEWHERE) != 0)
			s->elsewhere += (uint64_t)o->uncounted[d] + o->packets[d];
	}
}

/* Of records that came, those that were handed out and did not, those that wait, and flows. */
static struct sums sums_of(const struct pl_flow_cache *c, const struct shared *got)
{
	struct sums s = { 0 };
	const uint64_t given = c->kept->given.records;

	for (uint32_t i = 0; i < got->n_got; i++)
		add_record(&s, &got->got[i]);
	for (uint64_t i = got->n_got; i < given; i++)
		add_record(&s, &c->kept->records[i - got->n_got]);
	for (uint32_t i = 0; i < c->kept->n_records; i++)
		add_record(&s, &c->kept->records[i]);
	for (uint32_t slot = 0; slot < c->n_buckets * PL_FLOW_WAYS; slot++) {
		if (c->buckets[slot / PL_FLOW_WAYS].tag[slot % PL_FLOW_WAYS] != 0)
			add_flow(&s, &c->flows[slot], &c->others[slot]);
	}
	return s;
}

static struct sums sums_fed(const struct scene *scene, uint32_t n)
{
	struct sums s = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		s.packets += scene->acts[i].what == FEED;
		s.bytes += scene->acts[i].what == FEED ? scene->acts[i].packet.wire_len : 0;
	}
	return s;
}

static bool same(const struct scene *scene, const struct sums *got, const struct sums *want)
{
	return got->packets + got->elsewhere == want->packets &&
	       (scene->places || got->bytes == want->bytes);
}

/* ---- a look ---- */

static void tell(const struct stage *st, const char *what, const struct sums *got, uint64_t kind)
{
	const struct shared *s = st->shared;

	if (st->bad < 5)
		printf("# %s: %s at act %u, step kind %" PRIu64 ": %" PRIu64 " packets, %" PRIu64
		       " elsewhere, %" PRIu64 " bytes\n",
			st->scene.name, what, s->fed, kind, got->packets, got->elsewhere,
			got->bytes);
}

/* What was handed out and did not come is known by its numbers: here it counts as come. */
static void note_missing(const struct pl_flow_cache *c, struct shared *got)
{
	const uint64_t given = c->kept->given.records;

	memcpy(got->got + got->n_got, c->kept->records, (given - got->n_got) * sizeof(got->got[0]));
	got->n_got = (uint32_t)given;
}

/* Goes on with what is in st->copy, to the end. */
static void go_on(struct stage *st, struct pl_flow_cache *c, struct shared *got, uint64_t lost)
{
	struct sums all, want = sums_fed(&st->scene, st->scene.n);

	note_missing(c, got);
	pl_flow_flush(c);
	for (uint32_t i = st->shared->begun; i < st->scene.n; i++)
		act(c, &st->scene.acts[i]);
	pl_flow_cache_finish(c);
	all = sums_of(c, got);
	want.packets -= lost;
	all.bytes = want.bytes;
	/* Elsewhere behind a leave is told by the counters alone. */
	if (!same(&st->scene, &all, &want) && !st->scene.places) {
		tell(st, "wrong behind it", &all, 0);
		st->bad++;
	}
	for (uint32_t i = 0; i < got->n_got; i++)
		st->bad += got->got[i].flow_seq != i;
}

static void look(struct stage *st)
{
	static struct shared got;
	struct pl_flow_cache *c;
	struct sums now, before, behind;
	uint64_t kind;

	memcpy(st->copy, st->memory, st->bytes);
	memcpy(&got, st->shared, offsetof(struct shared, got));
	memcpy(got.got, st->shared->got, got.n_got * sizeof(got.got[0]));
	c = cache_in(&st->scene, st->copy, &got);
	kind = c->kept->journal.kind;
	pl_flow_mend(c);
	now = sums_of(c, &got);
	before = sums_fed(&st->scene, got.fed);
	behind = sums_fed(&st->scene, got.begun);
	st->torn += c->state_counters.torn;
	if (!same(&st->scene, &now, &before) &&
		(c->state_counters.torn > 0 || !same(&st->scene, &now, &behind))) {
		tell(st, "wrong", &now, kind);
		st->bad++;
	} else if (c->state_counters.damaged > 0 || c->kept->given.records < got.n_got) {
		tell(st, "damaged", &now, kind);
		st->bad++;
	} else {
		go_on(st, c, &got,
			sums_fed(&st->scene, got.begun).packets - now.packets - now.elsewhere);
	}
	pl_flow_cache_free(c);
	st->looks++;
}

static void look_if_changed(struct stage *st)
{
	if (memcmp(st->memory, st->seen, st->bytes) == 0)
		return;
	memcpy(st->seen, st->memory, st->bytes);
	look(st);
}

/* ---- children ---- */

static void child(struct stage *st, bool stepped)
{
	struct pl_flow_cache *c = cache_in(&st->scene, st->memory, st->shared);

	if (stepped && ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
		_exit(2);
	for (uint32_t i = 0; i < st->scene.n; i++) {
		if (stepped && i == st->scene.from)
			raise(SIGSTOP);
		st->shared->begun = i + 1;
		PL_FLOW_FENCE();
		act(c, &st->scene.acts[i]);
		PL_FLOW_FENCE();
		st->shared->fed = i + 1;
		PL_FLOW_FENCE();
	}
	_exit(0);
}

static void *shared_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static void set_up(struct stage *st)
{
	st->bytes = pl_flow_layout(pl_flow_buckets_for(&st->scene.config)).bytes;
	st->memory = shared_memory(st->bytes);
	st->seen = calloc(1, st->bytes);
	st->copy = aligned_alloc(4096, (st->bytes + 4095) / 4096 * 4096);
	st->shared = shared_memory(sizeof(*st->shared));
	if (st->seen == NULL || st->copy == NULL)
		abort();
}

static void empty(struct stage *st)
{
	const uint64_t seed[4] = { 1, 2, 3, 4 };
	struct pl_flow_kept *kept = (void *)st->memory;

	memset(st->memory, 0, st->bytes);
	memset(st->shared, 0, offsetof(struct shared, got));
	memcpy(kept->seed, seed, sizeof(seed));
}

static void tear_down(struct stage *st)
{
	munmap(st->memory, st->bytes);
	munmap(st->shared, sizeof(*st->shared));
	free(st->seen);
	free(st->copy);
}

/* False: this machine allows no single steps. */
static bool step_through(struct stage *st)
{
	int status;
	pid_t pid;

	empty(st);
	pid = fork();
	if (pid == 0)
		child(st, true);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return false;
	while (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid &&
		WIFSTOPPED(status)) {
		st->steps++;
		look_if_changed(st);
	}
	return st->steps > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* As the kernel ends a process: by SIGKILL, some microseconds into its work. */
static void kill_at_random(struct stage *st, unsigned int times)
{
	struct pl_rng rng;

	pl_rng_seed(&rng, 7);
	for (unsigned int i = 0; i < times; i++) {
		uint64_t turns = pl_rng_below(&rng, 20000);
		int status;
		pid_t pid;

		empty(st);
		pid = fork();
		if (pid == 0)
			child(st, false);
		while (pid > 0 && __atomic_load_n(&st->shared->begun, __ATOMIC_RELAXED) == 0)
			;
		for (volatile uint64_t k = 0; k < turns; k++)
			;
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		look(st);
	}
}

/* ---- scenes ---- */

static struct act *add(
	struct scene *s, uint64_t ts_ns, unsigned int back, uint16_t port, uint8_t proto)
{
	struct act *a = &s->acts[s->n++];

	if (s->n > PACKETS)
		abort();
	a->packet = packet(ts_ns, back, port, proto);
	a->packet.wire_len = (uint16_t)(100 + s->n * 37 % 1000);
	return a;
}

static void call(struct scene *s, int what, uint64_t now_ns)
{
	s->acts[s->n++] = (struct act){ .what = what, .now_ns = now_ns };
}

static struct act *segment(struct scene *s, uint64_t ts_ns, unsigned int back, uint8_t flags,
	uint32_t seq, uint32_t ack)
{
	struct act *a = add(s, ts_ns, back, 40000, 6);

	a->packet.tcp_flags = flags;
	a->packet.tcp_seq = seq;
	a->packet.tcp_ack = ack;
	a->packet.pay_len = flags == ACK ? 10 : 0;
	a->packet.tcp_opts = 1 << 8;
	a->packet.tsval = 1 + seq;
	a->packet.tsecr = 1 + ack;
	return a;
}

/* A connection with a retransmission, its ports used again; flows beyond the room; active and idle timeouts; a
 * flow that goes on behind an orderly end. */
static void one_place(struct scene *s)
{
	uint64_t t = EPOCH;

	s->config.max_flows = 8;
	s->config.active_ns = 3 * SECOND;
	segment(s, t, 0, SYN, 1, 0);
	segment(s, t += 1000, 1, SACK, 100, 2);
	for (uint32_t i = 0; i < 6; i++)
		segment(s, t += 1000000, i & 1, ACK, (i & 1 ? 101 : 2) + i / 2 * 10,
			(i & 1 ? 12 : 101) + i / 2 * 10);
	segment(s, t += 1000, 0, ACK, 2, 101);
	for (uint16_t i = 0; i < 12; i++)
		add(s, t += 1000, 0, 1000 + i, 17);
	segment(s, t += 4 * SECOND, 0, ACK, 32, 131);
	segment(s, t += 1000, 0, FIN | ACK, 42, 131);
	segment(s, t += 1000, 1, FIN | ACK, 131, 43);
	segment(s, t += 1000, 0, SYN, 900, 0);
	call(s, EXPIRE, t += SECOND);
	for (uint16_t i = 0; i < 3; i++)
		add(s, t += 1000, i & 1, 2000, 17);
	call(s, LEAVE, t += 1000);
	add(s, t += SECOND, 0, 2000, 17);
	segment(s, t += 1000, 1, ACK, 200, 901);
	call(s, EXPIRE, t += 20 * SECOND);
	add(s, t += 1000, 0, 2000, 17);
}

/* Records fill the room for those that wait. */
static void full(struct scene *s)
{
	uint64_t t = EPOCH;

	s->config.max_flows = 8;
	for (uint16_t i = 0; i < PL_FLOW_RECORDS + 20; i++)
		add(s, t += 1000, 0, 1000 + i, 17);
	s->from = PL_FLOW_RECORDS + 2;
}

/* The clock is set back: flows end by both clocks. */
static void behind(struct scene *s)
{
	uint64_t t = EPOCH;

	s->config.max_flows = 8;
	for (uint16_t i = 0; i < 7; i++)
		add(s, t += 1000, 0, 1000 + i, 17);
	for (uint32_t i = 0; i < PL_FLOW_BEHIND + 4; i++)
		add(s, t - 100 * SECOND + i, 0, 3000, 17);
	s->from = s->n - 8;
}

/* Two and three places see the packets; the one that counts falls silent. */
static void places(struct scene *s)
{
	uint64_t t = EPOCH;

	s->config.max_flows = 8;
	s->config.active_ns = 5 * SECOND;
	s->places = true;
	for (uint32_t i = 0; i < 12; i++)
		add(s, t += SECOND / 8, i & 1, 4000, i < 6 ? 17 : 6)->packet.obs =
			(uint16_t)(1 + i % 3);
	for (uint32_t i = 0; i < 40; i++)
		add(s, t += SECOND / 3, i & 1, 4000, 17)->packet.obs = 2;
	for (uint32_t i = 0; i < 20; i++) {
		struct act *a = segment(s, t += SECOND / 4, i & 1, ACK, i * 10, i * 10);

		a->packet.obs = (uint16_t)(i < 4 ? 1 : 3);
	}
	call(s, EXPIRE, t + 20 * SECOND);
}

static void run_scene(const char *name, void (*fill)(struct scene *s))
{
	static struct stage st;

	st = (struct stage){ .scene = { .name = name, .config = PL_FLOW_CONFIG } };
	fill(&st.scene);
	set_up(&st);
	if (step_through(&st)) {
		eq(st.bad, 0,
			"%s: right at each of %" PRIu64 " instants of %" PRIu64 " instructions",
			name, st.looks, st.steps);
		ok(st.looks > 100 && st.torn > 20, "%s: in the midst of %" PRIu64 " packets", name,
			st.torn);
		eq(st.shared->fed, st.scene.n, "%s: to its end", name);
	} else {
		printf("# no single steps here\n");
	}
	st.bad = st.looks = 0;
	kill_at_random(&st, 300);
	eq(st.bad, 0, "%s: right after %" PRIu64 " kills", name, st.looks);
	tear_down(&st);
}

/* ---- damage ---- */

struct checked {
	struct shared got;
	uint64_t bad;
};

static void check_records(void *arg, const struct pl_flow288 *records, uint32_t n)
{
	struct checked *k = arg;

	for (uint32_t i = 0; i < n; i++) {
		const struct pl_flow288 *r = &records[i];

		k->bad += r->end_reason == 0 || r->end_reason > PL_FLOW_END_SHUTDOWN ||
			  r->role > PL_FLOW_ROLE_SERVER || r->role_by > PL_FLOW_ROLE_BY_PORTS ||
			  r->first_ts > r->last_ts || r->pkts_fwd + r->pkts_rev == 0;
	}
}

/* One turn: some bits of what one_place() and places() left are others. */
static uint64_t flip(struct stage *st, struct pl_rng *rng, uint64_t *ret_damaged)
{
	struct checked checked = { .bad = 0 };
	const uint32_t n = 1 + (uint32_t)pl_rng_below(rng, 40);
	struct pl_flow_cache *c;

	memcpy(st->copy, st->memory, st->bytes);
	for (uint32_t i = 0; i < n; i++)
		st->copy[pl_rng_below(rng, st->bytes)] ^= (uint8_t)(1u << pl_rng_below(rng, 8));
	c = cache_in(&st->scene, st->copy, &checked);
	c->sink = check_records;
	pl_flow_mend(c);
	*ret_damaged += c->state_counters.damaged;
	pl_flow_flush(c);
	for (uint32_t i = 0; i < st->scene.n; i++)
		act(c, &st->scene.acts[i]);
	pl_flow_cache_finish(c);
	pl_flow_cache_free(c);
	return checked.bad;
}

static void survives_flips(void (*fill)(struct scene *s))
{
	static struct stage st;
	struct pl_flow_cache *c;
	uint64_t bad = 0, damaged = 0;
	struct pl_rng rng;

	st = (struct stage){ .scene = { .name = "flips", .config = PL_FLOW_CONFIG } };
	fill(&st.scene);
	set_up(&st);
	empty(&st);
	c = cache_in(&st.scene, st.memory, st.shared);
	for (uint32_t i = 0; i < st.scene.n - 4; i++)
		act(c, &st.scene.acts[i]);
	pl_flow_cache_free(c);
	pl_rng_seed(&rng, 3);
	for (unsigned int i = 0; i < FLIPS; i++)
		bad += flip(&st, &rng, &damaged);
	eq(bad, 0, "%u damaged states give records in order", (unsigned int)FLIPS);
	ok(damaged > 100, "and %" PRIu64 " flows and records are left out", damaged);
	tear_down(&st);
}

int main(void)
{
	run_scene("one place", one_place);
	run_scene("room for records", full);
	run_scene("a clock set back", behind);
	run_scene("several places", places);
	survives_flips(one_place);
	survives_flips(places);
	return pl_test_done();
}
