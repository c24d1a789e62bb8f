/* SPDX-License-Identifier: BSD-2-Clause */
/* A watched marking domain with a clock of the test's own: what is summed, what begins and ends as an
 * event, and what hostile records cannot do. */
#include <errno.h>

#include "base/test.h"
#include "mark/domain.h"

#define MS     UINT64_C(1000000)
#define PERIOD (1000 * MS)
#define WAIT   (500 * MS)
#define FIRST  UINT64_C(2000000)
#define FLOWS  3u

static struct {
	struct pl_event events[256];
	unsigned int n;
	unsigned int results;
} got;

static void keep(void *arg, const struct pl_event *e)
{
	(void)arg;
	if (got.n < 256)
		got.events[got.n++] = *e;
}

static void count(void *arg, const struct pl_mark_result *r)
{
	(void)arg;
	(void)r;
	got.results++;
}

static struct pl_mark_network network;

static void make_network(
	const char *const *points, size_t n, const char *const *links, size_t n_links)
{
	ok(pl_mark_network_make(
		   &network, (char *const *)points, n, (char *const *)links, n_links, NULL) == 0);
}

static struct pl_mark_domain *open_domain(uint32_t blocks)
{
	const struct pl_mark_domain_config config = { .name = "net",
		.network = &network,
		.method = PL_MARK_STEP,
		.period_ns = PERIOD,
		.wait_ns = WAIT,
		.blocks_max = blocks,
		.loss_above = 1,
		.delay_above_ns = 50 * MS,
		.end_after = 2,
		.event = keep,
		.result = count };
	struct pl_mark_domain *d = NULL;

	memset(&got, 0, sizeof(got));
	ok(pl_mark_domain_new(&d, &config, NULL) == 0);
	return d;
}

/* Of one segment, a>b. */
static struct pl_mark_domain *open_two(void)
{
	static const char *const points[] = { "a=1", "b=2" };

	make_network(points, 2, NULL, 0);
	return open_domain(1024);
}

static void close_domain(struct pl_mark_domain *d)
{
	pl_mark_domain_free(d);
	pl_mark_network_done(&network);
}

static struct pl_addr address(uint8_t last)
{
	const uint8_t bytes[4] = { 10, 0, 0, last };

	return pl_addr_v4(bytes);
}

static struct pl_mark128 record(
	uint32_t point, uint64_t block, uint16_t flow, uint64_t packets, uint64_t mean_ms)
{
	return (struct pl_mark128){ .block = block,
		.period_ns = PERIOD,
		.method = PL_MARK_STEP,
		.mark_flags = PL_MARK_IS_SYNCED,
		.point = point,
		.packets = packets,
		.sum_ns = (int64_t)(packets * mean_ms * MS),
		.sport = flow,
		.proto = 17 };
}

static void put(struct pl_mark_domain *d, const struct pl_mark128 *r, bool torn, uint64_t now_ns)
{
	const struct pl_addr sender = address((uint8_t)r->point);

	pl_mark_domain_take(d, &sender, r, 1, torn, now_ns);
}

/* Time at which meters read a block. */
static uint64_t read_at(uint64_t block)
{
	return pl_mark_read_at(PL_MARK_STEP, block, PERIOD);
}

static const struct pl_mark_segment_state *segment(const struct pl_mark_domain *d, uint32_t i)
{
	uint32_t n;
	const struct pl_mark_segment_state *s = pl_mark_domain_segments(d, &n);

	ok(i < n);
	return &s[i];
}

static const struct pl_event *event(unsigned int i)
{
	static const struct pl_event none;

	ok(i < got.n);
	return i < got.n ? &got.events[i] : &none;
}

static bool is_event(
	const struct pl_event *e, unsigned int kind, unsigned int phase, const char *key)
{
	return e->event == kind && e->phase == phase && strcmp(pl_event_get_key(e).c, key) == 0;
}

/* Loss at the second link in two blocks of eight: the event is of that link and of the whole, and
 * sums are those of the packets. */
