/* SPDX-License-Identifier: BSD-2-Clause */
/* Matches kinds of damage with forms; see malform.h. */
#include <errno.h>
#include <string.h>

#include "gen/int_form.h"
#include "gen/ioam_gen.h"
#include "gen/malform.h"

bool pl_malform_is_formless(const struct pl_malform *kind)
{
	const struct pl_malform_needs *n = &kind->needs;

	return kind->stage == PL_MALFORM_FRAME && n->ioam == 0 && n->report == 0 &&
	       n->version == 0 && n->mode == 0 && n->carrier == 0 && n->outer_ip == 0 &&
	       !n->instrumented;
}

/* True when a setting is what a row needs, or is not set. */
#define FITS(field) (needs->field == 0 || cfg->field == 0 || cfg->field == needs->field)
#define TAKE(field)                                                                                \
	do {                                                                                       \
		if (needs->field != 0)                                                             \
			cfg->field = needs->field;                                                 \
	} while (0)

int pl_malform_add(
	struct pl_gen_cfg *cfg, const struct pl_malform *kind, double ratio, struct pl_diag *diag)
{
	const struct pl_malform_needs *needs = &kind->needs;

	if (!(ratio >= 0 && ratio <= 1)) {
		pl_diag_set(diag, "malform %s: a share is at most 1", kind->name);
		return -EINVAL;
	}
	if (cfg->n_malform == PL_GEN_MALFORMS_MAX) {
		pl_diag_set(diag, "more than %d kinds of damage", PL_GEN_MALFORMS_MAX);
		return -EINVAL;
	}
	if (needs->frames && cfg->udp) {
		pl_diag_set(diag, "malform %s damages frames: write them to a capture file",
			kind->name);
		return -EINVAL;
	}
	if (cfg->ioam.options != 0 && cfg->ioam.options != needs->ioam &&
		!pl_malform_is_formless(kind)) {
		pl_diag_set(diag, "malform %s needs %s", kind->name,
			needs->ioam == 0 ? "INT" : "other IOAM options");
		return -EINVAL;
	}
	if (!FITS(report) || !FITS(version) || !FITS(mode) || !FITS(carrier) || !FITS(inner) ||
		!FITS(sink) || !FITS(announce) || !FITS(outer_ip) || !FITS(ds_words) ||
		!FITS(source_words)) {
		pl_diag_set(diag,
			"malform %s needs another version, mode, carrier or form than the selected one (see \"pathline gen int --malform list\")",
			kind->name);
		return -EINVAL;
	}
	TAKE(report);
	TAKE(version);
	TAKE(mode);
	TAKE(carrier);
	TAKE(inner);
	TAKE(sink);
	TAKE(announce);
	TAKE(outer_ip);
	TAKE(ds_words);
	TAKE(source_words);
	cfg->ioam.options |= needs->ioam;
	cfg->ioam.seq_64 |= needs->seq_64;
	cfg->instrumented |= needs->instrumented;
	if (needs->bitmap != 0)
		cfg->bitmap = (cfg->bitmap == 0 ? 0xfd00 : cfg->bitmap) | needs->bitmap;
	cfg->malform[cfg->n_malform++] = (struct pl_gen_malform){ kind, ratio };
	return 0;
}

/* Returns true when a resolved form has everything that the row needs. */
static bool has_all(const struct pl_gen_cfg *cfg, const struct pl_malform *kind)
{
	const struct pl_malform_needs *n = &kind->needs;

#define IS(field) (n->field == 0 || (unsigned int)n->field == (unsigned int)cfg->field)
	if (cfg->ioam.options != 0)
		return pl_malform_is_formless(kind)
			       ? IS(inner)
			       : n->ioam == cfg->ioam.options && n->seq_64 <= cfg->ioam.seq_64;
	return n->ioam == 0 && IS(report) && IS(version) && IS(mode) && IS(carrier) && IS(inner) &&
	       IS(sink) && IS(announce) && IS(outer_ip) && IS(ds_words) && IS(source_words) &&
	       (n->bitmap & ~cfg->bitmap) == 0 && n->instrumented <= cfg->instrumented &&
	       !(n->frames && cfg->udp);
#undef IS
}

int pl_malform_add_all(struct pl_gen_cfg *cfg, double ratio, struct pl_diag *diag)
{
	struct pl_gen_cfg form = *cfg;
	unsigned int fitting = 0;
	size_t n;
	const struct pl_malform *rows = pl_malforms(&n);
	int r = form.ioam.options != 0 ? pl_ioam_gen_resolve(&form, diag)
				       : pl_int_gen_resolve(&form, diag);

	for (size_t i = 0; r == 0 && i < n; i++)
		fitting += has_all(&form, &rows[i]);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (has_all(&form, &rows[i]))
			r = pl_malform_add(&form, &rows[i], ratio / fitting, diag);
	}
	if (r < 0)
		return r;
	memcpy(cfg->malform, form.malform, sizeof(cfg->malform));
	cfg->n_malform = form.n_malform;
	return 0;
}
