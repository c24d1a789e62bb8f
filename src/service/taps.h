/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The taps of a configuration as one service, beside the others of the process: each is what
 * `pathline tap` is, with its counters under its name.
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
	void (*sink)(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n);
	void (*draining)(void *arg); /* the last records of `in` were given */
	void *arg;
};

/* One tap of them. */
struct pl_taps_one {
	const char *name; /* the configuration's */
	struct pl_taps *all;
	unsigned int index;
	uint32_t kinds; /* of the records that `take` wants */
	struct pl_tap_options options;
	struct pl_tap_rules configured; /* options.rules are these, or what queries want */
	struct pl_tap_count_plan
		plan; /* that options point to, where a query has packets counted */
	struct pl_tap_service service;
	struct pl_tapped tapped;           /* flows that were found in its cache */
	const struct pl_taps_added *added; /* NULL: it is the configuration's */
	unsigned int first, n_fds;         /* in the descriptors of all */
	/* For those who ask the daemon: the kinds of records that it makes, 1 << enum pl_flat_kind. */
	_Atomic uint32_t makes;
};

/* Of `makes`: of the packets that its standing queries want, not of all that its rules take. */
#define PL_TAPS_PARTIAL     (1u << 31)

#define PL_TAPS_SOCKETS_MAX 192 /* of all taps: the loop polls 256 descriptors */

struct pl_taps {
	struct pl_taps_one *taps[PL_CONFIG_TAPS_MAX];
	unsigned int n;
	/* Where records go beside the outputs, on the service's thread; NULL: nowhere. */
	void (*take)(void *arg, unsigned int tap, enum pl_flat_kind kind, const void *records,
		uint32_t n);
	void (*turned)(void *arg); /* behind the records of a turn */
	/* As those of struct pl_tap_print; with `take`. */
	void (*passed)(void *arg, unsigned int tap, uint64_t ts_ns);
	void (*counts)(void *arg, unsigned int tap, const struct pl_tap_count *counts, uint32_t n);
	void (*counting)(void *arg, unsigned int tap, bool on);
	void *arg;
	struct pl_watch *watch; /* viewers of records; NULL: there can be none */
	uint64_t conditions_ns; /* of the next look at them */
	struct pl_condition_board conditions;
	bool began;
};

/* Of the configuration, whose strings are kept. -ENOMEM: what was made is the caller's to close. */
int pl_taps_init(struct pl_taps *ret, const struct pl_config *config);

/* Another one behind them, that makes records of `out` of records of `in`, for another service: those
 * of `in`, which come as tmpkt/1, go to its sink, and it gives those of `out`
 * (pl_tap_service_give). It, and all strings, are kept. Before the start. -EINVAL with diag,
 * -ENOMEM. */
int pl_taps_add(struct pl_taps *taps, const struct pl_taps_added *added, struct pl_taps_one **ret,
	struct pl_diag *diag);

/* Whether the taps' sources and outputs are such as opening them takes, by their texts alone: with
 * the text with which the start would refuse them. -EINVAL with diag. */
int pl_taps_check(const struct pl_config *config, struct pl_diag *diag);

/* Which kinds of records `take` wants of a tap, as bits 1 << enum pl_flat_kind. Before the start,
 * or between two turns. -EINVAL with diag: they cannot be made before a restart. -ENOMEM. */
int pl_taps_want(struct pl_taps *taps, unsigned int tap, uint32_t kinds, struct pl_diag *diag);

/* Whether queries may have the tap leave out packets: it has neither outputs nor rules of its
 * own. */
bool pl_taps_may_push(const struct pl_taps_one *one);
/* Rules in the place of those that it has not. Before the start, or between two turns. */
void pl_taps_push(struct pl_taps_one *one, const struct pl_tap_rules *rules);
/* Packets that were counted become records again; the last counts are given. Between two turns. */
void pl_taps_stop_counts(struct pl_taps_one *one);

/* Rules and points become those of the configuration, between two turns; nothing else changes. */
void pl_taps_change(struct pl_taps *taps, const struct pl_config *config);

/* Whether an output did not take all of its records. */
bool pl_taps_lost(const struct pl_taps *taps);
void pl_taps_close(struct pl_taps *taps);

/* taps_account.c */
void pl_taps_put_page(void *taps, struct pl_exposition *page);
void pl_taps_describe(struct pl_exposition *page);
void pl_taps_put_json(void *taps, struct pl_json *json);
void pl_taps_put_text(void *taps, struct pl_buf *text);

extern const struct pl_service_ops pl_taps_service;
