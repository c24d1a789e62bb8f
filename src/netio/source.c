/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a capture's bytes from a file, a pipe or memory, also compressed. */
#include "netio/source.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_BYTES (128u * 1024)

static int source_init(struct pl_source *source)
{
	source->state = PL_SOURCE_FRESH;
	source->in = malloc(IN_BYTES);
	return source->in == NULL ? -ENOMEM : 0;
}

int pl_source_init_fd(struct pl_source *source, int fd)
{
	struct stat st;

	*source = (struct pl_source){ .fd = fd };
	if (fstat(fd, &st) < 0)
		return -errno;
	source->pollable = !S_ISREG(st.st_mode);
	return source_init(source);
}

int pl_source_init_memory(struct pl_source *source, const void *data, size_t len, size_t chunk)
{
	*source = (struct pl_source){ .fd = -1, .mem = data, .mem_left = len, .mem_chunk = chunk };
	return source_init(source);
}

void pl_source_done(struct pl_source *source)
{
	if (source->z_ready)
		inflateEnd(&source->z);
	free(source->in);
	if (source->fd >= 0)
		close(source->fd);
	*source = (struct pl_source){ .fd = -1 };
}

/* Reads undecoded bytes from the file, the pipe or memory. Returns as pl_source_read. */
static ssize_t read_raw(struct pl_source *source, void *dst, size_t cap, int timeout_ms)
{
	ssize_t n;

	if (source->fd < 0) {
		if (source->mem_chunk != 0 && cap > source->mem_chunk)
			cap = source->mem_chunk;
		if (cap > source->mem_left)
			cap = source->mem_left;
		memcpy(dst, source->mem, cap);
		source->mem += cap;
		source->mem_left -= cap;
		return (ssize_t)cap;
	}
	if (source->pollable && timeout_ms >= 0) {
		struct pollfd p = { .fd = source->fd, .events = POLLIN };
		int r = poll(&p, 1, timeout_ms);

		if (r < 0)
			return -errno;
		if (r == 0)
			return -EAGAIN;
	}
	n = read(source->fd, dst, cap);
	return n < 0 ? -errno : n;
}

/* Reads more into the input buffer, which has room. Returns 0 at the end, else as read_raw. */
static ssize_t read_more(struct pl_source *source, int timeout_ms)
{
	ssize_t n;

	if (source->ended)
		return 0;
	if (source->in_pos == source->in_end)
		source->in_pos = source->in_end = 0;
	n = read_raw(source, source->in + source->in_end, IN_BYTES - source->in_end, timeout_ms);
	if (n == 0)
		source->ended = true;
	if (n > 0)
		source->in_end += (size_t)n;
	return n;
}

/* Detects gzip by the first two bytes. */
static int sniff(struct pl_source *source, int timeout_ms)
{
	while (source->in_end < 2) {
		ssize_t n = read_more(source, timeout_ms);

		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
	}
	source->state = PL_SOURCE_PLAIN;
	if (source->in_end < 2 || source->in[0] != 0x1f || source->in[1] != 0x8b)
		return 0;
	if (inflateInit2(&source->z, 15 + 16) != Z_OK)
		return -ENOMEM;
	source->z_ready = true;
	source->gzip = true;
	source->in_member = true;
	source->state = PL_SOURCE_GZIP;
	return 0;
}

static int gzip_fault(struct pl_source *source, const char *text)
{
	source->state = PL_SOURCE_DONE;
	source->fault = text;
	return -EBADMSG;
}

/* Looks behind the end of a gzip member. Returns 1 when another follows, 0 at the end, or negative
 * errno. */
static int next_member(struct pl_source *source, int timeout_ms)
{
	while (source->in_end - source->in_pos < 2) {
		ssize_t n;

		memmove(source->in, source->in + source->in_pos, source->in_end - source->in_pos);
		source->in_end -= source->in_pos;
		source->in_pos = 0;
		n = read_more(source, timeout_ms);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
	}
	if (source->in_pos == source->in_end) {
		source->state = PL_SOURCE_DONE;
		return 0;
	}
	if (source->in_end - source->in_pos < 2 || source->in[source->in_pos] != 0x1f ||
		source->in[source->in_pos + 1] != 0x8b)
		return gzip_fault(source, "other data follow the gzip data");
	if (inflateReset(&source->z) != Z_OK)
		return -ENOMEM;
	source->in_member = true;
	return 1;
}

static ssize_t read_gzip(struct pl_source *source, void *dst, size_t cap, int timeout_ms)
{
	for (;;) {
		size_t given, taken;
		int r;

		if (!source->in_member) {
			r = next_member(source, timeout_ms);
			if (r <= 0)
				return r;
		}
		if (source->in_pos == source->in_end) {
			ssize_t n = read_more(source, timeout_ms);

			if (n < 0)
				return n;
			if (n == 0)
				return gzip_fault(source, "the gzip data end too early");
		}
		source->z.next_in = source->in + source->in_pos;
		source->z.avail_in = (uInt)(source->in_end - source->in_pos);
		source->z.next_out = dst;
		source->z.avail_out = (uInt)cap;
		r = inflate(&source->z, Z_NO_FLUSH);
		taken = source->in_end - source->in_pos - source->z.avail_in;
		given = cap - source->z.avail_out;
		source->in_pos += taken;
		if (r == Z_STREAM_END) {
			source->in_member = false;
		} else if (r == Z_MEM_ERROR) {
			if (given == 0)
				return -ENOMEM;
		} else if (r != Z_OK && r != Z_BUF_ERROR) {
			/* Bytes decoded before the damage are returned first; the next call reports
			 * it, because zlib may have consumed all input. */
			int fault = gzip_fault(source, "the gzip data are damaged");

			if (given == 0)
				return fault;
		}
		if (given > 0)
			return (ssize_t)given;
		if (taken == 0 && r != Z_STREAM_END)
			return gzip_fault(source, "the gzip data are damaged");
	}
}

ssize_t pl_source_read(struct pl_source *source, void *dst, size_t cap, int timeout_ms)
{
	size_t left;
	int r;

	if (cap > 1u << 30)
		cap = 1u << 30;
	if (source->state == PL_SOURCE_FRESH) {
		r = sniff(source, timeout_ms);
		if (r < 0)
			return r;
	}
	if (source->state == PL_SOURCE_DONE)
		return source->fault != NULL ? -EBADMSG : 0;
	if (source->state == PL_SOURCE_GZIP)
		return read_gzip(source, dst, cap, timeout_ms);
	left = source->in_end - source->in_pos;
	if (left == 0)
		return source->ended ? 0 : read_raw(source, dst, cap, timeout_ms);
	if (cap > left)
		cap = left;
	memcpy(dst, source->in + source->in_pos, cap);
	source->in_pos += cap;
	return (ssize_t)cap;
}
