/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions opened: files made, locked, mapped and let go of. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "memory/append.h"
#include "memory/region_internal.h"

static const struct pl_region_options no_options;

/* Sets the diag to the failed action and the system's error. */
static int failed(struct pl_diag *diag, const char *what, int error)
{
	pl_diag_set(diag, "%s: %s", what, strerror(error));
	return error > 0 ? -error : -EIO;
}

/* Adds the file's name to an error whose text does not have it. */
static int name_file(struct pl_diag *diag, const char *path, int r)
{
	struct pl_diag what;

	if (r >= 0 || diag == NULL || strstr(diag->text, path) != NULL)
		return r;
	what = *diag;
	pl_diag_set(diag, "%s: %s", path, what.text[0] != '\0' ? what.text : strerror(-r));
	return r;
}

/* ---- mapping ---- */

static size_t page_bytes_of(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC)
		return (size_t)fs.f_bsize;
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int map_file(
	struct pl_region *g, const struct pl_region_options *options, struct pl_diag *diag)
{
	int prot = g->writer ? PROT_READ | PROT_WRITE : PROT_READ;
	int r;

	if (g->info.file_bytes > PTRDIFF_MAX)
		return failed(diag, "cannot map the region", EOVERFLOW);
	g->map_bytes = (size_t)g->info.file_bytes;
	g->map = mmap(NULL, g->map_bytes, prot, MAP_SHARED, g->fd, 0);
	if (g->map == MAP_FAILED) {
		g->map = NULL;
		return failed(diag, "cannot map the region", errno);
	}
	g->state = (void *)(g->map + REGION_CHECKED);
	if (options->populate && madvise(g->map, g->map_bytes,
					 g->writer ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) < 0)
		return failed(diag, "cannot populate the region", errno);
	g->guard.map = g->map;
	g->guard.bytes = g->map_bytes;
	g->guard.page_bytes = g->page_bytes;
	r = pl_map_guard_enter(&g->guard);
	return r < 0 ? failed(diag, "cannot map the region", -r) : 0;
}

/* ---- creation ---- */

static uint64_t data_offset_for(uint64_t store_bytes, size_t page_bytes)
{
	if (page_bytes > PL_REGION_HEADER_BYTES)
		return page_bytes;
	return store_bytes >= REGION_HUGE ? REGION_HUGE : PL_REGION_HEADER_BYTES;
}

static int plan(struct pl_region_info *info, const struct pl_store_params *params,
	const struct pl_region_options *options, size_t page_bytes, struct pl_diag *diag)
{
	unsigned int halves = options->halves == 0 ? 1 : options->halves;
	int r;

	*info = (struct pl_region_info){ .params = *params,
		.halves = halves,
		.version = PL_REGION_VERSION,
		.created_ns = pl_clock_real_ns() };
	if (halves > 2) {
		pl_diag_set(diag, "a region has one half or two");
		return -EINVAL;
	}
	r = pl_store_bytes(params, &info->store_bytes, diag);
	if (r < 0)
		return r;
	info->data_offset = data_offset_for(info->store_bytes, page_bytes);
	info->half_stride = region_stride(info->store_bytes, info->data_offset);
	info->file_bytes = info->data_offset + halves * info->half_stride;
	if (getrandom(&info->id, sizeof(info->id), 0) != (ssize_t)sizeof(info->id))
		return failed(diag, "cannot get a random identifier", errno);
	return 0;
}

/* Allocates all blocks now: a page without room at its first write would raise a signal. */
static int allocate(int fd, uint64_t bytes, struct pl_diag *diag)
{
	int r;

	if (bytes > INT64_MAX)
		return failed(diag, "cannot allocate the region", EFBIG);
	do {
		r = fallocate(fd, 0, 0, (off_t)bytes) < 0 ? errno : 0;
	} while (r == EINTR);
	if (r == EOPNOTSUPP)
		r = posix_fallocate(fd, 0, (off_t)bytes);
	return r != 0 ? failed(diag, "cannot allocate the region", r) : 0;
}