static void test_loss(void)
{
	static const char *const points[] = { "a=1", "b=2", "c=3" };
	struct pl_mark_domain *d;
	uint64_t sent = 0, lost = 0;

	make_network(points, 3, NULL, 0);
	d = open_domain(1024);
	for (uint64_t k = FIRST; k < FIRST + 8; k++) {
		const uint64_t gone = k == FIRST + 3 || k == FIRST + 4 ? 20 : 0;

		for (uint16_t f = 1; f <= FLOWS; f++) {
			const struct pl_mark128 r[] = { record(1, k, f, 1000, 100),
				record(2, k, f, 1000, 110),
				record(3, k, f, 1000 - (f == 2 ? 2 * gone : 0), 120) };

			for (unsigned int i = 0; i < 3; i++)
				put(d, &r[i], false, read_at(k));
			sent += 1000;
			lost += f == 2 ? 2 * gone : 0;
		}
		ok(got.results == (k - FIRST + 1) * 3 * FLOWS); /* complete: at once */
		pl_mark_domain_turn(d, pl_mark_domain_due_ns(d));
	}
	ok(segment(d, 0)->book.sent == sent && segment(d, 0)->book.lost == 0);
	ok(segment(d, 1)->book.sent == sent && segment(d, 1)->book.lost == lost);
	ok(segment(d, 2)->book.lost == lost && lost == 80);
	ok(segment(d, 1)->book.delays == 8 * FLOWS - 2);
	ok(got.n == 4);
	ok(is_event(event(0), PL_EVENT_SEGMENT_LOSS, PL_PHASE_BEGIN, "net/b>c"));
	ok(event(0)->value == 40 && event(0)->threshold == 30 && event(0)->sport == 2);
	ok(is_event(event(1), PL_EVENT_SEGMENT_LOSS, PL_PHASE_BEGIN, "net/a>c"));
	ok(is_event(event(2), PL_EVENT_SEGMENT_LOSS, PL_PHASE_END, "net/b>c"));
	ok(event(2)->value == 80);
	ok(pl_event_get_duration_ns(event(2)) == 3 * PERIOD);
	close_domain(d);
}

static void test_delay_and_missing(void)
{
	static const char *const points[] = { "a=1", "b=2" };
	struct pl_mark_domain *d;
	uint32_t n;

	make_network(points, 2, NULL, 0);
	d = open_domain(1024);
	for (uint64_t k = FIRST; k < FIRST + 12; k++) {
		const uint64_t delay = k == FIRST + 2 ? 80 : 10;
		struct pl_mark128 r = record(1, k, 1, 100, 200);

		put(d, &r, false, read_at(k));
		r = record(2, k, 1, 100, 200 + delay);
		/* Its meter is gone for three blocks. */
		if (k < FIRST + 6 || k > FIRST + 8)
			put(d, &r, false, read_at(k));
		pl_mark_domain_turn(d, pl_mark_domain_due_ns(d));
	}
	ok(got.n == 4);
	ok(is_event(event(0), PL_EVENT_SEGMENT_DELAY, PL_PHASE_BEGIN, "net/a>b"));
	ok(event(0)->value == 80 * MS && event(0)->threshold == 50 * MS);
	ok(is_event(event(1), PL_EVENT_SEGMENT_DELAY, PL_PHASE_END, "net/a>b"));
	ok(is_event(event(2), PL_EVENT_POINT_MISSING, PL_PHASE_BEGIN, "net/b"));
	ok(is_event(event(3), PL_EVENT_POINT_MISSING, PL_PHASE_END, "net/b"));
	ok(event(3)->value == 3);
	ok(pl_mark_domain_points(d, &n)[1].missed == 3);
	{
		const struct pl_mark128 r = record(2, FIRST + 6, 1, 100, 210);

		put(d, &r, false, read_at(FIRST + 12));
	}
	ok(pl_mark_domain_points(d, &n)[1].late == 1 && pl_mark_domain_points(d, &n)[0].late == 0);
	/* A missing record never counts as loss. */
	ok(segment(d, 0)->book.lost == 0 && segment(d, 0)->book.withheld == 3);
	ok(segment(d, 0)->alarms[0] == 3);
	close_domain(d);
}

