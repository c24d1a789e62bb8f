/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives up rights, and keeps those that a command needs. */
#include "runtime/confine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/say.h"

static void tell(const char *text)
{
	pl_log_from_handler(PL_LOG_ERROR, "sandbox", text);
}

static bool names(const char *uri, const char *scheme)
{
	return strstr(uri, scheme) != NULL;
}

void pl_confine_init(struct pl_confine *c, const struct pl_privilege_options *options)
{
	*c = (struct pl_confine){ .options = *options };
}

void pl_confine_uri(struct pl_confine *c, const char *uri, bool sends)
{
	const bool packet = names(uri, "packet:"), afxdp = names(uri, "afxdp:");

	c->interfaces |= packet || afxdp;
	/* Taps in the kernel need memory for the ring, no socket. */
	if (strncmp(uri, "xdp:", 4) == 0 || strncmp(uri, "tc:", 3) == 0)
		c->interfaces = true;
	c->programs |= strncmp(uri, "drops:", 6) == 0;
	c->afxdp |= afxdp;
	c->packet |= packet || (afxdp && sends);
	c->rdma |= names(uri, "verbs:");
}

int pl_confine_begin(struct pl_confine *c, struct pl_diag *diag)
{
	const struct pl_helper_options helper = {
		.packet = c->packet, .user = c->options.user, .group = c->options.group
	};

	return c->interfaces ? pl_helper_start(&c->helper, &helper, diag) : 0;
}

const struct pl_rights *pl_confine_rights(const struct pl_confine *c)
{
	return pl_helper_rights(c->helper);
}

int pl_confine_path(struct pl_confine *c, const char *path, bool write)
{
	struct pl_sandbox_path *p = &c->paths[c->n_paths];

	if (path == NULL)
		return 0;
	if (c->n_paths == PL_CONFINE_PATHS_MAX)
		return -E2BIG;
	*p = (struct pl_sandbox_path){ .path = strdup(path), .write = write };
	if (p->path == NULL)
		return -ENOMEM;
	c->n_paths++;
	return 0;
}

/*
 * Rings of AF_XDP and memory of RDMA NICs are locked memory, also when they are made again. The
 * limit is raised before the right to do so is given up; when that is not allowed, the right to
 * lock more is kept, if there is one: it allows nothing else.
 */
static void raise_locked_memory(struct pl_confine *c)
{
	struct rlimit limit;
	bool keeps;

	if (setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }) == 0 ||
		getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return;
	keeps = (pl_privilege_effective() & PL_PRIVILEGE_IPC_LOCK) != 0;
	c->options.keep |= PL_PRIVILEGE_IPC_LOCK;
	snprintf(c->gap, sizeof(c->gap), "locked memory stays limited to %llu KiB (ulimit -l): %s",
		(unsigned long long)limit.rlim_cur >> 10,
		keeps ? "CAP_IPC_LOCK is kept, to create rings of afxdp: again when their interface comes back"
		      : "a larger ring of afxdp: cannot be created again when its interface comes back");
}

int pl_confine(struct pl_confine *c, struct pl_diag *diag)
{
	const struct pl_sandbox_options options = { .programs = c->interfaces || c->programs,
		.rdma = c->rdma,
		.paths = c->paths,
		.n_paths = c->n_paths,
		.tell = pl_say_is_by_log() ? tell : NULL };
	int r;

	if (c->done)
		return 0;
	if (c->afxdp || c->rdma)
		raise_locked_memory(c);
	r = pl_privilege_drop(&c->options, diag);
	if (r == 0)
		r = pl_sandbox_enter(&options, &c->state, diag);
	c->done = r == 0;
	if (r == 0 && c->state.why[0] != '\0')
		snprintf(c->gap + strlen(c->gap), sizeof(c->gap) - strlen(c->gap), "%s%s",
			c->gap[0] != '\0' ? "; " : "", c->state.why);
	return r;
}

const char *pl_confine_gap(const struct pl_confine *c)
{
	return c->gap[0] != '\0' ? c->gap : NULL;
}

void pl_confine_end(struct pl_confine *c)
{
	pl_helper_stop(c->helper);
	c->helper = NULL;
	for (size_t i = 0; i < c->n_paths; i++)
		free((char *)(uintptr_t)c->paths[i].path);
	c->n_paths = 0;
}
