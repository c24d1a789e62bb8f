/* SPDX-License-Identifier: BSD-2-Clause */
/* Every kind of pathline gen sends by this: model time against the clock, sending, and the account
 * of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "netio/port.h"

struct pl_gen_account {
	uint64_t begin_ns, end_ns; /* monotonic */
	uint64_t skipped;          /* times that the clock ran away */
	uint64_t sent, sent_bytes;
};

/* A generator as gen/gen.h describes its three functions. */
struct pl_gen_source {
	int (*next)(void *gen, uint64_t until_ns, struct pl_batch *ret);
	uint64_t (*due_ns)(const void *gen);
	void (*skip_to)(void *gen, uint64_t now_ns);
	void *gen;
	uint64_t start_ns; /* model time at the start */
	/* Tells at SIGUSR1 how many were sent so far. NULL: nothing is told. */
	void (*tell)(const void *gen, const struct pl_gen_account *acc);
};

/* True when packets leave as they are made, not into a file. */
bool pl_gen_is_live(const char *uri);

/*
 * Opens where packets go (NULL: nowhere), and gives up capabilities, system calls and files but those
 * in the folder (NULL: none): what follows makes packets and sends them. An interface that comes back is opened again by a helper.
 * Negative errno with diag.
 */
int pl_gen_open(struct pl_port **ret, const char *uri, const char *folder, struct pl_diag *diag);
/* Also after a pl_gen_open that failed, with NULL. */
int pl_gen_close(struct pl_port *port);

/* SIGINT and SIGTERM end pl_gen_send; SIGUSR1 has it call the source's `tell`. */
void pl_gen_catch_signals(void);

/*
 * Until the generator ends, a signal comes, or until_ns by the monotonic clock (0: no such end).
 * Paced, model time follows the clock from the generator's start on; else it runs as fast as
 * packets leave. port NULL: nothing is sent.
 */
int pl_gen_send(const struct pl_gen_source *source, struct pl_port *port, bool paced,
	uint64_t until_ns, struct pl_gen_account *acc, struct pl_diag *diag);

/* Tells that the rate could not be kept, if so. */
void pl_gen_tell_skipped(const struct pl_gen_account *acc);
