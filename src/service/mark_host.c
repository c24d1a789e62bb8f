/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a host's marker, meter or domain edge. */
#include "service/mark_host.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>

#include "base/clock.h"
#include "hostmark/step.h"
#include "mark/pair.h"
#include "netio/tai.h"
#include "service/tap_rules.h"

#define LOOK_NS UINT64_C(1000000000)
/* Most unread blocks before the current one: later blocks reuse the counters of older ones. */
#define BEHIND  (PL_MARK_KEPT - 2)

/* ---- time ---- */

static void read_clock(struct pl_mark_host *h)
{
	struct timex t = { .modes = 0 };
	struct pl_mark_clock *c = &h->clock;

	*c = (struct pl_mark_clock){ .error_ns = h->o->clock_error_ns,
		.tai_offset = (uint16_t)(pl_tai_ahead_ns() / 1000000000) };
	if (adjtimex(&t) < 0)
		return;
	c->synced = (t.status & STA_UNSYNC) == 0;
	if (c->error_ns == UINT64_MAX && c->synced)
		c->error_ns = (uint64_t)t.maxerror * 1000;
}

static uint64_t period(const struct pl_mark_host *h)
{
	return h->o->kernel.setup.period_ns;
}

static unsigned int method(const struct pl_mark_host *h)
{
	return h->o->kernel.setup.method;
}

