/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where packets enter and leave. A port is named by a URI:
 *
 *   pcap:FILE  or a bare path      capture file, pcap or pcapng, gzip too; "-" is standard input
 *              (receive)
 *                                  or output (send). Sending writes nanosecond pcap, or pcapng when
 *                                  the
 *                                  name ends in .pcapng
 *   udp://HOST:PORT?key=value&...  UDP socket. Receive: an empty host is every address, v4 and v6
 *   afxdp:IFACE?key=value&...      AF_XDP socket on a network interface: frames bypass the network
 *                                  stack. CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF at opening; not in
 *                                  every build
 *   packet:IFACE?key=value&...     AF_PACKET socket with a mapped ring: copies of the frames, the
 *                                  host sees them too. CAP_NET_RAW at opening
 *
 * A folder above adds kinds of its own (pl_port_add): raw/port.h has kafka://BROKER/TOPIC, packets that
 * were kept.
 *
 * Keys of afxdp: and packet:, which frames are received; all others stay the host's:
 *   port=N,...     UDP destination ports (32766,54321)
 *   dst=ADDR,...   destination addresses, v4 or v6, at most 16 (any)
 *   vlan=N,...     VLAN ids, of either tag of a frame with two (any, and untagged)
 *   also=roce1     frames of RoCEv1 (Ethertype 0x8915) too, whatever port and dst say
 *   ring=N         frames of the ring, a power of two
 * Keys of afxdp::
 *   queues=N,M-K   receive: these queues, a port each (options.index, options.of, options.with);
 *                  send: the first. Default: all queues of the interface; sending: queue 0. A port
 *                  that receives can send too (options.sends)
 *   mode=MODE      auto, native or generic: where the XDP program is attached
 *   copy=COPY      auto, zero (zero-copy or fail) or copy
 *   busy_poll=BOOL receive: the reading thread drives the interface (off)
 * Keys of packet::
 *   fanout=N       receive: N sockets share the interface, a port each; all datagrams of one source
 *                  address reach the same one
 *   hwtstamp=BOOL  receive: ask the driver to stamp every received frame, for all programs and
 *                  beyond the end of this one (netio/hwtstamp.h); opening fails where it cannot
 *                  (off: the NIC's times where the interface has them, else the kernel's)
 *   block=SIZE     receive: so many bytes are handed over at once, or what there is after 2 ms
 *                  (256KiB)
 *
 * Keys of udp://, all optional:
 *   sockets=N      receive: N sockets share the address; all datagrams of one source address
 *                  (whatever its source port) reach the same one. The caller opens each
 *                  (options.index, options.of)
 *   rcvbuf=SIZE    receive: socket buffer to ask for (16MiB)
 *   maxlen=SIZE    receive: longest datagram; longer ones are cut, and counted (64KiB: nothing is)
 *   timestamp=WHO  receive: "batch" = one clock reading per batch (default), "kernel" = per
 *                  datagram
 *   sndbuf=SIZE    send: socket buffer to ask for
 *   gso=BOOL       send: hand runs of equally long datagrams to the kernel in one piece (off)
 *
 * A receive batch is a loan: every pl_port_recv that returned packets is answered by
 * pl_port_release before the next one. Sending is by pl_port_send, which copies or hands over
 * before it returns. A port belongs to one thread.
 *
 * A port on a network interface outlives it: when the interface goes down or away, pl_port_recv
 * says -ENETDOWN once, with the words, and then goes on to give 0; when it is back, also under a
 * new number, the port takes up again by itself and pl_port_recv says -EAGAIN once, with the words.
 * A new name is told as either, by whether it is up. So a caller logs either and calls again.
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

/* A sender that filled the socket faster than it was read, and so got a lane: a socket that it
 * shares with its like. */
struct pl_port_flood {
	struct pl_prefix who; /* an address, or an IPv6 network of 64 bits */
	uint8_t lane;         /* where it is received now; 0: with all others again */
	uint64_t drops;       /* of its datagrams, while it had the lane for itself */
	uint64_t times;       /* how often it got one */
	uint64_t since_ns;    /* of `lane`, monotonic */
};

enum pl_port_mode { PL_PORT_RECV, PL_PORT_SEND };

struct pl_xdp_program;
struct pl_rights;

/* What became of packets that were released, for ports that remember how far their reader is. mark: all
 * that were released so far. settled: of what came of those before the last mark nothing is lost when
 * the process ends; it waits for that up to wait_ms. Called by the port's thread within recv, and by
 * whoever closes the port. */
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
	int fd;               /* > 0: use this open descriptor (a bound socket, a file) instead of
	                           opening one; the port closes it, also when opening fails */
	struct pl_port
		*with; /* index > 0 of afxdp: and packet:, the port that was opened with index 0:
	                         program and group are shared with it. Needed at opening only */
	const struct pl_xdp_program *program; /* afxdp: instead of our own (netio/xdp.h) */
	const struct pl_rights *rights; /* of somebody else (netio/rights.h); outlives the port */
	/* receive: the port is to send too, by the same queue, if it can. packet: with tap_bytes:
	 * every frame that enters comes at once, with its checksums completed, and none that leaves;
	 * without, it cannot */
	bool sends;
	/* udp: receive from senders that flood by sockets of their own, which pl_port_fd does not
	 * tell of: to wait is pl_port_recv's */
	bool lanes;
	/* udp: "every address" leaves those of IPv4 to another socket (pl_port_uri_v6only) */
	bool v6only;
	/* afxdp: and packet:, receive, not 0: a tap. Every frame comes, and of a frame at least so
	 * many bytes where it has them. packet: copies what enters and what leaves
	 * (pl_packet.out); afxdp: takes what enters away from the host, as from a mirror port. The
	 * keys that choose reports (port, dst, vlan, also) are refused. */
	uint32_t tap_bytes;
	bool to_end; /* kafka: ends where the topic ends, instead of waiting for more */
	/* kafka: outlives the port. NULL: packets that were released are settled */
	const struct pl_port_reader *reader;
	/* receive, where packets are frames: only those that match this expression of pcap-filter(7)
	 * are given out (netio/pcap_filter.h), the others are counted (not_matched); NULL: all */
	const char *filter;
};

