/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows a network interface: down, up, removed, renamed, moved away and back. An engine for a
 * caller that polls: when fd is readable, pl_link_next tells the next change. One netlink socket
 * each; no thread, no privilege. The interface is followed by its ifindex while it exists, so a new
 * name does not lose it; after its removal, by its last name.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

enum pl_link_change {
	PL_LINK_SAME,    /* no more changes now */
	PL_LINK_DOWN,    /* administratively down, or without carrier */
	PL_LINK_UP,      /* up again */
	PL_LINK_GONE,    /* removed, or moved to another namespace */
	PL_LINK_BACK,    /* an interface of this name is there again; ifindex is new */
	PL_LINK_RENAMED, /* name is new */
};

struct pl_link_monitor {
	int fd;      /* to poll; -1 before open */
	int ifindex; /* 0: no interface of this name at present */
	bool set_up; /* administratively up, at the last check */
	bool up;     /* administratively up, with carrier; undefined without an interface */
	bool again;  /* internal: look before listening */
	char name[IF_NAMESIZE];
};

/* Starts to follow the interface. -ENODEV with diag when there is none of the name; -EINVAL for an
 * invalid name. On failure fd is -1. */
int pl_link_open(struct pl_link_monitor *m, const char *name, struct pl_diag *diag);
void pl_link_close(struct pl_link_monitor *m);

/* Returns the next change without waiting; call it until PL_LINK_SAME. When the kernel dropped
 * messages, it compares the interface with its last known state instead. */
enum pl_link_change pl_link_next(struct pl_link_monitor *m);

/* Identity of an interface in its network namespace, beside its name. */
struct pl_link_id {
	int ifindex;    /* 0: there is none of this name */
	uint8_t mac[6]; /* zeros without one */
};

/* Reads the identity as it is now. Returns false, with zeros, when there is no such interface. */
bool pl_link_identify(const char *name, struct pl_link_id *ret);

/* Returns true for a loopback, whose packets enter it as they leave: in both directions each is
 * seen twice. False also when there is no such interface. */
bool pl_link_is_loopback(const char *name);

/* Asks about the interface by an ioctl. data: what ifr_data points to, or NULL. Negative errno. */
int pl_link_ask(const char *name, unsigned long request, void *data, struct ifreq *req);
