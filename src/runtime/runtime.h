/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a process that serves: one loop and one life cycle for every service, alone or
 * several in a process.
 *
 *   opening    names of interfaces to the helper, acquire, rights given up, open
 *   ready      READY=1 to the service manager, from then on the watchdog
 *   turns      file descriptors and deadlines of all services in one poll(2); pages read them
 *              between two turns
 *   signals    HUP reload, USR1 accounts, USR2 the next epoch, TERM and INT the end; a second one
 *              ends at once
 *   drain      services empty what they hold, last opened first, then the accounts
 *
 * A service fills struct pl_service_ops and has its own structure, which its owner allocates and
 * frees, but does not open; the runtime calls it from one thread. One runtime per process.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "export/exposition.h"
#include "runtime/account.h"
#include "runtime/confine.h"
#include "runtime/readiness.h"
#include "runtime/region_metrics.h"
#include "runtime/say.h"

enum pl_service_turn {
	PL_TURN_IDLE,
	PL_TURN_BUSY, /* there is more to do at once */
	PL_TURN_OVER, /* the service has finished */
};

/* Operations of a service. They may be NULL, except name and turn. */
struct pl_service_ops {
	const char *name; /* "translator" */
	/* Name the interfaces (pl_confine_uri) and files (pl_confine_path) that the service will
	 * open. Negative errno. */
	void (*interfaces)(void *s, struct pl_confine *confine);
	int (*files)(void *s, struct pl_confine *confine);
	/* Opens what needs privileges, in the order of services; starts no thread and reads no
	 * remote input. rights: for interfaces (netio/rights.h); NULL: those of this process. As
	 * `open`, it returns negative errno with diag, and the owner of the structure frees what
	 * was opened until then. */
	int (*acquire)(void *s, const struct pl_rights *rights, struct pl_diag *diag);
	/* Opens the rest with few privileges. Services open in reverse order, so that the first
	 * one, whose pages show all services, is the last. One that waits ends when
	 * pl_runtime_ends. */
	int (*open)(void *s, struct pl_diag *diag);
	/* Descriptors to wait for, at most `max`. `turn` gets them with the results of poll(2). */
	unsigned int (*fds)(void *s, struct pollfd *ret, unsigned int max);
	/* Does the work of a turn. Returns one of the above, or negative errno with diag: the
	 * service cannot go on. Never waits, unless `waits`. */
	int (*turn)(void *s, const struct pollfd *fds, uint64_t now_ns, struct pl_diag *diag);
	bool (*waits)(void *s); /* true when turns wait on their own, as when a file is read */
	uint64_t (*due_ns)(
		/* time of its next turn at the latest; pl_clock_mono_ns */
		void *s, uint64_t now_ns);
	/* Returns true when its threads answer; for the watchdog, outside of turns. */
	bool (*alive)(void *s);
	/* Adds the present conditions to an empty list. Any thread, at any time, without
	 * waiting. */
	void (*conditions)(void *s, struct pl_conditions *ret);
	/* Lists the regions that it writes, with unique names. */
	void (*regions)(void *s, struct pl_region_list *ret);
	/* Reads its configuration again, and reports the result. Called outside of turns. */
	void (*reload)(void *s);
	void (*epoch)(void *s); /* asks for the next epoch */
	/* Called after the last turn: takes work under way, and completes held work. */
	void (*drain)(void *s);
	/* Returns true when its account is of that time (pl_clock_mono_ns) or later; else requests
	 * it from its threads. */
	bool (*is_fresh)(void *s, uint64_t since_ns);
	void (*account)(void *s, struct pl_buf *text); /* a sentence; may be empty */
	/* Writes its counters: members of an open object, or families. s NULL: every family that
	 * its page can have, without samples. */
	void (*counters)(void *s, const struct pl_account *a);
};

struct pl_service {
	const struct pl_service_ops *ops;
	void *s;
};

#define PL_SERVICES_MAX 8

struct pl_runtime_options {
	const struct pl_service *services; /* in the order of opening */
	unsigned int n;
	struct pl_privilege_options rights;
	uint64_t duration_ns; /* 0: until a signal */
	const char *web;      /* address of a page for the services; NULL: none */
	bool stats;           /* print `counters` at the end too */
	bool log;             /* it is a daemon: messages are log lines */
	/* tell: accounts, as lines. print: a JSON object in a line, on SIGUSR1 and at the end with
	 * `stats`; none when its text function is NULL. */
	struct pl_print tell, print;
	/* Called when everything is open; `begun` tells the user. NULL: nothing. */
	void (*begun)(void *arg);
	void *arg;
};

/* Runs until the end. Returns 0, or the error of a service's opening or failure: negative errno
 * with diag, whose text is empty when the failure was reported already. *ret_opened: everything was
 * open, including the pages. */
int pl_runtime(const struct pl_runtime_options *options, bool *ret_opened, struct pl_diag *diag);

/* Returns true once a signal has asked for the end. */
bool pl_runtime_ends(void);

/* For pages, from other threads while it runs: calls `visit` between two turns. */
void pl_runtime_visit(void (*visit)(void *arg), void *arg);
/* `collector` below is the pipeline of the first service, if that is the collector, else NULL. */

/* Writes the families of all services, between two turns, then the readiness of all parts. */
void pl_runtime_families(void *collector, struct pl_exposition *page);
/* Lists all parts, the collector first. Never waits. */
void pl_runtime_readiness(void *collector, struct pl_readiness *ret);
/* Adds the accounts of all services but the first, the collector, as text, to an open object;
 * between two turns. */
void pl_runtime_accounts(void *collector, struct pl_json *json);
