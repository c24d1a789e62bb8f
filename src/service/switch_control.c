/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket: clients send requests, one line of JSON each, and get answers, one line each.
 * Limits: number of clients, length of a line, one answer at a time; a client that does not read
 * its answer, or sends too long a line, is disconnected, and so is the longest silent one for another
 * that waits.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/local_socket.h"
#include "service/switch.h"

/* Longest time that a client may not read its answer, or may be silent while another one waits. */
#define STALL_NS UINT64_C(10000000000)

struct client {
	int fd; /* 0: free place */
	struct pl_buf in, out;
	size_t sent;        /* bytes of `out` sent */
	uint64_t due_ns;    /* time to disconnect; 0: no answer is pending */
	uint64_t active_ns; /* when it last asked or had its answer */
};

struct pl_switch_control {
	struct pl_switch *s;
	int fd;
	struct client clients[PL_SWITCH_CLIENTS_MAX];
	uint64_t now_ns; /* of the last turn */
};

/* ---- the socket ---- */

int pl_switch_control_open(
	struct pl_switch_control **ret, struct pl_switch *s, const char *path, struct pl_diag *diag)
{
	struct pl_switch_control *c = calloc(1, sizeof(*c));
	int r;

	if (c == NULL)
		return -ENOMEM;
	c->s = s;
	/* jansson seeds its hash tables from a file, which cannot be opened later. */
	json_object_seed(0);
	c->fd = r = pl_local_listen(path, 0600, PL_SWITCH_CLIENTS_MAX, diag);
	if (r < 0) {
		free(c);
		return r;
	}
	*ret = c;
	return 0;
}

static void drop_client(struct client *x)
{
	close(x->fd);
	pl_buf_done(&x->in);
	pl_buf_done(&x->out);
	*x = (struct client){ 0 };
}

void pl_switch_control_close(struct pl_switch_control *c)
{
	if (c == NULL)
		return;
	for (unsigned int i = 0; i < PL_SWITCH_CLIENTS_MAX; i++) {
		if (c->clients[i].fd != 0)
			drop_client(&c->clients[i]);
	}
	close(c->fd);
	/* The socket's file stays: the right to remove it was given up. The next switch does. */
	free(c);
}

/* ---- waiting ---- */

static bool is_full(const struct pl_switch_control *c)
{
	for (unsigned int i = 0; i < PL_SWITCH_CLIENTS_MAX; i++) {
		if (c->clients[i].fd == 0)
			return false;
	}
	return true;
}

/* Returns the longest silent client; NULL: all have answers to read. */
static const struct client *longest_silent(const struct pl_switch_control *c)
{
	const struct client *found = NULL;

	for (unsigned int i = 0; i < PL_SWITCH_CLIENTS_MAX; i++) {
		const struct client *x = &c->clients[i];

		if (x->fd != 0 && x->out.len == 0 &&
			(found == NULL || x->active_ns < found->active_ns))
			found = x;
	}
	return found;
}

/* Returns when a client beyond the maximum gets a place; UINT64_MAX: when one is free. */
static uint64_t place_ns(const struct pl_switch_control *c)
{
	const struct client *x = longest_silent(c);

	return x != NULL ? x->active_ns + STALL_NS : UINT64_MAX;
}

unsigned int pl_switch_control_fds(
	const struct pl_switch_control *c, struct pollfd *ret, unsigned int max)
{
	unsigned int n = 0;

	/* A client beyond the maximum waits in the backlog. */
	if (n < max && (!is_full(c) || place_ns(c) <= c->now_ns))
		ret[n++] = (struct pollfd){ .fd = c->fd, .events = POLLIN };
	for (unsigned int i = 0; i < PL_SWITCH_CLIENTS_MAX && n < max; i++) {
		const struct client *x = &c->clients[i];

		if (x->fd != 0)
			ret[n++] = (struct pollfd){ .fd = x->fd,
				.events = x->sent < x->out.len ? POLLOUT : POLLIN };
	}
	return n;
}

/* Returns whether a complete request is buffered: no descriptor wakes for it. */
static bool has_line(const struct client *x)
{
	return x->out.len == 0 && x->in.len > 0 && memchr(x->in.data, '\n', x->in.len) != NULL;
}

