/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of regions: made, locked, named and set aside so that of any number of processes at the
 * same path one has it. A name stands for a file that is whole and locked from the moment at which
 * it appears, and only the holder of the lock renames it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/region_internal.h"

#define ASIDE_MAX 1000 /* most damaged files of one name */
#define TRIES     100  /* tries, while other processes change the file of the name each time */

static int lock(int fd)
{
	int r;

	do {
		r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	} while (r == -EINTR);
	return r == -EWOULDBLOCK ? -EBUSY : r;
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
}

/* A file without a name in the folder of the path. -EOPNOTSUPP: the file system has none. */
static int make_nameless(const char *path, unsigned int mode)
{
	char *folder = folder_of(path);
	int fd;

	if (folder == NULL)
		return -ENOMEM;
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	fd = fd < 0 ? -errno : fd;
	free(folder);
	/* EISDIR: a kernel that does not know of such files. */
	return fd == -EISDIR || fd == -EINVAL ? -EOPNOTSUPP : fd;
}

/* Makes a file with a name that nobody looks for. */
static int make_elsewhere(const char *path, unsigned int mode, char **ret_name)
{
	uint64_t word;
	char *name;
	int fd;

	if (getrandom(&word, sizeof(word), 0) != (ssize_t)sizeof(word))
		return -EIO;
	if (asprintf(&name, "%s.new-%016" PRIx64, path, word) < 0)
		return -ENOMEM;
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0) {
		fd = -errno;
		free(name);
		return fd;
	}
	*ret_name = name;
	return fd;
}

int region_file_make(struct region_file *f, const char *path, unsigned int mode)
{
	struct stat st;
	int r;

	*f = (struct region_file){ .fd = -1 };
	/* Before all the work: most often it is there. */
	if (lstat(path, &st) == 0)
		return -EEXIST;
	f->fd = make_nameless(path, mode);
	if (f->fd == -EOPNOTSUPP)
		f->fd = make_elsewhere(path, mode, &f->name);
	if (f->fd < 0)
		return f->fd;
	r = lock(f->fd);
	if (r < 0)
		region_file_forget(f);
	return r;
}

static int link_nameless(int fd, const char *path)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	/* Without /proc only privileged processes can. */
	if (errno != ENOENT)
		return -errno;
	return linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/* Gives the file another name, never that of one that is there. */
static int rename_free(const char *path, const char *to)
{
	if (renameat2(AT_FDCWD, path, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system that cannot promise it: a second name, which is never given twice. */
	if (link(path, to) < 0)
		return -errno;
	return unlink(path) < 0 ? -errno : 0;
}

int region_file_publish(struct region_file *f, const char *path)
{
	int r;

	if (f->name == NULL)
		return link_nameless(f->fd, path);
	r = rename_free(f->name, path);
	if (r == 0) {
		free(f->name);
		f->name = NULL;
	}
	return r;
}

void region_file_forget(struct region_file *f)
{
	if (f->name != NULL)
		(void)unlink(f->name);
	free(f->name);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct region_file){ .fd = -1 };
}

bool region_file_is_at(int fd, const char *path)
{
	struct stat mine, there;

	return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino &&
	       mine.st_dev == there.st_dev;
}

int region_file_open(const char *path, bool writer, int *ret_fd)
{
	for (int i = 0; i < TRIES; i++) {
		int fd = open(path, (writer ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK), r;

		*ret_fd = fd;
		if (fd < 0)
			return -errno;
		r = writer ? lock(fd) : 0;
		/* The process that had the file may have given the name to another. */
		if (r < 0 || !writer || region_file_is_at(fd, path))
			return r;
		close(fd);
		*ret_fd = -1;
	}
	return -EBUSY;
}

/* A name that is free. */
static int rename_aside(const char *path, char **ret_aside)
{
	int r = -EEXIST;

	for (unsigned int n = 1; r == -EEXIST && n < ASIDE_MAX; n++) {
		char number[16] = "", *to;

		if (n > 1)
			snprintf(number, sizeof(number), "-%u", n);
		if (asprintf(&to, "%s.damaged%s", path, number) < 0)
			return -ENOMEM;
		r = rename_free(path, to);
		if (r == 0)
			*ret_aside = to;
		else
			free(to);
	}
	return r;
}

int pl_region_set_aside(const char *path, char **ret_aside, struct pl_diag *diag)
{
	struct pl_region_info info;
	struct stat st;
	int fd, r = region_file_open(path, true, &fd);

	if (r == 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		r = -EINVAL;
	if (r == 0) {
		r = region_header_read(fd, path, &info, diag);
		r = r == -EBADMSG || r == -ERANGE ? rename_aside(path, ret_aside)
		    : r == 0                      ? -EAGAIN
						  : r;
	}
	if (fd >= 0)
		close(fd);
	return r;
}
