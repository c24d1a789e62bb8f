/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives the alerts of a benchmark, and stamps them. */
#include "tests/bench/alert_receiver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define REQUEST_MAX ((size_t)4 << 20)
#define QUERY_MAX   16

struct pl_alert_receiver {
	int listener;
	pthread_t thread;
	atomic_bool stop;
	pl_alert_fn *take;
	void *arg;
	char *text; /* of REQUEST_MAX + 1 bytes */
};

int pl_alert_listen(uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, bytes) < 0 || listen(fd, 64) < 0 ||
		getsockname(fd, (struct sockaddr *)&address, &bytes) < 0) {
		const int r = -errno;

		close(fd);
		return r;
	}
	*ret_port = ntohs(address.sin_port);
	return fd;
}

/* The text behind the next `"name":"` from p on, up to its closing quotation mark. NULL: none. */
static const char *member(const char *p, const char *name, char *dst, size_t cap)
{
	char lead[32];
	size_t n;

	snprintf(lead, sizeof(lead), "\"%s\":\"", name);
	p = strstr(p, lead);
	if (p == NULL)
		return NULL;
	p += strlen(lead);
	n = strcspn(p, "\"");
	snprintf(dst, cap, "%.*s", (int)(n < cap ? n : cap - 1), p);
	return p + n;
}

static void take_alerts(struct pl_alert_receiver *r, uint64_t stamp_ns)
{
	char query[QUERY_MAX], key[64], value[32];
	const char *p = r->text;

	while ((p = member(p, "query", query, sizeof(query))) != NULL &&
		(p = member(p, "key", key, sizeof(key))) != NULL &&
		(p = member(p, "value", value, sizeof(value))) != NULL) {
		struct in_addr address;

		if (inet_pton(AF_INET, key, &address) == 1)
			r->take(r->arg, query, ntohl(address.s_addr), strtoull(value, NULL, 10),
				stamp_ns);
	}
}

/* Whether the request is there to its last byte. */
static bool whole(const char *text, size_t have)
{
	const char *end = strstr(text, "\r\n\r\n");
	const char *length = strstr(text, "Content-Length:");

	return end != NULL && length != NULL && length < end &&
	       have - (size_t)(end + 4 - text) >= strtoull(length + 15, NULL, 10);
}

static void serve(struct pl_alert_receiver *r, int fd)
{
	static const char answer[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	size_t have = 0;
	ssize_t n = 1;

	r->text[0] = '\0';
	while (!whole(r->text, have) && have < REQUEST_MAX && n > 0) {
		n = read(fd, r->text + have, REQUEST_MAX - have);
		have += n > 0 ? (size_t)n : 0;
		r->text[have] = '\0';
	}
	if (!whole(r->text, have))
		return;
	take_alerts(r, pl_clock_real_ns());
	(void)!send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
}

static void *loop(void *arg)
{
	struct pl_alert_receiver *r = arg;

	while (!atomic_load(&r->stop)) {
		const int fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			continue;
		if (!atomic_load(&r->stop))
			serve(r, fd);
		close(fd);
	}
	return NULL;
}

int pl_alert_receiver_open(
	struct pl_alert_receiver **ret, uint16_t *ret_port, pl_alert_fn *take, void *arg)
{
	struct pl_alert_receiver *r = calloc(1, sizeof(*r));
	int error = -ENOMEM;

	if (r == NULL)
		return -ENOMEM;
	r->take = take;
	r->arg = arg;
	r->listener = -1;
	r->text = malloc(REQUEST_MAX + 1);
	if (r->text != NULL)
		error = r->listener = pl_alert_listen(ret_port);
	if (error >= 0)
		error = pl_thread_start(&r->thread, "bench-alerts", loop, r);
	if (error < 0) {
		if (r->listener >= 0)
			close(r->listener);
		free(r->text);
		free(r);
		return error;
	}
	*ret = r;
	return 0;
}

void pl_alert_receiver_close(struct pl_alert_receiver *r)
{
	if (r == NULL)
		return;
	atomic_store(&r->stop, true);
	(void)shutdown(r->listener, SHUT_RDWR); /* ends accept */
	pthread_join(r->thread, NULL);
	close(r->listener);
	free(r->text);
	free(r);
}