static int write_header(struct pl_region *g, struct pl_diag *diag)
{
	struct region_header h;

	region_header_make(&h, &g->info);
	g->state->writer_pid = (uint32_t)getpid();
	/* The data is synced before the header that declares it valid; through the mapping, because
	 * hugetlbfs supports nothing else. */
	if (fdatasync(g->fd) < 0 && errno != EINVAL)
		return failed(diag, "cannot write the region", errno);
	memcpy(g->map, &h, sizeof(h));
	if (msync(g->map, PL_REGION_HEADER_BYTES, MS_SYNC) < 0 && errno != EINVAL)
		return failed(diag, "cannot write the region", errno);
	return 0;
}

static struct pl_region *new_region(bool writer, const struct pl_region_options *options)
{
	struct pl_region *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->fd = -1;
	g->writer = writer;
	g->sync_ns = options->sync_ns;
	return g;
}

/* Lets go without a word to the file. */
static void drop(struct pl_region *g)
{
	region_commit_stop(g);
	if (g->map != NULL) {
		pl_map_guard_leave(&g->guard);
		munmap(g->map, g->map_bytes);
	}
	if (g->fd >= 0)
		close(g->fd);
	free(g);
}

/* Fills a new file, which is empty and locked. */
static int fill(struct pl_region *g, const struct pl_store_params *params,
	const struct pl_region_options *options, struct pl_diag *diag)
{
	int r;

	g->page_bytes = page_bytes_of(g->fd);
	r = plan(&g->info, params, options, g->page_bytes, diag);
	if (r == 0)
		r = allocate(g->fd, g->info.file_bytes, diag);
	if (r == 0)
		r = map_file(g, options, diag);
	if (r == 0 && g->map != NULL)
		r = write_header(g, diag);
	if (r == 0)
		r = region_commit_start(g);
	return r;
}

int pl_region_create(struct pl_region **ret, const char *path, const struct pl_store_params *params,
	const struct pl_region_options *options, struct pl_diag *diag)
{
	struct region_file file;
	struct pl_region *g;
	int r;

	options = options != NULL ? options : &no_options;
	if (diag != NULL)
		diag->text[0] = '\0';
	g = new_region(true, options);
	if (g == NULL)
		return -ENOMEM;
	r = region_file_make(&file, path, options->mode != 0 ? options->mode : 0640);
	if (r < 0) {
		drop(g);
		return failed(diag, path, -r);
	}
	g->fd = file.fd;
	r = fill(g, params, options, diag);
	if (r == 0) {
		r = region_file_publish(&file, path);
		if (r < 0)
			(void)failed(diag, path, -r);
	}
	if (r < 0) {
		file.fd = -1; /* the region has it now */
		region_file_forget(&file);
		drop(g);
		/* Parameters are refused whatever the file. */
		return r == -EINVAL ? r : name_file(diag, path, r);
	}
	*ret = g;
	return 0;
}

/* ---- opening an existing file ---- */

static int busy(int fd, const char *path, struct pl_diag *diag)
{
	struct pl_region_info info;

	if (region_header_read(fd, path, &info, NULL) == 0)
		pl_diag_set(diag, "%s is being written by process %" PRIu32, path, info.writer_pid);
	else
		pl_diag_set(diag, "%s is being written by another process", path);
	return -EBUSY;
}

/* Repairs list heads: a writer that continued at a wrong head would overwrite good entries, or
 * write where no reader looks. */
static void mend_heads(struct pl_region *g)
{
	void *base = pl_region_store(g, pl_region_epoch(g));
	uint64_t head, end;
	struct pl_append a;

	if (base == NULL || pl_append_init(&a, &g->info.params, base) < 0)
		return;
	for (uint32_t list = 0; a.sealed && list < a.lists; list++) {
		if (pl_append_examine(&a, list, g->info.clean ? 0 : a.batch_max, &head, &end) ==
			PL_HEAD_FITS)
			continue;
		pl_append_publish(&a, list, end);
		if (g->mended++ > 0)
			continue;
		g->mended_list = list;
		g->mended_from = head;
		g->mended_to = end;
	}
}