/* Flow 2 never passes the link: of a whole report that is loss, of a torn one it is nothing. */
static void test_absent(bool torn)
{
	struct pl_mark_domain *d = open_two();

	for (uint64_t k = FIRST; k < FIRST + 6; k++) {
		struct pl_mark128 r = record(1, k, 1, 100, 200);

		put(d, &r, false, read_at(k));
		r.sport = 2;
		put(d, &r, false, read_at(k));
		r = record(2, k, 1, 100, 210);
		put(d, &r, torn && k == FIRST + 3, read_at(k));
		pl_mark_domain_turn(d, read_at(k) + WAIT + MS);
	}
	pl_mark_domain_turn(d, read_at(FIRST + 7) + WAIT + MS);
	/* Of the first block nothing is concluded, nor of the last, behind which none came. A torn block
	 * says nothing of itself and of the one before. */
	ok(segment(d, 0)->book.lost == (torn ? 200 : 400));
	ok(segment(d, 0)->book.withheld == (torn ? 4 : 2));
	ok(segment(d, 0)->book.sent == 600 + segment(d, 0)->book.lost);
	close_domain(d);
}

/* A switch sends the records of two points. The rest of a block of one is lost, and what tells so are
 * records of the other: it is no loss of packets. */
static void test_gap(void)
{
	static const char *const points[] = { "a=1", "b=2", "c=3" };
	const struct pl_addr host = address(1), sw = address(9);
	struct pl_mark_domain *d;

	make_network(points, 3, NULL, 0);
	d = open_domain(1024);
	for (uint64_t k = FIRST; k < FIRST + 8; k++) {
		for (uint32_t p = 3; p > 0; p--) {
			struct pl_mark128 r[2] = { record(p, k, 1, 100, 200),
				record(p, k, 2, 100, 200) };
			const bool lost = p == 3 && k == FIRST + 3,
				   tells = p == 2 && k == FIRST + 3;

			pl_mark_domain_take(
				d, p == 1 ? &host : &sw, r, lost ? 1 : 2, tells, read_at(k));
		}
		pl_mark_domain_turn(d, read_at(k) + WAIT + MS);
	}
	pl_mark_domain_turn(d, read_at(FIRST + 9) + WAIT + MS);
	ok(segment(d, 1)->book.lost == 0 && segment(d, 2)->book.lost == 0);
	ok(segment(d, 1)->book.withheld == 1 && segment(d, 1)->alarms[0] == 1);
	ok(segment(d, 0)->book.withheld == 0);
	close_domain(d);
}

/* Records of a clock that is hours ahead, forged or by mistake, are of blocks that do not come for
 * hours. Later records of the point count again. */
static void test_absent_after(uint16_t tai_offset)
{
	struct pl_mark_domain *d = open_two();

	for (uint64_t k = FIRST; k < FIRST + 32; k++) {
		struct pl_mark128 r = record(1, k, 1, 100, 200);

		if (k < FIRST + 8) {
			r = record(2, k + tai_offset, 1, 100, 210);
			r.tai_offset = tai_offset;
			put(d, &r, false, read_at(k));
			continue;
		}
		put(d, &r, false, read_at(k));
		r.sport = 2;
		put(d, &r, false, read_at(k));
		r = record(2, k, 1, 100, 210);
		put(d, &r, false, read_at(k));
		pl_mark_domain_turn(d, read_at(k) + WAIT + MS);
	}
	pl_mark_domain_turn(d, read_at(FIRST + 33) + WAIT + MS);
	/* Of the eight blocks behind those records nothing is concluded, nor of the last. */
	ok(segment(d, 0)->book.lost == 1500);
	close_domain(d);
}

/* Two ways: a flow takes one of them, and is no loss at the other. */
static void test_network(void)
{
	static const char *const points[] = { "in=1", "up=2", "down=3", "out=4" },
				 *const links[] = { "in>up", "in>down", "up>out", "down>out" };
	struct pl_mark_domain *d;

	make_network(points, 4, links, 4);
	ok(network.n_segments == 3);
	d = open_domain(1024);
	for (uint64_t k = FIRST; k < FIRST + 6; k++) {
		for (uint16_t f = 1; f <= 2; f++) {
			struct pl_mark128 r = record(1, k, f, 100, 100);

			put(d, &r, false, read_at(k));
			r = record(f == 1 ? 2 : 3, k, f, 100, 110);
			put(d, &r, false, read_at(k));
			r = record(4, k, f, f == 1 ? 100 : 90, 120);
			put(d, &r, false, read_at(k));
		}
		pl_mark_domain_turn(d, read_at(k) + WAIT + MS);
	}
	pl_mark_domain_turn(d, read_at(FIRST + 7) + WAIT + MS);
	/* Both ways are known of from the second block to the last but one. */
	ok(segment(d, 0)->book.sent == 800 && segment(d, 0)->book.lost == 0);
	ok(segment(d, 1)->book.sent == 800 && segment(d, 1)->book.lost == 40);
	ok(segment(d, 2)->book.sent == 1200 && segment(d, 2)->book.lost == 60);
	close_domain(d);
}

