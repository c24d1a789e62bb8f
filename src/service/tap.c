/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a tap. */
#include "service/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "flow/live.h"
#include "service/tap_account.h"
#include "service/tap_counts.h"
#include "service/tap_drops.h"
#include "service/tap_exporters.h"
#include "service/tap_floods.h"
#include "service/tap_kernels.h"
#include "service/tap_places.h"
#include "service/tap_rules.h"
#include "service/tap_source.h"
#include "service/tap_state.h"
#include "wire/linktype.h"

#define DRAIN_TURNS   64  /* most turns in which sockets are emptied at the end */
#define FILE_WAIT_MS  500 /* for a pipe; a signal may come just before the wait */
#define PAUSE_MOST_NS UINT64_C(100000000)
#define PRINT_NS      UINT64_C(200000000)
#define EXPIRE_NS     UINT64_C(1000000000)
#define LOOK_NS       UINT64_C(100000000) /* shared: when a capture has no more packets yet */
#define EXPORTERS     4096                /* most exporters of tmpkt/1 that are tracked */

/* ---- records ---- */

/* Expires flows, also when no records come. */
static void expire_flows(struct pl_tap_service *t, uint64_t now_ns)
{
	if (t->flows == NULL || !t->live || now_ns < t->expire_ns)
		return;
	t->expire_ns = now_ns + EXPIRE_NS;
	pl_tap_state_look(t);
	pl_flow_cache_expire_live(t->flows, now_ns);
}

/* Takes records received from others; rules apply to them, too. */
static void take_received(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct pl_tap_service *t = arg;
	const struct pl_pkt96 *in = records;
	const enum pl_clock_kind clock = pl_tmpkt_receiver_clock(t->receiver);

	pl_tap_service_clock(t, clock);
	if (kind != PL_FLAT_PKT96 && pl_tap_asked_for(t, kind)) {
		pl_tap_service_give(t, kind, records, n);
		return;
	}
	if (kind != PL_FLAT_PKT96 || (!pl_tap_asked_for(t, kind) && t->flows == NULL)) {
		t->other_kinds += n;
		return;
	}
	while (n > 0) {
		const uint32_t some = n < PL_BATCH_MAX ? n : PL_BATCH_MAX;

		uint32_t taken;

		memcpy(t->made, in, some * sizeof(*in));
		taken = pl_tap_rule(&t->tap, t->made, some, clock);
		pl_tap_exporters_watch(t, t->made, taken);
		pl_tap_service_packets(t, t->made, taken);
		in += some;
		n -= some;
	}
}

/* Says that there are packets of a link type that is not read; once, unless another type
 * follows. */
static void tell_unread(struct pl_tap_service *t, unsigned int port)
{
	const uint32_t number = t->tap.unread - 1;
	const char *name;

	if (t->tap.unread == 0 || t->told_unread == t->tap.unread)
		return;
	t->told_unread = t->tap.unread;
	name = pl_linktype_name((uint16_t)number);
	pl_say("%s: link type %u%s%s%s is not read: its packets have no records",
		pl_port_name(t->ports[port]), number, name != NULL ? " (" : "",
		name != NULL ? name : "", name != NULL ? ")" : "");
}

static void take(struct pl_tap_service *t, unsigned int port, const struct pl_batch *packets)
{
	uint32_t n;

	t->from = port;
	t->tap.point = pl_tap_place_point(t, t->port_sources[port], t->point);
	t->receiving = t->datagrams[port];
	if (t->receiving) {
		pl_tmpkt_receiver_feed(t->receiver, packets);
		t->receiving = false;
		return;
	}
	do {
		n = pl_tap_batch(&t->tap, packets, t->made, PL_BATCH_MAX);
		if (n > 0)
			pl_tap_service_clock(t, t->tap.clock);
		pl_tap_service_packets(t, t->made, n);
		pl_tap_service_give(t, PL_FLAT_DNS64, t->dns, t->tap.n_dns);
	} while (t->tap.more);
	tell_unread(t, port);
}

