/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows a network interface: down, up, removed, renamed, moved away and back. An engine
 * for a caller that polls: when fd is readable, pl_link_next tells the next change. One netlink
 * socket each; no thread, no privilege. The interface is followed by its number while it lives, so
 * a new name does not lose it; once it is gone, by its last name.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

enum pl_link_change {
	PL_LINK_SAME,    /* nothing more to tell now */
	PL_LINK_DOWN,    /* administratively down, or without carrier */
	PL_LINK_UP,      /* up again */
	PL_LINK_GONE,    /* removed, or moved to another namespace */
	PL_LINK_BACK,    /* an interface of this name is there again; ifindex is new */
	PL_LINK_RENAMED, /* name is new */
};

struct pl_link_monitor {
	int fd;      /* to poll; -1 before open */
	int ifindex; /* 0: there is none of this name at present */
	bool set_up; /* administratively, when it was opened */
	bool up;     /* set up, and has a carrier; of no meaning without an interface */
	bool again;  /* internal: look before listening */
	char name[IF_NAMESIZE];
};

/* -ENODEV with diag when there is no such interface; -EINVAL for what cannot be a name. On failure
 * fd is -1. */
int pl_link_open(struct pl_link_monitor *m, const char *name, struct pl_diag *diag);
void pl_link_close(struct pl_link_monitor *m);

/* Never waits. Several changes come one after the other; call until PL_LINK_SAME. A flood of
 * changes that the kernel could not queue is made up for by looking again. */
enum pl_link_change pl_link_next(struct pl_link_monitor *m);

/* What an interface is in its network namespace, beside its name. */
struct pl_link_id {
	int ifindex;    /* 0: there is none of this name */
	uint8_t mac[6]; /* 0 of one without */
};

/* As it is now; false, with zeros: there is no such interface. */
bool pl_link_identify(const char *name, struct pl_link_id *ret);

/* Whether the interface is a loopback: what leaves it enters it at once, so whoever looks at both
 * directions sees each packet twice. False: it is none, or there is no such interface. */
bool pl_link_is_loopback(const char *name);
