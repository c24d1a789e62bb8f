/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the switch: frames of ports through the engine, its queues, and out again. */
#include "service/switch.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "dataplane/drop_event.h"
#include "dataplane/field.h"
#include "netio/link.h"
#include "runtime/say.h"
#include "wire/cursor.h"
#include "wire/layers.h"

#define FRAME_MAX      9728 /* bytes of the longest frame: jumbo, with tags */
#define PACKETS_MAX    32768
#define BATCHES_A_TURN 4
#define AT_ONCE        64 /* packets that pass tables and queues together: all fit into the first cache */
#define TRUTH_EVENTS   8192 /* 1 MB, in a lab for each switch; twice as many take 6 MB */
/* While the node's time is ahead, it passes slower by 1 part in this number: 500 ppm, as with
 * adjtime. */
#define SLOWER         2000
/* The host's two clocks are read one after the other: a smaller difference is a pause between the
 * readings, and not a step of the clock. */
#define STEP_MIN_NS    UINT64_C(100000000)

/* ---- time ---- */

/* Adds a forward step of the clock to the times of waiting packets, so that the step does not count
 * as time in a queue. */
static void clock_set(struct pl_switch *s, uint64_t step_ns)
{
	for (unsigned int i = 0; i < s->n_ports; i++) {
		pl_dp_port_clock_set(s->ports[i].queues, step_ns);
		s->ports[i].served_ns += step_ns;
		s->ports[i].last_bit_ns += step_ns;
	}
	s->step_ns = step_ns;
}

/* Returns how far the clock of the file is ahead of the host's; below 0: behind. */
static int64_t clock_error(const struct pl_switch *s, uint64_t mono_ns)
{
	const uint64_t true_ns = s->clock.since_ns + (mono_ns - s->clock_mono_ns);

	return (int64_t)(pl_dp_clock_read(&s->clock, true_ns) - true_ns);
}

/* After the host's clock is set back, the node's time continues, a little slower than the host's,
 * until that has caught up: queues, meters and telemetry rely on time that never goes back. */
uint64_t pl_switch_time(struct pl_switch *s, uint64_t real_ns, uint64_t mono_ns)
{
	const uint64_t passed = mono_ns - s->mono_ns;

	s->error_ns = clock_error(s, mono_ns);
	real_ns += (uint64_t)s->error_ns;
	if (s->mono_ns != 0 && real_ns >= s->now_ns + passed + STEP_MIN_NS) {
		clock_set(s, real_ns - s->now_ns - passed);
		s->stepped_ns = real_ns;
	}
	if (real_ns >= s->now_ns)
		s->now_ns = real_ns;
	else
		s->now_ns += passed - passed / SLOWER;
	s->mono_ns = mono_ns;
	s->ahead_ns = s->now_ns > real_ns ? s->now_ns - real_ns : 0;
	return s->now_ns;
}

static uint64_t time_now(struct pl_switch *s)
{
	return pl_switch_time(s, pl_clock_real_ns(), pl_clock_mono_ns());
}

/* ---- sending ---- */

static void send_batch(struct pl_switch *s, struct pl_switch_port *port)
{
	const uint32_t n = port->batch.n;
	struct pl_batch rest = port->batch;
	uint32_t done = 0;

	while (done < n) {
		struct pl_diag diag = { .text = "" };
		int r = port->down ? -ENETDOWN : pl_port_send(port->lanes[0], &rest, &diag);
		const uint32_t went = r > 0 ? (uint32_t)r : 0;

		for (uint32_t i = done; i < done + went; i++) {
			port->tx_packets++;
			port->tx_bytes += port->packets[i]->len;
		}
		s->sent += went;
		done += went;
		/* The interface refused the frame behind the sent ones. */
		if (done < n && went < rest.n) {
			port->tx_dropped++;
			s->unsent++;
			done++;
		}
		rest.n = n - done;
		memcpy(rest.pkts, port->batch.pkts + done, rest.n * sizeof(rest.pkts[0]));
	}
	for (uint32_t i = 0; i < n; i++)
		pl_dp_packet_free(port->packets[i]);
	port->batch.n = 0;
}

static void put_out(struct pl_switch *s, struct pl_switch_port *port, struct pl_dp_packet *pkt)
{
	const uint32_t i = port->batch.n++;

	port->packets[i] = pkt;
	port->batch.pkts[i] = (struct pl_packet){
		.data = pkt->data, .len = pkt->len, .wire_len = pkt->len, .link = PL_LINK_ETHERNET
	};
	if (port->batch.n == PL_BATCH_MAX)
		send_batch(s, port);
}

