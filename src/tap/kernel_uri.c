/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the URI of a tap in the kernel. */
#include "tap/kernel_uri.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "netio/hwtstamp.h"
#include "record/packet.h"
#include "tap/kernel.h"
#include "tap/kernel_maps.h"

#define COUNTS      16384 /* keys of a table */
#define COUNTS_MOST (UINT64_C(1) << 22)

static int read_counts(const struct pl_uri *uri, uint64_t *ret, struct pl_diag *diag)
{
	const char *text = pl_uri_get(uri, "counts");

	*ret = COUNTS;
	if (text == NULL || (pl_parse_u64(text, ret) == 0 && *ret >= 1 && *ret <= COUNTS_MOST))
		return 0;
	pl_diag_set(diag, "'counts=%s' in the URI: a number of keys from 1 to 4194304", text);
	return -EINVAL;
}

int pl_tap_kernel_settings(struct pl_tap_kernel_settings *ret, const char *text, struct pl_uri *uri,
	struct pl_diag *diag)
{
	static const char *const xdp_keys[] = { "mode", "ring", "record", "counts", NULL },
				 *const tc_keys[] = { "dir", "ring", "record", "counts", "hwtstamp",
					 NULL };
	static const char *const modes[] = { "auto", "native", "generic" };
	const char *mode, *dir, *record;
	int r;

	*ret = (struct pl_tap_kernel_settings){ .xdp = strncmp(text, "xdp:", 4) == 0,
		.in = true,
		.out = true,
		.ring_bytes = PL_TAP_RING_BYTES,
		.record_bytes = sizeof(struct pl_pkt96) };
	r = pl_uri_split(uri, strchr(text, ':') + 1, ret->xdp ? xdp_keys : tc_keys, diag);
	if (r == 0)
		r = pl_uri_get_size(
			uri, "ring", PL_TAP_RING_LEAST, PL_TAP_RING_MOST, &ret->ring_bytes, diag);
	if (r == 0)
		r = read_counts(uri, &ret->counts, diag);
	if (r == 0)
		r = pl_uri_get_bool(uri, "hwtstamp", &ret->hwtstamp, diag);
	if (r < 0)
		return r;
	if (uri->target[0] == '\0') {
		pl_diag_set(diag, "'%s': no interface behind the colon", text);
		return -EINVAL;
	}
	mode = pl_uri_get(uri, "mode");
	dir = pl_uri_get(uri, "dir");
	record = pl_uri_get(uri, "record");
	for (int i = 0; mode != NULL && i < 3; i++) {
		if (strcmp(mode, modes[i]) == 0) {
			ret->mode = (enum pl_xdp_mode)i;
			mode = NULL;
		}
	}
	ret->dir_told = dir != NULL;
	if (dir != NULL) {
		ret->in = strcmp(dir, "out") != 0;
		ret->out = strcmp(dir, "in") != 0;
		if ((ret->in && ret->out) == (strcmp(dir, "both") == 0))
			dir = NULL;
	}
	if (record != NULL && strcmp(record, "pkt64") == 0)
		ret->record_bytes = sizeof(struct pl_pkt64);
	else if (record != NULL && strcmp(record, "pkt96") != 0)
		r = -EINVAL;
	if (r < 0)
		pl_diag_set(diag, "'record=%s' in the URI: pkt96 or pkt64", record);
	else if (mode != NULL)
		pl_diag_set(diag, "'mode=%s' in the URI: auto, native or generic", mode);
	else if (dir != NULL)
		pl_diag_set(diag, "'dir=%s' in the URI: in, out or both", dir);
	if (r < 0 || mode != NULL || dir != NULL)
		return -EINVAL;
	if (ret->hwtstamp && (!ret->in || ret->record_bytes == sizeof(struct pl_pkt64))) {
		pl_diag_set(diag,
			"'hwtstamp=yes' in the URI: the NIC's times go into records of what enters, "
			"with record=pkt96; leave it out, or %s",
			ret->in ? "record=pkt64" : "dir=out");
		return -EINVAL;
	}
	return 0;
}

bool pl_tap_kernel_is(const char *uri)
{
	return strncmp(uri, "xdp:", 4) == 0 || strncmp(uri, "tc:", 3) == 0;
}

bool pl_tap_kernel_is_short(const char *text)
{
	struct pl_uri *uri = malloc(sizeof(*uri));
	struct pl_tap_kernel_settings set = { .record_bytes = 0 };

	if (uri == NULL || pl_tap_kernel_settings(&set, text, uri, NULL) < 0)
		set.record_bytes = 0;
	free(uri);
	return set.record_bytes == sizeof(struct pl_pkt64);
}

bool pl_tap_kernel_stamps(const char *text)
{
	struct pl_uri *uri = malloc(sizeof(*uri));
	struct pl_tap_kernel_settings set;
	const bool stamps = uri != NULL && pl_tap_kernel_settings(&set, text, uri, NULL) == 0 &&
			    !set.xdp && set.in && set.record_bytes == sizeof(struct pl_pkt96) &&
			    (set.hwtstamp || pl_hwtstamp_is_on(uri->target));

	free(uri);
	return stamps;
}

int pl_tap_kernel_check(const char *text, bool counts, struct pl_diag *diag)
{
	struct pl_uri *uri = malloc(sizeof(*uri));
	struct pl_tap_kernel_settings set;
	int r = uri == NULL ? -ENOMEM : pl_tap_kernel_settings(&set, text, uri, diag);

	if (r == 0 && !counts && pl_uri_get(uri, "counts") != NULL) {
		pl_diag_set(diag,
			"'counts=%s' in the URI: a tap makes a record of each packet and counts "
			"none; leave it out (it is of 'pathline query', which may count by key)",
			pl_uri_get(uri, "counts"));
		r = -EINVAL;
	}
	free(uri);
	return r;
}
