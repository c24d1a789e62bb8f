/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver's accounts, with a region and with a translator that is a socket of this test. */
#include "export/dta_out.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/postcards.h"
#include "memory/region.h"

#define HOPS 3

static char file[80];
static const char *const flow[] = { "flow" };

static void create(const struct pl_store_params *params)
{
	struct pl_diag diag = { .text = "" };
	struct pl_region *region;

	unlink(file);
	if (pl_region_create(&region, file, params, NULL, &diag) < 0 ||
		pl_region_close(region) < 0) {
		printf("# %s\n", diag.text);
		abort();
	}
}

static struct pl_export *open_region(const struct pl_dta_map_options *o)
{
	struct pl_diag diag = { .text = "" };
	struct pl_dta_map map;
	struct pl_dta_to *to;
	struct pl_export *e;

	if (pl_dta_map_init(&map, o, &diag) < 0 ||
		pl_dta_to_region(&to, file, &map, 0, &diag) < 0 ||
		pl_dta_out_open(&e, o, to, &diag) < 0) {
		printf("# %s\n", diag.text);
		abort();
	}
	return e;
}

/* Writes n paths over nodes 1, 2, 3, of flows from port 1 on; the last has `flags`. */
static void write_paths(struct pl_export *e, uint16_t n, uint16_t flags)
{
	struct pl_record_batch b;

	if (pl_record_batch_init(&b, n, 256) < 0)
		abort();
	for (uint16_t i = 0; i < n; i++) {
		b.paths[i] = (struct pl_path){ .present = PL_PATH_HAS_src | PL_PATH_HAS_sport,
			.src = { { 1 } },
			.sport = (uint16_t)(i + 1),
			.proto = 17,
			.hop_count = HOPS,
			.flags = i == n - 1 ? flags : 0 };
		b.first_hop[i] = b.n_hops;
		for (uint8_t k = 0; k < HOPS; k++)
			b.hops[b.n_hops++] = (struct pl_hop){
				.present = PL_HOP_HAS_node, .node = k + 1u, .index = k
			};
	}
	b.n_paths = n;
	pl_export_write_paths(e, &b, pl_clock_mono_ns());
	pl_record_batch_done(&b);
}

static uint64_t dropped(const struct pl_export *e)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < PL_EXPORT_DROP_MAX; i++)
		sum += pl_counter_read(&e->stats.dropped[i]);
	return sum;
}

static void closes(struct pl_export *e, uint64_t delivered, enum pl_export_drop cause, uint64_t n)
{
	const struct pl_export_stats *s = &e->stats;

	eq(pl_counter_read(&s->delivered), delivered, "delivered");
	eq(pl_counter_read(&s->dropped[cause]), n, "dropped: %s", pl_export_drop_name(cause));
	eq(pl_counter_read(&s->accepted),
		pl_counter_read(&s->delivered) + dropped(e) + atomic_load(&s->queued),
		"the account closes");
}

/* ---- into a region ---- */

static void test_append(void)
{
	struct pl_store_params params = { .primitive = PL_APPEND, .hash = PL_HASH_PATHLINE };
	const struct pl_dta_map_options o = {
		.op = PL_DTA_APPEND, .record = PL_KIND_PATH, .list = 1
	};
	struct pl_export *e;
	struct pl_region *region;
	struct pl_append a;
	struct pl_diag diag = { .text = "" };

	params.append.slots = 1024;
	params.append.lists = 2;
	params.append.entry_bytes = 128;
	params.append.batch_max = 16;
	params.append.sealed = 1;
	create(&params);
	for (unsigned int round = 1; round <= 2; round++) {
		e = open_region(&o);
		write_paths(e, 20, 0);
		pl_export_flush(e, pl_clock_mono_ns(), true);
		closes(e, 20, PL_EXPORT_EMPTY, 0);
		pl_export_close(e);
		if (pl_region_open(&region, file, PL_REGION_READ, NULL, &diag) < 0)
			abort();
		(void)pl_append_init(&a, &params, pl_region_store(region, 0));
		eq(pl_append_head(&a, 1), 20 * round,
			"entries, after a restart behind those before");
		(void)pl_region_close(region);
	}
}