/* Sends a frame when its last bit has left: at a limited rate that is later, and later still when
 * telemetry made it longer. A port sends one frame at a time; its queues give no other before. */
static void start_sending(
	struct pl_switch *s, struct pl_switch_port *port, struct pl_dp_packet *pkt)
{
	uint64_t last_bit_ns = pkt->out_ns;

	if (pkt->len != port->queued_len)
		last_bit_ns = pl_dp_port_grew(
			port->queues, (int32_t)pkt->len - (int32_t)port->queued_len);
	if (last_bit_ns <= s->now_ns) {
		put_out(s, port, pkt);
	} else {
		port->sending = pkt;
		port->last_bit_ns = last_bit_ns;
	}
}

static void end_sending(struct pl_switch *s, struct pl_switch_port *port)
{
	put_out(s, port, port->sending);
	port->sending = NULL;
}

static void out(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	struct pl_switch *s = arg;
	struct pl_switch_port *port = s->by_number[pkt->out_port];

	if (stage == PL_DP_EGRESS)
		start_sending(s, port, pkt);
	else if (!pl_dp_port_enqueue(port->queues, pkt, s->now_ns))
		pl_dp_pipeline_dropped(s->pipeline, pkt, s->now_ns);
}

/* Logs a drop as a simulation does (dataplane/sim.h), at its port, by the host's clock. */
static void dropped(void *arg, const struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	struct pl_switch *s = arg;
	const bool chosen = stage == PL_DP_EGRESS || pkt->drop == PL_DP_DROP_QUEUE;
	const struct pl_dp_drop_place place = { .ts_ns = s->now_ns - s->ahead_ns -
							 (uint64_t)s->error_ns,
		.node = pl_dp_pipeline_node_id(s->pipeline),
		.port = chosen ? pkt->out_port : pkt->in_port,
		.queue = pkt->queue,
		.came_in = !chosen };
	struct pl_layers layers;
	struct pl_event e;

	if (s->truth == NULL)
		return;
	if (pl_layers_walk(&layers, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET, true) !=
		PL_V_OK)
		layers.flow = (struct pl_flow){ .have = 0 };
	pl_dp_drop_event(&e, &place, &layers.flow, pkt->drop);
	pl_dp_truth_log_event(s->truth, &e);
}

/*
 * Takes due packets of a port from its queues, each with the time at which it may leave, so a late
 * turn does not lower the port's rate. A packet that was not due at the last turn leaves after that
 * turn. Copies that enter a queue during this turn wait for the next one; otherwise a mirror to its
 * own port would never end.
 */
static void leave_queues(struct pl_switch *s, struct pl_switch_port *port)
{
	for (uint32_t held = pl_dp_port_held(port->queues); held > 0; held--) {
		const uint64_t next = pl_dp_port_next(port->queues);
		struct pl_dp_packet *pkt;

		if (next > s->now_ns)
			break;
		pkt = pl_dp_port_dequeue(
			port->queues, next > port->served_ns ? next : port->served_ns);
		if (pkt == NULL)
			break;
		port->queued_len = pkt->len;
		pl_dp_pipeline_egress(s->pipeline, &pkt, 1);
	}
	port->served_ns = s->now_ns;
}

/* Sends frames whose last bit is due, and takes due packets from queues through the egress
 * tables. */
static void serve(struct pl_switch *s)
{
	time_now(s);
	for (unsigned int i = 0; i < s->n_ports; i++) {
		struct pl_switch_port *port = &s->ports[i];

		if (port->sending != NULL && port->last_bit_ns <= s->now_ns)
			end_sending(s, port);
		leave_queues(s, port);
	}
	for (unsigned int i = 0; i < s->n_ports; i++) {
		if (s->ports[i].batch.n > 0)
			send_batch(s, &s->ports[i]);
	}
}

/* ---- receiving ---- */

/* Returns the bytes behind Ethernet and its tags of a frame that is not parsed yet. */
static uint32_t network_bytes(const struct pl_packet *p)
{
	uint32_t at = 14;

	while (at + 4 <= p->len &&
		(pl_be16(p->data + at - 2) == 0x8100 || pl_be16(p->data + at - 2) == 0x88a8))
		at += 4;
	return p->wire_len > at ? p->wire_len - at : 0;
}

