/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brokers of benchmarks: those of --broker, or librdkafka's own cluster of one broker, which keeps
 * what it is sent in memory (5 MB a partition). It runs in a process of its own, so that its
 * processor time is in no figure, and ends with this one. And a socket whose peer, another process,
 * reads and forgets: the least that sending records costs.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "kafka/uri.h"
#include "tests/bench/bench.h"

struct pl_cluster {
	const char *name; /* of the benchmark, for complaints */
	char brokers[256];
	char topic[64];
	pid_t pid; /* 0: not ours */
	int fd;    /* its end tells the cluster to end; -1: none */
};

/* Brokers with a topic of so many partitions, in the thread's network namespace. -errno, said so. */
int pl_cluster_open(struct pl_cluster *c, const struct pl_bench_ctx *ctx, const char *name,
	unsigned int partitions);
void pl_cluster_close(struct pl_cluster *c);

/* The topic's URI with a query ("?records=1024"). -errno, said so. */
int pl_cluster_uri(const struct pl_cluster *c, struct pl_kafka_uri *ret, const char *query);

/* A connected socket on loopback; *ret_pid ends when it is closed. -errno. */
int pl_cluster_sink(pid_t *ret_pid);

/* Processor time of librdkafka's threads in this process. */
uint64_t pl_cluster_threads_ns(void);
