/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of traffic control (BPF_PROG_TYPE_SCHED_CLS) attached to an interface beside others',
 * and taken off again.
 *
 * From Linux 6.6 on it is a BPF link (tcx): the kernel takes the program off when the process ends
 * in whatever way. Before, it is a filter of the queueing discipline clsact, and a process forked
 * for nothing else takes it off when this one ends, kill -9 included: it keeps CAP_NET_ADMIN and
 * waits for the end of a pipe. A clsact that was not there before stays, empty. When that process is
 * killed too, the filter stays, and the next attachment to the interface takes it off: a note in
 * /run/pathline (or $RUNTIME_DIRECTORY) tells it whose it was. A filter of somebody else is never
 * touched.
 *
 * On entering packets the program comes first, as tcpdump does; on leaving ones last, behind what
 * changes or drops them.
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "netio/rights.h"

struct pl_tc;

/* Negative errno with diag: -ENODEV no such interface; -EPERM, which capability is missing; -EBUSY
 * our filter of another process is there. The program may be closed afterwards. rights: NULL for
 * our own. Forks where links are not known, so while there is one thread only. */
int pl_tc_attach(struct pl_tc **ret, const char *ifname, int prog_fd, bool leaving,
	const struct pl_rights *rights, struct pl_diag *diag);

/* The folder of notes: what systemd gave the service, or /run/pathline. */
static inline const char *pl_tc_notes(void)
{
	const char *given = getenv("RUNTIME_DIRECTORY");

	/* Several are parted by colons: then it is not known which. */
	return given != NULL && given[0] == '/' && strchr(given, ':') == NULL ? given
									      : "/run/pathline";
}

/* Why a filter, of a kernel without such links, has no such note: a negative errno. 0: it
 * has one, or needs none; also for NULL. */
int pl_tc_unnoted(const struct pl_tc *tc);

/* The link that it is attached by, still the structure's; -1: it is a filter of clsact. */
int pl_tc_link(const struct pl_tc *tc);

/* Takes the program off. NULL is allowed; also when the interface is gone meanwhile. */
void pl_tc_detach(struct pl_tc *tc);
