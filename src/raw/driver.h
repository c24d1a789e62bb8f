/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of port.c for driver.c in a build with Kafka: those of netio/driver.h, with a complete
 * URI. */
#pragma once

#include "netio/driver.h"

/* Returns 1, or -EINVAL with diag. */
int pl_raw_port_check(const char *uri, struct pl_diag *diag);
int pl_raw_port_open(
	struct pl_port **ret, const char *uri, bool to_end, const struct pl_port_reader *reader);
int pl_raw_port_recv(
	struct pl_port *port, struct pl_batch *batch, int timeout_ms, struct pl_diag *diag);
void pl_raw_port_release(struct pl_port *port, struct pl_batch *batch);
void pl_raw_port_stats(struct pl_port *port);
int pl_raw_port_close(struct pl_port *port);
