/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a switch that runs, by its control socket. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/diag.h"

/* Bytes of a request that a switch takes. */
#define PL_SWITCH_ASK_MAX (1u << 20)

/* Sends a request (a JSON object, without an end of line) and waits for the answer, at most ten
 * seconds. Negative errno with diag: there is no such switch, it does not answer; -EMSGSIZE: the
 * request is too long. */
int pl_switch_ask(
	const char *path, const struct pl_buf *request, struct pl_buf *ret, struct pl_diag *diag);
