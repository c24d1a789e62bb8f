/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of flow states: what a next process finds, what it refuses and what it puts aside; times in which
 * nobody looked; a file that is cut. A process that is killed is here a cache that is freed without a word.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "flow/cache_state.h"
#include "flow/test_packets.h"

#define BOOT UINT64_C(5000000000000)

static char folder[] = "/tmp/pathline-state-XXXXXX", path[64];
static const struct pl_flow_point points[2] = {
	{ .name = "eth0", .netns = 7, .ifindex = 2, .point = 1 },
	{ .name = "eth1", .netns = 7, .ifindex = 3, .point = 2 }
};

/* A tap's life with a state. */
struct life {
	struct pl_flow_config config;
	struct pl_flow_state *state;
	struct pl_flow_cache *cache;
	struct pl_flow_resumed resumed;
	struct pl_diag diag;
	uint32_t n_points;
};

static int open_state(struct life *l)
{
	const struct pl_flow_state_options o = {
		.path = path, .points = points, .n_points = l->n_points
	};

	l->diag = (struct pl_diag){ .text = "" };
	return pl_flow_state_open(&l->state, &o, &l->config, &l->diag);
}

static void begin(struct life *l, struct kept *kept, uint64_t boot_ns)
{
	if (open_state(l) < 0 ||
		pl_flow_cache_new_kept(&l->cache, &l->config, l->state, keep, kept, &l->diag) < 0 ||
		pl_flow_cache_resume(l->cache, boot_ns, &l->resumed, &l->diag) < 0) {
		printf("# %s\n", l->diag.text);
		abort();
	}
}

/* Without a record, as by SIGKILL. */
static void die(struct life *l)
{
	pl_flow_cache_free(l->cache);
	pl_flow_state_close(l->state);
}

static void feed(struct life *l, uint64_t ts_ns, uint16_t port, uint64_t boot_ns)
{
	const struct pl_pkt96 p = packet(ts_ns, 0, port, 17);

	pl_flow_cache_feed(l->cache, &p, 1);
	pl_flow_cache_came(l->cache, ts_ns, boot_ns, 2);
}

static struct life a_life(void)
{
	struct life l = { .config = PL_FLOW_CONFIG, .n_points = 2 };

	l.config.max_flows = 64;
	l.config.active_ns = 1000 * SECOND;
	(void)unlink(path);
	return l;
}

static void patch(size_t at, const void *data, size_t n)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || pwrite(fd, data, n, (off_t)at) != (ssize_t)n)
		abort();
	close(fd);
}

/* ---- times ---- */

static void goes_on(void)
{
	struct life l = a_life();
	struct kept kept = { 0 };

	begin(&l, &kept, BOOT);
	ok(!l.resumed.was_there, "a new file has nothing");
	feed(&l, EPOCH, 1, BOOT);
	feed(&l, EPOCH + SECOND, 2, BOOT + SECOND);
	die(&l);
	begin(&l, &kept, BOOT + 4 * SECOND);
	eq(l.resumed.flows, 2, "both flows go on");
	eq(l.resumed.unseen_ns, 3 * SECOND, "nobody looked for three seconds");
	eq(l.resumed.packets, 2, "all packets are counted");
	eq(pl_flow_cache_clocks(l.cache), 2, "whose clock is known");
	feed(&l, EPOCH + 5 * SECOND, 1, BOOT + 5 * SECOND);
	die(&l);
	begin(&l, &kept, BOOT + 7 * SECOND);
	feed(&l, EPOCH + 8 * SECOND, 1, BOOT + 8 * SECOND);
	feed(&l, EPOCH + 8 * SECOND, 3, BOOT + 8 * SECOND);
	pl_flow_cache_leave(l.cache, EPOCH + 8 * SECOND);
	eq(kept.n, 3, "a record of each");
	for (uint32_t i = 0; i < kept.n; i++) {
		const struct pl_flow288 *r = &kept.records[i];

		eq(r->unseen_ns, r->sport == 1 ? 5 * SECOND : 0,
			"port %u: what lies between its packets", r->sport);
		eq(r->flow_flags, r->sport == 3 ? 0 : PL_FLOW_CONTINUED, "port %u began before",
			r->sport);
	}
	die(&l);
	kept.n = 0;
	begin(&l, &kept, BOOT + 9 * SECOND);
	eq(l.resumed.records, 3, "three records were given away");
	eq(l.resumed.records_packets, 5, "with all packets");
	feed(&l, EPOCH + 10 * SECOND, 1, BOOT + 10 * SECOND);
	pl_flow_cache_finish(l.cache);
	eq(kept.n, 1, "flows without a packet since have no record");
	eq(kept.records[0].unseen_ns, 0, "the outage was before it");
	eq(kept.records[0].first_ts, EPOCH + 10 * SECOND, "which begins with its packet");
	eq(kept.records[0].flow_flags, PL_FLOW_FURTHER | PL_FLOW_CONTINUED, "and is a further one");
	eq(kept.records[0].flow_seq, 3, "numbered on");
	die(&l);
	free(kept.records);
}