static void test_postcards(void)
{
	struct pl_store_params params = { .primitive = PL_POSTCARDS, .hash = PL_HASH_PATHLINE };
	const struct pl_dta_map_options o = {
		.op = PL_DTA_POSTCARD, .record = PL_KIND_HOP, .key = flow, .n_key = 1
	};
	struct pl_export *e;

	params.postcards.chunks = 1024;
	params.postcards.hops = 5;
	params.postcards.copies = 2;
	create(&params);
	e = open_region(&o);
	write_paths(e, 20, PL_FLAG_PARTIAL);
	pl_export_flush(e, pl_clock_mono_ns(), true);
	closes(e, 19, PL_EXPORT_EMPTY, 1);
	pl_export_close(e);
	params.postcards.hops = 2;
	create(&params);
	e = open_region(&o);
	write_paths(e, 3, 0);
	pl_export_flush(e, pl_clock_mono_ns(), true);
	closes(e, 0, PL_EXPORT_REJECTED, 3);
	{
		struct pl_export_words words;

		e->ops->words(e, &words);
		ok(strstr(words.refusal, "path length") != NULL, "it says why: %s", words.refusal);
	}
	pl_export_close(e);
}

static void test_missing(void)
{
	static const char *const queue[] = { "queue" };
	struct pl_store_params params = { .primitive = PL_COUNTERS, .hash = PL_HASH_PATHLINE };
	struct pl_dta_map_options o = {
		.op = PL_DTA_INCREMENT, .record = PL_KIND_HOP, .key = queue, .n_key = 1
	};
	struct pl_event event = { .event = PL_EVENT_LOOP };
	struct pl_export *e;

	params.counters.width = 1024;
	params.counters.rows = 2;
	create(&params);
	e = open_region(&o);
	write_paths(e, 5, 0);
	pl_export_write_events(e, &event, 1, pl_clock_mono_ns());
	closes(e, 0, PL_EXPORT_EMPTY, 6);
	pl_export_close(e);
}

/* A sum that would exceed 64 bits is refused with its reason. */
static void test_full_sum(void)
{
	static const char *const key[] = { "event" }, *const value[] = { "value" };
	struct pl_store_params params = { .primitive = PL_COUNTERS, .hash = PL_HASH_PATHLINE };
	const struct pl_dta_map_options o = { .op = PL_DTA_INCREMENT,
		.record = PL_KIND_EVENT,
		.key = key,
		.n_key = 1,
		.value = value,
		.n_value = 1 };
	struct pl_event event = {
		.event = PL_EVENT_LOOP, .present = PL_EVENT_HAS_value, .value = UINT64_MAX - 1
	};
	struct pl_export *e;

	params.counters.width = 1024;
	params.counters.rows = 2;
	create(&params);
	e = open_region(&o);
	pl_export_write_events(e, &event, 1, pl_clock_mono_ns());
	pl_export_write_events(e, &event, 1, pl_clock_mono_ns());
	pl_export_flush(e, pl_clock_mono_ns(), true);
	closes(e, 1, PL_EXPORT_REJECTED, 1);
	pl_export_close(e);
}

static void test_refused(void)
{
	struct pl_store_params params = { .primitive = PL_APPEND, .hash = PL_HASH_PATHLINE };
	struct pl_dta_map_options o = { .op = PL_DTA_APPEND, .record = PL_KIND_EVENT };
	struct pl_dta_map map;
	struct pl_dta_to *to;
	struct pl_diag diag = { .text = "" };

	params.append.slots = 64;
	params.append.lists = 1;
	params.append.entry_bytes = 16;
	params.append.batch_max = 16;
	create(&params);
	(void)pl_dta_map_init(&map, &o, NULL);
	ok(pl_dta_to_region(&to, file, &map, 0, &diag) == -EINVAL, "another size: %s", diag.text);
	params.append.entry_bytes = 128;
	params.content = PL_CONTENT_HOP;
	create(&params);
	ok(pl_dta_to_region(&to, file, &map, 0, &diag) == -EINVAL, "another record: %s", diag.text);
	o.list = 1;
	params.content = PL_CONTENT_EVENT;
	create(&params);
	(void)pl_dta_map_init(&map, &o, NULL);
	ok(pl_dta_to_region(&to, file, &map, 0, &diag) == -EINVAL, "no such list: %s", diag.text);
	o = (struct pl_dta_map_options){
		.op = PL_DTA_KEY_WRITE, .record = PL_KIND_EVENT, .key = flow, .n_key = 1
	};
	(void)pl_dta_map_init(&map, &o, NULL);
	ok(pl_dta_to_region(&to, file, &map, 0, &diag) == -EINVAL, "another primitive: %s",
		diag.text);
	unlink(file);
	ok(pl_dta_to_region(&to, file, &map, 0, &diag) == -ENOENT, "no file: %s", diag.text);
}

/* ---- to a translator ---- */

