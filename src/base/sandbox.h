/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process may no longer ask of the system after it has given up its rights (base/privilege.h): system calls that
 * no service ever needs (seccomp, sandbox_calls.c), and files but those it was told of (Landlock, sandbox_files.c). For the
 * whole life of the process, its threads and its children.
 *
 * A refused call (execve, ptrace, mount, a new process, a program for the kernel, ...) is told with its name and ends the
 * process by SIGSYS: only foreign code makes it. Calls of another architecture end it at once.
 *
 * The environment variable PATHLINE_SANDBOX switches it off for debugging: "off", or "no-seccomp" or "no-landlock" for one
 * of the two. A program with file capabilities takes no notice of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct pl_sandbox_path {
	/* a file, or a folder with all in it; what is not there yet counts as its folder */
	const char *path;
	bool write; /* also create, rename and remove beside it */
};

struct pl_sandbox_options {
	bool programs; /* maps and links of programs in the kernel are used, and nothing else of bpf(2) */
	bool rdma;   /* devices of RDMA NICs are opened */
	bool helper; /* alone: only what the keeper of rights does (netio/helper.h) */
	/* Beside those of the system (libraries, resolver, certificates, /proc and /sys), which may
	 * be read. */
	const struct pl_sandbox_path *paths;
	size_t n_paths;
	/* Told of a refused call, in a signal handler: may only call what is allowed there. NULL:
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

/* The library that filters are made with: its version, or why there is none. */
const char *pl_sandbox_library(void);
