/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sandbox of a process that has given up its privileges (base/privilege.h): it refuses system calls
 * that no service ever needs (seccomp, sandbox_calls.c), and files other than the given ones
 * (Landlock, sandbox_files.c), for the whole life of the process, its threads and its children.
 *
 * A refused call (execve, ptrace, mount, a new process, a program for the kernel, ...) is reported
 * by its name and ends the process by SIGSYS: only injected code makes it. Calls of another
 * architecture end it at once.
 *
 * The environment variable PATHLINE_SANDBOX switches it off for debugging: "off", or
 * "no-seccomp" or "no-landlock" for one of the two. A program with file capabilities ignores it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct pl_sandbox_path {
	/* a file, or a folder with all in it; one that does not exist counts as its folder */
	const char *path;
	bool write; /* also create, rename and remove beside it */
};

struct pl_sandbox_options {
	bool programs; /* maps and links of kernel programs are used, and nothing else of bpf(2) */
	bool rdma;     /* devices of RDMA NICs are opened */
	bool helper;   /* used alone: only the calls of the keeper of rights (netio/helper.h) */
	/* Files beside those of the system (libraries, resolver, certificates, /proc and /sys),
	 * which may be read. */
	const struct pl_sandbox_path *paths;
	size_t n_paths;
	/* Reports a refused call, in a signal handler: it may only call what is allowed there.
	 * NULL: standard error. */
	void (*tell)(const char *text);
};

struct pl_sandbox_state {
	bool seccomp;
	int landlock;  /* version of Landlock; 0: none */
	char why[160]; /* missing parts, as a sentence; empty: none */
};

/* Confines the process, before the first thread. Returns 0, or a negative errno with diag: the
 * process is not confined, and has to end. A part that the kernel or this build lacks, or that the
 * environment switches off, is no error: ret->why names it. */
int pl_sandbox_enter(const struct pl_sandbox_options *options, struct pl_sandbox_state *ret,
	struct pl_diag *diag);

/* True when pl_sandbox_enter will filter system calls, by this build and the environment. */
bool pl_sandbox_filters_calls(void);

/* Version of the library that makes the filters, or why there is none. */
const char *pl_sandbox_library(void);