static struct pl_dp_packet *take(
	struct pl_switch *s, struct pl_switch_port *port, const struct pl_packet *p)
{
	struct pl_dp_packet *pkt = NULL;

	port->rx_packets++;
	port->rx_bytes += p->wire_len;
	s->received_frames++;
	if (network_bytes(p) > port->mtu) {
		port->rx_oversize++;
		s->oversize++;
	}
	if (p->len < p->wire_len || p->len > FRAME_MAX) {
		s->cut++;
		return NULL;
	}
	pkt = pl_dp_packet_of(s->pool, p->data, p->len);
	if (pkt == NULL) {
		s->no_memory++;
		return NULL;
	}
	pkt->in_port = port->number;
	pkt->in_ns = p->ts_ns != 0 ? p->ts_ns + (uint64_t)s->error_ns + s->ahead_ns : s->now_ns;
	/* The kernel's timestamp is from before the clock was set, forward or back. */
	if (pkt->in_ns + s->step_ns <= s->stepped_ns)
		pkt->in_ns += s->step_ns;
	if (pkt->in_ns > s->now_ns)
		pkt->in_ns = s->now_ns;
	return pkt;
}

/* Takes frames of the batch, from first up to end, into the queues. */
static void take_some(
	struct pl_switch *s, struct pl_switch_port *port, uint32_t first, uint32_t end)
{
	struct pl_dp_packet *packets[AT_ONCE];
	size_t n = 0;

	/* Packets that left earlier must not fill the queues. */
	serve(s);
	for (uint32_t i = first; i < end; i++) {
		const struct pl_packet *p = &s->received.pkts[i];
		/* The port's socket also sees frames that this host sends. */
		struct pl_dp_packet *pkt = p->out ? NULL : take(s, port, p);

		if (pkt != NULL)
			packets[n++] = pkt;
	}
	pl_dp_pipeline_ingress(s->pipeline, packets, n);
}

static void take_batch(struct pl_switch *s, struct pl_switch_port *port)
{
	const uint32_t n = s->received.n;

	for (uint32_t i = 0; i < n; i += AT_ONCE)
		take_some(s, port, i, n - i < AT_ONCE ? n : i + AT_ONCE);
}

/* Reads the interface's MAC address; without an interface the old one stays. */
static void read_mac(struct pl_switch *s, const struct pl_switch_port *port)
{
	const char *name = strchr(port->uri, ':') + 1;
	const size_t len = strcspn(name, "?");
	char ifname[IF_NAMESIZE];
	struct ifreq req;

	if (len >= sizeof(ifname))
		return;
	snprintf(ifname, sizeof(ifname), "%.*s", (int)len, name);
	if (pl_link_ask(ifname, SIOCGIFHWADDR, NULL, &req) == 0)
		s->macs[port->number] = pl_dp_mac_get((const uint8_t *)req.ifr_hwaddr.sa_data);
}

/* Applies the MAC address of an interface that came back: it may be another one of that name. */
static void came_back(struct pl_switch *s, const struct pl_switch_port *port)
{
	const struct pl_dp_conf_port *conf = s->program->conf.ports.items;

	read_mac(s, port);
	if (conf[port - s->ports].mac == NULL && s->macs[port->number] != 0)
		pl_dp_pipeline_mac(s->pipeline, port->number, s->macs[port->number]);
}

static void went_down(struct pl_switch *s, struct pl_switch_port *port, bool down)
{
	struct pl_dp_packet *pkt, *next;

	port->down = down;
	pl_dp_pipeline_port_up(s->pipeline, port->number, !down);
	if (!down) {
		came_back(s, port);
		return;
	}
	if (port->sending != NULL) {
		end_sending(s, port);
		send_batch(s, port);
	}
	for (pkt = pl_dp_port_flush(port->queues); pkt != NULL; pkt = next) {
		next = pkt->next;
		pl_dp_pipeline_dropped(s->pipeline, pkt, s->now_ns);
	}
}

/* Reads batches of a lane. Returns whether there may be more, or negative errno with diag. */
static int receive(struct pl_switch *s, struct pl_switch_port *port, struct pl_port *lane,
	struct pl_diag *diag)
{
	for (unsigned int i = 0; i < BATCHES_A_TURN; i++) {
		int r = pl_port_recv(lane, &s->received, 0, diag);

		/* An interface that goes or returns is logged only; the port stays. */
		if (r == -ENETDOWN || r == -EAGAIN) {
			went_down(s, port, r == -ENETDOWN);
			pl_say_diag(diag);
			*diag = (struct pl_diag){ .text = "" };
			return 0;
		}
		if (r <= 0)
			return r;
		take_batch(s, port);
		pl_port_release(lane, &s->received);
		serve(s);
	}
	return 1;
}

