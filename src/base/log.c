/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes log lines and passes them to the sink. */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/utf8.h"

#define TEXT_MAX       1000
#define SHOWN_MAX      10
#define WINDOW_NS      10000000000u
#define SLOTS          64
#define PROBES         4
#define WAIT_MS        100
#define LINE_MAX_BYTES 4096 /* PIPE_BUF: such a write is not split, and fits if poll says so */

static const char *const level_names[] = { "error", "warning", "notice", "info", "debug" };
static const char *const format_names[] = { "auto", "text", "logfmt", "json" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One format string and subject seen within the last window. */
struct repeat {
	const char *fmt; /* NULL: free */
	const char *subject;
	enum pl_log_level level;
	uint64_t start_ns;
	uint64_t seen;
	uint64_t hidden;
};

/* Read before the lock: a line below the level costs one load. Relaxed: a change of level need not
 * be ordered with anything. */
static _Atomic int max_level = PL_LOG_NOTICE;
static _Atomic int format = PL_LOG_AUTO;

/* The lock protects the rest. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pl_log_sink *sink_fn;
static void *sink_arg;
static struct repeat repeats[SLOTS];
static uint64_t lost_unsaid;
static bool stuck; /* the last line found no room: do not wait again */

void pl_log_set_level(enum pl_log_level level)
{
	atomic_store_explicit(&max_level, (int)level, memory_order_relaxed);
}

void pl_log_set_format(enum pl_log_format f)
{
	atomic_store_explicit(&format, (int)f, memory_order_relaxed);
}

void pl_log_set_sink(pl_log_sink *sink, void *arg)
{
	pthread_mutex_lock(&lock);
	sink_fn = sink;
	sink_arg = arg;
	pthread_mutex_unlock(&lock);
}

static int find(const char *text, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(text, names[i]) == 0)
			return (int)i;
	}
	return -EINVAL;
}

int pl_log_parse_level(const char *text, enum pl_log_level *ret)
{
	int i = find(text, level_names, COUNT(level_names));

	if (i < 0)
		return i;
	*ret = (enum pl_log_level)i;
	return 0;
}

int pl_log_parse_format(const char *text, enum pl_log_format *ret)
{
	int i = find(text, format_names, COUNT(format_names));

	if (i < 0)
		return i;
	*ret = (enum pl_log_format)i;
	return 0;
}

/* Makes one line of clean UTF-8: bytes that could move a cursor or forge a line are written as
 * \xNN. */
static void clean(char *dst, size_t cap, const char *text)
{
	size_t n = strlen(text), used = 0;

	while (n > 0) {
		size_t len;
		uint32_t cp;
		bool good = pl_utf8_next(text, n, &len, &cp);

		if (good && cp >= 0x20 && (cp < 0x7f || cp >= 0xa0)) {
			if (used + len >= cap)
				break;
			memcpy(dst + used, text, len);
			used += len;
		} else {
			if (used + 4 * len >= cap)
				break;
			for (size_t i = 0; i < len; i++)
				used += (size_t)snprintf(
					dst + used, cap - used, "\\x%02x", (unsigned char)text[i]);
		}
		text += len;
		n -= len;
	}
	dst[used] = '\0';
}

static void add_time(struct pl_buf *out, uint64_t now_ns, bool local)
{
	time_t s = (time_t)(now_ns / 1000000000);
	unsigned int ms = (unsigned int)(now_ns / 1000000 % 1000);
	struct tm tm;

	if (local) {
		localtime_r(&s, &tm);
		pl_buf_printf(out, "%02d:%02d:%02d.%03u", tm.tm_hour, tm.tm_min, tm.tm_sec, ms);
		return;
	}
	gmtime_r(&s, &tm);
	pl_buf_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900, tm.tm_mon + 1,
		tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ms);
}

/* Adds a value in logfmt: quoted as a JSON string unless it is one plain word. */
static void add_value(struct pl_buf *out, const char *text)
{
	struct pl_json json;

	if (text[0] != '\0' && strpbrk(text, " \"=\\") == NULL) {
		pl_buf_str(out, text);
		return;
	}
	pl_json_init(&json, out);
	pl_json_str(&json, text);
}

