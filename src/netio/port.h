/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports: where packets enter and leave. A port is named by a URI:
 *
 *   pcap:FILE  or a bare path      capture file, pcap or pcapng, gzip too when receiving; "-" is
 *                                  standard input or output. Sending writes pcap with nanoseconds,
 *                                  or pcapng when the name ends in .pcapng
 *   udp://HOST:PORT?key=value&...  UDP socket. Receive: an empty host is every address, v4 and v6
 *   afxdp:IFACE?key=value&...      AF_XDP socket on a network interface: frames bypass the network
 *                                  stack. CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF at opening; not in
 *                                  every build
 *   packet:IFACE?key=value&...     AF_PACKET socket with a mapped ring: copies of the frames, the
 *                                  host sees them too. CAP_NET_RAW at opening
 *
 * Other folders register further kinds (pl_port_add): raw/port.h has kafka://BROKER/TOPIC, stored
 * packets.
 *
 * Keys of afxdp: and packet:, which choose the frames; all others are left to the host:
 *   port=N,...     UDP destination ports of reports (32766,54321); "none": no reports
 *   dst=ADDR,...   destination addresses, v4 or v6, at most 16 (any)
 *   vlan=N,...     VLAN ids, of either tag of a frame with two (any, and untagged)
 *   also=KIND,...  more frames, not limited by port and dst: roce1, frames of RoCEv1 (Ethertype
 *                  0x8915); copies of packets that carry telemetry: ioam, int, gre, dscp:N, udp:PORT
 *   ring=N         frames of the ring, a power of two
 * Keys of afxdp::
 *   queues=N,M-K   receive: these queues, one port each (options.index, options.of, options.with);
 *                  send: the first. Default: all queues of the interface; sending: queue 0. A port
 *                  that receives can send too (options.sends)
 *   mode=MODE      auto, native or generic: where the XDP program is attached
 *   copy=COPY      auto, zero (zero-copy or fail) or copy
 * Keys of packet::
 *   fanout=N       receive: N sockets share the interface, a port each; all datagrams of one source
 *                  address reach the same one
 *   hwtstamp=BOOL  receive: ask the driver to stamp every received frame, for all programs and
 *                  beyond the end of this one (netio/hwtstamp.h); opening fails where it cannot
 *                  (off: the NIC's times where the interface has them, else the kernel's)
 *   block=SIZE     receive: the kernel delivers blocks of SIZE bytes, or after 2 ms those that
 *                  are not full (256KiB)
 *
 * Keys of udp://, all optional:
 *   sockets=N      receive: N sockets share the address; all datagrams of one source address
 *                  (whatever its source port) reach the same one. The caller opens each
 *                  (options.index, options.of)
 *   rcvbuf=SIZE    receive: socket buffer to ask for (16MiB)
 *   maxlen=SIZE    receive: longest datagram; longer ones are cut, and counted (64KiB: none is)
 *   timestamp=WHO  receive: "batch" = one clock reading per batch (default), "kernel" = per
 *                  datagram
 *   sndbuf=SIZE    send: socket buffer to ask for
 *   gso=BOOL       send: pass runs of equally long datagrams to the kernel in one piece (off)
 *
 * A receive batch is a loan: every pl_port_recv that returned packets is answered by
 * pl_port_release before the next one. pl_port_send has copied or sent the packets when it returns.
 * A port belongs to one thread.
 *
 * A port outlives its network interface: when the interface goes down or is removed, pl_port_recv
 * returns -ENETDOWN once, with diag, then 0; when it is back, also with another ifindex, the port
 * opens it again and pl_port_recv returns -EAGAIN once, with diag. A new name is reported as
 * -EAGAIN while the interface is up, else as -ENETDOWN. The caller logs either and calls again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/diag.h"
#include "base/stats.h"
#include "wire/packet.h"

struct pl_port;

