/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs driver (src/verbs) in the guest, by a line of words each. Answers are lines of
 * `completion` or `news`, then one that begins with `ok` or `error`. Numbers are as strtoull takes
 * them.
 *
 *   open DEVICE[?KEY=VALUE] QPS RECEIVES     ok gid= index= mtu= depth= cm=
 *   close
 *   memory PATH BYTES VA DOMAIN              a new file of zeros, checked, mapped and registered;
 *                                            ok key= va=
 *   forget KEY                               no longer registered
 *   pair rc|uc ADDRESS QPN PSN MTU DOMAIN    a queue pair for that peer; ok qpn=
 *   remove QPN
 *   listen PORT | accept ID | reject ID | hangup ID      the private data of an answer is va 64 and
 *                                                        key 32 of `memory`
 *   step MS                                  what happens, waiting so long for the first; ok N
 *   get OFFSET BYTES                         of the memory
 *   counters                                 ok name=value …, those that are not zero
 *   devices                                  ok NAME STATE …
 *   shell COMMAND                            of one line; ok CODE
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/num.h"
#include "verbs/verbs.h"
#include "wire/roce.h"

enum { MAX_WORDS = 8 };

static struct pl_verbs *verbs;
static uint8_t *memory;
static size_t memory_bytes;
static uint64_t memory_va;
static uint32_t memory_key;
static char *words[MAX_WORDS + 1];
static int n_words;

static uint64_t number(int i)
{
	return i < n_words ? strtoull(words[i], NULL, 0) : 0;
}

static void failed(int r, const struct pl_diag *diag)
{
	printf("error %s: %s\n", strerror(-r), diag->text);
}

static void do_open(void)
{
	struct pl_verbs_options options;
	struct pl_diag diag = { .text = "" };
	char text[PL_ADDR_TEXT_MAX];
	struct pl_verbs_self self;
	int r = pl_verbs_parse(&options, words[1], &diag);

	options.max_qps = (uint32_t)number(2);
	options.receives = (uint32_t)number(3);
	if (r == 0)
		r = pl_verbs_open(&verbs, &options, &diag);
	if (r < 0)
		return failed(r, &diag);
	pl_verbs_self(verbs, &self);
	pl_format_addr(text, &self.gid);
	printf("ok gid=%s index=%u mtu=%u depth=%u cm=%d mac=%02x\n", text, self.gid_index,
		self.mtu, self.depth, self.cm, self.mac[0]);
}

static void do_close(void)
{
	pl_verbs_close(verbs);
	verbs = NULL;
	puts("ok");
}

static void do_memory(void)
{
	struct pl_rdma_region region = { .access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC };
	struct pl_diag diag = { .text = "" };
	int fd = open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0600), r;

	memory_bytes = number(2);
	region.va = number(3);
	region.domain = (uint32_t)number(4);
	if (fd < 0 || ftruncate(fd, (off_t)memory_bytes) < 0) {
		printf("error %s\n", strerror(errno));
		return;
	}
	r = pl_verbs_memory_check(fd, words[1], &diag);
	if (r == 0) {
		memory = mmap(NULL, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		region.base = memory;
		region.bytes = memory_bytes;
		r = memory == MAP_FAILED ? -errno
					 : pl_verbs_region_add(verbs, &region, &memory_key, &diag);
	}
	close(fd);
	if (r < 0)
		return failed(r, &diag);
	memory_va = region.va != 0 ? region.va : (uintptr_t)memory;
	printf("ok key=0x%x va=0x%" PRIx64 "\n", memory_key, memory_va);
}

static void result(int r)
{
	if (r < 0)
		printf("error %s\n", strerror(-r));
	else
		puts("ok");
}

static void do_forget(void)
{
	result(pl_verbs_region_remove(verbs, (uint32_t)number(1)));
}

static void do_pair(void)
{
	struct pl_rdma_qp qp = {
		.service = strcmp(words[1], "uc") == 0 ? PL_ROCE_UC : PL_ROCE_RC,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC,
		.rnr_timer = 12,
		.depth = 16,
		.domain = (uint32_t)number(6),
		.peer_qpn = (uint32_t)number(3),
		.psn = (uint32_t)number(4),
		.mtu = (uint16_t)number(5),
	};
	struct pl_diag diag = { .text = "" };
	uint32_t qpn;
	int r = pl_parse_addr(words[2], &qp.path.dst);

	if (r == 0)
		r = pl_verbs_qp_add(verbs, &qp, &qpn, &diag);
	if (r < 0)
		return failed(r, &diag);
	printf("ok qpn=0x%x\n", qpn);
}

static void do_remove(void)
{
	result(pl_verbs_qp_remove(verbs, (uint32_t)number(1)));
}

static void do_listen(void)
{
	struct pl_diag diag = { .text = "" };
	int r = pl_verbs_listen(verbs, (uint16_t)number(1), &diag);

	if (r < 0)
		return failed(r, &diag);
	puts("ok");
}

