/* SPDX-License-Identifier: BSD-2-Clause */
/* Appends lines to a file, only complete ones. */
#include "base/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX (1u << 20) /* bytes gathered before they are written */

int pl_line_file_make(struct pl_line_file *f, const char *path)
{
	*f = (struct pl_line_file){ .fd = -1, .path = strdup(path) };
	pl_buf_init(&f->text);
	return f->path != NULL ? 0 : -ENOMEM;
}

int pl_line_file_open(struct pl_line_file *f, struct pl_diag *diag)
{
	struct stat st;

	/* A FIFO that nobody reads is an error instead of a wait. */
	f->fd = open(f->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
	if (f->fd < 0 || fstat(f->fd, &st) < 0) {
		const int error = errno;

		pl_diag_set(diag, "%s: %s", f->path, strerror(error));
		return -error;
	}
	f->end = st.st_size;
	return 0;
}

bool pl_line_file_add(struct pl_line_file *f, const char *line, size_t n)
{
	pl_buf_add(&f->text, line, n);
	pl_buf_chr(&f->text, '\n');
	f->lines++;
	return f->text.failed || f->text.len >= TEXT_MAX;
}

static int write_all(struct pl_line_file *f)
{
	size_t at = 0;

	if (f->text.failed)
		return -ENOMEM;
	if (f->fd < 0)
		return -EBADF;
	while (at < f->text.len) {
		const ssize_t n = write(f->fd, f->text.data + at, f->text.len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return 0;
}

int pl_line_file_write(struct pl_line_file *f, uint64_t *ret_lines)
{
	int r;

	*ret_lines = f->lines;
	if (f->lines == 0)
		return 0;
	/* Others may have written since: a failure cuts back these lines only. */
	if (f->fd >= 0) {
		const off_t end = lseek(f->fd, 0, SEEK_END);

		f->end = end >= 0 ? end : f->end;
	}
	r = write_all(f);
	f->failing = r < 0;
	if (r == 0)
		f->end += (off_t)f->text.len;
	else if (f->fd >= 0)
		(void)!ftruncate(f->fd, f->end);
	pl_buf_reset(&f->text);
	f->lines = 0;
	return r;
}

void pl_line_file_close(struct pl_line_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	pl_buf_done(&f->text);
	free(f->path);
	*f = (struct pl_line_file){ .fd = -1 };
}

int pl_line_file_reopen(struct pl_line_file *f, struct pl_diag *diag)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	return pl_line_file_open(f, diag);
}
