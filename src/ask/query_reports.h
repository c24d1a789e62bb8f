/* SPDX-License-Identifier: BSD-2-Clause */
/* A source of a question over paths and hops: telemetry reports as they arrive, by a service over
 * the same ports as pathline listen. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/decode.h"
#include "netio/port.h"
#include "runtime/runtime.h"

#define PL_QUERY_PORTS_MAX 16

struct pl_query_reports {
	/* Set before it is opened. */
	const char *const *uris;
	size_t n_uris;
	const struct pl_decode_options *decode;
	void (*feed)(void *arg, const struct pl_record_batch *records);
	void (*turned)(void *arg);
	bool (*full)(void *arg); /* no more are wanted */
	void *arg;

	struct pl_port *ports[PL_QUERY_PORTS_MAX];
	unsigned int n_ports;
	struct pl_decode *decoder;
	struct pl_record_batch records;
	struct pl_batch packets;
	uint64_t turned_ns;
};

extern const struct pl_service_ops pl_query_reports_service;

void pl_query_reports_close(struct pl_query_reports *r);
