/* SPDX-License-Identifier: BSD-2-Clause */
/* Results, errors and the version of libpathline. */
#include "lib/common.h"

#include <stdio.h>
#include <string.h>

int lib_result(int r, const struct pl_diag *diag, struct pathline_error *error)
{
	if (error == NULL)
		return r;
	error->text[0] = '\0';
	if (r < 0 && diag->text[0] != '\0')
		(void)pl_diag_format(diag, error->text, sizeof(error->text));
	else if (r < 0)
		snprintf(error->text, sizeof(error->text), "%s", strerrordesc_np(-r));
	return r;
}

const char *pathline_version(void)
{
	return PL_VERSION;
}
