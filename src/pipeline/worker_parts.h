/* SPDX-License-Identifier: BSD-2-Clause */
/* Internals of a worker, shared by its files. All functions are called by the worker's thread, or
 * by the controller after that has ended. */
#pragma once

#include "pipeline/worker.h"

/* Returns whether flows' own numbers are tracked here: not where reports are escalated to. */
static inline bool pl_worker_follows(const struct pl_worker *w)
{
	return !w->source.partial || w->source.detected_elsewhere;
}

/* worker_snapshot.c */

/* Adds up the counters of the engine's parts. */
void pl_worker_totals(struct pl_totals *ret, const struct pl_engine *engine);
/* Adds to the aggregates what the source itself measured. */
void pl_worker_harvest(struct pl_worker *w);
/* Copies state to the snapshot and the aggregates to their copy. */
void pl_worker_publish(struct pl_worker *w);
/* Replaces parts; counters of the old ones are kept. */
void pl_worker_install(struct pl_worker *w, struct pl_engine *next);

/* worker_advice.c */

/* Publishes the advices for other threads, and logs new ones. */
void pl_worker_show_advices(struct pl_worker *w);

/* worker_source.c */

int pl_worker_open_port(struct pl_worker *w, struct pl_port **ret, struct pl_diag *diag);
/* Sets the errno for which the source is lost, and the reason; 0: it is not lost. */
void pl_worker_set_trouble(struct pl_worker *w, int error, const char *words);
/* Sets and logs that the source is lost, or is back. */
void pl_worker_lost(struct pl_worker *w, int error, const char *words);
void pl_worker_back(struct pl_worker *w);
/* Handles an error of the port. Returns false when no more packets will come. */
bool pl_worker_hear_port(struct pl_worker *w, int error, const struct pl_diag *diag);
/* Tries to open a lost source when it is time. Returns false when that is useless. */
bool pl_worker_regain(struct pl_worker *w);
/* Number of packets dropped for want of room, plus number of outages: any packets may have passed
 * then. */
uint64_t pl_worker_unseen(struct pl_worker *w);
/* Logs senders that got a lane, or lost it, since the last check. */
void pl_worker_look_floods(struct pl_worker *w);

/* worker_time.c: the time of detection. It is the host's, except for a capture file: its packets'
 * time, so that a capture gives the same events at any speed, with its own times. */

/* Reads the host's clocks; first: nothing has come yet. */
void pl_worker_time(struct pl_worker *w, bool first);
/* Ticks detection when due. */
void pl_worker_tick(struct pl_worker *w);
/* Reports losses that were not reported yet, when no more packets will come. */
void pl_worker_last_tick(struct pl_worker *w);
/* Takes packets of a capture in parts within a millisecond, and ticks detection for the time
 * between them. */
void pl_worker_replay(
	struct pl_worker *w, void (*take)(struct pl_worker *w, const struct pl_batch *packets));
