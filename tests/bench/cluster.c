/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the Kafka brokers of benchmarks, and a socket that reads and forgets. */
#include "tests/bench/cluster.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/complain.h"
#include "kafka/writer.h"

#define WAIT_MS 10000

/* Ends with the benchmark, also when that was killed just now. */
static void end_with(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
}

/* ---- the mock cluster's process ---- */

_Noreturn static void be_cluster(pid_t parent, int fd, const char *topic, int partitions)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_mock_cluster_t *mock = NULL;
	char text[256] = "";
	rd_kafka_t *rk;

	end_with(parent);
	rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text));
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (rk != NULL)
		mock = rd_kafka_mock_cluster_new(rk, 1);
	if (mock != NULL && rd_kafka_mock_topic_create(mock, topic, partitions, 1) == 0)
		dprintf(fd, "%s", rd_kafka_mock_cluster_bootstraps(mock));
	else
		_exit(1);
	while (read(fd, text, sizeof(text)) > 0)
		;
	_exit(0);
}

static int start_mock(struct pl_cluster *c, unsigned int partitions)
{
	const pid_t parent = getpid();
	int fds[2];
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	c->pid = fork();
	if (c->pid == 0) {
		close(fds[0]);
		be_cluster(parent, fds[1], c->topic, (int)partitions);
	}
	close(fds[1]);
	c->fd = fds[0];
	if (c->pid < 0) {
		c->pid = 0;
		return -ECHILD;
	}
	n = read(c->fd, c->brokers, sizeof(c->brokers) - 1);
	if (n <= 0)
		return -EIO;
	c->brokers[n] = '\0';
	return 0;
}

/* ---- given brokers ---- */

static int make_topic(struct pl_cluster *c, unsigned int partitions, struct pl_diag *diag)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	const struct pl_kafka_writer_config config = { .uri = uri };
	struct pl_kafka_writer *writer = NULL;
	int r = uri == NULL ? -ENOMEM : pl_cluster_uri(c, uri, "");

	if (r == 0)
		r = pl_kafka_writer_open(&writer, &config, diag);
	if (r == 0)
		r = pl_kafka_writer_topic(writer, c->topic, partitions, WAIT_MS, diag);
	pl_kafka_writer_close(writer);
	free(uri);
	return r;
}

int pl_cluster_open(struct pl_cluster *c, const struct pl_bench_ctx *ctx, const char *name,
	unsigned int partitions)
{
	const char *broker = pl_bench_broker(ctx);
	struct pl_diag diag = { .text = "" };
	int r;

	*c = (struct pl_cluster){ .name = name, .fd = -1 };
	snprintf(c->topic, sizeof(c->topic), "pathline-bench-%s-%d", name, (int)getpid());
	if (broker == NULL) {
		r = start_mock(c, partitions);
	} else {
		snprintf(c->brokers, sizeof(c->brokers), "%s", broker);
		r = make_topic(c, partitions, &diag);
	}
	if (r < 0) {
		pl_complain("benchmark %s: no brokers: %s", name,
			diag.text[0] != '\0' ? diag.text : strerror(-r));
		pl_cluster_close(c);
	}
	return r;
}

void pl_cluster_close(struct pl_cluster *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (c->pid > 0)
		(void)waitpid(c->pid, NULL, 0);
	c->pid = 0;
}

int pl_cluster_uri(const struct pl_cluster *c, struct pl_kafka_uri *ret, const char *query)
{
	struct pl_diag diag = { .text = "" };
	char text[1024];
	int r;

	snprintf(text, sizeof(text), "kafka://%s/%s%s", c->brokers, c->topic, query);
	r = pl_kafka_uri_parse(ret, text, &diag);
	if (r < 0)
		pl_complain("benchmark %s: %s", c->name, diag.text);
	return r;
}

/* ---- the sink ---- */

_Noreturn static void be_sink(pid_t parent, int listener)
{
	static uint8_t bytes[1 << 18];
	int fd;

	/* First: before anything that waits for the benchmark. */
	end_with(parent);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	while (fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0)
		;
	_exit(0);
}

static int listen_on_loopback(struct sockaddr_in *address)
{
	socklen_t bytes = sizeof(*address);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)address, bytes) < 0 || listen(fd, 1) < 0 ||
		getsockname(fd, (struct sockaddr *)address, &bytes) < 0) {
		const int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

int pl_cluster_sink(pid_t *ret_pid)
{
	const pid_t parent = getpid();
	struct sockaddr_in address;
	const int listener = listen_on_loopback(&address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r = 0;

	*ret_pid = 0;
	if (listener >= 0 && fd >= 0)
		*ret_pid = fork();
	if (listener >= 0 && fd >= 0 && *ret_pid == 0) {
		close(fd);
		be_sink(parent, listener);
	}
	if (listener < 0 || fd < 0 || *ret_pid < 0 ||
		connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		r = listener < 0 ? listener : -errno;
	if (listener >= 0)
		close(listener);
	if (r < 0 && fd >= 0)
		close(fd);
	return r < 0 ? r : fd;
}

/* ---- threads ---- */

static uint64_t thread_ns(const char *tid)
{
	char path[300], name[32] = "";
	uint64_t ns = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", tid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fgets(name, sizeof(name), f) == NULL)
		name[0] = '\0';
	fclose(f);
	if (strncmp(name, "rdk:", 4) != 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", tid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%" SCNu64, &ns) != 1)
		ns = 0;
	fclose(f);
	return ns;
}

uint64_t pl_cluster_threads_ns(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	uint64_t sum = 0;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (e->d_name[0] != '.')
			sum += thread_ns(e->d_name);
	}
	if (d != NULL)
		closedir(d);
	return sum;
}
