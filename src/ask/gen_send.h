/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends packets for all kinds of pathline gen: model time against the clock, sending, and the
 * account. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "netio/port.h"

struct pl_gen_account {
	uint64_t begin_ns, end_ns; /* monotonic */
	uint64_t skipped;          /* times that it was so late that it skipped time */
	uint64_t sent, sent_bytes;
};

/* A generator; gen/gen.h describes its three functions. */
struct pl_gen_source {
	int (*next)(void *gen, uint64_t until_ns, struct pl_batch *ret);
	uint64_t (*due_ns)(const void *gen);
	void (*skip_to)(void *gen, uint64_t now_ns);
	void *gen;
	uint64_t start_ns; /* model time at the start */
	/* Reports at SIGUSR1 how many packets were sent so far. NULL: no report. */
	void (*tell)(const void *gen, const struct pl_gen_account *acc);
};

/* Returns true when packets are sent, not written into a file. */
bool pl_gen_is_live(const char *uri);

/*
 * Opens the output of packets (NULL: none), and gives up capabilities, system calls and files but
 * those in the folder (NULL: none): later the process only makes packets and sends them. A helper
 * opens an interface again that comes back. Negative errno with diag.
 */
int pl_gen_open(struct pl_port **ret, const char *uri, const char *folder, struct pl_diag *diag);
/* Closes the port; also needed, with NULL, after a pl_gen_open that failed. */
int pl_gen_close(struct pl_port *port);

/* SIGINT and SIGTERM end pl_gen_send; SIGUSR1 has it call the source's `tell`. */
void pl_gen_catch_signals(void);

/*
 * Sends until the generator ends, a signal comes, or until_ns by the monotonic clock (0: no limit).
 * Paced, model time follows the clock from the generator's start on; else it runs as fast as
 * packets are sent. port NULL: nothing is sent.
 */
int pl_gen_send(const struct pl_gen_source *source, struct pl_port *port, bool paced,
	uint64_t until_ns, struct pl_gen_account *acc, struct pl_diag *diag);

/* Prints a message when the rate could not be kept. */
void pl_gen_tell_skipped(const struct pl_gen_account *acc);
