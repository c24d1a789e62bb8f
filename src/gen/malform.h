/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Damage by name: each kind of error in a packet has a row, with the verdict or the note that a
 * decoder must give. The tests of the decoders go through this table.
 */
#pragma once

#include "gen/gen.h"
#include "wire/build.h"

/* Stage at which a row does its damage: innermost first. */
enum pl_malform_stage {
	PL_MALFORM_INT,    /* INT header and payload are written, no length or checksum is closed */
	PL_MALFORM_INNER,  /* the inner packet of a report is closed, its report is not */
	PL_MALFORM_REPORT, /* the UDP payload is complete, the datagram is not closed */
	PL_MALFORM_FRAME,  /* the frame is complete */
};

/* Offsets of headers in the packet; 0: not there (only a frame begins at 0). */
struct pl_gen_damage {
	const struct pl_malform *kind; /* or NULL */
	size_t frame_l3;               /* frame: first IP header */
	size_t payload;                /* UDP payload: the report. Valid with have_payload */
	bool have_payload;
	size_t individual; /* last individual report: v2.0 word 0, else the report header */
	size_t inner;      /* inner packet of the report */
	size_t inner_l3;   /* IP header of the packet with INT */
	size_t inner_l4;
	size_t shim; /* INT shim, or Geneve option */
	size_t md;   /* INT metadata header */
	size_t stack;
	size_t after;      /* end of INT (v0.5: of the tail) */
	size_t ioam;       /* first IOAM option: its type byte */
	uint32_t wire_len; /* original length, set by a row that cuts the capture */
	uint8_t link;      /* enum pl_link of the packet; a row may change it */
	bool scrapped;     /* the row found nothing to damage; the packet is undamaged */
};

/* The form that a row needs; 0: any. */
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
	uint16_t bitmap; /* instruction bits that must be set too */
	uint8_t ioam;    /* IOAM options that must be there, and no others */
	bool seq_64;
	bool instrumented;
	bool frames; /* cannot be sent through a UDP socket */
};

/* Part of a packet in which a row changes a byte, by the offsets of struct pl_gen_damage. */
enum pl_malform_part {
	PL_MALFORM_SHIM,
	PL_MALFORM_MD,
	PL_MALFORM_TAIL, /* the last word of INT v0.5 */
	PL_MALFORM_PAYLOAD,
	PL_MALFORM_INDIVIDUAL,
	PL_MALFORM_INNER_L3,
	PL_MALFORM_FRAME_L3,
	PL_MALFORM_IOAM,
};

/* Byte `at` of a part that has `need` bytes: the bits of `keep` stay, those of `set` are set. */
struct pl_malform_byte {
	enum pl_malform_part part;
	uint8_t need, at, keep, set;
};

struct pl_malform {
	const char *name;
	const char *help;
	struct pl_malform_needs needs;
	/* Verdict of a decoder that knows the announcement; see pl_malform_expect. */
	enum pl_verdict verdict;
	uint64_t note; /* PL_NOTE_BIT that must be set; 0: none */
	enum pl_malform_stage stage;
	void (*damage)(struct pl_build *b, struct pl_gen_damage *d);
	bool hides;                  /* only the announcement still shows INT */
	struct pl_malform_byte byte; /* of rows that change one byte */
};

/* All rows, and their number. */
const struct pl_malform *pl_malforms(size_t *ret_n);
/* Finds a row by its name; NULL. */
const struct pl_malform *pl_malform_find(const char *name);

/* Returns true for damage that any frame can have, with INT or IOAM. */
bool pl_malform_is_formless(const struct pl_malform *kind);

/* Adds a kind to a configuration and sets the form that it needs; ratio 0: an equal part of the
 * rest. Returns -EINVAL with diag when the form is already set otherwise, or for a ratio outside of
 * 0 to 1. */
int pl_malform_add(
	struct pl_gen_cfg *cfg, const struct pl_malform *kind, double ratio, struct pl_diag *diag);

/* Adds every kind that fits the form unchanged, with defaults filled in. They share the ratio. */
int pl_malform_add_all(struct pl_gen_cfg *cfg, double ratio, struct pl_diag *diag);

/*
 * Expected answer of a decoder to the row in a form; *ret_note 0: no note. A row that hides INT
 * gives its verdict for the instrumented packet; in a report, which has no error of its own, the
 * answer is OK with the note embedded_invalid.
 */
void pl_malform_expect(const struct pl_malform *kind, enum pl_gen_report report,
	enum pl_verdict *ret_verdict, uint64_t *ret_note);

/* Does the damage when its stage is reached. */
static inline void pl_malform_at(
	struct pl_gen_damage *d, enum pl_malform_stage stage, struct pl_build *b)
{
	if (d->kind != NULL && d->kind->stage == stage)
		d->kind->damage(b, d);
}