struct pl_port_stats {
#define PL_STAT PL_STAT_MEMBER
#include "netio/port_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_port_stats_list;

#define PL_PORT_FLOODS 16

/* A sender that filled the socket faster than it was read, and so got a lane: a socket for such
 * senders only. */
struct pl_port_flood {
	struct pl_prefix who; /* an address, or an IPv6 network of 64 bits */
	uint8_t lane;         /* lane that receives it now; 0: the first socket again */
	uint64_t drops;       /* of its datagrams, while no other sender had the lane */
	uint64_t times;       /* number of times that it got a lane */
	uint64_t since_ns;    /* time of the last change of `lane`, monotonic */
};

enum pl_port_mode { PL_PORT_RECV, PL_PORT_SEND };

struct pl_xdp_program;
struct pl_rights;

/* Callbacks for ports that store the position of their reader. mark: notes all packets released so
 * far. settled: returns true when no result of the packets before the last mark would be lost if
 * the process ended; waits for that up to wait_ms. Called by the port's thread within recv, and by
 * the thread that closes the port. */
struct pl_port_reader {
	void (*mark)(void *arg);
	bool (*settled)(void *arg, uint32_t wait_ms);
	void *arg;
};

/* Options beyond the URI; zero is the default. */
struct pl_port_options {
	unsigned int index,
		of; /* this is socket `index` of `of` sharing the address (SO_REUSEPORT) */
	unsigned int snaplen; /* send to a capture file: 0 = whole packets */
	int fd;               /* > 0, pcap: and udp: only: use this open descriptor (a bound socket,
	                           a file) instead of opening one; the port closes it, also when
	                           opening fails */
	struct pl_port
		*with; /* index > 0 of afxdp: and packet:, the port that was opened with index 0:
	                         program and group are shared with it. Needed at opening only */
	const struct pl_xdp_program *program; /* afxdp: the program to attach instead of our own
					       * (netio/xdp.h) */
	const struct pl_rights *rights; /* of another process (netio/rights.h); outlives the port */
	/* A receiving port that shall also send, through its queue, if it can. A packet: port can
	 * with tap_bytes only: it then delivers every frame that enters at once, with completed
	 * checksums, and no frame that leaves */
	bool sends;
	/* udp: senders that flood get sockets of their own, which pl_port_fd does not cover:
	 * pl_port_recv waits for all, and pl_port_lane_fds lists them */
	bool lanes;
	/* udp, receive: packets have the address that they were sent to (dst), also from a socket
	 * of every address; not those of lanes */
	bool tells_dst;
	/* udp: "every address" means IPv6 only; another socket has IPv4 (pl_port_uri_v6only) */
	bool v6only;
	/* afxdp: and packet:, receive, not 0: a tap. Every frame is received, at least its first
	 * tap_bytes. packet: copies entering and leaving frames (pl_packet.out); afxdp: takes
	 * entering frames away from the host, as for a mirror port. The keys that choose reports
	 * (port, dst, vlan, also) are refused. */
	uint32_t tap_bytes;
	bool to_end; /* kafka: ends where the topic ends, instead of waiting for more */
	/* kafka: outlives the port. NULL: released packets count as settled */
	const struct pl_port_reader *reader;
	/* receive, where packets are frames: only those that match this expression of
	 * pcap-filter(7) are given out (netio/pcap_filter.h), the others are counted (not_matched);
	 * NULL: all */
	const char *filter;
};

/* -EINVAL (bad URI), -EBADMSG (not a capture file), or the system's errno, with diag. For a capture
 * file of a link type that is not read, packets come as PL_LINK_UNKNOWN. */
int pl_port_open(struct pl_port **ret_port, const char *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag);

/* Returns the number of sockets that the URI asks for ("?sockets=4", "?fanout=4", the queues of an
 * interface), 1 by default. -EINVAL with diag. Checks the whole URI, so it also serves to check a
 * configuration: an interface that does not exist counts as one queue. */
int pl_port_uri_sockets(const char *uri, struct pl_diag *diag);

/* Checks that an interface's URI can be a tap's (pl_port_options.tap_bytes). Returns 0, also for
 * other kinds of port; -EINVAL with diag when the URI has keys that choose reports. */
int pl_port_uri_tap(const char *uri, struct pl_diag *diag);

/* Returns true when the socket of `uri` must be IPv6 only, because `other`, opened beside it, is
 * every IPv4 address of the same UDP port (udp://[::]:P beside udp://0.0.0.0:P). */
bool pl_port_uri_v6only(const char *uri, const char *other);

/* Properties of a kind of port. */
enum pl_port_can {
	PL_PORT_CAN_LIVE = 1 << 0, /* packets come from a network, not from a file */
	PL_PORT_CAN_SEND = 1 << 1, /* a live port that also sends packets (PL_PORT_SEND) */
	PL_PORT_CAN_INTERFACE =
		1 << 2, /* its target is an interface's name, its packets are frames */
	PL_PORT_CAN_DATAGRAMS =
		1 << 3, /* its packets are payloads; the kernel adds and removes headers */
	PL_PORT_CAN_SHARE =
		1 << 4, /* several sockets may share its address (keys sockets, rcvbuf) */
	PL_PORT_CAN_DETECT = 1 << 5, /* the detector in the kernel can run in front of it */
	PL_PORT_CAN_BOTH = 1 << 6,   /* a receiving port may send too (pl_port_options.sends) */
	PL_PORT_CAN_REPLAY = 1 << 7, /* its packets are stored ones: time is that of the packets */
};

/* Returns the PL_PORT_CAN_* of the URI's kind of port; 0 for a bare file name. */
uint32_t pl_port_uri_can(const char *uri);

/* Returns the scheme of the URI's kind of port: "udp", "pcap", …; NULL for a bare file name. */
const char *pl_port_uri_scheme(const char *uri);

/* Returns the port's canonical name, for logs and labels: "udp://[::]:32766". Valid while the port
 * is open. */
const char *pl_port_name(const struct pl_port *port);

/* Returns the clock that the port's packets are expected to be stamped by. Each packet names its
 * own (pl_packet.clock), because a NIC need not stamp every frame. */
enum pl_clock_kind pl_port_clock(const struct pl_port *port);

/* Returns the bound UDP port, which the kernel chose for port 0; 0 when the port is no UDP
 * socket. */
uint16_t pl_port_local_port(const struct pl_port *port);

/* Returns the descriptor to poll, or -1 when there is none (files). Stays the same while the port
 * is open. */
int pl_port_fd(const struct pl_port *port);

/*
 * Receives up to PL_BATCH_MAX packets into *ret_batch. Returns their number; 0 when none came
 * within timeout_ms (-1 = wait for ever; a signal also returns 0), or none of those that came
 * matches the filter. At the end of a file -ENODATA. A damaged file: the packets before the damage
 * first, then -EBADMSG with diag, which names the file and the byte. -ENETDOWN and -EAGAIN with
 * diag: the interface went, came back or was renamed; call again. After any other negative errno
 * the port cannot be used any more. A packet whose time the file does not have gets ts_ns 0.
 */
int pl_port_recv(
	struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag);
void pl_port_release(struct pl_port *port, struct pl_batch *batch);

/* Returns true when the port can send: one opened for sending, or a receiving one (options.sends)
 * whose driver and queue can. If not, *ret_why (not NULL) is the reason as text, valid while the
 * port is open. */
bool pl_port_sends(const struct pl_port *port, const char **ret_why);

/* Sends the batch: PL_LINK_UDP packets from a socket to the URI's address, frames to an interface
 * or a capture file. Returns how many were taken, or negative errno when none; -EINVAL for a packet
 * of the wrong link type. A port that receives too returns -ENETDOWN and takes none while its
 * interface is down or gone: pl_port_recv reports the change. */
int pl_port_send(struct pl_port *port, const struct pl_batch *batch, struct pl_diag *diag);

/* Copies the port's counters. Asks the kernel for its drops, so do not call it for every batch. */
void pl_port_stats(struct pl_port *port, struct pl_port_stats *ret);

/* Lists senders that have a lane or had one last, at most PL_PORT_FLOODS. Returns how many.
 * *ret_error: the errno for which the system refused a lane, or 0. */
uint32_t pl_port_floods(struct pl_port *port, struct pl_port_flood *ret, int *ret_error);

/* Copies the descriptors of the lanes that are in use now, at most max; polled, and the port's own,
 * they tell when pl_port_recv has packets. Returns their number. */
unsigned int pl_port_lane_fds(const struct pl_port *port, int *ret, unsigned int max);

/* Writes the sender as "192.0.2.1" or "2001:db8::/64"; PL_ADDR_TEXT_MAX + 4 bytes suffice. */
void pl_port_flood_text(char *dst, size_t cap, const struct pl_port_flood *flood);

/* Adds counters; rcvbuf_bytes becomes the smaller one. */
void pl_port_stats_add(struct pl_port_stats *into, const struct pl_port_stats *from);

/* Flushes and closes the port. Negative errno when the last bytes of a capture file could not be
 * written. NULL is allowed. */
int pl_port_close(struct pl_port *port);
