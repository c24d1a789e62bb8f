/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of a spool: records and cursor with their checksums, and the search for the next whole
 * record behind damage. */
#include "export/spool_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

struct cursor {
	uint8_t magic[4];
	uint32_t zero;
	uint64_t sequence; /* of the first unsettled record */
	uint64_t check;
};

static const uint8_t cursor_magic[4] = { 'P', 'L', 'c', 1 };

int pl_spool_write_all(struct pl_spool *s, int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = s->options.sys->write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t pl_spool_read_at(int fd, void *dst, size_t len, uint64_t at)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = pread(fd, (char *)dst + have, len - have, (off_t)(at + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

uint32_t pl_spool_head_check(const struct pl_spool_header *h)
{
	return (uint32_t)pl_hash(h, offsetof(struct pl_spool_header, head_check), 0);
}

uint64_t pl_spool_full_check(const struct pl_spool_header *h, const void *payload)
{
	struct pl_spool_header clean = *h;

	clean.settled = 0;
	return pl_hash(
		payload, h->len, pl_hash(&clean, offsetof(struct pl_spool_header, check), 0));
}

bool pl_spool_header_good(const struct pl_spool_header *h, uint64_t least)
{
	return memcmp(h->magic, record_magic, sizeof(record_magic)) == 0 &&
	       h->head_check == pl_spool_head_check(h) && h->sequence >= least &&
	       h->sequence < SEQUENCE_END && h->len <= PL_SPOOL_PAYLOAD_MAX;
}

bool pl_spool_read_payload(struct pl_spool *s, int fd, uint64_t at, const struct pl_spool_header *h)
{
	if (h->len > s->payload_cap) {
		/* The record is from a configuration with larger batches. */
		uint8_t *bigger = realloc(s->payload, (size_t)h->len + 1);

		if (bigger == NULL)
			return false;
		s->payload = bigger;
		s->payload_cap = h->len;
	}
	if (pl_spool_read_at(fd, s->payload, h->len, at + sizeof(*h)) != (ssize_t)h->len)
		return false;
	/* A checksum that differs in a single bit has the wrong bit in itself: 64 bits do not agree
	 * so closely by chance. */
	return __builtin_popcountll(h->check ^ pl_spool_full_check(h, s->payload)) <= 1;
}

void pl_spool_set_aside(struct pl_spool *s, int fd, uint64_t from, uint64_t to)
{
	char buf[4096];
	struct stat st;
	int out = openat(
		s->folder, "damaged", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (out < 0)
		return;
	if (fstat(out, &st) == 0 && st.st_size < ASIDE_BYTES) {
		if (to - from > ASIDE_BYTES)
			to = from + ASIDE_BYTES;
		while (from < to) {
			size_t n = to - from < sizeof(buf) ? (size_t)(to - from) : sizeof(buf);
			ssize_t got = pl_spool_read_at(fd, buf, n, from);

			if (got <= 0 || pl_spool_write_all(s, out, buf, (size_t)got) < 0)
				break;
			from += (uint64_t)got;
		}
	}
	close(out);
}

/* ---- finding records ---- */

/*
 * Corrects a header with one wrong bit: the bit whose change makes both checksums right, of the
 * header and of the payload. False when there is none.
 */
static bool mend_header(struct pl_spool *s, int fd, uint64_t size, uint64_t least, uint64_t at,
	struct pl_spool_header *ret)
{
	struct pl_spool_header damaged, h;

	if (size - at < sizeof(h) ||
		pl_spool_read_at(fd, &damaged, sizeof(damaged), at) != sizeof(damaged))
		return false;
	for (unsigned int bit = 0; bit < 8 * offsetof(struct pl_spool_header, settled); bit++) {
		h = damaged;
		((uint8_t *)&h)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (!pl_spool_header_good(&h, least) || h.len > size - at - sizeof(h) ||
			!pl_spool_read_payload(s, fd, at, &h))
			continue;
		*ret = h;
		return true;
	}
	return false;
}

bool pl_spool_find_header(struct pl_spool *s, int fd, uint64_t size, uint64_t least, uint64_t *at,
	struct pl_spool_header *ret)
{
	uint8_t buf[SCAN_BYTES];
	uint64_t from = *at;

	if (size - from < sizeof(*ret))
		return false;
	if (pl_spool_read_at(fd, ret, sizeof(*ret), from) == (ssize_t)sizeof(*ret) &&
		pl_spool_header_good(ret, least) && ret->len <= size - from - sizeof(*ret))
		return true;
	if (mend_header(s, fd, size, least, from, ret))
		return true;
	for (from++; from < size && size - from >= sizeof(*ret);) {
		ssize_t n = pl_spool_read_at(fd, buf, sizeof(buf), from);

		if (n < (ssize_t)sizeof(*ret))
			return false;
		for (size_t i = 0; i + sizeof(*ret) <= (size_t)n; i++) {
			if (buf[i] != record_magic[0])
				continue;
			memcpy(ret, buf + i, sizeof(*ret));
			if (pl_spool_header_good(ret, least) && from + i < size &&
				ret->len <= size - from - i - sizeof(*ret)) {
				*at = from + i;
				return true;
			}
		}
		from += (uint64_t)n - sizeof(*ret) + 1;
	}
	return false;
}

void pl_spool_write_cursor(struct pl_spool *s, uint64_t sequence, bool sync)
{
	struct cursor c = { .sequence = sequence };

	memcpy(c.magic, cursor_magic, sizeof(cursor_magic));
	c.check = pl_hash(&c, offsetof(struct cursor, check), 0);
	/* On failure records are read twice, which is no reason to stop. */
	if (pwrite(s->cursor, &c, sizeof(c), 0) == (ssize_t)sizeof(c) && sync)
		(void)s->options.sys->sync(s->cursor);
}

uint64_t pl_spool_read_cursor(const struct pl_spool *s)
{
	struct cursor c;

	if (pl_spool_read_at(s->cursor, &c, sizeof(c), 0) != (ssize_t)sizeof(c) ||
		memcmp(c.magic, cursor_magic, sizeof(cursor_magic)) != 0 ||
		c.check != pl_hash(&c, offsetof(struct cursor, check), 0))
		return 0;
	return c.sequence;
}
