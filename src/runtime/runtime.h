/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a process that serves: one loop and one life cycle for every service, alone or
 * several in a process.
 *
 *   rights     names of interfaces to the helper, open, rights given up, the rest opened
 *   ready      READY=1 to the service manager, from then on the watchdog
 *   turns      file descriptors and deadlines of all services in one poll(2); pages read them
 *              between two turns
 *   signals    HUP reload, USR1 accounts, USR2 the next epoch, TERM and INT the end; a second one
 *              ends at once
 *   drain      services empty what they hold, last opened first, then the accounts
 *
 * A service fills struct pl_service_ops and has its own structure, which its owner opens none of
 * and frees; the runtime calls it from one thread. One runtime per process.
 */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "export/exposition.h"
#include "runtime/confine.h"
#include "runtime/readiness.h"
#include "runtime/region_metrics.h"
#include "runtime/say.h"

/* For a service that opens. */
struct pl_service_opening {
	const struct pl_rights *rights; /* for interfaces (netio/rights.h); NULL: our own */
	/* To be called once, when what takes rights is open, and before a thread is started or
	 * anything is believed that comes from far away. Negative errno with diag: opening
	 * fails. */
	int (*opened)(void *arg, struct pl_diag *diag);
	void *arg;
	const volatile sig_atomic_t *stop; /* not 0: opening that waits is to end */
};

enum pl_service_turn {
	PL_TURN_IDLE,
	PL_TURN_BUSY, /* there is more to do at once */
	PL_TURN_OVER, /* it has done all it was to do */
};

/* Those that have nothing to say are NULL, but for name, open and turn. */
struct pl_service_ops {
	const char *name; /* "translator" */
	/* Interfaces (pl_confine_uri) and files (pl_confine_path) that it will open. Negative
	 * errno. */
	void (*interfaces)(void *s, struct pl_confine *confine);
	int (*files)(void *s, struct pl_confine *confine);
	/* Negative errno with diag; what was opened until then goes with its owner's structure. */
	int (*open)(void *s, const struct pl_service_opening *opening, struct pl_diag *diag);
	/* What it waits for, at most `max`. They come back in its turn, with what poll(2) found. */
	unsigned int (*fds)(void *s, struct pollfd *ret, unsigned int max);
	/* One of the above, or negative errno with diag: it cannot go on. Never waits, unless
	 * `waits`. */
	int (*turn)(void *s, const struct pollfd *fds, uint64_t now_ns, struct pl_diag *diag);
	bool (*waits)(void *s); /* turns wait by themselves: a file is read */
	uint64_t (*due_ns)(
		void *s, uint64_t now_ns); /* when its next turn must be; pl_clock_mono_ns */
	/* Whether its threads answer; for the watchdog, outside of turns. */
	bool (*alive)(void *s);
	/* What is wrong with it, into an empty list. Any thread, at any time, without waiting. */
	void (*conditions)(void *s, struct pl_conditions *ret);
	void (*metrics)(void *s, struct pl_exposition *page);
	/* Every family that its metrics can have, without samples; also of one that is not open. */
	void (*describe)(struct pl_exposition *page);
	/* The regions that it writes, with names that no two have. */
	void (*regions)(void *s, struct pl_region_list *ret);
	/* Reads its configuration again; tells what came of it. Outside of turns. */
	void (*reload)(void *s);
	void (*epoch)(void *s); /* asks for the next one */
	/* After the last turn: takes what is under way, and brings what it holds to its end. */
	void (*drain)(void *s);
	void (*account)(void *s, struct pl_buf *text);   /* a sentence; may be empty */
	void (*counters)(void *s, struct pl_json *json); /* members of an object that is open */
};

struct pl_service {
	const struct pl_service_ops *ops;
	void *s;
};

#define PL_SERVICES_MAX 8

struct pl_runtime_options {
	const struct pl_service *services; /* in the order in which they are opened */
	unsigned int n;
	struct pl_privilege_options rights;
	uint64_t duration_ns; /* 0: until it is told to end */
	const char *web;      /* address of a page for its services; NULL: none */
	bool stats;           /* `counters` in the end too */
	bool log;             /* it is a daemon: what it tells are log lines */
	/* Sentences of accounts, with their ends of line, and, unless the text is NULL, a JSON
	 * object in a line when SIGUSR1 asks. */
	struct pl_print tell, print;
	/* When all is open; `begun` says so to people. NULL: nothing. */
	void (*begun)(void *arg);
	void *arg;
};

/* Runs until the end. 0, or what a service could not be opened for or failed by: negative errno
 * with diag; an empty one after the failure was told already. *ret_opened: everything was open, the
 * pages too. */
int pl_runtime(const struct pl_runtime_options *options, bool *ret_opened, struct pl_diag *diag);

/* For pages, from other threads while it runs: calls `visit` between two turns. */
void pl_runtime_visit(void (*visit)(void *arg), void *arg);
/* The families of all services but the first `skip`, written between two turns. */
void pl_runtime_metrics(unsigned int skip, struct pl_exposition *page);
/* Adds all services but the first `skip`. Never waits. */
void pl_runtime_readiness(unsigned int skip, struct pl_readiness *ret);
/* The accounts of all services but the first `skip`, in words, as members of an object that is
 * open; between two turns. */
void pl_runtime_accounts(unsigned int skip, struct pl_json *json);
