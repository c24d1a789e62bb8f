/* SPDX-License-Identifier: BSD-2-Clause */
/* Both ends of a lab's control socket: serves requests, and sends them. */
#include "lab/control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/local_socket.h"

#define WORDS_MAX   (8 + PL_LAB_SENDERS_MAX)
#define PATIENCE_MS 5000
#define TRUTH_MAX   (64 << 20)

void pl_lab_control_init(struct pl_lab_control *c)
{
	c->listener = -1;
	for (unsigned int i = 0; i < PL_LAB_CLIENTS_MAX; i++)
		c->clients[i] = -1;
}

int pl_lab_control_open(struct pl_lab_control *c, const struct pl_lab_control_ops *ops)
{
	const struct sockaddr_un sa = { .sun_family = AF_UNIX, .sun_path = "control" };

	c->ops = *ops;
	c->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->listener < 0)
		return -errno;
	if (bind(c->listener, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
		listen(c->listener, PL_LAB_CLIENTS_MAX) < 0)
		return -errno;
	return 0;
}

void pl_lab_control_close(struct pl_lab_control *c)
{
	for (unsigned int i = 0; i < PL_LAB_CLIENTS_MAX; i++) {
		if (c->clients[i] >= 0)
			close(c->clients[i]);
		c->clients[i] = -1;
	}
	if (c->listener >= 0)
		close(c->listener);
	c->listener = -1;
}

void pl_lab_control_wait(const struct pl_lab_control *c, struct pollfd *ret)
{
	ret[0] = (struct pollfd){ .fd = c->listener, .events = POLLIN };
	for (unsigned int i = 0; i < PL_LAB_CLIENTS_MAX; i++)
		ret[1 + i] = (struct pollfd){ .fd = c->clients[i], .events = POLLIN };
}

static void answer(int fd, const char *text, int attached)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec v = { (void *)(uintptr_t)text, strlen(text) + 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	if (attached >= 0) {
		struct cmsghdr *c;

		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &attached, sizeof(int));
	}
	/* A client that does not read loses its answer. */
	(void)sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Answers with the text, of any length, in a memfd, or with the error. Frees the text. */
static void answer_text(int fd, struct pl_buf *text, int error, struct pl_diag *diag)
{
	int memory = error < 0 ? -1 : memfd_create("answer", MFD_CLOEXEC);

	if (error < 0 && diag->text[0] == '\0')
		pl_diag_set(diag, "%s", strerrordesc_np(-error));
	if (error < 0)
		answer(fd, diag->text, -1);
	else if (memory < 0 || text->failed ||
		 (text->len > 0 && write(memory, text->data, text->len) != (ssize_t)text->len))
		answer(fd, "no memory for the answer", -1);
	else
		answer(fd, "", memory);
	if (memory >= 0)
		close(memory);
	pl_buf_done(text);
}

/* Sends the text to the client and writes the records into the folder `truth`. */
static void tell_truth(const struct pl_lab_control_ops *ops, int fd)
{
	struct pl_lab_truth_account account = { .text = { 0 } };
	struct pl_diag diag = { .text = "" };
	int r;

	ops->truth(ops->arg, &account);
	r = pl_lab_truth_account_write(&account, "truth");
	if (r < 0)
		pl_diag_set(&diag, "records of the truth: %s", strerrordesc_np(-r));
	answer_text(fd, &account.text, r, &diag);
	pl_lab_truth_account_done(&account);
}

/* Returns the function that serves this request with a text; NULL: this lab has none. */
static pl_lab_control_fn *find_list(const struct pl_lab_control_ops *ops, const char *word)
{
	return strcmp(word, "commands") == 0  ? ops->commands
	       : strcmp(word, "apply") == 0   ? ops->apply
	       : strcmp(word, "traffic") == 0 ? ops->traffic
	       : strcmp(word, "flows") == 0   ? ops->flows
					      : NULL;
}

static void handle(const struct pl_lab_control *c, int fd, const char *const *words, unsigned int n)
{
	const struct pl_lab_control_ops *ops = &c->ops;
	struct pl_diag diag = { .text = "" };
	struct pl_buf text = { 0 };
	int r;

	if (n == 1 && strcmp(words[0], "truth") == 0) {
		tell_truth(ops, fd);
	} else if (n >= 3 && strcmp(words[0], "impair") == 0) {
		r = ops->impair(ops->arg, words[1], words + 2, n - 2, &diag);
		if (r < 0 && diag.text[0] == '\0')
			pl_diag_set(&diag, "%s", strerrordesc_np(-r));
		answer(fd, r < 0 ? diag.text : "", -1);
	} else if (n > 1 && find_list(ops, words[0]) != NULL) {
		r = find_list(ops, words[0])(ops->arg, words + 1, n - 1, &text, &diag);
		answer_text(fd, &text, r, &diag);
	} else {
		answer(fd, "a request that is none", -1);
	}
}

