/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory server as a service: region files that peers write over RoCE, by the software NIC or
 * an RDMA NIC (remote/collector.h). */
#pragma once

#include "chain/collect_epochs.h"
#include "chain/collect_save.h"
#include "chain/collect_workers.h"
#include "chain/region_watch.h"
#include "remote/collector.h"
#include "runtime/runtime.h"

struct pl_memory_server_options {
	struct pl_collector_options collector; /* without `opened`, `signal`, `arg` and `rights` */
	uint64_t epoch_ns;
	const char *keep_epochs; /* a folder; NULL: old epochs are not kept */
	const char *save;        /* a folder for copies of the regions; NULL: none */
	uint64_t save_every_ns;
	bool on_immediate; /* print values that writes with immediate announce */
	unsigned int workers;
	/* Called after writes with immediate. NULL: none. */
	void (*written)(void *arg);
	void *written_arg;
	struct pl_print print; /* output of values */
};

struct pl_memory_server {
	const struct pl_memory_server_options *o;
	struct pl_collector_options options; /* options of the collector */
	struct pl_collector *collector;
	struct pl_collect_workers_arg workers_arg;
	struct pl_workers *workers;   /* NULL: none */
	struct pl_collect_save *save; /* NULL: none */
	struct pl_collect_epochs_arg epochs_arg;
	struct pl_epochs *epochs; /* NULL: none */
	struct pl_region_watch watch;
	struct pl_region_watched watched[PL_COLLECTOR_STORES_MAX];
	bool began; /* everything was open */
	bool down;  /* the interface is down */
	/* After the end of the threads. */
	bool threads_ended;
	struct pl_workers_stats workers_stats;
	struct pl_collect_save_stats save_stats;
	struct pl_condition_board conditions;
};

/* For a struct pl_memory_server, zeroed except `o`, which stays until it is closed. */
extern const struct pl_service_ops pl_memory_service;

/* Returns the first error of closing, or 0. */
int pl_memory_server_close(struct pl_memory_server *m);