/* Parts of a path and of a network are told beside each link, each way and all of it. */
static void test_zoom(void)
{
	static const char *const path[] = { "a=4", "b=3", "c=2", "d=1" },
				 *const points[] = { "in=1", "up=2", "down=3", "out=4", "far=5" },
				 *const links[] = { "in>up", "in>down", "up>out", "down>out",
					 "out>far" },
				 *const of_path[] = { "b>d", "a>d", "a>b" },
				 *const of_network[] = { "up+down>far", "in>out" };
	static const struct {
		const char *zoom, *said;
	} wrong[] = { { "up>out", "the part of the network is up+down>out" },
		{ "in>x", "names of" }, { "in", "FROM>TO" }, { "in+>out", "FROM>TO" },
		{ "far>in", "no way leads" } };
	struct pl_mark_domain *d;

	make_network(path, 4, NULL, 0);
	ok(pl_mark_network_add_zooms(&network, (char *const *)of_path, 3, NULL) == 0);
	ok(network.n_segments == 5); /* the path and its first link are told already */
	d = open_domain(1024);
	ok(strcmp(segment(d, 4)->name, "b>d") == 0);
	for (uint64_t k = FIRST; k < FIRST + 4; k++) {
		for (uint32_t p = 1; p <= 4; p++) {
			const struct pl_mark128 r = record(p, k, 1, 990 + 2 * p, 100);

			put(d, &r, false, read_at(k));
		}
	}
	pl_mark_domain_finish(d);
	ok(segment(d, 3)->book.lost == 4 * 6 && segment(d, 4)->book.lost == 4 * 4);
	close_domain(d);

	make_network(points, 5, links, 5);
	ok(pl_mark_network_add_zooms(&network, (char *const *)of_network, 2, NULL) == 0);
	ok(network.n_segments == 6);
	d = open_domain(1024);
	ok(strcmp(segment(d, 4)->name, "up+down>far") == 0);
	ok(strcmp(segment(d, 5)->name, "in>out") == 0);
	for (uint64_t k = FIRST; k < FIRST + 4; k++) {
		static const uint64_t packets[] = { 1000, 590, 400, 980, 975 };

		for (uint32_t p = 1; p <= 5; p++) {
			const struct pl_mark128 r = record(p, k, 1, packets[p - 1], 100);

			put(d, &r, false, read_at(k));
		}
	}
	pl_mark_domain_finish(d);
	ok(segment(d, 4)->book.lost == 4 * 15 && segment(d, 5)->book.lost == 4 * 20);
	ok(segment(d, 0)->book.lost + segment(d, 1)->book.lost == segment(d, 5)->book.lost);
	close_domain(d);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct pl_diag diag = { .text = "" };

		make_network(points, 5, links, 5);
		ok(pl_mark_network_add_zooms(&network, (char *const *)&wrong[i].zoom, 1, &diag) ==
			-EINVAL);
		ok(strstr(diag.text, wrong[i].said) != NULL);
		pl_mark_network_done(&network);
	}
}

static void test_clock_and_conflict(void)
{
	struct pl_mark_domain *d = open_two();

	for (uint64_t k = FIRST; k < FIRST + 10; k++) {
		struct pl_mark128 r = record(1, k, 1, 100, 200);

		if (k == FIRST + 1)
			r.mark_flags |= PL_MARK_IN_USE;
		put(d, &r, false, read_at(k));
		/* A time daemon tells TAI at one of them for a while: its blocks are 37 ahead. */
		if (k >= FIRST + 4 && k < FIRST + 6) {
			r = record(2, k + 37, 1, 100, 210);
			r.tai_offset = 37;
		} else {
			r = record(2, k, 1, 100, 210);
		}
		put(d, &r, false, read_at(k));
		pl_mark_domain_turn(d, read_at(k) + WAIT + MS);
	}
	ok(got.n >= 4);
	ok(is_event(event(0), PL_EVENT_MARK_CONFLICT, PL_PHASE_BEGIN, "net/a>b"));
	ok(is_event(event(1), PL_EVENT_MARK_CONFLICT, PL_PHASE_END, "net/a>b"));
	ok(is_event(event(2), PL_EVENT_SEGMENT_CLOCK, PL_PHASE_BEGIN, "net/a>b"));
	ok(is_event(event(got.n - 1), PL_EVENT_SEGMENT_CLOCK, PL_PHASE_END, "net/a>b"));
	ok(segment(d, 0)->book.lost == 0 && segment(d, 0)->book.surplus == 0);
	ok(segment(d, 0)->alarms[1] > 0);
	close_domain(d);
}

