/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The taps of a configuration as one service, beside the others of the process: each works like
 * `pathline tap`, with its counters under its name.
 */
#pragma once

#include "export/watch.h"
#include "pipeline/config.h"
#include "service/tap.h"
#include "service/tapped.h"

struct pl_taps;

/* A tap that another service adds. */
struct pl_taps_added {
	const char *name;
	const char *const *sources, *const *to;
	size_t n_sources, n_to;
	enum pl_flat_kind in, out;
	bool prove;             /* as in struct pl_tap_options */
	uint32_t max_exporters; /* likewise */
	void (*sink)(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n);
	void (*draining)(void *arg); /* called after the last records of `in` */
	void *arg;
};

/* One of the taps. */
struct pl_taps_one {
	const char *name; /* as configured */
	struct pl_taps *all;
	unsigned int index;
	uint32_t kinds; /* kinds of records that `take` wants */
	struct pl_tap_options options;
	struct pl_tap_rules configured; /* options.rules are these, or queries' */
	struct pl_tap_count_plan
		plan; /* options.plan points to it when a query has packets counted by key */
	struct pl_tap_service service;
	struct pl_tapped tapped;           /* result of the last search of its flow cache */
	const struct pl_taps_added *added; /* NULL: from the configuration */
	unsigned int first, n_fds;         /* in the descriptors of all taps */
	/* Kinds of records that it makes, 1 << enum pl_flat_kind; for the API. */
	_Atomic uint32_t makes;
};

/* In `makes`: only packets that standing queries want have records. */
#define PL_TAPS_PARTIAL     (1u << 31)

#define PL_TAPS_SOCKETS_MAX 192 /* of all taps: the loop polls 256 descriptors */

struct pl_taps {
	struct pl_taps_one *taps[PL_CONFIG_TAPS_MAX];
	unsigned int n;
	/* Takes records, beside the outputs, on the service's thread; NULL: unused. */
	void (*take)(void *arg, unsigned int tap, enum pl_flat_kind kind, const void *records,
		uint32_t n);
	void (*turned)(void *arg); /* called after the records of a turn */
	/* As in struct pl_tap_print; set together with `take`. */
	void (*passed)(void *arg, unsigned int tap, uint64_t ts_ns);
	void (*counts)(void *arg, unsigned int tap, const struct pl_tap_count *counts, uint32_t n);
	void (*counting)(void *arg, unsigned int tap, bool on);
	void *arg;
	struct pl_watch *watch; /* viewers of records; NULL: none possible */
	uint64_t conditions_ns; /* time of the next check of conditions */
	struct pl_condition_board conditions;
	bool began;
};

/* Makes the configured taps; keeps its strings. -ENOMEM: pl_taps_close frees the rest. */
int pl_taps_init(struct pl_taps *ret, const struct pl_config *config);

/* Adds a tap for another service that makes records of kind `out` from records of kind `in`:
 * received as tmpkt/1, these go to its sink, and it returns those of kind `out`
 * (pl_tap_service_give). *added and all strings are kept. Before the start. Returns -EINVAL with
 * diag, -ENOMEM. */
int pl_taps_add(struct pl_taps *taps, const struct pl_taps_added *added, struct pl_taps_one **ret,
	struct pl_diag *diag);

/* Gives records to viewers and `take`. On the service's thread. */
void pl_taps_give(
	const struct pl_taps_one *one, enum pl_flat_kind kind, const void *records, uint32_t n);

/* Checks the taps' sources and outputs by their texts alone, with the messages that opening them
 * would give. Returns -EINVAL with diag. */
int pl_taps_check(const struct pl_config *config, struct pl_diag *diag);

/* Sets the kinds of records that `take` wants of a tap, as bits 1 << enum pl_flat_kind. Before the
 * start, or between two turns. Returns -EINVAL with diag when they need a restart, -ENOMEM. */
int pl_taps_want(struct pl_taps *taps, unsigned int tap, uint32_t kinds, struct pl_diag *diag);

/* Returns whether queries may have the tap leave out packets: it has neither outputs nor rules of
 * its own. */
bool pl_taps_may_push(const struct pl_taps_one *one);
/* Sets rules of queries, if pl_taps_may_push. Before the start, or between two turns. */
void pl_taps_push(struct pl_taps_one *one, const struct pl_tap_rules *rules);
/* Makes the tap return from counts to records, and gives the last counts. Between two turns. */
void pl_taps_stop_counts(struct pl_taps_one *one);

/* Applies the configuration's rules and points, between two turns; other keys do not change. */
void pl_taps_change(struct pl_taps *taps, const struct pl_config *config);

/* Returns whether an output lost records, or counts could not be read. */
bool pl_taps_lost(const struct pl_taps *taps);
void pl_taps_close(struct pl_taps *taps);

/* ---- taps_account.c ---- */
void pl_taps_put(void *taps, const struct pl_account *a);
void pl_taps_put_text(void *taps, struct pl_buf *text);

extern const struct pl_service_ops pl_taps_service;
