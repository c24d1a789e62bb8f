/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds a pipeline from a switch's file (dataplane/conf.h). */
#pragma once

#include "dataplane/clock.h"
#include "dataplane/conf.h"
#include "dataplane/pipeline.h"
#include "dataplane/queues.h"

struct pl_dp_program {
	struct pl_dp_conf conf;
	char *text; /* text of the file, to locate later errors */
	size_t len;
	char file[256];
};

/* Read the file, or its text, and check single values; pl_dp_program_build looks up names. -EINVAL
 * with diag (file, line, column), the errors of reading, -ENOMEM. */
int pl_dp_program_load(struct pl_dp_program *ret, const char *path, struct pl_diag *diag);
int pl_dp_program_parse(struct pl_dp_program *ret, const char *name, const char *text, size_t len,
	struct pl_diag *diag);
void pl_dp_program_done(struct pl_dp_program *program);

/* Builds the pipeline. Name and id come from the program, not the options. A port without a MAC
 * address gets that in macs (PL_DP_PORTS_MAX + 1 by number, 0: none; may be NULL), else one made of
 * node id and number. The program may be freed then. -EINVAL with diag, -ENOMEM. */
int pl_dp_program_build(const struct pl_dp_program *program,
	const struct pl_dp_pipeline_options *options, const uint64_t *macs,
	struct pl_dp_pipeline **ret, struct pl_diag *diag);

/* Returns the queues of ports[i] of the file, for pl_dp_port_new. */
void pl_dp_program_queues(
	const struct pl_dp_program *program, size_t i, struct pl_dp_port_cfg *ret);

/* Sets the clock of a node that starts at true_ns. */
void pl_dp_program_clock(
	const struct pl_dp_program *program, uint64_t true_ns, struct pl_dp_clock *ret);

/* Checks the whole file by building a pipeline and freeing it. Errors as above. */
int pl_dp_program_check(const struct pl_dp_program *program, struct pl_diag *diag);
