/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads keys that the URIs of several kinds of outputs have. */
#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "record/community_id.h"
#include "tapout/tap_out.h"

int pl_tap_out_kind(const char *name, const struct pl_tap_out_settings *settings,
	enum pl_flat_kind *ret, struct pl_diag *diag)
{
	const enum pl_flat_kind whole = settings->kind, begins = pl_flat_short(whole);

	*ret = begins;
	if (name == NULL)
		return 0;
	if (begins == whole)
		return pl_diag_fail(diag, -EINVAL,
			"'kind=%s' in the URI applies to records of packets and flows only, not of %s",
			name, pl_flat(whole)->stream);
	if (strcmp(name, pl_flat(begins)->name) == 0)
		return 0;
	*ret = whole;
	if (strcmp(name, pl_flat(whole)->name) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "'kind=%s' in the URI: %s or %s", name,
		pl_flat(begins)->name, pl_flat(whole)->name);
}

int pl_tap_out_community_id(const char *value, const struct pl_tap_out_settings *settings,
	bool *ret, struct pl_diag *diag)
{
	*ret = false;
	if (value != NULL && pl_parse_bool(value, ret) < 0)
		return pl_diag_fail(diag, -EINVAL,
			"'community_id=%s' in the URI: write community_id=yes or community_id=no",
			value);
	if (*ret && !pl_community_id_of_kind(settings->kind))
		return pl_diag_fail(diag, -EINVAL,
			"'community_id=yes' in the URI is of packets and flows, not of %s",
			pl_flat(settings->kind)->stream);
	return 0;
}