/* Sleeps to keep the rate at which a file's records are wanted. */
static void keep_rate(struct pl_tap_service *t)
{
	const uint64_t now_ns = pl_clock_mono_ns();
	uint64_t due_ns;

	if (t->o->rate <= 0)
		return;
	due_ns = t->begun_ns + (uint64_t)((double)t->tap.stats.records / t->o->rate * 1e9);
	if (due_ns <= now_ns)
		return;
	due_ns -= now_ns;
	if (due_ns > PAUSE_MOST_NS)
		due_ns = PAUSE_MOST_NS;
	(void)nanosleep(&(struct timespec){ .tv_nsec = (long)due_ns }, NULL);
}

static bool too_early(const struct pl_tap_service *t)
{
	return t->o->rate > 0 && (double)t->tap.stats.records / t->o->rate * 1e9 >
					 (double)(pl_clock_mono_ns() - t->begun_ns);
}

/* Reads batches of a port. Returns negative errno with diag when the port is broken. */
static int receive(struct pl_tap_service *t, unsigned int port, struct pl_diag *diag)
{
	for (int i = 0; i < PL_TAP_BATCHES_A_TURN && !pl_tap_service_enough(t); i++) {
		int r;

		if (!t->live && too_early(t))
			return 0;
		r = pl_port_recv(t->ports[port], &t->packets,
			t->live || t->o->shared ? 0 : FILE_WAIT_MS, diag);
		if (r == -ENODATA) {
			t->ended[port] = true;
			t->n_ended++;
			return 0;
		}
		/* An interface that goes or returns is logged only; the port stays. */
		if (r == -ENETDOWN || r == -EAGAIN) {
			pl_say_diag(diag);
			*diag = (struct pl_diag){ .text = "" };
			return 0;
		}
		if (r <= 0)
			return r;
		take(t, port, &t->packets);
		pl_port_release(t->ports[port], &t->packets);
	}
	return 0;
}

/* ---- opening ---- */

static int open_outs(struct pl_tap_service *t, struct pl_diag *diag)
{
	const struct pl_tap_out_settings settings = {
		.kind = t->o->out, .exporter = t->o->exporter, .directed = pl_tap_is_of_this_host(t)
	};
	int r = 0;

	if (t->o->n_to > PL_TAP_OUTS_MAX) {
		pl_diag_set(diag, "at most %d outputs", PL_TAP_OUTS_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; r == 0 && i < t->o->n_to; i++) {
		r = pl_tap_out_open(&t->outs[i], t->o->to[i], &settings, diag);
		t->n_outs += r == 0;
	}
	return r;
}

static void interfaces(void *s, struct pl_confine *confine)
{
	const struct pl_tap_service *t = s;

	for (size_t i = 0; i < t->o->n_sources; i++)
		pl_confine_uri(confine, t->o->sources[i], false);
}

static int files(void *s, struct pl_confine *confine)
{
	const struct pl_tap_service *t = s;
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->o->n_to; i++)
		r = pl_tap_out_files(t->o->to[i], confine);
	return r == 0 ? pl_confine_path(confine, t->o->rules_file, false) : r;
}

static int make_flows(struct pl_tap_service *t, struct pl_diag *diag)
{
	int r;

	t->flow_config = t->o->flow;
	t->flow_config.live = t->live;
	r = t->o->flow_state != NULL ? pl_tap_state_open(t, diag)
				     : pl_flow_cache_new(&t->flows, &t->flow_config,
					       pl_tap_service_take_flows, t, diag);
	if (r == 0)
		pl_tap_listening_begin(t);
	return r;
}

