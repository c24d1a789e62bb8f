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
	const char *keep_epochs; /* a folder; NULL: they are not kept */
	const char *save;        /* a folder for copies of the regions; NULL: none */
	uint64_t save_every_ns;
	bool on_immediate; /* print what writes with immediate announce */
	unsigned int workers;
	/* Called after writes with immediate. NULL: nobody is told. */
	void (*written)(void *arg);
	void *written_arg;
	struct pl_print print; /* where to */
};

struct pl_memory_server {
	const struct pl_memory_server_options *o;
	struct pl_collector_options options; /* as the collector has it */
	struct pl_collector *collector;
	struct pl_collect_workers_arg workers_arg;
	struct pl_workers *workers;   /* NULL: none */
	struct pl_collect_save *save; /* NULL: none */
	struct pl_collect_epochs_arg epochs_arg;
	struct pl_epochs *epochs; /* NULL: none */
	struct pl_region_watch watch;
	struct pl_region_watched watched[PL_COLLECTOR_STORES_MAX];
	const struct pl_service_opening *opening; /* while it opens */
	bool began;                               /* it was open, all of it */
	bool down;                                /* the interface */
	/* After the end of their threads. */
	bool threads_ended;
	struct pl_workers_stats workers_stats;
	struct pl_collect_save_stats save_stats;
	struct pl_condition_board conditions;
};

/* Of a struct pl_memory_server, zeroed but for `o`, which stays until it is closed. */
extern const struct pl_service_ops pl_memory_service;

/* The error of what could not be brought to its end, or 0. */
int pl_memory_server_close(struct pl_memory_server *m);
