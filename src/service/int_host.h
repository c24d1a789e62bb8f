/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host's INT source or sink as a service: the program in the kernel does the work, the service
 * supervises it and, for a sink, sends the reports.
 */
#pragma once

#include "base/stats.h"
#include "hostint/hostint.h"
#include "hostint/reporter.h"
#include "netio/port.h"
#include "runtime/runtime.h"

#define PL_INT_HOST_TO_MAX 8

struct pl_int_host_options {
	struct pl_hostint_options kernel; /* its rights and rules are set at opening */
	struct pl_tap_rules rules;
	const char *rules_file; /* file of more rules, read again by a reload; NULL: none */
	uint8_t hw_id;
	const char *const *to; /* sink: collectors, udp://HOST:PORT */
	size_t n_to;
	/* sink: gets every datagram, too; NULL: unused. `turned` ends each turn. */
	void (*datagram)(void *arg, const void *data, uint32_t len);
	void (*turned)(void *arg);
	bool (*full)(void *arg); /* returns true when no more datagrams are wanted */
	void *arg;
};

struct pl_int_host {
	const struct pl_int_host_options *o;
	bool began;
	/* The service's own members. */
	char uri[64];
	struct pl_tap_rules rules;
	struct pl_hostint *kernel;
	struct pl_hostint_reporter reporter;
	struct pl_port *ports[PL_INT_HOST_TO_MAX];
	unsigned int n_ports;
	uint64_t flush_ns; /* time to send pending reports; 0: none are pending */
	union {
		struct pl_host_source_counts source;
		struct pl_host_sink_counts sink;
	} shown;
#define PL_STAT PL_STAT_MEMBER
#include "service/int_host_stats.def"
#undef PL_STAT
};

extern const struct pl_service_ops pl_int_host_ops;

/* Returns whether every report was sent to every collector. */
bool pl_int_host_complete(const struct pl_int_host *h);
void pl_int_host_close(struct pl_int_host *h);
