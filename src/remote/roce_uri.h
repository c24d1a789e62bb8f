/* SPDX-License-Identifier: BSD-2-Clause */
/* "roce://HOST:PORT[,HOST:PORT]…/STORE[,STORE]…?KEY=VALUE[&KEY=VALUE]…": collectors, the stores
 * that each of them has, and options of the connection. */
#pragma once

#include <stdbool.h>

#include "base/diag.h"
#include "dta/translator.h"

#define PL_ROCE_URI "roce://"

struct pl_roce_uri {
	char *text; /* copy of the URI, cut into the strings below */
	const char *servers[PL_COLLECTORS_MAX], *stores[PL_DTA_STORES_MAX];
	unsigned int n_servers, n_stores;
};

bool pl_roce_uri_is(const char *text);

/* Takes a URI apart; `take` gets each key with its value, which stay valid until pl_roce_uri_done.
 * Returns 0, a negative result of `take`, -EINVAL or -ENOMEM, with diag. */
int pl_roce_uri_parse(struct pl_roce_uri *ret, const char *uri,
	int (*take)(void *arg, const char *key, const char *value, struct pl_diag *diag), void *arg,
	struct pl_diag *diag);
void pl_roce_uri_done(struct pl_roce_uri *u); /* a zeroed one is fine */
