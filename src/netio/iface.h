/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the ports on a network interface share: following the interface through down, up, removal,
 * return and new names, waiting, and the keys of the URI that say which frames are wanted.
 */
#pragma once

#include <linux/filter.h>

#include "bpf/filter.h"
#include "netio/driver.h"
#include "netio/link.h"

#define PL_IFACE_KEYS "port", "dst", "vlan", "also", "ring"

struct pl_iface;

struct pl_iface_ops {
	/* The interface is no more: let go of what belongs to it. */
	void (*lost)(struct pl_iface *iface);
	/* It is there, up, and may have another number: open on it again. Negative errno with
	 * diag. */
	int (*again)(struct pl_iface *iface, struct pl_diag *diag);
};

/* Stands first in the port structure of its drivers. */
struct pl_iface {
	struct pl_port port;
	const struct pl_iface_ops *ops;
	struct pl_link_monitor link;
	int data_fd;   /* of the socket; -1 while there is none */
	int beside_fd; /* of a port that is read together with it; -1: none */
	int timer_fd;  /* runs while opening again fails */
	int kept_fd; /* of a port that receives and sends, readable while there is `kept`; else -1 */
	bool up;     /* frames can come */
	uint32_t turns;
	char told[512]; /* the last failure that was told, so as not to tell it at each attempt */
	int kept;       /* of pl_iface_look: what pl_iface_wait says next; 0: nothing */
	struct pl_diag kept_words;
};

/*
 * port.fd becomes a descriptor that is readable when the data descriptor is, or the interface
 * changed. Negative errno with diag: no such interface, it is down. On failure, and in the end,
 * pl_iface_close.
 */
int pl_iface_open(struct pl_iface *iface, const char *name, const struct pl_iface_ops *ops,
	struct pl_diag *diag);
void pl_iface_close(struct pl_iface *iface);

/* The socket to wait for from now on. -1: none. Negative errno. */
int pl_iface_set_data(struct pl_iface *iface, int fd);

/* A descriptor that is waited for together with the socket. Negative errno. */
int pl_iface_set_beside(struct pl_iface *iface, int fd);

/*
 * Waits until there may be something to receive: 1. 0: nothing within timeout_ms (-1 = for ever, a
 * signal also returns 0). -ENETDOWN or -EAGAIN with diag: what became of the interface, to be
 * returned to the caller.
 */
int pl_iface_wait(struct pl_iface *iface, int timeout_ms, struct pl_diag *diag);

/* Before a port that receives sends: looks after the interface, and leaves what there is to tell to
 * pl_iface_wait, for which port.fd is readable until then. */
void pl_iface_look(struct pl_iface *iface);

/* Under load nobody waits: looks after the interface once in a while. 0 or as pl_iface_wait. */
static inline int pl_iface_turn(struct pl_iface *iface, struct pl_diag *diag)
{
	int r = (++iface->turns & 1023) != 0 ? 0 : pl_iface_wait(iface, 0, diag);

	return r < 0 ? r : 0;
}

/* ---- which frames ---- */

/* A packet socket of these rules on the interface, for a driver that reads it beside its own.
 * Negative errno with diag. */
int pl_packet_open_rules(struct pl_port **ret_port, const char *name,
	const struct pl_filter_rules *rules, const struct pl_port_options *options,
	struct pl_diag *diag);

/* The rules of the keys port, dst, vlan and also, with their defaults. -EINVAL with diag. */
int pl_iface_rules(const struct pl_uri *uri, struct pl_filter_rules *ret, struct pl_diag *diag);

/* Turns the rules of a URI into those of a tap: every frame. -EINVAL with diag when the URI chooses
 * among frames. */
int pl_iface_tap_rules(const struct pl_uri *uri, struct pl_filter_rules *ret, struct pl_diag *diag);

/* The key ring: a power of two from 64 to 1 Mi. */
int pl_iface_ring(const struct pl_uri *uri, uint32_t *ret, struct pl_diag *diag);

/* The rules as a classic BPF program for an AF_PACKET socket, where the outer VLAN tag stands
 * beside the frame. Of the first fragment of a datagram that is wanted it lets so many bytes
 * through: to be counted, the host puts it together. Returns its length; -E2BIG when it would not
 * fit. */
#define PL_IFACE_FRAGMENT 1
#define PL_IFACE_CBPF_MAX 2048
int pl_iface_cbpf(const struct pl_filter_rules *rules, struct sock_filter *dst, uint32_t cap);

/* So many bytes of every frame. Returns its length, at most cap. */
int pl_iface_cbpf_all(uint32_t bytes, struct sock_filter *dst, uint32_t cap);

/* A hash of the source address for PACKET_FANOUT_CBPF: an exporter's frames reach one socket, in
 * order, whatever source ports it uses. Returns its length, at most cap. */
int pl_iface_cbpf_source(struct sock_filter *dst, uint32_t cap);

/* "0-3,7" into numbers, at most cap. Returns how many; -EINVAL with diag. */
int pl_iface_numbers(const char *key, const char *text, uint32_t max, uint32_t *ret, uint32_t cap,
	struct pl_diag *diag);
