/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a URI of collectors and their stores. */
#include "remote/roce_uri.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool pl_roce_uri_is(const char *text)
{
	return strncmp(text, PL_ROCE_URI, strlen(PL_ROCE_URI)) == 0;
}

static int refuse(struct pl_diag *diag, const char *what)
{
	pl_diag_set(diag, "roce: %s", what);
	return -EINVAL;
}

/* Splits "a,b,c" in place. Returns -1 for more than `max` parts, or an empty one. */
static int split(char *text, const char **ret, unsigned int max)
{
	unsigned int n = 0;
	char *rest = text, *word;

	while ((word = strsep(&rest, ",")) != NULL) {
		if (n == max || word[0] == '\0')
			return -1;
		ret[n++] = word;
	}
	return (int)n;
}

static int take_keys(char *query,
	int (*take)(void *arg, const char *key, const char *value, struct pl_diag *diag), void *arg,
	struct pl_diag *diag)
{
	char *pair;
	int r = 0;

	while (r == 0 && (pair = strsep(&query, "&")) != NULL) {
		char *value = strchr(pair, '=');

		if (value == NULL)
			return refuse(diag, "a key in the URI has no value");
		*value++ = '\0';
		r = take(arg, pair, value, diag);
	}
	return r;
}

int pl_roce_uri_parse(struct pl_roce_uri *ret, const char *uri,
	int (*take)(void *arg, const char *key, const char *value, struct pl_diag *diag), void *arg,
	struct pl_diag *diag)
{
	char *hosts, *names, *query;
	int n;

	*ret = (struct pl_roce_uri){ .text = strdup(uri + strlen(PL_ROCE_URI)) };
	if (ret->text == NULL)
		return -ENOMEM;
	hosts = ret->text;
	query = strchr(hosts, '?');
	if (query != NULL)
		*query++ = '\0';
	names = strchr(hosts, '/');
	if (names == NULL || names[1] == '\0')
		return refuse(diag,
			"missing stores: write roce://10.0.0.2:7471/last,lists?dev=packet:eth0");
	*names++ = '\0';
	n = split(hosts, ret->servers, PL_COLLECTORS_MAX);
	if (n < 0)
		return refuse(diag,
			"missing collectors: write 1 to 64 of them, such as 10.0.0.2:7471,10.0.0.3:7471");
	ret->n_servers = (unsigned int)n;
	n = split(names, ret->stores, PL_DTA_STORES_MAX);
	if (n < 0)
		return refuse(diag, "write 1 to 256 names of stores, separated by commas");
	ret->n_stores = (unsigned int)n;
	return take_keys(query, take, arg, diag);
}

void pl_roce_uri_done(struct pl_roce_uri *u)
{
	free(u->text);
	*u = (struct pl_roce_uri){ .text = NULL };
}
