/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attaches a traffic control program (BPF_PROG_TYPE_SCHED_CLS) to an interface, beside those of
 * others, and detaches it.
 *
 * From Linux 6.6 on a BPF link (tcx) attaches it: the kernel detaches the program when the process
 * ends in any way. Before, it is a filter of the queueing discipline clsact, and a keeper process
 * removes it when this one ends, kill -9 included: the keeper keeps CAP_NET_ADMIN and waits for the
 * end of a pipe. A clsact created for it stays, empty. When the keeper is killed too, the filter
 * stays until the next attachment to the interface removes it: a note in /run/pathline (or
 * $RUNTIME_DIRECTORY) identifies it. Filters of others are never touched.
 *
 * A foreign program that does not return TCX_NEXT ends the chain, and programs behind it do not see
 * the packet. So the place decides what a program sees (enum pl_tc_place).
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "netio/rights.h"

struct pl_tc;

enum pl_tc_place {
	PL_TC_IN,        /* packets that enter, before all other programs */
	PL_TC_OUT,       /* packets that leave, last: after programs that change or drop packets */
	PL_TC_OUT_FIRST, /* packets that leave, before all other programs; a filter of clsact is
			  * last */
};

/* Attaches the program. Negative errno with diag: -ENODEV no such
 * interface; -EPERM, names the missing capability; -EBUSY our filter of another process is there.
 * The program's descriptor may be closed afterwards. rights: NULL for our own. Forks on kernels
 * without such links, so the process must have one thread only. */
int pl_tc_attach(struct pl_tc **ret, const char *ifname, int prog_fd, enum pl_tc_place place,
	const struct pl_rights *rights, struct pl_diag *diag);

/* Returns the folder of notes: the RUNTIME_DIRECTORY of systemd, or /run/pathline. */
static inline const char *pl_tc_notes(void)
{
	const char *given = getenv("RUNTIME_DIRECTORY");

	/* Of several folders, separated by colons, it is unknown which to use. */
	return given != NULL && given[0] == '/' && strchr(given, ':') == NULL ? given
									      : "/run/pathline";
}

/* Returns the negative errno for which a clsact filter has no note. 0: it has one, or needs none;
 * also for NULL. */
int pl_tc_unnoted(const struct pl_tc *tc);

/* Returns the descriptor of the link, which stays the structure's; -1 for a clsact filter. */
int pl_tc_link(const struct pl_tc *tc);

/* Detaches the program. NULL is allowed; so is an interface that is gone. */
void pl_tc_detach(struct pl_tc *tc);
