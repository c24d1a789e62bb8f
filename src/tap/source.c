/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads URIs of sources whose packets carry records that others made. */
#include "tap/source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "netio/port.h"
#include "netio/uri.h"
#include "tap/drops.h"
#include "tap/kernel.h"
#include "tap/tmpkt.h"

#define KEY "carries="

/* Returns the key carries= within the query, or NULL. *ret_port: the query has the key port. */
static const char *find_key(const char *query, bool *ret_port)
{
	const char *found = NULL;

	*ret_port = false;
	for (const char *key = query; key != NULL; key = strchr(key, '&')) {
		key++;
		*ret_port = *ret_port || strncmp(key, "port=", 5) == 0;
		if (strncmp(key, KEY, strlen(KEY)) == 0)
			found = key;
	}
	return found;
}

int pl_tap_source_tmpkt(const char *uri, char *dst, size_t cap, struct pl_diag *diag)
{
	const bool interface = (pl_port_uri_can(uri) & PL_PORT_CAN_INTERFACE) != 0;
	const char *query = interface ? strchr(uri, '?') : NULL, *key, *value, *rest;
	bool has_port;
	int n;

	key = find_key(query, &has_port);
	if (key == NULL) {
		n = snprintf(dst, cap, "%s", uri);
	} else {
		value = key + strlen(KEY);
		rest = value + strcspn(value, "&");
		if (rest - value != 5 || strncmp(value, "tmpkt", 5) != 0) {
			pl_diag_set(diag,
				"'" KEY "%.*s' in the URI: write " KEY
				"tmpkt, for records that others "
				"send, or leave the key out",
				(int)(rest - value), value);
			return -EINVAL;
		}
		/* Removes a key and keeps the keys before and behind it; the first key has the '?'
		 * in front. */
		n = has_port ? snprintf(dst, cap, "%.*s%s", (int)(key - uri), uri,
				       *rest == '&' ? rest + 1 : "")
			     : snprintf(dst, cap, "%.*sport=%d%s", (int)(key - uri), uri,
				       PL_TMPKT_PORT, rest);
		/* The key stood last: drops the '&' before it. */
		if (n > 0 && (size_t)n < cap && dst[n - 1] == '&')
			dst[n - 1] = '\0';
	}
	if (n < 0 || (size_t)n >= cap) {
		pl_diag_set(diag, "a URI of more than %zu bytes is too long", cap - 1);
		return -EINVAL;
	}
	return key != NULL;
}

bool pl_tap_source_is_tmpkt(const char *uri)
{
	char port[PL_URI_TEXT_MAX];

	return !pl_tap_kernel_is(uri) && !pl_tap_drops_is(uri) &&
	       ((pl_port_uri_can(uri) & PL_PORT_CAN_DATAGRAMS) != 0 ||
		       pl_tap_source_tmpkt(uri, port, sizeof(port), NULL) == 1);
}
