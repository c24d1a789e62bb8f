/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps privileges in a helper process, which opens sockets and BPF links for the collector. */
#include "netio/helper.h"

#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/privilege.h"
#include "base/sandbox.h"

enum { REQUEST_SOCKET = 1, REQUEST_LINK };
enum { HELPER_FD = 3, CLOSE_FROM = 4, ANSWER_LIMIT_S = 5 };

struct request {
	int32_t what;
	int32_t domain;  /* SOCKET */
	int32_t ifindex; /* LINK; the program's descriptor comes with the message */
	uint32_t type;   /* PL_LINK_* */
	uint32_t flags;
	uint32_t number;
};

struct reply {
	int32_t result;
	uint32_t number; /* of the request */
};

struct pl_helper {
	struct pl_rights rights; /* first */
	pthread_mutex_t lock;    /* one request at a time */
	uint32_t asked;
	int fd;
	pid_t pid;
};

/* ---- messages with a descriptor beside ---- */

static int put(int fd, const void *data, size_t len, int with)
{
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (with >= 0) {
		struct cmsghdr *c;

		m.msg_control = control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &with, sizeof(int));
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -EPIPE;
}

/* Returns 0, -EPIPE at the end or on a time-out, -EBADMSG for a message of another length.
 * *ret_with: the descriptor that came with it, or -1. */
