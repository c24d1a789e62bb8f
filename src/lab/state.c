/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the folders of running labs, and removes remains of killed ones. */
#include "lab/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/conf_tree.h"
#include "base/file.h"
#include "lab/plan.h"

#define NETNS_FOLDER "/run/netns/"
#define VIEW_BYTES   48
#define PATH_BYTES   (PL_LAB_FOLDER_MAX + 64)
/* Other processes may sweep or take the folder meanwhile. */
#define TRIES        100
/* Folders within one another that are removed: each needs a descriptor. */
#define FOLDERS_DEEP 64

const char *const pl_lab_tiers[] = { "root", "unprivileged", "simulated", NULL };

static int make_folder(const char *path, struct pl_diag *diag)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST) {
		pl_diag_set(diag, "folder %s: %s", path, strerrordesc_np(errno));
		return -errno;
	}
	/* Another process may have swept it in between. */
	if (lstat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
		pl_diag_set(diag, "%s is not a folder of this user: remove it", path);
		return -EPERM;
	}
	return 0;
}

int pl_lab_run_folder(char ret[PL_LAB_FOLDER_MAX], struct pl_diag *diag)
{
	const char *run = geteuid() == 0 ? "/run" : getenv("XDG_RUNTIME_DIR");
	int n, r;

	if (run != NULL && run[0] == '/' && access(run, W_OK) == 0)
		n = snprintf(ret, PL_LAB_FOLDER_MAX, "%s/pathline", run);
	else
		n = snprintf(ret, PL_LAB_FOLDER_MAX, "/tmp/pathline-%u", (unsigned int)geteuid());
	if (n < 0 || n > PL_LAB_FOLDER_MAX - PL_LAB_LAB_NAME_MAX - 8) {
		pl_diag_set(diag, "the path of the run-time folder is too long");
		return -ENAMETOOLONG;
	}
	r = make_folder(ret, diag);
	if (r < 0)
		return r;
	memcpy(ret + strlen(ret), "/lab", sizeof("/lab"));
	return make_folder(ret, diag);
}

static void path_in(char ret[PATH_BYTES], const char *folder, const char *file)
{
	snprintf(ret, PATH_BYTES, "%s/%s", folder, file);
}

static int open_lock(const char *folder)
{
	char path[PATH_BYTES];
	int fd;

	path_in(path, folder, "lock");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

/* Returns 1: taken, 0: another process holds it, or negative errno; -ESTALE: swept meanwhile. */
static int take_lock(const char *folder, int *ret_fd)
{
	char path[PATH_BYTES];
	struct stat a, b;
	int fd = open_lock(folder);

	if (fd < 0)
		return fd;
	path_in(path, folder, "lock");
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		close(fd);
		return 0;
	}
	if (fstat(fd, &a) < 0 || stat(path, &b) < 0 || a.st_ino != b.st_ino) {
		close(fd);
		return -ESTALE;
	}
	*ret_fd = fd;
	return 1;
}

/* Writes the identity of the /run/netns that this process sees; "" for none. Containers may see
 * another one while they share the folders of labs. */
static void view_of_names(char ret[VIEW_BYTES])
{
	struct stat st;

	ret[0] = '\0';
	if (stat(NETNS_FOLDER, &st) == 0)
		snprintf(ret, VIEW_BYTES, "%llu:%llu\n", (unsigned long long)st.st_dev,
			(unsigned long long)st.st_ino);
}

/* Returns true when this process sees the same /run/netns as the lab did. */
static bool sees_names(const struct pl_lab_state *s)
{
	char path[PATH_BYTES], view[VIEW_BYTES], *text;
	size_t len;
	bool same;

	path_in(path, s->folder, "view");
	if (pl_file_read(path, VIEW_BYTES, &text, &len) < 0)
		return true;
	view_of_names(view);
	same = strcmp(text, view) == 0;
	free(text);
	return same;
}

