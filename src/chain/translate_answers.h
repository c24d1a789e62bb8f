/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How NACKs and confirmations go back to reporters: from the address and port that their reports went
 * to, which is all that a connected socket of theirs takes. Of a UDP port that is the socket that
 * reports come to. Of reports in frames of an interface it is a socket for each port, which takes
 * nothing itself; with it the host does not answer reports with ICMP that nobody listens.
 */
#pragma once

#include "base/addr.h"
#include "base/diag.h"
#include "netio/port.h"

#define PL_ANSWERS_PORTS_MAX 16

struct pl_answers {
	int shared_fd; /* of a UDP port, which is not ours; -1: none */
	struct {
		int fd;
		uint16_t port;
	} own[PL_ANSWERS_PORTS_MAX];
	unsigned int n;
	char interface[16];
	uint64_t again_ns; /* not before: sockets are opened anew, for the interface came back */
};

/* `uri` is of the port, and names its UDP ports where it is of an
 * interface; -EINVAL, or the system's errno, with diag. */
int pl_answers_open(
	struct pl_answers *ret, const char *uri, const struct pl_port *port, struct pl_diag *diag);
void pl_answers_close(struct pl_answers *a);

/* To the sender of `report`, which came from that port, or to another port there. Whether it was
 * sent. */
bool pl_answers_send(struct pl_answers *a, const struct pl_packet *report, const struct pl_addr *to,
	uint16_t port, const void *bytes, size_t n);
