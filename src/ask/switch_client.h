/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends requests to a running switch by its control socket. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/diag.h"

/* Most bytes of a request to a switch. */
#define PL_SWITCH_ASK_MAX (1u << 20)

/* Sends a request (a JSON object, without an end of line) and waits for the answer, at most ten
 * seconds. Negative errno with diag: no such switch, or no answer; -EMSGSIZE: the request is too
 * long. */
int pl_switch_ask(
	const char *path, const struct pl_buf *request, struct pl_buf *ret, struct pl_diag *diag);
