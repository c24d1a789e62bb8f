/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a worker, shared by the files that make it up. All is called by the worker's thread,
 * or once that has ended by the controller. */
#pragma once

#include "pipeline/worker.h"

/* worker.c */

/* Whether flows' own numbers are followed here: not where reports are escalated to. */
bool pl_worker_follows(const struct pl_worker *w);

/* worker_snapshot.c */

/* Sums of the counters of the parts that the engine has. */
void pl_worker_totals(struct pl_totals *ret, const struct pl_engine *engine);
/* What happened elsewhere comes into the aggregates, in parts that are long over when they are
 * swept for idle ones. */
void pl_worker_harvest(struct pl_worker *w);
/* Copies the state into the snapshot and the aggregates. */
void pl_worker_publish(struct pl_worker *w);
/* Puts new parts in the place of old ones; what the old ones counted is kept. */
void pl_worker_install(struct pl_worker *w, struct pl_engine *next);

/* worker_advice.c */

/* Looks at some packets of a batch for profiles that would decode what does not; few a second. */
void pl_worker_advise(struct pl_worker *w, const struct pl_batch *packets);
/* Puts the advices there are where other threads read them, and says new ones in the log. */
void pl_worker_show_advices(struct pl_worker *w);

/* worker_source.c */

int pl_worker_open_port(struct pl_worker *w, struct pl_port **ret, struct pl_diag *diag);
/* The errno for which the source is lost, with words; 0: it is not. */
void pl_worker_set_trouble(struct pl_worker *w, int error, const char *words);
/* The same, said in the log: the source went, or came back. */
void pl_worker_lost(struct pl_worker *w, int error, const char *words);
void pl_worker_back(struct pl_worker *w);
/* What a port said instead of packets. False: there will be none any more. */
bool pl_worker_hear_port(struct pl_worker *w, int error, const struct pl_diag *diag);
/* Tries to open a lost source when it is time. False when there is no use in trying on. */
bool pl_worker_regain(struct pl_worker *w);
/* Packets of the source that there was no room for so far, and times in which it was away: any may
 * have passed then. */
uint64_t pl_worker_unseen(struct pl_worker *w);
/* Tells of senders that got a lane, or went back, since the last look. */
void pl_worker_look_floods(struct pl_worker *w);

/* worker_time.c: the rules' time. It is the machine's, but for a capture file, where it is that of
 * the packets: a capture gives the same events at any speed, stamped with its own times. */

/* Reads the machine's clocks; first: nothing has come yet. */
void pl_worker_time(struct pl_worker *w, bool first);
/* Ticks the rules when that is due. */
void pl_worker_tick(struct pl_worker *w);
/* Takes the packets received from a capture in parts that lie within a millisecond, and ticks the
 * rules for the time between them. */
void pl_worker_replay(
	struct pl_worker *w, void (*take)(struct pl_worker *w, const struct pl_batch *packets));
