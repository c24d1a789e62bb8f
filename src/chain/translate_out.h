/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the translator sends its operations. A kind of output is one file with one constructor; the
 * service knows no more of it than this.
 */
#pragma once

#include <poll.h>

#include "base/diag.h"
#include "dta/op.h"
#include "dta/translator.h"
#include "runtime/account.h"
#include "runtime/region_metrics.h"
#include "runtime/runtime.h"

struct pl_translate_out {
	/* For struct pl_op_sink; `arg` is the output's own. */
	void (*ops)(void *arg, const struct pl_op *ops, size_t n);
	/* What an output remembers of lists: before the first report. NULL: nothing. */
	int (*resume)(void *arg, struct pl_translator *t);
	/* Its counters. */
	void (*account)(void *arg, const struct pl_account *a);
	/* The regions that are written here. NULL: none. */
	void (*regions)(void *arg, struct pl_region_list *ret);
	/* 0, or the negative errno of what could not be brought to its end. */
	int (*close)(void *arg);
	/* The rest is of outputs that have something to do of their own; else NULL. `turn` does it,
	 * between reports and whenever one of the descriptors or the time it gave asks for it;
	 * returns when it wants to be called at the latest. `fds` gives those descriptors, at most
	 * `max`. `pressed` is asked after each datagram and may tell the translator that a
	 * collector takes no more. `finish` brings what is under way to its end, for so long as
	 * there is progress. */
	uint64_t (*turn)(void *arg, struct pl_translator *t, uint64_t now_ns);
	unsigned int (*fds)(void *arg, struct pollfd *ret, unsigned int max);
	void (*pressed)(void *arg, struct pl_translator *t);
	void (*finish)(void *arg);
	/* Whether stores were lost under way, of which the output has told; then what became of
	 * them, in words behind what is there. NULL: none can be. */
	bool (*lost)(void *arg);
	void (*tell_lost)(void *arg, struct pl_buf *text);
	/* What is wrong with it now. NULL: nothing ever. */
	void (*conditions)(void *arg, struct pl_conditions *ret);
	/* From now on calls `written` after operations of which readers are to be told. NULL: it
	 * writes nothing here. */
	void (*tell)(void *arg, void (*written)(void *arg), void *written_arg);
	/* Asks for the next epoch. NULL: there are none. */
	void (*next_epoch)(void *arg);
	void *arg;
	/* The stores there are, in their order; the same for each collector. */
	const struct pl_store_params *stores;
	unsigned int n_stores, collectors;
};

/* Region files, written here. `paths` are those of the first collector's stores, then the second's
 * …, `names` what they are called on the metrics page; n is a multiple of `collectors`. Epochs as
 * pl_epochs_open: every epoch_ns, or 0, and kept in a folder, or NULL. The strings stay until it is
 * closed. Negative errno with diag. */
int pl_translate_to_regions(struct pl_translate_out *ret, const char *const *paths, size_t n,
	const char *const *names, unsigned int collectors, uint64_t epoch_ns,
	const char *keep_epochs, struct pl_diag *diag);

/* Families of its account, without samples. */
void pl_translate_regions_describe(const struct pl_account *a);

/* Stores of collectors far away:
 * "roce://HOST:PORT[,HOST:PORT]…/STORE[,STORE]…?dev=packet:IFACE[&service=rc]". Waits for the first
 * collector, which says what the stores are, up to ten seconds or until it is to stop. -EINVAL,
 * -EHOSTUNREACH, -EPERM, … with diag. */
bool pl_translate_is_roce(const char *where);
int pl_translate_to_roce(struct pl_translate_out *ret, const char *uri,
	const struct pl_service_opening *opening, struct pl_diag *diag);
