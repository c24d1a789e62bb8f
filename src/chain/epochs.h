/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs of regions in two halves, turned regularly or on request. A thread of its own empties the
 * next half and copies ended epochs to files; the writer's thread makes the turn, which takes no
 * time. When old epochs are kept, none is emptied before it is copied: a full disk delays the turn.
 */
#pragma once

#include "base/condition.h"
#include "base/diag.h"
#include "memory/region.h"
#include "runtime/account.h"

struct pl_epochs;

enum pl_epochs_kind {
	PL_EPOCHS_NONE,
	PL_EPOCHS_TIMED, /* regions turn together */
	PL_EPOCHS_OWN,   /* the writer turns the region itself: pl_epochs_may_begin */
};

/* The writer of the regions, which stay until the epochs are freed. */
struct pl_epochs_writer {
	uint32_t n; /* regions, numbered from 0 */
	enum pl_epochs_kind (*kind)(void *arg, uint32_t i);
	const struct pl_region *(*region)(void *arg, uint32_t i);
	const char *(*name)(void *arg, uint32_t i); /* for the user */
	const char *(*path)(void *arg, uint32_t i);
	/* Empties the half of the next epoch; called by the epochs' thread. */
	int (*prepare)(void *arg, uint32_t i);
	/* Begins the next epoch; called by the writer's thread. Returns -EAGAIN: not yet,
	 * pl_epochs_step tries again. */
	int (*next)(void *arg, uint32_t i);
	void *arg;
};

/* `every_ns` 0: on request only. `folder`: ended epochs of the region FILE.plr are kept there as
 * FILE-NUMBER.plr; NULL: an epoch is lost when the next but one begins. Returns negative errno with
 * diag. */
int pl_epochs_open(struct pl_epochs **ret, const struct pl_epochs_writer *writer, uint64_t every_ns,
	const char *folder, struct pl_diag *diag);

/* For the writer's thread: pl_epochs_turn makes a prepared turn, which makes the descriptor
 * readable. */
int pl_epochs_fd(const struct pl_epochs *e);
void pl_epochs_turn(struct pl_epochs *e);
/* Called after each step of the writer: changes the epochs that could not be changed before. */
void pl_epochs_step(struct pl_epochs *e);
void pl_epochs_ask(struct pl_epochs *e);

/* For a region that changes its epochs on its own. pl_epochs_may_begin returns true when its next
 * half may be emptied, because the ended epoch is kept; when epochs are shorter than a write to
 * disk, it waits for the write. Call pl_epochs_begun after the change. */
bool pl_epochs_may_begin(struct pl_epochs *e, uint32_t i);
void pl_epochs_begun(struct pl_epochs *e);

/* Adds the member "epochs" to an open object; its families are those of the translator or of the
 * memory server. e NULL: zeros. */
struct pl_epochs_names {
	const char *turned, *kept, *put_off, *late;
};
extern const struct pl_epochs_names pl_epochs_dta, pl_epochs_rdma;
void pl_epochs_account(
	const struct pl_account *a, const struct pl_epochs_names *names, struct pl_epochs *e);
/* Adds a condition for each region whose epoch cannot be kept at present. */
void pl_epochs_conditions(struct pl_epochs *e, struct pl_conditions *ret);

/* Ends the turns and keeps the ended epochs that are not kept yet. Afterwards only counters may be
 * read. NULL is fine. */
void pl_epochs_stop(struct pl_epochs *e);
void pl_epochs_free(struct pl_epochs *e);