static int get(int fd, void *data, size_t len, int *ret_with)
{
	struct iovec iov = { .iov_base = data, .iov_len = len };
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n;

	*ret_with = -1;
	do
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return -EPIPE;
	c = CMSG_FIRSTHDR(&m);
	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_with, CMSG_DATA(c), sizeof(int));
	if ((size_t)n == len && (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
		return 0;
	if (*ret_with >= 0)
		close(*ret_with);
	*ret_with = -1;
	return -EBADMSG;
}

/* ---- the two steps ---- */

static int make_socket(int domain)
{
	int fd = socket(domain, SOCK_RAW | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int make_link(int prog_fd, int ifindex, uint32_t type, uint32_t flags)
{
	union bpf_attr attr;
	int fd;

	if (type != PL_LINK_XDP && type != PL_LINK_TCX_IN && type != PL_LINK_TCX_OUT)
		return -EINVAL;
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)prog_fd;
	attr.link_create.target_ifindex = (uint32_t)ifindex;
	attr.link_create.attach_type = type;
	attr.link_create.flags = flags;
	fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

/* ---- the helper's side ---- */

static int answer(const struct request *q, int with, bool packet)
{
	switch (q->what) {
	case REQUEST_SOCKET:
		if (q->domain != AF_XDP && !(packet && q->domain == AF_PACKET))
			return -EPERM;
		return make_socket(q->domain);
	case REQUEST_LINK:
		return with < 0 ? -EBADF : make_link(with, q->ifindex, q->type, q->flags);
	default:
		return -EINVAL;
	}
}

static void serve(bool packet)
{
	struct request q;
	int with, r;

	for (;;) {
		struct reply reply;

		r = get(HELPER_FD, &q, sizeof(q), &with);
		if (r == -EPIPE)
			return;
		if (r == 0)
			r = answer(&q, with, packet);
		if (with >= 0)
			close(with);
		reply = (struct reply){ .result = r < 0 ? r : 0, .number = q.number };
		if (put(HELPER_FD, &reply, sizeof(reply), r) < 0)
			return;
		if (r >= 0)
			close(r);
	}
}

_Noreturn static void be_helper(int fd, const struct pl_helper_options *options)
{
	struct pl_privilege_options keep = {
		.user = options->user,
		.group = options->group,
		.keep = PL_PRIVILEGE_NET_RAW | PL_PRIVILEGE_NET_ADMIN | PL_PRIVILEGE_BPF,
	};
	const struct pl_sandbox_options held = { .helper = true };
	struct pl_diag diag = { .text = "" };
	struct pl_sandbox_state state;
	sigset_t all;
	struct reply ready = { 0 };

	/* The helper ends when the collector's socket closes; signals sent to both are for the
	 * collector to handle. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_NAME, "pathline-helper", 0, 0, 0);
	if (dup2(fd, HELPER_FD) < 0)
		_exit(1);
	(void)syscall(SYS_close_range, CLOSE_FROM, ~0u, 0);
	ready.result = pl_privilege_drop(&keep, &diag);
	if (ready.result == 0)
		ready.result = pl_sandbox_enter(&held, &state, &diag);
	(void)put(HELPER_FD, &ready, sizeof(ready), -1);
	if (ready.result == 0)
		serve(options->packet);
	_exit(0);
}

/* ---- the collector's side ---- */

/* Returns the answer to request `number`. Answers to earlier requests, which timed out while the
 * helper was stopped, are discarded. */
static int get_answer(struct pl_helper *h, uint32_t number, int *ret_fd)
{
	struct reply reply;
	int r;

	do {
		r = get(h->fd, &reply, sizeof(reply), ret_fd);
		if (r < 0)
			return -EPERM;
		if (reply.number != number && *ret_fd >= 0)
			close(*ret_fd);
	} while (reply.number != number);
	return reply.result;
}

/* Returns a descriptor or -errno; -EPERM when the helper is gone or does not answer. */
static int ask(struct pl_helper *h, struct request *q, int with)
{
	int fd = -1, r;

	pthread_mutex_lock(&h->lock);
	q->number = ++h->asked;
	r = put(h->fd, q, sizeof(*q), with) < 0 ? -EPERM : get_answer(h, q->number, &fd);
	pthread_mutex_unlock(&h->lock);
	if (r == 0)
		return fd >= 0 ? fd : -EPERM;
	if (fd >= 0)
		close(fd);
	return r;
}

static int ask_socket(const struct pl_rights *rights, int domain)
{
	struct pl_helper *h = (struct pl_helper *)rights;
	int r = make_socket(domain);

	return r == -EPERM || r == -EACCES
		       ? ask(h, &(struct request){ .what = REQUEST_SOCKET, .domain = domain }, -1)
		       : r;
}

static int ask_link(
	const struct pl_rights *rights, int prog_fd, int ifindex, uint32_t type, uint32_t flags)
{
	struct pl_helper *h = (struct pl_helper *)rights;
	int r = make_link(prog_fd, ifindex, type, flags);

	return r == -EPERM || r == -EACCES ? ask(h,
						     &(struct request){ .what = REQUEST_LINK,
							     .ifindex = ifindex,
							     .type = type,
							     .flags = flags },
						     prog_fd)
					   : r;
}

int pl_helper_start(
	struct pl_helper **ret, const struct pl_helper_options *options, struct pl_diag *diag)
{
	struct timeval limit = { .tv_sec = ANSWER_LIMIT_S };
	struct pl_helper *h = calloc(1, sizeof(*h));
	int fds[2], with, r;
	struct reply ready;

	if (h == NULL)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		r = -errno;
		goto fail;
	}
	h->pid = fork();
	if (h->pid == 0)
		be_helper(fds[1], options);
	close(fds[1]);
	if (h->pid < 0) {
		r = -errno;
		close(fds[0]);
		goto fail;
	}
	h->rights = (struct pl_rights){ .socket = ask_socket, .link = ask_link };
	pthread_mutex_init(&h->lock, NULL);
	h->fd = fds[0];
	/* A stopped helper must not block a worker for ever. */
	(void)setsockopt(h->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	r = get(h->fd, &ready, sizeof(ready), &with);
	if (r == 0)
		r = ready.result;
	if (r < 0) {
		pl_diag_set(
			diag, "the helper that keeps the rights does not start: %s", strerror(-r));
		pl_helper_stop(h);
		return r;
	}
	*ret = h;
	return 0;
fail:
	pl_diag_set(diag, "the helper that keeps the rights does not start: %s", strerror(-r));
	free(h);
	return r;
}

const struct pl_rights *pl_helper_rights(const struct pl_helper *helper)
{
	return helper != NULL ? &helper->rights : NULL;
}

void pl_helper_stop(struct pl_helper *h)
{
	if (h == NULL)
		return;
	close(h->fd);
	/* No signal: the helper may run as another user by now. It ends when its socket closes. */
	(void)waitpid(h->pid, NULL, 0);
	pthread_mutex_destroy(&h->lock);
	free(h);
}
