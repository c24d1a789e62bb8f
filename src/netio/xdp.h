/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An XDP program attached to an interface, and taken off again.
 *
 * It is attached by a BPF link (Linux 5.9): the link lives as long as a process holds its
 * descriptor, so the kernel itself takes the program off when the process ends in whatever way,
 * kill -9 included, and nobody can put another one in its place meanwhile. Where the kernel has no
 * such links the program is attached by netlink, and a note in /run/pathline
 * ($RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/pathline) tells the next start that a program found there is the left-over of a
 * process that is no more, and may be replaced. A program of somebody else is never touched.
 *
 * Threaded NAPI is left as it is, off by default.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "bpf/filter.h"
#include "netio/rights.h"

enum pl_xdp_mode {
	PL_XDP_AUTO,   /* native, and generic where the driver has no XDP */
	PL_XDP_NATIVE, /* by the driver, before the kernel makes a packet of the frame */
	PL_XDP_GENERIC /* by the network stack, after it: any interface, slower */
};

/*
 * A loaded program of the caller that includes bpf/filter.bpf.h, as ports take it instead of their
 * own (pl_port_options.program). All of it stays the caller's and outlives the ports. The program
 * hands frames to the sockets in the map at xsks_fd by their queue; a port enters its socket there.
 */
struct pl_xdp_program {
	int prog_fd;
	int xsks_fd;   /* map pl_xsks */
	int counts_fd; /* map pl_filter_counts */
	struct pl_filter
		*filter; /* pl_filter in the mapped .bss; the port sets the rules of its URI */
};

struct pl_xdp;

/*
 * Negative errno with diag: -ENODEV no such interface; -EPERM, which capability is missing; -EBUSY
 * another XDP program is there, its name, number and who holds it; -EOPNOTSUPP the driver or the
 * kernel has no XDP of this mode. The program may be closed afterwards. rights: NULL for our own.
 */
int pl_xdp_attach(struct pl_xdp **ret, const char *ifname, int prog_fd, enum pl_xdp_mode mode,
	const struct pl_rights *rights, struct pl_diag *diag);

/* Takes the program off. NULL is allowed; also when the interface is gone meanwhile. */
void pl_xdp_detach(struct pl_xdp *xdp);

bool pl_xdp_is_native(const struct pl_xdp *xdp);
int pl_xdp_ifindex(const struct pl_xdp *xdp);

/* What is attached to an interface now. name is empty when it cannot be told (that takes
 * CAP_SYS_ADMIN); pid is a process that holds its link, 0 when none is known. 0 with id 0: nothing.
 * Negative errno. */
struct pl_xdp_state {
	uint32_t id; /* of the program */
	bool native;
	int pid;
	char name[32];
	char process[32];
};
int pl_xdp_query(int ifindex, struct pl_xdp_state *ret);

/* The version of libbpf, in words. */
const char *pl_xdp_library(void);

/* Sums of the map pl_filter_counts over all processors. Negative errno. */
int pl_xdp_counts(int counts_fd, struct pl_filter_counts *ret);