uint64_t pl_switch_control_due_ns(const struct pl_switch_control *c)
{
	uint64_t due = UINT64_MAX;

	/* From this time on the listening socket wakes. */
	if (is_full(c) && place_ns(c) > c->now_ns)
		due = place_ns(c);
	for (unsigned int i = 0; i < PL_SWITCH_CLIENTS_MAX; i++) {
		if (has_line(&c->clients[i]))
			return 0;
		if (c->clients[i].due_ns != 0 && c->clients[i].due_ns < due)
			due = c->clients[i].due_ns;
	}
	return due;
}

/* ---- requests ---- */

static void make_place(struct pl_switch_control *c)
{
	struct pollfd waiting = { .fd = c->fd, .events = POLLIN };

	if (is_full(c) && place_ns(c) <= c->now_ns && poll(&waiting, 1, 0) > 0)
		drop_client(&c->clients[longest_silent(c) - c->clients]);
}

static void accept_clients(struct pl_switch_control *c)
{
	make_place(c);
	for (unsigned int i = 0; i < PL_SWITCH_CLIENTS_MAX; i++) {
		struct client *x = &c->clients[i];

		if (x->fd != 0)
			continue;
		x->fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (x->fd < 0) {
			x->fd = 0;
			return;
		}
		pl_buf_init(&x->in);
		pl_buf_init(&x->out);
		x->active_ns = c->now_ns;
	}
}

/* Sends what it can. Returns false when the client is gone or stalled for too long. */
static bool send_answer(struct client *x, uint64_t now_ns)
{
	while (x->sent < x->out.len) {
		ssize_t n = send(x->fd, x->out.data + x->sent, x->out.len - x->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			if (x->due_ns == 0)
				x->due_ns = now_ns + STALL_NS;
			return now_ns < x->due_ns;
		}
		if (n < 0)
			return false;
		x->sent += (size_t)n;
		x->due_ns = 0;
	}
	pl_buf_reset(&x->out);
	x->sent = 0;
	x->due_ns = 0;
	x->active_ns = now_ns;
	return true;
}

static bool receive(struct client *x)
{
	char bytes[16384];
	ssize_t n;

	do {
		n = recv(x->fd, bytes, sizeof(bytes), 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	pl_buf_add(&x->in, bytes, (size_t)n);
	return !x->in.failed;
}

static void answer_line(struct pl_switch_control *c, struct client *x, size_t len)
{
	x->out.limit = PL_SWITCH_ANSWER_MAX;
	pl_switch_answer(c->s, x->in.data, len, &x->out);
	if (x->out.failed) {
		pl_buf_reset(&x->out);
		pl_buf_str(&x->out,
			"{\"ok\":false,\"error\":\"the answer is too long; ask for one by name\"}");
	}
	pl_buf_chr(&x->out, '\n');
	/* The line and its end are removed; bytes after it stay. */
	memmove(x->in.data, x->in.data + len + 1, x->in.len - len - 1);
	x->in.len -= len + 1;
}

/* Handles one request. Returns false when the client is gone or to be disconnected. */
static bool turn_client(struct pl_switch_control *c, struct client *x, uint64_t now_ns)
{
	const char *end;

	if (x->out.len > 0)
		return send_answer(x, now_ns);
	if (!has_line(x) && !receive(x))
		return false;
	end = x->in.len > 0 ? memchr(x->in.data, '\n', x->in.len) : NULL;
	if (end == NULL)
		return x->in.len <= PL_SWITCH_LINE_MAX;
	answer_line(c, x, (size_t)(end - x->in.data));
	return send_answer(x, now_ns);
}

void pl_switch_control_turn(struct pl_switch_control *c, uint64_t now_ns)
{
	c->now_ns = now_ns;
	accept_clients(c);
	for (unsigned int i = 0; i < PL_SWITCH_CLIENTS_MAX; i++) {
		struct client *x = &c->clients[i];

		if (x->fd == 0)
			continue;
		if (!turn_client(c, x, now_ns))
			drop_client(x);
	}
}
