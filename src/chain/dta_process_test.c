/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes are this program itself, with the word behind its name saying what it does. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "chain/dta_process.h"

/* ---- as a part ---- */

static volatile sig_atomic_t asked, told;

static void on_signal(int signo)
{
	if (signo == SIGUSR1)
		asked = 1;
	else
		told = 1;
}

static int talk(void)
{
	unsigned int n = 0;

	signal(SIGUSR1, on_signal);
	signal(SIGTERM, on_signal);
	fprintf(stderr, "beginning\nI am ready now\nand on\n");
	while (told == 0) {
		if (asked != 0) {
			asked = 0;
			printf("{\"answer\":%u}\n", ++n);
			fflush(stdout);
		}
		usleep(1000);
	}
	fprintf(stderr, "no end of line");
	printf("{\"last\":1}\n");
	return 3;
}

/* A line longer than is kept, and a megabyte and more without an end of line. */
static int flood(void)
{
	for (int i = 0; i < 2000; i++)
		fputc('x', stderr);
	fputs("\nready\n", stderr);
	for (int i = 0; i < 3 << 20; i++)
		putchar('y');
	putchar('\n');
	return 0;
}

static int act(const char *word)
{
	if (strcmp(word, "talk") == 0)
		return talk();
	if (strcmp(word, "flood") == 0)
		return flood();
	if (strcmp(word, "deaf") == 0) { /* asked before it has a handler: it lives on */
		char byte;

		(void)!read(atoi(getenv("GATE")), &byte, 1);
		fprintf(stderr, "ready\n");
		return 0;
	}
	raise(SIGKILL);
	return 0;
}

/* ---- the tests ---- */

static bool wait_for(struct pl_dta_process *p, bool (*what)(const struct pl_dta_process *p))
{
	const uint64_t end_ns = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;

	while (!what(p) && pl_clock_mono_ns() < end_ns)
		pl_dta_process_pump(p, 1, 50, false);
	return what(p);
}

static bool is_ready(const struct pl_dta_process *p)
{
	return p->is_ready;
}

static bool has_ended(const struct pl_dta_process *p)
{
	return p->ended;
}

static struct pl_dta_process start(const char *word, const char *ready)
{
	const char *argv[] = { word, NULL };
	struct pl_dta_process p = { .role = "" };
	struct pl_diag diag = { .text = "" };

	ok(pl_dta_process_start(&p, word, argv, -1, ready, &diag) == 0, "%s: %s", word, diag.text);
	return p;
}

static void test_talk(void)
{
	struct pl_dta_process p = start("talk", "ready");
	char status[32];

	ok(!p.is_ready && p.pid > 0);
	ok(wait_for(&p, is_ready), "it says so");
	streq(p.said, "I am ready now");
	for (int i = 1; i <= 3; i++) {
		char want[32];

		ok(pl_dta_process_ask(&p) && !pl_dta_process_answered(&p), "asked");
		ok(wait_for(&p, pl_dta_process_answered), "and answered");
		snprintf(want, sizeof(want), "{\"answer\":%d}", i);
		streq(p.text.data, want, "the last line, whole");
	}
	pl_dta_process_stop(&p);
	ok(wait_for(&p, has_ended) && p.pid == 0, "it ends when it is asked to");
	streq(p.last, "no end of line");
	streq(p.text.data, "{\"last\":1}");
	pl_dta_process_status(&p, status);
	streq(status, "exit code 3");
	ok(!pl_dta_process_ask(&p), "who ended is not asked");
	pl_dta_process_done(&p);
}

static void test_flood(void)
{
	struct pl_dta_process p = start("flood", "ready");

	ok(wait_for(&p, has_ended), "it is read to its end");
	ok(p.is_ready && strcmp(p.said, "ready") == 0, "a long line hides no other");
	ok(p.text.len > 0 && p.text.len <= 1u << 20, "what is kept is bounded: %zu", p.text.len);
	pl_dta_process_done(&p);
}

static void test_ends(void)
{
	struct pl_dta_process p = start("die", NULL);
	char status[32], number[16];
	int gate[2];

	ok(p.is_ready, "nothing to wait for");
	ok(wait_for(&p, has_ended));
	pl_dta_process_status(&p, status);
	streq(status, "signal 9");
	pl_dta_process_done(&p);

	if (pipe(gate) < 0)
		abort();
	snprintf(number, sizeof(number), "%d", gate[0]);
	setenv("GATE", number, 1);
	p = start("deaf", "ready");
	for (int i = 0; i < 5; i++) {
		(void)pl_dta_process_ask(&p);
		pl_dta_process_pump(&p, 1, 10, false);
	}
	eq(write(gate[1], "x", 1), 1);
	ok(wait_for(&p, has_ended) && p.is_ready, "asked too early, it lives on");
	pl_dta_process_status(&p, status);
	streq(status, "exit code 0");
	close(gate[0]);
	close(gate[1]);
	pl_dta_process_done(&p);

	p = start("talk", "ready");
	pl_dta_process_done(&p);
	ok(p.pid == 0 && waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "nobody is left");
}

/* What is not started, or not yet, is nobody's business. */
static void test_refused(void)
{
	const char *many[200];
	struct pl_dta_process p[2] = { { .role = "" } };
	struct pl_diag diag = { .text = "" };

	for (size_t i = 0; i < 199; i++)
		many[i] = "x";
	many[199] = NULL;
	ok(pl_dta_process_start(&p[0], "x", many, -1, NULL, &diag) == -E2BIG && p[0].pid == 0,
		"too many words: %s", diag.text);
	pl_dta_process_pump(p, 2, 1, false);
	pl_dta_process_done(&p[0]);
	pl_dta_process_done(&p[1]);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return act(argv[1]);
	test_talk();
	test_flood();
	test_ends();
	test_refused();
	return pl_test_done();
}
