/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits system calls and files of this process with seccomp and Landlock. */
#include "base/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/have_seccomp.h"
#include "base/sandbox_internal.h"

#define SWITCH "PATHLINE_SANDBOX"

static bool absent(int r)
{
	return r == -ENOSYS || r == -EOPNOTSUPP;
}

static void note(struct pl_sandbox_state *state, const char *what)
{
	const size_t n = strlen(state->why);

	snprintf(state->why + n, sizeof(state->why) - n, "%s%s", n > 0 ? "; " : "", what);
}

struct wanted {
	bool calls, files;
};

/* Reads the switch. Returns 0, or -EINVAL with diag. */
static int read_switch(struct wanted *ret, struct pl_diag *diag)
{
	const char *text = secure_getenv(SWITCH);

	*ret = (struct wanted){ .calls = true, .files = true };
	if (text == NULL || text[0] == '\0' || strcmp(text, "on") == 0)
		return 0;
	if (strcmp(text, "off") == 0) {
		ret->calls = ret->files = false;
	} else if (strcmp(text, "no-seccomp") == 0) {
		ret->calls = false;
	} else if (strcmp(text, "no-landlock") == 0) {
		ret->files = false;
	} else {
		pl_diag_set(
			diag, "%s=%s: must be on, off, no-seccomp or no-landlock", SWITCH, text);
		return -EINVAL;
	}
	return 0;
}

bool pl_sandbox_filters_calls(void)
{
	struct wanted wanted;

	return PL_HAVE_SECCOMP && read_switch(&wanted, NULL) == 0 && wanted.calls;
}

int pl_sandbox_enter(const struct pl_sandbox_options *options, struct pl_sandbox_state *ret,
	struct pl_diag *diag)
{
	struct wanted wanted;
	int r = read_switch(&wanted, diag);

	*ret = (struct pl_sandbox_state){ .seccomp = false };
	if (r < 0)
		return r;
	/* Both parts need it; a process that has given up its privileges has it already. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
		r = -errno;
		pl_diag_set(diag, "no_new_privs: %s", strerror(-r));
		return r;
	}
	if (wanted.files) {
		r = sandbox_files_enter(options, diag);
		if (r < 0 && !absent(r))
			return r;
		ret->landlock = r > 0 ? r : 0;
		if (r < 0)
			note(ret,
				"this kernel has no Landlock: only file permissions protect files");
	} else {
		note(ret, "Landlock is switched off by " SWITCH);
	}
	if (!wanted.calls) {
		note(ret, "seccomp is switched off by " SWITCH);
		return 0;
	}
	r = sandbox_calls_enter(options, diag);
	if (r < 0 && !absent(r))
		return r;
	ret->seccomp = r == 0;
	if (r < 0)
		note(ret, PL_HAVE_SECCOMP
				  ? "this kernel has no seccomp filters"
				  : "built without libseccomp: system calls are not filtered");
	return 0;
}
