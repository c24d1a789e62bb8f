/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attaches an XDP program to an interface and detaches it.
 *
 * A BPF link (Linux 5.9) attaches it: the link lives as long as a process holds its descriptor, so
 * the kernel detaches the program when the process ends in any way, kill -9 included, and no other
 * program can replace it meanwhile. On a kernel without links netlink attaches the program, and a
 * note in /run/pathline ($RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/pathline) tells a later process that
 * the program is the left-over of an ended process and may be replaced. Programs of others are
 * never touched.
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
	PL_XDP_NATIVE, /* in the driver, before the kernel allocates an skb */
	PL_XDP_GENERIC /* in the network stack, after that: any interface, slower */
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
 * Attaches the program. Negative errno with diag: -ENODEV no such interface; -EPERM, names the
 * missing capability; -EBUSY another XDP program is there, with its name, id and process;
 * -EOPNOTSUPP the driver or the kernel has no XDP of this mode. The program's descriptor may be
 * closed afterwards. rights: NULL for our own.
 */
int pl_xdp_attach(struct pl_xdp **ret, const char *ifname, int prog_fd, enum pl_xdp_mode mode,
	const struct pl_rights *rights, struct pl_diag *diag);

/* Detaches the program. NULL is allowed; so is an interface that is gone. */
void pl_xdp_detach(struct pl_xdp *xdp);

int pl_xdp_ifindex(const struct pl_xdp *xdp);

/* The XDP program on an interface now. name is empty when it cannot be read (needs CAP_SYS_ADMIN);
 * pid is a process that holds its link, 0 when none is known. Returns 0, with id 0 when no program
 * is attached, or negative errno. */
struct pl_xdp_state {
	uint32_t id; /* of the program */
	bool native;
	int pid;
	char name[32];
	char process[32];
};
int pl_xdp_query(int ifindex, struct pl_xdp_state *ret);

/* Returns the version of libbpf as text. */
const char *pl_xdp_library(void);

/* Sums the map pl_filter_counts over all CPUs. Negative errno. */
int pl_xdp_counts(int counts_fd, struct pl_filter_counts *ret);
