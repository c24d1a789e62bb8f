/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes pcap and pcapng files. */
#include "netio/capture_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "netio/capture.h"
#include "wire/build.h"

#define BUF_BYTES    (1024u * 1024)
#define OVERHEAD_MAX 128 /* bytes of headers for one packet, with those of file and interface */

static const uint16_t linktypes[PL_LINK_MAX] = {
	[PL_LINK_ETHERNET] = 1,
	[PL_LINK_RAW_IP] = 101,
	[PL_LINK_SLL] = 113,
	[PL_LINK_SLL2] = 276,
};

static bool ends_in(const char *name, const char *tail)
{
	size_t n = strlen(name), m = strlen(tail);

	return n >= m && strcmp(name + n - m, tail) == 0;
}

bool pl_capture_writer_takes(const char *name)
{
	return !ends_in(name, ".gz") && !ends_in(name, ".zst") && !ends_in(name, ".xz") &&
	       !ends_in(name, ".bz2");
}

int pl_capture_writer_init(
	struct pl_capture_writer *writer, int fd, const char *name, uint32_t snaplen)
{
	struct stat st;

	*writer = (struct pl_capture_writer){ .fd = fd };
	if (!pl_capture_writer_takes(name))
		return -EINVAL;
	writer->pcapng = ends_in(name, ".pcapng");
	writer->live = fstat(fd, &st) == 0 && !S_ISREG(st.st_mode);
	writer->snaplen =
		snaplen == 0 || snaplen > PL_CAPTURE_PACKET_MAX ? PL_CAPTURE_PACKET_MAX : snaplen;
	writer->buf = malloc(BUF_BYTES);
	return writer->buf == NULL ? -ENOMEM : 0;
}

static void flush(struct pl_capture_writer *writer)
{
	size_t at = 0;

	while (writer->error == 0 && at < writer->len) {
		ssize_t n = write(writer->fd, writer->buf + at, writer->len - at);

		if (n >= 0)
			at += (size_t)n;
		else if (errno != EINTR)
			writer->error = -errno;
	}
	writer->len = 0;
}

static void put_file_header(struct pl_capture_writer *writer, struct pl_build *b, unsigned int link)
{
	writer->started = true;
	if (writer->pcapng) {
		pl_put_be32(b, 0x0a0d0d0a);
		pl_put_be32(b, 28);
		pl_put_be32(b, 0x1a2b3c4d);
		pl_put_be16(b, 1);
		pl_put_be16(b, 0);
		pl_put_be64(b, UINT64_MAX); /* the section's length: not given */
		pl_put_be32(b, 28);
		return;
	}
	pl_put_be32(b, 0xa1b23c4d);
	pl_put_be16(b, 2);
	pl_put_be16(b, 4);
	pl_put_zero(b, 8);
	pl_put_be32(b, writer->snaplen);
	pl_put_be32(b, linktypes[link]);
	writer->interface_of[link] = 1;
}

static void put_interface(struct pl_capture_writer *writer, struct pl_build *b, unsigned int link)
{
	pl_put_be32(b, 1);
	pl_put_be32(b, 32);
	pl_put_be16(b, linktypes[link]);
	pl_put_be16(b, 0);
	pl_put_be32(b, writer->snaplen);
	pl_put_be16(b, 9); /* if_tsresol: 10^-9 s */
	pl_put_be16(b, 1);
	pl_put_be32(b, 9u << 24);
	pl_put_be32(b, 0); /* end of options */
	pl_put_be32(b, 32);
	writer->interface_of[link] = (uint8_t)++writer->ninterfaces;
}

static void put_packet(
	struct pl_capture_writer *writer, struct pl_build *b, const struct pl_packet *p)
{
	uint32_t len = p->len < writer->snaplen ? p->len : writer->snaplen;
	uint32_t total = 32 + len + (-len & 3);

	if (writer->pcapng) {
		pl_put_be32(b, 6);
		pl_put_be32(b, total);
		pl_put_be32(b, writer->interface_of[p->link] - 1u);
		pl_put_be64(b, p->ts_ns);
	} else {
		pl_put_be32(b, (uint32_t)(p->ts_ns / 1000000000u));
		pl_put_be32(b, (uint32_t)(p->ts_ns % 1000000000u));
	}
	pl_put_be32(b, len);
	pl_put_be32(b, p->wire_len);
	pl_put(b, p->data, len);
	if (writer->pcapng) {
		pl_put_zero(b, -len & 3);
		pl_put_be32(b, total);
	}
}

int pl_capture_writer_add(struct pl_capture_writer *writer, const struct pl_batch *batch)
{
	uint32_t i;

	for (i = 0; i < batch->n && writer->error == 0; i++) {
		const struct pl_packet *p = &batch->pkts[i];
		struct pl_build b;

		if (p->link >= PL_LINK_MAX || linktypes[p->link] == 0 || p->wire_len < p->len)
			break;
		if (!writer->pcapng && writer->started && writer->interface_of[p->link] == 0)
			break;
		if (BUF_BYTES - writer->len < writer->snaplen + OVERHEAD_MAX)
			flush(writer);
		b = pl_build(writer->buf + writer->len, BUF_BYTES - writer->len);
		if (!writer->started)
			put_file_header(writer, &b, p->link);
		if (writer->interface_of[p->link] == 0)
			put_interface(writer, &b, p->link);
		put_packet(writer, &b, p);
		writer->len += b.len;
	}
	/* The reader of a pipe must get packets at once. */
	if (writer->live)
		flush(writer);
	if (writer->error != 0)
		return writer->error;
	return i > 0 || batch->n == 0 ? (int)i : -EINVAL;
}

int pl_capture_writer_done(struct pl_capture_writer *writer)
{
	int r;

	if (writer->buf != NULL && !writer->started) {
		/* A file without packets gets the link type Ethernet. */
		struct pl_build b = pl_build(writer->buf, BUF_BYTES);

		put_file_header(writer, &b, PL_LINK_ETHERNET);
		if (writer->pcapng)
			put_interface(writer, &b, PL_LINK_ETHERNET);
		writer->len = b.len;
	}
	if (writer->buf != NULL)
		flush(writer);
	r = writer->error;
	if (writer->fd >= 0 && close(writer->fd) < 0 && r == 0)
		r = -errno;
	free(writer->buf);
	*writer = (struct pl_capture_writer){ .fd = -1 };
	return r;
}
