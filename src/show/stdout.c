/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes to standard output; after a signal to end it does not wait for ever. */
#include "show/stdout.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "runtime/say.h"

enum { LOOK_MS = 100 };
#define PATIENCE_NS (UINT64_C(2) * 1000000000u)

static void print(void *arg, const char *text, size_t n)
{
	(void)arg;
	if (n > 0)
		fwrite(text, 1, n, stdout);
	fflush(stdout);
}

static void tell(void *arg, const char *text, size_t n)
{
	(void)arg;
	fflush(stdout);
	if (n > 0)
		fwrite(text, 1, n, stderr);
}

const struct pl_print pl_stdout_print = { .text = print };
const struct pl_print pl_stderr_print = { .text = tell };

static FILE *terminal;
static _Atomic bool hurried, given_up;

void pl_stdout_hurry(void)
{
	atomic_store_explicit(&hurried, true, memory_order_relaxed);
}

bool pl_stdout_given_up(void)
{
	return atomic_load_explicit(&given_up, memory_order_relaxed);
}

/* Returns true after pl_stdout_hurry, or when a signal to end is pending. */
static bool must_end(void)
{
	sigset_t pending;

	if (atomic_load_explicit(&hurried, memory_order_relaxed))
		return true;
	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

/* Writes at least a byte and returns how many; -ECANCELED when writing was given up; -errno. */
static ssize_t put_some(const char *text, size_t n)
{
	uint64_t since_ns = 0;
	struct stat st;

	/* Files take any length. To others it writes at once as much as a pipe that is ready takes
	 * without waiting. */
	if (fstat(STDOUT_FILENO, &st) != 0 || !S_ISREG(st.st_mode))
		n = n < PIPE_BUF ? n : PIPE_BUF;
	for (;;) {
		struct pollfd fd = { .fd = STDOUT_FILENO, .events = POLLOUT };
		uint64_t now_ns;
		ssize_t r;

		if (pl_stdout_given_up())
			return -ECANCELED;
		if (poll(&fd, 1, LOOK_MS) > 0) {
			r = write(STDOUT_FILENO, text, n);
			if (r >= 0 || (errno != EINTR && errno != EAGAIN))
				return r >= 0 ? r : -errno;
		}
		if (!must_end())
			continue;
		now_ns = pl_clock_mono_ns();
		if (since_ns == 0)
			since_ns = now_ns;
		else if (now_ns - since_ns >= PATIENCE_NS)
			atomic_store_explicit(&given_up, true, memory_order_relaxed);
	}
}

static void write_text(const char *text, size_t n, bool *gone, int *error)
{
	while (n > 0 && !*gone && *error == 0) {
		ssize_t r = put_some(text, n);

		if (r >= 0) {
			text += r;
			n -= (size_t)r;
		} else if (r == -EPIPE || r == -ECANCELED) {
			*gone = true;
		} else {
			*error = (int)r;
		}
	}
}

int pl_stdout_all(struct pl_buf *out)
{
	/* The data of an empty buffer may be NULL. */
	bool good = !out->failed &&
		    (out->len == 0 || fwrite(out->data, 1, out->len, stdout) == out->len) &&
		    fflush(stdout) == 0;

	if (!good)
		pl_complain("cannot write to standard output");
	pl_buf_done(out);
	return good ? PL_EXIT_OK : PL_EXIT_FAILED;
}

/* Writes for the stream; returns less than n, with errno, after an error. */
static ssize_t put_cookie(void *cookie, const char *text, size_t n)
{
	size_t done = 0;

	(void)cookie;
	while (done < n) {
		ssize_t r = put_some(text + done, n - done);

		if (r < 0) {
			errno = (int)-r;
			return done > 0 ? (ssize_t)done : 0;
		}
		done += (size_t)r;
	}
	return (ssize_t)done;
}

FILE *pl_stdout_open(void)
{
	const cookie_io_functions_t io = { .write = put_cookie };
	FILE *stream = fopencookie(NULL, "w", io);

	terminal = stdout;
	/* Without memory for a stream, the present one stays. */
	if (stream != NULL) {
		(void)setvbuf(stream, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, 1 << 16);
		stdout = stream;
	}
	return terminal;
}

FILE *pl_stdout_terminal(void)
{
	return terminal != NULL ? terminal : stdout;
}

void pl_stdout_flush(struct pl_buf *buf, bool *gone, int *error)
{
	if (buf->failed && *error == 0)
		*error = -ENOMEM;
	write_text(buf->data, buf->len, gone, error);
	pl_buf_reset(buf);
}