/* Live sources whose clocks are 20 s apart: the cache's clock is that of the slower one, by which the flow of
 * the other one lies ahead. */
static void goes_on_apart(void)
{
	struct life l = a_life();
	struct kept kept = { 0 };
	const struct pl_pkt96 slow = packet(EPOCH, 0, 1, 17),
			      fast = packet(EPOCH + 20 * SECOND, 0, 2, 17);

	l.config.live = true;
	begin(&l, &kept, BOOT);
	pl_flow_cache_feed_live(l.cache, &slow, 1, BOOT, EPOCH + 60 * SECOND);
	pl_flow_cache_feed_live(l.cache, &fast, 1, BOOT, EPOCH + 60 * SECOND);
	pl_flow_cache_came(l.cache, l.cache->kept->clock_ns, BOOT, 2);
	die(&l);
	if (open_state(&l) < 0 ||
		pl_flow_cache_new_kept(&l.cache, &l.config, l.state, keep, &kept, &l.diag) < 0)
		abort();
	eq(pl_flow_cache_resume(l.cache, BOOT + 10 * SECOND, &l.resumed, &l.diag), 0);
	pl_flow_cache_begin_live(l.cache, BOOT + 10 * SECOND);
	eq(l.resumed.flows, 2, "flows of both sources go on");
	eq(kept.n, 0, "neither has a record");
	pl_flow_cache_expire_live(l.cache, BOOT + 16 * SECOND);
	eq(kept.n, 1, "the time of the outage counts when no packet comes after it");
	die(&l);
	free(kept.records);
}

/* Flows of TCP: what was awaited before gives no time after. */
static void loses_sight(void)
{
	struct life l = a_life();
	struct kept kept = { 0 };
	struct pl_pkt96 p[3] = { packet(EPOCH, 0, 9, 6), packet(EPOCH + SECOND, 0, 9, 6),
		packet(EPOCH + 7 * SECOND, 1, 9, 6) };

	p[0].tcp_flags = SYN;
	p[1].tcp_flags = ACK;
	p[1].tcp_seq = 1;
	p[1].pay_len = 10;
	p[2].tcp_flags = ACK;
	p[2].tcp_ack = 11;
	begin(&l, &kept, BOOT);
	pl_flow_cache_feed(l.cache, p, 2);
	pl_flow_cache_came(l.cache, p[1].ts_ns, BOOT, 1);
	die(&l);
	begin(&l, &kept, BOOT + 2 * SECOND);
	pl_flow_cache_feed(l.cache, p + 2, 1);
	pl_flow_cache_finish(l.cache);
	eq(kept.n, 1, "one flow");
	eq(kept.records[0].rtt_seq_dst_n, 0, "an answer over the outage is no round trip");
	eq(kept.records[0].rtt_seq_dst_missed, 2, "both segments are missed");
	eq(kept.records[0].role_by, PL_FLOW_ROLE_BY_SYN, "the role stays");
	die(&l);
	free(kept.records);
}

