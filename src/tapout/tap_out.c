/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the output of a tap by its URI. */
#include "tapout/tap_out.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "netio/uri.h"
#include "pipeline/tap_to.h"
#include "record/community_id.h"

static const struct pl_tap_out_driver *const drivers[] = {
	&pl_tap_out_udp,
	&pl_tap_out_file,
	&pl_tap_out_region,
	&pl_tap_out_clickhouse,
	&pl_tap_out_influx,
	&pl_tap_out_jsonl,
	&pl_tap_out_dta,
#if PL_HAVE_KAFKA
	&pl_tap_out_kafka,
#endif
#if PL_HAVE_IPFIX
	&pl_tap_out_ipfix,
#endif
};

unsigned int pl_tap_out_drivers(const struct pl_tap_out_driver *const **ret)
{
	*ret = drivers;
	return sizeof(drivers) / sizeof(drivers[0]);
}

static const struct pl_tap_out_driver *driver_of(const char *uri, const char **ret_target)
{
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		const size_t len = strlen(drivers[i]->scheme);

		if (strncmp(uri, drivers[i]->scheme, len) == 0 && uri[len] == ':') {
			*ret_target = uri + len + 1;
			return drivers[i];
		}
	}
	return NULL;
}

int pl_tap_out_check(
	const char *uri, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	const char *target = NULL;
	const struct pl_tap_out_driver *driver = driver_of(uri, &target);
	int r = pl_tap_to_check(uri, diag);

	if (r < 0)
		return r;
	assert(driver != NULL);
	r = driver->check(target, settings, diag);
	if (r == -ENOMEM)
		pl_diag_set(diag, "%s", strerror(ENOMEM));
	return r;
}

int pl_tap_out_open(struct pl_tap_out **ret, const char *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	const char *target = NULL;
	const struct pl_tap_out_driver *driver = driver_of(uri, &target);
	struct pl_tap_out *out = NULL;
	int r = pl_tap_out_check(uri, settings, diag);

	if (r < 0)
		return r;
	r = driver->open(&out, target, settings, diag);
	if (r == 0) {
		out->driver = driver;
		out->name = strndup(uri, strcspn(uri, "?"));
		if (out->name == NULL) {
			driver->close(out);
			r = -ENOMEM;
		}
	}
	if (r == -ENOMEM)
		pl_diag_set(diag, "%s", strerror(ENOMEM));
	if (r == 0)
		*ret = out;
	return r;
}

int pl_tap_out_files(const char *uri, struct pl_confine *confine)
{
	const char *target = NULL;
	const struct pl_tap_out_driver *driver = driver_of(uri, &target);

	return driver != NULL && driver->files != NULL ? driver->files(target, confine) : 0;
}

void pl_tap_out_close(struct pl_tap_out *out)
{
	if (out == NULL)
		return;
	free(out->name);
	out->driver->close(out);
}

int pl_tap_out_kind(const char *name, const struct pl_tap_out_settings *settings,
	enum pl_flat_kind *ret, struct pl_diag *diag)
{
	const enum pl_flat_kind whole = settings->kind, begins = pl_flat_short(whole);

	*ret = begins;
	if (name == NULL)
		return 0;
	if (begins == whole) {
		pl_diag_set(diag,
			"'kind=%s' in the URI applies to records of packets and flows only, not of %s",
			name, pl_flat(whole)->stream);
		return -EINVAL;
	}
	if (strcmp(name, pl_flat(begins)->name) == 0)
		return 0;
	*ret = whole;
	if (strcmp(name, pl_flat(whole)->name) == 0)
		return 0;
	pl_diag_set(diag, "'kind=%s' in the URI: %s or %s", name, pl_flat(begins)->name,
		pl_flat(whole)->name);
	return -EINVAL;
}

int pl_tap_out_community_id(const char *value, const struct pl_tap_out_settings *settings,
	bool *ret, struct pl_diag *diag)
{
	*ret = false;
	if (value != NULL && pl_parse_bool(value, ret) < 0) {
		pl_diag_set(diag,
			"'community_id=%s' in the URI: write community_id=yes or community_id=no",
			value);
		return -EINVAL;
	}
	if (*ret && !pl_community_id_of_kind(settings->kind)) {
		pl_diag_set(diag,
			"'community_id=yes' in the URI is of packets and flows, not of %s",
			pl_flat(settings->kind)->stream);
		return -EINVAL;
	}
	return 0;
}
