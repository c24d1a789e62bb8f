/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An output of the translator's operations. Each kind of output is one file with one constructor;
 * the service knows only this interface.
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
	/* Resumes lists from the output's state, before the first report. NULL: nothing to
	 * resume. */
	int (*resume)(void *arg, struct pl_translator *t);
	/* Adds its counters. */
	void (*account)(void *arg, const struct pl_account *a);
	/* Lists the regions that are written here. NULL: none. */
	void (*regions)(void *arg, struct pl_region_list *ret);
	/* Waits for the first collector, which sends the stores' parameters, up to ten seconds or
	 * until a signal ends the process; afterwards `stores` are valid. -EHOSTUNREACH with diag.
	 * NULL: they hold already. */
	int (*connect)(void *arg, struct pl_diag *diag);
	/* Returns 0, or the negative errno of closing. */
	int (*close)(void *arg);
	/* The following are for outputs with work besides reports; else NULL. `turn` does that
	 * work, between reports and whenever a descriptor is ready or its time has come; it returns
	 * the latest time of the next call. `fds` gives the descriptors, at most `max`. `pressed`
	 * is called after each datagram and may tell the translator that a collector is congested.
	 * `finish` completes the work under way, as long as there is progress. */
	uint64_t (*turn)(void *arg, struct pl_translator *t, uint64_t now_ns);
	unsigned int (*fds)(void *arg, struct pollfd *ret, unsigned int max);
	void (*pressed)(void *arg, struct pl_translator *t);
	void (*finish)(void *arg);
	/* lost returns true when stores were lost meanwhile, which the output has reported;
	 * tell_lost appends what happened. NULL: cannot happen. */
	bool (*lost)(void *arg);
	void (*tell_lost)(void *arg, struct pl_buf *text);
	/* Adds its present conditions. NULL: never any. */
	void (*conditions)(void *arg, struct pl_conditions *ret);
	/* Sets `written`, which is called after operations that readers must learn of. NULL: the
	 * output writes nothing here. */
	void (*tell)(void *arg, void (*written)(void *arg), void *written_arg);
	/* Asks for the next epoch. NULL: no epochs. */
	void (*next_epoch)(void *arg);
	void *arg;
	/* Stores in their order; the same for each collector. */
	const struct pl_store_params *stores;
	unsigned int n_stores, collectors;
};

/* Opens region files, written here. `paths` are those of the first collector's stores, then the
 * second's …, `names` their names on the metrics page; n is a multiple of `collectors`. Epochs as
 * pl_epochs_open: every epoch_ns, or 0, and kept in a folder, or NULL. The strings stay until it is
 * closed. Returns negative errno with diag. */
int pl_translate_to_regions(struct pl_translate_out *ret, const char *const *paths, size_t n,
	const char *const *names, unsigned int collectors, uint64_t epoch_ns,
	const char *keep_epochs, struct pl_diag *diag);

/* Writes the families of its account, without samples. */
void pl_translate_regions_describe(const struct pl_account *a);

bool pl_translate_is_roce(const char *where);
/* Opens the interface to stores of remote collectors:
 * "roce://HOST:PORT[,HOST:PORT]…/STORE[,STORE]…?dev=packet:IFACE[&service=rc]". rights: of a
 * helper, or NULL. Returns -EINVAL, -EPERM, … with diag. */
int pl_translate_to_roce(struct pl_translate_out *ret, const char *uri,
	const struct pl_rights *rights, struct pl_diag *diag);
