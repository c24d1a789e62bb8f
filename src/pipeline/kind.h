/* SPDX-License-Identifier: BSD-2-Clause */
/* A kind of output: how its part of the configuration becomes an exporter. Listed in kinds.def. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "export/curl.h"
#include "export/exporter.h"
#include "export/sender.h"
#include "pipeline/config.h"

enum pl_output_takes {
	PL_CANNOT,
	PL_MAY,   /* when asked to */
	PL_TAKES, /* unless told not to */
};

struct pl_output_kind {
	enum pl_output_takes paths, events, values, series;
	bool packets; /* packets as they arrived, always */
	bool page;    /* the series are the families of the metrics page, all of them */
	/* What follows from the other keys for paths_word and events_word, when they are auto. NULL:
	 * nothing. */
	void (*resolve)(struct pl_config_output *output);
	/* Relations between the keys, and those required; touches no network. -EINVAL with diag. */
	int (*check)(const struct pl_config_output *output, struct pl_diag *diag);
	int (*open)(struct pl_export **ret, const struct pl_config_output *output, uint64_t now_ns,
		struct pl_diag *diag);
	/* What the exporter holds at most. */
	uint64_t (*memory)(const struct pl_config_output *output);
};

extern const struct pl_output_kind *const pl_output_kinds[PL_OUTPUT_KIND_MAX];

#define PL_OUTPUT_KIND(ID, id) extern const struct pl_output_kind pl_output_kind_##id;
#include "pipeline/kinds.def"
#undef PL_OUTPUT_KIND

/* What all kinds of servers share. */
int pl_output_check_server(const struct pl_config_output *output, struct pl_diag *diag);
void pl_output_sender_options(const struct pl_config_output *output, struct pl_sender_options *ret);
uint64_t pl_output_sender_memory(const struct pl_config_output *output);

/* Of a server without databases, which takes everything at one path: as pl_output_check_server, and
 * with needs_path the url must have one. usual: who takes what where, for the words of the diag. */
int pl_output_check_endpoint(const struct pl_config_output *output, bool needs_path,
	const char *usual, struct pl_diag *diag);

/* Of a kind that writes to a path: it is there, and nothing of servers. missing: what is said when
 * it is not. */
int pl_output_check_path(
	const struct pl_config_output *output, const char *missing, struct pl_diag *diag);

/* Of a kind that sends to an address (to): nothing of files and servers. */
int pl_output_check_to(const struct pl_config_output *output, struct pl_diag *diag);

/* Refuses keys that mean nothing to a kind: pairs of a value and its key's name. */
struct pl_output_stray {
	const char *value, *key;
};
int pl_output_check_strays(const struct pl_output_stray *strays, size_t n, struct pl_diag *diag);