/* Reads both clocks at one time. Returns false when each attempt was interrupted for too long. */
static bool read_both(uint64_t *ret_mono_ns, uint64_t *ret_tai_ns)
{
	for (int i = 0; i < 4; i++) {
		const uint64_t before = pl_clock_mono_ns();

		*ret_tai_ns = pl_clock_read(CLOCK_TAI);
		*ret_mono_ns = pl_clock_mono_ns();
		if (*ret_mono_ns - before < PL_MARK_STEP_NS / 4)
			return true;
	}
	return false;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* After the clock was set back: blocks behind `last` come again. Their counts, and flags up to
 * them, are of the time before. */
static void drop_behind(struct pl_mark_host *h, uint64_t last)
{
	struct pl_mark_watch *w = pl_hostmark_watch(h->kernel);

	(void)pl_hostmark_tick(h->kernel);
	pl_hostmark_drop_behind(h->kernel, last);
	w->no_room_block = least(w->no_room_block, last);
	w->in_use_block = least(w->in_use_block, last);
	w->torn_block = least(w->torn_block, last);
}

/* Detects a clock step, which moves blocks: blocks at the old and the new time are flagged, and
 * reading continues at the new one. */
static void watch_clock(struct pl_mark_host *h)
{
	struct pl_mark_watch *w = pl_hostmark_watch(h->kernel);
	struct pl_mark_step step;
	uint64_t now_ns, tai;

	if (!read_both(&now_ns, &tai))
		return;
	step = pl_mark_look_at_clock(w, now_ns, tai, period(h), pl_hostmark_next(h->kernel));
	if (!step.is)
		return;
	h->steps++;
	pl_say("the clock was set by %.3f s: the blocks of this time are marked as such",
		(double)step.moved_ns / 1e9);
	/* Early packets are counted in the next block, in cyclic marking in the one behind it. */
	w->stepped_block = step.last + pl_mark_reach(method(h));
	if (step.moved_ns < 0)
		drop_behind(h, w->stepped_block);
	if (step.next != pl_hostmark_next(h->kernel))
		pl_hostmark_set_next(h->kernel, step.next);
}

/* ---- records ---- */

static void flush(struct pl_mark_host *h)
{
	for (unsigned int i = 0; i < h->n_outs; i++)
		h->outs[i]->driver->put(h->outs[i], h->batch, h->n_batch);
	if (h->o->records != NULL)
		h->o->records(h->o->arg, h->batch, h->n_batch);
	h->n_batch = 0;
}

static void take(
	void *arg, const struct pl_mark_key *key, const struct pl_mark_cell *cell, bool overwritten)
{
	struct pl_mark_host *h = arg;
	struct pl_mark128 *record = &h->batch[h->n_batch];
	struct pl_mark_flow flow = {
		.sport = key->sport, .dport = key->dport, .proto = (uint8_t)key->proto
	};

	if ((key->proto & PL_MARK_HAS_ID) != 0) {
		flow.proto = 0;
		flow.has_flow_id = 1;
		flow.flow_id = key->proto & ~PL_MARK_HAS_ID;
	}
	memcpy(flow.src.b, key->src, sizeof(flow.src.b));
	memcpy(flow.dst.b, key->dst, sizeof(flow.dst.b));
	pl_mark_record(record, &h->point, &flow, cell->block, cell);
	if (overwritten) {
		record->mark_flags |= PL_MARK_IS_PARTIAL;
		h->overwritten++;
	}
	h->records++;
	if (++h->n_batch == PL_MARK_HOST_BATCH)
		flush(h);
}

/* Returns the last block to which a packet seen until now can belong. */
static uint64_t reached(const struct pl_mark_host *h)
{
	return (pl_clock_read(CLOCK_TAI) + period(h) / 2) / period(h) + pl_mark_reach(method(h)) -
	       1;
}

/* Flags all blocks reached so far for overflows, packets that could not be read and bits in use since
 * the last check. */
static void look_at_counts(struct pl_mark_host *h)
{
	struct pl_mark_watch *w = pl_hostmark_watch(h->kernel);
	struct pl_mark_counts now;
	uint64_t overflow, unread;

	pl_hostmark_counts(h->kernel, &now);
	unread = now.marker.unread + now.meter.unread;
	overflow = now.marker.overflow + now.meter.overflow;
	if (overflow != w->overflow)
		w->no_room_block = reached(h);
	if (unread != w->unread)
		w->torn_block = reached(h);
	if (now.marker.in_use != w->in_use)
		w->in_use_block = reached(h);
	w->overflow = overflow;
	w->unread = unread;
	w->in_use = now.marker.in_use;
}

/* Sets the block of a program without a clock, and flags blocks for which that was too late. */
static void tick(struct pl_mark_host *h)
{
	const struct pl_ticker_state s = pl_hostmark_tick(h->kernel);

	if (s.late != h->late_changes)
		pl_say("the block was changed %.3f s too late: counts up to block %" PRIu64
		       " are of no known block, and have no loss",
			(double)s.worst_ns / 1e9, s.unsure);
	h->late_changes = s.late;
	h->unsure = s.unsure;
}

/* Fills in the part that all records of a block share. */
static void set_point(struct pl_mark_host *h, uint64_t block)
{
	const struct pl_hostmark_options *k = &h->o->kernel;
	const struct pl_mark_terms terms = pl_mark_terms_of(&k->setup, 0);
	const struct pl_mark_watch *w = pl_hostmark_watch(h->kernel);
	uint32_t flags = k->role == PL_HOSTMARK_MARKER ? PL_MARK_IS_MARKER : 0;

	tick(h);
	look_at_counts(h);
	read_clock(h);
	flags |= h->clock.synced ? PL_MARK_IS_SYNCED : 0;
	flags |= block <= w->stepped_block ? PL_MARK_IS_STEPPED : 0;
	flags |= block <= w->no_room_block ? PL_MARK_NO_ROOM : 0;
	flags |= block <= w->in_use_block ? PL_MARK_IN_USE : 0;
	flags |= k->setup.ticks != 0 ? PL_MARK_UNTIMED : 0;
	flags |= block <= h->unsure ? PL_MARK_LATE_CHANGE : 0;
	flags |= pl_mark_terms_flags(&terms);
	if (block <= w->torn_block || !pl_hostmark_attached(h->kernel))
		flags |= PL_MARK_IS_PARTIAL;
	h->point = (struct pl_mark_point){ .point = h->o->point,
		.method = (uint8_t)k->setup.method,
		.period_ns = k->setup.period_ns,
		.flags = (uint16_t)flags,
		.tai_offset = h->clock.tai_offset,
		.clock_error_ns = h->clock.error_ns };
}

static void read_block(struct pl_mark_host *h, uint64_t block)
{
	set_point(h, block);
	pl_hostmark_read(h->kernel, block, PL_MARK_HOST_IDLE_BLOCKS, take, h);
	flush(h);
	h->flows = pl_hostmark_flows(h->kernel);
	h->blocks++;
	pl_hostmark_set_next(h->kernel, block + 1);
}

static bool enough(const struct pl_mark_host *h)
{
	return h->o->full != NULL && h->o->full(h->o->arg);
}

/* Starts with the first block that is observed completely. Early packets of the next one or two
 * blocks may have reached the meter already, and packets that passed the marker unmarked may look
 * like packets of the following blocks. In pulse marking the first block ends a count that began
 * before this process. */
static void begin_blocks(struct pl_mark_host *h)
{
	const uint64_t block = pl_clock_read(CLOCK_TAI) / period(h) + 1 + pl_mark_reach(method(h));

	if (pl_hostmark_next(h->kernel) != 0)
		return;
	if (method(h) == PL_MARK_PULSE)
		pl_hostmark_watch(h->kernel)->torn_block = block;
	pl_hostmark_set_next(h->kernel, block);
}

static void read_blocks(struct pl_mark_host *h)
{
	const uint64_t tai = pl_clock_read(CLOCK_TAI), now = tai / period(h);
	uint64_t next = pl_hostmark_next(h->kernel);

	if (next + BEHIND < now) {
		h->missed += now - BEHIND - next;
		pl_say("%" PRIu64 " blocks were not read: this process came too late to them",
			now - BEHIND - next);
		next = now - BEHIND;
		pl_hostmark_set_next(h->kernel, next);
	}
	while (!enough(h) && pl_mark_read_at(method(h), next, period(h)) <= tai)
		read_block(h, next++);
}

/* ---- before marking ---- */

/* Starts marking after the check time. Returns -EBUSY with diag when the bits are in use. */
static int check_use(struct pl_mark_host *h, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_mark_counts c;

	if (h->armed_ns == 0)
		return 0;
	pl_hostmark_counts(h->kernel, &c);
	if (c.marker.in_use > 0) {
		pl_diag_set(diag,
			"%s: %" PRIu64 " of %" PRIu64
			" packets to be marked have a marking bit set already: another application or marker uses it; choose another --bit, or --check 0 to mark all the same",
			h->o->kernel.dev, c.marker.in_use, c.marker.checked);
		return -EBUSY;
	}
	if (now_ns < h->armed_ns)
		return 0;
	h->armed_ns = 0;
	pl_say("nobody uses the bit: %" PRIu64 " packets were looked at; marking begins",
		c.marker.checked);
	pl_hostmark_arm(h->kernel);
	begin_blocks(h);
	return 0;
}

static void begin_marking(struct pl_mark_host *h)
{
	if (h->o->kernel.role == PL_HOSTMARK_EDGE)
		return;
	if (h->o->kernel.role == PL_HOSTMARK_MARKER) {
		if (h->o->check_ns > 0 && !pl_hostmark_resumed(h->kernel)) {
			h->armed_ns = pl_clock_mono_ns() + h->o->check_ns;
			return;
		}
		pl_hostmark_arm(h->kernel);
	}
	begin_blocks(h);
}

/* ---- opening ---- */

static void interfaces(void *s, struct pl_confine *confine)
{
	struct pl_mark_host *h = s;

	snprintf(
		h->uri, sizeof(h->uri), "%s:%s", h->o->kernel.xdp ? "xdp" : "tc", h->o->kernel.dev);
	pl_confine_uri(confine, h->uri, false);
}

static int files(void *s, struct pl_confine *confine)
{
	const struct pl_mark_host *h = s;
	int r = pl_confine_path(confine, h->o->rules_file, false);

	/* Needed to remove pins when marking does not start. */
	if (r == 0)
		r = pl_confine_path(confine, h->o->kernel.pin, true);
	for (size_t i = 0; r == 0 && i < h->o->n_to; i++)
		r = pl_tap_out_files(h->o->to[i], confine);
	return r;
}

static int open_outs(struct pl_mark_host *h, struct pl_diag *diag)
{
	const struct pl_tap_out_settings settings = { .kind = PL_FLAT_MARK128,
		.exporter = h->o->point };
	int r = 0;

	for (size_t i = 0; r == 0 && i < h->o->n_to && i < PL_MARK_HOST_TO_MAX; i++) {
		r = pl_tap_out_open(&h->outs[i], h->o->to[i], &settings, diag);
		if (r == 0 && h->outs[i]->driver->clock != NULL)
			h->outs[i]->driver->clock(h->outs[i], PL_STAMP_TAI);
		h->n_outs += r == 0;
	}
	return r;
}

/* ---- probes ---- */

/* Resolves the destination of probes, and adds a rule that marks them. */
static int prepare_probe(struct pl_mark_host *h, struct pl_diag *diag)
{
	const struct pl_mark_setup *u = &h->o->kernel.setup;
	int r;

	if (h->o->probe == NULL)
		return 0;
	r = pl_probe_resolve(&h->probed, h->o->probe, diag);
	if (r == 0 && (u->versions & (h->probed.sa.ss_family == AF_INET ? PL_MARK_IP4
									: PL_MARK_IP6)) == 0) {
		pl_diag_set(diag, "--probe %s: packets of this version of IP have no such --bit",
			h->o->probe);
		r = -EINVAL;
	}
	return r == 0 ? pl_probe_add_rule(&h->rules, &h->probed, diag) : r;
}

/* Sends probes that are due, but none before packets are marked. */
static void send_probe(struct pl_mark_host *h)
{
	if (h->probe != NULL && h->armed_ns == 0)
		pl_probe_send(h->probe, pl_clock_read(CLOCK_TAI));
}

static int open_probe(struct pl_mark_host *h, struct pl_diag *diag)
{
	const struct pl_mark_setup *u = &h->o->kernel.setup;
	const struct pl_probe_options o = { .dev = h->o->kernel.dev,
		.to = h->probed,
		.in_block = h->o->probes,
		.period_ns = u->period_ns,
		.from_ns = u->from_ns };

	if (h->o->probe == NULL)
		return 0;
	return pl_probe_open(&h->probe, &o, pl_clock_read(CLOCK_TAI) + h->o->check_ns, diag);
}

static int acquire(void *s, const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_mark_host *h = s;
	struct pl_hostmark_options kernel = h->o->kernel;
	int r = 0;

	h->rules = h->o->rules;
	if (h->o->rules_file != NULL)
		r = pl_tap_rules_read(&h->rules, h->o->rules_file, diag);
	if (r == 0)
		r = prepare_probe(h, diag);
	if (r == 0)
		r = pl_hostmark_check_rules(&h->rules, diag);
	kernel.rules = &h->rules;
	kernel.rights = rights;
	if (r == 0)
		r = pl_hostmark_open(&h->kernel, &kernel, diag);
	return r == 0 ? open_probe(h, diag) : r;
}

/* Stores flags at once, because another process may have to continue from the pins. */
static void tear(struct pl_mark_host *h)
{
	pl_hostmark_watch(h->kernel)->torn_block = reached(h);
	pl_hostmark_set_next(h->kernel, pl_hostmark_next(h->kernel));
}

static int open_service(void *s, struct pl_diag *diag)
{
	struct pl_mark_host *h = s;
	struct pl_mark_watch *w = pl_hostmark_watch(h->kernel);
	int r = open_outs(h, diag);

	if (r < 0)
		return r;
	if (!pl_hostmark_resumed(h->kernel)) {
		*w = (struct pl_mark_watch){ 0 };
		look_at_counts(h);
		w->no_room_block = w->in_use_block = w->torn_block = 0;
	} else if (pl_hostmark_is_anew(h->kernel)) {
		tear(h);
	}
	begin_marking(h);
	r = pl_hostmark_start_ticks(h->kernel, diag);
	h->began = r == 0;
	return r;
}

/* ---- running ---- */

static unsigned int fds(void *s, struct pollfd *ret, unsigned int max)
{
	const struct pl_mark_host *h = s;

	if (max == 0)
		return 0;
	ret[0] = (struct pollfd){ .fd = pl_hostmark_fd(h->kernel), .events = POLLIN };
	return 1;
}

/* An interface that goes or returns is logged only; the program is attached again. */
static int watch_interface(struct pl_mark_host *h, struct pl_diag *diag)
{
	const bool before = pl_hostmark_attached(h->kernel);
	const int r = pl_hostmark_turn(h->kernel, diag);

	/* Packets may have passed uncounted. */
	if (!before || !pl_hostmark_attached(h->kernel))
		tear(h);
	if (r != -ENETDOWN && r != -EAGAIN)
		return r;
	pl_say_diag(diag);
	*diag = (struct pl_diag){ .text = "" };
	return 0;
}

static int turn(void *s, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_mark_host *h = s;
	int r = polled[0].revents != 0 ? watch_interface(h, diag) : 0;

	if (r == 0 && h->o->kernel.role == PL_HOSTMARK_EDGE)
		return PL_TURN_IDLE;
	if (r == 0)
		r = check_use(h, now_ns, diag);
	if (r == 0 && h->armed_ns == 0) {
		watch_clock(h);
		send_probe(h);
		read_blocks(h);
	}
	if (r < 0)
		return r;
	h->outs_due_ns = UINT64_MAX;
	for (unsigned int i = 0; i < h->n_outs; i++) {
		const uint64_t due = h->outs[i]->driver->turn(h->outs[i], now_ns);

		if (due < h->outs_due_ns)
			h->outs_due_ns = due;
	}
	if (h->o->turned != NULL)
		h->o->turned(h->o->arg);
	return enough(h) ? PL_TURN_OVER : PL_TURN_IDLE;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	struct pl_mark_host *h = s;
	uint64_t due = now_ns + LOOK_NS, tai, at;

	if (h->o->kernel.role == PL_HOSTMARK_EDGE)
		return due;
	if (h->armed_ns != 0)
		return h->armed_ns < due ? h->armed_ns : due;
	tai = pl_clock_read(CLOCK_TAI);
	at = pl_mark_read_at(method(h), pl_hostmark_next(h->kernel), period(h));
	if (h->probe != NULL && pl_probe_due_ns(h->probe) < at)
		at = pl_probe_due_ns(h->probe);
	if (at <= tai)
		return now_ns;
	if (now_ns + (at - tai) < due)
		due = now_ns + (at - tai);
	if (h->outs_due_ns < due)
		due = h->outs_due_ns;
	return due;
}

static void drain(void *s)
{
	struct pl_mark_host *h = s;

	for (unsigned int i = 0; i < h->n_outs; i++)
		h->outs[i]->driver->finish(h->outs[i]);
	if (h->o->turned != NULL)
		h->o->turned(h->o->arg);
}

bool pl_mark_host_complete(const struct pl_mark_host *h)
{
	for (unsigned int i = 0; i < h->n_outs; i++) {
		if (h->outs[i]->driver->lost(h->outs[i]) > 0)
			return false;
	}
	return true;
}

void pl_mark_host_close(struct pl_mark_host *h)
{
	for (unsigned int i = 0; i < h->n_outs; i++)
		pl_tap_out_close(h->outs[i]);
	h->n_outs = 0;
	pl_probe_close(h->probe);
	h->probe = NULL;
	pl_hostmark_close(h->kernel);
	h->kernel = NULL;
}

const struct pl_service_ops pl_mark_host_ops = {
	.name = "mark",
	.interfaces = interfaces,
	.files = files,
	.acquire = acquire,
	.open = open_service,
	.fds = fds,
	.turn = turn,
	.due_ns = due_ns,
	.drain = drain,
	.account = pl_mark_host_put_text,
	.counters = pl_mark_host_put,
};