/* Opens a socket on the loopback; returns its address as an output is configured with it. */
static int listen_here(char *address, size_t n)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(here);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&here, len) < 0 ||
		getsockname(fd, (struct sockaddr *)&here, &len) < 0)
		abort();
	snprintf(address, n, "udp://127.0.0.1:%u", ntohs(here.sin_port));
	return fd;
}

/* Receives until `wanted` reports came; returns their number and their sender. */
static uint32_t take(int fd, uint32_t wanted, struct sockaddr_in *from)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	uint8_t bytes[2048];
	uint32_t n = 0;

	while (n < wanted && poll(&readable, 1, PL_TEST_PATIENCE_S * 1000) > 0) {
		socklen_t len = sizeof(*from);
		ssize_t got = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)from, &len);
		struct pl_cursor c = pl_cursor(bytes, (size_t)got);
		struct pl_dta_report report;

		while (pl_cursor_left(&c) > 0 &&
			pl_dta_next(&c, PL_DTA_TRACKING, &report) == PL_DTA_OK)
			n++;
	}
	return n;
}

static void answer(int fd, const struct sockaddr_in *to, uint32_t last, uint32_t lost)
{
	const struct pl_dta_nack nack = { .form = PL_DTA_PATHLINE,
		.last = last,
		.answer = true,
		.tells_lost = true,
		.lost = lost };
	uint8_t bytes[PL_DTA_NACK_BYTES_MAX];
	struct pl_build b = pl_build(bytes, sizeof(bytes));

	if (pl_dta_nack_put(&b, &nack) < 0 ||
		sendto(fd, bytes, b.len, 0, (const struct sockaddr *)to, sizeof(*to)) < 0)
		abort();
}

/* Flushes until n entries are queued, for a limited time. */
static void until_queued(struct pl_export *e, uint64_t n)
{
	(void)eventually(
		atomic_load(&e->stats.queued) == n, pl_export_flush(e, pl_clock_mono_ns(), true));
	eq(atomic_load(&e->stats.queued), n, "queued");
}

static void test_udp(void)
{
	const struct pl_dta_map_options o = {
		.op = PL_DTA_KEY_WRITE, .record = PL_KIND_PATH, .key = flow, .n_key = 1
	};
	struct sockaddr_in from;
	char address[64];
	int fd = listen_here(address, sizeof(address));
	struct pl_dta_to *to;
	struct pl_export *e;

	if (pl_dta_to_udp(&to, address, 64, true, NULL) < 0 ||
		pl_dta_out_open(&e, &o, to, NULL) < 0)
		abort();
	write_paths(e, 10, 0);
	pl_export_flush(e, pl_clock_mono_ns(), false);
	ok(take(fd, 10, &from) >= 10, "ten reports come");
	closes(e, 0, PL_EXPORT_IO, 0);
	eq(atomic_load(&e->stats.queued), 10, "what is not confirmed is not delivered");
	pl_export_mark(e);
	ok(!pl_export_settled(e), "nor settled");
	answer(fd, &from, 9, 0);
	until_queued(e, 0);
	ok(pl_export_settled(e), "and then it is");
	closes(e, 10, PL_EXPORT_IO, 0);
	write_paths(e, 10, 0);
	pl_export_flush(e, pl_clock_mono_ns(), false);
	(void)take(fd, 10, &from);
	/* The translator confirms up to number 14 and gave up two of them. */
	pl_export_mark(e);
	write_paths(e, 10, 0);
	answer(fd, &from, 14, 2);
	until_queued(e, 15);
	ok(!pl_export_settled(e), "some of those before the mark");
	answer(fd, &from, 19, 2);
	until_queued(e, 10);
	ok(pl_export_settled(e), "all of those before the mark, and none behind it");
	answer(fd, &from, 29, 2);
	until_queued(e, 0);
	closes(e, 28, PL_EXPORT_IO, 2);
	/* The ring takes this many, and no more without an answer. */
	write_paths(e, 80, 0);
	pl_export_flush(e, pl_clock_mono_ns(), false);
	ok(pl_counter_read(&e->stats.dropped[PL_EXPORT_MEMORY]) >= 80 - 64, "the ring is full");
	closes(e, 28, PL_EXPORT_IO, 2);
	pl_export_close(e);
	close(fd);
}

int main(void)
{
	snprintf(file, sizeof(file), "/tmp/pathline-dta-out-%d.plr", (int)getpid());
	test_append();
	test_postcards();
	test_missing();
	test_full_sum();
	test_refused();
	test_udp();
	unlink(file);
	return pl_test_done();
}
