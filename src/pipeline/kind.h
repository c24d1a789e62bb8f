/* SPDX-License-Identifier: BSD-2-Clause */
/* A type of output: how its part of the configuration becomes a driver. Listed in kinds.def. */
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
	PL_MAY,   /* on request */
	PL_TAKES, /* by default */
};

struct pl_output_kind {
	enum pl_output_takes paths, events, values, series;
	bool packets; /* always takes packets as they arrived */
	bool page;    /* series are all families of the metrics page */
	bool to;      /* the key `to` applies */
	bool dta;     /* the keys of DTA apply, and `record` says what is written */
	bool history; /* it is a folder whose events are remembered after a restart */
	/* Sets keys that depend on others, when paths_word and events_word are auto. NULL: none. */
	void (*resolve)(struct pl_config_output *output);
	/* Checks required keys and their relations, without network. -EINVAL with diag. */
	int (*check)(const struct pl_config_output *output, struct pl_diag *diag);
	int (*open)(struct pl_export **ret, const struct pl_config_output *output, uint64_t now_ns,
		struct pl_diag *diag);
	/* Upper bound of the driver's memory, in bytes. */
	uint64_t (*memory)(const struct pl_config_output *output);
};

extern const struct pl_output_kind *const pl_output_kinds[PL_OUTPUT_KIND_MAX];

#define PL_OUTPUT_KIND(ID, id) extern const struct pl_output_kind pl_output_kind_##id;
#include "pipeline/kinds.def"
#undef PL_OUTPUT_KIND

/* For all types that write to servers. */
int pl_output_check_server(const struct pl_config_output *output, struct pl_diag *diag);
void pl_output_sender_options(const struct pl_config_output *output, struct pl_sender_options *ret);
uint64_t pl_output_sender_memory(const struct pl_config_output *output);

/* For servers without databases, with one path for everything: as pl_output_check_server; with
 * needs_path the URL must have a path. usual: typical servers and paths, for diag. */
int pl_output_check_endpoint(const struct pl_config_output *output, bool needs_path,
	const char *usual, struct pl_diag *diag);

/* For types that write to a file or folder: path is required, keys of servers are refused. missing:
 * the text when there is no path. */
int pl_output_check_path(
	const struct pl_config_output *output, const char *missing, struct pl_diag *diag);

/* For types that send to an address (to): keys of files and servers are refused. */
int pl_output_check_to(const struct pl_config_output *output, struct pl_diag *diag);

/* Refuses keys that do not apply to a type: pairs of a value and its key's name. */
struct pl_output_stray {
	const char *value, *key;
};
int pl_output_check_strays(const struct pl_output_stray *strays, size_t n, struct pl_diag *diag);
