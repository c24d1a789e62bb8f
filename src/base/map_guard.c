/* SPDX-License-Identifier: BSD-2-Clause */
/* SIGBUS of a mapped file that someone cut: the page that vanished is replaced by one of zeros. */
#include "base/map_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define GUARDS_MAX 256u

/* Read by the handler in whatever thread it runs, without locks. */
static _Atomic(struct pl_map_guard *) guarded[GUARDS_MAX];
static struct sigaction before;

int pl_map_guard_enter(struct pl_map_guard *g)
{
	for (unsigned int i = 0; i < GUARDS_MAX; i++) {
		struct pl_map_guard *none = NULL;

		if (atomic_compare_exchange_strong(&guarded[i], &none, g))
			return 0;
	}
	return -ENOSPC;
}

void pl_map_guard_leave(struct pl_map_guard *g)
{
	for (unsigned int i = 0; i < GUARDS_MAX; i++) {
		struct pl_map_guard *me = g;

		atomic_compare_exchange_strong(&guarded[i], &me, NULL);
	}
}

/* Replaces the page. False when the address is in no guarded mapping, or the kernel has no page to
 * give. */
static bool replace(const uint8_t *at)
{
	for (unsigned int i = 0; i < GUARDS_MAX; i++) {
		struct pl_map_guard *g = atomic_load(&guarded[i]);
		uint8_t *page;

		if (g == NULL || at < g->map || at >= g->map + g->bytes)
			continue;
		page = g->map + (size_t)(at - g->map) / g->page_bytes * g->page_bytes;
		if (mmap(page, g->page_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			return false;
		atomic_fetch_add(&g->lost_pages, 1);
		return true;
	}
	return false;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	int error = errno;
	bool mended = info->si_code == BUS_ADRERR && replace(info->si_addr);

	errno = error;
	if (mended)
		return;
	if ((before.sa_flags & SA_SIGINFO) != 0)
		before.sa_sigaction(number, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(number);
	else
		/* The access is tried again, and ends the process as it would have. */
		(void)sigaction(number, &before, NULL);
}

static int result;

static void install(void)
{
	struct sigaction action = { .sa_sigaction = on_sigbus,
		.sa_flags = SA_SIGINFO | SA_NODEFER };

	sigemptyset(&action.sa_mask);
	result = sigaction(SIGBUS, &action, &before) < 0 ? -errno : 0;
}

int pl_map_guard_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	return result;
}