/* Removes a named namespace. Names come from the plan: anything else is refused. */
static void remove_netns(const char *name)
{
	char path[sizeof(NETNS_FOLDER) + PL_LAB_NETNS_MAX];

	if (name[0] == '\0' || strchr(name, '/') != NULL || strchr(name, '.') != NULL ||
		strlen(name) >= PL_LAB_NETNS_MAX)
		return;
	snprintf(path, sizeof(path), "%s%s", NETNS_FOLDER, name);
	while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		continue;
	(void)unlink(path);
}

static void remove_names(const char *folder)
{
	char path[PATH_BYTES], *text, *at, *line;
	size_t len;

	path_in(path, folder, "netns");
	if (pl_file_read(path, PL_CONF_TEXT_MAX, &text, &len) < 0)
		return;
	at = text;
	while ((line = strsep(&at, "\n")) != NULL) {
		/* The namespace of a cut line was never made. */
		if (at != NULL)
			remove_netns(line);
	}
	free(text);
}

/* Opens a folder inside another one. Returns -1 when it cannot, or when another file system is mounted
 * there, which is not the lab's. */
static int open_inside(int folder, const char *name)
{
	const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat outer, inner;

	if (fd >= 0 && fstat(folder, &outer) == 0 && fstat(fd, &inner) == 0 &&
		outer.st_dev == inner.st_dev)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Removes all that is in the folder but the file `but`; closes fd. Commands of a lab run in its
 * folder, and may leave anything there. */
static void empty_folder(int fd, const char *but, unsigned int depth)
{
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		const char *name = e->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, but) == 0 ||
			unlinkat(fd, name, 0) == 0 || errno != EISDIR)
			continue;
		if (depth > 0)
			empty_folder(open_inside(fd, name), "", depth - 1);
		(void)unlinkat(fd, name, AT_REMOVEDIR);
	}
	if (d != NULL)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

static void remove_files(const char *folder)
{
	char path[PATH_BYTES];

	/* The lock file is removed last: while it exists no process creates the folder again. */
	empty_folder(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), "lock",
		FOLDERS_DEEP);
	path_in(path, folder, "lock");
	(void)unlink(path);
	(void)rmdir(folder);
}

void pl_lab_state_leave(struct pl_lab_state *s)
{
	if (s->lock >= 0)
		close(s->lock);
	s->lock = -1;
}

void pl_lab_state_sweep(struct pl_lab_state *s)
{
	remove_names(s->folder);
	remove_files(s->folder);
	pl_lab_state_leave(s);
}

/* Returns true when a lab holds the folder, and not a process that sweeps it. */
static bool is_taken(const char *folder)
{
	char path[PATH_BYTES];

	path_in(path, folder, "tier");
	return access(path, F_OK) == 0;
}

int pl_lab_state_make(struct pl_lab_state *ret, const char *name, struct pl_diag *diag)
{
	char run[PL_LAB_FOLDER_MAX];
	bool swept = false;
	int r = pl_lab_run_folder(run, diag);

	ret->lock = -1;
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < TRIES; i++) {
		snprintf(ret->folder, sizeof(ret->folder), "%.*s/%s",
			PL_LAB_FOLDER_MAX - PL_LAB_LAB_NAME_MAX - 2, run, name);
		r = make_folder(ret->folder, diag);
		if (r == 0)
			r = take_lock(ret->folder, &ret->lock);
		/* Sweeps remains of a killed lab first, then tries again with a new folder. */
		if (r == 1 && !swept) {
			pl_lab_state_sweep(ret);
			swept = true;
			continue;
		}
		if (r == 1 || (r == 0 && is_taken(ret->folder)) ||
			(r < 0 && r != -ESTALE && r != -ENOENT))
			break;
		(void)poll(NULL, 0, 1);
	}
	if (r == 1)
		return 0;
	if (r == 0) {
		pl_diag_set(diag,
			"a lab called '%s' is up already: pathline lab down %s, or give this one another \"name\"",
			name, name);
		return -EBUSY;
	}
	if (diag != NULL && diag->text[0] == '\0')
		pl_diag_set(diag, "lock of %s: %s", ret->folder, strerrordesc_np(-r));
	return r;
}

