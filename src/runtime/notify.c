/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the service manager the state of this process. */
#include "runtime/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

void pl_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = path != NULL ? strlen(path) : 0;
	int fd;

	if (n < 2 || n >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, n);
	/* An abstract address begins with NUL instead of '@'. */
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* The service manager may be gone; there is then nothing to notify. */
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}

void pl_notify_reloading(void)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		pl_clock_mono_ns() / 1000);
	pl_notify(text);
}

uint64_t pl_notify_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t n, who;

	if (usec == NULL || pl_parse_u64(usec, &n) < 0)
		return 0;
	if (pid != NULL && (pl_parse_u64(pid, &who) < 0 || who != (uint64_t)getpid()))
		return 0;
	return n * 1000;
}
