/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a service for a command. */
#include "runtime/serve.h"

#include <errno.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"

static int exit_of(int error)
{
	switch (error) {
	case -EINVAL:
		return PL_EXIT_USAGE;
	case -EPERM:
	case -EACCES:
		return PL_EXIT_PRIVILEGE;
	case -ENOENT:
	case -EBADMSG:
		return PL_EXIT_FAILED;
	default:
		return PL_EXIT_UNAVAILABLE;
	}
}

int pl_serve(const struct pl_runtime_options *options, const bool *began)
{
	struct pl_diag diag = { .text = "" };
	int r = pl_runtime(options, &diag);

	if (r >= 0)
		return 0;
	if (diag.text[0] == '\0')
		pl_diag_set(&diag, "%s", strerror(-r));
	pl_complain_diag(&diag);
	return *began ? PL_EXIT_FAILED : exit_of(r);
}
