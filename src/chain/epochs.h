/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs of regions in two halves, turned every so often or when it is asked for. A thread beside
 * their writer's empties the half that is to be written and copies what ended to files; the turn
 * itself is the writer's and takes no time. Where old epochs are kept none is emptied before it is
 * copied: a full disk puts the turn off.
 */
#pragma once

#include "base/condition.h"
#include "base/diag.h"
#include "memory/region.h"
#include "runtime/account.h"

struct pl_epochs;

enum pl_epochs_kind {
	PL_EPOCHS_NONE,
	PL_EPOCHS_TIMED, /* they turn together */
	PL_EPOCHS_OWN,   /* the writer turns it when it wants to: pl_epochs_may_begin */
};

/* Who writes the regions. They stay until the epochs are freed. */
struct pl_epochs_writer {
	uint32_t n; /* regions, numbered from 0 */
	enum pl_epochs_kind (*kind)(void *arg, uint32_t i);
	const struct pl_region *(*region)(void *arg, uint32_t i);
	const char *(*name)(void *arg, uint32_t i); /* for people */
	const char *(*path)(void *arg, uint32_t i);
	/* Empties the half of the next epoch; from the epochs' thread. */
	int (*prepare)(void *arg, uint32_t i);
	/* Begins it; from the writer's. -EAGAIN: not yet, pl_epochs_step tries again. */
	int (*next)(void *arg, uint32_t i);
	void *arg;
};

/* `every_ns` 0: only when it is asked for. `folder`: where an epoch that has ended is kept, as
 * FILE-NUMBER.plr of the region FILE.plr; NULL: it is gone when the next but one begins. Negative
 * errno with diag. */
int pl_epochs_open(struct pl_epochs **ret, const struct pl_epochs_writer *writer, uint64_t every_ns,
	const char *folder, struct pl_diag *diag);

/* The writer's thread: turns what is prepared, which makes the descriptor readable. */
int pl_epochs_fd(const struct pl_epochs *e);
void pl_epochs_turn(struct pl_epochs *e);
/* After each step of the writer: those turn that could not yet. */
void pl_epochs_step(struct pl_epochs *e);
void pl_epochs_ask(struct pl_epochs *e);

/* A region that turns by itself. Whether the half that it would go on in may be emptied, because
 * what ended there is kept; that may take as long as to write it to disk, when its epochs are
 * shorter than that. Then, that it has turned. */
bool pl_epochs_may_begin(struct pl_epochs *e, uint32_t i);
void pl_epochs_begun(struct pl_epochs *e);

/* Member "epochs" of an object that is open; their families are those of the translator or of the
 * memory server. e NULL: zeros. */
struct pl_epochs_names {
	const char *turned, *kept, *put_off, *late;
};
extern const struct pl_epochs_names pl_epochs_dta, pl_epochs_rdma;
void pl_epochs_account(
	const struct pl_account *a, const struct pl_epochs_names *names, struct pl_epochs *e);
/* Of each region whose epoch cannot be kept at present. */
void pl_epochs_conditions(struct pl_epochs *e, struct pl_conditions *ret);

/* No more turns; what ended and is not yet kept is. Then it can only be asked for its counters, and
 * freed. NULL is fine. */
void pl_epochs_stop(struct pl_epochs *e);
void pl_epochs_free(struct pl_epochs *e);
