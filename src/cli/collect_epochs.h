/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs of a collector's stores, turned every so often or when it is asked for. A thread beside the collector's empties
 * the half that is to be written and copies what ended to files; the turn itself is the collector's and takes no time.
 * Where old epochs are kept none is emptied before it is copied: a full disk puts the turn off. A sketch turns by itself,
 * later than the others, as soon as it is whole.
 */
#pragma once

#include "base/json.h"
#include "nic/collector.h"

struct pl_collect_epochs;

/* Whether any store has epochs (pl_collector_can_turn). */
bool pl_collect_epochs_any(
	const struct pl_collector *c, const struct pl_collector_options *options);

/* `every_ns` 0: only when it is asked for. `folder`: where an epoch that has ended is kept, as FILE-NUMBER.plr of the region
 * FILE.plr; NULL: it is gone when the next but one begins. `options` and the collector stay until it is freed. Negative
 * errno with diag; -EINVAL: no store has epochs. */
int pl_collect_epochs_open(struct pl_collect_epochs **ret, struct pl_collector *c,
	const struct pl_collector_options *options, uint64_t every_ns, const char *folder,
	struct pl_diag *diag);

/* The collector's thread: turns when the descriptor is readable. A turn that is asked for comes by it, too. */
int pl_collect_epochs_fd(const struct pl_collect_epochs *e);
void pl_collect_epochs_turn(struct pl_collect_epochs *e);
/* After each step of the collector: sketches whose turn it is turn when they are whole. */
void pl_collect_epochs_step(struct pl_collect_epochs *e);
void pl_collect_epochs_ask(struct pl_collect_epochs *e);

/* Member "epochs" of an object that is open. */
void pl_collect_epochs_stats(struct pl_json *json, struct pl_collect_epochs *e);

/* No more turns; what ended and is not yet kept is. Then it can only be asked for its counters, and freed. NULL is fine. */
void pl_collect_epochs_stop(struct pl_collect_epochs *e);
void pl_collect_epochs_free(struct pl_collect_epochs *e);