static int acquire(void *s, const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_tap_service *t = s;
	int r;

	t->point = t->o->point;
	t->tap = (struct pl_tap){
		.inner = t->o->inner, .vxlan_ports = t->o->vxlan_ports, .rules = t->o->rules
	};
	if (pl_tap_asked_for(t, PL_FLAT_DNS64))
		t->tap.dns = t->dns;
	r = t->o->rules_file != NULL ? pl_tap_rules_read(&t->tap.rules, t->o->rules_file, diag) : 0;
	t->whole = pl_tap_rules_look_inside(&t->tap.rules);
	if (r == 0)
		r = pl_tap_service_rules_fit(t, &t->tap.rules, diag);
	if (r == 0)
		r = pl_tap_open_sources(t, rights, diag);
	if (r == 0 && t->o->in_time) {
		t->waiting = calloc(t->n_ports, sizeof(*t->waiting));
		r = t->waiting != NULL ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = pl_tap_counts_begin(t, diag);
	if (r == 0)
		r = pl_tmpkt_receiver_new(&t->receiver, EXPORTERS, t->o->prove, take_received, t);
	/* The flow state is opened together with the files, even if flows are requested only
	 * later. */
	if (r == 0 && (pl_tap_asked_for(t, PL_FLAT_FLOW288) || t->o->flow_state != NULL))
		r = make_flows(t, diag);
	return r;
}

static int open_service(void *s, struct pl_diag *diag)
{
	struct pl_tap_service *t = s;
	const int r = open_outs(t, diag);

	t->begun_ns = pl_clock_mono_ns();
	t->due_ns = t->state != NULL ? 0 : UINT64_MAX;
	t->began = r == 0;
	return r;
}

/* ---- running ---- */

static unsigned int fds(void *s, struct pollfd *ret, unsigned int max)
{
	struct pl_tap_service *t = s;
	unsigned int n = 0;

	/* poll(2) ignores a descriptor of -1. */
	for (; t->live && n < t->n_ports && n < max; n++)
		ret[n] = (struct pollfd){ .fd = t->ended[n] ? -1 : pl_port_fd(t->ports[n]),
			.events = POLLIN };
	for (unsigned int i = 0; i < t->n_kernels && n < max; i++)
		ret[n++] =
			(struct pollfd){ .fd = pl_tap_kernel_fd(t->kernels[i]), .events = POLLIN };
	n = pl_tap_drops_fds(t, ret, n, max);
	return t->live ? pl_tap_floods_fds(t, ret, n, max) : n;
}

static void turn_outs(struct pl_tap_service *t)
{
	const uint64_t now_ns = pl_clock_mono_ns(), look_ns = pl_tap_listening_turn(t, now_ns);

	expire_flows(t, now_ns);
	t->due_ns = t->flows != NULL && t->live && t->expire_ns < look_ns ? t->expire_ns : look_ns;
	/* The consumer's output may depend on the time. */
	if (t->o->print.records != NULL && t->live && now_ns + PRINT_NS < t->due_ns)
		t->due_ns = now_ns + PRINT_NS;
	for (unsigned int i = 0; i < t->n_outs; i++) {
		const uint64_t due = t->outs[i]->driver->turn(t->outs[i], now_ns);

		if (due < t->due_ns)
			t->due_ns = due;
	}
	t->due_ns = pl_tap_drops_due(t, pl_tap_kernels_due(t, t->due_ns));
	if (t->o->print.records != NULL)
		t->o->print.turned(t->o->print.arg);
}

/* Stops reading a broken port, and logs it; other ports go on. */
static void give_up(struct pl_tap_service *t, unsigned int port, struct pl_diag *diag)
{
	pl_say("%s: %s; it is read no more until a restart", pl_port_name(t->ports[port]),
		diag->text);
	*diag = (struct pl_diag){ .text = "" };
	t->ended[port] = true;
	t->n_ended++;
	t->n_broken++;
}

/* Reads the port's next batch unless one waits. 1: done, or the file has ended; 0: not yet. */
static int fill(struct pl_tap_service *t, unsigned int port, struct pl_diag *diag)
{
	struct pl_batch *batch = &t->waiting[port];
	int r;

	if (t->ended[port] || batch->n > 0)
		return 1;
	r = pl_port_recv(t->ports[port], batch, FILE_WAIT_MS, diag);
	if (r == -ENODATA) {
		t->ended[port] = true;
		t->n_ended++;
		return 1;
	}
	if (r > 0)
		t->reached_ns[port] = batch->pkts[0].ts_ns;
	return r > 0 ? 1 : r;
}

/* Finds the file whose batch begins first; *ret is n_ports when all have ended. Returns as fill. */
static int find_first(struct pl_tap_service *t, unsigned int *ret, struct pl_diag *diag)
{
	int r = 1;

	*ret = t->n_ports;
	for (unsigned int i = 0; r == 1 && i < t->n_ports; i++) {
		r = fill(t, i, diag);
		if (!t->ended[i] && (*ret == t->n_ports || t->reached_ns[i] < t->reached_ns[*ret]))
			*ret = i;
	}
	return r;
}

/* Takes the oldest batch when every file has one, so that records come nearly in the order of time.
 * Before the first batch and after each batch, consumers get the time that each file has
 * reached. */
static int receive_in_time(struct pl_tap_service *t, struct pl_diag *diag)
{
	unsigned int first;
	const int r = find_first(t, &first, diag);

	if (r <= 0)
		return r;
	if (t->filled && first < t->n_ports) {
		take(t, first, &t->waiting[first]);
		pl_port_release(t->ports[first], &t->waiting[first]);
		t->waiting[first].n = 0;
	}
	t->filled = true;
	return 0;
}

static int receive_all(struct pl_tap_service *t, const struct pollfd *polled, struct pl_diag *diag)
{
	int r = 0;

	if (t->waiting != NULL)
		return receive_in_time(t, diag);
	for (unsigned int i = 0; r == 0 && i < t->n_ports; i++) {
		if (t->ended[i] || (t->live && polled[i].revents == 0 && !t->has_lanes[i]))
			continue;
		r = receive(t, i, diag);
		if (r < 0 && t->o->shared) {
			give_up(t, i, diag);
			r = 0;
		}
	}
	return r;
}

/* The end of captures ends their flows, also where the process goes on. */
static void end_flows(struct pl_tap_service *t)
{
	if (t->live || t->flows == NULL || t->n_ports == 0 || t->n_ended < t->n_ports ||
		pl_flow_cache_counters(t->flows)->live == 0)
		return;
	pl_flow_cache_finish(t->flows);
}

static int turn(void *s, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_tap_service *t = s;
	const uint64_t before = t->tap.stats.packets;
	int r = pl_tap_state_begin(t, diag);

	if (!t->live)
		keep_rate(t);
	if (r == 0)
		r = receive_all(t, polled, diag);
	if (r == 0)
		r = pl_tap_counts_turn(t, now_ns, diag);
	if (r == 0)
		r = pl_tap_kernels_receive(t, polled + t->n_ports, now_ns, diag);
	if (r == 0)
		r = pl_tap_drops_receive(t, diag);
	if (r < 0)
		return r;
	end_flows(t);
	pl_tap_tell_passed(t);
	pl_tap_floods_look(t, now_ns);
	turn_outs(t);
	if (!t->o->shared)
		pl_tap_service_look(t, now_ns);
	if (t->o->shared) {
		if (!t->live && t->n_ended < t->n_ports && now_ns + LOOK_NS < t->due_ns)
			t->due_ns = now_ns + LOOK_NS;
		return !t->live && t->tap.stats.packets != before ? PL_TURN_BUSY : PL_TURN_IDLE;
	}
	return (t->n_ports > 0 && t->n_ended == t->n_ports) || pl_tap_service_enough(t)
		       ? PL_TURN_OVER
		       : PL_TURN_IDLE;
}

static bool waits(void *s)
{
	const struct pl_tap_service *t = s;

	return !t->live && !t->o->shared;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	const struct pl_tap_service *t = s;

	(void)now_ns;
	return t->due_ns;
}

static void drain(void *s)
{
	struct pl_tap_service *t = s;
	struct pl_diag diag = { .text = "" };

	if (pl_tap_state_begin(t, &diag) < 0)
		pl_say_diag(&diag);
	for (unsigned int i = 0; i < t->n_kernels; i++)
		pl_tap_kernel_stop(t->kernels[i]);
	for (unsigned int i = 0; i < t->n_drops; i++)
		pl_tap_drops_stop(t->drops[i]);
	if (pl_tap_counts_end(t, &diag) < 0) {
		t->counts_lost = true;
		pl_say("%s; rows of the windows that were open lack the packets that were counted "
		       "last",
			diag.text);
		diag = (struct pl_diag){ .text = "" };
	}
	pl_tap_kernels_drain(t, &diag);
	for (int i = 0; i < DRAIN_TURNS && t->live && !pl_tap_service_enough(t); i++) {
		const uint64_t before = t->tap.stats.packets + t->kernel_records;

		(void)pl_tap_drops_receive(t, &diag);
		for (unsigned int k = 0; k < t->n_ports; k++)
			(void)(t->ended[k] ? 0 : receive(t, k, &diag));
		if (t->tap.stats.packets + t->kernel_records == before)
			break;
	}
	if (t->state != NULL)
		pl_tap_state_leave(t);
	else if (t->flows != NULL)
		pl_flow_cache_finish(t->flows);
	if (t->o->draining != NULL)
		t->o->draining(t->o->draining_arg);
	for (unsigned int i = 0; i < t->n_outs; i++)
		t->outs[i]->driver->finish(t->outs[i]);
	if (t->o->print.records != NULL)
		t->o->print.turned(t->o->print.arg);
}

int pl_tap_service_want(struct pl_tap_service *t, uint32_t kinds, struct pl_diag *diag)
{
	if (t->flows != NULL || (kinds & 1u << PL_FLAT_FLOW288) == 0)
		return 0;
	return make_flows(t, diag);
}

static void conditions(void *s, struct pl_conditions *ret)
{
	struct pl_tap_service *t = s;

	pl_condition_board_get(&t->conditions, ret);
}

void pl_tap_service_close(struct pl_tap_service *t)
{
	for (unsigned int i = 0; i < t->n_ports; i++) {
		if (t->waiting != NULL && t->waiting[i].n > 0)
			pl_port_release(t->ports[i], &t->waiting[i]);
		(void)pl_port_close(t->ports[i]);
	}
	free(t->waiting);
	t->waiting = NULL;
	for (unsigned int i = 0; i < t->n_kernels; i++)
		pl_tap_kernel_close(t->kernels[i]);
	for (unsigned int i = 0; i < t->n_drops; i++)
		pl_tap_drops_close(t->drops[i]);
	for (unsigned int i = 0; i < t->n_outs; i++)
		pl_tap_out_close(t->outs[i]);
	pl_tmpkt_receiver_free(t->receiver);
	pl_tap_listening_end(t);
	pl_flow_cache_free(t->flows);
	t->flows = NULL;
	pl_tap_state_close(t);
	t->n_ports = t->n_outs = t->n_kernels = t->n_drops = 0;
	t->receiver = NULL;
}

const struct pl_service_ops pl_tap_service_ops = {
	.name = "tap",
	.interfaces = interfaces,
	.files = files,
	.acquire = acquire,
	.open = open_service,
	.fds = fds,
	.turn = turn,
	.waits = waits,
	.due_ns = due_ns,
	.conditions = conditions,
	.reload = pl_tap_rules_reload,
	.drain = drain,
	.account = pl_tap_put_text,
	.counters = pl_tap_put,
};
