/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a service for a command. */
#include "runtime/serve.h"

#include <errno.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"

int pl_serve_exit(int error)
{
	switch (error) {
	case -EINVAL:
		return PL_EXIT_USAGE;
	case -EPERM:
	case -EACCES:
		return PL_EXIT_PRIVILEGE;
	case -ENOTDIR:
	case -EBADMSG:
	case -ERANGE:
	case -ENOMEM:
		return PL_EXIT_FAILED;
	default:
		return PL_EXIT_UNAVAILABLE;
	}
}

int pl_serve(const struct pl_runtime_options *options)
{
	struct pl_diag diag = { .text = "" };
	bool opened;
	int r = pl_runtime(options, &opened, &diag);

	if (r >= 0)
		return 0;
	if (diag.text[0] == '\0')
		pl_diag_set(&diag, "%s", strerror(-r));
	pl_complain_diag(&diag);
	return opened ? PL_EXIT_FAILED : pl_serve_exit(r);
}
