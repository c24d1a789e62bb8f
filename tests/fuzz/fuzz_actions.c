/* SPDX-License-Identifier: BSD-2-Clause */
/* Any packet through every telemetry action of the data plane: see actions.h. */
#include "actions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0)
		actions_check(data, size);
	actions_end();
	return 0;
}