/* The clock of the second point is ahead: what it counts in a block, the first one counted periods before.
 * Every second of its records is delayed until it looks punctual. Then its clock is set right. */
static void test_ahead(uint64_t periods)
{
	static const char *const points[] = { "a=1", "b=2" };
	const uint64_t right = FIRST + 12;
	struct pl_mark_domain *d;

	make_network(points, 2, NULL, 0);
	d = open_domain(1024);
	for (uint64_t k = FIRST; k < FIRST + 32; k++) {
		const uint64_t by = k < right ? periods : 0;
		/* Flow 1 sends another number in each block, flow 2 ends. */
		struct pl_mark128 r = record(1, k, 1, 100 + k % 8 * 10, 200);

		put(d, &r, false, read_at(k));
		r = record(1, k, 2, 100, 200);
		if (k < FIRST + 8)
			put(d, &r, false, read_at(k));
		r = record(2, k + by, 1, 100 + k % 8 * 10, 210);
		put(d, &r, false, read_at(k + (k % 2 != 0 ? by : 0)));
		r = record(2, k + by, 2, 100, 210);
		if (k < FIRST + 8)
			put(d, &r, false, read_at(k));
		pl_mark_domain_turn(d, read_at(k) + WAIT + MS);
		ok(segment(d, 0)->book.lost == 0 && segment(d, 0)->book.surplus == 0);
	}
	ok(segment(d, 0)->alarms[6] > 0 && segment(d, 0)->book.sent > 0);
	ok(got.n > 0 && segment(d, 0)->book.withheld < 40);
	for (unsigned int i = 0; i < got.n; i++)
		ok(event(i)->event != PL_EVENT_SEGMENT_LOSS);
	ok(!segment(d, 0)->clock.raised);
	close_domain(d);
}

/* A daemon's clock may be behind by half a period, and a meter that ends tells its last blocks at once. */
static void test_not_ahead(void)
{
	struct pl_mark_domain *d = open_two();

	for (uint64_t k = FIRST; k < FIRST + 8; k++) {
		const bool ends = k == FIRST + 7;
		struct pl_mark128 r[2] = { record(1, k, 1, 100, 200), record(2, k, 1, 100, 210) };

		for (unsigned int i = 0; i < 2; i++) {
			r[i].mark_flags |= ends ? PL_MARK_IS_PARTIAL : 0;
			put(d, &r[i], false, read_at(k) - (ends ? PERIOD : PERIOD / 2));
		}
	}
	pl_mark_domain_finish(d);
	ok(segment(d, 0)->alarms[6] == 0 && segment(d, 0)->alarms[7] == 1);
	ok(segment(d, 0)->book.counted == 7);
	close_domain(d);
}

/* The clock of the second point is two periods behind, and the domain waits for so long: what it counts in a
 * block, the first one counted two blocks before. Its records come as late, which is told of it; one that is
 * only held up now and then, as by a lost datagram, is not told. */
static void test_behind(void)
{
	static const char *const points[] = { "a=1", "b=2" };
	struct pl_mark_domain_config config = { .name = "net",
		.network = &network,
		.method = PL_MARK_STEP,
		.period_ns = PERIOD,
		.wait_ns = 4 * PERIOD,
		.blocks_max = 1024,
		.loss_above = 1,
		.end_after = 1,
		.event = keep,
		.result = count };

	for (unsigned int held = 0; held < 2; held++) {
		const struct pl_mark_point_state *p;
		struct pl_mark_domain *d = NULL;
		uint32_t n;

		make_network(points, 2, NULL, 0);
		ok(pl_mark_domain_new(&d, &config, NULL) == 0);
		for (uint64_t k = FIRST; k < FIRST + 20; k++) {
			struct pl_mark128 r = record(1, k, 1, 100, 200);

			put(d, &r, false, read_at(k));
			r = record(2, held ? k : k - 2, 1, 100, 210);
			put(d, &r, false, read_at(k) + (held && k % 4 != 0 ? 2 * PERIOD : 0));
			p = pl_mark_domain_points(d, &n);
			ok(!pl_mark_is_behind(&p[0], PERIOD) &&
				pl_mark_is_behind(&p[1], PERIOD) ==
					(!held && k >= FIRST + PL_MARK_LAG_BLOCKS));
		}
		ok(held || p[1].lag_ns == 2 * PERIOD);
		close_domain(d);
	}
}