int pl_lab_state_write(const struct pl_lab_state *s, const char *file, const char *text)
{
	char path[PATH_BYTES];

	path_in(path, s->folder, file);
	return pl_file_replace(path, text, strlen(text), 0600);
}

int pl_lab_state_note(const struct pl_lab_state *s, const char *netns)
{
	char path[PATH_BYTES], line[PL_LAB_NETNS_MAX + 1];
	int n = snprintf(line, sizeof(line), "%s\n", netns), fd, r = 0;
	char view[VIEW_BYTES];

	path_in(path, s->folder, "view");
	if (access(path, F_OK) < 0) {
		view_of_names(view);
		r = pl_lab_state_write(s, "view", view);
		if (r < 0)
			return r;
	}
	path_in(path, s->folder, "netns");
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, line, (size_t)n) != n)
		r = -ENOSPC;
	close(fd);
	return r;
}

void pl_lab_state_take_back(const struct pl_lab_state *s, const char *netns)
{
	char path[PATH_BYTES];
	struct stat st;

	path_in(path, s->folder, "netns");
	if (stat(path, &st) == 0 && st.st_size > (off_t)strlen(netns) &&
		truncate(path, st.st_size - (off_t)strlen(netns) - 1) < 0)
		(void)unlink(path);
}

unsigned int pl_lab_sweep_all(void)
{
	char run[PL_LAB_FOLDER_MAX];
	unsigned int n = 0;
	struct dirent *e;
	DIR *d;

	if (pl_lab_run_folder(run, NULL) < 0 || (d = opendir(run)) == NULL)
		return 0;
	while ((e = readdir(d)) != NULL) {
		struct pl_lab_state s = { .lock = -1 };

		if (e->d_name[0] == '.' || strlen(e->d_name) > PL_LAB_LAB_NAME_MAX)
			continue;
		snprintf(s.folder, sizeof(s.folder), "%.*s/%s",
			PL_LAB_FOLDER_MAX - PL_LAB_LAB_NAME_MAX - 2, run, e->d_name);
		if (take_lock(s.folder, &s.lock) != 1)
			continue;
		if (sees_names(&s)) {
			pl_lab_state_sweep(&s);
			n++;
		} else {
			pl_lab_state_leave(&s);
		}
	}
	closedir(d);
	return n;
}

/* ---- labs that are up ---- */

static int read_text(const char *folder, const char *file, char **ret, size_t *len)
{
	char path[PATH_BYTES];

	path_in(path, folder, file);
	return pl_file_read(path, PL_CONF_TEXT_MAX, ret, len);
}

/* Returns true when pid is the lab's keeper: its current folder is the lab's. In another PID
 * namespace the number is another process's. */
