/* SPDX-License-Identifier: BSD-2-Clause */
/* A pipeline of a switch's file (dataplane/conf.h). */
#pragma once

#include "dataplane/conf.h"
#include "dataplane/pipeline.h"
#include "dataplane/queues.h"

struct pl_dp_program {
	struct pl_dp_conf conf;
	char *text; /* the file's, for places of later errors */
	size_t len;
	char file[256];
};

/* Reads the file and its values; names are looked up by pl_dp_program_build. -EINVAL with diag
 * (file, line, column), the errors of reading, -ENOMEM. */
int pl_dp_program_load(struct pl_dp_program *ret, const char *path, struct pl_diag *diag);
int pl_dp_program_parse(struct pl_dp_program *ret, const char *name, const char *text, size_t len,
	struct pl_diag *diag);
void pl_dp_program_done(struct pl_dp_program *program);

/* Name and id of the options are the program's; ports without a MAC address take one made of node id
 * and number, unless macs has one that is not 0 (PL_DP_PORTS_MAX + 1 of them, by number; may be
 * NULL). The program may go then. -EINVAL with diag, -ENOMEM. */
int pl_dp_program_build(const struct pl_dp_program *program,
	const struct pl_dp_pipeline_options *options, const uint64_t *macs,
	struct pl_dp_pipeline **ret, struct pl_diag *diag);

/* The queues of ports[i] of the file, for pl_dp_port_new. */
void pl_dp_program_queues(
	const struct pl_dp_program *program, size_t i, struct pl_dp_port_cfg *ret);

/* Whether the whole file is right: builds it and throws it away. As above. */
int pl_dp_program_check(const struct pl_dp_program *program, struct pl_diag *diag);
