/* SPDX-License-Identifier: BSD-2-Clause */
/* The software switch as a service: ports on interfaces, the match-action engine, queues, and a
 * control socket for changing entries and reading counters. */
#pragma once

#include "base/stats.h"
#include "dataplane/program.h"
#include "dataplane/queues.h"
#include "dataplane/truth_log.h"
#include "netio/port.h"
#include "runtime/runtime.h"
#include "tapout/tap_out.h"

#define PL_SWITCH_LANES_MAX 8
#define PL_SWITCH_OUTS_MAX  8

struct pl_switch_port {
	uint16_t number;
	const char *name, *uri; /* as the program has them */
	char label[16];         /* name of a port without one */
	uint32_t mtu;
	struct pl_port *lanes[PL_SWITCH_LANES_MAX]; /* sockets: queues of the interface */
	unsigned int n_lanes;
	bool down;
	struct pl_dp_port *queues;
	uint64_t served_ns;  /* packets due until then have left the queues */
	uint32_t queued_len; /* of the packet that left the queues last, when it was queued */
	/* The frame being sent, at the port's rate, and when its last bit leaves; NULL: none. */
	struct pl_dp_packet *sending;
	uint64_t last_bit_ns;
	/* Frames to be sent, and the packets that hold them. */
	struct pl_batch batch;
	struct pl_dp_packet *packets[PL_BATCH_MAX];
	uint64_t rx_packets, rx_bytes, rx_oversize, tx_packets, tx_bytes, tx_dropped;
};

struct pl_switch_control;

struct pl_switch {
	const struct pl_dp_program *program; /* set by the owner, stays */
	const char *file;                    /* read again on SIGHUP; NULL: none */
	struct pl_dp_program reloaded;       /* program of the last reload */
	uint64_t macs[PL_DP_PORTS_MAX + 1];  /* of interfaces, at opening or after they came back */
	struct pl_dp_pool *pool;
	struct pl_dp_pipeline *pipeline;
	struct pl_switch_port *ports;
	unsigned int n_ports;
	struct pl_switch_port *by_number[PL_DP_PORTS_MAX + 1];
	struct pl_switch_control *control;
	struct pl_dp_truth_log *truth; /* NULL: not configured */
	/* Outputs of block records, as many as the program names. */
	struct pl_tap_out *outs[PL_SWITCH_OUTS_MAX];
	unsigned int n_outs;
	uint64_t outs_due_ns;  /* by the monotonic clock */
	unsigned int port_fds; /* how many of the polled descriptors are ports */
	struct pl_batch received;
	/* Time of day in the node, which never goes back; its lead over the host's time; and when
	 * that was found, by the monotonic clock. */
	uint64_t now_ns, ahead_ns, mono_ns;
	/* The clock of the file, which counts true time from the opening on by the monotonic clock,
	 * and its error at now_ns. */
	struct pl_dp_clock clock;
	uint64_t clock_mono_ns;
	int64_t error_ns;
	/* The last step of that time, and the time behind it. */
	uint64_t step_ns, stepped_ns;
#define PL_STAT PL_STAT_MEMBER
#include "service/switch_stats.def"
#undef PL_STAT
};

/* The service is a struct pl_switch, zeroed but for `program` and `file`. Opening fails with the
 * errors of ports, -EADDRINUSE for a control socket that another switch has, -ENOMEM. */
extern const struct pl_service_ops pl_switch_service;
void pl_switch_close(struct pl_switch *s);

/* Returns the time of day in the node, given the host's clocks. */
uint64_t pl_switch_time(struct pl_switch *s, uint64_t real_ns, uint64_t mono_ns);

/* Builds a pipeline of the program for the open ports. Returns negative errno with diag. */
int pl_switch_build(struct pl_switch *s, const struct pl_dp_program *program,
	struct pl_dp_pipeline **ret, struct pl_diag *diag);

/* ---- switch_marking.c ---- */

/* Opens the outputs of block records that the program names. Returns errors with diag. */
int pl_switch_marking_files(const struct pl_switch *s, struct pl_confine *confine);
int pl_switch_marking_open(struct pl_switch *s, struct pl_diag *diag);
void pl_switch_marking_block(void *sw, const struct pl_mark128 *record);
void pl_switch_marking_clock(void *sw, bool *ret_synced, uint64_t *ret_error_ns);
/* Makes block records that are due by the node's time, and runs turns of the outputs. */
void pl_switch_marking_turn(struct pl_switch *s, uint64_t mono_ns);
/* Returns the time of the next turn, by the monotonic clock. */
uint64_t pl_switch_marking_due_ns(struct pl_switch *s, uint64_t mono_ns);
void pl_switch_marking_close(struct pl_switch *s);

/* ---- switch_reload.c ---- */

/* Reads the file again: tables, groups, cells, queues, and names, MTUs and settings of ports change
 * between two packets; logs the result. A file with an error, or with changes that need a restart,
 * changes nothing. */
void pl_switch_reload(void *sw);

/* ---- switch_account.c ---- */

extern const struct pl_stats pl_switch_stats;
void pl_switch_put_text(void *sw, struct pl_buf *text);
void pl_switch_put(void *sw, const struct pl_account *a);

/* ---- switch_control.c ---- */

#define PL_SWITCH_CLIENTS_MAX 8
#define PL_SWITCH_LINE_MAX    (1u << 20)  /* bytes of a request */
#define PL_SWITCH_ANSWER_MAX  (16u << 20) /* bytes of an answer */

/* Opens a Unix socket for its owner only. A socket file that nobody listens on is replaced. Returns
 * negative errno with diag. */
int pl_switch_control_open(struct pl_switch_control **ret, struct pl_switch *s, const char *path,
	struct pl_diag *diag);
void pl_switch_control_close(struct pl_switch_control *c);
unsigned int pl_switch_control_fds(
	const struct pl_switch_control *c, struct pollfd *ret, unsigned int max);
/* Handles requests, one of each client at a time. */
void pl_switch_control_turn(struct pl_switch_control *c, uint64_t now_ns);
/* Time of the next turn: now for a waiting request, else when a stalled client is dropped. */
uint64_t pl_switch_control_due_ns(const struct pl_switch_control *c);

/* ---- switch_answer.c ---- */

/* Executes a request (a line of JSON) and writes the answer, a JSON object. */
void pl_switch_answer(struct pl_switch *s, const char *request, size_t len, struct pl_buf *ret);
