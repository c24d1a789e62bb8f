/* SPDX-License-Identifier: BSD-2-Clause */
/* Client of a switch's control socket. */
#include "ask/switch_client.h"

#include <errno.h>
#include <string.h>

#include "base/local_socket.h"

#define ANSWER_MAX (17u << 20)
#define PATIENCE_S 10

int pl_switch_ask(
	const char *path, const struct pl_buf *request, struct pl_buf *ret, struct pl_diag *diag)
{
	int r;

	if (request->len > PL_SWITCH_ASK_MAX)
		return pl_diag_fail(diag, -EMSGSIZE,
			"a request has %u bytes at most, this one %zu: make several of its changes",
			PL_SWITCH_ASK_MAX, request->len);
	ret->limit = ANSWER_MAX;
	r = pl_local_ask(path, request, PATIENCE_S, ret);
	if (r == -ECONNREFUSED || r == -ENOENT)
		pl_diag_set(diag, "no switch listens at %s", path);
	else if (r < 0)
		pl_diag_set(diag, "control socket %s: %s", path, strerror(-r));
	return r;
}
