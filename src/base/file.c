/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads whole files, and replaces them. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_CAP 4096

static int read_all(int fd, size_t max_bytes, char **ret_data, size_t *ret_len)
{
	char *data = NULL, *bigger;
	size_t len = 0, cap = 0;
	ssize_t n;

	for (;;) {
		/* Room for the zero at the end, and for one byte more than allowed, which shows that
		 * the file is too long. */
		if (cap - len < 2) {
			cap = cap == 0 ? FIRST_CAP : cap * 2;
			bigger = realloc(data, cap);
			if (bigger == NULL) {
				free(data);
				return -ENOMEM;
			}
			data = bigger;
		}
		n = read(fd, data + len, cap - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int error = -errno;

			free(data);
			return error;
		}
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max_bytes) {
			free(data);
			return -EFBIG;
		}
	}
	data[len] = '\0';
	*ret_data = data;
	*ret_len = len;
	return 0;
}

int pl_file_read(const char *path, size_t max_bytes, char **ret_data, size_t *ret_len)
{
	int fd, result;

	if (strcmp(path, "-") == 0)
		return read_all(STDIN_FILENO, max_bytes, ret_data, ret_len);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	result = read_all(fd, max_bytes, ret_data, ret_len);
	close(fd);
	return result;
}

int pl_file_read_secret(const char *path, size_t max_bytes, char **ret_data, size_t *ret_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), result = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		result = -errno;
	else if (S_ISREG(st.st_mode) && (st.st_mode & S_IWOTH) != 0)
		result = -EKEYREJECTED;
	if (result == 0)
		result = read_all(fd, max_bytes, ret_data, ret_len);
	close(fd);
	return result;
}

const char *pl_file_secret_trouble(int error)
{
	return error == -EKEYREJECTED ? "every user may write this file; forbid it (chmod o-w)"
				      : strerrordesc_np(-error);
}

void pl_file_forget(char *secret)
{
	if (secret == NULL)
		return;
	explicit_bzero(secret, strlen(secret));
	free(secret);
}

int pl_file_read_secret_line(const char *path, size_t max_bytes, char **ret, struct pl_diag *diag)
{
	char *text;
	size_t len, n;
	bool good;
	int r = pl_file_read_secret(path, max_bytes, &text, &len);

	if (r < 0) {
		pl_diag_set(diag, "cannot read %s: %s", path, pl_file_secret_trouble(r));
		return r == -EKEYREJECTED ? -EINVAL : r;
	}
	n = strcspn(text, "\r\n");
	good = n > 0 && (n == len || text[n] != '\0');
	for (size_t i = 0; i < n; i++)
		good = good && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f;
	explicit_bzero(text + n, len - n);
	if (!good) {
		pl_file_forget(text);
		pl_diag_set(diag, "the first line of %s is empty or has control characters", path);
		return -EINVAL;
	}
	*ret = text;
	return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A rename is on disk only when its folder is. */
static int sync_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".";
	int fd, result = 0;

	if (slash != NULL)
		snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path),
			path);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fsync(fd) < 0 && errno != EINVAL) /* EINVAL: a file system that cannot */
		result = -errno;
	close(fd);
	return result;
}

int pl_file_replace(const char *path, const void *data, size_t len, unsigned int mode)
{
	char temporary[PATH_MAX];
	int fd, result, n;

	n = snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	if (n < 0 || (size_t)n >= sizeof(temporary))
		return -ENAMETOOLONG;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	result = write_all(fd, data, len);
	if (result == 0 && fchmod(fd, mode) < 0)
		result = -errno;
	if (result == 0 && fsync(fd) < 0)
		result = -errno;
	if (close(fd) < 0 && result == 0)
		result = -errno;
	if (result == 0 && rename(temporary, path) < 0)
		result = -errno;
	if (result < 0) {
		unlink(temporary);
		return result;
	}
	return sync_folder(path);
}
