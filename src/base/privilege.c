/* SPDX-License-Identifier: BSD-2-Clause */
/* Capabilities by the system calls themselves: the two structures are all that a library would
 * add. */
#include "base/privilege.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/num.h"

enum { CAPABILITIES = 64, RECORD_MAX = 16384 };

/* The thread sanitizer has a thread of its own, in a child from its first moment. */
#ifdef __SANITIZE_THREAD__
#define THREADS_AT_FIRST 2
#else
#define THREADS_AT_FIRST 1
#endif

struct identity {
	bool changes;
	uid_t uid;
	gid_t gid;
	char *name; /* user, for its other groups; NULL: none */
};

/* ---- user and group to become ---- */

/* Parses a number; -ESRCH when it is not one. (uid_t)-1 means "no change" in system calls, so it is refused. */
static int parse_id(const char *text, uint32_t *ret)
{
	uint64_t n;

	if (pl_parse_u64(text, &n) < 0 || n >= UINT32_MAX)
		return -ESRCH;
	*ret = (uint32_t)n;
	return 0;
}

static int find_user(const char *user, struct identity *ret)
{
	struct passwd entry, *found = NULL;
	char *room = malloc(RECORD_MAX);
	uint32_t id;
	int r;

	if (room == NULL)
		return -ENOMEM;
	r = getpwnam_r(user, &entry, room, RECORD_MAX, &found);
	if (found == NULL && parse_id(user, &id) == 0) {
		r = getpwuid_r(id, &entry, room, RECORD_MAX, &found);
		if (found == NULL) {
			/* A number needs no name. */
			ret->uid = id;
			ret->gid = id;
			free(room);
			return 0;
		}
	}
	if (found != NULL) {
		ret->uid = found->pw_uid;
		ret->gid = found->pw_gid;
		ret->name = strdup(found->pw_name);
		r = ret->name != NULL ? 0 : -ENOMEM;
	} else {
		r = r == ENOMEM ? -ENOMEM : -ESRCH;
	}
	free(room);
	return r;
}

static int find_group(const char *group, gid_t *ret)
{
	struct group entry, *found = NULL;
	char *room = malloc(RECORD_MAX);
	uint32_t id;

	if (room == NULL)
		return -ENOMEM;
	getgrnam_r(group, &entry, room, RECORD_MAX, &found);
	if (found != NULL)
		*ret = found->gr_gid;
	free(room);
	if (found != NULL)
		return 0;
	if (parse_id(group, &id) < 0)
		return -ESRCH;
	*ret = id;
	return 0;
}

bool pl_privilege_user_exists(const char *user)
{
	struct identity who = { .name = NULL };
	bool found = find_user(user, &who) == 0;

	free(who.name);
	return found;
}

bool pl_privilege_group_exists(const char *group)
{
	gid_t gid;

	return find_group(group, &gid) == 0;
}

static int find_identity(
	const struct pl_privilege_options *options, struct identity *ret, struct pl_diag *diag)
{
	int r = 0;

	*ret = (struct identity){ .uid = geteuid(), .gid = getegid() };
	if (options->user != NULL) {
		r = find_user(options->user, ret);
		if (r < 0)
			pl_diag_set(diag, "there is no user '%s'", options->user);
	}
	if (r == 0 && options->group != NULL) {
		r = find_group(options->group, &ret->gid);
		if (r < 0)
			pl_diag_set(diag, "there is no group '%s'", options->group);
	}
	ret->changes = ret->uid != geteuid() || ret->gid != getegid();
	return r;
}

/* ---- becoming it ---- */

static int capset_all(uint64_t capabilities)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted = (uint32_t)(capabilities >> (32 * i));
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int capget_all(uint64_t *ret_effective, uint64_t *ret_permitted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	*ret_effective = data[0].effective | (uint64_t)data[1].effective << 32;
	*ret_permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	return 0;
}

uint64_t pl_privilege_effective(void)
{
	uint64_t effective = 0, permitted;

	return capget_all(&effective, &permitted) < 0 ? 0 : effective;
}

static unsigned int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	const struct dirent *e;
	unsigned int n = 0;

	if (d == NULL)
		return 1;
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static int become(const struct identity *who, struct pl_diag *diag)
{
	int r;

	if (!who->changes)
		return 0;
	r = who->name != NULL ? initgroups(who->name, who->gid) : setgroups(0, NULL);
	if (r < 0 || setresgid(who->gid, who->gid, who->gid) < 0 ||
		setresuid(who->uid, who->uid, who->uid) < 0) {
		r = -errno;
		pl_diag_set(diag,
			"cannot become user %u, group %u: %s; start as root, or leave out 'user' and 'group'",
			who->uid, who->gid, strerror(-r));
		return r;
	}
	return 0;
}

int pl_privilege_drop(const struct pl_privilege_options *options, struct pl_diag *diag)
{
	uint64_t effective = 0, permitted = 0, keep;
	struct identity who;
	int r;

	if (threads() > THREADS_AT_FIRST) {
		pl_diag_set(diag, "cannot give up privileges: threads are running already");
		return -EBUSY;
	}
	r = find_identity(options, &who, diag);
	if (r == 0)
		r = capget_all(&effective, &permitted);
	if (r < 0)
		goto done;
	keep = permitted & options->keep;
	/* Needs CAP_SETPCAP. Without it only no_new_privs prevents new capabilities. */
	for (unsigned int i = 0; i < CAPABILITIES; i++)
		(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (keep != 0 && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0) {
		r = -errno;
		goto done;
	}
	r = become(&who, diag);
	if (r < 0)
		goto done;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	r = capset_all(keep);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0 && !options->core_dumps) {
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	}
	/* The system's answer counts, not the request. */
	if (r == 0)
		r = capget_all(&effective, &permitted);
	if (r == 0 && (effective != keep || permitted != keep || geteuid() != who.uid))
		r = -EPERM;
done:
	if (r < 0 && diag != NULL && diag->text[0] == '\0')
		pl_diag_set(diag, "cannot give up privileges: %s", strerror(-r));
	free(who.name);
	return r;
}