/* A clock drifts out of the guard band: nothing of the block and of the two behind it is counted, and the event
 * says why. */
static void test_beyond(void)
{
	struct pl_mark_domain *d = open_two();

	for (uint64_t k = FIRST; k < FIRST + 6; k++) {
		struct pl_mark128 r = record(1, k, 1, 100, 200);

		put(d, &r, false, read_at(k));
		r = record(2, k, 1, k == FIRST + 1 ? 90 : 100, 210);
		r.mark_flags |= k == FIRST + 1 ? PL_MARK_IS_BEYOND : 0;
		put(d, &r, false, read_at(k));
		pl_mark_domain_turn(d, read_at(k) + WAIT + MS);
	}
	ok(segment(d, 0)->book.counted == 3 && segment(d, 0)->book.lost == 0);
	ok(got.n == 2 && is_event(event(0), PL_EVENT_SEGMENT_CLOCK, PL_PHASE_BEGIN, "net/a>b"));
	ok(is_event(event(1), PL_EVENT_SEGMENT_CLOCK, PL_PHASE_END, "net/a>b"));
	close_domain(d);
}

/* A sender makes flows up, of blocks past, present and to come; the others keep their places, and
 * every record is accounted for. */
static void test_flood(void)
{
	static const char *const points[] = { "a=1", "b=2" };
	const struct pl_addr flooder = address(99);
	const struct pl_mark_correlator_stats *c;
	struct pl_mark_domain *d;
	uint64_t given = 0;

	make_network(points, 2, NULL, 0);
	d = open_domain(64);
	c = pl_mark_domain_correlated(d);
	for (uint64_t k = FIRST; k < FIRST + 50; k++) {
		struct pl_mark128 r;

		for (uint32_t i = 0; i < 1000; i++) {
			r = record(1 + i % 2, k + i % 7 * 1000 - 3000, (uint16_t)(1000 + i), 5, 10);
			r.dport = (uint16_t)k;
			r.tai_offset = (uint16_t)(i % 3 * 1000);
			pl_mark_domain_take(d, &flooder, &r, 1, false, read_at(k));
			r.period_ns = PERIOD * (1 + i);
			pl_mark_domain_take(d, &flooder, &r, 1, false, read_at(k));
			given += 2;
		}
		for (uint16_t f = 1; f <= FLOWS; f++) {
			r = record(1, k, f, 100, 200);
			put(d, &r, false, read_at(k));
			r = record(2, k, f, 100, 210);
			put(d, &r, false, read_at(k));
			given += 2;
		}
		pl_mark_domain_turn(d, read_at(k) + WAIT + MS);
	}
	pl_mark_domain_finish(d);
	ok(segment(d, 0)->book.sent >= 50 * FLOWS * 100);
	ok(c->ahead > 0 && c->late > 0 && c->without_room > 0);
	ok(pl_mark_domain_stats(d)->records == given);
	ok(given == pl_mark_domain_stats(d)->not_allowed + pl_mark_domain_stats(d)->other_settings +
			    c->records);
	ok(c->records == c->taken + c->duplicates + c->late + c->ahead + c->other_points +
				 c->unusable + c->without_room);
	ok(segment(d, 0)->book.sent == segment(d, 0)->book.received + segment(d, 0)->book.lost -
					       segment(d, 0)->book.surplus);
	close_domain(d);
}

/* The host had begun with a clock that was a year ahead, and is set right: what comes is not late for
 * a year. */
