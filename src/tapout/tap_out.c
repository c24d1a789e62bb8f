/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the output of a tap by its URI. */
#include "tapout/tap_out.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/tap_to.h"

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
	struct pl_uri parts;
	int r = pl_tap_to_check(uri, diag);

	if (r < 0)
		return r;
	assert(driver != NULL);
	r = pl_uri_split(&parts, target, driver->keys, diag);
	if (r == 0)
		r = driver->check(&parts, settings, diag);
	if (r == -ENOMEM)
		pl_diag_set(diag, "%s", strerror(ENOMEM));
	return r;
}

/* Opens an output from its checked URI. */
static int open_out(struct pl_tap_out **ret, const struct pl_tap_out_driver *driver,
	const char *name, const char *target, const struct pl_tap_out_settings *settings,
	struct pl_diag *diag)
{
	struct pl_tap_out *out = calloc(1, driver->size);
	struct pl_uri uri;
	int r;

	if (out == NULL)
		return -ENOMEM;
	out->driver = driver;
	out->name = strndup(name, strcspn(name, "?"));
	if (out->name == NULL) {
		free(out);
		return -ENOMEM;
	}
	(void)pl_uri_split(&uri, target, driver->keys, NULL);
	r = driver->open(out, &uri, settings, diag);
	if (r < 0)
		pl_tap_out_close(out);
	else
		*ret = out;
	return r;
}

int pl_tap_out_open(struct pl_tap_out **ret, const char *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	const char *target = NULL;
	const struct pl_tap_out_driver *driver = driver_of(uri, &target);
	int r = pl_tap_out_check(uri, settings, diag);

	if (r < 0)
		return r;
	r = open_out(ret, driver, uri, target, settings, diag);
	if (r == -ENOMEM)
		pl_diag_set(diag, "%s", strerror(ENOMEM));
	return r;
}

int pl_tap_out_files(const char *uri, struct pl_confine *confine)
{
	const char *target = NULL;
	const struct pl_tap_out_driver *driver = driver_of(uri, &target);
	struct pl_uri parts;

	if (driver == NULL || driver->files == NULL ||
		pl_uri_split(&parts, target, driver->keys, NULL) < 0)
		return 0;
	return driver->files(&parts, confine);
}

void pl_tap_out_close(struct pl_tap_out *out)
{
	if (out == NULL)
		return;
	out->driver->close(out);
	free(out->name);
	free(out);
}
