/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of pathline gen for each kind of telemetry, and the generator's configuration that
 * they make. The values belong to the option table, of which there is one per process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/opt.h"
#include "gen/gen.h"

struct pl_malform;

/* Option tables; each call sets every value to its default. */
const struct pl_opt *pl_gen_options_int(void);
const struct pl_opt *pl_gen_options_ioam(void);
const struct pl_opt *pl_gen_options_all(void); /* of all kinds, for completion and the manual */

/* Options of the command rather than of the generator. */
struct pl_gen_run {
	const char *file;   /* -w */
	const char *preset; /* "list": asks for the list */
	bool list_malforms, flood, dry_run;
	uint64_t count, duration_ns;
	double rate;
};
struct pl_gen_run pl_gen_options_run(void);

/* The options as given; topology owns the text of a topology file. -ECANCELED: the error has been
 * printed. */
int pl_gen_options_config(
	struct pl_gen_cfg *cfg, struct pl_buf *topology, bool ioam, bool udp, struct pl_diag *diag);

/* Frees the lists that parsing kept. */
void pl_gen_options_done(void);

/* The form that a kind of damage needs, in the words of the options; "" = any. */
void pl_gen_malform_form(const struct pl_malform *kind, char *dst, size_t cap);