static void ends_idle(void)
{
	struct life l = a_life();
	struct kept kept = { 0 };

	begin(&l, &kept, BOOT);
	feed(&l, EPOCH, 1, BOOT);
	feed(&l, EPOCH + 10 * SECOND, 2, BOOT + 10 * SECOND);
	die(&l);
	begin(&l, &kept, BOOT + 20 * SECOND);
	eq(l.resumed.flows, 1, "one goes on");
	eq(kept.n, 1, "the other was idle for too long meanwhile");
	eq(kept.records[0].end_reason, PL_FLOW_END_IDLE, "and says so");
	die(&l);
	l.config.idle_ns = 2 * SECOND;
	begin(&l, &kept, BOOT + 21 * SECOND);
	eq(l.resumed.ended, 1, "with another timeout the last one is over, too");
	die(&l);
	free(kept.records);
}

/* More outages than the list has room for, all of them in one record. */
static void many_outages(void)
{
	struct life l = a_life();
	struct kept kept = { 0 };
	uint64_t t = 0, packets = 0;

	l.config.idle_ns = 100 * SECOND;
	begin(&l, &kept, BOOT);
	for (uint32_t i = 0; i < PL_FLOW_OUTAGES + 2; i++) {
		feed(&l, EPOCH + t, 1, BOOT + t);
		die(&l);
		t += SECOND;
		begin(&l, &kept, BOOT + t);
	}
	eq(kept.n, 1, "a record ends when the list is full");
	packets += kept.records[0].pkts_fwd;
	eq(kept.records[0].unseen_ns, (packets - 1) * SECOND, "and has all that were before");
	pl_flow_cache_finish(l.cache);
	eq(packets + kept.records[1].pkts_fwd, PL_FLOW_OUTAGES + 2, "no packet is missing");
	die(&l);
	free(kept.records);
}

/* ---- files ---- */

static void put_aside(const char *why, void (*damage)(void))
{
	struct life l = a_life();
	struct kept kept = { 0 };
	const struct pl_flow_found *found;
	char old[80];
	struct stat st;

	snprintf(old, sizeof(old), "%s.old", path);
	(void)unlink(old);
	begin(&l, &kept, BOOT);
	feed(&l, EPOCH, 1, BOOT);
	feed(&l, EPOCH, 1, BOOT);
	feed(&l, EPOCH, 2, BOOT);
	die(&l);
	damage();
	begin(&l, &kept, BOOT + SECOND);
	found = pl_flow_state_found(l.state);
	ok(found->lost != NULL && strcmp(found->lost, why) == 0, "%s", why);
	eq(found->flows, 2, "two flows");
	eq(found->packets, 3, "three packets");
	ok(stat(old, &st) == 0, "the file is put aside");
	ok(!l.resumed.was_there && l.cache->counters.live == 0, "and another one begins");
	die(&l);
	(void)unlink(old);
}

static void other_version(void)
{
	patch(offsetof(struct pl_flow_kept, version), &(uint32_t){ 99 }, 4);
}

static void other_seed(void)
{
	patch(offsetof(struct pl_flow_kept, seed), "x", 1);
}

static void other_boot(void)
{
	struct pl_flow_kept k;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || pread(fd, &k, sizeof(k), 0) != (ssize_t)sizeof(k))
		abort();
	close(fd);
	k.boot[3] ^= 1;
	k.check = pl_flow_kept_check(&k);
	patch(0, &k, sizeof(k));
}

static void shorter(void)
{
	struct stat st;

	if (stat(path, &st) < 0 || truncate(path, st.st_size - 1) < 0)
		abort();
}

static void differs(void)
{
	struct life l = a_life(), other = l;
	struct kept kept = { 0 };

	begin(&l, &kept, BOOT);
	feed(&l, EPOCH, 1, BOOT);
	die(&l);
	other.n_points = 1;
	begin(&other, &kept, BOOT);
	ok(pl_flow_state_found(other.state)->differs != NULL, "other points");
	eq(kept.n, 1, "all flows end with a record");
	feed(&other, EPOCH + 1, 2, BOOT);
	die(&other);
	other.config.max_flows = 640;
	begin(&other, &kept, BOOT);
	eq(kept.n, 2, "another size: likewise");
	eq(kept.records[1].flow_seq, 1, "numbered on");
	eq(pl_flow_layout(80).bytes, other.state->guard.bytes, "the file has the new size");
	feed(&other, EPOCH + 2, 3, BOOT);
	die(&other);
	begin(&other, &kept, BOOT);
	eq(other.resumed.flows, 1, "and goes on");
	die(&other);
	free(kept.records);
}

