/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes refused entries into the dead-letter file. */
#include "export/dead_letter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/utf8.h"

struct pl_dead_letters {
	char *path;
	int fd;
	uint64_t bytes, max_bytes;
	bool torn; /* the last line has no end: the next letter begins a new one */
	struct pl_buf line;
};

/* Returns true when the file ends within a line, as a killed process leaves it. */
static bool is_torn(int fd, off_t size)
{
	char last;

	return size > 0 && (pread(fd, &last, 1, size - 1) != 1 || last != '\n');
}

static int open_file(struct pl_dead_letters *d, struct pl_diag *diag)
{
	struct stat st;
	int r, fd = open(d->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		       0600);

	if (fd < 0) {
		r = -errno;
		return pl_diag_fail(
			diag, r, "cannot open the dead letters %s: %s", d->path, strerror(-r));
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		pl_diag_set(diag, "%s is not a regular file", d->path);
		close(fd);
		return -EINVAL;
	}
	if (d->fd >= 0)
		close(d->fd);
	d->fd = fd;
	d->bytes = (uint64_t)st.st_size;
	d->torn = is_torn(fd, st.st_size);
	return 0;
}

int pl_dead_letters_open(
	struct pl_dead_letters **ret, const char *path, uint64_t max_bytes, struct pl_diag *diag)
{
	struct pl_dead_letters *d = calloc(1, sizeof(*d));
	int r;

	if (d == NULL)
		return -ENOMEM;
	d->fd = -1;
	d->max_bytes = max_bytes;
	pl_buf_init(&d->line);
	d->path = strdup(path);
	r = d->path != NULL ? open_file(d, diag) : -ENOMEM;
	if (r < 0) {
		pl_dead_letters_close(d);
		return r;
	}
	*ret = d;
	return 0;
}

void pl_dead_letters_close(struct pl_dead_letters *d)
{
	if (d == NULL)
		return;
	if (d->fd >= 0)
		close(d->fd);
	pl_buf_done(&d->line);
	free(d->path);
	free(d);
}

int pl_dead_letters_reopen(struct pl_dead_letters *d, struct pl_diag *diag)
{
	return open_file(d, diag);
}

static void add_base64(struct pl_buf *buf, const char *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = (const uint8_t *)data;

	for (size_t i = 0; i < len; i += 3) {
		size_t have = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
			     (have > 2 ? p[i + 2] : 0);
		char four[4] = { digits[v >> 18], digits[v >> 12 & 63],
			have > 1 ? digits[v >> 6 & 63] : '=', have > 2 ? digits[v & 63] : '=' };

		pl_buf_add(buf, four, sizeof(four));
	}
}

static void write_entry(struct pl_json *json, const struct pl_dead_letter *l)
{
	struct pl_buf base64;

	if (pl_utf8_valid(l->entry, l->len) && memchr(l->entry, '\0', l->len) == NULL) {
		pl_json_key(json, "entry");
		pl_json_strn(json, l->entry, l->len);
		return;
	}
	pl_buf_init(&base64);
	add_base64(&base64, l->entry, l->len);
	pl_json_key(json, "entry_base64");
	if (base64.failed)
		json->buf->failed = true;
	else
		pl_json_strn(json, base64.data, base64.len);
	pl_buf_done(&base64);
}

bool pl_dead_letters_put(struct pl_dead_letters *d, const struct pl_dead_letter *l)
{
	uint64_t ms = l->ts_ns / 1000000u;
	struct pl_json json;
	size_t done = 0;

	pl_buf_reset(&d->line);
	if (d->torn)
		pl_buf_chr(&d->line, '\n');
	pl_json_init(&json, &d->line);
	pl_json_object(&json);
	pl_json_key(&json, "time");
	pl_json_double(&json, (double)ms / 1e3);
	pl_json_text(&json, "output", l->output);
	pl_json_text(&json, "kind", l->kind);
	pl_json_key(&json, "status");
	pl_json_i64(&json, l->status);
	pl_json_text(&json, "answer", l->answer);
	write_entry(&json, l);
	pl_json_object_end(&json);
	pl_buf_chr(&d->line, '\n');
	if (d->line.failed || d->bytes + d->line.len > d->max_bytes)
		return false;
	while (done < d->line.len) {
		ssize_t n = write(d->fd, d->line.data + done, d->line.len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			/* Cuts off a half-written line, so that no later line continues it. */
			if (done > 0 && ftruncate(d->fd, (off_t)d->bytes) < 0)
				d->bytes = d->max_bytes;
			return false;
		}
		done += (size_t)n;
	}
	d->bytes += done;
	d->torn = false;
	return true;
}
