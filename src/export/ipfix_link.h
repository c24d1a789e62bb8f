/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of IPFIX messages to a collector: a datagram for each (RFC 7011 10.3), or a connection
 * that is made again when it breaks (10.4). Nothing here waits for the collector. The owner makes messages
 * with a writer of ipfix/ and keeps what waits for a connection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/diag.h"
#include "ipfix/writer.h"
#include "netio/uri.h"

struct pl_port;

/* As keys of the URI say it: transport, time, pen. */
struct pl_ipfix_target {
	char endpoint[PL_URI_TEXT_MAX]; /* "HOST:PORT" */
	bool tcp;
	enum pl_ipfix_time time;
	uint64_t pen; /* 0: none */
};

#define PL_IPFIX_KEYS "transport", "time", "pen"

/* Without asking for a name. -EINVAL with diag. */
int pl_ipfix_target_read(
	struct pl_ipfix_target *ret, const struct pl_uri *uri, struct pl_diag *diag);

/* Of some entries of the owner: flows, paths. */
struct pl_ipfix_amount {
	uint64_t entries;
	struct pl_ipfix_sum sum;
};

void pl_ipfix_amount_add(struct pl_ipfix_amount *to, const struct pl_ipfix_amount *more);

struct pl_ipfix_link {
	struct pl_port *port; /* UDP; NULL: TCP, and what follows */
	struct pl_addr addr;
	uint16_t at;
	int fd;               /* -1: none */
	bool connected;       /* the handshake is over */
	bool began;           /* and the owner was not told yet */
	uint64_t next_ns;     /* without a connection: when to try; while one is made: until when */
	struct pl_buf unsent; /* messages, of which this many bytes were taken */
	size_t taken;
	struct pl_ipfix_amount in_unsent;
	uint32_t unsent_messages;
	uint64_t refused_ns; /* UDP: when a message was refused last */

	struct pl_ipfix_amount sent, failed; /* that the kernel took, or did not; since the start */
	uint64_t messages, bytes, refused, connections;
	char trouble[128]; /* what is wrong now; "" */
	bool news;         /* that has changed: the owner tells it, and clears this */
};

/* Negative errno with diag. */
int pl_ipfix_link_open(
	struct pl_ipfix_link *l, const struct pl_ipfix_target *target, struct pl_diag *diag);
void pl_ipfix_link_close(struct pl_ipfix_link *l); /* also of one that was not opened whole */

/* A message that carries this. Over TCP only while there is a connection. */
void pl_ipfix_link_send(struct pl_ipfix_link *l, const uint8_t *message, uint32_t bytes,
	const struct pl_ipfix_amount *carries, uint64_t now_ns);
/* Whether messages may be made: over TCP, there is a connection and it has taken all before. */
bool pl_ipfix_link_ready(const struct pl_ipfix_link *l);
/* Goes on with connecting and with what is unsent. True: a session has begun, which takes its
 * templates first (pl_ipfix_begin). */
bool pl_ipfix_link_turn(struct pl_ipfix_link *l, uint64_t now_ns);
/* Gives up what is unsent. */
void pl_ipfix_link_drop(struct pl_ipfix_link *l, const char *words, uint64_t now_ns);

uint32_t pl_ipfix_now_s(void); /* seconds since the Unix epoch */
