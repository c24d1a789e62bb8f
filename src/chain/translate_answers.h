/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NACKs and confirmations to reporters: they leave from the address and port that the reports went
 * to, because a connected socket accepts nothing else. For a UDP port the socket of the reports
 * sends them. For reports in frames of an interface there is a socket for each port, which receives
 * nothing itself; with it the host does not answer reports by ICMP "port unreachable".
 */
#pragma once

#include "base/addr.h"
#include "base/diag.h"
#include "netio/port.h"

#define PL_ANSWERS_PORTS_MAX 16

struct pl_answers {
	int shared_fd; /* socket of a UDP port, owned by the caller; -1: none */
	struct {
		int fd;
		uint16_t port;
	} own[PL_ANSWERS_PORTS_MAX];
	unsigned int n;
	char interface[16];
	/* time at which sockets are opened again, after the interface came back */
	uint64_t again_ns;
};

/* `uri` is the port's, with its UDP ports when it is an interface. Returns -EINVAL, or an errno of
 * the system, with diag. */
int pl_answers_open(
	struct pl_answers *ret, const char *uri, const struct pl_port *port, struct pl_diag *diag);
void pl_answers_close(struct pl_answers *a);

/* Sends to the sender of `report`, which came from that port, or to another port there. Returns
 * true when it was sent. */
bool pl_answers_send(struct pl_answers *a, const struct pl_packet *report, const struct pl_addr *to,
	uint16_t port, const void *bytes, size_t n);