/* ---- opening ---- */

static int open_lanes(struct pl_switch *s, struct pl_switch_port *port,
	const struct pl_rights *rights, struct pl_diag *diag)
{
	const char *why;
	int n = pl_port_uri_sockets(port->uri, diag);

	if (n > PL_SWITCH_LANES_MAX) {
		pl_diag_set(diag,
			"%s: a port of a switch has %d queues at most; choose with queues=",
			port->uri, PL_SWITCH_LANES_MAX);
		return -EINVAL;
	}
	for (int i = 0; i < n; i++) {
		const struct pl_port_options o = { .index = (unsigned int)i,
			.of = (unsigned int)n,
			.with = i > 0 ? port->lanes[0] : NULL,
			.rights = rights,
			.sends = true,
			.tap_bytes = FRAME_MAX };
		int r = pl_port_open(&port->lanes[i], port->uri, PL_PORT_RECV, &o, diag);

		if (r < 0)
			return r;
		port->n_lanes++;
	}
	if (n > 0 && !pl_port_sends(port->lanes[0], &why)) {
		pl_diag_set(diag, "%s cannot send: %s", port->uri, why);
		return -ENOTSUP;
	}
	(void)s;
	return n < 0 ? n : 0;
}

static int open_ports(struct pl_switch *s, const struct pl_rights *rights, struct pl_diag *diag)
{
	const struct pl_dp_conf_port *conf = s->program->conf.ports.items;
	int r = 0;

	s->ports = calloc(s->program->conf.ports.n, sizeof(*s->ports));
	if (s->ports == NULL)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < s->program->conf.ports.n; i++) {
		struct pl_switch_port *port = &s->ports[s->n_ports++];
		struct pl_dp_port_cfg cfg;

		port->number = (uint16_t)conf[i].number;
		snprintf(port->label, sizeof(port->label), "port%u", port->number);
		port->name = conf[i].name != NULL ? conf[i].name : port->label;
		port->uri = conf[i].uri;
		port->mtu = (uint32_t)conf[i].mtu;
		s->by_number[port->number] = port;
		pl_dp_program_queues(s->program, i, &cfg);
		r = pl_dp_port_new(&port->queues, &cfg, diag);
		if (r == 0)
			r = open_lanes(s, port, rights, diag);
	}
	return r;
}

int pl_switch_build(struct pl_switch *s, const struct pl_dp_program *program,
	struct pl_dp_pipeline **ret, struct pl_diag *diag)
{
	const struct pl_dp_pipeline_options o = { .pool = s->pool,
		.ops = { .out = out,
			.dropped = dropped,
			.block = pl_switch_marking_block,
			.clock = pl_switch_marking_clock,
			.arg = s } };

	return pl_dp_program_build(program, &o, s->macs, ret, diag);
}

static int acquire(void *sw, const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_switch *s = sw;
	int r = open_ports(s, rights, diag);

	s->clock_mono_ns = pl_clock_mono_ns();
	pl_dp_program_clock(s->program, pl_clock_real_ns(), &s->clock);
	/* The timer slack, 50 us by default, would be added to the time of each frame. */
	(void)prctl(PR_SET_TIMERSLACK, 1);
	if (r == 0) {
		for (unsigned int i = 0; i < s->n_ports; i++)
			read_mac(s, &s->ports[i]);
		r = pl_dp_pool_new(&s->pool, PL_DP_HEADROOM + FRAME_MAX + 512, PACKETS_MAX);
	}
	if (r == 0)
		r = pl_switch_build(s, s->program, &s->pipeline, diag);
	if (r == 0 && s->program->conf.control != NULL)
		r = pl_switch_control_open(&s->control, s, s->program->conf.control, diag);
	if (r == 0 && s->program->conf.truth != NULL)
		r = pl_dp_truth_log_new(
			&s->truth, s->program->conf.truth, TRUTH_EVENTS, 0, 0, diag);
	if (r == 0)
		r = pl_switch_marking_open(s, diag);
	return r;
}

