/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Damage by name: every way a packet can be wrong, one row each, with the verdict or the note a
 * decoder must answer with. The table is what the tests of the decoders walk.
 */
#pragma once

#include "gen/gen.h"
#include "wire/build.h"

/* When a row does its work: innermost first. */
enum pl_malform_stage {
	PL_MALFORM_INT,    /* INT header and payload are written, no length or checksum is closed */
	PL_MALFORM_INNER,  /* the inner packet of a report is closed, its report is not */
	PL_MALFORM_REPORT, /* the UDP payload is complete, the datagram is not closed */
	PL_MALFORM_FRAME,  /* the frame is complete */
};

/* Where things stand in the packet, as offsets; 0 = not there (nothing but a frame starts at 0). */
struct pl_gen_damage {
	const struct pl_malform *kind; /* or NULL */
	size_t frame_l3;               /* frame: its first IP header */
	size_t payload;                /* UDP payload: the report. Valid when have_payload */
	bool have_payload;
	size_t individual; /* the last individual report: v2.0 word 0, else the report header */
	size_t inner;      /* its inner packet */
	size_t inner_l3;   /* the IP header in which INT was put */
	size_t inner_l4;
	size_t shim; /* INT shim, or Geneve option */
	size_t md;   /* INT metadata header */
	size_t stack;
	size_t after;      /* behind INT (v0.5: behind the tail) */
	size_t ioam;       /* the first IOAM option: its type byte */
	uint32_t wire_len; /* set by a row that cuts the capture: the length it had */
	uint8_t link;      /* enum pl_link of the packet; a row may change it */
	bool scrapped;     /* the row did not find what it needs; the packet is whole */
};

/* The form a row needs; 0 = any. */
struct pl_malform_needs {
	enum pl_gen_report report;
	enum pl_gen_version version;
	enum pl_gen_mode mode;
	enum pl_gen_carrier carrier;
	enum pl_gen_inner inner;
	enum pl_gen_sink sink;
	enum pl_gen_announce announce;
	uint8_t outer_ip;
	uint8_t ds_words, source_words;
	uint16_t bitmap; /* instruction bits that must be set as well */
	uint8_t ioam;    /* IOAM options that must be there; and no others */
	bool seq_64;
	bool instrumented;
	bool frames; /* cannot be sent through a UDP socket */
};

struct pl_malform {
	const char *name;
	const char *help;
	struct pl_malform_needs needs;
	/* What a decoder that knows the announcement must answer; see pl_malform_expect. */
	enum pl_verdict verdict;
	uint64_t note; /* PL_NOTE_BIT that must be set, 0 = none */
	enum pl_malform_stage stage;
	void (*damage)(struct pl_build *b, struct pl_gen_damage *d);
	bool hides; /* nothing but the announcement is left that shows INT */
};

/* All rows, n of them. */
const struct pl_malform *pl_malforms(size_t *ret_n);
/* By name; NULL. */
const struct pl_malform *pl_malform_find(const char *name);

/* Damage to a frame whatever it holds: INT or IOAM alike. */
bool pl_malform_is_formless(const struct pl_malform *kind);

/* Adds a kind to a configuration and sets the form it needs; ratio 0: what the others leave, in
 * equal shares. -EINVAL with diag when the form is set to something else already, or for a share
 * out of 0 to 1. */
int pl_malform_add(
	struct pl_gen_cfg *cfg, const struct pl_malform *kind, double ratio, struct pl_diag *diag);

/* Adds every kind that fits the form as it is, defaults filled in: none changes it. They share the
 * ratio. */
int pl_malform_add_all(struct pl_gen_cfg *cfg, double ratio, struct pl_diag *diag);

/*
 * What a decoder must answer to the row in a form; *ret_note 0 = no note asked for. A row that
 * hides INT gives its verdict for the instrumented packet; in a report, which is good by itself,
 * the answer is OK with the note embedded_invalid.
 */
void pl_malform_expect(const struct pl_malform *kind, enum pl_gen_report report,
	enum pl_verdict *ret_verdict, uint64_t *ret_note);

/* Does the damage if its stage has come. */
static inline void pl_malform_at(
	struct pl_gen_damage *d, enum pl_malform_stage stage, struct pl_build *b)
{
	if (d->kind != NULL && d->kind->stage == stage)
		d->kind->damage(b, d);
}
