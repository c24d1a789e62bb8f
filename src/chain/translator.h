/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translator as a service: DTA reports from a port into telemetry memory, region files of this
 * machine or, over RoCE, those of collectors.
 */
#pragma once

#include "base/addr.h"
#include "base/stats.h"
#include "chain/translate_answers.h"
#include "chain/translate_out.h"
#include "dta/translator.h"
#include "netio/port.h"
#include "pipeline/config.h"
#include "runtime/runtime.h"

#define PL_TRANSLATE_PORTS_MAX 16

struct pl_translate_options {
	struct pl_config_dta dta; /* as configured */
	/* Region files, those of the first collector, then the second's …; or one roce://… URI */
	const char *const *to;
	size_t n_to;
	const char *const *names; /* names of the regions on the metrics page; NULL: their paths */
	unsigned int collectors;
	const struct pl_prefix *allow;
	unsigned int n_allow;
	/* Called after writes with an immediate value into regions of this process. NULL: none. */
	void (*written)(void *arg);
	void *written_arg;
	/* For readers of this process: key names of slots, for each store, NULL for stores without.
	 * NULL: none. */
	struct pl_key_names *const *keys;
	uint64_t count; /* number of reports after which it ends; 0: never */
};

struct pl_translate {
	const struct pl_translate_options *o;
	struct pl_port *ports[PL_TRANSLATE_PORTS_MAX];
	unsigned int n_ports;
	bool live, ended;
	bool began; /* everything was open */
	struct pl_answers answers;
	const struct pl_packet *report; /* the report being handled; NULL: none */
	struct pl_translate_out out;
	/* of the translator, valid as long as it is */
	struct pl_dta_store stores[PL_DTA_STORES_MAX];
	struct pl_translator *translator;
	struct pl_batch packets;
	uint64_t file_ns; /* time of a capture's packets, which never goes back here */
	uint64_t out_ns;  /* time of the output's next turn */
#define PL_STAT PL_STAT_MEMBER
#include "chain/translate_stats.def"
#undef PL_STAT
	/* refusals at the last count, and time of the last increase */
	uint64_t refused[PL_REFUSED_MAX], unreadable, refused_ns;
	uint64_t unsent, unsent_ns; /* likewise for answers */
	struct pl_condition_board conditions;
	uint64_t conditions_ns; /* time of the next check */
};

/* For a struct pl_translate, zeroed except `o`, which stays until it is closed. Errors of opening:
 * -EINVAL (the options), and those of ports and outputs. */
extern const struct pl_service_ops pl_translate_service;

/* Returns true when region files were cut, removed or made again meanwhile. */
bool pl_translate_lost(struct pl_translate *t);
/* Closes everything. Returns the first error of closing, or 0. */
int pl_translate_close(struct pl_translate *t);

/* ---- translator_stores.c, translator_account.c ---- */

/* Makes options of as many stores as the output has. Returns -EINVAL with diag. */
int pl_translate_stores(const struct pl_translate_options *o, const struct pl_translate_out *out,
	struct pl_dta_store *ret, struct pl_diag *diag);
void pl_translate_put_text(void *translate, struct pl_buf *text);
void pl_translate_put(void *translate, const struct pl_account *a);
