/* SPDX-License-Identifier: BSD-2-Clause */
/* IPFIX in a build without libfixbuf. */
#include <errno.h>

#include "export/ipfix_out.h"

/* A stub has the parameters of the function that it stands for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int pl_ipfix_built(struct pl_diag *diag)
{
	return pl_diag_fail(diag, -ENOTSUP,
		"this pathline was built without IPFIX: libfixbuf was missing; install its headers "
		"(libfixbuf-dev) and build again");
}

int pl_ipfix_out_check(const char *uri, struct pl_diag *diag)
{
	return pl_ipfix_built(diag);
}

int pl_ipfix_out_open(
	struct pl_export **ret, const char *uri, uint64_t now_ns, struct pl_diag *diag)
{
	return pl_ipfix_built(diag);
}

uint64_t pl_ipfix_out_memory(void)
{
	return 0;
}