static bool is_keeper(pid_t pid, const char *folder)
{
	char cwd[32];
	struct stat a, b;

	snprintf(cwd, sizeof(cwd), "/proc/%d/cwd", (int)pid);
	return stat(cwd, &a) == 0 && stat(folder, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Finds the keeper by the number in the lock file. -ESRCH: no lab; -EXDEV: the lock is held, and
 * not by that process. */
static int find_keeper(struct pl_lab_found *f)
{
	char *text;
	size_t len;
	int r = read_text(f->folder, "lock", &text, &len), fd = -1;

	if (r < 0)
		return r;
	f->keeper = (pid_t)strtol(text, NULL, 10);
	free(text);
	if (f->keeper <= 0)
		return -ESRCH;
	f->pidfd = (int)syscall(SYS_pidfd_open, f->keeper, 0);
	if (f->pidfd < 0 && errno != ESRCH)
		return -errno;
	if (f->pidfd < 0)
		f->pidfd = -1;
	if (take_lock(f->folder, &fd) != 0) {
		if (fd >= 0)
			close(fd);
		return -ESRCH;
	}
	return is_keeper(f->keeper, f->folder) ? 0 : -EXDEV;
}

static int read_lab(struct pl_lab_found *f, struct pl_diag *diag)
{
	char *text;
	size_t len;
	int r = read_text(f->folder, "tier", &text, &len);

	if (r < 0)
		return r;
	for (unsigned int i = 0; pl_lab_tiers[i] != NULL; i++) {
		if (strcmp(text, pl_lab_tiers[i]) == 0)
			f->tier = (enum pl_lab_tier)i;
	}
	free(text);
	r = read_text(f->folder, "topology", &text, &len);
	if (r < 0)
		return r;
	r = pl_lab_topology_parse(&f->topology, f->name, text, len, diag);
	free(text);
	if (r == 0)
		snprintf(f->topology.name, sizeof(f->topology.name), "%s", f->name);
	return r == 0 ? pl_lab_topology_add_collector(&f->topology, diag) : r;
}

static int find_up(struct pl_lab_found *f, const char *run, const char *name)
{
	int r;

	snprintf(f->name, sizeof(f->name), "%s", name);
	snprintf(f->folder, sizeof(f->folder), "%.*s/%s",
		PL_LAB_FOLDER_MAX - PL_LAB_LAB_NAME_MAX - 2, run, name);
	r = access(f->folder, F_OK) == 0 ? find_keeper(f) : -ESRCH;
	if (r == 0)
		return 0;
	if (f->pidfd >= 0)
		close(f->pidfd);
	f->pidfd = -1;
	return r == -EXDEV ? r : -ESRCH;
}

int pl_lab_find(struct pl_lab_found *ret, const char *what, struct pl_diag *diag)
{
	char run[PL_LAB_FOLDER_MAX], name[PL_LAB_LAB_NAME_MAX + 1];
	const bool named = strchr(what, '/') == NULL && strchr(what, '.') == NULL &&
			   strchr(what, ':') == NULL && strcmp(what, "-") != 0 &&
			   strlen(what) <= PL_LAB_LAB_NAME_MAX;
	int r = pl_lab_run_folder(run, diag);

	*ret = (struct pl_lab_found){ .pidfd = -1 };
	if (r < 0)
		return r;
	(void)pl_lab_sweep_all();
	r = -ESRCH;
	if (named)
		r = find_up(ret, run, what);
	if (r == -ESRCH) {
		r = pl_lab_topology_load(&ret->topology, what, diag);
		if (r < 0 && named) {
			pl_diag_set(diag,
				"no lab called '%s' is up, and no shape is; a file is named with a / or ends in .yaml",
				what);
			return -ENOENT;
		}
		if (r < 0)
			return r;
		snprintf(name, sizeof(name), "%s", ret->topology.name);
		pl_lab_topology_done(&ret->topology);
		pl_lab_found_done(ret);
		r = find_up(ret, run, name);
	}
	if (r == -EXDEV)
		pl_diag_set(diag,
			"the lab '%s' has a process that is not seen from here: it is just coming up or going down, or of another PID namespace, such as a container's",
			ret->name);
	else if (r < 0)
		pl_diag_set(diag, "the lab '%s' is not up: pathline lab up %s", ret->name, what);
	if (r < 0)
		return -ENOENT;
	r = read_lab(ret, diag);
	if (r == 0 && diag != NULL)
		*diag = (struct pl_diag){ .text = "" };
	if (r < 0 && diag != NULL && diag->text[0] == '\0')
		pl_diag_set(diag, "the lab '%s' is just coming up or going down", ret->name);
	return r;
}

void pl_lab_names(struct pl_buf *out)
{
	char run[PL_LAB_FOLDER_MAX];
	struct dirent **entries = NULL;
	int n = 0;

	(void)pl_lab_sweep_all();
	if (pl_lab_run_folder(run, NULL) == 0)
		n = scandir(run, &entries, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		struct pl_lab_found f = { .pidfd = -1 };

		if (name[0] != '.' && strlen(name) <= PL_LAB_LAB_NAME_MAX &&
			find_up(&f, run, name) == 0)
			pl_buf_printf(out, "%s%s", out->len > 0 ? ", " : "", name);
		pl_lab_found_done(&f);
		free(entries[i]);
	}
	free(entries);
}

void pl_lab_found_done(struct pl_lab_found *f)
{
	if (f->pidfd >= 0)
		close(f->pidfd);
	f->pidfd = -1;
	pl_lab_topology_done(&f->topology);
}