/* Format in use, with auto decided. */
static enum pl_log_format present_format(void)
{
	enum pl_log_format f =
		(enum pl_log_format)atomic_load_explicit(&format, memory_order_relaxed);

	if (f == PL_LOG_AUTO)
		f = isatty(STDERR_FILENO) ? PL_LOG_TEXT : PL_LOG_LOGFMT;
	return f;
}

static void add_line(
	struct pl_buf *out, enum pl_log_level level, const char *subject, const char *text)
{
	uint64_t now_ns = pl_clock_real_ns();
	enum pl_log_format f = present_format();
	struct pl_json json;

	switch (f) {
	case PL_LOG_JSON:
		pl_json_init(&json, out);
		pl_json_object(&json);
		pl_json_key(&json, "ts");
		pl_buf_chr(out, '"');
		add_time(out, now_ns, false);
		pl_buf_chr(out, '"');
		json.after_key = false;
		pl_json_text(&json, "level", level_names[level]);
		pl_json_text(&json, "subject", subject);
		pl_json_text(&json, "msg", text);
		pl_json_object_end(&json);
		break;
	case PL_LOG_LOGFMT:
		pl_buf_str(out, "ts=");
		add_time(out, now_ns, false);
		pl_buf_printf(out, " level=%s subject=", level_names[level]);
		add_value(out, subject);
		pl_buf_str(out, " msg=");
		add_value(out, text);
		break;
	case PL_LOG_AUTO:
	case PL_LOG_TEXT:
		add_time(out, now_ns, true);
		pl_buf_printf(out, " %-7s %s: %s", level_names[level], subject, text);
		break;
	}
	pl_buf_chr(out, '\n');
}

/* Writes a line after poll, not with O_NONBLOCK, which would change the file for every process that
 * shares it. */
static bool write_line(const struct pl_buf *line)
{
	struct pollfd wait = { .fd = STDERR_FILENO, .events = POLLOUT };
	ssize_t n;

	if (line->failed)
		return false;
	if (poll(&wait, 1, stuck ? 0 : WAIT_MS) != 1 || (wait.revents & POLLOUT) == 0)
		return false;
	do {
		n = write(STDERR_FILENO, line->data, line->len);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)line->len;
}

/* Writes a line. Called with the lock. */
static void emit(enum pl_log_level level, const char *subject, const char *text)
{
	struct pl_buf line;
	char note[64];

	if (sink_fn != NULL) {
		sink_fn(sink_arg, level, subject, text);
		return;
	}
	pl_buf_init(&line);
	line.limit = LINE_MAX_BYTES;
	if (lost_unsaid > 0) {
		snprintf(note, sizeof(note), "%llu lines lost: standard error was full",
			(unsigned long long)lost_unsaid);
		add_line(&line, PL_LOG_WARNING, "log", note);
	}
	add_line(&line, level, subject, text);
	stuck = !write_line(&line);
	lost_unsaid = stuck ? lost_unsaid + 1 : 0;
	pl_buf_done(&line);
}

/* Writes the count that a slot holds, and frees the slot. Called with the lock. */
static void close_repeat(struct repeat *r, uint64_t now_ns)
{
	char text[TEXT_MAX];

	if (r->fmt != NULL && r->hidden > 0) {
		snprintf(text, sizeof(text), "%llu more in %llu s like \"%s\"",
			(unsigned long long)r->hidden,
			(unsigned long long)((now_ns - r->start_ns + 999999999) / 1000000000),
			r->fmt);
		emit(r->level, r->subject, text);
	}
	*r = (struct repeat){ 0 };
}

/* True when this line is to be shown. Called with the lock. */
static bool admit(enum pl_log_level level, const char *subject, const char *fmt, uint64_t now_ns)
{
	size_t at = pl_hash_mix((uintptr_t)fmt, (uintptr_t)subject) % SLOTS;
	struct repeat *r = NULL, *oldest = &repeats[at];

	for (size_t i = 0; i < PROBES && r == NULL; i++) {
		struct repeat *slot = &repeats[(at + i) % SLOTS];

		if (slot->fmt == fmt && slot->subject == subject)
			r = slot;
		else if (slot->start_ns < oldest->start_ns)
			oldest = slot;
	}
	if (r != NULL && now_ns - r->start_ns < WINDOW_NS) {
		if (r->seen++ < SHOWN_MAX)
			return true;
		r->hidden++;
		return false;
	}
	if (r == NULL)
		r = oldest;
	close_repeat(r, now_ns);
	*r = (struct repeat){ fmt, subject, level, now_ns, 1, 0 };
	return true;
}

