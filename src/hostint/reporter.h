/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports of a host that is an INT sink: received packets, cut behind INT, become individual
 * reports of Telemetry Report 2.0 (RepType 1, the sink's ingress timestamp; the packet's first
 * bytes inside), as many in a datagram as fit. An engine without socket and clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/host_int.h"
#include "wire/report.h"

#define PL_HOSTINT_DATAGRAM 1400u /* bytes; a longer report has a datagram of its own */

struct pl_host_event;

typedef void pl_hostint_send(void *arg, const void *datagram, uint32_t len, uint32_t reports);

struct pl_hostint_reporter {
	uint32_t node;
	uint8_t hw_id;
	bool raw; /* packets begin with IP */
	/* not every packet is reported: gaps in the numbers of flows are not losses */
	bool sampled;
	pl_hostint_send *send;
	void *arg;
	uint32_t seq; /* of the next datagram; begins with any number */
	/* Private. */
	uint32_t reports;
	uint32_t lost; /* of the newest event */
	struct pl_build b;
	uint8_t datagram[PL_HOSTINT_DATAGRAM];
};

void pl_hostint_reporter_init(struct pl_hostint_reporter *r);
/* Adds a report; sends the datagram first when the report does not fit. The event's INT gets the
 * flag PL_HOST_SAMPLED. When packets before this one found no room in the ring, the number of a
 * datagram is skipped. */
void pl_hostint_report(struct pl_hostint_reporter *r, struct pl_host_event *event);
/* Sends the waiting datagram. */
void pl_hostint_flush(struct pl_hostint_reporter *r);