static int files(void *sw, struct pl_confine *confine)
{
	const struct pl_switch *s = sw;
	int r = pl_confine_path(confine, s->file, false);

	return r == 0 ? pl_switch_marking_files(s, confine) : r;
}

static void interfaces(void *sw, struct pl_confine *confine)
{
	const struct pl_switch *s = sw;
	const struct pl_dp_conf_port *conf = s->program->conf.ports.items;

	for (size_t i = 0; i < s->program->conf.ports.n; i++)
		pl_confine_uri(confine, conf[i].uri, true);
}

/* ---- running ---- */

static unsigned int fds(void *sw, struct pollfd *ret, unsigned int max)
{
	struct pl_switch *s = sw;
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->n_ports; i++) {
		for (unsigned int k = 0; k < s->ports[i].n_lanes && n < max; k++)
			ret[n++] = (struct pollfd){ .fd = pl_port_fd(s->ports[i].lanes[k]),
				.events = POLLIN };
	}
	s->port_fds = n;
	return s->control != NULL ? n + pl_switch_control_fds(s->control, ret + n, max - n) : n;
}

static int turn(void *sw, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_switch *s = sw;
	unsigned int n = 0;
	int more = 0;

	for (unsigned int i = 0; i < s->n_ports; i++) {
		struct pl_switch_port *port = &s->ports[i];

		for (unsigned int k = 0; k < port->n_lanes; k++, n++) {
			int r = 0;

			if (n >= s->port_fds || polled[n].revents != 0)
				r = receive(s, port, port->lanes[k], diag);
			if (r < 0)
				return r;
			more |= r;
		}
	}
	serve(s);
	pl_switch_marking_turn(s, now_ns);
	if (s->control != NULL)
		pl_switch_control_turn(s->control, now_ns);
	return more != 0 ? PL_TURN_BUSY : PL_TURN_IDLE;
}

static uint64_t due_ns(void *sw, uint64_t now_ns)
{
	struct pl_switch *s = sw;
	uint64_t next = UINT64_MAX, due = UINT64_MAX;

	for (unsigned int i = 0; i < s->n_ports; i++) {
		const struct pl_switch_port *port = &s->ports[i];
		/* No packet leaves a queue before this time. */
		const uint64_t t =
			port->sending != NULL ? port->last_bit_ns : pl_dp_port_next(port->queues);

		if (t < next)
			next = t;
	}
	if (next != UINT64_MAX) {
		const uint64_t at = time_now(s);

		due = next > at ? now_ns + (next - at) : now_ns;
	}
	if (s->control != NULL && pl_switch_control_due_ns(s->control) < due)
		due = pl_switch_control_due_ns(s->control);
	if (pl_switch_marking_due_ns(s, now_ns) < due)
		due = pl_switch_marking_due_ns(s, now_ns);
	return due;
}

static void drain(void *sw)
{
	struct pl_switch *s = sw;
	struct pl_diag diag = { .text = "" };

	for (unsigned int i = 0; i < s->n_ports; i++) {
		for (unsigned int k = 0; k < s->ports[i].n_lanes; k++)
			(void)receive(s, &s->ports[i], s->ports[i].lanes[k], &diag);
	}
	/* Packets still in queues are counted as dropped, not sent ahead of time. */
	for (unsigned int i = 0; i < s->n_ports; i++)
		went_down(s, &s->ports[i], true);
}

void pl_switch_close(struct pl_switch *s)
{
	pl_switch_control_close(s->control);
	pl_switch_marking_close(s);
	for (unsigned int i = 0; i < s->n_ports; i++) {
		pl_dp_packet_free(s->ports[i].sending);
		pl_dp_port_free(s->ports[i].queues);
		for (unsigned int k = 0; k < s->ports[i].n_lanes; k++)
			(void)pl_port_close(s->ports[i].lanes[k]);
	}
	free(s->ports);
	pl_dp_pipeline_free(s->pipeline);
	pl_dp_pool_free(s->pool);
	pl_dp_truth_log_free(s->truth);
	pl_dp_program_done(&s->reloaded);
}

const struct pl_service_ops pl_switch_service = {
	.name = "switch",
	.interfaces = interfaces,
	.files = files,
	.acquire = acquire,
	.fds = fds,
	.turn = turn,
	.due_ns = due_ns,
	.reload = pl_switch_reload,
	.drain = drain,
	.account = pl_switch_put_text,
	.counters = pl_switch_put,
};