static int begin_writing(struct pl_region *g)
{
	__atomic_store_n(&g->state->writer_pid, (uint32_t)getpid(), __ATOMIC_RELAXED);
	__atomic_store_n(&g->state->clean, 0, __ATOMIC_RELEASE);
	/* The state is on disk before the first write that it announces. */
	(void)msync(g->map, PL_REGION_HEADER_BYTES, MS_SYNC);
	region_finish_emptying(g);
	mend_heads(g);
	return region_commit_start(g);
}

uint32_t pl_region_mended(const struct pl_region *g, struct pl_diag *diag)
{
	if (g->mended > 0)
		pl_diag_set(diag,
			"the head of list %" PRIu32 " was %" PRIu64
			", but its entries end before number %" PRIu64 ": mended (%" PRIu32
			" lists so)",
			g->mended_list, g->mended_from, g->mended_to, g->mended);
	return g->mended;
}

int pl_region_open(struct pl_region **ret, const char *path, enum pl_region_access access,
	const struct pl_region_options *options, struct pl_diag *diag)
{
	bool writer = access == PL_REGION_WRITE;
	struct pl_region *g;
	int r;

	options = options != NULL ? options : &no_options;
	if (diag != NULL)
		diag->text[0] = '\0';
	g = new_region(writer, options);
	if (g == NULL)
		return -ENOMEM;
	r = region_file_open(path, writer, &g->fd);
	if (r == -EBUSY)
		r = busy(g->fd, path, diag);
	else if (r < 0)
		r = failed(diag, path, -r);
	if (r == 0)
		r = region_header_read(g->fd, path, &g->info, diag);
	g->page_bytes = page_bytes_of(g->fd);
	if (r == 0)
		r = map_file(g, options, diag);
	if (r == 0 && writer)
		r = begin_writing(g);
	if (r < 0) {
		drop(g);
		return name_file(diag, path, r);
	}
	*ret = g;
	return 0;
}

void pl_region_unlink(const struct pl_region *g, const char *path)
{
	if (region_file_is_at(g->fd, path))
		(void)unlink(path);
}

int pl_region_close(struct pl_region *g)
{
	int r = 0;

	if (g == NULL)
		return 0;
	region_commit_stop(g);
	if (g->writer) {
		r = pl_region_sync(g);
		/* A region with data that was cut off, or not written to disk, is not marked
		 * clean. */
		if (r == 0 && atomic_load(&g->guard.lost_pages) == 0) {
			__atomic_store_n(&g->state->clean, 1, __ATOMIC_RELEASE);
			r = msync(g->map, PL_REGION_HEADER_BYTES, MS_SYNC) < 0 ? -errno : 0;
		}
	}
	drop(g);
	return r;
}

const struct pl_store_params *pl_region_params(const struct pl_region *g)
{
	return &g->info.params;
}

void pl_region_note_clocks(struct pl_region *g, uint32_t clocks)
{
	if (g->writer)
		__atomic_fetch_or(&g->state->clocks, clocks, __ATOMIC_RELAXED);
}

void pl_region_get_info(const struct pl_region *g, struct pl_region_info *ret)
{
	uint64_t epochs = region_epochs(g);

	*ret = g->info;
	ret->epoch = epochs >> 2;
	ret->both = g->info.halves == 2 && (epochs & EPOCH_BOTH) != 0;
	ret->writer_pid = __atomic_load_n(&g->state->writer_pid, __ATOMIC_RELAXED);
	ret->synced_ns = __atomic_load_n(&g->state->synced_ns, __ATOMIC_RELAXED);
	ret->clocks = __atomic_load_n(&g->state->clocks, __ATOMIC_RELAXED);
	ret->sync_failures = __atomic_load_n(&g->state->sync_failures, __ATOMIC_RELAXED);
	ret->lost_pages = atomic_load(&g->guard.lost_pages);
}

bool pl_region_is_cut(const struct pl_region *g)
{
	struct stat st;

	return atomic_load(&g->guard.lost_pages) > 0 ||
	       (fstat(g->fd, &st) == 0 && (uint64_t)st.st_size < g->info.file_bytes);
}

bool pl_region_is_at(const struct pl_region *g, const char *path)
{
	return region_file_is_at(g->fd, path);
}

int pl_region_fd(const struct pl_region *g)
{
	return g->fd;
}

int pl_region_guard(void)
{
	return pl_map_guard_install();
}