static void test_set_back(void)
{
	struct pl_mark_domain *d = open_two();

	for (uint64_t k = FIRST; k < FIRST + 10; k++) {
		const uint64_t block = k < FIRST + 4 ? k + 31536000 : k;

		for (uint16_t f = 1; f <= FLOWS; f++) {
			struct pl_mark128 r = record(1, block, f, 100, 200);

			put(d, &r, false, read_at(block));
			r = record(2, block, f, k % 4 == 3 ? 90 : 100, 210);
			put(d, &r, false, read_at(block));
		}
		pl_mark_domain_turn(d, read_at(block) + WAIT + MS);
	}
	ok(pl_mark_domain_stats(d)->set_back == 1);
	ok(pl_mark_domain_correlated(d)->late == 0);
	ok(segment(d, 0)->book.sent == 10 * FLOWS * 100);
	ok(segment(d, 0)->book.lost == 2 * FLOWS * 10);
	/* The event that lasted ends by the clock that is. */
	ok(got.n >= 2 && is_event(event(0), PL_EVENT_SEGMENT_LOSS, PL_PHASE_BEGIN, "net/a>b"));
	ok(is_event(event(1), PL_EVENT_SEGMENT_LOSS, PL_PHASE_END, "net/a>b"));
	ok(pl_event_get_duration_ns(event(1)) == 0);
	close_domain(d);
}

/* Many flows, a datagram for each: what one costs does not grow with those that are waited for. Else
 * this takes minutes. */
static void test_many(void)
{
	static const char *const points[] = { "a=1", "b=2" };
	enum { MANY = 50000 };
	struct pl_mark_domain *d;

	make_network(points, 2, NULL, 0);
	d = open_domain(3 * MANY);
	for (uint64_t k = FIRST; k < FIRST + 3; k++) {
		for (uint32_t i = 0; i < MANY; i++) {
			struct pl_mark128 r = record(1, k, (uint16_t)i, 10, 100);

			put(d, &r, false, read_at(k) + i);
		}
	}
	/* The first block is told, and what is younger is not. */
	ok(pl_mark_domain_correlated(d)->blocks == 2 * MANY);
	pl_mark_domain_turn(d, read_at(FIRST + 2) + WAIT + MS);
	ok(pl_mark_domain_correlated(d)->blocks == 3 * MANY);
	ok(segment(d, 0)->book.results == 3 * MANY);
	close_domain(d);
}

static void test_allow(void)
{
	static const char *const points[] = { "a=1", "b=2" };
	const struct pl_prefix allow = { .addr = address(1), .bits = 128 };
	struct pl_mark_domain_config config = { .name = "net",
		.network = &network,
		.method = PL_MARK_STEP,
		.period_ns = PERIOD,
		.wait_ns = WAIT,
		.loss_above = 1,
		.end_after = 1,
		.allow = &allow,
		.n_allow = 1,
		.event = keep };
	struct pl_mark128 r = record(2, FIRST, 1, 100, 200);
	struct pl_mark_domain *d = NULL;

	make_network(points, 2, NULL, 0);
	ok(pl_mark_domain_new(&d, &config, NULL) == 0);
	put(d, &r, false, read_at(FIRST));
	r.point = 1;
	put(d, &r, false, read_at(FIRST));
	ok(pl_mark_domain_stats(d)->not_allowed == 1);
	ok(pl_mark_domain_correlated(d)->taken == 1);
	/* Out of a region or a topic: whoever may write there. */
	r.point = 2;
	pl_mark_domain_take(d, &(struct pl_addr){ { 0 } }, &r, 1, false, read_at(FIRST));
	ok(pl_mark_domain_stats(d)->not_allowed == 1);
	ok(pl_mark_domain_correlated(d)->taken == 2);
	pl_mark_domain_free(d);
	config.wait_ns = 16 * PERIOD;
	ok(pl_mark_domain_new(&d, &config, NULL) < 0);
	pl_mark_network_done(&network);
}

