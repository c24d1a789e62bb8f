/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A spool whose file was damaged. The first byte says how many records there are; then come edits
 * of four bytes: what to do (write a byte, cut the file, settle a record, damage the cursor),
 * where, and with what. What is read afterwards is a part of what was put, unchanged and in order;
 * nothing is counted twice; and it goes on.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/spool.h"
#include "fuzz.h"

static char folder[64];

static void in_folder(char dst[128], const char *name)
{
	snprintf(dst, 128, "%s/%s", folder, name);
}

static void clear(void)
{
	static const char *const names[] = { "lock", "cursor", "damaged", "0000000000000001.seg" };
	char path[128], name[32];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		in_folder(path, names[i]);
		unlink(path);
	}
	for (unsigned int i = 2; i < 40; i++) {
		snprintf(name, sizeof(name), "%016x.seg", i);
		in_folder(path, name);
		unlink(path);
	}
}

static struct pl_spool *spool(void)
{
	struct pl_spool_options o = { .path = folder, .bytes = 1 << 20, .payload_max = 256 };
	struct pl_spool *s = NULL;

	must(pl_spool_open(&s, &o, NULL) == 0);
	return s;
}

static void put(struct pl_spool *s, uint32_t i)
{
	uint8_t payload[64];
	struct pl_spool_record r = { .entries = i + 1, .payload = payload, .len = 8 + i };

	memset(payload, (int)i, sizeof(payload));
	must(pl_spool_put(s, &r) == 0);
}

/* The number of the record; it must be one that was put. */
static int64_t get(struct pl_spool *s)
{
	struct pl_spool_record r;
	uint32_t i;

	if (pl_spool_peek(s, &r) < 0)
		return -1;
	i = r.entries - 1;
	must(i < 34 && r.len == 8 + i);
	for (uint32_t k = 0; k < r.len; k++)
		must(((const uint8_t *)r.payload)[k] == i);
	pl_spool_next(s);
	return i;
}

static void edit_file(const char *name, uint16_t at, uint8_t value, bool cut)
{
	char path[128];
	struct stat st;
	int fd;

	in_folder(path, name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0)
		goto out;
	if (cut)
		must(ftruncate(fd, at % (st.st_size + 1)) == 0);
	else
		must(pwrite(fd, &value, 1, at % st.st_size) == 1);
out:
	if (fd >= 0)
		close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_spool_counts c;
	struct pl_spool *s;
	int64_t last = -1, i;
	uint32_t n;

	if (size == 0)
		return 0;
	if (folder[0] == '\0') {
		snprintf(folder, sizeof(folder), "%s/fuzz-spool-%d",
			access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
		must(mkdir(folder, 0700) == 0);
	}
	s = spool();
	n = data[0] % 16;
	for (uint32_t k = 0; k < n; k++)
		put(s, k);
	for (size_t at = 1; at + 4 <= size; at += 4) {
		uint16_t where = (uint16_t)(data[at + 1] | data[at + 2] << 8);

		switch (data[at] % 5) {
		case 0:
			edit_file("0000000000000001.seg", where, data[at + 3], false);
			break;
		case 1:
			edit_file("0000000000000001.seg", where, 0, true);
			break;
		case 2:
			i = get(s);
			must(i == -1 || i > last);
			last = i > last ? i : last;
			break;
		case 3:
			edit_file("cursor", where, data[at + 3], false);
			last = -1; /* settled ones may come again */
			break;
		default:
			pl_spool_close(s);
			s = spool();
			break;
		}
	}
	/* What was settled before a damaged cursor was read may come again, once from the
	 * beginning. */
	i = get(s);
	last = -1;
	while (i >= 0) {
		must(i > last);
		last = i;
		i = get(s);
	}
	pl_spool_counts(s, &c);
	must(c.entries == 0 && c.records == 0);
	put(s, 33);
	must(get(s) == 33);
	must(get(s) == -1);
	pl_spool_close(s);
	clear();
	rmdir(folder);
	folder[0] = '\0';
	return 0;
}
