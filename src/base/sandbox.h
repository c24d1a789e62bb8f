/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process may still ask of the system after it has given up its rights (base/privilege.h):
 * the system calls of its family (seccomp, sandbox_calls.c) and the files it was told of (Landlock,
 * sandbox_files.c). For the whole life of the process, its threads and its children.
 *
 * A call outside the list fails with EPERM and is told once, with its name: a new C library may try
 * a call that it can do without, and a collector is not to die of that. A call that only foreign
 * code makes (execve, ptrace, mount, a new process, ...) is told and ends the process by SIGSYS.
 * Calls of another architecture end it at once.
 *
 * The environment variable PATHLINE_SANDBOX switches it off for debugging: "off", or "no-seccomp"
 * or "no-landlock" for one of the two; "strict" has every refused call end the process, as tests
 * want it. A program with file capabilities takes no notice of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/* Groups of system calls. Memory, threads, signals, clocks and what is open already belong to every
 * family. */
enum pl_sandbox_calls {
	PL_SANDBOX_READ_FILES = 1 << 0,
	PL_SANDBOX_WRITE_FILES = 1 << 1, /* create, rename, remove, sync too */
	PL_SANDBOX_NETWORK = 1 << 2,     /* Internet, Unix and netlink sockets */
	PL_SANDBOX_RAW = 1 << 3,  /* sockets of AF_PACKET and AF_XDP, as far as capabilities go */
	PL_SANDBOX_BPF = 1 << 4,  /* maps and links of programs that are loaded */
	PL_SANDBOX_PIN = 1 << 5,  /* threads to processors */
	PL_SANDBOX_RDMA = 1 << 6, /* the requests of RDMA NICs' drivers */
	/* the state of the clock, by adjtimex; to set it takes a capability that is given up */
	PL_SANDBOX_CLOCK = 1 << 8,
	PL_SANDBOX_HELPER =
		1 << 7, /* alone: what the keeper of rights does, and nothing of the above */
};

struct pl_sandbox_path {
	/* a file, or a folder with all in it; what is not there yet counts as its folder */
	const char *path;
	bool write; /* also create, rename and remove beside it */
};

struct pl_sandbox_options {
	unsigned int calls; /* enum pl_sandbox_calls */
	/* Beside those of the system (libraries, resolver, certificates, /proc and /sys), which may
	 * be read. */
	const struct pl_sandbox_path *paths;
	size_t n_paths;
	/* Told of refused calls, in a signal handler: may only call what is allowed there. NULL:
	 * standard error. */
	void (*tell)(const char *text);
};

struct pl_sandbox_state {
	bool seccomp;
	int landlock;  /* its version; 0: none */
	char why[160]; /* what is missing, as a sentence; empty: nothing */
};

/* Before the first thread. Negative errno with diag: the process is not confined, and has to end. A
 * part that the kernel or this build lacks, or that the environment switches off, is no error:
 * ret->why names it. */
int pl_sandbox_enter(const struct pl_sandbox_options *options, struct pl_sandbox_state *ret,
	struct pl_diag *diag);

/* Whether pl_sandbox_enter will filter system calls, as far as this build and the environment say. */
bool pl_sandbox_filters_calls(void);

/* System calls refused so far, of all threads. */
uint64_t pl_sandbox_refused(void);

/* The library that filters are made with: its version, or why there is none. */
const char *pl_sandbox_library(void);