/* -EINVAL (bad URI), -EBADMSG (not a capture file), or the system's errno, with diag. For a capture
 * file of a link type that is not read, packets come as PL_LINK_UNKNOWN. */
int pl_port_open(struct pl_port **ret_port, const char *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag);

/* How many sockets the URI asks for ("?sockets=4", "?fanout=4", the queues of an interface), 1 when
 * it says nothing. -EINVAL with diag. Checks the whole URI, so it also serves to check a
 * configuration: an interface that is not there counts as one queue. */
int pl_port_uri_sockets(const char *uri, struct pl_diag *diag);

/* Whether the URI can be a tap's (pl_port_options.tap_bytes), of an interface. -EINVAL with diag:
 * it chooses among reports. */
int pl_port_uri_tap(const char *uri, struct pl_diag *diag);

/* Whether the socket of `uri` must leave IPv4 to that of `other`, which is opened beside it: both are
 * of every address of the same UDP port, and only the second one names IPv4 (udp://[::]:P beside
 * udp://0.0.0.0:P). */
bool pl_port_uri_v6only(const char *uri, const char *other);

/* What a kind of port is, for callers that treat some kinds otherwise. */
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
	PL_PORT_CAN_REPLAY = 1 << 7, /* its packets were kept: time is that of the packets */
};

/* PL_PORT_CAN_* of the kind that a URI names; 0 for a bare file name. */
uint32_t pl_port_uri_can(const char *uri);

/* The kind of port a URI names: "udp", "pcap", …; NULL for a bare file name. */
const char *pl_port_uri_scheme(const char *uri);

/* The port's canonical name, for logs and labels: "udp://[::]:32766". Valid while the port is
 * open. */
const char *pl_port_name(const struct pl_port *port);

/* The clock that times of the port's packets should be of. Each packet names the one that its time
 * is of (pl_packet.clock), because a NIC need not stamp every frame. */
enum pl_clock_kind pl_port_clock(const struct pl_port *port);

/* The bound UDP port number (after port 0 was asked for), 0 when not a socket. */
uint16_t pl_port_local_port(const struct pl_port *port);

/* The descriptor to poll, or -1 when there is none (files). Stays the same while the port is
 * open. */
int pl_port_fd(const struct pl_port *port);

/*
 * Up to PL_BATCH_MAX packets into *ret_batch. Returns their number; 0 when none came (or none of those
 * that came matches the filter) within
 * timeout_ms (-1 = wait for ever; a signal also returns 0). At the end of a file -ENODATA. A
 * damaged file: the packets before the damage first, then -EBADMSG with diag, which names the file
 * and the byte. -ENETDOWN and -EAGAIN with diag: the interface went, came back or was renamed; call
 * again. Other negative errno: the port is of no more use. A packet whose time the file does not
 * tell has ts_ns 0.
 */
int pl_port_recv(
	struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag);
void pl_port_release(struct pl_port *port, struct pl_batch *batch);

/* Whether a port can send: one that sends only, or one that receives (options.sends) where driver
 * and queue can. If not, *ret_why (not NULL) says why not, for a person, as long as the port is
 * open. */
bool pl_port_sends(const struct pl_port *port, const char **ret_why);

/* Sends the batch. PL_LINK_UDP packets go to the URI's address from a socket; frames go to a
 * capture file. Returns how many were taken, or negative errno when none; -EINVAL for a packet of
 * the wrong link. From a port that receives too it is -ENETDOWN, before any was taken, while there
 * is no interface: pl_port_recv has the news of it. */
int pl_port_send(struct pl_port *port, const struct pl_batch *batch, struct pl_diag *diag);

/* Asks the kernel for its drops, so not for every batch. */
void pl_port_stats(struct pl_port *port, struct pl_port_stats *ret);

/* Senders that got a lane, at most PL_PORT_FLOODS, those who have one and who had one last; returns
 * how many. With an errno for which the system refused a lane, or 0. */
uint32_t pl_port_floods(struct pl_port *port, struct pl_port_flood *ret, int *ret_error);

/* "192.0.2.1", "2001:db8::/64"; PL_ADDR_TEXT_MAX + 4 are enough. */
void pl_port_flood_text(char *dst, size_t cap, const struct pl_port_flood *flood);

/* Sums; of rcvbuf_bytes the smaller. */
void pl_port_stats_add(struct pl_port_stats *into, const struct pl_port_stats *from);

/* Close flushes; a capture file whose last bytes could not be written makes it return negative
 * errno. NULL is allowed. */
int pl_port_close(struct pl_port *port);
