/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the processes between the wire and the alert, reads their counters, and ends them. */
#include "tests/bench/alert_chain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/bench/alert_receiver.h"
#include "tests/bench/bench.h"

#define READY_NS UINT64_C(20000000000)
#define END_NS   UINT64_C(15000000000)
#define PAUSE_NS 20000000
#define PAGE_MAX ((size_t)1 << 20)

/* ---- processes ---- */

_Noreturn static void be_pathline(pid_t parent, const char *config, const char *log)
{
	char program[] = "pathline", run[] = "run", c[] = "-c", path[128];
	char *const args[] = { program, run, c, path, NULL };
	const int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	snprintf(path, sizeof(path), "%s", config);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	if (fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0)
		(void)execvp(pl_bench_program(), args);
	_exit(127);
}

static int start(const struct pl_alert_chain *c, const char *name, const char *text, pid_t *ret)
{
	const pid_t parent = getpid();
	char config[96], log[96];
	int r;

	snprintf(config, sizeof(config), "%s/%s.yaml", c->dir, name);
	snprintf(log, sizeof(log), "%s/%s.log", c->dir, name);
	r = pl_file_replace(config, text, strlen(text), 0600);
	if (r < 0)
		return r;
	*ret = fork();
	if (*ret == 0)
		be_pathline(parent, config, log);
	if (*ret < 0) {
		*ret = 0;
		return -EAGAIN;
	}
	return 0;
}

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

/* Ends in order; one that does not is killed. */
static void end(pid_t *pid)
{
	const uint64_t until = pl_clock_mono_ns() + END_NS;

	if (*pid <= 0)
		return;
	(void)kill(*pid, SIGTERM);
	while (waitpid(*pid, NULL, WNOHANG) == 0) {
		if (pl_clock_mono_ns() > until)
			(void)kill(*pid, SIGKILL);
		pause_a_little();
	}
	*pid = 0;
}

static void remove_files(struct pl_alert_chain *c)
{
	static const char *const names[] = { "query.yaml", "query.log", "tap.yaml", "tap.log" };
	char path[128];

	for (size_t i = 0; c->dir[0] != '\0' && i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", c->dir, names[i]);
		(void)unlink(path);
	}
	if (c->dir[0] != '\0')
		(void)rmdir(c->dir);
	c->dir[0] = '\0';
}

/* The last line that a process logged says why it is not there. */
static void say_why(const struct pl_alert_chain *c, const char *name, struct pl_diag *diag)
{
	char path[96], line[256] = "", last[256] = "nothing was logged";
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.log", c->dir, name);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		snprintf(last, sizeof(last), "%s", line);
	}
	if (f != NULL)
		fclose(f);
	pl_diag_set(diag, "pathline run did not start: %s", last);
}

/* ---- the page ---- */

static int ask(uint16_t port, char *page)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
	const struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t have = 0;
	ssize_t n = -1;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
		send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0) {
		while (have < PAGE_MAX && (n = read(fd, page + have, PAGE_MAX - have)) > 0)
			have += (size_t)n;
	}
	close(fd);
	page[have] = '\0';
	return have > 0 && n == 0 ? 0 : -ECONNREFUSED;
}

int pl_alert_chain_records(const struct pl_alert_chain *c, uint64_t *ret)
{
	static const char name[] = "\npathline_query_records_total{query=\"first\"} ";
	char *page = malloc(PAGE_MAX + 1), *at = NULL;
	int r = page == NULL ? -ENOMEM : ask(c->web, page);

	if (r == 0) {
		at = strstr(page, name);
		r = at == NULL ? -ENODATA : 0;
	}
	if (r == 0)
		*ret = (uint64_t)strtod(at + sizeof(name) - 1, NULL);
	free(page);
	return r;
}

static int await(struct pl_alert_chain *c, struct pl_diag *diag)
{
	const uint64_t until = pl_clock_mono_ns() + READY_NS;
	uint64_t records;

	while (pl_alert_chain_records(c, &records) < 0) {
		const char *gone = NULL;

		if (c->tap > 0 && waitpid(c->tap, NULL, WNOHANG) == c->tap) {
			c->tap = 0;
			gone = "tap";
		} else if (waitpid(c->query, NULL, WNOHANG) == c->query) {
			c->query = 0;
			gone = "query";
		} else if (pl_clock_mono_ns() > until) {
			gone = "query";
		}
		if (gone != NULL) {
			say_why(c, gone, diag);
			return -ESRCH;
		}
		pause_a_little();
	}
	return 0;
}

/* ---- configurations ---- */

#define ASKS                                                                                       \
	"SELECT dst, count(distinct dport) AS n, max(ts) AS at FROM packets TUMBLE(ts, %s) "       \
	"GROUP BY dst HAVING n >= 2 EMIT %s"

static int tap_text(char **ret, const char *tapped, const char *topic)
{
	return asprintf(ret,
		       "taps:\n  - name: bench\n    sources: [\"packet:%s\"]\n    to: [\"%s\"]\n"
		       "web:\n  listen: off\n",
		       tapped, topic) < 0
		       ? -ENOMEM
		       : 0;
}

static int query_text(char **ret, const struct pl_alert_chain *c, const char *tapped,
	const char *topic, uint16_t webhook)
{
	char taps[128] = "";

	if (topic == NULL)
		snprintf(taps, sizeof(taps),
			"taps:\n  - name: bench\n    sources: [\"packet:%s\"]\n", tapped);
	return asprintf(ret,
		       "%squeries:\n"
		       "  - name: first\n    query: \"" ASKS "\"\n"
		       "    from: %s\n    to: [events]\n    value: at\n"
		       "  - name: window\n    query: \"" ASKS "\"\n"
		       "    from: %s\n    to: [events]\n    value: at\n"
		       "outputs:\n  - {name: alerts, type: webhook, form: receiver, "
		       "url: \"http://127.0.0.1:%u\", batch: {age: 1ms}}\n"
		       "web:\n  listen: 127.0.0.1:%u\n",
		       taps, "1s", "FIRST", topic == NULL ? "bench" : topic, "100ms", "FINAL",
		       topic == NULL ? "bench" : topic, webhook, c->web) < 0
		       ? -ENOMEM
		       : 0;
}

/* A port that was free a moment ago. */
static int choose_port(uint16_t *ret)
{
	const int fd = pl_alert_listen(ret);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int pl_alert_chain_open(struct pl_alert_chain *c, const char *tapped, const char *topic,
	uint16_t webhook, struct pl_diag *diag)
{
	char *text = NULL;
	int r;

	*c = (struct pl_alert_chain){ .dir = "/tmp/pathline-bench-XXXXXX" };
	if (mkdtemp(c->dir) == NULL) {
		c->dir[0] = '\0';
		return -errno;
	}
	r = choose_port(&c->web);
	if (r == 0)
		r = query_text(&text, c, tapped, topic, webhook);
	if (r == 0)
		r = start(c, "query", text, &c->query);
	free(text);
	text = NULL;
	if (r == 0 && topic != NULL)
		r = tap_text(&text, tapped, topic);
	if (r == 0 && topic != NULL)
		r = start(c, "tap", text, &c->tap);
	free(text);
	if (r == 0)
		r = await(c, diag);
	/* Its processes have read and opened what they need, and a benchmark may be killed. */
	remove_files(c);
	return r;
}

void pl_alert_chain_close(struct pl_alert_chain *c)
{
	end(&c->tap);
	end(&c->query);
	remove_files(c);
}
