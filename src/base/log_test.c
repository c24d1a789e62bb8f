/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/test.h"

static void gather(void *arg, enum pl_log_level level, const char *subject, const char *text)
{
	pl_buf_printf(arg, "%d %s: %s\n", (int)level, subject, text);
}

static unsigned int lines(const char *text)
{
	unsigned int n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

static void test_sink(void)
{
	enum pl_log_format format = PL_LOG_AUTO;
	enum pl_log_level level = PL_LOG_ERROR;
	struct pl_buf out;
	char big[3000];

	pl_buf_init(&out);
	pl_buf_str(&out, "");
	pl_log_set_sink(gather, &out);
	pl_info("a", "too quiet");
	streq(out.data, "", "below the level");
	pl_warn("a", "number %d", 5);
	streq(out.data, "1 a: number 5\n");
	pl_buf_reset(&out);
	pl_log_set_level(PL_LOG_DEBUG);
	pl_debug("b", "%s", "x\ny\x1b[1m\xff\xc3\xa4\x7f");
	streq(out.data, "4 b: x\\x0ay\\x1b[1m\\xff\xc3\xa4\\x7f\n", "one clean line");
	pl_buf_reset(&out);
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	pl_info("b", "[%s]", big);
	ok(out.len > 900 && out.len < 1100 && lines(out.data) == 1, "a long one is cut");
	pl_buf_reset(&out);
	memset(big, '\n', sizeof(big) - 1);
	pl_info("b", "<%s>", big);
	ok(out.len > 900 && out.len < 1100 && lines(out.data) == 1, "escapes are cut too");

	pl_log_flush(true);
	pl_buf_reset(&out);
	for (int i = 0; i < 1000; i++)
		pl_error("c", "again %d", i);
	eq(lines(out.data), 10, "ten, then silence");
	pl_error("d", "again %d", 0);
	eq(lines(out.data), 11, "another subject and format is another matter");
	pl_log_flush(false);
	eq(lines(out.data), 11, "the window is not over");
	pl_log_flush(true);
	ok(strstr(out.data, "0 c: 990 more in ") != NULL, "the count");
	ok(strstr(out.data, "like \"again %%d\"") == NULL &&
			strstr(out.data, "like \"again %d\"") != NULL,
		"and of what");
	eq(lines(out.data), 12);
	pl_log_flush(true);
	eq(lines(out.data), 12, "said once");
	pl_log_set_sink(NULL, NULL);
	pl_buf_done(&out);

	eq(pl_log_parse_level("info", &level), 0);
	eq(level, PL_LOG_INFO);
	eq(pl_log_parse_level("INFO", &level), (uint64_t)-EINVAL);
	eq(pl_log_parse_format("logfmt", &format), 0);
	eq(format, PL_LOG_LOGFMT);
	eq(pl_log_parse_format("", &format), (uint64_t)-EINVAL);
}

/* What standard error got while fn ran. */
static char text[8192];

static void capture(void (*fn)(void))
{
	int ends[2], before = dup(STDERR_FILENO);
	ssize_t n;

	if (before < 0 || pipe(ends) != 0)
		abort();
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	fn();
	dup2(before, STDERR_FILENO);
	close(before);
	n = read(ends[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(ends[0]);
}

static void say(void)
{
	pl_warn("udp", "say \"%s\"", "a b");
}

static void say_word(void)
{
	pl_warn("udp", "word");
}

static void test_formats(void)
{
	pl_log_set_format(PL_LOG_AUTO);
	capture(say);
	ok(strncmp(text, "ts=20", 5) == 0, "a pipe gets logfmt: %s", text);
	streq(text + strcspn(text, " "), " level=warning subject=udp msg=\"say \\\"a b\\\"\"\n");
	capture(say_word);
	streq(text + strcspn(text, " "), " level=warning subject=udp msg=word\n");
	pl_log_set_format(PL_LOG_JSON);
	capture(say);
	ok(strncmp(text, "{\"ts\":\"20", 9) == 0 && strlen(text) > 33, "json: %s", text);
	streq(text + 32,
		",\"level\":\"warning\",\"subject\":\"udp\",\"msg\":\"say \\\"a b\\\"\"}\n");
	pl_log_set_format(PL_LOG_TEXT);
	capture(say);
	ok(text[2] == ':' && text[8] == '.', "text: %s", text);
	streq(text + 12, " warning udp: say \"a b\"\n");
	pl_log_set_format(PL_LOG_AUTO);
}

#define FLOOD(i) pl_notice("flood", #i " %s", "0123456789012345678901234567890123456789")

static void say_from_handler(void)
{
	pl_log_from_handler(PL_LOG_ERROR, "sandbox", "plain words");
}

/* The same line as from anywhere else, but for milliseconds. */
static void test_from_handler(void)
{
	static const enum pl_log_format formats[] = { PL_LOG_LOGFMT, PL_LOG_JSON };
	const time_t now = time(NULL);
	char date[32];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:", &tm);
	for (size_t i = 0; i < 2; i++) {
		pl_log_set_format(formats[i]);
		capture(say_from_handler);
		ok(strstr(text, date) != NULL || tm.tm_min == 59, "the time of day: %s", text);
		ok(strstr(text,
			   i == 0 ? " level=error subject=sandbox msg=\"plain words\"\n"
				  : "Z\",\"level\":\"error\",\"subject\":\"sandbox\",\"msg\":\"plain words\"}\n") !=
				NULL,
			"in the form of the log: %s", text);
	}
	pl_log_set_format(PL_LOG_AUTO);
}

static void test_full_pipe(void)
{
	static char sink[1 << 20];
	int ends[2], before = dup(STDERR_FILENO);
	char fill[4096];
	ssize_t n;

	if (before < 0 || pipe(ends) != 0)
		abort();
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	memset(fill, '.', sizeof(fill));
	fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
	while (write(STDERR_FILENO, fill, sizeof(fill)) > 0)
		;
	fcntl(STDERR_FILENO, F_SETFL, 0);
	FLOOD(1);
	FLOOD(2);
	FLOOD(3);
	n = read(ends[0], sink, sizeof(sink));
	FLOOD(4);
	dup2(before, STDERR_FILENO);
	close(before);
	ok(n > 4096, "three lines into a full pipe end");
	n = read(ends[0], sink, sizeof(sink) - 1);
	sink[n > 0 ? n : 0] = '\0';
	ok(strstr(sink, "3 lines lost") != NULL && strstr(sink, "4 0123") != NULL,
		"the count is told once there is room");
	close(ends[0]);
}

static void *chatter(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2000; i++) {
		pl_warn("thread", "line %d", i);
		pl_notice("thread", "other %d", i);
		if (i % 100 == 0) {
			pl_log_set_level(i % 200 == 0 ? PL_LOG_NOTICE : PL_LOG_DEBUG);
			pl_log_flush(i % 500 == 0);
		}
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[4];
	struct pl_buf out;

	pl_buf_init(&out);
	pl_log_set_sink(gather, &out);
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&threads[i], NULL, chatter, NULL) != 0)
			abort();
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	pl_log_flush(true);
	pl_log_set_sink(NULL, NULL);
	ok(!out.failed && lines(out.data) > 20, "four threads at once: %u lines", lines(out.data));
	pl_buf_done(&out);
}

int main(void)
{
	test_sink();
	test_formats();
	test_from_handler();
	test_full_pipe();
	test_threads();
	return pl_test_done();
}
