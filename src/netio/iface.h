/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code shared by the ports on a network interface: it follows the interface (down, up, removed,
 * back, renamed), waits, and parses the keys of the URI that choose frames.
 */
#pragma once

#include <linux/filter.h>

#include "bpf/filter.h"
#include "netio/driver.h"
#include "netio/link.h"

#define PL_IFACE_KEYS "port", "dst", "vlan", "also", "ring"

struct pl_iface;

struct pl_iface_ops {
	/* The interface was removed: close the port's socket. */
	void (*lost)(struct pl_iface *iface);
	/* The interface is back and up, maybe with another ifindex: open the socket again. Negative
	 * errno with diag. */
	int (*again)(struct pl_iface *iface, struct pl_diag *diag);
};

/* First member of the port structure of these drivers. */
struct pl_iface {
	struct pl_port port;
	const struct pl_iface_ops *ops;
	struct pl_link_monitor link;
	int data_fd;   /* the socket; -1 while there is none */
	int beside_fd; /* descriptor of a second port that is polled together with this one; -1:
		        * none */
	int timer_fd;  /* runs while opening again fails */
	int kept_fd; /* of a port that receives and sends: readable while `kept` is set; else -1 */
	bool up;     /* the interface is up and the socket open */
	uint32_t turns;
	char told[512]; /* last error reported, so that a retry does not repeat it */
	int kept;       /* set by pl_iface_look: next result of pl_iface_wait; 0: none */
	struct pl_diag kept_words;
};

/* Makes pl_iface_close safe before pl_iface_open, which does it itself. */
void pl_iface_init(struct pl_iface *iface);

/*
 * Opens the link monitor and port.fd, which is readable when the data descriptor is, or when the
 * interface changed. Negative errno with diag: no such interface, or it is down. The caller calls
 * pl_iface_close, also on failure.
 */
int pl_iface_open(struct pl_iface *iface, const char *name, const struct pl_iface_ops *ops,
	struct pl_diag *diag);
void pl_iface_close(struct pl_iface *iface);

/* Sets the socket that pl_iface_wait waits for; -1: none. Negative errno. */
int pl_iface_set_data(struct pl_iface *iface, int fd);

/* Sets a second descriptor that pl_iface_wait waits for. Negative errno. */
int pl_iface_set_beside(struct pl_iface *iface, int fd);

/*
 * Waits until there may be something to receive: returns 1. Returns 0 when nothing came within
 * timeout_ms (-1 = for ever; a signal also returns 0). -ENETDOWN or -EAGAIN with diag: a change of
 * the interface, which the driver returns to its caller.
 */
int pl_iface_wait(struct pl_iface *iface, int timeout_ms, struct pl_diag *diag);

/* Checks the interface before a receiving port sends. A change is kept for pl_iface_wait, and
 * port.fd is readable until that reports it. */
void pl_iface_look(struct pl_iface *iface);

/* Checks the interface once in 1024 calls, because under load pl_iface_wait is not called. 0 or as
 * pl_iface_wait. */
static inline int pl_iface_turn(struct pl_iface *iface, struct pl_diag *diag)
{
	int r = (++iface->turns & 1023) != 0 ? 0 : pl_iface_wait(iface, 0, diag);

	return r < 0 ? r : 0;
}

/* ---- which frames ---- */

/* Opens a packet socket with these rules on the interface, for a driver that reads it beside its
 * own. Negative errno with diag. */
int pl_packet_open_rules(struct pl_port **ret_port, const char *name,
	const struct pl_filter_rules *rules, const struct pl_port_options *options,
	struct pl_diag *diag);

/* Parses the keys port, dst, vlan and also, with their defaults. -EINVAL with diag. */
int pl_iface_rules(const struct pl_uri *uri, struct pl_filter_rules *ret, struct pl_diag *diag);

/* Sets the rules of a tap: every frame. -EINVAL with diag when the URI has keys that choose
 * reports. */
int pl_iface_tap_rules(const struct pl_uri *uri, struct pl_filter_rules *ret, struct pl_diag *diag);

/* Parses the key ring, a power of two from 64 to 1 Mi; *ret stays when it is not given. -EINVAL
 * with diag. */
int pl_iface_ring(const struct pl_uri *uri, uint32_t *ret, struct pl_diag *diag);

/* Writes the rules as a classic BPF program for an AF_PACKET socket, where the outer VLAN tag is
 * not in the frame. Of the first fragment of a wanted datagram it passes PL_IFACE_FRAGMENT bytes,
 * only to count it: the host reassembles the datagram. Returns the program's length; -E2BIG when it
 * does not fit. */
#define PL_IFACE_FRAGMENT 1
#define PL_IFACE_CBPF_MAX 2048
int pl_iface_cbpf(const struct pl_filter_rules *rules, struct sock_filter *dst, uint32_t cap);

/* Writes a program that takes `bytes` bytes of every frame. Returns its length, at most cap. */
int pl_iface_cbpf_all(uint32_t bytes, struct sock_filter *dst, uint32_t cap);

/* Writes a program for PACKET_FANOUT_CBPF that hashes the source address: an exporter's frames
 * reach one socket, in order, whatever source ports it uses. Returns its length; -E2BIG when it
 * does not fit. */
int pl_iface_cbpf_source(struct sock_filter *dst, uint32_t cap);

/* Parses "0-3,7" into numbers up to max. Returns how many, at most cap; -EINVAL with diag. */
int pl_iface_numbers(const char *key, const char *text, uint32_t max, uint32_t *ret, uint32_t cap,
	struct pl_diag *diag);