/* A reload changes bounds, clock error and senders; everything else stays. */
static void test_change(void)
{
	static const char *const points[] = { "a=1", "b=2" };
	struct pl_mark_domain_config config = { .name = "net",
		.network = &network,
		.method = PL_MARK_STEP,
		.period_ns = PERIOD,
		.wait_ns = WAIT,
		.clock_ns = MS,
		.loss_above = 100,
		.end_after = 1,
		.event = keep };
	struct pl_mark_domain *d = NULL;

	make_network(points, 2, NULL, 0);
	memset(&got, 0, sizeof(got));
	ok(pl_mark_domain_new(&d, &config, NULL) == 0);
	for (uint64_t k = FIRST; k < FIRST + 4; k++) {
		struct pl_mark128 r = record(1, k, 1, 100, 200);

		put(d, &r, false, read_at(k));
		r = record(2, k, 1, 100, 195); /* 5 ms before it was sent */
		put(d, &r, false, read_at(k));
		pl_mark_domain_turn(d, read_at(k) + WAIT + MS);
		/* A clock fault, until clocks may differ as much. */
		ok(segment(d, 0)->alarms[6] == (k < FIRST + 2 ? k - FIRST + 1 : 2));
		if (k != FIRST + 1)
			continue;
		config.clock_ns = 10 * MS;
		config.method = PL_MARK_DOUBLE;
		config.period_ns = 2 * PERIOD;
		config.wait_ns = 0;
		pl_mark_domain_change(d, &config);
	}
	ok(pl_mark_domain_stats(d)->other_settings == 0);
	ok(segment(d, 0)->book.delays == 2);
	ok(got.n == 2 && is_event(event(1), PL_EVENT_SEGMENT_CLOCK, PL_PHASE_END, "net/a>b"));
	close_domain(d);
}

static void test_names(void)
{
	static const char *const twice[] = { "a=1", "a=2" }, *const number[] = { "a=1", "b=1" },
				 *const one[] = { "a=1" }, *const bare[] = { "1", "2" },
				 *const three[] = { "a=1", "b=2", "c=3" },
				 *const unknown[] = { "a>d" }, *const unused[] = { "a>b" };
	char name[64];

	ok(pl_mark_network_make(&network, (char *const *)twice, 2, NULL, 0, NULL) < 0);
	ok(pl_mark_network_make(&network, (char *const *)number, 2, NULL, 0, NULL) < 0);
	ok(pl_mark_network_make(&network, (char *const *)one, 1, NULL, 0, NULL) < 0);
	ok(pl_mark_network_make(
		   &network, (char *const *)three, 3, (char *const *)unknown, 1, NULL) < 0);
	ok(pl_mark_network_make(&network, (char *const *)three, 3, (char *const *)unused, 1, NULL) <
		0);
	ok(pl_mark_network_make(&network, (char *const *)bare, 2, NULL, 0, NULL) == 0);
	pl_mark_network_segment(&network, 0, name, sizeof(name));
	ok(strcmp(name, "1>2") == 0);
	pl_mark_network_segment(&network, 0, name, 3);
	ok(strcmp(name, "~1") == 0);
	pl_mark_network_done(&network);
}

/* Seven ways in, of names as long as they may be: what tells the cluster from all of it is cut off.
 * Both are labels of one metric and keys of events, which must not be the same. */
static void test_long_names(void)
{
	static const char *const points[] = { "interface-no-001=1", "interface-no-002=2",
		"interface-no-003=3", "interface-no-004=4", "interface-no-005=5",
		"interface-no-006=6", "interface-no-007=7", "middle=8", "way-out=9" },
				 *const links[] = { "interface-no-001>middle",
					 "interface-no-002>middle", "interface-no-003>middle",
					 "interface-no-004>middle", "interface-no-005>middle",
					 "interface-no-006>middle", "interface-no-007>middle",
					 "middle>way-out" };
	const struct pl_mark_segment_state *s;
	struct pl_mark_domain *d;
	uint32_t n;

	make_network(points, 9, links, 8);
	d = open_domain(16);
	s = pl_mark_domain_segments(d, &n);
	ok(n == 3);
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < i; k++) {
			ok(strcmp(s[i].name, s[k].name) != 0);
			ok(strcmp(s[i].key.c, s[k].key.c) != 0);
		}
	}
	ok(strlen(s[0].name) == sizeof(s[0].name) - 1);
	ok(strcmp(s[0].name + strlen(s[0].name) - 2, "~1") == 0);
	ok(strcmp(s[2].key.c, "net/interface-no-001+interface-no-002~3") == 0);
	close_domain(d);
}

int main(void)
{
	test_loss();
	test_delay_and_missing();
	test_absent(false);
	test_absent(true);
	test_gap();
	test_absent_after(37);
	test_absent_after(UINT16_MAX);
	test_network();
	test_zoom();
	test_clock_and_conflict();
	test_ahead(2);
	test_ahead(4);
	test_not_ahead();
	test_behind();
	test_beyond();
	test_flood();
	test_many();
	test_set_back();
	test_allow();
	test_change();
	test_names();
	test_long_names();
	return pl_test_done();
}
