/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps a tap output's records on disk while its receiver is away (export/spool.h has the files).
 * Records are of one kind and are read in the order in which they were put.
 *
 * Records read stay on disk until they are released, when the receiver has them: a tap that is
 * killed before loses none, and they are read again. Records put are on the device within a second of
 * pl_tap_spool_turn. An entry that was read only in part before the end is read again as a whole.
 */
#pragma once

#include <stdbool.h>

#include "base/diag.h"
#include "base/stats.h"
#include "export/spool.h"
#include "record/packet.h"

struct pl_tap_spool_stats {
#define PL_STAT PL_STAT_MEMBER
#include "tapout/tap_spool_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_tap_spool_list;

struct pl_tap_spool {
	struct pl_spool *spool;
	uint32_t size; /* of a record */
	uint32_t kind; /* 1 + enum pl_flat_kind of the records; others are dropped */
	uint32_t at;   /* records of the oldest entry that were read already */
	uint64_t synced_ns;
	bool dirty;
	bool back;                   /* records that came back may not be on the device */
	struct pl_spool_place place; /* of the last mark */
	struct pl_diag trouble;      /* the last error; empty: there was none */
	struct pl_tap_spool_stats stats;
};

/* Opens the spool with at most `bytes` on disk in a folder, which is made when it does not exist.
 * -EINVAL: it holds records of another kind. To be closed after an error, too. */
int pl_tap_spool_open(struct pl_tap_spool *s, const char *path, uint64_t bytes,
	enum pl_flat_kind kind, struct pl_diag *diag);
void pl_tap_spool_close(struct pl_tap_spool *s);

static inline bool pl_tap_spool_is_open(const struct pl_tap_spool *s)
{
	return s->spool != NULL;
}

/* Puts n records, at most PL_TAP_SPOOL_RECORDS. Returns false when they were dropped and
 * counted. */
#define PL_TAP_SPOOL_RECORDS 4096
bool pl_tap_spool_put(struct pl_tap_spool *s, const void *records, uint32_t n);
/* Gives at most `max` records, the oldest first, until `give` returns false: it did not take that
 * one. */
void pl_tap_spool_give(struct pl_tap_spool *s, uint32_t max,
	bool (*give)(void *arg, const void *record), void *arg);
/* Puts records that came back from the receiver, also when the spool is full: those that were given
 * are on disk anyway until they are released. */
bool pl_tap_spool_put_back(struct pl_tap_spool *s, const void *records, uint32_t n);
/* Sets a mark behind the records given so far; returns false when there are none since the last
 * one. */
bool pl_tap_spool_mark(struct pl_tap_spool *s);
/* Removes the records before the mark from disk. */
void pl_tap_spool_release(struct pl_tap_spool *s);
void pl_tap_spool_turn(struct pl_tap_spool *s, uint64_t now_ns);