static void half_made(void)
{
	struct life l = a_life();
	struct kept kept = { 0 };

	begin(&l, &kept, BOOT);
	die(&l);
	patch(offsetof(struct pl_flow_kept, version), &(uint32_t){ PL_FLOW_STATE_MAKING }, 4);
	begin(&l, &kept, BOOT);
	ok(!l.resumed.was_there && pl_flow_state_found(l.state)->lost == NULL,
		"who was killed while the file was made left nothing");
	die(&l);
}

static void one_at_a_time(void)
{
	struct life l = a_life(), other = l;
	struct kept kept = { 0 };

	begin(&l, &kept, BOOT);
	eq(open_state(&other), -EBUSY, "a state in use is refused");
	ok(strstr(other.diag.text, "in use by another tap") != NULL, "%s", other.diag.text);
	die(&l);
	eq(open_state(&other), 0, "and is free then");
	pl_flow_state_close(other.state);
}

/* Whoever else may write to the file could have an entry read as something else than was checked. */
static void others_may_write(void)
{
	struct life l = a_life();
	struct kept kept = { 0 };

	begin(&l, &kept, BOOT);
	die(&l);
	if (chmod(path, 0620) < 0)
		abort();
	eq(open_state(&l), -EKEYREJECTED, "a file that a group may write is refused");
	if (geteuid() != 0)
		return;
	if (chmod(path, 0600) < 0 || chown(path, 12345, 0) < 0)
		abort();
	eq(open_state(&l), -EKEYREJECTED, "and one of another user");
}

static void is_cut(void)
{
	struct life l = a_life();
	struct kept kept = { 0 };
	uint64_t pages = 0, lost, packets = 0;

	l.config.max_flows = 1024;
	begin(&l, &kept, BOOT);
	for (uint16_t i = 0; i < 500; i++)
		feed(&l, EPOCH + i, i, BOOT);
	eq(pl_flow_cache_cut(l.cache, &pages), 0, "nothing is cut");
	eq(pages, 0);
	if (truncate(path, (off_t)(pl_flow_layout(128).flows + 200 * 1000)) < 0)
		abort();
	for (uint16_t i = 0; i < 500; i++)
		feed(&l, EPOCH + 1000 + i, i, BOOT);
	lost = pl_flow_cache_cut(l.cache, &pages);
	ok(pages > 0 && lost > 0 && lost < 500, "%" PRIu64 " flows were in %" PRIu64 " pages", lost,
		pages);
	eq(pl_flow_cache_state_counters(l.cache)->damaged, lost, "all of them are counted");
	/* By chance more flows than fit share a bucket, and one of them is evicted. */
	ok(l.cache->counters.live <= 500 &&
			l.cache->counters.live + l.cache->counters.ended_evicted >= 500,
		"and began anew: %" PRIu64, l.cache->counters.live);
	pl_flow_cache_finish(l.cache);
	for (uint32_t i = 0; i < kept.n; i++)
		packets += kept.records[i].pkts_fwd;
	ok(packets >= 500 && packets < 1000, "%" PRIu64 " packets are in records", packets);
	die(&l);
	free(kept.records);
}

int main(void)
{
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(path, sizeof(path), "%s/state", folder);
	goes_on();
	goes_on_apart();
	loses_sight();
	ends_idle();
	many_outages();
	put_aside("another version of pathline left it", other_version);
	put_aside("its header is damaged", other_seed);
	put_aside("it is of before the machine was started again", other_boot);
	put_aside("it was cut", shorter);
	differs();
	half_made();
	one_at_a_time();
	others_may_write();
	is_cut();
	(void)unlink(path);
	(void)rmdir(folder);
	return pl_test_done();
}