static void do_accept(void)
{
	struct {
		uint64_t va;
		uint32_t key, bytes;
	} told = { htobe64(memory_va), htobe32(memory_key), htobe32((uint32_t)memory_bytes) };
	const struct pl_connection_terms terms = { .resources = 4,
		.depth = 4,
		.rnr_retries = 7,
		.private = &told,
		.private_len = sizeof(told) };
	struct pl_diag diag = { .text = "" };
	const struct pl_rdma_qp qp = { .access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC };
	uint32_t qpn, id = (uint32_t)number(1);
	int r = pl_verbs_connection_qp(verbs, id, &qp, &qpn, &diag);

	if (r == 0)
		r = pl_verbs_accept(verbs, id, &terms, &diag);
	if (r < 0)
		return failed(r, &diag);
	printf("ok qpn=0x%x\n", qpn);
}

static void do_reject(void)
{
	result(pl_verbs_reject(verbs, (uint32_t)number(1), NULL, 0));
}

static void do_hangup(void)
{
	result(pl_verbs_disconnect(verbs, (uint32_t)number(1)));
}

static void do_step(void)
{
	struct pollfd ready = { pl_verbs_fd(verbs), POLLIN, 0 };
	struct pl_rdma_completion done[16];
	struct pl_verbs_news news;
	unsigned int n = 0, got;

	(void)poll(&ready, 1, (int)number(1));
	pl_verbs_step(verbs);
	while ((got = pl_verbs_completions(verbs, done, 16)) > 0) {
		for (unsigned int i = 0; i < got; i++)
			printf("completion qpn=0x%x imm=0x%x bytes=%u kind=%u\n", done[i].qpn,
				done[i].imm, done[i].bytes, done[i].kind);
		n += got;
	}
	while (pl_verbs_news(verbs, &news)) {
		const struct pl_connection_event *c = &news.connection;
		char peer[PL_ADDR_TEXT_MAX];

		pl_format_addr(peer, &c->path.dst);
		printf("news kind=%u qpn=0x%x id=%u event=%u port=%u peer=%s private=", news.kind,
			news.qpn, c->id, c->kind, c->port, peer);
		for (uint32_t i = 0; i < c->terms.private_len; i++)
			printf("%02x", ((const uint8_t *)c->terms.private)[i]);
		putchar('\n');
		n++;
	}
	printf("ok %u\n", n);
}

static void do_get(void)
{
	size_t at = number(1), n = number(2);

	if (at > memory_bytes || n > memory_bytes - at) {
		puts("error get");
		return;
	}
	printf("ok ");
	for (size_t i = 0; i < n; i++)
		printf("%02x", ((volatile uint8_t *)memory)[at + i]);
	putchar('\n');
}

static void count(const char *name, const struct pl_counter *c)
{
	if (pl_counter_read(c) != 0)
		printf(" %s=%" PRIu64, name, pl_counter_read(c));
}

static void do_counters(void)
{
	const struct pl_verbs_counters *c = pl_verbs_counters(verbs);

	printf("ok");
	count("immediates", &c->immediates);
	count("immediates_lost", &c->immediates_lost);
	count("flushed", &c->flushed);
	count("failed", &c->failed);
	count("broken", &c->broken);
	count("unposted", &c->unposted);
	count("news_lost", &c->news_lost);
	count("qps", &c->qps);
	count("connections", &c->connections);
	count("requests", &c->requests);
	count("refused", &c->refused);
	count("closed", &c->closed);
#define PL_VERBS_EVENT(id, name, help) count(name, &c->id);
#include "verbs/events.def"
#undef PL_VERBS_EVENT
	putchar('\n');
}

static void do_devices(void)
{
	struct pl_verbs_device devices[4];
	int n = pl_verbs_devices(devices, 4);

	if (n < 0) {
		printf("error %s\n", strerror(-n));
		return;
	}
	printf("ok");
	for (int i = 0; i < n && i < 4; i++)
		printf(" %s %s %d %s", devices[i].name, devices[i].netdev, devices[i].usable,
			devices[i].state);
	putchar('\n');
}

static const struct {
	const char *name;
	void (*run)(void);
	int words; /* at least */
	bool open; /* needs the device */
} commands[] = {
	{ "open", do_open, 4, false },
	{ "close", do_close, 1, true },
	{ "memory", do_memory, 3, true },
	{ "forget", do_forget, 2, true },
	{ "pair", do_pair, 6, true },
	{ "remove", do_remove, 2, true },
	{ "listen", do_listen, 2, true },
	{ "accept", do_accept, 2, true },
	{ "reject", do_reject, 2, true },
	{ "hangup", do_hangup, 2, true },
	{ "step", do_step, 2, true },
	{ "get", do_get, 3, true },
	{ "counters", do_counters, 1, true },
	{ "devices", do_devices, 1, false },
};

static void run(char *line)
{
	if (strncmp(line, "shell ", 6) == 0) {
		printf("ok %d\n", system(line + 6));
		return;
	}
	n_words = 0;
	for (char *w = strtok(line, " \t\r\n"); w != NULL && n_words < MAX_WORDS;
		w = strtok(NULL, " \t\r\n"))
		words[n_words++] = w;
	for (size_t i = 0; n_words > 0 && i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(words[0], commands[i].name) == 0 && n_words >= commands[i].words &&
			(verbs != NULL || !commands[i].open))
			return commands[i].run();
	}
	puts("error what?");
}

int main(void)
{
	static char line[1024];

	setvbuf(stdout, NULL, _IOLBF, 1 << 16);
	puts("ok ready");
	while (fgets(line, sizeof(line), stdin) != NULL)
		run(line);
	return 0;
}
