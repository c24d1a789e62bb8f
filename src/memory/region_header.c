/* SPDX-License-Identifier: BSD-2-Clause */
/* A region's header: made, and checked before anything of it is believed. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32.h"
#include "memory/region_internal.h"

static uint32_t check_of(const struct region_header *h)
{
	uint8_t bytes[REGION_CHECKED] = { 0 };
	const uint32_t zero = 0;

	memcpy(bytes, h, sizeof(*h));
	memcpy(bytes + offsetof(struct region_header, check), &zero, sizeof(zero));
	return pl_crc32(0, bytes, sizeof(bytes));
}

void region_header_make(struct region_header *h, const struct pl_region_info *info)
{
	*h = (struct region_header){
		.magic = REGION_MAGIC,
		.version = PL_REGION_VERSION,
		.byte_order = REGION_ORDER,
		.halves = info->halves,
		.id = info->id,
		.created_ns = info->created_ns,
		.data_offset = info->data_offset,
		.store_bytes = info->store_bytes,
		.file_bytes = info->file_bytes,
		.params = info->params,
	};
	h->check = check_of(h);
}

static bool all_zero(const uint8_t *p, size_t n)
{
	while (n > 0 && *p == 0) {
		p++;
		n--;
	}
	return n == 0;
}

/* Checks that these bytes are a header of this version, as it was written. */
static int check_identity(const struct region_header *h, const uint8_t *bytes, struct pl_diag *diag)
{
	if (memcmp(h->magic, REGION_MAGIC, sizeof(h->magic)) != 0) {
		pl_diag_set(diag, all_zero(bytes, REGION_CHECKED)
					  ? "the region is incomplete: its creation was interrupted"
					  : "the file is not a region");
		return -EBADMSG;
	}
	if (h->byte_order != REGION_ORDER) {
		pl_diag_set(
			diag, "the region's byte order is not that of this machine, or damaged");
		return -EBADMSG;
	}
	if (h->version > PL_REGION_VERSION) {
		pl_diag_set(diag,
			"the region is of version %" PRIu32
			", this pathline knows versions up to %u",
			h->version, PL_REGION_VERSION);
		return -EPROTO;
	}
	if (h->version == 0 || check_of(h) != h->check ||
		!all_zero(bytes + sizeof(*h), REGION_CHECKED - sizeof(*h))) {
		pl_diag_set(diag, "the region's header is damaged");
		return -EBADMSG;
	}
	return 0;
}

static bool sizes_fit(const struct region_header *h)
{
	uint64_t bytes;

	/* Bytes of checked parameters are at most 2^56, so nothing below wraps. */
	if (pl_store_bytes(&h->params, &bytes, NULL) < 0 || bytes != h->store_bytes)
		return false;
	if (h->data_offset < PL_REGION_HEADER_BYTES || h->data_offset > REGION_OFFSET_MAX ||
		(h->data_offset & (h->data_offset - 1)) != 0)
		return false;
	if (h->halves != 1 && h->halves != 2)
		return false;
	return h->file_bytes == h->data_offset + h->halves * region_stride(bytes, h->data_offset);
}

int pl_region_check(const void *header, size_t n, uint64_t file_bytes, struct pl_region_info *ret,
	struct pl_diag *diag)
{
	struct region_header h;
	struct region_state s;
	int r;

	if (n < PL_REGION_HEADER_BYTES || file_bytes < PL_REGION_HEADER_BYTES) {
		pl_diag_set(diag, "the file is shorter than the header of a region");
		return -ERANGE;
	}
	memcpy(&h, header, sizeof(h));
	memcpy(&s, (const uint8_t *)header + REGION_CHECKED, sizeof(s));
	r = check_identity(&h, header, diag);
	if (r < 0)
		return r;
	if (!sizes_fit(&h)) {
		pl_diag_set(diag, "the region's header is inconsistent");
		return -EBADMSG;
	}
	if (file_bytes < h.file_bytes) {
		pl_diag_set(diag, "the file is truncated: %" PRIu64 " bytes of %" PRIu64,
			file_bytes, h.file_bytes);
		return -ERANGE;
	}
	*ret = (struct pl_region_info){
		.params = h.params,
		.id = h.id,
		.created_ns = h.created_ns,
		.store_bytes = h.store_bytes,
		.file_bytes = h.file_bytes,
		.data_offset = h.data_offset,
		.half_stride = region_stride(h.store_bytes, h.data_offset),
		.version = h.version,
		.halves = h.halves,
		.epoch = s.epochs >> 2,
		.both = h.halves == 2 && (s.epochs & EPOCH_BOTH) != 0,
		.clean = s.clean == 1,
		.writer_pid = s.writer_pid,
		.synced_ns = s.synced_ns,
		.sync_failures = s.sync_failures,
		.clocks = s.clocks,
	};
	return 0;
}

/* Reads the header, and does not map it: a file that is cut meanwhile gives a short header, and no
 * signal. */
int region_header_read(int fd, const char *path, struct pl_region_info *ret, struct pl_diag *diag)
{
	uint8_t bytes[PL_REGION_HEADER_BYTES];
	size_t have = 0;
	struct stat st;

	if (fstat(fd, &st) < 0)
		goto fail;
	if (!S_ISREG(st.st_mode)) {
		pl_diag_set(diag, "%s is not a file", path);
		return -EBADMSG;
	}
	while (have < sizeof(bytes)) {
		ssize_t n = pread(fd, bytes + have, sizeof(bytes) - have, (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			goto fail;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return pl_region_check(bytes, have, (uint64_t)st.st_size, ret, diag);
fail:
	pl_diag_set(diag, "%s: %s", path, strerror(errno));
	return -errno;
}