static void serve(const struct pl_lab_control *c, int fd)
{
	char text[PL_LAB_REQUEST_MAX + 1];
	const char *words[WORDS_MAX];
	ssize_t len = recv(fd, text, PL_LAB_REQUEST_MAX, MSG_DONTWAIT | MSG_TRUNC);
	unsigned int n = 0;

	if (len <= 0)
		return;
	if (len > PL_LAB_REQUEST_MAX) {
		answer(fd, "a request that is too long", -1);
		return;
	}
	text[len] = '\0';
	for (size_t at = 0; at < (size_t)len && n < WORDS_MAX; at += strlen(text + at) + 1)
		words[n++] = text + at;
	handle(c, fd, words, n);
}

/* Adds a client; without a free place the one that has been silent longest is closed. */
static void add_client(struct pl_lab_control *c, int fd)
{
	unsigned int i = 0;

	while (i < PL_LAB_CLIENTS_MAX && c->clients[i] >= 0)
		i++;
	if (i == PL_LAB_CLIENTS_MAX) {
		close(c->clients[0]);
		memmove(c->clients, c->clients + 1, --i * sizeof(c->clients[0]));
	}
	c->clients[i] = fd;
}

void pl_lab_control_serve(struct pl_lab_control *c, const struct pollfd *fds)
{
	for (unsigned int i = 0; i < PL_LAB_CLIENTS_MAX; i++) {
		if (c->clients[i] < 0 || fds[1 + i].revents == 0)
			continue;
		serve(c, c->clients[i]);
		close(c->clients[i]);
		c->clients[i] = -1;
	}
	if (fds[0].revents != 0) {
		int fd = accept4(c->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			add_client(c, fd);
	}
}

/* ---- asking ---- */

static int read_attached(int memory, struct pl_buf *out)
{
	struct stat st;
	off_t at = 0;

	if (fstat(memory, &st) < 0 || st.st_size > TRUTH_MAX)
		return -EFBIG;
	while (at < st.st_size) {
		char *room = pl_buf_reserve(out, (size_t)(st.st_size - at));
		ssize_t n = room == NULL ? -1 : pread(memory, room, (size_t)(st.st_size - at), at);

		if (n <= 0)
			return room == NULL ? -ENOMEM : -EIO;
		pl_buf_advance(out, (size_t)n);
		at += n;
	}
	return 0;
}

static int read_answer(int fd, int patience_ms, struct pl_buf *out, struct pl_diag *diag)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char text[sizeof(diag->text)];
	struct iovec v = { text, sizeof(text) - 1 };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const struct cmsghdr *c;
	int memory, r;
	ssize_t n;

	if (poll(&p, 1, patience_ms) <= 0)
		return -ETIMEDOUT;
	n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return n < 0 ? -errno : -ECONNRESET;
	text[n] = '\0';
	if (text[0] != '\0') {
		pl_diag_set(diag, "%s", text);
		return -EINVAL;
	}
	c = CMSG_FIRSTHDR(&m);
	if (c == NULL || c->cmsg_type != SCM_RIGHTS)
		return 0;
	memcpy(&memory, CMSG_DATA(c), sizeof(memory));
	r = read_attached(memory, out);
	close(memory);
	return r;
}

int pl_lab_ask(const struct pl_lab_found *f, const char *const *words, unsigned int n,
	struct pl_buf *out, struct pl_diag *diag)
{
	struct pl_buf text = { 0 };
	char path[512];
	int fd = -1, r = 0;

	for (unsigned int i = 0; i < n; i++)
		pl_buf_add(&text, words[i], strlen(words[i]) + 1);
	if (text.failed || text.len > PL_LAB_REQUEST_MAX || n > WORDS_MAX) {
		pl_diag_set(diag, "too many words at once");
		r = -EINVAL;
	}
	if (r == 0) {
		snprintf(path, sizeof(path), "%s/control", f->folder);
		fd = r = pl_local_connect(path, SOCK_SEQPACKET, 0);
		if (fd >= 0)
			r = send(fd, text.data, text.len, MSG_NOSIGNAL) < 0 ? -errno : 0;
	}
	if (r == 0)
		/* `apply` may wait long for commands; if the lab ends, so does the connection. */
		r = read_answer(fd, strcmp(words[0], "apply") == 0 ? -1 : PATIENCE_MS, out, diag);
	if (fd >= 0)
		close(fd);
	pl_buf_done(&text);
	if (r < 0 && diag != NULL && diag->text[0] == '\0')
		pl_diag_set(diag, "lab '%s' does not answer: %s", f->name, strerrordesc_np(-r));
	return r;
}
