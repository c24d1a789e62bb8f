/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads URIs of drops, and names places. */
#include "tap/drops_uri.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "tap/drops.h"
#include "tap/kernel_maps.h"

#define RATE      10000
#define RATE_MOST 10000000

bool pl_tap_drops_is(const char *uri)
{
	return strncmp(uri, "drops:", 6) == 0;
}

int pl_tap_drops_settings(struct pl_tap_drops_settings *ret, const char *text, struct pl_uri *uri,
	struct pl_diag *diag)
{
	static const char *const keys[] = { "rate", "ring", NULL };
	const char *rate;
	int r;

	*ret = (struct pl_tap_drops_settings){ .ring_bytes = PL_TAP_RING_BYTES, .rate = RATE };
	r = pl_uri_split(uri, strchr(text, ':') + 1, keys, diag);
	if (r == 0)
		r = pl_uri_get_size(
			uri, "ring", PL_TAP_RING_LEAST, PL_TAP_RING_MOST, &ret->ring_bytes, diag);
	if (r < 0)
		return r;
	rate = pl_uri_get(uri, "rate");
	if (rate != NULL &&
		(pl_parse_u64(rate, &ret->rate) < 0 || ret->rate < 1 || ret->rate > RATE_MOST)) {
		pl_diag_set(diag, "'rate=%s' in the URI: a number of records a second from 1 to %d",
			rate, RATE_MOST);
		return -EINVAL;
	}
	if (strlen(uri->target) >= IF_NAMESIZE || strpbrk(uri->target, "/ :") != NULL) {
		pl_diag_set(diag, "'%s' cannot be the name of an interface", uri->target);
		return -EINVAL;
	}
	memcpy(ret->interface, uri->target, strlen(uri->target));
	return 0;
}

int pl_tap_drops_check(const char *text, struct pl_diag *diag)
{
	struct pl_uri *uri = malloc(sizeof(*uri));
	struct pl_tap_drops_settings set;
	int r = -ENOMEM;

	if (uri == NULL)
		pl_diag_set(diag, "%s", strerror(ENOMEM));
	else
		r = pl_tap_drops_settings(&set, text, uri, diag);
	free(uri);
	return r;
}

/* "NAME+0xOFFSET/0xSIZE", and of a module " [MODULE]" behind it. */
void pl_tap_drops_place(struct pl_text40 *ret, const char at[PL_DROPS_AT_BYTES])
{
	const size_t whole = strnlen(at, PL_DROPS_AT_BYTES);
	const char *end = at + whole, *plus = memchr(at, '+', whole);
	const char *slash = plus != NULL ? memchr(plus, '/', (size_t)(end - plus)) : NULL;
	const char *module = memchr(at, '[', whole);
	size_t name, tail, more = 0;

	memset(ret, 0, sizeof(*ret));
	if (plus == NULL || slash == NULL)
		return; /* an address alone */
	name = (size_t)(plus - at);
	tail = (size_t)(slash - plus);
	if (module != NULL)
		more = (size_t)(end - module);
	if (tail + more > PL_TEXT_TOLD / 2)
		more = 0;
	if (tail + more > PL_TEXT_TOLD / 2)
		return;
	if (name + tail + more > PL_TEXT_TOLD) {
		name = PL_TEXT_TOLD - tail - more;
		memcpy(ret->c, at, name - 1);
		ret->c[name - 1] = '~';
	} else {
		memcpy(ret->c, at, name);
	}
	memcpy(ret->c + name, plus, tail);
	if (more > 0)
		memcpy(ret->c + name + tail, module, more);
}