void pl_log_v(enum pl_log_level level, const char *subject, const char *fmt, va_list ap)
{
	char raw[TEXT_MAX], text[TEXT_MAX];

	if ((int)level > atomic_load_explicit(&max_level, memory_order_relaxed))
		return;
	pthread_mutex_lock(&lock);
	if (admit(level, subject, fmt, pl_clock_mono_ns())) {
		vsnprintf(raw, sizeof(raw), fmt, ap);
		clean(text, sizeof(text), raw);
		emit(level, subject, text);
	}
	pthread_mutex_unlock(&lock);
}

void pl_log(enum pl_log_level level, const char *subject, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pl_log_v(level, subject, fmt, ap);
	va_end(ap);
}

/* ---- from a signal handler ---- */

struct raw_line {
	char text[512];
	size_t len;
};

static void raw_add(struct raw_line *l, const char *text)
{
	while (*text != '\0' && l->len < sizeof(l->text) - 1)
		l->text[l->len++] = *text++;
}

static void raw_number(struct raw_line *l, uint64_t n, unsigned int digits)
{
	char text[24];
	size_t at = sizeof(text) - 1;

	text[at] = '\0';
	for (; (n > 0 || digits > 0) && at > 0; n /= 10) {
		text[--at] = (char)('0' + n % 10);
		digits -= digits > 0;
	}
	raw_add(l, text + at);
}

/* The date by arithmetic, in years that begin in March: gmtime_r may take a lock. */
static void raw_time(struct raw_line *l, uint64_t now_ns)
{
	const uint64_t s = now_ns / 1000000000, days = s / 86400 + 719468;
	const uint64_t era = days / 146097, doe = days % 146097;
	const uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	const uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
	const uint64_t month = mp < 10 ? mp + 3 : mp - 9;

	raw_number(l, yoe + era * 400 + (month <= 2), 4);
	raw_add(l, "-");
	raw_number(l, month, 2);
	raw_add(l, "-");
	raw_number(l, doy - (153 * mp + 2) / 5 + 1, 2);
	raw_add(l, "T");
	raw_number(l, s / 3600 % 24, 2);
	raw_add(l, ":");
	raw_number(l, s / 60 % 60, 2);
	raw_add(l, ":");
	raw_number(l, s % 60, 2);
	raw_add(l, ".");
	raw_number(l, now_ns / 1000000 % 1000, 3);
	raw_add(l, "Z");
}

void pl_log_from_handler(enum pl_log_level level, const char *subject, const char *text)
{
	static const char *const frames[][5] = {
		[PL_LOG_JSON] = { "{\"ts\":\"", "\",\"level\":\"", "\",\"subject\":\"",
			"\",\"msg\":\"", "\"}\n" },
		[PL_LOG_LOGFMT] = { "ts=", " level=", " subject=", " msg=\"", "\"\n" },
		[PL_LOG_TEXT] = { "", " ", " ", ": ", "\n" },
	};
	const char *const *frame = frames[present_format()];
	struct raw_line line = { .len = 0 };

	raw_add(&line, frame[0]);
	raw_time(&line, pl_clock_real_ns());
	raw_add(&line, frame[1]);
	raw_add(&line, level_names[level]);
	raw_add(&line, frame[2]);
	raw_add(&line, subject);
	raw_add(&line, frame[3]);
	raw_add(&line, text);
	raw_add(&line, frame[4]);
	(void)!write(STDERR_FILENO, line.text, line.len);
}

void pl_log_flush(bool all)
{
	uint64_t now_ns = pl_clock_mono_ns();

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < SLOTS; i++) {
		if (repeats[i].fmt != NULL && (all || now_ns - repeats[i].start_ns >= WINDOW_NS))
			close_repeat(&repeats[i], now_ns);
	}
	pthread_mutex_unlock(&lock);
}
