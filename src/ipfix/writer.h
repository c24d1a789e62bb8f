/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of flows (flow288/1) as IPFIX messages (RFC 7011, RFC 7012), for collectors of NetFlow
 * and IPFIX. A flow becomes a data record for each direction that had packets, as all collectors
 * read them, or one for both (RFC 5103). docs/protocols/ipfix.md has the elements. The engine owns
 * no socket and no clock: messages are given to a function.
 *
 * Templates, one each: IPv4 and IPv6, with ports and with ICMP type and code, where directions are
 * known also with them; and one of options, the account of flows that were not exported. Every transport session begins with them
 * (pl_ipfix_begin); over UDP they are repeated (pl_ipfix_templates).
 *
 * libfixbuf encodes. It ends the process when there is no memory for a few kilobytes.
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/packet.h"

/* Most bytes of a message: no fragments over Ethernet, also in a tunnel. */
#define PL_IPFIX_MESSAGE_BYTES 1400

enum pl_ipfix_time {
	PL_IPFIX_MILLISECONDS, /* flowStartMilliseconds: all collectors read it */
	PL_IPFIX_MICROSECONDS, /* flowStartMicroseconds, in NTP format (RFC 7011 6.1.9) */
	PL_IPFIX_NANOSECONDS,  /* flowStartNanoseconds, in NTP format (6.1.10) */
};

struct pl_ipfix_options {
	uint32_t domain; /* observation domain id */
	bool biflow;     /* one data record for both directions */
	bool directed;   /* PL_OBS_OUT of packets tells the direction of their hook */
	enum pl_ipfix_time time;
	/* Private enterprise number for round-trip times, retransmissions, gaps, roles and more of
	 * TCP; 0: these are not sent. */
	uint32_t pen;
	/* Takes a whole message of `flows` flows. */
	void (*send)(void *arg, const uint8_t *message, uint32_t bytes, uint32_t flows);
	void *arg;
};

/* Number of data records, and their packets and bytes. */
struct pl_ipfix_sum {
	uint64_t records, packets, bytes;
};

struct pl_ipfix;

/* Makes a writer. Returns 0 or -ENOMEM. */
int pl_ipfix_new(struct pl_ipfix **ret, const struct pl_ipfix_options *options);
void pl_ipfix_free(struct pl_ipfix *x); /* NULL is allowed; flows that wait are dropped */

/* Data records that a flow becomes. */
struct pl_ipfix_sum pl_ipfix_of(const struct pl_ipfix *x, const struct pl_flow288 *flow);

/* Puts a flow into the present message, which is sent when the next flow has no room. If a flow
 * ends before it began, since its clock was set back, its times become that of its end, and it is
 * counted. export_s: time of the export, seconds since the Unix epoch. */
void pl_ipfix_flow(struct pl_ipfix *x, const struct pl_flow288 *flow, uint32_t export_s);
/* Sends the present message, if it has content. */
void pl_ipfix_flush(struct pl_ipfix *x, uint32_t export_s);
/* Puts all templates and the account: over UDP, now and then. lost: data records that were not
 * exported, since the start. */
void pl_ipfix_templates(struct pl_ipfix *x, const struct pl_ipfix_sum *lost, uint32_t export_s);
/* Puts the account alone: over TCP, now and then (a template is sent once there: RFC 7011 8.1). */
void pl_ipfix_account(struct pl_ipfix *x, const struct pl_ipfix_sum *lost, uint32_t export_s);
/* Begins a transport session: numbers begin at 0, with the templates. Flows that wait are
 * dropped. */
void pl_ipfix_begin(struct pl_ipfix *x, const struct pl_ipfix_sum *lost, uint32_t export_s);

uint64_t pl_ipfix_mended(const struct pl_ipfix *x);  /* flows that ended before they began */
uint32_t pl_ipfix_waiting(const struct pl_ipfix *x); /* flows in the present message */
